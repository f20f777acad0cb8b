"""L-1: a process that logs is killed at any moment; what was acknowledged is there, what was lost is counted."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ringtrue.online import QueryLog, losses
from ringtrue.store import Store

KILLS = 50

# One process imports everything once and forks those that are killed: starting Python 50 times would take a minute.
LOGGING = """
import json, os, random, signal, sys, time
from pathlib import Path
from ringtrue.errors import Unreachable
from ringtrue.online import QueryLog, log_folder
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
    time.sleep(moments.uniform(0.01, 0.25))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), (number, status)
print(json.dumps({"kills": kills}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a thing of POSIX")
def test_l1_killed_at_50_random_moments_every_acknowledged_event_is_there_and_the_lost_ones_are_counted(tmp_path: Path) -> None:
    place, out = tmp_path / "store.sqlite", tmp_path / "out"
    out.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOGGING, place, out, str(KILLS)], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"kills": KILLS}
    with Store.open(place) as store:
        with QueryLog(store) as log:  # the next start settles what the last one left
            with log.query("afterwards", tool="check") as q:
                q.answer(["a"])
            assert log.flush(20)
            end = time.monotonic() + 60
            while len(log_files(place)) > 1 and time.monotonic() < end:  # its own stays until it is closed
                time.sleep(0.05)
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
    assert not log_files(place), "nothing is left to settle"


def log_files(place: Path) -> list[Path]:
    return [path for path in place.with_name(place.name + "-log").iterdir() if path.suffix in (".tally", ".spool")]
