"""What every report says in the same words: numbers as text, statuses, and the sentence that comes first.

The terminal, Markdown, HTML and the comment on a pull request differ in layout only; what they claim is written here once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from ringtrue.measures import Measure
from ringtrue.report.records import Report
from ringtrue.run import Evaluation
from ringtrue.verdict import Check, Comparison, MeasureComparison, Verdict

DASH = "—"
PERCENTILES = ("p50", "p95", "p99")
STATUS = {"pass": "PASS", "degraded": "DEGRADED", "fail": "FAIL", "advisory": "ADVISORY", "undecided": "UNDECIDED"}
SIGN = {"pass": "✅", "degraded": "⚠️", "fail": "❌", "advisory": "ℹ️", "undecided": "❔"}
POWER = 0.80
"""With which a size is planned (G-5), everywhere."""
OUT_OF_REACH = 10
"""So many times the queries of a set are more than anybody adds to it."""
USUAL_DEPTH = 10
"""How far people look, for a measure without a cut-off."""
BY_WEIGHT = ("fail", "undecided", "degraded", "pass", "advisory")
"""Of several checks on one measure the first of these is the measure's status."""


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for a table; a dash stands for "not defined".

    >>> number(0.5), number(float("nan"))
    ('0.5000', '—')
    """
    return DASH if value is None or math.isnan(value) else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 4) -> str:
    """Return a difference with its sign, and with a true minus."""
    text = number(value, digits)
    if value is None or math.isnan(value) or not float(f"{value:.{digits}f}"):
        return text.lstrip("-")
    return text.replace("-", "−") if value < 0 else f"+{text}"


def percent(share: float | None) -> str:
    """Return a change as ``+2.4 %``; a dash where it is not defined."""
    return DASH if share is None or math.isnan(share) else f"{signed(100 * share, 1)} %"


def portion(share: float) -> str:
    """Return a share as ``24 %``."""
    return DASH if math.isnan(share) else f"{100 * share:.0f} %"


def amount(measure: str, value: float | None) -> str:
    """Return a value as its measure is read: milliseconds for percentiles, four digits for everything else."""
    if measure in PERCENTILES:
        return milliseconds(value)
    return number(value)


def milliseconds(value: float | None) -> str:
    """Return ``175 ms``, with decimals where a whole number would say too little; what is not 0 never reads as 0.

    >>> milliseconds(175.2), milliseconds(2.44), milliseconds(0.0421), milliseconds(0.0009), milliseconds(0.0)
    ('175 ms', '2.4 ms', '0.04 ms', '< 0.01 ms', '0 ms')
    """
    if value is None or not math.isfinite(value):
        return DASH
    if 0 < value < 0.005:
        return "< 0.01 ms"
    return f"{value:,.{_places_after(value)}f} ms"


def signed_milliseconds(value: float | None) -> str:
    """Return a difference of latencies with as many decimals as a latency of that size has.

    >>> signed_milliseconds(43.3), signed_milliseconds(-0.12), signed_milliseconds(0.0)
    ('+43 ms', '−0.12 ms', '0 ms')
    """
    return DASH if value is None or math.isnan(value) else f"{signed(value, _places_after(value))} ms"


def _places_after(milliseconds: float) -> int:
    size = abs(milliseconds)
    return 0 if size >= 9.95 or size == 0 else 1 if size >= 0.95 else 2


def span(interval: tuple[float, float] | None, digits: int = 4) -> str:
    """Return ``0.8012 to 0.8840``."""
    if interval is None or any(map(math.isnan, interval)):
        return DASH
    return f"{number(interval[0], digits)} to {number(interval[1], digits)}"


def beside_id(query_id: str, text: str) -> str:
    """Return the text to show beside a query's id: nothing if it is the id itself.

    >>> beside_id("q1", "late checkout"), beside_id("late checkout", "late checkout")
    ('late checkout', '')
    """
    return "" if text == query_id else text


def counted(count: int, one: str, many: str = "") -> str:
    """Return ``1 query`` or ``2 queries``.

    >>> counted(1, "query"), counted(2, "query"), counted(2, "document"), counted(2, "day")
    ('1 query', '2 queries', '2 documents', '2 days')
    """
    becomes_ies = one.endswith("y") and not one.endswith(("ay", "ey", "oy", "uy"))
    plural = many or (f"{one[:-1]}ies" if becomes_ies else f"{one}s")
    return f"{count:,} {one if count == 1 else plural}"


def title(report: Report) -> str:
    """Return the heading."""
    return report.title or f"Ringtrue evaluation: {report.evaluation.name}"


def same_golden(report: Report) -> bool:
    """False where the baseline was recorded on another golden set: its numbers then say nothing about this run."""
    if report.baseline is None or not report.baseline.golden.content_hash:
        return True
    return report.baseline.golden.content_hash == report.evaluation.setup.golden.content_hash


def comparison_of(report: Report) -> Comparison | None:
    """Return the comparison that the report tells, the gate's own where no other was made."""
    own = report.verdict.comparison if report.verdict is not None and same_golden(report) else None
    return report.comparison or own


