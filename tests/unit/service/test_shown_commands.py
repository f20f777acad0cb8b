"""Every command line that a page shows is one that the program understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from ringtrue.cli import app
from ringtrue.service.pages.shell import TEMPLATES

LINE = re.compile(r'(?:command=|commandline\()"(ringtrue [^"]*)"')
NAMED = re.compile(r"(?:<code>|`)(ringtrue [^`<]*)(?:</code>|`)")
JOINED = re.compile(r'"\s*~\s*[\w.]+\s*~\s*"|"\s*~\s*[\w.]+(?=[\s,)])')


def shown(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """Return (template, command line); what a page fills in stands there as a name."""
    found = []
    for file in sorted(TEMPLATES.glob("*.jinja")):
        text = JOINED.sub(lambda part: "name" if part[0].endswith('"') else 'name"', file.read_text(encoding="utf-8"))
        found += [(file.name, line) for line in pattern.findall(text)]
    return found


def understood(line: str) -> tuple[list[str], dict[str, Any]]:
    """Return the command that a line names and what it is given; raises what the command line raises for a wrong one."""
    command: Any = typer.main.get_command(app)
    rest, names = shlex.split(line)[1:], []
    context = None
    while hasattr(command, "commands"):
        context = command.make_context(names[-1] if names else "ringtrue", rest, parent=context)
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        names.append(name)
    # Whoever asks for help need not give the rest.
    asked = "--help" in rest
    made = command.make_context(names[-1], [word for word in rest if word != "--help"], parent=context, resilient_parsing=asked)
    return names, made.params


def test_the_lines_to_copy_are_whole_commands() -> None:
    lines = shown(LINE)
    assert len(lines) >= 15
    for template, line in lines:
        try:
            names, given = understood(line)
        except Exception as problem:
            pytest.fail(f"{template}: `{line}` is refused: {problem}")
        for run in given.get("runs", ()) if names == ["compare"] else ():
            assert Path(run).suffix or "/" in run, f"{template}: '{run}' is an expression; compare reads folders and files"


def test_commands_that_a_sentence_names_are_there() -> None:
    names = [(template, line.split()[1:3]) for template, line in shown(NAMED)]
    assert names
    groups: Any = typer.main.get_command(app)
    for template, (first, *more) in names:
        assert first in groups.commands, f"{template}: there is no command {first}"
        inner = getattr(groups.commands[first], "commands", None)
        if inner is not None and more:
            assert more[0] in inner, f"{template}: there is no command {first} {more[0]}"
