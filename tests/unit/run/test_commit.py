"""What git says about the code that was measured: the commit of an experiment, the name of a run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ringtrue.run import branch_and_commit, commit_of, open_run

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path) -> Git:
    def run(*arguments: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    return run


def test_the_commit_is_marked_if_dirty_and_none_outside_a_repository(tmp_path: Path, git: Git) -> None:
    assert commit_of(tmp_path) is None
    git("init")
    assert commit_of(tmp_path) is None  # no commit yet
    (tmp_path / "search.py").write_text("k = 1\n")
    ledger = tmp_path / "experiments.json"
    ledger.write_text("{}\n")
    git("add", "search.py", "experiments.json")
    git("commit", "-m", "first")
    clean = commit_of(tmp_path)
    assert clean is not None
    assert len(clean) == 40
    ledger.write_text('{"experiments": []}\n')
    (tmp_path / "notes.txt").write_text("not tracked\n")
    assert commit_of(tmp_path, beside=ledger) == clean
    assert commit_of(tmp_path) == f"{clean}-dirty"
    (tmp_path / "search.py").write_text("k = 2\n")
    assert commit_of(tmp_path, beside=ledger) == f"{clean}-dirty"


def test_without_git_the_commit_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path) is None
    assert branch_and_commit(tmp_path) is None


def test_a_run_is_named_by_branch_and_commit(tmp_path: Path, git: Git) -> None:
    assert branch_and_commit(tmp_path) is None
    git("init", "--initial-branch", "faster/ranking")
    assert branch_and_commit(tmp_path) is None  # no commit yet
    (tmp_path / "search.py").write_text("k = 1\n")
    git("add", "search.py")
    git("commit", "-m", "first")
    git("tag", "-a", "-m", "a tag does not replace the commit", "v1")
    commit = git("rev-parse", "--short", "HEAD")
    assert branch_and_commit(tmp_path) == f"faster/ranking@{commit}"
    (tmp_path / "notes.txt").write_text("not tracked\n")
    assert branch_and_commit(tmp_path) == f"faster/ranking@{commit}"
    (tmp_path / "search.py").write_text("k = 2\n")
    assert branch_and_commit(tmp_path) == f"faster/ranking@{commit}+changes"
    git("checkout", "--detach", "--force")
    assert branch_and_commit(tmp_path) == commit


def test_eval_names_its_run_and_tables_reports_and_comparisons_use_the_name(
    tmp_path: Path, git: Git, ringtrue: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = ringtrue("eval", "-g", "hotel", "-r", "bm25", "--no-report", "-o", "none")
    assert "\nbm25 on hotel-v1.0.0" in plain.out
    git("init", "--initial-branch", "main")
    (tmp_path / "search.py").write_text("k = 1\n")
    git("add", "search.py")
    git("commit", "-m", "first")
    commit = f"main@{git('rev-parse', '--short', 'HEAD')}"
    found = ringtrue("eval", "-g", "hotel", "-r", "bm25", "-o", "auto", "--html", "auto.html")
    assert f"\n{commit}: bm25 on hotel-v1.0.0" in found.out
    assert ringtrue("eval", "-g", "hotel", "-r", "fts5", "--name", "full text", "--no-report", "-o", "given").code == 0
    assert [(one.name, one.search) for one in map(open_run, ("none", "auto", "given"))] == [
        ("bm25", "bm25"), (commit, "bm25"), ("full text", "fts5"),
    ]  # fmt: skip
    # A name decides nothing: the second run came from the cache of the first.
    assert open_run("auto").setup.fingerprint == open_run("none").setup.fingerprint
    assert "answers from the cache" in found.err
    (report,) = Path("reports").iterdir()
    assert f"# Ringtrue evaluation: {commit}" in report.read_text()
    assert f": {commit} on hotel-v1.0.0</title>" in Path("auto.html").read_text()
    compared = ringtrue("compare", "auto", "given").out
    assert commit in compared
    assert "full text" in compared
    assert ringtrue("gate", "--run", "auto", "-g", "hotel", "-r", "bm25", "--no-baseline", "--json").json["name"] == commit
