"""The sentences of every report and page: verdict, comparison, reasons, and the terms of the tests.

The terminal, Markdown, HTML and the comment on a pull request differ in layout only; what they claim is written here once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from ringtrue.brief import counted
from ringtrue.measures import Measure
from ringtrue.report.formatting import DASH, number, percent, signed, span
from ringtrue.report.records import Report
from ringtrue.stats import OUT_OF_REACH
from ringtrue.verdict import Check, Comparison, MeasureComparison, Verdict

STATUS = {"pass": "PASS", "degraded": "DEGRADED", "fail": "FAIL", "advisory": "ADVISORY", "undecided": "UNDECIDED"}
SIGN = {"pass": "✅", "degraded": "⚠️", "fail": "❌", "advisory": "ℹ️", "undecided": "❔"}
POWER = 0.80
"""The power with which sample sizes are planned, everywhere."""
USUAL_DEPTH = 10
"""How far people look, for a measure without a cut-off."""
BY_WEIGHT = ("fail", "undecided", "degraded", "pass", "advisory")
"""Of several checks on one measure the first of these is the measure's status."""
ABSOLUTE = ("floor", "latency", "constitutional", "completeness")
"""Rules that judge a run by itself, whatever the baseline."""
Tone = Literal["good", "bad", "unsure", "plain"]
TONES: Mapping[str, Tone] = {"pass": "good", "fail": "bad", "better": "good", "worse": "bad"}
"""The tone of a word; any other word leaves something open."""


@dataclass(frozen=True)
class Headline:
    """The first thing that a reader of a page sees."""

    word: str
    tone: Tone
    why: str
    """The sentence behind the word."""
    against: str = ""
    """The comparison, as a sentence, if the word is the gate's."""
    against_tone: Tone = "plain"


def page_headline(report: Report) -> Headline:
    """Return the verdict first: the gate's, else the comparison's, else that nothing was judged."""
    comparison = comparison_of(report)
    tone = "plain" if comparison is None else TONES.get(comparison.verdict, "unsure")
    text = headline(report)
    if report.verdict is not None:
        word, _, text = text.partition(": ")
        return Headline(word, TONES.get(report.verdict.word, "unsure"), _sentence(text), _sentence(against(report)), tone)
    if comparison is None:
        return Headline("Measured", "plain", _sentence(text))
    return Headline(comparison.verdict.capitalize(), tone, _sentence(text))


def _sentence(text: str) -> str:
    # The name of a run or measure at the beginning keeps its spelling.
    text = text[:1].upper() + text[1:] if text.startswith(("all ", "the ", "no ")) else text
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


@cache
def lower_is_better(measure: str) -> bool:
    """Return whether less of a measure is better."""
    return Measure.parse(measure).definition.lower_is_better


def title(report: Report) -> str:
    """Return the heading."""
    return report.title or f"Ringtrue evaluation: {report.evaluation.name}"


def same_golden(report: Report) -> bool:
    """Return False if the baseline was recorded on another golden set: its numbers then say nothing about this run."""
    if report.baseline is None or not report.baseline.golden.content_hash:
        return True
    return report.baseline.golden.content_hash == report.evaluation.setup.golden.content_hash


def comparison_of(report: Report) -> Comparison | None:
    """Return the comparison that the report shows: the one that was asked for, else the gate's own."""
    own = report.verdict.comparison if report.verdict is not None and same_golden(report) else None
    return report.comparison or own


def against_baseline(report: Report) -> Comparison | None:
    """Return the comparison with what the table calls the baseline: the recorded one, else the other run."""
    if report.baseline is None or not same_golden(report):
        return comparison_of(report)
    made = (report.comparison, report.verdict.comparison if report.verdict else None)
    return next((one for one in made if one is not None and one.a == report.baseline.name), None)


def before_name(report: Report) -> str:
    """Return what heads the column of earlier values: ``Baseline``, or the name of the other run if there is no baseline."""
    comparison = comparison_of(report)
    without = report.baseline is None or not same_golden(report)
    return comparison.a if without and comparison is not None else "Baseline"


def says(found: MeasureComparison) -> str:
    """Return the word for people, marked if the measure was not asked to decide."""
    return found.word if found.decides else f"{found.word} (info)"


def how_tested(comparison: Comparison, *, gated: bool = False) -> str:
    """Return the sentences below every table of measures: what p and interval mean, and which measures decide."""
    main = comparison.measures[comparison.primary]
    decide = comparison.deciding
    text = f"p and interval are those that decide a verdict at alpha = {comparison.alpha:g}"
    text += f", corrected for {main.tests} tests ({comparison.correction})." if main.decides and main.tests > 1 else "."
    if len(decide) == len(comparison.measures):
        return text
    names = ", ".join(decide)
    if gated:
        return f"{text} The gate judges the rows with a status; better or worse is decided by {names} alone."
    return f"{text} {names} {'decides' if len(decide) == 1 else 'decide'}; the other measures are informational."


def terms(alpha: float, tests: int) -> str:
    """Return the conditions under which a number of queries finds a difference; every text about sizes names the same ones."""
    corrected = f", corrected for {tests} tests" if tests > 1 else ""
    return f"{100 * POWER:g} % power, alpha {alpha:g}{corrected}"


def slice_terms(comparison: Comparison) -> str:
    """Return how the slices of a comparison were tested."""
    over = "" if comparison.correction == "none" else "p, interval and verdict are corrected for all values of the field. "
    return f"{over}Slices do not affect the overall verdict."


