"""A key of one project reads, writes, lists and guesses nothing of another, on any address, on both databases.

Project B is filled with one of everything. ``SECRET`` stands in its contents and is never sent by anybody else: it may appear
in no answer to A. ``MARK`` stands in its ids, which A guesses; what A is told about them must be what it is told about ids that
nobody has.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_on_both import ok
from rest_service import serving
from ringtrue.answers import Scope
from ringtrue.store import HistoryPoint, Store, StoredJob
from ringtrue.store.tables import TABLES
from service_routes import FILES, OPEN, PAGES, REST, Ask, Book, Entry, addresses
from stores import kind as kind
from stores import url as url

SECRET, MARK, TWIN = "xxwalrus", "qqzebra", "qqzebro"
SCOPES: tuple[Scope, ...] = ("read", "write", "review", "admin")
NOW = "2026-03-01T12:00:00Z"
OTHER_DIGITS = str.maketrans("0123456789abcdef", "56789abcdef01234")
ADDRESS = "http://127.0.0.1:8080"
WHOLE_SERVER = ("GET /v1/diagnostics",)
"""What tells of all projects: keys of the one that the server was started with open it, which A is not."""
Tables = tuple[tuple[dict[str, Entry], TestClient, dict[str, str]], ...]


@dataclass(frozen=True)
class Two:
    """A server with two projects: the ids of B's things, and who asks for A."""

    client: TestClient
    store: Store
    book: Book

    def key(self, *scopes: Scope, project: str = "a") -> dict[str, str]:
        token = self.store.create_key("tester", scopes, now=datetime.now(UTC), project=project)[1]
        return {"authorization": f"Bearer {token}"}

    def browser(self, *scopes: Scope) -> tuple[TestClient, str]:
        """Return a browser in which somebody of A is signed in, and the token of its forms."""
        browser = TestClient(self.client.app, base_url=ADDRESS)
        form = csrf_of(browser.get("/login").text)
        token = self.key(*scopes)["authorization"].removeprefix("Bearer ")
        answer = browser.post("/login", data={"key": token, "csrf": form}, follow_redirects=False)
        assert answer.status_code == 303
        return browser, csrf_of(browser.get("/no-such-page").text)


def csrf_of(text: str) -> str:
    found = re.search(r'<meta name="csrf-token" content="([^"]+)"', text)
    assert found is not None
    return found[1]


@pytest.fixture
def two(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path, store=url, keys=True, history_seconds=86_400.0) as client, Store.open(url) as store:
        token = store.create_key(f"{MARK}-owner", ("admin",), now=NOW, project="b")[1]
        yield Two(client, store, filled(client, store, {"authorization": f"Bearer {token}"}))


