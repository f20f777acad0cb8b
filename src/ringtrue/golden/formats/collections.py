"""Test collections of research: BEIR folders and TREC topics with qrels, with what they have no room for in ``golden.json``.

**beir**: ``corpus.jsonl``, ``queries.jsonl`` and one qrels file per split.
**trec**: a topics file (marked up or tab-separated) and a qrels file in one folder, or a lone qrels file. A lone qrels file
knows its queries by id only, so their text stays empty; TREC has no room for documents at all.
**dict**: the judgments alone, as one JSON object.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats import Place, field_of, lines, read_json, read_qrels, read_text
from ringtrue.golden.formats import fields
from ringtrue.golden.formats.fields import Complaints, Draft, QueryFields, Record
from ringtrue.golden.formats.folders import (
    CORPUS,
    MANIFEST,
    STRUCTURE,
    judged,
    read_front,
    write_documents,
    write_json,
    write_json_lines,
    write_text,
)
from ringtrue.records import GoldenSet, Judgment, Query

# ── BEIR ────────────────────────────────────────────────────────────────────────────────────────────────────────────

QUERIES, QRELS = "queries.jsonl", "qrels"
DEFAULT_SPLIT, SPLIT = "test", "split"
BEIR_QUERY = QueryFields("_id", "text")
COLUMNS = "query-id\tcorpus-id\tscore\n"
_DICT = 'write {"query": {"document": grade}}'


def read_beir(path: Path, complaints: Complaints, *, split: str | None = None) -> GoldenSet:
    """Return one part of a BEIR folder, 'test' or its only one unless given; raises MissingInput naming the parts there are.

    Queries that only another part judges are left out, as BEIR's own loader does; queries that no part judges stay in.
    """
    draft = Draft(complaints)
    record, place, header = read_front(path, draft)
    parts = {file.stem: file for file in sorted((path / QRELS).glob("*.tsv"))}
    split = _choose(split or header.golden.metadata.get(SPLIT), parts, path)
    _read_judgments(parts[split], draft)
    mine = {query_id for query_id, _ in draft.judgments}
    elsewhere = {query for name, part in parts.items() if name != split for query in read_qrels(part).query_ids} - mine
    for here, row in fields.json_lines(path / field_of(record, "queries", str, place, default=QUERIES), complaints):
        with complaints.about(here):
            query = BEIR_QUERY.read(row, here)
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


def _read_judgments(qrels: Path, draft: Draft, *, text_of: Callable[[str], str] | None = None) -> None:
    """Read a qrels file into the draft, with its queries as well if nothing else says what they are."""
    here = Place(str(qrels))
    with draft.complaints.about(here):
        found = read_qrels(qrels)
        if text_of is not None:
            for query_id in found.query_ids:
                draft.add_query(Query(query_id, text_of(query_id)), here)
        for query_id, doc_id, grade in found:
            draft.add_judgment(Judgment(query_id, doc_id, grade), here)


def write_beir(golden: GoldenSet, path: Path) -> None:
    """Write a BEIR folder; what BEIR has no room for goes into ``golden.json``, which its tools do not read."""
    if golden.documents:
        write_documents(golden, path / CORPUS)
    queries = (
        {"_id": query.query_id, "text": query.text} | fields.said(metadata=dict(query.metadata), negative=query.negative)
        for query in golden.queries
    )
    write_json_lines(queries, path / QUERIES)
    rows = (f"{_tabbed(one.query_id)}\t{_tabbed(one.doc_id)}\t{one.grade}\n" for one in golden.judgments)
    split = golden.metadata.get(SPLIT, DEFAULT_SPLIT)
    name = split if isinstance(split, str) and split.replace("_", "").replace("-", "").isalnum() else DEFAULT_SPLIT
    write_text(COLUMNS + "".join(rows), path / QRELS / f"{name}.tsv")
    write_json(fields.write_header(golden, structure=STRUCTURE, with_source=True) | {"format": "beir"}, path / MANIFEST)


def _tabbed(name: str) -> str:
    if re.search(r"[\t\r\n]", name):
        raise InputError(f"id {name!r} cannot stand in a tab-separated file; use a JSON format")
    return name


# ── TREC ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_TOPIC = re.compile(r"<(top|topic)\b([^>]*)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_TAGS = "num|title|query|desc|description|question|narr|narrative"
_FIELD = re.compile(rf"<({_TAGS})>(.*?)(?=</?(?:{_TAGS})>|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"number\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_LABEL = re.compile(r"\s*(Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_FACTS = {"desc": "description", "narr": "narrative"}


def read_trec(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a folder with topics and qrels, or in a lone qrels file."""
    draft = Draft(complaints)
    if not path.is_dir():
        _read_judgments(path, draft, text_of=lambda _: "")
        return draft.finish_undeclared(fields.undeclared(path.stem))
    record, place, header = read_front(path, draft, corpus=None)
    topics = path / field_of(record, "queries", str, place) if "queries" in record else _only(path, "topics")
    qrels = _only(path, "qrels")
    for here, query in _topics(topics, complaints):
        with complaints.about(here):
            draft.add_query(query, here)
    _read_judgments(qrels, draft)
    return draft.finish_undeclared(header, record)


