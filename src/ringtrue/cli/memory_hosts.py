"""``ringtrue memory install`` and ``uninstall``: the plugin into the hosts, and out again."""

from __future__ import annotations

import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.memory import Root, usual_root
from ringtrue.cli.options import Json
from ringtrue.config import environment_without_tokens
from ringtrue.errors import InputError, MissingInput
from ringtrue.extras import install_command as how_to_install
from ringtrue.memory.hook.files import IN_PROJECT
from ringtrue.memory.install import HOSTS, Done, install, uninstall

# The parameter is not called project: that name is the store's, and is set once for all commands.
Folder = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="Folder of the project; default: the current folder.")
]
User = Annotated[bool, typer.Option("--user", help="For all projects of this user.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")]


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
    host: Annotated[str, typer.Option(help="claude, codex, opencode, or all of those that have it.")] = "all",
    folder: Folder = None,
    user: User = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Uninstall the plugin: remove the files it created and restore the files it changed.

    A configuration file that was edited since loses our entries and nothing else. Memories are never touched.

    Example: ringtrue memory uninstall --dry-run
    Example: ringtrue memory uninstall --host codex --user
    """
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
    show.end_if_json(json, {"dry_run": dry_run, what: done})
    if not done:
        print("it is not installed there; nothing was done")
    for one in done:
        would = "would be " if dry_run else ""
        if not one.changes:
            print(f"{one.host}: installed already in {one.folder}; nothing changed")
        else:
            counts = Counter[str](change.action for change in one.changes)
            said = ", ".join(f"{counts[action]} {would}{past}" for action, past in _PAST.items() if counts[action])
            print(f"{one.host}: {said} ({one.folder})")
        for change in one.changes:
            if dry_run or not change.path.is_relative_to(one.folder):
                print(f"  {change.action} {change.path}")
        show.notes(f"{one.host}: {note}" for note in one.notes)


_PAST = {"create": "created", "change": "changed", "remove": "removed"}


def mcp_command(
    http: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen on this port instead of stdin and stdout.")
    ] = None,
    root: Root = None,
    session: Annotated[
        str | None, typer.Option(help="Conversation id for calls without one; over stdio the host's id is used.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="Bearer token that HTTP requests must send; better set in RINGTRUE_MEMORY_MCP_TOKEN.")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="Another host name that HTTP requests may use.")
    ] = None,
) -> None:
    """Serve the memory to agents: search, context, save, load, validate, link, health and tasks.

    Without --http the server speaks over stdin and stdout, as hosts start it. On a port it answers this machine only, unless a
    token is set.

    Example: ringtrue memory mcp
    Example: ringtrue memory mcp --http 127.0.0.1:8765
    """
    if find_spec("mcp") is None:
        raise MissingInput(f"the MCP server needs the package 'mcp'; {how_to_install('mcp')}")
    # Hosts start a server in every project; a folder in which nothing is saved stays as it is.
    folder = str(usual_root(root))
    if http is None:
        from ringtrue.memory.mcp_start import build, serve

        serve(lambda: build(folder, session or ""))
        return
    from ringtrue.memory.server import address_of, build_server, check_token, serve_http

    address = address_of(http)
    check_token(address, token or "")
    server = build_server(folder, session_id=session or "")
    show.note(f"{folder} is served at {address.url}; Ctrl-C ends it")
    serve_http(server, address, token=token or "", names=name or ())


def hook_command(
    event: Annotated[str | None, typer.Argument(help="The event, if it is missing in the host's JSON.")] = None,
) -> None:
    """Answer one event of a host: its JSON on standard input, what goes to the agent on standard output. Always exits 0.

    The installed plugin runs the same code without this program's start; this is for trying out and for other hosts.

    Example: echo '{"hook_event_name": "UserPromptSubmit", "prompt": "how do we sign tokens?"}' | ringtrue memory hook
    """
    from ringtrue.memory.hook.hook import main

    main([event] if event else [], sys.stdin, sys.stdout, environment_without_tokens())
