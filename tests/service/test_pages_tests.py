"""Shadow runs and sequential tests in a real browser: the boundary plot, what changed, the way to stop one."""

from __future__ import annotations

from typing import Any

import pytest

from served import browser, demo_template, demo_url, empty_url, looks, reading, serious

__all__ = ["browser", "demo_template", "demo_url", "empty_url"]


def test_candidates_and_tests_are_listed_with_what_they_show(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/tests") as page:
        shadows, tests = page.locator("table").all()
        assert {row.inner_text() for row in shadows.locator("tbody th a").all()} == {"hybrid-search", "tuned-fusion"}
        graduated, running = tests.locator("tbody tr").all()
        assert "Graduated" in graduated.inner_text()
        assert "candidate accepted after" in graduated.inner_text()
        assert "Running" in running.inner_text()
        assert running.locator("svg.spark").get_attribute("aria-label").startswith("Evidence of tuned-fusion")
        graduated.get_by_role("link").click()
        page.wait_for_url("**/tests/hybrid-search")


def test_the_boundary_plot_has_its_bounds_and_its_decision(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/tests/hybrid-search") as page:
        plot = page.get_by_role("img", name="Evidence of hybrid-search")
        label = plot.get_attribute("aria-label")
        assert "between the bounds -1.56 and 2.77" in label
        assert "candidate accepted after" in label
        words = [one.text_content() for one in plot.locator("text").all()]
        assert {"accept above", "reject below", "accepted"} <= set(words)
        assert plot.locator(".limit.good, .limit.bad").count() == 2
        # Right of the middle, above the upper bound: where it was decided.
        mark, upper = plot.locator("circle.decided"), plot.locator(".limit.good")
        assert float(mark.get_attribute("cy")) < float(upper.get_attribute("y1"))
        assert "Above +2.77 the candidate is accepted" in page.inner_text(".bounds")
        assert "They do not change the decision" in page.inner_text("main")


def test_an_interval_against_zero_is_drawn_where_the_method_has_one(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/tests/tuned-fusion") as page:
        plot = page.get_by_role("img", name="Mean difference of tuned-fusion with its interval")
        assert plot.locator(".band").count() == 1
        assert plot.locator(".zero").count() == 1
        assert "not decided yet" in page.inner_text(".tiles >> nth=0")
        assert page.get_by_role("img", name="The share of results that both searches have").locator("path.bars").count() > 0
        # Queries of guests lead to the log; those of a golden set are in none, but have a page of their own.
        different = page.get_by_role("region", name="Most different")
        assert different.locator("a[href^='/queries/eq_']").count() > 0
        assert different.locator("a[href^='/queries/golden']").count() == 0
        different.locator("a[href^='/queries/eq_']").first.click()
        page.wait_for_url("**/queries/eq_*")
        assert page.locator("h1").inner_text()


def test_a_test_is_paused_and_resumed_with_a_reason_in_the_audit_trail(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/tests/tuned-fusion") as page:
        page.fill("#f-why", "the log was down")
        page.get_by_role("button", name="Pause").click()
        page.wait_for_selector("h1 .badge.unsure")
        assert "Paused" in page.inner_text("h1")
        page.goto(f"{demo_url}/settings/audit")
        newest = page.locator("tbody tr").first.inner_text()
        assert "tuned-fusion" in newest
        assert "the log was down" in newest
        page.goto(f"{demo_url}/tests/tuned-fusion")
        page.get_by_role("button", name="Resume").click()
        page.wait_for_selector("h1 .badge.live")
        page.wait_for_load_state()
        assert page.get_by_role("button", name="Resume").count() == 0


def test_nothing_tested_yet_says_how_to_begin(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/tests", bypass_csp=True, expects=["404"]) as page:
        assert "Nothing runs in the shadow" in page.inner_text("main")
        assert "ringtrue test create new-reranker" in page.inner_text("main")
        assert serious(page) == []
        assert page.goto(f"{empty_url}/tests/nobody").status == 404
        assert "'nobody' has neither a test nor a shadow" in page.inner_text("main")


@pytest.mark.parametrize("path", ["/tests", "/tests/hybrid-search", "/tests/tuned-fusion"])
def test_tests_are_accessible_in_both_themes_and_on_a_phone(browser: Any, demo_url: str, path: str) -> None:
    with reading(browser, demo_url + path, bypass_csp=True, width=390) as page:
        for look in looks(page, widths=(390,)):
            assert serious(page) == [], look
            assert page.evaluate("document.documentElement.scrollWidth") == 390
