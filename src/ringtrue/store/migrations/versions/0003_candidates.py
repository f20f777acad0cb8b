"""Shadow runs of a candidate that was changed, beside those of the one before: a search counts once for each."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

TABLE = "eval_shadow_runs"
KEY = ("project", "feature_id", "query_id")


def upgrade() -> None:
    name = f"uq_{TABLE}_{'_'.join(KEY)}"
    # SQLite changes no rule of a table: there, all rows move to a new one.
    with op.batch_alter_table(TABLE, table_kwargs={"sqlite_autoincrement": True}) as table:
        table.add_column(sa.Column("candidate", sa.Text(), server_default=sa.text("''"), nullable=False))
        table.add_column(sa.Column("source", sa.Text(), nullable=True))
        table.drop_constraint(name, type_="unique")
        table.create_unique_constraint(f"{name}_candidate", [*KEY, "candidate"])
