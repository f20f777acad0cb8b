"""The worked examples, and the one whose fixture gives another number."""

from __future__ import annotations

import math

import pytest

from ringtrue.measures import score

FIVE = {f"d{number}": 1 for number in range(1, 6)}


def value(shown: list[str], grades: dict[str, int], measure: str) -> float:
    return score({"q": shown}, {"q": grades}, [measure])[measure]


class TestGain:
    """Labels [3, 1, 2] in that order; grades {d1: 3, d2: 2, d3: 1, d4: 0} ranked d1, d4, d2."""

    LABELS = {"a": 3, "b": 1, "c": 2}  # noqa: RUF012
    GRADES = {"d1": 3, "d2": 2, "d3": 1, "d4": 0}  # noqa: RUF012

    def test_linear_dcg_of_3_1_2_is_4_63(self) -> None:
        assert round(value(["a", "b", "c"], self.LABELS, "DCG@3"), 2) == 4.63

    def test_the_ideal_of_3_1_2_is_4_76(self) -> None:
        assert round(value(["a", "c", "b"], self.LABELS, "DCG@3"), 2) == 4.76

    def test_linear_ndcg_of_3_1_2_is_0_97(self) -> None:
        assert round(value(["a", "b", "c"], self.LABELS, "nDCG@3"), 2) == 0.97

    def test_exponential_ndcg_of_d1_d4_d2_is_0_905(self) -> None:
        exact = (7 + 3 / math.log2(4)) / (7 + 3 / math.log2(3) + 1 / math.log2(4))
        assert value(["d1", "d4", "d2"], self.GRADES, "nDCG(gain='exp')@3") == pytest.approx(exact, abs=1e-12)
        assert round(exact, 3) == 0.905

    def test_linear_ndcg_of_d1_d4_d2_is_0_840(self) -> None:
        exact = (3 + 2 / math.log2(4)) / (3 + 2 / math.log2(3) + 1 / math.log2(4))
        assert value(["d1", "d4", "d2"], self.GRADES, "nDCG@3") == pytest.approx(exact, abs=1e-12)
        assert round(exact, 3) == 0.840

    def test_linear_is_the_default_and_the_report_says_which_gain_was_used(self) -> None:
        scores = score({"q": ["d1", "d4", "d2"]}, {"q": self.GRADES}, ["nDCG@3", "nDCG(gain='exp')@3", "DCG", "P@3"])
        assert scores.counted.gain == (
            "nDCG@3: linear gain (the grade)",
            "nDCG(gain='exp')@3: exponential gain (2^grade − 1)",
            "DCG: linear gain (the grade)",
        )

    def test_on_binary_grades_both_gains_agree(self) -> None:
        grades = {"d1": 1, "d2": 1, "d4": 0}
        assert value(["d1", "d4", "d2"], grades, "nDCG") == value(["d1", "d4", "d2"], grades, "nDCG(gain='exp')")


class TestWorkedExamples:
    def test_three_of_five_in_the_top_ten_is_recall_0_60(self) -> None:
        top = ["d1", "d6", "d2", "d7", "d8", "d9", "d3", "d10", "d11", "d12"]
        assert value(top, FIVE, "R@10") == pytest.approx(0.60)

    def test_three_of_five_in_the_top_five_is_recall_0_6(self) -> None:
        assert value(["d1", "x", "d2", "y", "d3"], FIVE, "R@5") == pytest.approx(0.6)

    def test_recall_is_monotone_in_k(self) -> None:
        shown = ["d1", "x", "d2", "y", "d3", "d4", "z", "d5"]
        recalls = [value(shown, FIVE, f"R@{k}") for k in range(1, 12)]
        assert recalls == sorted(recalls)
        assert recalls == pytest.approx([0.2, 0.2, 0.4, 0.4, 0.6, 0.8, 0.8, 1, 1, 1, 1])

    def test_first_relevant_at_rank_3_is_a_third(self) -> None:
        assert value(["x", "y", "d1", "d2"], FIVE, "RR") == pytest.approx(1 / 3)

    def test_ranks_1_2_3_are_mrr_0_611(self) -> None:
        run = {"a": ["d1"], "b": ["x", "d1"], "c": ["x", "y", "d1"]}
        assert round(score(run, {query: {"d1": 1} for query in run}, ["RR"])["mrr"], 3) == 0.611

    def test_three_relevant_of_five_is_precision_0_6(self) -> None:
        assert value(["d1", "d2", "x", "d3", "y"], FIVE, "P@5") == pytest.approx(0.6)


def test_trap_44_the_fixture_that_claims_precision_0_4_gives_0_6() -> None:
    """[relevant-1, x, relevant-2, x', relevant-3] of five relevant: 3 of 5 shown are relevant, whatever a text claims."""
    grades = {"relevant-1": 2, "relevant-2": 3, "relevant-3": 2, "relevant-4": 2, "relevant-5": 3}
    shown = ["relevant-1", "x", "relevant-2", "x'", "relevant-3"]
    scores = score({"q": shown}, {"q": grades}, ["R@5", "P@5"], rel=2)
    assert scores["R@5"] == pytest.approx(0.6)
    assert scores["P@5"] == pytest.approx(0.6)
    assert scores["P@5"] != pytest.approx(0.4)


def test_trap_44_precision_0_4_needs_one_of_the_three_below_the_threshold() -> None:
    grades = {"relevant-1": 2, "relevant-2": 3, "relevant-3": 1, "relevant-4": 2, "relevant-5": 3}
    shown = ["relevant-1", "x", "relevant-2", "x'", "relevant-3"]
    scores = score({"q": shown}, {"q": grades}, ["P@5", "R@5"], rel=2)
    assert scores["P@5"] == pytest.approx(0.4)
    assert scores["R@5"] == pytest.approx(2 / 4)


def test_trap_44_the_fixture_as_printed_repeats_its_filler_and_still_gives_0_6() -> None:
    grades = {f"relevant-{number}": 2 for number in range(1, 6)}
    shown = ["relevant-1", "irrelevant", "relevant-2", "irrelevant", "relevant-3"]
    scores = score({"q": shown}, {"q": grades}, ["P@5", "R@5"], rel=2)
    assert scores.aggregate == {"P@5": pytest.approx(0.6), "R@5": pytest.approx(0.6)}
    assert scores.counted.duplicates == 1
