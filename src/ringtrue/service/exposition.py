"""From readings and counted durations to what Prometheus reads, in its text format or as OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from ringtrue.service.gauges import CATALOGUE, METRICS, MetricNames, Reading, label_value

MOST_ROUTES = 300
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
NOBODY = ""
"""The project of requests without a valid key."""
SEARCHES, REQUESTS = "ringtrue_search_latency_seconds", "ringtrue_http_request_duration_seconds"
SEARCH_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
REQUEST_BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 60.0)


class Durations:
    """How long requests and searches took in this process. However strange the requests, the number of series is bounded."""

    def __init__(self) -> None:
        self._searches = _histogram(SEARCHES, SEARCH_BUCKETS)
        self._requests = _histogram(REQUESTS, REQUEST_BUCKETS)
        self._routes: set[str] = {OTHER}

    def request(self, method: str, route: str, status: int, seconds: float, *, project: str | None = None) -> None:
        """Count a request; ``route`` is the template of its address, ``project`` that of its caller, None without a key."""
        if route not in self._routes:
            if len(self._routes) <= MOST_ROUTES:
                self._routes.add(route)
            else:
                route = OTHER
        known = method if method in METHODS else OTHER
        self._requests.labels(project or NOBODY, known, label_value(route), str(status)).observe(seconds)

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


def _histogram(name: str, buckets: tuple[float, ...]) -> Histogram:
    metric = METRICS[name]
    return Histogram(name, metric.says, metric.all_labels, registry=None, buckets=buckets)


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
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_FixedFamilies(tuple(told)))
    if "application/openmetrics-text" in (accept or ""):
        body: bytes = generate_openmetrics(registry)  # type: ignore[no-untyped-call]
        return body, CONTENT_TYPE_LATEST
    return generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4


class _FixedFamilies(Collector):
    """A collector of families that are made already."""

    def __init__(self, made: tuple[Family, ...]) -> None:
        self._made = made

    def collect(self) -> Iterable[Family]:
        return self._made
