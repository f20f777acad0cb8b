"""Pictures of the dashboard as SVG, drawn here so that they need no script; kin of the report's charts.

As there, places along x are percentages and heights are pixels, so that a picture fills its width and its text is not
stretched; threads lie in an inner picture that is. Colours are classes. Every picture says in words what it shows, and one
without data says that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice, pairwise

from markupsafe import Markup, escape

from ringtrue.report.charts import Scale, plain, ring
from ringtrue.service.pages import drawing
from ringtrue.service.pages.drawing import Decision

__all__ = [
    "Bar", "Dimension", "Line", "Pair", "Point", "bars", "boundary", "confidence", "gauge", "histogram", "parallel", "ring",
    "scatter", "sparkline", "states", "trend",
]  # fmt: skip

MOST_STRANDS = 200
MOST_POINTS = 4_000
"""More dots than that are a blot, and a page that is slow to draw."""
FOOT = 20
"""Pixels below a picture for the names of its ticks."""


@dataclass(frozen=True)
class Point:
    """A value at a moment, with its interval where one is known."""

    at: datetime
    value: float | None
    low: float | None = None
    high: float | None = None
    href: str = ""
    title: str = ""
    kind: str = ""
    """What it was measured on; values of different kinds are not joined by a line."""


@dataclass(frozen=True)
class Pair:
    """A query with its value on either side."""

    name: str
    a: float
    b: float
    href: str = ""


@dataclass(frozen=True)
class Dimension:
    """One axis of parallel coordinates."""

    name: str
    log: bool = False


@dataclass(frozen=True)
class Line:
    """One trial: its value on every dimension, and what it reached."""

    values: Sequence[float | str | None]
    score: float
    title: str = ""
    href: str = ""


@dataclass(frozen=True)
class Bar:
    """A name and how much of it there is."""

    name: str
    value: float
    said: str = ""
    """The value in words; the number itself unless given."""
    tone: str = "plain"
    href: str = ""


def sparkline(values: Sequence[float | None], *, label: str, tone: str = "plain", height: int = 34) -> Markup:
    """Return the course of a number without axes, its last value as a dot."""
    known = [value for value in values if drawing.known(value)]
    scale = drawing.upright(known, height - 8)
    if scale is None:
        return drawing.none(label, height)
    across = Scale(0, max(len(values) - 1, 1), margin=1.5)
    places = [(across.at(place), scale.at(value) + 4) if drawing.known(value) else None for place, value in enumerate(values)]
    drawn = drawing.stretched(drawing.thread(places, f"thread {escape(tone)}"), height)
    last = next(place for place in reversed(places) if place is not None)
    dot = f'<circle class="dot {escape(tone)}" cx="{last[0]:.2f}%" cy="{last[1]:.1f}" r="4"/>'
    return drawing.picture([drawn, dot], label, height, extra="spark")


def trend(
    points: Sequence[Point], *, label: str, threshold: float | None = None, threshold_name: str = "", height: int = 220
) -> Markup:
    """Return values over time with their intervals, and the line below which somebody is called."""
    shown = sorted((point for point in points if drawing.known(point.value)), key=lambda point: drawing.stamp(point.at))
    values = [number for point in shown for number in (point.value, point.low, point.high) if drawing.known(number)]
    body = height - FOOT
    scale = drawing.upright([*values, threshold], body)
    if not shown or scale is None:
        return drawing.none(label, height)
    across = Scale(*(drawing.reach(drawing.stamp(point.at) for point in shown) or (0.0, 1.0)))
    parts = [*drawing.levels(scale), *drawing.days(shown[0].at, shown[-1].at, across, height)]
    # Values of different kinds are not joined: what lies between them is no change of what was measured.
    alike = [list(group) for _, group in groupby(shown, key=lambda point: point.kind)]
    for group in alike:
        banded = [point for point in group if drawing.known(point.low) and drawing.known(point.high)]
        if len(banded) > 1:
            upper = [(across.at(drawing.stamp(point.at)), scale.at(drawing.sure(point.high))) for point in banded]
            lower = [(across.at(drawing.stamp(point.at)), scale.at(drawing.sure(point.low))) for point in reversed(banded)]
            parts.append(drawing.stretched(drawing.area([*upper, *lower]), body))
    for before, after in pairwise(alike):
        x = (across.at(drawing.stamp(before[-1].at)) + across.at(drawing.stamp(after[0].at))) / 2
        parts.append(
            f'<g class="cut"><title>from here on {escape(after[0].kind)}</title>'
            f'<line x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{body}"/></g>'
        )
    if drawing.known(threshold):
        parts.append(drawing.limit(scale.at(threshold), threshold_name, "bad"))
    places = [(across.at(drawing.stamp(point.at)), scale.at(drawing.sure(point.value))) for point in shown]
    left = iter(places)
    joined = [place for group in alike for place in (*islice(left, len(group)), None)]
    parts.append(drawing.stretched(drawing.thread(joined, "thread"), body))
    # Dots of a long history would hide it; its numbers are a table's business.
    if len(shown) <= 60:
        for point, (x, y) in zip(shown, places, strict=True):
            words = point.title or f"{drawing.day(point.at)}: {plain(round(drawing.sure(point.value), 4))}"
            parts.append(drawing.linked(f'<circle class="dot" cx="{x:.2f}%" cy="{y:.1f}" r="4.5"/>', words, point.href))
    return drawing.boxed(
        drawing.picture(drawing.one_stop(parts), label, height, extra="plot", linked=any(point.href for point in shown))
    )


def scatter(pairs: Sequence[Pair], *, a: str, b: str, label: str, better: int = 1, height: int = 400) -> Markup:
    """Return one dot for each query: its value on side a to the right, on side b upwards; on the diagonal nothing changed.

    ``better`` is −1 where less is better. Of very many queries those that changed most are drawn.
    """
    known = [pair for pair in pairs if drawing.known(pair.a) and drawing.known(pair.b)]
    shown = sorted(known, key=lambda pair: -abs(pair.b - pair.a))[:MOST_POINTS]
    body = height - 2 * FOOT
    both = [value for pair in shown for value in (pair.a, pair.b)]
    shares = all(0 <= value <= 1 for value in both)
    reach = drawing.reach([*both, *((0.0, 1.0) if both and shares else ())])
    if reach is None:
        return drawing.none(label, height)
    across, scale = Scale(*reach), drawing.Upright(*reach, body)
    parts = [*drawing.levels(scale), *drawing.ticks(across, body, height - FOOT)]
    parts.append(
        f'<line class="diagonal" x1="{across.at(reach[0]):.2f}%" y1="{scale.at(reach[0]):.1f}" '
        f'x2="{across.at(reach[1]):.2f}%" y2="{scale.at(reach[1]):.1f}"/>'
    )
    # The largest changes last, on top.
    for pair in reversed(shown):
        change = (pair.b - pair.a) * better
        tone = "good" if change > 0 else "bad" if change < 0 else "even"
        words = f"{pair.name}: {plain(round(pair.a, 4))} → {plain(round(pair.b, 4))}"
        dot = f'<circle class="point {tone}" cx="{across.at(pair.a):.2f}%" cy="{scale.at(pair.b):.1f}" r="5"/>'
        parts.append(drawing.linked(dot, words, pair.href))
    parts.append(f'<text x="50%" y="{height - 4}" text-anchor="middle">{escape(a)} →</text>')
    parts.append(f'<text class="name" x="0" y="-2">↑ {escape(b)}</text>')
    return drawing.boxed(
        drawing.picture(drawing.one_stop(parts), label, height, extra="plot", linked=any(pair.href for pair in shown)), "square"
    )


def boundary(
    points: Sequence[tuple[int, float]],
    *,
    upper: float,
    lower: float,
    label: str,
    decision: Decision | None = None,
    height: int = 260,
) -> Markup:
    """Return the way of a sequential test: its log likelihood ratio by samples, between the bounds that decide it."""
    shown = [(count, value) for count, value in points if drawing.known(value)]
    body = height - 2 * FOOT
    scale = drawing.upright([upper, lower, 0.0, *(value for _, value in shown)], body)
    if not shown or scale is None:
        return drawing.none(label, height)
    across = Scale(0.0, float(max(count for count, _ in shown)) or 1.0)
    places = [(across.at(count), scale.at(value)) for count, value in shown]
    parts = [
        *drawing.levels(scale, zero=True),
        *drawing.ticks(across, body, height - FOOT),
        drawing.limit(scale.at(upper), "accept above", "good", left=True),
        drawing.limit(scale.at(lower), "reject below", "bad", left=True),
        drawing.stretched(drawing.thread(places, "thread"), body),
        drawing.ending(places[-1], decision),
        f'<text x="100%" y="{height - 4}" text-anchor="end">samples</text>',
    ]
    return drawing.boxed(drawing.picture(parts, label, height, extra="plot"))


def confidence(
    points: Sequence[tuple[int, float, float, float]],
    *,
    label: str,
    decision: Decision | None = None,
    zero: float = 0.0,
    height: int = 260,
) -> Markup:
    """Return an estimate by samples within its confidence sequence, (samples, estimate, low, high), against ``zero``."""
    shown = [point for point in points if all(map(drawing.known, point))]
    body = height - 2 * FOOT
    if not shown:
        return drawing.none(label, height)
    # The first intervals are as wide as the world; what counts is the later half, so that decides the height.
    later = shown[len(shown) // 10 :]
    scale = drawing.upright([zero, *(value for point in later for value in point[1:])], body)
    assert scale is not None
    across = Scale(0.0, float(max(point[0] for point in shown)) or 1.0)
    upper = [(across.at(count), scale.at(high)) for count, _, _, high in shown]
    lower = [(across.at(count), scale.at(low)) for count, _, low, _ in reversed(shown)]
    places = [(across.at(count), scale.at(estimate)) for count, estimate, _, _ in shown]
    y = scale.at(zero)
    parts = [
        *drawing.levels(scale),
        *drawing.ticks(across, body, height - FOOT),
        drawing.stretched(drawing.area([*upper, *lower]), body),
        f'<line class="zero" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>',
        drawing.stretched(drawing.thread(places, "thread"), body),
        drawing.ending(places[-1], decision),
        f'<text x="100%" y="{height - 4}" text-anchor="end">samples</text>',
    ]
    return drawing.boxed(drawing.picture(parts, label, height, extra="plot"))


def parallel(
    dimensions: Sequence[Dimension], lines: Sequence[Line], *, label: str, best: int | None = None, height: int = 300
) -> Markup:
    """Return one strand for each trial across its dimensions; the better ones darker, the best one marked and on top.

    ``best`` is the place of the best line in ``lines``; of more than 200 those with the highest scores are drawn. A strand
    leaves out what is unknown.
    """
    ranked = sorted(
        (place for place, line in enumerate(lines) if drawing.known(line.score)), key=lambda place: -lines[place].score
    )
    kept = ranked[:MOST_STRANDS]
    if best is not None and best not in kept:
        kept.append(best)
    if not dimensions or not kept:
        return drawing.none(label, height)
    top, body = 2 * FOOT, height - 3 * FOOT
    rails = [
        drawing.Rail.over([lines[place].values[index] for place in kept], body, log=one.log)
        for index, one in enumerate(dimensions)
    ]
    across = Scale(0.0, float(max(len(rails) - 1, 1)), margin=8.0)
    parts, names = [], []
    for index, (dimension, rail) in enumerate(zip(dimensions, rails, strict=True)):
        x = across.at(index)
        inwards = index == len(rails) - 1 > 0 and rail.scale is None  # words may be long
        parts.append(f'<line class="rail" x1="{x:.2f}%" x2="{x:.2f}%" y1="{top}" y2="{top + body}"/>')
        names.append(f'<text class="name" x="{x:.2f}%" y="14" text-anchor="middle">{escape(dimension.name)}</text>')
        aside = 'dx="-6" text-anchor="end"' if inwards else 'dx="6"'
        for y, words in rail.names:
            names.append(f'<text class="tick halo" x="{x:.2f}%" {aside} y="{top + y + 4:.1f}">{escape(words)}</text>')
    half = set(ranked[: max(1, len(ranked) // 4)])
    for place in sorted(kept, key=lambda one: (one == best, lines[one].score)):
        line = lines[place]
        ways = [(across.at(index), rail.at(value)) for index, (rail, value) in enumerate(zip(rails, line.values, strict=True))]
        kind = "strand best" if place == best else "strand upper" if place in half else "strand"
        words = line.title or f"score {plain(round(line.score, 4))}"
        parts.append(
            drawing.linked(
                drawing.stretched(drawing.thread([None if y is None else (x, y) for x, y in ways], kind), body, top=top),
                words,
                line.href,
            )
        )
    parts += names
    return drawing.boxed(
        drawing.picture(drawing.one_stop(parts), label, height, extra="plot", linked=any(lines[one].href for one in kept)),
        "even",
    )


def histogram(
    values: Sequence[float],
    *,
    label: str,
    unit: str = "",
    bins: int = 30,
    marks: Mapping[str, float] | None = None,
    height: int = 180,
) -> Markup:
    """Return how often values of each size occur, and named places among them."""
    known = sorted(value for value in values if drawing.known(value))
    body = height - FOOT
    if not known:
        return drawing.none(label, height)
    low, high = drawing.reach(known) or (0.0, 1.0)
    counts = [0] * bins
    for value in known:
        counts[min(bins - 1, int((value - low) / (high - low) * bins))] += 1
    across, scale = Scale(low, high, margin=1.0), drawing.Upright(0.0, float(max(counts)), body)
    named = f" {unit}" if unit else ""
    parts = [*drawing.levels(scale, whole=True), *drawing.ticks(across, body, height, unit=named, lines=False)]
    for place, count in enumerate(counts):
        if count:
            start, end = (low + (high - low) * (place + step) / bins for step in (0, 1))
            left, right = across.at(start), across.at(end)
            words = escape(f"{plain(round(start, 3))} to {plain(round(end, 3))}{named}: {count:,}")
            parts.append(
                f'<rect class="column" x="{left + 0.1:.2f}%" width="{max(0.2, right - left - 0.2):.2f}%" '
                f'y="{scale.at(count):.1f}" height="{body - scale.at(count):.1f}"><title>{words}</title></rect>'
            )
    for name, value in (marks or {}).items():
        if drawing.known(value):
            x = across.at(value)
            beside = 'dx="-4" text-anchor="end"' if x > 60 else 'dx="4"'
            parts.append(f'<line class="limit" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{body}"/>')
            parts.append(f'<text class="limit-name" x="{x:.2f}%" {beside} y="10">{escape(name)}</text>')
    return drawing.boxed(drawing.picture(parts, label, height, extra="plot"))


def bars(items: Sequence[Bar], *, label: str, most: float | None = None) -> Markup:
    """Return a bar for each name, below each other, from 0; ``most`` is the full width unless the largest is."""
    shown = [item for item in items if drawing.known(item.value)]
    if not shown:
        return drawing.none(label, 60)
    full = most or max(abs(item.value) for item in shown) or 1.0
    row, parts = 38, []
    for place, item in enumerate(shown):
        y = place * row
        said = item.said or f"{plain(round(item.value, 4))}"
        share = 100 * min(1.0, abs(item.value) / full)
        drawn = (
            f'<text class="name" x="0" y="{y + 12}">{escape(item.name)}</text>'
            f'<text class="said" x="100%" y="{y + 12}" text-anchor="end">{escape(said)}</text>'
            f'<rect class="track" x="0" width="100%" y="{y + 18}" height="8" rx="4"/>'
            f'<rect class="bar {escape(item.tone)}" x="0" width="{share:.2f}%" y="{y + 18}" height="8" rx="4"/>'
        )
        parts.append(drawing.linked(drawn, "", item.href))
    linked = any(item.href for item in shown)
    return drawing.picture(
        drawing.one_stop(parts) if linked else parts, label, len(shown) * row - 8, extra="bars-list", linked=linked
    )


def gauge(share: float | None, middle: str, below: str, *, label: str, tone: str = "good") -> Markup:
    """Return a share of 1 as a ring with a text in its middle; an unknown share is an empty ring."""
    known = min(1.0, max(0.0, share)) if share is not None and math.isfinite(share) else 0.0
    return ring([(known, escape(tone)), (1.0 - known, "even")], middle, below, label=label)


def states(parts: Sequence[tuple[str, int, str]], *, label: str) -> Markup:
    """Return counts of states, each (name, count, tone), as one bar with its legend."""
    total = sum(max(0, count) for _, count, _ in parts)
    if total == 0:
        return drawing.none(label, 40)
    drawn, start = [], 0.0
    for name, count, tone in parts:
        width = 100 * max(0, count) / total
        if width > 0:
            words = escape(f"{name}: {count:,}")
            drawn.append(
                f'<rect class="piece {escape(tone)}" x="{start:.2f}%" width="{width:.2f}%" y="0" height="22" rx="4">'
                f"<title>{words}</title></rect>"
            )
        start += width
    legend = "".join(
        f'<li><span class="swatch {escape(tone)}"></span>{escape(name)} <strong>{count:,}</strong></li>'
        for name, count, tone in parts
    )
    return Markup('{}<ul class="legend swatches">{}</ul>').format(drawing.picture(drawn, label, 22), Markup(legend))
