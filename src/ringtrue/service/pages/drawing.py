"""The pieces that the dashboard's pictures are made of: scales, threads, ticks, links, and the frame around them.

Places along x are percentages, heights are pixels; what must be stretched lies in an inner picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeGuard

from markupsafe import Markup, escape

from ringtrue.report.charts import Scale, plain

Decision = Literal["accepted", "rejected"]
BEYOND = 1e100
TONE_OF = {"accepted": "good", "rejected": "bad"}


@dataclass(frozen=True)
class Upright:
    """Values up the height of a picture, in pixels from above."""

    low: float
    high: float
    body: int

    def at(self, value: float) -> float:
        """Return the height of a value, cut off at the ends."""
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return (1 - share) * self.body

    def ticks(self, most: int = 5) -> list[float]:
        return Scale(self.low, self.high).ticks(most)


@dataclass(frozen=True)
class Rail:
    """One axis of parallel coordinates: numbers between their ends, words at even steps."""

    places: Mapping[str, float]
    scale: Upright | None
    log: bool
    body: int
    names: tuple[tuple[float, str], ...]

    @classmethod
    def over(cls, values: Sequence[float | str | None], body: int, *, log: bool) -> Rail:
        given = [value for value in values if isinstance(value, str) or known(value)]
        numbers = [value for value in given if not isinstance(value, str | bool)]
        if numbers and len(numbers) == len(given):
            log = log and min(numbers) > 0
            read = [math.log(value) for value in numbers] if log else [float(value) for value in numbers]
            low, high = reach(read) or (0.0, 1.0)
            ends = {min(numbers), max(numbers)}
            scale = Upright(low, high, body)
            names = tuple(
                (scale.at(math.log(end) if log else end), plain(float(f"{end:.3g}") if abs(end) < 100 else end))
                for end in sorted(ends)
            )
            return cls({}, scale, log, body, names)
        words = sorted(map(str, set(given)))
        step = body / max(1, len(words) - 1)
        places = {word: body / 2 if len(words) == 1 else index * step for index, word in enumerate(words)}
        return cls(places, None, False, body, tuple((y, word) for word, y in places.items()))

    def at(self, value: float | str | None) -> float | None:
        """Return the height of a value; None where it is unknown."""
        if self.scale is None:
            return self.places.get(str(value))
        if isinstance(value, str) or not known(value):
            return None
        return self.scale.at(math.log(value) if self.log else float(value))


def known(value: float | None) -> TypeGuard[float]:
    """False for what cannot be drawn: nothing, no number, or one beyond all measure."""
    return value is not None and abs(value) < BEYOND


def reach(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Return the least and the largest value, apart even where all are the same; None where there is none."""
    numbers = [value for value in values if known(value)]
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    # Numbers closer than this have no round tick between them.
    least = 1e-9 * max(1.0, abs(low), abs(high))
    return (low, high) if high - low > least else (low - max(0.05, 10 * least), high + max(0.05, 10 * least))


def sure(value: float | None) -> float:
    assert value is not None
    return value


def stamp(when: datetime) -> float:
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def day(when: datetime) -> str:
    return f"{when.day} {when:%b %H:%M}"


def upright(values: Iterable[float | None], body: int) -> Upright | None:
    """Return the heights of values, with some air above and below; None where there is no value."""
    found = reach(values)
    if found is None:
        return None
    low, high = found
    air = 0.08 * (high - low)
    return Upright(low - air, high + air, body)


def levels(scale: Upright, *, zero: bool = False, whole: bool = False) -> list[str]:
    """Lines across with their numbers on the left, outside of the picture."""
    parts = []
    for tick in scale.ticks():
        if whole and tick != int(tick):
            continue
        y = scale.at(tick)
        kind = "zero" if zero and tick == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="-8" y="{y + 4:.1f}" text-anchor="end">{plain(tick)}</text>')
    return parts


def ticks(across: Scale, body: int, y: int, *, unit: str = "", lines: bool = True) -> list[str]:
    parts = []
    for tick in across.ticks():
        x = across.at(tick)
        if lines:
            parts.append(f'<line class="grid" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="{body}"/>')
        parts.append(f'<text class="tick" x="{x:.2f}%" y="{y - 4}" text-anchor="middle">{f"{tick:,.10g}"}{escape(unit)}</text>')
    return parts