def _only(folder: Path, kind: str) -> Path:
    found = sorted(file for file in folder.glob(f"{kind}*") if file.is_file())
    if not found:
        raise MissingInput(f"{folder}: there is no {kind} file; call it {kind}.txt")
    if len(found) > 1:
        names = ", ".join(f"'{file.name}'" for file in found)
        raise InputError(f"{folder}: there are several {kind} files ({names}); keep one of them in the folder")
    return found[0]


def _topics(path: Path, complaints: Complaints) -> Iterator[tuple[Place, Query]]:
    """Yield (place, query) from a topics file of either form."""
    text = read_text(path)
    found = list(_TOPIC.finditer(text))
    if not found and "<top" in text.lower():
        raise Place(str(path)).error("no topic is closed", "end each <top> with </top>")
    for match in found:
        place = Place(str(path), text.count("\n", 0, match.start()) + 1)
        with complaints.about(place):
            yield place, _topic(match, place)
    for number, line in () if found else lines(path):
        place = Place(str(path), number)
        with complaints.about(place):
            query_id, _, words = line.partition("\t")
            if line.strip() and not (query_id.strip() and words.strip()):
                raise place.error(f"{line[:60]!r} is not a topic", "write the query's id, a tab and its text")
            if line.strip():
                yield place, Query(query_id.strip(), words.strip())


def _topic(match: re.Match[str], place: Place) -> Query:
    plain = {tag.lower(): html.unescape(_LABEL.sub("", value, count=1)) for tag, value in _FIELD.findall(match[3])}
    fields = {tag: " ".join(text.split()) for tag, text in plain.items()}
    number = _NUMBER.search(match[2])
    query_id = fields.pop("num", "") or (number[1] if number else "")
    if not query_id:
        raise place.error("the topic has no number", 'write <num> Number: 301, or number="1" in the tag')
    text = fields.pop("title", "") or fields.pop("query", "")
    if not text:
        raise place.error(f"topic '{query_id}' has no text", "write <title> or <query>")
    return Query(query_id, text, {_FACTS.get(tag, tag): value for tag, value in fields.items()})


def write_trec(golden: GoldenSet, path: Path) -> None:
    """Write a folder with topics and qrels, and what they have no room for in ``golden.json``; or a lone qrels file."""
    rows = (f"{_word(judgment.query_id)} 0 {_word(judgment.doc_id)} {judgment.grade}\n" for judgment in golden.judgments)
    if path.suffix:
        write_text("".join(rows), path)
        return
    if any(_told(query) for query in golden.queries):
        write_text("".join(map(_marked_up, golden.queries)), path / "topics.xml")
    else:
        topics = (f"{_word(query.query_id)}\t{' '.join(query.text.split())}\n" for query in golden.queries)
        write_text("".join(topics), path / "topics.tsv")
    write_text("".join(rows), path / "qrels.txt")
    # The documents stay behind, so their hash is all that will tell which corpus was meant.
    elsewhere = replace(golden, documents=())
    write_json(fields.write_header(elsewhere, structure=STRUCTURE, with_source=True) | {"format": "trec"}, path / MANIFEST)


def _told(query: Query) -> Record:
    names = ("description", "narrative", "question")
    return {name: query.metadata[name] for name in names if isinstance(query.metadata.get(name), str)}


def _marked_up(query: Query) -> str:
    fields = {"num": _word(query.query_id), "title": query.text, **_told(query)}
    return (
        "<top>\n" + "".join(f"<{tag}>{html.escape(text, quote=False)}</{tag}>\n" for tag, text in fields.items()) + "</top>\n"
    )


def _word(text: str) -> str:
    if re.search(r"\s", text) or text.startswith(("#", "<")):
        raise InputError(f"id '{text}' cannot stand in a TREC file (blank or leading '#'); use a JSON format")
    return text


# ── a dict of dicts ─────────────────────────────────────────────────────────────────────────────────────────────────


def read_dict(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a JSON file ``{query: {document: grade}}``; queries are texts if one has several words, else ids."""
    draft = Draft(complaints)
    texts = any(len(query.split()) > 1 for query in fields.object_in(read_json(path), Place(str(path)), _DICT))
    _read_judgments(path, draft, text_of=lambda query: query if texts else "")
    return draft.finish_table(path.stem)


def write_dict(golden: GoldenSet, path: Path) -> None:
    """Write the judgments as one JSON object ``{query: {document: grade}}``."""
    write_json({query.query_id: {one.doc_id: one.grade for one in rows} for query, rows in judged(golden)}, path)
