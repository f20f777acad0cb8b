"""What users asked is for the owner of the store alone."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringtrue.store import LoggedQuery, Store
from ringtrue.store.archive import write_archive

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


@pytest.mark.parametrize("name", ["copy.sqlite", "copy.jsonl.gz"])
def test_backups_are_for_their_owner_alone(tmp_path: Path, name: str) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries([QUERY])
        store.backup(tmp_path / name, now="2026-03-02T12:00:00Z")
    assert mode(tmp_path / name) == "0o600"


def test_archives_are_for_their_owner_alone(tmp_path: Path) -> None:
    write_archive(tmp_path / "queries.jsonl.gz", [QUERY])
    assert mode(tmp_path / "queries.jsonl.gz") == "0o600"
