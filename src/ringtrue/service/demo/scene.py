"""What every part of the demonstration shares: the store it fills, and the simulated clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ringtrue.store import AuditEntry, Store, timestamp

OPERATOR = "operator"
"""Who sets flags, keeps golden sets and records baselines; a role, nobody's name."""


@dataclass(frozen=True)
class Scene:
    """Where and when it plays."""

    store: Store
    now: datetime
    project: str

    def ago(self, days: float) -> datetime:
        """Return the moment so many days before the end."""
        return self.now - timedelta(days=days)

    def note(self, at: datetime, what: str, subject: str, **detail: Any) -> None:
        """Write into the audit trail what the operator did."""
        self.store.add_audit(AuditEntry(timestamp(at), OPERATOR, what, subject, detail, self.project))
