"""``ringtrue eval`` and ``gate`` with a store, and ``ringtrue health`` after them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from ringtrue.store import Store

Run = Callable[..., Any]
SEARCH = """
ANSWERS = {"swim": ["pool", "spa"], "eat": ["bar", "pool"], "drink": ["bar"], "sweat": ["spa"]}


def find(text, k):
    return ANSWERS[text][:k]
"""
SETTINGS = """
[eval]
golden = "golden.yaml"
python = "search.py:find"
allow = ["depth"]
no_report = true

[gate]
minimum_queries = 4
[gate.floors]
"R@5" = 0.5
"""
DEFAULT = Path(".ringtrue/store.sqlite")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a search, a golden set and settings; no store."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("RINGTRUE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    rows = "".join(
        f"  - {{query_id: {text}, query_text: {text}, relevant_docs: [{{doc_id: {doc}, grade: 3, source: manual}}]}}\n"
        for text, doc in {"swim": "pool", "eat": "bar", "drink": "bar", "sweat": "spa"}.items()
    )
    Path("golden.yaml").write_text(f"id: hotel\nversion: 1.0.0\nqueries:\n{rows}")
    Path("ringtrue.toml").write_text(SETTINGS)
    Path("search.py").write_text(SEARCH)
    return tmp_path


def results(place: str | Path = DEFAULT, **options: Any) -> list[Any]:
    with Store.open(place) as store:
        return store.results(**options)


def test_the_first_eval_makes_the_store_so_that_the_dashboard_has_its_run(home: Path, ringtrue: Run) -> None:
    assert ringtrue("eval", "--no-store", "--json").json["stored"] is None
    assert ringtrue("gate", "--no-baseline", "--json").json["stored"] is None
    assert not DEFAULT.exists()
    shown = ringtrue("eval", "--name", "first")
    (row,) = results()
    assert (shown.code, shown.err.count("store")) == (0, 0)
    assert f"stored: {row.run_id}" in shown.out


def test_the_command_that_measures_again_in_a_report_runs(home: Path, ringtrue: Run) -> None:
    shown = ringtrue("eval", "--html", "report.html")
    assert shown.code == 0
    (command,) = re.findall(r"ringtrue eval (--golden [^<]+)", unescape(Path("report.html").read_text("utf-8")))
    Path("ringtrue.toml").unlink()
    assert "--golden golden.yaml --python search.py:find" in command
    again = ringtrue("eval", *shlex.split(command))
    assert again.code == 0, again.err


def test_the_baseline_is_not_taken_silently_from_a_run_on_another_golden_set(home: Path, ringtrue: Run) -> None:
    Path("trial.yaml").write_text(Path("golden.yaml").read_text())
    assert ringtrue("eval", "--golden", "trial.yaml", "--no-store").code == 0
    refused = ringtrue("baseline", "update")
    assert (refused.code, Path("ringtrue-baseline.json").exists()) == (2, False)
    assert "measured trial.yaml, but [eval] golden in" in refused.err
    (run,) = Path(".ringtrue/runs").iterdir()
    assert ringtrue("baseline", "update", "--run", str(run)).code == 0
    assert ringtrue("eval", "--no-store").code == 0
    assert ringtrue("baseline", "update").code == 0


def test_a_named_store_is_made_and_filled(home: Path, ringtrue: Run) -> None:
    found = ringtrue("eval", "--store", "mine.sqlite", "--json").json
    (row,) = results("mine.sqlite")
    assert (row.run_id, row.run_type, row.gate, row.golden) == (
        found["stored"],
        "full",
        None,
        found["setup"]["golden"]["version"],
    )
    assert row.metrics["nDCG@10"] == pytest.approx(found["metrics"]["nDCG@10"])
    assert row.intervals["nDCG@10"] == tuple(found["intervals"]["nDCG@10"])
    assert set(row.per_query) == {"swim", "eat", "drink", "sweat"}
    gated = ringtrue("gate", "--no-baseline", "--store", "mine.sqlite", "--project", "shop")
    (row,) = results("mine.sqlite", project="shop")
    assert (gated.code, row.gate, row.run_type) == (0, "pass", "regression")
    assert f"stored: {row.run_id}" in gated.out
    assert not DEFAULT.exists()


@pytest.mark.parametrize("way", ["default", "environment", "file"])
def test_a_store_that_is_there_or_configured_is_used(
    home: Path, ringtrue: Run, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    place = DEFAULT if way == "default" else Path("other/log.sqlite")
    if way == "default":
        Store.open(DEFAULT).close()
    elif way == "environment":
        monkeypatch.setenv("RINGTRUE_STORE", str(place))
    else:
        Path("ringtrue.toml").write_text(f"{SETTINGS}\n[store]\nurl = '{place}'\n")
    assert ringtrue("eval", "--no-store", "--json").json["stored"] is None
    stored = ringtrue("eval", "--feature", "new", "--json").json["stored"]
    (row,) = results(place)
    assert (row.run_id, row.feature_id) == (stored, "new")


def test_health_shows_the_last_evaluation_and_the_gate_instead_of_unknown(home: Path, ringtrue: Run) -> None:
    Store.open(DEFAULT).close()
    before = ringtrue("health", "--json").json["parts"]
    assert (before["evaluation"]["state"], before["gate"]["state"]) == ("unknown", "unknown")
    ringtrue("eval", "--out", "runs/first")
    assert ringtrue("baseline", "update", "--run", "runs/first").code == 0
    assert ringtrue("gate").code == 0
    after = ringtrue("health", "--json").json["parts"]
    assert (after["evaluation"]["state"], after["gate"]["state"], after["gate"]["verdict"]) == ("ok", "ok", "pass")
    assert " to 1.0000) of find on " in after["evaluation"]["says"], "with its interval"
    Path("search.py").write_text(SEARCH.replace('["pool", "spa"]', '["spa"]').replace('["bar"]', '["lift"]'))
    assert ringtrue("gate").code == 1
    newest = results()[0]
    assert (newest.gate, newest.control_run_id, newest.deltas["R@5"] < 0, newest.p_value is not None) == (
        "fail",
        "baseline 1.0.0",
        True,
        True,
    )
    worse = ringtrue("health", "--json").json["parts"]
    assert (worse["gate"]["state"], worse["gate"]["run_id"]) == ("wrong", newest.run_id)


def test_a_store_that_cannot_be_written_costs_no_verdict_unless_it_was_named(
    home: Path, ringtrue: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("no-store.sqlite").write_text("this is a text")
    monkeypatch.setenv("RINGTRUE_STORE", "no-store.sqlite")
    gated = ringtrue("gate", "--no-baseline", "--json")
    assert (gated.code, gated.json["verdict"], gated.json["stored"]) == (0, "pass", None)
    assert "note: the result was not added to the store" in gated.err
    named = ringtrue("eval", "--store", "no-store.sqlite")
    assert (named.code, named.out) == (2, "")  # told before anything is asked
    assert "is not an SQLite database" in named.err


@pytest.mark.parametrize("command", [("eval",), ("gate", "--no-baseline")])
def test_a_result_is_stored_although_its_reader_went_away(home: Path, command: tuple[str, ...]) -> None:
    """``ringtrue gate | head -1`` closes the pipe while the rest is printed."""
    program = Path(sys.executable).parent / "ringtrue"
    with subprocess.Popen([program, *command, "--store", "there.sqlite"], stdout=subprocess.PIPE) as done:
        assert done.stdout is not None
        done.stdout.close()
    assert len(results("there.sqlite")) == 1
