"""The gate end to end: a repository with a golden set, a baseline and a run, judged by the installed program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Outcome
from ringtrue.golden import save
from ringtrue.records import Document, GoldenSet, Judgment, Query
from ringtrue.run import open_run

PROGRAM = Path(sys.executable).parent / "ringtrue"
THINGS = {
    "anchor": "iron anchor that holds a ship on the sea bed",
    "bakery": "bakery with bread, rolls and cake every morning",
    "candle": "wax candle that burns with a small flame",
    "desert": "dry desert with sand dunes and camels",
    "engine": "steam engine that drives a locomotive",
    "forest": "dark forest of pines and firs",
    "glacier": "glacier of blue ice creeping down a valley",
    "harbour": "harbour where fishing boats unload",
    "island": "island with palms and a white beach",
    "jungle": "jungle full of parrots and vines",
    "kettle": "copper kettle whistling on the stove",
    "ladder": "wooden ladder against an apple tree",
}
NOTE = """\
[eval]
golden = 'golden.json'
retriever = 'bm25'
[gate]
latency_increase = inf
[gate.floors]
'R@5' = 0.8
RR = 0.7
[gate.latency]
"""
FUNCTION = NOTE.replace("retriever = 'bm25'", "python = 'search.py:find'\nallow = ['depth']")
WORSE = """\
lost = ('anchor', 'engine', 'kettle')

def find(text, k):
    name = text.split()[-1]
    return ['forest'] if name in lost else [name]
"""
GOOD = """\
def find(text, k):
    return [text.split()[-1]]
"""
BROKEN = """\
def find(text, k):
    if text.endswith('forest'):
        raise RuntimeError('index is being rebuilt')
    return [text.split()[-1]]
"""


@dataclass(frozen=True)
class Repository:
    """A scratch git repository."""

    folder: Path
    cache: Path

    def git(self, *arguments: str) -> str:
        who = ["-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
        found = subprocess.run(["git", *who, *arguments], cwd=self.folder, capture_output=True, text=True, check=True)
        return found.stdout

    def script(self, *arguments: str) -> Outcome:
        """Run the installed program."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("RINGTRUE", "GITHUB"))}
        found = subprocess.run(
            [str(PROGRAM), *arguments], cwd=self.folder, capture_output=True, text=True,
            env={**environment, "RINGTRUE_CACHE": str(self.cache)},
        )  # fmt: skip
        assert "Traceback" not in found.stderr, found.stderr
        return Outcome(found.returncode, found.stdout, found.stderr)

    def path(self, name: str) -> Path:
        return self.folder / name

    def write(self, **files: str) -> None:
        for name, text in files.items():
            self.path(name.replace("_", ".")).write_text(text)

    @property
    def baseline(self) -> bytes:
        return self.path("ringtrue-baseline.json").read_bytes()


def golden(**texts: str) -> GoldenSet:
    """A query for each thing that names it, or says what ``texts`` say in its place."""
    queries = tuple(Query(f"q-{name}", texts.get(name, f"where is the {name}"), {"query_type": "factual"}) for name in THINGS)
    judged = tuple(Judgment(f"q-{name}", name, 3, "manual") for name in THINGS)
    there = tuple(Document(name, text, name) for name, text in THINGS.items())
    return GoldenSet("things", "1.0.0", queries, judged, there, slices=("query_type",))


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with everything committed: the set, the settings, a baseline with the run behind it, and a worse run."""
    found = Repository(tmp_path_factory.mktemp("repository"), tmp_path_factory.mktemp("cache"))
    found.git("init", "--quiet")
    save(golden(), found.path("golden.json"))
    found.path(".gitignore").write_text(".ringtrue/\nreports/\n")
    found.write(search_py=WORSE, ringtrue_toml=FUNCTION)
    assert found.script("eval", "--out", "runs/worse", "--no-report").code == 0
    found.write(ringtrue_toml=NOTE)
    assert found.script("eval", "--out", "runs/standard", "--no-report").code == 0
    recorded = found.script("baseline", "update", "--run", "runs/standard")
    assert recorded.code == 0, recorded.err
    assert "baseline recorded 1.0.0, from runs/standard" in recorded.out
    found.git("add", "--all")
    found.git("commit", "--quiet", "--message", "a standard")
    return found


@pytest.fixture
def repository(standard: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A fresh clone of it, as a pipeline has one, and the place where commands run."""
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(standard.folder), str(folder)], check=True, capture_output=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RINGTRUE_CACHE", str(standard.cache))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "search", raising=False)
    return Repository(folder, standard.cache)


