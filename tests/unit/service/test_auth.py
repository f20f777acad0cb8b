"""Who may do what: keys, scopes, sessions, CSRF, hosts and origins."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from rest_service import problem, serving
from ringtrue.errors import InputError
from ringtrue.service import Settings, auth
from ringtrue.service.auth import SessionCookies
from ringtrue.service.pages.settings import local_path
from ringtrue.service.settings import Rates
from ringtrue.store import Store
from running_service import running

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[TestClient]:
    with serving(tmp_path, keys=True) as client:
        yield client


def key(client: TestClient, *scopes: str, project: str = "default", **more: object) -> dict[str, str]:
    store: Store = client.app.state.service.store  # type: ignore[attr-defined]
    _, token = store.create_key("tester", scopes, now=datetime.now(UTC), project=project, **more)  # type: ignore[arg-type]
    return {"authorization": f"Bearer {token}"}


def signed_in(client: TestClient, *scopes: str) -> str:
    """Sign in as a browser does and return the CSRF token."""
    form = csrf_of(client, "/login")
    token = key(client, *scopes)["authorization"].removeprefix("Bearer ")
    answer = client.post("/login", data={"key": token, "csrf": form, "next": "/"}, follow_redirects=False)
    assert answer.status_code == 303
    return csrf_of(client, "/settings")


def csrf_of(client: TestClient, page: str) -> str:
    found = re.search(r'<meta name="csrf-token" content="([^"]+)"', client.get(page).text)
    assert found is not None
    return found[1]


def test_beyond_loopback_nothing_is_open() -> None:
    assert Settings().open
    assert Settings(host="::1").open
    assert not Settings(keys=True).open
    assert not Settings(proxies=("127.0.0.1",)).open
    for host in ("0.0.0.0", "192.168.1.7", "::", "search.example.org"):
        assert not Settings(host=host).open


@pytest.mark.parametrize(
    "given", [{"host": " "}, {"port": 70_000}, {"prefix": "9lives"}, {"gauges": {"a": "b-c"}}, {"proxies": ("nginx",)}]
)
def test_settings_that_cannot_be_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Settings(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer nonsense", "Basic cnQ6eA==", "rt_x"])
def test_without_a_key_that_exists_nothing_opens(keyed: TestClient, header: str | None) -> None:
    headers = {} if header is None else {"authorization": header}
    for path in ("/v1/health", "/v1/runs", "/v1/queries", "/metrics"):
        answer = keyed.get(path, headers=headers)
        assert answer.status_code == 401, path
        assert problem(answer)["code"] == "no_key"
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_key_opens_what_its_scopes_say(keyed: TestClient) -> None:
    reader = key(keyed, "read")
    assert keyed.get("/v1/health", headers=reader).status_code == 200
    refused = keyed.post("/v1/queries", json={"query": "pool", "tool_name": "t", "result_ids": []}, headers=reader)
    assert refused.status_code == 403
    assert "scope 'write'" in problem(refused)["message"]
    assert keyed.get("/v1/keys", headers=reader).status_code == 403
    assert keyed.get("/v1/keys", headers=key(keyed, "admin")).status_code == 200


def test_an_expired_and_a_revoked_key_open_nothing(keyed: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    service = keyed.app.state.service  # type: ignore[attr-defined]
    short = key(keyed, "read", expires_at=datetime.now(UTC) + timedelta(hours=1))
    assert keyed.get("/v1/health", headers=short).status_code == 200
    monkeypatch.setattr(auth, "REMEMBERED_S", 0.0)
    service.keyring.forget()
    monkeypatch.setattr(service, "now", lambda: datetime.now(UTC) + timedelta(hours=2))
    assert keyed.get("/v1/health", headers=short).status_code == 401
    monkeypatch.undo()
    admin = key(keyed, "admin")
    made = keyed.post("/v1/keys", json={"name": "for a while", "scopes": ["read"]}, headers=admin).json()
    theirs = {"authorization": f"Bearer {made['token']}"}
    assert keyed.get("/v1/health", headers=theirs).status_code == 200
    assert keyed.delete(f"/v1/keys/{made['key_id']}", headers=admin).status_code in (200, 204)
    assert keyed.get("/v1/health", headers=theirs).status_code == 401, "revoked here it ends at once"


def test_guessing_keys_is_slowed_down(tmp_path: Path) -> None:
    with serving(tmp_path, keys=True, rates=Rates(login=0.01)) as client:
        codes = [client.get("/v1/health", headers={"authorization": f"Bearer rt_{n}"}).status_code for n in range(30)]
        assert codes[0] == 401
        assert codes[-1] == 429
        assert client.get("/v1/health", headers=key(client, "read")).status_code == 200, "others' wrong keys shut nobody out"
        signed_in(client, "read")
        form = {"key": "rt_wrong", "csrf": csrf_of(client, "/login")}
        refused = client.post("/login", data=form)
        assert refused.status_code == 429, "one address, whether it sends keys to the pages or to /v1"
        assert int(refused.headers["retry-after"]) >= 1


def test_signing_in_is_no_failure(tmp_path: Path) -> None:
    with serving(tmp_path, keys=True, rates=Rates(login=0.01)) as client:
        for _ in range(15):
            signed_in(client, "read")
        assert client.get("/v1/health", headers={"authorization": "Bearer rt_wrong"}).status_code == 401, (
            "the first that failed"
        )


def test_wrong_keys_are_looked_up_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sends thousands takes no more of the threads than that, and a key that opened something does not queue."""
    inside, most, known = 0, 0, "rt_known"

    def find(self: auth.Keyring, token: str, *, now: datetime) -> None:
        nonlocal inside, most
        if token == known:
            return
        with lock:
            inside += 1
            most = max(most, inside)
        go_on.wait(10)
        with lock:
            inside -= 1

    async def ask() -> None:
        ring = auth.Keyring(Store.__new__(Store))
        ring._known[auth.digest(known)] = (0.0, None)  # type: ignore[arg-type]
        masses = [asyncio.create_task(ring.look_up(f"rt_{n}", now=NOW)) for n in range(30)]
        await asyncio.wait_for(ring.look_up(known, now=NOW), 5)
        go_on.set()
        await asyncio.gather(*masses)

    lock, go_on = threading.Lock(), threading.Event()
    monkeypatch.setattr(auth.Keyring, "find", find)
    asyncio.run(ask())
    assert 1 <= most <= auth.LOOKED_UP_AT_ONCE


