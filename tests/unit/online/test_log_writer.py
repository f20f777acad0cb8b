"""L-1: the bounded queue, its thread, the spool and the counts."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError, Unreachable
from ringtrue.online import QueryLog, Redactor, losses, query_name
from ringtrue.online.spool import Spool
from ringtrue.online.weight import answer_weight, weight
from ringtrue.store import AuditEntry, FeedbackEvent, LoggedQuery, Store

NOW = "2026-03-01T12:00:00.000000Z"


def row(number: int = 0, **fields: Any) -> LoggedQuery:
    return LoggedQuery(f"eq_{number:06}", f"pool {number}", "shop", NOW, **fields)


class Memory:
    """A store in memory that can be told to stall or to fail."""

    def __init__(self) -> None:
        self.rows: dict[str, LoggedQuery | FeedbackEvent] = {}
        self.trail: list[AuditEntry] = []
        self.batches: list[int] = []
        self.problem: Exception | None = None
        self.open = threading.Event()
        self.open.set()

    def add_queries(self, rows: Sequence[LoggedQuery]) -> int:
        self.open.wait(30)
        if self.problem is not None:
            raise self.problem
        for one in rows:
            if "poison" in one.query:
                raise InputError("a row breaks a rule of its table")
        self.batches.append(len(rows))
        self.rows |= {one.query_id: one for one in rows}
        return len(rows)

    def add_feedback(self, rows: Sequence[FeedbackEvent]) -> int:
        if self.problem is not None:
            raise self.problem
        self.rows |= {one.event_id: one for one in rows}
        return len(rows)

    def add_audit(self, entry: AuditEntry) -> None:
        self.trail.append(entry)

    def audit(self, *, project: str, subject: str) -> list[AuditEntry]:
        return [entry for entry in self.trail if entry.subject == subject]

    def queries(self, *, project: str, query_ids: Sequence[str]) -> list[Any]:
        return [self.rows[name] for name in query_ids if name in self.rows]

    def close(self) -> None:
        pass


def opened(store: Any, **options: Any) -> QueryLog:
    return QueryLog(store, **options)


def test_l1_events_go_in_batches_and_flush_waits_for_them() -> None:
    store = Memory()
    log = opened(store, batch=100)
    for number in range(250):
        assert log.record(row(number))
    assert log.flush(10)
    assert len(store.rows) == 250
    assert max(store.batches) <= 100
    assert log.counts.written == log.counts.acknowledged == 250
    assert log.queued_bytes == 0
    assert log.close()


def test_l1_overflow_is_counted_never_blocks_and_never_raises() -> None:
    store = Memory()
    store.open.clear()  # the database hangs
    log = opened(store, queue_bytes=200_000, batch=10)
    taken = [log.record(row(number)) for number in range(1000)]
    counts = log.counts
    assert 0 < counts.dropped < 1000
    assert counts.accepted + counts.dropped == 1000
    assert taken.count(False) == counts.dropped
    assert log.queued_bytes <= 200_000
    assert not log.flush(0.05)
    store.open.set()
    assert log.flush(10)
    assert len(store.rows) == counts.accepted
    log.record(row(5000))
    assert log.flush(10)
    log.close()
    assert sum(entry.detail["dropped"] for entry in store.trail) == counts.dropped  # loss is told


def test_l1_memory_of_the_queue_is_not_underestimated() -> None:
    def events(count: int) -> list[LoggedQuery]:
        return [
            LoggedQuery(
                query_name("x"), f"quiet hotel {number} " * 3, "shop", f"2026-03-01T12:00:00.{number:06}Z",
                session_id=f"session-{number}", result_ids=tuple(f"document-{number}-{place}" for place in range(10)),
                scores=tuple(1.0 - place / 1000 - number for place in range(10)),
                channel_contributions={"bm25": tuple(f"{place}" for place in range(3))}, flags={"rerank": f"on {number}"},
            )
            for number in range(count)
        ]  # fmt: skip

    events(10)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = events(500)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    estimate = sum(map(weight, held))
    assert used <= estimate <= 2.5 * used
    assert answer_weight("x", ("a",) * 10, {}) < answer_weight("x" * 1000, ("a",) * 10, {"bm25": ("a",)})


@pytest.mark.parametrize(
    "poison",
    [
        row(7, flags={"odd": object()}),
        LoggedQuery("eq_7", "pool", "shop", "yesterday"),
        LoggedQuery("eq_7", 7, "shop", NOW),  # type: ignore[arg-type]
        FeedbackEvent("ef_7", "applause", "s", NOW),  # type: ignore[arg-type]
    ],
)
def test_l1_one_row_that_no_database_holds_costs_no_other(tmp_path: Path, poison: Any) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        log = opened(store, redact=None)
        for number in range(5):
            log.record(row(number))
        log.record(poison) if isinstance(poison, LoggedQuery) else log.feedback(poison)
        for number in range(10, 15):
            log.record(row(number))
        assert log.flush(10)
        assert len(store.queries()) == 10
        assert (log.counts.refused, log.counts.written, log.counts.spooled) == (1, 10, 0)
        log.close()
        assert losses(store).refused == 1


def test_l3_what_cannot_be_redacted_is_refused_not_stored() -> None:
    def broken(text: str) -> str:
        raise RuntimeError(f"cannot read {text}")

    store = Memory()
    log = opened(store, redact=broken)
    log.record(row())
    assert log.flush(10)
    assert store.rows == {}
    assert log.counts.refused == 1
    assert log.problem
    assert "pool" not in log.problem
    log.close()


def test_l3_nothing_unredacted_reaches_database_or_spool(tmp_path: Path) -> None:
    store = Memory()
    store.problem = Unreachable("gone")
    log = opened(store, folder=tmp_path, redact=Redactor())
    log.record(LoggedQuery("eq_1", "mail ada@example.org", "shop", NOW))
    assert log.flush(10)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"[email]" in written
    assert b"example.org" not in written
    log.close()


def test_l1_while_the_database_is_away_events_are_spooled_and_then_brought_in(tmp_path: Path) -> None:
    store = Memory()
    store.problem = Unreachable("the server went away")
    log = opened(store, folder=tmp_path)
    for number in range(50):
        log.record(row(number))
    log.feedback(FeedbackEvent("ef_1", "click", "s", NOW, metadata={"a": 1}))
    assert log.flush(10)
    assert (log.counts.spooled, log.counts.written) == (51, 0)
    assert log.problem == "the server went away"
    store.problem = None
    _until(lambda: len(store.rows) == 51)
    log.record(row(99))
    assert log.flush(10)
    assert log.counts.written == 1
    assert store.rows["eq_000007"] == row(7)
    assert log.close()
    assert list(tmp_path.iterdir()) == []


def test_l1_a_spool_of_a_closed_log_is_brought_in_by_the_next(tmp_path: Path) -> None:
    store = Memory()
    store.problem = Unreachable("gone")
    with opened(store, folder=tmp_path) as log:
        log.record(row(1))
    assert store.rows == {}
    store.problem = None
    with opened(store, folder=tmp_path) as log:
        log.record(row(2))
        assert log.flush(10)
        _until(lambda: bool(log.recovered))
        assert [(one.replayed, one.lost) for one in log.recovered] == [(1, 0)]
    assert set(store.rows) == {"eq_000001", "eq_000002"}
    assert store.trail == []


def test_l1_a_database_that_hangs_at_the_end_does_not_hold_the_program_and_loses_nothing(tmp_path: Path) -> None:
    store = Memory()
    store.open.clear()
    log = opened(store, folder=tmp_path, batch=3)
    for number in range(10):
        log.record(row(number))
    assert log.close(timeout=0.3)
    assert log.counts.waiting == 0
    store.open.set()
    again = Memory()
    with opened(again, folder=tmp_path) as log:
        log.record(row(50))
        log.flush(10)
    # The hung process is this one and lives: its lock is gone with its log, so the next start brings the spool in.
    assert {f"eq_{number:06}" for number in range(10)} <= set(again.rows)


def test_l1_a_full_spool_leaves_events_in_the_queue_and_then_drops_and_counts(tmp_path: Path) -> None:
    store = Memory()
    store.problem = Unreachable("gone")
    log = opened(store, folder=tmp_path, spool_bytes=3000, queue_bytes=20_000, batch=2)
    for number in range(200):
        log.record(row(number))
    counts = log.counts
    assert counts.dropped > 0
    store.problem = None
    assert log.flush(20)
    _until(lambda: len(store.rows) == counts.accepted)
    assert log.close()
    assert sum(entry.detail["dropped"] for entry in store.trail) == counts.dropped


def _until(done: Any, seconds: float = 15.0) -> None:
    import time

    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_spool_gives_back_whole_batches_only(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "x.spool", limit=10_000)
    spool.append([row(1), row(2)])
    with spool.path.open("ab") as file:
        file.write(b'{"record": "query", "query_id": "eq_3", "que')  # the process was killed here
    again = Spool(spool.path, limit=10_000)
    rows, used = again.peek(10)
    assert rows == [row(1), row(2)]
    again.done(used)
    assert not again
    assert not spool.path.exists()
    with pytest.raises(OSError, match="limit"):
        again.append([row(number) for number in range(1000)])
    assert not again


def test_l1_a_log_that_is_closed_drops_and_counts() -> None:
    log = opened(Memory())
    assert log.close()
    assert log.close()
    assert not log.record(row())
    assert log.counts.dropped == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is a thing of POSIX")
def test_l1_a_forked_child_writes_its_own_events_and_not_its_parents(tmp_path: Path) -> None:
    code = f"""
