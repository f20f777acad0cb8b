"""The runs of a project as a reader looks for them: filtered, sorted, and page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringtrue.errors import MissingInput
from ringtrue.report import known
from ringtrue.retrieve import shorten
from ringtrue.rollout.health import set_name
from ringtrue.service.errors import Refused
from ringtrue.service.models import wrong_cursor

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.store import StoredResult

AT_A_TIME, MOST_LOOKED_AT = 100, 500
"""Runs that are read at a time, and before a list ends although there may be more."""
OTHERS = 6
"""Other runs that are shown beside a query."""
SHOWN = ("nDCG@10", "R@10", "RR")
"""The measures that lists of runs show."""


@dataclass(frozen=True)
class RunFilters:
    """Which runs somebody wants to see; None where it does not matter."""

    golden: str | None = None
    """Name of a golden set, or one version of it like hotel-v1.0.0."""
    retriever: str | None = None
    """A part of its expression, in full or as it is called in short."""
    gate: str | None = None

    def __bool__(self) -> bool:
        return any((self.golden, self.retriever, self.gate))

    def hold(self, row: StoredResult) -> bool:
        """True for a run that is wanted."""
        return (
            (not self.golden or (row.golden or "") == self.golden or set_name(row.golden) == self.golden)
            and (not self.retriever or self.retriever.casefold() in f"{row.retriever} {shorten(row.retriever)}".casefold())
            and (not self.gate or row.gate == self.gate)
        )


@dataclass(frozen=True)
class FoundRuns:
    """Some of the runs, and the cursor of the next page."""

    rows: list[StoredResult]
    next: str | None
    limited: bool = False
    """True where only the newest were looked at, and there are more."""


def find_runs(
    service: Service, caller: Caller, wanted: RunFilters, *, sort: str = "-when", cursor: str | None = None, limit: int = 50
) -> FoundRuns:
    """Return the runs that are wanted: in the order of time page by page, in any other among the newest 500.

    Raises Refused (422) for an invalid cursor or order.
    """
    key, by_time = ORDERS.get(sort.removeprefix("-")), sort == "-when"
    if key is None:
        raise Refused(422, "invalid_input", f"runs cannot be sorted by '{sort:.40}'; use {', '.join(ORDERS)}")
    rows, after = newest_runs(
        service, caller, wanted.hold, limit=limit if by_time else MOST_LOOKED_AT, cursor=cursor if by_time else None
    )
    if by_time:
        return FoundRuns(rows, after)
    known = [row for row in rows if key(row) is not None]
    known.sort(key=lambda row: (key(row), row.run_id), reverse=sort.startswith("-"))
    # Runs without the figure come last in either direction.
    return FoundRuns([*known, *(row for row in rows if key(row) is None)], None, after is not None)


def newest_runs(
    service: Service,
    caller: Caller,
    wanted: Callable[[StoredResult], bool],
    *,
    limit: int,
    cursor: str | None = None,
    since: str | None = None,
    most: int = MOST_LOOKED_AT,
) -> tuple[list[StoredResult], str | None]:
    """Return the newest runs that are wanted among the next ``most``, and the cursor behind them if there may be more."""
    store, after, looked = service.of(caller), cursor, 0
    found: list[StoredResult] = []
    while len(found) <= limit and looked < most:
        try:
            rows = store.results(project=caller.project, since=since, limit=AT_A_TIME, before=after)
        except MissingInput:
            raise wrong_cursor() from None
        found += filter(wanted, rows)
        looked += len(rows)
        if len(rows) < AT_A_TIME:
            after = None
            break
        after = rows[-1].run_id
    return (found[:limit], found[limit - 1].run_id) if len(found) > limit else (found, after)


def figure(row: StoredResult, name: str) -> float | None:
    """Return the mean of a measure; None where the run has none."""
    return known(row.metrics.get(name))


ORDERS: dict[str, Callable[[StoredResult], Any]] = {
    "when": lambda row: row.created_at,
    "retriever": lambda row: (row.retriever or "").casefold() or None,
    "ndcg": lambda row: figure(row, "nDCG@10"),
    "recall": lambda row: figure(row, "R@10"),
    "mrr": lambda row: figure(row, "RR"),
    "p95": lambda row: row.latency_ms.get("p95"),
    "queries": lambda row: row.query_count,
}
"""By what runs are sorted."""


def kept_among(service: Service, caller: Caller, rows: Sequence[StoredResult]) -> dict[str, str]:
    """Return the names of the runs whose answers are kept, by run id."""
    return service.of(caller).run_names(project=caller.project, among=[row.run_id for row in rows]) if rows else {}


def elsewhere(service: Service, caller: Caller, row: StoredResult, query_id: str, measure: str) -> list[Any]:
    """Return the newest other runs on the same version of the golden set, each with what it reached with a query."""
    rows = service.of(caller).results(project=caller.project, limit=AT_A_TIME)
    same = [one for one in rows if one.golden == row.golden and one.run_id != row.run_id and query_id in one.per_query]
    return [(one, known(one.per_query[query_id].get(measure))) for one in same[:OTHERS]]
