"""From signals to judgments, and which judgment wins."""

from __future__ import annotations

import pytest

from made_feedback import at, event, search
from ringtrue.errors import CannotDecide, InputError
from ringtrue.feedback import derive_into, derive_judgments, qrels
from ringtrue.log import QueryLog, record_feedback
from ringtrue.records import Document
from ringtrue.retrieve import Collection, build
from ringtrue.rollout import Interleaved, as_flag
from ringtrue.store import QUERY_LIST, FeedbackEvent, Store, StoredJudgment

NOW = at(days=1)


def derive(searches, events, **options):
    return derive_judgments(searches, events, now=NOW, **options)


def rows(found):
    return [(one.query_id, one.item_id, one.relevance, one.source, one.annotator) for one in found.judgments]


@pytest.mark.parametrize("kind", ["click", "selection", "read_after_search", "reference", "cite"])
def test_selected_is_grade_two(kind) -> None:
    found = derive([search("q1")], [event(kind, "b")])
    assert rows(found) == [("q1", "b", 2, "implicit", "feedback:person")]


def test_useful_is_three_and_not_useful_is_zero() -> None:
    found = derive([search("q1")], [event("validate_useful", "a"), event("validate_not_useful", "c")])
    assert rows(found) == [
        ("q1", "a", 3, "validated", "feedback:person"),
        ("q1", "c", 0, "validated", "feedback:person"),
    ]


def test_shown_and_never_opened_is_unknown_and_no_judgment() -> None:
    found = derive([search("q1")], [event("click", "b"), event("scroll_past", "a", query_id="q1")])
    assert {one.item_id for one in found.judgments} == {"b"}
    assert found.unknown == (("q1", "a"), ("q1", "c"), ("q1", "d"), ("q1", "e"))
    assert found.left == {"scroll_past is not a judgment": 1}


def test_every_derived_judgment_carries_source_and_confidence() -> None:
    searches = [search(f"q{n}", session=f"s{n}") for n in range(9)]
    events = [event("click", "b", session=f"s{n}") for n in range(6)] + [event("click", "c", session="s7")]
    events += [event("validate_useful", "b", session=f"s{n}") for n in range(3)]
    found = {(one.source, one.item_id): one for one in derive(searches, events).judgments}
    assert 0 < found["implicit", "c"].confidence < found["implicit", "b"].confidence < 1
    assert found["validated", "b"].confidence == pytest.approx(4 / 5)
    facts = found["implicit", "b"].metadata
    assert (facts["selected"], facts["shown"], facts["sessions"], facts["retrievers"]) == (6, 9, 6, ["fp1"])


def test_sessions_with_the_same_words_are_one_query() -> None:
    searches = [
        search("q1", "Late checkout FEE?", session="s1"),
        search("q2", "late checkout fee", session="s2", minutes=1),
        search("q3", "pool", session="s3"),
    ]
    events = [
        event("click", "b", session="s1"),
        event("click", "b", session="s2", minutes=2),
        event("click", "b", session="s3"),
    ]
    found = derive(searches, events)
    assert [(one.query_id, one.metadata["selected"]) for one in found.judgments] == [("q1", 2), ("q3", 1)]
    assert found.queries == 2


def test_agents_and_people_never_share_a_row() -> None:
    searches = [
        search("q1", session="s1"),
        search("q2", session="s2", tool_name="mcp"),
        search("q3", session="s3", tool_name="mcp"),
    ]
    events = [
        event("validate_useful", "a", session="s1"),
        event("validate_not_useful", "a", session="s2", actor="agent"),
        event("click", "b", session="s2", actor="agent"),
    ]
    found = derive(searches, events)
    assert rows(found) == [
        ("q1", "a", 0, "validated", "feedback:agent"),
        ("q1", "a", 3, "validated", "feedback:person"),
        ("q1", "b", 2, "implicit", "feedback:agent"),
    ]
    # A session without events belongs to whoever else uses its tool: the agents looked at b twice and took it once.
    assert found.judgments[2].metadata["shown"] == 2
    assert found.by_source == {"implicit by agent": 1, "validated by agent": 1, "validated by person": 1}


