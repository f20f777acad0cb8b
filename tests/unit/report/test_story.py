"""The sentence that comes first, statuses and numbers as text."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from made import WHEN
from made_reports import clean, compared, comparison, healthy, verdict
from ringtrue.brief import counted
from ringtrue.report import Report, component_lines, markdown, measure_lines, notes
from ringtrue.report.formatting import amount, milliseconds, number, percent, signed, signed_milliseconds, span
from ringtrue.report.sentences import against, headline, reasons
from ringtrue.run import Precondition
from ringtrue.verdict import Check, baseline_of

FELL = Check("drop", "P@5", "degraded", "P@5 fell by 2.9 %", 0.66, 0.646, 0.68, 0.029)
BROKEN = Check("floor", "R@5", "fail", "R@5 below its floor: 0.7400 < 0.8000", 0.74, 0.80, queries=("q001",))
SLICED = Check("slice", "R@5", "fail", "R@5 of query_type=factual below its floor", 0.5, 0.7, slice="query_type=factual")
OPEN = Check("completeness", "queries", "undecided", "3 of 60 queries got no answer", 57.0, 60.0)
FINE = Check("floor", "RR", "pass", "RR at or above its floor", 0.9, 0.7)
HINT = Check("latency increase", "p95", "advisory", "another machine", 40.0)


def test_numbers_that_are_not_there_are_dashes_never_zero() -> None:
    for shown in (number, signed, percent, milliseconds):
        assert shown(math.nan) == shown(None) == "—"
    assert span(None) == span((math.nan, 1.0)) == "—"
    assert amount("p95", None) == amount("R@5", None) == "—"


def test_numbers_read_as_what_they_are() -> None:
    assert (signed(0.1), signed(-0.1), signed(0.0), signed(-0.00001)) == ("+0.1000", "−0.1000", "0.0000", "−0.0000")
    assert (percent(0.024), percent(-0.029)) == ("+2.4 %", "−2.9 %")
    assert (amount("p95", 410.4), amount("R@5", 0.84), milliseconds(2.44)) == ("410 ms", "0.8400", "2.4 ms")
    assert (counted(1, "query"), counted(1200, "query")) == ("1 query", "1,200 queries")
    assert [counted(2, word) for word in ("day", "key", "toy", "reply")] == ["2 days", "2 keys", "2 toys", "2 replies"]


def test_a_pass_tells_what_degraded_within_tolerance() -> None:
    told = headline(clean(verdict=verdict(FINE, FELL, HINT)))
    assert (
        told
        == "PASS: all 2 checks hold against baseline 1.0.0; 1 degraded within tolerance: P@5 −2.9 %; 1 more is informational"
    )


def test_a_failure_names_the_measures_and_its_reasons_follow() -> None:
    report = clean(verdict=verdict(FINE, OPEN, BROKEN, SLICED, word="fail"))
    assert headline(report).startswith("FAIL: 2 of 4 checks failed: R@5, R@5 in query_type=factual")
    assert reasons(report) == (BROKEN.message, SLICED.message, OPEN.message)


def test_what_could_not_be_decided_is_no_pass() -> None:
    assert headline(clean(verdict=verdict(FINE, OPEN, word="undecided"))) == (
        "UNDECIDED: 1 of 2 checks could not be decided: queries"
    )


def test_without_a_gate_the_comparison_speaks_and_without_one_the_result() -> None:
    better = clean(verdict=None, comparison=comparison(compared(diff=0.05)))
    assert headline(better) == "hybrid is better than before by nDCG@10: so it is"
    unsure = clean(verdict=None, comparison=comparison(compared()))
    assert headline(unsure).startswith("Not enough evidence that hybrid differs from before by nDCG@10")
    alone = Report(healthy(), WHEN)
    assert headline(alone).startswith("nDCG@10 is 0.9")
    assert "(95 % interval 0.9000 to 0.9900) over 60 queries; not judged" in headline(alone)


def test_a_gated_run_that_was_compared_says_with_what_in_a_sentence_of_its_own() -> None:
    report = clean(comparison=comparison(compared(diff=0.05, p_adjusted=0.02), a="bm25"))
    assert "bm25" not in headline(report)  # the gate judges by its baseline
    assert against(report) == (
        "Against bm25: better, nDCG@10 +0.0500 (0.9000 → 0.9500, 95 % interval +0.0400 to +0.0600, p = 0.02 over 60 "
        "paired queries)"
    )
    unsure = clean(comparison=comparison(compared(diff=0.004, more_queries=82), a="bm25"))
    assert against(unsure).startswith("Against bm25: not enough evidence, nDCG@10 +0.0040 (")
    assert against(unsure).endswith("; confirming a difference of this size would take about 82 more queries")
    assert against(clean(verdict=None)) == ""  # the headline says it


def test_runs_that_scored_alike_have_one_word_everywhere_and_say_why() -> None:
    zero = {"diff": 0.0, "b": 0.9, "wins": 0, "ties": 60, "losses": 0, "reason": "all 60 differences are 0"}
    twins = comparison(compared(**zero), compared("P@5", **zero))
    assert headline(clean(verdict=None, comparison=twins)) == (
        "Not enough evidence that hybrid differs from before by nDCG@10: all 60 differences are 0"
    )
    assert against(clean(comparison=twins)) == "Against before: not enough evidence; all 60 differences are 0"
    assert "| not enough evidence |" in markdown(clean(comparison=twins))


def test_latencies_that_are_not_0_never_read_as_0() -> None:
    assert (milliseconds(0.04), milliseconds(0.0004), milliseconds(0.0)) == ("0.04 ms", "< 0.01 ms", "0 ms")
    assert (signed_milliseconds(-0.12), signed_milliseconds(3.21), signed_milliseconds(-45.6)) == (
        "−0.12 ms",
        "+3.2 ms",
        "−46 ms",
    )


def test_every_note_is_told_once() -> None:
    """That judgments are provisional is a label beside the golden set; notes do not repeat it."""
    found = healthy(notes=("accepted with --allow index: the index is out of sight",))
    unmet = (Precondition("index", "not checked", "the index is out of sight"),)
    setup = replace(found.setup, golden=replace(found.setup.golden, provisional=True), preconditions=unmet)
    told = f"made-v1.0.0 is {setup.golden.reviewed}"
    report = clean(evaluation=replace(found, setup=setup), verdict=verdict(notes=(told,)))
    said = notes(report)
    assert sum("out of sight" in note for note in said) == 1
    assert not any("provisional" in note for note in said)
    assert markdown(report).count("provisional") == 1
    assert markdown(report).count("out of sight") == 1


def test_the_fusion_is_called_what_its_user_called_it() -> None:
    labels = [line.label for line in component_lines(clean())]
    assert labels == ["bm25", "dense", "hybrid (rrf)", "without bm25", "without dense", "hybrid (rrf) >> rerank"]
    written_out = replace(healthy(), name="rrf(bm25, dense)")
    assert "rrf" in [line.label for line in component_lines(clean(evaluation=written_out))]


def test_of_several_checks_on_a_measure_the_gravest_is_its_status() -> None:
    both = [replace(BROKEN, status="pass"), replace(FELL, measure="R@5")]
    lines = {line.measure: line for line in measure_lines(clean(verdict=verdict(*both)))}
    assert lines["R@5"].status == "degraded"
    assert lines["R@5"].threshold == 0.80
    assert lines["R@5"].baseline == 0.68
    assert lines["nDCG@10"].status is None


def test_a_measure_that_only_the_gate_scored_has_a_line_too() -> None:
    check = Check("floor", "P(rel=2)@5", "fail", "P(rel=2)@5 below its floor", 0.37, 0.60)
    line = next(line for line in measure_lines(clean(verdict=verdict(check))) if line.measure == "P(rel=2)@5")
    assert (line.current, line.threshold, line.status) == (0.37, 0.60, "fail")


def test_checks_about_no_measure_make_no_line() -> None:
    nothing = Check("latency", "latency", "advisory", "no latency was measured", math.nan)
    names = [line.measure for line in measure_lines(clean(verdict=verdict(OPEN, nothing)))]
    assert "queries" not in names
    assert "latency" not in names


def test_a_baseline_of_another_golden_set_is_not_compared() -> None:
    now = healthy()
    other = replace(now, setup=replace(now.setup, golden=replace(now.setup.golden, content_hash="another")))
    report = clean(evaluation=now, baseline=baseline_of(other, version="1.0.0"), comparison=None, verdict=None)
    assert {line.baseline for line in measure_lines(report)} == {None}
    same = clean(evaluation=now, baseline=baseline_of(now, version="1.0.0"), comparison=None, verdict=None)
    assert [line.baseline for line in measure_lines(same) if line.measure == "nDCG@10"] == [
        pytest.approx(now.metrics["nDCG@10"])
    ]
