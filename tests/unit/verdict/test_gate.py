"""Every rule of the gate, the queries behind a failure, and the word that follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from made import answers, evaluation, golden_set
from ringtrue.records import GoldenSet, Hit, Ranking
from ringtrue.run import DEFAULT_MEASURES, Evaluation
from ringtrue.verdict import Baseline, Check, Policy, Verdict, baseline_of, gate, with_checks
from ringtrue.verdict.numbers import reachable

ONLY_DROPS = Policy(floors={}, latency={}, latency_increase=math.inf)
ALONE = Policy(require_baseline=False)
STATISTICAL = replace(ONLY_DROPS, mode="statistical")


def perfect(golden: GoldenSet) -> list[Ranking]:
    """Answers that hold the relevant documents, best first, and nothing else."""
    best: dict[str, list[tuple[int, str]]] = {query.query_id: [] for query in golden.queries}
    for judgment in golden.judgments:
        best[judgment.query_id].append((-judgment.grade, judgment.doc_id))
    return [Ranking(query, tuple(Hit(doc) for _, doc in sorted(docs)), latency_ms=10.0) for query, docs in best.items()]


def spoiled(rankings: Sequence[Ranking], queries: Sequence[str]) -> list[Ranking]:
    """The same answers, but for some queries that find nothing."""
    return [replace(one, hits=()) if one.query_id in queries else one for one in rankings]


def check_of(verdict: Verdict, measure: str, rule: str, slice_: str | None = None) -> Check:
    (found,) = [one for one in verdict.checks if (one.measure, one.rule, one.slice) == (measure, rule, slice_)]
    return found


def lowered(found: Evaluation, share: float) -> Baseline:
    """A baseline from which every mean of this evaluation is lower by exactly this share; without queries."""
    metrics = {name: value / (1 - share) for name, value in found.metrics.items()}
    return replace(baseline_of(found), metrics=metrics, per_query={}, latency={})


# ── floors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_good_answers_pass_every_rule_that_needs_no_baseline() -> None:
    golden = golden_set(relevant=4)
    verdict = gate(evaluation(golden, perfect(golden)), ALONE)
    assert (verdict.word, verdict.exit_code) == ("pass", 0)
    assert {(one.rule, one.measure) for one in verdict.checks} == {
        ("floor", "R@5"), ("floor", "P(rel=2)@5"), ("floor", "RR"), ("floor", "nDCG@5"),
        ("latency", "p50"), ("latency", "p95"), ("latency", "p99"),
    }  # fmt: skip


def test_without_a_baseline_rules_that_need_one_are_undecided() -> None:
    golden = golden_set(relevant=4)
    found = evaluation(golden, perfect(golden))
    verdict = gate(found)
    assert (verdict.word, verdict.exit_code) == ("undecided", 3)
    message = check_of(verdict, "baseline", "completeness").message
    assert "R@5, R@10, P@5, RR, nDCG@5, the growth of p95 cannot be compared" in message
    assert "`ringtrue baseline update`" in message
    assert "require_baseline = false" in message
    assert gate(found, replace(STATISTICAL, floors={"R@5": 0.8})).exit_code == 3
    assert gate(found, Policy(drop_measures=())).exit_code == 3, "the growth of p95 needs a baseline, too"
    assert gate(found, Policy(drop_measures=(), latency_increase=math.inf)).exit_code == 0, "no rule needs a baseline"


def test_without_a_baseline_a_floor_can_still_fail() -> None:
    golden = golden_set(relevant=4)
    assert gate(evaluation(golden, answers(golden, skill=0.1))).exit_code == 1


def test_a_floor_that_is_missed_names_value_floor_and_the_lowest_queries_first() -> None:
    golden = golden_set(relevant=4)
    bad = ["q007", "q011", "q020"] + [f"q0{n}" for n in range(30, 45)]
    verdict = gate(evaluation(golden, spoiled(perfect(golden), bad)))
    found = check_of(verdict, "R@5", "floor")
    assert (verdict.word, verdict.exit_code) == ("fail", 1)
    assert found.message == "R@5 below its floor: 0.7000 < 0.8000"
    assert (found.current, found.threshold) == (pytest.approx(0.7), 0.8)
    assert found.queries == tuple(bad[:10])
    assert found in verdict.failures


def test_numbers_that_differ_never_look_alike() -> None:
    golden = golden_set(relevant=4)
    verdict = gate(evaluation(golden, spoiled(perfect(golden), ["q001"])), Policy(floors={"R@5": 59 / 60 + 1e-6}))
    assert check_of(verdict, "R@5", "floor").message == "R@5 below its floor: 0.983333 < 0.983334"


def test_exactly_the_floor_passes_however_it_is_rounded() -> None:
    golden = golden_set(relevant=4)
    verdict = gate(evaluation(golden, spoiled(perfect(golden), ["q001"])), Policy(floors={"R@5": 59 / 60 + 1e-13}))
    assert check_of(verdict, "R@5", "floor").status == "pass"


def test_trap_41_a_floor_that_the_judgments_make_unreachable_is_undecided_and_names_what_is_reachable() -> None:
    golden = golden_set(relevant=2)
    written = {measure: float(floor) for measure, floor in ALONE.floors.items()}
    verdict = gate(evaluation(golden, perfect(golden)), replace(ALONE, floors=written))
    found = check_of(verdict, "P(rel=2)@5", "floor")
    assert (verdict.word, verdict.exit_code) == ("undecided", 3)
    assert found.status == "undecided"
    assert "cannot reach its floor of 0.6000: the judgments allow at most 0.4000" in found.message
    assert [one.status for one in verdict.checks if one is not found].count("pass") == 6


def test_a_default_floor_that_the_judgments_cannot_reach_decides_nothing() -> None:
    golden = golden_set()
    golden = replace(golden, judgments=tuple(replace(one, grade=1) for one in golden.judgments))
    found = evaluation(golden, answers(golden, skill=1.0))
    for policy in (Policy(), Policy.of({"max_drop": 0.1}), Policy().with_floors(["RR=0.5"])):
        verdict = gate(found, replace(policy, require_baseline=False))
        (check,) = (one for one in verdict.checks if one.measure == "P(rel=2)@5")
        assert (verdict.word, check.status) == ("pass", "advisory")
        assert check.message.startswith(
            "P(rel=2)@5 cannot reach the default floor of 0.6000: the judgments allow at most 0.0000"
        )
    written = Policy.of({"floors": {"P(rel=2)@5": 0.6}, "require_baseline": False})
    assert gate(found, written).word == "undecided"


def test_the_reachable_maximum_is_that_of_the_best_possible_answers() -> None:
    golden = golden_set(relevant=8)
    found = evaluation(golden)
    assert reachable(found, "R@5") == pytest.approx(5 / 8)
    assert reachable(found, "P@5") == reachable(found, "nDCG@5") == reachable(found, "RR") == 1.0
    assert reachable(found, "P(rel=3)@5") == pytest.approx(1 / 5)
    assert reachable(found, "SetP") == 1.0
    assert reachable(evaluation(golden_set(relevant=2)), "P@5", queries={"q001"}) == pytest.approx(2 / 5)
    assert math.isnan(reachable(found, "FalseInject@5"))


def test_a_measure_that_was_not_scored_is_computed_from_answers_and_judgments() -> None:
    golden = golden_set(relevant=4)
    weak = replace(golden, judgments=tuple(replace(one, grade=1) if one.grade == 2 else one for one in golden.judgments))
    verdict = gate(evaluation(weak, perfect(weak)), replace(ALONE, floors={"P(rel=3)@5": 0.2, "P@5": 0.8, "R@3": 0.75}))
    assert [one.current for one in verdict.checks[:3]] == [pytest.approx(0.2), pytest.approx(0.8), pytest.approx(0.75)]
    assert verdict.word == "pass"


def test_a_run_whose_answers_do_not_reproduce_its_scores_gives_no_new_ones() -> None:
    found = evaluation()
    other = replace(found, rankings=tuple(replace(one, hits=one.hits[::-1]) for one in found.rankings))
    verdict = gate(other, Policy(floors={"R@3": 0.1}, latency={}))
    assert verdict.word == "undecided"
    assert "R@3 was not scored, and the run's answers do not reproduce its nDCG@10" in verdict.checks[0].message


def test_where_lower_is_better_the_floor_is_a_ceiling() -> None:
    golden = golden_set(relevant=4)
    found = evaluation(golden, spoiled(answers(golden), ["q001"]), measures=[*DEFAULT_MEASURES, "FalseInject@5"])
    share = found.metrics["FalseInject@5"]
    failed = gate(found, Policy(floors={"FalseInject@5": 0.5}, latency={})).checks[0]
    assert failed.message == f"FalseInject@5 above its ceiling: {share:.4f} > 0.5000"
    assert "q001" not in failed.queries
    assert gate(found, replace(ALONE, floors={"FalseInject@5": 1.0})).word == "pass"


def test_constitutional_surfacing_never_falls_below_its_floor() -> None:
    golden = golden_set(relevant=4)
    tiered = replace(
        golden,
        documents=tuple(
            replace(one, metadata={"importance_tier": "constitutional" if one.doc_id == "d000" else "normal"})
            for one in golden.documents
        ),
    )
    policy = replace(ALONE, floors={"constitutional_surfacing@10": 1.0})
    first = [replace(one, hits=(Hit("d000"), *(hit for hit in one.hits if hit.doc_id != "d000"))) for one in answers(tiered)]
    measures = [*DEFAULT_MEASURES, "Constitutional@10"]
    assert gate(evaluation(tiered, first, measures=measures), policy).word == "pass"
    verdict = gate(evaluation(tiered, spoiled(first, ["q009"]), measures=measures), policy)
    assert (verdict.word, verdict.checks[0].rule, verdict.checks[0].queries) == ("fail", "constitutional", ("q009",))
    unscored = gate(evaluation(tiered, first), policy)
    assert unscored.word == "undecided"
    assert "Constitutional@10 was not scored" in unscored.checks[0].message


def test_a_measure_that_no_query_defines_is_undecided_not_zero() -> None:
    golden = golden_set(relevant=3)
    policy = Policy(floors={"R(rel=3)@5": 0.5}, latency={})
    none = replace(golden, judgments=tuple(replace(one, grade=2) for one in golden.judgments))
    verdict = gate(evaluation(none), policy)
    assert verdict.word == "undecided"
    assert math.isnan(verdict.checks[0].current)
    assert "not defined for any query" in verdict.checks[0].message


# ── slices ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_slice_has_a_floor_of_its_own() -> None:
    golden = golden_set(relevant=4)
    comparative = [query.query_id for query in golden.queries if query.metadata["query_type"] == "comparative"]
    found = evaluation(golden, spoiled(perfect(golden), comparative[:8]))
    slices = {"query_type=comparative": {"R@5": 0.7}, "query_type=factual": {"R@5": 0.7}}
    verdict = gate(found, Policy(slices=slices))
    failed = check_of(verdict, "R@5", "slice", "query_type=comparative")
    assert failed.message == "R@5 of query_type=comparative below its floor: 0.6000 < 0.7000"
    assert failed.queries == tuple(comparative[:8])
    assert check_of(verdict, "R@5", "slice", "query_type=factual").status == "pass"


def test_a_slice_that_is_not_there_is_undecided_with_the_nearest() -> None:
    golden = golden_set(relevant=4)
    verdict = gate(evaluation(golden, perfect(golden)), Policy(slices={"query_type=factul": {"R@5": 0.7}}))
    assert verdict.word == "undecided"
    assert "did you mean 'query_type=factual'" in check_of(verdict, "R@5", "slice", "query_type=factul").message


@pytest.mark.parametrize("mode", ["relative", "statistical"])
def test_a_fall_in_one_slice_fails_where_the_whole_hides_it(mode) -> None:
    golden = golden_set(300, relevant=4)
    before = answers(golden, skill=0.8)
    comparative = [query.query_id for query in golden.queries if query.metadata["query_type"] == "comparative"]
    after = spoiled(before, comparative[:12])
    policy = replace(ONLY_DROPS, mode=mode, drop_measures=("R@5",), max_drop=0.08, min_effect=0.05)
    baseline = baseline_of(evaluation(golden, before))
    assert gate(evaluation(golden, after), policy, baseline=baseline).word == "pass"
    verdict = gate(evaluation(golden, after), replace(policy, slice_drop=True), baseline=baseline)
    assert [one.slice for one in verdict.failures] == ["query_type=comparative"]
    assert set(verdict.failures[0].queries) <= set(comparative[:12])
    few = gate(evaluation(golden, after), replace(policy, slice_drop=True, slice_minimum=150), baseline=baseline)
    assert few.word == "pass"
    assert "slices with fewer than 150 queries are not compared: query_type=comparative (100)" in few.notes


# ── falls against the baseline ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("share", "status"), [(0.0, "pass"), (0.02, "degraded"), (0.05, "degraded"), (0.0501, "fail"), (-0.1, "pass")]
)
def test_a_fall_of_exactly_five_percent_passes(share, status) -> None:
    for seed in range(8):
        golden = golden_set(seed=seed)
        found = evaluation(golden, answers(golden, seed=seed))
        verdict = gate(found, ONLY_DROPS, baseline=lowered(found, share))
        assert {one.status for one in verdict.checks} == {status}
        assert verdict.word == ("fail" if status == "fail" else "pass")


def test_a_fall_says_how_far_from_where_to_where_and_what_was_allowed() -> None:
    found = evaluation()
    now = found.metrics["R@5"]
    baseline = replace(lowered(found, 0.061), version="1.2.0")
    check = check_of(gate(found, ONLY_DROPS, baseline=baseline), "R@5", "drop")
    assert check.message == f"R@5 fell by 6.1 % against baseline 1.2.0 ({now / 0.939:.4f} → {now:.4f}; 5 % allowed)"
    assert check.degradation == pytest.approx(0.061)
    near = check_of(gate(found, ONLY_DROPS, baseline=lowered(found, 0.0501)), "R@5", "drop")
    assert "fell by 5.01 % against" in near.message


def test_a_planted_regression_names_the_guilty_queries_worst_first() -> None:
    golden = golden_set(relevant=4)
    before = perfect(golden)
    after = [replace(one, hits=one.hits[:2]) if one.query_id == "q033" else one for one in spoiled(before, ["q040", "q005"])]
    verdict = gate(evaluation(golden, after), ONLY_DROPS, baseline=baseline_of(evaluation(golden, before)))
    check = check_of(verdict, "R@5", "drop")
    assert check.queries == ("q005", "q040", "q033")
    assert check.interval is not None
    assert check.interval[0] <= check.current - check.baseline <= check.interval[1]
    assert verdict.comparison is not None
    assert verdict.comparison.measures["R@5"].losses == 3
    assert check.status == "degraded"
    worse = gate(
        evaluation(golden, after), replace(ONLY_DROPS, max_drop=0.02), baseline=baseline_of(evaluation(golden, before))
    )
    assert check_of(worse, "R@5", "drop").status == "fail"


def test_nothing_is_divided_by_a_baseline_of_zero() -> None:
    found = evaluation()
    baseline = replace(baseline_of(found), metrics=dict.fromkeys(found.metrics, 0.0), per_query={}, latency={})
    check = gate(found, ONLY_DROPS, baseline=baseline).checks[0]
    assert (check.status, check.degradation) == ("pass", None)
    assert "of which there is no percentage" in check.message


def test_where_lower_is_better_a_rise_is_the_fall() -> None:
    golden = golden_set(relevant=4)
    measures = [*DEFAULT_MEASURES, "FalseInject@5"]
    policy = replace(ONLY_DROPS, drop_measures=("FalseInject@5",))
    clean, noisy = evaluation(golden, perfect(golden), measures=measures), evaluation(golden, measures=measures)
    verdict = gate(noisy, policy, baseline=baseline_of(clean))
    assert verdict.word == "fail"
    assert "was 0 in baseline 1.0.0" in verdict.checks[0].message
    assert gate(clean, policy, baseline=baseline_of(noisy)).word == "pass"


def test_a_plain_baseline_is_compared_by_its_means_and_lacks_what_it_lacks() -> None:
    found = evaluation()
    baseline = lowered(found, 0.1)
    baseline = replace(baseline, metrics={"R@5": baseline.metrics["R@5"]}, golden=replace(baseline.golden, content_hash=""))
    verdict = gate(found, ONLY_DROPS, baseline=baseline)
    assert verdict.word == "fail"
    assert check_of(verdict, "R@5", "drop").status == "fail"
    assert check_of(verdict, "R@10", "drop").status == "advisory"
    assert any("does not say on which golden set" in note for note in verdict.notes)
    assert gate(found, STATISTICAL, baseline=baseline).word == "undecided"


def test_a_measure_that_our_own_baseline_lacks_is_undecided() -> None:
    baseline = baseline_of(evaluation(measures=["R@5"]))
    verdict = gate(evaluation(), ONLY_DROPS, baseline=baseline)
    assert verdict.word == "undecided"
    assert "baseline 1.0.0 has no RR" in check_of(verdict, "RR", "drop").message


# ── mode statistical ────────────────────────────────────────────────────────────────────────────────────────────────


def test_statistical_mode_fails_on_a_fall_that_is_significant_and_large_enough() -> None:
    golden = golden_set(120)
    baseline = baseline_of(evaluation(golden, answers(golden, skill=0.8)))
    verdict = gate(evaluation(golden, answers(golden, skill=0.55)), STATISTICAL, baseline=baseline)
    check = check_of(verdict, "R@5", "significant drop")
    assert verdict.word == "fail"
    assert "significant (" in check.message
    assert "% interval " in check.message
    assert ", adjusted p = " in check.message
    assert check.interval is not None
    assert check.interval[1] < 0
    assert len(check.queries) == 10


def test_a_significant_fall_smaller_than_min_effect_is_no_failure() -> None:
    golden = golden_set(120)
    baseline = baseline_of(evaluation(golden, answers(golden, skill=0.8)))
    verdict = gate(evaluation(golden, answers(golden, skill=0.55)), replace(STATISTICAL, min_effect=0.5), baseline=baseline)
    assert verdict.word == "pass"
    assert check_of(verdict, "R@5", "significant drop").status == "degraded"


def test_a_fall_that_may_be_chance_is_degraded_and_says_what_could_be_found() -> None:
    golden = golden_set(30)
    baseline = baseline_of(evaluation(golden, answers(golden, skill=0.7, seed=5)))
    after = spoiled(answers(golden, skill=0.7, seed=5), ["q001", "q002"])
    verdict = gate(evaluation(golden, after), STATISTICAL, baseline=baseline)
    check = check_of(verdict, "R@5", "significant drop")
    assert (verdict.word, check.status) == ("pass", "degraded")
    assert "may be chance" in check.message
    assert "30 queries can detect a difference of" in check.message


def test_too_few_queries_for_any_fall_to_count_are_undecided_but_equal_runs_pass() -> None:
    golden = golden_set(5)
    before = perfect(golden)
    baseline = baseline_of(evaluation(golden, before))
    verdict = gate(evaluation(golden, spoiled(before, ["q001", "q002"])), STATISTICAL, baseline=baseline)
    assert (verdict.word, verdict.exit_code) == ("undecided", 3)
    assert "5 queries are too few: no fall over fewer than 8 can be significant" in verdict.checks[0].message
    assert gate(evaluation(golden, before), STATISTICAL, baseline=baseline).word == "pass"


def test_noise_in_statistical_mode_fails_at_most_five_times_in_a_hundred() -> None:
    """Two equal systems, a hundred times over; in mode relative the same noise fails far more often."""
    golden = golden_set(50, 60)
    statistical = relative = 0
    for seed in range(100):
        before, after = (
            timed(evaluation(golden, answers(golden, k=10, seed=2 * seed + side), measures=STATISTICAL.drop_measures), None)
            for side in (1, 2)
        )
        statistical += gate(after, STATISTICAL, baseline=baseline_of(before)).word == "fail"
        relative += any(after.metrics[name] < 0.95 * before.metrics[name] for name in STATISTICAL.drop_measures)
    assert statistical <= 5
    assert relative > 10


# ── latency ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def timed(found: Evaluation, milliseconds: float | None, *, passes: int = 4) -> Evaluation:
    """The same answers with these times, the first query's three times as long; 60 queries are 240 answers in four passes."""
    rankings = tuple(replace(one, latency_ms=milliseconds) for one in found.rankings)
    if milliseconds is None:
        return replace(found, rankings=rankings)
    rankings = (replace(rankings[0], latency_ms=milliseconds * 3), *rankings[1:])
    repeats = {one.query_id: (one.latency_ms or 0.0,) * (passes - 1) for one in rankings}
    return replace(found, rankings=rankings, repeats=repeats if passes > 1 else {})