def test_a_session_has_one_vote_its_last_and_a_tie_stays_unknown() -> None:
    searches = [search("q1", session="s1"), search("q2", session="s2")]
    changed = [event("validate_useful", "a", session="s1"), event("validate_not_useful", "a", session="s1", minutes=2)]
    assert rows(derive(searches, changed))[0][2] == 0
    found = derive(searches, [*changed, event("validate_useful", "a", session="s2")])
    assert found.judgments == ()
    assert ("q1", "a") in found.unknown
    assert found.left == {"as many said useful as not useful": 2}


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (event("click", "z"), "no search in the window showed the item"),
        (event("click", "b", minutes=99), "no search in the window showed the item"),
        (event("click", "z", query_id="q1"), "its search did not show the item"),
        (event("click", "b", query_id="q9"), "its search is not among these"),
        (event("re_search", None, query_id="q1"), "re_search is not a judgment"),
        (event("dwell", "b", metadata={"seconds": 29}), "dwell under 30 s"),
        (event("dwell", "b"), "dwell under 30 s"),
        (event("reference", "b", metadata={"shared": True}), "reference to a text that several items have"),
    ],
)
def test_what_says_nothing_gives_no_judgment_and_is_counted(told, why) -> None:
    found = derive([search("q1")], [told])
    assert (found.judgments, found.left) == ((), {why: 1})
    assert found.examinations == {}


def test_a_long_dwell_is_a_selection_and_a_verdict_about_a_named_search_needs_no_rank() -> None:
    found = derive(
        [search("q1")], [event("dwell", "b", metadata={"seconds": 30}), event("validate_useful", "z", query_id="q1")]
    )
    assert [(item, grade) for _, item, grade, _, _ in rows(found)] == [("b", 2), ("z", 3)]


def test_the_same_event_twice_counts_once_and_order_does_not_matter() -> None:
    searches = [search("q1", session="s1"), search("q2", session="s2", minutes=1)]
    events = [event("click", "b", session="s1"), event("click", "c", session="s2", minutes=2)]
    assert derive(searches, [*events, *events]) == derive(list(reversed(searches)), list(reversed(events)))


# ── mixed retrievers and flags ──────────────────────────────────────────────────────────────────────────────────────

BEFORE = [search(f"old{n}", session=f"b{n}", retriever="before", result_ids=("x", "b")) for n in range(3)]
AFTER = [search(f"new{n}", session=f"a{n}", retriever="after", minutes=60) for n in range(2)]
MIXED = [event("click", "x", session="b0"), event("click", "b", session="a0", minutes=61), event("click", "b", session="b1")]


def test_trap_23_before_and_after_a_fix_are_not_mixed_in_one_window() -> None:
    with pytest.raises(CannotDecide, match=r"2 retrievers .*'before': 3 searches.*'after': 2 searches.*--retriever.*--mixed"):
        derive([*BEFORE, *AFTER], MIXED)
    # One side alone is fine, and the other side's events are left out aloud.
    found = derive(AFTER, MIXED)
    assert [(one.item_id, one.metadata["retrievers"]) for one in found.judgments] == [("b", ["after"])]
    assert found.left == {"no search in the window showed the item": 2}


def test_trap_23_other_flags_are_another_retriever() -> None:
    flagged = [search("q1", flags={"rerank": True}), search("q2", session="t", flags={"rerank": False})]
    with pytest.raises(CannotDecide, match="flag settings"):
        derive(flagged, [])
    same = [search("q1", flags={"a": 1, "b": 2}), search("q2", session="t", flags={"b": 2, "a": 1})]
    assert len(derive(same, []).variants) == 1


def test_trap_23_separated_each_side_is_judged_by_its_own_searches() -> None:
    found = derive([*BEFORE, *AFTER], MIXED, mixed="separate")
    told = {(one.item_id, one.metadata["retrievers"][0]): one.metadata["shown"] for one in found.judgments}
    assert told == {("x", "before"): 3, ("b", "before"): 3, ("b", "after"): 2}
    assert len({one.annotator for one in found.judgments}) == 2
    assert len(found.examinations) == 2


