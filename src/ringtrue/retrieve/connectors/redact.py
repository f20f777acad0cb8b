"""Somebody else's words in a message of ours. In: what a system said, and what was handed to it; out: a text without that."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from json import dumps
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Letters of the shortest secret that is taken out; shorter ones stand inside other words."""
CUT = 6
"""Letters of the shortest beginning of a secret that is taken out where a text was cut."""
_ENDS = (";", ",", ")", " ", "'")
"""What follows a text that was cut in one of our messages."""


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return a text in which '…' stands for every secret, however it is spelled there; also where a cut left its beginning.

    >>> redacted("cannot handle /find?key=a%2Fb%2Fc&q=pool", ["a/b/c"])
    'cannot handle /find?key=…&q=pool'
    """
    words = _spellings(secrets)
    for word in words:
        text = text.replace(word, "…")
    for word in words:  # only now: a whole one must not be taken for the beginning of another spelling
        for length in range(min(len(word) - 1, len(text)), CUT - 1, -1):
            beginning = word[:length]
            if beginning in text:
                for end in _ENDS:
                    text = text.replace(beginning + end, "…" + end)
                text = f"{text[:-length]}…" if text.endswith(beginning) else text
    return text


def one_line(text: str) -> str:
    """Return a text as one line without anything that a terminal obeys."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _spellings(secrets: Iterable[str]) -> list[str]:
    """Return the secrets as they are and as addresses, JSON, Python and HTML spell them, the longest first."""
    found: set[str] = set()
    for word in secrets:
        if len(word) >= SHORTEST:
            found |= {word, escape(word), repr(word)[1:-1], dumps(word)[1:-1], dumps(word, ensure_ascii=False)[1:-1]}
            found |= {quote(word, errors="replace"), quote(word, safe="", errors="replace"), quote_plus(word, errors="replace")}
    return sorted(found, key=lambda word: (-len(word), word))
