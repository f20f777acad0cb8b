"""Stores of every released schema, on both databases, still open after an upgrade and hold what they held (W-1)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from postgres_server import PostgresServer
from ringtrue.store import Store
from ringtrue.store import schema as versions
from store_contents import EXPECTED, contents, fill
from stores import fresh as fresh

HERE = Path(__file__).parent
RELEASED = sorted(path.name.split(".")[0] for path in HERE.glob("*.sqlite"))


def _upgraded(place: str | Path, version: str) -> None:
    before, after = Store.upgrade(place)
    assert (before, after) == (version, versions.HEAD)
    with Store.open(place) as store:
        found = contents(store)
        assert {name: found[name] for name in EXPECTED} == EXPECTED
        # It takes further rows: the numbers of the rows go on behind those that were there.
        assert store.delete_user("u1", project="default") > 0
        fill_again = [query for query in EXPECTED["queries"] if query.user_id == "u1"]
        assert store.add_queries(fill_again) == 1


@pytest.mark.parametrize("version", RELEASED)
def test_a_sqlite_store_of_each_released_schema_is_upgraded_W_1(version: str, tmp_path: Path) -> None:
    _upgraded(shutil.copy(HERE / f"{version}.sqlite", tmp_path / "old.sqlite"), version)


@pytest.mark.parametrize("version", RELEASED)
def test_a_postgresql_store_of_each_released_schema_is_upgraded_W_1(
    version: str, fresh: Callable[[str], str], postgres: PostgresServer
) -> None:
    place = fresh("postgresql")
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute((HERE / f"{version}.postgresql.sql").read_bytes())
    _upgraded(place, version)


def test_a_portable_backup_of_the_present_schema_is_restored_W_1(fresh: Callable[[str], str]) -> None:
    with Store.open(fresh("sqlite")) as store:
        store.restore(HERE / f"{versions.HEAD}.jsonl.gz")
        found = contents(store)
    assert {name: found[name] for name in EXPECTED} == EXPECTED


def test_the_present_schema_is_among_those_kept() -> None:
    assert set(RELEASED) == set(versions.known_versions())


def test_the_kept_databases_are_what_the_store_writes_now(fresh: Callable[[str], str], tmp_path: Path) -> None:
    with Store.open(fresh("sqlite")) as store:
        fill(store)
        now = contents(store)
    with Store.open(shutil.copy(HERE / f"{versions.HEAD}.sqlite", tmp_path / "old.sqlite")) as store:
        assert contents(store) == now
