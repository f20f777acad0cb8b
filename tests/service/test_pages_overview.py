"""The overview in a real browser: health, trends and alerts; and a new user's way from an empty store to a verdict."""

from __future__ import annotations

from typing import Any

import pytest

from served import browser, demo_template, demo_url, empty_url, looks, reading, serious

__all__ = ["browser", "demo_template", "demo_url", "empty_url"]


def ticked(page: Any) -> list[bool]:
    return [bool("done" in (one.get_attribute("class") or "")) for one in page.locator(".steps > li").all()]


def result(page: Any, address: str) -> None:
    """Wait for what came of a job: its page leads there, and has a link where the job was done before it was shown."""
    link = page.get_by_role("link", name="Open the result")
    link.or_(page.locator(".verdict-box")).wait_for()
    if link.count():
        link.click()
    page.wait_for_url(address)


def test_a_new_user_comes_from_an_empty_store_to_the_first_verdict_by_clicking(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/") as page:
        page.set_default_timeout(60_000)
        assert "Nothing is here yet" in page.inner_text("main")
        assert ticked(page) == [False] * 4

        page.get_by_role("button", name="Use the shipped hotel set").click()
        page.wait_for_selector(".step.done")
        page.wait_for_load_state()
        assert ticked(page) == [True, False, False, False]

        page.locator(".steps").get_by_role("link", name="Evaluate").click()
        page.wait_for_url("**/evaluate")
        page.fill("#f-retriever", "bm25")
        page.get_by_role("button", name="Evaluate", exact=True).click()
        result(page, "**/runs/full-*")
        assert page.locator("h1").inner_text() == "bm25"
        assert "MEASURED" in page.inner_text(".verdict-box").upper()

        page.goto(f"{empty_url}/")
        assert ticked(page) == [True, True, False, False]
        page.get_by_role("button", name="Keep the last run").click()
        page.wait_for_selector(".steps > li:nth-child(3).done")

        page.get_by_role("link", name="Evaluate a change").click()
        page.wait_for_url("**/evaluate?**")
        assert page.input_value("#f-baseline") == "production"
        # Short answers find less than the standard does.
        page.fill("#f-retriever", "fts5")
        page.get_by_role("button", name="Evaluate", exact=True).click()
        result(page, "**/runs/regression-*")

        said = page.inner_text(".verdict-box h2")
        assert said in ("PASS", "FAIL", "UNDECIDED")
        assert page.locator("#checks tbody tr").count() > 3
        page.goto(f"{empty_url}/")
        assert page.locator(".steps").count() == 0
        assert said.capitalize() in page.inner_text("#runs tbody tr:first-child")
        # The first page goes on to tell of the standard, not of what was tried.
        assert "bm25 on hotel" in page.inner_text(".tiles")


def test_what_needs_attention_comes_first_and_leads_to_the_page_that_helps(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/") as page:
        assert "Needs attention: flags" in page.inner_text(".verdict-line")
        first = page.locator(".health > li").first
        assert "Needs attention" in first.inner_text()
        first.get_by_role("link").click()
        assert page.url == f"{demo_url}/flags"


def test_trends_show_every_evaluation_with_its_interval_and_lead_to_its_run(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/") as page:
        dots = page.locator("#quality .trends figure").first.locator("a")
        assert dots.count() >= 4
        # The search was measured on two versions of the set: in each of the three pictures one band for either.
        assert page.locator("#quality .band").count() == 6
        assert page.locator("#quality .cut").count() == 3
        assert "Pass" in page.inner_text("#quality .verdicts")

        page.locator("#quality .chips a").nth(1).click()
        assert "series=1" in page.url
        assert page.locator("#quality .chips a").nth(1).get_attribute("aria-current") == "true"
        page.locator("#quality .trends figure").first.locator("a").first.click()
        page.wait_for_url("**/runs/*-2*")


@pytest.mark.parametrize("store", ["demo_url", "empty_url"])
def test_axe_finds_nothing_serious_and_nothing_runs_over_the_edge(
    browser: Any, request: pytest.FixtureRequest, store: str
) -> None:
    url = request.getfixturevalue(store)
    with reading(browser, f"{url}/", bypass_csp=True) as page:
        for theme, width in looks(page):
            assert serious(page) == [], (theme, width)
            assert page.evaluate("document.documentElement.scrollWidth") == width
