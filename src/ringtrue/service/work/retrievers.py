"""Which retrievers a request may name: its texts could be paths, models or addresses (V-4).

Numbers, truth values and the choices listed here are free. A text that could name something outside (a model, a connection)
must be one that the server's own settings name; ``connect('shop')`` must be described in the server's ringtrue.toml. An option
that is not listed here is refused, so that a new one is closed until somebody opens it on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ringtrue.config import load_config
from ringtrue.errors import InputError, SpecError, nearest
from ringtrue.retrieve import ALIASES, ALL, as_expression, canonical
from ringtrue.retrieve.channels.bm25 import LANGUAGES
from ringtrue.retrieve.channels.dense import FIELDS, STORAGE
from ringtrue.retrieve.channels.graph import DIRECTIONS
from ringtrue.retrieve.channels.memory import STRATEGIES
from ringtrue.retrieve.connectors import RERANKERS
from ringtrue.retrieve.fuse import NORMS
from ringtrue.service.errors import Refused
from ringtrue.service.settings import Settings
from ringtrue.spec import Expression, Pipeline, show_value

LONGEST, MOST_PARTS, DEEPEST, MOST_VALUES = 2_000, 24, 5, 32
"""Letters of an expression, names in it, levels of brackets, members of a list."""
LARGEST = 10_000
"""The largest number: ranks, depths and weights lie below it."""
FIELD = "[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"
"""The name of a metadata field, or a value of one: nothing that could be a path or an address."""
MOMENT = r"[0-9T:Z.+-]{0,40}"

CHOICES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("bm25", "language"): LANGUAGES,
    ("rm3", "language"): LANGUAGES,
    ("memory", "language"): LANGUAGES,
    ("memory", "strategy"): STRATEGIES,
    ("dense", "fields"): FIELDS,
    ("dense", "store"): tuple(STORAGE),
    ("graph", "direction"): DIRECTIONS,
    ("weighted", "norm"): tuple(NORMS),
}
"""Texts that are one of a few words."""
SHAPES: Mapping[tuple[str, str], str] = {
    ("graph", "edges"): FIELD,
    ("trigger", "field"): FIELD,
    ("memory", "group"): FIELD,
    ("recency", "field"): FIELD,
    ("recency", "now"): MOMENT,
    ("tier", "field"): FIELD,
}
"""Texts that name a metadata field or a date."""
OWN = frozenset(
    {("dense", "model"), ("splade", "model"), ("memory", "model"), ("mmr", "model"), ("rerank", "model"), ("dense", "hnsw")}
)
"""What only the server's settings may name: models are paths or names on a hub, and every ``hnsw`` is an index of its own."""
CONNECTIONS: Mapping[tuple[str, str], bool] = {("connect", "name"): False, ("rerank", "connection"): True}
"""What names a connection of ringtrue.toml → whether it must be one that reranks."""


@dataclass(frozen=True)
class ExpressionPart:
    """One name of an expression with its options, and how deep it stands."""

    expression: Expression
    depth: int


def admitted(text: str, settings: Settings, *, field: str = "body.retriever") -> str:
    """Return a retriever that a request names, as it is written but for blanks.

    Raises Refused (422), naming the part and what is allowed, for what cannot be read or may not be named here.
    """
    if len(text) > LONGEST:
        raise _refusal(f"the retriever has {len(text):,} letters; {LONGEST:,} are allowed", field)
    try:
        full = canonical(text)
    except (SpecError, InputError) as problem:
        raise _refusal(str(problem), field) from None
    known = own_expressions(settings)
    if str(full) in known:
        return str(as_expression(text))
    parts = list(parts_of(full))
    if len(parts) > MOST_PARTS:
        raise _refusal(f"the retriever has {len(parts)} parts; {MOST_PARTS} are allowed", field)
    if (deepest := max(part.depth for part in parts)) > DEEPEST:
        raise _refusal(f"the retriever is {deepest} levels deep; {DEEPEST} are allowed", field)
    named = _named_by(known.values())
    for part in parts:
        for option, value in part.expression.options:
            _check(part.expression.name, option, value, named, field)
    return str(as_expression(text))


def own_expressions(settings: Settings) -> dict[str, Expression | Pipeline]:
    """Return the retrievers that the operator names, by their full text; raises SpecError where one cannot be read."""
    return {str(full): full for full in map(canonical, (settings.retriever, *settings.expressions))}


def parts_of(expression: Expression | Pipeline, depth: int = 1) -> Iterator[ExpressionPart]:
    """Yield every name in an expression, the outer ones first."""
    for stage in expression.stages if isinstance(expression, Pipeline) else (expression,):
        yield ExpressionPart(stage, depth)
        for child in stage.args:
            if isinstance(child, Expression | Pipeline):
                yield from parts_of(child, depth + 1)


def _named_by(expressions: Iterable[Expression | Pipeline]) -> dict[tuple[str, str], set[Any]]:
    """Return the values that the operator's own retrievers have, by part and option."""
    found: dict[tuple[str, str], set[Any]] = {}
    for expression in expressions:
        for part in parts_of(expression):
            for option, value in part.expression.options:
                found.setdefault((part.expression.name, option), set()).add(value)
    return found


