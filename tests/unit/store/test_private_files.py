"""What users asked is for the owner of the store alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ringtrue.store import LoggedQuery, Store
from ringtrue.store.retention import write_archive

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="rights of files are a thing of POSIX")
QUERY = LoggedQuery("eq_1", "pool", "test", "2026-03-01T12:00:00.000000Z")


@pytest.fixture(autouse=True)
def generous() -> Iterator[None]:
    """New files are readable by everybody unless their maker says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(file: Path) -> str:
    return oct(stat.S_IMODE(file.stat().st_mode))


def test_a_new_store_and_the_files_beside_it_are_for_their_owner_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries([QUERY])
        found = {file.name: mode(file) for file in tmp_path.iterdir()}
    assert found == dict.fromkeys(("store.sqlite", "store.sqlite-wal", "store.sqlite-shm"), "0o600")


def test_a_store_that_everybody_could_read_is_tightened_and_one_shared_with_a_group_is_not(tmp_path: Path) -> None:
    for before, after in (("644", "0o600"), ("660", "0o660")):
        file = tmp_path / f"{before}.sqlite"
        Store.open(file).close()
        file.chmod(int(before, 8))
        Store.open(file).close()
        assert mode(file) == after


def rows_seen_elsewhere(file: Path) -> int:
    """How many searches another process finds, which deletes the log when it closes the file unless locks tell it not to."""
    code = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM eval_queries').fetchone()[0])"
    return int(subprocess.run([sys.executable, "-c", code, str(file)], check=True, capture_output=True, text=True).stdout)


def test_opening_a_store_again_does_not_release_the_locks_of_this_process(tmp_path: Path) -> None:
    """POSIX drops all locks of a process on a file if it closes any descriptor of it; others then delete the log in use."""
    file = tmp_path / "store.sqlite"
    with Store.open(file) as first:
        first.add_queries([QUERY])
        Store.open(file).close()
        with Store.open(file) as second:
            assert rows_seen_elsewhere(file) == 1
            first.add_queries([replace(QUERY, query_id="eq_2")])
            second.add_queries([replace(QUERY, query_id="eq_3")])
            assert rows_seen_elsewhere(file) == 3
    assert rows_seen_elsewhere(file) == 3


def test_backups_are_for_their_owner_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries([QUERY])
        store.backup(tmp_path / "copy.sqlite")
    assert mode(tmp_path / "copy.sqlite") == "0o600"


def test_archives_are_for_their_owner_alone(tmp_path: Path) -> None:
    write_archive(tmp_path / "queries.jsonl.gz", [QUERY])
    assert mode(tmp_path / "queries.jsonl.gz") == "0o600"
