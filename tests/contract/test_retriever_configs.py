"""A retriever written as a configuration, ``{"fusion_method": …}``, on the command line and in ringtrue.toml."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CONFIG = {"fusion_method": "weighted", "weights": {"bm25": 0.75, "rm3": 0.25}}
EXPRESSION = "weighted(bm25, rm3, w=[0.75, 0.25])"


@pytest.fixture(autouse=True)
def inn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    topics = ("indoor pool", "late checkout", "dogs in rooms", "hot water", "parking garage", "breakfast hours")
    entities = [{"entity_id": n, "content": f"All about {topic} at our inn."} for n, topic in enumerate(topics)]
    queries = [
        {"query_id": n, "query_text": topic, "expected_results": {"relevance_labels": {str(n): 3}}}
        for n, topic in enumerate(topics)
    ]
    Path("inn.json").write_text(json.dumps({"entities": entities, "queries": queries}))


def measured(found) -> str:
    assert found.code == 0, found.err
    return found.out


def test_a_configuration_is_read_on_the_command_line(ringtrue) -> None:
    said = ("--golden", "inn.json", "--no-store", "--no-report", "--allow", "depth")
    assert EXPRESSION in measured(ringtrue("eval", "--retriever", json.dumps(CONFIG), *said))


@pytest.mark.parametrize(
    "text",
    [
        '[eval]\nretriever = {fusion_method = "weighted", weights = {bm25 = 0.75, rm3 = 0.25}}\n',
        '[eval.retriever]\nfusion_method = "weighted"\nweights = {bm25 = 0.75, rm3 = 0.25}\n',
    ],
    ids=["inline", "table"],
)
def test_a_configuration_is_read_from_ringtrue_toml(ringtrue, text: str) -> None:
    Path("ringtrue.toml").write_text(text)
    assert EXPRESSION in measured(ringtrue("eval", "--golden", "inn.json", "--no-store", "--no-report", "--allow", "depth"))


def test_a_table_for_the_gate_is_the_retriever_and_not_an_unknown_table(ringtrue) -> None:
    Path("ringtrue.toml").write_text('[gate.retriever]\nfusion_method = "max"\n')
    refused = ringtrue("gate", "--golden", "inn.json")
    assert (refused.code, "fusion_method 'max' cannot be read" in refused.err) == (2, True)


def test_a_configuration_that_is_no_json_is_refused_in_words(ringtrue) -> None:
    refused = ringtrue("eval", "--golden", "inn.json", "--retriever", "{fusion_method: rrf}")
    assert (refused.code, "is not valid JSON" in refused.err) == (2, True)
