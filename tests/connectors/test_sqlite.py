"""Sqlite over real FTS5 files, with real locks and real damage."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import BadAnswer, InputError, MissingInput, TimedOut
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.sqlite import Sqlite
from ringtrue.run import subject_of
from ringtrue.testing.retrievers import ConnectorSuite, NotPossible

ROWS = [
    ("d1", "Rome", "5", "Pool", "pool on the roof"),
    ("d2", "Rome", "4", "Family", "a pool for children"),
    ("d3", "Oslo", "5", "Spa", "indoor pool and spa, don't run"),
    ("d4", "Oslo", "3", "Breakfast", "bread, eggs and user_id AND coffee"),
    ("d5", "Oslo", "3", "Parking", "under the house"),
    ("d6", "Rome", "3", "Pets", "dogs are welcome"),
    ("d7", "Rome", "4", "Late", "the key lies in a box"),
    ("d8", "Rome", "4", "Library", "books in six languages"),
]


def make(folder: Path, *, rows: list[tuple[str, ...]] = ROWS, name: str = "hotels.sqlite", options: str = "") -> Path:
    file = folder / name
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            f"CREATE VIRTUAL TABLE rooms USING fts5(id UNINDEXED, city UNINDEXED, stars UNINDEXED, title, body{options})"
        )
        database.executemany("INSERT INTO rooms VALUES (?, ?, ?, ?, ?)", rows)
        database.execute("CREATE TABLE plain(id TEXT, body TEXT)")
    return file


def hotels(file: Path, **settings: Any) -> Sqlite:
    return Sqlite(**{"file": file, "table": "rooms", "retries": 0, **settings})


def ids(found: Any) -> list[str]:
    return [hit.doc_id for hit in found]


@contextmanager
def locked(file: Path) -> Iterator[sqlite3.Connection]:
    """Hold the lock that keeps readers out, as a writer does while it commits."""
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        yield writer


class TestSqliteKeepsTheProtocol(ConnectorSuite):
    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> Iterator[None]:
        self.folder = tmp_path
        self.file = make(tmp_path)
        with ExitStack() as self.stack:
            yield

    def make(self) -> Sqlite:
        return hotels(self.file)

    def wrong_credentials(self) -> Sqlite:
        if os.geteuid() == 0:
            raise NotPossible("root may read every file; run the tests as another user to see it refused")
        self.file.chmod(0)
        return hotels(self.file)

    def nobody_there(self) -> Sqlite:
        raise NotPossible("there is no server; a file that is not there is bad input, tested below")

    def gone_mid_query(self) -> Sqlite:
        raise NotPossible("an open file can be read to its end even when it is removed; a damaged one is tested below")

    def too_slow(self) -> Sqlite:
        self.stack.enter_context(locked(self.file))
        return hotels(self.file, timeout=0.2)

    def malformed(self) -> Sqlite:
        self.file.write_bytes(b"This is a text, not a database. " * 200)
        return hotels(self.file)

    def twice(self) -> Sqlite:
        return hotels(make(self.folder, rows=[*ROWS, ROWS[0]], name="twice.sqlite"))

    def few(self) -> tuple[Sqlite, str, int]:
        return self.make(), "pool", 3

    def fails_once(self) -> Sqlite:
        writer = self.stack.enter_context(locked(self.file))
        release = threading.Timer(0.8, writer.rollback)
        self.stack.callback(release.join)
        release.start()
        return hotels(self.file, timeout=0.5, retries=9)


def test_a_connection_is_made_from_a_table_of_settings(tmp_path: Path) -> None:
    settings = {"kind": "sqlite", "file": str(make(tmp_path)), "table": "rooms", "weights": {"title": 3}}
    found = connect(settings, name="hotels").search("pool", k=2)
    assert ids(found)[0] == "d1"
    assert found[0].channels == {"hotels": 1}


def test_a_search_does_not_release_the_locks_of_the_users_own_connection(tmp_path: Path) -> None:
    """POSIX drops all locks of a process on a file if it closes any descriptor of it; others then delete the log in use."""
    file = make(tmp_path)
    with closing(sqlite3.connect(file)) as own:
        own.execute("PRAGMA journal_mode = WAL")
        with own:
            own.execute("INSERT INTO plain VALUES ('d9', 'a sauna')")
        assert ids(hotels(file).search("pool"))
        assert hotels(file).deciding() == hotels(file).deciding()
        assert subject_of(hotels(file), collection=lambda: pytest.fail("needs no documents")).fingerprint
        subprocess.run([sys.executable, "-c", f"import sqlite3; sqlite3.connect({str(file)!r}).execute('SELECT 1 FROM plain')"])
        assert file.with_name(f"{file.name}-wal").exists()


def test_scores_are_sqlites_own_bm25_negated_and_weights_count(tmp_path: Path) -> None:
    file = make(tmp_path)
    with closing(sqlite3.connect(file)) as database:
        query = "SELECT id, -bm25(rooms, 1, 1, 1, 9, 1) FROM rooms WHERE rooms MATCH 'pool OR spa' ORDER BY 2 DESC"
        wanted = database.execute(query).fetchall()
    found = hotels(file, weights={"title": 9}).search("pool spa")
    assert [(hit.doc_id, hit.score) for hit in found] == wanted
    assert [hit.score for hit in hotels(file).search("pool spa")] != [score for _, score in wanted]


def test_ties_are_broken_by_document_id_descending(tmp_path: Path) -> None:
    rows = [(name, "", "", "", "pool") for name in ("a", "c", "b")] + [(f"x{n}", "", "", "", "none") for n in range(9)]
    assert ids(hotels(make(tmp_path, rows=rows)).search("pool", k=2)) == ["c", "b"]


def test_only_the_named_columns_are_searched(tmp_path: Path) -> None:
    file = make(tmp_path)
    assert set(ids(hotels(file, columns=["title"]).search("pool spa"))) == {"d1", "d3"}
    assert set(ids(hotels(file, columns=["body"]).search("family children"))) == {"d2"}


def test_operators_and_quotes_are_only_words(tmp_path: Path) -> None:
    file = make(tmp_path)
    assert set(ids(hotels(file).search("AND"))) == {"d3", "d4"}  # the word "and"
    assert ids(hotels(file).search("NOT")) == []
    assert ids(hotels(file).search("title:Pool")) == []  # a phrase of two words, which stands nowhere
    assert ids(hotels(file).search("po*")) == []
    assert ids(hotels(file).search("don't")) == ["d3"]
    assert set(ids(hotels(file).search('NEAR("roof" pool)'))) == {"d1", "d2", "d3"}


def test_the_tables_own_tokenizer_decides_what_a_word_is(tmp_path: Path) -> None:
    rows = [
        ("d1", "", "", "", "the user_id column"),
        ("d2", "", "", "", "the user identity"),
        ("d3", "", "", "", "user and id"),
    ]
    kept = make(tmp_path, rows=rows, options=", tokenize=\"unicode61 tokenchars '_'\"")
    assert ids(hotels(kept).search("user_id")) == ["d1"]
    split = make(tmp_path, rows=rows, name="split.sqlite")
    assert ids(hotels(split).search("user_id")) == ["d1"]  # a phrase: never "user identity"
    assert set(ids(hotels(split).search("user id"))) == {"d1", "d2", "d3"}


def test_match_all_asks_for_every_word(tmp_path: Path) -> None:
    file = make(tmp_path)
    assert ids(hotels(file, match="all").search("indoor -- pool !!!")) == ["d3"]
    assert len(hotels(file).search("indoor -- pool !!!")) == 3


def test_a_question_without_words_finds_nothing_and_does_not_hide_wrong_settings(tmp_path: Path) -> None:
    file = make(tmp_path)
    for match in ("any", "all"):
        assert [hotels(file, match=match).search(text) for text in ("", " ", "!!!", '"')] == [[], [], [], []]
    with pytest.raises(InputError):
        hotels(file, table="nope").search("")


def test_a_scope_filters_by_column_as_text_and_only_as_a_value(tmp_path: Path) -> None:
    file = make(tmp_path)
    assert set(ids(hotels(file).search("pool", scope={"city": "Rome"}))) == {"d1", "d2"}
    assert ids(hotels(file).search("pool", scope={"city": "Rome", "stars": "4"})) == ["d2"]
    assert ids(hotels(file).search("pool", scope={"city": "Rome' OR '1'='1"})) == []
    with pytest.raises(InputError, match="cannot be searched within 'country'; 'rooms' has the columns 'id', 'city'"):
        hotels(file).search("pool", scope={"country": "Italy"})


def test_numbers_as_ids_and_scope_values_are_found(tmp_path: Path) -> None:
    file = tmp_path / "numbers.sqlite"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE VIRTUAL TABLE rooms USING fts5(id UNINDEXED, stars UNINDEXED, body)")
        database.executemany("INSERT INTO rooms VALUES (?, ?, ?)", [(7, 5, "pool"), (8, 4, "pool"), (9, 4, "spa")])
    assert ids(hotels(file).search("pool", scope={"stars": "5"})) == ["7"]
    assert ids(hotels(file, id="rowid").search("spa")) == ["3"]


def test_passages_of_one_document_count_once_and_do_not_use_up_k(tmp_path: Path) -> None:
    rows = [("d1", "", f"p{n}", "", "pool") for n in range(20)] + [("d2", "", "p1", "", "pool by the sea in the garden")]
    rows += [(f"x{n}", "", "p1", "", "nothing here") for n in range(50)]
    file = make(tmp_path, rows=rows)
    found = hotels(file, chunk="stars").search("pool", k=2)
    assert ids(found) == ["d1", "d2"]
    assert found[1].chunk == "p1"
    assert ids(hotels(file, duplicates="first").search("pool", k=2)) == ["d1", "d2"]
    with pytest.raises(BadAnswer, match="document 'd1' twice"):
        hotels(file).search("pool", k=2)


def test_more_hits_than_sqlite_can_count_are_all_there_are(tmp_path: Path) -> None:
    assert len(hotels(make(tmp_path)).search("pool", k=10**19)) == 3


def test_a_content_table_may_hold_ids_and_scope(tmp_path: Path) -> None:
    file = tmp_path / "content.sqlite"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute('CREATE TABLE "the docs"(number INTEGER PRIMARY KEY, name TEXT, city TEXT, search TEXT, body TEXT)')
        rows = [(number, doc, city, "x", body) for number, (doc, city, _, _, body) in enumerate(ROWS, 100)]
        database.executemany('INSERT INTO "the docs" VALUES (?, ?, ?, ?, ?)', rows)
        database.execute("CREATE VIRTUAL TABLE search USING fts5(body, content='the docs', content_rowid='number')")
        database.execute("INSERT INTO search(search) VALUES ('rebuild')")
    both = hotels(file, table="search", content="the docs", id="name")
    assert set(ids(both.search("pool"))) == {"d1", "d2", "d3"}
    assert ids(both.search("pool", k=1)) == ids(both.search("pool"))[:1]
    assert ids(both.search("pool", scope={"city": "Oslo"})) == ["d3"]
    with pytest.raises(InputError, match="has no table 'docs'; did you mean 'the docs'"):
        hotels(file, table="search", content="docs").search("pool")


def test_a_column_without_id_is_a_bad_answer(tmp_path: Path) -> None:
    file = tmp_path / "contentless.sqlite"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE VIRTUAL TABLE rooms USING fts5(id, body, content='')")
        database.execute("INSERT INTO rooms(rowid, id, body) VALUES (4, 'd1', 'pool')")
    with pytest.raises(BadAnswer, match="document id None"):
        hotels(file).search("pool")
    assert ids(hotels(file, id="rowid").search("pool")) == ["4"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"table": "plain"}, r"the table 'plain' of .* is no FTS5 table; its FTS5 tables: 'rooms'"),
        ({"table": "hotel"}, r"has no table 'hotel'; its FTS5 tables: 'rooms'"),
        ({"table": 'rooms"; DROP TABLE rooms; --'}, r"has no table"),
        ({"id": "name"}, r"id names the column 'name'; 'rooms' has the columns 'id', 'city', 'stars', 'title', 'body'"),
        ({"id": "id\" OR '1"}, r"id names the column"),
        ({"chunk": "passage"}, r"chunk names the column 'passage'"),
        ({"columns": ["text"]}, r"columns names the column 'text'"),
        ({"weights": {"text": 2}}, r"weights names the column 'text'"),
    ],
    ids=range(8),
)
def test_a_name_the_file_does_not_have_is_bad_input(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        hotels(make(tmp_path), **settings).search("pool")
    assert ";" in str(caught.value)


def test_a_file_without_any_fts5_table_says_so(tmp_path: Path) -> None:
    file = tmp_path / "plain.sqlite"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE rooms(id, body)")
    with pytest.raises(InputError, match="no FTS5 table; it has no FTS5 table at all"):
        hotels(file).search("pool")


@pytest.mark.parametrize(
    "settings",
    [{"table": ""}, {"file": 5}, {"columns": "title"}, {"weights": {"title": "5"}}, {"weights": [1]}, {"match": "some"}],
    ids=range(6),
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="; write "):
        Sqlite(**{"file": "hotels.sqlite", "table": "rooms", **settings})


def test_a_missing_file_is_bad_input_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="there is no file"):
        hotels(tmp_path / "none.sqlite").search("pool")
    with pytest.raises(MissingInput, match="is a folder"):
        hotels(tmp_path).search("pool")
    assert list(tmp_path.iterdir()) == []


def test_an_odd_file_name_is_only_a_name(tmp_path: Path) -> None:
    file = make(tmp_path, name="a?mode=rwc&x#y %41.sqlite")
    assert len(hotels(file).search("pool")) == 3


def test_the_file_is_only_read(tmp_path: Path) -> None:
    file = make(tmp_path)
    before = file.read_bytes()
    hotels(file).search("pool")
    assert file.read_bytes() == before
    with closing(hotels(file)._open()) as database, pytest.raises(sqlite3.OperationalError, match="readonly"):
        database.execute("DELETE FROM rooms")


def test_what_another_program_writes_is_found_at_once(tmp_path: Path) -> None:
    file = make(tmp_path)
    mine = hotels(file)
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        for number in range(3):
            with writer:
                writer.execute("INSERT INTO rooms VALUES (?, '', '', '', 'jacuzzi')", (f"new{number}",))
            assert len(mine.search("jacuzzi")) == number + 1
        writer.execute("BEGIN EXCLUSIVE")  # with a write-ahead log readers need not wait
        assert len(mine.search("jacuzzi")) == 3


def test_a_damaged_file_is_a_bad_answer(tmp_path: Path) -> None:
    file = make(tmp_path)
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)
    with pytest.raises(BadAnswer, match="integrity_check"):
        hotels(file).search("pool")


def test_a_long_search_is_ended_in_time(tmp_path: Path) -> None:
    rows = [(f"d{number}", "", "", "", "pool spa wifi " * 3) for number in range(60_000)]
    mine = hotels(make(tmp_path, rows=rows), timeout=0.02)
    start = time.monotonic()
    with pytest.raises(TimedOut, match="did not answer within"):
        mine.search("pool spa wifi")
    assert time.monotonic() - start < 5


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples/connect/with_sqlite.py"
    ran = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "sea-view" in ran.stdout
