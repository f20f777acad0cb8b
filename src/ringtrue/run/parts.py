"""How the parts of a retriever did, read off the lists of the one pass that was observed; nobody is asked again.

Each part is scored as if it stood alone. A channel alone is its candidate list, cut at k; the fusion and every step after
it are what they returned; leaving a channel out is the fusion's own rule over the lists with that one empty. What a step would
have made of the rest is not known, so ``without bm25`` compares with the fusion, not with the pipeline.

A relevant document that is missing at k is blamed on a stage: the last one that got it within the first k and let it go.
One that never was among the first k is the fusion's loss if a channel had it, and lies below k if there was only one list. But
a step that drops a document before another one puts the hits into a new order is to blame however far down it stood: it
took away the chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise

from ringtrue.errors import InputError
from ringtrue.measures import Contribution, Measure, latency, score
from ringtrue.records import GoldenSet, Hit, Query, Ranking
from ringtrue.retrieve import Fused, Fusion, Listed, Retriever, Seen, Staged, Stepped, StepResult
from ringtrue.run.evaluation import Component, ComponentKind, Loss, LossStage
from ringtrue.run.named import mapped

CHUNK = ":chunk:"
"""Stands between document and number in the name of a chunk."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A list that a fusion drew from."""

    name: str
    """Unique in the tree: its written text, behind those of the channels it is part of."""
    family: str | None
    """Equal for the channels of one fusion; None for what steps inside a channel began with."""
    seen: Seen


def core_of(seen: Seen) -> tuple[Listed | Fused, tuple[StepResult, ...]]:
    """Return what stands before the first step, and all steps."""
    if isinstance(seen, Stepped):
        core, steps = core_of(seen.base)
        return core, (*steps, *seen.steps)
    return seen, ()


def unique(names: Sequence[str]) -> list[str]:
    """Return the names with a number behind those that were there before.

    >>> unique(["bm25", "dense", "bm25"])
    ['bm25', 'dense', 'bm25 (2)']
    """
    found: list[str] = []
    for name in names:
        numbered = (name if number == 1 else f"{name} ({number})" for number in count(1))
        found.append(next(shown for shown in numbered if shown not in found))
    return found


def channels_of(seen: Seen, family: str = "") -> Iterator[Channel]:
    """Yield every channel of a tree, those inside another channel before it; none if nothing is fused."""
    core, _ = core_of(seen)
    if isinstance(core, Fused):
        for name, channel in zip(unique([channel.name for channel in core.channels]), core.channels, strict=True):
            inside = f"{family}{name}: "
            yield from channels_of(channel, inside)
            base, steps = core_of(channel)
            if steps and isinstance(base, Listed):
                yield Channel(inside + base.name, None, base)
            yield Channel(family + name, family, channel)


@dataclass(slots=True)
class Part:
    """The answers of one part."""

    kind: ComponentKind
    rankings: list[Ranking] = field(default_factory=list)


def component_rankings(
    retriever: Retriever, seen: Mapping[str, Seen], *, k: int, id_of: Callable[[str], str] = str
) -> dict[str, Part]:
    """Return the answers of every part by its name: channels, fusion, leave-one-out, then each step.

    ``seen`` is what was observed of ``retriever``, by query; ``id_of`` turns its ids into those of the set. Empty if the
    retriever has no parts; raises InputError if the trees are those of another retriever.
    """
    if not isinstance(retriever, Fusion | Staged):
        return {}
    base: object = retriever
    while isinstance(base, Staged):
        base = base.base
    fusion = base if isinstance(base, Fusion) else None
    parts: dict[str, Part] = {}
    for query_id, tree in seen.items():
        rows = list(_rows(fusion, query_id, tree, k))
        for name, (_, kind, hits, ms) in zip(unique([row[0] for row in rows]), rows, strict=True):
            parts.setdefault(name, Part(kind)).rankings.append(Ranking(query_id, mapped(hits[:k], id_of), ms))
    return parts


Row = tuple[str, ComponentKind, Sequence[Hit], float | None]
"""Name, kind, hits and milliseconds of one part for one question."""


def _rows(fusion: Fusion | None, query_id: str, tree: Seen, k: int) -> Iterator[Row]:
    core, steps = core_of(tree)
    own = None if fusion is None else [name for name, _ in fusion.channels]
    other = [channel.name for channel in core.channels] if isinstance(core, Fused) else None
    if own != other:
        raise InputError(
            f"query '{query_id}' was observed with the channels {other}, not with {own}; pass the retriever that answered"
        )
    for channel in channels_of(tree):
        yield channel.name, "channel", channel.seen.hits, channel.seen.ms
    yield core.name, "channel" if isinstance(core, Listed) else "fusion", core.hits, core.ms
    if isinstance(core, Fused) and fusion is not None:
        lists = [channel.hits for channel in core.channels]
        for place, name in enumerate(unique([channel.name for channel in core.channels])):
            # Empty, not gone: the rule's weights go by the place of a list.
            rest = [() if other == place else hits for other, hits in enumerate(lists)]
            yield f"without {name}", "without", fusion.join(core.text, rest, k=k), None
    name, ms = core.name, core.ms
    for step in steps:
        name, ms = f"{name} >> {step.name}", ms + step.ms
        yield name, "stage", step.hits, ms


