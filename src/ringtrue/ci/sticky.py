"""One comment that is kept up to date, whatever forge it stands on: found by its marker and its author, else made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from ringtrue.ci.web import NotAllowed
from ringtrue.errors import Unreachable

MARKER = "<!-- ringtrue:report -->"
_MARKER = re.compile(r"<!-- ringtrue:report[\w.:-]* -->")
_FENCE = re.compile(r"^\s*(```+|~~~+)", re.MULTILINE)
CUT = "\n\n*The report is longer than a comment may be; the rest is in the job's files.*\n"
TRIES = 3


def marker_in(markdown: str) -> str | None:
    """Return the marker that a report begins with; None where it has none.

    >>> marker_in("<!-- ringtrue:report:hotel -->\\nPASS")
    '<!-- ringtrue:report:hotel -->'
    """
    first = _first_line(markdown)
    return first if _MARKER.fullmatch(first) else None


@dataclass(frozen=True)
class Comment:
    """A comment as it stands there."""

    id: int
    author: str
    body: str
    url: str = ""


class Thread(Protocol):
    """The comments of one pull request or merge request."""

    limit: int
    """Characters that one comment may have."""
    cure: str
    """What to do where the token may not comment."""

    def me(self) -> str:
        """Return the author that our own comments have."""

    def comments(self) -> Iterator[Comment]: ...

    def create(self, body: str) -> Comment: ...

    def update(self, comment_id: int, body: str) -> Comment: ...


@dataclass(frozen=True)
class Posted:
    """What became of the comment: 'refused' where the token may only read, which is no fault of the change."""

    what: Literal["created", "updated", "refused"]
    url: str = ""
    detail: str = ""


def keep_one(thread: Thread, markdown: str, *, marker: str = MARKER) -> Posted:
    """Update our comment in a thread, or make it; raises Unreachable, AccessDenied or InputError."""
    body = fitted(markdown if _first_line(markdown) == marker else f"{marker}\n{markdown}", thread.limit)
    try:
        author = thread.me()
        for left in reversed(range(TRIES)):
            ours = next((one for one in thread.comments() if one.author == author and _first_line(one.body) == marker), None)
            if ours is not None:
                return Posted("updated", thread.update(ours.id, body).url or ours.url)
            try:
                return Posted("created", thread.create(body).url)
            except Unreachable:
                # The answer was lost, not necessarily the comment: look again before there are two.
                if not left:
                    raise
    except NotAllowed as problem:
        return Posted("refused", detail=f"{problem}: {thread.cure}")
    raise AssertionError("the last try returns or raises")


def _first_line(body: str) -> str:
    """Return where a marker counts; one that is quoted further down is somebody's talk about ours."""
    return body.lstrip("\ufeff\r\n ").partition("\n")[0].rstrip()


def fitted(markdown: str, limit: int) -> str:
    """Return a text that a forge accepts: cut at the end of a line, with what was open there closed.

    >>> fitted("one\\ntwo", 100)
    'one\\ntwo'
    """
    if len(markdown) <= limit:
        return markdown
    room = limit - len(CUT) - 200  # for what has to be closed
    kept = markdown[:room]
    kept = kept[: kept.rfind("\n") + 1] or kept
    opened = _FENCE.findall(kept)
    closing = f"\n{opened[-1]}" if len(opened) % 2 else ""
    closing += "\n</details>" * min(max(kept.count("<details") - kept.count("</details>"), 0), 10)
    return kept + closing + CUT
