"""Searches of evaluations, gates, shadow runs and tests are logged apart from users' searches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI

from connectors.faults import LOOPBACK
from ringtrue.errors import InputError
from ringtrue.feedback import derive_into
from ringtrue.golden import save
from ringtrue.log import QueryLog, TrafficMiddleware, log_figures, queries_of, record_feedback
from ringtrue.records import Document, GoldenSet, Judgment, Query
from ringtrue.retrieve.connectors import connect
from ringtrue.review import from_log as harvest
from ringtrue.rollout import Shadow, health_of
from ringtrue.run import evaluate
from ringtrue.store import FeedbackEvent, LoggedQuery, Store
from ringtrue.traffic import HEADER, VARIABLE, current, marked, received

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACES = {"pool": "an indoor pool", "spa": "sauna and massage", "bar": "drinks until late"}
GOLDEN = GoldenSet(
    "hotel",
    "1.0.0",
    tuple(Query(f"q{number}", f"where is the {name}") for number, name in enumerate(PLACES)),
    tuple(Judgment(f"q{number}", name, 3) for number, name in enumerate(PLACES)),
    tuple(Document(name, text) for name, text in PLACES.items()),
)


def find(text: str, k: int = 10) -> list[str]:
    """A search: the places that the question names first, then the others."""
    return sorted(PLACES, key=lambda name: (name not in text, name))[:k]


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite")


@pytest.fixture
def log(place: str) -> Iterator[QueryLog]:
    with QueryLog(place, project="default") as opened:
        yield opened


CHILD = "from ringtrue.traffic import current; print(current())"


@pytest.mark.parametrize("before", [None, "test"])
def test_a_mark_of_the_whole_process_reaches_child_processes(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(VARIABLE, before)

    def child() -> str:
        return subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True).stdout.strip()

    with marked("gate"), marked("evaluation", whole_process=True):
        assert child() == "gate"
    assert os.environ.get(VARIABLE) == before
    with marked("gate"):  # one thread only
        assert os.environ.get(VARIABLE) == before


def texts(place: str, traffic: Any = "user") -> list[str]:
    with Store.open(place) as store:
        return [row.query for row in store.queries(traffic=traffic)]


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def service(log: QueryLog) -> Iterator[str]:
    """A service as its author writes it, on a port of its own; the one line is the middleware."""
    app = FastAPI()
    app.add_middleware(TrafficMiddleware)

    @app.get("/find")
    @log.search(tool="shop")
    def search(text: str, k: int = 10) -> list[dict[str, str]]:
        return [{"id": name} for name in find(text, k)]

    server = uvicorn.Server(uvicorn.Config(app, host=LOOPBACK, port=0, log_level="error"))
    ready = threading.Event()
    startup = server.startup

    async def announced(sockets: Any = None) -> None:
        await startup(sockets)
        ready.set()

    server.startup = announced  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://{LOOPBACK}:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)


def test_an_evaluation_of_a_logged_service_leaves_the_users_searches_as_they_are(log: QueryLog, place: str) -> None:
    with service(log) as url:
        for name in ("pool", "bar"):
            assert httpx2.get(f"{url}/find", params={"text": f"is there a {name}"}).json()[0]["id"] == name
        system = connect(
            {"kind": "http", "url": f"{url}/find", "params": {"text": "{text}", "k": "{k}"}, "hits": "", "score": ""}
        )
        found = evaluate(system, GOLDEN, measures=["RR"], k=3, allow=["documents"])
        assert found.metrics["RR"] == 1.0
        with marked("test"):
            system.search("is the service up", k=1)
        httpx2.get(f"{url}/find", params={"text": "from a load test"}, headers={HEADER: "k6"})
    assert log.flush(10)
    assert texts(place) == ["is there a pool", "is there a bar"]
    assert set(texts(place, "evaluation")) == {query.text for query in GOLDEN.queries}
    assert texts(place, "test") == ["is the service up", "from a load test"]
    assert len(texts(place, "all")) >= 7


@contextmanager
def recording() -> Iterator[tuple[str, list[str | None]]]:
    """An endpoint that notes the mark of each request."""
    marks: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = json.loads(self.rfile.read(int(self.headers["content-length"])))["text"]
            marks.append(self.headers[HEADER])
            body = json.dumps({"hits": [{"id": name} for name in find(text)]}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/find", marks
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str | None]]:
    """A folder with a golden set and a connection called shop; the marks that its requests carried."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    save(GOLDEN, Path("gold.json"))
    with recording() as (url, marks):
        Path("ringtrue.toml").write_text(
            f"[connections.shop]\nkind = 'http'\nurl = '{url}'\nbody = {{text = '{{text}}', k = '{{k}}'}}\nscore = ''\n"
        )
        yield marks


