"""Runs: the list, one run with everything that it showed, its queries, and one query with the blame for what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from ringtrue.errors import RingtrueError
from ringtrue.report import (
    TONES,
    Headline,
    Report,
    Sides,
    html,
    page_headline,
    page_sections,
    primary_of,
    query_lines,
    query_seen,
    report_on,
)
from ringtrue.retrieve import run_title, shorten
from ringtrue.rollout.health import set_name
from ringtrue.run import Evaluation
from ringtrue.service.auth import Caller, PageReader, PageWriter
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import Refused, clean, refused
from ringtrue.service.models import Cursor
from ringtrue.service.pages.shell import fragment, page, wants_fragment
from ringtrue.service.routes.gate import Decided, decided
from ringtrue.service.routes.runs import report_policy
from ringtrue.service.work.finding_runs import SHOWN, RunFilters, elsewhere, find_runs, kept_among
from ringtrue.service.work.library import (
    UPDATE,
    answers_of,
    baseline_named,
    baselines,
    keep_baseline,
    named,
    report_opened,
    run_opened,
)
from ringtrue.store import StoredResult

router = APIRouter(include_in_schema=False)
RunId = Annotated[str, Path(min_length=1, max_length=200)]
Named = Annotated[str, Query(max_length=250)]
RUNS, QUERIES, WORST = 50, 50, 10
STANDARDS = 5
"""Baselines that are looked at to say whether a run is one."""
ORDERS = (
    ("worst", "worst first"),
    ("best", "best first"),
    ("lost", "most lost first"),
    ("slow", "slowest first"),
    ("id", "by id"),
)


@router.get("/runs")
def run_list(
    request: Request,
    service: Here,
    caller: PageReader,
    cursor: Cursor = None,
    sort: Annotated[str, Query(max_length=20)] = "-when",
    golden: Named = "",
    retriever: Annotated[str, Query(max_length=2_000)] = "",
    gate: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """List the runs of the project."""
    wanted = RunFilters(golden.strip() or None, retriever.strip() or None, gate.strip() or None)
    found = find_runs(service, caller, wanted, sort=sort, cursor=cursor, limit=RUNS)
    newest = find_runs(service, caller, RunFilters(), limit=RUNS).rows if wanted else found.rows
    names = sorted({name for row in newest if row.golden for name in (set_name(row.golden), row.golden)} | ({golden} - {""}))
    values: dict[str, Any] = {
        "rows": found.rows, "next": found.next, "limited": found.limited, "cursor": cursor, "sort": sort, "shown": SHOWN,
        "golden": golden, "retriever": retriever, "gate": gate, "filtered": bool(wanted),
        "goldens": [("", "all"), *zip(names, names, strict=True)],
        "kept": kept_among(service, caller, found.rows), "called": run_title,
    }  # fmt: skip
    if wants_fragment(request):
        return fragment(request, caller, "runs.html.jinja", "rows", **values)
    return page(request, caller, "runs.html.jinja", **values)


@router.get("/runs/{run_id}")
def run_page(request: Request, service: Here, caller: PageReader, run_id: RunId, baseline: Named = "") -> Response:
    """Show one run; with ``baseline`` as the gate judges it."""
    return _run(request, service, caller, run_id, baseline.strip())


def _run(
    request: Request,
    service: Service,
    caller: Caller,
    run_id: str,
    baseline: str = "",
    *,
    problem: Refused | None = None,
    reason: str = "",
    name: str = "",
) -> Response:
    row, evaluation = run_opened(service, caller, run_id)
    standards = baselines(service, caller)
    kept_as, alike = _kept_as(service, caller, run_id, evaluation)
    values: dict[str, Any] = {
        "row": row, "baseline": baseline, "standards": standards, "problem": problem, "reason": reason,
        "kept_as": kept_as, "alike": alike, "others": _others(service, caller, row), "run": None,
        "baseline_name": name or (standards[0].name if standards else "production"), "unjudged": None,
        "choices": [(one.name, f"{one.name} {one.version}") for one in standards], "short": shorten, "judged": None,
        "preview": "", "report_by": "",
    }  # fmt: skip
    if evaluation is None:
        return page(request, caller, "run.html.jinja", **values, status=problem.status if problem else 200)
    told = _told(service, caller, run_id, evaluation, baseline)
    report, sides = told.report, Sides(told.report)
    shown = page_sections(sides)
    values |= {"judged": told.judged, "unjudged": told.problem, "preview": told.preview, "report_by": told.by}
    # Without times of its own its answers were made before it; their times are not this run's.
    reused = evaluation.cached or (bool(evaluation.latencies) and not row.latency_ms)
    values["run"] = {
        "evaluation": evaluation,
        "reused": evaluation.setup.recorded_at if reused else "",
        "headline": page_headline(report) if report.verdict is not None else _headline(row, report),
        **shown,
        "notes": [clean(note) for note in shown["notes"]],
        "primary": sides.primary,
        "before": sides.before_name,
        "worst": query_lines(evaluation, sides.primary)[:WORST],
        "columns": sides.measures[:3],
    }
    return page(request, caller, "run.html.jinja", **values, status=problem.status if problem else 200)


@dataclass(frozen=True)
class Told:
    """A run as its page tells it: with the verdict that is kept, or with one that a reader only wants to see."""

    report: Report
    judged: Decided | None = None
    """What the gate said of it, where that is shown."""
    preview: str = ""
    """The baseline that it is held against without anything being kept."""
    by: str = ""
    """The baseline of the verdict that is shown, as name@version."""
    problem: str | None = None
    """Why the run is not judged as was asked."""


def _told(service: Service, caller: Caller, run_id: str, evaluation: Evaluation, baseline: str) -> Told:
    judged, wanted, problem = decided(service, caller, run_id), "", None
    by = f"{named(judged.by)[0]}@{judged.verdict.baseline}" if judged and judged.by and judged.verdict.baseline else ""
    try:
        wanted = f"{named(baseline)[0]}@{baseline_named(service, caller, baseline).version}" if baseline else ""
    except RingtrueError as missing:  # the run is there all the same
        problem = clean(str(missing))
    if wanted and wanted != by:
        report = report_opened(service, caller, run_id, evaluation, baseline=wanted)
        return Told(report, preview=wanted.replace("@", " "), by=wanted)
    if judged is None:
        return Told(report_opened(service, caller, run_id, evaluation, baseline=None), problem=problem)
    report = report_opened(service, caller, run_id, evaluation, baseline=by or None)
    # The rules may have changed since: what is told is what the gate said then.
    own = report.verdict.comparison if report.verdict is not None else None
    return Told(replace(report, verdict=replace(judged.verdict, comparison=own)), judged, by=by, problem=problem)


def _headline(row: StoredResult, report: Report) -> Headline:
    """Return the headline of a run whose checks are not kept, although it may have been judged elsewhere."""
    found = page_headline(report)
    if row.gate not in ("pass", "fail", "undecided"):
        return found
    by = f" by {row.control_run_id}" if row.control_run_id else ""
    why = f"The gate said so when the run was made{by}. Its checks are not kept here; a preview below shows them."
    return replace(found, word=row.gate.upper(), tone=TONES.get(row.gate, "unsure"), why=why)


def _kept_as(service: Service, caller: Caller, run_id: str, evaluation: Evaluation | None) -> tuple[list[str], list[str]]:
    """Return the baselines whose last version this run was made, and those which only have the same answers."""
    kept: list[str] = []
    alike: list[str] = []
    for one in baselines(service, caller)[:STANDARDS]:
        subject = f"{one.name}@{one.version}"
        entries = service.of(caller).audit(project=caller.project, subject=subject, what=UPDATE, limit=1)
        if entries and entries[0].detail.get("run_id") == run_id:
            kept.append(f"{one.name} {one.version}")
        elif evaluation is not None:
            standard, setup = baseline_named(service, caller, one.name), evaluation.setup
            made = (standard.recorded_at, standard.retriever, standard.golden.content_hash)
            if made == (setup.recorded_at, setup.retriever, setup.golden.content_hash):
                alike.append(f"{one.name} {one.version}")
    return kept, alike


def _others(service: Service, caller: Caller, row: StoredResult) -> list[tuple[str, str]]:
    """Return the runs that this one can be compared with, those on the same golden set first."""
    rows = [one for one in find_runs(service, caller, RunFilters(), limit=RUNS).rows if one.run_id != row.run_id]
    kept = kept_among(service, caller, rows)
    there = [one for one in rows if one.run_id in kept and set_name(one.golden) == set_name(row.golden)]
    return [(one.run_id, run_words(one, kept)) for one in sorted(there, key=lambda one: one.golden != row.golden)]


def run_words(row: StoredResult, names: Mapping[str, str]) -> str:
    """Return a run in one line, for a list to choose from; ``names`` has what runs are called, by run id."""
    name, search = run_title(names.get(row.run_id), row.retriever)
    # First what tells runs of one search apart: a narrow list cuts off the end.
    what = f"{row.created_at[:19].replace('T', ' ')}, {name[:40] if search else name[:80]} on {row.golden or 'unknown'}"
    return f"{what}: {search[:80]}" if search else what


@router.post("/runs/{run_id}/baseline")
def make_baseline(
    request: Request,
    service: Here,
    caller: PageWriter,
    run_id: RunId,
    name: Annotated[str, Form(max_length=120)] = "",
    reason: Annotated[str, Form(max_length=2_000)] = "",
    force: Annotated[str, Form(max_length=10)] = "",
    next: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """Keep a run as the standard that later ones are judged by; where it is worse, only with a reason."""
    try:
        answers = answers_of(service, caller, run_id)
        keep_baseline(service, caller, answers, name=name.strip(), force=bool(force), reason=reason, run_id=run_id)
    except (RingtrueError, Refused) as problem:
        return _run(request, service, caller, run_id, problem=refused(problem), reason=reason, name=name)
    return RedirectResponse("/" if next == "/" else f"/runs/{quote(run_id)}", 303)


@router.get("/runs/{run_id}/report")
def run_report(service: Here, caller: PageReader, run_id: RunId, baseline: Named = "", against: Named = "") -> Response:
    """Return the HTML report of a run, a document of its own under the policy that it states itself."""
    report = report_on(
        answers_of(service, caller, run_id),
        made_at=service.now().isoformat(timespec="seconds"),
        other=answers_of(service, caller, against) if against else None,
        baseline=baseline_named(service, caller, baseline) if baseline else None,
    )
    made = html(report)
    return Response(made, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": report_policy(made)})


@router.get("/runs/{run_id}/queries")
def run_queries(
    request: Request,
    service: Here,
    caller: PageReader,
    run_id: RunId,
    cursor: Cursor = None,
    sort: Annotated[str, Query(max_length=20)] = "worst",
    q: Annotated[str, Query(max_length=500)] = "",
    measure: Named = "",
) -> Response:
    """List the queries of a run."""
    row, _ = run_opened(service, caller, run_id)
    evaluation = answers_of(service, caller, run_id)
    names = [str(one) for one in evaluation.scores.measures]
    chosen = primary_of(evaluation, measure)
    lines = query_lines(evaluation, chosen, sort=sort if sort in dict(ORDERS) else "worst", text=q.strip())
    shown, after, words = part_of(lines, [line.query_id for line in lines], cursor, QUERIES)
    values: dict[str, Any] = {
        "row": row, "evaluation": evaluation, "lines": shown, "next": after, "cursor": cursor, "shown": words, "q": q,
        "sort": sort, "measure": chosen, "orders": ORDERS, "measure_choices": [(name, name) for name in names],
        "columns_shown": [chosen, *(name for name in names if name != chosen)][:3],
    }  # fmt: skip
    if wants_fragment(request):
        return fragment(request, caller, "run_queries.html.jinja", "rows", **values)
    return page(request, caller, "run_queries.html.jinja", **values)


def part_of(items: Sequence[Any], keys: Sequence[str], cursor: str | None, limit: int) -> tuple[Sequence[Any], str | None, str]:
    """Return the part of a list behind a key, the key behind that part, and which part it is in words.

    Raises Refused (422) where the list has no such key.
    """
    if cursor is not None and cursor not in keys:
        raise Refused(422, "invalid_cursor", f"the list has no '{cursor:.80}' to go on from; start again from the first page")
    start = 0 if cursor is None else keys.index(cursor) + 1
    end = min(start + limit, len(items))
    words = f"{start + 1:,}–{end:,} of {len(items):,}" if items else ""
    return items[start:end], keys[end - 1] if end < len(items) else None, words


@router.get("/runs/{run_id}/queries/{query_id:path}")
def run_query(
    request: Request, service: Here, caller: PageReader, run_id: RunId, query_id: str, measure: Named = ""
) -> Response:
    """Show one query of a run: what was found, how it was judged, and which stage lost what is missing."""
    row, _ = run_opened(service, caller, run_id)
    evaluation = answers_of(service, caller, run_id)
    chosen = primary_of(evaluation, measure)
    seen = query_seen(evaluation, query_id, chosen)
    return page(
        request, caller, "run_query.html.jinja", row=row, evaluation=evaluation, seen=seen, measure=chosen,
        short=shorten, others=elsewhere(service, caller, row, query_id, chosen),
        threshold=max(1, evaluation.setup.golden.relevance_threshold),
    )  # fmt: skip
