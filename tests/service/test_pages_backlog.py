"""The backlog page in a real browser: states that add up, filters in the address, what to do when it is empty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from review_pairs import pairs, reviewing
from ringtrue.review import ReviewQueue
from ringtrue.store import Store
from running_service import Served
from served import browser, looks, reading, serious

__all__ = ["browser"]


@pytest.fixture(scope="module")
def queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Store]]:
    """60 pairs: 4 approved, 2 rejected, the rest waits."""
    folder = tmp_path_factory.mktemp("backlog")
    with reviewing(
        folder, [*pairs(4, wanted=2), *pairs(56, offset=4)], (("ben", (1, 2, 3, 0)), ("cleo", (1, 2, 3, 1)))
    ) as found:
        for item in pairs(2, offset=4):
            ReviewQueue(found[1]).reject(item.item_key, reviewer="ben", now=_now(), why="no question")
        yield found


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime(2026, 11, 3, tzinfo=UTC)


def test_the_states_add_up_and_the_oldest_is_named(browser: Any, queue: tuple[Served, Store]) -> None:
    with reading(browser, queue[0].url + "/backlog") as page:
        words = page.locator(".card", has_text="States").locator(".legend").inner_text()
        counts = {name: int(count) for name, count in re.findall(r"([A-Z][a-z ]+?)\s+(\d+)", words)}
        assert counts == {"Pending review": 54, "Approved": 4, "Published": 0, "Rejected": 2}
        assert sum(counts.values()) == 60 == queue[1].backlog()["total"]
        assert "days" in page.locator(".tile", has_text="Oldest waiting").inner_text()
        assert page.locator("#flow details tbody tr").count() == 8
        assert page.locator("#rows tbody tr").count() == 50
        assert page.locator("#rows tbody tr").first.inner_text().count("Pending review") == 1
        page.get_by_role("link", name="Next page").click()
        page.get_by_text("51–60 of 60").wait_for()
        assert page.locator("#rows tbody tr").count() == 10


def test_filters_and_search_are_in_the_address_and_lead_to_a_pair(browser: Any, queue: tuple[Served, Store]) -> None:
    wanted = pairs(1, offset=9)[0]
    with reading(browser, queue[0].url + "/backlog") as page:
        page.get_by_label("State", exact=True).select_option("rejected")
        page.get_by_text("1–2 of 2").wait_for()
        assert "state=rejected" in page.url
        page.reload()
        assert page.locator("#rows tbody tr").count() == 2
        page.goto(queue[0].url + "/backlog?state=pending_review")
        page.keyboard.press("/")
        page.keyboard.type(wanted.query)
        # The first letters may leave this pair alone already; the list still changes with every further answer.
        page.wait_for_url(lambda url: parse_qs(urlsplit(url).query).get("q") == [wanted.query])
        page.get_by_text("1–1 of 1").wait_for()
        # A slow press leaves the field long before it is a click: nothing may move under it.
        page.locator("#rows").get_by_role("link", name=re.compile("^Judge")).click(delay=500)
        page.wait_for_url(f"**/review/{wanted.item_key}")
        page.goto(queue[0].url + "/backlog?q=nothing-like-this")
        page.get_by_text("No pair matches").wait_for()


def test_a_judgment_shows_at_once(browser: Any, queue: tuple[Served, Store]) -> None:
    """The list may be a few seconds old, but not once a state has changed."""
    key = pairs(1, offset=20)[0].item_key
    address = f"{queue[0].url}/backlog?q={key}"
    with reading(browser, address) as page:
        assert "Pending review" in page.locator("#rows").inner_text()
        store = ReviewQueue(queue[1])
        store.judge(key, 2, reviewer="ada", now=_now())
        page.reload()
        assert "Approved" in page.locator("#rows").inner_text()
        assert "1 of 1" in page.locator("#rows").inner_text()
        store.undo("ada")


def test_an_empty_queue_says_how_to_fill_it(browser: Any, tmp_path: Path) -> None:
    with reviewing(tmp_path, []) as (served, _), reading(browser, served.url + "/backlog") as page:
        page.get_by_role("heading", name="Nothing waits to be judged").wait_for()
        assert page.get_by_text("ringtrue review add hotel").is_visible()
        assert page.get_by_text("ringtrue golden refresh hotel").is_visible()


def test_ten_thousand_pairs_are_paged(browser: Any, tmp_path: Path) -> None:
    from dataclasses import replace

    first = pairs(1)[0]
    many = [replace(first, item_key=f"k{place:05}", query=f"question {place}", text="") for place in range(10_000)]
    with reviewing(tmp_path, many) as (served, _), reading(browser, served.url + "/backlog?sort=question") as page:
        page.get_by_text("1–50 of 10,000").wait_for()
        page.get_by_role("link", name="Next page").click()
        page.get_by_text("51–100 of 10,000").wait_for()
        assert page.locator("#rows tbody tr").count() == 50


def test_the_page_is_accessible_in_both_themes_and_fits_a_phone(browser: Any, queue: tuple[Served, Store]) -> None:
    with reading(browser, queue[0].url + "/backlog", bypass_csp=True) as page:
        for theme, width in looks(page):
            assert page.locator("#flow svg .thread").count() == 2
            assert serious(page) == [], (theme, width)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
