"""What REST and the pages share says of a missing thing helps on both: no address of the one is told on the other."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import problem
from ringtrue.service import library
from ringtrue.service.auth import Access, Caller
from ringtrue.service.library import answers_of, run_opened
from ringtrue.service.routes import library as routes
from ringtrue.service.routes import server

CALLER = Caller("default", "ada", ("read", "write", "review", "admin"), None)
MISSING = {
    "a version of a set": lambda service: library.golden_named(Access(service, CALLER), "hotel@9.9.9"),
    "a baseline where there is none": lambda service: library.baseline_named(Access(service, CALLER), "main"),
    "a run": lambda service: answers_of(Access(service, CALLER), "nothing"),
    "a run that is shown": lambda service: run_opened(Access(service, CALLER), "nothing"),
    "an experiment": lambda service: routes.one_experiment(Access(service, CALLER), "exp-404"),
    "a key": lambda service: server.revoke(Access(service, CALLER), "nothing"),
    "a job": lambda service: service.jobs.get("job_nothing", "default"),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_told_without_an_address(client: TestClient, what: str) -> None:
    service: Any = client.app.state.service  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="; ") as found:
        MISSING[what](service)
    said = str(found.value)
    assert "/v1" not in said
    assert "page" not in said.lower()
    assert len(said.split("; ")[1]) > 5, "what helps is said, too"


def test_a_version_that_is_not_there_is_told_with_those_that_are(client: TestClient) -> None:
    said = problem(client.post("/v1/evaluate", json={"golden": "hotel@9.9.9"}))["message"]
    assert said == "golden set 'hotel' has no version '9.9.9'; it has 1.0.0"


@pytest.mark.parametrize("path", ["/runs/nothing", "/jobs/job_nothing", "/golden/hotel/9.9.9"])
def test_a_page_that_cannot_be_shown_names_no_address_of_rest(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert "/v1" not in answer.text
