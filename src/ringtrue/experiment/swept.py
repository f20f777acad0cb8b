"""Experiments as a reader looks at them: the trials of a sweep together, and each beside what it was held against."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringtrue.errors import RingtrueError
from ringtrue.experiment.ledger import Experiment
from ringtrue.experiment.outcome import Effect, Trial, effect_of
from ringtrue.experiment.space import Point, Value
from ringtrue.formats import Place
from ringtrue.measures import Measure
from ringtrue.retrieve import canonical

if TYPE_CHECKING:
    from ringtrue.store import Store, StoredResult

LOOKED_AT = 2_000
"""Experiments that are read at most, the newest; a page must not read the history of years."""
RUNS_LOOKED_AT = 60
"""Runs among which the one that an experiment was held against is looked for."""
SAME = 3
"""Measures that must be equal to the last digit for a run to be the experiment's own."""


@dataclass(frozen=True)
class Swept:
    """The trials of one sweep, in the order they were tried."""

    trials: tuple[Experiment, ...]

    @property
    def id(self) -> str:
        """The id of its first trial: what its address is made of."""
        return self.trials[0].id

    @property
    def last(self) -> Experiment:
        return self.trials[-1]

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for trial in self.trials for name in trial.config_changes))

    @property
    def measures(self) -> tuple[str, ...]:
        """Measures that at least one trial has a value of."""
        return measures_of(self.trials)

    @property
    def method(self) -> str:
        return str(_sweep_facts(self.trials[0]).get("method", ""))

    def ranked(self, measure: str) -> list[Experiment]:
        """Return the trials with a value of a measure, the best first."""
        up = -1 if lower_is_better(measure) else 1
        known = [(-up * value, place) for place, one in enumerate(self.trials) if (value := figure(one, measure)) is not None]
        return [self.trials[place] for _, place in sorted(known)]

    def baseline(self) -> Experiment | None:
        """Return the trial that is the baseline; None if it was none of them."""
        return next((one for one in self.trials if one.baseline and _sweep_facts(one).get("retriever") == one.baseline), None)

    def effects(self, measure: str) -> dict[str, tuple[Effect, ...]]:
        """Return what was reached at the values of each parameter that varies.

        Experiments keep means, not the values of each query, so that these effects have no interval.
        """
        settings = [{name: _setting(one.config_changes.get(name)) for name in self.parameters} for one in self.trials]
        names = [name for name in self.parameters if len({shown(values[name]) for values in settings}) > 1]
        trials = [
            Trial(0, Point(values, ""), value, {})
            for one, values in zip(self.trials, settings, strict=True)
            if (value := figure(one, measure)) is not None
        ]
        lower = lower_is_better(measure)
        return {name: effect_of(name, trials, lower_is_better=lower) for name in names} if trials else {}


def _setting(given: Any) -> Value:
    return given if isinstance(given, int | float) and not isinstance(given, bool) else shown(given)


def shown(value: Any) -> str:
    """Return a setting as people read it: a text without its quotes, anything else as JSON."""
    if isinstance(value, str):
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        return value[1:-1] if quoted else value
    return "—" if value is None else json.dumps(value, ensure_ascii=False)


def figure(one: Experiment, measure: str) -> float | None:
    """Return what an experiment reached; None if it is not known."""
    value = one.metrics.get(measure)
    return None if value is None or not math.isfinite(value) else value


def measures_of(experiments: Iterable[Experiment], *, times: bool = False) -> tuple[str, ...]:
    """Return the measures of experiments in the order they come, without those in milliseconds, or only ``times``."""
    names = dict.fromkeys(name for one in experiments for name in one.metrics if figure(one, name) is not None)
    return tuple(name for name in names if is_time(name) == times)


def is_time(measure: str) -> bool:
    """True for a figure in milliseconds, by its name: ``latency_p95_ms``."""
    name = measure.lower()
    return name.endswith("_ms") or "latency" in name


def lower_is_better(measure: str) -> bool:
    """True for a measure of which less is better; a name that nobody knows is taken for one of which more is."""
    if is_time(measure):
        return True
    try:
        return Measure.parse(measure).definition.lower_is_better
    except RingtrueError:
        return False


