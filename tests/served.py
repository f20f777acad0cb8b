"""Servers for tests of pages: import the fixtures ``demo_url``, ``empty_url`` and ``browser``, open pages with ``reading``.

The demonstration is filled once in a run of the tests, by whichever process needs it first, and copied for every file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from browser import chromium
from made_once import cache_from, made_once
from ringtrue.service.demo import fill
from ringtrue.store import Store
from running_service import Served, running

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
LIGHT_AND_DARK, WIDE_AND_NARROW = ("light", "dark"), (1280, 390)
# What htmx writes as an error when it drops a request for a newer one, as it does for who types on. A request that fails
# otherwise has a complaint of its own beside the first of these.
DROPPED = ("htmx:afterRequest", "htmx:sendAbort")


def _filled(template: Path, indexed: Path) -> None:
    """Fill a store in a folder; what is indexed for it lies beside it."""
    cache_from(indexed, template / "cache")
    with _at_home(template):
        store = Store.open(template / "store.sqlite")
        fill(store, now=datetime.now(UTC))
        store.close()


@contextmanager
def demo(folder: Path, template: Path, **settings: Any) -> Iterator[Served]:
    """Serve a copy of the demonstration from a folder."""
    for file in template.glob("store.sqlite*"):
        shutil.copy(file, folder / file.name)
    cache_from(template / "cache", folder / "cache")
    with _at_home(folder), running(folder, retriever="hybrid", demo=True, **settings) as found:
        yield found


@contextmanager
def _at_home(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RINGTRUE_CACHE", str(folder / "cache"))
        patched.chdir(folder)
        yield


@pytest.fixture(scope="session")
def demo_template(tmp_path_factory: pytest.TempPathFactory, hotel_cache: Path) -> Path:
    """A folder with the filled store, to be copied; processes that run tests side by side share it."""
    return made_once(tmp_path_factory, "demo-template", lambda folder: _filled(folder, hotel_cache))


@pytest.fixture(scope="module")
def demo_url(tmp_path_factory: pytest.TempPathFactory, demo_template: Path) -> Iterator[str]:
    """Address of a server with a month of the demonstration, one for the tests of a file."""
    with demo(tmp_path_factory.mktemp("demo"), demo_template) as found:
        yield found.url


@pytest.fixture(scope="module")
def empty_url(tmp_path_factory: pytest.TempPathFactory, hotel_cache: Path) -> Iterator[str]:
    """Address of a server with an empty store, one for the tests of a file."""
    folder = tmp_path_factory.mktemp("empty")
    cache_from(hotel_cache, folder / "cache")
    with _at_home(folder), running(folder, retriever="hybrid") as found:
        yield found.url


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@contextmanager
def reading(browser: Any, address: str, *, width: int = 1280, expects: Sequence[str] = (), **options: Any) -> Iterator[Any]:
    """Open a page in a window of its own; whatever the browser complains about fails the test, but for what is expected."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        page.goto(address)
        yield page
    finally:
        context.close()
    found = [text for text in complaints if not text.startswith(DROPPED) and not any(part in text for part in expects)]
    assert not found, found


def looks(page: Any, widths: Sequence[int] = WIDE_AND_NARROW) -> Iterator[tuple[str, int]]:
    """Show an open page in every width, for each of which it is loaded again, and in both themes; yields theme and width."""
    for width in sorted(widths, key=lambda width: bool(width != page.viewport_size["width"])):
        if page.viewport_size["width"] != width:
            page.set_viewport_size({"width": width, "height": 900})
            page.reload()
        for theme in LIGHT_AND_DARK:
            page.emulate_media(color_scheme=theme)
            # What a page draws itself it draws again in the next frame.
            page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
            yield theme, width


def serious(page: Any) -> list[Any]:
    """Return what axe-core finds serious or critical on a page that was opened with ``bypass_csp=True``."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then((result) => result.violations.map((one) => [one.impact, one.id, one.nodes.map((node) => node.html)]))"
    )
    return [one for one in found if one[0] in ("serious", "critical")]
