"""What is missing of a shadow run's sample: queries that the candidate was to answer, and of which no row is stored.

Under load the queue of a shadow is full just when searches are slow, so that what is missing is no random part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from ringtrue.store import DEFAULT_PROJECT, AuditEntry

MISSING = "shadow.missing"
"""What the audit trail calls it; every entry tells of what came since the one before."""


class AuditStore(Protocol):
    """What reading it needs of the store."""

    def audit(
        self,
        *,
        project: str = ...,
        subject: str | None = ...,
        what: str | None = ...,
        since: Any = ...,
        limit: int | None = ...,
    ) -> list[AuditEntry]: ...


@dataclass(frozen=True, slots=True)
class Missing:
    """Sampled queries without a stored row, by what became of them."""

    dropped: int = 0
    """Nobody was free and the queue was full, or the candidate kept hanging, or there was no time left at the end."""
    unsaved: int = 0
    """The store did not take the row."""
    unreadable: int = 0
    """Production's answer is no list that could be compared."""

    @property
    def total(self) -> int:
        return self.dropped + self.unsaved + self.unreadable


def subject_of(feature_id: str) -> str:
    """Return under whose name the audit trail keeps it: not the flag's own, whose entries say who changed it."""
    return f"shadow:{feature_id}"


def missing_entry(feature_id: str, at: str, counts: Mapping[str, int], *, project: str = DEFAULT_PROJECT) -> AuditEntry:
    """Return the entry that tells of further missing queries."""
    return AuditEntry(at, "shadow", MISSING, subject_of(feature_id), dict(counts), project)


def missing_of(
    store: AuditStore, feature_id: str, *, since: str | datetime | None = None, project: str = DEFAULT_PROJECT
) -> Missing:
    """Return what the audit trail says is missing of a feature's shadow, from a time on.

    A living shadow tells within minutes, one that is closed at once; one that was killed may have left some untold.
    """
    found: Counter[str] = Counter()
    for entry in store.audit(project=project, subject=subject_of(feature_id), what=MISSING, since=since):
        found.update({name: int(entry.detail.get(name, 0)) for name in ("dropped", "unsaved", "unreadable")})
    return Missing(found["dropped"], found["unsaved"], found["unreadable"])
