"""Planting into SQLite files: plain FTS5 tables, and those beside or over a table of contents."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.writing_suite import GOLDEN, TENANT, HeldSuite
from ringtrue.errors import InputError, TimedOut
from ringtrue.retrieve.connectors.sqlite import Sqlite
from ringtrue.run import PartlyPlanted, plant, planted, remove_planted

PLANT = {"title": "{title}", "body": "{text}", "company": "{tenant}", "hash": "{source_hash}"}
TRIGGERS = """
CREATE TRIGGER a AFTER INSERT ON rooms BEGIN
  INSERT INTO words(rowid, title, body) VALUES (new.rowid, new.title, new.body); END;
CREATE TRIGGER d AFTER DELETE ON rooms BEGIN
  INSERT INTO words(words, rowid, title, body) VALUES ('delete', old.rowid, old.title, old.body); END;
"""


def run(file: Path, *statements: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as database, database:
        return [row for statement in statements for row in database.execute(statement).fetchall()]


class TestOneTable(HeldSuite):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "rooms.sqlite"
        run(
            self.file,
            "CREATE VIRTUAL TABLE rooms USING fts5(id UNINDEXED, company UNINDEXED, hash UNINDEXED, title, body)",
            "INSERT INTO rooms VALUES ('d1', NULL, NULL, 'Pool', 'A pool.'), ('7', 'zoo', 'x', 'Spa', 'A spa.')",
        )

    def make(self) -> Sqlite:
        return Sqlite(file=self.file, table="rooms", plant=PLANT)

    def everything(self) -> dict[str, Any]:
        return {row[0]: row for row in run(self.file, "SELECT * FROM rooms")}

    def foreign(self, doc_id: str) -> None:
        with closing(sqlite3.connect(self.file)) as database, database:
            database.execute("INSERT INTO rooms VALUES (?, NULL, NULL, 'Theirs', 'Theirs.')", [doc_id])

    def clear(self, doc_id: str) -> None:
        pass

    def marks(self, doc_id: str) -> tuple[str, str]:
        row = self.everything()[doc_id]
        return row[2], row[1]

    def test_a_batch_is_written_as_a_whole_or_not_at_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        connector, before = self.make(), self.everything()
        calls: list[str] = []
        real = Sqlite.record

        def record(self: Sqlite, document: Any, *fields: Any, **options: Any) -> Any:
            calls.append(document.id)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return real(self, document, *fields, **options)

        monkeypatch.setattr(Sqlite, "record", record)
        with pytest.raises(KeyboardInterrupt):
            plant(connector, GOLDEN, tenant=TENANT)
        assert self.everything() == before
        assert plant(connector, GOLDEN, tenant=TENANT).written == 3

    def test_a_locked_file_times_out_and_loses_nothing(self) -> None:
        before = self.everything()
        with closing(sqlite3.connect(self.file, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            connector = replace(self.make(), timeout=0.1, retries=0)
            with pytest.raises(TimedOut, match="stayed locked"):
                plant(connector, GOLDEN)
        assert self.everything() == before

    def test_a_column_that_is_not_there_is_named(self) -> None:
        connector = replace(self.make(), plant={"titel": "{title}", "hash": "{source_hash}"})
        with pytest.raises(InputError, match="plant names the column 'titel'"):
            plant(connector, GOLDEN)

    def test_numbers_of_rows_are_no_place_for_ids(self) -> None:
        with pytest.raises(InputError, match="name a column"):
            plant(replace(self.make(), id="rowid"), GOLDEN)


class TestATableBeside(TestOneTable):
    """The FTS5 table holds the words, another one the ids; nothing but the writer keeps them together."""

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "rooms.sqlite"
        run(
            self.file,
            "CREATE TABLE rooms(id TEXT, company TEXT, hash TEXT)",
            "CREATE VIRTUAL TABLE words USING fts5(title, body)",
            "INSERT INTO rooms VALUES ('d1', NULL, NULL)",
            "INSERT INTO words(rowid, title, body) VALUES (1, 'Pool', 'A pool.')",
        )

    def make(self) -> Sqlite:
        return Sqlite(file=self.file, table="words", content="rooms", plant=PLANT)

    def foreign(self, doc_id: str) -> None:
        with closing(sqlite3.connect(self.file)) as database, database:
            database.execute("INSERT INTO rooms VALUES (?, NULL, NULL)", [doc_id])

    def test_words_are_removed_too(self) -> None:
        connector = self.make()
        with planted(connector, GOLDEN, tenant=TENANT):
            assert len(run(self.file, "SELECT rowid FROM words")) == 4
        assert run(self.file, "SELECT rowid FROM words") == [(1,)]
        assert connector.search("bicycle") == []


class TestContentWithTriggers(TestOneTable):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "rooms.sqlite"
        run(
            self.file,
            "CREATE TABLE rooms(id TEXT PRIMARY KEY, company TEXT, hash TEXT, title TEXT, body TEXT)",
            "CREATE VIRTUAL TABLE words USING fts5(title, body, content='rooms')",
        )
        with closing(sqlite3.connect(self.file)) as database:
            database.executescript(TRIGGERS)
        run(self.file, "INSERT INTO rooms VALUES ('d1', NULL, NULL, 'Pool', 'A pool.')")

    def make(self) -> Sqlite:
        return Sqlite(file=self.file, table="words", content="rooms", plant=PLANT)

    def test_without_triggers_nothing_is_written_that_nobody_would_find(self) -> None:
        run(self.file, "DROP TRIGGER a", "DROP TRIGGER d")
        with pytest.raises(InputError, match="no trigger of 'rooms' keeps 'words' up to date"):
            plant(self.make(), GOLDEN, tenant=TENANT)
        assert set(self.everything()) == {"d1"}

    def test_an_index_over_another_table_needs_its_name(self) -> None:
        run(self.file, "CREATE VIRTUAL TABLE over USING fts5(id, title, content='rooms')")
        with pytest.raises(InputError, match="name that with content="):
            plant(Sqlite(file=self.file, table="over", plant={"title": "{source_hash}"}), GOLDEN)


ROWS = "SELECT id, body, hash FROM t ORDER BY rowid"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A table with a record of somebody's under an id that a planted document would have."""
    run(
        tmp_path / "plain.sqlite",
        "CREATE VIRTUAL TABLE t USING fts5(id, body, hash UNINDEXED)",
        "INSERT INTO t VALUES ('d1', 'A pool.', NULL), ('golden:tiny:bicycles', 'Mine.', '0123456789abcdef0123456789abcdef')",
    )
    return tmp_path / "plain.sqlite"


