"""Prometheus' own tools on what is shipped for it, and the rules over stored history beside them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from rest_service import serving
from ringtrue.cli import app as command_line
from ringtrue.service.alerts import ShippedRule, rule_states, rules_text, shipped_rules
from ringtrue.service.gauges import CATALOGUE, MetricNames
from ringtrue.store import HistoryPoint, Store, timestamp
from tools import tool

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
RULES = PROMETHEUS / "ringtrue-alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana" / "ringtrue.json"
ALERTS = {rule["alert"]: rule["expr"] for group in yaml.safe_load(rules_text())["groups"] for rule in group["rules"]}
START = datetime(1970, 1, 1, tzinfo=UTC)
"""Where the clock of promtool begins."""


@pytest.fixture(scope="module")
def promtool() -> str:
    """Where Prometheus' own checker is."""
    return tool("promtool")


def run(promtool: str, *arguments: str | Path, stdin: bytes = b"") -> str:
    done = subprocess.run([promtool, *arguments], input=stdin, capture_output=True, timeout=120)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server that has evaluated once, and written its gauges down."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RINGTRUE_CACHE", str(folder / "cache"))
        patched.chdir(folder)
        with serving(folder, gauges={"ringtrue_retrieval_recall_at_k": "medicalkg_retrieval_recall_at_k"}) as found:
            answer = found.post("/v1/evaluate", json={"golden": "hotel", "retriever": "bm25"})
            assert answer.status_code == 200, answer.text
            found.app.state.service.telemetry.remember("default")  # type: ignore[attr-defined]
            yield found


def test_prometheus_takes_the_rules_and_its_configuration(promtool: str) -> None:
    assert f"{len(ALERTS)} rules found" in run(promtool, "check", "rules", RULES)
    run(promtool, "check", "config", PROMETHEUS / "prometheus.yml")


def test_the_alerts_fire_in_a_simulated_degradation(promtool: str) -> None:
    assert "SUCCESS" in run(promtool, "test", "rules", PROMETHEUS / "ringtrue-alerts.test.yml")


def test_every_rule_is_in_the_simulated_degradation() -> None:
    simulated = (PROMETHEUS / "ringtrue-alerts.test.yml").read_text(encoding="utf-8")
    assert [name for name in ALERTS if f'alertname="{name}",alertstate="firing",' not in simulated] == []


def test_the_rules_in_the_package_are_those_for_prometheus() -> None:
    assert rules_text() == RULES.read_text(encoding="utf-8"), "copy src/ringtrue/service/alerts/ringtrue-alerts.yml to deploy"


def test_renamed_rules_are_rules_still(promtool: str, tmp_path: Path) -> None:
    names = MetricNames(prefix="shop", own={"ringtrue_retrieval_recall_at_k": "medicalkg_retrieval_recall_at_k"})
    (tmp_path / "rules.yml").write_text(rules_text(names), encoding="utf-8")
    run(promtool, "check", "rules", tmp_path / "rules.yml")
    text = (tmp_path / "rules.yml").read_text(encoding="utf-8")
    assert "shop_http_request_duration_seconds_count" in text
    assert re.findall(r"\bringtrue_\w+", text) == []


# ── the same points, the same minute ────────────────────────────────────────────────────────────────────────────────

RECALL = {"k": "10", "retriever": "hybrid", "golden": "hotel-v1.0.0", "slice": "all"}
GATE = {"verdict": "fail", "role": "production", "retriever": "hybrid", "golden": "hotel-v1.0.0"}
EVALUATED = {"retriever": "hybrid", "golden": "hotel-v1.0.0"}
DROPPED = [*[0.90] * 40, *[0.86] * 20, *[0.80] * 20]
Series = tuple[str, dict[str, str], list[float]]
DEGRADATIONS: dict[str, list[Series]] = {
    "RingtrueRecallLow": [("ringtrue_retrieval_recall_at_k", RECALL, [0.82] * 8 + [0.71] * 24)],
    "RingtrueRecallDropped": [("ringtrue_retrieval_recall_at_k", RECALL, DROPPED)],
    "RingtrueRecallDroppedWithVersion": [
        ("ringtrue_retrieval_recall_version_change", {"k": "10", **EVALUATED}, [-0.04] * 6 + [-0.06] * 20)
    ],
    "RingtrueNdcgDropped": [("ringtrue_retrieval_ndcg_at_k", RECALL, DROPPED)],
    "RingtrueGateFailing": [("ringtrue_gate", GATE, [0.0] * 12 + [1.0] * 18)],
    "RingtrueEvaluationStale": [
        ("ringtrue_evaluation_timestamp_seconds", EVALUATED, [600.0 - 691_200] * 90),
        ("ringtrue_evaluation_timestamp_seconds", {**EVALUATED, "retriever": "bm25"}, [-700_000.0] * 90),
    ],
    "RingtrueReviewBacklogOld": [("ringtrue_review_oldest_pending_seconds", {}, [604_000.0 + 60 * n for n in range(75)])],
    "RingtrueLogDropping": [("ringtrue_log_dropped_total", {"why": "dropped"}, [3.0] * 12 + [4.0] * 18)],
    "RingtrueLogSilent": [("ringtrue_log_searches_total", {}, [*map(float, range(20)), *[19.0] * 75])],
    "RingtrueLogQueueFull": [
        ("ringtrue_log_queue_waiting", {}, [10.0] * 5 + [80.0] * 5 + [81.0] * 10),
        ("ringtrue_log_queue_capacity", {}, [100.0] * 20),
    ],
    "RingtrueShadowFailing": [("ringtrue_shadow_failure_ratio", {"feature": "rerank"}, [0.0] * 7 + [0.5] * 24)],
    "RingtrueStoreDown": [("ringtrue_store_up", {}, [1.0] * 12 + [0.0] * 18)],
    "RingtrueMetricsIncomplete": [("ringtrue_collect_errors_total", {"part": "log"}, [0.0] * 3 + [*map(float, range(30))])],
}


