"""Golden sets for sweeps: one with a planted optimum, and one of pure noise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ringtrue.records import Document, GoldenSet, Judgment, Query
from ringtrue.retrieve import Collection

LENGTH = 24
"""Words of every document, so that its length decides nothing."""


def _document(doc_id: str, title: list[str], body: list[str]) -> Document:
    filler = [f"filler{number}" for number in range(LENGTH - len(title) - len(body))]
    return Document(doc_id, " ".join(body + filler), " ".join(title))


def planted_set(queries: int = 100) -> GoldenSet:
    """A set on which ``fts5(title=t, body=1, tags=1)`` is perfect for 2 < t < 6 and half wrong on either side.

    Every other query has its word once in the right title against twice in a wrong body (t must be above 2); the others have
    it six times in the right body against once in a wrong title (t must be below 6).
    """
    documents: list[Document] = []
    judgments: list[Judgment] = []
    asked = tuple(Query(f"q{n:03}", f"word{n}") for n in range(queries))
    for n, query in enumerate(asked):
        word = query.text
        right, wrong = f"right{n:03}", f"wrong{n:03}"
        if n % 2:
            documents += [_document(right, [word], []), _document(wrong, ["other"], [word] * 2)]
        else:
            documents += [_document(right, ["other"], [word] * 6), _document(wrong, [word], [])]
        judgments.append(Judgment(query.query_id, right, 1))
    return GoldenSet("planted", "1.0.0", asked, tuple(judgments), tuple(documents))


def noise_set(seed: int, *, queries: int = 40, documents: int = 50) -> GoldenSet:
    """A set whose judgments have nothing to do with its words: no setting is better than another."""
    words = np.random.default_rng(99)
    vocabulary = [f"term{n}" for n in range(80)]
    there = tuple(
        Document(f"d{n:03}", " ".join(words.choice(vocabulary, 20)), " ".join(words.choice(vocabulary, 4)))
        for n in range(documents)
    )
    rng = np.random.default_rng(seed)
    asked = tuple(Query(f"q{n:03}", " ".join(rng.choice(vocabulary, 2, replace=False))) for n in range(queries))
    judged = tuple(
        Judgment(query.query_id, f"d{number:03}", 1) for query in asked for number in rng.choice(documents, 15, replace=False)
    )
    return GoldenSet("noise", "1.0.0", asked, judged, there)


@pytest.fixture(scope="session")
def planted() -> GoldenSet:
    return planted_set()


@pytest.fixture(scope="session")
def noise() -> Callable[[int], GoldenSet]:
    return noise_set


def _collection(golden: GoldenSet, folder: Path) -> Collection:
    collection = Collection.create(folder)
    collection.ingest(golden.documents)
    return collection


@pytest.fixture(scope="session")
def planted_documents(planted: GoldenSet, tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return _collection(planted, tmp_path_factory.mktemp("planted") / "documents")


@pytest.fixture(scope="session")
def noise_documents(noise: Callable[[int], GoldenSet], tmp_path_factory: pytest.TempPathFactory) -> Collection:
    return _collection(noise(0), tmp_path_factory.mktemp("noise") / "documents")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of other tests must not answer for this one; writing them would take half of the time."""
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("ringtrue.run.cache.ResultCache.put", lambda self, key, evaluation: None)
