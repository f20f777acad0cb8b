"""The query log in a real browser: filters while typing, deep links, keys, hostile texts, 100,000 searches."""

from __future__ import annotations

import json
import sqlite3
import urllib.parse
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ringtrue.answers import StageLogged
from ringtrue.store import FeedbackEvent, LoggedQuery, Store
from running_service import running
from served import browser, empty_url, looks, reading, serious

__all__ = ["browser", "empty_url"]

SCRIPT = "<script>window.broken = 1</script>\"><img src=x onerror='window.broken = 2'>"
FORMULA = "=HYPERLINK(1)"
MANY = 100_000


def search(number: int, text: str, minutes: float, **more: Any) -> LoggedQuery:
    at = (datetime.now(UTC) - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    values: dict[str, Any] = {"result_ids": ("faq-1", "faq-2"), "scores": (2.0, 1.0), "total_latency_ms": 20.0 + number}
    return LoggedQuery(f"q{number:03}", text, more.pop("tool_name", "app"), at, **(values | more))


def rows() -> Iterator[LoggedQuery]:
    for number in range(60):
        yield search(number, f"late checkout {number}", 5 + number, session_id=f"s{number % 7}")
    yield search(
        60, SCRIPT, 1, tool_name="<b>web</b>", session_id=SCRIPT, result_ids=(SCRIPT,), scores=(1.0,), flags={SCRIPT: True}
    )
    yield search(61, "متى وقت تسجيل المغادرة؟", 2, tool_name="web", result_ids=(), scores=())
    yield search(62, FORMULA, 3, tool_name="web", fallback="the encoder did not answer; keywords alone", total_latency_ms=950.0)
    yield search(63, "w" * 3000, 4, stages=(StageLogged("candidate", 100, 10, 12.0),))
    yield search(64, "breakfast", 60 * 24 * 60, tool_name="web")


@pytest.fixture(scope="module")
def log_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("log")
    store = Store.open(folder / "store.sqlite")
    store.add_queries(list(rows()))
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    store.add_feedback([FeedbackEvent("e1", "click", "s3", at, query_id="q003", item_id="faq-2")])
    store.close()
    with running(folder) as found:
        yield found.url


def listed(page: Any) -> list[str]:
    return [one.inner_text() for one in page.locator("#rows tbody th a").all()]


def fetched(url: str) -> tuple[str, bytes]:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.headers["Content-Disposition"], answer.read()


def test_the_list_follows_what_is_typed_and_its_address_leads_back_to_it(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries") as page:
        assert len(listed(page)) == 50
        assert page.inner_text("#told") == "The newest 50"
        assert page.get_attribute("#told", "role") == "status"
        page.locator("#f-text").press_sequentially("checkout 5", delay=5)
        page.locator("#told", has_text="11 searches").wait_for()
        found = listed(page)
        assert sorted(found) == sorted(f"late checkout {number}" for number in (5, *range(50, 60)))
        page.fill("#f-slower", "72")
        page.locator("#told", has_text="7 searches").wait_for()
        address = page.url
        assert address == f"{log_url}/queries?text=checkout%205&span=month&slower=72"
        few = listed(page)
    with reading(browser, address, java_script_enabled=False) as plain:
        assert listed(plain) == few
        assert plain.input_value("#f-text") == "checkout 5"
        assert "“checkout 5”" in plain.title()


def test_who_types_on_does_not_see_the_answer_to_the_first_letters(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries") as page:
        unanswered: list[Any] = []
        page.route("**/queries?text=check&*", lambda route: unanswered.append(route))
        with page.expect_request("**/queries?text=check&*"):
            page.locator("#f-text").press_sequentially("check")
        page.locator("#f-text").press_sequentially("out 5")
        page.locator("#told", has_text="11 searches").wait_for()
        assert page.locator("#toasts .toast").count() == 0
        assert len(unanswered) == 1


def test_every_filter_is_an_address(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries?session=s3") as page:
        assert len(listed(page)) == 9
        page.goto(f"{log_url}/queries?trouble=true")
        assert set(listed(page)) == {"متى وقت تسجيل المغادرة؟", FORMULA}
        page.goto(f"{log_url}/queries?tool=web&span=all")
        assert "breakfast" in listed(page)
        assert "breakfast" not in page.goto(f"{log_url}/queries?tool=web").text()
        following = json.loads(fetched(f"{log_url}/v1/queries?limit=15")[1])["next"]
        page.goto(f"{log_url}/queries?cursor={following}")
        assert listed(page)[0] == "late checkout 11"
        page.get_by_role("link", name="First page").click()
        page.wait_for_url(f"{log_url}/queries")


def test_choosing_a_time_draws_its_chart(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries?tool=web") as page:
        assert page.locator("#volume svg.chart").count() == 1
        assert "64 searches in 30 days" in page.inner_text("main")
        # It brings another page; the list, which follows the form, does not hear of it.
        heard = """() => {
            const span = document.getElementById("f-span");
            let heard = false;
            span.form.addEventListener("input", () => { heard = true; });
            span.dispatchEvent(new Event("input", { bubbles: true }));
            return heard;
        }"""
        assert page.evaluate(heard) is False
        page.select_option("#f-span", "all")
        page.wait_for_url("**/queries?tool=web&span=all")
        page.wait_for_selector("#volume svg.chart")
        assert "65 searches in all of it" in page.inner_text("main")


def test_what_cannot_be_a_filter_is_said_where_the_list_was(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries", expects=["422"]) as page:
        page.evaluate("document.querySelector('#f-slower').type = 'text'")
        page.fill("#f-slower", "soon")
        page.wait_for_selector("#rows [role=alert]")
        assert "'soon' is not a time; write milliseconds" in page.inner_text("#rows")
        page.fill("#f-slower", "900")
        page.wait_for_selector("#rows tbody tr")
        assert listed(page) == [FORMULA]
        assert page.goto(f"{log_url}/queries?span=century").status == 422
        assert "there is no span 'century'" in page.inner_text("main")


def test_a_text_that_is_too_long_is_said_and_no_count_of_others_stays(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries", expects=["422"]) as page:
        assert page.inner_text("#told")
        assert page.get_attribute("#f-text", "maxlength") == "500"
        page.evaluate("document.querySelector('#f-text').removeAttribute('maxlength')")
        page.fill("#f-text", "w" * 501)
        page.wait_for_selector("#rows .problem")
        assert "501 characters are too many for words to look for; write at most 500" in page.inner_text("#rows")
        assert page.inner_text("#told") == ""
        page.fill("#f-text", "late checkout 1")
        page.wait_for_selector("#rows tbody tr")
        assert page.inner_text("#told") == "11 searches"
        page.goto(f"{log_url}/queries?session={'s' * 201}")
        assert "201 characters are too many for a session to look for" in page.inner_text("main")


def test_a_text_that_fits_nothing_leads_back_to_everything(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries?text=xylophone") as page:
        assert "No search fits" in page.inner_text("#rows")
        page.get_by_role("link", name="Show all of it").click()
        page.wait_for_url("**/queries?span=all")
        assert len(listed(page)) == 50


def test_j_and_k_walk_along_the_lines_and_enter_opens_one(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries?text=checkout") as page:
        here = "document.activeElement.textContent"
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.evaluate(here) == "late checkout 2"
        page.keyboard.press("k")
        assert page.evaluate(here) == "late checkout 1"
        page.keyboard.press("/")
        page.keyboard.press("j")
        assert page.input_value("#f-text") == "j"
        page.goto(f"{log_url}/queries?text=checkout")  # what was typed is searched for, and the lines change under the cursor
        page.locator("#rows tbody th a").nth(3).focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/queries/q003")
        assert page.inner_text("h1") == "late checkout 3"
        assert "click" in page.locator("#content tbody tr").nth(1).inner_text()


def test_hostile_texts_are_shown_and_do_nothing(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries") as page:
        assert SCRIPT in listed(page)
        assert page.locator("#rows img, #rows script, #rows b").count() == 0
        for address in ("/queries/q060", f"/queries?{urllib.parse.urlencode({'text': SCRIPT, 'session': SCRIPT})}"):
            page.goto(log_url + address)
            assert page.locator("main").inner_text().count(SCRIPT) >= 1
            assert page.locator("main img, main script:not([type='application/json'])").count() == 0
            assert page.evaluate("window.broken") is None
        assert page.input_value("#f-text") == SCRIPT


def test_a_search_of_three_thousand_letters_fits_its_page(browser: Any, log_url: str) -> None:
    with reading(browser, f"{log_url}/queries/q063", width=390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.get_by_text("The whole search, 3,000 characters").click()
        assert page.locator(".kept").inner_text() == "w" * 3000
        assert "candidate" in page.inner_text("main")


def test_an_empty_log_says_how_to_fill_it(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/queries", bypass_csp=True) as page:
        assert "No search was logged yet" in page.inner_text("main")
        command = page.inner_text(".command code")
        assert command.startswith(f"curl -X POST {empty_url}/v1/queries")
        assert serious(page) == []


def test_a_search_that_is_not_there_is_an_error_page(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/queries/nobody", expects=["404"]) as page:
        assert "the log has no search 'nobody'" in page.inner_text("main")


@pytest.mark.parametrize("path", ["/queries", "/queries/q003"])
def test_the_log_is_accessible_in_both_themes_and_on_a_phone(browser: Any, log_url: str, path: str) -> None:
    with reading(browser, log_url + path, bypass_csp=True, width=390) as page:
        for look in looks(page, widths=(390,)):
            assert serious(page) == [], look
            assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_hundred_thousand_searches_are_counted_and_paged(browser: Any, tmp_path: Any) -> None:
    store = Store.open(tmp_path / "store.sqlite")
    store.add_queries([search(0, "late checkout", 1)])
    store.close()
    with sqlite3.connect(tmp_path / "store.sqlite") as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(eval_queries)") if row[1] != "id"]
        made = {
            "query_id": "'m' || n.i",
            "created_at": "strftime('%Y-%m-%dT%H:%M:%S.000000Z', 'now', '-' || (n.i * 20) || ' seconds')",
        }
        made |= {"query": "'question ' || n.i"}
        values = ", ".join(made.get(name, f"eval_queries.{name}") for name in columns)
        database.execute(
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MANY - 1}) "
            f"INSERT INTO eval_queries ({', '.join(columns)}) SELECT {values} FROM n, eval_queries"
        )
    database.close()
    with running(tmp_path) as found, reading(browser, f"{found.url}/queries") as page:
        assert "100,000 searches in 30 days" in page.inner_text("main")
        assert len(listed(page)) == 50
        page.get_by_role("link", name="Next page").click()
        page.wait_for_url("**cursor=**")
        assert len(listed(page)) == 50
        page.goto(f"{found.url}/queries?text=question+99999")
        assert listed(page) == ["question 99999"]
