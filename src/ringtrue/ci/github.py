"""GitHub: the one comment on a pull request, the step summary and the outputs of a step."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ringtrue.ci.sticky import MARKER, Comment, Posted, fitted, keep_one
from ringtrue.ci.web import Api, NotAllowed
from ringtrue.errors import InputError

API = "https://api.github.com"
ACTIONS = "github-actions[bot]"
"""The author of what a workflow's own token writes."""
SUMMARY_LIMIT = 250_000
"""Characters; GitHub takes 1 MiB, and a character has four bytes at most."""
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


class PullRequest:
    """The comments of one pull request."""

    limit = 65_000  # GitHub refuses more than 65,536 characters
    cure = "a pull request from a fork has a read-only token; elsewhere give the job `permissions: pull-requests: write`"

    def __init__(self, repository: str, number: int, api: Api) -> None:
        if not _REPOSITORY.fullmatch(repository):
            raise InputError(f"{repository!r:.80} is no repository; write it like owner/name")
        if number < 1:
            raise InputError(f"{number} is no number of a pull request; give the one in its address")
        self._api = api
        self._place, self._issue = f"repos/{repository}/issues", f"repos/{repository}/issues/{number}"

    def me(self) -> str:
        """Return the login behind the token. GET /user is closed to the tokens of apps and workflows; this is not."""
        graphql = Api(_graphql(self._api.address), self._api.headers, self._api.secret, self._api.sleep)
        try:
            found = graphql.change("POST", "graphql", {"query": "query { viewer { login } }"})  # it changes nothing
            return str(found["data"]["viewer"]["login"])
        except (InputError, NotAllowed, KeyError, TypeError):  # a server or a token without GraphQL
            return ACTIONS

    def comments(self) -> Iterator[Comment]:
        """Yield every comment, the oldest first."""
        return map(_comment, self._api.pages(f"{self._issue}/comments?per_page=100"))

    def create(self, body: str) -> Comment:
        """Write a comment."""
        return _comment(self._api.create(f"{self._issue}/comments", {"body": body}))

    def update(self, comment_id: int, body: str) -> Comment:
        """Replace the text of a comment."""
        return _comment(self._api.change("PATCH", f"{self._place}/comments/{comment_id}", {"body": body}))


def post_comment(
    markdown: str,
    *,
    repository: str,
    number: int,
    token: str,
    api: str = API,
    marker: str = MARKER,
    sleep: Callable[[float], None] = time.sleep,
) -> Posted:
    """Keep one comment on a pull request up to date, and return what became of it.

    A token that may only read, as on a pull request from a fork, is told by ``Posted.what == "refused"``. Raises
    AccessDenied for a token that GitHub does not know, InputError for what is not there or not accepted, Unreachable when
    GitHub stays unable to answer.
    """
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    return keep_one(PullRequest(repository, number, Api(api, headers, token, sleep)), markdown, marker=marker)


def _graphql(rest: str) -> str:
    """Return the address above ``graphql``: GitHub's own has it at the root, an enterprise server beside ``v3``."""
    return rest.rstrip("/").removesuffix("/v3")


def _comment(record: Any) -> Comment:
    if not isinstance(record, Mapping) or not isinstance(record.get("id"), int):
        raise InputError(f"GitHub answered {record!r:.60}, which is no comment; check the address of the API")
    author = record.get("user") or {}  # a deleted account has none
    return Comment(
        int(record["id"]), str(author.get("login", "")), str(record.get("body") or ""), str(record.get("html_url", ""))
    )


def pull_request_number(event: Path | None) -> int | None:
    """Return the number of the pull request that a workflow's event is about; None for a push or a schedule."""
    if event is None or not event.is_file():
        return None
    try:
        said = json.loads(event.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise InputError(f"{event}: is not JSON ({problem}); give the number with --number") from problem
    if not isinstance(said, dict):
        return None
    issue = said.get("issue") or {}
    behind = (said.get("workflow_run") or {}).get("pull_requests") or [{}]
    found = (said.get("pull_request") or {}).get("number") or behind[0].get("number")
    return found or (issue.get("number") if "pull_request" in issue else None)


def add_summary(markdown: str, file: Path) -> None:
    """Append to the summary of a step."""
    with file.open("a", encoding="utf-8") as out:
        out.write(fitted(markdown, SUMMARY_LIMIT).rstrip("\n") + "\n")


def add_outputs(values: Mapping[str, object], file: Path) -> None:
    """Append outputs of a step; a value of several lines cannot pass for another output."""
    with file.open("a", encoding="utf-8") as out:
        for name, value in values.items():
            text = str(value)
            if "\n" in text or "\r" in text:
                end = "end-" + hashlib.sha256(text.encode()).hexdigest()[:20]
                out.write(f"{name}<<{end}\n{text}\n{end}\n")
            else:
                out.write(f"{name}={text}\n")
