"""Makes the pictures of the HTML report in docs/images: ``python docs/screenshots.py`` (needs Chromium and the encoder).

A diversified fusion against the shipped hybrid's baseline: it fails, so that the pictures show what a reader comes for.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

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
