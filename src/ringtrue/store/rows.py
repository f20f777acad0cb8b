"""Records ⇄ rows. A form names, for each field of a record, its column and how the value is written and read.

What neither database can hold is written so that it can be read: a NUL or half a surrogate pair in a text becomes its escape
(``\\x00``, ``\\ud800``), since one odd query must not cost a batch of good ones; a number that is none becomes NULL, unknown.
Inside structures, where JSON has no word for them, ``nan`` and ``inf`` are written as texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from operator import attrgetter, itemgetter
from typing import Any, Generic, TypeVar

from sqlalchemy import Table

from ringtrue.answers import JobError, StageLogged
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


_TEXT: Kind = (words, _same)
_TEXT_MAYBE: Kind = (_maybe(words), _same)
_NUMBER: Kind = (_finite, _same)
_WHOLE: Kind = (_maybe(int), _same)
_YES: Kind = (int, bool)
_YES_MAYBE: Kind = (_maybe(int), _maybe(bool))
_TIME: Kind = (timestamp, _same)
_TIME_MAYBE: Kind = (_maybe(timestamp), _same)
_IDS: Kind = (lambda value: structure(list(value)) if value else "[]", lambda value: tuple(json.loads(value)))
_SCORES: Kind = (_IDS[0], lambda value: tuple(map(float, json.loads(value))))
_ANY: Kind = (lambda value: structure(dict(value)) if value else "{}", lambda value: json.loads(value or "{}"))
_ANY_MAYBE: Kind = (_maybe(_ANY[0]), _maybe(_ANY[1]))
# In one order, so that the same labels are the same text.
_LABELS: Kind = (lambda value: structure({words(name): words(value[name]) for name in sorted(value)}), json.loads)
_ERROR: Kind = (
    lambda error: None if error is None else structure(asdict(error)),
    lambda value: None if value is None else JobError(**json.loads(value)),
)
_BYTES: Kind = (bytes, bytes)
_FLOATS: Kind = (_ANY[0], lambda value: _numbers(json.loads(value or "{}")))
_LISTS: Kind = (_ANY[0], lambda value: {name: tuple(ids) for name, ids in json.loads(value or "{}").items()})
_INTERVALS: Kind = (
    _ANY[0],
    lambda value: {name: (float(low), float(high)) for name, (low, high) in json.loads(value).items()},
)
_PER_QUERY: Kind = (_ANY[0], lambda value: {name: _numbers(scores) for name, scores in json.loads(value or "{}").items()})
_STAGES: Kind = (
    lambda value: structure([(stage.name, stage.input, stage.output, stage.ms) for stage in value]) if value else "[]",
    lambda value: tuple(StageLogged(*stage) for stage in json.loads(value)),
)


@dataclass(frozen=True)
class Form(Generic[Record]):
    """How one record is kept in one table."""

    record: type[Record]
    table: Table
    key: tuple[str, ...]
    """The columns that make it one of a kind."""
    fields: Mapping[str, tuple[str, Kind]]
    derived: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """Further columns, which hold nothing that the fields do not."""

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of ``values``."""
        return (*(column for column, _ in self.fields.values()), *self.derived)

    @cached_property
    def order(self) -> Callable[[Sequence[Any]], Any]:
        """What takes the key out of ``values``."""
        return itemgetter(*map(self.columns.index, self.key))

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


def _fields(**kinds: Kind | tuple[str, Kind]) -> dict[str, tuple[str, Kind]]:
    """Return the fields with their columns: the field's own name unless another is given."""
    return {field: kind if isinstance(kind[0], str) else (field, kind) for field, kind in {"project": _TEXT, **kinds}.items()}


