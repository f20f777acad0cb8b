"""What charts are made of: scales, marks, axes, links and frames.

Places along x are percentages and heights are pixels: a chart then fills whatever width it gets without its text or dots
being stretched. Lines and areas, which SVG only knows in plain units, lie in an inner picture that may be stretched.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from markupsafe import Markup, escape

FOOT = 20
"""Pixels below a picture for the names of its ticks."""
Place = tuple[float, float]
"""Percent from the left, pixels from the top."""


def known(value: float | None) -> TypeGuard[float]:
    """Return whether a value can be drawn."""
    return value is not None and abs(value) < 1e100


@dataclass(frozen=True)
class Scale:
    """Where values from ``low`` to ``high`` lie: in percent of the width, or in pixels from the top."""

    low: float
    high: float
    start: float = 3.0
    """Where ``low`` lies; the margins leave room for dots."""
    end: float = 97.0

    @classmethod
    def over(
        cls, values: Iterable[float | None], *, around: Sequence[float] = (), start: float = 3, end: float = 97, air: float = 0
    ) -> Scale | None:
        """Return a scale of all known values and those ``around`` them; None if no value is known.

        ``air`` is the share of their range that is free at each end.
        """
        numbers = [value for value in values if known(value)]
        if not numbers:
            return None
        low, high = min([*numbers, *around]), max([*numbers, *around])
        # Numbers closer than this have no round tick between them.
        least = 1e-9 * max(1.0, abs(low), abs(high))
        room = air * (high - low) if high - low > least else max(0.05, 10 * least)
        return cls(low - room, high + room, start, end)

    @classmethod
    def up(cls, values: Iterable[float | None], body: int, *, around: Sequence[float] = ()) -> Scale | None:
        """Return a scale up the height of a picture, with some air above and below."""
        return cls.over(values, around=around, start=body, end=0, air=0.08)

    def at(self, value: float) -> float:
        """Return the place of a value, cut off at the ends."""
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Return round values within the scale, at most so many.

        >>> Scale(0.0, 1.0).ticks()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        >>> Scale(-0.03, 0.12).ticks()
        [0.0, 0.05, 0.1]
        """
        for step in _steps((self.high - self.low) / most):
            first = math.ceil(self.low / step - 1e-9)
            last = math.floor(self.high / step + 1e-9)
            if last - first < most:
                return [round(place * step, 10) for place in range(first, last + 1)]
        return []


def _steps(least: float) -> Iterable[float]:
    power = 10.0 ** math.floor(math.log10(least))
    return (step * power for step in (1, 2, 2.5, 5, 10, 20, 25, 50) if step * power >= least * (1 - 1e-9))


def plain(value: float) -> str:
    """Return a number as short as it can be.

    >>> plain(0.25), plain(-0.1), plain(0.0)
    ('0.25', '−0.1', '0')
    """
    return f"{value:.6g}".replace("-", "−")


def with_sign(value: float) -> str:
    """Return a difference as short as it can be."""
    return "0" if value == 0 else f"{value:+.6g}".replace("-", "−")


# ── marks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def tag(name: str, kind: str, inside: str = "", **attributes: object) -> str:
    """Return an element of the class ``kind`` around drawn parts; numbers are rounded, and ``_`` in a name stands for ``-``."""
    values = {"class": kind, **{key.replace("_", "-"): value for key, value in attributes.items()}}
    written = "".join(
        f' {key}="{f"{value:.2f}" if isinstance(value, float) else escape(value)}"'
        for key, value in values.items()
        if value != ""
    )
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


def title(words: str) -> str:
    """Return words that show on hover."""
    return f"<title>{escape(words)}</title>" if words else ""


def percent(x: float) -> str:
    return f"{x:.2f}%"


def line(kind: str, left: float, right: float, top: float, bottom: float) -> str:
    return tag("line", kind, x1=percent(left), x2=percent(right), y1=top, y2=bottom)


def rect(kind: str, left: float, right: float, top: float, height: float, said: str = "", rx: int = 2) -> str:
    return tag("rect", kind, title(said), x=percent(left), width=percent(max(0.0, right - left)), y=top, height=height, rx=rx)


def text(kind: str, x: float, y: float, words: str, anchor: str = "middle", **more: object) -> str:
    return tag("text", kind, escape(words), x=percent(x), y=y, text_anchor=anchor, **more)


def dot(kind: str, place: Place, radius: float) -> str:
    return tag("circle", kind, cx=percent(place[0]), cy=place[1], r=radius)


def thread(kind: str, places: Sequence[Place | None], body: int, *, top: int = 0) -> str:
    """Return a line through places; None is a gap."""
    drawn, pen = "", "M"
    for place in places:
        if place is not None:
            drawn += f"{pen}{place[0]:.2f} {place[1]:.1f}"
        pen = "L" if place is not None else "M"
    return stretched(tag("path", kind, vector_effect="non-scaling-stroke", d=drawn), body, top=top)


def band(upper: Sequence[Place], lower: Sequence[Place], body: int) -> str:
    """Return the area between two lines."""
    around = "L".join(f"{x:.2f} {y:.1f}" for x, y in (*upper, *reversed(lower)))
    return stretched(tag("path", "band", d=f"M{around}Z"), body)


