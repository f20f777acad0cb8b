"""The service under test: started from the checkout of its side, waited for, and stopped with its children.

Each side has a port of its own: ``{port}`` in ``serve``, ``ready`` and ``stop``, and ``PORT`` and ``RINGTRUE_PORT`` in the
environment of everything that runs for this side. Whatever makes it unclear which server answered raises CannotDecide: one
address on both sides would compare a running search with itself.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from ringtrue.config import with_port
from ringtrue.errors import CannotDecide, InputError
from ringtrue.retrieve.connectors import RERANKERS, kind

PATIENCE = 10.0
"""Seconds that a service has to end after ``stop`` or SIGTERM, before it is killed."""
GLANCE = 2.0
"""Seconds for what is quickly done: children that end, ``ready`` before the service is started."""
TAIL = 20
"""Lines of a service's log that a failure shows."""
MARK = "RINGTRUE_SERVICE"
LOCAL = ("127.0.0.1", "::1", "0.0.0.0", "localhost")
_PORTS = {"http": 80, "https": 443}
_PORT = re.compile(r"(?<!\$)\{port\}")


@dataclass(frozen=True)
class ServiceCommands:
    """How the search under test is started: ``serve``, ``ready``, ``stop`` … under ``[ci]`` in ringtrue.toml."""

    serve: str
    """Shell command that runs the service; one that starts it in the background needs ``stop``."""
    ready: str = ""
    """A URL that answers 2xx, or a shell command that succeeds; when empty, something must listen on the port."""
    stop: str = ""
    """Shell command that ends the service; SIGTERM and SIGKILL follow."""
    port: int | None = None
    """A fixed port; when None, every side gets a free one."""
    ready_timeout: float = 60.0
    """Seconds until it must be ready."""