def test_a_ceiling_that_is_broken_names_the_slow_queries() -> None:
    golden = golden_set(relevant=4)
    found = timed(evaluation(golden, perfect(golden)), 180.0)
    verdict = gate(found, replace(ALONE, latency={"p50": 200, "p95": 500, "p99": 300}))
    assert check_of(verdict, "p99", "latency").queries == ("q000",)
    assert check_of(verdict, "p99", "latency").message.startswith("p99 above its ceiling: ")
    assert [one.measure for one in verdict.failures] == ["p99"]


def test_a_ceiling_over_few_answers_fails_only_beyond_chance() -> None:
    golden = golden_set(28, relevant=4)
    found = timed(evaluation(golden, perfect(golden)), 180.0, passes=1)
    policy = replace(ALONE, latency={"p99": 300})
    verdict = gate(found, policy)
    check = check_of(verdict, "p99", "latency")
    assert (verdict.word, check.status) == ("pass", "advisory"), "one hiccup in 28 answers proves nothing"
    assert "but only 1 were slower (28 timed answers; 200 needed to decide: --passes 8)" in check.message
    assert gate(found, replace(policy, latency={"p50": 100})).word == "fail", "28 of 28 answers are slower"
    six = [replace(one, latency_ms=900.0) if number < 6 else one for number, one in enumerate(found.rankings)]
    assert gate(replace(found, rankings=tuple(six)), replace(policy, latency={"p95": 500})).word == "fail"
    assert gate(replace(found, rankings=(*six[:4], *found.rankings[4:])), replace(policy, latency={"p95": 500})).word == "pass"