# ── the installed program ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_unchanged_search_passes_and_nothing_is_written(repository) -> None:
    ended = repository.script("gate", "--run", "runs/standard")
    assert (ended.code, ended.out.splitlines()[0].split(":")[0]) == (0, "PASS")
    assert repository.git("status", "--porcelain") == ""


def test_a_planted_regression_exits_1_and_names_the_guilty_queries(repository) -> None:
    ended = repository.script("gate", "--run", "runs/worse")
    assert ended.code == 1
    assert ended.out.startswith("FAIL: ")
    assert "R@5 fell by 25.0 % against baseline 1.0.0 (1.0000 → 0.7500; 5 % allowed)" in ended.out
    assert "R@5 below its floor: 0.7500 < 0.8000" in ended.out
    assert "q-engine  1.0000 → 0.0000  where is the engine" in ended.out


def test_trap_37_whenever_it_says_fail_it_exits_1(repository) -> None:
    for extra in (("--json",), ("--no-baseline",), ("--report", "gate.md")):
        ended = repository.script("gate", "--run", "runs/worse", *extra)
        assert '"verdict": "fail"' in ended.out or ended.out.startswith("FAIL")
        assert ended.code == 1, extra


def test_a_query_without_an_answer_is_a_missing_arm_and_exits_3(repository) -> None:
    repository.write(search_py=BROKEN, ringtrue_toml=FUNCTION)
    ended = repository.script("gate")
    assert ended.code == 3
    assert ended.out.startswith("UNDECIDED: ")
    assert "1 of 12 queries got no answer, such as q-forest" in ended.out
    assert "index is being rebuilt" in ended.out


def test_a_broken_golden_set_exits_2_in_one_line(repository) -> None:
    repository.write(golden_json='{"queries": [{"query_id": 3}]}')
    ended = repository.script("gate")
    assert (ended.code, ended.out) == (2, "")
    assert "golden.json" in ended.err
    assert ended.err.count("\n") == 1


def test_update_shows_what_moves_and_refuses_a_worse_run(repository, ringtrue) -> None:
    before = repository.baseline
    refused = repository.script("baseline", "update", "--run", "runs/worse")
    assert refused.code == 1
    assert refused.out.startswith("REFUSED: ")
    assert "R@5 is worse than in baseline 1.0.0: 1.0000 → 0.7500" in refused.out
    assert repository.baseline == before
    assert ringtrue("baseline", "update", "--run", "runs/worse", "--force").code == 2
    assert repository.baseline == before
    forced = ringtrue("baseline", "update", "--run", "runs/worse", "--force", "--reason", "half the cost", "--json")
    assert forced.code == 0
    assert (forced.json["updated"], forced.json["previous"], forced.json["version"]) == (True, "1.0.0", "1.1.0")
    assert forced.json["measures"]["R@5"] == {"old": 1.0, "new": 0.75, "diff": -0.25}
    assert forced.json["objections"]
    shown = ringtrue("baseline", "show").out
    assert "baseline 1.1.0" in shown
    assert "reason: half the cost" in shown
    changed = repository.git("diff", "ringtrue-baseline.json")
    assert '-    "q-engine": {"n' in changed
    assert '-    "q-bakery": {"n' not in changed


# ── the same program, run in this process ───────────────────────────────────────────────────────────────────────────


def test_the_json_names_every_failure_with_its_numbers(repository, ringtrue) -> None:
    record = ringtrue("gate", "--run", "runs/worse", "--json").json
    assert {"verdict", "exit_code", "failures", "checks", "baseline", "run_dir", "mode", "notes"} <= set(record)
    assert (record["verdict"], record["baseline"]["version"]) == ("fail", "1.0.0")
    (fall,) = [one for one in record["failures"] if one["measure"] == "R@5" and one["rule"] == "drop"]
    assert (fall["current"], fall["baseline"], fall["degradation"]) == (0.75, 1.0, 0.25)
    assert fall["queries"] == ["q-anchor", "q-engine", "q-kettle"]
    (floor,) = [one for one in record["failures"] if one["measure"] == "R@5" and one["rule"] == "floor"]
    assert (floor["threshold"], floor["message"]) == (0.8, "R@5 below its floor: 0.7500 < 0.8000")


