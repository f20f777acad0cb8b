"""Golden sets in one JSON or YAML document; two formats.

**golden-dataset**: entities and queries with their expected results. It has room for everything a golden set can say.
**test-set**: queries with their ``relevant_docs``, the documents in a corpus file beside it. A relevant document is
``{doc_id, grade}``, or an id alone if the whole set has no grades.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.formats import (
    DOCUMENT,
    GRADE,
    Place,
    field_of,
    json_records,
    read_json,
    read_jsonl,
    read_text,
    read_yaml,
    yaml_text,
)
from ringtrue.golden.formats import fields
from ringtrue.golden.formats.fields import Complaints, Draft, Header, QueryFields, Record
from ringtrue.golden.formats.folders import judged, read_corpora, write_documents, write_json, write_text
from ringtrue.records import Document, GoldenSet, Judgment, Query

# ── golden-dataset ──────────────────────────────────────────────────────────────────────────────────────────────────

ENTITIES = "entities"
STRUCTURE = (ENTITIES, "queries", "corpus")
DATASET_QUERY = QueryFields("query_id", "query_text", ("expected_results",), named=("category", "query_type"))
EXPECTED = ("relevant_entities", "relevance_labels", "judgment_details", "top_1_chunk")
LISTED, LABELLED, TOP_CHUNK = "listed", "labelled", "top_1_chunk"
UNLABELLED_GRADE = 3


def read_dataset(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the golden data set in one JSON file."""
    return parsed_dataset(read_json(path), Place(str(path)), complaints, name=path.stem, folder=path.parent)


def parsed_dataset(record: Any, place: Place, complaints: Complaints, *, name: str, folder: Path | None = None) -> GoldenSet:
    """Return the set in a JSON value; ``folder`` is where a ``corpus`` it names may lie, and without one it may name none."""
    record = fields.object_in(record, place, "write one object with 'entities' and 'queries'")
    header = fields.read_header(record, place, name=name, structure=STRUCTURE)
    draft = Draft(complaints)
    entities = field_of(record, ENTITIES, list, place, default=[])
    for here, entity in fields.objects(entities, place.at(ENTITIES), complaints):
        with complaints.about(here):
            draft.add_document(fields.document_of(entity, here, id="entity_id", named=("entity_type",)), here)
    read_corpora(record, place, folder, draft, header)
    for here, query in fields.objects(field_of(record, "queries", list, place), place.at("queries"), complaints):
        with complaints.about(here):
            _read_dataset_query(query, here, header, draft)
    # ``listed`` is kept only if it says something that the grade and the threshold do not: a fault to be reported.
    threshold = draft.threshold(header)
    for pair, judgment in draft.judgments.items():
        if judgment.metadata.get(LISTED) is (judgment.grade >= threshold):
            facts = {name: value for name, value in judgment.metadata.items() if name != LISTED}
            draft.judgments[pair] = replace(judgment, metadata=facts)
    return draft.finish(header)


def _read_dataset_query(record: Record, place: Place, header: Header, draft: Draft) -> None:
    query = DATASET_QUERY.read(record, place)
    expected = field_of(record, "expected_results", dict, place)
    here = place.at("expected_results")
    fields.check_keys(expected, EXPECTED, here)
    unknown = sorted(expected.keys() - set(EXPECTED))
    if unknown:
        raise here.error(f"the field '{unknown[0]}' is not known", f"use {', '.join(EXPECTED)}")
    chunk = {TOP_CHUNK: expected[TOP_CHUNK]} if TOP_CHUNK in expected else {}
    draft.add_query(replace(query, metadata={**query.metadata, **chunk}), place)
    labels = {
        fields.as_id(doc_id, here): fields.grade(value, here.at("relevance_labels").at(doc_id))
        for doc_id, value in field_of(expected, "relevance_labels", dict, here, default={}).items()
    }
    details = field_of(expected, "judgment_details", dict, here, default={})
    for doc_id in details:
        field_of(details, doc_id, dict, here.at("judgment_details"))
    listed = fields.ids_of(expected, "relevant_entities", here, default=[])
    places = [(doc_id, here.at("relevant_entities").at(index), True) for index, doc_id in enumerate(listed)]
    places += [(doc_id, here.at("relevance_labels").at(doc_id), False) for doc_id in labels if doc_id not in listed]
    for doc_id, at, is_listed in places:
        facts: Record = {LISTED: is_listed} | ({} if doc_id in labels else {LABELLED: False})
        source = None
        if doc_id in details:
            of_details = here.at("judgment_details").at(doc_id)
            source = fields.source_of(details[doc_id], "source", of_details)
            facts = fields.facts_of(details[doc_id], ("source",), of_details) | facts
        value = labels.get(doc_id, _unlabelled(header.golden.scale))
        draft.add_judgment(Judgment(query.query_id, doc_id, value, source, facts), at)
    stray = sorted(doc_id for doc_id in details if (query.query_id, doc_id) not in draft.judgments)
    if stray:
        raise here.at("judgment_details").error(f"'{stray[0]}' is not judged", "add its label or remove its details")


