"""Figures about an agent's memory over many answers, on examples small enough to count by hand."""

from __future__ import annotations

import math

import pytest

from ringtrue.errors import InputError
from ringtrue.measures import (
    abstention,
    calibration,
    cold_start,
    dedup_token_savings,
    personalisation_lift,
    risk_coverage,
)


def test_abstention_is_precision_and_recall_of_silence() -> None:
    # Silent: a, b, d (d was never answered at all). Deserved silence: a, c.
    found = abstention({"a": [], "b": [], "c": ["x"], "e": ["x"]}, negative={"a", "c"}, queries={"a", "b", "c", "d", "e"})
    assert (found.silent, found.negative, found.silent_rate) == (3, 2, 3 / 5)
    assert (found.precision, found.recall, found.f1) == (1 / 3, 1 / 2, 2 / 5)


def test_abstention_without_silence_or_without_negatives_is_undefined() -> None:
    found = abstention({"a": ["x"]}, negative=(), queries={"a"})
    assert math.isnan(found.precision)
    assert math.isnan(found.recall)
    assert math.isnan(found.f1)
    assert found.silent_rate == 0.0


def test_risk_coverage_answers_the_surest_first() -> None:
    found = risk_coverage([0.9, 0.8, 0.7, 0.6], [True, False, True, True])
    assert found.coverage == (0.25, 0.5, 0.75, 1.0)
    assert found.risk == (0.0, 0.5, pytest.approx(1 / 3), 0.25)
    assert found.area == pytest.approx((0 + 0.5 + 1 / 3 + 0.25) / 4)


def test_equal_confidence_is_answered_together_whatever_the_order() -> None:
    one = risk_coverage([0.5, 0.5, 0.9], [True, False, True])
    assert one == risk_coverage([0.5, 0.9, 0.5], [False, True, True])
    assert one.coverage == (pytest.approx(1 / 3), 1.0)
    assert one.risk == (0.0, pytest.approx(1 / 3))


def test_trap_08_a_curve_over_nothing_has_no_area() -> None:
    assert math.isnan(risk_coverage([], []).area)
    assert math.isnan(calibration([], []).ece)


def test_calibration_error_brier_and_bins() -> None:
    found = calibration([0.95, 0.85, 0.15, 1.0], [True, False, False, True], bins=10)
    # Bins: 0.15 alone (right 0), 0.85 alone (right 0), 0.95 and 1.0 together (right 1, confidence 0.975).
    assert [(group.count, group.accuracy) for group in found.bins] == [(1, 0.0), (1, 0.0), (2, 1.0)]
    assert found.ece == pytest.approx((0.15 + 0.85 + 2 * 0.025) / 4)
    assert found.brier == pytest.approx((0.05**2 + 0.85**2 + 0.15**2 + 0.0) / 4)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: calibration([1.2], [True]), "1.2"),
        (lambda: calibration([0.5], [True], bins=0), "bins=0"),
        (lambda: calibration([0.5], [True, False]), "1 confidences for 2 outcomes"),
        (lambda: risk_coverage([math.nan], [True]), "not a number"),
    ],
)
def test_confidences_that_cannot_be_used_are_named(call, says) -> None:
    with pytest.raises(InputError, match=says):
        call()


GRADES = {"first": {"a": 1}, "later": {"a": 1}, "nothing": {"a": 0}}


def test_cold_start_compares_first_questions_with_later_ones() -> None:
    found = cold_start({"first": ["x", "a"], "later": ["a"], "nothing": ["x"]}, GRADES, cold={"first"})
    assert (found.cold, found.warm, found.ratio) == (0.5, 1.0, 0.5)


def test_cold_start_without_cold_questions_has_no_ratio() -> None:
    found = cold_start({"later": ["a"]}, {"later": {"a": 1}}, cold=())
    assert math.isnan(found.cold)
    assert math.isnan(found.ratio)


def test_personalisation_lift_is_the_difference_in_mrr() -> None:
    boosted, plain = {"first": ["a"], "later": ["a"]}, {"first": ["x", "a"], "later": ["a"]}
    grades = {query: GRADES[query] for query in ("first", "later")}
    assert personalisation_lift(boosted, plain, grades) == pytest.approx(0.25)
    assert personalisation_lift(plain, boosted, grades) == pytest.approx(-0.25)


def test_token_savings_add_up_and_an_unknown_count_is_an_error() -> None:
    assert dedup_token_savings(["a", "b", "a"], {"a": 120, "b": 30}) == 270
    assert dedup_token_savings([], {}) == 0
    with pytest.raises(InputError, match="'c'"):
        dedup_token_savings(["c"], {"a": 1})
