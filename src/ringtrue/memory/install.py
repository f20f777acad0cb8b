"""The plugin into a host, and out again: one folder of ours, and entries beside those of others where a host needs them.

- **Claude Code**: a plugin folder under ``.claude/skills/memory``, which the host loads by itself as ``memory@skills-dir``;
  no settings are touched.
- **Codex**: hooks in ``.codex/hooks.json`` and the MCP server in ``.codex/config.toml``. It reads files by its shell.
- **OpenCode**: the MCP server in ``opencode.json``. Its hooks are programs in JavaScript, so nothing is injected there.

The hook runs on a copy of ``ringtrue.memory.hook`` with any Python 3.11 and no package at all.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata, resources, util
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.extras import install_command
from ringtrue.memory.file_changes import (
    NOTE,
    Change,
    Changed,
    Files,
    Note,
    hash_of,
    missing_folders,
    read_note,
    remove_empty,
    undo,
    written,
)

HOSTS = ("claude", "codex", "opencode")
OLDEST = (3, 11)
LIBRARY = "lib/hook"
OURS = "ringtrue-memory"
"""The name of our folder where a host has none for plugins."""
EVENTS = {"UserPromptSubmit": "", "PostToolUse": "^Bash$", "Stop": "", "SessionStart": ""}
"""What Codex tells a hook that is of use here, and for which tools."""
TIMEOUT = 5
"""Seconds after which a host gives up on the hook; the hook itself gives up after one."""
_PROBE = (
    "import sys\ntry:\n import sqlite3\nexcept ImportError:\n sqlite3 = None\nprint(*sys.version_info[:2], sqlite3 is not None)"
)


@dataclass(frozen=True)
class Done:
    """What was done in a host, or with ``dry_run`` would be: the folder of ours, each change, and what one should know."""

    host: str
    folder: Path
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Spot:
    """Where a host keeps its things: the folder of ours, and the files that it shares with others by their kind."""

    host: str
    base: Path
    folder: str
    shared: Mapping[str, str]

    @property
    def home(self) -> Path:
        return self.base / self.folder


def _spot(host: str, base: Path, *, user: bool) -> _Spot:
    if host == "claude":
        return _Spot(host, base, ".claude/skills/memory", {})
    if host == "codex":
        return _Spot(host, base, f".codex/{OURS}", {"hooks": ".codex/hooks.json", "toml": ".codex/config.toml"})
    if host == "opencode":
        inner = ".config/opencode" if user else ".opencode"
        return _Spot(host, base, f"{inner}/{OURS}", {"mcp": f"{inner}/opencode.json" if user else "opencode.json"})
    raise InputError(f"there is no host '{host}'; did you mean {nearest(host, (*HOSTS, 'all'))}?")


def install(
    host: str, *, base: Path, user: bool = False, python: Path | None = None, dry_run: bool = False, home: Path | None = None
) -> Done:
    """Install the plugin for a host and return what was done; doing it again changes nothing, or brings it up to date.

    ``base`` is a project, or with ``user`` the home folder. ``python`` runs the hook; unless given it is the one that this
    Python was made from, since the hook needs no package and an environment may be removed. ``home`` is where an installation
    for the user would lie, to warn of two at once. Raises InputError if the Python cannot be used, a folder of ours is
    somebody else's, or a file of the host cannot be read; then nothing has changed.
    """
    spot = _spot(host, base.absolute(), user=user)
    if not spot.base.is_dir():
        raise MissingInput(f"{base}: there is no such folder; name the project's folder with --project")
    chosen, notes = _interpreter(python)
    files, before = Files(), read_note(spot.home / NOTE)
    if before is None and spot.home.exists() and any(spot.home.iterdir()):
        raise InputError(f"{spot.home} is there already and not from this program; move it away or choose another scope")
    if before is not None:
        for line in undo(files, before, spot.base, without_ours(f"{spot.folder}/{LIBRARY}")):
            notes.append(line.replace("it stays", "it is written anew"))
    made = {f"{spot.folder}/{name}": data for name, data in _contents(spot, chosen, notes)}
    for name, data in made.items():
        files.write(spot.base / name, data)
    for path in _compiled(spot, {name for name in (before.made if before is not None else ()) if name not in made}):
        files.remove(path)
    changed: dict[str, Changed] = {}
    for kind, name in spot.shared.items():
        there = files.read(spot.base / name)
        after = _shared(kind, there, spot, str(spot.base / name), chosen)
        if after is not None:
            files.write(spot.base / name, after)
            changed[name] = Changed(kind, there, hash_of(after))
    places = [spot.base / name for name in (*made, *changed, f"{spot.folder}/{NOTE}")]
    folders = {*missing_folders(places, spot.base), *(before.folders if before is not None else ())}
    if host != "opencode":
        folders.add(f"{spot.folder}/{LIBRARY}/__pycache__")
    note = Note(metadata.version("ringtrue"), {name: hash_of(data) for name, data in made.items()}, changed, tuple(folders))
    files.write(spot.home / NOTE, written(note))
    changes = tuple(files.changes())
    if not dry_run and changes:
        files.apply()
        if host != "opencode":
            _compile(chosen, spot.home / LIBRARY)
    notes += _afterwards(spot, user=user, home=home)
    return Done(host, spot.home, changes, tuple(notes))


def uninstall(host: str, *, base: Path, user: bool = False, dry_run: bool = False) -> Done | None:
    """Take the plugin out of a host and return what was done; None if it is not installed.

    Files that were made are removed, those of others get their old bytes back, or lose our entries alone where they were
    edited since. Memories and what was noted about them stay. Raises InputError if a file cannot be read; then nothing has
    changed.
    """
    spot = _spot(host, base.absolute(), user=user)
    note = read_note(spot.home / NOTE)
    if note is None:
        return None
    files = Files()
    left = undo(files, note, spot.base, without_ours(f"{spot.folder}/{LIBRARY}"))
    files.remove(spot.home / NOTE)
    for path in _compiled(spot, note.made):
        files.remove(path)
    changes = tuple(files.changes())
    if not dry_run:
        files.apply()
        remove_empty(spot.base, note.folders)
    return Done(host, spot.home, changes, tuple(left))


def installed(base: Path, *, user: bool = False) -> list[str]:
    """Return the hosts that have the plugin in a project, or with ``user`` in a home folder."""
    return [host for host in HOSTS if (_spot(host, base.absolute(), user=user).home / NOTE).is_file()]


# ── what is put where ───────────────────────────────────────────────────────────────────────────────────────────────────


def _contents(spot: _Spot, python: str, notes: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of our folder."""
    yield ".gitignore", b"*\n"  # they name places of this machine
    if spot.host == "opencode":
        return
    for name, data in library():
        yield f"{LIBRARY}/{name}", data
    if spot.host == "claude":
        words = {"@PYTHON@": python, "@RINGTRUE@": sys.executable, "@VERSION@": metadata.version("ringtrue")}
        for name, data in templates():
            if name == ".mcp.json" and not _serves():
                notes.append(_no_server())
                continue
            yield name, _filled(name, data, words)


