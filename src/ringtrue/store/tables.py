"""The tables of the store, each made from its record: its fields say which columns there are, and how values are kept.

The names, columns and indexes of the seed are kept, each with a project beside them; whatever must be unique is so within a
project. Indexes, defaults and checks are in the migrations, which alone make a database. Structures are JSON texts: the same
bytes on SQLite and on PostgreSQL, so that a dump or a move carries them as they are. Times are texts that sort. ``memory_id``
is the item: a text, whatever a source calls it.

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
from ringtrue.store import records
from ringtrue.store.records import ABTest, StoredResult, timestamp

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


METADATA = MetaData()


def _form(record: type[Record], table: str, *key: str, **options: Any) -> Form[Record]:
    return Form(record, table, ("project", *key), metadata=METADATA, **options)


_NDCG, _MRR = ("nDCG@10", "nDCG@5", "nDCG@20"), ("RR@5", "RR@10", "RR")


def _number_of(of: str, names: Sequence[str], end: int | None = None) -> tuple[TypeEngine[Any], Callable[[Any], Any]]:
    """Return a column with the first known of some figures of a record; of intervals one end."""

    def found(record: Any) -> float | None:
        values = getattr(record, of)
        value = next((values[name] for name in names if name in values), None)
        return finite(value if end is None or value is None else value[end])

    return NUMBER, found


_DERIVED = {
    "avg_latency_ms": _number_of("latency_ms", ("mean", "avg")),
    "confidence_interval_lower": _number_of("intervals", _NDCG, 0),
    "confidence_interval_upper": _number_of("intervals", _NDCG, 1),
    "mrr_delta": _number_of("deltas", _MRR),
    "ndcg_delta": _number_of("deltas", _NDCG),
}
FIGURES = (
    "mrr_at_5", "mrr_at_10", "ndcg_at_5", "ndcg_at_10", "ndcg_at_20", "recall_at_5", "recall_at_10",
    "constitutional_surfacing_rate", "importance_weighted_recall", "cold_start_mrr", "session_personalization_lift",
    "causal_chain_completeness", "result_diversity_score",
)  # fmt: skip
"""The columns of eval_results that hold one figure of a run."""


def result_columns(result: StoredResult) -> dict[str, float | None]:
    """Return the aggregate columns of eval_results for a run; None if the run did not measure it."""
    return {name: getattr(result, name) for name in FIGURES} | {name: make(result) for name, (_, make) in _DERIVED.items()}


SUM_COLUMNS = ("control_mrr", "treatment_mrr", "control_ndcg", "treatment_ndcg")
"""The running sums that have a column of their own, ``…_sum``; all are kept in ``sums``."""


_ITEM = {"item_id": "memory_id"}
QUERY = _form(
    records.LoggedQuery, "eval_queries", "query_id", derived={"result_count": (Integer(), lambda row: len(row.result_ids))}
)
FEEDBACK = _form(records.FeedbackEvent, "eval_feedback", "event_id", renamed=_ITEM)
JUDGMENT = _form(records.StoredJudgment, "eval_judgments", "query_id", "memory_id", "source", "annotator", renamed=_ITEM)
SHADOW = _form(records.ShadowRun, "eval_shadow_runs", "feature_id", "query_id", "candidate")
RESULT = _form(
    StoredResult,
    "eval_results",
    "run_id",
    renamed={"per_query": "per_query_results", "channel_contribution": "channel_contribution_json"},
    derived=_DERIVED,
)
_SUMS = {f"{name}_sum": (NUMBER, lambda test, name=name: float(test.sums.get(name, 0.0))) for name in SUM_COLUMNS}
TEST = _form(ABTest, "eval_ab_tests", "feature_id", derived=_SUMS)
FLAG = _form(records.Flag, "flags", "name")
AUDIT = _form(records.AuditEntry, "audit", "at")
REVIEW = _form(records.ReviewItem, "reviews", "item_key")
GOLDEN_SET = _form(records.StoredGoldenSet, "golden_sets", "name", "version")
BASELINE = _form(records.StoredBaseline, "baselines", "name", "version")
EXPERIMENT = _form(records.StoredExperiment, "experiments", "experiment_id")
KEY = _form(records.ApiKey, "api_keys", "key_id", more=[Column("key_hash", Text)])
RUN = _form(records.StoredRun, "runs", "run_id")
JOB = _form(records.StoredJob, "jobs", "job_id")
REPLY = _form(records.Reply, "replies", "key")
HISTORY = _form(records.HistoryPoint, "history", "series", "at", "labels")
POINT = _form(records.TestPoint, "test_points", "feature_id", "sample_count")


RATING = _form(records.StoredRating, "ratings", "item_key", "reviewer")


archives = make_table(
    "archives",
    *(Column(name, Text) for name in ("path", "first_at", "last_at", "created_at")),
    Column("rows", Integer),
    metadata=METADATA,
)
ab_counted = make_table("eval_ab_counted", Column("feature_id", Text), Column("query_id", Text), metadata=METADATA)
_REFERRING = ("eval_ab_counted", "ratings", "test_points")
TABLES = tuple(sorted(METADATA.tables.values(), key=lambda table: (table.name in _REFERRING, table.name)))
"""All of them, those referred to first."""
