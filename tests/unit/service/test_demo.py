"""The filled store of ``ringtrue serve --demo``: every page has something to show, computed and not made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean

import pytest

from made_once import cache_from
from ringtrue.errors import InputError
from ringtrue.experiment import ExperimentTable
from ringtrue.golden import diff, golden_from, load, validate
from ringtrue.review import ReviewQueue
from ringtrue.rollout import decide, existing_flag, gather, health_of
from ringtrue.run import unpacked
from ringtrue.service.demo import demo_settings, fill
from ringtrue.store import Flag, LoggedQuery, Store, StoredResult
from ringtrue.verdict import Policy, baseline_from, compare, gate

NOW = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    settings = demo_settings(tmp_path_factory.mktemp("demo"))
    with Store.open(settings.store) as opened:
        yield opened


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, hotel_cache: Path) -> Iterator[None]:
    """The documents are indexed already."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RINGTRUE_CACHE", str(cache_from(hotel_cache, tmp_path_factory.mktemp("cache"))))
        yield


@pytest.fixture(scope="module")
def filled(store: Store, told: list[str], cache: None) -> bool:
    """Filled once; every test reads."""
    return fill(store, now=NOW, tell=told.append)


@pytest.fixture(scope="module")
def evaluations(store: Store, filled: bool) -> list[StoredResult]:
    """Production's evaluations, the newest first."""
    return [one for one in store.results() if one.run_type != "shadow"]


@pytest.fixture(scope="module")
def searches(store: Store, filled: bool) -> list[LoggedQuery]:
    return store.queries()


def test_the_settings_serve_the_shipped_set_from_a_store_of_its_own(tmp_path: Path) -> None:
    settings = demo_settings(tmp_path, port=9000)
    assert settings.store == str(tmp_path / "store.sqlite")
    assert (settings.golden, settings.retriever, settings.demo, settings.port) == ("hotel", "hybrid", True, 9000)
    assert settings.open  # on loopback nobody needs a key


def test_it_tells_how_far_it_is_and_what_is_simulated(filled: bool, told: list[str]) -> None:
    assert filled
    assert "simulated" in told[0]
    assert len(told) > 10
    assert all(told)


def test_a_second_call_changes_nothing_and_says_so(store: Store, filled: bool) -> None:
    before, said = store.counts(), []
    assert not fill(store, now=NOW + timedelta(days=3), tell=said.append)
    assert store.counts() == before
    assert "left as it is" in said[0]


def test_a_project_with_data_of_its_own_is_left_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as own:
        own.add_queries([LoggedQuery("eq_1", "pool", "web", "2026-11-01T00:00:00Z")])
        with pytest.raises(InputError, match="data of its own"):
            fill(own, now=NOW)


def test_filling_that_was_stopped_half_way_is_not_taken_for_a_filled_store(tmp_path: Path) -> None:
    def stop(said: str) -> None:
        if "hotel" in said and "filling" not in said:
            raise KeyboardInterrupt

    with Store.open(tmp_path / "store.sqlite") as own:
        with pytest.raises(KeyboardInterrupt):
            fill(own, now=NOW, tell=stop)
        with pytest.raises(InputError, match="half-way; delete it"):
            fill(own, now=NOW)


# ── golden sets, evaluations, gates ─────────────────────────────────────────────────────────────────────────────────


def test_golden_sets_have_versions_that_differ(store: Store, filled: bool) -> None:
    kept = [(one.name, one.version) for one in store.golden_sets()]
    assert kept == [("hotel", "2.0.0"), ("hotel", "1.0.0")]
    old, new = (golden_from(store.golden_set("hotel", version).content, name="hotel") for version in ("1.0.0", "2.0.0"))  # type: ignore[union-attr]
    assert old == load("hotel")
    found = diff(old, new)
    assert len(found.queries.added) == 1
    assert len(found.queries.changed) == 1
    assert found.judgments_added
    assert any(change.old != change.new for change in found.judgments_changed)
    assert not validate(new).errors


def test_evaluations_are_spread_over_a_month_and_keep_their_runs(store: Store, evaluations: list[StoredResult]) -> None:
    assert 8 <= len(evaluations) <= 12
    days = [(NOW - datetime.fromisoformat(one.created_at)).days for one in evaluations]
    assert max(days) >= 28
    assert min(days) == 0
    assert len({one.retriever for one in evaluations}) == 4
    runs = {one.run_id: store.run(one.run_id) for one in evaluations}
    assert all(runs.values())
    whole = [unpacked(run.content, name=run.name) for run in runs.values() if run is not None]
    assert sum(bool(one.components) for one in whole) >= 2
    for one, result in zip(whole, evaluations, strict=True):
        assert one.metrics["nDCG@10"] == pytest.approx(result.metrics["nDCG@10"])
        assert one.losses


