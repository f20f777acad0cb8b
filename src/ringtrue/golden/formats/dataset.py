"""The JSON "golden-dataset": entities and queries in one file. It has room for everything a golden set can say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.formats import Place, field_of, read_json
from ringtrue.golden.formats.draft import Draft, Header, read_header, write_header
from ringtrue.golden.formats.fields import (
    Complaints,
    QueryFields,
    Record,
    as_id,
    check_keys,
    document_of,
    facts_of,
    grade,
    ids_of,
    object_in,
    objects,
    said,
    source_of,
    spread,
)
from ringtrue.golden.formats.folders import judged, read_corpora, write_json
from ringtrue.records import Document, GoldenSet, Judgment, Query

ENTITIES = "entities"
STRUCTURE = (ENTITIES, "queries", "corpus")
QUERY = QueryFields("query_id", "query_text", ("expected_results",), named=("category", "query_type"))
EXPECTED = ("relevant_entities", "relevance_labels", "judgment_details", "top_1_chunk")
LISTED, LABELLED, TOP_CHUNK = "listed", "labelled", "top_1_chunk"
UNLABELLED_GRADE = 3


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in one JSON file."""
    return read_record(read_json(path), Place(str(path)), complaints, name=path.stem, folder=path.parent)


def read_record(record: Any, place: Place, complaints: Complaints, *, name: str, folder: Path | None = None) -> GoldenSet:
    """Return the set in a JSON value; ``folder`` is where a ``corpus`` it names may lie, and without one it may name none."""
    record = object_in(record, place, "write one object with 'entities' and 'queries'")
    header = read_header(record, place, name=name, structure=STRUCTURE)
    draft = Draft(complaints)
    entities = field_of(record, ENTITIES, list, place, default=[])
    for here, entity in objects(entities, place.at(ENTITIES), complaints):
        with complaints.about(here):
            draft.add_document(document_of(entity, here, id="entity_id", named=("entity_type",)), here)
    read_corpora(record, place, folder, draft, header)
    for here, query in objects(field_of(record, "queries", list, place), place.at("queries"), complaints):
        with complaints.about(here):
            _read_query(query, here, header, draft)
    _mark_contradictions(draft, header)
    return draft.finish(header)


def _read_query(record: Record, place: Place, header: Header, draft: Draft) -> None:
    query = QUERY.read(record, place)
    query_id = query.query_id
    expected = field_of(record, "expected_results", dict, place)
    here = place.at("expected_results")
    check_keys(expected, EXPECTED, here)
    unknown = sorted(expected.keys() - set(EXPECTED))
    if unknown:
        raise here.error(f"the field '{unknown[0]}' is not known", f"use {', '.join(EXPECTED)}")
    chunk = {TOP_CHUNK: expected[TOP_CHUNK]} if TOP_CHUNK in expected else {}
    draft.add_query(replace(query, metadata={**query.metadata, **chunk}), place)
    labels = {
        as_id(doc_id, here): grade(value, here.at("relevance_labels").at(doc_id))
        for doc_id, value in field_of(expected, "relevance_labels", dict, here, default={}).items()
    }
    details = field_of(expected, "judgment_details", dict, here, default={})
    for doc_id in details:
        field_of(details, doc_id, dict, here.at("judgment_details"))
    unlabelled = _unlabelled(header.golden.scale)
    for index, doc_id in enumerate(ids_of(expected, "relevant_entities", here, default=[])):
        metadata = {LISTED: True} if doc_id in labels else {LISTED: True, LABELLED: False}
        judgment = _judgment(query_id, doc_id, labels.pop(doc_id, unlabelled), details.get(doc_id), metadata, here)
        draft.add_judgment(judgment, here.at("relevant_entities").at(index))
    for doc_id, value in labels.items():
        judgment = _judgment(query_id, doc_id, value, details.get(doc_id), {LISTED: False}, here)
        draft.add_judgment(judgment, here.at("relevance_labels").at(doc_id))
    stray = sorted(doc_id for doc_id in details if (query_id, doc_id) not in draft.judgments)
    if stray:
        raise here.at("judgment_details").error(f"'{stray[0]}' is not judged", "add its label or remove its details")


def _unlabelled(scale: tuple[int, int]) -> int:
    return min(UNLABELLED_GRADE, scale[1])


def _judgment(query_id: str, doc_id: str, value: int, details: Record | None, metadata: Record, place: Place) -> Judgment:
    if details is None:
        return Judgment(query_id, doc_id, value, metadata=metadata)
    here = place.at("judgment_details").at(doc_id)
    source = source_of(details, "source", here)
    return Judgment(query_id, doc_id, value, source, facts_of(details, ("source",), here) | metadata)


def _mark_contradictions(draft: Draft, header: Header) -> None:
    """Keep ``listed`` only where it says something that the grade and the threshold do not (a fault to be reported)."""
    threshold = draft.threshold(header)
    for pair, judgment in draft.judgments.items():
        metadata = dict(judgment.metadata)
        if metadata.get(LISTED) is (judgment.grade >= threshold):
            del metadata[LISTED]
        draft.judgments[pair] = replace(judgment, metadata=metadata)


def write(golden: GoldenSet, path: Path) -> None:
    """Write the set as one JSON file."""
    write_json(record_of(golden), path)


def record_of(golden: GoldenSet) -> Record:
    """Return the set as the object that its JSON file holds."""
    record = write_header(golden, structure=STRUCTURE)
    if golden.documents:
        record["entities"] = [_entity(document) for document in golden.documents]
    record["queries"] = [_query(query, judgments, golden) for query, judgments in judged(golden)]
    return record


def _entity(document: Document) -> Record:
    facts = dict(document.metadata)
    record: Record = {"entity_id": document.doc_id}
    if "entity_type" in facts:
        record["entity_type"] = facts.pop("entity_type")
    return record | {"title": document.title, "content": document.text} | said(metadata=facts, tags=list(document.tags))


def _query(query: Query, judgments: list[Judgment], golden: GoldenSet) -> Record:
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
    expected |= said(judgment_details={j.doc_id: details for j in judgments if (details := _details(j))})
    return QUERY.write(query, facts) | {"expected_results": expected}


def _details(judgment: Judgment) -> Record:
    facts = {key: value for key, value in judgment.metadata.items() if key not in (LISTED, LABELLED)}
    return said(source=judgment.source) | spread(facts, ("source",))
