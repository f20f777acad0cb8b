"""The tables of the page: rows of texts and charts, made from the records."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ringtrue import charts
from ringtrue.brief import shell_word
from ringtrue.errors import InputError
from ringtrue.measures import Measure, Summary, latency
from ringtrue.report.lines import STAGES, ComponentLine, component_lines
from ringtrue.report.lines import notes as notes_of
from ringtrue.report.page.sides import Sides
from ringtrue.report.page.words import lower_is_better, number, percent, probability, signed
from ringtrue.report.story import DASH, alike, counted, how_tested, milliseconds, portion, says, signed_milliseconds, terms
from ringtrue.run import DEFAULT_MEASURES, Evaluation
from ringtrue.verdict import Check, MeasureComparison

Row = Mapping[str, Any]
STATUS = {
    "fail": ("bad", "✕", "Fail"),
    "undecided": ("unsure", "?", "Undecided"),
    "degraded": ("unsure", "▾", "Degraded"),
    "advisory": ("plain", "i", "Advisory"),
    "pass": ("good", "✓", "Pass"),
}
WORDS = {
    "better": ("good", "▲"),
    "worse": ("bad", "▼"),
    "not enough evidence": ("unsure", "~"),
}
WHY_LOST = {
    "not in corpus": "the index does not hold it",
    "not in any list": "not among the hits asked for",
    "cut by fusion": "a channel has it in its list, but fusion not among the first k",
    "wrong chunk": "another passage of its document answered",
    "cut by threshold": "its score fell below the threshold",
    "demoted by rerank": "the reranker moved it out of the first k",
    "below k": "found, but further down than k",
}
FEW = 10
"""Slices with fewer queries are labelled: their means swing with every single one."""
SHOWN_SLICES = 12


def tone_of(measure: str, diff: float) -> str:
    """Return whether a difference is good or bad news."""
    if not math.isfinite(diff) or diff == 0:
        return "plain"
    return "bad" if (diff < 0) != lower_is_better(measure) else "good"


def certain_tone(measure: str, diff: float, found: MeasureComparison | None) -> str:
    """Return the tone of a difference of means: one that was tested is news only where the evidence is enough."""
    return tone_of(measure, diff) if found is None or found.word != "not enough evidence" else "plain"


def word_of(found: MeasureComparison) -> tuple[str, str, str]:
    """Return tone, glyph and text of what was found; a measure that does not decide is marked and has no colour."""
    tone, glyph = ("plain", "=") if alike(found) else WORDS[found.word]
    return tone if found.decides else "plain", glyph, says(found)


def tiles(sides: Sides) -> list[Row]:
    """Return the headline numbers: the first measures and the 95th percentile of latency."""
    rows: list[Row] = []
    for measure in sides.measures[:4]:
        now, before = sides.now.metrics[measure], sides.before_mean(measure)
        found = sides.comparison.measures.get(measure) if sides.comparison else None
        rows.append({
            "name": measure,
            "value": number(now),
            "delta": signed(now - before) if math.isfinite(now - before) else "",
            "before": number(before) if math.isfinite(before) else "",
            "tone": certain_tone(measure, now - before, found),
            "open": found is not None and found.word == "not enough evidence" and not alike(found),
        })  # fmt: skip
    now, before = sides.now.latency.p95, latency(sides.times[1]).p95
    if math.isfinite(now):
        known = math.isfinite(before) and comparable(sides)
        delta = signed_milliseconds(now - before) if known else ""
        timed = sides.comparison.latency if sides.comparison else None
        sure = timed is not None and (timed.low > 0 or timed.high < 0)
        tone = "plain" if not known or not sure or now == before else "bad" if now > before else "good"
        rows.append({
            "name": "Latency p95", "value": milliseconds(now), "delta": delta, "tone": tone,
            "before": milliseconds(before) if known else "", "open": False,
        })  # fmt: skip
    return rows


def judged_by(sides: Sides) -> str:
    """Return what the gate held the run against; '' where that is the other side of the page, too."""
    verdict = sides.report.verdict
    if verdict is None or sides.before_name is None:
        return ""
    baseline = f"baseline {verdict.baseline}" if verdict.baseline else "floors and ceilings alone"
    return "" if baseline == sides.before_name else baseline


def ring(sides: Sides) -> Markup:
    """Return the whole at a glance: the checks that the gate decided by, else the queries won and lost, else a measure."""
    verdict, compared = sides.report.verdict, sides.comparison
    decided = [] if verdict is None else [check.status for check in verdict.checks if check.status != "advisory"]
    if decided:
        counts = {name: decided.count(name) for name in reversed(STATUS) if name in decided}
        words = ", ".join(f"{count} {STATUS[name][2].lower()}" for name, count in counts.items())
        parts = [(1.0, STATUS[name][0]) for name, count in counts.items() for _ in range(count)]
        # What fell within the tolerance has passed, as the sentence beside it says.
        passed = counts.get("pass", 0) + counts.get("degraded", 0)
        return charts.ring(parts, f"{passed} of {len(parts)}", "checks passed", label=f"Checks: {words}")
    if compared is not None and compared.primary in compared.measures:
        found = compared.measures[compared.primary]
        words = f"{found.wins} better, {found.ties} equal, {found.losses} worse"
        parts = [(float(found.wins), "good"), (float(found.ties), "even"), (float(found.losses), "bad")]
        middle = f"{found.wins} : {found.losses}"
        return charts.ring(parts, middle, "better : worse", label=f"Queries by {found.measure}: {words}")
    value = sides.now.metrics[sides.primary]
    if not math.isfinite(value) or not 0 <= value <= 1:
        return Markup("")
    label = f"{sides.primary}: {number(value)}"
    return charts.ring([(value, "plain"), (1 - value, "even")], number(value), sides.primary, label=label)


def checks(sides: Sides) -> list[Row]:
    """Return the gate's checks, those that need attention first."""
    verdict = sides.report.verdict
    if verdict is None:
        return []
    return [_check(check) for status in STATUS for check in verdict.checks if check.status == status]


