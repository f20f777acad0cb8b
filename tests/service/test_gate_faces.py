"""Every way to ask for a gate gives the same verdict: library, commands, REST, pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from ringtrue.run import evaluate, open_run, save
from ringtrue.verdict import Policy, gate

CASES = {
    "undecided": {"floors": {"RR": 0.7}},
    "undecided in mode statistical": {"floors": {"RR": 0.7}, "mode": "statistical"},
    "fail": {"floors": {"RR": 0.99}},
    "pass": {"floors": {"RR": 0.7}, "require_baseline": False},
    "fail alone": {"floors": {"RR": 0.99}, "require_baseline": False},
}
TEST = """
import pytest

@pytest.mark.ringtrue(golden="hotel", **{policy!r})
def test_search(ringtrue_eval):
    ringtrue_eval("bm25")
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run folder of BM25 on the hotel set, in a folder of its own without a baseline."""
    monkeypatch.chdir(tmp_path)
    save(evaluate("bm25", "hotel"), tmp_path / "run")
    return Path("run")


def settings(policy: dict[str, Any]) -> str:
    plain = "".join(f"{name} = {json.dumps(value)}\n" for name, value in policy.items() if name != "floors")
    return f"[gate]\n{plain}[gate.floors]\nRR = {policy['floors']['RR']}\n"


@pytest.mark.parametrize("case", CASES)
def test_without_a_baseline_all_faces_decide_alike(
    case: str, run: Path, ringtrue: Callable[..., Any], client: TestClient
) -> None:
    policy, word = CASES[case], case.split()[0]
    code = {"pass": 0, "fail": 1, "undecided": 3}[word]
    found = gate(open_run(run), Policy(**policy))
    assert (found.word, found.exit_code) == (word, code)

    request = {"evaluate": {"golden": "hotel", "retriever": "bm25"}, "baseline": None, "policy": policy}
    answer = client.post("/v1/gate", json=request).json()
    assert (answer["verdict"], answer["exit_code"]) == (word, code)

    Path("ringtrue.toml").write_text(settings(policy))
    for command in (("gate", "--run", run), ("ci", "--run", run, "--no-comment")):
        done = ringtrue(*command, "--json")
        assert (done.json["verdict"], done.json["exit_code"], done.code) == (word, code, code), command
    assert ringtrue("report", run, "--json", "--out", "report.md").json["verdict"] == word

    Path("ringtrue.toml").unlink()
    Path("test_search.py").write_text(TEST.format(policy=policy))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "ringtrue.testing.pytest_plugin"],
        capture_output=True, text=True, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert done.returncode == (0 if word == "pass" else 1), done.stdout
    assert ("could not decide" in done.stdout) == (word == "undecided"), done.stdout
    if word == "undecided":
        messages = [check.message for check in found.checks if check.status == "undecided"]
        assert messages
        assert all("no baseline, so R@5, R@10, P@5, RR, nDCG@5" in message for message in messages)
        assert "no baseline, so R@5" in done.stdout
