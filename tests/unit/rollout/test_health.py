"""One call that says what runs, what is wrong and what is not known."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import Unreachable
from ringtrue.log import QueryLog, losses
from ringtrue.rollout import change_flag, create_test, health_of, record_scores, review_and_evaluation, roll_back
from ringtrue.rollout.evidence import missing_entry
from ringtrue.store import AuditEntry, LoggedQuery, ReviewItem, ShadowRun, Store, StoredBaseline, StoredResult, timestamp

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
LATELY = timestamp(NOW - timedelta(hours=1))
LONG_AGO = timestamp(NOW - timedelta(days=9))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.sqlite") as opened:
        yield opened


@pytest.fixture
def healthy(store: Store) -> Store:
    store.add_queries([LoggedQuery(f"eq_{n}", "pool", "shop", LATELY if n else LONG_AGO) for n in range(5)])
    store.add_result(evaluated())
    return store


def evaluated(**changes: Any) -> StoredResult:
    result = StoredResult(
        "r1", "full", LATELY, 60, {"nDCG@10": 0.8, "Constitutional@5": 1.0}, golden="hotel-v1.0.0",
        ndcg_at_10=0.8, constitutional_surfacing_rate=1.0, intervals={"nDCG@10": (0.75, 0.85)}, gate="pass",
    )  # fmt: skip
    return replace(result, **changes)


def states(store: Store, **options: Any) -> dict[str, str]:
    return {part.name: part.state for part in health_of(store, now=NOW, **options).parts}


def test_an_empty_store_is_not_healthy_but_unknown(store: Store) -> None:
    found = health_of(store, now=NOW)
    assert (found.state, found.exit_code) == ("unknown", 3)
    assert {part.name for part in found.parts if part.state == "unknown"} == {"log", "evaluation", "gate"}


def test_an_evaluation_with_unanswered_queries_is_a_warning(healthy: Store) -> None:
    answers = {f"q{n}": {"nDCG@10": 0.8} for n in range(11)} | {f"q{n}": {} for n in range(11, 25)}
    healthy.add_result(evaluated(run_id="r2", created_at=timestamp(NOW), query_count=11, per_query=answers))
    part = next(part for part in health_of(healthy, now=NOW).parts if part.name == "evaluation")
    assert part.state == "unknown"
    assert "14 of 25 queries were not answered" in part.says


def test_constitutional_documents_have_a_part_once_they_are_measured(store: Store) -> None:
    store.add_result(evaluated(metrics={"nDCG@10": 0.8}))
    assert "constitutional" not in states(store)
    store.add_result(evaluated(run_id="r2"))
    assert states(store)["constitutional"] == "ok"


def test_a_store_with_everything_in_order_is_healthy(healthy: Store) -> None:
    found = health_of(healthy, now=NOW)
    assert (found.state, found.exit_code) == ("ok", 0)
    parts = {part.name: part for part in found.parts}
    assert parts["log"].figures == {"last_24h": 4, "last_at": LATELY}
    assert "nDCG@10 0.8000 (0.7500 to 0.8500)" in parts["evaluation"].says
    assert parts["evaluation"].figures["golden"] == "hotel-v1.0.0"
    assert parts["schema"].figures["version"] == healthy.schema_version()
    assert {name for name, part in parts.items() if part.state == "unused"} == {
        "backlog",
        "shadow",
        "tests",
        "rollout",
        "index",
    }


def test_backlog_and_evaluation_are_told_in_the_columns_of_the_store_with_null_for_what_was_not_measured(store: Store) -> None:
    empty = review_and_evaluation(store)
    assert empty["backlog"] == {
        "pending_review": 0, "approved": 0, "rejected": 0, "published": 0, "total": 0, "oldest_pending_at": None,
    }  # fmt: skip
    assert empty["evaluation"] is None
    assert empty["unknown"] == {"evaluation": "no evaluation yet; run `ringtrue eval`"}
    store.add_result(evaluated(intervals={"nDCG@10": (0.75, float("nan"))}))
    store.add_result(evaluated(run_id="candidate", created_at=timestamp(NOW), feature_id="new"))
    store.add_review_items([ReviewItem("k1", "q1", "pool", "d1", LONG_AGO)])
    found = review_and_evaluation(store)
    assert (found["unknown"], found["backlog"]["pending_review"], found["backlog"]["total"]) == ({}, 1, 1)
    assert found["backlog"]["oldest_pending_at"] == LONG_AGO
    summary = found["evaluation"]
    assert (summary["run_id"], summary["query_count"], summary["ndcg_at_10"], summary["gate"]) == ("r1", 60, 0.8, "pass")
    assert (summary["constitutional_surfacing_rate"], summary["mrr_at_5"], summary["cold_start_mrr"]) == (1.0, None, None)
    assert summary["intervals"] == {"nDCG@10": [0.75, None]}


def test_events_that_were_lost_lately_are_wrong(healthy: Store) -> None:
    healthy.add_audit(AuditEntry(LONG_AGO, "query log", "log.lost", "p1", detail={"dropped": 7, "refused": 0}))
    assert states(healthy)["losses"] == "ok"
    # Each entry tells of what came since the one before.
    healthy.add_audit(AuditEntry(LATELY, "query log", "log.lost", "p2", detail={"dropped": 3, "refused": 1}))
    healthy.add_audit(AuditEntry(LATELY, "query log", "log.lost", "p2", detail={"lost": 2, "dropped": 0, "refused": 0}))
    healthy.add_audit(AuditEntry(LATELY, "ada", "set flag", "p2", detail={"dropped": 100}))
    found = health_of(healthy, now=NOW)
    part = next(part for part in found.parts if part.name == "losses")
    figures = {"last_24h": 6, "told": 13, "lost": 2, "dropped": 10, "refused": 1, "unsettled": 0}
    assert (part.state, part.figures, found.exit_code) == ("wrong", figures, 1)
    told = losses(healthy)
    assert (told.lost, told.dropped, told.refused, told.total) == (2, 10, 1, 13)


def test_health_and_stats_count_what_a_log_really_told(tmp_path: Path) -> None:
    with QueryLog(tmp_path / "s.sqlite", queue_bytes=1) as log:
        for _ in range(3):
            log.record(LoggedQuery("eq_x", "pool", "shop", LATELY))
    with Store.open(tmp_path / "s.sqlite") as store:
        assert losses(store).dropped == 3
        part = next(part for part in health_of(store, now=datetime.now(UTC)).parts if part.name == "losses")
        assert (part.state, part.figures["last_24h"]) == ("wrong", 3)


def test_a_killed_process_whose_losses_nobody_counted_yet_is_not_ok(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    dying = f"""
import os
from ringtrue.log import LoggedQuery, QueryLog
log = QueryLog({str(store)!r})
log.record(LoggedQuery("eq_0", "pool", "shop", {LATELY!r}))
log.flush(30)
for n in range(1, 2000):
    log.record(LoggedQuery(f"eq_{{n}}", "pool", "shop", {LATELY!r}))
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", dying]).returncode == 9
    with Store.open(store) as opened:
        part = next(part for part in health_of(opened, now=datetime.now(UTC)).parts if part.name == "losses")
    assert part.state == "unknown"
    assert part.figures["unsettled"] > 0
    assert "ended without closing" in part.says


