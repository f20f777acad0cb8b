"""A small collection that the tests of retrieval share: a dozen texts about a hotel by a lake."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringtrue.records import Document
from ringtrue.retrieve import Collection

TEXTS = {
    "pool": (
        "The pool",
        "The heated pool opens at seven. Children swim free in the pool until noon.",
        {"floor": 0, "kind": "page"},
    ),
    "spa": (
        "Spa",
        "Sauna, steam bath and a quiet pool for adults. Towels are at the spa desk.",
        {"floor": 1, "kind": "page", "date": "2026-03-01"},
    ),
    "rules": (
        "Pool rules",
        "No glass, no running. The lifeguard may close the pool in a thunderstorm.",
        {"kind": "rule", "date": "2026-05-01", "tier": "core"},
    ),
    "room": ("Lake room", "A silent room over the water, with a balcony and a very large bed.", {"floor": 2, "kind": "page"}),
    "noise": ("Noise at night", "Guests who cannot sleep may move to a calm chamber on the garden side.", {"kind": "rule"}),
    "food": ("Breakfast", "Breakfast is served from six to ten. Eggs are made to order.", {"kind": "page"}),
    "dogs": ("Dogs", "Dogs are welcome on a lead. They may not enter the restaurant or the pool.", {"kind": "rule"}),
    "ferry": ("Night ferry", "The last boat leaves at eleven; the jetty is five minutes away.", {"kind": "page"}),
    "bill": ("Invoice", "We take cards and cash. The invoice is sent by electronic mail after departure.", {"kind": "page"}),
    "empty": ("Only a title about parking", "", {"kind": "page"}),
}
DOCUMENTS = tuple(Document(doc_id, text, title, facts, ("hotel",)) for doc_id, (title, text, facts) in TEXTS.items())


@pytest.fixture(scope="session")
def hotel(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """The collection, ingested once; tests only read it."""
    collection = Collection.create(tmp_path_factory.mktemp("hotel") / "documents")
    collection.ingest(DOCUMENTS)
    return collection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place for a collection of a test's own."""
    return tmp_path / "documents"
