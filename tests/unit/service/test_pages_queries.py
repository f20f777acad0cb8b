"""The chart of the query log: a day that is not over is no fall, and it says what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rest_service import serving
from ringtrue.feedback import text_key
from ringtrue.store import QUERY_LIST, LoggedQuery, StoredJudgment, timestamp


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path) as found:
        yield found


def log(client: TestClient, **days: int) -> None:
    """Log so many searches, ``d3`` of them three days ago."""
    now = datetime.now(UTC)
    rows = [
        LoggedQuery(f"eq_{day}_{n}", "pool", "shop", timestamp(now - timedelta(days=int(day[1:]))))
        for day, count in days.items()
        for n in range(count)
    ]
    client.app.state.service.store.add_queries(rows)  # type: ignore[attr-defined]


def chart(client: TestClient, path: str = "/queries") -> dict[str, list[str]]:
    """Return the columns of the table beside the chart."""
    figure = client.get(path).text.partition('id="volume"')[2].partition("</figure>")[0]
    names = re.findall(r'<th scope="col" class="n">(.*?)</th>', figure)
    rows = [re.findall(r'<td class="n">(.*?)</td>', row) for row in figure.split("<tr>")[2:]]
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def test_the_day_that_is_not_over_is_a_dashed_line_of_its_own(client: TestClient) -> None:
    log(client, d2=30, d1=31, d0=4)
    found = chart(client)
    assert found["searches"] == ["30", "31", "—"]
    assert found["searches, this day so far"] == ["—", "31", "4"]
    assert client.get("/queries").text.count('class="thread unsure dashed"') == 1


def test_days_that_are_over_are_whole(client: TestClient) -> None:
    log(client, d3=30, d2=31)
    found = chart(client)
    assert list(found) == ["searches", "found nothing"]
    assert found["searches"] == ["30", "31"]
    assert "dashed" not in client.get("/queries").text


def test_the_chart_says_that_it_does_not_follow_the_filters(client: TestClient) -> None:
    log(client, d1=3)
    page = client.get("/queries?text=sauna").text
    assert "3 searches in 30 days. Only the time filter applies to this chart." in page


def test_the_chart_of_one_day_is_by_the_hour(client: TestClient) -> None:
    day = (datetime.now(UTC) - timedelta(days=3)).replace(hour=0, minute=0, second=0, microsecond=0)
    moments = [day + timedelta(hours=9, minutes=1), day + timedelta(hours=9, minutes=2), day + timedelta(hours=12)]
    rows = [LoggedQuery(f"eq_{n}", "pool", "shop", timestamp(at)) for n, at in enumerate(moments)]
    client.app.state.service.store.add_queries(rows)  # type: ignore[attr-defined]
    assert chart(client)["searches"] == ["2", "0", "0", "1"]
    assert "3 searches in 30 days" in client.get("/queries").text


def test_searches_of_a_plain_list_have_unknown_results_on_every_page(client: TestClient) -> None:
    now = timestamp(datetime.now(UTC))
    rows = [LoggedQuery("eq_1", "pool", QUERY_LIST, now), LoggedQuery("eq_2", "sauna", "shop", now)]
    client.app.state.service.store.add_queries(rows)  # type: ignore[attr-defined]
    both = client.get("/queries").text
    assert both.count('<span class="soft">unknown</span>') == both.count("∅") == 1
    listed, searched = (client.get(f"/queries/{name}").text for name in ("eq_1", "eq_2"))
    assert "nothing was found" in searched
    assert "nothing was found" not in listed.lower()
    assert "imported from a list of queries" in listed
    counts = {row["query_id"]: row["result_count"] for row in client.get("/v1/queries").json()["items"]}
    assert counts == {"eq_1": None, "eq_2": 0}


def test_a_search_shows_the_judgments_of_every_search_with_the_same_words(client: TestClient) -> None:
    store = client.app.state.service.store  # type: ignore[attr-defined]
    at = timestamp(datetime.now(UTC))
    store.add_queries([LoggedQuery("q0250", "Orchid, yellow leaves", "shop", at, result_ids=("watering", "repotting"))])
    words = {"key": text_key("orchid yellow leaves"), "query": "orchid yellow leaves"}
    store.add_judgments([
        StoredJudgment("q0007", "watering", 0, "manual", at, annotator="ada", metadata={**words, "one_of": True}),
        StoredJudgment("q0007", "watering", 2, "manual", at, annotator="settled", metadata=words),
        StoredJudgment("q0008", "repotting", 1, "manual", at, annotator="ada"),
    ])  # fmt: skip
    page = client.get("/queries/q0250").text
    rows = re.findall(r'<tr>.*?<bdi class="mono">(\w+)</bdi>.*?data-name="Judged">(.*?)</td>', page, re.S)
    judged = {name: re.sub(r"<[^>]+>", " ", cell).split()[-1] for name, cell in rows}
    assert judged == {"watering": "2", "repotting": "judged"}