def test_trap_38_the_gate_never_writes_the_baseline(repository, ringtrue) -> None:
    before = repository.baseline
    assert ringtrue("gate", "--run", "runs/worse").code == 1
    assert repository.baseline == before
    assert ringtrue("gate", "--run", "runs/standard").code == 0
    assert repository.baseline == before


def test_evaluating_and_judging_in_one_go_gives_the_same_verdict(repository, ringtrue) -> None:
    repository.write(ringtrue_toml=FUNCTION)
    ended = ringtrue("gate", "--json")
    assert ended.code == 1
    assert ended.json["failures"][0]["queries"] == ["q-anchor", "q-engine", "q-kettle"]
    assert open_run(ended.json["run_dir"]).metrics["R@5"] == 0.75
    assert ringtrue("baseline", "update", "--json").json["run_dir"] == ended.json["run_dir"]


def test_no_baseline_is_a_missing_arm_and_one_that_was_named_is_bad_input(repository, ringtrue) -> None:
    repository.path("ringtrue-baseline.json").unlink()
    ended = ringtrue("gate", "--run", "runs/standard")
    assert ended.code == 3
    assert "record one with `ringtrue baseline update --run runs/standard`" in ended.out
    assert ringtrue("gate", "--run", "runs/standard", "--no-baseline").code == 0
    named = ringtrue("gate", "--run", "runs/standard", "--baseline", "nowhere.json")
    assert (named.code, named.out) == (2, "")
    assert "nowhere.json: there is no such file" in named.err


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"ringtrue-baseline_json": "<<<<<<< ours\n"}, "ringtrue-baseline.json:1"),
        ({"ringtrue-baseline_json": '{"format": 9}'}, "update Ringtrue"),
        ({"ringtrue_toml": "[gate.floors]\n'nDGC@5' = 0.8\n"}, "did you mean 'nDCG'"),
        ({"ringtrue_toml": "[gate]\nmode = 'strict'\n"}, "'relative' or 'statistical'"),
    ],
)
def test_a_broken_file_exits_2_in_one_line(repository, ringtrue, files, says) -> None:
    repository.write(**files)
    ended = ringtrue("gate", "--run", "runs/standard")
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_nothing_moved_is_a_patch_and_a_version_can_be_given(repository, ringtrue) -> None:
    update = ("baseline", "update", "--run", "runs/standard")
    assert ringtrue(*update, "--json").json["version"] == "1.0.1"
    assert ringtrue(*update, "--version", "2.0.0", "--json").json["version"] == "2.0.0"
    assert ringtrue("baseline", "show", "--json").json["version"] == "2.0.0"
    before = repository.baseline
    wrong = ringtrue(*update, "--version", "two")
    assert (wrong.code, wrong.out) == (2, "")
    assert "'two'" in wrong.err
    assert repository.baseline == before


def test_another_golden_set_is_undecided_until_the_baseline_is_updated(repository, ringtrue) -> None:
    repository.path("golden.json").unlink()
    save(golden(anchor="what holds a ship on the sea bed"), repository.path("golden.json"))
    ended = ringtrue("gate", "--out", "runs/new")
    assert ended.code == 3
    assert "was recorded on another state or selection of things-v1.0.0" in ended.out
    assert ringtrue("baseline", "update", "--run", "runs/new").code == 0
    assert ringtrue("gate", "--run", "runs/new").code == 0


def test_a_committed_run_is_not_judged_once_the_search_has_changed(repository, ringtrue) -> None:
    named = ("gate", "--run", "runs/standard", "--retriever")
    assert ringtrue(*named, "bm25").code == 0
    changed = ringtrue(*named, "bm25(title=1)")
    assert changed.code == 3
    assert "the run is not of this retriever" in changed.out
    assert "ringtrue eval --out runs/standard" in changed.out


def test_a_watched_file_is_part_of_what_was_run(repository, ringtrue) -> None:
    repository.write(weights_txt="1")
    watch = ("--retriever", "bm25", "--watch", "weights.txt")
    assert ringtrue("eval", "--out", "runs/watched", "--no-report", *watch).code == 0
    assert ringtrue("gate", "--run", "runs/watched", *watch).code == 0
    repository.write(weights_txt="2")
    assert ringtrue("gate", "--run", "runs/watched", *watch).code == 3


def good(repository: Repository, *settings: str) -> None:
    """A search of the repository's own that is as good as the standard, named in ringtrue.toml alone."""
    more = "\n".join(settings)
    repository.write(search_py=GOOD, weights_txt="1", ringtrue_toml=FUNCTION.replace("allow =", f"{more}\nallow ="))


