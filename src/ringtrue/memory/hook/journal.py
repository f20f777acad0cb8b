"""What the hooks saw and did, for doctor and for feedback: one JSON object a line under ``<root>/.ringtrue/journal/``.

Every event has ``event`` (prompt, read, reference, session or error) and ``at``, seconds since 1970. A file holds a month and
is only ever added to, a whole line with one write, so that hooks running at the same time do not mix.
"""

from __future__ import annotations

import json
import os
import time

from .files import OWN, own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, BinaryIO

FOLDER = "journal"
ENDING = ".jsonl"
_ALSO = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
LATEST = 1e11
"""Seconds since 1970 beyond which no clock is; NaN and infinity are neither."""
_NAMES = ("session_id", "prompt_id", "task_id", "id")
TAIL = 262_144
"""Bytes of the latest file in which a hook looks for what it did a moment ago."""


def record(root: str, event: Mapping[str, Any]) -> bool:
    """Add an event; False if it could not be written. Nothing is raised: a hook does its work without a journal too."""
    try:
        folder = os.path.join(own_folder(root), FOLDER)
        if os.path.islink(folder):
            return False  # what is written there would be written elsewhere
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
        month = time.strftime("%Y-%m", time.gmtime(event["at"]))
        path = os.path.join(folder, month + ENDING)
        line = json.dumps(dict(event), separators=(",", ":")) + "\n"
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _ALSO, 0o600)
        try:
            # What a crash left without an end would swallow the new line.
            os.write(handle, (line if _ends_a_line(handle) else "\n" + line).encode("ascii"))
        finally:
            os.close(handle)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False
    return True


def _ends_a_line(handle: int) -> bool:
    size = os.lseek(handle, 0, os.SEEK_END)
    if not size:
        return True
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1) == b"\n"


def events(root: str, *, since: float = 0.0) -> Iterator[dict[str, Any]]:
    """Yield the events from a moment on, as they were written; torn lines and lines that are not events are passed over."""
    for path in _files(root):
        try:
            with _opened(path) as file:
                for line in file:
                    event = _event(line)
                    if event is not None and event["at"] >= since:
                        yield event
        except OSError:
            continue


def latest(root: str) -> list[dict[str, Any]]:
    """Return the last events, the latest last, reading no more than the end of the last two files."""
    found: list[dict[str, Any]] = []
    for path in _files(root)[-2:]:
        try:
            with _opened(path) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - TAIL))
                lines = file.read(TAIL).split(b"\n")
        except OSError:
            continue
        found += [event for event in map(_event, lines[1 if size > TAIL else 0 :]) if event is not None]
    return found


def _opened(path: str) -> BinaryIO:
    """Open a plain file; raises OSError for a pipe, which nobody may ever write to, and for a link."""
    if os.lstat(path).st_mode & 0o170000 != 0o100000:
        raise OSError(22, "it is not a plain file", path)
    return open(path, "rb")


def _files(root: str) -> list[str]:
    folder = os.path.join(root, OWN, FOLDER)
    if os.path.islink(folder):
        return []
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(ENDING)]
    except OSError:
        return []


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str) or type(event.get("at")) not in (int, float):
        return None
    if not 0 <= event["at"] < LATEST or any(isinstance(event.get(name), list | dict) for name in _NAMES):
        return None
    return event
