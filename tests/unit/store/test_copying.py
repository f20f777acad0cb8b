"""Backup, restore and moving between databases: the same rows, all of them or none."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from ringtrue.errors import InputError, MissingInput
from ringtrue.store import Store
from ringtrue.store import store as module
from ringtrue.store.schema import HEAD
from store_contents import EXPECTED, FULL_QUERY, PLAIN_QUERY, REPLY, RUN, contents, fill


@pytest.fixture(params=["sqlite", "postgresql"])
def other(request: pytest.FixtureRequest, empty: Callable[[str], str]) -> str:
    """The address of a second database, of either kind."""
    return empty(request.param)


def test_a_backup_restores_on_either_database(store: Store, other: str, tmp_path: Path) -> None:
    fill(store)
    counts = store.backup(tmp_path / "b" / "backup.sqlite")
    assert counts == store.counts()
    with Store.open(other) as target:
        assert target.restore(tmp_path / "b" / "backup.sqlite") == counts
        assert contents(target) == contents(store)
        assert target.add_queries([replace(PLAIN_QUERY, query_id="next")]) == 1  # the numbers go on behind the restored ones


def test_a_store_is_copied_to_either_database_and_compared(store: Store, other: str) -> None:
    fill(store)
    store.add_queries([replace(FULL_QUERY, query_id=f"eq_{i}", project="shop") for i in range(module.BATCH * 2 + 7)])
    with Store.open(other) as target:
        assert target.copy_from(store) == store.counts()
        found = contents(target)
        assert {name: found[name] for name in EXPECTED} == EXPECTED
        assert found == contents(store)
        with pytest.raises(InputError, match="--replace"):
            target.copy_from(store)
        assert target.copy_from(store, replace=True) == store.counts()
        with pytest.raises(InputError, match="itself"):
            target.copy_from(target)


def test_postgresql_knows_at_once_how_much_a_store_holds_that_was_copied_to_it(
    store: Store, empty: Callable[[str], str]
) -> None:
    store.add_queries([replace(PLAIN_QUERY, query_id=f"eq_{i}") for i in range(300)])
    with Store.open(empty("postgresql")) as target:
        target.copy_from(store)
        assert _planned_for(target) == 300


def _planned_for(store: Store) -> int:
    """Return how many rows PostgreSQL believes the log to have."""
    with store._reading() as connection:
        return int(connection.execute(text("SELECT reltuples FROM pg_class WHERE relname = 'eval_queries'")).scalar_one())


def test_bytes_survive_a_backup_and_a_move_however_many_they_are(store: Store, other: str, tmp_path: Path) -> None:
    runs = [replace(RUN, run_id=f"r{i}", content=secrets.token_bytes(100_000)) for i in range(module.FEW * 2 + 1)]
    for run in [*runs, replace(RUN, run_id="nothing", content=b"")]:
        store.save_run(run)
    store.keep_reply(replace(REPLY, body=bytes(range(256))))
    store.backup(tmp_path / "backup.sqlite")
    with Store.open(other) as target:
        for take in (lambda: target.copy_from(store), lambda: target.restore(tmp_path / "backup.sqlite", replace=True)):
            assert take()["runs"] == len(runs) + 1
            assert [target.run(run.run_id) for run in runs] == runs
            assert target.run("nothing") == replace(RUN, run_id="nothing", content=b"")
            assert target.claim_reply(REPLY) == replace(REPLY, body=bytes(range(256)))


def test_a_copy_that_breaks_off_leaves_nothing(store: Store, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    rows = module._rows

    def broken(connection: object, table: object, *rest: object) -> object:
        if str(table) == "test_points":  # the last one
            raise KeyboardInterrupt
        return rows(connection, table, *rest)  # type: ignore[arg-type]

    with Store.open(other) as target:
        monkeypatch.setattr(module, "_rows", broken)
        with pytest.raises(KeyboardInterrupt):
            target.copy_from(store)
        assert set(target.counts().values()) == {0}


def test_rows_that_do_not_read_back_the_same_are_refused(
    store: Store, empty: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    rows = module._rows

    def changed(connection: object, table: object, place: str) -> object:
        found = rows(connection, table, place)  # type: ignore[arg-type]
        return iter(list(found)[1:]) if place == "here" and str(table) == "eval_queries" else found

    with Store.open(empty("sqlite")) as target:
        monkeypatch.setattr(module, "_rows", changed)
        with pytest.raises(InputError, match="eval_queries reads back differently"):
            target.copy_from(store)
        assert set(target.counts().values()) == {0}


def test_a_backup_of_a_store_in_use_is_one_state(store: Store, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        batch = 0
        while not stop.is_set():
            store.add_queries([replace(PLAIN_QUERY, query_id=f"{batch}-{i}") for i in range(10)])
            batch += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        counts = [store.backup(tmp_path / "s.sqlite", overwrite=True)["eval_queries"] for _ in range(5)]
    finally:
        stop.set()
        thread.join()
    assert all(count % 10 == 0 for count in counts)
    assert counts[-1] > 0


def _damaged(whole: bytes) -> dict[str, bytes]:
    return {
        "cut off": whole[:-5000],
        "half": whole[: len(whole) // 2],
        "another schema": whole.replace(HEAD.encode(), b"9999"),
        "plain text": b"hello",
        "empty": b"",
        "no database": b"SQLite format 3\x00" + b"x" * 100,
    }


def test_a_damaged_or_foreign_backup_is_refused_and_leaves_nothing(empty: Callable[[str], str], tmp_path: Path) -> None:
    with Store.open(empty("sqlite")) as store:
        fill(store)
        store.backup(tmp_path / "whole.sqlite")
    file = tmp_path / "damaged"
    with Store.open(empty("sqlite")) as target:
        for name, content in _damaged((tmp_path / "whole.sqlite").read_bytes()).items():
            file.write_bytes(content)
            with pytest.raises(InputError, match="damaged"):
                target.restore(file)
            assert set(target.counts().values()) == {0}, name
        with pytest.raises(MissingInput):
            target.restore(tmp_path / "nothing")


def test_a_failed_restore_keeps_what_was_to_be_replaced(store: Store, tmp_path: Path) -> None:
    fill(store)
    store.backup(tmp_path / "whole.sqlite")
    before = contents(store)
    (tmp_path / "cut.sqlite").write_bytes((tmp_path / "whole.sqlite").read_bytes()[:-20])
    with pytest.raises(InputError):
        store.restore(tmp_path / "cut.sqlite", replace=True)
    assert contents(store) == before


def test_a_backup_appears_whole_or_not_at_all(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    good = tmp_path / "good.sqlite"
    store.backup(good)
    before = good.read_bytes()

    def broken(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_fill", broken)
    with pytest.raises(InputError, match="No space left"):
        store.backup(good, overwrite=True)
    assert good.read_bytes() == before
    assert [path.name for path in tmp_path.glob(".good*")] == []


def test_a_backup_whose_rows_are_still_in_the_log_of_sqlite_is_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "close", lambda _: None)  # as if the last connection could not empty its log
        with pytest.raises(InputError, match="check the free space"):
            store.backup(tmp_path / "whole.sqlite")
    assert not list(tmp_path.glob("*whole.sqlite*"))


def test_a_backup_takes_the_place_of_nothing_unasked_and_never_of_the_store(store: Store, tmp_path: Path) -> None:
    fill(store)
    other = tmp_path / "notes.sqlite"
    other.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        store.backup(other)
    assert other.read_text() == "mine"
    assert store.backup(other, overwrite=True)["eval_queries"] == 2
    if store.address.sqlite is not None:
        (tmp_path / "link.sqlite").symlink_to(store.address.sqlite)
        for name in (store.address.sqlite, f"{store.address.sqlite}-wal", tmp_path / "link.sqlite"):
            with pytest.raises(InputError, match="is the store itself"):
                store.backup(name, overwrite=True)
        assert store.counts()["eval_queries"] == 2
