"""The review queue — priority, reservations, blindness, undo, states, rules, publication; on a real store."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ringtrue.errors import CannotDecide, InputError, MissingInput
from ringtrue.feedback import derive_judgments, qrels, session_summaries
from ringtrue.golden import worth_judging
from ringtrue.records import Document, GoldenSet, Judgment, Query, Run
from ringtrue.review import ReviewQueue, key_of, pairs_of, require
from ringtrue.review import from_log as harvest
from ringtrue.store import FeedbackEvent, LoggedQuery, ReviewItem, Store, timestamp
from stores import empty as empty
from stores import kind as kind
from stores import url as url

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)


def said_by(queue, name):
    return {row.item_key: row.grade for row in queue.store.ratings(project=queue.project) if row.reviewer == name}


def minutes(count: float) -> datetime:
    return NOW + timedelta(minutes=count)


def pair(n: int, *, priority: float = 0.0, wanted: int = 1) -> ReviewItem:
    return ReviewItem(
        key_of(f"q{n}", "d"), f"q{n}", f"question {n}", "d", timestamp(NOW), text="text", priority=priority, wanted=wanted,
        metadata={"golden": "inn"},
    )  # fmt: skip


@pytest.fixture
def queue(empty) -> Iterator[ReviewQueue]:
    with Store.open(empty("sqlite")) as store:
        yield ReviewQueue(store)


def golden(*judgments: Judgment, queries: int = 12) -> GoldenSet:
    return GoldenSet(
        "inn", "1.0.0", tuple(Query(f"q{n}", f"question {n}") for n in range(queries)), judgments, (Document("d", "x"),)
    )


class TestNext:
    def test_urgent_pairs_come_first_and_like_ones_in_an_order_of_the_reviewers_own(self, queue) -> None:
        queue.add([pair(n, priority=0.5 + n / 1000) for n in range(10)] + [pair(10, priority=1.0)])
        orders = {}
        for name in ("ada", "ben"):
            orders[name] = [item.query_id for item in queue.waiting(name)]
            assert orders[name][0] == "q10"
            assert orders[name] == [item.query_id for item in queue.waiting(name)], "the same order every time"
        assert orders["ada"] != orders["ben"]
        assert sorted(orders["ada"]) == sorted(orders["ben"])
        assert orders["ada"] != [item.query_id for item in queue.waiting("ada", seed=1)]

    def test_a_reservation_keeps_others_away_until_it_expires(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        mine = queue.next("ada", now=NOW, minutes=15)
        assert mine is not None
        assert queue.next("ben", now=minutes(14)) is None
        assert queue.next("ada", now=minutes(14)).item_key == mine.item_key, "who has a pair gets it again"
        assert queue.next("ben", now=minutes(28)) is None, "asking again keeps it longer"
        assert queue.next("ben", now=minutes(30)).item_key == mine.item_key

    def test_a_released_pair_is_free_at_once_and_a_passed_one_does_not_come_back(self, queue) -> None:
        queue.add([pair(1)])
        key = queue.next("ada", now=NOW).item_key
        queue.release(key, "ben")
        assert queue.next("ben", now=NOW) is None, "only who has it can give it back"
        queue.release(key, "ada")
        assert queue.next("ada", now=NOW, passing={key}) is None
        assert queue.next("ben", now=NOW).item_key == key

    def test_nobody_gets_a_pair_twice_and_no_pair_more_people_than_wanted(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        for name in ("ada", "ben"):
            queue.judge(queue.next(name, now=NOW).item_key, 2, reviewer=name, now=NOW)
            assert queue.next(name, now=NOW) is None
        assert queue.next("cy", now=NOW) is None
        assert queue.store.backlog()["approved"] == 1

    def test_two_reviewers_at_once_never_hold_the_same_pair(self, url) -> None:
        with Store.open(url) as store:
            ReviewQueue(store).add([pair(n) for n in range(24)])
        start = threading.Barrier(4)
        held: list[str] = []

        def review(name: str) -> None:
            # A store of its own, as in a process of its own.
            with Store.open(url) as store:
                mine = ReviewQueue(store)
                start.wait()
                for _ in range(6):
                    item = mine.next(name, now=NOW, minutes=60)
                    assert item is not None
                    held.append(item.item_key)
                    mine.judge(item.item_key, 1, reviewer=name, now=NOW)

        threads = [threading.Thread(target=review, args=(f"r{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Counter(held).most_common(1)[0][1] == 1
        with Store.open(url) as store:
            assert store.backlog()["approved"] == 24
            assert len(store.ratings()) == 24

    def test_a_race_for_one_pair_has_one_winner(self, url) -> None:
        with Store.open(url) as store:
            ReviewQueue(store).add([pair(1, wanted=8)])
        start = threading.Barrier(8)
        won: list[str] = []

        def reach(name: str) -> None:
            with Store.open(url) as store:
                start.wait()
                if ReviewQueue(store).next(name, now=NOW) is not None:
                    won.append(name)

        threads = [threading.Thread(target=reach, args=(f"r{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1


class TestJudging:
    def test_a_pair_is_approved_when_all_wanted_have_judged(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        key = key_of("q1", "d")
        assert queue.judge(key, 3, reviewer="ada", now=NOW).state == "pending_review"
        assert queue.judge(key, 2, reviewer="ada", now=minutes(1)).state == "pending_review", "the same person twice is one"
        done = queue.judge(key, 0, reviewer="ben", now=minutes(2))
        assert (done.state, done.reserved_by) == ("approved", None)
        assert said_by(queue, "ada") == {key: 2}

    def test_raw_ratings_are_kept_per_rater(self, queue) -> None:
        queue.add([pair(1, wanted=3)])
        key = key_of("q1", "d")
        for name, grade in (("ada", 3), ("ben", 1), ("cy", 1)):
            queue.judge(key, grade, reviewer=name, now=NOW, note=f"by {name}")
        assert {(row.reviewer, row.grade, row.note) for row in queue.store.ratings()} == {
            ("ada", 3, "by ada"),
            ("ben", 1, "by ben"),
            ("cy", 1, "by cy"),
        }

    @pytest.mark.parametrize("grade", [4, -1, True])
    def test_a_grade_that_is_none_is_refused(self, queue, grade) -> None:
        queue.add([pair(1)])
        with pytest.raises(InputError, match="not a grade"):
            queue.judge(key_of("q1", "d"), grade, reviewer="ada", now=NOW)

    def test_an_unknown_key_and_a_nameless_reviewer_are_refused(self, queue) -> None:
        queue.add([pair(1)])
        with pytest.raises(MissingInput, match=f"did you mean '{key_of('q1', 'd')}'"):
            queue.judge(key_of("q1", "d")[:-1] + "x", 1, reviewer="ada", now=NOW)
        with pytest.raises(InputError, match="name"):
            queue.next("  ", now=NOW)
        with pytest.raises(InputError, match="let 1 or more"):
            queue.add([pair(2, wanted=0)])

    def test_a_rejected_pair_is_judged_by_nobody_any_more(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        key = key_of("q1", "d")
        item = queue.reject(key, reviewer="ada", now=NOW, why="a name in it")
        assert (item.state, item.metadata["why"]) == ("rejected", "a name in it")
        assert queue.next("ben", now=NOW) is None
        with pytest.raises(InputError, match="rejected"):
            queue.judge(key, 2, reviewer="ben", now=NOW)

    def test_adding_a_pair_again_keeps_what_was_said(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        assert queue.add([pair(1, wanted=2), pair(2)]) == 1
        assert said_by(queue, "ada") == {key_of("q1", "d"): 3}


class TestUndo:
    def test_undo_takes_back_the_last_thing_said_and_the_state_with_it(self, queue) -> None:
        queue.add([pair(1), pair(2)])
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        queue.judge(key_of("q2", "d"), 1, reviewer="ada", now=minutes(1))
        queue.judge(key_of("q1", "d"), 0, reviewer="ben", now=minutes(2))
        back = queue.undo("ada")
        assert (back.query_id, back.state) == ("q2", "pending_review")
        assert queue.undo("ada").query_id == "q1"
        assert queue.undo("ada") is None
        assert queue.find(key_of("q1", "d")).state == "approved", "what ben said still stands"

    def test_a_rejection_can_be_taken_back(self, queue) -> None:
        queue.add([pair(1)])
        queue.reject(key_of("q1", "d"), reviewer="ada", now=NOW)
        assert queue.undo("ben") is None
        back = queue.undo("ada")
        assert back.state == "pending_review"
        assert "rejected_by" not in back.metadata

    def test_what_is_published_cannot_be_taken_back(self, queue) -> None:
        queue.add([pair(1)])
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        queue.mark_published([key_of("q1", "d")], queue.publication(golden()).golden, now=NOW)
        assert queue.undo("ada") is None
        with pytest.raises(InputError, match=r"published in inn-v1\.1\.0"):
            queue.judge(key_of("q1", "d"), 0, reviewer="ada", now=NOW)


class TestStanding:
    def test_the_backlog_adds_up(self, queue) -> None:
        queue.add([pair(n) for n in range(6)])
        queue.judge(key_of("q0", "d"), 3, reviewer="ada", now=NOW)
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        queue.reject(key_of("q2", "d"), reviewer="ada", now=NOW)
        queue.mark_published([key_of("q0", "d"), key_of("q3", "d")], queue.publication(golden()).golden, now=NOW)
        backlog = queue.standing().backlog
        assert backlog == {
            "pending_review": 3, "approved": 1, "rejected": 1, "published": 1, "total": 6, "oldest_pending_at": timestamp(NOW),
        }  # fmt: skip

    def test_no_grade_shows_before_all_have_judged(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        standing = queue.standing()
        assert standing.agreement is None
        assert standing.disputes == ()
        assert said_by(queue, "ben") == {}

    def test_agreement_is_kappa_for_two_alpha_for_more_and_never_counts_the_adjudicator(self, queue) -> None:
        queue.add([pair(n, wanted=2) for n in range(4)])
        for n, (one, other) in enumerate([(3, 3), (0, 0), (3, 3), (0, 3)]):
            queue.judge(key_of(f"q{n}", "d"), one, reviewer="ada", now=NOW)
            queue.judge(key_of(f"q{n}", "d"), other, reviewer="ben", now=NOW)
        standing = queue.standing()
        assert (standing.agreement.name, standing.agreement.coefficient) == ("Cohen's kappa", 0.5)
        assert [(rater.name, rater.ratings, dict(rater.grades)) for rater in standing.raters] == [
            ("ada", 4, {"0": 2, "3": 2}),
            ("ben", 4, {"0": 1, "3": 3}),
        ]
        queue.judge(key_of("q3", "d"), 1, reviewer="chair", now=NOW)
        assert "alpha" in queue.standing().agreement.name
        assert queue.standing(adjudicator="chair").agreement.name == "Cohen's kappa"
        assert [dict(dispute.grades) for dispute in queue.standing(adjudicator="chair").disputes] == [{"ada": 0, "ben": 3}]


class TestNames:
    def test_one_person_under_two_spellings_is_one_reviewer(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        again = queue.judge(key_of("q1", "d"), 2, reviewer=" Ada ", now=minutes(1))
        assert again.state == "pending_review"
        assert queue.waiting("ADA") == []
        assert said_by(queue, "ada") == {key_of("q1", "d"): 2}
        assert queue.undo("aDa").state == "pending_review"
        assert queue.counts() == {}

    def test_ratings_of_a_store_with_both_spellings_are_one_voice(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        for name in ("Ada", "ada"):
            queue.store.add_rating(key_of("q1", "d"), name, 3, NOW)
        queue.ask_more(queue.find(key_of("q1", "d")), 3)
        assert queue.counts() == {key_of("q1", "d"): 1}
        assert queue.judge(key_of("q1", "d"), 3, reviewer="ben", now=NOW).state == "pending_review"
        assert [rater.name for rater in queue.standing().raters] == ["ada", "ben"]

    def test_a_dispute_says_key_and_question(self, queue) -> None:
        queue.add([pair(1, wanted=2)])
        for name, grade in (("ada", 0), ("ben", 3)):
            queue.judge(key_of("q1", "d"), grade, reviewer=name, now=NOW)
        (found,) = queue.standing().disputes
        assert (found.key, found.query, dict(found.grades)) == (key_of("q1", "d"), "question 1", {"ada": 0, "ben": 3})


def crash(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def store_states(queue: ReviewQueue) -> set[str]:
    return {item.state for item in queue.items()}


class TestPublishing:
    def test_approved_pairs_become_judgments_of_the_next_version_once(self, queue) -> None:
        queue.add([pair(n, wanted=2) for n in range(3)])
        for n, grades in enumerate([(3, 3), (1, 2)]):
            for name, grade in zip(("ada", "ben"), grades, strict=True):
                queue.judge(key_of(f"q{n}", "d"), grade, reviewer=name, now=NOW)
        made = queue.publication(golden(Judgment("q1", "d", 0, "bootstrap")))
        assert made.golden.version == "1.1.0"
        assert {(j.query_id, j.grade, j.source) for j in made.golden.judgments} == {("q0", 3, "manual"), ("q1", 1, "manual")}
        assert made.golden.judgments[0].metadata == {"annotator": "ada + ben", "rule": "majority"}
        assert queue.mark_published(made.keys, made.golden, now=NOW) == 2
        assert queue.mark_published(made.keys, made.golden, now=NOW) == 0
        with pytest.raises(CannotDecide, match="no pair of 'inn' is approved"):
            queue.publication(made.golden)
        stored = {(j.query_id, j.annotator, j.relevance) for j in queue.store.judgments(source="manual")}
        assert stored == {
            ("q0", "ada", 3), ("q0", "ben", 3), ("q0", "ada + ben", 3),
            ("q1", "ada", 1), ("q1", "ben", 2), ("q1", "ada + ben", 1),
        }  # fmt: skip
        assert {j.metadata["key"] for j in queue.store.judgments(source="manual")} == {"question 0", "question 1"}
        assert [(j.query_id, j.grade) for j in qrels(queue.store.judgments())] == [("q0", 3), ("q1", 1)], "the settled grade"

    @pytest.mark.parametrize(("rule", "grade"), [("majority", 0), ("max", 3), ("adjudicated", 2)])
    def test_qrels_take_the_grade_that_was_published_and_no_single_raters(self, queue, rule, grade) -> None:
        queue.add([pair(1, wanted=2)])
        for name, said in (("ada", 0), ("zoe", 3), *([("chair", 2)] if rule == "adjudicated" else [])):
            queue.judge(key_of("q1", "d"), said, reviewer=name, now=NOW)
        made = queue.publication(golden(), rule=rule, adjudicator="Chair")
        queue.mark_published(made.keys, made.golden, now=NOW, rule=rule, adjudicator="Chair")
        assert [one.grade for one in qrels(queue.store.judgments())] == [grade]

    def test_a_grade_that_the_set_kept_counts_as_published(self, queue) -> None:
        queue.add([pair(1)])
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        made = queue.publication(golden(Judgment("q1", "d", 0, "chair")))
        queue.mark_published(made.keys, made.golden, now=NOW)
        assert [(one.grade, one.metadata["annotator"]) for one in qrels(queue.store.judgments())] == [(0, "chair")]

    def test_a_reviewed_grade_beats_feedback_on_the_same_words_with_and_without_the_log(self, queue) -> None:
        words = "Question, 1?"
        searches = [LoggedQuery(f"eq_{n}", words, "web", timestamp(NOW), session_id=f"s{n}", result_ids=("d",)) for n in (1, 2)]
        clicks = [FeedbackEvent(f"e{n}", "click", f"s{n}", timestamp(NOW), item_id="d", actor="person") for n in (1, 2)]
        queue.store.add_queries(searches)
        queue.store.add_judgments(derive_judgments(searches, clicks, now=timestamp(NOW)).judgments)
        queue.add([pair(1, wanted=2)])
        for name in ("ada", "ben"):
            queue.judge(key_of("q1", "d"), 0, reviewer=name, now=NOW)
        made = queue.publication(golden())
        queue.mark_published(made.keys, made.golden, now=NOW)
        for logged in (queue.store.queries(), []):
            assert [(one.grade, one.source) for one in qrels(queue.store.judgments(), logged)] == [(0, "manual")]
        assert harvest.implied(queue.store).rows == ()
        assert harvest.implied(queue.store).human == 1
        found = session_summaries(searches, [], judgments=queue.store.judgments(source="manual"))
        assert [one.judged for one in found] == [0, 0], "judged, and nothing relevant is known"
        queue.store.prune(now=NOW + timedelta(days=4000), archive=Path(str(queue.store.address.url.database) + "-archive"))
        assert queue.store.queries() == []
        assert [(one.grade, one.source) for one in qrels(queue.store.judgments())] == [(0, "manual")]
        assert (harvest.implied(queue.store).rows, harvest.implied(queue.store).human) == ((), 1)

    def test_sessions_count_reviewed_questions(self, queue) -> None:
        queue.add([pair(1)])
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        made = queue.publication(golden())
        queue.mark_published(made.keys, made.golden, now=NOW)
        search = LoggedQuery("eq_1", "question 1", "web", timestamp(NOW), session_id="s", result_ids=("x", "d"))
        (found,) = session_summaries([search], [], judgments=queue.store.judgments(source="manual"))
        assert (found.judged, found.mean_rr) == (1, 0.5)

    def test_a_crash_while_marking_loses_no_judgment(self, queue, monkeypatch) -> None:
        queue.add([pair(n) for n in (1, 2)])
        for n in (1, 2):
            queue.judge(key_of(f"q{n}", "d"), 3, reviewer="ada", now=NOW)
        made = queue.publication(golden())
        for method in ("add_judgments", "update_review_item"):
            with monkeypatch.context() as broken:
                broken.setattr(queue.store, method, crash)
                with pytest.raises(KeyboardInterrupt):
                    queue.mark_published(made.keys, made.golden, now=NOW)
            assert store_states(queue) == {"approved"}
        assert queue.mark_published(made.keys, made.golden, now=NOW) == 2
        assert {(one.query_id, one.relevance) for one in queue.store.judgments(source="manual")} == {("q1", 3), ("q2", 3)}

    def test_only_what_is_in_the_version_is_published_and_the_rest_is_kept_as_judgments(self, queue) -> None:
        queue.add([pair(1), pair(2)])
        for n, grade in ((1, 3), (2, 0)):
            queue.judge(key_of(f"q{n}", "d"), grade, reviewer="ada", now=NOW)
        made = golden(Judgment("q1", "d", 3, "manual", {"annotator": "ada", "rule": "majority"}))
        assert queue.mark_published([key_of(f"q{n}", "d") for n in (1, 2)], made, now=NOW) == 1
        assert queue.find(key_of("q2", "d")).state == "approved"
        assert {(one.query_id, one.relevance) for one in queue.store.judgments(source="manual")} == {("q1", 3), ("q2", 0)}

    def test_after_a_crash_the_same_pairs_make_the_same_version(self, queue) -> None:
        queue.add([pair(1)])
        queue.judge(key_of("q1", "d"), 3, reviewer="ada", now=NOW)
        first = queue.publication(golden()).golden
        assert queue.publication(golden()).golden == first
        assert queue.publication(first).golden == first, "written, but not yet marked"

    def test_a_persons_judgment_in_the_set_stays(self, queue) -> None:
        queue.add([pair(1), pair(2)])
        for n in (1, 2):
            queue.judge(key_of(f"q{n}", "d"), 3, reviewer="ada", now=NOW)
        made = queue.publication(golden(Judgment("q1", "d", 0, "chair")))
        assert {(j.query_id, j.grade, j.source) for j in made.golden.judgments} == {("q1", 0, "chair"), ("q2", 3, "manual")}
        assert made.kept == (key_of("q1", "d"),)
        assert made.judgments == 1

    def test_pairs_of_another_set_are_left_alone(self, queue) -> None:
        queue.add([replace(pair(1), metadata={"golden": "motel"}), pair(99)])
        for n in (1, 99):
            queue.judge(key_of(f"q{n}", "d"), 3, reviewer="ada", now=NOW)
        with pytest.raises(CannotDecide):
            queue.publication(golden())


AT_ODDS = ((3, 0), (0, 3), (2, 2), (1, 1))
AGREED = ((3, 3), (0, 0), (2, 2), (1, 2))


class TestAgreement:
    def judged(self, queue: ReviewQueue, grades: tuple[tuple[int, ...], ...], names: tuple[str, ...] = ("ada", "ben")) -> None:
        queue.add([pair(n, wanted=len(names)) for n in range(len(grades))])
        for n, said in enumerate(grades):
            for name, grade in zip(names, said, strict=True):
                queue.judge(key_of(f"q{n}", "d"), grade, reviewer=name, now=NOW)

    def settled(self, queue: ReviewQueue, n: int, by: str, grade: int) -> None:
        """As the page about disputes does it: who settles is written down with the pair."""
        facts = {"golden": "inn", "adjudicated_by": by, "adjudicated_at": timestamp(NOW)}
        queue.store.update_review_item(key_of(f"q{n}", "d"), lambda item: replace(item, metadata=facts), project="default")
        queue.judge(key_of(f"q{n}", "d"), grade, reviewer=by, now=NOW)

    def test_the_bound_holds_until_it_is_forced_with_a_reason(self, queue) -> None:
        self.judged(queue, AT_ODDS)
        found = queue.publication(golden()).gate
        assert found.passed is False
        with pytest.raises(CannotDecide, match=r"Cohen's kappa is .* not above 0\.6"):
            require(found)
        with pytest.raises(InputError, match="needs a reason"):
            require(found, force=True, reason="  ")
        assert require(found, force=True, reason=" the guidelines were wrong ") == "the guidelines were wrong"

    def test_good_agreement_and_a_single_reader_pass(self, queue) -> None:
        self.judged(queue, AGREED)
        assert require(queue.gate(golden())) == ""
        assert queue.gate(golden(queries=1)).passed is False, "of one pair with one grade nothing is known"
        assert queue.gate(golden(queries=0)).passed is None

    def test_nobody_leaves_the_count_by_being_called_the_adjudicator(self, queue) -> None:
        self.judged(queue, AT_ODDS)
        assert queue.gate(golden(), rule="adjudicated", adjudicator="ben").passed is False
        queue.judge(key_of("q0", "d"), 3, reviewer="chair", now=NOW)
        apart = queue.gate(golden(), rule="adjudicated", adjudicator="chair").found
        assert (apart.name, apart.raters) == ("Cohen's kappa", 2), "the third one settles and is not a rater"

    def test_who_settled_on_the_page_is_no_rater_and_the_standing_says_what_they_decided(self, queue) -> None:
        self.judged(queue, AGREED)
        before = queue.standing().agreement
        self.settled(queue, 3, "dora", 2)
        after = queue.standing()
        assert after.agreement == before
        assert [(one.query_id, dict(one.grades), one.settled_by, one.settled) for one in after.disputes] == [
            ("q3", {"ada": 1, "ben": 2}, "dora", 2)
        ]
        assert queue.gate(golden()).found.raters == 2

    def test_adjudicated_counts_what_several_people_settled_on_the_page(self, queue) -> None:
        self.judged(queue, (*AGREED, (0, 0), (3, 3), (0, 1)))
        with pytest.raises(InputError, match="name the adjudicator"):
            queue.publication(golden(), rule="adjudicated")
        self.settled(queue, 3, "dora", 3)
        with pytest.raises(CannotDecide, match="1 disputed pairs wait"):
            queue.publication(golden(), rule="adjudicated")
        self.settled(queue, 6, "emil", 2)
        made = queue.publication(golden(), rule="adjudicated")
        grades = {one.query_id: one.grade for one in made.golden.judgments}
        assert (grades["q3"], grades["q6"]) == (3, 2)
        assert queue.mark_published(made.keys, made.golden, now=NOW, rule="adjudicated") == 7


def test_what_would_change_a_comparison_most_is_reviewed_first(queue) -> None:
    runs = [
        Run.from_rankings({"q1": ["a", "d"], "q2": ["d"]}, name="one"),
        Run.from_rankings({"q1": ["d", "a"], "q2": ["d"]}, name="two"),
    ]
    items = pairs_of(golden(), worth_judging(golden(), runs), now=NOW, wanted=2)
    queue.add(items)
    first = queue.next("ada", now=NOW)
    assert first.query_id == "q1", "both rank q2 alike: judging it changes nothing"
    assert first.wanted == 2
    assert {item.priority for item in queue.items() if item.query_id == "q2"} == {0.0}
