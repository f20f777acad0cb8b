"""What goes wrong with a database, said in one line with the cure; never a password, never a stored text."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import event

from connectors.faults import LOOPBACK, free_port, proxy
from postgres_server import PostgresServer
from ringtrue.errors import AccessDenied, InputError, MissingInput, RingtrueError, Unreachable
from ringtrue.store import Store
from ringtrue.store import engine as engines
from ringtrue.store.engine import address
from store_contents import FULL_QUERY, PLAIN_QUERY

SECRET = "top" + "secret"  # in no line of this file, which a traceback quotes


def _whole_story(problem: BaseException) -> str:
    return "".join(traceback.format_exception(problem))


def test_a_locked_database_is_waited_for_then_named(empty: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BUSY_S", 0.05)
    place = empty("sqlite")
    with Store.open(place) as store:
        other = sqlite3.connect(place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unreachable, match="locked by another program") as caught:
            store.add_queries([FULL_QUERY])
        assert store.queries() == []  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        assert store.add_queries([FULL_QUERY]) == 1
    assert FULL_QUERY.query not in _whole_story(caught.value)


def test_a_full_disk_is_named_and_loses_no_half_batch(empty: Callable[[str], str]) -> None:
    with Store.open(empty("sqlite")) as store:
        engine = store._engines.get()
        limit = {"pages": 120}

        def small(connection: sqlite3.Connection, *_: object) -> None:
            connection.execute(f"PRAGMA max_page_count = {limit['pages']}")

        event.listen(engine, "connect", small)
        engine.dispose()
        long = [replace(PLAIN_QUERY, query_id=f"eq_{i}", query="x" * 4_000) for i in range(200)]
        with pytest.raises(Unreachable, match="disk is full"):
            store.add_queries(long)
        assert store.queries() == []
        limit["pages"] = 100_000
        engine.dispose()
        assert store.add_queries(long) == 200


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Give up the rights of root for a while: root may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may reach: pytest's own are closed, and every pytest that starts closes them again."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_folder_or_file_is_named(open_folder: Path) -> None:
    place = open_folder / "store.sqlite"
    Store.open(place).close()
    for file in open_folder.iterdir():
        file.chmod(0o444)
    open_folder.chmod(0o555)
    try:
        with _as_nobody(), pytest.raises(InputError, match=r"store\.sqlite.*(permissions|may be written)"):
            Store.open(place).add_queries([PLAIN_QUERY])
        with _as_nobody(), pytest.raises(InputError, match=r"new.sqlite.*may be written"):
            Store.open(open_folder / "new.sqlite")
        with _as_nobody(), pytest.raises(InputError, match="folder cannot be made"):
            Store.open(open_folder / "folder" / "new.sqlite")
    finally:
        open_folder.chmod(0o755)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database " * 100)
    with pytest.raises(InputError, match=r"notes\.txt is not an SQLite database"):
        Store.open(tmp_path / "notes.txt")
    with pytest.raises(InputError, match="cannot be opened"):
        Store.open(tmp_path)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (f"mysql://u:{SECRET}@h/db", "mysql"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        (":memory:", ":memory:"),
        ("", "''"),
        (f"postgresql://u:{SECRET}@h:port/db", "cannot read the address"),
    ],
)
def test_an_address_that_is_none_is_refused_without_its_password(given: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        Store.open(given)
    assert SECRET not in _whole_story(caught.value)


def test_a_wrong_password_or_database_is_named_without_the_password(postgres: PostgresServer) -> None:
    with pytest.raises(AccessDenied, match="refused the user or the password") as caught:
        Store.open(postgres.url(password=SECRET))
    assert SECRET not in _whole_story(caught.value)
    with pytest.raises(InputError, match="no such database") as missing:
        Store.open(postgres.url("nowhere"))
    assert postgres.password not in _whole_story(missing.value)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(Unreachable, match="check that it runs") as caught:
        Store.open(f"postgresql://ann:{SECRET}@{LOOPBACK}:{free_port()}/ringtrue")
    assert SECRET not in _whole_story(caught.value)
    assert LOOPBACK in str(caught.value)


def test_a_server_that_goes_away_is_found_again_and_nothing_is_stored_twice(
    empty: Callable[[str], str], postgres: PostgresServer
) -> None:
    place = empty("postgresql")
    with proxy(postgres.port) as wire, Store.open(place.replace(f":{postgres.port}/", f":{wire.port}/")) as store:
        assert store.add_queries([FULL_QUERY]) == 1
        wire.cut()
        with pytest.raises(Unreachable) as caught:
            store.add_queries([FULL_QUERY, PLAIN_QUERY])
        wire.restore()
        assert store.add_queries([FULL_QUERY, PLAIN_QUERY]) == 1
        wire.cut_answer_after(0)  # the server may have done it; the answer is lost
        with pytest.raises(Unreachable):
            store.add_queries([replace(PLAIN_QUERY, query_id=f"eq_{i}") for i in range(10)])
        wire.restore()
        store.add_queries([replace(PLAIN_QUERY, query_id=f"eq_{i}") for i in range(10)])
        assert store.counts()["eval_queries"] == 12
    story = _whole_story(caught.value)
    assert postgres.password not in story
    assert FULL_QUERY.query not in story


def test_the_stores_address_is_configured_flag_over_environment_over_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RINGTRUE_STORE", raising=False)
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert address().sqlite == tmp_path / "inner" / ".ringtrue" / "store.sqlite"
    (tmp_path / "ringtrue.toml").write_text("[score]\n")
    assert address().sqlite == tmp_path / ".ringtrue" / "store.sqlite"  # beside the settings, wherever one stands
    (tmp_path / "ringtrue.toml").write_text("[store]\nurl = 'data/log.sqlite'\n")
    assert address().sqlite == tmp_path / "data" / "log.sqlite"
    monkeypatch.setenv("RINGTRUE_STORE", f"postgres://ann:{SECRET}@db/x")
    assert str(address()) == "postgresql+psycopg://ann:***@db/x"
    assert address("sqlite:///here.sqlite").sqlite == tmp_path / "inner" / "here.sqlite"
    monkeypatch.delenv("RINGTRUE_STORE")
    (tmp_path / "ringtrue.toml").write_text("[store]\nurl = 3\n")
    with pytest.raises(InputError, match=r"store\.url"):
        address()


def test_every_error_of_the_store_is_one_of_ringtrues(store: Store) -> None:
    from sqlalchemy import text

    with pytest.raises(RingtrueError, match="no_such_table"), store._reading() as connection:
        connection.execute(text("SELECT * FROM no_such_table"))
    with pytest.raises(MissingInput):
        store.queries(after="nowhere")


def test_a_store_in_the_project_s_own_folder_is_kept_out_of_git(tmp_path: Path) -> None:
    Store.open(tmp_path / ".ringtrue" / "store.sqlite").close()
    assert (tmp_path / ".ringtrue" / ".gitignore").read_text() == "*\n"
    Store.open(tmp_path / "other" / ".ringtrue" / "demo" / "store.sqlite").close()
    assert (tmp_path / "other" / ".ringtrue" / ".gitignore").read_text() == "*\n"
    Store.open(tmp_path / "data" / "store.sqlite").close()
    assert not (tmp_path / "data" / ".gitignore").exists()


def _cut_off(place: str) -> None:
    """End every other connection to a database, as its restart would."""
    with Store.open(place) as store, store._writing() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid()"
        )


def test_a_connection_is_asked_before_it_is_used_again(empty: Callable[[str], str]) -> None:
    place = empty("postgresql")
    with Store.open(place) as store:
        store.add_queries([FULL_QUERY])
        _cut_off(place)
        assert store.add_queries([PLAIN_QUERY]) == 1
        _cut_off(place)
        assert len(store.queries()) == 2


def test_a_connection_that_broke_in_use_is_named_so_and_not_used_again(empty: Callable[[str], str]) -> None:
    place = empty("postgresql")
    with Store.open(place) as store:
        event.listen(store._engines.get(), "begin", lambda _: _cut_off(place), once=True)
        with pytest.raises(Unreachable, match="went away") as caught:
            store.add_queries([PLAIN_QUERY])
        assert PLAIN_QUERY.query not in _whole_story(caught.value)
        assert store.add_queries([PLAIN_QUERY]) == 1


def test_a_refused_row_costs_no_connection_and_shows_no_text(empty: Callable[[str], str]) -> None:
    with Store.open(empty("postgresql")) as store:
        store.add_queries([PLAIN_QUERY])
        made: list[object] = []
        event.listen(store._engines.get(), "connect", lambda *given: made.append(given))
        with pytest.raises(InputError, match="out of range") as caught:
            store.add_queries([replace(FULL_QUERY, extraction_count=10**12)])
        assert FULL_QUERY.query not in _whole_story(caught.value)
        assert store.add_queries([FULL_QUERY]) == 1
        assert made == []
