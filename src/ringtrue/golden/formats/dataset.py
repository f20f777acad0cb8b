"""The JSON "golden-dataset": entities and queries in one file. It has room for everything a golden set can say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.formats.text import Place, read_json
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.golden.formats.corpus import corpus_paths, read_documents
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import (
    METADATA,
    NEGATIVE,
    Record,
    as_id,
    check_keys,
    facts_of,
    grade,
    id_of,
    ids_of,
    list_of,
    mapping_of,
    objects,
    spread,
    text_of,
    truth_of,
)
from ringtrue.golden.formats.header import Header, read_header, write_header
from ringtrue.golden.formats.output import judged, write_json
from ringtrue.records import Document, GoldenSet, Judgment, Query

ENTITIES = "entities"
STRUCTURE = (ENTITIES, "queries", "corpus")
ENTITY = ("entity_id", "title", "content", "tags")
QUERY = ("query_id", "query_text", "expected_results", NEGATIVE)
QUERY_FACTS = ("category", "query_type")
EXPECTED = ("relevant_entities", "relevance_labels", "judgment_details", "top_1_chunk")
LISTED, LABELLED, TOP_CHUNK = "listed", "labelled", "top_1_chunk"
UNLABELLED_GRADE = 3


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in one JSON file."""
    return read_record(read_json(path), Place(str(path)), complaints, name=path.stem, folder=path.parent)


def read_record(record: Any, place: Place, complaints: Complaints, *, name: str, folder: Path | None = None) -> GoldenSet:
    """Return the set in a JSON value; ``folder`` is where a ``corpus`` it names may lie, and without one it may name none."""
    if not isinstance(record, dict):
        raise place.error(f"the file holds {record!r:.40}, not an object", "write one object with 'entities' and 'queries'")
    header = read_header(record, place, name=name, structure=STRUCTURE)
    draft = Draft(complaints)
    for here, entity in objects(list_of(record, "entities", place, default=[]), place.at("entities"), complaints):
        with complaints.about(here):
            draft.add_document(_document(entity, here), here)
    for part, corpus in corpus_paths(record, place, folder).items():
        read_documents(corpus, draft, belongs=(header.scope or "corpus", part) if part else None)
    for here, query in objects(list_of(record, "queries", place), place.at("queries"), complaints):
        with complaints.about(here):
            _read_query(query, here, header, draft)
    _mark_contradictions(draft, header)
    return draft.finish(header)


def _document(entity: Record, place: Place) -> Document:
    return Document(
        doc_id=id_of(entity, "entity_id", place),
        text=text_of(entity, "content", place),
        title=text_of(entity, "title", place, default=""),
        metadata=facts_of(entity, ENTITY, place, named=("entity_type",)),
        tags=tuple(ids_of(entity, "tags", place, default=[])),
    )


def _read_query(record: Record, place: Place, header: Header, draft: Draft) -> None:
    facts = facts_of(record, QUERY, place, named=QUERY_FACTS)
    query_id = id_of(record, "query_id", place)
    expected = mapping_of(record, "expected_results", place)
    here = place.at("expected_results")
    check_keys(expected, EXPECTED, here)
    unknown = sorted(expected.keys() - set(EXPECTED))
    if unknown:
        raise here.error(f"the field '{unknown[0]}' is not known", f"use {', '.join(EXPECTED)}")
    if TOP_CHUNK in expected:
        facts[TOP_CHUNK] = expected[TOP_CHUNK]
    text = text_of(record, "query_text", place)
    draft.add_query(Query(query_id, text, facts, truth_of(record, NEGATIVE, place, default=False)), place)
    labels = {
        as_id(doc_id, here): grade(value, here.at("relevance_labels").at(doc_id))
        for doc_id, value in mapping_of(expected, "relevance_labels", here, default={}).items()
    }
    details = mapping_of(expected, "judgment_details", here, default={})
    for doc_id in details:
        if not isinstance(details[doc_id], dict):
            raise (
                here.at("judgment_details").at(doc_id).error(f"{details[doc_id]!r:.80} is not an object", "write its fields")
            )
    listed = ids_of(expected, "relevant_entities", here, default=[])
    unlabelled = _unlabelled(header.scale)
    for index, doc_id in enumerate(listed):
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
    source = text_of(details, "source", here, default=None) if details.get("source") is not None else None
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
    groups = judged(golden)
    record = write_header(golden, structure=STRUCTURE)
    if golden.documents:
        record["entities"] = [_entity(document) for document in golden.documents]
    record["queries"] = [_query(query, groups[query.query_id], golden) for query in golden.queries]
    return record


def _entity(document: Document) -> Record:
    facts = dict(document.metadata)
    record: Record = {"entity_id": document.doc_id}
    if "entity_type" in facts:
        record["entity_type"] = facts.pop("entity_type")
    record |= {"title": document.title, "content": document.text}
    return record | ({METADATA: facts} if facts else {}) | ({"tags": list(document.tags)} if document.tags else {})


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
    details = {j.doc_id: _details(j) for j in judgments if _details(j)}
    if details:
        expected["judgment_details"] = details
    record: Record = {"query_id": query.query_id, "query_text": query.text}
    record |= spread(facts, QUERY, named=QUERY_FACTS)
    return record | ({NEGATIVE: True} if query.negative else {}) | {"expected_results": expected}


def _details(judgment: Judgment) -> Record:
    facts = {key: value for key, value in judgment.metadata.items() if key not in (LISTED, LABELLED)}
    return ({"source": judgment.source} if judgment.source is not None else {}) | spread(facts, ("source",))
