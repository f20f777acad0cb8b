"""JSON in, records out: each field is checked against the type that the record declares."""

from __future__ import annotations

import types
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ringtrue.errors import BadAnswer

Record = TypeVar("Record")
_PLAIN = (str, int, float, bool)


def read(kind: type[Record], value: Any, *, place: str = "answer") -> Record:
    """Return JSON as a record; raises BadAnswer naming the place that is not as declared.

    Fields that the record does not have are left out, so that a newer service can say more; one that is missing is an error
    unless the record has a default for it.
    """
    made: Record = _read(kind, value, place)
    return made


def _read(kind: Any, value: Any, place: str) -> Any:
    origin = get_origin(kind)
    if kind is Any or kind is object:
        return value
    if is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, value, place)
    if origin in (Union, types.UnionType):
        return _either(kind, value, place)
    if origin is Literal:
        # A newer service may know a word more; what reads it decides what that means.
        return _plain(type(get_args(kind)[0]), value, place)
    if origin is tuple:
        return tuple(_read(get_args(kind)[0], item, f"{place}[{at}]") for at, item in enumerate(_expected(list, value, place)))
    if origin is not None and issubclass(origin, Mapping):
        inner = get_args(kind)[1]
        return {str(name): _read(inner, item, f"{place}.{name}") for name, item in _expected(dict, value, place).items()}
    return _plain(kind, value, place)


def _record(kind: Any, value: Any, place: str) -> Any:
    given = _expected(dict, value, place)
    hints = _hints(kind)
    values = {}
    for field in fields(kind):
        if field.name in given:
            values[field.name] = _read(hints[field.name], given[field.name], f"{place}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise BadAnswer(f"{place}.{field.name} is missing; is this a service of another version?")
    return kind(**values)


def _either(kind: Any, value: Any, place: str) -> Any:
    options = [option for option in get_args(kind) if option is not types.NoneType]
    if value is None and len(options) < len(get_args(kind)):
        return None
    for option in options[:-1]:
        try:
            return _read(option, value, place)
        except BadAnswer:
            continue
    return _read(options[-1], value, place)


def _plain(kind: Any, value: Any, place: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind not in _PLAIN:  # a declaration that this file cannot read is a mistake here, not of the service
        raise TypeError(f"{place}: {kind} cannot be read from JSON")
    if kind in (int, float) and isinstance(value, bool):
        raise BadAnswer(f"{place} is {value!r} and not a number; is this a service of another version?")
    return _expected(kind, value, place)


def _expected(kind: type[Any], value: Any, place: str) -> Any:
    if not isinstance(value, kind):
        raise BadAnswer(f"{place} is {value!r:.60} and no {kind.__name__}; is this a service of another version?")
    return value


@lru_cache(maxsize=256)
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)
