"""Measures: judgments and a run come in, scores per query and their means go out.

Pure and columnar: no files, no printing, no randomness. What a measure *is* stands in ``definition`` (one table), how the
ranked ones are computed in ``ranked``, those that read whole answers in ``lists``; ``align`` joins run and judgments once
for all of them; ``scoring`` applies the policies; ``figures`` holds those that describe many
answers at once.
"""

from ringtrue.measures.definition import (
    ALIASES as ALIASES,
    CATALOGUE as CATALOGUE,
    DEFINITIONS as DEFINITIONS,
    Definition as Definition,
    Measure as Measure,
)
from ringtrue.measures.figures import (
    Abstention as Abstention,
    Calibration as Calibration,
    ColdStart as ColdStart,
    Contribution as Contribution,
    Latency as Latency,
    RiskCoverage as RiskCoverage,
    abstention as abstention,
    calibration as calibration,
    channel_contribution as channel_contribution,
    cold_queries as cold_queries,
    cold_start as cold_start,
    dedup_token_savings as dedup_token_savings,
    error_rate as error_rate,
    error_rate_by as error_rate_by,
    expansion_impact as expansion_impact,
    fusion_reorder_rate as fusion_reorder_rate,
    latency as latency,
    personalisation_lift as personalisation_lift,
    risk_coverage as risk_coverage,
)
from ringtrue.measures.lists import TIER_WEIGHTS as TIER_WEIGHTS, Facts as Facts
from ringtrue.measures.scoring import (
    Counted as Counted,
    Scores as Scores,
    Summary as Summary,
    as_qrels as as_qrels,
    as_run as as_run,
    average as average,
    check_documents as check_documents,
    members as members,
    parse_measures as parse_measures,
    score as score,
)
