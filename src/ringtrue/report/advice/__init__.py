"""Advice that follows from evidence (P-2), from one table of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringtrue.report.advice.change import threshold
from ringtrue.report.advice.losses import cutoff, overlap, rerank, vocabulary
from ringtrue.report.advice.parts import check_rerank, drop_channel, harmful_channel, harmful_fusion, latency
from ringtrue.report.advice.questions import judge_more, more_queries, overfitting, weak_slice
from ringtrue.report.records import Recommendation, Report

Rule = Callable[[Report], Iterator[Recommendation]]

RULES: dict[str, Rule] = {
    "threshold": threshold,
    "rerank": rerank,
    "vocabulary": vocabulary,
    "overlap": overlap,
    "cut-off": cutoff,
    "drop-channel": drop_channel,
    "harmful-channel": harmful_channel,
    "harmful-fusion": harmful_fusion,
    "check-rerank": check_rerank,
    "weak-slice": weak_slice,
    "judge-more": judge_more,
    "more-queries": more_queries,
    "latency": latency,
    "overfitting": overfitting,
}


def recommend(report: Report) -> tuple[Recommendation, ...]:
    """Return the advice that the evidence of this report supports, in the order of the rules; () where all is well."""
    return tuple(advice for rule in RULES.values() for advice in rule(report))
