"""A process that logs is killed at any moment: acknowledged events are in the store, the others are counted as lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ringtrue.log import QueryLog, losses
from ringtrue.store import Store

KILLS = 50
LONG = 120
"""Seconds that only a broken log takes, however busy the machine is."""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")

# One process imports everything once and forks those that are killed: starting Python 50 times would take a minute.
# The moment of a kill is a number of searches and a little time, so that a busy machine kills at the same places.
LOGGING = """
import json, os, random, signal, sys, time
from pathlib import Path
from ringtrue.errors import Unreachable
from ringtrue.log import QueryLog, log_folder
from ringtrue.store import FeedbackEvent, Store
import ringtrue.store.store

place, out, kills = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
moments = random.Random(11)

class Flaky:
    '''The store as it is on a bad day: now and then it does not answer, or only after it has written.'''

    def __init__(self, seed):
        self.inner, self.luck = Store.open(place), random.Random(seed)

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def add_queries(self, rows):
        fate = self.luck.random()
        if fate < 0.25:
            raise Unreachable("gone")
        done = self.inner.add_queries(rows)
        if fate > 0.9:
            raise Unreachable("gone after it had written")
        return done

def work(number):
    log = QueryLog(Flaky(number), folder=log_folder(place), batch=7)
    sent, known = (os.open(out / f"{name}-{number}", os.O_CREAT | os.O_WRONLY | os.O_APPEND) for name in ("sent", "known"))
    hits = [(f"document-{place}", 1 - place / 10) for place in range(10)]
    while True:
        names = []
        for _ in range(5):
            with log.query(f"query of {number}", tool="shop", session_id=f"s{number}") as q:
                q.answer(hits)
            os.write(sent, f"{q.query_id}\\n".encode())
            names.append(q.query_id)
        if log.flush(5):
            os.write(known, "".join(f"{name}\\n" for name in names).encode())

Store.open(place).close()
for number in range(kills):
    child = os.fork()
    if child == 0:
        try:
            work(number)
        finally:
            os._exit(1)
    searches, progress = moments.randrange(30), out / f"sent-{number}"
    while not (progress.exists() and progress.read_bytes().count(b"\\n") >= searches):
        assert os.waitpid(child, os.WNOHANG) == (0, 0), number
        time.sleep(0.001)
    time.sleep(moments.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), (number, status)
print(json.dumps({"kills": kills}))
"""


def test_acknowledged_events_survive_50_random_kills_and_the_others_are_counted_as_lost(tmp_path: Path) -> None:
    place, out = tmp_path / "store.sqlite", tmp_path / "out"
    out.mkdir()
    done = run(LOGGING, place, out, KILLS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"kills": KILLS}
    with Store.open(place) as store:
        settle(store, place)
        rows = [row for row in store.queries() if row.tool_name == "shop"]
        missing = losses(store)
    stored = {row.query_id for row in rows}
    sent = [name for file in out.glob("sent-*") for name in file.read_text().split()]
    known = [name for file in out.glob("known-*") for name in file.read_text().split()]
    assert len(known) > KILLS  # the test would show nothing otherwise
    assert len(stored) == len(rows)
    assert set(known) <= stored
    # No half rows.
    assert all(len(row.result_ids) == len(row.scores) == 10 for row in rows)
    assert all(row.query == f"query of {(row.session_id or '')[1:]}" and row.total_latency_ms is not None for row in rows)
    # Every event is in the log or counted as lost; of each process one may have been accepted and not yet noted by this test.
    assert missing.dropped == missing.refused == 0
    assert missing.lost > 0
    assert len(sent) <= len(stored) + missing.lost <= len(sent) + KILLS


# Killed between creating the spool and writing its first batch.
SPOOLING = """
import os, signal, sys
from pathlib import Path
from ringtrue.errors import Unreachable
from ringtrue.log import QueryLog, log_folder
from ringtrue.store import LoggedQuery

create = os.open

def create_and_die(path, *options):
    file = create(path, *options)
    if str(path).endswith(".spool"):
        os.kill(os.getpid(), signal.SIGKILL)
    return file

class Away:
    def add_queries(self, rows):
        raise Unreachable("gone")

os.open = create_and_die
log = QueryLog(Away(), folder=log_folder(Path(sys.argv[1])))
for number in range(3):
    log.record(LoggedQuery(f"eq_{number}", "pool", "shop", "2026-03-01T12:00:00Z"))
log.flush()
"""


def test_a_kill_between_creating_and_writing_the_spool_leaves_nothing_behind(tmp_path: Path) -> None:
    place = tmp_path / "store.sqlite"
    done = run(SPOOLING, place)
    assert done.returncode == -signal.SIGKILL, done.stderr
    [spool] = (path for path in log_files(place) if path.suffix == ".spool")
    assert spool.stat().st_size == 0
    with Store.open(place) as store:
        settle(store, place)
        assert [row.tool_name for row in store.queries()] == ["check"]
        assert losses(store).lost == 3


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONG)


def settle(store: Store, place: Path) -> None:
    """Log a search: the next log counts what became of the events of killed ones."""
    with QueryLog(store) as log:
        with log.query("afterwards", tool="check") as q:
            q.answer(["a"])
        assert log.flush(LONG)
        end = time.monotonic() + LONG
        while len(log_files(place)) > 1 and time.monotonic() < end:  # its own file stays until it is closed
            time.sleep(0.05)
    assert not log_files(place), "files of killed processes are left"


def log_files(place: Path) -> list[Path]:
    """Return the files of logs, without those that a kill left nameless: they are removed when they are an hour old."""
    return [path for path in place.with_name(place.name + "-log").iterdir() if path.suffix != ".new"]
