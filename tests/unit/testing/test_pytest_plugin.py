"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

PLUGIN = "ringtrue.testing.pytest_plugin"
PLUGINS = ["-p", PLUGIN, "-p", "xdist", "-p", "no:cacheprovider"]
"""Of all that are installed only these: loading the others takes ten times as long as a run, and one of them shuffles."""
SEARCH = """
import pytest

ANSWERS = {"swim": ["pool", "spa"], "eat": ["bar", "pool"], "sweat": ["spa", "pool"], "drink": ["bar"], "sleep": ["room"]}


def good(text, k):
    return ANSWERS[text][:k]


def bad(text, k):
    return ["bar"] if text == "swim" else ["pool"]


def broken(text, k):
    raise RuntimeError("the index is gone")


MARK = dict(
    golden="golden/hotel.yaml", measures=["R@5", "RR"], floors={"R@5": 0.8}, latency={}, require_baseline=False, allow=["depth"]
)
"""
GOLDEN = """
id: hotel
version: 1.0.0
queries:
  - {query_id: swim, query_text: swim, relevant_docs: [{doc_id: pool, grade: 3, source: manual}]}
  - {query_id: eat, query_text: eat, relevant_docs: [{doc_id: bar, grade: 3, source: manual}]}
  - {query_id: sweat, query_text: sweat, relevant_docs: [{doc_id: spa, grade: 3, source: manual}]}
  - {query_id: drink, query_text: drink, relevant_docs: [{doc_id: bar, grade: 3, source: manual}]}
  - {query_id: sleep, query_text: sleep, relevant_docs: [{doc_id: room, grade: 3, source: manual}]}
"""


class Project:
    """A user's project with a search, a golden set, and the tests given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "golden").mkdir(parents=True)
        (folder / "golden/hotel.yaml").write_text(GOLDEN)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")

    def run(self, tests: str, *options: str) -> tuple[int, str]:
        (self.folder / "test_search.py").write_text(SEARCH + tests)
        command = [sys.executable, "-m", "pytest", *PLUGINS, *options]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path / "project")


def test_pytest_loads_the_installed_plugin_by_itself() -> None:
    assert PLUGIN in {entry.value for entry in entry_points(group="pytest11")}


def counted(text: str) -> dict[str, int]:
    return {
        name: int(number)
        for number, name in re.findall(r"(\d+) (passed|failed|skipped|xfailed|errors?)", text.splitlines()[-1])
    }


def test_gates_pass_and_fail_in_one_run(project) -> None:
    code, text = project.run(
        """
@pytest.mark.ringtrue(**MARK)
def test_good(ringtrue_eval):
    evaluation = ringtrue_eval(good)
    assert evaluation.metrics["RR"] == 1.0


@pytest.mark.ringtrue(**MARK)
def test_bad(ringtrue_eval):
    ringtrue_eval(bad)


@pytest.mark.ringtrue("golden/hotel.yaml", measures=["R@5"], latency={}, require_baseline=False, allow=["depth"])
class TestInherited:
    @pytest.mark.ringtrue(floors={"R@5": 0.9})
    def test_of_the_class(self, ringtrue_eval):
        ringtrue_eval(good)

    @pytest.mark.ringtrue(floors={"R@5": 0.9})
    def test_an_argument_wins_over_the_mark(self, ringtrue_eval):
        with pytest.raises(AssertionError, match="R@5"):
            ringtrue_eval(bad)
        ringtrue_eval(bad, floors={"R@5": 0.0})


def test_without_a_mark_is_left_alone():
    pass
""",
        "--junitxml=junit.xml",
    )
    assert counted(text) == {"passed": 4, "failed": 1}, text
    assert code == 1
    assert "ringtrue: bad fails 1 checks" in text
    assert "R@5" in text
    assert re.search(r"\(queries \w+, \w+, \w+, \w+, \w+\)", text)
    assert "test_search.py::test_good: pass: good: R@5 1.000" in text
    assert "test_search.py::test_bad: fail: bad: R@5 0.000" in text
    assert "pass: good" in (project.folder / "junit.xml").read_text()


def test_trap_16_a_marked_test_that_evaluates_nothing_fails(project) -> None:
    """A test that returned early and passed: the way out before the call is no way to pass."""
    code, text = project.run(
        """
