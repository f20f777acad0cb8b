"""Ids as text, whether given as text or as numbers: stores number their records, and 12 and "12" name the same one."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, TypeVar

from ringtrue.errors import InputError

T = TypeVar("T")


def id_text(value: Any) -> Any:
    """Return an id as text if it is a whole number, as stores number their records; anything else as it is.

    >>> id_text(12), id_text("d12")
    ('12', 'd12')
    """
    whole = type(value) is not str and isinstance(value, Integral) and not isinstance(value, bool)  # numpy's are Integral, too
    return str(int(value)) if whole else value


def keep_as_text(record: object, *names: str) -> None:
    """Turn fields of a new frozen record that hold ids into text."""
    for name in names:
        value = getattr(record, name)
        if type(value) is not str:
            object.__setattr__(record, name, id_text(value))


def ids_as_text(ids: Any) -> Any:
    """Return a tuple or list of ids with whole numbers as text; anything else as it is."""
    return tuple(map(id_text, ids)) if isinstance(ids, tuple | list) and not set(map(type, ids)) <= {str} else ids


def check_id(value: object, what: str, beside: object = None) -> str:
    """Return ``value`` when it is a usable id; raises InputError naming its neighbour otherwise."""
    value = id_text(value)
    if isinstance(value, str) and value.strip():
        return value
    place = "" if beside is None else f" (beside '{beside}')"
    cure = "write a non-blank text" if isinstance(value, str) else f"write a text or a whole number, not {type(value).__name__}"
    raise InputError(f"{what} {value!r}{place} is not usable; {cure}")


def keyed_by_text(values: Mapping[Any, T]) -> dict[str, T]:
    """Return a mapping whose keys are ids, with numbers as text; raises InputError if 1 and "1" are both there."""
    found = {id_text(key): value for key, value in values.items()}
    if len(found) < len(values):
        keys = [id_text(key) for key in values]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the id '{twice}' is given twice, as a number and as text; keep one of the two")
    return found