@dataclass
class RunningService:
    """A service of one side, run in its checkout; its output and that of its commands goes to ``log``."""

    service: ServiceCommands
    port: int
    folder: Path
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)
    mark: str = field(default_factory=lambda: f"{MARK}={secrets.token_hex(16)}", init=False)
    """In the environment of all that is started here, so that whoever leaves the process group is found."""

    def start(self) -> None:
        """Start it; raises CannotDecide if something answers in its place already."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")
        if listens(self.port):
            raise CannotDecide(
                f"a server already listens on port {self.port} and would be measured instead of the service that [ci] serve "
                "starts; stop it, or leave out port under [ci]"
            )
        if self.service.ready and not self._missing(GLANCE):
            raise CannotDecide(
                f"ready ({self.service.ready}) succeeded before the service was started: another server answered, "
                "or it does not ask the service; stop that server, or write a URL with {port} as ready under [ci]"
            )
        self.process = self._shell(self.service.serve)

    def wait(self) -> None:
        """Wait until it is ready; raises CannotDecide if it ends before, or takes too long."""
        end = time.monotonic() + self.service.ready_timeout
        while missing := self._missing(end - time.monotonic()):
            if self.ended() or time.monotonic() >= end:
                break
            time.sleep(0.05)
        if ended := self.ended():  # asked last: another server may have answered in its place
            raise CannotDecide(f"{ended} (before it was ready); fix serve under [ci], see {self.log}")
        if missing:
            raise CannotDecide(
                f"the service was not ready after {self.service.ready_timeout:g} s: {missing} "
                f"({self._filled(self.service.ready) or f'port {self.port}'}); "
                f"fix ready or raise ready_timeout under [ci], see {self.log}"
            )

    def ended(self) -> str:
        """Return how it ended by itself, with its last words; empty while it runs, also in the background."""
        code = self.process.poll()
        if code is None or (code == 0 and self.service.stop):
            return ""
        return f"the service ended with {code}: {(self.last_lines() or ['its log is empty'])[-1]}"

    def last_lines(self) -> list[str]:
        """Return the last lines of its log."""
        return [line for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()][-TAIL:]

    def stop(self) -> None:
        """End it and everything that it started: its ``stop``, SIGTERM to its process group, SIGKILL."""
        if self.service.stop:
            self._run(self.service.stop, PATIENCE)
        _signal(self.process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE)
        _until(GLANCE, lambda: not _signal(self.process, 0))  # its children had the signal, too
        _signal(self.process, signal.SIGKILL)
        self.process.wait()
        for number in (signal.SIGTERM, signal.SIGKILL):
            _until(GLANCE, lambda number=number: not self._signal_strays(number))  # type: ignore[misc]
        _until(GLANCE, lambda: not _signal(self.process, 0))

    def _signal_strays(self, number: int) -> bool:
        """Send a signal to processes that left the group; return whether there was one. Only Linux shows them."""
        found = False
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if self.mark.encode() in environment.read_bytes().split(b"\0"):
                    os.kill(int(environment.parent.name), number)
                    found = True
        return found

    def _missing(self, timeout: float) -> str:
        """Return what is missing until it is ready; empty if nothing is."""
        ready = self._filled(self.service.ready)
        if not ready:
            hint = "" if _PORT.search(self.service.serve) else "; serve does not contain {port}"
            return "" if listens(self.port) else f"nothing listens{hint}"
        if not ready.startswith(("http://", "https://")):
            return self._run(ready, timeout)
        try:
            with build_opener(ProxyHandler({})).open(ready, timeout=max(0.1, min(timeout, 5.0))):
                return ""
        except HTTPError as problem:
            return f"HTTP {problem.code}"
        except (OSError, ValueError) as problem:
            return str(getattr(problem, "reason", "") or problem)

    def _run(self, command: str, timeout: float) -> str:
        """Run a command to its end; return how it failed, or an empty text."""
        process = self._shell(command)
        try:
            code = process.wait(max(timeout, 0.1))
        except subprocess.TimeoutExpired:
            return "the command did not finish"
        finally:
            _signal(process, signal.SIGKILL)
            process.wait()
        return f"the command ended with {code}" if code else ""

    def _shell(self, command: str) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own."""
        with self.log.open("ab") as out:
            return subprocess.Popen(
                ["bash", "-c", self._filled(command)], cwd=self.folder, start_new_session=True,
                env={**self.environment, MARK: self.mark.partition("=")[2]},
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def _filled(self, text: str) -> str:
        return _PORT.sub(str(self.port), text)


@contextmanager
def running(found: RunningService, say: Callable[[str], None]) -> Iterator[RunningService]:
    """Start a service, wait until it is ready, and stop it at the end; raises CannotDecide."""
    say(f"$ {found.service.serve}    # {{port}} = {found.port}")
    with _ended_by_sigterm():
        found.start()
        try:
            found.wait()
            yield found
        finally:
            found.stop()
    if not _until(PATIENCE, lambda: not listens(found.port)):
        raise CannotDecide(
            f"something still listens on port {found.port} after the service was stopped; "
            "set stop under [ci] to a command that ends it"
        )


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Return whether something accepts connections on a port of this machine."""
    for host in ("127.0.0.1", "::1"):
        with suppress(OSError), socket.create_connection((host, port), timeout=1):
            return True
    return False


def _signal(process: subprocess.Popen[bytes], number: int) -> bool:
    """Send a signal to a process and its children; return whether one of them was there."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _until(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Leave in good order when the pipeline is cancelled, so that no service outlives its job."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# ── which server each side asks ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AskedServers:
    """The connections that one side's search asks, and the service that is started for it."""

    connections: Mapping[str, Mapping[str, Any]]
    service: ServiceCommands | None = None

    def elsewhere(self) -> dict[str, str]:
        """Return the address of each connection that does not ask the service of its own side."""
        found = {name: _address(name, settings, self.service) for name, settings in self.connections.items()}
        return {name: address for name, address in found.items() if address}


def _address(name: str, settings: Mapping[str, Any], service: ServiceCommands | None) -> str:
    """Return ``host:port`` of a connection; empty if it asks ``service`` or a program or file of the checkout."""
    used = str(settings.get("kind"))
    text = next((str(settings[key]) for key in ("url", "uri", "dsn_env", "host") if settings.get(key)), "")
    if not text and used not in RERANKERS:
        text = getattr(kind(used), "url", None) or ""  # Chroma has a usual address
    if service and "{port}" in text:
        return ""
    if "{port}" in text:
        text = str(with_port({**settings, "url": text}, f"connection '{name}'")["url"])
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        raise InputError(f"connection '{name}': its url cannot be read; write it like http://localhost:8000/search") from None
    host = "localhost" if is_local(parts.hostname or "") else parts.hostname or ""
    ours = service is not None and service.port == port and host == "localhost"
    return "" if ours else f"{host}:{port or ''}"


def is_local(host: str) -> bool:
    """Return whether a name or address is a loopback address of this machine, under whatever name."""
    if host in LOCAL:
        return True
    with suppress(OSError, ValueError):
        return ip_address(socket.gethostbyname(host)).is_loopback
    return False


def check_addresses(head: AskedServers, base: AskedServers | None, *, shared: bool) -> None:
    """Raise CannotDecide if nobody asks a started service, or if both sides ask one server and that is not ``shared``."""
    for side in (head, base):
        others = side.elsewhere() if side and side.service else {}
        if side and others and len(others) == len(side.connections):
            name, address = next(iter(others.items()))
            raise CannotDecide(
                f"connection '{name}' asks {address}, not the service that [ci] serve starts; "
                f"write {{port}} in its url: http://localhost:{{port}}/…"
            )
    theirs = {} if base is None or shared else base.elsewhere()
    for name, address in head.elsewhere().items() if theirs else ():
        if address in theirs.values():
            raise CannotDecide(
                f"connection '{name}' asks {address} on both sides, so both measure one running search; "
                "let each side start its own, with serve under [ci] and {port} in the url "
                "(or set shared = true there if only these settings can change the search)"
            )
