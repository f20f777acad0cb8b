"""The settings of an HTTP search are found by asking it; what is not understood is told, never guessed."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from ringtrue.errors import AccessDenied, BadAnswer, TimedOut, Unreachable
from ringtrue.retrieve.connectors import connect, probe
from ringtrue.retrieve.connectors.probe import probe as probed

TEXTS = {
    f"d{number}": f"the {word} in the house" for number, word in enumerate(("pool", "sauna", "bar", "garden", "roof", "lift"))
}
Answer = Callable[[str, dict[str, Any]], Any]


def ranked(text: str) -> list[str]:
    asked = set(text.split())
    return sorted(TEXTS, key=lambda name: (-len(asked & set(TEXTS[name].split())), name))


@contextmanager
def served(answer: Answer, credentials: str | None = None) -> Iterator[str]:
    """A search over HTTP: ``answer(method, fields)`` returns what it answers, or a status. Others get 401."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(answer("GET", dict(parse_qsl(urlsplit(self.path).query))))

        def do_POST(self) -> None:
            self.reply(answer("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"])))))

        def reply(self, value: Any) -> None:
            value = 401 if credentials not in (None, self.headers["Authorization"]) else value
            body = json.dumps(value).encode()
            self.send_response(value if isinstance(value, int) else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/search"
        finally:
            server.shutdown()
            thread.join()


def plain_get(method: str, fields: dict[str, Any]) -> Any:
    if method != "GET" or "q" not in fields:
        return 405 if method == "POST" else 422
    return {
        "took": 3,
        "results": [{"id": name, "text": TEXTS[name]} for name in ranked(fields["q"])[: int(fields.get("limit", 4))]],
    }


def nested_post(method: str, fields: dict[str, Any]) -> Any:
    if method != "POST" or "question" not in fields:
        return 405 if method == "GET" else 422
    found = ranked(fields["question"])[: fields.get("top_k", 3)]
    return {"data": {"matches": [{"score": 9.5 - place, "document": {"id": name}} for place, name in enumerate(found)]}}


def passages(method: str, fields: dict[str, Any]) -> Any:
    if method != "GET" or "query" not in fields:
        return 404
    found = ranked(fields["query"])
    return [
        {"chunk_id": f"{name}#{part}", "doc_id": name, "distance": place / 10 + part / 100}
        for place, name in enumerate(found)
        for part in (0, 1)
    ]


def elastic(method: str, fields: dict[str, Any]) -> Any:
    if "q" not in fields or method != "GET":
        return 400
    return {
        "hits": {
            "total": 6,
            "hits": [{"_id": name, "_score": 1.5} for name in ranked(fields["q"])[: int(fields.get("size", 5))]],
        }
    }


def numbered(method: str, fields: dict[str, Any]) -> Any:
    """Ids that are numbers, and a field of the text that it ignores beside the one that it reads."""
    found = ranked(str(fields.get("text", "")))
    return {"items": [{"id": int(name[1:]), "title": TEXTS[name]} for name in found[: int(fields.get("count", 5))]]}


def plain_ids(method: str, fields: dict[str, Any]) -> Any:
    return {"took": 3, "ids": ranked(str(fields.get("q", "")))[: int(fields.get("n", 5))]}


def own_names(**more: Callable[[int, str], Any]) -> Answer:
    """A search whose hits have ``heading`` and ``body``, and more fields by place and document."""

    def answer(method: str, fields: dict[str, Any]) -> Any:
        if method != "POST" or "question" not in fields:
            return 405 if method == "GET" else 422
        found = ranked(fields["question"])[: fields.get("limit", 4)]
        return {
            "items": [
                {name: value(place, found[place]) for name, value in more.items()}
                | {"heading": f"The {TEXTS[found[place]].split()[1]}", "body": TEXTS[found[place]]}
                for place in range(len(found))
            ]
        }

    return answer


CALLS = itertools.count()
OWN = {"body": {"question": "{text}", "limit": "{k}"}, "hits": "items", "score": "", "title": "heading", "text": "body"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rank": lambda place, name: place + 1},
        {"points": lambda place, name: 90 - 5 * place},
        {"lang": lambda place, name: "en"},
    ],
    ids=["none", "a rank", "a score", "the same everywhere"],
)
def test_without_a_sure_id_everything_else_is_kept(more) -> None:
    with served(own_names(**more)) as url:
        found = probed(url, "the sauna")
        assert found.settings == {"kind": "http", "url": url, **OWN}
    assert "hits without an id: no field of an object with " in found.problem
    assert "'heading', 'body' is surely one" in found.problem


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (plain_ids, {"params": {"q": "{text}", "n": "{k}"}, "hits": "ids", "id": "", "score": ""}),
        (plain_get, {"params": {"q": "{text}", "limit": "{k}"}, "hits": "results", "id": "id", "score": "", "text": "text"}),
        (
            nested_post,
            {"body": {"question": "{text}", "top_k": "{k}"}, "hits": "data.matches", "id": "document.id", "score": "score"},
        ),
        (
            passages,
            {
                "params": {"query": "{text}"},
                "hits": "",
                "id": "doc_id",
                "chunk": "chunk_id",
                "score": "distance",
                "lower_is_better": True,
            },
        ),
        (elastic, {"params": {"q": "{text}", "size": "{k}"}, "hits": "hits.hits", "id": "_id", "score": "_score"}),
        (numbered, {"params": {"text": "{text}", "count": "{k}"}, "hits": "items", "id": "id", "score": "", "title": "title"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_settings_that_are_found_search_through_the_connector(answer, expected) -> None:
    with served(answer) as url:
        found = probed(url, "the sauna")
        assert found.settings == {"kind": "http", "url": url, **expected}
        hits = connect(found.settings).search("sauna", k=2)
        assert [hit.doc_id.removeprefix("d") for hit in hits] == ["1", "0"]
        assert found.hits > 1
        assert bool(found.notes) is (answer is passages)


@pytest.mark.parametrize("plain", [True, False])
def test_an_endpoint_that_gives_other_ids_each_time_is_told_so(plain: bool) -> None:
    def shuffled(method: str, fields: dict[str, Any]) -> Any:
        ids = [f"d{next(CALLS)}" for _ in range(3)]
        return {"results": ids if plain else [{"id": name, "score": 1} for name in ids]} if method == "GET" else 405

    with served(shuffled) as url, pytest.raises(BadAnswer, match="gives other ids when 'the sauna' is asked again"):
        probed(url, "the sauna")


@pytest.mark.parametrize("other", [True, False])
def test_a_rank_called_id_is_not_the_id(other: bool) -> None:
    def counted(method: str, fields: dict[str, Any]) -> Any:
        found = ranked(fields.get("q", ""))[: int(fields.get("limit", 4))]
        rows = [{"id": n, "slug" if other else "title": name} for n, name in enumerate(found, 1)]
        return {"results": rows} if method == "GET" else 405

    with served(counted) as url:
        found = probed(url, "the sauna")
    assert found.settings["id"] == ("slug" if other else "id")
    assert any("may be the rank" in note for note in found.notes) is not other


def matching(text: str) -> list[str]:
    return [name for name in ranked(text) if set(text.split()) & set(TEXTS[name].split())]


def test_plain_ids_behind_an_unusual_name_are_found_by_an_example() -> None:
    def ids(method: str, fields: dict[str, Any]) -> Any:
        return matching(fields["begriff"])[: int(fields.get("anzahl", 3))] if method == "GET" and "begriff" in fields else 400

    with served(ids) as url:
        found = probed(f"{url}?begriff=house sauna&anzahl=3", "nothing")
    assert found.settings == {
        "kind": "http", "url": url, "params": {"begriff": "{text}", "anzahl": "{k}"}, "hits": "", "id": "", "score": "",
    }  # fmt: skip


def test_an_id_inside_an_object_of_any_name_is_found() -> None:
    def products(method: str, fields: dict[str, Any]) -> Any:
        rows = [{"product": {"id": f"40{name[1]}7", "title": TEXTS[name]}} for name in matching(fields.get("q", ""))]
        return {"rows": rows[: int(fields.get("limit", 10))]} if method == "GET" else 405

    with served(products) as url:
        found = probed(url, "house sauna")
    assert {name: found.settings[name] for name in ("hits", "id", "title")} == {
        "hits": "rows", "id": "product.id", "title": "product.title",
    }  # fmt: skip


def test_an_example_of_a_search_is_taken_apart() -> None:
    def picky(method: str, fields: dict[str, Any]) -> Any:
        return plain_get(method, {"q": fields["term"], **fields}) if fields.get("lang") == "en" and "term" in fields else 400

    with served(picky) as url:
        found = probed(f"{url}?term=sauna&lang=en&limit=3", "nothing")
        assert found.settings["url"] == f"{url}?lang=en"
        assert found.settings["params"] == {"term": "{text}", "limit": "{k}"}
        assert found.question == "sauna"
        assert connect(found.settings).search("bar", k=1)[0].doc_id == "d2"


@pytest.mark.parametrize(
    ("term", "params", "note"),
    [
        ("sauna&limit=2", {"q": "{text}", "limit": "{k}"}, "'limit' of your URL is taken for the number of hits"),
        ("sauna", {"q": "{text}"}, "give a query that finds more with --question"),
    ],
)
def test_with_one_hit_the_number_of_hits_of_the_url_is_kept(term, params, note) -> None:
    def exact(method: str, fields: dict[str, Any]) -> Any:
        if method != "GET":
            return 405
        words = set(fields["q"].split())
        return [{"id": name} for name, text in TEXTS.items() if words & set(text.split())][: int(fields.get("limit", 9))]

    with served(exact) as url:
        found = probed(f"{url}?q={term}", "nothing")
    assert found.settings["params"] == params
    assert note in found.notes[0]


def test_unusual_fields_of_the_url_are_tried_first_but_filters_stay() -> None:
    def german(method: str, fields: dict[str, Any]) -> Any:
        if method != "GET" or fields.get("sprache") != "de" or "suchbegriff" not in fields:
            return []
        return plain_get("GET", {"q": fields["suchbegriff"], "limit": fields.get("anzahl", 4)})

    with served(german) as url:
        found = probed(f"{url}?sprache=de&suchbegriff=sauna&anzahl=3&seite=1", "nothing")
        assert found.settings["url"] == f"{url}?sprache=de&seite=1"
        assert found.settings["params"] == {"suchbegriff": "{text}", "anzahl": "{k}"}
        assert connect(found.settings).search("bar", k=1)[0].doc_id == "d2"


@pytest.mark.parametrize(("most", "k"), [(10, 10), (7, 5), (2, 1)])
def test_a_largest_page_is_found_and_told_how_to_evaluate(most, k) -> None:
    def paged(method: str, fields: dict[str, Any]) -> Any:
        return 422 if int(fields.get("limit", 2)) > most else plain_get(method, {"limit": 2, **fields})

    with served(paged) as url:
        found = probed(url, "the sauna")
    assert found.settings["params"] == {"q": "{text}", "limit": "{k}"}
    assert found.notes == (f"it refuses to return 20 hits; add k = {k} under [eval] in ringtrue.toml",)


def test_facets_are_not_taken_for_hits_of_an_unusual_name() -> None:
    def faceted(method: str, fields: dict[str, Any]) -> Any:
        answer = plain_get(method, fields)
        return answer if isinstance(answer, int) else {"facets": [{"name": "a"}], "entries": answer["results"]}

    with served(faceted) as url:
        assert probed(url, "the sauna").settings["hits"] == "entries"


@pytest.mark.parametrize(
    ("access", "header"),
    [
        ({"token_env": "SHOP"}, "Bearer secret"),
        ({"user_env": "SHOP_USER", "password_env": "SHOP"}, "Basic YWRhOnNlY3JldA=="),
    ],
)
def test_an_endpoint_with_a_key_is_asked_with_the_credentials_of_the_connection(monkeypatch, access, header) -> None:
    monkeypatch.setenv("SHOP", "secret")
    monkeypatch.setenv("SHOP_USER", "ada")
    with served(plain_get, header) as url:
        with pytest.raises(AccessDenied):
            probed(url, "the sauna")
        found = probed(url, "the sauna", access)
        assert access.items() <= found.settings.items()
        assert len(connect(found.settings).search("sauna", k=2)) == 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda method, fields: {"results": [{"id": "a"}, {"id": "b"}]}, "gives the same answer for every value of 'q'"),
        (lambda method, fields: {"results": []}, "found nothing for 'sauna'; give a query that has results"),
        (lambda method, fields: {"results": [[1], [2]]}, "a list of a list of 1; hits must be ids or objects with an id"),
        (lambda method, fields: {"status": "ok"}, "an object with 'status', which has no list of hits"),
        (lambda method, fields: 422, "HTTP 422"),
        (lambda method, fields: 404, "does not answer searches at this address"),
    ],
)
def test_an_endpoint_that_is_not_understood_is_told_with_the_reason(answer, says) -> None:
    with served(answer) as url, pytest.raises(BadAnswer) as told:
        probed(url, "sauna")
    assert says in str(told.value)


def test_an_endpoint_that_refuses_or_is_silent_is_not_asked_again_and_again(monkeypatch) -> None:
    asked = []

    def locked(method: str, fields: dict[str, Any]) -> Any:
        asked.append(fields)
        return 401

    with served(locked) as url, pytest.raises(AccessDenied):
        probed(url, "sauna")
    assert len(asked) == 1
    with pytest.raises(Unreachable):
        probed(url, "sauna")
    monkeypatch.setattr(probe, "PATIENCE", 0.2)
    waiting = threading.Event()
    with served(lambda method, fields: waiting.wait(60) and 404) as url:
        with pytest.raises(TimedOut):
            probed(url, "sauna")
        waiting.set()
