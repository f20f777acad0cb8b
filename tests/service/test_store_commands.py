"""``ringtrue store`` from end to end: a log on SQLite, backed up, moved to PostgreSQL, pruned."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ringtrue.store import Store, archived_queries
from ringtrue.store.schema import HEAD
from store_contents import FULL_QUERY, SHADOW, contents, fill
from stores import empty as empty

Run = Callable[..., Any]


def _ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: Callable[[str], str]) -> Path:
    """A folder with a store at the usual place."""
    monkeypatch.delenv("RINGTRUE_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".ringtrue").mkdir()
    shutil.move(empty("sqlite"), tmp_path / ".ringtrue" / "store.sqlite")
    with Store.open() as store:
        fill(store)
    return tmp_path


def test_info_and_upgrade(home: Path, ringtrue: Run) -> None:
    said = ringtrue("store", "info", "--json").json
    assert (said["schema"], said["rows"]["eval_queries"], said["archives"]) == (HEAD, 2, [])
    assert said["store"] == str(home / ".ringtrue" / "store.sqlite")
    shown = ringtrue("store", "info")
    assert "eval_queries" in shown.out
    assert f"schema {HEAD}" in shown.out
    assert ringtrue("store", "upgrade").out == f"the store has schema {HEAD} already\n"
    assert ringtrue("store", "upgrade", "--store", "new.sqlite", "--json").json == {"before": None, "after": HEAD}


def test_a_command_that_reads_makes_no_store(tmp_path: Path, ringtrue: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["info"], ["prune"], ["backup", "b.sqlite"], ["migrate", "old.sqlite", "new.sqlite"]):
        done = ringtrue("store", *command)
        assert (done.code, done.out) == (2, "")
        assert "no store yet" in done.err
    assert list(tmp_path.iterdir()) == []


def test_backup_and_restore(home: Path, ringtrue: Run) -> None:
    done = ringtrue("store", "backup", "safe/store.sqlite", "--json")
    assert done.json["rows"]["eval_queries"] == 2
    with Store.open() as store:
        before = contents(store)
        store.delete_user("u1", project="default")
        assert contents(store) != before
    refused = ringtrue("store", "restore", "safe/store.sqlite")
    assert (refused.code, "--replace" in refused.err) == (2, True)
    restored = ringtrue("store", "restore", "safe/store.sqlite", "--replace")
    assert restored.code == 0
    assert "restored" in restored.out
    with Store.open() as store:
        assert contents(store) == before


def test_migrate_from_sqlite_to_postgresql_and_back(home: Path, ringtrue: Run, empty: Callable[[str], str]) -> None:
    target = empty("postgresql")
    done = ringtrue("store", "migrate", home / ".ringtrue" / "store.sqlite", target, "--json")
    assert done.code == 0
    assert "***" in done.json["to"]
    password = target.split(":")[2].split("@")[0]
    assert password not in done.out
    with Store.open() as old, Store.open(target) as new:
        assert contents(new) == contents(old)
        assert done.json["rows"] == old.counts()
    again = ringtrue("store", "migrate", home / ".ringtrue" / "store.sqlite", target)
    assert (again.code, again.out) == (2, "")
    assert "has rows in" in again.err
    assert password not in again.err
    assert ringtrue("store", "migrate", target, "back.sqlite").code == 0
    with Store.open() as old, Store.open("back.sqlite") as back:
        assert contents(back) == contents(old)


def _aged(store: Store) -> None:
    for days in (1, 40, 100):
        store.add_queries([replace(FULL_QUERY, query_id=f"{days} days", created_at=_ago(days))])
        store.add_shadow_runs([replace(SHADOW, query_id=f"{days} days", created_at=_ago(days))])


def test_prune_says_what_would_go_then_archives_and_deletes(home: Path, ringtrue: Run) -> None:
    with Store.open("log.sqlite") as store:
        _aged(store)
    would = ringtrue("store", "prune", "--store", "log.sqlite", "--dry-run", "--json").json
    assert would["dry_run"] is True
    assert (would["projects"]["default"]["queries"], would["projects"]["default"]["shadow"]) == (1, 2)
    assert "would be" in ringtrue("store", "prune", "--store", "log.sqlite", "--dry-run").out
    done = ringtrue("store", "prune", "--store", "log.sqlite", "--json").json["projects"]["default"]
    assert (done["queries"], done["shadow"]) == (1, 2)
    (archive,) = done["archives"]
    assert Path(archive).parent == home / "archive"
    assert [query.query_id for query in archived_queries(archive)] == ["100 days"]
    assert ringtrue("store", "info", "--store", "log.sqlite", "--json").json["archives"] == [archive]
    assert ringtrue("store", "prune", "--store", "log.sqlite", "--forget", archive).code == 0
    assert ringtrue("store", "prune", "--store", "log.sqlite", "--forget", archive).code == 2


def test_prune_keeps_as_long_as_ringtrue_toml_says(home: Path, ringtrue: Run) -> None:
    (home / "ringtrue.toml").write_text(
        "[store]\nurl = 'log.sqlite'\n[store.prune]\narchive = 'old'\n[store.retention]\nqueries = 30\nshadow = 1000\n"
        "[store.retention.projects.shop]\nqueries = 1000\n"
    )
    with Store.open() as store:
        _aged(store)
        store.add_queries([replace(FULL_QUERY, project="shop", created_at=_ago(400))])
    done = ringtrue("store", "prune", "--json").json["projects"]
    assert {name: (each["queries"], each["shadow"]) for name, each in done.items()} == {"default": (2, 0), "shop": (0, 0)}
    assert len(list(archived_queries(home / "old"))) == 2
    (home / "ringtrue.toml").write_text("[store.retention]\nquerys = 30\n")
    wrong = ringtrue("store", "prune", "--store", "log.sqlite")
    assert wrong.code == 2
    assert "did you mean 'queries'" in wrong.err
    (home / "ringtrue.toml").write_text("[store]\nadress = 'x'\n")
    assert "adress" in ringtrue("store", "info").err


def test_postgresql_needs_a_named_folder_for_archives(home: Path, ringtrue: Run, empty: Callable[[str], str]) -> None:
    place = empty("postgresql")
    with Store.open(place) as store:
        _aged(store)
    refused = ringtrue("store", "prune", "--store", place)
    assert (refused.code, "--archive" in refused.err) == (2, True)
    assert ringtrue("store", "prune", "--store", place, "--archive", "old").code == 0
    assert len(list(archived_queries(home / "old"))) == 1
