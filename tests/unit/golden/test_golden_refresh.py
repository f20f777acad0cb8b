"""From logged searches to the next version of a golden set, gated by the agreement of its reviewers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from ringtrue.errors import CannotDecide, InputError
from ringtrue.golden import (
    AskedQuestion,
    AskedQuestions,
    Rating,
    age_in_days,
    age_warning,
    choose,
    coverage,
    diff,
    propose,
    questions,
    refresh,
)
from ringtrue.records import Document, GoldenSet, Judgment, Query

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
THINGS = (
    "pool",
    "sauna",
    "garage",
    "lift",
    "balcony",
    "kitchen",
    "garden",
    "roof",
    "cellar",
    "lobby",
    "chapel",
    "stable",
    "cinema",
)
DEEDS = ("book", "clean", "heat", "light", "paint", "repair", "visit", "sell", "rent", "photograph", "measure", "empty")


@dataclass(frozen=True)
class Asks:
    """A search as the log keeps it."""

    query: str
    intent: str | None = None
    result_ids: tuple[str, ...] = ("d1", "d2")
    query_id: str = "s"
    session_id: str | None = None
    created_at: str = "2026-11-01T00:00:00Z"


def log(count: int, *, intents: int = 4) -> list[Asks]:
    """Distinct questions, the earlier ones asked more often."""
    texts = [f"who may {deed} our {thing}" for thing in THINGS for deed in DEEDS][:count]
    return [Asks(text, f"intent{n % intents}") for n, text in enumerate(texts) for _ in range(1 + (count - n) // 10)]


def inn(*, provisional: int = 40, confirmed: int = 10) -> GoldenSet:
    queries = tuple(Query(f"q{n:02}", f"old question {n} about matter{n}") for n in range(provisional + confirmed))
    judgments = tuple(
        Judgment(query.query_id, f"d{n % 5}", 3, "bootstrap" if n < provisional else "manual")
        for n, query in enumerate(queries)
    )
    documents = tuple(Document(f"d{n}", f"text {n}", f"Title {n}") for n in range(5))
    return GoldenSet("inn", "1.2.0", queries, judgments, documents, created_at="2026-05-01")


def rated(new, *grades: tuple[int, ...], raters=("ada", "ben")) -> list[Rating]:
    """The new queries, each with two documents, graded in turns by the given pairs of grades."""
    pairs = [(query.query_id, doc) for query in new for doc in ("d1", "d2")]
    return [
        Rating(*pair, rater, grade, "2026-11-15T10:00:00Z")
        for n, pair in enumerate(pairs)
        for rater, grade in zip(raters, grades[n % len(grades)], strict=True)
    ]


AGREED = ((3, 3), (0, 0))


class TestQuestions:
    def test_spellings_and_near_wordings_are_one_question(self) -> None:
        spelled = [Asks("Late check-out?"), Asks("late  check out"), Asks("late check out")]
        long = "please tell me where exactly the guests of this house park"
        found = questions([*spelled, Asks(long + " today"), Asks(long), Asks("pool")])
        assert [(question.text, question.count) for question in found.questions] == [
            ("late check out", 3),
            (long, 2),
            ("pool", 1),
        ]

    def test_the_commonest_wording_intent_and_best_ranks_stand_for_all(self) -> None:
        found = questions(
            [
                Asks("Pool hours?", "find", ("a", "b")),
                Asks("pool hours", "find", ("b", "c", "a")),
                Asks("pool hours", "ask", ("c",)),
            ]
        ).questions
        assert found == (AskedQuestion("pool hours", "find", 3, ("a", "b", "c"), "2026-11-01T00:00:00Z"),)

    def test_what_may_not_be_kept_is_dropped_and_counted(self) -> None:
        found = questions([Asks("bill of ada@example.org"), Asks("pool"), Asks("  ")], screen=lambda text: "@" not in text)
        assert [question.text for question in found.questions] == ["pool"]
        assert (found.searches, found.screened, found.empty) == (3, 1, 1)


class TestChoosing:
    def test_every_intent_gets_a_place_and_traffic_shares_the_rest(self) -> None:
        asked = [AskedQuestion(f"thing{n} deed{n}", "big", 50) for n in range(30)]
        asked += [AskedQuestion(f"item{n} act{n}", "small", 1) for n in range(30)] + [AskedQuestion("lone words", "rare", 1)]
        chosen = choose(asked, 12)
        by_intent = {intent: sum(question.intent == intent for question in chosen) for intent in ("big", "small", "rare")}
        assert sum(by_intent.values()) == 12
        assert by_intent["rare"] == 1
        assert by_intent["big"] > by_intent["small"] >= 1

    def test_questions_that_share_words_wait_for_others(self) -> None:
        asked = [AskedQuestion(f"late checkout fee variant{n}", "x", 10) for n in range(10)]
        asked += [AskedQuestion("sauna towels", "x", 10), AskedQuestion("airport shuttle", "x", 10)]
        assert {"sauna towels", "airport shuttle"} < {question.text for question in choose(asked, 3)}

    def test_what_the_set_asks_already_counts_as_chosen(self) -> None:
        asked = [AskedQuestion("sauna towels rental", "x", 10), AskedQuestion("airport shuttle bus", "x", 9)]
        assert choose(asked, 1, against=["rental of sauna towels today"])[0].text == "airport shuttle bus"

    def test_fewer_are_returned_where_there_are_no_more(self) -> None:
        assert len(choose([AskedQuestion("pool", "x", 1)], 20)) == 1

    def test_the_choice_does_not_hang_on_the_order_of_the_log(self) -> None:
        searches = log(150)
        assert propose(inn(), questions(searches)).new == propose(inn(), questions(searches[::-1])).new


class TestProposal:
    def test_twenty_new_over_all_intents_and_twenty_to_go(self) -> None:
        made = propose(inn(), questions(log(150)))
        assert len({query.query_id for query in made.new}) == 20
        assert {query.metadata["intent"] for query in made.new} == {f"intent{n}" for n in range(4)}
        assert len(made.retire) == 20

    def test_confirmed_and_negative_queries_are_never_named(self) -> None:
        golden = inn(provisional=12)
        golden = replace(golden, queries=(replace(golden.queries[0], negative=True), *golden.queries[1:]))
        golden = replace(golden, queries=(*golden.queries, Query("whole", "vouched for as a whole", {"source": "chair"})))
        assert set(propose(golden, questions(log(150))).retire) == {f"q{n:02}" for n in range(1, 12)}

    def test_those_go_first_that_nobody_asks(self) -> None:
        golden = replace(inn(), queries=(Query("asked", "who may book our pool at night"), *inn().queries))
        assert "asked" not in propose(golden, questions(log(150)), count=20).retire
        assert "asked" in propose(golden, questions(log(150)), count=50).retire

    def test_a_query_that_is_asked_goes_after_one_that_only_shares_words_with_everything(self) -> None:
        asked = questions([Asks("how many keys")] * 3 + [Asks(f"late checkout fee {n}") for n in range(40)])
        golden = replace(inn(), queries=(Query("asked", "How many keys?"), Query("unasked", "late checkout fee waiver")))
        golden = replace(golden, judgments=())
        assert propose(golden, asked, count=2).retire == ("unasked", "asked")

    def test_questions_that_cannot_be_judged_still_count_as_asked(self) -> None:
        asked = questions([Asks("old question 0 about matter0", result_ids=())] * 5 + [Asks("sauna")])
        made = propose(inn(provisional=2), asked, count=1, fit=lambda question: bool(question.shown))
        assert ([query.text for query in made.new], made.retire) == (["sauna"], ("q01",))

    def test_what_left_with_an_earlier_version_comes_back_only_if_somebody_asks_again(self) -> None:
        asked = questions([Asks("towels in the sauna", created_at="2026-11-01T00:00:00Z"), Asks("pool")])
        for left, proposed in (("2026-11-02T00:00:00Z", {"pool"}), ("2026-10-31T00:00:00Z", {"pool", "towels in the sauna"})):
            made = propose(inn(), asked, left={"Towels in the sauna?": left})
            assert {query.text for query in made.new} == proposed

    def test_what_the_set_asks_already_is_not_proposed(self) -> None:
        asked = questions([Asks("Old question 3, about matter3!"), Asks("sauna")])
        assert [query.text for query in propose(inn(), asked).new] == ["sauna"]

    def test_a_count_of_nothing_is_refused(self) -> None:
        with pytest.raises(InputError, match="propose 1 or more"):
            propose(inn(), AskedQuestions((), 0, 0, 0), count=0)


class TestRefreshing:
    def test_replaces_twenty_and_becomes_the_next_version(self) -> None:
        golden = inn()
        made = propose(golden, questions(log(150)))
        found = refresh(golden, made.new, made.retire, rated(made.new, *AGREED))
        assert found.golden is not None
        assert (len(found.added), len(found.retired)) == (20, 20)
        assert len(found.golden.queries) == len(golden.queries)
        assert (found.golden.version, found.golden.created_at) == ("2.0.0", "2026-11-15")
        change = diff(golden, found.golden)
        assert set(change.queries.added) == {query.query_id for query in made.new}
        assert set(change.queries.removed) == set(made.retire)
        judged = next(j for j in found.golden.judgments if j.query_id == made.new[0].query_id)
        assert (judged.source, judged.metadata["annotator"]) == ("manual", "ada + ben")
        assert not found.golden.provisional

    def test_refuses_at_exactly_point_six_and_lists_the_disagreements(self) -> None:
        new = tuple(Query(f"live-{n}", f"question {n}") for n in range(5))
        # 4 of 5 agree where chance alone agrees in half of the cases: 1 - 0.2 / 0.5 = 0.6.
        at_limit = rated(new, (3, 3), (0, 0), (3, 3), (0, 0), (3, 0), (3, 3), (0, 0), (3, 3), (0, 0), (0, 3))
        found = refresh(inn(), new, (), at_limit)
        assert found.agreement.coefficient == pytest.approx(0.6, abs=1e-12)
        assert found.golden is None
        assert "0.600, not above 0.6" in found.refused
        assert [set(dispute.grades.values()) for dispute in found.disputes] == [{0, 3}] * 2
        assert refresh(inn(), new, (), at_limit, minimum=0.59).golden is not None

    @pytest.mark.parametrize("agreeing", range(1, 24))
    def test_no_rounding_lets_a_coefficient_of_the_limit_pass(self, agreeing) -> None:
        # n agreeing pairs of each of two grades and m crossed ones: kappa = (n - m) / (n + m), which is 0.6 at n = 4 m.
        new = tuple(Query(f"live-{n}", f"question {n}") for n in range(5 * agreeing))
        grades = [(3, 3), (0, 0)] * (4 * agreeing) + [(3, 0), (0, 3)] * agreeing
        assert refresh(inn(), new, (), rated(new, *grades)).golden is None

    def test_an_undefined_agreement_refuses(self) -> None:
        new = (Query("live-1", "question"),)
        found = refresh(inn(), new, (), rated(new, (3, 3)))
        assert found.golden is None
        assert "one and the same grade" in found.refused

    def test_three_raters_are_measured_by_alpha(self) -> None:
        new = propose(inn(), questions(log(150))).new
        ratings = rated(new, (3, 3, 3), (0, 0, 0), raters=("ada", "ben", "cy"))
        assert "alpha" in refresh(inn(), new, (), ratings).agreement.name
        apart = rated(new, (3, 0, 1), (0, 3, 2), raters=("ada", "ben", "cy"))
        assert refresh(inn(), new, (), apart).golden is None

    def test_one_reviewer_is_not_enough(self) -> None:
        new = (Query("live-1", "question"),)
        with pytest.raises(CannotDecide, match="two raters"):
            refresh(inn(), new, (), [Rating("live-1", "d1", "ada", 3)])

    def test_one_person_under_two_spellings_is_one_reviewer(self) -> None:
        new = (Query("live-1", "question"), Query("live-2", "another"))
        for raters in (("ada", "Ada"), ("ada b", " ADA\u00a0 B"), ("ada", "\uff41da\u200b")):
            with pytest.raises(CannotDecide, match="two raters"):
                refresh(inn(), new, (), rated(new, *AGREED, raters=raters))

    def test_an_adjudicator_is_known_in_any_spelling(self) -> None:
        new = tuple(Query(f"live-{n}", f"question {n}") for n in range(4))
        ratings = [*rated(new, *AGREED), Rating("live-0", "d1", "Chair", 0, "2026-11-16T00:00:00Z")]
        found = refresh(inn(), new, (), ratings, rule="adjudicated", adjudicator="chair")
        assert found.agreement.raters == 2
        assert found.left_out == ("live-0",)

    def test_confirmed_rows_stay_even_where_they_are_named(self) -> None:
        golden = inn(provisional=5, confirmed=45)
        made = propose(golden, questions(log(150)))
        found = refresh(golden, made.new, [query.query_id for query in golden.queries], rated(made.new, *AGREED))
        assert found.golden is not None
        assert set(found.retired) == {f"q{n:02}" for n in range(5)}
        kept = {(j.query_id, j.doc_id, j.grade, j.source) for j in golden.judgments if j.source == "manual"}
        assert kept <= {(j.query_id, j.doc_id, j.grade, j.source) for j in found.golden.judgments}
        assert len(found.golden.queries) == 45 + 20

    def test_a_second_application_changes_nothing(self) -> None:
        golden = inn()
        made = propose(golden, questions(log(150)))
        ratings = rated(made.new, *AGREED)
        first = refresh(golden, made.new, made.retire, ratings).golden
        assert first is not None
        again = refresh(first, made.new, made.retire, ratings)
        assert again.golden == first
        assert (again.added, again.retired) == ((), ())
        assert refresh(golden, made.new, made.retire, ratings[::-1]).golden == first

    def test_no_more_go_than_come(self) -> None:
        golden = inn()
        made = propose(golden, questions(log(150)))
        hopeless = {query.query_id for query in made.new[:3]}
        ratings = [replace(r, grade=0) if r.query_id in hopeless else r for r in rated(made.new, *AGREED)]
        found = refresh(golden, made.new, made.retire, ratings, rejected={made.new[3].query_id})
        assert set(found.left_out) == hopeless | {made.new[3].query_id}
        assert (len(found.added), len(found.retired)) == (16, 16)

    def test_an_adjudicator_settles_without_being_a_rater(self) -> None:
        new = tuple(Query(f"live-{n}", f"question {n}") for n in range(10))
        ratings = [
            *rated(new, *[(3, 3), (0, 0)] * 9, (3, 1), (0, 0)),
            Rating("live-9", "d1", "chair", 2, "2026-11-16T00:00:00Z"),
        ]
        found = refresh(inn(), new, (), ratings, rule="adjudicated", adjudicator="chair")
        assert found.agreement.raters == 2
        assert found.golden is not None
        assert next(j.grade for j in found.golden.judgments if (j.query_id, j.doc_id) == ("live-9", "d1")) == 2

    def test_the_first_harvest_is_version_one(self) -> None:
        empty = replace(inn(), version="0.0.0", queries=(), judgments=())
        made = propose(empty, questions(log(150)), count=50)
        found = refresh(empty, made.new, made.retire, rated(made.new, *AGREED))
        assert found.golden is not None
        assert (found.golden.version, len(found.golden.queries)) == ("1.0.0", 50)


class TestStanding:
    @pytest.mark.parametrize(("made", "warns"), [("2026-08-18", False), ("2026-08-17", True), (None, True)])
    def test_a_warning_comes_after_ninety_days(self, made, warns) -> None:
        assert (age_warning(replace(inn(), created_at=made), NOW) is not None) == warns

    def test_an_unknown_age_is_none_and_a_wrong_date_an_error(self) -> None:
        assert age_in_days(replace(inn(), created_at=None), NOW) is None
        with pytest.raises(InputError, match="'last spring'"):
            age_in_days(replace(inn(), created_at="last spring"), NOW)

    def test_the_share_of_traffic_counts_searches_not_questions(self) -> None:
        golden = replace(inn(), queries=(Query("q", "late checkout fee"),))
        asked = questions([Asks("late checkout fee?")] * 6 + [Asks("late checkout price")] * 2 + [Asks("sauna")] * 2)
        found = coverage(golden, asked)
        assert (found.searches, found.same) == (10, 0.6)
        assert coverage(golden, AskedQuestions((), 0, 0, 0)).same is None
