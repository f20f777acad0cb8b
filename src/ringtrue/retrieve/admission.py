"""Which retrievers a request may name: its texts could be paths, models or addresses.

Numbers, truth values and the choices listed here are free. A text that could name something outside (a model, a connection)
must be one that the server's own settings name; ``connect('shop')`` must be described in the server's ringtrue.toml. An option
that is not listed here is refused, so that a new one is closed until somebody opens it on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ringtrue.config import load_config
from ringtrue.errors import InputError, SpecError
from ringtrue.retrieve.connectors import RERANKERS
from ringtrue.retrieve.expression import ALL, as_expression, canonical, parts_of
from ringtrue.spec import show_value

LONGEST, MOST_PARTS, MOST_VALUES = 2_000, 24, 32
"""Letters of an expression, names in it, members of a list."""
LARGEST = 10_000
"""The largest number: ranks, depths and weights lie below it."""
FIELD = "[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"
"""The name of a metadata field, or a value of one: nothing that could be a path or an address."""
MOMENT = r"[0-9T:Z.+-]{0,40}"

OPEN = frozenset({
    ("bm25", "language"), ("rm3", "language"), ("memory", "language"), ("memory", "strategy"), ("memory", "group"),
    ("dense", "fields"), ("dense", "store"), ("graph", "direction"), ("graph", "edges"), ("weighted", "norm"),
    ("trigger", "field"), ("recency", "field"), ("tier", "field"),
})  # fmt: skip
"""Texts that are one of a few words, or the name of a metadata field."""
MOMENTS = frozenset({("recency", "now")})
"""Texts that are a date."""
OWN = frozenset(
    {("dense", "model"), ("splade", "model"), ("memory", "model"), ("mmr", "model"), ("rerank", "model"), ("dense", "hnsw")}
)
"""What only the server's settings may name: models are paths or names on a hub, and every ``hnsw`` is an index of its own."""
CONNECTIONS: Mapping[tuple[str, str], bool] = {("connect", "name"): False, ("rerank", "connection"): True}
"""What names a connection of ringtrue.toml → whether it must be one that reranks."""


def admitted(text: str, own: Sequence[str]) -> str:
    """Return a retriever that a request names, as it is written but for blanks.

    ``own`` are the retrievers that the operator named. Raises InputError, naming the part and what is allowed, for what cannot
    be read or may not be named here.
    """
    if len(text) > LONGEST:
        raise InputError(f"the retriever has {len(text):,} letters; {LONGEST:,} are allowed")
    try:
        full = canonical(text)
    except (SpecError, InputError) as problem:
        raise InputError(str(problem)) from None
    known = {str(one): one for one in map(canonical, own)}
    if str(full) in known:
        return str(as_expression(text))
    parts = list(parts_of(full))
    if len(parts) > MOST_PARTS:
        raise InputError(f"the retriever has {len(parts)} parts; {MOST_PARTS} are allowed")
    named: dict[tuple[str, str], set[Any]] = {}
    """The values that the operator's own retrievers have, by part and option."""
    for part in (part for one in known.values() for part in parts_of(one)):
        for option, value in part.options:
            named.setdefault((part.name, option), set()).add(value)
    for part in parts:
        for option, value in part.options:
            _check(part.name, option, value, named)
    return str(as_expression(text))


def _check(name: str, option: str, value: Any, named: Mapping[tuple[str, str], set[Any]]) -> None:
    key = (name, option)
    told = f"{name}({option}={show_value(value)[:80]})"
    known = ALL[name].options
    if option in known and (value == known[option] or value == ()):
        return  # the default says nothing that Ringtrue does not say itself
    if key in CONNECTIONS:
        _connection(told, str(value), reranks=CONNECTIONS[key])
        return
    if key in OWN:
        allowed = [known[option], *sorted(named.get(key, ()), key=str)]
        if value not in allowed:
            # What the operator named by a path is allowed, but its path is nobody's business.
            shown = ", ".join(show_value(one) for one in dict.fromkeys(allowed) if re.fullmatch(r"[\w.-]+", str(one))) or "none"
            raise InputError(f"{told} may not be named here; allowed are what the server's settings name: {shown}")
        return
    values = value if isinstance(value, tuple) else (value,)
    if len(values) > MOST_VALUES:
        raise InputError(f"{name}({option}=…) has {len(values)} values; {MOST_VALUES} are allowed")
    for one in values:
        if isinstance(one, str):
            _text(key, told, one)
        elif isinstance(one, int | float) and abs(one) > LARGEST:
            raise InputError(f"{told} is too large; numbers up to {LARGEST:,} are allowed")
    if len(set(values)) < len(values) and isinstance(value[0], str):
        raise InputError(f"{told} names a value twice; name each once")
    if option not in known and not re.fullmatch(FIELD, option):
        raise InputError(f"{told}: '{option}' cannot be a name; use letters, digits, _ and -")


def _text(key: tuple[str, str], told: str, value: str) -> None:
    if key in OPEN or key in MOMENTS:
        if not re.fullmatch(MOMENT if key in MOMENTS else FIELD, value):
            cure = "an ISO 8601 moment" if key in MOMENTS else "letters, digits, _ and -, at most 64"
            raise InputError(f"{told} may not be named here; use {cure}")
    else:
        raise InputError(f"{told} may not be named here; leave {key[1]} out, or ask the operator to name this retriever")


def _connection(told: str, name: str, *, reranks: bool) -> None:
    described = load_config().connections  # read anew, as opening one does
    fitting = [known for known, settings in described.items() if (settings.get("kind") in RERANKERS) is reranks]
    if name not in fitting:
        there = ", ".join(f"'{known}'" for known in fitting) or "none"
        what = "connections that rerank" if reranks else "connections"
        raise InputError(f"{told} is not described on the server; its {what}: {there}")
