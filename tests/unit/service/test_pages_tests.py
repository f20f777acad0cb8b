"""Tests and shadow runs as their pages tell them: no colour before a decision, questions instead of ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from made import answers, evaluation, golden_set
from rest_service import serving
from ringtrue.golden import record_of
from ringtrue.rollout import change_flag, create_test, record_on_golden, record_scores

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
AT = "2026-11-16T11:00:00Z"
MEASURES = ("RR@10", "nDCG@10", "R@10")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path) as found:
        yield found


def store(client: TestClient) -> Any:
    return client.app.state.service.store  # type: ignore[attr-defined]


def difference(client: TestClient, feature: str) -> str:
    """Return the class of the cell with a test's mean difference."""
    (row,) = [one for one in client.get("/tests").text.split("<tr>") if f'href="/tests/{feature}"' in one]
    found = re.search(r'data-name="Mean difference"><span class="delta (\w+)">', row)
    assert found is not None, row
    return found[1]


def test_a_difference_has_no_colour_before_the_test_has_decided(client: TestClient) -> None:
    for name, better in (("open", 0.51), ("won", 0.9), ("lost", 0.1)):
        create_test(store(client), name, now=AT, sigma=0.2, min_samples=1)
        for n in range(2 if name == "open" else 80):
            record_scores(store(client), name, f"eq_{n}", control=0.5, treatment=better, now=AT)
    assert [difference(client, name) for name in ("open", "won", "lost")] == ["soft", "good", "bad"]
    listed = client.get("/tests").text
    assert re.search(r"candidate accepted after \d+ queries", listed)
    assert re.search(r"candidate rejected after \d+ queries", listed)
    assert "not decided yet: evidence" in listed
    assert "accept-" not in listed
    lead = re.search(r'<p class="lead">(.*?)</p>', client.get("/tests/won").text)
    assert lead is not None
    assert lead[1].startswith("Candidate accepted after ")


@pytest.mark.parametrize("kept", [True, False])
def test_a_question_of_a_golden_set_is_shown_in_words_and_leads_to_its_page(client: TestClient, kept: bool) -> None:
    golden = golden_set(12)
    if kept:
        assert client.post("/v1/golden", json=record_of(golden)).status_code in (200, 201)
    change_flag(store(client), "mv", who="ada", now=NOW, shadow=True)
    control = evaluation(golden, answers(golden, skill=0.3), name="bm25", measures=MEASURES)
    treatment = evaluation(golden, answers(golden, skill=0.9, seed=2), name="dense", measures=MEASURES)
    record_on_golden(store(client), "mv", control, treatment, now=NOW)
    page = unescape(client.get("/tests/mv").text)
    links = re.findall(r'<a href="(/golden/made/1.0.0/queries/q\d+)"><bdi>question number \d+</bdi></a>', page)
    assert len(links) == (12 if kept else 0)
    # Of a set that is not kept here there is only the id.
    assert "golden:2026" not in page
    assert len(re.findall(r"<a><bdi>q\d+</bdi></a>", page)) == (0 if kept else 12)
    if kept:
        assert client.get(links[0]).status_code == 200
