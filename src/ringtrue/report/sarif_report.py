"""The report as SARIF 2.1.0, for code-scanning pages: a result for every check that did not pass (B-4)."""

from __future__ import annotations

import json
from typing import Any

from ringtrue.report import lines
from ringtrue.report.json_report import plain
from ringtrue.report.records import Report
from ringtrue.report.story import headline, place
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
    """Return a log with one run. Files are named as the repository knows them; results point to them where they are given."""
    used = list(dict.fromkeys([*(check.rule for check in _told(report)), *(["query"] if report.evaluation.failures else [])]))
    results = [_result(check, used, report, golden_file, baseline_file) for check in _told(report)]
    for query_id, error in report.evaluation.failures.items():
        text = f"query '{query_id}' got no answer: {error}"
        results.append(_entry("query", used, "error", text, golden_file, report, key=f"query/{query_id}"))
    setup = report.evaluation.setup
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Ringtrue",
                        "version": setup.ringtrue,
                        "rules": [_rule(name) for name in used],
                    }
                },
                "invocations": [{"executionSuccessful": True, "endTimeUtc": report.made_at.replace("+00:00", "Z")}],
                "columnKind": "unicodeCodePoints",
                "results": results,
                "properties": {
                    "headline": headline(report),
                    "verdict": report.verdict.word if report.verdict else None,
                    "retriever": setup.retriever,
                    "golden": setup.golden.version,
                    "provisional": setup.golden.provisional,
                    "reviewed": setup.golden.reviewed,
                    "corpus": setup.corpus or setup.golden.corpus_hash,
                    "baseline": report.baseline.version if report.baseline else None,
                    "metrics": report.evaluation.metrics,
                    "notes": lines.notes(report),
                },
            }
        ],
    }
    return json.dumps(plain(log), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _told(report: Report) -> list[Check]:
    return [check for check in report.verdict.checks if check.status in LEVEL] if report.verdict else []


def _id(rule: str) -> str:
    return f"ringtrue/{rule.replace(' ', '-')}"


def _rule(name: str) -> dict[str, Any]:
    text = RULES.get(name, name)
    return {
        "id": _id(name),
        "name": "".join(word.capitalize() for word in name.split()),
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "defaultConfiguration": {"level": "error"},
    }


def _result(
    check: Check, used: list[str], report: Report, golden_file: str | None, baseline_file: str | None
) -> dict[str, Any]:
    files = (baseline_file, golden_file) if check.rule in BASELINE_RULES else (golden_file, baseline_file)
    text = check.message
    if check.queries:
        text += f" (queries behind it: {', '.join(check.queries)})"
    entry = _entry(
        check.rule, used, LEVEL[check.status], text, next(filter(None, files), None), report, key=f"{check.rule}/{place(check)}"
    )
    entry["properties"] = {
        "status": check.status,
        "measure": check.measure,
        "slice": check.slice,
        "current": check.current,
        "threshold": check.threshold,
        "baseline": check.baseline,
        "degradation": check.degradation,
        "queries": check.queries,
    }
    return entry


def _entry(rule: str, used: list[str], level: str, text: str, file: str | None, report: Report, *, key: str) -> dict[str, Any]:
    golden = report.evaluation.setup.golden
    where: dict[str, Any] = {
        "logicalLocations": [{"name": golden.id, "fullyQualifiedName": golden.version, "kind": "resource"}]
    }
    if file is not None:
        where["physicalLocation"] = {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": 1}}
    return {
        "ruleId": _id(rule),
        "ruleIndex": used.index(rule),
        "level": level,
        "message": {"text": text},
        "locations": [where],
        # The same finding in the next run is the same alert, whatever its numbers are by then.
        "partialFingerprints": {"ringtrue/v1": key},
    }


def _uri(file: str) -> str:
    from urllib.parse import quote

    return quote(file.replace("\\", "/"), safe="/:@!$&'()*+,;=~")
