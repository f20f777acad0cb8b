"""Keys to the service: random tokens of which only the hash is stored; scoped, for one project, expiring, revocable.

A token has 256 random bits, so that its plain SHA-256 tells nobody anything: there is no dictionary to try.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import get_args

from sqlalchemy import select

from ringtrue.answers import Scope
from ringtrue.errors import InputError, nearest
from ringtrue.store.base import Base, Moment, insert
from ringtrue.store.records import DEFAULT_PROJECT, MOST_KEY_DAYS, ApiKey
from ringtrue.store.tables import KEY
from ringtrue.store.times import timestamp

PREFIX = "rt_"
"""How tokens begin, so that a scanner for secrets knows one."""
MOST_LETTERS = 200
"""In the name of a key."""
USED_EVERY = timedelta(minutes=1)
"""The last use is noted so often at most: not every call to the service should be a write."""


class KeyStore(Base):
    """The keys of all projects."""

    def create_key(
        self,
        name: str,
        scopes: Sequence[Scope],
        *,
        now: Moment,
        project: str = DEFAULT_PROJECT,
        expires_at: Moment | None = None,
    ) -> tuple[ApiKey, str]:
        """Make a key and return it with its token, which cannot be had a second time.

        Raises InputError for a key without a name or a scope, a scope that is none, or an end in the past or too far ahead.
        """
        end = None if expires_at is None else timestamp(expires_at)
        if end is not None and end <= timestamp(now):
            raise InputError(f"a key that ends at {end} would never open anything; choose a later time")
        latest = timestamp(datetime.fromisoformat(timestamp(now)) + timedelta(days=MOST_KEY_DAYS))
        if end is not None and end > latest:
            raise InputError(f"a key that ends at {end} lasts longer than {MOST_KEY_DAYS:,} days; choose a time until {latest}")
        key = ApiKey(f"key_{secrets.token_hex(6)}", name, tuple(scopes), timestamp(now), project=project, expires_at=end)
        token = PREFIX + secrets.token_urlsafe(32)
        return self.add_key(key, token), token

    def add_key(self, key: ApiKey, token: str) -> ApiKey:
        """Keep a key whose token was made elsewhere, and return it as it is stored; ``create_key`` makes one."""
        if not key.name.strip():
            raise InputError("a key needs a name; say whose it is, or what for")
        for what, said in (("name", key.name), ("project", key.project)):
            if not said.isprintable():
                raise InputError(f"the {what} {said!r:.80} contains invisible characters; remove them")
            if len(said) > MOST_LETTERS:
                raise InputError(f"the {what} {said!r:.80} has {len(said)} characters; {MOST_LETTERS} at most")
        if not key.scopes:
            raise InputError(f"key {key.name!r} opens nothing; give it a scope: {', '.join(get_args(Scope))}")
        for scope in key.scopes:
            if scope not in get_args(Scope):
                raise InputError(f"there is no scope {scope!r}; did you mean {nearest(str(scope), get_args(Scope))}?")
        row = KEY.row(key)
        with self._writing() as connection:
            if not insert(connection, KEY.table, [{**row, "key_hash": _hash(token)}]):
                raise InputError(f"there is a key {key.key_id!r}, or one with this token, already; make a new one")
        return KEY.read(row)

    def verify_key(self, token: str, *, now: Moment) -> ApiKey | None:
        """Return the key that a token belongs to, and note its use; None where there is none, or it ended or was revoked."""
        table, moment = KEY.table, timestamp(now)
        with self._reading() as connection:
            row = connection.execute(select(table).where(table.c.key_hash == _hash(token))).mappings().first()
        if row is None or row["revoked_at"] is not None or (row["expires_at"] is not None and row["expires_at"] <= moment):
            return None
        due = timestamp(datetime.fromisoformat(moment) - USED_EVERY)
        if row["last_used_at"] is not None and row["last_used_at"] > due:
            return KEY.read(row)
        # Revoked in between it opens nothing any more, not even once.
        if not self._update(table, table.c.id == row["id"], table.c.revoked_at.is_(None), last_used_at=moment):
            return None
        return KEY.read({**row, "last_used_at": moment})

    def keys(self, *, project: str = DEFAULT_PROJECT) -> list[ApiKey]:
        """Return the keys of a project in the order they were made, those that ended or were revoked too."""
        return self._all(KEY, self._where(KEY, project), KEY.table.c.id)

    def revoke_key(self, key_id: str, *, now: Moment, project: str = DEFAULT_PROJECT) -> bool:
        """End a key at once; return whether there was one that was not revoked."""
        where = self._where(KEY, project, KEY.table.c.revoked_at.is_(None), key_id=key_id)
        return bool(self._update(KEY.table, *where, revoked_at=timestamp(now)))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
