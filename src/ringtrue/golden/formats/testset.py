"""The test set: queries with their ``relevant_docs`` in YAML or JSON, the documents in a corpus file beside it.

A relevant document is ``{doc_id, grade}``, or an id alone where the whole set has no grades.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
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
from ringtrue.golden.formats import dataset
from ringtrue.golden.formats.agent_memory import check_spelling
from ringtrue.golden.formats.draft import Draft, read_header, write_header
from ringtrue.golden.formats.fields import (
    Complaints,
    QueryFields,
    Record,
    facts_of,
    grade_of,
    id_of,
    objects,
    plain,
    said,
    source_of,
    spread,
)
from ringtrue.golden.formats.folders import judged, read_corpora, write_documents, write_json, write_text
from ringtrue.records import GoldenSet, Judgment

STRUCTURE = ("corpus", "queries")
QUERY = QueryFields("query_id", "query_text", ("relevant_docs",), named=("query_type", "category", "intent"))
JUDGMENT = ("doc_id", "grade", "source")
LISTS = ("relevant_docs", "relevant")
_QUERY_NAMES = {"query_id": ("id",), "query_text": ("query",), LISTS[0]: LISTS[1:]}
_JUDGMENT_NAMES = {"doc_id": (*DOCUMENT, "id"), "grade": tuple(name for name in GRADE if name != "score")}


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a YAML or JSON file and the corpus file that it names."""
    value = read_yaml(path) if path.suffix in (".yaml", ".yml") else _read_json(path)
    return read_record(value, Place(str(path)), complaints, name=path.stem, folder=path.parent)


def _read_json(path: Path) -> Any:
    """Return what a JSON file holds; one query on each line are a list of queries."""
    first: Record = {}
    if read_text(path).lstrip().startswith("{"):
        with suppress(InputError):  # if it is broken, the whole file says more
            first = next(json_records(path))[1]()
    return [record for _, record in read_jsonl(path)] if first.keys() & set(LISTS) else read_json(path)


def read_record(document: Any, place: Place, complaints: Complaints, *, name: str, folder: Path | None = None) -> GoldenSet:
    """Return the set in a value read from YAML or JSON; without a ``folder`` it may name no corpus.

    A golden data set that somebody wrote in YAML is read as the same in JSON is.
    """
    if isinstance(document, dict) and _is_dataset(document):
        return dataset.read_record(plain(document, place), place, complaints, name=name, folder=folder)
    # A bare list of queries is what people write first; it is a test set that says nothing about itself.
    record = {"queries": document} if isinstance(document, list) else document
    if not isinstance(record, dict):
        raise place.error(f"the file holds {record!r:.40}, not a test set", "write 'queries:' with a list under it")
    given = {key: plain(value, place.at(key)) for key, value in record.items() if key != "queries"}
    header = read_header(given | {"queries": []}, place, name=name, structure=STRUCTURE, profile="test-set")
    draft = Draft(complaints)
    read_corpora(given, place, folder, draft, header)
    relevant = header.threshold or 1
    for here, query in objects(field_of(record, "queries", list, place), place.at("queries"), complaints):
        with complaints.about(here):
            _read_query(_named(query, _QUERY_NAMES), here, draft, relevant)
    draft.note_ungraded(relevant)
    return draft.finish(header)


def _named(record: Record, names: Mapping[str, tuple[str, ...]]) -> Record:
    """Return a record under this format's names; if it has one of them already, other names for it are facts like any."""
    own = {
        other: name
        for name, others in names.items()
        if name not in record
        for other in [next((other for other in others if other in record), name)]
    }
    return {own.get(key, key): value for key, value in record.items()}


def _is_dataset(record: Record) -> bool:
    """True for what has entities, or expected results in place of relevant documents."""
    rows = record.get("queries")
    first = next((row for row in rows if isinstance(row, dict)), {}) if isinstance(rows, list) else {}
    return not any(name in first for name in LISTS) and (dataset.ENTITIES in record or "expected_results" in first)


def _read_query(record: Record, place: Place, draft: Draft, relevant: int) -> None:
    listed = record.get("relevant_docs")
    given = {key: plain(value, place.at(key)) if key != "relevant_docs" else [] for key, value in record.items()}
    # A query without an id is known by its words, so that the same words are the same query in every file.
    query = QUERY.read(given, place, default_id=given.get("query_text"))
    check_spelling(given, place)
    draft.add_query(query, place)
    if isinstance(listed, dict):
        record = record | {"relevant_docs": [{"doc_id": doc_id, "grade": value} for doc_id, value in listed.items()]}
    for index, row in enumerate(field_of(record, "relevant_docs", list, place)):
        here = place.at("relevant_docs").at(index).on(getattr(row, "line", place.line))
        with draft.complaints.about(here):
            judgment = _named(plain(row, here), _JUDGMENT_NAMES) if isinstance(row, dict) else {"doc_id": row}
            details = facts_of(judgment, JUDGMENT, here)
            source = source_of(judgment, "source", here)
            draft.listed(here, graded="grade" in judgment)
            value = grade_of(judgment, "grade", here) if "grade" in judgment else relevant
            draft.add_judgment(Judgment(query.query_id, id_of(judgment, "doc_id", here), value, source, details), here)


def write(golden: GoldenSet, path: Path) -> None:
    """Write the set as YAML, or as JSON where the path ends in .json; its documents to ``NAME.corpus.jsonl`` beside it."""
    record = write_header(golden, structure=STRUCTURE)
    if golden.documents:
        corpus = path.with_name(f"{path.stem}.corpus.jsonl")
        write_documents(golden, corpus)
        record["corpus"] = corpus.name
    record["queries"] = [
        QUERY.write(query) | {"relevant_docs": [_judgment(judgment) for judgment in judgments]}
        for query, judgments in judged(golden)
    ]
    if path.suffix == ".json":
        write_json(record, path)
    else:
        write_text(yaml_text(record), path)


def _judgment(judgment: Judgment) -> Record:
    record = {"doc_id": judgment.doc_id, "grade": judgment.grade} | said(source=judgment.source)
    return record | spread(judgment.metadata, JUDGMENT)
