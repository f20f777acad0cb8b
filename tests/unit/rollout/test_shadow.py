"""Production's answer is returned untouched; what the candidate did is stored, whatever it did."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import candidates
from ringtrue.errors import InputError, MissingInput
from ringtrue.feedback import question_id
from ringtrue.log.query_log import QueryLog
from ringtrue.records import GoldenSet, Hit, Judgment, Query
from ringtrue.rollout.abtest import create_test
from ringtrue.rollout.candidate import Described
from ringtrue.rollout.evidence import missing_of, percentile, shadow_of, summarise
from ringtrue.rollout.flags import bucket
from ringtrue.rollout.scoring import (
    Scored,
    feed_for_test,
    feed_judged,
    golden_scorer,
    grades_by_words,
    has_whole_lists,
    scorer,
)
from ringtrue.rollout.shadow import MOST_GONE, Shadow
from ringtrue.store import AuditEntry, Flag, LoggedQuery, ShadowRun, Store, StoredJudgment

ANSWER = [Hit("a", 3.0), Hit("b", 2.0), Hit("c", 1.0)]
WHEN = "2026-03-01T00:00:00+00:00"


def until(holds: Callable[[], object]) -> None:
    """Wait for a condition, longer than a busy machine can take."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


class Rows:
    """A store that keeps rows in a list."""

    def __init__(self) -> None:
        self.rows: list[ShadowRun] = []
        self.flags: dict[str, Flag] = {}
        self.trail: list[AuditEntry] = []

    def add_shadow_runs(self, rows: Sequence[ShadowRun]) -> int:
        self.rows.extend(rows)
        return len(rows)

    def audit(self, **_: object) -> list[AuditEntry]:
        return []

    def flag(self, name: str, *, project: str = "default") -> Flag | None:
        return self.flags.get(name)

    def add_audit(self, entry: AuditEntry) -> None:
        self.trail.append(entry)


def production(text: str, *, k: int = 10) -> list[Hit]:
    return ANSWER


def shadowed(candidate: Any, *, queries: int = 1, text: str = "pool", **options: Any) -> tuple[list[ShadowRun], Any]:
    store = Rows()
    with Shadow(production, candidate, store, "new", sample=options.pop("sample", 1), **options) as search:
        for number in range(queries):
            assert search.search(text, query_id=f"q{number}") is ANSWER
    return store.rows, search.counts


def test_both_lists_their_differences_and_latencies_are_stored() -> None:
    [row], counts = shadowed(candidates.well)
    assert (row.query_id, row.feature_id, row.error) == ("q0", "new", None)
    assert row.control_result_ids == ("a", "b", "c")
    assert row.treatment_result_ids == ("b", "a", "c")
    assert row.rank_correlation == pytest.approx(1 / 3)
    assert (row.set_overlap, row.top_result_changed, row.order_differences) == (1.0, True, 2)
    assert (row.mrr_delta, row.ndcg_delta) == (None, None)
    assert row.control_latency_ms is not None
    assert row.treatment_latency_ms is not None
    assert (counts.asked, counts.sampled, counts.answered, counts.saved, counts.waiting) == (1, 1, 1, 1, 0)


def test_the_difference_only_is_the_ids_that_one_side_lacks() -> None:
    [row], _ = shadowed(lambda text, k: ["b", "z"], keep="difference")
    assert (row.control_result_ids, row.treatment_result_ids) == (("a", "c"), ("z",))
    assert row.set_overlap == 1 / 4
    assert not has_whole_lists(row)
    [same], _ = shadowed(candidates.well, keep="difference")
    assert (same.control_result_ids, same.order_differences) == ((), 2)
    assert not has_whole_lists(same)


def test_the_sample_is_the_same_queries_every_time_and_about_its_share() -> None:
    first, _ = shadowed(candidates.well, queries=2000, sample=0.1, waiting=2000)
    second, counts = shadowed(candidates.well, queries=2000, sample=0.1, waiting=2000)
    assert sorted(row.query_id for row in first) == sorted(row.query_id for row in second)
    assert 150 < len(first) < 250
    assert counts.asked == 2000
    assert counts.sampled == counts.answered == counts.saved == len(first)
    none, _ = shadowed(candidates.well, queries=50, sample=0.0)
    assert none == []


def test_samples_of_two_features_differ() -> None:
    one, other = (Shadow(production, candidates.well, Rows(), name, sample=0.5) for name in ("one", "other"))
    chosen = [(one.in_sample(f"q{n}"), other.in_sample(f"q{n}")) for n in range(400)]
    assert 60 < sum(a and b for a, b in chosen) < 140
    one.close()
    other.close()


