"""What the service keeps: runs, jobs, replies, history and paths of tests; on PostgreSQL projects are closed to each other."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

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
    _table(
        "runs",
        _text("run_id"),
        _text("name"),
        _text("created_at"),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        unique=("run_id",),
    )
    _table(
        "jobs",
        _text("job_id"),
        _text("kind"),
        _text("state"),
        _text("created_at"),
        _text("updated_at"),
        _text("who", default=""),
        _text("request", default="{}"),
        sa.Column("done", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("total", sa.Integer(), nullable=True),
        _text("says", default=""),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'interrupted')", name=op.f("ck_jobs_state")
        ),
        unique=("job_id",),
    )
    op.create_index("idx_jobs_project", "jobs", ["project", "created_at", "id"])
    _table(
        "replies",
        _text("key"),
        _text("route"),
        _text("fingerprint"),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        _text("created_at"),
        unique=("key",),
    )
    op.create_index("idx_replies_created", "replies", ["created_at"])
    _table(
        "history",
        _text("series"),
        _text("at"),
        _text("labels", default="{}"),
        _number("value", nullable=False),
        unique=("series", "at", "labels"),
    )
    _table(
        "test_points",
        _text("feature_id"),
        sa.Column("sample_count", sa.Integer(), nullable=False),
        _text("at"),
        _number("llr", nullable=False),
        _number("estimate"),
        _number("low"),
        _number("high"),
        sa.ForeignKeyConstraint(
            ["project", "feature_id"],
            ["eval_ab_tests.project", "eval_ab_tests.feature_id"],
            name=op.f("fk_test_points_eval_ab_tests"),
            ondelete="CASCADE",
        ),
        unique=("feature_id", "sample_count"),
    )
    if op.get_context().dialect.name == "postgresql":
        for table in PROJECT_TABLES:
            op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
            op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")  # the owner, who the store is, would pass otherwise
            op.execute(f"CREATE POLICY ringtrue_project ON {table} USING ({VISIBLE}) WITH CHECK ({VISIBLE})")


def _table(name: str, *items: sa.schema.SchemaItem, unique: tuple[str, ...]) -> None:
    key = ("project", *unique)
    op.create_table(
        name,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Identity(always=False), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        *items,
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{name}")),
        sa.UniqueConstraint(*key, name=op.f(f"uq_{name}_{'_'.join(key)}")),
        sqlite_autoincrement=True,
    )


def _text(name: str, *, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), server_default=None if default is None else sa.text(f"'{default}'"), nullable=False)


def _number(name: str, *, nullable: bool = True) -> sa.Column[float]:
    return sa.Column(name, sa.Double().with_variant(sa.REAL(), "sqlite"), nullable=nullable)
