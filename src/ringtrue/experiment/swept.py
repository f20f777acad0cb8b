"""Experiments as a reader looks at them: the trials of a sweep together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringtrue.errors import RingtrueError
from ringtrue.experiment.ledger import Experiment
from ringtrue.formats import Place
from ringtrue.measures import Measure

if TYPE_CHECKING:
    from ringtrue.store import Store

LOOKED_AT = 2_000
"""Experiments that are read at most, the newest; a page must not read the history of years."""


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


def measures_of(experiments: Iterable[Experiment]) -> tuple[str, ...]:
    """Return the measures of experiments in the order they come, those in milliseconds last."""
    names = dict.fromkeys(name for one in experiments for name in one.metrics if figure(one, name) is not None)
    return tuple(sorted(names, key=is_time))


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
