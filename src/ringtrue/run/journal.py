"""Answers as they come, a line each, so that an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringtrue.records import Hit, Ranking, Stage
from ringtrue.retrieve.observe import Done, Fused, Listed, Seen, Stepped
from ringtrue.run.ask import Answer


@dataclass(frozen=True)
class Journal:
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
                        # On a new line of its own, whatever the one before was cut off at.
                        lines.write("\n" + json.dumps(_record(answer)) + "\n")
                        lines.flush()

            yield note
        self.file.unlink(missing_ok=True)


def _record(answer: Answer) -> dict[str, Any]:
    ranking = answer.ranking
    return {
        "query_id": ranking.query_id,
        "latency_ms": ranking.latency_ms,
        "hits": _rows(ranking.hits),
        "seen": None if answer.seen is None else _tree(answer.seen),
    }


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
        steps = tuple(Done(step, _hits(rows), spent, asked) for step, rows, spent, asked in record["steps"])
        return Stepped(name, hits, ms, _seen(record["base"]), steps)
    return Listed(name, hits, ms)