def test_no_latency_is_said_and_never_taken_for_a_fast_one() -> None:
    golden = golden_set(relevant=4)
    found = timed(evaluation(golden, perfect(golden)), None)
    verdict = gate(found, baseline=baseline_of(evaluation(golden, perfect(golden))))
    assert verdict.word == "pass"
    assert check_of(verdict, "latency", "latency").status == "advisory"
    assert check_of(verdict, "p95", "latency increase").status == "advisory"
    assert math.isnan(check_of(verdict, "latency", "latency").current)


@pytest.mark.parametrize(("now", "machine", "status"), [
    (119.0, "test-machine", "pass"),
    (120.0, "test-machine", "degraded"),
    (121.0, "test-machine", "fail"),
    (300.0, "test-machine", "fail"),
    (300.0, "another", "advisory"),
    (300.0, "", "advisory"),
    (50.0, "test-machine", "pass"),
])  # fmt: skip
def test_p95_may_grow_by_less_than_twenty_percent_on_the_same_machine(now, machine, status) -> None:
    golden = golden_set(relevant=4)
    made = evaluation(golden, perfect(golden))
    found = replace(timed(made, now), setup=replace(made.setup, machine=machine))
    policy = replace(ONLY_DROPS, latency_increase=0.2)
    verdict = gate(found, policy, baseline=baseline_of(timed(made, 100.0)))
    check = check_of(verdict, "p95", "latency increase")
    assert check.status == status
    assert check.degradation == pytest.approx(now / 100 - 1)
    assert verdict.word == ("fail" if status == "fail" else "pass")
    if status == "fail":
        assert check.queries[0] == "q000"


