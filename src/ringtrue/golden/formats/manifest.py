"""A folder that is a golden set: ``golden.json`` says what it is and where its queries and documents lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ringtrue.errors import MissingInput
from ringtrue.formats.text import Place, read_json
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.golden.formats.corpus import corpus_paths
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import Record, text_of
from ringtrue.golden.formats.header import Header, read_header, write_header
from ringtrue.golden.formats.output import write_json, write_json_lines
from ringtrue.records import GoldenSet

MANIFEST = "golden.json"
STRUCTURE = ("format", "queries", "corpus")


@dataclass(frozen=True)
class Layout:
    """How a format lays its queries and documents out in a folder."""

    format: str
    queries: str
    corpus: str
    profile: str
    read_queries: Callable[[Path, Draft, int], None]
    read_corpus: Callable[[Path, Draft, str, Header], None]
    query_rows: Callable[[GoldenSet], Iterable[Record]]
    write_corpus: Callable[[GoldenSet, Path], None]
    with_source: bool = False


def read_manifest(folder: Path) -> tuple[Record, Place]:
    """Return what ``golden.json`` says (nothing, where there is none) and where it says it."""
    path = folder / MANIFEST
    place = Place(str(path))
    if not path.exists():
        return {}, place
    record = read_json(path)
    if not isinstance(record, dict):
        raise place.error(f"the file holds {record!r:.40}, not an object", "write one object with 'id', 'format' and 'queries'")
    return record, place


def read(layout: Layout, path: Path, complaints: Complaints) -> GoldenSet:
    """Return the set in a folder of this layout, or in a lone file of its queries."""
    draft = Draft(complaints)
    if not path.is_dir():
        layout.read_queries(path, draft, 1)
        return draft.finish(Header(path.stem, profile=layout.profile))
    record, place = read_manifest(path)
    header = read_header(record, place, name=path.name, structure=STRUCTURE, profile=layout.profile)
    if "corpus" not in record and (path / layout.corpus).exists():
        record = record | {"corpus": layout.corpus}
    for name, corpus in corpus_paths(record, place, path).items():
        layout.read_corpus(corpus, draft, name, header)
    queries = path / text_of(record, "queries", place, default=layout.queries)
    if not queries.exists():
        raise MissingInput(f"{place.at('queries')}: there is no '{queries.name}' in {path}; put the queries there")
    # A format that only lists relevant documents gives them the grade that counts as relevant in this set.
    layout.read_queries(queries, draft, header.relevance_threshold or 1)
    return draft.finish(header)


def write(layout: Layout, golden: GoldenSet, path: Path) -> None:
    """Write a folder of this layout; a path that ends in .jsonl takes the queries alone."""
    if path.suffix == ".jsonl":
        write_json_lines(layout.query_rows(golden), path)
        return
    record = write_header(golden, structure=STRUCTURE, with_source=layout.with_source)
    record |= {"format": layout.format, "queries": layout.queries}
    if golden.documents:
        layout.write_corpus(golden, path / layout.corpus)
        record["corpus"] = layout.corpus
    write_json_lines(layout.query_rows(golden), path / layout.queries)
    write_json(record, path / MANIFEST)