def grouped(experiments: Sequence[Experiment]) -> list[Experiment | Swept]:
    """Return experiments in their order, the trials of each sweep as one.

    A sweep has no name of its own: its trials lie side by side, count upwards, and are held against the same baseline.
    """
    found: list[Experiment | Swept] = []
    for one in experiments:
        before = found[-1] if found else None
        if not _sweep_facts(one):
            found.append(one)
        elif isinstance(before, Swept) and _goes_on(before.last, one):
            found[-1] = Swept((*before.trials, one))
        else:
            found.append(Swept((one,)))
    return found


def _goes_on(last: Experiment, one: Experiment) -> bool:
    def fixed(trial: Experiment) -> tuple[Any, ...]:
        facts = _sweep_facts(trial)
        return trial.date, trial.golden, trial.corpus, trial.baseline, facts.get("of"), facts.get("method")

    numbers = [_sweep_facts(trial).get("trial") for trial in (last, one)]
    first, second = (number if isinstance(number, int) else 0 for number in numbers)
    return fixed(last) == fixed(one) and first < second


def _sweep_facts(one: Experiment) -> Mapping[str, Any]:
    facts = one.extra.get("sweep")
    return facts if isinstance(facts, dict) else {}


def all_experiments(store: Store, project: str) -> tuple[list[Experiment | Swept], bool]:
    """Return what was tried, the newest first, and whether there is more than the newest that were read."""
    rows = store.experiments(project=project, limit=LOOKED_AT + 1)
    read = [Experiment.of(row.content, Place(f"experiment {row.experiment_id}")) for row in rows[-LOOKED_AT:]]
    return grouped(read)[::-1], len(rows) > LOOKED_AT


def sweep_with(store: Store, project: str, experiment_id: str) -> Swept | None:
    """Return the sweep that an experiment is a trial of; None if it is of none."""
    units = all_experiments(store, project)[0]
    return next((one for one in units if isinstance(one, Swept) and experiment_id in {trial.id for trial in one.trials}), None)


@dataclass(frozen=True)
class ComparedFigures:
    """What an experiment was held against, and where its figures come from: another experiment, or a run."""

    name: str
    metrics: Mapping[str, float]
    run_id: str | None = None


def held_against(
    store: Store, project: str, one: Experiment, swept: Swept | None
) -> tuple[ComparedFigures | None, StoredResult | None]:
    """Return the figures that an experiment was held against, and the run that is its own; None for what is not stored."""
    rows = store.results(project=project, limit=RUNS_LOOKED_AT)
    rows = [row for row in rows if one.golden is None or row.golden == one.golden]
    own = next((row for row in rows if _same_metrics(one.metrics, row.metrics)), None)
    if swept is not None:
        trial = swept.baseline()
        return (None if trial is None else ComparedFigures(trial.id, trial.metrics)), own
    if one.baseline is None:
        return None, own
    try:
        meant = str(canonical(one.baseline))
    except RingtrueError:  # no search expression
        meant = None
    row = next((row for row in rows if one.baseline == row.run_id or (meant and row.retriever == meant)), None)
    return (None if row is None else ComparedFigures(one.baseline, row.metrics, row.run_id)), own


def _same_metrics(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    shared = one.keys() & other.keys()
    return len(shared) >= SAME and all(one[name] == other[name] for name in shared)


@dataclass(frozen=True)
class Tradeoff:
    """An experiment with its quality and its time; on the front nothing is both better and faster."""

    one: Experiment
    quality: float
    ms: float
    front: bool


def tradeoffs(experiments: Iterable[Experiment], measure: str, time: str) -> list[Tradeoff]:
    """Return the experiments of which both are known, the fastest first."""
    up = -1 if lower_is_better(measure) else 1
    known = [
        (one, quality, ms)
        for one in experiments
        if (quality := figure(one, measure)) is not None and (ms := figure(one, time)) is not None
    ]
    known.sort(key=lambda row: (row[2], -up * row[1]))
    found, best = [], -math.inf
    for one, quality, ms in known:
        found.append(Tradeoff(one, quality, ms, up * quality > best))
        best = max(best, up * quality)
    return found
