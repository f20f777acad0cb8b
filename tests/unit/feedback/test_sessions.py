"""Sessions, their outcomes, and how the two go together."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from made_feedback import at, event, search
from ringtrue.errors import InputError
from ringtrue.feedback import TaskOutcome, correlations, derive_judgments, session_summaries
from ringtrue.formats import Place
from ringtrue.log import rows_in_ubi
from ringtrue.rollout import Interleaved, as_flag
from ringtrue.store import Store, StoredJudgment

SEARCHES = [
    search("q1", "pool hours", minutes=0, prompt_id="p1"),
    search("q2", "hours of pool", minutes=2, prompt_id="p2"),
    search("q3", "garden suite", minutes=6, prompt_id="p2"),
    search("q4", "pool hours", session="t", minutes=20),
]
EVENTS = [
    event("click", "b", query_id="q2", rank_in_results=2, minutes=3),
    event("read_after_search", "c", query_id="q2", rank_in_results=3, minutes=4),
    event("validate_useful", "b", query_id="q2", rank_in_results=2, minutes=9),
    event("click", "z", minutes=5),
]


def by_hand(query_id, item, grade):
    return StoredJudgment(query_id, item, grade, "manual", at(0), annotator="anna")


def test_a_session_in_figures() -> None:
    first, second = session_summaries(SEARCHES, EVENTS)
    assert (first.session_id, first.queries, first.selected, first.validated) == ("s", 3, 1, 1)
    assert (first.items_accessed, first.duration_minutes, first.turns) == (3, 9.0, 2)
    assert first.re_search_rate == pytest.approx(1 / 3)
    assert first.turns_per_search == pytest.approx(2 / 3)
    assert (second.queries, second.selected, second.re_search_rate, second.duration_minutes) == (1, 0, 0.0, 0.0)


def test_events_of_a_live_log_are_linked_when_they_are_read() -> None:
    loose = [replace(one, query_id=None, rank_in_results=-1) for one in EVENTS]
    assert session_summaries(SEARCHES, loose) == session_summaries(SEARCHES, EVENTS)
    # As an import without positions has them: the search is named, the rank is not.
    ranks_missing = [replace(one, rank_in_results=-1) for one in EVENTS]
    assert session_summaries(SEARCHES, ranks_missing)[0].selected == 1
    late = [event("click", "b", minutes=50)]
    assert session_summaries(SEARCHES, late)[0].selected == 0
    assert session_summaries(SEARCHES, late, window=timedelta(hours=1))[0].selected == 1


def test_lists_of_one_interleaving_are_one_variant() -> None:
    drawn = [
        replace(one, flags=as_flag("mixed", Interleaved((items,), (0.0,)))) for one, items in zip(SEARCHES, "abcd", strict=True)
    ]
    assert session_summaries(drawn, [])[0].variants == ('fp1 {"interleave": {"feature": "mixed"}}',)


def test_what_is_not_known_is_none() -> None:
    _, second = session_summaries(SEARCHES, EVENTS)
    assert (second.mean_rr, second.judged, second.turns, second.turns_per_search, second.outcome) == (None, 0, None, None, None)
    assert session_summaries(SEARCHES, EVENTS, turns={"t": 5})[1].turns_per_search == 5.0
    assert session_summaries([search("q1", session=None)], []) == []


def test_mean_rr_is_over_judged_searches_only() -> None:
    judged = [by_hand("q4", "c", 3), by_hand("q4", "a", 1), by_hand("q3", "a", 0)]
    first, second = session_summaries(SEARCHES, EVENTS, judgments=judged)
    # q1 has q4's words; nothing relevant is known for q3; q2 has other words.
    assert (first.mean_rr, first.judged) == (pytest.approx(1 / 3), 1)
    assert second.mean_rr == pytest.approx(1 / 3)
    missed = session_summaries(SEARCHES, EVENTS, judgments=[by_hand("q1", "zz", 2)])
    assert [one.mean_rr for one in missed] == [0.0, 0.0]


def test_outcomes_join_their_session_once() -> None:
    outcome = TaskOutcome("s", "task-1", 0.2, 0.3, 0.25)
    assert session_summaries(SEARCHES, EVENTS, outcomes=[outcome])[0].outcome == outcome
    with pytest.raises(InputError, match="two outcomes"):
        session_summaries(SEARCHES, EVENTS, outcomes=[outcome, outcome])


def summaries(n: int, *, noise: float, seed: int = 1):
    rng = np.random.default_rng(seed)
    searches, outcomes = [], []
    for number in range(n):
        rank = int(rng.integers(1, 6))
        results = [f"w{place}" for place in range(1, 6)]
        results[rank - 1] = "right"
        searches.append(search(f"q{number}", session=f"s{number}", minutes=number, result_ids=tuple(results)))
        outcomes.append(TaskOutcome(f"s{number}", learning_index=(1 / rank + noise * float(rng.normal())) / 1e9))
    return session_summaries(searches, [], judgments=[by_hand("q0", "right", 3)], outcomes=outcomes)


def only(found, quality="mean_rr", outcome="learning_index"):
    (one,) = [one for one in found if (one.quality, one.outcome) == (quality, outcome)]
    return one


def test_correlation_comes_with_an_interval() -> None:
    found = only(correlations(summaries(60, noise=0.2), rng=np.random.default_rng(0)))
    assert 0 < found.low < found.rho < found.high < 1
    assert found.sessions == 60
    nothing = only(correlations(summaries(60, noise=50.0), rng=np.random.default_rng(0)))
    assert nothing.low < 0 < nothing.high


def test_the_interval_holds_no_correlation_about_as_often_as_it_says() -> None:
    held = []
    for seed in range(40):
        found = only(correlations(summaries(30, noise=1e6, seed=seed), rng=np.random.default_rng(seed), resamples=300))
        held.append(found.low <= 0 <= found.high)
    assert np.mean(held) >= 0.85


def test_the_same_seed_gives_the_same_interval() -> None:
    some = summaries(20, noise=0.3)
    assert correlations(some, rng=np.random.default_rng(3)) == correlations(some, rng=np.random.default_rng(3))


def test_too_few_or_equal_sessions_have_no_interval_and_say_why() -> None:
    few = only(correlations(summaries(9, noise=0.2), rng=np.random.default_rng(0)))
    assert (few.low, few.high) == (None, None)
    assert "9 sessions are too few" in few.why
    same = only(correlations(summaries(20, noise=0.2), rng=np.random.default_rng(0)), "re_search_rate")
    assert same.rho is None
    assert "same in every session" in same.why
    assert correlations(summaries(1, noise=0), rng=np.random.default_rng(0)) == []


@pytest.fixture
def place(tmp_path):
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries(SEARCHES)
        store.add_feedback(EVENTS)
        store.add_judgments([by_hand("q1", "b", 3)])
    return str(tmp_path / "store.sqlite")


def test_sessions_prints_a_line_per_session(ringtrue, place) -> None:
    outcome = ringtrue("sessions", "--store", place)
    assert outcome.code == 0
    header, first, second = outcome.out.splitlines()
    assert header.split()[:3] == ["session", "started", "searches"]
    assert first.split()[0] == "s"
    assert first.split()[-2:] == ["0.500", "—"]
    assert second.split()[0] == "t"


def test_sessions_json_has_figures_and_correlations(ringtrue, place, tmp_path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(
        '{"session_id": "s", "learning_index": 0.4}\n\n{"session_id": "gone", "knowledge_delta": 0.3}\n', encoding="utf-8"
    )
    record = ringtrue("sessions", "--store", place, "--outcomes", tasks, "--json").json
    assert [one["session_id"] for one in record["sessions"]] == ["s", "t"]
    assert record["sessions"][0]["outcome"]["learning_index"] == 0.4
    assert record["sessions"][0]["re_search_rate"] == pytest.approx(1 / 3)
    assert record["sessions"][1]["outcome"] is None
    assert record["outcomes_without_session"] == ["gone"]
    assert ringtrue("sessions", "--store", place, "--since", at(10), "--json").json["sessions"][0]["session_id"] == "t"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "tasks.jsonl:1: not valid JSON"),
        (json.dumps({"learning_index": 1}), "has no session_id"),
        (json.dumps({"session_id": "s", "learning_index": "high"}), "tasks.jsonl:1: learning_index is 'high'"),
        (
            json.dumps({"session_id": "s", "knowledge_delta": 12}),
            "tasks.jsonl:1: knowledge_delta is 12; write a number from -1 to 1 (0.12 for 12 of 100)",
        ),
    ],
)
def test_sessions_names_the_line_that_is_wrong(ringtrue, place, tmp_path, line, says) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(line, encoding="utf-8")
    outcome = ringtrue("sessions", "--store", place, "--outcomes", tasks)
    assert outcome.code == 2
    assert says in outcome.err


def test_sessions_refuses_an_unknown_source_and_warns_of_circular_ones(ringtrue, place) -> None:
    assert "did you mean 'manual'" in ringtrue("sessions", "--store", place, "--source", "manuel").err
    assert "where people chose" in ringtrue("sessions", "--store", place, "--source", "implicit").err


def test_imported_behaviour_without_positions_has_the_rank_of_its_search() -> None:
    shown = {"query_id": "u1", "user_query": "pool", "client_id": "c", "timestamp": at(0), "query_response_hit_ids": ["x", "y"]}
    object_ = {"object": {"object_id": "y"}}
    clicked = {"action_name": "click", "query_id": "u1", "client_id": "c", "timestamp": at(1), "event_attributes": object_}
    one, click = rows_in_ubi([(Place("ubi.jsonl", 1), shown), (Place("ubi.jsonl", 2), clicked)])
    assert click.rank_in_results == -1
    assert session_summaries([one], [click])[0].selected == 1
    assert [row.item_id for row in derive_judgments([one], [click], now=at(2)).judgments] == ["y"]
