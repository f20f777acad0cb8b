"""Tools of MCP servers that are written with the official SDK's own server class, over both transports."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from connectors import faults
from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.mcp import Mcp
from ringtrue.testing.retrievers import ConnectorSuite, NotPossible, raises
from ringtrue.traffic import marked

pytest.importorskip("mcp", reason="MCP IS NOT TESTED: pip install mcp")

EXAMPLE = Path(__file__).parents[2] / "examples" / "connect" / "with_mcp.py"
TOKEN = "very-secret-token"
SERVER = '''
"""A search over five notes as an MCP server; tools that fail in one way each."""
import os, sys, time
from pathlib import Path
from typing import Any
from mcp.server.mcpserver import Context, MCPServer

NOTES = {
    "n1": "The pool is heated and open until ten; children swim in the pool until eight.",
    "n2": "Towels for the pool are at the desk.",
    "n3": "Breakfast beside the pool on sunny days.",
    "n4": "Cars stand in the yard behind the house.",
    "n5": "Der pool ist offen.",
}
server = MCPServer("notes", log_level="CRITICAL")


def found(query: str) -> list[dict[str, Any]]:
    words = query.lower().split()[:20]
    scores = {key: sum(text.lower().count(word) for word in words) / len(text) for key, text in NOTES.items()}
    best = sorted((key for key in scores if scores[key]), key=lambda key: -scores[key])
    return [{"id": key, "score": scores[key], "lang": "de" if key == "n5" else "en"} for key in best]


@server.tool()
def search(query: str, limit: int = 10, lang: str = "") -> list[dict[str, Any]]:
    return [hit for hit in found(query) if lang in ("", hit["lang"])][:limit]


@server.tool()
def nested(query: str) -> dict[str, Any]:
    return {"page": {"items": [{"note": {"key": hit["id"]}, "distance": 1 - hit["score"]} for hit in found(query)[::-1]]}}


@server.tool(structured_output=False)
def texts(query: str, limit: int):
    return found(query)[:limit]


@server.tool(structured_output=False)
def json_text(query: str) -> str:
    return '{"hits": [{"id": "n1", "score": 2}, {"id": "n2", "score": 1}]}'


@server.tool(structured_output=False)
def prose(query: str) -> str:
    return "I found the note about the pool."


@server.tool()
def passages(query: str, limit: int) -> list[dict[str, Any]]:
    rows = [{"id": "d1", "part": n, "score": 9.0 - n} for n in range(6)] + [{"id": "d2", "part": 0, "score": 1.0}]
    return rows[:limit]


@server.tool()
def twice(query: str) -> list[dict[str, Any]]:
    return [{"id": "n1", "score": 2.0}, {"id": "n1", "score": 1.0}]


@server.tool()
def fails(query: str) -> list[dict[str, Any]]:
    raise ValueError("the index is gone")


@server.tool()
def who(query: str) -> list[dict[str, Any]]:
    return [{"id": str(os.getpid()), "score": 1.0}]


@server.tool()
def traffic(query: str, context: Context) -> list[dict[str, Any]]:
    return [{"id": str((context.request_context.meta or {}).get("ringtrue/traffic")), "score": 1.0}]


@server.tool()
def variables(query: str) -> list[dict[str, Any]]:
    return [{"id": name, "score": 1.0} for name in sorted(os.environ)]


@server.tool()
def slow(query: str, file: str) -> list[dict[str, Any]]:
    with open(file, "a") as pids:
        pids.write(f"{os.getpid()}\\n")
    if query == "slow":
        time.sleep(30)
    return who(query)


@server.tool()
def dies(query: str, file: str = "") -> list[dict[str, Any]]:
    if file and Path(file).exists():
        return found(query)
    if file:
        Path(file).touch()
    print("could not log in with", os.environ.get("NOTES_TOKEN"), file=sys.stderr, flush=True)
    os._exit(3)


if len(sys.argv) == 1:
    server.run()
else:
    import uvicorn

    inside = server.streamable_http_app()

    async def guarded(scope, receive, send):
        headers = dict(scope.get("headers", ()))
        if scope["type"] == "http" and headers.get(b"authorization") != b"Bearer " + os.environ["NOTES_TOKEN"].encode():
            await send({"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"who are you?"})
        else:
            await inside(scope, receive, send)

    uvicorn.run(guarded, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
'''
ONLY_QUERY = {"query": "{text}"}


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("mcp") / "server.py"
    file.write_text(SERVER)
    return str(file)


@pytest.fixture(scope="module")
def port(script: str) -> Iterator[int]:
    """A server over streamable HTTP that wants a token."""
    found = faults.free_port()
    process = subprocess.Popen([sys.executable, script, str(found)], env={**os.environ, "NOTES_TOKEN": TOKEN})
    try:
        eventually(lambda: process.poll() is not None or listens(found))
        assert process.poll() is None, "the MCP server did not start"
        yield found
    finally:
        process.terminate()
        process.wait(30)


def listens(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        return probe.connect_ex((faults.LOOPBACK, port)) == 0


def eventually(true: Callable[[], bool], *, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"it did not come true within {seconds:g} s"
        time.sleep(0.02)


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that has ended stays in the table until its parent has asked for it; as root of a container nobody may ask.
    state = Path(f"/proc/{process}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


@dataclass
class Made:
    """Makes connections of one kind, and closes them in the end."""

    settings: dict[str, Any]
    all: list[Mcp] = field(default_factory=list)

    def __call__(self, tool: str, **settings: Any) -> Mcp:
        made = Mcp(**{"tool": tool, "retries": 0, **self.settings, **settings})
        self.all.append(made)
        return made

    def close(self) -> None:
        for connector in self.all:
            connector._kept.end()
        for connector in self.all:
            connector.close()


@pytest.fixture(scope="module")
def make(script: str) -> Iterator[Made]:
    """Connections to servers that are started, each its own."""
    made = Made({"command": [sys.executable, script]})
    yield made
    made.close()


@pytest.fixture
def ask(port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Connections to the server that runs already: nothing has to be started for them."""
    monkeypatch.setenv("NOTES_TOKEN", TOKEN)
    made = Made({"url": f"http://127.0.0.1:{port}/mcp", "token_env": "NOTES_TOKEN"})
    yield made
    made.close()


