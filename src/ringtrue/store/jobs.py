"""Work that the service has under way, and what it answered to writes that may be sent again (V-1)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, select, update

from ringtrue.answers import JobState
from ringtrue.errors import InputError, MissingInput
from ringtrue.store.base import Base, insert
from ringtrue.store.records import DEFAULT_PROJECT, Reply, StoredJob
from ringtrue.store.rows import JOB, REPLY, words
from ringtrue.store.times import timestamp

UNDER_WAY = ("queued", "running")
"""States of a job that somebody works on, or will."""


class Jobs(Base):
    """Jobs, and replies by the key of the write they answer."""

    def add_job(self, job: StoredJob) -> None:
        """Keep a new job; raises InputError where there is one of that id."""
        with self._writing() as connection:
            if not insert(connection, JOB.table, [JOB.row(job)]):
                raise InputError(f"there is a job {job.job_id!r} already; give another id")

    def save_job(self, job: StoredJob) -> None:
        """Replace what is known of a job; raises MissingInput where there is none of that id."""
        table, row = JOB.table, JOB.row(job)
        with self._writing() as connection:
            this = [table.c[name] == row[name] for name in JOB.key]
            if not connection.execute(update(table).where(*this).values(row)).rowcount:
                raise MissingInput(f"project {job.project!r} has no job {job.job_id!r}; add it first")

    def job(self, job_id: str, *, project: str = DEFAULT_PROJECT) -> StoredJob | None:
        """Return a job; None where there is none of that id."""
        return self._one(JOB, project=project, job_id=job_id)

    def jobs(
        self,
        *,
        project: str = DEFAULT_PROJECT,
        limit: int | None = None,
        before: str | None = None,
        state: JobState | None = None,
    ) -> list[StoredJob]:
        """Return jobs, the newest first; ``before`` goes on behind a job id. Raises MissingInput where there is no such job."""
        found = [] if state is None else [JOB.table.c.state == words(state)]
        return self._newest(JOB, "job_id", found, project=project, limit=limit, before=before)

    def interrupt_jobs(self, *, now: datetime | str) -> int:
        """Mark the jobs of all projects that nobody works on any more, as when the service starts; return how many."""
        table = JOB.table
        ended = {"state": "interrupted", "updated_at": timestamp(now)}
        with self._writing() as connection:
            return int(connection.execute(update(table).where(table.c.state.in_(UNDER_WAY)).values(ended)).rowcount)

    def claim_reply(self, reply: Reply) -> Reply | None:
        """Claim the key of a write: None where it is claimed now, else what is there: an answer, or another's claim.

        Of two who claim a key at once, one gets it.
        """
        table, row = REPLY.table, REPLY.row(reply)
        this = [table.c[name] == row[name] for name in REPLY.key]
        with self._writing() as connection:
            while not insert(connection, table, [row]):
                there = connection.execute(select(table).where(*this)).mappings().first()
                if there is not None:  # else it was dropped in between
                    return REPLY.read(there)
        return None

    def keep_reply(self, reply: Reply) -> None:
        """Keep the answer to a write in place of its claim."""
        self._add(REPLY, [reply], replace=True)

    def drop_reply(self, key: str, *, project: str = DEFAULT_PROJECT) -> bool:
        """Give up a claim, so that the write may be sent again; return whether there was one."""
        table = REPLY.table
        this = (table.c.project == words(project), table.c.key == words(key))
        with self._writing() as connection:
            return bool(connection.execute(delete(table).where(*this)).rowcount)

    def drop_claims(self) -> int:
        """Give up the claims of all projects that have no answer, when nobody is at work; return how many there were."""
        with self._writing() as connection:
            return int(connection.execute(delete(REPLY.table).where(REPLY.table.c.status.is_(None))).rowcount)

    def forget_replies(self, *, before: datetime | str) -> int:
        """Delete the replies of all projects that are older than a time; return how many there were."""
        old = REPLY.table.c.created_at < timestamp(before)
        with self._writing() as connection:
            return int(connection.execute(delete(REPLY.table).where(old)).rowcount)
