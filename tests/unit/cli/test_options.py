"""Options that commands share: a dataclass parameter becomes options, with names, defaults and help as if they stood there."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ringtrue.cli import show
from ringtrue.cli.lazy import spread


@dataclass(frozen=True)
class Shared:
    level: Annotated[int, typer.Option("--level", help="How far.")] = 2
    names: Annotated[list[str] | None, typer.Option("--name")] = None


def command(
    *, first: Annotated[str, typer.Argument()], shared: Shared, last: Annotated[bool, typer.Option("--last")] = False
) -> None:
    print(first, shared, last)


def test_fields_become_options_where_the_parameter_stands() -> None:
    assert list(inspect.signature(spread(command)).parameters) == ["first", "level", "names", "last"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (["a"], "a Shared(level=2, names=None) False"),
        (["a", "--level", "3", "--name", "x", "--name", "y", "--last"], "a Shared(level=3, names=['x', 'y']) True"),
    ],
)
def test_the_command_gets_the_record(given: list[str], shown: str) -> None:
    app = typer.Typer()
    app.command()(spread(command))
    assert CliRunner().invoke(app, given).stdout.strip() == shown


def test_a_command_without_a_record_stays_as_it_is() -> None:
    def plain(level: int = 1) -> None: ...

    assert spread(plain) is plain


def test_a_line_break_in_a_cell_makes_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    show.table(["session", "query"], [["s1\r\ns2  a made-up row", "pool"]])
    assert capsys.readouterr().out.splitlines()[1:] == ["s1\\r\\ns2  a made-up row   pool"]
