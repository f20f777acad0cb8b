"""Planting through requests, programs and MCP tools that somebody set up for it."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from connectors.faults import LOOPBACK, Answer, Answering, Request, answering, free_port
from connectors.writing_suite import DOCUMENTS, GOLDEN, IDS, TENANT, HeldSuite, WritingSuite
from ringtrue.errors import AccessDenied, BadAnswer, InputError, Unreachable
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.command import Command
from ringtrue.retrieve.connectors.http import Http
from ringtrue.retrieve.connectors.mcp import Mcp
from ringtrue.run import PartlyPlanted, plant, planted, remove_planted

TOKEN = "tok-5f2a9c"


class Shop:
    """A search with documents that are put, shown and deleted by their address; the token is asked for everywhere."""

    def __init__(self) -> None:
        self.documents: dict[str, Any] = {"d1": {"heading": "Pool", "content": "a pool", "info": {}}}
        self.refuses: set[str] = set()

    def answer(self, request: Request) -> Answer:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return Answer({"error": "who are you"}, 401)
        place = urlsplit(request.path)
        if place.path == "/find":
            return Answer({"hits": self.find(parse_qs(place.query)["q"][0])})
        key = unquote(place.path.removeprefix("/documents/"))
        if "/" in place.path.removeprefix("/documents/"):
            return Answer({"error": "no such page"}, 400)
        if request.method == "PUT":
            if key in self.refuses:
                return Answer({"error": f"cannot take {key} with {TOKEN}"}, 422)
            self.documents[key] = request.json()
            return Answer(b"", 204)
        if request.method == "DELETE":
            found = self.documents.pop(key, None)
            return Answer(b"", 404 if found is None else 204)
        found = self.documents.get(key)
        return Answer({"error": "none"}, 404) if found is None else Answer(found)

    def find(self, text: str) -> list[dict[str, Any]]:
        words = set(text.lower().split())
        scores = {
            key: len(words & set(f"{found['heading']} {found['content']}".lower().split()))
            for key, found in self.documents.items()
        }
        return [{"id": key, "score": score} for key, score in sorted(scores.items(), key=lambda pair: -pair[1]) if score]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    return Shop()


@pytest.fixture
def server(shop: Shop) -> Iterator[Answering]:
    with answering(shop.answer) as running:
        yield running


def http(url: str, **settings: Any) -> Http:
    body = {
        "heading": "{title}",
        "content": "{text}",
        "info": {"owner": "{tenant}", "hash": "{source_hash}", "m": "{metadata}"},
    }
    usual: dict[str, Any] = {
        "url": f"{url}/find",
        "params": {"q": "{text}"},
        "token_env": "SHOP_TOKEN",
        "plant": {"url": f"{url}/documents/{{id}}", "method": "PUT", "body": body},
        "unplant": {"url": f"{url}/documents/{{id}}", "method": "DELETE"},
        "lookup": {"url": f"{url}/documents/{{id}}", "source_hash": "info.hash", "tenant": "info.owner"},
    }
    return connect({"kind": "http", **usual, **settings}, name="shop")  # type: ignore[return-value]


class OfTheShop:
    shop: Shop
    server: Answering

    @pytest.fixture(autouse=True)
    def _server(self, shop: Shop, server: Answering) -> None:
        self.shop, self.server = shop, server

    def everything(self) -> dict[str, Any]:
        return dict(self.shop.documents)

    def foreign(self, doc_id: str) -> None:
        self.shop.documents[doc_id] = {"heading": "Theirs", "content": "", "info": {}}

    def clear(self, doc_id: str) -> None:
        del self.shop.documents[doc_id]

    def marks(self, doc_id: str) -> tuple[str, str]:
        info = self.shop.documents[doc_id]["info"]
        return info["hash"], info["owner"]


class TestHttp(OfTheShop, HeldSuite):
    def make(self) -> Http:
        return http(self.server.url)

    def test_values_stay_values_and_metadata_goes_along(self) -> None:
        with planted(self.make(), GOLDEN, tenant=TENANT):
            found = self.shop.documents["golden:tiny:it's/odd 🏊"]
        assert found["content"] == DOCUMENTS[2].text
        assert found["info"]["m"] == {"lang": "de"}


BLIND = "does not tell what it holds under an id, so a record of yours might be replaced or removed and nothing is written"


@pytest.mark.parametrize("lookup", [None, {"url": "{}/documents/{{id}}", "tenant": "info.owner"}])
def test_a_shop_that_does_not_show_the_mark_is_not_written(
    shop: Shop, server: Answering, lookup: dict[str, str] | None
) -> None:
    shop.documents["golden:tiny:bicycles"] = {"heading": "Mine", "content": "", "info": {}}
    before = dict(shop.documents)
    shown = lookup and {**lookup, "url": lookup["url"].format(server.url)}
    for action in (plant, remove_planted):
        with pytest.raises(InputError, match=f"{BLIND}; say which request shows one, lookup = "):
            action(http(server.url, lookup=shown), GOLDEN)
    hidden = {"url": f"{server.url}/documents/{{id}}", "method": "PUT", "body": {"info": "sha:{source_hash}"}}
    with pytest.raises(InputError, match=r"stores no '{source_hash}' as a whole value"):
        plant(http(server.url, plant=hidden), GOLDEN)
    assert shop.documents == before


def test_a_refused_document_is_named_without_the_token_and_a_second_run_mends_it(shop: Shop, server: Answering) -> None:
    shop.refuses = {"golden:tiny:bicycles"}
    connector = http(server.url)
    with pytest.raises(PartlyPlanted) as problem:
        plant(connector, GOLDEN, tenant=TENANT)
    said = str(problem.value)
    assert "took 2 of 3 documents and refused 'golden:tiny:bicycles'" in said
    assert "HTTP 422" in said
    assert TOKEN not in said
    assert "\n" not in said
    shop.refuses = set()
    done = plant(connector, GOLDEN, tenant=TENANT)
    assert (done.written, done.unchanged) == (1, 2)


def test_wrong_credentials_and_nobody_there_are_said_without_addresses(
    server: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "wrong-secret")
    for connector, kind in (
        (http(server.url), AccessDenied),
        (http(f"http://{LOOPBACK}:{free_port()}", retries=0), Unreachable),
    ):
        with pytest.raises(kind) as problem:
            plant(connector, GOLDEN, tenant=TENANT)
        assert not any(word in str(problem.value) for word in ("wrong-secret", LOOPBACK))
    assert "wrong-secret" not in repr(connector)
    assert LOOPBACK not in repr(connector)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"plant": {"url": "ftp://x", "body": {"id": "{id}"}}}, "plant has no url that begins with http"),
        (
            {"plant": {"url": "http://x", "verb": "PUT", "body": {"id": "{id}"}}},
            "plant has an unknown 'verb'; did you mean 'url'",
        ),
        ({"plant": {"url": "http://x", "method": "SEND", "body": {"id": "{id}"}}}, "method 'SEND'"),
        ({"plant": {"url": "http://x", "body": {"text": "{text}"}}}, "plant has no '{id}'; write where"),
        ({"plant": {"url": "http://x/{id}", "body": {"text": "{txt}"}}}, "no placeholder '{txt}'; did you mean '{text}'"),
        ({"plant": "http://x"}, "invalid plant; write a table"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as problem:
        http("http://example.com", **settings)
    assert said in str(problem.value)


def test_what_cannot_be_removed_is_not_written(shop: Shop, server: Answering) -> None:
    with pytest.raises(InputError, match="has no unplant, so what is written would stay"):
        plant(http(server.url, unplant=None), GOLDEN, tenant=TENANT)
    assert set(shop.documents) == {"d1"}


SEARCH = """
import json, pathlib, sys
FILE = pathlib.Path(sys.argv[1])
for line in sys.stdin:
    words = set(json.loads(line)["text"].lower().split())
    documents = json.loads(FILE.read_text())
    scores = {key: len(words & set((d["title"] + " " + d["text"]).lower().split())) for key, d in documents.items()}
    best = sorted((key for key in scores if scores[key]), key=lambda key: -scores[key])
    print(json.dumps({"hits": [[key, scores[key]] for key in best]}), flush=True)
