"""Searches sent in the background: many in a request, each stored once, and none lost while the service is away."""

from __future__ import annotations

import json
import threading
from typing import Any

from ringtrue.client import BackgroundLog
from ringtrue.errors import InputError, Unreachable


class Service:
    """Takes bodies; refuses those that hold a bad search, and answers nothing while it is away."""

    def __init__(self) -> None:
        self.bodies: list[list[dict[str, Any]]] = []
        self.open = threading.Event()
        self.open.set()
        self.away = 0

    def __call__(self, body: bytes) -> None:
        assert self.open.wait(60)
        if self.away:
            self.away -= 1
            raise Unreachable("away")
        searches = json.loads(body)
        if any(one["query"] == "bad" for one in searches):
            raise InputError("bad")
        self.bodies.append(searches)

    @property
    def queries(self) -> list[str]:
        return [one["query"] for body in self.bodies for one in body]


def test_what_gathers_is_sent_in_one_request_and_in_order() -> None:
    service = Service()
    service.open.clear()
    with BackgroundLog(service) as log:
        names = [log.log(f"q{number}", tool_name="web") for number in range(100)]
        service.open.set()
        assert log.flush(60)
        assert log.stored == 100
    assert service.queries == [f"q{number}" for number in range(100)]
    assert len(service.bodies) <= 3
    assert [one["query_id"] for body in service.bodies for one in body] == names


def test_a_search_keeps_the_id_that_it_was_given() -> None:
    service = Service()
    with BackgroundLog(service) as log:
        assert log.log("pool", tool_name="web", query_id="eq_1") == "eq_1"
    assert service.bodies[0][0]["query_id"] == "eq_1"


def test_a_search_that_the_service_refuses_spoils_only_itself() -> None:
    service = Service()
    service.open.clear()
    log = BackgroundLog(service)
    for query in ("a", "b", "bad", "c"):
        log.log(query, tool_name="web")
    service.open.set()
    assert not log.close()
    assert sorted(service.queries) == ["a", "b", "c"]
    assert (log.stored, log.refused, log.problem) == (3, 1, "bad")


def test_while_the_service_is_away_searches_wait() -> None:
    service = Service()
    service.away = 1
    with BackgroundLog(service) as log:
        log.log("pool", tool_name="web")
        assert log.flush(60)
        assert (log.stored, log.refused, log.problem) == (1, 0, "away")


def test_a_closed_log_drops_and_counts() -> None:
    log = BackgroundLog(Service())
    assert log.close()
    assert log.log("pool", tool_name="web") is None
    assert log.dropped == 1


def test_a_service_that_stays_away_does_not_hold_the_end() -> None:
    service = Service()
    service.away = 1_000
    log = BackgroundLog(service)
    log.log("pool", tool_name="web")
    assert not log.close(60)
    assert (log.stored, log.refused) == (0, 1)
