"""One experiment: what was changed, what came of it, and whether it was kept (X-1)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ringtrue.errors import InputError
from ringtrue.formats.text import Place, field_of, usable_id

Decision = Literal["ACCEPTED", "REJECTED", "UNDECIDED"]
_VERDICT = re.compile(r"(ACCEPTED|REJECTED|UNDECIDED)\s*\((.+)\)\s*", re.DOTALL)
_TEXTS = {
    "commit": "commit",
    "golden_version": "golden",
    "corpus_hash": "corpus",
    "run_dir": "run",
    "baseline": "baseline",
}
"""Field in the file → attribute: what an experiment may know beside the six fields that every one has."""
FIELDS = ("id", "date", "description", "config_changes", "results", "verdict", *_TEXTS)


@dataclass(frozen=True)
class Experiment:
    """A change that was tried. ``Experiment.of`` reads one row of ``experiments.json``, ``as_dict`` writes it."""

    id: str
    """Like ``exp-001``; '' until a ledger has given it one."""
    date: str
    """ISO 8601, at least the day."""
    description: str
    config_changes: Mapping[str, Any] = field(default_factory=dict)
    """What was set to what: ``{"chunking.max_tokens": 256}``."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Called ``results`` in the file; nan stands for a value that is not defined."""
    verdict: str = ""
    """``ACCEPTED (all metrics improved)``; '' while nobody has decided."""
    commit: str | None = None
    """Git commit of the code, with ``-dirty`` where files were changed since."""
    golden: str | None = None
    """Exact version of the golden set, like ``hotel-v1.0.0``."""
    corpus: str | None = None
    """Hash of the documents that were searched."""
    run: str | None = None
    """Folder of the run, from the folder of the experiments' file."""
    baseline: str | None = None
    """Run folder or baseline file that it was compared with."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields that somebody else wrote; they are kept as they are."""

    @property
    def decision(self) -> Decision | None:
        """The first word of the verdict; None where it has another form."""
        word = self.verdict.split("(")[0].strip()
        return word if word in ("ACCEPTED", "REJECTED", "UNDECIDED") else None  # type: ignore[return-value]

    @property
    def reason(self) -> str:
        """What stands in the brackets of the verdict."""
        found = _VERDICT.fullmatch(self.verdict)
        return found[2] if found else ""

    def as_dict(self) -> dict[str, Any]:
        """Return the row of ``experiments.json``; what is not known is left out.

        >>> Experiment("exp-001", "2026-01-04", "wider", {"k": 20}, {"mrr": 0.7}, "REJECTED (slow)").as_dict()["results"]
        {'mrr': 0.7}
        """
        known = {name: getattr(self, attribute) for name, attribute in _TEXTS.items()}
        return {
            "id": self.id,
            "date": self.date,
            "description": self.description,
            "config_changes": dict(self.config_changes),
            "results": {name: None if math.isnan(value) else value for name, value in self.metrics.items()},
            "verdict": self.verdict,
            **{name: value for name, value in known.items() if value is not None},
            **self.extra,
        }

    @classmethod
    def of(cls, row: Any, place: Place) -> Experiment:
        """Return the experiment in a row; raises InputError naming the field, its value and the cure."""
        if not isinstance(row, dict):
            raise place.error(f"{row!r:.60} is no experiment", 'write {"id": …, "date": …, "description": …, …}')
        here = place.at("results")
        known = {attribute: field_of(row, name, (str, type(None)), place, default=None) for name, attribute in _TEXTS.items()}
        return cls(
            id=usable_id(field_of(row, "id", str, place), place.at("id")),
            date=field_of(row, "date", str, place),
            description=field_of(row, "description", str, place),
            config_changes=field_of(row, "config_changes", dict, place, default={}),
            metrics={name: _number(v, here.at(name)) for name, v in field_of(row, "results", dict, place, default={}).items()},
            verdict=field_of(row, "verdict", str, place, default=""),
            **known,
            # A field of ours that says null stays there as it is: leaving it out would change somebody's file.
            extra={name: value for name, value in row.items() if name not in FIELDS or (name in _TEXTS and value is None)},
        )


def _number(value: Any, place: Place) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.error(f"{value!r:.60} is no number", "write a number, or null where it is not known")
    return value  # a whole number stays one, so that a file read and written is the same file


def check_verdict(text: str) -> str:
    """Return a verdict that somebody wrote by hand; raises InputError where decision or reason is missing.

    >>> check_verdict("rejected (too slow)")
    'REJECTED (too slow)'
    """
    word, bracket, rest = text.strip().partition("(")
    written = f"{word.strip().upper()} ({rest.strip()}" if bracket else text.strip()
    if not _VERDICT.fullmatch(written):
        raise InputError(f"verdict {text!r:.80} says no decision with a reason; write 'ACCEPTED (why)' or 'REJECTED (why)'")
    return written