@pytest.mark.parametrize("isolate", ["thread", "process"])
@pytest.mark.parametrize(
    ("candidate", "says"),
    [
        (candidates.crashes, "RuntimeError: no index"),
        (candidates.exits, "SystemExit: 3"),
        (candidates.rubbish, "returned {'error': 'over quota'}"),
        (candidates.twice, "twice, at ranks 1 and 2"),
        (candidates.long_ids, "5,000 characters"),
    ],
)
def test_a_candidate_that_fails_leaves_an_error(candidate: Any, says: str, isolate: Any) -> None:
    [row], counts = shadowed(candidate, isolate=isolate, workers=1)
    assert row.error is not None
    assert says in row.error
    assert row.control_result_ids == ("a", "b", "c")
    assert (row.treatment_result_ids, row.set_overlap, row.treatment_latency_ms) == ((), None, None)
    assert (counts.failed, counts.answered, counts.paused) == (1, 0, None)


def test_an_answer_without_end_is_cut_at_k() -> None:
    [row], _ = shadowed(candidates.endless)
    assert row.treatment_result_ids == tuple(f"d{n}" for n in range(1, 11))


def test_a_hanging_thread_is_left_behind_and_the_next_query_is_answered() -> None:
    store = Rows()
    with Shadow(production, candidates.sometimes_hangs, store, "new", sample=1, workers=1, timeout=1.0) as search:
        search.search("hang", query_id="q0")
        search.search("pool", query_id="q1")
    errors = {row.query_id: row.error for row in store.rows}
    assert errors == {"q0": "took longer than 1 s; its thread was left behind", "q1": None}
    assert (search.counts.gone, search.counts.answered) == (1, 1)


def test_a_candidate_that_keeps_hanging_pauses_its_shadow_and_says_so() -> None:
    store, before = Rows(), set(threading.enumerate())
    search = Shadow(production, candidates.hangs, store, "new", sample=1, workers=4, timeout=0.05)
    for number in range(30):
        search.search("pool", query_id=f"q{number}")
    until(lambda: search.counts.paused)
    assert "hung or died 8 times" in (search.counts.paused or "")
    left_behind = set(threading.enumerate()) - before
    assert search.search("pool", query_id="later") is ANSWER
    counts = search.close()
    assert MOST_GONE <= counts.gone < MOST_GONE + 4  # those that were being asked when it paused
    assert counts.gone + counts.dropped == 31
    assert len(store.rows) == counts.gone
    assert len(left_behind) < 31


def test_a_thread_that_comes_back_late_is_no_longer_counted_as_hanging() -> None:
    release = threading.Event()

    def slow(text: str, *, k: int = 10) -> list[str]:
        release.wait(60)
        return ["a"]

    search = Shadow(production, slow, Rows(), "new", sample=1, workers=1, timeout=0.05)
    search.search("pool", query_id="q0")
    until(lambda: search.counts.gone)
    assert search._hanging == 1
    release.set()
    until(lambda: search._hanging == 0)
    search.close()


def test_a_process_that_hangs_is_killed_and_one_that_dies_is_replaced() -> None:
    store = Rows()
    options: dict[str, Any] = {"sample": 1, "workers": 1, "isolate": "process"}
    with Shadow(production, candidates.sometimes_hangs, store, "new", timeout=2.0, **options) as search:
        for number, text in enumerate(["pool", "hang", "pool"]):
            search.search(text, query_id=f"q{number}")
    errors = {row.query_id: row.error for row in store.rows}
    assert errors == {"q0": None, "q1": "took longer than 2 s; its process was killed", "q2": None}
    [row], counts = shadowed(candidates.dies, isolate="process", workers=1)
    assert row.error == "the candidate's process ended with exit code 7"
    assert counts.gone == 1


def test_a_process_cannot_take_more_memory_than_it_is_given() -> None:
    [row], counts = shadowed(candidates.takes_all_memory, isolate="process", workers=1, memory=256 * 2**20, timeout=20)
    assert row.error is not None
    assert "MemoryError" in row.error
    assert counts.failed == 1


def test_a_queue_that_is_full_drops_and_counts() -> None:
    started, release = threading.Event(), threading.Event()

    def slow(text: str, *, k: int = 10) -> list[str]:
        started.set()
        release.wait(60)
        return ["a"]

    store = Rows()
    with Shadow(production, slow, store, "new", sample=1, workers=1, waiting=2, timeout=60) as search:
        search.search("pool", query_id="q0")
        assert started.wait(60)
        for number in range(1, 11):
            assert search.search("pool", query_id=f"q{number}") is ANSWER
        assert search.counts.dropped == 8
        release.set()
    assert sorted(row.query_id for row in store.rows) == ["q0", "q1", "q2"]
    assert search.counts.problem is None