import os, sys
from ringtrue.online import QueryLog
log = QueryLog({str(tmp_path / "store.sqlite")!r})
def ask(text):
    with log.query(text, tool="shop") as q:
        q.answer(["a"])
for number in range(20):
    ask(f"parent {{number}}")
child = os.fork()
if child == 0:
    for number in range(20):
        ask(f"child {{number}}")
    assert log.flush(20)
    os._exit(0 if log.counts.written == 20 else 1)
ask("parent last")
assert os.waitpid(child, 0)[1] == 0
assert log.flush(20)
assert log.counts.written == 21, log.counts
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    with Store.open(tmp_path / "store.sqlite") as store:
        asked = sorted(query.query for query in store.queries())
    assert len(asked) == len(set(asked)) == 41


def _in_a_pool(place: str) -> None:
    log = QueryLog(place)
    with log.query(f"from {os.getpid()}", tool="pool") as q:
        q.answer(["a"])


def test_l1_events_are_flushed_at_the_end_of_a_program_and_of_a_multiprocessing_child(tmp_path: Path) -> None:
    place = str(tmp_path / "store.sqlite")
    code = f"from ringtrue.online import QueryLog\nlog = QueryLog({place!r})\n"
    code += "with log.query('last words', tool='shop') as q:\n    q.answer(['a'])\n"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_in_a_pool, args=(place,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    with Store.open(place) as store:
        assert sorted(query.tool_name for query in store.queries()) == ["pool", "shop"]
    assert not list((tmp_path / "store.sqlite-log").glob("*"))


def test_a_line_and_its_record_are_the_same() -> None:
    from ringtrue.online import line_of, row_of
    from ringtrue.store import StageFigure

    full = LoggedQuery(
        "eq_1", "pöol", "shop", NOW, "p", "find", "deep", "s", "u", ("a", "b"), (0.5, 0.25), {"bm25": ("a",)}, 12.5,
        {"candidate": 3.0}, (StageFigure("candidate", 2, 1, 0.5),), {"bm25": 1.0}, 0.5, "t", "pr", "r", "why", True, "m",
        "high", 0.5, 0.1, 3, {"f": {"x": [1]}}, True, "known",
    )  # fmt: skip
    event = FeedbackEvent("ef_1", "click", "s", NOW, "p", "eq_1", "a", 2, "person", "u", {"x": 1})
    for one in (full, event):
        assert row_of(json.loads(line_of(one))) == one
