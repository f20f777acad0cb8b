"""Weights of a fusion, learned from judged queries.

Every combination of weights on a grid is tried on the answers the channels already gave; the best by nDCG@10 wins, among
equals the one nearest to equal weights. What is learned on one part of a golden set has to be confirmed on the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ringtrue.errors import InputError
from ringtrue.measures import score
from ringtrue.records import GoldenSet, Hit, Ranking
from ringtrue.retrieve import fuse
from ringtrue.retrieve.builders import build
from ringtrue.retrieve.documents import DocumentStore
from ringtrue.retrieve.protocol import answer_all
from ringtrue.spec import Expression, parse

MEASURE = "nDCG@10"
NORM, DEPTH, STEPS = "z", 50, 20
Answers = Mapping[str, Sequence[Sequence[Hit]]]
"""Query id → the answer of every channel."""


@dataclass(frozen=True)
class Learned:
    """Weights with what they reach on the queries they were learned from."""

    expression: Expression
    weights: tuple[float, ...]
    value: float


def answers_of(channels: Sequence[str], collection: DocumentStore, golden: GoldenSet) -> dict[str, list[Sequence[Hit]]]:
    """Return every channel's answer to every query of a set that asks for something."""
    asking = replace(golden, queries=tuple(query for query in golden.queries if not query.negative))
    found: dict[str, list[Sequence[Hit]]] = {query.query_id: [] for query in asking.queries}
    for channel in channels:
        for answer in answer_all(build(channel, collection), asking, k=DEPTH):
            found[answer.query_id].append(answer.hits)
    return found


def learn(channels: Sequence[str], answers: Answers, golden: GoldenSet) -> Learned:
    """Return the weights that reach most on the queries of ``golden``; raises InputError for fewer than two channels."""
    if len(channels) < 2:
        raise InputError(f"weights of {len(channels)} channel cannot be learned; name two or more")
    mine = {query.query_id: answers[query.query_id] for query in golden.queries if query.query_id in answers}
    if not mine:
        raise InputError("no query of the set was answered; search it first")
    even = 1 / len(channels)
    tried = {weights: reached(mine, golden, weights) for weights in _grid(len(channels), STEPS)}
    best = max(tried.values())
    weights = min((w for w, found in tried.items() if found == best), key=lambda w: (sum((x - even) ** 2 for x in w), w))
    options = (("depth", DEPTH), ("norm", NORM), ("w", weights))
    return Learned(Expression("weighted", tuple(parse(channel) for channel in channels), options), weights, best)


def reached(answers: Answers, golden: GoldenSet, weights: Sequence[float] | None) -> float:
    """Return nDCG@10 of the fused answers; ``weights`` None stands for plain RRF."""
    runs = []
    for query_id, lists in answers.items():
        scores = fuse.rrf(lists) if weights is None else fuse.weighted(lists, w=weights, norm=NORM, depth=DEPTH)
        order = sorted(sorted(scores, reverse=True), key=lambda doc_id: -scores[doc_id])[:10]
        runs.append(Ranking(query_id, tuple(Hit(doc_id) for doc_id in order)))
    return float(score(runs, golden, [MEASURE])[MEASURE])


def _grid(count: int, steps: int) -> Iterator[tuple[float, ...]]:
    """Yield every share of ``steps`` equal parts among the channels."""
    # Three channels of twenty steps are 231 combinations; more channels get a coarser grid.
    steps = steps if count <= 3 else max(4, steps // (count - 1))
    for parts in product(range(steps + 1), repeat=count):
        if sum(parts) == steps:
            yield tuple(round(part / steps, 4) for part in parts)
