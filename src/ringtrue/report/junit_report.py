"""The report as JUnit XML, which every CI service shows as tests: a suite per rule, a case per check."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ringtrue.report import tables
from ringtrue.report.json_report import facts
from ringtrue.report.records import Report
from ringtrue.report.sentences import place, title
from ringtrue.verdict import Check

# Characters that XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NO_TIME = "0.000"
"""Checks take no time worth mentioning, but the schema asks for one."""


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
    if report.verdict is None:
        suites["measures"] = [
            Case(name, "skipped", message=f"{name} = {value:.4f}; no gate was asked")
            for name, value in evaluation.metrics.items()
        ]
    for check in report.verdict.checks if report.verdict else ():
        suites.setdefault(check.rule, []).append(_case(check))
    texts = {query.query_id: query.text for query in evaluation.queries}
    if evaluation.failures:
        suites["queries"] = [
            Case(query_id, "error", "no answer", error, texts.get(query_id, ""))
            for query_id, error in evaluation.failures.items()
        ]
    every = [case for cases in suites.values() for case in cases]
    root = Xml.Element("testsuites", _attributes(name=title(report), **_counts(every)))
    for index, (name, cases) in enumerate(suites.items()):
        _add(root, index, name, cases, report)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _case(check: Check) -> Case:
    kind = {"fail": "failure", "undecided": "error", "advisory": "skipped"}.get(check.status, "")
    behind = f"\nqueries behind it: {', '.join(check.queries)}" if check.queries else ""
    return Case(place(check), kind, check.rule, check.message, check.message + behind)


def _add(root: Xml.Element, index: int, name: str, cases: Sequence[Case], report: Report) -> None:
    # The usual schema wants a time without a zone, and every attribute it knows.
    moment = datetime.fromisoformat(report.made_at)
    stamp = f"{moment.astimezone(UTC) if moment.tzinfo else moment:%Y-%m-%dT%H:%M:%S}"
    host = report.evaluation.setup.machine or "unknown"
    head = _attributes(name=name, package="ringtrue", id=str(index), timestamp=stamp, hostname=host, **_counts(cases))
    suite = Xml.SubElement(root, "testsuite", head)
    properties = Xml.SubElement(suite, "properties")
    for key, value in facts(report).items():
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
