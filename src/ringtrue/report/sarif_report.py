"""The report as SARIF 2.1.0, for code-scanning pages: a result for every check that did not pass."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from ringtrue.report import tables
from ringtrue.report.json_report import as_text, facts
from ringtrue.report.records import Report
from ringtrue.report.sentences import place
from ringtrue.verdict import Check

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVEL = {"fail": "error", "undecided": "error", "degraded": "warning", "advisory": "note"}
RULES = {
    "floor": "A measure is below its floor.",
    "drop": "A measure fell against the baseline by more than the tolerated share.",
    "significant drop": "A measure fell against the baseline significantly and by more than the smallest effect that matters.",
    "slice": "A slice of the questions breaks its own rule.",
    "latency": "A latency percentile is above its ceiling.",
    "latency increase": "Latency grew against the baseline.",
    "constitutional": "Constitutional documents are not surfaced as they must be.",
    "completeness": "The evaluation is not complete enough to be judged.",
    "query": "A question got no answer.",
}
BASELINE_RULES = ("drop", "significant drop", "latency increase")


def sarif(report: Report, *, golden_file: str | None = None, baseline_file: str | None = None) -> str:
    """Return a log with one run. Files are named as the repository knows them; results point to them if they are given."""
    evaluation = report.evaluation
    results = [
        _result(check, report, golden_file, baseline_file)
        for check in (report.verdict.checks if report.verdict else ())
        if check.status in LEVEL
    ]
    for query_id, error in evaluation.failures.items():
        text = f"query '{query_id}' got no answer: {error}"
        results.append(_entry("query", "error", text, golden_file, report, key=f"query/{query_id}"))
    rules = {result["ruleId"]: _rule(result.pop("rule")) for result in results}
    for result in results:
        result["ruleIndex"] = list(rules).index(result["ruleId"])
    driver = {"name": "Ringtrue", "version": evaluation.setup.ringtrue, "rules": list(rules.values())}
    known = facts(report) | {
        "verdict": report.verdict.word if report.verdict else None,
        "provisional": evaluation.setup.golden.provisional,
        "metrics": evaluation.metrics,
        "notes": tables.notes(report),
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "endTimeUtc": report.made_at.replace("+00:00", "Z")}],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": known,
    }
    return as_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(name: str) -> dict[str, Any]:
    text = {"text": RULES.get(name, name)}
    title = "".join(word.capitalize() for word in name.split())
    level = {"level": "error"}
    return {"id": _id(name), "name": title, "shortDescription": text, "fullDescription": text, "defaultConfiguration": level}


def _id(rule: str) -> str:
    return f"ringtrue/{rule.replace(' ', '-')}"


def _result(check: Check, report: Report, golden_file: str | None, baseline_file: str | None) -> dict[str, Any]:
    files = (baseline_file, golden_file) if check.rule in BASELINE_RULES else (golden_file, baseline_file)
    text = check.message + (f" (queries behind it: {', '.join(check.queries)})" if check.queries else "")
    file, key = next(filter(None, files), None), f"{check.rule}/{place(check)}"
    names = ("status", "measure", "slice", "current", "threshold", "baseline", "degradation", "queries")
    properties = {name: getattr(check, name) for name in names}
    return _entry(check.rule, LEVEL[check.status], text, file, report, key=key) | {"properties": properties}


def _entry(rule: str, level: str, text: str, file: str | None, report: Report, *, key: str) -> dict[str, Any]:
    golden = report.evaluation.setup.golden
    logical = {"name": golden.id, "fullyQualifiedName": golden.version, "kind": "resource"}
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if file is not None:
        uri = quote(file.replace("\\", "/"), safe="/:@!$&'()*+,;=~")
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}
    return {
        "rule": rule,
        "ruleId": _id(rule),
        "level": level,
        "message": {"text": text},
        "locations": [location],
        # The same finding in the next run is the same alert, whatever its numbers are then.
        "partialFingerprints": {"ringtrue/v1": key},
    }