def filled(client: TestClient, store: Store, owner: dict[str, str]) -> Book:
    """Put one of everything into B and return the ids."""

    def post(path: str, body: Any, status: int = 201, headers: Mapping[str, str] | None = None) -> Any:
        return ok(client.post(path, json=body, headers={**owner, **(headers or {})}), status)

    golden, question, search, session = f"{MARK}-set", f"{MARK}-q1", f"{MARK}-search", f"{MARK}-session"
    documents = [{"entity_id": f"{SECRET}-{n}", "title": SECRET, "content": f"the {SECRET} pool {n}"} for n in range(4)]
    queries = [
        {
            "query_id": f"{MARK}-q{n}", "query_text": f"{SECRET} pool {n}", "query_type": SECRET,
            "expected_results": {"relevant_entities": [f"{SECRET}-{n}"], "relevance_labels": {f"{SECRET}-{n}": 3}},
        }
        for n in (1, 2, 3)
    ]  # fmt: skip
    post("/v1/golden", {"id": golden, "version": "1.0.0", "description": SECRET, "entities": documents, "queries": queries})
    run = post("/v1/evaluate", {"golden": golden, "retriever": "bm25"}, 200)["run_id"]
    post("/v1/evaluate", {"golden": golden, "retriever": "bm25", "k": 20}, 200)
    for name in (f"{MARK}-base", f"{MARK}-other"):
        post("/v1/baselines", {"run": run, "name": name, "reason": SECRET})
    for n in ("", "-2", "-3"):
        job = StoredJob(
            f"job_{MARK}{n}", "evaluate", "queued", NOW, NOW, project="b", who=SECRET, request={"golden": SECRET}, says=SECRET
        )
        store.add_job(job)
        row = {
            "query": f"{SECRET} pool", "tool_name": f"{SECRET}-tool", "query_id": f"{search}{n}", "session_id": session,
            "result_ids": [f"{SECRET}-1"], "scores": [1.0], "total_latency_ms": 5.0, "created_at": NOW,
        }  # fmt: skip
        post("/v1/queries", row, headers={"Idempotency-Key": f"{MARK}-reply"} if not n else None)
        event = {"event_type": "click", "session_id": session, "item_id": f"{SECRET}-1", "event_id": f"{MARK}-event{n}"}
        post("/v1/feedback", {**event, "metadata": {"note": SECRET}})
    judged = [
        {"query_id": f"{search}{n}", "item_id": f"{SECRET}-1", "relevance": 3, "annotator": f"{MARK}-ann", "note": SECRET}
        for n in ("", "-2")
    ]
    post("/v1/judgments", {"judgments": judged})
    pairs = [{"query_id": f"{search}{n}", "query": SECRET, "doc_id": f"{SECRET}-1", "text": SECRET} for n in ("", "-2", "-3")]
    review = post("/v1/reviews", {"golden": golden, "wanted": 2, "pairs": pairs})["keys"][0]
    post(f"/v1/reviews/{review}/judge", {"grade": 2, "note": SECRET}, 200)
    feature = f"{MARK}-feature"
    ok(
        client.put(
            f"/v1/flags/{feature}", json={"rollout": 5, "shadow": True, "description": SECRET, "why": SECRET}, headers=owner
        )
    )
    shadowed = {"query_id": search, "control_result_ids": [f"{SECRET}-1"], "treatment_result_ids": [], "candidate": SECRET}
    post(f"/v1/shadow/{feature}/runs", {"runs": [shadowed]})
    post("/v1/tests", {"feature": feature, "measure": "mrr"})
    post(f"/v1/tests/{feature}/record", {"scores": [{"query_id": search, "control": 0.25, "treatment": 1}]}, 200)
    for n in ("", "-2"):
        row = {
            "id": f"{MARK}-exp{n}",
            "date": "2026-01-31",
            "description": SECRET,
            "config_changes": {SECRET: 1},
            "verdict": SECRET,
        }
        post("/v1/experiments", {"experiments": [row]})
    key = post("/v1/keys", {"name": f"{MARK}-key", "scopes": ["read"]})["key_id"]
    labels = {"k": "10", "golden": SECRET, "retriever": SECRET, "slice": "all"}
    store.add_history([HistoryPoint(NOW, "ringtrue_retrieval_recall_at_k", 0.5, labels, project="b")])
    return Book(
        run=run, golden=golden, version="1.0.0", question=question, baseline=f"{MARK}-base", job=f"job_{MARK}", search=search,
        session=session, event=f"{MARK}-event", annotator=f"{MARK}-ann", review=review, feature=feature,
        experiment=f"{MARK}-exp", key=key, reply=f"{MARK}-reply",
    )  # fmt: skip


def twin(book: Book) -> Book:
    """Return ids of the same shape that nobody has; names are told apart by one letter, made ids by their last ones."""
    changed = {}
    for one in fields(book):
        value = getattr(book, one.name)
        if MARK in value:
            changed[one.name] = value.replace(MARK, TWIN)
        elif one.name != "version":
            changed[one.name] = value[:-3] + value[-3:].translate(OTHER_DIGITS)
    return replace(book, **changed)


def made(book: Book) -> list[str]:
    """Return the ids that the server gave to B's things."""
    return [getattr(book, one.name) for one in fields(book) if MARK not in getattr(book, one.name) and one.name != "version"]


