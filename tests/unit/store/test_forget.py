"""Forgetting a user: in every table and in the archives (L-3)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.store import Store, archived_queries
from store_contents import EVENT, FULL_QUERY, JUDGMENT, REVIEW, SHADOW, TEST

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


def test_everything_of_a_user_goes_and_nothing_of_another_L_3(store: Store) -> None:
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


def test_archives_are_rewritten_and_what_hangs_on_archived_queries_goes_too_L_3(store: Store, tmp_path: Path) -> None:
    archive = _archived(store, tmp_path)
    assert store.delete_user("u1", project="default") == 4  # two archived queries, one judgment, one event
    assert [query.user_id for query in archived_queries(archive)] == ["u2", "u2"]
    assert (store.judgments(), store.feedback()) == ([], [])
    assert [path.name for path in tmp_path.glob("*part*")] == []
    untouched = archive.read_bytes()
    assert store.delete_user("u1", project="default") == 0
    assert archive.read_bytes() == untouched


def test_archives_that_cannot_be_reached_are_named_L_3(store: Store, tmp_path: Path) -> None:
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
