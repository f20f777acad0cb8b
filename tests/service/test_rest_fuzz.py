"""Ten thousand malformed requests at a running server: never a 500, never a hang, memory bounded, healthy afterwards.

Every request is sent over a plain socket, so that what no client library would send is sent, too. The valid requests that are
damaged are the examples of the OpenAPI document: a new route is attacked as soon as it has one.
"""

from __future__ import annotations

import gzip
import json
import random
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from ringtrue.service.routes.evaluate import TEST_SET_YAML
from service_process import ServerProcess, serving_alone
from stores import empty as empty
from stores import kind as kind

REQUESTS = {"sqlite": 10_000, "postgresql": 1_500}
SENDERS = 6
ANSWER_S = 60.0
"""The server's own limit for a request; who waits longer hangs."""
MOST_GROWTH_MB = 220
"""178 MB were measured; 84 while the allocator was tuned to give memory back at once."""
JSON, YAML, LINES, ZIP, TREC = (
    "application/json", "application/yaml", "application/x-ndjson", "application/zip", "text/plain",
)  # fmt: skip
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, -1e308, 5e-324, 0.1, float("nan"), float("inf"), "",
    " ", "\x00", "a\x00b", "\ud800", "a\udfffb", "\u202e\ufeff", "𝔲𝔫𝔦", "../../etc/passwd", "/etc/passwd", "file:///etc/passwd",
    "http://127.0.0.1:1/", "' OR 1=1 --", "%s%n{0}{{x}}", "<script>alert(1)</script>", "x" * 5_000, "9" * 5_000,
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-13-45", "rrf(" * 500, "bm25 >> rerank(model='/etc/passwd')",
    "qdrant(url='http://127.0.0.1:9/')", "nDCG@99999999999", [], {}, [[]], [None] * 50, {"": ""}, {"\x00": 1},
    {"\ud800": "\udfff"},
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """An operation with a body, and valid bodies of it."""

    method: str
    path: str
    bodies: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Attack:
    """Bytes for a socket, and whether the connection can be used again afterwards."""

    name: str
    target: str
    content: bytes
    alone: bool = False
    whole: bool = True
    """Whether the server has a request to answer; it may close the line without a word otherwise."""


# ── what is valid ───────────────────────────────────────────────────────────────────────────────────────────────────


def targets(document: dict[str, Any]) -> list[Target]:
    """Return every operation of the document that takes a body, with its examples."""
    found = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {})
            bodies = [(JSON, json.dumps(value).encode()) for value in examples(document, content.get(JSON, {}))]
            if YAML in content:
                bodies.append((YAML, TEST_SET_YAML.encode()))
            if LINES in content:
                bodies.append((LINES, b'{"id": "a", "query": "pool", "relevant_ids": ["pool"], "answer": "x"}\n' * 3))
            if TREC in content:
                bodies.append((TREC, content[TREC]["example"].encode()))
            if content:
                assert bodies, f"{method} {path} has no example to damage"
                filled = path.replace("{feature}", "rerank-v2").replace("{name}", "graph-scoring").replace("{key}", "abc")
                query = "?golden=hotel" if path == "/v1/runs" else ""
                found.append(Target(method.upper(), filled + query, tuple(bodies)))
    return found


def examples(document: dict[str, Any], content: dict[str, Any]) -> list[Any]:
    """Return the examples of a body, wherever the document keeps them."""
    if "examples" in content:
        return [one["value"] for one in content["examples"].values()]
    if "example" in content:
        return [content["example"]]
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    found: list[Any] = document["components"]["schemas"].get(name, {}).get("examples", [])
    if not found and name == "Shipped":
        found = [{"name": "hotel"}]
    return found


# ── what is not ─────────────────────────────────────────────────────────────────────────────────────────────────────


