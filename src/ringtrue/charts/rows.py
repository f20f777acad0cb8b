"""Charts without axes of their own: one row of a table, a tile, a ring."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from ringtrue.charts import svg
from ringtrue.charts.svg import Scale, dot, known, line, picture, rect, tag, text

ROW, TALL = 34, 46
"""Heights of a row with one line of text beside it, and with two."""


def interval(
    scale: Scale,
    value: float,
    low: float,
    high: float,
    *,
    tone: str,
    label: str,
    zero: float | None = None,
    before: float | None = None,
) -> Markup:
    """Return one row: a dot with its interval, the zero line, and a hollow dot for what it was before."""
    middle = ROW / 2
    parts = _grid(scale, ROW)
    if zero is not None:
        parts.append(line("zero", scale.at(zero), scale.at(zero), 0, ROW))
    if known(before):
        if known(value):
            parts.append(line("move", scale.at(before), scale.at(value), middle, middle))
        parts.append(dot("before", (scale.at(before), middle), 5))
    if known(low) and known(high):
        left, right = scale.at(low), scale.at(high)
        parts.append(line(f"whisker {tone}", left, right, middle, middle))
        parts += [line(f"whisker {tone}", end, end, middle - 4, middle + 4) for end in (left, right)]
    if known(value):
        parts.append(dot(f"dot {tone}", (scale.at(value), middle), 5.5))
    return picture(parts, label, ROW, "")


def axis(scale: Scale, *, sign: bool = False) -> Markup:
    """Return the row of tick labels that stands below rows of the same scale."""
    name = svg.with_sign if sign else svg.plain
    return picture([text("tick", scale.at(tick), 12, name(tick)) for tick in scale.ticks()], "", 18, "")


def bar(scale: Scale, value: float, *, tone: str, label: str) -> Markup:
    """Return one tall row: a bar from the left end."""
    bars = [_bar(tone, scale.start, scale.at(value))] if known(value) else []
    return picture([*_grid(scale, TALL), *bars], label, TALL, "")


def step(scale: Scale, start: float, end: float, *, tone: str, label: str, last: bool = False) -> Markup:
    """Return one tall row of a waterfall: the part between two running totals, and a thread to the next row."""
    left, right = sorted((scale.at(start), scale.at(end)))
    parts = [_bar(tone, left, max(right, left + 0.3))]
    if not last:
        parts.append(line("carry", scale.at(end), scale.at(end), TALL / 2, TALL + 12))
    return picture(parts, label, TALL, "")


def ring(parts: Sequence[tuple[float, str]], middle: str, below: str, *, label: str) -> Markup:
    """Return a ring of parts, each (weight, tone), with a text in its middle."""
    total = sum(weight for weight, _ in parts) or 1.0
    # A part of weight 0 is not drawn, so it needs no gap: a lone colour is a whole ring without a notch.
    gap = 1.2 if sum(weight > 0 for weight, _ in parts) > 1 else 0.0
    arcs, start = [], 0.0
    for weight, tone in parts:
        length = 100 * weight / total
        if length > 0:
            arcs.append(_arc(start, start + max(length - gap, 0.4), tone))
        start += length
    words = [
        tag("text", kind, escape(words), x=100, y=y, text_anchor="middle")
        for kind, words, y in (("middle", middle, 104), ("below", below, 128))
    ]
    title = tag("title", "", escape(label))
    inside = "".join([title, *arcs, *words])
    return Markup(tag("svg", "chart ring", inside, viewBox="0 0 200 200", role="img", aria_label=label))


def sparkline(values: Sequence[float | None], *, label: str, height: int = 34) -> Markup:
    """Return the course of a number without axes, its last value as a dot."""
    up = Scale.over(values, start=height - 4, end=4, air=0.08)
    if up is None:
        return svg.none(label, height)
    across = Scale(0, max(len(values) - 1, 1), 1.5, 98.5)
    places = [(across.at(place), up.at(value)) if known(value) else None for place, value in enumerate(values)]
    last = next(place for place in reversed(places) if place is not None)
    return picture([svg.thread("thread plain", places, height), dot("dot plain", last, 4)], label, height, "spark")


def _grid(scale: Scale, height: int) -> list[str]:
    return [line("grid", x, x, 0, height) for x in map(scale.at, scale.ticks())]


def _bar(tone: str, left: float, right: float) -> str:
    return rect(f"bar {tone}", left, right, TALL / 2 - 8, 16)


def _arc(start: float, end: float, tone: str) -> str:
    """Return a piece of a ring from one percentage to another, clockwise from the top.

    It is a path, since dashes on a circle leave notches where a browser joins its quarters.
    """
    if end - start >= 100:
        return tag("circle", f"arc {tone}", cx=100, cy=100, r=86)
    turns = [2 * math.pi * place / 100 for place in (start, end)]
    (x, y), (to_x, to_y) = ((100 + 86 * math.sin(turn), 100 - 86 * math.cos(turn)) for turn in turns)
    large = int(end - start > 50)
    return tag("path", f"arc {tone}", d=f"M{x:.2f} {y:.2f}A86 86 0 {large} 1 {to_x:.2f} {to_y:.2f}")
