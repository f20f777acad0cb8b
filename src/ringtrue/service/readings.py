"""From the store to readings: each part of the metrics by itself, so that one that fails takes no other with it.

Every part is bounded, whatever the store holds: the newest results, the pairs of retriever and golden set evaluated lately, a
few slices, the newest jobs.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, get_args

from ringtrue.answers import JobState, ReviewState, Status
from ringtrue.errors import SpecError
from ringtrue.golden import NO_VALUE
from ringtrue.log import living, log_folder, losses
from ringtrue.measures import Measure, members
from ringtrue.rollout import shadow_of
from ringtrue.rollout.health import SearchOnSet, of_production, production_pair, set_name
from ringtrue.run import unpacked
from ringtrue.service.gauges import WHOLE, Reading, label_value
from ringtrue.store import StoredResult, timestamp

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.store import Store

RESULTS = 100
"""Newest results that are looked at."""
PAIRS = 8
"""Pairs of retriever and golden set with gauges of their own."""
RECENT = timedelta(days=14)
"""A pair that was not evaluated for so long has none any more, unless it is production's or the newest."""
WEEK = timedelta(days=7)
ALIKE = 10
"""Queries judged alike in two versions of a golden set from which on a change between them is told."""
SLICES = 20
"""Slices of a golden set with gauges of their own."""
MEASURES = 40
FEATURES = 50
"""Flags, shadows and tests with gauges of their own, by name."""
JOBS = 200
SETTLING = timedelta(seconds=15)
"""Searches so young are not counted yet: others with the same time may still be on their way into the database."""
VERDICTS = ("pass", "fail", "undecided")
PRODUCTION, OTHER = "production", "other"
"""Whose gate it is: that of the pair which a project's quality is told of, or of another one."""
GRAPHED = {
    "recall_at_k": "ringtrue_retrieval_recall_at_k",
    "ndcg_at_k": "ringtrue_retrieval_ndcg_at_k",
    "mrr": "ringtrue_retrieval_mrr",
}
MEMORY = {
    "constitutional_surfacing_at_k": "ringtrue_constitutional_surfacing_ratio",
    "silent": "ringtrue_memory_silent_ratio",
    "false_inject_at_k": "ringtrue_memory_false_inject_ratio",
}
PERCENTILES = ("p50", "p95", "p99")

Read = Callable[["Store", str, datetime], Iterator[Reading]]


class Quality:
    """What the newest evaluations found, by slice too; read anew only when there is a newer one, or another baseline.

    ``served`` is the search of the server, whose gate is production's; where nobody says, it is the baseline's.
    """

    def __init__(self, served: str | None = None) -> None:
        self._served = served
        self._known: dict[str, tuple[str, tuple[Reading, ...]]] = {}

    def __call__(self, store: Store, project: str, now: datetime) -> Iterator[Reading]:
        newest = store.results(project=project, limit=1)
        if not newest:
            return
        # Beside the newest run, the day decides which results are recent, and the baselines which pair is production's.
        kept = max((one.created_at for one in store.baselines(project=project)), default="")
        state = f"{newest[0].run_id} {now.date()} {kept}"
        if self._known.get(project, ("",))[0] != state:
            results = [one for one in store.results(project=project, limit=RESULTS) if of_production(one)]
            pair = production_pair(store, project=project, served=self._served)
            # Production's comes first: however much is tried beside it, its gauges stay.
            results.sort(key=lambda one: pair is None or not pair.has(one))
            self._known[project] = (state, (*_gate(results, pair, now), *_quality(store, results, now)))
        yield from self._known[project][1]


def _pairs(results: list[StoredResult], now: datetime) -> list[StoredResult]:
    """Return the newest result of each pair: production's and the newest however old, others while they are recent."""
    oldest, newest = timestamp(now - RECENT), max((one.created_at for one in results), default="")
    pairs: dict[tuple[str, str], StoredResult] = {}
    for one in results:
        key = (one.retriever or "", set_name(one.golden))
        if key not in pairs and (not pairs or one.created_at == newest or (one.created_at >= oldest and len(pairs) < PAIRS)):
            pairs[key] = one
    return list(pairs.values())


def _labels(one: StoredResult) -> dict[str, str]:
    return {"retriever": label_value(one.retriever or ""), "golden": label_value(one.golden or "")}


def _gate(results: list[StoredResult], pair: SearchOnSet | None, now: datetime) -> Iterator[Reading]:
    for one in _pairs([one for one in results if one.gate is not None], now):
        role = PRODUCTION if pair is not None and pair.has(one) else OTHER
        for verdict in VERDICTS:
            yield Reading("ringtrue_gate", float(one.gate == verdict), {"verdict": verdict, "role": role, **_labels(one)})


