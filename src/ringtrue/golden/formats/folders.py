"""Folders that are golden sets, and the files in them: ``golden.json``, queries as JSON lines, documents as BEIR has them.

``golden.json`` says what the set is and where its queries and documents lie. Files are written so that they diff well in
git: UTF-8, LF, keys in a stable order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, MissingInput
from ringtrue.formats import Place, field_of, read_json
from ringtrue.formats import write_text as write_file
from ringtrue.golden.formats import fields
from ringtrue.golden.formats.fields import Complaints, Draft, Header, Record
from ringtrue.records import GoldenSet, Judgment, Query

MANIFEST = "golden.json"
CORPUS = "corpus.jsonl"
STRUCTURE = ("format", "queries", "corpus")
IDS = ("_id", "id", "doc_id")
"""Names for the id of a document in a corpus file; the first that a line has counts."""


# ── what lies in a folder ───────────────────────────────────────────────────────────────────────────────────────────


def read_manifest(folder: Path) -> tuple[Record, Place]:
    """Return what ``golden.json`` says (nothing if there is none) and where it says it."""
    path = folder / MANIFEST
    place = Place(str(path))
    if not path.exists():
        return {}, place
    return fields.object_in(read_json(path), place, "write one object with 'id', 'format' and 'queries'"), place


def read_front(folder: Path, draft: Draft, *, corpus: str | None = CORPUS) -> tuple[Record, Place, Header]:
    """Return what ``golden.json`` says, where, and as a header; documents go to the draft, from ``corpus`` if it names none."""
    record, place = read_manifest(folder)
    header = fields.read_header(record, place, name=folder.name, structure=STRUCTURE)
    read_corpora(record, place, folder, draft, header, default=corpus)
    return record, place, header


def read_corpora(
    record: Record, place: Place, folder: Path | None, draft: Draft, header: Header, *, default: str | None = None
) -> None:
    """Read the corpus files that a ``corpus`` field names: one path, or several by name, which their documents then bear.

    Without a folder there are none, and naming one is an error: a path in what a stranger sent is never opened.
    """
    for name, path in corpus_paths(record, place, folder, default=default).items():
        read_documents(path, draft, belongs=(header.golden.scope or "corpus", name) if name else None)


def corpus_paths(record: Record, place: Place, folder: Path | None, *, default: str | None = None) -> dict[str, Path]:
    """Return the corpus files that a record names, by name; the name of a lone one is empty."""
    value: Any = record.get("corpus")
    if value is None:
        return {"": folder / default} if folder and default and (folder / default).exists() else {}
    if folder is None:
        cure = "put both into one file (ringtrue golden convert SET gold.json) and send that"
        raise place.at("corpus").error(f"the documents are in another file, {value!r:.60}, which was not sent", cure)
    names = {"": value} if isinstance(value, str) else field_of(record, "corpus", dict, place)
    for name, relative in names.items():
        here = place.at("corpus").at(name) if name else place.at("corpus")
        if not isinstance(relative, str) or not relative.strip():
            raise here.error(f"{relative!r:.80} is not a path", "write a file or folder, relative to this file")
        if not (folder / relative).exists():
            raise MissingInput(f"{here}: there is no '{relative}' in {folder}; put the corpus there or correct the path")
    return {name: folder / relative for name, relative in names.items()}


def read_documents(path: Path, draft: Draft, *, belongs: tuple[str, str] | None = None) -> None:
    """Read a corpus file into the draft; ``belongs`` is a metadata field and value that each of its documents has."""
    for place, record in fields.json_lines(path, draft.complaints):
        with draft.complaints.about(place):
            name = next((name for name in IDS if name in record), IDS[0])
            document = fields.document_of(record, place, id=name, text="text")
            if belongs is not None:
                field, value = belongs
                own = document.metadata.get(field, value)
                document = replace(document, metadata={**document.metadata, field: value})
                if own != value:
                    cure = f"write '{value}' or move the document to its own file"
                    raise place.at(field).error(f"{own!r:.80} in the file of '{value}'", cure)
            draft.add_document(document, place)


# ── folders whose queries are JSON lines ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Layout:
    """How a format lays its queries and documents out in a folder."""

    format: str
    profile: str
    read_query: Callable[[Record, Place, Draft, int], None]
    """Reads one line of queries; given the grade of documents that are only listed as relevant."""
    query_rows: Callable[[GoldenSet], Iterable[Record]]
    queries: str = "queries.jsonl"
    corpus: str = CORPUS
    read_corpus: Callable[[Path, Draft], None] | None = None
    """Reads documents that are not kept as a corpus file is."""
    write_corpus: Callable[[GoldenSet, Path], None] | None = None
    with_source: bool = False

    def read(self, path: Path, complaints: Complaints) -> GoldenSet:
        """Return the set in a folder of this layout, or in a lone file of its queries."""
        draft = Draft(complaints)
        if not path.is_dir():
            self._read_queries(path, draft, 1)
            return draft.finish(fields.undeclared(path.stem, profile=self.profile))
        record, place = read_manifest(path)
        header = fields.read_header(record, place, name=path.name, structure=STRUCTURE, profile=self.profile)
        if self.read_corpus is None:
            read_corpora(record, place, path, draft, header, default=self.corpus)
        else:
            for corpus in corpus_paths(record, place, path, default=self.corpus).values():
                self.read_corpus(corpus, draft)
        queries = path / field_of(record, "queries", str, place, default=self.queries)
        if not queries.exists():
            raise MissingInput(f"{place.at('queries')}: there is no '{queries.name}' in {path}; put the queries there")
        # A format that only lists relevant documents gives them the grade that counts as relevant in this set.
        self._read_queries(queries, draft, header.threshold or 1)
        return draft.finish(header)

    def _read_queries(self, path: Path, draft: Draft, listed: int) -> None:
        for place, record in fields.json_lines(path, draft.complaints):
            draft.position += 1
            with draft.complaints.about(place):
                self.read_query(record, place, draft, listed)

    def write(self, golden: GoldenSet, path: Path) -> None:
        """Write a folder of this layout; a path that ends in .jsonl takes the queries alone."""
        if path.suffix == ".jsonl":
            write_json_lines(self.query_rows(golden), path)
            return
        record = fields.write_header(golden, structure=STRUCTURE, with_source=self.with_source)
        record |= {"format": self.format, "queries": self.queries}
        if golden.documents:
            (self.write_corpus or write_documents)(golden, path / self.corpus)
            record["corpus"] = self.corpus
        write_json_lines(self.query_rows(golden), path / self.queries)
        write_json(record, path / MANIFEST)


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def write_documents(golden: GoldenSet, path: Path) -> None:
    """Write the documents of a set as a corpus file."""
    # BEIR's own readers look for a metadata object, so facts stay nested here whatever they are called.
    rows = (
        {"_id": document.doc_id, "title": document.title, "text": document.text}
        | fields.said(metadata=dict(document.metadata), tags=list(document.tags))
        for document in golden.documents
    )
    write_json_lines(rows, path)


def write_text(text: str, path: Path) -> None:
    """Write a text file, in a folder made if there is none; raises InputError for text that UTF-8 cannot hold."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(text, path)


def write_json(value: Any, path: Path) -> None:
    """Write one JSON document, indented."""
    write_text(_as_json(value, path, indent=2) + "\n", path)


def write_json_lines(rows: Iterable[Any], path: Path) -> None:
    """Write one JSON object a line."""
    write_text("".join(_as_json(row, path) + "\n" for row in rows), path)


def write_rows(rows: Iterable[Any], path: Path) -> None:
    """Write rows as JSON lines, or as one JSON list if the path ends in .json."""
    if path.suffix == ".json":
        write_json(list(rows), path)
    else:
        write_json_lines(rows, path)


def _as_json(value: Any, path: Path, *, indent: int | None = None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError) as problem:
        cure = "keep only text, numbers, lists and objects as metadata"
        raise InputError(f"{path}: cannot be written, {problem}; {cure}") from None


def judged(golden: GoldenSet) -> list[tuple[Query, list[Judgment]]]:
    """Return each query of a set with its judgments, in their order."""
    groups: dict[str, list[Judgment]] = {query.query_id: [] for query in golden.queries}
    for judgment in golden.judgments:
        if judgment.query_id in groups:
            groups[judgment.query_id].append(judgment)
    return [(query, groups[query.query_id]) for query in golden.queries]