@pytest.mark.parametrize(("gate", "state"), [("pass", "ok"), ("fail", "wrong"), ("undecided", "unknown")])
def test_the_gate_is_as_the_newest_gated_result_says(healthy: Store, gate: str, state: str) -> None:
    healthy.add_result(evaluated(run_id="r2", created_at=timestamp(NOW), gate=gate))
    healthy.add_result(evaluated(run_id="r3", created_at=timestamp(NOW + timedelta(minutes=1)), gate=None))
    assert states(healthy)["gate"] == state


def test_what_a_candidate_did_is_not_productions_affair(healthy: Store) -> None:
    later = timestamp(NOW + timedelta(minutes=1))
    worse = evaluated(run_id="r2", created_at=later, feature_id="new", gate="fail", metrics={"Constitutional@5": 0.5})
    healthy.add_result(replace(worse, run_type="regression"))
    parts = {part.name: part for part in health_of(healthy, now=NOW).parts}
    assert (parts["gate"].state, parts["constitutional"].state, parts["evaluation"].figures["run_id"]) == ("ok", "ok", "r1")


TRIED = ("memory-bench-v1.0.0", "bm25"), ("hotel-v2.0.0", "bm25"), ("clinical-v1.0.0", "hybrid")


@pytest.mark.parametrize(("golden", "retriever"), TRIED)
def test_a_try_out_of_another_search_or_set_is_not_told_as_productions(store: Store, golden: str, retriever: str) -> None:
    """Whoever tries bm25 once must not read that the served search lost a quarter, and that its gate failed."""
    store.add_result(evaluated(golden="hotel-v2.0.0", retriever="hybrid"))
    content = {"retriever": "hybrid", "golden": {"version": "hotel-v2.0.0"}}
    store.save_baseline(StoredBaseline("production", "1.0.0", content, LATELY))
    store.add_result(
        evaluated(
            run_id="tried", created_at=timestamp(NOW), golden=golden, retriever=retriever, gate="fail", metrics={"nDCG@10": 0.6}
        )
    )
    parts = {part.name: part for part in health_of(store, now=NOW, served="hybrid").parts}
    assert parts["evaluation"].figures["metrics"]["nDCG@10"] == 0.8
    assert " of hybrid on hotel-v2.0.0" in parts["evaluation"].says
    assert (parts["gate"].state, parts["gate"].figures["run_id"]) == ("ok", "r1")