def against_baseline(report: Report) -> Comparison | None:
    """Return the comparison with what the table calls the baseline: the recorded one, else the other run."""
    if report.baseline is None:
        return comparison_of(report)
    made = (report.comparison, report.verdict.comparison if report.verdict else None)
    return next((one for one in made if one is not None and one.a == report.baseline.name and same_golden(report)), None)


def before_name(report: Report) -> str:
    """Return what heads the column of earlier values: ``Baseline``, or the name of the other run if there is no baseline."""
    comparison = comparison_of(report)
    return comparison.a if report.baseline is None and comparison is not None else "Baseline"


def same(comparison: Comparison) -> bool:
    """True where both sides scored every query alike by every measure: there is then nothing left open."""
    return all(map(alike, comparison.measures.values()))


def alike(found: MeasureComparison) -> bool:
    """True where both sides scored every query alike by this measure."""
    return found.ties == found.n > 0 and found.diff == 0


def says(found: MeasureComparison) -> str:
    """Return the word for people, marked if the measure was not asked to decide."""
    return word_of(found) if found.decides else f"{word_of(found)} (info)"


def word_of(found: MeasureComparison) -> str:
    """Return the word for people: two sides that scored alike leave nothing open."""
    return "the same" if alike(found) else found.word


def how_tested(comparison: Comparison, *, gated: bool = False) -> str:
    """Return the sentences below every table of measures: what p and interval mean, what decides, what is for reading."""
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
    """Return under what conditions a number of queries finds a difference; every text about sizes names the same ones."""
    corrected = f", corrected for {tests} tests" if tests > 1 else ""
    return f"{100 * POWER:g} % power, alpha {alpha:g}{corrected}"


def slice_terms(comparison: Comparison) -> str:
    """Return how the slices of a comparison were tested."""
    over = "" if comparison.correction == "none" else "p, interval and verdict are corrected for all values of the field. "
    return f"{over}Slices do not affect the overall verdict."


def probability(value: float) -> str:
    """Return a p for a table."""
    return DASH if math.isnan(value) else f"{value:.2g}"


def against(report: Report) -> str:
    """Return the comparison as a sentence of its own that names the other side; '' where the headline is that sentence.

    The gate judges by floors and by its baseline; a comparison may be with another run, so neither speaks for the other.
    """
    comparison = comparison_of(report)
    return "" if report.verdict is None or comparison is None else told_against(comparison)


def told_against(comparison: Comparison) -> str:
    """Return C-2's word with what it is said of: ``Against bm25: better, nDCG@10 +0.0612 (…)``."""
    found = comparison.measures.get(comparison.primary)
    if found is None or found.n < 2:
        return f"Against {comparison.a}: {comparison.verdict}; {comparison.reason}"
    if same(comparison):
        return f"Against {comparison.a}: the same; {all_the_same(comparison)}"
    text = (
        f"Against {comparison.a}: {comparison.verdict}, {found.measure} {signed(found.diff)} ({number(found.a)} → "
        f"{number(found.b)}, {found.certainty} over {counted(found.n, 'paired query')})"
    )
    if comparison.verdict == "not enough evidence" and found.more_queries:
        text += f"; {confirming(found)}"
    return text


def confirming(found: MeasureComparison) -> str:
    """Return how many more queries would confirm the difference seen, if a set of such a size is within reach."""
    more = found.more_queries or 0
    if more > OUT_OF_REACH * found.n:
        return "too small to confirm with a set of this size"
    return f"confirming a difference of this size would take about {counted(more, 'more query')}"


