"""Learned sparse retrieval over a tiny masked-language model: scores, passages, appending, scope."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringtrue.errors import InputError, MissingInput
from ringtrue.records import Document
from ringtrue.retrieve.builders import Collection
from ringtrue.retrieve.channels import splade as splade_module
from ringtrue.retrieve.channels.splade import Splade, _entries
from ringtrue.retrieve.encode.model import Model
from ringtrue.retrieve.protocol import Retriever
from ringtrue.testing.retrievers import RetrieverSuite
from unit.retrieve.tiny_models import WORDS, tiny_bert

LONG = "A heated indoor pool and a sauna. Breakfast in the garden. Quiet room with a sea view."
DOCUMENTS = (
    Document("h1", LONG, "Hotel spa", {"city": "Bath"}),
    Document("h2", "Cheap room near the train station. Parking. Wifi.", "City hotel", {"city": "Hull"}),
    Document("h3", "Family beach hotel with a large pool for children and a small pool.", "", {"city": "Bath", "year": 2024}),
    Document("h4", "", "Dog hotel", {"city": "Hull"}),
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("models") / "mlm", "mlm", seed=1)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("built")


@pytest.fixture(autouse=True)
def cache(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(built))


def collection(
    folder: Path, documents: Iterable[Document] = DOCUMENTS, chunks: str = "fixed(tokens=8, overlap=0)"
) -> Collection:
    made = Collection.create(folder, chunks=chunks)
    made.ingest(documents)
    return made


def expected(found: Collection, folder: Path, text: str) -> list[tuple[str, float, str]]:
    """Return (document, score, passage) by the definition: the largest dot product of query and passage."""
    model = Model(folder)
    (query,) = model.run([text]).astype(np.float64)
    ids = found.ids()
    best: dict[str, tuple[float, str]] = {}
    for row, title, number, passage in found.passages():
        score = float(model.run([f"{title}\n{passage}".strip()])[0].astype(np.float64) @ query)
        if score > best.get(ids[row], (0.0, ""))[0]:
            best[ids[row]] = score, f"{ids[row]}:chunk:{number}"
    rows = sorted(((doc_id, *value) for doc_id, value in best.items()), key=lambda row: row[0], reverse=True)
    return sorted(rows, key=lambda row: -row[1])


class TestSpladeIsARetriever(RetrieverSuite):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path, model: Path) -> None:
        self.splade = Splade(collection(tmp_path / "c"), model=model)

    def make(self) -> Retriever:
        return self.splade


@pytest.mark.parametrize("text", ["pool", "quiet room near the sea", "zebra 42", "hotel " * 500])
def test_the_score_is_the_dot_product_with_the_best_passage(tmp_path: Path, model: Path, text: str) -> None:
    made = collection(tmp_path / "c")
    hits = Splade(made, model=str(model)).search(text, k=10)
    wanted = expected(made, model, text)
    assert len(wanted) >= 3
    assert [(hit.doc_id, hit.chunk) for hit in hits] == [(doc_id, chunk) for doc_id, _, chunk in wanted]
    np.testing.assert_allclose([hit.score for hit in hits], [score for _, score, _ in wanted], rtol=1e-5)


def test_the_passage_that_answered_need_not_be_the_first(tmp_path: Path, model: Path) -> None:
    hits = Splade(collection(tmp_path / "c"), model=model).search("pool", k=10)
    assert any(hit.chunk not in (None, f"{hit.doc_id}:chunk:0") for hit in hits)


def test_a_hit_says_where_it_came_from(tmp_path: Path, model: Path) -> None:
    for rank, hit in enumerate(Splade(collection(tmp_path / "c"), model=model, name="mine").search("pool"), 1):
        assert hit.channels == {"mine": rank}
        assert hit.stages == (("mine", rank, hit.score),)


def test_a_blank_question_finds_nothing(tmp_path: Path, model: Path) -> None:
    splade = Splade(collection(tmp_path / "c"), model=model)
    for text in ("", " \n\t", "\0"):
        assert splade.search(text) == []


def test_an_empty_collection_finds_nothing(tmp_path: Path, model: Path) -> None:
    assert Splade(collection(tmp_path / "c", []), model=model).search("pool") == []


def test_equal_scores_go_by_id_descending_also_at_the_cut(tmp_path: Path, model: Path) -> None:
    twins = [Document(f"d{n}", "a pool", metadata={"odd": n % 2}) for n in (3, 1, 5, 2, 4)]
    splade = Splade(collection(tmp_path / "c", twins), model=model)
    assert [hit.doc_id for hit in splade.search("pool", k=3)] == ["d5", "d4", "d3"]
    assert [hit.doc_id for hit in splade.search("pool", k=9)] == ["d5", "d4", "d3", "d2", "d1"]


def test_scope_admits_only_what_has_the_value(tmp_path: Path, model: Path) -> None:
    made = collection(tmp_path / "c")
    splade = Splade(made, model=model)
    everything = splade.search("pool", k=10)
    inside = splade.search("pool", k=1, scope={"city": "Hull"})
    assert [hit.doc_id for hit in inside] == [hit.doc_id for hit in everything if hit.doc_id in ("h2", "h4")][:1]
    assert {hit.doc_id for hit in splade.search("pool", scope={"city": "Bath", "year": "2024"})} == {"h3"}
    assert splade.search("pool", scope={"city": "York"}) == []
    made.ingest([Document("h5", "pool", metadata={"city": "York"})])
    assert [hit.doc_id for hit in splade.search("pool", scope={"city": "York"})] == ["h5"]


def test_what_is_added_is_appended(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = collection(tmp_path / "c", DOCUMENTS[:2])
    splade = Splade(made, model=model)
    splade.search("pool")
    place = splade.folder / place_of(splade)
    before = (place / "weights.bin").read_bytes()
    made.ingest(DOCUMENTS[2:])
    grown = splade.search("pool", k=10)
    assert (place / "weights.bin").read_bytes().startswith(before), "the index was made anew"
    assert grown == Splade(collection(tmp_path / "other"), model=model).search("pool", k=10)
    assert [(hit.doc_id, hit.chunk) for hit in grown] == [(d, c) for d, _, c in expected(made, model, "pool")]


def test_what_a_killed_process_left_is_cut_off(tmp_path: Path, model: Path) -> None:
    made = collection(tmp_path / "c", DOCUMENTS[:2])
    splade = Splade(made, model=model)
    splade.search("pool")
    place = splade.folder / place_of(splade)
    for name in ("weights.bin", "passages.bin"):
        with (place / name).open("ab") as file:
            file.write(b"half a li")
    made.ingest(DOCUMENTS[2:])
    assert splade.search("pool", k=10) == Splade(collection(tmp_path / "other"), model=model).search("pool", k=10)


@pytest.mark.parametrize("name", ["weights.bin", "passages.bin"])
def test_a_torn_index_is_made_anew(tmp_path: Path, model: Path, name: str) -> None:
    made = collection(tmp_path / "c", DOCUMENTS[:2])
    splade = Splade(made, model=model)
    splade.search("pool")
    file = splade.folder / place_of(splade) / name
    wanted = splade.search("pool", k=10)
    file.write_bytes(file.read_bytes()[:-3])
    assert Splade(made, model=model).search("pool", k=10) == wanted
    made.ingest(DOCUMENTS[2:])
    fresh = Splade(made, model=model)
    assert fresh.search("pool", k=10) == Splade(collection(tmp_path / "other"), model=model).search("pool", k=10)


def test_only_changed_documents_are_encoded_again(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    run = Model.run
    monkeypatch.setattr(Model, "run", lambda self, texts, *args, **kw: asked.extend(texts) or run(self, texts, *args, **kw))
    made = collection(tmp_path / "c", chunks="fixed(tokens=512, overlap=50)")
    splade = Splade(made, model=model)
    splade.ready()
    assert len(asked) == len(DOCUMENTS)
    asked.clear()
    changed = Document("h2", "A new pool.", "City hotel", {"city": "Hull"})
    made.ingest([DOCUMENTS[0], changed, *DOCUMENTS[2:3]], remove_missing=True)
    splade.ready()
    assert asked == ["City hotel\nA new pool."]
    other = collection(tmp_path / "other", [DOCUMENTS[0], changed, DOCUMENTS[2]], chunks="fixed(tokens=512, overlap=50)")
    assert splade.search("pool", k=10) == Splade(other, model=model).search("pool", k=10)


def test_a_large_collection_is_written_in_blocks(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [Document(f"d{n}", f"{WORDS[n % len(WORDS)]} {WORDS[n // 3 % len(WORDS)]} {n}") for n in range(50)]
    whole = Splade(collection(tmp_path / "a", many), model=model).search("pool view", k=50)
    monkeypatch.setattr(splade_module, "BLOCK", 7)
    done: list[int] = []
    splade = Splade(collection(tmp_path / "b", many), model=model)
    splade.ready(progress=done.append)
    assert sum(done) == 50
    assert splade.search("pool view", k=50) == whole


def test_no_model_and_a_wrong_model_are_refused_with_the_cure(tmp_path: Path) -> None:
    made = collection(tmp_path / "c")
    with pytest.raises(InputError, match="splade has no model of its own; name one"):
        Splade(made, model="")
    with pytest.raises(MissingInput, match="there is no model '/no/such'"):
        Splade(made, model="/no/such")
    for head in (None, "classifier"):
        with pytest.raises(InputError, match="is not a learned sparse encoder; name one"):
            Splade(made, model=tiny_bert(tmp_path / str(head), head)).search("pool")


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.25]), min_size=6, max_size=6), min_size=1, max_size=8), st.data()
)
def test_postings_add_up_to_the_dot_product(rows: list[list[float]], data: Any) -> None:
    """Whatever the passages are, and also where the query has tokens that no passage has."""
    matrix = np.array(rows, np.float32)
    query = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 3.5]), min_size=9, max_size=9)), np.float32)
    entries = [_entries(row) for row in matrix]
    table = np.array([(n, 0, len(part)) for n, part in enumerate(entries)], splade_module.PASSAGE)
    postings = splade_module.Postings(table, np.concatenate(entries), {n: str(n) for n in range(len(rows))})
    np.testing.assert_allclose(postings.scores(_entries(query)), matrix.astype(np.float64) @ query[:6], rtol=1e-12)
    assert all(first <= after for first, after in pairwise(postings.first.tolist()))


def place_of(splade: Splade) -> str:
    return str(json.loads((splade.folder / "state.json").read_text())["place"])
