"""What goes into the store comes out again, on both databases."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from typing import get_args

import pytest

from ringtrue.answers import EventType
from ringtrue.errors import InputError, MissingInput
from ringtrue.store import Flag, LoggedQuery, Store, StoredJudgment, timestamp
from store_contents import (
    AUDIT,
    EVENT,
    EXPECTED,
    FULL_QUERY,
    JUDGMENT,
    LATER,
    NOON,
    PLAIN_QUERY,
    RESULT,
    REVIEW,
    SHADOW,
    contents,
    fill,
)


def test_one_of_everything_comes_back_as_it_went_in(store: Store) -> None:
    fill(store)
    found = contents(store)
    assert {name: found[name] for name in EXPECTED} == EXPECTED
    assert store.flag("rerank", project="default") == EXPECTED["flags"][0]
    assert store.test("rerank") == EXPECTED["tests"][0]
    assert (store.flag("other", project="default"), store.test("other")) == (None, None)
    assert found["counts"]["eval_queries"] == 2
    assert found["counts"]["eval_ab_counted"] == 1


def test_adding_the_same_again_changes_nothing(store: Store) -> None:
    assert store.add_queries([FULL_QUERY, PLAIN_QUERY, FULL_QUERY]) == 2
    assert store.add_queries([replace(FULL_QUERY, query="other"), replace(PLAIN_QUERY, query_id="eq_new")]) == 1
    assert [query.query for query in store.queries(query_ids=["eq_full"])] == [FULL_QUERY.query]
    assert [store.add_feedback([EVENT, EVENT]), store.add_feedback([EVENT])] == [1, 0]
    assert [store.add_shadow_runs([SHADOW]), store.add_shadow_runs([SHADOW])] == [1, 0]
    assert store.add_shadow_runs([replace(SHADOW, candidate="changed")]) == 1  # another candidate of the same feature
    assert [store.add_review_items([REVIEW]), store.add_review_items([replace(REVIEW, state="approved")])] == [1, 0]
    assert store.backlog()["pending_review"] == 1
    assert [store.add_queries([]), store.add_feedback([]), store.add_judgments([])] == [0, 0, 0]


def test_projects_do_not_see_each_other(store: Store) -> None:
    other = replace(FULL_QUERY, project="shop")
    assert store.add_queries([FULL_QUERY, other]) == 2
    assert store.queries(project="shop") == [other]
    assert store.queries(project="nobody") == []


def test_searches_are_found_by_trace_and_by_prompt(store: Store) -> None:
    other = replace(FULL_QUERY, query_id="eq_other", trace_id="t2")
    store.add_queries([FULL_QUERY, other, PLAIN_QUERY])
    assert store.queries(trace_id="t2") == [other]
    assert store.queries(prompt_id="p1") == [FULL_QUERY, other]
    assert store.queries(prompt_id="p1", trace_id="t1") == [FULL_QUERY]
    assert store.queries(trace_id="p1") == store.queries(trace_id="t1", project="shop") == []


def test_the_audit_trail_is_found_by_kind_and_time(store: Store) -> None:
    store.add_audit(AUDIT)
    store.add_audit(replace(AUDIT, what="log.lost", at=NOON))
    assert [entry.at for entry in store.audit(what="log.lost")] == [NOON]
    assert [entry.what for entry in store.audit(since=LATER)] == ["delete user"]
    assert store.audit(what="log.lost", since=LATER) == []


def test_a_batch_is_stored_whole_or_not_at_all(store: Store) -> None:
    good = JUDGMENT
    with pytest.raises(InputError, match="relevance") as caught:
        store.add_judgments([good, replace(good, item_id="d2", relevance=4)])
    assert "eq_full" not in str(caught.value)
    assert store.judgments() == []
    with pytest.raises(InputError, match="event_type"):
        store.add_feedback([EVENT, replace(EVENT, event_id="e2", event_type="stare")])  # type: ignore[arg-type]
    assert store.feedback() == []


def test_a_judgment_is_replaced_by_query_item_source_and_annotator(store: Store) -> None:
    rows = [JUDGMENT, replace(JUDGMENT, annotator="bo"), replace(JUDGMENT, source="implicit"), replace(JUDGMENT, item_id="d2")]
    assert store.add_judgments(rows) == 4
    store.add_judgments([replace(JUDGMENT, relevance=0)])
    assert sorted(judgment.relevance for judgment in store.judgments()) == [0, 3, 3, 3]
    assert [judgment.relevance for judgment in store.judgments(source="implicit")] == [3]
    assert store.judgments(query_ids=["other"]) == []
    assert store.delete_judgments(project="default", source="manual", annotator="bo") == 1
    assert store.delete_judgments(project="default", source="manual", query_ids=["other"]) == 0
    assert store.delete_judgments(project="default", source="manual") == 2
    assert [judgment.source for judgment in store.judgments()] == ["implicit"]


def test_results_are_kept_a_run_id_never_gets_other_figures(store: Store) -> None:
    store.add_result(RESULT)
    store.add_result(RESULT)
    with pytest.raises(InputError, match="r1"):
        store.add_result(replace(RESULT, metrics={"nDCG@10": 0.9}))
    store.add_result(replace(RESULT, run_id="r2", run_type="full", feature_id=None, created_at="2026-03-02T00:00:00Z"))
    assert [result.run_id for result in store.results()] == ["r2", "r1"]
    assert [result.run_id for result in store.results(limit=1)] == ["r2"]
    assert [result.run_id for result in store.results(feature_id="rerank", run_type="regression")] == ["r1"]
    assert [result.run_id for result in store.results(since="2026-03-02")] == ["r2"]


def test_a_result_fills_its_columns_and_leaves_the_unknown_ones_null(store: Store) -> None:
    from sqlalchemy import text

    shares = {"bm25": {"rate": 0.9, "unique_rate": 0.25, "hits": 9}}
    result = replace(RESULT, cold_start_mrr=0.4, channel_contribution=shares)
    store.add_result(result)
    assert store.results() == [result]
    names = (
        "mrr_at_5, ndcg_at_10, recall_at_10, cold_start_mrr, channel_contribution_json, ndcg_at_20, result_diversity_score, "
        "confidence_interval_lower, mrr_delta, avg_latency_ms"
    )
    with store._reading() as connection:
        row = connection.execute(text(f"SELECT {names} FROM eval_results")).one()
    assert tuple(row) == (
        0.5, 0.61, 0.7, 0.4, '{"bm25":{"rate":0.9,"unique_rate":0.25,"hits":9}}', None, None, 0.55, -0.02, 11.5,
    )  # fmt: skip


def _log(count: int) -> list[LoggedQuery]:
    """Searches, three at each second, in two sessions and with two tools."""
    return [
        LoggedQuery(
            f"eq_{i:03}", f"q{i}", ("cli", "mcp")[i % 2], f"2026-03-01T12:00:{i // 3:02}Z", session_id=f"s{i % 2}", user_id="u"
        )
        for i in range(count)
    ]


def test_queries_are_found_by_time_session_tool_user_and_id(store: Store) -> None:
    rows = _log(30)
    store.add_queries(rows[::-1])
    ids = [row.query_id for row in rows]

    def found(**asked: object) -> list[str]:
        return [query.query_id for query in store.queries(**asked)]  # type: ignore[arg-type]

    assert found() == ids
    assert found(since="2026-03-01T12:00:02Z", until="2026-03-01T13:00:04+01:00") == ids[6:12]
    assert found(session_id="s1") == ids[1::2] == found(tool="mcp")
    assert found(session_id="s1", tool="cli") == []
    assert found(query_ids=["eq_003", "eq_001", "nowhere"]) == ["eq_001", "eq_003"]
    assert found(query_ids=[]) == []
    assert found(query_ids=[f"x{i}" for i in range(70_000)] + ["eq_009"]) == ["eq_009"]
    assert found(user_id="u", limit=2) == ids[:2]
    assert found(limit=2, newest=True) == ids[-2:]


def test_pages_neither_overlap_nor_leave_a_query_out(store: Store) -> None:
    rows = _log(20)
    store.add_queries(rows)
    pages, after = [], None
    while page := store.queries(limit=7, after=after):
        pages.append([query.query_id for query in page])
        after = page[-1].query_id
    assert [len(page) for page in pages] == [7, 7, 6]
    assert [query_id for page in pages for query_id in page] == [row.query_id for row in rows]
    assert [query.query_id for query in store.queries(after="2026-03-01T12:00:05Z")] == ["eq_018", "eq_019"]
    with pytest.raises(MissingInput, match="eq_gone"):
        store.queries(after="eq_gone")


def test_feedback_is_found_by_kind_query_session_and_time(store: Store) -> None:
    rows = [replace(EVENT, event_id=f"e{i}", session_id=f"s{i % 2}", query_id=f"q{i}") for i in range(4)]
    rows.append(replace(EVENT, event_id="e9", event_type="re_search", created_at="2026-03-02T00:00:00Z", query_id=None))
    store.add_feedback(rows)

    def found(**asked: object) -> list[str]:
        return [event.event_id for event in store.feedback(**asked)]  # type: ignore[arg-type]

    assert found(kinds=["re_search"]) == ["e9"]
    assert found(kinds=["selection", "cite"], session_id="s1") == ["e1", "e3"]
    assert found(query_ids=["q2", "q3"]) == ["e2", "e3"]
    assert found(since="2026-03-02") == ["e9"]
    assert found(until="2026-03-02", limit=2) == ["e0", "e1"]


def test_every_feedback_signal_can_be_stored(store: Store) -> None:
    kinds = get_args(EventType)
    store.add_feedback([replace(EVENT, event_id=kind, event_type=kind) for kind in kinds])
    assert {event.event_type for event in store.feedback()} == set(kinds)


def test_times_come_back_in_one_form_that_sorts() -> None:
    moments = ["2026-03-01T12:00:00Z", "2026-03-01T12:00:00.5Z", "2026-03-01T14:00:01+02:00", "2026-03-01T12:00:01.000001"]
    stored = [timestamp(moment) for moment in moments]
    assert stored == sorted(stored)
    assert stored[2] == "2026-03-01T12:00:01.000000Z"
    with pytest.raises(InputError, match="yesterday"):
        timestamp("yesterday")


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_utc_has_no_year_for_is_refused(moment: str) -> None:
    for given in (moment, datetime.fromisoformat(moment)):
        with pytest.raises(InputError, match="years 1 to 9999"):
            timestamp(given)


def test_trap_33_text_that_a_database_cannot_hold_is_kept_readable(store: Store) -> None:
    odd = replace(FULL_QUERY, query_id="eq_\x00", query="a\x00b \ud800 c", result_ids=("\udfff", "n\x00"), user_id="\ud83d")
    store.add_queries([odd, PLAIN_QUERY])
    found = store.queries(query_ids=["eq_\x00"], user_id="\ud83d")[0]
    assert found.query == "a\\x00b \\ud800 c"
    assert found.result_ids == ("\udfff", "n\x00")
    assert store.delete_user("\ud83d", project="default") == 1


def test_a_number_that_is_none_is_unknown_never_0(store: Store) -> None:
    odd = replace(PLAIN_QUERY, total_latency_ms=math.nan, scores=(math.nan, math.inf, 1.0))
    store.add_queries([odd])
    found = store.queries()[0]
    assert found.total_latency_ms is None
    assert math.isnan(found.scores[0])
    assert found.scores[1:] == (math.inf, 1.0)


ODD_WORDS = (
    "plain", "", " ", "100% of %s and %(rows)s", 'say "hello"', "it's", "a\\b \\u0041 \\n", "line\nbreak\ttab\r",
    "\x01\x1f\x7f",
    "é ß 東京 \U0001f600 \u2028", "{}[],:", "null", "NaN", "$1 :rows ?", "a\x00b", "\ud800",
)  # fmt: skip
ODD_NUMBERS = (0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, math.inf, -math.inf, math.nan, 1e22, 12345678901234567.0)


def test_many_rows_at_once_are_stored_as_each_alone_would_be(store: Store) -> None:
    rows = [
        replace(FULL_QUERY, query_id=f"eq_{number:02}", query=text, intent=text,
                total_latency_ms=ODD_NUMBERS[number % 10],
                boost_delta=ODD_NUMBERS[-1 - number % 10], extraction_count=2**31 - 1 - number, flags={text: text})
        for number, text in enumerate(ODD_WORDS)
    ]  # fmt: skip
    assert store.add_queries(rows) == len(rows)
    alone = [replace(row, project="alone") for row in rows]
    assert [store.add_queries([row]) for row in alone] == [1] * len(rows)
    assert store.queries() == [replace(row, project="default") for row in store.queries(project="alone")]
    assert [row.query for row in store.queries()[:5]] == list(ODD_WORDS[:5])
    assert store.queries()[5].total_latency_ms == math.inf


def test_a_row_that_cannot_be_stored_spoils_the_whole_batch_and_says_why(store: Store) -> None:
    rows = [replace(PLAIN_QUERY, query_id=f"eq_{number}", extraction_count=10**number) for number in (1, 30, 2)]
    with pytest.raises((InputError, OverflowError)):
        store.add_queries(rows)
    assert store.queries() == []


def test_what_cannot_be_stored_is_refused_by_name(store: Store) -> None:
    with pytest.raises(InputError, match="object"):
        store.add_feedback([replace(EVENT, metadata={"a": object()})])


def test_numbers_of_numpy_are_stored_as_numbers(store: Store) -> None:
    import numpy as np

    store.add_queries([replace(PLAIN_QUERY, scores=tuple(np.array([0.5, 0.25])), stage_latency_ms={"fusion": np.float32(0.5)})])
    assert store.queries()[0].scores == (0.5, 0.25)
    assert store.queries()[0].stage_latency_ms == {"fusion": 0.5}


def test_setting_a_flag_writes_down_who_when_why_and_what_it_was(store: Store) -> None:
    store.set_flag(Flag("rerank", 1.0), who="ann", at=NOON, why="start")
    store.set_flag(Flag("rerank", 5.0), who="bo", at=LATER, why="stage 2")
    store.add_audit(AUDIT)
    newest, first = store.audit(project="default", subject="rerank")
    assert (newest.who, newest.at, newest.detail["why"]) == ("bo", LATER, "stage 2")
    assert (newest.detail["before"]["rollout"], newest.detail["after"]["rollout"]) == (1.0, 5.0)
    assert first.detail["before"] is None
    assert len(store.audit()) == 3
    assert store.audit(limit=1)[0].at == LATER
    with pytest.raises(InputError, match="rollout"):
        store.set_flag(Flag("rerank", 101.0), who="bo", at=LATER)
    assert len(store.audit()) == 3  # what was refused was not written down either


def test_a_flag_that_another_changed_meanwhile_is_not_overwritten(store: Store) -> None:
    seen = Flag("rerank", 1)
    assert store.set_flag(seen, who="ann", at=NOON, expected=None)
    assert not store.set_flag(Flag("rerank", 2), who="bo", at=NOON, expected=None)
    assert store.set_flag(Flag("rerank", 5), who="bo", at=NOON, expected=seen)
    assert not store.set_flag(Flag("rerank", 10), who="ann", at=NOON, expected=seen)
    assert not store.set_flag(Flag("other", 10), who="ann", at=NOON, expected=Flag("other", 5))
    assert [(flag.name, flag.rollout) for flag in store.flags()] == [("rerank", 5.0)]
    assert len(store.audit()) == 2


def test_reviews_most_urgent_first_ratings_per_reviewer_backlog_adds_up(store: Store) -> None:
    items = [replace(REVIEW, item_key=f"k{i}", priority=float(i), reserved_by=None, reserved_until=None) for i in range(4)]
    store.add_review_items(items)
    assert [item.item_key for item in store.review_items(limit=2)] == ["k3", "k2"]
    store.update_review_item("k3", lambda item: replace(item, state="approved"))
    assert [item.item_key for item in store.review_items(state="approved")] == ["k3"]
    for reviewer, grade in [("ann", 3), ("bo", 1), ("ann", 2)]:
        store.add_rating("k3", reviewer, grade, LATER, project="default")
    assert [(rating.reviewer, rating.grade) for rating in store.ratings(item_keys=["k3"])] == [("ann", 2), ("bo", 1)]
    assert [store.delete_rating("k3", "bo"), store.delete_rating("k3", "bo")] == [True, False]
    backlog = store.backlog()
    assert backlog == {
        "pending_review": 3, "approved": 1, "rejected": 0, "published": 0, "total": 4, "oldest_pending_at": NOON,
    }  # fmt: skip
    for call in (
        lambda: store.add_rating("gone", "ann", 1, LATER),
        lambda: store.update_review_item("gone", lambda item: item),
    ):
        with pytest.raises(MissingInput, match="gone"):
            call()


def test_a_review_item_is_reserved_by_one_only(store: Store) -> None:
    store.add_review_items([replace(REVIEW, reserved_by=None)])

    def reserve(who: str) -> bool:
        change = lambda item: replace(item, reserved_by=who) if item.reserved_by is None else None  # noqa: E731
        return store.update_review_item(REVIEW.item_key, change) is not None

    assert [reserve("ann"), reserve("bo")] == [True, False]
    assert store.review_items()[0].reserved_by == "ann"


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    with pytest.raises(InputError, match="closed"):
        store.queries()


def test_records_are_imported_without_sqlalchemy() -> None:
    code = "import sys, ringtrue.store as s; s.LoggedQuery, s.timestamp; assert 'sqlalchemy' not in sys.modules; s.Store"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_many_judgments_at_once(store: Store) -> None:
    rows = [StoredJudgment(f"q{i % 100}", f"d{i}", i % 4, "bootstrapped", NOON) for i in range(2_000)]
    assert store.add_judgments(rows) == 2_000
    assert len(store.judgments(query_ids=["q1", "q2"])) == 40