def _check(check: Check) -> Row:
    tone, glyph, word = STATUS[check.status]
    timed = check.rule in ("latency", "latency increase")
    show = milliseconds if timed else number
    rule = check.rule if check.rule != "slice" or not check.slice else f"slice {check.slice}"
    return {
        "tone": tone,
        "glyph": glyph,
        "word": word,
        "rule": rule,
        "slice": check.slice if check.rule != "slice" else None,
        "measure": check.measure,
        "message": check.message if check.status != "pass" else "",
        "named": check.message.startswith(check.measure),
        "now": show(check.current),
        "limit": DASH if check.threshold is None else show(check.threshold),
        "baseline": DASH if check.baseline is None else show(check.baseline),
        # Shown as the number moved: a fall of 5 % is −5 %.
        "change": DASH if check.degradation is None else percent(_moved(check.degradation, timed), sign=True),
        "queries": check.queries,  # at most ten: how many more there are is not kept
    }


def _moved(degradation: float, timed: bool) -> float:
    return degradation if timed or degradation == 0 else -degradation


def measures(sides: Sides) -> Mapping[str, Any]:
    """Return one row per measure with its interval: of the difference where there is a comparison, else of the mean."""
    compared = sides.comparison.measures if sides.comparison else {}
    if compared:
        bounded = [found for name, found in compared.items() if Measure.parse(name).definition.bounded]
        scale = charts.Scale.over(
            [value for found in bounded for value in (found.low, found.high, found.diff)], around=(-0.02, 0.02)
        )
    else:
        scale = charts.Scale(0.0, 1.0)
    # The primary measure leads; those that only one side scored come last.
    names = dict.fromkeys([sides.primary, *compared, *sides.measures])
    rows = [_measure(sides, name, compared.get(name), scale, bool(compared)) for name in names]
    return {
        "rows": rows,
        "axis": charts.axis(scale, sign=bool(compared)) if scale else "",
        "compared": bool(compared),
        "before": any(row["before"] != DASH for row in rows),
        "terms": terms(sides.comparison.alpha, sides.comparison.measures[sides.comparison.primary].tests)
        if sides.comparison
        else "",
        "how": how_tested(sides.comparison, gated=sides.report.verdict is not None) if sides.comparison else "",
        "warnings": list(dict.fromkeys(text for found in compared.values() for text in found.warnings)),
    }