def test_a_search_that_only_the_file_names_is_checked_too(repository, ringtrue) -> None:
    good(repository, "watch = ['weights.txt']")
    assert ringtrue("eval", "--out", "runs/good", "--no-report").code == 0
    fresh = ringtrue("gate", "--run", "runs/good")
    assert fresh.code == 0, fresh.out
    repository.write(weights_txt="2")
    stale = ringtrue("gate", "--run", "runs/good")
    assert stale.code == 3
    assert "the run is not of this retriever" in stale.out
    assert "a watched file changed since" in stale.out
    assert "ringtrue eval --out runs/good" in stale.out


def test_a_run_of_another_search_than_the_named_one_proves_nothing(repository, ringtrue, monkeypatch) -> None:
    good(repository)
    other = ringtrue("gate", "--run", "runs/standard")
    assert other.code == 3
    assert "it is a run of bm25(" in other.out
    assert ", not of find" in other.out
    assert ringtrue("gate", "--run", "runs/standard", "--retriever", "bm25").code == 0, "a flag wins over the file"
    monkeypatch.setenv("RINGTRUE_GATE_RETRIEVER", "bm25")
    assert ringtrue("gate", "--run", "runs/standard").code == 0, "and so does the environment"
    assert ringtrue("gate", "--run", "runs/standard", "--python", "search.py:find").code == 3, "over which a flag wins"
    monkeypatch.delenv("RINGTRUE_GATE_RETRIEVER")
    monkeypatch.setenv("RINGTRUE_EVAL_RETRIEVER", "bm25(title=1)")
    assert ringtrue("gate", "--run", "runs/standard").code == 3
    monkeypatch.setenv("RINGTRUE_EVAL_RETRIEVER", "bm25")
    assert ringtrue("gate", "--run", "runs/standard").code == 0


@pytest.mark.parametrize("selected", [(), ("--split", "tuning"), ("--sample", "0.5")], ids=["all", "split", "sample"])
def test_a_run_on_a_golden_set_that_has_changed_since_proves_nothing(repository, ringtrue, selected) -> None:
    assert ringtrue("eval", "--out", "runs/part", "--no-report", *selected).code == 0
    judge = ("gate", "--run", "runs/part", "--no-baseline", "--json")
    assert ringtrue(*judge).code == 0
    asked = [query.query_id for query in open_run("runs/part").queries]
    save(golden(**{asked[0].removeprefix("q-"): "something else"}), repository.path("golden.json"), overwrite=True)
    stale = ringtrue(*judge)
    assert stale.code == 3
    (check,) = [one for one in stale.json["checks"] if one["status"] == "undecided"]
    assert (check["measure"], "has changed since" in check["message"]) == ("golden set", True)


def test_a_run_over_documents_that_have_changed_since_proves_nothing(repository, ringtrue) -> None:
    (repository.folder / "texts").mkdir()
    for name, text in THINGS.items():
        repository.path(f"texts/{name}.txt").write_text(text)
    ingest = ("ingest", "texts", "--into", "index", "--retriever", "bm25", "--remove-missing")
    assert ringtrue(*ingest).code == 0
    judged = "".join(
        f"  - {{query_id: {name}, query_text: {name}, relevant_docs: [{{doc_id: texts/{name}.txt, grade: 3}}]}}\n"
        for name in THINGS
    )
    repository.path("own.yaml").write_text(f"id: own\nversion: 1.0.0\nqueries:\n{judged}")
    repository.write(ringtrue_toml=NOTE.replace("golden.json'", "own.yaml'\nfolder = 'index'"))
    assert ringtrue("eval", "--out", "runs/own", "--no-report").code == 0
    assert ringtrue("gate", "--run", "runs/own", "--no-baseline").code == 0
    repository.path("texts/anchor.txt").write_text("something else")
    assert ringtrue(*ingest).code == 0
    stale = ringtrue("gate", "--run", "runs/own", "--no-baseline")
    assert stale.code == 3
    assert "the searched documents changed since" in stale.out


def test_a_run_of_routed_searches_is_checked_like_any_other(repository, ringtrue) -> None:
    routed = NOTE.replace("retriever = 'bm25'", "route = ['factual=bm25']\nroute_by = 'query_type'")
    repository.write(ringtrue_toml=routed)
    assert ringtrue("eval", "--out", "runs/routed", "--no-report").code == 0
    assert ringtrue("gate", "--run", "runs/routed").code == 0
    repository.write(ringtrue_toml=routed.replace("=bm25'", "=bm25(title=1)'"))
    assert ringtrue("gate", "--run", "runs/routed").code == 3


