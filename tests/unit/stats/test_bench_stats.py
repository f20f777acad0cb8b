"""``benchmarks/stats.py``: it runs, and its verdicts follow from its numbers, however fast anything is."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the script, with its results in a folder of the test."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in ("common", "stats"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    common, stats = importlib.import_module("common"), importlib.import_module("stats")
    monkeypatch.setattr(common, "BENCH", tmp_path)
    return stats


def test_a_tiny_run_ends_in_a_report(bench: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    code = bench.main(["--queries", "200", "--measures", "2", "--resamples", "2000", "--repeat", "1", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert code == 0  # a missed limit fails only with --check
    assert [job["job"] for job in report["jobs"]] == ["sign-flip", "bca", "percentile"]
    assert all(job["seconds"] > 0 and job["scipy_seconds"] > 0 and job["peak_mb"] > 10 for job in report["jobs"])
    same = [limit["met"] for limit in report["limits"] if "same answer" in limit["name"]]
    assert same == [True] * 3


def test_scipy_is_scaled_by_a_straight_line_with_what_it_does_once_counted_once(bench: ModuleType) -> None:
    # 0.5 s once a call and 1 ms a resample: 10 × (0.5 + 100).
    assert bench.scipy_seconds([[500, 1.0], [3000, 3.5]], 100_000, 10) == pytest.approx(1005.0)
    assert bench.scipy_seconds([[500, 1.0], [3000, 0.9]], 100_000, 10) == pytest.approx(
        10.0
    )  # noise: never below the time seen


@pytest.mark.parametrize(
    ("ratio", "apart", "peak", "missed"), [(25, 1, 90, 0), (19, 1, 90, 3), (25, 5, 90, 3), (25, 1, 501, 1)]
)
def test_each_limit_is_missed_on_its_own(bench: ModuleType, ratio: float, apart: float, peak: float, missed: int) -> None:
    jobs = [{"job": job, "ratio": ratio, "apart": apart, "peak_mb": peak} for job in bench.JOBS]
    assert sum(not limit["met"] for limit in bench.limits({"jobs": jobs})) == missed


def test_answers_that_differ_are_found(bench: ModuleType) -> None:
    assert bench.apart("sign-flip", {"p": 0.2}, {"p": 0.2}) == 0
    assert bench.apart("sign-flip", {"p": 0.2}, {"p": 0.4}) > bench.STANDARD_ERRORS
    ours = {"low": 0.0, "high": 1.0, "error": 0.25}
    assert bench.apart("percentile", ours, {"low": 0.0, "high": 1.2}) > bench.STANDARD_ERRORS
    assert bench.apart("bca", ours, {"low": 0.0, "high": 1.01}) < bench.STANDARD_ERRORS