def _unlabelled(scale: tuple[int, int]) -> int:
    return min(UNLABELLED_GRADE, scale[1])


def write_dataset(golden: GoldenSet, path: Path) -> None:
    """Write the set as one JSON file."""
    write_json(record_of(golden), path)


def record_of(golden: GoldenSet) -> Record:
    """Return the set as the object that its JSON file holds."""
    record = fields.write_header(golden, structure=STRUCTURE)
    if golden.documents:
        record["entities"] = [_entity(document) for document in golden.documents]
    record["queries"] = [_dataset_row(query, judgments, golden) for query, judgments in judged(golden)]
    return record


def _entity(document: Document) -> Record:
    facts = dict(document.metadata)
    kind = {"entity_type": facts.pop("entity_type")} if "entity_type" in facts else {}
    record: Record = {"entity_id": document.doc_id, **kind, "title": document.title, "content": document.text}
    return record | fields.said(metadata=facts, tags=list(document.tags))


def _dataset_row(query: Query, judgments: list[Judgment], golden: GoldenSet) -> Record:
    facts = dict(query.metadata)
    threshold, unlabelled = golden.relevance_threshold, _unlabelled(golden.scale)
    expected: Record = {"relevant_entities": [j.doc_id for j in judgments if j.metadata.get(LISTED, j.grade >= threshold)]}
    if TOP_CHUNK in facts:
        expected[TOP_CHUNK] = facts.pop(TOP_CHUNK)
    expected["relevance_labels"] = {
        # A grade that was given since must not be left out with the label that was missing.
        j.doc_id: j.grade
        for j in judgments
        if j.metadata.get(LABELLED, True) or j.grade != unlabelled
    }
    details = {}
    for one in judgments:
        of_judgment = {key: value for key, value in one.metadata.items() if key not in (LISTED, LABELLED)}
        details[one.doc_id] = fields.said(source=one.source) | fields.spread(of_judgment, ("source",))
    expected |= fields.said(judgment_details={doc_id: given for doc_id, given in details.items() if given})
    return DATASET_QUERY.write(query, facts) | {"expected_results": expected}


# ── test-set ────────────────────────────────────────────────────────────────────────────────────────────────────────

TEST_STRUCTURE = ("corpus", "queries")
TEST_QUERY = QueryFields("query_id", "query_text", ("relevant_docs",), named=("query_type", "category", "intent"))
JUDGMENT = ("doc_id", "grade", "source")
LISTS = ("relevant_docs", "relevant")
_QUERY_NAMES = {"query_id": ("id",), "query_text": ("query",), LISTS[0]: LISTS[1:]}
_JUDGMENT_NAMES = {"doc_id": (*DOCUMENT, "id"), "grade": tuple(name for name in GRADE if name != "score")}