@pytest.mark.ringtrue(**MARK)
def test_returns_early(ringtrue_eval):
    if not ANSWERS.get("dance"):
        return
    ringtrue_eval(good)


@pytest.mark.ringtrue(**MARK)
def test_takes_no_fixture():
    assert good("swim", 5)


@pytest.mark.ringtrue(**MARK)
def test_swallows_the_failure(ringtrue_eval):
    try:
        ringtrue_eval(broken)
    except BaseException:
        pass


@pytest.mark.ringtrue(**MARK)
def test_skips_and_says_so(ringtrue_eval):
    pytest.skip("no index here")
"""
    )
    assert counted(text) == {"failed": 3, "skipped": 1}, text
    assert code == 1
    assert text.count("nothing was evaluated") >= 2
    assert "the test went on, but its last gate did not pass: ringtrue could not decide" in text


def test_a_test_that_swallows_the_failure_fails_all_the_same(project) -> None:
    code, text = project.run(
        """
@pytest.mark.ringtrue(**MARK)
def test_catches_it(ringtrue_eval):
    try:
        ringtrue_eval(bad)
    except AssertionError:
        pass


@pytest.mark.ringtrue(**MARK)
def test_expects_it(ringtrue_eval):
    with pytest.raises(AssertionError):
        ringtrue_eval(bad)


@pytest.mark.ringtrue(**MARK)
def test_an_earlier_pass_does_not_help(ringtrue_eval):
    ringtrue_eval(good)
    try:
        ringtrue_eval(broken)
    except BaseException:
        pass


@pytest.mark.ringtrue(**MARK)
def test_the_last_one_counts(ringtrue_eval):
    with pytest.raises(AssertionError):
        ringtrue_eval(bad)
    ringtrue_eval(good)
"""
    )
    assert counted(text) == {"failed": 3, "passed": 1}, text
    assert code == 1
    assert text.count("the test went on, but its last gate did not pass: ringtrue: bad fails 1 checks") >= 2
    assert text.count("its last gate did not pass: ringtrue could not decide") >= 1


def test_a_mark_with_too_many_arguments_is_refused(project) -> None:
    code, text = project.run(
        """
@pytest.mark.ringtrue("golden/hotel.yaml", {"R@5": 0.99}, floors={"R@5": 0.1}, latency={}, allow=["depth"])
def test_good(ringtrue_eval):
    ringtrue_eval(good)
"""
    )
    assert code == 1
    assert "and was given {'R@5': 0.99} besides; write it like floors=" in text


def test_looks_at_the_held_out_part_are_counted_beside_the_set(project) -> None:
    from ringtrue.golden import load, read_looks, save, split

    whole = load("hotel")
    save(split(whole)[1], project.folder / "golden/held-out.json")
    code, text = project.run(
        """
from ringtrue.golden import load
SET = load("hotel")
DOCUMENTS = [document.doc_id for document in SET.documents]
ANY = dict(floors={"R@5": 0.0}, latency={}, require_baseline=False, allow=["depth"])


def some(text, k):
    return DOCUMENTS[:k]


@pytest.mark.ringtrue("hotel", split="held_out", **ANY)
def test_by_name(ringtrue_eval):
    ringtrue_eval(some)


@pytest.mark.ringtrue(SET, split="held_out", **ANY)
def test_by_object(ringtrue_eval):
    ringtrue_eval(some)


@pytest.mark.ringtrue("golden/held-out.json", **ANY)
def test_a_part_in_a_file(ringtrue_eval):
    ringtrue_eval(some)


@pytest.mark.ringtrue("hotel", split="tuning", **ANY)
def test_the_other_part(ringtrue_eval):
    ringtrue_eval(some)
