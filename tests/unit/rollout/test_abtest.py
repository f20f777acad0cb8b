"""A sequential test in the store: counted once, decided once, paused, begun anew; and its commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.rollout import (
    begin_now,
    counted_as,
    create_test,
    found_test,
    record_difference,
    record_scores,
    set_status,
    standing,
)
from ringtrue.stats import ConfidenceSequence, Sprt
from ringtrue.store import ABTest, Store, timestamp

NOW = "2026-03-01T12:00:00+00:00"
LATER = "2026-03-02T12:00:00+00:00"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


def scores(n: int, gain: float, seed: int = 1) -> list[tuple[float, float]]:
    rng = np.random.default_rng(seed)
    control = rng.uniform(0.2, 0.6, n)
    return [(float(one), float(np.clip(one + rng.normal(gain, 0.15), 0, 1))) for one in control]


def feed(store: Store, pairs: list[tuple[float, float]], *, start: int = 0) -> ABTest:
    test = found_test(store, "rerank")
    for place, (control, treatment) in enumerate(pairs, start):
        test = record_scores(store, "rerank", f"q{place}", control=control, treatment=treatment, now=LATER).test
    return test


def test_the_kept_sprt_is_the_one_of_the_statistics(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    pairs = scores(60, 0.0)
    test = feed(store, pairs)
    state = Sprt()
    for control, treatment in pairs:
        state = state.add(treatment - control)
    assert test.log_likelihood_ratio == pytest.approx(state.llr, abs=1e-12)
    assert test.sigma == state.sigma_used
    assert (test.sample_count, test.started_at, test.updated_at) == (
        60,
        found_test(store, "rerank").started_at,
        test.updated_at,
    )
    assert test.sums["control_mrr"] == pytest.approx(sum(control for control, _ in pairs))
    assert (test.upper_bound, test.lower_bound) == state.bounds


def test_the_kept_confidence_sequence_is_the_one_of_the_statistics(store: Store) -> None:
    create_test(store, "rerank", now=NOW, method="confidence-sequence")
    pairs = scores(50, 0.1)
    test = feed(store, pairs)
    state = ConfidenceSequence()
    for control, treatment in pairs:
        state = state.add(treatment - control)
    assert standing(test).interval == (state.low, state.high)
    assert test.log_likelihood_ratio == state.evidence
    assert state.low > -1


def test_a_query_counts_once_however_often_it_is_reported(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    first = record_scores(store, "rerank", "q1", control=0.2, treatment=0.5, now=NOW)
    again = record_scores(store, "rerank", "q1", control=0.0, treatment=1.0, now=LATER)
    assert (first.counted, again.counted, again.why_not) == (True, False, "counted before")
    assert again.test == found_test(store, "rerank")
    assert (again.test.sample_count, again.test.sums["differences"]) == (1, pytest.approx(0.3))


def test_the_first_decision_stays_while_queries_go_on_counting(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    decided = feed(store, scores(100, 0.2))
    assert decided.decision == "accept-treatment"
    after = standing(decided).decided_after
    assert after is not None
    assert after < 100
    worse = feed(store, scores(120, -0.5), start=100)
    assert worse.log_likelihood_ratio < worse.lower_bound
    assert (worse.decision, worse.sample_count, standing(worse).decided_after) == ("accept-treatment", 220, after)
    assert worse.status == "running"  # graduating and rejecting are decided elsewhere


def test_a_worse_treatment_is_decided_for_the_control(store: Store) -> None:
    create_test(store, "rerank", now=NOW, method="confidence-sequence")
    found = standing(feed(store, scores(150, -0.1)))
    assert found.decision == "accept-control"
    assert found.interval is not None
    assert found.interval[1] < 0.05
    assert "less than a gain of 0.05" in found.reason


def test_a_paused_test_counts_nothing_and_loses_nothing(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    feed(store, scores(5, 0.0))
    paused = set_status(store, "rerank", "paused", now=NOW, who="ops", why="index is rebuilt")
    assert (paused.status, paused.sample_count) == ("paused", 5)
    refused = record_scores(store, "rerank", "q9", control=0.1, treatment=0.2, now=LATER)
    assert (refused.counted, refused.why_not) == (False, "the test is paused")
    assert set_status(store, "rerank", "running", now=LATER, who="ops").status == "running"
    # What was refused was not marked as counted.
    assert record_scores(store, "rerank", "q9", control=0.1, treatment=0.2, now=LATER).counted
    assert [entry.what for entry in store.audit(subject="rerank")] == ["test running", "test paused"]
    assert found_test(store, "rerank").sample_count == 6


def test_each_change_of_status_takes_place_even_in_one_moment(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    seen = [set_status(store, "rerank", status, now=NOW, who="ops").status for status in ("paused", "running", "paused")]  # type: ignore[arg-type]
    assert seen == ["paused", "running", "paused"]
    assert found_test(store, "rerank").status == "paused"
    set_status(store, "rerank", "paused", now=LATER, who="ops")  # nothing changes
    assert [entry.what for entry in store.audit(subject="rerank")] == ["test paused", "test running", "test paused"]
    assert not record_scores(store, "rerank", "q1", control=0.1, treatment=0.2, now=NOW).counted


def test_two_new_beginnings_in_one_moment_both_take_place(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    for _ in range(2):
        create_test(store, "rerank", now=LATER, again=True)
        assert record_scores(store, "rerank", f"q{_}", control=0.1, treatment=0.2, now=LATER).test.sample_count == 1
    assert found_test(store, "rerank").sums["again"] == 2


def test_a_question_asked_afresh_counts_once_in_a_test_and_once_more_in_one_begun_anew(store: Store) -> None:
    def ask(name: str) -> bool:
        name = counted_as(found_test(store, "rerank"), name)
        return record_scores(store, "rerank", name, control=0.1, treatment=0.2, now=LATER).counted

    create_test(store, "rerank", now=NOW)
    assert [ask("g1"), ask("g1")] == [True, False]
    create_test(store, "rerank", now=LATER, again=True)
    assert [ask("g1"), ask("g1"), ask("g2")] == [True, False, True]
    assert found_test(store, "rerank").sample_count == 2


def test_only_a_test_that_has_counted_nothing_can_begin_later(store: Store) -> None:
    assert not begin_now(store, "rerank", now=NOW)
    create_test(store, "rerank", now=NOW)
    assert begin_now(store, "rerank", now=LATER)
    assert timestamp(found_test(store, "rerank").started_at) == timestamp(LATER)
    record_scores(store, "rerank", "q1", control=0.1, treatment=0.2, now=LATER)
    assert not begin_now(store, "rerank", now="2026-03-03T12:00:00+00:00")
    assert timestamp(found_test(store, "rerank").started_at) == timestamp(LATER)


def test_the_gamblers_are_kept_and_those_of_an_older_test_begin_where_it_is(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    pairs = scores(40, 0.03)
    test = feed(store, pairs)
    state = Sprt()
    for control, treatment in pairs:
        state = state.add(treatment - control)
    assert (test.sums["gain"], test.sums["none"]) == (pytest.approx(state.gain), pytest.approx(state.none))
    assert state.gain != 0
    old = {name: value for name, value in test.sums.items() if name not in ("gain", "none")}
    store.update_test("rerank", "older", lambda _: replace(test, sums=old))
    later = record_scores(store, "rerank", "q40", control=0.5, treatment=0.6, now=LATER).test
    assert 0 < later.sums["gain"] < 0.1


def test_a_ratio_without_its_proof_is_explained(store: Store) -> None:
    create_test(store, "rerank", now=NOW, delta=0.02)
    test = found_test(store, "rerank")
    n = 0
    while test.log_likelihood_ratio < test.upper_bound:
        test = record_scores(store, "rerank", f"q{n}", control=0.5, treatment=0.55, now=LATER).test
        n += 1
    found = standing(test)
    assert found.decision == "continue"
    assert "rare large differences not seen yet" in found.reason
    assert found.reason.endswith("once in 20 is wanted")


def test_trap_23_begun_anew_nothing_from_before_is_in_it_or_counted_again(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    feed(store, scores(100, 0.2))
    with pytest.raises(InputError, match="already"):
        create_test(store, "rerank", now=LATER)
    fresh = create_test(store, "rerank", now=LATER, again=True, method="confidence-sequence", who="ops")
    kept = found_test(store, "rerank")
    assert (kept.sample_count, kept.decision, kept.sums["differences"]) == (0, "continue", 0.0)
    assert kept.method == fresh.method == "confidence-sequence"
    assert not record_scores(store, "rerank", "q0", control=0.0, treatment=1.0, now=LATER).counted
    assert record_scores(store, "rerank", "q100", control=0.0, treatment=1.0, now=LATER).counted
    (entry,) = store.audit(subject="rerank")
    assert (entry.detail["samples"], entry.detail["decision"]) == (100, "accept-treatment")


def test_beta_binomial_is_labelled_as_not_error_controlled(store: Store) -> None:
    create_test(store, "rerank", now=NOW, method="beta-binomial", measure="hit")
    test = feed(store, [(0.0, 1.0)] * 5)
    found = standing(test)
    assert (found.decision, found.error_controlled) == ("accept-treatment", False)
    assert "not error-controlled" in found.reason
    assert test.upper_bound == pytest.approx(np.log(0.95 / 0.05))
    with pytest.raises(InputError, match=r"'q7'.*0 or 1"):
        record_scores(store, "rerank", "q7", control=0.5, treatment=1.0, now=NOW)
    assert found_test(store, "rerank").sample_count == 5


def test_a_test_of_differences_and_one_of_scores_are_not_mixed(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    create_test(store, "credits", now=NOW, measure=None)
    with pytest.raises(InputError, match="mrr scores of both sides"):
        record_difference(store, "rerank", "q1", 0.5, now=NOW)
    with pytest.raises(InputError, match="counts differences"):
        record_scores(store, "credits", "q1", control=0.0, treatment=0.5, now=NOW)
    found = standing(record_difference(store, "credits", "q1", 0.5, now=NOW).test)
    assert (found.control, found.treatment, found.mean_difference) == (None, None, 0.5)


def test_unknown_is_none_before_the_first_query(store: Store) -> None:
    found = standing(create_test(store, "rerank", now=NOW))
    assert (found.mean_difference, found.control, found.sigma, found.interval, found.decided_after) == (None,) * 5
    assert found.reason == "burning in: 30 more queries before the spread is known"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "sprtt"}, "'sprt'"),
        ({"alpha": 0.0}, "alpha"),
        ({"sigma": 0.0}, "sigma"),
        ({"sigma": 0.2, "method": "confidence-sequence"}, "takes no sigma"),
        ({"measure": "a b"}, "measure"),
        ({"measure": None, "method": "beta-binomial"}, "name what succeeds"),
    ],
)
def test_unusable_options_are_refused_before_anything_is_kept(store: Store, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        create_test(store, "rerank", now=NOW, **options)
    assert store.tests() == []


def test_unusable_scores_and_unknown_features_are_named(store: Store) -> None:
    create_test(store, "rerank", now=NOW)
    with pytest.raises(InputError, match=r"'q1'.*treatment score 1\.5"):
        record_scores(store, "rerank", "q1", control=0.5, treatment=1.5, now=NOW)
    with pytest.raises(InputError, match=r"'q1'.*nan"):
        record_scores(store, "rerank", "q1", control=float("nan"), treatment=0.5, now=NOW)
    with pytest.raises(MissingInput, match="'other'"):
        record_scores(store, "other", "q1", control=0.5, treatment=0.5, now=NOW)


def test_the_commands_create_feed_pause_and_show(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    where = ("--store", tmp_path / "store.sqlite")
    made = ringtrue("test", "create", "rerank", "--method", "confidence-sequence", *where, "--json")
    assert (made.code, made.json["samples"], made.json["decision"]) == (0, 0, "continue")
    file = tmp_path / "scores.csv"
    lines = [f"q{place},{control},{treatment}" for place, (control, treatment) in enumerate(scores(80, 0.2))]
    file.write_text("query_id,control,treatment\n" + "\n".join(lines), encoding="utf-8")
    fed = ringtrue("test", "update", "rerank", file, *where, "--json")
    assert (fed.code, fed.json["counted"], fed.json["passed_over"]) == (0, 80, 0)
    assert fed.json["test"]["decision"] == "accept-treatment"
    assert "80 skipped (counted before)" in ringtrue("test", "update", "rerank", file, *where).out
    assert ringtrue("test", "pause", "rerank", "--why", "rebuild", *where).out == "rerank: paused, 80 queries counted\n"
    one = b"query_id,control,treatment\nx,0,1\n"
    assert ringtrue("test", "update", "rerank", "-", *where, "--json", stdin=one).json["why_not"] == "the test is paused"
    assert ringtrue("test", "resume", "rerank", *where, "--json").json["status"] == "running"
    shown = ringtrue("test", "status", *where)
    assert "accept-treatment after" in shown.out
    assert ringtrue("test", "status", "rerank", *where, "--json").json["samples"] == 80
    assert [test["feature_id"] for test in ringtrue("test", "status", *where, "--json").json["tests"]] == ["rerank"]


def test_bad_input_ends_with_2_and_one_line(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    where = ("--store", tmp_path / "store.sqlite")
    assert ringtrue("test", "status", "rerank", *where).code == 2
    ringtrue("test", "create", "rerank", *where)
    assert ringtrue("test", "create", "rerank", *where).code == 2
    file = tmp_path / "scores.csv"
    file.write_text("query_id,control,treatment\nq1,0.5,much\n", encoding="utf-8")
    ended = ringtrue("test", "update", "rerank", file, *where)
    assert ended.code == 2
    assert "scores.csv:2:" in ended.err
    assert "'much'" in ended.err
    assert ringtrue("test", "update", "rerank", *where).code == 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("q1,0.1,0.2\nq2,0.1,0.3\nq3,0.5,1.5\n", "scores.csv:4: query 'q3': the treatment score 1.5"),
        ("q1,0.1,0.2\nq2,0.1,0.3\nq3,,0.5\n", "scores.csv:4: has no control"),
        ("q1,0.1,0.2\nq2,0.1,0.3\nq1,0.1,0.9\n", "scores.csv:4: query 'q1': has the scores 0.1 and 0.9, but 0.1 and 0.2 at"),
    ],
)
def test_a_file_with_a_row_that_cannot_be_used_counts_nothing(
    ringtrue: Callable[..., Any], tmp_path: Path, rows: str, said: str
) -> None:
    where = ("--store", tmp_path / "store.sqlite")
    ringtrue("test", "create", "rerank", *where)
    file = tmp_path / "scores.csv"
    file.write_text(f"query_id,control,treatment\n{rows}", encoding="utf-8")
    ended = ringtrue("test", "update", "rerank", file, *where)
    assert ended.code == 2
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1
    assert ringtrue("test", "status", "rerank", *where, "--json").json["samples"] == 0
    file.write_text("query_id,control,treatment\nq1,0.1,0.2\nq1,0.1,0.2\n", encoding="utf-8")  # twice the same is once
    assert ringtrue("test", "update", "rerank", file, *where, "--json").json["counted"] == 1


def test_a_file_for_a_test_that_counts_something_else_names_its_place(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    where = ("--store", tmp_path / "store.sqlite")
    ringtrue("test", "create", "rerank", "--method", "beta-binomial", "--measure", "hit", *where)
    file = tmp_path / "scores.csv"
    file.write_text("query_id,control,treatment\nq1,0,1\nq2,0.5,1\n", encoding="utf-8")
    ended = ringtrue("test", "update", "rerank", file, *where)
    assert ended.code == 2
    assert "scores.csv:3: query 'q2'" in ended.err
    assert ringtrue("test", "status", "rerank", *where, "--json").json["samples"] == 0


def test_simulate_checks_its_promises(ringtrue: Callable[..., Any]) -> None:
    small = ("test", "simulate", "--simulations", "250", "--queries", "500")
    passed = ringtrue(*small, "--check", "--json")
    assert passed.code == 0
    assert json.loads(passed.out)["broken"] == []
    assert len(passed.json["rates"]) == 14
    too_short = ringtrue("test", "simulate", "--simulations", "60", "--queries", "40", "--check")
    assert too_short.code == 1
    assert "power, at least 80 % wanted" in too_short.err
    assert "confidence sequence" in too_short.out


def test_a_confidence_sequence_tells_its_interval_and_not_a_sum_of_evidence(
    ringtrue: Callable[..., Any], tmp_path: Path
) -> None:
    where = ("--store", tmp_path / "store.sqlite")
    ringtrue("test", "create", "rerank", "--method", "confidence-sequence", *where)
    ringtrue("test", "update", "rerank", "-", *where, stdin=b"query_id,control,treatment\nx,0.5,0.5\n")
    said = ringtrue("test", "status", "rerank", *where, "--json").json["reason"]
    assert said.startswith("continue: mean difference +0.000, so far between -1.000 and +1.000; decided once that leaves out 0")
