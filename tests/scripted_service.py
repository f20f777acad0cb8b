"""A server that answers what a test tells it to, one answer after the other, and remembers what it was asked."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """What is answered to one request."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    after_s: float = 0.0


class Cut:
    """In place of an answer the connection is cut."""


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Scripted:
    """The address of the server, what it was asked, and what it will answer; the last answer is repeated."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.answers: list[Answer | type[Cut]] = []

    def will(self, *answers: Answer | type[Cut]) -> None:
        self.answers = list(answers)
        self.asked.clear()


def refusal(status: int, code: str, message: str = "no", **headers: str) -> Answer:
    """Return a refusal in the service's one shape of errors."""
    body = {"error": {"code": code, "message": message, "field": None, "request_id": "00ff"}}
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


@contextmanager
def scripted() -> Iterator[Scripted]:
    """Run such a server on a free port of this machine."""
    script = Scripted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            script.asked.append(Asked(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            said = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            if not isinstance(said, Answer):
                # With a reset: what the other side sees of a process that was killed.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            threading.Event().wait(said.after_s)  # a test may have taken time.sleep in hand
            content = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
            self.send_response(said.status)
            for name, value in {"content-type": "application/json", **said.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

        def finish(self) -> None:
            with suppress(OSError, ValueError):  # cut on purpose
                super().finish()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Whoever asked has gone, or was cut off on purpose."""

    server = Server(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
