"""E-6: the same retriever gives the same ranking, whoever asks: Python, the command line, the evaluator, the run folder.

Every later surface (memory hook, MCP, REST) adds its function to ``SURFACES``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ringtrue.formats import read_run
from ringtrue.golden import load
from ringtrue.retrieve import Collection, build
from ringtrue.retrieve.answers import answer_all
from ringtrue.run import evaluate, open_run

PROGRAM = Path(sys.executable).parent / "ringtrue"
EXPRESSIONS = ("hybrid", "rrf(bm25, fts5) >> top(20)")
K = 20
MEASURES = ("nDCG@10", "R@20")
Rankings = dict[str, list[str]]


@pytest.fixture(scope="module")
def hotel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hotel documents with every index that is asked."""
    folder = tmp_path_factory.mktemp("parity") / "documents"
    collection = Collection.create(folder)
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


def python_one_by_one(folder: Path, expression: str, where: Path) -> Rankings:
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
    rest = python_one_by_one(folder, expression, where)
    return rest | {query.query_id: [hit["doc_id"] for hit in found["hits"]]}


def command_eval(folder: Path, expression: str, where: Path) -> Rankings:
    measures = [part for measure in MEASURES for part in ("-m", measure)]
    options = ["-g", "hotel", "--in", folder, "-r", expression, "-k", str(K), *measures, "--no-cache"]
    run("eval", *options, "--out", where / "run", "--json", cwd=where)
    return {r.query_id: [hit.doc_id for hit in r.hits] for r in open_run(where / "run").rankings}


def run_folder(folder: Path, expression: str, where: Path) -> Rankings:
    command_eval(folder, expression, where)
    return read_run(where / "run").rankings()


Surface = Callable[[Path, str, Path], Rankings]
SURFACES: tuple[Surface, ...] = (
    python_in_batches,
    python_evaluate,
    command_search,
    command_search_one,
    command_eval,
    run_folder,
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
def test_parity_of_every_surface(hotel: Path, tmp_path: Path, surface: Surface, expression: str) -> None:
    found = surface(hotel, expression, tmp_path)
    assert len(found) == 72
    assert found == python_one_by_one(hotel, expression, tmp_path)
