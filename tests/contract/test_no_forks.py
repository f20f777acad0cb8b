"""No test forks its own process: libraries that other tests have loaded there, such as gRPC, abort in the copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

FORKING_OPTIONS = {"preexec_fn", "user", "group", "extra_groups"}
"""With these, Popen forks; without them, it starts the program in a way that runs no code of the parent."""


def forks(source: str) -> Iterator[int]:
    """Return the lines that fork. A program for another process is a string, and may do what it likes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in ("fork", "forkpty") and ast.unparse(node.value) in ("os", "pty"):
            yield node.lineno
        if isinstance(node, ast.Call):
            name, arguments = ast.unparse(node.func), {ast.unparse(argument) for argument in node.args}
            if name.endswith(("Popen", "subprocess.run")) and FORKING_OPTIONS & {option.arg for option in node.keywords}:
                yield node.lineno
            if name.endswith(("get_context", "set_start_method")) and arguments & {"'fork'", "'forkserver'"}:
                yield node.lineno


def test_tests_fork_in_processes_of_their_own_only(root: Path) -> None:
    found = {f"{file.relative_to(root)}:{line}" for file in (root / "tests").rglob("*.py") for line in forks(file.read_text())}
    assert not found, "run the fork in a program of its own: subprocess.run([sys.executable, '-c', …])"


def test_forks_are_found() -> None:
    lines = ["import os", "os.fork()", "Popen(c, preexec_fn=f)", "subprocess.run(c, user='nobody')", "get_context('fork')"]
    assert sorted(forks("\n".join(lines))) == [2, 3, 4, 5]