def days(first: datetime, last: datetime, across: Scale, height: int) -> list[str]:
    """The first and the last day under a picture of time, and the middle where there is room for it.

    Within a few days the hour belongs to it, and three such names touch in a narrow picture: the middle is left out. What is
    named alike to the minute is named once.
    """
    if (last - first).days < 1 and day(first) == day(last):
        return [f'<text class="tick" x="50%" y="{height - 5}" text-anchor="middle">{day(first)}</text>']
    short = (last - first).days < 3
    middle = first + (last - first) / 2
    named = [(first, "start", across.margin), (middle, "middle", 50.0), (last, "end", 100.0 - across.margin)]
    return [
        f'<text class="tick" x="{x:.2f}%" y="{height - 5}" text-anchor="{anchor}">'
        f"{day(when) if short else f'{when.day} {when:%b}'}</text>"
        for when, anchor, x in named
        if not short or anchor != "middle"
    ]


def thread(places: Sequence[tuple[float, float] | None], kind: str) -> str:
    """A line through places in percent and pixels; None is a gap."""
    text, pen = "", "M"
    for place in places:
        if place is None:
            pen = "M"
            continue
        text += f"{pen}{place[0]:.2f} {place[1]:.1f}"
        pen = "L"
    return f'<path class="{kind}" vector-effect="non-scaling-stroke" d="{text}"/>'


def area(places: Sequence[tuple[float, float]]) -> str:
    return f'<path class="band" d="M{"L".join(f"{x:.2f} {y:.1f}" for x, y in places)}Z"/>'


def limit(y: float, name: str, tone: str, *, left: bool = False) -> str:
    place = 'x="0" text-anchor="start"' if left else 'x="100%" text-anchor="end"'
    words = f'<text class="limit-name {tone}" {place} y="{y - 5:.1f}">{escape(name)}</text>'
    return f'<line class="limit {tone}" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>{words if name else ""}'


def ending(place: tuple[float, float], decision: Decision | None) -> str:
    x, y = place
    if decision is None:
        return f'<circle class="dot" cx="{x:.2f}%" cy="{y:.1f}" r="4.5"/>'
    tone = TONE_OF[decision]
    anchor, shift = ("end", -4) if x > 50 else ("start", 4)
    beside = y + 22 if decision == "accepted" else y - 14
    return (
        f'<circle class="decided {tone}" cx="{x:.2f}%" cy="{y:.1f}" r="7"/>'
        f'<text class="limit-name {tone}" x="{x:.2f}%" dx="{shift}" y="{beside:.1f}" text-anchor="{anchor}">{decision}</text>'
    )


def linked(drawn: str, words: str, href: str) -> str:
    """A part with its words on hover; a link where it leads somewhere."""
    inside = f"{drawn}<title>{escape(words)}</title>" if words else drawn
    named = f' aria-label="{escape(words)}"' if words else ""  # a link with text in it has its name already
    return f'<a href="{escape(href)}" tabindex="-1"{named}>{inside}</a>' if href else f"<g>{inside}</g>"


def one_stop(parts: Sequence[str]) -> list[str]:
    """Let the Tab key reach the first link of a picture; arrows lead on (app.js)."""
    made = list(parts)
    first = next((place for place, part in enumerate(made) if part.startswith("<a ")), None)
    if first is not None:
        made[first] = made[first].replace('tabindex="-1"', 'tabindex="0"', 1)
    return made


def stretched(drawn: str, height: int, *, top: int = 0) -> str:
    place = f' y="{top}"' if top else ""
    return (
        f'<svg viewBox="0 0 100 {height}" preserveAspectRatio="none" width="100%" height="{height}"{place} overflow="visible">'
        f"{drawn}</svg>"
    )


def picture(parts: Iterable[str], label: str, height: int, *, extra: str = "", linked: bool = False) -> Markup:
    """A picture is one image to a screen reader, unless there are links in it."""
    words = escape(label)
    kind = 'role="group" data-rove=""' if linked else 'role="img"'
    title = "" if linked else f"<title>{words}</title>"
    return Markup(
        f'<svg class="chart {extra}" width="100%" height="{height}" {kind} aria-label="{words}">{title}{"".join(parts)}</svg>'
    )


def boxed(picture: Markup, extra: str = "") -> Markup:
    """Room on the left for the numbers of the axis."""
    return Markup('<div class="plot-box {}">{}</div>').format(extra, picture)


def none(label: str, height: int) -> Markup:
    height = min(height, 120)
    words = f'<text class="none" x="50%" y="{height / 2 + 5:.0f}" text-anchor="middle">no data yet</text>'
    track = f'<rect class="track" x="0" width="100%" y="0" height="{height}" rx="8"/>'
    return picture([track, words], f"{label}: no data yet", height)
