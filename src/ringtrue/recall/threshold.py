"""Whether to speak (A-4): a memory is shown when its evidence stands out from what chance reaches in the same store.

Chance is asked, not assumed: hundreds of texts are drawn that nobody wrote (everyday words, words of the trade, names from
elsewhere and, one in ten, words of the store itself), and the best evidence each finds in the store makes the null
distribution. Its 99th percentile is the level. It is drawn again when the store changes and kept in between.

No store is too large for that: the texts are put to a sample of at most ``SAMPLE`` memories. The best of more memories is
higher, by the same step for every doubling where a tail falls exponentially, as this one does; the level is raised by that.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from math import exp, log

from .background import COMMON, TRADE
from .evidence import BEGINNING, EVERYDAY, PRIOR, SHORTEST_BEGINNING, UNSAID, Said, evidence, stem, weights, words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .index import Found, Index
    from .memory import Memory
    from .settings import Settings

DRAWS = 1000
"""Texts that make the null distribution."""
PERCENTILE = 0.99
SAMPLE = 256
CLOSE = 0.8
"""A further memory is shown when its evidence is at least this share of the best one's."""
CLEAR = 2.0
"""How many times the level makes a hit one of high confidence."""
LENGTHS = (3, 10)
OWN_WORDS, TRADE_WORDS, NAMES = 0.1, 0.2, 0.05
"""Shares of the words of a drawn text: the store's own, the trade's, and names from elsewhere, which no memory has. Real
questions have more of the last (22 to 37 in a hundred words), so chance is given rather too much than too little."""
SEED = 1
"""The same for every store: what differs between two levels is then the stores, and one memory more moves a level little."""
VERSION = "1"
"""Changes when the same store would get another level."""
FILE = "null.json"
_TAIL = 0.9
_FROM_RANK = 100


class Level:
    """What chance reaches in a store, and what its words say.

    ``shares`` counts, in a sample of ``size`` memories, those that have a stem, for the stems that are common there.
    """

    __slots__ = ("shares", "size", "value")

    def __init__(self, value: float, shares: Mapping[str, int], size: int) -> None:
        self.value, self.shares, self.size = value, shares, size


class Decision:
    """What is shown: the hits in their order, the evidence and the confidence of each, the level they had to pass, and why."""

    __slots__ = ("confidence", "evidence", "inject", "level", "reason")

    def __init__(
        self,
        *,
        reason: str,
        inject: Sequence[Found] = (),
        evidence: Sequence[float] = (),
        confidence: Sequence[str] = (),
        level: float | None = None,
    ) -> None:
        self.inject, self.evidence, self.confidence = list(inject), list(evidence), list(confidence)
        self.level, self.reason = level, reason


def decide(
    index: Index, found: Sequence[Found], text: str, settings: Settings, *, level: Level | None = None, root: str = ""
) -> Decision:
    """Return which of the memories found for a text are shown unasked, if any.

    With ``threshold: fixed`` the scores decide as they did before there was a level. ``level`` is that of the store where the
    caller has it already; else it is looked up, or drawn and kept, under ``root``.
    """
    most = settings.auto_inject.max_results
    if not found or most < 1:
        return Decision(reason="nothing was found" if most else "nothing may be shown")
    if level is None:
        level = null_level(index, settings, root=root)
    words = words_of(text, settings.query_max_tokens)
    weighed = weights(words, level.shares, level.size)
    told = [evidence(words, weighed, Said(hit.memory, settings.body_max_chars)) for hit in found]
    if settings.threshold == "fixed":
        chosen = _by_score(found, settings)
    else:
        floor = max(level.value, CLOSE * max(told))
        best = sorted(
            (place for place, value in enumerate(told) if value > level.value and value >= floor), key=lambda p: -told[p]
        )
        chosen = sorted(best[:most])
    if not chosen:
        return Decision(reason="nothing stands out", level=level.value)
    return Decision(
        reason="stands out" if settings.threshold != "fixed" else "scores enough",
        inject=[found[place] for place in chosen],
        evidence=[told[place] for place in chosen],
        confidence=[_confidence(told[place], level.value) for place in chosen],
        level=level.value,
    )


def _by_score(found: Sequence[Found], settings: Settings) -> list[int]:
    rule = settings.auto_inject
    best = found[0].score
    if best < rule.min_score_abs:
        return []
    return [place for place, hit in enumerate(found) if hit.score >= rule.relative_cutoff * best][: rule.max_results]


def _confidence(value: float, level: float) -> str:
    """Being the only hit, or the best of weak ones, says nothing (trap 28); only the distance from chance does."""
    if value <= level:
        return "low"
    return "high" if value >= CLEAR * level else "medium"


def null_level(index: Index, settings: Settings, *, root: str = "") -> Level:
    """Return the level of a store: the one kept under ``root`` when it is of this very store, else a new one, which is kept.

    It depends on nothing but the memories and the settings. A place that cannot be written to costs time, never an answer.
    """
    key = f"{VERSION} {settings.body_max_chars} {index.stamp}"
    path = os.path.join(root, ".ringtrue", FILE) if root and index.stamp else ""
    if path:
        kept = _read(path, key)
        if kept is not None:
            return kept
    total = len(index)
    sample = _sample_files(root, settings) if root and total > SAMPLE else _sample(index.memories)
    level = draw_level(sample, settings.body_max_chars, total=total)
    if path:
        _keep(path, key, level)
    return level


