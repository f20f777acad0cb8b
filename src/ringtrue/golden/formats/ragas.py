"""Ragas rows: a question with the passages that should be, and those that were, retrieved for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.formats import Place, field_of
from ringtrue.golden.formats.draft import Draft, passage_id, undeclared
from ringtrue.golden.formats.fields import Complaints, QueryFields, Record, alike, ids_of, json_rows, said, spread
from ringtrue.golden.formats.folders import judged, write_rows
from ringtrue.records import Document, GoldenSet, Judgment, Query

QUESTION = ("user_input", "question")
# Before Ragas 0.2 the retrieved passages were called 'contexts'.
RETRIEVED = ("retrieved_contexts", "contexts")
REFERENCE = ("reference_contexts",)
RETRIEVED_IDS, REFERENCE_IDS = "retrieved_context_ids", "reference_context_ids"
QUERY = QueryFields(
    "query_id",
    "user_input",
    (*QUESTION, *RETRIEVED, *REFERENCE, RETRIEVED_IDS, REFERENCE_IDS),
    # These are proper names in Ragas too, and near enough to the others to look like slips of the pen.
    named=("reference", "response", "answer", "ground_truth", "rubrics"),
)
WRAPPERS = ("samples", "rows", "data")
SHOWN = "retrieved"


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a JSON or JSONL file of rows."""
    draft = Draft(complaints)
    for number, (place, record) in enumerate(json_rows(path, complaints, wrappers=WRAPPERS), 1):
        with complaints.about(place):
            _read_row(record, f"r{number}", place, draft)
    return draft.finish(undeclared(path.stem))


def _read_row(record: Record, default_id: str, place: Place, draft: Draft) -> None:
    name = _one_of(record, QUESTION, place)
    if name is None:
        meant = next((key for key in record if alike(key, QUESTION)), None)
        raise place.error("the field 'user_input' (or 'question') is missing", f"rename '{meant}'" if meant else "add it")
    if not isinstance(record[name], str):
        raise place.at(name).error(f"{record[name]!r:.60} is not one question", "write one row per user turn, as text")
    query = replace(QUERY, text=name).read(record, place, default_id=default_id)
    relevant = _passages(record, REFERENCE, REFERENCE_IDS, place, draft)
    shown = _passages(record, RETRIEVED, RETRIEVED_IDS, place, draft)
    draft.add_query(query if shown is None else replace(query, metadata={**query.metadata, SHOWN: shown}), place)
    for doc_id in dict.fromkeys(relevant or []):
        draft.add_judgment(Judgment(query.query_id, doc_id, 1), place)


def _one_of(record: Mapping[str, Any], names: tuple[str, ...], place: Place) -> str | None:
    given = [name for name in names if name in record]
    if len(given) > 1:
        raise place.error(f"both '{given[0]}' and '{given[1]}' are given", "keep one of the two")
    return given[0] if given else None


def _passages(record: Record, names: tuple[str, ...], ids_name: str, place: Place, draft: Draft) -> list[str] | None:
    """Return the ids of the passages of one kind; None when the row says nothing about them."""
    name = _one_of(record, names, place)
    texts = field_of(record, name, list, place) if name is not None and record[name] is not None else None
    ids = ids_of(record, ids_name, place) if record.get(ids_name) is not None else None
    if texts is None:
        return ids
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise place.at(str(name)).at(index).error(f"{text!r:.60} is not a passage", "write its text")
    if ids is not None and len(ids) != len(texts):
        raise place.at(ids_name).error(f"{len(ids)} ids for {len(texts)} passages", "give one id per passage")
    ids = ids if ids is not None else [passage_id(text) for text in texts]
    for doc_id, text in zip(ids, texts, strict=True):
        draft.add_passage(Document(doc_id, text), place)
    return ids


def write(golden: GoldenSet, path: Path) -> None:
    """Write rows as JSON lines, or as one JSON list where the path ends in .json."""
    texts = {document.doc_id: document.text for document in golden.documents}
    write_rows((_row(query, judgments, golden.relevance_threshold, texts) for query, judgments in judged(golden)), path)


def _row(query: Query, judgments: list[Judgment], threshold: int, texts: dict[str, str]) -> Record:
    facts = dict(query.metadata)
    shown = facts.get(SHOWN)
    row: Record = {"query_id": query.query_id, "user_input": query.text}
    if isinstance(shown, list) and all(isinstance(doc_id, str) and doc_id.strip() for doc_id in shown):
        del facts[SHOWN]
        row |= _written(shown, RETRIEVED[0], RETRIEVED_IDS, texts)
    row |= _written([j.doc_id for j in judgments if j.grade >= threshold], REFERENCE[0], REFERENCE_IDS, texts)
    return row | spread(facts, QUERY.structure) | said(negative=query.negative)


def _written(ids: list[str], name: str, ids_name: str, texts: dict[str, str]) -> Record:
    known = all(doc_id in texts for doc_id in ids)
    return ({name: [texts[doc_id] for doc_id in ids]} if known else {}) | {ids_name: ids}