def test_trap_23_pooled_only_when_asked_for() -> None:
    found = derive([*BEFORE, *AFTER], MIXED, mixed="pool")
    assert {one.item_id: one.metadata["shown"] for one in found.judgments} == {"b": 5, "x": 3}
    assert found.judgments[0].metadata["retrievers"] == ["after", "before"]
    with pytest.raises(InputError, match="'pool'"):
        derive(AFTER, [], mixed="poll")


def test_trap_23_lists_drawn_for_one_interleaving_are_one_setting() -> None:
    shown = [
        search(f"q{n}", session=f"s{n}", flags=as_flag("mixed", Interleaved(items, (-1.0, 1.0))), result_ids=items)
        for n, items in enumerate([("a", "b"), ("b", "a"), ("a", "c")])
    ]
    found = derive(shown, [event("click", "a", session="s0"), event("click", "b", session="s1")])
    assert len(found.variants) == 1
    assert {one.item_id for one in found.judgments} == {"a", "b"}
    with pytest.raises(CannotDecide, match="2 retrievers or flag settings"):
        derive([*shown, search("q9")], [])


# ── which judgment wins ─────────────────────────────────────────────────────────────────────────────────────────────


def judgment(grade, source, annotator="", *, minutes=0, query="q1", item="a", **facts):
    return StoredJudgment(query, item, grade, source, at(minutes), annotator=annotator, **facts)


def test_a_judgment_by_hand_always_wins() -> None:
    derived = [
        judgment(3, "validated", "feedback:person", minutes=9),
        judgment(2, "implicit", "feedback:agent", minutes=9),
        judgment(1, "bootstrapped", "names", minutes=9),
    ]
    by_hand = judgment(0, "manual", "anna", confidence=0.1)
    assert [one.grade for one in qrels([*derived, by_hand], min_confidence=0.5)] == [0]
    assert [one.grade for one in qrels(derived)] == [3]
    assert [one.grade for one in qrels(derived[1:])] == [2]


def test_people_before_agents_and_newer_before_older() -> None:
    said = [judgment(0, "validated", "feedback:agent", minutes=9), judgment(3, "validated", "feedback:person")]
    assert [one.grade for one in qrels(said)] == [3]
    said = [judgment(1, "manual", "anna", minutes=1), judgment(2, "manual", "bert", minutes=2)]
    assert [one.grade for one in qrels(said)] == [2]


def test_a_judgment_by_hand_of_another_search_with_the_same_words_wins_too() -> None:
    searches = [search("q1", "Pool hours?", session="s1"), search("q2", "pool hours", session="s2")]
    derived = derive(searches, [event("click", "b", session="s2")]).judgments
    by_hand = judgment(0, "manual", "anna", query="q2", item="b")
    (only,) = qrels([*derived, by_hand], searches)
    assert (only.grade, only.source, only.doc_id) == (0, "manual", "b")


def test_a_judgment_by_hand_under_an_id_without_words_meets_what_others_say_of_that_id() -> None:
    derived = judgment(2, "implicit", "feedback:person", metadata={"key": "pool hours"})
    assert [one.grade for one in qrels([derived, judgment(0, "manual", "anna")])] == [0]


def test_qrels_leave_out_what_is_too_unsure() -> None:
    rows_ = [judgment(2, "implicit", "feedback:person", confidence=0.2), judgment(3, "validated", item="b", confidence=0.7)]
    assert [(one.doc_id, one.grade) for one in qrels(rows_, min_confidence=0.5)] == [("b", 3)]


# ── in the store ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store.sqlite") as opened:
        opened.add_queries([search("q1", session="s1"), search("q2", "pool", session="s2", minutes=5)])
        opened.add_feedback([event("click", "b", session="s1"), event("validate_useful", "c", session="s2", minutes=6)])
        yield opened


