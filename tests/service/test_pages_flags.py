"""Flags in a real browser: the checklist that says why one moved or waits, and the ways to move it."""

from __future__ import annotations

from typing import Any

import pytest

from served import browser, demo_template, demo_url, empty_url, looks, reading, serious

__all__ = ["browser", "demo_template", "demo_url", "empty_url"]


def test_flags_are_listed_with_how_many_they_reach(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/flags") as page:
        lines = {row.locator("th a").inner_text(): row for row in page.locator("tbody tr").all()}
        made_below = {"short-answers"}
        assert set(lines) - made_below == {"diverse-results", "hybrid-search", "tuned-fusion"}
        assert "Graduated" in lines["hybrid-search"].inner_text()
        assert lines["hybrid-search"].locator("meter").get_attribute("value") == "100.0"
        assert "Paused" in lines["diverse-results"].inner_text()


def test_the_page_of_a_flag_says_why_it_waits(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/flags/tuned-fusion") as page:
        said = page.get_by_role("region", name="Where it stands").inner_text()
        assert "It waits at 10 %" in said
        assert "sequential test" in said
        stage = page.locator(".stages [aria-current=step]")
        assert stage.inner_text().startswith("10 %")
        missing, holding = page.locator(".checklist").all()
        assert missing.locator(".sign.bad").count() >= 1
        assert "Sequential test not known" in missing.inner_text()
        assert missing.locator(".sign.good").count() == 0
        assert holding.locator(".sign.good").count() == holding.locator("li").count() >= 1
        count = missing.locator("li").count()
        assert f"{count} of {count + holding.locator('li').count()} checks" in said


def test_the_page_of_a_flag_says_why_it_was_taken_back_or_has_arrived(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/flags/diverse-results") as page:
        said = page.get_by_role("region", name="Where it stands").inner_text()
        assert "It is paused at 0 %" in said
        assert "rollback: live latency" in said
        page.goto(f"{demo_url}/flags/hybrid-search")
        assert "It is graduated, at 100 %" in page.get_by_role("region", name="Where it stands").inner_text()
        assert page.locator(".stages .done").count() == 6
        moves = page.get_by_role("region", name="History").inner_text()
        assert "50\u00a0% → 100\u00a0%" in moves
        assert "advance: every check holds" in moves


def test_deciding_on_the_evidence_moves_nothing_that_lacks_it(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/flags/tuned-fusion") as page:
        before = page.get_by_role("region", name="History").locator("tbody tr").count()
        page.get_by_role("button", name="Decide now").click()
        page.wait_for_url("**/flags/tuned-fusion?stepped=wait")
        assert "Nothing moved" in page.inner_text("main")
        assert page.locator(".stages [aria-current=step]").inner_text().startswith("10 %")
        assert page.get_by_role("region", name="History").locator("tbody tr").count() == before
        page.goto(f"{demo_url}/flags/tuned-fusion?stepped=<script>")
        assert "Decided just now" not in page.inner_text("main")


def test_a_flag_is_made_set_and_rolled_back_and_each_move_is_written_down(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/flags") as page:
        page.fill("#f-name", "short-answers")
        page.fill("#f-why", "try shorter passages")
        page.get_by_role("button", name="Make it").click()
        page.wait_for_url("**/flags/short-answers")
        assert "It waits at 0 %" in page.inner_text("main")
        page.get_by_text("Set the share by hand").click()
        page.fill("#percent", "25")
        page.fill("#why-set", "a trial on a quarter")
        page.get_by_role("button", name="Set", exact=True).click()
        page.wait_for_selector(".stages [aria-current=step]")
        assert page.locator(".stages [aria-current=step]").inner_text().startswith("25 %")
        page.fill("#why-back", "guests complained")
        page.get_by_role("button", name="Roll back").click()
        page.wait_for_selector("h1 .badge.unsure")
        page.wait_for_load_state()
        assert "It is paused at 0 %" in page.inner_text("main")
        assert page.get_by_role("button", name="Roll back").count() == 0, "there is nothing left to take back"
        page.goto(f"{demo_url}/settings/audit")
        newest = [row.inner_text() for row in page.locator("tbody tr").all()[:3]]
        assert all("short-answers" in line for line in newest)
        assert "rollback: guests complained" in newest[0]
        assert "a trial on a quarter" in newest[1]


def test_what_needs_a_reason_is_refused_without_one(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/flags/hybrid-search", expects=["422"]) as page:
        page.fill("#why-back", "   ")
        page.get_by_role("button", name="Roll back").click()
        page.wait_for_selector("[role=alert]")
        assert "give a reason for the rollback" in page.inner_text("main")
        page.goto(f"{demo_url}/flags/hybrid-search")
        assert "Graduated" in page.inner_text("h1")


def test_an_empty_store_has_no_flags(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/flags", bypass_csp=True, expects=["404"]) as page:
        assert page.locator("tbody tr").count() == 0
        assert "No flag yet" in page.inner_text("main")
        assert serious(page) == []
        assert page.goto(f"{empty_url}/flags/nobody").status == 404


@pytest.mark.parametrize("path", ["/flags", "/flags/tuned-fusion", "/flags/diverse-results"])
def test_flags_are_accessible_in_both_themes_and_on_a_phone(browser: Any, demo_url: str, path: str) -> None:
    with reading(browser, demo_url + path, bypass_csp=True, width=390) as page:
        for look in looks(page, widths=(390,)):
            assert serious(page) == [], look
            assert page.evaluate("document.documentElement.scrollWidth") == 390
