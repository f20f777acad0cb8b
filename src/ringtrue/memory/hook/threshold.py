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

from .background import COMMON, TRADE, rarity
from .evidence import (
    BEGINNING,
    EVERYDAY,
    PRIOR,
    SHORTEST_BEGINNING,
    UNSAID,
    Said,
    beyond_numbers,
    ends_of,
    evidence,
    in_store,
    stem,
    telling,
    weights,
)
from .phrases import called, spoken
from .words import goes_on, refers_back, takes_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .files import Listing
    from .index import Found, Index
    from .memory import Memory
    from .settings import Settings

    _Word = tuple[float, float, dict[int, float]]

DRAWS = 1000
"""Texts that make the null distribution."""
PERCENTILE = 0.99
SAMPLE = 256
CLOSE = 0.8
"""A further memory is shown when its evidence is at least this share of the best one's."""
CLEAR = 2.0
"""How many times the level makes a hit one of high confidence."""
OWN_SHARE = 0.5
"""The share of what a prompt itself tells that a memory must have before earlier turns count for it: "write one about spring"
may share "write" with a memory about the turn before, and is not about that."""
LENGTHS = (3, 10)
OWN_WORDS, TRADE_WORDS, NAMES = 0.1, 0.2, 0.05
"""Shares of the words of a drawn text: the store's own, the trade's, and names from elsewhere, which no memory has. Real
questions have more of the last (22 to 37 in a hundred words), so chance is given rather too much than too little."""
SEED = 1
"""The same for every store: what differs between two levels is then the stores, and one memory more moves a level little."""
VERSION = "2"
"""Changes when the same store would get another level."""
FILE = "null.json"
LARGEST = 10_000_000
"""Bytes beyond which it was not written here."""
_TAIL = 0.9
_FROM_RANK = 100
_UNIT = 1 / (1 << 53)
_RANKS = log(len(COMMON) / _FROM_RANK)


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
    index: Index,
    found: Sequence[Found],
    text: str,
    settings: Settings,
    *,
    level: Level | None = None,
    root: str = "",
    prompt: str | None = None,
    shown: Collection[str] = (),
    spoke: str | None = None,
) -> Decision:
    """Return which of the memories found for a text are shown unasked, if any.

    ``prompt`` is the part of the text that was said just now, where earlier turns were added to it. These help a memory only
    where the prompt asks about them or goes on with them, or shares what it tells with the memory; what they bring up is never
    of high confidence, and not one of ``shown``, the ids that the session has seen. A memory that the prompt calls by a trigger
    phrase is shown; ``spoke`` is its ``spoken`` words where the caller has more of it than ``text``.

    With ``threshold: fixed`` the scores decide as they did before there was a level. ``level`` is that of the store where the
    caller has it already; else it is looked up, or drawn and kept, under ``root``.
    """
    most = settings.auto_inject.max_results
    if not found or most < 1:
        return Decision(reason="nothing was found" if most else "nothing may be shown")
    if level is None:
        level = null_level(index, settings, root=root)
    said = [Said(hit.memory, settings.body_max_chars) for hit in found]
    alone = _told(text if prompt is None else prompt, said, level, settings)
    turned = [0.0] * len(found) if prompt in (None, text) else _with_turns(text, prompt or "", said, level, settings)
    top = max(*alone, *turned)
    told = [max(own, 0.0 if hit.memory.id in shown else more) for hit, own, more in zip(found, alone, turned, strict=True)]
    if spoke is None:
        spoke = spoken(text if prompt is None else prompt)
    calls = [bool(called(hit.memory, spoke)) for hit in found]
    if settings.threshold == "fixed":
        passing = _by_score(found, settings)
    else:
        floor = max(level.value, CLOSE * top)
        passing = [place for place, value in enumerate(told) if value > level.value and value >= floor]
    standing = {*passing, *(place for place, calling in enumerate(calls) if calling)}
    chosen = sorted(sorted(standing, key=lambda place: (not calls[place], -told[place]))[:most])
    if not chosen:
        before = any(more > level.value and hit.memory.id in shown for hit, more in zip(found, turned, strict=True))
        return Decision(reason="this session has seen it" if before else "nothing stands out", level=level.value)
    if any(calls[place] for place in chosen):
        reason = "a trigger phrase calls"
    else:
        reason = "stands out" if settings.threshold != "fixed" else "scores enough"
    return Decision(
        reason=reason,
        inject=[found[place] for place in chosen],
        evidence=[told[place] for place in chosen],
        confidence=["high" if calls[place] else _confidence(alone[place], told[place], level.value) for place in chosen],
        level=level.value,
    )


def told_by(text: str, memory: Memory, level: Level, settings: Settings) -> float:
    """Return the evidence of one memory for a text, as ``decide`` compares it with the level."""
    return _told(text, [Said(memory, settings.body_max_chars)], level, settings)[0]


