"""Optional packages, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ringtrue.errors import MissingInput
from ringtrue.extras import install_command


def library(module: str, extra: str, *, package: str = "") -> Any:
    """Return a module of an optional package; raises MissingInput with the command that installs it."""
    try:
        return import_module(module)
    except ImportError as problem:
        name = package or (problem.name or module).partition(".")[0]
        raise MissingInput(f"{name} is not installed; {install_command(extra)}") from problem
