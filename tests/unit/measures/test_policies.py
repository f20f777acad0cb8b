"""The policies, clause by clause: what counts once, what counts as relevant, what is left out, and what is reported."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from ringtrue.errors import CannotDecide, InputError
from ringtrue.measures import Facts, Measure, as_qrels, as_run, score
from ringtrue.records import Document, GoldenSet, Hit, Judgment, Qrels, Query, Ranking, Run

log2 = math.log2


def golden(grades: dict[str, dict[str, int]], **fields: object) -> GoldenSet:
    base = GoldenSet(
        id="set",
        version="1",
        queries=tuple(Query(query_id, query_id) for query_id in grades),
        judgments=tuple(Judgment(query, doc, grade) for query, docs in grades.items() for doc, grade in docs.items()),
    )
    return dataclasses.replace(base, **fields)  # type: ignore[arg-type]


class TestIdeal:
    def test_the_ideal_ranking_is_built_from_all_judgments_of_the_query(self) -> None:
        scores = score({"q": ["b"]}, {"q": {"a": 3, "b": 1}}, ["nDCG@10", "nDCG@1"])
        assert scores["nDCG@10"] == pytest.approx(1 / (3 + 1 / log2(3)))
        assert scores["nDCG@1"] == pytest.approx(1 / 3)

    def test_the_ideal_ranking_is_cut_at_k_too(self) -> None:
        grades = {f"d{number}": 1 for number in range(20)}
        assert score({"q": list(grades)[:3]}, {"q": grades}, ["nDCG@3"])["nDCG@3"] == 1.0

    def test_each_query_has_its_own_ideal(self) -> None:
        run = {"q1": ["a"], "q2": ["a"]}
        scores = score(run, {"q1": {"a": 1}, "q2": {"a": 1, "b": 3}}, ["nDCG"])
        assert scores.of("nDCG").tolist() == pytest.approx([1.0, 1 / (3 + 1 / log2(3))])

    def test_negative_grades_gain_nothing_and_cost_nothing(self) -> None:
        scores = score({"q": ["p", "a"]}, {"q": {"a": 1, "p": -3}}, ["nDCG", "DCG"])
        assert scores["DCG"] == pytest.approx(1 / log2(3))
        assert scores["nDCG"] == pytest.approx(1 / log2(3))


class TestDuplicates:
    BOUNDED = (
        "nDCG@10",
        "R@10",
        "P@3",
        "AP",
        "RR",
        "F1@3",
        "RPrec",
        "Success@3",
        "Bpref",
        "SetP",
        "ERR",
        "RBP(p=0.5)",
        "infAP",
    )

    def test_a_repeated_document_keeps_its_best_rank_and_the_list_closes_up(self) -> None:
        scores = score({"q": ["a", "a", "b", "a", "c"]}, {"q": {"a": 1, "c": 1}}, ["AP", "NumRet", "P@2", "P@3", "SetP"])
        assert scores["AP"] == pytest.approx((1 / 1 + 2 / 3) / 2), "c stands at rank 3 of a, b, c"
        assert scores["NumRet"] == 3
        assert scores["P@2"] == 1 / 2
        assert scores["P@3"] == pytest.approx(2 / 3)
        assert scores["SetP"] == pytest.approx(2 / 3)
        assert scores.counted.duplicates == 2

    def test_the_best_rank_of_a_scored_run_is_the_highest_score_wherever_it_stands_in_the_file(self) -> None:
        run = Run.of([("q", "a", 1.0), ("q", "b", 2.0), ("q", "a", 3.0), ("q", "c", 2.5)])
        scores = score(run, {"q": {"a": 1, "b": 1}}, ["AP", "RR"])
        assert scores["RR"] == 1.0
        assert scores["AP"] == pytest.approx((1 / 1 + 2 / 3) / 2), "the order is a, c, b"
        assert scores.counted.duplicates == 1

    def test_no_measure_exceeds_one_however_often_a_document_repeats(self) -> None:
        scores = score({"q": ["a"] * 10 + ["b"] * 10}, {"q": {"a": 3, "b": 2, "n": 0}}, self.BOUNDED)
        assert all(0 <= value <= 1 for value in scores.aggregate.values())
        assert scores["nDCG@10"] == scores["R@10"] == scores["AP"] == 1.0
        assert scores.counted.duplicates == 18

    def test_a_repeated_unjudged_document_does_not_push_others_down_twice(self) -> None:
        scores = score({"q": ["x", "x", "x", "a"]}, {"q": {"a": 1}}, ["RR", "Judged@10"])
        assert scores["RR"] == 1 / 2
        assert scores["Judged@10"] == 1 / 2

    def test_the_same_document_for_two_queries_is_no_duplicate(self) -> None:
        scores = score({"q1": ["a"], "q2": ["a"]}, {"q1": {"a": 1}, "q2": {"a": 1}}, ["R@1"])
        assert scores["R@1"] == 1.0
        assert scores.counted.duplicates == 0

    def test_duplicates_are_reported_in_a_sentence(self) -> None:
        notes = score({"q": ["a", "a"]}, {"q": {"a": 1}}, ["RR"]).counted.notes()
        assert notes == ["1 repeated documents were removed from the run; each counts once, at its best rank"]

    def test_chunks_of_one_document_count_once_at_the_best_of_them(self) -> None:
        chunks = Run.from_rankings({"q": ["d1#3", "d1#1", "d2#7", "d1#2", "d3#1"]})
        run = chunks.map_documents({f"d{doc}#{part}": f"d{doc}" for doc in (1, 2, 3) for part in range(9)})
        scores = score(run, {"q": {"d1": 2, "d3": 1}}, ["nDCG@10", "R@3", "AP"])
        assert scores["R@3"] == 1.0
        assert scores["AP"] == pytest.approx((1 + 2 / 3) / 2)
        assert scores["nDCG@10"] == pytest.approx((2 + 1 / log2(4)) / (2 + 1 / log2(3)))
        assert scores.counted.duplicates == 2

    def test_chunks_of_a_scored_run_are_ordered_by_their_scores_first(self) -> None:
        chunks = Run.from_dict({"q": {"d1#1": 0.2, "d2#1": 0.5, "d1#2": 0.9}})
        run = chunks.map_documents({"d1#1": "d1", "d1#2": "d1", "d2#1": "d2"})
        assert score(run, {"q": {"d2": 1}}, ["RR"])["RR"] == 1 / 2


class TestThreshold:
    RUN = {"q": ["a", "b", "c"]}  # noqa: RUF012
    GRADES = {"q": {"a": 1, "b": 2, "c": 3}}  # noqa: RUF012

    def test_bare_qrels_have_threshold_1(self) -> None:
        scores = score(self.RUN, self.GRADES, ["P@3", "RR"])
        assert scores["P@3"] == scores["RR"] == 1.0
        assert scores.counted.rel == 1

    def test_a_golden_set_declares_its_own_default(self) -> None:
        scores = score(self.RUN, golden(self.GRADES, relevance_threshold=2), ["P@3", "RR", "R@2", "AP"])
        assert scores["P@3"] == pytest.approx(2 / 3)
        assert scores["RR"] == 1 / 2
        assert scores["R@2"] == 1 / 2
        assert scores["AP"] == pytest.approx((1 / 2 + 2 / 3) / 2)
        assert scores.counted.rel == 2

    def test_a_measure_overrides_the_golden_set(self) -> None:
        scores = score(self.RUN, golden(self.GRADES, relevance_threshold=2), ["P@3", "P(rel=1)@3", "P(rel=3)@3"])
        assert scores.of("P@3").tolist() == pytest.approx([2 / 3])
        assert scores["P(rel=1)@3"] == 1.0
        assert scores["P(rel=3)@3"] == pytest.approx(1 / 3)

    def test_the_caller_overrides_the_golden_set_and_the_measure_overrides_the_caller(self) -> None:
        scores = score(self.RUN, golden(self.GRADES, relevance_threshold=2), ["P@3", "P(rel=2)@3"], rel=3)
        assert scores["P@3"] == pytest.approx(1 / 3)
        assert scores["P(rel=2)@3"] == pytest.approx(2 / 3)
        assert scores.counted.rel == 3

    @pytest.mark.parametrize("measure", ["nDCG", "DCG", "ERR(max=3)", "RBP"])
    def test_graded_measures_keep_the_grades_below_the_threshold(self, measure: str) -> None:
        assert score(self.RUN, self.GRADES, [measure], rel=3)[measure] == score(self.RUN, self.GRADES, [measure])[measure]

    @pytest.mark.parametrize(
        "measure", ["R", "AP", "RR", "P@3", "F1@3", "Success@1", "AllRelevant@2", "RPrec", "Bpref", "SetP"]
    )
    def test_binary_measures_all_follow_the_threshold(self, measure: str) -> None:
        binary = {"q": {"a": 0, "b": 1, "c": 1}}
        assert score(self.RUN, self.GRADES, [measure], rel=2)[measure] == score(self.RUN, binary, [measure])[measure]

    def test_a_negative_threshold_would_find_what_nobody_judged_and_is_refused(self) -> None:
        with pytest.raises(InputError, match="rel=-1 would count documents that nobody judged"):
            score(self.RUN, {"q": {"a": 1, "b": -1}}, ["R"], rel=-1)


class TestNothingRelevant:
    RUN = {"q1": ["a", "x"], "q2": ["b"]}  # noqa: RUF012
    GRADES = {"q1": {"a": 1}, "q2": {"b": 0}}  # noqa: RUF012
    NEED_ONE = (
        "R@5",
        "RR",
        "AP",
        "nDCG@5",
        "RPrec",
        "Bpref",
        "F1@5",
        "Success@5",
        "AllRelevant@5",
        "infAP",
        "IPrec@0.5",
        "GMAP",
    )

    @pytest.mark.parametrize("measure", NEED_ONE)
    def test_such_a_query_is_left_out_of_the_mean_and_counted(self, measure: str) -> None:
        scores = score(self.RUN, self.GRADES, [measure])
        assert math.isnan(scores.of(measure)[1])
        assert scores[measure] == scores.of(measure)[0]
        assert scores.counted.without_relevant == ("q2",)
        assert scores.counted.queries == 2

    @pytest.mark.parametrize("measure", NEED_ONE)
    @pytest.mark.parametrize(("policy", "worth"), [("zero", 0.0), ("one", 1.0)])
    def test_the_named_policies_give_it_0_or_1(self, measure: str, policy: str, worth: float) -> None:
        scores = score(self.RUN, self.GRADES, [measure], zero_relevant=policy)  # type: ignore[arg-type]
        first = scores.of(measure)[0]
        if measure == "GMAP":
            assert scores[measure] == pytest.approx(math.sqrt(first * max(worth, 0.00001)))
        else:
            assert scores.of(measure)[1] == worth
            assert scores[measure] == pytest.approx((first + worth) / 2)
        assert scores.counted.without_relevant == ("q2",)
        assert scores.counted.zero_relevant == policy

    @pytest.mark.parametrize(
        ("policy", "fate"),
        [("exclude", "left out of the means that need one"), ("zero", "scored 0"), ("one", "scored 1")],
    )
    def test_the_policy_is_printed_wherever_it_was_used(self, policy: str, fate: str) -> None:
        notes = score(self.RUN, self.GRADES, ["R@5"], zero_relevant=policy).counted.notes()  # type: ignore[arg-type]
        assert notes == [f"1 queries have no relevant document (grade ≥ 1): {fate}"]

    @pytest.mark.parametrize("measure", ["P@5", "SetP", "DCG", "ERR", "RBP", "NumRel"])
    def test_measures_that_need_nothing_relevant_count_it(self, measure: str) -> None:
        assert score(self.RUN, self.GRADES, [measure]).of(measure)[1] == 0.0

    def test_a_golden_query_with_no_judgment_at_all_has_no_relevant_document_either(self) -> None:
        scores = score(self.RUN, golden({"q1": {"a": 1}, "q2": {}}), ["R@5", "P@5"])
        assert scores.counted.without_relevant == ("q2",)
        assert scores["R@5"] == 1.0
        assert scores["P@5"] == pytest.approx((1 / 5 + 0) / 2)

    def test_a_query_judged_only_by_negative_grades_has_no_relevant_document(self) -> None:
        scores = score(
            {"q1": ["a"], "q2": ["b"]}, {"q1": {"a": 1}, "q2": {"b": -1, "c": -2}}, ["AP", "NumRel", "P@1", "Judged@1"]
        )
        assert scores.counted.without_relevant == ("q2",)
        assert scores.aggregate == {"AP": 1.0, "NumRel": 1.0, "P@1": 0.5, "Judged@1": 0.5}

    def test_the_threshold_decides_who_has_nothing_relevant(self) -> None:
        scores = score({"q1": ["a"], "q2": ["a"]}, {"q1": {"a": 2}, "q2": {"a": 1}}, ["R@1", "R(rel=1)@1"], rel=2)
        assert scores.counted.without_relevant == ("q2",)
        assert np.isnan(scores.of("R@1")).tolist() == [False, True]
        assert scores.of("R(rel=1)@1").tolist() == [1.0, 1.0]

    def test_an_unknown_policy_is_met_with_the_nearest(self) -> None:
        with pytest.raises(InputError, match="zero_relevant='exlude' is not known; use 'exclude'"):
            score(self.RUN, self.GRADES, ["R@5"], zero_relevant="exlude")  # type: ignore[arg-type]


class TestMissingAndIgnored:
    GRADES = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}}  # noqa: RUF012

    def test_a_golden_query_the_run_lacks_scores_0_and_is_listed(self) -> None:
        measures = ["R@5", "RR", "AP", "nDCG@5", "P@1", "SetP", "Success@1", "ERR", "RBP(p=0.5)", "F1@5", "Bpref"]
        scores = score({"q1": ["a"]}, self.GRADES, measures)
        assert scores.counted.missing == ("q2", "q3")
        assert scores.query_ids == ("q1", "q2", "q3")
        for measure in measures:
            assert scores.of(measure)[1:].tolist() == [0.0, 0.0], measure
        assert scores["RR"] == pytest.approx(1 / 3)
        assert scores.counted.notes() == [
            "2 judged queries are missing from the run and score 0 (undefined if lower is better): q2, q3"
        ]

    def test_an_answer_that_failed_is_missing_and_an_empty_one_is_not(self) -> None:
        run = [Ranking("q1", (Hit("a"),)), Ranking("q2", (), error="timeout"), Ranking("q3", ())]
        scores = score(run, self.GRADES, ["RR", "SetP", "Silent"])
        assert scores.counted.missing == ("q2",)
        assert scores.of("RR").tolist() == [1.0, 0.0, 0.0]
        assert scores.of("SetP").tolist() == pytest.approx([1.0, 0.0, math.nan], nan_ok=True)
        assert scores.of("Silent").tolist() == pytest.approx([0.0, math.nan, 1.0], nan_ok=True), "to fail is not to keep silent"

    def test_a_query_that_was_never_answered_never_looks_like_the_best_answer(self) -> None:
        facts = Facts({"a": {"record_status": "retired"}}, {"q1": {"forbidden": ["a"]}, "q2": {"forbidden": ["a"]}})
        measures = ["FalseInject@3", "Forbidden@3", "Stale@3"]
        grades = {"q1": {"a": 0, "b": 1}, "q2": {"a": 0, "b": 1}}
        scores = score({"q1": ["a"]}, grades, measures, facts=facts)
        for measure in measures:
            assert scores.of(measure).tolist() == pytest.approx([1.0, math.nan], nan_ok=True), measure
            assert scores[measure] == 1.0

    def test_tiers_that_a_query_lacks_leave_it_undefined_under_every_policy(self) -> None:
        facts = Facts({"a": {"importance_tier": "critical"}, "b": {"importance_tier": "normal"}})
        grades = {"q1": {"a": 1}, "q2": {"b": 1}}
        measure = "ImportanceRecall(tiers=['critical'])@5"
        for policy in ("exclude", "zero", "one"):
            values = score({"q1": ["a"], "q2": ["b"]}, grades, [measure], facts=facts, zero_relevant=policy).of(measure)
            assert values.tolist() == pytest.approx([1.0, math.nan], nan_ok=True), policy

    def test_the_precision_of_nothing_returned_is_undefined(self) -> None:
        scores = score({"q1": ["a"], "q2": []}, {"q1": {"a": 1}, "q2": {"a": 1}}, ["SetP", "SetP@3", "P@1"])
        assert np.isnan(scores.of("SetP")).tolist() == [False, True]
        assert scores["SetP"] == scores["SetP@3"] == 1.0
        assert scores["P@1"] == 0.5

    def test_a_query_nobody_judged_is_ignored_and_counted(self) -> None:
        scores = score({"q1": ["a"], "q2": ["a"], "q3": ["a"], "q8": ["a"], "q9": []}, self.GRADES, ["RR"])
        assert scores["RR"] == 1.0
        assert scores.query_ids == ("q1", "q2", "q3")
        assert scores.counted.ignored_queries == 2
        assert scores.counted.notes() == ["2 queries of the run are not judged and were ignored"]

    def test_averaging_over_common_queries_is_trec_evals_default(self) -> None:
        scores = score({"q1": ["a"], "q2": ["x"]}, self.GRADES, ["RR", "NumQ"], average_over="common")
        assert scores["RR"] == 0.5
        assert scores["NumQ"] == 2
        assert scores.query_ids == ("q1", "q2")
        assert scores.counted.missing == ("q3",)
        assert scores.counted.notes() == [
            "1 judged query is missing from the run: q3; -c (average_over='judged' in Python) counts it as 0"
        ]
        assert scores.counted.average_over == "common"

    def test_a_run_that_shares_no_query_with_the_judgments_has_no_score(self) -> None:
        for over in ("judged", "common"):
            with pytest.raises(CannotDecide, match=r"share no query .*run: 'z'; judged: 'q1', 'q2', 'q3'.* same query ids"):
                score({"z": ["a"]}, self.GRADES, ["RR"], average_over=over)

    def test_a_query_that_is_both_missing_and_without_relevant_is_listed_twice_and_left_out_once(self) -> None:
        scores = score({"q1": ["a"]}, {"q1": {"a": 1}, "q2": {"b": 0}}, ["R@5", "P@1"])
        assert scores.counted.missing == scores.counted.without_relevant == ("q2",)
        assert scores["R@5"] == 1.0
        assert scores["P@1"] == 0.5

    def test_many_missing_queries_are_named_up_to_five(self) -> None:
        grades = {f"q{number}": {"a": 1} for number in range(8)}
        notes = score({"q0": ["a"]}, grades, ["RR"]).counted.notes()
        assert notes == [
            "7 judged queries are missing from the run and score 0 (undefined if lower is better): q1, q2, q3, q4, q5 …"
        ]


def test_precision_divides_by_k_even_when_fewer_were_returned() -> None:
    scores = score({"q": ["a", "b"]}, {"q": {"a": 1, "b": 1}}, ["P@1", "P@2", "P@5", "P@10"])
    assert scores.aggregate == {"P@1": 1.0, "P@2": 1.0, "P@5": 2 / 5, "P@10": 2 / 10}


class TestTies:
    def test_equal_scores_are_ordered_by_document_id_descending(self) -> None:
        scores = score({"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, {"q": {"a": 1}}, ["RR"])
        assert scores["RR"] == pytest.approx(1 / 3)
        assert score({"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, {"q": {"c": 1}}, ["RR"])["RR"] == 1.0

    def test_ids_compare_as_text_not_as_numbers(self) -> None:
        assert score({"q": {"9": 1.0, "10": 1.0}}, {"q": {"9": 1}}, ["RR"])["RR"] == 1.0

    def test_lists_keep_their_order(self) -> None:
        assert score({"q": ["a", "b", "c"]}, {"q": {"a": 1}}, ["RR"])["RR"] == 1.0
        hits = (Hit("a", 0.5), Hit("b", 0.5), Hit("c", 0.9))
        assert score([Ranking("q", hits)], {"q": {"a": 1}}, ["RR"])["RR"] == 1.0

    def test_a_tie_across_a_cutoff_is_reported(self) -> None:
        run = {"q1": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 1.0}, "q2": {"a": 2.0, "b": 2.0, "c": 2.0}, "q3": {"a": 1.0}}
        grades = {query: {"a": 1} for query in run}
        counted = score(run, grades, ["P@1", "P@2", "R@3", "RR@4", "AP"]).counted
        assert counted.tied_cutoffs == ((1, 1), (2, 2))
        assert counted.notes() == [
            "1 queries have equal scores on both sides of rank 1; the document id decides",
            "2 queries have equal scores on both sides of rank 2; the document id decides",
        ]

    def test_a_tie_on_one_side_of_the_cutoff_is_not_reported(self) -> None:
        run = {"q": {"a": 3.0, "b": 3.0, "c": 2.0, "d": 2.0}}
        assert score(run, {"q": {"a": 1}}, ["P@2", "P@4"]).counted.tied_cutoffs == ()

    def test_the_depth_that_cuts_every_answer_is_a_cutoff_too(self) -> None:
        run = {"q": {"a": 3.0, "b": 2.0, "c": 2.0, "d": 2.0}}
        assert score(run, {"q": {"a": 1}}, ["AP", "P@3"], depth=2).counted.tied_cutoffs == ((2, 1),)

    def test_repeats_do_not_hide_or_feign_a_tie(self) -> None:
        rows = [("q", "a", 3.0), ("q", "a", 2.0), ("q", "b", 2.0), ("q", "c", 1.0)]
        assert score(Run.of(rows), {"q": {"a": 1}}, ["P@1", "P@2"]).counted.tied_cutoffs == ()
        rows = [("q", "a", 3.0), ("q", "b", 2.0), ("q", "a", 2.0), ("q", "c", 2.0)]
        assert score(Run.of(rows), {"q": {"a": 1}}, ["P@1", "P@2"]).counted.tied_cutoffs == ((2, 1),)

    def test_lists_have_no_ties_and_ignored_queries_report_none(self) -> None:
        tied = [Ranking("q", (Hit("a", 1.0), Hit("b", 1.0)))]
        assert score(tied, {"q": {"a": 1}}, ["P@1"]).counted.tied_cutoffs == ()
        run = {"q": {"a": 1.0}, "other": {"a": 1.0, "b": 1.0}}
        assert score(run, {"q": {"a": 1}}, ["P@1"]).counted.tied_cutoffs == ()


class TestUnjudged:
    RUN = {"q": ["x", "a", "y", "n", "b"]}  # noqa: RUF012
    GRADES = {"q": {"a": 2, "b": 1, "n": 0, "z": 1}}  # noqa: RUF012

    def test_unjudged_documents_have_grade_0_and_keep_their_place(self) -> None:
        judged = {"q": {**self.GRADES["q"], "x": 0, "y": 0}}
        measures = ["P@5", "AP", "RR", "nDCG", "ERR", "RBP"]
        assert score(self.RUN, self.GRADES, measures).aggregate == score(self.RUN, judged, measures).aggregate

    def test_judged_only_condenses_the_list(self) -> None:
        scores = score(self.RUN, self.GRADES, ["RR(judged_only=True)", "P(judged_only=True)@3", "AP(judged_only=True)", "RR"])
        assert scores["RR(judged_only=True)"] == 1.0
        assert scores["P(judged_only=True)@3"] == pytest.approx(2 / 3)
        assert scores["AP(judged_only=True)"] == pytest.approx((1 / 1 + 2 / 3) / 3), "the base stays all relevant"
        assert scores["RR"] == 1 / 2, "the other measures of the same call are not condensed"

    def test_judged_only_removes_documents_that_were_pooled_but_not_judged(self) -> None:
        assert score({"q": ["p", "a"]}, {"q": {"a": 1, "p": -1}}, ["RR(judged_only=True)"])["RR(judged_only=True)"] == 1.0

    def test_the_judged_share_is_always_reported_beside(self) -> None:
        scores = score({**self.RUN, "r": ["x"]}, {**self.GRADES, "r": {"a": 1}, "s": {"a": 1}}, ["AP"])
        assert scores.judged.tolist() == pytest.approx([3 / 5, 0.0, math.nan], nan_ok=True)

    def test_bounds_lie_between_all_unjudged_irrelevant_and_all_maximally_relevant(self) -> None:
        scores = score(self.RUN, self.GRADES, ["P@5", "R@5", "nDCG@5", "RR", "DCG@2"], unjudged="bounds")
        best = {"q": {**self.GRADES["q"], "x": 2, "y": 2}}
        upper = score(self.RUN, best, ["P@5", "R@5", "nDCG@5", "RR"]).aggregate
        assert scores.bounds["P@5"] == pytest.approx((2 / 5, 4 / 5))
        assert scores.bounds["R@5"] == pytest.approx((2 / 3, 4 / 5))
        assert scores.bounds["RR"] == (1 / 2, 1.0)
        assert scores.bounds["DCG@2"] == pytest.approx((2 / log2(3), 2 + 2 / log2(3)))
        assert scores.bounds["nDCG@5"] == pytest.approx((scores["nDCG@5"], upper["nDCG@5"]))

    def test_bounds_reach_only_as_deep_as_the_measure_looks(self) -> None:
        scores = score(self.RUN, self.GRADES, ["R@1", "R@5"], unjudged="bounds")
        assert scores.bounds["R@1"] == pytest.approx((0.0, 1 / 4)), "of x and y only x is within the top 1"

    def test_the_highest_grade_of_a_golden_set_is_its_scale(self) -> None:
        scores = score(self.RUN, golden(self.GRADES, scale=(0, 3)), ["DCG@1"], unjudged="bounds")
        assert scores.bounds["DCG@1"] == (0.0, 3.0)

    def test_pooled_but_unjudged_documents_are_open_too(self) -> None:
        scores = score({"q": ["p", "a"]}, {"q": {"a": 1, "p": -1}}, ["P@2"], unjudged="bounds")
        assert scores.bounds["P@2"] == (0.5, 1.0)

    def test_a_fully_judged_or_missing_answer_has_no_width(self) -> None:
        measures = ["P@5", "R@5", "AP", "nDCG@5", "RR", "ERR"]
        scores = score({"q": ["a", "n"]}, {"q": {"a": 1, "n": 0}, "m": {"a": 1}}, measures, unjudged="bounds")
        assert all(low == high for low, high in scores.bounds.values())

    def test_bounds_of_list_measures_that_read_grades(self) -> None:
        facts = Facts(documents={"x": {"importance_tier": "critical"}, "a": {"importance_tier": "critical"}})
        measures = ["FalseInject@2", "FalseInject@4", "TierP@2", "ImportanceRecall@2", "Silent"]
        scores = score(self.RUN, self.GRADES, measures, unjudged="bounds", facts=facts)
        assert scores.bounds["FalseInject@2"] == (0.0, 1.0), "x is the only doubt among the first two"
        assert scores.bounds["FalseInject@4"] == (1.0, 1.0), "n is judged as not relevant"
        assert scores.bounds["TierP@2"] == (0.5, 1.0)
        assert scores.bounds["ImportanceRecall@2"] == pytest.approx((3 / 5, 6 / 8))
        assert scores.bounds["Silent"] == (0.0, 0.0)

    def test_bounds_are_there_only_when_asked_for(self) -> None:
        scores = score(self.RUN, self.GRADES, ["P@5"])
        assert scores.upper is None
        with pytest.raises(InputError, match="unjudged='bounds'"):
            _ = scores.bounds


class TestEquivalenceClasses:
    def test_interchangeable_documents_are_one_relevant_item(self) -> None:
        judged = golden({"q": {"a": 2, "copy": 1, "b": 1}}, equivalence_classes=(("a", "copy"),))
        scores = score({"q": ["copy", "x", "a", "b"]}, judged, ["R@1", "R@3", "NumRel", "AP", "nDCG"])
        assert scores["NumRel"] == 2
        assert scores["R@1"] == 1 / 2, "any member is the hit"
        assert scores["R@3"] == 1.0, "the second member is removed and the list closes up"
        assert scores["AP"] == pytest.approx((1 + 2 / 3) / 2)
        assert scores["nDCG"] == pytest.approx((2 + 1 / log2(4)) / (2 + 1 / log2(3))), "the class has its best grade"

    def test_a_member_nobody_judged_is_a_hit_as_well(self) -> None:
        judged = golden({"q": {"a": 1}}, equivalence_classes=(("other", "a"),))
        assert score({"q": ["x", "other"]}, judged, ["RR"])["RR"] == 1 / 2

    def test_all_members_together_count_once(self) -> None:
        judged = golden({"q": {"a": 1, "b": 1, "c": 1}}, equivalence_classes=(("a", "b", "c"),))
        scores = score({"q": ["c", "a", "b"]}, judged, ["R@1", "P@3", "nDCG", "RPrec"])
        assert scores.aggregate == {"R@1": 1.0, "P@3": pytest.approx(1 / 3), "nDCG": 1.0, "RPrec": 1.0}
        assert scores.counted.duplicates == 2

    def test_classes_hold_for_every_query(self) -> None:
        judged = golden({"q1": {"a": 1}, "q2": {"b": 1}}, equivalence_classes=(("a", "b"),))
        assert score({"q1": ["b"], "q2": ["a"]}, judged, ["RR"])["RR"] == 1.0

    def test_what_a_query_declares_about_a_member_holds_for_the_class(self) -> None:
        declared = {"chain": ["b", "c"], "forbidden": ["b"], "top_1_chunk": "b"}
        judged = golden(
            {"q": {"b": 1}},
            queries=(Query("q", "text", declared),),
            documents=(Document("b", "text", metadata={"importance_tier": "critical"}),),
            equivalence_classes=(("a", "b"),),
        )
        measures = ["ChainCompleteness@2", "Forbidden@2", "Top1Chunk", "ImportanceRecall@2", "TierP@2"]
        for member in ("a", "b"):
            scores = score({"q": [member, "c"]}, judged, measures)
            assert scores.aggregate == dict.fromkeys(scores.aggregate, 1.0), member

    def test_documents_outside_every_class_stay_as_they_are(self) -> None:
        plain, classed = golden({"q": {"a": 1, "b": 0}}), golden({"q": {"a": 1, "b": 0}}, equivalence_classes=(("y", "z"),))
        run, measures = {"q": {"b": 1.0, "a": 1.0}}, ["AP", "nDCG", "Bpref"]
        assert score(run, plain, measures).aggregate == score(run, classed, measures).aggregate


class TestDepth:
    def test_depth_cuts_every_answer_first_like_trec_evals_capital_m(self) -> None:
        run, grades = {"q": ["a", "x", "b", "c"]}, {"q": {"a": 1, "b": 1, "c": 1}}
        scores = score(run, grades, ["R", "AP", "NumRet", "P@4", "SetP"], depth=3)
        expected = {"R": 2 / 3, "AP": (1 + 2 / 3) / 3, "NumRet": 3, "P@4": 2 / 4, "SetP": 2 / 3}
        assert scores.aggregate == pytest.approx(expected)

    def test_depth_counts_documents_after_repeats_are_gone(self) -> None:
        assert score({"q": ["x", "x", "a"]}, {"q": {"a": 1}}, ["RR"], depth=2)["RR"] == 1 / 2

    def test_depth_cuts_the_lists_of_list_measures_too(self) -> None:
        assert score({"q": ["a", "x"]}, {"q": {"a": 1}}, ["FalseInject@5"], depth=1)["FalseInject@5"] == 0.0

    @pytest.mark.parametrize("depth", [0, -1])
    def test_a_depth_that_leaves_nothing_is_refused(self, depth: int) -> None:
        with pytest.raises(InputError, match=f"depth={depth} leaves nothing to score"):
            score({"q": ["a"]}, {"q": {"a": 1}}, ["RR"], depth=depth)


class TestRefusals:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_scores_that_are_no_numbers_name_query_and_document(self, bad: float) -> None:
        with pytest.raises(InputError, match=f"score {bad} of document 'd7' for query 'q3' is not a finite number"):
            score({"q3": {"d7": bad}}, {"q3": {"d7": 1}}, ["RR"])

    def test_blank_ids_name_their_neighbour(self) -> None:
        with pytest.raises(InputError, match=r"document id '' \(beside 'q3'\)"):
            score({"q3": {"": 1.0}}, {"q3": {"d7": 1}}, ["RR"])
        with pytest.raises(InputError, match=r"query id ' ' \(beside 'd7'\)"):
            score({"q3": ["d7"]}, {" ": {"d7": 1}}, ["RR"])

    def test_nothing_asked_for_is_refused(self) -> None:
        with pytest.raises(InputError, match="no measure is asked for; name at least one, like nDCG@10"):
            score({"q": ["a"]}, {"q": {"a": 1}}, [])

    @pytest.mark.parametrize(("option", "legal"), [("average_over", "'judged'"), ("unjudged", "'irrelevant'")])
    def test_an_unknown_policy_is_shown_with_the_legal_ones(self, option: str, legal: str) -> None:
        with pytest.raises(InputError, match=f"{option}='sideways' is not known; use .*{legal}"):
            score({"q": ["a"]}, {"q": {"a": 1}}, ["RR"], **{option: "sideways"})  # type: ignore[arg-type]

    def test_a_run_that_mixes_scores_and_lists_is_refused(self) -> None:
        with pytest.raises(InputError, match="the run mixes"):
            score({"q1": {"a": 1.0}, "q2": ["a"]}, {"q1": {"a": 1}}, ["RR"])  # type: ignore[arg-type]

    @pytest.mark.parametrize("thing", [42, "run.txt", None])
    def test_what_is_no_run_and_no_judgments_is_refused_by_its_type(self, thing: object) -> None:
        with pytest.raises(InputError, match=f"a run cannot be a {type(thing).__name__}"):
            as_run(thing)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=f"judgments cannot be a {type(thing).__name__}"):
            as_qrels(thing)  # type: ignore[arg-type]

    def test_repeated_judgments_are_reported(self) -> None:
        qrels = Qrels.of([("q", "a", 1), ("q", "a", 1)])
        assert score({"q": ["a"]}, qrels, ["RR"]).counted.notes() == [
            "1 judgments are repeated with the same grade and count once"
        ]


def test_inputs_are_not_changed() -> None:
    run, grades = {"q": {"b": 1.0, "a": 1.0}}, {"q": {"a": 1, "z": -1}}
    score(run, grades, ["AP", "Silent"], unjudged="bounds", depth=1)
    assert run == {"q": {"b": 1.0, "a": 1.0}}
    assert grades == {"q": {"a": 1, "z": -1}}


def test_measures_may_be_texts_or_values_and_are_asked_for_by_any_name() -> None:
    scores = score({"q": ["a"]}, {"q": {"a": 1}}, ["ndcg_cut_10", Measure("RR")])
    assert list(scores.aggregate) == ["nDCG@10", "RR"]
    assert scores["ndcg@10"] == scores[Measure("nDCG", at=10)] == scores["nDCG@10"] == 1.0