def test_what_is_missing_of_the_sample_is_known_after_the_process_has_ended(tmp_path: Path) -> None:
    started, release = threading.Event(), threading.Event()

    def slow(text: str, *, k: int = 10) -> list[str]:
        started.set()
        release.wait(60)
        return ["a"]

    with Store.open(tmp_path / "s.sqlite") as store:
        store.set_flag(Flag("new", shadow=True, project="shop"), who="ada", at=WHEN)
        options: dict[str, Any] = {"sample": 1, "workers": 1, "waiting": 2, "timeout": 60, "project": "shop"}
        with Shadow(production, slow, store, "new", **options) as search:
            search.search("pool", query_id="q0")
            assert started.wait(60)
            for number in range(1, 11):
                search.search("pool", query_id=f"q{number}")
            until(lambda: missing_of(store, "new", project="shop").total())
            assert missing_of(store, "new", project="shop") == {"dropped": 8}  # told while it still runs
            release.set()
        search.search("pool", query_id="after the end")
        assert missing_of(store, "new", project="shop").total() == 8
        assert missing_of(store, "new", project="shop", since="2999-01-01").total() == missing_of(store, "new").total() == 0
        flag = store.flag("new", project="shop")
        assert flag is not None
        found = shadow_of(store, flag)
        assert (found.live, found.missing, found.missing_share) == (3, 8, pytest.approx(8 / 11))


def test_drops_of_a_whole_run_are_told_once_and_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringtrue.rollout.shadow.SAVE_SECONDS", 0.01)
    monkeypatch.setattr("ringtrue.rollout.shadow.TELL_SECONDS", 0.02)
    store = Rows()
    with Shadow(production, candidates.well, store, "new", sample=1, workers=1, waiting=1) as search:
        for number in range(600):
            search.search("pool", query_id=f"q{number}")
            if number % 100 == 0:
                time.sleep(0.03)
    counts = search.counts
    assert counts.dropped > 0
    assert counts.saved + counts.dropped == 600
    assert sum(entry.detail["dropped"] for entry in store.trail) == counts.dropped


def test_rows_that_the_store_refused_and_answers_that_cannot_be_read_are_missing_and_a_stop_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringtrue.rollout.shadow.SAVE_SECONDS", 0.01)

    class Full(Rows):
        def add_shadow_runs(self, rows: Sequence[ShadowRun]) -> int:
            raise OSError("disk full")

    store = Full()
    store.flags["new"] = Flag("new", shadow=True)
    with Shadow(production, candidates.well, store, "new", sample=1) as search:
        search.search("pool", query_id="q1")
        assert not search.beside("q2", "pool", iter(["a"]), 1.0)
        until(lambda: search.counts.unsaved and not search.counts.waiting)
        search._stopped = "the flag 'new' says: no shadow"
        search.search("pool", query_id="q3")
        assert search.counts.dropped == 1
    told = [entry.detail for entry in store.trail]
    assert sum(one.get("unsaved", 0) for one in told) == sum(one.get("unreadable", 0) for one in told) == 1
    assert sum(one.get("dropped", 0) for one in told) == 0


def test_times_of_one_source_are_not_mixed_with_those_of_another() -> None:
    def some(source: Any, count: int, before: float, after: float) -> list[ShadowRun]:
        return [
            ShadowRun(
                f"{source}-{n}",
                WHEN,
                ("a",),
                ("a",),
                feature_id="f",
                control_latency_ms=before,
                treatment_latency_ms=after,
                source=source,
            )
            for n in range(count)
        ]

    live, log, golden = some("live", 40, 10, 11), some("log", 60, 100, 300), some("golden", 50, 1, 5)
    assert summarise([*live, *log, *golden], enough_timed=40).timed_source == "live"
    found = summarise([*live, *log, *golden], enough_timed=40)
    assert (found.timed, found.p95_increase, found.queries, found.live) == (40, pytest.approx(0.1), 150, 40)
    found = summarise([*live, *log, *golden], enough_timed=41)
    assert (found.timed, found.timed_source, found.p95_increase) == (60, "log", pytest.approx(2.0))
    earlier = [replace(row, source=None, query_id=f"golden:{WHEN}:{row.query_id}") for row in golden]
    assert summarise(earlier).timed_source == "golden"  # before it was stored, their ids said so
    assert summarise([]).timed_source is None
    [row], _ = shadowed(candidates.well)
    [asked], _ = shadowed(candidates.well, source="log")
    assert (row.source, asked.source) == ("live", "log")


def test_an_answer_that_cannot_be_read_twice_is_returned_unread() -> None:
    answer = iter(["a", "b"])
    store = Rows()
    with Shadow(lambda text, k: answer, candidates.well, store, "new", sample=1) as search:
        assert search.search("pool") is answer
    assert list(answer) == ["a", "b"]
    assert (search.counts.unreadable, store.rows) == (1, [])


def test_what_production_raises_is_raised_and_nothing_is_shadowed() -> None:
    def broken(text: str, *, k: int = 10) -> list[str]:
        raise KeyError("index")

    with Shadow(broken, candidates.well, Rows(), "new", sample=1) as search, pytest.raises(KeyError, match="index"):
        search.search("pool")
    assert search.counts.sampled == 0


