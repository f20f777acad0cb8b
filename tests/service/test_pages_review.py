"""The pages about reviewing in a real browser: judging by keys, undo, blindness, disputes, publishing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from review_pairs import HOSTILE, hostile, pairs, ratings, reviewing
from ringtrue.review import ReviewQueue
from ringtrue.store import ReviewItem, Store
from running_service import Served
from served import browser, looks, reading, serious

__all__ = ["browser"]

SIGN_IN = ("Password forms should have",)
"""Advice of Chromium about the form for a key, which has no user name."""
AGREED = (("ben", (0, 1, 2, 3, 3, 0, 1, 2)), ("cleo", (0, 1, 2, 3, 3, 0, 1, 1)))
AT_ODDS = (("ben", (0, 1, 2, 3, 3, 0, 1, 2)), ("cleo", (1, 1, 3, 0, 3, 2, 0, 1)))
TWICE = """(key) => {
    const press = (event) => document.activeElement.dispatchEvent(event);
    const made = (type) => new KeyboardEvent(type, { key, bubbles: true });
    press(made("keydown"));
    press(made("keyup"));
    const [again, late] = [made("keydown"), performance.now() + 300];
    while (performance.now() < late);
    press(again);
    press(made("keyup"));
}"""
"""Presses a key twice at once, and the page is so busy that it comes to the second only when the next pair can be judged."""
RESTED = """() => {
    const { loadEventEnd } = performance.getEntriesByType("navigation")[0];
    return loadEventEnd > 0 && performance.now() - loadEventEnd > 250;
}"""


@contextmanager
def judging(browser: Any, served: Served, name: str, path: str = "/review", **options: Any) -> Iterator[Any]:
    """Open a page as a reviewer who has said their name."""
    with reading(browser, served.url + "/review", **options) as page:
        page.get_by_label("Your name").fill(name)
        page.get_by_role("button", name="Start judging").click()
        page.wait_for_selector("#desk")
        if path != "/review":
            page.goto(served.url + path)
        yield page


def ready(page: Any) -> str:
    """Wait until a pair can be judged, and return its key."""
    page.wait_for_selector("#desk[data-state=ready]")
    return str(page.locator(".pair").get_attribute("data-key"))


def sent(page: Any) -> None:
    page.wait_for_selector("#desk[data-sent=true]")


def settle(page: Any, key: str) -> None:
    """Press a key on a page about a dispute, where keys count once it has stood for a moment."""
    page.wait_for_function(RESTED)
    page.keyboard.press(key)


def press(page: Any, key: str) -> str:
    """Press a key when a pair is ready for it, and return the pair's key."""
    found = ready(page)
    page.keyboard.press(key)
    return found


def test_twenty_pairs_are_judged_by_keyboard_alone_and_are_in_the_store_as_said(browser: Any, tmp_path: Path) -> None:
    """20 pairs, 20 ratings, the right grades, the right reviewer."""
    items = pairs(22)
    with reviewing(tmp_path, items) as (served, store):
        with reading(browser, served.url + "/review") as page:
            page.wait_for_selector("#f-name:focus")
            page.keyboard.type("Ada")
            page.keyboard.press("Enter")
            said = {}
            for place in range(20):
                grade = place % 4
                said[press(page, str(grade))] = grade
            sent(page)
            assert page.locator("#strip [data-field=today]").inner_text() == "20"
            assert page.locator("#strip [data-field=left]").inner_text() == "2"
            assert page.locator("#recent li").count() == 10
        assert ratings(store) == {"ada": said}
        assert len(said) == 20
        assert store.backlog()["approved"] == 20


