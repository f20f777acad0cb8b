"""Forgetting a user: everything that hangs on the user's searches, in the database and in the archives."""

from __future__ import annotations

import contextlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Table, and_, delete, func, or_, select, true, update

from ringtrue.errors import InputError
from ringtrue.store.base import Moment, among, insert
from ringtrue.store.records import DEFAULT_PROJECT, USER_DELETED, AuditEntry, timestamp, user_mark
from ringtrue.store.retention import RetentionStore, remove_lines
from ringtrue.store.tables import AUDIT, FEEDBACK, JOB, JUDGMENT, QUERY, REPLY, REVIEW, SHADOW, archives, structure, words

audit, reviews, judgments = AUDIT.table, REVIEW.table, JUDGMENT.table
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


class UserDeletion(RetentionStore):
    """The store as it forgets a user."""

    def delete_user(self, user_id: str, *, project: str = DEFAULT_PROJECT, now: Moment | None = None) -> int:
        """Delete a user's searches and events, and all that refers to them; return how many rows went, archived ones included.

        Words that nobody else in the log searched for, and no golden set asks, go from judgments, review items and the audit
        trail, too. What people say of shared words stays: it stands under another's search then. A mark of the user with the
        time, the present unless given, is left in the audit trail, for whoever brings in searches that were logged before. The
        ids that a sequential test has counted stay, or they would count again. Raises InputError, after everything else is
        gone, naming the archives that may still hold the user because they are not there or cannot be changed.
        """
        at = timestamp(now or datetime.now(UTC))
        begun = [str(file) for file in self._take_back(project)]
        counts, held = self._forget(user_id, project, at)
        held, count = held + begun, sum(counts.values())
        if held:
            raise InputError(
                f"{count} rows of the user were deleted, but these archives are missing or cannot be changed and may still "
                f"hold the user: {', '.join(held)}; bring them back, or if they are gone: ringtrue store prune --forget FILE"
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
        user, lines, held = words(user_id), list[dict[str, Any]](), list[str]()

        def theirs(line: dict[str, Any]) -> bool:
            return bool(line["project"] == project and line["user_id"] == user)

        for path in self.archives(project=project):
            try:
                found = remove_lines(path, theirs, dry_run=now is None)
            except (OSError, InputError):
                held.append(str(path))
                continue
            lines += found
            if found and now is not None:
                this = (archives.c.project == words(project), archives.c.path == str(path))
                self._update(archives, *this, rows=archives.c.rows - len(found))
        counts: dict[str, int] = {}
        with contextlib.suppress(_Undone), self._writing() as connection:
            counts = _Deletion(connection, words(project), user, lines).counts()
            if now is None:
                raise _Undone
            mark = AuditEntry(now, "store", USER_DELETED, user_mark(user_id, project), project=project)
            same = (audit.c.project == words(project), audit.c.what == USER_DELETED, audit.c.subject == mark.subject)
            connection.execute(delete(audit).where(*same))
            insert(connection, audit, [AUDIT.row(mark)])
        return {**counts, "archives": len(lines)}, held


class _Undone(Exception):
    """Everything was counted, and stays."""


Change = Callable[[Mapping[Any, Any]], Mapping[str, Any] | None]
"""What becomes of a row: the columns to be changed, none of them if it stays as it is, None if it goes."""


class _Deletion:
    """One transaction that deletes a user, whose archived searches are given."""

    def __init__(self, connection: Connection, project: str, user: str, archived: Iterable[Mapping[str, Any]]) -> None:
        self.connection, self.project, self.user = connection, project, user
        log = QUERY.table
        found = connection.execute(
            select(log.c.query_id, log.c.session_id, log.c.query).where(log.c.project == project, log.c.user_id == user)
        )
        mine = [*((line["query_id"], line["session_id"], line["query"]) for line in archived), *map(tuple, found)]
        self.queries = {query_id: spelling(text) for query_id, _, text in mine}
        """The words of each search of the user, in one spelling."""
        self.texts = frozenset(self.queries.values())
        self.sessions = {session for _, session, _ in mine if session is not None}
        self.others: dict[str, tuple[str, str]] = {}
        """These words as a golden set asks them, or somebody else searched for them: id and text."""

    def counts(self) -> dict[str, int]:
        """Delete, and return how many rows of each table went."""
        log, events, shadow = QUERY.table, FEEDBACK.table, SHADOW.table
        # An event without a user is the user's if it belongs to one of the user's searches or sessions.
        nobodys = or_(self._of(events.c.query_id, self.queries), self._of(events.c.session_id, self.sessions))
        gone = {
            log.name: self._delete(log, log.c.user_id == self.user),
            events.name: self._delete(events, or_(events.c.user_id == self.user, and_(events.c.user_id.is_(None), nobodys))),
            shadow.name: self._delete(shadow, self._of(shadow.c.query_id, self.queries)),
        }
        if self.queries:
            self._find_others()
        under = or_(_names(judgments.c.metadata, "query"), self._of(judgments.c.query_id, self.queries))
        told = or_(_names(audit.c.detail, "query_id"), audit.c.what.startswith(REFRESH))
        for table, change, where in (
            (judgments, self._judgment, under),
            (reviews, self._review, true()),
            (audit, self._entry, told),
        ):
            gone[table.name] = self._change(table, change, where)
        for table, names in ((JOB.table, ("request", "result", "error")), (REPLY.table, ("body",))):
            rows = select(table.c.id, *(table.c[name] for name in names)).where(table.c.project == self.project)
            few = self.connection.execute(rows, execution_options={"yield_per": 8})  # one may be several megabytes
            ids = [number for number, *texts in few if any(map(self._tells_of, texts))]
            gone[table.name] = self._delete(table, self._of(table.c.id, ids))
        return gone

    def _find_others(self) -> None:
        log = QUERY.table.c
        searched = select(func.min(log.query_id), log.query).where(log.project == self.project).group_by(log.query)
        asked = select(reviews.c.query_id, reviews.c.query, reviews.c.metadata)
        golden = asked.where(reviews.c.project == self.project, _names(reviews.c.metadata, "golden"))
        texts = [(one, text) for one, text, facts in self.connection.execute(golden) if "golden" in json.loads(facts)]
        for query_id, text in [*texts, *sorted(map(tuple, self.connection.execute(searched)), reverse=True)]:
            if spelling(text) in self.texts:
                self.others[spelling(text)] = (query_id, text)

    def _of(self, column: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
        return among(self.connection.dialect.name, column, sorted(values))

    def _delete(self, table: Table, where: ColumnElement[bool]) -> int:
        return int(self.connection.execute(delete(table).where(table.c.project == self.project, where)).rowcount)

    def _change(self, table: Table, change: Change, where: ColumnElement[bool]) -> int:
        """Change rows of a table and return how many went."""
        gone: list[int] = []
        for row in self.connection.execute(select(table).where(table.c.project == self.project, where)).mappings().all():
            new = change(row)
            if new is None or (table is judgments and new and self._is_taken({**row, **new})):
                gone.append(row["id"])
            elif new:
                this = (table.c.project == self.project, table.c.id == row["id"])
                self.connection.execute(update(table).where(*this).values(**new))
        return self._delete(table, self._of(table.c.id, gone))

    def _is_taken(self, row: Mapping[str, Any]) -> bool:
        """True if the same annotator judged the item for the other's search, too."""
        same = [judgments.c[name] == row[name] for name in JUDGMENT.key]
        return self.connection.execute(select(judgments.c.id).where(*same, judgments.c.id != row["id"])).first() is not None

    def _key(self, query_id: str, text: object) -> str | None:
        """Return the user's words that a text has, or a search of the user; None if neither is the user's."""
        key = spelling(text) if isinstance(text, str) else None
        return key if key in self.texts else self.queries.get(query_id)

    def _is_lost(self, text: object) -> bool:
        """True for words that nobody but the user has."""
        key = self._key("", text)
        return key is not None and key not in self.others

    def _judgment(self, row: Mapping[Any, Any]) -> Mapping[str, Any] | None:
        """What people say of words that others use, too, stays; what was derived may rest on the user, and goes."""
        facts = json.loads(row["metadata"])
        key = self._key(row["query_id"], facts.get("query"))
        if key is None:
            return {}
        if key not in self.others or row["source"] in ("implicit", "validated"):
            return None
        query_id, text = self.others[key]
        new = {"query_id": query_id} if row["query_id"] in self.queries else {}
        return {**new, "metadata": structure({**facts, "query": text})} if "query" in facts else new

    def _review(self, row: Mapping[Any, Any]) -> Mapping[str, Any] | None:
        under, key = row["query_id"] in self.queries, spelling(row["query"])
        if (not under and key not in self.texts) or "golden" in json.loads(row["metadata"]):
            return {}
        if key not in self.others:
            return None
        query_id, text = self.others[key]
        return {"query": text} | ({"query_id": query_id} if under else {})

    def _entry(self, row: Mapping[Any, Any]) -> Mapping[str, Any] | None:
        detail = json.loads(row["detail"])
        if detail.get("query_id") in self.queries:
            return None  # a phrase that was learned from the user's search holds words of it
        if not row["what"].startswith(REFRESH):
            return {}
        new = dict(detail)
        for name in {"retired", "left_out"} & detail.keys():
            new[name] = {query_id: text for query_id, text in detail[name].items() if not self._is_lost(text)}
        if "new" in detail:
            lost = {one["query_id"] for one in detail["new"] if self._is_lost(one["text"])}
            new["new"] = [one for one in detail["new"] if one["query_id"] not in lost]
            new["metadata"] = {name: facts for name, facts in detail.get("metadata", {}).items() if name not in lost}
            if not new["new"]:
                return None
        return {} if new == detail else {"detail": structure(new)}

    def _tells_of(self, text: str | bytes | None) -> bool:
        """True if a job or a reply tells of the user; one that is not JSON does not."""
        try:
            return self._tells(json.loads(text or "null"))
        except ValueError:
            return False

    def _tells(self, value: Any) -> bool:
        """True if a structure names the user, one of the user's searches, or words that nobody else searched for."""
        if isinstance(value, dict):
            return value.get("user_id") == self.user or any(map(self._tells, [*value, *value.values()]))
        if isinstance(value, list):
            return any(map(self._tells, value))
        return isinstance(value, str) and (value in self.queries or self._is_lost(value))


def _names(column: Column[Any], name: str) -> ColumnElement[bool]:
    # In a text that a structure holds, the quotation mark before the colon would have a backslash before it.
    return column.contains(f'"{name}":', autoescape=True)