def test_changes_to_the_list_after_the_answer_do_not_reach_the_stored_row() -> None:
    release = threading.Event()
    mine = ["a", "b"]

    def late(text: str, *, k: int = 10) -> list[str]:
        release.wait(10)
        return ["a"]

    store = Rows()
    with Shadow(lambda text, k: mine, late, store, "new", sample=1) as search:
        search.search("pool", query_id="q0").clear()  # type: ignore[attr-defined]
        release.set()
    assert store.rows[0].control_result_ids == ("a", "b")


def test_a_store_that_fails_costs_rows_not_answers() -> None:
    class Broken(Rows):
        def add_shadow_runs(self, rows: Sequence[ShadowRun]) -> int:
            raise OSError("disk full")

    with Shadow(production, candidates.well, Broken(), "new", sample=1) as search:
        assert search.search("pool") is ANSWER
    assert (search.counts.unsaved, search.counts.saved, search.counts.problem) == (1, 0, "OSError: disk full")


def test_a_flag_that_says_no_shadow_stops_a_running_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringtrue.rollout.shadow.LOOK_SECONDS", 0.0)
    monkeypatch.setattr("ringtrue.rollout.shadow.SAVE_SECONDS", 0.01)
    store = Rows()
    store.flags["new"] = Flag("new", shadow=True)

    def state(wanted: bool) -> None:
        store.flags["new"] = replace(store.flags["new"], shadow=wanted)
        until(lambda: (search.counts.paused is None) is wanted)

    with Shadow(production, candidates.well, store, "new", sample=1) as search:
        state(False)
        assert not search.beside("q0", "pool", ["a"], 1.0)
        assert search.counts.paused == "the flag 'new' says: no shadow"
        state(True)
        assert search.beside("q1", "pool", ["a"], 1.0)
    assert [row.query_id for row in store.rows] == ["q1"]


def test_a_shadow_of_production_itself_measures_the_noise_floor() -> None:
    rows, _ = shadowed(production, queries=40)
    floor = summarise(rows)
    assert (floor.queries, floor.failures, floor.changed, floor.top_changed, floor.overlap) == (40, 0, 0.0, 0.0, 1.0)

    class Wavering:
        """One pipeline that breaks ties by chance."""

        def __init__(self, seed: int) -> None:
            self.chance = random.Random(seed)

        def search(self, text: str, *, k: int = 10) -> list[str]:
            return ["a", "b"] if self.chance.random() < 0.8 else ["b", "a"]

    store = Rows()
    with Shadow(Wavering(1), Wavering(2), store, "a-a", sample=1, workers=1, waiting=200) as search:
        for number in range(200):
            search.search("pool", query_id=f"q{number}")
    assert 0.2 < (summarise(store.rows).changed or 0) < 0.45  # 2 · 0.8 · 0.2 = 0.32


def test_judged_queries_carry_their_differences_and_feed_the_test() -> None:
    golden = GoldenSet(
        "g", "1.0.0", (Query("q0", "pool"),), (Judgment("q0", "b", 3), Judgment("q0", "a", 1)), (), relevance_threshold=2
    )
    fed: list[tuple[str, Scored, Scored]] = []
    rows, counts = shadowed(candidates.well, queries=2, scorer=golden_scorer(golden), feed=lambda *scores: fed.append(scores))
    by_id = {row.query_id: row for row in rows}
    assert by_id["q0"].mrr_delta == 0.5
    assert (by_id["q0"].ndcg_delta or 0) > 0
    assert by_id["q1"].mrr_delta is None
    [(query_id, control, treatment)] = fed
    assert (query_id, control.rr, treatment.rr) == (question_id("Pool?"), 0.5, 1.0)
    assert treatment.ndcg - control.ndcg == by_id["q0"].ndcg_delta
    assert counts.problem is None


def test_a_test_that_cannot_be_fed_is_said_and_the_row_kept() -> None:
    def feed(query_id: str, control: Scored, treatment: Scored) -> None:
        raise OSError("locked")

    rows, counts = shadowed(candidates.well, scorer=scorer({"q0": {"b": 1}}), feed=feed)
    assert len(rows) == 1
    assert counts.problem == "OSError: locked"


def test_judgments_that_come_later_feed_the_test_from_stored_rows() -> None:
    whole, _ = shadowed(candidates.well, queries=3)
    part, _ = shadowed(candidates.well, keep="difference")
    failed, _ = shadowed(candidates.crashes)
    rows = [*whole, replace(part[0], query_id="q8"), replace(failed[0], query_id="q9")]
    judged = [StoredJudgment(f"q{n}", "b", 2, "implicit", WHEN) for n in (0, 1, 8, 9)]
    judged.append(StoredJudgment("q1", "b", 0, "manual", WHEN))
    judged.append(StoredJudgment("q1", "a", 3, "manual", WHEN))

    class Judged:
        def shadow_runs(self, **_: Any) -> list[ShadowRun]:
            return rows

        def judgments(self, **_: Any) -> list[StoredJudgment]:
            return judged

        def queries(self, *, query_ids: Sequence[str] | None = None, **_: Any) -> list[LoggedQuery]:
            return [LoggedQuery(name, f"words of {name}", "web", WHEN) for name in query_ids or ()]

    fed: dict[str, tuple[float, float]] = {}
    assert feed_judged(Judged(), "new", lambda name, one, other: fed.update({name: (one.rr, other.rr)})) == 2
    first, second = question_id("words of q0"), question_id("words of q1")
    assert fed == {first: (0.5, 1.0), second: (1.0, 0.5)}  # for q1 the person's word counts


