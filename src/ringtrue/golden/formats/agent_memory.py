"""Agent-memory evaluation: graded queries of a memory server with numbered memories, in two JSONL files.

The server numbers its memories; in the model an id is text, so 12 becomes "12" wherever a memory is meant (trap 11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.formats import Place, field_of
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import (
    SOURCES,
    QueryFields,
    Record,
    as_number,
    check_word,
    document_of,
    facts_of,
    grade_of,
    id_of,
    json_lines,
    legal,
    objects,
    optional_text,
    said,
    source_of,
    spread,
)
from ringtrue.golden.formats.folders import Layout, judged, write_json_lines
from ringtrue.memory.hook.intents import INTENTS
from ringtrue.records import GoldenSet, Judgment

SOURCE = "judgmentSource"
JUDGED_BY = ("manual", "implicit", "bootstrapped", "validated", *SOURCES)
CATEGORIES = (
    "trigger-match", "semantic-search", "causal-query", "cross-folder", "intent-specific", "cold-start", "multi-concept",
    "edge-case",
)  # fmt: skip
QUERY = QueryFields(
    "queryId",
    "query",
    ("judgments", SOURCE),
    named=("intent", "category", "sessionContext", "harvestedAt", "chain"),
)
JUDGMENT = ("memoryId", "relevance", "source")
JUDGMENT_FACTS = ("sourceChannels", "annotator", "confidence")
MEMORY = ("memoryId", "title", "content", "tags")
MEMORY_FACTS = (
    "spec_folder", "category", "importance_tier", "trigger_phrases", "causal_links", "created_at", "record_status",
)  # fmt: skip


def _read_corpus(path: Path, draft: Draft) -> None:
    for place, record in json_lines(path, draft.complaints):
        with draft.complaints.about(place):
            document = document_of(record, place, id="memoryId", named=MEMORY_FACTS)
            draft.add_document(replace(document, metadata=_memory_ids(dict(document.metadata), _as_text)), place)


def _read_query(record: Record, place: Place, draft: Draft, listed: int) -> None:
    query = QUERY.read(record, place)
    facts = _memory_ids(dict(query.metadata), _as_text)
    _check_words(record, place)
    source = record.get(SOURCE)
    rows = field_of(record, "judgments", list, place)
    if source is not None and not rows:
        facts[SOURCE] = source
    draft.add_query(replace(query, metadata=facts), place)
    for here, row in objects(rows, place.at("judgments"), draft.complaints):
        with draft.complaints.about(here):
            details = facts_of(row, JUDGMENT, here, named=JUDGMENT_FACTS)
            own = source_of({"source": source} | row, "source", here)
            grade = grade_of(row, "relevance", here)
            draft.add_judgment(Judgment(query.query_id, id_of(row, "memoryId", here), grade, own, details), here)


def _check_words(record: Record, place: Place) -> None:
    """Raise InputError for a word that the format does not have; intents may be a user's own, but not nearly one of ours."""
    for name, words in ((SOURCE, JUDGED_BY), ("category", CATEGORIES)):
        word = optional_text(record, name, place)
        if word is not None:
            legal(word, words, name, place.at(name))
    optional_text(record, "intent", place)
    check_spelling(record, place)


def check_spelling(record: Record, place: Place) -> None:
    """Raise InputError for a category or an intent of a query that is nearly one of this format's."""
    check_word(record, "category", CATEGORIES, "category", place)
    check_word(record, "intent", INTENTS, "intent", place)


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _memory_ids(facts: Record, change: Callable[[Any], Any]) -> Record:
    """Return the facts with the lists that name memories changed; they lie in three known places."""
    changed = dict(facts)
    if isinstance(facts.get("chain"), list):
        changed["chain"] = [change(value) for value in facts["chain"]]
    for outer, all_lists in (("sessionContext", False), ("causal_links", True)):
        inner = facts.get(outer)
        if isinstance(inner, dict):
            names = [name for name in inner if (all_lists or name == "workingMemoryIds") and isinstance(inner[name], list)]
            changed[outer] = inner | {name: [change(value) for value in inner[name]] for name in names}
    return changed


def _query_rows(golden: GoldenSet) -> Iterator[Record]:
    for query, mine in judged(golden):
        facts = _memory_ids(dict(query.metadata), as_number)
        shared = {judgment.source for judgment in mine}
        source = next(iter(shared)) if len(shared) == 1 and shared <= {*JUDGED_BY} else None
        if not mine and isinstance(facts.get(SOURCE), str):
            source = facts.pop(SOURCE)
        # What a query is called elsewhere is kept where no reader takes it for one of this format's categories.
        own = "category" not in facts or facts["category"] in CATEGORIES
        fields = QUERY if own else replace(QUERY, others=(*QUERY.others, "category"))
        row = fields.write(query, facts)
        row["judgments"] = [_judgment_row(judgment, with_source=source is None and shared != {None}) for judgment in mine]
        yield row | said(judgmentSource=source)


def _judgment_row(judgment: Judgment, *, with_source: bool) -> Record:
    row: Record = {"memoryId": as_number(judgment.doc_id), "relevance": judgment.grade}
    row |= {"source": judgment.source} if with_source else {}
    return row | spread(judgment.metadata, JUDGMENT, named=JUDGMENT_FACTS)


def _write_corpus(golden: GoldenSet, path: Path) -> None:
    rows = (
        {"memoryId": as_number(document.doc_id), "title": document.title, "content": document.text}
        | spread(_memory_ids(dict(document.metadata), as_number), MEMORY, named=MEMORY_FACTS)
        | said(tags=list(document.tags))
        for document in golden.documents
    )
    write_json_lines(rows, path)


LAYOUT = Layout(
    "agent-memory",
    "memory",
    _read_query,
    _query_rows,
    corpus="memories.jsonl",
    read_corpus=_read_corpus,
    write_corpus=_write_corpus,
)
read, write = LAYOUT.read, LAYOUT.write
