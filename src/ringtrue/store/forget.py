"""Forgetting a user: everything that hangs on the user's searches, in the database and in the archives."""

from __future__ import annotations

import contextlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Select, Table, and_, delete, or_, select, true, update

from ringtrue.errors import InputError
from ringtrue.store.base import Moment, among, insert
from ringtrue.store.records import DEFAULT_PROJECT, USER_DELETED, AuditEntry, timestamp, user_mark
from ringtrue.store.retention import RetentionStore, remove_lines
from ringtrue.store.tables import AUDIT, FEEDBACK, JOB, JUDGMENT, QUERY, REPLY, REVIEW, SHADOW, archives, structure, words

audit, reviews, eval_judgments = AUDIT.table, REVIEW.table, JUDGMENT.table
REFRESH = "golden refresh"
"""How the audit trail calls entries that list the questions of a golden set."""
_WORD = re.compile(r"\w+")


def spelling(text: str) -> str:
    """Return the words of a text in one spelling: who writes ``Wi-Fi?`` and who writes ``wi fi`` ask the same.

    >>> spelling("Late  Checkout?") == spelling("late checkout")
    True
    """
    found = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return " ".join(found) or " ".join(text.split())


class _Traces:
    """What a user's searches left behind: their ids with the words of each, sessions, and what was done with items."""

    def __init__(self, user_id: str) -> None:
        self.user_id = user_id
        self.queries: dict[str, str] = {}
        self.sessions: set[str] = set()
        self.acts: list[tuple[str | None, str, str | None]] = []
        """Item, session and search of each event."""

    def add(self, query_id: str, session_id: str | None, text: str) -> None:
        self.queries[query_id] = spelling(text)
        if session_id is not None:
            self.sessions.add(session_id)

    def sessions_on(self, key: str, item_id: str) -> int:
        """Return in how many sessions the user did something with an item that a search for these words had shown."""
        return len({
            session for item, session, query_id in self.acts if item == item_id and self.queries.get(query_id or "", key) == key
        })  # fmt: skip


class UserDeletion(RetentionStore):
    """The store as it forgets a user."""

    def delete_user(self, user_id: str, *, project: str = DEFAULT_PROJECT, now: Moment | None = None) -> int:
        """Delete a user's searches and events, and all that refers to them; return how many rows went, archived ones included.

        Words that nobody else in the log searched for, and no golden set asks, go from judgments, review items and the audit
        trail, too. What others say of shared words stays: it stands under another's search then. A mark of the user with the
        time, the present unless given, is left in the audit trail, for whoever brings in searches that were logged before. The
        ids that a sequential test has counted stay, or they would count again. Raises InputError, after everything else is
        gone, naming the archives that may still hold the user because they are not there or cannot be changed.
        """
        at = timestamp(now or datetime.now(UTC))
        begun = [str(file) for file in self._take_back(project, at)]
        counts, held = self._forget(user_id, project, at)
        held, count = held + begun, sum(counts.values())
        if held:
            raise InputError(
                f"{count} rows of the user were deleted, but these archives are missing or cannot be changed and may still "
                f"hold the user: {', '.join(held)}; bring them back, or where they are gone: ringtrue store prune --forget FILE"
            )
        return count

    def user_rows(self, user_id: str, *, project: str = DEFAULT_PROJECT) -> dict[str, int]:
        """Return how many rows of each table, and searches in archives, ``delete_user`` would take out now."""
        return self._forget(user_id, project, None)[0]

    def forget_archive(self, path: str | Path) -> bool:
        """Note that an archive no longer exists anywhere; return whether this store had written it."""
        return bool(self._delete(archives, archives.c.path == str(Path(path).absolute())))

    def _forget(self, user_id: str, project: str, now: str | None) -> tuple[dict[str, int], list[str]]:
        """Return the rows by table that went, and the archives that could not be changed; without a time nothing goes."""
        traces, count, held = self._from_archives(user_id, project, dry_run=now is None)
        counts: dict[str, int] = {}
        with contextlib.suppress(_Undone), self._writing() as connection:
            counts = _delete(connection, words(project), traces)
            if now is None:
                raise _Undone
            mark = AuditEntry(now, "store", USER_DELETED, user_mark(user_id, project), project=project)
            same = (audit.c.project == words(project), audit.c.what == USER_DELETED, audit.c.subject == mark.subject)
            connection.execute(delete(audit).where(*same))
            insert(connection, audit, [AUDIT.row(mark)])
        return {**counts, "archives": count}, held

    def _from_archives(self, user_id: str, project: str, *, dry_run: bool) -> tuple[_Traces, int, list[str]]:
        traces, count, held = _Traces(words(user_id)), 0, list[str]()

        def theirs(line: dict[str, Any]) -> bool:
            return bool(line["project"] == project and line["user_id"] == words(user_id))

        for path in self.archives(project=project):
            try:
                found = remove_lines(path, theirs, dry_run=dry_run)
            except (OSError, InputError):
                held.append(str(path))
                continue
            count += len(found)
            for line in found:
                traces.add(line["query_id"], line["session_id"], line["query"])
            if found and not dry_run:
                this = (archives.c.project == words(project), archives.c.path == str(path))
                self._update(archives, *this, rows=archives.c.rows - len(found))
        return traces, count, held


