"""Files ⇄ judgments and answers. Paths come in, checked ``Qrels`` and ``Run`` go out, and back.

The format is seen from the file's ending (TREC where that says nothing) and, for ``.tsv``, from its first line: TREC (also
``.gz`` and ``-`` for standard input), BEIR folders and TSV, CSV, Parquet, JSON, JSON lines, YAML. Nothing is guessed
silently and nothing is dropped: what cannot be understood raises InputError with file, line or field, value and cure, and
so does a value that the format to be written cannot hold. This room computes nothing and prints nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats import table, trec
from ringtrue.formats.table import (
    DOCUMENT as DOCUMENT,
    GRADE as GRADE,
    QUERY as QUERY,
    RANK as RANK,
    SCORE as SCORE,
    ListedQuery as ListedQuery,
    csv_rows as csv_rows,
    is_query_list as is_query_list,
    open_duckdb as open_duckdb,
    parquet_rows as parquet_rows,
    queries_in as queries_in,
    read_query_list as read_query_list,
    rows_of as rows_of,
    write_rows as write_rows,
)
from ringtrue.formats.text import (
    STDIN,
    Located as Located,
    Place as Place,
    decode as decode,
    encoded,
    field_of as field_of,
    json_records as json_records,
    lines as lines,
    one_line as one_line,
    parse_json as parse_json,
    read_bytes as read_bytes,
    read_json as read_json,
    read_jsonl as read_jsonl,
    read_text as read_text,
    parse_yaml as parse_yaml,
    read_yaml as read_yaml,
    required as required,
    usable_id as usable_id,
    write_text as write_text,
    write_whole as write_whole,
    yaml_text as yaml_text,
)
from ringtrue.formats.trec import check_field as check_field, reordered as reordered
from ringtrue.records import Qrels, Run

KINDS = ("trec", "tsv", "csv", "parquet", "json", "jsonl", "yaml")
_ENDINGS = {
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".yaml": "yaml", ".yml": "yaml", ".run": "trec", ".qrels": "trec", ".trec": "trec",
}  # fmt: skip
BULK = 1 << 20
"""Run files above this size are read as columns; below it there is nothing to gain."""


def read_qrels(path: str | Path, *, kind: str | None = None) -> Qrels:
    """Return the judgments in a file or BEIR folder; raises InputError with place, value and cure."""
    place = _inside_beir(Path(path))
    found = kind_of(place, kind)
    return trec.read_qrels(place) if found == "trec" else table.qrels_from(table.rows_of(place, found), place)


def read_run(path: str | Path, *, kind: str | None = None) -> Run:
    """Return the answers in a file or run folder; raises InputError with place, value and cure."""
    place = Path(path)
    if place.is_dir():
        return _run_folder(place)
    found = kind_of(place, kind)
    if found != "trec":
        return table.run_from(table.rows_of(place, found), place)
    return _columns(place) or trec.read_run(place)


def _run_folder(folder: Path) -> Run:
    """Return the answers in a folder made by ``ringtrue eval``; a query that found nothing is known from its scores."""
    hits, lines = folder / "run.parquet", folder / "scores.jsonl"
    if not lines.is_file():
        raise MissingInput(
            one_line(f"{folder}: is a folder without a run; name the file inside it, or a folder made by ringtrue eval")
        )
    answered = [(row["query_id"], row.get("hits")) for _, row in read_jsonl(lines) if "error" not in row]
    if not any(count for _, count in answered):
        return Run.from_rankings({query_id: [] for query_id, _ in answered}, name=folder.name)
    return replace(table.run_from(table.rows_of(hits, "parquet"), hits), name=folder.name).with_empty_answers(
        query_id for query_id, _ in answered
    )


def _columns(path: Path) -> Run | None:
    """Return a large run read as columns; None if it is small, unusual or unreadable, which the strict reader explains."""
    from ringtrue.formats import bulk

    if str(path) == STDIN or not path.is_file() or path.stat().st_size < (BULK // 8 if path.suffix == ".gz" else BULK):
        return None
    with contextlib.suppress(OSError):
        return bulk.read_run(path)
    return None


def _inside_beir(path: Path) -> Path:
    if not path.is_dir():
        return path
    splits = {file.stem: file for file in sorted((path / "qrels").glob("*.tsv"))}
    if "test" in splits:
        return splits["test"]
    if splits:
        some = nearest("test", map(str, splits.values()))
        raise InputError(one_line(f"{path}: qrels/ has no test.tsv; name one of {some}"))
    raise MissingInput(one_line(f"{path}: is a folder without qrels/*.tsv; name a judgments file or a BEIR folder"))


def kind_of(path: Path, kind: str | None = None) -> str:
    """Return the format of a file, by its ending or else by its first line."""
    if kind is not None:
        if kind not in KINDS:
            raise InputError(f"there is no format '{kind}'; use {nearest(kind, KINDS)}")
        return kind
    found = _by_ending(path)
    return "trec" if found == "tsv" and not _has_header(path) else found


def _by_ending(path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes if ending.lower() != ".gz"]
    return _ENDINGS.get(endings[-1], "trec") if endings else "trec"


def _has_header(path: Path) -> bool:
    """True when the first line names columns; a TREC file may be separated by tabs too."""
    start = b""
    with contextlib.suppress(OSError), path.open("rb") as file:
        start = file.read(1 << 16)
    if not start or start.startswith(b"\x1f\x8b"):
        start = read_bytes(path)
    first = start.split(b"\n", 1)[0].decode("utf-8-sig", "replace").strip("\r").split("\t")
    return any(name in (*table.QUERY, *table.DOCUMENT) for name in first)


def write_qrels(qrels: Qrels, path: str | Path, *, kind: str | None = None) -> None:
    """Write judgments in the format of the file's ending; raises InputError for what that format cannot hold."""
    place = Path(path)
    found = kind_of_new(place, kind)
    judged = set(qrels.query.tolist())
    empty = [query_id for index, query_id in enumerate(qrels.query_ids) if index not in judged]
    if found in ("json", "yaml"):
        _write_document(qrels.to_dict(), place, found)
        return
    _refuse_empty(empty, place, found)
    if found == "trec":
        trec.write_qrels(qrels, place)
    else:
        names = ("query-id", "corpus-id", "score") if found == "tsv" else ("query_id", "doc_id", "grade")
        table.write_rows(names, [*qrels, *((query_id,) for query_id in empty)], place, found)


