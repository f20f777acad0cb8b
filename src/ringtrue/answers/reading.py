"""JSON → records, from the types that their fields declare: answers of a service, lines of the log, archives."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ringtrue.errors import RingtrueError, nearest

T = TypeVar("T")
_NAMES = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "an object",
}  # fmt: skip


class RecordReader:
    """Reads JSON as a record. ``wrong`` makes the error to raise from a place, what is there, and what should be.

    If ``exact``, fields that a record does not have are errors, and null stands for an undefined number (nan).
    """

    def __init__(self, wrong: Callable[[str, str, str], RingtrueError], *, exact: bool = False) -> None:
        self.wrong, self.exact = wrong, exact

    def read(self, kind: type[T], value: Any, *, place: str = "") -> T:
        """Return JSON as a record; raises what ``wrong`` returns if a field is not as declared.

        Fields that the record does not have are left out, so that a newer version can say more; one that is missing is an error
        unless the record has a default for it. Of a field with a choice of words any text is accepted.
        """
        made: T = self._read(kind, value, place)
        return made

    def _read(self, kind: Any, value: Any, place: str) -> Any:
        if kind in _NAMES:
            return self._scalar(kind, value, place)
        origin = get_origin(kind)
        if kind is Any or kind is object:
            return value
        if is_dataclass(kind) and isinstance(kind, type):
            return self._record(kind, value, place)
        if origin in (Union, types.UnionType):
            return self._either(kind, value, place)
        if origin is Literal:
            return self._scalar(type(get_args(kind)[0]), value, place)
        if origin is tuple:
            items, inner = self._expected(list, list(value) if isinstance(value, tuple) else value, place), get_args(kind)[0]
            if {*map(type, items)} <= {inner}:  # most are ids or scores
                return tuple(items)
            return tuple(self._read(inner, item, f"{place}[{at}]") for at, item in enumerate(items))
        if origin is not None and issubclass(origin, Mapping):
            items = self._expected(dict, value, place).items()
            return {str(name): self._read(get_args(kind)[1], item, _inside(place, name)) for name, item in items}
        raise TypeError(f"{place}: {kind} cannot be read from JSON")  # a mistake of whoever declared it

    def _record(self, kind: Any, value: Any, place: str) -> Any:
        given, hints, values = self._expected(dict, value, place), _hints(kind), {}
        for name in given.keys() - hints.keys() if self.exact else ():
            raise self.wrong(_inside(place, name), f"is not known (did you mean {nearest(name, hints)}?)", "one of its fields")
        for field in fields(kind):
            found = given.get(field.name, MISSING)
            if found is MISSING and field.default is MISSING and field.default_factory is MISSING:
                raise self.wrong(_inside(place, field.name), "is missing", _NAMES.get(hints[field.name], "a value"))
            if found is not MISSING and found is not field.default:
                values[field.name] = self._read(hints[field.name], found, _inside(place, field.name))
        return kind(**values)

    def _either(self, kind: Any, value: Any, place: str) -> Any:
        options = [option for option in get_args(kind) if option is not types.NoneType]
        if value is None and len(options) < len(get_args(kind)):
            return None
        for option in options[:-1]:
            try:
                return self._read(option, value, place)
            except RingtrueError:
                continue
        return self._read(options[-1], value, place)

    def _scalar(self, kind: Any, value: Any, place: str) -> Any:
        if kind is float and value is None and self.exact:
            return math.nan
        if kind in (int, float) and isinstance(value, bool):
            raise self._is_not(kind, value, place)
        if kind is float and isinstance(value, int):
            try:
                return float(value)
            except OverflowError:  # hundreds of digits
                raise self._is_not(kind, value, place) from None
        return self._expected(kind, value, place)

    def _expected(self, kind: type[Any], value: Any, place: str) -> Any:
        if not isinstance(value, kind):
            raise self._is_not(kind, value, place)
        return value

    def _is_not(self, kind: type[Any], value: Any, place: str) -> RingtrueError:
        return self.wrong(place, f"is {shown(value)}", _NAMES[kind])


def shown(value: Any) -> str:
    """Return a value as a complaint quotes it; Python does not print numbers of thousands of digits."""
    try:
        return f"{value!r:.60}"
    except ValueError:
        return "a number of thousands of digits"


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


@lru_cache(maxsize=256)
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)
