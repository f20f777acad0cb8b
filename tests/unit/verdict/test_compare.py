"""Two or more runs over the same queries, compared honestly."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from made import answers, evaluation, golden_set
from ringtrue.errors import CannotDecide, InputError
from ringtrue.measures import Counted, Measure, Scores
from ringtrue.run import Evaluation
from ringtrue.stats import corrected as corrected_p
from ringtrue.verdict import (
    Comparison,
    ComparisonOptions,
    MeasureComparison,
    ScoredRun,
    baseline_of,
    compare,
    compare_all,
    gate,
)
from ringtrue.verdict.comparing import SLICE_MINIMUM

NAN = math.nan
FAST: dict[str, Any] = {"resamples": 2_000}
GOLDEN = golden_set()


def run(name: str, skill: float, seed: int, **options: Any) -> Evaluation:
    return evaluation(GOLDEN, answers(GOLDEN, skill=skill, seed=seed, **options), name=name)


@pytest.fixture(scope="module")
def weak() -> Evaluation:
    return run("weak", 0.5, 1)


@pytest.fixture(scope="module")
def strong() -> Evaluation:
    return run("strong", 0.9, 2)


def scored(
    name: str, columns: Mapping[str, Sequence[float]], facts: Mapping[str, Mapping[str, Any]] | None = None, **rest: Any
) -> ScoredRun:
    """An arm made of bare numbers; queries are q0, q1 and so on unless ``queries`` names them."""
    values = np.array(list(columns.values()), dtype=float)
    queries = tuple(rest.pop("queries", [f"q{n}" for n in range(values.shape[1])]))
    measures = tuple(Measure.parse(measure) for measure in columns)
    judged = np.full(len(queries), np.nan)
    return ScoredRun(name, Scores(measures, queries, values, Counted(len(queries)), judged, facts=facts or {}), **rest)


def test_a_clearly_better_run_is_better_and_the_other_way_round_worse(weak: Evaluation, strong: Evaluation) -> None:
    up, down = compare(weak, strong, **FAST), compare(strong, weak, **FAST)
    assert (up.verdict, down.verdict) == ("better", "worse")
    assert (up.a, up.b, up.primary) == ("weak", "strong", "nDCG@10")
    main, turned = up.measures["nDCG@10"], down.measures["nDCG@10"]
    assert up.reason == main.reason
    assert main.a == pytest.approx(weak.metrics["nDCG@10"])
    assert main.b == pytest.approx(strong.metrics["nDCG@10"])
    assert main.diff == pytest.approx(main.b - main.a) == pytest.approx(-turned.diff)
    assert main.low < main.diff < main.high
    assert (main.wins, main.ties, main.losses) == (turned.losses, turned.ties, turned.wins)
    assert main.prob_better > 0.99 > 0.01 > turned.prob_better
    assert main.more_queries == 0


def test_every_number_is_that_of_the_paired_values(weak: Evaluation, strong: Evaluation) -> None:
    found = compare(weak, strong, **FAST)
    assert list(found.measures) == [str(measure) for measure in weak.scores.measures]
    for name, one in found.measures.items():
        old, new = weak.scores.of(name), strong.scores.of(name)
        expected = scipy_stats.ttest_rel(new, old)
        assert one.n == len(GOLDEN.queries)
        assert (one.t, one.t_p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
        assert one.effect == pytest.approx((new - old).mean() / (new - old).std(ddof=1))
        assert one.wins + one.ties + one.losses == one.n
        assert one.deltas == pytest.approx(dict(zip(weak.scores.query_ids, new - old, strict=True)))
        assert 0 < one.p <= one.p_adjusted <= 1
        assert one.low <= one.bca[0] <= one.diff <= one.bca[1] <= one.high


def test_the_correction_is_over_all_measures(weak: Evaluation, strong: Evaluation) -> None:
    by_holm, plain = (compare(weak, strong, correction=name, **FAST).measures for name in ("holm", "none"))
    p = [one.p for one in by_holm.values()]
    assert [one.p_adjusted for one in by_holm.values()] == pytest.approx(corrected_p(np.array(p), "holm")[0].tolist())
    assert [one.p_adjusted for one in plain.values()] == p
    assert compare(weak, strong, correction="benjamini-hochberg", **FAST).correction == "benjamini-hochberg"


def corrected(found: Sequence[MeasureComparison]) -> list[float]:
    """Holm's values of the p that decides: the larger of the two that must both hold."""
    return [float(p) for p in corrected_p(np.array([max(one.p, one.interval_p) for one in found]), "holm")[0]]