def stretched(drawn: str, height: int, *, width: int = 100, top: int = 0) -> str:
    """Return parts in units of their own, stretched over the whole width."""
    return tag(
        "svg", "", drawn, viewBox=f"0 0 {width} {height}", preserveAspectRatio="none", width="100%", height=height, y=top or "",
        overflow="visible",
    )  # fmt: skip


# ── axes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def levels(up: Scale) -> list[str]:
    """Return lines across with their numbers on the left, outside of the picture."""
    parts = []
    for tick in up.ticks():
        y = up.at(tick)
        parts += [line("grid", 0, 100, y, y), tag("text", "tick", plain(tick), x=-8, y=y + 4, text_anchor="end")]
    return parts


def ticks(across: Scale, body: int) -> list[str]:
    """Return the numbers below a picture, and lines up from them."""
    parts = []
    for tick in across.ticks():
        x = across.at(tick)
        anchor = "start" if x < 3 else "end" if x > 97 else "middle"
        parts += [line("grid", x, x, 0, body), text("tick", x, body + FOOT - 4, f"{tick:,.10g}", anchor)]
    return parts


# ── frames ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def linked(drawn: str, words: str, href: str = "") -> str:
    """Return a part with words that show on hover, as a link if it leads somewhere."""
    inside = drawn + title(words)
    return tag("a", "", inside, href=href, tabindex=-1, aria_label=words) if href else tag("g", "", inside)


def picture(parts: Sequence[str], label: str, height: int, kind: str = "plot") -> Markup:
    """Return a chart, which is one image to a screen reader unless there are links in it.

    The Tab key reaches its first link; arrow keys lead on (app.js). A chart without a label is decoration.
    """
    size: dict[str, object] = {"width": "100%", "height": height}
    drawn, kind = "".join(parts), f"chart {kind}".strip()
    if not label:
        return Markup(tag("svg", kind, drawn, **size, aria_hidden="true"))
    if any(part.startswith("<a ") for part in parts):
        drawn = drawn.replace('tabindex="-1"', 'tabindex="0"', 1)
        return Markup(tag("svg", kind, drawn, **size, role="group", data_rove="yes", aria_label=label))
    return Markup(tag("svg", kind, title(label) + drawn, **size, role="img", aria_label=label))


def plot(parts: Sequence[str], label: str, height: int, kind: str = "") -> Markup:
    """Return a chart with room on the left for the numbers of its axis."""
    return Markup('<div class="plot-box {}">{}</div>').format(kind, picture(parts, label, height))


def none(label: str, height: int) -> Markup:
    """Return what stands in the place of a chart without data."""
    height = min(height, 120)
    parts = [rect("track", 0, 100, 0, height, rx=8), text("none", 50, height / 2 + 5, "no data yet")]
    return picture(parts, f"{label}: no data yet", height, "")


def legend(items: Iterable[tuple[str, str]]) -> Markup:
    """Return the names of colours, each (tone, name)."""
    rows = (Markup('<li><span class="swatch {}"></span>{}</li>').format(*item) for item in items)
    return Markup('<ul class="legend swatches">{}</ul>').format(Markup("").join(rows))


# ── charts without axes of their own: one row of a table, a tile ─────────────────────────────────────────────────────


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
    parts = [line("grid", x, x, 0, ROW) for x in map(scale.at, scale.ticks())]
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
    name = with_sign if sign else plain
    return picture([text("tick", scale.at(tick), 12, name(tick)) for tick in scale.ticks()], "", 18, "")


def step(scale: Scale, start: float, end: float, *, tone: str, label: str, last: bool = False) -> Markup:
    """Return one tall row of a waterfall: the part between two running totals, and a thread to the next row."""
    left, right = sorted((scale.at(start), scale.at(end)))
    carry = [] if last else [line("carry", scale.at(end), scale.at(end), TALL / 2, TALL + 12)]
    return picture([_bar(tone, left, max(right, left + 0.3)), *carry], label, TALL, "")


def bar(scale: Scale, value: float, *, tone: str, label: str) -> Markup:
    """Return one tall row: a bar from the left end, over its grid."""
    bars = [_bar(tone, scale.start, scale.at(value))] if known(value) else []
    return picture([*(line("grid", x, x, 0, TALL) for x in map(scale.at, scale.ticks())), *bars], label, TALL, "")


def sparkline(values: Sequence[float | None], *, label: str, height: int = 34) -> Markup:
    """Return the course of a number without axes, its last value as a dot."""
    up = Scale.over(values, start=height - 4, end=4, air=0.08)
    if up is None:
        return none(label, height)
    across = Scale(0, max(len(values) - 1, 1), 1.5, 98.5)
    places = [(across.at(place), up.at(value)) if known(value) else None for place, value in enumerate(values)]
    last = next(place for place in reversed(places) if place is not None)
    return picture([thread("thread plain", places, height), dot("dot plain", last, 4)], label, height, "spark")


def _bar(tone: str, left: float, right: float) -> str:
    return rect(f"bar {tone}", left, right, TALL / 2 - 8, 16)
