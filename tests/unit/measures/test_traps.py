"""Traps 1–10: faults that earlier systems shipped in their measures, each with the input that shows it."""

from __future__ import annotations

import math

import pytest

from ringtrue.errors import CannotDecide
from ringtrue.measures import score
from ringtrue.records import Hit, Ranking, Run

log2 = math.log2


def test_trap_01_ndcg_of_a_bad_ranking_is_not_1() -> None:
    """``ndcg_score(rel, rel)`` compares the labels with themselves and is 1.0 whatever the ranking."""
    grades = {"a": 3, "b": 2, "c": 1, "d": 0}
    best = 3 + 2 / log2(3) + 1 / log2(4)
    worst = 0 + 1 / log2(3) + 2 / log2(4) + 3 / log2(5)
    scores = {tuple(shown): score({"q": shown}, {"q": grades}, ["nDCG"])["nDCG"] for shown in (list("abcd"), list("dcba"))}
    assert scores[tuple("abcd")] == 1.0
    assert scores[tuple("dcba")] == pytest.approx(worst / best)
    assert worst / best < 0.7


def test_trap_02_ideal_dcg_comes_from_the_judgments_not_from_the_retrieved_list() -> None:
    """The answer is in the best order it could be in, yet the best document is not in it."""
    scores = score({"q": ["b", "c"]}, {"q": {"a": 3, "b": 2, "c": 1}}, ["nDCG", "nDCG@2"])
    assert scores["nDCG"] == pytest.approx((2 + 1 / log2(3)) / (3 + 2 / log2(3) + 1 / log2(4)))
    assert scores["nDCG@2"] == pytest.approx((2 + 1 / log2(3)) / (3 + 2 / log2(3)))


def test_trap_02_the_recall_base_is_all_relevant_documents_not_the_retrieved_ones() -> None:
    scores = score({"q": ["a"]}, {"q": {"a": 1, "b": 1, "c": 1, "d": 1}}, ["R@10", "AP", "F1"])
    assert scores["R@10"] == 1 / 4
    assert scores["AP"] == 1 / 4
    assert scores["F1"] == pytest.approx(2 * 1 * (1 / 4) / (1 + 1 / 4))


def test_trap_03_a_document_found_twice_counts_once() -> None:
    """Counted twice, this list has nDCG 1.31 and recall 1.5."""
    scores = score({"q": ["a", "b", "a"]}, {"q": {"a": 1, "b": 1}}, ["nDCG", "R@5", "AP", "NumRelRet"])
    twice = (1 + 1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3))
    assert round(twice, 2) == 1.31
    assert scores.aggregate == {"nDCG": 1.0, "R@5": 1.0, "AP": 1.0, "NumRelRet": 2}
    assert scores.counted.duplicates == 1


def test_trap_03_several_chunks_of_one_document_count_once() -> None:
    run = Run.from_rankings({"q": ["a#1", "b#1", "a#2"]}).map_documents({"a#1": "a", "a#2": "a", "b#1": "b"})
    scores = score(run, {"q": {"a": 1, "b": 1}}, ["nDCG", "R@5", "AP"])
    assert scores.aggregate == {"nDCG": 1.0, "R@5": 1.0, "AP": 1.0}
    assert scores.counted.duplicates == 1


def test_trap_04_recall_is_not_a_hit_rate() -> None:
    scores = score({"q": ["a", "x"]}, {"q": {"a": 1, "b": 1, "c": 1, "d": 1}}, ["R@5", "Success@5", "AllRelevant@5"])
    assert scores.aggregate == {"R@5": 1 / 4, "Success@5": 1.0, "AllRelevant@5": 0.0}


def test_trap_05_ap_divides_by_relevant_not_by_hits() -> None:
    scores = score({"q": ["a", "x", "b"]}, {"q": {"a": 1, "b": 1, "c": 1, "d": 1}}, ["AP", "AP@1"])
    assert scores["AP"] == pytest.approx((1 + 2 / 3) / 4)
    assert scores["AP"] != pytest.approx((1 + 2 / 3) / 2)
    assert scores["AP@1"] == 1 / 4, "the cut-off does not shrink the base either"


