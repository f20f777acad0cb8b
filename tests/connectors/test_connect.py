"""What every connection shares: how it is named and described, where its paths begin, and that it travels by its settings."""

from __future__ import annotations

import dataclasses
import math
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connectors.faults import answering
from ringtrue.errors import BadAnswer, InputError, RingtrueError, Unreachable
from ringtrue.retrieve import build
from ringtrue.retrieve.connectors import KINDS, RERANKERS, connect, kind, open_connection
from ringtrue.retrieve.connectors.base import Connector
from ringtrue.retrieve.connectors.http import Http
from ringtrue.retrieve.connectors.sqlite import Sqlite
from ringtrue.retrieve.connectors.web import one_line, redacted
from ringtrue.retrieve.protocol import Scope
from ringtrue.testing.retrievers import raises

LEAST: dict[str, dict[str, Any]] = {
    "http": {"url": "https://search.example.com", "body": {"q": "{text}"}, "token_env": "SHOP_TOKEN"},
    "mcp": {"tool": "search", "command": ["notes-server"]},
    "command": {"command": ["search"]},
    "postgres": {"dsn_env": "SHOP_DSN", "table": "hotels", "columns": ["body"]},
    "pgvector": {"dsn_env": "SHOP_DSN", "table": "hotels"},
    "opensearch": {"url": "https://search.example.com", "index": "shop", "fields": ["title"]},
    "elasticsearch": {"url": "https://search.example.com", "index": "shop", "fields": ["title"]},
    "qdrant": {"url": "https://search.example.com", "collection": "shop"},
    "milvus": {"uri": "https://search.example.com", "collection": "shop"},
    "chroma": {"collection": "shop"},
    "sqlite": {"file": "hotels.sqlite", "table": "rooms"},
    "langchain": {"object": "shop.search:retriever"},
    "llamaindex": {"object": "shop.search:index"},
    "run": {"path": "last.run"},
}
SEARCH = """
import json, os, sys
for line in sys.stdin:
    print(json.dumps({"hits": [os.getcwd(), *sys.argv[1:]]}), flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Rows(Connector):
    """A system that answers what it is told, or fails so."""

    rows: Any = ()
    key_env: str | None = None

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        if isinstance(self.rows, Exception):
            raise self.rows
        return self.rows


@pytest.fixture
def toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes ringtrue.toml into a folder above the current one."""
    (tmp_path / "far" / "away").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "far" / "away")

    def write(text: str) -> Path:
        (tmp_path / "ringtrue.toml").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def fts5(file: Path) -> Path:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE VIRTUAL TABLE rooms USING fts5(id UNINDEXED, body)")
        database.executemany("INSERT INTO rooms VALUES (?, ?)", [("d1", "pool pool"), ("d2", "a pool"), ("d3", "spa")])
    return file


# What is connected


@pytest.mark.parametrize("system", [5, None, 2.5, ["shop"], Path("shop")], ids=str)
def test_what_is_no_connection_is_an_input_error(system: Any) -> None:
    with raises(InputError) as messages:
        connect(system)
    assert "is not a connection; give a name from ringtrue.toml" in messages[0]


