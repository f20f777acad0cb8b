"""Evaluations started and watched in a real browser: progress moves, the result arrives, cancel works."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from ringtrue.run import Watcher
from ringtrue.service import evaluating
from served import browser, demo_template, demo_url, empty_url, looks, reading, serious

__all__ = ["browser", "demo_template", "demo_url", "empty_url"]
real = evaluating.evaluated


class Brake:
    """Lets an evaluation go on so many steps, then holds it."""

    def __init__(self) -> None:
        self._steps = threading.Semaphore(0)
        self.open = threading.Event()

    def let(self, steps: int) -> None:
        self._steps.release(steps)

    def evaluated(self, service: Any, plan: Any, *, watcher: Watcher, more: Any = ()) -> Any:
        def step(count: int) -> None:
            while count and not self.open.is_set() and not self._steps.acquire(timeout=0.05):
                watcher.step(0)  # a cancelled job hears of it although it is held
            watcher.step(count)

        return real(service, plan, watcher=Watcher(start=watcher.start, step=step), more=more)


@pytest.fixture
def brake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brake]:
    made = Brake()
    monkeypatch.setattr(evaluating, "evaluated", made.evaluated)
    yield made
    made.open.set()


def begin(page: Any, retriever: str = "bm25") -> None:
    page.fill("#f-retriever", retriever)
    page.fill("#f-measures", "nDCG@10, R@10 RR@7")
    page.get_by_role("button", name="Evaluate", exact=True).click()
    page.wait_for_url("**/jobs/job_*")


def test_progress_moves_by_itself_and_leads_to_the_result(browser: Any, empty_url: str, brake: Brake) -> None:
    with reading(browser, f"{empty_url}/evaluate?golden=hotel") as page:
        begin(page)
        brake.let(5)
        page.wait_for_selector("[data-field=done]:text-is('5')")
        assert page.inner_text("[data-field=total]") == "72"
        assert "Running" in page.inner_text("[data-badge]")
        brake.let(7)
        page.wait_for_selector("[data-field=done]:text-is('12')")
        assert page.evaluate("document.querySelector('progress').value") == 12
        brake.open.set()

        page.wait_for_url("**/runs/full-*")
        assert page.locator("#measures tbody th").all_inner_texts()[:3] == ["nDCG@10", "R@10", "RR@7"]
        page.goto(f"{empty_url}/jobs")
        assert "Done" in page.locator("tbody tr").first.inner_text()


def test_going_back_from_a_result_leads_to_what_was_before_the_waiting(browser: Any, empty_url: str, brake: Brake) -> None:
    with reading(browser, f"{empty_url}/evaluate?golden=hotel") as page:
        begin(page, "bm25(title=4)")
        brake.open.set()
        page.wait_for_url("**/runs/full-*")
        page.go_back()
        page.wait_for_url("**/evaluate?golden=hotel")
        assert urlsplit(page.url).path == "/evaluate"


def test_a_job_that_is_done_before_its_page_comes_leads_to_its_result_too(browser: Any, empty_url: str, brake: Brake) -> None:
    brake.open.set()
    with reading(browser, f"{empty_url}/evaluate?golden=hotel") as page:
        page.fill("#f-retriever", "bm25(title=6)")
        page.get_by_role("button", name="Evaluate", exact=True).click()
        page.wait_for_url("**/runs/full-*")
        job = page.request.get(f"{empty_url}/v1/jobs").json()["items"][0]["job_id"]
        page.goto(f"{empty_url}/jobs/{job}?watch=1")  # where starting one leads
        assert urlsplit(page.url).path.startswith("/runs/full-")
        page.goto(f"{empty_url}/jobs/{job}")
        assert urlsplit(page.url).path == f"/jobs/{job}"
        assert page.get_by_role("link", name="Open the result").count() == 1


def test_cancel_stops_a_job_and_nothing_of_it_is_kept(browser: Any, empty_url: str, brake: Brake) -> None:
    with reading(browser, f"{empty_url}/jobs") as page:
        while any(job["state"] in ("queued", "running") for job in page.request.get(f"{empty_url}/v1/jobs").json()["items"]):
            page.wait_for_timeout(50)  # a job of another test adds its run when it ends
        page.goto(f"{empty_url}/runs")
        before = page.locator("#rows tbody tr").count()
        page.goto(f"{empty_url}/evaluate?golden=hotel")
        begin(page, "bm25(title=5)")  # one that nobody asked before: what is known is not asked again
        brake.let(3)
        page.wait_for_selector("[data-field=done]:text-is('3')")
        page.get_by_role("button", name="Cancel").click()
        page.wait_for_selector(".badge:has-text('Cancelled')")
        page.wait_for_load_state()  # what follows the badge

        assert "nothing of it is kept" in page.inner_text("main")
        unit = {"stopped while indexing": "index entries", "stopped while searching": "queries"}
        counted = unit[page.inner_text("[data-field=says]")]
        assert re.fullmatch(rf"3 of [\d,]+ {counted}", page.inner_text("[data-of]"))
        assert page.get_by_role("button", name="Cancel").count() == 0
        page.goto(f"{empty_url}/jobs?state=cancelled")
        assert re.search(rf"3 of [\d,]+ {counted}", page.inner_text("main tbody"))
        page.goto(f"{empty_url}/runs")
        assert page.locator("#rows tbody tr").count() == before


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("retriever", "bm52", "did you mean bm25"),
        ("retriever", "rrf(bm25,", "write it like bm25, rrf(bm25, dense) or hybrid"),
        ("retriever", "dense(model='/etc/passwd')", "may not be named here"),
        ("measures", "nDGC@10", "nDCG"),
        ("k", "5000", "not a number of hits"),
    ],
)
def test_what_cannot_be_evaluated_is_said_and_the_form_keeps_what_was_written(
    browser: Any, empty_url: str, field: str, value: str, said: str
) -> None:
    refused = "the server responded with a status of 422"
    with reading(browser, f"{empty_url}/evaluate?golden=hotel", expects=[refused]) as page:
        page.evaluate("document.querySelector('form#evaluate').noValidate = true")
        page.evaluate("document.querySelector('form#evaluate details').open = true")
        page.fill(f"#f-{field}", value)
        page.get_by_role("button", name="Evaluate", exact=True).click()
        page.wait_for_selector(".problem")

        assert said in page.inner_text(".problem").replace("'", "")
        assert page.input_value(f"#f-{field}") == value


def test_a_failed_job_says_why_and_offers_to_try_again(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/jobs?state=failed") as page:
        page.locator("tbody th a").first.click()
        assert "cuts answers" in page.inner_text(".problem")
        page.get_by_role("link", name="Evaluate again").click()
        assert page.input_value("#f-retriever") == "hybrid >> top(5)"


def test_a_job_of_nobody_is_not_found(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/jobs/job_0", expects=["status of 404"]) as page:
        assert "There is nothing here" in page.inner_text("h1")
        assert page.request.get(f"{empty_url}/jobs/job_0/events").status == 404


@pytest.mark.parametrize("path", ["/evaluate", "/jobs", "/jobs/job_demo2"])
def test_axe_finds_nothing_serious(browser: Any, demo_url: str, path: str) -> None:
    with reading(browser, demo_url + path, bypass_csp=True) as page:
        for theme, width in looks(page):
            assert serious(page) == [], (theme, width)
            assert page.evaluate("document.documentElement.scrollWidth") == width
