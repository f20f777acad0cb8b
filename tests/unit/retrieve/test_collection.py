"""Ingest is incremental, and every index follows the documents it was made from."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from ringtrue.errors import CannotDecide, InputError, MissingInput, SpecError
from ringtrue.records import Document, Hit
from ringtrue.retrieve import Collection, Ingested, build, index
from ringtrue.retrieve.channels.dense import Dense
from ringtrue.retrieve.documents import inside

from .conftest import DOCUMENTS

CHANNELS = ("bm25", "fts5", "rm3", "dense", "hybrid")
QUERIES = ("pool for children", "a calm chamber to sleep", "boat at night", "hotel")


def answers(folder: Path, channel: str) -> list[list[Hit]]:
    retriever = build(channel, Collection(folder))
    return [list(retriever.search(text, k=10)) for text in QUERIES]


def test_only_what_changed_is_written_again(folder: Path) -> None:
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


def test_only_changed_passages_are_encoded_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        other.ingest(DOCUMENTS, wait=0)


def test_a_reader_goes_on_with_what_it_has_while_another_writes(folder: Path) -> None:
    writer, reader = Collection.create(folder), Collection.create(folder)
    writer.ingest(DOCUMENTS[:3])
    retriever = build("bm25", reader)
    before = retriever.search("pool", k=10)
    with writer.writing():
        writer.ingest(DOCUMENTS)
        assert [hit.doc_id for hit in retriever.search("pool", k=10)] == [hit.doc_id for hit in before]
    assert "dogs" in [hit.doc_id for hit in retriever.search("pool", k=10)]


def test_a_reader_that_finds_nothing_but_a_writer_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, reader = Collection.create(folder), Collection.create(folder)
    with writer.writing():
        writer.ingest(DOCUMENTS)
        monkeypatch.setattr(index, "PATIENCE", 0.05)
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


def test_coverage_counts_passages_with_vectors(hotel: Collection) -> None:
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


@pytest.mark.parametrize("channel", ["bm25", "fts5", "dense"])
def test_a_removed_document_is_never_taken_for_one_that_came_after_it(folder: Path, channel: str) -> None:
    """An index that is behind must not give the new document the old one's place."""
    writer, reader = Collection.create(folder), Collection.create(folder)
    writer.ingest([Document("apple", "an apple a day"), Document("banana", "zanzibar spice ferry")])
    retriever = build(channel, reader)
    assert retriever.search("zanzibar ferry", k=1)[0].doc_id == "banana"
    with writer.writing():
        writer.ingest([Document("apple", "an apple a day")], remove_missing=True)
        writer.ingest([Document("cherry", "cherry blossom in spring")])
        for one in (retriever, build(channel, Collection(folder))):
            assert "cherry" not in [hit.doc_id for hit in one.search("zanzibar ferry", k=1)]
    assert [hit.doc_id for hit in retriever.search("cherry blossom", k=1)] == ["cherry"]


def test_a_process_killed_before_the_tables_were_made_leaves_nothing_that_stops_the_next(folder: Path) -> None:
    folder.mkdir()
    connection = sqlite3.connect(folder / "documents.sqlite")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert Collection.create(folder).ingest(DOCUMENTS).added == 10


@pytest.mark.parametrize(
    "state",
    [
        "{}",
        "[]",
        "half",
        '{"place": "g1", "generation": "x", "count": 1}',
        '{"place": "g9", "generation": 99, "count": 1}',
        '{"place": "../..", "generation": 1, "count": 1}',
    ],
)
def test_a_state_that_cannot_be_is_not_believed(folder: Path, state: str) -> None:
    Collection.create(folder).ingest(DOCUMENTS)
    wanted = {channel: answers(folder, channel) for channel in CHANNELS}
    for file in (folder / "indexes").glob("*/state.json"):
        file.write_text(state)
    assert {channel: answers(folder, channel) for channel in CHANNELS} == wanted


