"""Advice that follows from evidence. Every rule takes a Report and yields Recommendations.

A rule without its evidence (no comparison, no components, no losses) stays silent, and so does one whose evidence could be
noise: people learn to ignore advice that comes and goes by chance.
"""

from __future__ import annotations

from ringtrue.report.advice.change import threshold
from ringtrue.report.advice.losses import cutoff, overlap, rerank, vocabulary
from ringtrue.report.advice.parts import check_rerank, drop_channel, harmful_channel, harmful_fusion, latency
from ringtrue.report.advice.questions import judge_more, more_queries, overfitting, weak_slice
from ringtrue.report.records import Recommendation, Report

RULES = (
    threshold, rerank, vocabulary, overlap, cutoff, drop_channel, harmful_channel, harmful_fusion, check_rerank, weak_slice,
    judge_more, more_queries, latency, overfitting,
)  # fmt: skip


def recommend(report: Report) -> tuple[Recommendation, ...]:
    """Return the advice that the evidence of this report supports, in the order of the rules."""
    return tuple(advice for rule in RULES for advice in rule(report))