"""
    )
    assert counted(text) == {"passed": 4}, text
    assert code == 0
    assert "(look 2 at the held-out part)" in text
    beside = [(look.who, look.what) for look in read_looks(project.folder / "held-out-looks.jsonl")]
    assert beside == [("pytest", "test_search.py::test_by_name: some"), ("pytest", "test_search.py::test_by_object: some")]
    (look,) = read_looks(project.folder / "golden/held-out-looks.jsonl")
    assert look.what == "test_search.py::test_a_part_in_a_file: some"
    assert look.version == f"hotel-held-out-v{whole.version}"


def test_what_cannot_be_decided_fails_with_the_reason(project) -> None:
    code, text = project.run(
        """
@pytest.mark.ringtrue(**MARK)
def test_broken_search(ringtrue_eval):
    ringtrue_eval(broken)


@pytest.mark.ringtrue(**{**MARK, "floors": {"P@5": 0.6}})
def test_unreachable_floor(ringtrue_eval):
    ringtrue_eval(good)


@pytest.mark.ringtrue(**{**MARK, "baseline": "nowhere.json"})
def test_missing_baseline(ringtrue_eval):
    ringtrue_eval(good)


@pytest.mark.ringtrue(**{**MARK, "flors": {}})
def test_wrong_name(ringtrue_eval):
    ringtrue_eval(good)


@pytest.mark.ringtrue(floors={"R@5": 0.8})
def test_no_golden_set(ringtrue_eval):
    ringtrue_eval(good)


@pytest.mark.ringtrue(**{**MARK, "floors": {}})
def test_no_rule_at_all(ringtrue_eval):
    ringtrue_eval(good)
"""
    )
    assert counted(text) == {"failed": 6}, text
    assert code == 1
    assert "the index is gone" in text
    assert "could not decide" in text
    assert "P@5" in text
    assert "nowhere.json" in text
    assert "did you mean 'floors'" in text
    assert "no golden set is named" in text
    assert "ringtrue checked nothing" in text


def test_a_baseline_and_the_policy_of_the_project_hold(project) -> None:
    (project.folder / "ringtrue.toml").write_text(
        '[gate]\nlatency_increase = inf\nmax_drop = 0.05\n[gate.floors]\n"R@5" = 0.1\n[gate.latency]\n'
    )
    code, text = project.run(
        """
from ringtrue.run import evaluate
from ringtrue.verdict import baseline_of, write_baseline

SAME = dict(golden="golden/hotel.yaml", baseline="ringtrue-baseline.json", allow=["depth"])


def one_less(text, k):
    return [] if text == "drink" else good(text, k)


@pytest.fixture(scope="module", autouse=True)
def baseline(request):
    root = request.config.rootpath
    write_baseline(baseline_of(evaluate(good, root / "golden/hotel.yaml", allow=["depth"])), root / "ringtrue-baseline.json")


@pytest.mark.ringtrue(**SAME)
def test_as_good_as_it_was(ringtrue_eval):
    ringtrue_eval(good)


@pytest.mark.ringtrue(**SAME)
def test_fell_by_a_fifth(ringtrue_eval):
    with pytest.raises(AssertionError) as told:
        ringtrue_eval(one_less)
    assert "20" in str(told.value)
    assert "drink" in str(told.value)
    ringtrue_eval(good)


@pytest.mark.ringtrue(**SAME, max_drop=0.3)
def test_the_mark_wins_over_the_file(ringtrue_eval):
    ringtrue_eval(one_less)
"""
    )
    assert counted(text) == {"passed": 3}, text
    assert code == 0


def test_a_worker_process_reports_the_same(project) -> None:
    code, text = project.run(
        """
@pytest.mark.ringtrue(**MARK)
@pytest.mark.parametrize("number", [1, 2])
def test_good(ringtrue_eval, number):
    ringtrue_eval(good)


@pytest.mark.ringtrue(**MARK)
def test_early(ringtrue_eval):
    return
""",
        "-n1",
    )
    assert code == 1
    assert counted(text) == {"passed": 2, "failed": 1}, text
    assert text.count(": pass: good") == 2


def test_the_plugin_costs_nothing_until_it_is_used() -> None:
    code = (
        f"import pytest, sys; before = set(sys.modules); import {PLUGIN}; "
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('ringtrue')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "yaml", "scipy", "duckdb", "typer", "rich"} & set(done.stdout.split())


def test_the_package_names_the_plugin(root) -> None:
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"ringtrue": PLUGIN}