def test_the_gate_of_production_is_unknown_where_only_others_were_gated(store: Store) -> None:
    store.add_result(evaluated(golden="hotel-v2.0.0", retriever="hybrid", gate=None))
    store.add_result(evaluated(run_id="tried", created_at=timestamp(NOW), golden="hotel-v2.0.0", retriever="bm25", gate="fail"))
    part = next(part for part in health_of(store, now=NOW, served="hybrid").parts if part.name == "gate")
    assert (part.state, part.says.partition(";")[0]) == ("unknown", "no run of hybrid on hotel-v2.0.0 was gated yet")


def test_constitutional_documents_that_do_not_surface_are_wrong(healthy: Store) -> None:
    healthy.add_result(evaluated(run_id="r2", created_at=timestamp(NOW), metrics={"Constitutional@5": 0.9}))
    assert states(healthy)["constitutional"] == "wrong"


def test_the_backlog_is_told(healthy: Store) -> None:
    healthy.add_review_items([ReviewItem("q:d", "q", "pool", "d", LONG_AGO)])
    part = next(part for part in health_of(healthy, now=NOW).parts if part.name == "backlog")
    assert part.state == "ok"
    assert (part.figures["pending_review"], part.figures["total"]) == (1, 1)
    assert part.says.startswith("1 of 1 wait for review")


def test_shadow_runs_and_tests_are_told(healthy: Store) -> None:
    change_flag(healthy, "new", who="ada", now=NOW, shadow=True)
    create_test(healthy, "new", now=LATELY)
    assert (states(healthy)["shadow"], states(healthy)["tests"]) == ("unknown", "ok")
    run = ShadowRun("q0", LATELY, ("a",), ("a",), feature_id="new")
    healthy.add_shadow_runs([run])
    assert states(healthy)["shadow"] == "ok"
    healthy.add_shadow_runs([replace(run, query_id="q1", error="TimedOut")])
    assert states(healthy)["shadow"] == "wrong"


def test_a_live_shadow_without_a_flag_counts_while_it_runs(healthy: Store) -> None:
    healthy.add_shadow_runs([ShadowRun("q0", LONG_AGO, ("a",), ("a",), feature_id="old")])
    assert states(healthy)["shadow"] == "unused"
    healthy.add_shadow_runs([ShadowRun("q1", LATELY, ("a",), ("a",), feature_id="new")])
    part = next(part for part in health_of(healthy, now=NOW).parts if part.name == "shadow")
    assert (part.state, part.says) == ("ok", "new: 1 query, 0 failed")
    change_flag(healthy, "new", who="ada", now=NOW, shadow=False)
    assert states(healthy)["shadow"] == "unused"


def test_a_shadow_that_cannot_keep_up_is_wrong(healthy: Store) -> None:
    change_flag(healthy, "new", who="ada", now=NOW, shadow=True)
    healthy.add_shadow_runs([ShadowRun(f"q{n}", LATELY, ("a",), ("a",), feature_id="new", source="live") for n in range(12)])
    healthy.add_audit(missing_entry("new", LATELY, {"dropped": 3}))
    assert states(healthy)["shadow"] == "ok"
    healthy.add_audit(missing_entry("new", LATELY, {"dropped": 1, "unsaved": 4}))
    part = next(part for part in health_of(healthy, now=NOW).parts if part.name == "shadow")
    assert (part.state, part.figures["new"]["missing"]) == ("wrong", 8)
    assert part.says == "new: 12 queries, 0 failed, 8 missing (40% of the live sample)"


