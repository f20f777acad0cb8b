"""The room keeps to itself: what it imports, and when."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ringtrue.stats

FILES = sorted(Path(ringtrue.stats.__file__).parent.glob("*.py"))


def imported(statements: list[ast.AST]) -> set[str]:
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            names.add(statement.module or "")
    return names


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_stats_imports_no_other_room(file: Path) -> None:
    names = imported(list(ast.walk(ast.parse(file.read_text("utf-8")))))
    own = {name for name in names if name.startswith("ringtrue")}
    assert all(name == "ringtrue.errors" or name.startswith("ringtrue.stats") for name in own), own


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_stats_imports_scipy_only_inside_functions(file: Path) -> None:
    at_import = imported(list(ast.parse(file.read_text("utf-8")).body))
    assert not {name for name in at_import if name.split(".")[0] == "scipy"}


def test_every_public_name_has_a_docstring_with_an_example_where_it_is_a_function() -> None:
    public_names = {
        name: value
        for name, value in vars(ringtrue.stats).items()
        if getattr(value, "__module__", "").startswith("ringtrue.stats.")
    }
    assert len(public_names) > 35
    for name, public in public_names.items():
        assert public.__doc__, name
        if not isinstance(public, type):
            assert ">>>" in public.__doc__, name
