"""Trials of sweeps put together again."""

from __future__ import annotations

import math
from typing import Any

from ringtrue.experiment import Experiment
from ringtrue.experiment.swept import Swept, grouped, lower_is_better, shown


def trial(number: int, of: int, value: float = 0.5, **more: Any) -> Experiment:
    told = {"sweep": {"trial": number, "of": of, "method": "grid", "retriever": f"r{number}"}}
    changes = more.pop("changes", {"k": number})
    return Experiment(more.pop("id", f"t{number}"), "2026-03-01", "", changes, {"nDCG@10": value}, extra=told, **more)


def lone(name: str) -> Experiment:
    return Experiment(name, "2026-03-01", name)


def test_trials_that_lie_side_by_side_and_count_up_are_one_sweep() -> None:
    found = grouped([lone("a"), trial(1, 2), trial(2, 2), trial(1, 2), trial(2, 2), lone("b"), trial(1, 3), trial(1, 1)])
    assert [len(one.trials) if isinstance(one, Swept) else one.id for one in found] == ["a", 2, 2, "b", 1, 1]


def test_trials_against_different_baselines_are_not_one_sweep() -> None:
    found = grouped([trial(1, 2, baseline="bm25"), trial(2, 2, baseline="dense")])
    assert [len(one.trials) for one in found if isinstance(one, Swept)] == [1, 1]


def test_the_best_trial_is_the_lowest_where_less_is_better_and_unknown_ones_are_left_out() -> None:
    up = Swept((trial(1, 3, 0.4), trial(2, 3, math.nan), trial(3, 3, 0.6)))
    assert [one.id for one in up.ranked("nDCG@10")] == ["t3", "t1"]
    down = Swept(tuple(Experiment(f"t{ms}", "2026-03-01", "", {}, {"latency_p95_ms": ms}) for ms in (30.0, 10.0, 20.0)))
    assert [one.id for one in down.ranked("latency_p95_ms")] == ["t10.0", "t20.0", "t30.0"]
    assert lower_is_better("latency_p95_ms")
    assert not lower_is_better("mrr as somebody called it")


def test_the_baseline_of_a_sweep_is_the_trial_with_its_search() -> None:
    swept = Swept((trial(1, 2, baseline="r2"), trial(2, 2, baseline="r2")))
    base = swept.baseline()
    assert base is not None
    assert base.id == "t2"
    assert Swept((trial(1, 1, baseline="elsewhere"),)).baseline() is None


def test_settings_are_shown_without_their_quotes() -> None:
    assert [shown(value) for value in ("'z'", "plain", [0.5, 1], True, None)] == ["z", "plain", "[0.5, 1]", "true", "—"]
