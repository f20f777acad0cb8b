"""Judgments, runs and golden sets as values: what they keep, how they order, what they refuse."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.records import (
    Document,
    GoldenSet,
    Hit,
    Judgment,
    Qrels,
    Query,
    Ranking,
    Run,
    check_grade,
    check_id,
    check_score,
)


def golden(**changes: object) -> GoldenSet:
    base = GoldenSet(
        id="tiny",
        version="1.0.0",
        queries=(Query("q1", "first"), Query("q2", "second", negative=True)),
        judgments=(Judgment("q1", "d1", 2),),
        documents=(Document("d1", "text"),),
    )
    return dataclasses.replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Qrels.from_dict({"q": ["a"]}), "the judgments of query 'q'"),
        (lambda: Run.from_dict({"q": ["a"]}), "the answer to query 'q'"),
        (lambda: Run.from_rankings({"q": "abc"}), "the answer to query 'q' is 'abc'"),
        (lambda: Run.from_rankings([Ranking("q", ()), Ranking("q", ())]), "query 'q' is answered twice"),
    ],
)
def test_an_answer_of_the_wrong_shape_names_its_query(build, says) -> None:
    with pytest.raises(InputError, match=says):
        build()


class TestQrels:
    def test_rows_become_columns_and_come_back(self) -> None:
        rows = [("q1", "d1", 3), ("q2", "d1", 0), ("q1", "d2", -1)]
        qrels = Qrels.of(rows)
        assert qrels.query_ids == ("q1", "q2")
        assert qrels.query.tolist() == [0, 1, 0]
        assert qrels.grade.tolist() == [3, 0, -1]
        assert list(qrels) == rows
        assert len(qrels) == 3
        assert qrels.to_dict() == {"q1": {"d1": 3, "d2": -1}, "q2": {"d1": 0}}

    def test_a_query_without_a_judgment_is_kept(self) -> None:
        qrels = Qrels.from_dict({"q1": {"d1": 1}, "q2": {}})
        assert qrels.query_ids == ("q1", "q2")
        assert qrels.to_dict() == {"q1": {"d1": 1}, "q2": {}}

    def test_with_queries_adds_what_is_new_once_and_leaves_the_original_alone(self) -> None:
        qrels = Qrels.of([("q1", "d1", 1)])
        wider = qrels.with_queries(["q2", "q1", "q2"])
        assert wider.query_ids == ("q1", "q2")
        assert qrels.query_ids == ("q1",)
        assert wider.with_queries(["q1"]) is wider

    def test_a_judgment_repeated_with_the_same_grade_counts_once_and_is_reported(self) -> None:
        qrels = Qrels.of([("q1", "d1", 1), ("q1", "d1", 1), ("q1", "d1", 1), ("q2", "d1", 1)])
        assert len(qrels) == 2
        assert qrels.repeated == 2

    def test_two_grades_for_one_pair_are_an_error_that_names_both(self) -> None:
        with pytest.raises(InputError, match="query 'q1' judges document 'd1' twice, as 1 and as 2; keep one of the two"):
            Qrels.of([("q1", "d1", 1), ("q1", "d1", 2)])

    @pytest.mark.parametrize("row", [("", "d1", 1), (" ", "d1", 1), ("q1", "", 1), ("q1", "\t", 1)])
    def test_a_blank_id_is_an_error_that_names_its_neighbour(self, row: tuple[str, str, int]) -> None:
        other = "d1" if not row[0].strip() else "q1"
        with pytest.raises(InputError, match=rf"\(beside '{other}'\) is not usable; write a non-blank text"):
            Qrels.of([row])

    @pytest.mark.parametrize("grade", [0.5, math.nan, math.inf, "2", None, 10**30])
    def test_a_grade_that_is_not_whole_is_an_error_that_names_query_and_document(self, grade: object) -> None:
        with pytest.raises(InputError, match="document 'd1' for query 'q1'"):
            Qrels.of([("q1", "d1", grade)])  # type: ignore[list-item]

    def test_whole_grades_of_any_type_are_taken(self) -> None:
        qrels = Qrels.of([("q", "a", 2.0), ("q", "b", np.int32(1)), ("q", "c", True), ("q", "d", np.float64(3))])  # type: ignore[list-item]
        assert qrels.to_dict() == {"q": {"a": 2, "b": 1, "c": 1, "d": 3}}


class TestRun:
    def test_a_scored_run_orders_by_score_and_then_by_document_id_both_descending(self) -> None:
        run = Run.from_dict({"q1": {"a": 1.0, "c": 2.0, "b": 2.0, "B": 2.0, "é": 2.0, "10": 1.0, "9": 1.0}})
        assert not run.ordered
        assert run.rankings() == {"q1": ["é", "c", "b", "B", "a", "9", "10"]}

    def test_a_live_answer_keeps_its_order_whatever_its_scores_say(self) -> None:
        run = Run.from_rankings([Ranking("q1", (Hit("a", 0.1), Hit("c", 0.9), Hit("b", 0.9)))])
        assert run.ordered
        assert run.rankings() == {"q1": ["a", "c", "b"]}
        assert run.score.tolist() == [0.1, 0.9, 0.9]

    def test_lists_of_ids_keep_their_order(self) -> None:
        run = Run.from_rankings({"q1": ["b", "a"], "q2": ["z"]})
        assert run.rankings() == {"q1": ["b", "a"], "q2": ["z"]}
        assert run.score.tolist() == [-1.0, -2.0, -1.0], "without scores the rank stands in, falling"

    def test_rows_may_arrive_in_any_order(self) -> None:
        rows = [("q2", "x", 1.0), ("q1", "a", 1.0), ("q2", "y", 3.0), ("q1", "b", 2.0), ("q1", "c", 1.0)]
        assert Run.of(rows).rankings() == {"q2": ["y", "x"], "q1": ["b", "c", "a"]}
        assert Run.of(rows[::-1]).rankings() == Run.of(rows).rankings()

    def test_iteration_is_in_rank_order(self) -> None:
        run = Run.of([("q1", "a", 1.0), ("q1", "b", 2.0)])
        assert list(run) == [("q1", "b", 2.0), ("q1", "a", 1.0)]
        assert len(run) == 2

    def test_a_repeated_document_keeps_its_best_place_and_score(self) -> None:
        run = Run.of([("q1", "a", 1.0), ("q1", "b", 2.0), ("q1", "a", 3.0)])
        assert run.rankings() == {"q1": ["a", "b"]}
        assert run.to_dict() == {"q1": {"a": 3.0, "b": 2.0}}

    def test_rankings_can_be_cut_and_the_cut_counts_documents_not_rows(self) -> None:
        run = Run.from_rankings({"q1": ["a", "a", "b", "c"]})
        assert run.rankings(k=2) == {"q1": ["a", "b"]}

    def test_an_empty_answer_is_an_answer(self) -> None:
        for run in (Run.from_dict({"q1": {"a": 1.0}, "q2": {}}), Run.from_rankings({"q1": ["a"], "q2": []})):
            assert run.answered == {"q2"}
            assert run.query_ids == ("q1",)
            assert run.rankings() == {"q1": ["a"], "q2": []}
            assert run.to_dict().keys() == {"q1", "q2"}

    def test_an_answer_that_failed_is_no_answer(self) -> None:
        run = Run.from_rankings([Ranking("q1", (Hit("a"),)), Ranking("q2", (), error="timeout")])
        assert run.query_ids == ("q1",)
        assert run.answered == frozenset()

    def test_with_empty_answers_leaves_known_queries_alone(self) -> None:
        run = Run.from_dict({"q1": {"a": 1.0}})
        assert run.with_empty_answers(["q1"]) is run
        assert run.with_empty_answers(["q2", "q2"]).answered == {"q2"}

    def test_chunks_take_the_name_of_their_document_and_the_original_keeps_its_own(self) -> None:
        run = Run.from_rankings({"q1": ["d1#2", "d2#1", "d1#1"]})
        mapped = run.map_documents({"d1#1": "d1", "d1#2": "d1", "d2#1": "d2"})
        assert mapped.rankings() == {"q1": ["d1", "d2"]}
        assert mapped.ordered
        assert run.rankings() == {"q1": ["d1#2", "d2#1", "d1#1"]}

    def test_map_documents_leaves_names_it_does_not_know(self) -> None:
        assert Run.from_rankings({"q1": ["x", "y"]}).map_documents({"x": "X"}).rankings() == {"q1": ["X", "y"]}

    @pytest.mark.parametrize(
        "score", [math.nan, math.inf, -math.inf, "1.0", None, 10**400], ids=["nan", "inf", "-inf", "text", "none", "huge"]
    )
    def test_a_score_that_is_no_finite_number_is_an_error_that_names_query_and_document(self, score: object) -> None:
        for build in (
            lambda: Run.of([("q1", "d1", score)]),  # type: ignore[list-item]
            lambda: Run.from_dict({"q1": {"d1": score}}),  # type: ignore[dict-item]
        ):
            with pytest.raises(InputError, match="document 'd1' for query 'q1' is not a finite number"):
                build()

    def test_an_infinite_score_in_a_live_answer_is_an_error_too(self) -> None:
        with pytest.raises(InputError, match="score inf of document 'd1' for query 'q1' is not a finite number"):
            Run.from_rankings([Ranking("q1", (Hit("d1", math.inf),))])

    @pytest.mark.parametrize(("query_id", "doc_id", "beside"), [("", "d1", "d1"), ("  ", "d1", "d1"), ("q1", "", "q1")])
    def test_a_blank_id_is_an_error_that_names_its_neighbour(self, query_id: str, doc_id: str, beside: str) -> None:
        for build in (
            lambda: Run.of([(query_id, doc_id, 1.0)]),
            lambda: Run.from_dict({query_id: {doc_id: 1.0}}),
            lambda: Run.from_rankings({query_id: [doc_id]}),
        ):
            with pytest.raises(InputError, match=rf"\(beside '{beside}'\) is not usable"):
                build()

    def test_ids_that_are_numbers_are_kept_as_text_and_so_match_the_same_ids_as_text(self) -> None:
        numbers: Any = {1: {12: 3, np.int64(13): 1}}
        assert Qrels.from_dict(numbers).to_dict() == {"1": {"12": 3, "13": 1}}
        assert Run.from_dict(numbers).to_dict() == {"1": {"12": 3.0, "13": 1.0}}
        answers: Any = {1: [12, 13], 2: []}
        run = Run.from_rankings(answers)
        assert (list(run), run.answered) == ([("1", "12", -1.0), ("1", "13", -2.0)], frozenset({"2"}))
        records: Any = (Query, Document, Judgment, Ranking)
        query, document, judgment, ranking = (
            made(*given) for made, given in zip(records, ((1, "ask"), (2, "text"), (1, 2, 3), (1, ())), strict=True)
        )
        assert (query.query_id, document.doc_id, judgment.query_id, judgment.doc_id) == ("1", "2", "1", "2")
        assert ranking.query_id == "1"

    def test_an_id_given_as_a_number_and_as_text_is_refused(self) -> None:
        twice: Any = {1: {"a": 1}, "1": {"b": 1}}
        for build in (
            Qrels.from_dict,
            Run.from_dict,
            lambda given: Run.from_rankings({query: list(given[query]) for query in given}),
        ):
            with pytest.raises(InputError, match="the id '1' is given twice, as a number and as text"):
                build(twice)

    @pytest.mark.parametrize("wrong", [True, 1.5, None])
    def test_what_is_neither_text_nor_a_whole_number_is_no_id(self, wrong: Any) -> None:
        with pytest.raises(InputError, match="is not usable; write a text or a whole number"):
            Run.from_rankings({"q1": [wrong]})

    def test_numbers_of_any_type_are_scores(self) -> None:
        run = Run.from_dict({"q": {"a": 3, "b": np.float32(1.5), "c": np.int64(2)}})  # type: ignore[dict-item]
        assert run.to_dict() == {"q": {"a": 3.0, "c": 2.0, "b": 1.5}}

    def test_order_where_breaks_only_the_ties_that_matter(self) -> None:
        run = Run.of([("q", "a", 1.0), ("q", "b", 1.0), ("q", "c", 0.0), ("q", "d", 0.0)])
        assert not len(run.order_where(np.array([False] * 4)).places), "already in order of score"
        partly = run.order_where(np.array([False, False, True, False]))
        assert partly.rows().tolist() == [0, 1, 3, 2]
        assert partly.place_of(np.arange(4)).tolist() == [0, 1, 3, 2]
        assert run.order.tolist() == [1, 0, 3, 2]

    def test_place_and_row_are_each_others_inverse(self) -> None:
        run = Run.of([("q2", "a", 1.0), ("q1", "b", 2.0), ("q2", "c", 1.0), ("q1", "d", 2.0), ("q1", "e", 3.0)])
        order = run.order_where(np.ones(5, np.bool_))
        assert order.rows().tolist() == [2, 0, 4, 3, 1]
        assert order.place_of(order.rows()).tolist() == [0, 1, 2, 3, 4]
        assert order.row_at(np.array([4, 0])).tolist() == [1, 2]


class TestGoldenSet:
    def test_its_table_covers_every_query_judged_or_not(self) -> None:
        assert golden().qrels.to_dict() == {"q1": {"d1": 2}, "q2": {}}

    def test_it_is_provisional_until_a_person_confirmed_a_judgment(self) -> None:
        assert golden().provisional
        assert golden(judgments=(Judgment("q1", "d1", 2, source="llm"),)).provisional
        assert not golden(
            judgments=(Judgment("q1", "d1", 2, source="llm"), Judgment("q1", "d2", 0, source="manual"))
        ).provisional

    def test_a_query_is_found_by_its_id_and_a_missing_one_is_named(self) -> None:
        assert golden().query("q2").negative
        with pytest.raises(InputError, match="golden set 'tiny' has no query 'q3'"):
            golden().query("q3")


@pytest.mark.parametrize(
    "record",
    [Query("q", "t"), Document("d", "t"), Judgment("q", "d", 1), Hit("d"), Ranking("q", ()), golden()],
    ids=lambda record: type(record).__name__,
)
def test_records_are_frozen(record: object) -> None:
    name = dataclasses.fields(record)[0].name  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, name, "other")


def test_the_checks_return_what_they_were_given_when_it_is_usable() -> None:
    assert check_id(" a b ", "document id") == " a b "
    assert check_grade(np.bool_(True), "q", "d") == 1
    assert check_score(np.float32(0.5), "q", "d") == 0.5
    with pytest.raises(InputError, match=r"^document id '' is not usable; write a non-blank text$"):
        check_id("", "document id")


def test_a_golden_set_says_how_many_judgments_people_confirmed() -> None:
    judged = [Judgment("q", f"d{n}", 1, source) for n, source in enumerate(["manual", "chair", "human", "bootstrap", None])]
    for part, confirmed, words in (
        (judged, 3, "3 of 5 judgments confirmed by a person"),
        (judged[:3], 3, "all 3 judgments confirmed by a person"),
        (judged[3:], 0, "provisional: 0 of 2 judgments confirmed by a person"),
        ([], 0, "provisional: 0 of 0 judgments confirmed by a person"),
    ):
        golden = GoldenSet("g", "1", (Query("q", "ask"),), tuple(part))
        assert (golden.confirmed, golden.reviewed, golden.provisional) == (confirmed, words, not confirmed)
