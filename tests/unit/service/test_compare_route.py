"""``/v1/compare`` says what the library says, and refuses what cannot be compared."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import problem
from ringtrue.golden import load, record_of
from ringtrue.run import evaluate
from ringtrue.verdict import compare

MEASURES = ["nDCG@10", "R@10"]


@pytest.fixture(scope="module")
def runs(client: TestClient) -> dict[str, str]:
    found = {
        text: client.post("/v1/evaluate", json={"golden": "hotel", "retriever": text, "measures": MEASURES}).json()["run_id"]
        for text in ("bm25", "fts5(title=0, tags=0)")
    }
    other = record_of(load("hotel")) | {"id": "other", "relevance_threshold": 3}
    client.post("/v1/golden", content=json.dumps(other), headers={"content-type": "application/json"})
    return found | {"other": client.post("/v1/evaluate", json={"golden": "other", "measures": MEASURES}).json()["run_id"]}


def test_a_comparison_says_what_the_library_says(client: TestClient, runs: dict[str, str]) -> None:
    a, b = list(runs.values())[:2]
    found = client.post("/v1/compare", json={"a": a, "b": b}).json()
    own = compare(*(evaluate(text, "hotel", measures=MEASURES, cache=False) for text in list(runs)[:2]))
    assert (found["verdict"], found["primary"]) == (own.verdict, "ndcg_at_10")
    for name, key in (("nDCG@10", "ndcg_at_10"), ("R@10", "recall_at_10")):
        one, mine = found["measures"][key], own.measures[name]
        assert [one[part] for part in ("a", "b", "diff", "p", "p_adjusted")] == pytest.approx(
            [mine.a, mine.b, mine.diff, mine.p, mine.p_adjusted]
        )
        assert one["ci"] == pytest.approx([mine.low, mine.high])
        assert [one["wins"], one["ties"], one["losses"]] == [mine.wins, mine.ties, mine.losses]
        assert one["wins"] + one["ties"] + one["losses"] == 72
    assert found["per_query"] == pytest.approx(dict(own.measures["nDCG@10"].deltas))
    assert math.isclose(sum(found["per_query"].values()) / 72, found["measures"]["ndcg_at_10"]["diff"], abs_tol=1e-9)


def test_a_run_beside_itself_is_no_better(client: TestClient, runs: dict[str, str]) -> None:
    found = client.post("/v1/compare", json={"a": runs["bm25"], "b": runs["bm25"]}).json()
    assert found["verdict"] == "not enough evidence"
    assert found["measures"]["ndcg_at_10"]["ties"] == 72


def test_measures_primary_correction_and_slices(client: TestClient, runs: dict[str, str]) -> None:
    a, b = list(runs.values())[:2]
    body = {"a": a, "b": b, "measures": ["P@5"], "primary": "RR", "correction": "none", "alpha": 0.1, "by": ["query_type"]}
    found = client.post("/v1/compare", json=body).json()
    assert set(found["measures"]) == {"precision_at_5", "mrr"}
    assert found["primary"] == "mrr"
    assert found["measures"]["mrr"]["p"] == found["measures"]["mrr"]["p_adjusted"]
    assert set(found["slices"]["query_type"]) >= {"factual"}


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"a": "nothing"}, 404, "there is no run 'nothing'"),
        ({"alpha": 0}, 422, "body.alpha"),
        ({"correction": "bonferroni"}, 422, "body.correction"),
        ({"measures": ["nothing@3"]}, 422, "there is no measure"),
        ({"by": ["colour"]}, 422, "no query has the field 'colour'"),
        ({"more": 1}, 422, "body.more"),
    ],
)
def test_what_cannot_be_compared(client: TestClient, runs: dict[str, str], change: Any, status: int, says: str) -> None:
    answer = client.post("/v1/compare", json={"a": runs["bm25"], "b": runs["fts5(title=0, tags=0)"], **change})
    assert answer.status_code == status, answer.text
    assert says in problem(answer)["message"]


def test_runs_of_different_sets_are_not_compared_unless_allowed(client: TestClient, runs: dict[str, str]) -> None:
    answer = client.post("/v1/compare", json={"a": runs["bm25"], "b": runs["other"]})
    assert answer.status_code == 422
    assert problem(answer)["code"] == "cannot_decide"
    allowed = client.post("/v1/compare", json={"a": runs["bm25"], "b": runs["other"], "allow_different_sets": True})
    assert any("different golden sets" in note for note in allowed.json()["notes"])
