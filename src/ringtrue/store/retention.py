"""How long things are kept: queries go to archives; feedback, shadow runs and what the service needs for a while go.

An archive holds searches that left the log, as compressed JSON lines that any tool can read, one search on a line.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import json
import os
import re
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, delete, select, update

from ringtrue.answers import RecordReader
from ringtrue.errors import InputError, MissingInput, check_choice
from ringtrue.store.base import Base, Moment, among, insert
from ringtrue.store.engine import PRIVATE
from ringtrue.store.operations import UNDER_WAY
from ringtrue.store.records import LoggedQuery, timestamp
from ringtrue.store.tables import FEEDBACK, HISTORY, JOB, QUERY, REPLY, SHADOW, archives, structure, words

SUFFIX = ".jsonl.gz"


def write_archive(file: Path, queries: Sequence[LoggedQuery]) -> None:
    """Write searches to a new file; it is on the disk, whole and readable, or not there at all.

    Raises InputError if the file cannot be written, or does not read back as written.
    """
    try:
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


@contextlib.contextmanager
def new_file(file: Path) -> Iterator[Path]:
    """Yield the name of a file to write, which takes the place of ``file`` only when it is whole and on the disk."""
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        part.touch(PRIVATE, exist_ok=False)
        yield part
        _sync(part)
        part.replace(file)
        if os.name == "posix":  # elsewhere folders cannot be opened, and the system does so itself
            _sync(file.parent)
    finally:
        for path in file.parent.glob(f"{glob.escape(part.name)}*"):
            path.unlink()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(file: Path, lines: Iterator[str]) -> None:
    """Write lines to a compressed file that takes the place of another only when it is whole."""
    with new_file(file) as part, gzip.GzipFile(part, "wb", compresslevel=6, mtime=0) as packed:
        for line in lines:
            packed.write(line.encode() + b"\n")


def archived_queries(path: str | Path) -> Iterator[LoggedQuery]:
    """Yield the searches of an archive, or of all archives in a folder; a search that is in two comes once.

    Raises MissingInput if there is no archive, InputError for a file that is none or is cut off.
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


def remove_lines(file: Path, unwanted: Callable[[dict[str, Any]], bool], *, dry_run: bool) -> list[dict[str, Any]]:
    """Take lines out of an archive, unless it is a dry run, and return them; the file is replaced only if there are some."""
    removed = [line for line in map(json.loads, read_lines(file)) if unwanted(line)]
    if removed and not dry_run:
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
        return _READER.read(LoggedQuery, json.loads(line))
    except (ValueError, InputError) as problem:
        raise InputError(f"{file}: {line[:60]!r} is not an archived search; restore the file from a copy") from problem


_READER = RecordReader(lambda place, said, wanted: InputError(f"{place} {said}, not {wanted}"))
BATCH = 20_000
"""Rows that are archived and deleted in one transaction: few enough for writers to wait, enough for a file to be worth it."""
UNFINISHED = -1
"""Rows of an archive that is being written: all of them are still in the log."""
_KEPT = {
    "queries": QUERY.table.c.created_at,
    "feedback": FEEDBACK.table.c.created_at,
    "shadow": SHADOW.table.c.created_at,
    "history": HISTORY.table.c.at,
    "replies": REPLY.table.c.created_at,
    "jobs": JOB.table.c.updated_at,
}
"""What goes, by the time that says how old it is."""
_LOG = ("queries", "feedback", "shadow")


@dataclass(frozen=True)
class Retention:
    """Days that each kind of row is kept."""

    queries: float = 90
    feedback: float = 90
    shadow: float = 30
    history: float = 400
    replies: float = 2
    jobs: float = 90
    """Those that have ended."""
    projects: Mapping[str, Retention] = field(default_factory=dict)
    """Projects that keep for longer or shorter."""

    @classmethod
    def of(cls, settings: Mapping[str, Any], *, place: str = "retention") -> Retention:
        """Return what settings say: days by kind, and the same by project under ``projects``.

        Raises InputError for a kind that is none or a number of days that is none.

        >>> Retention.of({"queries": 30, "projects": {"shop": {"shadow": 7}}}).of_project("shop")
        Retention(queries=30, feedback=90, shadow=7, history=400, replies=2, jobs=90, projects={})
        """
        own = {name: value for name, value in settings.items() if name != "projects"}
        for name, value in own.items():
            check_choice(name, [*_KEPT, "projects"], f"{place}: there is no '{name}'")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 100_000:
                raise InputError(f"{place}: {name} = {value!r} is not a number of days; write 0 or more")
        found = cls(**own)
        projects = settings.get("projects", {})
        if not isinstance(projects, Mapping) or not all(isinstance(value, Mapping) for value in projects.values()):
            raise InputError(f"{place}: projects is not a table of tables; write [store.retention.projects.NAME]")
        named = {name: cls.of({**own, **value}, place=f"{place}.projects.{name}") for name, value in projects.items()}
        return replace(found, projects=named)

    def of_project(self, project: str) -> Retention:
        """Return what holds in a project."""
        return self.projects.get(project, replace(self, projects={}))


@dataclass(frozen=True)
class Pruned:
    """What was, or with a dry run would be, taken out of one project."""

    project: str
    queries: int
    feedback: int
    shadow: int
    history: int = 0
    replies: int = 0
    jobs: int = 0
    archives: tuple[Path, ...] = ()


