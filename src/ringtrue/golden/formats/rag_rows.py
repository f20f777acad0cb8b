"""Rows that tools for RAG write: questions with the passages that were retrieved, and what was said about them; two formats.

**ragas**: a question with the passages that should be, and those that were, retrieved for it.
**openinference**: retriever spans with the question, the documents shown, and the relevance annotations made on them.
Attributes come nested, dotted (``attributes.input.value``) or numbered (``retrieval.documents.0.document.id``), depending on
the exporter; all three are read, the dotted one is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.formats import Place, field_of, parse_json
from ringtrue.golden.formats import fields
from ringtrue.golden.formats.fields import Complaints, Draft, QueryFields, Record
from ringtrue.golden.formats.folders import judged, write_rows
from ringtrue.records import Document, GoldenSet, Judgment, Query

SHOWN = "retrieved"

# ── Ragas ───────────────────────────────────────────────────────────────────────────────────────────────────────────

QUESTION = ("user_input", "question")
# Before Ragas 0.2 the retrieved passages were called 'contexts'.
RETRIEVED = ("retrieved_contexts", "contexts")
REFERENCE = ("reference_contexts",)
RETRIEVED_IDS, REFERENCE_IDS = "retrieved_context_ids", "reference_context_ids"
RAGAS_QUERY = QueryFields(
    "query_id",
    "user_input",
    (*QUESTION, *RETRIEVED, *REFERENCE, RETRIEVED_IDS, REFERENCE_IDS),
    # These are proper names in Ragas too, and near enough to the others to look like slips of the pen.
    named=("reference", "response", "answer", "ground_truth", "rubrics"),
)
RAGAS_WRAPPERS = ("samples", "rows", "data")


def read_ragas(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a JSON or JSONL file of rows."""
    draft = Draft(complaints)
    for number, (place, record) in enumerate(fields.json_rows(path, complaints, wrappers=RAGAS_WRAPPERS), 1):
        with complaints.about(place):
            _read_row(record, f"r{number}", place, draft)
    return draft.finish(fields.undeclared(path.stem))


def _read_row(record: Record, default_id: str, place: Place, draft: Draft) -> None:
    name = str(fields.one_of(record, QUESTION, place, cure="add it"))
    if not isinstance(record[name], str):
        raise place.at(name).error(f"{record[name]!r:.60} is not one question", "write one row per user turn, as text")
    query = replace(RAGAS_QUERY, text=name).read(record, place, default_id=default_id)
    relevant = _passages(record, REFERENCE, REFERENCE_IDS, place, draft)
    shown = _passages(record, RETRIEVED, RETRIEVED_IDS, place, draft)
    draft.add_query(query if shown is None else replace(query, metadata={**query.metadata, SHOWN: shown}), place)
    for doc_id in dict.fromkeys(relevant or []):
        draft.add_judgment(Judgment(query.query_id, doc_id, 1), place)


def _passages(record: Record, names: tuple[str, ...], ids_name: str, place: Place, draft: Draft) -> list[str] | None:
    """Return the ids of the passages of one kind; None if the row says nothing about them."""
    name = fields.one_of(record, names, place)
    ids = fields.ids_of(record, ids_name, place) if record.get(ids_name) is not None else None
    if name is None or record[name] is None:
        return ids
    texts = field_of(record, name, list, place)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise place.at(name).at(index).error(f"{text!r:.60} is not a passage", "write its text")
    if ids is not None and len(ids) != len(texts):
        raise place.at(ids_name).error(f"{len(ids)} ids for {len(texts)} passages", "give one id per passage")
    ids = ids if ids is not None else [fields.passage_id(text) for text in texts]
    for doc_id, text in zip(ids, texts, strict=True):
        draft.add_passage(Document(doc_id, text), place)
    return ids


def write_ragas(golden: GoldenSet, path: Path) -> None:
    """Write rows as JSON lines, or as one JSON list if the path ends in .json."""
    texts = {document.doc_id: document.text for document in golden.documents}

    def row(query: Query, judgments: list[Judgment]) -> Record:
        facts = dict(query.metadata)
        shown = facts.get(SHOWN)
        lists = [(REFERENCE[0], REFERENCE_IDS, [j.doc_id for j in judgments if j.grade >= golden.relevance_threshold])]
        if isinstance(shown, list) and all(isinstance(doc_id, str) and doc_id.strip() for doc_id in shown):
            lists.insert(0, (RETRIEVED[0], RETRIEVED_IDS, facts.pop(SHOWN)))
        found: Record = {"query_id": query.query_id, "user_input": query.text}
        for name, ids_name, ids in lists:
            found |= {name: [texts[doc_id] for doc_id in ids]} if all(doc_id in texts for doc_id in ids) else {}
            found[ids_name] = ids
        return found | fields.spread(facts, RAGAS_QUERY.structure) | fields.said(negative=query.negative)

    write_rows((row(query, judgments) for query, judgments in judged(golden)), path)


