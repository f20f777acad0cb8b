"""Stand-ins for GitHub's and GitLab's REST interfaces, as far as comments need them: real HTTP on this machine.

They speak what the documentation describes: bearer tokens, per_page and page with Link headers, status codes with a message,
primary and secondary rate limits, the 65,536 characters of a comment, and GraphQL's ``viewer``. Faults are planted with
``plant``: the next request that matches is answered so.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ACTIONS = "github-actions[bot]"


@dataclass
class Fault:
    """An answer that comes instead of the true one; ``done`` carries the request out all the same."""

    method: str
    path: str
    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    done: bool = False


@dataclass
class Forge:
    """What a test sees: the comments, the requests that came, and the faults to come."""

    tokens: dict[str, str]
    """Token → login."""
    place: str
    """owner/name#number of the one pull request that exists, or project!number."""
    read_only: set[str] = field(default_factory=set)
    graphql: bool = True
    comments: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    url: str = ""

    def add(self, body: str, author: str) -> dict[str, Any]:
        number = 1000 + len(self.comments)
        comment = {
            "id": number,
            "body": body,
            "user": {"login": author, "type": "Bot" if author.endswith("[bot]") else "User"},
            "author": {"username": author},
            "system": False,
            "html_url": f"https://github.example/pull/7#issuecomment-{number}",
        }
        self.comments.append(comment)
        return comment

    def plant(self, method: str, path: str, status: int, body: Any = None, **more: Any) -> None:
        self.faults.append(Fault(method, path, status, {"message": "planted"} if body is None else body, **more))

    def bodies(self, author: str = ACTIONS) -> list[str]:
        return [comment["body"] for comment in self.comments if comment["user"]["login"] == author]


Reply = tuple[int, Any, Mapping[str, str]]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forge: Forge

    def log_message(self, *_: Any) -> None:
        """Be quiet."""

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        split = urlsplit(self.path)
        self.forge.requests.append((self.command, self.path))
        fault = next((f for f in self.forge.faults if f.method == self.command and re.search(f.path, split.path)), None)
        if fault is None or fault.done:
            reply = self._answer(split.path, {k: v[0] for k, v in parse_qs(split.query).items()}, raw)
        if fault is not None:
            fault.times -= 1
            if not fault.times:
                self.forge.faults.remove(fault)
            reply = fault.status, fault.body, fault.headers
        status, body, headers = reply
        if status == 0:  # went away without a word
            self.close_connection = True
            return
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_PUT = _serve

    def _page(self, items: list[Any], query: Mapping[str, str]) -> Reply:
        size = min(int(query.get("per_page", 30)), 100)
        page = int(query.get("page", 1))
        found = items[(page - 1) * size : page * size]
        links = []
        path = urlsplit(self.path).path
        rest = "".join(f"&{name}={value}" for name, value in query.items() if name != "page")
        if page > 1:
            links.append(f'<{self.forge.url}{path}?page={page - 1}{rest}>; rel="prev"')
        if page * size < len(items):
            links.append(f'<{self.forge.url}{path}?page={page + 1}{rest}>; rel="next"')
            links.append(f'<{self.forge.url}{path}?page={-(-len(items) // size)}{rest}>; rel="last"')
        return 200, found, {"Link": ", ".join(links)} if links else {}

    def _answer(self, path: str, query: Mapping[str, str], raw: bytes) -> Reply:
        raise NotImplementedError


class GitHubHandler(_Handler):
    """https://docs.github.com/rest/issues/comments"""

    def _answer(self, path: str, query: Mapping[str, str], raw: bytes) -> Reply:
        forge = self.forge
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        login = forge.tokens.get(token)
        if scheme.lower() not in ("bearer", "token") or login is None:
            return 401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"}, {}
        if path == "/graphql" and self.command == "POST" and forge.graphql:
            wanted = re.sub(r"\s", "", json.loads(raw)["query"])
            return 200, {"data": {"viewer": {"login": login}}} if wanted == "query{viewer{login}}" else {"errors": []}, {}
        repository, _, number = forge.place.partition("#")
        issue, one = f"/repos/{repository}/issues/{number}/comments", f"/repos/{repository}/issues/comments/"
        if path == issue and self.command == "GET":
            return self._page(forge.comments, query)
        if (path == issue and self.command == "POST") or (path.startswith(one) and self.command == "PATCH"):
            if token in forge.read_only:
                return 403, {"message": "Resource not accessible by integration", "status": "403"}, {}
            body = json.loads(raw)["body"]
            if not body.strip() or len(body) > 65_536:
                return 422, {"message": "Validation Failed: body is too long (maximum is 65536 characters)"}, {}
            if self.command == "POST":
                return 201, forge.add(body, login), {}
            comment = next((c for c in forge.comments if str(c["id"]) == path.removeprefix(one)), None)
            if comment is not None:
                comment["body"] = body
                return 200, comment, {}
        return 404, {"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}, {}


class GitLabHandler(_Handler):
    """https://docs.gitlab.com/api/notes/"""

    def _answer(self, path: str, query: Mapping[str, str], raw: bytes) -> Reply:
        forge = self.forge
        token = self.headers.get("PRIVATE-TOKEN", "")
        login = forge.tokens.get(token)
        if login is None:
            return 401, {"message": "401 Unauthorized"}, {}
        if path == "/api/v4/user":
            return 200, {"id": 5, "username": login}, {}
        project, _, number = forge.place.partition("!")
        found = re.fullmatch(r"/api/v4/projects/([^/]+)/merge_requests/(\d+)/notes(?:/(\d+))?", path)
        if found is None or (unquote(found[1]), found[2]) != (project, number):
            return 404, {"message": "404 Not found"}, {}
        if self.command == "GET":
            return self._page(forge.comments, query)
        if token in forge.read_only:
            return 403, {"error": "insufficient_scope"}, {}
        body = json.loads(raw)["body"]
        if self.command == "POST" and not found[3]:
            return 201, forge.add(body, login), {}
        comment = next((c for c in forge.comments if str(c["id"]) == found[3]), None)
        if self.command != "PUT" or comment is None:
            return 404, {"message": "404 Note Not Found"}, {}
        comment["body"] = body
        return 200, comment, {}


@contextmanager
def serving(forge: Forge, handler: type[_Handler]) -> Iterator[Forge]:
    """Serve a forge on a free port until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (handler,), {"forge": forge}))
    server.daemon_threads = True
    forge.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
