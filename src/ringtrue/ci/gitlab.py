"""GitLab: the one note on a merge request."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ringtrue.ci.sticky import MARKER, Comment, Posted, keep_one
from ringtrue.ci.web import Api
from ringtrue.errors import InputError


class MergeRequest:
    """The notes of one merge request."""

    limit = 990_000  # GitLab refuses more than 1,000,000 characters
    cure = "use a project access token of role Reporter with the scope `api`; a job's own CI_JOB_TOKEN cannot write notes"

    def __init__(self, project: str, number: int, api: Api) -> None:
        if not project.strip():
            raise InputError("no GitLab project is given; write its id or its path like group/name")
        if number < 1:
            raise InputError(f"{number} is no number of a merge request; give the one in its address")
        self._api = api
        self._notes = f"projects/{quote(project, safe='')}/merge_requests/{number}/notes"

    def me(self) -> str:
        """Return the user behind the token; a project's token has a user of its own."""
        return str(_record(self._api.get("user"))["username"])

    def comments(self) -> Iterator[Comment]:
        """Yield every note that somebody wrote, the oldest first."""
        for note in self._api.pages(f"{self._notes}?per_page=100&sort=asc&order_by=created_at"):
            if not note.get("system"):
                yield _note(note)

    def create(self, body: str) -> Comment:
        """Write a note."""
        return _note(self._api.create(self._notes, {"body": body}))

    def update(self, comment_id: int, body: str) -> Comment:
        """Replace the text of a note."""
        return _note(self._api.change("PUT", f"{self._notes}/{comment_id}", {"body": body}))


def post_note(
    markdown: str,
    *,
    project: str,
    number: int,
    token: str,
    api: str = "https://gitlab.com/api/v4",
    marker: str = MARKER,
    sleep: Callable[[float], None] = time.sleep,
) -> Posted:
    """Keep one note on a merge request up to date, and return what became of it; raises like ``post_comment``."""
    thread = MergeRequest(project, number, Api(api, {"PRIVATE-TOKEN": token}, token, sleep))
    return keep_one(thread, markdown, marker=marker)


def _record(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"GitLab answered {value!r:.60}; check the address of the API, like https://gitlab.example.com/api/v4")
    return value


def _note(value: Any) -> Comment:
    record = _record(value)
    return Comment(int(record["id"]), str((record.get("author") or {}).get("username", "")), str(record.get("body") or ""))
