"""Compare: two runs, whether one is better and how certain that is, down to the documents of every query."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from ringtrue import charts
from ringtrue.errors import RingtrueError
from ringtrue.report import (
    QueryChange,
    Report,
    Sides,
    beside,
    changes,
    how_tested,
    lost_between,
    lower_is_better,
    measure_rows,
    page_headline,
    query_seen,
    same,
)
from ringtrue.retrieve import shorten
from ringtrue.run import Evaluation
from ringtrue.service.auth import Caller, PageReader
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import Refused, refused
from ringtrue.service.hints import APART, for_pages
from ringtrue.service.models import Cursor
from ringtrue.service.pages.runs import part_of, run_words
from ringtrue.service.pages.shell import fragment, page, wants_fragment
from ringtrue.service.routes.compare import compared, comparison_opened
from ringtrue.service.work.finding_runs import RunFilters, find_runs, kept_among
from ringtrue.service.work.library import answers_of
from ringtrue.verdict import Comparison, with_measures

router = APIRouter(include_in_schema=False)
RunText = Annotated[str, Query(max_length=200)]
Named = Annotated[str, Query(max_length=250)]
Apart = Annotated[str, Query(max_length=10)]
"""Given if runs that were scored on different sets are compared all the same."""
ROWS, CHOICES, SUGGESTED = 25, 100, 4
FILTERS = (("", "all"), ("worse", "got worse"), ("better", "got better"), ("lost", "lost a relevant document"))


@router.get("/compare")
def compare_page(
    request: Request,
    service: Here,
    caller: PageReader,
    a: RunText = "",
    b: RunText = "",
    measure: Named = "",
    only: Annotated[str, Query(max_length=20)] = "",
    q: Annotated[str, Query(max_length=500)] = "",
    cursor: Cursor = None,
    apart: Apart = "",
) -> Response:
    """Show whether run b is better than run a; without two runs, what there is to choose from."""
    values: dict[str, Any] = {"a": a, "b": b, "measure": measure, "only": only, "q": q, "cursor": cursor, "found": None}
    values |= {"problem": None, "choices": [], "pairs": [], "preset": (a, b), "apart": apart, "apart_word": ""}
    status = 200
    if not wants_fragment(request):
        values["choices"], values["pairs"] = _choices(service, caller, (a, b))
        values["preset"] = _preset(values["choices"], values["pairs"], a, b)
    if a and b:
        try:
            if a == b:
                raise Refused(422, "invalid_input", "both sides are the same run; choose another one")
            values |= _compared(service, caller, a, b, measure, only, q.strip(), cursor, bool(apart))
        except (RingtrueError, Refused) as problem:
            values["problem"] = refused(problem)
            status = values["problem"].status
    # The box is there where it is needed, and where it was ticked.
    if apart or (values["problem"] is not None and APART in for_pages(values["problem"].message)):
        values["apart_word"] = APART
    if wants_fragment(request) and values["found"]:
        return fragment(request, caller, "compare.html.jinja", "rows", **values)
    return page(request, caller, "compare.html.jinja", **values, status=status)


def _choices(
    service: Service, caller: Caller, given: tuple[str, ...]
) -> tuple[list[tuple[str, str]], list[tuple[str, str, str]]]:
    """Return the runs to choose from, and pairs that suggest themselves: a run and the one before it on the same set."""
    rows = find_runs(service, caller, RunFilters(), limit=CHOICES).rows
    kept = kept_among(service, caller, rows)
    there = [row for row in rows if row.run_id in kept]
    choices = [(row.run_id, run_words(row, kept)) for row in there]
    choices += [(run_id, run_id) for run_id in given if run_id and run_id not in dict(choices)]
    pairs: dict[tuple[str | None, str | None], tuple[str, str, str]] = {}
    for place, row in enumerate(there):
        other = next((one for one in there[place + 1 :] if one.golden == row.golden and one.retriever != row.retriever), None)
        if other is not None:
            words = f"{shorten(other.retriever)} → {shorten(row.retriever)} on {row.golden}"
            pairs.setdefault((row.retriever, other.retriever), (other.run_id, row.run_id, words))
    return choices, list(pairs.values())[:SUGGESTED]


def _preset(choices: list[tuple[str, str]], pairs: list[tuple[str, str, str]], a: str, b: str) -> tuple[str, str]:
    """Return what the two lists show at first: the newest pair that suggests itself, never one run on both sides."""
    if a or b or len(choices) < 2:
        return a, b
    return pairs[0][:2] if pairs else (choices[1][0], choices[0][0])


def _opened(service: Service, caller: Caller, a: str, b: str, measure: str, apart: bool) -> Comparison:
    if not apart:
        return comparison_opened(service, caller, a, b, measure=measure or None)
    return compared(service, caller, a, b, primary=measure or None, allow_different_sets=True)


def _compared(
    service: Service, caller: Caller, a: str, b: str, measure: str, only: str, text: str, cursor: str | None, apart: bool
) -> dict[str, Any]:
    found = _opened(service, caller, a, b, measure, apart)
    before, after = (with_measures(answers_of(service, caller, one), [found.primary])[0] for one in (a, b))
    every = changes(before, after, found)
    better = -1 if lower_is_better(found.primary) else 1
    wanted = [row for row in every if _wanted(row, only, text, better, before, after)]
    shown, next_, words = part_of(wanted, [row.query_id for row in wanted], cursor, ROWS)
    told = Report(replace(after, name=found.b), "", other=replace(before, name=found.a), comparison=found)
    primary = found.measures[found.primary]
    return {
        "found": found, "primary": primary, "before": before, "after": after, "headline": page_headline(told),
        "same": same(found), "how": how_tested(found), "measure": found.primary,
        "measures": [row for row in measure_rows(Sides(told))["rows"] if row["word"]],
        "measure_choices": [(name, name) for name in found.measures],
        "scatter": _scatter(every, found, a, b, better, apart),
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


def query_href(a: str, b: str, query_id: str, measure: str, *, apart: bool = False) -> str:
    """Return where a query of two runs is shown side by side."""
    asked = {"a": a, "b": b, "q": query_id, "measure": measure, **({"apart": "on"} if apart else {})}
    return "/compare/query?" + urlencode(asked, errors="replace")


def _scatter(every: list[QueryChange], found: Comparison, a: str, b: str, better: int, apart: bool) -> Any:
    points = [
        charts.Point(
            row.a, row.b,
            title=f"{row.query_id} {row.text[:80]}: {charts.plain(round(row.a, 4))} → {charts.plain(round(row.b, 4))}",
            href=query_href(a, b, row.query_id, found.primary, apart=apart),
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
    service: Here,
    caller: PageReader,
    a: RunText,
    b: RunText,
    q: Annotated[str, Query(max_length=1_000)],
    measure: Named = "",
    apart: Apart = "",
) -> Response:
    """Show the answers of two runs to one query side by side: what was lost, what is new, what moved."""
    found = _opened(service, caller, a, b, measure, bool(apart))
    before, after = (with_measures(answers_of(service, caller, one), [found.primary])[0] for one in (a, b))
    left, right = (query_seen(one, q, found.primary) for one in (before, after))
    order = [row.query_id for row in changes(before, after, found)]
    place = order.index(q) if q in order else None
    steps = {
        "k": order[place - 1] if place else None,
        "j": order[place + 1] if place is not None and place + 1 < len(order) else None,
    }
    return page(
        request, caller, "compare_query.html.jinja", a=a, b=b, found=found, left=left, right=right, measure=found.primary,
        beside=beside(before, after, q), place=place, count=len(order),
        steps={
            key: query_href(a, b, one, found.primary, apart=bool(apart)) for key, one in steps.items() if one is not None
        },
        back="/compare?" + urlencode({"a": a, "b": b, "measure": found.primary, **({"apart": "on"} if apart else {})}),
        diff=found.measures[found.primary].deltas.get(q), better=-1 if lower_is_better(found.primary) else 1,
        threshold=max(1, after.setup.golden.relevance_threshold),
    )  # fmt: skip
