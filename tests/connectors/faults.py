"""Servers on the loopback that misbehave on purpose: what a connector must survive, made with real sockets.

Each is a context manager. ``silent``, ``halfway``, ``dripping`` and ``closing`` yield a port, ``answering`` yields an
``Answering`` with the requests it got, ``proxy`` a ``Proxy`` before a real port that can be told to cut or to hang.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LOOPBACK = "127.0.0.1"
PROMPT = 8.0
"""Seconds within which a short time limit of the test takes effect, however busy the machine; connectors' own limit is 10."""
HALF = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"hits": [{"id": "d1", '


def free_port() -> int:
    """Return a port of the loopback on which nobody listens.

    It is none of those that the system chooses from, so that no other test gets it before it is used.
    """
    while True:
        port = 10_000 + secrets.randbelow(_first_ephemeral_port() - 10_000)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind((LOOPBACK, port))
            return port


def _first_ephemeral_port() -> int:
    with contextlib.suppress(OSError, ValueError):
        return max(11_000, int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]))
    return 32_768


def _end(connection: socket.socket) -> None:
    """Close a connection at once, also where another thread waits in ``recv``."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def _listening(handle: Callable[[socket.socket], None]) -> Iterator[int]:
    """Listen on a free port; ``handle`` gets every connection in a thread of its own. All are closed at the end."""
    open_ones: list[socket.socket] = []
    threads: list[threading.Thread] = []
    listener = socket.create_server((LOOPBACK, 0))

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            handle(connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # the listener was closed
                return
            open_ones.append(connection)
            thread = threading.Thread(target=serve, args=(connection,), daemon=True)
            threads.append(thread)
            thread.start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        _end(listener)
        accepting.join(5)
        for connection in open_ones:
            _end(connection)
        for thread in threads:
            thread.join(5)


@contextmanager
def silent() -> Iterator[int]:
    """A port that accepts connections, reads what comes and never answers."""

    def handle(connection: socket.socket) -> None:
        while connection.recv(65536):
            pass

    with _listening(handle) as port:
        yield port


@contextmanager
def halfway(part: bytes = HALF) -> Iterator[int]:
    """A port that sends the first part of an HTTP answer (or other bytes) once it was asked, and closes."""

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(part)
        _end(connection)

    with _listening(handle) as port:
        yield port


@contextmanager
def dripping(part: bytes = HALF, drop: bytes = b" ", every: float = 0.05) -> Iterator[int]:
    """A port that begins an HTTP answer and then sends one drop after the other, so that no single read is slow."""
    over = threading.Event()

    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(part)
        while not over.wait(every):
            connection.sendall(drop)

    with _listening(handle) as port:
        try:
            yield port
        finally:
            over.set()


@contextmanager
def closing() -> Iterator[int]:
    """A port that closes every connection as soon as it is open."""
    with _listening(_end) as port:
        yield port


@dataclass(frozen=True)
class Answer:
    """One HTTP answer: a body that is not text or bytes is sent as JSON."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    """Seconds before it is sent; the end of the server ends the wait."""

    def payload(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(frozen=True)
class Request:
    """One request as the server got it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


@dataclass
class Answering:
    """A running HTTP server: where it is and what it was asked."""

    port: int
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


Responder = Callable[[Request], Answer]


@contextmanager
def answering(answers: Sequence[Answer | Any] | Responder, *, ssl_context: Any = None) -> Iterator[Answering]:
    """An HTTP server that gives one answer per request, the last one again and again.

    An answer is an ``Answer``, or anything else as the body of a 200. Instead of a list, a function from request to ``Answer``
    may decide. With ``ssl_context`` it speaks TLS.
    """
    lock = threading.Lock()
    over = threading.Event()
    asked: list[Request] = []

    def answer_to(request: Request) -> Answer:
        with lock:
            asked.append(request)
            place = len(asked) - 1
        given = answers(request) if callable(answers) else answers[min(place, len(answers) - 1)]
        return given if isinstance(given, Answer) else Answer(given)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: the client's kernel would wait 40 ms between two

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {key.lower(): value for key, value in self.headers.items()}
            answer = answer_to(Request(self.command, self.path, headers, body))
            if answer.wait:
                over.wait(answer.wait)
            payload = answer.payload()
            with contextlib.suppress(OSError):  # the client may have gone
                self.send_response(answer.status)
                for key, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(payload)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = respond

        def log_message(self, format: str, *args: Any) -> None:
            """Stay quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that goes away is what these tests are about."""

    server = Server((LOOPBACK, 0), Handler)
    if ssl_context is not None:
        # The handshake is made by the first read of the connection's own thread: a client that refuses it stops nobody else.
        server.socket = ssl_context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Answering(server.server_address[1], asked)
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


class Proxy:
    """A TCP proxy in front of a real port: ``cut()``, ``hang()`` and ``restore()`` change what happens from now on."""

    def __init__(self, target: int, host: str = LOOPBACK) -> None:
        self.target = (host, target)
        self.port = 0
        self.connections = 0
        """How many connections were opened so far."""
        self._state = "open"
        self._cut_after: int | None = None
        self._changed = threading.Condition()
        self._pairs: list[socket.socket] = []

    def cut(self) -> None:
        """Close all connections and, until ``restore``, every new one at once."""
        with self._changed:
            self._state = "cut"
            pairs, self._pairs = self._pairs, []
            self._changed.notify_all()
        for connection in pairs:
            _end(connection)

    def cut_answer_after(self, count: int) -> None:
        """Let ``count`` further bytes of the answers pass, then cut: a server that goes away while it answers."""
        with self._changed:
            self._cut_after = count

    def hang(self) -> None:
        """Keep connections open, and accept new ones, but let nothing through until ``restore``."""
        with self._changed:
            self._state = "hang"

    def restore(self) -> None:
        """Let everything through again."""
        with self._changed:
            self._state = "open"
            self._cut_after = None
            self._changed.notify_all()

    def _handle(self, client: socket.socket) -> None:
        with self._changed:
            self.connections += 1
            if self._state == "cut":
                _end(client)
                return
        try:
            server = socket.create_connection(self.target, timeout=10)
        except OSError:
            _end(client)
            return
        server.settimeout(None)
        with self._changed:
            self._pairs += [client, server]
        back = threading.Thread(target=self._pump, args=(server, client, True), daemon=True)
        back.start()
        self._pump(client, server, False)
        back.join(5)

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            while data := source.recv(65536):
                with self._changed:
                    self._changed.wait_for(lambda: self._state != "hang")
                    if self._state == "cut":
                        break
                    if answers and self._cut_after is not None:
                        data, over = data[: self._cut_after], len(data) >= self._cut_after
                        self._cut_after -= len(data)
                    else:
                        over = False
                sink.sendall(data)
                if over:
                    self.cut()
        except OSError:
            pass
        finally:
            _end(source)
            _end(sink)


@contextmanager
def proxy(target: int, host: str = LOOPBACK) -> Iterator[Proxy]:
    """A ``Proxy`` to a port; it stands on its own port ``.port``."""
    made = Proxy(target, host)
    with _listening(made._handle) as port:
        made.port = port
        try:
            yield made
        finally:
            made.cut()
