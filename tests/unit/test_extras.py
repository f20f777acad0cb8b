"""Extras are installed from where Ringtrue itself came from."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from ringtrue import extras
from ringtrue.extras import InstallSource, install_command, read_source

COMMIT = "4f2a9c1d"
GIT = {
    "url": "https://git.example.com/search/ringtrue.git",
    "vcs_info": {"vcs": "git", "requested_revision": "v0.1.0", "commit_id": COMMIT},
}
WHEEL = "https://files.example.com/ringtrue-0.1.0-py3-none-any.whl"


@pytest.mark.parametrize(
    ("direct_url", "requirement", "local"),
    [
        (None, "ringtrue[http]==0.1.0", False),
        ("{broken", "ringtrue[http]==0.1.0", False),
        (json.dumps(GIT), f"ringtrue[http] @ git+https://git.example.com/search/ringtrue.git@{COMMIT}", False),
        (json.dumps({"url": WHEEL.replace("//", "//ada:secret@")}), f"ringtrue[http] @ {WHEEL}", False),
        (json.dumps({"url": WHEEL, "archive_info": {}}), f"ringtrue[http] @ {WHEEL}", False),
        (
            json.dumps({**GIT, "subdirectory": "python"}),
            f"ringtrue[http] @ git+https://git.example.com/search/ringtrue.git@{COMMIT}#subdirectory=python",
            False,
        ),
        (json.dumps({"url": "file:///src/my%20ringtrue", "dir_info": {"editable": True}}), "/src/my ringtrue[http]", True),
        (json.dumps({"url": "file:///w/ringtrue-0.1.0-py3-none-any.whl"}), "/w/ringtrue-0.1.0-py3-none-any.whl[http]", True),
        (
            json.dumps({"url": "file:///src/ringtrue", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}),
            f"ringtrue[http] @ git+file:///src/ringtrue@{COMMIT}",
            True,
        ),
    ],
)
def test_a_requirement_names_where_ringtrue_came_from(direct_url, requirement, local) -> None:
    source = read_source(direct_url, "0.1.0")
    assert source.requirement(["http"]) == requirement
    assert source.requirement([]) == requirement.replace("[http]", "")
    assert source.local is local


def test_the_command_can_be_pasted_into_a_shell(monkeypatch, tmp_path) -> None:
    folder = tmp_path / "my ringtrue"
    folder.mkdir()
    monkeypatch.setattr(extras, "installed_source", lambda: InstallSource(str(folder), editable=True))
    assert install_command("http", "mcp") == f"pip install -e '{folder}[http,mcp]'"
    monkeypatch.setattr(extras, "installed_source", lambda: InstallSource("==0.1.0"))
    assert install_command("http") == "pip install 'ringtrue[http]==0.1.0'"


def test_a_folder_that_is_gone_is_not_named(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(extras, "installed_source", lambda: InstallSource(str(tmp_path / "gone")))
    assert install_command("http") == "pip install 'WHERE[http]', where WHERE is your folder or wheel of Ringtrue"


def test_no_message_names_an_extra_in_any_other_way(root) -> None:
    written = [path for path in (root / "src").rglob("*.py") if re.search(r"pip install '?\"?ringtrue", path.read_text())]
    assert written == []
    named = {
        name
        for path in (root / "src").rglob("*.py")
        for name in re.findall(r"""(?:install_command\('|library\("[\w.]+", ")(\w+)""", path.read_text())
    }
    assert named <= set(tomllib.loads(Path(root / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    assert len(named) > 6