def _quality(store: Store, results: list[StoredResult], now: datetime) -> Iterator[Reading]:
    for one in _pairs(results, now):
        labels = _labels(one)
        moment = datetime.fromisoformat(one.created_at).timestamp()
        yield Reading("ringtrue_evaluation_timestamp_seconds", moment, labels)
        yield Reading("ringtrue_retrieval_queries", float(one.query_count), labels)
        for part in PERCENTILES:
            if part in one.latency_ms:
                yield Reading(
                    "ringtrue_evaluation_latency_seconds", one.latency_ms[part] / 1000, {"percentile": part, **labels}
                )
        for name, value in list(one.metrics.items())[:MEASURES]:
            yield from _measured(name, value, labels)
        yield from _slices(store, one, labels)
        yield from _since_last_version(store, results, one, labels, now)


def _since_last_version(
    store: Store, results: list[StoredResult], one: StoredResult, labels: dict[str, str], now: datetime
) -> Iterator[Reading]:
    """Yield how recall changed since the best earlier version of the golden set, over the queries that both judge alike.

    The figures of two versions cannot be compared, and the median of the new one knows nothing of before.
    """
    oldest = timestamp(now - WEEK)
    pair = [each for each in results if each.retriever == one.retriever and set_name(each.golden) == set_name(one.golden)]
    versions: dict[str | None, list[StoredResult]] = {}
    for each in pair:
        if each.golden != one.golden and oldest <= each.created_at < one.created_at:
            versions.setdefault(each.golden, []).append(each)

    def judgments(result: StoredResult) -> dict[str, dict[str, int]]:
        run = store.run(result.run_id, project=result.project)
        return {} if run is None else unpacked(run.content, name=run.name).qrels.to_dict()

    def values(result: StoredResult, name: str, queries: list[str]) -> list[float]:
        return [result.per_query.get(query, {}).get(name, math.nan) for query in queries]

    after = judgments(one) if versions else {}
    changes: dict[str, list[float]] = {}
    for earlier in versions.values():
        before = judgments(earlier[0])
        alike = [query for query in after if after[query] == before.get(query)]
        for name in (name for name in one.metrics if (_graphed(name, GRAPHED) or ("",))[0] == GRAPHED["recall_at_k"]):
            # Of other queries there is nothing to be found.
            asked = [query for query, value in zip(alike, values(one, name, alike), strict=True) if not math.isnan(value)]
            means = [math.fsum(values(each, name, asked)) / len(asked) for each in (one, *earlier) if asked]
            if len(asked) >= ALIKE and not any(map(math.isnan, means)):
                changes.setdefault(name, []).append(means[0] - median(means[1:]))
    for name, found in changes.items():
        # Against the best version: a drop that came with one version lasts, however many follow.
        cut = (_graphed(name, GRAPHED) or ("", {}))[1]
        yield Reading("ringtrue_retrieval_recall_version_change", min(found), {**cut, **labels})


def _measured(name: str, value: float, labels: dict[str, str]) -> Iterator[Reading]:
    if not math.isfinite(value):
        return
    yield Reading("ringtrue_retrieval_measure", value, {"measure": label_value(name), **labels})
    graphed = _graphed(name, GRAPHED | MEMORY)
    if graphed is not None:
        metric, cut = graphed
        sliced = {"slice": WHOLE} if metric in GRAPHED.values() else {}
        yield Reading(metric, value, {**cut, **labels, **sliced})


def _graphed(name: str, metrics: dict[str, str]) -> tuple[str, dict[str, str]] | None:
    """Return the metric of a measure with its cut-off; None for one with other options, which has its name only."""
    try:
        snake, options = Measure.parse(name).prometheus
    except SpecError:
        return None
    metric = metrics.get(snake)
    return (metric, options) if metric is not None and set(options) <= {"k"} else None


def _slices(store: Store, result: StoredResult, labels: dict[str, str]) -> Iterator[Reading]:
    """Yield the graphed measures by slice, where the stored run says which query is in which."""
    kept = store.run(result.run_id, project=result.project)
    if kept is None:
        return
    evaluation = unpacked(kept.content, name=kept.name)
    graphed = {name: found for name in result.metrics if (found := _graphed(name, GRAPHED)) is not None}
    for label, queries in _members(evaluation)[:SLICES]:
        for name, (metric, cut) in graphed.items():
            values = [result.per_query[one][name] for one in queries if name in result.per_query.get(one, {})]
            defined = [value for value in values if not math.isnan(value)]
            if defined:
                yield Reading(metric, math.fsum(defined) / len(defined), {**cut, **labels, "slice": label_value(label)})


