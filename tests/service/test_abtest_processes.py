"""Two real processes feed one sequential test at once: nothing is lost, nothing is counted twice."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from ringtrue.rollout import create_test, found_test, record_scores
from ringtrue.stats import ConfidenceSequence, Sprt
from ringtrue.store import Store
from stores import fresh as fresh
from stores import kind as kind

OWN, SHARED = 40, 40
WORKER = """
import sys, time
from ringtrue.rollout import record_scores
from ringtrue.store import Store

url, name, own, shared = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
counted = 0
with Store.open(url) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.time()
    for place in range(max(own, shared)):
        # The one goes up, the other down, so that both want the same query in the same moment.
        for query in (f"{name}-{place}", f"shared-{place if name == 'a' else shared - 1 - place}"):
            for feature in ("sprt", "confidence-sequence"):
                found = record_scores(store, feature, query, control=0.25, treatment=0.5, now="2026-03-01T12:00:00+00:00")
                counted += found.counted
            time.sleep(0.002)  # live queries leave gaps, in which the other one gets its turn
print(counted, start, time.time(), flush=True)
"""


def test_two_processes_lose_no_query_and_count_none_twice(fresh: Callable[[str], str], kind: str) -> None:
    url = fresh(kind)
    states: dict[str, Sprt | ConfidenceSequence] = {"sprt": Sprt(), "confidence-sequence": ConfidenceSequence()}
    with Store.open(url) as store:
        for method in states:
            create_test(store, method, now="2026-03-01T12:00:00+00:00", method=method)
    command = [sys.executable, "-c", WORKER, url]
    workers = [
        subprocess.Popen(
            [*command, name, str(OWN), str(SHARED)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for name in ("a", "b")
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        told = [worker.communicate(timeout=300)[0].split() for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    assert all(worker.returncode == 0 for worker in workers)
    expected = 2 * OWN + SHARED
    assert sum(int(counted) for counted, _, _ in told) == 2 * expected
    assert max(float(start) for _, start, _ in told) < min(float(end) for _, _, end in told), "they did not run at once"
    with Store.open(url) as store:
        for method, state in states.items():
            test = found_test(store, method)
            assert test.sample_count == expected
            # Quarters are exact: a lost or doubled query would show in the sums.
            assert (test.sums["control_mrr"], test.sums["treatment_mrr"]) == (0.25 * expected, 0.5 * expected)
            assert (test.sums["differences"], test.sums["squares"]) == (0.25 * expected, 0.0625 * expected)
            for _ in range(expected):
                state = state.add(0.25)
            assert test.log_likelihood_ratio == pytest.approx(state.evidence, rel=1e-9)
            late = record_scores(store, method, "shared-0", control=0.0, treatment=1.0, now="2026-03-02T12:00:00+00:00")
            assert not late.counted