def shown(**labels: str) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


@pytest.mark.parametrize("rule", shipped_rules(), ids=lambda rule: rule.name)
def test_rules_over_stored_history_fire_in_the_same_minute_as_prometheus(
    promtool: str, tmp_path: Path, rule: ShippedRule
) -> None:
    series = DEGRADATIONS[rule.name]
    moments = [START + timedelta(minutes=minute) for minute in range(len(series[0][2]))]
    with Store.open(tmp_path / "store.sqlite") as store:
        for metric, labels, values in series:
            store.add_history(
                [HistoryPoint(timestamp(at), metric, value, labels, "shop") for at, value in zip(moments, values, strict=True)]
            )
        states = [rule_states(store, "shop", now=at, rules=[rule])[0] for at in moments]
    assert {"inactive", "firing"} <= {found.state for found in states}

    expected = [
        {
            "expr": f'ALERTS{{alertname="{rule.name}"}}',
            "eval_time": f"{minute}m",
            "exp_samples": [
                {"labels": f"ALERTS{{{shown(alertname=rule.name, alertstate=alert.state, **alert.labels)}}}", "value": 1}
                for alert in found.alerts
            ],
        }
        for minute, found in enumerate(states)
    ]
    alerts = [
        {
            "alertname": rule.name,
            "eval_time": f"{len(moments) - 1}m",
            "exp_alerts": [
                {"exp_labels": alert.labels, "exp_annotations": {"summary": alert.summary, "description": alert.description}}
                for alert in states[-1].alerts
            ],
        }
    ]
    degradation = {
        "interval": "1m",
        "input_series": [
            {"series": f"{metric}{{{shown(project='shop', **labels)}}}", "values": " ".join(map(str, values))}
            for metric, labels, values in series
        ],
        "promql_expr_test": expected,
        "alert_rule_test": alerts,
    }
    file = tmp_path / "same.test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [degradation]}))
    assert "SUCCESS" in run(promtool, "test", "rules", file)


# ── a running server ────────────────────────────────────────────────────────────────────────────────────────────────


def test_metrics_of_a_server_pass_promtool_and_the_official_parsers(promtool: str, client: TestClient) -> None:
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert run(promtool, "check", "metrics", stdin=answer.content) == ""
    found = {family.name: family for family in read_text(answer.text)}
    (recall,) = [
        sample
        for sample in found["medicalkg_retrieval_recall_at_k"].samples
        if sample.labels["k"] == "10" and sample.labels["slice"] == "all"
    ]
    assert 0 < recall.value <= 1
    assert recall.labels["project"] == "default"
    routes = {sample.labels["route"] for sample in found["ringtrue_http_request_duration_seconds"].samples}
    assert "/v1/evaluate" in routes
    answer = client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert {family.name for family in read_openmetrics(answer.text)} >= {"medicalkg_retrieval_recall_at_k", "ringtrue_jobs"}


