"""Verdicts: scores of two systems → Comparison; an evaluation, a baseline and a policy → Verdict.

Pure, but for the baseline's file. May not: search, print, read the clock or the environment.
"""

from ringtrue.verdict.baseline import (
    baseline_from as baseline_from,
    baseline_of as baseline_of,
    baseline_record as baseline_record,
    find_baseline as find_baseline,
    read_baseline as read_baseline,
    write_baseline as write_baseline,
)
from ringtrue.verdict.checks import pairing_note as pairing_note
from ringtrue.verdict.comparing import (
    Arm as Arm,
    compare as compare,
    compare_all as compare_all,
    ComparisonOptions as ComparisonOptions,
    ScoredRun as ScoredRun,
)
from ringtrue.verdict.gating import (
    committed_checks as committed_checks,
    gate as gate,
    has_moved as has_moved,
    movements as movements,
    next_version as next_version,
    objections as objections,
    with_checks as with_checks,
)
from ringtrue.verdict.numbers import (
    reachable as reachable,
    upside as upside,
    values_of as values_of,
    with_measures as with_measures,
)
from ringtrue.verdict.records import (
    Baseline as Baseline,
    Check as Check,
    CheckStatus as CheckStatus,
    Comparison as Comparison,
    LatencyComparison as LatencyComparison,
    MeasureComparison as MeasureComparison,
    Policy as Policy,
    Verdict as Verdict,
)
