"""What a set can detect, how many queries it lacks, and which documents to judge: plans (G-5) and depth-k pools (G-9)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ringtrue.errors import InputError
from ringtrue.golden.splitting import slice_fields, slice_of
from ringtrue.records import GoldenSet, Qrels, Run

DEPTH = 100
Pairs = set[tuple[str, str]]


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


@dataclass(frozen=True)
class Contribution:
    """What one run brought to the pool; ``unjudged_share`` is None when there are no judgments or no answers."""

    run: str
    total: int
    unique: int
    unjudged_share: float | None


@dataclass(frozen=True)
class Pool:
    """The documents to judge per query, what each run brought, and what makes the pool unfair."""

    depth: int
    pairs: Mapping[str, tuple[str, ...]]
    contributions: tuple[Contribution, ...]
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return sum(len(documents) for documents in self.pairs.values())


def pool(runs: Sequence[Run], qrels: Qrels | None = None, *, depth: int = DEPTH) -> Pool:
    """Return the union of the runs' top ``depth``, per query in order of the best rank any run gave.

    Raises InputError for a depth below 1, no run at all, or two runs of one name.

    >>> a = Run.from_rankings({"q1": ["d1", "d2"]}, name="a")
    >>> b = Run.from_rankings({"q1": ["d2", "d3"]}, name="b")
    >>> pool([a, b]).pairs
    {'q1': ('d1', 'd2', 'd3')}
    """
    if depth < 1:
        raise InputError(f"a pool of depth {depth} holds nothing; choose 1 or more")
    if not runs:
        raise InputError("a pool needs at least one run; give the runs of the systems to compare")
    named_once(runs)
    best: dict[str, dict[str, int]] = {}
    mine: dict[str, set[tuple[str, str]]] = {run.name: set() for run in runs}
    for run in runs:
        for query_id, answer in run.rankings(k=depth).items():
            ranks = best.setdefault(query_id, {})
            for rank, doc_id in enumerate(answer, 1):
                ranks[doc_id] = min(rank, ranks.get(doc_id, rank))
                mine[run.name].add((query_id, doc_id))
    pairs = {query: tuple(sorted(ranks, key=lambda doc: (ranks[doc], doc))) for query, ranks in best.items()}
    # A negative grade means pooled but not judged (Qrels), so it does not count as a judgment here.
    judged = {(query, doc) for query, doc, grade in qrels if grade >= 0} if qrels is not None else None
    contributions, warnings = [], []
    for run in runs:
        others = set().union(*(found for name, found in mine.items() if name != run.name))
        unique = mine[run.name] - others
        contributions.append(_contribution(run.name, mine[run.name], unique, judged))
        warnings += _warnings(run.name, mine[run.name], unique, judged, depth)
    return Pool(depth, pairs, tuple(contributions), tuple(warnings))


def named_once(runs: Sequence[Run]) -> None:
    """Raise InputError when two runs share a name, because what is said about one would be read as the other's."""
    names = [run.name for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two runs are called '{twice}'; give each run a name of its own")


def _contribution(name: str, found: Pairs, unique: Pairs, judged: Pairs | None) -> Contribution:
    share = len(found - judged) / len(found) if judged is not None and found else None
    return Contribution(name, len(found), len(unique), share)


def _warnings(name: str, found: Pairs, unique: Pairs, judged: Pairs | None, depth: int) -> list[str]:
    if not found:
        return [f"run '{name}' contributed nothing to the pool: it has no answers; leave it out or run it again"]
    if judged is not None and unique and not unique & judged:
        return [
            f"run '{name}' contributed nothing to the judgments: none of the {len(unique)} documents that only it "
            f"shows in its top {depth} is judged, so its scores are a lower bound; judge its part of the pool"
        ]
    return []
