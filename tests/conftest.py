"""What every test may use: the checkout, and the command line run in process."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from made_once import hotel_cache as hotel_cache
from postgres_server import postgres as postgres

ROOT = Path(__file__).parents[1]
LONG = {"service", "testing", "connectors"}
"""Folders of tests that start servers, browsers and other programs."""
# How long an example takes says how busy the machine is. The same examples each time, unless the order is random, too.
UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fixed", derandomize=True, **UNTIMED)
settings.register_profile("random", **UNTIMED)


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON object it must be."""
        return json.loads(self.out)


def pytest_configure(config: pytest.Config) -> None:
    """Draw new examples only in random order, whose seed repeats them."""
    settings.load_profile("random" if config.pluginmanager.hasplugin("randomly") else "fixed")


@pytest.fixture
def ringtrue(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command line in this process, exactly as the installed script does."""
    from ringtrue.cli import main

    def run(*arguments: str | Path, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["ringtrue", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return Outcome(int(end.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: many tests wait for servers, browsers and databases."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take long first, so that no process is left alone with one at the end."""
    items.sort(key=lambda item: LONG.isdisjoint(item.path.relative_to(ROOT).parts))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name bytes by their number: archives carry the time they were made at, and processes must agree on names."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None
