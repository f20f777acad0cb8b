"""GitHub and GitLab: the one comment on a pull request that is kept up to date, and the summary and outputs of a step.

The comment is found by its marker and its author, else made. Requests have bounded retries; redirects are not followed, so no
token goes to another host, and none is in a message.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from ringtrue.errors import AccessDenied, InputError, SearchFailed, Unreachable
from ringtrue.http_client import HttpClient, Response

ATTEMPTS = 4
TIMEOUT = 30.0
DEFAULT_WAIT = 60.0
"""Seconds to wait if a rate limit names none, as GitHub advises."""
LONGEST_WAIT = 120.0
"""A job must not wait longer than this for a comment."""
PAGE = 100
"""Comments per page, the most that both forges allow."""
MARKER = "<!-- ringtrue:report -->"
CUT = "\n\n*The report is longer than a comment may be; the rest is in the job's files.*\n"
TRIES = 3
SUMMARY_LIMIT = 250_000
"""Characters; GitHub takes 1 MiB, and a character has four bytes at most."""
_MARKER = re.compile(r"<!-- ringtrue:report[\w.:-]* -->")
_FENCE = re.compile(r"^\s*(```+|~~~+)", re.MULTILINE)


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


class NotAllowed(AccessDenied):
    """The token is valid, but may not do this; a pull request from a fork has such a token."""


@dataclass(frozen=True)
class Api:
    """An API at an address, with the headers that every request carries."""

    address: str
    headers: Mapping[str, str] = field(repr=False)
    secret: str = field(repr=False)
    sleep: Callable[[float], None] = time.sleep

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, repeatable: bool = True) -> Any:
        """Return the decoded answer; raises Unreachable, AccessDenied, NotAllowed or InputError.

        What is not ``repeatable`` is sent again only if it was refused unread: a lost answer may hide a success.
        """
        problem = ""
        for attempt in range(ATTEMPTS):
            wait, again = float(2**attempt), repeatable
            try:
                found = self._once(method, f"{self.address.rstrip('/')}/{path.lstrip('/')}", body)
            except SearchFailed as error:
                problem = str(error)
            else:
                limited = _is_rate_limit(found)
                if not limited and found.status < 500:
                    return self._checked(found, path)
                problem = f"{self._said(found)}; run it again later"
                if limited:
                    after = found.headers.get("retry-after", "")
                    wait = float(after) if after.isdigit() else DEFAULT_WAIT
                    again = wait <= LONGEST_WAIT
            if not again or attempt == ATTEMPTS - 1:
                break
            self.sleep(wait)
        raise Unreachable(problem)

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the items of every page."""
        for page in count(1):
            items = self.send("GET", f"{path}?per_page={PAGE}&page={page}")
            if not isinstance(items, list):
                raise Unreachable(f"{self.name} answered without a list for {path}; check the address of the API")
            yield from items
            if len(items) < PAGE:
                return

    @property
    def name(self) -> str:
        """The host, for messages."""
        return urlsplit(self.address).netloc.rpartition("@")[2] or self.address

    def _once(self, method: str, url: str, body: Mapping[str, Any] | None) -> Response:
        headers = {"User-Agent": "ringtrue", **self.headers, **({} if body is None else {"Content-Type": "application/json"})}
        content = None if body is None else json.dumps(body).encode()
        with closing(HttpClient()) as http:
            return http.request(self.name, method, url, content=content, headers=headers, timeout=TIMEOUT)

    def _checked(self, found: Response, path: str) -> Any:
        if found.status < 300:
            return _decoded(found)
        said = self._said(found)
        if found.status == 401:
            raise AccessDenied(f"{said}: the token is not accepted; set a valid one")
        if found.status == 403:
            raise NotAllowed(said)
        missing = found.status in (301, 302, 307, 308, 404, 410)
        cure = "check repository and number, and that the token may see them" if missing else "check what is sent there"
        raise InputError(f"{said} for {path.partition('?')[0]}; {cure}")

    def _said(self, found: Response) -> str:
        """Return the status of an answer and its reason, in one line without the token."""
        line = f"{self.name} answered {found.status} ({_message(found)})"
        return line.replace(self.secret, "***") if self.secret else line


def _decoded(found: Response) -> Any:
    with suppress(SearchFailed):  # a proxy's page
        return found.json
    return None


def _message(found: Response) -> str:
    body = _decoded(found)
    said = body.get("message") or body.get("error") if isinstance(body, dict) else None
    return " ".join(str(said).split())[:200] if said else "no reason given"


def _is_rate_limit(found: Response) -> bool:
    """Return whether to wait: for 429, and for the 403 that GitHub uses for a rate limit."""
    told = "retry-after" in found.headers or found.headers.get("x-ratelimit-remaining") == "0"
    return found.status == 429 or (found.status == 403 and (told or "rate limit" in _message(found).lower()))


# ── the one comment ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Comment:
    """A comment as it stands there."""

    id: int
    author: str
    body: str
    url: str

    @classmethod
    def of(cls, api: Api, record: Any) -> Comment:
        """Return the comment that GitHub or GitLab describes; raises InputError for anything else."""
        if not isinstance(record, Mapping) or not isinstance(record.get("id"), int):
            raise InputError(f"{api.name} answered {record!r:.60}, which is not a comment; check the address of the API")
        author = record.get("user") or record.get("author") or {}  # a deleted account has none
        name = author.get("login") or author.get("username") or ""
        return cls(record["id"], str(name), str(record.get("body") or ""), str(record.get("html_url") or ""))


