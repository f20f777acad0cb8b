"""What the user said last, from the transcript a host keeps: one JSON object a line, most of them not from the user.

The format is the host's own and may change, so whatever is not understood is passed over, and nothing is raised.
"""

from __future__ import annotations

import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MOST_BYTES = 262_144
"""How far back a transcript is read, at most."""
TURN_LIMIT = 2000
"""Characters of a turn that are kept; a longer one is a pasted file."""
_PLAIN, _KIND = 0o100000, 0o170000
_NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "toolUseResult", "agentId")
"""Marks of lines that carry the role of the user and are not from the user."""
_TAGS = (
    "command-(?:name|message|args|contents)|local-command-(?:stdout|stderr|caveat)|bash-(?:input|stdout|stderr)|system-reminder"
    "|task-notification|teammate-message|cross-session-message|scheduled-task|user-prompt-submit-hook|user-memory-input"
    "|ide_opened_file|ide_selection|memory-context"
    "|environment_context|user_instructions|user_shell_command|subagent_notification|turn_aborted"  # Codex
)
"""Elements in which hosts wrap what they say in the name of the user; any other one may be the user's own markup."""
_MARKUP = re.compile(rf"<(?:{_TAGS})[\s>/]|Caveat: The messages below|\[Request interrupted")
_CLEAR = re.compile(
    r"\s*(?:<command-message>[^<]*</command-message>\s*)?<command-name>\s*/(?:clear|new|reset)\s*</command-name>"
)
_CLEARED = "\0"
"""Stands among the turns for the command that ends a conversation; no text of a turn is this one."""
_PATH_FIELDS = ("file_path", "notebook_path", "path")


def user_turns(path: str, *, max_turns: int, tail_bytes: int) -> list[str]:
    """Return the last things the user said, at most ``max_turns``, the latest last; nothing if the file cannot be read.

    The end of the file is read, twice as much each time until there are enough turns or 256 KB: an answer of the agent alone
    may be longer than any fixed tail. What was said before the conversation was cleared does not count.
    """
    return _from_end(path, _said, most=max_turns, tail_bytes=tail_bytes)


def by_host(text: str) -> bool:
    """True if a text is not the user's, though it comes in the user's name: results of sub-agents, tasks, output.

    >>> by_host("<task-notification>done"), by_host("<app-header> should use JWT")
    (True, False)
    """
    return _MARKUP.match(text) is not None


def used_paths(path: str, *, most: int, tail_bytes: int) -> list[str]:
    """Return the paths of the last uses of tools, at most ``most``, the latest last."""
    return _from_end(path, _used, most=most, tail_bytes=tail_bytes)


def _from_end(path: str, take: Callable[[dict[str, Any]], Iterator[str]], *, most: int, tail_bytes: int) -> list[str]:
    if most < 1:
        return []
    try:
        if os.stat(path).st_mode & _KIND != _PLAIN:  # opening a pipe would wait for a writer
            return []
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            length = max(1, tail_bytes)
            while True:
                start = max(0, size - min(length, MOST_BYTES))
                file.seek(start)
                lines = file.read(size - start).split(b"\n")
                if start:
                    del lines[0]  # the reading began in the middle of it
                found = [text for line in lines for text in _objects(line, take)]
                if _CLEARED in found:
                    return found[len(found) - found[::-1].index(_CLEARED) :][-most:]
                if len(found) >= most or start == 0 or length >= MOST_BYTES:
                    return found[-most:]
                length *= 2
    except (OSError, ValueError):
        return []


def _objects(line: bytes, take: Callable[[dict[str, Any]], Iterator[str]]) -> Iterator[str]:
    try:
        entry = json.loads(line) if line.strip() else None
    except (ValueError, RecursionError):
        return
    if isinstance(entry, dict):
        yield from take(entry)


def _said(entry: dict[str, Any]) -> Iterator[str]:
    content: Any = None
    if entry.get("type") in ("user", "system") and not entry.get("isSidechain"):
        message = entry.get("message")
        command = message.get("content") if isinstance(message, dict) else entry.get("content")
        if isinstance(command, list) and command and isinstance(command[0], dict):
            command = command[0].get("text")
        if isinstance(command, str) and _CLEAR.match(command):
            yield _CLEARED
            return
    if entry.get("type") == "user" and not any(entry.get(mark) for mark in _NOT_SAID):
        message = entry.get("message")
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
    elif entry.get("type") == "event_msg":  # Codex
        payload = entry.get("payload")
        if isinstance(payload, dict) and payload.get("type") == "user_message":  # before 0.169
            content = payload.get("message")
        item = payload.get("item") if isinstance(payload, dict) and payload.get("type") == "item_completed" else None
        if isinstance(item, dict) and item.get("type") == "UserMessage":
            content = item.get("content")
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, dict)]
        if any(block.get("type") == "tool_result" for block in blocks):
            return
        texts = [block.get("text") for block in blocks if block.get("type") == "text"]
        content = "\n".join(text for text in texts if isinstance(text, str) and not by_host(text.lstrip()))
    if isinstance(content, str):
        # Half a surrogate pair is valid JSON and no text; it could not even be printed.
        text = content[:TURN_LIMIT].encode("utf-8", "ignore").decode("utf-8").strip()
        if text and text != _CLEARED and not by_host(text):
            yield text


def _used(entry: dict[str, Any]) -> Iterator[str]:
    message = entry.get("message")
    if entry.get("type") != "assistant" or entry.get("isSidechain") or not isinstance(message, dict):
        return
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        given = block.get("input") if isinstance(block, dict) and block.get("type") == "tool_use" else None
        if isinstance(given, dict):
            named = [given[name] for name in _PATH_FIELDS if isinstance(given.get(name), str)]
            if named:
                yield named[0]
