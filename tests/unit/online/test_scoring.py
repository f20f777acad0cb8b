"""S-1, S-2: what a sequential test is told of judged questions, each once, wherever and however often it was asked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ringtrue.online.abtest import create_test
from ringtrue.online.derive import question_id
from ringtrue.online.on_golden import record_on_golden
from ringtrue.online.scoring import feed_for_test, feed_judged
from ringtrue.records import GoldenSet, Judgment, Query
from ringtrue.run import evaluate
from ringtrue.store import LoggedQuery, ShadowRun, Store, StoredJudgment

WHEN = "2026-03-01T00:00:00+00:00"
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def live(store: Store, *texts: str) -> None:
    """Searches that production and the candidate answered."""
    store.add_queries([LoggedQuery(f"eq_{n}", text, "web", WHEN) for n, text in enumerate(texts)])
    store.add_shadow_runs(
        [ShadowRun(f"eq_{n}", "new", WHEN, ("a", "b"), ("b", "a"), set_overlap=1.0) for n in range(len(texts))]
    )


def test_s1_a_question_is_told_once_whichever_of_its_searches_was_judged(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        live(store, "Late checkout?", "late  checkout", "garage")
        # Derived under the id of the oldest search with these words, which no shadow run answered.
        said = {"key": "late checkout", "query": "Late checkout?"}
        store.add_judgments([StoredJudgment("eq_oldest", "b", 2, "implicit", WHEN, metadata=said)])
        fed: list[str] = []
        assert feed_judged(store, "new", lambda name, *_: fed.append(name)) == 1
        assert fed == [question_id("late checkout")]
        assert "checkout" not in fed[0], "what was counted outlives the log; it does not hold anybody's words"


def test_s2_a_question_counts_once_on_the_golden_set_and_in_live_searches(tmp_path: Path) -> None:
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
