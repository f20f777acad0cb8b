"""A sender who leaves before the request is whole is not a fault of the server's: no traceback, no 500 in the metrics."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rest_service import client as client


def sending(path: str) -> dict[str, Any]:
    """The scope of a request with 40 bytes to come."""
    headers = [(b"host", b"127.0.0.1:8080"), (b"content-type", b"application/json"), (b"content-length", b"40")]
    return {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http", "path": path,
        "raw_path": path.encode(), "root_path": "", "query_string": b"", "headers": headers,
        "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", 8080), "state": {},
    }  # fmt: skip


def leave(app: FastAPI, path: str) -> list[Any]:
    """Send half of a body and go; returns what the server sent."""
    half = [{"type": "http.request", "body": b'{"query": "quiet r', "more_body": True}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return half.pop(0) if half else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(sending(path), receive, send))
    return sent


@pytest.mark.parametrize("path", ["/v1/queries", "/v1/feedback", "/v1/evaluate", "/v1/golden"])
def test_who_leaves_early_breaks_nothing(client: TestClient, path: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ringtrue.service")
    assert isinstance(client.app, FastAPI)
    assert leave(client.app, path) == []
    told = [record for record in caplog.records if record.name == "ringtrue.service"]
    assert [record.levelname for record in told] == ["INFO"], [record.getMessage() for record in told]
    assert f"POST {path}" in told[0].getMessage()
    counted = [line for line in client.get("/metrics").text.splitlines() if f'route="{path}"' in line and "_count" in line]
    assert [line for line in counted if 'status="499"' in line], counted
    assert not [line for line in counted if 'status="500"' in line], counted


def test_a_request_that_outlasts_the_end_of_the_server_is_told_to_try_again(client: TestClient) -> None:
    sent: list[Any] = []
    waiting = asyncio.Event()

    async def receive() -> Any:
        waiting.set()
        await asyncio.Event().wait()  # the rest of the body never comes

    async def send(message: Any) -> None:
        sent.append(message)

    async def stopped() -> None:
        request = asyncio.create_task(client.app(sending("/v1/queries"), receive, send))
        await waiting.wait()
        request.cancel()  # as Uvicorn does when its time to stop is over
        await request

    asyncio.run(stopped())
    start, body = sent[0], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))
    assert start["status"] == 503
    assert dict(start["headers"])[b"retry-after"] == b"5"
    assert body["error"]["code"] == "stopping"
