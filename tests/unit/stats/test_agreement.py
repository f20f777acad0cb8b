"""Agreement of raters: published worked examples and the definitions spelled out by brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.stats import Agreement, cohen_kappa, krippendorff_alpha

SEED = 7

# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section C: four observers, twelve units, gaps.
FOUR_OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def from_table(table: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """The two raters' labels that give this confusion table."""
    pairs = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return [i for i, _ in pairs], [j for _, j in pairs]


def kappa_by_definition(a: Sequence[int], b: Sequence[int], distance: Callable[[int, int], int]) -> float:
    n = len(a)
    observed = Fraction(sum(distance(x, y) for x, y in zip(a, b, strict=True)), n)
    expected = Fraction(sum(distance(x, y) for x in a for y in b), n * n)
    return float(1 - observed / expected)


def alpha_by_definition(ratings: Sequence[Sequence[int | None]], level: str) -> float:
    """Mean distance within units over mean distance between any two values, pair by pair."""
    units = [[value for value in unit if value is not None] for unit in zip(*ratings, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    values = sorted(value for unit in units for value in unit)

    def distance(c: int, k: int) -> Fraction:
        if level == "nominal":
            return Fraction(int(c != k))
        if level == "interval":
            return Fraction((c - k) ** 2)
        low, high = sorted((c, k))
        between = sum(low <= value <= high for value in values)
        return (between - Fraction(values.count(c) + values.count(k), 2)) ** 2 if c != k else Fraction(0)

    n = len(values)
    within = sum(
        (sum((distance(c, k) for c, k in itertools.permutations(unit, 2)), Fraction(0)) / (len(unit) - 1) for unit in units),
        Fraction(0),
    )
    between = sum((distance(c, k) for c, k in itertools.permutations(values, 2)), Fraction(0))
    return float(1 - (within / n) / (between / (n * (n - 1))))


def assert_consistent(agreement: Agreement) -> None:
    assert agreement.coefficient == pytest.approx(
        (agreement.observed - agreement.expected) / (1 - agreement.expected), abs=1e-12
    )


def test_cohen_kappa_of_fifty_grant_proposals() -> None:
    # Wikipedia, "Cohen's kappa", first example: 50 proposals, observed 0.70, expected 0.50, kappa 0.40.
    kappa = cohen_kappa(*from_table([[20, 5], [10, 15]]))
    assert kappa.coefficient == pytest.approx(0.40, abs=1e-12)
    assert (kappa.items, kappa.raters, kappa.name, kappa.defined) == (50, 2, "Cohen's kappa", True)
    assert [kappa.observed, kappa.expected] == pytest.approx([0.70, 0.50])


def test_cohen_kappa_of_the_table_in_cohen_1968() -> None:
    # Cohen (1968), Weighted kappa, table 1 (N = 200): kappa = .492.
    kappa = cohen_kappa(*from_table([[88, 14, 18], [10, 40, 10], [2, 6, 12]]))
    assert kappa.coefficient == pytest.approx(0.492, abs=5e-4)
    assert [kappa.observed, kappa.expected] == pytest.approx([0.70, 0.41])


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_cohen_kappa_equals_the_definition_on_random_labels(weights) -> None:  # type: ignore[no-untyped-def]
    power = {None: 0, "linear": 1, "quadratic": 2}[weights]
    rng = np.random.default_rng(SEED)
    for _ in range(25):
        a = rng.integers(0, 4, 40).tolist()
        b = [x if rng.random() < 0.5 else int(rng.integers(0, 4)) for x in a]
        kappa = cohen_kappa(a, b, weights=weights)
        expected = kappa_by_definition(a, b, lambda x, y: abs(x - y) ** power if x != y else 0)
        assert kappa.coefficient == pytest.approx(expected, abs=1e-12)
        assert_consistent(kappa)


def test_quadratic_kappa_is_the_concordance_correlation() -> None:
    # Krippendorff (1970): with squared gaps kappa = 2 cov / (var a + var b + (mean a - mean b)^2).
    rng = np.random.default_rng(SEED)
    a, b = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    covariance = float(((a - a.mean()) * (b - b.mean())).mean())
    expected = 2 * covariance / (a.var() + b.var() + (a.mean() - b.mean()) ** 2)
    assert cohen_kappa(a.tolist(), b.tolist(), weights="quadratic").coefficient == pytest.approx(expected, abs=1e-12)


def test_weighted_kappa_counts_the_gap_of_values_even_over_a_grade_nobody_used() -> None:
    # Grades 0, 2 and 3 only: 0 against 2 is two steps, though they are neighbours among the labels used.
    a, b = [0, 0, 2, 3, 3], [0, 2, 2, 3, 0]
    expected = kappa_by_definition(a, b, lambda x, y: abs(x - y))
    assert cohen_kappa(a, b, weights="linear").coefficient == pytest.approx(expected, abs=1e-12)


def test_weights_do_not_matter_with_two_labels() -> None:
    a, b = from_table([[20, 5], [10, 15]])
    plain = cohen_kappa(a, b).coefficient
    assert cohen_kappa(a, b, weights="linear").coefficient == pytest.approx(plain)
    assert cohen_kappa(a, b, weights="quadratic").coefficient == pytest.approx(plain)


def test_cohen_kappa_leaves_unrated_pairs_out_and_says_how_many_it_used() -> None:
    a = ["yes", None, "no", "no", math.nan, "yes"]
    b = ["yes", "no", "no", None, "no", "no"]
    kappa = cohen_kappa(a, b)
    assert kappa.items == 3
    assert kappa.coefficient == cohen_kappa(["yes", "no", "yes"], ["yes", "no", "no"]).coefficient


def test_perfect_agreement_on_varied_labels_is_exactly_one() -> None:
    labels = [0, 1, 2, 3, 3, 1, 0]
    for weights in (None, "linear", "quadratic"):
        assert cohen_kappa(labels, labels, weights=weights).coefficient == 1.0
    for level in ("nominal", "ordinal", "interval"):
        assert krippendorff_alpha([labels] * 3, level=level).coefficient == 1.0


@pytest.mark.parametrize(
    "agreement",
    [
        cohen_kappa(["yes"] * 9, ["yes"] * 9),
        cohen_kappa([3] * 9, [3] * 9, weights="linear"),
        krippendorff_alpha([[2, 2, 2], [2, 2, None]]),
        krippendorff_alpha([[2, 2, 2], [2, 2, None]], level="ordinal"),
        krippendorff_alpha([[2, 2, 2], [2, 2, None]], level="interval"),
    ],
)
def test_agreement_on_a_constant_label_is_undefined_not_perfect(agreement: Agreement) -> None:
    assert math.isnan(agreement.coefficient)
    assert not agreement.defined
    assert (agreement.observed, agreement.expected) == (1.0, 1.0)


def test_two_raters_with_one_label_each_that_differ_agree_no_better_than_chance() -> None:
    assert cohen_kappa(["yes"] * 5, ["no"] * 5).coefficient == 0.0


@pytest.mark.parametrize(
    "agreement", [cohen_kappa([], []), cohen_kappa([None], [1]), krippendorff_alpha([[1, None], [None, 2]])]
)
def test_trap_8_no_rated_pair_gives_no_number(agreement: Agreement) -> None:
    assert agreement.items == 0
    assert not agreement.defined
    assert math.isnan(agreement.observed)
    assert math.isnan(agreement.expected)


def test_cohen_kappa_refuses_bad_input() -> None:
    with pytest.raises(InputError, match="rater a has 1 labels and rater b has 2"):
        cohen_kappa([1], [1, 2])
    with pytest.raises(InputError, match="'quadratic'"):
        cohen_kappa([1], [1], weights="quadric")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="label 'high' has no place"):
        cohen_kappa(["low", "high"], ["low", "high"], weights="linear")
    with pytest.raises(InputError, match="label inf"):
        cohen_kappa([1.0, math.inf], [1.0, 2.0], weights="linear")


@pytest.mark.parametrize(("level", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorff_alpha_of_his_four_observer_example(level, expected: float) -> None:  # type: ignore[no-untyped-def]
    alpha = krippendorff_alpha(FOUR_OBSERVERS, level=level)
    assert alpha.coefficient == pytest.approx(expected, abs=5e-4)
    assert (alpha.items, alpha.raters) == (11, 4)
    assert_consistent(alpha)


def test_krippendorff_alpha_of_his_two_observer_examples() -> None:
    # Krippendorff (2011), section A, binary data: 0.095; section B, nominal data: 0.692.
    binary = krippendorff_alpha([[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]])
    assert binary.coefficient == pytest.approx(0.095, abs=5e-4)
    assert krippendorff_alpha([list("aabbdcccedda"), list("babbbccceddd")]).coefficient == pytest.approx(0.692, abs=5e-4)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_krippendorff_alpha_equals_the_definition_on_random_ratings_with_gaps(level) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(SEED)
    for _ in range(8):
        truth = rng.integers(0, 4, 15)
        ratings = [
            [None if rng.random() < 0.25 else int(t if rng.random() < 0.6 else rng.integers(0, 4)) for t in truth]
            for _ in range(3)
        ]
        alpha = krippendorff_alpha(ratings, level=level)
        assert alpha.coefficient == pytest.approx(alpha_by_definition(ratings, level), abs=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_krippendorff_alpha_reads_nan_in_an_array_as_missing(dtype) -> None:  # type: ignore[no-untyped-def]
    array = np.array([[math.nan if value is None else value for value in row] for row in FOUR_OBSERVERS], dtype=dtype)
    for level in ("nominal", "ordinal", "interval"):
        expected = krippendorff_alpha(FOUR_OBSERVERS, level=level)
        assert krippendorff_alpha(array, level=level) == expected


def test_krippendorff_alpha_refuses_bad_input() -> None:
    with pytest.raises(InputError, match="at least 2 raters"):
        krippendorff_alpha([[1, 2, 3]])
    with pytest.raises(InputError, match="rater 1 has 2 items and rater 0 has 3; fill gaps with None"):
        krippendorff_alpha([[1, 2, 3], [1, 2]])
    with pytest.raises(InputError, match="'ordinal'"):
        krippendorff_alpha([[1], [1]], level="ordnal")  # type: ignore[arg-type]
    for level in ("ordinal", "interval"):
        with pytest.raises(InputError, match="has no place on a scale"):
            krippendorff_alpha([["a", "b"], ["a", "b"]], level=level)
