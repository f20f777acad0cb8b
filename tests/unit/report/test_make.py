"""The one way a report comes about."""

from __future__ import annotations

from dataclasses import replace

from made import WHEN
from made_reports import GOLDEN, answered, healthy, judged_set
from ringtrue.report import file_name, recommend, report_on
from ringtrue.verdict import Policy, baseline_of, gate


def test_an_evaluation_alone_is_neither_compared_nor_judged() -> None:
    report = report_on(healthy(), made_at=WHEN)
    assert (report.comparison, report.verdict, report.recommendations) == (None, None, ())


def test_a_baseline_brings_comparison_and_verdict() -> None:
    now = healthy(answered(skill=0.5, seed=9))
    report = report_on(now, made_at=WHEN, baseline=baseline_of(healthy(), version="1.2.0"))
    assert report.comparison is not None
    assert (report.comparison.a, report.comparison.b) == ("baseline 1.2.0", "hybrid")
    assert set(report.comparison.slices) == {"query_type"}
    assert report.comparison.verdict == "worse"
    assert report.verdict is not None
    assert report.verdict.word == "fail"


def test_a_verdict_that_is_there_is_kept() -> None:
    now, before = healthy(answered(skill=0.5, seed=9)), baseline_of(healthy(), version="1.2.0")
    lenient = gate(now, Policy(floors={}, drop_measures=()), baseline=before)
    assert lenient.word == "pass"
    assert report_on(now, made_at=WHEN, baseline=before, verdict=lenient).verdict is lenient


def test_a_policy_alone_judges_by_floors() -> None:
    report = report_on(healthy(), made_at=WHEN, policy=Policy(floors={"R@5": 0.5}))
    assert report.verdict is not None
    assert {check.rule for check in report.verdict.checks} == {"floor", "latency", "completeness"}
    assert report.verdict.word == "undecided"
    alone = report_on(healthy(), made_at=WHEN, policy=Policy(floors={"R@5": 0.5}, require_baseline=False))
    assert alone.verdict is not None
    assert alone.verdict.word == "pass"


def test_another_run_is_compared_and_recommendations_follow_from_it() -> None:
    other = replace(healthy(answered(skill=0.6, seed=4)), name="before")
    report = report_on(healthy(), made_at=WHEN, other=other)
    assert report.comparison is not None
    assert report.comparison.a == "before"
    assert report.comparison.verdict == "better"
    assert report.recommendations == recommend(report)


def test_the_two_parts_of_a_split_stand_side_by_side() -> None:
    """They share no query: there is nothing to pair."""
    golden = replace(healthy().setup.golden, split="held_out")
    renamed = judged_set(60)
    names = {query.query_id: f"t{query.query_id}" for query in renamed.queries}
    tuning = replace(
        renamed,
        queries=tuple(replace(query, query_id=names[query.query_id]) for query in renamed.queries),
        judgments=tuple(replace(one, query_id=names[one.query_id]) for one in renamed.judgments),
    )
    tuned = healthy(golden=tuning, losses=(), components=(), setup={"golden": replace(golden, split="tuning")})
    kept = healthy(answered(golden=GOLDEN, skill=0.5), setup={"golden": golden})
    report = report_on(kept, made_at=WHEN, other=tuned)
    assert report.comparison is None
    assert "shares no query" in report.notes[0]


def test_a_baseline_of_another_set_is_judged_undecided_and_not_compared() -> None:
    before = healthy()
    before = replace(before, setup=replace(before.setup, golden=replace(before.setup.golden, content_hash="another")))
    report = report_on(healthy(), made_at=WHEN, baseline=baseline_of(before, version="1.0.0"))
    assert report.comparison is None
    assert report.verdict is not None
    assert report.verdict.word == "undecided"


def test_the_usual_file_name_is_the_time_in_utc() -> None:
    assert file_name("2026-11-16T08:00:00+00:00") == "ringtrue-eval-20261116T080000Z.md"
    assert file_name("2026-11-16T09:30:00+01:00", ".html") == "ringtrue-eval-20261116T083000Z.html"