def test_alerts_and_history_of_a_server(client: TestClient) -> None:
    service = client.app.state.service  # type: ignore[attr-defined]
    now = service.now()
    service.store.add_history(
        [
            HistoryPoint(timestamp(now - timedelta(minutes=minute)), "ringtrue_retrieval_recall_at_k", 0.5, RECALL)
            for minute in range(20)
        ]
    )
    found = client.get("/v1/alerts").json()
    assert found["source"] == "rules over stored history"
    low = next(rule for rule in found["rules"] if rule["name"] == "RingtrueRecallLow")
    assert (low["state"], low["severity"], low["for_seconds"]) == ("firing", "critical", 900)
    assert [alert["labels"]["retriever"] for alert in low["alerts"] if alert["state"] == "firing"] == ["hybrid"]
    assert found["firing"] >= 1

    asked: dict[str, Any] = {"series": "ringtrue_retrieval_recall_at_k", "label": ["k=10", "retriever=hybrid"], "points": 5}
    (line,) = client.get("/v1/history", params=asked).json()["lines"]
    assert len(line["points"]) == 5
    assert {point["value"] for point in line["points"]} == {0.5}
    assert line["labels"] == RECALL

    rules = client.get("/v1/alerts/rules")
    assert rules.headers["content-type"].startswith("application/yaml")
    assert 'medicalkg_retrieval_recall_at_k{k="10",slice="all"} < 0.75' in rules.text


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        ({"series": "ringtrue_recall"}, "query.series", "did you mean"),
        ({"series": "ringtrue_gate", "label": "k"}, "query.label.0", "match pattern"),
        ({"series": "ringtrue_gate", "since": "yesterday"}, "query.since", "cannot read the time 'yesterday'"),
        ({"series": "ringtrue_gate", "points": "0"}, "query.points", "greater than or equal to 1"),
        ({}, "query.series", "the address lacks series; add series=…"),
    ],
)
def test_history_that_cannot_be_asked_for_is_refused(client: TestClient, asked: dict[str, str], field: str, says: str) -> None:
    answer = client.get("/v1/history", params=asked)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["field"] == field
    assert says in answer.json()["error"]["message"]


@pytest.mark.parametrize("asked", [{"until": "0001-01-01"}, {"since": "0001-01-01", "until": "2000-01-01"}])
def test_history_of_times_without_any_is_empty(client: TestClient, asked: dict[str, str]) -> None:
    answer = client.get("/v1/history", params={"series": "ringtrue_gate", **asked})
    assert answer.json() == {"series": "ringtrue_gate", "lines": []}


def test_metrics_need_a_key_that_may_read_and_show_its_project_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path, keys=True, project="house") as client:
        service = client.app.state.service  # type: ignore[attr-defined]
        headers = {}
        for project, scope in {"alpha": "read", "beta": "admin", "gamma": "write"}.items():
            _, token = service.store.create_key("scraper", [scope], now=service.now(), project=project)
            headers[project] = {"Authorization": f"Bearer {token}"}
        for path in ("/metrics", "/v1/alerts", "/v1/alerts/rules", "/v1/history?series=ringtrue_gate"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers=headers["gamma"]).status_code == 403
            assert client.get(path, headers=headers["alpha"]).status_code == 200
        text = client.get("/metrics", headers=headers["beta"]).text
        assert 'ringtrue_store_up{project="beta"} 1.0' in text
        assert "alpha" not in text
        assert "house" not in text


# ── Grafana ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert dashboard["schemaVersion"] >= 39
    assert [one["name"] for one in dashboard["templating"]["list"]] == ["datasource", "project"]
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    titles = [panel["title"] for panel in panels() if panel["type"] == "row"]
    assert titles == ["Quality", "Gate", "Log", "Latency", "Backlog", "Shadow and tests", "Flags and service"]
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids))
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["targets"]


def test_every_metric_of_panels_and_rules_is_in_the_catalogue_with_those_labels() -> None:
    known = {name: metric for metric in CATALOGUE for name in metric.sample_names(metric.name)}
    expressions = {name: text for name, text in ALERTS.items() if name != "RingtrueDown"}  # which needs nothing of ours
    expressions |= {
        panel["title"] + str(n): one["expr"] for panel in panels() for n, one in enumerate(panel.get("targets", []))
    }
    used = set()
    for place, text in expressions.items():
        found = re.findall(r"\b(ringtrue_\w+)(?:\{([^}]*)\})?", text)
        assert found, place
        for name, matchers in found:
            assert name in known, f"{place}: {name}"
            used.add(known[name].name)
            for label in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', matchers):
                assert label in known[name].all_labels, f"{place}: {name} has no label {label}"
    for panel in panels():
        for one in panel.get("targets", []):
            labels = {label for name in re.findall(r"\bringtrue_\w+", one["expr"]) for label in known[name].all_labels}
            assert set(re.findall(r"\{\{(\w+)\}\}", one["legendFormat"])) <= labels, panel["title"]
    # Everything that is measured is also shown.
    assert {metric.name for metric in CATALOGUE} - used == {"ringtrue_retrieval_queries"}


def test_promtool_reads_every_expression_of_the_dashboard(promtool: str, tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{panel['id']}:{n}", "expr": one["expr"].replace("$project", ".*")}
        for panel in panels()
        for n, one in enumerate(panel.get("targets", []))
    ]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in run(promtool, "check", "rules", tmp_path / "panels.yml")


def test_the_commands_that_alerts_recommend_exist() -> None:
    import typer.main

    root = typer.main.get_command(command_line)
    named = set(re.findall(r"`ringtrue ([a-z ]+)`", rules_text()))
    assert named
    for words in named:
        command: Any = root
        for word in words.split():
            command = command.commands[word]
