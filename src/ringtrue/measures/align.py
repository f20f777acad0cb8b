"""Qrels × Run → the few facts every ranked measure is made of.

A run of seven million rows touches perhaps ten thousand judged documents. Measures need only those: at which rank each
judged document stands, how many documents came back, and what could have come back. So the join happens once, here, and
each measure is then a handful of vector operations over short arrays. Sums run in one fixed order, which keeps results
bit-identical from run to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError
from ringtrue.id_columns import Ints, Keys
from ringtrue.records import Floats, Order, Qrels, Run

Flags = NDArray[np.bool_]
_STEP = 1 << 16
"""Rows looked at in one go where all of them pass: few enough to stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Aligned:
    """Judged hits sorted by (query, rank), the judgments sorted by (query, grade descending), and counts per query.

    A grade below 0 marks a document that was pooled but not judged, as in trec_eval.
    """

    query_ids: tuple[str, ...]
    query: Ints
    rank: Ints
    grade: Ints
    returned: Ints
    answered: Flags
    judged_query: Ints
    judged_grade: Ints
    top_grade: int
    duplicates: int = 0
    ignored_queries: int = 0
    tied_cutoffs: tuple[tuple[int, int], ...] = ()

    def count(self, hits: Flags) -> Floats:
        """Return how many of these hits each query has."""
        return self.total(hits.astype(np.float64))

    def total(self, values: Floats) -> Floats:
        """Return the sum of a value per hit, for each query."""
        return np.bincount(self.query, weights=values, minlength=len(self.query_ids)).astype(np.float64)

    def so_far(self, hits: Flags) -> Ints:
        """Return, at every hit, how many of these hits its query has up to and including it."""
        counted = np.cumsum(hits)
        before = np.concatenate(([0], counted))[self.first_hit]
        return np.asarray(counted - before[self.query], np.int64)

    def judged_count(self, chosen: Flags) -> Floats:
        """Return how many of these judgments each query has."""
        return np.bincount(self.judged_query[chosen], minlength=len(self.query_ids)).astype(np.float64)

    def relevant(self, rel: int) -> Floats:
        """Return the number of relevant documents each query has, retrieved or not."""
        return self.judged_count(self.judged_grade >= rel)

    def judged_total(self, values: Floats) -> Floats:
        """Return the sum of a value per judgment, for each query."""
        return np.bincount(self.judged_query, weights=values, minlength=len(self.query_ids)).astype(np.float64)

    @cached_property
    def first_hit(self) -> Ints:
        """The position of each query's first hit."""
        return np.searchsorted(self.query, np.arange(len(self.query_ids)))

    @cached_property
    def ideal_rank(self) -> Ints:
        """The rank every judgment would have in the ideal answer."""
        first = np.searchsorted(self.judged_query, np.arange(len(self.query_ids)))
        return np.arange(len(self.judged_query)) - first[self.judged_query] + 1

    def condensed(self) -> Aligned:
        """Return the same answers with every unjudged document taken out and the list closed up."""
        kept = self.grade >= 0
        thin = replace(self, query=self.query[kept], rank=self.rank[kept], grade=self.grade[kept])
        ones = np.ones(len(thin.query), np.bool_)
        return replace(thin, rank=thin.so_far(ones), returned=thin.count(ones).astype(np.int64))

    def optimistic(self, depth: int | None) -> Aligned:
        """Return the same answers as if every unjudged document down to ``depth`` had the highest grade."""
        shown = self.returned if depth is None else np.minimum(self.returned, depth)
        query = np.repeat(np.arange(len(self.query_ids)), shown)
        first = np.concatenate(([0], np.cumsum(shown)[:-1])) if len(shown) else shown
        rank = np.arange(len(query)) - first[query] + 1
        grade = np.full(len(query), self.top_grade)
        known = (self.rank <= shown[self.query]) & (self.grade >= 0)
        spot = first[self.query[known]] + self.rank[known] - 1
        grade[spot] = self.grade[known]
        unjudged = np.ones(len(query), np.bool_)
        unjudged[spot] = False
        judged_query = np.concatenate((self.judged_query, query[unjudged]))
        judged_grade = np.concatenate((self.judged_grade, grade[unjudged]))
        order = np.lexsort((-judged_grade, judged_query))
        return replace(
            self, query=query, rank=rank, grade=grade, judged_query=judged_query[order], judged_grade=judged_grade[order]
        )


