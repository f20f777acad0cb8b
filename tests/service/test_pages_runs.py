"""Runs in a real browser: the list, one run, and one query with the stage that lost its documents."""

from __future__ import annotations

from typing import Any

import pytest

from served import browser, demo_template, demo_url, empty_url, looks, reading, serious

__all__ = ["browser", "demo_template", "demo_url", "empty_url"]
REFUSED = "the server responded with a status of 409"


def numbers(page: Any, name: str) -> list[float]:
    return [float(text.split()[0]) for text in page.locator(f"#rows td[data-name='{name}']").all_inner_texts()]


def failed_run(page: Any, demo_url: str) -> None:
    page.goto(f"{demo_url}/runs?gate=fail")
    page.locator("#rows tbody th a").first.click()
    page.wait_for_url("**/runs/regression-*")


def unjudged_run(page: Any, demo_url: str) -> None:
    page.goto(f"{demo_url}/runs?retriever=bm25")
    page.locator("#rows tbody tr", has_not_text="figures only").get_by_role("link", name="bm25", exact=True).first.click()
    page.wait_for_url("**/runs/*-20*")


def test_the_list_is_sorted_and_filtered_and_its_address_says_how(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/runs") as page:
        every = page.locator("#rows tbody tr").count()
        page.get_by_role("link", name="nDCG@10").click()
        page.wait_for_url("**sort=-ndcg**")
        assert numbers(page, "nDCG@10") == sorted(numbers(page, "nDCG@10"), reverse=True)

        page.fill("#f-retriever", "hybrid")
        page.wait_for_url("**retriever=hybrid**")
        page.reload()
        found = page.locator("#rows tbody th a").all_inner_texts()
        assert 0 < len(found) < every
        assert set(found) == {"hybrid"}
        page.fill("#f-retriever", "nothing like it")
        page.wait_for_selector("#rows .empty")
        page.get_by_role("link", name="Show all runs").click()
        page.wait_for_url(f"{demo_url}/runs")
        assert page.locator("#rows tbody tr").count() == every


def test_a_run_shows_intervals_slices_components_losses_and_latency(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/runs?retriever=norm%3D%27z%27&gate=pass") as page:
        page.locator("#rows tbody th a").first.click()
        page.wait_for_url("**/runs/regression-*")
        assert "0.8" in page.inner_text("#measures")
        assert page.locator("#measures td[data-name='Change']").count() > 4, "it was held against a baseline"
        assert page.locator("#slices tbody tr").count() > 4
        assert {"bm25", "dense"} <= {text.split("\n")[0] for text in page.locator("#components th").all_inner_texts()}
        losses = page.inner_text("#losses")
        assert "Relevant documents" in losses
        assert "Found in the first 10" in losses
        assert "ms" in page.inner_text("#latency")
        unjudged_run(page, demo_url)
        assert " to " in page.locator("#measures td[data-name='95 % interval']").first.inner_text()


def test_a_run_is_judged_by_a_baseline_and_the_checks_name_their_queries(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url) as page:
        failed_run(page, demo_url)
        assert page.inner_text(".verdict-box h2") == "FAIL", "as the gate said it then"
        assert "nothing is recorded" not in page.inner_text(".verdict-box")
        page.locator("#checks a.mono").first.click()
        page.wait_for_url("**/queries/q0*")

        unjudged_run(page, demo_url)
        assert page.locator("#checks").count() == 0
        page.select_option("#f-baseline", "production")
        page.get_by_role("button", name="Preview").click()
        page.wait_for_url("**baseline=production")
        assert page.inner_text(".verdict-box h2") == "FAIL"
        assert "nothing is recorded" in page.inner_text(".verdict-box")
        page.locator("#checks a.mono").first.click()
        page.wait_for_url("**/queries/q0*")


def test_a_worse_run_becomes_the_baseline_only_with_a_reason(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url, expects=[REFUSED]) as page:
        failed_run(page, demo_url)
        page.get_by_role("button", name="Keep", exact=True).click()
        page.wait_for_selector(".problem")
        assert "no better standard" in page.inner_text(".problem")
        page.fill("#f-reason", "keywords misled guests <b>badly</b>")
        page.get_by_role("button", name="Keep", exact=True).click()
        page.wait_for_selector(".note.good")
        assert "This run is baseline production" in page.inner_text(".note.good")


def test_a_query_shows_which_stage_lost_a_document_and_its_ranks_on_the_way(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url) as page:
        failed_run(page, demo_url)
        page.locator("#losses").get_by_role("link").click()
        assert "sort=lost" in page.url
        page.locator("#rows tbody th a").first.click()
        page.wait_for_url("**/queries/*")
        lost = page.inner_text("#lost")
        assert "Cut by fusion" in lost
        assert "Its ranks: bm25" in lost
        assert page.locator("#answer .grade").count() >= 10
        assert page.locator("#elsewhere tbody tr").count() >= 2


def test_j_and_k_walk_from_query_to_query(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url) as page:
        failed_run(page, demo_url)
        page.locator("#worst tbody th a").first.click()
        page.wait_for_url("**/queries/*")
        first = page.url
        page.keyboard.press("j")
        page.wait_for_url(lambda url: url != first)
        page.keyboard.press("k")
        page.wait_for_url(first)
        assert page.locator("[data-step=k]").count() == 0


def test_the_full_report_opens_under_its_own_policy_apart_from_the_server(browser: Any, demo_url: str) -> None:
    with reading(browser, demo_url) as page:
        failed_run(page, demo_url)
        address = page.url + "/report"
        policy = page.request.get(address).headers["content-security-policy"]
        page.goto(address)
        assert "sandbox" in policy
        assert "script-src 'sha256-" in policy
        assert page.locator("#queries tbody tr").count() > 10  # its own styles and script run
        assert page.evaluate("getComputedStyle(document.querySelector('.verdict h1')).fontWeight") == "750"
        assert page.evaluate("self.origin") == "null"


def test_an_empty_list_says_what_to_do_next(browser: Any, empty_url: str) -> None:
    with reading(browser, f"{empty_url}/runs") as page:
        page.locator(".empty").get_by_role("link", name="Evaluate").click()
        assert page.url == f"{empty_url}/evaluate"


@pytest.mark.parametrize("path", ["/runs/full-1", "/runs/full-1/queries", "/runs/full-1/queries/q1", "/runs/full-1/report"])
def test_a_run_of_nobody_is_not_found(browser: Any, empty_url: str, path: str) -> None:
    with reading(browser, empty_url + path, expects=["status of 404"]) as page:
        assert "there is no run" in page.inner_text(".problem")


def test_the_pages_of_a_run_can_be_read_without_a_script(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/runs?gate=fail", java_script_enabled=False) as page:
        page.locator("#rows tbody th a").first.click()
        page.select_option("#f-baseline", "production")
        page.get_by_role("button", name="Preview").click()
        page.wait_for_url("**baseline=production")
        assert page.inner_text(".verdict-box h2") in ("PASS", "FAIL", "UNDECIDED")


@pytest.mark.parametrize("which", ["list", "run", "queries", "query"])
def test_axe_finds_nothing_serious(browser: Any, demo_url: str, which: str) -> None:
    with reading(browser, f"{demo_url}/runs?gate=pass", bypass_csp=True) as page:
        if which != "list":
            page.locator("#rows tbody th a").first.click()
            page.wait_for_url("**/runs/regression-*")
        if which in ("queries", "query"):
            page.goto(page.url + ("/queries" if which == "queries" else "/queries/q018"))
        for theme, width in looks(page):
            assert serious(page) == [], (theme, width)
            assert page.evaluate("document.documentElement.scrollWidth") == width
