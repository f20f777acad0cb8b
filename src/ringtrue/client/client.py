"""The client of a service: everything that ``/v1`` does, as methods that return records."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, overload

from ringtrue import answers
from ringtrue.answers import Job, JobState
from ringtrue.client.resources import (
    BaselinesResource,
    ExperimentsResource,
    FeedbackResource,
    FlagsResource,
    GoldenResource,
    JudgmentsResource,
    KeysResource,
    QueriesResource,
    Resource,
    ReviewsResource,
    ShadowResource,
    TestsResource,
    parts,
)
from ringtrue.client.wire import Wire, encoded, failure, given, read, segment, several
from ringtrue.errors import BadAnswer, CannotDecide, InputError
from ringtrue.http_client import Response

LOOKED_EVERY_S = 0.5
Watching = Callable[[Job], None]
"""Told of a job whenever it has changed."""


class JobsResource(Resource):
    """The jobs of the project: ``/v1/jobs``."""

    def list(self, *, state: JobState | None = None) -> Iterator[Job]:
        """Yield the jobs, the newest first."""
        return self._wire.items(Job, "/v1/jobs", state=state)

    def get(self, job_id: str) -> Job:
        """Return a job as it stands; raises MissingInput if there is none of that id."""
        return self._wire.get_as(Job, f"/v1/jobs/{segment(job_id, 'job_id')}")

    def cancel(self, job_id: str) -> Job:
        """Ask a job to stop and return it; it stops at its next step, and one that has ended stays as it is."""
        return self._wire.write_as(Job, "POST", f"/v1/jobs/{segment(job_id, 'job_id')}/cancel")

    def watch(self, job_id: str) -> Iterator[Job]:
        """Yield a job whenever it has changed, until it has ended; the service is asked twice a second.

        Raises MissingInput if there is no job of that id, and Unreachable if the service has gone.
        """
        last: Job | None = None
        while last is None or not last.ended:
            if last is not None:
                time.sleep(LOOKED_EVERY_S)
            job = self.get(job_id)
            if job != last:
                yield job
            last = job

    def wait(self, job_id: str, *, on_progress: Watching | None = None) -> Job:
        """Return a job when it is done; ``on_progress`` is told whenever it changes.

        Raises the exception of its failure, and CannotDecide if it was cancelled or interrupted: it has no result then.
        """
        for job in self.watch(job_id):
            if on_progress is not None:
                on_progress(job)
        if job.state == "failed":
            raise failure(job.error, what=f"job {job_id}")
        if job.state != "done":
            raise CannotDecide(f"job {job_id} was {job.state} before it had a result; start it again")
        return job


Excuse = Literal["documents", "ids", "depth"]
"""Preconditions that a run made elsewhere may fail."""
TAKEN_ON = 202
"""The status of work that became a job."""
HERE = "http://127.0.0.1:8080"
TIMEOUT_S = 75.0
"""Longer than the 60 s that a service gives a request, so that its own answer is heard and not that none came."""
URL_VARIABLE, KEY_VARIABLE = "RINGTRUE_URL", "RINGTRUE_KEY"


class Client:
    """A service of Ringtrue, called over HTTP; ``key`` is what ``ringtrue keys create`` printed, where the service needs one.

    Any number of threads may share a client; close it, or use it with ``with``. ``timeout`` are the seconds that each request
    may take. Where the connection breaks, or the service is busy and says when to come back, a request is sent again up to
    ``retries`` times; a write is carried out once however often it is sent.

    What the service refuses is raised as the exception that it would be in Python: MissingInput, InputError, SpecError,
    ValidationFailed, CannotDecide, AccessDenied for a key that is missing or may not, Unreachable and TimedOut where there is
    no answer. The message is the service's, with the request's id. The key is in no message, and goes to no other host:
    redirects are not followed.

    >>> client = Client("https://search.example.org", key="rt_example")
    >>> client
    Client('https://search.example.org')
    >>> client.close()
    """

    def __init__(self, url: str = HERE, key: str | None = None, *, timeout: float = TIMEOUT_S, retries: int = 2) -> None:
        self._wire = wire = Wire(url, key=key, timeout=timeout, retries=retries)
        self.jobs = JobsResource(wire)
        """Work that takes longer than a request: list, get, cancel, watch, wait."""
        self.golden = GoldenResource(wire)
        """Golden sets: list, versions, get, upload, keep_shipped, diff."""
        self.baselines = BaselinesResource(wire)
        """The standards of the gate: list, get, update."""
        self.queries = QueriesResource(wire)
        """Searches of the log: list, get, stats, background; ``log`` and ``log_many`` write them at once."""
        self.feedback = FeedbackResource(wire)
        """What people did with results: send, send_many, list."""
        self.judgments = JudgmentsResource(wire)
        """Which result answers which query: list, add, add_many, delete."""
        self.reviews = ReviewsResource(wire)
        """The review queue: next, judge, undo, skip, reject, add, list, backlog, standing, publish."""
        self.shadow = ShadowResource(wire)
        """Candidates beside production: list, get, record."""
        self.tests = TestsResource(wire)
        """Sequential tests: list, get, start, record, set_status."""
        self.flags = FlagsResource(wire)
        """Which feature reaches whom: list, get, set, step, roll_back, variant."""
        self.experiments = ExperimentsResource(wire)
        """What was tried: list, get, add."""
        self.keys = KeysResource(wire)
        """Keys and the audit trail, for admins: list, create, revoke, audit."""

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, *, timeout: float = TIMEOUT_S, retries: int = 2
    ) -> Self:
        """Return a client of the service that RINGTRUE_URL names, with the key in RINGTRUE_KEY.

        Without an address it is the service on this machine, without a key one that needs none; what is blank counts as not
        set. ``environment`` is read in place of the process's own. Raises InputError for an address or key that is none.
        """
        # Not through ringtrue.config: a program that only calls a service loads no other room.
        known = os.environ if environment is None else environment
        url, key = (known.get(name, "").strip() for name in (URL_VARIABLE, KEY_VARIABLE))
        return cls(url or HERE, key or None, timeout=timeout, retries=retries)

    def __repr__(self) -> str:
        return f"Client({self._wire.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._wire.close()

    # ── evaluating ──────────────────────────────────────────────────────────────────────────────────────────────────

    @overload
    def evaluate(
        self, test_set: Mapping[str, Any] | None = None, *, wait: Literal[True] = True, **options: Any
    ) -> answers.Evaluated: ...

    @overload
    def evaluate(self, test_set: Mapping[str, Any] | None = None, *, wait: Literal[False], **options: Any) -> answers.Job: ...

    def evaluate(
        self,
        test_set: Mapping[str, Any] | None = None,
        *,
        golden: str | None = None,
        retriever: str | None = None,
        components: str | Sequence[str] = (),
        wait: bool = True,
        on_progress: Watching | None = None,
        **options: Any,
    ) -> answers.Evaluated | answers.Job:
        """Evaluate a retriever on a golden set and return the evaluation; without ``wait`` a job, at once.

        The set is ``test_set``, sent along, or ``golden``, stored or shipped: ``name`` or ``name@version``; the server's own
        where neither is given. ``retriever`` is an expression such as ``rrf(bm25, dense)``, the server's own unless given, and
        ``components`` are the only channels of it that answer. An evaluation that is too large for one request becomes a job:
        it is waited for, and ``on_progress`` is told how far it is. Further options: ``measures``, ``k``, ``split``,
        ``sample``, ``scope``, ``failed``, ``allow``, ``documents``, ``feature_id`` (a candidate, not production).

        Raises MissingInput for a set that is not there, InputError and SpecError for what cannot be evaluated, and what the
        job failed with.
        """
        body = _request(test_set, golden, retriever, options) | ({} if wait else {"wait": False})
        reply = self._wire.send(
            "POST", "/v1/evaluate", params={"components": ",".join(several(components)) or None}, content=encoded(body)
        )
        if not wait:
            return self.jobs.get(_job_id(reply))
        if reply.status != TAKEN_ON:
            return read(answers.Evaluated, reply.json)
        job = self.jobs.wait(_job_id(reply), on_progress=on_progress)
        run_id = str((job.result or {}).get("run_id"))
        found = self.run(run_id).evaluation
        if found is None:
            raise BadAnswer(f"job {job.job_id} is done, but run {run_id} has no answers; does the service run another version?")
        return found

    def compare(
        self,
        a: str,
        b: str,
        *,
        measures: str | Sequence[str] = (),
        primary: str | None = None,
        alpha: float = 0.05,
        correction: Literal["holm", "benjamini-hochberg", "none"] | None = None,
        by: str | Sequence[str] = (),
        allow_different_sets: bool = False,
    ) -> answers.Compared:
        """Return whether run ``b`` is better than run ``a``, over the queries that both answered, and how certain that is.

        The primary measure decides alone, unless several ``measures`` or a ``correction`` are given.
        ``by`` are fields of the queries by whose values it is told as well. Raises MissingInput for a run that is not there,
        and CannotDecide if the two cannot be compared.
        """
        body = {
            "a": a, "b": b, "measures": several(measures), "primary": primary, "alpha": alpha, "correction": correction,
            "by": several(by),
            "allow_different_sets": allow_different_sets,
        }  # fmt: skip
        return self._wire.write_as(answers.Compared, "POST", "/v1/compare", body)

    def gate(
        self,
        run: str | None = None,
        *,
        baseline: str | None,
        evaluate: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
        on_progress: Watching | None = None,
    ) -> answers.Gated:
        """Judge a run and return pass, fail or undecided with every check; nothing is raised for a run that fails.

        ``baseline`` is ``name`` or ``name@version``, None judges by floors and ceilings alone. In place of ``run``,
        ``evaluate`` says what to evaluate first, such as ``{"golden": "hotel", "retriever": "bm25"}``; where that becomes a
        job, it is waited for. ``policy`` are rules in place of the server's.
        """
        body = given({"run": run, "evaluate": evaluate, "policy": policy}) | {"baseline": baseline}
        reply = self._wire.send("POST", "/v1/gate", content=encoded(body))
        if reply.status != TAKEN_ON:
            return read(answers.Gated, reply.json)
        return read(answers.Gated, self.jobs.wait(_job_id(reply), on_progress=on_progress).result, place="result")

    # ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def runs(
        self, *, golden: str | None = None, retriever: str | None = None, since: str | None = None
    ) -> Iterator[answers.RunItem]:
        """Yield the runs of the project, the newest first; ``golden`` is a name or like hotel-v1.0.0, ``since`` ISO 8601."""
        return self._wire.items(answers.RunItem, "/v1/runs", golden=golden, retriever=retriever, since=since)

    def run(self, run_id: str) -> answers.RunFigures:
        """Return a run: its figures, and the whole evaluation where its answers are kept; raises MissingInput."""
        return self._wire.get_as(answers.RunFigures, _run_path(run_id))

    def run_queries(self, run_id: str, *, sort: Literal["id", "worst"] = "id") -> Iterator[answers.QueryItem]:
        """Yield the queries of a run, by id or the worst first."""
        return self._wire.items(answers.QueryItem, f"{_run_path(run_id)}/queries", sort=sort)

    def query(self, run_id: str, query_id: str) -> answers.QueryOfRun:
        """Return one query of a run: every hit with its grade, and every relevant document that was lost."""
        return self._wire.get_as(answers.QueryOfRun, f"{_run_path(run_id)}/queries/{segment(query_id, 'query_id')}")

    def upload_run(
        self,
        run: Mapping[str, Mapping[str, float]] | bytes,
        *,
        golden: str,
        name: str | None = None,
        measures: str | Sequence[str] = (),
        allow: Excuse | Sequence[Excuse] = (),
    ) -> answers.Evaluated:
        """Score answers that were made elsewhere and return the evaluation, which is kept.

        ``run`` is ``{query: {document: score}}``, or the bytes of a run in TREC's format. Queries that it does not answer are
        listed as failures and left out of the means. Raises InputError naming line, value and cure.
        """
        trec = isinstance(run, bytes)
        params = {"golden": golden, "name": name, "measure": several(measures), "allow": several(allow)}
        content = run if isinstance(run, bytes) else encoded({query: dict(hits) for query, hits in run.items()})
        headers = {"Content-Type": "text/plain" if trec else "application/json"}
        return read(
            answers.Evaluated, self._wire.send("POST", "/v1/runs", params=params, content=content, headers=headers).json
        )

    def report(
        self,
        run_id: str,
        *,
        format: Literal["html", "md", "json"] = "html",
        against: str | None = None,
        baseline: str | None = None,
    ) -> str:
        """Return everything there is to tell about a run as one text: a page, Markdown or JSON.

        ``against`` is a run to compare with, ``baseline`` a baseline to judge by.
        """
        return self._text(f"{_run_path(run_id)}/report", format=format, against=against, baseline=baseline)

    # ── searching and logging ───────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        retriever: str | None = None,
        scope: Mapping[str, str] | None = None,
        explain: bool = False,
        log: bool = True,
        session_id: str | None = None,
        user_id: str | None = None,
        tool: str | None = None,
    ) -> answers.Found:
        """Search the documents that the server serves and return the best ``k``.

        The search is in the log before it is answered, which needs a key with scope 'write'; ``log=False`` leaves it out.
        ``scope`` are metadata values that documents must have, ``explain`` adds every stage's rank and score.
        """
        body = given(
            {
                "query": query, "k": k, "retriever": retriever, "scope": None if scope is None else dict(scope),
                "explain": explain, "log": log, "session_id": session_id, "user_id": user_id, "tool": tool,
            }
        )  # fmt: skip
        return self._wire.write_as(answers.Found, "POST", "/v1/search", body)

    def log(self, query: str, *, tool_name: str, **search: Any) -> str:
        """Log a search that was made elsewhere and return its id, which feedback names; it is stored when this returns.

        Fields of a search, none of which need be known: ``result_ids``, ``scores``, ``total_latency_ms``, ``session_id``,
        ``user_id``, ``query_id``, ``created_at``, ``stages``, ``flags``, ``degraded``, ``fallback``, ``retriever`` and the
        others of ``LoggedSearch``. Raises InputError for one that there is not.
        """
        told = self._wire.write_as(
            answers.Logged, "POST", "/v1/queries", given({"query": query, "tool_name": tool_name, **search})
        )
        return told.query_ids[0]

    def log_many(self, searches: Iterable[Mapping[str, Any]]) -> answers.Logged:
        """Log searches, any number of them, 1,000 in a request, and return what became of all.

        Each has ``query``, ``tool_name`` and whatever ``log`` takes; one with a ``query_id`` that is there already stays as
        it is.
        """
        told = [self._wire.write_as(answers.Logged, "POST", "/v1/queries", part) for part in parts(searches)]
        return answers.Logged(
            sum(one.accepted for one in told),
            sum(one.stored for one in told),
            tuple(query_id for one in told for query_id in one.query_ids),
        )

    # ── watching ────────────────────────────────────────────────────────────────────────────────────────────────────

    def health(self) -> answers.HealthState:
        """Return one look at everything that runs; nothing is raised for what is wrong."""
        return self._wire.get_as(answers.HealthState, "/v1/health")

    def diagnostics(self) -> answers.Diagnostics:
        """Return versions, schema, uptime, intake, jobs and settings of the server; needs 'admin'."""
        return self._wire.get_as(answers.Diagnostics, "/v1/diagnostics")

    def metrics_text(self) -> str:
        """Return what Prometheus reads at /metrics, in its text format."""
        return self._text("/metrics")

    def alerts(self) -> answers.Alerts:
        """Return the state of every alert rule over the stored history of the project."""
        return self._wire.get_as(answers.Alerts, "/v1/alerts")

    def alert_rules(self) -> str:
        """Return the alert rules as a file for Prometheus, with the metrics called as this service calls them."""
        return self._text("/v1/alerts/rules")

    def history(
        self,
        series: str,
        *,
        labels: Mapping[str, str] | None = None,
        since: str | None = None,
        until: str | None = None,
        points: int | None = None,
    ) -> answers.History:
        """Return how a metric was over time, the last day unless given; raises InputError for one that there is not."""
        wanted = [f"{name}={value}" for name, value in (labels or {}).items()] or None
        return self._wire.get_as(
            answers.History, "/v1/history", series=series, label=wanted, since=since, until=until, points=points
        )

    def openapi(self) -> Mapping[str, Any]:
        """Return the OpenAPI document of the service, which says everything that this client knows."""
        return dict(self._wire.get("/v1/openapi.json"))

    def _text(self, path: str, **params: Any) -> str:
        return self._wire.send("GET", path, params=params).body.decode("utf-8", "replace")


def _run_path(run_id: str) -> str:
    return f"/v1/runs/{segment(run_id, 'run_id')}"


def _request(
    test_set: Mapping[str, Any] | None, golden: str | None, retriever: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    if test_set is not None and golden is not None:
        raise InputError("test_set and golden both name the golden set; give one of them")
    said = {"test_set": None if test_set is None else dict(test_set), "golden": golden, "retriever": retriever}
    listed = {name: several(options[name]) for name in ("measures", "allow") if isinstance(options.get(name), str)}
    return given({**said, **options, **listed})


def _job_id(reply: Response) -> str:
    try:
        return str(reply.json["job_id"])
    except (KeyError, TypeError):
        raise BadAnswer("the service took work on without naming the job; does the service run another version?") from None