def test_a_hiccup_of_a_few_milliseconds_is_no_regression() -> None:
    golden = golden_set(relevant=4)
    made = evaluation(golden, perfect(golden))
    policy = replace(ONLY_DROPS, latency_increase=0.2)
    assert gate(timed(made, 3.0), policy, baseline=baseline_of(timed(made, 0.4))).word == "pass"
    assert gate(timed(made, 3.0), replace(policy, latency_slack=0.1), baseline=baseline_of(timed(made, 0.4))).word == "fail"


def jittery(found: Evaluation, seed: int, *, passes: int, factor: float = 1.0) -> Evaluation:
    """The same answers with times that have a long tail, as on a busy machine."""
    rng = np.random.default_rng(seed)
    times = factor * (8 + rng.lognormal(1.5, 0.8, (len(found.rankings), passes)))
    rankings = tuple(replace(one, latency_ms=float(row[0])) for one, row in zip(found.rankings, times, strict=True))
    repeats = {one.query_id: tuple(row[1:].tolist()) for one, row in zip(rankings, times, strict=True)}
    return replace(found, rankings=rankings, repeats=repeats)


@pytest.mark.parametrize("passes", [1, 8])
def test_an_unchanged_search_never_fails_on_latency_and_a_slower_one_does_with_enough_answers(passes: int) -> None:
    golden = golden_set(28, relevant=4)
    made = evaluation(golden, perfect(golden))
    policy = Policy(floors={}, latency={}, drop_measures=())
    grown = 0
    for seed in range(40):
        baseline = baseline_of(jittery(made, seed, passes=passes))
        (check,) = gate(jittery(made, seed + 1000, passes=passes), policy, baseline=baseline).checks
        grown += check.degradation is not None and check.degradation > 0.2
        assert check.status != "fail", f"seed {seed}: {check.message}"
        (slower,) = gate(jittery(made, seed + 2000, passes=passes, factor=2.5), policy, baseline=baseline).checks
        assert slower.status == ("fail" if passes == 8 else "advisory")
        if passes == 1:
            assert "28 timed answers; 200 needed to decide: --passes 8" in slower.message
        else:
            assert slower.interval is not None
    assert grown > (8 if passes == 1 else 0), "the same search grows by more than 20 % by chance"