def test_the_primary_measure_stands_alone_and_the_others_are_for_reading(weak: Evaluation) -> None:
    """A gain that eight correlated measures nobody asked for would have hidden."""
    near = next(
        other
        for seed in range(100)
        if 0.01 < compare(weak, other := run("near", 0.58, seed), **FAST).measures["nDCG@10"].p_adjusted < 0.04
    )
    found = compare(weak, near, **FAST)
    main = found.measures["nDCG@10"]
    assert found.verdict == main.word == "better"
    assert (main.tests, main.level, main.decides, found.deciding) == (1, 0.05, True, ("nDCG@10",))
    assert main.p_adjusted == max(main.p, main.interval_p)
    assert main.low > 0
    assert "adjusted" not in found.reason
    assert not any(one.decides or one.tests > 1 for name, one in found.measures.items() if name != "nDCG@10")
    everything = compare(weak, near, correction="holm", **FAST)
    one = everything.measures["nDCG@10"]
    assert everything.verdict == "not enough evidence"
    assert (one.tests, one.decides, set(everything.deciding)) == (8, True, set(everything.measures))
    assert one.level < 0.05
    assert one.low <= 0 <= one.high, "the interval beside the verdict is the one that decided it"
    assert f"adjusted p = {one.p_adjusted:.2g} > 0.05" in everything.reason
    named = compare(weak, near, measures=["R@10", "nDCG@10"], **FAST)
    assert (named.primary, named.measures["R@10"].tests) == ("R@10", 2)
    assert compare(weak, near, primary="RR", **FAST).deciding == ("RR",)
    assert compare(weak, near, deciding=["RR", "R@5"], **FAST).deciding == ("R@5", "RR")


def test_a_comparison_fits_on_a_screen(weak: Evaluation, strong: Evaluation) -> None:
    found = compare(weak, strong, slices=["query_type"], **FAST)
    text = repr(found)
    assert len(text) < 400
    assert text.startswith("<Comparison of strong against weak: better by nDCG@10 (")
    assert "q001" not in repr(found.measures["nDCG@10"])
    assert len(repr(found.measures["nDCG@10"])) < 1_500


def test_several_systems_are_corrected_together(weak: Evaluation, strong: Evaluation) -> None:
    middle = run("middle", 0.6, 3)
    found = compare_all([weak, middle, strong], ComparisonOptions(measures=["nDCG@10", "RR"], **FAST))
    assert [(one.a, one.b) for one in found] == [("weak", "middle"), ("weak", "strong")]
    ours = [one.measures[name] for one in found for name in ("nDCG@10", "RR")]
    assert [one.p_adjusted for one in ours] == pytest.approx(corrected(ours))
    assert {one.tests for one in ours} == {4}
    alone = compare(weak, strong, measures=["nDCG@10", "RR"], **FAST).measures["RR"]
    assert found[1].measures["RR"].detectable > alone.detectable


def test_trap_20_same_seed_same_result_and_the_global_seed_is_neither_read_nor_changed(
    weak: Evaluation, strong: Evaluation
) -> None:
    options: dict[str, Any] = {"slices": ["query_type"], **FAST}
    np.random.seed(1)
    state, first = str(np.random.get_state()), compare(weak, strong, seed=3, **options)
    assert str(np.random.get_state()) == state
    np.random.seed(2)
    again, other = compare(weak, strong, seed=3, **options), compare(weak, strong, seed=4, **options)
    assert first == again
    assert first.measures["nDCG@10"].low != other.measures["nDCG@10"].low
    assert all(one.p > 0 for one in first.measures.values())


def test_asking_for_slices_changes_nothing_else(weak: Evaluation, strong: Evaluation) -> None:
    plain, sliced = compare(weak, strong, **FAST), compare(weak, strong, slices=["query_type"], **FAST)
    assert replace(sliced, slices={}) == plain


def test_trap_21_equal_non_zero_differences_are_found() -> None:
    found = compare(scored("old", {"P@5": [0.2, 0.4, 0.6] * 3}), scored("new", {"P@5": [0.4, 0.6, 0.8] * 3}), **FAST)
    main = found.measures["P@5"]
    assert found.verdict == "better"
    assert main.p == 2 / 2**9
    assert main.t == math.inf
    assert (main.low, main.high) == (pytest.approx(0.2), pytest.approx(0.2))


