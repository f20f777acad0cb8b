"""A server that is told to stop, or killed, under a stream of searches loses none that it has acknowledged."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ringtrue.service.server import GRACE_S
from ringtrue.store import Store
from service_process import environment
from stores import empty as empty
from stores import kind as kind

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM and kill -9 are things of POSIX")
SENDERS = 5
KILLS = 5
ENOUGH = 40
"""Searches that must be acknowledged before the server is stopped: the test would show nothing otherwise."""
WAIT_S = 120.0


@dataclass
class Stream:
    """Programs that log searches, or read pages, without a pause over connections that they keep, until the server is gone."""

    port: int
    name: str
    senders: int = SENDERS
    pages: tuple[str, ...] = ()
    """Pages that are read in turn; searches are logged if there are none."""
    known: list[Any] = field(default_factory=list)
    """Ids that were acknowledged with 201; of pages their status."""
    refused: list[int] = field(default_factory=list)
    """Other answers."""
    cut: list[BaseException] = field(default_factory=list)
    """Requests that were sent and had no answer, because the connection ended."""
    broken: list[BaseException] = field(default_factory=list)
    """Everything that is neither an answer nor a closed connection."""

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(self.senders)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            while True:
                number = next(self._numbers)
                self._read_page(line, self.pages[number % len(self.pages)]) if self.pages else self._log(line, number)
        except ConnectionRefusedError:  # the server has stopped accepting
            pass
        except (ConnectionError, http.client.HTTPException) as problem:
            self.cut.append(problem)
        except BaseException as problem:
            self.broken.append(problem)
        finally:
            line.close()

    def _log(self, line: http.client.HTTPConnection, number: int) -> None:
        query_id = f"{self.name}-{number}"
        body = json.dumps({"query": "pool", "tool_name": "stream", "query_id": query_id, "result_ids": ["a"]})
        line.request("POST", "/v1/queries", body, {"Content-Type": "application/json"})
        answer = line.getresponse()
        told = json.loads(answer.read())
        if answer.status == 201:
            assert told["query_ids"] == [query_id]
            self.known.append(query_id)
        else:
            self.refused.append(answer.status)

    def _read_page(self, line: http.client.HTTPConnection, page: str) -> None:
        line.request("GET", page)
        answer = line.getresponse()
        assert len(answer.read()) == int(answer.headers["content-length"])
        (self.known if answer.status == 200 else self.refused).append(answer.status)

    def flow(self) -> None:
        """Wait until enough is acknowledged."""
        end = time.monotonic() + WAIT_S
        while len(self.known) < ENOUGH and time.monotonic() < end:
            time.sleep(0.01)
        assert len(self.known) >= ENOUGH, (len(self.known), self.refused, self.broken)

    def ended(self) -> None:
        """Wait until all have seen that the server is gone; none hangs, none saw anything but an answer or a closed line."""
        for thread in self._threads:
            thread.join(WAIT_S)
        assert not any(thread.is_alive() for thread in self._threads)
        assert not self.broken, self.broken
        assert set(self.refused) <= {503}, self.refused


@contextmanager
def served(folder: Path, store: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run ``ringtrue serve`` as a user does; yields the process and its port."""
    command = [
        str(Path(sys.executable).with_name("ringtrue")),
        "serve",
        "--port",
        "0",
        "--store",
        store,
        "--golden",
        "hotel",
        "-r",
        "bm25",
    ]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        told = ""
        for line in process.stderr:
            told += line
            if "listening on " in line:
                break
        address = told.rpartition("listening on ")[2].split()
        assert address, told
        yield process, urlsplit(address[0].rstrip(",")).port or 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def stored(address: str) -> set[str]:
    with Store.open(address) as store:
        return {row.query_id for row in store.queries()}


def test_told_to_stop_the_server_ends_well_and_has_written_what_it_acknowledged(
    kind: str, empty: Callable[[str], str], tmp_path: Path
) -> None:
    address = empty(kind)
    with served(tmp_path, address) as (process, port):
        stream = Stream(port, "stopped", senders=16)
        stream.flow()
        before = len(stream.known)
        process.send_signal(signal.SIGTERM)
        assert process.wait(GRACE_S + 10) == 0
        stream.ended()
    assert before >= ENOUGH
    assert stream.cut == []
    assert stored(address) == set(stream.known)


def test_pages_under_way_are_answered_when_the_server_is_told_to_stop(tmp_path: Path) -> None:
    with served(tmp_path, str(tmp_path / "store.sqlite")) as (process, port):
        stream = Stream(port, "pages", senders=16, pages=("/", "/queries", "/runs", "/golden"))
        stream.flow()
        process.send_signal(signal.SIGTERM)
        assert process.wait(GRACE_S + 10) == 0
        stream.ended()
    assert stream.cut == []
    assert stream.refused == []


def test_an_evaluation_under_way_is_answered_when_the_server_is_told_to_stop(tmp_path: Path) -> None:
    with served(tmp_path, str(tmp_path / "store.sqlite")) as (process, port):
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        wanted = {"golden": "hotel", "retriever": "bm25"}
        line.request("POST", "/v1/evaluate", json.dumps(wanted), {"Content-Type": "application/json"})
        assert not select.select([line.sock], [], [], 0.05)[0], "answered before the server was told to stop"
        process.send_signal(signal.SIGTERM)
        answer = line.getresponse()
        assert answer.status == 200, answer.read()
        assert 0 < json.loads(answer.read())["metrics"]["recall_at_10"] <= 1
        line.close()
        assert process.wait(GRACE_S + 10) == 0


def test_killed_at_any_moment_the_server_has_written_what_it_acknowledged(
    kind: str, empty: Callable[[str], str], tmp_path: Path
) -> None:
    address, moments, known = empty(kind), random.Random(5), []
    for number in range(KILLS):
        with served(tmp_path, address) as (process, port):
            stream = Stream(port, f"killed-{number}")
            stream.flow()
            time.sleep(moments.uniform(0, 0.4))
            process.kill()
            assert process.wait(GRACE_S) == -signal.SIGKILL
            stream.ended()
        known += stream.known
    there = stored(address)
    assert set(known) <= there
    assert len(there) <= len(known) + KILLS * SENDERS
