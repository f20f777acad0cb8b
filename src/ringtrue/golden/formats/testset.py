"""The test set: queries with their ``relevant_docs`` in YAML or JSON, the documents in a corpus file beside it.

A relevant document is ``{doc_id, grade}``, or an id alone where the whole set has no grades.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.formats.table import DOCUMENT, GRADE
from ringtrue.formats.text import Place, json_records, read_json, read_jsonl, read_text, read_yaml
from ringtrue.golden.formats import dataset
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.golden.formats.corpus import corpus_paths, read_documents, write_documents
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import (
    NEGATIVE,
    Record,
    facts_of,
    grade_of,
    id_of,
    list_of,
    objects,
    plain,
    spread,
    text_of,
    truth_of,
)
from ringtrue.golden.formats.header import read_header, write_header
from ringtrue.golden.formats.output import judged, write_json, write_text
from ringtrue.records import GoldenSet, Judgment, Query

STRUCTURE = ("corpus", "queries")
QUERY = ("query_id", "query_text", "relevant_docs", NEGATIVE)
QUERY_FACTS = ("query_type", "category")
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
    said = {key: plain(value, place.at(key)) for key, value in record.items() if key != "queries"}
    header = read_header(said | {"queries": []}, place, name=name, structure=STRUCTURE, profile="test-set")
    draft = Draft(complaints)
    for part, corpus in corpus_paths(said, place, folder).items():
        read_documents(corpus, draft, belongs=(header.scope or "corpus", part) if part else None)
    relevant = header.relevance_threshold or 1
    for here, query in objects(list_of(record, "queries", place), place.at("queries"), complaints):
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
    said = {key: plain(value, place.at(key)) for key, value in record.items() if key != "relevant_docs"}
    facts = facts_of(said | ({"relevant_docs": []} if "relevant_docs" in record else {}), QUERY, place, named=QUERY_FACTS)
    text = text_of(said, "query_text", place)
    # A query without an id is known by its words, so that the same words are the same query in every file.
    query_id = id_of(said if "query_id" in said else {"query_id": text}, "query_id", place)
    negative = truth_of(said, NEGATIVE, place, default=False)
    draft.add_query(Query(query_id, text, facts, negative), place)
    listed = record.get("relevant_docs")
    if isinstance(listed, dict):
        record = record | {"relevant_docs": [{"doc_id": doc_id, "grade": value} for doc_id, value in listed.items()]}
    rows = list_of(record, "relevant_docs", place)
    for index, row in enumerate(rows):
        here = place.at("relevant_docs").at(index).on(getattr(row, "line", place.line))
        with draft.complaints.about(here):
            judgment = _named(plain(row, here), _JUDGMENT_NAMES) if isinstance(row, dict) else {"doc_id": row}
            details = facts_of(judgment, JUDGMENT, here)
            source = text_of(judgment, "source", here) if judgment.get("source") is not None else None
            draft.listed(here, graded="grade" in judgment)
            value = grade_of(judgment, "grade", here) if "grade" in judgment else relevant
            draft.add_judgment(Judgment(query_id, id_of(judgment, "doc_id", here), value, source, details), here)


def write(golden: GoldenSet, path: Path) -> None:
    """Write the set as YAML, or as JSON where the path ends in .json; its documents to ``NAME.corpus.jsonl`` beside it."""
    record = write_header(golden, structure=STRUCTURE)
    if golden.documents:
        corpus = path.with_name(f"{path.stem}.corpus.jsonl")
        write_documents(golden, corpus)
        record["corpus"] = corpus.name
    groups = judged(golden)
    record["queries"] = [_query(query, groups[query.query_id]) for query in golden.queries]
    if path.suffix == ".json":
        write_json(record, path)
    else:
        write_text(as_yaml(record), path)


def _query(query: Query, judgments: list[Judgment]) -> Record:
    record: Record = {"query_id": query.query_id, "query_text": query.text}
    record |= spread(query.metadata, QUERY, named=QUERY_FACTS)
    record |= {NEGATIVE: True} if query.negative else {}
    return record | {"relevant_docs": [_judgment(judgment) for judgment in judgments]}


def _judgment(judgment: Judgment) -> Record:
    record: Record = {"doc_id": judgment.doc_id, "grade": judgment.grade}
    record |= {"source": judgment.source} if judgment.source is not None else {}
    return record | spread(judgment.metadata, JUDGMENT)


def as_yaml(value: Any) -> str:
    """Return YAML text without anchors, which our own reader refuses."""
    import yaml  # costs 20 ms that no other format needs

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def as_text(dumper: Any, text: str) -> Any:
        # These end a line in YAML and would come back as a blank, unless they are escaped.
        style = '"' if any(mark in text for mark in "\x85\u2028\u2029\ufeff") else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, as_text)
    return yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)