def test_the_next_pair_is_on_screen_before_the_server_has_answered(browser: Any, tmp_path: Path) -> None:
    """The answer to a key is at once; the pair was fetched before."""
    with reviewing(tmp_path, pairs(4)) as (served, store), judging(browser, served, "Ada") as page:
        first = ready(page)
        sent(page)
        held: list[Any] = []
        page.route("**/judge", lambda route: held.append(route))
        with page.expect_request("**/judge"):
            page.keyboard.press("2")
        second = page.locator(".pair").get_attribute("data-key")
        assert second != first
        assert page.locator(".document").evaluate("(pane) => pane === document.activeElement")
        assert "Graded 2. Question:" in page.locator("#told").text_content()
        assert ratings(store) == {}
        held[0].continue_()
        sent(page)
        assert ratings(store) == {"ada": {first: 2}}


def test_a_key_that_is_held_or_pressed_twice_is_one_judgment(browser: Any, tmp_path: Path) -> None:
    with reviewing(tmp_path, pairs(6)) as (served, store), judging(browser, served, "Ada") as page:
        first = ready(page)
        sent(page)  # the next pair is there
        page.evaluate(TWICE, "3")
        sent(page)
        assert ratings(store) == {"ada": {first: 3}}
        second = ready(page)
        page.keyboard.down("1")
        third = ready(page)
        page.keyboard.down("1")  # the browser repeats a key that is held
        page.keyboard.down("1")
        page.keyboard.up("1")
        sent(page)
        assert third != second
        assert ratings(store) == {"ada": {first: 3, second: 1}}
        page.locator("[data-grade='0']").evaluate("(button) => { button.click(); button.click(); }")
        sent(page)
        assert ratings(store) == {"ada": {first: 3, second: 1, third: 0}}


def test_undo_takes_the_last_judgment_back_also_after_a_reload(browser: Any, tmp_path: Path) -> None:
    with reviewing(tmp_path, pairs(5)) as (served, store), judging(browser, served, "Ada") as page:
        first, second = press(page, "3"), press(page, "1")
        ready(page)
        page.keyboard.press("u")
        page.wait_for_selector(f".pair[data-key='{second}']")
        sent(page)
        assert ratings(store) == {"ada": {first: 3}}
        page.reload()
        ready(page)
        page.keyboard.press("u")
        page.wait_for_selector(f".pair[data-key='{first}']")
        sent(page)
        assert ratings(store) == {}
        assert press(page, "0") == first
        sent(page)
        assert ratings(store) == {"ada": {first: 0}}


def test_a_judgment_whose_connection_is_lost_is_kept_and_sent_later(browser: Any, tmp_path: Path) -> None:
    with (
        reviewing(tmp_path, pairs(4)) as (served, store),
        judging(browser, served, "Ada", expects=("ERR_INTERNET_DISCONNECTED",)) as page,
    ):
        first = ready(page)
        sent(page)
        page.context.set_offline(True)
        page.keyboard.press("2")
        page.get_by_role("alert").filter(has_text="1 judgment is kept in this browser").wait_for()
        assert ratings(store) == {}
        page.context.set_offline(False)
        page.locator("#lost").wait_for(state="hidden")
        sent(page)
        assert ratings(store) == {"ada": {first: 2}}


def test_a_judgment_that_was_not_sent_survives_a_reload(browser: Any, tmp_path: Path) -> None:
    with (
        reviewing(tmp_path, pairs(4)) as (served, store),
        judging(browser, served, "Ada", expects=("ERR_FAILED",)) as page,
    ):
        first = ready(page)
        sent(page)
        page.route("**/judge", lambda route: route.abort())
        page.keyboard.press("3")
        page.get_by_role("alert").filter(has_text="1 judgment is kept").wait_for()
        page.unroute("**/judge")
        page.reload()
        sent(page)
        assert ratings(store) == {"ada": {first: 3}}


def test_two_reviewers_at_once_never_have_the_same_pair(browser: Any, tmp_path: Path) -> None:
    """Reservations; each pair wants one reviewer, so nobody's work is done twice."""
    items = pairs(12)
    with reviewing(tmp_path, items) as (served, store):
        with judging(browser, served, "Ada") as one, judging(browser, served, "Ben") as two:
            seen: dict[str, set[str]] = {"ada": set(), "ben": set()}
            for _ in range(5):
                for name, page in (("ada", one), ("ben", two)):
                    seen[name].add(ready(page))
                assert not seen["ada"] & seen["ben"]
                one.keyboard.press("1")
                two.keyboard.press("2")
            sent(one)
            sent(two)
        said = ratings(store)
        assert set(said["ada"]) == seen["ada"]
        assert set(said["ben"]) == seen["ben"]
        assert len(seen["ada"] | seen["ben"]) == 10