# ── what must be there ──────────────────────────────────────────────────────────────────────────────────────────────


def failed(rankings: Sequence[Ranking], query: str) -> list[Ranking]:
    return [replace(one, hits=(), error="timed out after 30 s") if one.query_id == query else one for one in rankings]


def test_trap_6_a_query_that_failed_makes_the_verdict_undecided_not_zero() -> None:
    golden = golden_set(relevant=4)
    found = evaluation(golden, failed(perfect(golden), "q004"))
    verdict = gate(found, baseline=baseline_of(evaluation(golden, perfect(golden))))
    assert (verdict.word, verdict.exit_code) == ("undecided", 3)
    check = check_of(verdict, "queries", "completeness")
    assert "1 of 60 queries got no answer, such as q004 (timed out after 30 s)" in check.message
    assert check.queries == ("q004",)
    assert check_of(verdict, "R@5", "drop").current == 1.0


def test_what_failed_already_is_a_failure_whatever_else_is_missing() -> None:
    golden = golden_set(relevant=4)
    found = evaluation(golden, failed(spoiled(perfect(golden), [f"q0{n}" for n in range(20, 40)]), "q004"))
    verdict = gate(found)
    assert verdict.word == "fail"
    assert verdict.exit_code == 1
    assert check_of(verdict, "queries", "completeness").status == "undecided"


