"""``ringtrue serve --demo``, the command: stopped half-way it begins anew, filled once it stays, its end is silent."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from made_once import cache_from
from ringtrue.cli import serve
from ringtrue.errors import InputError
from ringtrue.service import Settings
from ringtrue.store import AuditEntry, Store
from served import demo_template as demo_template
from service_process import environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl+C is sent as POSIX sends it")
STORE = serve.DEMO / "store.sqlite"
WAIT_S = 120


# A shell starts background jobs, perhaps these tests, with SIGINT ignored, and their children inherit that. Popen's preexec_fn
# would fork this process with whatever libraries other tests have loaded, and some (gRPC) abort there.
HEARING_INTERRUPTS = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


@contextmanager
def started(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the command as a user does, in a folder whose cache holds what is indexed already."""
    ringtrue = str(Path(sys.executable).with_name("ringtrue"))
    command = [sys.executable, "-I", "-c", HEARING_INTERRUPTS, ringtrue, "serve", "--demo", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def until(process: subprocess.Popen[str], words: str) -> str:
    """Return the first line of what the process tells that has these words."""
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        if words in line:
            return line
    raise AssertionError(f"it never said {words!r}: {told}")


def interrupted(process: subprocess.Popen[str]) -> str:
    """Press Ctrl+C; return what it still tells."""
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=WAIT_S)[1]


def test_stopped_half_way_nothing_is_left_in_the_way(tmp_path: Path, hotel_cache: Path) -> None:
    cache_from(hotel_cache, tmp_path / "cache")
    with started(tmp_path) as process:
        until(process, "evaluating bm25")
        assert "Traceback" not in interrupted(process)
        assert process.returncode == 130
    assert list((tmp_path / serve.DEMO).iterdir()) == []


def test_a_filled_store_is_served_as_it_is_and_the_end_is_silent(tmp_path: Path, demo_template: Path) -> None:
    cache_from(demo_template / "cache", tmp_path / "cache")
    (tmp_path / serve.DEMO).mkdir(parents=True)
    shutil.copy(demo_template / "store.sqlite", tmp_path / STORE)
    with started(tmp_path) as process:
        assert "left as it is" in until(process, "the store was filled at")
        address = until(process, "listening on ").split()[-1]
        with urllib.request.urlopen(f"{address}/v1/runs?limit=1", timeout=WAIT_S) as answer:
            assert b"hotel" in answer.read()
        until(process, "stop with Ctrl+C")
        assert interrupted(process) == ""
        assert process.returncode == 0


def test_the_end_is_silent_though_parquet_was_read(tmp_path: Path) -> None:
    """DuckDB complains at the end of a process about whatever of its own still lives then."""
    program = (
        "import duckdb; from ringtrue.service import Settings, run\n"
        f"run(Settings(store={str(tmp_path / 'store.sqlite')!r}, port=0), ready=lambda url: print(url, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("http://")
    assert interrupted(process) == ""
    assert process.returncode == 0


def test_the_store_gets_its_name_when_it_is_complete(
    tmp_path: Path, hotel_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGTRUE_CACHE", str(cache_from(hotel_cache, tmp_path / "cache")))
    entry = AuditEntry("2026-11-20T15:30:00.000Z", "demo", "demo.filled", "default", {"made": {}}, "default")

    def filled(store: Store, **told: object) -> None:
        assert not STORE.exists()
        store.add_audit(entry)

    monkeypatch.setattr("ringtrue.service.demo.fill", filled)
    settings = serve._demo(Settings(store=None, port=0))
    assert settings.store == str(STORE)
    assert [path.name for path in serve.DEMO.iterdir()] == [STORE.name]
    with Store.open(str(STORE)) as store:
        assert [one.what for one in store.audit()] == ["demo.filled"]
    with pytest.raises(InputError, match="--demo has its own store"):
        serve._demo(Settings(store="mine.sqlite"))