def templates() -> list[tuple[str, bytes]]:
    """Return the files of the plugin as they are shipped, with ``@PYTHON@`` and the like still in them."""
    return sorted(_walk(resources.files("ringtrue.memory") / "plugin"))


def _walk(folder: Any, before: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{before}{entry.name}/")
        else:
            yield before + entry.name, entry.read_bytes()


def library() -> list[tuple[str, bytes]]:
    """Return the files of ``ringtrue.memory.hook``, which is all that a hook runs on."""
    folder = resources.files("ringtrue.memory.hook")
    return sorted((entry.name, entry.read_bytes()) for entry in folder.iterdir() if entry.name.endswith((".py", ".txt")))


def _filled(name: str, data: bytes, words: Mapping[str, str]) -> bytes:
    if not name.endswith(".json"):
        search = f"{shlex.quote(words['@RINGTRUE@'])} -m ringtrue memory search"
        return data.replace(b"@SEARCH@", search.encode())

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [fill(item) for item in value]
        return words.get(value, value) if isinstance(value, str) else value

    return (json.dumps(fill(json.loads(data)), indent=2, ensure_ascii=False) + "\n").encode()


def _shared(kind: str, there: bytes | None, spot: _Spot, place: str, python: str) -> bytes | None:
    """Return a file of the host with our entries; None if there is nothing to enter."""
    if kind == "hooks":
        return with_hooks(there, place, codex_hooks(python, spot.home / LIBRARY / "hook.py"))
    if not _serves():
        return None
    server = [sys.executable, "-P", "-m", "ringtrue.memory.mcp_start"]  # -P: not what lies in the project
    if kind == "toml":
        return with_table(there, place, {"command": server[0], "args": server[1:]})
    commented = Path(place).with_suffix(".jsonc")
    if there is None and commented.exists():
        raise InputError(f"{commented} may hold comments, which would be lost; add an MCP server to it by hand: {server}")
    return with_server(there, place, {"type": "local", "command": server, "enabled": True})


def codex_hooks(python: str, hook: Path) -> dict[str, list[dict[str, Any]]]:
    """Return Codex's hooks. None is ``async``: Codex passes over hooks that say so."""

    def group(event: str, tools: str) -> dict[str, Any]:
        command = [python, "-I", "-S", str(hook), event]
        handler = {"type": "command", "command": shlex.join(command), "commandWindows": subprocess.list2cmdline(command)}
        return {**({"matcher": tools} if tools else {}), "hooks": [{**handler, "timeout": TIMEOUT}]}

    return {event: [group(event, tools)] for event, tools in EVENTS.items()}


def _serves() -> bool:
    return util.find_spec("mcp") is not None


def _no_server() -> str:
    return f"left out the MCP server: its package is not installed; {install_command('mcp')}, then install the plugin again"


def _afterwards(spot: _Spot, *, user: bool, home: Path | None) -> list[str]:
    notes = []
    if spot.host == "codex":
        notes.append("Codex asks once whether it may run each hook: open /hooks there")
    if spot.host == "opencode":
        notes.append("OpenCode gets the MCP server only: its hooks are JavaScript programs, so nothing is shown unasked")
    if spot.host != "claude" and not _serves():
        notes.append(_no_server())
    if not user and home is not None and home.absolute() != spot.base and spot.host in installed(home, user=True):
        notes.append(f"{spot.host} has it for the user, too, so each prompt would be answered twice; uninstall one of them")
    return notes


# ── the interpreter ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _interpreter(given: Path | None) -> tuple[str, list[str]]:
    """Return the Python that runs the hook, and what to know about it."""
    if given is not None:
        return _usable(str(given.absolute()))
    try:
        return _usable(str(Path(sys.executable).resolve()))
    except InputError:  # on some systems a Python does not run outside its environment
        return _usable(sys.executable)


def _usable(python: str) -> tuple[str, list[str]]:
    try:
        done = subprocess.run([python, "-I", "-S", "-c", _PROBE], capture_output=True, text=True, timeout=30, check=True)
        major, minor, sqlite = done.stdout.split()
        version = int(major), int(minor)
    except (OSError, subprocess.SubprocessError, ValueError) as problem:
        said = getattr(problem, "strerror", None) or type(problem).__name__
        raise InputError(f"{python} does not run as a Python ({said}); name another with --python") from None
    if version < OLDEST:
        raise InputError(f"{python} is Python {major}.{minor}; the hook needs 3.11 or newer: name another with --python")
    if sqlite != "True":
        return python, [f"{python} has no sqlite3, so the hook compares titles and tags only; name another with --python"]
    return python, []


def _compile(python: str, folder: Path) -> None:
    """Compile the copy now: a hook in a folder that cannot be written would do it with every prompt.

    By the hash of the source, because hosts copy plugins and a copy has another time of change.
    """
    command = [python, "-I", "-S", "-m", "compileall", "-q", "-f", "--invalidation-mode", "checked-hash", str(folder)]
    try:
        subprocess.run(command, capture_output=True, timeout=120, check=False)
    except (OSError, subprocess.SubprocessError):
        return  # it is slower without, nothing else


def _compiled(spot: _Spot, made: Iterable[str]) -> list[Path]:
    """Return what Python made of these files, and of no others."""
    names = {Path(name).stem for name in made if name.endswith(".py")}
    cache = spot.home / LIBRARY / "__pycache__"
    found = cache.glob("*.pyc*") if cache.is_dir() else ()
    return sorted(path for path in found if path.name.split(".")[0] in names)


SERVER = "ringtrue-memory"
BEGIN, END = f"# {SERVER}: begin, written by `ringtrue memory install`", f"# {SERVER}: end"
NOTHING_DONE = "nothing was changed"


def with_hooks(data: bytes | None, place: str, hooks: Mapping[str, Sequence[Mapping[str, Any]]]) -> bytes:
    """Return a hooks.json with these groups at the end of their events; raises InputError if it cannot be read."""
    record = _object(data, place)
    events = record.setdefault("hooks", {})
    if not isinstance(events, dict):
        raise InputError(f"{place}: hooks is {_kind(events)}, not an object of events; correct it, {NOTHING_DONE}")
    for event, groups in hooks.items():
        there = events.setdefault(event, [])
        if not isinstance(there, list):
            raise InputError(f"{place}: hooks.{event} is {_kind(there)}, not a list; correct it, {NOTHING_DONE}")
        there.extend(groups)
    return _written(record)


def with_server(data: bytes | None, place: str, server: Mapping[str, Any]) -> bytes:
    """Return an opencode.json with our MCP server; raises InputError if it cannot be read or has another of that name."""
    record = _object(data, place)
    servers = record.setdefault("mcp", {})
    if not isinstance(servers, dict):
        raise InputError(f"{place}: mcp is {_kind(servers)}, not an object of servers; correct it, {NOTHING_DONE}")
    if SERVER in servers:
        raise InputError(f"{place} has a server '{SERVER}' that this did not write; rename or remove it, {NOTHING_DONE}")
    servers[SERVER] = dict(server)
    return _written(record)


def with_table(data: bytes | None, place: str, server: Mapping[str, Any]) -> bytes:
    """Return a config.toml with our ``[mcp_servers.…]`` table at its end; raises InputError as ``with_server`` does."""
    text = _text(data or b"", place)
    record = _toml(text, place)
    servers = record.get("mcp_servers", {})
    if isinstance(servers, dict) and SERVER in servers:
        raise InputError(f"{place} has a server '{SERVER}' that this did not write; rename or remove it, {NOTHING_DONE}")
    # JSON's texts and lists are TOML's.
    values = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in server.items()]
    block = "\n".join((BEGIN, f"[mcp_servers.{SERVER}]", *values, END, ""))
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    after = text + gap + block
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        raise InputError(
            f"{place}: mcp_servers is written so that no table can be added; write it as tables, {NOTHING_DONE}"
        ) from None
    return after.encode()