"""
WRITE = """
import json, os, pathlib, sys
FILE = pathlib.Path(sys.argv[1])
for line in sys.stdin:
    order, documents = json.loads(line), json.loads(FILE.read_text())
    answer = {"ok": True}
    if "write" in order:
        documents[order["write"]["id"]] = order["write"]
    elif "remove" in order:
        found = documents.get(order["remove"])
        if found and found["tenant"] == order["tenant"]:
            del documents[order["remove"]]
    elif "held" in order:
        held = {key: documents[key].get("source_hash") for key in order["held"] if key in documents}
        answer = {"held": held if len(sys.argv) == 2 else None}
    FILE.write_text(json.dumps(documents))
    if "broken" in sys.argv:
        answer = {"error": "disk full, " + os.environ["SHOP_TOKEN"]}
    print(json.dumps(answer), flush=True)
"""


class TestCommand(WritingSuite):
    @pytest.fixture(autouse=True)
    def _programs(self, tmp_path: Path) -> Iterator[None]:
        self.file, self.folder, self.made = tmp_path / "documents.json", tmp_path, []  # type: ignore[var-annotated]
        self.file.write_text(json.dumps({"d1": {"title": "Pool", "text": "a pool", "tenant": None}}))
        for name, code in (("search", SEARCH), ("write", WRITE)):
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        yield
        for connector in self.made:
            connector.close()

    def make(self, *more: str) -> Command:
        write = [sys.executable, "write.py", str(self.file), *more]
        command = [sys.executable, "search.py", str(self.file)]
        self.made.append(Command(command=command, plant=write, folder=str(self.folder), timeout=20, name="mine"))
        return self.made[-1]  # type: ignore[no-any-return]

    def everything(self) -> dict[str, Any]:
        return json.loads(self.file.read_text())  # type: ignore[no-any-return]

    def marks(self, doc_id: str) -> tuple[str, str]:
        found = self.everything()[doc_id]
        return found["source_hash"], found["tenant"]

    def test_another_tenants_documents_stay(self) -> None:
        connector = self.make()
        with planted(connector, GOLDEN, tenant=TENANT):
            remove_planted(connector, GOLDEN, tenant="other")
            assert set(self.everything()) == {"d1", *IDS}

    def test_without_plant_it_is_only_read(self) -> None:
        with pytest.raises(InputError, match="is read-only; name the program"):
            plant(replace(self.make(), plant=()), GOLDEN)

    def test_known_names_the_documents_that_are_there(self) -> None:
        assert self.make().known(["d1", "nobody"]) == {"d1"}

    def test_a_program_that_cannot_tell_is_not_written_through(self) -> None:
        connector, before = self.make("untold"), self.everything()
        assert not hasattr(connector, "known")
        for action in (plant, remove_planted):
            with pytest.raises(InputError, match=f"{BLIND}; let the program of plant answer"):
                action(connector, GOLDEN)
        assert self.everything() == before

    def test_somebody_elses_document_of_the_same_id_is_neither_replaced_nor_removed(self) -> None:
        mine = {"golden:tiny:bicycles": {"title": "Mine", "text": "mine", "tenant": None, "source_hash": "f" * 32}}
        self.file.write_text(json.dumps(mine))
        with pytest.raises(PartlyPlanted, match=r"refused 'golden:tiny:bicycles' .*was not planted"):
            plant(self.make(), GOLDEN)
        assert remove_planted(self.make(), GOLDEN) == 2
        assert self.everything() == mine


def test_a_program_that_fails_says_why_without_its_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    (tmp_path / "write.py").write_text(textwrap.dedent(WRITE))
    (tmp_path / "documents.json").write_text("{}")
    write = [sys.executable, str(tmp_path / "write.py"), str(tmp_path / "documents.json"), "broken"]
    connector = Command(command=["true"], plant=write, env=["SHOP_TOKEN"], name="mine", retries=0)
    try:
        with pytest.raises(BadAnswer, match="mine says: disk full") as problem:
            plant(connector, GOLDEN)
        assert TOKEN not in str(problem.value)
    finally:
        connector.close()


NOTES = """
import json, pathlib, sys
from typing import Any
from mcp.server.mcpserver import MCPServer