def all_the_same(comparison: Comparison) -> str:
    """Return in words that no difference was seen."""
    found = comparison.measures[comparison.primary]
    every = f"all {len(comparison.measures)} measures" if len(comparison.measures) > 1 else found.measure
    return f"every difference is 0, by {every} over {counted(found.n, 'query')}"


def primary(report: Report) -> str:
    """Return the measure by which queries are ordered: that of the comparison, else the first one scored."""
    comparison = comparison_of(report)
    names = [str(measure) for measure in report.evaluation.scores.measures]
    return comparison.primary if comparison is not None and comparison.primary in names else names[0]


def depth(report: Report) -> int:
    """Return how far a reader is taken to look: the cut-off of the first measure, else ten."""
    at = Measure.parse(primary(report)).at
    return at if isinstance(at, int) else USUAL_DEPTH


def setting(value: Any) -> str:
    """Return a value of a configuration as a person would write it; a dash for none."""
    if value is None or value == "":
        return DASH
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def outcome(report: Report) -> Literal["pass", "fail", "undecided"] | None:
    """Return the gate's word; None where nothing was judged."""
    return report.verdict.word if report.verdict else None


def headline(report: Report) -> str:
    """Return the one sentence that comes first, in plain words: the gate's verdict, else the comparison's, else the result."""
    if report.verdict is not None:
        return judged(report.verdict)
    comparison = comparison_of(report)
    if comparison is not None:
        return compared(comparison)
    return measured(report.evaluation)


def measured(evaluation: Evaluation) -> str:
    """Return the result of one evaluation as a sentence."""
    name = str(evaluation.scores.measures[0])
    count = evaluation.scores.summary(name).count
    text = f"{name} is {number(evaluation.metrics[name])}" if count else f"{name} is undefined for every query"
    if count and name in evaluation.intervals:
        text += f" (95 % interval {span(evaluation.intervals[name])})"
    text += f" over {counted(count, 'query')}" if count else ""
    if evaluation.failures:
        text += f"; {counted(len(evaluation.failures), 'query')} got no answer"
    return text + "; not judged"


def compared(comparison: Comparison) -> str:
    """Return a comparison as a sentence."""
    if same(comparison):
        return f"{comparison.b} and {comparison.a} are the same: {all_the_same(comparison)}"
    if comparison.verdict == "not enough evidence":
        return (
            f"Not enough evidence that {comparison.b} differs from {comparison.a} by {comparison.primary}: {comparison.reason}"
        )
    return f"{comparison.b} is {comparison.verdict} than {comparison.a} by {comparison.primary}: {comparison.reason}"


def place(check: Check) -> str:
    """Return what a check looked at: ``R@5`` or ``R@5 in query_type=factual``."""
    return check.measure if check.slice is None else f"{check.measure} in {check.slice}"


def reasons(report: Report) -> tuple[str, ...]:
    """Return the sentences of the checks that failed or could not be decided, failures first."""
    if report.verdict is None:
        return ()
    checks = report.verdict.checks
    return tuple(check.message for word in ("fail", "undecided") for check in checks if check.status == word)


def judged(verdict: Verdict) -> str:
    """Return the gate's verdict as a sentence: which checks failed or could not be decided."""
    against = f" against baseline {verdict.baseline}" if verdict.baseline else ""
    by_status = {word: [check for check in verdict.checks if check.status == word] for word in STATUS}
    # An advisory check has no say, so it is not among those that hold or fail.
    decisive = len(verdict.checks) - len(by_status["advisory"])
    checks = counted(decisive, "check")
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
        fell = [f"{place(check)} {percent(_change(check))}" for check in by_status["degraded"]]
        text += f"; {len(fell)} degraded within tolerance: {_some(fell)}"
    if by_status["advisory"]:
        text += f"; {len(by_status['advisory'])} more {'is' if len(by_status['advisory']) == 1 else 'are'} informational"
    return text


def _change(check: Check) -> float | None:
    return None if check.degradation is None else -check.degradation


def _places(checks: list[Check]) -> str:
    return _some(list(dict.fromkeys(map(place, checks))), "measure")


def _some(texts: list[str], what: str = "", most: int = 4) -> str:
    more = counted(len(texts) - most, f"more {what}".strip(), "more" if not what else "")
    return ", ".join(texts[:most]) + (f" and {more}" if len(texts) > most else "")
