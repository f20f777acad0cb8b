"""How much a memory says about what a text says: a number that does not depend on how many memories there are.

BM25 cannot decide whether to show a memory: its scores grow with the store, and with one or two memories they vanish. So the
index orders, and this decides. Every word of the text weighs what it says (``rarity``), less if much of the store says it too.
A memory's evidence is the weight of the words it shares, squared, over the weight of all: sharing two words of three is
worth more than two of ten, and one shared word is little however rare it is.
"""

from __future__ import annotations

import re
from math import log

from .rarity import TELLING, rarity, stem
from .words import cut, joined, words_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .memory import Memory

HEAD, BODY = 1.0, 0.6
"""What a shared word counts in title, tags and trigger phrases, and in the body, which may contain any word."""
BEGINNING = 0.7
"""The share that is left if the text has only the beginning of the memory's word: ``auth``."""
UNSAID = 1.0
"""One telling word that every text is assumed to have beside its own, so that a text of one word proves little."""
PRIOR = 20
"""Memories that the store is assumed to have beside its own and that share nothing with any text."""
EVERYDAY = 3.0
"""A word in fewer than e**-3 (5 %) of the memories keeps its full weight."""
SHORTEST_BEGINNING = 4
_PART = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[\r\n]+|(?<=[.!?])\s+")
_NUMBER = re.compile(r"\d+s?")
_LETTERED = re.compile(r"[^\W\d_]-[^\W\d_]{2,}")


class MemoryWords:
    """The words of one memory: what each counts by the place it stands in."""

    __slots__ = ("joined", "places")

    def __init__(self, memory: Memory, body_max_chars: int) -> None:
        body = memory.body[:body_max_chars].lower()
        head = " ".join((memory.title, *memory.tags, *memory.trigger_phrases)).lower()
        # A dict, since a set would change the draws.
        places = {stem(word): BODY for word in dict.fromkeys((*_PART.findall(body), *joined(body)))}
        for word in (*_PART.findall(head), *joined(head)):
            places[stem(word)] = HEAD
        self.places = places
        self.joined = " " + " ".join(places)

    def counts(self, word: str) -> float:
        """Return what a word of a text counts in this memory; 0 if the memory does not have it."""
        place = self.places.get(stem(word), 0.0)
        if not place and len(word) >= SHORTEST_BEGINNING and " " + word in self.joined:
            place = BEGINNING * max(value for own, value in self.places.items() if own.startswith(word))
        return place


def words_of(text: str, limit: int) -> list[str]:
    """Return the words of a text that are compared: the first ``limit``, compounds taken apart, each once."""
    return _apart(words_in(cut(text))[:limit])


def ends_of(text: str, limit: int) -> list[list[str]]:
    """Return the words of a text that are compared: those of its beginning and, if it has more than ``limit``, of its end.

    They are compared separately: a question says the same whether a file was pasted before it or after it, and among the words
    of the file it would be lost. So would a short question among the fifteen nearest words; therefore the first and the last
    sentence or line are compared alone as well.
    """
    text = cut(text)
    words = words_in(text)
    if len(words) <= limit:
        return [_apart(words)]
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    alone = [words_in(sentences[0])[:limit], words_in(sentences[-1])[-limit:]]
    return [_apart(some) for some in (words[:limit], words[-limit:], *alone)]


def _apart(words: Sequence[str]) -> list[str]:
    # A letter alone says nothing, "e-mail" does.
    parts = [part for word in words for part in (joined(word) if _LETTERED.fullmatch(word) else _PART.findall(word))]
    return list(dict.fromkeys(part for part in parts if len(part) > 1))


def beyond_numbers(words: Sequence[str], memory: MemoryWords) -> bool:
    """Return whether a memory has a word that is not a number: the 100 of a sum says nothing about a limit of 100."""
    return any(not _NUMBER.fullmatch(word) and memory.counts(word) for word in words)


def telling(text: str, limit: int) -> list[str]:
    """Return the words of a text that say something about its topic."""
    return [word for word in words_of(text, limit) if rarity(word) >= TELLING]


def weights(words: Sequence[str], shares: Mapping[str, int], size: int) -> list[float]:
    """Return what each word says in a store of ``size`` memories, ``shares`` of which have a stem."""
    return [rarity(word) * in_store(shares.get(stem(word), 0), size) for word in words]


def in_store(count: int, size: int) -> float:
    """Return the share of its weight that a word keeps if ``count`` of ``size`` memories have it: 1 if they are few."""
    return min(1.0, -log((count + 0.5) / (size + PRIOR)) / EVERYDAY)


def evidence(words: Sequence[str], weighed: Sequence[float], memory: MemoryWords) -> float:
    """Return how much a memory says about what the words say: 0 for nothing, near the number of telling words for all."""
    shared = sum(weight * memory.counts(word) for word, weight in zip(words, weighed, strict=True))
    return shared * shared / (sum(weighed) + UNSAID)
