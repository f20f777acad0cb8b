"""Settings of connections, checked against the types of their fields.

A connector declares ``mode: Literal["text", "vector"]`` or ``url: Url``; ``check_settings`` refuses any other value and says
what may be written instead. A value of a field that is hidden from ``repr`` is not shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ringtrue.errors import InputError

LONGEST = 86_400
"""Seconds of the longest timeout, a day: clocks and libraries overflow at some number, each at another."""


@dataclass(frozen=True)
class Rule:
    """A condition on a value of the right type, and what to write."""

    holds: Callable[[Any], bool]
    means: str


Url = Annotated[
    str, Rule(lambda url: url.startswith(("http://", "https://")), "an address that begins with http:// or https://")
]
Text = Annotated[str, Rule(lambda text: bool(text.strip()) and "\0" not in text, "a text that is not blank")]
Seconds = Annotated[float, Rule(lambda value: 0 < value <= LONGEST, f"seconds above 0, at most {LONGEST}")]
Attempts = Annotated[int, Rule(lambda value: value >= 0, "a whole number from 0")]
Count = Annotated[int, Rule(lambda value: value >= 1, "a whole number from 1")]
Number = Annotated[float, Rule(math.isfinite, "a finite number")]
Weight = Annotated[float, Rule(lambda value: 0 <= value < math.inf, "a finite number from 0")]

_MEANS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", Path: "a path"}


def check_settings(who: str, settings: Any) -> None:
    """Raise InputError naming the first field whose value its type does not allow."""
    kind: Any = type(settings)
    hints = _hints(kind)
    for item in fields(settings):
        value, hint = getattr(settings, item.name), hints[item.name]
        if not _fits(value, hint):
            shown = f"={value!r:.40}" if item.repr else ""
            raise InputError(f"{who}: invalid {item.name}{shown}; write {_means(hint)}")


@lru_cache(maxsize=64)
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _fits(value: Any, hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(value, args[0]) and all(rule.holds(value) for rule in args[1:])
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in args)
    if origin is Literal:
        return isinstance(value, str) and value in args
    if origin is Sequence:
        return isinstance(value, Sequence) and not isinstance(value, str) and all(_fits(one, args[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(isinstance(key, str) and _fits(one, args[1]) for key, one in value.items())
    if origin is Callable:
        return callable(value)
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    return hint is Any or isinstance(value, hint)


def _means(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return str(args[1].means)
    if origin in (Union, UnionType):
        return " or ".join(_means(one) for one in args if one is not NoneType)
    if origin is Literal:
        return " or ".join(map(repr, args)).replace(" or ", ", ", max(0, len(args) - 2))
    if origin is Sequence:
        return "a list of texts" if args[0] is str else f"a list, each item {_means(args[0])}"
    if origin is Mapping:
        return "a table" if args[1] is Any else "a table, each value " + _means(args[1])
    return _MEANS.get(hint, "another value")
