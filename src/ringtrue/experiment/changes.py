"""What differs between two setups, as the settings that were changed: ``{"rrf.k": 30, "chunking.tokens": 256}``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ringtrue.errors import InputError, SpecError
from ringtrue.spec import Expression, Pipeline, parse

_DERIVED = ("embedding_model", "reranker", "fusion", "channels")
"""What a configuration says about an expression; the expression itself says it more exactly."""


class Configured(Protocol):
    """Anything with a retriever and its configuration: the Setup of an evaluation, or a Baseline."""

    @property
    def retriever(self) -> str: ...

    @property
    def config(self) -> Mapping[str, Any]: ...


def changes(before: Configured, after: Configured) -> dict[str, Any]:
    """Return every setting of ``after`` that ``before`` has otherwise; None where it has none any more."""
    found = text_changes(before.retriever, after.retriever, "retriever")
    old, new = _flat(before.config), _flat(after.config)
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) == new.get(name) or name in _DERIVED:
            continue
        one, other = old.get(name), new.get(name)
        both = isinstance(one, str) and isinstance(other, str)
        found |= text_changes(str(one), str(other), name, inside=f"{name}.") if both else {name: other}
    return found


def text_changes(before: str, after: str, name: str, *, inside: str | None = None) -> dict[str, Any]:
    """Return which options of an expression changed; the whole text under ``name`` where its shape did.

    >>> text_changes("rrf(bm25(title=3), dense, k=60)", "rrf(bm25(title=1), dense, k=30)", "retriever")
    {'rrf.bm25.title': 1, 'rrf.k': 30}
    >>> text_changes("bm25", "rrf(bm25, dense)", "retriever")
    {'retriever': 'rrf(bm25, dense)'}
    """
    if before == after:
        return {}
    try:
        found = _options(_stages(parse(before)), _stages(parse(after)), "")
    except SpecError:
        found = None
    if not found:
        return {name: after}
    # The one expression of a setting goes by the setting's name: chunking.tokens, not chunking.fixed.tokens.
    return found if inside is None else {f"{inside}{key.partition('.')[2]}": value for key, value in found.items()}


def _options(old: Sequence[Expression], new: Sequence[Expression], path: str) -> dict[str, Any] | None:
    """Return the options that differ between parts side by side; None where the two are not built alike."""
    if [part.name for part in old] != [part.name for part in new]:
        return None
    found: dict[str, Any] = {}
    for place, (one, other) in enumerate(zip(old, new, strict=True)):
        here = f"{path}{_label(new, place)}."
        plain_old, plain_new = (
            [arg for arg in part.args if not isinstance(arg, Expression | Pipeline)] for part in (one, other)
        )
        if plain_old != plain_new or one.at != other.at:
            return None
        inner = _options(_children(one), _children(other), here)
        if inner is None:
            return None
        was, now = dict(one.options), dict(other.options)
        found |= inner
        found |= {f"{here}{key}": plain_value(now.get(key)) for key in sorted(was | now) if was.get(key) != now.get(key)}
    return found


def _children(part: Expression) -> list[Expression]:
    return [stage for arg in part.args if isinstance(arg, Expression | Pipeline) for stage in _stages(arg)]


def _stages(expression: Expression | Pipeline) -> tuple[Expression, ...]:
    return expression.stages if isinstance(expression, Pipeline) else (expression,)


def _label(among: Sequence[Expression], place: int) -> str:
    """Return a part's name, with its number where several have the same."""
    same = [index for index, part in enumerate(among) if part.name == among[place].name]
    return among[place].name if len(same) == 1 else f"{among[place].name}[{same.index(place) + 1}]"


def plain_value(value: object) -> Any:
    """Return an option's value as JSON can hold it."""
    if isinstance(value, tuple):
        return [plain_value(item) for item in value]
    return str(value) if isinstance(value, Expression | Pipeline) else value


def _flat(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= _flat(value, f"{path}{name}.") if isinstance(value, Mapping) else {f"{path}{name}": value}
    return flat


def given_change(text: str) -> tuple[str, Any]:
    """Return name and value of a change written as ``chunking.max_tokens=256``; raises InputError.

    >>> given_change("chunking.max_tokens=256"), given_change("model=small")
    (('chunking.max_tokens', 256), ('model', 'small'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--change {text!r} names no value; write it like --change chunking.max_tokens=256")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value.strip()
