"""Files ⇄ judgments and answers. Paths come in, checked ``Qrels`` and ``Run`` go out, and back.

The format is seen from the file's ending and, where that says nothing, from its first line: TREC (also ``.gz`` and
``-`` for standard input), BEIR folders and TSV, CSV, Parquet, JSON, JSON lines, YAML. Nothing is guessed silently and
nothing is dropped: what cannot be understood raises InputError with file, line or field, value and cure. This room
computes nothing and prints nothing.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats import table, trec
from ringtrue.formats.text import STDIN, Place, decode, read_bytes
from ringtrue.records import Qrels, Run

KINDS = ("trec", "tsv", "csv", "parquet", "json", "jsonl", "yaml")
_ENDINGS = {
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".yaml": "yaml", ".yml": "yaml", ".run": "trec", ".qrels": "trec", ".trec": "trec",
}  # fmt: skip
BULK = 8 << 20
"""Files above this size are read as columns; below it, starting DuckDB costs more than it saves."""


def read_qrels(path: str | Path, *, kind: str | None = None) -> Qrels:
    """Return the judgments in a file or BEIR folder; raises InputError with place, value and cure."""
    place = _inside_beir(Path(path))
    found = kind_of(place, kind)
    return trec.read_qrels(place) if found == "trec" else table.qrels_from(table.rows_of(place, found), place)


def read_run(path: str | Path, *, kind: str | None = None) -> Run:
    """Return the answers in a file; raises InputError with place, value and cure."""
    place = Path(path)
    found = kind_of(place, kind)
    if found != "trec":
        return table.run_from(table.rows_of(place, found), place)
    return _bulk(place) or trec.read_run(place)


def _bulk(path: Path) -> Run | None:
    from ringtrue.formats import bulk

    if str(path) == STDIN or not path.is_file() or path.stat().st_size < (BULK // 8 if path.suffix == ".gz" else BULK):
        return None
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed:
        return bulk.read_run(path)
    spool = tempfile.NamedTemporaryFile(prefix="ringtrue-", suffix=".run")  # noqa: SIM115 (lives as long as the ids in it)
    spool.write(read_bytes(path))
    spool.flush()
    return bulk.read_run(Path(spool.name), keeper=spool)


def _inside_beir(path: Path) -> Path:
    if not path.is_dir():
        return path
    splits = sorted((path / "qrels").glob("*.tsv"))
    named = {split.stem: split for split in splits}
    if "test" in named:
        return named["test"]
    if splits:
        raise InputError(f"{path}: qrels/ has no test.tsv; name one of {nearest('test', [str(split) for split in splits])}")
    raise MissingInput(f"{path}: is a folder without qrels/*.tsv; name a judgments file or a BEIR folder")


def kind_of(path: Path, kind: str | None = None) -> str:
    """Return the format of a file, by its ending or else by its first line."""
    if kind is not None:
        if kind not in KINDS:
            raise InputError(f"there is no format '{kind}'; use {nearest(kind, KINDS)}")
        return kind
    endings = [ending.lower() for ending in path.suffixes if ending.lower() != ".gz"]
    found = _ENDINGS.get(endings[-1]) if endings else None
    if found == "tsv":
        return "tsv" if _has_header(path) else "trec"
    return found or "trec"


def _has_header(path: Path) -> bool:
    """True when the first line names columns; a TREC file may be separated by tabs too."""
    first = decode(read_bytes(path), path).split("\n", 1)[0].strip("\r").split("\t")
    return any(name in (*table.QUERY, *table.DOCUMENT) for name in first)


def write_qrels(qrels: Qrels, path: str | Path, *, kind: str | None = None) -> None:
    """Write judgments in the format of the file's ending."""
    place = Path(path)
    found = kind_of_new(place, kind)
    if found == "trec":
        trec.write_qrels(qrels, place)
    elif found in ("json", "yaml"):
        _write_document(qrels.to_dict(), place, found)
    else:
        names = ("query-id", "corpus-id", "score") if found == "tsv" else ("query_id", "doc_id", "grade")
        table.write_rows(names, iter(qrels), place, found)


def write_run(run: Run, path: str | Path, *, kind: str | None = None) -> None:
    """Write answers in the format of the file's ending."""
    place = Path(path)
    found = kind_of_new(place, kind)
    if found == "trec":
        trec.write_run(run, place)
    elif found in ("json", "yaml"):
        _write_document(run.rankings() if run.ordered else run.to_dict(), place, found)
    elif run.ordered:
        ranked = ((q, doc, rank) for q, docs in run.rankings().items() for rank, doc in enumerate(docs, 1))
        table.write_rows(("query_id", "doc_id", "rank"), ranked, place, found)
    else:
        table.write_rows(("query_id", "doc_id", "score"), iter(run), place, found)


def kind_of_new(path: Path, kind: str | None = None) -> str:
    """Return the format to write a new file in."""
    return kind_of(path, kind) if kind is not None else _ENDINGS.get(path.suffix.lower(), "trec")


def _write_document(value: object, path: Path, kind: str) -> None:
    if kind == "json":
        text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    else:
        import yaml

        text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False)
    path.write_text(text, encoding="utf-8", newline="\n")


__all__ = ["BULK", "KINDS", "Place", "kind_of", "read_qrels", "read_run", "write_qrels", "write_run"]
