"""The dashboard's frame in a real browser: theme, keys, messages, moving jobs, charts; under its strict policy."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import threading
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from jinja2 import ChoiceLoader, FileSystemLoader
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from browser import chromium
from ringtrue.service.auth import Caller
from ringtrue.service.errors import Refused
from ringtrue.service.middleware import POLICY
from ringtrue.service.pages import shell

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
PARTS = Path(__file__).parents[1] / "unit" / "service"
AXE = Path(__file__).parents[1] / "vendor" / "axe.min.js"
CALLER = Caller("hotels", "local", ("admin",))
seen: list[tuple[str, str | None]] = []


def parts(request: Request) -> Response:
    then = NOW - timedelta(hours=3)
    request.state.caller = CALLER
    return shell.page(request, "parts.html.jinja", name="bm25", nan=math.nan, sort="-ndcg", then=then)


async def saved(request: Request) -> Response:
    seen.append((request.method, request.headers.get("x-csrf-token")))
    how = (await request.form()).get("k")
    if how == "json":
        return JSONResponse({"error": {"message": "the store is full; prune it"}}, 503)
    if how == "page":
        return shell.error_page(request, Refused(403, "forbidden", "this needs a key with scope 'write'"))
    return shell.error_page(request, Refused(422, "invalid_input", "k: write a whole number"))


async def events(request: Request) -> Response:
    async def told() -> Any:
        for done, state in ((2, "running"), (4, "running"), (4, "done")):
            kind = "end" if state == "done" else "progress"
            said = {"done": done, "total": 4, "says": f"step {done}", "state": state}
            yield f"event: {kind}\ndata: {json.dumps(said)}\n\n"

    return StreamingResponse(told(), media_type="text/event-stream")


async def waiting(request: Request) -> Response:
    async def told() -> Any:
        yield 'event: progress\ndata: {"done": 1200, "total": 4000, "says": "searching", "state": "running"}\n\n'
        while not await request.is_disconnected():
            await asyncio.sleep(0.05)

    return StreamingResponse(told(), media_type="text/event-stream")


def application(watch: Any) -> Any:
    app = Starlette(routes=[
        Mount("/static", shell.static_files()),
        Route("/parts", parts), Route("/save", saved, methods=["POST"]), Route("/jobs/j1/events", watch),
        Route("/{rest:path}", lambda request: PlainTextResponse(f"at {request.url.path}")),
    ])  # fmt: skip
    app.state.service = SimpleNamespace(now=lambda: NOW, settings=SimpleNamespace(demo=False))

    async def with_policy(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        scope.setdefault("state", {})["csrf"] = "token-1"

        async def sent(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"content-security-policy", POLICY.encode())]
            await send(message)

        await app(scope, receive, sent)

    return with_policy


@contextmanager
def served(watch: Any) -> Iterator[str]:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(application(watch), log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{place.getsockname()[1]}"
        finally:
            server.force_exit = server.should_exit = True
            thread.join()


@pytest.fixture(scope="module", autouse=True)
def templates() -> Iterator[None]:
    loader = shell._templates().loader
    assert loader is not None
    shell._templates().loader = ChoiceLoader([loader, FileSystemLoader(PARTS)])
    yield
    shell._templates().loader = loader


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(waiting) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@contextmanager
def opened(browser: Any, address: str, *, width: int = 1280, **options: Any) -> Iterator[Any]:
    """Open the page of all parts; whatever the browser complains about fails the test."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    page = context.new_page()
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{address}/parts")
    yield page
    context.close()
    # That a request was refused is what some tests are about; the browser and htmx note it.
    assert [
        text for text in complaints if not text.startswith(("Failed to load resource", "Response Status Error", "htmx:"))
    ] == []


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_a_chosen_theme_holds_on_the_next_page_and_system_follows_the_reader(browser: Any, address: str) -> None:
    with opened(browser, address, color_scheme="light") as page:
        light = background(page)
        page.click("[data-theme-choice=dark]")
        dark = background(page)
        page.reload()
        again, pressed = background(page), page.get_attribute("[data-theme-choice=dark]", "aria-pressed")
        page.click("[data-theme-choice=system]")
        page.emulate_media(color_scheme="dark")

        assert light != dark == again
        assert pressed == "true"
        assert background(page) == dark
        assert page.evaluate("document.documentElement.dataset.theme") is None


