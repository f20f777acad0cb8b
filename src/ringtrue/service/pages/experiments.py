"""Experiments and sweeps: what was tried, what came of it, and whether it was kept."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, File, Query, Request, UploadFile
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup
from pydantic import ValidationError

from ringtrue import charts
from ringtrue.errors import InputError, MissingInput, RingtrueError
from ringtrue.experiment import Effect, Experiment
from ringtrue.experiment import swept as sweeping
from ringtrue.experiment.swept import Swept, figure, lower_is_better
from ringtrue.formats import Place, parse_json
from ringtrue.service.auth import PageReader, PageWriter
from ringtrue.service.errors import Refused, refused
from ringtrue.service.models import Cursor, paged_after
from ringtrue.service.pages.shell import Words, fragment, page, wants_fragment
from ringtrue.service.routes.library import NewExperiments, import_experiments, one_experiment, table_of

router = APIRouter(include_in_schema=False)
SHOWN = 50
TRIALS = 200
"""Trials of a sweep that its table shows, the best first."""
FEW = 10.0
"""Numbers whose largest is so many times the smallest are drawn by ratio."""
Unit = Experiment | Swept
DECISIONS = {"accepted": "ACCEPTED", "rejected": "REJECTED", "undecided": "UNDECIDED"}
KINDS = (("", "everything"), ("single", "single experiments"), ("sweep", "sweeps"))
NOTES = ("hypothesis", "notes", "note")
"""Fields that people write beside the ones every experiment has."""
ORDERS = ("when", "figure", "name")


@router.get("/experiments")
def overview(
    request: Request,
    access: PageReader,
    text: Words = "",
    verdict: Words = "",
    kind: Words = "",
    measure: Words = "",
    sort: Words = "-when",
    cursor: Cursor = None,
    added: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """List what was tried, the newest first; a sweep is one line."""
    return _overview(
        request, access, text=text, verdict=verdict, kind=kind, measure=measure, sort=sort, cursor=cursor, added=added
    )


@router.get("/experiments/export.json")
def export(access: PageReader) -> Response:
    """Return all experiments as the file ``experiments.json`` has them."""
    rows = [one.as_dict() for one in table_of(access).all()]
    content = json.dumps({"experiments": rows}, ensure_ascii=False, indent=2) + "\n"
    named = {"Content-Disposition": 'attachment; filename="experiments.json"'}
    return Response(content.encode("utf-8", "replace"), media_type="application/json", headers=named)


@router.post("/experiments/import")
def bring_in(request: Request, access: PageWriter, file: Annotated[UploadFile, File()]) -> Response:
    """Bring in the experiments of an ``experiments.json``, all of them or none."""
    try:
        added = import_experiments(access, _rows(file.file.read(), (file.filename or "the file")[:80]))
    except (RingtrueError, Refused) as problem:
        return _overview(request, access, problem=refused(problem).message, status=422)
    return RedirectResponse(f"/experiments?added={len(added)}", 303)


@router.get("/experiments/sweeps/{first_id}")
def sweep(request: Request, access: PageReader, first_id: str, measure: Words = "", sort: Words = "-figure") -> Response:
    """Show a sweep: every trial as a strand, what each parameter did, and quality against time where both are known."""
    swept = sweeping.sweep_with(access.store, access.project, first_id)
    if swept is None or swept.id != first_id:
        raise MissingInput(f"no sweep begins with experiment '{first_id}'; look it up in the list of experiments")
    chosen = _measure(measure, swept.measures)
    ranked = swept.ranked(chosen)
    unknown = [trial for trial in swept.trials if figure(trial, chosen) is None]
    base, best = swept.baseline(), ranked[0] if ranked else None
    time = next(iter(sweeping.measures_of(swept.trials, times=True)), None)
    rows = _sorted_trials(swept, ranked, unknown, sort)
    return page(
        request, "sweep.html.jinja", swept=swept, measure=chosen, best=best, base=base, sort=sort,
        measures=[(name, name) for name in swept.measures], best_value=_figure(best, chosen), base_value=_figure(base, chosen),
        gain=_gain(best, base, chosen), lower=lower_is_better(chosen),
        strands=_strands(swept, ranked, chosen), effects=_effects(swept, chosen),
        front=_front(swept.trials, chosen, time) if time else None, time=time,
        rows=rows[:TRIALS], more=len(rows) - len(rows[:TRIALS]), shown=sweeping.shown, figure=figure,
    )  # fmt: skip


@router.get("/experiments/{experiment_id}")
def one(request: Request, access: PageReader, experiment_id: str) -> Response:
    """Show one experiment: what was changed, its figures against the baseline's, and why it was kept or not."""
    found = one_experiment(access, experiment_id)
    store, project = access.store, access.project
    swept = sweeping.sweep_with(store, project, found.id) if isinstance(found.extra.get("sweep"), dict) else None
    against, own = sweeping.held_against(store, project, found, swept)
    figures = [
        (
            name,
            figure(found, name),
            None if own is None else own.intervals.get(name),
            None if against is None else _finite(against.metrics.get(name)),
            lower_is_better(name),
            sweeping.is_time(name),
        )
        for name in found.metrics
    ]
    return page(
        request, "experiment.html.jinja", one=found, swept=swept, against=against, own=own, figures=figures,
        notes=[(name, found.extra[name]) for name in NOTES if isinstance(found.extra.get(name), str)],
        others={name: value for name, value in found.extra.items() if name not in (*NOTES, "sweep")},
        retriever=(found.extra["sweep"].get("retriever") if swept else None), shown=sweeping.shown,
    )  # fmt: skip


