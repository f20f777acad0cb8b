"""A real server on a free port of this machine, in a thread of this process: import the fixture ``served``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from connectors.faults import LOOPBACK
from ringtrue.service import Settings, create_app
from ringtrue.service.settings import Rates

START_S = 60.0
UNHURRIED = Rates(log=1e6, heavy=1e6, other=1e6, login=1e6)


@dataclass(frozen=True)
class Served:
    """Where a server listens, and the folder with its store."""

    url: str
    folder: Path

    @property
    def store(self) -> str:
        return str(self.folder / "store.sqlite")


@contextmanager
def running(folder: Path, *, connections: Callable[[Any], Any] | None = None, **settings: Any) -> Iterator[Served]:
    """Run a server over a store in a folder; its own search is BM25 over the documents of the hotel set.

    ``connections`` makes the class of its connections, where Uvicorn's own is not what is wanted.
    """
    chosen = {"store": str(folder / "store.sqlite"), "golden": "hotel", "retriever": "bm25", "rates": UNHURRIED, **settings}
    app = create_app(Settings(**chosen))
    config = uvicorn.Config(
        app, http="auto" if connections is None else connections(app), host=LOOPBACK, port=0, log_level="error",
        access_log=False, timeout_graceful_shutdown=5, timeout_keep_alive=30,
    )  # fmt: skip
    server = uvicorn.Server(config)
    ready = threading.Event()
    startup = server.startup

    async def announced(sockets: Any = None) -> None:
        await startup(sockets)
        ready.set()

    server.startup = announced  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, name="served", daemon=True)
    thread.start()
    try:
        assert ready.wait(START_S), "the server did not start"
        assert server.started, "the server did not start"
        port = server.servers[0].sockets[0].getsockname()[1]
        yield Served(f"http://{LOOPBACK}:{port}", folder)
    finally:
        server.should_exit = True
        thread.join(START_S)
        assert not thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of its own for the tests of one file; evaluations of more than two queries are jobs."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RINGTRUE_CACHE", str(folder / "cache"))
        patched.chdir(folder)
        with running(folder, at_once=2) as found:
            yield found
