"""Statistics: estimates and decisions from plain numbers.

Comes in: arrays and sequences (numbers, labels, rankings of ids) and options; randomness arrives as ``rng``.
Goes out: floats and frozen records. What cannot be known is nan or an error, never a number in its place.
May not: read files, the environment or the clock, print, keep state, or know of queries, documents, measures or any
other room; it imports only ``ringtrue.errors``, NumPy, and SciPy inside the functions that need it (its import costs a
second).
"""

from __future__ import annotations

from ringtrue.stats.agreement import Agreement, Confusion, cohen_kappa, confusion, fleiss_kappa, krippendorff_alpha
from ringtrue.stats.bayes import Posterior, posterior
from ringtrue.stats.beta_binomial import BetaBinomial, probability_better
from ringtrue.stats.bootstrap import Bootstrap, bootstrap_interval
from ringtrue.stats.confidence_sequence import ConfidenceSequence, candidate_means, rich_from, sequence_decisions
from ringtrue.stats.difference import RankingDifference, ranking_difference
from ringtrue.stats.interval import Interval, mean_interval
from ringtrue.stats.multiple import benjamini_hochberg, holm
from ringtrue.stats.paired import Effect, PairedT, paired_effect, paired_t
from ringtrue.stats.percentile import PercentileGrowth, percentile_growth
from ringtrue.stats.power import minimum_detectable_effect, paired_power, paired_sample_size
from ringtrue.stats.rank import jaccard, kendall_tau_b, ranking_spearman, ranking_tau_b, rbo, spearman_rho
from ringtrue.stats.sequential import (
    SequentialPlan,
    Sprt,
    first_decisions,
    sprt_decisions,
    sprt_ratios,
    variance_free_ratios,
    wald_bounds,
)
from ringtrue.stats.sequential_rates import (
    RareLossRate,
    SequentialRate,
    allowed_share,
    broken_promises,
    peeking_rate,
    rare_loss_rates,
    sequential_differences,
    sequential_rates,
)
from ringtrue.stats.signflip import SignFlip, sign_flip
from ringtrue.stats.simulate import ErrorRate, error_rates, family_error_rates, null_differences, power_rates
from ringtrue.stats.verdict import PairedComparison, PairedVerdict, compare_paired, queries_to_settle
from ringtrue.stats.wilcoxon import Wilcoxon, wilcoxon

__all__ = [
    "Agreement",
    "BetaBinomial",
    "Bootstrap",
    "ConfidenceSequence",
    "Confusion",
    "Effect",
    "ErrorRate",
    "Interval",
    "PairedComparison",
    "PairedT",
    "PairedVerdict",
    "PercentileGrowth",
    "Posterior",
    "RankingDifference",
    "RareLossRate",
    "SequentialPlan",
    "SequentialRate",
    "SignFlip",
    "Sprt",
    "Wilcoxon",
    "allowed_share",
    "benjamini_hochberg",
    "bootstrap_interval",
    "broken_promises",
    "candidate_means",
    "cohen_kappa",
    "compare_paired",
    "confusion",
    "error_rates",
    "family_error_rates",
    "first_decisions",
    "fleiss_kappa",
    "holm",
    "jaccard",
    "kendall_tau_b",
    "krippendorff_alpha",
    "mean_interval",
    "minimum_detectable_effect",
    "null_differences",
    "paired_effect",
    "paired_power",
    "paired_sample_size",
    "paired_t",
    "peeking_rate",
    "percentile_growth",
    "posterior",
    "power_rates",
    "probability_better",
    "queries_to_settle",
    "ranking_difference",
    "ranking_spearman",
    "ranking_tau_b",
    "rare_loss_rates",
    "rbo",
    "rich_from",
    "sequence_decisions",
    "sequential_differences",
    "sequential_rates",
    "sign_flip",
    "spearman_rho",
    "sprt_decisions",
    "sprt_ratios",
    "variance_free_ratios",
    "wald_bounds",
    "wilcoxon",
]
