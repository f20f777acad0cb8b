"""What a set can detect, how many queries it lacks, and which judgments would settle most (G-5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ringtrue.golden.pool import named_once
from ringtrue.golden.slices import slice_fields, slice_of
from ringtrue.records import GoldenSet, Run


@dataclass(frozen=True)
class Size:
    """Queries there are and queries needed; ``detectable`` is None when two queries are not there to compare."""

    queries: int
    detectable: float | None
    needed: int

    @property
    def more(self) -> int:
        """How many queries are missing."""
        return max(0, self.needed - self.queries)


@dataclass(frozen=True)
class SliceSize:
    """The size of one slice."""

    field: str
    value: str
    size: Size


@dataclass(frozen=True)
class Candidate:
    """A document nobody judged, with its rank in each run that shows it; the heavier, the more a judgment changes."""

    query_id: str
    doc_id: str
    weight: float
    ranks: Mapping[str, int]


@dataclass(frozen=True)
class Plan:
    """What to do next to a set, and on which assumptions."""

    sd: float
    difference: float
    alpha: float
    power: float
    overall: Size
    slices: tuple[SliceSize, ...]
    unjudged: tuple[Candidate, ...]


def plan(
    golden: GoldenSet,
    *,
    sd: float = 0.15,
    difference: float = 0.05,
    alpha: float = 0.05,
    power: float = 0.80,
    runs: Sequence[Run] = (),
    k: int = 10,
) -> Plan:
    """Return what the set can detect with a paired t test, what it lacks, and which unjudged documents to judge first.

    ``sd`` is the standard deviation of the per-query differences between two systems, ``difference`` the one that
    should not go unnoticed. Queries that should be answered by silence count in no mean and are left out. Raises
    InputError from the power calculation for impossible options.

    >>> from ringtrue.records import Query
    >>> plan(GoldenSet("s", "1.0.0", tuple(Query(f"q{n}", "?") for n in range(15)), ())).overall.more
    58
    """
    from ringtrue.stats import minimum_detectable_effect, paired_sample_size  # scipy costs a second

    needed = paired_sample_size(sd=sd, difference=difference, alpha=alpha, power=power)

    def size(queries: int) -> Size:
        enough = queries >= 2
        effect = minimum_detectable_effect(n=queries, sd=sd, alpha=alpha, power=power) if enough else None
        return Size(queries, effect, needed)

    asked = [query for query in golden.queries if not query.negative]
    slices = []
    for field in slice_fields(golden):
        counts: dict[str, int] = {}
        for query in asked:
            value = slice_of(query, field)
            counts[value] = counts.get(value, 0) + 1
        slices += [SliceSize(field, value, size(count)) for value, count in counts.items()]
    unjudged = worth_judging(golden, runs, k=k) if runs else ()
    return Plan(sd, difference, alpha, power, size(len(asked)), tuple(slices), unjudged)


def worth_judging(golden: GoldenSet, runs: Sequence[Run], *, k: int = 10) -> tuple[Candidate, ...]:
    """Return the unjudged documents in the top ``k`` of the runs, those that would move the comparison most first.

    The weight of a document is the largest difference between the discounts 1 / log2(rank + 1) that the runs give
    it, 0 where a run does not show it: if it were relevant, a comparison would move by that much gain. A document that
    all runs rank alike has weight 0, since judging it cannot change who wins.
    """
    named_once(runs)
    known = {query.query_id for query in golden.queries}
    judged = {(judgment.query_id, judgment.doc_id) for judgment in golden.judgments}
    ranks: dict[tuple[str, str], dict[str, int]] = {}
    for run in runs:
        for query_id, answer in run.rankings(k=k).items():
            for rank, doc_id in enumerate(answer, 1):
                if query_id in known and (query_id, doc_id) not in judged:
                    ranks.setdefault((query_id, doc_id), {})[run.name] = rank
    found = [Candidate(query, doc, _weight(seen, len(runs)), seen) for (query, doc), seen in ranks.items()]
    return tuple(sorted(found, key=lambda candidate: (-candidate.weight, candidate.query_id, candidate.doc_id)))


def _weight(ranks: Mapping[str, int], runs: int) -> float:
    discounts = [1 / math.log2(rank + 1) for rank in ranks.values()]
    # A lone run has nothing to differ from: what counts is then how much of its own score hangs on the document.
    lowest = min(discounts) if len(discounts) == runs and runs > 1 else 0.0
    return max(discounts) - lowest