def test_a_pair_that_somebody_else_took_meanwhile_is_not_counted_and_said_so(browser: Any, tmp_path: Path) -> None:
    with (
        reviewing(tmp_path, pairs(3)) as (served, store),
        judging(browser, served, "Ada", expects=("409",)) as page,
    ):
        first = ready(page)
        sent(page)
        _take(store, first)
        page.keyboard.press("2")
        page.get_by_text("another reviewer has this pair now").wait_for()
        sent(page)
        assert ratings(store) == {}
        assert ready(page) != first


def _take(store: Store, key: str) -> None:
    from dataclasses import replace

    store.update_review_item(key, lambda item: replace(item, reserved_by="ben", reserved_until="2099-01-01T00:00:00+00:00"))


def test_skip_reject_note_guidelines_and_help_have_keys(browser: Any, tmp_path: Path) -> None:
    with reviewing(tmp_path, pairs(6)) as (served, store), judging(browser, served, "Ada") as page:
        skipped = press(page, "s")
        rejected = press(page, "x")
        page.get_by_role("dialog", name="Reject this pair?").wait_for()
        page.keyboard.type("holds a name, 1 and 2")  # digits in a field are not grades
        page.keyboard.press("Enter")
        noted = press(page, "n")
        page.keyboard.type("see line 3")
        page.keyboard.press("Escape")
        page.keyboard.press("1")
        ready(page)
        assert page.locator("#guidelines").get_attribute("open") is not None
        page.keyboard.press("h")
        assert page.locator("#guidelines").get_attribute("open") is None
        page.keyboard.press("?")
        page.get_by_role("dialog", name="Keys").get_by_text("give the grade").wait_for()
        page.keyboard.press("2")  # while the help is open nothing is judged
        page.keyboard.press("Escape")
        sent(page)
        page.wait_for_function("() => localStorage.getItem('ringtrue-review-guidelines') === 'closed'")
        page.reload()
        ready(page)
        assert page.locator("#guidelines").get_attribute("open") is None
        assert ratings(store) == {"ada": {noted: 1}}
        assert [row.note for row in store.ratings()] == ["see line 3"]
        items = {item.item_key: item for item in store.review_items()}
        assert items[rejected].state == "rejected"
        assert items[rejected].metadata["why"] == "holds a name, 1 and 2"
        assert items[skipped].state == "pending_review"


def test_reviewers_see_nobody_elses_grade_before_a_pair_is_complete(browser: Any, tmp_path: Path) -> None:
    """Blind. Ben's grade of a pair that waits for a second opinion is on no page and in no answer."""
    items = pairs(3, wanted=2)
    with reviewing(tmp_path, items, (("benedict", (2, 2, 2)),)) as (served, _store):
        answers: list[Any] = []
        bodies: list[str] = []
        with judging(browser, served, "Ada") as page:
            key = ready(page)
            page.on("response", lambda answer: answers.append(answer) if "/review" in answer.url else None)
            for path in ("/review", f"/review/{key}", "/backlog", "/review/adjudicate"):
                page.goto(served.url + path)
                if page.locator("#desk").count():
                    sent(page)
                assert "benedict" not in page.content()
                bodies += [answer.text() for answer in answers]  # on the next page the browser has forgotten them
                answers.clear()
            assert bodies
            assert not any("benedict" in body for body in bodies)
            page.goto(served.url + "/review/agreement")
            assert "benedict" in page.content()  # that somebody judged is known
            assert page.locator(".habit").count() == 0  # what they said is not
            page.goto(served.url + f"/review/{key}")
            assert page.locator("[aria-pressed=true][data-grade]").count() == 0