def test_too_many_requests_are_told_to_wait(tmp_path: Path) -> None:
    with serving(tmp_path, rates=Rates(other=1.0)) as client:
        answers = [client.get("/v1/flags") for _ in range(15)]
    last = answers[-1]
    assert answers[0].status_code == 200
    assert last.status_code == 429
    assert problem(last)["code"] == "too_many_requests"
    assert int(last.headers["retry-after"]) >= 1


def test_a_key_is_one_caller_however_it_is_spelled(tmp_path: Path) -> None:
    with serving(tmp_path, keys=True, rates=Rates(other=0.01)) as client:
        token = key(client, "read")["authorization"].removeprefix("Bearer ")
        spelled = [f"{word}{' ' * n}{token}" for word in ("Bearer", "bearer", "BEARER", "bEARER") for n in (1, 2, 3, 4)]
        codes = [client.get("/v1/flags", headers={"authorization": one}).status_code for one in spelled]
        assert codes == [200] * 10 + [429] * 6


def test_a_key_that_is_made_up_makes_no_other_reader(tmp_path: Path) -> None:
    with serving(tmp_path, rates=Rates(other=0.01)) as client:
        codes = [client.get("/flags", headers={"authorization": f"Bearer rt_{n}"}).status_code for n in range(16)]
        assert codes == [200] * 10 + [429] * 6


