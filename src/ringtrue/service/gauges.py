"""The metrics of the service: what each is called, what it says, its labels, and the text that Prometheus reads.

The catalogue is the contract: rules, dashboard and documentation use these names and labels and no others. ``MetricNames`` says
what they are called outside, where an operator keeps names of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Literal

from prometheus_client import Histogram
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

from ringtrue.errors import InputError, nearest

PREFIX = "ringtrue"
WHOLE = "all"
"""The slice that is the whole golden set."""
LONGEST_VALUE = 120
"""Letters of a label's value; what is longer is cut and marked with its hash."""

Kind = Literal["gauge", "counter", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its canonical name, what it says, and its labels beside ``project``."""

    name: str
    kind: Kind
    says: str
    labels: tuple[str, ...] = ()

    @property
    def all_labels(self) -> tuple[str, ...]:
        return ("project", *self.labels)

    def sample_names(self, name: str) -> tuple[str, ...]:
        """Return the names that its samples have where the metric is called ``name``."""
        return tuple(f"{name}_{part}" for part in ("bucket", "count", "sum")) if self.kind == "histogram" else (name,)


@dataclass(frozen=True, slots=True)
class Reading:
    """One figure at one moment. What is not known has no reading: no number stands in for it."""

    metric: str
    """The canonical name."""
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    """Without the project."""


_EVALUATED = ("retriever", "golden", "slice")
_RESULT = ("retriever", "golden")

CATALOGUE: tuple[Metric, ...] = (
    Metric("ringtrue_build_info", "gauge", "Always 1; the labels say which version runs.", ("version", "python")),
    Metric("ringtrue_store_up", "gauge", "1 if the store can be read and accepts writes, else 0."),
    Metric("ringtrue_scrape_key_expires_timestamp_seconds", "gauge", "When the API key of this scrape expires (Unix time)."),
    Metric("ringtrue_collect_errors_total", "counter", "Parts of these metrics that could not be read.", ("part",)),
    Metric("ringtrue_retrieval_recall_at_k", "gauge", "Recall in the top k, newest evaluation.", ("k", *_EVALUATED)),
    Metric(
        "ringtrue_retrieval_recall_version_change",
        "gauge",
        "Change of recall since the best golden set version of 7 days, over the queries with the same judgments in both.",
        ("k", *_RESULT),
    ),
    Metric("ringtrue_retrieval_ndcg_at_k", "gauge", "nDCG of the top k, newest evaluation.", ("k", *_EVALUATED)),
    Metric("ringtrue_retrieval_mrr", "gauge", "Mean reciprocal rank over whole answers, newest evaluation.", _EVALUATED),
    Metric("ringtrue_retrieval_measure", "gauge", "Every measure of the newest evaluation by its name.", ("measure", *_RESULT)),
    Metric("ringtrue_retrieval_queries", "gauge", "Queries of the newest evaluation.", _RESULT),
    Metric("ringtrue_evaluation_timestamp_seconds", "gauge", "When the newest evaluation was made.", _RESULT),
    Metric("ringtrue_evaluation_latency_seconds", "gauge", "Latency in the newest evaluation.", ("percentile", *_RESULT)),
    Metric("ringtrue_gate", "gauge", "1 for the verdict of the newest gate, 0 for the others.", ("verdict", "role", *_RESULT)),
    Metric(
        "ringtrue_constitutional_surfacing_ratio",
        "gauge",
        "Queries with every constitutional item in the top k.",
        ("k", *_RESULT),
    ),
    Metric("ringtrue_memory_silent_ratio", "gauge", "Queries to which a memory said nothing, newest evaluation.", _RESULT),
    Metric("ringtrue_memory_false_inject_ratio", "gauge", "Queries that were shown something irrelevant.", ("k", *_RESULT)),
    Metric("ringtrue_review_backlog", "gauge", "Pairs in the review queue by state.", ("state",)),
    Metric("ringtrue_review_oldest_pending_seconds", "gauge", "How long the oldest pair waits for review."),
    Metric("ringtrue_log_searches_total", "counter", "Searches that came into the log while this process ran."),
    Metric("ringtrue_log_dropped_total", "counter", "Events that are not in the log, by what became of them.", ("why",)),
    Metric("ringtrue_log_queue_waiting", "gauge", "Rows that wait to be written into the log."),
    Metric("ringtrue_log_queue_capacity", "gauge", "Rows that may wait before requests are refused."),
    Metric("ringtrue_search_latency_seconds", "histogram", "How long logged and served searches took."),
    Metric("ringtrue_http_request_duration_seconds", "histogram", "How long requests took.", ("method", "route", "status")),
    Metric("ringtrue_shadow_queries", "gauge", "Queries that a candidate answered beside production.", ("feature",)),
    Metric("ringtrue_shadow_overlap_mean", "gauge", "Mean overlap (Jaccard) of the two answers.", ("feature",)),
    Metric("ringtrue_shadow_rank_correlation_mean", "gauge", "Mean rank correlation of the two answers.", ("feature",)),
    Metric("ringtrue_shadow_top_changed_ratio", "gauge", "Answers with another first hit.", ("feature",)),
    Metric("ringtrue_shadow_failure_ratio", "gauge", "Queries to which the candidate gave no answer.", ("feature",)),
    Metric("ringtrue_shadow_missing_ratio", "gauge", "Part of the live sample that is not stored.", ("feature",)),
    Metric("ringtrue_shadow_p95_increase_ratio", "gauge", "How much longer the candidate's p95 is: 0.2 is 20 %.", ("feature",)),
    Metric("ringtrue_test_state", "gauge", "1 for the state of a sequential test, 0 for the others.", ("feature", "state")),
    Metric("ringtrue_test_samples", "gauge", "Queries that a sequential test has counted.", ("feature",)),
    Metric("ringtrue_test_llr", "gauge", "Evidence of a sequential test (log-likelihood ratio).", ("feature",)),
    Metric("ringtrue_test_llr_bound", "gauge", "Where the evidence decides a test.", ("feature", "bound")),
    Metric("ringtrue_flag_rollout_ratio", "gauge", "Part of the traffic that a flag reaches.", ("flag",)),
    Metric("ringtrue_jobs", "gauge", "The newest 200 jobs by state.", ("state",)),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in CATALOGUE}


class MetricNames:
    """What each metric is called outside: another prefix for all, a name of its own for some.

    Raises InputError for a metric that there is not, a counter's name that does not end in ``_total``, and a name given twice.

    >>> MetricNames(own={"ringtrue_retrieval_recall_at_k": "medicalkg_retrieval_recall_at_k"})["ringtrue_retrieval_recall_at_k"]
    'medicalkg_retrieval_recall_at_k'
    >>> MetricNames(prefix="shop")["ringtrue_gate"]
    'shop_gate'
    """

    def __init__(self, *, prefix: str = PREFIX, own: Mapping[str, str] | None = None) -> None:
        own = own or {}
        for name in own:
            if name not in METRICS:
                raise InputError(f"[serve.gauges]: there is no metric '{name}'; did you mean {nearest(name, METRICS)}?")
        self._outside = {name: own.get(name, prefix + name.removeprefix(PREFIX)) for name in METRICS}
        taken: dict[str, str] = {}
        for metric in CATALOGUE:
            outside = self._outside[metric.name]
            if metric.kind == "counter" and not outside.endswith("_total"):
                raise InputError(
                    f"[serve.gauges]: {metric.name} counts, so its name must end in _total, unlike '{outside}'; "
                    f"write '{outside}_total'"
                )
            for sample in metric.sample_names(outside):
                if sample in taken:
                    raise InputError(
                        f"[serve.gauges]: {taken[sample]} and {metric.name} would both be called '{sample}'; rename one"
                    )
                taken[sample] = metric.name

    def __getitem__(self, canonical: str) -> str:
        return self._outside[canonical]


@lru_cache(maxsize=10_000)
def label_value(text: str) -> str:
    """Return a text as it may stand in a label: bounded, printable, and such that UTF-8 can hold it.

    >>> label_value("bm25")
    'bm25'
    >>> len(label_value("x" * 1000))
    120
    """
    shown = "".join(letter if letter.isprintable() else " " for letter in text)  # a lone surrogate is not printable
    if len(shown) <= LONGEST_VALUE:
        return shown
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{shown[: LONGEST_VALUE - len(mark) - 1]}…{mark}"


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
NOBODY = ""
"""The project of requests without a valid key."""
SEARCHES, REQUESTS = "ringtrue_search_latency_seconds", "ringtrue_http_request_duration_seconds"
SEARCH_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
REQUEST_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0)


class Durations:
    """How long requests and searches took in this process. A request has a route of the application, or ``other``."""

    def __init__(self) -> None:
        self._searches, self._requests = (
            Histogram(name, METRICS[name].says, METRICS[name].all_labels, registry=None, buckets=buckets)
            for name, buckets in ((SEARCHES, SEARCH_BUCKETS), (REQUESTS, REQUEST_BUCKETS))
        )

    def request(self, method: str, route: str, status: int, seconds: float, *, project: str | None = None) -> None:
        """Count a request; ``route`` is the template of its address, ``project`` that of its caller, None without a key."""
        known = method if method in METHODS else OTHER
        self._requests.labels(project or NOBODY, known, route, str(status)).observe(seconds)

    def search(self, project: str, seconds: float) -> None:
        """Count a search."""
        self._searches.labels(project).observe(seconds)

    def families(self, projects: set[str], names: MetricNames) -> Iterator[Family]:
        """Yield the histograms of these projects."""
        for name, source in ((SEARCHES, self._searches), (REQUESTS, self._requests)):
            family = Family(names[name], METRICS[name].says, "histogram")
            for sample in next(iter(source.collect())).samples:
                if sample.labels["project"] in projects and not sample.name.endswith("_created"):
                    family.add_sample(names[name] + sample.name.removeprefix(name), sample.labels, sample.value)
            if family.samples:
                yield family


def families(project: str, readings: Iterable[Reading], names: MetricNames) -> Iterator[Family]:
    """Yield the readings of a project by metric, in the order of the catalogue; a metric without one is absent."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for one in readings:
        labels = (project, *(one.labels[name] for name in METRICS[one.metric].labels))
        found.setdefault(one.metric, {})[labels] = one.value  # the same labels twice would spoil the whole scrape
    for metric in CATALOGUE:
        if metric.name in found:
            name = names[metric.name]
            family = Family(name.removesuffix("_total") if metric.kind == "counter" else name, metric.says, metric.kind)
            for labels, value in found[metric.name].items():
                family.add_sample(name, dict(zip(metric.all_labels, labels, strict=True)), value)
            yield family


def encoded(told: Iterable[Family], accept: str | None) -> tuple[bytes, str]:
    """Return metrics as bytes with their content type: OpenMetrics where ``accept`` asks for it."""
    made: Any = SimpleNamespace(collect=lambda: told)  # all that the writers use of a registry
    if "application/openmetrics-text" in (accept or ""):
        return generate_openmetrics(made), CONTENT_TYPE_LATEST  # type: ignore[no-untyped-call]
    return generate_latest(made), CONTENT_TYPE_PLAIN_0_0_4