class RetentionStore(Base):
    """The store as it forgets."""

    def prune(self, *, now: Moment, archive: Path, retention: Retention | None = None, dry_run: bool = False) -> list[Pruned]:
        """Archive the queries that are too old, delete them, and delete all else that is too old and need not be kept.

        Return what was taken out by project; with ``dry_run`` nothing is. An archive is noted before it is written, and its
        queries are deleted in the transaction that notes how many it holds, when it is on the disk: stopped at any moment, a
        query is in the log or in an archive that the store knows, and the next run takes back what was not finished.
        Raises InputError if the archive cannot be written.
        """
        keep = retention or Retention()
        return [self._prune(project, now, archive, keep.of_project(project), dry_run) for project in self._having(_KEPT)]

    def projects(self) -> list[str]:
        """Return the projects that have queries, feedback or shadow runs."""
        return self._having(_LOG)

    def _having(self, kinds: Iterable[str]) -> list[str]:
        with self._reading() as connection:
            found = [connection.scalars(select(_KEPT[name].table.c.project).distinct()) for name in kinds]
            return sorted({project for projects in found for project in projects})

    def archives(self, *, project: str | None = None) -> list[Path]:
        """Return the archives that were written from this store."""
        finished = archives.c.rows >= 0
        found = select(archives.c.path).where(finished).order_by(archives.c.first_at, archives.c.id)
        if project is not None:
            found = found.where(archives.c.project == words(project))
        with self._reading() as connection:
            return [Path(path) for path in connection.scalars(found)]

    def _prune(self, project: str, now: Moment, folder: Path, keep: Retention, dry_run: bool) -> Pruned:
        old = {}
        for name, at in _KEPT.items():
            limit = timestamp(datetime.fromisoformat(timestamp(now)) - timedelta(days=getattr(keep, name)))
            old[name] = [at.table.c.project == words(project), at < limit]
        old["jobs"].append(JOB.table.c.state.not_in(UNDER_WAY))
        if dry_run:
            counts: dict[str, Any] = {name: self._count(_KEPT[name].table, where) for name, where in old.items()}
            return Pruned(project, **counts)
        self._take_back(project)
        archived = list(iter(lambda: self._archive(project, old["queries"], folder, now), None))
        files = tuple(file for file, _ in archived)
        deleted: dict[str, Any] = {"queries": sum(count for _, count in archived)}
        for name in old.keys() - deleted.keys():
            table, deleted[name] = _KEPT[name].table, 0
            batch = select(table.c.id).where(*old[name]).order_by(table.c.id).limit(BATCH)
            while gone := self._delete(table, table.c.id.in_(batch)):
                deleted[name] += gone
        return Pruned(project, archives=files, **deleted)

    def _archive(self, project: str, old: list[ColumnElement[bool]], folder: Path, now: Moment) -> tuple[Path, int] | None:
        """Archive and delete one batch; return its file and how many it holds, None if nothing is old."""
        table = QUERY.table
        with self._reading() as connection:
            rows = connection.execute(select(table).where(*old).order_by(table.c.id).limit(BATCH)).mappings().all()
        if not rows:
            return None
        queries = sorted((QUERY.read(row) for row in rows), key=lambda query: (query.created_at, query.query_id))
        first, last = queries[0].created_at, queries[-1].created_at
        # The token keeps two programs that archive at the same time from writing the same file.
        name = f"{re.sub(r'[^A-Za-z0-9_-]+', '_', project)[:40]}-{first[:10]}-{last[:10]}-{secrets.token_hex(4)}"
        file = folder.absolute() / f"queries-{name}{SUFFIX}"
        noted = {
            "project": words(project), "path": str(file), "rows": UNFINISHED, "created_at": timestamp(now),
            "first_at": first, "last_at": last,
        }  # fmt: skip
        with self._writing() as connection:
            insert(connection, archives, [noted])
        try:
            write_archive(file, queries)
            with self._writing() as connection:
                ids = [row["id"] for row in rows]
                gone = connection.execute(delete(table).where(among(connection.dialect.name, table.c.id, ids))).rowcount
                finished = update(archives).where(*_begun(project, file)).values(rows=gone)
                if gone != len(rows) or not connection.execute(finished).rowcount:
                    # Somebody deleted some of them meanwhile, a user perhaps; an archive must not keep them.
                    raise _Changed
        except (_Changed, InputError) as problem:
            remove_archive(file)
            self._delete(archives, *_begun(project, file))
            if isinstance(problem, InputError):
                raise
            return self._archive(project, old, folder, now)
        return file, len(rows)

    def _take_back(self, project: str) -> list[Path]:
        """Remove the archives of a project that were begun and not finished; return those that cannot be removed.

        Their searches are in the log. Who still writes one finds that it was taken back, and begins anew.
        """
        begun = select(archives.c.path).where(archives.c.project == words(project), archives.c.rows < 0)
        with self._reading() as connection:
            files = [Path(path) for path in connection.scalars(begun)]
        held = []
        for file in files:
            try:
                with self._writing() as connection:
                    if connection.execute(delete(archives).where(*_begun(project, file))).rowcount:  # else it was finished
                        remove_archive(file)
            except OSError:
                held.append(file)
        return held


class _Changed(Exception):
    """The rows that were archived are not the rows that are there."""


def _begun(project: str, file: Path) -> list[ColumnElement[bool]]:
    return [archives.c.project == words(project), archives.c.path == str(file), archives.c.rows < 0]
