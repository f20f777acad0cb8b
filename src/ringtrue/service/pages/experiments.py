"""Experiments and sweeps: what was tried, what came of it, and whether it was kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from ringtrue import charts
from ringtrue.errors import InputError, MissingInput
from ringtrue.experiment import Experiment
from ringtrue.experiment import swept as sweeping
from ringtrue.experiment.swept import Swept, figure, lower_is_better
from ringtrue.service.auth import PageReader
from ringtrue.service.models import Cursor, paged_after
from ringtrue.service.pages.shell import Words, fragment, page, wants_fragment
from ringtrue.service.routes.library import one_experiment, table_of

router = APIRouter(include_in_schema=False)
SHOWN = 50
TRIALS = 200
"""Trials of a sweep that its table shows, the best first."""
FEW = 10.0
"""Numbers whose largest is so many times the smallest are drawn by ratio."""
Unit = Experiment | Swept
DECISIONS = {"accepted": "ACCEPTED", "rejected": "REJECTED", "undecided": "UNDECIDED"}
NOTES = ("hypothesis", "notes", "note")
"""Fields that people write beside the ones every experiment has."""
ORDERS = ("when", "figure", "name")


@router.get("/experiments")
def overview(
    request: Request,
    access: PageReader,
    text: Words = "",
    verdict: Words = "",
    measure: Words = "",
    sort: Words = "-when",
    cursor: Cursor = None,
) -> Response:
    """List what was tried, the newest first; a sweep is one line."""
    if sort.removeprefix("-") not in ORDERS:
        raise InputError(f"experiments cannot be sorted by '{sort:.40}'; use {', '.join(ORDERS)}")
    if verdict and verdict not in DECISIONS:
        raise InputError(f"'{verdict:.40}' is not a verdict; use {', '.join(DECISIONS)}")
    units, limited = sweeping.all_experiments(access.store, access.project)
    measures = sweeping.measures_of(trial for unit in units for trial in _members(unit))
    chosen = _measure(measure, measures) if measures else ""
    fitting = [unit for unit in units if _fits(unit, text.strip().casefold(), DECISIONS.get(verdict))]
    part = paged_after(_sorted(fitting, chosen, sort), cursor, SHOWN, "id")
    rows, following = part.items, part.next
    values: dict[str, Any] = {
        "rows": [_row(unit, chosen) for unit in rows], "next": following, "cursor": cursor, "sort": sort, "measure": chosen,
        "lower": lower_is_better(chosen), "found": len(fitting), "filtered": bool(text.strip() or verdict),
        "limited": limited, "looked_at": sweeping.LOOKED_AT,
    }  # fmt: skip
    if wants_fragment(request):
        return fragment(request, "experiments.html.jinja", "rows", **values, part=True)
    return page(
        request, "experiments.html.jinja", **values, part=False, text=text, verdict=verdict,
        measures=[(name, name) for name in measures], total=len(units),
    )  # fmt: skip


@router.get("/experiments/export.json")
def export(access: PageReader) -> Response:
    """Return all experiments as the file ``experiments.json`` has them."""
    rows = [one.as_dict() for one in table_of(access).all()]
    content = json.dumps({"experiments": rows}, ensure_ascii=False, indent=2) + "\n"
    named = {"Content-Disposition": 'attachment; filename="experiments.json"'}
    return Response(content.encode("utf-8", "replace"), media_type="application/json", headers=named)


@router.get("/experiments/sweeps/{first_id}")
def sweep(request: Request, access: PageReader, first_id: str, measure: Words = "") -> Response:
    """Show a sweep: every trial as a line across its parameters, and a table of the trials, the best first."""
    swept = sweeping.sweep_with(access.store, access.project, first_id)
    if swept is None or swept.id != first_id:
        raise MissingInput(f"no sweep begins with experiment '{first_id}'; look it up in the list of experiments")
    chosen = _measure(measure, swept.measures)
    ranked = swept.ranked(chosen)
    rows = [*ranked, *(trial for trial in swept.trials if figure(trial, chosen) is None)]
    base, best = swept.baseline(), next(iter(ranked), None)
    before, reached = (None if one is None else figure(one, chosen) for one in (base, best))
    return page(
        request, "sweep.html.jinja", swept=swept, measure=chosen, best=best, base=base, best_value=reached, base_value=before,
        measures=[(name, name) for name in swept.measures], strands=_strands(swept, ranked, chosen),
        gain=None if reached is None or before is None else reached - before,
        rows=rows[:TRIALS], more=len(rows) - len(rows[:TRIALS]), shown=sweeping.shown, figure=figure,
    )  # fmt: skip


@router.get("/experiments/{experiment_id}")
def one(request: Request, access: PageReader, experiment_id: str) -> Response:
    """Show one experiment: what was changed, its figures, and why it was kept or not; a trial beside its sweep's baseline."""
    found = one_experiment(access, experiment_id)
    facts = found.extra.get("sweep")
    swept = sweeping.sweep_with(access.store, access.project, found.id) if isinstance(facts, dict) else None
    base = swept.baseline() if swept else None
    figures = [
        (name, figure(found, name), figure(base, name) if base else None, lower_is_better(name), sweeping.is_time(name))
        for name in found.metrics
    ]
    return page(
        request, "experiment.html.jinja", one=found, swept=swept, base=base, figures=figures,
        notes=[(name, found.extra[name]) for name in NOTES if isinstance(found.extra.get(name), str)],
        others={name: value for name, value in found.extra.items() if name not in (*NOTES, "sweep")},
        retriever=facts.get("retriever") if isinstance(facts, dict) else None, shown=sweeping.shown,
    )  # fmt: skip


