"""The best that judgments allow, and measures scored afterwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from made import answers, evaluation, golden_set
from ringtrue.records import GoldenSet, Hit, Judgment, Query, Ranking
from ringtrue.verdict import Policy, gate
from ringtrue.verdict.numbers import reachable, with_measures


def twins() -> GoldenSet:
    """One question, ten interchangeable documents: they are one answer."""
    names = tuple(f"twin{number}" for number in range(10))
    queries = tuple(Query(f"q{number}", f"question {number}") for number in range(6))
    judgments = tuple(Judgment(query.query_id, name, 3) for query in queries for name in names)
    return replace(golden_set(1), queries=queries, judgments=judgments, equivalence_classes=(names,), documents=(), slices=())


def test_trap_41_a_class_of_documents_can_be_found_whole() -> None:
    golden = twins()
    missed = [Ranking(query.query_id, (Hit("other"),), 1.0) for query in golden.queries]
    found = evaluation(golden, missed)
    assert reachable(found, "R@5") == 1.0
    assert gate(found, Policy(floors={"R@5": 0.8})).exit_code == 1


def test_trap_41_a_class_counts_once_for_precision() -> None:
    golden = twins()
    perfect = evaluation(golden, [Ranking(query.query_id, (Hit("twin3"),), 1.0) for query in golden.queries])
    assert reachable(perfect, "P@5") == pytest.approx(0.2)
    assert gate(perfect, Policy(floors={"P@5": 0.6})).exit_code == 3


def test_a_measure_is_scored_afterwards_on_classes_too() -> None:
    golden = twins()
    perfect = evaluation(golden, [Ranking(query.query_id, (Hit("twin3"),), 1.0) for query in golden.queries])
    found, problems = with_measures(perfect, ["nDCG@3"])
    assert problems == {}
    assert found.metrics["nDCG@3"] == 1.0


def test_a_measure_scored_afterwards_is_the_one_scored_at_once() -> None:
    golden = golden_set(20)
    once = evaluation(golden, answers(golden), measures=["RR", "nDCG@7"])
    later, _ = with_measures(evaluation(golden, answers(golden), measures=["RR"]), ["nDCG@7"])
    assert later.metrics == once.metrics
