"""One record ⇄ one line of JSON: how the spool, the export and our own import write queries and feedback."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from ringtrue.errors import InputError, nearest
from ringtrue.formats.text import Place
from ringtrue.store import EventType, FeedbackEvent, LoggedQuery, StageFigure, timestamp

Row = LoggedQuery | FeedbackEvent
_QUERY = {field.name: field for field in fields(LoggedQuery)}
_FEEDBACK = {field.name: field for field in fields(FeedbackEvent)}
_STAGE = tuple(field.name for field in fields(StageFigure))
_NEEDED = {
    "query": ("query_id", "query", "tool_name", "created_at"),
    "feedback": ("event_id", "event_type", "session_id", "created_at"),
}
_NUMBERS = {"total_latency_ms", "quality_proxy_score", "token_pressure_ratio", "boost_delta"}
_WHOLE = {"extraction_count", "rank_in_results"}
_YES_NO = {"degraded", "is_eval_corpus"}
_OBJECTS = {"channel_contributions", "stage_latency_ms", "fusion_weights", "flags", "metadata"}


def data_of(row: Row) -> dict[str, Any]:
    """Return a record as plain data, with ``record`` saying what it is."""
    known = _QUERY if isinstance(row, LoggedQuery) else _FEEDBACK
    data: dict[str, Any] = {"record": "query" if isinstance(row, LoggedQuery) else "feedback"}
    for name in known:
        value = getattr(row, name)
        if name == "stages":
            value = [{part: getattr(stage, part) for part in _STAGE} for stage in value]
        data[name] = value
    return data


def line_of(row: Row) -> str:
    """Return a record as one line of JSON, without its end."""
    return json.dumps(data_of(row), ensure_ascii=False, default=str)


def row_of(data: Mapping[str, Any], place: Place | None = None) -> Row:
    """Return the record that plain data holds; raises InputError naming place and field."""
    place = place or Place("record")
    kind = data.get("record", "query" if "query" in data else "feedback")
    if kind not in ("query", "feedback"):
        raise place.at("record").error(f"there is no record {kind!r:.40}", "write 'query' or 'feedback'")
    known, made = (_QUERY, LoggedQuery) if kind == "query" else (_FEEDBACK, FeedbackEvent)
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name in ("record", "result_count"):
            continue
        if name not in known:
            raise place.at(name).error(f"a {kind} has no such field", f"did you mean {nearest(name, known)}?")
        values[name] = _value(kind, name, value, place.at(name))
    for name in _NEEDED[kind]:
        if name not in values:
            raise place.at(name).error("it is missing", f"every {kind} needs one")
    return made(**values)


def _value(kind: str, name: str, value: Any, place: Place) -> Any:
    """Return one field as its record holds it."""

    def wrong(wanted: str) -> InputError:
        return place.error(f"it is {value!r:.60}", f"write {wanted}")

    if name == "stages":
        if not isinstance(value, list) or not all(isinstance(item, Mapping) and set(item) == set(_STAGE) for item in value):
            raise wrong("a list of {name, input, output, ms}")
        return tuple(
            StageFigure(str(item["name"]), int(item["input"]), int(item["output"]), float(item["ms"])) for item in value
        )
    if name == "result_ids":
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
            raise wrong("a list of texts")
        return tuple(value)
    if name == "scores":
        if not isinstance(value, list | tuple) or not all(map(_is_number, value)):
            raise wrong("a list of numbers")
        return tuple(map(float, value))
    if name in _OBJECTS:
        if not isinstance(value, Mapping):
            raise wrong("an object")
        if name == "channel_contributions":
            return {str(channel): tuple(map(str, ids)) for channel, ids in value.items()}
        json.dumps(value)  # raises for what no database holds
        return dict(value)
    if name in _YES_NO:
        if not isinstance(value, bool | int):
            raise wrong("true or false")
        return bool(value)
    if name == "event_type" and value not in get_args(EventType):
        raise wrong(f"one of {', '.join(get_args(EventType))}")
    if name == "actor" and value not in ("person", "agent", "unknown"):
        raise wrong("person, agent or unknown")
    if value is None and name not in _NEEDED[kind] and name not in ("project", "rank_in_results"):
        return None
    if name in _NUMBERS:
        if not _is_number(value):
            raise wrong("a number")
        return float(value)
    if name in _WHOLE:
        if not _is_number(value) or value != int(value):
            raise wrong("a whole number")
        return int(value)
    if not isinstance(value, str):
        raise wrong("a text")
    if name == "created_at":
        try:
            return timestamp(value)
        except InputError:
            raise wrong("a time like 2026-03-01T12:00:00Z") from None
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
