"""Files ⇄ GoldenSet, one module per family of formats.

In: a file or folder in any of the formats below. Out: a GoldenSet, or a file written from one together with the list
of what that format could not hold. The room neither judges a set (that is ``validate``) nor knows where shipped sets
lie (``load``).
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.formats import Place, json_records, read_text
from ringtrue.golden.formats import collections, documents, query_lines, rag_rows, table
from ringtrue.golden.formats.fields import Complaint as Complaint, Complaints as Complaints, alike, legal
from ringtrue.golden.formats.folders import MANIFEST, read_manifest
from ringtrue.golden.version import losses as losses
from ringtrue.records import GoldenSet


@dataclass(frozen=True)
class Format:
    """A way to keep golden sets: its name, what it looks like, and how it is read and written."""

    name: str
    looks: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, Complaints], GoldenSet]
    write: Callable[[GoldenSet, Path], None]
    confirmed: str = ""
    """How a set in one file of this format says that people made its judgments."""


_TABLE = "columns query_id (or query), doc_id, grade"
_CONFIRMED_ROWS = "a column source with manual in each row"
_LINES = ("", ".jsonl")
_ROWS = (".jsonl", ".json")
FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format(
            "golden-dataset", "JSON object with 'entities' and 'queries'", (".json",),
            documents.read_dataset, documents.write_dataset,
            '"judgment_source": "manual" beside "queries", or "source": "manual" on each judgment',
        ),
        Format(
            "test-set", "YAML or JSON with 'queries' and their 'relevant_docs'", (".yaml", ".yml", ".json"),
            documents.read_test_set, documents.write_test_set,
            "judgment_source: manual above the queries, or source: manual on each judgment",
        ),
        Format(
            "gold-jsonl", "JSON lines with 'relevant_ids'", _LINES,
            query_lines.GOLD_JSONL.read, query_lines.GOLD_JSONL.write, '"source": "manual" on each line',
        ),
        Format(
            "memory-bench", "JSON lines with 'expected_relevant'", _LINES,
            query_lines.MEMORY_BENCH.read, query_lines.MEMORY_BENCH.write,
        ),
        Format(
            "agent-memory", "JSON lines with 'queryId' and 'judgments'", _LINES,
            query_lines.AGENT_MEMORY.read, query_lines.AGENT_MEMORY.write,
            '"judgmentSource": "manual" on each line, or "source": "manual" on each judgment',
        ),
        Format(
            "beir", "folder with corpus.jsonl, queries.jsonl and qrels/", ("",), collections.read_beir, collections.write_beir
        ),
        Format(
            "trec", "folder with topics.* and qrels.*, or a qrels file", ("", ".txt", ".qrels"),
            collections.read_trec, collections.write_trec,
        ),
        Format("dict", "JSON object {query: {document: grade}}", (".json",), collections.read_dict, collections.write_dict),
        Format("ragas", "rows with 'user_input' or 'question'", _ROWS, rag_rows.read_ragas, rag_rows.write_ragas),
        Format("openinference", "spans with 'attributes'", _ROWS, rag_rows.read_openinference, rag_rows.write_openinference),
        Format("csv", _TABLE, (".csv", ".tsv"), table.read, table.write_csv, _CONFIRMED_ROWS),
        Format("parquet", _TABLE, (".parquet",), table.read, table.write_parquet, _CONFIRMED_ROWS),
    )
}  # fmt: skip

# ── which format it is, told by what it holds; a name only decides between YAML and the rest ────────────────────────

FOLDERS: dict[str, tuple[str, ...]] = {
    "beir": ("qrels", "queries.jsonl"),
    "agent-memory": ("memories.jsonl", "queries.jsonl"),
    "memory-bench": ("memories", "queries.jsonl"),
    "gold-jsonl": ("gold-set.jsonl",),
    "trec": ("topics*", "qrels*"),
}
"""The formats that are folders, and what lies in each."""
_YAML = (".yaml", ".yml")
_QRELS = re.compile(r"\S+[ \t]+\S+[ \t]+\S+[ \t]+[-+]?\d+\s*")
# Keys that only one format uses weigh as much as several common ones, so that one misspelt key hides no format.
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gold-jsonl": (query_lines.IDS, query_lines.GOLD_QUERY.keys),
    "memory-bench": (("expected_relevant", "expected_irrelevant"), query_lines.BENCH_QUERY.keys),
    "golden-dataset": (("expected_results",), documents.DATASET_QUERY.keys),
    "test-set": (documents.LISTS, (*documents.TEST_QUERY.keys, "id", "query")),
    "agent-memory": (("queryId", "judgments"), query_lines.AGENT_QUERY.keys),
    "ragas": (("user_input", "reference_contexts", "retrieved_contexts"), rag_rows.RAGAS_QUERY.structure),
    "openinference": (("attributes",), ("context", "annotations", "span_id", "span_kind")),
}
_ENOUGH = 2


class NotRecognised(InputError):
    """A file in none of the formats."""


def detect(path: Path) -> tuple[str, Path]:
    """Return the name of the format and the file or folder to read; raises InputError saying what was seen."""
    if not path.exists():
        raise MissingInput(f"{path}: there is no such file or folder; check the path")
    return _folder(path) if path.is_dir() else _file(path)


def _folder(path: Path) -> tuple[str, Path]:
    record, place = read_manifest(path)
    if "format" in record:
        name = record["format"]
        return legal(name if isinstance(name, str) else repr(name), FOLDERS, "folder format", place.at("format")), path
    if documents.ENTITIES in record:
        return "golden-dataset", path / MANIFEST
    for name, patterns in FOLDERS.items():
        if all(any(path.glob(pattern)) for pattern in patterns):
            return name, path
    files = [file for file in sorted(path.iterdir()) if file.suffix in (*_YAML, ".json") and file.name != MANIFEST]
    if len(files) == 1:
        return _file(files[0])
    seen = ", ".join(f"'{file.name}'" for file in sorted(path.iterdir())[:8]) or "nothing"
    cure = f"name one file, or add a {MANIFEST} with 'format' one of {', '.join(FOLDERS)}"
    raise InputError(f"{path}: not recognised as a golden set, it holds {seen}; {cure}")


def _file(path: Path) -> tuple[str, Path]:
    if path.name == MANIFEST and "format" in read_manifest(path.parent)[0]:
        return _folder(path.parent)
    if table.is_parquet(path):
        return "parquet", path
    if path.suffix in _YAML:
        return "test-set", path
    text = read_text(path).lstrip()
    if text.startswith(("{", "[")):
        name = _json_file(path, listed=text.startswith("["))
    else:
        # What a table lacks is for its reader to say.
        name = _plain(text) or ("csv" if path.suffix in (".csv", ".tsv") else None)
    if name is None:
        raise _unknown(path, text)
    return name, path


def _json_file(path: Path, *, listed: bool) -> str | None:
    """Return the format by the first object that tells; raises InputError if none does because the first is broken."""
    broken: InputError | None = None
    for _, read in islice(json_records(path), 20):
        try:
            record = read()
        except InputError as problem:
            broken = broken or problem
            continue
        name = _row(record) if listed else format_of(record)
        if name is not None:
            return name
    if broken is not None:
        raise broken
    return None


def format_of(value: Any) -> str | None:
    """Return the format of a JSON value; None if it looks like none."""
    if not isinstance(value, dict):
        return _rows(value)
    if documents.ENTITIES in value:
        return "golden-dataset"
    if isinstance(value.get("queries"), list):
        return "test-set" if _rows(value["queries"]) == "test-set" else "golden-dataset"
    rows = next(
        (value[key] for key in (*rag_rows.RAGAS_WRAPPERS, *rag_rows.SPAN_WRAPPERS) if isinstance(value.get(key), list)), None
    )
    if rows is not None:
        return _rows(rows)
    # A span on one line is an object of objects too.
    if value and "attributes" not in value and all(isinstance(inner, dict) for inner in value.values()):
        return "dict"
    if any(alike(key, documents.STRUCTURE[:2]) for key in value):
        return "golden-dataset"
    return _row(value)


def read_value(value: Any, place: Place, format: str | None, *, name: str) -> GoldenSet | None:
    """Return the set in a JSON value of a format that needs no file; None for any other format."""
    readers = {"test-set": documents.parsed_test_set, "golden-dataset": documents.parsed_dataset}
    return readers[format](value, place, Complaints(), name=name) if format in readers else None


def _rows(rows: Any) -> str | None:
    return next((_row(row) for row in rows if isinstance(row, dict)), None) if isinstance(rows, list) else None


def _row(record: dict[str, Any]) -> str | None:
    points = {name: _points(record, *keys) for name, keys in _KEYS.items()}
    best = max(points, key=points.__getitem__)
    return best if points[best] >= _ENOUGH and list(points.values()).count(points[best]) == 1 else None


def _points(record: dict[str, Any], own: tuple[str, ...], common: tuple[str, ...]) -> float:
    keys = {key.partition(".")[0] if key.startswith("attributes.") else key for key in record}
    misspelt = sum(alike(key, own) is not None for key in keys - {*own, *common})
    # Documents may have a corpus and a category, too; without a question or what answers it, a row is none of a golden set.
    if not misspelt and not keys & {*own, "query", "query_text", "question"}:
        return 0.0
    return 3.0 * len(keys & set(own)) + len(keys & set(common)) + misspelt


def _plain(text: str) -> str | None:
    first = text.partition("\n")[0].rstrip("\r")
    columns = [cell.strip().strip('"') for cell in re.split(r"[,;\t]", first)]
    if columns[:3] == ["query-id", "corpus-id", "score"] or _QRELS.fullmatch(first):
        return "trec"
    kinds = (table.OTHERS["query_id"] + table.OTHERS["query_text"], table.OTHERS["doc_id"], table.OTHERS["grade"])
    names = zip(table.REQUIRED, kinds, strict=True)
    known = sum(any(c == name or c in others or alike(c, [name]) for c in columns) for name, others in names)
    return "csv" if known >= _ENOUGH else None


def _unknown(path: Path, text: str) -> NotRecognised:
    seen = text[:60].replace("\n", "\\n")
    if "query" in text.partition("\n")[0] and not any(name in text for name in ("relevant", "judgments", "grade")):
        cure = f"make candidates from a list of queries: ringtrue golden bootstrap CORPUS --from queries --queries {path}"
        return NotRecognised(f"{path}: has queries but no judgments (it begins {seen!r}); {cure}")
    formats = "; ".join(f"{form.name} ({form.looks})" for form in FORMATS.values())
    return NotRecognised(f"{path}: not recognised as a golden set, it begins {seen!r}; the formats known are {formats}")


# ── reading and writing ─────────────────────────────────────────────────────────────────────────────────────────────


def format_named(name: str) -> Format:
    """Return a format by name; raises InputError with the nearest names.

    >>> format_named("beir").looks
    'folder with corpus.jsonl, queries.jsonl and qrels/'
    """
    if name not in FORMATS:
        raise InputError(f"there is no golden-set format '{name}'; choose {nearest(name, FORMATS)}")
    return FORMATS[name]


def read(
    path: Path,
    *,
    complaints: Complaints | None = None,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> GoldenSet:
    """Return the golden set at ``path``, in whatever format it is.

    ``split`` chooses a part of a BEIR folder; ``columns`` names the columns of a table: ``{"doc_id": "sku"}``.
    """
    complaints = Complaints() if complaints is None else complaints
    if columns:
        return table.read(path, complaints, columns=table.columns_from(columns))
    name, place = detect(path)
    if split is not None:
        if name != "beir":
            raise InputError(f"{path}: a {name} set has no split files; leave split out, or split it with golden.split")
        return collections.read_beir(place, complaints, split=split)
    return FORMATS[name].read(place, complaints)


def save(golden: GoldenSet, path: str | Path, *, format: str | None = None, overwrite: bool = False) -> tuple[str, ...]:
    """Write a golden set and return what the format could not hold, one line each.

    The losses are measured, not declared: what was written is read back and compared with ``golden``. The format
    follows from the file's ending unless given. Raises InputError when the target exists and ``overwrite`` is off, or
    when the format cannot express the set at all; then nothing is written.
    """
    path = Path(path)
    form = format_named(format) if format is not None else _format_for(path)
    if path.suffix not in form.suffixes and not ("" in form.suffixes and path.suffix not in _SUFFIXES):
        wanted = " or ".join(f"'{suffix}'" if suffix else "no ending (a folder)" for suffix in form.suffixes)
        raise InputError(f"{path}: a {form.name} set is written with {wanted}; change the name")
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; choose another name, or overwrite it (--overwrite, overwrite=True)")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".golden-") as scratch:
        copy = Path(scratch) / path.name
        try:
            form.write(golden, copy)
            lost = losses(golden, form.read(copy, Complaints()))
        except InputError as problem:
            reason = str(problem).replace(scratch, str(path.parent))
            raise InputError(f"the set cannot be kept in the format {form.name}: {reason}") from problem
        _move(Path(scratch), path)
    return lost


def how_to_confirm(path: Path) -> str:
    """Return how the set at ``path`` says that people made its judgments."""
    name, place = detect(path)
    if place.is_dir():
        return '"judgment_source": "manual" in its golden.json'
    return FORMATS[name].confirmed or (
        f'keep it as JSON (ringtrue golden convert {path} gold.json) with "judgment_source": "manual"'
    )


def require_version(path: Path) -> None:
    """Raise InputError if a file of this name cannot hold a set's version; it would pass for an older version later."""
    if _format_for(path).name not in ("golden-dataset", "test-set"):
        cure = path.with_suffix(".json").name
        raise InputError(f"{path}: a {path.suffix} file cannot hold the version of a golden set; write a .json file ({cure})")


_SUFFIXES = frozenset(suffix for form in FORMATS.values() for suffix in form.suffixes if suffix)
_BY_SUFFIX = {
    ".json": "golden-dataset", ".yaml": "test-set", ".yml": "test-set", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"
}  # fmt: skip


def _format_for(path: Path) -> Format:
    name = _BY_SUFFIX.get(path.suffix)
    if name is None:
        raise InputError(f"{path}: the ending does not name a format; choose one with --format (format=): {', '.join(FORMATS)}")
    return FORMATS[name]


def _move(scratch: Path, path: Path) -> None:
    """Put what was written in its place; in an existing folder, entries of the same name are replaced, others stay."""
    for written in scratch.iterdir():
        target = path.parent / written.name
        parts = list(written.iterdir()) if written.is_dir() and target.is_dir() else [written]
        for part in parts:
            place = target / part.name if part is not written else target
            if place.is_dir():
                shutil.rmtree(place)
            part.replace(place)
