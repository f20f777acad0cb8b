"""The tables of the store, each made from its record.

The names, columns and indexes of the seed are kept, each with a project beside them; whatever must be unique is so within a
project. Indexes, defaults and checks are in the migrations, which alone make a database. Structures are JSON texts: the same
bytes on SQLite and on PostgreSQL, so that a dump or a move carries them as they are. Times are texts that sort. ``memory_id``
is the item: a text, whatever a source calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Column, Integer, MetaData, Text
from sqlalchemy.types import TypeEngine

from ringtrue.store import records
from ringtrue.store.records import ABTest, StoredResult
from ringtrue.store.rows import NUMBER, Form, finite, make_table

Record = TypeVar("Record")
METADATA = MetaData()


def _form(record: type[Record], table: str, *key: str, **options: Any) -> Form[Record]:
    return Form(record, table, ("project", *key), metadata=METADATA, **options)


def _first(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((values[name] for name in names if name in values), None)


_NDCG, _MRR = ("nDCG@10", "nDCG@5", "nDCG@20"), ("RR@5", "RR@10", "RR")


def _column(of: str, names: Sequence[str], result: StoredResult) -> float | None:
    return finite(_first(getattr(result, of), names))


def _bound(end: int, result: StoredResult) -> float | None:
    return finite((_first(result.intervals, _NDCG) or (None, None))[end])


_DERIVED: dict[str, tuple[TypeEngine[Any], Callable[[Any], Any]]] = {
    "avg_latency_ms": (NUMBER, partial(_column, "latency_ms", ("mean", "avg"))),
    "confidence_interval_lower": (NUMBER, partial(_bound, 0)),
    "confidence_interval_upper": (NUMBER, partial(_bound, 1)),
    "mrr_delta": (NUMBER, partial(_column, "deltas", _MRR)),
    "ndcg_delta": (NUMBER, partial(_column, "deltas", _NDCG)),
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


def _sum_of(name: str, test: ABTest) -> float:
    return float(test.sums.get(name, 0.0))


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
TEST = _form(
    ABTest, "eval_ab_tests", "feature_id", derived={f"{name}_sum": (NUMBER, partial(_sum_of, name)) for name in SUM_COLUMNS}
)
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


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text) for name in names]


archives = make_table(
    "archives", *_texts("path", "first_at", "last_at", "created_at"), Column("rows", Integer), metadata=METADATA
)
ab_counted = make_table("eval_ab_counted", *_texts("feature_id", "query_id"), metadata=METADATA)
_REFERRING = ("eval_ab_counted", "ratings", "test_points")
TABLES = tuple(sorted(METADATA.tables.values(), key=lambda table: (table.name in _REFERRING, table.name)))
"""All of them, those referred to first."""
