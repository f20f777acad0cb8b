"""Bootstrap: the draws are draws with replacement, intervals are sane where there is little to go by."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats as scipy_stats

from ringtrue.errors import InputError
from ringtrue.stats import bootstrap_interval
from ringtrue.stats.resample import _base_rate, _poisson_pairs, block_rows, draw_counts, product, random_bytes

NAN = math.nan


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def drawn(n: int, rows: int, seed: int = 1) -> np.ndarray:
    buffer = np.empty((rows, n + n % 2), dtype=np.float32)
    return draw_counts(n, rng(seed), _poisson_pairs(_base_rate(n)), buffer)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 31, 200, 1001])
def test_every_resample_has_n_draws(n: int) -> None:
    counts = drawn(n, 500)
    assert counts.shape[1] == n
    assert 400 < len(counts) <= 500
    assert (counts.sum(axis=1) == n).all()
    assert (counts >= 0).all()


def test_counts_have_exactly_the_multinomial_distribution() -> None:
    """All 35 ways to draw 4 of 4 items, and 126 to draw 5 of 5, against their chances; the first by single draws alone."""
    for n in (4, 5, 7):
        counts = drawn(n, 200_000)
        seen = Counter(map(tuple, counts.astype(int).tolist()))
        ways = [way for way in np.ndindex(*([n + 1] * n)) if sum(way) == n]
        expected = np.array([scipy_stats.multinomial.pmf(way, n, [1 / n] * n) for way in ways]) * len(counts)
        common = expected >= 5
        observed = np.array([seen[way] for way in ways], dtype=float)
        pooled = [observed[~common].sum()] if (~common).any() else []
        pooled_expected = [expected[~common].sum()] if (~common).any() else []
        p = scipy_stats.chisquare([*observed[common], *pooled], [*expected[common], *pooled_expected], sum_check=False).pvalue
        assert p > 1e-4, n


@pytest.mark.parametrize("n", [30, 401])
def test_the_count_of_one_item_and_of_a_pair_has_the_binomial_distribution(n: int) -> None:
    counts = drawn(n, 100_000)
    # The last item shares its code with padding where n is odd; the first two share a code of the table.
    for column, chance in ((counts[:, 0], 1 / n), (counts[:, -1], 1 / n), (counts[:, 0] + counts[:, 1], 2 / n)):
        seen = np.bincount(column.astype(int), minlength=9)[:9]
        expected = scipy_stats.binom.pmf(np.arange(9), n, chance) * len(counts)
        kept = expected > 5
        p = scipy_stats.chisquare(
            [*seen[kept], len(counts) - seen[kept].sum()], [*expected[kept], len(counts) - expected[kept].sum()]
        ).pvalue
        assert p > 1e-4
    apart = np.cov(counts[:, 0], counts[:, n // 2])[0, 1]
    assert apart == pytest.approx(-1 / n, abs=5 / math.sqrt(len(counts)))


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.98, 1.0])
def test_the_table_and_its_rest_give_poisson_pairs_their_full_chance(rate: float) -> None:
    pairs = _poisson_pairs(rate)
    chance = Counter(map(tuple, pairs.table[: pairs.sure].astype(int).tolist()))
    total = {pair: count / 65536 for pair, count in chance.items()}
    left = 1 - pairs.sure / 65536
    for pair, share in zip(map(tuple, pairs.rest.astype(int).tolist()), np.diff(pairs.rest_chance, prepend=0.0)):
        total[pair] = total.get(pair, 0.0) + left * share
    for (one, two), found in total.items():
        assert found == pytest.approx(scipy_stats.poisson.pmf(one, rate) * scipy_stats.poisson.pmf(two, rate), abs=1e-12)
    assert sum(total.values()) == pytest.approx(1.0)


def test_equal_differences_have_an_interval_without_width() -> None:
    found = bootstrap_interval(np.array([[0.1, 0.0]] * 8), rng=rng())
    assert found.low.tolist() == found.high.tolist() == pytest.approx([0.1, 0.0])


def test_fewer_than_two_queries_have_no_interval() -> None:
    for values in ([], [0.3], [NAN, 0.3]):
        found = bootstrap_interval(np.array(values), rng=rng())
        assert math.isnan(found.low[0])
        assert math.isnan(found.high[0])


def test_two_queries_have_an_interval_within_their_range() -> None:
    found = bootstrap_interval([0.1, 0.5], rng=rng())
    assert 0.1 - 1e-6 <= found.low[0] <= found.high[0] <= 0.5 + 1e-6


def test_one_value_apart_from_the_rest_stays_finite() -> None:
    data = np.zeros(60)
    data[0] = 1e6
    found = bootstrap_interval(data, rng=rng())
    assert found.low[0] == 0.0
    assert 0 < found.high[0] <= 1e6


def test_an_end_at_0_is_0_and_not_a_rounding_beside_it() -> None:
    """Resamples that miss the few changed queries have a mean of exactly 0, which must count as held."""
    data = np.zeros((15, 1))
    data[:2, 0] = [0.13, 0.07]
    assert bootstrap_interval(data, rng=rng(), method="percentile").low[0] == 0.0


def test_a_spread_far_smaller_than_the_mean_is_kept() -> None:
    data = rng(4).normal(0, 1, 80)
    plain, lifted = (bootstrap_interval(data * 1e-6 + mean, rng=rng()) for mean in (0.0, 1e3))
    assert lifted.high[0] - lifted.low[0] == pytest.approx(plain.high[0] - plain.low[0], rel=1e-3)


def test_columns_that_lack_the_same_queries_share_their_resamples_and_others_do_not_disturb() -> None:
    data = rng(4).normal(0.1, 1, (70, 3))
    whole = bootstrap_interval(data[:, :2], rng=rng())
    data[5, 2] = NAN
    mixed = bootstrap_interval(data, rng=rng())
    apart = bootstrap_interval(np.delete(data[:, 2], 5), rng=rng(8))
    assert abs(mixed.low[2] - apart.low[0]) < 0.05
    for end in ("low", "high"):
        assert np.abs(getattr(mixed, end)[:2] - getattr(whole, end)).max() < 0.05


def test_trap_20_the_same_rng_gives_the_same_answer() -> None:
    data = rng(2).normal(0, 1, (100, 3))
    first, again, other = (bootstrap_interval(data, rng=rng(seed)).low.tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_turning_the_signs_turns_the_interval() -> None:
    data = rng(2).lognormal(size=80)
    up, down = (bootstrap_interval(sign * data, rng=rng(), resamples=20_000) for sign in (1, -1))
    assert up.low[0] == pytest.approx(-down.high[0], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resamples": 999}, "from 1,000"),
        ({"alpha": 1.0}, "alpha"),
        ({"method": "studentised", "alpha": 0.001, "resamples": 1_500}, "at least 2000"),
    ],
)
def test_unusable_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bootstrap_interval([0.1, 0.2], rng=rng(), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "queries", "width"), [(1, 1, 1), (3, 64, 2), (104, 10_001, 10), (5, 130, 900), (2, 70_000, 3)]
)
def test_the_product_over_stretches_is_the_product(rows: int, queries: int, width: int) -> None:
    weights = rng(1).poisson(1, (rows, queries)).astype(np.float32)
    values = rng(2).normal(size=(queries, width)).astype(np.float32)
    expected = weights.astype(float) @ values.astype(float)
    np.testing.assert_allclose(product(weights, values), expected, atol=1e-5 * math.sqrt(queries) + 1e-5)


def test_blocks_stay_small_whatever_is_asked() -> None:
    for queries, width in ((10, 10), (10_000, 10), (15, 4_000), (2_000_000, 3)):
        rows = block_rows(queries, width)
        assert rows >= 1
        assert rows == 1 or rows * max(queries, width) <= 1 << 20


def test_random_bytes_use_every_value_evenly() -> None:
    seen = np.bincount(random_bytes(rng(), 256_001), minlength=256)
    assert seen.sum() == 256_001
    assert scipy_stats.chisquare(seen).pvalue > 1e-4


def studentised_by_hand(data: np.ndarray, resamples: int, seed: int, alpha: float) -> tuple[float, float, float]:
    """The bootstrap-t as the books write it: indices, a t for each resample, its quantiles turned around."""
    n, draws = len(data), rng(seed).integers(0, len(data), (resamples, len(data)))
    sample = data[draws]
    spread = np.maximum(sample.std(axis=1, ddof=1), 0.3 * data.std(ddof=1))
    t = (sample.mean(axis=1) - data.mean()) / (spread / math.sqrt(n))
    error = data.std(ddof=1) / math.sqrt(n)
    above = (t >= data.mean() / error).mean()
    low, high = (data.mean() - error * np.quantile(t, share) for share in (1 - alpha / 2, alpha / 2))
    return float(low), float(high), float(2 * min(above, 1 - above))


@pytest.mark.parametrize("n", [12, 40, 301])
@pytest.mark.parametrize("shape", ["normal", "skewed", "mostly 0"])
def test_studentised_is_the_bootstrap_t_done_by_hand(shape: str, n: int) -> None:
    data = {
        "normal": rng(n).normal(0.3, 1, n),
        "skewed": rng(n).lognormal(size=n) - 1.2,
        "mostly 0": np.where(rng(n).random(n) < 0.7, 0.0, rng(n + 1).normal(0.3, 1, n)),
    }[shape]
    found = bootstrap_interval(data, rng=rng(), resamples=40_000, method="studentised")
    low, high, p = studentised_by_hand(data, 40_000, 2, 0.05)
    error = data.std(ddof=1) / math.sqrt(n)
    assert (found.low[0] - low) / error == pytest.approx(0, abs=0.12)
    assert (found.high[0] - high) / error == pytest.approx(0, abs=0.12)
    assert found.p[0] == pytest.approx(p, abs=0.015)


def test_studentised_is_wider_than_bca_on_the_side_where_the_unseen_lies() -> None:
    data = rng(5).lognormal(size=25)
    bca = bootstrap_interval(data, rng=rng(), resamples=20_000)
    found = bootstrap_interval(data, rng=rng(), resamples=20_000, method="studentised")
    assert found.high[0] > bca.high[0]
    assert math.isnan(bca.p[0])


def test_studentised_leaves_out_0_exactly_where_its_p_is_at_most_alpha() -> None:
    data = rng(7).normal(0.4, 1, (25, 300))
    data[:, 150:] = rng(8).choice([-0.5, 0.0, 0.5, 1.0], (25, 150))
    for alpha in (0.05, 0.1):
        found = bootstrap_interval(data, rng=rng(), alpha=alpha, resamples=1_999, method="studentised")
        outside = (found.low > 0) | (found.high < 0)
        assert (outside == (found.p <= alpha)).all()
        assert 10 < outside.sum() < 290


def test_studentised_stays_finite_where_resamples_miss_the_only_change() -> None:
    data = np.zeros(15)
    data[0] = 0.2
    found = bootstrap_interval(data, rng=rng(), method="studentised")
    assert -1 < found.low[0] < 0 < found.high[0] < 1
    assert 0 < bootstrap_interval([0.1, 0.5], rng=rng(), method="studentised").p[0] <= 1
