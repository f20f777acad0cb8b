"""Searches as programs send them, and the rows that they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import Request
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from ringtrue.answers import StageLogged
from ringtrue.errors import InputError
from ringtrue.log import quality_proxy, query_name
from ringtrue.log.capture import iso
from ringtrue.log.redact import ERROR
from ringtrue.service.errors import Refused
from ringtrue.service.models import Free, Line, Moment, Name, Strict, Text, numbered, one_or_many, wrong_cursor
from ringtrue.store import LoggedQuery, timestamp
from ringtrue.traffic import HEADER, Traffic, kind_of

MOST = 1_000
"""Searches of one request."""
MOST_RESULTS = 1_000
CLOCK_SKEW = timedelta(minutes=5)
"""How far the sender's clock may be ahead of this one."""
UNREACHABLE = frozenset([".", "..", "stats"])
"""What leads elsewhere behind ``/v1/queries/``; a search of any other name has its address there."""


def _readable(moment: str) -> str:
    try:
        return timestamp(moment)
    except InputError as problem:
        raise ValueError(str(problem)) from None


def _within_reach(query_id: str) -> str:
    if query_id in UNREACHABLE or "\n" in query_id:  # which no address takes
        raise ValueError("must not be a reserved path segment or contain line breaks")
    return query_id


def _happened(moment: str) -> str:
    if moment > timestamp(datetime.now(UTC) + CLOCK_SKEW):
        raise ValueError("is in the future; check the sender's clock")
    return moment


def _ids_as_text(ids: Any) -> Any:
    return list(map(numbered, ids)) if isinstance(ids, list) else ids


def _as_many_as_listed(count: int, others: ValidationInfo) -> int:
    if count != len(others.data.get("result_ids", ())):
        raise ValueError("differs from the number of result_ids; leave it out")
    return count


At = Annotated[Moment, AfterValidator(_readable), Field(json_schema_extra={"format": "date-time"})]
Past = Annotated[At, AfterValidator(_happened)]
"""When something happened."""
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e300, le=1e300)]
Milliseconds = Annotated[float, Field(allow_inf_nan=False, ge=0, le=1e12)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Ids = Annotated[
    list[Name],
    # One call for the whole list: a search has many ids, and they are nearly always texts.
    BeforeValidator(_ids_as_text, json_schema_input_type=list[Name | int]),
    Field(max_length=MOST_RESULTS),
]


class SentStage(Strict):
    """What one stage of a search took in and gave out."""

    name: Name
    input: Count
    output: Count
    ms: Milliseconds


class SentSearch(Strict):
    """One search as it happened. Only `query` and `tool_name` must be there; what is not known is left out."""

    query: Text
    tool_name: Name
    query_id: Annotated[Name, AfterValidator(_within_reach)] | None = Field(
        None, description="Given where it is missing. Sent twice, the first one stays."
    )
    created_at: Past | None = Field(None, description="Time of the search; default: now. Not in the future.")
    intent: Line | None = None
    mode: Name | None = None
    session_id: Name | None = None
    user_id: Name | None = None
    result_ids: Ids = Field(default_factory=list)
    result_count: Annotated[Count, AfterValidator(_as_many_as_listed)] | None = Field(
        None, description="As in a listed search, so that it can be sent again; the number of `result_ids`."
    )
    scores: Annotated[list[Number], Field(max_length=MOST_RESULTS)] = Field(default_factory=list)
    channel_contributions: Annotated[dict[Name, Ids], Field(max_length=50)] = Field(
        default_factory=dict, description="Channel → ids it had."
    )
    total_latency_ms: Milliseconds | None = None
    stage_latency_ms: Annotated[dict[Name, Milliseconds], Field(max_length=50)] = Field(default_factory=dict)
    stages: Annotated[list[SentStage], Field(max_length=50)] = Field(default_factory=list)
    fusion_weights: Annotated[dict[Name, Number], Field(max_length=50)] = Field(default_factory=dict)
    quality_proxy_score: Number | None = Field(None, description="A health figure, not quality; made of scores and latency.")
    trace_id: Name | None = None
    prompt_id: Name | None = None
    retriever: Line | None = Field(None, description="Which retriever answered: its whole expression, or a fingerprint.")
    fallback: Line | None = Field(None, description="Why a fallback was triggered.")
    degraded: bool = False
    mode_override: Name | None = None
    token_pressure_level: Name | None = None
    token_pressure_ratio: Number | None = None
    boost_delta: Number | None = None
    extraction_count: Count | None = None
    flags: Annotated[Free, Field(max_length=200)] = Field(
        default_factory=dict, description="Flags in force and their variants."
    )
    is_eval_corpus: bool = False
    eval_category: Name | None = None
    traffic: Traffic = Field("user", description="Whose search it is. Only users' searches count in figures and feedback.")


EXAMPLES: dict[str, Any] = {
    "one": {
        "query": "late checkout",
        "tool_name": "hotel-app",
        "session_id": "s-17",
        "result_ids": ["faq-12", "policy-3"],
        "scores": [0.91, 0.4],
        "total_latency_ms": 23.5,
    },
    "several": [
        {"query": "pool opening hours", "tool_name": "hotel-app", "query_id": "eq_a1", "created_at": "2026-01-31T12:00:00Z"},
        {"query": "parking", "tool_name": "hotel-app", "degraded": True, "fallback": "dense did not answer"},
    ],
}
Searches = one_or_many(SentSearch, most=MOST)
"""The body of a request that logs searches."""


def logged_rows(
    searches: Sequence[SentSearch], project: str, *, name: Callable[[int], str | None] | None = None, traffic: Traffic = "user"
) -> list[LoggedQuery]:
    """Return searches as the log keeps them; one without id, time or quality proxy gets them here.

    ``name`` gives an id to a search at a place that comes without one, the same whenever the body is sent. ``traffic`` is the
    mark of the request; it holds for every search that has no mark of its own.
    """
    rows = []
    for place, search in enumerate(searches):
        values = dict(search.__dict__)
        del values["result_count"]
        moment = query_name.tick()
        named = name(place) if name is not None else None
        values["query_id"] = values["query_id"] or named or query_name.name(moment, search.query)
        values["created_at"] = values["created_at"] or iso(moment.clock)
        values["traffic"] = traffic if search.traffic == "user" else search.traffic
        values["stages"] = tuple(StageLogged(one.name, one.input, one.output, one.ms) for one in search.stages)
        values["result_ids"], values["scores"] = ids, scores = tuple(search.result_ids), tuple(search.scores)
        raised = (search.fallback or "").startswith(ERROR)
        if values["quality_proxy_score"] is None and len(scores) == len(ids) and not raised:  # as in the SDK
            values["quality_proxy_score"] = quality_proxy(scores, search.total_latency_ms)
        rows.append(LoggedQuery(project=project, **values))
    return rows


def sent_traffic(request: Request) -> Traffic:
    """Return the mark of a request; raises Refused for an unknown one."""
    try:
        return kind_of(request.headers.get(HEADER) or "user")
    except InputError as problem:
        raise Refused(422, "invalid_input", f"header {HEADER}: {problem}", field="header") from None


def is_moment(text: str) -> bool:
    """True for a time as the store writes it."""
    try:
        return timestamp(text) == text
    except InputError:
        return False


def log_place(cursor: str) -> tuple[str, str]:
    """Return time and id of the last row of a page of the log; raises Refused for an invalid cursor."""
    at, mark, name = cursor.partition("~")
    if not mark or not name or not is_moment(at):
        raise wrong_cursor()
    return at, name
