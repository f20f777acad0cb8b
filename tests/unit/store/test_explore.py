"""The log as somebody looks through it, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import event

from ringtrue.answers import LogStep
from ringtrue.errors import InputError
from ringtrue.store import LoggedQuery, Store
from store_contents import PLAIN_QUERY


def _log() -> list[LoggedQuery]:
    """Twelve searches, two in each ten minutes from noon on, of which some went wrong."""
    return [
        replace(
            PLAIN_QUERY,
            query_id=f"eq_{i:02}",
            query=("Late Checkout", "breakfast 100%", "wi_fi")[i % 3],
            tool_name=("cli", "mcp")[i % 2],
            session_id=f"s{i // 4}",
            created_at=f"2026-03-01T12:{i // 2}0:00.000000Z",
            result_ids=() if i == 3 else ("d1",),
            degraded=i == 5,
            fallback="dense timed out" if i == 7 else None,
            total_latency_ms=None if i == 0 else float(i),
            quality_proxy_score=None if i < 2 else 0.5,
        )
        for i in range(12)
    ]


@pytest.fixture
def log(store: Store) -> Store:
    """A store with the log of two projects."""
    store.add_queries(_log())
    store.add_queries([replace(query, project="shop", tool_name="shop") for query in _log()])
    return store


def _ids(store: Store, **asked: object) -> list[int]:
    return [int(query.query_id[3:]) for query in store.queries(**asked)[::-1]]  # type: ignore[arg-type]


def test_the_newest_searches_come_first_and_in_pages(log: Store) -> None:
    assert log.queries(limit=2, newest=True) == _log()[-2:]
    pages, before = [], None
    while page := log.queries(limit=5, before=before, newest=True)[::-1]:
        pages.append([query.query_id for query in page])
        before = (page[-1].created_at, page[-1].query_id)
    assert [len(page) for page in pages] == [5, 5, 2]
    assert [query_id for page in pages for query_id in page] == [query.query_id for query in reversed(_log())]
    fourth = _log()[3]
    assert log.queries(before=(fourth.created_at, fourth.query_id), project="other") == []
    gone = (fourth.created_at, fourth.query_id + "x")
    assert [query.query_id for query in log.queries(before=gone, limit=1, newest=True)] == ["eq_03"]
    with pytest.raises(InputError):
        log.queries(before=("gone", "eq_03"))


def test_searches_are_filtered_by_text_tool_session_time_trouble_and_latency(log: Store) -> None:
    assert _ids(log, text="CHECK") == [9, 6, 3, 0]
    assert _ids(log, text="0%") == [10, 7, 4, 1]
    assert _ids(log, text="i_f") == [11, 8, 5, 2]
    assert _ids(log, text="e%h") == _ids(log, text="nowhere") == []
    assert _ids(log, tool="cli") == [10, 8, 6, 4, 2, 0]
    assert _ids(log, session_id="s1") == [7, 6, 5, 4]
    assert _ids(log, trouble=True) == [7, 5, 3]
    assert _ids(log, slower_than=9) == [11, 10]
    assert _ids(log, since="2026-03-01T12:10:00Z", until="2026-03-01T12:30:00Z") == [5, 4, 3, 2]
    assert _ids(log, trouble=True, tool="mcp", slower_than=3, before=(_log()[7].created_at, "eq_07")) == [5]


@pytest.mark.parametrize("text", ["früh", "FRÜH", "Früh anreisen", "élève", "ÉLÈVE", "Élève", "%ü"])
def test_letters_beyond_ascii_are_found_in_upper_and_lower_case(log: Store, text: str) -> None:
    log.add_queries([replace(PLAIN_QUERY, query_id="eq_50", query="Früh ANREISEN, 9%Ü, Élève")])
    assert _ids(log, text=text) == [50]


def test_searches_are_counted(log: Store) -> None:
    assert (log.count_queries(), log.count_queries(project="shop"), log.count_queries(project="other")) == (12, 12, 0)
    assert log.count_queries(since="2026-03-01T12:10:00Z", until="2026-03-01T12:30:00Z") == 4
    assert (log.tools(), log.tools(project="shop"), log.tools(project="other")) == (["cli", "mcp"], ["shop"], [])


def test_the_volume_of_the_log_by_minute_hour_and_day(log: Store) -> None:
    log.add_queries([replace(PLAIN_QUERY, query_id="next", created_at="2026-03-02T23:59:59.999999Z", result_ids=("d",))])
    whole = {"since": "2026-03-01", "until": "2026-03-03"}
    last = LogStep("2026-03-02T00:00:00.000000Z", 1, 0, 0, None, None)
    assert log.log_volume(**whole, step="day") == [LogStep("2026-03-01T00:00:00.000000Z", 12, 1, 1, 6.0, 0.5), last]
    hours = log.log_volume(**whole, step="hour")
    assert [(bucket.at, bucket.searches) for bucket in hours] == [
        ("2026-03-01T12:00:00.000000Z", 12),
        ("2026-03-02T23:00:00.000000Z", 1),
    ]
    minutes = log.log_volume(**whole, step="minute")
    assert minutes[:2] == [
        LogStep("2026-03-01T12:00:00.000000Z", 2, 0, 0, 1.0, None),
        LogStep("2026-03-01T12:10:00.000000Z", 2, 1, 0, 2.5, 0.5),
    ]
    assert [bucket.searches for bucket in minutes] == [2, 2, 2, 2, 2, 2, 1]


def test_the_first_and_the_last_step_are_counted_as_far_as_they_were_asked_for(log: Store) -> None:
    found = log.log_volume(since="2026-03-01T12:10:00Z", until="2026-03-01T12:30:00Z", step="hour")
    assert [(bucket.at, bucket.searches) for bucket in found] == [("2026-03-01T12:00:00.000000Z", 4)]
    assert log.log_volume(since="2026-03-02", until="2026-03-01", step="hour") == []
    assert log.log_volume(since="2026-03-01", until="2026-03-01", step="day") == []
    assert log.log_volume(since="9999-12-31T23:00:00Z", until="9999-12-31T23:59:59Z", step="day") == []


def test_steps_that_are_none_or_too_many_are_refused(store: Store) -> None:
    with pytest.raises(InputError, match=r"cannot count by 'hours'; write .*hour"):
        store.log_volume(since="2026-03-01", until="2026-03-02", step="hours")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="longer steps"):
        store.log_volume(since="2020-03-01", until="2026-03-02", step="minute")


def test_counting_on_sqlite_reads_the_index_alone(empty: Callable[[str], str]) -> None:
    """A hundred thousand searches are counted fast because their rows, which are long, are not read."""
    asked: list[tuple[str, object]] = []
    with Store.open(empty("sqlite")) as store:
        event.listen(store._engines.get(), "before_cursor_execute", lambda *told: asked.append((told[2], told[3])))
        store.count_queries(since="2026-03-01")
        store.log_volume(since="2026-03-01", until="2026-03-02", step="hour")
        store.tools()
        said = [(statement, given) for statement, given in asked if "eval_queries" in statement]
        with store._reading() as connection:
            for statement, given in said:
                plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)]  # type: ignore[arg-type]
                assert any("COVERING INDEX idx_eval_queries_project" in line for line in plan), plan
    assert len(said) == 3