def components(
    retriever: Retriever,
    golden: GoldenSet,
    measures: Sequence[str | Measure],
    *,
    k: int,
    rankings: Iterable[Ranking],
    seen: Mapping[str, Seen],
    id_of: Callable[[str], str] = str,
    top: int = 10,
) -> tuple[Component, ...]:
    """Return every part of a retriever with its scores; ``()`` for one that has none.

    Scored are the queries of ``golden`` that were answered (``rankings``, in the ids of the set) and observed (``seen``), the
    same for every part. Latency is the time from the question to the part's answer; leaving out is computed afterwards and
    has none.
    """
    answered = {ranking.query_id: ranking for ranking in rankings if ranking.error is None}
    both = answered.keys() & seen.keys()
    trees = {query.query_id: seen[query.query_id] for query in golden.queries if query.query_id in both}
    parts = component_rankings(retriever, trees, k=k, id_of=id_of)
    if not parts:
        return ()
    part_of_golden = golden.part(trees)
    shares = _contributions([answered[query_id] for query_id in trees], trees, top, id_of)
    return tuple(
        Component(
            name,
            part.kind,
            tuple(part.rankings),
            score(part.rankings, part_of_golden, measures),
            shares.get(name),
            None if part.kind == "without" else latency(ranking.latency_ms for ranking in part.rankings),
        )
        for name, part in parts.items()
    )


def _contributions(
    final: Sequence[Ranking], trees: Mapping[str, Seen], k: int, id_of: Callable[[str], str]
) -> dict[str, Contribution]:
    """Return what each channel brought to the first k hits: those among its own first k.

    'Alone' means that no other channel of its fusion had the hit there.

    Which channel had a hit is read off the lists: a channel may call itself otherwise than the expression does, and two may
    share a name.
    """
    total, had, alone = Counter[str](), Counter[str](), Counter[str]()
    for ranking in final:
        first = [hit.doc_id for hit in ranking.hits[:k]]
        families: dict[str, dict[str, set[str]]] = {}
        for channel in channels_of(trees[ranking.query_id]):
            if channel.family is not None:
                own = {hit.doc_id for hit in mapped(channel.seen.hits, id_of)[:k]}
                families.setdefault(channel.family, {})[channel.name] = own.intersection(first)
        for lists in families.values():
            times = Counter(doc_id for own in lists.values() for doc_id in own)
            for name, own in lists.items():
                total[name] += len(first)
                had[name] += len(own)
                alone[name] += sum(times[doc_id] == 1 for doc_id in own)
    return {name: Contribution(had[name] / hits, alone[name] / hits, had[name]) for name, hits in total.items() if hits}


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
            found = way.rank(ranking.hits, item.name)
            missing = found is None or found > k
            stage = way.stage(item, in_corpus) if missing else way.wrong_chunk(item, query) if chunks else None
            if stage is not None:
                losses.append(Loss(query.query_id, item.doc_id, item.grade, stage, k, found, way.ranks(item.name)))
    return tuple(losses)


def relevant_total(golden: GoldenSet, rankings: Iterable[Ranking]) -> int:
    """Return how many relevant documents the answered queries have, interchangeable ones counted once."""
    return sum(len(items) for _, _, items in _wanted(golden, rankings))


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
        found: tuple[Listed | Fused | None, tuple[StepResult, ...]] = core_of(tree) if tree is not None else (None, ())
        self.core, self.steps = found
        if tree is not None and list(self._places(tree.hits)) != list(self._places(final.hits)):
            # Something that cannot be looked into, a user's function around the pipeline, made the answer from its hits.
            self.steps = (*self.steps, StepResult("answer", final.hits, 0.0, len(tree.hits)))

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

    def stage(self, item: _Item, in_corpus: Callable[[str], bool] | None) -> LossStage:
        """Return the stage that lost it."""
        lost = None if self.core is None else self._lost(self.core, self.steps, item.name, self.k)
        if lost is not None:
            return lost
        if self.rank(self.final.hits, item.name) is not None:
            return "below k"
        return "not in any list" if in_corpus is None or any(map(in_corpus, item.members)) else "not in corpus"

    def _lost(self, core: Listed | Fused, steps: Sequence[StepResult], name: str, k: int) -> LossStage | None:
        """Return the stage that lost what is not among the first ``k`` after the last step; None if no list has it."""
        reordered = False
        before = [core.hits, *(step.hits for step in steps)]
        for step, hits in reversed(list(zip(steps, before, strict=False))):
            dropped = self.rank(step.hits, name) is None and len(step.hits) < min(step.asked, len(hits))
            within = self._places(hits).get(name, k + 1) <= k
            if dropped and (within or (reordered and self.rank(hits, name) is not None)):
                return "cut by threshold"
            if within:
                return "demoted by rerank"
            # Whether hits that stayed stand in another order than before.
            places, kept = self._places(hits), pairwise(self._places(step.hits))
            reordered = reordered or any(places.get(above, 0) > places.get(below, 0) for above, below in kept)
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