def test_trap_22_one_query_decides_nothing_and_no_percentage_is_given() -> None:
    found = compare(scored("old", {"nDCG@10": [0.1]}), scored("new", {"nDCG@10": [0.9]}), **FAST)
    main = found.measures["nDCG@10"]
    assert found.verdict == "not enough evidence"
    assert found.reason.startswith("cannot decide: 1 query")
    assert "%" not in found.reason
    assert main.diff == pytest.approx(0.8)
    assert main.more_queries is None
    assert all(math.isnan(value) for value in (main.p, main.p_adjusted, main.low, main.high, main.prob_better, main.detectable))


def test_few_queries_say_so_with_the_smallest_difference_they_can_find(weak: Evaluation) -> None:
    rng = np.random.default_rng(4)
    old = rng.random(15)
    found = compare(scored("old", {"RR": old}), scored("new", {"RR": old + rng.normal(0.01, 0.15, 15)}), **FAST)
    main = found.measures["RR"]
    assert found.verdict == "not enough evidence"
    assert main.detectable > abs(main.diff)
    assert f"15 queries can detect a difference of {main.detectable:.3g} (80 % power)" in main.reason
    assert main.more_queries
    assert any("fewer than 50 queries" in warning for warning in main.warnings)


def test_trap_6_queries_that_one_side_lacks_take_no_part_and_are_never_0() -> None:
    old = scored("old", {"RR": [0.5, 0.5, 1.0, 1.0]}, queries=["q1", "q2", "q3", "q4"])
    new = scored("new", {"RR": [0.5, 1.0, 0.25]}, queries=["q3", "q1", "q9"])
    found = compare(old, new, **FAST)
    main = found.measures["RR"]
    assert main.n == 2
    assert main.deltas == {"q1": 0.5, "q3": -0.5}
    assert (found.only_a, found.only_b) == (("q2", "q4"), ("q9",))
    assert "2 queries have a score in old only and take no part: q2, q4" in found.notes
    assert "1 queries have a score in new only and take no part: q9" in found.notes


def test_undefined_values_are_left_out_in_pairs_and_counted() -> None:
    old = scored("old", {"RR": [0.5, NAN, 1.0, 0.2], "P@5": [0.2, 0.4, 0.4, 0.4]})
    new = scored("new", {"RR": [NAN, 0.5, 1.0, 0.4], "P@5": [0.2, 0.2, 0.4, 0.4]})
    found = compare(old, new, **FAST).measures
    assert (found["RR"].n, found["P@5"].n) == (2, 4)
    assert found["RR"].a == pytest.approx(0.6)
    assert set(found["RR"].deltas) == {"q2", "q3"}
    assert any("2 of 4 shared queries have no value" in warning for warning in found["RR"].warnings)
    assert not any("no value" in warning for warning in found["P@5"].warnings)


def test_where_lower_is_better_the_word_is_turned_and_the_difference_is_not() -> None:
    rng = np.random.default_rng(1)
    old = rng.random(40)
    lower = "Stale@10"
    assert Measure.parse(lower).definition.lower_is_better
    fewer = compare(scored("old", {lower: old}), scored("new", {lower: old - 0.1 - 0.01 * rng.random(40)}), **FAST)
    main = fewer.measures[lower]
    assert fewer.verdict == "better"
    assert main.diff < main.high < 0
    assert (main.wins, main.losses) == (40, 0)
    assert main.prob_better > 0.99
    assert main.t < 0


def test_the_measures_are_those_both_have_or_those_named() -> None:
    old = scored("old", {"RR": [0.1, 0.2], "P@5": [0.1, 0.2], "NumRet": [5, 6]})
    new = scored("new", {"P@5": [0.1, 0.3], "RR": [0.1, 0.2], "R@5": [0.1, 0.2], "NumRet": [5, 6]})
    found = compare(old, new, **FAST)
    assert list(found.measures) == ["RR", "P@5"]
    assert found.primary == "RR"
    assert list(compare(old, new, measures=["P_5"], **FAST).measures) == ["P@5"]
    assert compare(old, new, primary="P_5", **FAST).primary == "P@5"


def test_a_measure_that_was_not_scored_is_computed_from_the_answers(weak: Evaluation, strong: Evaluation) -> None:
    found = compare(weak, strong, measures=["AP"], **FAST)
    again = [evaluation(GOLDEN, one.rankings, measures=["AP"]).metrics["AP"] for one in (weak, strong)]
    assert [found.measures["AP"].a, found.measures["AP"].b] == pytest.approx(again)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": ["R@5"]}, "old: 'R@5' was not scored; did you mean"),
        ({"measures": []}, "no measure is named"),
        ({"measures": ["GMAP"]}, "'GMAP' is a geometric mean .* compare AP"),
        ({"measures": ["NumRet"]}, "'NumRet' is a sum"),
        ({"primary": "R@5"}, "primary measure 'R@5' is not compared; did you mean 'RR'"),
        ({"seed": -1}, "seed = -1"),
        ({"alpha": 2.0}, "alpha = 2.0"),
        ({"correction": "hollm"}, "'holm'"),
        ({"resamples": 10}, "resamples"),
    ],
)
def test_unusable_options_are_named_with_a_cure(options: dict[str, Any], message: str) -> None:
    old, new = scored("old", {"RR": [0.1, 0.2]}), scored("new", {"RR": [0.3, 0.2]})
    with pytest.raises(InputError, match=message):
        compare(old, new, **options)