@pytest.fixture(scope="module")
def started(make: Made) -> Mcp:
    """One connection that most tests share: starting a server takes a second."""
    return make("search")


class TestStdioSuite(ConnectorSuite):
    SECRETS = (TOKEN,)

    @pytest.fixture(autouse=True)
    def _server(self, make: Made, started: Mcp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NOTES_TOKEN", TOKEN)
        self.new, self.started, self.folder = make, started, tmp_path

    def make(self) -> Any:
        return self.started

    def wrong_credentials(self) -> Any:
        raise NotPossible("a program that is started has no login of its own; what it needs it reads from its environment")

    def nobody_there(self) -> Any:
        return self.new("search", command=["/there/is/no/such/program"])

    def gone_mid_query(self) -> Any:
        return self.new("dies", arguments=ONLY_QUERY, env=["NOTES_TOKEN"])

    def too_slow(self) -> Any:
        return self.new("slow", arguments={"query": "slow", "file": f"{self.folder}/pids{{text}}"}, timeout=0.3)

    def malformed(self) -> Any:
        return self.new("nested", arguments=ONLY_QUERY)

    def twice(self) -> Any:
        return self.new("twice", arguments=ONLY_QUERY)

    def few(self) -> Any:
        return self.started, "pool", 4

    def fails_once(self) -> Any:
        return self.new("dies", arguments={**ONLY_QUERY, "file": str(self.folder / "flag")}, retries=1)


class TestHttpSuite(ConnectorSuite):
    SECRETS = (TOKEN, "127.0.0.1", "another-token")

    @pytest.fixture(autouse=True)
    def _server(self, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("NOTES_TOKEN", TOKEN)
        monkeypatch.setenv("WRONG_TOKEN", "another-token")
        self.port, self.folder, self.all = port, tmp_path, list[Mcp]()
        with ExitStack() as self.stack:
            yield
            for connector in self.all:
                connector.close()

    def at(self, port: int, **settings: Any) -> Mcp:
        url = f"http://127.0.0.1:{port}/mcp"
        made = Mcp(**{"url": url, "tool": "search", "token_env": "NOTES_TOKEN", "retries": 0, **settings})
        self.all.append(made)
        return made

    def make(self) -> Any:
        return self.at(self.port)

    def wrong_credentials(self) -> Any:
        return self.at(self.port, token_env="WRONG_TOKEN")

    def nobody_there(self) -> Any:
        return self.at(faults.free_port())

    def gone_mid_query(self) -> Any:
        proxy = self.stack.enter_context(faults.proxy(self.port))
        connector = self.at(proxy.port)
        assert connector.search("pool")
        proxy.cut_answer_after(60)
        return connector

    def too_slow(self) -> Any:
        proxy = self.stack.enter_context(faults.proxy(self.port))
        connector = self.at(proxy.port)
        assert connector.search("pool")
        object.__setattr__(connector, "timeout", 0.3)
        proxy.hang()
        return connector

    def malformed(self) -> Any:
        return self.at(self.port, tool="nested", arguments=ONLY_QUERY)

    def twice(self) -> Any:
        return self.at(self.port, tool="twice", arguments=ONLY_QUERY)

    def few(self) -> Any:
        return self.at(self.port), "pool", 4

    def fails_once(self) -> Any:
        proxy = self.stack.enter_context(faults.proxy(self.port))
        proxy.cut()

        def restore() -> None:
            eventually(lambda: proxy.connections > 0)
            proxy.restore()

        watch = threading.Thread(target=restore)
        watch.start()
        self.stack.callback(watch.join)
        return self.at(proxy.port, retries=1)

    def test_without_a_token_access_is_denied(self) -> None:
        with raises(AccessDenied):
            self.at(self.port, token_env=None).search("pool")

    def test_a_token_that_is_not_set_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NOT_SET", raising=False)
        with raises(MissingInput) as messages:
            self.at(self.port, token_env="NOT_SET").search("pool")
        assert "NOT_SET" in messages[0]

    def test_another_path_is_no_mcp_server(self) -> None:
        with raises(BadAnswer) as messages:
            self.at(self.port, url=f"http://127.0.0.1:{self.port}/other").search("pool")
        assert "404" in messages[0]

    @pytest.mark.parametrize(
        ("answer", "wanted"),
        [
            (faults.Answer("busy", 503, {"Content-Type": "text/plain"}), Unreachable),
            (faults.Answer("no", 403, {"Content-Type": "text/plain"}), AccessDenied),
            (faults.Answer("<html>", 200, {"Content-Type": "text/html"}), BadAnswer),
            (faults.Answer("{not json", 200), BadAnswer),
            (faults.Answer("", 302, {"Location": "https://elsewhere.example.com/"}), BadAnswer),
        ],
        ids=["busy", "forbidden", "html", "no-json", "redirect"],
    )
    def test_what_is_no_mcp_server_is_told_apart(self, answer: faults.Answer, wanted: type[Exception]) -> None:
        with faults.answering([answer]) as server, raises(wanted) as messages:
            self.at(server.port, start_timeout=60.0).search("pool")
        assert "127.0.0.1" not in messages[0]

    def test_a_server_that_never_answers_is_not_waited_for(self) -> None:
        with faults.silent() as port, raises(TimedOut) as messages:
            self.at(port, start_timeout=0.3).search("pool")
        assert "start_timeout" in messages[0]

    def test_a_session_lost_by_the_server_is_opened_again(self) -> None:
        proxy = self.stack.enter_context(faults.proxy(self.port))
        connector = self.at(proxy.port, retries=1)
        before = connector.search("pool")
        proxy.cut()
        proxy.restore()
        assert connector.search("pool") == before


def test_the_answer_may_be_structured_or_text(ask: Made) -> None:
    wanted = [(hit.doc_id, hit.score) for hit in ask("search").search("pool", k=3)]
    assert [doc_id for doc_id, _ in wanted] == ["n5", "n2", "n1"]
    texts = ask("texts")
    assert [(hit.doc_id, hit.score) for hit in texts.search("pool", k=3)] == wanted
    assert [(hit.doc_id, hit.score) for hit in texts.search("pool", k=1)] == wanted[:1], "one hit is one text"
    assert texts.search("nothing here", k=3) == []


def test_a_json_text_is_read_by_its_path(ask: Made) -> None:
    found = ask("json_text", arguments=ONLY_QUERY, hits="hits").search("pool")
    assert [(hit.doc_id, hit.score) for hit in found] == [("n1", 2.0), ("n2", 1.0)]


def test_prose_is_a_bad_answer(ask: Made) -> None:
    with raises(BadAnswer) as messages:
        ask("prose", arguments=ONLY_QUERY).search("pool")
    assert "I found the note" in messages[0]


def test_paths_reach_into_the_answer_and_distances_are_negated(ask: Made) -> None:
    settings = {"arguments": ONLY_QUERY, "hits": "page.items", "id": "note.key", "score": "distance"}
    hits = ask("nested", **settings, lower_is_better=True).search("pool", k=4)
    assert hits[-1].doc_id == "n5"
    assert all(-1 < hit.score < 0 for hit in hits)
    with raises(BadAnswer) as messages:
        ask("nested", **settings | {"id": "note.name"}).search("pool")
    assert "'name'" in messages[0]


def test_a_scope_becomes_an_argument_or_is_refused(ask: Made) -> None:
    connector = ask("search", arguments={"query": "{text}", "limit": "{k}", "lang": "{scope.lang}"})
    assert [hit.doc_id for hit in connector.search("pool", scope={"lang": "de"})] == ["n5"]
    assert len(connector.search("pool")) == 4, "without a scope the argument is left out"
    with raises(InputError) as messages:
        ask("search").search("pool", scope={"lang": "de"})
    assert "scope.lang" in messages[0]


def test_passages_of_a_document_count_once_and_k_documents_are_found(ask: Made) -> None:
    hits = ask("passages", chunk="part").search("pool", k=2)
    assert [(hit.doc_id, hit.chunk) for hit in hits] == [("d1", "0"), ("d2", "0")]


def test_a_tool_that_fails_is_a_bad_answer(ask: Made) -> None:
    with raises(BadAnswer) as messages:
        ask("fails", arguments=ONLY_QUERY).search("pool")
    assert "'fails'" in messages[0]


def test_a_tool_that_is_not_there_is_named_with_those_that_are(ask: Made) -> None:
    with raises(InputError) as messages:
        ask("serch").search("pool")
    assert "'serch'" in messages[0]
    assert "'search'" in messages[0]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"query": "{text}", "limitt": "{k}"}, "'limit'"),
        ({"lang": "{text}"}, "needs the argument 'query'"),
    ],
    ids=["unknown", "missing"],
)
def test_arguments_are_checked_against_the_tools_schema(ask: Made, arguments: dict[str, str], word: str) -> None:
    with raises(InputError) as messages:
        ask("search", arguments=arguments).search("pool")
    assert word in messages[0]


