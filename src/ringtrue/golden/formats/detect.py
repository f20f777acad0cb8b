"""Which format a file or folder is in, told by what it holds; its name only decides between YAML and the rest."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, MissingInput
from ringtrue.formats.text import Place, json_records, read_bytes, read_text
from ringtrue.golden.formats import (
    FORMATS,
    agent_memory,
    beir,
    dataset,
    gold_jsonl,
    memory_bench,
    openinference,
    ragas,
    table,
    testset,
)
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.golden.formats.fields import alike, legal
from ringtrue.golden.formats.manifest import MANIFEST, read_manifest
from ringtrue.golden.formats.trec import find
from ringtrue.records import GoldenSet

FOLDERS = ("gold-jsonl", "memory-bench", "agent-memory", "beir", "trec")
_YAML = (".yaml", ".yml")
_QRELS = re.compile(r"\S+[ \t]+\S+[ \t]+\S+[ \t]+[-+]?\d+\s*")
# Keys that only one format uses weigh as much as several common ones, so that one misspelt key hides no format.
_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "gold-jsonl": (gold_jsonl.IDS, (*gold_jsonl.QUERY, *gold_jsonl.QUERY_FACTS)),
    "memory-bench": (("expected_relevant", "expected_irrelevant"), (*memory_bench.QUERY, *memory_bench.QUERY_FACTS)),
    "golden-dataset": (("expected_results",), (*dataset.QUERY, *dataset.QUERY_FACTS)),
    "test-set": (testset.LISTS, (*testset.QUERY, *testset.QUERY_FACTS, "id", "query")),
    "agent-memory": (("queryId", "judgments"), (*agent_memory.QUERY, *agent_memory.QUERY_FACTS)),
    "ragas": (("user_input", "reference_contexts", "retrieved_contexts"), ragas.STRUCTURE),
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
    if dataset.ENTITIES in record:
        return "golden-dataset", path / MANIFEST
    if (path / beir.QRELS).is_dir() and (path / beir.QUERIES).exists():
        return "beir", path
    if (path / "memories.jsonl").exists() and (path / "queries.jsonl").exists():
        return "agent-memory", path
    if (path / "memories").is_dir() and (path / "queries.jsonl").exists():
        return "memory-bench", path
    if (path / gold_jsonl.LAYOUT.queries).exists():
        return "gold-jsonl", path
    if find(path, "topics") and find(path, "qrels"):
        return "trec", path
    files = [file for file in sorted(path.iterdir()) if file.suffix in (*_YAML, ".json") and file.name != MANIFEST]
    if len(files) == 1:
        return _file(files[0])
    seen = ", ".join(f"'{file.name}'" for file in sorted(path.iterdir())[:8]) or "nothing"
    cure = f"name one file, or add a {MANIFEST} with 'format' one of {', '.join(FOLDERS)}"
    raise InputError(f"{path}: not recognised as a golden set, it holds {seen}; {cure}")


def _file(path: Path) -> tuple[str, Path]:
    if path.name == MANIFEST and "format" in read_manifest(path.parent)[0]:
        return _folder(path.parent)
    if read_bytes(path)[:4] == b"PAR1":
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
    if dataset.ENTITIES in value:
        return "golden-dataset"
    if isinstance(value.get("queries"), list):
        return "test-set" if _rows(value["queries"]) == "test-set" else "golden-dataset"
    rows = next((value[key] for key in (*ragas.WRAPPERS, *openinference.WRAPPERS) if isinstance(value.get(key), list)), None)
    if rows is not None:
        return _rows(rows)
    # A span on one line is an object of objects too.
    if value and "attributes" not in value and all(isinstance(inner, dict) for inner in value.values()):
        return "dict"
    if any(alike(key, dataset.STRUCTURE[:2]) for key in value):
        return "golden-dataset"
    return _row(value)


def read_value(value: Any, place: Place, format: str | None, *, name: str) -> GoldenSet | None:
    """Return the set in a JSON value of a format that needs no file; None for any other format."""
    readers = {"test-set": testset.read_record, "golden-dataset": dataset.read_record}
    return readers[format](value, place, Complaints(), name=name) if format in readers else None


def _rows(rows: Any) -> str | None:
    return next((_row(row) for row in rows if isinstance(row, dict)), None) if isinstance(rows, list) else None


def _row(record: dict[str, Any]) -> str | None:
    points = {name: _points(record, *keys) for name, keys in _ROWS.items()}
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
