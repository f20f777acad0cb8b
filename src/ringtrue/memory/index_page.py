"""``index.md``: all memories on one page, for people. Nothing reads it; it is made from the files and can be made again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from ringtrue.memory.hook.guard import clean_title, hide_secrets
from ringtrue.memory.hook.memory import CATEGORIES, Memory

NAME = "index.md"
MADE = "<!-- made by `ringtrue memory list --write-index`; change the memories, then make it again -->"


def index_page(memories: Iterable[Memory], root: str) -> str:
    """Return the page: the active memories by category, the newest first, then those that are no longer shown."""
    everything = sorted(memories, key=lambda memory: (memory.updated_at, memory.id), reverse=True)
    lines = ["# Memories", MADE]
    for category in CATEGORIES:
        mine = [memory for memory in everything if memory.category == category and memory.status == "active"]
        if mine:
            lines += ["", f"## {category} ({len(mine)})", "", *(_line(memory, root) for memory in mine)]
    hidden = [memory for memory in everything if memory.status != "active"]
    if hidden:
        lines += ["", f"## no longer shown ({len(hidden)})", ""]
        lines += [f"{_line(memory, root)} ({memory.status})" for memory in hidden]
    return "\n".join(lines) + "\n"


def _line(memory: Memory, root: str) -> str:
    path = Path(memory.path)
    place = path.relative_to(root) if path.is_relative_to(root) else path
    # A title is text, not Markdown: a bracket in it must not become a link to somewhere.
    title = "".join(f"\\{letter}" if letter in r"\`*_[]<>#|" else letter for letter in hide_secrets(clean_title(memory.title)))
    facts = ", ".join(
        filter(None, (clean_title(memory.updated_at)[:10], " ".join(f"#{tag}" for tag in map(clean_title, memory.tags))))
    )
    return f"- [{title}]({quote(place.as_posix())})" + (f" – {facts}" if facts else "")


def write_index_page(memories: Iterable[Memory], root: str) -> Path:
    """Write the page into the root and return its path."""
    path = Path(root) / NAME
    aside = path.with_name(f".{NAME}.{os.getpid()}.tmp")
    aside.unlink(missing_ok=True)  # writing to a link that lies there would write elsewhere
    with aside.open("x", encoding="utf-8", errors="replace") as file:
        file.write(index_page(memories, root))
    aside.replace(path)
    return path
