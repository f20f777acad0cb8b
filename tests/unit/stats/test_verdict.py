"""Better, worse or not enough evidence, with the reason and with how many more queries would settle it."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import (
    Correction,
    PairedVerdict,
    compare_paired,
    minimum_detectable_effect,
    paired_power,
    queries_to_settle,
)

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from error_rates import SHAPES, SPREAD, Shape, null_differences


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def only(values: object, **options: object) -> PairedVerdict:
    (verdict,) = compare_paired(values, rng=rng(), **options)  # type: ignore[arg-type]
    return verdict


def test_a_clear_gain_is_better_and_the_same_turned_is_worse() -> None:
    data = rng(3).normal(0.08, 0.1, 80)
    up, down = only(data), only(-data)
    assert (up.word, down.word) == ("better", "worse")
    assert up.low > 0 > down.high
    assert up.more_queries == 0
    assert "excludes 0" in up.reason
    assert up.warnings == ()


def test_noise_is_not_enough_evidence_and_says_what_would_be() -> None:
    data = rng(4).normal(0.01, 0.15, 30)
    found = only(data)
    sd = float(data.std(ddof=1))
    assert found.word == "not enough evidence"
    assert found.detectable == pytest.approx(minimum_detectable_effect(n=30, sd=sd))
    assert found.more_queries is not None
    assert paired_power(n=30 + found.more_queries, sd=sd, difference=found.diff) >= 0.80
    assert paired_power(n=29 + found.more_queries, sd=sd, difference=found.diff) < 0.80
    assert found.more_queries > 10 * 30
    assert found.reason.endswith("; too small to confirm with a set of this size")
    assert "80 % power" in found.reason
    assert any("fewer than 50 queries" in warning for warning in found.warnings)


@pytest.mark.parametrize(("values", "said"), [([], "no query"), ([0.9], "1 query"), ([math.nan, 0.9], "1 query")])
def test_trap_22_no_or_one_query_decides_nothing(values: list[float], said: str) -> None:
    found = only(np.array(values))
    assert found.word == "not enough evidence"
    assert found.reason.startswith("cannot decide")
    assert said in found.reason
    assert found.more_queries is None
    assert all(math.isnan(value) for value in (found.p, found.p_adjusted, found.low, found.high, found.detectable))


def test_trap_21_equal_differences_decide_from_six_queries_on() -> None:
    assert only([0.1] * 6).word == "better"
    assert only([-0.1] * 6).word == "worse"
    few = only([0.1] * 5)
    assert few.word == "not enough evidence"
    assert few.more_queries == 1
    assert few.p_adjusted == 2 / 32


def test_differences_that_are_all_zero_are_no_evidence_and_no_number_of_queries_settles_them() -> None:
    found = only([0.0] * 40)
    assert (found.word, found.p, found.more_queries) == ("not enough evidence", 1.0, None)
    assert found.reason == "all 40 differences are 0"


def test_the_correction_is_over_all_columns_and_may_be_chosen() -> None:
    data = rng(5).normal([0.035, 0.0, 0.0, 0.0, 0.0], 0.1, (60, 5))
    by = {
        name: compare_paired(data, rng=rng(), correction=name, resamples=20_000)  # type: ignore[arg-type]
        for name in ("holm", "benjamini-hochberg", "none")
    }
    plain = max(by["none"][0].p, by["none"][0].interval_p)
    assert by["none"][0].p_adjusted == plain
    assert by["holm"][0].p_adjusted == pytest.approx(5 * plain)
    assert by["benjamini-hochberg"][0].p_adjusted == pytest.approx(5 * plain)
    assert 0.01 < plain < 0.05
    assert [by[name][0].word for name in by] == ["not enough evidence", "not enough evidence", "better"]
    # Planned for the stricter level, hence more than a single test would need.
    assert by["holm"][0].detectable > by["none"][0].detectable
    assert by["holm"][0].more_queries


def test_both_the_interval_and_the_p_must_agree() -> None:
    """Skewed differences: the flips take them for symmetric and find them significant, the interval does not."""
    found = next(
        verdict
        for seed in range(400)
        if (verdict := only(math.exp(0.5) - rng(seed).lognormal(size=20), resamples=1_000)).p <= 0.05
        and verdict.low <= 0 <= verdict.high
    )
    assert found.word == "not enough evidence"
    assert "includes 0" in found.reason
    assert "adjusted p" not in found.reason


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg", "none"])
@pytest.mark.parametrize("shape", SHAPES)
def test_word_p_and_interval_of_every_column_say_the_same(shape: Shape, correction: Correction) -> None:
    """The interval excludes 0 exactly if the word is better or worse, and exactly if the adjusted p is at most alpha."""
    words = set()
    for seed in range(12):
        gains = rng(seed + 50).choice([0.0, 0.3, 0.6], 6) * SPREAD[shape]
        data = null_differences(shape, 20 + 8 * seed, 6, rng(seed)) + gains
        for found in compare_paired(data, rng=rng(), correction=correction, resamples=1_999):
            settled = found.word != "not enough evidence"
            assert settled == (found.p_adjusted <= 0.05) == (found.low > 0 or found.high < 0)
            assert f"{found.p_adjusted:.2g}" in found.reason or found.reason.startswith("all")
            words.add(found.word)
    assert {"better", "not enough evidence"} <= words


def test_columns_of_other_families_change_nothing() -> None:
    data = rng(5).normal([0.035, 0.02, 0.01, 0.0, 0.0], 0.1, (60, 5))
    alone = compare_paired(data[:, :1], rng=rng())[0]
    beside = compare_paired(data, rng=rng(), families=[0, 1, 2, 3, 4])[0]
    together = compare_paired(data, rng=rng(), families=[0, 0, 1, 2, 3])[0]
    assert (alone.word, alone.tests, alone.level) == (beside.word, beside.tests, beside.level) == ("better", 1, 0.05)
    assert beside.p_adjusted == pytest.approx(alone.p_adjusted, abs=0.005)
    assert (together.tests, together.level) == (2, 0.025)
    assert together.p_adjusted == pytest.approx(2 * beside.p_adjusted)
    assert together.low < beside.low


def test_so_few_queries_that_nothing_can_be_found_name_no_detectable_difference() -> None:
    found = only([0.2, 0.9], widest=1.0)
    assert (found.word, found.detectable, found.more_queries) == ("not enough evidence", math.inf, None)
    assert found.reason.endswith("2 queries are too few to show any difference")
    wild = only([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.5], widest=1.0)
    assert math.isinf(wild.detectable), "it would have to be larger than any difference of two shares"
    assert -1 <= wild.low <= wild.high <= 1
    assert math.isfinite(only([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.5]).detectable)


def test_a_catastrophe_over_few_queries_is_found_beside_many_measures() -> None:
    """Twenty of 25 queries fall far, four rise; eight measures that say nearly the same are compared at once."""
    falls = np.concatenate([np.full(20, -0.7), [0.3, 0.2, 0.4, 0.5, 0.0]]) + rng(1).normal(0, 0.1, 25)
    data = np.column_stack([falls + rng(column).normal(0, 0.05, 25) for column in range(8)])
    assert {found.word for found in compare_paired(data, rng=rng())} == {"worse"}


def test_turning_every_sign_turns_the_words_and_nothing_else() -> None:
    data = rng(8).normal([0.05, -0.06, 0.0], 0.1, (50, 3))
    up, down = (compare_paired(sign * data, rng=rng(2)) for sign in (1, -1))
    turned = {"better": "worse", "worse": "better", "not enough evidence": "not enough evidence"}
    assert [turned[verdict.word] for verdict in up] == [verdict.word for verdict in down]
    assert {verdict.word for verdict in up} == set(turned)
    for one, other in zip(up, down, strict=True):
        assert (one.p, one.p_adjusted) == (other.p, other.p_adjusted)
        assert one.interval_p == pytest.approx(other.interval_p, abs=1e-3)
        assert one.low == pytest.approx(-other.high, rel=1e-3)


def test_trap_20_the_global_seed_is_neither_read_nor_changed() -> None:
    data = rng(6).normal(0.02, 0.1, (40, 2))
    np.random.seed(1)
    before, first = str(np.random.get_state()), compare_paired(data, rng=rng(9))
    assert str(np.random.get_state()) == before
    np.random.seed(2)
    assert compare_paired(data, rng=rng(9)) == first


def test_trap_20_no_p_is_0_however_clear_the_difference() -> None:
    found = compare_paired(1 + rng(3).normal(0, 1e-3, (400, 2)), rng=rng())
    assert all(p > 0 for one in found for p in (one.t_p, one.p, one.interval_p, one.wilcoxon_p))


def test_queries_without_a_value_are_not_counted() -> None:
    found = only([0.1, math.nan, 0.2, 0.3])
    assert found.n == 3
    assert found.reason.startswith("+0.2000 on average over 3 queries")


def test_everything_is_there_for_every_column_and_seeded() -> None:
    data = rng(6).normal(0.02, 0.1, (40, 3))
    one, two = (compare_paired(data, rng=rng(9)) for _ in range(2))
    assert one == two
    assert len(one) == 3
    for found in one:
        assert all(math.isfinite(value) for value in (found.t, found.t_p, found.wilcoxon_p, found.effect, found.prob_better))
        assert found.bca[0] < found.diff < found.bca[1]


def test_resamples_that_could_never_show_anything_are_refused() -> None:
    with pytest.raises(InputError, match="at least 4000"):
        compare_paired(rng(1).normal(size=(40, 100)), rng=rng(), resamples=1_000)
    with pytest.raises(InputError, match="'holm'"):
        compare_paired([0.1, 0.2], rng=rng(), correction="hom")  # type: ignore[arg-type]


def test_trap_43_queries_to_settle_follow_the_power_of_the_t_test() -> None:
    assert queries_to_settle(n=15, sd=0.15, difference=0.05) == 73 - 15
    assert queries_to_settle(n=100, sd=0.15, difference=0.05) == 1
    assert queries_to_settle(n=15, sd=0.15, difference=0.0) is None
    assert queries_to_settle(n=15, sd=0.15, difference=1e-9) is None
    assert queries_to_settle(n=2, sd=0.001, difference=0.5) == 4  # six flips are the fewest that reach 0.05
    with pytest.raises(InputError, match="finite"):
        queries_to_settle(n=15, sd=0.15, difference=math.nan)


@pytest.mark.parametrize("difference", [1e-6, 3e-6, 5e-6, 1e-5, 1e-4])
def test_a_very_small_difference_has_a_number_or_none_but_no_error(difference: float) -> None:
    found = queries_to_settle(n=15, sd=0.1, difference=difference)
    assert found is None or found > 1_000_000


def test_a_reason_has_four_decimals_as_the_tables_have() -> None:
    reason = only(rng(1).normal(0.0721, 0.1, 30)).reason
    assert re.match(r"[+-]\d\.\d{4} on average over 30 queries; 95 % interval [+-]\d\.\d{4} to [+-]\d\.\d{4} ", reason), reason
