"""What a database complains of, said so that a person knows what to do; no message shows a password or a stored value.

A complaint that may pass by itself (locked, full, gone) is Unreachable: a writer keeps what it has and tries again.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ringtrue.errors import AccessDenied, InputError, RingtrueError, Unreachable, Unusable

_SQLITE = {
    "database is locked": (Unreachable, "is locked by another program; wait until it ends, or move to PostgreSQL"),
    "database table is locked": (Unreachable, "is locked by another program; wait until it ends, or move to PostgreSQL"),
    "database or disk is full": (Unreachable, "cannot grow, the disk is full; free space, then try again"),
    "disk i/o error": (Unreachable, "cannot be read or written (disk I/O error); check the disk and its free space"),
    "attempt to write a readonly database": (Unusable, "is read-only; check the permissions of the file and its folder"),
    "unable to open database file": (Unusable, "cannot be opened; check that its folder exists and may be written"),
    "file is not a database": (Unusable, "is no SQLite database; name another file"),
    "database disk image is malformed": (Unusable, "is damaged; restore a backup: ringtrue store restore FILE"),
}
_ACCESS = ("28000", "28P01")
_FULL = ("53100", "53200", "53300")
_GONE = ("08", "57P", "40", "55P", "57014", "25006")


@contextmanager
def explained(place: object) -> Iterator[None]:
    """Turn an error of the database at ``place`` (whose text has no password) into one of Ringtrue's."""
    try:
        yield
    except _errors() as problem:
        raise _explain(problem, str(place)) from _Quiet(problem)


def _errors() -> tuple[type[Exception], ...]:
    """Return what databases raise, by SQLAlchemy or by themselves; whoever has not loaded psycopg meets none of its errors."""
    psycopg = sys.modules.get("psycopg")
    return (SQLAlchemyError, sqlite3.Error, *(() if psycopg is None else (psycopg.Error,)))


class _Quiet(Exception):
    """The kind of the error behind; its text may hold the values that were to be stored."""

    def __init__(self, problem: Exception) -> None:
        origin = getattr(problem, "orig", None) or problem
        super().__init__(f"{type(problem).__name__} ({type(origin).__name__})")


def _is(problem: Exception, *kinds: str) -> bool:
    """True for one of PEP 249's kinds of errors, which every driver has under the same names, and SQLAlchemy too."""
    return any(kind.__name__ in kinds for kind in type(problem).__mro__)


def _explain(problem: Exception, place: str) -> RingtrueError:
    if isinstance(problem, PoolTimeout):
        return Unreachable(f"store {place}: every connection is in use; use fewer threads, or try again")
    origin = problem.orig if isinstance(problem, DBAPIError) else problem
    said = str(origin)
    if _is(problem, "IntegrityError"):
        return InputError(f"store {place}: a row breaks a rule of its table ({_rule(origin)}); nothing of it was stored")
    if isinstance(origin, sqlite3.Error):
        for text, (kind, advice) in _SQLITE.items():
            if text in said.lower():
                return kind(f"store {place} {advice}")
        return InputError(f"store {place}: SQLite says: {said}")
    state = getattr(origin, "sqlstate", None) or ""
    if state == "42501":
        if "row-level security" in said:
            return InputError(f"store {place}: a row belongs to a project that this store is not for; nothing was stored")
        return AccessDenied(
            f"store {place}: PostgreSQL does not let this user do that; make the user the owner of a database of its own"
        )
    if state in _ACCESS or "password authentication failed" in said or "no password supplied" in said:
        return AccessDenied(f"store {place}: PostgreSQL refused the user or the password; check both in the store's address")
    if state in _FULL:
        return Unreachable(
            f"store {place}: PostgreSQL has no room left (disk, memory or connections); make room, then try again"
        )
    if state == "3D000" or ('database "' in said and "does not exist" in said):
        return InputError(f"store {place}: PostgreSQL has no such database; create it: createdb NAME")
    lost = _is(problem, "OperationalError", "InterfaceError") and not state
    if state.startswith(_GONE) or lost:
        reason = {"40": "it ended a transaction that met another", "25006": "it takes no writes at the moment"}
        why = next((text for start, text in reason.items() if state.startswith(start)), "it cannot be reached or went away")
        return Unreachable(f"store {place}: PostgreSQL did not answer: {why}; check that it runs, then try again")
    diagnosis = getattr(getattr(origin, "diag", None), "message_primary", None)
    return InputError(f"store {place}: PostgreSQL says: {diagnosis or type(origin).__name__}")


def _rule(origin: BaseException | None) -> str:
    """Return the name of the rule, without the values."""
    diagnosis = getattr(origin, "diag", None)
    if diagnosis is not None:
        named = (diagnosis.table_name, diagnosis.constraint_name or diagnosis.column_name)
        return ", ".join(str(part) for part in named if part) or str(diagnosis.message_primary)
    return str(origin)  # SQLite names the rule or the columns only
