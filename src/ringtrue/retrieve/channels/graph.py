"""Neighbours of what another retriever finds, along the links that documents' metadata declare.

A link is written under one of the names in ``EDGES``, which is then its type, as the id of the other document, a list of ids,
or a list of ``{"to": id, "type": type}`` where the type is said in place::

    {"links": ["spa", {"to": "boiler", "type": "depends_on"}], "supersedes": "pool-2023"}

A neighbour's score is the best, over all walks of at most ``hops`` links from another document that the source found at
``rank``, of ``decay`` ^ links ÷ (60 + rank): ranks instead of scores, because they compare across all sources, and the 60 of
reciprocal rank fusion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringtrue.errors import InputError, nearest
from ringtrue.records import Hit
from ringtrue.retrieve.documents import DocumentStore, inside
from ringtrue.retrieve.index import CachedView
from ringtrue.retrieve.observe import unobserved
from ringtrue.retrieve.protocol import Retriever, Scope, check_k, finite_number, from_channel, ranked, whole_number

EDGES = (
    "links", "related", "causes", "caused_by", "leads_to", "supports", "contradicts", "supersedes", "superseded_by",
    "depends_on", "references",
)  # fmt: skip
"""The metadata fields that hold links; the field is the link's type unless the link says another."""
DIRECTIONS = ("both", "out", "in")
FARTHEST = 10
DEPTH = 50
_RANK_CONSTANT = 60


@dataclass(frozen=True)
class _Links:
    """The graph as it is walked: every document's neighbours, and the metadata of all that have one."""

    ids: frozenset[str]
    neighbours: Mapping[str, tuple[str, ...]]
    metadata: Mapping[str, Mapping[str, Any]]


class Graph:
    """What is linked to the hits of ``source``; these hits themselves come only where another of them leads to them.

    ``edges`` admits links of these types (all unless given); ``direction`` walks them ``out`` as written, ``in`` backwards,
    or both. A scope holds for every document on the way. ``depth`` is how many hits of the source are started from.
    """

    def __init__(
        self,
        source: Retriever,
        collection: DocumentStore,
        *,
        edges: Sequence[str] = (),
        hops: int = 1,
        decay: float = 0.5,
        depth: int = DEPTH,
        direction: str = "both",
        name: str = "graph",
    ) -> None:
        if isinstance(edges, str):
            raise InputError(f"graph cannot have edges={edges!r}; write a list of types, like ['causes', 'related']")
        if whole_number("graph", "hops", hops) > FARTHEST:
            raise InputError(f"graph cannot have hops={hops!r}; use a whole number from 1 to {FARTHEST}")
        if direction not in DIRECTIONS:
            raise InputError(f"graph cannot have direction={direction!r}; use {nearest(str(direction), DIRECTIONS)}")
        self.source, self.collection, self.name = source, collection, name
        self.edges = frozenset(edges)
        self.hops, self.direction = hops, direction
        self.decay = finite_number("graph", "decay", decay, low=0, high=1, above=True)
        self.depth = whole_number("graph", "depth", depth)
        self._links = CachedView(collection, self._read)

    @property
    def parts(self) -> list[Retriever]:
        """The retriever whose hits it starts from."""
        return [self.source]

    def _read(self) -> _Links:
        metadata = self.collection.metadata()
        types = set(EDGES)
        wanted: set[tuple[str, str]] = set()
        for doc_id, facts in metadata.items():
            for kind, target in _links_of(doc_id, facts):
                types.add(kind)
                if (not self.edges or kind in self.edges) and target in metadata and target != doc_id:
                    wanted.add((doc_id, target))
        for kind in sorted(self.edges):
            if kind not in types and metadata:
                raise InputError(
                    f"graph: no document has a link of type '{kind}'; did you mean {nearest(kind, sorted(types))}?"
                )
        if self.direction != "out":
            backwards = {(target, doc_id) for doc_id, target in wanted}
            wanted = backwards if self.direction == "in" else wanted | backwards
        # In which order links are walked changes nothing: the best score counts, and ids break ties.
        neighbours: dict[str, list[str]] = {}
        for doc_id, target in wanted:
            neighbours.setdefault(doc_id, []).append(target)
        reached = {target: metadata[target] for _, target in wanted}
        walked = {doc_id: tuple(targets) for doc_id, targets in neighbours.items()}
        return _Links(frozenset(metadata), walked, reached)

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        check_k(k)
        scope = self.collection.check_scope(scope) or None
        with unobserved():  # the hits it starts from are not candidates
            found = self.source.search(text, k=self.depth, scope=scope)
        links = self._links()
        ranks = {hit.doc_id: rank for rank, hit in enumerate(found, 1)}
        if ranks and links.ids.isdisjoint(ranks):
            raise InputError(
                f"graph: the collection has none of the {len(ranks)} documents the source found, such as '{found[0].doc_id}'; "
                "give it a source over the same documents"
            )
        return from_channel(self.name, ranked(self._walk(ranks, links, scope).items(), k=k))

    def _walk(self, ranks: Mapping[str, int], links: _Links, scope: Scope | None) -> dict[str, float]:
        best: dict[str, float] = {}
        # Each document carries the two best ranks that lead to it in so many links: where one is its own, the other counts.
        here: dict[str, tuple[int, ...]] = {doc_id: (rank,) for doc_id, rank in ranks.items()}
        for hop in range(1, self.hops + 1):
            there: dict[str, tuple[int, ...]] = {}
            for doc_id, starts in here.items():
                for neighbour in links.neighbours.get(doc_id, ()):
                    known = there.get(neighbour)
                    if known is None:
                        there[neighbour] = starts
                    elif known != starts and (len(known) < 2 or starts[0] < known[1]):
                        there[neighbour] = tuple(sorted({*known, *starts})[:2])
            here = {doc_id: starts for doc_id, starts in there.items() if not scope or inside(links.metadata[doc_id], scope)}
            for doc_id, starts in here.items():
                others = [rank for rank in starts if rank != ranks.get(doc_id)]
                if others:
                    score = self.decay**hop / (_RANK_CONSTANT + others[0])
                    best[doc_id] = max(best.get(doc_id, 0.0), score)
        return best


def _links_of(doc_id: str, facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the (type, target) of every link a document declares; raises InputError for what is none."""
    for field in EDGES:
        value = facts.get(field)
        for link in value if isinstance(value, list | tuple) else [] if value is None else [value]:
            kind, target = (link.get("type", field), link.get("to")) if isinstance(link, Mapping) else (field, link)
            if isinstance(target, bool) or not isinstance(target, str | int) or not isinstance(kind, str):
                raise InputError(
                    f"graph: the {field} of document '{doc_id}' hold {link!r:.60}; write an id or {{'to': id, 'type': type}}"
                )
            yield kind, str(target)