def test_odd_settings_are_named_and_not_stumbled_over() -> None:
    with raises(InputError) as messages:
        connect({"kind": "sqlite", "file": "x", "table": "y", 5: 1})  # type: ignore[dict-item]
    assert "has the setting '5'" in messages[0]
    with raises(InputError):
        connect(LEAST["sqlite"] | {"kind": "sqlite"}, name=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind_of_it", RERANKERS)
def test_a_reranker_that_is_asked_to_search_says_how_it_is_used(toml: Any, kind_of_it: str) -> None:
    toml(f'[connections.jina]\nkind = "{kind_of_it}"\nurl = "https://example.com/rerank"\n')
    for opened in (lambda: connect("jina"), lambda: build("connect('jina')")):
        with raises(InputError) as messages:
            opened()
        assert "which reranks and does not search; write … >> rerank(connection='jina')" in messages[0]
        assert "did you mean" not in messages[0]


def test_a_misspelled_kind_of_reranker_is_recognised() -> None:
    with raises(InputError) as messages:
        kind("rerenk")
    assert "did you mean 'rerank'?" in messages[0]


def test_a_connection_without_a_name_says_that_the_name_is_missing(toml: Any) -> None:
    for text, there in (("", "none"), ('[connections.old]\nkind = "run"\npath = "old.run"\n', "'old'")):
        toml(text)
        for opened in (
            lambda: connect(""),
            lambda: connect(" "),
            lambda: open_connection(None),  # type: ignore[arg-type]
            lambda: build("connect"),
        ):
            with raises(InputError) as messages:
                opened()
            assert "connect() needs a name; write connect('shop')" in messages[0]
            assert f"(available: {there})" in messages[0]


# Where paths begin


def test_a_program_from_ringtrue_toml_runs_in_the_folder_of_that_file(toml: Any) -> None:
    folder = toml(f'[connections.mine]\nkind = "command"\ncommand = ["{sys.executable}", "search.py", "x"]\n')
    (folder / "search.py").write_text(SEARCH, encoding="utf-8")
    mine = open_connection("mine")
    assert [hit.doc_id for hit in mine.search("pool")] == [str(folder), "x"]
    mine.close()  # type: ignore[attr-defined]


def test_a_relative_program_and_a_relative_folder_begin_there_too(toml: Any) -> None:
    folder = toml(
        '[connections.script]\nkind = "command"\ncommand = ["tools/search"]\n'
        f'[connections.inside]\nkind = "command"\ncommand = ["{sys.executable}", "search"]\nfolder = "tools"\n'
    )
    (folder / "tools").mkdir()
    (folder / "tools" / "search").write_text(f"#!{sys.executable}\n{SEARCH}", encoding="utf-8")
    (folder / "tools" / "search").chmod(0o755)
    for name, place in (("script", folder), ("inside", folder / "tools")):
        opened = open_connection(name)
        assert [hit.doc_id for hit in opened.search("pool")] == [str(place)]
        opened.close()  # type: ignore[attr-defined]


def test_a_connection_made_in_python_begins_in_the_current_folder(toml: Any) -> None:
    folder = toml("")
    (folder / "far" / "away" / "search.py").write_text(SEARCH, encoding="utf-8")
    mine = connect({"kind": "command", "command": [sys.executable, "search.py"]})
    assert [hit.doc_id for hit in mine.search("pool")] == [str(folder / "far" / "away")]
    mine.close()  # type: ignore[attr-defined]


def test_every_path_of_every_kind_begins_in_the_folder_of_ringtrue_toml(toml: Any, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name, least in LEAST.items():
        found = kind(name)
        settings = dict(least)
        if name == "mcp":
            del settings["command"]
            settings["url"] = "https://example.com/mcp"
        known = {item.name for item in dataclasses.fields(found)}
        paths = {path: "there" for path in found.PATHS if path in known and (name, path) != ("mcp", "folder")}
        lines = [f"{key} = {_toml(value)}" for key, value in {**settings, **paths}.items()]
        toml(f'[connections.it]\nkind = "{name}"\n' + "\n".join(lines) + "\n")
        opened = open_connection("it")
        assert {path: str(getattr(opened, path)) for path in paths} == {path: str(tmp_path / "there") for path in paths}, name


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    return repr(value).replace("'", '"')


def test_a_model_that_is_a_folder_beside_ringtrue_toml_is_found_and_a_name_stays_one(toml: Any) -> None:
    text = '[connections.{0}]\nkind = "chroma"\ncollection = "shop"\nmodel = "{0}"\n'
    folder = toml(text.format("my-model") + text.format("all-MiniLM-L6-v2"))
    (folder / "my-model").mkdir()
    assert open_connection("my-model").model == str(folder / "my-model")  # type: ignore[attr-defined]
    assert open_connection("all-MiniLM-L6-v2").model == "all-MiniLM-L6-v2"  # type: ignore[attr-defined]


def test_a_home_that_nobody_has_is_an_input_error(toml: Any) -> None:
    toml('[connections.old]\nkind = "run"\npath = "~no-such-user-here/old.run"\n')
    with raises(InputError) as messages:
        open_connection("old")
    assert "path begins with ~ of an unknown user" in messages[0]


# Edges


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -math.inf, 0, -1, 1e300, 10**400, True, "5", None], ids=range(10))
def test_a_timeout_that_no_clock_can_wait_for_is_refused(seconds: Any) -> None:
    with raises(InputError) as messages:
        Rows(timeout=seconds)
    assert "write seconds above 0, at most 86400" in messages[0]
    with raises(InputError):
        connect({"kind": "http", **LEAST["http"], "timeout": seconds})


def test_a_variable_that_is_no_name_is_refused_before_it_is_looked_up() -> None:
    with raises(InputError) as messages:
        Rows(key_env=5)  # type: ignore[arg-type]
    assert "invalid key_env=5; write a text" in messages[0]


@pytest.mark.parametrize("row", ["d\ud800", ("d\udfff", 1.0), {"doc_id": "d", "chunk": "d#\ud83d"}], ids=range(3))
def test_an_id_with_half_a_character_is_a_bad_answer_that_can_be_printed(row: Any) -> None:
    with raises(BadAnswer) as messages:
        Rows(rows=["fine", row], retries=0).search("pool")
    assert "hit 2 has the" in messages[0]
    assert "an unpaired surrogate" in messages[0]
    assert messages[0].encode()


def test_whole_characters_beyond_the_basic_plane_are_fine() -> None:
    assert [hit.doc_id for hit in Rows(rows=["🏊", "مسبح"]).search("pool")] == ["🏊", "مسبح"]


