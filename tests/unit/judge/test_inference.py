"""Estimates from a model's grades and a random sample of people's: their level, their width, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ringtrue.errors import CannotDecide, InputError
from ringtrue.judge import draw_sample, rectified

IDS = [f"q{n:04}" for n in range(1000)]
LEAST = 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400)
"""400 repeats of an interval that holds in 95 % fall below this once in 700; benchmarks/judge.py takes more repeats."""


def simulated(kind: str, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return true differences of two searches, whose mean is 0.04, and what a judge of this kind makes of them."""
    true = 0.04 + 0.2 * rng.standard_normal(size)
    wrong = {
        "independent": 0.5 * true + 0.1 * rng.standard_normal(size),
        "systematic by query": true + 0.3 * (rng.random(size) < 0.5),
        "favours one search": true + 0.1 + 0.05 * rng.standard_normal(size),
        "random": 0.2 * rng.standard_normal(size),
        "perfect": true.copy(),
    }
    return true, wrong[kind]


@pytest.mark.parametrize("kind", ["independent", "systematic by query", "favours one search", "random", "perfect"])
@pytest.mark.parametrize(("judged", "size"), [(30, 300), (100, 1000)])
def test_the_interval_holds_whatever_the_judge_is_like(kind: str, judged: int, size: int) -> None:
    rng, repeats, covered, claimed, widths = np.random.default_rng(3), 400, 0, 0, []
    for seed in range(repeats):
        true, judge = simulated(kind, size, rng)
        sample = draw_sample(IDS[:size], judged, seed=seed)
        by_query = dict(zip(IDS, true.tolist(), strict=False))
        found = rectified(
            {one: by_query[one] for one in sample.query_ids}, dict(zip(IDS, judge.tolist(), strict=False)), sample=sample
        )
        covered += found.both.low <= 0.04 <= found.both.high
        claimed += found.judge_only.low <= 0.04 <= found.judge_only.high
        widths.append(found.both.half_width / found.human_only.half_width)
    assert covered / repeats >= LEAST
    assert max(widths) <= 1.02, "a useless judge must cost nothing"
    if kind in ("systematic by query", "favours one search"):
        assert claimed / repeats < 0.2, "the judge alone is sure and wrong"
    if kind in ("perfect", "independent"):
        assert np.mean(widths) < 0.95


def test_without_strata_it_is_the_regression_estimate() -> None:
    rng = np.random.default_rng(5)
    true, judge = simulated("independent", 200, rng)
    sample = draw_sample(IDS[:200], 40, seed=1)
    human = {one: float(true[IDS.index(one)]) for one in sample.query_ids}
    found = rectified(human, dict(zip(IDS, judge.tolist(), strict=False)), sample=sample)
    h = np.array([human[one] for one in sample.query_ids])
    places = [IDS.index(one) for one in sample.query_ids]
    j, rest = judge[places], np.delete(judge, places)
    weight = (np.cov(h, j)[0, 1] * 39 / 38 / 40) / (j.var(ddof=1) * 39 / 38 / 40 + judge.var(ddof=1) / 160)
    residuals = h - weight * j
    error = math.sqrt(residuals.var(ddof=1) * 39 / 38 / 40 + weight**2 * judge.var(ddof=1) / 160)
    assert found.weight == pytest.approx(weight)
    assert found.both.mean == pytest.approx(h.mean() + weight * (rest.mean() - j.mean()))
    assert found.both.half_width == pytest.approx(stats.t.ppf(0.975, 38) * error)
    assert found.human_only.half_width == pytest.approx(stats.t.ppf(0.975, 39) * h.std(ddof=1) / math.sqrt(40))
    assert found.worth == pytest.approx(40 * (found.human_only.half_width / found.both.half_width) ** 2)


