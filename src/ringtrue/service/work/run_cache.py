"""Runs, comparisons and golden sets that readers look at, kept open: a reader goes from one query of a run to the next.

None of them ever changes under its id, so what is kept is never out of date; whether a project has it is asked every time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from ringtrue.errors import MissingInput
from ringtrue.report import Report, report_on
from ringtrue.run import Evaluation, unpacked
from ringtrue.service.routes.compare import compared
from ringtrue.service.work.library import KeptSet, baseline_named, golden_kept, golden_versions, named, server_policy
from ringtrue.verdict import Comparison

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.store import StoredResult

Value = TypeVar("Value")
MOST_BYTES = 8_000_000
"""Of packed runs that are kept open; open they take about ten times as much."""
MOST_COMPARISONS = 16
MOST_SETS = 4
LARGEST_SET = 20_000
"""Judgments of a set that is kept open."""


class WeightedCache(Generic[Value]):
    """The values that were asked for last, within a weight."""

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._values: OrderedDict[Hashable, tuple[int, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], tuple[int, Value]]) -> Value:
        """Return the value of a key; ``make`` makes it, with its weight, where it is not there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][1]
        weight, value = make()
        with self._lock:
            if key not in self._values and weight <= self._most:
                self._values[key] = (weight, value)
                self._weight += weight
                while self._weight > self._most:
                    self._weight -= self._values.popitem(last=False)[1][0]
        return value


class Opened:
    """What one server keeps open."""

    def __init__(self) -> None:
        self.runs: WeightedCache[Evaluation] = WeightedCache(MOST_BYTES)
        self.comparisons: WeightedCache[Comparison] = WeightedCache(MOST_COMPARISONS)
        self.reports: WeightedCache[Report] = WeightedCache(MOST_COMPARISONS)
        self.sets: WeightedCache[KeptSet] = WeightedCache(MOST_SETS * LARGEST_SET)


_OPENED: WeakKeyDictionary[Any, Opened] = WeakKeyDictionary()


def _of(service: Service) -> Opened:
    return _OPENED.setdefault(service, Opened())


def run_opened(service: Service, caller: Caller, run_id: str) -> tuple[StoredResult, Evaluation | None]:
    """Return the figures of a run, and its answers where they are kept; raises MissingInput."""
    store = service.of(caller)
    row = store.result(run_id, project=caller.project)
    if row is None:
        raise MissingInput(f"there is no run '{run_id:.120}'; look it up in the list of runs")
    if run_id not in store.run_names(project=caller.project, among=[run_id]):
        return row, None

    def opened() -> tuple[int, Evaluation]:
        kept = store.run(run_id, project=caller.project)
        if kept is None:
            raise MissingInput(f"the answers of run '{run_id:.120}' were deleted a moment ago; reload the page")
        return len(kept.content), unpacked(kept.content, name=kept.name)

    return row, _of(service).runs.get((caller.project, run_id), opened)


def answers_of(service: Service, caller: Caller, run_id: str) -> Evaluation:
    """Return a run with its answers; raises MissingInput, also where only its figures are kept."""
    found = run_opened(service, caller, run_id)[1]
    if found is None:
        raise MissingInput(f"of run '{run_id:.120}' only the figures are kept, not its answers; evaluate again")
    return found


def comparison_opened(service: Service, caller: Caller, a: str, b: str, *, measure: str | None) -> Comparison:
    """Return whether run ``b`` is better than run ``a``; raises MissingInput, InputError and CannotDecide."""
    for run_id in (a, b):
        if service.of(caller).result(run_id, project=caller.project) is None:
            raise MissingInput(f"there is no run '{run_id:.120}'; look it up in the list of runs")
    key = (caller.project, a, b, measure)
    return _of(service).comparisons.get(key, lambda: (1, compared(service, caller, a, b, primary=measure)))


def report_opened(service: Service, caller: Caller, run_id: str, evaluation: Evaluation, *, baseline: str | None) -> Report:
    """Return what there is to tell about a run, judged by the last version of a baseline where one is named.

    Raises MissingInput where there is no such baseline.
    """
    made_at = service.now().isoformat(timespec="seconds")
    if baseline is None:
        return report_on(evaluation, made_at=made_at)
    standard, policy = baseline_named(service, caller, baseline), server_policy()
    key = (caller.project, run_id, baseline, standard.version, repr(policy))
    return _of(service).reports.get(key, lambda: (1, report_on(evaluation, made_at=made_at, baseline=standard, policy=policy)))


def set_opened(service: Service, caller: Caller, name: str, version: str) -> KeptSet:
    """Return a version of a golden set and what validation says of it; raises MissingInput."""
    name = named(name)[0]
    there = next((one for one in golden_versions(service, caller, name) if one.version == version), None)

    def opened() -> tuple[int, KeptSet]:
        found = golden_kept(service, caller, f"{name}@{version}")
        return max(1, len(found.golden.judgments)), found

    if there is None:  # a version that is not the newest of a shipped set; asking says which there are
        return opened()[1]
    return _of(service).sets.get((caller.project, name, version, there.created_at), opened)
