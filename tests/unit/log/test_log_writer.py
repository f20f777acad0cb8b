"""The bounded queue, its thread, the spool and the counts."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError, Unreachable
from ringtrue.log import QueryLog, Redactor, living, losses, query_name
from ringtrue.log.capture import weight
from ringtrue.log.figures import SIZE, Losses, Tally
from ringtrue.log.rows import Spool
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
        if self.problem is not None:
            raise self.problem
        self.trail.append(entry)

    def feedback(self, *, project: str, query_ids: Sequence[str], limit: int) -> list[Any]:
        return []

    def audit(
        self, *, project: str, subject: str | None = None, what: str | None = None, since: str | None = None
    ) -> list[AuditEntry]:
        mine = [entry for entry in self.trail[::-1] if entry.project == project and entry.at >= (since or "")]
        return [entry for entry in mine if subject in (None, entry.subject) and what in (None, entry.what)]

    def queries(self, *, project: str, query_ids: Sequence[str]) -> list[Any]:
        return [self.rows[name] for name in query_ids if name in self.rows]

    def check_writable(self) -> None:
        if self.problem is not None:
            raise self.problem

    def close(self) -> None:
        pass


def opened(store: Any, **options: Any) -> QueryLog:
    return QueryLog(store, **options)


def test_events_go_in_batches_and_flush_waits_for_them() -> None:
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


def test_overflow_is_counted_never_blocks_and_never_raises() -> None:
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


def test_memory_of_the_queue_is_not_underestimated() -> None:
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
    log = opened(Memory())
    log._queue.start = lambda: None  # type: ignore[method-assign]  # nothing is written, so that all of it counts
    assert all(map(log.record, held))
    assert used <= log.queued_bytes <= 2.5 * used
    assert weight("x", ("a",) * 10, {}, ()) < weight("x" * 1000, ("a",) * 10, {"bm25": ("a",)}, ())


@pytest.mark.parametrize(
    "poison",
    [
        row(7, flags={"odd": object()}),
        LoggedQuery("eq_7", "pool", "shop", "yesterday"),
        LoggedQuery("eq_7", 7, "shop", NOW),  # type: ignore[arg-type]
        FeedbackEvent("ef_7", "applause", "s", NOW),  # type: ignore[arg-type]
    ],
)
def test_one_row_that_no_database_holds_costs_no_other(tmp_path: Path, poison: Any) -> None:
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
        missing = losses(store)
        assert (missing.refused, sum(missing.reasons.values())) == (1, 1)


@pytest.mark.parametrize(
    "poison",
    [
        row(7, extraction_count=2**70),
        row(7, extraction_count=2**31),  # SQLite holds it, PostgreSQL does not
        row(7, total_latency_ms=10**400),
        row(7, total_latency_ms=-5.0),
        row(7, scores=(10**400,), result_ids=("a",)),
        FeedbackEvent("ef_7", "click", "s", NOW, rank_in_results=2**70),
        FeedbackEvent("ef_7", "click", "s", NOW, rank_in_results=-7),
        LoggedQuery("eq_7", "pool", "shop", "9999-12-31T23:59:59-14:00"),
    ],
)
@pytest.mark.parametrize("away", [False, True])
def test_a_number_or_time_that_no_database_holds_is_refused_and_blocks_nobody(tmp_path: Path, poison: Any, away: bool) -> None:
    with Store.open(tmp_path / "store.sqlite") as inner:
        store = Sometimes(inner)
        store.away = away
        log = opened(store, redact=None, folder=tmp_path / "log")
        for number in range(3):
            log.record(row(number))
        log.record(poison) if isinstance(poison, LoggedQuery) else log.feedback(poison)
        log.record(row(10))
        assert log.flush(10)
        assert (log.counts.refused, log.counts.acknowledged, log.counts.spooled) == (1, 4, 4 if away else 0)
        store.away = False
        _until(lambda: len(inner.queries()) == 4)
        assert log.close()
        assert losses(inner).refused == 1
        assert list((tmp_path / "log").iterdir()) == []


class Sometimes:
    """A real store that can be away."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.away = inner, False

    def __getattr__(self, name: str) -> Any:
        if self.away:
            raise Unreachable("the server went away")
        return getattr(self.inner, name)