def _overview(
    request: Request,
    access: PageReader,
    *,
    text: str = "",
    verdict: str = "",
    kind: str = "",
    measure: str = "",
    sort: str = "-when",
    cursor: str | None = None,
    added: int = 0,
    problem: str = "",
    status: int = 200,
) -> Response:
    if sort.removeprefix("-") not in ORDERS:
        raise InputError(f"experiments cannot be sorted by '{sort:.40}'; use {', '.join(ORDERS)}")
    if verdict and verdict not in DECISIONS:
        raise InputError(f"there is no verdict '{verdict:.40}'; use {', '.join(DECISIONS)}")
    units, limited = sweeping.all_experiments(access.store, access.project)
    measures = sweeping.measures_of(trial for unit in units for trial in _members(unit))
    chosen = _measure(measure, measures) if measures else ""
    fitting = [unit for unit in units if _fits(unit, text.strip().casefold(), DECISIONS.get(verdict), kind)]
    rows, following = paged_after(_sorted(fitting, chosen, sort), cursor, SHOWN, "id")
    values: dict[str, Any] = {
        "rows": [_row(unit, chosen) for unit in rows], "next": following, "cursor": cursor, "sort": sort, "measure": chosen,
        "lower": lower_is_better(chosen), "found": len(fitting), "filtered": bool(text.strip() or verdict or kind),
        "limited": limited, "looked_at": sweeping.LOOKED_AT,
    }  # fmt: skip
    if wants_fragment(request) and not problem:
        return fragment(request, "experiments.html.jinja", "rows", **values, part=True)
    return page(
        request, "experiments.html.jinja", status=status, **values, part=False, text=text, verdict=verdict, kind=kind,
        kinds=KINDS, measures=[(name, name) for name in measures], total=len(units), added=added, problem=problem,
    )  # fmt: skip


