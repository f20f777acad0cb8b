"""Records ⇄ rows. The fields of a record say which columns its rows have, and how their values are written and read.

What neither database can hold is written so that it can be read: a NUL or half a surrogate pair in a text becomes its escape
(``\\x00``, ``\\ud800``), since one odd query must not cost a batch of good ones; a number that is none becomes NULL, unknown.
Inside structures, where JSON has no word for them, ``nan`` and ``inf`` are written as texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sqlalchemy import Table

from ringtrue.answers import JobError, Scope, StageLogged
from ringtrue.errors import InputError
from ringtrue.store import tables
from ringtrue.store.records import (
    ABTest,
    ApiKey,
    AuditEntry,
    FeedbackEvent,
    Flag,
    HistoryPoint,
    LoggedQuery,
    Reply,
    ReviewItem,
    ShadowRun,
    StoredBaseline,
    StoredExperiment,
    StoredGoldenSet,
    StoredJob,
    StoredJudgment,
    StoredResult,
    StoredRun,
    TestPoint,
)
from ringtrue.store.times import timestamp

Record = TypeVar("Record")
Row = Mapping[Any, Any]
Kind = tuple[Callable[[Any], Any], Callable[[Any], Any]]
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


def _finite(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def _numbers(value: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(number) for name, number in value.items()}


_TIME: Kind = (timestamp, _same)
_NUMBER: Kind = (_finite, _same)
_WHOLE: Kind = (_maybe(int), _same)
_IDS: Kind = (lambda value: structure(list(value)) if value else "[]", lambda value: tuple(json.loads(value)))
_ANY: Kind = (lambda value: structure(dict(value)) if value else "{}", lambda value: json.loads(value or "{}"))
_KINDS: Mapping[Any, Kind] = {
    str: (words, _same),
    float: _NUMBER,
    int: _WHOLE,
    bool: (int, bool),
    bytes: (bytes, bytes),
    tuple[str, ...]: _IDS,
    tuple[Scope, ...]: _IDS,
    tuple[float, ...]: (_IDS[0], lambda value: tuple(map(float, json.loads(value)))),
    tuple[StageLogged, ...]: (
        lambda value: structure([(stage.name, stage.input, stage.output, stage.ms) for stage in value]) if value else "[]",
        lambda value: tuple(StageLogged(*stage) for stage in json.loads(value)),
    ),
    Mapping[str, Any]: _ANY,
    Mapping[str, float]: (_ANY[0], lambda value: _numbers(json.loads(value or "{}"))),
    # In one order, so that the same labels are the same text.
    Mapping[str, str]: (lambda value: structure({words(name): words(value[name]) for name in sorted(value)}), json.loads),
    Mapping[str, tuple[str, ...]]: (
        _ANY[0],
        lambda value: {name: tuple(ids) for name, ids in json.loads(value or "{}").items()},
    ),
    Mapping[str, tuple[float, float]]: (
        _ANY[0],
        lambda value: {name: (float(low), float(high)) for name, (low, high) in json.loads(value).items()},
    ),
    Mapping[str, Mapping[str, float]]: (
        _ANY[0],
        lambda value: {name: _numbers(numbers) for name, numbers in json.loads(value or "{}").items()},
    ),
    JobError: (lambda error: structure(asdict(error)), lambda value: JobError(**json.loads(value))),
}
"""How values of a type are written and read."""
_TIMES = ("at", "stage_since", "reserved_until")
"""Fields that hold a time, beside those whose name ends with ``_at``."""


def kind_of(name: str, declared: Any) -> Kind:
    """Return how a field of a record is written and read, from its name and its type."""
    options = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    plain = next(option for option in options if option is not NoneType)
    if get_origin(plain) is Literal:
        plain = str
    write, read = _TIME if plain is str and (name.endswith("_at") or name in _TIMES) else _KINDS[plain]
    if NoneType not in options or plain in (float, int):
        return write, read
    return _maybe(write), read if read is _same else _maybe(read)


@dataclass(frozen=True)
class Form(Generic[Record]):
    """How one record is kept in one table."""

    record: type[Record]
    table: Table
    key: tuple[str, ...]
    """The columns that make it one of a kind."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The columns of fields that have another name than their column."""
    derived: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """Further columns, which hold nothing that the fields do not."""

    @cached_property
    def fields(self) -> Mapping[str, tuple[str, Kind]]:
        """For each field of the record its column, and how its values are written and read."""
        declared = get_type_hints(self.record)
        names = ["project", *(one.name for one in fields(self.record) if one.name != "project")]  # type: ignore[arg-type]
        return {name: (self.renamed.get(name, name), kind_of(name, declared[name])) for name in names}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of ``values``."""
        return (*(column for column, _ in self.fields.values()), *self.derived)

    @cached_property
    def _parts(self) -> Callable[[Any], tuple[Any, ...]]:
        return attrgetter(*self.fields)

    @cached_property
    def _writers(self) -> tuple[Callable[[Any], Any], ...]:
        return tuple(write for _, (write, _) in self.fields.values())

    def values(self, record: Record) -> list[Any]:
        """Return the record as the values of ``columns``; every logged search comes by here."""
        found = [write(part) for write, part in zip(self._writers, self._parts(record), strict=True)]
        if self.derived:
            found += [make(record) for make in self.derived.values()]
        return found

    def row(self, record: Record) -> dict[str, Any]:
        """Return the record as a row."""
        return dict(zip(self.columns, self.values(record), strict=True))

    def rows(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        """Return the records as rows in the order of their keys: writers that meet then wait, and do not block each other."""
        return sorted(map(self.row, records), key=lambda row: [row[column] for column in self.key])

    def read(self, row: Row) -> Record:
        """Return the record that a row holds."""
        return self.record(**{field: read(row[column]) for field, (column, (_, read)) in self.fields.items()})


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((values[name] for name in names if name in values), None)


_NDCG, _MRR = ("nDCG@10", "nDCG@5", "nDCG@20"), ("RR@5", "RR@10", "RR")


def _column(of: str, names: Sequence[str], result: StoredResult) -> float | None:
    return _finite(_first(getattr(result, of), names))


def _bound(end: int, result: StoredResult) -> float | None:
    return _finite((_first(result.intervals, _NDCG) or (None, None))[end])


_RESULT_COLUMNS: dict[str, Callable[[Any], Any]] = {
    "avg_latency_ms": partial(_column, "latency_ms", ("mean", "avg")),
    "confidence_interval_lower": partial(_bound, 0),
    "confidence_interval_upper": partial(_bound, 1),
    "mrr_delta": partial(_column, "deltas", _MRR),
    "ndcg_delta": partial(_column, "deltas", _NDCG),
}
FIGURES = (
    "mrr_at_5", "mrr_at_10", "ndcg_at_5", "ndcg_at_10", "ndcg_at_20", "recall_at_5", "recall_at_10",
    "constitutional_surfacing_rate", "importance_weighted_recall", "cold_start_mrr", "session_personalization_lift",
    "causal_chain_completeness", "result_diversity_score",
)  # fmt: skip
"""The columns of eval_results that hold one figure of a run."""


def result_columns(result: StoredResult) -> dict[str, float | None]:
    """Return the aggregate columns of eval_results for a run; None if the run did not measure it."""
    return {name: getattr(result, name) for name in FIGURES} | {name: read(result) for name, read in _RESULT_COLUMNS.items()}


SUM_COLUMNS = ("control_mrr", "treatment_mrr", "control_ndcg", "treatment_ndcg")
"""The running sums that have a column of their own, ``…_sum``; all are kept in ``sums``."""


def _sum_of(name: str, test: ABTest) -> float:
    return float(test.sums.get(name, 0.0))


_ITEM = {"item_id": "memory_id"}
QUERY = Form(
    LoggedQuery, tables.eval_queries, ("project", "query_id"), derived={"result_count": lambda row: len(row.result_ids)}
)
FEEDBACK = Form(FeedbackEvent, tables.eval_feedback, ("project", "event_id"), _ITEM)
JUDGMENT = Form(StoredJudgment, tables.eval_judgments, ("project", "query_id", "memory_id", "source", "annotator"), _ITEM)
SHADOW = Form(ShadowRun, tables.eval_shadow_runs, ("project", "feature_id", "query_id", "candidate"))
RESULT = Form(
    StoredResult,
    tables.eval_results,
    ("project", "run_id"),
    {"per_query": "per_query_results", "channel_contribution": "channel_contribution_json"},
    _RESULT_COLUMNS,
)
TEST = Form(
    ABTest,
    tables.eval_ab_tests,
    ("project", "feature_id"),
    derived={f"{name}_sum": partial(_sum_of, name) for name in SUM_COLUMNS},
)
FLAG = Form(Flag, tables.flags, ("project", "name"))
AUDIT = Form(AuditEntry, tables.audit, ("project", "at"))
REVIEW = Form(ReviewItem, tables.reviews, ("project", "item_key"))
GOLDEN_SET = Form(StoredGoldenSet, tables.golden_sets, ("project", "name", "version"))
BASELINE = Form(StoredBaseline, tables.baselines, ("project", "name", "version"))
EXPERIMENT = Form(StoredExperiment, tables.experiments, ("project", "experiment_id"))
KEY = Form(ApiKey, tables.api_keys, ("project", "key_id"))
RUN = Form(StoredRun, tables.runs, ("project", "run_id"))
JOB = Form(StoredJob, tables.jobs, ("project", "job_id"))
REPLY = Form(Reply, tables.replies, ("project", "key"))
HISTORY = Form(HistoryPoint, tables.history, ("project", "series", "at", "labels"))
POINT = Form(TestPoint, tables.test_points, ("project", "feature_id", "sample_count"))
