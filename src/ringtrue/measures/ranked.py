"""The ranked measures: one short function each, from judged hits to one number per query.

Every function takes the aligned hits and its own options and returns a float per query; nan means that the value is not
defined for that query (there is nothing relevant to find, or nothing came back). What an undefined value does to a mean is
decided in one other place, ``score``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError
from ringtrue.measures.align import Aligned
from ringtrue.records import Floats

INFAP_EPSILON = 1e-5  # trec_eval's smoothing of inferred AP
GEOMETRIC_FLOOR = 1e-5  # trec_eval's floor below which an AP does not count as smaller
EXPONENTIAL_LIMIT = 1000  # a sum of gains of higher grades would leave the range of a float


def _within(hits: Aligned, k: int | None) -> NDArray[np.bool_]:
    return np.ones(len(hits.rank), np.bool_) if k is None else hits.rank <= k


def _found(hits: Aligned, k: int | None, rel: int) -> NDArray[np.bool_]:
    return _within(hits, k) & (hits.grade >= rel)


def _ratio(part: Floats, whole: Floats) -> Floats:
    """Return part ÷ whole, nan if the whole is 0."""
    ratio = np.full(len(whole), np.nan)
    np.divide(part, whole, out=ratio, where=whole > 0)
    return ratio


def number_returned(hits: Aligned, *, k: int | None) -> Floats:
    return np.asarray(hits.returned if k is None else np.minimum(hits.returned, k), np.float64)


def precision(hits: Aligned, *, k: int, rel: int) -> Floats:
    return hits.count(_found(hits, k, rel)) / k


def set_precision(hits: Aligned, *, k: int | None, rel: int) -> Floats:
    return _ratio(hits.count(_found(hits, k, rel)), number_returned(hits, k=k))


def recall(hits: Aligned, *, k: int | None, rel: int) -> Floats:
    return _ratio(hits.count(_found(hits, k, rel)), hits.relevant(rel))


def f1(hits: Aligned, *, k: int | None, rel: int) -> Floats:
    found = hits.count(_found(hits, k, rel))
    size = hits.returned.astype(np.float64) if k is None else np.full(len(found), float(k))
    relevant = hits.relevant(rel)
    # 2PR ÷ (P + R) with P = found ÷ size and R = found ÷ relevant, without dividing by zero on the way.
    return np.where(relevant > 0, 2 * found / np.maximum(size + relevant, 1), np.nan)


def success(hits: Aligned, *, k: int, rel: int) -> Floats:
    hit = (hits.count(_found(hits, k, rel)) > 0).astype(np.float64)
    return np.where(hits.relevant(rel) > 0, hit, np.nan)


def all_relevant(hits: Aligned, *, k: int | None, rel: int) -> Floats:
    relevant = hits.relevant(rel)
    complete = (hits.count(_found(hits, k, rel)) >= relevant).astype(np.float64)
    return np.where(relevant > 0, complete, np.nan)


def reciprocal_rank(hits: Aligned, *, k: int | None, rel: int) -> Floats:
    found = _found(hits, k, rel)
    first = found & (hits.so_far(found) == 1)
    value = hits.total(np.where(first, 1.0 / hits.rank, 0.0))
    return np.where(hits.relevant(rel) > 0, value, np.nan)


def average_precision(hits: Aligned, *, k: int | None, rel: int) -> Floats:
    found = _found(hits, k, rel)
    at_hit = np.where(found, hits.so_far(found) / hits.rank, 0.0)
    return _ratio(hits.total(at_hit), hits.relevant(rel))


def geometric_average_precision(hits: Aligned, *, rel: int) -> Floats:
    """AP with trec_eval's floor; the geometric mean is taken where the other means are."""
    return np.maximum(average_precision(hits, k=None, rel=rel), GEOMETRIC_FLOOR)


def _gain(grade: NDArray[np.int64], gain: str, rel: int | None) -> Floats:
    value = np.maximum(grade, 0).astype(np.float64)
    if gain == "exp":
        highest = int(grade.max(initial=0))
        if highest > EXPONENTIAL_LIMIT:
            raise InputError(f"grade {highest} is too large for gain='exp' (2^grade − 1); use gain='lin' or a smaller scale")
        value = np.exp2(value) - 1.0
    return value if rel is None else np.where(grade >= rel, value, 0.0)


def _dcg_at(rank: NDArray[np.int64], gain: Floats, k: int | None) -> Floats:
    discounted = gain / np.log2(rank + 1.0)
    return discounted if k is None else np.where(rank <= k, discounted, 0.0)


def dcg(hits: Aligned, *, k: int | None, gain: str, rel: int | None) -> Floats:
    return hits.total(_dcg_at(hits.rank, _gain(hits.grade, gain, rel), k))


def ndcg(hits: Aligned, *, k: int | None, gain: str, rel: int | None) -> Floats:
    ideal = hits.judged_total(_dcg_at(hits.ideal_rank, _gain(hits.judged_grade, gain, rel), k))
    return _ratio(dcg(hits, k=k, gain=gain, rel=rel), ideal)


