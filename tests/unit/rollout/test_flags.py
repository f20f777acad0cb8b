"""Flags reach whom they say, everywhere alike; the environment wins; every change leaves a trace."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from flag_store import MemoryStore
from ringtrue.errors import InputError, MissingInput
from ringtrue.rollout.flags import PRESETS, Flags, change_flag, existing_flag, is_on, overrides
from ringtrue.store import Flag, Store

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PEOPLE = [f"user-{n}" for n in range(4000)]


@given(some.text(max_size=30), some.floats(0, 100), some.floats(0, 100))
def test_raising_the_percentage_keeps_everybody_who_was_in(identity: str, one: float, other: float) -> None:
    low, high = sorted([one, other])
    if is_on(Flag("new", rollout=low), identity):
        assert is_on(Flag("new", rollout=high), identity)


@pytest.mark.parametrize("percent", [0, 1, 5, 25, 50, 100])
def test_a_percentage_reaches_that_share(percent: float) -> None:
    share = 100 * sum(is_on(Flag("new", rollout=percent), person) for person in PEOPLE) / len(PEOPLE)
    assert share == pytest.approx(percent, abs=3 * (percent * (100 - percent) / len(PEOPLE)) ** 0.5)
    if percent in (0, 100):
        assert share == percent


def test_the_environment_wins_in_every_spelling() -> None:
    found = overrides(
        {
            "RINGTRUE_FLAG_MULTI_VECTOR": " On ",
            "RINGTRUE_FLAG_GRAPH_SCORING": "off",
            "RINGTRUE_FLAG_NEW": "25%",
            "RINGTRUE_FLAG_SET_ROLLOUT": "no percentage, but the default of an option",
            "RINGTRUE_STORE": "elsewhere",
        }
    )
    assert found == {"multi-vector": 100.0, "graph-scoring": 0.0, "new": 25.0}
    assert is_on(Flag("new", rollout=0), "user-1", override=100.0)
    assert not is_on(Flag("new", rollout=100), "user-1", override=0.0)


def test_the_environment_is_read_through_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_FLAG_NEW", "on")
    assert Flags(MemoryStore()).is_on("new", "anybody")


@pytest.mark.parametrize("value", ["yes", "101", "-1", "nan", ""])
def test_a_value_that_is_no_percentage_is_named_with_its_cure(value: str) -> None:
    with pytest.raises(InputError, match="RINGTRUE_FLAG_NEW=25"):
        overrides({"RINGTRUE_FLAG_NEW": value})


def test_presets_are_shipped_with_their_thresholds() -> None:
    assert {name: (flag.graduation_threshold, flag.min_samples) for name, flag in PRESETS.items()} == {
        "multi-vector": (0.03, 100),
        "graph-scoring": (0.02, 100),
    }
    assert all(flag.shadow and flag.rollout == 0 and flag.name == name for name, flag in PRESETS.items())


def test_every_change_is_in_the_audit_trail() -> None:
    store = MemoryStore()
    change_flag(store, "graph-scoring", who="ada", now=NOW, why="first try", rollout=5)
    later = NOW + timedelta(hours=1)
    flag = change_flag(store, "graph-scoring", who="bob", now=later, why="fewer samples", min_samples=50)
    assert (flag.rollout, flag.graduation_threshold, flag.min_samples, flag.shadow) == (5, 0.02, 50, True)
    assert flag.stage_since == "2026-03-01T12:00:00.000000Z"  # the stage began with its percentage
    newest, first = store.audit(subject="graph-scoring")
    assert (first.who, first.detail["before"], first.detail["after"]["rollout"]) == ("ada", None, 5)
    assert (newest.who, newest.detail["why"], newest.detail["after"]["min_samples"]) == ("bob", "fewer samples", 50)


def test_a_change_that_changes_nothing_leaves_no_trace() -> None:
    store = MemoryStore()
    for _ in range(2):
        change_flag(store, "new", who="ada", now=NOW, rollout=5)
    assert len(store.trail) == 1


def test_changes_of_two_people_at_once_are_both_kept() -> None:
    store = MemoryStore()
    change_flag(store, "new", who="ada", now=NOW)
    read, once = store.flag, threading.Event()

    def interrupted(name: str, *, project: str = "default") -> Flag | None:
        found = read(name, project=project)
        if not once.is_set():
            once.set()
            change_flag(store, "new", who="bob", now=NOW, min_samples=500)  # between ada's reading and writing
        return found

    store.flag = interrupted  # type: ignore[method-assign]
    flag = change_flag(store, "new", who="ada", now=NOW, rollout=10)
    assert (flag.rollout, flag.min_samples) == (10, 500)


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("New", {}, "is not a valid flag name"),
        ("a_b", {}, "is not a valid flag name"),
        ("set-it", {}, "choose another name"),
        ("new", {"rollout": 101}, "from 0 to 100"),
        ("new", {"rollout": float("nan")}, "from 0 to 100"),
        ("new", {"min_samples": 0}, "1 or more"),
        ("new", {"graduation_threshold": 0}, "like 0.03"),
        ("new", {"state": "runing"}, "did you mean 'running'"),
    ],
)
def test_what_cannot_be_used_is_refused_and_not_stored(name: str, changes: dict[str, Any], says: str) -> None:
    store = MemoryStore()
    with pytest.raises(InputError, match=says):
        change_flag(store, name, who="ada", now=NOW, **changes)
    assert store.known == {}


def test_a_flag_that_is_not_there_is_named_with_the_nearest_of_those_that_somebody_set() -> None:
    store = MemoryStore()
    with pytest.raises(MissingInput) as refused:
        existing_flag(store, "multivector")
    assert str(refused.value) == "no flag 'multivector'; create it: ringtrue flag set multivector"
    change_flag(store, "multi-vector", who="ada", now=NOW)
    with pytest.raises(MissingInput, match="did you mean 'multi-vector'"):
        existing_flag(store, "multivector")


def test_a_live_system_asks_memory_and_follows_the_store_in_the_background() -> None:
    store, clock = MemoryStore(), iter(range(0, 10_000, 10)).__next__
    flags = Flags(store, environment={}, refresh=5, clock=lambda: float(clock()))
    assert not flags.is_on("new", "user-1")
    change_flag(store, "new", who="ada", now=NOW, rollout=100)
    for _ in range(1000):
        if flags.is_on("new", "user-1"):
            break
        threading.Event().wait(0.005)
    assert flags.is_on("new", "user-1")
    assert flags.in_force("user-1") == {"new": True}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_worker_forked_while_flags_were_being_read_sees_a_rollback(tmp_path: Any) -> None:
    """The child inherits the lock as it was, held by a thread that it does not have."""
    code = f"""