def align(
    run: Run, qrels: Qrels, *, depth: int | None = None, cutoffs: tuple[int, ...] = (), top_grade: int | None = None
) -> Aligned:
    """Return the judged hits of ``run``, each document once at its best rank, ties broken as the run says."""
    place = {query_id: index for index, query_id in enumerate(qrels.query_ids)}
    to_qrels = np.array([place.get(query_id, -1) for query_id in run.query_ids], np.int64)
    rows, judged_rows, keys = _matches(run, qrels)
    matters = np.zeros(len(run), np.bool_)
    matters[rows] = True
    shape = _RunLayout.of(run, run.order_where(matters), keys)
    rank = shape.rank(rows)
    # A repeated document matches its judgment more than once; only its best place is a hit.
    hit = rank > 0
    lengths = shape.lengths
    if depth is not None:
        hit &= rank <= depth
        lengths = np.minimum(lengths, depth)
    known = to_qrels >= 0
    returned = np.zeros(len(qrels.query_ids), np.int64)
    returned[to_qrels[known]] = lengths[known]
    answered = np.zeros(len(qrels.query_ids), np.bool_)
    answered[to_qrels[known]] = True
    answered[[place[query_id] for query_id in run.answered if query_id in place]] = True

    query, rank, grade = qrels.query[judged_rows[hit]], rank[hit], qrels.grade[judged_rows[hit]]
    by_query = np.lexsort((rank, query))
    judged = qrels.grade >= 0
    best_first = np.lexsort((-qrels.grade[judged], qrels.query[judged]))
    return Aligned(
        query_ids=qrels.query_ids,
        query=query[by_query],
        rank=rank[by_query],
        grade=grade[by_query],
        returned=returned,
        answered=answered,
        judged_query=qrels.query[judged][best_first],
        judged_grade=qrels.grade[judged][best_first],
        top_grade=max(1, int(qrels.grade.max(initial=1))) if top_grade is None else top_grade,
        duplicates=len(shape.repeats),
        ignored_queries=int((~known).sum()) + sum(query_id not in place for query_id in run.answered),
        tied_cutoffs=() if run.ordered else shape.ties_across(known, cutoffs),
    )