def test_nothing_in_common_is_an_error_that_shows_both_sides() -> None:
    old = scored("old", {"RR": [0.1, 0.2]})
    with pytest.raises(CannotDecide, match=r"share no scored query .*old has q0, q1 and new has mem:0, mem:1"):
        compare(old, scored("new", {"RR": [0.1, 0.2]}, queries=["mem:0", "mem:1"]))
    with pytest.raises(InputError, match=r"share no measure .*old has RR and new has P@5"):
        compare(old, scored("new", {"P@5": [0.1, 0.2]}))
    with pytest.raises(InputError, match="name two or more"):
        compare_all([old], ComparisonOptions())


def test_different_golden_sets_cannot_be_compared_unless_it_is_said(weak: Evaluation, strong: Evaluation) -> None:
    origin = replace(strong.setup.golden, content_hash="other", version="made-v2.0.0")
    other = replace(strong, setup=replace(strong.setup, golden=origin))
    with pytest.raises(CannotDecide, match=r"weak on made-v1.0.0 and strong on made-v2.0.0.*same set, or allow it"):
        compare(weak, other, **FAST)
    found = compare(weak, other, allow_different_sets=True, **FAST)
    assert found.verdict == "better"
    assert any("different golden sets" in note for note in found.notes)
    same = replace(strong, setup=replace(strong.setup, golden=replace(origin, version="made-v1.0.0")))
    with pytest.raises(CannotDecide, match="with other content"):
        compare(weak, same, **FAST)


def test_what_else_may_explain_a_difference_is_noted(weak: Evaluation, strong: Evaluation) -> None:
    assert compare(weak, strong, **FAST).notes == ()
    other = replace(strong, setup=replace(strong.setup, corpus="0ther", workers=4))
    assert [note.split(":")[0] for note in compare(weak, other, **FAST).notes] == [
        "the two searched different documents",
        "latencies were measured with 1 and 4 concurrent queries",
    ]
    draft = replace(strong, setup=replace(strong.setup, golden=replace(strong.setup.golden, provisional=True)))
    assert any("provisional" in note for note in compare(weak, draft, **FAST).notes)


# ── latency and slices ──────────────────────────────────────────────────────────────────────────────────────────────


def test_latency_is_compared_over_the_same_queries_on_the_same_machine(weak: Evaluation) -> None:
    slow = run("slow", 0.5, 1, latency=60.0)
    found = compare(weak, slow, **FAST).latency
    assert found is not None
    assert found.comparable
    expected = np.mean([slow.latencies[query] - weak.latencies[query] for query in weak.latencies])
    assert found.mean_diff == pytest.approx(expected)
    assert 0 < found.low < found.mean_diff < found.high
    assert found.p95 == (pytest.approx(weak.latency.p95), pytest.approx(slow.latency.p95))


@pytest.mark.parametrize("machine", ["another-machine", ""])
def test_latencies_of_other_or_unknown_machines_are_for_reading_only(weak: Evaluation, machine: str) -> None:
    other = replace(weak, setup=replace(weak.setup, machine=machine))
    found = compare(weak, other, **FAST)
    assert found.latency is not None
    assert not found.latency.comparable
    assert any(f"test-machine and {machine or 'an unknown machine'}" in note for note in found.notes)


def test_without_latencies_there_is_no_latency_and_a_missing_one_is_no_0() -> None:
    old, new = scored("old", {"RR": [0.1, 0.2]}), scored("new", {"RR": [0.3, 0.2]})
    assert compare(old, new, **FAST).latency is None
    timed = [replace(old, timings={"q0": (10.0,), "q1": (18.0, 22.0)}), replace(new, timings={"q1": (30.0,)})]
    found = compare(*timed, **FAST).latency
    assert found is not None
    assert (found.n, found.mean_diff) == (1, 10.0)
    assert math.isnan(found.low)