def _measure(sides: Sides, name: str, found: MeasureComparison | None, scale: charts.Scale | None, differences: bool) -> Row:
    bounded = Measure.parse(name).definition.bounded
    now = found.b if found else sides.now.metrics.get(name, math.nan)
    before = found.a if found else sides.before_mean(name)
    low, high = (found.low, found.high) if found else sides.now.intervals.get(name, (math.nan, math.nan))
    row = {
        "name": name,
        "means": Measure.parse(name).definition.means,
        "primary": name == sides.primary,
        "now": number(now),
        "before": number(before),
        "diff": signed(found.diff if found else now - before),
        "interval": f"{number(low)} to {number(high)}" if math.isfinite(low) else DASH,
        "chart": Markup(""),
        "tone": certain_tone(name, found.diff if found else now - before, found),
        "word": None,
    }
    if found:
        tone, glyph, word = word_of(found)
        more = f"{word}; {found.reason}"
        row |= {
            "interval": f"{signed(found.low)} to {signed(found.high)}" if math.isfinite(found.low) else DASH,
            "p": probability(found.p_adjusted),
            "chance": probability(found.prob_better),
            "effect": signed(found.effect, digits=2),
            "wins": found.wins, "ties": found.ties, "losses": found.losses,
            "word": {"tone": tone, "glyph": glyph, "text": word, "more": more},
            "detectable": number(found.detectable),
            "n": f"{found.n:,}",
        }  # fmt: skip
    if scale and bounded and (found or not differences):
        value = found.diff if found else now
        words = f"{name}: {row['diff'] if found else row['now']}, interval {row['interval']}"
        tone = word_of(found)[0] if found else "plain"
        row["chart"] = charts.interval(
            scale, value, low, high, tone=tone, label=words, zero=0.0 if found else None, before=None if found else before
        )
    return row


def slices(sides: Sides) -> list[Mapping[str, Any]]:
    """Return one panel per field: how each slice does on the primary measure, and against before where that is known."""
    found = []
    for field in sides.now.setup.golden.slices:
        try:
            now = sides.now.scores.by(field, sides.primary)
        except InputError:  # no question that was answered has the field
            continue
        before: Mapping[str, Summary] = {}
        if sides.before_scores and sides.primary in sides.before_scores.aggregate:
            before = sides.before_scores.by(field, sides.primary)
        found.append((field, now, before))
    means = [summary.mean for _, now, before in found for summary in (*now.values(), *before.values())]
    scale = _around(means, bounded=Measure.parse(sides.primary).definition.bounded)
    return [_panel(sides, field, now, before, scale) for field, now, before in found]


def _around(means: Sequence[float], *, bounded: bool) -> charts.Scale | None:
    """Return one scale for all panels, with some room: dots need no zero to be compared, but the same ends."""
    scale = charts.Scale.over(means)
    if scale is None or not bounded:
        return scale
    low = max(0.0, math.floor((scale.low - 0.1) * 10) / 10)
    return charts.Scale(low, min(1.0, max(low + 0.3, math.ceil((scale.high + 0.05) * 10) / 10)))


def _panel(
    sides: Sides, field: str, now: Mapping[str, Summary], before: Mapping[str, Summary], scale: charts.Scale | None
) -> Mapping[str, Any]:
    compared = sides.comparison.slices.get(field, {}) if sides.comparison else {}
    rows: list[Row] = []
    for value, summary in now.items():
        was = before[value].mean if value in before else math.nan
        found = compared.get(value, {}).get(sides.primary)
        diff = found.diff if found else summary.mean - was
        words = f"{value}: {number(summary.mean)}" + (f", before {number(was)}" if math.isfinite(was) else "")
        rows.append({
            "value": value,
            "count": summary.count,
            "few": summary.count < FEW,
            "now": number(summary.mean),
            "mean": summary.mean,
            "diff": signed(diff),
            "tone": certain_tone(sides.primary, diff, found),
            "word": word_of(found) if found else None,
            "chart": charts.interval(
                scale, summary.mean, math.nan, math.nan, tone="plain", label=words, zero=None, before=was
            ) if scale else Markup(""),
        })  # fmt: skip
    rows.sort(key=lambda row: (math.isnan(row["mean"]), row["mean"] * (-1 if lower_is_better(sides.primary) else 1)))
    return {
        "field": field,
        "title": field.replace("_", " "),
        "rows": rows[:SHOWN_SLICES],
        "rest": rows[SHOWN_SLICES:],
        "axis": charts.axis(scale) if scale else "",
        "differs": any(row["diff"] != DASH for row in rows),
        "open": any(row["word"] and row["word"][0] == "unsure" for row in rows),
    }


