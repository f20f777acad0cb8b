"""Numbers, moments and counts as text, and text made harmless for Markdown. What is unknown is a dash, never a number.

Text of documents and questions is shown, never obeyed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial

DASH = "—"
NOISE = 1e-9
"""Smaller differences come from floating point."""
PERCENTILES = ("p50", "p95", "p99")


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for a table; a dash if it is not defined.

    >>> number(0.5), number(float("nan")), number(1234.5678), number(0.71249, 3)
    ('0.5000', '—', '1,234.6', '0.712')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return (f"{value:,.1f}" if abs(value) >= 100 else f"{value:.{digits}f}").replace("-", "−")


def signed(value: float | None, digits: int = 4) -> str:
    """Return a difference with its sign; one that is not 0 but rounds to it keeps the sign.

    >>> signed(0.0781), signed(-0.03, 3), signed(1e-17, 3), signed(-0.0002, 3)
    ('+0.0781', '−0.030', '0.000', '−0.000')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return f"{0:.{digits}f}" if abs(value) < NOISE else f"{value:+,.{digits}f}".replace("-", "−")


page_number = partial(number, digits=3)
"""As ``number``, for pages: three digits leave room for charts."""
page_signed = partial(signed, digits=3)


def percent(share: float | None, *, sign: bool = True) -> str:
    """Return a share in percent, as a change unless ``sign`` is False.

    >>> percent(0.024), percent(-0.05), percent(0.7777, sign=False), percent(None), percent(1e-17)
    ('+2.4 %', '−5 %', '77.8 %', '—', '0 %')
    """
    if share is None or not math.isfinite(share):
        return DASH
    share = 0.0 if abs(share) < NOISE else share
    text = f"{100 * share:{'+' if sign and share else ''}.1f}".removesuffix(".0")
    return text.replace("-", "−") + " %"


def probability(value: float) -> str:
    """Return a p-value or probability; one that is not 0 or 1 never reads as either.

    >>> probability(0.0312), probability(0.00001), probability(0.99999)
    ('0.031', '< 0.001', '> 0.999')
    """
    if not math.isfinite(value):
        return DASH
    if 0 < value < 0.001:
        return "< 0.001"
    return "> 0.999" if 0.999 < value < 1 else f"{value:.2g}"


def moment(text: str) -> str:
    """Return a moment for people, in UTC; other text stays as it is.

    >>> moment("2026-11-16T08:00:00+00:00")
    '16 November 2026, 08:00 UTC'
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    when = when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def portion(share: float) -> str:
    """Return a share as ``24 %``."""
    return DASH if math.isnan(share) else f"{100 * share:.0f} %"


def amount(measure: str, value: float | None) -> str:
    """Return a value as its measure is read: milliseconds for percentiles, four digits for everything else."""
    if measure in PERCENTILES:
        return milliseconds(value)
    return number(value)


def milliseconds(value: float | None) -> str:
    """Return ``175 ms``, with decimals if it is short; what is not 0 never reads as 0.

    >>> milliseconds(175.2), milliseconds(2.44), milliseconds(0.0421), milliseconds(0.0009), milliseconds(0.0)
    ('175 ms', '2.4 ms', '0.04 ms', '< 0.01 ms', '0 ms')
    """
    if value is None or not math.isfinite(value):
        return DASH
    if 0 < value < 0.005:
        return "< 0.01 ms"
    return f"{value:,.{_places_after(value)}f} ms"


def signed_milliseconds(value: float | None) -> str:
    """Return a difference of latencies with as many decimals as a latency of that size has.

    >>> signed_milliseconds(43.3), signed_milliseconds(-0.12), signed_milliseconds(0.0)
    ('+43 ms', '−0.12 ms', '0 ms')
    """
    return DASH if value is None or not math.isfinite(value) else f"{signed(value, _places_after(value))} ms"


def _places_after(milliseconds: float) -> int:
    size = abs(milliseconds)
    return 0 if size >= 9.95 or size == 0 else 1 if size >= 0.95 else 2


def span(interval: tuple[float, float] | None, digits: int = 4) -> str:
    """Return ``0.8012 to 0.8840``."""
    if interval is None or not all(map(math.isfinite, interval)):
        return DASH
    return f"{number(interval[0], digits)} to {number(interval[1], digits)}"


def signed_span(low: float, high: float, digits: int = 4) -> str:
    """Return ``−0.0100 to +0.0600``."""
    return f"{signed(low, digits)} to {signed(high, digits)}" if math.isfinite(low) else DASH


def beside_id(query_id: str, text: str) -> str:
    """Return the text to show beside a query's id: nothing if it is the id itself.

    >>> beside_id("q1", "late checkout"), beside_id("late checkout", "late checkout")
    ('late checkout', '')
    """
    return "" if text == query_id else text


# ── harmless in Markdown ─────────────────────────────────────────────────────────────────────────────────────────────


_SPECIAL = re.compile(r"[\\`*\[\]|~{}!$]|^[-+#=](?=[-+#=\s]|$)|(?<=^\d)[.)](?=\s)|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
# Mentions, issue numbers and addresses wake people up or link other pages even where Markdown itself is escaped, and a
# backslash or an entity does not stop them; an invisible space does. The @ of nDCG@10 follows a letter and is none.
_LINKED = re.compile(
    r"(?<!\w)@(?=\w)|#(?=\w)|[!%&$~](?=\d)|\bwww(?=\.)|\b[a-z][a-z0-9+.-]*:(?=//)|\bmailto:|\bGH-(?=\d)", re.IGNORECASE
)
_GAP = "\u200b"
# Control characters, halves of surrogate pairs, marks that turn the direction of reading.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def md(value: object, *, most: int = 300) -> str:
    """Return a value as one line of Markdown that reads as the text itself, cut to ``most`` characters.

    >>> md("a | b <b>*c*</b> @team")
    'a \\\\| b &lt;b&gt;\\\\*c\\\\*&lt;/b&gt; @\\u200bteam'
    """
    text = clip(one_line(value), most)
    text = _LINKED.sub(lambda match: match[0] + _GAP, text)
    text = _SPECIAL.sub(lambda match: "\\" + match[0], text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def one_line(value: object) -> str:
    """Return a value as text without line breaks, control characters or marks that turn the direction of reading."""
    return " ".join(_UNSEEN.sub(" ", str(value)).split())


def clip(text: str, most: int) -> str:
    """Return the beginning of a long text, with an ellipsis that says so."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def table(names: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """Return a Markdown table; the columns after the first ``text_columns`` are numbers."""
    marks = ["---" if index < text_columns else "---:" for index in range(len(names))]
    return "\n".join(f"| {' | '.join(cell or ' ' for cell in cells)} |" for cells in (names, marks, *rows))