@pytest.mark.parametrize("damage", ["removed", "truncated"])
@pytest.mark.parametrize("channel", ["bm25", "fts5", "dense"])
def test_an_index_damaged_behind_our_back_is_made_again(folder: Path, channel: str, damage: str) -> None:
    Collection.create(folder).ingest(DOCUMENTS)
    wanted = answers(folder, channel)
    for place in (folder / "indexes").glob("*/g*"):
        for file in place.iterdir():
            if damage == "removed" or file.suffix == ".json":
                file.unlink()
            else:
                file.write_bytes(file.read_bytes()[: file.stat().st_size // 3])
    assert answers(folder, channel) == wanted


def test_an_ingest_that_broke_off_is_remembered_until_one_ends_well(folder: Path) -> None:
    collection = Collection.create(folder)

    def broken() -> Iterator[Document]:
        yield from DOCUMENTS
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        collection.ingest(broken())
    assert collection.unfinished
    collection.ingest(DOCUMENTS)
    assert not collection.unfinished


def test_a_search_neither_waits_for_an_ingest_of_another_thread_nor_deadlocks_with_it(folder: Path) -> None:
    collection = Collection.create(folder)
    collection.ingest(DOCUMENTS)
    retriever = build("bm25", collection)
    retriever.search("pool")
    answered: list[int] = []

    def slow() -> Iterator[Document]:
        for number in range(3 * 500):
            yield Document(f"new{number}", "a boat on the lake")

    def while_writing(done: int) -> None:
        thread = Thread(target=lambda: answered.append(len(retriever.search("pool", k=3))))
        thread.start()
        answered.append(len(retriever.search("pool", k=3)))
        thread.join(timeout=20)
        assert not thread.is_alive(), "the search waits for the ingest"

    collection.ingest(slow(), progress=while_writing)
    assert answered == [3] * 6


@pytest.mark.parametrize("channel", CHANNELS)
def test_threads_search_while_another_ingests(folder: Path, channel: str) -> None:
    collection = Collection.create(folder)
    collection.ingest(DOCUMENTS)
    retriever = build(channel, collection)
    problems: list[BaseException] = []
    stop = Event()

    def searching() -> None:
        try:
            while not stop.is_set():
                retriever.search("pool at night", k=5, scope={"kind": "page"})
                retriever.search("pool at night", k=5)
        except BaseException as problem:
            problems.append(problem)

    threads = [Thread(target=searching) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(6):
        collection.ingest(
            [replace(DOCUMENTS[turn], text=f"The pool, turn {turn}"), *DOCUMENTS[turn + 1 :]], remove_missing=True
        )
        retriever.search("pool")
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"doc_id": "a"}, "not a document"),
        (("a", "b"), "not a document"),
        (Document("a", None), "text"),  # type: ignore[arg-type]
        (Document("a", b"x"), "text"),  # type: ignore[arg-type]
        (Document("a", "x", None), "title"),  # type: ignore[arg-type]
        (Document("a", "x", metadata=[1]), "metadata"),  # type: ignore[arg-type]
        (Document("a", "x", metadata={1: 2}), "metadata"),  # type: ignore[dict-item]
        (Document("a", "x", metadata={"o": object()}), "metadata"),
        (Document("a", "x", metadata={"n": float("nan")}), "metadata"),
        (Document("a", "x", tags="abc"), "tags"),  # type: ignore[arg-type]
        (Document("a", "x", tags=(1, 2)), "tags"),  # type: ignore[arg-type]
        (Document("", "x"), "document id"),
        (Document("a\ud800", "x"), "document id"),
    ],
)
def test_what_is_no_usable_document_is_refused_with_its_part(folder: Path, wrong: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Collection.create(folder).ingest([wrong])


def test_a_change_that_only_moves_text_between_title_and_body_is_a_change(folder: Path) -> None:
    collection = Collection.create(folder)
    collection.ingest([Document("a", "c", "a\0b")])
    assert collection.ingest([Document("a", "b\0c", "a")]).changed == 1


@pytest.mark.parametrize("channel", [*CHANNELS, "trigger", "graph(bm25)"])
def test_a_scope_by_a_field_that_no_document_has_is_an_error(hotel: Collection, channel: str) -> None:
    with pytest.raises(InputError, match="'kind'"):
        build(channel, hotel).search("pool", scope={"kimd": "page"})


def test_documents_that_say_nothing_are_not_found_by_meaning(folder: Path) -> None:
    collection = Collection.create(folder)
    collection.ingest([Document("blank", "  "), Document("pool", "The pool")])
    assert [hit.doc_id for hit in build("dense", collection).search("pool", k=5)] == ["pool"]
    assert Dense(collection).coverage() == (1, 1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_collection_can_be_searched(folder: Path) -> None:
    Collection.create(folder).ingest(DOCUMENTS)
    wanted = answers(folder, "bm25")
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o555 if place.is_dir() else 0o444)
    try:
        assert answers(folder, "bm25") == wanted
    finally:
        for place in (folder, *folder.rglob("*")):
            place.chmod(0o755 if place.is_dir() else 0o644)
