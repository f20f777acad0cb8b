"""Shadow runs under load: whatever the candidate does, not one production answer is delayed or changed."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import candidates
from ringtrue.records import Hit
from ringtrue.rollout.shadow import Shadow
from ringtrue.store import AuditEntry, Flag, ShadowRun

CALLERS, EACH, WORK = 4, 100, 0.002


@dataclass
class Rows:
    rows: list[ShadowRun] = field(default_factory=list)

    def add_shadow_runs(self, rows: Sequence[ShadowRun]) -> int:
        self.rows.extend(rows)
        return len(rows)

    def audit(self, **_: object) -> list[AuditEntry]:
        return []

    def flag(self, name: str, *, project: str = "default") -> Flag | None:
        return None

    def add_audit(self, entry: AuditEntry) -> None:
        pass


class Production:
    """Answers after a while that does not depend on the machine, and remembers every object it returned."""

    def __init__(self) -> None:
        self.given: dict[str, list[Hit]] = {}

    def search(self, text: str, *, k: int = 10) -> list[Hit]:
        time.sleep(WORK)
        found = [Hit(f"{text}-{n}", 1.0 / (n + 1)) for n in range(k)]
        self.given[text] = found
        return found


def fingerprint(hits: Sequence[Hit]) -> str:
    return hashlib.sha256(repr(list(hits)).encode()).hexdigest()


def load(search: Any) -> tuple[dict[str, Any], list[float]]:
    """Ask from several threads at once; return every answer and every caller's waiting time in seconds."""
    answers: dict[str, Any] = {}
    waited: list[float] = []

    def caller(number: int) -> None:
        for turn in range(EACH):
            text = f"q{number}-{turn}"
            start = time.perf_counter()
            found = search.search(text, k=10)
            waited.append(time.perf_counter() - start)
            answers[text] = found

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, sorted(waited)


@pytest.mark.parametrize(
    ("candidate", "options"),
    [
        (candidates.well, {}),
        (candidates.crashes, {}),
        (candidates.hangs, {"timeout": 0.2}),
        (candidates.hangs, {"timeout": 60}),
        (candidates.rubbish, {}),
        (candidates.dies, {"isolate": "process"}),
        (candidates.burns, {"isolate": "process", "timeout": 0.3}),
        (candidates.takes_all_memory, {"isolate": "process", "memory": 128 * 2**20}),
    ],
    ids=["well", "crashes", "hangs", "hangs past the test", "rubbish", "dies", "burns", "takes all memory"],
)
def test_not_one_production_answer_is_changed_or_waits_for_the_candidate(candidate: Any, options: dict[str, Any]) -> None:
    production, store = Production(), Rows()
    _, alone = load(Production())
    search = Shadow(production, candidate, store, "new", sample=1, workers=2, **options)
    answers, beside = load(search)
    try:
        assert len(answers) == CALLERS * EACH
        for text, found in answers.items():
            assert found is production.given[text]
            assert fingerprint(found) == fingerprint([Hit(f"{text}-{n}", 1.0 / (n + 1)) for n in range(10)])
        # A caller that waited for a hung candidate would wait 0.2 s at least; the bound is wide for a busy machine.
        assert beside[len(beside) // 2] < 3 * alone[len(alone) // 2] + 0.1
        counts = search.counts
        assert counts.asked == counts.sampled == CALLERS * EACH
        done = counts.answered + counts.failed + counts.gone + counts.dropped + counts.waiting
        assert done == CALLERS * EACH
    finally:
        search.close(timeout=10 if candidate is candidates.well else 0.5)


@pytest.mark.parametrize("isolate", ["thread", "process"])
def test_the_answer_is_back_before_the_candidate_has_finished(isolate: Any) -> None:
    production, store = Production(), Rows()
    search = Shadow(production, candidates.hangs, store, "new", sample=1, timeout=600, isolate=isolate, workers=1, waiting=500)
    answers, _ = load(search)
    assert len(answers) == CALLERS * EACH
    assert search.counts.waiting == CALLERS * EACH  # every one of them still waits for the candidate
    assert store.rows == []
    search.close(timeout=0.1)


def test_a_store_that_stands_still_delays_nobody() -> None:
    release = threading.Event()

    class Stalled(Rows):
        def add_shadow_runs(self, rows: Sequence[ShadowRun]) -> int:
            release.wait(30)
            return super().add_shadow_runs(rows)

    production, store = Production(), Stalled()
    search = Shadow(production, candidates.well, store, "new", sample=1, waiting=500)
    answers, _ = load(search)
    assert all(found is production.given[text] for text, found in answers.items())
    assert store.rows == []
    release.set()
    assert search.close().saved == len(store.rows) == CALLERS * EACH