def components(sides: Sides) -> Mapping[str, Any]:
    """Return what each part of a fused retriever does alone, what it brings, and how the search changes without it."""
    lines = component_lines(sides.report)
    parts = [line for line in lines if not (line.kind == "without" and line.name.removeprefix("without ") in _channels(lines))]
    values = [line.values.get(sides.primary, math.nan) for line in parts]
    bounded = Measure.parse(sides.primary).definition.bounded
    scale = charts.Scale(0.0, 1.0 if bounded else max([1e-9, *filter(math.isfinite, values)]), 0, 100)
    rows: list[Row] = []
    for line, value in zip(parts, values, strict=True):
        change = line.without
        given = line.contribution
        rows.append({
            "name": line.label,
            "kind": {"channel": "channel alone", "without": "leave-one-out"}.get(line.kind, line.kind),
            "value": number(value),
            "chart": charts.bar(
                scale, value, tone="channel" if line.kind == "channel" else "whole", label=f"{line.label}: {number(value)}"
            ),
            "given": given and {
                "rate": portion(given.rate), "unique": portion(given.unique_rate),
                "chart": charts.shares(
                    given.rate, given.unique_rate,
                    label=f"{line.name} holds {portion(given.rate)} of the final hits, {portion(given.unique_rate)} alone",
                ),
            },
            "without": signed(change.mean) if change else DASH,
            "interval": f"{signed(change.low)} to {signed(change.high)}" if change and math.isfinite(change.low) else "",
            "certain": bool(change and (change.low > 0 or change.high < 0)),
            # Better without it: the part does harm.
            "tone": "bad" if change and change.low > 0 else "plain",
            "latency": milliseconds(line.latency.p50) if line.latency else DASH,
        })  # fmt: skip
    return {"rows": rows, "axis": charts.axis(scale)}


def _channels(lines: Iterable[ComponentLine]) -> set[str]:
    return {line.name for line in lines if line.kind == "channel"}


def blame(sides: Sides) -> Mapping[str, Any]:
    """Return the waterfall from all relevant documents over what each stage lost to what was found in the first k."""
    if not sides.now.losses:
        return {"rows": []}
    k = sides.cutoff
    failed = sides.now.failures
    asked = [query.query_id for query in sides.now.queries]
    total = sum(len(sides.relevant.get(query, {})) for query in asked)
    unanswered = sum(len(sides.relevant.get(query, {})) for query in asked if query in failed)
    losses = [loss for loss in sides.now.losses if loss.k == k]
    lost: Counter[str] = Counter(loss.stage for loss in losses)
    gone = {(loss.query_id, loss.doc_id) for loss in losses}
    found = sum(
        sides.ranks[query].get(doc, math.inf) <= k and (query, doc) not in gone
        for query in asked
        if query not in failed
        for doc in sides.relevant.get(query, ())
    )
    scale = charts.Scale(0.0, max(1.0, total), 0, 100)
    rows = [_step(scale, "Relevant documents", "judged relevant to the questions", 0, total, "plain", f"{total:,}", total)]
    left = total
    parts = [("no answer", "their questions failed", unanswered), *((name, WHY_LOST[name], lost[name]) for name in STAGES)]
    # What the records do not account for is shown, not spread over the stages.
    parts.append(
        (
            "not explained",
            "missing with no stage to blame, like a copy of one that was found",
            total - unanswered - sum(lost.values()) - found,
        )
    )
    for name, means, count in parts:
        if count > 0:
            rows.append(_step(scale, name.capitalize(), means, left, left - count, "bad", f"−{count:,}", total))
            left -= count
    rows.append(
        _step(scale, f"Found in the first {k}", "what the reader sees", 0, found, "good", f"{found:,}", total, last=True)
    )
    return {"rows": rows, "k": k}


def _step(
    scale: charts.Scale,
    name: str,
    means: str,
    start: float,
    end: float,
    tone: str,
    count: str,
    total: int,
    *,
    last: bool = False,
) -> Row:
    share = percent(abs(end - start) / total) if total else DASH
    chart = charts.step(scale, start, end, tone=tone, label=f"{name}: {count} ({share})", last=last)
    return {"name": name, "means": means, "count": count, "share": share, "chart": chart, "tone": tone}


def comparable(sides: Sides) -> bool:
    """Return whether latencies of both sides were measured on the same kind of machine."""
    if sides.comparison and sides.comparison.latency:
        return sides.comparison.latency.comparable
    before = sides.before
    machine = before.setup.machine if isinstance(before, Evaluation) else before.machine if before else ""
    return bool(machine) and machine == sides.now.setup.machine


