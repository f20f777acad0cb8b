"""Pairs of memories that say the same, or the opposite of each other.

Two memories are about one thing when they share telling words, or lie close together in meaning where the encoder is there.
About one thing they contradict each other when one denies what the other says, when both give the same quantity another value,
or when each makes another choice in the same sentence; else, when they share nearly everything, one of them is a duplicate.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ringtrue.errors import RingtrueError
from ringtrue.memory.hook.evidence import in_store
from ringtrue.memory.hook.files import own_folder
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.hook.rarity import rarity, stem
from ringtrue.memory.hook.words import STOP_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]


Kind = Literal["duplicate", "contradiction"]
BODY_READ = 2000
"""Characters of a body that are compared."""
TELLING = 0.35
"""The weight from which a word tells what a memory is about."""
_BLOCK = 500
"""Memories that are compared with all others at once."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?|%")
_SENTENCE = re.compile(r"[.;:!?\n]+")


@dataclass(frozen=True)
class MemoryPair:
    """Two memories, how alike they are from 0 to 1, and the words that made it a contradiction."""

    kind: Kind
    first: str
    second: str
    likeness: float
    because: str = ""


def pairs_of(memories: Sequence[Memory], vectors: Matrix | None = None, *, only: str | None = None) -> list[MemoryPair]:
    """Return the pairs among memories, the most alike first; ``vectors`` has a row of length 1 for each memory.

    With ``only`` those pairs alone that this id is one of. Memories that name each other, as superseded or linked, are left
    out: somebody has looked at them already.
    """
    said = [_Said(memory) for memory in memories]
    weights = _weights(said)
    settled = {
        frozenset((memory.id, other))
        for memory in memories
        for other in (*memory.supersedes, *(one for ids in memory.links.values() for one in ids))
    }
    rows = [place for place, memory in enumerate(memories) if only in (None, memory.id)]
    found = []
    for i, j, words, cosine in _candidates(said, rows, weights, vectors):
        if frozenset((memories[i].id, memories[j].id)) in settled:
            continue
        pair = _judge(said[i], said[j], weights, words, cosine)
        if pair is not None:
            found.append(pair)
    return sorted(found, key=lambda pair: (-pair.likeness, pair.first, pair.second))


SAME_TOPIC, SAME_TEXT = 0.55, 0.72
"""Likeness from which two memories are about one thing, and from which they say one thing."""
SAME_WORDS = 0.65
"""Share of words beyond which two memories do not differ by a choice but in their wording."""
TOPIC_BY_WORDS, TEXT_BY_WORDS = 0.5, 0.68
"""The same where only words can be compared."""
CLOSE = 0.6
"""Cosine from which two memories need no telling words in common."""

_BEFORE = frozenset("no not never without cannot avoid neither nor nobody none nothing".split())  # noqa: SIM905
"""They deny what follows."""
_AFTER = frozenset("off gone removed forbidden unsupported disallowed banned unused abandoned dropped".split())  # noqa: SIM905
"""They deny what stands before."""
_IN_USE = frozenset("used allowed supported needed permitted wanted required".split())  # noqa: SIM905
"""With a denial before them they deny what stands before: "bcrypt is not used"."""
_REACH = 5
"""Words that a denial reaches."""
_OPPOSED = """
    always never|allow forbid|allowed forbidden|enable disable|enabled disabled|on off|required optional|must optional
    soft hard|automatic manual|automatically manually|sync async|synchronous asynchronous|public private
    include exclude|internal external|local remote|before after|increase decrease|add remove|keep delete|kept deleted|keep drop
    accept reject|static dynamic|eager lazy|strict lenient|mutable immutable|push pull|merge rebase|tabs spaces|single multiple
    client server|online offline|prefer avoid|up down|ascending descending|encrypted plaintext|first last|maximum minimum
    monolith microservices|stateless stateful|centralised decentralised|inline external|opt-in opt-out
    support unsupported|supported unsupported|nullable required|blocking non-blocking
"""
_COUNTED = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
    nineteen twenty
