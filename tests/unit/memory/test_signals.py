"""The journal into the store, once however often; and figures that call nothing false that is only unknown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ringtrue.feedback import TaskOutcome, derive_into, session_summaries, stored_outcomes
from ringtrue.log import Redactor
from ringtrue.memory.hook.journal import record
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.signals import HOOK, bring_journal, count, figures, figures_in, memory_part, rows_of
from ringtrue.memory.tasks import State, postflight, preflight, validate
from ringtrue.store import FeedbackEvent, LoggedQuery, Store, StoredJudgment

START = datetime(2026, 3, 2, 9, tzinfo=UTC).timestamp()


class Journal:
    """A memory folder whose hooks ran."""

    def __init__(self, root: Path) -> None:
        self.root, self.at = str(root), START

    def note(self, event: str, **more: Any) -> None:
        self.at += 10
        assert record(self.root, {"at": self.at, "session_id": "s1", "event": event, **more})

    def prompt(self, prompt_id: str, *shown: str, query: str = "how do we sign tokens", **more: Any) -> None:
        injected = [{"id": name, "path": "", "rank": 2 * place, "score": 9.5 - place} for place, name in enumerate(shown, 1)]
        outcome = "injected" if shown else "silent"
        facts = {"outcome": outcome, "injected": injected, "query": query, "strategy": "fts5_bm25", "threshold": "null"}
        self.note("prompt", prompt_id=prompt_id, **{**facts, "ms": 12.5, **more})

    def read(self, name: str, **more: Any) -> None:
        self.note("read", id=name, path="", **more)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    root = tmp_path / "memory"
    root.mkdir()
    return Journal(root)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


def test_an_injection_becomes_a_search_with_its_prompt_and_a_read_is_joined_by_it(journal: Journal, store: Store) -> None:
    journal.prompt("p1", "jwt", "keys")
    journal.prompt("p2", "keys")
    journal.read("keys", prompt_id="p1")
    brought = bring_journal(journal.root, store, project="shop")
    assert (brought.new_queries, brought.new_feedback) == (2, 1)
    first, _ = store.queries(project="shop")
    assert (first.tool_name, first.prompt_id, first.session_id, first.query) == (HOOK, "p1", "s1", "how do we sign tokens")
    assert first.result_ids == ("jwt", "keys")
    assert first.scores == (8.5, 7.5)
    assert first.total_latency_ms == 12.5
    assert first.retriever == "memory('fts5_bm25', threshold='null')"
    (event,) = store.feedback(project="shop")
    assert (event.event_type, event.item_id, event.query_id) == ("read_after_search", "keys", first.query_id)
    assert event.rank_in_results == 2  # the place it was shown at, though the newer prompt showed it first
    assert event.actor == "agent"
    assert event.metadata["linked_by"] == "prompt"


def test_bringing_a_journal_twice_changes_nothing(journal: Journal, store: Store) -> None:
    journal.prompt("p1", "jwt")
    journal.read("jwt", prompt_id="p1")
    journal.note("reference", prompt_id="p1", referenced=[{"id": "jwt", "rank": 1, "words": 9}])
    validate(journal.root, {"jwt": True}, memories=[_memory("jwt")], session_id="s1", now=journal.at + 60)
    first = bring_journal(journal.root, store)
    rows = store.queries(), store.feedback()
    again = bring_journal(journal.root, store)
    assert (first.queries, first.feedback) == (1, 3)
    assert (again.queries, again.new_queries, again.feedback, again.new_feedback) == (1, 0, 3, 0)
    assert (store.queries(), store.feedback()) == rows
    journal.prompt("p2")
    assert bring_journal(journal.root, store).new_queries == 1


def test_silence_is_a_search_that_showed_nothing(journal: Journal, store: Store) -> None:
    journal.prompt("p1")
    bring_journal(journal.root, store)
    (row,) = store.queries()
    assert row.result_ids == ()


def test_prompts_that_were_not_searched_for_are_no_searches(journal: Journal, store: Store) -> None:
    journal.note("prompt", outcome="skipped", reason="shorter than 10 characters")
    journal.note("prompt", outcome="empty", reason="the host sent no prompt")
    brought = bring_journal(journal.root, store)
    assert brought.queries == 0
    assert brought.left == {"prompt skipped": 1, "prompt empty": 1}


def test_without_prompt_ids_the_session_joins(journal: Journal, store: Store) -> None:
    journal.prompt("", "jwt")
    journal.read("jwt")
    bring_journal(journal.root, store)
    (event,) = store.feedback()
    assert event.metadata["linked_by"] == "session"
    assert event.rank_in_results == 1


def test_a_read_of_what_was_never_shown_is_no_read_after_search(journal: Journal, store: Store) -> None:
    journal.prompt("p1", "jwt")
    journal.read("redis", prompt_id="p1")
    brought = bring_journal(journal.root, store)
    assert brought.feedback == 0
    assert brought.left == {"read without having been shown before": 1}


def test_searches_of_the_server_come_under_their_tool(journal: Journal, store: Store) -> None:
    results = [{"id": "jwt", "rank": 1, "score": 3.0}]
    journal.note("search", tool="memory_search", strategy="hybrid", intent="find_decision", query="tokens", results=results)
    journal.read("jwt", tool="memory_load")
    bring_journal(journal.root, store)
    (row,) = store.queries()
    assert (row.tool_name, row.retriever, row.intent) == ("memory_search", "memory('hybrid')", "find_decision")
    (event,) = store.feedback()
    assert event.query_id == row.query_id


def task(journal: Journal, name: str, *, ended: bool = True) -> None:
    of = {"session_id": "s1", "task_id": name, "now": journal.at}
    preflight(journal.root, state=State(0.2, 0.8), **of)
    if ended:
        postflight(journal.root, state=State(0.7, 0.4), **of)


def test_ended_tasks_come_into_the_store_once_and_join_the_searches_of_their_session(journal: Journal, store: Store) -> None:
    journal.prompt("p1", "jwt")
    task(journal, "login form")
    task(journal, "still going", ended=False)
    first, again = (bring_journal(journal.root, store, project="shop") for _ in range(2))
    assert (first.tasks, first.new_tasks, again.tasks, again.new_tasks) == (1, 1, 1, 0)
    assert first.left == {"task without a postflight": 1}
    outcomes = stored_outcomes(store, project="shop")
    assert outcomes == [TaskOutcome("s1", "login form", 0.5, 0.4, 0.45)]
    assert stored_outcomes(store) == []
    (session,) = session_summaries(store.queries(project="shop"), [], outcomes=outcomes)
    assert session.outcome == outcomes[0]


def test_names_of_tasks_are_redacted_as_queries_are(journal: Journal, store: Store, tmp_path: Path) -> None:
    task(journal, "answer ada@example.org")
    bring_journal(journal.root, store)
    assert [one.task_id for one in stored_outcomes(store)] == ["answer [email]"]
    with Store.open(tmp_path / "hashed.sqlite") as hashed:
        bring_journal(journal.root, hashed, cleaner=Redactor(hash_only=True, salt="pepper"))
        (one,) = stored_outcomes(hashed)
        assert one.task_id.startswith("h_")


def test_secrets_and_people_are_taken_out_and_hash_only_leaves_no_word(journal: Journal, tmp_path: Path) -> None:
    journal.prompt("p1", "jwt", query="mail ada@example.org about the signing keys")
    with Store.open(tmp_path / "a.sqlite") as store:
        bring_journal(journal.root, store)
        (row,) = store.queries()
        assert row.query == "mail [email] about the signing keys"
    with Store.open(tmp_path / "b.sqlite") as store:
        bring_journal(journal.root, store, cleaner=Redactor(hash_only=True, salt="pepper"))
        (row,) = store.queries()
        assert row.query.startswith("h_")
        assert "signing" not in str(row)


def test_judgments_are_derived_from_what_the_hooks_saw(journal: Journal, store: Store) -> None:
    journal.prompt("p1", "jwt", "keys")
    journal.read("jwt", prompt_id="p1")
    validate(journal.root, {"keys": False}, memories=[_memory("keys")], session_id="s1", now=journal.at + 3600)
    bring_journal(journal.root, store)
    found = derive_into(store, now="2026-03-03T00:00:00Z")
    assert {(one.item_id, one.relevance, one.source) for one in found.judgments} == {
        ("jwt", 2, "implicit"),
        ("keys", 0, "validated"),
    }


@pytest.mark.parametrize(
    "event",
    [
        {"outcome": "injected", "injected": "jwt", "query": "x"},
        {"outcome": "injected", "injected": [{"id": 3, "score": 1.0}], "query": "x"},
        {"outcome": "injected", "injected": [{"id": "a", "score": "high"}], "query": "x"},
        {"outcome": "silent", "injected": []},
    ],
)
def test_trap_33_lines_that_make_no_sense_are_counted_and_passed_over(journal: Journal, event: dict[str, Any]) -> None:
    journal.note("prompt", **event)
    journal.note("read", id=7)
    journal.note("reference", referenced=[None])
    searches, feedback, left = rows_of(journal.root)
    assert (searches, feedback, left) == ([], [], {"unreadable": 3})


def test_feedback_of_no_session_is_left_and_named(journal: Journal) -> None:
    journal.prompt("p1", "jwt")
    journal.read("jwt", session_id=None, prompt_id="p1")
    assert rows_of(journal.root)[2] == {"read_after_search of no session": 1}


# ── figures ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_figures_tell_right_false_and_unknown_apart(journal: Journal, store: Store) -> None:
    journal.prompt("p1", "jwt")  # read: right
    journal.read("jwt", prompt_id="p1")
    journal.prompt("p2", "redis")  # only shown: unknown
    journal.prompt("p3", "keys", "tls")  # one of two said not to be useful: false
    validate(journal.root, {"keys": False}, memories=[_memory("keys")], session_id="s1", now=journal.at + 5)
    journal.prompt("p4", "jwt", "redis")  # one of two read, the other only shown: unknown
    journal.read("jwt", prompt_id="p4")
    journal.prompt("p5")
    journal.note("prompt", outcome="skipped", reason="")
    journal.note("error", kind="timeout", during="prompt", message="no answer")
    found = figures(journal.root)
    assert (found.prompts, found.injections, found.silent, found.shown) == (5, 4, 1, 6)
    assert (found.right, found.false, found.unknown, found.judged) == (1, 1, 2, 2)
    assert found.silent_rate == 0.2
    assert found.read_rate == 0.5
    assert found.false_inject_rate == 0.5
    assert found.not_searched == {"skipped": 1, "timeout": 1}
    assert found.latency_ms == {"p50": 12.5, "p95": 12.5}
    assert found.since_injection == 1
    bring_journal(journal.root, store)
    stored = figures_in(store).as_record()
    assert stored == {**found.as_record(), "not_searched": {}}  # only the journal knows these


def test_what_was_only_shown_makes_no_rate_of_false_ones(journal: Journal) -> None:
    journal.prompt("p1", "jwt")
    assert figures(journal.root).false_inject_rate is None
    assert figures(journal.root).reference_rate is None, "the host has told of nothing yet"


def test_nothing_noted_is_nothing_known(journal: Journal) -> None:
    found = figures(journal.root)
    assert (found.prompts, found.silent_rate, found.read_rate, found.false_inject_rate) == (0, None, None, None)


def test_a_judgment_by_hand_counts_over_a_read() -> None:
    row = LoggedQuery("q", "x", HOOK, "2026-03-01T12:00:00Z", session_id="s", result_ids=("a",))
    read = FeedbackEvent("e", "read_after_search", "s", "2026-03-01T12:01:00Z", query_id="q", item_id="a", rank_in_results=1)
    hand = StoredJudgment("q", "a", 0, "manual", "2026-03-02T00:00:00Z", annotator="kim")
    assert (count([row], [read]).right, count([row], [read], [hand]).false) == (1, 1)


def test_a_changed_mind_counts_last() -> None:
    row = LoggedQuery("q", "x", HOOK, "2026-03-01T12:00:00Z", session_id="s", result_ids=("a",))
    said = [
        FeedbackEvent(str(place), kind, "s", f"2026-03-01T12:0{place}:00Z", query_id="q", item_id="a")  # type: ignore[arg-type]
        for place, kind in enumerate(("validate_not_useful", "validate_useful"), 1)
    ]
    assert (count([row], said[:1]).false, count([row], said).false, count([row], said).right) == (1, 0, 1)


def test_health_has_a_line_for_the_memory(journal: Journal, store: Store) -> None:
    assert memory_part(store) is None
    journal.prompt("p1", "jwt")
    journal.read("jwt", prompt_id="p1")
    bring_journal(journal.root, store)
    part = memory_part(store)
    assert (part.state, part.figures["read_rate"], part.figures["false_inject_rate"]) == ("ok", 1.0, 0.0)
    for number in range(50):
        journal.prompt(f"later-{number}")
    bring_journal(journal.root, store)
    assert memory_part(store).state == "wrong"
    assert "doctor" in memory_part(store).says


def _memory(name: str) -> Memory:
    return Memory(id=name, category="decision", title=name, body="")


def test_a_prompt_that_was_searched_with_earlier_turns_is_logged_with_them(journal: Journal, store: Store) -> None:
    journal.prompt("p1", "jwt", query="is it safe?", enriched=True, searched="is it safe?\nthe terraform lock")
    journal.prompt("p2", "jwt", query="is it safe?", enriched=False)
    journal.prompt("p3", "jwt", query="is it safe?", enriched=True)  # by a hook that did not keep what it searched for
    bring_journal(journal.root, store, project="shop")
    logged = {row.prompt_id: row.query for row in store.queries(project="shop")}
    assert logged == {"p1": "is it safe?\nthe terraform lock", "p2": "is it safe?", "p3": "is it safe?"}