def test_a_grade_can_be_changed_from_the_list_of_the_last_ones(browser: Any, tmp_path: Path) -> None:
    with reviewing(tmp_path, pairs(3)) as (served, store), judging(browser, served, "Ada") as page:
        first = press(page, "3")
        sent(page)
        page.locator("#recent").get_by_role("link", name=re.compile("Change")).click()
        page.wait_for_url(f"**/review/{first}")
        assert page.locator("[data-grade='3'][aria-pressed=true]").count() == 1
        assert press(page, "1") == first
        sent(page)
        assert ratings(store) == {"ada": {first: 1}}


def test_when_nothing_is_left_the_page_says_so(browser: Any, tmp_path: Path) -> None:
    with reviewing(tmp_path, pairs(1)) as (served, _), judging(browser, served, "Ada") as page:
        press(page, "2")
        page.get_by_role("heading", name="You have judged everything").wait_for()
    empty = tmp_path / "empty"
    empty.mkdir()
    with reviewing(empty, []) as (served, _), judging(browser, served, "Ada") as page:
        page.get_by_role("heading", name="The queue is empty").wait_for()
        assert page.get_by_role("link", name="How to add pairs").get_attribute("href") == "/backlog"


def test_judging_works_without_scripts(browser: Any, tmp_path: Path) -> None:
    """Plain forms do the same."""
    with reviewing(tmp_path, pairs(4)) as (served, store), judging(browser, served, "Ada", java_script_enabled=False) as page:
        first = page.locator(".pair").get_attribute("data-key")
        with page.expect_navigation():
            page.get_by_role("button", name="2: answers it in part").click()
        second = page.locator(".pair").get_attribute("data-key")
        with page.expect_navigation():
            page.get_by_role("button", name="Skip").click()
        third = page.locator(".pair").get_attribute("data-key")
        assert len({first, second, third}) == 3
        page.get_by_label("Nobody should judge this pair").fill("no question")
        with page.expect_navigation():
            page.get_by_role("button", name="Reject the pair").first.click()
        assert ratings(store) == {"ada": {first: 2}}
        assert store.backlog()["rejected"] == 1
        with page.expect_navigation():
            page.get_by_role("button", name="Undo").click()
        assert page.locator(".pair").get_attribute("data-key") == third
        assert store.backlog()["rejected"] == 0


def test_grades_need_the_token_of_the_page(tmp_path: Path) -> None:
    """Nobody can have a reviewer judge from another site."""
    with reviewing(tmp_path, pairs(1)) as (served, store):
        key = store.review_items()[0].item_key
        for path in (
            f"/review/{key}/judge",
            f"/review/{key}/reject",
            "/review/undo",
            "/review/publish",
            f"/review/adjudicate/{key}",
        ):
            answer = httpx2.post(served.url + path, data={"grade": "3", "why": "x", "golden": "hotel", "version": "1"})
            assert answer.status_code == 403, path
        assert ratings(store) == {}


def test_hostile_and_right_to_left_texts_are_shown_whole_and_do_nothing(browser: Any, tmp_path: Path) -> None:
    with reviewing(tmp_path, [hostile(), *pairs(1, offset=3)]) as (served, store):
        with judging(browser, served, "Ada") as page:
            ready(page)
            assert HOSTILE in page.locator("#asked").inner_text()
            assert HOSTILE in page.locator(".document .text").inner_text()
            assert page.locator(".document .text").inner_text().count("مرحبا") == 400
            assert page.locator(".pair img, .pair script").count() == 0
            assert page.locator(".document").evaluate("(pane) => pane.scrollHeight > pane.clientHeight")
            page.keyboard.press("PageDown")  # the pane has the focus
            page.wait_for_function("() => document.querySelector('.document').scrollTop > 0")
            page.keyboard.press("1")
            sent(page)
            page.goto(served.url + "/backlog")
            assert HOSTILE in page.locator("#rows").inner_text()
        assert ratings(store) == {"ada": {"hostile123": 1}}


