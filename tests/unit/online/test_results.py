"""Evaluations and verdicts in the store: the figures, the comparison, the gate (O-1, O-3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from made import answers, evaluation, golden_set
from ringtrue.errors import Unreachable
from ringtrue.online import health_of, record_evaluation
from ringtrue.run import unpacked
from ringtrue.store import Store, StoredRun
from ringtrue.verdict import Policy, baseline_of, compare, gate

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
GOLDEN = golden_set(30)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.sqlite") as opened:
        yield opened


def test_o1_an_evaluation_is_stored_with_means_intervals_latencies_and_scores_per_query(store: Store) -> None:
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


def test_o1_the_run_itself_is_kept_beside_its_result(store: Store) -> None:
    found = evaluation(GOLDEN, name="bm25 with synonyms")
    verdict = gate(found, Policy(floors={}, latency={}), baseline=None)
    row = record_evaluation(store, found, now=NOW, project="shop")
    gated = record_evaluation(store, found, now=NOW, verdict=verdict, project="shop")
    assert store.run_ids(project="shop") == {row.run_id, gated.run_id}
    kept = store.run(row.run_id, project="shop")
    assert kept is not None
    assert (kept.name, kept.created_at) == ("bm25 with synonyms", row.created_at)
    assert unpacked(kept.content, name=row.run_id).rankings == found.rankings
    assert store.run(row.run_id) is None


def test_o1_a_result_is_not_listed_without_its_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full_disk(row: StoredRun) -> bool:
        raise Unreachable("the disk is full")

    monkeypatch.setattr(store, "save_run", full_disk)
    with pytest.raises(Unreachable):
        record_evaluation(store, evaluation(GOLDEN), now=NOW)
    assert store.results() == []


def test_o1_the_same_evaluation_at_another_time_is_another_result(store: Store) -> None:
    found = evaluation(GOLDEN)
    record_evaluation(store, found, now=NOW)
    record_evaluation(store, found, now=NOW)
    record_evaluation(store, found, now=NOW + timedelta(hours=1))
    record_evaluation(store, evaluation(GOLDEN, name="dense"), now=NOW)
    assert len({one.run_id for one in store.results()}) == len(store.results()) == 3


def test_o1_a_verdict_brings_its_word_and_its_comparison_with_the_baseline(store: Store) -> None:
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


def test_o1_a_comparison_with_another_run_is_kept(store: Store) -> None:
    first, second = evaluation(GOLDEN, answers(GOLDEN, skill=0.2)), evaluation(GOLDEN, answers(GOLDEN, skill=0.95))
    before = record_evaluation(store, first, now=NOW)
    after = record_evaluation(
        store, second, now=NOW + timedelta(1), comparison=compare(first, second), control_run_id=before.run_id
    )
    assert (after.control_run_id, after.is_significant, after.gate) == (before.run_id, True, None)
    assert after.deltas["nDCG@10"] > 0


def test_o3_health_knows_the_last_evaluation_and_the_gate(store: Store) -> None:
    found = evaluation(GOLDEN, intervals={"nDCG@10": (0.4, 0.6)})
    verdict = gate(found, Policy(floors={"nDCG@10": 0.999}, latency={}), baseline=None)
    record_evaluation(store, found, now=NOW)
    record_evaluation(store, found, now=NOW + timedelta(minutes=1), verdict=verdict)
    parts = {part.name: part for part in health_of(store, now=NOW).parts}
    assert f"nDCG@10 {found.metrics['nDCG@10']:.4f} [0.4000, 0.6000]" in parts["evaluation"].says
    assert (parts["evaluation"].state, parts["gate"].state, parts["gate"].figures["verdict"]) == ("ok", "wrong", "fail")
