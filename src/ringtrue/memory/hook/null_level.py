"""What chance reaches in a store: the level that the evidence of a memory must pass to be shown unasked.

Chance is measured, not assumed: a thousand texts are drawn that nobody wrote (everyday words, words of the trade, names from
elsewhere and, one in ten, words of the store itself), and the best evidence each finds in the store makes the null
distribution. Its 99th percentile is the level. It is drawn again when the store changes and kept in between.

The size of a store does not matter: the texts are compared with a sample of at most ``SAMPLE`` memories. The best of more
memories is higher, by the same step for every doubling if a tail falls exponentially, as this one does; the level is raised by
that.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from math import exp, log

from .evidence import BEGINNING, EVERYDAY, PRIOR, SHORTEST_BEGINNING, UNSAID, MemoryWords, in_store
from .rarity import COMMON, TRADE, rarity, stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from .files import Listing
    from .index import Index
    from .memory import Memory
    from .settings import Settings

DRAWS = 1000
"""Texts that make the null distribution."""
PERCENTILE = 0.99
SAMPLE = 256
LENGTHS = (3, 10)
OWN_WORDS, TRADE_WORDS, NAMES = 0.1, 0.2, 0.05
"""Shares of the words of a drawn text: the store's own, the trade's, and names from elsewhere, which no memory has. Real
questions have more of the last (22 to 37 in a hundred words), so chance gets rather too much than too little."""
SEED = 1
"""The same for every store, so that only the stores make levels differ, and one more memory moves a level little."""
VERSION = "2"
"""Changes when the same store would get another level."""
FILE = "null.json"
LARGEST = 10_000_000
"""Size in bytes from which a file was not written here."""
_TAIL = 0.9
_FROM_RANK = 100
_RANKS = log(len(COMMON) / _FROM_RANK)


class Level:
    """What chance reaches in a store of ``total`` memories, from a sample of ``size`` of them.

    ``base`` is where the tail of the best evidence begins, ``step`` its mean excess; ``shares`` counts the memories of the
    sample that have a stem, for the stems that are common there.
    """

    __slots__ = ("base", "shares", "size", "step", "total")

    def __init__(self, base: float, step: float, shares: Mapping[str, int], size: int, total: int) -> None:
        self.base, self.step, self.shares, self.size, self.total = base, step, shares, size, total

    @property
    def value(self) -> float:
        """The level itself.

        Ten draws lie above the 99th percentile of 1000, too few to estimate it from. The tail beyond the 90th falls
        exponentially, so its mean excess gives every higher percentile, with the error of a hundred draws.
        """
        larger = max(1.0, self.total / max(1, self.size))
        return self.base + self.step * log(larger * (1 - _TAIL) / (1 - PERCENTILE))


def null_level(index: Index, settings: Settings, *, root: str = "") -> Level:
    """Return the level of a store: the one kept under ``root`` if it is of this very store, else a new one, which is kept.

    It depends on nothing but the memories and the settings. If no file of the sample has changed, the draws are used again, and
    only the number of memories is counted anew. A place that cannot be written to costs time, never an answer.
    """
    key = f"{VERSION} {settings.body_max_chars} {index.stamp}"
    listing = index.listing
    if not root or not index.stamp or listing is None:
        sample = sorted(index.memories, key=lambda memory: (_checksum(memory.id), memory.id))[:SAMPLE]
        return draw_level(sample, settings.body_max_chars, total=len(index))
    path = os.path.join(root, ".ringtrue", FILE)
    kept = _read(path)
    if kept and kept["key"] == key:
        return _level(kept)
    names = _in_order(listing)
    files = kept["files"] if kept else 0
    if kept and kept.get("sample") == _stamp(names[:files], settings) and (kept["size"] == SAMPLE or files == len(names)):
        level = _level({**kept, "total": len(index)})
    else:
        files, memories = _sample_files(root, [name for name, _ in names])
        level = draw_level(memories, settings.body_max_chars, total=len(index))
    facts = {name: getattr(level, name) for name in Level.__slots__}
    _write(path, {"key": key, "sample": _stamp(names[:files], settings), "files": files, **facts})
    return level


def draw_level(sample: Sequence[Memory], body_max_chars: int, *, total: int) -> Level:
    """Return the level of a store of ``total`` memories from a sample of them, drawn anew; the result is always the same."""
    table = EvidenceTable([MemoryWords(memory, body_max_chars) for memory in sample])
    dice = random_shares(SEED)
    best = sorted(table.best(drawn_text(dice, table.own_words)) for _ in range(DRAWS))
    start = int(_TAIL * len(best))
    base = best[start]
    step = sum(value - base for value in best[start:]) / (len(best) - start)
    return Level(base, step, table.common(), len(sample), total)


def _in_order(listing: Listing) -> list[tuple[str, str]]:
    """Return each file with its state, ordered by a checksum of its name, so that one more memory changes one of a sample."""
    chosen: dict[str, tuple[str, str]] = {}
    for name, stamp in sorted(listing.stamps.items()):
        chosen.setdefault(os.path.splitext(os.path.basename(name))[0], (name, stamp))
    return [chosen[id_] for id_ in sorted(chosen, key=lambda id_: (_checksum(id_), id_))]


def _sample_files(root: str, names: Sequence[str]) -> tuple[int, list[Memory]]:
    """Return how many of the files had to be read, and the active memories in them, as many as a sample has."""
    from .files import read

    sample: list[Memory] = []
    for place, name in enumerate(names):
        if len(sample) == SAMPLE:
            return place, sample
        sample += [memory for memory in read(root, (name,), []) if memory.status == "active"]
    return len(names), sample


def _stamp(files: Sequence[tuple[str, str]], settings: Settings) -> str:
    text = "\0".join(part for file in files for part in file)
    return f"{VERSION} {settings.body_max_chars} {len(files)}-{_checksum(text):08x}"


def _checksum(text: str) -> int:
    from zlib import crc32

    return crc32(text.encode("utf-8", "replace"))


def drawn_text(dice: Iterator[float], own: Sequence[str]) -> list[str]:
    """Return a drawn text: its words, each once. Everyday words are drawn as texts use them, the common ones more often."""
    words: dict[str, None] = {}
    for _ in range(LENGTHS[0] + int(next(dice) * (LENGTHS[1] - LENGTHS[0] + 1))):
        kind = next(dice)
        if kind < OWN_WORDS and own:
            word = own[int(next(dice) * len(own))]
        elif kind < OWN_WORDS + TRADE_WORDS:
            word = TRADE[int(next(dice) * len(TRADE))]
        elif kind < OWN_WORDS + TRADE_WORDS + NAMES:
            word = f"\0{len(words)}"  # no text can contain it
        else:
            word = COMMON[int(_FROM_RANK * exp(next(dice) * _RANKS))]
        words[word] = None
    return list(words)


def random_shares(state: int) -> Iterator[float]:
    """Yield repeatable numbers from 0 to 1 (Knuth's MMIX generator); importing ``random`` would cost more than the draws."""
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        yield (state >> 11) / (1 << 53)


class EvidenceTable:
    """From a word to the memories of the sample that have it, so that a text is compared with all of them at once."""

    __slots__ = ("_known", "_postings", "_size", "_stems", "own_words")

    def __init__(self, sample: Sequence[MemoryWords]) -> None:
        self._postings: dict[str, dict[int, float]] = {}
        for place, memory in enumerate(sample):
            for short, value in memory.places.items():
                self._postings.setdefault(short, {})[place] = value
        self.own_words = [short for memory in sample for short in memory.places]
        self._size = len(sample)
        self._stems = sorted(self._postings)
        self._known: dict[str, tuple[float, dict[int, float]]] = {}

    def common(self) -> dict[str, int]:
        """Return the stems that say less here than in general, with the number of memories that have them."""
        counts = {short: len(places) for short, places in self._postings.items()}
        return {short: count for short, count in counts.items() if (count + 0.5) / (self._size + PRIOR) > exp(-EVERYDAY)}

    def best(self, words: Sequence[str]) -> float:
        """Return the best evidence of a text in the sample: the highest that ``evidence`` gives for any memory."""
        shared, total = self._shared(words)
        return max(shared.values(), default=0.0) ** 2 / total

    def evidences(self, words: Sequence[str]) -> dict[int, float]:
        """Return what ``evidence`` gives for each memory of the sample that shares a word, by its place in the sample."""
        shared, total = self._shared(words)
        return {place: value * value / total for place, value in shared.items()}

    def _shared(self, words: Sequence[str]) -> tuple[dict[int, float], float]:
        """Return the weight of the words that each memory shares, and the weight of all."""
        total = UNSAID
        shared: dict[int, float] = {}
        for word in words:
            weight, places = self._known.get(word) or self._look_up(word)
            total += weight
            if not shared:
                shared = places.copy()
            else:
                for place, value in places.items():
                    shared[place] = shared.get(place, 0.0) + value
        return shared, total

    def _look_up(self, word: str) -> tuple[float, dict[int, float]]:
        """Return the weight of a word, and what it adds to each memory that has it."""
        own = self._postings.get(stem(word), {})
        weight = rarity(word) * in_store(len(own), self._size)
        places: dict[int, float] = {}
        if len(word) >= SHORTEST_BEGINNING:
            stems, start = self._stems, bisect_left(self._stems, word)
            while start < len(stems) and stems[start].startswith(word):
                for place, value in self._postings[stems[start]].items():
                    places[place] = max(places.get(place, 0.0), BEGINNING * value)
                start += 1
        places.update(own)
        found = self._known[word] = weight, {place: weight * value for place, value in places.items()}
        return found


def _level(facts: Mapping[str, Any]) -> Level:
    return Level(**{name: facts[name] for name in Level.__slots__})


def _read(path: str) -> dict[str, Any]:
    """Return what is kept of a level; empty if there is nothing, or nothing that was written here."""
    import json

    from .guard import read_plain

    try:
        kept = json.loads(read_plain(path, LARGEST))
        shares = list(kept["shares"].values())
        counts = all(type(count) is int and count >= 0 for count in (kept["files"], kept["total"], kept["size"], *shares))
        tail = all(type(kept[name]) is float and 0 <= kept[name] < 1e6 for name in ("base", "step"))
        return kept if counts and tail and max((kept["size"], *shares)) <= SAMPLE and "key" in kept else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _write(path: str, facts: Mapping[str, Any]) -> None:
    import json

    from .files import own_folder

    aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        own_folder(os.path.dirname(os.path.dirname(path)))
        with open(aside, "x", encoding="utf-8") as file:
            json.dump(facts, file)
        os.replace(aside, path)
    except OSError:
        pass
