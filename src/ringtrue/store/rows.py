"""Records ⇄ rows. The fields of a record say which columns its table has, and how their values are written and read.

What neither database can hold is written so that it can be read: a NUL or half a surrogate pair in a text becomes its escape
(``\\x00``, ``\\ud800``), since one odd query must not cost a batch of good ones; a NaN becomes NULL, unknown. Inside
structures, where JSON has no word for them, ``nan`` and ``inf`` are written as texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from sqlalchemy import REAL, BigInteger, Column, Double, Identity, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.sql.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from ringtrue.answers import JobError, Scope, StageLogged
from ringtrue.errors import InputError
from ringtrue.store.times import timestamp

Record = TypeVar("Record")
Row = Mapping[Any, Any]
_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def words(value: str) -> str:
    """Return a text as both databases can hold it.

    >>> words("a\\x00b")
    'a\\\\x00b'
    """
    if value.isascii():
        return value.replace("\x00", "\\x00") if "\x00" in value else value
    try:
        value.encode()
    except UnicodeEncodeError:
        value = value.encode("utf-8", "backslashreplace").decode()
    return value.replace("\x00", "\\x00")


def structure(value: Any) -> str:
    """Return a structure as JSON; raises InputError for what JSON cannot hold."""
    try:
        return _json(value)
    except (ValueError, TypeError, RecursionError):
        pass
    try:
        return _json(_plain(value))
    except (TypeError, RecursionError, ValueError) as problem:
        raise InputError(f"cannot store {type(value).__name__} {str(value)[:80]!r}: {problem}; use plain values") from problem


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if not isinstance(value, str) and hasattr(value, "tolist"):  # numpy's numbers and arrays
        return _plain(value.tolist())
    return value


def _same(value: Any) -> Any:
    return value


def _maybe(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else function(value)


def finite(value: float | None) -> float | None:
    """Return a number; None for NaN, which stands for unknown."""
    return None if value is None or value != value else float(value)


def _numbers(value: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(number) for name, number in value.items()}


class Kind(NamedTuple):
    """How values of a type are written and read, and the type of their columns."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    type: TypeEngine[Any] = Text()


NUMBER: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")  # PostgreSQL's REAL has four bytes


def _structured(read: Callable[[Any], Any]) -> Kind:
    """A mapping as JSON; NULL, from before it was written, reads as an empty one."""
    return Kind(lambda value: structure(dict(value)) if value else "{}", lambda value: read(json.loads(value or "{}")))


def _listed(read: Callable[[Any], Any]) -> Kind:
    return Kind(lambda value: structure(list(value)) if value else "[]", lambda value: tuple(map(read, json.loads(value))))


_TIME = Kind(timestamp, _same)
_KINDS: Mapping[Any, Kind] = {
    str: Kind(words, _same),
    float: Kind(finite, _same, NUMBER),
    int: Kind(_maybe(int), _same, Integer()),
    bool: Kind(int, bool, Integer()),
    bytes: Kind(bytes, bytes, LargeBinary()),
    tuple[str, ...]: _listed(_same),
    tuple[Scope, ...]: _listed(_same),
    tuple[float, ...]: _listed(float),
    tuple[StageLogged, ...]: Kind(
        lambda value: structure([(stage.name, stage.input, stage.output, stage.ms) for stage in value]) if value else "[]",
        lambda value: tuple(StageLogged(*stage) for stage in json.loads(value)),
    ),
    Mapping[str, Any]: _structured(_same),
    Mapping[str, float]: _structured(_numbers),
    # In one order, so that the same labels are the same text.
    Mapping[str, str]: Kind(lambda value: structure({words(name): words(value[name]) for name in sorted(value)}), json.loads),
    Mapping[str, tuple[str, ...]]: _structured(lambda value: {name: tuple(ids) for name, ids in value.items()}),
    Mapping[str, tuple[float, float]]: _structured(
        lambda value: {name: (float(low), float(high)) for name, (low, high) in value.items()}
    ),
    Mapping[str, Mapping[str, float]]: _structured(lambda value: {name: _numbers(numbers) for name, numbers in value.items()}),
    JobError: Kind(lambda error: structure(asdict(error)), lambda value: JobError(**json.loads(value))),
}
_TIMES = ("at", "stage_since", "reserved_until")
"""Fields that hold a time, beside those whose name ends with ``_at``."""


def kind_of(name: str, declared: Any) -> Kind:
    """Return how a field of a record is kept, from its name and its type."""
    options = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    plain = next(option for option in options if option is not NoneType)
    if get_origin(plain) is Literal:
        plain = str
    kind = _TIME if plain is str and (name.endswith("_at") or name in _TIMES) else _KINDS[plain]
    if NoneType not in options or plain in (float, int):
        return kind
    return Kind(_maybe(kind.write), kind.read if kind.read is _same else _maybe(kind.read), kind.type)


def make_table(name: str, *columns: SchemaItem, metadata: MetaData) -> Table:
    """Return a table whose rows have a number and a project beside these columns."""
    number = Column("id", BigInteger().with_variant(Integer(), "sqlite"), Identity(always=False), primary_key=True)
    return Table(name, metadata, number, Column("project", Text), *columns)


class Form(Generic[Record]):
    """How one record is kept in one table: a column for each of its fields.

    ``key`` are the columns that identify a row, ``renamed`` the columns of fields that have another name than their column,
    ``derived`` further columns, which hold nothing that the fields do not. ``more`` are columns that no field has.
    """

    def __init__(
        self,
        record: type[Record],
        table: str,
        key: tuple[str, ...],
        *,
        metadata: MetaData,
        renamed: Mapping[str, str] | None = None,
        derived: Mapping[str, tuple[TypeEngine[Any], Callable[[Any], Any]]] | None = None,
        more: Sequence[SchemaItem] = (),
    ) -> None:
        self.record, self.key, self.renamed, derived = record, key, renamed or {}, derived or {}
        declared = get_type_hints(record)
        names = ["project", *(one.name for one in fields(record) if one.name != "project")]  # type: ignore[arg-type]
        self._fields = {name: (self.renamed.get(name, name), kind_of(name, declared[name])) for name in names}
        self._parts = attrgetter(*names)
        self._writers = [kind.write for _, kind in self._fields.values()]
        self._derived = [make for _, make in derived.values()]
        self._columns = [*(column for column, _ in self._fields.values()), *derived]
        types = {column: kind.type for column, kind in self._fields.values()} | {name: of for name, (of, _) in derived.items()}
        of_fields = (Column(column, types[column]) for column in self._columns if column != "project")
        self.table = make_table(table, *of_fields, *more, metadata=metadata)

    def row(self, record: Record) -> dict[str, Any]:
        """Return the record as a row."""
        values = [write(part) for write, part in zip(self._writers, self._parts(record), strict=True)]
        return dict(zip(self._columns, values + [make(record) for make in self._derived], strict=True))

    def rows(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        """Return the records as rows in the order of their keys: writers that meet then wait, and do not block each other."""
        return sorted(map(self.row, records), key=lambda row: [row[column] for column in self.key])

    def read(self, row: Row) -> Record:
        """Return the record that a row holds."""
        return self.record(**{field: kind.read(row[column]) for field, (column, kind) in self._fields.items()})
