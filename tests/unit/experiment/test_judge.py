"""Accepted, rejected or undecided follows from gate and comparison, with the real reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from made import answers, evaluation, golden_set
from ringtrue.errors import MissingInput
from ringtrue.experiment import Experiment, experiment_of, judge, open_arm
from ringtrue.run import save
from ringtrue.verdict import Policy, baseline_of, write_baseline

GOLDEN = golden_set()
NO_FLOORS = Policy(floors={}, latency={}, latency_increase=float("inf"))


def made(skill: float, *, seed: int = 1, latency: float = 20.0, **options):
    return evaluation(GOLDEN, answers(GOLDEN, skill=skill, seed=seed, latency=latency), **options)


def test_a_clear_gain_is_accepted_with_its_numbers() -> None:
    before, after = made(0.5), made(0.9)
    verdict = judge(after, before, policy=NO_FLOORS)
    assert verdict.startswith("ACCEPTED (all 8 measures improved; nDCG@10 better by +0.")
    assert f"({before.metrics['nDCG@10']:.4f} → {after.metrics['nDCG@10']:.4f}) over 60 queries, p = " in verdict
    chosen = judge(after, before, policy=NO_FLOORS, measure="RR")
    assert "RR better by" in chosen


def test_a_fall_beyond_the_gate_is_rejected_with_the_measure_that_fell() -> None:
    verdict = judge(made(0.5), made(0.9), policy=NO_FLOORS)
    assert verdict.startswith("REJECTED (R@5 ")
    assert "more)" in verdict


def test_a_fall_the_gate_allows_is_rejected_by_the_test() -> None:
    verdict = judge(made(0.5), made(0.9), policy=replace(NO_FLOORS, max_drop=0.99))
    assert verdict.startswith("REJECTED (nDCG@10 worse by -0.")


def test_a_floor_counts_only_where_the_baseline_kept_it() -> None:
    floors = replace(NO_FLOORS, floors={"R@5": 0.8}, max_drop=0.99)
    assert judge(made(0.6), made(0.4), policy=floors).startswith("ACCEPTED (")  # below the floor before as well
    assert judge(made(0.6), made(0.95), policy=floors).startswith("REJECTED (R@5 below its floor: 0.")
    from_file = baseline_of(made(0.4))
    assert judge(made(0.6), from_file, policy=floors).startswith("ACCEPTED (")
    assert judge(made(0.6), baseline_of(made(0.95)), policy=floors).startswith("REJECTED (R@5 below its floor")


def test_a_slow_search_is_rejected_for_its_latency() -> None:
    rules = Policy(floors={}, latency={"p95": 100.0}, latency_increase=float("inf"))
    verdict = judge(made(0.9, latency=200.0), made(0.5), policy=rules)
    assert verdict.startswith("REJECTED (p95 above its ceiling: ")
    assert judge(made(0.9, latency=200.0), made(0.5, latency=300.0), policy=rules).startswith("ACCEPTED (")
    assert judge(made(0.9, latency=200.0), baseline_of(made(0.5, latency=300.0)), policy=rules).startswith("ACCEPTED (")


def test_what_the_queries_cannot_tell_is_undecided() -> None:
    before = made(0.7)
    verdict = judge(made(0.7, seed=2), before, policy=replace(NO_FLOORS, max_drop=0.99))
    assert verdict.startswith("UNDECIDED (not enough evidence: nDCG@10 ")
    assert judge(before, before, policy=NO_FLOORS).startswith("UNDECIDED (not enough evidence: nDCG@10 +0.0000")


def test_runs_on_different_sets_are_undecided() -> None:
    other = golden_set(seed=5)
    verdict = judge(evaluation(other, answers(other)), made(0.7), policy=NO_FLOORS)
    assert verdict.startswith("UNDECIDED (")
    assert "cannot be compared" in verdict


def test_an_experiment_holds_all_that_a_reader_asks_for() -> None:
    before = made(0.5, setup={"retriever": "rrf(bm25, dense, k=60)"})
    after = made(0.9, setup={"retriever": "rrf(bm25, dense, k=30)"})
    given = Experiment("", "2026-11-16", "", commit="abc-dirty", run="runs/b", baseline="runs/a")
    found = experiment_of(after, before, given, policy=NO_FLOORS)
    assert found.id == ""
    assert found.date == "2026-11-16"
    assert found.description == "rrf.k = 30"
    assert found.config_changes == {"rrf.k": 30}
    assert found.metrics == after.metrics
    assert found.decision == "ACCEPTED"
    assert (found.golden, found.corpus, found.commit) == ("made-v1.0.0", "c0ffee", "abc-dirty")
    assert (found.run, found.baseline) == ("runs/b", "runs/a")
    given = Experiment("", "2026-11-16", "wider", {"n": 1}, verdict="REJECTED (no)")
    by_hand = experiment_of(after, None, given)
    assert (by_hand.description, by_hand.config_changes, by_hand.verdict) == ("wider", {"n": 1}, "REJECTED (no)")


def test_a_baseline_is_a_run_folder_or_a_file(tmp_path) -> None:
    before = made(0.5)
    save(before, tmp_path / "run")
    write_baseline(baseline_of(before), tmp_path / "baseline.json")
    verdicts = {
        judge(made(0.9), open_arm(tmp_path / name), policy=NO_FLOORS) for name in ("run", "run/run.json", "baseline.json")
    }
    assert len(verdicts) == 1
    with pytest.raises(MissingInput):
        open_arm(tmp_path / "nowhere")
