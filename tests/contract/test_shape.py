"""The package keeps its shape: each figure of `python tests/shape.py` has a limit, and limits only go down."""

from __future__ import annotations

import ast

import pytest

from shape import TABLE, figures, is_command, modules, parameters, rings, side_doors

MEASURED = figures()


def test_every_figure_has_a_limit() -> None:
    assert set(TABLE) == set(MEASURED)


@pytest.mark.parametrize("figure", TABLE)
def test_figure_stays_within_its_limit(figure: str) -> None:
    assert MEASURED[figure] <= TABLE[figure][1], f"{figure}: simplify instead of raising the limit"


def test_rings_are_groups_of_modules_that_import_each_other() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert rings(graph) == [["a", "b", "c"], ["d", "e"]]


def test_a_side_door_is_an_import_from_another_room_past_its_front() -> None:
    graph = {"ringtrue.ci.job": {"ringtrue.verdict.gating", "ringtrue.verdict", "ringtrue.ci.web", "ringtrue.errors"}}
    assert side_doors(graph) == [("ringtrue.ci.job", "ringtrue.verdict.gating")]


def test_parameters_are_counted_without_self_and_commands_are_told_apart() -> None:
    body = ast.parse("@app.command()\ndef run(self, a, /, b, *rest, c, **more): ...\ndef other(): ...").body
    command, other = (node for node in body if isinstance(node, ast.FunctionDef))
    assert parameters(command) == 5
    assert is_command(command)
    assert not is_command(other)


def test_no_front_door_exports_a_name_that_a_module_behind_it_has() -> None:
    """Importing the module later would replace the function of that name: "'module' object is not callable"."""
    clashes = [
        f"{name}.{node.name}"
        for name, (file, tree) in modules().items()
        if file.name == "__init__.py"
        for statement in ast.walk(tree)
        if isinstance(statement, ast.ImportFrom)
        and f"{statement.module}" != name  # a package that offers its modules as they are
        for node in statement.names
        if (file.parent / f"{node.name}.py").exists() or (file.parent / node.name).is_dir()
    ]
    assert clashes == []