def read_named_runs(paths: Iterable[str]) -> list[Run]:
    """Return runs named by their files, so that two systems with one tag stay apart; raises what ``read_run`` raises."""
    return [replace(read_run(path), name=Path(path).name) for path in paths]


def write_run(run: Run, path: str | Path, *, kind: str | None = None) -> None:
    """Write answers in the format of the file's ending; raises InputError for what that format cannot hold.

    Of a run whose order is the truth the order is written, not the scores.
    """
    place = Path(path)
    found = kind_of_new(place, kind)
    if found in ("json", "yaml"):
        _write_document(_lists(run) if run.ordered else _scores(run, place), place, found)
        return
    empty = sorted(run.answered)
    _refuse_empty(empty, place, found)
    if found == "trec":
        trec.write_run(run, place)
        return
    rows: Iterable[tuple[str, str, float]] = run
    if run.ordered:
        rows = ((query_id, doc_id, rank) for query_id, docs in _lists(run).items() for rank, doc_id in enumerate(docs, 1))
    names = ("query_id", "doc_id", "rank" if run.ordered else "score")
    table.write_rows(names, [*rows, *((query_id,) for query_id in empty)], place, found)


def _lists(run: Run) -> dict[str, list[str]]:
    """Return the answers as lists; unlike in ``rankings`` a repeated document stays, so that it is counted again later."""
    answers: dict[str, list[str]] = {query_id: [] for query_id in (*run.query_ids, *sorted(run.answered))}
    for query_id, doc_id, _ in run:
        answers[query_id].append(doc_id)
    return answers


def _scores(run: Run, path: Path) -> dict[str, dict[str, float]]:
    scores = run.to_dict()
    if sum(map(len, scores.values())) < len(run):
        pairs = Counter((query_id, doc_id) for query_id, doc_id, _ in run)
        query_id, doc_id = next(pair for pair, count in pairs.items() if count > 1)
        problem = f"document '{doc_id}' stands twice in the answer to query '{query_id}', which one object cannot hold"
        raise Place(str(path)).error(problem, "write JSON lines, CSV or Parquet")
    return scores


def _refuse_empty(query_ids: list[str], path: Path, kind: str) -> None:
    if query_ids and kind != "jsonl":
        problem = f"query '{query_ids[0]}' has no document, which {kind} has no line for"
        raise Place(str(path)).error(problem, "write JSON, JSON lines or YAML")


def kind_of_new(path: Path, kind: str | None = None) -> str:
    """Return the format to write a new file in."""
    return kind_of(path, kind) if kind is not None else _by_ending(path)


def _write_document(value: object, path: Path, kind: str) -> None:
    if kind == "json":
        text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    else:
        encoded(json.dumps(value, ensure_ascii=False), path)  # YAML would write half of a pair, and no reader take it back
        text = yaml_text(value)
    write_text(text, path)
