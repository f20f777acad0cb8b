"""The whole circle, as a user runs it: examples/online_loop.py in its short form, on both databases."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringtrue.store import Store
from stores import fresh as fresh

PROGRAM = "examples/online_loop.py"
PROJECT = "online-loop"


def loop(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, PROGRAM, *arguments], cwd=root, capture_output=True, text=True, encoding="utf-8", timeout=300
    )


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """What the short form said, and the store it left."""
    store = tmp_path_factory.mktemp("loop") / "store.sqlite"
    done = loop(Path(__file__).parents[2], "--short", "--json", "--store", str(store))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no bar where nobody looks
    return json.loads(done.stdout), store


def test_every_search_and_event_is_kept_and_no_address(once: tuple[dict[str, Any], Path]) -> None:
    facts, file = once
    assert facts["log"]["searches"] == 2000
    assert facts["log"]["private"] > 0
    assert facts["log"]["leaked"] == facts["log"]["dropped"] == facts["log"]["refused"] == 0
    kept = facts["kept"]
    assert kept["stored"] == kept["made"] > 10_000
    assert kept["dropped"] == kept["refused"] == 0
    with Store.open(file) as store:
        assert store.counts()["eval_queries"] == kept["made"]
        assert not [row for row in store.queries(project=PROJECT, limit=2000) if "@" in row.query]


def test_derived_judgments_recover_the_truth_better_than_clicks(once: tuple[dict[str, Any], Path]) -> None:
    facts = once[0]["judgments"]
    assert facts["method"] == "position-based"
    assert facts["curve"] == pytest.approx([1 / rank for rank in range(1, 11)], abs=0.1)
    assert facts["tau_derived"] > facts["tau_clicks"] + 0.03
    assert facts["tau_derived"] > 0.6


def test_the_refresh_is_refused_then_replaces_queries_and_leaves_confirmed_ones(once: tuple[dict[str, Any], Path]) -> None:
    facts, file = once
    found = facts["refresh"]
    assert found["kappa_first"] <= 0.6
    assert "not above 0.6" in found["refused_first"]
    assert found["kappa_second"] > 0.6
    assert (found["added"], found["retired"], found["left_out"]) == (8, 8, 0)
    assert found["confirmed_untouched"]
    assert found["idempotent"]
    assert found["warned"]
    with Store.open(file) as store:
        backlog = store.backlog(project=PROJECT)
        assert (backlog["published"], backlog["pending_review"]) == (found["published"], 0)


def test_the_better_is_accepted_and_the_worse_rejected(once: tuple[dict[str, Any], Path]) -> None:
    facts, file = once
    better, worse = facts["shadow"]["hybrid"], facts["shadow"]["titles-only"]
    assert better["golden_gain"] > 0.03
    assert better["decision"] == "accept-treatment"
    assert worse["golden_gain"] < 0
    assert (worse["decision"], worse["action"], worse["state"]) == ("accept-control", "reject", "rejected")
    for one in facts["shadow"].values():
        assert one["dropped"] == one["failures"] == 0
        assert one["samples"] == one["judged"] >= 40
    with Store.open(file) as store:
        tests = {one.feature_id: (one.decision, one.status) for one in store.tests(project=PROJECT)}
    assert tests["hybrid"] == ("accept-treatment", "graduated")
    assert tests["titles-only"] == ("accept-control", "rejected")


def test_the_rollout_takes_every_stage_and_the_slow_one_is_rolled_back(once: tuple[dict[str, Any], Path]) -> None:
    facts, file = once
    assert facts["rollout"]["stages"] == [1, 5, 10, 25, 50, 100, 100]
    assert (facts["rollout"]["action"], facts["rollout"]["state"]) == ("graduate", "graduated")
    assert facts["rollout"]["days"] >= 6  # no stage in less than a day
    assert facts["rollback"]["stages"] == [1, 5, 10, 0]
    assert (facts["rollback"]["action"], facts["rollback"]["state"]) == ("rollback", "paused")
    assert "live latency" in facts["rollback"]["why"]
    with Store.open(file) as store:
        flags = {flag.name: (flag.rollout, flag.state) for flag in store.flags(project=PROJECT)}
    assert flags == {"hybrid": (100, "graduated"), "hybrid-remote": (0, "paused"), "titles-only": (0, "rejected")}


def test_health_names_the_rollback_and_nothing_else(once: tuple[dict[str, Any], Path]) -> None:
    health = once[0]["health"]
    assert health["state"] == "wrong"
    assert [name for name, state in health["parts"].items() if state == "wrong"] == ["rollout"]
    assert "unknown" not in health["parts"].values()


def test_the_same_seed_gives_the_same_circle_on_postgresql(once: tuple[dict[str, Any], Path], fresh, root: Path) -> None:
    done = loop(root, "--short", "--json", "--store", fresh("postgresql"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == once[0]


def test_a_store_that_was_used_is_refused(once: tuple[dict[str, Any], Path], root: Path) -> None:
    done = loop(root, "--short", "--store", str(once[1]))
    assert (done.returncode, done.stdout) == (2, "")
    assert "has been used; give a new --store" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [(["--help"], 0, "Example: python examples/online_loop.py --short"), (["--searches", "5"], 2, "write 1000 or more")],
)
def test_cli_it_explains_itself(root: Path, arguments: list[str], code: int, says: str) -> None:
    done = loop(root, *arguments)
    assert done.returncode == code
    assert says in done.stdout + done.stderr
