"""``ringtrue memory``: the memory of coding agents. The commands stand in the files ``memory_*.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import show
from ringtrue.cli.lazy import lazy_group
from ringtrue.cli.options import utc_now
from ringtrue.config import environment_without_tokens
from ringtrue.errors import InputError, MissingInput
from ringtrue.memory.hook.files import IN_PROJECT, find_root
from ringtrue.memory.hook.files import usual_root as usual_root_of
from ringtrue.memory.hook.guard import lines_of, title_of
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.hook.settings import Settings, read_settings

COMMANDS = {
    "add": "memory_keep:add_command",
    "show": "memory_show:show_command",
    "list": "memory_show:list_command",
    "search": "memory_show:search_command",
    "edit": "memory_keep:edit_command",
    "retire": "memory_keep:retire_command",
    "archive": "memory_keep:archive_command",
    "supersede": "memory_keep:supersede_command",
    "link": "memory_keep:link_command",
    "import": "memory_keep:import_command",
    "export": "memory_keep:export_command",
    "doctor": "memory_health:doctor_command",
    "hook": "memory_hosts:hook_command",
    "mcp": "memory_hosts:mcp_command",
    "install": "memory_hosts:install_command",
    "uninstall": "memory_hosts:uninstall_command",
    "sync": "memory_health:sync_command",
    "bench": "memory_health:bench_command",
}
"""Every command in the order of the help, with its file here and its function."""

app = typer.Typer(
    cls=lazy_group({"Commands": COMMANDS}),
    help="Keep, search and benchmark the memory of coding agents.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        show_default=False,
        help="The memory folder; default: RINGTRUE_MEMORY_ROOT, or .claude/memory here or in a parent folder.",
    ),
]
Redact = Annotated[bool, typer.Option("--redact", help="Replace keys, tokens and passwords instead of refusing them.")]


def found_root(given: Path | None) -> str:
    """Return the memory folder; raises MissingInput if there is none."""

    root = str(given.expanduser().absolute()) if given is not None else find_root(str(Path.cwd()), environment_without_tokens())
    if root is None:
        raise MissingInput(
            f"no {IN_PROJECT} found here or in a folder above; add a memory (`ringtrue memory add`), or name one with --root"
        )
    if not Path(root).is_dir():
        raise MissingInput(f"{root}: no such folder; add a memory (`ringtrue memory add`), or name another folder with --root")
    return root


def usual_root(given: Path | None) -> Path:
    """Return the memory folder that is given, else the project's, whether it is there yet or not."""
    if given is not None:
        return given.expanduser().absolute()
    return Path(usual_root_of(str(Path.cwd()), environment_without_tokens()))


def made_root(given: Path | None) -> str:
    """Return the memory folder to write into, created if it is missing."""
    root = usual_root(given)
    if root.exists() and not root.is_dir():
        raise InputError(f"{root}: is a file; name a folder with --root")
    root.mkdir(parents=True, exist_ok=True)
    return str(root)


def stamp() -> str:
    """Return the present time as memories write it."""
    return utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")


def settings_of(root: str) -> Settings:
    """Return the settings of a folder; what is wrong in them is said aloud once."""

    settings, faults = read_settings(root)
    show.notes(faults)
    return settings


def brief(memory: Memory, root: str) -> dict[str, Any]:
    """Return what a compact list says about a memory."""
    return {
        **show.pick(memory, "id", "category", "status", "tier", "updated_at", "path", "source"),
        "title": title_of(memory),
        "tags": lines_of(memory.tags),
    }


def printable(text: object) -> str:
    """Return a text without the codes by which it could move the cursor, colour what follows or turn its direction."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in str(text))


def place_of(memory: Memory, root: str) -> str:
    """Return the path of a memory, relative to its folder if it lies there."""
    path = Path(memory.path)
    return printable(path.relative_to(root) if path.is_relative_to(root) else memory.path)


def pairs_given(items: list[str] | None) -> dict[str, str]:
    """Return ``--set`` options as field → value; raises InputError for one without '='."""
    found: dict[str, str] = {}
    for item in items or []:
        name, sign, value = item.partition("=")
        if not sign or not name.strip():
            raise InputError(f"--set {item!r:.60} sets nothing; write it like --set title='A better title'")
        if name.strip() in found:
            raise InputError(f"--set names '{name.strip()}' twice; give one value")
        found[name.strip()] = value
    return found
