"""A real Chromium, for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ON_A_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
# A browser of its own accord looks for updates and plug-ins; a test must see only what the page asks for.
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip


def find_chromium() -> str | None:
    """Return where Chromium is; None if there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or (str(ON_A_MAC) if ON_A_MAC.exists() else None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a Chromium and stop it again; skips the test where there is none."""
    place = find_chromium()
    if place is None:
        pytest.skip("NO BROWSER: no Chromium was found, so this page was NOT tested; apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()
