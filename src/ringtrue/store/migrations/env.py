"""Run by Alembic: migrations inside the transaction that the store has begun."""

from alembic import context

from ringtrue.store.schema import VERSION_TABLE


def run() -> None:
    """Run the migrations on the store's own connection."""
    context.configure(
        connection=context.config.attributes["connection"],
        version_table=VERSION_TABLE,
        transactional_ddl=True,
    )
    context.run_migrations()


if hasattr(context, "config"):  # only while Alembic runs; a mere import, as by a collector of doctests, has none
    run()
