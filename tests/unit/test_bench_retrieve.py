"""``benchmarks/retrieve.py``: it runs, and its verdicts follow from its numbers, however fast anything is."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
for needed in ("tantivy", "bm25s", "Stemmer"):
    pytest.importorskip(needed, reason=f"{needed} is not installed, so the peers of the retrieval benchmark cannot run")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the script, with its generated data and results in a folder of the test."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in ("common", "retrieve", "retrieve_files", "retrieve_tools"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    common, retrieve = importlib.import_module("common"), importlib.import_module("retrieve")
    monkeypatch.setattr(common, "BENCH", tmp_path)
    monkeypatch.setattr(retrieve, "DATA", tmp_path / "retrieve")
    return retrieve


def measured(*, bm25s: float = 12.0, tantivy: float = 0.8, first_ms: float = 9.0, dense: float = 1.1) -> dict[str, Any]:
    tools = [
        {"name": "ringtrue", "ratio": 1.0},
        {"name": "tantivy", "ratio": tantivy},
        {"name": "bm25s, numpy", "ratio": bm25s},
    ]
    return {
        "lexical": {"tools": tools, "agreement": {"same": 1.0}},
        "fts5": {"first_ms": 2 * first_ms, "firsts_ms": [2 * first_ms, first_ms, 3 * first_ms]},
        "dense": {"ratio": dense},
    }


def test_words_and_vectors_of_tiny_sizes_run_to_a_report(
    bench: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    sizes = ["--documents", "300", "--queries", "20", "--vectors", "2000", "--repeat", "1"]
    code = bench.main([*sizes, "--only", "lexical", "fts5", "dense", "--json", "--write", str(page)])
    report = json.loads(capsys.readouterr().out)
    assert code == 0  # a missed limit fails only with --check
    tools = {tool["name"]: tool for tool in report["lexical"]["tools"]}
    assert {"ringtrue", "tantivy", "tantivy, parsed", "bm25s, numpy", "fts5"} <= set(tools)
    assert all(tool["documents"] == 300 and tool["queries_per_second"] > 0 and tool["index_mb"] > 0 for tool in tools.values())
    assert report["lexical"]["agreement"]["shared"] >= 0.9
    assert report["lexical"]["agreement"]["same"] == 1.0
    assert report["fts5"]["documents"] == 300
    assert report["dense"]["vectors"] == 2000
    assert report["encode"] is None
    assert all(limit["met"] is not None for limit in report["limits"])
    written = page.read_text(encoding="utf-8")
    assert written.startswith("<!-- bench:retrieve -->\n**Words.** 300 generated documents")
    assert written.endswith("<!-- /bench:retrieve -->\n")


def test_growth_has_one_row_per_size_and_keeps_no_large_files(
    bench: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench, "GROWTH", (30, 90))
    monkeypatch.setattr(bench, "KEPT_DOCUMENTS", 30)
    for part in ("_lexical", "_fts5", "_dense", "_encode"):
        monkeypatch.setattr(bench, part, lambda *_: None)
    assert bench.main(["--queries", "5", "--repeat", "1", "--growth"]) == 0
    rows = [line.split()[1] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert rows[1:3] == ["30", "90"]
    kept = [file.name for file in (tmp_path / "retrieve").iterdir()]
    assert sorted(kept) == ["documents-1-30.jsonl", "queries-1-30-5.json"]


def test_every_limit_is_met_by_numbers_inside_it(bench: ModuleType) -> None:
    assert [limit["met"] for limit in bench.limits(measured())] == [True] * 5


@pytest.mark.parametrize(
    ("numbers", "missed"),
    [
        ({"bm25s": 9.9}, "bm25: queries/s, beside bm25s, numpy"),
        ({"tantivy": 0.6}, "bm25: time per query, beside bare tantivy"),
        ({"first_ms": 15.1}, "fts5: build + first query, 500 notes of 50 words, fastest turn"),
        ({"dense": 1.31}, "dense: time per query, beside NumPy's product"),
    ],
)
def test_a_number_outside_its_limit_misses_that_limit_alone(bench: ModuleType, numbers: dict[str, float], missed: str) -> None:
    found = bench.limits(measured(**numbers))
    assert [limit["name"] for limit in found if limit["met"] is False] == [missed]


def test_the_faster_of_two_bm25s_backends_is_the_one_to_beat(bench: ModuleType) -> None:
    report = measured(bm25s=30.0)
    report["lexical"]["tools"].append({"name": "bm25s, numba", "ratio": 0.5})
    first = bench.limits(report)[0]
    assert (first["name"], first["found"], first["met"]) == ("bm25: queries/s, beside bm25s, numba", "0.5×", False)


def test_what_was_not_measured_is_neither_met_nor_missed(bench: ModuleType) -> None:
    found = bench.limits({"lexical": None, "fts5": None, "dense": None})
    assert len(found) == 5
    assert all(limit["met"] is None and limit["found"] == "not measured" for limit in found)


def test_check_names_missed_limits_and_fails(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"limits": bench.limits(measured(dense=2.0))}
    monkeypatch.setattr(bench, "run", lambda options: report)
    monkeypatch.setattr(bench, "render", lambda found: "text\n")
    assert bench.main(["--check"]) == 1
    assert capsys.readouterr().err == "missed: dense: time per query, beside NumPy's product: 2.00×, wanted ≤ 1.30×\n"
    assert bench.main([]) == 0


def test_answers_that_differ_only_in_ties_count_as_ties(bench: ModuleType) -> None:
    ours = [[["a", 3.0], ["b", 1.0]], [["x", 2.0], ["y", 1.0]]]
    tie, better = [[["a", 3.0], ["c", 1.0]], ours[1]], [[["a", 3.0], ["c", 1.5]], ours[1]]
    assert bench.agreement(ours, ours) == {"documents": 4, "shared": 1.0, "same": 1.0}
    assert bench.agreement(ours, tie) == {"documents": 4, "shared": 0.75, "same": 1.0}
    assert bench.agreement(ours, better) == bench.agreement(better, ours) == {"documents": 4, "shared": 0.75, "same": 0.75}


def test_the_same_size_gives_the_same_documents_and_queries(bench: ModuleType, tmp_path: Path) -> None:
    files = importlib.import_module("retrieve_files")
    for turn in ("first", "second"):
        files.write_documents(40, 12, tmp_path / f"{turn}.jsonl", tmp_path / f"{turn}.json")
    assert (tmp_path / "first.jsonl").read_bytes() == (tmp_path / "second.jsonl").read_bytes()
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
    entries = list(files.documents(tmp_path / "first.jsonl"))
    assert [entry["id"] for entry in entries] == [f"d{number}" for number in range(40)]
    assert all(60 <= len(entry["text"].split()) <= 200 for entry in entries)
    queries = json.loads((tmp_path / "first.json").read_text(encoding="utf-8"))["queries"]
    assert all(3 <= len(query.split()) <= 8 for query in queries)
    assert all(any(set(query.split()) <= set(entry["text"].split()) for entry in entries) for query in queries)


def test_a_contender_that_fails_is_named_with_its_reason(bench: ModuleType, tmp_path: Path) -> None:
    common = importlib.import_module("common")
    with bench.Worker("Tantivy", tmp_path / "tantivy", []) as worker, pytest.raises(common.Failure) as failure:
        worker.ask("build", corpus=str(tmp_path / "absent.jsonl"))
    assert str(failure.value).startswith("Tantivy could not build: ")
    assert "tantivy" in str(failure.value)
