"""The HTTP that connectors share: every failure has one type, the time limit is on the whole, nothing secret shows."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from connectors.faults import LOOPBACK, PROMPT, Answer, Request, answering, closing, dripping, free_port, halfway, proxy, silent
from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, SearchFailed, TimedOut, Unreachable
from ringtrue.retrieve.connectors.web import call

TOKEN = "s3cr3t-token-value"


def test_an_answer_is_the_json_and_the_request_is_as_given() -> None:
    with answering([{"hits": [1, 2]}]) as server:
        answer = call(
            "shop", "POST", f"{server.url}/find?v=1", json={"q": 'Größe "x"'}, params={"k": 3}, headers={"X-Key": TOKEN}
        )
    assert answer == {"hits": [1, 2]}
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/find?v=1&k=3")
    assert request.json() == {"q": 'Größe "x"'}
    assert request.headers["x-key"] == TOKEN
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        *((status, BadAnswer) for status in (302, 400, 404, 422)),
        *((status, AccessDenied) for status in (401, 403)),
        *((status, Unreachable) for status in (408, 429, 500, 503)),
    ],
)
def test_each_status_is_one_error(status: int, wanted: type[SearchFailed]) -> None:
    with answering([Answer({"error": "because"}, status)]) as server, pytest.raises(wanted, match=f"HTTP {status}.*; "):
        call("shop", "GET", server.url)


def test_a_redirect_is_not_followed_with_the_credentials() -> None:
    with answering([{"hits": []}]) as thief, answering([Answer(b"", 307, {"Location": thief.url})]) as server:
        with pytest.raises(BadAnswer, match="final address") as caught:
            call("shop", "GET", server.url, headers={"Authorization": f"Bearer {TOKEN}"})
        assert thief.requests == []
        assert thief.url not in str(caught.value)


def test_nobody_there_is_unreachable_and_the_address_does_not_show() -> None:
    port = free_port()
    with pytest.raises(Unreachable, match="connection refused") as caught:
        call("shop", "GET", f"http://{LOOPBACK}:{port}/find")
    assert str(port) not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_unknown_name_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known: no-such-host.invalid")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Unreachable, match="its name is not known") as caught:
        call("shop", "GET", "http://no-such-host.invalid/find")
    assert "no-such-host" not in str(caught.value)


def test_a_name_server_that_does_not_answer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def slow(*args: object, **options: object) -> None:
        over.wait(10)
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with pytest.raises(TimedOut):
        call("shop", "GET", "http://slow.invalid/find", timeout=0.2)
    over.set()


def test_a_server_that_closes_at_once_is_unreachable() -> None:
    with closing() as port, pytest.raises(Unreachable):
        call("shop", "GET", f"http://{LOOPBACK}:{port}")


def test_half_an_answer_is_unreachable_not_a_short_answer() -> None:
    with halfway() as port, pytest.raises(Unreachable, match="no complete HTTP answer"):
        call("shop", "GET", f"http://{LOOPBACK}:{port}")


def test_what_is_no_http_is_unreachable() -> None:
    with halfway(b"SSH-2.0-OpenSSH_9.2\r\n") as port, pytest.raises(Unreachable):
        call("shop", "GET", f"http://{LOOPBACK}:{port}")


def test_a_silent_server_times_out() -> None:
    with silent() as port, pytest.raises(TimedOut, match=r"0\.2 s"):
        call("shop", "GET", f"http://{LOOPBACK}:{port}", timeout=0.2)


@pytest.mark.parametrize(
    "part", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"], ids=["head", "body"]
)
def test_a_server_that_drips_times_out_as_a_whole(part: bytes) -> None:
    start = time.monotonic()
    with dripping(part) as port, pytest.raises(TimedOut):
        call("shop", "GET", f"http://{LOOPBACK}:{port}", timeout=0.3)
    assert time.monotonic() - start < PROMPT


def test_a_connection_that_went_away_between_two_calls_does_not_break_the_second() -> None:
    with answering([{"n": 1}]) as server, proxy(server.port) as between:
        url = f"http://{LOOPBACK}:{between.port}"
        assert call("shop", "GET", url) == {"n": 1}
        between.cut()
        with pytest.raises(Unreachable):
            call("shop", "GET", url)
        between.restore()
        assert call("shop", "GET", url) == {"n": 1}


def test_a_server_cut_while_it_answers_is_unreachable() -> None:
    with answering([{"text": "x" * 10_000}]) as server, proxy(server.port) as between:
        between.cut_answer_after(2_000)
        with pytest.raises(Unreachable):
            call("shop", "GET", f"http://{LOOPBACK}:{between.port}")


@pytest.mark.parametrize("body", [b"", b"<html>login</html>", b"[" * 200_000, b'{"a": 1', b"\xff\xfe\x00"], ids=range(5))
def test_what_is_no_json_is_a_bad_answer(body: bytes) -> None:
    with answering([Answer(body)]) as server, pytest.raises(BadAnswer, match="not JSON"):
        call("shop", "GET", server.url)


def test_a_broken_compression_is_a_bad_answer_and_a_sound_one_is_read() -> None:
    packed = Answer(gzip.compress(b'{"ok": true}'), headers={"Content-Encoding": "gzip"})
    with answering([packed, Answer(b"not gzip", headers={"Content-Encoding": "gzip"})]) as server:
        assert call("shop", "GET", server.url) == {"ok": True}
        with pytest.raises(BadAnswer, match="Content-Encoding"):
            call("shop", "GET", server.url)


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringtrue.http_client.LARGEST", 1_000_000)
    with answering([Answer(b" " * 3_000_000)]) as server, pytest.raises(BadAnswer, match="more than 1 MB"):
        call("shop", "GET", server.url)


def test_what_the_server_repeats_of_our_secrets_does_not_show() -> None:
    def echo(request: Request) -> Answer:
        said = (
            "bad key " + " ".join(request.headers.get(name, "") for name in ("authorization", "x-key", "host")) + "\n\x1b[31m"
        )
        return Answer(said.encode(), 400)

    with answering(echo) as server:
        for headers, auth in (({"Authorization": f"Bearer {TOKEN}"}, None), ({"X-Key": TOKEN}, None), ({}, ("me", TOKEN))):
            with pytest.raises(BadAnswer, match="bad key") as caught:
                call("shop", "GET", server.url, headers=headers, auth=auth)
            message = str(caught.value)
            assert TOKEN not in message
            assert "bWU6" not in message  # the beginning of me:… in base64
            assert str(server.port) not in message
            assert message.isprintable()


def test_neither_the_address_nor_further_secrets_show_where_the_server_repeats_them() -> None:
    def echo(request: Request) -> Answer:
        return Answer(f"no {request.path} for b0dyKey, cut at b0d{'x' * 200}", 404)

    with answering(echo) as server, pytest.raises(BadAnswer, match="no …") as caught:
        call("shop", "GET", f"{server.url}/hidden/place?key=S3CRET%2FKEY", params={"q": "pool"}, secrets=["b0dyKey"])
    assert not [word for word in ("hidden", "place", "S3CRET", "b0dyKey") if word in str(caught.value)]
    assert "q=pool" in str(caught.value)


def test_nothing_of_the_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with answering([{}]) as server:
        call("shop", "GET", f"{server.url}/find", headers={"Authorization": f"Bearer {TOKEN}"})
    assert TOKEN not in caplog.text
    assert str(server.port) not in caplog.text


def test_cookies_of_one_call_do_not_come_with_the_next() -> None:
    with answering([Answer({}, headers={"Set-Cookie": "session=abc; Path=/"})]) as server:
        call("shop", "GET", server.url)
        call("shop", "GET", server.url)
    assert ["cookie" in request.headers for request in server.requests] == [False, False]


@pytest.mark.parametrize(
    "url", ["ftp://x/", "hotels.example", "http://[::1", "http:///x", "http://127.0.0.1:99999999/"], ids=range(5)
)
def test_an_unusable_address_is_bad_input_and_does_not_show(url: str) -> None:
    with pytest.raises(InputError, match="url") as caught:
        call("shop", "GET", url)
    assert url not in str(caught.value)


def test_a_header_that_cannot_be_sent_is_bad_input_and_does_not_show() -> None:
    with answering([{}]) as server, pytest.raises(InputError, match="header") as caught:
        call("shop", "GET", server.url, headers={"Authorization": f"Bearer {TOKEN}\nX-Admin: 1"})
    assert TOKEN not in str(caught.value)
    assert server.requests == []


def test_a_body_that_is_no_json_is_bad_input() -> None:
    for body in ({"v": float("nan")}, {"v": {1, 2}}, {"v": "\ud800"}):
        with answering([{}]) as server, pytest.raises(InputError, match="cannot be written"):
            call("shop", "POST", server.url, json=body)


def test_many_threads_get_their_own_answers() -> None:
    got: dict[int, object] = {}

    def ask(number: int) -> None:
        got[number] = call("shop", "POST", server.url, json={"n": number})

    with answering(lambda request: Answer(request.body)) as server:
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == {number: {"n": number} for number in range(16)}


# In a process of its own: this one has threads and libraries that do not survive a fork.
FORKING = """
import os, sys
from ringtrue.retrieve.connectors.web import call

