"""How much a word says in general, before any store is asked: common words say little, rare words much.

``common_words.txt`` holds 5,000 English words, the most frequent first. Their order is that of the vocabulary of BERT
(uncased, Apache-2.0), which was counted on Wikipedia and on books. ``trade_words.txt`` holds words that any prompt to a coding
agent may contain, and that therefore say less there than their rank in an encyclopedia suggests.
"""

from __future__ import annotations

import os
from math import log1p


def _words(name: str) -> tuple[str, ...]:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="ascii") as file:
        return tuple(file.read().split())


COMMON, TRADE = _words("common_words.txt"), _words("trade_words.txt")
TELLING = 0.5
"""The rarity from which a word says something about the topic."""
_TRADE_RANK = 1500
"""About the rank that everyday words of software would have if prompts had been counted."""
_FLAT = 100
"""Up to about this rank words carry grammar rather than a topic."""
_RANK = {word: rank for rank, word in enumerate(COMMON)}
_RANK.update((word, min(_RANK.get(word, _TRADE_RANK), _TRADE_RANK)) for word in TRADE)
_LAST = len(COMMON)
_FULL = log1p(_LAST / _FLAT)
_ENDINGS = (
    "ations", "ation", "ingly", "ments", "ating", "ators", "ates", "ated", "ator", "ment", "ings", "ions", "edly", "ing", "ion",
    "ers", "ies", "ate", "ed", "er", "es", "ly", "al", "s", "y", "e",
)  # fmt: skip
_BY_LAST = {last: tuple(ending for ending in _ENDINGS if ending[-1] == last) for last in {ending[-1] for ending in _ENDINGS}}
"""The endings by their last letter, because most words have none of them."""
_stems: dict[str, str] = {}


def rarity(word: str) -> float:
    """Return what a word says, from 0 ("the") to 1 (a name or a term outside the tables); its stem may be more common.

    >>> rarity("the") < rarity("file") < rarity("webhook") == 1.0
    True
    """
    return log1p(min(_RANK.get(word, _LAST), _RANK.get(stem(word), _LAST)) / _FLAT) / _FULL


def stem(word: str) -> str:
    """Return what the forms of a word have in common, roughly; faster than Porter's rules and good enough to compare words.

    >>> [stem(word) for word in ("migrations", "migrated", "stopping", "policies", "glass", "429s")]
    ['migr', 'migr', 'stop', 'polic', 'glass', '429']
    """
    known = _stems.get(word)
    if known is not None:
        return known
    short = word
    if len(word) > 3 and word.isalpha():
        for ending in _BY_LAST.get(word[-1], ()):
            if word.endswith(ending) and len(word) - len(ending) >= 3 and not (ending == "s" and word[-2] in "su"):
                short = word[: -len(ending)]
                if len(short) > 3 and short[-1] == short[-2] and short[-1] not in "lsz":
                    short = short[:-1]
                break
        if len(short) > 3 and short[-1] in "ey":
            short = short[:-1]
    elif word[-1:] == "s" and word[:-1].isdigit():
        short = word[:-1]
    _stems[word] = short
    return short
