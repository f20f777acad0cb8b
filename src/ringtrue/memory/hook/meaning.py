"""How much a memory says about what a text means: cosines of sentence vectors together with shared words, beside chance.

A cosine alone does not tell whether to speak: a prompt about the project is near to all its memories, an everyday request
("rename this variable") to none in particular, and how near depends on the store. So a memory's score for a text is

    cosine + 0.15 · √(evidence of shared words) + 0.5 · mean cosine of the next ten nearest memories
           − 0.7 · mean cosine of the five nearest everyday prompts

and chance is what the prompts of ``everyday_prompts.txt`` score in the same store. The evidence is the score in standard
deviations of the best score that an everyday prompt finds, so that the same number means the same in every store.
"""

from __future__ import annotations

import json
import os
import re
from math import log, sqrt

from .evidence import MemoryWords, words_of
from .index import MemoryHit
from .memory import MemoryFault
from .null_level import SAMPLE, EvidenceTable
from .vectors import everyday_prompts, update_vectors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .encoder import BertEncoder, Matrix
    from .index import Index
    from .memory import Memory
    from .settings import Settings
    from .vectors import StoreVectors

WORDS, PROJECT, GENERAL = 0.15, 0.5, 0.7
"""Weights of shared words, of the project's nearest memories, and of the nearest everyday prompts."""
NEAREST, NEAREST_EVERYDAY = 10, 5
_MEDIAN, _TAIL, _TAIL_DEVIATIONS = 0.5, 0.9, 1.2816
FILE = "chance.json"
VERSION = 2
MOST_WORDS = 60
"""Words of a text that are encoded: of a longer one, the first and the last thirty."""
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.S)
_PLAIN_WORD = re.compile(r"[\"'(]*[^\W\d_][^\W\d_'’]*[\"'),.:;?!]*")
_PROSE = 0.6
"""The share of a line's words that are plain words, unless it is output or code."""


class Chance:
    """What everyday prompts reach: the median of their best scores among ``size`` memories, how the scores spread, and how much
    the median rises when a store grows by a factor of e."""

    __slots__ = ("centre", "rise", "size", "spread")

    def __init__(self, centre: float, spread: float, rise: float, size: int) -> None:
        self.centre, self.spread, self.rise, self.size = centre, spread, rise, size

    def deviations(self, score: float, total: int) -> float:
        """Return a score in standard deviations above the median that chance reaches among ``total`` memories."""
        return (score - self.centre - self.rise * log(max(1.0, total / self.size))) / self.spread


class Meaning:
    """The vectors of a store beside what chance reaches, ready to be compared with texts."""

    def __init__(self, index: Index, encoder: BertEncoder, vectors: StoreVectors, chance: Chance) -> None:
        import numpy as np

        self._encoder, self._vectors, self._chance, self._index = encoder, vectors, chance, index
        entries = index.entries()
        self._order = {id_: number for number, (_, id_, _) in enumerate(entries)}
        self._places = [place for place, _, _ in entries]
        names = {name: number for number, name in enumerate(vectors.spans)}
        self._starts = np.array([start for start, _ in vectors.spans.values()])
        self._chosen = np.array([names[key] for _, _, key in entries])
        self._known: dict[str, tuple[Matrix, float]] = {}

    def candidates(self, found: Sequence[MemoryHit], texts: Sequence[str], *, k: int, now: float) -> list[MemoryHit]:
        """Return the hits and, after them, the ``k`` memories nearest to each text that are not among them."""
        all_ = {hit.memory.id: hit for hit in found}
        for text in dict.fromkeys(texts):
            cosines, _ = self._compared(text)
            places = [self._places[number] for number in (-cosines).argsort(kind="stable")[:k].tolist()]
            for memory in self._index.shown(places, now):
                all_.setdefault(memory.id, MemoryHit(memory, 0.0, len(all_) + 1))
        return list(all_.values())

    def evidence(self, text: str, memories: Sequence[Memory], words: Sequence[float]) -> list[float]:
        """Return the evidence of memories for a text, where ``words`` is that of the words they share with it.

        A memory that came in since the index was made has none.
        """
        cosines, rest = self._compared(text)
        scores = []
        for memory, shared in zip(memories, words, strict=True):
            number = self._order.get(memory.id)
            score = None if number is None else float(cosines[number]) + WORDS * sqrt(shared) + rest
            scores.append(0.0 if score is None else self._chance.deviations(score, len(cosines)))
        return scores

    def _compared(self, text: str) -> tuple[Matrix, float]:
        """Return the cosine of each memory with a text, and what the text adds to the score of all."""
        import numpy as np

        if text not in self._known:
            (vector,) = self._encoder.encode([prose(text)])
            cosines = self._vectors.matrix @ vector
            best = np.maximum.reduceat(cosines, self._starts)[self._chosen]
            everyday = cosines[: len(self._vectors.everyday)]
            rest = PROJECT * _neighbours(best) - GENERAL * _top(everyday, NEAREST_EVERYDAY)
            self._known[text] = best, float(rest)
        return self._known[text]