def only(golden: GoldenSet, count: int) -> GoldenSet:
    kept = {query.query_id for query in golden.queries[:count]}
    return replace(
        golden, queries=golden.queries[:count], judgments=tuple(one for one in golden.judgments if one.query_id in kept)
    )


def test_queries_of_the_baseline_that_the_run_lacks_are_a_missing_arm() -> None:
    golden = golden_set(relevant=4)
    few = only(golden, 50)
    baseline = baseline_of(evaluation(golden, perfect(golden)))
    made = evaluation(few, perfect(few))
    found = replace(made, setup=replace(made.setup, golden=baseline.golden))
    verdict = gate(found, baseline=baseline)
    assert verdict.word == "undecided"
    assert "10 of the 60 queries of baseline 1.0.0 are not in this run: q050, q051" in verdict.checks[0].message
    assert check_of(verdict, "R@5", "drop").status == "pass"


def test_a_lacking_query_does_not_shift_what_is_compared() -> None:
    golden = golden_set(relevant=4)
    baseline = baseline_of(evaluation(golden, spoiled(perfect(golden), ["q059"])))
    few = only(golden, 50)
    made = evaluation(few, perfect(few))
    found = replace(made, setup=replace(made.setup, golden=baseline.golden))
    check = check_of(gate(found, ONLY_DROPS, baseline=baseline), "R@5", "drop")
    assert (check.baseline, check.current, check.status) == (1.0, 1.0, "pass")


