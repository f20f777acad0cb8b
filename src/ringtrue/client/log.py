"""The log of searches and what people did with them: ``/v1/queries`` and ``/v1/feedback``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from ringtrue.answers import Actor, Event, LinkedEvent, Logged, LoggedSearch, LogStats, Step, Taken
from ringtrue.client.background import BackgroundLog
from ringtrue.client.wire import Wire, given, segment
from ringtrue.errors import MissingInput
from ringtrue.traffic import Traffic

AT_ONCE = 1_000
"""Searches or events that a service takes in one request."""


class Queries:
    """The searches of the log."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def send(self, searches: Iterable[Mapping[str, Any]]) -> Logged:
        """Log searches, any number of them, and return what became of all; see ``Client.log`` for their fields."""
        told = [self._wire.write_as(Logged, "POST", "/v1/queries", part) for part in _parts(searches)]
        return Logged(
            sum(one.accepted for one in told),
            sum(one.stored for one in told),
            tuple(query_id for one in told for query_id in one.query_ids),
        )

    def background(self) -> BackgroundLog:
        """Return a log that sends searches from a thread of its own, many in a request, so that no caller waits."""
        return BackgroundLog(lambda body: self._wire.send("POST", "/v1/queries", content=body, again=False))

    def list(
        self,
        *,
        text: str | None = None,
        tool: str | None = None,
        session_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        trouble: bool = False,
        slower_than: float | None = None,
        traffic: Traffic | Literal["all"] = "user",
    ) -> Iterator[LoggedSearch]:
        """Yield searches of the log, the newest first.

        ``text`` are words that the query holds, ``trouble`` leaves those that failed, fell back or found nothing,
        ``slower_than`` is in milliseconds, times are ISO 8601. ``traffic`` says whose searches.
        """
        return self._wire.items(
            LoggedSearch, "/v1/queries", text=text, tool=tool, session_id=session_id, since=since, until=until,
            trouble="true" if trouble else None, slower_than=slower_than, traffic=traffic,
        )  # fmt: skip

    def get(self, query_id: str) -> LoggedSearch:
        """Return one search; raises MissingInput where the log has none of that id."""
        if query_id == "stats":  # the address of ``stats``, and so of no search
            raise MissingInput(f"{self._wire.who}: the log has no search 'stats'")
        return self._wire.get_as(LoggedSearch, f"/v1/queries/{segment(query_id, 'query_id')}")

    def stats(self, *, since: str | None = None, until: str | None = None, step: Step | None = None) -> LogStats:
        """Return volume, empty and degraded answers, latency and proxy of a time, step by step; the last day unless given."""
        return self._wire.get_as(LogStats, "/v1/queries/stats", since=since, until=until, step=step)


class Feedback:
    """What people and agents did with results."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def send(
        self,
        event_type: str,
        *,
        session_id: str,
        item_id: str | None = None,
        query_id: str | None = None,
        actor: Actor = "unknown",
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        event_id: str | None = None,
        created_at: str | None = None,
    ) -> LinkedEvent:
        """Record one event, such as a click, and return it with the search it was linked to.

        The search is found by prompt, trace or session where ``query_id`` is not given.
        """
        event = given(
            {
                "event_type": event_type, "session_id": session_id, "item_id": item_id, "query_id": query_id, "actor": actor,
                "user_id": user_id, "metadata": None if metadata is None else dict(metadata), "event_id": event_id,
                "created_at": created_at,
            }
        )  # fmt: skip
        return self._wire.write_as(Taken, "POST", "/v1/feedback", event).events[0]

    def send_many(self, events: Iterable[Mapping[str, Any]]) -> Taken:
        """Record events, any number of them, each with the fields of ``send``; return what became of all."""
        told = [self._wire.write_as(Taken, "POST", "/v1/feedback", part) for part in _parts(events)]
        return Taken(
            sum(one.accepted for one in told),
            sum(one.stored for one in told),
            tuple(event for one in told for event in one.events),
        )

    def list(
        self,
        *,
        query_id: str | None = None,
        session_id: str | None = None,
        event_type: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Iterator[Event]:
        """Yield events, the newest first."""
        return self._wire.items(
            Event, "/v1/feedback", query_id=query_id, session_id=session_id, event_type=event_type, since=since, until=until
        )


def _parts(rows: Iterable[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    part: list[Mapping[str, Any]] = []
    for row in rows:
        part.append(given(row))
        if len(part) == AT_ONCE:
            yield part
            part = []
    if part:
        yield part
