"""JSON, JUnit and SARIF: what other programs read."""

from __future__ import annotations

import json
import math
import re
import xml.etree.ElementTree as Xml
from dataclasses import replace
from datetime import datetime

import pytest

from made import WHEN
from made_reports import answered, clean, healthy, lost, verdict
from ringtrue.records import Ranking
from ringtrue.report import Report, as_json, junit, report_on, sarif
from ringtrue.verdict import Check, baseline_of

CHECKS = (
    Check("floor", "R@5", "fail", "R@5 below its floor: 0.7400 < 0.8000", 0.74, 0.80, queries=("q001", "q002")),
    Check("floor", "RR", "pass", "RR at or above its floor", 0.9, 0.7),
    Check("drop", "P@5", "degraded", "P@5 fell by 2.9 %", 0.66, 0.646, 0.68, 0.029),
    Check("slice", "R@5", "undecided", "no query is in the slice", math.nan, 0.7, slice="query_type=odd"),
    Check("latency increase", "p95", "advisory", "another machine", 40.0, baseline=30.0),
)


def broken() -> Report:
    rankings = answered(skill=0.9)
    rankings[3] = Ranking("q003", (), None, "Unreachable: \x00\x1b[31m\ud800 <gone> & away")
    return clean(evaluation=healthy(rankings), verdict=verdict(*CHECKS, word="fail"))


def test_json_holds_what_a_machine_may_ask_under_the_keys_of_eval() -> None:
    now = healthy(answered(skill=0.7), losses=lost("below k", 20, rank=15))
    found = json.loads(as_json(report_on(now, made_at=WHEN, baseline=baseline_of(healthy(), version="1.0.0"))))
    keys = {"run_dir", "metrics", "intervals", "per_slice", "components", "latency_ms", "missing", "failures", "cached"}
    assert keys | {"headline", "verdict", "comparison", "recommendations", "queries", "setup", "baseline", "notes"} <= set(
        found
    )
    assert found["metrics"]["nDCG@10"] == pytest.approx(now.metrics["nDCG@10"])
    assert found["per_slice"]["query_type"]["factual"]["queries"] == 40
    assert found["components"]["bm25"]["nDCG@10"] == pytest.approx(now.components[0].scores["nDCG@10"])
    assert found["latency_ms"]["p95"] == pytest.approx(now.latency.p95)
    assert found["blame"] == {"below k": 20}
    assert found["verdict"]["word"] == "fail"
    assert found["verdict"]["exit_code"] == 1
    assert found["comparison"]["measures"]["nDCG@10"]["diff"] < 0
    assert [one["rule"] for one in found["recommendations"]] == ["rerank"]
    assert len(found["queries"]) == 60
    assert set(found["queries"]["q001"]["scores"]) == set(now.metrics)
    assert found["setup"]["golden"]["version"] == "made-v1.0.0"
    assert "per_query" not in found["baseline"]


def test_json_has_null_where_a_number_is_not_defined() -> None:
    text = as_json(broken())
    found = json.loads(text)
    assert "NaN" not in text
    assert found["verdict"]["checks"][3]["current"] is None
    assert found["failures"]["q003"].startswith("Unreachable")
    assert found["queries"]["q003"]["scores"] == {}


def test_junit_has_the_shape_that_ci_services_read() -> None:
    root = Xml.fromstring(junit(broken()).encode("utf-8"))
    assert root.tag == "testsuites"
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["floor", "drop", "slice", "latency increase", "queries"]
    for suite in root:
        assert [child.tag for child in suite if child.tag != "testcase"] == ["properties", "system-out", "system-err"]
        assert suite[0].tag == "properties"
        for name in ("name", "tests", "failures", "errors", "time", "timestamp", "hostname", "id", "package"):
            assert suite.get(name) is not None, name
        datetime.strptime(suite.get("timestamp", ""), "%Y-%m-%dT%H:%M:%S")
        cases = suite.findall("testcase")
        assert int(suite.get("tests", "")) == len(cases)
        assert int(suite.get("failures", "")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("errors", "")) == len(suite.findall("testcase/error"))
        for case in cases:
            assert {"name", "classname", "time"} == set(case.attrib)
            assert len(case) <= 1
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "1", "2")


def test_junit_failures_carry_message_and_guilty_queries() -> None:
    root = Xml.fromstring(junit(broken()).encode("utf-8"))
    failure = root.find("testsuite[@name='floor']/testcase[@name='R@5']/failure")
    assert failure is not None
    assert failure.get("message") == "R@5 below its floor: 0.7400 < 0.8000"
    assert "queries behind it: q001, q002" in (failure.text or "")
    assert root.find("testsuite[@name='slice']/testcase[@name='R@5 in query_type=odd']/error") is not None
    assert root.find("testsuite[@name='latency increase']/testcase/skipped") is not None


def test_junit_drops_what_xml_cannot_hold() -> None:
    text = junit(broken())
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", text)
    error = Xml.fromstring(text.encode("utf-8")).find("testsuite[@name='queries']/testcase[@name='q003']/error")
    assert error is not None
    assert "<gone> & away" in error.get("message", "")


def test_trap_16_junit_without_a_gate_shows_nothing_as_passed() -> None:
    root = Xml.fromstring(junit(Report(healthy(), WHEN)).encode("utf-8"))
    assert root.get("tests") == root.get("skipped") == "8"


def test_sarif_has_every_required_field() -> None:
    log = json.loads(sarif(broken(), baseline_file="gate/my baseline.json"))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "Ringtrue"
    assert [rule["id"] for rule in driver["rules"]] == [
        "ringtrue/floor", "ringtrue/drop", "ringtrue/slice", "ringtrue/latency-increase", "ringtrue/query",
    ]  # fmt: skip
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in run["results"]:
        assert result["message"]["text"]
        assert result["level"] in ("error", "warning", "note", "none")
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (where,) = result["locations"]
        assert where["physicalLocation"]["artifactLocation"]["uri"]
        assert where["physicalLocation"]["region"]["startLine"] >= 1
        assert result["partialFingerprints"]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "error", "note", "error"]
    assert all(invocation["executionSuccessful"] is True for invocation in run["invocations"])


def test_sarif_points_to_the_baseline() -> None:
    run = json.loads(sarif(broken(), baseline_file="gate/my baseline.json"))["runs"][0]
    places = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]}
    assert places == {"gate/my%20baseline.json"}
    unknown = json.loads(sarif(broken()))["runs"][0]["results"][0]["locations"][0]
    assert "physicalLocation" not in unknown
    assert unknown["logicalLocations"][0]["fullyQualifiedName"] == "made-v1.0.0"


def test_sarif_of_a_pass_has_no_results() -> None:
    run = json.loads(sarif(clean()))["runs"][0]
    assert run["results"] == []
    assert run["properties"]["verdict"] == "pass"


def test_the_same_finding_keeps_its_fingerprint_when_its_numbers_move() -> None:
    moved = [replace(check, message=f"{check.message} now", current=0.1) for check in CHECKS]
    first, second = (
        [one["partialFingerprints"] for one in json.loads(sarif(report))["runs"][0]["results"]]
        for report in (clean(verdict=verdict(*CHECKS, word="fail")), clean(verdict=verdict(*moved, word="fail")))
    )
    assert first == second
