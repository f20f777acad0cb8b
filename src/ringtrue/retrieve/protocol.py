"""The one seam of retrieval: ``search(text, *, k) -> hits``. Everything that finds, fuses, reranks or cuts has this shape.

A plain function is enough. What a retriever may offer besides, it shows by its signature: ``scope=`` (only documents with
these metadata values) and ``session=`` (what was asked before); ``search_many(texts, *, k)`` answers a batch at once.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ringtrue.errors import BadAnswer, InputError
from ringtrue.records import GoldenSet, Hit, Query, Ranking, Stage
from ringtrue.retrieve.words import plain as plain

Scope = Mapping[str, str]
BATCH = 64
"""Questions of a golden set that are put to a retriever together."""
_ASYNC = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
_WRAP = "async functions are not supported; wrap it: lambda q, k: asyncio.run(search(q, k))"
_IDS = ("doc_id", "id", "_id", "document_id")
_SCORES = ("score", "_score", "similarity", "relevance")


@runtime_checkable
class Retriever(Protocol):
    """Anything that answers a question with documents, best first."""

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> Sequence[Hit]:
        """Return at most ``k`` hits, each document once; ``scope`` admits only documents with these metadata values."""


def ranked(scores: Iterable[tuple[str, float]], *, k: int) -> list[tuple[str, float]]:
    """Return the best ``k`` of (document, score), ties by document id descending, as everywhere in Ringtrue."""
    found = list(scores)
    if all(above[1] > below[1] for above, below in pairwise(found)):  # in order already, as most answers are
        return found[:k]
    return sorted(sorted(found, key=lambda pair: pair[0], reverse=True), key=lambda pair: -pair[1])[:k]


def whole_number(who: str, option: str, value: Any) -> int:
    """Return an option that must be a whole number from 1; raises InputError naming whose it is."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{who} cannot have {option}={value!r}; use a whole number from 1")
    return value