QUERY = Form(
    LoggedQuery,
    tables.eval_queries,
    ("project", "query_id"),
    _fields(
        query_id=_TEXT, query=_TEXT, tool_name=_TEXT, created_at=_TIME, intent=_TEXT_MAYBE, mode=_TEXT_MAYBE,
        session_id=_TEXT_MAYBE, user_id=_TEXT_MAYBE, result_ids=_IDS, scores=_SCORES, channel_contributions=_LISTS,
        total_latency_ms=_NUMBER, stage_latency_ms=_FLOATS, stages=_STAGES, fusion_weights=_FLOATS,
        quality_proxy_score=_NUMBER, trace_id=_TEXT_MAYBE, prompt_id=_TEXT_MAYBE, retriever=_TEXT_MAYBE,
        fallback=_TEXT_MAYBE, degraded=_YES, mode_override=_TEXT_MAYBE, token_pressure_level=_TEXT_MAYBE,
        token_pressure_ratio=_NUMBER, boost_delta=_NUMBER, extraction_count=_WHOLE, flags=_ANY, is_eval_corpus=_YES,
        eval_category=_TEXT_MAYBE, traffic=_TEXT,
    ),
    derived={"result_count": lambda row: len(row.result_ids)},
)  # fmt: skip

FEEDBACK = Form(
    FeedbackEvent,
    tables.eval_feedback,
    ("project", "event_id"),
    _fields(
        event_id=_TEXT, event_type=_TEXT, session_id=_TEXT, created_at=_TIME, query_id=_TEXT_MAYBE,
        item_id=("memory_id", _TEXT_MAYBE), rank_in_results=_WHOLE, actor=_TEXT, user_id=_TEXT_MAYBE, metadata=_ANY,
    ),
)  # fmt: skip

JUDGMENT = Form(
    StoredJudgment,
    tables.eval_judgments,
    ("project", "query_id", "memory_id", "source", "annotator"),
    _fields(
        query_id=_TEXT, item_id=("memory_id", _TEXT), relevance=_WHOLE, source=_TEXT, created_at=_TIME, annotator=_TEXT,
        confidence=_NUMBER, metadata=_ANY,
    ),
)  # fmt: skip

SHADOW = Form(
    ShadowRun,
    tables.eval_shadow_runs,
    ("project", "feature_id", "query_id", "candidate"),
    _fields(
        query_id=_TEXT, feature_id=_TEXT, created_at=_TIME, candidate=_TEXT, control_result_ids=_IDS, treatment_result_ids=_IDS,
        rank_correlation=_NUMBER, set_overlap=_NUMBER, top_result_changed=_YES_MAYBE, order_differences=_WHOLE,
        mrr_delta=_NUMBER, ndcg_delta=_NUMBER, control_latency_ms=_NUMBER, treatment_latency_ms=_NUMBER, error=_TEXT_MAYBE,
        source=_TEXT_MAYBE,
    ),
)  # fmt: skip


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

RESULT = Form(
    StoredResult,
    tables.eval_results,
    ("project", "run_id"),
    _fields(
        run_id=_TEXT, run_type=_TEXT, created_at=_TIME, query_count=_WHOLE, metrics=_FLOATS, feature_id=_TEXT_MAYBE,
        golden=_TEXT_MAYBE, retriever=_TEXT_MAYBE, intervals=_INTERVALS, latency_ms=_FLOATS, control_run_id=_TEXT_MAYBE,
        deltas=_FLOATS, p_value=_NUMBER, is_significant=_YES_MAYBE, gate=_TEXT_MAYBE,
        per_query=("per_query_results", _PER_QUERY), **dict.fromkeys(FIGURES, _NUMBER),
        channel_contribution=("channel_contribution_json", _ANY_MAYBE), uploaded=_YES,
    ),
    derived=_RESULT_COLUMNS,
)  # fmt: skip


def result_columns(result: StoredResult) -> dict[str, float | None]:
    """Return the aggregate columns of eval_results for a run; None if the run did not measure it."""
    return {name: getattr(result, name) for name in FIGURES} | {name: read(result) for name, read in _RESULT_COLUMNS.items()}


SUM_COLUMNS = ("control_mrr", "treatment_mrr", "control_ndcg", "treatment_ndcg")
"""The running sums that have a column of their own, ``…_sum``; all are kept in ``sums``."""


def _sum_of(name: str, test: ABTest) -> float:
    return float(test.sums.get(name, 0.0))