def test_a_theme_is_set_before_anything_is_drawn(browser: Any, address: str) -> None:
    with opened(browser, address, color_scheme="light") as page:
        page.click("[data-theme-choice=dark]")
        page.add_init_script(
            "new MutationObserver(() => {"
            "  if (document.body) window.atFirst ??= document.documentElement.dataset.theme || 'none';"
            "}).observe(document, { childList: true, subtree: true })"
        )
        page.reload()

        assert page.evaluate("window.atFirst") == "dark"


def test_keys_lead_to_every_section_and_do_nothing_while_somebody_types(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.keyboard.press("/")
        page.keyboard.type("gr?")
        assert page.input_value("#f-q") == "gr?"
        assert not page.is_visible("#keys")

        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("?")
        assert page.is_visible("#keys")
        page.keyboard.press("Escape")
        assert not page.is_visible("#keys")

        for section in shell.SECTIONS:
            page.goto(f"{address}/parts")
            page.keyboard.type(f"g{section.letter}")  # the second has to follow soon
            page.wait_for_url(f"{address}{section.href}")


def test_the_skip_link_is_the_first_stop_and_leads_to_the_content(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"


def test_on_a_phone_the_navigation_is_a_menu_and_nothing_runs_over_the_edge(browser: Any, address: str) -> None:
    with opened(browser, address, width=390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert not page.is_visible("#nav")
        page.get_by_role("button", name="Menu").click()
        assert page.is_visible("#nav")
        page.keyboard.press("Escape")
        assert not page.is_visible("#nav")


def test_copying_puts_the_command_on_the_clipboard(browser: Any, address: str) -> None:
    with opened(browser, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        # That it is copied is shown for a moment only.
        page.evaluate(
            "new MutationObserver(() => { window.shown ||= document.querySelector('.copied') !== null; })"
            ".observe(document.body, { attributes: true, subtree: true })"
        )
        page.click(".command >> nth=-1 >> button")
        page.wait_for_function("() => window.shown")
        assert page.evaluate("navigator.clipboard.readText()") == "ringtrue serve"


@pytest.mark.parametrize(
    ("how", "said"),
    [("json", "the store is full; prune it"), ("page", "this needs a key with scope 'write'")],
)
def test_what_goes_wrong_is_said_in_a_message_and_requests_carry_the_token(
    browser: Any, address: str, how: str, said: str
) -> None:
    seen.clear()
    with opened(browser, address) as page:
        page.fill("#f-k", how)
        page.click("button[name=do]")
        page.wait_for_selector(".toast")

        assert page.inner_text(".toast p") == said
        assert seen == [("POST", "token-1")]
        page.click(".toast button")
        assert not page.is_visible(".toast")


def test_a_form_that_was_refused_shows_why_in_its_place(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.fill("#f-k", "x")
        page.click("button[name=do]")
        page.wait_for_selector("form .problem")
        assert "k: write a whole number" in page.inner_text("form .problem")


def test_a_server_that_is_gone_is_said(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.route("**/save", lambda route: route.abort())
        page.click("button[name=do]")
        page.wait_for_selector(".toast")
        assert "cannot be reached" in page.inner_text(".toast p")


def test_a_job_moves_by_itself(browser: Any, address: str) -> None:
    with opened(browser, address) as page:
        page.wait_for_function("() => document.querySelector('[data-events] progress').value === 1200")
        assert page.inner_text("[data-events] [data-field=done]") == "1,200"
        assert page.inner_text("[data-events] [data-field=total]") == "4,000"
        assert page.inner_text("[data-events] [data-field=says]") == "searching"
        assert "Running" in page.inner_text("[data-events] [data-badge]")


def test_when_a_job_is_done_the_page_goes_to_its_result(browser: Any) -> None:
    with served(events) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{address}/parts")
        page.wait_for_url(f"{address}/runs/1")
        assert page.url == f"{address}/runs/1"
        context.close()


def test_a_chart_has_the_colours_of_the_theme(browser: Any, address: str) -> None:
    with opened(browser, address, color_scheme="light") as page:
        colour = "getComputedStyle(document.querySelector('#c1 .thread')).stroke"
        light = page.evaluate(colour)
        page.click("[data-theme-choice=dark]")
        assert page.evaluate(colour) != light


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_the_parts(browser: Any, address: str, theme: str, width: int) -> None:
    with opened(browser, address, width=width, color_scheme=theme, bypass_csp=True) as page:
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate(
            "axe.run().then((result) => result.violations.map((one) => [one.impact, one.id, one.nodes[0].html]))"
        )

    assert [one for one in found if one[0] in ("serious", "critical")] == []