def asked(client: TestClient, method: str, entry: Entry, ask: Ask, book: Book, headers: dict[str, str], csrf: str = "") -> Any:
    """Send one request with the ids of a book."""
    given: dict[str, Any] = {"headers": {**headers, **book.filled(ask.headers or {})}, "follow_redirects": False}
    if ask.query is not None:
        given["params"] = book.filled(ask.query)
    if ask.json is not None:
        given["content"] = json.dumps({book.filled(k): v for k, v in filled_json(ask.json, book).items()})
        given["headers"]["content-type"] = "application/json"
    if ask.form is not None or ask.file is not None:
        given["data"] = {**book.filled(ask.form or {}), "csrf": csrf}
    if ask.file is not None:
        given["files"] = {"file": (ask.file, json.dumps(book.filled(FILES[ask.file])), "application/json")}
    return client.request(method, book.filled(entry.path), **given)


def filled_json(value: Any, book: Book) -> dict[str, Any]:
    found: dict[str, Any] = book.filled(value)
    return found


def like(text: str, *books: Book) -> str:
    """Return an answer with everything that may differ taken out: the ids that were sent, times, numbers and tokens."""
    for book in books:
        for value in (*made(book), MARK, TWIN):
            text = text.replace(value, "ID")
    text = text.replace(" selected", "")  # of two sets of A's own, the one that was named
    text = re.sub(r"rt_[\w-]+", "TOKEN", re.sub(r"\b[0-9a-f]{8}-[0-9a-f]+\b", "REQUEST", text))
    return re.sub(r"[0-9a-f]{6,}|\d+", "#", text)


def difference(one: str, other: str) -> tuple[str, str]:
    """Return where two texts part."""
    place = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[max(0, place - 100) : place + 200], other[max(0, place - 100) : place + 200]


@contextmanager
def unchanged(two: Two, folder: Path) -> Iterator[None]:
    """B's rows are the same afterwards, in every table but the one in which the service keeps its own figures."""
    before = dump(two.store, folder / "before.sqlite")
    assert len(before) > 30
    assert len({table for table, _ in before}) >= 18, sorted({table for table, _ in before})
    yield
    assert dump(two.store, folder / "after.sqlite") == before


def dump(store: Store, file: Path) -> list[tuple[str, str]]:
    """Return every row of B in the store: table and content."""
    store.backup(file)
    rows = []
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        for table in TABLES:
            if table.name != "history" and "project" in table.c:
                found = connection.execute(f"SELECT * FROM {table.name} WHERE project = 'b'")
                rows += [(table.name, repr({**row, "id": None})) for row in map(dict, found)]
    return sorted(rows)


def test_every_address_is_entered_with_the_scope_it_needs(two: Two) -> None:
    assert set(addresses(two.client.app)) == {*REST, *PAGES, *OPEN}  # type: ignore[arg-type]


def test_what_a_lists_and_reads_holds_nothing_of_b(two: Two) -> None:
    hidden = (SECRET, MARK, *made(two.book))
    seen = 0
    for scope in SCOPES:
        headers, (browser, _) = two.key(scope), two.browser(scope)
        for table, client, sent in ((REST, two.client, headers), (PAGES, browser, {})):
            for name, entry in table.items():
                if name.startswith("GET ") and "{" not in entry.path:
                    found = asked(client, "GET", entry, Ask(query=plain(entry)), two.book, sent)
                    assert found.status_code in (200, 303, 403, 422), (name, found.text)
                    assert not [word for word in hidden if word in found.text], (name, scope)
                    assert 'project="b"' not in found.text, "metrics of A count nothing of B"
                    seen += found.status_code == 200
    assert seen > 60, "these are pages and lists, not refusals"


def plain(entry: Entry) -> dict[str, str] | None:
    """Return the query that an address cannot do without, naming nothing."""
    query = entry.asks[0].query
    return None if query is None or any("{" in value for value in query.values()) else dict(query)


