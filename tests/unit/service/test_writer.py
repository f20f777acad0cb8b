"""W-3, W-4: the intake in a process of its own answers after the commit, survives its death, and loses nothing at the end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ringtrue.service.errors import Refused
from ringtrue.service.writer import WriterProcess
from ringtrue.store import FeedbackEvent, LoggedQuery, Store
from stores import kind as kind
from stores import url as url

AT = "2026-03-01T12:00:00.000000Z"


def row(number: int, **more: object) -> LoggedQuery:
    return LoggedQuery(f"eq_{number}", f"pool {number}", "test", AT, result_ids=("a", "b"), scores=(0.9, 0.5), **more)  # type: ignore[arg-type]


@asynccontextmanager
async def writing(url: str, **options: int) -> AsyncIterator[WriterProcess]:
    writer = WriterProcess(url, **options)
    await writer.open()
    try:
        yield writer
    finally:
        await writer.finish()


def stored(url: str) -> list[str]:
    with Store.open(url) as store:
        return sorted(one.query_id for one in store.queries())


def test_what_is_acknowledged_is_in_the_store(url: str) -> None:
    async def go() -> None:
        async with writing(url) as writer:
            assert writer.alive
            assert await writer.queries([row(1), row(2)], fresh=True) == 2
            assert stored(url) == ["eq_1", "eq_2"]
            assert await writer.queries([row(2), row(3)]) == 1, "one is there already"
            event = FeedbackEvent("ev_1", "click", "s", AT, query_id="eq_1", item_id="a")
            assert await writer.feedback([event]) == 1
            assert await writer.queries([]) == 0
            figures = writer.figures
            assert (figures.accepted, figures.stored, figures.there, figures.waiting) == (5, 4, 1, 0)
        assert not writer.alive

    asyncio.run(go())
    with Store.open(url) as store:
        assert [one.event_id for one in store.feedback()] == ["ev_1"]


def test_whoever_opened_it_need_not_wait_for_its_start_W_3(url: str) -> None:
    """A server says that it listens when its writer does: the first who log would wait for half a second otherwise."""

    async def go() -> None:
        async with writing(url) as writer:
            assert writer._heard_of.is_set(), "it has said that the store is open"

    asyncio.run(go())


def test_many_at_once_are_all_stored_and_each_is_told(url: str) -> None:
    async def go() -> list[int]:
        async with writing(url) as writer:
            return await asyncio.gather(*(writer.queries([row(number)], fresh=True) for number in range(500)))

    assert asyncio.run(go()) == [1] * 500
    assert len(stored(url)) == 500


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_row_that_cannot_be_stored_is_refused_and_the_others_are_not(url: str) -> None:
    async def go() -> None:
        async with writing(url) as writer:
            with pytest.raises(Refused) as refusal:
                await writer.queries([row(1), row(2, total_latency_ms=-5.0)])
            assert refusal.value.status == 422
            assert "eq_2" in refusal.value.message

    asyncio.run(go())
    assert stored(url) == ["eq_1"]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_too_much_at_once_is_refused_at_the_door(url: str) -> None:
    async def go() -> None:
        async with writing(url, most_rows=3) as writer:
            first = asyncio.ensure_future(writer.queries([row(1), row(2)]))
            await asyncio.sleep(0)
            with pytest.raises(Refused) as refusal:
                await writer.queries([row(3), row(4)])
            assert (refusal.value.status, refusal.value.code) == (503, "busy")
            assert await first == 2
            assert writer.figures.refused == 2

    asyncio.run(go())
    assert stored(url) == ["eq_1", "eq_2"]


def test_a_writer_that_dies_takes_nothing_acknowledged_with_it_and_another_takes_over(url: str) -> None:
    async def go() -> set[str]:
        told: set[str] = set()
        refusals: set[int] = set()

        async def send(writer: WriterProcess, number: int) -> None:
            try:
                await writer.queries([row(number)], fresh=True)
            except Refused as problem:
                refusals.add(problem.status)
            else:
                told.add(f"eq_{number}")

        async with writing(url) as writer:
            await send(writer, 0)
            for turn in range(3):
                child = writer._child
                assert child is not None
                sending = asyncio.gather(*(send(writer, turn * 1000 + number) for number in range(1, 200)))
                await asyncio.sleep(0.004)
                os.kill(child.pid, signal.SIGKILL)
                await sending
                while f"eq_{turn * 1000 + 900}" not in told:
                    await send(writer, turn * 1000 + 900)
                    await asyncio.sleep(0.05)
        assert refusals <= {503}
        return told

    told = asyncio.run(go())
    assert told <= set(stored(url))
    assert {"eq_0", "eq_900", "eq_1900", "eq_2900"} <= told


def test_the_end_waits_for_what_was_taken(url: str) -> None:
    async def go() -> None:
        writer = WriterProcess(url)
        await writer.open()
        sent = [asyncio.ensure_future(writer.queries([row(number)], fresh=True)) for number in range(300)]
        await asyncio.sleep(0)
        assert await writer.finish()
        assert await asyncio.gather(*sent) == [1] * 300
        with pytest.raises(Refused, match="stopping"):
            await writer.queries([row(1000)])

    asyncio.run(go())
    assert len(stored(url)) == 300


def test_a_store_that_cannot_be_reached_is_told_and_not_waited_for() -> None:
    async def go() -> None:
        async with writing("postgresql://nobody@127.0.0.1:1/none") as writer:
            with pytest.raises(Refused) as refusal:
                await writer.queries([row(1)])
            assert refusal.value.status == 503

    asyncio.run(go())
