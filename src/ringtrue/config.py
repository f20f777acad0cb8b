"""Settings: ``ringtrue.toml``, found upwards from the current folder, and the environment. The only reader of both.

A flag wins over the environment (``RINGTRUE_SCORE_LEVEL``), which wins over the file (``level = 2`` under ``[score]``), which
wins over the default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, MissingInput

NAME = "ringtrue.toml"


@dataclass(frozen=True)
class Config:
    """What a user may set once for every command."""

    file: Path | None = None
    commands: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of options by command: ``{"score": {"level": 2}}``."""
    connections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Search systems by name: ``{"shop": {"kind": "opensearch", "url": …}}``."""


def load_config(start: Path | None = None) -> Config:
    """Return the settings that hold in a folder; raises InputError naming file and line of broken TOML."""
    here = (start or Path.cwd()).resolve()
    file = next((folder / NAME for folder in (here, *here.parents) if (folder / NAME).is_file()), None)
    if file is None:
        return Config()
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{file}: not valid TOML: {problem}; mend it there") from problem
    except UnicodeDecodeError as problem:
        raise InputError(f"{file}: is not UTF-8; save it as UTF-8") from problem
    connections = settings.pop("connections", {})
    if not isinstance(connections, dict) or not all(isinstance(value, dict) for value in connections.values()):
        raise InputError(f"{file}: connections is no table of tables; write [connections.NAME] with kind = 'http' under it")
    return Config(file, settings, connections)


def cache_folder() -> Path:
    """Return where built models are kept: ``RINGTRUE_CACHE``, else the user's cache folder."""
    chosen = os.environ.get("RINGTRUE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ringtrue"


def no_telemetry() -> None:
    """Keep libraries from collecting figures about their use; they read this when they are imported."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def secret(variable: str) -> str:
    """Return a secret from the environment; raises MissingInput naming the variable, never a value."""
    value = os.environ.get(variable)
    if not value:
        raise MissingInput(f"the environment has no {variable}; set it: export {variable}=…")
    return value