class _Undone(Exception):
    """Everything was counted, and stays."""


class _Words:
    """Whose words a text has: the user's alone, or others' as well."""

    def __init__(self, connection: Connection, project: str, traces: _Traces) -> None:
        self._connection, self._project, self._traces = connection, project, traces
        self._keys = frozenset(traces.queries.values())
        self._others: dict[str, tuple[str, str]] | None = None

    def are_theirs(self, text: object) -> bool:
        """True if the user searched for these words."""
        return isinstance(text, str) and spelling(text) in self._keys

    def elsewhere(self, key: str) -> tuple[str, str] | None:
        """Return id and text of the words as somebody else searched for them, the oldest first, or a golden set asks them."""
        if self._others is None:  # the whole log is read for this: only where somebody kept words of the user
            self._others = self._find()
        return self._others.get(key)

    def instead(self, text: str) -> str | None:
        """Return a text, another's spelling of it if it is the user's, or None if nobody else has these words."""
        if not self.are_theirs(text):
            return text
        other = self.elsewhere(spelling(text))
        return None if other is None else other[1]

    def _find(self) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        log = QUERY.table.c
        asked = select(reviews.c.query_id, reviews.c.query, reviews.c.metadata).where(
            reviews.c.project == self._project, _names(reviews.c.metadata, "golden")
        )
        for query_id, text, facts in self._connection.execute(asked):
            if "golden" in json.loads(facts) and self.are_theirs(text):
                found.setdefault(spelling(text), (query_id, text))
        every = self._connection.scalars(select(log.query).where(log.project == self._project).distinct())
        same = [text for text in every if self.are_theirs(text)]
        searches = (
            select(log.query_id, log.query)
            .where(log.project == self._project, among(self._connection.dialect.name, log.query, same))
            .order_by(log.created_at.desc(), log.query_id.desc())
        )
        for query_id, text in self._connection.execute(searches) if same else ():
            found[spelling(text)] = (query_id, text)
        return found


def _delete(connection: Connection, project: str, traces: _Traces) -> dict[str, int]:
    log, events = QUERY.table.c, FEEDBACK.table.c
    mine = and_(log.project == project, log.user_id == traces.user_id)
    for query_id, session_id, text in connection.execute(select(log.query_id, log.session_id, log.query).where(mine)):
        traces.add(query_id, session_id, text)
    kind = connection.dialect.name

    def of(column: ColumnElement[Any], values: Iterable[str]) -> ColumnElement[bool]:
        return among(kind, column, sorted(values))

    # An event without a user is the user's where it belongs to one of the user's searches or sessions.
    nobodys = and_(events.user_id.is_(None), or_(of(events.query_id, traces.queries), of(events.session_id, traces.sessions)))
    acted = and_(events.project == project, or_(events.user_id == traces.user_id, nobodys))
    acts = connection.execute(select(events.memory_id, events.session_id, events.query_id).where(acted))
    traces.acts += [(item, session, query_id) for item, session, query_id in acts]
    shadowed = and_(SHADOW.table.c.project == project, of(SHADOW.table.c.query_id, traces.queries))
    gone = {
        table.name: connection.execute(delete(table).where(where)).rowcount
        for table, where in ((QUERY.table, mine), (FEEDBACK.table, acted), (SHADOW.table, shadowed))
    }
    found = _Words(connection, project, traces)
    kept = {
        eval_judgments: (
            _judgment,
            ("project", "query_id", "memory_id", "source", "annotator", "metadata"),
            or_(_names(eval_judgments.c.metadata, "query"), of(eval_judgments.c.query_id, traces.queries)),
        ),
        reviews: (_review, ("query_id", "query", "metadata"), true()),
        audit: (_entry, ("what", "detail"), or_(_names(audit.c.detail, "query_id"), audit.c.what.startswith(REFRESH))),
    }
    for table, (change, columns, where) in kept.items():
        rows = select(table.c.id, *(table.c[name] for name in columns)).where(table.c.project == project, where)
        gone[table.name] = _change(connection, project, table, rows, partial(change, found=found, traces=traces))
    for table, names in ((JOB.table, ("request", "result", "error")), (REPLY.table, ("body",))):
        rows = select(table.c.id, *(table.c[name] for name in names)).where(table.c.project == project)
        few = connection.execute(rows, execution_options={"yield_per": 8})  # one may be several megabytes
        ids = [number for number, *texts in few if any(_tells_of(text, found, traces) for text in texts)]
        gone[table.name] = _delete_rows(connection, project, table, ids)
    return gone