def without_ours(command: str) -> Callable[[str, str, bytes, bytes | None], bytes | None]:
    """Return a function that takes our entries out of an edited file; ``command`` is what those of our hooks contain.

    It returns None if nothing else is left of a file that we made, and raises InputError if it cannot be read.
    """

    def strip(place: str, kind: str, data: bytes, before: bytes | None) -> bytes | None:
        if kind == "toml":
            return _without_table(data, before, place)
        record = _object(data, place)
        old = json.loads(before) if before else {}
        if kind == "hooks":
            _drop_hooks(record, command)
        else:
            servers = record.get("mcp")
            if isinstance(servers, dict):
                servers.pop(SERVER, None)
        for name in ("hooks", "mcp"):
            if record.get(name) == {} and name not in old:
                del record[name]
        if not record and before is None:
            return None
        return before if before is not None and record == old else _written(record)

    return strip


def _drop_hooks(record: dict[str, Any], command: str) -> None:
    events = record.get("hooks")
    if not isinstance(events, dict):
        return
    for event, groups in list(events.items()):
        if not isinstance(groups, list):
            continue
        kept = []
        for group in groups:
            hooks = group.get("hooks") if isinstance(group, dict) else None
            if isinstance(hooks, list) and any(_ours(hook, command) for hook in hooks):
                others = [hook for hook in hooks if not _ours(hook, command)]
                if others:
                    kept.append({**group, "hooks": others})
            else:
                kept.append(group)
        if kept or not groups:
            events[event] = kept
        else:
            del events[event]