def test_another_host_name_is_turned_away(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        assert client.get("/v1/health", headers={"host": "elsewhere.test"}).status_code == 400
        assert client.get("/v1/health", headers={"host": "localhost:8080"}).status_code == 200
        assert client.get("/v1/health", headers={"host": "[::1]:8080"}).status_code == 200


@pytest.mark.parametrize("hosts", [[], ["127.0.0.1", "127.0.0.1"], ["127.0.0.1", "elsewhere.test"], ["127.0.0.1, evil"]])
@pytest.mark.parametrize("keys", [False, True])
def test_a_request_has_exactly_one_host_header(tmp_path: Path, hosts: list[str], keys: bool) -> None:
    with running(tmp_path, keys=keys) as found, socket.create_connection(("127.0.0.1", urlsplit(found.url).port)) as line:
        lines = ["GET /healthz HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""]
        line.sendall("\r\n".join(lines).encode())
        with line.makefile("rb") as answer:
            text = answer.read().decode()
    assert text.startswith("HTTP/1.1 400 ")
    assert "send exactly one" in text


def test_a_name_for_others_needs_keys(tmp_path: Path) -> None:
    with serving(tmp_path, hosts=("search.example.org",)) as client:
        named = {"host": "search.example.org"}
        assert client.get("/v1/health", headers=named).status_code == 401
        assert client.get("/v1/health", headers={**named, **key(client, "read")}).status_code == 200
        assert client.get("/v1/health", headers={"host": "elsewhere.test"}).status_code == 400


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded", "via", "x-real-ip"])
def test_without_keys_nothing_is_passed_on_by_a_proxy(tmp_path: Path, header: str) -> None:
    with serving(tmp_path) as client:
        refused = client.get("/v1/health", headers={header: "203.0.113.7"})
        assert refused.status_code == 403
        assert problem(refused)["code"] == "proxied"
    with serving(tmp_path, keys=True) as client:
        assert client.get("/v1/health", headers={header: "203.0.113.7", **key(client, "read")}).status_code == 200


def behind(client: TestClient, peer: str) -> TestClient:
    """Return a client that calls from an address."""
    return TestClient(client.app, base_url="http://127.0.0.1:8080", client=(peer, 50_000))


def tries(client: TestClient, count: int, *passed_on: str) -> list[int]:
    """Send wrong keys, with these lines of X-Forwarded-For, and return how they were answered."""
    lines = [("x-forwarded-for", line) for line in passed_on]
    return [client.get("/v1/flags", headers=[("authorization", f"Bearer rt_{n}"), *lines]).status_code for n in range(count)]


def test_a_proxy_that_is_believed_says_who_asks(tmp_path: Path) -> None:
    with serving(tmp_path, keys=True, proxies=("10.0.0.0/24", "::1"), rates=Rates(login=0.001)) as client:
        proxy = behind(client, "10.0.0.1")
        assert tries(proxy, 11, "203.0.113.7") == [401] * 10 + [429]
        assert tries(proxy, 1, "203.0.113.8") == [401], "somebody else"
        assert tries(proxy, 1, "203.0.113.7, 10.0.0.9") == [429], "through two of them"
        assert tries(proxy, 1, "203.0.113.7", "10.0.0.9") == [429], "each in a line of its own"
        assert tries(proxy, 1, "203.0.113.7:4711") == [429]
        assert tries(behind(client, "::1"), 1, "203.0.113.7") == [429], "through a proxy over IPv6"


def test_what_a_caller_says_of_its_address_is_not_believed(tmp_path: Path) -> None:
    with serving(tmp_path, keys=True, proxies=("10.0.0.1",), rates=Rates(login=0.001)) as client:
        caller = behind(client, "203.0.113.7")
        assert [tries(caller, 1, f"198.51.100.{n}")[0] for n in range(11)] == [401] * 10 + [429], "it is not a proxy"
        proxy = behind(client, "10.0.0.1")
        codes = [tries(proxy, 1, f"198.51.100.{n}, 203.0.113.9")[0] for n in range(11)]
        assert codes == [401] * 10 + [429], "the proxy added the last, and the caller all before"
        codes = [tries(proxy, 1, f"198.51.100.{n}, nonsense")[0] for n in range(11)]
        assert codes == [401] * 10 + [429], "behind what is not an address nothing is believed"
    with serving(tmp_path, keys=True, rates=Rates(login=0.001)) as client:
        codes = [tries(behind(client, "127.0.0.1"), 1, f"198.51.100.{n}")[0] for n in range(11)]
        assert codes == [401] * 10 + [429], "nobody is believed unasked"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://elsewhere.test"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:1"},
    ],
)
def test_another_sites_page_changes_nothing(tmp_path: Path, headers: dict[str, str]) -> None:
    search = {"query": "pool", "tool_name": "t", "result_ids": []}
    with serving(tmp_path) as client:
        refused = client.post("/v1/queries", json=search, headers=headers)
        assert refused.status_code == 403
        assert problem(refused)["code"] == "cross_site"
        assert client.post("/v1/queries", json=search, headers={"origin": "http://127.0.0.1:8080"}).status_code == 201
        assert client.get("/v1/queries").json()["items"][0]["query"] == "pool"


