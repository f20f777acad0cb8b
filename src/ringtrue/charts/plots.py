"""Charts with axes: queries, courses over time, tests, experiments and latencies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, pairwise
from typing import Literal

from markupsafe import Markup

from ringtrue.charts import svg
from ringtrue.charts.svg import FOOT, Place, Scale, band, dot, known, levels, line, linked, plain, text, thread

Decision = Literal["accepted", "rejected"]
MOST_STRANDS = 200
MOST_POINTS = 4_000
"""More dots than that are a blot, and a page that is slow to draw."""
MOST_DOTS = 60
"""Dots of a longer history would hide it."""
MOST_SLOTS = 400
"""More moments are too narrow to point at."""
GAPLESS = 400
"""So many bars touch each other: gaps would be thinner than a pixel."""


@dataclass(frozen=True)
class Point:
    """A value in a chart, with its interval if one is known, the words that show on hover, and where it leads."""

    x: float
    """For time, seconds since 1970."""
    y: float | None
    low: float | None = None
    high: float | None = None
    title: str = ""
    href: str = ""
    kind: str = ""
    """Its tone in a scatter; in a trend what was measured: values of different kinds are not joined by a line."""


@dataclass(frozen=True)
class Strand:
    """One trial: its value on every dimension, and its score."""

    values: Sequence[float | str | None]
    score: float
    title: str = ""
    href: str = ""


@dataclass(frozen=True)
class Curve:
    """Counts over time, one for each moment; None is a gap."""

    name: str
    counts: Sequence[int | None]
    tone: str = "plain"
    dashed: bool = False


# ── queries and trials as dots ──────────────────────────────────────────────────────────────────────────────────────


def per_query(values: Sequence[float], *, better: int, label: str, height: int = 200) -> Markup:
    """Return sorted bars, one per query, above and below zero; ``better`` is +1 if more is better, −1 if less, 0 if neither.

    The script of the report draws the same picture again for another measure.
    """
    # A floor keeps a run of hairline differences from looking like a landslide.
    top, bottom = max([0.05, *values]), min([0.0, *values])
    bottom = min(bottom, -0.05) if bottom < 0 else 0.0
    up = Scale(top - (top - bottom) * 1.04, top, height, 0)
    gap = 0.0 if len(values) > GAPLESS else 0.12
    paths = {"good": "", "bad": "", "plain": ""}
    for place, value in enumerate(values):
        if value != 0:
            tone = "plain" if better == 0 else "good" if value * better > 0 else "bad"
            paths[tone] += f"M{place + gap:g} {up.at(0):.2f}V{up.at(value):.2f}H{place + 1 - gap:g}V{up.at(0):.2f}Z"
    drawn = "".join(svg.tag("path", f"bars {tone}", d=path) for tone, path in paths.items() if path)
    ticks = [(tick, up.at(tick)) for tick in Scale(bottom, top).ticks(4)]
    name = svg.with_sign if better else plain
    parts = [
        *(line("grid" if tick else "zero", 0, 100, y, y) for tick, y in ticks),
        svg.stretched(drawn, height, width=max(1, len(values))),
        *(svg.tag("text", "tick", name(tick), x=2, y=y - 4) for tick, y in ticks),
    ]
    return svg.picture(parts, label, height)


def scatter(points: Sequence[Point], *, a: str, b: str, label: str, height: int = 400) -> Markup:
    """Return one dot for each query: its value on side a to the right, on side b upwards; on the diagonal nothing changed.

    Of very many queries those that changed most are drawn, the largest changes last, on top.
    """
    shown = [(abs(one.y - one.x), one) for one in points if known(one.x) and known(one.y)]
    shown = sorted(shown, key=lambda pair: pair[0])[-MOST_POINTS:]
    both = [value for _, one in shown for value in (one.x, one.y)]
    around = (0.0, 1.0) if all(0 <= value <= 1 for value in both if known(value)) else ()
    across, up = Scale.over(both, around=around), Scale.over(both, around=around, start=height - 2 * FOOT, end=0)
    if across is None or up is None:
        return svg.none(label, height)
    diagonal = line("diagonal", across.at(up.low), across.at(up.high), up.at(up.low), up.at(up.high))
    parts = [*levels(up), *svg.ticks(across, height - 2 * FOOT), diagonal]
    parts += [_dot(f"point {one.kind}", one, across, up, 5) for _, one in shown]
    return svg.plot([*parts, *_axis_names(a, b, height)], label, height, "square")


def _dot(kind: str, point: Point, across: Scale, up: Scale, radius: float) -> str:
    return linked(dot(kind, (across.at(point.x), up.at(point.y or 0.0)), radius), point.title, point.href)


def _axis_names(across: str, up: str, height: int) -> list[str]:
    return [text("", 50, height - 4, f"{across} →"), text("name", 0, -2, f"↑ {up}", "start")]


# ── lines ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def trend(points: Sequence[Point], *, label: str, height: int = 220) -> Markup:
    """Return values over time with their intervals."""
    shown = sorted((point for point in points if known(point.y)), key=lambda point: point.x)
    body = height - FOOT
    up = Scale.up([number for point in shown for number in (point.y, point.low, point.high)], body)
    across = Scale.over(point.x for point in shown)
    if up is None or across is None:
        return svg.none(label, height)
    parts = [*levels(up), *_days(across, shown[0].x, shown[-1].x, height)]
    values: list[Place | None] = []
    # Values of different kinds are not joined: what lies between them is not a change of what was measured.
    alike = [list(group) for _, group in groupby(shown, key=lambda point: point.kind)]
    for group in alike:
        values += [*((across.at(point.x), up.at(point.y or 0.0)) for point in group), None]
        parts.append(_interval(group, across, up, body))
    for before, after in pairwise(alike):
        x = (across.at(before[-1].x) + across.at(after[0].x)) / 2
        parts.append(svg.tag("g", "cut", svg.title(f"from here on {after[0].kind}") + line("", x, x, 0, body)))
    parts.append(thread("thread", values, body))
    if len(shown) <= MOST_DOTS:
        parts += [_dot("dot", point, across, up, 4.5) for point in shown]
    return svg.plot(parts, label, height)


def course(times: Sequence[float], curves: Sequence[Curve], *, label: str, height: int = 220) -> Markup:
    """Return counts over time from 0, with their legend; the numbers of each moment show on hover."""
    across, body = Scale.over(times, start=1, end=99), height - FOOT
    counts = [count for curve in curves for count in curve.counts if known(count)]
    if across is None or not counts:
        return svg.none(label, height)
    up = Scale(0.0, 1.08 * max(counts) or 1.0, body, 0)
    parts = [*levels(up), *_days(across, times[0], times[-1], height)]
    half = 49 / len(times)
    for place, time in enumerate(times if len(times) <= MOST_SLOTS else ()):
        numbers = [f"{one.name} {one.counts[place]:,}" for one in curves if known(one.counts[place])]
        said = f"{_minute(datetime.fromtimestamp(time, UTC))}: {', '.join(numbers)}"
        left, right = max(0.0, across.at(time) - half), min(100.0, across.at(time) + half)
        parts.append(svg.rect("slot", left, right, 0, body, said, rx=0))
    for curve in curves:
        places = [(across.at(at), up.at(one)) if known(one) else None for at, one in zip(times, curve.counts, strict=True)]
        parts.append(thread(f"thread {curve.tone}" + " dashed" * curve.dashed, places, body))
        if len(times) <= MOST_DOTS:
            parts += [dot(f"dot {curve.tone}", place, 3) for place in places if place is not None]
    return svg.plot(parts, label, height) + svg.legend((curve.tone, curve.name) for curve in curves)


def sequential(
    points: Sequence[Point],
    *,
    label: str,
    bounds: tuple[float, float] | None = None,
    decision: Decision | None = None,
    height: int = 260,
) -> Markup:
    """Return a sequential test by samples: its evidence between the bounds that decide it, or its value with an interval."""
    shown = [point for point in points if known(point.y)]
    body = height - 2 * FOOT
    # The first intervals are as wide as the world; what counts is the later part, so that decides the height.
    later = shown[len(shown) // 10 :] if bounds is None else shown
    up = Scale.up([value for one in later for value in (one.y, one.low, one.high)], body, around=(0.0, *(bounds or ())))
    if up is None:
        return svg.none(label, height)
    across = Scale(0.0, max(point.x for point in shown) or 1.0)
    zero = line("zero", 0, 100, up.at(0), up.at(0))
    parts = [*levels(up), *svg.ticks(across, body), _interval(shown, across, up, body), zero]
    for bound, name, tone in zip(bounds or (), ("reject below", "accept above"), ("bad", "good"), strict=False):
        y = up.at(bound)
        parts += [line(f"limit {tone}", 0, 100, y, y), text(f"limit-name {tone}", 0, y - 5, name, "start")]
    places = [(across.at(point.x), up.at(point.y or 0.0)) for point in shown]
    parts += [thread("thread", places, body), text("", 100, height - 4, "samples", "end")]
    x, y = places[-1]
    if decision is None:
        parts.append(dot("dot", (x, y), 4.5))
    else:
        tone, beside = ("good", y + 22) if decision == "accepted" else ("bad", y - 14)
        anchor, shift = ("end", -4) if x > 50 else ("start", 4)
        parts += [dot(f"decided {tone}", (x, y), 7), text(f"limit-name {tone}", x, beside, decision, anchor, dx=shift)]
    return svg.plot(parts, label, height)


def _interval(points: Sequence[Point], across: Scale, up: Scale, body: int) -> str:
    ends = [(across.at(one.x), up.at(one.low), up.at(one.high)) for one in points if known(one.low) and known(one.high)]
    return band([(x, high) for x, _, high in ends], [(x, low) for x, low, _ in ends], body) if len(ends) > 1 else ""


def _days(across: Scale, first: float, last: float, height: int) -> list[str]:
    """Return the names of the first and the last day under a chart of time, and of the middle if there is room for it.

    Within a few days the hour belongs to it, and three such names touch in a narrow picture: the middle is left out. Two that
    are the same to the minute are one.
    """
    days = (last - first) / 86_400
    places = [(first, across.start, "start"), ((first + last) / 2, 50.0, "middle"), (last, across.end, "end")]
    named = []
    for at, x, anchor in places if days >= 3 else places[::2]:
        when = datetime.fromtimestamp(at, UTC)
        named.append((_minute(when) if days < 3 else f"{when.day} {when:%b}", x, anchor))
    if named[0][0] == named[-1][0]:
        named = [(named[0][0], 50.0, "middle")]
    return [text("tick", x, height - 5, name, anchor) for name, x, anchor in named]


def _minute(when: datetime) -> str:
    return f"{when.day} {when:%b %H:%M}"


# ── parallel coordinates ────────────────────────────────────────────────────────────────────────────────────────────


def parallel(
    dimensions: Mapping[str, bool], strands: Sequence[Strand], *, label: str, best: int | None = None, height: int = 300
) -> Markup:
    """Return one strand for each trial across its dimensions; the better ones darker, the best one marked and on top.

    ``dimensions`` are their names, each with whether its axis is logarithmic. ``best`` is the place of the best strand; of
    more than 200 those with the highest scores are drawn. A strand leaves out what is unknown.
    """
    ranked = sorted((one for one in range(len(strands)) if known(strands[one].score)), key=lambda one: -strands[one].score)
    kept = ranked[:MOST_STRANDS]
    kept += [best] if best is not None and best not in kept else []
    if not dimensions or not kept:
        return svg.none(label, height)
    top, body = 2 * FOOT, height - 3 * FOOT
    across = Scale(0.0, float(max(len(dimensions) - 1, 1)), 8.0, 92.0)
    parts: list[str] = []
    names: list[str] = []
    rails: list[dict[str, float]] = []
    for index, (dimension, log) in enumerate(dimensions.items()):
        x = across.at(index)
        rail, named = _rail([strands[one].values[index] for one in kept], body, log=log)
        rails.append(rail)
        parts.append(line("rail", x, x, top, top + body))
        names.append(text("name", x, 14, dimension))
        names += [text("tick halo", x, top + y + 4, words, "start", dx=6) for y, words in named]
    upper = set(ranked[: max(1, len(ranked) // 4)])
    for one in sorted(kept, key=lambda one: (one == best, strands[one].score)):
        heights = [rail.get(str(value)) for rail, value in zip(rails, strands[one].values, strict=True)]
        places = [None if y is None else (across.at(index), y) for index, y in enumerate(heights)]
        kind = "strand best" if one == best else "strand upper" if one in upper else "strand"
        parts.append(linked(thread(kind, places, body, top=top), strands[one].title, strands[one].href))
    return svg.plot([*parts, *names], label, height, "even")


def _rail(values: Sequence[float | str | None], body: int, *, log: bool) -> tuple[dict[str, float], list[tuple[float, str]]]:
    """Return the height of each value of a dimension, and the names beside it: of its ends if all are numbers, else of all."""
    given = [value for value in values if isinstance(value, str) or known(value)]
    numbers = [value for value in given if not isinstance(value, str | bool)]
    if numbers and len(numbers) == len(given):
        read = math.log if log and min(numbers) > 0 else float
        up = Scale.over(map(read, numbers), start=body, end=0.0)
        assert up is not None
        ends = sorted({min(numbers), max(numbers)})
        named = [(up.at(read(end)), plain(float(f"{end:.3g}") if abs(end) < 100 else end)) for end in ends]
        return {str(number): up.at(read(number)) for number in numbers}, named
    words = sorted(set(map(str, given)))
    places = {word: body / 2 if len(words) == 1 else body * place / (len(words) - 1) for place, word in enumerate(words)}
    return places, [(y, word) for word, y in places.items()]
