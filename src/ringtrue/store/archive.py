"""Archives: searches that left the log, as compressed JSON lines that any tool can read, one search on a line."""

from __future__ import annotations

import contextlib
import glob
import gzip
import json
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ringtrue.answers import StageLogged
from ringtrue.errors import InputError, MissingInput
from ringtrue.store.records import LoggedQuery
from ringtrue.store.rows import structure

SUFFIX = ".jsonl.gz"
_FIELDS = {field.name for field in fields(LoggedQuery)}


def archive_name(queries: Sequence[LoggedQuery]) -> str:
    """Return a new name for an archive of searches of one project, in the order of time."""
    project = re.sub(r"[^A-Za-z0-9_-]+", "_", queries[0].project)[:40]
    # The token keeps two programs that archive at the same time from writing the same file.
    return f"queries-{project}-{queries[0].created_at[:10]}-{queries[-1].created_at[:10]}-{secrets.token_hex(4)}{SUFFIX}"


def write_archive(file: Path, queries: Sequence[LoggedQuery]) -> None:
    """Write searches to a new file; it is on the disk, whole and readable, or not there at all.

    Raises InputError where the file cannot be written, or does not read back as written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, (structure(asdict(query)) for query in queries))
    except OSError as problem:
        raise InputError(f"{file}: the archive cannot be written: {problem.strerror}; nothing was deleted") from problem
    written = sum(1 for _ in read_lines(file))
    if written != len(queries):
        raise InputError(f"{file}: holds {written} of {len(queries)} searches; nothing was deleted, check the disk")


def remove_archive(file: Path) -> None:
    """Remove an archive that never became one, and what a program that was killed had written of it."""
    for path in [file, *file.parent.glob(f".{glob.escape(file.name)}.*.part")]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()


PRIVATE = 0o600
"""The rights of files with what users asked: their owner may read and write them, nobody else."""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)


def replace_file(file: Path, lines: Iterator[str]) -> None:
    """Write lines to a compressed file that takes the place of another only when it is whole and on the disk."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb", opener=_private) as raw:
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed:
                for line in lines:
                    packed.write(line.encode() + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        part.replace(file)
        sync_folder(file.parent)
    finally:
        part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring a new name in a folder to the disk; where folders cannot be opened, the system does so itself."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # pragma: no cover  (Windows)
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def archived_queries(path: str | Path) -> Iterator[LoggedQuery]:
    """Yield the searches of an archive, or of all archives in a folder; a search that is in two comes once.

    Raises MissingInput where there is no archive, InputError for a file that is none or is cut off.
    """
    place = Path(path)
    files = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() else [place]
    if not files or not files[0].exists():
        raise MissingInput(f"{place}: there is no archive here; they are files that end with {SUFFIX}")
    seen: set[tuple[str, str]] = set()
    for file in files:
        for line in read_lines(file):
            query = _query(file, line)
            if (query.project, query.query_id) not in seen:
                seen.add((query.project, query.query_id))
                yield query


def matching(file: Path, wanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the lines of an archive that are wanted."""
    return [line for line in map(json.loads, read_lines(file)) if wanted(line)]


def remove_lines(file: Path, unwanted: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Take lines out of an archive and return them; the file is replaced only where there are some."""
    removed = matching(file, unwanted)
    if removed:
        replace_file(file, (line for line in read_lines(file) if not unwanted(json.loads(line))))
    return removed


def read_lines(file: Path) -> Iterator[str]:
    """Yield the lines of a compressed file; raises InputError for one that is none, is cut off or is damaged."""
    try:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from (line.rstrip("\n") for line in lines)
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError, zlib.error) as problem:
        raise InputError(f"{file}: is cut off, damaged or not compressed ({problem}); take another copy") from problem


def _query(file: Path, line: str) -> LoggedQuery:
    try:
        found = {name: value for name, value in json.loads(line).items() if name in _FIELDS}
        found["result_ids"] = tuple(found["result_ids"])
        found["scores"] = tuple(map(float, found["scores"]))
        found["channel_contributions"] = {name: tuple(ids) for name, ids in found["channel_contributions"].items()}
        found["stages"] = tuple(StageLogged(**stage) for stage in found["stages"])
        return LoggedQuery(**found)
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise InputError(f"{file}: {line[:60]!r} is no archived search; restore the file from a copy") from problem
