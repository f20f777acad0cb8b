"""A small world to evaluate in: a set with documents, and a cache of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringtrue.golden import corpus_hash
from ringtrue.records import Document, GoldenSet, Judgment, Query
from ringtrue.retrieve import Collection

TEXTS = {
    "pool": "An indoor swimming pool with three lanes",
    "spa": "Sauna, massage and a quiet room",
    "breakfast": "Breakfast with eggs, bread and coffee from seven",
    "parking": "Parking spaces for cars behind the house",
    "dogs": "Dogs and cats are welcome for a small fee",
    "bikes": "Bicycles can be rented at the desk",
    "refund": "Money back when you cancel two days before",
    "towels": "Fresh towels for the swimming pool every morning",
    "late": "Late arrival: the night desk has your key",
    "wifi": "Wireless internet in every room",
}
QUERIES = {
    "q1": ("swimming pool lanes", {"pool": 3, "towels": 1}),
    "q2": ("massage and sauna", {"spa": 3}),
    "q3": ("breakfast coffee", {"breakfast": 3}),
    "q4": ("parking for cars", {"parking": 3}),
    "q5": ("are dogs welcome", {"dogs": 3}),
    "q6": ("cancel money back", {"refund": 3}),
}


def small_set(**changes: object) -> GoldenSet:
    documents = tuple(Document(doc_id, text, doc_id.title()) for doc_id, text in TEXTS.items())
    return GoldenSet(
        "small",
        "1.0.0",
        tuple(Query(name, text, {"query_type": "facts" if name < "q4" else "house"}) for name, (text, _) in QUERIES.items()),
        tuple(Judgment(name, doc, grade, "manual") for name, (_, judged) in QUERIES.items() for doc, grade in judged.items()),
        documents,
        corpus_hash=corpus_hash(documents),
        slices=("query_type",),
        **changes,  # type: ignore[arg-type]
    )


@pytest.fixture
def golden() -> GoldenSet:
    return small_set()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def collection(tmp_path: Path, golden: GoldenSet) -> Collection:
    made = Collection.create(tmp_path / "documents")
    made.ingest(golden.documents)
    return made
