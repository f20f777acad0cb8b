"""The main job end to end, as the validation tests of the seeds ask for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from made import evaluation, golden_set
from made_once import cache_from
from ringtrue.golden import load, locate
from ringtrue.measures import score
from ringtrue.run import evaluate
from ringtrue.verdict import Policy, compare, gate, read_baseline
from unit.retrieve.tiny_models import tiny_bert

FLOORS = {"R@5": 0.80, "P(rel=2)@5": 0.60, "RR": 0.70, "nDCG@5": 0.75}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, hotel_cache: Path) -> Any:
    """The documents are indexed already; nothing is evaluated yet."""
    patch = pytest.MonkeyPatch()
    patch.setenv("RINGTRUE_CACHE", str(cache_from(hotel_cache, tmp_path_factory.mktemp("cache"))))
    yield
    patch.undo()


def test_the_golden_set_loads_with_enough_of_everything() -> None:
    hotel = load("hotel")
    assert len(hotel.documents) >= 50
    assert len(hotel.queries) >= 20


def test_worked_examples_of_the_measures() -> None:
    """R@5 = 2 of 3 found, P@5 = 3 of 5, RR of first places 1 and 3, and an ideal ranking's nDCG of 1."""
    judged = {"q1": {"a": 3, "b": 3, "c": 3}, "q2": {"a": 2, "b": 2, "c": 2, "x": 0}}
    found = score({"q1": ["a", "x", "b", "y", "z"], "q2": ["x", "y", "a", "b", "c"]}, judged, ["R@5", "P(rel=2)@5", "RR"])
    assert found.per_query["q1"]["R@5"] == pytest.approx(2 / 3)
    assert found.per_query["q2"]["P(rel=2)@5"] == pytest.approx(3 / 5)
    assert found["RR"] == pytest.approx((1 + 1 / 3) / 2)
    assert score({"q1": ["a", "b", "c"]}, {"q1": {"a": 3, "b": 2, "c": 1}}, ["nDCG@5"])["nDCG@5"] == 1.0


def test_recall_of_three_quarters_fails_a_floor_of_four_fifths_by_name() -> None:
    golden = golden_set(20, relevant=4)
    relevant: dict[str, list[str]] = {}
    for judgment in golden.judgments:
        relevant.setdefault(judgment.query_id, []).append(judgment.doc_id)
    from ringtrue.records import Hit, Ranking

    rankings = [Ranking(query, tuple(Hit(doc_id) for doc_id in docs[:3]), 10.0) for query, docs in relevant.items()]
    found = evaluation(golden, rankings)
    assert found.metrics["R@5"] == pytest.approx(0.75)
    verdict = gate(found, Policy(floors={"R@5": 0.80}))
    assert (verdict.word, verdict.exit_code) == ("fail", 1)
    (failure,) = verdict.failures
    assert (failure.measure, failure.current, failure.threshold) == ("R@5", pytest.approx(0.75), 0.80)
    assert "R@5" in failure.message
    assert "0.7500 < 0.8000" in failure.message


def test_end_to_end_evaluation_writes_its_report_and_the_second_comes_from_the_cache(
    ringtrue: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = ringtrue("eval", "--golden", "hotel", "--retriever", "hybrid", "--json")
    assert first.code == 0
    assert first.json["cached"] is False
    (report,) = Path("reports").glob("ringtrue-eval-*.md")
    assert re.fullmatch(r"ringtrue-eval-\d{8}T\d{6}Z\.md", report.name)
    text = report.read_text()
    assert "hotel-v1.0.0" in text
    assert all(query.query_id in text for query in load("hotel").queries)
    second = ringtrue("eval", "--golden", "hotel", "--retriever", "hybrid")
    assert second.code == 0
    assert "cache" in second.out + second.err
    assert json.loads((Path(first.json["run_dir"]) / "run.json").read_text())["metrics"] == first.json["metrics"]


def test_the_shipped_hybrid_meets_the_floors_of_the_hotel_set() -> None:
    found = evaluate("hybrid", "hotel", measures=[*FLOORS, "nDCG@10"])
    assert {name: found.metrics[name] for name, floor in FLOORS.items() if found.metrics[name] < floor} == {}
    assert found.latency.p95 <= 500
    committed = read_baseline(locate("hotel") / "runs" / "baseline.json")
    verdict = gate(found, Policy(latency_increase=float("inf")), baseline=committed)
    assert [check.message for check in verdict.failures] == []
    assert verdict.word == "pass"


def test_ab_of_rrf_against_weighted_fusion() -> None:
    """The seeds' A/B: metrics of both, mean difference, t, p; significant below 0.05."""
    a = evaluate({"fusion_method": "rrf", "rrf_k": 60}, "hotel")
    b = evaluate({"fusion_method": "weighted", "weights": {"bm25": 0.3, "dense": 0.7}}, "hotel")
    found = compare(a, b, measures=["nDCG@10"]).measures["nDCG@10"]
    from scipy import stats

    pairs = [(a.scores.per_query[q]["nDCG@10"], b.scores.per_query[q]["nDCG@10"]) for q in a.scores.query_ids]
    expected = stats.ttest_rel([after for _, after in pairs], [before for before, _ in pairs])
    assert found.diff == pytest.approx(b.metrics["nDCG@10"] - a.metrics["nDCG@10"])
    assert (found.t, found.t_p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))


def test_ab_with_and_without_rerank_says_what_it_costs(tmp_path: Path) -> None:
    """A cross-encoder of random weights must come out as worse, and slower."""
    model = tiny_bert(tmp_path / "random", "classifier")
    plain = evaluate("bm25", "hotel")
    # Twenty candidates show it as well as fifty.
    reranked = evaluate(f"bm25 >> rerank('{model}', depth=20)", "hotel", components=True)
    found = compare(plain, reranked)
    assert found.verdict == "worse"
    assert found.measures["nDCG@10"].t < 0
    assert found.measures["nDCG@10"].t_p < 0.05
    assert found.latency is not None
    assert found.latency.mean_diff > 0
    assert found.latency.low > 0
    assert [part.kind for part in reranked.components] == ["channel", "stage"]
    assert any(loss.stage == "demoted by rerank" for loss in reranked.losses)


def test_the_demo_does_the_whole_job(ringtrue: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = ringtrue("demo", "--json").json
    assert found["comparison"]["verdict"] == "better"
    assert found["gate"] == {"verdict": "pass", "exit_code": 0, "failures": []}
    assert found["gate_of_dense"]["exit_code"] == 1
    assert set(found["runs"]["hybrid"]["components"]) >= {"bm25", "dense", "weighted", "without bm25", "without dense"}
    assert (tmp_path / found["report"]).read_text().startswith("<!doctype html>")
    told = ringtrue("demo").out
    assert "Is the hybrid better than bm25 alone? BETTER." in told
    assert "May it ship? The gate says PASS" in told
    assert "from the cache" in told
    assert "Where to look next" in told
