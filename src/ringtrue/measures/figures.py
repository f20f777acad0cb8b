"""Figures that describe many answers at once: how they came to be, and an agent's memory.

Figures about how answers came to be take Ranking records, whose hits carry the channels they came from. What has one value per
query (Constitutional@k, ImportanceRecall@k, Stale@k …) is in the catalogue and is scored like any other measure; here is what
compares or summarises. If nothing was observed there is no figure: the value is nan, never 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError
from ringtrue.measures.lists import share
from ringtrue.measures.scoring import Answers, Judgments, as_run, score
from ringtrue.records import Floats, GoldenSet, Ranking


@dataclass(frozen=True)
class Contribution:
    """What one channel brought: its share of the final hits, and the share that no other channel had."""

    rate: float
    unique_rate: float
    hits: int


def channel_contribution(rankings: Iterable[Ranking], *, k: int | None = None) -> dict[str, Contribution]:
    """Return what each channel contributed to the final hits.

    >>> from ringtrue.records import Hit
    >>> hits = Hit("a", channels={"bm25": 1}), Hit("b", channels={"bm25": 2, "dense": 1})
    >>> found = channel_contribution([Ranking("q", hits)])
    >>> found["bm25"].rate, found["bm25"].unique_rate, found["dense"].rate
    (1.0, 0.5, 0.5)
    """
    hits = [hit for ranking in rankings for hit in ranking.hits[:k]]
    seen = Counter(name for hit in hits for name in hit.channels)
    alone = Counter(name for hit in hits for name in hit.channels if len(hit.channels) == 1)
    return {name: Contribution(seen[name] / len(hits), alone[name] / len(hits), seen[name]) for name in sorted(seen)}


def fusion_reorder_rate(rankings: Iterable[Ranking], *, k: int | None = None) -> float:
    """Return the share of final hits whose final rank differs from their best channel rank; nan without channel ranks."""
    moved = [
        rank != min(hit.channels.values())
        for ranking in rankings
        for rank, hit in enumerate(ranking.hits[:k], 1)
        if hit.channels
    ]
    return share(sum(moved), len(moved))


def expansion_impact(
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
    relevant: Mapping[str, Collection[str]] | None = None,
) -> float:
    """Return the share of documents found only after expansion; with ``relevant``, of the relevant documents found after it."""
    wanted = {
        query_id: set(documents) if relevant is None else set(documents) & set(relevant.get(query_id, ()))
        for query_id, documents in after.items()
    }
    new = sum(len(found - set(before.get(query_id, ()))) for query_id, found in wanted.items())
    return share(new, sum(map(len, wanted.values())))


@dataclass(frozen=True)
class Latency:
    """Latency in milliseconds over the answers that have one."""

    count: int
    mean: float
    p50: float
    p95: float
    p99: float


def latency(values: Iterable[float | None]) -> Latency:
    """Return mean and percentiles of latencies; a stage is described by passing its own values.

    >>> latency([10.0, 20.0, None]).p50
    15.0
    """
    known = np.array([value for value in values if value is not None], np.float64)
    if not len(known):
        return Latency(0, math.nan, math.nan, math.nan, math.nan)
    p50, p95, p99 = (float(value) for value in np.percentile(known, [50, 95, 99]))
    return Latency(len(known), float(known.mean()), p50, p95, p99)


def error_rate(rankings: Iterable[Ranking]) -> float:
    """Return the share of queries that ended in an error; nan when nothing was asked."""
    failed = [ranking.error is not None for ranking in rankings]
    return share(sum(failed), len(failed))


def error_rate_by(rankings: Iterable[Ranking], facts: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, float]:
    """Return the error rate for each value of a query fact, such as its intent."""
    groups: dict[str, list[Ranking]] = {}
    for ranking in rankings:
        value = facts.get(ranking.query_id, {}).get(name)
        groups.setdefault("(none)" if value is None else str(value), []).append(ranking)
    return {value: error_rate(members) for value, members in sorted(groups.items())}


@dataclass(frozen=True)
class Abstention:
    """How well a memory knows when to say nothing; precision and recall are those of silence."""

    precision: float
    recall: float
    f1: float
    silent: int
    negative: int
    silent_rate: float


def abstention(answers: Answers, negative: Collection[str], queries: Collection[str]) -> Abstention:
    """Return how silence and the queries that deserve silence agree; ``queries`` are all queries that were asked.

    >>> found = abstention({"a": [], "b": ["d1"]}, negative={"a"}, queries={"a", "b"})
    >>> found.precision, found.recall, found.silent_rate
    (1.0, 1.0, 0.5)
    """
    shown = as_run(answers).rankings(k=1)
    silent = {query_id for query_id in queries if not shown.get(query_id)}
    deserved = set(negative) & set(queries)
    right = len(silent & deserved)
    precision, recall = share(right, len(silent)), share(right, len(deserved))
    f1 = share(2 * right, len(silent) + len(deserved))
    return Abstention(precision, recall, f1, len(silent), len(deserved), share(len(silent), len(queries)))


@dataclass(frozen=True)
class RiskCoverage:
    """The error among answered queries as more of them are answered, most confident first."""

    coverage: tuple[float, ...]
    risk: tuple[float, ...]
    area: float


def risk_coverage(confidence: Sequence[float], correct: Sequence[bool]) -> RiskCoverage:
    """Return the risk–coverage curve; queries of equal confidence are answered together, so their order cannot matter."""
    sure, right = _paired(confidence, correct)
    if not len(sure):
        return RiskCoverage((), (), math.nan)
    order = np.argsort(-sure, kind="stable")
    answered = np.arange(1, len(sure) + 1)
    risk = np.cumsum(~right[order]) / answered
    last_of_level = np.append(np.diff(sure[order]) != 0, True)
    coverage, risk = (answered / len(sure))[last_of_level], risk[last_of_level]
    width = np.diff(np.concatenate(([0.0], coverage)))
    return RiskCoverage(tuple(coverage.tolist()), tuple(risk.tolist()), float((risk * width).sum()))


@dataclass(frozen=True)
class Bin:
    """Answers of similar confidence: how sure they were and how often they were right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """Expected calibration error, Brier score and the reliability bins behind them."""

    ece: float
    brier: float
    bins: tuple[Bin, ...]


