"""Queries that say the same thing: equal after normalising, or nearly so by the words they share."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ringtrue.records import Query

NEAR = 0.9
_WORD = re.compile(r"\w+")


def normalise(text: str) -> str:
    """Return the words of a text in one spelling: compatibility forms, case and punctuation levelled.

    >>> normalise("  Wi-Fi,  PLEASE! ")
    'wi fi please'
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    # A query of signs alone ("???") still has to be comparable with another one.
    return " ".join(words) or " ".join(text.split())


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of words that two sets have in common; two empty sets are the same."""
    union = len(a | b)
    return len(a & b) / union if union else 1.0


def near_duplicates(texts: Sequence[str], *, threshold: float = NEAR) -> list[tuple[int, int, float]]:
    """Return (first, second, similarity) for all pairs whose word sets overlap by at least ``threshold``.

    >>> near_duplicates(["where is the pool", "Where is the pool?", "late checkout fee"])
    [(0, 1, 1.0)]
    """
    sets = [frozenset(normalise(text).split()) for text in texts]
    return sorted(
        (first, second, similarity)
        for first, second in _candidates(sets, threshold)
        if (similarity := jaccard(sets[first], sets[second])) >= threshold
    )


def _candidates(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs that can reach the threshold at all.

    Two sets that overlap by t share one of the first n - ceil(t * n) + 1 words of each, in any fixed order of words;
    with the rare words first, few pairs are left of the millions that comparing all with all would cost.
    """
    counts = Counter(word for words in sets for word in words)
    index: dict[str, list[int]] = {}
    for position, words in enumerate(sets):
        ranked = sorted(words, key=lambda word: (counts[word], word))
        # The product is rounded because 0.9 * 10 must not become 9.000000000000002 and lose a pair.
        prefix = ranked[: len(ranked) - math.ceil(round(threshold * len(ranked), 9)) + 1] or [""]
        for other in {other for word in prefix for other in index.get(word, ())}:
            yield other, position
        for word in prefix:
            index.setdefault(word, []).append(position)


@dataclass(frozen=True)
class Pair:
    """Two queries that ask the same; ``same`` when they are equal but for case and punctuation."""

    first: str
    second: str
    similarity: float
    same: bool


def pairs_of(queries: Sequence[Query], *, scope: str | None = None, threshold: float = NEAR) -> list[Pair]:
    """Return the pairs of queries that ask the same thing of the same documents.

    The same words in another scope, or after another conversation, are another question.
    """
    groups: dict[str, list[Query]] = {}
    for query in queries:
        groups.setdefault(repr(query.metadata.get(scope)) if scope else "", []).append(query)
    found = []
    for group in groups.values():
        texts = [_asked(query) for query in group]
        for first, second, similarity in near_duplicates(texts, threshold=threshold):
            same = normalise(texts[first]) == normalise(texts[second])
            found.append(Pair(group[first].query_id, group[second].query_id, similarity, same))
    return found


def _asked(query: Query) -> str:
    turns = query.metadata.get("transcript_context")
    return " ".join([*map(str, turns), query.text]) if isinstance(turns, list) else query.text
