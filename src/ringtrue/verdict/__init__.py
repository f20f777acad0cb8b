"""Verdicts: scores of two systems → Comparison; an evaluation, a baseline and a policy → Verdict.

Pure, but for the baseline's file. May not: search, print, read the clock or the environment.
"""

from ringtrue.verdict.baseline import baseline_from, baseline_of, baseline_record, read_baseline, write_baseline
from ringtrue.verdict.comparing import Scored, compare, compare_all
from ringtrue.verdict.gating import gate, with_checks
from ringtrue.verdict.policy import Policy
from ringtrue.verdict.records import (
    Arm,
    Baseline,
    Check,
    Comparison,
    LatencyComparison,
    MeasureComparison,
    Verdict,
    Word,
)

__all__ = [
    "Arm",
    "Baseline",
    "Check",
    "Comparison",
    "LatencyComparison",
    "MeasureComparison",
    "Policy",
    "Scored",
    "Verdict",
    "Word",
    "baseline_from",
    "baseline_of",
    "baseline_record",
    "compare",
    "compare_all",
    "gate",
    "read_baseline",
    "with_checks",
    "write_baseline",
]
