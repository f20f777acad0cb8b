"""A server in a process of its own, as users start one: what it keeps, prints and weighs is its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ringtrue.answers import Scope
from ringtrue.store import Store
from running_service import UNHURRIED

END_S = 40.0
"""Seconds that a server may take to stop: longer than its own grace."""
_RUN = """
import json, sys
from ringtrue.service import Settings, run
from ringtrue.service.settings import Rates
given = json.loads(sys.argv[1])
run(Settings(**{**given, "rates": Rates(**given["rates"])}), ready=lambda url: print(url, flush=True))
"""


@dataclass(frozen=True)
class ServerProcess:
    """A running server: where it listens, its store, and the files with what it printed."""

    url: str
    store: str
    process: subprocess.Popen[str]
    errors: Path

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def key(self, *scopes: Scope, project: str = "default") -> str:
        """Return the token of a new key."""
        with Store.open(self.store) as store:
            return store.create_key("tester", scopes, now=datetime.now(UTC), project=project)[1]

    def most_memory(self) -> int:
        """Return the megabytes that the server has had at most, as Linux counts them."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process whose caches lie in a folder."""
    return {**os.environ, "RINGTRUE_CACHE": str(folder / "cache"), "PYTHONUNBUFFERED": "1"}


@contextmanager
def serving_alone(folder: Path, *, store: str | None = None, **settings: Any) -> Iterator[ServerProcess]:
    """Run a server over the hotel documents; it is told to stop at the end, and must do so."""
    address = store or str(folder / "store.sqlite")
    given: Mapping[str, Any] = {
        "store": address, "port": 0, "golden": "hotel", "retriever": "bm25", "rates": asdict(UNHURRIED), **settings,
    }  # fmt: skip
    errors = folder / "stderr.txt"
    with errors.open("w", encoding="utf-8") as told:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _RUN, json.dumps(given)],
            cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=told, text=True,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url, errors.read_text(encoding="utf-8")
        yield ServerProcess(url, address, process, errors)
        assert process.poll() is None, errors.read_text(encoding="utf-8")
        process.terminate()
        assert process.wait(END_S) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
