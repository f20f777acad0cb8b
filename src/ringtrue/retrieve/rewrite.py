"""Expressions written anew: without what goes without saying, or with only some of their channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from ringtrue.errors import InputError, RingtrueError
from ringtrue.retrieve.expression import ALIASES, ALL, as_expression, canonical
from ringtrue.spec import Expression, Pipeline, Value


@lru_cache(maxsize=1_000)
def shorten(text: str | None) -> str:
    """Return a retriever as somebody would write it, without defaults; what is no expression stays as it is.

    >>> shorten(str(canonical("hybrid >> mmr(0.3)")))
    'hybrid >> mmr(weight=0.3)'
    >>> shorten(str(canonical("rrf(bm25(title=5), dense)"))), shorten("searchers.best"), shorten(None)
    ('rrf(bm25(title=5), dense)', 'searchers.best', 'unknown')
    """
    if not text:
        return "unknown"
    try:
        return str(_short(canonical(text)))
    except RingtrueError:
        return text


def run_title(name: str | None, retriever: str | None) -> tuple[str, str]:
    """Return what a run is called and its search; a run that nobody named is called by its search, and the second is empty.

    >>> run_title("base", "bm25"), run_title(str(canonical("bm25")), "bm25"), run_title(None, "bm25")
    (('base', 'bm25'), ('bm25', ''), ('bm25', ''))
    """
    search = shorten(retriever)
    return (search, "") if not name or name == retriever or shorten(name) == search else (name, search)


def _short(full: Expression | Pipeline) -> Expression | Pipeline:
    if isinstance(full, Pipeline):
        stages = [stage for one in full.stages for stage in _stages(_short(one))]
        return Pipeline(tuple(stages))
    for word, meant in ALIASES.items():
        if full == canonical(meant):
            return Expression(word)
    known = ALL[full.name].options
    # An empty list is how a list that nobody gave is written.
    options = tuple(
        (name, value) for name, value in full.options if value != () and (name not in known or value != known[name])
    )
    args: tuple[Value, ...] = tuple(_short(one) if isinstance(one, Expression | Pipeline) else one for one in full.args)
    return Expression(full.name, args, options, full.at)


def _stages(one: Expression | Pipeline) -> tuple[Expression, ...]:
    return one.stages if isinstance(one, Pipeline) else (one,)


def channels_in(text: str) -> list[str]:
    """Return the names of the channels that a retriever fuses, in their order; its own name where it fuses none.

    >>> channels_in("rrf(bm25, weighted(dense, fts5)) >> top(5)")
    ['bm25', 'dense', 'fts5']
    """
    return list(dict.fromkeys(_channels(as_expression(text))))


def only(text: str, channels: Sequence[str]) -> str:
    """Return a retriever restricted to some of its channels: one alone, several by the same fusion.

    The steps after the fusion are left out, since a channel is what stands before them. Raises InputError, naming the channels
    that there are.

    >>> only("rrf(bm25, dense, fts5, w=[1, 2, 3]) >> top(5)", ["bm25", "fts5"])
    'rrf(bm25, fts5, w=[1, 3])'
    """
    there = channels_in(text)
    for name in channels:
        if name not in there:
            shown = ", ".join(f"'{one}'" for one in there)
            raise InputError(f"the retriever has no channel '{name[:60]}'; it has {shown}")
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
