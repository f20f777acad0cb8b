"""Evaluations and verdicts in the store: the figures, the comparison, the gate."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from made import answers, evaluation, golden_set
from ringtrue.errors import Unreachable
from ringtrue.golden import load
from ringtrue.measures import score
from ringtrue.records import Document, GoldenSet, Judgment, Query
from ringtrue.rollout import health_of, record_evaluation, record_on_golden
from ringtrue.run import evaluate, open_run, save, unpacked
from ringtrue.store import Store, StoredRun
from ringtrue.verdict import Policy, baseline_of, compare, gate

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
GOLDEN = golden_set(30)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.sqlite") as opened:
        yield opened


def test_an_evaluation_is_stored_with_means_intervals_latencies_and_scores_per_query(store: Store) -> None:
    found = evaluation(GOLDEN, intervals={"nDCG@10": (0.4, 0.6), "RR": (math.nan, math.nan)})
    row = record_evaluation(store, found, now=NOW)
    (stored,) = store.results()
    assert stored == row
    assert (stored.run_type, stored.query_count, stored.golden, stored.retriever) == ("full", 30, "made-v1.0.0", "bm25")
    assert stored.metrics == {name: value for name, value in found.metrics.items() if not math.isnan(value)}
    assert stored.intervals == {"nDCG@10": (0.4, 0.6)}
    assert set(stored.latency_ms) == {"mean", "p50", "p95", "p99"}
    assert stored.per_query["q000"]["nDCG@10"] == found.scores.per_query["q000"]["nDCG@10"]
    assert (stored.gate, stored.p_value, stored.is_significant, stored.control_run_id, stored.deltas) == (
        None,
        None,
        None,
        None,
        {},
    )


def test_the_run_itself_is_kept_beside_its_result(store: Store) -> None:
    found = evaluation(GOLDEN, name="bm25 with synonyms")
    verdict = gate(found, Policy(floors={}, latency={}, require_baseline=False), baseline=None)
    row = record_evaluation(store, found, now=NOW, project="shop")
    gated = record_evaluation(store, found, now=NOW, verdict=verdict, project="shop")
    assert set(store.run_names(project="shop")) == {row.run_id, gated.run_id}
    kept = store.run(row.run_id, project="shop")
    assert kept is not None
    assert (kept.name, kept.created_at) == ("bm25 with synonyms", row.created_at)
    assert unpacked(kept.content, name=row.run_id).rankings == found.rankings
    assert store.run(row.run_id) is None


def test_a_result_is_not_listed_without_its_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(row: StoredRun) -> bool:
        raise Unreachable("the disk is full")

    monkeypatch.setattr(store, "save_run", full_disk)
    with pytest.raises(Unreachable):
        record_evaluation(store, evaluation(GOLDEN), now=NOW)
    assert store.results() == []


def test_the_same_evaluation_at_another_time_is_another_result(store: Store) -> None:
    found = evaluation(GOLDEN)
    record_evaluation(store, found, now=NOW)
    record_evaluation(store, found, now=NOW)
    record_evaluation(store, found, now=NOW + timedelta(hours=1))
    record_evaluation(store, evaluation(GOLDEN, name="dense"), now=NOW)
    assert len({one.run_id for one in store.results()}) == len(store.results()) == 3


def test_a_verdict_brings_its_word_and_its_comparison_with_the_baseline(store: Store) -> None:
    good = evaluation(GOLDEN, answers(GOLDEN, skill=0.95))
    bad = evaluation(GOLDEN, answers(GOLDEN, skill=0.2, seed=3))
    baseline = baseline_of(good, version="1.2.0")
    for found, word in ((bad, "fail"), (good, "pass")):
        verdict = gate(found, Policy(floors={}), baseline=baseline)
        assert verdict.word == word
        row = record_evaluation(store, found, now=NOW, verdict=verdict)
        assert verdict.comparison is not None
        primary = verdict.comparison.measures[verdict.comparison.primary]
        assert (row.run_type, row.gate, row.control_run_id) == ("regression", word, "baseline 1.2.0")
        assert row.p_value == primary.p_adjusted
        assert row.deltas[primary.measure] == primary.diff
        assert row.is_significant is (word == "fail")
    assert {one.gate for one in store.results(run_type="regression")} == {"fail", "pass"}


def test_a_comparison_with_another_run_is_kept(store: Store) -> None:
    first, second = evaluation(GOLDEN, answers(GOLDEN, skill=0.2)), evaluation(GOLDEN, answers(GOLDEN, skill=0.95))
    before = record_evaluation(store, first, now=NOW)
    after = record_evaluation(
        store, second, now=NOW + timedelta(1), comparison=compare(first, second), control_run_id=before.run_id
    )
    assert (after.control_run_id, after.is_significant, after.gate) == (before.run_id, True, None)
    assert after.deltas["nDCG@10"] > 0


def test_health_knows_the_last_evaluation_and_the_gate(store: Store) -> None:
    found = evaluation(GOLDEN, intervals={"nDCG@10": (0.4, 0.6)})
    verdict = gate(found, Policy(floors={"nDCG@10": 0.999}, latency={}, require_baseline=False), baseline=None)
    record_evaluation(store, found, now=NOW)
    record_evaluation(store, found, now=NOW + timedelta(minutes=1), verdict=verdict)
    parts = {part.name: part for part in health_of(store, now=NOW).parts}
    assert f"nDCG@10 {found.metrics['nDCG@10']:.4f} (0.4000 to 0.6000)" in parts["evaluation"].says
    assert (parts["evaluation"].state, parts["gate"].state, parts["gate"].figures["verdict"]) == ("ok", "wrong", "fail")


def columns(store: Store, run_id: str) -> dict[str, object]:
    with store._reading() as connection:
        row = connection.execute(text("SELECT * FROM eval_results WHERE run_id = :run"), {"run": run_id}).mappings().one()
    return {name: json.loads(value) if name == "channel_contribution_json" and value else value for name, value in row.items()}


def test_the_columns_of_a_result_are_filled_whatever_measures_were_asked_for(store: Store) -> None:
    found = evaluate("rrf(bm25, fts5)", "hotel", measures=["P@5"])
    row = columns(store, record_evaluation(store, found, now=NOW).run_id)
    answered = {ranking.query_id: [hit.doc_id for hit in ranking.hits] for ranking in found.rankings}
    wanted = score(answered, load("hotel"), ["RR@5", "RR@10", "nDCG@5", "nDCG@10", "nDCG@20", "R@5", "R@10"])
    names = ("mrr_at_5", "mrr_at_10", "ndcg_at_5", "ndcg_at_10", "ndcg_at_20", "recall_at_5", "recall_at_10")
    assert [row[name] for name in names] == pytest.approx(list(wanted.aggregate.values()))
    contributed = row["channel_contribution_json"]
    assert isinstance(contributed, dict)
    assert set(contributed) == {"bm25", "fts5"}
    assert all(0 < part["unique_rate"] < part["rate"] <= 1 for part in contributed.values())
    # The hotel set has no folders, tiers, chains or sessions.
    unknown = (
        "result_diversity_score", "cold_start_mrr", "session_personalization_lift", "causal_chain_completeness",
        "importance_weighted_recall", "constitutional_surfacing_rate",
    )  # fmt: skip
    assert {row[name] for name in unknown} == {None}


def test_contributions_are_the_same_with_and_without_measured_components() -> None:
    plain, parts = (evaluate("rrf(bm25, fts5)", "hotel", measures=["RR"], components=wanted) for wanted in (False, True))
    assert plain.components == ()
    assert plain.contributions == parts.contributions


def memory_set() -> GoldenSet:
    """Two folders, a chain, a first question of a session, and one in the middle of a session that holds its answer."""
    documents = tuple(Document(f"m{n}", f"note {n}", metadata={"spec_folder": "ab"[n % 2]}) for n in range(8))
    queries = (
        Query("q1", "start", {"category": "cold-start"}),
        Query("q2", "go on", {"category": "semantic-search", "sessionContext": {"workingMemoryIds": ["m7"]}}),
        Query("q3", "why", {"category": "semantic-search", "chain": ["m0", "m1"]}),
    )
    judged = Judgment("q1", "m1", 3), Judgment("q2", "m7", 3), Judgment("q3", "m0", 3)
    return GoldenSet("memories", "1.0.0", queries, judged, documents, profile="memory")


def remembering(text: str, k: int, session: list[str] | None = None) -> list[str]:
    held = session or []
    return [*held, *(f"m{n}" for n in range(8) if f"m{n}" not in held)][:k]


def test_a_memory_set_fills_diversity_chains_cold_start_and_session_lift(store: Store) -> None:
    found = evaluate(remembering, memory_set(), measures=["nDCG@10"], session=True)
    row = columns(store, record_evaluation(store, found, now=NOW).run_id)
    assert row["cold_start_mrr"] == 1 / 2
    assert row["session_personalization_lift"] == pytest.approx(1 - 1 / 8)
    assert row["causal_chain_completeness"] == 1.0
    assert row["result_diversity_score"] == pytest.approx(1 - 2 / 8)
    assert row["constitutional_surfacing_rate"] is None


def test_without_the_session_there_is_no_session_lift(store: Store) -> None:
    found = evaluate(remembering, memory_set(), measures=["nDCG@10"])
    assert columns(store, record_evaluation(store, found, now=NOW).run_id)["session_personalization_lift"] is None


def test_a_column_that_looks_deeper_than_the_answers_go_is_unknown(store: Store) -> None:
    found = evaluate("bm25 >> top(10)", "hotel", measures=["nDCG@10"], cache=False)
    row = columns(store, record_evaluation(store, found, now=NOW).run_id)
    assert row["ndcg_at_10"] == found.metrics["nDCG@10"]
    assert row["ndcg_at_20"] is None
    assert row["mrr_at_10"] is not None


def test_the_columns_are_kept_with_the_run(store: Store, tmp_path: Path) -> None:
    found = evaluate("bm25", "hotel", measures=["P@5"])
    kept = open_run(save(found, tmp_path / "run").run_dir or "")
    assert kept.figures == found.figures
    first, second = (record_evaluation(store, one, now=NOW + timedelta(hours=n)) for n, one in enumerate((found, kept)))
    assert second.ndcg_at_20 == first.ndcg_at_20
    assert second.channel_contribution == first.channel_contribution


def test_a_shadow_on_the_golden_set_fills_the_same_columns(store: Store) -> None:
    sides = [evaluate(name, "hotel", measures=["RR@10", "nDCG@10"], cache=False) for name in ("bm25", "fts5")]
    found = record_on_golden(store, "new", *sides, now=NOW)
    for side, one in zip(sides, (found.control, found.treatment), strict=True):
        row = columns(store, one.run_id)
        assert row["ndcg_at_20"] == side.figures["ndcg_at_20"]
        assert row["channel_contribution_json"] == {side.name: {"rate": 1.0, "unique_rate": 1.0, "hits": 720}}
