"""Statistics: estimates and decisions from plain numbers.

Comes in: arrays and sequences (numbers, labels, rankings of ids) and options; randomness arrives as ``rng``.
Goes out: floats and frozen records. What cannot be known is nan or an error, never a number in its place.
May not: read files, the environment or the clock, print, keep state, or know of queries, documents, measures or any
other room; it imports only ``ringtrue.errors``, NumPy, and SciPy inside the functions that need it (its import costs a
second).
"""

from __future__ import annotations

from ringtrue.stats.agreement import Agreement, Confusion, cohen_kappa, confusion, fleiss_kappa, krippendorff_alpha
from ringtrue.stats.difference import RankingDifference, ranking_difference
from ringtrue.stats.power import minimum_detectable_effect, paired_power, paired_sample_size
from ringtrue.stats.rank import jaccard, kendall_tau_b, ranking_spearman, ranking_tau_b, rbo, spearman_rho

__all__ = [
    "Agreement",
    "Confusion",
    "RankingDifference",
    "cohen_kappa",
    "confusion",
    "fleiss_kappa",
    "jaccard",
    "kendall_tau_b",
    "krippendorff_alpha",
    "minimum_detectable_effect",
    "paired_power",
    "paired_sample_size",
    "ranking_difference",
    "ranking_spearman",
    "ranking_tau_b",
    "rbo",
    "spearman_rho",
]
