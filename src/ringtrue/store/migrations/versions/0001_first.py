"""The tables of the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ringtrue.store.migrations.columns import create_partial_index, create_table, integer, number, one_of, text

revision = "0001"
down_revision = None

STATES = ("running", "graduated", "rejected", "paused")
EVENT_TYPES = (
    "read_after_search", "re_search", "scroll_past", "reference", "validate_useful", "validate_not_useful",
    "selection", "click", "dwell", "cite",
)  # fmt: skip


def upgrade() -> None:
    _searches()
    _evaluations()
    _rollout()
    _reviews()
    _service()


def _searches() -> None:
    name = "eval_queries"
    create_table(
        name,
        text("query_id", "query"),
        text("intent", "mode", "session_id", "user_id", null=True),
        text("tool_name"),
        text("result_ids", default="[]"),
        integer("result_count", default="0"),
        text("scores", default="[]"),
        text("channel_contributions", default="{}", null=True),
        number("total_latency_ms", null=True),
        text("stage_latency_ms", default="{}"),
        text("stages", default="[]"),
        text("fusion_weights", null=True),
        number("quality_proxy_score", null=True),
        text("trace_id", "prompt_id", "retriever", "fallback", null=True),
        integer("degraded", default="0"),
        text("mode_override", "token_pressure_level", null=True),
        number("token_pressure_ratio", "boost_delta", null=True),
        integer("extraction_count", null=True),
        text("flags", default="{}"),
        text("created_at"),
        integer("is_eval_corpus", default="0"),
        text("eval_category", null=True),
        unique=["query_id"],
        indexes={
            f"{name}_created": ["created_at"],
            f"{name}_intent": ["intent"],
            f"{name}_project": ["project", "created_at", "query_id"],
            f"{name}_session": ["session_id"],
            f"{name}_tool": ["tool_name"],
        },
    )
    create_partial_index(f"idx_{name}_corpus", name, ["is_eval_corpus"], "is_eval_corpus = 1")
    create_partial_index(f"idx_{name}_user", name, ["project", "user_id"], "user_id IS NOT NULL")
    name = "eval_feedback"
    create_table(
        name,
        text("event_id", "event_type", "session_id"),
        text("query_id", "memory_id", null=True),
        integer("rank_in_results", null=True),
        text("actor", default="unknown"),
        text("user_id", null=True),
        text("metadata", default="{}", null=True),
        text("created_at"),
        unique=["event_id"],
        checks={"actor": one_of("actor", "person", "agent", "unknown"), "event_type": one_of("event_type", *EVENT_TYPES)},
        indexes={
            f"{name}_created": ["created_at"],
            f"{name}_project": ["project", "created_at", "event_id"],
            f"{name}_query": ["query_id"],
            f"{name}_session": ["session_id"],
            f"{name}_type": ["event_type"],
        },
    )
    name = "eval_judgments"
    create_table(
        name,
        text("query_id", "memory_id"),
        integer("relevance"),
        text("source"),
        text("annotator", default=""),
        number("confidence", default="1.0"),
        text("metadata", default="{}"),
        text("created_at"),
        unique=["query_id", "memory_id", "source", "annotator"],
        checks={
            "relevance": "relevance BETWEEN 0 AND 3",
            "source": one_of("source", "manual", "implicit", "bootstrapped", "validated"),
        },
        indexes={f"{name}_memory": ["memory_id"], f"{name}_query": ["query_id"], f"{name}_source": ["source"]},
    )


def _evaluations() -> None:
    create_table(
        "eval_results",
        text("run_id", "run_type"),
        text("feature_id", null=True),
        number("mrr_at_5", "mrr_at_10", "ndcg_at_5", "ndcg_at_10", "ndcg_at_20", "recall_at_5", "recall_at_10", null=True),
        number("constitutional_surfacing_rate", "importance_weighted_recall", "cold_start_mrr", null=True),
        number("session_personalization_lift", "causal_chain_completeness", "avg_latency_ms", null=True),
        text("channel_contribution_json", null=True),
        number("result_diversity_score", null=True),
        integer("query_count"),
        number("confidence_interval_lower", "confidence_interval_upper", null=True),
        text("control_run_id", null=True),
        number("mrr_delta", "ndcg_delta", "p_value", null=True),
        integer("is_significant", null=True),
        text("golden", "retriever", "gate", null=True),
        text("metrics", "intervals", "latency_ms", "deltas", default="{}"),
        text("created_at"),
        text("per_query_results", null=True),
        unique=["run_id"],
        checks={"run_type": one_of("run_type", "full", "shadow", "regression", "ab_test")},
        indexes={
            "eval_results_created": ["created_at"],
            "eval_results_feature": ["feature_id"],
            "eval_results_project": ["project", "created_at"],
            "eval_results_run": ["run_id"],
            "eval_results_type": ["run_type"],
        },
    )
    create_table(
        "golden_sets",
        text("name", "version", "fingerprint", "content", "created_at"),
        unique=["name", "version"],
    )
    create_table(
        "baselines",
        text("name", "version", "content"),
        text("reason", default=""),
        text("created_at"),
        unique=["name", "version"],
    )
    create_table(
        "experiments",
        text("experiment_id", "name", "content", "created_at"),
        unique=["experiment_id"],
        indexes={"experiments_project": ["project", "created_at"]},
    )


def _rollout() -> None:
    create_table(
        "eval_ab_tests",
        text("feature_id", "status"),
        text("method", default="sprt"),
        number("alpha", default="0.05"),
        number("beta", default="0.2"),
        number("delta", default="0.05"),
        number("sigma", null=True),
        number("log_likelihood_ratio", default="0"),
        number("upper_bound", "lower_bound"),
        integer("sample_count", default="0"),
        number("control_mrr_sum", "treatment_mrr_sum", "control_ndcg_sum", "treatment_ndcg_sum", default="0"),
        text("sums", default="{}"),
        integer("min_samples", default="100"),
        number("graduation_threshold", default="0.03"),
        text("decision", null=True),
        text("started_at", "updated_at"),
        text("graduated_at", null=True),
        unique=["feature_id"],
        checks={"status": one_of("status", *STATES)},
        indexes={"eval_ab_status": ["status"]},
    )
    create_table(
        "eval_ab_counted",
        text("feature_id", "query_id"),
        unique=["feature_id", "query_id"],
        parent=("eval_ab_tests", "feature_id"),
    )
    create_table(
        "eval_shadow_runs",
        text("query_id", "feature_id", "control_result_ids", "treatment_result_ids"),
        number("rank_correlation", "set_overlap", null=True),
        integer("top_result_changed", "order_differences", null=True),
        number("mrr_delta", "ndcg_delta", "control_latency_ms", "treatment_latency_ms", null=True),
        text("error", null=True),
        text("created_at"),
        unique=["feature_id", "query_id"],
        indexes={
            "eval_shadow_created": ["created_at"],
            "eval_shadow_feature": ["feature_id"],
            "eval_shadow_project": ["project", "feature_id", "created_at"],
        },
    )
    create_table(
        "flags",
        text("name"),
        number("rollout", default="0"),
        integer("shadow", default="0"),
        integer("min_samples", default="100"),
        number("graduation_threshold", default="0.03"),
        text("state"),
        text("stage_since", null=True),
        text("description", default=""),
        text("metadata", default="{}"),
        unique=["name"],
        checks={"state": one_of("state", *STATES), "rollout": "rollout BETWEEN 0 AND 100"},
    )


def _reviews() -> None:
    create_table(
        "reviews",
        text("item_key", "query_id", "query", "doc_id"),
        text("title", "text", default=""),
        number("priority", default="0"),
        text("state"),
        integer("wanted", default="1"),
        text("reserved_by", "reserved_until", null=True),
        text("metadata", default="{}"),
        text("created_at"),
        unique=["item_key"],
        checks={"state": one_of("state", "pending_review", "approved", "rejected", "published")},
        indexes={"reviews_query": ["query_id"], "reviews_state": ["project", "state", "priority"]},
    )
    create_table(
        "ratings",
        text("item_key", "reviewer"),
        integer("grade"),
        text("at"),
        text("note", default=""),
        unique=["item_key", "reviewer"],
        parent=("reviews", "item_key"),
    )


def _service() -> None:
    create_table(
        "api_keys",
        text("key_id", "key_hash", "name", "role", "created_at"),
        text("expires_at", "revoked_at", null=True),
        unique=["key_id"],
        more=[sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash"))],
    )
    create_table("archives", text("path", "first_at", "last_at"), integer("rows"), text("created_at"), unique=["path"])
    create_table(
        "audit",
        text("at", "who", "what", "subject"),
        text("detail", default="{}"),
        indexes={"audit_project": ["project", "at"], "audit_subject": ["project", "subject"]},
    )
