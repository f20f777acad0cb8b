"""The queries that people judge, drawn at random from all queries: what makes an estimate from them valid."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ringtrue.errors import InputError

FEWEST = 15
"""With fewer judged queries an interval rests on the shape of the values more than on the values."""


@dataclass(frozen=True)
class QuerySample:
    """Queries drawn at random from a population, for people to judge."""

    query_ids: tuple[str, ...]
    size: int
    """How many queries the population has."""
    population: str
    """Hash of the ids of all queries; an estimate for other queries is refused."""
    seed: int
    strata: Mapping[str, Hashable] = field(default_factory=lambda: MappingProxyType({}))
    """The stratum of every query of the population; empty if the sample is not stratified."""


def draw_sample(
    query_ids: Iterable[str], count: int, *, seed: int = 0, strata: Mapping[str, Hashable] | None = None
) -> QuerySample:
    """Return a random sample of queries, the same for the same queries and seed.

    With ``strata`` (the stratum of each query, such as its type), every stratum gets its share of the sample, and at least two
    queries. Raises InputError if an id is repeated, the sample is smaller than 15 queries or as large as the population, a
    query has no stratum, or a stratum has fewer than three queries.

    >>> sample = draw_sample([f"q{n}" for n in range(300)], 40, seed=7)
    >>> len(sample.query_ids), sample.size
    (40, 300)
    """
    everyone = list(query_ids)
    ids = sorted(set(everyone))
    if len(ids) < len(everyone):
        repeated = next(one for one in ids if everyone.count(one) > 1)
        raise InputError(f"query '{repeated}' is listed {everyone.count(repeated)} times; list every query once")
    if not FEWEST <= count < len(ids):
        raise InputError(f"cannot draw {count} of {len(ids)} queries; draw at least {FEWEST} and fewer than all of them")
    missing = [one for one in ids if strata is not None and one not in strata]
    if missing:
        raise InputError(f"query '{missing[0]}' has no stratum; give one for each of the {len(ids)} queries")
    named = {one: strata[one] for one in ids} if strata else {}
    rng = np.random.default_rng(seed)
    drawn: list[str] = []
    for members, share in _shares(ids, count, named):
        drawn += (members[place] for place in rng.choice(len(members), share, replace=False))
    return QuerySample(tuple(sorted(drawn)), len(ids), population_hash(ids), seed, MappingProxyType(named))


def population_hash(query_ids: Iterable[str]) -> str:
    """Return a hash of the ids of a population, whatever their order.

    >>> population_hash(["b", "a"]) == population_hash(["a", "b"])
    True
    """
    return hashlib.sha256("\n".join(sorted(query_ids)).encode()).hexdigest()[:16]


def _shares(ids: list[str], count: int, strata: Mapping[str, Hashable]) -> Iterable[tuple[list[str], int]]:
    """Yield the queries of each stratum with how many of them to draw: in proportion, by largest remainder."""
    groups: dict[str, list[str]] = {}
    for one in ids:
        groups.setdefault(str(strata.get(one, "")), []).append(one)
    small = next((name for name, members in groups.items() if strata and len(members) < 3), None)
    if small is not None:
        raise InputError(f"stratum '{small}' has only {len(groups[small])} of the queries; join it with another, to 3 or more")
    if count < 2 * len(groups):
        raise InputError(f"{count} queries cannot cover {len(groups)} strata twice; draw {2 * len(groups)} or join strata")
    exact = {name: count * len(members) / len(ids) for name, members in groups.items()}
    shares = {name: max(2, int(share)) for name, share in exact.items()}
    while sum(shares.values()) != count:
        step = 1 if sum(shares.values()) < count else -1
        free = [name for name in shares if 2 <= shares[name] + step < max(3, len(groups[name]))]
        name = max(free, key=lambda one: (step * (exact[one] - shares[one]), one))
        shares[name] += step
    return [(members, shares[name]) for name, members in sorted(groups.items())]
