"""``ringtrue memory install`` and ``uninstall``: the plugin into the hosts, and out again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import show
from ringtrue.cli.options import Json
from ringtrue.errors import InputError

if TYPE_CHECKING:
    from ringtrue.memory.install import Done

# The parameter is not called project: that name is the store's, and is set once for all commands.
Folder = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="The project's folder; the current one unless given.")
]
User = Annotated[bool, typer.Option("--user", help="For all projects of this user, instead of one project.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]


def install_command(
    host: Annotated[str, typer.Option(help="claude, codex, opencode, or all.")] = "claude",
    folder: Folder = None,
    user: User = False,
    dry_run: DryRun = False,
    python: Annotated[
        Path | None, typer.Option(help="The Python that runs the hook; 3.11 or newer, no packages needed.")
    ] = None,
    json: Json = False,
) -> None:
    """Install the hooks, the search skill and the MCP server into a coding agent.

    Claude Code gets a plugin folder, Codex entries in its hooks.json and config.toml, OpenCode the MCP server alone. Doing it
    again changes nothing, or brings it up to date; `uninstall` takes back exactly what was done.

    Example: ringtrue memory install
    Example: ringtrue memory install --host all --user --dry-run
    """
    from ringtrue.memory.engine import make_ready
    from ringtrue.memory.hook.files import IN_PROJECT
    from ringtrue.memory.install import HOSTS, install

    base = _base(folder, user=user)
    hosts = HOSTS if host == "all" else (host,)
    # A look at all of them first: an error in the last must not leave the others half way.
    for one in hosts:
        install(one, base=base, user=user, python=python, dry_run=True)
    done = [install(one, base=base, user=user, python=python, dry_run=dry_run, home=Path.home()) for one in hosts]
    memories = base / IN_PROJECT
    if memories.is_dir() and not dry_run:
        make_ready(str(memories))
    _show(done, "install", dry_run=dry_run, json=json)


def uninstall_command(
    host: Annotated[str, typer.Option(help="claude, codex, opencode, or all that have it.")] = "all",
    folder: Folder = None,
    user: User = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Take the plugin out again: what was made is removed, what was changed gets its old bytes back.

    A configuration file that was edited since loses our entries and nothing else. Memories are never touched.

    Example: ringtrue memory uninstall --dry-run
    Example: ringtrue memory uninstall --host codex --user
    """
    from ringtrue.memory.install import HOSTS, uninstall

    base = _base(folder, user=user)
    hosts = HOSTS if host == "all" else (host,)
    for one in hosts:
        uninstall(one, base=base, user=user, dry_run=True)
    found = [uninstall(one, base=base, user=user, dry_run=dry_run) for one in hosts]
    _show([one for one in found if one is not None], "uninstall", dry_run=dry_run, json=json)


def _base(folder: Path | None, *, user: bool) -> Path:
    if user and folder is not None:
        raise InputError("--project and --user exclude each other; choose the one project or all of this user's")
    return Path.home() if user else folder or Path.cwd()


def _show(done: list[Done], what: str, *, dry_run: bool, json: bool) -> None:
    show.end_if_json(json, {"dry_run": dry_run, what: [_record(one) for one in done]})
    if not done:
        print("it is not installed there; nothing was done")
    for one in done:
        would = "would be " if dry_run else ""
        if not one.changes:
            print(f"{one.host}: installed already in {one.folder}; nothing changed")
        else:
            counts = {
                action: sum(change.action == action for change in one.changes) for action in ("create", "change", "remove")
            }
            said = ", ".join(f"{count} {would}{_PAST[action]}" for action, count in counts.items() if count)
            print(f"{one.host}: {said} ({one.folder})")
            for change in one.changes:
                if dry_run or not change.path.is_relative_to(one.folder):
                    print(f"  {change.action} {change.path}")
        for note in one.notes:
            show.note(f"{one.host}: {note}")


_PAST = {"create": "created", "change": "changed", "remove": "removed"}


def _record(done: Done) -> dict[str, Any]:
    changes = [{"action": change.action, "path": str(change.path)} for change in done.changes]
    return {"host": done.host, "folder": str(done.folder), "changes": changes, "notes": list(done.notes)}
