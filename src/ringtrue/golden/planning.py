"""How a set is divided, and what it still needs: its parts and slices, its size, the documents to judge.

**Parts**: the tuning and held-out part of a set, and the ledger of who looked at the held-out one.
A query's side follows from a hash of its id and the seed, not from a random state or its position. Within a stratum
the queries with the smallest hashes are held out, as many as the stratum's share. Adding a query therefore moves others
only where it pushes the edge between the sides: at most one query per stratum.

**Plans**: what a set can detect, how many queries it lacks, and which documents to judge; and depth-k pools.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ringtrue.errors import InputError, nearest
from ringtrue.formats import field_of, read_jsonl
from ringtrue.golden.likeness import pairs_of
from ringtrue.records import GoldenSet, Qrels, Query, Run

Side = Literal["tuning", "held_out"]
LEDGER = "held-out-looks.jsonl"
ALWAYS_HELD_OUT_FROM = 5
USUAL = ("query_type", "category", "dimension", "intent", "practice_area", "corpus", "kind")
NO_VALUE = "(none)"
DEPTH = 100
"""Answers of each run that a pool takes unless told otherwise."""


def slice_fields(golden: GoldenSet) -> tuple[str, ...]:
    """Return the metadata fields by which the set's queries are divided, the most telling first."""
    if golden.slices:
        return golden.slices
    return tuple(name for name in USUAL if any(isinstance(query.metadata.get(name), str) for query in golden.queries))


def slice_of(query: Query, field: str) -> str:
    """Return the slice that a query belongs to in one division."""
    value = query.metadata.get(field)
    return NO_VALUE if value is None else str(value)


def split(
    golden: GoldenSet,
    *,
    held_out: float = 0.2,
    by: str | None = None,
    seed: int = 0,
) -> tuple[GoldenSet, GoldenSet]:
    """Return (tuning, held-out): the same documents, the queries and judgments divided by stratum.

    ``by`` is the metadata field to stratify by, the set's first slice field unless given ('query_type' where there is
    one). Shares are rounded by largest remainder; a stratum of five or more always has one held out. Raises InputError
    for a share outside 0 to 1 or a field that no query has.

    >>> from ringtrue.records import Query
    >>> queries = tuple(Query(f"q{n}", f"question {n}") for n in range(10))
    >>> [len(part.queries) for part in split(GoldenSet("s", "1.0.0", queries, ()))]
    [8, 2]
    """
    if not 0 < held_out < 1:
        raise InputError(f"held_out={held_out} is not a share; write a number between 0 and 1 like 0.2")
    strata = _strata(golden, by)
    quotas = _quotas({name: len(queries) for name, queries in strata.items()}, held_out)
    chosen: set[str] = set()

    def order(query_id: str) -> bytes:
        return hashlib.sha256(f"{seed}\0{query_id}".encode("utf-8", "surrogatepass")).digest()

    for name, queries in strata.items():
        chosen |= set(sorted((query.query_id for query in queries), key=order)[: quotas[name]])
    facts = {"split_seed": seed, "split_share": held_out}
    return _part(golden, "tuning", facts, chosen), _part(golden, "held_out", facts, chosen)


def _strata(golden: GoldenSet, by: str | None) -> dict[str, list[Query]]:
    if by is None:
        by = next(iter(slice_fields(golden)), None)
    elif not any(by in query.metadata for query in golden.queries):
        fields = sorted({name for query in golden.queries for name in query.metadata})
        cure = f"choose {nearest(by, fields)}" if fields else "leave 'by' out"
        raise InputError(f"no query of '{golden.id}' has a field '{by}' to stratify by; {cure}")
    strata: dict[str, list[Query]] = {}
    for query in golden.queries:
        strata.setdefault("" if by is None else slice_of(query, by), []).append(query)
    return strata


def _quotas(sizes: Mapping[str, int], share: float) -> dict[str, int]:
    """Return how many of each stratum are held out, adding up to the share of the whole (largest remainder)."""
    quotas = {name: int(size * share) for name, size in sizes.items()}
    left = round(sum(sizes.values()) * share) - sum(quotas.values())
    by_remainder = sorted(sizes, key=lambda name: (quotas[name] - sizes[name] * share, name))
    for name in by_remainder[: max(0, left)]:
        quotas[name] += 1
    return {name: max(quota, 1) if sizes[name] >= ALWAYS_HELD_OUT_FROM else quota for name, quota in quotas.items()}


