"""The git commit that an experiment or a run was made with."""

from __future__ import annotations

import subprocess
from pathlib import Path

PATIENCE = 20.0
"""Seconds that git may take."""


def commit_of(folder: Path, *, beside: Path | None = None) -> str | None:
    """Return the commit checked out around ``folder``, with ``-dirty`` where tracked files were changed since.

    ``beside`` is a file whose own changes do not count: the list of experiments changes with every entry. None if there is
    no git, no repository or no commit yet.
    """
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if not commit:
        return None
    top, but = _git(folder, "rev-parse", "--show-toplevel"), list[str]()
    if top and beside is not None and beside.resolve().is_relative_to(Path(top).resolve()):
        but = [f":(top,exclude,literal){beside.resolve().relative_to(Path(top).resolve()).as_posix()}"]
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":(top)", *but)
    return commit if changes == "" else f"{commit}-dirty"


def branch_and_commit(folder: Path) -> str | None:
    """Return what is checked out around ``folder``, like ``main@1a2b3c4``, with ``+changes`` if tracked files were changed.

    Without a branch it is the commit alone; None if there is no git, no repository or no commit yet.
    """
    commit = _git(folder, "describe", "--always", "--dirty=+changes", "--exclude=*")
    branch = _git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    return f"{branch}@{commit}" if branch and commit else commit or None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=PATIENCE, text=True, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