FILE = pathlib.Path(sys.argv[1])
server = MCPServer("notes", log_level="CRITICAL")


@server.tool()
def search(query: str, limit: int) -> list[dict[str, Any]]:
    words = set(query.lower().split())
    scores = {key: len(words & set(d["text"].lower().split())) for key, d in json.loads(FILE.read_text()).items()}
    best = sorted((key for key in scores if scores[key]), key=lambda key: -scores[key])
    return [{"id": key, "score": float(scores[key])} for key in best[:limit]]


@server.tool(structured_output=False)
def add(key: str, text: str, owner: str = "", hash: str = "") -> str:
    if key.endswith("refused"):
        raise ValueError("the shelf is full")
    FILE.write_text(json.dumps({**json.loads(FILE.read_text()), key: {"text": text, "owner": owner, "hash": hash}}))
    return "noted"


@server.tool()
def show(key: str) -> dict[str, Any]:
    return json.loads(FILE.read_text()).get(key, {})


@server.tool(structured_output=False)
def forget(key: str) -> str:
    FILE.write_text(json.dumps({name: d for name, d in json.loads(FILE.read_text()).items() if name != key}))
    return "forgotten"


server.run()
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mcp, Path]]:
    """One server for all tests; its file is made anew for each."""
    pytest.importorskip("mcp", reason="MCP IS NOT TESTED: pip install mcp")
    folder = tmp_path_factory.mktemp("notes")
    (folder / "notes.py").write_text(NOTES)
    arguments = {"key": "{id}", "text": "{title} {text}", "owner": "{tenant}", "hash": "{source_hash}"}
    connector = Mcp(
        command=[sys.executable, str(folder / "notes.py"), str(folder / "notes.json")],
        tool="search",
        plant={"tool": "add", "arguments": arguments},
        unplant={"tool": "forget", "arguments": {"key": "{id}"}},
        lookup={"tool": "show", "arguments": {"key": "{id}"}, "source_hash": "hash", "tenant": "owner"},
        name="notes",
    )
    yield connector, folder / "notes.json"
    connector.close()


