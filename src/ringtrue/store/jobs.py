"""Work that the service has under way, and what it answered to writes that may be sent again."""

from __future__ import annotations

from sqlalchemy import select

from ringtrue.answers import JobState
from ringtrue.errors import InputError
from ringtrue.store.base import Base, Moment, insert
from ringtrue.store.records import DEFAULT_PROJECT, Reply, StoredJob
from ringtrue.store.tables import JOB, REPLY
from ringtrue.store.times import timestamp

UNDER_WAY = ("queued", "running")
"""States of a job that somebody works on, or will."""


class JobStore(Base):
    """Jobs, and replies by the key of the write they answer."""

    def add_job(self, job: StoredJob) -> None:
        """Keep a new job; raises InputError if there is one of that id."""
        if not self._add(JOB, [job]):
            raise InputError(f"there is a job {job.job_id!r} already; give another id")

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
