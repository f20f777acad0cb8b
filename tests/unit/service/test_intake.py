"""The intake answers after a commit and never before, shares commits, and refuses what it cannot keep."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError, Unreachable
from ringtrue.service.errors import Refused
from ringtrue.service.intake import Intake
from ringtrue.store import FeedbackEvent, LoggedQuery, Store
from stores import kind as kind
from stores import store as store
from stores import url as url

NOON = "2026-03-01T12:00:00.000000Z"


def search(name: str, text: str = "late checkout", **facts: Any) -> LoggedQuery:
    return LoggedQuery(name, text, "web", facts.pop("created_at", NOON), **facts)


def click(name: str, **facts: Any) -> FeedbackEvent:
    return FeedbackEvent(name, facts.pop("event_type", "click"), "s", NOON, item_id="a", **facts)


@pytest.fixture
def intake(store: Store) -> Iterator[Intake]:
    made = Intake(store)
    yield made
    made.close()


def ids(store: Store, project: str = "default") -> list[str]:
    return [row.query_id for row in store.queries(project=project)]


def together(intake: Intake, *asked: Callable[[], Awaitable[int]]) -> list[Any]:
    """Let several wait before the intake begins to write, so that they share a batch; return answers or refusals."""

    async def all_of_them() -> list[Any]:
        waiting = [asyncio.ensure_future(one()) for one in asked]
        await asyncio.sleep(0)
        intake.start()
        return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(all_of_them())


def test_rows_are_committed_when_the_answer_comes(intake: Intake, url: str) -> None:
    async def log() -> None:
        intake.start()
        assert await intake.add([search("eq_1"), search("eq_2")]) == 2
        with Store.open(url) as other:  # another connection sees only what is committed
            assert ids(other) == ["eq_1", "eq_2"]
        assert await intake.add([click("ef_1")]) == 1
        with Store.open(url) as other:
            assert [event.event_id for event in other.feedback()] == ["ef_1"]

    asyncio.run(log())


def test_those_who_wait_share_one_commit_and_each_learns_of_its_own(intake: Intake, store: Store) -> None:
    found = together(intake, *(lambda n=n: intake.add([search(f"eq_{n}")], fresh=True) for n in range(40)))
    assert found == [1] * 40
    figures = intake.figures
    assert (figures.batches, figures.last_batch, figures.stored, figures.waiting) == (1, 40, 40, 0)
    assert figures.last_commit_ms is not None
    assert figures.last_commit_ms > 0
    assert len(ids(store)) == 40


def test_searches_of_several_projects_travel_together_and_stay_apart(intake: Intake, store: Store) -> None:
    together(
        intake,
        lambda: intake.add([search("eq_1", project="a")]),
        lambda: intake.add([search("eq_1", project="b")]),
    )
    assert (ids(store, "a"), ids(store, "b"), ids(store)) == (["eq_1"], ["eq_1"], [])
    assert intake.figures.batches == 1


def test_an_id_that_is_there_stays_and_is_counted_so(intake: Intake, store: Store) -> None:
    store.add_queries([search("eq_1", "the first")])
    found = together(
        intake,
        lambda: intake.add([search("eq_1", "another"), search("eq_2")]),
        lambda: intake.add([search("eq_2"), search("eq_3")]),
        lambda: intake.add([search("eq_4")], fresh=True),
    )
    assert found == [1, 1, 1]
    assert (intake.figures.stored, intake.figures.there) == (3, 2)
    assert store.queries(query_ids=["eq_1"])[0].query == "the first"
    events = together(intake, lambda: intake.add([click("ef_1")]), lambda: intake.add([click("ef_1"), click("ef_2")]))
    assert events == [1, 1]


def test_a_full_queue_refuses_at_once_and_keeps_what_it_has(store: Store) -> None:
    intake = Intake(store, most_rows=3)
    found = together(
        intake,
        lambda: intake.add([search("eq_1"), search("eq_2")]),
        lambda: intake.add([search("eq_3"), search("eq_4")]),
        lambda: intake.add([search("eq_5")]),
    )
    assert (found[0], found[2]) == (2, 1)
    assert isinstance(found[1], Refused)
    assert (found[1].status, found[1].code, found[1].headers) == (503, "busy", {"Retry-After": "1"})
    assert ids(store) == ["eq_1", "eq_2", "eq_5"]
    assert (intake.figures.accepted, intake.figures.refused) == (3, 2)
    assert intake.close()


def test_the_queue_is_bounded_in_bytes_too(store: Store) -> None:
    intake = Intake(store, most_bytes=100_000)
    found = together(
        intake, lambda: intake.add([search("eq_1")], size=90_000), lambda: intake.add([search("eq_2")], size=20_000)
    )
    assert found[0] == 1
    assert isinstance(found[1], Refused)
    assert found[1].code == "busy"
    assert intake.figures.waiting_bytes == 0
    assert intake.close()


def test_a_row_that_the_database_refuses_spoils_only_itself(intake: Intake, store: Store) -> None:
    bad = click("ef_bad", event_type="no such thing")
    found = together(
        intake,
        lambda: intake.add([click("ef_1"), bad, click("ef_2")], fresh=True),
        lambda: intake.add([click("ef_3")], fresh=True),
    )
    assert isinstance(found[0], Refused)
    assert (found[0].status, found[0].code) == (422, "not_storable")
    assert "'ef_bad'" in found[0].message
    assert "2 others are stored" in found[0].message
    assert found[1] == 1
    assert sorted(event.event_id for event in store.feedback()) == ["ef_1", "ef_2", "ef_3"]
    assert (intake.figures.stored, intake.figures.refused) == (3, 1)


class Moody:
    """A store that fails a few times, or for ever, before it writes."""

    def __init__(self, store: Store, *problems: Exception, for_ever: bool = False) -> None:
        self._store, self._problems, self._for_ever = store, list(problems), for_ever
        self.tries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _fail(self) -> None:
        self.tries += 1
        if self._problems:
            raise self._problems[0] if self._for_ever else self._problems.pop(0)

    def add_queries(self, rows: Sequence[LoggedQuery]) -> int:
        self._fail()
        return self._store.add_queries(rows)

    def check_writable(self) -> None:
        self._fail()
        self._store.check_writable()


def test_a_database_that_comes_back_in_time_costs_nobody_anything(store: Store) -> None:
    moody = Moody(store, Unreachable("store: away"), Unreachable("store: away"))
    intake = Intake(moody)  # type: ignore[arg-type]
    found = together(intake, lambda: intake.add([search("eq_1")], fresh=True), lambda: intake.add([search("eq_2")], fresh=True))
    assert found == [1, 1]
    assert (moody.tries, ids(store), intake.figures.problem) == (3, ["eq_1", "eq_2"], None)
    assert intake.close()


@pytest.mark.parametrize("problem", [Unreachable("store: away"), InputError("store is read-only")])
def test_nothing_is_acknowledged_that_is_not_stored(store: Store, problem: Exception) -> None:
    intake = Intake(Moody(store, problem, for_ever=True), patience=0.1)  # type: ignore[arg-type]
    found = together(intake, lambda: intake.add([search("eq_1")]))
    assert isinstance(found[0], Refused)
    assert (found[0].status, found[0].code, found[0].headers) == (503, "store_unavailable", {"Retry-After": "5"})
    assert ids(store) == []
    assert (intake.figures.stored, intake.figures.waiting, intake.figures.refused) == (0, 0, 1)
    assert intake.figures.problem is not None
    assert intake.close()


def test_a_damaged_log_is_no_fault_of_what_is_sent(tmp_path: Path) -> None:
    """Writes to other tables still go well, so that a refused row seems to blame."""
    Store.open(tmp_path / "store.sqlite").close()
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as file:
        (size,) = file.execute("PRAGMA page_size").fetchone()
        (page,) = file.execute("SELECT rootpage FROM sqlite_master WHERE name = 'eval_queries'").fetchone()
    with (tmp_path / "store.sqlite").open("r+b") as whole:
        whole.seek((page - 1) * size)
        whole.write(b"\xff" * size)
    damaged = Store.open(tmp_path / "store.sqlite")
    intake = Intake(damaged, patience=0.1)
    found = together(intake, lambda: intake.add([search("eq_1"), search("eq_2")], fresh=True))
    assert isinstance(found[0], Refused)
    assert (found[0].status, found[0].code) == (503, "store_unavailable")
    assert "is damaged; restore a backup" in str(intake.figures.problem)
    assert intake.close()
    damaged.close()


def test_what_may_not_be_stored_is_taken_out_first(intake: Intake, store: Store) -> None:
    together(
        intake,
        lambda: intake.add([search("eq_1", "mail ada@example.org about towels")]),
        lambda: intake.add([click("ef_1", metadata={"said": "call +49 30 901820 or ada@example.org"})]),
    )
    assert store.queries()[0].query == "mail [email] about towels"
    assert "ada@example.org" not in str(store.feedback()[0].metadata)


def test_what_cannot_be_redacted_is_refused_and_not_stored(store: Store) -> None:
    from ringtrue.log import Redactor

    def broken(text: str) -> str:
        raise RuntimeError(text)

    intake = Intake(store, cleaner=Redactor(functions=(broken,)))
    found = together(intake, lambda: intake.add([search("eq_1", "my secret")]))
    assert isinstance(found[0], Refused)
    assert "secret" not in found[0].message
    assert ids(store) == []
    assert intake.close()


def test_a_deleted_user_does_not_come_back_with_rows_sent_again(intake: Intake, store: Store) -> None:
    store.add_queries([search("eq_1", user_id="u1", session_id="s")])
    store.delete_user("u1", project="default", now="2026-03-01T13:00:00Z")
    found = together(
        intake,
        lambda: intake.add([search("eq_1", user_id="u1", session_id="s"), search("eq_2", user_id="u2")]),
        lambda: intake.add([search("eq_3", user_id="u1", created_at="2026-03-01T14:00:00Z")]),
        lambda: intake.add([click("ef_1", user_id="u1"), click("ef_2", user_id="u2")]),
    )
    assert found == [1, 1, 1]
    assert sorted(ids(store)) == ["eq_2", "eq_3"]
    assert [event.event_id for event in store.feedback()] == ["ef_2"]
    assert intake.figures.forgotten == 2


def test_closing_stores_what_was_taken_and_takes_no_more(store: Store) -> None:
    intake = Intake(store)

    async def log() -> tuple[int, Refused]:
        waiting = asyncio.ensure_future(intake.add([search("eq_1")]))
        await asyncio.sleep(0)
        assert await asyncio.to_thread(intake.close)
        with pytest.raises(Refused) as refused:
            await intake.add([search("eq_2")])
        return await waiting, refused.value

    stored, refused = asyncio.run(log())
    assert (stored, refused.status, refused.code) == (1, 503, "stopping")
    assert ids(store) == ["eq_1"]
    assert intake.trouble == "the writer has stopped"


def test_somebody_who_goes_away_disturbs_nobody(intake: Intake, store: Store) -> None:
    async def log() -> int:
        gone = asyncio.ensure_future(intake.add([search("eq_1")]))
        stays = asyncio.ensure_future(intake.add([search("eq_2")]))
        await asyncio.sleep(0)
        gone.cancel()
        intake.start()
        return await stays

    assert asyncio.run(log()) == 1
    assert intake.trouble is None
    assert ids(store) == ["eq_1", "eq_2"]


def test_equal_rows_of_one_request_are_one(intake: Intake, store: Store) -> None:
    row = search("eq_1")
    assert together(intake, lambda: intake.add([row, replace(row)])) == [1]
    assert ids(store) == ["eq_1"]


KILLED = """
import asyncio, sys
from ringtrue.service.intake import Intake
from ringtrue.store import LoggedQuery, Store

async def log(worker):
    number = 0
    while True:
        names = [f"eq_{worker}_{number}_{part}" for part in range(3)]
        rows = [LoggedQuery(name, "late checkout", "web", "2026-03-01T12:00:00Z") for name in names]
        await intake.add(rows)
        print("\\n".join(names), flush=True)
        number += 1

async def many():
    intake.start()
    await asyncio.gather(*(log(worker) for worker in range(8)))

intake = Intake(Store.open(sys.argv[1]))
asyncio.run(many())
"""


def test_what_was_acknowledged_survives_kill_9(url: str) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, url], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        acknowledged = [process.stdout.readline().strip() for _ in range(300)]
        os.kill(process.pid, signal.SIGKILL)
        acknowledged += [line.strip() for line in process.stdout.readlines() if line.endswith("\n")]
    with Store.open(url) as store:
        there = set(ids(store))
    assert len(acknowledged) >= 300
    assert [name for name in acknowledged if name not in there] == []
