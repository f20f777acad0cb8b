"""The report as one HTML file that asks nothing of anybody: styles, script, charts and data are inside (P-1)."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ringtrue.report.records import Report

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from ringtrue.report.page.sides import Sides

PAGE = Path(__file__).with_name("page")
WITHOUT_SCRIPT = 50
"""So many rows of the query table are there without a script, the worst ones."""
SAME = 5e-5
"""Differences below it are rounding."""
# Half of a character pair cannot be written as UTF-8 and would make the file unwritable.
HALF_PAIRS = re.compile("[\ud800-\udfff]")


def html(report: Report) -> str:
    """Return the report as one self-contained page, verdict first.

    It loads nothing, works offline and under a strict Content-Security-Policy; verdict, tables and charts need no script.
    """
    from ringtrue.report.page import embedded, sections
    from ringtrue.report.page.sides import Sides
    from ringtrue.report.page.words import headline, moment
    from ringtrue.report.story import counted, slice_terms

    sides = Sides(report)
    evaluation = report.evaluation
    golden = evaluation.setup.golden
    style, script = _read("theme.css") + _read("report.css"), _read("report.js")
    data = embedded.data(sides)
    page = _templates().get_template("report.html.jinja").render(
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=embedded.as_json(data),
        title=report.title or f"{evaluation.name} on {golden.version}",
        sides=sides,
        report=report,
        golden=golden,
        headline=headline(report),
        made_at=moment(report.made_at),
        recorded_at=moment(evaluation.setup.recorded_at),
        asked=counted(len(evaluation.queries), "query"),
        ring=sections.ring(sides),
        tiles=sections.tiles(sides),
        judged_by=sections.judged_by(sides),
        checks=sections.checks(sides),
        measures=sections.measures(sides),
        differences=_differences(sides),
        slices=sections.slices(sides),
        slice_terms=slice_terms(sides.comparison) if sides.comparison and sides.comparison.slices else "",
        components=sections.components(sides),
        blame=sections.blame(sides),
        latency=sections.latencies(sides),
        columns=sides.measures[:4],
        rows=_worst(sides, data),
        recommendations=sections.recommendations(sides),
        settings=sections.settings(sides),
        command=sections.command(sides),
        notes=sections.notes(sides),
    )  # fmt: skip
    return HALF_PAIRS.sub("\ufffd", page)


def _differences(sides: Sides) -> dict[str, Any]:
    """Return the sorted bars: differences where there is another side, else the values themselves, the worst first."""
    from ringtrue import charts
    from ringtrue.report.page.words import lower_is_better
    from ringtrue.report.story import counted

    better = -1 if lower_is_better(sides.primary) else 1
    asked = [query.query_id for query in sides.now.queries]
    deltas = [sides.delta(query, sides.primary) for query in asked]
    values = sorted((value for value in deltas if math.isfinite(value)), key=lambda value: -value * better)
    if values:
        wins, losses = sum(value * better > 0 for value in values), sum(value * better < 0 for value in values)
        counts = {"wins": wins, "ties": len(values) - wins - losses, "losses": losses}
        label = f"{sides.primary} by query: {wins} better, {counts['ties']} equal, {losses} worse"
        return {"chart": charts.per_query(values, better=better, label=label), "counts": counts}
    scores = [value for value in sides.now.scores.of(sides.primary).tolist() if math.isfinite(value)]
    scores.sort(reverse=better > 0)
    label = f"{sides.primary} of {counted(len(scores), 'query')}, the best first"
    return {"chart": charts.per_query(scores, better=0, label=label), "counts": None}


def _worst(sides: Sides, data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows a reader without a script sees, as the script would draw them first: failed ones, then the worst."""
    from ringtrue.report.page.sections import tone_of
    from ringtrue.report.page.words import lower_is_better, number, signed
    from ringtrue.report.story import milliseconds

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
    return ("bad", "○", "nothing found") if value == 0 and better > 0 else ("plain", "●", "answered")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= {"fragment": _fragment, "tight": _tight, "code": code_markup}
    return templates


def code_markup(text: str) -> Markup:
    """Return a text in which what stands between backticks, as in Markdown, is set as code."""
    from markupsafe import Markup, escape

    parts = text.split("`")
    if len(parts) % 2 == 0:  # one without its other half is a character like any other
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts))


def _fragment(query_id: str) -> str:
    return quote(HALF_PAIRS.sub("\ufffd", query_id), safe="")


def _tight(text: str) -> str:
    """Keep a number beside its unit and an arrow between its numbers when a line breaks."""
    return (
        text.replace(" %", "\u00a0%").replace(" → ", "\u00a0→\u00a0").replace(" = ", "\u00a0=\u00a0").replace(" ms", "\u00a0ms")
    )
