"""Events and the searches they answer, what is detected, how far items are trusted."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_feedback import at, event, search
from ringtrue.errors import InputError
from ringtrue.feedback import (
    Confidence,
    confidences,
    file_read,
    re_searches,
    references,
    scroll_pasts,
    to_validate,
    validate_batch,
)
from ringtrue.log import check_event, link, record_feedback
from ringtrue.rollout import Interleaved, as_flag
from ringtrue.store import FeedbackEvent, Store

# ── linking ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_newest_search_of_the_session_that_showed_the_item_wins() -> None:
    searches = [
        search("q1", minutes=0),
        search("q2", minutes=2, result_ids=("x", "y", "b")),
        search("q3", minutes=3, result_ids=("x",)),
        search("q4", minutes=4, session="other"),
        search("q5", minutes=6),
    ]
    linked = link(event("click", "b", minutes=5), searches)
    assert (linked.query_id, linked.rank_in_results) == ("q2", 3)
    assert linked.metadata["linked_by"] == "session"


@pytest.mark.parametrize(("minutes", "expected"), [(30, "q1"), (30.001, None), (-0.001, None), (0, "q1")])
def test_the_window_has_both_ends(minutes, expected) -> None:
    linked = link(event("click", "b", minutes=minutes), [search("q1")])
    assert linked.query_id == expected
    assert linked.rank_in_results == (2 if expected else -1)


def test_the_window_can_be_set() -> None:
    click = event("click", "b", minutes=50)
    assert link(click, [search("q1")]).query_id is None
    assert link(click, [search("q1")], window=timedelta(hours=1)).query_id == "q1"


@pytest.mark.parametrize("name", ["prompt_id", "trace_id"])
def test_prompt_and_trace_ids_come_before_the_session(name) -> None:
    searches = [search("q1", session="elsewhere", **{name: "t-1"}), search("q2", minutes=1)]
    linked = link(event("click", "b", minutes=90, metadata={name: "t-1"}), searches)
    assert (linked.query_id, linked.metadata["linked_by"]) == ("q1", name.removesuffix("_id"))


def test_the_prompt_comes_before_the_trace() -> None:
    searches = [search("q1", prompt_id="p"), search("q2", trace_id="t", minutes=0.5)]
    assert link(event("click", metadata={"trace_id": "t", "prompt_id": "p"}), searches).query_id == "q1"


def test_an_id_whose_searches_did_not_show_the_item_falls_back_to_the_session() -> None:
    searches = [search("q1", trace_id="t", result_ids=("x",)), search("q2", minutes=0.5)]
    assert link(event("click", "b", metadata={"trace_id": "t"}), searches).query_id == "q2"


def test_a_search_that_is_named_is_kept_and_the_rank_tells_whether_it_showed_the_item() -> None:
    searches = [search("q1"), search("q2", result_ids=("x",))]
    assert link(event("click", "c", query_id="q1"), searches).rank_in_results == 3
    assert link(event("click", "c", query_id="q2"), searches).rank_in_results == -1
    unknown = event("click", "c", query_id="q9", rank_in_results=4)
    assert link(unknown, searches) == unknown


def test_events_of_another_project_are_not_linked() -> None:
    assert link(event("click", "b", project="mine"), [search("q1", project="theirs")]).query_id is None


def test_an_item_listed_twice_has_its_first_rank() -> None:
    assert link(event("click", "b"), [search("q1", result_ids=("a", "b", "b"))]).rank_in_results == 2


def test_linked_events_carry_retriever_and_flags_of_their_search() -> None:
    linked = link(event("click"), [search("q1", retriever="fp9", flags={"rerank": "on"})])
    assert linked.metadata["retriever"] == "fp9"
    assert linked.metadata["flags"] == {"rerank": "on"}


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (event("clik"), "did you mean 'click'"),
        (event("click", None), "names no item"),
        (event("click", session=" "), "no session"),
        (event("click", actor="robot"), "there is no actor 'robot'; did you mean"),
        (FeedbackEvent("e", "click", "s", "noon", item_id="a"), "cannot read the time"),
    ],
)
def test_bad_events_name_value_and_cure(broken, says) -> None:
    with pytest.raises(InputError, match=says):
        check_event(broken)


def test_recorded_events_are_linked_and_kept_once(tmp_path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries([search("q1"), search("q2", session="far", trace_id="t", minutes=-60)])
        click, traced = event("click"), event("click", "d", minutes=2, metadata={"trace_id": "t"})
        assert [one.query_id for one in record_feedback(store, [click, traced])] == ["q1", "q2"]
        record_feedback(store, [click])
        stored = store.feedback()
        assert [(one.event_id, one.rank_in_results) for one in stored] == [(click.event_id, 2), (traced.event_id, 4)]


def test_importing_the_room_loads_neither_sqlalchemy_nor_numpy() -> None:
    code = (
        "import sys; from ringtrue.feedback import derive_judgments, learn_from_selection, re_searches;"
        "from ringtrue.log import link;"
        "print(*sorted({'sqlalchemy', 'numpy', 'scipy', 'duckdb'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


@pytest.mark.parametrize("seconds", [float("nan"), -4, float("inf"), True, "long"])
def test_a_dwell_says_how_long_it_was(tmp_path, seconds) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        store.add_queries([search("q1")])
        with pytest.raises(InputError, match="write a number from 0"):
            record_feedback(store, [event("dwell", "b", metadata={"seconds": seconds})])
        with pytest.raises(InputError, match="has seconds None; write a number from 0"):
            record_feedback(store, [event("dwell", "b")])
        assert store.feedback() == []
        record_feedback(store, [event("dwell", "b", metadata={"seconds": 0})])


def test_a_linked_event_carries_the_setting_and_not_the_drawn_list() -> None:
    shown = search("q1", flags={"rerank": True, **as_flag("mixed", Interleaved(("a", "b"), (-1.0, 1.0)))})
    assert link(event("click", "b"), [shown]).metadata["flags"] == {"rerank": True, "interleave": {"feature": "mixed"}}


# ── detection ──────────────────────────────────────────────────────────────────────────────────────────────────


def repeats(*searches, **options):
    return [(one.query_id, one.metadata["repeats"]) for one in re_searches(searches, **options)]


def test_token_overlap_of_six_tenths_is_a_re_search() -> None:
    one = search("q1", "one two three four")
    assert repeats(one, search("q2", "one two three five", minutes=1)) == [("q2", "q1")]  # 3 of 5
    assert repeats(one, search("q2", "one two six five", minutes=1)) == []  # 2 of 6


def test_re_search_ignores_case_order_and_marks() -> None:
    assert repeats(search("q1", "Late check-out FEE?"), search("q2", "fee: late check out", minutes=1)) == [("q2", "q1")]


@pytest.mark.parametrize(("minutes", "found"), [(10, True), (10.001, False)])
def test_re_search_within_ten_minutes(minutes, found) -> None:
    assert bool(repeats(search("q1"), search("q2", minutes=minutes))) is found


def test_re_search_only_within_one_session_and_not_without_one() -> None:
    assert repeats(search("q1"), search("q2", minutes=1, session="other")) == []
    assert repeats(search("q1", session=None), search("q2", minutes=1, session=None)) == []


def test_one_question_to_two_tools_is_no_re_search() -> None:
    assert repeats(search("q1"), search("q2", tool_name="other")) == []


def test_re_search_names_the_newest_earlier_one_it_resembles() -> None:
    searches = [search("q1"), search("q2", minutes=1), search("q3", "swimming pool", minutes=2), search("q4", minutes=3)]
    assert repeats(*reversed(searches)) == [("q2", "q1"), ("q4", "q2")]


def test_a_query_of_signs_resembles_itself_only() -> None:
    assert repeats(search("q1", "???"), search("q2", "???", minutes=1), search("q3", "!!", minutes=2)) == [("q2", "q1")]


@pytest.mark.parametrize(("angle", "found"), [(0.8, True), (0.79, False)])
def test_re_search_by_cosine_where_an_encoder_is_given(angle, found) -> None:
    vectors = {"parking": (1.0, 0.0), "garage": (angle, (1 - angle**2) ** 0.5)}
    pair = search("q1", "parking"), search("q2", "garage", minutes=1)
    assert repeats(*pair) == []
    assert bool(repeats(*pair, encode=vectors.__getitem__)) is found


def test_scroll_past_is_what_stood_above_a_read_item_and_was_not_read() -> None:
    reads = [event("read_after_search", item, query_id="q1") for item in ("b", "d")]
    found = scroll_pasts([search("q1")], reads)
    assert [(one.item_id, one.rank_in_results, one.metadata["opened_below"]) for one in found] == [("a", 1, "b"), ("c", 3, "d")]
    assert {one.actor for one in found} == {"person"}


def test_scroll_past_needs_a_read_and_nothing_above_the_first_is_passed() -> None:
    assert scroll_pasts([search("q1")], []) == []
    assert scroll_pasts([search("q1")], [event("click", "a", query_id="q1")]) == []
    assert scroll_pasts([search("q1")], [event("validate_not_useful", "c", query_id="q1")]) == []


def test_what_the_session_read_from_another_search_was_not_passed_over() -> None:
    reads = [event("click", "a", query_id="q0", minutes=0), event("click", "c", query_id="q1", minutes=3)]
    searches = [search("q0", minutes=-1), search("q1", minutes=2)]
    assert [one.item_id for one in scroll_pasts(searches, reads)] == ["b"]
    elsewhere = [event("click", "a", session="other"), event("click", "c", query_id="q1", minutes=3)]
    assert [one.item_id for one in scroll_pasts(searches, elsewhere)] == ["a", "b"]


def test_finding_twice_gives_the_same_events() -> None:
    reads = [event("click", "c", query_id="q1")]
    once = scroll_pasts([search("q1")], reads)
    again = scroll_pasts([search("q1")], [*reads, event("click", "c", query_id="q1", minutes=9)])
    assert [one.event_id for one in once] == [one.event_id for one in again]


TEXT = "Guests who leave after eleven pay half a night, and those who leave after six pay a whole one."


def told(answer, items, **options):
    return references(answer, items, session_id="s", at=at(1), **options)


def test_reference_is_eight_words_in_a_row() -> None:
    eight = "It says: guests who leave after eleven, PAY half a."
    (found,) = told(eight, {"b": TEXT}, searches=[search("q1")])
    assert (found.item_id, found.query_id, found.rank_in_results, found.metadata["words"]) == ("b", "q1", 2, 8)
    assert told("It says: guests who leave after eleven, pay half.", {"b": TEXT}) == []


def test_reference_reports_the_longest_span() -> None:
    (found,) = told(f"{TEXT} Indeed.", {"b": TEXT})
    assert found.metadata["words"] == 19


def test_reference_needs_a_run_not_the_same_words() -> None:
    assert told(" ".join(reversed(TEXT.split())), {"b": TEXT}) == []
    assert told("short text", {"b": "short text"}) == []
    assert told("", {"b": ""}) == []


def test_a_span_that_several_items_have_is_marked() -> None:
    footer = " All rates include breakfast, tax and the use of the pool."
    items = {"a": "First." + footer, "b": TEXT + footer}
    found = {one.item_id: one.metadata.get("shared", False) for one in told(footer + " " + TEXT, items)}
    assert found == {"a": True, "b": False}


@pytest.mark.parametrize(
    "path", ["docs/late.md", "./docs//late.md", "docs/old/../late.md", "/srv/site/docs/late.md", "docs\\late.md"]
)
def test_a_read_maps_paths_to_items(path) -> None:
    found = file_read(path, {"docs/late.md": "b"}, session_id="s", at=at(1), root="/srv/site", searches=[search("q1")])
    assert found is not None
    assert (found.event_type, found.item_id, found.query_id, found.rank_in_results) == ("read_after_search", "b", "q1", 2)


@pytest.mark.parametrize("path", ["docs/Late.md", "late.md", "docs/late.md.bak", "/docs/late.md", ""])
def test_another_file_is_no_read(path) -> None:
    assert file_read(path, {"docs/late.md": "b"}, session_id="s", at=at(1), root="/srv/site") is None


def test_a_file_that_no_search_showed_was_read_but_not_found() -> None:
    found = file_read("z.md", {"z.md": "z"}, session_id="s", at=at(1), searches=[search("q1")])
    assert found is not None
    assert (found.query_id, found.rank_in_results) == (None, -1)


# ── confidence ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_useful_adds_a_tenth_and_not_useful_takes_a_twentieth() -> None:
    assert Confidence(0.5).validated(True).value == 0.6
    assert Confidence(0.5).validated(False).value == 0.45


@given(st.floats(0, 1), st.lists(st.booleans(), max_size=40))
def test_confidence_stays_within_bounds_and_counts_all(start, said) -> None:
    confidence = Confidence(start)
    for useful in said:
        confidence = confidence.validated(useful)
    assert 0 <= confidence.value <= 1
    assert (confidence.useful, confidence.validations) == (sum(said), len(said))


def test_promotion_takes_nine_tenths_and_five_validations() -> None:
    four = [event("validate_useful", "a", minutes=minute, session=f"s{minute}") for minute in range(4)]
    assert confidences(four)["a"].value == 0.9
    assert not confidences(four)["a"].promotion_eligible
    five = [*four, event("validate_useful", "a", minutes=5, session="s5")]
    assert confidences(five)["a"].promotion_eligible
    against = [event("validate_not_useful", "a", minutes=m, session=f"s{m}") for m in (6, 7, 8)]
    assert not confidences([*five, *against])["a"].promotion_eligible


def test_one_session_has_one_vote_on_an_item_its_last() -> None:
    insisting = [event("validate_useful", "a", minutes=minute, actor="agent") for minute in range(6)]
    assert confidences(insisting)["a"] == Confidence(0.6, 1, 0)
    assert confidences([*insisting, event("validate_not_useful", "a", minutes=9)])["a"] == Confidence(0.45, 0, 1)
    assert set(confidences([*insisting, event("validate_useful", "b")])) == {"a", "b"}


def test_events_count_once_in_the_order_of_their_times() -> None:
    # 1.0 is the ceiling: useful then not useful ends lower than not useful then useful.
    up, down = event("validate_useful", "a", minutes=1), event("validate_not_useful", "a", minutes=2, session="t")
    assert confidences([down, up, up, event("click", "a")], start={"a": 1.0})["a"] == Confidence(0.95, 1, 1)
    with pytest.raises(InputError, match="from 0 to 1"):
        confidences([], start={"a": 1.5})


def test_the_end_of_a_task_validates_all_that_was_opened() -> None:
    events = [
        event("click", "c", minutes=1),
        event("read_after_search", "a", minutes=2),
        event("validate_useful", "c", minutes=3),
    ]
    events += [event("click", "e", session="other"), event("scroll_past", "b", minutes=2)]
    assert to_validate(events, "s") == ["a"]
    batch = validate_batch(
        {"a": True, "c": False}, session_id="s", at=at(5), searches=[search("q1")], task_id="t1", actor="agent"
    )
    assert [(one.event_type, one.item_id, one.query_id, one.rank_in_results) for one in batch] == [
        ("validate_useful", "a", "q1", 1),
        ("validate_not_useful", "c", "q1", 3),
    ]
    later = validate_batch({"a": True, "c": False}, session_id="s", at=at(6), task_id="t1")
    assert [one.event_id for one in later] == [one.event_id for one in batch]
    assert to_validate([*events, *batch], "s") == []
