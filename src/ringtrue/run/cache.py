"""Results that need not be made twice (E-5): one run folder per key.

The key is a hash of everything that decides a result: retriever, configuration, code, models, documents, golden set, and what
was asked of them. A result appears by renaming, so a crash leaves all of it or nothing; the oldest go when there are too many.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ringtrue.errors import RingtrueError
from ringtrue.run.evaluation import Evaluation
from ringtrue.run.folder import open_run, save

LIMIT = 1 << 30
"""Bytes that results may take; the ones not used for longest go first."""


def key_of(ingredients: Mapping[str, Any]) -> str:
    """Return the key of a result from all that decides it."""
    return hashlib.sha256(json.dumps(ingredients, sort_keys=True, default=str).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Cache:
    """A folder of results."""

    folder: Path
    limit: int = LIMIT

    def get(self, key: str) -> Evaluation | None:
        """Return the result of a key, marked as cached; None where there is none that can be read."""
        place = self.folder / key
        if not (place / "run.json").is_file():
            return None
        try:
            found = open_run(place)
        except (RingtrueError, OSError):
            shutil.rmtree(place, ignore_errors=True)  # damaged from outside: as good as none
            return None
        with contextlib.suppress(OSError):
            os.utime(place)
        return replace(found, cached=True, run_dir=None)

    def put(self, key: str, evaluation: Evaluation) -> None:
        """Keep a result; a full or read-only disk only means that it is not kept."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save(replace(evaluation, run_dir=None), self.folder / key)
        except OSError:
            return
        self._make_room(key)

    def _make_room(self, newest: str) -> None:
        sizes: list[tuple[float, int, Path]] = []
        for place in self.folder.iterdir():
            with contextlib.suppress(OSError):
                files = [place] if place.is_file() else list(place.rglob("*"))
                sizes.append((place.stat().st_mtime, sum(file.stat().st_size for file in files if file.is_file()), place))
        total = sum(size for _, size, _ in sizes)
        for _, size, place in sorted(sizes):
            if total <= self.limit:
                return
            if place.name != newest:
                shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
                total -= size
