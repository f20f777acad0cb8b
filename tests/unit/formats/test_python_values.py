"""Judgments and runs given as Python values: dictionaries of dictionaries, lists, rows, records."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.measures import as_qrels, as_run
from ringtrue.records import Hit, Qrels, Ranking, Run


def test_dictionaries_of_dictionaries() -> None:
    assert as_qrels({"q1": {"a": 1}, "q2": {}}).to_dict() == {"q1": {"a": 1}, "q2": {}}
    run = as_run({"q1": {"a": 1, "b": np.float32(2.5)}, "q2": {}})
    assert run.to_dict() == {"q1": {"b": 2.5, "a": 1.0}, "q2": {}}
    assert not run.ordered


def test_dictionary_of_lists_and_ranking_records_keep_their_order() -> None:
    for answers in (
        {"q1": ["b", "a"], "q2": []},
        [Ranking("q1", (Hit("b", 0.1), Hit("a", 0.9))), Ranking("q2", ())],
        (Ranking(query, tuple(Hit(doc) for doc in docs)) for query, docs in {"q1": "ba", "q2": ""}.items()),
    ):
        run = as_run(answers)
        assert run.ordered
        assert run.rankings() == {"q1": ["b", "a"], "q2": []}


def test_rows_from_any_iterable() -> None:
    rows = [("q2", "a", 1), ("q1", "b", 2), ("q2", "c", 3)]
    assert as_run(iter(rows)).to_dict() == {"q2": {"c": 3.0, "a": 1.0}, "q1": {"b": 2.0}}
    assert Qrels.of(iter(rows)).to_dict() == {"q2": {"a": 1, "c": 3}, "q1": {"b": 2}}


def test_an_answer_with_an_error_is_no_answer() -> None:
    run = as_run([Ranking("q1", (Hit("a"),)), Ranking("q2", (), error="timeout")])
    assert run.rankings() == {"q1": ["a"]}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "1.5", None])
def test_scores_that_are_no_numbers_name_query_and_document(bad: object) -> None:
    with pytest.raises(InputError, match=r"'d9'.*'q7'.*not a finite number"):
        Run.of([("q7", "d9", bad)])  # type: ignore[list-item]


@pytest.mark.parametrize("bad", ["", "  ", "\n", None, True, 1.5])
def test_ids_that_are_blank_or_no_text_are_refused(bad: object) -> None:
    with pytest.raises(InputError, match=r"document id .* is not usable"):
        Run.of([("q7", bad, 1.0)])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"query id .* is not usable"):
        Qrels.of([(bad, "d9", 1)])  # type: ignore[list-item]


@pytest.mark.parametrize("bad", [1.5, math.nan, "1", None])
def test_grades_that_are_no_whole_numbers_name_query_and_document(bad: object) -> None:
    with pytest.raises(InputError, match=r"'d9'.*'q7'.*not a whole number"):
        Qrels.of([("q7", "d9", bad)])  # type: ignore[list-item]


def test_contradicting_judgments_name_both_grades() -> None:
    with pytest.raises(InputError, match=r"'q1'.*'a'.*as 1 and as 2"):
        Qrels.of([("q1", "a", 1), ("q1", "a", 2)])


def test_mixed_answers_are_refused() -> None:
    with pytest.raises(InputError, match="use one of the two"):
        as_run({"q1": {"a": 1.0}, "q2": ["b"]})


@pytest.mark.parametrize("value", ["q1 Q0 a 1 1 t", b"x", 7, None])
def test_values_that_are_no_run_say_what_to_pass(value: object) -> None:
    with pytest.raises(InputError, match="pass a Run"):
        as_run(value)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="pass Qrels"):
        as_qrels(value)  # type: ignore[arg-type]
