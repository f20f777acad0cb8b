"""A search as it comes → the fields of a logged query: id, answer, stages, quality proxy, and its size in the queue.

Ids are ``eq_`` + time + hash, unique across threads, processes and machines, ordered within a process. Nothing of an answer is
changed, and nothing is read twice. How much memory a waiting event takes is estimated cheaply, and rather more than less.

The quality proxy is a health figure of a search, made from its own scores and its latency. It is not quality::

    proxy = 0.40 average relevance + 0.25 top result + 0.20 count saturation + 0.15 latency term

Every term lies in [0, 1]. A retriever that is sure of itself and fast has a high proxy whether it is right or not; what the
proxy is good for is seeing that something broke: scores that collapse, empty answers, a search that became slow.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from sys import getsizeof
from typing import TYPE_CHECKING, Any, NamedTuple

from ringtrue.answers import StageLogged
from ringtrue.errors import InputError
from ringtrue.records import Hit

if TYPE_CHECKING:
    from ringtrue.retrieve import Seen


class Moment(NamedTuple):
    """When something was asked, in microseconds since 1970."""

    micros: int
    """One of a kind in this process, and later than all before."""
    clock: int
    """What the clock said, which may go back."""


class Namer:
    """Gives ids whose time never goes back, even where the clock does; so the ids of one process sort as they were given.

    The hash is keyed by a secret of this process: it tells nothing about the query, and two processes never agree by chance.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """Begin anew, as a forked child must: it would give its parent's ids again."""
        self._key = secrets.token_bytes(16)
        self._last = 0
        self._lock = threading.Lock()

    def tick(self) -> Moment:
        """Return a moment that no other has."""
        clock = time.time_ns() // 1000
        with self._lock:
            self._last = max(clock, self._last + 1)
            return Moment(self._last, clock)

    def name(self, moment: Moment, text: str) -> str:
        """Return the id of what was asked at a moment; later calls give the same."""
        said = b"%d %s" % (moment.micros, text.encode("utf-8", "surrogatepass"))
        return _id(self.prefix, moment.micros, hashlib.blake2b(said, key=self._key, digest_size=6))

    def __call__(self, text: str = "") -> str:
        """Return the next id."""
        return self.name(self.tick(), text)


_EPOCH = datetime(1970, 1, 1)  # in UTC, as all times here


def iso(micros: int) -> str:
    """Return microseconds since 1970 as ISO 8601 in UTC, in the store's form.

    >>> iso(1_767_528_000_000_000)
    '2026-01-04T12:00:00.000000Z'
    """
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds") + "Z"


def _id(prefix: str, micros: int, digest: hashlib.blake2b) -> str:
    return f"{prefix}{re.sub('[^0-9]', '', iso(micros))}_{digest.hexdigest()}"


def imported_id(prefix: str, micros: int, *parts: str) -> str:
    """Return the id of something that another system logged: the same parts always give the same id.

    >>> imported_id("eq_", 1_767_528_000_000_000, "trace", "span")
    'eq_20260104120000000000_b66cbdcb92e1'
    """
    return _id(prefix, micros, hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=6))


query_name = Namer("eq_")
event_name = Namer("ef_")

ENOUGH = 5
"""Results at which the count is saturated."""
HALF_MS = 500.0
"""Milliseconds at which half of the latency term is gone."""

Relevance = Callable[[float], float]


def as_given(score: float) -> float:
    """Return a score that lies in [0, 1] already, such as a cosine or a probability; nan for any other."""
    return score if 0.0 <= score <= 1.0 else math.nan


def saturating(half: float) -> Relevance:
    """Return how an unbounded score such as BM25's becomes a relevance: s ÷ (s + half), 0 for what is not above 0.

    >>> [saturating(10)(score) for score in (-1.0, 0.0, 10.0, 30.0)]
    [0.0, 0.0, 0.5, 0.75]
    """

    def relevance(score: float) -> float:
        if score > 0:
            return score / (score + half)
        return 0.0 if score <= 0 else math.nan  # no score is not relevance

    return relevance


def quality_proxy(scores: Sequence[float], latency_ms: float | None, *, relevance: Relevance = as_given) -> float | None:
    """Return the proxy; None if it cannot be known: no latency, or a score that ``relevance`` cannot place in [0, 1].

    - average relevance: the mean of ``relevance(score)`` over all results; an empty answer has 0, by definition
    - top result: that of the first result; of an empty answer 0
    - count saturation: min(1, results ÷ 5)
    - latency term: 500 ÷ (500 + milliseconds), so 1 at once and ½ at half a second

    >>> quality_proxy([0.9, 0.7, 0.5, 0.5, 0.4], 500.0)
    0.74
    >>> quality_proxy([], 0.0)
    0.15
    >>> quality_proxy([17.2, 9.1], 20.0) is None
    True
    """
    if latency_ms is None or not latency_ms >= 0:
        return None
    placed = [relevance(score) for score in scores]
    for value in placed:  # a loop: every logged search comes by here
        if not 0.0 <= value <= 1.0:
            return None
    of_results = 0.40 * sum(placed) / len(placed) + 0.25 * placed[0] if placed else 0.0
    return round(of_results + 0.20 * min(1.0, len(placed) / ENOUGH) + 0.15 * HALF_MS / (HALF_MS + latency_ms), 6)


IDS = ("doc_id", "id", "_id", "document_id", "node_id", "id_")
SCORES = ("score", "_score", "similarity", "relevance")
STAGES = {"rerank": "rerank", "mmr": "rerank", "recency": "boost", "tier": "boost", "threshold": "filter", "top": "final-rank"}
"""What the steps of a pipeline are called in the log; a step of one's own keeps its name."""
_ROW = 1300
"""A record with its id, its time, its empty mappings and its place in the queue."""


