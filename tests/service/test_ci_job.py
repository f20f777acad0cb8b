"""`ringtrue ci` end to end, as a workflow runs it, in a real git repository, against a server that speaks GitHub's API."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forges import ACTIONS, Forge, GitHubHandler, GitLabHandler, serving
from ringtrue.ci import checkout, evaluate_in
from ringtrue.errors import InputError

TOKEN = "ghs_secret-of-the-workflow"
GOOD = """
ANSWERS = {"swim": ["pool", "spa"], "eat": ["bar", "pool"], "drink": ["bar"], "sweat": ["spa"]}


def find(text, k):
    return ANSWERS[text][:k]
"""
BAD = GOOD.replace('["pool", "spa"]', '["spa", "lift"]').replace('["bar"]', '["lift"]')
GOLDEN = {"swim": ["pool"], "eat": ["bar"], "drink": ["bar"], "sweat": ["spa"]}
SETTINGS = """
[eval]
golden = "golden/hotel.yaml"
python = "search.py:find"
allow = ["depth"]

[gate]
minimum_queries = 4
latency_increase = inf
[gate.floors]
"R@5" = 0.5
"""


def git(*arguments: str) -> str:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *who, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def write_golden(extra: str = "") -> None:
    rows = "".join(
        f"  - {{query_id: {text}, query_text: {text}, relevant_docs: [{{doc_id: {found[0]}, grade: 3, source: manual}}]}}\n"
        for text, found in GOLDEN.items()
    )
    Path("golden").mkdir(exist_ok=True)
    Path("golden/hotel.yaml").write_text(f"id: hotel\nversion: 1.0.0\nqueries:\n{rows}{extra}")


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A repository whose search is its own code, with a commit on main."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith(("GITHUB_", "GITLAB_", "CI", "RINGTRUE_", "GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Path("ringtrue.toml").write_text(SETTINGS)
    Path("search.py").write_text(GOOD)
    write_golden()
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "a search")
    return folder


@pytest.fixture
def workflow(repository, tmp_path, monkeypatch) -> Iterator[Forge]:
    """The environment of a pull_request workflow, and the GitHub that it talks to."""
    with serving(Forge({TOKEN: ACTIONS}, "shop/search#7"), GitHubHandler) as forge:
        (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
        for name, value in {
            "GITHUB_ACTIONS": "true",
            "GITHUB_REPOSITORY": "shop/search",
            "GITHUB_API_URL": forge.url,
            "GITHUB_EVENT_PATH": tmp_path / "event.json",
            "GITHUB_STEP_SUMMARY": tmp_path / "summary.md",
            "GITHUB_OUTPUT": tmp_path / "output",
            "GITHUB_TOKEN": TOKEN,
        }.items():
            monkeypatch.setenv(name, str(value))
        yield forge


def outputs(tmp_path: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())


def evaluated(ringtrue: Callable, folder: str) -> str:
    """A run to judge: quicker than a process of its own, where evaluating is not the point."""
    assert ringtrue("eval", "--out", folder, "--no-report").code == 0
    return folder


def record_baseline(ringtrue: Callable) -> None:
    assert ringtrue("baseline", "update", "--run", evaluated(ringtrue, "first")).code == 0


def test_a_change_that_holds_passes_and_the_comment_follows_every_push(ringtrue, workflow, tmp_path) -> None:
    record_baseline(ringtrue)
    outcome = ringtrue("ci")
    assert outcome.code == 0, outcome.err
    assert outcome.out.splitlines()[2].startswith("Against baseline 1.0.0: not enough evidence; all 4 differences are 0")
    (body,) = workflow.bodies()
    assert "PASS" in body.splitlines()[1]
    assert "| R@5 | 1.0000 | 1.0000 |" in body
    assert "PASS" in (tmp_path / "summary.md").read_text()
    assert outputs(tmp_path) == {
        "verdict": "pass", "exit-code": "0", "report": "ringtrue-out/report.md", "sarif": "ringtrue-out/ringtrue.sarif",
    }  # fmt: skip
    for name in ("report.md", "report.html", "report.json", "junit.xml", "ringtrue.sarif", "comment.md", "head/run.json"):
        assert (Path("ringtrue-out") / name).stat().st_size > 100, name

    Path("search.py").write_text(BAD)  # the next push to the same pull request
    outcome = ringtrue("ci")
    assert outcome.code == 1
    (body,) = workflow.bodies()
    assert "FAIL" in body.splitlines()[1]
    assert outcome.out.startswith("FAIL: 5 of 9 checks failed against baseline 1.0.0: R@5")
    assert re.match(r"main@[0-9a-f]+\+changes: .* on hotel-v1\.0\.0; k = \d+; mode relative", outcome.out.splitlines()[1])
    assert re.match(r"Against baseline 1\.0\.0: .*, nDCG@10 −0\.\d{4} \(.* → .*, 95 % interval ", outcome.out.splitlines()[2])
    assert (
        "  R@5 fell by 50.0 % against baseline 1.0.0 (1.0000 → 0.5000; 5 % allowed)\n    drink  1.0000 → 0.0000\n"
        in outcome.out
    )
    assert outputs(tmp_path)["verdict"] == "fail"
    assert TOKEN not in outcome.out + outcome.err + body


def test_base_and_head_are_evaluated_in_one_job_each_with_its_own_code(ringtrue, workflow, tmp_path) -> None:
    Path("search.py").write_text(BAD)
    outcome = ringtrue("ci", "--base-ref", "main", "--json")
    assert outcome.code == 1, outcome.err
    assert outcome.json["verdict"] == "fail"
    assert any(text.startswith("R@5 fell by 50.0 %") for text in outcome.json["reasons"])
    assert outcome.json["reason"].startswith(outcome.json["reasons"][0])
    assert {"drink", "swim"} <= set(outcome.json["failures"][0]["queries"])
    body = workflow.bodies()[0]
    assert "| R@5 | 1.0000 | 0.5000 |" in body
    assert git("rev-parse", "HEAD")[:10] in body
    assert git("worktree", "list").count("\n") == 0, "the second checkout is gone"
    assert not Path("ringtrue-baseline.json").exists()


def test_both_sides_answer_the_questions_of_the_change(ringtrue, workflow) -> None:
    """A query that the change adds is no difference between the two searches."""
    write_golden("  - {query_id: n, query_text: swim, relevant_docs: [{doc_id: pool, grade: 3, source: manual}]}\n")
    commit = git("rev-parse", "HEAD").strip()
    outcome = ringtrue("ci", "--base-ref", commit, "--json")
    assert outcome.code == 0, outcome.err
    sides = [json.loads((Path("ringtrue-out") / side / "run.json").read_text()) for side in ("base", "head")]
    assert "n" in json.dumps(sides[0])
    assert "not in this run" not in workflow.bodies()[0]
    assert commit not in workflow.bodies()[0], "ten characters name it"
    assert workflow.bodies()[0].count("retriever: ") == 1


def test_a_base_that_cannot_be_evaluated_leaves_the_job_undecided(ringtrue, workflow, tmp_path) -> None:
    Path("search.py").write_text("import no_such_module\n")
    git("commit", "--quiet", "--all", "--message", "broken")
    Path("search.py").write_text(GOOD)
    outcome = ringtrue("ci", "--base-ref", "HEAD")
    assert outcome.code == 3
    assert "the base HEAD" in outcome.out
    assert "no_such_module" in workflow.bodies()[0]
    assert outputs(tmp_path)["verdict"] == "undecided"


def test_a_search_that_breaks_replaces_the_verdict_of_the_last_push(ringtrue, workflow, tmp_path) -> None:
    record_baseline(ringtrue)
    assert ringtrue("ci", "--run", "first").code == 0
    Path("search.py").write_text("import no_such_module\n")
    outcome = ringtrue("ci")
    assert outcome.code == 2
    (body,) = workflow.bodies()
    assert "could not run" in body
    assert "PASS" not in body
    assert outputs(tmp_path)["exit-code"] == "2"


def test_an_internal_error_does_not_leave_an_old_verdict_standing(ringtrue, workflow, monkeypatch) -> None:
    record_baseline(ringtrue)
    assert ringtrue("ci", "--run", "first").code == 0

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("ringtrue.report.html", broken)
    outcome = ringtrue("ci", "--run", "first")
    assert outcome.code == 3
    assert "internal error: ZeroDivisionError: planted" in outcome.err
    assert "planted" in workflow.bodies()[0]


@pytest.mark.parametrize(("change", "code"), [(GOOD, 0), (BAD, 1)], ids=["holds", "regresses"])
@pytest.mark.parametrize("trouble", ["fork", "expired", "outage", "no token"])
def test_trouble_with_the_comment_never_masks_the_verdict_nor_the_other_way_round(
    ringtrue, workflow, monkeypatch, change, code, trouble
) -> None:
    record_baseline(ringtrue)
    Path("search.py").write_text(change)
    if trouble == "fork":
        workflow.read_only = {TOKEN}
    elif trouble == "expired":
        workflow.tokens.clear()
    elif trouble == "no token":
        monkeypatch.delenv("GITHUB_TOKEN")
    else:
        monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
        monkeypatch.setattr("ringtrue.ci.forges.ATTEMPTS", 1)
    outcome = ringtrue("ci", "--run", evaluated(ringtrue, "second"))
    assert outcome.code == code, outcome.err
    wanted = {
        "fork": "read-only token",
        "expired": "token is not accepted",
        "outage": "cannot be reached",
        "no token": "GITHUB_TOKEN",
    }
    assert wanted[trouble] in outcome.err
    assert TOKEN not in outcome.out + outcome.err


def test_without_a_baseline_the_job_cannot_decide_and_says_how_to_record_one(ringtrue, workflow) -> None:
    outcome = ringtrue("ci", "--run", evaluated(ringtrue, "first"))
    assert outcome.code == 3
    assert "baseline update" in workflow.bodies()[0]
    assert "could not be decided:\n  no baseline, so R@5" in outcome.out
    told = ringtrue("ci", "--run", "first", "--json").json
    assert told["reason"].startswith("no baseline, so R@5")
    assert told["failures"] == []


def test_a_push_has_no_pull_request_and_that_is_fine(ringtrue, workflow, tmp_path) -> None:
    record_baseline(ringtrue)
    (tmp_path / "event.json").write_text('{"ref": "refs/heads/main"}')
    outcome = ringtrue("ci", "--run", "first")
    assert outcome.code == 0
    assert "there is no pull request here" in outcome.err
    assert workflow.requests == []
    assert ringtrue("ci", "--run", "first", "--no-comment").err.count("no comment") == 0


def test_the_setup_runs_on_each_side_without_the_token(ringtrue, workflow) -> None:
    setup = 'test -z "$GITHUB_TOKEN" && echo "from $PWD" > came.txt && ringtrue --version'
    Path("search.py").write_text(GOOD.replace("def find", "open('came.txt').close()\n\n\ndef find"))
    git("commit", "--quiet", "--all", "--message", "needs a set-up")
    outcome = ringtrue("ci", "--base-ref", "HEAD", "--setup", setup)
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("ringtrue 0.") == 2
    failing = ringtrue("ci", "--setup", "echo first; echo no such index >&2; false")
    assert failing.code == 3
    assert "the set-up ended with 1: no such index" in failing.out


def test_a_file_of_the_repository_cannot_pose_as_a_library(tmp_path) -> None:
    (tmp_path / "typer.py").write_text("raise SystemExit('posed as typer')\n")
    said: list[str] = []
    evaluate_in(tmp_path, tmp_path / "run", options=["--help"], setup="", environment=os.environ, say=said.append)
    assert any("Example: ringtrue eval" in line for line in said)
    assert not any("posed" in line for line in said)


def test_a_committed_run_passes_until_the_search_changes(ringtrue, workflow) -> None:
    """For a search that CI cannot reach: nothing is asked, and a stale run is not proof."""
    Path("ringtrue.toml").write_text(SETTINGS.replace("allow =", 'watch = ["search.py"]\nallow ='))
    assert ringtrue("eval", "--out", "runs/committed", "--no-report").code == 0
    assert ringtrue("baseline", "update", "--run", "runs/committed").code == 0
    fresh = ringtrue("ci", "--run", "runs/committed")
    assert fresh.code == 0, fresh.out + fresh.err

    Path("search.py").write_text(GOOD + "# another line\n")
    stale = ringtrue("ci", "--run", "runs/committed")
    assert stale.code == 3
    assert "evaluate again" in workflow.bodies()[0]
    assert "fingerprint" in workflow.bodies()[0]

    Path("search.py").write_text(GOOD)
    write_golden("  - {query_id: n, query_text: swim, relevant_docs: [{doc_id: pool, grade: 3, source: manual}]}\n")
    outdated = ringtrue("ci", "--run", "runs/committed")
    assert outdated.code == 3
    assert "has changed since" in workflow.bodies()[0]


def test_a_flag_wins_over_the_search_in_the_file_on_both_ways(ringtrue, workflow) -> None:
    Path("other.py").write_text(GOOD.replace("def find", "def other"))
    record_baseline(ringtrue)
    assert ringtrue("ci", "--run", "first", "--python", "other.py:other").code == 3
    Path("ringtrue.toml").write_text(SETTINGS.replace('python = "search.py:find"', 'retriever = "bm25"'))
    assert ringtrue("ci", "--run", "first", "--python", "search.py:find").code == 0
    outcome = ringtrue("ci", "--python", "search.py:find", "--no-comment")
    assert outcome.code == 0, outcome.out + outcome.err


def test_options_arrive_as_variables_the_way_the_action_sends_them(ringtrue, workflow, monkeypatch) -> None:
    for name in ("GOLDEN", "RETRIEVER", "PYTHON", "BASELINE", "BASE_REF", "MODE", "SETUP", "KEY"):
        monkeypatch.setenv(f"RINGTRUE_CI_{name}", "")  # an input that was left out
    record_baseline(ringtrue)
    monkeypatch.setenv("RINGTRUE_CI_RUN", "first")
    monkeypatch.setenv("RINGTRUE_CI_OUT", "elsewhere")
    monkeypatch.setenv("RINGTRUE_CI_COMMENT", "false")
    outcome = ringtrue("ci")
    assert outcome.code == 0, outcome.err
    assert Path("elsewhere/report.html").exists()
    assert workflow.comments == []


def test_a_folder_below_the_root_is_found_in_the_base_too(monkeypatch, repository) -> None:
    (repository / "below").mkdir()
    for name in ("ringtrue.toml", "search.py", "golden"):
        git("mv", name, f"below/{name}")
    git("commit", "--quiet", "--message", "moved")
    monkeypatch.chdir(repository / "below")
    with checkout("HEAD", say=print) as (folder, _):
        assert (folder / "search.py").read_text() == GOOD
    with pytest.raises(InputError, match="has no folder below/"), checkout("HEAD~1", say=print):
        pass
    assert git("worktree", "list").count("\n") == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--base-ref", "HEAD", "--baseline", "b.json"], "give one of them"),
        (["--base-ref", "HEAD", "--run", "r"], "can be evaluated here"),
        (["--baseline", "nowhere.json"], "nowhere.json"),
        (["--run", "nowhere"], "nowhere"),
        (["--mode", "relativ"], "'relative'"),
    ],
)
def test_mistakes_end_with_2_and_their_cure(ringtrue, workflow, arguments, says) -> None:
    outcome = ringtrue("ci", *arguments)
    assert outcome.code == 2, outcome.out + outcome.err
    assert says in outcome.out + outcome.err


@pytest.mark.parametrize(
    ("ref", "says"),
    [("no-such-branch", "fetch-depth: 0"), ("--upload-pack=touch x", "is not a commit"), ("", "is not a commit")],
)
def test_a_base_that_git_does_not_know(repository, ref, says) -> None:
    with pytest.raises(InputError, match=says), checkout(ref, say=print):
        pass


def test_a_shallow_clone_fetches_the_base(repository, tmp_path, monkeypatch) -> None:
    first = git("rev-parse", "HEAD")
    Path("search.py").write_text(BAD)
    git("commit", "--quiet", "--all", "--message", "worse")
    git("clone", "--quiet", "--depth=1", f"file://{repository}", str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    with checkout(first, say=print) as (folder, commit):
        assert (folder / "search.py").read_text() == GOOD
        assert first.startswith(commit)


def test_gitlab_gets_its_note(ringtrue, repository, monkeypatch) -> None:
    with serving(Forge({"glpat": "project_1_bot"}, "42!3"), GitLabHandler) as forge:
        monkeypatch.setenv("CI_API_V4_URL", f"{forge.url}/api/v4")
        monkeypatch.setenv("CI_PROJECT_ID", "42")
        monkeypatch.setenv("CI_MERGE_REQUEST_IID", "3")
        record_baseline(ringtrue)
        assert "GITLAB_TOKEN" in ringtrue("ci", "--run", "first").err
        monkeypatch.setenv("GITLAB_TOKEN", "glpat")
        for _ in range(2):
            outcome = ringtrue("ci", "--run", "first")
            assert outcome.code == 0, outcome.err
        (body,) = forge.bodies("project_1_bot")
        assert "PASS" in body


def test_the_comment_command_posts_a_file_or_standard_input(ringtrue, workflow) -> None:
    Path("gate.md").write_text("<!-- ringtrue:report:docs -->\nPASS\n")
    assert ringtrue("comment", "gate.md").out.startswith("comment created: https://")
    assert ringtrue("comment", "-", "--key", "docs", "--json", stdin=b"FAIL").json["comment"] == "updated"
    assert workflow.bodies() == ["<!-- ringtrue:report:docs -->\nFAIL"]
    assert ringtrue("comment", "gate.md", "--number", "8").code == 2
    assert ringtrue("comment", "nowhere.md").code == 2
    assert ringtrue("comment", "-", stdin=b" ").code == 2
    assert "did you mean 'gitlab' or 'github'" in ringtrue("comment", "gate.md", "--on", "gitea").err
    workflow.read_only = {TOKEN}
    refused = ringtrue("comment", "gate.md")
    assert refused.code == 0
    assert "fork" in refused.err


def test_the_comment_command_outside_of_any_pipeline(ringtrue, repository) -> None:
    Path("gate.md").write_text("PASS")
    outcome = ringtrue("comment", "gate.md")
    assert outcome.code == 2
    assert "--repository and --number" in outcome.err
    assert "GITHUB_TOKEN" in ringtrue("comment", "gate.md", "--repository", "a/b", "--number", "1").err
