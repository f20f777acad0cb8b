"""The page Compare begins with the two newest runs, and refuses runs of different sets."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from made import evaluation, golden_set
from rest_service import client as client
from rest_service import problem
from ringtrue.rollout import record_evaluation
from ringtrue.service.context import Service


@pytest.fixture(scope="module")
def runs(client: TestClient) -> dict[str, str]:
    """Runs of two sets, the oldest first."""
    service: Service = client.app.state.service  # type: ignore[attr-defined]
    small, other = golden_set(20), replace(golden_set(20, seed=3), id="other")
    made = {"alone": (other, "hybrid"), "before": (small, "bm25"), "after": (small, "dense")}
    found = {}
    for name, (golden, retriever) in made.items():
        one = evaluation(golden, name=name)
        one = replace(one, setup=replace(one.setup, retriever=retriever))
        found[name] = record_evaluation(service.store, one, now=service.now()).run_id
    return found


def selected(text: str) -> dict[str, str]:
    """Return what every list of a page shows."""
    lists = re.findall(r'<select id="[^"]*" name="([^"]*)".*?</select>', text, re.DOTALL)
    whole = re.findall(r"<select .*?</select>", text, re.DOTALL)
    shown = [re.search(r'value="([^"]*)" selected', one) for one in whole]
    return {name: one[1] for name, one in zip(lists, shown, strict=True) if one}


def test_the_two_newest_runs_are_chosen_at_first_the_older_before(client: TestClient, runs: dict[str, str]) -> None:
    assert selected(client.get("/compare").text) == {"a": runs["before"], "b": runs["after"]}


def test_runs_of_different_sets_are_refused_with_the_way_to_compare_them(client: TestClient, runs: dict[str, str]) -> None:
    refused = client.get("/compare", params={"a": runs["alone"], "b": runs["after"]})
    assert refused.status_code == 422
    assert "ringtrue compare --allow-different-sets" in refused.text


def test_rest_says_which_field_allows_it(client: TestClient, runs: dict[str, str]) -> None:
    said = problem(client.post("/v1/compare", json={"a": runs["alone"], "b": runs["after"]}))["message"]
    assert said.endswith('or send "allow_different_sets": true')
    assert "--allow" not in said


def test_both_means_are_there_on_a_phone(client: TestClient, runs: dict[str, str]) -> None:
    said = client.get("/compare", params={"a": runs["before"], "b": runs["after"]}).text
    rows = re.findall(r'<span class="sub narrow">a ([0-9.]+), b ([0-9.]+)</span>', said)
    assert len(rows) >= 2


@pytest.mark.parametrize("path", ["/nowhere", "/queries/nothing"])
def test_a_page_that_is_not_there_names_no_address_of_rest(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "/v1" not in answer.text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/compare/query?a=1", "the address lacks b and q; add b=…&amp;q=… to it"),
        ("/compare/query?a=1&b=2", "the address lacks q; add q=… to it"),
    ],
)
def test_what_an_address_lacks_is_named(client: TestClient, path: str, said: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 422
    assert said in answer.text
