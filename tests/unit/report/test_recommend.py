"""Recommendations: every rule has a planted fault that triggers it and it alone; a clean run triggers none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from made import golden_set
from made_reports import GOLDEN, answered, clean, compared, comparison, healthy, lost, part, parts
from ringtrue.measures import Contribution
from ringtrue.records import Ranking
from ringtrue.report import Report, recommend
from ringtrue.report.advice import RULES


def precision_for_recall() -> Report:
    return clean(comparison=comparison(compared("P@5", -0.05), compared("R@20", 0.06)))


def found_too_late() -> Report:
    return clean(evaluation=healthy(losses=(*lost("below k", 20, rank=14), *lost("cut by fusion", 10, rank=18))))


def found_nowhere() -> Report:
    return clean(evaluation=healthy(losses=lost("not in any list", 30)))


def not_among_the_hits() -> Report:
    return clean(evaluation=healthy(losses=lost("not in any list", 30), components=(), setup={"k": 20}))


def cut_at_borders() -> Report:
    return clean(evaluation=healthy(losses=lost("wrong chunk", 12, rank=2)))


def cut_by_threshold() -> Report:
    return clean(evaluation=healthy(losses=lost("cut by threshold", 30)))


def useless_channel() -> Report:
    fusion = part("rrf", "fusion", skill=0.9)
    idle = replace(part("graph", "channel", skill=0.1), contribution=Contribution(0.1, 0.0, 120))
    return clean(evaluation=healthy(components=parts(idle, replace(fusion, name="without graph", kind="without"))))


def channel_that_hurts() -> Report:
    bad = part("graph", "channel", skill=0.1, unique=0.3)
    return clean(evaluation=healthy(components=parts(bad, part("without graph", "without", skill=1.0))))


def rerank_that_demotes() -> Report:
    return clean(evaluation=healthy(components=parts(part("rrf >> rerank", "stage", skill=0.3, seed=9))))


def one_kind_of_question() -> Report:
    good, bad = answered(skill=1.0), answered(skill=0.0, seed=8)
    weak = {query.query_id for query in GOLDEN.queries if query.metadata["query_type"] == "comparative"}
    rankings = [bad_one if bad_one.query_id in weak else good_one for good_one, bad_one in zip(good, bad, strict=True)]
    return clean(evaluation=healthy(rankings))


def unjudged() -> Report:
    sparse = golden_set(60, 200)
    return clean(evaluation=healthy(golden=sparse, losses=(), components=()))


PLANTED: dict[str, Callable[[], Report]] = {
    "threshold": precision_for_recall,
    "rerank": found_too_late,
    "vocabulary": found_nowhere,
    "overlap": cut_at_borders,
    "cut-off": cut_by_threshold,
    "drop-channel": useless_channel,
    "harmful-channel": channel_that_hurts,
    "harmful-stage": rerank_that_demotes,
    "weak-slice": one_kind_of_question,
    "judge-more": unjudged,
}


def test_every_rule_has_a_planted_fault() -> None:
    assert len(PLANTED) == len(RULES) + 1  # a harmful channel and a harmful stage are one rule


def test_a_clean_run_gets_no_advice() -> None:
    assert recommend(clean()) == ()


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_fault_triggers_its_rule_alone(rule: str) -> None:
    found = recommend(PLANTED[rule]())
    assert [one.rule for one in found] == [rule]
    numbers = [value for value in found[0].evidence.values() if not isinstance(value, str)]
    assert numbers
    assert all(map(math.isfinite, numbers))


def test_advice_names_what_it_is_about() -> None:
    by_rule = {rule: recommend(plant())[0] for rule, plant in PLANTED.items()}
    assert by_rule["threshold"].evidence["P@5"] == -0.05
    assert "P@5 −0.0500" in by_rule["threshold"].advice
    assert by_rule["rerank"].evidence == {"documents": 30, "share": pytest.approx(30 / 180), "k": 10, "depth": 20}
    assert "reranker (cross)" in by_rule["rerank"].advice
    assert by_rule["overlap"].evidence["share of questions"] == pytest.approx(0.2)
    assert "now fixed_512_50" in by_rule["overlap"].advice
    assert by_rule["drop-channel"].evidence["channel"] == "graph"
    assert by_rule["harmful-channel"].evidence["channel"] == "graph"
    assert by_rule["harmful-stage"].evidence["stage"] == "rrf >> rerank"
    assert by_rule["harmful-stage"].advice.startswith("rrf >> rerank hurts: without it nDCG@10 rises by ")
    assert by_rule["weak-slice"].evidence["slice"] == "query_type=comparative"


def test_a_short_list_of_one_search_is_not_called_a_lack_of_words() -> None:
    """Documents that are not among the 20 hits asked for may be ranked 21st: a reversed ranking, for example."""
    (found,) = recommend(not_among_the_hits())
    assert "are not among the 20 hits asked for: they rank lower, or the search does not find them at all." in found.advice
    assert "words or meanings" not in found.advice
    assert "in no candidate list of bm25, dense" in recommend(found_nowhere())[0].advice


def test_a_few_lost_documents_are_no_pattern() -> None:
    """Four of four documents in one stage are 100 %, and still four documents."""
    assert recommend(clean(evaluation=healthy(losses=lost("cut by threshold", 4)))) == ()


def test_documents_lost_beyond_the_asked_depth_do_not_speak_for_a_reranker() -> None:
    assert recommend(clean(evaluation=healthy(losses=lost("cut by fusion", 40)))) == ()


def test_of_two_equal_channels_only_one_is_to_go() -> None:
    fusion = part("rrf", "fusion", skill=0.9)
    twins = [
        replace(part(name, "channel", skill=0.6, seed=5), contribution=Contribution(0.5, 0.0, 600)) for name in ("bm25", "fts5")
    ]
    without = [replace(fusion, name=f"without {name}", kind="without") for name in ("bm25", "fts5")]
    found = recommend(clean(evaluation=healthy(components=(*twins, fusion, *without))))
    assert [one.rule for one in found] == ["drop-channel"]
    assert found[0].evidence["channel"] == "bm25"
    assert "The same holds for fts5" in found[0].advice


def test_a_step_that_only_shortens_the_list_is_no_bad_reranker() -> None:
    before = part("rrf", "fusion", skill=0.9)
    short = tuple(Ranking(ranking.query_id, ranking.hits[:1]) for ranking in before.rankings)
    cut = replace(before, name="rrf >> top(1)", kind="stage", rankings=short)
    assert recommend(clean(evaluation=healthy(components=parts(before, cut)))) == ()


def test_a_known_item_set_needs_no_further_judgments() -> None:
    sparse = replace(golden_set(60, 200), profile="known-item")
    assert recommend(clean(evaluation=healthy(golden=sparse, losses=(), components=()))) == ()


def test_a_better_judged_rival_is_named() -> None:
    half = replace(GOLDEN, judgments=tuple(one for number, one in enumerate(GOLDEN.judgments) if one.grade or number % 4))
    found = recommend(clean(evaluation=healthy(golden=half), other=healthy()))
    assert [one.rule for one in found] == ["judge-more"]
    assert found[0].evidence["Judged@10 of the other"] == pytest.approx(1.0)
