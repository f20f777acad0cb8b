"""Real servers for the connectors' tests, started from wheels: no Docker, nothing beyond the loopback, stopped at the end."""

from __future__ import annotations

import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from connectors.faults import LOOPBACK, free_port
from postgres_server import PostgresServer as PostgresServer

START = 90.0
"""Seconds that a server may take to start on a busy machine."""


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
    """Return different ports."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


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
