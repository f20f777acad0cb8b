"""What Prometheus reads. MetricNames, labels, isolation, and a scrape that survives whatever one part meets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from made import answers, evaluation, golden_set
from ringtrue.errors import InputError, Unreachable
from ringtrue.log import QueryLog
from ringtrue.records import Ranking
from ringtrue.rollout import record_evaluation
from ringtrue.service import create_app
from ringtrue.service.alerts import shipped_rules
from ringtrue.service.gauges import CATALOGUE, METRICS, MetricNames, label_value
from ringtrue.service.readings import Quality
from ringtrue.service.settings import Settings
from ringtrue.service.telemetry import Queue, Telemetry
from ringtrue.store import (
    ABTest,
    AuditEntry,
    Flag,
    LoggedQuery,
    ReviewItem,
    ShadowRun,
    Store,
    StoredBaseline,
    StoredJob,
    StoredResult,
    timestamp,
)
from stores import empty as empty
from stores import kind as kind
from stores import store as store
from stores import url as url

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
Samples = dict[str, list[tuple[dict[str, str], float]]]


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lite(tmp_path: Path) -> Iterator[Store]:
    """An empty store on SQLite, for what does not depend on the database."""
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


def samples(telemetry: Telemetry, project: str = "default", accept: str | None = None) -> Samples:
    """Scrape, read with the official parser, and return the samples by name."""
    body, kind = telemetry.scrape(project, accept)
    read = read_openmetrics if kind.startswith("application/openmetrics-text") else read_text
    found: Samples = {}
    for family in read(body.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def only(found: Samples, name: str, **labels: str) -> float:
    """Return the one sample of that name with these labels."""
    values = [value for have, value in found.get(name, []) if labels.items() <= have.items()]
    assert len(values) == 1, (name, labels, found.get(name))
    return values[0]


def result(run_id: str = "r1", **changes: Any) -> StoredResult:
    made = StoredResult(
        run_id, "full", timestamp(NOW), 50, {"R@10": 0.8, "nDCG@10": 0.7, "RR": 0.6},
        golden="hotel-v1.0.0", retriever="hybrid", latency_ms={"p95": 30.0},
    )  # fmt: skip
    return replace(made, **changes)


def filled(store: Store, project: str = "default") -> None:
    """Put something of everything into a project."""
    record_evaluation(store, evaluation(measures=("R@10", "nDCG@10", "RR", "P@5")), now=NOW, project=project)
    store.add_result(result("gated", created_at=timestamp(NOW - timedelta(hours=1)), gate="fail", project=project))
    waiting = ReviewItem("a", "q", "text", "d", timestamp(NOW - timedelta(days=2)), project)
    store.add_review_items([waiting, replace(waiting, item_key="b", state="approved")])
    store.set_flag(Flag("rerank", 25.0, project=project, shadow=True), who="ann", at=NOW)
    shadow = ShadowRun(
        "s1",
        timestamp(NOW),
        ("a",),
        ("b",),
        feature_id="rerank",
        project=project,
        rank_correlation=0.5,
        set_overlap=0.25,
        top_result_changed=True,
        order_differences=1,
    )
    store.add_shadow_runs([shadow, replace(shadow, query_id="s2", error="Timeout")])
    test = ABTest(
        "rerank", "running", 0.05, 0.2, 0.03, timestamp(NOW), timestamp(NOW), project,
        sigma=0.3, log_likelihood_ratio=1.5, upper_bound=2.77, lower_bound=-1.55, sample_count=120,
    )  # fmt: skip
    store.create_test(test)
    store.create_test(replace(test, feature_id="young", sigma=None))
    store.add_job(StoredJob("j1", "evaluate", "running", timestamp(NOW), timestamp(NOW), project=project))
    store.add_audit(AuditEntry(timestamp(NOW), "log", "log.lost", "run", {"dropped": 4, "refused": 1}, project))


def test_every_figure_of_a_filled_store_is_told(store: Store, clock: Clock) -> None:
    filled(store)
    telemetry = Telemetry(Settings(), store, queue=lambda: Queue(7, 100, {"default": 2, "other": 5}), now=clock)
    telemetry.durations.search("default", 0.03)
    telemetry.durations.request("GET", "/v1/runs/{run_id}", 200, 0.004, project="default")
    found = samples(telemetry)

    made = evaluation(measures=("R@10", "nDCG@10", "RR", "P@5"))
    whole = {"k": "10", "slice": "all", "retriever": "bm25", "golden": "made-v1.0.0", "project": "default"}
    assert only(found, "ringtrue_retrieval_recall_at_k", **whole) == made.metrics["R@10"]
    assert only(found, "ringtrue_retrieval_ndcg_at_k", **whole) == made.metrics["nDCG@10"]
    assert only(found, "ringtrue_retrieval_mrr", slice="all", retriever="bm25") == made.metrics["RR"]
    assert only(found, "ringtrue_retrieval_measure", measure="P@5") == made.metrics["P@5"]
    for value in ("factual", "comparative"):
        summary = made.scores.by("query_type", "R@10")[value]
        assert only(found, "ringtrue_retrieval_recall_at_k", slice=f"query_type={value}") == pytest.approx(summary.mean)
    assert only(found, "ringtrue_evaluation_timestamp_seconds", retriever="bm25") == NOW.timestamp()
    assert only(found, "ringtrue_evaluation_latency_seconds", retriever="hybrid", percentile="p95") == 0.03
    assert {labels["verdict"]: value for labels, value in found["ringtrue_gate"]} == {"pass": 0, "fail": 1, "undecided": 0}
    assert only(found, "ringtrue_review_backlog", state="pending_review") == 1
    assert only(found, "ringtrue_review_oldest_pending_seconds") == 2 * 86_400
    assert {labels["why"]: value for labels, value in found["ringtrue_log_dropped_total"]} == {
        "lost": 0, "dropped": 4, "refused": 1, "turned_away": 2,
    }  # fmt: skip
    assert only(found, "ringtrue_log_queue_waiting") / only(found, "ringtrue_log_queue_capacity") == 0.07
    assert only(found, "ringtrue_shadow_queries", feature="rerank") == 2
    assert only(found, "ringtrue_shadow_overlap_mean", feature="rerank") == 0.25
    assert only(found, "ringtrue_shadow_rank_correlation_mean", feature="rerank") == 0.5
    assert only(found, "ringtrue_shadow_top_changed_ratio", feature="rerank") == 1
    assert only(found, "ringtrue_shadow_failure_ratio", feature="rerank") == 0.5
    assert only(found, "ringtrue_test_llr", feature="rerank") == 1.5
    assert only(found, "ringtrue_test_llr_bound", feature="rerank", bound="lower") == -1.55
    assert only(found, "ringtrue_test_samples", feature="rerank") == 120
    assert only(found, "ringtrue_test_state", feature="rerank", state="running") == 1
    assert only(found, "ringtrue_test_state", feature="rerank", state="graduated") == 0
    assert only(found, "ringtrue_flag_rollout_ratio", flag="rerank") == 0.25
    assert only(found, "ringtrue_jobs", state="running") == 1
    assert only(found, "ringtrue_store_up") == 1
    assert only(found, "ringtrue_build_info") == 1
    assert only(found, "ringtrue_search_latency_seconds_count") == 1
    assert only(found, "ringtrue_search_latency_seconds_bucket", le="0.02") == 0
    assert only(found, "ringtrue_search_latency_seconds_bucket", le="0.05") == 1
    assert only(found, "ringtrue_http_request_duration_seconds_sum", route="/v1/runs/{run_id}", status="200") == 0.004
    assert all(value == 0 for _, value in found["ringtrue_collect_errors_total"])


@pytest.mark.parametrize(("skill", "worse"), [(0.9, False), (0.4, True)])
def test_a_new_version_of_the_golden_set_hides_no_fall_and_looks_like_none(
    lite: Store, clock: Clock, skill: float, worse: bool
) -> None:
    older = golden_set(queries=30)
    later = golden_set(queries=40)
    newer = replace(
        later,
        version="1.1.0",
        # 30 queries stay as they are, but for one whose judgments were corrected; 10 that nobody can answer are new.
        judgments=tuple(
            replace(one, grade=1) if one.query_id == "q000" else one
            for one in (*older.judgments, *(one for one in later.judgments if one.query_id >= "q030"))
        ),
    )
    unanswered = tuple(Ranking(f"q{number:03}", ()) for number in range(30, 40))
    for days, golden, rankings in (
        (3, older, answers(older, skill=0.9)),
        (2, older, answers(older, skill=0.9)),
        (1, newer, [*answers(older, skill=skill), *unanswered]),
    ):
        made = evaluation(golden, rankings, measures=("R@10",))
        record_evaluation(lite, made, now=NOW - timedelta(days=days))
    found = samples(Telemetry(Settings(), lite, now=clock))
    change = only(found, "ringtrue_retrieval_recall_version_change", k="10", golden="made-v1.1.0")
    assert (change < -0.05) is worse
    if not worse:
        assert change == 0  # although recall over the whole new set is lower
    last = replace(newer, version="1.2.0")
    made = evaluation(last, [*answers(older, skill=skill), *unanswered], measures=("R@10",))
    record_evaluation(lite, made, now=NOW - timedelta(hours=1))
    found = samples(Telemetry(Settings(), lite, now=clock))
    assert only(found, "ringtrue_retrieval_recall_version_change", k="10", golden="made-v1.2.0") == change


def test_names_and_labels_are_those_of_the_catalogue(lite: Store, clock: Clock) -> None:
    filled(lite)
    telemetry = Telemetry(Settings(), lite, queue=lambda: Queue(0, 1), now=clock)
    telemetry.durations.search("default", 0.1)
    telemetry.durations.request("GET", "/", 200, 0.1, project="default")
    found = samples(telemetry)
    told = {name: metric for metric in CATALOGUE for name in metric.sample_names(metric.name)}
    for name, values in found.items():
        for labels, _ in values:
            assert set(labels) - {"le"} == set(told[name].all_labels), name
            assert labels["project"] == "default"
    memory_only = {name for name in told if "memory" in name or "constitutional" in name}
    unused = {
        "ringtrue_shadow_p95_increase_ratio", "ringtrue_scrape_key_expires_timestamp_seconds",
        "ringtrue_retrieval_recall_version_change",
    }  # fmt: skip
    assert set(told) - set(found) == memory_only | unused


def test_the_gauge_keeps_a_name_of_its_own(lite: Store, clock: Clock) -> None:
    lite.add_result(result())
    settings = Settings(gauges={"ringtrue_retrieval_recall_at_k": "medicalkg_retrieval_recall_at_k"})
    body, _ = Telemetry(settings, lite, now=clock).scrape("default")
    found = [line for line in body.decode().splitlines() if line.startswith("medicalkg_retrieval_recall_at_k{")]
    assert len(found) == 1
    assert 'k="10"' in found[0]
    assert found[0].endswith(" 0.8")
    assert "ringtrue_retrieval_recall_at_k" not in body.decode()
    assert "ringtrue_retrieval_ndcg_at_k" in body.decode()


def test_another_prefix_renames_all(lite: Store, clock: Clock) -> None:
    telemetry = Telemetry(Settings(prefix="shop"), lite, now=clock)
    telemetry.durations.search("default", 0.1)
    found = samples(telemetry)
    assert found.keys() >= {"shop_store_up", "shop_search_latency_seconds_bucket", "shop_log_searches_total"}
    assert not [name for name in found if name.startswith("ringtrue")]


@pytest.mark.parametrize(
    ("own", "says"),
    [
        ({"ringtrue_recall": "mine"}, "there is no metric 'ringtrue_recall'; did you mean"),
        ({"ringtrue_log_searches_total": "searches"}, "write 'searches_total'"),
        ({"ringtrue_gate": "ringtrue_store_up"}, "would both be called 'ringtrue_store_up'"),
        ({"ringtrue_gate": "ringtrue_search_latency_seconds_sum"}, "would both be called"),
    ],
)
def test_names_that_cannot_be_are_refused(own: dict[str, str], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        MetricNames(own=own)
    assert says in str(refusal.value)


def test_what_is_not_known_is_absent(lite: Store, clock: Clock) -> None:
    lite.add_result(result(metrics={"P@5": 0.5, "nDCG@10": float("nan")}, latency_ms={}))
    lite.create_test(ABTest("young", "running", 0.05, 0.2, 0.03, timestamp(NOW), timestamp(NOW), sample_count=3))
    lite.set_flag(Flag("rerank", shadow=True), who="ann", at=NOW)
    found = samples(Telemetry(Settings(), lite, now=clock))
    for name in (
        "retrieval_recall_at_k", "retrieval_ndcg_at_k", "retrieval_mrr", "gate", "review_oldest_pending_seconds", "test_llr",
        "shadow_overlap_mean", "shadow_failure_ratio", "log_queue_waiting", "memory_silent_ratio", "evaluation_latency_seconds",
    ):  # fmt: skip
        assert f"ringtrue_{name}" not in found
    assert only(found, "ringtrue_test_samples", feature="young") == 3
    assert only(found, "ringtrue_review_backlog", state="pending_review") == 0


def test_the_gate_of_a_try_out_is_not_productions(lite: Store) -> None:
    """A bm25 that somebody gated once must not raise the alarm about the hybrid that is served."""
    content = {"retriever": "hybrid", "golden": {"version": "hotel-v2.0.0"}}
    lite.save_baseline(StoredBaseline("production", "1.0.0", content, timestamp(NOW)))
    lite.add_result(result("ours", golden="hotel-v2.0.0", gate="pass"))
    for n in range(1, 13):  # more than there are gauges for
        later = timestamp(NOW + timedelta(minutes=n))
        lite.add_result(
            result(f"tried-{n}", golden="hotel-v1.0.0", retriever=f"bm25(title={n})", gate="fail", created_at=later)
        )
    found = list(Quality()(lite, "default", NOW + timedelta(hours=1)))
    gates = {
        (one.labels["role"], one.labels["golden"], one.labels["verdict"]): one.value
        for one in found
        if one.metric == "ringtrue_gate"
    }
    assert gates["production", "hotel-v2.0.0", "pass"] == 1
    assert gates["production", "hotel-v2.0.0", "fail"] == 0
    assert gates["other", "hotel-v1.0.0", "fail"] == 1
    assert next(one.labels["retriever"] for one in found if one.metric == "ringtrue_retrieval_mrr") == "hybrid"

    served = Quality("bm25(title=3)")(lite, "default", NOW + timedelta(hours=1))
    ours = [one for one in served if one.metric == "ringtrue_gate" and one.labels["role"] == "production"]
    assert {one.labels["retriever"] for one in ours} == {"bm25(title=3)"}


def test_memory_figures_come_from_the_measures_of_memory(lite: Store, clock: Clock) -> None:
    lite.add_result(result(metrics={"Silent": 0.1, "FalseInject@3": 0.2, "Constitutional@5": 1.0, "R(rel=2)@10": 0.4}))
    found = samples(Telemetry(Settings(), lite, now=clock))
    assert only(found, "ringtrue_memory_silent_ratio") == 0.1
    assert only(found, "ringtrue_memory_false_inject_ratio", k="3") == 0.2
    assert only(found, "ringtrue_constitutional_surfacing_ratio", k="5") == 1
    # A measure with options of its own is not the plain one.
    assert "ringtrue_retrieval_recall_at_k" not in found
    assert only(found, "ringtrue_retrieval_measure", measure="R(rel=2)@10") == 0.4


def test_a_new_version_of_a_golden_set_takes_the_place_of_the_old_one(lite: Store, clock: Clock) -> None:
    lite.add_result(result("old", created_at=timestamp(NOW - timedelta(days=1)), metrics={"R@10": 0.2}))
    lite.add_result(result("new", golden="hotel-v1.1.0"))
    lite.add_result(result("other", golden="shop-v1.0.0", metrics={"R@10": 0.5}))
    lite.add_result(result("ancient", golden="law-v1.0.0", created_at=timestamp(NOW - timedelta(days=20))))
    lite.add_result(result("candidate", retriever="new one", feature_id="rerank", control_run_id="new", metrics={"R@10": 0.1}))
    found = samples(Telemetry(Settings(), lite, now=clock))
    shown = {labels["golden"]: value for labels, value in found["ringtrue_retrieval_recall_at_k"]}
    assert shown == {"hotel-v1.1.0": 0.8, "shop-v1.0.0": 0.5}


def test_an_evaluation_that_is_old_is_still_told_where_it_is_the_newest(lite: Store, clock: Clock) -> None:
    lite.add_result(result(created_at=timestamp(NOW - timedelta(days=90))))
    found = samples(Telemetry(Settings(), lite, now=clock))
    assert only(found, "ringtrue_evaluation_timestamp_seconds") == (NOW - timedelta(days=90)).timestamp()


def test_a_project_sees_nothing_of_another(store: Store, clock: Clock) -> None:
    filled(store, "alpha")
    filled(store, "beta")
    store.set_flag(Flag("secret-feature", project="beta"), who="ann", at=NOW)
    telemetry = Telemetry(Settings(project="house"), store, now=clock)
    telemetry.durations.request("POST", "/v1/secret-route", 200, 0.1, project="beta")
    telemetry.durations.request("GET", "/healthz", 200, 0.1)
    telemetry.durations.search("beta", 0.1)
    body = telemetry.scrape("alpha")[0].decode()
    assert 'project="alpha"' in body
    for word in ("beta", "secret", "healthz", "house"):
        assert word not in body
    assert "secret-feature" in telemetry.scrape("beta")[0].decode()
    # What came with nobody's key is for the operator's own project.
    found = samples(telemetry, "house")
    assert only(found, "ringtrue_http_request_duration_seconds_count", route="/healthz") == 1
    assert "secret" not in str(found)


def test_one_part_that_fails_takes_no_other_with_it(lite: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(lite)

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such table")

    monkeypatch.setattr(Store, "backlog", broken)
    telemetry = Telemetry(Settings(), lite, queue=broken, now=clock)
    found = samples(telemetry)
    assert only(found, "ringtrue_collect_errors_total", part="review") == 1
    assert only(found, "ringtrue_collect_errors_total", part="queue") == 1
    assert only(found, "ringtrue_collect_errors_total", part="quality") == 0
    assert "ringtrue_review_backlog" not in found
    assert only(found, "ringtrue_flag_rollout_ratio", flag="rerank") == 0.25
    clock.forward(seconds=10)
    assert only(samples(telemetry), "ringtrue_collect_errors_total", part="review") == 2
    monkeypatch.undo()
    clock.forward(seconds=10)
    assert only(samples(telemetry), "ringtrue_review_backlog", state="pending_review") == 1


def test_a_store_that_is_away_is_told_and_its_figures_are_absent(
    lite: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(lite)
    telemetry = Telemetry(Settings(), lite, queue=lambda: Queue(9, 10), now=clock)
    telemetry.remember("default")

    def away(*_: Any, **__: Any) -> Any:
        raise Unreachable("store: it does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "schema_version", away)
        patched.setattr(Store, "add_history", away)
        clock.forward(minutes=1)
        found = samples(telemetry)
        assert only(found, "ringtrue_store_up") == 0
        assert only(found, "ringtrue_log_queue_waiting") == 9
        assert not [name for name in found if "retrieval" in name or "review" in name]
        telemetry.remember("default")
    assert [point.value for point in lite.history("ringtrue_store_up")] == [1.0]
    clock.forward(minutes=1)
    telemetry.remember("default")
    # What was read meanwhile is written down when the store is back.
    assert [point.value for point in lite.history("ringtrue_store_up")] == [1.0, 0.0, 1.0]
    assert "ringtrue_retrieval_recall_at_k" in samples(telemetry)


def test_labels_are_bounded_and_escaped(lite: Store, clock: Clock) -> None:
    strange = 'f("a\\b")\nx \ud800' + "y" * 500
    lite.add_result(result(retriever=strange))
    telemetry = Telemetry(Settings(), lite, now=clock)
    telemetry.durations.request('GET\n"', '/v1/"{x}"\\', 200, 0.1, project="default")
    found = samples(telemetry)
    ((labels, _),) = found["ringtrue_retrieval_recall_at_k"]
    assert len(labels["retriever"]) == 120
    assert labels["retriever"].startswith('f("a\\b") x ')
    assert label_value("a\ud800b") == "a b", "UTF-8 cannot hold it"
    assert only(found, "ringtrue_http_request_duration_seconds_count", method="other", route='/v1/"{x}"\\') == 1


def test_the_number_of_series_is_bounded_whatever_is_requested(lite: Store) -> None:
    with TestClient(create_app(Settings(store=str(lite.address.sqlite)))) as client:
        for number in range(50):
            client.request(f"METHOD{number}", f"http://localhost/v1/{number}")
        found = samples(client.app.state.service.telemetry)["ringtrue_http_request_duration_seconds_count"]  # type: ignore[attr-defined]
    assert sum(value for _, value in found) == 50
    assert {(labels["method"], labels["route"]) for labels, _ in found} == {("other", "other")}


def test_openmetrics_where_accept_asks_for_it(lite: Store, clock: Clock) -> None:
    filled(lite)
    telemetry = Telemetry(Settings(), lite, now=clock)
    telemetry.durations.search("default", 0.03)
    accept = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    body, kind = telemetry.scrape("default", accept)
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert body.decode().endswith("# EOF\n")
    _, kind = telemetry.scrape("default", "text/plain")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    assert samples(telemetry, accept=accept) == samples(telemetry)


def test_searches_are_counted_as_they_come_into_the_log(store: Store, clock: Clock) -> None:
    def search(name: str, ago: float) -> LoggedQuery:
        return LoggedQuery(name, "text", "shop", timestamp(clock.now - timedelta(seconds=ago)))

    store.add_queries([search(f"before{number}", 3600) for number in range(5)])
    telemetry = Telemetry(Settings(), store, now=clock)
    assert only(samples(telemetry), "ringtrue_log_searches_total") == 0
    clock.forward(seconds=60)
    store.add_queries([search(f"new{number}", 20) for number in range(3)] + [search("just now", 1)])
    assert only(samples(telemetry), "ringtrue_log_searches_total") == 3
    clock.forward(seconds=60)
    store.add_queries([search("later", 30)])
    assert only(samples(telemetry), "ringtrue_log_searches_total") == 5


def test_drops_of_other_processes_are_counted_before_the_audit_tells_of_them(lite: Store, clock: Clock) -> None:
    telemetry = Telemetry(Settings(), lite, now=clock)
    assert only(samples(telemetry), "ringtrue_log_dropped_total", why="dropped") == 0
    with QueryLog(lite, project="default", queue_bytes=1) as log:
        log.record(LoggedQuery("q1", "text", "shop", timestamp(NOW)))
        assert log.counts.dropped == 1
        clock.forward(seconds=10)
        assert only(samples(telemetry), "ringtrue_log_dropped_total", why="dropped") == 1
    clock.forward(seconds=10)
    assert only(samples(telemetry), "ringtrue_log_dropped_total", why="dropped") == 1


def test_a_scrape_reads_no_row_of_the_log_and_asks_the_store_again_only_after_a_while(
    lite: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(lite)
    asked: list[str] = []
    for name in ("queries", "results", "backlog", "flags", "count_queries", "shadow_runs"):
        real = getattr(Store, name)

        def counting(*given: Any, _real: Any = real, _name: str = name, **more: Any) -> Any:
            asked.append(_name)
            return _real(*given, **more)

        monkeypatch.setattr(Store, name, counting)
    telemetry = Telemetry(Settings(), lite, now=clock)
    first = telemetry.scrape("default")
    assert "queries" not in asked
    asked.clear()
    assert telemetry.scrape("default") == first
    assert asked == []
    clock.forward(seconds=6)
    telemetry.scrape("default")
    assert "backlog" in asked
    assert "shadow_runs" not in asked, "many rows are read once a minute"
    assert "results" not in asked


def test_an_evaluation_is_written_down_at_once_and_by_the_background(lite: Store) -> None:
    telemetry = Telemetry(Settings(history_seconds=3600), lite)
    written = threading.Event()
    real = lite.add_history

    def noticed(points: Any) -> int:
        count = real(points)
        if any(point.series == "ringtrue_gate" for point in points):
            written.set()
        return count

    lite.add_history = noticed  # type: ignore[method-assign]
    telemetry.start()
    try:
        lite.add_result(result(created_at=timestamp(datetime.now(UTC)), gate="fail"))
        telemetry.evaluated("default")
        assert written.wait(20), "the next round is an hour away"
    finally:
        telemetry.stop()
    assert [point.labels for point in lite.history("ringtrue_gate") if point.value == 1] == [
        {"verdict": "fail", "role": "production", "retriever": "hybrid", "golden": "hotel-v1.0.0"}
    ]
    telemetry.start()
    telemetry.stop()


def test_the_background_writes_down_every_project_that_has_data(lite: Store) -> None:
    for project in ("alpha", "beta"):
        lite.add_queries([LoggedQuery(project, "text", "shop", timestamp(NOW), project=project)])
    telemetry = Telemetry(Settings(project="house", history_seconds=0.01), lite)
    written = threading.Event()
    real = lite.add_history

    def noticed(points: Any) -> int:
        count = real(points)
        if all(lite.history("ringtrue_store_up", project=name) for name in ("alpha", "beta", "house")):
            written.set()
        return count

    lite.add_history = noticed  # type: ignore[method-assign]
    telemetry.start()
    try:
        assert written.wait(20)
    finally:
        telemetry.stop()


def test_every_metric_says_something_and_is_written_as_prometheus_wants_it() -> None:
    assert len(METRICS) == len(CATALOGUE)
    for metric in CATALOGUE:
        assert metric.name.startswith("ringtrue_")
        assert metric.says.endswith(".")
        assert (metric.kind == "counter") == metric.name.endswith("_total")


def test_the_documentation_has_every_metric_and_every_alert() -> None:
    text = (Path(__file__).parents[3] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    for metric in CATALOGUE:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "–"
        assert f"| `{metric.name}` | {metric.kind} | {labels} | {metric.says} |" in text
    for rule in shipped_rules():
        assert f"| `{rule.name}` | {rule.labels['severity']} |" in text
