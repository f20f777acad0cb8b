"""Expression → retriever: what each name of ``expression.ALL`` is built from, and over which documents it searches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from ringtrue.errors import InputError, SpecError, nearest
from ringtrue.retrieve import fuse
from ringtrue.retrieve.documents import DocumentStore
from ringtrue.retrieve.expression import ALIASES, ALL, Source, as_expression, canonical
from ringtrue.retrieve.index import CachedView
from ringtrue.retrieve.protocol import Retriever
from ringtrue.retrieve.stages import Mmr, Recency, Staged, Step, Threshold, Tier, Top
from ringtrue.spec import Expression, Pipeline, show_value

_MOST = 1_000_000


@dataclass(frozen=True)
class Use:
    """One use of a name: its text, its options with defaults filled in, its retrievers, and the documents searched."""

    text: str
    options: Mapping[str, Any]
    children: Sequence[tuple[str, Retriever]]
    collection: DocumentStore | None

    @property
    def documents(self) -> DocumentStore:
        if self.collection is None:
            raise InputError(f"'{self.text}' searches documents; name a collection made by `ringtrue ingest`")
        return self.collection


def build(source: Source, collection: DocumentStore | None = None) -> Retriever:
    """Return the retriever an expression names, over a collection; raises SpecError with the nearest names."""
    full = canonical(source)
    found = _build(full, as_expression(source), collection)
    object.__setattr__(found, "expression", str(full))  # connectors are frozen
    return found


def _build(full: Expression | Pipeline, written: Expression | Pipeline, collection: DocumentStore | None) -> Retriever:
    if isinstance(written, Expression) and written.name in ALIASES and not written.args and not written.options:
        written = as_expression(ALIASES[written.name])
    if isinstance(full, Pipeline):
        assert isinstance(written, Pipeline)
        base = _build(full.stages[0], written.stages[0], collection)
        stages = zip(full.stages[1:], written.stages[1:], strict=True)
        return Staged(base, [_BUILDERS[stage.name](_use(stage, text, collection)) for stage, text in stages])
    assert isinstance(written, Expression)
    found: Retriever = _BUILDERS[full.name](_use(full, written, collection))
    return found


def _use(full: Expression, written: Expression, collection: DocumentStore | None) -> Use:
    texts = [child for child in written.args if isinstance(child, Expression | Pipeline)]
    children = [
        (str(text), _build(child, text, collection))
        for child, text in zip(full.args, texts, strict=True)
        if isinstance(child, Expression | Pipeline)
    ]
    return Use(str(written), dict(full.options), children, collection)


def _channel(place: str) -> Callable[[Use], Retriever]:
    """Return the builder of a channel, ``module.Class``, which is imported on first use."""
    module, _, name = place.partition(".")

    def made(use: Use) -> Retriever:
        make = getattr(import_module(f"ringtrue.retrieve.channels.{module}"), name)
        found: Retriever = make(*(child for _, child in use.children), use.documents, **use.options, name=use.text)
        return found

    return made


def _weights(use: Use) -> tuple[float, ...]:
    weights = use.options["w"] or (1.0,) * len(use.children)
    if len(weights) != len(use.children) or any(not 0 <= weight <= _MOST for weight in weights) or not any(weights):
        raise SpecError(
            f"w={show_value(weights)} does not weigh {len(use.children)} retrievers; write one number from 0 for each"
        )
    return tuple(map(float, weights))


def _fusion(use: Use) -> Retriever:
    name = use.text.partition("(")[0]
    depth, k, norm = (use.options.get(option, default) for option, default in (("depth", 0), ("k", 0), ("norm", "z")))
    if not 1 <= depth <= _MOST:
        raise SpecError(f"{name} cannot have depth={depth}; write a number of hits from 1, like depth=100")
    if not 0 <= k <= _MOST:
        raise SpecError(f"{name} cannot have k={k}; write a number from 0 to {_MOST:,}, like k=60")
    if norm not in fuse.NORMS:
        raise SpecError(f"there is no norm '{norm}'; use {nearest(norm, fuse.NORMS)}")
    w = _weights(use) if "w" in use.options else ()
    rules: Mapping[str, fuse.Rule] = {
        "rrf": lambda _, lists: fuse.rrf(lists, k=k, w=w),
        "weighted": lambda _, lists: fuse.weighted(lists, w=w, norm=norm, depth=depth),
        "combsum": lambda _, lists: fuse.comb_sum(lists),
        "combmnz": lambda _, lists: fuse.comb_mnz(lists),
        "adaptive": partial(fuse.adaptive, k=k),
    }
    made = fuse.Fusion(use.children, rules[name], name=name, depth=depth)
    made.weights = dict(zip((child for child, _ in use.children), w, strict=False))
    return made


def _mmr(use: Use) -> Step:
    from ringtrue.retrieve.channels.dense import Dense

    options = dict(use.options)
    dense = Dense(use.documents, model=options.pop("model"))
    return Mmr(dense.document_vectors, **options, made_with=dense.encoder.key)


def _rerank(use: Use) -> Step:
    from ringtrue.retrieve.rerank import CrossEncoder, open_reranker

    model, connection, depth = (use.options[name] for name in ("model", "connection", "depth"))
    if bool(model) == bool(connection):
        raise SpecError(
            f"'{use.text}' must name one reranker; write rerank('folder of a cross-encoder') or rerank(connection='name')"
        )
    if connection:
        return open_reranker(connection, texts=use.documents.texts, depth=depth)
    return CrossEncoder(model, texts=use.documents.texts, depth=depth)


def _tier(use: Use) -> Step:
    boosts = dict(use.options)
    return Tier(CachedView(use.documents, use.documents.metadata), field=boosts.pop("field"), boosts=boosts)


_BUILDERS: Mapping[str, Callable[[Use], Any]] = {
    "bm25": _channel("bm25.Bm25"),
    "fts5": _channel("fts5.Fts5"),
    "dense": _channel("dense.Dense"),
    "rm3": _channel("bm25.Rm3"),
    "splade": _channel("splade.Splade"),
    "graph": _channel("graph.Graph"),
    "trigger": _channel("trigger.Trigger"),
    "memory": _channel("memory.open_memory"),
    "connect": lambda use: import_module("ringtrue.retrieve.connectors").open_connection(use.options["name"]),
    **dict.fromkeys(("rrf", "weighted", "combsum", "combmnz", "adaptive"), _fusion),
    "rerank": _rerank,
    "mmr": _mmr,
    "recency": lambda use: Recency(CachedView(use.documents, use.documents.metadata), **use.options),
    "tier": _tier,
    "threshold": lambda use: Threshold(**use.options),
    "top": lambda use: Top(use.options["n"]),
}
assert set(_BUILDERS) == set(ALL), "every name has a builder"


class Collection(DocumentStore):
    """A folder with documents and the indexes over them."""

    def retriever(self, expression: str | Mapping[str, Any] = "hybrid") -> Retriever:
        """Return the retriever an expression names over these documents: ``rrf(bm25, dense) >> mmr(0.7)``."""
        return build(expression, self)
