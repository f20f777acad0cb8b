"""Tables fit into their cards, on a desk and on a phone: no column is cut where nothing shows that there is more."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from served import WIDE_AND_NARROW, browser, demo_template, demo_url, reading

__all__ = ["browser", "demo_template", "demo_url"]

BEYOND = """() => [...document.querySelectorAll("main .tabs")].filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => `${one.getAttribute("aria-label")}: ${one.scrollWidth} in ${one.clientWidth}`)
  .concat([...document.querySelectorAll("main .card")].flatMap((card) => {
  const edge = card.getBoundingClientRect().right + 0.5;
  const cut = [...card.querySelectorAll(".scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1)
    .map((one) => `${one.getAttribute("aria-label")}: ${one.scrollWidth} in ${one.clientWidth}`);
  const out = [...card.querySelectorAll("*")].filter((one) => {
    if (one.closest("svg") !== null && one.tagName !== "svg") return false;
    if (one.closest(".hear, [hidden], thead") !== null) return false;
    const box = one.getBoundingClientRect();
    return box.width > 0 && box.right > edge;
  }).map((one) => `${one.tagName}.${one.className}: ${one.textContent.trim().slice(0, 40)}`);
  return [...cut, ...out];
}))"""
"""What is wider than the card that it stands in, or than the frame of its table; tabs that are wider than their line."""


def compared(page: Any, url: str) -> str:
    """Return the address of a comparison of two runs of the demonstration."""
    page.goto(f"{url}/compare")
    one, other = page.locator("select[name=a]").input_value(), page.locator("select[name=b]").input_value()
    return f"{url}/compare?a={quote(one)}&b={quote(other)}"


def judged(page: Any, url: str) -> str:
    """Return the address of a run that the gate has compared: its tables have a column for what changed."""
    page.goto(f"{url}/runs?gate=fail")
    return url + str(page.locator("#rows tbody th a").first.get_attribute("href"))


@pytest.mark.parametrize("width", WIDE_AND_NARROW)
@pytest.mark.parametrize("what", ["compare", "judged", "/review/agreement", "/backlog", "/jobs", "/settings/audit"])
def test_no_column_is_cut(browser: Any, demo_url: str, what: str, width: int) -> None:
    ways = {"compare": compared, "judged": judged}
    with reading(browser, demo_url, width=width) as page:
        page.set_default_timeout(60_000)
        page.goto(ways[what](page, demo_url) if what in ways else demo_url + what)
        assert page.locator("main .card table tbody tr").count() > (1 if what == "/jobs" else 3)
        assert page.evaluate(BEYOND) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


BESIDE = """(parts) => [...document.querySelectorAll(parts)].filter((one) => one.getBoundingClientRect().width > 0)
  .map((one) => one.getBoundingClientRect().top - one.closest("td").getBoundingClientRect().top)"""
"""How far parts of cells stand below the line that the cell begins with."""


@pytest.mark.parametrize(("path", "parts"), [("/runs", "#rows td.n .sub"), ("/settings/audit", "td > details")])
def test_on_a_phone_an_interval_and_a_detail_stand_beside_their_names(
    browser: Any, demo_url: str, path: str, parts: str
) -> None:
    with reading(browser, demo_url + path, width=390) as page:
        found = page.evaluate(BESIDE, parts)
        assert found
        assert max(found) < 8, found
        named = page.locator("td[data-name]:visible").all_inner_texts()
        assert all(text.strip() for text in named), "a name with nothing behind it is left out"


def test_on_a_phone_no_stroke_of_the_breadcrumbs_stands_alone(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url, width=390) as page:
        page.goto(compared(page, demo_url))
        page.goto(demo_url + str(page.locator("a[href^='/compare/query']").first.get_attribute("href")))
        tops = page.evaluate(
            "[...document.querySelectorAll('.crumbs li')].map((one) => [...one.getClientRects()].map((box) => box.top))"
        )
        assert len(tops) == 3
        assert tops[0][0] == tops[1][0], "what follows begins on the line of what was before, as words do"
