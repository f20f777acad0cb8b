"""The same retriever gives the same ranking, whoever asks: Python, the command line, the evaluator, the run folder, REST.

Every surface has its function in ``SURFACES``; those of the agent memory, which search files and no collection, stand in
``MEMORY_SURFACES``: the hook, the command, the MCP server, the expression, its evaluation, and REST over the same memories.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from rest_service import serving
from ringtrue.formats import read_run
from ringtrue.golden import load
from ringtrue.memory.engine import documents_of, search_memories
from ringtrue.memory.hook.files import load as load_memories
from ringtrue.memory.hook.files import read_one
from ringtrue.memory.hook.settings import Settings
from ringtrue.retrieve import Collection, answer_all, build
from ringtrue.run import evaluate, open_run

PROGRAM = Path(sys.executable).parent / "ringtrue"
SOURCE = Path(__file__).parents[2] / "src" / "ringtrue"
SETS = SOURCE / "golden" / "sets"
EXPRESSIONS = ("hybrid", "rrf(bm25, fts5) >> top(20)")
K = 20
MEASURES = ("nDCG@10", "R@20")
Rankings = dict[str, list[str]]


@pytest.fixture(scope="module")
def hotel(tmp_path_factory: pytest.TempPathFactory, hotel_cache: Path) -> Path:
    """The hotel documents with every index that is asked."""
    folder = tmp_path_factory.mktemp("parity") / "documents"
    collection = Collection.create(folder)
    for vectors in hotel_cache.glob("corpora/*/vectors-*.sqlite"):  # of the same texts, already encoded
        shutil.copy(vectors, folder)
    collection.ingest(load("hotel").documents)
    for expression in EXPRESSIONS:
        build(expression, collection).search("pool", k=1)
    return folder


def run(*arguments: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "RINGTRUE_CACHE": str(cwd / "cache")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def python_one_by_one(folder: Path, expression: str) -> Rankings:
    """What every other surface is held against."""
    live = Collection(folder).retriever(expression)
    return {query.query_id: [hit.doc_id for hit in live.search(query.text, k=K)] for query in load("hotel").queries}


def python_in_batches(folder: Path, expression: str, where: Path) -> Rankings:
    live = Collection(folder).retriever(expression)
    return {r.query_id: [hit.doc_id for hit in r.hits] for r in answer_all(live, load("hotel"), k=K)}


def python_evaluate(folder: Path, expression: str, where: Path) -> Rankings:
    found = evaluate(expression, "hotel", collection=Collection(folder), k=K, measures=MEASURES, cache=False, components=True)
    return {r.query_id: [hit.doc_id for hit in r.hits] for r in found.rankings}


def command_search(folder: Path, expression: str, where: Path) -> Rankings:
    target = where / "search.json"
    run("search", "--queries", "hotel", "--in", folder, "-r", expression, "-k", str(K), "--run", target, cwd=where)
    return read_run(target).rankings()


def command_search_one(folder: Path, expression: str, where: Path) -> Rankings:
    """The first query alone; starting a program for each would take minutes."""
    query = load("hotel").queries[0]
    found = json.loads(run("search", query.text, "--in", folder, "-r", expression, "-k", str(K), "--json", cwd=where))
    rest = python_one_by_one(folder, expression)
    return rest | {query.query_id: [hit["doc_id"] for hit in found["hits"]]}


def command_eval(folder: Path, expression: str, where: Path) -> Rankings:
    measures = [part for measure in MEASURES for part in ("-m", measure)]
    options = ["-g", "hotel", "--in", folder, "-r", expression, "-k", str(K), *measures, "--no-cache"]
    run("eval", *options, "--out", where / "run", "--json", cwd=where)
    return {r.query_id: [hit.doc_id for hit in r.hits] for r in open_run(where / "run").rankings}


def run_folder(folder: Path, expression: str, where: Path) -> Rankings:
    command_eval(folder, expression, where)
    return read_run(where / "run").rankings()


def rest_search(folder: Path, expression: str, where: Path) -> Rankings:
    """``POST /v1/search`` of a server whose documents these are: the first half as its own search, the others by name."""
    found: Rankings = {}
    with serving(where, folder=folder, golden=None, retriever=expression) as client:
        for number, query in enumerate(load("hotel").queries):
            named = {"retriever": expression} if number % 2 else {}
            answer = client.post("/v1/search", json={"query": query.text, "k": K, **named})
            assert answer.status_code == 200, answer.text
            found[query.query_id] = [hit["doc_id"] for hit in answer.json()["hits"]]
        logged = client.app.state.service.store.queries()  # type: ignore[attr-defined]
    assert [list(row.result_ids) for row in logged] == list(found.values())
    return found


def rest_evaluate(folder: Path, expression: str, where: Path) -> Rankings:
    """``POST /v1/evaluate`` on the served documents, read back query by query."""
    asked = {"golden": "hotel", "documents": "served", "k": K, "measures": list(MEASURES)}
    with serving(where, folder=folder, golden=None, retriever=expression) as client:
        run_id = client.post("/v1/evaluate", json=asked).json()["run_id"]
        return {
            query.query_id: [hit["doc_id"] for hit in client.get(f"/v1/runs/{run_id}/queries/{query.query_id}").json()["hits"]]
            for query in load("hotel").queries
        }


Surface = Callable[[Path, str, Path], Rankings]
SURFACES: tuple[Surface, ...] = (
    python_in_batches,
    python_evaluate,
    command_search,
    command_search_one,
    command_eval,
    run_folder,
    rest_search,
    rest_evaluate,
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
def test_parity_of_every_surface(hotel: Path, tmp_path: Path, surface: Surface, expression: str) -> None:
    found = surface(hotel, expression, tmp_path)
    assert len(found) == 72
    assert found == python_one_by_one(hotel, expression)


STRATEGIES = ("fts5_bm25", "title_tags", "hybrid")
ASKED = 8
"""Questions of memory-bench that every surface of the memory is asked; the hook starts a process for each."""
MOST = 10
EVERYTHING = {
    "auto_inject": {"max_results": MOST, "min_score_abs": 0, "relative_cutoff": 0},
    "search": {"max_results": MOST, "min_score_abs": 0},
    "threshold": "fixed",
    "retention_days": {"session_summary": 0},
}
"""No cut-off and no age: what is compared is the ranking, not where each surface ends it. A collection has no clock."""


def questions() -> dict[str, str]:
    return {query.query_id: query.text for query in load("memory-bench").queries[:ASKED]}


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose memories are those of memory-bench."""
    project = tmp_path_factory.mktemp("memory-parity")
    shutil.copytree(SETS / "memory-bench" / "memories", project / ".claude" / "memory")
    return project