class TestMcp(HeldSuite):
    @pytest.fixture(autouse=True)
    def _server(self, notes: tuple[Mcp, Path]) -> None:
        self.connector, self.file = notes
        self.file.write_text(json.dumps({"n1": {"text": "a pool"}}))

    def make(self) -> Mcp:
        return self.connector

    def everything(self) -> dict[str, Any]:
        return json.loads(self.file.read_text())  # type: ignore[no-any-return]

    def marks(self, doc_id: str) -> tuple[str, str]:
        found = self.everything()[doc_id]
        return found["hash"], found["owner"]

    def foreign(self, doc_id: str) -> None:
        self.file.write_text(json.dumps({**self.everything(), doc_id: {"text": "theirs"}}))

    def clear(self, doc_id: str) -> None:
        pass

    def test_a_server_that_shows_nothing_is_not_written(self) -> None:
        before = self.everything()
        for action in (plant, remove_planted):
            with pytest.raises(InputError, match=f"{BLIND}; say which tool shows one, lookup = "):
                action(replace(self.connector, lookup=None), GOLDEN)
        unmarked = {"tool": "add", "arguments": {"key": "{id}", "text": "{text} {source_hash}"}}
        with pytest.raises(InputError, match=r"stores no '{source_hash}' as a whole value"):
            plant(replace(self.connector, plant=unmarked), GOLDEN)
        assert self.everything() == before

    def test_a_tool_that_fails_or_is_not_there_is_named(self) -> None:
        refused = replace(GOLDEN, documents=(replace(DOCUMENTS[0], doc_id="refused"), *DOCUMENTS[1:]))
        with pytest.raises(
            PartlyPlanted, match=r"took 2 of 3 documents and refused 'golden:tiny:refused'.*the tool 'add' failed"
        ):
            plant(self.connector, refused)
        wrong = replace(self.connector, plant={"tool": "ad", "arguments": {"key": "{id}", "hash": "{source_hash}"}})
        with pytest.raises(InputError, match="has no tool 'ad'; it has 'add'"):
            plant(wrong, GOLDEN)
        wrong.close()
