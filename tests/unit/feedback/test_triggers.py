"""Learning from selections, and everything that holds it back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from made_feedback import NOON, at, event, search
from ringtrue.errors import InputError
from ringtrue.feedback import (
    LearnedTriggers,
    Rehearsal,
    learn_from_log,
    learn_from_selection,
    learn_into,
    learned_phrases,
    rehearse,
    roll_back_triggers,
    serving_phrases,
    standing_phrases,
)
from ringtrue.feedback.triggers import phrases_of
from ringtrue.store import Store, timestamp

OLD = at(days=-10)


def days(number: float):
    return NOON + timedelta(days=number)


def selection(item="d", *, rank=4, name="e1", kind="click", query_id="q1"):
    return event(kind, item, event_id=name, query_id=query_id, rank_in_results=rank)


def learn(text="late checkout fee", log=(), *, now=NOON, created=OLD, picked=None, **options):
    return learn_from_selection(
        picked or selection(), search("q1", text), log, item_created_at=created, now=now, **options
    )  # fmt: skip


def phrases(lesson):
    return [entry.detail["phrase"] for entry in lesson.entries]


def test_runs_of_telling_words_become_phrases() -> None:
    assert phrases(learn("What is the late checkout fee for the garden suite?")) == ["late checkout fee", "garden suite"]
    assert phrases_of("pool") == ["pool"]
    assert phrases_of("spa") == []
    assert phrases_of("404 2024") == []


def test_denied_words_part_phrases() -> None:
    assert phrases_of("please show error page") == []
    assert phrases_of("late error charges") == ["late", "charges"]


def test_at_most_three_a_selection() -> None:
    text = "refund policy and late checkout or garden suite with breakfast buffet"
    assert phrases(learn(text)) == ["refund policy", "late checkout", "garden suite"]


def test_at_most_eight_an_item() -> None:
    log = []
    for number in range(12):
        log += learn(f"topic{number} detail{number}", log, picked=selection(name=f"e{number}")).entries
    assert len(learned_phrases(log)) == 8
    assert learn("something else entirely", log, picked=selection(name="e99")).refused == "the item has 8 phrases already"
    # Another item has room of its own, and what expired makes room again.
    assert learn("other words", log, picked=selection("e", rank=5, name="e99")).entries
    assert learn("other words", log, picked=selection(name="e99"), now=days(31)).entries


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"picked": selection("c", rank=3)}, "rank 3 already"),
        ({"picked": selection("a", rank=1)}, "rank 1 already"),
        ({"picked": selection("z", rank=-1)}, "no search showed"),
        ({"picked": selection(kind="scroll_past")}, "scroll_past is not a selection"),
        ({"created": at(days=-2.9)}, "younger than 72 hours"),
        ({"created": None}, "age of the item is unknown"),
        ({"text": "what is it"}, "no word of the query"),
        ({"own_phrases": ["Late check-out fee", "late checkout fee"]}, "no word of the query"),
    ],
)
def test_every_safeguard_says_why(options, why) -> None:
    lesson = learn(**options)
    assert lesson.entries == ()
    assert why in lesson.refused


def test_the_item_may_be_exactly_72_hours_old_and_rank_four_is_enough() -> None:
    assert learn(created=at(days=-3)).entries
    assert learn(picked=selection(rank=4)).entries


def test_an_event_of_another_search_is_an_error() -> None:
    with pytest.raises(InputError, match="not linked"):
        learn(picked=selection(query_id="q2"))


def test_shadow_then_serving_then_expired() -> None:
    log = learn().entries
    (phrase,) = learned_phrases(log)
    assert [phrase.state(days(day)) for day in (0, 6.99, 7, 29.99, 30)] == ["shadow", "shadow", "serving", "serving", "expired"]
    assert serving_phrases(log, now=days(6)) == {}
    assert serving_phrases(log, now=days(8)) == {"d": ("late checkout fee",)}
    assert serving_phrases(log, now=days(30)) == {}


def test_a_new_selection_confirms_and_reading_an_old_one_again_does_not() -> None:
    log = list(learn().entries)
    assert learn(log=log, now=days(20)).refused == "this selection was learned from before"
    again = learn(log=log, now=days(20), picked=selection(name="e2"))
    assert [entry.what for entry in again.entries] == ["trigger confirmed"]
    log += again.entries
    assert len(learned_phrases(log)) == 1
    assert serving_phrases(log, now=days(49)) == {"d": ("late checkout fee",)}
    assert serving_phrases(log, now=days(50)) == {}
    # Once expired it starts over, with a shadow period.
    log += learn(log=log, now=days(60), picked=selection(name="e3")).entries
    assert serving_phrases(log, now=days(61)) == {}
    assert serving_phrases(log, now=days(67)) == {"d": ("late checkout fee",)}


def test_a_phrase_that_misled_in_its_shadow_never_serves() -> None:
    log = learn().entries
    known = learned_phrases(log)
    searches = [search(f"n{n}", "is there a late checkout fee", minutes=n, session=f"s{n}") for n in range(1, 7)]
    wrong = [event("click", "a", session=f"s{n}", query_id=f"n{n}", minutes=n) for n in range(1, 6)]
    bad = rehearse(known, [search("q1"), *searches], wrong)
    assert bad == {("d", "late checkout fee"): Rehearsal(5, 0)}  # the sixth search chose nothing and says nothing
    assert serving_phrases(log, now=days(8), rehearsals=bad) == {}
    good = rehearse(known, searches, [*wrong, event("click", "d", session="s6", query_id="n6", minutes=6)])
    assert good["d", "late checkout fee"] == Rehearsal(6, 1)
    assert serving_phrases(log, now=days(8), rehearsals=good) == {"d": ("late checkout fee",)}


def test_a_phrase_is_not_rehearsed_on_the_search_that_taught_it() -> None:
    known = learned_phrases(learn().entries)
    picked = [event("click", "d", query_id="q1")]
    assert rehearse(known, [search("q1", minutes=1)], picked)["d", "late checkout fee"] == Rehearsal(0, 0)


def test_every_change_is_in_the_audit_log_with_its_reason() -> None:
    (entry,) = learn().entries
    assert (entry.what, entry.subject, entry.at) == ("trigger learned", "d", at(0))
    assert entry.detail == {"phrase": "late checkout fee", "query_id": "q1", "event_id": "e1", "rank": 4, "actor": "person"}


def test_rolling_back_one_item_or_all_since_a_moment_and_for_good() -> None:
    log = list(learn().entries)
    log += learn("garden suite", log, picked=selection("e", rank=5, name="e2"), now=days(1)).entries
    one = roll_back_triggers(log, now=days(2), who="anna", why="misleading", item_id="d")
    assert [(entry.subject, entry.detail["phrases"], entry.detail["why"]) for entry in one] == [
        ("d", ["late checkout fee"], "misleading")
    ]
    assert [phrase.item_id for phrase in learned_phrases([*log, *one])] == ["e"]
    assert [entry.subject for entry in roll_back_triggers(log, now=days(2), who="anna", why="", since=days(1))] == ["e"]
    assert roll_back_triggers([*log, *one], now=days(3), who="anna", why="", item_id="d") == []
    relearn = learn(log=[*log, *one], now=days(4), picked=selection(name="e3"))
    assert relearn.entries == ()


def test_learned_phrases_are_a_retriever_apart_from_the_index() -> None:
    found = LearnedTriggers({"d": ("late checkout fee", "fee"), "e": ("checkout",), "f": ("check",)})
    hits = found.search("Late check-out? late checkout FEE!")
    assert [(hit.doc_id, hit.score) for hit in hits] == [("d", 3.0), ("f", 1.0), ("e", 1.0)]
    assert found.search("fees") == []
    assert len(found.search("late checkout fee", k=1)) == 1


def test_learning_into_the_store_is_idempotent(tmp_path) -> None:
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries([search("q1")])
        events = [selection(), selection("c", rank=3, name="e2"), selection("e", rank=5, name="e3", query_id="gone")]
        first = learn_into(store, events, created_at=lambda _: OLD, now=NOON)
        assert [bool(lesson.entries) for _, lesson in first] == [True, False, False]
        again = learn_into(store, events, created_at=lambda _: OLD, now=days(1))
        assert not any(lesson.entries for _, lesson in again)
        assert serving_phrases(store.audit(), now=days(8)) == {"d": ("late checkout fee",)}
        for entry in roll_back_triggers(store.audit(), now=days(8), who="anna", why="test"):
            store.add_audit(entry)
        assert serving_phrases(store.audit(), now=days(8)) == {}


def logged(place, *, now=NOON):
    """A log in which d was shown ten days ago, and was chosen at rank 4 today and yesterday."""
    with Store.open(place) as store:
        old = replace(search("q0", "anything"), created_at=timestamp(now - timedelta(days=10)))
        mine = [
            replace(search(f"q{n}", text, session=f"s{n}"), created_at=timestamp(now - timedelta(hours=n)))
            for n, text in ((1, "late checkout fee"), (30, "garden suite"))
        ]
        store.add_queries([old, *mine])
        for n in (1, 30):
            when = timestamp(now - timedelta(hours=n - 0.1))
            store.add_feedback([replace(event("click", "d", session=f"s{n}"), event_id=f"e{n}", created_at=when)])


def test_learning_from_the_log_links_events_and_takes_ages_from_it(tmp_path) -> None:
    logged(tmp_path / "s.sqlite")
    with Store.open(tmp_path / "s.sqlite") as store:
        dry = learn_from_log(store, now=NOON, dry_run=True)
        assert [phrases(lesson) for _, lesson in dry] == [["garden suite"], ["late checkout fee"]]
        assert store.audit() == []
        young = learn_from_log(store, now=NOON, created_at=lambda _: at(days=-1), dry_run=True)
        assert {lesson.refused for _, lesson in young} == {"the item is younger than 72 hours"}
        known = learn_from_log(store, now=NOON, own_phrases=lambda _: ["Garden-Suite"], dry_run=True)
        assert [phrases(lesson) for _, lesson in known] == [[], ["late checkout fee"]]
        assert len(learn_from_log(store, now=NOON, since=at(minutes=-120))) == 1
        (one,) = standing_phrases(store, now=NOON)
        assert (one.phrase.phrase, one.state, one.rehearsal) == ("late checkout fee", "shadow", Rehearsal())
        assert standing_phrases(store, now=days(8))[0].state == "serving"


def test_learn_phrases_and_rollback_on_the_command_line(ringtrue, tmp_path) -> None:
    place = ["--store", tmp_path / "s.sqlite"]
    assert ringtrue("feedback", "learn", *place).code == 2
    logged(tmp_path / "s.sqlite", now=datetime.now(UTC))
    dry = ringtrue("feedback", "learn", "--dry-run", *place)
    assert "2 phrases would be learned or confirmed, from 2 selections" in dry.out
    assert ringtrue("feedback", "phrases", "--json", *place).json == {"phrases": []}
    found = ringtrue("feedback", "learn", "--since", "2h", "--json", *place).json
    assert ([entry["detail"]["phrase"] for entry in found["entries"]], found["selections"]) == (["late checkout fee"], 1)
    ringtrue("feedback", "learn", *place)
    again = ringtrue("feedback", "learn", *place)
    assert "0 phrases learned or confirmed, from 2 selections" in again.out
    assert "2 selections taught nothing: this selection was learned from before" in again.err
    shown = ringtrue("feedback", "phrases", "--json", *place).json["phrases"]
    assert [(one["item_id"], one["phrase"], one["state"]) for one in shown] == [
        ("d", "garden suite", "shadow"),
        ("d", "late checkout fee", "shadow"),
    ]
    assert ringtrue("feedback", "rollback", "--why", "x", *place).code == 2
    assert ringtrue("feedback", "rollback", "--why", "x", "--all", "--item", "d", *place).code == 2
    back = ["feedback", "rollback", "--phrase", "garden suite", "--why", "misleading", "--who", "ada", *place]
    assert "1 phrase of 1 item would be withdrawn" in ringtrue(*back, "--dry-run").out
    assert ringtrue(*back).out == "1 phrase of 1 item withdrawn\n  d: garden suite (misleading)\n"
    assert "garden suite" not in ringtrue("feedback", "phrases", *place).out
    told = ringtrue("feedback", "phrases", "--audit", "--json", *place).json["entries"]
    assert [(entry["what"], entry["who"]) for entry in told] == [
        ("trigger rolled back", "ada"),
        ("trigger learned", "feedback"),
        ("trigger learned", "feedback"),
    ]
    assert "garden suite (misleading)" in ringtrue("feedback", "phrases", "--audit", *place).out


def test_documents_tell_their_age_and_their_own_triggers(ringtrue, tmp_path) -> None:
    from ringtrue.records import Document
    from ringtrue.retrieve import Collection

    now = datetime.now(UTC)
    logged(tmp_path / "s.sqlite", now=now)
    folder = tmp_path / "index"
    place = ["--store", tmp_path / "s.sqlite", "--in", folder, "--dry-run", "--json"]
    Collection.create(folder).ingest([Document("d", "a text", "", {"created_at": now.date().isoformat()})])
    assert ringtrue("feedback", "learn", *place).json["refused"] == {"the item is younger than 72 hours": 2}
    facts = {"created_at": "2020-01-01", "triggers": ["garden suite"]}
    Collection(folder).ingest([Document("d", "a text", "", facts)])
    entries = ringtrue("feedback", "learn", *place).json["entries"]
    assert [entry["detail"]["phrase"] for entry in entries] == ["late checkout fee"]
