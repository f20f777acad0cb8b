"""Whose searches are logged: users', or those of evaluations and tests; and which runs are on uploaded golden sets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

INDEX = "idx_eval_queries_project"
COUNTED_BY = ("tool_name", "result_count", "degraded", "total_latency_ms", "quality_proxy_score")


def upgrade() -> None:
    op.add_column("eval_queries", sa.Column("traffic", sa.Text(), server_default=sa.text("'user'"), nullable=False))
    op.add_column("eval_results", sa.Column("uploaded", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.drop_index(INDEX, "eval_queries")
    op.create_index(INDEX, "eval_queries", ["project", "created_at", "query_id", *COUNTED_BY, "traffic"])