def flipped(luck: random.Random, body: bytes) -> bytes:
    """Damage a few bytes anywhere."""
    made = bytearray(body)
    for _ in range(luck.randint(1, 8)):
        place = luck.randrange(len(made) + 1)
        match luck.randrange(3):
            case 0:
                made[place : place + 1] = bytes([luck.randrange(256)])
            case 1:
                made[place:place] = luck.randbytes(luck.randint(1, 4))
            case _:
                del made[place : place + luck.randint(1, 6)]
    return bytes(made)


def cut(luck: random.Random, body: bytes) -> bytes:
    return body[: luck.randrange(len(body) + 1)]


def noise(luck: random.Random, body: bytes) -> bytes:
    return luck.randbytes(luck.choice((0, 1, 7, 100, 3_000)))


def changed(luck: random.Random, body: bytes) -> bytes:
    """Put hostile values into a valid one, or take parts of it away."""
    try:
        value = json.loads(body)
    except ValueError:
        return flipped(luck, body)
    for _ in range(luck.randint(1, 3)):
        value = _changed(luck, value)
    return json.dumps(value, ensure_ascii=luck.random() < 0.7).encode("utf-8", "surrogatepass")


def _changed(luck: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and luck.random() < 0.85:
        name = luck.choice(list(value))
        match luck.randrange(8):
            case 0:
                return {key: item for key, item in value.items() if key != name}
            case 1:
                return {**value, luck.choice(("extra", "", "__proto__", "id", "x" * 300, "\ud800")): luck.choice(HOSTILE)}
            case _:
                return {**value, name: _changed(luck, value[name])}
    if isinstance(value, list) and value and luck.random() < 0.7:
        place = luck.randrange(len(value))
        if luck.random() < 0.1:
            return value * luck.choice((2, 50))
        return [*value[:place], _changed(luck, value[place]), *value[place + 1 :]]
    return luck.choice(HOSTILE)


def doubled_keys(luck: random.Random, body: bytes) -> bytes:
    return body.replace(b"{", b'{"query": 1, "query": [], "id": "a", "id": {}, ', luck.randint(1, 2))


def nested(luck: random.Random, body: bytes) -> bytes:
    deep = luck.choice((60, 250, 1_000, 50_000))
    match luck.randrange(4):
        case 0:
            return b"[" * deep
        case 1:
            return b'{"a":' * deep + b"1" + b"}" * deep
        case 2:
            return b'{"queries":' + b"[" * deep + b"]" * deep + b"}"
        case _:
            return body[:-1] + b', "metadata": ' + b'{"a":' * deep + b"1" + b"}" * deep + body[-1:]


def numbers(luck: random.Random, body: bytes) -> bytes:
    number = luck.choice(
        (b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 5_000, b"0." + b"1" * 5_000, b"-0", b"01", b"1e-400", b"0x1")
    )
    digits = [place for place, byte in enumerate(body) if 48 <= byte <= 57]
    if not digits:
        return number
    place = luck.choice(digits)
    return body[:place] + number + body[place + 1 :]


def yaml_bomb(luck: random.Random, body: bytes) -> bytes:
    match luck.randrange(5):
        case 0:
            lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
            lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
            return "\n".join([*lines, "queries: *a8"]).encode()
        case 1:
            return b"queries: !!python/object/apply:os.system ['echo x']"
        case 2:
            return b"queries: &a [*a]"
        case 3:
            return b"queries:\n" + b" - - - -" * 2_000
        case _:
            return b"? " * 3_000 + b"a"


BODIES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    flipped, flipped, cut, noise, changed, changed, changed, changed, changed, doubled_keys, nested, numbers,
    yaml_bomb,
)  # fmt: skip
TYPES = (
    JSON, YAML, LINES, ZIP, TREC, "", "text/html", "application/json; charset=utf-7", "APPLICATION/JSON", "a/b; c=\xff", "*/*",
    "multipart/form-data", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "x" * 3_000,
)  # fmt: skip


