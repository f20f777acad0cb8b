"""W-3: searches are on their way to PostgreSQL while the event loop does other things; none is told as stored that is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import psycopg
import pytest
import uvloop

from ringtrue.errors import InputError, Unreachable
from ringtrue.store import LoggedQuery, Store
from ringtrue.store import lanes as room
from ringtrue.store.lanes import Lanes

postgresql = pytest.mark.parametrize("kind", ["postgresql"])
AT = "2026-03-01T12:00:00.000000Z"


def searches(first: int, count: int = 3, **facts: object) -> list[LoggedQuery]:
    return [LoggedQuery(f"eq_{n}", f"pool {n} höfe \x00", "test", AT, **facts) for n in range(first, first + count)]  # type: ignore[arg-type]


def on(store: Store, work: Callable[[Lanes], Awaitable[None]], most: int = 2) -> None:
    """Do something with lanes, in a loop of the kind that the service has."""

    async def open_and_close() -> None:
        lanes = store.lanes(asyncio.get_running_loop(), most)
        assert lanes is not None
        try:
            await work(lanes)
        finally:
            lanes.close()

    uvloop.run(open_and_close())


def sent(lanes: Lanes, rows: list[LoggedQuery]) -> asyncio.Future[bool]:
    told: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    lanes.add_queries(rows, told.set_result)
    return told


def names(store: Store) -> set[str]:
    return {row.query_id for row in store.queries()}


def end_connections(store: Store) -> None:
    """Let PostgreSQL hang up on everybody else, as if it were started anew, and wait until it has."""
    with store._writing() as connection:
        connection.exec_driver_sql(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND usename = current_user AND query LIKE 'INSERT INTO eval_queries%%'"
        )


@postgresql
def test_rows_are_stored_when_told_and_as_any_other_way_stores_them(store: Store) -> None:
    full = searches(10, 1, session_id="s", result_ids=("a", "b"), scores=(0.5, float("nan")), degraded=True, flags={"x": True})
    store.add_queries(full)
    plain = store.queries()

    async def work(lanes: Lanes) -> None:
        again = [replace(full[0], query_id="eq_11")]
        assert await sent(lanes, [*searches(0), *again])
        assert await sent(lanes, searches(0, 5)), "what is there stays"

    on(store, work)
    assert names(store) == {"eq_0", "eq_1", "eq_2", "eq_3", "eq_4", "eq_10", "eq_11"}
    (found,) = store.queries(query_ids=["eq_11"])
    assert repr(found).replace("eq_11", "eq_10") == repr(plain[0])


@postgresql
def test_batches_are_on_their_way_together_and_others_wait(store: Store) -> None:
    async def work(lanes: Lanes) -> None:
        freed: list[int] = []
        lanes.freed = lambda: freed.append(lanes.busy)
        first, second = sent(lanes, searches(0)), sent(lanes, searches(3))
        assert (lanes.busy, lanes.free, first.done(), second.done()) == (2, False, False, False)
        assert await asyncio.gather(first, second) == [True, True]
        assert (lanes.busy, lanes.free, freed) == (0, True, [1, 0])

    on(store, work)
    assert len(names(store)) == 6


@postgresql
def test_nothing_to_send_is_stored_at_once(store: Store) -> None:
    async def work(lanes: Lanes) -> None:
        told = sent(lanes, [])
        assert told.result()
        assert lanes.busy == 0

    on(store, work)


@postgresql
def test_more_than_the_system_takes_at_once_arrives_whole(store: Store) -> None:
    async def work(lanes: Lanes) -> None:
        rows = [LoggedQuery(f"eq_{n}", "pool " + "x" * 20_000, "test", AT) for n in range(400)]
        assert await sent(lanes, rows)

    on(store, work)
    assert len(names(store)) == 400


@postgresql
def test_a_line_that_breaks_tells_that_nothing_is_certain_and_the_next_batch_has_another(store: Store) -> None:
    async def work(lanes: Lanes) -> None:
        assert await sent(lanes, searches(0))
        with store._writing() as connection:  # nobody can add anything while this is locked
            connection.exec_driver_sql("LOCK TABLE eval_queries IN ACCESS EXCLUSIVE MODE")
            told = sent(lanes, searches(3))
            await asyncio.sleep(0.1)
            assert not told.done()
            await asyncio.to_thread(end_connections, store)
            assert await asyncio.wait_for(told, 30) is False
        assert await sent(lanes, searches(6))

    on(store, work, most=1)
    assert names(store) == {"eq_0", "eq_1", "eq_2", "eq_6", "eq_7", "eq_8"}


@postgresql
def test_a_line_that_breaks_while_nobody_uses_it_is_opened_anew(store: Store) -> None:
    async def work(lanes: Lanes) -> None:
        assert await sent(lanes, searches(0))
        await asyncio.to_thread(end_connections, store)
        async with asyncio.timeout(60):
            while lanes._all[0]._driver is not None:
                await asyncio.sleep(0.01)
        assert await sent(lanes, searches(3))

    on(store, work, most=1)
    assert len(names(store)) == 6


@postgresql
def test_a_line_that_broke_before_the_loop_could_look_is_not_waited_for(store: Store) -> None:
    """What PostgreSQL said last is still to be read when the next batch is sent; uvloop tells of both once."""

    async def work(lanes: Lanes) -> None:
        assert await sent(lanes, searches(0))
        end_connections(store)  # without the loop
        told = sent(lanes, searches(3))
        time.sleep(0.3)
        assert await asyncio.wait_for(told, 30) is False
        assert await sent(lanes, searches(6))

    on(store, work, most=1)
    assert names(store) == {"eq_0", "eq_1", "eq_2", "eq_6", "eq_7", "eq_8"}


@postgresql
def test_a_line_whose_statements_are_forgotten_is_opened_anew(store: Store) -> None:
    async def work(lanes: Lanes) -> None:
        assert await sent(lanes, searches(0))
        lanes._all[0]._line.exec_(b"DEALLOCATE ALL")
        assert await sent(lanes, searches(3)) is False
        assert await sent(lanes, searches(6))

    on(store, work, most=1)
    assert names(store) == {"eq_0", "eq_1", "eq_2", "eq_6", "eq_7", "eq_8"}


@postgresql
def test_a_new_statement_does_not_keep_the_loop_while_the_table_is_locked(store: Store) -> None:
    async def work(lanes: Lanes) -> None:
        assert await sent(lanes, searches(0))
        with store._writing() as connection:
            connection.exec_driver_sql("LOCK TABLE eval_queries IN ACCESS EXCLUSIVE MODE")
            told = sent(lanes, searches(3, session_id="s"))
            await asyncio.sleep(0.3)
            assert not told.done()
        assert await told

    on(store, work, most=1)
    assert len(names(store)) == 6


@postgresql
def test_what_postgresql_refuses_is_not_stored(store: Store) -> None:
    with store._writing() as connection:
        connection.exec_driver_sql("ALTER TABLE eval_queries ADD CONSTRAINT short CHECK (length(query) < 50)")

    async def work(lanes: Lanes) -> None:
        long = LoggedQuery("eq_long", "x" * 60, "test", AT)
        assert await sent(lanes, [*searches(0), long]) is False, "all or none"
        assert await sent(lanes, searches(3))

    try:
        on(store, work)
        assert names(store) == {"eq_3", "eq_4", "eq_5"}
    finally:
        with store._writing() as connection:
            connection.exec_driver_sql("ALTER TABLE eval_queries DROP CONSTRAINT short")


@postgresql
def test_a_database_that_is_away_is_told_as_the_store_tells_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(lanes: Lanes) -> None:
        def away() -> None:
            raise psycopg.OperationalError("no route")

        monkeypatch.setattr(lanes._all[0], "_open", away)
        with pytest.raises(Unreachable, match="PostgreSQL did not answer"):
            sent(lanes, searches(0))
        assert lanes.busy == 0

    on(store, work, most=1)


@postgresql
def test_statements_of_many_columns_do_not_gather_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "STATEMENTS", 2)

    async def work(lanes: Lanes) -> None:
        for number, facts in enumerate(({}, {"session_id": "s"}, {"intent": "i"}, {"mode": "m"})):
            assert await sent(lanes, searches(number, 1, **facts))
            assert len(lanes._all[0]._prepared) <= 2

    on(store, work, most=1)
    assert len(names(store)) == 4


@postgresql
def test_they_are_for_the_store_of_all(store: Store) -> None:
    loop = asyncio.new_event_loop()
    with pytest.raises(InputError):
        store.only("shop").lanes(loop, 1)
    loop.close()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_sqlite_has_none(store: Store) -> None:
    loop = asyncio.new_event_loop()
    assert store.lanes(loop, 1) is None
    loop.close()
