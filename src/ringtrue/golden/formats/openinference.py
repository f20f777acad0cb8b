"""OpenInference retriever spans: the question, the documents shown, and the relevance annotations made on them.

Attributes come nested, dotted (``attributes.input.value``) or numbered (``retrieval.documents.0.document.id``),
depending on the exporter; all three are read, the dotted one is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ringtrue.formats import Place, parse_json
from ringtrue.golden.formats.draft import Draft, passage_id, undeclared
from ringtrue.golden.formats.fields import NEGATIVE, Complaints, Record, as_id, grade, json_rows, legal, objects, said
from ringtrue.golden.formats.folders import judged, write_rows
from ringtrue.records import Document, GoldenSet, Judgment, Query

WRAPPERS = ("spans", "rows", "data")
DOCUMENTS = "retrieval.documents"
KIND = "openinference.span.kind"
SHOWN = "retrieved"
OTHER_SPANS = "spans_of_other_kinds"
LABELS = {"relevant": 1, "irrelevant": 0, "unrelated": 0, "not relevant": 0, "not_relevant": 0}
_NUMBERED = re.compile(r"retrieval\.documents\.(\d+)\.(.+)")


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a JSON or JSONL file of spans; spans of other kinds are counted in the set's metadata."""
    draft = Draft(complaints)
    others = 0
    for number, (place, record) in enumerate(json_rows(path, complaints, wrappers=WRAPPERS), 1):
        with complaints.about(place):
            attributes = _attributes(record)
            kind = find(attributes, KIND)
            if kind is not None and str(kind).upper() != "RETRIEVER":
                others += 1
                continue
            _read_span(record, attributes, f"s{number}", place, draft)
    return draft.finish(undeclared(path.stem, metadata={OTHER_SPANS: others} if others else {}))


def find(value: Any, path: str) -> Any:
    """Return what lies at a dotted path, whether the exporter nested it or kept the dots; None when it is not there.

    >>> find({"input": {"value": "late checkout"}}, "input.value"), find({"input.value": "pool"}, "input.value")
    ('late checkout', 'pool')
    """
    if not isinstance(value, Mapping):
        return None
    if path in value:
        return value[path]
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        inner = find(value.get(".".join(parts[:cut])), ".".join(parts[cut:]))
        if inner is not None:
            return inner
    return None


def _attributes(record: Record) -> Record:
    nested = record.get("attributes")
    dotted = {key.removeprefix("attributes."): value for key, value in record.items() if key.startswith("attributes.")}
    return (dict(nested) if isinstance(nested, dict) else {}) | dotted


def _read_span(record: Record, attributes: Record, default_id: str, place: Place, draft: Draft) -> None:
    here = place.at("attributes")
    text = find(attributes, "input.value")
    if not isinstance(text, str):
        raise here.at("input.value").error(f"{text!r:.60} is not a question", "write its text, or keep RETRIEVER spans only")
    span_id = find(record, "context.span_id") or record.get("span_id") or default_id
    query_id = as_id(span_id, place.at("context.span_id"))
    annotations = _objects(record.get("annotations") or [], place.at("annotations"), "write a list of annotations", draft)
    facts = _facts(record, attributes, [item for _, item in annotations if item.get("name") != "relevance"])
    ids: list[str] = []
    judgments: dict[str, Judgment] = {}
    for index, (at, entry) in enumerate(_shown(attributes, here.at(DOCUMENTS), draft)):
        document, own_grade = _document(entry, at)
        if document.text or document.title or document.metadata:
            draft.add_passage(document, at)
        ids.append(document.doc_id)
        mine = [item for _, item in annotations if item.get("name") == "relevance" and item.get("document_position") == index]
        if mine:
            judgments[document.doc_id] = _annotated(query_id, document.doc_id, mine[-1], place.at("annotations"))
        elif own_grade is not None:
            judgments[document.doc_id] = Judgment(query_id, document.doc_id, own_grade)
    # Our writer says null where the documents stand there only to carry their annotations.
    if facts.get(SHOWN, ids) is None:
        del facts[SHOWN]
    else:
        facts[SHOWN] = ids
    negative = bool(facts.pop(NEGATIVE, False))
    draft.add_query(Query(query_id, text, facts, negative), place)
    for judgment in judgments.values():
        draft.add_judgment(judgment, place)


