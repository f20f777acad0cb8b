"""The examples in README and docs are run: their output is what the reader will see."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```pycon" in page.read_text(encoding="utf-8")], ids=lambda page: page.name
)
def test_python_examples_run(page: Path) -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
    assert test.examples
    report: list[str] = []
    outcome = doctest.DocTestRunner().run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)


CONSOLE = [
    (page, block)
    for page in PAGES
    for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
]


@pytest.mark.parametrize(("page", "block"), CONSOLE, ids=lambda value: value.name if isinstance(value, Path) else None)
def test_console_examples_run(page: Path, block: str, ringtrue, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    for command, expected in re.findall(r"^\$ ringtrue (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        outcome = ringtrue(*shlex.split(command))
        assert outcome.code == 0, outcome.err
        assert outcome.out == expected


def test_first_screen_shows_the_two_commands_and_both_examples() -> None:
    screen = "\n".join((ROOT / "README.md").read_text(encoding="utf-8").split("\n")[:45])
    for wanted in ("make demo", "make test", "```pycon", "```console", "$ ringtrue "):
        assert wanted in screen
    assert CONSOLE


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)} → {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_commands_in_the_readme_exist(ringtrue) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^ringtrue ((?:golden )?[a-z-]+)", text, re.MULTILINE))
    assert named
    for words in named:
        assert ringtrue(*words.split(), "--help").code == 0, words