def test_searches_with_unknown_results_neither_mix_retrievers_nor_count(store, tmp_path) -> None:
    store.add_queries([search("q9", "gym", minutes=9, retriever=None, tool_name=QUERY_LIST, result_ids=())])
    alone, newest = derive_into(store, now=NOW), derive_into(store, now=NOW, retriever="newest")
    assert alone.searches == newest.searches == 2
    assert list(alone.variants) == list(newest.variants) == ["fp1"]
    with Store.open(tmp_path / "list.sqlite") as listed:
        listed.add_queries([search("q9", retriever=None, tool_name=QUERY_LIST, result_ids=())])
        with pytest.raises(InputError, match="imported from a plain list"):
            derive_into(listed, now=NOW)


def kept(store):
    return {(one.query_id, one.item_id, one.source, one.annotator): one.relevance for one in store.judgments()}


def test_deriving_again_changes_nothing_and_never_touches_rows_of_others(store) -> None:
    foreign = [
        judgment(1, "manual", "anna", item="b"),
        judgment(1, "implicit", "elsewhere", item="e"),
        judgment(0, "bootstrapped"),
    ]
    store.add_judgments(foreign)
    derive_into(store, now=NOW)
    once = store.judgments()
    derive_into(store, now=NOW)
    assert store.judgments() == once
    assert len(once) == len(foreign) + 2
    assert {(one.query_id, one.item_id, one.source, one.annotator): one.relevance for one in foreign}.items() <= kept(
        store
    ).items()


def test_deriving_again_takes_back_what_is_no_longer_so(store) -> None:
    derive_into(store, now=NOW)
    assert ("q2", "c", "validated", "feedback:person") in kept(store)
    store.add_feedback([event("validate_not_useful", "c", session="s9", minutes=7, query_id="q2")])
    derive_into(store, now=NOW)
    assert set(kept(store)) == {("q1", "b", "implicit", "feedback:person")}


def test_queries_outside_the_window_keep_their_judgments_and_their_ids(store) -> None:
    derive_into(store, now=NOW)
    store.add_queries([search("q3", "Pool!", session="s3", minutes=100)])
    store.add_feedback([event("click", "d", session="s3", minutes=101)])
    derive_into(store, now=NOW, since=at(90))
    assert set(kept(store)) == {("q1", "b", "implicit", "feedback:person"), ("q2", "d", "implicit", "feedback:person")}


def test_a_dry_run_writes_nothing(store) -> None:
    assert len(derive_into(store, now=NOW, dry_run=True).judgments) == 2
    assert kept(store) == {}


def test_trap_23_a_window_or_a_retriever_chooses_one_side(store) -> None:
    store.add_queries([search("q9", session="s9", minutes=60, retriever="fp2")])
    with pytest.raises(CannotDecide):
        derive_into(store, now=NOW)
    assert derive_into(store, now=NOW, retriever="newest", dry_run=True).searches == 1
    assert derive_into(store, now=NOW, retriever="fp1", dry_run=True).searches == 2
    assert derive_into(store, now=NOW, until=at(30), dry_run=True).searches == 2
    with pytest.raises(InputError, match=r"'fp1' or 'fp2'|'fp2' or 'fp1'"):
        derive_into(store, now=NOW, retriever="fp7")
    with pytest.raises(InputError, match="no search since"):
        derive_into(store, now=NOW, since=at(days=3))


# ── on the command line ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def place(store, tmp_path):
    return str(tmp_path / "store.sqlite")