def _shown(attributes: Record, place: Place, draft: Draft) -> list[tuple[Place, Record]]:
    """Return the documents of a span, each with its place."""
    listed = find(attributes, DOCUMENTS)
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
    return list(objects(value, place, draft.complaints))


def _document(entry: Record, place: Place) -> tuple[Document, int | None]:
    inner = entry.get("document")
    flat = {key.removeprefix("document."): value for key, value in entry.items() if key != "document"}
    flat |= inner if isinstance(inner, dict) else {}
    content = flat.get("content")
    if content is not None and not isinstance(content, str):
        raise place.at("document.content").error(f"{content!r:.60} is not text", "write the text of the document")
    metadata = flat.get("metadata")
    if isinstance(metadata, str):
        metadata = parse_json(metadata, place.at("document.metadata"))
    facts = dict(metadata) if isinstance(metadata, dict) else {}
    identity = flat.get("id")
    if identity is None and content is None:
        raise place.error("the document has neither an id nor content", "write document.id")
    doc_id = as_id(identity, place.at("document.id")) if identity is not None else passage_id(content or "")
    relevance = flat.get("relevance", facts.pop("relevance", None))
    own_grade = None if relevance is None else _grade(relevance, place.at("relevance"))
    title = facts.pop("title") if isinstance(facts.get("title"), str) else ""
    return Document(doc_id, content or "", title, facts), own_grade


def _grade(value: Any, place: Place) -> int:
    if isinstance(value, str):
        return LABELS[legal(value.lower(), LABELS, "relevance label", place)]
    return grade(value, place)


def _annotated(query_id: str, doc_id: str, annotation: Record, place: Place) -> Judgment:
    value = annotation.get("score") if annotation.get("score") is not None else annotation.get("label")
    kind = annotation.get("annotator_kind")
    source = annotation.get("source", kind.lower() if isinstance(kind, str) else None)
    metadata = annotation.get("metadata")
    return Judgment(query_id, doc_id, _grade(value, place), source, dict(metadata) if isinstance(metadata, dict) else {})


def _facts(record: Record, attributes: Record, other: list[Record]) -> Record:
    used = ("attributes", "annotations", "context", "span_id")
    facts = {key: value for key, value in record.items() if key not in used and not key.startswith("attributes.")}
    nested = facts.pop("metadata", None)
    facts |= nested if isinstance(nested, dict) else {}
    rest = {key: value for key, value in attributes.items() if key.split(".")[0] not in ("input", "retrieval") and key != KIND}
    return facts | said(attributes=rest, annotations=other)


def write(golden: GoldenSet, path: Path) -> None:
    """Write spans as JSON lines, or as one JSON list where the path ends in .json."""
    documents = {document.doc_id: document for document in golden.documents}
    write_rows((_row(query, judgments, documents) for query, judgments in judged(golden)), path)


def _row(query: Query, judgments: list[Judgment], documents: Mapping[str, Document]) -> Record:
    facts = dict(query.metadata)
    shown = facts.pop(SHOWN, None)
    # Null says that the documents stand there only to carry their annotations.
    facts |= {} if isinstance(shown, list) else {SHOWN: None}
    facts |= said(negative=query.negative)
    listed = [doc_id for doc_id in shown if isinstance(doc_id, str)] if isinstance(shown, list) else []
    ids = list(dict.fromkeys([*listed, *(judgment.doc_id for judgment in judgments)]))
    attributes = {
        KIND: "RETRIEVER",
        "input.value": query.text,
        DOCUMENTS: [_entry(doc_id, documents.get(doc_id)) for doc_id in ids],
    }
    annotations = [
        {"name": "relevance", "document_position": ids.index(judgment.doc_id), "score": judgment.grade}
        | said(source=judgment.source, metadata=dict(judgment.metadata))
        for judgment in judgments
    ]
    row = {"context": {"span_id": query.query_id}, "attributes": attributes}
    return row | said(annotations=annotations, metadata=facts)


def _entry(doc_id: str, document: Document | None) -> Record:
    if document is None:
        return {"document.id": doc_id}
    facts = dict(document.metadata) | said(title=document.title)
    entry = {"document.id": doc_id, "document.content": document.text}
    return entry | ({"document.metadata": facts} if facts else {})
