"""Which search a project's quality is told of: the one that is served, on the golden set of its baseline (O-3, V-2).

Whoever tries another search, or another set, does not want to be told that production has become worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringtrue.errors import InputError
from ringtrue.golden import parse_version
from ringtrue.store import DEFAULT_PROJECT, StoredResult

if TYPE_CHECKING:
    from ringtrue.store import Store
    from ringtrue.store.records import KeptVersion

LOOKED_AT = 100
"""Newest results among which the pair is looked for."""
STANDARDS = 5
"""Baselines that are looked at, by name, the last saved first."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A search and the golden set that it is measured with, whatever its version."""

    retriever: str
    """As results name it; '' where they do not."""
    golden: str

    def has(self, row: StoredResult) -> bool:
        """True for a result of this search on this set."""
        from ringtrue.retrieve import same_search

        return set_name(row.golden) == self.golden and same_search(row.retriever or "", self.retriever)


def of_production(one: StoredResult) -> bool:
    """True for a result about production: neither a candidate's nor one on a golden set that was only uploaded."""
    return not one.uploaded and (one.feature_id is None or (one.run_type == "shadow" and one.control_run_id is None))


def production_pair(store: Store, *, project: str = DEFAULT_PROJECT, served: str | None = None) -> Pair | None:
    """Return what a project's quality is told of; None where nothing was evaluated.

    That is the search that is ``served``, else that of the baseline, on the golden set of the baseline; without a baseline the
    served search on the set it is evaluated with most; where it never was, whatever is evaluated most, and of equals the last.
    """
    from ringtrue.retrieve import same_search

    rows = [row for row in store.results(project=project, limit=LOOKED_AT) if of_production(row)]
    standards = list(_standards(store, project))
    if served is not None:
        standards.sort(key=lambda one: not same_search(one.retriever, served))
        for standard in standards:
            if any(Pair(served, standard.golden).has(row) for row in rows):
                return Pair(served, standard.golden)
    for standard in standards:
        if any(standard.has(row) for row in rows):
            return standard
    # What stood beside a candidate in its shadow may have been replaced by it since.
    rows = [row for row in rows if row.run_type != "shadow"] or rows
    ours = [row for row in rows if served is not None and same_search(row.retriever or "", served)]
    return _most_evaluated(ours or rows)


def _standards(store: Store, project: str) -> Iterator[Pair]:
    newest: dict[str, KeptVersion] = {}
    for one in sorted(store.baselines(project=project), key=lambda one: one.created_at, reverse=True):
        newest.setdefault(one.name, one)
    for one in list(newest.values())[:STANDARDS]:
        row = store.baseline(one.name, one.version, project=project)
        golden = None if row is None else row.content.get("golden")
        if row is not None and isinstance(golden, Mapping):  # one of means alone says nothing of where they come from
            yield Pair(str(row.content.get("retriever", "")), set_name(str(golden.get("version", ""))))


def _most_evaluated(rows: Iterable[StoredResult]) -> Pair | None:
    counts = Counter(Pair(row.retriever or "", set_name(row.golden)) for row in rows)
    # The first of equals is the newest, as the rows are.
    return max(counts, key=lambda pair: counts[pair], default=None)


def set_name(golden: str | None) -> str:
    """Return the name of a golden set without its version: a new version takes the place of the old one."""
    try:
        return parse_version(golden or "").name
    except InputError:
        return golden or ""
