"""The verdict in plain words, and how numbers are written. What is unknown is a dash, never a number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Literal

from ringtrue.measures import Measure
from ringtrue.report.records import Report
from ringtrue.report.story import DASH, all_the_same, comparison_of, confirming, counted, primary, same
from ringtrue.verdict import Check, Comparison, MeasureComparison

Tone = Literal["good", "bad", "unsure", "plain"]


@dataclass(frozen=True)
class Headline:
    """The first thing a reader sees."""

    word: str
    tone: Tone
    why: str
    """One sentence with the number behind the word."""
    against: tuple[str, Tone, str] | None
    """Of a gated run that was compared, too: the other side, tone and sentence of that comparison; else None."""
    sure: str
    """How sure that is; '' where nothing was tested."""


def number(value: float | None, *, digits: int = 3) -> str:
    """Return a value for a table.

    >>> number(0.71249), number(math.nan), number(1234.5678)
    ('0.712', '—', '1,234.6')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return (f"{value:,.1f}" if abs(value) >= 100 else f"{value:.{digits}f}").replace("-", "−")


def signed(value: float | None, *, digits: int = 3) -> str:
    """Return a difference with its sign, always with as many digits: one that is not 0 but rounds to it keeps the sign.

    >>> signed(0.0781), signed(-0.03), signed(0.0), signed(-0.0002)
    ('+0.078', '−0.030', '0.000', '−0.000')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return f"{0:.{digits}f}" if value == 0 else f"{value:+,.{digits}f}".replace("-", "−")


def percent(share: float | None, *, sign: bool = False) -> str:
    """Return a share in percent.

    >>> percent(0.7777), percent(0.05), percent(-0.021, sign=True)
    ('77.8 %', '5 %', '−2.1 %')
    """
    if share is None or not math.isfinite(share):
        return DASH
    text = f"{100 * share:{'+' if sign and share else ''}.1f}".removesuffix(".0")
    return text.replace("-", "−") + " %"


def probability(value: float) -> str:
    """Return a p-value or probability; one that is not 0 or 1 never reads as either.

    >>> probability(0.0312), probability(0.00001), probability(0.99999)
    ('0.031', '< 0.001', '> 0.999')
    """
    if not math.isfinite(value):
        return DASH
    if 0 < value < 0.001:
        return "< 0.001"
    if 0.999 < value < 1:
        return "> 0.999"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def moment(text: str) -> str:
    """Return a moment for people, in UTC; a text that is none stays as it is.

    >>> moment("2026-11-16T08:00:00+00:00")
    '16 November 2026, 08:00 UTC'
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    when = when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


@cache
def lower_is_better(measure: str) -> bool:
    """Return whether less of a measure is better."""
    return Measure.parse(measure).definition.lower_is_better


def headline(report: Report) -> Headline:
    """Return the verdict first: of the gate, else of the comparison, else the headline number."""
    comparison = comparison_of(report)
    if report.verdict is not None:
        tones: dict[str, Tone] = {"pass": "good", "fail": "bad", "undecided": "unsure"}
        why = _gate(report.verdict.word, report.verdict.checks, report.verdict.baseline, report.verdict.notes)
        return Headline(
            report.verdict.word.upper(), tones[report.verdict.word], why, _against(comparison), _sure(report, comparison)
        )
    if comparison is not None:
        word = "The same" if same(comparison) else comparison.verdict.capitalize()
        return Headline(word, _tone(comparison), _compared(comparison), None, _sure(report, comparison))
    return Headline("Measured", "plain", _measured(report), None, _sure(report, None))


def _tone(comparison: Comparison) -> Tone:
    tones: dict[str, Tone] = {"better": "good", "worse": "bad"}
    return "plain" if same(comparison) else tones.get(comparison.verdict, "unsure")


