"""The report as JUnit XML, which every CI service draws as tests: a suite per rule, a case per check (B-4)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ringtrue.report import lines
from ringtrue.report.records import Report
from ringtrue.report.story import headline, place, title
from ringtrue.run import Evaluation
from ringtrue.verdict import Check

# What XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One line of a test report; ``kind`` says what is inside it, and '' that it passed."""

    name: str
    kind: str = ""
    """'failure', 'error', 'skipped' or ''."""
    type: str = ""
    message: str = ""
    detail: str = ""
    seconds: float = 0.0


def junit(report: Report) -> str:
    """Return the checks as test cases, and every question without an answer as an error.

    What could not be decided is an error, too: nothing that a service would show as passed. Without a gate each measure is
    a skipped case that carries its value.
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
    if evaluation.failures:
        suites["queries"] = [
            Case(query_id, "error", "no answer", error, _question(evaluation, query_id))
            for query_id, error in evaluation.failures.items()
        ]
    root = Xml.Element(
        "testsuites", _attributes(name=title(report)) | _counts([case for one in suites.values() for case in one])
    )
    for index, (name, cases) in enumerate(suites.items()):
        _add(root, index, name, cases, report)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _case(check: Check) -> Case:
    kind = {"fail": "failure", "undecided": "error", "advisory": "skipped"}.get(check.status, "")
    guilty = f"\nqueries behind it: {', '.join(check.queries)}" if check.queries else ""
    return Case(place(check), kind, check.rule, check.message, check.message + guilty)


def _add(root: Xml.Element, index: int, name: str, cases: Sequence[Case], report: Report) -> None:
    setup = report.evaluation.setup
    # The usual schema wants a time without a zone, and every attribute it knows.
    moment = datetime.fromisoformat(report.made_at)
    stamp = (moment.astimezone(UTC) if moment.tzinfo else moment).strftime("%Y-%m-%dT%H:%M:%S")
    head = _attributes(name=name, package="ringtrue", id=str(index), timestamp=stamp, hostname=setup.machine or "unknown")
    suite = Xml.SubElement(root, "testsuite", head | _counts(cases))
    facts = {
        "retriever": setup.retriever,
        "golden": setup.golden.version,
        "provisional": str(setup.golden.provisional).lower(),
        "reviewed": setup.golden.reviewed,
        "split": setup.golden.split,
        "corpus": setup.corpus or setup.golden.corpus_hash or "",
        "baseline": report.baseline.version if report.baseline else "",
        "headline": headline(report),
    }
    properties = Xml.SubElement(suite, "properties")
    for key, value in facts.items():
        if value:
            Xml.SubElement(properties, "property", _attributes(name=key, value=value))
    for case in cases:
        attributes = _attributes(name=case.name, classname=f"ringtrue.{name.replace(' ', '_')}", time=f"{case.seconds:.3f}")
        element = Xml.SubElement(suite, "testcase", attributes)
        if case.kind == "skipped":
            Xml.SubElement(element, "skipped", _attributes(message=case.message))
        elif case.kind:
            inside = Xml.SubElement(element, case.kind, _attributes(message=case.message, type=case.type))
            inside.text = _legal(case.detail)
    out = Xml.SubElement(suite, "system-out")
    out.text = _legal("\n".join(lines.notes(report))) if index == 0 else ""
    Xml.SubElement(suite, "system-err")


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    number = {kind: sum(case.kind == kind for case in cases) for kind in ("failure", "error", "skipped")}
    return {
        "tests": str(len(cases)),
        "failures": str(number["failure"]),
        "errors": str(number["error"]),
        "skipped": str(number["skipped"]),
        "time": f"{sum(case.seconds for case in cases):.3f}",
    }


def _question(evaluation: Evaluation, query_id: str) -> str:
    return next((query.text for query in evaluation.queries if query.query_id == query_id), "")


def _attributes(**values: str) -> dict[str, str]:
    return {name: _legal(value) for name, value in values.items()}


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
