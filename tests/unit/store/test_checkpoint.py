"""W-3: what is committed reaches SQLite's file without a commit having to wait for it."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.store import LoggedQuery, Store
from ringtrue.store import checkpoint as room
from stores import kind as kind
from stores import url as url

SELDOM = 2 * room.WAL_BYTES // room.PAGE_BYTES
AT = "2026-03-01T12:00:00.000000Z"


def rows(first: int, count: int) -> list[LoggedQuery]:
    return [LoggedQuery(f"eq_{number}", f"pool {number} " + "x" * 500, "test", AT) for number in range(first, first + count)]


def in_the_file(file: Path) -> int:
    """Count what the file itself holds, without its log; 0 while half of it is being moved there."""
    with closing(sqlite3.connect(f"file:{file}?immutable=1", uri=True)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM eval_queries").fetchone()[0])
        except sqlite3.DatabaseError:
            return 0


def automatic(store: Store) -> int:
    with store._reading() as connection:
        return int(connection.exec_driver_sql("PRAGMA wal_autocheckpoint").scalar_one())


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_thread_moves_what_was_committed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "EVERY_S", 0.01)
    monkeypatch.setattr(room, "FLUSHED_S", 0.01)
    with Store.open(url) as store:
        file = store.address.sqlite
        assert file is not None
        store.add_queries(rows(0, 10))
        with store.checkpoints_beside():
            assert automatic(store) == SELDOM
            store.add_queries(rows(10, 1000))
            until = time.monotonic() + 30
            while in_the_file(file) < 1010 and time.monotonic() < until:
                time.sleep(0.01)
            assert in_the_file(file) == 1010
        assert automatic(store) > 0
        assert len(store.queries()) == 1010


@pytest.mark.parametrize("kind", ["sqlite"])
def test_those_who_leave_it_to_another_process_move_nothing(url: str) -> None:
    with Store.open(url) as store:
        file = store.address.sqlite
        assert file is not None
        with store.checkpoints_elsewhere():
            assert automatic(store) == SELDOM
            store.add_queries(rows(0, 5_000))  # more than a thousand pages, at which SQLite would begin
            assert in_the_file(file) == 0
            with pytest.raises(InputError, match="use the store of all"):
                store.only("shop").checkpoints_elsewhere()
        assert automatic(store) > 0
        assert len(store.queries()) == 5_000


def test_a_server_whose_writer_makes_checkpoints_makes_none_itself(tmp_path: Path) -> None:
    from ringtrue.service import Settings
    from ringtrue.service.context import Service

    for writer, made in (("process", SELDOM), ("thread", 1_000)):
        service = Service(Settings(store=str(tmp_path / "store.sqlite"), writer=writer))  # type: ignore[arg-type]
        assert automatic(service.store) == made
        service._kept.close()
        service.store.close()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_its_log_does_not_grow_for_ever_under_a_steady_load(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "EVERY_S", 0.005)
    monkeypatch.setattr(room, "FLUSHED_S", 0.005)
    with Store.open(url) as store, store.checkpoints_beside():
        file = store.address.sqlite
        assert file is not None
        log = file.with_name(file.name + "-wal")
        # Beginning anew, it is written from its start; without that every commit would add to it.
        sizes, until = [0], time.monotonic() + 60
        while sizes.count(sizes[-1]) < 3 and time.monotonic() < until:
            store.add_queries(rows(len(sizes) * 20, 20))
            time.sleep(0.004)
            sizes.append(log.stat().st_size)
        assert sizes.count(sizes[-1]) == 3
        assert len(store.queries()) == (len(sizes) - 1) * 20


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_file_that_cannot_be_moved_to_is_tried_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "EVERY_S", 0.01)
    monkeypatch.setattr(room, "FLUSHED_S", 0.01)
    tries = []
    connect = sqlite3.connect

    def sometimes(*arguments: object, **more: object) -> sqlite3.Connection:
        tries.append(1)
        if len(tries) < 3:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(*arguments, **more)  # type: ignore[arg-type]

    with Store.open(url) as store:
        file = store.address.sqlite
        assert file is not None
        monkeypatch.setattr(room.sqlite3, "connect", sometimes)
        with store.checkpoints_beside():
            until = time.monotonic() + 30
            while len(tries) < 4 and time.monotonic() < until:
                time.sleep(0.01)
        monkeypatch.setattr(room.sqlite3, "connect", connect)
        assert len(tries) >= 4


def test_it_is_for_the_store_of_all_and_changes_nothing_on_postgresql(url: str, kind: str) -> None:
    with Store.open(url) as store:
        with store.checkpoints_beside():
            store.add_queries(rows(0, 3))
        assert len(store.queries()) == 3
        with pytest.raises(InputError):
            store.only("shop").checkpoints_beside()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_between_two_checkpoints_the_log_reaches_the_disk(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint waits until the disk has the whole log; most of it is there by then."""
    brought: list[int] = []

    def sync(descriptor: int) -> None:
        brought.append(os.fstat(descriptor).st_size)
        os.fsync(descriptor)

    monkeypatch.setattr(room, "_SYNC", sync)
    monkeypatch.setattr(room, "FLUSHED_S", 0.01)
    with Store.open(url) as store:
        file = store.address.sqlite
        assert file is not None
        with store.checkpoints_beside():
            store.add_queries(rows(0, 1000))
            log = file.with_name(file.name + "-wal").stat().st_size
            assert log > 500_000
            until = time.monotonic() + 30
            while log not in brought and time.monotonic() < until:
                time.sleep(0.01)
        assert log in brought


def test_the_log_of_commits_stays_small_while_many_write_and_shrinks_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 1 << 20
    monkeypatch.setattr(room, "WAL_BYTES", limit, raising=False)
    monkeypatch.setattr(room, "FLUSHED_S", 0.01)
    with Store.open(tmp_path / "store.sqlite") as store:
        file = tmp_path / "store.sqlite-wal"
        with store.checkpoints_beside():
            sizes = []
            for number in range(60):
                store.add_queries(rows(number * 1_000, 1_000))
                store.queries(limit=10)
                sizes.append(file.stat().st_size)
            assert max(sizes) < 30 * limit  # twice as much was written
            until = time.monotonic() + 30
            while file.stat().st_size > limit and time.monotonic() < until:
                time.sleep(0.01)
            assert file.stat().st_size <= limit
        assert len(store.queries()) == 60_000