def test_another_golden_set_cannot_be_compared_but_floors_still_hold() -> None:
    golden = golden_set(relevant=4)
    other = golden_set(relevant=4, seed=9)
    baseline = baseline_of(evaluation(other, perfect(other)))
    verdict = gate(evaluation(golden, spoiled(perfect(golden), ["q001", "q002", "q003", "q004"])), baseline=baseline)
    assert verdict.word == "undecided"
    assert "ringtrue baseline update" in check_of(verdict, "golden set", "completeness").message
    assert {one.status for one in verdict.checks if one.rule in ("drop", "latency increase")} == {"advisory"}
    assert check_of(verdict, "R@5", "floor").status == "pass"
    assert gate(evaluation(golden, answers(golden, skill=0.1)), baseline=baseline).word == "fail"


def test_other_documents_cannot_be_compared_unless_the_policy_says_so() -> None:
    golden = golden_set(relevant=4)
    baseline = baseline_of(evaluation(golden, perfect(golden)))
    worse = spoiled(perfect(golden), ["q001", "q002", "q003", "q004"])
    found = evaluation(golden, worse, setup={"corpus": "feedface"})
    verdict = gate(found, baseline=baseline)
    assert verdict.word == "undecided"
    assert "same_corpus = false" in check_of(verdict, "corpus", "completeness").message
    assert gate(found, Policy(same_corpus=False), baseline=baseline).word == "fail"
    unseen = evaluation(golden, worse, setup={"corpus": None})
    assert gate(unseen, baseline=baseline).word == "fail"


