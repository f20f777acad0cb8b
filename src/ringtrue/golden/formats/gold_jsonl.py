"""The JSONL gold set: one row a query with the ids of its relevant documents, and who vouches for the row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ringtrue.formats.text import Place
from ringtrue.golden.formats import manifest
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.golden.formats.corpus import read_documents, write_documents
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import (
    NEGATIVE,
    Record,
    alike,
    as_source,
    facts_of,
    id_of,
    ids_of,
    json_lines,
    spread,
    text_of,
    truth_of,
)
from ringtrue.golden.formats.header import Header
from ringtrue.golden.formats.output import judged
from ringtrue.records import GoldenSet, Judgment, Query

IDS = ("relevant_ids", "relevant_case_law_ids")
QUERY = ("id", "query", *IDS, "source", NEGATIVE)
QUERY_FACTS = ("practice_area", "corpus", "note")


def _read_queries(path: Path, draft: Draft, threshold: int) -> None:
    for place, record in json_lines(path, draft.complaints):
        with draft.complaints.about(place):
            facts = facts_of(record, QUERY, place, named=QUERY_FACTS) if _check_ids(record, place) else {}
            query_id = id_of(record, "id", place)
            said = text_of(record, "source", place) if record.get("source") is not None else None
            source = None if said is None else as_source(said, place.at("source"))
            negative = truth_of(record, NEGATIVE, place, default=False)
            name = next((key for key in IDS if key in record), IDS[0])
            relevant = ids_of(record, name, place)
            if source is not None and not relevant:
                facts["source"] = source
            draft.add_query(Query(query_id, text_of(record, "query", place), facts, negative), place)
            for index, doc_id in enumerate(relevant):
                draft.add_judgment(Judgment(query_id, doc_id, threshold, source), place.at(name).at(index))


def _check_ids(record: Record, place: Place) -> bool:
    if all(name in record for name in IDS):
        raise place.error(f"both '{IDS[0]}' and '{IDS[1]}' are given", "keep one of the two")
    if not any(name in record for name in IDS):
        meant = next((key for key in record if alike(key, IDS)), None)
        cure = f"rename '{meant}'" if meant else "add the list of relevant document ids"
        raise place.error(f"the field '{IDS[0]}' (or '{IDS[1]}') is missing", cure)
    return True


def _read_corpus(path: Path, draft: Draft, name: str, header: Header) -> None:
    read_documents(path, draft, belongs=(header.scope or "corpus", name) if name else None)


def _query_rows(golden: GoldenSet) -> Iterator[Record]:
    groups = judged(golden)
    for query in golden.queries:
        facts = dict(query.metadata)
        relevant = [judgment for judgment in groups[query.query_id] if judgment.grade >= golden.relevance_threshold]
        said = {judgment.source for judgment in relevant}
        source = next(iter(said)) if len(said) == 1 else None
        if not said and isinstance(facts.get("source"), str):
            source = facts.pop("source")
        row: Record = {"id": query.query_id, "query": query.text} | spread(facts, QUERY, named=QUERY_FACTS)
        # Rows with a practice area come from the legal tools that call the list by its longer name.
        row[IDS[1] if "practice_area" in facts else IDS[0]] = [judgment.doc_id for judgment in relevant]
        row |= {"source": source} if source is not None else {}
        yield row | ({NEGATIVE: True} if query.negative else {})


def _write_corpus(golden: GoldenSet, path: Path) -> None:
    write_documents(golden, path)


LAYOUT = manifest.Layout(
    "gold-jsonl",
    "gold-set.jsonl",
    "corpus.jsonl",
    "known-item",
    _read_queries,
    _read_corpus,
    _query_rows,
    _write_corpus,
)


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a folder with a manifest, or in a lone gold-set file."""
    return manifest.read(LAYOUT, path, complaints)


def write(golden: GoldenSet, path: Path) -> None:
    """Write a folder, or the rows alone where the path ends in .jsonl."""
    manifest.write(LAYOUT, golden, path)
