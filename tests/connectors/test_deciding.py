"""What decides a connected system's answers is in its fingerprint; where it is, and who asks, is not."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ringtrue.retrieve.connectors import KINDS, connect, kind
from ringtrue.retrieve.connectors.base import Connector

USUAL_ASIDE: dict[str, Any] = {"timeout": 3.0, "retries": 0}
CREDENTIALS = {"user_env": "A", "password_env": "B"}


class Store:
    """Whatever LangChain and LlamaIndex ask of an object."""

    def invoke(self, text: str) -> list[Any]:
        return []

    def retrieve(self, text: str) -> list[Any]:
        return []


class Other(Store):
    pass


HTTP = {
    "url": "https://search.example.com/find",
    "method": "POST",
    "body": {"q": "{text}", "boost": {"title": 2}, "apiKey": "abc-123"},
    "params": {"lang": "en", "key": "abc-123"},
}
DATABASE = {"host": "db.example.com", "dbname": "shop", "table": "pages", "id": "code"}
AT_DATABASE: list[dict[str, Any]] = [
    {"host": "10.0.0.7"}, {"port": 5433}, {"user": "reader"}, {"password_env": "X"}, {"dsn_env": "DSN"}, {"sslmode": "disable"},
]  # fmt: skip
SEARCH: dict[str, Any] = {
    "url": "https://es.example.com:9200",
    "index": "shop",
    "fields": ["title^2", "body"],
    "filters": {"a": "a"},
}
AT_SEARCH: list[dict[str, Any]] = [
    {"url": "http://localhost:9201/"}, CREDENTIALS, {"api_key_env": "K"}, {"token_env": "T"}, {"ca_file": "ca.pem"},
]  # fmt: skip
OF_SEARCH: list[dict[str, Any]] = [
    {"url": "https://es.example.com:9200/tenant-b"}, {"index": "shop-2"}, {"fields": ["title^3", "body"]},
    {"filters": {"a": "b"}}, {"max_clauses": 10}, {"id": "sku"}, {"chunk": "_id"},
    {"body": {"size": "{k}", "query": {"match": {"body": "{text}"}}}},
    {"mode": "vector", "vector_field": "v"}, {"model": "other"},
]  # fmt: skip
CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "http": (
        HTTP,
        [
            {"url": "https://search.example.com/find2"},
            {"url": "https://search.example.com/find?index=b"},
            {"body": {**HTTP["body"], "boost": {"title": 3}}},  # type: ignore[dict-item]
            {"params": {**HTTP["params"], "lang": "de"}},  # type: ignore[dict-item]
            {"method": "GET", "body": None, "params": {"q": "{text}"}},
            {"hits": "results"}, {"id": "sku"}, {"score": ""}, {"chunk": "part"}, {"lower_is_better": True},
            {"null_is_empty": True}, {"duplicates": "first"},
        ],
        [
            {"url": "http://me:geheim@127.0.0.1:8080/find"},
            {"url": "https://search.example.com/find?api_key=s3cret"},
            {"body": {**HTTP["body"], "apiKey": "other"}},  # type: ignore[dict-item]
            {"params": {**HTTP["params"], "key": "other"}},  # type: ignore[dict-item]
            {"headers": {"X-Tenant": "b"}}, {"token_env": "T", "token_header": "X-Key", "token_prefix": ""}, CREDENTIALS,
            {"ca_file": "ca.pem"}, {"plant": {"url": "https://a.example.com/{id}"}},
            {"lookup": {"url": "https://a.example.com/{id}"}}, {"unplant": {"url": "https://a.example.com/{id}"}},
            {"title": "heading", "text": "body"},
        ],
    ),
    "mcp": (
        {"command": ["uvx", "notes"], "tool": "search", "arguments": {"query": "{text}", "limit": "{k}", "token": "abc"}},
        [
            {"command": ["uvx", "notes-2"]}, {"args": ["--fast"]}, {"tool": "find"}, {"arguments": {"query": "{text}"}},
            {"env": ["LANGUAGE"]}, {"hits": "x"}, {"id": "key"}, {"score": ""}, {"chunk": "p"}, {"lower_is_better": True},
            {"command": (), "url": "https://example.com/mcp"},
        ],
        [
            {"command": ["/usr/local/bin/uvx", "notes"]}, {"start_timeout": 5.0},
            {"arguments": {"query": "{text}", "limit": "{k}", "token": "other"}},
            {"unplant": {"tool": "drop", "arguments": {"id": "{id}"}}}, {"folder": "/"},
            {"lookup": {"tool": "show", "arguments": {"id": "{id}"}, "source_hash": "hash"}},
            {"title": "heading", "text": "body"},
        ],
    ),
    "command": (
        {"command": ["python3", "search.py", "--top=5", "--token=abc", "--server", "http://localhost:9200/shop"]},
        [
            {"command": ["python3", "find.py", "--top=5", "--token=abc", "--server", "http://localhost:9200/shop"]},
            {"command": ["python3", "search.py", "--top=9", "--token=abc", "--server", "http://localhost:9200/shop"]},
            {"command": ["python3", "search.py", "--top=5", "--token=abc", "--server", "http://localhost:9200/other"]},
            {"env": ["LANGUAGE"]},
        ],
        [
            {"command": ["/usr/bin/python3", "search.py", "--top=5", "--token=xyz", "--server", "https://es.example.com/shop"]},
            {"plant": ["python3", "write.py"]}, {"folder": "/"},
        ],
    ),
    "postgres": (
        {**DATABASE, "columns": ["title"]},
        [
            {"table": "posts"}, {"dbname": "shop2"}, {"id": "sku"}, {"chunk": "part"}, {"metadata": "facts"},
            {"columns": ["body"]}, {"columns": (), "vector": "search"}, {"language": "german"}, {"weights": {"title": 2}},
            {"match": "all"}, {"rank": "ts_rank"}, {"normalization": 2}, {"session": {"work_mem": "64MB"}},
            {"table": None, "columns": (), "sql": "SELECT id, 1 AS score FROM t WHERE a = %(text)s LIMIT %(k)s"},
        ],
        [*AT_DATABASE, {"plant": {"title": "{title}"}}],
    ),
    "pgvector": (
        DATABASE,
        [{"vector": "v"}, {"model": "other"}, {"metric": "l2"}, {"exact": False}, {"session": {"hnsw.ef_search": 9}}],
        AT_DATABASE,
    ),
    "opensearch": (SEARCH, [*OF_SEARCH, {"pipeline": "join"}], AT_SEARCH),
    "elasticsearch": (SEARCH, [*OF_SEARCH, {"candidates": 500}], AT_SEARCH),
    "qdrant": (
        {"url": "https://q.example.com:6333", "collection": "shop"},
        [
            {"collection": "b"}, {"vector": "v"}, {"model": "other"}, {"document": "d"}, {"chunk": "c"},
        ],
        [{"url": "http://localhost:6333"}, {"api_key_env": "K"}, {"ca_file": "ca.pem"}, {"plant": {"text": "{text}"}}],
    ),
    "milvus": (
        {"uri": "http://m.example.com:19530", "collection": "shop"},
        [
            {"collection": "b"}, {"database": "b"}, {"vector": "v"}, {"id": "sku"}, {"chunk": "c"}, {"model": "other"},
            {"consistency": "Bounded"}, {"params": {"ef": 9}},
        ],
        [{"uri": "https://localhost:1"}, {"token_env": "T"}, {"ca_file": "ca.pem"}, {"plant": {"text": "{text}"}}],
    ),
    "chroma": (
        {"collection": "shop"},
        [{"collection": "b"}, {"tenant": "b"}, {"database": "b"}, {"model": "other"}, {"document": "d"}],
        [
            {"url": "https://c.example.com"}, {"token_env": "T", "token_header": "Authorization"}, {"ca_file": "ca.pem"},
            {"plant": {"a": "{tenant}"}},
        ],
    ),
    "sqlite": (
        {"file": "a.sqlite", "table": "pages"},
        [
            {"file": "b.sqlite"}, {"table": "b"}, {"id": "b"}, {"columns": ["b"]}, {"weights": {"b": 2}}, {"chunk": "b"},
            {"content": "b"}, {"match": "all"},
        ],
        [{"plant": {"title": "{title}"}}],
    ),
    "langchain": (
        {"retriever": Store()},
        [
            {"retriever": Other()}, {"retriever": None, "object": "shop.search:store"},
            {"score": "s"}, {"document": "d"}, {"chunk": "c"}, {"lower_is_better": True}, {"pass_k": False},
        ],
        [{"retriever": Store()}],
    ),
    "llamaindex": (
        {"object": "shop.search:index"},
        [{"object": "shop.search:other"}, {"document": "d"}, {"chunk": "c"}, {"lower_is_better": True}, {"pass_k": False}],
        [],
    ),
    "run": ({"path": "a.run"}, [{"path": "b.run"}, {"queries": "q.tsv"}, {"format": "trec"}], []),
}  # fmt: skip


def made(name: str, settings: dict[str, Any], called: str = "one") -> Connector:
    return kind(name)(**settings, name=called)


def printed(connector: Connector) -> str:
    return json.dumps(connector.deciding(), sort_keys=True)


def test_every_kind_of_connection_is_asked() -> None:
    assert set(CASES) == set(KINDS)


@pytest.mark.parametrize(
    ("name", "change"), [(name, change) for name, (_, deciding, _) in CASES.items() for change in deciding]
)
def test_a_setting_that_decides_the_answers_changes_the_print(name: str, change: dict[str, Any]) -> None:
    settings = CASES[name][0]
    assert printed(made(name, {**settings, **change})) != printed(made(name, settings))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (name, change)
        for name, (_, _, aside) in CASES.items()
        for change in [*aside, *({key: value} for key, value in USUAL_ASIDE.items())]
    ],
)
def test_an_address_a_secret_and_patience_do_not(name: str, change: dict[str, Any]) -> None:
    settings = CASES[name][0]
    assert printed(made(name, {**settings, **change}, "other")) == printed(made(name, settings))


@pytest.mark.parametrize("name", KINDS)
def test_every_setting_is_tried_here_or_the_same_for_all(name: str) -> None:
    """A setting that is added to a connector must be thought about: it decides, or it is put aside."""
    settings, deciding, aside = CASES[name]
    tried = {key for part in (settings, *deciding, *aside, USUAL_ASIDE) for key in part}
    known = {item.name for item in fields(kind(name))}
    shared = {"name", "duplicates", "plant", "object", "retriever", "ca_file"}
    assert known - tried <= shared | ({"token_env"} if name in ("mcp", "qdrant") else set()) | _in_other_cases(name)


def _in_other_cases(name: str) -> set[str]:
    """Settings that a class shares with another kind, which tries them."""
    family = {"pgvector": "postgres", "llamaindex": "langchain"}
    other = family.get(name)
    return set() if other is None else {key for part in CASES[other][1] + CASES[other][2] for key in part}


def test_an_mcp_server_by_address_is_its_path() -> None:
    one = {"tool": "search", "url": "https://a.example.com/mcp"}
    other = {**one, "url": "http://localhost:8000/mcp", "token_env": "T", "ca_file": "ca.pem"}
    assert printed(made("mcp", other)) == printed(made("mcp", one))
    assert printed(made("mcp", {**one, "url": "https://a.example.com/other"})) != printed(made("mcp", one))


def test_nothing_secret_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("T", "tok-5f2a9c")
    connector = connect(
        {
            **HTTP,
            "kind": "http",
            "url": "https://me:geheim@search.example.com:8443/find?sig=s1gned&page=1",
            "headers": {"X-Key": "h3ader"},
            "token_env": "T",
        }
    )
    said = printed(connector)
    for word in ("tok-5f2a9c", "geheim", "example.com", "8443", "s1gned", "h3ader", "abc-123"):
        assert word not in said
    assert "page" in said


@pytest.mark.parametrize(("name", "setting"), [("sqlite", "file"), ("run", "path"), ("run", "queries")])
def test_a_file_is_its_name_and_what_it_holds(tmp_path: Path, name: str, setting: str) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "a").write_text("one")
    here, there = (made(name, {**CASES[name][0], setting: str(tmp_path / place / "a")}) for place in ("here", "there"))
    before = printed(here)
    assert printed(there) == before
    assert str(tmp_path) not in before
    (tmp_path / "here/a").write_text("two")
    os.utime(tmp_path / "here/a", ns=(1, 1))
    assert printed(here) != before


def test_a_program_is_what_its_files_hold(tmp_path: Path) -> None:
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "search.py").write_text("print(1)")
        (tmp_path / place / "words.txt").write_text("pool")
    settings = {"command": [sys.executable, "search.py", "--words=words.txt"]}
    here = made("command", {**settings, "folder": str(tmp_path / "here")})
    there = made("command", {**settings, "folder": str(tmp_path / "there")})
    whole = [sys.executable, str(tmp_path / "here/search.py"), f"--words={tmp_path / 'there/words.txt'}"]
    before = printed(here)
    assert printed(there) == before
    assert printed(made("command", {"command": whole})) == before
    assert str(tmp_path) not in before
    for file in ("search.py", "words.txt"):
        (tmp_path / "here" / file).write_text("something else")
        assert printed(here) != before
        before = printed(here)


def test_a_model_in_a_folder_is_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small/model.onnx").write_text("one")
    connector = made("chroma", {"collection": "shop", "model": str(tmp_path / "small")})
    before = printed(connector)
    assert str(tmp_path) not in before
    (tmp_path / "small/model.onnx").write_text("other")
    assert printed(connector) != before