# --- disputes, agreement, publishing


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> list[ReviewItem]:
    return pairs(8, wanted=2)


def test_disputes_are_settled_by_keyboard_by_somebody_who_judged_none_of_them(
    browser: Any, tmp_path: Path, judged: list[ReviewItem]
) -> None:
    """Adjudication; the adjudicator is not a rater, so agreement stays what it was."""
    with reviewing(tmp_path, judged, AT_ODDS) as (served, store):
        with judging(browser, served, "Dora", "/review/agreement") as page:
            before = page.locator(".coefficients").inner_text()
            assert "Cohen's κ, quadratic weights" in before
            page.get_by_role("link", name="Settle 6 disputes").click()
            page.wait_for_selector("form[data-keyed]")
            widest = page.locator(".pair").get_attribute("data-key")
            assert page.locator(".said").inner_text().split("\n")[1:] != []
            assert "ben" in page.locator(".said").inner_text()
            settle(page, "2")
            page.get_by_role("status").filter(has_text="Settled with 2. 5 disputes left for you.").wait_for(state="attached")
            page.locator("aside").get_by_text("5 disputes left for you").wait_for()
            assert ratings(store)["dora"] == {widest: 2}
            settle(page, "u")
            page.wait_for_url(f"**/adjudicate/{widest}")
            assert "dora" not in ratings(store)
            settle(page, "3")
            page.locator("aside").get_by_text("5 disputes left for you").wait_for()
            assert ratings(store)["dora"] == {widest: 3}
            page.goto(served.url + "/review/agreement")
            assert page.locator(".coefficients").inner_text() == before
            assert "by dora" in page.locator("#disagreements").inner_text()
        with judging(browser, served, "Ben", "/review/adjudicate") as page:
            page.get_by_role("heading", name="Somebody else has to settle the rest").wait_for()
            assert ratings(store)["ben"] == {item.item_key: grade for item, grade in zip(judged, AT_ODDS[0][1], strict=True)}


def test_agreement_too_low_is_refused_with_what_to_do(browser: Any, tmp_path: Path, judged: list[ReviewItem]) -> None:
    """Nothing is published that the raters do not agree on."""
    with reviewing(tmp_path, judged, AT_ODDS) as (served, store):
        with judging(browser, served, "Ada", "/review/publish") as page:
            page.get_by_text("not above 0.6").first.wait_for()
            page.get_by_text("Let reviewers judge these pairs again").wait_for()
            assert page.get_by_role("button", name=re.compile("^Publish")).count() == 0
            # Whoever sends the form all the same is told the same.
            token = page.locator("meta[name=csrf-token]").get_attribute("content")
            form = {"csrf": token, "golden": "hotel", "rule": "majority", "version": "1.1.0"}
            answer = page.request.post(served.url + "/review/publish", form=form)
            assert answer.status == 409
            assert "Nothing was published" in answer.text()
            assert store.backlog()["published"] == 0
            assert store.golden_sets(name="hotel") == []
            page.get_by_text("Take these grades all the same").click()
            page.get_by_label("Why").fill("cleo was new")
            page.get_by_role("button", name=re.compile("^Force hotel")).click()
            page.get_by_role("status").filter(has_text="holds the judgments of 8 pairs now").wait_for()
        (entry,) = store.audit(what="review.publish")
        assert (entry.who, entry.detail["forced"]) == ("Ada", "cleo was new")