def against(report: Report) -> str:
    """Return the comparison as a sentence, ``Against bm25: better, nDCG@10 +0.0612 (…)``; '' if the headline is that sentence.

    The gate judges by floors and by its baseline; a comparison may be with another run, so neither speaks for the other.
    """
    comparison = comparison_of(report)
    if report.verdict is None or comparison is None:
        return ""
    found = comparison.measures[comparison.primary]
    if found.n < 2 or found.ties == found.n:
        return f"Against {comparison.a}: {comparison.verdict}; {comparison.reason}"
    text = (
        f"Against {comparison.a}: {comparison.verdict}, {found.measure} {signed(found.diff)} ({number(found.a)} → "
        f"{number(found.b)}, {found.certainty} over {counted(found.n, 'paired query')})"
    )
    if comparison.verdict == "not enough evidence" and found.more_queries:
        more = counted(found.more_queries, "more query")
        confirming = f"confirming a difference of this size would take about {more}"
        out_of_reach = found.more_queries > OUT_OF_REACH * found.n
        text += f"; {'too small to confirm with a set of this size' if out_of_reach else confirming}"
    return text


def primary(report: Report) -> str:
    """Return the measure by which queries are ordered: that of the comparison, else the first one scored."""
    comparison = comparison_of(report)
    names = [str(measure) for measure in report.evaluation.scores.measures]
    return comparison.primary if comparison is not None and comparison.primary in names else names[0]


def depth(report: Report) -> int:
    """Return how far down readers look: the cut-off of the first measure, else ten."""
    at = Measure.parse(primary(report)).at
    return at if isinstance(at, int) else USUAL_DEPTH


def setting(value: Any) -> str:
    """Return a value of a configuration as people write it; a dash for none."""
    if value in (None, ""):
        return DASH
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={setting(one)}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def outcome(report: Report) -> Literal["pass", "fail", "undecided"] | None:
    """Return the gate's word; None if nothing was judged."""
    return report.verdict.word if report.verdict else None


def headline(report: Report) -> str:
    """Return the one sentence that comes first, in plain words: the gate's verdict, else the comparison's, else the result."""
    if report.verdict is not None:
        return judged(report.verdict)
    comparison = comparison_of(report)
    if comparison is not None:
        return _compared(comparison)
    evaluation = report.evaluation
    name = str(evaluation.scores.measures[0])
    count = evaluation.scores.summary(name).count
    text = f"{name} is {number(evaluation.metrics[name])}" if count else f"{name} is undefined for every query"
    if count and name in evaluation.intervals:
        text += f" (95 % interval {span(evaluation.intervals[name])})"
    text += f" over {counted(count, 'query')}" if count else ""
    if evaluation.failures:
        text += f"; {counted(len(evaluation.failures), 'query')} got no answer"
    return text + "; not judged"


def _compared(comparison: Comparison) -> str:
    a, b, why = comparison.a, comparison.b, f"by {comparison.primary}: {comparison.reason}"
    if comparison.verdict == "not enough evidence":
        return f"Not enough evidence that {b} differs from {a} {why}"
    return f"{b} is {comparison.verdict} than {a} {why}"


def place(check: Check) -> str:
    """Return what a check looked at: ``R@5`` or ``R@5 in query_type=factual``."""
    return check.measure if check.slice is None else f"{check.measure} in {check.slice}"


def reasons(report: Report) -> tuple[str, ...]:
    """Return the sentences of the checks that failed or could not be decided, failures first."""
    if report.verdict is None:
        return ()
    return tuple(check.message for check in (*report.verdict.failures, *report.verdict.of_status("undecided")))


def judged(verdict: Verdict) -> str:
    """Return the gate's verdict as a sentence: which checks failed or could not be decided."""
    by_status = {word: [check for check in verdict.checks if check.status == word] for word in STATUS}
    # An advisory check has no say, so it is not among those that hold or fail.
    decisive = len(verdict.checks) - len(by_status["advisory"])
    checks = counted(decisive, "check")
    told = by_status["fail"] or by_status["undecided"] or verdict.checks
    against = f" against baseline {verdict.baseline}" if verdict.baseline and any(map(_compares, told)) else ""
    if verdict.word == "fail":
        text = f"FAIL: {len(by_status['fail'])} of {checks} failed{against}: {_places(by_status['fail'])}"
    elif verdict.word == "undecided":
        named = f": {_places(by_status['undecided'])}" if by_status["undecided"] else ""
        text = f"UNDECIDED: {len(by_status['undecided'])} of {checks} could not be decided{against}{named}"
    elif decisive == 0:
        text = f"PASS: no check applied{against}"
    else:
        text = f"PASS: {'the one check holds' if decisive == 1 else f'all {checks} hold'}{against}"
    if by_status["degraded"]:
        fell = [
            f"{place(check)} {percent(None if (by := check.degradation) is None else -by)}" for check in by_status["degraded"]
        ]
        text += f"; {len(fell)} degraded within tolerance: {_some(fell)}"
    if by_status["advisory"]:
        text += f"; {len(by_status['advisory'])} more {'is' if len(by_status['advisory']) == 1 else 'are'} informational"
    return text


def _compares(check: Check) -> bool:
    """Return whether a check holds the run against the baseline; the rule of a slice may be a floor."""
    return check.rule not in ABSOLUTE and (check.rule != "slice" or check.baseline is not None)


def _places(checks: list[Check]) -> str:
    return _some(list(dict.fromkeys(map(place, checks))), "measure")


def _some(texts: list[str], what: str = "", most: int = 4) -> str:
    more = counted(len(texts) - most, f"more {what}".strip(), "more" if not what else "")
    return ", ".join(texts[:most]) + (f" and {more}" if len(texts) > most else "")