def test_numbers_that_are_none_become_unknown_in_the_database_and_in_the_spool(tmp_path: Path) -> None:
    import numpy as np

    odd: Any = {"scores": (np.float32(0.5), float("nan")), "fusion_weights": {"a": float("inf"), "b": np.float64(0.25)}}
    for away in (False, True):
        store = Memory()
        store.problem = Unreachable("gone") if away else None
        log = opened(store, folder=tmp_path / str(away))
        log.record(row(1, result_ids=("a", "b"), total_latency_ms=float("nan"), boost_delta=float("inf"), **odd))
        log.record(row(2, result_ids=("a",), scores=(np.float32(0.5),)))
        assert log.flush(10)
        store.problem = None
        _until(lambda store=store: len(store.rows) == 2)
        log.close()
        found: Any = store.rows["eq_000001"]
        assert (found.total_latency_ms, found.boost_delta, found.scores) == (None, None, ())
        assert found.fusion_weights == {"b": 0.25}
        assert store.rows["eq_000002"].scores == (0.5,)  # type: ignore[union-attr]


@pytest.mark.parametrize("alone", [True, False])
def test_a_row_that_only_the_database_finds_wrong_is_searched_for_and_the_others_are_written(alone: bool) -> None:
    store = Memory()
    log = opened(store)
    good = [] if alone else [row(number) for number in range(60)]
    for one in [*good[:23], LoggedQuery("eq_x", "poison", "shop", NOW), *good[23:]]:
        log.record(one)
    assert log.flush(10)
    assert set(store.rows) == {one.query_id for one in good}
    assert (log.counts.refused, log.counts.written) == (1, len(good))
    assert log.close()
    assert sum(entry.detail["refused"] for entry in store.trail) == 1


def test_a_database_that_takes_no_writes_refuses_no_row(tmp_path: Path) -> None:
    store = Memory()
    store.problem = InputError("store is read-only; check the permissions")  # as a row would be complained of
    log = opened(store, folder=tmp_path)
    for number in range(20):
        log.record(row(number))
    assert log.flush(10)
    assert (log.counts.refused, log.counts.spooled) == (0, 20)
    store.problem = None
    _until(lambda: len(store.rows) == 20)
    assert log.close()


@pytest.mark.parametrize("next_start", [False, True])
def test_a_spooled_row_that_the_database_refuses_does_not_hold_up_those_behind_it(tmp_path: Path, next_start: bool) -> None:
    store = Memory()
    store.problem = Unreachable("gone")
    log = opened(store, folder=tmp_path, batch=5)
    for number in range(12):
        log.record(row(number))
    log.record(LoggedQuery("eq_x", "poison", "shop", NOW))
    for number in range(20, 32):
        log.record(row(number))
    assert log.flush(10)
    if next_start:
        log.close()
        log = opened(store, folder=tmp_path, batch=5)
        store.problem = None
        log.record(row(99))
        assert log.flush(10)
        _until(lambda: bool(log.recovered))
        assert [(one.replayed, one.counts.refused, one.counts.lost) for one in log.recovered] == [(24, 1, 0)]
    else:
        store.problem = None
        _until(lambda: len(store.rows) == 24)
        _until(lambda: log.counts.refused == 1)
        counts = log.counts
        assert (counts.spooled, counts.unspooled, counts.acknowledged, counts.waiting) == (25, 1, 24, 0)
        assert log.flush(1)
    assert log.close()
    assert set(store.rows) >= {row(number).query_id for number in (*range(12), *range(20, 32))}
    assert sum(entry.detail.get("refused", 0) for entry in store.trail) == 1
    assert list(tmp_path.iterdir()) == []


def _damage(spool: Path) -> None:
    lines = spool.read_text(encoding="utf-8").splitlines()
    lines[2] = lines[2][:20]  # by a disk
    lines[3] = lines[3][:-1] + ', "mood": "good"}'  # by a version that knows more
    spool.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("next_start", [False, True])
def test_damaged_lines_of_a_spool_are_counted_as_lost(tmp_path: Path, next_start: bool) -> None:
    store = Memory()
    store.problem = Unreachable("gone")
    log = opened(store, folder=tmp_path)
    for number in range(5):
        log.record(row(number))
    assert log.flush(10)
    if next_start:
        log.close()
    [spool] = tmp_path.glob("*.spool")
    _damage(spool)
    if next_start:
        log = opened(store, folder=tmp_path)
        store.problem = None
        log.record(row(9))
        _until(lambda: bool(log.recovered))
        assert [(one.replayed, one.counts.lost) for one in log.recovered] == [(3, 2)]
    else:
        log._spool = Spool(spool, limit=10**6)  # the file has another size now
        store.problem = None
        _until(lambda: log.counts.lost == 2)
        assert log.counts.waiting == 0
    log.close()
    assert list(tmp_path.iterdir()) == []
    assert "2 lines of the spool" in (log.problem or "")
    assert {"eq_000000", "eq_000001", "eq_000004"} <= set(store.rows)
    [entry] = store.trail
    assert entry.detail["lost"] == 2


