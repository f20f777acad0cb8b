"""The client and a running service together: keys, writes that arrive twice, and the example of the docs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ringtrue
from ringtrue import Client
from ringtrue.answers import Scope
from ringtrue.http_client import Response
from ringtrue.store import Store
from running_service import Served, running
from running_service import served as served

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that wants keys."""
    with running(tmp_path_factory.mktemp("guarded"), keys=True) as found:
        yield found


def key(server: Served, *scopes: Scope, project: str = "default") -> str:
    with Store.open(server.store) as store:
        return store.create_key("test", scopes, now=datetime.now(UTC), project=project)[1]


def test_a_key_opens_what_its_scopes_say_and_nothing_else(guarded: Served) -> None:
    with Client(guarded.url) as nobody, pytest.raises(ringtrue.AccessDenied, match="needs a key"):
        nobody.health()
    with (
        Client(guarded.url, key="rt_made-up") as stranger,
        pytest.raises(ringtrue.AccessDenied, match="unknown, expired or revoked"),
    ):
        stranger.health()
    with Client(guarded.url, key=key(guarded, "read")) as reader:
        assert reader.health().project == "default"
        with pytest.raises(ringtrue.AccessDenied, match="scope 'write'; yours has read"):
            reader.log("pool", tool_name="app")


def test_projects_do_not_see_each_other(guarded: Served) -> None:
    with (
        Client(guarded.url, key=key(guarded, "read", "write", project="a")) as one,
        Client(guarded.url, key=key(guarded, "read", project="b")) as other,
    ):
        query_id = one.log("pool", tool_name="app")
        assert one.queries.get(query_id).query == "pool"
        assert list(other.queries.list()) == []
        with pytest.raises(ringtrue.MissingInput):
            other.queries.get(query_id)


def test_a_search_is_found_under_the_id_that_a_program_gave_it(served: Served) -> None:
    with Client(served.url) as client:
        for query_id in ("a/b", "ü/ß", "../x", "a?b#c%2F", "stats/x"):
            assert client.log("pool", tool_name="app", query_id=query_id) == query_id
            assert client.queries.get(query_id).query_id == query_id
        for query_id in ("stats", ".", ".."):
            with pytest.raises(ringtrue.InputError, match="query_id"):
                client.log("pool", tool_name="app", query_id=query_id)
        with pytest.raises(ringtrue.MissingInput):
            client.queries.get("stats")


def test_a_revoked_key_opens_nothing_any_more(guarded: Served) -> None:
    with Client(guarded.url, key=key(guarded, "admin")) as admin:
        made = admin.keys.create("laptop", ["read"])
        with Client(guarded.url, key=made.token) as laptop:
            admin.keys.revoke(made.key_id)
            with pytest.raises(ringtrue.AccessDenied):
                laptop.health()


def test_a_write_whose_answer_was_lost_is_carried_out_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks after the service has done its work: the second try gets the answer of the first."""
    with Client(served.url) as client:
        real, lost = client._wire._http.request, []

        def breaks_once(*given: Any, **options: Any) -> Response:
            answer = real(*given, **options)
            if not lost:
                lost.append(answer)
                raise ringtrue.Unreachable("cut")
            return answer

        monkeypatch.setattr(client._wire._http, "request", breaks_once)
        query_id = client.log("a pool for swimmers", tool_name="once")
        assert lost[0].json["query_ids"] == [query_id]
        assert [search.query_id for search in client.queries.list(tool="once")] == [query_id]


def example(url: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "examples" / "rest_client.py", "--url", url]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_the_example_runs(served: Served) -> None:
    found = example(served.url)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0].startswith("bm25(")
    assert lines[2].split(":")[0] in ("better", "worse", "not enough evidence")
    assert lines[3] == "gate: pass"
    assert "a click on rank 1" in lines[4]
    assert "done" in found.stderr, "more than two queries are a job here, whose progress is told"


def test_the_example_takes_its_key_from_the_environment_and_keeps_it_to_itself(guarded: Served) -> None:
    refused = example(guarded.url, RINGTRUE_KEY="rt_made-up-and-secret")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert refused.stderr.startswith("error: this key is unknown")
    assert "secret" not in refused.stderr
