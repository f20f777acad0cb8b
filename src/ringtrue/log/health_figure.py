"""The quality proxy (L-2): a health figure of a search, made from its own scores and its latency. It is not quality.

::

    proxy = 0.40 average relevance + 0.25 top result + 0.20 count saturation + 0.15 latency term

Every term lies in [0, 1]. A retriever that is sure of itself and fast has a high proxy whether it is right or not; what the
proxy is good for is seeing that something broke: scores that collapse, empty answers, a search that became slow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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
        return 0.0 if score <= 0 else math.nan  # no score is no relevance

    return relevance


def quality_proxy(
    scores: Sequence[float],
    latency_ms: float | None,
    *,
    relevance: Relevance = as_given,
    enough: int = ENOUGH,
    half_ms: float = HALF_MS,
) -> float | None:
    """Return the proxy; None where it cannot be known: no latency, or a score that ``relevance`` cannot place in [0, 1].

    - average relevance: the mean of ``relevance(score)`` over all results; an empty answer has 0, by definition
    - top result: that of the first result; of an empty answer 0
    - count saturation: min(1, results ÷ enough)
    - latency term: half ÷ (half + milliseconds), so 1 at once and ½ at ``half_ms``

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
    average = sum(placed) / len(placed) if placed else 0.0
    top = placed[0] if placed else 0.0
    return round(
        0.40 * average + 0.25 * top + 0.20 * min(1.0, len(placed) / enough) + 0.15 * half_ms / (half_ms + latency_ms), 6
    )