def _members(evaluation: Evaluation) -> list[tuple[str, list[str]]]:
    """Return the queries of each slice, ``field=value``, the largest of the most telling field first."""
    found = []
    for name in evaluation.setup.golden.slices:
        sliced = members(evaluation.scores.facts, name, evaluation.scores.query_ids).items()
        parts = {f"{name}={value}": queries for value, queries in sliced if value != NO_VALUE}
        found += sorted(parts.items(), key=lambda item: (-len(item[1]), item[0]))
    return found


def review(store: Store, project: str, now: datetime) -> Iterator[Reading]:
    """Yield the backlog of the review queue."""
    backlog = store.backlog(project=project)
    for state in get_args(ReviewState):
        yield Reading("ringtrue_review_backlog", float(backlog[state]), {"state": state})
    if backlog["oldest_pending_at"] is not None:
        waits = now - datetime.fromisoformat(backlog["oldest_pending_at"])
        yield Reading("ringtrue_review_oldest_pending_seconds", max(0.0, waits.total_seconds()))


class LogCounts:
    """Searches that came into the log, and events that did not; both only ever grow while the process runs."""

    def __init__(self) -> None:
        self._counting = threading.Lock()
        self._until: dict[str, datetime] = {}
        self._searches: dict[str, int] = {}
        self._gone: dict[tuple[str, str], int] = {}

    def __call__(self, store: Store, project: str, now: datetime) -> Iterator[Reading]:
        yield Reading("ringtrue_log_searches_total", float(self._searched(store, project, now - SETTLING)))
        # First the audit trail, then the counts of what it does not tell of yet: the other way round, an event that is told of
        # in between would count twice, and a counter cannot take that back.
        told = losses(store, project=project)
        folder = log_folder(store)
        writing = [counts for group in living(folder, project=project) for counts in group] if folder is not None else []
        for why in ("lost", "dropped", "refused"):
            untold = sum(getattr(counts.untold, why) for counts in writing)
            count = max(self._gone.get((project, why), 0), getattr(told, why) + untold)
            self._gone[project, why] = count
            yield Reading("ringtrue_log_dropped_total", float(count), {"why": why})

    def _searched(self, store: Store, project: str, until: datetime) -> int:
        with self._counting:  # or two who read at the same time would count the same searches
            since = self._until.setdefault(project, until)
            if until > since:
                new = store.count_queries(project=project, since=since, until=until)
                self._searches[project] = self._searches.get(project, 0) + new
                self._until[project] = until
            return self._searches.get(project, 0)


def shadow(store: Store, project: str, now: datetime) -> Iterator[Reading]:
    """Yield what the shadows of running features have shown."""
    running = [flag for flag in store.flags(project=project) if flag.shadow and flag.state in ("running", "paused")]
    for flag in running[:FEATURES]:
        found = shadow_of(store, flag)
        figures = {
            "queries": float(found.queries),
            "overlap_mean": found.overlap,
            "rank_correlation_mean": found.tau,
            "top_changed_ratio": found.top_changed,
            "failure_ratio": found.failure_share,
            "missing_ratio": found.missing_share,
            "p95_increase_ratio": found.p95_increase,
        }
        for name, value in figures.items():
            if value is not None:
                yield Reading(f"ringtrue_shadow_{name}", value, {"feature": label_value(flag.name)})


def trials(store: Store, project: str, now: datetime) -> Iterator[Reading]:
    """Yield how far sequential tests have come."""
    for test in store.tests(project=project)[:FEATURES]:
        labels = {"feature": label_value(test.feature_id)}
        for state in get_args(Status):
            yield Reading("ringtrue_test_state", float(test.status == state), {**labels, "state": state})
        yield Reading("ringtrue_test_samples", float(test.sample_count), labels)
        if test.method != "sprt" or test.sigma is not None:  # or the spread is not known, and there is no evidence yet
            yield Reading("ringtrue_test_llr", test.log_likelihood_ratio, labels)
            for bound, value in (("upper", test.upper_bound), ("lower", test.lower_bound)):
                yield Reading("ringtrue_test_llr_bound", value, {**labels, "bound": bound})


def flags(store: Store, project: str, now: datetime) -> Iterator[Reading]:
    """Yield the part of the traffic that each flag reaches."""
    for flag in store.flags(project=project)[:FEATURES]:
        yield Reading("ringtrue_flag_rollout_ratio", flag.rollout / 100, {"flag": label_value(flag.name)})


def jobs(store: Store, project: str, now: datetime) -> Iterator[Reading]:
    """Yield the newest jobs by state."""
    states = Counter(job.state for job in store.jobs(project=project, limit=JOBS))
    for state in get_args(JobState):
        yield Reading("ringtrue_jobs", float(states[state]), {"state": state})
