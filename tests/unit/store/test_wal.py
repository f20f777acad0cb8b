"""SQLite's write-ahead log reaches the disk and stays small, also while somebody always reads."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.store import LoggedQuery, Store, engine
from stores import kind as kind
from stores import url as url

AT = "2026-03-01T12:00:00.000000Z"


def rows(first: int, count: int) -> list[LoggedQuery]:
    return [LoggedQuery(f"eq_{number}", f"pool {number} " + "x" * 500, "test", AT) for number in range(first, first + count)]


def test_sync_is_for_the_store_of_all_and_changes_nothing_on_postgresql(url: str) -> None:
    with Store.open(url) as store:
        store.sync()
        store.add_queries(rows(0, 3))
        store.sync()
        assert len(store.queries()) == 3
        with pytest.raises(InputError, match="use the store of all"):
            store.only("shop").sync()


def test_sync_brings_the_whole_log_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought: list[int] = []
    monkeypatch.setattr(engine, "_SYNC", lambda descriptor: brought.append(os.fstat(descriptor).st_size))
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries(rows(0, 1000))
        store.sync()
        assert brought == [(tmp_path / "store.sqlite-wal").stat().st_size]


def test_a_disk_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(descriptor: int) -> None:
        raise OSError("no")

    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries(rows(0, 1))
        monkeypatch.setattr(engine, "_SYNC", fails)
        with pytest.raises(OSError, match="no"):
            store.sync()


def test_the_log_stays_small_while_somebody_always_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 1 << 20
    monkeypatch.setattr(engine, "WAL_BYTES", limit)
    monkeypatch.setattr(engine, "PATIENCE_S", 10.0)
    place, ended = tmp_path / "store.sqlite", threading.Event()
    with Store.open(place) as store:

        def read() -> None:
            while not ended.is_set():
                store.queries(limit=1_000)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        try:
            sizes = []
            for number in range(40):
                store.add_queries(rows(number * 500, 500))
                store.sync()
                sizes.append(place.with_name("store.sqlite-wal").stat().st_size)
        finally:
            ended.set()
            for reader in readers:
                reader.join()
        assert max(sizes) < 8 * limit  # several times as much was written
        assert store.count_queries(project="default") == 20_000
