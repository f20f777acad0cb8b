"""Charts as SVG, drawn here so that they need no script.

Places along x are percentages and heights are pixels: a chart then fills whatever width it gets without its text or dots
being stretched. Curves, which SVG only knows in plain units, lie in an inner picture that may be stretched. Colours are
classes; the style sheet knows light and dark. Every chart says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from ringtrue.measures import latency

ROW, TALL = 34, 46
"""Heights of a row with one line of text beside it, and with two."""
GAPLESS = 400
"""So many bars touch each other: gaps would be thinner than a pixel."""


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` along the width of a chart, with a margin for dots at its ends."""

    low: float
    high: float
    margin: float = 3.0
    logarithmic: bool = False

    @classmethod
    def over(cls, values: Iterable[float], *, around: Sequence[float] = ()) -> Scale | None:
        """Return a scale that shows all finite values and those ``around`` them; None where there is no value."""
        known = [value for value in values if math.isfinite(value)]
        if not known:
            return None
        low, high = min(*known, *around, known[0]), max(*known, *around, known[0])
        if low == high:
            low, high = low - 0.05, high + 0.05
        return cls(low, high)

    def at(self, value: float) -> float:
        """Return the place of a value in percent of the width, cut off at the ends."""
        low, high, value = (self._unit(number) for number in (self.low, self.high, value))
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        return self.margin + share * (100 - 2 * self.margin)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round values within the scale, at most so many.

        >>> Scale(0.0, 1.0).ticks()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        >>> Scale(-0.03, 0.12).ticks()
        [0.0, 0.05, 0.1]
        >>> Scale(2.0, 900.0, logarithmic=True).ticks()
        [5.0, 20.0, 100.0, 500.0]
        """
        if self.logarithmic:
            return self._decades(most)
        for step in _steps((self.high - self.low) / most):
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            if last - first < most:
                return [round(place * step, 10) for place in range(first, last + 1)]
        return []

    def _unit(self, value: float) -> float:
        return math.log(max(value, 1e-6)) if self.logarithmic else value

    def _decades(self, most: int) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1, 2, 5), (1, 5), (1,)):
            found = [step * 10.0**power for power in powers for step in steps if self.low <= step * 10.0**power <= self.high]
            if len(found) <= most or steps == (1,):
                return found
            if len(found) <= 2 * most:
                return found[1::2]
        return []


def _steps(least: float) -> Iterable[float]:
    power = 10.0 ** math.floor(math.log10(least))
    return (step * power for step in (1, 2, 2.5, 5, 10, 20, 25, 50) if step * power >= least * (1 - 1e-9))


def plain(value: float) -> str:
    """Return a tick's label, as short as it can be.

    >>> plain(0.25), plain(-0.1), plain(0.0)
    ('0.25', '−0.1', '0')
    """
    return f"{value:.6g}".replace("-", "−")


def with_sign(value: float) -> str:
    """Return a tick's label of a difference."""
    return "0" if value == 0 else f"{value:+.6g}".replace("-", "−")


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
    parts = [_grid(scale, zero)]
    if before is not None and math.isfinite(before):
        if math.isfinite(value):
            parts.append(_line(scale.at(before), scale.at(value), middle, "move"))
        parts.append(f'<circle class="before" cx="{scale.at(before):.2f}%" cy="{middle}" r="5"/>')
    if math.isfinite(low) and math.isfinite(high):
        left, right = scale.at(low), scale.at(high)
        parts.append(_line(left, right, middle, f"whisker {tone}"))
        for end in (left, right):
            parts.append(f'<line class="whisker {tone}" x1="{end:.2f}%" x2="{end:.2f}%" y1="{middle - 4}" y2="{middle + 4}"/>')
    if math.isfinite(value):
        parts.append(f'<circle class="dot {tone}" cx="{scale.at(value):.2f}%" cy="{middle}" r="5.5"/>')
    return _picture(parts, label, ROW)


