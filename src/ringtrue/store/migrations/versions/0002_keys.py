"""Scopes and last use of API keys; searches found by trace and by prompt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    # Renamed, not dropped: SQLite drops columns only from 3.35 on.
    op.execute("ALTER TABLE api_keys RENAME COLUMN role TO scopes")
    op.execute("""UPDATE api_keys SET scopes = '["' || scopes || '"]'""")
    op.add_column("api_keys", sa.Column("last_used_at", sa.Text(), nullable=True))
    for name in ("trace", "prompt"):
        known = sa.text(f"{name}_id IS NOT NULL")
        op.create_index(
            f"idx_eval_queries_{name}",
            "eval_queries",
            ["project", f"{name}_id"],
            sqlite_where=known,
            postgresql_where=known,
        )