def test_losses_are_charged_to_the_project_whose_log_lost_them(tmp_path: Path) -> None:
    killed = Tally(tmp_path, project="alpha")
    killed.add("accepted", 7)
    killed.close()  # as the end of its process would
    assert [[one.accepted for one in some] for some in living(tmp_path, project="alpha")] == [[], [7]]
    assert living(tmp_path, project="beta") == ([], [])
    store = Memory()
    with opened(store, project="beta", folder=tmp_path) as log:
        log.record(row(1, project="beta"))
        _until(lambda: bool(log.recovered))
        assert [(one.project, one.counts.lost) for one in log.recovered] == [("alpha", 7)]
    assert [(entry.project, entry.detail["lost"]) for entry in store.trail] == [("alpha", 7)]


@pytest.mark.parametrize("next_start", [False, True])
def test_a_user_who_was_deleted_meanwhile_does_not_come_back_from_the_spool(tmp_path: Path, next_start: bool) -> None:
    from ringtrue.store import USER_DELETED, user_mark

    store = Memory()
    store.problem = Unreachable("gone")
    log = opened(store, folder=tmp_path)
    log.record(row(1, user_id="u1", session_id="s1"))
    log.record(row(2, user_id="u2", session_id="s2"))
    log.record(LoggedQuery("eq_000004", "again", "shop", "2026-03-03T00:00:00Z", user_id="u1"))  # after the deletion
    log.feedback(FeedbackEvent("ef_1", "click", "s1", NOW, item_id="a"))  # of the user, by the session
    log.feedback(FeedbackEvent("ef_2", "click", "s2", NOW, item_id="a"))
    assert log.flush(10)
    for day in ("01", "02"):
        at = f"2026-03-{day}T13:00:00.000000Z"
        store.trail.append(AuditEntry(at, "store", USER_DELETED, user_mark("u1", "default")))
    if next_start:
        log.close()
        log = opened(store, folder=tmp_path)
    store.problem = None
    log.record(row(9))
    if next_start:
        _until(lambda: bool(log.recovered))
        assert [(one.replayed, one.counts.forgotten, one.counts.lost) for one in log.recovered] == [(3, 2, 0)]
    else:
        _until(lambda: log.counts.forgotten == 2)
        assert (log.counts.lost, log.counts.waiting) == (0, 0)
    assert log.close()
    assert set(store.rows) == {"eq_000002", "eq_000004", "eq_000009", "ef_2"}
    told = [entry.detail for entry in store.trail if entry.what != USER_DELETED]
    assert [(detail["lost"], detail["forgotten"]) for detail in told] == [(0, 2)]
    assert list(tmp_path.iterdir()) == []


def test_a_user_who_was_deleted_in_one_project_comes_back_from_the_spool_of_another(tmp_path: Path) -> None:
    from ringtrue.store import USER_DELETED, user_mark

    store = Memory()
    store.problem = Unreachable("gone")
    log = opened(store, folder=tmp_path, project="other")
    log.record(row(3, user_id="u1", session_id="s3"))
    assert log.flush(10)
    store.trail.append(AuditEntry("2026-03-02T13:00:00.000000Z", "store", USER_DELETED, user_mark("u1", "default")))
    store.problem = None
    _until(lambda: set(store.rows) == {"eq_000003"})
    assert log.close()
    assert log.counts.forgotten == 0


@pytest.mark.parametrize("given", ["x", {"a": 1}, None, 7, row(1, result_ids=None), row(2, channel_contributions=3)])
def test_whatever_is_recorded_nothing_is_raised_and_it_is_refused_with_a_reason(given: Any) -> None:
    store = Memory()
    log = opened(store)
    assert not log.record(given)
    assert not log.feedback(given)
    log.record(row(9))
    assert log.flush(10)
    reason = "not storable" if isinstance(given, LoggedQuery) else "no record"
    assert (log.counts.refused, log.counts.reasons) == (2, {reason: 2})
    assert set(store.rows) == {"eq_000009"}
    log.close()
    assert [entry.detail["reasons"] for entry in store.trail] == [{reason: 2}]