def test_a_message_about_half_a_character_can_be_printed() -> None:
    with raises(BadAnswer) as messages:
        Rows(rows=["d\ud800", "d\ud800"]).search("pool")
    assert "twice" in messages[0]
    assert messages[0].encode()


# Secrets


@pytest.mark.parametrize(
    "rows",
    [
        [{"token": "sup3rs3cret"}],
        [{"a long name of a field in front": "cut in the middle of sup3rs3cret"}],
        {"token": "sup3rs3cret"},
        [("d1", "sup3rs3cret")],
        ["sup3rs3cret", "sup3rs3cret"],
        BadAnswer("it says sup3rs3cret; mend it"),
    ],
    ids=range(6),
)
def test_no_answer_carries_a_secret_into_a_message_r7(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "sup3rs3cret")
    with raises(BadAnswer) as messages:
        Rows(rows=rows, key_env="SHOP_KEY", name="leak").search("pool")
    assert messages[0].startswith("leak") or isinstance(rows, Exception)
    assert "sup3rs" not in messages[0]


def test_what_was_taken_out_of_a_message_is_in_no_traceback_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "sup3rs3cret")
    with pytest.raises(Unreachable, match="tried 2 times") as caught:
        Rows(rows=Unreachable("sup3rs3cret expired; renew it"), key_env="SHOP_KEY", retries=1).search("pool")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_missing_variable_does_not_hide_what_went_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_KEY", raising=False)
    with pytest.raises(BadAnswer, match="the real reason"):
        Rows(rows=BadAnswer("the real reason; mend it"), key_env="SHOP_KEY").search("pool")


def test_the_name_of_a_connection_stays_even_where_it_is_a_secret_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "shop")
    with pytest.raises(BadAnswer, match=r"^shop returned"):
        Rows(rows="text", key_env="SHOP_KEY", name="shop").search("pool")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("key a/b &c'ü", "key …"),
        ("?key=a/b%20%26c%27%C3%BC&q=1", "?key=…&q=1"),
        ("?key=a%2Fb+%26c%27%C3%BC&q=1", "?key=…&q=1"),
        ("<b>a/b &amp;c&#x27;ü</b>", "<b>…</b>"),
        ('{"key": "a/b &c\'\\u00fc"}', '{"key": "…"}'),
        ("cut as 'a/b &c; check", "cut as '…; check"),
        ("cut at the end a/b &c", "cut at the end …"),
        ("a/b & other things", "a/b & other things"),
    ],
    ids=range(8),
)
def test_a_secret_is_found_however_it_is_spelled(text: str, wanted: str) -> None:
    assert redacted(text, ["a/b &c'ü", "", "abc"]) == wanted


def test_words_of_others_are_one_line_that_no_terminal_obeys() -> None:
    assert one_line("a\r\nb\x1b[31m\tc\u202e\ud800") == "a b [31m c"


# Another process


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_travels_to_another_process_by_its_settings_only(name: str) -> None:
    made = connect({"kind": name, **LEAST[name]}, name="it")
    made.__dict__["_opened_before"] = lambda: "what no process can send"
    copy = pickle.loads(pickle.dumps(made))
    assert copy == made
    assert type(copy) is type(made)
    assert copy.__dict__.keys() == {item.name for item in dataclasses.fields(made)}


def test_a_connection_answers_the_same_in_another_process(tmp_path: Path) -> None:
    here = Sqlite(file=fts5(tmp_path / "hotels.sqlite"), table="rooms")
    wanted = [(hit.doc_id, hit.score) for hit in here.search("pool")]
    code = (
        "import pickle, sys\nit = pickle.load(sys.stdin.buffer)\nprint([(hit.doc_id, hit.score) for hit in it.search('pool')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(here), capture_output=True, timeout=60)
    assert ran.stdout.decode().strip() == str(wanted), ran.stderr.decode()


def test_what_travels_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "sup3rs3cret")
    with answering([{"hits": []}]) as server:
        shop = Http(url=server.url, params={"q": "{text}"}, token_env="SHOP_TOKEN")
        shop.search("pool")
    assert b"sup3rs3cret" not in pickle.dumps(shop)


def test_more_hits_than_a_system_can_count_are_no_raw_error(tmp_path: Path) -> None:
    made = Sqlite(file=fts5(tmp_path / "hotels.sqlite"), table="rooms")
    assert [hit.doc_id for hit in made.search("pool", k=10**19)] == ["d1", "d2"]
    with pytest.raises(RingtrueError):
        connect({"kind": "milvus", **LEAST["milvus"]}).search("pool", k=10**19)
    with pytest.raises(RingtrueError):
        connect({"kind": "opensearch", **LEAST["opensearch"]}).search("pool", k=10**19)
