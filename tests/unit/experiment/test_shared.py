"""Trials share candidate lists, reranked lists and the vectors of equal passages."""

from __future__ import annotations

import sqlite3
from collections import Counter

import pytest

from ringtrue.experiment import Variants
from ringtrue.experiment.trials import AnswerMemory
from ringtrue.records import Document, Hit
from ringtrue.retrieve import Collection, build, search_many
from ringtrue.retrieve.channels.bm25 import Bm25
from ringtrue.retrieve.channels.fts5 import Fts5
from ringtrue.retrieve.encode.vectors import Cache
from ringtrue.retrieve.rerank import CrossEncoder


@pytest.fixture
def asked(monkeypatch) -> Counter:
    """How often each channel was really asked each question."""
    counts: Counter = Counter()
    for channel in (Bm25, Fts5):
        real = channel.search

        def search(self, text, *, k=10, scope=None, real=real):
            counts[type(self).__name__, text, k, tuple((scope or {}).items())] += 1
            return real(self, text, k=k, scope=scope)

        monkeypatch.setattr(channel, "search", search)
    return counts


TEXTS = [f"word{n}" for n in range(6)]


def _scored(answers) -> list:
    return [[(hit.doc_id, hit.score) for hit in hits] for hits in answers]


@pytest.mark.parametrize("tail", ["", " >> top(5)", " >> threshold(relative=0.5)"])
def test_shared_lists_give_the_same_answers(planted_documents, tail) -> None:
    memory = AnswerMemory()
    for rule in ("rrf(bm25, fts5(title=5), k=1)", "weighted(rrf(bm25, fts5), fts5(title=5), w=[2, 1], norm='z')", "bm25"):
        for _ in range(2):
            mine = memory.build(rule + tail, planted_documents).search_many(TEXTS, k=10)
            plain = search_many(build(rule + tail, planted_documents), TEXTS, k=10)
            assert _scored(mine) == _scored(plain)
            assert all(plain)


def test_every_channel_is_asked_once_per_query_over_all_trials(planted_documents, asked) -> None:
    memory = AnswerMemory()
    for k in (1, 10, 60):
        for name in ("rrf", "weighted"):
            option = f"k={k}" if name == "rrf" else f"w=[{k}, 1]"
            # The defaults written out are the same channel.
            channel = "bm25" if k == 1 else "bm25(title=3, tags=1)"
            memory.build(f"{name}({channel}, fts5, {option})", planted_documents).search_many(TEXTS, k=10)
    assert set(asked.values()) == {1}
    assert len(asked) == memory.asked == 2 * len(TEXTS)


def test_what_decides_a_list_is_part_of_what_it_is_remembered_by(planted_documents, asked, tmp_path) -> None:
    memory = AnswerMemory()

    def ask(text: str, documents=planted_documents, **options) -> list:
        return [hit.doc_id for hit in memory.build(text, documents).search("word1", **{"k": 10, **options})]

    first = ask("bm25")
    assert memory.asked == 1
    ask("bm25(title=1)")
    ask("bm25", k=5)
    assert memory.asked == 3
    other = Collection.create(tmp_path / "other")
    other.ingest([Document("only", "word1", "")])
    assert ask("bm25", other) == ["only"] != first
    other.ingest([Document("more", "word1 word1", "")])  # the same folder with other documents
    assert set(ask("bm25", other)) == {"only", "more"}
    other.ingest([Document("far", "word1", "", {"city": "Bath"})])
    assert ask("bm25", other, scope={"city": "Bath"}) == ["far"]
    assert set(ask("bm25", other)) == {"only", "more", "far"}


def test_memory_is_bounded_and_forgets_the_oldest_channel(planted_documents) -> None:
    memory = AnswerMemory(most=30)
    for title in (1, 2, 3, 4):
        memory.build(f"bm25(title={title})", planted_documents).search_many(TEXTS, k=10)
        assert memory.hits <= 30
    asked = memory.asked
    memory.build("bm25(title=4)", planted_documents).search_many(TEXTS, k=10)
    assert memory.asked == asked
    memory.build("bm25(title=1)", planted_documents).search_many(TEXTS, k=10)
    assert memory.asked == asked + len(TEXTS)


def test_the_same_hits_are_reranked_once(planted_documents, monkeypatch) -> None:
    reranked: list[str] = []

    class Backwards:
        name = "rerank"

        def __init__(self, *rest, **options) -> None:
            pass

        def depth(self, k: int) -> int:
            return max(k, 20)

        def apply(self, text: str, hits: list[Hit], *, k: int) -> list[Hit]:
            reranked.append(text)
            return list(reversed(hits))[:k]

    monkeypatch.setattr("ringtrue.retrieve.rerank.CrossEncoder", Backwards)
    assert CrossEncoder is not Backwards
    memory = AnswerMemory()
    for cut in (1, 2, 5):
        memory.build(f"bm25 >> rerank('m') >> top({cut})", planted_documents).search_many(TEXTS, k=10)
    assert sorted(reranked) == sorted(TEXTS)
    memory.build("bm25(title=1) >> rerank('m') >> top(5)", planted_documents).search_many(TEXTS, k=10)
    assert len(reranked) > len(TEXTS)  # other scores are other hits


def test_documents_cut_otherwise_are_the_same_documents_in_a_folder_of_their_own(tmp_path) -> None:
    base = Collection.create(tmp_path / "documents", chunks="fixed(tokens=512, overlap=50)")
    base.ingest([Document("long", "many words here. " * 60, "L"), Document("short", "few words", "S")])
    variants = Variants(base)
    assert variants(None) is variants("fixed(tokens=512, overlap=50)") is base
    small = variants("fixed(tokens=32, overlap=4)")
    assert small.content_hash() == base.content_hash()
    assert sum(1 for _ in small.passages()) > sum(1 for _ in base.passages())
    assert Variants(base)("fixed(overlap=4, tokens=32)").folder == small.folder
    base.ingest([Document("new", "another", "N")])
    assert len(Variants(base)("fixed(tokens=32, overlap=4)")) == 3


def test_a_passage_that_both_have_is_encoded_once(tmp_path) -> None:
    base = Collection.create(tmp_path / "documents", chunks="fixed(tokens=512, overlap=50)")
    base.ingest([Document("short", "few words", "S")])
    made: list[str] = []

    def encode(texts):
        made.extend(texts)
        return [text.encode() for text in texts]

    assert list(Cache(base.folder / "vectors", "model", encode).stream(["few words"])) == [[b"few words"]]
    variant = Variants(base)("fixed(tokens=32, overlap=4)")
    cache = Cache(variant.folder / "vectors", "model", encode)
    assert list(cache.stream(["few words", "new words"])) == [[b"few words", b"new words"]]
    assert made == ["few words", "new words"]
    with sqlite3.connect(base.folder / "vectors-model.sqlite") as table:
        assert table.execute("SELECT count(*) FROM made").fetchone() == (2,)
    table.close()