def _told(text: str, said: Sequence[Said], level: Level, settings: Settings) -> list[float]:
    """Return the evidence of each memory for a text, the best of its ends where it is long."""
    best = [0.0] * len(said)
    for words in ends_of(text, settings.query_max_tokens):
        weighed = weights(words, level.shares, level.size)
        best = [
            max(value, evidence(words, weighed, one)) if beyond_numbers(words, one) else value
            for value, one in zip(best, said, strict=True)
        ]
    return best


def _with_turns(text: str, prompt: str, said: Sequence[Said], level: Level, settings: Settings) -> list[float]:
    """Return the evidence of each memory for a prompt with earlier turns: 0 where the prompt is about something else."""
    own = telling(prompt, settings.query_max_tokens)
    if goes_on(prompt) or (refers_back(prompt) and takes_up(prompt)):
        own = []
    elif (not own or refers_back(prompt)) and not takes_up(prompt):
        # Thanks, or a task with an object of its own: "run the tests again".
        return [0.0] * len(said)
    weighed = weights(own, level.shares, level.size)
    told = []
    for value, one in zip(_told(text, said, level, settings), said, strict=True):
        shared = sum(weight * one.counts(word) for word, weight in zip(own, weighed, strict=True))
        told.append(value if shared >= OWN_SHARE * sum(weighed) else 0.0)
    return told


def _by_score(found: Sequence[Found], settings: Settings) -> list[int]:
    rule = settings.auto_inject
    best = found[0].score
    if best < rule.min_score_abs:
        return []
    return [place for place, hit in enumerate(found) if hit.score >= rule.relative_cutoff * best][: rule.max_results]


def _confidence(alone: float, told: float, level: float) -> str:
    """Being the only hit, or the best of weak ones, says nothing (trap 28); only the prompt's own distance from chance does."""
    if told <= level:
        return "low"
    return "high" if alone >= CLEAR * level else "medium"


def null_level(index: Index, settings: Settings, *, root: str = "") -> Level:
    """Return the level of a store: the one kept under ``root`` when it is of this very store, else a new one, which is kept.

    It depends on nothing but the memories and the settings. Where no file of the sample has changed, the draws hold, and only
    the number of memories is asked anew. A place that cannot be written to costs time, never an answer.
    """
    key = f"{VERSION} {settings.body_max_chars} {index.stamp}"
    listing = index.listing
    if not root or not index.stamp or listing is None:
        return draw_level(_sample(index.memories), settings.body_max_chars, total=len(index))
    path = os.path.join(root, ".ringtrue", FILE)
    kept = _read(path)
    if kept is not None and kept.key == key:
        return kept.drawn.level(kept.total)
    total, names = len(index), _in_order(listing)
    files = 0 if kept is None else kept.files
    if kept is None or kept.sample != _stamp(names[:files], settings) or (kept.drawn.size < SAMPLE and files != len(names)):
        files, sample = _sample_files(root, [name for name, _ in names])
        drawn = draw(sample, settings.body_max_chars)
    else:
        drawn = kept.drawn
    _keep(path, _Kept(key, _stamp(names[:files], settings), files, total, drawn))
    return drawn.level(total)


def draw_level(sample: Sequence[Memory], body_max_chars: int, *, total: int) -> Level:
    """Return the level of a store of ``total`` memories from a sample of them, drawn anew; it is always the same."""
    return draw(sample, body_max_chars).level(total)


class Drawn:
    """What the draws found in a sample: where the tail of the best evidence begins, its mean excess, and the common stems."""

    __slots__ = ("base", "shares", "size", "step")

    def __init__(self, base: float, step: float, shares: Mapping[str, int], size: int) -> None:
        self.base, self.step, self.shares, self.size = base, step, shares, size

    def level(self, total: int) -> Level:
        """Return the level of a store of ``total`` memories.

        Ten draws lie above the 99th percentile of 1000, too few to tell it from. The tail beyond the 90th falls exponentially,
        so its mean excess gives every higher percentile, with the error of a hundred draws.
        """
        larger = max(1.0, total / max(1, self.size))
        return Level(self.base + self.step * log(larger * (1 - _TAIL) / (1 - PERCENTILE)), self.shares, self.size)


def draw(sample: Sequence[Memory], body_max_chars: int) -> Drawn:
    """Put drawn texts to a sample of memories."""
    said = [Said(memory, body_max_chars) for memory in sample]
    table = _Table(said)
    own = [short for one in said for short in one.places]
    dice = _Dice(SEED)
    best = sorted(table.best(_text(dice, own)) for _ in range(DRAWS))
    start = int(_TAIL * len(best))
    base = best[start]
    step = sum(value - base for value in best[start:]) / (len(best) - start)
    return Drawn(base, step, table.common(), len(sample))