import os, threading, time
from datetime import UTC, datetime
from ringtrue.rollout import Flags
from ringtrue.store import Flag, Store

NOW, begun, go = datetime(2026, 3, 1, tzinfo=UTC), threading.Event(), threading.Event()
with Store.open({str(tmp_path / "s.sqlite")!r}) as store:
    store.set_flag(Flag("new", rollout=100.0), who="a", at=NOW)

    class Slow:
        slow = False
        def flags(self, *, project="default"):
            if self.slow:
                begun.set()
                go.wait()
            return store.flags(project=project)

    slow = Slow()
    flags = Flags(slow, refresh=0.0, environment={{}})
    slow.slow = True
    assert flags.is_on("new", "u") and begun.wait(20)
    child = os.fork()
    if child == 0:
        slow.slow = False
        patience = time.monotonic() + 20
        with Store.open({str(tmp_path / "s.sqlite")!r}) as own:
            while own.flag("new").rollout and time.monotonic() < patience:
                time.sleep(0.01)
        while flags.is_on("new", "u") and time.monotonic() < patience:
            time.sleep(0.01)
        os._exit(int(flags.is_on("new", "u")))
    go.set()
    store.set_flag(Flag("new", rollout=0.0, state="paused"), who="a", at=NOW)
    _, status = os.waitpid(child, 0)
    raise SystemExit(os.waitstatus_to_exitcode(status))
