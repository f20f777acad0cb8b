"""Golden sets whose queries are JSON lines, in a folder or as a lone file; three formats.

**gold-jsonl**: one row a query with the ids of its relevant documents, and who vouches for the row.
**memory-bench**: queries with expected and forbidden memories, and one JSON file per memory.
**agent-memory**: graded queries of a memory server. It numbers its memories; in the model an id is text, so 12 becomes "12"
wherever a memory is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from ringtrue.errors import InputError
from ringtrue.formats import Place, field_of, read_json
from ringtrue.golden.formats import fields
from ringtrue.golden.formats.fields import Draft, QueryFields, Record
from ringtrue.golden.formats.folders import Layout, judged, read_documents, write_json, write_json_lines
from ringtrue.memory.hook.files import category_of_folder, scan
from ringtrue.memory.hook.memory import BODY_FIELDS, body_of
from ringtrue.memory.hook.settings import Settings
from ringtrue.records import Document, GoldenSet, Judgment

# ── gold-jsonl ──────────────────────────────────────────────────────────────────────────────────────────────────────

IDS = ("relevant_ids", "relevant_case_law_ids")
GOLD_QUERY = QueryFields("id", "query", (*IDS, "source"), named=("practice_area", "corpus", "note"))


def _read_gold_query(record: Record, place: Place, draft: Draft, listed: int) -> None:
    name = str(fields.one_of(record, IDS, place, cure="add the list of relevant document ids"))
    query = GOLD_QUERY.read(record, place)
    source = fields.source_of(record, "source", place)
    relevant = fields.ids_of(record, name, place)
    if source is not None and not relevant:
        query = replace(query, metadata={**query.metadata, "source": source})
    draft.add_query(query, place)
    for index, doc_id in enumerate(relevant):
        draft.add_judgment(Judgment(query.query_id, doc_id, listed, source), place.at(name).at(index))


def _gold_rows(golden: GoldenSet) -> Iterator[Record]:
    for query, judgments in judged(golden):
        facts = dict(query.metadata)
        relevant = [judgment for judgment in judgments if judgment.grade >= golden.relevance_threshold]
        sources = {judgment.source for judgment in relevant}
        source = next(iter(sources)) if len(sources) == 1 else None
        if not sources and isinstance(facts.get("source"), str):
            source = facts.pop("source")
        row = GOLD_QUERY.write(query, facts)
        # Rows with a practice area come from the legal tools that call the list by its longer name.
        row[IDS[1] if "practice_area" in facts else IDS[0]] = [judgment.doc_id for judgment in relevant]
        yield row | fields.said(source=source)


GOLD_JSONL = Layout("gold-jsonl", "known-item", _read_gold_query, _gold_rows, queries="gold-set.jsonl")

# ── memory-bench ────────────────────────────────────────────────────────────────────────────────────────────────────

RELEVANT, IRRELEVANT, FORBIDDEN = "expected_relevant", "expected_irrelevant", "forbidden"
BENCH_QUERY = QueryFields("query_id", "query", (RELEVANT, IRRELEVANT), named=(
    "transcript_context", "dimension", "pair", "category", "intent", "judgmentSource",
))  # fmt: skip
MEMORY = ("id", "title", "tags")
MEMORY_FACTS = (
    "schema_version", "category", "created_at", "updated_at", "related_files", "confidence", "record_status",
    "importance_tier", "trigger_phrases", "supersedes", "links", "spec_folder", "content",
)  # fmt: skip
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def _read_memories(path: Path, draft: Draft) -> None:
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
    record = fields.object_in(read_json(path), place, "write one object with 'id', 'title' and 'content'")
    facts = fields.facts_of(record, MEMORY, place, named=MEMORY_FACTS)
    doc_id = fields.id_of(record, "id", place)
    if doc_id != path.stem:
        raise place.at("id").error(f"'{doc_id}' is not the name of its file", f"write '{path.stem}' or rename the file")
    category = fields.legal(field_of(record, "category", str, place), BODY_FIELDS, "category", place.at("category"))
    content = field_of(record, "content", dict, place)
    fields.check_keys(content, BODY_FIELDS[category], place.at("content"))
    tags = tuple(fields.ids_of(record, "tags", place, default=[]))
    return Document(doc_id, body_of(category, content), field_of(record, "title", str, place), facts, tags)


def _read_bench_query(record: Record, place: Place, draft: Draft, listed: int) -> None:
    # The format's first users wrote no ids; the position is the only name such a query has.
    query = BENCH_QUERY.read(record, place, default_id=f"q{draft.position:03d}")
    field_of(record, "transcript_context", list, place, default=[])
    fields.check_kind(record, place)
    fields.source_of(record, "judgmentSource", place)
    expected, forbidden = fields.ids_of(record, RELEVANT, place), fields.ids_of(record, IRRELEVANT, place, default=[])
    draft.add_query(replace(query, negative=record.get(fields.NEGATIVE, not expected)), place)
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
    meant = fields.alike(doc_id, draft.documents) if document is None else None
    if meant is not None:
        raise place.error(f"there is no memory '{text}'", f"did you mean '{meant}'?")
    real = PurePosixPath(draft.files.get(doc_id, f"{category}/{doc_id}.json"))
    there = path.parts[-len(real.parts) :] == real.parts or category_of_folder(path.parent.name) == category
    if path.parent.name and isinstance(category, str) and not there:
        raise place.error(f"'{text}' names another folder than the memory's", f"write '{real}'")
    return doc_id


def _bench_rows(golden: GoldenSet) -> Iterator[Record]:
    folders = {document.doc_id: f"{_category(document)}/" for document in golden.documents}

    def paths(judgments: list[Judgment]) -> list[str]:
        return [folders.get(judgment.doc_id, "") + _file_name(judgment.doc_id) for judgment in judgments]

    for query, mine in judged(golden):
        # A tangential memory is neither expected nor forbidden, and this format has no third list.
        expected = paths([judgment for judgment in mine if judgment.grade >= golden.relevance_threshold])
        row = BENCH_QUERY.write(query) | {RELEVANT: expected, IRRELEVANT: paths([one for one in mine if one.grade <= 0])}
        # An empty list alone means that nothing answers the query.
        yield row if expected or query.negative else row | {fields.NEGATIVE: False}


def _category(document: Document) -> str:
    # A document that never was a memory has to become one; what this changes is reported as lost.
    category = document.metadata.get("category")
    return category if isinstance(category, str) and category in BODY_FIELDS else "session_summary"


def _file_name(doc_id: str) -> str:
    if not _FILE_NAME.fullmatch(doc_id):
        cure = "use letters, digits, '-', '_' and '.', or write another format"
        raise InputError(f"document id '{doc_id}' cannot name a memory file; {cure}")
    return f"{doc_id}.json"


def _write_memories(golden: GoldenSet, path: Path) -> None:
    for document in golden.documents:
        facts = {**document.metadata, "category": _category(document)}
        content = facts.get("content")
        if not isinstance(content, dict) or body_of(facts["category"], content) != document.text:
            facts["content"] = {BODY_FIELDS[facts["category"]][0]: document.text}
        record: Record = {"id": document.doc_id, "title": document.title} | fields.spread(facts, MEMORY, named=MEMORY_FACTS)
        record["tags"] = list(document.tags)
        write_json(record, path / facts["category"] / _file_name(document.doc_id))


MEMORY_BENCH = Layout(
    "memory-bench",
    "memory",
    _read_bench_query,
    _bench_rows,
    corpus="memories",
    read_corpus=_read_memories,
    write_corpus=_write_memories,
    with_source=True,
)

# ── agent-memory ────────────────────────────────────────────────────────────────────────────────────────────────────

SOURCE = "judgmentSource"
JUDGED_BY = ("manual", "implicit", "bootstrapped", "validated", *fields.SOURCES)
AGENT_QUERY = QueryFields(
    "queryId",
    "query",
    ("judgments", SOURCE),
    named=("intent", "category", "sessionContext", "harvestedAt", "chain"),
)
AGENT_JUDGMENT = ("memoryId", "relevance", "source")
AGENT_JUDGMENT_FACTS = ("sourceChannels", "annotator", "confidence")
AGENT_MEMORY_FIELDS = ("memoryId", "title", "content", "tags")
AGENT_MEMORY_FACTS = (
    "spec_folder", "category", "importance_tier", "trigger_phrases", "causal_links", "created_at", "record_status",
)  # fmt: skip


def _read_numbered_memories(path: Path, draft: Draft) -> None:
    for place, record in fields.json_lines(path, draft.complaints):
        with draft.complaints.about(place):
            document = fields.document_of(record, place, id="memoryId", named=AGENT_MEMORY_FACTS)
            draft.add_document(replace(document, metadata=_memory_ids(dict(document.metadata), _as_text)), place)


def _read_agent_query(record: Record, place: Place, draft: Draft, listed: int) -> None:
    query = AGENT_QUERY.read(record, place)
    facts = _memory_ids(dict(query.metadata), _as_text)
    for name, words in ((SOURCE, JUDGED_BY), ("category", fields.CATEGORIES)):
        word = fields.optional_text(record, name, place)
        if word is not None:
            fields.legal(word, words, name, place.at(name))
    fields.optional_text(record, "intent", place)
    fields.check_kind(record, place)
    source = record.get(SOURCE)
    rows = field_of(record, "judgments", list, place)
    if source is not None and not rows:
        facts[SOURCE] = source
    draft.add_query(replace(query, metadata=facts), place)
    for here, row in fields.objects(rows, place.at("judgments"), draft.complaints):
        with draft.complaints.about(here):
            details = fields.facts_of(row, AGENT_JUDGMENT, here, named=AGENT_JUDGMENT_FACTS)
            own = fields.source_of({"source": source} | row, "source", here)
            grade = fields.grade_of(row, "relevance", here)
            draft.add_judgment(Judgment(query.query_id, fields.id_of(row, "memoryId", here), grade, own, details), here)


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _memory_ids(facts: Mapping[str, Any], change: Callable[[Any], Any]) -> Record:
    """Return the facts with the lists that name memories changed; they lie in three known places."""

    def changed(value: Any, names: bool) -> Any:
        return [change(item) for item in value] if names and isinstance(value, list) else value

    found = {name: changed(value, name == "chain") for name, value in facts.items()}
    for outer, inner in facts.items():
        if outer in ("sessionContext", "causal_links") and isinstance(inner, dict):
            all_lists = outer == "causal_links"
            found[outer] = {name: changed(ids, all_lists or name == "workingMemoryIds") for name, ids in inner.items()}
    return found


def _agent_rows(golden: GoldenSet) -> Iterator[Record]:
    for query, mine in judged(golden):
        facts = _memory_ids(query.metadata, fields.as_number)
        shared = {judgment.source for judgment in mine}
        source = next(iter(shared)) if len(shared) == 1 and shared <= {*JUDGED_BY} else None
        if not mine and isinstance(facts.get(SOURCE), str):
            source = facts.pop(SOURCE)
        # What a query is called elsewhere is kept where no reader takes it for one of this format's categories.
        own = "category" not in facts or facts["category"] in fields.CATEGORIES
        own_fields = AGENT_QUERY if own else replace(AGENT_QUERY, others=(*AGENT_QUERY.others, "category"))
        with_source = source is None and shared != {None}
        rows = [
            {"memoryId": fields.as_number(one.doc_id), "relevance": one.grade}
            | ({"source": one.source} if with_source else {})
            | fields.spread(one.metadata, AGENT_JUDGMENT, named=AGENT_JUDGMENT_FACTS)
            for one in mine
        ]
        yield own_fields.write(query, facts) | {"judgments": rows} | fields.said(judgmentSource=source)


def _write_numbered_memories(golden: GoldenSet, path: Path) -> None:
    rows = (
        {"memoryId": fields.as_number(document.doc_id), "title": document.title, "content": document.text}
        | fields.spread(_memory_ids(document.metadata, fields.as_number), AGENT_MEMORY_FIELDS, named=AGENT_MEMORY_FACTS)
        | fields.said(tags=list(document.tags))
        for document in golden.documents
    )
    write_json_lines(rows, path)


AGENT_MEMORY = Layout(
    "agent-memory",
    "memory",
    _read_agent_query,
    _agent_rows,
    corpus="memories.jsonl",
    read_corpus=_read_numbered_memories,
    write_corpus=_write_numbered_memories,
)
