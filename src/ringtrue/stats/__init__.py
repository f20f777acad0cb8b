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
from ringtrue.stats.paired import (
    corrected as corrected,
    Correction as Correction,
    mean_interval as mean_interval,
    paired_effect as paired_effect,
    paired_t as paired_t,
    PairedT as PairedT,
    probability_above_zero as probability_above_zero,
    wilcoxon as wilcoxon,
)
from ringtrue.stats.power import (
    minimum_detectable_effect as minimum_detectable_effect,
    paired_power as paired_power,
    paired_sample_size as paired_sample_size,
)
from ringtrue.stats.rank import (
    jaccard as jaccard,
    kendall_tau_b as kendall_tau_b,
    ranking_difference as ranking_difference,
    ranking_spearman as ranking_spearman,
    ranking_tau_b as ranking_tau_b,
    RankingDifference as RankingDifference,
    RankingDifferenceKind as RankingDifferenceKind,
    rbo as rbo,
    spearman_rho as spearman_rho,
)
from ringtrue.stats.resample import (
    Bootstrap as Bootstrap,
    bootstrap_interval as bootstrap_interval,
    percentile_growth as percentile_growth,
    PercentileGrowth as PercentileGrowth,
    sign_flip as sign_flip,
)
from ringtrue.stats.sequential import (
    BetaBinomial as BetaBinomial,
    candidate_means as candidate_means,
    ConfidenceSequence as ConfidenceSequence,
    probability_better as probability_better,
    SequentialPlan as SequentialPlan,
    Sprt as Sprt,
)
from ringtrue.stats.sequential_simulation import (
    allowed_share as allowed_share,
    broken_promises as broken_promises,
    first_decisions as first_decisions,
    sequential_rates as sequential_rates,
    SequentialRate as SequentialRate,
)
from ringtrue.stats.verdict import (
    compare_paired as compare_paired,
    fewest_queries as fewest_queries,
    OUT_OF_REACH as OUT_OF_REACH,
    PairedVerdict as PairedVerdict,
    queries_to_settle as queries_to_settle,
    Word as Word,
)
