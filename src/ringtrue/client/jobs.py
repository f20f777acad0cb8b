"""Jobs: work that a service does beside the request that asked for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

from ringtrue.answers import Job, JobState
from ringtrue.client.problems import failure
from ringtrue.client.reading import read
from ringtrue.client.resources import Resource
from ringtrue.client.wire import segment
from ringtrue.errors import BadAnswer, CannotDecide, TimedOut, Unreachable

LOOKED_EVERY_S = 0.5
"""How often a job is asked for where its events cannot be had."""
Watching = Callable[[Job], None]
"""Told of a job whenever it has changed."""


class JobsResource(Resource):
    """The jobs of the project: ``/v1/jobs``."""

    def list(self, *, state: JobState | None = None) -> Iterator[Job]:
        """Yield the jobs, the newest first."""
        return self._wire.items(Job, "/v1/jobs", state=state)

    def get(self, job_id: str) -> Job:
        """Return a job as it stands; raises MissingInput where there is none of that id."""
        return self._wire.get_as(Job, f"/v1/jobs/{segment(job_id, 'job_id')}")

    def cancel(self, job_id: str) -> Job:
        """Ask a job to stop and return it; it stops at its next step, and one that has ended stays as it is."""
        return self._wire.write_as(Job, "POST", f"/v1/jobs/{segment(job_id, 'job_id')}/cancel")

    def watch(self, job_id: str) -> Iterator[Job]:
        """Yield a job whenever it has changed, until it has ended.

        It is told by the service as it happens; where a proxy swallows that or the connection breaks, the job is asked for
        from time to time. Raises MissingInput where there is none of that id, and Unreachable where the service has gone.
        """
        last: Job | None = None
        try:
            with closing(self._wire.events(f"/v1/jobs/{segment(job_id, 'job_id')}/events")) as events:
                for event in events:
                    last = read(Job, event, place="job")
                    yield last
                    if last.ended:
                        return
        except (Unreachable, TimedOut, BadAnswer):
            pass  # what follows asks again, and says so where the service is really gone
        while True:
            job = self.get(job_id)
            if job != last:
                last = job
                yield job
            if job.ended:
                return
            time.sleep(LOOKED_EVERY_S)

    def wait(self, job_id: str, *, on_progress: Watching | None = None) -> Job:
        """Return a job when it is done; ``on_progress`` is told whenever it changes.

        Raises the exception of its failure, and CannotDecide where it was cancelled or interrupted: it has no result then.
        """
        for job in self.watch(job_id):
            if on_progress is not None:
                on_progress(job)
        if job.state == "failed":
            told = None if job.error is None else {"code": job.error.code, "message": job.error.message}
            raise failure(told, what=f"job {job_id}")
        if job.state != "done":
            raise CannotDecide(f"job {job_id} was {job.state} before it had a result; start it again")
        return job
