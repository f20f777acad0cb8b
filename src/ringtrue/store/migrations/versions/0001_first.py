"""The tables of the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=True),
        sa.Column("revoked_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
        sa.UniqueConstraint("project", "key_id", name=op.f("uq_api_keys_project_key_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "archives",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("first_at", sa.Text(), nullable=False),
        sa.Column("last_at", sa.Text(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_archives")),
        sa.UniqueConstraint("project", "path", name=op.f("uq_archives_project_path")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_audit_project", "audit", ["project", "at"], unique=False)
    op.create_index("idx_audit_subject", "audit", ["project", "subject"], unique=False)
    op.create_table(
        "baselines",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_baselines")),
        sa.UniqueConstraint("project", "name", "version", name=op.f("uq_baselines_project_name_version")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "eval_ab_tests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("feature_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("method", sa.Text(), server_default=sa.text("'sprt'"), nullable=False),
        sa.Column("alpha", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0.05"), nullable=False),
        sa.Column("beta", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0.2"), nullable=False),
        sa.Column("delta", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0.05"), nullable=False),
        sa.Column("sigma", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column(
            "log_likelihood_ratio", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0"), nullable=False
        ),
        sa.Column("upper_bound", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=False),
        sa.Column("lower_bound", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=False),
        sa.Column("sample_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "control_mrr_sum", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0"), nullable=False
        ),
        sa.Column(
            "treatment_mrr_sum", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0"), nullable=False
        ),
        sa.Column(
            "control_ndcg_sum", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0"), nullable=False
        ),
        sa.Column(
            "treatment_ndcg_sum", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0"), nullable=False
        ),
        sa.Column("sums", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("min_samples", sa.Integer(), server_default=sa.text("100"), nullable=False),
        sa.Column(
            "graduation_threshold",
            sa.Double().with_variant(sa.REAL(), "sqlite"),
            server_default=sa.text("0.03"),
            nullable=False,
        ),
        sa.Column("decision", sa.Text(), nullable=True),
        sa.Column("started_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.Column("graduated_at", sa.Text(), nullable=True),
        sa.CheckConstraint("status IN ('running', 'graduated', 'rejected', 'paused')", name=op.f("ck_eval_ab_tests_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_ab_tests")),
        sa.UniqueConstraint("project", "feature_id", name=op.f("uq_eval_ab_tests_project_feature_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_eval_ab_status", "eval_ab_tests", ["status"], unique=False)
    op.create_table(
        "eval_feedback",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=True),
        sa.Column("memory_id", sa.Text(), nullable=True),
        sa.Column("rank_in_results", sa.Integer(), nullable=True),
        sa.Column("actor", sa.Text(), server_default=sa.text("'unknown'"), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), server_default=sa.text("'{}'"), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("actor IN ('person', 'agent', 'unknown')", name=op.f("ck_eval_feedback_actor")),
        sa.CheckConstraint(
            "event_type IN ('read_after_search', 're_search', 'scroll_past', 'reference', "
            "'validate_useful', 'validate_not_useful', 'selection', 'click', 'dwell', 'cite')",
            name=op.f("ck_eval_feedback_event_type"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_feedback")),
        sa.UniqueConstraint("project", "event_id", name=op.f("uq_eval_feedback_project_event_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_eval_feedback_created", "eval_feedback", ["created_at"], unique=False)
    op.create_index("idx_eval_feedback_project", "eval_feedback", ["project", "created_at", "event_id"], unique=False)
    op.create_index("idx_eval_feedback_query", "eval_feedback", ["query_id"], unique=False)
    op.create_index("idx_eval_feedback_session", "eval_feedback", ["session_id"], unique=False)
    op.create_index("idx_eval_feedback_type", "eval_feedback", ["event_type"], unique=False)
    op.create_table(
        "eval_judgments",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("relevance", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("confidence", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("1.0"), nullable=False),
        sa.Column("metadata", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "source IN ('manual', 'implicit', 'bootstrapped', 'validated')", name=op.f("ck_eval_judgments_source")
        ),
        sa.CheckConstraint("relevance BETWEEN 0 AND 3", name=op.f("ck_eval_judgments_relevance")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_judgments")),
        sa.UniqueConstraint(
            "project",
            "query_id",
            "memory_id",
            "source",
            "annotator",
            name=op.f("uq_eval_judgments_project_query_id_memory_id_source_annotator"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_eval_judgments_memory", "eval_judgments", ["memory_id"], unique=False)
    op.create_index("idx_eval_judgments_query", "eval_judgments", ["query_id"], unique=False)
    op.create_index("idx_eval_judgments_source", "eval_judgments", ["source"], unique=False)
    op.create_table(
        "eval_queries",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=True),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("result_ids", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("result_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("scores", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("channel_contributions", sa.Text(), server_default=sa.text("'{}'"), nullable=True),
        sa.Column("total_latency_ms", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("stage_latency_ms", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("stages", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("fusion_weights", sa.Text(), nullable=True),
        sa.Column("quality_proxy_score", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("trace_id", sa.Text(), nullable=True),
        sa.Column("prompt_id", sa.Text(), nullable=True),
        sa.Column("retriever", sa.Text(), nullable=True),
        sa.Column("fallback", sa.Text(), nullable=True),
        sa.Column("degraded", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("mode_override", sa.Text(), nullable=True),
        sa.Column("token_pressure_level", sa.Text(), nullable=True),
        sa.Column("token_pressure_ratio", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("boost_delta", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("extraction_count", sa.Integer(), nullable=True),
        sa.Column("flags", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("is_eval_corpus", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("eval_category", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_queries")),
        sa.UniqueConstraint("project", "query_id", name=op.f("uq_eval_queries_project_query_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "idx_eval_queries_corpus",
        "eval_queries",
        ["is_eval_corpus"],
        unique=False,
        sqlite_where=sa.text("is_eval_corpus = 1"),
        postgresql_where=sa.text("is_eval_corpus = 1"),
    )
    op.create_index("idx_eval_queries_created", "eval_queries", ["created_at"], unique=False)
    op.create_index("idx_eval_queries_intent", "eval_queries", ["intent"], unique=False)
    op.create_index("idx_eval_queries_project", "eval_queries", ["project", "created_at", "query_id"], unique=False)
    op.create_index("idx_eval_queries_session", "eval_queries", ["session_id"], unique=False)
    op.create_index("idx_eval_queries_tool", "eval_queries", ["tool_name"], unique=False)
    op.create_index(
        "idx_eval_queries_user",
        "eval_queries",
        ["project", "user_id"],
        unique=False,
        sqlite_where=sa.text("user_id IS NOT NULL"),
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )
    op.create_table(
        "eval_results",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("run_type", sa.Text(), nullable=False),
        sa.Column("feature_id", sa.Text(), nullable=True),
        sa.Column("mrr_at_5", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("mrr_at_10", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("ndcg_at_5", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("ndcg_at_10", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("ndcg_at_20", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("recall_at_5", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("recall_at_10", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("constitutional_surfacing_rate", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("importance_weighted_recall", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("cold_start_mrr", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("session_personalization_lift", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("causal_chain_completeness", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("avg_latency_ms", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("channel_contribution_json", sa.Text(), nullable=True),
        sa.Column("result_diversity_score", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("query_count", sa.Integer(), nullable=False),
        sa.Column("confidence_interval_lower", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("confidence_interval_upper", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("control_run_id", sa.Text(), nullable=True),
        sa.Column("mrr_delta", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("ndcg_delta", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("p_value", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("is_significant", sa.Integer(), nullable=True),
        sa.Column("golden", sa.Text(), nullable=True),
        sa.Column("retriever", sa.Text(), nullable=True),
        sa.Column("gate", sa.Text(), nullable=True),
        sa.Column("metrics", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("intervals", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("latency_ms", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("deltas", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("per_query_results", sa.Text(), nullable=True),
        sa.CheckConstraint("run_type IN ('full', 'shadow', 'regression', 'ab_test')", name=op.f("ck_eval_results_run_type")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_results")),
        sa.UniqueConstraint("project", "run_id", name=op.f("uq_eval_results_project_run_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_eval_results_created", "eval_results", ["created_at"], unique=False)
    op.create_index("idx_eval_results_feature", "eval_results", ["feature_id"], unique=False)
    op.create_index("idx_eval_results_project", "eval_results", ["project", "created_at"], unique=False)
    op.create_index("idx_eval_results_run", "eval_results", ["run_id"], unique=False)
    op.create_index("idx_eval_results_type", "eval_results", ["run_type"], unique=False)
    op.create_table(
        "eval_shadow_runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=False),
        sa.Column("feature_id", sa.Text(), nullable=False),
        sa.Column("control_result_ids", sa.Text(), nullable=False),
        sa.Column("treatment_result_ids", sa.Text(), nullable=False),
        sa.Column("rank_correlation", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("set_overlap", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("top_result_changed", sa.Integer(), nullable=True),
        sa.Column("order_differences", sa.Integer(), nullable=True),
        sa.Column("mrr_delta", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("ndcg_delta", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("control_latency_ms", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("treatment_latency_ms", sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_shadow_runs")),
        sa.UniqueConstraint("project", "feature_id", "query_id", name=op.f("uq_eval_shadow_runs_project_feature_id_query_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_eval_shadow_created", "eval_shadow_runs", ["created_at"], unique=False)
    op.create_index("idx_eval_shadow_feature", "eval_shadow_runs", ["feature_id"], unique=False)
    op.create_index("idx_eval_shadow_project", "eval_shadow_runs", ["project", "feature_id", "created_at"], unique=False)
    op.create_table(
        "experiments",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("experiment_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_experiments")),
        sa.UniqueConstraint("project", "experiment_id", name=op.f("uq_experiments_project_experiment_id")),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_experiments_project", "experiments", ["project", "created_at"], unique=False)
    op.create_table(
        "flags",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("rollout", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0"), nullable=False),
        sa.Column("shadow", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("min_samples", sa.Integer(), server_default=sa.text("100"), nullable=False),
        sa.Column(
            "graduation_threshold",
            sa.Double().with_variant(sa.REAL(), "sqlite"),
            server_default=sa.text("0.03"),
            nullable=False,
        ),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("stage_since", sa.Text(), nullable=True),
        sa.Column("description", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("metadata", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.CheckConstraint("state IN ('running', 'graduated', 'rejected', 'paused')", name=op.f("ck_flags_state")),
        sa.CheckConstraint("rollout BETWEEN 0 AND 100", name=op.f("ck_flags_rollout")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_flags")),
        sa.UniqueConstraint("project", "name", name=op.f("uq_flags_project_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "golden_sets",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_golden_sets")),
        sa.UniqueConstraint("project", "name", "version", name=op.f("uq_golden_sets_project_name_version")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "reviews",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("item_key", sa.Text(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("doc_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("text", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("priority", sa.Double().with_variant(sa.REAL(), "sqlite"), server_default=sa.text("0"), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("wanted", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("reserved_by", sa.Text(), nullable=True),
        sa.Column("reserved_until", sa.Text(), nullable=True),
        sa.Column("metadata", sa.Text(), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.CheckConstraint("state IN ('pending_review', 'approved', 'rejected', 'published')", name=op.f("ck_reviews_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
        sa.UniqueConstraint("project", "item_key", name=op.f("uq_reviews_project_item_key")),
        sqlite_autoincrement=True,
    )
    op.create_index("idx_reviews_query", "reviews", ["query_id"], unique=False)
    op.create_index("idx_reviews_state", "reviews", ["project", "state", "priority"], unique=False)
    op.create_table(
        "eval_ab_counted",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("feature_id", sa.Text(), nullable=False),
        sa.Column("query_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project", "feature_id"],
            ["eval_ab_tests.project", "eval_ab_tests.feature_id"],
            name=op.f("fk_eval_ab_counted_eval_ab_tests"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_ab_counted")),
        sa.UniqueConstraint("project", "feature_id", "query_id", name=op.f("uq_eval_ab_counted_project_feature_id_query_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "ratings",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("item_key", sa.Text(), nullable=False),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("grade", sa.Integer(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project", "item_key"],
            ["reviews.project", "reviews.item_key"],
            name=op.f("fk_ratings_reviews"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ratings")),
        sa.UniqueConstraint("project", "item_key", "reviewer", name=op.f("uq_ratings_project_item_key_reviewer")),
        sqlite_autoincrement=True,
    )