def test_any_further_check_can_only_make_a_verdict_worse() -> None:
    golden = golden_set(relevant=4)
    verdict = gate(evaluation(golden, perfect(golden)), ALONE)
    undecided = with_checks(verdict, [Check("completeness", "baseline", "undecided", "none", math.nan)])
    assert (verdict.word, undecided.word) == ("pass", "undecided")
    assert with_checks(undecided, [Check("floor", "R@5", "fail", "low", 0.1)]).exit_code == 1
    assert with_checks(undecided, []).word == "undecided"


def test_a_provisional_set_is_told() -> None:
    golden = golden_set(relevant=4)
    unread = replace(golden, judgments=tuple(replace(one, source="model") for one in golden.judgments))
    assert any("provisional" in note for note in gate(evaluation(unread, perfect(unread))).notes)


def test_trap_22_one_query_is_no_verdict_and_no_percentage_alarm() -> None:
    """Too few queries is 'could not decide', whichever way the one query went."""
    golden = golden_set(1)
    good, bad = (answers(golden, skill=skill) for skill in (1.0, 0.0))
    baseline = baseline_of(evaluation(golden, good))
    policy = Policy(floors={}, latency={})
    assert gate(evaluation(golden, good), policy, baseline=baseline).exit_code == 3
    assert any("too few for a verdict" in check.message for check in gate(evaluation(golden, bad), policy).checks)


def test_a_search_that_falls_silent_is_not_better() -> None:
    """SetP has no value for an empty answer: the mean of the one query that still answers says nothing about the others."""
    golden = golden_set(20)
    before = evaluation(golden, answers(golden, k=5), measures=["SetP", "R@5"])
    silent = [replace(ranking, hits=ranking.hits if number == 0 else ()) for number, ranking in enumerate(before.rankings)]
    policy = Policy(floors={}, latency={}, drop_measures=("SetP",))
    verdict = gate(evaluation(golden, silent, measures=["SetP", "R@5"]), policy, baseline=baseline_of(before))
    assert verdict.exit_code == 3
    assert any("SetP has no value for 19 queries" in check.message for check in verdict.checks)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"cached": True}, "answered from the cache"), ({"setup": {"workers": 8}}, "with --workers 1, now 8")],
)
def test_latencies_that_were_not_measured_alike_are_for_reading_only(change: dict[str, Any], says: str) -> None:
    golden = golden_set(20)
    baseline = baseline_of(evaluation(golden, answers(golden, latency=20.0)))
    slow = evaluation(golden, answers(golden, latency=100.0), **change)
    (check,) = [one for one in gate(slow, baseline=baseline).checks if one.rule == "latency increase"]
    assert check.status == "advisory"
    assert says in check.message


@pytest.mark.parametrize("mode", ["relative", "statistical"])
def test_a_fall_names_the_lowest_value_that_always_passes(mode) -> None:
    golden = golden_set(relevant=4)
    before = baseline_of(evaluation(golden, perfect(golden)))
    rules = replace(ONLY_DROPS, mode=mode, max_drop=0.1, min_effect=0.03, drop_measures=("R@5",))
    found = gate(evaluation(golden, spoiled(perfect(golden), ["q001"])), rules, baseline=before).checks[-1]
    assert found.baseline == 1.0
    assert found.threshold == pytest.approx(0.9 if mode == "relative" else 0.97)


def test_a_latency_that_grew_names_the_highest_value_that_passes() -> None:
    golden = golden_set(relevant=4)
    found = evaluation(golden, perfect(golden))
    rules = Policy(floors={}, latency={}, drop_measures=(), latency_increase=0.2, latency_slack=5.0)
    for then, most in ((10.0, 15.0), (100.0, 120.0)):
        (check,) = gate(found, rules, baseline=replace(baseline_of(found), latency={"p95": then}, latencies={})).checks
        assert check.threshold == pytest.approx(most)


def test_the_gate_says_how_many_judgments_people_confirmed() -> None:
    golden = golden_set(relevant=4)
    mixed = tuple(replace(one, source="manual" if n < 3 else "model") for n, one in enumerate(golden.judgments))
    partly = replace(golden, judgments=mixed)
    told = f"{partly.id}-v{partly.version} has 3 of {len(mixed)} judgments confirmed by a person"
    assert told in gate(evaluation(partly, perfect(partly))).notes
    whole = gate(evaluation(golden, perfect(golden)))
    assert not any("confirmed by a person" in note for note in whole.notes)
