"""Http against real HTTP servers on the loopback: a little search of our own, and servers that misbehave."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from connectors.faults import LOOPBACK, Answer, Answering, Request, answering, closing, free_port, halfway, silent
from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, Unreachable
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.http import Http, filled
from ringtrue.testing.retrievers import HOSTILE, ConnectorSuite

TOKEN = "tok-5f2a9c"
DOCUMENTS = {
    "d1": ("Rome", "pool pool on the roof"),
    "d2": ("Rome", "a pool for children"),
    "d3": ("Oslo", "indoor pool and spa"),
    "d4": ("Oslo", "breakfast and wifi"),
}


def find(request: Request) -> Answer:
    """A search that counts words, protected by a token; it refuses an empty question, as many do."""
    if request.headers.get("authorization") != f"Bearer {TOKEN}":
        return Answer({"error": "who are you"}, 401)
    asked = request.json()
    if not asked["query"]:
        return Answer({"error": "query is empty"}, 422)
    city = asked.get("filter", {}).get("city")
    scores = {doc: words.split().count(asked["query"]) for doc, (town, words) in DOCUMENTS.items() if city in (None, town)}
    best = sorted((doc for doc in scores if scores[doc]), key=lambda doc: -scores[doc])[: asked["limit"]]
    return Answer({"results": {"items": [{"document": {"id": doc}, "score": scores[doc]} for doc in best]}})


def shop(url: str, **settings: Any) -> Http:
    body = {"query": "{text}", "limit": "{k}", "filter": {"city": "{scope.city}"}}
    mapped = {"url": url, "body": body, "hits": "results.items", "id": "document.id", "token_env": "SHOP_TOKEN", "retries": 0}
    return Http(**{**mapped, **settings})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answering]:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    with answering(find) as running:
        yield running


class TestHttpKeepsTheProtocol(ConnectorSuite):
    SECRETS: ClassVar[tuple[str, ...]] = (TOKEN, LOOPBACK, "wrong-secret")

    @pytest.fixture(autouse=True)
    def _servers(self, server: Answering, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("WRONG_TOKEN", "wrong-secret")
        self.server = server
        with ExitStack() as self.stack:
            yield

    def make(self) -> Http:
        return shop(self.server.url)

    def answers(self, *bodies: Any, **settings: Any) -> Http:
        return shop(self.stack.enter_context(answering(bodies)).url, **settings)

    def wrong_credentials(self) -> Http:
        return shop(self.server.url, token_env="WRONG_TOKEN")

    def nobody_there(self) -> Http:
        return shop(f"http://{LOOPBACK}:{free_port()}")

    def gone_mid_query(self) -> Http:
        return shop(f"http://{LOOPBACK}:{self.stack.enter_context(halfway())}")

    def too_slow(self) -> Http:
        return shop(f"http://{LOOPBACK}:{self.stack.enter_context(silent())}", timeout=0.2)

    def malformed(self) -> Http:
        return self.answers("<html>please log in</html>")

    def twice(self) -> Http:
        return self.answers(
            {"results": {"items": [{"document": {"id": "d1"}, "score": 2}, {"document": {"id": "d1"}, "score": 1}]}}
        )

    def few(self) -> tuple[Http, str, int]:
        return self.make(), "pool", 3

    def fails_once(self) -> Http:
        good = {"results": {"items": [{"document": {"id": "d1"}, "score": 2}]}}
        return self.answers(Answer("busy", 503), good, retries=1)


def test_a_connection_is_made_from_a_table_of_settings(server: Answering) -> None:
    settings = {
        "kind": "http", "url": server.url, "hits": "results.items", "id": "document.id", "token_env": "SHOP_TOKEN",
        "body": {"query": "{text}", "limit": "{k}"},
    }  # fmt: skip
    found = connect(settings, name="shop").search("pool", k=2)
    assert [(hit.doc_id, hit.score) for hit in found] == [("d1", 2.0), ("d2", 1.0)]
    assert found[0].channels == {"shop": 1}


def test_a_closed_connection_is_tried_again_as_often_as_said() -> None:
    with closing() as port, pytest.raises(Exception, match="tried 2 times"):
        Http(url=f"http://{LOOPBACK}:{port}", params={"q": "{text}"}, retries=1).search("pool")


def test_the_scope_is_a_value_of_the_request_and_is_left_out_without_one(server: Answering) -> None:
    assert [hit.doc_id for hit in shop(server.url).search("pool", scope={"city": "Oslo"})] == ["d3"]
    assert server.requests[-1].json() == {"query": "pool", "limit": 10, "filter": {"city": "Oslo"}}
    shop(server.url).search("pool")
    assert server.requests[-1].json() == {"query": "pool", "limit": 10}


def test_a_scope_the_template_does_not_know_is_refused_not_ignored(server: Answering) -> None:
    with pytest.raises(InputError, match=r"cannot be searched within 'stars'; write '\{scope.stars\}'"):
        shop(server.url).search("pool", scope={"stars": "5"})
    assert server.requests == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_question_changes_the_shape_of_the_request(server: Answering, text: str) -> None:
    shop(server.url).search(text, k=7)
    if text.strip():
        asked = server.requests[-1].json()
        assert asked.keys() == {"query", "limit"}
        assert asked["limit"] == 7
        assert len(asked["query"]) == len(text)
    else:
        assert server.requests == []


def test_a_question_that_looks_like_a_placeholder_is_only_a_text(server: Answering) -> None:
    shop(server.url).search('{k} {scope.city} {text} "}')
    assert server.requests[-1].json()["query"] == '{k} {scope.city} {text} "}'


def test_get_puts_the_question_into_the_address() -> None:
    with answering([{"hits": [{"id": 1, "score": 0.5}]}]) as server:
        client = Http(
            url=f"{server.url}/find?lang=en", params={"q": "{text}", "rows": "{k}", "fq": ["city:{scope.city}"]}, retries=0
        )
        assert client.search("pool & spa=1", k=3, scope={"city": "Rome"})[0].doc_id == "1"
        client.search("pool", k=3)
    first, second = (parse_qs(urlsplit(request.path).query) for request in server.requests)
    assert first == {"lang": ["en"], "q": ["pool & spa=1"], "rows": ["3"], "fq": ["city:Rome"]}
    assert second == {"lang": ["en"], "q": ["pool"], "rows": ["3"]}
    assert {request.method for request in server.requests} == {"GET"}


def test_an_item_of_a_list_that_lacks_its_scope_goes_as_a_whole() -> None:
    template = {"q": "{text}", "must": [{"op": "eq", "value": "{scope.city}"}, {"op": "in", "value": [1, 2]}], "top {k}": None}
    assert filled(template, {"text": "x", "k": 1}) == {"q": "x", "must": [{"op": "in", "value": [1, 2]}], "top {k}": None}


def test_distances_are_negated() -> None:
    with answering([{"hits": [{"id": "a", "score": 0.1}, {"id": "b", "score": 0.7}]}]) as server:
        found = Http(url=server.url, params={"q": "{text}"}, lower_is_better=True).search("pool")
    assert [(hit.doc_id, hit.score) for hit in found] == [("a", -0.1), ("b", -0.7)]


def test_passages_of_one_document_count_once_at_the_best_place() -> None:
    rows = [("a", 3, "a#2"), ("b", 2, "b#1"), ("a", 1, "a#1")]
    body = {"hits": [{"id": doc, "score": score, "passage": {"name": name}} for doc, score, name in rows]}
    with answering([body]) as server:
        found = Http(url=server.url, params={"q": "{text}"}, chunk="passage.name").search("pool")
    assert [(hit.doc_id, hit.chunk) for hit in found] == [("a", "a#2"), ("b", "b#1")]


def test_the_answer_may_be_the_list_and_have_no_scores() -> None:
    with answering([[{"id": "b"}, {"id": "a"}]]) as server:
        found = Http(url=server.url, params={"q": "{text}"}, hits="", score="").search("pool")
    assert [hit.doc_id for hit in found] == ["b", "a"]
    assert all(hit.score != hit.score for hit in found)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": "no index"}, r"the answer has no 'results' \(path 'results.items'\) but is an object with 'error'"),
        ({"results": {"docs": []}}, r"'results' of the answer has no 'items' .* but is an object with 'docs'"),
        ({"results": {"items": None}}, r"'results.items' in its answer is null, no list"),
        ({"results": {"items": {"a": 1}}}, r"is an object with 'a', no list"),
        ({"results": {"items": [{"score": 1}]}}, r"hit 1 has no 'document' .* but is an object with 'score'"),
        ({"results": {"items": ["d1"]}}, r"hit 1 has no 'document' .* but is 'd1'"),
        ({"results": {"items": [{"document": {"id": "a"}}]}}, r"hit 1 has no 'score'"),
        ({"results": {"items": [{"document": {"id": "a"}, "score": "high"}]}}, r"'score' of hit 1 is 'high', no score"),
        ({"results": {"items": [{"document": {"id": "a"}, "score": None}]}}, r"'score' of hit 1 is null"),
        ({"results": {"items": [{"document": {"id": "a"}, "score": True}]}}, r"is True, no score"),
        ('{"results": {"items": [{"document": {"id": "a"}, "score": NaN}]}}', r"is nan, no score"),
        ('{"results": {"items": [{"document": {"id": "a"}, "score": 1' + "0" * 400 + "}]}}", r"no score"),
        ({"results": {"items": [{"document": {"id": " "}, "score": 1}]}}, r"hit 1 has the document id ' '"),
        ({"results": {"items": [{"document": {"id": ["a"]}, "score": 1}]}}, r"hit 1 has the document id \['a'\]"),
        (None, r"the answer has no 'results' .* but is null"),
    ],
    ids=range(15),
)
def test_an_answer_of_another_shape_is_a_bad_answer_that_names_the_path(answer: Any, said: str, server: Answering) -> None:
    with answering([answer]) as other, pytest.raises(BadAnswer, match=said):
        shop(other.url).search("pool")


def test_null_means_empty_only_where_the_settings_say_so() -> None:
    with answering([{"total": 0, "hits": None}, {"total": 0}]) as server:
        client = Http(url=server.url, params={"q": "{text}"}, null_is_empty=True)
        assert client.search("pool") == client.search("pool") == []
    with answering(["oops"]) as server, pytest.raises(BadAnswer):
        Http(url=server.url, params={"q": "{text}"}, null_is_empty=True).search("pool")


def test_token_and_basic_authentication_are_sent_as_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    monkeypatch.setenv("SHOP_USER", "ann")
    monkeypatch.setenv("SHOP_PASSWORD", "pä:ss")
    with answering([{"hits": []}]) as server:
        plain: dict[str, Any] = {"url": server.url, "params": {"q": "{text}"}, "headers": {"X-Team": "search"}}
        Http(**plain, token_env="SHOP_TOKEN").search("pool")
        Http(**plain, token_env="SHOP_TOKEN", token_header="X-Api-Key", token_prefix="").search("pool")
        Http(**plain, user_env="SHOP_USER", password_env="SHOP_PASSWORD").search("pool")
    bearer, key, basic = (request.headers for request in server.requests)
    assert bearer["authorization"] == f"Bearer {TOKEN}"
    assert key["x-api-key"] == TOKEN
    assert base64.b64decode(basic["authorization"].removeprefix("Basic ")).decode() == "ann:pä:ss"
    assert {headers["x-team"] for headers in (bearer, key, basic)} == {"search"}


def test_a_token_that_is_not_set_is_named_and_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_TOKEN", raising=False)
    with answering([{"hits": []}]) as server, pytest.raises(MissingInput, match="no SHOP_TOKEN"):
        shop(server.url).search("pool")
    assert server.requests == []


def echo(request: Request) -> Answer:
    """A server that tells what it cannot handle."""
    return Answer(f"cannot handle {request.path} {request.body.decode()}", 500)


def test_a_key_in_the_address_does_not_show_where_the_server_repeats_it_r7() -> None:
    with answering(echo) as server:
        web = Http(url=f"{server.url}/find?api_key=S3CRET%2FKEY&v=20", params={"q": "{text}"}, retries=0, name="web")
        with pytest.raises(Unreachable, match=r"web answered HTTP 500 \(cannot handle .*q=pool\)") as caught:
            web.search("pool")
    assert "S3CRET" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"params": {"q": "{text}", "api_key": "S3CRETKEY"}},
        {"params": {"q": "{text}", "api_key": ["S3CRETKEY", "S3CRET&/=KEY"]}},
        {"params": {"q": "{text}", "filter": "key:S3CRETKEY n:{k}"}},
        {"params": {"q": "{text}", "account": 50350711}},
        {"body": {"q": "{text}", "auth": {"keys": ["S3CRETKEY"]}}},
    ],
    ids=["text", "list", "mixed", "number", "body"],
)
def test_what_settings_write_into_a_request_does_not_show_and_the_question_does(settings: dict[str, Any]) -> None:
    with answering(echo) as server, pytest.raises(Unreachable, match="pool") as caught:
        Http(url=server.url, **settings, retries=0).search("pool")
    assert "S3CRET" not in str(caught.value)
    assert "50350711" not in str(caught.value)


def test_a_key_does_not_show_where_an_answer_of_another_shape_repeats_it() -> None:
    with answering([{"hits": "no hits for the key S3CRETKEY"}, {"hits": "a text that is cut within S3CRETKEY"}]) as server:
        for _ in range(2):
            with pytest.raises(BadAnswer, match="no list") as caught:
                Http(url=server.url, params={"q": "{text}", "key": "S3CRETKEY"}, retries=0).search("pool")
            assert "S3CRET" not in str(caught.value)


def test_passages_do_not_use_up_k_where_the_system_can_be_told_how_many() -> None:
    rows = [{"id": "a", "score": 9 - part, "part": part} for part in range(6)] + [{"id": "b", "score": 1, "part": 0}]

    def some(request: Request) -> Answer:
        return Answer({"hits": rows[: int(parse_qs(urlsplit(request.path).query)["rows"][0])]})

    with answering(some) as server:
        told = Http(url=server.url, params={"q": "{text}", "rows": "{k}"}, chunk="part").search("pool", k=2)
        fixed = Http(url=server.url, params={"q": "{text}", "rows": 3}, chunk="part").search("pool", k=2)
    assert [hit.doc_id for hit in told] == ["a", "b"]
    assert [hit.doc_id for hit in fixed] == ["a"]
    assert len(server.requests) == 3


def test_repr_shows_neither_address_nor_template() -> None:
    shown = repr(Http(url="https://ann:pw@secret.example/", body={"q": "{text}", "key": "k-1"}, headers={"X-Key": "h-1"}))
    assert not [word for word in ("secret.example", "pw", "k-1", "h-1") if word in shown]


def test_hits_may_be_plain_ids() -> None:
    with answering([{"ids": ["d1", 7]}, {"ids": [{"id": "d1"}]}]) as server:
        client = Http(url=server.url, params={"q": "{text}"}, hits="ids", id="", score="")
        assert [hit.doc_id for hit in client.search("pool")] == ["d1", "7"]
        with pytest.raises(BadAnswer, match="hit 1 is an object with 'id'; set id= to the path of the id in it"):
            client.search("pool")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "search.example.com"}, "invalid url; write an address that begins with http:// or https://"),
        ({"url": 5}, "invalid url; write an address"),
        ({"method": "PUT"}, "invalid method='PUT'; write 'GET', 'POST'"),
        ({"method": "GET", "body": {"q": "{text}"}}, "a GET has no body"),
        ({"params": {"rows": "{k}"}}, r"'\{text\}' is missing"),
        ({"params": {"q": "{text}", "n": "{count}"}}, r"unknown placeholder '\{count\}'"),
        ({"params": {"q": "{text} in {scope.city}"}}, "mixes the question with a scope"),
        ({"params": {"q": "{text}", "f": {"a": 1}}}, "invalid params; write a table, each value"),
        ({"body": "{text}"}, "invalid body; write a table"),
        ({"headers": {"X": 1}}, "invalid headers; write a table, each value a text"),
        ({"score": None}, "invalid score=None; write a text"),
        ({"user_env": "U"}, "only one of user_env and password_env"),
        ({"user_env": "U", "password_env": "P", "token_env": "T"}, "both fill Authorization"),
        ({"timeout": 0}, "invalid timeout=0"),
        ({"timeout": float("inf")}, "invalid timeout=inf"),
        ({"timeout": float("nan")}, "invalid timeout=nan"),
    ],
    ids=range(16),
)
def test_wrong_settings_are_named_with_their_cure(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Http(**{"url": "https://search.example.com/", "params": {"q": "{text}"}, **settings})


def test_wrong_credentials_are_not_tried_again(server: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WRONG_TOKEN", "wrong")
    with pytest.raises(AccessDenied):
        shop(server.url, token_env="WRONG_TOKEN", retries=5).search("pool")
    assert len(server.requests) == 1


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples/connect/with_http.py"
    ran = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert "sea-view" in ran.stdout
