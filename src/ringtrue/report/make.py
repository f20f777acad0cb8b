"""The one way a report comes about: compare, judge, advise, in this order. Its file's ending names its format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ringtrue.errors import InputError, nearest
from ringtrue.report.advice import recommend
from ringtrue.report.records import Report
from ringtrue.report.sentences import same_golden
from ringtrue.run import Evaluation
from ringtrue.verdict import Baseline, Comparison, Policy, Verdict, compare, gate


def report_on(
    evaluation: Evaluation,
    *,
    made_at: str,
    other: Evaluation | None = None,
    baseline: Baseline | None = None,
    policy: Policy | None = None,
    verdict: Verdict | None = None,
    title: str = "",
) -> Report:
    """Return everything there is to tell about an evaluation.

    It is compared with ``other`` if given, else with the baseline, by the numbers that the gate decided by. It is judged if
    there is a baseline or a policy, unless a ``verdict`` is given. Two runs without a common query, such as the two parts of
    a split, stand side by side without a comparison.

    Raises what ``compare`` and ``gate`` raise.
    """
    if verdict is None and (baseline is not None or policy is not None):
        verdict = gate(evaluation, policy or Policy(), baseline=baseline)
    made = Report(evaluation, made_at, other, baseline, verdict=verdict, title=title)
    if other is not None:
        if set(other.scores.query_ids).isdisjoint(evaluation.scores.query_ids):
            made = replace(made, notes=(f"{other.name} shares no query with this run: no paired comparison",))
        else:
            made = replace(made, comparison=_compared(other, evaluation))
    elif baseline is not None and same_golden(made) and not set(baseline.per_query).isdisjoint(evaluation.scores.query_ids):
        made = replace(made, comparison=(verdict and verdict.comparison) or _compared(baseline, evaluation, verdict))
    return replace(made, recommendations=recommend(made))


def _compared(before: Evaluation | Baseline, after: Evaluation, verdict: Verdict | None = None) -> Comparison:
    """Return the comparison, in which the measures decide that decided a verdict of which only the checks were kept."""
    checks = verdict.checks if verdict is not None else ()
    deciding = tuple(dict.fromkeys(check.measure for check in checks if check.rule == "significant drop"))
    return compare(before, after, deciding=deciding or None, slices=after.setup.golden.slices)


def report_writer(path: Path) -> Callable[[Report], str]:
    """Return what turns a report into the text of such a file; raises InputError for an ending that no format has.

    >>> report_writer(Path("gate.md")).__name__
    'markdown'
    """
    from ringtrue.report.html_report import html
    from ringtrue.report.machine_formats import as_json, junit, sarif
    from ringtrue.report.markdown_report import markdown

    formats: dict[str, Callable[[Report], str]]
    formats = {".md": markdown, ".html": html, ".json": as_json, ".xml": junit, ".sarif": sarif}
    if path.suffix.lower() not in formats:
        raise InputError(f"--report {path}: the ending names no kind of report; write {nearest(path.suffix, formats)}")
    return formats[path.suffix.lower()]


def file_name(made_at: str, suffix: str = ".md") -> str:
    """Return the usual name of a report's file.

    >>> file_name("2026-11-16T08:00:00+00:00")
    'ringtrue-eval-20261116T080000Z.md'
    """
    return f"ringtrue-eval-{datetime.fromisoformat(made_at).astimezone(UTC):%Y%m%dT%H%M%SZ}{suffix}"
