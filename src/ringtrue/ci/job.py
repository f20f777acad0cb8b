"""The evaluations behind a gate in CI: of the change, and where asked of the commit it builds on, each in its own folder.

The search under test may be the repository's own code, so each side is a process of its own that starts in its own checkout.
It runs with this very Ringtrue, and without the tokens that may write comments.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ringtrue.ci.service import RunningService, ServiceCommands, free_port, running
from ringtrue.ci.used import Used
from ringtrue.config import PORT_VARIABLE
from ringtrue.errors import OK, UNDECIDED, CannotDecide, InputError

Say = Callable[[str], None]
"""Who hears what the commands print, line by line."""


@dataclass(frozen=True)
class EvaluatedSide:
    """One evaluation: its run folder, or why there is none."""

    run: Path | None
    code: int = OK
    reason: str = ""
    used: Used = field(default_factory=Used)


def evaluate_in(
    folder: Path,
    out: Path,
    *,
    options: Sequence[str],
    setup: str,
    environment: Mapping[str, str],
    say: Say,
    service: ServiceCommands | None = None,
) -> EvaluatedSide:
    """Evaluate what a folder holds with ``ringtrue eval`` there, after its own set-up; the run goes to ``out``.

    A ``service`` runs meanwhile, from the same folder.
    """
    # What the set-up calls `ringtrue` and `python` is what runs here.
    environment = {**environment, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"}
    port = service.port or free_port() if service else 0
    if service:
        environment |= {"PORT": str(port), PORT_VARIABLE: str(port)}
    (out / "run.json").unlink(missing_ok=True)  # or an earlier run would pass for this one
    if setup:
        say(f"$ {setup}")
        code, last = _told(["bash", "-e", "-c", setup], folder, environment, say)
        if code != OK:
            return EvaluatedSide(None, UNDECIDED, f"the set-up ended with {code}: {last or 'no output'}; fix --setup")
    log = out.with_name(f"{out.name}-service.log").absolute()
    server = RunningService(service, port, folder, environment, log) if service else None
    reason = ""
    try:
        with running(server, say) if server else nullcontext():
            side = _evaluated(folder, out, options, environment, say)
            reason = server.ended() if server else ""  # the rest of the answers was somebody else's, or none
    except CannotDecide as problem:
        reason = str(problem)
    if server and log.is_file() and (reason or side.run is None):
        for line in server.last_lines():
            say(f"  {log.name} | {line}")
    return EvaluatedSide(None, UNDECIDED, reason) if reason else side


def _evaluated(folder: Path, out: Path, options: Sequence[str], environment: Mapping[str, str], say: Say) -> EvaluatedSide:
    # -P: a folder under test that has a yaml.py must not become part of Ringtrue.
    # --no-store: a change that is proposed is not what runs.
    command = ["eval", "--out", str(out.absolute()), "--no-report", "--no-store"]
    say(f"$ ringtrue {' '.join([*command, *options])}")
    with TemporaryDirectory(prefix="ringtrue-used-") as scratch:
        noted = Path(scratch) / "used.json"
        # Not -m: the front of this package imports the module, and Python warns of running it twice.
        program = [sys.executable, "-P", "-c", "from ringtrue.ci.used import main; main()", str(noted)]
        code, last = _told([*program, *command, "--no-advice", *options], folder, environment, say)
        used = Used.read(noted)
    if (out / "run.json").is_file():  # also if some queries failed; the gate says which
        return EvaluatedSide(out, used=used)
    reason = re.sub(r"^ringtrue: ", "", last)
    return EvaluatedSide(None, code if code in (2, 3) else UNDECIDED, reason or f"the evaluation ended with {code}")


@contextmanager
def checkout(ref: str, *, say: Say) -> Iterator[tuple[Path, str]]:
    """Give a commit's files as a folder beside this one, and the commit's short name; raises InputError.

    The folder is the one that corresponds to the current one, where that lies below the repository's root.
    """
    if not ref.strip() or ref.startswith("-"):
        raise InputError(f"{ref!r} is not a commit; give a branch, a tag or a hash")
    known = ("rev-parse", "--verify", "--quiet", "--end-of-options")
    commit = _git(*known, f"{ref}^{{commit}}")
    if commit is None:
        say(f"$ git fetch --depth=1 origin {ref}")
        _git("fetch", "--no-tags", "--depth=1", "origin", ref)
        commit = _git(*known, "FETCH_HEAD^{commit}")
    if commit is None:
        raise InputError(f"git knows no commit '{ref}'; check it out with its history (fetch-depth: 0)")
    inside = _git("rev-parse", "--show-prefix") or ""
    with TemporaryDirectory(prefix="ringtrue-base-") as scratch:
        place = Path(scratch).resolve() / "base"
        if _git("worktree", "add", "--detach", "--force", str(place), commit) is None:
            raise InputError(f"git cannot check out '{ref}'; see `git worktree add {place} {commit}`")
        try:
            there = place / inside
            if not there.is_dir():
                raise InputError(f"'{ref}' has no folder {inside}; leave out --base-ref until it has")
            yield there, commit[:10]
        finally:
            _git("worktree", "remove", "--force", str(place))


def repository_root() -> Path:
    """Return the folder of the repository that the current folder belongs to; the current folder outside of git."""
    return Path(_git("rev-parse", "--show-toplevel") or ".").resolve()


def place_in_repository() -> tuple[str, str]:
    """Return the repository's default branch, as far as it is known, and this folder's path in it: '' for its root."""
    try:
        remote = _git("symbolic-ref", "--short", "refs/remotes/origin/HEAD")
        branch = remote.removeprefix("origin/") if remote else _git("symbolic-ref", "--short", "HEAD")
        return branch or "main", (_git("rev-parse", "--show-prefix") or "").rstrip("/")
    except InputError:  # there is no git
        return "main", ""


def _git(*arguments: str) -> str | None:
    """Return what git prints; None if it refuses. Raises InputError if there is no git."""
    try:
        found = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise InputError("there is no git here; install it, or leave out --base-ref") from None
    return found.stdout.strip() if found.returncode == 0 else None


def _told(command: Sequence[str], folder: Path, environment: Mapping[str, str], say: Say) -> tuple[int, str]:
    """Run a command, pass on every line it prints, and return its exit code and its last line."""
    last = ""
    with subprocess.Popen(
        command, cwd=folder, env=dict(environment), text=True, encoding="utf-8", errors="replace",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            for line in process.stdout:
                say(line.rstrip("\n"))
                last = line.strip() or last
        except BaseException:
            process.terminate()  # or a cancelled job would wait for it
            raise
    return process.returncode, last
