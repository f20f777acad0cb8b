"""``benchmarks/sequential.py`` and the table it writes into docs/sequential.md."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ringtrue.stats import SequentialPlan, allowed_share
from ringtrue.stats.sequential_simulation import METHODS, SEQUENTIAL_SHAPES

ROOT = Path(__file__).parents[3]


@pytest.fixture
def sequential(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the script, with its results in a folder of the test."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    for name in ("common", "sequential", "sequential_rates"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    common, sequential = importlib.import_module("common"), importlib.import_module("sequential")
    monkeypatch.setattr(common, "BENCH", tmp_path)
    return sequential


def test_a_missed_promise_ends_with_1_only_when_checked(sequential: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench:sequential -->\nstale\n<!-- /bench:sequential -->\nafter\n", encoding="utf-8")
    short = ["--simulations", "40", "--queries", "35"]  # too few queries for any power
    assert sequential.main([*short, "--write", str(page)]) == 0
    assert sequential.main([*short, "--check"]) == 1
    text = page.read_text("utf-8")
    assert "stale" not in text
    assert "**missed**" in text


def test_the_shipped_table_is_whole_and_holds_what_was_promised() -> None:
    page = (ROOT / "docs" / "sequential.md").read_text("utf-8")
    section = page.split("<!-- bench:sequential -->")[1].split("<!-- /bench:sequential -->")[0]
    assert section.startswith("\n`python benchmarks/sequential.py --check`: 2,000 simulated tests")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| ")]
    cells = {(row[0], row[1]): [float(value) for value in row[2:5]] for row in rows if row[0] in SEQUENTIAL_SHAPES}
    assert set(cells) == {
        (shape, method) for shape in SEQUENTIAL_SHAPES for method in (*METHODS, "sprt, sigma known", "no variance")
    }
    for (_, method), (false_accepts, power, _) in cells.items():
        if method in ("sprt", "confidence sequence"):
            assert false_accepts <= 5
            assert power >= 80
    seed = [false_accepts for (_, method), (false_accepts, _, _) in cells.items() if method == "no variance"]
    assert 28 <= min(seed) <= max(seed) <= 37
    rare = {(row[0], row[1], float(row[2])): float(row[3]) for row in rows if row[0].startswith("+")}
    assert {delta for _, _, delta in rare} == {0.05, 0.02, 0.01, 0.1}
    assert len(rare) == 8
    assert max(rare.values()) <= 100 * allowed_share(SequentialPlan(), 2_000)
    assert section.count("| met |") == 4
    assert re.search(r"Beta-Binomial .* [23]\d\.\d % false accepts", section)
