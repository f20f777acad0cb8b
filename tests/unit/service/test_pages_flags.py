"""The pages of flags say what is true of a paused one, let it go on, and make no flag twice."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from ringtrue.rollout import change_flag
from ringtrue.service.context import Service


def csrf(client: TestClient) -> str:
    found = re.search(r'<meta name="csrf-token" content="([^"]+)"', client.get("/flags").text)
    assert found is not None
    return found[1]


def send(client: TestClient, path: str, **form: str) -> Any:
    return client.post(path, data={"csrf": csrf(client), **form}, follow_redirects=False)


def paused(client: TestClient, name: str, *, rollout: float) -> None:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    change_flag(service.store, name, who="tester", now=service.now(), rollout=rollout, state="paused")


def test_a_paused_flag_with_a_share_is_said_to_be_served_still(client: TestClient) -> None:
    paused(client, "short-answers", rollout=5)
    said = client.get("/flags/short-answers").text
    assert "It is paused: held at 5 %, still served." in said
    assert "ringtrue flag set" not in said, "what the page can do is not sent to the command line"
    paused(client, "long-answers", rollout=0)
    assert "It is paused at 0 %." in client.get("/flags/long-answers").text


def test_a_flag_tells_who_moved_it_last_and_not_who_changed_something_else(client: TestClient) -> None:
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    change_flag(service.store, "stems", who="ada", now=service.now(), rollout=10)
    change_flag(service.store, "stems", who="ben", now=service.now(), why="shadow on garden", metadata={"candidate": "bm25"})
    said = client.get("/flags/stems").text
    assert re.search(r"Last moved .* by <bdi>ada</bdi></p>", said)
    assert "10 % → 10 %" not in said.replace("\N{NO-BREAK SPACE}", " ")


def test_deciding_about_a_paused_flag_says_that_it_is_paused(client: TestClient) -> None:
    paused(client, "held-back", rollout=5)
    answer = send(client, "/flags/held-back/step")
    said = client.get(answer.headers["location"]).text
    assert "Nothing moved: it is paused" in said
    assert "the evidence does not allow it yet" not in said


def test_a_paused_flag_is_resumed_with_a_reason_and_it_is_written_down(client: TestClient) -> None:
    paused(client, "mended", rollout=5)
    assert 'action="/flags/mended/resume"' in client.get("/flags/mended").text
    assert send(client, "/flags/mended/resume", why="  ").status_code == 422
    assert send(client, "/flags/mended/resume", why="the index was mended").status_code == 303
    said = client.get("/flags/mended").text
    assert "It waits at 5 %" in said
    assert "resumed: the index was mended" in said
    assert 'action="/flags/mended/resume"' not in said
    assert send(client, "/flags/mended/resume", why="again").status_code == 409


def test_a_flag_that_is_there_is_not_made_again(client: TestClient) -> None:
    assert send(client, "/flags", name="only-once", why="first").status_code == 303
    again = send(client, "/flags", name="only-once", why="second")
    assert again.status_code == 409
    assert "flag &#39;only-once&#39; already exists" in again.text
    assert 'value="second"' in again.text, "what was written stays in the form"


def test_a_flag_that_only_the_environment_sets_is_set_on_its_page(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/flags/graph-scoring").status_code == 404
    monkeypatch.setenv("RINGTRUE_FLAG_GRAPH_SCORING", "25")
    assert "environment sets this flag. Set it here" in client.get("/flags/graph-scoring").text
    assert send(client, "/flags", name="graph-scoring").status_code == 303
    assert "It waits at 0 %" in client.get("/flags/graph-scoring").text
