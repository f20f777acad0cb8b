"""The older way to score (``title_tags``): points for words that a text shares with title, tags and body of a memory.

It answers where a Python comes without FTS5, and it is what ``fts5_bm25`` is measured against.
"""

from __future__ import annotations

from .words import words_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .memory import Memory

IN_TITLE, IN_TAGS, BEGINNING, IN_BODY = 2, 3, 1, 1
MOST_FROM_BODY = 3
BEGINNING_FROM = 4
"""Letters from which a word counts for one that begins with it."""


class Entry:
    """The words of one memory, taken apart once."""

    __slots__ = ("body", "tags", "title")

    def __init__(self, memory: Memory, body_max_chars: int) -> None:
        self.title = words_of(memory.title)
        self.tags = {tag.lower() for tag in memory.tags} | words_of(" ".join(memory.tags))
        self.body = words_of(memory.body[:body_max_chars])


def words_of(text: str) -> set[str]:
    """Return the words of a text, the parts of compounds too."""
    whole = words_in(text)
    return {*whole, *(part for word in whole for part in word.replace("-", "_").replace(".", "_").split("_") if len(part) > 1)}


def points(words: Iterable[str], entry: Entry) -> int:
    """Return 2 for a word in the title and 3 in the tags, 1 where it only begins one there, and 1 in the body, 3 at most.

    >>> from .memory import Memory
    >>> memory = Memory(id="x", category="decision", title="Token rotation", body="keys live an hour", tags=("auth",))
    >>> points(["token", "auth", "rota", "hour"], Entry(memory, 2000))
    7
    """
    score, body = 0, 0
    for word in words:
        gained = IN_TITLE * (word in entry.title) + IN_TAGS * (word in entry.tags)
        if not gained and len(word) >= BEGINNING_FROM:
            gained = BEGINNING * any(other.startswith(word) for part in (entry.title, entry.tags) for other in part)
        score += gained
        body += IN_BODY * (word in entry.body)
    return score + min(body, MOST_FROM_BODY)
