"""R-3: ingest is incremental, and every index follows the documents it was made from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ringtrue.errors import CannotDecide, InputError, MissingInput, SpecError
from ringtrue.records import Document, Hit
from ringtrue.retrieve import Collection, Ingested, build
from ringtrue.retrieve.channels.dense import Dense
from ringtrue.retrieve.collection import inside

from .conftest import DOCUMENTS

CHANNELS = ("bm25", "fts5", "rm3", "dense", "hybrid")
QUERIES = ("pool for children", "a calm chamber to sleep", "boat at night", "hotel")


def answers(folder: Path, channel: str) -> list[list[Hit]]:
    retriever = build(channel, Collection(folder))
    return [list(retriever.search(text, k=10)) for text in QUERIES]


def test_r3_only_what_changed_is_written_again(folder: Path) -> None:
    collection = Collection.create(folder)
    assert collection.ingest(DOCUMENTS) == Ingested(10, 0, 0, 0)
    assert collection.ingest(DOCUMENTS) == Ingested(0, 0, 10, 0)
    changed = [replace(DOCUMENTS[0], text="The pool is closed."), *DOCUMENTS[1:], Document("new", "A new text")]
    assert collection.ingest(changed) == Ingested(1, 1, 9, 0)
    assert collection.ingest(DOCUMENTS[1:3], remove_missing=True) == Ingested(0, 0, 2, 9)
    assert len(collection) == 2


@pytest.mark.parametrize("part", ["title", "text", "tags", "metadata"])
def test_a_change_of_any_part_is_seen(folder: Path, part: str) -> None:
    collection = Collection.create(folder)
    collection.ingest(DOCUMENTS)
    other = {"title": "Other", "text": "Other", "tags": ("other",), "metadata": {"kind": "other"}}[part]
    assert collection.ingest([replace(DOCUMENTS[3], **{part: other})]).changed == 1


def test_r3_only_changed_passages_are_encoded_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = Collection.create(folder)
    collection.ingest(DOCUMENTS)
    Dense(collection).ready()
    encoded: list[str] = []
    kind = type(Dense(collection).encoder)
    plain_encode = kind.encode

    def watched(self, texts, **options):  # type: ignore[no-untyped-def]
        encoded.extend(texts)
        return plain_encode(self, texts, **options)

    monkeypatch.setattr(kind, "encode", watched)
    collection.ingest([replace(DOCUMENTS[0], text="The pool is closed today.")])
    Dense(collection).ready()
    assert encoded == ["The pool\nThe pool is closed today."]


@pytest.mark.parametrize("channel", CHANNELS)
def test_an_index_grown_step_by_step_answers_as_one_made_at_once(tmp_path: Path, channel: str) -> None:
    at_once = Collection.create(tmp_path / "once")
    at_once.ingest(DOCUMENTS)
    grown = Collection.create(tmp_path / "grown")
    retriever = build(channel, grown)
    for document in DOCUMENTS:
        grown.ingest([document])
        retriever.search("pool")  # brings the index up to date after every step
    assert answers(tmp_path / "grown", channel) == answers(tmp_path / "once", channel)


@pytest.mark.parametrize("channel", CHANNELS)
def test_changed_and_removed_documents_leave_no_trace_in_the_statistics(tmp_path: Path, channel: str) -> None:
    clean = Collection.create(tmp_path / "clean")
    clean.ingest(DOCUMENTS[:6])
    worn = Collection.create(tmp_path / "worn")
    retriever = build(channel, worn)
    worn.ingest([*(replace(document, text="pool pool pool night") for document in DOCUMENTS[:6]), *DOCUMENTS[6:]])
    retriever.search("pool")
    worn.ingest(DOCUMENTS[:6], remove_missing=True)
    assert [hit.doc_id for hit in retriever.search("night ferry boat", k=10) if hit.doc_id == "ferry"] == []
    assert answers(tmp_path / "worn", channel) == answers(tmp_path / "clean", channel)


@pytest.mark.parametrize("channel", CHANNELS)
def test_the_same_documents_give_the_same_hits_bit_for_bit(tmp_path: Path, channel: str) -> None:
    for name in ("one", "other"):
        Collection.create(tmp_path / name).ingest(DOCUMENTS)
    assert answers(tmp_path / "one", channel) == answers(tmp_path / "other", channel)
    assert answers(tmp_path / "one", channel) == answers(tmp_path / "one", channel)


def test_a_document_that_comes_twice_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="'pool' comes twice"):
        Collection.create(folder).ingest([DOCUMENTS[0], DOCUMENTS[0]])


def test_a_second_writer_is_told_to_wait(folder: Path) -> None:
    mine, other = Collection.create(folder), Collection.create(folder)
    with mine.writing(), pytest.raises(CannotDecide, match="another process is writing"):
        other.ingest(DOCUMENTS)


def test_a_reader_goes_on_with_what_it_has_while_another_writes(folder: Path) -> None:
    writer, reader = Collection.create(folder), Collection.create(folder)
    writer.ingest(DOCUMENTS[:3])
    retriever = build("bm25", reader)
    before = retriever.search("pool", k=10)
    with writer.writing():
        writer.ingest(DOCUMENTS)
        assert [hit.doc_id for hit in retriever.search("pool", k=10)] == [hit.doc_id for hit in before]
    assert "dogs" in [hit.doc_id for hit in retriever.search("pool", k=10)]


def test_a_reader_that_finds_nothing_but_a_writer_says_so(folder: Path) -> None:
    writer, reader = Collection.create(folder), Collection.create(folder)
    with writer.writing():
        writer.ingest(DOCUMENTS)
        with pytest.raises(CannotDecide, match="for the first time"):
            build("bm25", reader).search("pool")


def test_a_folder_without_documents_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="ringtrue ingest"):
        Collection(tmp_path)


def test_a_folder_is_chunked_one_way(folder: Path) -> None:
    Collection.create(folder, chunks="sentence")
    with pytest.raises(InputError, match="is chunked by sentence"):
        Collection.create(folder, chunks="fixed(tokens=100, overlap=10)")
    assert Collection.create(folder).chunks == "sentence"


def test_a_wrong_chunker_is_refused_before_anything_is_written(folder: Path) -> None:
    with pytest.raises(SpecError, match="'sentence'"):
        Collection.create(folder, chunks="sentense")
    assert not folder.exists()


@pytest.mark.parametrize("damage", [b"", b"not a database" * 100], ids=["emptied", "overwritten"])
def test_a_damaged_collection_is_an_error_and_not_an_empty_one(folder: Path, damage: bytes) -> None:
    Collection.create(folder).ingest(DOCUMENTS)
    for file in folder.glob("documents.sqlite*"):
        file.write_bytes(damage)
    with pytest.raises(InputError, match="ingest"):
        Collection(folder)


def test_trap_14_a_damaged_index_is_made_again_and_not_searched(folder: Path) -> None:
    collection = Collection.create(folder)
    collection.ingest(DOCUMENTS)
    wanted = {channel: answers(folder, channel) for channel in CHANNELS}
    collection.ingest([Document("late", "A late arrival by boat")])
    for file in (folder / "indexes").rglob("*"):
        if file.is_file() and file.name != "state.json":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    collection.ingest(DOCUMENTS, remove_missing=True)
    assert {channel: answers(folder, channel) for channel in CHANNELS} == wanted


def test_r3_coverage_counts_passages_with_vectors(hotel: Collection) -> None:
    assert Dense(hotel).coverage() == (10, 10)


@pytest.mark.parametrize(
    ("metadata", "scope", "wanted"),
    [
        ({"city": "Bath"}, {"city": "Bath"}, True),
        ({"city": "Bath"}, {"city": "bath"}, False),
        ({"year": 2024}, {"year": "2024"}, True),
        ({"open": True}, {"open": "true"}, True),
        ({"kinds": ["a", "b"]}, {"kinds": "b"}, True),
        ({}, {"city": "Bath"}, False),
        ({"city": None}, {"city": "None"}, False),
        ({"city": {"name": "Bath"}}, {"city": "Bath"}, False),
    ],
)
def test_a_scope_admits_documents_with_these_values(metadata: dict[str, object], scope: dict[str, str], wanted: bool) -> None:
    assert inside(metadata, scope) is wanted
