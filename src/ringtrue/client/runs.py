"""Runs: evaluations that were made, down to every query, and those that were made elsewhere: ``/v1/runs``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ringtrue.client.evaluations import Evaluated, Figures, Gated
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, encoded, segment, several

Excuse = Literal["documents", "ids", "depth"]
"""What may be amiss with answers that were made elsewhere."""


@dataclass(frozen=True, slots=True)
class RunItem:
    """A run as a list shows it."""

    run_id: str
    name: str | None
    """None if its answers are not kept."""
    run_type: Literal["full", "shadow", "regression", "ab_test"]
    created_at: str
    golden: str | None
    retriever: str | None
    queries: int
    metrics: Figures
    gate: Literal["pass", "fail", "undecided"] | None
    """The verdict, where it was gated."""
    feature_id: str | None
    kept: bool
    """Whether its answers are kept, not only its figures."""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run, and the whole evaluation where its answers are kept."""

    run: RunItem
    intervals: Mapping[str, tuple[float | None, ...]]
    latency_ms: Figures
    control_run_id: str | None
    deltas: Figures
    p_value: float | None
    is_significant: bool | None
    evaluation: Evaluated | None
    verdict: Gated | None
    """What the service's gate said of it, with every check."""


@dataclass(frozen=True, slots=True)
class QueryItem:
    """One query of a run as a list shows it."""

    query_id: str
    text: str
    scores: Figures
    latency_ms: float | None
    error: str | None
    hits: int
    lost: int
    """Relevant documents that are missing among the first hits."""


@dataclass(frozen=True, slots=True)
class StageRank:
    """What one step of the retriever said about a document."""

    name: str
    rank: int
    score: float | None


@dataclass(frozen=True, slots=True)
class RunHit:
    """A document that was found; its grade is None where nobody judged it."""

    rank: int
    doc_id: str
    title: str | None
    score: float | None
    grade: int | None
    channels: Mapping[str, int]
    stages: tuple[StageRank, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged document and where it was found."""

    doc_id: str
    title: str | None
    grade: int
    rank: int | None


@dataclass(frozen=True, slots=True)
class Lost:
    """A relevant document that is missing, and the stage that lost it."""

    doc_id: str
    title: str | None
    grade: int
    stage: str
    k: int
    rank: int | None
    ranks: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueryOfRun:
    """One query of a run with its ranking, its judgments and what was lost."""

    query_id: str
    text: str
    metadata: Mapping[str, Any]
    negative: bool
    scores: Figures
    latency_ms: float | None
    error: str | None
    hits: tuple[RunHit, ...]
    judged: tuple[Judged, ...]
    losses: tuple[Lost, ...]


class Runs:
    """The runs of the project."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self, *, golden: str | None = None, retriever: str | None = None, since: str | None = None) -> Iterator[RunItem]:
        """Yield the runs, the newest first; ``golden`` is a name or like hotel-v1.0.0."""
        return self._wire.items(RunItem, "/v1/runs", golden=golden, retriever=retriever, since=since)

    def get(self, run_id: str) -> RunFigures:
        """Return a run; raises MissingInput where there is none of that id."""
        return self._wire.get_as(RunFigures, self._path(run_id))

    def queries(self, run_id: str, *, sort: Literal["id", "worst"] = "id") -> Iterator[QueryItem]:
        """Yield the queries of a run, by id or the worst first."""
        return self._wire.items(QueryItem, f"{self._path(run_id)}/queries", sort=sort)

    def query(self, run_id: str, query_id: str) -> QueryOfRun:
        """Return one query of a run: every hit with its grade, and every relevant document that was lost."""
        return self._wire.get_as(QueryOfRun, f"{self._path(run_id)}/queries/{segment(query_id, 'query_id')}")

    def upload(
        self,
        run: Mapping[str, Mapping[str, float]] | bytes,
        *,
        golden: str,
        name: str | None = None,
        measures: str | Sequence[str] = (),
        allow: Excuse | Sequence[Excuse] = (),
    ) -> Evaluated:
        """Return the evaluation of answers that were made elsewhere, as ``Client.upload_run`` says."""
        trec = isinstance(run, bytes)
        reply = self._wire.send(
            "POST",
            "/v1/runs",
            params={"golden": golden, "name": name, "measure": several(measures), "allow": several(allow)},
            content=run if isinstance(run, bytes) else encoded({query: dict(hits) for query, hits in run.items()}),
            headers={"Content-Type": "text/plain" if trec else "application/json"},
        )
        return read(Evaluated, reply.json)

    def report(
        self,
        run_id: str,
        *,
        format: Literal["html", "md", "json"] = "html",
        against: str | None = None,
        baseline: str | None = None,
    ) -> str:
        """Return the report on a run, as ``Client.report`` says."""
        params = {"format": format, "against": against, "baseline": baseline}
        return self._wire.send("GET", f"{self._path(run_id)}/report", params=params).body.decode("utf-8", "replace")

    def _path(self, run_id: str) -> str:
        return f"/v1/runs/{segment(run_id, 'run_id')}"
