"""Where runs and reports are written: names that are not taken yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

from ringtrue.errors import MissingInput
from ringtrue.run.evaluation import Evaluation
from ringtrue.run.folder import RUNS


def new_run_folder(found: Evaluation, now: datetime) -> Path:
    """Return a new folder for a run, made at once: of two evaluations in one second each gets its own."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", found.search).strip("-")[:40] or "run"
    wanted = RUNS / f"{now:%Y%m%dT%H%M%SZ}-{found.setup.golden.id}-{slug}"
    RUNS.mkdir(parents=True, exist_ok=True)
    for candidate in numbered(wanted):
        with suppress(FileExistsError):
            candidate.mkdir()
            return candidate
    raise AssertionError("names do not end")


def write_new(path: Path, text: str) -> Path:
    """Write a text to a file that does not exist yet, with a number in its name where one does; return where it lies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for candidate in numbered(path):
        with suppress(FileExistsError), candidate.open("x", encoding="utf-8") as file:
            file.write(text)
            return candidate
    raise AssertionError("names do not end")


def numbered(path: Path) -> Iterator[Path]:
    """Yield a path, and then the same with 002, 003 … in its name."""
    yield path
    yield from (path.with_name(f"{path.stem}-{number:03}{path.suffix}") for number in count(2))


def newest_run() -> Path:
    """Return the run folder that was written last; raises MissingInput if there is none."""
    found = sorted(path.parent for path in RUNS.glob("*/run.json"))
    if not found:
        raise MissingInput(f"there is no run in {RUNS}; make one with `ringtrue eval`, or name a folder with --run")
    return found[-1]
