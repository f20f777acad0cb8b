"""What a name in a retriever expression means: the rows of the tables in ``expression`` and ``pipeline``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringtrue.errors import InputError
from ringtrue.retrieve.collection import Collection
from ringtrue.retrieve.protocol import Retriever


@dataclass(frozen=True)
class Use:
    """One use of a name: its text, its options with defaults filled in, its retrievers, and the documents searched."""

    text: str
    options: Mapping[str, Any]
    children: Sequence[tuple[str, Retriever]]
    collection: Collection | None

    @property
    def documents(self) -> Collection:
        if self.collection is None:
            raise InputError(f"'{self.text}' searches documents; name a collection made by `ringtrue ingest`")
        return self.collection


@dataclass(frozen=True)
class Name:
    """What a name means: a 'channel' finds, a 'fusion' joins two or more retrievers, a 'stage' works on hits after ``>>``."""

    kind: str
    means: str
    build: Callable[[Use], Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    first: str = ""
    """The option that a plain argument stands for: dense('model')."""
    of: str = ""
    """'one' where it takes another retriever as its argument, 'maybe' where it can."""
    documents: bool = False
    """True where it needs documents of one's own, as channels over a collection do."""
    free: Any = None
    """The default of options with names of the user's own; None where there are none."""
