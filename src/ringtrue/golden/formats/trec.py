"""TREC collections: a topics file (marked up or tab-separated) and a qrels file in one folder, or a lone qrels file.

A lone qrels file knows its queries by id only, so their text stays empty; TREC has no room for documents at all.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ringtrue.errors import InputError, MissingInput
from ringtrue.formats import Place, field_of, lines, read_qrels, read_text
from ringtrue.golden.formats.draft import Draft, undeclared, write_header
from ringtrue.golden.formats.fields import Complaints, Record
from ringtrue.golden.formats.folders import MANIFEST, STRUCTURE, read_front, write_json, write_text
from ringtrue.records import GoldenSet, Judgment, Query

_TOPIC = re.compile(r"<(top|topic)\b([^>]*)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_TAGS = "num|title|query|desc|description|question|narr|narrative"
_FIELD = re.compile(rf"<({_TAGS})>(.*?)(?=</?(?:{_TAGS})>|\Z)", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"number\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE)
_LABEL = re.compile(r"\s*(Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_FACTS = {"desc": "description", "narr": "narrative"}


def read(path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a folder with topics and qrels, or in a lone qrels file."""
    draft = Draft(complaints)
    record: Record = {}
    if path.is_dir():
        record, place, header = read_front(path, draft, corpus=None)
        topics = path / field_of(record, "queries", str, place) if "queries" in record else _only(path, "topics")
        qrels = _only(path, "qrels")
        for here, query in read_topics(topics, complaints):
            with complaints.about(here):
                draft.add_query(query, here)
    else:
        header, qrels = undeclared(path.stem), path
    here = Place(str(qrels))
    with complaints.about(here):
        for query_id, doc_id, grade in read_qrels(qrels):
            if not path.is_dir() and query_id not in draft.queries:
                draft.add_query(Query(query_id, ""), here)
            draft.add_judgment(Judgment(query_id, doc_id, grade), here)
    return draft.finish_undeclared(header, record)


def find(folder: Path, kind: str) -> list[Path]:
    """Return the files of a folder whose name begins with 'topics' or 'qrels'."""
    return sorted(file for file in folder.glob(f"{kind}*") if file.is_file())


def _only(folder: Path, kind: str) -> Path:
    found = find(folder, kind)
    if not found:
        raise MissingInput(f"{folder}: there is no {kind} file; call it {kind}.txt")
    if len(found) > 1:
        names = ", ".join(f"'{file.name}'" for file in found)
        raise InputError(f"{folder}: there are several {kind} files ({names}); keep one of them in the folder")
    return found[0]


def read_topics(path: Path, complaints: Complaints) -> Iterator[tuple[Place, Query]]:
    """Yield (place, query) from a topics file of either form."""
    text = read_text(path)
    found = list(_TOPIC.finditer(text))
    if not found and "<top" in text.lower():
        raise Place(str(path)).error("no topic is closed", "end each <top> with </top>")
    if not found:
        yield from _tab_separated(path, complaints)
    for match in found:
        place = Place(str(path), text.count("\n", 0, match.start()) + 1)
        with complaints.about(place):
            query = _topic(match, place)
            yield place, query


def _topic(match: re.Match[str], place: Place) -> Query:
    fields = {tag.lower(): _clean(value) for tag, value in _FIELD.findall(match[3])}
    number = _NUMBER.search(match[2])
    query_id = fields.pop("num", "") or (number[1] if number else "")
    if not query_id:
        raise place.error("the topic has no number", 'write <num> Number: 301, or number="1" in the tag')
    text = fields.pop("title", "") or fields.pop("query", "")
    if not text:
        raise place.error(f"topic '{query_id}' has no text", "write <title> or <query>")
    return Query(query_id, text, {_FACTS.get(tag, tag): value for tag, value in fields.items()})


def _clean(text: str) -> str:
    return " ".join(html.unescape(_LABEL.sub("", text, count=1)).split())


def _tab_separated(path: Path, complaints: Complaints) -> Iterator[tuple[Place, Query]]:
    for number, line in lines(path):
        place = Place(str(path), number)
        with complaints.about(place):
            if not line.strip():
                continue
            query_id, tab, text = line.partition("\t")
            if not tab or not query_id.strip() or not text.strip():
                raise place.error(f"{line[:60]!r} is not a topic", "write the query's id, a tab and its text")
            yield place, Query(query_id.strip(), text.strip())


def write(golden: GoldenSet, path: Path) -> None:
    """Write a folder with topics and qrels, and what they have no room for in ``golden.json``; or a lone qrels file."""
    rows = (f"{_field(judgment.query_id)} 0 {_field(judgment.doc_id)} {judgment.grade}\n" for judgment in golden.judgments)
    if path.suffix:
        write_text("".join(rows), path)
        return
    told = any(_told(query) for query in golden.queries)
    topics = "".join((_marked_up if told else _on_one_line)(query) for query in golden.queries)
    write_text(topics, path / ("topics.xml" if told else "topics.tsv"))
    write_text("".join(rows), path / "qrels.txt")
    # The documents stay behind, so their hash is all that will tell which corpus was meant.
    elsewhere = replace(golden, documents=())
    write_json(write_header(elsewhere, structure=STRUCTURE, with_source=True) | {"format": "trec"}, path / MANIFEST)


def _told(query: Query) -> Record:
    names = ("description", "narrative", "question")
    return {name: query.metadata[name] for name in names if isinstance(query.metadata.get(name), str)}


def _marked_up(query: Query) -> str:
    told = "".join(f"<{tag}>{html.escape(text, quote=False)}</{tag}>\n" for tag, text in _told(query).items())
    title = html.escape(query.text, quote=False)
    return f"<top>\n<num>{_field(query.query_id)}</num>\n<title>{title}</title>\n{told}</top>\n"


def _on_one_line(query: Query) -> str:
    return f"{_field(query.query_id)}\t{' '.join(query.text.split())}\n"


def _field(text: str) -> str:
    if re.search(r"\s", text) or text.startswith(("#", "<")):
        raise InputError(f"id '{text}' cannot stand in a TREC file (blank or leading '#'); use a JSON format")
    return text