def finite_number(who: str, option: str, value: Any, *, low: float, high: float = math.inf, above: bool = False) -> float:
    """Return an option that must be a finite number from ``low`` (or ``above`` it) to ``high``."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and low <= value <= high
    if not fits or (above and value == low):
        start = "any number" if low == -math.inf else f"a number {'above' if above else 'from'} {low:g}"
        raise InputError(f"{who} cannot have {option}={value!r}; use {start}{'' if high == math.inf else f' to {high:g}'}")
    return float(value)


def check_k(k: int) -> int:
    """Return ``k`` when it is a number of hits one can ask for; raises InputError."""
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError(f"k={k!r} is not a number of hits; ask for 1 or more")
    return k


def scope_of(scope: Scope | None) -> dict[str, str]:
    """Return a scope with its values as texts, as metadata is compared; raises InputError for what is none.

    >>> scope_of({"floor": 2, "open": True})
    {'floor': '2', 'open': 'true'}
    """
    if scope is None:
        return {}
    if not isinstance(scope, Mapping):
        raise InputError(f"the scope {scope!r:.60} is not a mapping; write it like {{'city': 'Bath'}}")
    for name, value in scope.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            raise InputError(f"the scope cannot have {name!r:.40}: {value!r:.40}; name one text or number for a field")
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in scope.items()}


def from_channel(name: str, found: Iterable[tuple[str, float]], chunks: Mapping[str, str] = MappingProxyType({})) -> list[Hit]:
    """Return what a channel found, best first, as hits that say so; ``chunks`` names the passages that answered."""
    return [
        Hit(doc_id, score, chunks.get(doc_id), {name: rank}, None, (Stage(name, rank, score),))
        for rank, (doc_id, score) in enumerate(found, 1)
    ]


class Function:
    """A plain function as a retriever: it may return ids, (id, score) pairs, mappings or Hit records, best first."""

    def __init__(self, function: Callable[..., Iterable[Any]], *, name: str | None = None) -> None:
        self.function = function
        self.name = name or str(getattr(function, "__name__", "function"))
        if any(check(one) for check in _ASYNC for one in (function, getattr(function, "__call__", None))):  # noqa: B004
            raise InputError(f"{self.name} cannot be asked: {_WRAP}")
        self.accepts = _accepted(function)
        if self.accepts and "k" not in self.accepts:
            raise InputError(f"{self.name} takes no k; give it a parameter k: the number of hits that are wanted")

    def search(
        self, text: str, *, k: int = 10, scope: Scope | None = None, session: Sequence[str] | None = None
    ) -> Sequence[Hit]:
        options: dict[str, Any] = {"k": check_k(k)}
        for name, value in (("scope", scope), ("session", session)):
            if value is not None:
                if name not in self.accepts:
                    raise InputError(f"{self.name} takes no {name}; give it a parameter {name}=None, or search without one")
                options[name] = value
        return as_hits(self.function(text, **options), self.name)[:k]


def _accepted(function: Callable[..., Any]) -> frozenset[str]:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in functions may show no signature
        return frozenset()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return frozenset({"k", "scope", "session"})
    return frozenset(parameters)


def as_hits(found: Any, name: str, *, duplicates: str = "error") -> list[Hit]:
    """Return an answer of any usual shape as hits that carry the channel ``name``; raises BadAnswer naming what is none.

    Several passages of one document (rows with a ``chunk``) count once, at the best place. A document that simply comes twice
    is an error, unless ``duplicates='first'``.
    """
    if inspect.iscoroutine(found):
        found.close()  # else Python warns that nobody awaited it
        raise BadAnswer(f"{name} returned a coroutine: {_WRAP}")
    if isinstance(found, str | bytes | Mapping | Set) or not isinstance(found, Iterable):  # a set has no order
        raise BadAnswer(f"{name} returned {found!r:.60}; return a list of ids, (id, score) pairs or hits")
    rows = [_as_hit(item, rank, name) for rank, item in enumerate(found, 1)]
    hits: list[Hit] = []
    places: dict[str, int] = {}
    for rank, hit in enumerate(rows, 1):
        first = places.setdefault(hit.doc_id, rank)
        if first == rank:
            place = len(hits) + 1
            stages = hit.stages or (Stage(name, place, hit.score),)
            hits.append(hit if hit.stages else replace(hit, channels=hit.channels or {name: place}, stages=stages))
        elif duplicates == "error" and (hit.chunk is None or hit.chunk == rows[first - 1].chunk):
            raise BadAnswer(
                f"{name} returned document '{hit.doc_id}' twice, at ranks {first} and {rank}; "
                "return each document once, name its passages as 'chunk', or set duplicates='first'"
            )
    return hits


def _as_hit(item: Any, rank: int, name: str) -> Hit:
    if isinstance(item, Hit):
        doc_id = _id(item.doc_id, rank, name)
        _score(item.score, doc_id, name)
        return item if type(item.doc_id) is str else replace(item, doc_id=doc_id)
    if isinstance(item, str | int | np.integer) and not isinstance(item, bool):
        return Hit(_id(item, rank, name))
    if isinstance(item, tuple | list) and len(item) == 2:
        doc_id = _id(item[0], rank, name)
        return Hit(doc_id, _score(item[1], doc_id, name))
    if isinstance(item, Mapping):
        key = next((key for key in _IDS if key in item), None)
        if key is not None:
            doc_id = _id(item[key], rank, name)
            value = next((item[key] for key in _SCORES if item.get(key) is not None), math.nan)
            chunk = item.get("chunk", item.get("chunk_id"))
            return Hit(doc_id, _score(value, doc_id, name), None if chunk is None else str(chunk))
    raise BadAnswer(f"{name}: hit {rank} is {item!r:.60}; return an id, an (id, score) pair, a mapping with 'doc_id', or a Hit")


def _id(value: Any, rank: int, name: str) -> str:
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool) and str(value).strip():
        return str(value)
    raise BadAnswer(f"{name}: hit {rank} has the document id {value!r:.40}; return a text or a whole number")


def _score(value: Any, doc_id: str, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise BadAnswer(f"{name}: the score {value!r:.40} of document '{doc_id}' is not a number; return a float")
    with contextlib.suppress(OverflowError):  # a whole number too large to be a score
        if not math.isinf(value):
            return float(value)
    raise BadAnswer(f"{name}: the score of document '{doc_id}' is infinite; return a finite number")


def as_retriever(thing: Any, *, name: str | None = None) -> Retriever:
    """Return a retriever: one of ours as it is, anything else that searches, or a plain function, wrapped; raises InputError.

    >>> as_retriever(lambda text, k: [("d1", 2.0), ("d2", 1.0)], name="mine").search("pool", k=1)[0].doc_id
    'd1'
    """
    if isinstance(thing, Retriever):
        # A search of somebody's own may lack scope=, and return ids or pairs; the wrapper makes up for both.
        return (
            thing
            if type(thing).__module__.startswith("ringtrue.")
            else Function(thing.search, name=name or type(thing).__name__)
        )
    if callable(thing):
        return Function(thing, name=name)
    raise InputError(f"{type(thing).__name__} cannot search; give it a method search(text, *, k), or pass a function")


def search_many(retriever: Retriever, texts: Sequence[str], *, k: int = 10, scope: Scope | None = None) -> list[Sequence[Hit]]:
    """Return one answer per text, in one batch where the retriever offers ``search_many``."""
    batch = getattr(retriever, "search_many", None)
    if batch is not None:
        return list(batch(texts, k=k, scope=scope))
    asked = as_retriever(retriever)
    return [asked.search(text, k=k, scope=scope) for text in texts]


def answer_all(
    retriever: Retriever,
    golden: GoldenSet,
    *,
    k: int = 100,
    scope: Scope | None = None,
    scope_field: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Ranking]:
    """Return the answer to every query, in the order of the set.

    A set that declares a scope (``precedents``: the corpus) has each query asked only within its own; ``scope_field`` names the
    metadata field for a set that does not say so itself. ``scope`` holds for all queries.
    """
    field = scope_field or golden.scope
    parts: dict[tuple[tuple[str, str], ...], list[Query]] = {}
    for query in golden.queries:
        own = {field: str(query.metadata[field])} if field and field in query.metadata else {}
        parts.setdefault(tuple(sorted({**own, **(scope or {})}.items())), []).append(query)
    answers: dict[str, Ranking] = {}
    for within, queries in parts.items():
        for start in range(0, len(queries), BATCH):
            batch = queries[start : start + BATCH]
            found = search_many(retriever, [query.text for query in batch], k=k, scope=dict(within) or None)
            answers |= {query.query_id: Ranking(query.query_id, tuple(hits)) for query, hits in zip(batch, found, strict=True)}
            if progress is not None:
                progress(len(batch))
    return [answers[query.query_id] for query in golden.queries]
