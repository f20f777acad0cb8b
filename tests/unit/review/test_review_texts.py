"""Reviewers see text: of what a connection answered, of a corpus, and also for pairs that were queued before it was known."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from connectors.faults import LOOPBACK
from ringtrue.golden import load
from ringtrue.store import LoggedQuery, Store, timestamp

PLACES = {"pool": "An indoor pool, open until ten.", "spa": "Sauna and massage.", "bar": "Drinks until late."}


class Handler(BaseHTTPRequestHandler):
    """Answers every question with all places, as shops do: the text lies inside the hit."""

    def do_GET(self) -> None:
        hits = [{"id": name, "doc": {"heading": name.upper(), "body": text}} for name, text in PLACES.items()]
        body = json.dumps({"hits": [*hits, {"id": "lost", "doc": {}}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def shop() -> Iterator[str]:
    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: str) -> Path:
    """A YAML set without documents and the connection that is asked, with or without the paths of title and text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    query = {"query_id": "q1", "query_text": "where can I swim", "relevant_docs": [{"doc_id": "pool", "grade": 3}]}
    Path("gold.yaml").write_text(json.dumps({"id": "gold", "version": "1.0.0", "queries": [query]}))
    paths = "title = 'doc.heading'\ntext = 'doc.body'\n"
    settings = f"kind = 'http'\nurl = '{shop}'\nparams = {{q = '{{text}}'}}\nscore = ''\n"
    Path("ringtrue.toml").write_text(f"[connections.shop]\n{settings}{paths}\n[connections.plain]\n{settings}")
    return tmp_path


def evaluated(ringtrue: Callable[..., Any], connection: str, out: str) -> None:
    words = ("--golden", "gold.yaml", "--retriever", f"connect('{connection}')", "--out", out, "--no-store", "--no-cache")
    done = ringtrue("eval", *words)
    assert done.code == 0, done.err


def queued(ringtrue: Callable[..., Any], *words: str) -> dict[str, tuple[str, str]]:
    done = ringtrue("review", "add", "gold.yaml", "--store", "s.sqlite", *words)
    assert done.code == 0, done.err
    return shown()


def shown() -> dict[str, tuple[str, str]]:
    with Store.open("s.sqlite") as store:
        return {item.doc_id: (item.title, item.text) for item in store.review_items()}


TOLD = {"spa": ("SPA", PLACES["spa"]), "bar": ("BAR", PLACES["bar"]), "lost": ("", "")}


def test_reviewers_read_what_the_connection_answered(ringtrue: Callable[..., Any], folder: Path) -> None:
    evaluated(ringtrue, "shop", "runs/one")
    assert queued(ringtrue, "--run", "runs/one") == TOLD
    assert not load("gold.yaml").documents


def test_a_connection_with_titles_alone_gives_reviewers_the_titles(ringtrue: Callable[..., Any], folder: Path) -> None:
    settings = Path("ringtrue.toml").read_text()
    Path("ringtrue.toml").write_text(settings.replace("[connections.plain]\n", "[connections.plain]\ntitle = 'doc.heading'\n"))
    evaluated(ringtrue, "plain", "runs/titles")
    added = ringtrue("review", "add", "gold.yaml", "--store", "s.sqlite", "--run", "runs/titles")
    assert shown() == {"spa": ("SPA", ""), "bar": ("BAR", ""), "lost": ("", "")}
    assert "1 pair has no text for reviewers" in added.err
    evaluated(ringtrue, "shop", "runs/told")
    assert queued(ringtrue, "--run", "runs/told", "--run", "runs/titles") == TOLD


def test_queued_pairs_get_their_text_when_it_becomes_known(ringtrue: Callable[..., Any], folder: Path) -> None:
    evaluated(ringtrue, "plain", "runs/plain")
    assert queued(ringtrue, "--run", "runs/plain") == dict.fromkeys(TOLD, ("", ""))
    added = ringtrue("review", "add", "gold.yaml", "--store", "s.sqlite", "--run", "runs/plain")
    assert "3 pairs have no text for reviewers; add it: ringtrue review texts DOCUMENTS" in added.err
    evaluated(ringtrue, "shop", "runs/told")
    assert queued(ringtrue, "--run", "runs/told") == TOLD
    again = ringtrue("review", "add", "gold.yaml", "--store", "s.sqlite", "--run", "runs/plain")
    assert "1 pair has no text" in again.err


def test_a_corpus_gives_the_text(ringtrue: Callable[..., Any], folder: Path) -> None:
    rows = [{"_id": name, "title": name.upper(), "text": text} for name, text in PLACES.items()]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    evaluated(ringtrue, "plain", "runs/plain")
    queued(ringtrue, "--run", "runs/plain")
    given = ringtrue("review", "texts", "documents.jsonl", "--store", "s.sqlite", "--json")
    assert given.json == {"given": 2, "without": 1}
    assert shown() == TOLD
    Path("s.sqlite").unlink()
    assert queued(ringtrue, "--run", "runs/plain", "--corpus", "documents.jsonl") == TOLD
    assert ringtrue("review", "texts", "nowhere.jsonl", "--store", "s.sqlite").code == 2


def test_a_set_in_yaml_names_its_corpus(ringtrue: Callable[..., Any], folder: Path) -> None:
    rows = [{"_id": name, "title": name.upper(), "text": text} for name, text in PLACES.items()]
    Path("documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    record = json.loads(Path("gold.yaml").read_text())
    Path("gold.yaml").write_text(json.dumps({**record, "corpus": "documents.jsonl"}))
    evaluated(ringtrue, "plain", "runs/plain")
    assert queued(ringtrue, "--run", "runs/plain") == TOLD


@pytest.mark.parametrize(("connection", "silent"), [("shop", 1), ("plain", 4)])
def test_a_refresh_keeps_the_texts_that_the_search_answered(
    ringtrue: Callable[..., Any], folder: Path, connection: str, silent: int
) -> None:
    Path("gold.csv").write_text("query,doc_id,relevance\nwhere can I swim,pool,3\n")
    with Store.open("s.sqlite") as store:
        asked = timestamp(datetime.now(UTC))
        store.add_queries([LoggedQuery("eq_1", "where may I eat late", "desk", asked, result_ids=("bar",))])
    words = ("golden", "refresh", "gold.csv", "--retriever", f"connect('{connection}')", "--store", "s.sqlite")
    found = ringtrue(*words)
    assert found.code == 0, found.err
    given = TOLD | {"pool": ("POOL", PLACES["pool"])} if connection == "shop" else dict.fromkeys(("pool", *TOLD), ("", ""))
    assert shown() == given
    told = "1 pair has" if silent == 1 else f"{silent} pairs have"
    assert f"{told} no text to judge by; add it: ringtrue review texts FILE" in found.err
    assert ringtrue(*words, "--json").json["without_text"] == silent
