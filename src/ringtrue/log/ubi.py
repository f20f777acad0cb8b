"""OpenSearch User Behavior Insights → logged queries and feedback: lines of ``ubi_queries`` and ``ubi_events``.

A line is a document of the index, bare or as dumping tools write it, with the document under ``_source`` and its id under
``_id``. Queries keep their id, so that events find them. Which actions count as feedback is a table; the others are counted and
passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ringtrue.answers import EventType
from ringtrue.errors import InputError
from ringtrue.formats.text import Place
from ringtrue.log.identify import imported_id
from ringtrue.log.lines import LARGEST, is_number, shown
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery, timestamp

ACTIONS: Mapping[str, EventType] = {
    "click": "click", "item_click": "click", "product_click": "click", "result_click": "click", "view": "click",
    "item_view": "click", "click_through": "click", "watch": "dwell", "dwell": "dwell", "add_to_cart": "selection",
    "purchase": "selection", "buy": "selection", "select": "selection", "download": "selection", "bookmark": "selection",
    "thumbs_up": "validate_useful", "like": "validate_useful", "thumbs_down": "validate_not_useful",
    "dislike": "validate_not_useful",
}  # fmt: skip
"""What the usual actions mean here."""
_STAYED = ("dwell_time", "dwell_seconds")


def is_ubi(record: Mapping[str, Any]) -> bool:
    """True for a line of ``ubi_queries`` or ``ubi_events``."""
    inner = record.get("_source", record)
    return isinstance(inner, Mapping) and ("action_name" in inner or "user_query" in inner or "query_response_id" in inner)


def rows_in_ubi(
    rows: Iterable[tuple[Place, Mapping[str, Any]]],
    *,
    project: str = DEFAULT_PROJECT,
    actions: Mapping[str, EventType] = ACTIONS,
    skipped: dict[str, int] | None = None,
) -> Iterator[LoggedQuery | FeedbackEvent]:
    """Yield a logged query or a feedback event for every line; ``skipped`` counts actions that are no feedback.

    The same lines always give the same ids. Raises InputError with line and field.
    """
    for place, record in rows:
        inner = record.get("_source", record)
        if not isinstance(inner, Mapping):
            raise place.at("_source").error(f"it is {inner!r:.40}", "write the document as an object")
        if "action_name" not in inner:
            yield _query(place, inner, project)
            continue
        action = _needed(inner, "action_name", place)
        kind = actions.get(action)
        if kind is None:
            if skipped is not None:
                skipped[action] = skipped.get(action, 0) + 1
            continue
        yield _event(place, inner, kind, action, project, _text(record.get("_id")))


def _query(place: Place, record: Mapping[str, Any], project: str) -> LoggedQuery:
    hits = record.get("query_response_hit_ids") or []
    if not isinstance(hits, list) or not all(isinstance(item, str | int) for item in hits):
        raise place.at("query_response_hit_ids").error(f"it is {hits!r:.60}", "write a list of ids")
    attributes = record.get("query_attributes")
    attributes = attributes if isinstance(attributes, Mapping) else {}
    return LoggedQuery(
        query_id=_needed(record, "query_id", place),
        query=_needed(record, "user_query", place, blank=True),
        tool_name=_text(record.get("application")) or "ubi",
        created_at=_time(record, place),
        project=project,
        session_id=_text(record.get("session_id", attributes.get("session_id"))) or _text(record.get("client_id")),
        user_id=_text(record.get("client_id")),
        result_ids=tuple(map(str, hits)),
    )


def _event(
    place: Place, record: Mapping[str, Any], kind: EventType, action: str, project: str, known_id: str | None
) -> FeedbackEvent:
    attributes = record.get("event_attributes") or {}
    if not isinstance(attributes, Mapping):
        raise place.at("event_attributes").error(f"it is {attributes!r:.60}", "write an object")
    inside = place.at("event_attributes")
    thing, position = attributes.get("object") or {}, attributes.get("position") or {}
    for name, value in (("object", thing), ("position", position)):
        if not isinstance(value, Mapping):
            raise inside.at(name).error(f"it is {value!r:.60}", "write an object")
    ordinal = position.get("ordinal")
    if ordinal is not None and (isinstance(ordinal, bool) or not isinstance(ordinal, int) or not 1 <= ordinal <= LARGEST):
        raise inside.at("position").at("ordinal").error(f"it is {shown(ordinal)}", "write a rank, from 1")
    session = _text(record.get("session_id", attributes.get("session_id"))) or _text(record.get("client_id"))
    if session is None:
        raise place.at("client_id").error("the event has neither a session nor a client", "record client_id")
    at = _time(record, place)
    said = known_id or json.dumps(record, sort_keys=True, ensure_ascii=True, default=str)
    micros = round(datetime.fromisoformat(at).timestamp() * 1_000_000)
    return FeedbackEvent(
        event_id=imported_id("ef_", micros, project, said),
        event_type=kind,
        session_id=session,
        created_at=at,
        project=project,
        query_id=_text(record.get("query_id")),
        item_id=_text(thing.get("object_id")),
        rank_in_results=-1 if ordinal is None else ordinal,
        actor="person",
        user_id=_text(record.get("client_id")),
        metadata={"action": action, **_time_spent(attributes, kind, inside)},
    )


def _time_spent(attributes: Mapping[str, Any], kind: EventType, place: Place) -> dict[str, float]:
    """Return how long somebody stayed. UBI names no unit; the clients that OpenSearch documents write seconds.

    They write with every event how long its page has been open: of a dwell that is how long it was, of a click how long the
    list of results was looked at, which keeps its own name.
    """
    name = next((name for name in _STAYED if attributes.get(name) is not None), None)
    if name is None:
        return {}
    seconds = attributes[name]
    known = is_number(seconds) and seconds >= 0
    if kind == "dwell" and not known:
        raise place.at(name).error(f"it is {shown(seconds)}", "write seconds from 0")
    return {"seconds" if kind == "dwell" else "dwell_time": seconds} if known else {}


def _needed(record: Mapping[str, Any], name: str, place: Place, *, blank: bool = False) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not (value or blank):
        raise place.at(name).error("it is missing" if value is None else f"it is {value!r:.40}", "write a text")
    return value


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _time(record: Mapping[str, Any], place: Place) -> str:
    """Return when it happened, from ISO 8601 or from milliseconds since 1970."""
    value = record.get("timestamp")
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return timestamp(datetime.fromtimestamp(value / 1000, UTC))
        return timestamp(str(value or ""))
    except (InputError, OverflowError, OSError, ValueError):
        raise place.at("timestamp").error(f"it is {value!r:.40}", "write a time like 2026-03-01T12:00:00Z") from None