def _rows(content: bytes, file: str) -> list[dict[str, Any]]:
    """Return the rows of an uploaded file under the rules of REST; raises InputError naming row, field and cure."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{file}: is not text in UTF-8; write it anew in UTF-8") from None
    try:
        rows = NewExperiments.model_validate(parse_json(text, Place(file))).experiments
    except ValidationError as problem:
        raise InputError(f"{file}: {_unfit(problem.errors()[0])}") from None
    return [row.model_dump(exclude_unset=True) for row in rows]


def _unfit(problem: Mapping[str, Any]) -> str:
    """Return what is wrong with a file of experiments, and what helps."""
    place, said = list(problem["loc"]), str(problem["msg"])
    if place == ["experiments"] and problem["type"] == "too_short":
        return "its list of experiments is empty; there is nothing to bring in"
    if place[:1] != ["experiments"] or len(place) < 2:
        cure = "upload the file that `ringtrue experiment` keeps, or what Export gives"
        return f'holds no list of experiments, like {{"experiments": […]}}; {cure}'
    field = ".".join(str(part) for part in place[2:])
    where = f"experiment {int(place[1]) + 1}" + (f", '{field}'" if field else "")
    return f"{where}: {said[:1].lower()}{said[1:]}; mend it there and upload the file again"


def _members(unit: Unit) -> Sequence[Experiment]:
    return unit.trials if isinstance(unit, Swept) else (unit,)


def _best(unit: Unit, measure: str) -> Experiment:
    """Return the experiment that stands for a line: of a sweep the best trial."""
    return next(iter(unit.ranked(measure)), unit.trials[0]) if isinstance(unit, Swept) else unit


def _fits(unit: Unit, text: str, decision: str | None, kind: str) -> bool:
    if kind and (kind == "sweep") != isinstance(unit, Swept):
        return False
    members = _members(unit)
    if decision is not None and not any(one.decision == decision for one in members):
        return False
    return not text or any(
        text in f"{one.id} {one.description} {one.verdict} {json.dumps(one.config_changes, ensure_ascii=False)}".casefold()
        for one in members
    )


def _row(unit: Unit, measure: str) -> dict[str, Any]:
    best, swept = _best(unit, measure), isinstance(unit, Swept)
    last = unit.last if isinstance(unit, Swept) else unit
    return {
        "id": unit.id, "swept": unit if swept else None, "best": best, "value": figure(best, measure), "date": last.date,
        "href": f"/experiments/{'sweeps/' if swept else ''}{quote(unit.id, safe='')}",
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


def _sorted_trials(swept: Swept, ranked: list[Experiment], unknown: list[Experiment], sort: str) -> list[Experiment]:
    by, down = sort.removeprefix("-"), sort.startswith("-")
    if by == "figure":
        return [*(ranked if down else ranked[::-1]), *unknown]
    if by == "trial":
        return list(reversed(swept.trials) if down else swept.trials)
    raise InputError(f"trials cannot be sorted by '{sort:.40}'; use figure or trial")


def _strands(swept: Swept, ranked: Sequence[Experiment], measure: str) -> Markup:
    names = swept.parameters
    columns = [[_drawn(trial.config_changes.get(name)) for trial in ranked] for name in names]
    dimensions = {name: _by_ratio(column) for name, column in zip(names, columns, strict=True)} | {measure: False}
    up = -1 if lower_is_better(measure) else 1
    lines = [
        charts.Strand(
            [*(column[place] for column in columns), figure(trial, measure)],
            up * (figure(trial, measure) or 0.0),
            f"{trial.id}: {measure} {figure(trial, measure):.4f} at {_settings(trial)}",
            f"/experiments/{quote(trial.id, safe='')}",
        )
        for place, trial in enumerate(ranked)
    ]
    label = f"{len(lines)} trials across {', '.join(names)} and {measure}"
    if ranked:
        label += f"; the best is {ranked[0].id} with {figure(ranked[0], measure):.4f}"
    return charts.parallel(dimensions, lines, label=label, best=0 if lines else None)


def _settings(trial: Experiment) -> str:
    return ", ".join(f"{name} = {sweeping.shown(value)}" for name, value in trial.config_changes.items())


def _drawn(value: Any) -> float | str | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    return sweeping.shown(value)


def _by_ratio(values: Sequence[float | str | None]) -> bool:
    numbers = [value for value in values if value is not None]
    plain = [value for value in numbers if not isinstance(value, str)]
    return bool(plain) and len(plain) == len(numbers) and min(plain) > 0 and max(plain) / min(plain) >= FEW


def _effects(swept: Swept, measure: str) -> list[tuple[str, float, Sequence[Effect]]]:
    """Return parameters with their effects, the one that moved the measure most first."""

    def moved(found: Sequence[Effect]) -> float:
        return max(one.mean for one in found) - min(one.mean for one in found)

    found = [(name, moved(parts), parts) for name, parts in swept.effects(measure).items()]
    return sorted(found, key=lambda row: -row[1])


def _front(trials: Sequence[Experiment], measure: str, time: str) -> Markup:
    points = sweeping.tradeoffs(trials, measure, time)
    label = f"{measure} against {time} of {len(points)} trials; {sum(point.front for point in points)} are on the front"
    return charts.pareto([_dot(point, measure) for point in points], measure=measure, time=time, label=label)


def _dot(point: sweeping.Tradeoff, measure: str) -> charts.Point:
    words = f"{point.one.id}: {measure} {charts.plain(round(point.quality, 4))} at {charts.plain(round(point.ms, 1))} ms"
    href, kind = f"/experiments/{point.one.id}", "good" if point.front else "even"
    return charts.Point(point.ms, point.quality, title=words + ", on the front" * point.front, href=href, kind=kind)


def _gain(best: Experiment | None, base: Experiment | None, measure: str) -> float | None:
    reached, before = _figure(best, measure), _figure(base, measure)
    return None if reached is None or before is None else reached - before


def _figure(one: Experiment | None, measure: str) -> float | None:
    return None if one is None else figure(one, measure)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