@pytest.mark.parametrize(
    "arm",
    [
        {},
        [],
        [Ranking("q1", (), error="arm not deployed"), Ranking("q2", (), error="arm not deployed")],
        {"another": ["a"]},
    ],
    ids=["no answers", "no rankings", "every answer failed", "other queries"],
)
def test_trap_06_an_arm_that_did_not_run_has_no_score(arm: object) -> None:
    with pytest.raises(CannotDecide, match="run and judgments share no query"):
        score(arm, {"q1": {"a": 1}, "q2": {"a": 1}}, ["R@5", "nDCG@10"])  # type: ignore[arg-type]


def test_trap_06_an_arm_that_ran_and_found_nothing_does_score_0() -> None:
    scores = score({"q1": [], "q2": ["x"]}, {"q1": {"a": 1}, "q2": {"a": 1}}, ["R@5", "nDCG@10"])
    assert scores.aggregate == {"R@5": 0.0, "nDCG@10": 0.0}
    assert scores.counted.missing == ()


def test_trap_07_unanswered_queries_stay_in_the_mean() -> None:
    grades = {f"q{number}": {"a": 1} for number in range(1, 5)}
    run = [Ranking("q1", (Hit("a"),)), Ranking("q2", (), error="timeout"), Ranking("q3", ())]
    scores = score(run, grades, ["RR", "nDCG@10", "P@1", "R@5", "AP", "Success@1"])
    assert scores.aggregate == dict.fromkeys(scores.aggregate, 1 / 4)
    assert scores.counted.queries == 4
    assert scores.counted.missing == ("q2", "q4")


def test_trap_08_the_mean_of_nothing_is_unknown() -> None:
    scores = score({"q1": ["a"], "q2": ["b"]}, {"q1": {"a": 0}, "q2": {"b": 0}}, ["R@5", "RR", "AP", "nDCG@10", "GMAP"])
    assert all(math.isnan(value) for value in scores.aggregate.values())
    assert scores.counted.without_relevant == ("q1", "q2")
    assert scores.summary("RR").count == 0
    assert scores.worst("RR") == []


def test_trap_08_judgments_without_a_query_are_refused() -> None:
    with pytest.raises(CannotDecide, match="run and judgments share no query"):
        score({"q1": ["a"]}, {}, ["R@5"])


def test_trap_09_unjudged_documents_are_not_removed_in_silence() -> None:
    shown = ["x", "y", "z", "a"]
    scores = score({"q": shown}, {"q": {"a": 1}}, ["RR", "P@4", "nDCG", "RR(judged_only=True)"])
    assert scores["RR"] == 1 / 4
    assert scores["P@4"] == 1 / 4
    assert scores["nDCG"] == pytest.approx(1 / log2(5))
    assert scores["RR(judged_only=True)"] == 1.0, "only where the name of the measure says so"
    assert scores.judged.tolist() == [1 / 4], "and how many were judged is always told"


def test_trap_10_rr_at_k_reads_the_same_order_as_rr() -> None:
    """Cutting the list first and sorting the rest again moves the tied documents."""
    run = {"q": {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0}}  # ranks: a, e, d, c, b
    for doc_id, rank in {"a": 1, "e": 2, "d": 3, "c": 4, "b": 5}.items():
        measures = [f"RR@{k}" for k in range(1, 7)]
        scores = score(run, {"q": {doc_id: 1}}, ["RR", *measures])
        assert scores["RR"] == pytest.approx(1 / rank)
        for k in range(1, 7):
            assert scores[f"RR@{k}"] == pytest.approx(1 / rank if rank <= k else 0.0)


def test_trap_10_every_measure_of_one_call_reads_one_order() -> None:
    run = {"q": dict.fromkeys("abcdefghij", 1.0)}
    scores = score(run, {"q": {"h": 1}}, ["RR", "RR@3", "R@3", "R@2", "P@3", "AP", "AP@3", "nDCG", "nDCG@3", "Success@2"])
    assert scores["RR"] == scores["RR@3"] == scores["AP"] == scores["AP@3"] == pytest.approx(1 / 3)
    assert scores["nDCG"] == scores["nDCG@3"] == pytest.approx(1 / log2(4))
    assert (scores["R@3"], scores["R@2"], scores["Success@2"]) == (1.0, 0.0, 0.0)
