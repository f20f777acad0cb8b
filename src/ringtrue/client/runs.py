"""Runs: evaluations that were made, down to every query, and those that were made elsewhere: ``/v1/runs``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from ringtrue.answers import Evaluated, QueryItem, QueryOfRun, RunFigures, RunItem
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, encoded, segment, several

Excuse = Literal["documents", "ids", "depth"]
"""What may be amiss with answers that were made elsewhere."""


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
