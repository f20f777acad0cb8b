"""How much a memory says of what a text says: a number that does not depend on how many memories there are (A-4).

BM25 cannot decide whether to speak: its scores grow with the store, and with one or two memories they vanish (trap 25). So the
index orders, and this decides. Every word of the text weighs what it says (``background``), less where much of the store says
it too. A memory's evidence is the weight of the words it shares, squared, over the weight of all: sharing two words of three is
worth more than two of ten, and one shared word is little however rare it is.
"""

from __future__ import annotations

import re
from math import log

from .background import rarity
from .words import query_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .memory import Memory

HEAD, BODY = 1.0, 0.6
"""What a shared word counts in title, tags and trigger phrases, and in the body, where any word may stand."""
BEGINNING = 0.7
"""What is left of it where the text has only the beginning of the memory's word: ``auth``."""
UNSAID = 1.0
"""One telling word that every text is taken to have beside its own, so that a text of one word proves little."""
PRIOR = 20
"""Memories that are taken to be in the store beside its own and to share nothing with anything."""
EVERYDAY = 3.0
"""A word in fewer than e**-3 (5 %) of the memories keeps its full weight."""
SHORTEST_BEGINNING = 4
_PART = re.compile(r"[^\W_]+")
_ENDINGS = (
    "ations", "ation", "ingly", "ments", "ating", "ators", "ates", "ated", "ator", "ment", "ings", "ions", "edly", "ing", "ion",
    "ers", "ies", "ate", "ed", "er", "es", "ly", "al", "s", "y", "e",
)  # fmt: skip
_stems: dict[str, str] = {}


def stem(word: str) -> str:
    """Return what the forms of a word have in common, roughly; quicker than Porter's rules and enough to compare words.

    >>> [stem(word) for word in ("migrations", "migrated", "stopping", "policies", "glass", "429")]
    ['migr', 'migr', 'stop', 'polic', 'glass', '429']
    """
    known = _stems.get(word)
    if known is not None:
        return known
    short = word
    if len(word) > 3 and word.isalpha():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3 and not (ending == "s" and word[-2] in "su"):
                short = word[: -len(ending)]
                if len(short) > 3 and short[-1] == short[-2] and short[-1] not in "lsz":
                    short = short[:-1]
                break
        if len(short) > 3 and short[-1] in "ey":
            short = short[:-1]
    _stems[word] = short
    return short


class Said:
    """The words of one memory: what each counts by the place it stands in."""

    __slots__ = ("joined", "places")

    def __init__(self, memory: Memory, body_max_chars: int) -> None:
        places: dict[str, float] = {}
        for word in dict.fromkeys(_PART.findall(memory.body[:body_max_chars].lower())):  # a set would change the draws
            places[stem(word)] = BODY
        for word in _PART.findall(" ".join((memory.title, *memory.tags, *memory.trigger_phrases)).lower()):
            places[stem(word)] = HEAD
        self.places = places
        self.joined = " " + " ".join(places)

    def counts(self, word: str) -> float:
        """Return what a word of a text counts in this memory: 0 where the memory does not have it."""
        place = self.places.get(stem(word), 0.0)
        if not place and len(word) >= SHORTEST_BEGINNING and " " + word in self.joined:
            place = BEGINNING * max(value for own, value in self.places.items() if own.startswith(word))
        return place


def words_of(text: str, limit: int) -> list[str]:
    """Return the words of a text that are compared: those that are searched for, compounds taken apart, each once."""
    parts = [part for word in query_words(text, limit) for part in _PART.findall(word)]
    return list(dict.fromkeys(part for part in parts if len(part) > 1))


def weights(words: Sequence[str], shares: Mapping[str, int], size: int) -> list[float]:
    """Return what each word says in a store of ``size`` memories, ``shares`` of which have a stem."""
    result = []
    for word in words:
        short = stem(word)
        share = (shares.get(short, 0) + 0.5) / (size + PRIOR)
        result.append(rarity(word, short) * min(1.0, -log(share) / EVERYDAY))
    return result


def evidence(words: Sequence[str], weighed: Sequence[float], said: Said) -> float:
    """Return how much a memory says of what the words say: 0 for nothing, about the number of telling words for all of it."""
    shared = sum(weight * said.counts(word) for word, weight in zip(words, weighed, strict=True))
    return shared * shared / (sum(weighed) + UNSAID)
