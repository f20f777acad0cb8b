"""A golden set is called like its file where it says no name, and comes out again as it went in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from rest_service import serving
from ringtrue.formats import yaml_text
from ringtrue.golden import content_hash, load, read_upload, save, version_name
from ringtrue.golden.formats import read

JUDGED = {"when can I swim": {"pool": 2}, "late drinks": {"bar": 1}}
DATASET = {
    "id": "front-desk", "version": "1.0.0",
    "entities": [{"entity_id": "pool", "content": "The pool is open from seven to ten."}],
    "queries": [{"query_id": "q1", "query_text": "when can I swim", "query_type": "factual",
                 "expected_results": {"relevant_entities": ["pool"], "relevance_labels": {"pool": 3}}}],
}  # fmt: skip


def send(client: TestClient, file: str, content: bytes) -> Any:
    token = re.search(r'<meta name="csrf-token" content="([^"]+)"', client.get("/golden").text)
    assert token is not None
    return client.post("/golden", data={"csrf": token[1]}, files={"file": (file, content)}, follow_redirects=False)


@pytest.mark.parametrize(
    ("file", "name"), [("my-set.json", "my-set"), ("C:\\sets\\desk 100%.json", "desk%20100-"), ("upload.json", "upload")]
)
def test_a_set_without_a_name_is_called_like_its_file(client: TestClient, file: str, name: str) -> None:
    answer = send(client, file, json.dumps(JUDGED).encode())
    assert answer.status_code == 303, re.findall('data-problem="([^"]*)"', answer.text)
    assert answer.headers["location"] == f"/golden/{name}/0.0.0"


@pytest.mark.parametrize("content", [b'{"name": "no set"}', b'[{"a": 1}]'])
def test_a_file_that_is_no_set_is_told_what_the_page_takes(client: TestClient, content: bytes) -> None:
    answer = send(client, "notes.json", content)
    assert answer.status_code == 422
    (said,) = re.findall('data-problem="([^"]*)"', answer.text)
    assert said.startswith("notes.json: is not recognised as a golden set")
    assert "relevant_docs" in said
    for other in ("csv", "parquet", "trec", "openinference"):
        assert other not in said.lower(), "what is refused is not offered"


@pytest.mark.parametrize("file", ["garden.yaml", "garden.csv"])
def test_a_refused_file_converted_as_the_page_says_is_taken_with_its_documents(
    client: TestClient, tmp_path: Path, file: str
) -> None:
    save(load("hotel"), tmp_path / file)
    (said,) = re.findall('data-problem="([^"]*)"', send(client, file, (tmp_path / file).read_bytes()).text)
    assert "ringtrue golden convert SET gold.json" in said
    save(read(tmp_path / file), tmp_path / "gold.json")
    assert send(client, "gold.json", (tmp_path / "gold.json").read_bytes()).status_code == 303


def test_a_version_is_downloaded_and_is_the_same_when_it_comes_back(client: TestClient) -> None:
    assert 'href="/golden/hotel/1.0.0/download"' in client.get("/golden/hotel/1.0.0").text
    answer = client.get("/golden/hotel/1.0.0/download")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''hotel-1.0.0.json"
    found, here = read_upload(answer.content, kind="json", name="hotel.json"), load("hotel")
    assert (version_name(found), content_hash(found)) == (version_name(here), content_hash(here))
    assert found.documents == here.documents


def test_a_golden_data_set_in_yaml_is_read_as_the_same_in_json(tmp_path: Path) -> None:
    written = yaml_text(DATASET).encode()
    (tmp_path / "desk.yaml").write_bytes(written)
    (tmp_path / "desk.json").write_text(json.dumps(DATASET))
    wanted = load(tmp_path / "desk.json")
    assert [judgment.grade for judgment in wanted.judgments] == [3]
    assert load(tmp_path / "desk.yaml") == wanted
    assert read_upload(written, kind="yaml", name="desk.yaml") == wanted


def test_the_set_that_the_guide_shows_is_evaluated_as_it_stands(client: TestClient) -> None:
    guide = (Path(__file__).parents[3] / "docs" / "service.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yaml\n(id: my-set\n.*?)```", guide, re.DOTALL)
    answer = client.post("/v1/evaluate", content=shown, headers={"content-type": "application/yaml"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["queries"] == 1
    assert client.post("/v1/golden", content=shown, headers={"content-type": "application/yaml"}).status_code == 201
    whole = client.get("/v1/golden/my-set?content=true").json()["content"]
    assert whole["queries"][0]["query_text"] == "may our dog come along"


def test_the_form_offers_the_golden_set_of_the_server_first_and_evaluates_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("golden").mkdir()
    Path("golden/desk.json").write_text(json.dumps(DATASET))
    Path("golden/judged.json").write_text(json.dumps(JUDGED))
    with serving(tmp_path, golden="golden/desk.json") as client:
        form = client.get("/evaluate").text
        assert re.findall(r'<option value="([^"]*)" selected>(desk[^<]*)', form) == [("", "desk (the server&#39;s)")]
        token = re.search(r'<meta name="csrf-token" content="([^"]+)"', form)
        assert token is not None
        started = client.post("/evaluate", data={"csrf": token[1], "golden": "", "retriever": "bm25"}, follow_redirects=False)
        assert started.status_code == 303
        assert "front-desk@1.0.0" in client.get(started.headers["location"].partition("?")[0]).text
    with serving(tmp_path, golden="golden/judged.json") as client:
        assert client.app.state.service.searches.passages(["pool"]) == {}  # type: ignore[attr-defined]