Change = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
"""What becomes of a row: the columns to be changed, none of them where it stays as it is, None if it goes."""


def _change(connection: Connection, project: str, table: Table, rows: Select[Any], change: Change) -> int:
    """Change rows of a table and return how many went."""
    gone: list[int] = []
    for row in connection.execute(rows).mappings().all():
        new = change(row)  # type: ignore[arg-type]  # its keys are texts
        if new is None or (new and not _put(connection, project, table, row, new)):
            gone.append(row["id"])
    return _delete_rows(connection, project, table, gone)


def _delete_rows(connection: Connection, project: str, table: Table, ids: Sequence[int]) -> int:
    if not ids:
        return 0
    these = (table.c.project == project, among(connection.dialect.name, table.c.id, ids))
    return int(connection.execute(delete(table).where(*these)).rowcount)


def _put(connection: Connection, project: str, table: Table, row: Mapping[Any, Any], new: Mapping[str, Any]) -> bool:
    """Change a row; False if the same judge's judgment stands there already."""
    if table is eval_judgments and "query_id" in new:
        key = {name: {**row, **new}[name] for name in ("project", "query_id", "memory_id", "source", "annotator")}
        taken = select(table.c.id).where(*(table.c[name] == value for name, value in key.items()))
        if connection.execute(taken).first() is not None:
            return False
    connection.execute(update(table).where(table.c.project == project, table.c.id == row["id"]).values(**new))
    return True


def _judgment(row: Mapping[str, Any], found: _Words, traces: _Traces) -> Mapping[str, Any] | None:
    """What people say of words that others use, too, stays; the user's own signals go, and so does what only the user asked."""
    facts = json.loads(row["metadata"])
    text = facts.get("query")
    under = row["query_id"] in traces.queries
    if not under and not found.are_theirs(text):
        return {}
    key = spelling(text) if found.are_theirs(text) else traces.queries[row["query_id"]]
    other = found.elsewhere(key)
    if other is None:
        return None
    if row["source"] in ("implicit", "validated"):
        theirs = traces.sessions_on(key, row["memory_id"])
        if theirs and int(facts.get("sessions", theirs)) <= theirs:
            return None
    new: dict[str, Any] = {"query_id": other[0]} if under else {}
    if isinstance(text, str) and found.instead(text) != text:
        new["metadata"] = structure({**facts, "query": found.instead(text)})
    return new


def _review(row: Mapping[str, Any], found: _Words, traces: _Traces) -> Mapping[str, Any] | None:
    under = row["query_id"] in traces.queries
    if (not under and not found.are_theirs(row["query"])) or "golden" in json.loads(row["metadata"]):
        return {}
    other = found.elsewhere(spelling(row["query"]))
    if other is None:
        return None
    new = {"query_id": other[0], "query": found.instead(row["query"])}
    return {name: value for name, value in new.items() if value != row[name] and (under or name == "query")}


def _entry(row: Mapping[str, Any], found: _Words, traces: _Traces) -> Mapping[str, Any] | None:
    detail = json.loads(row["detail"])
    if detail.get("query_id") in traces.queries:
        return None  # a phrase that was learned from the user's search holds words of it
    if not row["what"].startswith(REFRESH):
        return {}
    new = dict(detail)
    for name in {"retired", "left_out"} & detail.keys():
        said = {query_id: found.instead(text) for query_id, text in detail[name].items()}
        new[name] = {query_id: text for query_id, text in said.items() if text is not None}
    if "new" in detail:
        asked: Sequence[Any] = [{**one, "text": found.instead(one["text"])} for one in detail["new"]]
        new["new"] = [one for one in asked if one["text"] is not None]
        lost = {one["query_id"] for one in asked if one["text"] is None}
        new["metadata"] = {name: facts for name, facts in detail.get("metadata", {}).items() if name not in lost}
        if not new["new"]:
            return None
    return {} if new == detail else {"detail": structure(new)}


def _tells_of(text: str | bytes | None, found: _Words, traces: _Traces) -> bool:
    """True if a job or a reply tells of the user; one that is not JSON does not."""
    try:
        return _tells(json.loads(text or "null"), found, traces)
    except ValueError:
        return False


def _tells(value: Any, found: _Words, traces: _Traces) -> bool:
    """True if a structure names the user, one of the user's searches, or words that nobody else searched for."""
    if isinstance(value, dict):
        parts = [*value, *value.values()]
        return value.get("user_id") == traces.user_id or any(_tells(one, found, traces) for one in parts)
    if isinstance(value, list):
        return any(_tells(one, found, traces) for one in value)
    return isinstance(value, str) and (value in traces.queries or found.instead(value) is None)


def _names(column: Column[Any], name: str) -> ColumnElement[bool]:
    # In a text that a structure holds, the quotation mark before the colon would have a backslash before it.
    return column.contains(f'"{name}":', autoescape=True)
