"""``ringtrue store``: the platform's database: its contents, schema, backups, moving, and retention."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json, Overwrite, StoreOptions, StoreUrl, command_group, existing, utc_now
from ringtrue.config import load_config
from ringtrue.errors import InputError, MissingInput

app = command_group("Inspect, upgrade, back up and prune the database. It is a SQLite file, or PostgreSQL.")


@app.command()
def info(store: StoreUrl = None, json: Json = False) -> None:
    """Show where the store is, its schema, how many rows each table has, and its archives.

    Example: ringtrue store info --store .ringtrue/store.sqlite
    """
    with existing(store) as opened:
        counts, archives, version = opened.counts(), opened.archives(), opened.schema_version()
        place = str(opened.address)
    show.result(
        json,
        {"store": place, "schema": version, "rows": counts, "archives": archives},
        f"store {place}, schema {version}",
        _rows(counts),
        *(f"archive {archive}" + ("" if archive.is_file() else " (missing)") for archive in archives),
    )


@app.command()
def upgrade(store: StoreUrl = None, json: Json = False) -> None:
    """Upgrade the store to the schema of this version, completely or not at all. Make a backup first.

    Example: ringtrue store upgrade
    """
    before, after = lib.store.Store.upgrade(store)
    changed = f"the store has schema {after} now; it was {before or 'empty'}"
    said = f"the store has schema {after} already" if before == after else changed
    show.result(json, {"before": before, "after": after}, said)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, such as safe/store.sqlite.")],
    store: StoreUrl = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Back up the store while it is in use, to a SQLite file. It restores on SQLite and on PostgreSQL.

    Example: ringtrue store backup backups/store.sqlite
    """
    with existing(store) as opened:
        counts = opened.backup(file, overwrite=overwrite)
    said = f"{show.counted(sum(counts.values()), 'row is', 'rows are')} in {file}"
    show.result(json, {"file": file, "rows": counts}, _rows(counts), said)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file that ringtrue store backup has written.")],
    store: StoreUrl = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the contents of the store.")] = False,
    json: Json = False,
) -> None:
    """Restore a backup, completely or not at all. The store must be empty unless --replace is given.

    Example: ringtrue store restore backups/store.sqlite --store postgresql://ringtrue@db/ringtrue
    """
    lib.store.Store.check_backup(file)  # what is no backup must not leave an empty store behind
    with lib.store.Store.open(store) as opened:
        counts, place = opened.restore(file, replace=replace), str(opened.address)
    said = f"{show.counted(sum(counts.values()), 'row was', 'rows were')} restored to {place} and compared"
    show.result(json, {"file": file, "store": place, "rows": counts}, _rows(counts), said)


@app.command()
def migrate(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The store to read: a file or postgresql://….")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The store to write; created if it does not exist.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace the contents of the target store.")] = False,
    json: Json = False,
) -> None:
    """Copy a store to another database, completely or not at all, and compare the rows. Stop all writers first.

    Example: ringtrue store migrate .ringtrue/store.sqlite postgresql://ringtrue@db/ringtrue
    """
    with existing(source) as old, lib.store.Store.open(target) as new:
        counts = new.copy_from(old, replace=replace)
        places = {"from": str(old.address), "to": str(new.address)}
    said = f"{sum(counts.values()):,} rows were copied from {places['from']} to {places['to']} and compared"
    show.result(json, {**places, "rows": counts}, _rows(counts), said)


