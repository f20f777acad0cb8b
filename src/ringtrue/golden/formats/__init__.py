"""Files ⇄ GoldenSet, one module per format.

In: a file or folder in any of the formats below. Out: a GoldenSet, or a file written from one together with the list
of what that format could not hold. The room neither judges a set (that is ``validate``) nor knows where shipped sets
lie (``load``).
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ringtrue.errors import InputError, nearest
from ringtrue.golden.formats import (
    agent_memory,
    beir,
    dataset,
    gold_jsonl,
    memory_bench,
    nested,
    openinference,
    ragas,
    table,
    testset,
    trec,
)
from ringtrue.golden.formats.complaints import Complaint as Complaint, Complaints as Complaints
from ringtrue.golden.formats.losses import losses as losses
from ringtrue.records import GoldenSet


@dataclass(frozen=True)
class Format:
    """A way to keep golden sets: its name, what it looks like, and how it is read and written."""

    name: str
    looks: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, Complaints], GoldenSet]
    write: Callable[[GoldenSet, Path], None]


FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        Format("golden-dataset", "JSON object with 'entities' and 'queries'", (".json",), dataset.read, dataset.write),
        Format(
            "test-set",
            "YAML or JSON with 'queries' and their 'relevant_docs'",
            (".yaml", ".yml", ".json"),
            testset.read,
            testset.write,
        ),
        Format("gold-jsonl", "JSON lines with 'relevant_ids'", ("", ".jsonl"), gold_jsonl.read, gold_jsonl.write),
        Format(
            "memory-bench",
            "JSON lines with 'expected_relevant'",
            ("", ".jsonl"),
            memory_bench.read,
            memory_bench.write,
        ),
        Format(
            "agent-memory",
            "JSON lines with 'queryId' and 'judgments'",
            ("", ".jsonl"),
            agent_memory.read,
            agent_memory.write,
        ),
        Format("beir", "folder with corpus.jsonl, queries.jsonl and qrels/", ("",), beir.read, beir.write),
        Format("trec", "folder with topics.* and qrels.*, or a qrels file", ("", ".txt", ".qrels"), trec.read, trec.write),
        Format("dict", "JSON object {query: {document: grade}}", (".json",), nested.read, nested.write),
        Format("ragas", "rows with 'user_input' or 'question'", (".jsonl", ".json"), ragas.read, ragas.write),
        Format("openinference", "spans with 'attributes'", (".jsonl", ".json"), openinference.read, openinference.write),
        Format("csv", "columns query_id (or query), doc_id, grade", (".csv", ".tsv"), table.read_csv, table.write_csv),
        Format("parquet", "columns query_id (or query), doc_id, grade", (".parquet",), table.read_parquet, table.write_parquet),
    )
}


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
    from ringtrue.golden.formats.detect import detect

    complaints = Complaints() if complaints is None else complaints
    if columns:
        reader = table.read_parquet if path.suffix == ".parquet" else table.read_csv
        return reader(path, complaints, columns=table.columns_from(columns))
    name, place = detect(path)
    if split is not None:
        if name != "beir":
            raise InputError(f"{path}: a {name} set has no split files; leave split out, or split it with golden.split")
        return beir.read_split(place, complaints, split=split)
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
    from ringtrue.golden.formats.detect import detect

    name, place = detect(path)
    if place.is_dir():
        return '"judgment_source": "manual" in its golden.json'
    return CONFIRMED.get(name, f'keep it as JSON (ringtrue golden convert {path} gold.json) with "judgment_source": "manual"')


CONFIRMED = {
    "csv": "a column source with manual in each row",
    "parquet": "a column source with manual in each row",
    "test-set": "judgment_source: manual above the queries, or source: manual on each judgment",
    "golden-dataset": '"judgment_source": "manual" beside "queries", or "source": "manual" on each judgment',
    "gold-jsonl": '"source": "manual" on each line',
    "agent-memory": '"judgmentSource": "manual" on each line, or "source": "manual" on each judgment',
}
"""How sets in one file say that people made their judgments."""


def require_version(path: Path) -> None:
    """Raise InputError if a file of this name cannot hold a set's version; it would pass for an older version later."""
    if _format_for(path).name not in VERSIONED:
        cure = path.with_suffix(".json").name
        raise InputError(f"{path}: a {path.suffix} file cannot hold the version of a golden set; write a .json file ({cure})")


VERSIONED = ("golden-dataset", "test-set")
"""The formats in one file that name the set's version."""
_SUFFIXES = frozenset(suffix for form in FORMATS.values() for suffix in form.suffixes if suffix)
_BY_SUFFIX = {
    ".json": "golden-dataset",
    ".yaml": "test-set",
    ".yml": "test-set",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}


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
