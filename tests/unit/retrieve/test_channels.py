"""The channels over one collection: what they find, what they withstand, what their options mean."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.records import Document
from ringtrue.retrieve import Collection, Retriever, build
from ringtrue.retrieve.channels.bm25 import LANGUAGES, Bm25
from ringtrue.retrieve.channels.dense import Dense
from ringtrue.testing.retrievers import HOSTILE, RetrieverSuite

from .conftest import DOCUMENTS

EXPRESSIONS = (
    "bm25", "fts5", "rm3", "dense", "dense('wordllama')", "hybrid", "rrf(bm25, dense)", "weighted(bm25, dense)",
    "combsum(bm25, fts5)", "combmnz(bm25, dense)", "adaptive(bm25, dense)", "hybrid >> mmr(0.5)",
    "dense(store='float16')", "dense(store='int8')", "dense(int8=True)", "dense(fields=['title', 'content', 'tags'])",
)  # fmt: skip


@pytest.mark.parametrize("expression", EXPRESSIONS)
class TestEveryRetriever(RetrieverSuite):
    """The suite for plug-in authors, on our own retrievers."""

    QUERY: ClassVar[str] = "pool"
    _made: ClassVar[dict[str, Retriever]] = {}

    @pytest.fixture(autouse=True)
    def _over_the_hotel(self, hotel: Collection, expression: str) -> None:
        self._now = self._made.setdefault(expression, build(expression, hotel))

    def make(self) -> Retriever:
        return self._now

    def test_a_scope_holds(self, expression: str) -> None:
        found = [hit.doc_id for hit in self.make().search("pool", k=10, scope={"kind": "rule"})]
        assert found
        assert set(found) <= {"rules", "noise", "dogs"}
        assert self.make().search("pool", k=10, scope={"kind": "nothing"}) == []


def test_bm25_stems_and_drops_stop_words(hotel: Collection) -> None:
    bm25 = Bm25(hotel)
    assert bm25.terms("The swimming pools of a child") == ["swim", "pool", "child"]
    assert {hit.doc_id for hit in bm25.search("swimming", k=3)} == {"pool"}


def test_bm25_title_weight_counts_words_of_the_title_more_often(folder: Path) -> None:
    collection = Collection.create(folder)
    collection.ingest([Document("in-title", "something else here", "lake"), Document("in-text", "lake lake here", "other")])
    assert [hit.doc_id for hit in build("bm25(title=1)", collection).search("lake")] == ["in-text", "in-title"]
    assert [hit.doc_id for hit in build("bm25(title=5)", collection).search("lake")] == ["in-title", "in-text"]


def test_bm25_is_the_formula(folder: Path) -> None:
    """k1 = 1.2, b = 0.75, idf = ln(1 + (N − n + ½) ÷ (n + ½)); lengths below 40 words are kept exactly."""
    collection = Collection.create(folder)
    collection.ingest([Document("one", "lake lake boat"), Document("two", "boat tree house wind rain")])
    found = {hit.doc_id: hit.score for hit in build("bm25", collection).search("lake boat")}
    mean = (3 + 5) / 2

    def part(count: int, length: int, having: int) -> float:
        idf = np.log(1 + (2 - having + 0.5) / (having + 0.5))
        return float(idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean)))

    assert found["one"] == pytest.approx(part(2, 3, 1) + part(1, 3, 2), rel=1e-6)
    assert found["two"] == pytest.approx(part(1, 5, 2), rel=1e-6)


@pytest.mark.parametrize("language", LANGUAGES)
def test_bm25_in_other_languages_by_name(folder: Path, language: str) -> None:
    collection = Collection.create(folder)
    collection.ingest([Document("a", "Hotel Zimmer камера غرفة δωμάτιο"), Document("b", "nothing of the kind")])
    assert [hit.doc_id for hit in build(f"bm25(language='{language}')", collection).search("zimmer")] == ["a"]


def test_ties_at_the_cut_off_go_by_document_id_whatever_the_order_of_writing(tmp_path: Path) -> None:
    names = [f"d{number:03}" for number in range(300)]
    for folder, order in (("up", names), ("down", names[::-1])):
        Collection.create(tmp_path / folder).ingest([Document(name, "the same words") for name in order])
    for channel in ("bm25", "fts5", "dense"):
        for folder in ("up", "down"):
            found = build(channel, Collection(tmp_path / folder)).search("same words", k=5)
            assert [hit.doc_id for hit in found] == ["d299", "d298", "d297", "d296", "d295"], (channel, folder)


def test_rm3_finds_what_shares_words_with_the_first_answers(folder: Path) -> None:
    collection = Collection.create(folder)
    collection.ingest(
        [
            Document("a", "sauna steam towels"),
            Document("b", "steam towels robes"),
            Document("c", "boat jetty water"),
            Document("d", "wind"),
        ]
    )
    assert [hit.doc_id for hit in build("bm25", collection).search("sauna", k=4)] == ["a"]
    assert [hit.doc_id for hit in build("rm3", collection).search("sauna", k=4)] == ["a", "b"]
    assert build("rm3", collection).search("sauna", k=1)[0].channels == {"rm3": 1}


def test_dense_finds_by_meaning_and_names_the_passage(hotel: Collection) -> None:
    best = Dense(hotel).search("I want to sleep without hearing anything", k=2)
    assert {hit.doc_id for hit in best} == {"noise", "room"}
    assert best[0].chunk == f"{best[0].doc_id}:chunk:0"


def test_dense_reads_all_of_a_long_document(folder: Path) -> None:
    """What lies beyond the encoder's window would be lost if passages were simply cut."""
    collection = Collection.create(folder)
    filler = "The meeting room has chairs and a table and a lamp. " * 40
    collection.ingest([Document("long", filler + "Penguins live on the ice of the far south."), Document("other", filler)])
    assert Dense(collection).search("antarctic birds", k=1)[0].doc_id == "long"


