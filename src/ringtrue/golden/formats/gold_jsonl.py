"""The JSONL gold set: one row a query with the ids of its relevant documents, and who vouches for the row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ringtrue.formats import Place
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import QueryFields, Record, alike, ids_of, said, source_of
from ringtrue.golden.formats.folders import Layout, judged
from ringtrue.records import GoldenSet, Judgment

IDS = ("relevant_ids", "relevant_case_law_ids")
QUERY = QueryFields("id", "query", (*IDS, "source"), named=("practice_area", "corpus", "note"))


def _read_query(record: Record, place: Place, draft: Draft, listed: int) -> None:
    name = _name_of_list(record, place)
    query = QUERY.read(record, place)
    source = source_of(record, "source", place)
    relevant = ids_of(record, name, place)
    if source is not None and not relevant:
        query = replace(query, metadata={**query.metadata, "source": source})
    draft.add_query(query, place)
    for index, doc_id in enumerate(relevant):
        draft.add_judgment(Judgment(query.query_id, doc_id, listed, source), place.at(name).at(index))


def _name_of_list(record: Record, place: Place) -> str:
    given = [name for name in IDS if name in record]
    if len(given) == len(IDS):
        raise place.error(f"both '{IDS[0]}' and '{IDS[1]}' are given", "keep one of the two")
    if not given:
        meant = next((key for key in record if alike(key, IDS)), None)
        cure = f"rename '{meant}'" if meant else "add the list of relevant document ids"
        raise place.error(f"the field '{IDS[0]}' (or '{IDS[1]}') is missing", cure)
    return given[0]


def _query_rows(golden: GoldenSet) -> Iterator[Record]:
    for query, judgments in judged(golden):
        facts = dict(query.metadata)
        relevant = [judgment for judgment in judgments if judgment.grade >= golden.relevance_threshold]
        sources = {judgment.source for judgment in relevant}
        source = next(iter(sources)) if len(sources) == 1 else None
        if not sources and isinstance(facts.get("source"), str):
            source = facts.pop("source")
        row = QUERY.write(query, facts)
        # Rows with a practice area come from the legal tools that call the list by its longer name.
        row[IDS[1] if "practice_area" in facts else IDS[0]] = [judgment.doc_id for judgment in relevant]
        yield row | said(source=source)


LAYOUT = Layout("gold-jsonl", "known-item", _read_query, _query_rows, queries="gold-set.jsonl")
read, write = LAYOUT.read, LAYOUT.write