def by_kind(sizes: Mapping[str, int], gain: Mapping[str, float]) -> tuple[ScoredRun, ScoredRun]:
    rng = np.random.default_rng(6)
    kinds = [kind for kind, size in sizes.items() for _ in range(size)]
    facts = {f"q{n}": {"kind": kind} for n, kind in enumerate(kinds)}
    old = {name: rng.random(len(kinds)) for name in ("nDCG@10", "RR")}
    new = {name: row + [gain[kind] for kind in kinds] + rng.normal(0, 0.05, len(kinds)) for name, row in old.items()}
    return scored("old", old, facts), scored("new", new, facts)


def test_slices_are_compared_per_value_and_corrected_within_their_field() -> None:
    old, new = by_kind({"long": 30, "short": 40}, {"long": 0.2, "short": -0.2})
    found = compare(old, new, slices=["kind"], **FAST)
    parts = found.slices["kind"]
    assert {value: part["nDCG@10"].word for value, part in parts.items()} == {"long": "better", "short": "worse"}
    assert [parts[value]["RR"].n for value in parts] == [30, 40]
    for name in ("nDCG@10", "RR"):
        every = [part[name] for part in parts.values()]
        assert [one.p_adjusted for one in every] == pytest.approx(corrected(every))
    assert [part["RR"].decides for part in parts.values()] == [False, False]
    long = parts["long"]["nDCG@10"]
    assert set(long.deltas) == {f"q{n}" for n in range(30)}
    assert long.a == pytest.approx(float(old.scores.of("nDCG@10")[:30].mean()))
    assert long.warnings == ("with fewer than 50 queries, intervals may be too narrow if differences are strongly skewed",)


def test_a_slice_of_few_queries_is_listed_not_tested_and_costs_the_others_nothing() -> None:
    sizes = {"long": 30, "rare": SLICE_MINIMUM - 1}
    found = compare(*by_kind(sizes, {"long": 0.2, "rare": 0.9}), slices=["kind"], **FAST).slices["kind"]
    rare = found["rare"]["nDCG@10"]
    assert rare.word == "not enough evidence"
    assert rare.reason == "not tested: 4 queries, at least 5 are needed"
    assert rare.diff == pytest.approx(0.9, abs=0.2)
    assert (rare.wins, rare.n) == (4, 4)
    assert all(math.isnan(value) for value in (rare.p, rare.p_adjusted, rare.low, rare.prob_better))
    long = [found["long"][name] for name in ("nDCG@10", "RR")]
    assert [one.p_adjusted for one in long] == pytest.approx([max(one.p, one.interval_p) for one in long])


def test_many_slices_get_the_resamples_they_need() -> None:
    sizes = {f"kind{n}": 8 for n in range(60)}
    found = compare(*by_kind(sizes, dict.fromkeys(sizes, 0.5)), slices=["kind"], resamples=1_000).slices["kind"]
    assert len(found) == 60
    assert all(part["RR"].p > 0 for part in found.values())


def test_a_field_that_no_query_has_gives_no_slices(weak: Evaluation, strong: Evaluation) -> None:
    assert compare(weak, strong, slices=["colour"], **FAST).slices == {"colour": {}}


def test_a_comparison_of_two_runs_does_not_depend_on_the_order_of_their_queries(weak: Evaluation, strong: Evaluation) -> None:
    scores = strong.scores
    order = np.random.default_rng(5).permutation(len(scores.query_ids))
    mixed = replace(scores, query_ids=tuple(scores.query_ids[n] for n in order), values=scores.values[:, order])
    one, other = compare(weak, strong, **FAST), compare(weak, replace(strong, scores=mixed), **FAST)
    assert isinstance(one, Comparison)
    assert one.measures == other.measures


def test_the_order_of_the_queries_does_not_change_a_comparison() -> None:
    golden = golden_set(40)
    rows = list(golden.judgments)
    random.Random(3).shuffle(rows)
    sides = {name: answers(golden, skill=skill, seed=seed) for name, skill, seed in (("a", 0.8, 1), ("b", 0.6, 2))}
    told = []
    for one in (golden, replace(golden, judgments=tuple(rows))):
        a, b = (evaluation(one, answered, name=name) for name, answered in sides.items())
        recorded = baseline_of(a)
        gated = gate(b, baseline=recorded).comparison
        assert gated is not None
        found = [compare(a, b, slices=("query_type",)), compare(recorded, b, slices=("query_type",)), gated]
        found += compare_all([a, b, a], ComparisonOptions())
        told.append([repr((one.measures["nDCG@10"], one.slices)) for one in found] + [repr(found[0].latency)])
    ordered, shuffled = told
    assert shuffled == ordered
    assert ordered[0] == ordered[1] == ordered[2]
