"""A store in memory with what flags and graduation need, for tests of the rules; the real one is tested beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from ringtrue.store import ABTest, AuditEntry, Flag, LoggedQuery, ShadowRun, StoredResult, timestamp


class MemoryStore:
    def __init__(self) -> None:
        self.known: dict[str, Flag] = {}
        self.trail: list[AuditEntry] = []
        self.rows: list[ShadowRun] = []
        self.logged: list[LoggedQuery] = []
        self.found: list[StoredResult] = []
        self.trials: dict[str, ABTest] = {}
        self._lock = threading.Lock()

    def flag(self, name: str, *, project: str = "default") -> Flag | None:
        return self.known.get(name)

    def flags(self, *, project: str = "default") -> list[Flag]:
        return sorted(self.known.values(), key=lambda flag: flag.name)

    def shadow_features(self, *, project: str = "default") -> list[str]:
        return []

    def set_flag(self, flag: Flag, *, who: str, at: str | datetime, why: str = "", expected: Flag | str | None = "any") -> bool:
        with self._lock:
            before = self.known.get(flag.name)
            if expected != "any" and before != expected:
                return False
            self.known[flag.name] = flag
            detail = {"before": None if before is None else asdict(before), "after": asdict(flag), "why": why}
            self.trail.insert(0, AuditEntry(timestamp(at), who, "set flag", flag.name, detail, flag.project))
            return True

    def audit(
        self, *, project: str = "default", subject: str | None = None, what: str | None = None, since: Any = None,
        limit: int | None = None,
    ) -> list[AuditEntry]:  # fmt: skip
        mine = [entry for entry in self.trail if subject in (None, entry.subject) and what in (None, entry.what)]
        return [entry for entry in mine if _after(entry.at, since)][:limit]

    def results(self, *, since: Any = None, feature_id: str | None = None, **_: Any) -> list[StoredResult]:
        kept = [one for one in self.found if feature_id in (None, one.feature_id) and _after(one.created_at, since)]
        return sorted(kept, key=lambda one: one.created_at, reverse=True)

    def shadow_runs(self, *, feature_id: str, since: Any = None, **_: Any) -> list[ShadowRun]:
        return [row for row in self.rows if row.feature_id == feature_id and _after(row.created_at, since)]

    def test(self, feature_id: str, *, project: str = "default") -> ABTest | None:
        return self.trials.get(feature_id)

    def create_test(self, state: ABTest) -> None:
        self.trials[state.feature_id] = state

    def update_test(
        self, feature_id: str, query_id: str, change: Callable[[ABTest], ABTest], *, project: str = "default", point: Any = None
    ) -> ABTest | None:
        self.trials[feature_id] = change(self.trials[feature_id])
        return self.trials[feature_id]

    def add_audit(self, entry: AuditEntry) -> None:
        self.trail.insert(0, entry)

    def queries(self, *, since: Any = None, **_: Any) -> list[LoggedQuery]:
        return [row for row in self.logged if _after(row.created_at, since)]


def _after(created_at: str, since: Any) -> bool:
    return since is None or timestamp(created_at) >= timestamp(since)
