"""A server with pairs to judge, made for the tests of the pages about reviewing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ringtrue.golden import load
from ringtrue.review import ReviewQueue, key_of
from ringtrue.store import ReviewItem, Store, timestamp
from running_service import Served, running

ADDED = datetime(2026, 11, 2, 9, tzinfo=UTC)
HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'


def pairs(count: int, *, wanted: int = 1, offset: int = 0) -> list[ReviewItem]:
    """Return unjudged pairs of the hotel set, as equally urgent as they come."""
    golden = load("hotel")
    judged = {(one.query_id, one.doc_id) for one in golden.judgments}
    made = []
    for place in range(offset, offset + count):
        query = golden.queries[place % len(golden.queries)]
        free = [one for one in golden.documents if (query.query_id, one.doc_id) not in judged]
        document = free[place % len(free)]
        made.append(
            ReviewItem(
                key_of(query.query_id, document.doc_id), query.query_id, query.text, document.doc_id, timestamp(ADDED),
                title=document.title, text=document.text, priority=0.5, wanted=wanted, metadata={"golden": "hotel"},
            )
        )  # fmt: skip
    return made


def hostile() -> ReviewItem:
    """Return a pair whose texts would like to be more than texts, and are written from right to left."""
    return replace(
        pairs(1)[0], item_key="hostile123", query=f"שאלה {HOSTILE}", title=HOSTILE,
        text=f"{HOSTILE}\n" + "مرحبا بالعالم " * 400,
        doc_id=HOSTILE, priority=9.0, metadata={"golden": HOSTILE},
    )  # fmt: skip


def judge(store: Store, grades: Iterable[tuple[str, Sequence[int]]], items: Sequence[ReviewItem]) -> None:
    """Let reviewers grade pairs in their order."""
    queue = ReviewQueue(store)
    for reviewer, said in grades:
        for place, (item, grade) in enumerate(zip(items, said, strict=True)):
            queue.judge(item.item_key, grade, reviewer=reviewer, now=ADDED + timedelta(hours=1, seconds=20 * place))


@contextmanager
def reviewing(folder: Path, items: Sequence[ReviewItem], grades: Any = (), **settings: Any) -> Iterator[tuple[Served, Store]]:
    """Serve a queue from a folder; also return its store, to look at what the pages did."""
    store = Store.open(folder / "store.sqlite")
    ReviewQueue(store).add(items)
    judge(store, grades, [item for item in items if item.wanted > 1])
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("RINGTRUE_CACHE", str(folder / "cache"))
            patched.chdir(folder)
            with running(folder, **settings) as found:
                yield found, store
    finally:
        store.close()


def ratings(store: Store) -> dict[str, dict[str, int]]:
    """Return what is in the store: grades by reviewer and pair."""
    found: dict[str, dict[str, int]] = {}
    for row in store.ratings():
        found.setdefault(row.reviewer, {})[row.item_key] = row.grade
    return found