def test_searches_with_the_same_words_share_their_judgments_and_the_golden_set_comes_first() -> None:
    texts = {"q0": "Late checkout?", "q1": "late  checkout", "q2": "is there a pool", "q3": "quiet room"}
    asked = [LoggedQuery(name, text, "web", WHEN) for name, text in texts.items()]
    said = [
        StoredJudgment("q0", "a", 2, "implicit", WHEN, confidence=0.4),
        StoredJudgment("q0", "b", 2, "implicit", WHEN, confidence=0.1),
        # Derived from a search that is not among these: the words say what it is about.
        StoredJudgment("old", "c", 3, "validated", WHEN, metadata={"key": "is there a pool"}),
        StoredJudgment("q2", "d", 2, "implicit", WHEN),
    ]
    golden = GoldenSet("g", "1.0.0", (Query("g1", "is there a pool"),), (Judgment("g1", "d", 0), Judgment("gone", "a", 3)))
    assert grades_by_words(asked, said) == {
        "q0": {"a": 2, "b": 2},
        "q1": {"a": 2, "b": 2},
        "q2": {"c": 3, "d": 2},
    }
    found = grades_by_words(asked, said, golden=golden, min_confidence=0.3)
    assert found == {"q0": {"a": 2}, "q1": {"a": 2}, "q2": {"c": 3, "d": 0}}


