"""Runs: the list, one run with everything that it showed, its queries with the blame for what is missing, and two compared.

A comparison says whether one run is better and how certain that is, down to the documents of every query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import RedirectResponse, Response

from ringtrue import charts
from ringtrue.errors import RingtrueError
from ringtrue.report import (
    TONES,
    Headline,
    QueryChange,
    Report,
    Sides,
    beside,
    changes,
    depth_of_loss,
    how_tested,
    lost_between,
    lower_is_better,
    measure_rows,
    page_headline,
    page_sections,
    primary_of,
    query_lines,
    query_of,
)
from ringtrue.retrieve import run_title, shorten
from ringtrue.rollout.health import set_name
from ringtrue.run import Evaluation
from ringtrue.service.auth import Access, PageReader, PageWriter
from ringtrue.service.errors import Refused, clean, refused
from ringtrue.service.library import (
    SHOWN,
    UPDATE,
    RunFilters,
    answers_of,
    baseline_named,
    baselines,
    elsewhere,
    find_runs,
    keep_baseline,
    kept_among,
    named,
    report_told,
    run_opened,
)
from ringtrue.service.models import Cursor
from ringtrue.service.pages.shell import Choice, ChoiceField, Named, TextField, Words, fragment, page, wants_fragment
from ringtrue.service.routes import runs
from ringtrue.service.routes.verdicts import Decided, comparison_opened, decided
from ringtrue.store import StoredResult
from ringtrue.verdict import Comparison, with_measures

router = APIRouter(include_in_schema=False)
RunId = Annotated[str, Path(min_length=1, max_length=200)]
RUNS, QUERIES, WORST, DEEPEST = 50, 50, 10, 50
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
    access: PageReader,
    cursor: Cursor = None,
    sort: Choice = "-when",
    golden: Named = "",
    retriever: Annotated[str, Query(max_length=2_000)] = "",
    gate: Choice = "",
) -> Response:
    """List the runs of the project."""
    wanted = RunFilters(golden.strip() or None, retriever.strip() or None, gate.strip() or None)
    found = find_runs(access, wanted, sort=sort, cursor=cursor, limit=RUNS)
    newest = find_runs(access, RunFilters(), limit=RUNS).rows if wanted else found.rows
    names = sorted({name for row in newest if row.golden for name in (set_name(row.golden), row.golden)} | ({golden} - {""}))
    values: dict[str, Any] = {
        "rows": found.rows, "next": found.next, "limited": found.limited, "cursor": cursor, "sort": sort, "shown": SHOWN,
        "golden": golden, "retriever": retriever, "gate": gate, "filtered": bool(wanted),
        "goldens": [("", "all"), *zip(names, names, strict=True)],
        "kept": kept_among(access, found.rows), "called": run_title,
    }  # fmt: skip
    if wants_fragment(request):
        return fragment(request, "runs.html.jinja", "rows", **values)
    return page(request, "runs.html.jinja", **values)


@router.get("/runs/{run_id}")
def run_page(request: Request, access: PageReader, run_id: RunId, baseline: Named = "") -> Response:
    """Show one run; with ``baseline`` as the gate judges it."""
    return _run(request, access, run_id, baseline.strip())


def _run(
    request: Request,
    access: Access,
    run_id: str,
    baseline: str = "",
    *,
    problem: Refused | None = None,
    reason: str = "",
    name: str = "",
) -> Response:
    row, evaluation = run_opened(access, run_id)
    standards = baselines(access)
    values: dict[str, Any] = {
        "row": row, "baseline": baseline, "standards": standards, "problem": problem, "reason": reason,
        "kept_as": _kept_as(access, run_id), "others": _others(access, row), "run": None,
        "baseline_name": name or (standards[0].name if standards else "production"), "unjudged": None,
        "choices": [(one.name, f"{one.name} {one.version}") for one in standards], "short": shorten, "judged": None,
        "preview": "", "report_by": "",
    }  # fmt: skip
    if evaluation is None:
        return page(request, "run.html.jinja", **values, status=problem.status if problem else 200)
    told = _told(access, run_id, evaluation, baseline)
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
    return page(request, "run.html.jinja", **values, status=problem.status if problem else 200)


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


def _told(access: Access, run_id: str, evaluation: Evaluation, baseline: str) -> Told:
    judged, wanted, problem = decided(access, run_id), "", None
    by = f"{named(judged.by)[0]}@{judged.verdict.baseline}" if judged and judged.by and judged.verdict.baseline else ""
    try:
        wanted = f"{named(baseline)[0]}@{baseline_named(access, baseline).version}" if baseline else ""
    except RingtrueError as missing:  # the run is there all the same
        problem = clean(str(missing))
    if wanted and wanted != by:
        report = report_told(access, evaluation, baseline=wanted)
        return Told(report, preview=wanted.replace("@", " "), by=wanted)
    if judged is None:
        return Told(report_told(access, evaluation, baseline=None), problem=problem)
    report = report_told(access, evaluation, baseline=by or None)
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


def _kept_as(access: Access, run_id: str) -> list[str]:
    """Return the baselines whose last version this run was made."""
    kept = []
    for one in baselines(access)[:STANDARDS]:
        subject = f"{one.name}@{one.version}"
        entries = access.store.audit(project=access.project, subject=subject, what=UPDATE, limit=1)
        if entries and entries[0].detail.get("run_id") == run_id:
            kept.append(f"{one.name} {one.version}")
    return kept


def _others(access: Access, row: StoredResult) -> list[tuple[str, str]]:
    """Return the runs that this one can be compared with, those on the same golden set first."""
    rows = [one for one in find_runs(access, RunFilters(), limit=RUNS).rows if one.run_id != row.run_id]
    kept = kept_among(access, rows)
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
    access: PageWriter,
    run_id: RunId,
    name: Annotated[str, Form(max_length=120)] = "",
    reason: TextField = "",
    force: Annotated[str, Form(max_length=10)] = "",
    next: ChoiceField = "",
) -> Response:
    """Keep a run as the standard that later ones are judged by; where it is worse, only with a reason."""
    try:
        answers = answers_of(access, run_id)
        keep_baseline(access, answers, name=name.strip(), force=bool(force), reason=reason, run_id=run_id)
    except (RingtrueError, Refused) as problem:
        return _run(request, access, run_id, problem=refused(problem), reason=reason, name=name)
    return RedirectResponse("/" if next == "/" else f"/runs/{quote(run_id)}", 303)


@router.get("/runs/{run_id}/report")
def run_report(access: PageReader, run_id: RunId, baseline: Named = "", against: Named = "") -> Response:
    """Return the HTML report of a run, a document of its own under the policy that it states itself."""
    return runs.run_report(access, run_id, against=against or None, baseline=baseline or None)


@router.get("/runs/{run_id}/queries")
def run_queries(
    request: Request,
    access: PageReader,
    run_id: RunId,
    cursor: Cursor = None,
    sort: Choice = "worst",
    q: Annotated[str, Query(max_length=500)] = "",
    measure: Named = "",
) -> Response:
    """List the queries of a run."""
    row, _ = run_opened(access, run_id)
    evaluation = answers_of(access, run_id)
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
        return fragment(request, "run_queries.html.jinja", "rows", **values)
    return page(request, "run_queries.html.jinja", **values)


def part_of(items: Sequence[Any], keys: Sequence[str], cursor: str | None, limit: int) -> tuple[Sequence[Any], str | None, str]:
    """Return the part of a list behind a key, the key behind that part, and which part it is in words.

    Raises Refused (422) if the list has no such key.
    """
    if cursor is not None and cursor not in keys:
        raise Refused(422, "invalid_cursor", f"invalid cursor '{cursor:.80}'; start again from the first page")
    start = 0 if cursor is None else keys.index(cursor) + 1
    end = min(start + limit, len(items))
    words = f"{start + 1:,}–{end:,} of {len(items):,}" if items else ""
    return items[start:end], keys[end - 1] if end < len(items) else None, words


def neighbours(ids: Sequence[str], one: str) -> dict[str, Any]:
    """Return the place of an id in a list, from 1, its length, and the ids before and after; None for what there is not."""
    if one not in ids:
        return {"place": None, "count": len(ids), "before": None, "after": None}
    place = ids.index(one)
    after = ids[place + 1] if place + 1 < len(ids) else None
    return {"place": place + 1, "count": len(ids), "before": ids[place - 1] if place else None, "after": after}


@router.get("/runs/{run_id}/queries/{query_id:path}")
def run_query(request: Request, access: PageReader, run_id: RunId, query_id: str, measure: Named = "") -> Response:
    """Show one query of a run: what was found, how it was judged, and which stage lost what is missing."""
    row, _ = run_opened(access, run_id)
    evaluation = answers_of(access, run_id)
    chosen = primary_of(evaluation, measure)
    seen = query_of(evaluation, query_id)
    return page(
        request, "run_query.html.jinja", row=row, evaluation=evaluation, seen=seen, measure=chosen,
        hits=seen.retrieved[:DEEPEST], k=depth_of_loss(evaluation), short=shorten,
        others=elsewhere(access, row, query_id, chosen),
        **neighbours([line.query_id for line in query_lines(evaluation, chosen)], query_id),
        threshold=max(1, evaluation.setup.golden.relevance_threshold),
    )  # fmt: skip


ROWS, CHOICES = 25, 100
FILTERS = (("", "all"), ("worse", "got worse"), ("better", "got better"), ("lost", "lost a relevant document"))


@router.get("/compare")
def compare_page(
    request: Request,
    access: PageReader,
    a: Words = "",
    b: Words = "",
    measure: Named = "",
    only: Choice = "",
    q: Annotated[str, Query(max_length=500)] = "",
    cursor: Cursor = None,
) -> Response:
    """Show whether run b is better than run a; without two runs, what there is to choose from."""
    values: dict[str, Any] = {"a": a, "b": b, "measure": measure, "only": only, "q": q, "cursor": cursor, "found": None}
    values |= {"problem": None, "choices": [], "preset": (a, b)}
    status = 200
    if not wants_fragment(request):
        values["choices"] = _choices(access, (a, b))
        if not (a or b) and len(values["choices"]) > 1:  # the newest run after the one before it
            values["preset"] = (values["choices"][1][0], values["choices"][0][0])
    if a and b:
        try:
            if a == b:
                raise Refused(422, "invalid_input", "both sides are the same run; choose another one")
            values |= _compared(access, a, b, measure, only, q.strip(), cursor)
        except (RingtrueError, Refused) as problem:
            values["problem"] = refused(problem)
            status = values["problem"].status
    if wants_fragment(request) and values["found"]:
        return fragment(request, "compare.html.jinja", "rows", **values)
    return page(request, "compare.html.jinja", **values, status=status)


def _choices(access: Access, given: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the runs to choose from, the newest first."""
    rows = find_runs(access, RunFilters(), limit=CHOICES).rows
    kept = kept_among(access, rows)
    choices = [(row.run_id, run_words(row, kept)) for row in rows if row.run_id in kept]
    return [*choices, *((run_id, run_id) for run_id in given if run_id and run_id not in dict(choices))]


