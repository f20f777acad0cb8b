"""Agent-memory evaluation: graded queries of a memory server with numbered memories, in two JSONL files.

The server numbers its memories; in the model an id is text, so 12 becomes "12" wherever a memory is meant (trap 11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ringtrue.formats.text import Place
from ringtrue.golden.formats import manifest
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import (
    NEGATIVE,
    SOURCES,
    Record,
    alike,
    as_number,
    facts_of,
    grade_of,
    id_of,
    ids_of,
    json_lines,
    legal,
    list_of,
    objects,
    spread,
    text_of,
    truth_of,
)
from ringtrue.golden.formats.header import Header
from ringtrue.golden.formats.output import judged, write_json_lines
from ringtrue.memory.hook.intents import INTENTS
from ringtrue.records import Document, GoldenSet, Judgment, Query

SOURCE = "judgmentSource"
JUDGED_BY = ("manual", "implicit", "bootstrapped", "validated", *SOURCES)
CATEGORIES = (
    "trigger-match", "semantic-search", "causal-query", "cross-folder", "intent-specific", "cold-start", "multi-concept",
    "edge-case",
)  # fmt: skip
QUERY = ("queryId", "query", "judgments", SOURCE, NEGATIVE)
QUERY_FACTS = ("intent", "category", "sessionContext", "harvestedAt", "chain")
JUDGMENT = ("memoryId", "relevance", "source")
JUDGMENT_FACTS = ("sourceChannels", "annotator", "confidence")
MEMORY = ("memoryId", "title", "content", "tags")
MEMORY_FACTS = (
    "spec_folder",
    "category",
    "importance_tier",
    "trigger_phrases",
    "causal_links",
    "created_at",
    "record_status",
)


def _read_corpus(path: Path, draft: Draft, name: str, header: Header) -> None:
    for place, record in json_lines(path, draft.complaints):
        with draft.complaints.about(place):
            facts = _memory_ids(facts_of(record, MEMORY, place, named=MEMORY_FACTS), _as_text)
            tags = tuple(ids_of(record, "tags", place, default=[]))
            title = text_of(record, "title", place, default="")
            document = Document(id_of(record, "memoryId", place), text_of(record, "content", place), title, facts, tags)
            draft.add_document(document, place)


def _read_queries(path: Path, draft: Draft, threshold: int) -> None:
    for place, record in json_lines(path, draft.complaints):
        with draft.complaints.about(place):
            facts = _memory_ids(facts_of(record, QUERY, place, named=QUERY_FACTS), _as_text)
            query_id = id_of(record, "queryId", place)
            _check_words(record, place)
            source = record.get(SOURCE)
            negative = truth_of(record, NEGATIVE, place, default=False)
            rows = list_of(record, "judgments", place)
            if source is not None and not rows:
                facts[SOURCE] = source
            draft.add_query(Query(query_id, text_of(record, "query", place), facts, negative), place)
            for here, row in objects(rows, place.at("judgments"), draft.complaints):
                with draft.complaints.about(here):
                    draft.add_judgment(_judgment(query_id, row, source, here), here)


def _check_words(record: Record, place: Place) -> None:
    """Raise InputError for a word that the format does not have; intents may be a user's own, but not nearly one of ours."""
    for name, words in ((SOURCE, JUDGED_BY), ("category", CATEGORIES)):
        if record.get(name) is not None:
            legal(text_of(record, name, place), words, name, place.at(name))
    intent = text_of(record, "intent", place) if record.get("intent") is not None else None
    meant = None if intent is None or intent in INTENTS else alike(intent, INTENTS)
    if meant is not None:
        raise place.at("intent").error(f"'{intent}' is not a known intent", f"did you mean '{meant}'?")


def _judgment(query_id: str, row: Record, source: str | None, place: Place) -> Judgment:
    details = facts_of(row, JUDGMENT, place, named=JUDGMENT_FACTS)
    own = row.get("source", source)
    own = own if own is None else text_of({"source": own}, "source", place)
    return Judgment(query_id, id_of(row, "memoryId", place), grade_of(row, "relevance", place), own, details)


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _memory_ids(facts: Record, change: Callable[[Any], Any]) -> Record:
    """Return the facts with the lists that name memories changed; they lie in three known places."""
    changed = dict(facts)
    if isinstance(facts.get("chain"), list):
        changed["chain"] = [change(value) for value in facts["chain"]]
    for outer, names in (
        ("sessionContext", ("workingMemoryIds",)),
        ("causal_links", tuple(_keys(facts.get("causal_links")))),
    ):
        inner = facts.get(outer)
        if isinstance(inner, dict):
            lists = {name: [change(value) for value in inner[name]] for name in names if isinstance(inner.get(name), list)}
            changed[outer] = inner | lists
    return changed


def _keys(value: Any) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _query_rows(golden: GoldenSet) -> Iterator[Record]:
    groups = judged(golden)
    for query in golden.queries:
        mine = groups[query.query_id]
        facts = _memory_ids(dict(query.metadata), as_number)
        shared = {judgment.source for judgment in mine}
        source = next(iter(shared)) if len(shared) == 1 and shared <= {*JUDGED_BY} else None
        if not mine and isinstance(facts.get(SOURCE), str):
            source = facts.pop(SOURCE)
        # What a query is called elsewhere is kept where no reader takes it for one of this format's categories.
        named = [name for name in QUERY_FACTS if name != "category" or facts.get(name) in CATEGORIES]
        structure = QUERY if "category" in named else (*QUERY, "category")
        row: Record = {"queryId": query.query_id, "query": query.text} | spread(facts, structure, named=named)
        row["judgments"] = [_judgment_row(judgment, with_source=source is None and shared != {None}) for judgment in mine]
        row |= {SOURCE: source} if source is not None else {}
        yield row | ({NEGATIVE: True} if query.negative else {})


def _judgment_row(judgment: Judgment, *, with_source: bool) -> Record:
    row: Record = {"memoryId": as_number(judgment.doc_id), "relevance": judgment.grade}
    row |= {"source": judgment.source} if with_source else {}
    return row | spread(judgment.metadata, JUDGMENT, named=JUDGMENT_FACTS)


def _write_corpus(golden: GoldenSet, path: Path) -> None:
    write_json_lines((_memory_row(document) for document in golden.documents), path)


def _memory_row(document: Document) -> Record:
    row: Record = {"memoryId": as_number(document.doc_id), "title": document.title, "content": document.text}
    row |= spread(_memory_ids(dict(document.metadata), as_number), MEMORY, named=MEMORY_FACTS)
    return row | ({"tags": list(document.tags)} if document.tags else {})


LAYOUT = manifest.Layout(
    "agent-memory", "queries.jsonl", "memories.jsonl", "memory", _read_queries, _read_corpus, _query_rows, _write_corpus
)


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a folder with its memories, or in a lone file of queries."""
    return manifest.read(LAYOUT, path, complaints)


def write(golden: GoldenSet, path: Path) -> None:
    """Write a folder, or the queries alone where the path ends in .jsonl."""
    manifest.write(LAYOUT, golden, path)