def test_what_is_previewed_is_published_as_the_next_version(browser: Any, tmp_path: Path, judged: list[ReviewItem]) -> None:
    with reviewing(tmp_path, judged, AGREED) as (served, store):
        with judging(browser, served, "Dora", "/review/publish") as page:
            assert "Cohen's kappa is 0.8" in page.get_by_role("region", name="Agreement").inner_text()
            rows = page.get_by_role("table").locator("tbody tr")
            assert rows.count() == 8
            page.get_by_label("adjudicated").check()
            page.get_by_role("button", name="Show what would be published").click()
            page.get_by_text("1 disputed pairs wait for 'Dora'").wait_for()
            page.goto(served.url + "/review/adjudicate")
            settle(page, "2")
            page.get_by_role("heading", name="Nothing is disputed").wait_for()
            page.goto(served.url + "/review/publish?golden=hotel&rule=adjudicated")
            page.get_by_role("button", name=re.compile("^Publish hotel")).click()
            page.get_by_role("status").filter(has_text="holds the judgments of 8 pairs now").wait_for()
        kept = store.golden_set("hotel")
        assert kept is not None
        made = {(one["query_id"], one["doc_id"]): one["grade"] for one in _judgments(kept.content)}
        wanted = dict(zip(((item.query_id, item.doc_id) for item in judged), AGREED[0][1], strict=True))
        assert {pair: made[pair] for pair in wanted} == wanted
        assert store.backlog()["published"] == 8
        assert len(store.audit(what="review.publish")) == 1


def _judgments(content: Any) -> list[dict[str, Any]]:
    from ringtrue.golden import golden_from

    found = golden_from(content, name="hotel")
    return [{"query_id": one.query_id, "doc_id": one.doc_id, "grade": one.grade} for one in found.judgments]


def test_the_pages_are_accessible_in_both_themes_and_fit_a_phone(
    browser: Any, tmp_path: Path, judged: list[ReviewItem]
) -> None:
    """Axe-core finds nothing serious; 390 px need no sideways scrolling."""
    everything = [*judged, *pairs(5, offset=20)]
    with (
        reviewing(tmp_path, everything, AT_ODDS) as (served, _store),
        judging(browser, served, "Ada", bypass_csp=True) as page,
    ):
        for path in ("/review", "/review/agreement", "/review/adjudicate", "/review/publish", "/review?rename=yes"):
            page.goto(served.url + path)
            for theme, width in looks(page):
                if width == 1280:
                    assert serious(page) == [], (theme, path)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (width, path)


def test_a_key_says_who_judges_and_a_reading_key_judges_nothing(browser: Any, tmp_path: Path) -> None:
    """No name is asked of who has signed in; without the scope there is no way to judge."""
    from datetime import UTC, datetime

    store = Store.open(tmp_path / "store.sqlite")
    now = datetime.now(UTC)
    _, token = store.create_key("rita", ("read", "review"), now=now)
    _, reading_token = store.create_key("rudi", ("read",), now=now)
    store.close()
    with reviewing(tmp_path, pairs(2), keys=True) as (served, opened):
        with reading(browser, served.url + "/review", expects=SIGN_IN) as page:
            page.get_by_label("API key").fill(token)
            page.get_by_role("button", name="Sign in").click()
            key = press(page, "1")
            sent(page)
            assert page.get_by_role("link", name="Publish").count() == 0
        assert ratings(opened) == {"rita": {key: 1}}
        with reading(browser, served.url + "/review/agreement", expects=("403", *SIGN_IN)) as page:
            page.get_by_label("API key").fill(reading_token)
            page.get_by_role("button", name="Sign in").click()
            page.get_by_role("heading", name="Agreement", exact=True).wait_for()
            page.wait_for_load_state()
            assert page.get_by_role("link", name="Judge").count() == 0
            assert page.goto(served.url + "/review").status == 403


def test_undo_reaches_the_newest_of_several_reviewers_own_judgments_only(tmp_path: Path) -> None:
    items = pairs(2, wanted=2)
    with reviewing(tmp_path, items, (("ben", (3, 3)),)) as (served, store):
        with httpx2.Client(base_url=served.url, follow_redirects=True) as client:
            token = re.search(r'csrf-token" content="([^"]+)"', client.get("/review").text)
            assert token is not None
            client.post("/session/name", data={"csrf": token[1], "name": "Ada", "next": "/review"})
            client.post("/review/undo", data={"csrf": token[1]})
        assert ratings(store) == {"ben": {item.item_key: 3 for item in items}}
        assert ReviewQueue(store).counts() == {item.item_key: 1 for item in items}