def _part(golden: GoldenSet, side: Side, facts: Mapping[str, object], chosen: set[str]) -> GoldenSet:
    mine = {query.query_id for query in golden.queries if (query.query_id in chosen) == (side == "held_out")}
    return replace(
        golden,
        id=f"{golden.id}-{side.replace('_', '-')}",
        queries=tuple(query for query in golden.queries if query.query_id in mine),
        judgments=tuple(judgment for judgment in golden.judgments if judgment.query_id in mine),
        metadata={**golden.metadata, "split": side, **facts},
    )


@dataclass(frozen=True)
class Leak:
    """A query on each side that asks the same."""

    tuning: str
    held_out: str
    similarity: float


def leakage(tuning: GoldenSet, held_out: GoldenSet) -> tuple[Leak, ...]:
    """Return the identical or nearly identical queries that stand on both sides."""
    # Marked apart, because both sides may use the same id.
    sides = (("t", tuning), ("h", held_out))
    marked = [replace(query, query_id=mark + query.query_id) for mark, side in sides for query in side.queries]
    return tuple(
        Leak(pair.first[1:], pair.second[1:], pair.similarity)
        for pair in pairs_of(marked, scope=tuning.scope)
        if (pair.first[0], pair.second[0]) == ("t", "h")
    )


@dataclass(frozen=True)
class Look:
    """One time that somebody measured on the held-out part."""

    who: str
    what: str
    when: str
    version: str = ""


def ledger_beside(source: str | Path) -> Path:
    """Return where the ledger of a set lies: in its folder, or beside its file."""
    path = Path(source)
    return (path if path.is_dir() else path.parent) / LEDGER


def record_look(ledger: str | Path, *, who: str, what: str, when: str, version: str = "") -> int:
    """Write down one look at the held-out part and return how many there have been, this one included."""
    for name, value in (("who", who), ("what", what), ("when", when)):
        if not value.strip():
            raise InputError(f"a look at the held-out part needs '{name}'; pass it")
    path = Path(ledger)
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {"who": who, "what": what, "when": when} | ({"version": version} if version else {})
    # One short write in append mode, so that two evaluations at the same time both leave their line.
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return looks(path)


def looks(ledger: str | Path) -> int:
    """Return how often the held-out part was looked at; 0 if no ledger exists yet."""
    return len(read_looks(ledger))


def read_looks(ledger: str | Path) -> Sequence[Look]:
    """Return the looks at the held-out part, oldest first."""
    if not Path(ledger).exists():
        return ()
    found = []
    for place, row in read_jsonl(ledger):
        who, what, when = (field_of(row, name, str, place) for name in ("who", "what", "when"))
        found.append(Look(who, what, when, field_of(row, "version", str, place, default="")))
    return tuple(found)


# ── plans and pools ─────────────────────────────────────────────────────────────────────────────────────────────────


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
        counts = Counter(slice_of(query, field) for query in asked)
        slices += [SliceSize(field, value, size(count)) for value, count in counts.items()]
    unjudged = worth_judging(golden, runs, k=k) if runs else ()
    return Plan(sd, difference, alpha, power, size(len(asked)), tuple(slices), unjudged)


def worth_judging(golden: GoldenSet, runs: Sequence[Run], *, k: int = 10) -> tuple[Candidate, ...]:
    """Return the unjudged documents in the top ``k`` of the runs, those that would move the comparison most first.

    The weight of a document is the largest difference between the discounts 1 / log2(rank + 1) that the runs give
    it, 0 if a run does not show it: if it were relevant, a comparison would move by that much gain. A document that
    all runs rank alike has weight 0, since judging it cannot change who wins.
    """
    _check_names(runs)
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
class PoolContribution:
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
    contributions: tuple[PoolContribution, ...]
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
    _check_names(runs)
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
        unjudged = len(mine[run.name] - judged) / len(mine[run.name]) if judged is not None and mine[run.name] else None
        contributions.append(PoolContribution(run.name, len(mine[run.name]), len(unique), unjudged))
        if not mine[run.name]:
            said = "the pool: it has no answers; leave it out or run it again"
            warnings.append(f"run '{run.name}' contributed nothing to {said}")
        elif judged is not None and unique and not unique & judged:
            warnings.append(
                f"run '{run.name}' contributed nothing to the judgments: none of the {len(unique)} documents that only it "
                f"shows in its top {depth} is judged, so its scores are a lower bound; judge its part of the pool"
            )
    return Pool(depth, pairs, tuple(contributions), tuple(warnings))


def _check_names(runs: Sequence[Run]) -> None:
    """Raise InputError when two runs share a name, because what is said about one would be read as the other's."""
    names = [run.name for run in runs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two runs are called '{twice}'; give each run a name of its own")
