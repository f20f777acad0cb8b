"""Logs of other systems → logged queries and feedback: spans of OpenTelemetry, and OpenSearch User Behavior Insights.

**Spans** (OTLP/JSON, OpenInference, the GenAI conventions) come in three shapes of a line: a whole export (``resourceSpans``),
as collectors write it; one span of OTLP; one span as OpenTelemetry's console exporter and Phoenix write it, with attributes as
an object, flat or nested. A span is a search when its kind is RETRIEVER (OpenInference) or its operation ``retrieval`` (GenAI);
any other is counted and passed over.

**UBI** comes as lines of ``ubi_queries`` and ``ubi_events``: documents of the index, bare or as dumping tools write them, with
the document under ``_source`` and its id under ``_id``. Queries keep their id, so that events find them. Which actions count as
feedback is a table; the others are counted and passed over.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from ringtrue.answers import EventType, shown
from ringtrue.errors import InputError
from ringtrue.formats import Place
from ringtrue.log.capture import imported_id, iso, quality_proxy
from ringtrue.log.rows import LARGEST, is_number
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery, timestamp

_DOCUMENT = re.compile(r"(?:gen_ai\.)?retrieval\.documents\.(\d+)\.(?:document\.)?(id|score)")
"""A document's id or score, as OpenInference and the GenAI conventions name it."""
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds since 1970."""
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")


def micros_of(value: Any) -> int:
    """Return a time in microseconds since 1970, from ISO 8601 or from seconds, milli-, micro- or nanoseconds since then.

    Raises InputError, ValueError, TypeError or OverflowError for anything else.

    >>> micros_of("2026-01-04T12:00:00Z") == micros_of(1_767_528_000) == micros_of("1767528000000000000")
    True
    """
    text = str(value)
    if isinstance(value, str) and not (text.isdigit() and len(text) > 8):  # 20260301 is a day
        with contextlib.suppress(InputError):
            return round(datetime.fromisoformat(timestamp(text)).timestamp() * 1_000_000)
    number = int(text) if text.isdigit() else float(text)
    if number < 1e14:
        number *= 1000 if number >= 1e11 else 1_000_000
    micros = number // 1000 if number >= 1e17 else round(number)
    if not FIRST <= micros <= LAST:
        raise ValueError(text)
    return int(micros)


def time_of(record: Mapping[str, Any], names: Sequence[str], place: Place) -> int:
    """Return the time that the first of these fields holds, as ``micros_of`` does; raises InputError naming place and field."""
    name = next((name for name in names if record.get(name) is not None), names[-1])
    try:
        return micros_of(record.get(name))
    except (InputError, ValueError, TypeError, OverflowError):
        cure = "write a time like 2026-03-01T12:00:00Z, or a number of nanoseconds, milliseconds or seconds since 1970"
        raise place.at(name).error(f"it is {shown(record.get(name))}", cure) from None


def is_spans(record: Mapping[str, Any]) -> bool:
    """True for a line that holds spans."""
    return "resourceSpans" in record or ("attributes" in record and ("traceId" in record or "context" in record))


def queries_in_spans(
    rows: Iterable[tuple[Place, Mapping[str, Any]]], *, project: str = DEFAULT_PROJECT, skipped: dict[str, int] | None = None
) -> Iterator[LoggedQuery]:
    """Yield a logged query for every search among the spans; ``skipped`` counts the others by kind.

    The id is made from trace and span, so that the same spans always give the same queries. Raises InputError with line and
    field.
    """
    for place, record in rows:
        for where, span, service in _spans(place, record):
            attributes = _attributes(span.get("attributes"), where.at("attributes"))
            names = ("openinference.span.kind", "gen_ai.operation.name")
            told = attributes.get(names[0]) or span.get("span_kind") or attributes.get(names[1]) or "span of no kind"
            kind = str(told).lower()
            if kind in ("retriever", "retrieval"):
                yield _span_query(where, span, attributes, service, project)
            elif skipped is not None:
                skipped[kind] = skipped.get(kind, 0) + 1


def _spans(place: Place, record: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any], str | None]]:
    if "resourceSpans" not in record:
        yield place, record, None
        return
    for a, resource in enumerate(_list(record, "resourceSpans", place)):
        about = place.at("resourceSpans").at(a)
        named = _attributes(resource.get("resource", {}).get("attributes"), about.at("resource").at("attributes"))
        for b, scope in enumerate(_list(resource, "scopeSpans", about)):
            inside = about.at("scopeSpans").at(b)
            for c, span in enumerate(_list(scope, "spans", inside)):
                yield inside.at("spans").at(c), span, _text(named.get("service.name"))


def _list(record: Mapping[str, Any], name: str, place: Place) -> list[Mapping[str, Any]]:
    value = record.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise place.at(name).error(f"it is {value!r:.60}", "write a list of objects, as OTLP/JSON has it")
    return value


def _attributes(given: Any, place: Place) -> dict[str, Any]:
    """Return attributes by their dotted names, from OTLP's list of keys or from an object, flat or nested."""
    if given is None:
        return {}
    if isinstance(given, list):
        found = {}
        for number, item in enumerate(given):
            if not isinstance(item, Mapping) or not isinstance(item.get("key"), str):
                raise place.at(number).error(f"it is {item!r:.60}", 'write {"key": …, "value": {"stringValue": …}}')
            found[item["key"]] = _otlp(item.get("value", {}))
        given = found
    if not isinstance(given, Mapping):
        raise place.error(f"it is {given!r:.60}", "write an object or OTLP's list of keys and values")
    flat: dict[str, Any] = {}

    def flatten(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                flatten(f"{name}.{key}" if name else str(key), item)
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for number, item in enumerate(value):
                flatten(f"{name}.{number}", item)
        else:
            flat[name] = value

    flatten("", given)
    return flat


def _otlp(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    for name in _VALUES:
        if name in value:
            return int(value[name]) if name == "intValue" else value[name]  # JSON has 64-bit numbers as texts
    if "arrayValue" in value:
        return [_otlp(item) for item in value["arrayValue"].get("values", [])]
    if "kvlistValue" in value:
        return {item["key"]: _otlp(item.get("value")) for item in value["kvlistValue"].get("values", [])}
    return None


def _span_query(
    place: Place, span: Mapping[str, Any], attributes: Mapping[str, Any], service: str | None, project: str
) -> LoggedQuery:
    context = span.get("context")
    ids = context if isinstance(context, Mapping) else span
    trace, name = (_text(ids.get(snake, ids.get(camel))) for snake, camel in (("trace_id", "traceId"), ("span_id", "spanId")))
    if not trace or not name:
        raise place.at("spanId" if trace else "traceId").error("it is missing", "export spans with their trace and span ids")
    start, end = (time_of(span, (f"{side}TimeUnixNano", f"{side}_time"), place) for side in ("start", "end"))
    if end < start:
        told = place.at("end_time" if span.get("endTimeUnixNano") is None else "endTimeUnixNano")
        raise told.error("the span ends before it starts", "fix the times, or leave the span out")
    text = _text(attributes.get("gen_ai.retrieval.query.text", attributes.get("input.value")))
    if text is None:
        raise place.at("attributes").at("input.value").error("the retriever span has no query", "record the query's text there")
    found = _documents(attributes, place.at("attributes"))
    scores = tuple(score for _, score in found)
    whole = not any(map(math.isnan, scores))
    ms = (end - start) / 1000
    flat = {"code": span.get("status_code"), "message": span.get("status_message")}
    status = span["status"] if isinstance(span.get("status"), Mapping) else flat
    code = _text(status.get("code", status.get("status_code"))) or ""
    failed = code.upper() in ("2", "ERROR", "STATUS_CODE_ERROR", "STATUSCODE.ERROR")
    said = _text(status.get("message", status.get("description")))
    return LoggedQuery(
        query_id=imported_id("eq_", start, project, trace, name),
        query=text,
        tool_name=service or _text(span.get("name")) or "span",
        created_at=iso(start),
        project=project,
        session_id=_text(attributes.get("session.id", attributes.get("gen_ai.conversation.id"))),
        user_id=_text(attributes.get("user.id", attributes.get("enduser.id"))),
        result_ids=tuple(doc_id for doc_id, _ in found),
        scores=scores if whole else (),
        total_latency_ms=ms,
        quality_proxy_score=quality_proxy(scores, ms) if whole and not failed else None,
        trace_id=trace.removeprefix("0x"),
        retriever=_text(span.get("name")),
        degraded=failed,
        fallback=f"error: {said or 'the span says so'}" if failed else None,
    )


def _documents(attributes: Mapping[str, Any], place: Place) -> list[tuple[str, float]]:
    """Return ids and scores in the order of the answer."""
    listed = attributes.get("gen_ai.retrieval.documents")
    if isinstance(listed, str):
        try:
            attributes = _attributes({"retrieval": {"documents": json.loads(listed)}}, place)
        except ValueError:
            raise place.at("gen_ai.retrieval.documents").error("it is not JSON", "write a list of {id, score}") from None
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        if match := _DOCUMENT.fullmatch(name):
            found.setdefault(int(match[1]), {})[match[2]] = value
    documents = []
    for number in sorted(found):
        told = found[number]
        where = place.at(f"retrieval.documents.{number}.document")
        doc_id = _text(told.get("id"))
        if doc_id is None:
            raise where.at("id").error("it is missing", "record document ids; without them no answer can be judged")
        score = told.get("score")
        if score is not None and not is_number(score):
            raise where.at("score").error(f"it is {shown(score)}", "write a number")
        documents.append((doc_id, math.nan if score is None else float(score)))
    return documents


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


ACTIONS: Mapping[str, EventType] = {
    "click": "click", "item_click": "click", "product_click": "click", "result_click": "click", "view": "click",
    "item_view": "click", "click_through": "click", "watch": "dwell", "dwell": "dwell", "add_to_cart": "selection",
    "purchase": "selection", "buy": "selection", "select": "selection", "download": "selection", "bookmark": "selection",
    "thumbs_up": "validate_useful", "like": "validate_useful", "thumbs_down": "validate_not_useful",
    "dislike": "validate_not_useful",
}  # fmt: skip
"""What the usual actions mean here."""


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
    """Yield a logged query or a feedback event for every line; ``skipped`` counts actions that are not feedback.

    The same lines always give the same ids. Raises InputError with line and field.
    """
    for place, record in rows:
        inner = _object(record, "_source", place) or record
        if "action_name" not in inner:
            yield _ubi_query(place, inner, project)
            continue
        action = _needed(inner, "action_name", place)
        if action in actions:
            yield _ubi_event(place, inner, actions[action], action, project, _text(record.get("_id")))
        elif skipped is not None:
            skipped[action] = skipped.get(action, 0) + 1


def _ubi_query(place: Place, record: Mapping[str, Any], project: str) -> LoggedQuery:
    hits = record.get("query_response_hit_ids") or []
    if not isinstance(hits, list) or not all(isinstance(item, str | int) for item in hits):
        raise place.at("query_response_hit_ids").error(f"it is {hits!r:.60}", "write a list of ids")
    attributes = _object(record, "query_attributes", place)
    return LoggedQuery(
        query_id=_needed(record, "query_id", place),
        query=_needed(record, "user_query", place, blank=True),
        tool_name=_text(record.get("application")) or "ubi",
        created_at=iso(time_of(record, ("timestamp",), place)),
        project=project,
        session_id=_session(record, attributes),
        user_id=_text(record.get("client_id")),
        result_ids=tuple(map(str, hits)),
    )


def _ubi_event(
    place: Place, record: Mapping[str, Any], kind: EventType, action: str, project: str, known_id: str | None
) -> FeedbackEvent:
    attributes = _object(record, "event_attributes", place)
    inside = place.at("event_attributes")
    thing, position = (_object(attributes, name, inside) for name in ("object", "position"))
    ordinal = position.get("ordinal")
    if ordinal is not None and (isinstance(ordinal, bool) or not isinstance(ordinal, int) or not 1 <= ordinal <= LARGEST):
        raise inside.at("position").at("ordinal").error(f"it is {shown(ordinal)}", "write a rank, from 1")
    session = _session(record, attributes)
    if session is None:
        raise place.at("client_id").error("the event has neither a session nor a client", "record client_id")
    micros = time_of(record, ("timestamp",), place)
    said = known_id or json.dumps(record, sort_keys=True, ensure_ascii=True, default=str)
    return FeedbackEvent(
        event_id=imported_id("ef_", micros, project, said),
        event_type=kind,
        session_id=session,
        created_at=iso(micros),
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
    for name in ("dwell_time", "dwell_seconds"):
        seconds: Any = attributes.get(name)
        if is_number(seconds) and seconds >= 0:
            return {"seconds" if kind == "dwell" else "dwell_time": seconds}
        if kind == "dwell" and seconds is not None:
            raise place.at(name).error(f"it is {shown(seconds)}", "write seconds from 0")
    return {}


def _object(record: Mapping[str, Any], name: str, place: Place) -> Mapping[str, Any]:
    """Return a field that holds an object, an empty one if it is missing."""
    value = record.get(name) or {}
    if not isinstance(value, Mapping):
        raise place.at(name).error(f"it is {value!r:.60}", "write an object")
    return value


def _session(record: Mapping[str, Any], attributes: Mapping[str, Any]) -> str | None:
    return _text(record.get("session_id", attributes.get("session_id"))) or _text(record.get("client_id"))


def _needed(record: Mapping[str, Any], name: str, place: Place, *, blank: bool = False) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not (value or blank):
        raise place.at(name).error("it is missing" if value is None else f"it is {value!r:.40}", "write a text")
    return value
