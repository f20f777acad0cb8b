"""Stores of every released schema, on both databases, still open after an upgrade and hold what they held."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from postgres_server import PostgresServer
from ringtrue.store import Store
from ringtrue.store import schema as versions
from store_contents import EXPECTED, NOON, SHADOW, SINCE, contents, fill
from stores import fresh as fresh

HERE = Path(__file__).parent
RELEASED = sorted(path.name.split(".")[0] for path in HERE.glob("*.sqlite"))


def _upgraded(place: str | Path, version: str) -> None:
    before, after = Store.upgrade(place)
    assert (before, after) == (version, versions.HEAD)
    with Store.open(place) as store:
        found = contents(store)
        held = {name: rows if version >= SINCE.get(name, version) else [] for name, rows in EXPECTED.items()}
        if version < "0003":
            held["shadow runs"] = [replace(run, candidate="") for run in held["shadow runs"]]
        assert {name: found[name] for name in EXPECTED} == held
        # It takes further rows: the numbers of the rows go on behind those that were there.
        assert store.delete_user("u1", project="default") > 0
        fill_again = [query for query in EXPECTED["queries"] if query.user_id == "u1"]
        assert store.add_queries(fill_again) == 1
        key, token = store.create_key("new", ["read"], now=NOON)
        assert store.verify_key(token, now=NOON) == replace(key, last_used_at=NOON)
        # A search that the old candidate answered is asked of a new one, and counts once for that.
        again = [replace(SHADOW, candidate="new")]
        assert [store.add_shadow_runs(again), store.add_shadow_runs(again)] == [1, 0]


@pytest.mark.parametrize("version", RELEASED)
def test_a_sqlite_store_of_each_released_schema_is_upgraded(version: str, tmp_path: Path) -> None:
    _upgraded(shutil.copy(HERE / f"{version}.sqlite", tmp_path / "old.sqlite"), version)


@pytest.mark.parametrize("version", RELEASED)
def test_a_postgresql_store_of_each_released_schema_is_upgraded(
    version: str, fresh: Callable[[str], str], postgres: PostgresServer
) -> None:
    place = fresh("postgresql")
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute((HERE / f"{version}.postgresql.sql").read_bytes())
    _upgraded(place, version)


def test_the_role_of_an_old_key_becomes_its_scope(tmp_path: Path) -> None:
    old = shutil.copy(HERE / "0001.sqlite", tmp_path / "old.sqlite")
    with closing(sqlite3.connect(old)) as connection:
        connection.execute(
            "INSERT INTO api_keys (project, key_id, key_hash, name, role, created_at) VALUES (?, 'k', 'h', 'n', 'read', ?)",
            ["default", NOON],
        )
        connection.commit()
    Store.upgrade(old)
    with Store.open(old) as store:
        (key,) = store.keys()
        assert (key.scopes, key.last_used_at, key.allows("read"), key.allows("write")) == (("read",), None, True, False)


@pytest.mark.parametrize("version", RELEASED)
def test_a_backup_of_each_released_schema_is_upgraded_and_restored(
    version: str, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    old = shutil.copy(HERE / f"{version}.sqlite", tmp_path / "old.sqlite")
    Store.upgrade(old)
    with Store.open(fresh("sqlite")) as store:
        store.restore(old)
        found = contents(store)
    assert found["queries"] == EXPECTED["queries"]


def test_the_present_schema_is_among_those_kept() -> None:
    assert set(RELEASED) == set(versions.known_versions())


def test_the_kept_databases_are_what_the_store_writes_now(fresh: Callable[[str], str], tmp_path: Path) -> None:
    with Store.open(fresh("sqlite")) as store:
        fill(store)
        now = contents(store)
    with Store.open(shutil.copy(HERE / f"{versions.HEAD}.sqlite", tmp_path / "old.sqlite")) as store:
        assert contents(store) == now
