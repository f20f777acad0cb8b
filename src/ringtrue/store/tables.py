"""The tables of O-1: the names, columns and indexes of the seed, each with a project beside them.

Whatever must be unique is so within a project. Structures are JSON texts: the same bytes on SQLite and on PostgreSQL, so that
a dump or a move carries them as they are. Times are texts that sort. ``memory_id`` is the item: a text, whatever a source
calls it. The log's ``id`` is of no use outside a database; writers rely on any unique key rather than on a named one, so that
PostgreSQL may one day have the log in parts by month, where a unique key must hold the time as well.
"""

from __future__ import annotations

from sqlalchemy import (
    REAL,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.sql.schema import SchemaItem
from sqlalchemy.types import TypeEngine

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
    }
)
NUMBER: TypeEngine[float] = Double().with_variant(REAL(), "sqlite")  # PostgreSQL's REAL has four bytes
ID = BigInteger().with_variant(Integer(), "sqlite")

EVENT_TYPES = (
    "read_after_search", "re_search", "scroll_past", "reference", "validate_useful", "validate_not_useful",
    "selection", "click", "dwell", "cite",
)  # fmt: skip
SOURCES = ("manual", "implicit", "bootstrapped", "validated")
RUN_TYPES = ("full", "shadow", "regression", "ab_test")
STATES = ("running", "graduated", "rejected", "paused")
JOB_STATES = ("queued", "running", "done", "failed", "cancelled", "interrupted")
REVIEW_STATES = ("pending_review", "approved", "rejected", "published")


def _table(name: str, *items: SchemaItem) -> Table:
    return Table(
        name,
        METADATA,
        Column("id", ID, Identity(always=False), primary_key=True),
        Column("project", Text, nullable=False),
        *items,
        sqlite_autoincrement=True,
    )


def _words(name: str, *, json: str | None = None, needed: bool = False, default: str | None = None) -> Column[str]:
    """A column of text; ``json`` is the empty value of one that holds a structure."""
    default = json if json is not None else default
    return Column(name, Text, nullable=not needed, server_default=None if default is None else text(f"'{default}'"))


def _number(name: str, *, default: str | None = None) -> Column[float]:
    return Column(name, NUMBER, nullable=default is None, server_default=None if default is None else text(default))


def _whole(name: str, *, needed: bool = False, default: str | None = None) -> Column[int]:
    return Column(name, Integer, nullable=not needed, server_default=None if default is None else text(default))


