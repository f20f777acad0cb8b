"""Interleaving: no place is biased, equal rankings are not told apart, the better one is found sooner than by A/B."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringtrue.answers import EventType
from ringtrue.errors import InputError, MissingInput
from ringtrue.rollout import Interleaved, as_flag, count_log, create_test, from_flags, interleaved, judge_credits, standing
from ringtrue.rollout.interleave import INTERLEAVINGS, _optimal_chances, _team_draft
from ringtrue.stats import first_decisions
from ringtrue.store import FeedbackEvent, LoggedQuery, Store

A = ["a", "b", "c", "d", "e"]
PAIRS = [
    (A, ["b", "a", "c", "d", "e"]),
    (A, ["e", "d", "c", "b", "a"]),
    (A, ["a", "b", "x", "c", "y"]),
    (A, ["v", "w", "x", "y", "z"]),
    (A, ["c", "x", "a", "y", "b"]),
]


def mean_credits(lists: list[Interleaved], chances: list[float]) -> list[float]:
    return [sum(p * one.credits[place] for one, p in zip(lists, chances)) for place in range(len(lists[0].credits))]


@pytest.mark.parametrize(("control", "treatment"), PAIRS)
def test_team_draft_favours_no_side_at_any_place(control: list[str], treatment: list[str]) -> None:
    every = [_team_draft(tuple(control), tuple(treatment), 5, coins) for coins in itertools.product((True, False), repeat=5)]
    assert mean_credits(every, [1 / 32] * 32) == pytest.approx([0.0] * 5)
    assert all(len(set(one.items)) == 5 for one in every)


@pytest.mark.parametrize(("control", "treatment"), PAIRS)
def test_optimised_favours_no_side_at_any_place(control: list[str], treatment: list[str]) -> None:
    lists, chances = _optimal_chances(tuple(control), tuple(treatment))
    assert sum(chances) == pytest.approx(1)
    assert mean_credits(list(lists), list(chances)) == pytest.approx([0.0] * 5, abs=1e-9)
    for one in lists:
        assert len(set(one.items)) == 5
        assert max(map(abs, one.credits)) <= 1


def test_a_draw_without_bias_exists_for_every_pair_of_short_rankings() -> None:
    for other in itertools.permutations("abcdx", 4):
        lists, chances = _optimal_chances(tuple("abcd"), other)
        assert mean_credits(list(lists), list(chances)) == pytest.approx([0.0] * 4, abs=1e-9)


@pytest.mark.parametrize("method", INTERLEAVINGS)
def test_each_result_is_the_next_of_one_ranking_and_every_allowed_start_is_drawn(method: str) -> None:
    control, treatment = ["a", "b", "c", "d"], ["c", "a", "x", "y"]
    firsts = set()
    for key in range(200):
        shown = interleaved(control, treatment, key=str(key), method=method, k=4).items
        firsts.add(shown[0])
        for place, item in enumerate(shown):
            nexts = {next(one for one in ranking if one not in shown[:place]) for ranking in (control, treatment)}
            assert item in nexts
    assert firsts == {"a", "c"}


def test_the_same_impression_is_the_same_list_on_every_machine() -> None:
    control, treatment = [f"a{n}" for n in range(8)], [f"b{n}" for n in range(8)]
    assert interleaved(control, treatment, key="eq_7", k=6).items == ("a0", "b0", "b1", "a1", "a2", "b2")
    assert len({interleaved(control, treatment, key=f"eq_{n}", k=6) for n in range(50)}) == 8  # three rounds, three coins
    assert interleaved(control, treatment, key="eq_7", k=6, seed=3) != interleaved(control, treatment, key="eq_7", k=6)


def test_where_both_agree_a_click_says_nothing() -> None:
    shown = interleaved(["a", "b", "c"], ["a", "b", "d"], key="q", k=3)
    assert shown.items[:2] == ("a", "b")
    assert shown.credits[:2] == (0.0, 0.0)
    assert shown.credit({"a"}) == 0.0
    assert interleaved(A, A, key="q").credits == (0.0,) * 5


@pytest.mark.parametrize("method", INTERLEAVINGS)
@pytest.mark.parametrize("treatment", [["x"], [], ["c", "x"]])
def test_places_that_only_one_side_can_fill_carry_no_credit(method: str, treatment: list[str]) -> None:
    for key in range(20):
        shown = interleaved(A, treatment, key=str(key), method=method, k=5)
        assert len(shown.items) == len(set(shown.items)) == 5
        assert shown.credits[len(treatment) :] == (0.0,) * (5 - len(treatment))


def test_no_click_is_unknown_and_not_a_tie() -> None:
    shown = Interleaved(("a", "b", "c"), (-1.0, 1.0, 0.0))
    assert shown.credit(()) is None
    assert shown.credit({"elsewhere"}) is None
    assert shown.credit({"a", "b"}) == 0.0
    assert shown.credit({"b", "c"}) == 0.5


@pytest.mark.parametrize("method", INTERLEAVINGS)
@pytest.mark.parametrize("habit", [(0.9, 0.5, 0.3, 0.2, 0.1), (0.5, 0.0, 0.0, 0.0, 0.0), (0.1, 0.2, 0.3, 0.5, 0.9)])
def test_whoever_clicks_by_place_alone_decides_for_nobody(method: str, habit: tuple[float, ...]) -> None:
    """Simulated users who look at places and not at results: the sequential test keeps its alpha."""
    rng = np.random.default_rng(4)
    users, impressions = 100, 100
    clicks = rng.random((impressions, users, 5)) < np.array(habit)
    clicks[~clicks.any(axis=2), 0] = True
    credits = np.empty((impressions, users))
    for impression in range(impressions):
        control, treatment = PAIRS[impression % len(PAIRS)]
        for user in range(users):
            shown = interleaved(control, treatment, key=f"{user}:{impression}", method=method, k=5)
            credits[impression, user] = np.dot(shown.credits, clicks[impression, user]) / clicks[impression, user].sum()
    codes, _ = first_decisions(credits, "confidence sequence")
    assert (codes == 1).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / users)
    assert abs(credits.mean()) < 4.5 * credits.std() / math.sqrt(credits.size)


@pytest.mark.parametrize("method", INTERLEAVINGS)
def test_the_better_ranking_is_found_with_fewer_impressions_than_by_ab(method: str) -> None:
    """Users click relevant results more; the treatment ranks them a little higher. Both roads decide by the same test."""
    rng = np.random.default_rng(9)
    users, impressions, k = 40, 300, 5
    attention = np.array([1.0, 0.7, 0.5, 0.4, 0.3])
    credits, gains = np.zeros((impressions, users)), np.zeros((impressions, users))
    for impression in range(impressions):
        control, treatment = PAIRS[impression % 3]
        for user in range(users):
            wanted = dict(zip(treatment, (0.6, 0.4, 0.3, 0.2, 0.1)))  # what people want is what the treatment puts first

            def clicked(items: tuple[str, ...], wanted: dict[str, float] = wanted) -> np.ndarray[Any, Any]:
                return rng.random(k) < attention * np.array([wanted.get(item, 0.05) for item in items])

            shown = interleaved(control, treatment, key=f"{user}:{impression}", method=method, k=k)
            mine = clicked(shown.items)
            credits[impression, user] = np.dot(shown.credits, mine) / max(1, mine.sum())
            # One of each in an A/B test: was anything clicked, and how high?
            arms = [clicked(tuple(items)) for items in (control, treatment)]
            scores = [1 / (1 + arm.argmax()) if arm.any() else 0.0 for arm in arms]
            gains[impression, user] = scores[1] - scores[0]
    interleaving, ab = (first_decisions(values, "confidence sequence") for values in (credits, gains))
    needed, needed_by_ab = np.median(interleaving[1]), 2 * np.median(ab[1])
    assert (interleaving[0] == 1).mean() >= 0.80
    assert needed < 0.6 * needed_by_ab


def test_credits_are_judged_in_order_and_the_first_decision_stays() -> None:
    found = judge_credits([1.0, 0.0, 1.0, 0.5] * 20 + [-1.0] * 300)
    assert (found.decision, found.impressions) == ("accept-treatment", 380)
    assert found.decided_after is not None
    assert found.decided_after <= 80
    assert (found.treatment_wins, found.control_wins, found.ties) == (60, 300, 20)
    assert judge_credits([-0.5, 0.5] * 400, method="sprt").decision == "accept-control"
    empty = judge_credits([])
    assert (empty.mean_credit, empty.decision, empty.impressions) == (None, "continue", 0)
    with pytest.raises(InputError, match="sprt"):
        judge_credits([], method="sprtt")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"method": "balanced"}, "team-draft"), ({"k": 0}, "at least 1"), ({"method": "optimised", "k": 11}, "at most 10")],
)
def test_unusable_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        interleaved(A, A, key="q", **options)


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def logged(query_id: str, minutes: int, shown: Interleaved | None) -> LoggedQuery:
    flags = {} if shown is None else as_flag("rerank", shown)
    at = (NOW + timedelta(minutes=minutes)).isoformat()
    return LoggedQuery(query_id, "pool", "search", at, result_ids=() if shown is None else shown.items, flags=flags)


def event(number: int, query_id: str, item: str, kind: EventType = "click") -> FeedbackEvent:
    return FeedbackEvent(f"e{number}", kind, "s1", (NOW + timedelta(minutes=5)).isoformat(), query_id=query_id, item_id=item)


def test_logged_impressions_are_weighed_once_and_wait_for_their_clicks(tmp_path: Path) -> None:
    shown = Interleaved(("a", "b", "c"), (-1.0, 1.0, 0.0))
    with Store.open(tmp_path / "store.sqlite") as store:
        create_test(store, "rerank", now=NOW.isoformat(), measure=None)
        old = logged("eq_old", -5, shown)  # before the test began
        rows = [logged("eq_1", 1, shown), logged("eq_2", 2, shown), logged("eq_3", 3, shown), logged("eq_young", 55, shown)]
        plain = logged("eq_plain", 1, None)
        elsewhere = replace(logged("eq_other", 1, shown), flags=as_flag("another", shown))
        store.add_queries([*rows, plain, elsewhere, old])
        store.add_feedback(
            [
                event(1, "eq_1", "b"),
                event(2, "eq_1", "b", "cite"),  # the same result twice is one choice
                event(3, "eq_2", "a"),
                event(4, "eq_2", "c", "selection"),
                event(5, "eq_3", "a", "scroll_past"),
                event(6, "eq_young", "b"),
                event(7, "eq_old", "b"),
            ]
        )
        settle = timedelta(minutes=30)
        first = count_log(store, "rerank", now=NOW + timedelta(hours=1), settle=settle)
        assert (first.impressions, first.clicked, first.new) == (3, 2, 2)
        assert (first.waiting, first.before) == (1, 1)
        assert first.test.sums["differences"] == pytest.approx(1.0 - 0.5)
        again = count_log(store, "rerank", now=NOW + timedelta(hours=2), settle=settle)
        assert (again.impressions, again.clicked, again.new) == (4, 3, 1)
        assert again.waiting == 0
        assert (again.test.sample_count, standing(again.test).mean_difference) == (3, pytest.approx(0.5))
        with pytest.raises(MissingInput, match="'unknown'"):
            count_log(store, "unknown", now=NOW, settle=settle)


def test_clicks_of_a_live_log_that_name_no_search_count_for_the_list_they_were_made_on(tmp_path: Path) -> None:
    shown = Interleaved(("a", "b", "c"), (-1.0, 1.0, 0.0))
    with Store.open(tmp_path / "store.sqlite") as store:
        create_test(store, "rerank", now=NOW.isoformat(), measure=None)
        first, second = (replace(logged(f"eq_{n}", n, shown), session_id="s1") for n in (1, 2))
        plain = replace(logged("eq_3", 3, None), session_id="s1", result_ids=("c",))
        strange = replace(logged("eq_4", 1, shown), session_id="s2", trace_id="t")
        store.add_queries([first, second, plain, strange])
        loose = [replace(event(n, "", item), query_id=None) for n, item in enumerate("bc")]
        traced = replace(event(9, "", "a"), query_id=None, session_id="elsewhere", metadata={"trace_id": "t"})
        store.add_feedback([*loose, traced])
        found = count_log(store, "rerank", now=NOW + timedelta(hours=1), settle=timedelta(minutes=30))
        # b: on the newest list that showed it. c: a later search showed it alone. a: by its trace.
        assert (found.impressions, found.clicked, found.new) == (3, 2, 2)
        assert found.test.sums["differences"] == pytest.approx(1.0 - 1.0)


def test_the_command_says_which_lists_do_not_count_and_why(ringtrue, tmp_path: Path) -> None:
    shown = Interleaved(("a", "b"), (-1.0, 1.0))
    now = datetime.now(UTC)
    path = tmp_path / "store.sqlite"
    with Store.open(path) as store:
        create_test(store, "rerank", now=(now - timedelta(hours=2)).isoformat(), measure=None)
        ages = {"eq_before": 180, "eq_old": 90, "eq_young": 5}
        store.add_queries(
            [
                replace(logged(name, 0, shown), created_at=(now - timedelta(minutes=age)).isoformat())
                for name, age in ages.items()
            ]
        )
    said = ringtrue("interleave", "--feature", "rerank", "--store", path)
    assert "1 interleaved lists" in said.out
    assert "1 lists are younger than 30 minutes and wait" in said.err
    assert "1 lists of the week before the test began" in said.err
    record = ringtrue("interleave", "--feature", "rerank", "--store", path, "--json").json
    assert (record["impressions"], record["waiting"], record["before_the_test"]) == (1, 1, 1)


def test_what_the_log_carries_comes_back_as_it_was() -> None:
    shown = interleaved(A, ["b", "x", "a", "y", "c"], key="q", method="optimised", k=5)
    assert from_flags("rerank", as_flag("rerank", shown)) == shown
    assert from_flags("other", as_flag("rerank", shown)) is None
    assert from_flags("rerank", {"interleave": True}) is None


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    before, after = tmp_path / "before.run", tmp_path / "after.run"
    for path, rankings in ((before, [one for one, _ in PAIRS]), (after, [other for _, other in PAIRS])):
        lines = [
            f"q{number} Q0 {item} {place} {10 - place} x"
            for number, ranking in enumerate(rankings)
            for place, item in enumerate(ranking, 1)
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return before, after


def test_the_command_shows_lists_and_weighs_their_clicks(
    ringtrue: Callable[..., Any], runs: tuple[Path, Path], tmp_path: Path
) -> None:
    made = ringtrue("interleave", *runs, "--json")
    lists = made.json["lists"]
    assert (made.code, set(lists)) == (0, {f"q{number}" for number in range(5)})
    table = ringtrue("interleave", *runs, "--query", "q1", "-k", "3")
    assert [line.split()[1] for line in table.out.splitlines()[1:]] == lists["q1"]["items"][:3]
    clicks = tmp_path / "clicks.csv"
    best = {query: list_["items"][int(np.argmax(list_["credits"]))] for query, list_ in lists.items()}
    clicks.write_text("query_id,doc_id\n" + "".join(f"{query},{item}\n" for query, item in best.items()), encoding="utf-8")
    found = ringtrue("interleave", *runs, "--clicks", clicks, "--json")
    assert found.json["outcome"]["treatment_wins"] == 5
    assert found.json["outcome"]["mean_credit"] == 1.0
    assert "treatment preferred" in ringtrue("interleave", *runs, "--clicks", clicks).out


def test_impressions_of_one_query_are_drawn_each_on_its_own(
    ringtrue: Callable[..., Any], runs: tuple[Path, Path], tmp_path: Path
) -> None:
    clicks = tmp_path / "clicks.csv"
    rows = "".join(f"q3,a,i{number}\n" for number in range(200))
    clicks.write_text("query_id,doc_id,impression\n" + rows, encoding="utf-8")
    found = ringtrue("interleave", *runs, "--clicks", clicks, "--json").json["outcome"]
    # 'a' is the control's first result and not in the treatment at all.
    assert (found["control_wins"], found["decision"]) == (200, "accept-control")
    clicks.write_text("query_id,doc_id\nq3,nowhere\n", encoding="utf-8")
    outside = ringtrue("interleave", *runs, "--clicks", clicks, "--json")
    assert (outside.json["clicks_outside"], outside.json["outcome"]["impressions"]) == (1, 0)
    assert "1 clicks are on documents" in outside.err


def test_the_command_weighs_the_log_of_a_feature(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    where = ("--store", tmp_path / "store.sqlite")
    assert ringtrue("test", "create", "rerank", "--measure", "credit", *where).code == 0
    found = ringtrue("interleave", "--feature", "rerank", *where, "--json")
    assert (found.code, found.json["impressions"], found.json["test"]["decision"]) == (0, 0, "continue")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name two runs"),
        (("--query", "q9"), "no query 'q9'"),
        (("--feature", "rerank"), "leave out runs"),
        (("--clicks", "clicks.run"), "is not a table of clicks"),
        (("--method", "balanced"), "team-draft"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(
    ringtrue: Callable[..., Any], runs: tuple[Path, Path], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "clicks.run").write_text("q1 a\n", encoding="utf-8")
    paths = [str(tmp_path / one) if one.endswith(".run") else one for one in arguments]
    ended = ringtrue("interleave", *(runs if arguments else ()), *paths)
    assert ended.code == 2
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1