def read_test_set(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a YAML or JSON file and the corpus file that it names."""
    value = read_yaml(path) if path.suffix in (".yaml", ".yml") else _read_json(path)
    return parsed_test_set(value, Place(str(path)), complaints, name=path.stem, folder=path.parent)


def _read_json(path: Path) -> Any:
    """Return what a JSON file holds; one query on each line are a list of queries."""
    first: Record = {}
    if read_text(path).lstrip().startswith("{"):
        with suppress(InputError):  # if it is broken, the whole file says more
            first = next(json_records(path))[1]()
    return [record for _, record in read_jsonl(path)] if first.keys() & set(LISTS) else read_json(path)


def parsed_test_set(document: Any, place: Place, complaints: Complaints, *, name: str, folder: Path | None = None) -> GoldenSet:
    """Return the set in a value read from YAML or JSON; without a ``folder`` it may name no corpus.

    A golden data set that somebody wrote in YAML is read as the same in JSON is.
    """
    if isinstance(document, dict) and _is_dataset(document):
        return parsed_dataset(_plain(document, place), place, complaints, name=name, folder=folder)
    # A bare list of queries is what people write first; it is a test set that says nothing about itself.
    record = {"queries": document} if isinstance(document, list) else document
    if not isinstance(record, dict):
        raise place.error(f"the file holds {record!r:.40}, not a test set", "write 'queries:' with a list under it")
    given = {key: _plain(value, place.at(key)) for key, value in record.items() if key != "queries"}
    header = fields.read_header(given | {"queries": []}, place, name=name, structure=TEST_STRUCTURE, profile="test-set")
    draft = Draft(complaints)
    read_corpora(given, place, folder, draft, header)
    relevant = header.threshold or 1
    for here, query in fields.objects(field_of(record, "queries", list, place), place.at("queries"), complaints):
        with complaints.about(here):
            _read_test_query(_named(query, _QUERY_NAMES), here, draft, relevant)
    draft.note_ungraded(relevant)
    return draft.finish(header)


def _plain(value: Any, place: Place) -> Any:
    """Return a value read from YAML as JSON would hold it; dates become text."""
    if isinstance(value, Mapping):
        return {key: _plain(item, place.at(str(key))) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, place.at(index)) for index, item in enumerate(value)]
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise place.error(f"{value!r} is not a finite number", "write a finite number or null")
    if value is None or isinstance(value, str | int | float):
        return value
    raise place.error(f"a {type(value).__name__} cannot be kept", "write it as text")


def _named(record: Record, names: Mapping[str, tuple[str, ...]]) -> Record:
    """Return a record under this format's names; if it has one of them already, other names for it are facts like any."""
    found = {name: next((other for other in others if other in record), name) for name, others in names.items()}
    own = {other: name for name, other in found.items() if name not in record}
    return {own.get(key, key): value for key, value in record.items()}


def _is_dataset(record: Record) -> bool:
    """True for what has entities, or expected results in place of relevant documents."""
    rows = record.get("queries")
    first = next((row for row in rows if isinstance(row, dict)), {}) if isinstance(rows, list) else {}
    return not any(name in first for name in LISTS) and (ENTITIES in record or "expected_results" in first)


def _read_test_query(record: Record, place: Place, draft: Draft, relevant: int) -> None:
    listed = record.get("relevant_docs")
    given = {key: _plain(value, place.at(key)) if key != "relevant_docs" else [] for key, value in record.items()}
    # A query without an id is known by its words, so that the same words are the same query in every file.
    query = TEST_QUERY.read(given, place, default_id=given.get("query_text"))
    fields.check_kind(given, place)
    draft.add_query(query, place)
    if isinstance(listed, dict):
        record = record | {"relevant_docs": [{"doc_id": doc_id, "grade": value} for doc_id, value in listed.items()]}
    for index, row in enumerate(field_of(record, "relevant_docs", list, place)):
        here = place.at("relevant_docs").at(index).on(getattr(row, "line", place.line))
        with draft.complaints.about(here):
            judgment = _named(_plain(row, here), _JUDGMENT_NAMES) if isinstance(row, dict) else {"doc_id": row}
            details = fields.facts_of(judgment, JUDGMENT, here)
            source = fields.source_of(judgment, "source", here)
            draft.listed(here, graded="grade" in judgment)
            value = fields.grade_of(judgment, "grade", here) if "grade" in judgment else relevant
            draft.add_judgment(Judgment(query.query_id, fields.id_of(judgment, "doc_id", here), value, source, details), here)


def write_test_set(golden: GoldenSet, path: Path) -> None:
    """Write the set as YAML, or as JSON if the path ends in .json; its documents to ``NAME.corpus.jsonl`` beside it."""
    record = fields.write_header(golden, structure=TEST_STRUCTURE)
    if golden.documents:
        corpus = path.with_name(f"{path.stem}.corpus.jsonl")
        write_documents(golden, corpus)
        record["corpus"] = corpus.name
    record["queries"] = []
    for query, judgments in judged(golden):
        rows = [
            {"doc_id": one.doc_id, "grade": one.grade} | fields.said(source=one.source) | fields.spread(one.metadata, JUDGMENT)
            for one in judgments
        ]
        record["queries"].append(TEST_QUERY.write(query) | {"relevant_docs": rows})
    if path.suffix == ".json":
        write_json(record, path)
    else:
        write_text(yaml_text(record), path)
