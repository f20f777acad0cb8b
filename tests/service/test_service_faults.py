"""A full disk and a store that hangs: the service says so within seconds, counts what it refuses, and recovers by itself."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families as read_metrics

from ringtrue.store import Store
from service_process import ServerProcess, serving_alone

TRUTH_S = 5.0
"""Within so long readiness and metrics tell of a fault."""
WAIT_S = 60.0
DISK_MIB = 12


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True) if sys.platform == "linux" else None
    if done is None or done.returncode != 0:
        pytest.skip("A FULL DISK IS NOT TESTED: mounting a tmpfs needs root on Linux")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def asked(server: ServerProcess, path: str, body: Any = None) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(server.url + path, data, {"Content-Type": "application/json"}), timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read().decode()


def log(server: ServerProcess, query_id: str, size: int = 10) -> int:
    search = {"query": "pool " + "x" * size, "tool_name": "test", "query_id": query_id, "result_ids": ["a"]}
    return asked(server, "/v1/queries", search)[0]


def metric(server: ServerProcess, name: str, **labels: str) -> float | None:
    for family in read_metrics(asked(server, "/metrics")[1]):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def until(holds: Callable[[], bool], seconds: float = WAIT_S) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds:g} s"
        time.sleep(0.05)


def ready(server: ServerProcess) -> bool:
    return asked(server, "/readyz")[0] == 200


def wal(server: ServerProcess) -> int:
    return Path(server.store + "-wal").stat().st_size


def fill(file: Path) -> None:
    """Write until the disk has no room left."""
    with file.open("wb", buffering=0) as opened:
        while True:
            try:
                opened.write(b"\0" * 4096)
            except OSError:
                break
    assert shutil.disk_usage(file.parent).free < 4096


def test_a_full_disk_is_reported_within_seconds_and_recovers_by_itself(small_disk: Path, tmp_path: Path) -> None:
    with serving_alone(tmp_path, store=str(small_disk / "store.sqlite")) as server:
        assert log(server, "before") == 201
        assert ready(server)
        ballast = small_disk / "ballast"
        fill(ballast)
        numbers = iter(range(1_000))
        known = ["before"]

        def refused() -> bool:
            query_id = f"full-{next(numbers)}"
            status = log(server, query_id, size=20_000)
            known.extend([query_id] if status == 201 else [])
            return status == 503

        until(refused)
        until(lambda: not ready(server), TRUTH_S)
        assert metric(server, "ringtrue_store_up") == 0
        assert (metric(server, "ringtrue_log_dropped_total", why="turned_away") or 0) >= 1
        ballast.unlink()
        # Nobody sends anything: a load balancer would not, before the service is ready again.
        until(lambda: ready(server))
        assert metric(server, "ringtrue_store_up") == 1
        assert log(server, "after") == 201
        known.append("after")
    with Store.open(str(small_disk / "store.sqlite")) as store:
        assert {row.query_id for row in store.queries()} == set(known)


def test_a_store_that_hangs_is_reported_within_seconds_and_recovers_by_itself(tmp_path: Path) -> None:
    with serving_alone(tmp_path) as server:
        assert log(server, "before") == 201
        assert ready(server)
        answers: list[int] = []
        waiting = threading.Thread(target=lambda: answers.append(log(server, "meanwhile")))
        with closing(sqlite3.connect(server.store, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting.start()
            until(lambda: not ready(server), TRUTH_S)
            assert metric(server, "ringtrue_store_up") == 0
            other.execute("ROLLBACK")
        until(lambda: ready(server))
        assert metric(server, "ringtrue_store_up") == 1
        waiting.join(WAIT_S)
        assert answers == [201]
        assert log(server, "after") == 201
