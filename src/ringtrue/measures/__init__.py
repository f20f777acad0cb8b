"""Measures: judgments and a run come in, scores per query and their means go out.

Pure and columnar: no files, no printing, no randomness. What a measure *is* stands in ``definition`` (one table), how the
ranked ones are computed in ``ranked``, those that read whole answers in ``lists``; ``align`` joins run and judgments once
for all of them; ``score`` applies the policies of M-3; ``diagnostics`` and ``memory`` hold the figures that describe many
answers at once (M-8, M-9).
"""

from ringtrue.measures.definition import ALIASES, CATALOGUE, DEFINITIONS, Definition, Measure
from ringtrue.measures.diagnostics import (
    Contribution,
    Latency,
    channel_contribution,
    error_rate,
    error_rate_by,
    expansion_impact,
    fusion_reorder_rate,
    latency,
)
from ringtrue.measures.lists import TIER_WEIGHTS, Facts
from ringtrue.measures.memory import (
    Abstention,
    Calibration,
    ColdStart,
    RiskCoverage,
    abstention,
    calibration,
    cold_queries,
    cold_start,
    dedup_token_savings,
    personalisation_lift,
    risk_coverage,
)
from ringtrue.measures.score import as_qrels, as_run, check_documents, score
from ringtrue.measures.scores import Counted, Scores, Summary

__all__ = [
    "ALIASES",
    "CATALOGUE",
    "DEFINITIONS",
    "TIER_WEIGHTS",
    "Abstention",
    "Calibration",
    "ColdStart",
    "Contribution",
    "Counted",
    "Definition",
    "Facts",
    "Latency",
    "Measure",
    "RiskCoverage",
    "Scores",
    "Summary",
    "abstention",
    "as_qrels",
    "as_run",
    "calibration",
    "channel_contribution",
    "check_documents",
    "cold_queries",
    "cold_start",
    "dedup_token_savings",
    "error_rate",
    "error_rate_by",
    "expansion_impact",
    "fusion_reorder_rate",
    "latency",
    "personalisation_lift",
    "risk_coverage",
    "score",
]
