"""Text or configuration → the expression of a retriever: ``rrf(bm25(title=2), dense, k=60) >> mmr(0.7)`` is a value.

``ALL`` holds the names that an expression may use: one row each, with its options and their defaults. The reference page and
the service's checks read this table, too; ``builders`` builds what a name means.

``canonical`` writes every default out, so that two ways to say the same thing are equal and a changed default changes the key
of caches and baselines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ringtrue.errors import InputError, RingtrueError, SpecError, nearest
from ringtrue.spec import Expression, Pipeline, Value, parse, show_value

DEFAULT_MODEL = "all-MiniLM-L6-v2"
HYBRID = "weighted(bm25, dense, depth=50, norm='z', w=[0.5, 0.5])"
"""Chosen on SciFact's training queries, LoCoMo's first half and the shipped sets: RRF falls behind its better channel if the
two are far apart, see docs/benchmarks.md."""
ALIASES = {"hybrid": HYBRID, "sparse": "splade"}


@dataclass(frozen=True)
class Name:
    """What a name is: a 'channel' finds, a 'fusion' joins two or more retrievers, a 'stage' works on hits after ``>>``."""

    kind: str
    means: str
    options: Mapping[str, Any] = field(default_factory=dict)
    first: str = ""
    """The option that a plain argument stands for: dense('model')."""
    of: str = ""
    """'one' if it takes another retriever as its argument."""
    documents: bool = False
    """True if it needs a collection of documents."""
    free: Any = None
    """The default of options whose names the user chooses; None if there are none."""


def _channel(means: str, *, first: str = "", of: str = "", documents: bool = True, **options: Any) -> Name:
    return Name("channel", means, options, first, of, documents)


def _fusion(means: str, **options: Any) -> Name:
    return Name("fusion", means, {**options, "depth": 100})


def _stage(means: str, *, first: str = "", documents: bool = True, free: Any = None, **options: Any) -> Name:
    return Name("stage", means, options, first, documents=documents, free=free)


# The default of a list of numbers is (0.0,), that of a list of texts ("",).
NAMES: Mapping[str, Name] = {
    "bm25": _channel("BM25 on Tantivy", title=3, tags=1, language="english"),
    "fts5": _channel("BM25 on SQLite's FTS5", title=5.0, tags=3.0, body=1.0),
    "dense": _channel(
        "sentence vectors, exact search",
        first="model",
        model=DEFAULT_MODEL,
        fields=("",),
        int8=False,
        store="float32",
        hnsw=0,
    ),
    "rm3": _channel("BM25 with pseudo-relevance feedback", docs=10, terms=20, weight=0.5, language="english"),
    "splade": _channel("learned sparse vectors, from a model folder", first="model", model=""),
    "graph": _channel(
        "neighbours of another retriever's hits along links",
        of="one",
        edges=("",),
        hops=1,
        decay=0.5,
        depth=50,
        direction="both",
    ),
    "trigger": _channel("documents whose trigger phrases stand in the query", field="triggers"),
    "memory": _channel(
        "an agent's memory: passages, trigger phrases, causal links and the session; or what the hook uses",
        first="strategy",
        strategy="hybrid",
        model=DEFAULT_MODEL,
        language="english",
        group=("",),
        words=1.0,
        meaning=1.0,
        constitutional=False,
    ),
    "connect": _channel("a search system described in ringtrue.toml", first="name", documents=False, name=""),
    "rrf": _fusion("reciprocal rank fusion", k=60, w=(0.0,)),
    "weighted": _fusion("weighted sum of normalised scores", w=(0.0,), norm="minmax"),
    "combsum": _fusion("sum of normalised scores"),
    "combmnz": _fusion("CombSUM times the lists that agree"),
    "adaptive": _fusion("RRF with weights by the kind of query", k=60),
}
STAGES: Mapping[str, Name] = {
    "rerank": _stage(
        "a cross-encoder from a folder, or an endpoint described in ringtrue.toml, orders the first hits anew",
        first="model",
        model="",
        connection="",
        depth=50,
    ),
    "mmr": _stage("maximal marginal relevance: less of the same", first="weight", weight=0.7, model=DEFAULT_MODEL, depth=50),
    "recency": _stage("newer documents first", field="date", half_life=30.0, weight=0.5, now="", depth=50),
    "tier": _stage("boosts by a metadata value: tier(core=1.5)", free=1.0, field="tier"),
    "threshold": _stage("only hits that score enough", documents=False, min=None, relative=None, gap=None),
    "top": _stage("the first n hits", first="n", documents=False, n=10),
}
ALL: Mapping[str, Name] = {**NAMES, **STAGES}

Source = str | Expression | Pipeline | Mapping[str, Any]
LIKE = "bm25, rrf(bm25, dense) or hybrid >> mmr(0.5)"
"""Examples for who wrote a retriever that cannot be read."""


def as_expression(source: Source) -> Expression | Pipeline:
    """Return the expression of a text or of a configuration such as ``{"fusion_method": "rrf", "rrf_k": 60}``, also as JSON.

    >>> str(as_expression({"fusion_method": "weighted", "weights": {"bm25": 0.3, "dense": 0.7}}))
    'weighted(bm25, dense, w=[0.3, 0.7])'
    """
    if isinstance(source, str):
        if not source.lstrip().startswith("{"):
            return parse(source, like=LIKE)
        try:
            return _from_config(json.loads(source))
        except ValueError as problem:
            cure = 'write it like {"fusion_method": "rrf", "rrf_k": 60}'
            raise SpecError(f"{source!r:.60} is not valid JSON ({problem}); {cure}") from None
    if isinstance(source, Expression | Pipeline):
        return source
    if isinstance(source, Mapping):
        return _from_config(source)
    raise InputError(f"{source!r:.60} names no retriever; write it like 'rrf(bm25, dense)'")


_CONFIG = {"rrf": ("rrf_k", "channels", "rerank"), "weighted": ("weights", "normalization", "rerank")}
"""The keys that a configuration may have beside ``fusion_method``."""


def _from_config(config: Mapping[str, Any]) -> Expression | Pipeline:
    if "fusion_method" not in config:
        raise SpecError(f"a configuration needs the key 'fusion_method', but has {', '.join(map(repr, config)) or 'none'}")
    method = config["fusion_method"]
    if method not in _CONFIG:
        raise SpecError(f"fusion_method {method!r} cannot be read; write 'rrf', or 'weighted' with weights")
    for key in config:
        if key != "fusion_method" and key not in _CONFIG[method]:
            raise SpecError(
                f"a configuration of '{method}' has no key {key!r}; did you mean {nearest(str(key), _CONFIG[method])}?"
            )
    if method == "rrf":
        channels = config.get("channels", ["bm25", "dense"])
        options: list[tuple[str, Any]] = [("k", config.get("rrf_k", 60))]
    else:
        weights = config.get("weights")
        if not isinstance(weights, Mapping) or not weights:
            raise SpecError(f"the weights {weights!r:.60} cannot be read; write {{'bm25': 0.3, 'dense': 0.7}}")
        channels = list(weights)
        options = [("w", tuple(weights.values()))]
        options += [("norm", config["normalization"])] if "normalization" in config else []
    if not isinstance(channels, list | tuple) or not all(isinstance(name, str) for name in channels):
        raise SpecError(f"the channels {channels!r:.60} cannot be read; write a list like ['bm25', 'dense']")
    found = Expression(method, tuple(parse(name, like=LIKE) for name in channels), tuple(options))
    if "rerank" not in config:
        return found
    if not isinstance(config["rerank"], str):
        raise SpecError(f"rerank {config['rerank']!r:.60} cannot be read; name the folder of a cross-encoder")
    return Pipeline((found, Expression("rerank", (config["rerank"],))))


def canonical(source: Source) -> Expression | Pipeline:
    """Return the same retriever with aliases resolved and every default written out; raises SpecError for what cannot be.

    >>> str(canonical("bm25(title=2)"))
    "bm25(language='english', tags=1, title=2)"
    """
    expression = as_expression(source)
    if isinstance(expression, Pipeline):
        first, *rest = expression.stages
        head = canonical(first)
        stages = [head] if isinstance(head, Expression) else list(head.stages)
        for stage in rest:
            if _known(stage).kind != "stage":
                raise SpecError(
                    f"'{stage.name}' finds documents and cannot follow >>; put it first, or fuse: rrf(bm25, {stage})"
                )
            stages.append(_full(stage))
        return Pipeline(tuple(stages))
    if expression.name in ALIASES:
        meant = as_expression(ALIASES[expression.name])
        if not expression.args and not expression.options:
            return canonical(meant)
        if ALIASES[expression.name] in NAMES:  # another word for one name takes its options
            assert isinstance(meant, Expression)
            return canonical(replace(expression, name=meant.name))
        raise SpecError(f"'{expression.name}' has no options of its own; write what it stands for: {meant}")
    if _known(expression).kind == "stage":
        raise SpecError(f"'{expression.name}' works on hits and cannot come first; write it like hybrid >> {expression}")
    return _full(expression)


@lru_cache(maxsize=1_000)
def same_search(one: str, other: str) -> bool:
    """Return whether two texts name the same search, such as ``hybrid`` and the expression that it stands for.

    >>> same_search("bm25", "bm25(title=1)")
    False
    """
    if one == other or not one or not other:
        return one == other
    try:
        return canonical(one) == canonical(other)
    except RingtrueError:  # the search of another system has a name and no expression
        return False


def _known(expression: Expression) -> Name:
    if expression.name not in ALL:
        legal = (*ALL, *ALIASES)
        raise SpecError(f"there is no retriever '{expression.name}'; did you mean {nearest(expression.name, legal)}?")
    return ALL[expression.name]


def _full(expression: Expression) -> Expression:
    """Return an expression with its options checked and complete."""
    name = _known(expression)
    args = list(expression.args)
    given = dict(expression.options)
    if expression.at is not None:
        raise SpecError(f"'{expression}' has a cut-off; ask for hits with k, and cut with >> top({expression.at})")
    children: list[Expression | Pipeline] = []
    while args and isinstance(args[0], Expression | Pipeline):
        child = args.pop(0)
        assert isinstance(child, Expression | Pipeline)
        children.append(canonical(child))
    if name.first and args and name.first not in given:
        given[name.first] = args.pop(0)
    if args:
        takes = f"named options ({', '.join(name.options)})" if name.options else "no options"
        raise SpecError(f"cannot read {show_value(args[0])} in '{expression}'; {expression.name} takes {takes}")
    wants, least, most, example = {
        "fusion": ("joins two or more retrievers", 2, 64, "(bm25, dense)"),
        "one": ("takes one retriever", 1, 1, "(bm25)"),
    }.get("fusion" if name.kind == "fusion" else name.of, ("takes no retriever", 0, 0, ""))
    if not least <= len(children) <= most:
        cure = f"write it like {expression.name}{example}"
        raise SpecError(f"'{expression}' cannot be: {expression.name} {wants}; {cure}")
    options = {
        option: _checked(expression.name, option, given.pop(option, default), default)
        for option, default in name.options.items()
    }
    if name.free is not None:
        options |= {option: _checked(expression.name, option, value, name.free) for option, value in given.items()}
    elif given:
        wrong = next(iter(given))
        if not name.options:
            raise SpecError(f"{expression.name} has no option '{wrong}'; it takes none")
        raise SpecError(f"{expression.name} has no option '{wrong}'; did you mean {nearest(wrong, name.options)}?")
    return Expression(expression.name, tuple(children), tuple(options.items()))


def _checked(name: str, option: str, value: Any, default: Any) -> Any:
    if isinstance(default, tuple):
        sample = default[0]
        if value is default or value == () or value is None:
            return ()
        values = value if isinstance(value, tuple) else (value,)
        return tuple(_checked(name, option, item, sample) for item in values)
    if default is None:  # a number, or nothing
        return None if value is None else _checked(name, option, value, 0.5)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= 10**15:
        return float(value)
    if isinstance(default, int) and not isinstance(default, bool) and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise SpecError(f"{name} cannot have {option}={value}; write a finite number")
    if type(value) is not type(default):
        shown = show_value(default) if default != "" else "'…'"
        raise SpecError(f"{name} cannot have {option}={show_value(value)}; write it like {option}={shown}")
    return value


def expression_of(retriever: object) -> str | None:
    """Return the expression that a retriever was built from, with every default; None if no expression made it."""
    text = getattr(retriever, "expression", None)
    return str(canonical(text)) if isinstance(text, str) else None


def names_documents(source: Source) -> bool:
    """Tell whether a retriever searches documents of one's own, rather than a connected system alone."""
    return any(ALL[part.name].documents for part in parts_of(source))


def parts_of(source: Source) -> list[Expression]:
    """Return every channel, fusion and stage of a retriever, with all options.

    >>> [part.name for part in parts_of("rrf(connect('shop'), bm25) >> top(5)")]
    ['rrf', 'connect', 'bm25', 'top']
    """

    def parts(part: object) -> list[Expression]:
        if isinstance(part, Pipeline):
            return [found for stage in part.stages for found in parts(stage)]
        return [part, *(found for child in part.args for found in parts(child))] if isinstance(part, Expression) else []

    return parts(canonical(source))


@lru_cache(maxsize=1_000)
def shorten(text: str | None) -> str:
    """Return a retriever as somebody would write it, without defaults; what is not an expression stays as it is.

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
    """Return what is left of an expression with only these channels; None if nothing is."""
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