def _compared(access: Access, a: str, b: str, measure: str, only: str, text: str, cursor: str | None) -> dict[str, Any]:
    found = comparison_opened(access, a, b, measure=measure or None)
    before, after = (with_measures(answers_of(access, one), [found.primary])[0] for one in (a, b))
    every = changes(before, after, found)
    better = -1 if lower_is_better(found.primary) else 1
    wanted = [row for row in every if _wanted(row, only, text, better, before, after)]
    shown, next_, words = part_of(wanted, [row.query_id for row in wanted], cursor, ROWS)
    told = Report(replace(after, name=found.b), "", other=replace(before, name=found.a), comparison=found)
    primary = found.measures[found.primary]
    return {
        "found": found, "primary": primary, "before": before, "after": after, "headline": page_headline(told),
        "how": how_tested(found), "measure": found.primary,
        "measures": [row for row in measure_rows(Sides(told))["rows"] if row["word"]],
        "measure_choices": [(name, name) for name in found.measures],
        "scatter": _scatter(every, found, a, b, better),
        "bars": charts.per_query(
            [row.diff for row in reversed(every)], better=better,
            label=f"{found.primary} by query: {primary.wins} better, {primary.ties} equal, {primary.losses} worse",
        ),
        "rows": [replace(row, lost=lost_between(before, after, row.query_id)) for row in shown],
        "next": next_, "shown": words, "filters": FILTERS, "better": better,
    }  # fmt: skip