@dataclass(frozen=True)
class Thread:
    """The comments of one pull request or merge request, and the words of its forge."""

    api: Api
    path: str
    """Where the comments are listed and where a new one is made."""
    one: str
    """The path before the id of one comment."""
    update: Literal["PATCH", "PUT"]
    limit: int
    """Characters that one comment may have."""
    cure: str
    """What to do if the token may not comment."""
    author: Callable[[Api], str]
    """Returns the author that our own comments have."""


@dataclass(frozen=True)
class Posted:
    """What became of the comment: 'refused' if the token may only read, which is not a fault of the change."""

    what: Literal["created", "updated", "refused"]
    url: str = ""
    detail: str = ""


def marker_in(markdown: str) -> str | None:
    """Return the marker that a report begins with; None if it has none.

    >>> marker_in("<!-- ringtrue:report:hotel -->\\nPASS")
    '<!-- ringtrue:report:hotel -->'
    """
    first = _first_line(markdown)
    return first if _MARKER.fullmatch(first) else None


def post_comment(
    markdown: str,
    *,
    place: str,
    number: int,
    token: str,
    api: str = "https://api.github.com",
    marker: str = MARKER,
    sleep: Callable[[float], None] = time.sleep,
) -> Posted:
    """Keep one comment on a pull request of GitHub, in ``place`` (owner/name), up to date; return what became of it.

    A token that may only read, as on a pull request from a fork, is told by ``Posted.what == "refused"``. Raises
    AccessDenied for a token that GitHub does not know, InputError for what is not there or not accepted, Unreachable if
    GitHub stays unable to answer.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", place):
        raise InputError(f"{place!r:.80} is not a repository; write it like owner/name")
    if number < 1:
        raise InputError(f"{number} is not the number of a pull request; give the one in its address")
    accept = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    thread = Thread(
        Api(api, {"Authorization": f"Bearer {token}", **accept}, token, sleep),
        path=f"repos/{place}/issues/{number}/comments",
        one=f"repos/{place}/issues/comments",
        update="PATCH",
        limit=65_000,  # GitHub refuses more than 65,536 characters
        cure="a pull request from a fork has a read-only token; elsewhere give the job `permissions: pull-requests: write`",
        author=_github_author,
    )
    return _keep_one(thread, markdown, marker)


def _github_author(api: Api) -> str:
    """Return the login behind the token. GET /user is closed to the tokens of apps and workflows; this is not."""
    # GitHub's own address has GraphQL at the root, an enterprise server beside ``v3``.
    graphql = Api(api.address.rstrip("/").removesuffix("/v3"), api.headers, api.secret, api.sleep)
    try:
        found = graphql.send("POST", "graphql", {"query": "query { viewer { login } }"})  # it changes nothing
        return str(found["data"]["viewer"]["login"])
    except (InputError, NotAllowed, KeyError, TypeError):  # a server or a token without GraphQL
        return "github-actions[bot]"  # who writes with a workflow's own token


def post_note(
    markdown: str,
    *,
    place: str,
    number: int,
    token: str,
    api: str = "https://gitlab.com/api/v4",
    marker: str = MARKER,
    sleep: Callable[[float], None] = time.sleep,
) -> Posted:
    """Keep one note on a merge request of GitLab, in ``place`` (id or path of a project), up to date, like ``post_comment``."""
    if not place.strip():
        raise InputError("no GitLab project is given; write its id or its path like group/name")
    if number < 1:
        raise InputError(f"{number} is not the number of a merge request; give the one in its address")
    notes = f"projects/{quote(place, safe='')}/merge_requests/{number}/notes"
    thread = Thread(
        Api(api, {"PRIVATE-TOKEN": token}, token, sleep),
        path=notes,
        one=notes,
        update="PUT",
        limit=990_000,  # GitLab refuses more than 1,000,000 characters
        cure="use a project access token of role Reporter with the scope `api`; a job's own CI_JOB_TOKEN cannot write notes",
        author=_gitlab_author,
    )
    return _keep_one(thread, markdown, marker)


def _gitlab_author(api: Api) -> str:
    """Return the user behind the token; a project's token has its own."""
    found = api.send("GET", "user")
    if not isinstance(found, Mapping) or "username" not in found:
        raise InputError(
            f"{api.name} answered {found!r:.60}; check the address of the API, like https://gitlab.example.com/api/v4"
        )
    return str(found["username"])


def _keep_one(thread: Thread, markdown: str, marker: str) -> Posted:
    """Update our comment in a thread, or make it; raises Unreachable, AccessDenied or InputError."""
    text = markdown if _first_line(markdown) == marker else f"{marker}\n{markdown}"
    api, body = thread.api, {"body": fitted(text, thread.limit)}
    try:
        author = thread.author(api)
        for left in reversed(range(TRIES)):
            every = (Comment.of(api, record) for record in api.pages(thread.path))
            ours = next((one for one in every if one.author == author and _first_line(one.body) == marker), None)
            if ours is not None:
                changed = Comment.of(api, api.send(thread.update, f"{thread.one}/{ours.id}", body))
                return Posted("updated", changed.url or ours.url)
            try:
                return Posted("created", Comment.of(api, api.send("POST", thread.path, body, repeatable=False)).url)
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
    kept = markdown[: limit - len(CUT) - 200]  # for what has to be closed
    kept = kept[: kept.rfind("\n") + 1] or kept
    opened = _FENCE.findall(kept)
    closing_marks = f"\n{opened[-1]}" if len(opened) % 2 else ""
    closing_marks += "\n</details>" * min(max(kept.count("<details") - kept.count("</details>"), 0), 10)
    return kept + closing_marks + CUT


# ── a step of a workflow ────────────────────────────────────────────────────────────────────────────────────────────


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
    """Append outputs of a step, each in one line, so that no value can pass for another output."""
    with file.open("a", encoding="utf-8") as out:
        out.writelines(f"{name}={' '.join(str(value).splitlines())}\n" for name, value in values.items())
