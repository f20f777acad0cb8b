"""The nginx configuration of deploy/, with a real nginx in front of a real service."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ringtrue.store import Store
from service_process import ServerProcess, serving_alone
from tools import tool

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "deploy" / "nginx" / "ringtrue.conf"
NAME = "search.example.org"
WAIT_S = 60.0
SENDERS, REQUESTS = 8, 25
MAIN = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/ringtrue.conf;
}}
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts connections in /proc/net/tcp")


class Line(http.client.HTTPSConnection):
    """A connection to nginx, which listens on a socket in a folder instead of a port."""

    def __init__(self, place: Path) -> None:
        self.anybody = ssl.create_default_context()
        self.anybody.check_hostname = False
        self.anybody.verify_mode = ssl.CERT_NONE
        super().__init__(NAME, timeout=WAIT_S, context=self.anybody)
        self.place = place

    def connect(self) -> None:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(WAIT_S)
        line.connect(str(self.place))
        self.sock = self.anybody.wrap_socket(line, server_hostname=NAME)


@contextmanager
def nginx(folder: Path, port: int) -> Iterator[Path]:
    """Run nginx with the shipped configuration, but for its places; yields where it listens."""
    program, openssl = tool("nginx"), shutil.which("openssl")
    if openssl is None:
        pytest.skip("NGINX IS NOT TESTED: openssl makes the certificate and is not here")
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={NAME}", "-days", "2"]
    subprocess.run([*made, "-keyout", f"{folder}/{NAME}.key", "-out", f"{folder}/{NAME}.pem"], check=True, capture_output=True)
    text = CONFIGURATION.read_text(encoding="utf-8").replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    text = text.replace("/etc/ssl/", f"{folder}/").replace("listen 443 ssl", f"listen unix:{folder}/nginx.sock ssl")
    (folder / "ringtrue.conf").write_text(text, encoding="utf-8")
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user), encoding="utf-8")
    command = [program, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    with (folder / "nginx.log").open("w", encoding="utf-8") as told:
        process = subprocess.Popen(command, stderr=told)
    try:
        end = time.monotonic() + WAIT_S
        while not (folder / "nginx.sock").exists():
            assert process.poll() is None, (folder / "nginx.log").read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        yield folder / "nginx.sock"
    finally:
        process.terminate()
        process.wait(WAIT_S)


def connections_to(port: int) -> int:
    """Return how many connections to a port this machine has and had in the last minute, by the ends that made them."""
    rows = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    return len({row.split()[1] for row in rows if row.split()[2].endswith(f":{port:04X}")})


def test_requests_through_nginx_share_a_few_connections(tmp_path: Path) -> None:
    with (
        serving_alone(tmp_path, keys=True, https=True, hosts=[NAME], proxies=["127.0.0.1"]) as server,
        nginx(tmp_path, server.port) as place,
    ):
        key = server.key("read", "write")
        statuses = _many(place, key)
        assert statuses == {("POST", 201): SENDERS * REQUESTS, ("GET", 200): SENDERS * REQUESTS}
        assert connections_to(server.port) <= 4 * SENDERS
        _signs_in(place, server)
    with Store.open(server.store) as store:
        assert len(store.queries()) == SENDERS * REQUESTS


def _many(place: Path, key: str) -> dict[tuple[str, int], int]:
    found: list[tuple[str, int]] = []

    def send() -> None:
        line = Line(place)
        for _ in range(REQUESTS):
            for method, path, body in (
                ("POST", "/v1/queries", json.dumps({"query": "pool", "tool_name": "nginx"})),
                ("GET", "/v1/queries?limit=1", None),
            ):
                headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
                line.request(method, path, body, headers)
                answer = line.getresponse()
                answer.read()
                found.append((method, answer.status))
        line.close()

    threads = [threading.Thread(target=send) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {one: found.count(one) for one in set(found)}


def _signs_in(place: Path, server: ServerProcess) -> None:
    """Sign in as a browser does: with a cookie for TLS alone, and an Origin that the service compares with Host."""
    line = Line(place)
    line.request("GET", "/login")
    answer = line.getresponse()
    page, cookie = answer.read().decode(), answer.headers["set-cookie"]
    assert "Secure" in cookie
    csrf = re.search(r'name="csrf" value="([^"]+)"', page)
    assert csrf is not None
    form = f"csrf={csrf[1]}&key={server.key('admin')}"
    headers = {
        "Cookie": cookie.partition(";")[0], "Origin": f"https://{NAME}", "Content-Type": "application/x-www-form-urlencoded",
    }  # fmt: skip
    line.request("POST", "/login", form, headers)
    answer = line.getresponse()
    answer.read()
    assert (answer.status, answer.headers["location"]) == (303, "/")
    line.close()
