"""``/v1/runs``: evaluations that were made, down to every query, and runs that were made elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Path, Query, Response

from ringtrue.answers import Evaluated, Judged, Lost, QueryItem, QueryOfRun, RunFigures, RunHit, RunItem, StageRank
from ringtrue.errors import InputError, MissingInput, RingtrueError
from ringtrue.records import Hit
from ringtrue.report import as_json, html, known, markdown, primary_of, query_lines, report_on
from ringtrue.retrieve import canonical
from ringtrue.rollout.health import set_name
from ringtrue.service import evaluating
from ringtrue.service.auth import Reader, Writer
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.evaluating import keys_of, renamed
from ringtrue.service.library import answers_of, baseline_named, golden_named, kept_among, newest_runs, run_opened
from ringtrue.service.models import Cursor, Limit, Name, Page, paged_after, record_from
from ringtrue.service.routes.evaluate import Body
from ringtrue.service.routes.log import At
from ringtrue.service.routes.verdicts import decided
from ringtrue.store import StoredResult

router = APIRouter(prefix="/v1/runs", tags=["runs"], responses=ERRORS)
RunId = Annotated[str, Path(min_length=1, max_length=200, description="Like full-2026-01-05T08:00:00.000000Z-1f3a….")]
Figure = TypeVar("Figure")
MOST_LOOKED_AT = 2_000
"""Runs that are read before a filtered page ends although it is not full."""


def run_item(row: StoredResult, *, name: str | None) -> RunItem:
    """Return a run as a list shows it; ``name`` is None if its answers are not kept."""
    metrics = _figures(row.metrics)
    return record_from(RunItem, row, name=name, queries=row.query_count, metrics=metrics, kept=name is not None)


def _figures(values: Mapping[str, Figure]) -> dict[str, Figure]:
    """Return figures under the keys of REST; what is not a measure of ours keeps its name."""
    try:
        keys = keys_of(list(values))
    except RingtrueError:
        return dict(values)
    return {keys[name]: value for name, value in values.items()}


@router.get("")
def list_runs(
    access: Reader,
    limit: Limit = 50,
    cursor: Cursor = None,
    golden: Annotated[str | None, Query(max_length=200, description="Name of a golden set, or like hotel-v1.0.0.")] = None,
    retriever: Annotated[str | None, Query(max_length=2_000, description="A retriever expression.")] = None,
    since: Annotated[At | None, Query(description="ISO 8601.")] = None,
) -> Page[RunItem]:
    """List the project's runs, the newest first."""
    full = retriever
    if retriever is not None:
        with suppress(RingtrueError):  # no expression: the name of a retriever, as it is written
            full = str(canonical(retriever))

    def wanted(row: StoredResult) -> bool:
        named = golden is None or golden in (row.golden, set_name(row.golden))
        return named and (retriever is None or row.retriever in (retriever, full))

    shown, after = newest_runs(access, wanted, limit=limit, cursor=cursor, since=since, most=MOST_LOOKED_AT)
    kept = kept_among(access, shown)
    return Page(items=[run_item(row, name=kept.get(row.run_id)) for row in shown], next=after)


@router.post(
    "",
    status_code=201,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "minProperties": 1,
                        "additionalProperties": {"type": "object", "additionalProperties": {"type": "number"}},
                    },
                    "example": {"q001": {"entity-refund-procedure": 2.5, "entity-pool-page": 1.0}},
                },
                "text/plain": {
                    "schema": {"type": "string", "description": "TREC: query Q0 document rank score tag"},
                    "example": "q001 Q0 entity-refund-procedure 1 2.5 shop\nq001 Q0 entity-pool-page 2 1.0 shop\n",
                },
            },
        }
    },
)
def upload_run(
    access: Writer,
    body: Body,
    golden: Annotated[
        str,
        Query(
            min_length=1,
            max_length=200,
            description="A stored or shipped golden set: name or name@version.",
            examples=["hotel"],
        ),
    ],
    name: Annotated[str, Query(min_length=1, max_length=200, description="What the run is called.")] = "upload",
    measure: Annotated[list[str] | None, Query(max_length=50, description="Like nDCG@10; repeatable.")] = None,
    allow: Annotated[
        list[Literal["documents", "ids", "depth"]] | None, Query(description="Preconditions that need not hold.")
    ] = None,
) -> Evaluated:
    """Score answers that were made elsewhere: `{query: {document: score}}` as JSON, or a TREC run as text.

    Queries that the run does not answer are listed as failures and left out of the means. At most 10,000 documents of each
    query are read, and as JSON 200,000 of all.
    """
    kinds: dict[str, Literal["json", "trec"]] = {"application/json": "json", "text/plain": "trec"}
    if body.kind not in kinds:
        said = f"content-type '{body.kind:.80}' is not supported; send {' or '.join(kinds)}"
        raise Refused(415, "unsupported_type", said)
    if kinds[body.kind] == "json" and not isinstance(body.value(), dict):
        raise InputError("the run is not an object; write {query: {document: score}}")
    found = evaluating.scored_run(
        access.service,
        golden_named(access, golden),
        body.content,
        kind=kinds[body.kind],
        name=name,
        measures=measure or (),
        allow=allow or (),
    )
    return evaluating.answered(access, found)


