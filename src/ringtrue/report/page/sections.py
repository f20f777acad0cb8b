"""The tables and charts of the page: rows of texts and SVG, made from the records."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from ringtrue import charts
from ringtrue.brief import counted, shell_word
from ringtrue.measures import Measure, Summary, latency
from ringtrue.report import tables
from ringtrue.report.formatting import (
    DASH,
    PERCENTILES,
    milliseconds,
    percent,
    portion,
    probability,
    signed_milliseconds,
    signed_span,
    span,
)
from ringtrue.report.formatting import page_number as number
from ringtrue.report.formatting import page_signed as signed
from ringtrue.report.page.sides import Sides
from ringtrue.report.sentences import how_tested, lower_is_better, says, setting, terms
from ringtrue.run import DEFAULT_MEASURES
from ringtrue.verdict import Check, CheckStatus, MeasureComparison

Row = Mapping[str, Any]
STATUS: dict[CheckStatus, tuple[str, str, str]] = {
    "fail": ("bad", "✕", "Fail"),
    "undecided": ("unsure", "?", "Undecided"),
    "degraded": ("unsure", "▾", "Degraded"),
    "advisory": ("plain", "i", "Advisory"),
    "pass": ("good", "✓", "Pass"),
}
WORDS = {"better": ("good", "▲"), "worse": ("bad", "▼"), "not enough evidence": ("unsure", "~")}
FEW = 10
"""Slices with fewer queries are marked: their means are unstable."""
SHOWN_SLICES = 12
WITHOUT_SCRIPT = 50
"""Rows of the query table that are visible without a script, the worst ones."""
SAME = 5e-5
"""Differences below it are rounding."""


def page_sections(sides: Sides) -> dict[str, Any]:
    """Return what the report and the page of a run show in common."""
    return {
        "tiles": tiles(sides), "judged_by": judged_by(sides), "checks": checks(sides),
        "measures": measure_rows(sides), "slices": slices(sides), "components": components(sides), "blame": blame(sides),
        "latency": latencies(sides), "recommendations": recommendations(sides), "settings": settings(sides),
        "command": command(sides), "notes": notes(sides),
    }  # fmt: skip


def tone_of(measure: str, diff: float) -> str:
    """Return whether a difference is good or bad news."""
    if not math.isfinite(diff) or diff == 0:
        return "plain"
    return "bad" if (diff < 0) != lower_is_better(measure) else "good"


def certain_tone(measure: str, diff: float, found: MeasureComparison | None) -> str:
    """Return the tone of a difference of means: one that was tested is news only with enough evidence."""
    return tone_of(measure, diff) if found is None or found.word != "not enough evidence" else "plain"


def marked_word(found: MeasureComparison) -> tuple[str, str, str]:
    """Return tone, glyph and text of a comparison; a measure that does not decide is marked and has no colour."""
    tone, glyph = WORDS[found.word]
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
            "open": found is not None and found.word == "not enough evidence",
        })  # fmt: skip
    now, before = sides.now.latency.p95, latency(sides.times[1]).p95
    if math.isfinite(now):
        known = math.isfinite(before) and sides.same_machine
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
    """Return what the gate judged the run by; '' if that is the other side of the page, too."""
    verdict = sides.report.verdict
    if verdict is None or sides.before_name is None:
        return ""
    baseline = f"baseline {verdict.baseline}" if verdict.baseline else "floors and ceilings alone"
    return "" if baseline == sides.before_name else baseline


def checks(sides: Sides) -> list[Row]:
    """Return the gate's checks, those that need attention first."""
    verdict = sides.report.verdict
    return [_check(check) for status in STATUS for check in verdict.of_status(status)] if verdict else []


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
        "limit": show(check.threshold),
        "baseline": show(check.baseline),
        # Shown as the number moved: a fall of 5 % is −5 %.
        "change": percent(check.degradation if timed or not check.degradation else -check.degradation),
        "queries": check.queries,  # at most ten: how many more there are is not kept
    }


def measure_rows(sides: Sides) -> Mapping[str, Any]:
    """Return one row per measure with its interval: of the difference if there is a comparison, else of the mean."""
    comparison = sides.comparison
    compared = comparison.measures if comparison else {}
    bounded = [found for name, found in compared.items() if Measure.parse(name).definition.bounded]
    ends = [value for found in bounded for value in (found.low, found.high, found.diff)]
    scale = charts.Scale.over(ends, around=(-0.02, 0.02)) if compared else charts.Scale(0.0, 1.0)
    # The primary measure leads; those that only one side scored come last.
    names = dict.fromkeys([sides.primary, *compared, *sides.measures])
    rows = [_measure(sides, name, compared.get(name), scale, bool(compared)) for name in names]
    return {
        "rows": rows,
        "axis": charts.axis(scale, sign=bool(compared)) if scale else "",
        "compared": bool(compared),
        "before": any(row["before"] != DASH for row in rows),
        "terms": terms(comparison.alpha, comparison.measures[comparison.primary].tests) if comparison else "",
        "how": how_tested(comparison, gated=sides.report.verdict is not None) if comparison else "",
        "warnings": list(dict.fromkeys(text for found in compared.values() for text in found.warnings)),
    }