def test_an_event_that_names_no_project_is_of_the_logs_and_one_that_names_another_is_refused() -> None:
    store = Memory()
    log = opened(store, project="shop")
    assert log.feedback(FeedbackEvent("ef_1", "click", "s", NOW))
    assert log.feedback(FeedbackEvent("ef_2", "click", "s", NOW, project="shop"))
    assert not log.feedback(FeedbackEvent("ef_3", "click", "s", NOW, project="bank"))
    assert log.record(row(1))
    assert not log.record(row(2, project="bank"))
    assert log.flush(10)
    assert {name: one.project for name, one in store.rows.items()} == {"ef_1": "shop", "ef_2": "shop", "eq_000001": "shop"}
    assert log.counts.reasons == {"another project": 2}
    assert log.problem == "eq_000002: it is of 'bank', the log of 'shop'"
    log.close()
    [entry] = store.trail
    assert (entry.project, entry.detail["refused"], entry.detail["reasons"]) == ("shop", 2, {"another project": 2})


def test_refused_events_are_counted_by_reason() -> None:
    store = Memory()
    log = opened(store)
    log.record(row(1, total_latency_ms=-5.0))
    log.record(row(2, total_latency_ms=-6.0))
    log.record(LoggedQuery("eq_x", "poison", "shop", NOW))
    log.record(row(3))
    with log.query("pool", tool="shop"):
        pass
    assert log.problem == "shop: the search ended without answer(hits)"
    with log.query("pool", tool="shop", results=lambda found: found["hits"]) as q:
        q.answer({})
    assert log.flush(10)
    assert log.problem == "eq_x: the database refuses the event: InputError"
    wanted = {"no answer": 1, "unreadable answer": 1, "not storable": 2, "refused by the database": 1}
    assert log.counts.reasons == wanted
    assert log.close()
    told: Counter[str] = Counter()
    for entry in store.trail:
        told.update(entry.detail["reasons"])
    assert told == wanted
    assert sum(entry.detail["refused"] for entry in store.trail) == 5


def test_the_reasons_outlive_a_process_that_was_killed(tmp_path: Path) -> None:
    killed = Tally(tmp_path, project="default")
    killed.add("accepted", 3)
    killed.add("no answer", 2)
    killed.add("no record")
    killed.tell(Losses(reasons={"no answer": 1}))
    killed.close()  # as the end of its process would
    store = Memory()
    with opened(store, folder=tmp_path) as log:
        log.record(row(1))
        _until(lambda: bool(log.recovered))
    [entry] = store.trail
    assert (entry.detail["refused"], entry.detail["reasons"]) == (2, {"no answer": 1, "no record": 1})


def test_what_cannot_be_redacted_is_refused_not_stored() -> None:
    def broken(text: str) -> str:
        raise RuntimeError(f"cannot read {text}")

    store = Memory()
    log = opened(store, redact=broken)
    log.record(row())
    assert log.flush(10)
    assert store.rows == {}
    assert log.counts.reasons == {"not redacted": 1}
    assert log.problem == "eq_000000: the event is not redacted: RuntimeError"
    log.close()


def test_nothing_unredacted_reaches_database_or_spool(tmp_path: Path) -> None:
    store = Memory()
    store.problem = Unreachable("gone")
    log = opened(store, folder=tmp_path, redact=Redactor())
    log.record(LoggedQuery("eq_1", "mail ada@example.org", "shop", NOW))
    assert log.flush(10)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"[email]" in written
    assert b"example.org" not in written
    log.close()


def test_while_the_database_is_away_events_are_spooled_and_then_brought_in(tmp_path: Path) -> None:
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


def test_a_spool_of_a_closed_log_is_brought_in_by_the_next(tmp_path: Path) -> None:
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
        assert [(one.replayed, one.counts.lost) for one in log.recovered] == [(1, 0)]
    assert set(store.rows) == {"eq_000001", "eq_000002"}
    assert store.trail == []


def test_a_database_that_hangs_at_the_end_does_not_hold_the_program_and_loses_nothing(tmp_path: Path) -> None:
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


def test_a_full_spool_leaves_events_in_the_queue_and_then_drops_and_counts(tmp_path: Path) -> None:
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


def _until(done: Any, seconds: float = 60.0) -> None:
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
    assert again.peek(10).damaged  # unless somebody knows that the batch was never acknowledged
    found = again.peek(10, cut=True)
    assert (found.rows, found.damaged) == ([row(1), row(2)], 0)
    again.done(found.used)
    assert not again
    assert not spool.path.exists()
    with pytest.raises(OSError, match="limit"):
        again.append([row(number) for number in range(1000)])
    assert not again


