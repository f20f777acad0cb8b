"""``ringtrue serve`` where it cannot serve: one line that names the option and the cure, before anything listens."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--golden", "hotell"], 2, "--golden: there is no golden set 'hotell'; did you mean 'hotel'"),
        (["--retriever", "rrf(bm25"], 2, "--retriever: cannot read 'rrf(bm25'"),
        (["--allow-retriever", "bm52"], 2, "--allow-retriever: there is no retriever 'bm52'; did you mean 'bm25'"),
        (["--in", "nowhere"], 2, "--in nowhere: there is no such folder"),
        (["--store", "postgresql://nobody@127.0.0.1:1/none"], 3, "PostgreSQL did not answer"),
        (["--host", "192.0.2.1"], 2, "cannot listen on 192.0.2.1 port 0: "),
        (["--host", "no such host"], 2, "cannot listen on no such host port 0: "),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(
    ringtrue: Callable[..., Any], options: list[str], code: int, said: str
) -> None:
    done = ringtrue("serve", "--port", "0", *options)
    assert done.code == code
    assert said in done.err
    assert len(done.err.splitlines()) == 1, done.err
    assert "Unknown error" not in done.err, "the system has words for it"


def test_what_eval_names_in_the_settings_is_served(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    for setting, said in (('golden = "hotell"', "--golden: there is no golden set 'hotell'"), ('retriever = "bm52"', "bm52")):
        (tmp_path / "ringtrue.toml").write_text(f"[eval]\n{setting}\n")
        done = ringtrue("serve", "--port", "0", "--host", "192.0.2.1")
        assert (done.code, said in done.err) == (2, True), done.err


def test_a_damaged_store_is_named_and_left_as_it_is(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bad.sqlite").write_bytes(b"no database " * 300)
    done = ringtrue("serve", "--port", "0", "--store", "bad.sqlite")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "bad.sqlite is not an SQLite database; name another file" in done.err
    assert (tmp_path / "bad.sqlite").read_bytes() == b"no database " * 300


def test_a_port_in_use_is_named_with_the_cure(ringtrue: Callable[..., Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ringtrue("serve", "--port", str(port), "--golden", "hotel")
    assert done.code == 2
    assert (
        done.err
        == f"ringtrue: cannot listen on 127.0.0.1 port {port}: Address already in use; choose another with --port, "
        + ("or another --host\n")
    )
