"""What every page owes its reader: one name in the title, headings in order, ways that are open, words that are true."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import serving
from ringtrue.rollout import change_flag
from ringtrue.service.auth import Access, Caller
from ringtrue.service.context import Service
from ringtrue.service.jobs import JobProgress
from ringtrue.service.library import keep_shipped
from ringtrue.service.pages.filters import title
from ringtrue.service.pages.settings import DEEDS
from ringtrue.store import Store

PAGES = (
    "/", "/evaluate", "/jobs", "/runs", "/compare", "/golden", "/golden/hotel/1.0.0", "/review", "/review/agreement",
    "/review/publish", "/backlog", "/queries", "/tests", "/flags", "/flags/graph-scoring", "/experiments", "/settings",
    "/settings/keys", "/settings/audit", "/nowhere",
)  # fmt: skip


@pytest.fixture(scope="module")
def service(client: TestClient) -> Service:
    found: Service = client.app.state.service  # type: ignore[attr-defined]
    return found


def token(client: TestClient, path: str) -> str:
    found = re.search(r'<meta name="csrf-token" content="([^"]+)"', client.get(path).text)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("path", PAGES)
def test_a_title_names_the_product_once_and_headings_leave_no_step_out(client: TestClient, service: Service, path: str) -> None:
    change_flag(service.store, "graph-scoring", who="tester", now=service.now())
    text = client.get(path).text
    (name,) = re.findall(r"<title>(.*?)</title>", text, re.DOTALL)
    assert name.count("Ringtrue") == 1, name
    assert name.endswith(" · Ringtrue")
    main = text[text.index("<main") : text.index("</main>")]
    levels = [int(level) for level in re.findall(r"<h([1-6])[ >]", main)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels


def test_a_badge_is_no_part_of_a_title(client: TestClient, service: Service) -> None:
    change_flag(service.store, "short-answers", who="tester", now=service.now(), state="paused")
    text = client.get("/flags/short-answers").text
    assert "Paused</span>" in text
    assert "<title>short-answers · Ringtrue</title>" in text
    assert title('<bdi>a &lt;b&gt;</bdi> <span class="badge bad"><span class="glyph">x</span>No</span>') == "a &lt;b&gt;"


def test_signs_are_those_of_the_dashboard(client: TestClient, service: Service) -> None:
    why = "p95 -4.5% on 2026-11-16"
    change_flag(service.store, "slow-answers", who="tester", now=service.now(), rollout=5, why=why)
    text = client.get("/flags/slow-answers").text
    assert "p95 −4.5\u00a0% on 2026-11-16" in text
    assert re.findall(r">\d+ %</", text[text.index("What happened") :]) == [], "no line ends between a number and its sign"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A browser that signed in with a key that may only read."""
    folder: Path = tmp_path_factory.mktemp("keyed")
    with serving(folder, keys=True) as app:
        store: Store = app.app.state.service.store  # type: ignore[attr-defined]
        key = store.create_key("reader", ("read",), now=datetime.now(UTC))[1]
        answer = app.post("/login", data={"key": key, "csrf": token(app, "/login")}, follow_redirects=False)
        assert answer.status_code == 303
        yield app


def test_a_key_that_may_only_read_is_led_nowhere_it_may_not_go(reader: TestClient) -> None:
    text = reader.get("/golden").text
    ways = set(re.findall(r'<li><a href="([^"]+)"', text))
    assert "/review/agreement" in ways
    assert "/review" not in ways
    for way in ways:
        assert reader.get(way).status_code == 200, way
    assert 'type="file"' not in text
    assert "upload yours" not in text
    assert reader.get("/review").status_code == 403


def test_a_job_that_is_cancelled_says_at_once_that_it_stops(client: TestClient, service: Service) -> None:
    begun, going = threading.Event(), threading.Event()

    def work(progress: JobProgress) -> dict[str, Any]:
        progress.start("preparing", 0)
        begun.set()
        going.wait(20)
        progress.check()
        return {}

    job = service.jobs.start("evaluate", Caller("default", "tester", ("write",)), {"retriever": "bm25"}, work)
    assert begun.wait(20)
    here = f"/jobs/{job.job_id}"
    before = client.get(here).text
    assert f'action="{here}/cancel"' in before
    bar = re.search(r"<progress [^>]*>", before)
    assert bar is not None
    assert "value=" not in bar[0], "nobody knows how much there is to do"
    assert "data-of hidden" in before
    after = client.post(f"{here}/cancel", data={"csrf": token(client, here)}).text
    assert "stopping…" in after
    assert f'action="{here}/cancel"' not in after
    going.set()


def test_the_audit_trail_speaks_one_grammar(client: TestClient, service: Service) -> None:
    change_flag(service.store, "written-down", who="tester", now=service.now())
    text = client.get("/settings/audit").text
    assert ">flag set</td>" in text
    assert ">set flag</td>" not in text
    assert not any("." in word for word in DEEDS.values())


def test_a_list_of_jobs_in_a_state_that_is_none_is_refused(client: TestClient) -> None:
    answer = client.get("/jobs?state=bogus")
    assert answer.status_code == 422
    assert "there is no state &#39;bogus&#39;; choose queued, running" in answer.text
    assert client.get("/jobs?state=interrupted").status_code == 200


@pytest.mark.parametrize(("served", "chosen"), [("hotel", "hotel"), ("hotel@1.0.0", "hotel"), (None, "agent-280")])
def test_the_form_begins_with_the_set_that_the_server_serves_unless_there_is_an_own_one(
    tmp_path: Path, served: str | None, chosen: str
) -> None:
    with serving(tmp_path, golden=served) as app:
        assert f'<option value="{chosen}" selected>' in app.get("/evaluate").text
        admin = Caller("default", "tester", ("admin",))
        keep_shipped(Access(app.app.state.service, admin), "precedents")  # type: ignore[attr-defined]
        assert '<option value="precedents" selected>' in app.get("/evaluate").text
