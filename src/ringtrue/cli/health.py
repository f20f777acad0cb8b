"""``ringtrue health``: one look at everything that runs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.options import StoreOptions


def health_command(
    *,
    index: Annotated[Path | None, typer.Option(help="Folder made by ringtrue ingest whose indexes are checked.")] = None,
    retriever: Annotated[str, typer.Option("--retriever", "-r", help="With --index: what searches there.")] = "hybrid",
    options: StoreOptions,
) -> None:
    """Show the state of logs, gates, tests, rollouts and indexes.

    If you use the agent memory, the table has lines for it.

    Exit code 0: healthy; 1: something is wrong; 3: something is not known.

    \b
    Example: ringtrue health
    Example: ringtrue health --index .ringtrue/index --json
    """
    from ringtrue.memory.signals import health_with_memory
    from ringtrue.rollout import health_of

    now = datetime.now(UTC)
    with options.existing_with_data() as opened:
        found = health_of(opened, now=now, project=options.project, index=index, retriever=retriever)
        found = health_with_memory(found, opened, project=options.project, now=now)
    if options.json:
        parts = {part.name: {"state": part.state, "says": part.says, **part.figures} for part in found.parts}
        show.as_json({"state": found.state, "project": options.project, "parts": parts})
    else:
        show.table(["part", "state", ""], [[part.name, part.state, part.says] for part in found.parts], text_columns=3)
        print(f"\n{options.project}: {found.state}")
    if found.exit_code:
        raise typer.Exit(found.exit_code)