def _members(unit: Unit) -> Sequence[Experiment]:
    return unit.trials if isinstance(unit, Swept) else (unit,)


def _best(unit: Unit, measure: str) -> Experiment:
    """Return the experiment that stands for a line: of a sweep the best trial."""
    return next(iter(unit.ranked(measure)), unit.trials[0]) if isinstance(unit, Swept) else unit


def _fits(unit: Unit, text: str, decision: str | None) -> bool:
    members = _members(unit)
    if decision is not None and not any(one.decision == decision for one in members):
        return False
    return not text or any(
        text in f"{one.id} {one.description} {one.verdict} {json.dumps(one.config_changes, ensure_ascii=False)}".casefold()
        for one in members
    )


def _row(unit: Unit, measure: str) -> dict[str, Any]:
    best, swept = _best(unit, measure), isinstance(unit, Swept)
    return {
        "id": unit.id, "swept": unit if swept else None, "best": best, "value": figure(best, measure),
        "date": _members(unit)[-1].date, "href": f"/experiments/{'sweeps/' if swept else ''}{quote(unit.id, safe='')}",
    }  # fmt: skip


def _sorted(units: list[Unit], measure: str, sort: str) -> list[Unit]:
    """Return units in an order; those without the figure come last either way."""
    down, by = sort.startswith("-"), sort.removeprefix("-")
    if by == "figure":
        known = [(value, unit) for unit in units if (value := figure(_best(unit, measure), measure)) is not None]
        known.sort(key=lambda pair: pair[0], reverse=down)
        return [unit for _, unit in known] + [unit for unit in units if figure(_best(unit, measure), measure) is None]
    if by == "name":
        return sorted(units, key=lambda unit: _best(unit, measure).description.casefold(), reverse=down)
    return units if down else units[::-1]


def _measure(wanted: str, there: Sequence[str]) -> str:
    if wanted and wanted not in there:
        raise InputError(f"no experiment here has '{wanted:.60}'; choose {', '.join(there[:20])}")
    return wanted or next(iter(there), "")


def _strands(swept: Swept, ranked: Sequence[Experiment], measure: str) -> Markup:
    names = swept.parameters
    columns = [[_drawn(trial.config_changes.get(name)) for trial in ranked] for name in names]
    dimensions = {name: _by_ratio(column) for name, column in zip(names, columns, strict=True)} | {measure: False}
    up = -1 if lower_is_better(measure) else 1
    lines = []
    for place, trial in enumerate(ranked):
        settings = ", ".join(f"{name} = {sweeping.shown(value)}" for name, value in trial.config_changes.items())
        value, href = trial.metrics[measure], f"/experiments/{quote(trial.id, safe='')}"
        title = f"{trial.id}: {measure} {value:.4f} at {settings}"
        lines.append(charts.Strand([*(column[place] for column in columns), value], up * value, title, href))
    label = f"{len(lines)} trials across {', '.join(names)} and {measure}"
    if ranked:
        label += f"; the best is {ranked[0].id} with {ranked[0].metrics[measure]:.4f}"
    return charts.parallel(dimensions, lines, label=label, best=0 if lines else None)


def _drawn(value: Any) -> float | str | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return sweeping.shown(value)


def _by_ratio(values: Sequence[float | str | None]) -> bool:
    numbers = [value for value in values if value is not None]
    plain = [value for value in numbers if not isinstance(value, str)]
    return bool(plain) and len(plain) == len(numbers) and min(plain) > 0 and max(plain) / min(plain) >= FEW