def test_two_were_gated_one_passed_and_one_failed(store: Store, evaluations: list[StoredResult]) -> None:
    gated = [one for one in evaluations if one.gate is not None]
    assert [one.gate for one in gated] == ["pass", "fail"]
    assert all(one.control_run_id == "baseline 2.0.0" for one in gated)
    assert gated[1].deltas["R@5"] < -0.05
    for one in gated:
        (entry,) = store.audit(subject=one.run_id, what="gate.verdict")
        statuses = {check["status"] for check in entry.detail["checks"]}
        assert (entry.detail["verdict"], "fail" in statuses) == (one.gate, one.gate == "fail")


def test_the_stored_baseline_gives_the_stored_verdicts_again(store: Store, evaluations: list[StoredResult]) -> None:
    assert [one.version for one in store.baselines(name="production")] == ["2.0.0", "1.0.0"]
    baseline = baseline_from(store.baseline("production").content, name="production")  # type: ignore[union-attr]
    policy = Policy(latency_increase=float("inf"), latency={})
    for one in evaluations:
        if one.gate is not None:
            run = store.run(one.run_id)
            assert run is not None
            assert gate(unpacked(run.content, name=run.name), policy, baseline=baseline).word == one.gate


def test_comparing_the_failed_run_shows_a_lost_document(store: Store, evaluations: list[StoredResult]) -> None:
    good, bad = (next(one for one in evaluations if one.gate == word) for word in ("pass", "fail"))
    a, b = (unpacked(store.run(one.run_id).content, name=one.run_id) for one in (good, bad))  # type: ignore[union-attr]
    assert compare(a, b).verdict == "worse"
    lost = {(one.query_id, one.doc_id) for one in b.losses} - {(one.query_id, one.doc_id) for one in a.losses}
    assert lost
    assert {one.stage for one in b.losses} >= {"cut by fusion"}


# ── the log ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_log_has_two_weeks_with_busy_and_quiet_hours(store: Store, searches: list[LoggedQuery]) -> None:
    assert 3_800 <= len(searches) <= 4_200
    times = [datetime.fromisoformat(one.created_at) for one in searches]
    assert NOW - timedelta(days=14) <= min(times) < NOW - timedelta(days=13)
    assert NOW - timedelta(days=1) < max(times) <= NOW
    hours = Counter(at.hour for at in times)
    assert sum(hours[hour] for hour in (18, 19, 20, 21)) > 4 * sum(hours[hour] for hour in (1, 2, 3, 4))
    assert {one.tool_name for one in searches} == {"web", "app", "assistant"}
    assert Counter(Counter(one.session_id for one in searches).values())[1] < len(searches) / 2


def test_some_searches_are_empty_and_some_degraded(searches: list[LoggedQuery]) -> None:
    empty, degraded = [one for one in searches if not one.result_ids], [one for one in searches if one.degraded]
    assert 20 <= len(empty) <= 400
    assert 20 <= len(degraded) <= 400
    assert all(one.fallback for one in degraded)
    assert fmean(one.total_latency_ms or 0 for one in degraded) > 300


def test_logged_answers_are_those_of_the_search(
    searches: list[LoggedQuery], evaluations: list[StoredResult], store: Store
) -> None:
    run = store.run(evaluations[0].run_id)
    assert run is not None
    hybrid = unpacked(run.content, name=run.name)
    ids = {query.text: tuple(hit.doc_id for hit in hybrid.ranking(query.query_id).hits[:10]) for query in hybrid.queries}
    answered = [one for one in searches if one.retriever == hybrid.setup.fingerprint and one.query in ids]
    assert len(answered) > 500
    assert all(one.result_ids == ids[one.query] for one in answered)
    assert set(answered[0].channel_contributions) == {"bm25", "dense"}
    assert {stage.name for stage in answered[0].stages} == {"candidate", "fusion"}


def test_feedback_has_every_kind_and_becomes_judgments(store: Store, filled: bool) -> None:
    kinds = Counter(one.event_type for one in store.feedback())
    wanted = {
        "click",
        "read_after_search",
        "dwell",
        "cite",
        "re_search",
        "scroll_past",
        "validate_useful",
        "validate_not_useful",
    }
    assert set(kinds) == wanted
    assert max(datetime.fromisoformat(one.created_at) for one in store.feedback()) <= NOW
    sources = Counter(one.source for one in store.judgments())
    assert sources["implicit"] > 300
    assert sources["validated"] > 30
    assert sources["manual"] > 0


# ── people, features, experiments ───────────────────────────────────────────────────────────────────────────────────


def test_two_reviewers_agree_moderately_and_dispute_a_handful(store: Store, filled: bool) -> None:
    found = ReviewQueue(store).standing()
    assert found.agreement is not None
    assert 0.4 < found.agreement.coefficient < 0.8
    assert 20 <= found.agreement.items <= 30
    assert 3 <= len(found.disputes) <= 10
    assert [rater.name for rater in found.raters] == ["reviewer-1", "reviewer-2"]
    backlog = {state: found.backlog[state] for state in ("pending_review", "approved", "rejected", "published")}
    assert 50 <= backlog["pending_review"] <= 70
    assert all(count >= 4 for count in backlog.values())