def attack(luck: random.Random, target: Target, token: str) -> Attack:
    """Return one malformed request."""
    kind, valid = luck.choice(target.bodies)
    make = luck.choice(BODIES)
    if make is yaml_bomb and any(one[0] == YAML for one in target.bodies):
        kind = YAML
    body = make(luck, valid)
    if luck.random() < 0.08:
        kind = luck.choice(TYPES)
    headers = [f"Authorization: Bearer {token}", f"Content-Type: {kind}"]
    name, path = make.__name__, target.path
    if luck.random() < 0.06:
        name, packed = "gzip", gzip.compress(body, 1, mtime=0)
        packed = luck.choice((packed, packed[: len(packed) // 2], packed + b"more", flipped(luck, packed), body))
        headers.append(f"Content-Encoding: {luck.choice(('gzip', 'gzip', 'GZIP', 'br', 'gzip, gzip', 'deflate'))}")
        body = packed
    if luck.random() < 0.04:
        headers.append(f"Idempotency-Key: {luck.choice(('', 'a', 'a', 'x' * 300, 'ä', 'k' + str(luck.randrange(50))))}")
    if luck.random() < 0.03:
        path = (
            path.partition("?")[0]
            + "?"
            + luck.choice(("golden=%00", "golden=%ff", "golden=../x", "a=%", "&&&=", "limit=" + "9" * 400))
        )
    fate = luck.random()
    line = f"{target.method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if fate < 0.90:
        return Attack(name, target.path, _request(line, [*headers, f"Content-Length: {len(body)}"], body))
    if fate < 0.93:
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:50], body[50:]) if part) + b"0\r\n\r\n"
        return Attack("chunked", target.path, _request(line, [*headers, "Transfer-Encoding: chunked"], chunks))
    return _misframed(luck, target.path, line, headers, body)


def _misframed(luck: random.Random, path: str, line: str, headers: list[str], body: bytes) -> Attack:
    """Return a request whose framing is wrong; the connection is of no use afterwards."""
    match luck.randrange(7):
        case 0:
            content, name = _request(line, [*headers, f"Content-Length: {len(body) + 40}"], body), "content-length too long"
            return Attack(name, path, content, alone=True, whole=False)
        case 1:
            content, name = (
                _request(line, [*headers, f"Content-Length: {len(body) // 2}"], body + b"x"),
                "content-length too short",
            )
        case 2:
            number = luck.choice(("-1", "abc", "9" * 30, "1, 2", "0x10", "1_0", "99999999", ""))
            content, name = _request(line, [*headers, f"Content-Length: {number}"], body), "content-length no number"
            return Attack(name, path, content, alone=True, whole=False)
        case 3:
            good = _request(line, [*headers, f"Content-Length: {len(body)}"], body)
            content, name = good + luck.randbytes(200) + b"\r\n\r\n", "pipelined garbage"
        case 4:
            content, name = luck.randbytes(300) + b"\r\n\r\n", "no request"
            return Attack(name, path, content, alone=True, whole=False)
        case 5:
            bad = _request(line, [*headers, "Transfer-Encoding: chunked"], b"zz\r\n" + body)
            return Attack("broken chunks", path, bad, alone=True, whole=False)
        case _:
            both = _request(line, [*headers, f"Content-Length: {len(body)}", "Transfer-Encoding: chunked"], b"0\r\n\r\n" + body)
            return Attack("two lengths", path, both, alone=True, whole=False)
    return Attack(name, path, content, alone=True)


def _request(line: str, headers: list[str], body: bytes) -> bytes:
    return (line + "".join(f"{one}\r\n" for one in headers) + "\r\n").encode("latin-1", "replace") + body


def valid(known: list[Target], token: str) -> list[Attack]:
    """Return the requests that are damaged as they were: after them everything is loaded that will ever be."""
    found = []
    for one in known:
        line = f"{one.method} {one.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for type_, body in one.bodies:
            headers = [f"Authorization: Bearer {token}", f"Content-Type: {type_}", f"Content-Length: {len(body)}"]
            found.append(Attack("valid", one.path, _request(line, headers, body)))
    return found