def _check(name: str, option: str, value: Any, named: Mapping[tuple[str, str], set[Any]], field: str) -> None:
    key = (name, option)
    told = f"{name}({option}={show_value(value)[:80]})"
    known = ALL[name].options
    if option in known and (value == known[option] or value == ()):
        return  # the default says nothing that Ringtrue does not say itself
    if key in CONNECTIONS:
        _connection(told, str(value), reranks=CONNECTIONS[key], field=field)
        return
    if key in OWN:
        allowed = [known[option], *sorted(named.get(key, ()), key=str)]
        if value not in allowed:
            # What the operator named by a path is allowed, but its path is nobody's business.
            shown = ", ".join(show_value(one) for one in dict.fromkeys(allowed) if re.fullmatch(r"[\w.-]+", str(one))) or "none"
            raise _refusal(f"{told} may not be named here; allowed are what the server's settings name: {shown}", field)
        return
    values = value if isinstance(value, tuple) else (value,)
    if len(values) > MOST_VALUES:
        raise _refusal(f"{name}({option}=…) has {len(values)} values; {MOST_VALUES} are allowed", field)
    for one in values:
        if isinstance(one, str):
            _text(key, told, one, field)
        elif isinstance(one, int | float) and abs(one) > LARGEST:
            raise _refusal(f"{told} is too large; numbers up to {LARGEST:,} are allowed", field)
    if len(set(values)) < len(values) and isinstance(value[0], str):
        raise _refusal(f"{told} names a value twice; name each once", field)
    if option not in known and not re.fullmatch(FIELD, option):
        raise _refusal(f"{told}: '{option}' cannot be a name; use letters, digits, _ and -", field)


def _text(key: tuple[str, str], told: str, value: str, field: str) -> None:
    if key in CHOICES:
        if value not in CHOICES[key]:
            raise _refusal(f"{told} is not known; use {nearest(value, CHOICES[key])}", field)
    elif key in SHAPES:
        if not re.fullmatch(SHAPES[key], value):
            cure = "an ISO 8601 moment" if SHAPES[key] is MOMENT else "letters, digits, _ and -, at most 64"
            raise _refusal(f"{told} may not be named here; use {cure}", field)
    else:
        raise _refusal(f"{told} may not be named here; leave {key[1]} out, or ask the operator to name this retriever", field)


def _connection(told: str, name: str, *, reranks: bool, field: str) -> None:
    described = {
        known: settings.get("kind") for known, settings in load_config().connections.items()
    }  # read anew, as opening one does
    fitting = [known for known, kind in described.items() if (kind in RERANKERS) is reranks]
    if name not in fitting:
        there = ", ".join(f"'{known}'" for known in fitting) or "none"
        what = "connections that rerank" if reranks else "connections"
        raise _refusal(f"{told} is not described on the server; its {what}: {there}", field)


def _refusal(message: str, field: str) -> Refused:
    return Refused(422, "invalid_expression", message, field=field)


# ── some channels of a retriever alone ──────────────────────────────────────────────────────────────────────────────


def channels_in(text: str) -> list[str]:
    """Return the names of the channels that a retriever fuses, in their order; its own name where it fuses none.

    >>> channels_in("rrf(bm25, weighted(dense, fts5)) >> top(5)")
    ['bm25', 'dense', 'fts5']
    """
    return list(dict.fromkeys(_channels(as_expression(text))))


def only(text: str, channels: list[str], *, field: str = "query.components") -> str:
    """Return a retriever restricted to some of its channels: one alone, several by the same fusion.

    The steps after the fusion are left out, since a channel is what stands before them. Raises Refused (422), naming the
    channels that there are.

    >>> only("rrf(bm25, dense, fts5, w=[1, 2, 3]) >> top(5)", ["bm25", "fts5"])
    'rrf(bm25, fts5, w=[1, 3])'
    """
    there = channels_in(text)
    for name in channels:
        if name not in there:
            shown = ", ".join(f"'{one}'" for one in there)
            raise Refused(422, "unknown_channel", f"the retriever has no channel '{name[:60]}'; it has {shown}", field=field)
    found = _restricted(as_expression(text), frozenset(channels), steps=False)
    assert found is not None  # every name is in it
    return str(found)


def _head(expression: Expression | Pipeline) -> tuple[Expression, tuple[Expression, ...]]:
    """Return what finds, with a word that stands for a whole retriever spelt out, and the steps after it."""
    head, *steps = expression.stages if isinstance(expression, Pipeline) else (expression,)
    if head.name in ALIASES and not head.args and not head.options:
        inner, more = _head(as_expression(ALIASES[head.name]))
        return inner, (*more, *steps)
    return head, tuple(steps)


def _fuses(head: Expression) -> bool:
    return head.name in ALL and ALL[head.name].kind == "fusion"


def _inside(head: Expression) -> list[Expression | Pipeline]:
    return [child for child in head.args if isinstance(child, Expression | Pipeline)]


def _channels(expression: Expression | Pipeline) -> Iterator[str]:
    head, _ = _head(expression)
    if not _fuses(head):
        yield head.name
    for child in _inside(head) if _fuses(head) else ():
        yield from _channels(child)


def _restricted(
    expression: Expression | Pipeline, wanted: frozenset[str], *, steps: bool = True
) -> Expression | Pipeline | None:
    """Return what is left of an expression with only these channels; None where nothing is."""
    head, after = _head(expression)
    if not _fuses(head):
        found: Expression | Pipeline | None = head if head.name in wanted else None
    else:
        parts = [_restricted(child, wanted) for child in _inside(head)]
        left = [(place, part) for place, part in enumerate(parts) if part is not None]
        if len(left) > 1:
            weights = dict(head.options).get("w")
            kept = tuple(weights[place] for place, _ in left) if isinstance(weights, tuple) and weights else weights
            options = tuple((name, kept if name == "w" else value) for name, value in head.options)
            found = Expression(head.name, tuple(part for _, part in left), options)
        else:
            found = left[0][1] if left else None
    if found is None or not steps or not after:
        return found
    return Pipeline((*(found.stages if isinstance(found, Pipeline) else (found,)), *after))
