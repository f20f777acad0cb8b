"""The one way a report comes about: compare, judge, advise, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from ringtrue.report.advice import recommend
from ringtrue.report.records import Report
from ringtrue.report.sentences import same_golden
from ringtrue.run import Evaluation
from ringtrue.verdict import Baseline, Comparison, Policy, Verdict


def report_on(
    evaluation: Evaluation,
    *,
    made_at: str,
    other: Evaluation | None = None,
    baseline: Baseline | None = None,
    policy: Policy | None = None,
    verdict: Verdict | None = None,
    title: str = "",
    notes: Sequence[str] = (),
) -> Report:
    """Return everything there is to tell about an evaluation.

    It is compared with ``other`` if given, else with the baseline, by the numbers that the gate decided by. It is judged if
    there is a baseline or a policy, unless a ``verdict`` is given. Two runs without a common query, such as the two parts of
    a split, stand side by side without a comparison.

    Raises what ``compare`` and ``gate`` raise.
    """
    from ringtrue.verdict import gate

    if verdict is None and (baseline is not None or policy is not None):
        verdict = gate(evaluation, policy or Policy(), baseline=baseline)
    made = Report(evaluation, made_at, other, baseline, verdict=verdict, title=title, notes=tuple(notes))
    if other is not None:
        if set(other.scores.query_ids).isdisjoint(evaluation.scores.query_ids):
            made = replace(made, notes=(*made.notes, f"{other.name} shares no query with this run: no paired comparison"))
        else:
            made = replace(made, comparison=_compared(other, evaluation))
    elif baseline is not None and same_golden(made) and not set(baseline.per_query).isdisjoint(evaluation.scores.query_ids):
        made = replace(made, comparison=_gated(verdict) or _compared(baseline, evaluation, verdict))
    return replace(made, recommendations=recommend(made))


def _gated(verdict: Verdict | None) -> Comparison | None:
    return None if verdict is None else verdict.comparison


def _compared(before: Evaluation | Baseline, after: Evaluation, verdict: Verdict | None = None) -> Comparison:
    """Return the comparison, in which the measures decide that decided a verdict of which only the checks were kept."""
    from ringtrue.verdict import compare

    checks = verdict.checks if verdict is not None else ()
    deciding = tuple(dict.fromkeys(check.measure for check in checks if check.rule == "significant drop"))
    return compare(before, after, deciding=deciding or None, slices=after.setup.golden.slices)


def file_name(made_at: str, suffix: str = ".md") -> str:
    """Return the usual name of a report's file.

    >>> file_name("2026-11-16T08:00:00+00:00")
    'ringtrue-eval-20261116T080000Z.md'
    """
    moment = datetime.fromisoformat(made_at)
    moment = moment.astimezone(UTC) if moment.tzinfo else moment
    return f"ringtrue-eval-{moment:%Y%m%dT%H%M%SZ}{suffix}"
