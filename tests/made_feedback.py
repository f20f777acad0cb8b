"""Searches and events for the tests of feedback; times are minutes after one noon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from ringtrue.store import FeedbackEvent, LoggedQuery, timestamp

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RESULTS = ("a", "b", "c", "d", "e")


def at(minutes: float = 0, *, days: float = 0) -> str:
    return timestamp(NOON + timedelta(minutes=minutes, days=days))


def search(query_id: str, text: str = "late checkout fee", *, minutes: float = 0, session: str | None = "s", **facts: Any):
    facts = {"result_ids": RESULTS, "retriever": "fp1", "tool_name": "web", **facts}
    return LoggedQuery(query_id, text, created_at=at(minutes), session_id=session, **facts)


def event(kind: str, item: str | None = "b", *, minutes: float = 1, session: str = "s", **facts: Any) -> FeedbackEvent:
    facts = {"event_id": f"ef_{kind}_{item}_{minutes}_{session}_{facts.get('actor', '')}", "actor": "person", **facts}
    name = facts.pop("event_id")
    return FeedbackEvent(name, kind, session, at(minutes), item_id=item, **facts)  # type: ignore[arg-type]