def test_a_question_is_told_to_the_test_once_whichever_of_its_searches_was_judged(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        store.add_queries([LoggedQuery(f"q{n}", "Late checkout?", "web", WHEN) for n in range(3)])
        rows, _ = shadowed(candidates.well, queries=3)
        store.add_shadow_runs(rows)
        store.add_judgments([StoredJudgment("q2", "b", 2, "implicit", WHEN)])
        fed: list[str] = []
        assert feed_judged(store, rows[0].feature_id, lambda name, *_: fed.append(name)) == 1
        assert fed == [question_id("late checkout")]


def test_latencies_are_those_of_the_timer_that_is_given() -> None:
    class Timer(threading.local):
        seconds = 0.0

        def __call__(self) -> float:
            return self.seconds

    timer = Timer()

    def taking(seconds: float) -> Any:
        def search(text: str, k: int = 10) -> list[str]:
            timer.seconds += seconds
            return ["a"]

        return search

    store = Rows()
    with Shadow(taking(0.04), taking(0.06), store, "new", sample=1, timer=timer) as shadow:
        shadow.search("pool", query_id="q0")
    (row,) = store.rows
    assert row.control_latency_ms == pytest.approx(40)
    assert row.treatment_latency_ms == pytest.approx(60)


@pytest.mark.parametrize(("measure", "better"), [("mrr", 0.5), ("ndcg", 0.25)])
def test_the_test_is_fed_with_what_it_is_of_and_counts_a_query_once(tmp_path: Path, measure: str, better: float) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        create_test(store, "new", now=WHEN, measure=measure)
        feed = feed_for_test(store, "new", clock=lambda: datetime(2026, 3, 2, tzinfo=UTC))
        for query_id in ("q1", "q2", "q1"):
            feed(query_id, Scored(0.5, 0.5), Scored(1.0, 0.75))
        test = store.test("new")
        assert test is not None
        assert (test.sample_count, test.sums["differences"]) == (2, 2 * better)


def test_a_test_of_something_else_cannot_be_fed(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        with pytest.raises(MissingInput, match="no test of feature 'new'"):
            feed_for_test(store, "new")
        create_test(store, "new", now=WHEN, measure=None)
        with pytest.raises(InputError, match="of differences"):
            feed_for_test(store, "new")


def test_of_several_judgments_the_persons_wins_then_the_newest() -> None:
    later = "2026-03-02T00:00:00+00:00"
    grades = grades_by_words(
        [LoggedQuery("q", "pool", "web", WHEN)],
        [
            StoredJudgment("q", "a", 3, "manual", WHEN),
            StoredJudgment("q", "a", 0, "implicit", later),
            StoredJudgment("q", "b", 1, "implicit", WHEN),
            StoredJudgment("q", "b", 2, "implicit", later, annotator="other"),
        ],
    )
    assert grades == {"q": {"a": 3, "b": 2}}


def test_failures_are_counted_and_not_averaged_away() -> None:
    rows = [
        ShadowRun(
            "1", WHEN, ("a",), ("a",), feature_id="f", order_differences=0, control_latency_ms=10, treatment_latency_ms=11
        ),
        ShadowRun("2", WHEN, ("a",), (), feature_id="f", control_latency_ms=10, error="TimedOut"),
    ]
    found = summarise(rows)
    assert (found.queries, found.failures, found.failure_share, found.timed) == (2, 1, 0.5, 1)
    assert found.p95_increase == pytest.approx(0.1)
    nothing = summarise([])
    assert (nothing.changed, nothing.failure_share, nothing.p95_increase, nothing.mrr_delta) == (None, None, None, None)


def test_percentiles_are_numpys() -> None:
    np = pytest.importorskip("numpy")
    values = [5.0, 1.0, 9.0, 2.5, 7.0]
    for percent in (0, 50, 95, 100):
        assert percentile(values, percent) == pytest.approx(np.percentile(values, percent))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sample": 10}, "write one from 0 to 1"),
        ({"timeout": 0}, "seconds above 0"),
        ({"isolate": "fork"}, "'thread' or 'process'"),
        ({"keep": "all"}, "'lists' or 'difference'"),
        ({"memory": 10**9}, "add isolate='process'"),
        ({"workers": 5, "waiting": 4}, "a place in the queue"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Shadow(production, candidates.well, Rows(), "new", **options)


def test_a_candidate_that_cannot_travel_to_a_process_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="cannot be sent to a process"):
        Shadow(production, lambda text, k: ["a"], Rows(), "new", isolate="process")


def test_a_described_candidate_that_cannot_be_opened_is_an_error_in_its_rows(tmp_path: Any) -> None:
    [row], counts = shadowed(Described("bm25", tmp_path / "nothing"), isolate="process", workers=1)
    assert "holds no documents" in (row.error or "")
    assert counts.gone == 1


def test_a_golden_set_gives_evidence_for_both_sides(ringtrue: Any, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    with Store.open(store) as opened:
        create_test(opened, "new", now=WHEN)
    started = ringtrue(
        "shadow", "start", "new", "-c", "bm25(title=3)", "-p", "bm25", "--golden", "hotel", "--test", "--store", store, "--json"
    )
    assert started.code == 0
    found = started.json["golden"]
    assert found["deltas"]["RR@10"] == pytest.approx(found["candidate"]["RR@10"] - found["production"]["RR@10"])
    assert (found["golden"], found["queries"]) == ("hotel-v1.0.0", 72)
    with Store.open(store) as opened:
        flag, test = opened.flag("new"), opened.test("new")
        assert flag is not None
        assert test is not None
        assert (flag.shadow, flag.metadata["candidate"]) == (True, "bm25(title=3)")
        assert "no constitutional documents" in flag.metadata["no_constitutional"]
        assert test.sample_count == 72
        assert test.sums["differences"] == pytest.approx(72 * found["deltas"]["RR@10"])
        treatment, control = opened.results(feature_id="new", run_type="shadow")
        assert treatment.control_run_id == control.run_id
        rows = opened.shadow_runs(feature_id="new")
        assert len(rows) == 72
        assert {row.source for row in rows} == {"golden"}
        assert sum(row.mrr_delta or 0 for row in rows) / 72 == pytest.approx(found["deltas"]["RR@10"])
    status = ringtrue("shadow", "status", "--store", store, "--json").json["shadow"]["new"]
    assert (status["on"], status["queries"], status["judged"], status["failures"]) == (True, 72, 72, 0)
    assert (status["timed"], status["timed_source"], status["missing"], status["missing_share"]) == (72, "golden", 0, None)
    assert "bm25(title=3)" in ringtrue("shadow", "status", "new", "--store", store).out

    ringtrue("shadow", "start", "new", "-c", "bm25(title=2)", "--store", store)  # another candidate: the count begins anew
    assert ringtrue("shadow", "status", "--store", store, "--json").json["shadow"]["new"]["queries"] == 0
    assert ringtrue("shadow", "stop", "new", "--store", store, "--json").json["flag"]["shadow"] is False


def test_trap_23_the_test_of_a_changed_candidate_is_begun_anew_and_fed_by_the_same_golden_set(
    ringtrue: Any, tmp_path: Path
) -> None:
    where = ("--store", tmp_path / "s.sqlite")
    golden = ("--golden", "hotel", "--test", *where)
    ringtrue("test", "create", "new", *where)
    assert (
        ringtrue("shadow", "start", "new", "-c", "bm25(title=3)", "-p", "bm25", *golden, "--json").json["golden_counted"] == 72
    )
    again = ringtrue("shadow", "start", "new", *golden)
    assert "0 questions counted by the test; others not: counted before" in again.out
    assert "live searches" not in again.out  # nobody asked about those

    refused = ringtrue("shadow", "start", "new", "-c", "bm25(title=2)", *golden)  # its test is about another candidate
    assert refused.code == 2
    assert "has counted 72 queries" in refused.err
    assert "ringtrue test create new --again" in refused.err
    assert ringtrue("shadow", "status", *where, "--json").json["shadow"]["new"]["candidate"] == "bm25(title=3)"

    assert ringtrue("test", "create", "new", "--again", *where).code == 0  # first the test, then the candidate, as documented
    changed = ringtrue("shadow", "start", "new", "-c", "bm25(title=2)", *golden, "--json").json
    assert changed["golden_counted"] == 72
    assert ringtrue("test", "status", "new", *where, "--json").json["samples"] == 72
    checks = ringtrue("flag", "graduate", "new", "--dry-run", *where, "--json").json["decisions"]["new"]["checks"]
    said = {check["name"]: check["says"] for check in checks}
    assert "began before" not in said["sequential test"]
    assert said["samples"].startswith("72 judged queries compared")


def test_trap_23_a_test_begun_anew_without_a_new_candidate_does_not_take_over_stored_answers(
    ringtrue: Any, tmp_path: Path
) -> None:
    where = ("--store", tmp_path / "s.sqlite")
    row = ShadowRun("eq_1", WHEN, ("a", "b"), ("b", "a"), feature_id="new", set_overlap=1.0)
    with Store.open(tmp_path / "s.sqlite") as opened:
        opened.add_queries([LoggedQuery("eq_1", "pool", "shop", WHEN)])
        opened.add_shadow_runs([row])
        opened.add_judgments([StoredJudgment("eq_1", "b", 3, "manual", WHEN)])
    start = ("shadow", "start", "new", "-c", "bm25", "-p", "hybrid", "--test", *where, "--json")
    ringtrue("test", "create", "new", *where)
    assert ringtrue(*start).json["judged"] == 1
    ringtrue("test", "create", "new", "--again", "--delta", "0.01", *where)
    assert ringtrue(*start).json["judged"] == 0
    assert ringtrue("test", "status", "new", *where, "--json").json["samples"] == 0


def test_trap_23_the_log_is_asked_again_of_a_changed_candidate_and_its_answers_stand_beside_the_old(
    ringtrue: Any, tmp_path: Path
) -> None:
    store, index, documents = tmp_path / "s.sqlite", tmp_path / "index", tmp_path / "documents"
    documents.mkdir()
    for name, text in (("pool", "an indoor pool to swim in"), ("spa", "sauna, massage and a pool")):
        (documents / f"{name}.txt").write_text(text)
    assert ringtrue("ingest", documents, "--into", index).code == 0
    with Store.open(store) as opened:
        opened.add_queries([LoggedQuery(f"eq_{n}", f"pool {n}", "shop", WHEN, user_id="u") for n in range(4)])
        opened.add_judgments([StoredJudgment(f"eq_{n}", "pool.txt", 3, "manual", WHEN) for n in range(4)])
    where = ("--store", store)
    start = ("shadow", "start", "new", "--in", index, "--log", "--sample", "100", "--test", *where, "--json")
    ringtrue("test", "create", "new", *where)
    first = ringtrue(*start, "-c", "bm25", "-p", "bm25").json
    assert (first["log"]["saved"], first["judged"], first["judged_counted"]) == (4, 4, 4)
    assert ringtrue(*start).code == 2  # asked already
    known = ringtrue("shadow", "start", "new", "--in", index, "--test", *where)
    assert "0 of 4 judged questions of live searches counted by the test (others: counted before)" in known.out
    ringtrue("test", "create", "new", "--again", *where)
    changed = ringtrue(*start, "-c", "bm25(title=2)").json
    assert (changed["log"]["answered"], changed["log"]["saved"], changed["judged"]) == (4, 4, 4)
    assert ringtrue("test", "status", "new", *where, "--json").json["samples"] == 4
    assert ringtrue("shadow", "status", *where, "--json").json["shadow"]["new"]["queries"] == 4
    with Store.open(store) as opened:
        assert len(opened.shadow_runs(feature_id="new")) == 8  # those of the old candidate are kept, and count no more
        opened.delete_user("u")
        assert opened.shadow_runs(feature_id="new") == []


def test_a_sample_of_the_log_is_asked_again_of_both_sides_and_each_once(ringtrue: Any, tmp_path: Path) -> None:
    store, index = tmp_path / "s.sqlite", tmp_path / "index"
    documents = tmp_path / "documents"
    documents.mkdir()
    for name, text in (("pool", "an indoor pool to swim in"), ("spa", "sauna, massage and a pool"), ("bar", "wine and beer")):
        (documents / f"{name}.txt").write_text(text)
    assert ringtrue("ingest", documents, "--into", index).code == 0
    with Store.open(store) as opened:
        create_test(opened, "new", now=WHEN)
        logged = [LoggedQuery(f"eq_{n}", "pool" if n % 2 else "beer", "shop", WHEN) for n in range(40)]
        opened.add_queries(logged)
        judged = next(query for query in logged if bucket(query.query_id, "shadow:new") < 50)
        opened.add_judgments([StoredJudgment(judged.query_id, "pool.txt", 3, "manual", WHEN)])
    start = ["shadow", "start", "new", "--in", index, "--log", "--sample", "50", "--store", store, "--json"]
    first = ringtrue(*start, "-c", "bm25", "-p", "bm25", "--test").json
    assert first["log"]["answered"] == first["log"]["saved"] == first["log"]["sampled"]
    assert 8 < first["log"]["sampled"] < 32
    assert first["judged"] == 1  # the same words are one question
    with Store.open(store) as opened:
        rows = opened.shadow_runs(feature_id="new")
        assert all(row.order_differences == 0 and row.control_result_ids for row in rows)
        assert {row.source for row in rows} == {"log"}
        test = opened.test("new")
        assert test is not None
        assert test.sample_count == 1
    again = ringtrue(*start).json
    assert again["log"]["sampled"] == 0
    assert ringtrue(*start, "--since", "1h").code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["start", "new", "--golden", "hotel"], "add --candidate EXPRESSION"),
        (["start", "new", "-c", "bm25", "--log"], "no logged searches are left"),
        (["start", "new", "--test"], "ringtrue test create"),
        (["stop", "nothing"], "no flag 'nothing'"),
        (["status", "nothing"], "no flag 'nothing'"),
    ],
)
def test_bad_input_is_one_line_with_its_cure(ringtrue: Any, tmp_path: Path, arguments: list[str], says: str) -> None:
    Store.open(tmp_path / "s.sqlite").close()
    outcome = ringtrue("shadow", *arguments, "--store", tmp_path / "s.sqlite")
    assert outcome.code == 2
    assert says in outcome.err
    assert outcome.out == ""


