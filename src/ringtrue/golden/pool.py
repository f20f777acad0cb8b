"""Depth-k pools over several systems: what is to be judged, and who brought it (G-9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ringtrue.errors import InputError
from ringtrue.records import Qrels, Run

DEPTH = 100


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


Pairs = set[tuple[str, str]]


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