def heavy(document: dict[str, Any], token: str) -> Iterator[Attack]:
    """Yield what is built to weigh much more than it seems."""
    packed = gzip.compress(b" " * 60_000_000, 6, mtime=0)
    lists = b"[" + b"{}," * 150_000 + b"0]"
    many = b"[" + b"0," * 9_000_000 + b"0]"
    for target in targets(document):
        line = f"{target.method} {target.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        common = [f"Authorization: Bearer {token}", f"Content-Type: {JSON}"]
        for name, body, more in (
            ("gzip bomb", packed, ["Content-Encoding: gzip"]),
            ("empty objects", lists, []),
            ("empty objects, packed", gzip.compress(lists, 1, mtime=0), ["Content-Encoding: gzip"]),
            *((("millions of values", many, []),) if target.path in ("/v1/queries", "/v1/evaluate", "/v1/golden") else ()),
        ):
            yield Attack(name, target.path, _request(line, [*common, *more, f"Content-Length: {len(body)}"], body), alone=True)
        announced = _request(line, [*common, "Content-Length: 10000000000"], b"")
        yield Attack("announced too large", target.path, announced, alone=True)


# ── how it goes ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Outcome:
    attack: Attack
    status: int | None
    """None if the line was closed without an answer."""
    body: bytes
    seconds: float


class Line:
    """A connection to the server, made anew whenever it is of no use any more."""

    def __init__(self, port: int) -> None:
        self._port, self._socket = port, None

    _socket: socket.socket | None

    def send(self, attack: Attack) -> Outcome:
        began = time.monotonic()
        if attack.alone:
            self.close()
        try:
            status, body, keep = self._exchange(attack)
        except (ConnectionError, EOFError):
            self.close()
            if attack.alone:
                status, body, keep = None, b"", False
            else:  # a line that was kept may have been closed in between; a new one may not
                status, body, keep = self._exchange(attack)
        if attack.alone or not keep:
            self.close()
        return Outcome(attack, status, body, time.monotonic() - began)

    def _exchange(self, attack: Attack) -> tuple[int, bytes, bool]:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), ANSWER_S)
        try:
            self._socket.sendall(attack.content)
            if attack.alone and not attack.whole:
                self._socket.shutdown(socket.SHUT_WR)
        except ConnectionError:
            if not attack.alone:
                raise
            # The answer may be there already: a server need not read all of what it refuses.
        return _answer(self._socket)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _answer(line: socket.socket) -> tuple[int, bytes, bool]:
    """Return status, body and whether the connection stays; raises EOFError where it closed first."""
    seen = b""
    while b"\r\n\r\n" not in seen:
        part = line.recv(65_536)
        if not part:
            raise EOFError
        seen += part
    head, _, body = seen.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines[1:])}
    length = headers.get("content-length")
    while length is not None and len(body) < int(length):
        part = line.recv(65_536)
        if not part:
            raise EOFError
        body += part
    if length is not None:
        body = body[: int(length)]  # what is behind it answers what was sent behind the request, and may come along with it
    return int(lines[0].split()[1]), body, length is not None and headers.get("connection", "").lower() != "close"


def _send_all(port: int, attacks: list[Attack]) -> list[Outcome]:
    line = Line(port)
    try:
        return [line.send(one) for one in attacks]
    finally:
        line.close()


def fired(port: int, attacks: list[Attack]) -> list[Outcome]:
    """Send all of them over several connections, and return what came back."""
    with ThreadPoolExecutor(SENDERS) as pool:
        parts = pool.map(lambda first: _send_all(port, attacks[first::SENDERS]), range(SENDERS))
        return [one for part in parts for one in part]