@router.get("/{run_id}")
def get_run(access: Reader, run_id: RunId) -> RunFigures:
    """Return a run: its figures, and the whole evaluation where its answers are kept."""
    row, evaluation = run_opened(access, run_id)
    judged = decided(access, run_id)
    return RunFigures(
        run=run_item(row, name=None if evaluation is None else evaluation.name),
        intervals=_figures(row.intervals),
        latency_ms=row.latency_ms,
        control_run_id=row.control_run_id,
        deltas=_figures(row.deltas),
        p_value=row.p_value,
        is_significant=row.is_significant,
        evaluation=None if evaluation is None else evaluating.summary(evaluation, run_id=run_id),
        verdict=None if judged is None else judged.record,
    )


@router.get("/{run_id}/queries")
def run_queries(
    access: Reader,
    run_id: RunId,
    limit: Limit = 50,
    cursor: Cursor = None,
    sort: Annotated[Literal["id", "worst"], Query(description="worst: failed ones, then the lowest first measure.")] = "id",
) -> Page[QueryItem]:
    """List the queries of a run, by id or the worst first."""
    evaluation = answers_of(access, run_id)
    keys = keys_of(evaluation.scores.measures)

    def shown(line: Any) -> QueryItem:
        scores = {key: known(line.values.get(name)) for name, key in keys.items()}
        return record_from(
            QueryItem, line, scores=scores, lost=len(line.losses), hits=len(evaluation.ranking(line.query_id).hits)
        )

    return paged_after(query_lines(evaluation, primary_of(evaluation), sort=sort), cursor, limit, "query_id", shown)


@router.get("/{run_id}/queries/{query_id:path}")
def run_query(access: Reader, run_id: RunId, query_id: Annotated[str, Path(min_length=1, max_length=1_000)]) -> QueryOfRun:
    """Return one query of a run: every hit with its grade and its way, and every relevant document that was lost."""
    evaluation = answers_of(access, run_id)
    query = next((one for one in evaluation.queries if one.query_id == query_id), None)
    if query is None:
        raise MissingInput(f"run '{run_id:.120}' has no query '{query_id:.120}'; /v1/runs/{run_id:.120}/queries lists them")
    ranking, titles = evaluation.ranking(query_id), evaluation.titles
    grades = evaluation.qrels.to_dict().get(query_id, {})
    ranks = {hit.doc_id: rank for rank, hit in reversed(list(enumerate(ranking.hits, 1)))}
    return record_from(
        QueryOfRun,
        query,
        scores=renamed(evaluation.scores.per_query.get(query_id, {}), keys_of(evaluation.scores.measures)),
        latency_ms=ranking.latency_ms,
        error=ranking.error,
        hits=tuple(
            record_from(
                RunHit, hit, rank=rank, title=titles.get(hit.doc_id), grade=grades.get(hit.doc_id), stages=stage_ranks(hit)
            )
            for rank, hit in enumerate(ranking.hits, 1)
        ),
        judged=tuple(
            Judged(doc_id, titles.get(doc_id), grade, ranks.get(doc_id))
            for doc_id, grade in sorted(grades.items(), key=lambda pair: (-pair[1], pair[0]))
        ),
        losses=tuple(
            record_from(Lost, loss, title=titles.get(loss.doc_id)) for loss in evaluation.losses if loss.query_id == query_id
        ),
    )


def stage_ranks(hit: Hit) -> tuple[StageRank, ...]:
    """Return what every step of the retriever said about a hit."""
    return tuple(StageRank(one.name, one.rank, one.score) for one in hit.stages)


_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">')


@router.get(
    "/{run_id}/report",
    response_class=Response,
    responses={
        200: {
            "description": "The report",
            "content": {
                "text/html": {"schema": {"type": "string"}},
                "text/markdown": {"schema": {"type": "string"}},
                "application/json": {"schema": {"type": "object"}},
            },
        }
    },
)
def run_report(
    access: Reader,
    run_id: RunId,
    format: Annotated[Literal["html", "md", "json"], Query()] = "html",
    against: Annotated[Name | None, Query(description="Id of a run to compare with.")] = None,
    baseline: Annotated[Name | None, Query(description="A baseline to judge by: name or name@version.")] = None,
) -> Response:
    """Return everything there is to tell about a run, as one page, as Markdown or as JSON."""
    report = report_on(
        answers_of(access, run_id),
        made_at=access.now().isoformat(timespec="seconds"),
        other=None if against is None else answers_of(access, against),
        baseline=None if baseline is None else baseline_named(access, baseline),
    )
    if format == "md":
        return Response(markdown(report), media_type="text/markdown; charset=utf-8")
    if format == "json":
        return Response(as_json(report), media_type="application/json")
    page = html(report)
    return Response(page, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": report_policy(page)})


def report_policy(page: str) -> str:
    """Return the policy under which a report is shown: its own, and apart from everything of this server.

    In a sandbox the page is of no origin: should a document's text ever become script there, it has no session to use.
    """
    own = _POLICY.search(page)
    policy = own[1].replace("&#39;", "'") if own is not None else "default-src 'none'"
    return f"{policy}; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
