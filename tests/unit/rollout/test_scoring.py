"""What a sequential test is told of judged questions, each once, wherever and however often it was asked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ringtrue.feedback import question_id
from ringtrue.records import GoldenSet, Judgment, Query
from ringtrue.rollout import Feed, Scored
from ringtrue.rollout.abtest import create_test
from ringtrue.rollout.scoring import drawn_order, feed_for_test, feed_judged, judged_shadow_of, record_on_golden
from ringtrue.run import evaluate
from ringtrue.store import Flag, LoggedQuery, ShadowRun, Store, StoredJudgment

WHEN = "2026-03-01T00:00:00+00:00"
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def live(store: Store, *texts: str) -> None:
    """Searches that production and the candidate answered."""
    store.add_queries([LoggedQuery(f"eq_{n}", text, "web", WHEN) for n, text in enumerate(texts)])
    store.add_shadow_runs(
        [ShadowRun(f"eq_{n}", WHEN, ("a", "b"), ("b", "a"), feature_id="new", set_overlap=1.0) for n in range(len(texts))]
    )


def test_a_question_is_told_once_whichever_of_its_searches_was_judged(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        live(store, "Late checkout?", "late  checkout", "garage")
        # Derived under the id of the oldest search with these words, which no shadow run answered.
        said = {"key": "late checkout", "query": "Late checkout?"}
        store.add_judgments([StoredJudgment("eq_oldest", "b", 2, "implicit", WHEN, metadata=said)])
        fed: list[str] = []
        assert feed_judged(store, "new", lambda name, *_: fed.append(name)) == 1
        assert fed == [question_id("late checkout")]
        summary = judged_shadow_of(store, Flag("new"))
        assert (summary.judged, summary.mrr_delta) == (2, 0.5), "both searches with these words"
        assert "checkout" not in fed[0], "what was counted outlives the log; it does not hold anybody's words"


def test_a_question_counts_once_on_the_golden_set_and_in_live_searches(tmp_path: Path) -> None:
    queries = (Query("live-1", "late checkout"), Query("live-2", "pool"))
    golden = GoldenSet("g", "1.0.0", queries, (Judgment("live-1", "b", 3), Judgment("live-2", "b", 3)))
    control, treatment = (
        evaluate(answer, golden, measures=("RR@10", "nDCG@10"), cache=False, allow=("ids",))
        for answer in (lambda text, k: ["a", "b"], lambda text, k: ["b", "a"])
    )
    with Store.open(tmp_path / "s.sqlite") as store:
        create_test(store, "new", now=WHEN)
        feed = feed_for_test(store, "new", clock=lambda: NOW)
        record_on_golden(store, "new", control, treatment, now=NOW, feed=feed)
        assert store.test("new").sample_count == 2
        live(store, "Late checkout?", "late  checkout", "garage")
        store.add_judgments([StoredJudgment("eq_2", "b", 2, "manual", WHEN)])
        assert feed_judged(store, "new", feed, golden=golden) == 2
        assert store.test("new").sample_count == 3, "two golden questions and the garage"


def test_the_order_of_a_golden_file_does_not_decide(tmp_path: Path) -> None:
    """Forty questions that the candidate wins and then forty that it loses: in file order that was a gain after thirty."""
    queries = tuple(Query(f"q{n:02d}", f"question {n}") for n in range(80))
    judgments = tuple(Judgment(f"q{n:02d}", "b" if n < 40 else "a", 3) for n in range(80))
    told: list[list[str]] = []
    for asked in (queries, queries[::-1]):
        golden = GoldenSet("g", "1.0.0", asked, judgments)
        control, treatment = (
            evaluate(answer, golden, measures=("RR@10", "nDCG@10"), cache=False, allow=("ids", "depth"))
            for answer in (lambda text, k: ["a", "b"], lambda text, k: ["b", "a"])
        )
        with Store.open(tmp_path / f"{len(told)}.sqlite") as store:
            create_test(store, "new", now=WHEN)
            feed = feed_for_test(store, "new", clock=lambda: NOW)
            order: list[str] = []

            def hear(name: str, *sides: Scored, feed: Feed = feed, order: list[str] = order) -> None:
                order.append(name)
                feed(name, *sides)

            record_on_golden(store, "new", control, treatment, now=NOW, feed=hear)
            told.append(order)
            state = store.test("new")
            assert state is not None
            assert (state.sample_count, state.status) == (80, "running"), "the difference is exactly 0"
    assert told[0] == told[1], "a file turned round tells the same"
    wins = {question_id(f"question {n}") for n in range(40)}
    assert 10 <= sum(name in wins for name in told[0][:40]) <= 30


def test_judged_searches_are_told_in_a_drawn_order_too(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        live(store, *(f"question {n}" for n in range(20)))
        store.add_judgments([StoredJudgment(f"eq_{n}", "b", 2, "manual", WHEN) for n in range(20)])
        fed: list[str] = []
        assert feed_judged(store, "new", lambda name, *_: fed.append(name)) == 20
    assert sorted(fed) == sorted(question_id(f"question {n}") for n in range(20))
    assert fed == drawn_order("new", fed) != [question_id(f"question {n}") for n in range(20)]