@dataclass(frozen=True, eq=False)
class _RunLayout:
    """Where the answers of each query lie among the sorted rows, and which rows repeat a document."""

    run: Run
    order: Order
    starts: Ints
    counts: Ints
    repeats: Ints
    """Sorted positions (not rows) of repeated documents."""

    @classmethod
    def of(cls, run: Run, order: Order, keys: Keys) -> _RunLayout:
        counts = np.zeros(len(run.query_ids), np.int64)
        for at in range(0, len(run), 1 << 20):  # in parts, because counting copies what it counts
            counts += np.bincount(run.query[at : at + (1 << 20)], minlength=len(counts))
        starts = np.cumsum(counts) - counts
        return cls(run, order, starts, counts, _repeats(run, keys, order, starts))

    @property
    def lengths(self) -> Ints:
        """The number of different documents per query of the run."""
        if not len(self.repeats):
            return self.counts
        return self.counts - np.bincount(
            np.searchsorted(self.starts, self.repeats, side="right") - 1, minlength=len(self.counts)
        )

    def rank(self, rows: Ints) -> Ints:
        """Return the rank of each row in its query with repeats closed up; 0 for a row that is itself a repeat."""
        position = self.order.place_of(rows)
        start = self.starts[self.run.query[rows]]
        rank = position - start + 1
        if not len(self.repeats):
            return rank
        above = np.searchsorted(self.repeats, position) - np.searchsorted(self.repeats, start)
        return np.where(np.isin(position, self.repeats), 0, rank - above)

    def ties_across(self, known: Flags, cutoffs: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
        """Return (cut-off, number of queries) wherever equal scores lie on both sides of a cut-off."""
        found = []
        score = self.run.score
        for cutoff in cutoffs:
            queries = np.flatnonzero(known & (self.lengths > cutoff))
            inside, outside = self._row_at(queries, cutoff), self._row_at(queries, cutoff + 1)
            tied = int((score[inside] == score[outside]).sum())
            if tied:
                found.append((cutoff, tied))
        return tuple(found)

    def _row_at(self, queries: Ints, rank: int) -> Ints:
        """Return the row at this rank of each query; every query must be that long."""
        position = self.starts[queries] + rank - 1
        if len(self.repeats):
            first = np.searchsorted(self.repeats, self.starts[queries])
            while True:  # every repeat above pushes the wanted row one further down, which may pass another repeat
                pushed = self.starts[queries] + rank - 1 + np.searchsorted(self.repeats, position, side="right") - first
                if (pushed == position).all():
                    break
                position = pushed
        return self.order.row_at(position)


def _matches(run: Run, qrels: Qrels) -> tuple[Ints, Ints, Keys]:
    """Return matching rows of run and qrels, every match confirmed on the ids, and the keys of the run's rows."""
    keys = run.docs.pair_keys(run.query_ids, run.query)
    wanted = run.docs.keys_of([qrels.query_ids[index] for index in qrels.query.tolist()], qrels.doc_ids)
    order = np.argsort(wanted, kind="stable")
    wanted = wanted[order]
    # A table of the low bits turns almost every row away with one look-up; only the rest pay for a binary search.
    mask = np.uint64((1 << max(16, min(24, len(wanted).bit_length() + 5))) - 1)
    seen = np.zeros(int(mask) + 1, np.bool_)
    seen[(wanted & mask).view(np.int64)] = True
    rows = np.concatenate(
        [np.flatnonzero(seen[(keys[at : at + _STEP] & mask).view(np.int64)]) + at for at in range(0, len(keys), _STEP)]
        or [np.zeros(0, np.int64)]
    )
    spot = np.searchsorted(wanted, keys[rows])
    inside = spot < len(wanted)
    rows, spot = rows[inside], spot[inside]
    equal = wanted[spot] == keys[rows]
    rows, spot = rows[equal], spot[equal]
    ids = run.docs.take(rows)
    run_rows, judged_rows = [], []
    for row, at, doc_id in zip(rows.tolist(), spot.tolist(), ids, strict=True):
        query_id, key = run.query_ids[run.query[row]], wanted[at]
        # Two pairs with one 64-bit key are next to impossible; next to is not good enough, so walk on while keys equal.
        while at < len(wanted) and wanted[at] == key:
            judged = int(order[at])
            if qrels.doc_ids[judged] == doc_id and qrels.query_ids[qrels.query[judged]] == query_id:
                run_rows.append(row)
                judged_rows.append(judged)
                break
            at += 1
    return np.array(run_rows, np.int64), np.array(judged_rows, np.int64), keys


def _repeats(run: Run, keys: Keys, order: Order, starts: Ints) -> Ints:
    """Return the positions, in rank order, of rows that repeat a document of their query."""
    parts = (np.sort(part) for part in _by_queries(keys, order, starts))
    suspects = np.concatenate([part[1:][part[1:] == part[:-1]] for part in parts] or [keys])
    if not len(suspects):
        return np.zeros(0, np.int64)
    all_rows = order.rows()
    positions = np.flatnonzero(np.isin(keys[all_rows], suspects))
    rows = all_rows[positions]
    seen: set[tuple[int, str]] = set()
    repeats: list[int] = []
    for position, query, doc_id in zip(positions.tolist(), run.query[rows].tolist(), run.docs.take(rows), strict=True):
        if (query, doc_id) in seen:
            repeats.append(position)
        seen.add((query, doc_id))
    return np.array(repeats, np.int64)


def _by_queries(keys: Keys, order: Order, starts: Ints) -> Iterator[Keys]:
    """Yield the keys in parts that hold whole queries; a part that fits the cache sorts several times as fast as all."""
    if order.base is not None:
        yield keys
        return
    at = 0
    while at < len(keys):
        following = int(np.searchsorted(starts, at + _STEP))
        end = int(starts[following]) if following < len(starts) else len(keys)
        yield keys[at:end]
        at = end


def class_names(classes: tuple[tuple[str, ...], ...]) -> dict[str, str]:
    """Return the name under which every member of a class is counted."""
    names: dict[str, str] = {}
    for members in classes:
        for member in members:
            if names.setdefault(member, members[0]) != members[0]:
                raise InputError(f"document '{member}' is in two equivalence classes; join the classes")
    return names


def merge_classes(run: Run, qrels: Qrels, classes: tuple[tuple[str, ...], ...]) -> tuple[Run, Qrels]:
    """Return run and qrels in which interchangeable documents are one: the class has the best grade of its members."""
    name_of = class_names(classes)
    if not name_of:
        return run, qrels
    best: dict[tuple[str, str], int] = {}
    for query_id, doc_id, grade in qrels:
        pair = query_id, name_of.get(doc_id, doc_id)
        best[pair] = max(grade, best.get(pair, grade))
    merged = Qrels.of((query_id, doc_id, grade) for (query_id, doc_id), grade in best.items())
    return run.map_documents(name_of), merged.with_queries(qrels.query_ids)
