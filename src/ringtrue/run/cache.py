"""Results that need not be made twice, and the answers of an evaluation that was interrupted.

A result is kept as one run folder per key. The key is a hash of everything that decides it: retriever, configuration, code,
models, documents, golden set, and what was asked of them. A result appears by renaming, so a crash leaves all of it or nothing;
the oldest go when there are too many. Answers are written as they come, a line each.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ringtrue.errors import RingtrueError
from ringtrue.records import Hit, Ranking, Stage
from ringtrue.retrieve import Fused, Listed, Seen, Stepped, StepResult
from ringtrue.run.ask import Answer
from ringtrue.run.evaluation import Evaluation
from ringtrue.run.folder import open_run, save

LIMIT = 1 << 30
"""Bytes that results may take; the ones not used for longest go first."""


def key_of(ingredients: Mapping[str, Any]) -> str:
    """Return the key of a result from all that decides it."""
    return hashlib.sha256(json.dumps(ingredients, sort_keys=True, default=str).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class ResultCache:
    """A folder of results."""

    folder: Path
    limit: int = LIMIT

    def get(self, key: str) -> Evaluation | None:
        """Return the result of a key, marked as cached; None if there is none that can be read."""
        place = self.folder / key
        if not (place / "run.json").is_file():
            return None
        try:
            found = open_run(place)
        except (RingtrueError, OSError):
            shutil.rmtree(place, ignore_errors=True)  # damaged from outside: as good as none
            return None
        with contextlib.suppress(OSError):
            os.utime(place)
        return replace(found, cached=True, run_dir=None)

    def put(self, key: str, evaluation: Evaluation) -> None:
        """Keep a result; a full or read-only disk only means that it is not kept."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save(replace(evaluation, run_dir=None), self.folder / key)
        except OSError:
            return
        self._make_room(key)

    def _make_room(self, newest: str) -> None:
        sizes: list[tuple[float, int, Path]] = []
        for place in self.folder.iterdir():
            with contextlib.suppress(OSError):
                files = [place] if place.is_file() else list(place.rglob("*"))
                sizes.append((place.stat().st_mtime, sum(file.stat().st_size for file in files if file.is_file()), place))
        total = sum(size for _, size, _ in sizes)
        for _, size, place in sorted(sizes):
            if total <= self.limit:
                return
            if place.name != newest:
                shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)
                total -= size


@dataclass(frozen=True)
class AnswerJournal:
    """The file of one evaluation's answers."""

    file: Path

    def read(self) -> dict[str, Answer]:
        """Return the answers by query; a last line that was cut off in the middle is left out."""
        answers: dict[str, Answer] = {}
        if not self.file.is_file():
            return answers
        for line in self.file.read_bytes().splitlines():
            # A line that was cut off or damaged is a question to ask again.
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                record = json.loads(line)
                ranking = Ranking(record["query_id"], _hits(record["hits"]), record["latency_ms"])
                answers[ranking.query_id] = Answer(ranking, _seen(record["seen"]) if record["seen"] else None)
        return answers

    @contextlib.contextmanager
    def writing(self) -> Iterator[Callable[[Answer], None]]:
        """Append answers; the file goes when all went well and stays after an interruption.

        Where nothing can be written, a full or read-only disk, the evaluation goes on without.
        """
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            lines = self.file.open("a", encoding="utf-8")
        except OSError:
            yield lambda answer: None
            return
        with lines:

            def note(answer: Answer) -> None:
                if answer.ranking.error is None:  # a failure is worth another try
                    with contextlib.suppress(OSError):
                        ranking, seen = answer.ranking, answer.seen and _tree(answer.seen)
                        record = {"query_id": ranking.query_id, "latency_ms": ranking.latency_ms, "seen": seen}
                        # On a new line of its own, whatever the one before was cut off at.
                        lines.write("\n" + json.dumps(record | {"hits": _rows(ranking.hits)}) + "\n")
                        lines.flush()

            yield note
        self.file.unlink(missing_ok=True)


def _rows(hits: Sequence[Hit]) -> list[Any]:
    return [[hit.doc_id, hit.score, hit.chunk, dict(hit.channels), hit.confidence, hit.stages] for hit in hits]


def _hits(rows: Sequence[Sequence[Any]]) -> tuple[Hit, ...]:
    return tuple(
        Hit(doc_id, score, chunk, channels, confidence, tuple(Stage(*stage) for stage in stages))
        for doc_id, score, chunk, channels, confidence, stages in rows
    )


def _tree(seen: Seen) -> dict[str, Any]:
    record: dict[str, Any] = {"name": seen.name, "hits": _rows(seen.hits), "ms": seen.ms}
    if isinstance(seen, Fused):
        record |= {"text": seen.text, "channels": [_tree(channel) for channel in seen.channels], "order": seen.order}
    elif isinstance(seen, Stepped):
        steps = [[step.name, _rows(step.hits), step.ms, step.asked] for step in seen.steps]
        record |= {"base": _tree(seen.base), "steps": steps}
    return record


def _seen(record: Mapping[str, Any]) -> Seen:
    name, hits, ms = record["name"], _hits(record["hits"]), record["ms"]
    if "channels" in record:
        channels = tuple(_seen(channel) for channel in record["channels"])
        return Fused(name, hits, ms, record["text"], channels, tuple(record["order"]))
    if "base" in record:
        steps = tuple(StepResult(step, _hits(rows), spent, asked) for step, rows, spent, asked in record["steps"])
        return Stepped(name, hits, ms, _seen(record["base"]), steps)
    return Listed(name, hits, ms)