class Answered(NamedTuple):
    """What an answer says: ids, scores where every hit has one, and per channel the ids it had, in its order."""

    result_ids: tuple[str, ...]
    scores: tuple[float, ...]
    channel_contributions: dict[str, tuple[str, ...]]


def read_answer(answer: Any) -> Answered:
    """Return what an answer says; raises InputError for one that cannot be read without using it up.

    >>> read_answer([("pool", 0.9), ("spa", 0.4)])
    Answered(result_ids=('pool', 'spa'), scores=(0.9, 0.4), channel_contributions={})
    """
    if isinstance(answer, str | bytes | Mapping | Set) or not isinstance(answer, Sequence):
        raise InputError(
            f"the answer is {type(answer).__name__}, no list of hits; give the log results=, which makes one of it"
        )
    if set(map(type, answer)) <= {Hit}:
        return _of_hits(answer)
    pairs = [_id_and_score(item) for item in answer]
    scores = tuple([score for _, score in pairs])
    return Answered(tuple([doc_id for doc_id, _ in pairs]), scores if math.isfinite(sum(scores)) else (), {})


def _of_hits(hits: Sequence[Hit]) -> Answered:
    """Return what our own hits say; lists in brackets, since generators would take twice the time of the caller."""
    ids = tuple([hit.doc_id for hit in hits])
    scores = tuple([hit.score for hit in hits])
    ranks: dict[str, list[tuple[int, str]]] = {}
    for hit in hits:
        doc_id = hit.doc_id
        for channel, rank in hit.channels.items():
            ranks.setdefault(channel, []).append((rank, doc_id))
    channels = {channel: tuple([doc_id for _, doc_id in sorted(found)]) for channel, found in ranks.items()}
    return Answered(ids, scores if math.isfinite(sum(scores)) else (), channels)


def _id_and_score(item: Any) -> tuple[str, float]:
    if isinstance(item, str | int) and not isinstance(item, bool):
        return str(item), math.nan
    if isinstance(item, tuple | list) and len(item) == 2:
        if isinstance(item[0], str | int):
            return str(item[0]), _number(item[1])
        return _id_and_score(item[0])[0], _number(item[1])  # (document, score), as vector stores answer
    if isinstance(item, Mapping):
        inner = item.get("document", item)
        found = _first(item, IDS) or (_first(inner, IDS) if isinstance(inner, Mapping) else None)
        score = _first(item, SCORES)
    else:
        found, score = _first({name: getattr(item, name, None) for name in IDS}, IDS), getattr(item, "score", None)
        if found is None and isinstance(metadata := getattr(item, "metadata", None), Mapping):
            found = _first(metadata, IDS)  # a document of LangChain may have its id there
        if found is None and (inner := getattr(item, "node", None) or getattr(item, "document", None)) is not None:
            found = _id_and_score(inner)[0]
    if found is None:
        raise InputError(
            f"a hit of type {type(item).__name__} has no id; give the log results=, which returns ids or (id, score)"
        )
    return str(found), _number(score)


def _first(item: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((item[name] for name in names if item.get(name) is not None), None)


def _number(value: Any) -> float:
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def stages_of(seen: Seen | None) -> tuple[tuple[StageLogged, ...], dict[str, float]]:
    """Return what each stage of an observed retriever took in, gave out and took, and the milliseconds by stage.

    *candidate* takes in what all channels listed and gives out the documents among it; *fusion* takes those.
    """
    from ringtrue.retrieve import Fused, Stepped

    if seen is None:
        return (), {}
    base, steps = (seen.base, seen.steps) if isinstance(seen, Stepped) else (seen, ())
    before = len(base.hits)
    figures = [StageLogged("candidate", before, before, base.ms)]
    if isinstance(base, Fused):
        spent = sum(channel.ms for channel in base.channels)
        listed = sum(len(channel.hits) for channel in base.channels)
        fused = StageLogged("fusion", len(base.order), before, max(0.0, base.ms - spent))
        figures = [StageLogged("candidate", listed, len(base.order), spent), fused]
    for step in steps:
        figures.append(StageLogged(STAGES.get(step.name.split("(")[0], step.name), before, len(step.hits), step.ms))
        before = len(step.hits)
    latency: Counter[str] = Counter()
    for figure in figures:
        latency[figure.name] += figure.ms  # type: ignore[assignment]  # a counter adds up any numbers
    return tuple(figures), dict(latency)


def weight(query: str, ids: Sequence[str], channels: Mapping[str, Sequence[str]], further: Iterable[Any]) -> int:
    """Return about how many bytes an event with these values occupies while it waits, rather more than less."""
    # Every search comes by here: an id is a text, a place and a score, and a channel adds a place for each.
    answer = sum(map(getsizeof, ids)) + 40 * len(ids) + sum(120 + 8 * len(listed) for listed in channels.values())
    return _ROW + getsizeof(query) + answer + sum(map(_data, further))


def _data(value: Any, depth: int = 0) -> int:
    if isinstance(value, Mapping) and depth < 8:
        return 240 + sum(100 + getsizeof(name) + _data(item, depth + 1) for name, item in value.items())
    if isinstance(value, list | tuple | set | frozenset) and depth < 8:
        return 120 + sum(16 + _data(item, depth + 1) for item in value)
    return 150 if isinstance(value, StageLogged) else getsizeof(value)