def _ours(hook: Any, command: str) -> bool:
    return isinstance(hook, dict) and command in str(hook.get("command", "")).replace("\\", "/")


def _without_table(data: bytes, before: bytes | None, place: str) -> bytes | None:
    text = _text(data, place)
    start, end = text.find(BEGIN), text.find(END)
    if start < 0 or end < start:
        if SERVER in _toml(text, place).get("mcp_servers", {}):
            raise InputError(
                f"{place}: the marks around [mcp_servers.{SERVER}] are gone; take the table out by hand, {NOTHING_DONE}"
            )
        return data
    head, tail = text[:start], text[end + len(END) :].removeprefix("\n")
    old = (before or b"").decode("utf-8", "replace")
    if head.rstrip("\n") == old.rstrip("\n"):
        head = old  # the lines between were ours
    after = head + tail
    return None if before is None and not after.strip() else after.encode()


def _object(data: bytes | None, place: str) -> dict[str, Any]:
    text = _text(data or b"", place)
    if not text.strip():
        return {}
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{place} is not plain JSON ({problem}); correct it or take comments out, {NOTHING_DONE}") from None
    if not isinstance(record, dict):
        raise InputError(f"{place} holds {_kind(record)}, not an object; correct it, {NOTHING_DONE}")
    return record


def _toml(text: str, place: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{place} is not TOML ({problem}); correct it, {NOTHING_DONE}") from None


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{place} is not UTF-8; save it as UTF-8, {NOTHING_DONE}") from None


def _written(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()


def _kind(value: object) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(type(value), f"{value!r:.40}")