@pytest.fixture(scope="module")
def flags(store: Store, filled: bool) -> dict[str, Flag]:
    return {flag.name: flag for flag in store.flags()}


def test_one_feature_graduated_one_was_rolled_back_and_one_is_on_its_way(store: Store, flags: dict[str, Flag]) -> None:
    states = {name: (flag.rollout, flag.state) for name, flag in flags.items()}
    assert states == {
        "hybrid-search": (100.0, "graduated"),
        "diverse-results": (0.0, "paused"),
        "tuned-fusion": (10.0, "running"),
    }
    steps = [str(one.detail.get("why")) for one in reversed(store.audit(subject="hybrid-search", what="set flag"))]
    assert [why.split(":")[0] for why in steps if why.startswith(("advance", "graduate"))] == ["advance"] * 3 + ["graduate"]
    back = store.audit(subject="diverse-results", what="set flag", limit=1)[0]
    assert back.who == "ringtrue"
    assert str(back.detail["why"]).startswith("rollback: live latency")


def test_the_running_flag_waits_with_met_and_unmet_conditions(store: Store, flags: dict[str, Flag]) -> None:
    flag = existing_flag(store, "tuned-fusion")
    decision = decide(flag, gather(store, flag, now=NOW), NOW)
    assert decision.action == "wait"
    held = Counter(check.holds for check in decision.checks)
    assert held[True] >= 3
    assert held[False] >= 1
    assert held[None] >= 1


def test_one_test_has_decided_and_one_goes_on(store: Store, flags: dict[str, Flag]) -> None:
    tests = {one.feature_id: one for one in store.tests()}
    assert (tests["hybrid-search"].decision, tests["hybrid-search"].status) == ("accept-treatment", "graduated")
    assert (tests["tuned-fusion"].decision, tests["tuned-fusion"].status) == ("continue", "running")
    for name, test in tests.items():
        points = store.test_points(name)
        assert len(points) >= 20
        assert [one.sample_count for one in points] == sorted(one.sample_count for one in points)
        assert points[-1].llr == pytest.approx(test.log_likelihood_ratio)
    assert store.test_points("tuned-fusion")[-1].low is not None


def test_shadow_runs_are_beside_live_searches(store: Store, flags: dict[str, Flag]) -> None:
    for name in ("hybrid-search", "tuned-fusion"):
        rows = [one for one in store.shadow_runs(feature_id=name) if one.source == "live"]
        assert 250 <= len(rows) <= 350
        asked = store.queries(query_ids=[one.query_id for one in rows])
        assert {one.query_id: one.result_ids for one in asked} == {one.query_id: one.control_result_ids for one in rows}
        assert any(one.top_result_changed for one in rows)


def test_the_sweep_was_made_and_its_best_is_the_candidate(store: Store, flags: dict[str, Flag]) -> None:
    found = ExperimentTable(store, "2026-11-20T00:00:00Z").all()
    trials = [one for one in found if "sweep" in one.extra]
    assert len(trials) == 30
    assert len({one.metrics["nDCG@10"] for one in trials}) > 15
    assert all(set(one.config_changes) == {"w", "title", "norm"} for one in trials)
    best = max(trials[1:], key=lambda one: one.metrics["nDCG@10"])
    assert flags["tuned-fusion"].metadata["candidate"] == best.extra["sweep"]["retriever"]
    single = [one.verdict.split()[0] for one in found if "sweep" not in one.extra]
    assert set(single) == {"ACCEPTED", "REJECTED"}


# ── what is watched ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_job_is_done_and_one_failed_with_the_reason(store: Store, evaluations: list[StoredResult]) -> None:
    failed, done = store.jobs()
    assert (done.state, failed.state) == ("done", "failed")
    assert done.result is not None
    assert done.result["run_id"] == evaluations[0].run_id
    assert failed.error is not None
    assert failed.error.code == "cannot_decide"
    assert "top(5) cuts answers" in failed.error.message


def test_health_has_something_to_say_of_every_part(store: Store, flags: dict[str, Flag]) -> None:
    parts = {part.name: part.state for part in health_of(store, now=NOW).parts}
    assert parts["gate"] == "ok"
    assert parts["rollout"] == "wrong"  # a rollback that nobody has looked at
    assert all(parts[name] == "ok" for name in ("log", "losses", "evaluation", "backlog", "shadow", "tests"))


def test_the_audit_trail_names_roles_and_says_what_is_simulated(store: Store, filled: bool) -> None:
    entries = store.audit()
    assert {one.who for one in entries} == {"operator", "ringtrue"}
    assert {"golden.upload", "baseline.update", "set flag", "demo.filled"} <= {one.what for one in entries}
    assert "simulated" in entries[0].detail["simulated"]
    assert not store.keys()