def r_precision(hits: Aligned, *, rel: int) -> Floats:
    relevant = hits.relevant(rel)
    found = (hits.grade >= rel) & (hits.rank <= relevant[hits.query])
    return _ratio(hits.count(found), relevant)


def bpref(hits: Aligned, *, rel: int) -> Floats:
    found = hits.grade >= rel
    nonrelevant_above = hits.so_far((hits.grade >= 0) & ~found).astype(np.float64)
    relevant = hits.relevant(rel)
    nonrelevant = hits.judged_count(hits.judged_grade < rel)
    here = relevant[hits.query]
    bound = np.maximum(np.minimum(here, nonrelevant[hits.query]), 1.0)
    worth = 1.0 - np.minimum(nonrelevant_above, here) / bound
    return _ratio(hits.total(np.where(found, worth, 0.0)), relevant)


def inferred_ap(hits: Aligned, *, rel: int) -> Floats:
    found = hits.grade >= rel
    pooled = hits.grade < 0
    relevant_above = hits.so_far(found) - 1.0
    judged_above = relevant_above + hits.so_far((hits.grade >= 0) & ~found)
    depth = hits.rank - 1.0
    safe = np.maximum(depth, 1.0)
    expected = (
        (depth / hits.rank)
        * ((judged_above + hits.so_far(pooled)) / safe)
        * ((relevant_above + INFAP_EPSILON) / (judged_above + 2 * INFAP_EPSILON))
    )
    at_hit = np.where(depth == 0, 1.0, 1.0 / hits.rank + expected)
    return _ratio(hits.total(np.where(found, at_hit, 0.0)), hits.relevant(rel))


def rank_biased_precision(hits: Aligned, *, p: float, k: int | None, rel: int | None) -> Floats:
    """Graded gains are scaled by the query's highest judged grade, as in trec_eval; with ``rel`` the gain is 0 or 1."""
    if rel is None:
        highest = np.ones(len(hits.query_ids))
        np.maximum.at(highest, hits.judged_query, hits.judged_grade)
        gain = np.maximum(hits.grade, 0) / highest[hits.query]
    else:
        gain = (hits.grade >= rel).astype(np.float64)
    value = (1.0 - p) * hits.total(np.where(_within(hits, k), gain * p ** (hits.rank - 1.0), 0.0))
    return np.minimum(value, 1.0)  # rounding alone can lift a perfect answer above 1


def rbp_residual(hits: Aligned, *, p: float, k: int | None) -> Floats:
    """What RBP could still gain: every unjudged document shown, and everything below the end of the list."""
    judged = _within(hits, k) & (hits.grade >= 0)
    open_part = 1.0 - (1.0 - p) * hits.total(np.where(judged, p ** (hits.rank - 1.0), 0.0))
    # Rounding can leave a hair below 0. A query that the run lacks scores 0 by rule: nothing is open about it.
    return np.where(hits.answered, np.maximum(open_part, 0.0), 0.0)


def expected_reciprocal_rank(hits: Aligned, *, k: int | None, top: int | None) -> Floats:
    highest = hits.top_grade if top is None else top
    # (2^grade − 1) ÷ 2^highest, written so that a scale of 0 to 100 or 0 to 5000 does not overflow.
    stop = np.exp2(np.clip(hits.grade, 0, highest) - float(highest)) - np.exp2(-float(highest))
    ordinal = hits.so_far(np.ones(len(hits.query), np.bool_))
    by_step = np.argsort(ordinal, kind="stable")
    reached = np.ones(len(hits.query_ids))
    value = np.zeros(len(hits.query_ids))
    # Step by step down all lists at once: each step holds a query at most once, and a query's value cannot depend on
    # the rounding of another's.
    for rows in np.split(by_step, np.flatnonzero(np.diff(ordinal[by_step])) + 1):
        query = hits.query[rows]
        inside = np.ones(len(rows), np.bool_) if k is None else hits.rank[rows] <= k
        value[query] += np.where(inside, stop[rows] * reached[query] / hits.rank[rows], 0.0)
        reached[query] *= 1.0 - stop[rows]
    return value


def judged_share(hits: Aligned, *, k: int) -> Floats:
    return _ratio(hits.count(_within(hits, k) & (hits.grade >= 0)), number_returned(hits, k=k))


def interpolated_precision(hits: Aligned, *, level: float, rel: int) -> Floats:
    """The best precision at any point where at least this share of the relevant documents has been seen."""
    found = hits.grade >= rel
    relevant = hits.relevant(rel)
    seen = hits.so_far(found)
    needed = np.floor(level * relevant + 0.5)  # trec_eval 10 rounds to the nearest; version 9 added 0.9
    at_hit = np.where(found & (seen >= needed[hits.query]), seen / hits.rank, 0.0)
    best = np.zeros(len(relevant))
    np.maximum.at(best, hits.query, at_hit)
    return np.where(relevant > 0, best, np.nan)


def number_relevant_returned(hits: Aligned, *, k: int | None, rel: int) -> Floats:
    return hits.count(_found(hits, k, rel))


def number_of_queries(hits: Aligned) -> Floats:
    return np.ones(len(hits.query_ids))