"""
_NUMBER_WORDS = {word: number for number, word in enumerate(_COUNTED.split())}
_NUMBER_WORDS |= {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90, "hundred": 100}
_MINUTES = {
    "second": 1 / 60,
    "minute": 1.0,
    "hour": 60.0,
    "day": 1440.0,
    "week": 10080.0,
    "month": 43200.0,
    "quarter": 129600.0,
    "year": 525600.0,
}
_EVERY = {"hourly": 60.0, "daily": 1440.0, "nightly": 1440.0, "weekly": 10080.0, "monthly": 43200.0, "quarterly": 129600.0}


def _opposites() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for pair in _OPPOSED.replace("\n", "|").split("|"):
        words = pair.split()
        if len(words) == 2:
            found[words[0]].add(words[1])
            found[words[1]].add(words[0])
    return dict(found)


_OPPOSITES = _opposites()


class _Said:
    """What one memory says, taken apart."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        title, body = memory.title, memory.body[:BODY_READ]
        self.title = [stem(word) for word in _words(title) if word not in STOP_WORDS and not _is_number(word)]
        everything = [*_words(title), *_words(" ".join(memory.tags)), *_words(body)]
        self.raw = frozenset(everything)
        self.word_of = {stem(word): word for word in everything if word not in STOP_WORDS}
        self.stems = frozenset(self.word_of)
        self.text = f"{title}\n{body}"

    @cached_property
    def polarity(self) -> tuple[frozenset[str], frozenset[str]]:
        return _polarity(self.text)

    @cached_property
    def amounts(self) -> Mapping[str, set[float]]:
        return _amounts(self.text)

    def telling(self, names: Iterable[str], weights: Mapping[str, float]) -> list[str]:
        return sorted(name for name in names if weights[name] >= TELLING and not _is_number(self.word_of.get(name, name)))


def _words(text: str) -> list[str]:
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)  # strictNullChecks is three words
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


def _is_number(word: str) -> bool:
    return word.isdigit() or word in _NUMBER_WORDS


