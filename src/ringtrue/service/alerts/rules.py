"""The alert rules that ship with Ringtrue, what each looks for, and which alerts hold now, without Prometheus.

The rules are read from the file that Prometheus reads too. Tests run promtool on that file and require that both fire in
the same minute. One thing differs: an increase is what the points show, without extrapolation.

The history is sampled once a minute, back from now, as Prometheus would have evaluated it. A rule is *pending* from the first
minute in which its condition holds, and *firing* once it has held for as long as the rule requires.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import takewhile
from operator import eq, gt, itemgetter, lt
from typing import TYPE_CHECKING

import numpy as np
import yaml
from numpy.typing import NDArray

from ringtrue.answers import Alert, AlertRule, RuleState
from ringtrue.service.gauges import CATALOGUE, WHOLE, MetricNames, Reading
from ringtrue.service.history import LOOKBACK, Labels, labels_key
from ringtrue.store import timestamp

if TYPE_CHECKING:
    from ringtrue.store import Store

Samples = NDArray[np.float64]
"""The values of one series once a minute, oldest first; nan if no value is known."""
Check = Callable[[Samples], float | None]
"""Takes the samples up to a moment; returns the value to report if the rule holds then, else None."""
HOUR, DAY = 60, 24 * 60
"""In samples."""
DAY_S = 86_400.0


@dataclass(frozen=True)
class RuleCondition:
    """A metric and what it must not be; the rule holds for each series on its own."""

    metric: str
    check: Check
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that a series must have."""
    reach: int = 0
    """Minutes before the moment that the check looks at."""
    share_of: str | None = None
    """Check the share that the metric is of this one."""
    age: bool = False
    """Check the age of the newest of the project's series, whose values are times."""

    @property
    def metrics(self) -> tuple[str, ...]:
        return (self.metric,) if self.share_of is None else (self.metric, self.share_of)

    def reads(self, reading: Reading) -> bool:
        """True for a figure that the condition looks at."""
        return reading.metric in self.metrics and self.labels.items() <= reading.labels.items()


def holds(compared: Callable[[float, float], bool], threshold: float) -> Check:
    """Hold if the newest value compares so with the threshold."""
    return lambda samples: samples[-1] if compared(samples[-1], threshold) else None


def below_median(drop: float, minutes: int) -> Check:
    """Hold if the newest value is more than ``drop`` below the median of the last minutes."""

    def check(samples: Samples) -> float | None:
        known = _known(samples[-minutes - 1 :])
        return samples[-1] if len(known) and samples[-1] < np.median(known) - drop else None

    return check


def increased(minutes: int) -> Check:
    """Hold if a counter increased in the last minutes."""

    def check(samples: Samples) -> float | None:
        increase = _increase(samples[-minutes - 1 :])
        return increase if increase > 0 else None

    return check


def silent_for_an_hour(samples: Samples) -> float | None:
    """Hold if a counter stood still for an hour and increased in the day before."""
    increase = _increase(samples[-HOUR - 1 :])
    return increase if increase == 0 and _increase(samples[-DAY - HOUR - 1 : -HOUR]) > 0 else None


def _known(samples: Samples) -> Samples:
    return samples[~np.isnan(samples)]


def _increase(samples: Samples) -> float:
    """Return how much a counter increased; nan if fewer than two values are known."""
    known = _known(samples)
    if len(known) < 2:
        return np.nan
    steps = np.diff(known)
    # A counter that falls started again with its process: all of its value came since.
    return float(np.where(steps < 0, known[1:], steps).sum())


_TOP_10 = {"k": "10", "slice": WHOLE}
_WEEK = 7 * DAY
CONDITIONS: Mapping[str, RuleCondition] = {
    "RingtrueRecallLow": RuleCondition("ringtrue_retrieval_recall_at_k", holds(lt, 0.75), _TOP_10),
    "RingtrueRecallDropped": RuleCondition("ringtrue_retrieval_recall_at_k", below_median(0.05, _WEEK), _TOP_10, reach=_WEEK),
    "RingtrueRecallDroppedWithVersion": RuleCondition(
        "ringtrue_retrieval_recall_version_change", holds(lt, -0.05), {"k": "10"}
    ),
    "RingtrueNdcgDropped": RuleCondition("ringtrue_retrieval_ndcg_at_k", below_median(0.05, _WEEK), _TOP_10, reach=_WEEK),
    "RingtrueGateFailing": RuleCondition("ringtrue_gate", holds(eq, 1), {"verdict": "fail", "role": "production"}),
    "RingtrueEvaluationStale": RuleCondition("ringtrue_evaluation_timestamp_seconds", holds(gt, 8 * DAY_S), age=True),
    "RingtrueReviewBacklogOld": RuleCondition("ringtrue_review_oldest_pending_seconds", holds(gt, 7 * DAY_S)),
    "RingtrueLogDropping": RuleCondition("ringtrue_log_dropped_total", increased(10), reach=10),
    "RingtrueLogSilent": RuleCondition("ringtrue_log_searches_total", silent_for_an_hour, reach=DAY + HOUR),
    "RingtrueLogQueueFull": RuleCondition("ringtrue_log_queue_waiting", holds(gt, 0.8), share_of="ringtrue_log_queue_capacity"),
    "RingtrueShadowFailing": RuleCondition("ringtrue_shadow_failure_ratio", holds(gt, 0.01)),
    "RingtrueStoreDown": RuleCondition("ringtrue_store_up", holds(eq, 0)),
    "RingtrueMetricsIncomplete": RuleCondition("ringtrue_collect_errors_total", increased(10), reach=10),
}
"""The condition of each rule by its name; rules that only Prometheus evaluates have none."""


