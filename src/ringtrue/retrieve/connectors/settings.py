"""Settings of connections: checked against the types of their fields, and filled in if they are templates.

A connector declares ``mode: Literal["text", "vector"]`` or ``url: Url``; ``check_settings`` refuses any other value and says
what may be written instead. A value of a field that is hidden from ``repr`` is not shown. A template is a text, list or table
with names in braces.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ringtrue.errors import InputError
from ringtrue.retrieve.protocol import Scope, plain

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
    hints = get_type_hints(type(settings), include_extras=True)
    for item in fields(settings):
        value, hint = getattr(settings, item.name), hints[item.name]
        if not _fits(value, hint):
            shown = f"={value!r:.40}" if item.repr else ""
            raise InputError(f"{who}: invalid {item.name}{shown}; write {_means(hint)}")


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


QUESTION = re.compile(r"\{(text|k|scope\.[^{}]+)\}")
"""What stands for a part of a question."""
_ANY = re.compile(r"\{(text|k|vector|scope\.[^{}]+)\}")
_NOTHING = object()
"""What becomes of a part of a template that asks for what is not there."""


def places(template: Any, *, place: re.Pattern[str] = _ANY) -> set[str]:
    """Return the placeholders of a template, at any depth; the keys of a table are not looked at.

    >>> sorted(places({"q": "{text}", "top": ["{k}"], "filter": {"city": "{scope.city}"}}))
    ['k', 'scope.city', 'text']
    """
    return {name for text in texts(template) for name in place.findall(text)}


def texts(template: Any, *, numbers: bool = False) -> Iterable[str]:
    """Yield every text in a template that can hold a placeholder, and its numbers where they are wanted too."""
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping | list | tuple):
        for part in template.values() if isinstance(template, Mapping) else template:
            yield from texts(part, numbers=numbers)
    elif numbers and isinstance(template, int | float) and not isinstance(template, bool):
        yield str(template)


def asked_for(who: str, scope: Scope | None, templates: Any, where: str) -> dict[str, str]:
    """Return the placeholders of a scope with their values; raises InputError for one that the templates lack."""
    wanted = {f"scope.{name}": plain(str(value)) for name, value in (scope or {}).items()}
    offered = places(templates)
    for name in wanted:
        if name not in offered:
            raise InputError(f"{who} cannot be searched within '{name[6:]}'; write '{{{name}}}' into its {where}")
    return wanted


def filled(template: Any, values: Mapping[str, Any], *, place: re.Pattern[str] = QUESTION) -> Any:
    """Return a template with its placeholders replaced: one that stands alone by the value, inside a text as text.

    >>> filled({"q": "{text}", "size": "{k}", "label": "top {k}"}, {"text": "{k} rooms", "k": 5})
    {'q': '{k} rooms', 'size': 5, 'label': 'top 5'}

    An entry of a table that asks for a value which is not there is left out, an item of a list as a whole, and so is what
    becomes empty by that.

    >>> filled({"q": "{text}", "filters": [{"field": "city", "is": "{scope.city}"}]}, {"text": "pool", "k": 5})
    {'q': 'pool'}
    """
    found = _filled(template, values, place, whole=False)
    return None if found is _NOTHING else found


def _filled(template: Any, values: Mapping[str, Any], place: re.Pattern[str], *, whole: bool) -> Any:
    if isinstance(template, str):
        names = place.findall(template)
        if any(name not in values for name in names):
            return _NOTHING
        if place.fullmatch(template):
            return values[names[0]]
        return place.sub(lambda found: str(values[found[1]]), template)
    if isinstance(template, Mapping):
        pairs = {key: _filled(value, values, place, whole=whole) for key, value in template.items()}
        kept: Any = {key: value for key, value in pairs.items() if value is not _NOTHING}
        if whole and len(kept) < len(template):  # half a condition would be another condition
            return _NOTHING
    elif isinstance(template, list | tuple):
        kept = [value for value in (_filled(item, values, place, whole=True) for item in template) if value is not _NOTHING]
    else:
        return template
    return _NOTHING if template and not kept else kept
