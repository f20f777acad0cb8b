"""``ringtrue serve``, the installed program: callers who go away early do not end it."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from service_process import environment

LEAVING = 60


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGPIPE")
@pytest.mark.parametrize("program", [["ringtrue"], ["python", "-m", "ringtrue"]], ids=["installed", "module"])
def test_callers_who_leave_before_their_answers_come_do_not_end_the_server(program: list[str], tmp_path: Path) -> None:
    name, *more = program
    command = [
        str(Path(sys.executable).with_name(name)),
        *more,
        "serve",
        "--port",
        "0",
        "--golden",
        "hotel",
        "--store",
        "s.sqlite",
    ]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split()[-1]
            place = urlsplit(url)
            for _ in range(LEAVING):
                with socket.create_connection((place.hostname or "", place.port or 0)) as line:
                    line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 5)
            with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:
                assert answer.status == 200
            assert process.poll() is None
            process.terminate()
            assert process.wait(40) == 0
        finally:
            process.kill()
