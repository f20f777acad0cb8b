"""Asking a process that has everything loaded: a session's MCP server answers for the hook over a socket in the memory folder.

The socket is ``<root>/.ringtrue/hook-<process id>.sock`` and belongs to the user alone. Question and answer are one line of
JSON each. Whatever is wrong (no server, another version, no answer in time) means that the hook finds the answer itself.
"""

from __future__ import annotations

import json
import os
import time

from .files import OWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VERSION = 1
"""Changes with the form of questions and answers, or what they mean."""
BEGINNING, ENDING = "hook-", ".sock"
SECONDS = 0.3
"""How long the servers together may take."""
LONGEST_PATH = 100
"""Bytes of a socket's path; systems allow 104 to 108."""
LARGEST = 1_000_000
_SOCKET, _KIND, _OTHERS = 0o140000, 0o170000, 0o077
_MOST = 3


def sockets(root: str) -> list[str]:
    """Return the sockets of a memory folder that only this user can have made and use, the newest first."""
    folder = os.path.join(root, OWN)
    found = []
    try:
        names = [name for name in os.listdir(folder) if name.startswith(BEGINNING) and name.endswith(ENDING)]
        for path in (os.path.join(folder, name) for name in names):
            state = os.lstat(path)
            if state.st_mode & _KIND == _SOCKET and state.st_uid == os.geteuid() and not state.st_mode & _OTHERS:
                found.append((state.st_mtime, path))
    except (OSError, AttributeError):  # Windows has no users of this kind
        return []
    return [path for _, path in sorted(found, reverse=True)]


def ask(root: str, question: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer of a server of this folder, or None if none answers in time."""
    until = time.monotonic() + SECONDS
    for path in sockets(root)[:_MOST]:
        try:
            answer = _asked(path, {**question, "version": VERSION}, until)
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(answer, dict) and answer.get("version") == VERSION and "error" not in answer:
            return answer
    return None


def _asked(path: str, question: Mapping[str, Any], until: float) -> Any:
    from _socket import AF_UNIX, SOCK_STREAM, socket  # ``socket`` would cost the import of ``selectors`` and ``enum``

    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(max(0.001, until - time.monotonic()))
        connection.connect(path)
        connection.sendall(json.dumps(question).encode("ascii") + b"\n")
        parts: list[bytes] = []
        while sum(map(len, parts)) < LARGEST:
            connection.settimeout(max(0.001, until - time.monotonic()))
            part = connection.recv(65_536)
            parts.append(part)
            if not part or part.endswith(b"\n"):
                break
        return json.loads(b"".join(parts))
    finally:
        connection.close()
