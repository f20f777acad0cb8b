"""``ringtrue gate`` for people: what decides, and no more unless it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from made import answers, evaluation, golden_set
from ringtrue.run import Evaluation, save
from ringtrue.verdict import baseline_of, gate, write_baseline

Ringtrue = Callable[..., Any]
GOLDEN = golden_set(28, relevant=4)


def made(skill: float, latency: float) -> Evaluation:
    return evaluation(GOLDEN, answers(GOLDEN, skill=skill, seed=3, latency=latency))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_baseline(baseline_of(made(0.9, 20.0)), "ringtrue-baseline.json")
    save(made(0.9, 20.0), "same")
    save(made(0.9, 60.0), "slower")
    save(made(0.4, 20.0), "worse")
    moved = made(0.9, 20.0)
    save(replace(moved, setup=replace(moved.setup, machine="another")), "elsewhere")
    return tmp_path


def test_checks_for_reading_are_counted_and_shown_when_asked_for(ringtrue: Ringtrue, folder: Path) -> None:
    found = ringtrue("gate", "--run", "elsewhere")
    assert found.code == 0, found.out
    assert found.out.startswith(
        "PASS: all 12 checks hold against baseline 1.0.0; 1 more is informational.\nbm25 on made-v1.0.0; k = "
    )
    assert "1 informational check not shown: --verbose shows it" in found.out
    assert "measured on test-machine, now on another" not in found.out + found.err
    told = ringtrue("gate", "--run", "elsewhere", "--verbose").out
    assert "measured on test-machine, now on another" in told
    assert "more check" not in told
    assert len(ringtrue("gate", "--run", "elsewhere", "--json").json["checks"]) == 13, "JSON has them all"


def test_numbers_of_another_golden_set_do_not_stand_beside_those_of_the_run(ringtrue: Ringtrue, folder: Path) -> None:
    run = made(0.9, 20.0)
    save(replace(run, setup=replace(run.setup, golden=replace(run.setup.golden, content_hash="new"))), "next")
    found = ringtrue("gate", "--run", "next")
    assert found.code == 3
    assert "the two cannot be compared" in found.out
    (head,) = [line for line in found.out.splitlines() if line.startswith("measure ")]
    assert "baseline" not in head, "the baseline has no value for this set"


def test_growth_over_few_answers_is_named_with_the_reason_and_does_not_fail(ringtrue: Ringtrue, folder: Path) -> None:
    """Four of ten gates of an unchanged search failed on the p95 of 28 answers."""
    found = ringtrue("gate", "--run", "slower")
    assert found.code == 0, found.out
    (line,) = [line for line in found.out.splitlines() if line.startswith("  p95 grew by ")]
    assert "28 timed answers; 200 needed to decide: --passes 8" in line
    assert "\nadvisory:\n" in found.out


def test_a_failure_names_three_queries_and_all_of_them_when_asked_for(ringtrue: Ringtrue, folder: Path) -> None:
    found, told = (ringtrue("gate", "--run", "worse", *more) for more in ((), ("--verbose",)))
    assert found.code == told.code == 1
    block = found.out.split("  R@5 below its floor: ")[1].splitlines()[1:5]
    assert all(line.startswith("    q") for line in block[:3])
    assert block[3].strip() == "…"
    assert told.out.count("    q") > 2 * found.out.count("    q")


def test_a_verdict_and_a_baseline_fit_on_a_screen() -> None:
    baseline = baseline_of(made(0.9, 20.0))
    verdict = gate(made(0.4, 20.0), baseline=baseline)
    text = repr(verdict)
    assert text.startswith("<Verdict on bm25 against baseline 1.0.0: fail, 13 checks>\n  fail: R@5 below its floor: ")
    assert len(text.splitlines()) <= 7
    assert len(text) < 1_500
    assert len(repr(baseline)) < 2_000


def test_a_run_below_its_floors_is_not_offered_as_the_baseline(ringtrue: Ringtrue, folder: Path) -> None:
    (folder / "ringtrue-baseline.json").unlink()
    failing, good = (ringtrue("gate", "--run", run, "--floor", "R@5=0.7") for run in ("worse", "same"))
    assert (failing.code, good.code) == (1, 3)
    assert "baseline update --run worse" not in failing.out
    assert "fix that first, or record a run that passes with `ringtrue baseline update --run FOLDER`" in failing.out
    assert "record one with `ringtrue baseline update --run same`" in good.out
