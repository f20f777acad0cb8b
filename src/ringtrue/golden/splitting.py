"""Tuning and held-out parts of a set, and the ledger of who looked at the held-out one (G-4).

A query's side follows from a hash of its id and the seed, not from a random state or its position. Within a stratum
the queries with the smallest hashes are held out, as many as the stratum's share. Adding a query therefore moves others
only where it pushes the edge between the sides: at most one query per stratum. Pass the sides of an earlier split as
``fixed`` and nothing moves at all, which is what a set that was tuned on needs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ringtrue.errors import InputError, nearest
from ringtrue.formats import field_of, read_jsonl
from ringtrue.golden.likeness import pairs_of
from ringtrue.records import GoldenSet, Query

Side = Literal["tuning", "held_out"]
LEDGER = "held-out-looks.jsonl"
ALWAYS_HELD_OUT_FROM = 5
USUAL = ("query_type", "category", "dimension", "intent", "practice_area", "corpus", "kind")
NO_VALUE = "(none)"


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
    fixed: Mapping[str, Side] | None = None,
) -> tuple[GoldenSet, GoldenSet]:
    """Return (tuning, held-out): the same documents, the queries and judgments divided by stratum.

    ``by`` is the metadata field to stratify by, the set's first slice field unless given ('query_type' where there is
    one). Shares are rounded by largest remainder; a stratum of five or more always has one held out. Raises InputError
    for a share outside 0 to 1, a field that no query has, or a fixed side that does not exist.

    >>> from ringtrue.records import Query
    >>> queries = tuple(Query(f"q{n}", f"question {n}") for n in range(10))
    >>> [len(part.queries) for part in split(GoldenSet("s", "1.0.0", queries, ()))]
    [8, 2]
    """
    if not 0 < held_out < 1:
        raise InputError(f"held_out={held_out} is not a share; write a number between 0 and 1 like 0.2")
    sides = dict(fixed or {})
    for query_id, side in sides.items():
        if side not in ("tuning", "held_out"):
            raise InputError(f"query '{query_id}' is fixed to '{side}'; write {nearest(side, ('tuning', 'held_out'))}")
    strata = _strata(golden, by)
    quotas = _quotas({name: len(queries) for name, queries in strata.items()}, held_out)
    chosen: set[str] = set()
    for name, queries in strata.items():
        kept = {query.query_id for query in queries if sides.get(query.query_id) == "held_out"}
        free = sorted((q.query_id for q in queries if q.query_id not in sides), key=lambda query_id: _order(query_id, seed))
        chosen |= kept | set(free[: max(0, quotas[name] - len(kept))])
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


def _order(query_id: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}\0{query_id}".encode("utf-8", "surrogatepass")).digest()


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
    marked = [_marked(query, "t") for query in tuning.queries] + [_marked(query, "h") for query in held_out.queries]
    return tuple(
        Leak(pair.first[1:], pair.second[1:], pair.similarity)
        for pair in pairs_of(marked, scope=tuning.scope)
        if (pair.first[0], pair.second[0]) == ("t", "h")
    )


def _marked(query: Query, mark: str) -> Query:
    return replace(query, query_id=mark + query.query_id)


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
            raise InputError(f"a look at the held-out part needs '{name}'; say it")
    path = Path(ledger)
    path.parent.mkdir(parents=True, exist_ok=True)
    row = {"who": who, "what": what, "when": when} | ({"version": version} if version else {})
    # One short write in append mode, so that two evaluations at the same time both leave their line.
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return looks(path)


def looks(ledger: str | Path) -> int:
    """Return how often the held-out part was looked at; 0 where no ledger exists yet."""
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
