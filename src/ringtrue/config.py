"""Settings: ``ringtrue.toml``, found upwards from the current folder, and the environment. The only reader of both.

A flag wins over the environment (``RINGTRUE_SCORE_LEVEL``), which wins over the file (``level = 2`` under ``[score]``), which
wins over the default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError

NAME = "ringtrue.toml"


@dataclass(frozen=True)
class Config:
    """What a user may set once for every command."""

    file: Path | None = None
    commands: Mapping[str, Any] = field(default_factory=dict)
    """Defaults of options by command: ``{"score": {"level": 2}}``."""


def load_config(start: Path | None = None) -> Config:
    """Return the settings that hold in a folder; raises InputError naming file and line of broken TOML."""
    here = (start or Path.cwd()).resolve()
    file = next((folder / NAME for folder in (here, *here.parents) if (folder / NAME).is_file()), None)
    if file is None:
        return Config()
    try:
        return Config(file, tomllib.loads(file.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{file}: not valid TOML: {problem}; mend it there") from problem
    except UnicodeDecodeError as problem:
        raise InputError(f"{file}: is not UTF-8; save it as UTF-8") from problem