@pytest.mark.parametrize("record", [{"body": "{text}"}, {"body": "{text}", "hash": "sha:{source_hash}"}])
def test_without_a_mark_that_can_be_read_nothing_is_written_or_removed(file: Path, record: dict[str, str]) -> None:
    before = run(file, ROWS)
    connector = Sqlite(file=file, table="t", plant=record)
    for action in (plant, remove_planted):
        with pytest.raises(InputError, match=r"stores no '{source_hash}' as a whole value.*source_hash = '{source_hash}'"):
            action(connector, GOLDEN)
    assert run(file, ROWS) == before


def test_a_record_with_a_hash_of_its_own_is_not_taken_for_ours(file: Path) -> None:
    before = run(file, ROWS)
    connector = Sqlite(file=file, table="t", plant={"body": "{title}. {text}", "hash": "{source_hash}"})
    with pytest.raises(PartlyPlanted, match=r"refused 'golden:tiny:bicycles' .*is there and was not planted"):
        plant(connector, GOLDEN)
    assert run(file, ROWS)[:2] == before
    assert remove_planted(connector, GOLDEN) == 2
    assert run(file, ROWS) == before


def test_a_second_record_of_the_same_id_keeps_both(file: Path) -> None:
    connector = Sqlite(file=file, table="t", plant={"body": "{title}. {text}", "hash": "{source_hash}"})
    golden = replace(GOLDEN, documents=GOLDEN.documents[:1])
    plant(connector, golden)
    run(file, "INSERT INTO t VALUES ('golden:tiny:late-arrival', 'Mine too.', NULL)")
    before = run(file, ROWS)
    changed = replace(golden, documents=(replace(golden.documents[0], text="Other."),))
    with pytest.raises(InputError, match="is there and was not planted"):
        plant(connector, changed)
    assert remove_planted(connector, golden) == 0
    assert run(file, ROWS) == before


def test_a_tenant_that_would_be_lost_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match="tenant 'acme' would be stored nowhere"):
        plant(Sqlite(file=file, table="t", plant={"body": "{text}", "hash": "{source_hash}"}), GOLDEN, tenant=TENANT)


def test_another_tenants_documents_stay_where_tenants_cannot_be_read(file: Path) -> None:
    run(file, "DELETE FROM t")
    connector = Sqlite(file=file, table="t", plant={"body": "{title} {text} {tenant}", "hash": "{source_hash}"})
    assert plant(connector, GOLDEN, tenant=TENANT).written == 3
    assert remove_planted(connector, GOLDEN, tenant="other") == 0
    with pytest.raises(InputError, match="was not planted, or for another tenant"):
        plant(connector, GOLDEN, tenant="other")
    assert remove_planted(connector, GOLDEN, tenant=TENANT) == 3