@pytest.mark.parametrize(("command", "mark"), [("eval", "evaluation"), ("gate", "gate")])
def test_a_command_marks_each_request_with_what_it_is(
    ringtrue: Callable[..., Any], project: list[str | None], command: str, mark: str
) -> None:
    done = ringtrue(command, "--golden", "gold.json", "--retriever", "connect('shop')", "--no-store", "--no-cache")
    assert done.code in (0, 3), done.err
    assert len(project) >= len(GOLDEN.queries)
    assert set(project) == {mark}


def test_a_command_marks_what_the_threads_of_a_search_ask(ringtrue: Callable[..., Any], project: list[str | None]) -> None:
    Path("fanned.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from pathlib import Path\n"
        "from ringtrue.traffic import current\n"
        "pool, seen = ThreadPoolExecutor(2), []\n"
        "def find(text, k):\n"
        "    seen.append(pool.submit(current).result())\n"
        "    Path('marks.txt').write_text(' '.join(seen))\n"
        "    return ['bar']\n"
    )
    done = ringtrue("eval", "--golden", "gold.json", "--python", "fanned.py:find", "--no-store")
    assert done.code == 0, done.err
    assert set(Path("marks.txt").read_text().split()) == {"evaluation"}
    assert current() == "user", "the mark ends with the command"


def test_answering_a_set_into_a_run_file_marks_its_requests(ringtrue: Callable[..., Any], project: list[str | None]) -> None:
    done = ringtrue("search", "--queries", "gold.json", "--retriever", "connect('shop')", "--run", "shop.run", "-k", "3")
    assert done.code == 0, done.err
    assert project == ["evaluation"] * len(GOLDEN.queries)


def test_a_refresh_marks_what_it_asks_again(
    ringtrue: Callable[..., Any], project: list[str | None], log: QueryLog, place: str
) -> None:
    for name in ("pool", "spa", "bar"):
        with log.query(f"how warm is the {name} today", tool="shop") as query:
            query.answer(find(name))
    assert log.flush(60)
    done = ringtrue("golden", "refresh", "gold.json", "--retriever", "connect('shop')", "--count", "2", "--store", place)
    assert done.code == 0, done.err
    assert project
    assert set(project) == {"evaluation"}


def test_a_users_search_carries_no_mark(ringtrue: Callable[..., Any], project: list[str | None]) -> None:
    assert ringtrue("search", "pool", "--retriever", "connect('shop')").code == 0
    assert project == [None]


# ── in one process ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_watched_retriever_that_is_evaluated_logs_no_users_search(log: QueryLog, place: str) -> None:
    watched = log.watched(find, tool="shop")
    watched.search("pool")
    evaluate(watched, GOLDEN, measures=["RR"], k=3)
    assert log.flush(10)
    assert texts(place) == ["pool"]
    assert set(texts(place, "evaluation")) == {query.text for query in GOLDEN.queries}


@pytest.mark.parametrize("workers", [1, 3])
def test_the_outer_mark_holds_in_every_worker_of_an_evaluation(workers: int) -> None:
    seen: list[str] = []

    def search(text: str, k: int) -> Sequence[str]:
        from ringtrue.traffic import current

        seen.append(current())
        return find(text, k)

    with marked("gate"):
        evaluate(search, GOLDEN, measures=["RR"], k=3, workers=workers)
    assert set(seen) == {"gate"}


def test_a_live_shadow_marks_the_candidate_and_leaves_evaluations_out(log: QueryLog, place: str) -> None:
    candidate = log.watched(lambda text, k: find(text, k)[::-1], tool="candidate")
    with Store.open(place) as store, Shadow(find, candidate, store, "reverse", sample=1) as shadow:
        shadow.search("pool", k=3)
        evaluate(shadow.search, GOLDEN, measures=["RR"], k=3)
        counts = shadow.close()
    assert (counts.asked, counts.answered, counts.saved) == (1, 1, 1)
    assert log.flush(10)
    assert (texts(place), texts(place, "shadow")) == ([], ["pool"])


