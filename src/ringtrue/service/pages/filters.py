"""How templates write what they are given. What is unknown is a dash, never a number."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sized
from datetime import UTC, datetime, timedelta
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from ringtrue.brief import counted
from ringtrue.report import DASH, milliseconds, page_number, page_signed, probability, signed_milliseconds
from ringtrue.report import code_markup as code
from ringtrue.report import moment as in_words
from ringtrue.report import percent as in_percent
from ringtrue.service.errors import for_pages
from ringtrue.service.jobs import unit_of

NO_BREAK = "\u00a0"
_MINUS, _PERCENT = re.compile(r"(?<![\w.)\]-])-(?=\d)"), re.compile(r"(?<=\d) ?%")
_MOMENT = re.compile(r"(?:\b(?:at|of) )?\b(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)?)")
_BADGE = re.compile(r'<span class="badge[^"]*">.*?</span>\s*[^<]*</span>', re.DOTALL)


def moment(when: datetime | str | None) -> Markup | str:
    """Return a moment in UTC for people, readable for programs, too; a dash for none.

    >>> str(moment("2026-11-16T08:00:00+00:00"))
    '<time datetime="2026-11-16T08:00:00+00:00">16 November 2026, 08:00 UTC</time>'
    """
    read = _read_moment(when)
    if read is None:
        return DASH if when is None else str(when)
    return Markup('<time datetime="{}">{}</time>').format(read.isoformat(), in_words(read.isoformat()))


def ago(when: datetime | str | None, now: datetime) -> Markup | str:
    """Return how long ago something was, the moment itself on hover; a dash for none.

    >>> str(ago("2026-11-16T08:00:00+00:00", datetime(2026, 11, 16, 8, 5, tzinfo=UTC))).split(">")[1]
    '5 min ago</time'
    """
    read = _read_moment(when)
    if read is None:
        return DASH if when is None else str(when)
    known = in_words(read.isoformat())
    return Markup('<time datetime="{}" title="{}">{}</time>').format(read.isoformat(), known, _distance(now - read))


def seconds(value: float) -> Markup | str:
    return moment(datetime.fromtimestamp(value, UTC))


@pass_context
def ago_here(context: Context, when: datetime | str | None) -> Markup | str:
    now = context.get("now")
    return ago(when, now) if isinstance(now, datetime) else moment(when)


@pass_context
def times(context: Context, text: Markup) -> Markup:
    """Return a text in which moments, such as "at 2026-11-16T08:00:00Z", are told as how long ago they were."""
    return Markup(_MOMENT.sub(lambda found: str(ago_here(context, found[1])), text))


def _distance(gone: timedelta) -> str:
    seconds = abs(gone.total_seconds())
    if seconds < 45:
        return "just now"
    for most, size, unit in (
        (5400, 60, "min"),
        (129_600, 3600, "h"),
        (86_400 * 60, 86_400, "d"),
        (math.inf, 86_400 * 30, "mo"),
    ):
        if seconds < most:
            text = f"{max(1, round(seconds / size))} {unit}"
            break
    return f"{text} ago" if gone.total_seconds() > 0 else f"in {text}"


def _read_moment(when: datetime | str | None) -> datetime | None:
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            return None
    if when is None:
        return None
    return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)


def count(value: int | Sized | None, one: str = "", many: str = "") -> str:
    """Return a count, with its noun where one is given; of a list, how many it holds.

    >>> count(1234), count(1, "query"), count([1, 2], "query"), count(None)
    ('1,234', '1 query', '2 queries', '—')
    """
    if value is None:
        return DASH
    known = len(value) if isinstance(value, Sized) else value
    return counted(known, one, many) if one else f"{known:,}"


def percent(share: float | None, *, sign: bool = False) -> str:
    """Return a share in percent, number and sign on one line."""
    return in_percent(share, sign=sign).replace(" %", f"{NO_BREAK}%")


def signs(text: str) -> str:
    """Return a text with the signs that the dashboard writes everywhere: a minus, and a space that keeps % with its number.

    >>> signs("p95 -4.5%, below +20 % is allowed; see 2026-11-16 and top-10").replace(NO_BREAK, "~")
    'p95 −4.5~%, below +20~% is allowed; see 2026-11-16 and top-10'
    """
    return _PERCENT.sub(f"{NO_BREAK}%", _MINUS.sub("−", text))


def title(text: str) -> Markup:
    """Return what the window is called: the heading without its badges, and without a name that stands behind every title."""
    plain = Markup(_BADGE.sub("", text)).striptags()
    return escape(plain.removesuffix("· Ringtrue").strip())


def attributes(given: Mapping[str, Any]) -> Markup:
    """Return a macro's keywords as attributes: ``hx_get="/x"`` becomes ``hx-get="/x"``; False and None are left out."""
    parts = []
    for name, value in given.items():
        if value is None or value is False:
            continue
        written = name.rstrip("_").replace("_", "-")
        parts.append(Markup(" {}").format(written) if value is True else Markup(' {}="{}"').format(written, value))
    return Markup("").join(parts)


FILTERS = {
    "number": page_number, "signed": page_signed, "percent": percent, "probability": probability, "milliseconds": milliseconds,
    "signed_milliseconds": signed_milliseconds, "moment": moment, "seconds": seconds, "ago": ago_here, "count": count,
    "code": code, "attributes": attributes, "hint": for_pages, "signs": signs, "title_text": title, "times": times,
    "unit": unit_of,
}  # fmt: skip
"""What templates may write behind a bar."""