def latencies(sides: Sides) -> Mapping[str, Any]:
    """Return percentiles and the curve of both sides; nothing where nothing was measured."""
    now, before = sides.times
    if not now:
        return {"rows": []}
    series = {sides.now.name: now}
    if before and sides.before_name:
        series[sides.before_name] = before
    told = {name: latency(values) for name, values in series.items()}
    rows = [
        {
            "name": name, "series": index, "count": f"{found.count:,}", "mean": milliseconds(found.mean),
            "p50": milliseconds(found.p50), "p95": milliseconds(found.p95), "p99": milliseconds(found.p99),
        }
        for index, (name, found) in enumerate(told.items())
    ]  # fmt: skip
    words = "; ".join(f"{row['name']}: half within {row['p50']}, 95 % within {row['p95']}" for row in rows)
    compared = sides.comparison.latency if sides.comparison else None
    difference = ""
    if compared and math.isfinite(compared.mean_diff):
        low, high = signed_milliseconds(compared.low), signed_milliseconds(compared.high)
        mean, over = signed_milliseconds(compared.mean_diff), counted(compared.n, "paired query")
        difference = f"{mean} on average over {over}, interval {low} to {high}"
    return {
        "rows": rows,
        "chart": charts.cumulative(series, label=f"Share of queries answered within a time. {words}."),
        "difference": difference,
        "comparable": len(series) == 1 or comparable(sides),
    }


def recommendations(sides: Sides) -> list[Row]:
    """Return the advice with its evidence as texts."""
    return [
        {
            "rule": advice.rule.replace("-", " "),
            "advice": advice.advice,
            "evidence": [(name.replace("_", " "), _evidence(value)) for name, value in advice.evidence.items()],
            "queries": advice.queries[:10],
            "more": max(0, len(advice.queries) - 10),
        }
        for advice in sides.report.recommendations
    ]


def _evidence(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else number(value)


def settings(sides: Sides) -> list[tuple[str, str]]:
    """Return everything that made the numbers, as names and texts."""
    setup, golden = sides.now.setup, sides.now.setup.golden
    rows: list[tuple[str, Any]] = [
        ("Retriever", setup.retriever),
        *((name.replace("_", " ").capitalize(), value) for name, value in setup.config.items()),
        ("Fingerprint", setup.fingerprint),
        ("Golden set", golden.version),
        ("Golden content", golden.content_hash),
        ("Profile", golden.profile),
        ("Relevant from grade", f"{golden.relevance_threshold} on a scale of {golden.scale[0]} to {golden.scale[1]}"),
        ("Split", golden.split),
        ("Corpus", setup.corpus or golden.corpus_hash),
        ("Hits asked for", setup.k),
        ("Sample", percent(setup.sample)),
        ("Session context", "on" if setup.session else "off"),
        ("Machine", setup.machine),
        ("Workers", setup.workers),
        ("Measured", setup.recorded_at),
        ("Ringtrue", setup.ringtrue),
    ]
    if sides.comparison:
        how = sides.comparison
        parts = f"alpha {how.alpha:g}", f"{how.correction} correction", f"{how.resamples:,} resamples", f"seed {how.seed}"
        rows.append(("Comparison", ", ".join(parts)))
    if sides.report.verdict:
        rows.append(("Gate mode", sides.report.verdict.mode))
    return [(name, _setting(value)) for name, value in rows]


def _setting(value: Any) -> str:
    if value is None or value == "":
        return DASH
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def command(sides: Sides) -> str:
    """Return the command that measures the same again, as far as a run knows it."""
    setup = sides.now.setup
    named = setup.arguments or ("--golden", setup.golden.id, "--retriever", setup.retriever)
    parts = ["ringtrue eval", *map(shell_word, named)]
    if setup.measures != DEFAULT_MEASURES:
        parts += [f"--measure {shell_word(measure)}" for measure in setup.measures]
    parts.append(f"-k {setup.k}")
    if setup.golden.split != "all":
        parts.append(f"--split {setup.golden.split}")
    if setup.sample != 1:
        parts.append(f"--sample {setup.sample:g}")
    if setup.session:
        parts.append("--session")
    if sides.now.components:
        parts.append("--components")
    return " ".join(parts)


def notes(sides: Sides) -> list[str]:
    """Return every remark, as sentences; preconditions have a list of their own."""
    unmet = [one for one in sides.now.setup.preconditions if one.status != "met"]
    told = {f"{one.name}: {one.status}" for one in unmet} | {f"{one.status}: {one.detail}" for one in unmet if one.detail}
    kept = [note for note in notes_of(sides.report) if not any(map(note.startswith, told))]
    # A name or a measure at the beginning keeps its spelling.
    return [note[0].upper() + note[1:] if re.match("[a-z]+ ", note) else note for note in kept]
