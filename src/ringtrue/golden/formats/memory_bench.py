"""The memory benchmark: queries with expected and forbidden memories, and one JSON file per memory (A-1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from ringtrue.errors import InputError
from ringtrue.formats.text import Place, read_json
from ringtrue.golden.formats import manifest
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.golden.formats.corpus import read_documents
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import (
    NEGATIVE,
    Record,
    alike,
    check_keys,
    facts_of,
    id_of,
    ids_of,
    json_lines,
    legal,
    list_of,
    mapping_of,
    spread,
    text_of,
    truth_of,
)
from ringtrue.golden.formats.header import Header
from ringtrue.golden.formats.output import judged, write_json
from ringtrue.memory.hook.files import category_of_folder, scan
from ringtrue.memory.hook.memory import BODY_FIELDS, body_of
from ringtrue.memory.hook.settings import Settings
from ringtrue.records import Document, GoldenSet, Judgment, Query

RELEVANT, IRRELEVANT, FORBIDDEN = "expected_relevant", "expected_irrelevant", "forbidden"
QUERY = ("query_id", "query", RELEVANT, IRRELEVANT, NEGATIVE)
QUERY_FACTS = ("transcript_context", "dimension", "pair")
MEMORY = ("id", "title", "tags")
MEMORY_FACTS = (
    "schema_version",
    "category",
    "created_at",
    "updated_at",
    "related_files",
    "confidence",
    "record_status",
    "importance_tier",
    "trigger_phrases",
    "supersedes",
    "links",
    "spec_folder",
    "content",
)
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def _read_corpus(path: Path, draft: Draft, name: str, header: Header) -> None:
    if not path.is_dir():
        read_documents(path, draft)
        return
    # A folder in use also holds settings and caches; the hook's own listing leaves them out.
    listing = scan(str(path), Settings())
    for where, fault in listing.faults:
        with draft.complaints.about(Place(where)):
            raise InputError(f"{where}: {fault}")
    for name in sorted(listing.stamps):
        place = Place(str(path / name))
        with draft.complaints.about(place):
            memory = _memory(path / name, place)
            draft.add_document(memory, place)
            draft.files[memory.doc_id] = name


def _memory(path: Path, place: Place) -> Document:
    record = read_json(path)
    if not isinstance(record, dict):
        raise place.error(f"the file holds {record!r:.40}, not a memory", "write one object with 'id', 'title' and 'content'")
    facts = facts_of(record, MEMORY, place, named=MEMORY_FACTS)
    doc_id = id_of(record, "id", place)
    if doc_id != path.stem:
        raise place.at("id").error(f"'{doc_id}' is not the name of its file", f"write '{path.stem}' or rename the file")
    category = legal(text_of(record, "category", place), BODY_FIELDS, "category", place.at("category"))
    content = mapping_of(record, "content", place)
    check_keys(content, BODY_FIELDS[category], place.at("content"))
    tags = tuple(ids_of(record, "tags", place, default=[]))
    return Document(doc_id, body_of(category, content), text_of(record, "title", place), facts, tags)


def _read_queries(path: Path, draft: Draft, threshold: int) -> None:
    for number, (place, record) in enumerate(json_lines(path, draft.complaints), 1):
        with draft.complaints.about(place):
            facts = facts_of(record, QUERY, place, named=QUERY_FACTS)
            if "transcript_context" in facts:
                list_of(record, "transcript_context", place)
            # The format's first users wrote no ids; the position is the only name such a query has.
            query_id = id_of(record, "query_id", place) if "query_id" in record else f"q{number:03d}"
            negative = truth_of(record, NEGATIVE, place, default=False)
            lists = ids_of(record, RELEVANT, place), ids_of(record, IRRELEVANT, place, default=[])
            draft.add_query(Query(query_id, text_of(record, "query", place), facts, negative), place)
            for index, path_text in enumerate(lists[0]):
                here = place.at(RELEVANT).at(index)
                draft.add_judgment(Judgment(query_id, _doc_id(path_text, draft, here), threshold), here)
            for index, path_text in enumerate(lists[1]):
                here = place.at(IRRELEVANT).at(index)
                doc_id = _doc_id(path_text, draft, here)
                draft.add_judgment(Judgment(query_id, doc_id, 0, metadata={FORBIDDEN: True}), here)


def _doc_id(text: str, draft: Draft, place: Place) -> str:
    """Return the memory id in a path such as ``decision/x.json`` or ``decisions/x.json``.

    Raises InputError if its folder is neither the one that the memory lies in nor one of the memory's category.
    """
    path = PurePosixPath(text.replace("\\", "/"))
    doc_id = path.stem if path.suffix == ".json" else path.name
    document = draft.documents.get(doc_id)
    category = document.metadata.get("category") if document is not None else None
    if document is None and draft.documents:
        meant = alike(doc_id, draft.documents)
        if meant is not None:
            raise place.error(f"there is no memory '{text}'", f"did you mean '{meant}'?")
    real = PurePosixPath(draft.files.get(doc_id, f"{category}/{doc_id}.json"))
    there = path.parts[-len(real.parts) :] == real.parts or category_of_folder(path.parent.name) == category
    if path.parent.name and isinstance(category, str) and not there:
        raise place.error(f"'{text}' names another folder than the memory's", f"write '{real}'")
    return doc_id


def _query_rows(golden: GoldenSet) -> Iterator[Record]:
    categories = {document.doc_id: _category(document) for document in golden.documents}
    groups = judged(golden)
    for query in golden.queries:
        mine = groups[query.query_id]
        row: Record = {"query_id": query.query_id, "query": query.text} | spread(query.metadata, QUERY, named=QUERY_FACTS)
        row[RELEVANT] = [_path(j.doc_id, categories) for j in mine if j.grade >= golden.relevance_threshold]
        # A tangential memory is neither expected nor forbidden, and this format has no third list.
        row[IRRELEVANT] = [_path(j.doc_id, categories) for j in mine if j.grade <= 0]
        yield row | ({NEGATIVE: True} if query.negative else {})


def _path(doc_id: str, categories: Mapping[str, str]) -> str:
    return f"{categories[doc_id]}/{_file_name(doc_id)}" if doc_id in categories else _file_name(doc_id)


def _category(document: Document) -> str:
    # A document that never was a memory has to become one; what this changes is reported as lost.
    category = document.metadata.get("category")
    return category if isinstance(category, str) and category in BODY_FIELDS else "session_summary"


def _file_name(doc_id: str) -> str:
    if not _FILE_NAME.fullmatch(doc_id):
        cure = "use letters, digits, '-', '_' and '.', or write another format"
        raise InputError(f"document id '{doc_id}' cannot name a memory file; {cure}")
    return f"{doc_id}.json"


def _write_corpus(golden: GoldenSet, path: Path) -> None:
    for document in golden.documents:
        facts = {**document.metadata, "category": _category(document)}
        content = facts.get("content")
        if not isinstance(content, dict) or body_of(facts["category"], content) != document.text:
            facts["content"] = {BODY_FIELDS[facts["category"]][0]: document.text}
        record: Record = {"id": document.doc_id, "title": document.title} | spread(facts, MEMORY, named=MEMORY_FACTS)
        record["tags"] = list(document.tags)
        write_json(record, path / facts["category"] / _file_name(document.doc_id))


LAYOUT = manifest.Layout(
    "memory-bench", "queries.jsonl", "memories", "memory", _read_queries, _read_corpus, _query_rows, _write_corpus, True
)


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a folder with its memories, or in a lone file of queries."""
    return manifest.read(LAYOUT, path, complaints)


def write(golden: GoldenSet, path: Path) -> None:
    """Write a folder, or the queries alone where the path ends in .jsonl."""
    manifest.write(LAYOUT, golden, path)
