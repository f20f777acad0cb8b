"""The MCP server of a session answers for the hook: model and vectors are loaded already, so a prompt waits milliseconds.

It listens on a Unix socket in the memory folder, mode 0600, and answers one question after the other by the hook's own code.
It also makes the vectors that are missing. Without it the hook loads NumPy and the model with every prompt.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from ringtrue.memory.engine import loaded_encoder
from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.files import OWN, own_folder
from ringtrue.memory.hook.memory import MemoryFault
from ringtrue.memory.hook.respond import Question, answer
from ringtrue.memory.hook.settings import read_settings
from ringtrue.memory.hook.vectors import update_vectors
from ringtrue.memory.hook.warm import BEGINNING, ENDING, LARGEST, LONGEST_PATH, VERSION, sockets

PATIENCE = 1.0
"""Seconds in which a question must be there, and its answer taken."""
AT_ONCE, PAUSE = 0.2, 0.05
"""Seconds of making vectors, and of leaving the processor to others."""


class WarmHook:
    """Answers the hooks of one memory folder, on a thread, until it is closed. Nothing is raised: hooks can do without."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._listening: socket.socket | None = None
        self._path = Path(root) / OWN / f"{BEGINNING}{os.getpid()}{ENDING}"
        self._closed = threading.Event()

    def start(self) -> None:
        """Load what is needed and answer from then on, all on threads of its own."""
        threading.Thread(target=self._run, name="warm hook", daemon=True).start()

    def close(self) -> None:
        """Stop answering and remove the socket."""
        self._closed.set()
        if self._listening is not None:
            self._listening.close()
        self._path.unlink(missing_ok=True)

    def _run(self) -> None:
        try:
            loaded_encoder()
            self._listen()
        except (ImportError, OSError, AttributeError):  # no weights, no Unix sockets, a folder that takes none
            return
        threading.Thread(target=self._make_vectors, name="memory vectors", daemon=True).start()
        assert self._listening is not None
        while not self._closed.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                self._serve(connection)

    def _listen(self) -> None:
        if len(os.fsencode(self._path)) > LONGEST_PATH:
            raise OSError(f"{self._path} is too long for a socket")
        if not Path(self.root).is_dir():
            raise OSError(f"{self.root} is not there yet")
        own_folder(self.root)
        for path in sockets(self.root):
            _remove_if_dead(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(self._path))
        self._path.chmod(0o600)  # before it listens, so nobody else was ever let in
        listening.listen(8)
        self._listening = listening

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        try:
            with connection.makefile("rb") as file:
                asked = json.loads(file.readline(LARGEST))
            try:
                told = self._answer(asked)
            except Exception as error:  # the hook asks itself then, and reports what is wrong
                told = {"error": f"{type(error).__name__}: {error}"[:200]}
            connection.sendall(json.dumps({"version": VERSION, **told}).encode("ascii") + b"\n")
        except (OSError, ValueError, RecursionError):
            return

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked.pop("version") != VERSION:
            raise ValueError(f"this server speaks version {VERSION}")
        block, account = answer(self.root, Question(**asked), read_settings(self.root)[0], loaded_encoder())
        return {"block": block, "account": account}

    def _make_vectors(self) -> None:
        left = 1
        while left and not self._closed.is_set():
            try:
                settings = read_settings(self.root)[0]
                if not settings.meaning_decides:
                    return
                index = open_index(self.root, settings)
                _, left = update_vectors(self.root, index, loaded_encoder(), seconds=AT_ONCE)
                index.close()
                if not left:  # what a first question would have to load and measure
                    answer(self.root, Question("what is worth knowing here?", now=time.time()), settings, loaded_encoder())
            except (MemoryFault, OSError):
                return
            time.sleep(PAUSE)


def _remove_if_dead(path: str) -> None:
    """Remove the socket of a server that ended without tidying up."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PATIENCE)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