def test_feedback_add_links_and_says_where(ringtrue, place, store) -> None:
    words = ["feedback", "add", "--store", place, "--type", "click", "--session", "s1", "--item", "d", "--actor", "person"]
    said = ringtrue(*words, "--at", at(3), "--id", "mine")
    assert (said.code, said.out.strip()) == (0, "mine added to search q1, rank 4")
    again = ringtrue(*words, "--at", at(3), "--id", "mine", "--json").json["event"]
    assert (again["query_id"], again["rank_in_results"]) == ("q1", 4)
    assert [one.event_id for one in store.feedback(session_id="s1")].count("mine") == 1
    late = ringtrue(*words, "--at", at(300))
    assert "without a search" in late.out
    assert "30 minutes" in late.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--type", "clik", "--session", "s", "--item", "a"], "did you mean 'click'"),
        (["--type", "click", "--session", "s"], "names no item"),
        (["--type", "click", "--session", "s", "--item", "a", "--query", "q77"], "no search 'q77'"),
        (["--type", "click", "--session", "s", "--item", "a", "--at", "noon"], "cannot read the time"),
        (["--type", "click", "--session", "s", "--item", "a", "--actor", "cat"], "there is no actor 'cat'; did you mean"),
    ],
)
def test_feedback_add_names_what_is_wrong(ringtrue, place, words, says) -> None:
    outcome = ringtrue("feedback", "add", "--store", place, *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert says in outcome.err


def test_feedback_derive_says_how_many_by_source_and_what_stays_unknown(ringtrue, place, store) -> None:
    dry = ringtrue("feedback", "derive", "--store", place, "--dry-run")
    assert dry.code == 0
    assert "2 judgments would be written, from 2 searches of 2 different queries" in dry.out
    assert "implicit by person" in dry.out
    assert "unknown: 8 results" in dry.out
    assert kept(store) == {}
    record = ringtrue("feedback", "derive", "--store", place, "--json").json
    assert record["by_source"] == {"implicit by person": 1, "validated by person": 1}
    assert (record["unknown"], record["dry_run"], record["variants"]) == (8, False, {"fp1": 2})
    assert len(kept(store)) == 2


def test_trap_23_feedback_derive_refuses_and_names_the_cure(ringtrue, place, store) -> None:
    store.add_queries([search("q9", session="s9", minutes=60, retriever="fp2")])
    refused = ringtrue("feedback", "derive", "--store", place)
    assert (refused.code, refused.out) == (3, "")
    assert "--mixed separate" in refused.err
    assert ringtrue("feedback", "derive", "--store", place, "--mixed", "separate").code == 0
    assert ringtrue("feedback", "derive", "--store", place, "--mixed", "stir").code == 2


def test_answers_of_two_pipelines_of_the_same_kind_are_not_judged_together(ringtrue, tmp_path) -> None:
    documents = Collection.create(tmp_path / "documents")
    documents.ingest([Document("a", "a pool"), Document("b", "a spa")])
    place = str(tmp_path / "store.sqlite")
    with QueryLog(place, project="default") as log:
        for number, text in enumerate(["rrf(bm25, fts5)", "rrf(bm25, fts5, k=10)"]):
            with log.context(session_id=f"s{number}"):
                log.watched(build(text, documents)).search("pool")
    with Store.open(place) as store:
        asked = store.queries()
        record_feedback(store, [
            FeedbackEvent(f"ef_{one.query_id}", "click", "s", one.created_at, query_id=one.query_id, item_id="a")
            for one in asked
        ])  # fmt: skip
    refused = ringtrue("feedback", "derive", "--store", place)
    assert (refused.code, "2 retrievers" in refused.err, "k=60" in refused.err, "k=10" in refused.err) == (3, True, True, True)
    one = ringtrue("feedback", "derive", "--store", place, "--retriever", "rrf(bm25, fts5, k=10)", "--json")
    assert (one.code, one.json["searches"], sum(one.json["by_source"].values())) == (0, 1, 1)
    parted = ringtrue("feedback", "derive", "--store", place, "--mixed", "separate", "--json")
    assert (parted.code, sum(parted.json["by_source"].values())) == (0, 2)


def test_a_store_that_is_not_there_is_not_made(ringtrue, tmp_path) -> None:
    for words in (["feedback", "derive"], ["sessions"]):
        outcome = ringtrue(*words, "--store", str(tmp_path / "none.sqlite"))
        assert outcome.code == 2
        assert "no store yet" in outcome.err
    assert not (tmp_path / "none.sqlite").exists()


def test_a_click_on_what_another_retriever_showed_last_is_not_taken_for_this_ones(tmp_path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries([search("q1", retriever="old"), search("q2", minutes=2, retriever="new")])
        store.add_feedback([event("click", "b", minutes=3)])
        assert derive_into(store, now=NOW, retriever="old").judgments == ()
        assert [one.query_id for one in derive_into(store, now=NOW, retriever="new").judgments] == ["q2"]