def _bytes(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


def _one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    legal = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({legal})", name=column)


eval_queries = _table(
    "eval_queries",
    _words("query_id", needed=True),
    _words("query", needed=True),
    _words("intent"),
    _words("mode"),
    _words("session_id"),
    _words("user_id"),
    _words("tool_name", needed=True),
    _words("result_ids", json="[]", needed=True),
    _whole("result_count", needed=True, default="0"),
    _words("scores", json="[]", needed=True),
    _words("channel_contributions", json="{}"),
    _number("total_latency_ms"),
    _words("stage_latency_ms", json="{}", needed=True),
    _words("stages", json="[]", needed=True),
    _words("fusion_weights"),
    _number("quality_proxy_score"),
    _words("trace_id"),
    _words("prompt_id"),
    _words("retriever"),
    _words("fallback"),
    _whole("degraded", needed=True, default="0"),
    _words("mode_override"),
    _words("token_pressure_level"),
    _number("token_pressure_ratio"),
    _number("boost_delta"),
    _whole("extraction_count"),
    _words("flags", json="{}", needed=True),
    _words("created_at", needed=True),
    _whole("is_eval_corpus", needed=True, default="0"),
    _words("eval_category"),
    _words("traffic", needed=True, default="user"),
    UniqueConstraint("project", "query_id"),
    Index("idx_eval_queries_session", "session_id"),
    Index("idx_eval_queries_intent", "intent"),
    Index("idx_eval_queries_created", "created_at"),
    Index(
        "idx_eval_queries_corpus",
        "is_eval_corpus",
        sqlite_where=text("is_eval_corpus = 1"),
        postgresql_where=text("is_eval_corpus = 1"),
    ),
    Index("idx_eval_queries_tool", "tool_name"),
    # What the log is counted and filtered by, too: SQLite and PostgreSQL then need not look at the rows themselves.
    Index(
        "idx_eval_queries_project",
        "project",
        "created_at",
        "query_id",
        "tool_name",
        "result_count",
        "degraded",
        "total_latency_ms",
        "quality_proxy_score",
        "traffic",
    ),
    Index(
        "idx_eval_queries_user",
        "project",
        "user_id",
        sqlite_where=text("user_id IS NOT NULL"),
        postgresql_where=text("user_id IS NOT NULL"),
    ),
    Index(
        "idx_eval_queries_trace",
        "project",
        "trace_id",
        sqlite_where=text("trace_id IS NOT NULL"),
        postgresql_where=text("trace_id IS NOT NULL"),
    ),
    Index(
        "idx_eval_queries_prompt",
        "project",
        "prompt_id",
        sqlite_where=text("prompt_id IS NOT NULL"),
        postgresql_where=text("prompt_id IS NOT NULL"),
    ),
)

eval_judgments = _table(
    "eval_judgments",
    _words("query_id", needed=True),
    _words("memory_id", needed=True),
    _whole("relevance", needed=True),
    _words("source", needed=True),
    _words("annotator", needed=True, default=""),
    _number("confidence", default="1.0"),
    _words("metadata", json="{}", needed=True),
    _words("created_at", needed=True),
    CheckConstraint("relevance BETWEEN 0 AND 3", name="relevance"),
    _one_of("source", SOURCES),
    UniqueConstraint("project", "query_id", "memory_id", "source", "annotator"),
    Index("idx_eval_judgments_query", "query_id"),
    Index("idx_eval_judgments_memory", "memory_id"),
    Index("idx_eval_judgments_source", "source"),
)

eval_results = _table(
    "eval_results",
    _words("run_id", needed=True),
    _words("run_type", needed=True),
    _words("feature_id"),
    _number("mrr_at_5"),
    _number("mrr_at_10"),
    _number("ndcg_at_5"),
    _number("ndcg_at_10"),
    _number("ndcg_at_20"),
    _number("recall_at_5"),
    _number("recall_at_10"),
    _number("constitutional_surfacing_rate"),
    _number("importance_weighted_recall"),
    _number("cold_start_mrr"),
    _number("session_personalization_lift"),
    _number("causal_chain_completeness"),
    _number("avg_latency_ms"),
    _words("channel_contribution_json"),
    _number("result_diversity_score"),
    _whole("query_count", needed=True),
    _number("confidence_interval_lower"),
    _number("confidence_interval_upper"),
    _words("control_run_id"),
    _number("mrr_delta"),
    _number("ndcg_delta"),
    _number("p_value"),
    _whole("is_significant"),
    _words("golden"),
    _words("retriever"),
    _words("gate"),
    _words("metrics", json="{}", needed=True),
    _words("intervals", json="{}", needed=True),
    _words("latency_ms", json="{}", needed=True),
    _words("deltas", json="{}", needed=True),
    _words("created_at", needed=True),
    _words("per_query_results"),
    _whole("uploaded", needed=True, default="0"),
    _one_of("run_type", RUN_TYPES),
    UniqueConstraint("project", "run_id"),
    Index("idx_eval_results_run", "run_id"),
    Index("idx_eval_results_feature", "feature_id"),
    Index("idx_eval_results_type", "run_type"),
    Index("idx_eval_results_created", "created_at"),
    Index("idx_eval_results_project", "project", "created_at"),
)

eval_feedback = _table(
    "eval_feedback",
    _words("event_id", needed=True),
    _words("event_type", needed=True),
    _words("session_id", needed=True),
    _words("query_id"),
    _words("memory_id"),
    _whole("rank_in_results"),
    _words("actor", needed=True, default="unknown"),
    _words("user_id"),
    _words("metadata", json="{}"),
    _words("created_at", needed=True),
    _one_of("event_type", EVENT_TYPES),
    _one_of("actor", ("person", "agent", "unknown")),
    UniqueConstraint("project", "event_id"),
    Index("idx_eval_feedback_session", "session_id"),
    Index("idx_eval_feedback_query", "query_id"),
    Index("idx_eval_feedback_type", "event_type"),
    Index("idx_eval_feedback_created", "created_at"),
    Index("idx_eval_feedback_project", "project", "created_at", "event_id"),
)

eval_ab_tests = _table(
    "eval_ab_tests",
    _words("feature_id", needed=True),
    _words("status", needed=True),
    _words("method", needed=True, default="sprt"),
    _number("alpha", default="0.05"),
    _number("beta", default="0.2"),
    _number("delta", default="0.05"),
    _number("sigma"),
    _number("log_likelihood_ratio", default="0"),
    Column("upper_bound", NUMBER, nullable=False),
    Column("lower_bound", NUMBER, nullable=False),
    _whole("sample_count", needed=True, default="0"),
    _number("control_mrr_sum", default="0"),
    _number("treatment_mrr_sum", default="0"),
    _number("control_ndcg_sum", default="0"),
    _number("treatment_ndcg_sum", default="0"),
    _words("sums", json="{}", needed=True),
    _whole("min_samples", needed=True, default="100"),
    _number("graduation_threshold", default="0.03"),
    _words("decision"),
    _words("started_at", needed=True),
    _words("updated_at", needed=True),
    _words("graduated_at"),
    _one_of("status", STATES),
    UniqueConstraint("project", "feature_id"),
    Index("idx_eval_ab_status", "status"),
)

eval_ab_counted = _table(
    "eval_ab_counted",
    _words("feature_id", needed=True),
    _words("query_id", needed=True),
    UniqueConstraint("project", "feature_id", "query_id"),
    ForeignKeyConstraint(["project", "feature_id"], ["eval_ab_tests.project", "eval_ab_tests.feature_id"], ondelete="CASCADE"),
)

eval_shadow_runs = _table(
    "eval_shadow_runs",
    _words("query_id", needed=True),
    _words("feature_id", needed=True),
    _words("control_result_ids", needed=True),
    _words("treatment_result_ids", needed=True),
    _number("rank_correlation"),
    _number("set_overlap"),
    _whole("top_result_changed"),
    _whole("order_differences"),
    _number("mrr_delta"),
    _number("ndcg_delta"),
    _number("control_latency_ms"),
    _number("treatment_latency_ms"),
    _words("error"),
    _words("created_at", needed=True),
    _words("candidate", needed=True, default=""),
    _words("source"),
    UniqueConstraint("project", "feature_id", "query_id", "candidate"),
    Index("idx_eval_shadow_feature", "feature_id"),
    Index("idx_eval_shadow_created", "created_at"),
    Index("idx_eval_shadow_project", "project", "feature_id", "created_at"),
)

reviews = _table(
    "reviews",
    _words("item_key", needed=True),
    _words("query_id", needed=True),
    _words("query", needed=True),
    _words("doc_id", needed=True),
    _words("title", needed=True, default=""),
    _words("text", needed=True, default=""),
    _number("priority", default="0"),
    _words("state", needed=True),
    _whole("wanted", needed=True, default="1"),
    _words("reserved_by"),
    _words("reserved_until"),
    _words("metadata", json="{}", needed=True),
    _words("created_at", needed=True),
    _one_of("state", REVIEW_STATES),
    UniqueConstraint("project", "item_key"),
    Index("idx_reviews_state", "project", "state", "priority"),
    Index("idx_reviews_query", "query_id"),
)

ratings = _table(
    "ratings",
    _words("item_key", needed=True),
    _words("reviewer", needed=True),
    _whole("grade", needed=True),
    _words("at", needed=True),
    _words("note", needed=True, default=""),
    UniqueConstraint("project", "item_key", "reviewer"),
    ForeignKeyConstraint(["project", "item_key"], ["reviews.project", "reviews.item_key"], ondelete="CASCADE"),
)

flags = _table(
    "flags",
    _words("name", needed=True),
    _number("rollout", default="0"),
    _whole("shadow", needed=True, default="0"),
    _whole("min_samples", needed=True, default="100"),
    _number("graduation_threshold", default="0.03"),
    _words("state", needed=True),
    _words("stage_since"),
    _words("description", needed=True, default=""),
    _words("metadata", json="{}", needed=True),
    CheckConstraint("rollout BETWEEN 0 AND 100", name="rollout"),
    _one_of("state", STATES),
    UniqueConstraint("project", "name"),
)

audit = _table(
    "audit",
    _words("at", needed=True),
    _words("who", needed=True),
    _words("what", needed=True),
    _words("subject", needed=True),
    _words("detail", json="{}", needed=True),
    Index("idx_audit_project", "project", "at"),
    Index("idx_audit_subject", "project", "subject"),
)

golden_sets = _table(
    "golden_sets",
    _words("name", needed=True),
    _words("version", needed=True),
    _words("fingerprint", needed=True),
    _words("content", needed=True),
    _words("created_at", needed=True),
    UniqueConstraint("project", "name", "version"),
)

baselines = _table(
    "baselines",
    _words("name", needed=True),
    _words("version", needed=True),
    _words("content", needed=True),
    _words("reason", needed=True, default=""),
    _words("created_at", needed=True),
    UniqueConstraint("project", "name", "version"),
)

experiments = _table(
    "experiments",
    _words("experiment_id", needed=True),
    _words("name", needed=True),
    _words("content", needed=True),
    _words("created_at", needed=True),
    UniqueConstraint("project", "experiment_id"),
    Index("idx_experiments_project", "project", "created_at"),
)

api_keys = _table(
    "api_keys",
    _words("key_id", needed=True),
    _words("key_hash", needed=True),
    _words("name", needed=True),
    _words("scopes", needed=True),
    _words("created_at", needed=True),
    _words("expires_at"),
    _words("revoked_at"),
    _words("last_used_at"),
    UniqueConstraint("project", "key_id"),
    UniqueConstraint("key_hash"),
)

archives = _table(
    "archives",
    _words("path", needed=True),
    _words("first_at", needed=True),
    _words("last_at", needed=True),
    _whole("rows", needed=True),
    _words("created_at", needed=True),
    UniqueConstraint("project", "path"),
)

runs = _table(
    "runs",
    _words("run_id", needed=True),
    _words("name", needed=True),
    _words("created_at", needed=True),
    _bytes("content"),
    UniqueConstraint("project", "run_id"),
)

jobs = _table(
    "jobs",
    _words("job_id", needed=True),
    _words("kind", needed=True),
    _words("state", needed=True),
    _words("created_at", needed=True),
    _words("updated_at", needed=True),
    _words("who", needed=True, default=""),
    _words("request", json="{}", needed=True),
    _whole("done", needed=True, default="0"),
    _whole("total"),
    _words("says", needed=True, default=""),
    _words("result"),
    _words("error"),
    _one_of("state", JOB_STATES),
    UniqueConstraint("project", "job_id"),
    Index("idx_jobs_project", "project", "created_at", "id"),
)

replies = _table(
    "replies",
    _words("key", needed=True),
    _words("route", needed=True),
    _words("fingerprint", needed=True),
    _whole("status"),
    _bytes("body"),
    _words("created_at", needed=True),
    UniqueConstraint("project", "key"),
    Index("idx_replies_created", "created_at"),
)

history = _table(
    "history",
    _words("series", needed=True),
    _words("at", needed=True),
    _words("labels", json="{}", needed=True),
    Column("value", NUMBER, nullable=False),
    # The order serves the question for a series between two times as well.
    UniqueConstraint("project", "series", "at", "labels"),
)

test_points = _table(
    "test_points",
    _words("feature_id", needed=True),
    _whole("sample_count", needed=True),
    _words("at", needed=True),
    Column("llr", NUMBER, nullable=False),
    _number("estimate"),
    _number("low"),
    _number("high"),
    UniqueConstraint("project", "feature_id", "sample_count"),
    ForeignKeyConstraint(["project", "feature_id"], ["eval_ab_tests.project", "eval_ab_tests.feature_id"], ondelete="CASCADE"),
)

TABLES = tuple(METADATA.sorted_tables)
"""All of them, those referred to first."""
