"""Golden sets in a real browser: uploads, versions, validation, differences; hostile texts stay texts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from served import browser, demo_template, demo_url, empty_url, looks, reading, serious

__all__ = ["browser", "demo_template", "demo_url", "empty_url"]
HOSTILE = "\"><img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
RIGHT_TO_LEFT = "متى يفتح المسبح؟ " + "كلمة" * 80


def front_desk(version: str, *, hostile: bool = False, grade: int = 3) -> bytes:
    text = HOSTILE if hostile else "when can I swim"
    return json.dumps({
        "id": "front-desk", "version": version, "description": text,
        "entities": [{"entity_id": "pool", "title": text, "content": "The pool is open from seven to ten."},
                     {"entity_id": "bar", "title": "Bar", "content": "The bar is open till one."}],
        "queries": [
            {"query_id": "q1", "query_text": text, "query_type": "factual",
             "expected_results": {"relevant_entities": ["pool"], "relevance_labels": {"pool": grade}}},
            {"query_id": "q/2 %", "query_text": RIGHT_TO_LEFT, "query_type": "factual",
             "expected_results": {"relevant_entities": ["bar"], "relevance_labels": {"bar": 2}}},
        ],
    }).encode()  # fmt: skip


def send(page: Any, url: str, name: str, content: bytes) -> None:
    page.goto(f"{url}/golden")
    page.set_input_files("#f-file", {"name": name, "mimeType": "application/octet-stream", "buffer": content})
    with page.expect_navigation():
        page.get_by_role("button", name="Upload").click()


def test_a_set_is_uploaded_validated_and_its_versions_are_told_apart(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/golden", expects=["status of 409"]) as page:
        send(page, empty_url, "desk.json", front_desk("1.0.0"))
        assert page.url == f"{empty_url}/golden/front-desk/1.0.0"
        assert "Error" in page.inner_text("#problems")  # two queries are too few
        send(page, empty_url, "desk.json", front_desk("1.0.0", grade=1))
        assert "a version never changes" in page.inner_text(".problem")

        send(page, empty_url, "desk.json", front_desk("1.1.0", grade=1))
        page.get_by_role("link", name="What changed").click()
        page.wait_for_url("**/golden/front-desk/diff?**")
        changed = page.locator("#judgments tbody tr")
        assert changed.count() == 1
        assert [text.split()[-1] for text in changed.locator(".grade").all_inner_texts()] == ["3", "1"]
        assert "The questions are the same" in page.inner_text("#queries")


def test_hostile_and_long_and_right_to_left_texts_stay_texts(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/golden", width=390) as page:
        send(page, empty_url, "desk.json", front_desk("2.0.0", hostile=True))
        assert HOSTILE in page.inner_text("main")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.locator("#queries tbody th a").nth(1).click()
        page.wait_for_url("**/queries/q/2**")
        assert RIGHT_TO_LEFT in page.inner_text("h1")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.keyboard.press("k")
        page.wait_for_url("**/queries/q1")
        assert HOSTILE in page.inner_text("h1")
        assert page.title() != "broken"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("set.exe", b"MZ", "send .json, .yaml or .jsonl"),
        ("set.json", b"{", "JSON"),
        ("set.yaml", b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "set.yaml:2: the alias"),
        ("set.zip", b"PK\x03\x04", "send .json, .yaml or .jsonl"),
        ("../../etc/passwd.json", b"[]", "passwd.json: the list is empty"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_cure(browser: Any, empty_url: str, name: str, content: bytes, said: str) -> None:
    with reading(browser, f"{empty_url}/golden", expects=["status of 422"]) as page:
        send(page, empty_url, name, content)
        assert "The set was not kept" in page.inner_text(".problem")
        assert said in page.inner_text(".problem")
        assert "/tmp" not in page.inner_text(".problem")
        assert "../" not in page.inner_text(".problem")


def test_queries_are_found_by_text_and_kind_and_shown_with_their_judgments(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/golden/hotel") as page:
        assert page.url.endswith("/golden/hotel/2.0.0")
        assert "1–50 of 73" in page.inner_text("#rows")
        page.fill("#f-q", "breakfast start at weekends")
        page.wait_for_selector("#rows tbody tr:only-child")
        assert "q=breakfast" in page.url
        page.locator("#rows tbody th a").click()
        assert page.locator(".hits .grade").first.inner_text().endswith("3")
        page.locator("details summary").first.click()
        assert "breakfast" in page.inner_text(".passage >> nth=0").lower()


def test_the_demonstration_shows_a_reworded_question_and_a_new_one(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/golden") as page:
        page.locator("tr:has-text('hotel')").filter(has_text="2.0.0").get_by_role("link", name="what changed").click()
        page.wait_for_url("**/golden/hotel/diff")
        queries = page.inner_text("#queries")
        assert "added" in queries
        assert page.locator("#queries del").count() == 1
        assert page.locator("#queries ins").count() == 1


def test_a_form_without_its_token_is_refused(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/golden") as page:
        answer = page.request.post(f"{empty_url}/golden/shipped", form={"name": "hotel"})
        assert answer.status == 403
        assert "out of date" in answer.text()


@pytest.mark.parametrize(
    "path",
    ["/golden", "/golden/hotel/2.0.0", "/golden/hotel/1.0.0", "/golden/hotel/diff", "/golden/hotel/2.0.0/queries/q001"],
)
def test_axe_finds_nothing_serious(browser: Any, demo_url: str, path: str) -> None:
    with reading(browser, demo_url + path, bypass_csp=True) as page:
        for theme, width in looks(page):
            assert serious(page) == [], (theme, width)
            assert page.evaluate("document.documentElement.scrollWidth") == width
