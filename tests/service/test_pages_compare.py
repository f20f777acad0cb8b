"""Comparing two runs in a real browser, down to the document that was lost."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from served import browser, demo_template, demo_url, empty_url, looks, reading, serious

__all__ = ["browser", "demo_template", "demo_url", "empty_url"]


def compare(page: Any, demo_url: str) -> None:
    """Compare hybrid with the fusion whose weights are wrong."""
    page.goto(f"{demo_url}/runs?gate=fail")
    page.locator("#rows tbody th a").first.click()
    page.wait_for_url("**/runs/regression-*")
    label = next(text for text in page.locator("#f-a option").all_inner_texts() if ", hybrid on hotel-v2" in text)
    page.select_option("#f-a", label=label)
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/compare?**")  # a run has a verdict, too


def test_two_runs_are_compared_and_the_lost_document_is_two_clicks_away(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url) as page:
        page.set_default_timeout(60_000)
        compare(page, demo_url)
        assert page.inner_text(".verdict-box h2") == "Worse"
        row = page.locator("#measures tr.primary")
        assert row.locator("th").inner_text() == "nDCG@10"
        assert "worse" in row.inner_text()

        # 1: those that lost a relevant document; 2: the query that lost most.
        page.select_option("#f-only", "lost")
        page.wait_for_url("**only=lost**")
        named = page.locator("#rows .lost-line bdi").first.inner_text()
        page.locator("#rows tbody th a").first.click()
        page.wait_for_url("**/compare/query?**")

        lost = page.locator("#lost [data-lost]").first
        assert named in page.inner_text("#lost")
        assert "Cut by fusion" in lost.inner_text()
        document = lost.get_attribute("data-lost")
        there = page.locator(f".rankings > div:first-child li[data-doc='{document}']")
        assert int(there.locator(".rank").inner_text()) <= 10
        assert "▼" in there.locator(".moved").inner_text() or "gone" in there.locator(".moved").inner_text()


def test_every_dot_leads_to_its_query_and_the_measure_can_be_chosen(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url) as page:
        page.set_default_timeout(60_000)
        compare(page, demo_url)
        dots = page.locator(".plot-box.square a")
        assert dots.count() == 73
        page.get_by_role("link", name="R@5", exact=True).click()
        page.wait_for_url("**measure=R%405**")
        assert page.locator("#measures tr.primary th").inner_text() == "R@5"
        address = page.locator(".plot-box.square a").last.get_attribute("href")
        assert address is not None
        asked = parse_qs(urlsplit(address).query)
        assert asked["measure"] == ["R@5"]
        page.goto(demo_url + address)
        assert asked["q"][0] in page.inner_text(".crumbs")
        page.keyboard.press("j")
        page.wait_for_url(lambda url: asked["q"][0] not in url)


def test_the_sum_of_wins_ties_and_losses_is_every_query_and_bars_show_them(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url) as page:
        page.set_default_timeout(60_000)
        compare(page, demo_url)
        words = page.inner_text(".verdict-box .legend").replace("\n", " ").split()
        counts = [int(word) for word in words if word.isdigit()]
        assert len(counts) == 3
        assert sum(counts) == 73
        page.goto(page.url + "&only=better")
        assert f"of {counts[0]}" in page.inner_text("#queries") or page.locator("#rows tbody tr").count() == counts[0]


def test_the_axis_of_the_differences_stands_beside_its_bars(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url) as page:
        page.set_default_timeout(60_000)
        compare(page, demo_url)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            ends = page.eval_on_selector_all(".plot-box.beside .tick", "all => all.map(t => t.getBoundingClientRect().right)")
            begins = page.eval_on_selector(".plot-box.beside svg.chart", "one => one.getBoundingClientRect().left")
            assert len(ends) >= 2
            assert max(ends) <= begins, width
        row = page.locator("#measures tr.primary")
        assert row.locator(".narrow").is_visible(), "both means are there on a phone"
        value, sub = row.locator("td.n:visible").first, row.locator("td.n:visible .sub").first
        texts = [page.evaluate("one => getComputedStyle(one).textAlign", one.element_handle()) for one in (value, sub)]
        assert texts == ["start", "start"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/compare?a=x&b=x", "same run"),
        ("/compare?a=x&b=y", "there is no run"),
        ("/compare/query?a=x&b=y&q=q1", "there is no run"),
    ],
)
def test_what_cannot_be_compared_is_said(browser: Any, demo_url: str, path: str, said: str) -> None:
    with reading(browser, demo_url + path, expects=["status of 4"]) as page:
        assert said in page.inner_text(".problem")


def test_without_two_runs_the_page_says_what_to_do_next(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/compare") as page:
        assert "Two runs are needed" in page.inner_text(".empty")
        page.locator(".empty").get_by_role("link", name="Evaluate").click()
        assert page.url == f"{empty_url}/evaluate"


@pytest.mark.parametrize("which", ["choose", "compared", "query"])
def test_axe_finds_nothing_serious(browser: Any, demo_url: str, which: str) -> None:
    with reading(browser, f"{demo_url}/compare", bypass_csp=True) as page:
        page.set_default_timeout(60_000)
        if which != "choose":
            compare(page, demo_url)
        if which == "query":
            page.locator("#rows tbody th a").first.click()
            page.wait_for_url("**/compare/query?**")
        for theme, width in looks(page):
            assert serious(page) == [], (theme, width)
            assert page.evaluate("document.documentElement.scrollWidth") == width
