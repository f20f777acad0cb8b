"""Nothing that a browser can be made to send changes anything: tokens, hosts and origins, on every unsafe page address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rest_service import serving
from ringtrue.store import Store
from service_routes import OPEN, PAGES, REST, addresses

ADDRESS = "http://127.0.0.1:8080"
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(scope="module")
def app_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with serving(tmp_path_factory.mktemp("keyed"), keys=True) as client:
        yield client


def signed_in(app_client: TestClient) -> tuple[TestClient, str]:
    """Return a browser with a session of an admin, and the CSRF token of its pages."""
    store: Store = app_client.app.state.service.store  # type: ignore[attr-defined]
    token = store.create_key("tester", ("admin",), now=datetime.now(UTC))[1]
    browser = TestClient(app_client.app, base_url=ADDRESS)
    answer = browser.post("/login", data={"key": token, "csrf": csrf(browser, "/login")}, follow_redirects=False)
    assert answer.status_code == 303
    return browser, csrf(browser, "/settings")


def csrf(browser: TestClient, page: str) -> str:
    found = re.search(r'<meta name="csrf-token" content="([^"]+)"', browser.get(page).text)
    assert found is not None
    return found[1]


def unsafe(client: TestClient) -> list[tuple[str, str]]:
    """Return method and path of every address that changes something and is asked by browsers."""
    found = [tuple(name.split(" ")) for name in addresses(client.app)]  # type: ignore[arg-type]
    return [
        (method, re.sub(r"\{.*?\}", "x", path)) for method, path in found if method in UNSAFE and not path.startswith("/v1")
    ]


def test_no_page_changes_anything_without_the_token_of_its_session(app_client: TestClient) -> None:
    browser, good = signed_in(app_client)
    other = signed_in(app_client)[1]
    known = unsafe(app_client)
    assert len(known) >= 20
    for method, path in known:
        for headers, form in (
            ({}, {"x": "y"}),
            ({}, {"csrf": ""}),
            ({}, {"csrf": other}),
            ({"x-csrf-token": other}, {"csrf": good}),
            ({"x-csrf-token": good[:-1]}, {}),
        ):
            found = browser.request(method, path, data=form, headers=headers, follow_redirects=False)
            assert found.status_code == 403, (method, path, headers, form, found.text)
        plain = browser.request(
            method, path, content=b'{"csrf": "x"}', headers={"content-type": "text/plain"}, follow_redirects=False
        )
        assert plain.status_code == 403, (method, path)
        if path != "/logout":
            right = browser.request(method, path, data={"csrf": good}, follow_redirects=False)
            assert right.status_code != 403, (method, path, "the token is what was missing")
    assert browser.get("/settings", follow_redirects=False).status_code == 200, "still signed in"


@pytest.mark.parametrize(
    "headers", [{"origin": "https://elsewhere.test"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
def test_no_address_takes_a_change_from_another_site(app_client: TestClient, headers: dict[str, str]) -> None:
    browser, good = signed_in(app_client)
    known = [tuple(name.split(" ")) for name in (*REST, *PAGES, *OPEN)]
    for method, path in known:
        if method in UNSAFE:
            plain = re.sub(r"\{.*?\}", "x", path)
            found = browser.request(method, plain, data={"csrf": good}, headers=headers, follow_redirects=False)
            assert found.status_code == 403, (method, path)
            assert "cross_site" in found.text or "another site" in found.text or "page of" in found.text, (method, path)


def test_no_address_answers_under_another_name(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        for name in (*REST, *PAGES, *OPEN):
            method, path = name.split(" ")
            plain = re.sub(r"\{.*?\}", "x", path)
            found = client.request(method, plain, headers={"host": "elsewhere.test"}, follow_redirects=False)
            assert found.status_code == 400, name
