"""``ringtrue memory import · export``: memories from elsewhere, and to elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.memory import Redact, Root, found_root, made_root, settings_of, stamp
from ringtrue.cli.options import Json
from ringtrue.errors import REGRESSION, InputError, nearest

if TYPE_CHECKING:
    from ringtrue.memory.importers import Brought

REASONS = 20
"""Reasons that are printed; --json has all."""
Yes = Annotated[bool, typer.Option("--yes", help="Really overwrite.")]


def import_command(
    source: Annotated[
        str,
        typer.Argument(
            help="A .json, .jsonl or .md file, a folder of them, - for stdin, or claude or codex for their own memories."
        ),
    ],
    conflict: Annotated[
        str, typer.Option("--on-conflict", help="If an id is taken: skip, rename, or replace (which needs --yes).")
    ] = "skip",
    yes: Yes = False,
    redact: Redact = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")] = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Import memories and notes; the source is only read, and what is here is not overwritten unasked.

    A memory without an id gets one from its title. A note without a category gets that of its type or its folder, else runbook
    for numbered steps and decision for the rest; what was guessed is said, and --json says it for each.
    Each memory that breaks the rules or holds a secret is refused with the reason, and the others come in; exit 1 then.

    Example: ringtrue memory import notes/ --dry-run
    Example: ringtrue memory import claude
    Example: ringtrue memory import backup.json --on-conflict replace --yes
    """
    from ringtrue.memory.doctor import project_of
    from ringtrue.memory.engine import make_ready
    from ringtrue.memory.importers import CONFLICTS, NAMED, bring, own_notes, read_source

    if conflict not in CONFLICTS:
        raise InputError(f"--on-conflict is {conflict!r}; did you mean {nearest(conflict, CONFLICTS)}?")
    if conflict == "replace" and not yes and not dry_run:
        raise InputError("--on-conflict replace overwrites memories; add --yes, or look first with --dry-run")
    folder = made_root(root)
    place = source
    if source in NAMED and not Path(source).exists():
        place = str(own_notes(source, project=project_of(folder), home=Path.home()))
    if Path(place).is_dir() and Path(place).resolve() == Path(folder).resolve():
        raise InputError(f"{place} is the memory folder itself; name another source")
    done = bring(folder, read_source(place, now=stamp()), conflict=conflict, redact=redact, now=stamp(), dry_run=dry_run)
    if not dry_run:
        make_ready(folder)
    if json:
        show.as_json({"root": folder, "source": place, **show.plain(done)})
    else:
        _print(done, place)
    if done.refused:
        raise typer.Exit(REGRESSION)


def _print(done: Brought, source: str) -> None:
    counts = {name: len(getattr(done, name)) for name in ("added", "replaced", "renamed", "unchanged", "skipped", "refused")}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing to import"
    print(f"{source}: {said}" + (" (nothing was written)" if done.dry_run else ""))
    for old, new in done.renamed.items():
        print(f"{old} came in as {new}")
    if done.skipped:
        show.note(f"ids that are taken: {', '.join(done.skipped[:10])}; see --on-conflict rename and replace")
    if done.left:
        show.note(
            f"{len(done.left)} left, which hold no memory: {', '.join(list(done.left)[:3])}{' …' if len(done.left) > 3 else ''}"
        )
    if done.cut:
        name, length = next(iter(done.cut.items()))
        show.note(
            f"{len(done.cut)} are so long that a prompt cannot bring them up by their end "
            f"(first: {name}, {length:,} characters); "
            "split them, raise engine.body_max_chars, or search with --strategy hybrid"
        )
    _note_alike("guessed", [(place, guess) for place, guesses in done.guessed.items() for guess in guesses])
    _note_alike("refused", list(done.refused.items()))


def _note_alike(what: str, said: list[tuple[str, str]]) -> None:
    """Print what is said about places, the same thing once, with the first place and the count."""
    places: dict[str, list[str]] = {}
    for place, why in said:
        places.setdefault(why, []).append(place)
    for why, where in list(places.items())[:REASONS]:
        more = f" and {len(where) - 1:,} more" if len(where) > 1 else ""
        show.note(f"{what}: {where[0]}{more}: {why}")
    if len(places) > REASONS:
        rest = sum(len(where) for where in list(places.values())[REASONS:])
        show.note(f"{what}: {rest:,} more for other reasons; --json names each")


def export_command(
    target: Annotated[Path, typer.Argument(help="The file to write, a folder for markdown, or - for standard output.")],
    format: Annotated[
        str | None, typer.Option("--format", "-f", help="json, jsonl or markdown; unless given by the name of the file.")
    ] = None,
    active: Annotated[bool, typer.Option("--active", help="Leave out what is retired or archived.")] = False,
    yes: Yes = False,
    redact: Redact = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Export the memories of the folder; all of these files can be imported again.

    Example: ringtrue memory export backup.json
    Example: ringtrue memory export notes --format markdown --active
    """
    from ringtrue.memory.exporters import FORMATS, TEXTS, records_of, send
    from ringtrue.memory.hook.files import load

    chosen = format or {".json": "json", ".jsonl": "jsonl", ".md": "markdown"}.get(
        target.suffix, "json" if str(target) == "-" else ""
    )
    if not chosen or chosen not in FORMATS:
        hint = f"did you mean {nearest(chosen, FORMATS)}?" if chosen else f"name one with --format: {', '.join(FORMATS)}"
        raise InputError(f"{target}: the format is not known; {hint}")
    folder = found_root(root)
    memories = [
        memory
        for memory in load(folder, settings_of(folder)).memories
        if memory.source == "memory" and (memory.status == "active" or not active)
    ]
    records = records_of(memories, redact=redact)
    if str(target) == "-":
        if chosen == "markdown" or json:
            raise InputError("standard output takes json or jsonl, and no --json beside it; name a file or a folder")
        print(TEXTS[chosen](records), end="")
        return
    written = send(records, target, chosen, overwrite=yes)
    if json:
        show.as_json({"root": folder, "format": chosen, "memories": len(records), "written": written})
    else:
        print(f"{target}: {show.counted(len(records), 'memory')} written as {chosen}")
