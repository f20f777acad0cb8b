"""A server in this process over an empty store, on SQLite and on PostgreSQL: import ``client``, ``kind`` and ``url``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import serving
from ringtrue.answers import Scope
from ringtrue.store import Store

ON_ONE = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
"""For what does not depend on the database."""
NOW = "2026-03-01T12:00:00Z"
Headers = Callable[..., dict[str, str]]


@pytest.fixture
def client(url: str, tmp_path: Path) -> Iterator[TestClient]:
    """A server whose callers need no key."""
    with serving(tmp_path, store=url) as found:
        yield found


@pytest.fixture
def keyed(url: str, tmp_path: Path) -> Iterator[tuple[TestClient, Headers]]:
    """A server that needs keys, and a function that makes one: name, scopes and project → headers."""
    with ExitStack() as opened:
        found = opened.enter_context(serving(tmp_path, store=url, keys=True))
        store = opened.enter_context(Store.open(url))

        def key(name: str = "ada", scopes: Sequence[Scope] = ("read",), project: str = "default") -> dict[str, str]:
            token = store.create_key(name, scopes, now=NOW, project=project)[1]
            return {"authorization": f"Bearer {token}"}

        yield found, key


def ok(answer: Any, status: int = 200) -> Any:
    """Return what a successful answer says."""
    assert answer.status_code == status, answer.text
    return answer.json()


def examples_of(model: Any) -> list[Any]:
    """Return the examples that the OpenAPI document has of a request's body."""
    found: list[Any] = model.model_json_schema()["examples"]
    assert found
    return found
