"""Experiments and sweeps in a real browser: the list, parallel coordinates, figures against the baseline, export."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from running_service import running
from served import browser, demo_template, demo_url, empty_url, looks, reading, serious

__all__ = ["browser", "demo_template", "demo_url", "empty_url"]

SCRIPT = "<script>window.broken = 1</script>"


def listed(page: Any) -> list[str]:
    return [one.inner_text() for one in page.locator("#rows tbody th a").all()]


def trials() -> list[dict[str, Any]]:
    """A sweep of six trials in which more depth is better and slower, but for one that is only slower."""
    figures = [(10, 0.60, 10.0), (20, 0.70, 20.0), (40, 0.74, 45.0), (80, 0.75, 90.0), (160, 0.73, 200.0), (320, None, 400.0)]
    return [
        {
            "date": "2026-03-01",
            "description": f"sweep, trial {number} of 6",
            "config_changes": {"depth": depth, "norm": "'z'", "model": SCRIPT},
            "results": {"nDCG@10": value, "R@10": 0.9, "latency_p95_ms": ms},
            "verdict": "REJECTED (trial 4 is better)" if number != 4 else "ACCEPTED (confirmed)",
            "baseline": "depth 10",
            "sweep": {"trial": number, "of": 6, "method": "grid", "retriever": f"depth {depth}"},
        }
        for number, (depth, value, ms) in enumerate(figures, 1)
    ]


@pytest.fixture(scope="module")
def own_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with one sweep and one experiment that somebody wrote by hand."""
    single = {
        "id": "exp-900", "date": "2026-03-02", "description": SCRIPT, "config_changes": {"chunking.max_tokens": 256},
        "results": {"mrr": 0.71, "nDCG@10": 0.7}, "verdict": "ACCEPTED (all metrics improved)", "commit": "0123abc-dirty",
        "hypothesis": "smaller chunks say one thing only", "notes": "took an hour", "ticket": {"id": 7},
    }  # fmt: skip
    with running(tmp_path_factory.mktemp("experiments")) as found:
        body = json.dumps({"experiments": [*trials(), single]}).encode()
        asked = urllib.request.Request(f"{found.url}/v1/experiments", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 201
        yield found.url


def test_a_sweep_is_one_line_among_experiments(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/experiments") as page:
        assert listed(page) == [
            "vectors count nineteen times as much as keywords",
            "Sweep of w, title, norm",
            "keywords and vectors together",
            "vectors alone in place of keywords",
        ]
        assert "30 trials, grid; best: w = " in page.locator("#rows tbody tr").nth(1).inner_text()
        assert "Accepted" in page.locator("#rows tbody tr").nth(2).inner_text()


def test_the_list_is_filtered_while_typing_and_sorted_by_its_address(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/experiments") as page:
        page.locator("#f-text").press_sequentially("vectors", delay=5)
        page.locator("#told", has_text="3 entries found").wait_for()
        page.select_option("#f-verdict", "rejected")
        page.locator("#told", has_text="2 entries found").wait_for()
        address = page.url
        assert address == f"{demo_url}/experiments?text=vectors&verdict=rejected&measure=nDCG%4010"
        page.goto(address)
        assert len(listed(page)) == 2
        page.goto(f"{demo_url}/experiments?sort=-figure")
        figures = [float(cell.inner_text()) for cell in page.locator("#rows td:nth-of-type(2)").all()]
        assert figures == sorted(figures, reverse=True)
        assert page.locator("th[aria-sort=descending]").inner_text() == "nDCG@10"
        page.goto(f"{demo_url}/experiments?text=nothing+like+this")
        assert "No experiment matches" in page.inner_text("main")


def test_every_trial_is_a_strand_that_leads_to_it_and_the_best_is_marked(browser: Any, demo_url: str) -> None:
    with reading(browser, f"{demo_url}/experiments/sweeps/exp-003") as page:
        picture = page.locator("svg[aria-label*='30 trials across w, title, norm and nDCG@10']")
        assert picture.locator("a").count() == 30
        best = picture.locator("a:has(.strand.best)")
        assert best.count() == 1
        place = best.get_attribute("href")
        assert page.locator("tr.chosen", has_text="best").last.locator("th a").get_attribute("href") == place
        # One stop for the Tab key; arrows lead along.
        assert picture.locator("a[tabindex='0']").count() == 1
        picture.locator("a[tabindex='0']").focus()
        page.keyboard.press("ArrowRight")
        reached = page.evaluate("document.activeElement.getAttribute('href')")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{reached}")
        assert "Sweep of w, title, norm" in page.inner_text(".crumbs")


def test_an_experiment_shows_its_verdict_and_a_trial_the_baseline_of_its_sweep(
    browser: Any, demo_url: str, own_url: str
) -> None:
    with reading(browser, f"{demo_url}/experiments/exp-002") as page:
        assert "Accepted" in page.inner_text("h1")
        assert "all 9 measures improved" in page.inner_text(".lead")
        assert len(page.locator("tbody tr", has_text="nDCG@10").locator("td").all()) == 1
        page.goto(f"{own_url}/experiments/exp-004")
        cells = page.locator("tbody tr", has_text="nDCG@10").locator("td").all()
        assert [cell.inner_text() for cell in cells] == ["0.750", "0.600", "+0.150"]
        assert page.locator("tbody tr", has_text="latency_p95_ms").locator("td").nth(2).inner_text() == "+80 ms"


def test_a_sweep_shows_its_gain_by_the_chosen_measure_and_trials_without_a_value(browser: Any, own_url: str) -> None:
    with reading(browser, f"{own_url}/experiments/sweeps/exp-001") as page:
        assert page.locator(".tile", has_text="Gain").locator(".value").inner_text() == "+0.150"
        page.select_option("#f-measure", "R@10")
        page.wait_for_url("**?measure=R%4010")
        assert page.locator(".tile", has_text="Best R@10").locator(".value").inner_text() == "0.900"
        # The trial without a value is in the table all the same.
        assert page.get_by_role("region", name="All trials").locator("tbody tr").count() == 6
        page.goto(f"{own_url}/experiments/sweeps/exp-001")
        assert "—" in page.locator("tr", has_text="exp-006").inner_text()


def test_what_somebody_wrote_by_hand_is_kept_and_does_nothing(browser: Any, own_url: str) -> None:
    with reading(browser, f"{own_url}/experiments/exp-900") as page:
        said = page.inner_text("main")
        for words in (
            SCRIPT,
            "smaller chunks say one thing only",
            "took an hour",
            "0123abc-dirty",
            "chunking.max_tokens",
            '{"id": 7}',
        ):
            assert words in said
        for place in ("/experiments", "/experiments/sweeps/exp-001"):
            page.goto(own_url + place)
            assert SCRIPT in page.content().replace("&lt;", "<").replace("&gt;", ">")
            assert page.evaluate("window.broken") is None


def test_the_export_is_the_file_that_the_service_takes(browser: Any, own_url: str, empty_url: str) -> None:
    with urllib.request.urlopen(f"{own_url}/experiments/export.json", timeout=30) as answer:
        content = answer.read()
    rows = json.loads(content)["experiments"]
    assert [row["id"] for row in rows] == [*(f"exp-00{number}" for number in range(1, 7)), "exp-900"]
    assert rows[-1]["ticket"] == {"id": 7}
    assert rows[5]["results"]["nDCG@10"] is None
    with reading(browser, f"{empty_url}/experiments") as page:
        assert "No experiments yet" in page.inner_text("main")
        assert serious(page) == []
        asked = urllib.request.Request(f"{empty_url}/v1/experiments", content, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 201
        page.reload()
        assert listed(page) == [SCRIPT, "Sweep of depth, norm, model"]
        page.goto(f"{empty_url}/settings/audit")
        assert "experiments imported" in page.inner_text("tbody")


@pytest.mark.parametrize("path", ["/experiments", "/experiments/sweeps/exp-003", "/experiments/exp-002"])
def test_experiments_are_accessible_in_both_themes_and_on_a_phone(browser: Any, demo_url: str, path: str) -> None:
    with reading(browser, demo_url + path, bypass_csp=True, width=390) as page:
        for look in looks(page, widths=(390,)):
            assert serious(page) == [], look
            assert page.evaluate("document.documentElement.scrollWidth") == 390