call("shop", "GET", sys.argv[1])
child = os.fork()
if child == 0:
    code = 1
    try:
        call("shop", "GET", sys.argv[1])
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
call("shop", "GET", sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_uses_no_connection_of_its_parent() -> None:
    with answering([{}]) as server, proxy(server.port) as between:
        command = [sys.executable, "-c", FORKING, f"http://{LOOPBACK}:{between.port}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert len(server.requests) == 3
        assert between.connections == 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: TLS cannot be tested without a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=ringtrue-test"]
    command += ["-addext", f"subjectAltName=IP:{LOOPBACK}", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return key, cert


def test_tls_is_verified_and_ca_file_names_another_authority(certificate: tuple[Path, Path]) -> None:
    key, cert = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with answering([{"tls": True}], ssl_context=context) as server:
        url = f"https://{LOOPBACK}:{server.port}/"
        with pytest.raises(Unreachable, match=r"certificate is not trusted.*ca_file="):
            call("shop", "GET", url)
        assert server.requests == []
        assert call("shop", "GET", url, ca_file=str(cert)) == {"tls": True}
        with pytest.raises(Unreachable, match="certificate is not trusted"):  # right authority, other name
            call("shop", "GET", f"https://localhost:{server.port}/", ca_file=str(cert))


def test_a_wrong_ca_file_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match="no file"):
        call("shop", "GET", "https://127.0.0.1/", ca_file=str(tmp_path / "no.pem"))
    (tmp_path / "bad.pem").write_text("hello")
    with pytest.raises(InputError, match="holds no certificates"):
        call("shop", "GET", "https://127.0.0.1/", ca_file=str(tmp_path / "bad.pem"))