def test_dense_fields_give_each_field_its_vector_and_the_best_counts(folder: Path) -> None:
    collection = Collection.create(folder)
    collection.ingest(
        [Document("a", "A very long tale about ships. " * 20, "Penguins"), Document("b", "Penguins and ships", "Tale")]
    )
    hit = build("dense(fields=['title', 'content'])", collection).search("Penguins", k=1)[0]
    assert (hit.doc_id, hit.chunk) == ("a", "a:title")


@pytest.mark.parametrize(("store", "loss"), [("float16", 1e-3), ("int8", 2e-2)])
def test_smaller_storage_costs_little(hotel: Collection, store: str, loss: float) -> None:
    whole = {hit.doc_id: hit.score for hit in Dense(hotel).search("quiet pool", k=10)}
    small = {hit.doc_id: hit.score for hit in Dense(hotel, store=store).search("quiet pool", k=10)}
    assert whole.keys() == small.keys()
    assert max(abs(whole[doc_id] - small[doc_id]) for doc_id in whole) < loss


def test_hnsw_above_a_size_finds_what_exact_search_finds(hotel: Collection) -> None:
    pytest.importorskip("faiss")
    exact, near = Dense(hotel), Dense(hotel, hnsw=5)
    assert near.search("quiet pool", k=5) == exact.search("quiet pool", k=5)
    assert near.ready().near is not None


def test_a_batch_answers_as_one_by_one(hotel: Collection) -> None:
    texts = ["pool", "", "a boat", "breakfast eggs"]
    for expression in ("dense", "hybrid", "hybrid >> mmr(0.6)"):
        retriever = build(expression, hotel)
        assert retriever.search_many(texts, k=5) == [retriever.search(text, k=5) for text in texts]  # type: ignore[attr-defined]


def test_an_empty_collection_answers_nothing(folder: Path) -> None:
    collection = Collection.create(folder)
    for expression in ("bm25", "fts5", "rm3", "dense", "hybrid"):
        assert build(expression, collection).search("pool") == []


def test_documents_may_be_as_hostile_as_queries(folder: Path) -> None:
    collection = Collection.create(folder)
    collection.ingest([Document(f"d{number}", text, text[:50]) for number, text in enumerate(HOSTILE)])
    for expression in ("bm25", "fts5", "dense"):
        assert build(expression, collection).search("spa", k=20)


def test_an_unknown_field_names_the_known_ones(hotel: Collection) -> None:
    with pytest.raises(InputError, match="'content'"):
        build("dense(fields=['contents'])", hotel)


def test_ids_may_be_any_text(folder: Path) -> None:
    names = ["mem:12", "12", "a b", "日本", "x/y#z", "'; DROP TABLE documents; --"]
    collection = Collection.create(folder)
    collection.ingest([Document(name, "pool") for name in names])
    for expression in ("bm25", "fts5", "dense"):
        assert {hit.doc_id for hit in build(expression, collection).search("pool", k=10)} == set(names)


def test_the_hotel_is_whole() -> None:
    assert len(DOCUMENTS) == 10
