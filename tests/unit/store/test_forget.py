"""Forgetting a user: in every table and in the archives."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from ringtrue.errors import InputError
from ringtrue.store import USER_DELETED, AuditEntry, Store, StoredJudgment, archived_queries, user_mark
from ringtrue.store.tables import TABLES
from store_contents import EVENT, FLAG, FULL_QUERY, JOB, JUDGMENT, PLAIN_QUERY, REPLY, REVIEW, SHADOW, TEST

NOW = "2026-06-30T00:00:00Z"


def _two_users(store: Store) -> None:
    """Everything once for u1 and once for u2."""
    for user in ("u1", "u2"):
        query_id, session = f"q {user}", f"s {user}"
        store.add_queries([replace(FULL_QUERY, query_id=query_id, user_id=user, session_id=session, created_at=NOW)])
        events = [
            replace(EVENT, event_id=f"by user {user}", user_id=user, query_id=None, session_id="elsewhere"),
            replace(EVENT, event_id=f"by query {user}", user_id=None, query_id=query_id, session_id="elsewhere"),
            replace(EVENT, event_id=f"by session {user}", user_id=None, query_id=None, session_id=session),
        ]
        store.add_feedback(events)
        store.add_shadow_runs([replace(SHADOW, query_id=query_id)])
        store.add_judgments([replace(JUDGMENT, query_id=query_id)])
        store.add_review_items([replace(REVIEW, query_id=query_id, item_key=f"k {user}")])
        store.add_rating(f"k {user}", "ann", 2, NOW)


def test_everything_of_a_user_goes_and_nothing_of_another(store: Store) -> None:
    _two_users(store)
    store.create_test(TEST)
    store.update_test("rerank", "q u1", lambda test: test)
    assert store.delete_user("u1", project="shop") == 0
    assert store.delete_user("u1", project="default") == 7
    tables = ("eval_queries", "eval_shadow_runs", "eval_judgments", "reviews", "ratings")
    assert {name: store.counts()[name] for name in tables} == dict.fromkeys(tables, 1)
    assert [query.user_id for query in store.queries()] == ["u2"]
    assert [event.event_id for event in store.feedback()] == ["by query u2", "by session u2", "by user u2"]
    assert [item.query_id for item in store.review_items()] == ["q u2"]
    assert store.update_test("rerank", "q u1", lambda test: test) is None  # it must not count a second time
    assert store.delete_user("u1", project="default") == 0


def test_jobs_and_replies_that_tell_of_a_user_go_with_the_user(store: Store) -> None:
    store.add_queries([
        replace(PLAIN_QUERY, query_id="q1", query="My own trouble", user_id="u1"),
        replace(PLAIN_QUERY, query_id="q2", query="breakfast", user_id="u1"),
        replace(PLAIN_QUERY, query_id="q3", query="Breakfast?", user_id="u2"),
    ])  # fmt: skip
    told = {
        "by words": {"queries": [{"text": "my own TROUBLE"}]},
        "by search": {"details": {"q1": {"nDCG@10": 0.5}}},
        "by name": {"event": {"user_id": "u1"}},
    }
    kept = {"others": {"queries": ["breakfast", "q3", "u1"]}, "empty": {}}
    for name, facts in (told | kept).items():
        store.add_job(replace(JOB, job_id=f"asked {name}", request=facts, result=None, error=None))
        store.add_job(replace(JOB, job_id=f"found {name}", request={}, result=facts))
        store.keep_reply(replace(REPLY, key=name, body=json.dumps(facts).encode()))
    store.keep_reply(replace(REPLY, key="bytes", body=b"\xff\x00"))
    store.add_job(replace(JOB, project="shop", request=told["by search"]))
    before = store.user_rows("u1")
    assert (before["jobs"], before["replies"]) == (6, 3)
    assert store.delete_user("u1", now=NOW) == 2 + 6 + 3
    assert {job.job_id for job in store.jobs()} == {f"{side} {name}" for side in ("asked", "found") for name in kept}
    assert [store.claim_reply(replace(REPLY, key=key)) is None for key in (*told, *kept, "bytes")] == [True] * 3 + [False] * 3
    assert len(store.jobs(project="shop")) == 1


def _derived(query_id: str, text: str, item: str) -> StoredJudgment:
    return replace(
        JUDGMENT, query_id=query_id, item_id=item, source="implicit", annotator="feedback:person",
        metadata={"key": text.lower(), "query": text, "selected": 2, "sessions": 1},
    )  # fmt: skip


def _everything(store: Store) -> str:
    with store._reading() as connection:
        return str([connection.execute(select(table)).all() for table in TABLES])


def test_no_derived_judgment_or_review_keeps_words_that_only_the_user_searched_for(store: Store) -> None:
    asked = {"q1": ("u1", "My  rash"), "q2": ("u1", "Wifi"), "q3": ("u2", "wifi")}
    store.add_queries([replace(PLAIN_QUERY, query_id=name, user_id=user, query=text) for name, (user, text) in asked.items()])
    # All stand under searches of others: an older one, which is in the log no more, had the same words.
    store.add_judgments([_derived("older", "My  rash", "d1"), _derived("older", "Wifi", "d2")])
    by_hand = (("older", "my rash?", "d1"), ("older too", "Wifi", "d2"))
    store.add_judgments([replace(_derived(*one), source="manual", annotator="ann") for one in by_hand])
    asked_again = ("My rash", "my rash", "Wifi", "wifi")  # a proposal has one spelling of what several people asked
    store.add_review_items([replace(REVIEW, item_key=text, query_id="live-1", query=text) for text in asked_again])
    assert store.user_rows("u1")["reviews"] == 2
    assert store.delete_user("u1") == 2 + 3 + 2
    assert [(one.query_id, one.metadata["query"]) for one in store.judgments()] == [("older too", "wifi")]
    assert [item.query for item in store.review_items()] == ["wifi", "wifi"]
    found = _everything(store).replace("'Wifi', 'live-1', 'wifi'", "")  # the item's own key
    assert not {"rash", "Wifi"} & set(re.findall(r"\w+", found))


def test_judgments_by_people_under_the_users_search_stay_under_anothers(store: Store) -> None:
    asked = {"q1": ("u1", "Late checkout?"), "q2": ("u2", "late checkout"), "q3": ("u3", "late checkout"), "q4": ("u1", "mine")}
    store.add_queries(
        [
            replace(
                PLAIN_QUERY, query_id=name, user_id=user, query=text, session_id=f"s {user}", created_at=f"2026-03-0{name[1]}"
            )
            for name, (user, text) in asked.items()
        ]
    )
    rows = [
        _derived("q1", "Late checkout?", "d1"),  # what was derived may rest on the user; it is derived again
        replace(JUDGMENT, query_id="q1", item_id="d1"),
        replace(JUDGMENT, query_id="q1", item_id="d2", relevance=0),
        replace(JUDGMENT, query_id="q2", item_id="d2", relevance=3),  # the same person said so of the same words
        replace(JUDGMENT, query_id="q4", item_id="d1"),  # nobody knows what about when the search is gone
    ]
    store.add_judgments(rows)
    store.add_review_items([replace(REVIEW, item_key="k", query_id="q1", query="Late checkout?")])
    store.add_rating("k", "ann", 2, NOW)
    store.delete_user("u1")
    kept = [(one.query_id, one.item_id, one.source, one.relevance) for one in store.judgments()]
    assert kept == [("q2", "d1", "manual", 3), ("q2", "d2", "manual", 3)]
    assert {one.metadata.get("query", "late checkout") for one in store.judgments()} == {"late checkout"}
    assert [(item.query_id, item.query) for item in store.review_items()] == [("q2", "late checkout")]
    assert len(store.ratings()) == 1
    assert "Late" not in _everything(store)


def test_a_mark_of_a_deleted_user_stays_and_names_nobody(store: Store) -> None:
    store.add_queries([replace(PLAIN_QUERY, query_id="q1", user_id="ada@example.org", query="my words")])
    for at in ("2026-06-01", "2026-06-02"):
        store.delete_user("ada@example.org", now=at)
    (entry,) = store.audit(what=USER_DELETED)
    assert (entry.at, entry.subject) == ("2026-06-02T00:00:00.000000Z", user_mark("ada@example.org", "default"))
    assert entry.subject != user_mark("ada@example.org", "shop")
    assert "ada" not in _everything(store)


def test_counting_what_would_go_changes_nothing(store: Store, tmp_path: Path) -> None:
    archive = _archived(store, tmp_path)
    before, written = _everything(store), archive.read_bytes()
    found = store.user_rows("u1")
    assert (found["archives"], found["eval_feedback"], found["eval_judgments"], sum(found.values())) == (2, 1, 1, 4)
    assert (_everything(store), archive.read_bytes()) == (before, written)
    assert store.delete_user("u1") == sum(found.values())


def test_words_in_the_audit_trail_of_a_refresh_go_too(store: Store) -> None:
    store.add_queries([replace(PLAIN_QUERY, query_id="q1", user_id="u1", query="My rash")])
    store.add_queries([replace(PLAIN_QUERY, query_id="q2", user_id="u1", query="running")])
    store.add_queries([replace(PLAIN_QUERY, query_id="q3", user_id="u2", query="wifi")])
    questions = [{"query_id": "live-1", "text": "my rash", "intent": "x", "count": 1}]
    detail = {"id": "p", "new": questions, "metadata": {"live-1": {"topic": "skin"}, "live-2": {}}, "retire": [], "keys": []}
    more = {**detail, "new": [*questions, {"query_id": "live-2", "text": "wifi", "intent": "x", "count": 1}]}
    store.add_audit(AuditEntry(NOW, "ann", "golden refresh proposed", "one", detail=detail))
    store.add_audit(AuditEntry(NOW, "ann", "golden refresh proposed", "two", detail=more))
    left = {"version": "1.1.0", "retired": {"live-1": "my rash", "live-2": "wifi"}, "left_out": {"live-1": "my rash"}}
    store.add_audit(AuditEntry(NOW, "ann", "golden refresh released", "three", detail=left))
    store.set_flag(FLAG, who="ann", at=NOW)  # 'running' is the state of a flag, whatever somebody searched for
    store.add_audit(AuditEntry(NOW, "ann", "set flag", "four", detail={"state": "running"}))
    store.delete_user("u1")
    entries = {entry.subject: entry.detail for entry in store.audit() if entry.what != USER_DELETED}
    assert sorted(entries) == ["four", "rerank", "three", "two"]
    assert [one["text"] for one in entries["two"]["new"]] == ["wifi"]
    assert entries["two"]["metadata"] == {"live-2": {}}
    assert (entries["three"]["retired"], entries["three"]["left_out"]) == ({"live-2": "wifi"}, {})
    assert entries["four"] == {"state": "running"}
    assert not {"rash", "skin"} & set(re.findall(r"\w+", _everything(store)))


def test_what_a_golden_set_asks_is_not_a_users_alone(store: Store) -> None:
    asked = {"q1": "is there a pool", "q2": "my own words"}
    store.add_queries([replace(PLAIN_QUERY, query_id=name, user_id="u1", query=text) for name, text in asked.items()])
    for text, origin in (("is there a pool", {"golden": "hotel"}), ("my own words", {"refresh": 'p "golden": 1'})):
        store.add_review_items([replace(REVIEW, item_key=text, query_id=f"of {text}", query=text, metadata=origin)])
        store.add_judgments([replace(JUDGMENT, query_id=f"of {text}", metadata={"query": text})])
    store.delete_user("u1")
    assert [item.query for item in store.review_items()] == ["is there a pool"]
    assert [judgment.metadata["query"] for judgment in store.judgments()] == ["is there a pool"]


def test_what_was_learned_from_a_user_goes_too(store: Store) -> None:
    _two_users(store)
    for user in ("u1", "u2"):
        detail = {"phrase": f"rash of {user}", "query_id": f"q {user}", "event_id": "e"}
        store.add_audit(AuditEntry(NOW, "feedback", "trigger learned", "d1", detail=detail))
    store.add_audit(AuditEntry(NOW, "ann", "set flag", "rerank", detail={"why": 'a text with "query_id" in it'}))
    assert store.delete_user("u1") == 8
    found = [entry.detail.get("phrase") for entry in store.audit() if entry.what != USER_DELETED]
    assert found == [None, "rash of u2"]


def _archived(store: Store, folder: Path) -> Path:
    for i in range(4):
        user = f"u{i % 2 + 1}"
        store.add_queries(
            [replace(FULL_QUERY, query_id=f"q{i}", user_id=user, session_id=f"s {user}", created_at="2025-01-01")]
        )
    store.add_judgments([replace(JUDGMENT, query_id="q0")])
    store.add_feedback([replace(EVENT, query_id=None, session_id="s u1", user_id=None, created_at=NOW)])
    (pruned,) = store.prune(now=NOW, archive=folder)
    return pruned.archives[0]


def test_archives_are_rewritten_and_what_hangs_on_archived_queries_goes_too(store: Store, tmp_path: Path) -> None:
    archive = _archived(store, tmp_path)
    assert store.delete_user("u1", project="default") == 4  # two archived queries, one judgment, one event
    assert [query.user_id for query in archived_queries(archive)] == ["u2", "u2"]
    assert (store.judgments(), store.feedback()) == ([], [])
    assert [path.name for path in tmp_path.glob("*part*")] == []
    untouched = archive.read_bytes()
    assert store.delete_user("u1", project="default") == 0
    assert archive.read_bytes() == untouched


def test_archives_that_cannot_be_reached_are_named(store: Store, tmp_path: Path) -> None:
    archive = _archived(store, tmp_path / "archive")
    store.add_queries([replace(FULL_QUERY, query_id="new", user_id="u1")])
    away = archive.rename(tmp_path / "away.jsonl.gz")
    with pytest.raises(InputError, match=archive.name) as caught:
        store.delete_user("u1", project="default")
    assert str(caught.value).startswith("1 rows")
    assert store.queries() == []  # the rest is gone all the same
    away.rename(archive)
    assert store.delete_user("u1", project="default") == 4
    archive.unlink()
    assert [store.forget_archive(archive), store.forget_archive(archive)] == [True, False]
    assert store.delete_user("u2", project="default") == 0
