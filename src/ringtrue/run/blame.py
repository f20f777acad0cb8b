"""Which stage lost a relevant document that is missing at k (E-4), read off the lists that were observed.

The step to blame is the last one that got the document within the first k and let it go. One that never was among the first k
is the fusion's loss where a channel had it, and lies below k where there was only one list. But a step that drops a document
before another one puts the hits into a new order is to blame however far down the document stood: it took away the chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

from ringtrue.records import GoldenSet, Hit, Query, Ranking
from ringtrue.retrieve import Done, Fused, Listed, Seen
from ringtrue.run.components import channels_of, core_of, unique
from ringtrue.run.evaluation import Loss, LossStage

CHUNK = ":chunk:"
"""Stands between document and number in the name of a chunk."""
RELEVANT, FOUND = "relevant", "found"
_ON_THE_WAY: tuple[LossStage, ...] = (
    "not in corpus", "not in any list", "below k", "cut by fusion", "demoted by rerank", "cut by threshold", "wrong chunk",
)  # fmt: skip
assert set(_ON_THE_WAY) == set(get_args(LossStage))


@dataclass(frozen=True, slots=True)
class _Item:
    """A relevant document, or a class of interchangeable ones, under the first one's id."""

    name: str
    doc_id: str
    """The member that was judged best."""
    grade: int
    members: tuple[str, ...]


def blame(
    golden: GoldenSet,
    rankings: Iterable[Ranking],
    *,
    k: int,
    seen: Mapping[str, Seen] | None = None,
    in_corpus: Callable[[str], bool] | None = None,
    id_of: Callable[[str], str] = str,
    chunks: bool = True,
) -> tuple[Loss, ...]:
    """Return every relevant document that is missing from the first ``k`` hits, with the stage that lost it.

    Looked at are answered queries that have relevant documents; ``seen`` is what was observed of their answers, where the
    retriever has parts. ``in_corpus`` tells whether a document can be found at all; ``id_of`` turns the retriever's ids into
    those of the set, in which ``rankings`` already are. A document whose declared chunk is not the one that was found counts
    as lost, too, where ``chunks`` says that both number them alike.

    >>> from ringtrue.records import Judgment
    >>> golden = GoldenSet("tiny", "1.0.0", (Query("q", "swim"),), (Judgment("q", "pool", 3),))
    >>> [loss.stage for loss in blame(golden, [Ranking("q", (Hit("spa"), Hit("pool")))], k=1)]
    ['below k']
    """
    names = _names(golden)
    losses = []
    for query, ranking, items in _wanted(golden, rankings):
        way = _Way((seen or {}).get(query.query_id), ranking, names, id_of, k)
        for item in items:
            stage = way.stage(item, in_corpus) if way.missing(item) else way.wrong_chunk(item, query) if chunks else None
            if stage is not None:
                found = way.rank(ranking.hits, item.name)
                losses.append(Loss(query.query_id, item.doc_id, item.grade, stage, k, found, way.ranks(item.name)))
    return tuple(losses)


def relevant_total(golden: GoldenSet, rankings: Iterable[Ranking]) -> int:
    """Return how many relevant documents the answered queries have, interchangeable ones counted once."""
    return sum(len(items) for _, _, items in _wanted(golden, rankings))


def waterfall(losses: Iterable[Loss], relevant: int) -> dict[str, int]:
    """Return how many documents are relevant, how many each stage lost, and how many are left, in this order.

    >>> [name for name, count in waterfall([Loss("q", "pool", 3, "below k", 5)], 4).items() if count]
    ['relevant', 'below k', 'found']
    """
    counts: dict[str, int] = dict.fromkeys(_ON_THE_WAY, 0)
    for loss in losses:
        counts[loss.stage] += 1
    return {RELEVANT: relevant, **counts, FOUND: relevant - sum(counts.values())}


def _names(golden: GoldenSet) -> dict[str, str]:
    return {member: members[0] for members in golden.equivalence_classes for member in members}


def _wanted(golden: GoldenSet, rankings: Iterable[Ranking]) -> Iterator[tuple[Query, Ranking, list[_Item]]]:
    """Yield each answered query with its answer and what should be in it, the highest grade first."""
    answered = {ranking.query_id: ranking for ranking in rankings if ranking.error is None}
    names, judged = _names(golden), golden.qrels.to_dict()
    classes = {members[0]: members for members in golden.equivalence_classes}
    for query in golden.queries:
        if query.negative or query.query_id not in answered:
            continue
        items: dict[str, _Item] = {}
        for doc_id, grade in sorted(judged.get(query.query_id, {}).items(), key=lambda pair: -pair[1]):
            if grade >= golden.relevance_threshold:
                name = names.get(doc_id, doc_id)
                items.setdefault(name, _Item(name, doc_id, grade, classes.get(name, (doc_id,))))
        yield query, answered[query.query_id], list(items.values())


