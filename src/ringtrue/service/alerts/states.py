"""Which alerts hold now, according to the stored history, without Prometheus.

The history is sampled once a minute, back from now, as Prometheus would have evaluated it. A rule is *pending* from the first
minute in which its condition holds, and *firing* once it has held for as long as the rule requires.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

import numpy as np

from ringtrue.service.alerts.conditions import Check, RuleCondition, Samples
from ringtrue.service.alerts.rules import ShippedRule, filled, shipped_rules
from ringtrue.service.history import LOOKBACK, Labels, labels_key

if TYPE_CHECKING:
    from ringtrue.store import Store

MINUTE = 60.0
LONGEST = 6 * 60
"""Minutes back in which the beginning of an alert is looked for; no rule requires longer."""
State = Literal["firing", "pending", "inactive", "no data"]


@dataclass(frozen=True)
class ActiveAlert:
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
    """The state of one rule, which is that of its strongest alert."""

    rule: ShippedRule
    state: State
    """'no data' if the history has no current value that the rule looks at."""
    alerts: tuple[ActiveAlert, ...]


def rule_states(
    store: Store, project: str, *, now: datetime, rules: Sequence[ShippedRule] | None = None, lookback: timedelta = LOOKBACK
) -> list[RuleState]:
    """Return the state of every rule for a project at ``now``, by default of the shipped rules.

    ``lookback`` is how long a stored point holds.
    """
    chosen = shipped_rules() if rules is None else rules
    return [_state(rule, _checked_samples(store, project, rule.condition, now, lookback), now) for rule in chosen]


def _state(rule: ShippedRule, series: dict[Labels, Samples], now: datetime) -> RuleState:
    alerts = tuple(_alerts(rule, series, now))
    if alerts:
        return RuleState(rule, "firing" if any(alert.state == "firing" for alert in alerts) else "pending", alerts)
    known = any(not np.isnan(samples[-1]) for samples in series.values())
    return RuleState(rule, "inactive" if known else "no data", ())


def _alerts(rule: ShippedRule, series: dict[Labels, Samples], now: datetime) -> Iterator[ActiveAlert]:
    check = rule.condition.check
    for key, samples in sorted(series.items(), key=itemgetter(0)):
        value = check(samples)
        if value is None:
            continue
        lasted = _lasted(check, samples)
        labels = {**dict(key), **rule.labels}
        yield ActiveAlert(
            state="firing" if lasted >= rule.lasts else "pending",
            labels=labels,
            value=float(value),
            since=now - timedelta(seconds=lasted),
            summary=filled(rule.summary, labels, value),
            description=filled(rule.description, labels, value),
        )


def _lasted(check: Check, samples: Samples) -> float:
    """Return for how many seconds the check has held without a break."""
    holding = takewhile(lambda ago: check(samples[:-ago]) is not None, range(1, LONGEST + 1))
    return MINUTE * len(list(holding))


def _checked_samples(
    store: Store, project: str, condition: RuleCondition, now: datetime, lookback: timedelta
) -> dict[Labels, Samples]:
    """Return the samples that the condition checks, for as long as an alert may have lasted."""
    moments = now.timestamp() - MINUTE * np.arange(LONGEST + condition.reach, -1, -1, dtype=np.float64)
    first, *others = (_samples(store, project, metric, condition, moments, lookback) for metric in condition.metrics)
    if condition.age:
        return {(("project", project),): moments - np.fmax.reduce(list(first.values()))} if first else {}
    for whole in others:
        with np.errstate(divide="ignore", invalid="ignore"):
            first = {key: samples / whole[key] for key, samples in first.items() if key in whole}
    return first


def _samples(
    store: Store, project: str, metric: str, condition: RuleCondition, moments: Samples, lookback: timedelta
) -> dict[Labels, Samples]:
    """Return the value of each series at each moment; nan if no point holds then."""
    since = datetime.fromtimestamp(moments[0], UTC) - lookback
    until = datetime.fromtimestamp(moments[-1], UTC) + timedelta(milliseconds=1)  # a point stored at this very moment counts
    points: dict[Labels, list[tuple[float, float]]] = {}
    for point in store.history(metric, project=project, labels=condition.labels, since=since, until=until):
        key = labels_key({**point.labels, "project": project})
        points.setdefault(key, []).append((datetime.fromisoformat(point.at).timestamp(), point.value))
    found = {}
    for key, pairs in points.items():
        times, values = np.asarray(pairs).T
        newest = np.searchsorted(times, moments + 1e-6, side="right") - 1
        holds = (newest >= 0) & (moments - times[newest] <= lookback.total_seconds() + 1e-6)
        found[key] = np.where(holds, values[newest], np.nan)
    return found