TEST = Form(
    ABTest,
    tables.eval_ab_tests,
    ("project", "feature_id"),
    _fields(
        feature_id=_TEXT, status=_TEXT, alpha=_NUMBER, beta=_NUMBER, delta=_NUMBER, started_at=_TIME, updated_at=_TIME,
        method=_TEXT, sigma=_NUMBER, log_likelihood_ratio=_NUMBER, upper_bound=_NUMBER, lower_bound=_NUMBER,
        sample_count=_WHOLE, sums=_FLOATS, min_samples=_WHOLE, graduation_threshold=_NUMBER, decision=_TEXT_MAYBE,
        graduated_at=_TIME_MAYBE,
    ),
    derived={f"{name}_sum": partial(_sum_of, name) for name in SUM_COLUMNS},
)  # fmt: skip

FLAG = Form(
    Flag,
    tables.flags,
    ("project", "name"),
    _fields(
        name=_TEXT, rollout=_NUMBER, shadow=_YES, min_samples=_WHOLE, graduation_threshold=_NUMBER, state=_TEXT,
        stage_since=_TIME_MAYBE, description=_TEXT, metadata=_ANY,
    ),
)  # fmt: skip

AUDIT = Form(
    AuditEntry,
    tables.audit,
    ("project", "at"),
    _fields(at=_TIME, who=_TEXT, what=_TEXT, subject=_TEXT, detail=_ANY),
)

REVIEW = Form(
    ReviewItem,
    tables.reviews,
    ("project", "item_key"),
    _fields(
        item_key=_TEXT, query_id=_TEXT, query=_TEXT, doc_id=_TEXT, created_at=_TIME, title=_TEXT, text=_TEXT,
        priority=_NUMBER, state=_TEXT, wanted=_WHOLE, reserved_by=_TEXT_MAYBE, reserved_until=_TIME_MAYBE, metadata=_ANY,
    ),
)  # fmt: skip

GOLDEN_SET = Form(
    StoredGoldenSet,
    tables.golden_sets,
    ("project", "name", "version"),
    _fields(name=_TEXT, version=_TEXT, fingerprint=_TEXT, content=_ANY, created_at=_TIME),
)

BASELINE = Form(
    StoredBaseline,
    tables.baselines,
    ("project", "name", "version"),
    _fields(name=_TEXT, version=_TEXT, content=_ANY, reason=_TEXT, created_at=_TIME),
)

EXPERIMENT = Form(
    StoredExperiment,
    tables.experiments,
    ("project", "experiment_id"),
    _fields(experiment_id=_TEXT, name=_TEXT, content=_ANY, created_at=_TIME),
)

KEY = Form(
    ApiKey,
    tables.api_keys,
    ("project", "key_id"),
    _fields(
        key_id=_TEXT, name=_TEXT, scopes=_IDS, created_at=_TIME, expires_at=_TIME_MAYBE, revoked_at=_TIME_MAYBE,
        last_used_at=_TIME_MAYBE,
    ),
)  # fmt: skip

RUN = Form(
    StoredRun,
    tables.runs,
    ("project", "run_id"),
    _fields(run_id=_TEXT, name=_TEXT, created_at=_TIME, content=_BYTES),
)

JOB = Form(
    StoredJob,
    tables.jobs,
    ("project", "job_id"),
    _fields(
        job_id=_TEXT, kind=_TEXT, state=_TEXT, created_at=_TIME, updated_at=_TIME, who=_TEXT, request=_ANY, done=_WHOLE,
        total=_WHOLE, says=_TEXT, result=_ANY_MAYBE, error=_ERROR,
    ),
)  # fmt: skip

REPLY = Form(
    Reply,
    tables.replies,
    ("project", "key"),
    _fields(key=_TEXT, route=_TEXT, fingerprint=_TEXT, status=_WHOLE, body=_BYTES, created_at=_TIME),
)

HISTORY = Form(
    HistoryPoint,
    tables.history,
    ("project", "series", "at", "labels"),
    _fields(at=_TIME, series=_TEXT, value=_NUMBER, labels=_LABELS),
)

POINT = Form(
    TestPoint,
    tables.test_points,
    ("project", "feature_id", "sample_count"),
    _fields(feature_id=_TEXT, sample_count=_WHOLE, at=_TIME, llr=_NUMBER, estimate=_NUMBER, low=_NUMBER, high=_NUMBER),
)