def _wanted(row: QueryChange, only: str, text: str, better: int, before: Evaluation, after: Evaluation) -> bool:
    if text and text.casefold() not in f"{row.query_id} {row.text}".casefold():
        return False
    if only == "lost":
        return bool(lost_between(before, after, row.query_id))
    return (only != "worse" or row.diff * better < 0) and (only != "better" or row.diff * better > 0)


def query_href(a: str, b: str, query_id: str, measure: str) -> str:
    """Return where a query of two runs is shown side by side."""
    return "/compare/query?" + urlencode({"a": a, "b": b, "q": query_id, "measure": measure}, errors="replace")


def _scatter(every: list[QueryChange], found: Comparison, a: str, b: str, better: int) -> Any:
    points = [
        charts.Point(
            row.a, row.b,
            title=f"{row.query_id} {row.text[:80]}: {charts.plain(round(row.a, 4))} → {charts.plain(round(row.b, 4))}",
            href=query_href(a, b, row.query_id, found.primary),
            kind="good" if row.diff * better > 0 else "bad" if row.diff * better < 0 else "even",
        )
        for row in every
        if row.a is not None and row.b is not None
    ]  # fmt: skip
    one = found.measures[found.primary]
    label = f"{found.primary} of every query, {found.a} against {found.b}: {one.wins} better, {one.losses} worse"
    return charts.scatter(points, a=_short(found.a), b=_short(found.b), label=label)


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:39]}…"


@router.get("/compare/query")
def compare_query(
    request: Request,
    access: PageReader,
    a: Words,
    b: Words,
    q: Annotated[str, Query(max_length=1_000)],
    measure: Named = "",
) -> Response:
    """Show the answers of two runs to one query side by side: what was lost, what is new, what moved."""
    found = comparison_opened(access, a, b, measure=measure or None)
    before, after = (with_measures(answers_of(access, one), [found.primary])[0] for one in (a, b))
    left, right = (query_of(one, q) for one in (before, after))
    around = neighbours([row.query_id for row in changes(before, after, found)], q)
    return page(
        request, "compare_query.html.jinja", a=a, b=b, found=found, left=left, right=right, measure=found.primary,
        beside=beside(before, after, q), place=around["place"], count=around["count"],
        steps={
            side: around[side] and query_href(a, b, around[side], found.primary)
            for side in ("before", "after")
        },
        back="/compare?" + urlencode({"a": a, "b": b, "measure": found.primary}),
        diff=found.measures[found.primary].deltas.get(q), better=-1 if lower_is_better(found.primary) else 1,
        threshold=max(1, after.setup.golden.relevance_threshold),
    )  # fmt: skip