def test_an_argument_of_the_wrong_type_is_a_bad_answer(ask: Made) -> None:
    with raises(BadAnswer) as messages:
        ask("search", arguments={"query": "{text}", "limit": "as many as {k}"}).search("pool")
    assert "limit" in messages[0]


def test_a_marked_call_says_so_in_its_metadata(ask: Made) -> None:
    def said() -> str:
        return str(ask("traffic", arguments=ONLY_QUERY).search("pool")[0].doc_id)

    assert said() == "None"
    with marked("evaluation"):
        assert said() == "evaluation"


def test_title_and_text_of_hits_are_remembered_for_people_who_judge(ask: Made) -> None:
    notes = ask("texts", title="lang", text="id")
    hits = notes.search("towels", k=2)
    assert [notes.passages()[hit.doc_id] for hit in hits] == [("en", "n2")]
    assert ask("texts").passages() == {}


def test_one_session_serves_all_questions_and_threads(make: Made) -> None:
    connector = make("who", arguments=ONLY_QUERY)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: connector.search(f"q{number}")[0].doc_id, range(20)))
    assert len(set(answers)) == 1
    assert runs(int(answers[0]))
    connector.close()
    assert not runs(int(answers[0])), "the server outlived the connection"
    assert connector.search("again")[0].doc_id != answers[0], "after close another server is started"


