"""Long lists are read a page at a time, each from where the last one ended, on both databases."""

from __future__ import annotations

from dataclasses import replace

from ringtrue.store import Store
from store_contents import AUDIT, JUDGMENT, REVIEW

NAMES = ("a", "B", "b", "Z", "é", "z-1", "z_1", "z 1", "10", "9", "日本", "a/b?c#d%")
"""Texts that databases sort in different ways."""


def test_judgments_go_on_behind_the_last_one_whatever_the_order_of_texts(store: Store) -> None:
    rows = [replace(JUDGMENT, query_id=query, item_id=item) for query in NAMES for item in NAMES]
    store.add_judgments(rows)
    everything = store.judgments(project=JUDGMENT.project)
    seen = []
    place = None
    while page := store.judgments(project=JUDGMENT.project, after=place, limit=7):
        assert len(page) <= 7
        seen += page
        place = (page[-1].query_id, page[-1].item_id, page[-1].source, page[-1].annotator)
        # The one that a page ended with may be gone when the next is asked for.
        store.delete_judgments(project=JUDGMENT.project, source=page[-1].source, query_ids=[page[-1].query_id])
        everything = [row for row in everything if row in seen or row.query_id != page[-1].query_id]
    assert seen == everything
    assert len(seen) > 20


def test_judgments_of_one_annotator_are_counted_by_the_database(store: Store) -> None:
    store.add_judgments([replace(JUDGMENT, item_id=f"d{i}", annotator="ann" if i % 3 else "bea") for i in range(30)])
    found = store.judgments(project=JUDGMENT.project, annotator="bea", limit=4)
    assert [row.annotator for row in found] == ["bea"] * 4
    assert len(store.judgments(project=JUDGMENT.project, annotator="bea")) == 10


def test_pairs_go_on_behind_the_last_one_in_the_order_of_urgency(store: Store) -> None:
    urgent = (0.1 + 0.2, 0.3, 1.0, -1.0)
    store.add_review_items(
        [
            replace(REVIEW, item_key=f"{name}:{i}", priority=urgent[i % 4], created_at=f"2026-03-0{1 + i % 3}T00:00:00Z")
            for i, name in enumerate(NAMES * 3)
        ]
    )
    everything = store.review_items(project=REVIEW.project)
    seen, place = [], None
    while page := store.review_items(project=REVIEW.project, after=place, limit=5):
        seen += page
        place = (page[-1].priority, page[-1].created_at, page[-1].item_key)
    assert seen == everything
    assert len(seen) == len(NAMES) * 3


def test_the_audit_trail_is_read_up_to_a_moment(store: Store) -> None:
    for second in range(10):
        store.add_audit(replace(AUDIT, at=f"2026-03-01T12:00:0{second}Z"))
    found = store.audit(project=AUDIT.project, until="2026-03-01T12:00:04Z", limit=3)
    assert [row.at[17:19] for row in found] == ["04", "03", "02"]