def test_a_browser_signs_in_once_and_cookies_open_no_rest(keyed: TestClient) -> None:
    away = keyed.get("/settings?tab=x", follow_redirects=False)
    assert (away.status_code, away.headers["location"]) == (303, "/login?next=/settings%3Ftab%3Dx")
    signed_in(keyed, "admin")
    cookie = keyed.cookies[auth.COOKIE]
    assert keyed.get("/settings").status_code == 200
    assert keyed.get("/v1/health").status_code == 401
    keyed.cookies.clear()
    keyed.cookies.set(auth.COOKIE, cookie[:-1] + ("0" if cookie[-1] != "0" else "1"))
    assert keyed.get("/settings", follow_redirects=False).status_code == 303, "a cookie that was changed is none"


def test_a_session_ends_with_its_key(keyed: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in(keyed, "admin")
    store: Store = keyed.app.state.service.store  # type: ignore[attr-defined]
    assert keyed.get("/settings").status_code == 200
    for one in store.keys(project="default"):
        store.revoke_key(one.key_id, now=datetime.now(UTC))
    assert keyed.get("/settings", follow_redirects=False).status_code == 303


def test_who_signs_out_leaves_no_cookie_behind(keyed: TestClient) -> None:
    form = signed_in(keyed, "admin")
    copied = keyed.cookies[auth.COOKIE]
    other = TestClient(keyed.app, base_url="http://127.0.0.1:8080", cookies={auth.COOKIE: copied})
    second = TestClient(keyed.app, base_url="http://127.0.0.1:8080")
    signed_in(second, "admin")
    assert other.get("/settings", follow_redirects=False).status_code == 200
    assert keyed.post("/logout", data={"csrf": form}, follow_redirects=False).status_code == 303
    other.cookies.clear()
    assert other.get("/settings", headers={"cookie": f"{auth.COOKIE}={copied}"}, follow_redirects=False).status_code == 303
    assert second.get("/settings", follow_redirects=False).status_code == 200, "another session of the same reader goes on"


def test_who_signs_in_anew_leaves_no_cookie_behind(keyed: TestClient) -> None:
    signed_in(keyed, "admin")
    copied = keyed.cookies[auth.COOKIE]
    signed_in(keyed, "read")
    other = TestClient(keyed.app, base_url="http://127.0.0.1:8080")
    assert other.get("/settings", headers={"cookie": f"{auth.COOKIE}={copied}"}, follow_redirects=False).status_code == 303


def test_sessions_that_ended_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "MOST_ENDED", 5)
    sessions = SessionCookies("a secret")

    def signed_out(at: datetime) -> str:
        one = auth.BrowserSession(f"nonce {at}", (at + auth.SESSION).timestamp(), "key_1", "default")
        sessions.end(one, now=at)
        return sessions.cookie(one)

    for n in range(20):
        latest = signed_out(NOW + timedelta(minutes=n))
        assert sessions.read(latest, now=NOW + timedelta(minutes=n)) is None
        assert len(sessions._ended) <= 5
    sessions.end(sessions.begin(now=NOW), now=NOW)
    assert len(sessions._ended) == 5, "a session of nobody opens nothing, and is not remembered"
    signed_out(NOW + timedelta(days=2))
    assert len(sessions._ended) == 1, "those that are over anyway are forgotten first"


