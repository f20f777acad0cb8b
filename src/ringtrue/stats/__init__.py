"""Statistics: estimates and decisions from plain numbers.

Comes in: arrays and sequences (numbers, labels, rankings of ids) and options; randomness arrives as ``rng``.
Goes out: floats, arrays and frozen records. What cannot be known is nan or an error, never a number in its place.
May not: read files, the environment or the clock, print, keep state, or know of queries, documents, measures or any
other room; it imports only ``ringtrue.errors``, NumPy, and SciPy inside the functions that need it (its import costs a
second).
"""

from __future__ import annotations

from ringtrue.stats.agreement import (
    Agreement as Agreement,
    cohen_kappa as cohen_kappa,
    krippendorff_alpha as krippendorff_alpha,
)
from ringtrue.stats.bayes import probability_above_zero as probability_above_zero
from ringtrue.stats.beta_binomial import BetaBinomial as BetaBinomial, probability_better as probability_better
from ringtrue.stats.bootstrap import Bootstrap as Bootstrap, bootstrap_interval as bootstrap_interval
from ringtrue.stats.confidence_sequence import ConfidenceSequence as ConfidenceSequence, candidate_means as candidate_means
from ringtrue.stats.difference import (
    RankingDifference as RankingDifference,
    RankingDifferenceKind as RankingDifferenceKind,
    ranking_difference as ranking_difference,
)
from ringtrue.stats.interval import Interval as Interval, mean_interval as mean_interval
from ringtrue.stats.multiple import Correction as Correction, corrected as corrected
from ringtrue.stats.paired import PairedT as PairedT, paired_effect as paired_effect, paired_t as paired_t
from ringtrue.stats.percentile import PercentileGrowth as PercentileGrowth, percentile_growth as percentile_growth
from ringtrue.stats.power import (
    minimum_detectable_effect as minimum_detectable_effect,
    paired_power as paired_power,
    paired_sample_size as paired_sample_size,
)
from ringtrue.stats.rank import (
    jaccard as jaccard,
    kendall_tau_b as kendall_tau_b,
    ranking_spearman as ranking_spearman,
    ranking_tau_b as ranking_tau_b,
    rbo as rbo,
    spearman_rho as spearman_rho,
)
from ringtrue.stats.sequential import SequentialPlan as SequentialPlan, Sprt as Sprt
from ringtrue.stats.sequential_rates import (
    METHODS as METHODS,
    RareLossRate as RareLossRate,
    SequentialRate as SequentialRate,
    allowed_share as allowed_share,
    broken_promises as broken_promises,
    first_decisions as first_decisions,
    peeking_rate as peeking_rate,
    rare_loss_rates as rare_loss_rates,
    sequential_rates as sequential_rates,
)
from ringtrue.stats.signflip import sign_flip as sign_flip
from ringtrue.stats.verdict import (
    PairedVerdict as PairedVerdict,
    Word as Word,
    compare_paired as compare_paired,
    fewest_queries as fewest_queries,
    queries_to_settle as queries_to_settle,
)
from ringtrue.stats.wilcoxon import wilcoxon as wilcoxon
