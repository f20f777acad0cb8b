"""The FastAPI example, started as its first lines say and used over HTTP."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from ringtrue.retrieve.connectors import connect
from ringtrue.store import Store
from ringtrue.traffic import marked

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 90.0


@contextmanager
def example(folder: Path) -> Iterator[str]:
    """The service on a port of its own; stopped, as by Ctrl-C, at the end."""
    environment = {**os.environ, "RINGTRUE_STORE": str(folder / "shop.sqlite"), "RINGTRUE_CACHE": str(folder / "cache")}
    printed = folder / "printed.txt"
    with printed.open("w") as told:
        process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "--app-dir", str(EXAMPLES), "fastapi_service:app", "--port", "0"],
            cwd=folder, env=environment, stdout=told, stderr=told,
        )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE
        while not (found := re.search(r"running on (http://\S+:[1-9]\d*)", printed.read_text())):
            assert process.poll() is None, printed.read_text()
            assert time.monotonic() < until, printed.read_text()
            time.sleep(0.05)
        yield found[1]
        process.terminate()
        process.wait(PATIENCE)
        assert "Traceback" not in printed.read_text()
    finally:
        process.kill()
        process.wait()


def eventually(true: Callable[[], Any]) -> Any:
    until = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def test_the_fastapi_example_logs_searches_clicks_and_a_shadow_run(tmp_path: Path, ringtrue: Callable[..., Any]) -> None:
    place = str(tmp_path / "shop.sqlite")

    def told(*words: str) -> Any:
        done = ringtrue(*words, "--store", place, "--json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    with example(tmp_path) as url, httpx2.Client(base_url=url) as http:
        clicked = http.get("/search", params={"text": "is the pool open", "session": "s1", "user": "ann"}).json()
        assert [hit["id"] for hit in clicked["hits"]] == ["pool", "spa"]
        assert http.post("/click", params={"query_id": clicked["query_id"], "item": "pool"}).status_code == 204
        http.get("/search", params={"text": "spa beside the pool", "session": "s2"})
        with marked("evaluation"):
            params = {"text": "{text}", "k": "{k}", "session": "e"}
            system = connect({"kind": "http", "url": f"{url}/search", "params": params})
            assert system.search("late checkout", k=1)[0].doc_id == "late"
        with Store.open(place) as store:
            eventually(lambda: len(store.shadow_runs(feature_id="titles-first")) == 2)
            eventually(lambda: len(store.queries(traffic="all")) == 3)
            # The flag is read within seconds: from then on the candidate answers, and nothing runs in its shadow.
            assert ringtrue("flag", "set", "titles-first", "--rollout", "100", "--store", place).code == 0
            eventually(lambda: _answered_by(http, store) == "candidate")

    searches = told("log", "tail", "-n", "100000")["searches"]
    first, second, *later = searches
    assert (first["query_id"], first["session_id"], first["user_id"]) == (clicked["query_id"], "s1", "ann")
    assert "late checkout" not in [row["query"] for row in searches]
    assert first["retriever"] != later[-1]["retriever"]
    assert later[-1]["flags"] == {"titles-first": True}
    with Store.open(place) as store:
        # Two workers answer in the shadow, so the second search may be stored before the first.
        rows = {row.query_id: row for row in store.shadow_runs(feature_id="titles-first")}
        assert first["query_id"] in rows
        assert rows[second["query_id"]].top_result_changed is False
    (event,) = told("feedback", "list", "--session", "s1")["events"]
    assert (event["query_id"], event["item_id"], event["rank_in_results"]) == (first["query_id"], "pool", 1)
    derived = told("feedback", "derive", "--mixed", "separate")
    assert derived["by_source"] == {"implicit by person": 1}
    (judgment,) = told("feedback", "judgments")["judgments"]
    assert (judgment["query_id"], judgment["item_id"], judgment["relevance"]) == (first["query_id"], "pool", 2)
    assert told("shadow", "status")["shadow"]["titles-first"]["queries"] >= 2


def _answered_by(http: httpx2.Client, store: Store) -> str:
    answer = http.get("/search", params={"text": "pool", "session": "s3"}).json()
    (row,) = eventually(lambda: store.queries(query_ids=[answer["query_id"]]))
    return str(row.retriever).partition("#")[0]