def test_the_empty_spool_of_a_killed_process_is_removed_and_its_events_are_counted_as_lost(tmp_path: Path) -> None:
    killed = Tally(tmp_path, project="default")
    killed.add("accepted", 5)
    killed.begin({"kind": "query", "id": "eq_1", "project": "default", "at": NOW, "count": 5, "size": 0})
    assert killed.path is not None
    killed.path.with_suffix(".spool").touch()  # created, and nothing written yet
    killed.close()  # as the end of its process would
    store = Memory()
    with opened(store, folder=tmp_path) as log:
        log.record(row(1))
        _until(lambda: bool(log.recovered))
        assert [(one.replayed, one.counts.lost) for one in log.recovered] == [(0, 5)]
    assert list(tmp_path.iterdir()) == []
    assert [entry.detail["lost"] for entry in store.trail] == [5]


def test_files_that_a_killed_process_had_only_begun_are_removed_and_those_of_living_ones_are_kept(tmp_path: Path) -> None:
    (tmp_path / "1-aaaaaaaaaaaa.spool").touch()  # older versions left such files without their counts
    (tmp_path / "2-bbbbbbbbbbbb.new").write_bytes(bytes(SIZE))
    os.utime(tmp_path / "2-bbbbbbbbbbbb.new", (0, 0))
    (tmp_path / "3-cccccccccccc.new").write_bytes(bytes(SIZE))  # perhaps of a process that starts at this moment
    alive = Tally(tmp_path, project="default")
    assert alive.path is not None
    spool = alive.path.with_suffix(".spool")
    spool.touch()
    with opened(Memory(), folder=tmp_path) as log:
        log.record(row(1))
        _until(lambda: not (tmp_path / "2-bbbbbbbbbbbb.new").exists())
    assert {path.name for path in tmp_path.iterdir()} == {alive.path.name, spool.name, "3-cccccccccccc.new"}
    alive.close(remove=True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_spool_without_room_for_its_first_batch_leaves_no_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "x.spool", limit=10_000)
    spool.path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        spool.append([row(1)])
    assert list(tmp_path.iterdir()) == []
    spool.append([row(1)])
    assert spool.peek(10).rows == [row(1)]


def test_a_log_that_is_closed_drops_and_counts() -> None:
    log = opened(Memory())
    assert log.close()
    assert log.close()
    assert not log.record(row())
    assert log.counts.dropped == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is a thing of POSIX")
def test_a_forked_child_writes_its_own_events_and_not_its_parents(tmp_path: Path) -> None:
    code = f"""
import os, sys
from ringtrue.log import QueryLog
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


def test_events_are_flushed_at_the_end_of_a_program_and_of_a_multiprocessing_child(tmp_path: Path) -> None:
    place = str(tmp_path / "store.sqlite")
    code = f"from ringtrue.log import QueryLog\nlog = QueryLog({place!r})\n"
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
    from ringtrue.answers import StageLogged
    from ringtrue.log import line_of, row_of

    full = LoggedQuery(
        "eq_1",
        "pöol",
        "shop",
        NOW,
        project="p",
        intent="find",
        mode="deep",
        session_id="s",
        user_id="u",
        result_ids=("a", "b"),
        scores=(0.5, 0.25),
        channel_contributions={"bm25": ("a",)},
        total_latency_ms=12.5,
        stage_latency_ms={"candidate": 3.0},
        stages=(StageLogged("candidate", 2, 1, 0.5),),
        fusion_weights={"bm25": 1.0},
        quality_proxy_score=0.5,
        trace_id="t",
        prompt_id="pr",
        retriever="r",
        fallback="why",
        degraded=True,
        mode_override="m",
        token_pressure_level="high",
        token_pressure_ratio=0.5,
        boost_delta=0.1,
        extraction_count=3,
        flags={"f": {"x": [1]}},
        is_eval_corpus=True,
        eval_category="known",
    )
    event = FeedbackEvent(
        "ef_1",
        "click",
        "s",
        NOW,
        project="p",
        query_id="eq_1",
        item_id="a",
        rank_in_results=2,
        actor="person",
        user_id="u",
        metadata={"x": 1},
    )
    for one in (full, event):
        assert row_of(json.loads(line_of(one))) == one