def _polarity(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems that are said and those that are denied; a stem may be both."""
    said: set[str] = set()
    denied: set[str] = set()
    for clause in _SENTENCE.split(text):
        words = _words(clause)
        under: set[int] = set()
        for place, word in enumerate(words):
            if word in ("not", "never", "longer") and words[place + 1 : place + 2] and words[place + 1] in _IN_USE:
                under.update(range(max(0, place - _REACH), place))
            elif word in _BEFORE or word.endswith("n't") or (word == "of" and words[place - 1 : place] == ["instead"]):
                under.update(range(place + 1, place + 1 + _REACH))
            elif word in _AFTER:
                under.update(range(max(0, place - _REACH), place))
        for place, word in enumerate(words):
            if word not in STOP_WORDS and word not in _BEFORE and word not in _AFTER:
                (denied if place in under else said).add(stem(word))
    return frozenset(said), frozenset(denied)


def _amounts(text: str) -> dict[str, set[float]]:
    """Return the quantities in a text by what they count; times are in minutes, whatever their unit."""
    found: dict[str, set[float]] = defaultdict(set)
    words = _words(text)
    for place, word in enumerate(words):
        if word in _EVERY:
            found["time"].add(_EVERY[word])
            continue
        value = float(word) if word.isdigit() else _NUMBER_WORDS.get(word)
        if value is None or (word == "one" and words[place + 1 : place + 2] == ["of"]):
            continue
        after = words[place + 1] if place + 1 < len(words) else ""
        unit = after.removesuffix("s")
        if unit in _MINUTES:
            found["time"].add(value * _MINUTES[unit])
        elif after in ("%", "percent"):
            found["percent"].add(value)
        elif after and after not in STOP_WORDS and not _is_number(after):
            found[stem(after)].add(value)
        elif place and words[place - 1] not in STOP_WORDS and not _is_number(words[place - 1]):
            found[stem(words[place - 1])].add(value)
    return dict(found)


def _weights(said: Sequence[_Said]) -> dict[str, float]:
    """Return what each stem tells: little for everyday words, and less where much of the store has it."""
    counts = Counter(name for one in said for name in one.stems)
    weights: dict[str, float] = {}
    for one in said:
        for name, word in one.word_of.items():
            weights[name] = max(weights.get(name, 0.0), rarity(word) * in_store(counts[name], len(said)))
    return weights


def _candidates(
    said: Sequence[_Said], rows: Sequence[int], weights: Mapping[str, float], vectors: Matrix | None
) -> Iterable[tuple[int, int, float, float | None]]:
    """Yield the pairs about one thing: two places, the share of words in common, and the cosine where there are vectors."""
    import numpy as np
    from scipy.sparse import csr_array

    if len(said) < 2:
        return
    column = {name: place for place, name in enumerate(weights)}
    starts, columns, values = [0], [], []
    for one in said:
        size = sum(weights[name] for name in one.stems) or 1.0
        for name in one.stems:
            columns.append(column[name])
            values.append((weights[name] / size) ** 0.5)
        starts.append(len(columns))
    # The product of two rows is the weight they share over the mean of their weights.
    matrix = csr_array((np.array(values, np.float32), columns, starts), shape=(len(said), len(column)))
    topic = TOPIC_BY_WORDS if vectors is None else SAME_TOPIC
    for start in range(0, len(rows), _BLOCK):
        mine = list(rows[start : start + _BLOCK])
        words = (matrix[mine] @ matrix.T).toarray()
        cosines = None if vectors is None else vectors[mine] @ vectors.T
        alike = words if cosines is None else (words + cosines) / 2
        for row, other in np.argwhere(alike >= topic).tolist():
            i, cosine = mine[row], None if cosines is None else float(cosines[row, other])
            if i == other or (other < i and len(rows) == len(said)):
                continue
            if (cosine or 0.0) >= CLOSE or _shares_two(said[i], said[other], weights):
                yield (*sorted((i, other)), float(words[row, other]), cosine)  # type: ignore[misc]


def _shares_two(one: _Said, other: _Said, weights: Mapping[str, float]) -> bool:
    """True for two telling words in common; one may be chance, however short the memories."""
    return sum(weights[name] >= TELLING for name in one.stems & other.stems) >= 2


def _judge(one: _Said, other: _Said, weights: Mapping[str, float], words: float, cosine: float | None) -> MemoryPair | None:
    likeness = words if cosine is None else (words + cosine) / 2
    because = _conflict(one, other, weights, words)
    ids = one.memory.id, other.memory.id
    if because:
        return MemoryPair("contradiction", *ids, round(likeness, 3), because)
    text = TEXT_BY_WORDS if cosine is None else SAME_TEXT
    return MemoryPair("duplicate", *ids, round(likeness, 3)) if likeness >= text else None


def _conflict(one: _Said, other: _Said, weights: Mapping[str, float], words: float) -> str:
    """Return what sets two memories about one thing against each other; nothing if nothing does."""
    mine, theirs = (a.telling(set(a.title) - b.stems, weights) for a, b in ((one, other), (other, one)))
    starts = [next((name for name in side.title if weights[name] >= TELLING), "") for side in (one, other)]
    if starts[0] in mine and starts[1] in theirs:
        return ""  # each speaks of something of its own: orders here, the catalogue there
    for a, b in ((one, other), (other, one)):
        (said_here, denied_here), (said_there, denied_there) = a.polarity, b.polarity
        denied = a.telling((denied_here - said_here) & (said_there - denied_there), weights)
        if denied:
            return f"one denies '{b.word_of[denied[0]]}'"
    for word in sorted(one.raw & _OPPOSITES.keys()):
        against = _OPPOSITES[word] & other.raw
        if against and word not in other.raw and not against & one.raw:
            return f"'{word}' here, '{min(against)}' there"
    for unit in sorted(one.amounts.keys() & other.amounts.keys()):
        if not one.amounts[unit] & other.amounts[unit]:
            return f"{_figures(one.amounts[unit])} here, {_figures(other.amounts[unit])} there ({unit})"
    if mine and theirs and words < SAME_WORDS:
        return f"'{one.word_of[mine[0]]}' here, '{other.word_of[theirs[0]]}' there"
    return ""


def _figures(values: Iterable[float]) -> str:
    return ", ".join(f"{value:g}" for value in sorted(values))


ENCODED = 3000
"""Memories up to which meanings are compared, too; the first time that takes some milliseconds each."""


def vectors_of(root: str, memories: Sequence[Memory]) -> tuple[NDArray[np.float32] | None, str]:
    """Return the meanings of memories, and how they can be compared: 'words and meaning', or 'words' and why."""
    if len(memories) < 2:
        return None, "words, of fewer than two memories"
    if len(memories) > ENCODED:
        return None, f"words, since there are more than {ENCODED:,} memories"
    try:
        from ringtrue.retrieve.encode import Vectors, encoder

        texts = [f"{memory.title}. {memory.body}" for memory in memories]
        return Vectors(Path(own_folder(root)) / "doctor", encoder()).of(texts), "words and meaning"
    except (RingtrueError, ImportError, OSError) as error:
        return None, f"words, since the encoder cannot be used: {error}"


def alike_to(root: str, active: Sequence[Memory], memory_id: str) -> list[MemoryPair]:
    """Return the pairs that one memory makes with the active ones, each of which the doctor shows as well.

    Words are compared first, and meanings of those pairs alone that words bring up: an encoder takes a second to start.
    """
    found = pairs_of(active, only=memory_id)
    if not found or len(active) > ENCODED:
        return found
    import numpy as np

    names = {name for pair in found for name in (pair.first, pair.second)}
    chosen = [place for place, memory in enumerate(active) if memory.id in names]
    vectors, _ = vectors_of(root, [active[place] for place in chosen])
    if vectors is None:
        return found
    # The others have no meaning here, hence no part in any pair; the weights of words are still those of the whole store.
    whole = np.zeros((len(active), vectors.shape[1]), np.float32)
    whole[chosen] = vectors
    kept = {frozenset((pair.first, pair.second)) for pair in found}
    return [pair for pair in pairs_of(active, whole, only=memory_id) if frozenset((pair.first, pair.second)) in kept]
