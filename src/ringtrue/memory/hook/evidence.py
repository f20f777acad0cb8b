"""How much a memory says of what a text says: a number that does not depend on how many memories there are (A-4).

BM25 cannot decide whether to speak: its scores grow with the store, and with one or two memories they vanish (trap 25). So the
index orders, and this decides. Every word of the text weighs what it says (``background``), less where much of the store says
it too. A memory's evidence is the weight of the words it shares, squared, over the weight of all: sharing two words of three is
worth more than two of ten, and one shared word is little however rare it is.
"""

from __future__ import annotations

import re
from math import log

from .background import TELLING, rarity
from .words import cut, joined, words_in

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
_SENTENCE_END = re.compile(r"[\r\n]+|(?<=[.!?])\s+")
_NUMBER = re.compile(r"\d+s?")
_LETTERED = re.compile(r"[^\W\d_]-[^\W\d_]{2,}")
_ENDINGS = (
    "ations", "ation", "ingly", "ments", "ating", "ators", "ates", "ated", "ator", "ment", "ings", "ions", "edly", "ing", "ion",
    "ers", "ies", "ate", "ed", "er", "es", "ly", "al", "s", "y", "e",
)  # fmt: skip
_BY_LAST = {last: tuple(ending for ending in _ENDINGS if ending[-1] == last) for last in {ending[-1] for ending in _ENDINGS}}
"""The endings by their last letter: most words have none of them, and that is to be told quickly."""
_stems: dict[str, str] = {}


def stem(word: str) -> str:
    """Return what the forms of a word have in common, roughly; quicker than Porter's rules and enough to compare words.

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


class Said:
    """The words of one memory: what each counts by the place it stands in."""

    __slots__ = ("joined", "places")

    def __init__(self, memory: Memory, body_max_chars: int) -> None:
        body = memory.body[:body_max_chars].lower()
        head = " ".join((memory.title, *memory.tags, *memory.trigger_phrases)).lower()
        known = _stems.get
        # A dict, since a set would change the draws.
        places = {known(word) or stem(word): BODY for word in dict.fromkeys((*_PART.findall(body), *joined(body)))}
        for word in (*_PART.findall(head), *joined(head)):
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
    """Return the words of a text that are compared: the first ``limit``, compounds taken apart, each once."""
    return _apart(words_in(cut(text))[:limit])


def ends_of(text: str, limit: int) -> list[list[str]]:
    """Return the words of a text that are compared: those of its beginning and, where it has more than ``limit``, of its end.

    They are compared apart: a question says the same whether a file was pasted before it or after it, and among the words of
    the file it would be lost. So would a short one among the fifteen nearest words: the first and the last sentence or line
    are compared alone as well.
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


def beyond_numbers(words: Sequence[str], said: Said) -> bool:
    """True where a memory has one of the words that is not a number: the 100 of a sum says nothing of a limit of 100."""
    return any(not _NUMBER.fullmatch(word) and said.counts(word) for word in words)


def telling(text: str, limit: int) -> list[str]:
    """Return the words of a text that tell something of its topic."""
    return [word for word in words_of(text, limit) if rarity(word, stem(word)) >= TELLING]


def weights(words: Sequence[str], shares: Mapping[str, int], size: int) -> list[float]:
    """Return what each word says in a store of ``size`` memories, ``shares`` of which have a stem."""
    result = []
    for word in words:
        short = stem(word)
        result.append(rarity(word, short) * in_store(shares.get(short, 0), size))
    return result


def in_store(count: int, size: int) -> float:
    """Return what is left of the weight of a word that ``count`` of ``size`` memories have: all of it where they are few."""
    return min(1.0, -log((count + 0.5) / (size + PRIOR)) / EVERYDAY)


def evidence(words: Sequence[str], weighed: Sequence[float], said: Said) -> float:
    """Return how much a memory says of what the words say: 0 for nothing, about the number of telling words for all of it."""
    shared = sum(weight * said.counts(word) for word, weight in zip(words, weighed, strict=True))
    return shared * shared / (sum(weighed) + UNSAID)
