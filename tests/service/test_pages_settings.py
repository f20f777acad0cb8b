"""Settings in a real browser: keys that are shown once and end when revoked, what a reader does not see, the audit."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from ringtrue.store import AuditEntry, Store, timestamp
from running_service import Served, running
from served import browser, looks, reading, serious

__all__ = ["browser"]

ENTRIES = 120
ADVICE = "[DOM]"
"""What a browser advises about fields for passwords is not a fault of a page."""


@pytest.fixture(scope="module")
def open_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without keys whose audit trail is long."""
    folder = tmp_path_factory.mktemp("settings")
    store = Store.open(folder / "store.sqlite")
    for number in range(ENTRIES):
        at = timestamp(datetime(2026, 1, 1, 0, number // 60, number % 60, tzinfo=UTC))
        store.add_audit(AuditEntry(at, "<b>somebody</b>", "set flag", f"flag-{number}", detail={"why": f"because {number}"}))
    store.close()
    with running(folder) as found:
        yield found.url


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str, str]]:
    """A server that needs keys, one of an administrator and one of a reader."""
    folder = tmp_path_factory.mktemp("locked")
    store = Store.open(folder / "store.sqlite")
    admin = store.create_key("operator", ["admin"], now=datetime.now(UTC))[1]
    reader = store.create_key("reader", ["read"], now=datetime.now(UTC))[1]
    store.close()
    with running(folder, keys=True) as found:
        yield found, admin, reader


def sign_in(page: Any, key: str) -> None:
    page.wait_for_url("**/login**")
    page.fill("#f-key", key)
    page.get_by_role("button", name="Sign in").click()


def answered(url: str, key: str) -> int:
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"}), timeout=30
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as problem:
        return problem.code


def test_a_key_is_shown_once_and_ends_when_it_is_revoked(browser: Any, locked: tuple[Served, str, str]) -> None:
    served, admin, _ = locked
    with reading(browser, f"{served.url}/settings/keys", expects=["401", ADVICE]) as page:
        sign_in(page, admin)
        page.wait_for_url(f"{served.url}/settings/keys")
        page.fill("#f-name", "hotel app")
        page.get_by_label("write: log searches").check()
        page.get_by_role("button", name="Make the key").click()
        shown = page.get_by_role("status", name="New key")
        token = shown.locator("code").inner_text()
        assert token.startswith("rt_")
        assert "shown only once" in shown.inner_text()
        assert answered(f"{served.url}/v1/flags", token) == 200

        assert token not in page.goto(f"{served.url}/settings/keys").text()
        line = page.locator("tbody tr", has_text="hotel app")
        assert "open" in line.inner_text()
        assert "read, write" in line.inner_text()
        line.get_by_text("Revoke…").click()
        line.get_by_role("button", name="Revoke the key of hotel app").click()
        page.wait_for_selector("tbody tr:has-text('revoked')")
        assert answered(f"{served.url}/v1/flags", token) == 401
        page.goto(f"{served.url}/settings/audit")
        assert [row.locator("td").nth(1).inner_text() for row in page.locator("tbody tr").all()[:2]] == [
            "key revoked",
            "key created",
        ]


def test_a_key_without_a_name_or_scope_is_not_made(browser: Any, open_url: str) -> None:
    with reading(browser, f"{open_url}/settings/keys", expects=["422"]) as page:
        page.fill("#f-name", "   ")
        page.get_by_role("button", name="Make the key").click()
        page.wait_for_selector("[role=alert]")
        assert "Give it a name" in page.inner_text("main")
        page.fill("#f-name", "<i>app</i>")
        page.get_by_label("read: see everything").uncheck()
        page.get_by_role("button", name="Make the key").click()
        page.wait_for_selector("[role=alert]:has-text('Choose what it may do')")
        page.wait_for_load_state()
        assert page.input_value("#f-name") == "<i>app</i>"
        assert "No keys yet" in page.inner_text("main")


def test_who_may_only_read_sees_no_button_and_no_key(browser: Any, locked: tuple[Served, str, str]) -> None:
    served, _, reader = locked
    with reading(browser, f"{served.url}/settings", expects=["401", "403", ADVICE]) as page:
        sign_in(page, reader)
        page.wait_for_url(f"{served.url}/settings")  # the address of the form ends with it, too
        assert "reader" in page.inner_text("main")
        assert page.get_by_role("link", name="Keys").count() == 0
        assert "Versions" not in page.inner_text("main")
        for place in ("/settings/keys", "/settings/audit"):
            assert page.goto(served.url + place).status == 403
        page.goto(f"{served.url}/flags")
        assert page.locator("main form").count() == 0
        page.goto(f"{served.url}/experiments")
        assert page.locator("main form").count() == 0
        page.goto(f"{served.url}/settings")
        page.locator("main").get_by_role("button", name="Sign out").click()
        page.wait_for_url("**/login**")


def test_the_audit_trail_is_read_page_by_page(browser: Any, open_url: str) -> None:
    with reading(browser, f"{open_url}/settings/audit") as page:
        seen: list[str] = []
        for _ in range(5):
            seen += [cell.inner_text() for cell in page.locator("tbody tr td:nth-of-type(3)").all()]
            following = page.get_by_role("link", name="Next page")
            if not following.count():
                break
            with page.expect_navigation():
                following.click()
        assert seen == [f"flag-{number}" for number in reversed(range(ENTRIES))]
        assert page.locator("main b").count() == 0
        page.get_by_text("because 0", exact=True).click()
        assert '"because 0"' in page.inner_text("main pre >> visible=true")


def test_the_server_says_how_it_is(browser: Any, open_url: str) -> None:
    with reading(browser, f"{open_url}/settings") as page:
        said = page.inner_text("main")
        for word in ("bm25", "sqlite", "no key: this machine alone reaches the server", "fastapi"):
            assert word in said


@pytest.mark.parametrize("path", ["/settings", "/settings/keys", "/settings/audit"])
def test_settings_are_accessible_in_both_themes_and_on_a_phone(browser: Any, open_url: str, path: str) -> None:
    with reading(browser, open_url + path, bypass_csp=True, width=390) as page:
        for look in looks(page, widths=(390,)):
            assert serious(page) == [], look
            assert page.evaluate("document.documentElement.scrollWidth") == 390