def draw_level(sample: Sequence[Memory], body_max_chars: int, *, total: int) -> Level:
    """Return the level of a store of ``total`` memories from a sample of them, drawn anew; it is always the same."""
    said = [Said(memory, body_max_chars) for memory in sample]
    table = _Table(said)
    own = [short for one in said for short in one.places]
    dice = _Dice(SEED)
    best = sorted(table.best(_text(dice, own)) for _ in range(DRAWS))
    value = _percentile(best, larger=max(1.0, total / max(1, len(sample))))
    return Level(value, table.common(), len(sample))


def _sample(memories: Sequence[Memory]) -> list[Memory]:
    """Choose by a checksum of the id, so that one memory more changes at most one of the sample."""
    return sorted(memories, key=lambda memory: (_checksum(memory.id), memory.id))[:SAMPLE]


def _sample_files(root: str, settings: Settings) -> list[Memory]:
    """Choose the same from the names of the files, which are called like their memories, without reading all of them."""
    from .files import read, scan

    names: dict[str, str] = {}
    for name in sorted(scan(root, settings).stamps):
        names.setdefault(os.path.splitext(os.path.basename(name))[0], name)
    sample: list[Memory] = []
    for id_ in sorted(names, key=lambda id_: (_checksum(id_), id_)):
        sample += [memory for memory in read(root, (names[id_],), []) if memory.status == "active"]
        if len(sample) == SAMPLE:
            break
    return sample


def _text(dice: _Dice, own: Sequence[str]) -> list[str]:
    """Draw a text: its words, each once. Everyday words are drawn as texts use them, the commoner the more often."""
    words: dict[str, None] = {}
    for _ in range(LENGTHS[0] + dice.below(LENGTHS[1] - LENGTHS[0] + 1)):
        kind = dice.share()
        if kind < OWN_WORDS and own:
            word = own[dice.below(len(own))]
        elif kind < OWN_WORDS + TRADE_WORDS:
            word = TRADE[dice.below(len(TRADE))]
        elif kind < OWN_WORDS + TRADE_WORDS + NAMES:
            word = f"\0{len(words)}"  # no text can hold it
        else:
            word = COMMON[int(_FROM_RANK * exp(dice.share() * log(len(COMMON) / _FROM_RANK)))]
        words[word] = None
    return list(words)


class _Table:
    """The sample turned round: from a word to the memories that have it, so that a text is put to all of them at once."""

    __slots__ = ("_counts", "_known", "_postings", "_size", "_stems")

    def __init__(self, said: Sequence[Said]) -> None:
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for place, one in enumerate(said):
            for short, value in one.places.items():
                self._postings.setdefault(short, []).append((place, value))
        self._size = len(said)
        self._counts = {short: len(places) for short, places in self._postings.items()}
        self._stems = sorted(self._postings)
        self._known: dict[str, tuple[float, dict[int, float]]] = {}

    def common(self) -> dict[str, int]:
        """Return the stems that say less here than in general, with the number of memories that have them."""
        return {short: count for short, count in self._counts.items() if (count + 0.5) / (self._size + PRIOR) > exp(-EVERYDAY)}

    def best(self, words: Sequence[str]) -> float:
        """Return the best evidence of a text in the sample: the highest that ``evidence`` gives for any memory."""
        total = UNSAID
        shared: dict[int, float] = {}
        for word in words:
            known = self._known.get(word)
            if known is None:
                known = self._known[word] = self._look_up(word)
            total += known[0]
            for place, value in known[1].items():
                shared[place] = shared.get(place, 0.0) + value
        most = max(shared.values(), default=0.0)
        return most * most / total

    def _look_up(self, word: str) -> tuple[float, dict[int, float]]:
        """Return the weight of a word and what it adds to each memory that has it."""
        (weight,) = weights((word,), self._counts, self._size)
        places: dict[int, float] = {}
        if len(word) >= SHORTEST_BEGINNING:
            start = bisect_left(self._stems, word)
            while start < len(self._stems) and self._stems[start].startswith(word):
                for place, value in self._postings[self._stems[start]]:
                    places[place] = max(places.get(place, 0.0), BEGINNING * value)
                start += 1
        places.update(self._postings.get(stem(word), ()))
        return weight, {place: weight * value for place, value in places.items()}


def _percentile(best: list[float], *, larger: float) -> float:
    """Return the percentile of the best evidence in a store ``larger`` times the sample.

    Ten draws lie above the 99th of 1000, too few to tell it from. The tail beyond the 90th falls exponentially, so its mean
    excess gives every higher percentile, with the error of a hundred draws.
    """
    start = int(_TAIL * len(best))
    base = best[start]
    step = sum(value - base for value in best[start:]) / (len(best) - start)
    return base + step * log(larger * (1 - _TAIL) / (1 - PERCENTILE))


class _Dice:
    """Repeatable draws (Knuth's MMIX generator); importing ``random`` would cost a hook more than the draws."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed

    def share(self) -> float:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self._state >> 11) / (1 << 53)

    def below(self, limit: int) -> int:
        return int(self.share() * limit)


def _checksum(text: str) -> int:
    from zlib import crc32

    return crc32(text.encode("utf-8", "replace"))


def _read(path: str, key: str) -> Level | None:
    import json

    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["key"] != key:
            return None
        return Level(float(kept["level"]), dict(kept["shares"]), int(kept["size"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: str, key: str, level: Level) -> None:
    import json

    from .files import own_folder

    aside = f"{path}.{os.getpid()}.tmp"
    try:
        own_folder(os.path.dirname(os.path.dirname(path)))
        with open(aside, "w", encoding="utf-8") as file:
            json.dump({"key": key, "level": level.value, "size": level.size, "shares": level.shares}, file)
        os.replace(aside, path)
    except OSError:
        pass
