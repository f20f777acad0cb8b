"""What a report is made from, and what it recommends, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ringtrue.run import Evaluation
from ringtrue.verdict import Baseline, Comparison, Verdict


@dataclass(frozen=True)
class Recommendation:
    """Advice that follows from evidence, with the numbers behind it."""

    rule: str
    """Short name of the rule, like 'threshold' or 'drop-channel'."""
    advice: str
    """One or two sentences: what to try and why."""
    evidence: Mapping[str, float | str]
    """The numbers it follows from."""
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Report:
    """Everything a report tells. Only ``evaluation`` is needed; the rest is told where it is there."""

    evaluation: Evaluation
    made_at: str
    """ISO 8601 in UTC; the clock is read at the edges."""
    other: Evaluation | None = None
    """The run it is compared with, for rankings side by side."""
    baseline: Baseline | None = None
    comparison: Comparison | None = None
    verdict: Verdict | None = None
    recommendations: tuple[Recommendation, ...] = ()
    title: str = ""
    notes: tuple[str, ...] = field(default_factory=tuple)
