"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl``, one qrels file per split, and a ``golden.json`` where wanted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats import Place, field_of, read_qrels
from ringtrue.golden.formats.draft import Draft, write_header
from ringtrue.golden.formats.fields import Complaints, QueryFields, json_lines, said
from ringtrue.golden.formats.folders import (
    CORPUS,
    MANIFEST,
    STRUCTURE,
    read_front,
    write_documents,
    write_json,
    write_json_lines,
    write_text,
)
from ringtrue.records import GoldenSet, Judgment

QUERIES, QRELS = "queries.jsonl", "qrels"
DEFAULT_SPLIT, SPLIT = "test", "split"
QUERY = QueryFields("_id", "text")
COLUMNS = "query-id\tcorpus-id\tscore\n"


def read(path: Path, complaints: Complaints, *, split: str | None = None) -> GoldenSet:
    """Return one part of a BEIR folder, 'test' or its only one unless given; raises MissingInput naming the parts there are.

    Queries that only another part judges are left out, as BEIR's own loader does; queries that no part judges stay in.
    """
    draft = Draft(complaints)
    record, place, header = read_front(path, draft)
    parts = {file.stem: file for file in sorted((path / QRELS).glob("*.tsv"))}
    split = _choose(split or header.golden.metadata.get(SPLIT), parts, path)
    here = Place(str(parts[split]))
    with complaints.about(here):
        for query_id, doc_id, grade in read_qrels(parts[split]):
            draft.add_judgment(Judgment(query_id, doc_id, grade), here)
    mine = {query_id for query_id, _ in draft.judgments}
    elsewhere = {query for name, part in parts.items() if name != split for query in read_qrels(part).query_ids} - mine
    for here, row in json_lines(path / field_of(record, "queries", str, place, default=QUERIES), complaints):
        with complaints.about(here):
            query = QUERY.read(row, here)
            if query.query_id not in elsewhere:
                draft.add_query(query, here)
    golden = draft.finish_undeclared(header, record)
    return golden if split == DEFAULT_SPLIT else replace(golden, metadata={**golden.metadata, SPLIT: split})


def _choose(wanted: object, parts: dict[str, Path], folder: Path) -> str:
    if not parts:
        raise MissingInput(f"{folder / QRELS}: there is no qrels file; put the judgments into {QRELS}/{DEFAULT_SPLIT}.tsv")
    if wanted is None:
        return DEFAULT_SPLIT if DEFAULT_SPLIT in parts or len(parts) > 1 else next(iter(parts))
    if wanted not in parts:
        raise MissingInput(f"{folder / QRELS}: there is no split '{wanted}'; choose {nearest(str(wanted), parts)}")
    return str(wanted)


def write(golden: GoldenSet, path: Path) -> None:
    """Write a BEIR folder; what BEIR has no room for goes into ``golden.json``, which its tools do not read."""
    if golden.documents:
        write_documents(golden, path / CORPUS)
    queries = (
        {"_id": query.query_id, "text": query.text} | said(metadata=dict(query.metadata), negative=query.negative)
        for query in golden.queries
    )
    write_json_lines(queries, path / QUERIES)
    rows = (_qrels_row(judgment) for judgment in golden.judgments)
    split = golden.metadata.get(SPLIT, DEFAULT_SPLIT)
    name = split if isinstance(split, str) and split.replace("_", "").replace("-", "").isalnum() else DEFAULT_SPLIT
    write_text(COLUMNS + "".join(rows), path / QRELS / f"{name}.tsv")
    write_json(write_header(golden, structure=STRUCTURE, with_source=True) | {"format": "beir"}, path / MANIFEST)


def _qrels_row(judgment: Judgment) -> str:
    for name in (judgment.query_id, judgment.doc_id):
        if any(mark in name for mark in "\t\r\n"):
            raise InputError(f"id {name!r} cannot stand in a tab-separated file; use a JSON format")
    return f"{judgment.query_id}\t{judgment.doc_id}\t{judgment.grade}\n"
