"""What each shipped rule looks for in the stored history.

The same conditions stand as PromQL in ``ringtrue-alerts.yml``, for Prometheus. Tests run promtool on that file and require
that both fire in the same minute. One thing differs: an increase is what the points show, without extrapolation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringtrue.service.gauges import WHOLE, Reading

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


def below(threshold: float) -> Check:
    return lambda samples: samples[-1] if samples[-1] < threshold else None


def above(threshold: float) -> Check:
    return lambda samples: samples[-1] if samples[-1] > threshold else None


def equal(value: float) -> Check:
    return lambda samples: samples[-1] if samples[-1] == value else None


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
    "RingtrueRecallLow": RuleCondition("ringtrue_retrieval_recall_at_k", below(0.75), _TOP_10),
    "RingtrueRecallDropped": RuleCondition("ringtrue_retrieval_recall_at_k", below_median(0.05, _WEEK), _TOP_10, reach=_WEEK),
    "RingtrueRecallDroppedWithVersion": RuleCondition("ringtrue_retrieval_recall_version_change", below(-0.05), {"k": "10"}),
    "RingtrueNdcgDropped": RuleCondition("ringtrue_retrieval_ndcg_at_k", below_median(0.05, _WEEK), _TOP_10, reach=_WEEK),
    "RingtrueGateFailing": RuleCondition("ringtrue_gate", equal(1), {"verdict": "fail", "role": "production"}),
    "RingtrueEvaluationStale": RuleCondition("ringtrue_evaluation_timestamp_seconds", above(8 * DAY_S), age=True),
    "RingtrueReviewBacklogOld": RuleCondition("ringtrue_review_oldest_pending_seconds", above(7 * DAY_S)),
    "RingtrueLogDropping": RuleCondition("ringtrue_log_dropped_total", increased(10), reach=10),
    "RingtrueLogSilent": RuleCondition("ringtrue_log_searches_total", silent_for_an_hour, reach=DAY + HOUR),
    "RingtrueLogQueueFull": RuleCondition("ringtrue_log_queue_waiting", above(0.8), share_of="ringtrue_log_queue_capacity"),
    "RingtrueShadowFailing": RuleCondition("ringtrue_shadow_failure_ratio", above(0.01)),
    "RingtrueStoreDown": RuleCondition("ringtrue_store_up", equal(0)),
    "RingtrueMetricsIncomplete": RuleCondition("ringtrue_collect_errors_total", increased(10), reach=10),
}
"""The condition of each rule by its name; rules that only Prometheus evaluates have none."""


def watched(reading: Reading) -> bool:
    """True for a figure that a rule looks at."""
    return any(condition.reads(reading) for condition in CONDITIONS.values())