def _sample(memories: Sequence[Memory]) -> list[Memory]:
    """Choose by a checksum of the id, so that one memory more changes at most one of the sample."""
    return sorted(memories, key=lambda memory: (_checksum(memory.id), memory.id))[:SAMPLE]


def _in_order(listing: Listing) -> list[tuple[str, str]]:
    """Return the files in the same order, with the state of each, by their names, which are those of their memories."""
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
            word = COMMON[int(_FROM_RANK * exp(dice.share() * _RANKS))]
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
        self._known: dict[str, _Word] = {}

    def common(self) -> dict[str, int]:
        """Return the stems that say less here than in general, with the number of memories that have them."""
        return {short: count for short, count in self._counts.items() if (count + 0.5) / (self._size + PRIOR) > exp(-EVERYDAY)}

    def best(self, words: Sequence[str]) -> float:
        """Return the best evidence of a text in the sample: the highest that ``evidence`` gives for any memory.

        What adds most comes first. As soon as no other memory could catch up with the best one, the words that half the store
        has are asked of those few only that are still in it.
        """
        total, left = UNSAID, 0.0
        having: list[_Word] = []
        for word in words:
            known = self._known.get(word) or self._look_up(word)
            total += known[0]
            if known[1]:
                left += known[1]
                having.append(known)
        if not having:
            return 0.0
        if len(having) == 1:
            return left * left / total
        having.sort(key=_most, reverse=True)
        shared: dict[int, float] = {}
        for _, most, places in having:
            if not shared:
                shared = places.copy()
            elif left < max(shared.values()):
                for place in shared:
                    shared[place] += places.get(place, 0.0)
            else:
                for place, value in places.items():
                    shared[place] = shared.get(place, 0.0) + value
            left -= most
        highest = max(shared.values())
        return highest * highest / total

    def _look_up(self, word: str) -> _Word:
        """Return the weight of a word, the most that it adds to a memory, and what it adds to each memory that has it."""
        short = stem(word)
        weight = rarity(word, short) * in_store(self._counts.get(short, 0), self._size)
        places: dict[int, float] = {}
        if len(word) >= SHORTEST_BEGINNING:
            stems, start = self._stems, bisect_left(self._stems, word)
            while start < len(stems) and stems[start].startswith(word):
                for place, value in self._postings[stems[start]]:
                    places[place] = max(places.get(place, 0.0), BEGINNING * value)
                start += 1
        places.update(self._postings.get(short, ()))
        if places:
            places = {place: weight * value for place, value in places.items()}
        found = self._known[word] = (weight, max(places.values()) if places else 0.0, places)
        return found


def _most(known: _Word) -> float:
    return known[1]


class _Dice:
    """Repeatable draws (Knuth's MMIX generator); importing ``random`` would cost a hook more than the draws."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed

    def share(self) -> float:
        self._state = state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (state >> 11) * _UNIT

    def below(self, limit: int) -> int:
        return int(self.share() * limit)


def _checksum(text: str) -> int:
    from zlib import crc32

    return crc32(text.encode("utf-8", "replace"))


class _Kept:
    """A level as it is kept: for which files, drawn from which of them, how many, and how many memories there were."""

    __slots__ = ("drawn", "files", "key", "sample", "total")

    def __init__(self, key: str, sample: str, files: int, total: int, drawn: Drawn) -> None:
        self.key, self.sample, self.files, self.total, self.drawn = key, sample, files, total, drawn


def _read(path: str) -> _Kept | None:
    import json

    from .guard import read_plain

    try:
        kept = json.loads(read_plain(path, LARGEST))
        counts = kept["files"], kept["total"], kept["size"]
        tail = kept["base"], kept["step"]
        shares = kept["shares"]
        if any(type(value) is not float or not 0 <= value < 1e6 for value in tail):
            return None
        if any(type(count) is not int or count < 0 for count in counts) or kept["size"] > SAMPLE:
            return None
        if any(type(count) is not int or not 0 <= count <= SAMPLE for count in shares.values()):
            return None
        return _Kept(str(kept["key"]), str(kept["sample"]), *counts[:2], Drawn(*tail, shares, kept["size"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _keep(path: str, kept: _Kept) -> None:
    import json

    from .files import own_folder

    drawn = kept.drawn
    facts = {"key": kept.key, "sample": kept.sample, "files": kept.files, "total": kept.total, "size": drawn.size}
    aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        own_folder(os.path.dirname(os.path.dirname(path)))
        with open(aside, "x", encoding="utf-8") as file:
            json.dump({**facts, "base": drawn.base, "step": drawn.step, "shares": drawn.shares}, file)
        os.replace(aside, path)
    except OSError:
        pass