def test_a_service_without_asgi_passes_the_mark_on_by_itself(log: QueryLog, place: str) -> None:
    with log.context(traffic=received("Evaluation")), log.query("pool", tool="flask") as search:
        search.answer(["pool"])
    assert log.flush(10)
    assert (texts(place), texts(place, "evaluation")) == ([], ["pool"])
    with pytest.raises(InputError, match=r"unknown traffic 'evalation'; did you mean 'evaluation'"):
        log.query("pool", tool="flask", traffic="evalation")
    with pytest.raises(InputError, match="unknown traffic"), marked("load"):
        pass


# ── what reads the log ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    """A log with two searches of users and three of others; each was clicked on."""
    with Store.open(place) as opened:
        opened.add_queries(
            LoggedQuery(
                f"eq_{number}", f"query {number}", "shop", f"2026-03-01T11:0{number}:00Z", session_id="s",
                result_ids=("a", "b"), retriever="bm25" if kind == "user" else "candidate", total_latency_ms=10.0, traffic=kind,
            )
            for number, kind in enumerate(("user", "evaluation", "gate", "shadow", "user"))
        )  # fmt: skip
        record_feedback(
            opened,
            [
                FeedbackEvent(f"ef_{number}", "click", "s", "2026-03-01T11:06:00Z", query_id=f"eq_{number}", item_id="a")
                for number in range(5)
            ],
        )
        yield opened


def test_only_users_searches_count_in_figures(store: Store) -> None:
    assert log_figures(queries_of(store)).total.searches == 2
    assert store.count_queries() == 2
    assert [row.query_id for row in store.queries(newest=True)] == ["eq_0", "eq_4"]
    (bucket,) = store.log_volume(since="2026-03-01T00:00:00Z", until="2026-03-02T00:00:00Z", step="day")
    assert bucket.searches == 2
    assert next(part for part in health_of(store, now=NOON).parts if part.name == "log").figures["last_24h"] == 2


def test_only_users_searches_become_judgments_and_golden_queries(store: Store) -> None:
    found = derive_into(store, now="2026-03-01T12:00:00Z")  # the others were answered by another retriever
    assert {one.query_id for one in found.judgments} == {"eq_0", "eq_4"}
    assert [row.query_id for row in harvest.searches(store)] == ["eq_0", "eq_4"]


def test_a_search_is_found_by_its_id_whoever_made_it(store: Store) -> None:
    assert [row.traffic for row in store.queries(query_ids=["eq_2"])] == ["gate"]
    assert [row.query_id for row in store.queries(traffic="all")] == [f"eq_{number}" for number in range(5)]


def test_log_commands_show_another_traffic_when_asked(
    ringtrue: Callable[..., Any], store: Store, place: str, tmp_path: Path
) -> None:
    def shown(*words: str) -> list[str]:
        return [row["query_id"] for row in ringtrue("log", "tail", "--store", place, "--json", *words).json["searches"]]

    assert shown() == ["eq_0", "eq_4"]
    assert shown("--traffic", "gate") == ["eq_2"]
    assert len(shown("--traffic", "all")) == 5
    stats = ringtrue("log", "stats", "--store", place, "--since", "2026-01-01", "--traffic", "evaluation", "--json")
    assert stats.json["total"]["searches"] == 1
    file = tmp_path / "out.jsonl"
    assert ringtrue("log", "export", file, "--store", place, "--traffic", "all", "--json").json["rows"] == 5
    assert [json.loads(line)["traffic"] for line in file.read_text().splitlines()][1:3] == ["evaluation", "gate"]
    other = str(tmp_path / "other.sqlite")
    assert ringtrue("log", "import", file, "--store", other, "--json").json["new_queries"] == 5
    assert len(texts(other)) == 2
    wrong = ringtrue("log", "tail", "--store", place, "--traffic", "evalation")
    assert (wrong.code, "did you mean 'evaluation'" in wrong.err) == (2, True)