def test_guessed_ids_of_b_are_ids_that_nobody_has_and_b_stays_as_it_is(two: Two, tmp_path: Path) -> None:
    other, headers, (browser, csrf) = twin(two.book), two.key("admin"), two.browser("admin")
    tables: Tables = ((REST, two.client, headers), (PAGES, browser, {}))
    told: list[Any] = []
    compared = 0
    with unchanged(two, tmp_path):
        for safe in (True, False):  # what A writes under such an id is A's own, and is there from then on
            for table, client, sent in tables:
                for name, entry in table.items():
                    method = name.split(" ")[0]
                    if (method == "GET") is not safe:
                        continue
                    for ask in entry.asks:
                        if two.book.filled((entry.path, asdict(ask))) == other.filled((entry.path, asdict(ask))):
                            continue  # it names nothing, and answers what has become of A meanwhile
                        theirs = asked(client, method, entry, ask, two.book, sent, csrf)
                        nobodys = asked(client, method, entry, ask, other, sent, csrf)
                        assert SECRET not in theirs.text, name
                        assert theirs.status_code < 500, (name, theirs.text)
                        assert "idempotent-replayed" not in theirs.headers
                        said = [like(found.text, two.book, other) for found in (theirs, nobodys)]
                        if theirs.status_code != nobodys.status_code or said[0] != said[1]:
                            told.append((name, ask, theirs.status_code, nobodys.status_code, difference(*said)))
                        if safe and "{" in entry.path and theirs.status_code not in (303, 404):
                            told.append((name, theirs.status_code, theirs.text[:300]))
                        compared += 1
    assert compared > 120
    assert not told, "\n\n".join(map(str, told))


def test_cursors_of_b_lead_a_nowhere(two: Two) -> None:
    owner, headers, followed = two.key("admin", project="b"), two.key("admin"), 0
    for name, entry in REST.items():
        if not name.startswith("GET ") or "{" in entry.path:
            continue
        page = two.client.get(entry.path, params={**(plain(entry) or {}), "limit": "1"}, headers=owner)
        cursor = page.json().get("next") if page.status_code == 200 and page.text.startswith('{"items"') else None
        if cursor is not None:
            found = two.client.get(entry.path, params={"cursor": cursor}, headers=headers)
            assert found.status_code in (200, 422), (name, found.text)
            assert SECRET not in found.text
            assert found.status_code == 422 or MARK not in found.text, name
            followed += 1
    assert followed >= 8, "the lists of B have a second page"


def allowed(needs: str, scope: str) -> bool:
    return scope in (needs, "admin")


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_key_opens_what_its_scope_opens_and_nothing_else(two: Two) -> None:
    other, told = twin(two.book), []
    for scope in SCOPES:
        headers, (browser, csrf) = two.key(scope), two.browser(scope)
        for table, client, sent in ((REST, two.client, headers), (PAGES, browser, {})):
            for name, entry in table.items():
                found = asked(client, name.split(" ")[0], entry, entry.asks[0], other, sent, csrf)
                if (found.status_code == 403) is (allowed(entry.needs, scope) and name not in WHOLE_SERVER):
                    told.append((name, scope, found.status_code, found.text[:200]))
    assert not told, "\n".join(map(str, told))


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_no_key_a_wrong_one_an_expired_and_a_revoked_one_open_nothing(two: Two, tmp_path: Path) -> None:
    long_ago, over = "2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z"
    expired = two.store.create_key("old", ("admin",), now=long_ago, expires_at=over, project="b")[1]
    ended, gone = two.store.create_key("gone", ("admin",), now=NOW, project="b")
    two.store.revoke_key(ended.key_id, now=NOW, project="b")
    nobody = TestClient(two.client.app, base_url=ADDRESS)
    with unchanged(two, tmp_path):
        for given in (None, "rt_wrong", expired, gone):
            headers = {} if given is None else {"authorization": f"Bearer {given}"}
            for name, entry in REST.items():
                found = asked(two.client, name.split(" ")[0], entry, entry.asks[0], two.book, headers)
                assert found.status_code == 401, (name, given, found.text)
                assert SECRET not in found.text
        for name, entry in PAGES.items():
            found = asked(nobody, name.split(" ")[0], entry, entry.asks[0], two.book, {})
            assert found.status_code in (303, 403), (name, found.text)
            assert found.status_code == 403 or found.headers["location"].startswith("/login"), name
