"""Whose quality the first page tells: production's, however much is tried beside it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from made import evaluation
from rest_service import serving
from ringtrue.retrieve import canonical
from ringtrue.rollout import change_flag, record_evaluation, roll_back
from ringtrue.service import evaluating
from ringtrue.service.routes import verdicts as gating
from ringtrue.store import StoredBaseline, StoredResult, timestamp

HYBRID = str(canonical("hybrid"))
TRIED = [("bm25", "memory-bench-v1.0.0"), ("bm25", "hotel-v1.0.0"), (HYBRID, "clinical-v1.0.0")]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path, retriever="hybrid") as found:
        yield found


def store(client: TestClient) -> Any:
    return client.app.state.service.store  # type: ignore[attr-defined]


def add(client: TestClient, run_id: str, retriever: str, golden: str, ndcg: float, *, ago: int, **given: Any) -> None:
    store(client).add_result(
        StoredResult(
            run_id, "full" if "gate" not in given else "regression", timestamp(datetime.now(UTC) - timedelta(minutes=ago)), 50,
            {"nDCG@10": ndcg, "R@10": 0.9}, retriever=retriever, golden=golden,
            intervals={"nDCG@10": (ndcg - 0.01, ndcg + 0.01)}, **given,
        )
    )  # fmt: skip


def keep(client: TestClient, retriever: str, golden: str) -> None:
    content = {"retriever": retriever, "golden": {"version": golden}}
    store(client).save_baseline(
        StoredBaseline("production", "2.0.0", content, timestamp(datetime.now(UTC) - timedelta(hours=1)))
    )


def shown(client: TestClient, path: str = "/") -> str:
    return client.get(path).text


def tiles(page: str) -> dict[str, str]:
    found = re.findall(r'<div class="tile[^"]*"><dt>(.*?)</dt>\s*<dd>(.*?)</dd>', page, re.S)
    return {_plain(name): value if "<svg" in value else _plain(value) for name, value in found}


def _plain(page: str) -> str:
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", page).split()))


def health(page: str) -> dict[str, str]:
    rows = re.findall(r"<li><a href=\"[^\"]*\">([^<]+)</a>(<span class=\"says\">.*?)</li>", page, re.S)
    return {name: _plain(said) for name, said in rows}


@pytest.mark.parametrize(("retriever", "golden"), TRIED)
def test_a_try_out_changes_neither_the_headline_nor_health_nor_the_alerts(
    client: TestClient, retriever: str, golden: str
) -> None:
    """Somebody tried bm25 on another set: nDCG of the page fell from 0.903 to 0.699, and an alert said not to deploy."""
    add(client, "ours-1", HYBRID, "hotel-v2.0.0", 0.901, ago=50)
    add(client, "ours-2", HYBRID, "hotel-v2.0.0", 0.903, ago=40, gate="pass")
    keep(client, HYBRID, "hotel-v2.0.0")
    add(client, "tried", retriever, golden, 0.699, ago=5, gate="fail")
    client.app.state.service.telemetry.remember("default")  # type: ignore[attr-defined]
    page = shown(client)
    tile = tiles(page)["nDCG@10"]
    assert "0.903" in tile
    assert "hybrid on hotel-v2.0.0" in _plain(tile)
    parts = health(page)
    assert "nDCG@10 0.9030 (0.8930 to 0.9130), R@10 0.9000 of hybrid on hotel-v2.0.0 40 min ago" in parts["Evaluation"]
    assert parts["Evaluation"].endswith("OK")
    assert "pass of hybrid on hotel-v2.0.0 40 min ago" in parts["Gate"]
    assert "Firing" not in page
    assert "Needs attention: gate" not in page


def test_a_gate_of_production_that_fails_is_told_everywhere_without_more_than_is_known(client: TestClient) -> None:
    add(client, "ours-1", HYBRID, "hotel-v2.0.0", 0.903, ago=50, gate="pass")
    keep(client, HYBRID, "hotel-v2.0.0")
    add(client, "ours-2", HYBRID, "hotel-v2.0.0", 0.840, ago=5, gate="fail")
    client.app.state.service.telemetry.remember("default")  # type: ignore[attr-defined]
    page = _plain(shown(client))
    assert "Needs attention: gate and 1 firing alert" in page
    assert "The latest production run of project default failed its gate" in page
    assert "is worse than its baseline" not in page, "a floor may have failed, and the comparison be undecided"


def test_one_evaluation_has_no_line_over_time(client: TestClient) -> None:
    add(client, "ours-1", HYBRID, "hotel-v2.0.0", 0.903, ago=50)
    for _ in range(3):  # the gauges of one evaluation are written down again and again
        client.app.state.service.telemetry.remember("default")  # type: ignore[attr-defined]
    assert "<svg" not in tiles(shown(client))["nDCG@10"]
    add(client, "ours-2", HYBRID, "hotel-v2.0.0", 0.904, ago=5)
    assert "<svg" in tiles(shown(client))["nDCG@10"]


def test_a_tile_shows_no_difference_between_two_versions_of_the_set(client: TestClient) -> None:
    add(client, "first", HYBRID, "hotel-v1.0.0", 0.762, ago=50)
    add(client, "second", HYBRID, "hotel-v2.0.0", 0.721, ago=40)
    assert "0.041" not in tiles(shown(client))["nDCG@10"]
    add(client, "third", HYBRID, "hotel-v2.0.0", 0.733, ago=5)
    assert "+0.012" in tiles(shown(client))["nDCG@10"]


def test_a_run_gated_by_a_baseline_file_has_done_every_first_step(client: TestClient) -> None:
    add(client, "by-floors", HYBRID, "hotel-v2.0.0", 0.9, ago=50, gate="undecided")
    assert 'aria-current="step"' in shown(client)
    add(client, "by-a-file", HYBRID, "hotel-v2.0.0", 0.9, ago=5, gate="pass", deltas={"nDCG@10": 0.01})
    assert 'aria-current="step"' not in shown(client)


def test_without_a_baseline_the_served_search_on_its_most_evaluated_set(client: TestClient) -> None:
    for n in range(2):
        add(client, f"ours-{n}", HYBRID, "hotel-v2.0.0", 0.903, ago=50 - n)
    add(client, "other", HYBRID, "clinical-v1.0.0", 0.6, ago=5)
    assert "hybrid on hotel-v2.0.0" in _plain(tiles(shown(client))["nDCG@10"])
    # The others are a click away, under their own name.
    assert "hybrid on clinical-v1.0.0" in _plain(tiles(shown(client, "/?series=1"))["nDCG@10"])


@pytest.mark.parametrize("tried", [True, False])
@pytest.mark.parametrize("judged", [True, False])
def test_a_try_out_from_the_form_is_a_candidate_and_its_gate_is_not_productions(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, tried: bool, judged: bool
) -> None:
    def made(*_: Any, **__: Any) -> Any:
        return evaluation(name="bm25")

    for place in (evaluating, gating):
        monkeypatch.setattr(place, "evaluated", made)
    first = record_evaluation(store(client), evaluation(name="bm25"), now=datetime.now(UTC) - timedelta(hours=1))
    assert client.post("/v1/baselines", json={"run": first.run_id, "name": "production"}).status_code == 201
    page = shown(client, "/evaluate")
    assert "This is a try-out" in page
    token = re.search(r'<meta name="csrf-token" content="([^"]+)"', page)
    assert token is not None
    form = {"golden": "hotel", "retriever": "bm25", "csrf": token[1], "baseline": "production" if judged else ""}
    answer = client.post("/evaluate", data=form | ({"tried": "on"} if tried else {}), follow_redirects=False)
    assert answer.status_code == 303, answer.text
    job = ended(client, answer.headers["location"])
    row = store(client).result(job["result"]["run_id"])
    assert (row.feature_id, row.gate is not None) == ("try-out" if tried else None, judged)
    client.app.state.service.telemetry.remember("default")  # type: ignore[attr-defined]
    gauges = client.get("/metrics").text
    assert ("ringtrue_gate{" in gauges) == (judged and not tried)
    if judged:  # whoever judges a candidate again judges a candidate
        again = client.post("/v1/gate", json={"run": row.run_id, "baseline": "production"}).json()
        assert store(client).result(again["run_id"]).feature_id == row.feature_id


def ended(client: TestClient, page: str) -> Any:
    """Return a job once it is over, however it ended."""
    for _ in range(600):
        job = client.get(f"/v1{page}").json()
        if job["state"] not in ("queued", "running"):
            assert job["state"] == "done", job
            return job
        time.sleep(0.05)
    raise AssertionError(job)


def test_a_flag_in_trouble_is_told_in_a_line_of_its_own_and_the_others_are_counted(client: TestClient) -> None:
    for name in ("fine", "well", "new"):
        change_flag(store(client), name, who="ada", now=datetime.now(UTC), rollout=5)
    roll_back(store(client), "new", now=datetime.now(UTC), who="ada", why="slow")
    add(client, "ours-1", HYBRID, "hotel-v2.0.0", 0.9, ago=5)
    page = shown(client)
    (row,) = re.findall(r'<li class="wrong">(.*?)</li>', page, re.S)
    assert "new: 0\u00a0%, rollback: slow; other flags: 2 running" in unescape(row)
    assert "fine" not in row
