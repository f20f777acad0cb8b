"""An ingest killed at any moment and started again leaves the index of one clean run; others read meanwhile."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ringtrue.retrieve import Collection, build

DOCUMENTS = 1500
WORDS = (
    "lake", "boat", "pool", "spa", "room", "night", "guest", "towel", "sauna", "ferry", "invoice", "garden", "balcony",
    "breakfast", "dog", "rule", "calm", "water", "bed", "desk",
)  # fmt: skip
RETRIEVER = "rrf(bm25, fts5, dense('wordllama'))"


def corpus(file: Path) -> Path:
    source = random.Random(7)
    with file.open("w", encoding="utf-8") as out:
        for number in range(DOCUMENTS):
            text = " ".join(source.choices(WORDS, k=source.randint(5, 60)))
            out.write(json.dumps({"_id": f"d{number}", "title": " ".join(source.choices(WORDS, k=2)), "text": text}) + "\n")
    return file


def ingest(file: Path, into: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ringtrue", "ingest", str(file), "--into", str(into), "--retriever", RETRIEVER]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def answers(folder: Path) -> list[object]:
    retriever = build(RETRIEVER, Collection(folder))
    return [retriever.search(text, k=50) for text in ("boat on the lake", "calm room at night", "pool towel", "invoice")]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[object], float]:
    folder = tmp_path_factory.mktemp("clean")
    file = corpus(folder / "corpus.jsonl")
    started = time.monotonic()
    process = ingest(file, folder / "documents")
    _, problem = process.communicate(timeout=300)
    assert process.returncode == 0, problem
    return file, answers(folder / "documents"), time.monotonic() - started


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_moments_and_started_again_gives_the_index_of_one_clean_run(
    clean: tuple[Path, list[object], float], tmp_path: Path, seed: int
) -> None:
    file, wanted, seconds = clean
    source = random.Random(seed)
    folder = tmp_path / "documents"
    kills = 0
    while kills < 3:
        process = ingest(file, folder)
        try:
            process.wait(timeout=source.uniform(0.2, 0.9) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        else:  # it was faster than the clean run; begin again, and be quicker
            shutil.rmtree(folder)
            kills, seconds = 0, seconds * 0.7
        process.communicate()
    process = ingest(file, folder)
    _, problem = process.communicate(timeout=300)
    assert process.returncode == 0, problem
    assert len(Collection(folder)) == DOCUMENTS
    assert answers(folder) == wanted


def test_two_processes_read_while_one_writes(tmp_path: Path) -> None:
    file = corpus(tmp_path / "corpus.jsonl")
    folder = tmp_path / "documents"
    lines = file.read_text(encoding="utf-8").splitlines()
    first = tmp_path / "first.jsonl"
    first.write_text("\n".join(lines[:200]) + "\n", encoding="utf-8")
    done = ingest(first, folder)
    done.communicate(timeout=300)
    assert done.returncode == 0
    code = f"""
import sys, time
from pathlib import Path
from ringtrue.retrieve import Collection, build
retriever = build({RETRIEVER!r}, Collection(Path(sys.argv[1])))
seen = set()
print("ready", flush=True)
while not Path(sys.argv[2]).exists():
    hits = retriever.search("boat on the lake", k=10)
    assert len(hits) == 10, hits
    seen.add(tuple(hit.doc_id for hit in hits))
    time.sleep(0.002)
final = retriever.search("boat on the lake", k=10)
print(len(seen), *[hit.doc_id for hit in final])
"""
    stop = tmp_path / "stop"
    readers = [
        subprocess.Popen([sys.executable, "-c", code, str(folder), str(stop)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
        done = ingest(file, folder)
        done.communicate(timeout=300)
        assert done.returncode == 0
    finally:
        stop.touch()
    outputs = [reader.communicate(timeout=300)[0].split() for reader in readers]
    assert [reader.returncode for reader in readers] == [0, 0]
    wanted = [hit.doc_id for hit in build(RETRIEVER, Collection(folder)).search("boat on the lake", k=10)]
    assert [output[1:] for output in outputs] == [wanted, wanted]