def calibration(confidence: Sequence[float], correct: Sequence[bool], *, bins: int = 10) -> Calibration:
    """Return how far confidence and truth agree.

    >>> calibration([0.9, 0.9, 0.1, 0.1], [True, True, False, False]).ece
    0.1
    """
    if bins < 1:
        raise InputError(f"bins={bins} is too few; use a whole number above 0")
    sure, right = _paired(confidence, correct)
    if not len(sure):
        return Calibration(math.nan, math.nan, ())
    if sure.min() < 0 or sure.max() > 1:
        outside = float(sure[(sure < 0) | (sure > 1)][0])
        raise InputError(f"confidence {outside!r} is not between 0 and 1; scale confidences to probabilities first")
    place = np.minimum((sure * bins).astype(np.int64), bins - 1)
    found = []
    for index in np.unique(place).tolist():
        here = place == index
        means = float(sure[here].mean()), float(right[here].mean())
        found.append(Bin(index / bins, (index + 1) / bins, int(here.sum()), *means))
    error = sum(group.count * abs(group.confidence - group.accuracy) for group in found) / len(sure)
    return Calibration(round(error, 12), float(((sure - right) ** 2).mean()), tuple(found))


def cold_queries(golden: GoldenSet) -> set[str]:
    """Return the queries that a set marks as the first of a session, by the category ``cold-start``."""
    return {query.query_id for query in golden.queries if query.metadata.get("category") == "cold-start"}


@dataclass(frozen=True)
class ColdStart:
    """Mean reciprocal rank of first questions beside that of later ones; the ratio should be at least 0.70."""

    cold: float
    warm: float
    ratio: float


def cold_start(answers: Answers, qrels: Judgments, cold: Collection[str], *, rel: int | None = None) -> ColdStart:
    """Return MRR over the cold queries, over the others, and their ratio (nan if either is not defined)."""
    scores = score(answers, qrels, ["RR"], rel=rel)
    values = list(zip(scores.query_ids, scores.of("RR").tolist(), strict=True))
    first, later = (_mean(value for name, value in values if (name in cold) == is_cold) for is_cold in (True, False))
    return ColdStart(first, later, share(first, later))


def personalisation_lift(with_session: Answers, without: Answers, qrels: Judgments, *, rel: int | None = None) -> float:
    """Return MRR with the session boost minus MRR without it."""
    return score(with_session, qrels, ["RR"], rel=rel)["RR"] - score(without, qrels, ["RR"], rel=rel)["RR"]


def dedup_token_savings(withheld: Iterable[str], tokens: Mapping[str, int]) -> int:
    """Return the tokens saved by items that were withheld because the session already had them."""
    withheld = list(withheld)
    unknown = next((doc_id for doc_id in withheld if doc_id not in tokens), None)
    if unknown is not None:
        raise InputError(f"the token count of withheld item '{unknown}' is not known; count it first")
    return sum(tokens[doc_id] for doc_id in withheld)


def _paired(confidence: Sequence[float], correct: Sequence[bool]) -> tuple[Floats, NDArray[np.bool_]]:
    sure, right = np.asarray(confidence, np.float64), np.asarray(correct, np.bool_)
    if len(sure) != len(right):
        raise InputError(f"{len(sure)} confidences for {len(right)} outcomes; give one of each per answer")
    if np.isnan(sure).any():
        raise InputError("a confidence is not a number; leave answers without confidence out and report them apart")
    return sure, right


def _mean(values: Iterable[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return share(sum(defined), len(defined))
