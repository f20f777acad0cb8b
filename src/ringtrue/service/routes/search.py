"""``/v1/search``: ask the documents that the server serves, through the retriever that evaluations ask."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from ringtrue.answers import Found, FoundDocument
from ringtrue.errors import SearchFailed
from ringtrue.log.capture import iso, quality_proxy, query_name, read_answer, stages_of
from ringtrue.log.redact import ERROR
from ringtrue.records import Hit
from ringtrue.service.auth import Reader
from ringtrue.service.context import Service
from ringtrue.service.errors import Refused, clean
from ringtrue.service.evaluating import admitted_by
from ringtrue.service.models import Line, Name, Strict, record_from
from ringtrue.service.routes.evaluate import SEARCH_ERRORS
from ringtrue.service.routes.log import sent_traffic
from ringtrue.service.routes.runs import stage_ranks
from ringtrue.service.searches import FoundHits, Passage
from ringtrue.store import LoggedQuery
from ringtrue.traffic import Traffic

router = APIRouter(prefix="/v1/search", tags=["search"], responses=SEARCH_ERRORS)
SNIPPET = 300
"""Letters of a document that an answer shows."""
TOOL = "rest"


class SearchRequest(
    Strict,
    examples=[
        {"query": "quiet room with a pool", "k": 5},
        {"query": "quiet room with a pool", "k": 3, "retriever": "bm25", "explain": True, "log": False},
    ],
):
    """A question to the documents that the server serves."""

    query: str = Field(min_length=1, max_length=10_000)
    k: int = Field(10, ge=1, le=200)
    retriever: Line | None = Field(None, description="A retriever expression; the server's own unless given.")
    scope: dict[Name, Line] | None = Field(None, max_length=10, description="Only documents with these metadata values.")
    explain: bool = Field(False, description="Also every stage's rank and score for every hit.")
    log: bool = Field(True, description="Whether the search is logged.")
    session_id: Name | None = None
    user_id: Name | None = None
    tool: Name = Field(TOOL, description="The tool or surface that searches.")


@router.post("")
async def search(access: Reader, request: SearchRequest, http: Request) -> Found:
    """Search the documents that the server serves.

    The search is in the log before it is answered, which needs a key with scope `write`; `log: false` leaves it out. The header
    `Ringtrue-Traffic` (evaluation, gate, shadow, test) marks a search that is not a user's.
    """
    traffic = sent_traffic(http)
    if request.log and not access.may("write"):
        said = "a search that is logged needs a key with scope 'write'; send log: false to search without"
        raise Refused(403, "forbidden", said, field="body.log")
    moment = query_name.tick()
    query_id = query_name.name(moment, request.query) if request.log else None

    async def note(found: FoundHits | SearchFailed) -> None:
        if query_id is not None:
            at = iso(moment.clock)
            row = logged(found, request, query_id=query_id, created_at=at, project=access.project, traffic=traffic)
            await access.service.intake.add([row], size=len(request.query), fresh=True)

    try:
        found = await run_in_threadpool(_asked, access.service, request)
    except SearchFailed as problem:
        await note(problem)
        raise
    if traffic == "user":
        access.service.telemetry.durations.search(access.project, found.ms / 1000)
    await note(found)
    passages = await run_in_threadpool(access.service.searches.passages, [hit.doc_id for hit in found.hits])
    return Found(
        query_id=query_id,
        retriever=found.subject.text,
        fingerprint=found.subject.fingerprint,
        latency_ms=found.ms,
        hits=tuple(
            _hit(rank, hit, passages.get(hit.doc_id), explain=request.explain) for rank, hit in enumerate(found.hits, 1)
        ),
    )


def _asked(service: Service, request: SearchRequest) -> FoundHits:
    text = None if request.retriever is None else admitted_by(service.settings, request.retriever)
    return service.searches.ask(request.query, k=request.k, retriever=text, scope=request.scope)


def logged(
    found: FoundHits | SearchFailed, request: SearchRequest, *, query_id: str, created_at: str, project: str, traffic: Traffic
) -> LoggedQuery:
    """Return a search as the log keeps it; one that failed has no results and says why."""
    asked = LoggedQuery(
        query_id,
        request.query,
        request.tool,
        created_at,
        session_id=request.session_id,
        user_id=request.user_id,
        traffic=traffic,
        project=project,
    )
    if isinstance(found, SearchFailed):
        return replace(asked, degraded=True, fallback=f"{ERROR}{type(found).__name__}: {clean(str(found))}"[:500])
    ids, scores, channels = read_answer(found.hits)
    stages, latency = stages_of(found.seen)
    return replace(
        asked,
        result_ids=ids,
        scores=scores,
        channel_contributions=channels,
        total_latency_ms=found.ms,
        stage_latency_ms=latency,
        stages=stages,
        quality_proxy_score=quality_proxy(scores, found.ms) if len(scores) == len(ids) else None,
        retriever=found.subject.fingerprint,
        fusion_weights=getattr(found.subject.retriever, "weights", {}),
    )


def _hit(rank: int, hit: Hit, passage: Passage | None, *, explain: bool) -> FoundDocument:
    text = None if passage is None else " ".join(passage.text[: 4 * SNIPPET].split())
    if text is not None and len(text) > SNIPPET:
        text = f"{text[: SNIPPET - 1]}…"
    title, stages = None if passage is None else passage.title or None, stage_ranks(hit) if explain else None
    return record_from(FoundDocument, hit, rank=rank, title=title, text=text, stages=stages)