# ── what it is logged as, and who sees it ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inside", [True, False], ids=["production is logged", "the shadow is logged"])
def test_a_shadow_run_has_the_id_under_which_the_search_is_logged(tmp_path: Path, inside: bool) -> None:
    place = tmp_path / "store.sqlite"
    production, candidate = (lambda text, k: ["a", "b"]), (lambda text, k: ["b", "a"])
    with QueryLog(place, project="default") as log, Store.open(place) as store:
        asked = log.watched(production) if inside else production
        with Shadow(asked, candidate, store, "reverse", sample=1) as shadow:
            (shadow if inside else log.watched(shadow.search)).search("pool", k=2)
            (shadow if inside else log.watched(shadow.search)).search("spa", k=2)
            with log.query("not in the shadow", tool="other") as other:
                other.answer([])
            if not inside:
                shadow.search("in no log", k=2)
        assert log.flush(10)
        logged = [row.query_id for row in store.queries() if row.query in ("pool", "spa")]
        shadowed = [row.query_id for row in store.shadow_runs(feature_id="reverse")]
    assert set(logged) <= set(shadowed)
    assert len(shadowed) == (2 if inside else 3)


def test_a_flag_that_is_created_for_a_running_shadow_keeps_it_running(ringtrue: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "store.sqlite")
    with Store.open(place) as store:
        with Shadow(lambda text, k: ["a"], lambda text, k: ["b"], store, "reverse", sample=1) as shadow:
            shadow.search("pool", k=1)
        assert "shadow on" in ringtrue("flag", "set", "reverse", "--rollout", "10", "--store", place).out
        assert "shadow off" in ringtrue("flag", "set", "another", "--rollout", "10", "--store", place).out