"""
    # In a process of its own: pytest has threads, and Python warns of a fork beside them.
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_while_the_store_is_away_flags_stay_as_they_were() -> None:
    class Away(MemoryStore):
        away = False

        def flags(self, *, project: str = "default") -> list[Flag]:
            if self.away:
                raise OSError("no route")
            return super().flags(project=project)

    store = Away()
    change_flag(store, "new", who="ada", now=NOW, rollout=100)
    flags = Flags(store, environment={})
    store.away = True
    flags._read()
    assert flags.is_on("new", "user-1")
    assert flags.problem == "OSError: no route"
    first = Flags(store, environment={})
    assert not first.is_on("new", "user-1")  # never read: off


def test_flags_live_in_the_real_store(tmp_path: Any) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        change_flag(store, "multi-vector", who="ada", now=NOW, why="go", rollout=25, metadata={"measure": "nDCG@10"})
        assert store.flag("multi-vector") == Flag(
            "multi-vector", 25.0, shadow=True, stage_since="2026-03-01T12:00:00.000000Z",
            description=PRESETS["multi-vector"].description, metadata={"measure": "nDCG@10"},
        )  # fmt: skip
        [entry] = store.audit(subject="multi-vector")
        assert (entry.who, entry.detail["why"]) == ("ada", "go")
        assert Flags(store, environment={}).is_on("multi-vector", "user-1")


def test_flags_on_the_command_line(ringtrue: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "s.sqlite"
    assert ringtrue("flag", "list", "--store", store, "--json").json["flags"] == {}
    assert "project 'default' has no flag; create one: ringtrue flag set NAME" in ringtrue("flag", "list", "--store", store).err
    assert not store.exists()  # looking makes no store
    with monkeypatch.context() as forced:
        forced.setenv("RINGTRUE_FLAG_GRAPH_SCORING", "25")
        listed = ringtrue("flag", "list", "--store", store, "--json").json["flags"]
    assert {name: (flag["preset"], flag["override"]) for name, flag in listed.items()} == {"graph-scoring": (True, 25.0)}
    made = ringtrue("flag", "set", "multi-vector", "--rollout", "5", "--why", "go", "--who", "ada", "--store", store)
    assert (made.code, made.out) == (0, "multi-vector: 5 %, running, shadow on\n")
    ringtrue("flag", "set", "multi-vector", "--measure", "ndcg@10", "--stage-hours", "2", "--who", "bob", "--store", store)
    monkeypatch.setenv("RINGTRUE_FLAG_MULTI_VECTOR", "off")
    listed = ringtrue("flag", "list", "--store", store, "--json").json["flags"]["multi-vector"]
    assert (listed["rollout"], listed["override"], listed["preset"]) == (5.0, 0.0, False)
    assert listed["metadata"] == {"measure": "nDCG@10", "stage_hours": 2.0}
    assert "5 % (environment: 0 %)" in ringtrue("flag", "list", "--store", store).out
    trail = ringtrue("flag", "list", "--audit", "multi-vector", "--store", store).out
    assert "ada" in trail
    assert "made at 5 %" in trail
    gone = ringtrue("flag", "rollback", "multi-vector", "--why", "complaints", "--store", store)
    assert gone.code == 0
    assert "environment of this shell sets multi-vector to 0 %" in gone.err
    with Store.open(store) as opened:
        flag = opened.flag("multi-vector")
        assert flag is not None
        assert (flag.rollout, flag.state) == (0.0, "paused")
        assert opened.audit(subject="multi-vector", limit=1)[0].detail["why"] == "rollback: complaints"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["set", "New"], "lowercase letters"),
        (["set", "new", "--rollout", "200"], "from 0 to 100"),
        (["set", "new", "--measure", "nDGC@10"], "did you mean 'nDCG'"),
        (["set", "new", "--stage-hours", "-1"], "hours from 0"),
        (["rollback", "new", "--why", " "], "--why is empty"),
        (["rollback", "multi-vecto", "--why", "x"], "did you mean 'multi-vector'"),
        (["list", "--audit", "nothing"], "no flag 'nothing'"),
        (["graduate"], "name one flag, or use --all"),
        (["graduate", "--all", "--breach", "x"], "about one flag"),
    ],
)
def test_bad_input_is_one_line_with_its_cure(ringtrue: Any, tmp_path: Any, arguments: list[str], says: str) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        change_flag(store, "multi-vector", who="ada", now=NOW)
    outcome = ringtrue("flag", *arguments, "--store", tmp_path / "s.sqlite")
    assert outcome.code == 2
    assert says in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert outcome.out == ""
