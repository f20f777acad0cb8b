"""The parts of a retriever, each scored as if it stood alone, on the lists of the one pass that was observed (E-3).

Nobody is asked again. A channel alone is its candidate list, cut at k; the fusion and every step after it are what they
returned; leaving a channel out is the fusion's own rule over the lists with that one empty. What a step would have made of the
rest is not known, so ``without bm25`` compares with the fusion, not with the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ringtrue.errors import InputError
from ringtrue.measures import Contribution, Measure, channel_contribution, latency, score
from ringtrue.records import GoldenSet, Hit, Ranking
from ringtrue.retrieve import Done, Fused, Fusion, Listed, Retriever, Seen, Staged, Stepped
from ringtrue.run.evaluation import Component, ComponentKind
from ringtrue.run.ids import mapped


@dataclass(frozen=True, slots=True)
class Channel:
    """A list that a fusion drew from."""

    name: str
    """Unique in the tree: its written text, behind those of the channels it is part of."""
    family: str | None
    """Equal for the channels of one fusion; None for what steps inside a channel began with."""
    seen: Seen


def core_of(seen: Seen) -> tuple[Listed | Fused, tuple[Done, ...]]:
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
    taken: set[str] = set()
    found = []
    for name in names:
        shown, number = name, 1
        while shown in taken:
            number += 1
            shown = f"{name} ({number})"
        taken.add(shown)
        found.append(shown)
    return found


def channels_of(seen: Seen, family: str = "") -> Iterator[Channel]:
    """Yield every channel of a tree, those inside another channel before it; none where nothing is fused."""
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

    ``seen`` is what was observed of ``retriever``, by query; ``id_of`` turns its ids into those of the set. Empty where the
    retriever has no parts; raises InputError where the trees are those of another retriever.
    """
    if not isinstance(retriever, Fusion | Staged):
        return {}
    fusion = _fusion_of(retriever)
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
    _check(fusion, core, query_id)
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
    asked = [query for query in golden.queries if query.query_id in answered and query.query_id in seen]
    trees = {query.query_id: seen[query.query_id] for query in asked}
    parts = component_rankings(retriever, trees, k=k, id_of=id_of)
    if not parts:
        return ()
    judged = tuple(judgment for judgment in golden.judgments if judgment.query_id in trees)
    part_of_golden = replace(golden, queries=tuple(asked), judgments=judged)
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


def _fusion_of(retriever: object) -> Fusion | None:
    while isinstance(retriever, Staged):
        retriever = retriever.base
    return retriever if isinstance(retriever, Fusion) else None


def _check(fusion: Fusion | None, core: Listed | Fused, query_id: str) -> None:
    own = None if fusion is None else [name for name, _ in fusion.channels]
    other = [channel.name for channel in core.channels] if isinstance(core, Fused) else None
    if own != other:
        raise InputError(
            f"query '{query_id}' was observed with the channels {other}, not with {own}; pass the retriever that answered"
        )


def _contributions(
    final: Sequence[Ranking], trees: Mapping[str, Seen], k: int, id_of: Callable[[str], str]
) -> dict[str, Contribution]:
    """Return what each channel brought to the first k hits: those among its own first k.

    'Alone' means that no other channel of its fusion had the hit there.

    Which channel had a hit is read off the lists: a channel may call itself otherwise than the expression does, and two may
    share a name.
    """
    families: dict[str, list[Ranking]] = {}
    names: dict[str, dict[str, None]] = {}
    for ranking in final:
        own: dict[str, dict[str, dict[str, int]]] = {}
        for channel in channels_of(trees[ranking.query_id]):
            if channel.family is not None:
                ranks = {hit.doc_id: rank for rank, hit in enumerate(mapped(channel.seen.hits, id_of)[:k], 1)}
                own.setdefault(channel.family, {})[channel.name] = ranks
        for family, lists in own.items():
            names.setdefault(family, {}).update(dict.fromkeys(lists))
            hits = [
                replace(hit, channels={name: ranks[hit.doc_id] for name, ranks in lists.items() if hit.doc_id in ranks})
                for hit in ranking.hits[:k]
            ]
            families.setdefault(family, []).append(replace(ranking, hits=tuple(hits)))
    found: dict[str, Contribution] = {}
    for family, rankings in families.items():
        if any(ranking.hits for ranking in rankings):
            found |= dict.fromkeys(names[family], Contribution(0.0, 0.0, 0)) | channel_contribution(rankings)
    return found
