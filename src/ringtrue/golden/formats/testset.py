"""The YAML test set: queries with ``relevant_docs``, the documents in a corpus file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ringtrue.formats.text import Place, read_yaml
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
from ringtrue.golden.formats.output import judged, write_text
from ringtrue.records import GoldenSet, Judgment, Query

STRUCTURE = ("corpus", "queries")
QUERY = ("query_id", "query_text", "relevant_docs", NEGATIVE)
QUERY_FACTS = ("query_type", "category")
JUDGMENT = ("doc_id", "grade", "source")


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a YAML file and the corpus file that it names."""
    return read_record(read_yaml(path), Place(str(path)), complaints, name=path.stem, folder=path.parent)


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
    for here, query in objects(list_of(record, "queries", place), place.at("queries"), complaints):
        with complaints.about(here):
            _read_query(query, here, draft)
    return draft.finish(header)


def _is_dataset(record: Record) -> bool:
    """True for what has entities, or expected results in place of relevant documents."""
    rows = record.get("queries")
    first = next((row for row in rows if isinstance(row, dict)), {}) if isinstance(rows, list) else {}
    return "relevant_docs" not in first and (dataset.ENTITIES in record or "expected_results" in first)


def _read_query(record: Record, place: Place, draft: Draft) -> None:
    said = {key: plain(value, place.at(key)) for key, value in record.items() if key != "relevant_docs"}
    facts = facts_of(said | ({"relevant_docs": []} if "relevant_docs" in record else {}), QUERY, place, named=QUERY_FACTS)
    query_id = id_of(said, "query_id", place)
    negative = truth_of(said, NEGATIVE, place, default=False)
    draft.add_query(Query(query_id, text_of(said, "query_text", place), facts, negative), place)
    rows = list_of(record, "relevant_docs", place)
    for here, row in objects(rows, place.at("relevant_docs"), draft.complaints):
        with draft.complaints.about(here):
            judgment = plain(row, here)
            details = facts_of(judgment, JUDGMENT, here)
            source = text_of(judgment, "source", here) if judgment.get("source") is not None else None
            doc_id, value = id_of(judgment, "doc_id", here), grade_of(judgment, "grade", here)
            draft.add_judgment(Judgment(query_id, doc_id, value, source, details), here)


def write(golden: GoldenSet, path: Path) -> None:
    """Write the set as YAML, its documents to ``NAME.corpus.jsonl`` beside it."""
    record = write_header(golden, structure=STRUCTURE)
    if golden.documents:
        corpus = path.with_name(f"{path.stem}.corpus.jsonl")
        write_documents(golden, corpus)
        record["corpus"] = corpus.name
    groups = judged(golden)
    record["queries"] = [_query(query, groups[query.query_id]) for query in golden.queries]
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
