"""``benchmarks/simulate.py``: it runs, writes its tables between marks, and fails when a limit is missed."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SMALL = ["--simulations", "60", "--resamples", "1000", "--sizes", "15"]


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the script, with its results in a folder of the test."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    for name in ("common", "simulate"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    common, simulate = importlib.import_module("common"), importlib.import_module("simulate")
    monkeypatch.setattr(common, "BENCH", tmp_path)
    return simulate


def test_a_tiny_run_writes_its_tables_between_the_marks(
    simulate: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench:simulate -->\nstale\n<!-- /bench:simulate -->\nafter\n", encoding="utf-8")
    assert simulate.main([*SMALL, "--json", "--write", str(page)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["cells"]) == 6 * 7
    assert sum(cell["assumption_holds"] for cell in report["cells"]) == 1 + 3 + 3 + 4 + 4
    text = page.read_text("utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "stale" not in text
    assert "| strongly skewed | no " in text


def limits(simulate: ModuleType, **changes: float) -> list[dict[str, Any]]:
    values = {"t": 0.05, "wilcoxon": 0.05, "sign-flip": 0.05, "interval": 0.95, "verdict": 0.05, "holm": 0.05} | changes
    cells = [
        {"shape": "gaussian", "n": 15, "test": test, "assumption_holds": True, "false_positives": value, "coverage": value}
        for test, value in values.items()
        if test != "holm"
    ]
    elsewhere = {"shape": "rare losses", "n": 15, "test": "verdict", "assumption_holds": False, "false_positives": 0.5}
    rates = {"holm": values["holm"], "benjamini-hochberg": 0.05}
    report = {"input": {"simulations": 2_000}, "cells": [*cells, elsewhere], "families": {"gaussian": rates}}
    return list(simulate.limits(report))


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, None),
        ({"t": 0.064}, None),
        ({"t": 0.066}, "false alarms of t"),
        ({"wilcoxon": 0.066}, "false alarms of wilcoxon"),
        ({"sign-flip": 0.066}, "false alarms of sign-flip"),
        ({"verdict": 0.066}, "false alarms of verdict"),
        ({"interval": 0.939}, "coverage of the interval"),
        ({"holm": 0.066}, "any false alarm in 5 measures, holm"),
    ],
)
def test_each_limit_is_missed_on_its_own(simulate: ModuleType, changes: dict[str, float], missed: str | None) -> None:
    found = [limit["name"] for limit in limits(simulate, **changes) if not limit["met"]]
    assert found == ([] if missed is None else [missed])


def test_a_missed_limit_ends_with_1_only_when_checked(simulate: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    missed = [{"name": "x", "wanted": "1", "found": "2", "met": False}]
    monkeypatch.setattr(simulate, "run", lambda options: {"limits": missed})
    monkeypatch.setattr(simulate, "render", lambda report: "")
    assert simulate.main([]) == 0
    assert simulate.main(["--check"]) == 1


def test_the_committed_tables_are_whole_and_every_limit_in_them_is_met() -> None:
    page = (ROOT / "docs" / "statistics.md").read_text("utf-8")
    tables = page.split("<!-- bench:simulate -->")[1].split("<!-- /bench:simulate -->")[0]
    assert tables.startswith("\n`make simulate`")
    assert "missed" not in tables
    assert tables.count("| met |") == 7
    assert tables.count("| zero-inflated ") == 4 + 4 + 1