def axis(scale: Scale, *, sign: bool = False) -> Markup:
    """Return the row of tick labels that stands below rows of the same scale."""
    name = with_sign if sign else plain
    ticks = scale.ticks()
    parts = [f'<text class="tick" x="{scale.at(tick):.2f}%" y="12" text-anchor="middle">{name(tick)}</text>' for tick in ticks]
    return _picture(parts, None, 18)


def bar(scale: Scale, value: float, *, tone: str, label: str) -> Markup:
    """Return one tall row: a bar from the left end."""
    parts = [_grid(scale, None, TALL)]
    if math.isfinite(value):
        parts.append(_rect(scale.at(scale.low), scale.at(value), f"bar {tone}"))
    return _picture(parts, label, TALL)


def step(scale: Scale, start: float, end: float, *, tone: str, label: str, last: bool = False) -> Markup:
    """Return one tall row of a waterfall: the part between two running totals, and a thread to the next row."""
    left, right = sorted((scale.at(start), scale.at(end)))
    parts = [_rect(left, max(right, left + 0.3), f"bar {tone}")]
    if not last:
        parts.append(
            f'<line class="carry" x1="{scale.at(end):.2f}%" x2="{scale.at(end):.2f}%" y1="{TALL / 2}" y2="{TALL + 12}"/>'
        )
    return _picture(parts, label, TALL)


def shares(whole: float, part: float, *, label: str) -> Markup:
    """Return a share of 1, and the part of it that is unique, darker."""
    parts = ['<rect class="track" x="0" width="100%" y="10" height="10" rx="2"/>']
    for share, name in ((whole, "share"), (part, "unique")):
        if math.isfinite(share):
            parts.append(f'<rect class="{name}" x="0" width="{100 * share:.2f}%" y="10" height="10" rx="2"/>')
    return _picture(parts, label, 24)


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
    words = (
        f'<text class="middle" x="100" y="104" text-anchor="middle">{escape(middle)}</text>'
        f'<text class="below" x="100" y="128" text-anchor="middle">{escape(below)}</text>'
    )
    said = escape(label)
    return Markup(
        f'<svg class="chart ring" viewBox="0 0 200 200" role="img" aria-label="{said}"><title>{said}</title>'
        f"{''.join(arcs)}{words}</svg>"
    )


def _arc(start: float, end: float, tone: str) -> str:
    """A piece of the ring from one percentage to another, clockwise from the top; as a path, since dashes on a circle leave
    notches where a browser joins its quarters."""
    if end - start >= 100:
        return f'<circle class="arc {tone}" cx="100" cy="100" r="86"/>'
    turns = [2 * math.pi * place / 100 for place in (start, end)]
    (x, y), (to_x, to_y) = ((100 + 86 * math.sin(turn), 100 - 86 * math.cos(turn)) for turn in turns)
    large = int(end - start > 50)
    return f'<path class="arc {tone}" d="M{x:.2f} {y:.2f}A86 86 0 {large} 1 {to_x:.2f} {to_y:.2f}"/>'


def per_query(values: Sequence[float], *, better: int, label: str, height: int = 200) -> Markup:
    """Return sorted bars, one per query, above and below zero; ``better`` is +1 where more is better, else −1.

    The script draws the same picture again for another measure.
    """
    # A floor keeps a run of hairline differences from looking like a landslide.
    top, bottom = max([0.05, *values]), min([0.0, *values])
    bottom = min(bottom, -0.05) if bottom < 0 else 0.0
    reach = (top - bottom) * 1.04
    gap = 0.0 if len(values) > GAPLESS else 0.12
    paths: dict[str, list[str]] = {"good": [], "bad": [], "plain": []}
    zero = top / reach * height

    for place, value in enumerate(values):
        if value == 0:
            continue
        tone = "plain" if better == 0 else "good" if value * better > 0 else "bad"
        y = (top - value) / reach * height
        paths[tone].append(f"M{place + gap:g} {zero:.2f}V{y:.2f}H{place + 1 - gap:g}V{zero:.2f}Z")
    drawn = "".join(f'<path class="bars {tone}" d="{"".join(path)}"/>' for tone, path in paths.items() if path)
    ticks = Scale(bottom, top).ticks(4)
    lines = [
        f'<line class="{"zero" if tick == 0 else "grid"}" x1="0" x2="100%" y1="{(top - tick) / reach * height:.1f}" '
        f'y2="{(top - tick) / reach * height:.1f}"/>'
        for tick in ticks
    ]
    names = [
        f'<text class="tick" x="2" y="{(top - tick) / reach * height - 4:.1f}">{(with_sign if better else plain)(tick)}</text>'
        for tick in ticks
    ]
    inner = _stretched(drawn, max(1, len(values)), height)
    return _picture([*lines, inner, *names], label, height, extra="plot")


