"""The report for programs: JSON with all its values, JUnit XML for test pages, SARIF 2.1.0 for code-scanning pages."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as Xml
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from ringtrue.report import tables
from ringtrue.report.formatting import PERCENTILES
from ringtrue.report.records import Report
from ringtrue.report.sentences import comparison_of, headline, place, primary, reasons, title
from ringtrue.run import Evaluation, json_value

IN_FILE = ("per_query", "latencies", "repeats", "rankings", "timings", "scores")
"""Fields of a baseline that only its own file has: values of every query."""
VERDICT = ("word", "exit_code", "mode", "baseline", "checks", "failures", "notes")
# Characters that XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NO_TIME = "0.000"
"""Checks take no time worth mentioning, but the schema asks for one."""
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


# ── JSON ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_json(report: Report) -> str:
    """Return the report as one JSON object, under the keys of ``ringtrue eval --json``; an undefined number is null."""
    return _text(record(report))


def _text(value: Any) -> str:
    text = json.dumps(json_value(value), ensure_ascii=False, indent=2, allow_nan=False, default=_plain)
    # JSON in UTF-8 cannot hold halves of surrogate pairs, which some logs contain.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def _facts(report: Report) -> dict[str, str]:
    """Return what JUnit and SARIF say of the run as a whole."""
    setup = report.evaluation.setup
    return {
        "headline": headline(report),
        "retriever": setup.retriever,
        "golden": setup.golden.version,
        "provisional": str(setup.golden.provisional).lower(),
        "reviewed": setup.golden.reviewed,
        "split": setup.golden.split,
        "corpus": setup.corpus or setup.golden.corpus_hash or "",
        "baseline": report.baseline.version if report.baseline else "",
    }


def record(report: Report) -> dict[str, Any]:
    """Return the report as plain values."""
    verdict = report.verdict
    return {
        "title": title(report),
        "made_at": report.made_at,
        "headline": headline(report),
        "reasons": reasons(report),
        "primary": primary(report),
        **_evaluation(report.evaluation),
        "components": {line.name: line.values for line in tables.component_lines(report)},
        "parts": tables.component_lines(report),
        "summary": tables.measure_lines(report),
        "queries": _queries(report),
        "baseline": report.baseline and {name: value for name, value in vars(report.baseline).items() if name not in IN_FILE},
        "comparison": comparison_of(report),
        "other": None if report.other is None else _evaluation(report.other),
        "verdict": verdict and {name: getattr(verdict, name) for name in VERDICT},
        "failing": tables.failing(report),
        "recommendations": report.recommendations,
        "notes": tables.notes(report),
    }


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    found, scores = evaluation.latency, evaluation.scores
    return {
        "name": evaluation.name,
        "setup": evaluation.setup,
        "run_dir": evaluation.run_dir,
        "cached": evaluation.cached,
        "metrics": evaluation.metrics,
        "intervals": evaluation.intervals,
        "spread": {str(measure): scores.summary(measure) for measure in scores.measures},
        "judged_share": scores.judged_share,
        "per_slice": {field: _slices(evaluation, field) for field in tables.slice_fields(evaluation)},
        "latency_ms": {name: getattr(found, name) for name in ("mean", *PERCENTILES)} | {"count": found.count},
        "missing": scores.counted.missing,
        "failures": evaluation.failures,
        "blame": {line.stage: line.count for line in tables.blame_lines(evaluation)},
        "losses": evaluation.losses,
        "relevant_documents": tables.relevant_documents(evaluation),
    }


def _slices(evaluation: Evaluation, field: str) -> dict[str, dict[str, float]]:
    by_measure = {name: evaluation.scores.by(field, name) for name in evaluation.metrics}
    found: dict[str, dict[str, float]] = {}
    for name, means in by_measure.items():
        for value, summary in means.items():
            row = found.setdefault(value, {"queries": 0})
            row |= {"queries": max(row["queries"], summary.count), name: summary.mean}
    return found


def _queries(report: Report) -> dict[str, Any]:
    facts = {query.query_id: query.metadata for query in report.evaluation.queries}
    return {
        line.query_id: {
            "text": line.text,
            "metadata": facts[line.query_id],
            "scores": line.values,
            "delta": line.delta,
            "latency_ms": line.latency_ms,
            "error": line.error,
            "retrieved": [one.doc_id for one in line.retrieved],
            "expected": {one.doc_id: {"grade": one.grade, "rank": one.rank} for one in line.expected},
            "losses": {loss.doc_id: loss.stage for loss in line.losses},
        }
        for line in tables.report_lines(report)
    }


def _plain(value: Any) -> Any:
    """Return what ``json_value`` leaves as it is: sets, arrays and numbers of NumPy, paths, and anything else as text."""
    if isinstance(value, set | frozenset):
        return sorted(map(json_value, value), key=str)
    if isinstance(value, np.ndarray | np.generic):
        return json_value(value.tolist())
    return value.as_posix() if isinstance(value, Path) else str(value)


# ── JUnit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Case(NamedTuple):
    """One line of a test report."""

    name: str
    kind: str = ""
    """'failure', 'error', 'skipped', or '' if it passed."""
    type: str = ""
    message: str = ""
    detail: str = ""


def junit(report: Report) -> str:
    """Return the checks as test cases, and every question without an answer as an error.

    A check that could not be decided is an error, too, so that no service shows it as passed. Without a gate each measure is a
    skipped case with its value.
    """
    evaluation = report.evaluation
    suites: dict[str, list[Case]] = {}
    for name, value in {} if report.verdict else evaluation.metrics.items():
        suites.setdefault("measures", []).append(Case(name, "skipped", message=f"{name} = {value:.4f}; no gate was run"))
    for check in report.verdict.checks if report.verdict else ():
        kind = {"fail": "failure", "undecided": "error", "advisory": "skipped"}.get(check.status, "")
        behind = f"\nqueries behind it: {', '.join(check.queries)}" if check.queries else ""
        suites.setdefault(check.rule, []).append(Case(place(check), kind, check.rule, check.message, check.message + behind))
    texts = {query.query_id: query.text for query in evaluation.queries}
    for query_id, error in evaluation.failures.items():
        suites.setdefault("queries", []).append(Case(query_id, "error", "no answer", error, texts.get(query_id, "")))
    every = [case for cases in suites.values() for case in cases]
    root = Xml.Element("testsuites", _attributes(name=title(report), **_counts(every)))
    for index, (name, cases) in enumerate(suites.items()):
        _add(root, index, name, cases, report)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _add(root: Xml.Element, index: int, name: str, cases: Sequence[Case], report: Report) -> None:
    # The usual schema wants a time without a zone, and every attribute it knows.
    stamp = f"{datetime.fromisoformat(report.made_at).astimezone(UTC):%Y-%m-%dT%H:%M:%S}"
    host = report.evaluation.setup.machine or "unknown"
    head = _attributes(name=name, package="ringtrue", id=str(index), timestamp=stamp, hostname=host, **_counts(cases))
    suite = Xml.SubElement(root, "testsuite", head)
    properties = Xml.SubElement(suite, "properties")
    for key, value in _facts(report).items():
        if value:
            Xml.SubElement(properties, "property", _attributes(name=key, value=value))
    for case in cases:
        attributes = _attributes(name=case.name, classname=f"ringtrue.{name.replace(' ', '_')}", time=NO_TIME)
        element = Xml.SubElement(suite, "testcase", attributes)
        if case.kind:
            kind = {} if case.kind == "skipped" else {"type": case.type}
            inside = Xml.SubElement(element, case.kind, _attributes(message=case.message, **kind))
            inside.text = _legal(case.detail) if kind else None
    out = Xml.SubElement(suite, "system-out")
    out.text = _legal("\n".join(tables.notes(report))) if index == 0 else ""
    Xml.SubElement(suite, "system-err")


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    kinds = [case.kind for case in cases]
    counts = {"failures": kinds.count("failure"), "errors": kinds.count("error"), "skipped": kinds.count("skipped")}
    return {"tests": str(len(cases)), **{name: str(count) for name, count in counts.items()}, "time": NO_TIME}


def _attributes(**values: str) -> dict[str, str]:
    return {name: _legal(value) for name, value in values.items()}


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)


# ── SARIF ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def sarif(report: Report, *, baseline_file: str | None = None) -> str:
    """Return a log with one run. Results point to the baseline, as the repository names its file, if that is given."""
    evaluation, golden = report.evaluation, report.evaluation.setup.golden
    logical = {"name": golden.id, "fullyQualifiedName": golden.version, "kind": "resource"}
    location: dict[str, Any] = {"logicalLocations": [logical]}
    if baseline_file is not None:
        uri = quote(baseline_file.replace("\\", "/"), safe="/:@!$&'()*+,;=~")
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}
    names = ("status", "measure", "slice", "current", "threshold", "baseline", "degradation", "queries")
    results = []
    for check in report.verdict.checks if report.verdict else ():
        if check.status in LEVEL:
            text = check.message + (f" (queries behind it: {', '.join(check.queries)})" if check.queries else "")
            entry = _entry(check.rule, LEVEL[check.status], text, location, key=f"{check.rule}/{place(check)}")
            results.append(entry | {"properties": {name: getattr(check, name) for name in names}})
    for query_id, error in evaluation.failures.items():
        text = f"query '{query_id}' got no answer: {error}"
        results.append(_entry("query", "error", text, location, key=f"query/{query_id}"))
    rules = {result["ruleId"]: _rule(result["ruleId"]) for result in results}
    for result in results:
        result["ruleIndex"] = list(rules).index(result["ruleId"])
    driver = {"name": "Ringtrue", "version": evaluation.setup.ringtrue, "rules": list(rules.values())}
    known = _facts(report) | {
        "verdict": report.verdict.word if report.verdict else None,
        "provisional": golden.provisional,
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
    return _text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule_id: str) -> dict[str, Any]:
    words = rule_id.removeprefix("ringtrue/").split("-")
    text, title = {"text": RULES[" ".join(words)]}, "".join(map(str.capitalize, words))
    return {
        "id": rule_id,
        "name": title,
        "shortDescription": text,
        "fullDescription": text,
        "defaultConfiguration": {"level": "error"},
    }


def _entry(rule: str, level: str, text: str, location: Mapping[str, Any], *, key: str) -> dict[str, Any]:
    return {
        "ruleId": f"ringtrue/{rule.replace(' ', '-')}",
        "level": level,
        "message": {"text": text},
        "locations": [location],
        # The same finding in the next run is the same alert, whatever its numbers are then.
        "partialFingerprints": {"ringtrue/v1": key},
    }
