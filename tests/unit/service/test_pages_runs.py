"""What the page of a run says of its verdict, of baselines and of times that are not its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from made import evaluation, golden_set
from rest_service import serving
from ringtrue.golden import record_of
from ringtrue.rollout import record_evaluation
from ringtrue.run import Evaluation
from ringtrue.service import context
from ringtrue.verdict import Policy, baseline_of, gate

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path) as found:
        yield found


def store(client: TestClient) -> Any:
    service: context.Service = client.app.state.service  # type: ignore[attr-defined]
    return service.store


def recorded(client: TestClient, found: Evaluation | None = None, *, minutes: int = 0, **given: Any) -> str:
    row = record_evaluation(store(client), found or evaluation(), now=NOW + timedelta(minutes=minutes), **given)
    return row.run_id


def keep(client: TestClient, run_id: str, name: str = "production") -> None:
    answer = client.post("/v1/baselines", json={"run": run_id, "name": name})
    assert answer.status_code == 201, answer.text


def text_of(client: TestClient, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return " ".join(re.sub(r"<[^>]+>", " ", answer.text).split())


def headline(client: TestClient, path: str) -> str:
    found = re.search(r'<h2 id="verdict">([^<]+)</h2>', client.get(path).text)
    assert found is not None
    return found[1]


def test_a_run_that_was_judged_shows_the_verdict_that_is_kept_without_being_asked(client: TestClient) -> None:
    first = recorded(client)
    keep(client, first)
    found = client.post("/v1/gate", json={"run": first, "baseline": "production"}).json()
    path = f"/runs/{found['run_id']}"
    assert headline(client, path) == found["verdict"].upper()
    text = text_of(client, path)
    assert "Not judged" not in text
    assert "Preview by" not in text
    assert "Checks of the gate" in text
    # The same baseline is no other verdict.
    assert "Preview by" not in text_of(client, f"{path}?baseline=production")


def test_a_run_that_was_judged_elsewhere_says_so_although_its_checks_are_not_here(client: TestClient) -> None:
    verdict = gate(evaluation(), Policy(), baseline=baseline_of(evaluation(), version="2.0.0"))
    run_id = recorded(client, verdict=verdict)
    assert headline(client, f"/runs/{run_id}") == verdict.word.upper()
    text = text_of(client, f"/runs/{run_id}")
    assert "The gate said so when the run was made by baseline 2.0.0" in text
    assert "Not judged" not in text


def test_a_preview_is_called_one_and_records_nothing(client: TestClient) -> None:
    first = recorded(client)
    keep(client, first)
    second = recorded(client, minutes=1)
    text = text_of(client, f"/runs/{second}?baseline=production")
    assert "Preview by baseline production 1.0.0 : nothing is recorded, and the run stays not judged" in text
    assert headline(client, f"/runs/{second}?baseline=production") in ("PASS", "FAIL", "UNDECIDED")
    assert store(client).result(second).gate is None
    assert len(store(client).results()) == 2
    assert headline(client, f"/runs/{second}") == "Measured"


def test_only_the_run_that_was_kept_is_the_baseline(client: TestClient) -> None:
    first, second = recorded(client), recorded(client, minutes=1)
    keep(client, first)
    assert "This run is baseline production 1.0.0" in text_of(client, f"/runs/{first}")
    text = text_of(client, f"/runs/{second}")
    assert "This run is baseline" not in text


def test_the_page_remembers_which_run_it_kept(client: TestClient) -> None:
    first, second = recorded(client), recorded(client, minutes=1)
    token = re.search(r'<meta name="csrf-token" content="([^"]+)"', client.get(f"/runs/{first}").text)
    assert token is not None
    form = {"name": "mine", "csrf": token[1]}
    assert client.post(f"/runs/{second}/baseline", data=form, follow_redirects=False).status_code == 303
    assert "This run is baseline mine 1.0.0" in text_of(client, f"/runs/{second}")
    assert "This run is baseline" not in text_of(client, f"/runs/{first}")


def test_times_of_answers_from_the_cache_are_not_told_as_this_runs(client: TestClient) -> None:
    fresh, reused = recorded(client), recorded(client, replace(evaluation(), cached=True), minutes=1)
    assert store(client).result(fresh).latency_ms["p95"] > 0
    assert store(client).result(reused).latency_ms == {}
    told = "Not measured in this run: its answers are from the cache"
    assert told in text_of(client, f"/runs/{reused}")
    assert told not in text_of(client, f"/runs/{fresh}")
    assert text_of(client, "/runs").count("not measured") == 1
    client.app.state.service.telemetry.remember("default")  # type: ignore[attr-defined]
    metrics = client.get("/metrics").text
    assert "ringtrue_retrieval_mrr{" in metrics
    assert "ringtrue_evaluation_latency_seconds{" not in metrics


def test_a_set_of_which_people_confirmed_a_part_says_how_much(client: TestClient) -> None:
    golden = golden_set()
    some = tuple(replace(one, source="manual" if n < 19 else "synthetic") for n, one in enumerate(golden.judgments))
    golden = replace(golden, judgments=some)
    assert client.post("/v1/golden", json=record_of(golden)).status_code in (200, 201)
    partly = recorded(client, evaluation(golden))
    assert f"19 of {len(some)} judgments confirmed by a person" in text_of(client, f"/runs/{partly}")
    made_before = evaluation(golden)
    origin = replace(made_before.setup.golden, judgments=None, confirmed=None)
    before = recorded(client, replace(made_before, setup=replace(made_before.setup, golden=origin)), minutes=1)
    assert "confirmed by a person" not in text_of(client, f"/runs/{before}"), "a run that does not say it claims nothing"


def test_lists_of_runs_call_a_run_by_its_name_and_say_its_search(client: TestClient) -> None:
    first = evaluation()
    run_id = recorded(client, replace(first, name="base"))
    other = recorded(client, replace(first, name="wider window"), minutes=1)
    search = first.setup.retriever
    for path in ("/", "/runs"):
        text = text_of(client, path)
        assert f"base {search} on" in text, path
        assert f"wider window {search} on" in text, path
    assert f"wider window on {first.setup.golden.version}: {search}" in text_of(client, f"/runs/{run_id}"), "in 'Compare with'"
    assert f"base on {first.setup.golden.version}: {search}" in text_of(client, "/compare")
    assert {item["run_id"]: item["name"] for item in client.get("/v1/runs").json()["items"]} == {
        run_id: "base",
        other: "wider window",
    }
    assert client.get(f"/v1/runs/{run_id}").json()["run"]["name"] == "base"


def test_a_run_without_a_name_shows_its_search_once(client: TestClient) -> None:
    first = evaluation()
    recorded(client, replace(first, name=first.setup.retriever))
    assert f"{first.setup.retriever} on" not in text_of(client, "/runs")
