"""Several threads and processes on one store: nothing lost, nothing counted twice."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.store import ABTest, Store
from store_contents import PLAIN_QUERY, TEST

QUERIES = 60


def _count(test: ABTest) -> ABTest:
    sums = {"total": test.sums.get("total", 0.0) + 1.0}
    return replace(test, sample_count=test.sample_count + 1, sums=sums)


def _update(url: str, offset: int, results: object) -> None:
    counted = 0
    with Store.open(url) as store:
        for i in range(QUERIES):
            # Both meet every query, from different ends.
            query = i if offset == 0 else QUERIES - 1 - i
            counted += store.update_test("rerank", f"q{query}", _count) is not None
    results.put(counted)  # type: ignore[attr-defined]


def test_two_processes_updating_one_test_lose_nothing_and_count_no_query_twice(url: str) -> None:
    with Store.open(url) as store:
        store.create_test(replace(TEST, sample_count=0, sums={}))
        context = get_context("spawn")
        results = context.Queue()
        processes = [context.Process(target=_update, args=(url, offset, results)) for offset in (0, 1)]
        for process in processes:
            process.start()
        counted = [results.get(timeout=60) for _ in processes]
        for process in processes:
            process.join(60)
        test = store.test("rerank")
        assert test is not None
        assert (test.sample_count, test.sums["total"], sum(counted)) == (QUERIES, QUERIES, QUERIES)
        assert store.counts()["eval_ab_counted"] == QUERIES


def test_a_change_that_fails_counts_nothing(store: Store) -> None:
    store.create_test(replace(TEST, sample_count=0))

    def fail(_: ABTest) -> ABTest:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.update_test("rerank", "q1", fail)
    with pytest.raises(InputError, match="other"):
        store.update_test("rerank", "q1", lambda test: replace(test, feature_id="other"))
    assert store.test("rerank") == replace(TEST, sample_count=0)
    updated = store.update_test("rerank", "q1", _count)
    assert updated is not None
    assert updated.sample_count == 1
    assert store.update_test("rerank", "q1", _count) is None
    assert store.test("rerank") == updated


def test_a_test_is_started_once(store: Store) -> None:
    store.create_test(TEST)
    with pytest.raises(InputError, match="already"):
        store.create_test(TEST)
    with pytest.raises(MissingInput, match="other"):
        store.update_test("other", "q1", _count)
    assert store.tests(project="shop") == []


def test_threads_write_and_read_one_store_at_once(store: Store) -> None:
    ready = threading.Barrier(4)

    def write(thread: int) -> int:
        ready.wait()
        written = 0
        for batch in range(5):
            # Every batch shares half of its queries with another thread's, in another order.
            ids = [f"eq_{(thread // 2, batch, i)}" for i in range(20)][:: 1 if thread % 2 else -1]
            written += store.add_queries([replace(PLAIN_QUERY, query_id=query_id) for query_id in ids])
            store.queries(limit=5)
        return written

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(write, range(4))) == 200 == store.counts()["eval_queries"]


FORK = """
import os, sys
from dataclasses import replace
from store_contents import PLAIN_QUERY
from ringtrue.store import Store
store = Store.open(sys.argv[1])
assert store.add_queries([PLAIN_QUERY]) == 1
child = os.fork()
if child == 0:
    added = store.add_queries([replace(PLAIN_QUERY, query_id=f"child {i}") for i in range(10)])
    seen = len(store.queries())
    store.close()
    os._exit(0 if (added, seen) == (10, 11) else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert store.add_queries([replace(PLAIN_QUERY, query_id="parent")]) == 1  # the child did not close the parent's connection
assert len(store.queries()) == 12
store.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_a_forked_process_uses_connections_of_its_own(url: str) -> None:
    from conftest import ROOT

    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK, url], cwd=ROOT / "tests", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
