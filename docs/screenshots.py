"""Makes the pictures in docs/images: ``python docs/screenshots.py [report] [dashboard]`` (needs Chromium and the encoder).

The report is of a diversified fusion against the shipped hybrid's baseline: it fails, so that the pictures show what a reader
comes for. The dashboard is the demonstration's.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from ringtrue.golden import load, locate
from ringtrue.report import html, report_on
from ringtrue.run import evaluate
from ringtrue.verdict import read_baseline

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests"))
from browser import chromium  # noqa: E402  # the tests know where the browser lies

DESKTOP, PHONE = {"width": 1280, "height": 1000}, {"width": 390, "height": 844}


def main() -> None:
    """Make what is named, or all."""
    wanted = sys.argv[1:] or ["report", "dashboard"]
    if "report" in wanted:
        report_pictures()
    if "dashboard" in wanted:
        dashboard_pictures()


def dashboard_pictures() -> None:
    from ringtrue.service.demo import fill
    from ringtrue.store import Store
    from running_service import running

    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        with Store.open(Path(folder) / "store.sqlite") as store:
            fill(store, now=datetime.now(UTC))
            runs = [row.run_id for row in store.results(limit=20) if row.golden == "hotel-v2.0.0"]
            worse = next(row.run_id for row in store.results(limit=20) if row.gate == "fail")
        with running(Path(folder), retriever="hybrid", demo=True) as served:
            for name, scheme, size, place in (
                ("overview-light", "light", DESKTOP, "/"),
                ("overview-dark", "dark", DESKTOP, "/"),
                ("overview-phone", "light", PHONE, "/"),
                ("run-light", "light", DESKTOP, f"/runs/{quote(worse)}"),
                ("compare-light", "light", DESKTOP, f"/compare?a={quote(runs[0])}&b={quote(worse)}"),
                ("review-dark", "dark", DESKTOP, "/review"),
                ("agreement-light", "light", DESKTOP, "/review/agreement"),
                ("log-light", "light", DESKTOP, "/queries"),
                ("test-light", "light", DESKTOP, "/tests/hybrid-search"),
                ("flag-light", "light", DESKTOP, "/flags/tuned-fusion"),
                ("experiments-dark", "dark", DESKTOP, "/experiments"),
            ):
                page = browser.new_page(viewport=size, color_scheme=scheme)
                page.goto(served.url + place)
                if place == "/review" and page.get_by_label("Your name").count():
                    page.get_by_label("Your name").fill("reviewer-3")
                    page.keyboard.press("Enter")
                page.wait_for_timeout(1500)
                page.screenshot(path=IMAGES / f"dashboard-{name}.png")
                page.close()


def report_pictures() -> None:
    golden = load("hotel")
    now = evaluate("rrf(bm25, dense) >> mmr(0.5)", golden, components=True)
    before = evaluate("hybrid", golden)
    baseline = read_baseline(locate("hotel") / "runs" / "baseline.json")
    report = report_on(now, made_at=datetime.now(UTC).isoformat(timespec="seconds"), other=before, baseline=baseline)
    assert report.comparison is not None
    deltas = report.comparison.measures["nDCG@10"].deltas
    worst = min(deltas, key=lambda query: deltas[query])
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page_file = Path(folder) / "report.html"
        page_file.write_text(html(report), encoding="utf-8")
        for name, scheme, size, place in (
            ("light", "light", DESKTOP, ""),
            ("dark", "dark", DESKTOP, ""),
            ("losses-light", "light", DESKTOP, "#components"),
            ("query-light", "light", DESKTOP, f"#q={worst}"),
            ("query-dark", "dark", DESKTOP, f"#q={worst}"),
            ("phone-light", "light", PHONE, ""),
            ("phone-dark", "dark", PHONE, ""),
        ):
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(f"{page_file.as_uri()}{place}")
            page.wait_for_timeout(1500)  # until scrolling there has ended
            page.screenshot(path=IMAGES / f"report-{name}.png")
            page.close()


if __name__ == "__main__":
    main()
