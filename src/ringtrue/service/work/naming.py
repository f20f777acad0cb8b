"""What a retriever is called where there is little room: its expression without what goes without saying."""

from __future__ import annotations

from functools import lru_cache

from ringtrue.errors import RingtrueError
from ringtrue.retrieve import ALIASES, ALL, canonical
from ringtrue.spec import Expression, Pipeline, Value


@lru_cache(maxsize=1_000)
def short(text: str | None) -> str:
    """Return a retriever as somebody would write it, without defaults; what is no expression stays as it is.

    >>> short(str(canonical("hybrid >> mmr(0.3)")))
    'hybrid >> mmr(weight=0.3)'
    >>> short(str(canonical("rrf(bm25(title=5), dense)"))), short("searchers.best"), short(None)
    ('rrf(bm25(title=5), dense)', 'searchers.best', 'unknown')
    """
    if not text:
        return "unknown"
    try:
        return str(_short(canonical(text)))
    except RingtrueError:
        return text


def called(name: str | None, retriever: str | None) -> tuple[str, str]:
    """Return what a run is called and its search; a run that nobody named is called by its search, and the second is empty.

    >>> called("base", "bm25"), called(str(canonical("bm25")), "bm25"), called(None, "bm25")
    (('base', 'bm25'), ('bm25', ''), ('bm25', ''))
    """
    search = short(retriever)
    return (search, "") if not name or name == retriever or short(name) == search else (name, search)


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
