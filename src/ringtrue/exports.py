"""Packages whose names are imported on first use, from one list of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that exports names without importing them.

    The package lists each name once, as ``from module import name as name`` under ``if TYPE_CHECKING:``. Type checkers read
    that list as it stands. This function reads it from the source when the first name is asked for.
    """

    @cache
    def home() -> dict[str, str]:
        import ast  # only now: a package that nobody asks for a name must cost nothing
        from inspect import getsource

        imports = [node for node in ast.walk(ast.parse(getsource(sys.modules[package]))) if isinstance(node, ast.ImportFrom)]
        return {name.name: str(one.module) for one in imports for name in one.names if name.asname == name.name}

    def get(name: str) -> Any:
        if name == "__all__":
            return list(home())
        if name.startswith("__") or name not in home():
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(home()[name]), name)

    return get, lambda: sorted(home())