def open_meaning(root: str, index: Index, settings: Settings, encoder: BertEncoder, *, seconds: float | None = None) -> Meaning:
    """Return the meaning of a store; vectors that are missing are made.

    With ``seconds``, making them stops after that long and raises MemoryFault; the next call goes on. Raises MemoryFault for an
    empty store as well.
    """
    vectors, missing = update_vectors(root, index, encoder, seconds=seconds)
    if missing:
        raise MemoryFault(f"{missing} texts have no vectors yet; each prompt makes some, `ringtrue memory install` makes all")
    if not index.entries():
        raise MemoryFault("there are no memories")
    return Meaning(index, encoder, vectors, _chance(root, index, settings, encoder, vectors))


def prose(text: str) -> str:
    """Return what somebody says in a text, without code and pasted output, and of a long one the beginning and the end.

    >>> prose("the build fails, any idea?\\n\\n```\\nerror[E0382]\\n```")
    'the build fails, any idea?'
    """
    lines = [line for line in _FENCED.sub("\n", text).split("\n") if _is_prose(line)]
    words = " ".join(lines or [text]).split()
    half = MOST_WORDS // 2
    return " ".join(words if len(words) <= MOST_WORDS else (*words[:half], *words[-half:]))


def _is_prose(line: str) -> bool:
    words = line.split()
    return bool(words) and not line[0].isspace() and sum(map(bool, map(_PLAIN_WORD.fullmatch, words))) >= _PROSE * len(words)


def _neighbours(cosines: Matrix) -> float:
    """Return how near a text is to the project beyond its nearest memory, which would lift all others of a small store."""
    import numpy as np

    if len(cosines) < 2:
        return 0.0
    some = min(NEAREST + 1, len(cosines))
    nearest = np.partition(cosines, len(cosines) - some)[-some:]
    return float((nearest.sum() - nearest.max()) / (some - 1))


def _top(values: Matrix, count: int) -> float:
    import numpy as np

    some = min(count, len(values))
    return float(np.partition(values, len(values) - some)[-some:].mean())


def _chance(root: str, index: Index, settings: Settings, encoder: BertEncoder, vectors: StoreVectors) -> Chance:
    """Return what chance reaches: what is kept if it was measured with the same sample of memories, else measured again."""
    from _blake2 import blake2b

    sample = sorted((key, place) for place, _, key in index.entries())[:SAMPLE]
    same = blake2b("".join(key for key, _ in sample).encode(), digest_size=12).hexdigest()
    made = f"{VERSION} {encoder.key} {settings.body_max_chars} {same}"
    path = os.path.join(root, ".ringtrue", FILE)
    kept = _read(path)
    if kept.get("made") == made:
        return Chance(**{name: kept[name] for name in Chance.__slots__})
    memories = [index.memory(place) for _, place in sample]
    words = [MemoryWords(memory, settings.body_max_chars) for memory in memories if memory is not None]
    if len(words) < len(sample):  # a file went away a moment ago: the next prompt sees another index
        raise MemoryFault("the memories are being changed")
    found = measure_chance(vectors, [key for key, _ in sample], words, settings)
    _write(path, {"made": made, **{name: getattr(found, name) for name in Chance.__slots__}})
    return found


def measure_chance(vectors: StoreVectors, keys: Sequence[str], words: Sequence[MemoryWords], settings: Settings) -> Chance:
    """Return what everyday prompts reach among the memories of these text keys and words.

    Some everyday prompts are really about a memory ("write a commit message"). The middle and the 90th percentile of a normal
    distribution do not move with them, as the 99th percentile itself would.
    """
    import numpy as np

    table = EvidenceTable(words)
    everyday = vectors.everyday
    cosines = np.stack([(everyday @ vectors.rows(key).T).max(axis=1) for key in keys], axis=1)
    alike = everyday @ everyday.T
    np.fill_diagonal(alike, -1.0)
    scores = np.zeros_like(cosines)
    for number, prompt in enumerate(everyday_prompts()):
        for place, value in table.evidences(words_of(prompt, settings.query_max_tokens)).items():
            scores[number, place] = WORDS * sqrt(value)
    scores += cosines - GENERAL * np.array([[_top(row, NEAREST_EVERYDAY)] for row in alike], np.float32)
    half = max(1, len(keys) // 2)
    best, best_of_half = (
        (scores[:, :size].max(axis=1) + PROJECT * np.array([_neighbours(row[:size]) for row in cosines]))
        for size in (len(keys), half)
    )
    centre, tail = np.quantile(best, (_MEDIAN, _TAIL))
    rise = (centre - np.quantile(best_of_half, _MEDIAN)) / log(len(keys) / half) if len(keys) > half else 0.0
    return Chance(float(centre), max(1e-3, float((tail - centre) / _TAIL_DEVIATIONS)), max(0.0, float(rise)), len(keys))


def _read(path: str) -> dict[str, Any]:
    from .guard import read_plain

    try:
        kept = json.loads(read_plain(path, 10_000))
        good = type(kept["size"]) is int and kept["size"] > 0
        good = good and all(type(kept[name]) is float and -10 < kept[name] < 10 for name in ("centre", "rise", "spread"))
        return kept if good and kept["spread"] > 0 else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _write(path: str, facts: dict[str, Any]) -> None:
    aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        with open(aside, "x", encoding="utf-8") as file:
            json.dump(facts, file)
        os.replace(aside, path)
    except OSError:
        pass