def with_strategy(project: Path, strategy: str) -> Path:
    root = project / ".claude" / "memory"
    (root / "memory-config.json").write_text(json.dumps({"retrieval": {"match_strategy": strategy, **EVERYTHING}}))
    return root


def memory_hook(project: Path, strategy: str, where: Path) -> Rankings:
    """The hook as hosts run it, its pointers in their order."""
    root, found = with_strategy(project, strategy), {}
    for query_id, text in questions().items():
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": str(project), "prompt": text}
        done = subprocess.run(
            [sys.executable, "-I", "-S", SOURCE / "memory" / "hook" / "hook.py"],
            input=json.dumps(payload), capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        block = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"] if done.stdout else "<none/>"
        found[query_id] = [read_one(one.attrib["path"]).id for one in ElementTree.fromstring(block)]
        assert all(one.attrib["path"].startswith(str(root)) for one in ElementTree.fromstring(block))
    return found


def memory_command(project: Path, strategy: str, where: Path) -> Rankings:
    """``ringtrue memory search``: the first question by the program, the others by the function it calls."""
    root = str(with_strategy(project, strategy))
    found = {}
    for query_id, text in questions().items():
        if not found:
            hits = json.loads(run("memory", "search", text, "--root", root, "--json", cwd=where))["hits"]
            found[query_id] = [hit["id"] for hit in hits]
        else:
            found[query_id] = [hit.memory.id for hit in search_memories(root, text, now=time.time()).hits]
    return found


def memory_mcp(project: Path, strategy: str, where: Path) -> Rankings:
    """The tool ``memory_search``, asked by the official client; every question in a conversation of its own."""
    pytest.importorskip("mcp")
    from mcp import Client

    from ringtrue.memory.server import build_server

    server = build_server(str(with_strategy(project, strategy)))

    async def ask() -> Rankings:
        async with Client(server, read_timeout_seconds=120) as client:
            found = {}
            for query_id, text in questions().items():
                # The constitutional take the last places from others, so more is asked for; those not found have no score.
                given = {"query": text, "k": 3 * MOST, "session_id": query_id}
                answer = (await client.call_tool("memory_search", given)).structured_content
                found[query_id] = [one["id"] for one in answer["results"] if one["score"] is not None][:MOST]
            return found

    return asyncio.run(ask())


@cache
def memory_expression(project: Path, strategy: str) -> Rankings:
    """The retriever expression over the same memories as documents: what every other surface is held against."""
    collection = Collection.create(project / f"documents-{strategy}")
    collection.ingest(documents_of(load_memories(str(with_strategy(project, strategy)), Settings()).memories))
    live = collection.retriever(f"memory('{strategy}')")
    return {query_id: [hit.doc_id for hit in live.search(text, k=MOST)] for query_id, text in questions().items()}


def memory_evaluation(project: Path, strategy: str, where: Path) -> Rankings:
    """``ringtrue eval --retriever memory(…)`` on the golden set that these memories come from."""
    options = ["-g", "memory-bench", "-r", f"memory('{strategy}')", "-k", str(MOST), "-m", "R@10", "--no-cache"]
    run("eval", *options, "--out", where / "run", "--json", cwd=where)
    asked = questions()
    return {r.query_id: [hit.doc_id for hit in r.hits] for r in open_run(where / "run").rankings if r.query_id in asked}


def memory_rest(project: Path, strategy: str, where: Path) -> Rankings:
    """``POST /v1/search`` with the memory's expression over the same memories as documents."""
    folder = where / "served"
    root = str(with_strategy(project, strategy))
    Collection.create(folder).ingest(documents_of(load_memories(root, Settings()).memories))
    found: Rankings = {}
    with serving(where, folder=folder, golden=None, retriever="bm25") as client:
        for query_id, text in questions().items():
            asked = {"query": text, "k": MOST, "retriever": f"memory('{strategy}')"}
            found[query_id] = [hit["doc_id"] for hit in client.post("/v1/search", json=asked).json()["hits"]]
    return found


MEMORY_SURFACES: tuple[Surface, ...] = (memory_hook, memory_command, memory_mcp, memory_evaluation, memory_rest)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("surface", MEMORY_SURFACES, ids=lambda surface: surface.__name__)
def test_parity_of_every_surface_of_the_memory(memories: Path, tmp_path: Path, surface: Surface, strategy: str) -> None:
    # The hook has no encoder: where hybrid is set it searches by words, and says so in its journal.
    used = "fts5_bm25" if surface is memory_hook and strategy == "hybrid" else strategy
    found = surface(memories, strategy, tmp_path)
    expected = memory_expression(memories, used)
    assert len(expected) == ASKED
    assert sum(map(len, expected.values())) > 3 * ASKED
    assert found == expected