def test_a_connection_that_nobody_holds_ends_its_server(script: str) -> None:
    connector = Mcp(tool="who", command=[sys.executable, script], arguments=ONLY_QUERY)
    process = int(connector.search("pool")[0].doc_id)
    assert runs(process)
    del connector
    gc.collect()
    eventually(lambda: not runs(process))


def test_no_server_outlives_python(script: str) -> None:
    code = f"""
import sys
from ringtrue.retrieve.connectors.mcp import Mcp
held = Mcp(tool="who", command=[sys.executable, {script!r}], arguments={{"query": "{{text}}"}})
print(held.search("pool")[0].doc_id)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    assert not runs(int(done.stdout))


def test_a_server_that_is_stuck_is_replaced_and_ended(make: Made, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    connector = make("slow", arguments={"query": "{text}", "file": str(file)}, timeout=3.0)
    with raises(TimedOut):
        connector.search("slow")
    assert connector.search("quick")
    stuck, other = map(int, file.read_text().split())
    assert stuck != other
    eventually(lambda: not runs(stuck))


def test_the_last_words_of_a_server_are_shown_without_its_secrets(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES_TOKEN", TOKEN)
    with raises(Unreachable) as messages:
        make("dies", arguments=ONLY_QUERY, env=["NOTES_TOKEN"]).search("pool")
    assert "could not log in with …" in messages[0]


def test_a_server_sees_only_the_variables_that_are_named(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES_TOKEN", TOKEN)
    monkeypatch.setenv("OTHER_SECRET", "x")
    seen = {hit.doc_id for hit in make("variables", arguments=ONLY_QUERY, env=["NOTES_TOKEN"]).search("pool", k=1000)}
    assert "NOTES_TOKEN" in seen
    assert "OTHER_SECRET" not in seen


def test_a_program_that_is_no_server_goes_away_or_is_not_ready(make: Made) -> None:
    with raises(Unreachable) as messages:
        make("search", command=[sys.executable, "-c", "import sys; sys.exit('no such database')"]).search("pool")
    assert "no such database" in messages[0]
    with raises(TimedOut):
        make(
            "search",
            command=[sys.executable, "-c", "import sys; print('hello', flush=True); sys.stdin.read()"],
            start_timeout=0.5,
        ).search("pool")


def test_a_blank_question_is_not_asked(make: Made) -> None:
    assert make("search", command=["/there/is/no/such/program"]).search(" ") == []


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({}, "command or by url"),
        ({"command": ["x"], "url": "http://x"}, "command or by url"),
        ({"command": [1]}, "command"),
        ({"command": ["x"], "args": "-v"}, "args"),
        ({"command": ["x"], "token_env": "T"}, "token_env"),
        ({"url": "ftp://x"}, "http://"),
        ({"url": "http://x", "env": ["A"]}, "belong to a command"),
        ({"command": ["x"], "tool": ""}, "tool"),
        ({"command": ["x"], "arguments": {"query": "pool"}}, "{text}"),
        ({"command": ["x"], "id": ""}, "invalid id=''"),
        ({"command": ["x"], "start_timeout": 0}, "start_timeout"),
        ({"command": ["x"], "start_timeout": float("inf")}, "start_timeout"),
        ({"command": ["x"], "folder": "/no/such/folder"}, "no folder /no/such/folder"),
        ({"url": "http://x", "folder": "."}, "belong to a command"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], word: str) -> None:
    with raises(InputError) as messages:
        Mcp(**{"tool": "search", **settings})
    assert word in messages[0]


def test_a_server_from_ringtrue_toml_runs_in_the_folder_of_that_file(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "notes.py").write_text(Path(script).read_text(encoding="utf-8"), encoding="utf-8")
    block = f'kind = "mcp"\ntool = "search"\ncommand = ["{sys.executable}"]\n'
    text = f'[connections.above]\n{block}args = ["tools/notes.py"]\n'
    text += f'[connections.inside]\n{block}args = ["notes.py"]\nfolder = "tools"\n'
    (tmp_path / "ringtrue.toml").write_text(text, encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name in ("above", "inside"):
        notes = connect(name)
        assert notes.search("towels", k=1)[0].doc_id == "n2"
        notes.close()


def test_an_open_session_stays_behind_when_the_settings_travel(make: Made) -> None:
    notes = make("who", arguments=ONLY_QUERY)
    here = notes.search("a")[0].doc_id
    copy = pickle.loads(pickle.dumps(notes))
    assert copy == notes
    assert copy.search("b")[0].doc_id != here
    copy.close()
    assert notes.search("c")[0].doc_id == here


def test_connect_reads_the_settings_of_a_file(script: str) -> None:
    notes = connect({"kind": "mcp", "command": sys.executable, "args": [script], "tool": "search"}, name="notes")
    assert notes.search("towels", k=1)[0].channels == {"notes": 1}
    assert script not in repr(notes)
    with raises(InputError) as messages:
        connect({"kind": "mcp", "command": ["x"]})
    assert "'tool'" in messages[0]


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "late-arrival" in done.stdout
