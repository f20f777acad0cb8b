"""A feature spreads only on evidence, one stage at a time, and goes back at once when a guardrail breaks."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flag_store import MemoryStore
from ringtrue.rollout.evidence import LAST_CONTROL, SINCE, Evidence, Side, gather, side, summarise
from ringtrue.rollout.graduate import NO_CONSTITUTIONAL, STAGES, beyond_chance, decide, explain, roll_back, step
from ringtrue.store import ABTest, Flag, LoggedQuery, ShadowRun, Store, StoredResult, timestamp

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
BEFORE = timestamp(NOW - timedelta(days=2))
FLAG = Flag("new", shadow=True)


def rows(count: int = 200, *, control: float = 100.0, treatment: float = 105.0, failed: int = 0) -> list[ShadowRun]:
    made = [
        ShadowRun(f"q{n}", BEFORE, ("a",), ("a",), feature_id="new", control_latency_ms=control, treatment_latency_ms=treatment)
        for n in range(count)
    ]
    return [replace(row, error="TimedOut", treatment_latency_ms=None) if n < failed else row for n, row in enumerate(made)]


def trial(decision: str | None = "accept-treatment", *, samples: int = 150, started: str = BEFORE) -> ABTest:
    return ABTest("new", "running", 0.05, 0.2, 0.05, started, started, sample_count=samples, decision=decision)


def on_golden(delta: float = 0.05, *, surfacing: tuple[float, float] = (1.0, 1.0), at: str = BEFORE) -> list[StoredResult]:
    return [
        StoredResult("c", "shadow", at, 60, {"RR@10": 0.5, "Constitutional@5": surfacing[0]}, feature_id="new"),
        StoredResult(
            "t", "shadow", at, 60, {"RR@10": 0.5 + delta, "Constitutional@5": surfacing[1]}, feature_id="new", golden="hotel",
            control_run_id="c", deltas={"RR@10": delta},
        ),
    ]  # fmt: skip


def evidence(**changes: Any) -> Evidence:
    control, golden = on_golden()
    live = Side(200, 0, 100.0, (100.0,) * 200)
    base = Evidence(golden, control, summarise(rows()), trial(), on=live, off=live)
    return replace(base, **changes)


def at(percent: float, *, hours: float = 25.0, **changes: Any) -> Flag:
    return replace(FLAG, rollout=percent, stage_since=timestamp(NOW - timedelta(hours=hours)), **changes)


def failing(decision: Any) -> list[str]:
    return [check.name for check in decision.checks if check.holds is not True]


def test_with_all_evidence_it_goes_through_every_stage_and_graduates() -> None:
    flag, now, seen = FLAG, NOW, []
    for _ in range(7):
        decision = decide(flag, evidence(), now)
        seen.append((decision.action, decision.flag.rollout, decision.flag.state))
        flag, now = decision.flag, now + timedelta(hours=25)
    assert seen == [*(("advance", stage, "running") for stage in STAGES), ("graduate", 100.0, "graduated")]
    assert decide(flag, evidence(), now).action == "done"


@pytest.mark.parametrize(
    ("missing", "name"),
    [
        ({"golden": None}, "improvement"),
        ({"golden": on_golden(0.0299)[1]}, "improvement"),
        ({"golden": replace(on_golden()[1], deltas={})}, "improvement"),
        ({"test": None}, "sequential test"),
        ({"test": trial(None)}, "sequential test"),
        ({"test": trial("continue")}, "sequential test"),
        ({"test": replace(trial(), method="beta-binomial")}, "sequential test"),
        ({"test": trial(samples=99)}, "samples"),
        ({"golden": on_golden(surfacing=(1.0, 0.98))[1]}, "constitutional"),
        ({"control": None, "constitutional": True}, "constitutional"),
        ({"shadow": summarise(rows(treatment=120.0))}, "latency"),
        ({"shadow": summarise(rows(99))}, "latency"),
        ({"shadow": summarise(rows(failed=3))}, "failures"),
    ],
)  # fmt: skip
def test_nobody_gets_it_while_one_condition_is_missing(missing: dict[str, Any], name: str) -> None:
    decision = decide(FLAG, evidence(**missing), NOW)
    assert (decision.action, decision.moved) == ("wait", False)
    assert name in failing(decision)
    assert name in decision.why


def test_nobody_gets_it_while_much_of_the_live_sample_is_missing_and_the_latencies_say_where_they_are_from() -> None:
    live = [replace(row, source="live") for row in rows()]
    decision = decide(FLAG, evidence(shadow=summarise(live, missing=51)), NOW)
    assert (decision.action, decision.why) == ("wait", "for sample")
    assert "of 251 sampled live queries 51 are missing (20%)" in explain(decision)
    assert "p95 100.0 → 105.0 ms, +5.0% in live systems; below" in explain(decision)
    assert decide(FLAG, evidence(shadow=summarise(live, missing=50)), NOW).action == "advance"


@pytest.mark.parametrize("gate", ["fail", "undecided"])
def test_nobody_gets_it_while_its_gate_has_not_passed(gate: str) -> None:
    decision = decide(FLAG, evidence(gate=gate), NOW)
    assert (decision.action, decision.why, decision.moved) == ("wait", "for gate", False)
    assert "the feature's newest gate " in explain(decision)
    assert decide(FLAG, evidence(gate="pass"), NOW).action == "advance"


def test_what_a_watch_reports_before_anybody_has_it_stops_it_until_a_person_goes_on() -> None:
    store = full_store()
    decision = step(store, "new", now=NOW, breaches=("revenue fell by 9 %",))
    assert (decision.action, decision.flag.rollout, decision.flag.state) == ("rollback", 0.0, "paused")
    assert "It is paused at 0 %: revenue fell by 9 %." in explain(decision)
    assert step(store, "new", now=NOW + timedelta(hours=1)).action == "wait"  # the next look knows nothing of it
    assert store.known["new"].rollout == 0.0
    again = step(store, "new", now=NOW + timedelta(hours=2), breaches=("revenue fell by 9 %",))
    assert (again.action, len(store.trail)) == ("wait", 1)


@pytest.mark.parametrize(
    "enough",
    [
        {"golden": on_golden(0.03)[1]},
        {"test": trial(samples=100)},
        {"shadow": summarise(rows(treatment=119.9))},
        {"shadow": summarise(rows(failed=2))},
    ],
)
def test_exactly_at_the_limit_is_enough(enough: dict[str, Any]) -> None:
    assert decide(FLAG, evidence(**enough), NOW).action == "advance"


def test_thresholds_and_the_measure_are_the_flags_own() -> None:
    golden = replace(on_golden(0.025)[1], deltas={"RR@10": 0.025, "nDCG@10": 0.04})
    assert decide(FLAG, evidence(golden=golden), NOW).action == "wait"
    assert decide(replace(FLAG, graduation_threshold=0.02), evidence(golden=golden), NOW).action == "advance"
    assert decide(replace(FLAG, metadata={"measure": "nDCG@10"}), evidence(golden=golden), NOW).action == "advance"


def test_surfacing_is_asked_for_only_where_the_project_measures_it_and_the_golden_set_has_something_to_surface() -> None:
    control, golden = (replace(one, metrics={"RR@10": 0.5}) for one in on_golden())
    used = evidence(golden=golden, control=control, constitutional=True)
    assert failing(decide(FLAG, used, NOW)) == ["constitutional"]
    told = replace(FLAG, metadata={NO_CONSTITUTIONAL: "hotel has no constitutional documents"})
    for decision in (decide(told, used, NOW), decide(FLAG, replace(used, constitutional=False), NOW)):
        assert decision.action == "advance"
        assert "constitutional" not in [check.name for check in decision.checks]


@pytest.mark.parametrize("percent", STAGES)
def test_a_stage_needs_its_time_and_its_queries(percent: float) -> None:
    assert failing(decide(at(percent, hours=23.9), evidence(), NOW)) == ["stage time"]
    few = Side(99, 0, 100.0, (100.0,) * 99)
    assert failing(decide(at(percent), evidence(on=few), NOW)) == ["stage queries"]
    assert decide(at(percent, hours=3, metadata={"stage_hours": 2}), evidence(), NOW).action in ("advance", "graduate")


@pytest.mark.parametrize("percent", STAGES)
@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"on": Side(200, 0, 150.0, (150.0,) * 200)}, "p95 100.0 → 150.0 ms, +50.0%"),
        ({"on": Side(200, 40, 100.0, (100.0,) * 200)}, "failed or degraded: 0/200 without, 40/200 with"),
        ({"golden": on_golden(surfacing=(1.0, 0.9))[1]}, "constitutional surfacing fell"),
        ({"gate": "fail"}, "gate failed"),
        ({"breaches": ("revenue fell by 9 %",)}, "revenue fell by 9 %"),
    ],
)
def test_a_breach_rolls_back_at_the_next_look_at_every_stage(percent: float, broken: dict[str, Any], says: str) -> None:
    # A minute into the stage: a rollback waits neither for the stage's time nor for its queries.
    decision = decide(at(percent, hours=1 / 60), evidence(**broken), NOW)
    assert decision.action == "rollback"
    assert (decision.flag.rollout, decision.flag.state) == (0.0, "paused")
    assert says in decision.why
    # It stays back until a person says so, whatever the evidence.
    again = decide(decision.flag, evidence(), NOW + timedelta(days=9))
    assert (again.action, again.flag.rollout) == ("wait", 0.0)


def test_a_paused_stage_is_still_guarded() -> None:
    slow = evidence(on=Side(200, 0, 150.0, (150.0,) * 200))
    assert decide(at(25, state="paused"), evidence(), NOW).action == "wait"
    assert decide(at(25, state="paused"), slow, NOW).action == "rollback"


def test_a_few_slow_answers_stop_the_next_stage_but_take_nothing_away() -> None:
    latencies = (100.0,) * 46 + (200.0,) * 4  # 8 % of 50: above the limit, and well within chance
    decision = decide(at(5), evidence(on=side(live(latencies))), NOW)
    assert decision.action == "wait"
    assert "live latency" in failing(decision)


@pytest.mark.parametrize("percent", [1.0, 100.0])
@pytest.mark.parametrize(
    ("on", "off"),
    [
        (Side(49, 49, None), Side(4851, 0, 100.0)),
        (Side(12, 12, None), Side(20, 0, None)),
        (Side(500, 500, None), Side(0, 0, None)),
        (Side(500, 500, None), None),
    ],
)
def test_what_plainly_fails_is_taken_away_with_few_searches_and_with_nobody_to_compare_with(
    percent: float, on: Side, off: Side | None
) -> None:
    decision = decide(at(percent, hours=1), evidence(on=on, off=off), NOW)
    assert decision.action == "rollback"
    assert f"{on.degraded}/{on.queries}" in decision.why


@pytest.mark.parametrize(
    ("on", "off"),
    [
        (Side(3, 3, None), Side(4851, 0, 100.0)),  # may be one user's bad minute
        (Side(49, 3, 100.0), Side(4851, 40, 100.0)),
        (Side(500, 90, 100.0), None),  # nobody knows how many fail without it
        (Side(500, 210, 100.0), Side(500, 200, 100.0)),
    ],
)
def test_what_chance_or_production_explains_is_not_taken_away(on: Side, off: Side | None) -> None:
    assert decide(at(5, hours=1), evidence(on=on, off=off), NOW).action == "wait"


def test_chance_alone_ends_few_stages_though_they_are_looked_at_after_every_search() -> None:
    import numpy as np

    failed = np.cumsum(np.random.default_rng(5).random((1_000, 200)) < 0.03, axis=1)
    alarms = sum(any(beyond_chance(int(hits), n, 0.03) for n, hits in enumerate(row, 1)) for row in failed)
    assert alarms <= 5  # one is expected at most
    worse = np.cumsum(np.random.default_rng(6).random((100, 200)) < 0.25, axis=1)
    assert sum(any(beyond_chance(int(hits), n, 0.03) for n, hits in enumerate(row, 1)) for row in worse) == 100


def test_everybody_by_hand_is_compared_with_those_who_were_without_before(tmp_path: Path) -> None:
    began = NOW - timedelta(hours=3)
    flag = replace(at(100), stage_since=timestamp(began), metadata={LAST_CONTROL: {
        "queries": 900, "degraded": 900, "p95_ms": 1.0, "until": timestamp(NOW - timedelta(days=90))}})  # fmt: skip
    with Store.open(tmp_path / "s.sqlite") as store:
        store.set_flag(flag, who="ada", at=began)
        earlier, later = timestamp(began - timedelta(hours=1)), timestamp(began + timedelta(hours=1))
        store.add_queries(live((100.0,) * 120, on=False, when=earlier))
        store.add_queries(live((100.0,) * 80, on=True, when=earlier))
        store.add_queries([replace(row, degraded=n < 60) for n, row in enumerate(live((100.0,) * 300, when=later))])
        found = gather(store, flag, now=NOW)
        assert (found.off, found.on.queries if found.on else 0) == (Side(120, 0, 100.0, (100.0,) * 120), 300)
        decision = step(store, "new", now=NOW)
    assert decision.action == "rollback"
    assert "0/120 without, 60/300 with" in decision.why


def live(latencies: tuple[float, ...], *, on: bool = True, when: str = BEFORE) -> list[LoggedQuery]:
    return [
        LoggedQuery(f"{on}-{when}-{n}", "pool", "shop", when, total_latency_ms=ms, flags={"new": on})
        for n, ms in enumerate(latencies)
    ]


def test_a_test_that_finds_for_production_rejects() -> None:
    for flag in (FLAG, at(25)):
        decision = decide(flag, evidence(test=trial("accept-control")), NOW)
        assert (decision.action, decision.flag.rollout, decision.flag.state) == ("reject", 0.0, "rejected")
        assert decide(decision.flag, evidence(), NOW).action == "done"


def test_a_percentage_between_stages_goes_to_the_next() -> None:
    assert decide(at(30), evidence(), NOW).flag.rollout == 50.0


def test_those_without_the_feature_stay_the_standard_when_nobody_is_left_without() -> None:
    store = full_store()
    store.known["new"] = at(50)
    moved = step(store, "new", now=NOW).flag
    assert (moved.rollout, moved.metadata[LAST_CONTROL]["p95_ms"]) == (100.0, 100.0)
    later = NOW + timedelta(hours=1)
    store.logged = live((150.0,) * 200, when=timestamp(later))
    decision = step(store, "new", now=later)
    assert decision.action == "rollback"
    assert "p95 100.0 → 150.0 ms" in decision.why


def full_store() -> MemoryStore:
    store = MemoryStore()
    store.known["new"] = FLAG
    store.rows, store.found, store.trials["new"] = rows(), on_golden(), trial()
    recently = timestamp(NOW - timedelta(hours=2))
    store.logged = [*live((100.0,) * 200, when=recently), *live((100.0,) * 200, on=False, when=recently)]
    return store


def test_a_step_is_written_with_its_reason_and_done_once() -> None:
    store = full_store()
    assert step(store, "new", now=NOW).action == "advance"
    assert store.known["new"].rollout == 1.0
    assert store.trail[0].detail["why"].startswith("advance: every check holds: 0 % → 1 %")
    assert step(store, "new", now=NOW).action == "wait"
    assert (store.known["new"].rollout, len(store.trail)) == (1.0, 1)


@pytest.mark.parametrize(
    ("flag", "decision", "status"), [(at(100), "accept-treatment", "graduated"), (FLAG, "accept-control", "rejected")]
)
def test_the_test_ends_with_its_flag(flag: Flag, decision: str, status: str) -> None:
    store = full_store()
    kept = {LAST_CONTROL: {"queries": 200, "degraded": 0, "p95_ms": 100.0}}
    store.known["new"], store.trials["new"] = replace(flag, metadata=kept), trial(decision)
    step(store, "new", now=NOW)
    assert (store.known["new"].state, store.trials["new"].status) == (status, status)


def test_a_step_that_comes_second_moves_nothing() -> None:
    store = full_store()
    read = store.flag
    store.flag = lambda name, *, project="default": FLAG  # type: ignore[method-assign]  # both read before either wrote
    first, second = step(store, "new", now=NOW), step(store, "new", now=NOW)
    assert (first.action, second.action) == ("advance", "wait")
    assert "somebody else" in second.why
    assert read("new") == first.flag
    assert len(store.trail) == 1


def _step(url: str) -> str:
    with Store.open(url) as store:
        return step(store, "new", now=NOW).action


def filled(url: str) -> None:
    with Store.open(url) as store:
        store.set_flag(FLAG, who="ada", at=NOW)
        store.add_shadow_runs(rows())
        for result in on_golden():
            store.add_result(result)
        store.create_test(trial())


def test_processes_that_step_at_once_move_one_stage(tmp_path: Path) -> None:
    url = str(tmp_path / "s.sqlite")
    filled(url)
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        actions = list(pool.map(_step, [url] * 6))
    assert sorted(actions) == ["advance", *["wait"] * 5]
    with Store.open(url) as store:
        assert store.flag("new").rollout == 1.0  # type: ignore[union-attr]
        assert len(store.audit(subject="new")) == 2


def test_trap_23_evidence_from_before_the_candidate_changed_counts_for_nothing() -> None:
    store = full_store()
    changed = replace(FLAG, metadata={SINCE: timestamp(NOW - timedelta(days=1))})
    found = gather(store, changed, now=NOW)
    assert (found.golden, found.control, found.test, found.test_is_older) == (None, None, None, True)
    assert found.shadow.queries == 0
    decision = decide(changed, found, NOW)
    assert decision.action == "wait"
    assert "began before the candidate was changed; begin anew: ringtrue test create new --again" in explain(decision)
    assert gather(store, FLAG, now=NOW).shadow.queries == 200


def test_trap_23_live_searches_of_an_earlier_stage_are_not_counted_in_this_one() -> None:
    store = full_store()
    store.logged += live((900.0,) * 500, when=timestamp(NOW - timedelta(hours=30)))
    found = gather(store, at(5), now=NOW)
    assert found.on is not None
    assert (found.on.queries, found.on.p95_ms) == (200, 100.0)


def test_searches_that_do_not_say_which_side_they_were_on_count_on_neither() -> None:
    store = full_store()
    store.logged = [replace(row, flags={}) for row in store.logged]
    found = gather(store, at(5), now=NOW)
    assert found.on is not None
    assert found.off is not None
    assert (found.on.queries, found.off.queries) == (0, 0)


def test_the_page_says_why_it_waits_in_plain_words() -> None:
    page = explain(decide(FLAG, Evidence(), NOW))
    assert page.splitlines()[0] == "new: 0 %, running"
    assert "It waits for improvement, sequential test, samples, latency, failures." in page
    assert "constitutional" not in page
    assert "not measured on the golden corpus; run `ringtrue shadow start new --golden SET …`" in page
    assert len(page.splitlines()) < 40
    for name in ("improvement", "sequential test", "samples", "latency", "failures"):
        assert f"\n  ?   {name}" in page or f"\n  NO  {name}" in page
    assert "[0] → 1 → 5 → 10 → 25 → 50 → 100 %" in page
    moved = explain(decide(at(5), evidence(), NOW))
    assert "It moves on to 10 %: every check holds: 5 % → 10 %." in moved
    assert "0 → 1 → 5 → [10] → 25" in moved


def test_a_person_can_roll_back_with_a_reason() -> None:
    store = full_store()
    store.known["new"] = at(50)
    flag = roll_back(store, "new", now=NOW, who="ada", why="complaints")
    assert (flag.rollout, flag.state) == (0.0, "paused")
    assert (store.trail[0].who, store.trail[0].detail["why"]) == ("ada", "rollback: complaints")


def test_graduation_on_the_command_line(ringtrue: Any, tmp_path: Path) -> None:
    url = str(tmp_path / "s.sqlite")
    filled(url)
    looked = ringtrue("flag", "graduate", "new", "--dry-run", "--store", url)
    assert looked.code == 0
    assert "It moves on to 1 %" in looked.out
    moved = ringtrue("flag", "graduate", "--all", "--store", url, "--json")
    decision = moved.json["decisions"]["new"]
    assert (moved.code, decision["action"], decision["rollout"], decision["before"]["rollout"]) == (0, "advance", 1.0, 0.0)
    assert {check["name"]: check["holds"] for check in decision["checks"]}["improvement"] is True
    waits = ringtrue("flag", "graduate", "new", "--store", url)
    assert waits.code == 3
    assert "NO  stage time" in waits.out
    back = ringtrue("flag", "graduate", "new", "--breach", "revenue fell", "--store", url)
    assert back.code == 1
    assert "is rolled back from 1 % to 0 % and paused: revenue fell." in back.out
    assert ringtrue("health", "--store", url, "--json").json["parts"]["rollout"]["state"] == "wrong"
