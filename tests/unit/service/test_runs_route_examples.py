"""Every example in the OpenAPI document of these routes runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from ringtrue.service.context import Service
from ringtrue.service.routes.verdicts import AFTER, BEFORE

MINE = {"evaluate", "compare", "gate", "runs", "golden", "baselines", "search"}
OPERATIONS = {
    "/v1/evaluate": 5,
    "/v1/compare": 2,
    "/v1/gate": 3,
    "/v1/runs": 2,
    "/v1/golden": 1,
    "/v1/golden/shipped": 1,
    "/v1/baselines": 1,
    "/v1/search": 2,
}
"""Routes that take a body → how many examples they have."""


@pytest.fixture(scope="module")
def stocked(client: TestClient) -> TestClient:
    """A server that has the runs and the baseline of the examples."""
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    for run_id, text in ((BEFORE, "fts5"), (AFTER, "bm25")):
        made = client.post("/v1/evaluate", json={"golden": "hotel", "retriever": text}).json()["run_id"]
        row, run = service.store.result(made), service.store.run(made)
        assert row is not None
        assert run is not None
        service.store.add_result(replace(row, run_id=run_id))
        service.store.save_run(replace(run, run_id=run_id))
    assert client.post("/v1/baselines", json={"run": AFTER, "name": "hotel-search"}).status_code == 201
    return client


def resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def examples(document: dict[str, Any], media: dict[str, Any]) -> Iterator[Any]:
    if "example" in media:
        yield media["example"]
    yield from (one["value"] for one in media.get("examples", {}).values())
    schema = resolved(document, media["schema"])
    if "examples" in schema:
        yield from schema["examples"]
    elif schema.get("properties") and all("examples" in part for part in schema["properties"].values()):
        yield {name: part["examples"][0] for name, part in schema["properties"].items()}


def test_every_example_runs(stocked: TestClient) -> None:
    document = stocked.get("/v1/openapi.json").json()
    ran: dict[str, int] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not MINE & set(operation.get("tags", ())) or "requestBody" not in operation:
                continue
            params = {
                one["name"]: (one.get("examples") or one["schema"].get("examples"))[0]
                for one in operation.get("parameters", ())
                if one["in"] == "query" and one.get("required")
            }
            for kind, media in operation["requestBody"]["content"].items():
                for value in examples(document, media):
                    content = value if isinstance(value, str) else json.dumps(value)
                    answer = stocked.request(method, path, params=params, content=content, headers={"content-type": kind})
                    assert 200 <= answer.status_code < 300, (path, value, answer.text)
                    ran[path] = ran.get(path, 0) + 1
    assert ran == OPERATIONS


def test_every_route_tells_its_errors_and_a_summary(client: TestClient) -> None:
    document = client.get("/v1/openapi.json").json()
    seen = 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if MINE & set(operation.get("tags", ())) or path.startswith("/v1/jobs"):
                seen += 1
                assert {"401", "403", "422"} <= set(operation["responses"]), (method, path)
                assert operation["summary"], (method, path)
                assert operation["description"], (method, path)
    assert seen >= 24