def wrong(one: Outcome) -> str | None:
    """Return what is wrong with an answer; None if it is one that a malformed request may get."""
    said = f"{one.attack.name} at {one.attack.target}: {one.status} after {one.seconds:.1f} s: {one.body[:300]!r}"
    if one.status is None:
        return said if one.attack.whole else None
    if one.status >= 500 or one.status < 200 or one.seconds > ANSWER_S:
        return said
    if one.status >= 400:
        if not one.body.startswith(b"{"):
            return said
        told = json.loads(one.body)["error"]
        if (
            set(told) != {"code", "message", "field", "request_id"}
            or "Traceback" in told["message"]
            or "/site-packages" in told["message"]
        ):
            return said
    return None


def document_of(server: ServerProcess) -> dict[str, Any]:
    with urlopen(f"{server.url}/v1/openapi.json", timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def well(server: ServerProcess, token: str, document: dict[str, Any]) -> None:
    """A server that is well answers, writes and reads."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": JSON}
    search = json.dumps({"query": "still here?", "tool_name": "fuzz", "query_id": f"after-{time.monotonic_ns()}"}).encode()
    with urlopen(Request(f"{server.url}/v1/queries", search, headers), timeout=60) as answer:
        assert json.load(answer)["stored"] == 1
    lists = [
        path
        for path, operations in document.items()
        if "get" in operations and not any(one.get("required") for one in operations["get"].get("parameters", ()))
    ]
    assert len(lists) > 20
    reading = [
        Attack("read", path, _request(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n", [f"Authorization: Bearer {token}"], b""))
        for path in ("/readyz", *lists)
    ]
    unreadable = [(one.attack.target, one.body[:600]) for one in _send_all(server.port, reading) if one.status != 200]
    assert not unreadable, "whatever was stored can be read and shown"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the memory of a process is read from /proc")
def test_malformed_uploads_are_answered_in_time_with_no_500_and_bounded_memory(
    kind: str, empty: Callable[[str], str], tmp_path: Path
) -> None:
    luck, count = random.Random(20_260), REQUESTS[kind]
    with serving_alone(tmp_path, store=empty(kind), keys=True) as server:
        token, document = server.key("admin"), document_of(server)
        known = targets(document)
        assert {"/v1/evaluate", "/v1/golden", "/v1/runs?golden=hotel", "/v1/queries", "/v1/feedback"} <= {
            one.path for one in known
        }
        assert all((one.status or 500) < 500 for one in fired(server.port, valid(known, token)))
        before = server.most_memory()
        attacks = [*(heavy(document, token) if kind == "sqlite" else ())]
        # A run that can be read is scored over the whole set, which costs as much as twenty other requests.
        chosen = luck.choices(known, [0.3 if one.path.startswith("/v1/runs") else 1 for one in known], k=count - len(attacks))
        attacks += [attack(luck, target, token) for target in chosen]
        luck.shuffle(attacks)
        assert len(attacks) == count
        outcomes = fired(server.port, attacks)
        faults = [said for said in map(wrong, outcomes) if said is not None]
        grown = server.most_memory() - before
        statuses = Counter(one.status for one in outcomes)
        slowest = max(one.seconds for one in outcomes)
        print(f"{kind}: {count} requests, {dict(statuses)}, slowest {slowest:.1f} s, {before} MB + {grown} MB")
        assert not faults, (
            "\n".join(faults[:20]) + f"\n{len(faults)} in all\n" + server.errors.read_text(encoding="utf-8")[-3_000:]
        )
        assert len(outcomes) == count
        assert sum(statuses[status] for status in (400, 413, 415, 422)) > count / 2, "most of them are malformed"
        assert grown < MOST_GROWTH_MB, f"{grown} MB more than {before} MB"
        well(server, token, document["paths"])
        printed = server.errors.read_text(encoding="utf-8")
        assert "Traceback" not in printed, printed[-3_000:]
        assert server.process.poll() is None
