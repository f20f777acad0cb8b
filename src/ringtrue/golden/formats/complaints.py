"""Where a reader's errors go: raised at once when a set is loaded, collected when a file is validated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ringtrue.errors import InputError
from ringtrue.formats.text import Place


@dataclass(frozen=True)
class Complaint:
    """One record that could not be understood."""

    place: str
    message: str


@dataclass
class Complaints:
    """A reader wraps each record in ``with complaints.about(place):`` so that one broken record hides no other."""

    collect: bool = False
    found: list[Complaint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a reader decided by a rule where the file leaves it open, one line each."""

    @contextmanager
    def about(self, place: Place) -> Iterator[None]:
        """Raise what goes wrong inside, or keep it and go on with the next record."""
        try:
            yield
        except InputError as problem:
            if not self.collect:
                raise
            self.found.append(Complaint(problem.place or str(place), str(problem)))