class _Way:
    """The lists that one query's candidates went through."""

    def __init__(
        self, tree: Seen | None, final: Ranking, names: Mapping[str, str], id_of: Callable[[str], str], k: int
    ) -> None:
        self.tree, self.final, self.names, self.id_of, self.k = tree, final, names, id_of, k
        # Lists by their identity: the tree keeps them for as long as this lives. The answer is in the ids of the set already.
        self._known = {id(final.hits): self._ranked(hit.doc_id for hit in final.hits)}
        self.core: Listed | Fused | None = None
        self.steps: tuple[Done, ...] = ()
        if tree is not None:
            self.core, self.steps = core_of(tree)
        if tree is not None and list(self._places(tree.hits)) != list(self._places(final.hits)):
            # Something that cannot be looked into, a user's function around the pipeline, made the answer from its hits.
            self.steps = (*self.steps, Done("answer", final.hits, 0.0, len(tree.hits)))

    def _ranked(self, doc_ids: Iterable[str]) -> dict[str, int]:
        """Return the rank of everything in a list, each document (or class) once, as measures count."""
        places: dict[str, int] = {}
        for doc_id in doc_ids:
            places.setdefault(self.names.get(doc_id, doc_id), len(places) + 1)
        return places

    def _places(self, listed: Sequence[Hit] | Sequence[str]) -> dict[str, int]:
        known = self._known.get(id(listed))
        if known is None:
            known = self._ranked(self.id_of(entry.doc_id if isinstance(entry, Hit) else entry) for entry in listed)
            self._known[id(listed)] = known
        return known

    def rank(self, listed: Sequence[Hit] | Sequence[str], name: str) -> int | None:
        return self._places(listed).get(name)

    def _within(self, listed: Sequence[Hit], name: str, k: int) -> bool:
        return self._places(listed).get(name, k + 1) <= k

    def missing(self, item: _Item) -> bool:
        return not self._within(self.final.hits, item.name, self.k)

    def stage(self, item: _Item, in_corpus: Callable[[str], bool] | None) -> LossStage:
        """Return the stage that lost it."""
        lost = None if self.core is None else self._lost(self.core, self.steps, item.name, self.k)
        if lost is None and self.rank(self.final.hits, item.name) is not None:
            lost = "below k"
        if lost is not None:
            return lost
        return "not in any list" if in_corpus is None or any(map(in_corpus, item.members)) else "not in corpus"

    def _lost(self, core: Listed | Fused, steps: Sequence[Done], name: str, k: int) -> LossStage | None:
        """Return the stage that lost what is not among the first ``k`` after the last step; None where no list has it."""
        reordered = False
        before = [core.hits, *(step.hits for step in steps)]
        for step, hits in reversed(list(zip(steps, before, strict=False))):
            dropped = self.rank(step.hits, name) is None and len(step.hits) < min(step.asked, len(hits))
            within = self._within(hits, name, k)
            if dropped and (within or (reordered and self.rank(hits, name) is not None)):
                return "cut by threshold"
            if within:
                return "demoted by rerank"
            reordered = reordered or self._reordered(hits, step.hits)
        if isinstance(core, Listed):
            return None if self.rank(core.hits, name) is None else "below k"
        if self.rank(core.order, name) is not None:
            return "cut by fusion"
        # No channel gave it to the fusion; one that is made of parts may have lost it inside.
        for channel in core.channels:
            inner, later = core_of(channel)
            stage = self._lost(inner, later, name, later[-1].asked if later else len(inner.hits))
            if stage is not None:
                return stage
        return None

    def _reordered(self, before: Sequence[Hit], after: Sequence[Hit]) -> bool:
        """Tell whether hits that stayed stand in another order than before."""
        places = self._places(before)
        return any(places.get(above, 0) > places.get(below, 0) for above, below in pairwise(self._places(after)))

    def wrong_chunk(self, item: _Item, query: Query) -> LossStage | None:
        """Return the blame where the set declares a chunk of this document, and another of its chunks was found."""
        declared = query.metadata.get("top_1_chunk")
        if not isinstance(declared, str) or CHUNK not in declared:
            return None
        document = declared.split(CHUNK)[0] + CHUNK
        hit = self._hit(item.name)
        if hit is None or hit.chunk is None:
            return None
        ours = hit.doc_id + CHUNK == document and hit.chunk.startswith(document)
        return "wrong chunk" if ours and hit.chunk != declared else None

    def _hit(self, name: str) -> Hit | None:
        return next((hit for hit in self.final.hits if self.names.get(hit.doc_id, hit.doc_id) == name), None)

    def ranks(self, name: str) -> dict[str, int]:
        """Return its rank in every list that has it, in the order of the way."""
        if self.tree is None or self.core is None:
            hit = self._hit(name)
            return {} if hit is None else {stage.name: stage.rank for stage in hit.stages}
        lists: list[tuple[str, Sequence[Hit] | Sequence[str]]] = [
            (channel.name, channel.seen.hits) for channel in channels_of(self.tree)
        ]
        lists.append((self.core.name, self.core.order if isinstance(self.core, Fused) else self.core.hits))
        lists += [(step.name, step.hits) for step in self.steps]
        places = zip(unique([label for label, _ in lists]), (self.rank(listed, name) for _, listed in lists), strict=True)
        return {label: place for label, place in places if place is not None}
