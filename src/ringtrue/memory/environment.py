"""Around a memory folder: the file system it lies on, and the hosts that should run the hook."""

from __future__ import annotations

import os
import re
from pathlib import Path

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
_OURS = re.compile(r"recall[/\\]+hook\.py|ringtrue(?:\.exe)?[\"',\s]+memory[\"',\s]+hook")
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
    from ringtrue.memory.install import installed

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
