"""The comment on a pull request."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from made import WHEN
from made_reports import GOLDEN, answered, clean, compared, comparison, healthy, verdict
from ringtrue.records import Query, Ranking
from ringtrue.report import Report, marker, pull_request, report_on
from ringtrue.verdict import Check, baseline_of


@pytest.fixture(scope="module")
def worse() -> str:
    now = healthy(answered(skill=0.5, seed=9))
    return pull_request(report_on(now, made_at=WHEN, baseline=baseline_of(healthy(), version="1.0.0")))


def test_the_marker_is_the_first_line_so_that_the_comment_is_found_again(worse: str) -> None:
    assert worse.startswith("<!-- ringtrue:report -->\n### ❌ FAIL: ")
    assert pull_request(clean(), key="docs").startswith("<!-- ringtrue:report:docs -->\n")
    assert marker("a --> <b>") == "<!-- ringtrue:report:a-b -->"


def test_the_table_has_the_columns_of_the_specification(worse: str) -> None:
    assert "| measure | baseline | current | Δ | interval | status |" in worse
    assert re.search(
        r"^\| R@5 \| 1\.0000 \| 0\.\d{4} \| −0\.\d{4} \(−\d+\.\d %\) \| −0\.\d+ to −0\.\d+ \| ❌ FAIL \|$", worse, re.M
    )
    assert "Interval: of Δ over paired queries. p and interval are those that decide a verdict at alpha = 0.05" in worse
    assert "The gate judges the rows with a status; better or worse is decided by nDCG@10 alone." in worse


def test_a_small_change_of_latency_is_a_number_and_not_0(worse: str) -> None:
    fast = healthy(answered(skill=1.0, latency=0.2))
    slower = healthy(answered(skill=1.0, latency=0.4))
    told = pull_request(report_on(fast, made_at=WHEN, baseline=baseline_of(slower, version="1.0.0")))
    assert re.search(r"^\| latency p50 \| 0\.\d\d ms \| 0\.\d\d ms \| −0\.\d\d ms \(−50 %\) \|", told, re.MULTILINE)


def test_words_of_a_comparison_do_not_mix_with_the_status_of_the_gate() -> None:
    gated = pull_request(clean(comparison=comparison(compared(diff=0.05), a="bm25")))
    assert re.search(r"^\| nDCG@10 .* \| — \|$", gated, re.MULTILINE)
    assert "Against bm25: better, nDCG@10 +0.0500" in gated
    compared_only = pull_request(clean(verdict=None, comparison=comparison(compared(diff=0.05))))
    assert re.search(r"^\| nDCG@10 .* \| better \|$", compared_only, re.MULTILINE)


def test_improved_and_regressed_are_counted_and_kinds_listed() -> None:
    told = pull_request(clean(comparison=comparison(compared(diff=-0.05))))
    assert "**20 queries improved, 10 regressed**, 30 unchanged against before by nDCG@10." in told
    assert re.search(r"^\| comparative \| 20 \|", told, re.MULTILINE)
    assert re.search(r"^\| factual \| 40 \|", told, re.MULTILINE)


def test_the_worst_queries_are_folded_the_deepest_fall_first() -> None:
    deltas = {"q005": -0.9, "q001": -0.2, "q002": 0.4}
    told = pull_request(clean(comparison=comparison(compared(diff=-0.05, deltas=deltas))))
    folded = told.split("<summary>Worst queries: the 2 that fell most</summary>")[1].split("</details>")[0]
    assert re.findall(r"^\| (q\d+) \|", folded, re.MULTILINE) == ["q005", "q001"]
    assert "−0.9000" in folded


def test_questions_without_an_answer_are_listed() -> None:
    rankings = answered(skill=1.0)
    rankings[7] = Ranking("q007", (), None, "Unreachable: no route to host")
    told = pull_request(Report(healthy(rankings), WHEN))
    assert "<details><summary>1 query without an answer</summary>" in told
    assert "- q007 “question number 7”: Unreachable: no route to host" in told


def test_a_provisional_golden_set_is_said_to_be_so() -> None:
    found = healthy()
    setup = replace(found.setup, golden=replace(found.setup.golden, provisional=True))
    assert "· **provisional: 0 of 2,400 judgments confirmed" in pull_request(Report(replace(found, setup=setup), WHEN))
    assert "provisional" not in pull_request(clean())


@pytest.mark.parametrize("limit", [65_000, 20_000, 9_000])
def test_a_comment_is_never_longer_than_allowed_and_says_what_it_left_out(limit: int) -> None:
    rankings = [Ranking(one.query_id, (), None, "é| " * 400) for one in answered(skill=1.0)[:-5]] + answered(skill=1.0)[-5:]
    queries = tuple(Query(query.query_id, "long | text " * 80, query.metadata) for query in GOLDEN.queries)
    found = replace(healthy(rankings), queries=queries)
    checks = [
        Check("floor", "R@5", "fail", f"check {number}: " + "R@5 is below its floor " * 40, 0.1, 0.8, slice=f"topic={number}")
        for number in range(400)
    ]
    told = pull_request(clean(evaluation=found, verdict=verdict(*checks, word="fail")), limit=limit)
    assert len(told) <= limit
    assert told.startswith("<!-- ringtrue:report -->\n### ❌ FAIL")
    assert told.count("<details>") == told.count("</details>")
    if limit < 20_001:
        left_out = [int(number) for number in re.findall(r"_(\d+) more lines are left out here", told)]
        assert sum(left_out) > 0
    assert told.rstrip().endswith("</sub>")


def test_nothing_in_a_question_calls_people_or_breaks_the_table() -> None:
    queries = (Query("q000", "hi @team | see #1 <b> `x` https://evil.example", {}), *GOLDEN.queries[1:])
    told = pull_request(Report(replace(healthy(answered(skill=0.2)), queries=queries), WHEN))
    assert not re.search(r"(?<!\w)@\w|#\d|https://|<b>", told.replace("&#", ""))