def _measure(sides: Sides, name: str, found: MeasureComparison | None, scale: charts.Scale | None, differences: bool) -> Row:
    bounded = Measure.parse(name).definition.bounded
    now = found.b if found else sides.now.metrics.get(name, math.nan)
    before = found.a if found else sides.before_mean(name)
    low, high = (found.low, found.high) if found else sides.now.intervals.get(name, (math.nan, math.nan))
    row: dict[str, Any] = {
        "name": name,
        "means": Measure.parse(name).definition.means,
        "primary": name == sides.primary,
        "now": number(now),
        "before": number(before),
        "diff": signed(found.diff if found else now - before),
        "interval": span((low, high), 3),
        "chart": Markup(""),
        "tone": certain_tone(name, found.diff if found else now - before, found),
        "word": None,
    }
    if found:
        tone, glyph, word = marked_word(found)
        more = f"{word}; {found.reason}"
        row |= {
            "interval": signed_span(found.low, found.high, 3),
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
        tone = row["word"]["tone"] if found else "plain"
        row["chart"] = charts.interval(
            scale, value, low, high, tone=tone, label=words, zero=0.0 if found else None, before=None if found else before
        )
    return row


def differences(sides: Sides) -> dict[str, Any]:
    """Return the sorted bars: differences if there is another side, else the values themselves, the best first."""
    better = -1 if lower_is_better(sides.primary) else 1
    asked = [query.query_id for query in sides.now.queries]
    deltas = [sides.delta(query, sides.primary) for query in asked]
    compared = any(map(math.isfinite, deltas))
    values = filter(math.isfinite, deltas if compared else sides.now.scores.of(sides.primary).tolist())
    shown = sorted(values, key=lambda value: -value * better)
    label, counts = f"{sides.primary} of {counted(len(shown), 'query')}, the best first", None
    if compared:
        wins, losses = sum(value * better > 0 for value in shown), sum(value * better < 0 for value in shown)
        counts = {"wins": wins, "ties": len(shown) - wins - losses, "losses": losses}
        label = f"{sides.primary} by query: {wins} better, {counts['ties']} equal, {losses} worse"
    return {"chart": charts.per_query(shown, better=better if compared else 0, label=label), "counts": counts}


def worst_queries(sides: Sides, data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows visible without a script, in the order of the script: failed ones, then the worst."""
    better = -1 if lower_is_better(sides.primary) else 1
    compared = sides.before_name is not None
    rows = []
    for row in data["queries"]:
        query_id, text, codes, now, before, ms, _, error = row[:8]
        # From the numbers that the script has: rounding must not give it another order.
        known = before is not None and before[0] is not None and now[0] is not None
        delta = now[0] - before[0] if known else math.nan
        delta = 0.0 if abs(delta) < SAME else delta
        value = delta if compared else math.nan if now[0] is None else now[0]
        failed, unknown = error is not None, not math.isfinite(value)
        rows.append({
            "order": (not failed, unknown, 0.0 if unknown else value * better),
            "id": query_id, "text": text, "slice": data["values"][0][codes[0]] if codes else "",
            "values": [number(value) for value in now[:4]],
            "delta": signed(delta), "tone": tone_of(sides.primary, delta), "ms": milliseconds(ms),
            "status": _status(error, now[0], delta, compared=compared, better=better),
        })  # fmt: skip
    rows.sort(key=lambda row: row["order"])
    return rows[:WITHOUT_SCRIPT]


def _status(error: str | None, value: float | None, delta: float, *, compared: bool, better: int) -> tuple[str, str, str]:
    """Return tone, sign and word of one query; report.js says the same."""
    if error is not None:
        return "bad", "✕", "failed"
    if compared:
        if not math.isfinite(delta):
            return "plain", "—", "unknown"
        if delta == 0:
            return "plain", "=", "same"
        return ("good", "▲", "better") if delta * better > 0 else ("bad", "▼", "worse")
    if value is None:
        return "plain", "—", "unknown"
    return ("bad", "○", "none relevant found") if value == 0 and better > 0 else ("plain", "●", "answered")


def slices(sides: Sides) -> list[Mapping[str, Any]]:
    """Return one panel per field: the primary measure of each slice, and of the other side if known."""
    found = []
    known = sides.before_scores if sides.before_scores and sides.primary in sides.before_scores.aggregate else None
    for field in tables.slice_fields(sides.now):
        before: Mapping[str, Summary] = known.by(field, sides.primary) if known else {}
        found.append((field, sides.now.scores.by(field, sides.primary), before))
    # One scale for all panels, with some room; dots need no zero, but the same ends.
    scale = charts.Scale.over(summary.mean for _, now, before in found for summary in (*now.values(), *before.values()))
    if scale is not None and Measure.parse(sides.primary).definition.bounded:
        low = max(0.0, math.floor((scale.low - 0.1) * 10) / 10)
        scale = charts.Scale(low, min(1.0, max(low + 0.3, math.ceil((scale.high + 0.05) * 10) / 10)))
    return [_panel(sides, field, now, before, scale) for field, now, before in found]


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
            "word": marked_word(found) if found else None,
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
    """Return each part of a fused retriever: alone, its contribution, and how the search changes without it."""
    lines = tables.component_lines(sides.report)
    channels = {line.name for line in lines if line.kind == "channel"}
    lines = tuple(line for line in lines if line.kind != "without" or line.name.removeprefix("without ") not in channels)
    values = [line.values.get(sides.primary, math.nan) for line in lines]
    bounded = Measure.parse(sides.primary).definition.bounded
    scale = charts.Scale(0.0, 1.0 if bounded else max([1e-9, *filter(math.isfinite, values)]), 0, 100)
    return {
        "rows": [_component(line, value, scale) for line, value in zip(lines, values, strict=True)],
        "axis": charts.axis(scale),
    }


def _component(line: tables.ComponentLine, value: float, scale: charts.Scale) -> Row:
    change, given = line.without, line.contribution
    tone = "channel" if line.kind == "channel" else "whole"
    return {
        "name": line.label,
        "kind": {"channel": "channel alone", "without": "leave-one-out"}.get(line.kind, line.kind),
        "value": number(value),
        "chart": charts.bar(scale, value, tone=tone, label=f"{line.label}: {number(value)}"),
        "given": given and {"rate": portion(given.rate), "unique": portion(given.unique_rate)},
        "without": signed(change.mean) if change else DASH,
        "interval": signed_span(change.low, change.high, 3) if change and math.isfinite(change.low) else "",
        "certain": bool(change and (change.low > 0 or change.high < 0)),
        # Better without it: the part does harm.
        "tone": "bad" if change and change.low > 0 else "plain",
    }  # fmt: skip


def blame(sides: Sides) -> Mapping[str, Any]:
    """Return the waterfall from the relevant documents of the answered queries over the stages that lost some."""
    lost, total = tables.blame_lines(sides.now), tables.relevant_documents(sides.now)
    if not lost:
        return {"rows": []}
    scale, left, k = charts.Scale(0.0, max(1.0, total), 0, 100), total, tables.lost_at(sides.now)
    steps = [("Relevant documents", "judged relevant to the queries", 0, total, "plain")]
    for line in lost:
        steps.append((line.stage.capitalize(), tables.WHY_LOST[line.stage], left, left - line.count, "bad"))
        left -= line.count
    steps.append((f"Found in the first {k}", "what the reader sees", 0, left, "good"))
    rows = []
    for name, means, start, end, tone in steps:
        share = portion(abs(end - start) / total) if total else DASH
        count = f"{end - start:,.0f}".replace("-", "−")
        chart = charts.step(scale, start, end, tone=tone, label=f"{name}: {count} ({share})", last=tone == "good")
        rows.append({"name": name, "means": means, "count": count, "share": share, "chart": chart, "tone": tone})
    return {"rows": rows, "k": k}


def latencies(sides: Sides) -> Mapping[str, Any]:
    """Return percentiles of both sides; nothing if nothing was measured."""
    now, before = sides.times
    if not now:
        return {"rows": []}
    series = {sides.now.name: now}
    if before and sides.before_name:
        series[sides.before_name] = before
    told = {name: latency(values) for name, values in series.items()}
    rows = [
        {"name": name, "count": f"{found.count:,}"}
        | {shown: milliseconds(getattr(found, shown)) for shown in ("mean", *PERCENTILES)}
        for name, found in told.items()
    ]
    compared = sides.comparison.latency if sides.comparison else None
    difference = ""
    if compared and math.isfinite(compared.mean_diff):
        low, high = signed_milliseconds(compared.low), signed_milliseconds(compared.high)
        mean, over = signed_milliseconds(compared.mean_diff), counted(compared.n, "paired query")
        difference = f"{mean} on average over {over}, interval {low} to {high}"
    return {
        "rows": rows,
        "difference": difference,
        "comparable": len(series) == 1 or sides.same_machine,
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
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else number(value)


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
        ("Sample", percent(setup.sample, sign=False)),
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
    return [(name, setting(value)) for name, value in rows]


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
    kept = [note for note in tables.notes(sides.report) if not any(map(note.startswith, told))]
    # A name or a measure at the beginning keeps its spelling.
    return [note[0].upper() + note[1:] if re.match("[a-z]+ ", note) else note for note in kept]
