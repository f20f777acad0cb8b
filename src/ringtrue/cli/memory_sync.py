"""``ringtrue memory sync``: what the hooks noted into the platform's store, where feedback and health find it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.memory import Root, found_root
from ringtrue.cli.options import StoreOptions, moment

RETENTION = "90d"
"""What is older, the store would prune again."""


def sync_command(
    *,
    root: Root = None,
    since: Annotated[str, typer.Option(help="From a time on, or for so long: 24h, 7d.")] = RETENTION,
    hash_only: Annotated[
        bool, typer.Option("--hash-only", help="Store no word of a prompt, only a keyed hash (needs RINGTRUE_LOG_SALT).")
    ] = False,
    options: StoreOptions,
) -> None:
    """Copy what the memory noted into the store: prompts, what they were shown, reads, quotations, validations and tasks.

    Running it again adds only what is new. Secrets and personal data are redacted first. Afterwards `ringtrue feedback derive
    --mixed separate`, `ringtrue log stats --tool memory_hook` and `ringtrue health` include the memory, and `ringtrue sessions`
    joins each session with the outcome of its tasks. The hook, searches over MCP and each strategy count as separate settings:
    a read after one says nothing about the ranks of another.

    Example: ringtrue memory sync
    Example: ringtrue memory sync --since 7d --project shop --json
    """
    from ringtrue.memory.signals import bring_journal, figures

    folder = found_root(root)
    start = datetime.fromisoformat(str(moment(since, datetime.now(UTC)))).timestamp()
    with options.open() as opened:
        brought = bring_journal(
            folder, opened, project=options.project, since=start, cleaner=lib.log.Redactor(hash_only=hash_only)
        )
        settings = {
            lib.feedback.variant_of(row)
            for row in opened.queries(project=options.project, since=moment(since, datetime.now(UTC)))
        }
    found = figures(folder, since=start)
    show.end_if_json(
        options.json,
        {
            "root": folder,
            "project": options.project,
            "brought": brought,
            "figures": found.as_record(),
            "settings": sorted(settings),
        },
    )
    counts = {
        "searches": (brought.queries, brought.new_queries),
        "reads, quotations, validations": (brought.feedback, brought.new_feedback),
        "finished tasks": (brought.tasks, brought.new_tasks),
    }
    show.table(["", "noted", "new in the store"], [[name, f"{all_:,}", f"{new:,}"] for name, (all_, new) in counts.items()])
    print()
    rates = ("silent_rate", "read_rate", "reference_rate", "false_inject_rate")
    rows = [["prompts searched for", f"{found.prompts:,}"], ["injections", f"{found.injections:,}"]]
    for name in rates:
        value = getattr(found, name)
        rows.append([name.replace("_", " "), "not known" if value is None else f"{value:.1%}"])
    show.table(["figure", "value"], rows)
    for why, count in sorted(brought.left.items()):
        show.note(f"{count:,} left: {why}")
    if len(settings) > 1:
        show.note(f"{len(settings)} settings answered; judge each for itself: ringtrue feedback derive --mixed separate")