# ── OpenInference ───────────────────────────────────────────────────────────────────────────────────────────────────

SPAN_WRAPPERS = ("spans", "rows", "data")
DOCUMENTS = "retrieval.documents"
KIND = "openinference.span.kind"
OTHER_SPANS = "spans_of_other_kinds"
LABELS = {"relevant": 1, "irrelevant": 0, "unrelated": 0, "not relevant": 0, "not_relevant": 0}
_NUMBERED = re.compile(r"retrieval\.documents\.(\d+)\.(.+)")
_USED = ("attributes", "annotations", "context", "span_id", fields.METADATA)


def read_openinference(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a JSON or JSONL file of spans; spans of other kinds are counted in the set's metadata."""
    draft = Draft(complaints)
    others = 0
    for number, (place, record) in enumerate(fields.json_rows(path, complaints, wrappers=SPAN_WRAPPERS), 1):
        with complaints.about(place):
            dotted = {key.removeprefix("attributes."): value for key, value in record.items() if key.startswith("attributes.")}
            attributes = _object(record.get("attributes")) | dotted
            if str(_find(attributes, KIND) or "RETRIEVER").upper() == "RETRIEVER":
                _read_span(record, attributes, f"s{number}", place, draft)
            else:
                others += 1
    return draft.finish(fields.undeclared(path.stem, metadata={OTHER_SPANS: others} if others else {}))


def _object(value: Any) -> Record:
    return dict(value) if isinstance(value, dict) else {}


def _find(value: Any, path: str) -> Any:
    """Return what lies at a dotted path, whether the exporter nested it or kept the dots; None when it is not there.

    >>> _find({"input": {"value": "late checkout"}}, "input.value"), _find({"input.value": "pool"}, "input.value")
    ('late checkout', 'pool')
    """
    if not isinstance(value, Mapping):
        return None
    if path in value:
        return value[path]
    parts = path.split(".")
    inner = (_find(value.get(".".join(parts[:cut])), ".".join(parts[cut:])) for cut in range(len(parts) - 1, 0, -1))
    return next((found for found in inner if found is not None), None)


def _read_span(record: Record, attributes: Record, default_id: str, place: Place, draft: Draft) -> None:
    here, of_annotations = place.at("attributes"), place.at("annotations")
    text = _find(attributes, "input.value")
    if not isinstance(text, str):
        raise here.at("input.value").error(f"{text!r:.60} is not a question", "write its text, or keep RETRIEVER spans only")
    span_id = _find(record, "context.span_id") or record.get("span_id") or default_id
    query_id = fields.as_id(span_id, place.at("context.span_id"))
    annotations = _objects(record.get("annotations") or [], of_annotations, "write a list of annotations", draft)
    others = [item for _, item in annotations if item.get("name") != "relevance"]
    ours = {str(item.get("document_position")): item for _, item in annotations if item.get("name") == "relevance"}
    facts = {key: value for key, value in record.items() if key not in _USED and not key.startswith("attributes.")}
    rest = {key: value for key, value in attributes.items() if key.split(".")[0] not in ("input", "retrieval") and key != KIND}
    facts |= _object(record.get(fields.METADATA)) | fields.said(attributes=rest, annotations=others)
    ids: list[str] = []
    judgments: dict[str, Judgment] = {}
    for index, (at, entry) in enumerate(_shown(attributes, here.at(DOCUMENTS), draft)):
        document, own_grade = _document(entry, at)
        if document.text or document.title or document.metadata:
            draft.add_passage(document, at)
        ids.append(document.doc_id)
        if str(index) in ours:
            judgments[document.doc_id] = _annotated(query_id, document.doc_id, ours[str(index)], of_annotations)
        elif own_grade is not None:
            judgments[document.doc_id] = Judgment(query_id, document.doc_id, own_grade)
    # Our writer says null if the documents stand there only to carry their annotations.
    if facts.get(SHOWN, ids) is None:
        del facts[SHOWN]
    else:
        facts[SHOWN] = ids
    negative = bool(facts.pop(fields.NEGATIVE, False))
    draft.add_query(Query(query_id, text, facts, negative), place)
    for judgment in judgments.values():
        draft.add_judgment(judgment, place)


def _shown(attributes: Record, place: Place, draft: Draft) -> list[tuple[Place, Record]]:
    """Return the documents of a span, each with its place."""
    listed = _find(attributes, DOCUMENTS)
    if isinstance(listed, str):
        listed = parse_json(listed, place)
    if listed is None:
        numbered: dict[int, Record] = {}
        for key, value in attributes.items():
            match = _NUMBERED.fullmatch(key)
            if match:
                numbered.setdefault(int(match[1]), {})[match[2]] = value
        listed = [numbered[index] for index in sorted(numbered)]
    return _objects(listed, place, "write the documents that were retrieved", draft)


def _objects(value: Any, place: Place, cure: str, draft: Draft) -> list[tuple[Place, Record]]:
    if not isinstance(value, list):
        raise place.error(f"{value!r:.60} is not a list", cure)
    return list(fields.objects(value, place, draft.complaints))


def _document(entry: Record, place: Place) -> tuple[Document, int | None]:
    flat = {key.removeprefix("document."): value for key, value in entry.items() if key != "document"}
    flat |= _object(entry.get("document"))
    content = flat.get("content")
    if content is not None and not isinstance(content, str):
        raise place.at("document.content").error(f"{content!r:.60} is not text", "write the text of the document")
    metadata = flat.get("metadata")
    facts = _object(parse_json(metadata, place.at("document.metadata")) if isinstance(metadata, str) else metadata)
    identity = flat.get("id")
    if identity is None and content is None:
        raise place.error("the document has neither an id nor content", "write document.id")
    doc_id = fields.as_id(identity, place.at("document.id")) if identity is not None else fields.passage_id(content or "")
    relevance = flat.get("relevance", facts.pop("relevance", None))
    own_grade = None if relevance is None else _grade(relevance, place.at("relevance"))
    title = facts.pop("title") if isinstance(facts.get("title"), str) else ""
    return Document(doc_id, content or "", title, facts), own_grade


def _grade(value: Any, place: Place) -> int:
    if isinstance(value, str):
        return LABELS[fields.legal(value.lower(), LABELS, "relevance label", place)]
    return fields.grade(value, place)


def _annotated(query_id: str, doc_id: str, annotation: Record, place: Place) -> Judgment:
    value = annotation.get("score") if annotation.get("score") is not None else annotation.get("label")
    kind = annotation.get("annotator_kind")
    source = annotation.get("source", kind.lower() if isinstance(kind, str) else None)
    return Judgment(query_id, doc_id, _grade(value, place), source, _object(annotation.get("metadata")))


def write_openinference(golden: GoldenSet, path: Path) -> None:
    """Write spans as JSON lines, or as one JSON list if the path ends in .json."""
    documents = {document.doc_id: document for document in golden.documents}
    write_rows((_span(query, judgments, documents) for query, judgments in judged(golden)), path)


def _span(query: Query, judgments: list[Judgment], documents: Mapping[str, Document]) -> Record:
    facts = dict(query.metadata)
    shown = facts.pop(SHOWN, None)
    # Null says that the documents stand there only to carry their annotations.
    facts |= {} if isinstance(shown, list) else {SHOWN: None}
    facts |= fields.said(negative=query.negative)
    listed = [doc_id for doc_id in shown if isinstance(doc_id, str)] if isinstance(shown, list) else []
    ids = list(dict.fromkeys([*listed, *(judgment.doc_id for judgment in judgments)]))
    entries = [_entry(doc_id, documents.get(doc_id)) for doc_id in ids]
    annotations = [
        {"name": "relevance", "document_position": ids.index(judgment.doc_id), "score": judgment.grade}
        | fields.said(source=judgment.source, metadata=dict(judgment.metadata))
        for judgment in judgments
    ]
    attributes = {KIND: "RETRIEVER", "input.value": query.text, DOCUMENTS: entries}
    row = {"context": {"span_id": query.query_id}, "attributes": attributes}
    return row | fields.said(annotations=annotations, metadata=facts)


def _entry(doc_id: str, document: Document | None) -> Record:
    if document is None:
        return {"document.id": doc_id}
    facts = dict(document.metadata) | fields.said(title=document.title)
    return {"document.id": doc_id, "document.content": document.text} | ({"document.metadata": facts} if facts else {})
