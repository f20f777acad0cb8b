"""What several raters said becomes one grade by a named rule, and their agreement a coefficient."""

from __future__ import annotations

import pytest

from ringtrue.errors import CannotDecide, InputError
from ringtrue.golden import Rating, agreement, disputes, settle


def said(*grades: int, query: str = "q", doc: str = "d") -> list[Rating]:
    return [Rating(query, doc, f"r{n}", grade, f"2026-01-0{n + 1}") for n, grade in enumerate(grades)]


@pytest.mark.parametrize(
    ("rule", "grades", "result"),
    [
        ("majority", (3, 1, 3), 3),
        ("majority", (1, 3), 1),
        ("majority", (0, 3, 3, 0), 0),
        ("max", (0, 1, 0), 1),
        ("newest", (3, 2, 0), 0),
    ],
)
def test_the_rule_decides(rule, grades, result) -> None:
    assert settle(said(*grades), rule=rule) == {("q", "d"): result}


def test_of_one_raters_ratings_the_newest_counts_wherever_it_stands() -> None:
    later, earlier = Rating("q", "d", "ada", 0, "2026-01-02"), Rating("q", "d", "ada", 3, "2026-01-01")
    assert settle([later, earlier], rule="max") == {("q", "d"): 0}


def test_adjudication_settles_disputes_only_by_the_adjudicator() -> None:
    agreed, disputed = said(2, 2, query="q1"), said(0, 3, query="q2")
    with pytest.raises(CannotDecide, match="q2 / d"):
        settle([*agreed, *disputed], rule="adjudicated", adjudicator="chair")
    chair = Rating("q2", "d", "chair", 1, "2026-02-01")
    assert settle([*agreed, *disputed, chair], rule="adjudicated", adjudicator="chair") == {("q1", "d"): 2, ("q2", "d"): 1}


@pytest.mark.parametrize(
    ("options", "says"), [({"rule": "majorty"}, "'majority'"), ({"rule": "adjudicated"}, "name the adjudicator")]
)
def test_a_rule_that_cannot_work_is_named(options, says) -> None:
    with pytest.raises(InputError, match=says):
        settle(said(1, 2), **options)


def test_two_raters_get_kappa_and_three_alpha() -> None:
    two = [*said(3, 3, query="a"), *said(0, 0, query="b"), *said(0, 3, query="c"), *said(3, 0, query="e")]
    assert agreement(two).name == "Cohen's kappa"
    assert agreement(two).coefficient == 0.0
    three = [*said(3, 3, 3, query="a"), *said(0, 0, 0, query="b")]
    assert agreement(three).name.startswith("Krippendorff's alpha")
    assert agreement(three).coefficient == 1.0
    with pytest.raises(CannotDecide, match="only 'r0'"):
        agreement(said(3))


def test_spellings_of_one_name_are_one_rater_whose_newest_grade_counts() -> None:
    twice = [Rating("q", "d", "Ada", 3, "2026-01-01"), Rating("q", "d", " ada ", 0, "2026-01-02")]
    assert settle(twice, rule="max") == {("q", "d"): 0}
    assert disputes(twice) == ()
    with pytest.raises(CannotDecide, match="only 'ada'"):
        agreement(twice)


def test_disputes_are_listed_with_the_widest_gap_first() -> None:
    found = disputes([*said(2, 3, query="narrow"), *said(0, 3, query="wide"), *said(1, 1, query="none")])
    assert [(dispute.query_id, dict(dispute.grades)) for dispute in found] == [
        ("wide", {"r0": 0, "r1": 3}),
        ("narrow", {"r0": 2, "r1": 3}),
    ]
