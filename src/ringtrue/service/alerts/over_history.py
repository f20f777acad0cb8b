"""Rules over stored history: which alerts hold now, without Prometheus (V-2).

The history is looked at once a minute, back from now, as Prometheus would have evaluated it: a rule is *pending* from the first
minute at which its expression holds, and *firing* once it has held for as long as the rule says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

import numpy as np

from ringtrue.service.alerts.expression import Range, Samples, Series, Vector, ranges
from ringtrue.service.alerts.rules import Rule, filled, shipped_rules
from ringtrue.service.history import LOOKBACK, Labels, labels_key

if TYPE_CHECKING:
    from ringtrue.store import Store

STEP = 60.0
"""Seconds from one look to the next, as the interval of the rules."""
LONGEST = timedelta(hours=6)
"""How far back the beginning of an alert is looked for."""

Grids = Mapping[Series, Mapping[Labels, Samples]]
State = Literal["firing", "pending", "inactive", "no data"]


@dataclass(frozen=True)
class Alert:
    """One series for which a rule holds."""

    state: Literal["firing", "pending"]
    labels: dict[str, str]
    value: float
    since: datetime
    """The first minute since when it has held without a break; at most six hours ago."""
    summary: str
    description: str


@dataclass(frozen=True)
class RuleState:
    """What has become of one rule: the strongest of its alerts; 'no data' where the history has nothing that it is about."""

    rule: Rule
    state: State
    alerts: tuple[Alert, ...]


def rule_states(
    store: Store, project: str, *, now: datetime, rules: Sequence[Rule] | None = None, lookback: timedelta = LOOKBACK
) -> list[RuleState]:
    """Return the state of every rule for a project, the shipped rules unless given, from what its history says at ``now``.

    ``lookback`` is how long a stored point holds.
    """
    chosen = shipped_rules() if rules is None else rules
    reach: dict[Series, float] = {}
    for rule in chosen:
        for span in ranges(rule.expression):
            back = max(rule.lasts, LONGEST.total_seconds()) + span.seconds + span.offset
            reach[span.series] = max(reach.get(span.series, 0.0), back)
    grids = {series: _grid(store, project, series, now, back, lookback) for series, back in reach.items()}
    return [_state(rule, grids, now) for rule in chosen]


def _grid(
    store: Store, project: str, series: Series, now: datetime, reach: float, lookback: timedelta
) -> dict[Labels, Samples]:
    """Return what matches once a minute, the newest last; nan where no point holds."""
    since = now - timedelta(seconds=reach) - lookback
    until = now + timedelta(microseconds=1)  # what is stored at this very moment counts
    wanted = {name: value for name, value in series.equal if name != "project"}
    found: dict[Labels, tuple[list[float], list[float]]] = {}
    for point in store.history(series.metric, project=project, labels=wanted, since=since, until=until):
        labels = {**point.labels, "project": project}
        if series.matches(labels):
            times, values = found.setdefault(labels_key(labels), ([], []))
            times.append(datetime.fromisoformat(point.at).timestamp())
            values.append(point.value)
    looks = now.timestamp() - STEP * np.arange(math.floor(reach / STEP), -1, -1)
    grid = {}
    for key, (times, values) in found.items():
        moments = np.asarray(times)
        place = np.searchsorted(moments, looks + 1e-6, side="right") - 1
        holds = (place >= 0) & (looks - moments[place] <= lookback.total_seconds() + 1e-6)
        grid[key] = np.where(holds, np.asarray(values)[place], np.nan)
    return grid


@dataclass(frozen=True)
class _Moment:
    """The history as it was so many minutes before ``end``."""

    grids: Grids
    end: float
    ago: int

    def time(self) -> float:
        return self.end - STEP * self.ago

    def values(self, series: Series) -> Vector:
        found = {}
        for labels, samples in self.grids[series].items():
            value = samples[len(samples) - 1 - self.ago]
            if not math.isnan(value):
                found[labels] = float(value)
        return found

    def over(self, span: Range) -> dict[Labels, Samples]:
        last = self.ago + round(span.offset / STEP)
        return {
            labels: samples[max(0, len(samples) - last - 1 - round(span.seconds / STEP)) : len(samples) - last]
            for labels, samples in self.grids[span.series].items()
        }


def _state(rule: Rule, grids: Grids, now: datetime) -> RuleState:
    alerts = _alerts(rule, grids, now)
    if alerts:
        return RuleState(rule, "firing" if any(one.state == "firing" for one in alerts) else "pending", alerts)
    latest = _Moment(grids, now.timestamp(), 0)
    known = all(latest.values(span.series) for span in ranges(rule.expression))
    return RuleState(rule, "inactive" if known else "no data", ())


def _alerts(rule: Rule, grids: Grids, now: datetime) -> tuple[Alert, ...]:
    holding = _holds(rule, grids, now, 0)
    minutes = dict.fromkeys(holding, 0)
    going, ago = set(holding), 0
    while going and (ago + 1) * STEP <= max(rule.lasts, LONGEST.total_seconds()):
        ago += 1
        going &= set(_holds(rule, grids, now, ago))
        minutes.update(dict.fromkeys(going, ago))
    found = []
    for labels, value in sorted(holding.items()):
        shown = {**dict(labels), **rule.labels}
        lasted = STEP * minutes[labels]
        found.append(
            Alert(
                state="firing" if lasted >= rule.lasts else "pending",
                labels=shown,
                value=value,
                since=now - timedelta(seconds=lasted),
                summary=filled(rule.summary, shown, value),
                description=filled(rule.description, shown, value),
            )
        )
    return tuple(found)


def _holds(rule: Rule, grids: Grids, now: datetime, ago: int) -> Vector:
    value = rule.expression.at(_Moment(grids, now.timestamp(), ago))
    assert isinstance(value, dict), "read_rules takes expressions of series only"
    return value