def test_a_rollback_is_wrong_until_a_person_goes_on(healthy: Store) -> None:
    change_flag(healthy, "new", who="ada", now=NOW, rollout=5)
    assert states(healthy)["rollout"] == "ok"
    roll_back(healthy, "new", now=NOW + timedelta(hours=1), who="ada", why="slow")
    assert states(healthy)["rollout"] == "wrong"
    change_flag(healthy, "new", who="ada", now=NOW + timedelta(hours=2), state="running")
    assert states(healthy)["rollout"] == "ok"


def test_of_the_flags_those_in_trouble_are_named_and_the_others_counted(healthy: Store) -> None:
    for name in ("fine", "well", "new"):
        change_flag(healthy, name, who="ada", now=NOW, rollout=5)
    part = next(part for part in health_of(healthy, now=NOW).parts if part.name == "rollout")
    assert part.says == "flags: 3 running"
    roll_back(healthy, "new", now=NOW + timedelta(hours=1), who="ada", why="slow")
    part = next(part for part in health_of(healthy, now=NOW).parts if part.name == "rollout")
    assert part.says == "new: 0 %, rollback: slow; other flags: 2 running"
    assert set(part.figures) == {"fine", "well", "new"}


def test_what_a_test_has_come_to_is_said_in_words(healthy: Store) -> None:
    create_test(healthy, "new", now=LATELY, sigma=0.1, min_samples=1)
    create_test(healthy, "open", now=LATELY)
    for n in range(80):
        record_scores(healthy, "new", f"eq_{n}", control=0.2, treatment=0.8, now=LATELY)
    part = next(part for part in health_of(healthy, now=NOW).parts if part.name == "tests")
    decided, open_ = part.says.split("; ")
    assert re.fullmatch(r"new: candidate accepted after \d+ quer(y|ies)", decided)
    assert open_ == "open: not decided after 0 queries"


def test_an_index_that_is_behind_its_documents_is_wrong(healthy: Store, tmp_path: Path) -> None:
    from ringtrue.records import Document
    from ringtrue.retrieve import Collection

    assert states(healthy, index=tmp_path / "nowhere")["index"] == "wrong"
    collection = Collection.create(tmp_path / "index")
    collection.ingest([Document("a", "an indoor pool")])
    assert states(healthy, index=tmp_path / "index", retriever="bm25")["index"] == "wrong"
    collection.retriever("bm25").search("pool", k=1)
    found = health_of(healthy, now=NOW, index=tmp_path / "index", retriever="bm25")
    part = next(part for part in found.parts if part.name == "index")
    assert (part.state, part.figures["documents"]) == ("ok", 1)
    assert found.exit_code == 0


def test_a_part_that_cannot_be_read_is_unknown_and_the_others_are_told(healthy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(**_: Any) -> list[Any]:
        raise Unreachable("the database went away")

    monkeypatch.setattr(healthy, "tests", away)
    found = health_of(healthy, now=NOW)
    assert next(part for part in found.parts if part.name == "tests").says == "the database went away"
    assert (found.state, len(found.parts)) == ("unknown", 11)


def test_health_on_the_command_line(ringtrue: Any, healthy: Store, tmp_path: Path) -> None:
    printed = ringtrue("health", "--store", tmp_path / "s.sqlite")
    assert printed.code == 0
    assert printed.out.endswith("default: ok\n")
    found = ringtrue("health", "--store", tmp_path / "s.sqlite", "--json").json
    assert found["state"] == "ok"
    assert found["parts"]["gate"]["verdict"] == "pass"
    assert ringtrue("health", "--store", tmp_path / "s.sqlite", "--project", "other").code == 3


def test_health_makes_no_store(ringtrue: Any, tmp_path: Path) -> None:
    done = ringtrue("health", "--store", tmp_path / "none.sqlite")
    assert (done.code, "no store yet" in done.err, (tmp_path / "none.sqlite").exists()) == (2, True, False)


def test_the_log_is_counted_not_read(healthy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 100,000 searches a day, reading them to count them would make health the slowest page of all."""
    rows = [LoggedQuery(f"eq_more_{n}", "pool", "shop", LATELY) for n in range(2_000)]
    healthy.add_queries([*rows, LoggedQuery("eq_elsewhere", "pool", "shop", LATELY, project="desk")])
    read: list[int] = []
    queries = healthy.queries

    def counted(**options: Any) -> list[LoggedQuery]:
        found = queries(**options)
        read.append(len(found))
        return found

    monkeypatch.setattr(healthy, "queries", counted)
    part = next(part for part in health_of(healthy, now=NOW).parts if part.name == "log")
    assert part.figures["last_24h"] == 2_004
    assert part.says.startswith("2,004 searches in 24 h")
    assert sum(read) < 10
