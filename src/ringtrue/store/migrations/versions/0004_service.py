"""What the service keeps: runs, jobs, replies, history and paths of tests; on PostgreSQL projects are closed to each other."""

from __future__ import annotations

from alembic import op

from ringtrue.store.migrations.columns import binary, create_table, integer, number, one_of, text

revision = "0004"
down_revision = "0003"

PROJECT_TABLES = (
    "api_keys", "archives", "audit", "baselines", "eval_ab_counted", "eval_ab_tests", "eval_feedback", "eval_judgments",
    "eval_queries", "eval_results", "eval_shadow_runs", "experiments", "flags", "golden_sets", "history", "jobs", "ratings",
    "replies", "reviews", "runs", "test_points",
)  # fmt: skip
# Unset, the setting is NULL, or '' where an earlier transaction of the same session had set it: no row in either case.
# As a query of its own it is read once for a statement, not once for a row; as a CASE it leaves the planner's estimates alone,
# which would otherwise count the project twice and take a hundred thousand rows for two.
VISIBLE = """
    CASE (SELECT current_setting('ringtrue.project', true))
        WHEN '*' THEN true
        WHEN '' THEN false
        ELSE project = (SELECT current_setting('ringtrue.project', true))
    END
"""
COUNTED_BY = ("tool_name", "result_count", "degraded", "total_latency_ms", "quality_proxy_score")


def upgrade() -> None:
    op.drop_index("idx_eval_queries_project", "eval_queries")
    op.create_index("idx_eval_queries_project", "eval_queries", ["project", "created_at", "query_id", *COUNTED_BY])
    create_table("runs", text("run_id", "name", "created_at"), binary("content"), unique=["run_id"])
    create_table(
        "jobs",
        text("job_id", "kind", "state", "created_at", "updated_at"),
        text("who", default=""),
        text("request", default="{}"),
        integer("done", default="0"),
        integer("total", null=True),
        text("says", default=""),
        text("result", "error", null=True),
        unique=["job_id"],
        checks={"state": one_of("state", "queued", "running", "done", "failed", "cancelled", "interrupted")},
        indexes={"jobs_project": ["project", "created_at", "id"]},
    )
    create_table(
        "replies",
        text("key", "route", "fingerprint"),
        integer("status", null=True),
        binary("body"),
        text("created_at"),
        unique=["key"],
        indexes={"replies_created": ["created_at"]},
    )
    create_table(
        "history",
        text("series", "at"),
        text("labels", default="{}"),
        number("value"),
        unique=["series", "at", "labels"],
    )
    create_table(
        "test_points",
        text("feature_id"),
        integer("sample_count"),
        text("at"),
        number("llr"),
        number("estimate", "low", "high", null=True),
        unique=["feature_id", "sample_count"],
        parent=("eval_ab_tests", "feature_id"),
    )
    if op.get_context().dialect.name == "postgresql":
        for table in PROJECT_TABLES:
            op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")  # the owner, who the store is, would pass otherwise
            op.execute(f"CREATE POLICY ringtrue_project ON {table} USING ({VISIBLE}) WITH CHECK ({VISIBLE})")
