"""What running the service needs: keys, jobs, replies to writes that may be sent again, and figures over time.

Only the hash of a key's token is stored. A token has 256 random bits, so that its plain SHA-256 tells nobody anything: there is
no dictionary to try.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import get_args

from sqlalchemy import func, select

from ringtrue.answers import JobState, Scope
from ringtrue.errors import InputError, check_choice
from ringtrue.store.base import Base, Moment, insert
from ringtrue.store.records import DEFAULT_PROJECT, MOST_KEY_DAYS, ApiKey, HistoryPoint, Reply, StoredJob, timestamp
from ringtrue.store.tables import HISTORY, JOB, KEY, REPLY, words

PREFIX = "rt_"
"""How tokens begin, so that a scanner for secrets knows one."""
MOST_LETTERS = 200
"""In the name of a key."""
USED_EVERY = timedelta(minutes=1)
"""The last use is noted so often at most: not every call to the service should be a write."""


UNDER_WAY = ("queued", "running")
"""States of a job that somebody works on, or will."""


class OperationsStore(Base):
    """Keys; jobs, and replies by the key of the write they answer; series of points, with a line for each set of labels."""

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
        at, end = timestamp(now), None if expires_at is None else timestamp(expires_at)
        latest = timestamp(datetime.fromisoformat(at) + timedelta(days=MOST_KEY_DAYS))
        if end is not None and end <= at:
            raise InputError(f"a key that ends at {end} would already have expired; choose a later time")
        if end is not None and end > latest:
            raise InputError(f"a key that ends at {end} lasts longer than {MOST_KEY_DAYS:,} days; choose a time until {latest}")
        key = ApiKey(f"key_{secrets.token_hex(6)}", name, tuple(scopes), at, project=project, expires_at=end)
        token = PREFIX + secrets.token_urlsafe(32)
        return self.add_key(key, token), token

    def add_key(self, key: ApiKey, token: str) -> ApiKey:
        """Keep a key whose token was made elsewhere, and return it as it is stored; ``create_key`` makes one."""
        wrong = {
            "a key needs a name, such as its owner or purpose": not key.name.strip(),
            f"key {key.name!r:.80} opens nothing; give it a scope: {', '.join(get_args(Scope))}": not key.scopes,
        }
        for what, said in (("name", key.name), ("project", key.project)):
            wrong[f"the {what} {said!r:.80} contains invisible characters; remove them"] = not said.isprintable()
            wrong[f"the {what} {said!r:.80} has {len(said)} characters; {MOST_LETTERS} at most"] = len(said) > MOST_LETTERS
        problem = next((problem for problem, holds in wrong.items() if holds), None)
        if problem:
            raise InputError(problem)
        for scope in key.scopes:
            check_choice(str(scope), get_args(Scope), f"there is no scope {scope!r}")
        row = KEY.row(key)
        with self._writing() as connection:
            if not insert(connection, KEY.table, [{**row, "key_hash": _hash(token)}]):
                raise InputError(f"key {key.key_id!r}, or one with this token, already exists; make a new one")
        return KEY.read(row)

    def verify_key(self, token: str, *, now: Moment) -> ApiKey | None:
        """Return the key that a token belongs to, and note its use; None if there is none, or it ended or was revoked."""
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

    def add_job(self, job: StoredJob) -> None:
        """Keep a new job; raises InputError if there is one of that id."""
        if not self._add(JOB, [job]):
            raise InputError(f"job {job.job_id!r} already exists; give another id")

    def save_job(self, job: StoredJob) -> None:
        """Replace what is known of a job; raises MissingInput if there is none of that id."""
        missing = f"project {job.project!r} has no job {job.job_id!r}; add it first"
        self._change(JOB, job.project, lambda _: job, missing, job_id=job.job_id)

    def job(self, job_id: str, *, project: str = DEFAULT_PROJECT) -> StoredJob | None:
        """Return a job; None if there is none of that id."""
        return self._one(JOB, project, job_id=job_id)

    def jobs(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        limit: int | None = None,
        before: str | None = None,
        state: JobState | None = None,
    ) -> list[StoredJob]:
        """Return jobs, the newest first; ``before`` goes on behind a job id. Raises MissingInput if there is no such job."""
        return self._newest(JOB, self._where(JOB, project, state=state), project=project, limit=limit, before=before)

    def interrupt_jobs(self, *, now: Moment) -> int:
        """Mark the jobs of all projects that nobody works on any more, as when the service starts; return how many."""
        under_way = JOB.table.c.state.in_(UNDER_WAY)
        return self._update(JOB.table, under_way, state="interrupted", updated_at=timestamp(now))

    def claim_reply(self, reply: Reply) -> Reply | None:
        """Claim the key of a write: None if it is claimed now, else what is there: an answer, or another's claim.

        Of two who claim a key at once, one gets it.
        """
        where = self._where(REPLY, reply.project, key=reply.key)
        with self._writing() as connection:
            while not insert(connection, REPLY.table, [REPLY.row(reply)]):
                there = connection.execute(select(REPLY.table).where(*where)).mappings().first()
                if there is not None:  # else it was dropped in between
                    return REPLY.read(there)
        return None

    def keep_reply(self, reply: Reply) -> None:
        """Keep the answer to a write in place of its claim."""
        self._add(REPLY, [reply], replace=True)

    def drop_reply(self, key: str, *, project: str = DEFAULT_PROJECT) -> bool:
        """Give up a claim, so that the write may be sent again; return whether there was one."""
        return bool(self._delete(REPLY.table, *self._where(REPLY, project, key=key)))

    def drop_claims(self) -> int:
        """Give up the claims of all projects that have no answer, when nobody is at work; return how many there were."""
        return self._delete(REPLY.table, REPLY.table.c.status.is_(None))

    def add_history(self, points: Sequence[HistoryPoint]) -> int:
        """Add points in one transaction; return how many are new. One of the same time, series and labels stays.

        Points whose value is NaN are left out.
        """
        return self._add(HISTORY, [point for point in points if point.value == point.value])

    def history(
        self,
        series: str,
        *,
        project: str = DEFAULT_PROJECT,
        labels: Mapping[str, str] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        limit: int | None = None,
    ) -> list[HistoryPoint]:
        """Return the points of a series in the order of time, from ``since`` on and before ``until``.

        ``labels`` takes those that have all of these labels, whatever else they have. ``limit`` takes the last ones.
        """
        table = HISTORY.table.c
        # Inside a label's own text a quotation mark has a backslash before it, so that these are found as whole labels only.
        parts = [f"{json.dumps(words(name))}:{json.dumps(words(value))}" for name, value in (labels or {}).items()]
        find = func.instr if self.address.sqlite is not None else func.strpos
        labelled = [find(table.labels, part) > 0 for part in parts]
        where = self._where(HISTORY, project, *labelled, since=since, until=until, series=series)
        return self._all(HISTORY, where, table.at.desc(), table.labels.desc(), limit=limit)[::-1]


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
