"""How records show themselves: ``repr`` fits on a screen, whatever a record holds. Words for a shell; counts with nouns."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import fields
from textwrap import fill
from typing import Any

SHOWN, WIDTH = 60, 100
"""Characters of a text, and of a line, in the short form of a record."""


def brief(record: Any, **facts: Any) -> str:
    """Return a record on one screen at most: the ``facts``, or its fields that are not empty, with what is long counted.

    >>> from ringtrue.records import Hit, Ranking
    >>> Ranking("q1", tuple(Hit(f"d{n}") for n in range(50)), latency_ms=1.23456)
    Ranking(query_id='q1', hits=<50>, latency_ms=1.235)
    """
    if not facts:
        known = ((one.name, getattr(record, one.name), one.default) for one in fields(record) if one.repr)
        facts = {name: value for name, value, default in known if not _unsaid(value, default)}
    parts = (f"{name}={_brief(value)}" for name, value in facts.items())
    return fill(f"{type(record).__name__}({', '.join(parts)})", WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _unsaid(value: Any, default: Any) -> bool:
    """Return whether a value says nothing: it is the field's default, or empty."""
    if hasattr(value, "__len__"):
        return len(value) == 0
    return value is None or value is default or (isinstance(value, int | float) and value == default)


def _brief(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN else f"{value[: SHOWN - 1]}…")
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping) and len(value) <= 10 and all(isinstance(one, str | int | float) for one in value.values()):
        return "{" + ", ".join(f"{name!s:.{SHOWN}}: {_brief(one)}" for name, one in value.items()) + "}"
    if isinstance(value, tuple | list) and len(value) <= 10 and all(isinstance(one, str | int | float) for one in value):
        return "(" + ", ".join(map(_brief, value)) + ")"
    return f"<{len(value)}>" if hasattr(value, "__len__") else f"{value!r:.200}"


def shell_word(text: str) -> str:
    r"""Return a word for a shell; one with single quotes is easier to read between double ones.

    >>> shell_word("connect('shop')"), shell_word("my set")
    ('"connect(\'shop\')"', "'my set'")
    """
    return f'"{text}"' if "'" in text and not set(text) & set('"$`\\!') else shlex.quote(text)


def counted(count: int, one: str, many: str = "") -> str:
    """Return ``1 query`` or ``2 queries``.

    >>> counted(1, "query"), counted(2, "query"), counted(2, "document"), counted(2, "day")
    ('1 query', '2 queries', '2 documents', '2 days')
    """
    becomes_ies = one.endswith("y") and not one.endswith(("ay", "ey", "oy", "uy"))
    plural = many or (f"{one[:-1]}ies" if becomes_ies else f"{one}s")
    return f"{count:,} {one if count == 1 else plural}"