@app.command()
def prune(
    store: StoreUrl = None,
    archive: Annotated[
        Path | None, typer.Option(help="Folder for archived searches; default: 'archive' beside a SQLite store.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    forget: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Only remove this archive, which no longer exists, from the list of archives."),
    ] = None,
    json: Json = False,
) -> None:
    """Archive and delete searches that are past their retention, and delete other rows that are.

    Retention in days: searches, feedback and finished jobs 90, shadow runs 30, the service's history of figures 400, its
    replies to writes 2; [store.retention] changes it. Everything else is kept.

    Example: ringtrue store prune --dry-run
    """
    config = load_config()
    settings = config.store.get("retention", {})
    if not isinstance(settings, dict):
        raise InputError(f"{config.file}: store.retention is not a table; write [store.retention] with queries = 90 under it")
    retention = lib.store.Retention.of(settings, place=f"{config.file or 'ringtrue.toml'}: store.retention")
    with existing(store) as opened:
        if forget is not None:
            if not opened.forget_archive(forget):
                raise MissingInput(f"{forget}: this store does not list that archive; see ringtrue store info")
            found: list[lib.store.Pruned] = []
        else:
            folder = archive or (opened.address.sqlite.parent / "archive" if opened.address.sqlite else None)
            if folder is None:
                raise InputError("PostgreSQL has no folder of its own for archives; name one: --archive DIR")
            found = opened.prune(now=utc_now().isoformat(), archive=folder, retention=retention, dry_run=dry_run)
    deleted = {"feedback": "feedback", "shadow": "shadow runs", "history": "history", "replies": "replies", "jobs": "jobs"}
    counts = {each.project: (each.queries, *(getattr(each, name) for name in deleted)) for each in found}
    rows = [[project, *(f"{count:,}" for count in figures)] for project, figures in counts.items()]
    would = "would be " if dry_run else ""
    show.result(
        json,
        {"dry_run": dry_run, "projects": {pruned.project: pruned for pruned in found}},
        f"{forget} is no longer an archive of this store" if forget is not None else "",
        show.Table(("project", f"searches {would}archived", *(f"{name} {would}deleted" for name in deleted.values())), rows),
        *(f"archive {file}" for each in found for file in each.archives),
    )


@app.command()
def forget(
    *,
    user: Annotated[str, typer.Argument(help="The user's id, as it appears in the log.")],
    hashed: Annotated[
        bool, typer.Option("--hashed", help="The log holds a hash of the id, made with RINGTRUE_LOG_SALT.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show how much would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking; this cannot be undone.")] = False,
    options: StoreOptions,
) -> None:
    """Delete a user's searches and events and everything that refers to them, also from archives and spools.

    Queries that others searched for, too, are kept, and so are manual judgments of them (docs/store.md).

    Example: ringtrue store forget u-4711 --project shop --dry-run
    Example: ringtrue store forget u-4711 --project shop --yes
    """
    if yes == dry_run:
        raise InputError(f"deleting '{user}' cannot be undone; preview it with --dry-run, then repeat with --yes")
    if hashed:
        user = lib.log.Redactor(hash_users=True).user(user, options.project) or user
    with options.existing() as opened:
        if dry_run:
            options.tell_elsewhere(opened)
        counts, forgotten = opened.user_rows(user, project=options.project), 0
        count = sum(counts.values())
        if not dry_run:
            count = opened.delete_user(user, project=options.project, now=utc_now().isoformat())
            forgotten = _settled(opened, options.project)
    record = {"dry_run": dry_run, "project": options.project, "rows": count, "spooled": forgotten, "tables": counts}
    said = f"{show.counted(count, 'row')} of the user {'would be' if dry_run else 'was' if count == 1 else 'were'} deleted"
    spooled = f"{forgotten:,} events that were still waiting in a spool, too" if forgotten else ""
    show.result(options.json, record, _rows(counts), said, spooled)


def _settled(store: lib.store.Store, project: str) -> int:
    """Bring in what processes that ended left in their spools; return how many events of deleted users were left out."""
    folder = lib.log.log_folder(store)
    if folder is None or not folder.is_dir():
        return 0
    log = lib.log.QueryLog(store, project=project)
    log.close()
    return sum(one.counts.forgotten for one in log.recovered)


def _rows(counts: dict[str, int]) -> show.Table:
    return show.Table(("table", "rows"), [[name, f"{count:,}"] for name, count in counts.items()])
