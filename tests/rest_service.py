"""A server in this process over the hotel documents, asked as programs ask it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from ringtrue.service import Settings, create_app
from ringtrue.service.settings import Rates
from ringtrue.store import Store

UNHURRIED = Rates(log=1e6, heavy=1e6, other=1e6, login=1e6)


@cache
def _empty() -> Path:
    """A store with tables and no rows, made once: to copy it is faster than to make it."""
    file = Path(tempfile.mkdtemp(prefix="ringtrue-test-")) / "store.sqlite"
    atexit.register(shutil.rmtree, file.parent, ignore_errors=True)
    Store.open(file).close()
    return file


@cache
def _routes() -> dict[Any, Any]:
    """The routes of an application that is never started, each under the router it was made from."""
    return {id(one.original_router): one for one in create_app(Settings()).router.routes if hasattr(one, "original_router")}


def application(settings: Settings) -> FastAPI:
    """Return the application as the server has it, with routes that were worked out before.

    FastAPI works out what a route takes and gives when an application is first asked, which takes half a second for all of
    them. They are the same for every application: only its state, its settings and what they decide are its own.
    """
    app = create_app(settings)
    known = _routes()
    app.router.routes[:] = [known.get(id(getattr(one, "original_router", None)), one) for one in app.router.routes]
    return app


@contextmanager
def serving(place: Path, /, **settings: Any) -> Iterator[TestClient]:
    """Serve a store in a folder; the server's own search is BM25 over the documents of the hotel set."""
    file = place / "store.sqlite"
    if not file.exists():
        shutil.copy(_empty(), file)
    chosen = {"store": str(file), "golden": "hotel", "retriever": "bm25", "rates": UNHURRIED, **settings}
    with TestClient(application(Settings(**chosen)), base_url="http://127.0.0.1:8080") as client:
        yield client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server of its own for the tests of one file, with a cache of its own; callers need no key."""
    folder = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RINGTRUE_CACHE", str(folder / "cache"))
        patched.chdir(folder)
        with serving(folder) as found:
            yield found


def problem(answer: Any) -> dict[str, Any]:
    """Return what an answer that is not a success says, in the one shape of errors."""
    assert set(answer.json()) == {"error"}, answer.text
    found: dict[str, Any] = answer.json()["error"]
    assert set(found) == {"code", "message", "field", "request_id"}
    return found