def test_a_live_shadow_without_a_flag_is_shown_and_can_be_stopped(ringtrue: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "store.sqlite")
    with Store.open(place) as store:
        with Shadow(lambda text, k: ["a", "b"], lambda text, k: ["b", "a"], store, "reverse", sample=1) as shadow:
            shadow.search("pool", k=2)
        shown = ringtrue("shadow", "status", "--store", place, "--json").json["shadow"]["reverse"]
        assert (shown["flag"], shown["queries"], shown["changed"]) == (False, 1, 1.0)
        assert ringtrue("shadow", "status", "reverse", "--store", place, "--json").json["shadow"]["reverse"] == shown
        assert "no flag" in ringtrue("shadow", "status", "--store", place).out
        wrong = ringtrue("shadow", "status", "revers", "--store", place)
        assert (wrong.code, "did you mean 'reverse'" in wrong.err) == (2, True)
        assert ringtrue("shadow", "stop", "reverse", "--store", place).code == 0
        assert store.flags() == []
        with Shadow(lambda text, k: ["a", "b"], lambda text, k: ["b", "a"], store, "reverse", sample=1) as shadow:
            until(lambda: shadow.counts.paused)
            shadow.search("spa", k=2)
        assert "ringtrue shadow stop reverse" in (shadow.counts.paused or "")
        assert len(store.shadow_runs(feature_id="reverse")) == 1
        assert "shadow off" in ringtrue("flag", "set", "reverse", "--rollout", "10", "--store", place).out