def test_a_stratified_sample_covers_every_stratum_and_its_interval_holds() -> None:
    rng, repeats, covered = np.random.default_rng(6), 400, 0
    kinds = {one: ("rare" if place % 10 == 0 else "usual") for place, one in enumerate(IDS)}
    shift = np.array([0.3 if kinds[one] == "rare" else 0.0 for one in IDS])
    for seed in range(repeats):
        true, judge = simulated("independent", 1000, rng)
        sample = draw_sample(IDS, 40, seed=seed, strata=kinds)
        assert sum(kinds[one] == "rare" for one in sample.query_ids) == 4
        values = dict(zip(IDS, (true + shift).tolist(), strict=True))
        found = rectified(
            {one: values[one] for one in sample.query_ids}, dict(zip(IDS, judge.tolist(), strict=True)), sample=sample
        )
        covered += found.both.low <= 0.07 <= found.both.high
    assert covered / repeats >= LEAST


def test_a_judge_that_says_one_thing_counts_for_nothing() -> None:
    sample = draw_sample(IDS, 20)
    human = {one: float(place) for place, one in enumerate(sample.query_ids)}
    found = rectified(human, dict.fromkeys(IDS, 0.5), sample=sample)
    assert (found.weight, found.both.mean) == (0.0, pytest.approx(9.5))


def test_queries_that_were_not_drawn_by_this_sample_are_refused() -> None:
    sample, judge = draw_sample(IDS, 20), dict.fromkeys(IDS, 0.5)
    human = dict.fromkeys(sample.query_ids, 0.5)
    with pytest.raises(CannotDecide, match="drawn from 1000 other queries than the 999 that the model graded"):
        rectified(human, dict.fromkeys(IDS[1:], 0.5), sample=sample)
    with pytest.raises(CannotDecide, match="1 of 20 queries of the sample are not judged, such as"):
        rectified(dict(list(human.items())[1:]), judge, sample=sample)
    other = next(one for one in IDS if one not in human)
    with pytest.raises(CannotDecide, match=f"query '{other}' was judged, but not drawn"):
        rectified({**human, other: 1.0}, judge, sample=sample)
    with pytest.raises(InputError, match=r"the value of query 'q0003' by the model is nan"):
        rectified(human, {**judge, "q0003": math.nan}, sample=sample)
    with pytest.raises(InputError, match="alpha = 1"):
        rectified(human, judge, sample=sample, alpha=1)


def test_a_sample_is_random_repeatable_and_independent_of_the_order() -> None:
    sample = draw_sample(IDS, 40, seed=7)
    assert draw_sample(reversed(IDS), 40, seed=7) == sample
    assert draw_sample(IDS, 40, seed=8).query_ids != sample.query_ids
    drawn = np.zeros(1000)
    for seed in range(500):
        drawn[[int(one[1:]) for one in draw_sample(IDS, 100, seed=seed).query_ids]] += 1
    assert stats.chisquare(drawn).pvalue > 0.001, "every query is drawn equally often"


@pytest.mark.parametrize(
    ("ids", "count", "strata", "says"),
    [
        (["a", "a", "b"], 15, None, "query 'a' is listed 2 times"),
        (IDS[:100], 14, None, "cannot draw 14 of 100 queries; draw at least 15"),
        (IDS[:20], 20, None, "fewer than all of them"),
        (IDS[:100], 20, dict.fromkeys(IDS[:99], "x"), "query 'q0099' has no stratum"),
        (IDS[:100], 20, {**dict.fromkeys(IDS[:100], "x"), "q0001": "y"}, "stratum 'y' has only 1"),
        (IDS[:100], 20, {one: place % 11 for place, one in enumerate(IDS[:100])}, "20 queries cannot cover 11 strata twice"),
    ],
)
def test_a_sample_that_cannot_be_drawn_says_why(ids: list[str], count: int, strata: dict[str, str] | None, says: str) -> None:
    with pytest.raises(InputError, match=says):
        draw_sample(ids, count, strata=strata)
