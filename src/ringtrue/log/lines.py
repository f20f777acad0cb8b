"""One record ⇄ one line of JSON: how the spool, the export and our own import write queries and feedback."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from ringtrue.answers import EventType, StageLogged
from ringtrue.errors import InputError, nearest
from ringtrue.formats.text import Place
from ringtrue.ids import id_text
from ringtrue.store import FeedbackEvent, LoggedQuery, timestamp
from ringtrue.traffic import KINDS

Row = LoggedQuery | FeedbackEvent
_QUERY = {field.name: field for field in fields(LoggedQuery)}
_FEEDBACK = {field.name: field for field in fields(FeedbackEvent)}
_STAGE = tuple(field.name for field in fields(StageLogged))
_NEEDED = {
    "query": ("query_id", "query", "tool_name", "created_at"),
    "feedback": ("event_id", "event_type", "session_id", "created_at"),
}
_NUMBERS = ("total_latency_ms", "quality_proxy_score", "token_pressure_ratio", "boost_delta")
_WHOLE = ("extraction_count", "rank_in_results")
LARGEST = 2**31 - 1
"""The largest whole number that a column holds on either database."""
LONGEST_MS = 1e12
"""No search takes thirty years; what says so measured something else."""
_FLOAT = sys.float_info.max
_RANGES: Mapping[str, tuple[float, float, str]] = {
    "rank_in_results": (1, LARGEST, "a rank from 1 on, or -1 where it came from no search"),
    "extraction_count": (0, LARGEST, f"a whole number from 0 to {LARGEST:,}"),
    "total_latency_ms": (0, LONGEST_MS, "milliseconds from 0 on"),
    **dict.fromkeys(_NUMBERS[1:], (-_FLOAT, _FLOAT, "a number")),
}
_YES_NO = {"degraded", "is_eval_corpus"}
_OBJECTS = {"channel_contributions", "stage_latency_ms", "fusion_weights", "flags", "metadata"}
_IDS = ("query_id", "item_id", "event_id")
_FIGURES = ("stage_latency_ms", "fusion_weights")
_PLACE = Place("record")


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
    return json.dumps(data_of(row), ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return value.tolist()
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)


def row_of(data: Mapping[str, Any], place: Place | None = None) -> Row:
    """Return the record that plain data holds; raises InputError naming place and field."""
    place = place or _PLACE
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


def storable(row: Row) -> Row:
    """Return a record as both databases can hold it: a number that is none becomes unknown.

    Raises InputError for a number that they cannot hold, or that cannot be: a negative latency, a rank of 0. It looks at
    numbers only, since it is asked about every event; whatever else is wrong the database says.
    """
    if isinstance(row, FeedbackEvent):
        _check("rank_in_results", row.rank_in_results)
        return row
    changes: dict[str, Any] = {}
    for name in (*_NUMBERS, "extraction_count"):
        number = getattr(row, name)
        if number is None:
            continue
        if _is_known(number):
            _check(name, number)
        else:
            changes[name] = None
    if not all(map(_is_known, row.scores)):
        changes["scores"] = ()  # scores are kept where every result has one
    for name in _FIGURES:
        figures = getattr(row, name)
        if figures and not all(map(_is_known, figures.values())):
            changes[name] = {part: number for part, number in figures.items() if _is_known(number)}
    for stage in row.stages:
        if not all(_is_known(number) and number >= 0 for number in (stage.input, stage.output, stage.ms)):
            raise _PLACE.at("stages").error(f"one is {stage!r:.60}", "write counts and milliseconds from 0")
    return replace(row, **changes) if changes else row


def _check(name: str, number: Any) -> None:
    if not _in_range(name, number):
        raise _PLACE.at(name).error(f"it is {shown(number)}", f"write {_RANGES[name][2]}")


def _in_range(name: str, number: Any) -> bool:
    low, high, _ = _RANGES[name]
    return bool(low <= number <= high) or (name == "rank_in_results" and number == -1)


def _is_known(number: Any) -> bool:
    """False for what is no finite number of JSON: nan and infinite. Raises TypeError for no number at all."""
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond any float
        raise InputError("a number has hundreds of digits; write one of usual size") from None


def shown(value: Any) -> str:
    """Return a value as a complaint quotes it; Python does not print numbers of thousands of digits."""
    try:
        return f"{value!r:.60}"
    except ValueError:
        return "a number of thousands of digits"


def _value(kind: str, name: str, value: Any, place: Place) -> Any:
    """Return one field as its record holds it."""

    def wrong(wanted: str) -> InputError:
        return place.error(f"it is {shown(value)}", f"write {wanted}")

    if name == "stages":
        if not isinstance(value, list) or not all(map(_is_stage, value)):
            raise wrong("a list of {name, input, output, ms}, counts and milliseconds from 0")
        return tuple(
            StageLogged(str(item["name"]), int(item["input"]), int(item["output"]), float(item["ms"])) for item in value
        )
    if name == "result_ids":
        if not _is_ids(value):
            raise wrong("a list of ids, texts or whole numbers")
        return tuple(map(str, value))
    if name == "scores":
        if not isinstance(value, list | tuple) or not all(map(is_number, value)):
            raise wrong("a list of numbers")
        return tuple(map(float, value))
    if name in _OBJECTS:
        if not isinstance(value, Mapping):
            raise wrong("an object")
        if name == "channel_contributions":
            if not all(map(_is_ids, value.values())):
                raise wrong("an object with a list of ids for each channel")
            return {str(channel): tuple(map(str, ids)) for channel, ids in value.items()}
        if name in _FIGURES:
            if not all(map(is_number, value.values())):
                raise wrong("an object with a number for each name")
            return {str(part): float(number) for part, number in value.items()}
        try:
            json.dumps(value)
        except (ValueError, TypeError, RecursionError):
            raise wrong("plain values: texts, numbers of usual size, lists and objects") from None
        return dict(value)
    if name in _YES_NO:
        if not isinstance(value, bool | int):
            raise wrong("true or false")
        return bool(value)
    if name == "event_type" and value not in get_args(EventType):
        raise wrong(f"one of {', '.join(get_args(EventType))}")
    if name == "actor" and value not in ("person", "agent", "unknown"):
        raise wrong("person, agent or unknown")
    if name == "traffic" and value not in KINDS:
        raise wrong(f"one of {', '.join(KINDS)}")
    if value is None and name not in _NEEDED[kind] and name not in ("project", "rank_in_results"):
        return None
    if name in _NUMBERS or name in _WHOLE:
        whole = name in _WHOLE
        if not is_number(value) or (whole and value != int(value)):
            raise wrong("a whole number" if whole else "a number")
        if not _in_range(name, value):
            raise wrong(_RANGES[name][2])
        return int(value) if whole else float(value)
    value = id_text(value) if name in _IDS else value
    if not isinstance(value, str):
        raise wrong("a text")
    if name == "created_at":
        try:
            return timestamp(value)
        except (InputError, OverflowError, ValueError):  # the last day of the calendar in another zone is none in UTC
            raise wrong("a time like 2026-03-01T12:00:00Z") from None
    return value


def is_number(value: object) -> bool:
    """True for a finite number."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False


def _is_ids(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(id_text(item), str) for item in value)


def _is_stage(item: object) -> bool:
    if not isinstance(item, Mapping) or set(item) != set(_STAGE):
        return False
    return all(is_number(item[part]) and item[part] >= 0 for part in _STAGE if part != "name")
