"""Requests are bounded in size, also after decompression, and errors have one shape and tell nothing of the machine."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rest_service import problem, serving
from ringtrue.errors import InputError
from ringtrue.service import middleware
from ringtrue.service.errors import clean, refused
from ringtrue.service.middleware import MOST_VALUES, RateLimits
from ringtrue.service.routes.evaluate import read_set
from ringtrue.service.settings import MIB, Rates

SEARCH = b'{"query": "pool", "tool_name": "t", "result_ids": []}'
JSON = {"content-type": "application/json"}


def small(tmp_path: Path) -> object:
    return serving(tmp_path, body_limit=1 * MIB)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with serving(tmp_path, body_limit=MIB) as client:
        answer = client.post("/v1/queries", content=b" " * (MIB + 1), headers=JSON)
        assert answer.status_code == 413
        assert problem(answer)["code"] == "too_large"

        def pieces() -> object:  # of unknown length
            for _ in range(40):
                yield b" " * 65_536

        answer = client.post("/v1/queries", content=pieces(), headers=JSON)  # type: ignore[arg-type]
        assert answer.status_code == 413


def test_gzip_is_read_and_a_bomb_is_not(tmp_path: Path) -> None:
    with serving(tmp_path, body_limit=MIB) as client:
        packed = {**JSON, "content-encoding": "gzip"}
        assert client.post("/v1/queries", content=gzip.compress(SEARCH), headers=packed).status_code == 201
        bomb = gzip.compress(b" " * (200 * MIB))
        assert len(bomb) < MIB
        answer = client.post("/v1/queries", content=bomb, headers=packed)
        assert answer.status_code == 413
        for damaged in (b"", b"no gzip", gzip.compress(SEARCH)[:-4], gzip.compress(SEARCH) + b"more", zlib.compress(SEARCH)):
            assert client.post("/v1/queries", content=damaged, headers=packed).status_code == 400
        assert client.post("/v1/queries", content=SEARCH, headers={**JSON, "content-encoding": "br"}).status_code == 415


@pytest.mark.parametrize("body", [b"", b"{", b"[", b'{"query": NaN', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000])
def test_what_is_no_json_is_a_clear_error(tmp_path: Path, body: bytes) -> None:
    with serving(tmp_path) as client:
        for path in ("/v1/queries", "/v1/compare"):
            answer = client.post(path, content=body, headers=JSON)
            assert answer.status_code in (400, 422), answer.text
            problem(answer)


def test_a_request_that_takes_too_long_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import time

    from ringtrue.store import Store

    with serving(tmp_path, time_limit=0.2) as client:
        monkeypatch.setattr(Store, "flags", lambda self, **given: time.sleep(2) or [])
        answer = client.get("/v1/flags")
        assert answer.status_code == 504
        found = problem(answer)
        assert found["code"] == "timed_out"
        assert f"request {found['request_id']} got 504" in caplog.text


def test_one_figure_rules_how_many_values_json_may_hold() -> None:
    """A golden set is refused by the same figure as any request, also where its separators are fewer than its values."""
    content = b'{"queries": [' + b'{"a": 1},' * (MOST_VALUES // 2) + b'{"a": 1}]}'
    with pytest.raises(InputError, match=f"more than {MOST_VALUES:,} values"):
        read_set(content, "json")


def broken(*given: object, **more: object) -> None:
    raise RuntimeError("secret words at /etc/passwd")


def test_what_breaks_says_nothing_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from ringtrue.store import Store

    with serving(tmp_path) as client:
        quiet = TestClient(client.app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False)
        monkeypatch.setattr(Store, "flags", broken)
        answer = quiet.get("/v1/flags")
        assert answer.status_code == 500
        found = problem(answer)
        assert found["code"] == "internal"
        assert found["request_id"] == answer.headers["x-request-id"]
        assert "secret" not in answer.text
        assert f"request {found['request_id']} failed" in caplog.text


def test_whoever_reads_pages_is_told_of_what_breaks_by_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringtrue.store import Store

    with serving(tmp_path) as client:
        quiet = TestClient(client.app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False)
        monkeypatch.setattr(Store, "flags", broken)
        page = quiet.get("/flags")
        assert page.status_code == 500
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["x-request-id"] in page.text
        assert "secret" not in page.text
        # Where no page can be shown at all the one shape is left.
        monkeypatch.setattr(client.app.state, "error_page", broken)
        assert problem(quiet.get("/flags"))["code"] == "internal"


def test_whoever_reads_pages_is_turned_away_by_a_page(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        turned = client.post("/golden/shipped", data={"name": "hotel"}, headers={"origin": "https://elsewhere.example"})
        assert turned.status_code == 403
        assert turned.headers["content-type"].startswith("text/html")
        assert problem(client.post("/v1/golden/shipped", json={}, headers={"origin": "https://elsewhere.example"}))["code"]


@pytest.mark.parametrize("path", ["/v1/flags", "/flags"])
def test_a_store_that_is_away_is_told_in_the_log_under_the_request_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    from ringtrue.errors import Unreachable
    from ringtrue.store import Store

    def away(self: object, **given: object) -> None:
        raise Unreachable("store: the disk is gone")

    with serving(tmp_path) as client:
        monkeypatch.setattr(Store, "flags", away)
        answer = client.get(path)
        assert answer.status_code == 503
        assert "disk" not in answer.text
        assert f"request {answer.headers['x-request-id']} got 503: GET {path}: store: the disk is gone" in caplog.text
        caplog.clear()
        missing = client.get("/v1/runs/none")
        assert missing.status_code == 404
        assert missing.headers["x-request-id"] not in caplog.text


def test_messages_hold_no_path_of_this_machine(tmp_path: Path) -> None:
    said = clean(f"{tmp_path}/inner/store.sqlite: cannot be read\x1b[31m; see {Path.home()}/x")
    assert str(tmp_path) not in said
    assert str(Path.home()) not in said
    assert "\x1b" not in said
    assert said.endswith("; see …")
    assert refused(InputError(f"{tmp_path}/run: is broken")).message == "…: is broken"


def test_callers_who_come_and_go_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(middleware, "MOST_CALLERS", 100)
    rates = RateLimits(Rates())
    for number in range(1_000):
        assert rates.take("other", f"caller {number}") == 0
    assert len(rates._buckets) <= 100


OUTSIDE = (
    "/static/../settings.py", "/static/%2e%2e/settings.py", "/static/..%2fsettings.py", "/static//etc/passwd",
    "/static/vendor/../../shell.py", "/v1/runs/..%2f..%2fetc%2fpasswd", "/v1/golden/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "/v1/golden/..", "/runs/..%2f..%2f",
)  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_trap_39_no_path_from_outside_reaches_the_file_system(tmp_path: Path, path: str) -> None:
    with serving(tmp_path) as client:
        answer = client.get(path)
        assert answer.status_code in (404, 422), answer.text
        assert "root:" not in answer.text
        assert "def " not in answer.text


def test_trap_39_a_golden_set_named_by_a_path_is_not_opened(tmp_path: Path) -> None:
    planted = tmp_path / "planted.yaml"
    planted.write_text("queries:\n- {id: q1, query: secret words, relevant_docs: [a]}\n", encoding="utf-8")
    with serving(tmp_path) as client:
        for name in (str(planted), f"../{planted.name}", f"./{planted.name}", f"file://{planted}", "/etc/passwd"):
            answer = client.post("/v1/evaluate", json={"golden": name})
            assert answer.status_code in (404, 422), answer.text
            assert "secret words" not in answer.text