def test_where_nothing_is_named_the_gate_says_that_it_cannot_check(repository, ringtrue) -> None:
    repository.write(ringtrue_toml=NOTE.replace("retriever = 'bm25'", "").replace("golden = 'golden.json'", ""))
    ended = ringtrue("gate", "--run", "runs/standard", "--json")
    assert ended.code == 0
    assert [text.split(":")[0] for text in ended.json["notes"][:2]] == [
        "cannot check that this run is of the current search", "cannot check that this run is of the current golden set",
    ]  # fmt: skip


def test_an_evaluation_from_the_cache_is_told(repository, ringtrue) -> None:
    fresh = ringtrue("gate", "--no-cache", "--json")
    assert fresh.json["cached"] is False
    again = ringtrue("gate", "--json")
    assert again.json["cached"] is True
    assert any("from the cache, recorded at 20" in text for text in again.json["notes"])
    assert "from the cache" in ringtrue("gate").err
    assert "from the cache" not in ringtrue("gate", "--no-cache").err


def test_the_table_shows_what_each_measure_must_keep_to(repository, ringtrue) -> None:
    repository.write(ringtrue_toml=FUNCTION + "p95 = 500\n")
    gate = ("gate", "--run", "runs/worse", "--floor", "Success@1=0.1")
    shown = ringtrue(*gate).out
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.split()}
    assert (rows["R@5"][1:4], rows["R@5"][-1]) == (["1.0000", "0.7500", "-0.2500"], "FAIL")
    assert "R@5 fell by 25.0 % against baseline 1.0.0 (1.0000 → 0.7500; 5 % allowed)" in shown
    assert rows["Success@1"][1:4] == ["1.0000", "0.7500", "-0.2500"], "a floor alone, with what it was"
    assert rows["Success@1"][-2:] == ["0.1000", "PASS"]
    assert re.search(r"^latency: .*p95 [\d.]+ ms \([^)]*PASS\)", shown, re.MULTILINE)
    record = ringtrue(*gate, "--json").json
    (fall,) = [one for one in record["checks"] if (one["measure"], one["rule"]) == ("R@5", "drop")]
    assert fall["threshold"] == pytest.approx(0.95)


def test_reports_are_written_by_their_ending_and_a_wrong_one_is_told_first(repository, ringtrue) -> None:
    names = ["gate.md", "gate.html", "gate.json", "junit.xml", "gate.sarif"]
    ended = ringtrue("gate", "--run", "runs/worse", *(part for name in names for part in ("--report", f"out/{name}")))
    assert ended.code == 1
    for name in names:
        assert "q-engine" in repository.path(f"out/{name}").read_text(), name
    assert "<failure" in repository.path("out/junit.xml").read_text()
    wrong = ringtrue("gate", "--run", "runs/worse", "--report", "gate.pdf")
    assert (wrong.code, wrong.out) == (2, "")
    assert "gate.pdf" in wrong.err


def test_a_flag_wins_over_the_file_and_a_floor_can_be_taken_out(repository, ringtrue) -> None:
    repository.write(ringtrue_toml=FUNCTION)
    loose = ("gate", "--run", "runs/worse", "--max-drop", "0.5")
    assert ringtrue(*loose).code == 1
    assert ringtrue(*loose, "--floor", "R@5=off", "--floor", "RR=off").code == 0
    assert ringtrue(*loose, "--floor", "R@5=0.75", "--floor", "RR=0.5").code == 0
    assert ringtrue(*loose, "--floor", "R@5").code == 2


def test_a_plain_baseline_of_another_tool_is_understood(repository, ringtrue) -> None:
    plain = {
        "version": "1.0.0",
        "recorded_at": "2026-01-04",
        "metrics": {"recall_at_5": 0.9, "mrr": 0.9, "latency": {"p95": 420}},
    }
    repository.path("plain.json").write_text(json.dumps(plain))
    ended = ringtrue("gate", "--run", "runs/worse", "--baseline", "plain.json", "--floor", "R@5=off", "--floor", "RR=off")
    assert ended.code == 1
    assert "R@5 fell by 16.7 % against baseline 1.0.0 (0.9000 → 0.7500; 5 % allowed)" in ended.out