def test_a_wrong_key_signs_nobody_in(keyed: TestClient) -> None:
    form = csrf_of(keyed, "/login")
    answer = keyed.post("/login", data={"key": "rt_wrong", "csrf": form})
    assert answer.status_code == 401
    assert "unknown, expired or revoked" in answer.text
    assert "rt_wrong" not in answer.text


@pytest.mark.parametrize("token", [None, "", "0" * 64, "ä"])
def test_a_change_without_the_csrf_token_is_refused(keyed: TestClient, token: str | None) -> None:
    good = signed_in(keyed, "admin")
    form = {"name": "somebody"} if token is None else {"name": "somebody", "csrf": token}
    refused = keyed.post("/logout", data=form, follow_redirects=False)
    assert refused.status_code == 403
    assert keyed.get("/settings", follow_redirects=False).status_code == 200, "still signed in"
    assert keyed.post("/logout", data={"csrf": good}, follow_redirects=False).status_code == 303
    assert keyed.get("/settings", follow_redirects=False).status_code == 303


def test_the_token_of_another_session_is_refused(keyed: TestClient) -> None:
    other = keyed.app.state.service.sessions  # type: ignore[attr-defined]
    signed_in(keyed, "admin")
    foreign = other.csrf(other.begin(now=datetime.now(UTC)))
    assert keyed.post("/logout", data={"csrf": foreign}, follow_redirects=False).status_code == 403
    assert keyed.post("/logout", headers={"x-csrf-token": foreign}, follow_redirects=False).status_code == 403


def test_cookies_are_kept_from_scripts_and_over_tls_from_plain_lines(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        cookie = client.get("/login", follow_redirects=False).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert "Secure" not in cookie
    with serving(tmp_path, https=True) as client:
        answer = client.get("/login", follow_redirects=False)
        assert "; Secure" in answer.headers["set-cookie"]
        assert "max-age" in answer.headers["strict-transport-security"]


def test_sessions_end_and_are_signed() -> None:
    sessions = SessionCookies("a secret")
    begun = sessions.begin(now=NOW)
    cookie = sessions.cookie(begun)
    assert sessions.read(cookie, now=NOW) == begun
    assert sessions.read(cookie, now=NOW + auth.SESSION + timedelta(seconds=1)) is None
    assert SessionCookies("another").read(cookie, now=NOW) is None
    for broken in ("", ".", "x.y", cookie + "0", "." + cookie, "ä" + cookie):
        assert sessions.read(broken, now=NOW) is None


@pytest.mark.parametrize(
    "wanted", ["//evil.test", "/\\evil.test", "https://evil.test", "javascript:alert(1)", "", "evil", "/a\\b", "/x\n"]
)
def test_signing_in_never_leads_elsewhere(wanted: str) -> None:
    assert local_path(wanted) == "/"


def test_the_headers_that_keep_browsers_safe_are_on_every_answer(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        for path in ("/v1/health", "/login", "/nothing", "/v1/nothing", "/healthz", "/static/app.css"):
            headers = client.get(path, follow_redirects=False).headers
            assert headers["x-content-type-options"] == "nosniff", path
            assert "frame-ancestors 'none'" in headers["content-security-policy"], path
            assert "'unsafe" not in headers["content-security-policy"], path
            assert headers["x-request-id"], path
            assert "server" not in headers, path