def _against(comparison: Comparison | None) -> tuple[str, Tone, str] | None:
    """The gate's baseline and the other run may be two things, so the comparison names its own."""
    found = comparison.measures.get(comparison.primary) if comparison else None
    if comparison is None or found is None:
        return None
    if same(comparison):
        text = f"the same, {all_the_same(comparison)}."
    elif found.n < 2:
        text = _sentence(f"{comparison.verdict}, {comparison.reason}")
    else:
        text = f"{comparison.verdict}, {found.measure} {signed(found.diff)} ({number(found.a)} → {number(found.b)})."
    return comparison.a, _tone(comparison), text


def _gate(word: str, checks: tuple[Check, ...], baseline: str | None, notes: tuple[str, ...]) -> str:
    against = f" against baseline {baseline}" if baseline else ""
    decided = [check for check in checks if check.status != "advisory"]
    if word == "pass":
        if not decided:
            return "No check was asked for."
        near = sum(check.status == "degraded" for check in checks)
        within = f"; {near} fell within the tolerance" if near else ""
        every = "The only check passed" if len(decided) == 1 else f"All {len(decided)} checks passed"
        return f"{every}{against}{within}."
    wanted = "fail" if word == "fail" else "undecided"
    guilty = [check for check in checks if check.status == wanted]
    if not guilty:
        return notes[0] if notes else "No honest decision could be made."
    what = "failed" if word == "fail" else "could not be decided"
    guilty.sort(key=lambda check: -(check.degradation or 0.0))
    against = "" if "baseline" in guilty[0].message else against
    return f"{len(guilty)} of {counted(len(decided), 'check')} {what}{against}: {_sentence(guilty[0].message)}"


def _compared(comparison: Comparison) -> str:
    found = comparison.measures.get(comparison.primary)
    if found is None or found.n < 2:
        return _sentence(comparison.reason)
    if same(comparison):
        return f"“{comparison.b}” and “{comparison.a}” scored alike: {all_the_same(comparison)}."
    move = f"{found.measure} {number(found.a)} → {number(found.b)}"
    if comparison.verdict == "not enough evidence":
        return (
            f"These {found.n:,} queries cannot tell “{comparison.b}” and “{comparison.a}” apart: {move} ({signed(found.diff)})."
        )
    return f"“{comparison.b}” answers {comparison.verdict} than “{comparison.a}”: {move} ({signed(found.diff)})."


def _measured(report: Report) -> str:
    name = primary(report)
    evaluation = report.evaluation
    answered = len(evaluation.queries) - len(evaluation.failures)
    failed = f"; {counted(len(evaluation.failures), 'query')} got no answer" if evaluation.failures else ""
    asked = counted(answered, "query")
    return f"{name} is {number(evaluation.metrics[name])} on average over {asked}{failed}. Not judged: no baseline, no rules."


def _sure(report: Report, comparison: Comparison | None) -> str:
    if comparison is not None:
        found = comparison.measures.get(comparison.primary)
        return "" if found is None or found.n < 2 or same(comparison) else _tested(found, comparison)
    interval = report.evaluation.intervals.get(primary(report))
    if interval is None or not all(map(math.isfinite, interval)):
        return ""
    name = primary(report)
    mean = number(report.evaluation.metrics[name])
    return f"{name} is {mean} on average, 95 % interval {number(interval[0])} to {number(interval[1])}."


def _tested(found: MeasureComparison, comparison: Comparison) -> str:
    level = f"{100 * (1 - found.level):.4g} %"
    p = f"{'adjusted ' if found.tests > 1 else ''}p {_equals(found.p_adjusted)}"
    text = (
        f"How sure: over {found.n:,} paired queries {found.measure} differs from that of {comparison.a} by "
        f"{signed(found.diff)}, {level} interval {signed(found.low)} to {signed(found.high)}, "
        f"{p}, probability of being better {_equals(found.prob_better)}."
    )
    if found.word == "not enough evidence" and found.more_queries:
        text += f" {confirming(found).capitalize()}."
    return text


def _equals(value: float) -> str:
    text = probability(value)
    return text if text[0] in "<>" else f"= {text}"


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."
