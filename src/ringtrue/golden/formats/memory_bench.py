"""The memory benchmark: queries with expected and forbidden memories, and one JSON file per memory (A-1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ringtrue.errors import InputError
from ringtrue.formats import Place, field_of, read_json
from ringtrue.golden.formats.agent_memory import SOURCE, check_spelling
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import (
    NEGATIVE,
    QueryFields,
    Record,
    alike,
    check_keys,
    facts_of,
    id_of,
    ids_of,
    legal,
    object_in,
    source_of,
    spread,
)
from ringtrue.golden.formats.folders import Layout, judged, read_documents, write_json
from ringtrue.memory.hook.files import category_of_folder, scan
from ringtrue.memory.hook.memory import BODY_FIELDS, body_of
from ringtrue.memory.hook.settings import Settings
from ringtrue.records import Document, GoldenSet, Judgment

RELEVANT, IRRELEVANT, FORBIDDEN = "expected_relevant", "expected_irrelevant", "forbidden"
QUERY = QueryFields("query_id", "query", (RELEVANT, IRRELEVANT), named=(
    "transcript_context", "dimension", "pair", "category", "intent", SOURCE,
))  # fmt: skip
MEMORY = ("id", "title", "tags")
MEMORY_FACTS = (
    "schema_version", "category", "created_at", "updated_at", "related_files", "confidence", "record_status",
    "importance_tier", "trigger_phrases", "supersedes", "links", "spec_folder", "content",
)  # fmt: skip
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def _read_corpus(path: Path, draft: Draft) -> None:
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
    record = object_in(read_json(path), place, "write one object with 'id', 'title' and 'content'")
    facts = facts_of(record, MEMORY, place, named=MEMORY_FACTS)
    doc_id = id_of(record, "id", place)
    if doc_id != path.stem:
        raise place.at("id").error(f"'{doc_id}' is not the name of its file", f"write '{path.stem}' or rename the file")
    category = legal(field_of(record, "category", str, place), BODY_FIELDS, "category", place.at("category"))
    content = field_of(record, "content", dict, place)
    check_keys(content, BODY_FIELDS[category], place.at("content"))
    tags = tuple(ids_of(record, "tags", place, default=[]))
    return Document(doc_id, body_of(category, content), field_of(record, "title", str, place), facts, tags)


def _read_query(record: Record, place: Place, draft: Draft, listed: int) -> None:
    # The format's first users wrote no ids; the position is the only name such a query has.
    query = QUERY.read(record, place, default_id=f"q{draft.position:03d}")
    field_of(record, "transcript_context", list, place, default=[])
    check_spelling(record, place)
    source_of(record, SOURCE, place)
    expected, forbidden = ids_of(record, RELEVANT, place), ids_of(record, IRRELEVANT, place, default=[])
    draft.add_query(replace(query, negative=record.get(NEGATIVE, not expected)), place)
    for name, paths, grade, facts in ((RELEVANT, expected, listed, {}), (IRRELEVANT, forbidden, 0, {FORBIDDEN: True})):
        for index, path in enumerate(paths):
            here = place.at(name).at(index)
            draft.add_judgment(Judgment(query.query_id, _doc_id(path, draft, here), grade, metadata=facts), here)


def _doc_id(text: str, draft: Draft, place: Place) -> str:
    """Return the memory id in a path such as ``decision/x.json`` or ``decisions/x.json``.

    Raises InputError if its folder is neither the one that the memory lies in nor one of the memory's category.
    """
    path = PurePosixPath(text.replace("\\", "/"))
    doc_id = path.stem if path.suffix == ".json" else path.name
    document = draft.documents.get(doc_id)
    category = document.metadata.get("category") if document is not None else None
    meant = alike(doc_id, draft.documents) if document is None else None
    if meant is not None:
        raise place.error(f"there is no memory '{text}'", f"did you mean '{meant}'?")
    real = PurePosixPath(draft.files.get(doc_id, f"{category}/{doc_id}.json"))
    there = path.parts[-len(real.parts) :] == real.parts or category_of_folder(path.parent.name) == category
    if path.parent.name and isinstance(category, str) and not there:
        raise place.error(f"'{text}' names another folder than the memory's", f"write '{real}'")
    return doc_id


def _query_rows(golden: GoldenSet) -> Iterator[Record]:
    categories = {document.doc_id: _category(document) for document in golden.documents}
    for query, mine in judged(golden):
        row = QUERY.write(query)
        row[RELEVANT] = [_path(j.doc_id, categories) for j in mine if j.grade >= golden.relevance_threshold]
        if not row[RELEVANT] and not query.negative:
            row[NEGATIVE] = False  # an empty list alone means that nothing answers the query
        # A tangential memory is neither expected nor forbidden, and this format has no third list.
        row[IRRELEVANT] = [_path(j.doc_id, categories) for j in mine if j.grade <= 0]
        yield row


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


LAYOUT = Layout(
    "memory-bench",
    "memory",
    _read_query,
    _query_rows,
    corpus="memories",
    read_corpus=_read_corpus,
    write_corpus=_write_corpus,
    with_source=True,
)
read, write = LAYOUT.read, LAYOUT.write