def cumulative(series: Mapping[str, Sequence[float]], *, label: str, height: int = 220) -> Markup:
    """Return the share of queries answered within so many milliseconds, one curve for each series."""
    known = [value for values in series.values() for value in values]
    # The slowest hundredth would squeeze everything else; its curve leaves the picture on the right.
    low, high = max(min(known), 1e-3), max(latency(values).p99 for values in series.values()) * 1.1
    # Latencies often spread over decades; on a straight axis all but the slowest would stand on the left edge.
    logarithmic = high > 20 * low
    scale = Scale(low if logarithmic else 0.0, high if high > low or not logarithmic else low * 2, 1.0, logarithmic)
    body = height - 22
    parts = []
    for share in (0.0, 0.5, 0.95):
        y = _down(share, body)
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        if share:
            parts.append(f'<text class="tick" x="100%" y="{y + 13:.1f}" text-anchor="end">{100 * share:g} %</text>')
    for tick in scale.ticks(6):
        anchor = "start" if scale.at(tick) < 3 else "end" if scale.at(tick) > 97 else "middle"
        parts.append(
            f'<text class="tick" x="{scale.at(tick):.2f}%" y="{height - 5}" text-anchor="{anchor}">{plain(tick)} ms</text>'
        )
    curves = []
    for index, values in enumerate(series.values()):
        points = _curve(sorted(values), scale, body)
        curves.append(f'<path class="curve series-{index}" vector-effect="non-scaling-stroke" d="{points}"/>')
    parts.append(_stretched("".join(reversed(curves)), 100, body))
    return _picture(parts, label, height, extra="plot")


def _curve(values: Sequence[float], scale: Scale, body: int, most: int = 300) -> str:
    count = len(values)
    picked = sorted({round(place * (count - 1) / (most - 1)) for place in range(most)}) if count > most else range(count)
    text = f"M{scale.at(values[0]):.2f} {_down(0, body):.1f}"
    for place in picked:
        text += f"H{scale.at(values[place]):.2f}V{_down((place + 1) / count, body):.1f}"
    return text + "H100"


def _down(share: float, body: int) -> float:
    return body - 2 - share * (body - 8)


def _grid(scale: Scale, zero: float | None, height: int = ROW) -> str:
    lines = [f'<line class="grid" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{height}"/>' for x in map(scale.at, scale.ticks())]
    if zero is not None:
        lines.append(f'<line class="zero" x1="{scale.at(zero):.2f}%" x2="{scale.at(zero):.2f}%" y1="0" y2="{ROW}"/>')
    return "".join(lines)


def _line(left: float, right: float, y: float, name: str) -> str:
    return f'<line class="{name}" x1="{left:.2f}%" x2="{right:.2f}%" y1="{y}" y2="{y}"/>'


def _rect(left: float, right: float, name: str) -> str:
    width = max(0.0, right - left)
    return f'<rect class="{name}" x="{left:.2f}%" width="{width:.2f}%" y="{TALL / 2 - 8}" height="16" rx="2"/>'


def _stretched(drawn: str, width: int, height: int) -> str:
    return f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" width="100%" height="{height}">{drawn}</svg>'


def _picture(parts: Iterable[str], label: str | None, height: int, *, extra: str = "") -> Markup:
    size = f'class="chart {extra}" width="100%" height="{height}"'
    if label is None:
        return Markup(f'<svg {size} aria-hidden="true">{"".join(parts)}</svg>')
    words = escape(label)
    return Markup(f'<svg {size} role="img" aria-label="{words}"><title>{words}</title>{"".join(parts)}</svg>')