def watched(reading: Reading) -> bool:
    """True for a figure that a rule looks at."""
    return any(condition.reads(reading) for condition in CONDITIONS.values())


FILE = "ringtrue-alerts.yml"
_SECONDS = {"m": 60.0, "h": 3600.0}
_SLOT = re.compile(r"\{\{ (.*?) \}\}")


@dataclass(frozen=True)
class ShippedRule:
    """One alert: its condition, how long that must hold, and what a reader sees."""

    name: str
    condition: RuleCondition
    text: str
    """The condition in PromQL."""
    lasts: float
    """Seconds that it must hold before it fires."""
    labels: Mapping[str, str]
    summary: str
    description: str


def rules_text(names: MetricNames | None = None) -> str:
    """Return the rules as a file for Prometheus, with the metrics called as ``names`` says."""
    text = files("ringtrue.service.alerts").joinpath(FILE).read_text(encoding="utf-8")
    if names is None:
        return text
    outside = {
        here: there
        for metric in CATALOGUE
        for here, there in [
            (metric.name, names[metric.name]),
            *zip(metric.sample_names(metric.name), metric.sample_names(names[metric.name]), strict=True),
        ]
    }
    return re.sub(r"\bringtrue_[a-z_]+\b", lambda found: outside.get(found[0], found[0]), text)


@cache
def shipped_rules() -> tuple[ShippedRule, ...]:
    """Return the rules that can be checked over stored history, in the order of their file."""
    rows = (row for group in yaml.safe_load(rules_text())["groups"] for row in group["rules"])
    return tuple(
        ShippedRule(
            name=row["alert"],
            condition=CONDITIONS[row["alert"]],
            text=row["expr"],
            lasts=float(row.get("for", "0m")[:-1]) * _SECONDS[row.get("for", "0m")[-1]],
            labels=row["labels"],
            **row["annotations"],
        )
        for row in rows
        if row["alert"] in CONDITIONS
    )


def filled(template: str, labels: Mapping[str, str], value: float) -> str:
    """Return an annotation with its slots filled as Prometheus fills them; a label that is missing is empty.

    >>> filled("{{ $labels.why }}: {{ $value | humanizePercentage }}", {"why": "lost"}, 0.25)
    'lost: 25%'
    """

    def fill(slot: re.Match[str]) -> str:
        match slot[1]:
            case "$value | humanizePercentage":
                return f"{value * 100:.4g}%"
            case "$value | humanizeDuration":
                return _duration(value)
            case 'printf "%.3f" $value':
                return f"{value:.3f}"
            case name:
                return labels.get(name.removeprefix("$labels."), "")

    return _SLOT.sub(fill, template)


def _duration(value: float) -> str:
    """Return seconds as Prometheus shows them: ``8d 2h 0m 5s``."""
    if value < 60:
        return f"{value:.4g}s"
    left = int(value)
    parts: list[str] = []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count or parts:
            parts.append(f"{count}{unit}")
    return " ".join(parts)


MINUTE = 60.0
LONGEST = 6 * 60
"""Minutes back in which the beginning of an alert is looked for; no rule requires longer."""


def rule_states(
    store: Store, project: str, *, now: datetime, rules: Sequence[ShippedRule] | None = None, lookback: timedelta = LOOKBACK
) -> list[AlertRule]:
    """Return the state of every rule for a project at ``now``, by default of the shipped rules.

    ``lookback`` is how long a stored point holds.
    """
    chosen = shipped_rules() if rules is None else rules
    return [_state(rule, _checked_samples(store, project, rule.condition, now, lookback), now) for rule in chosen]


def _state(rule: ShippedRule, series: dict[Labels, Samples], now: datetime) -> AlertRule:
    alerts = tuple(_alerts(rule, series, now))
    known = any(not np.isnan(samples[-1]) for samples in series.values())
    states: set[str] = {alert.state for alert in alerts}
    state: RuleState = "firing" if "firing" in states else "pending" if states else "inactive" if known else "no data"
    return AlertRule(rule.name, state, rule.labels["severity"], " ".join(rule.text.split()), rule.lasts, alerts)


def _alerts(rule: ShippedRule, series: dict[Labels, Samples], now: datetime) -> Iterator[Alert]:
    check = rule.condition.check
    for key, samples in sorted(series.items(), key=itemgetter(0)):
        value = check(samples)
        if value is not None:
            lasted = _lasted(check, samples)
            labels = {**dict(key), **rule.labels}
            yield Alert(
                state="firing" if lasted >= rule.lasts else "pending",
                labels=labels,
                value=float(value),
                since=timestamp(now - timedelta(seconds=lasted)),
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
