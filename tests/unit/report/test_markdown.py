"""The Markdown report."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from made import WHEN
from made_reports import GOLDEN, answered, clean, compared, comparison, healthy, judged_set, lost, verdict
from ringtrue.records import Query, Ranking
from ringtrue.report import Report, markdown, report_on
from ringtrue.verdict import Check, baseline_of

SECTIONS = [
    "Metrics summary", "Checks", "hybrid against baseline 1.0.0", "nDCG@10 by query_type", "Components",
    "Where relevant documents were lost", "Latency", "Failures", "Recommendations", "Per-query analysis", "Notes",
]  # fmt: skip


@pytest.fixture(scope="module")
def worse() -> str:
    """A run that got worse, with one question unanswered."""
    rankings = answered(skill=0.5, seed=9)
    rankings[3] = Ranking(rankings[3].query_id, (), None, "TimedOut: 30 s")
    now = healthy(rankings, losses=lost("not in any list", 30))
    return markdown(report_on(now, made_at=WHEN, baseline=baseline_of(healthy(), version="1.0.0")))


def test_the_verdict_comes_first_and_every_section_follows(worse: str) -> None:
    lines = worse.splitlines()
    assert lines[0] == "# Ringtrue evaluation: hybrid"
    assert lines[2].startswith("**❌ FAIL: ")
    headings = [re.sub(r" \(\d+\)$", "", line[3:]) for line in lines if line.startswith("## ")]
    assert headings == SECTIONS


def test_it_names_everything_needed_to_repeat_it(worse: str) -> None:
    setup = healthy().setup
    for expected in (
        f"- **Date**: {WHEN}",
        "- **Baseline version**: 1.0.0",
        f"made-v1.0.0 (content {setup.golden.content_hash[:12]}), profile general, {setup.golden.reviewed}",
        "- **Split**: all; relevant means grade 1 or more",
        "- **Corpus**: c0ffee",
        "  - Embedding model: all-MiniLM-L6-v2",
        "  - Chunking: fixed\\_512\\_50".replace("\\", ""),
        "  - Reranking: cross",
        "  - Fusion: rrf",
        "60 queries, 20 hits each",
    ):
        assert expected in worse


def test_the_summary_has_the_columns_and_words_of_the_specification(worse: str) -> None:
    assert "| measure | baseline | current | Δ | interval | status |" in worse
    row = next(line for line in worse.splitlines() if line.startswith("| R@5 |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert (cells[1], cells[5]) == ("1.0000", "❌ FAIL")
    assert re.fullmatch(r"−\d\.\d{4} \(−\d+\.\d %\)", cells[3])
    assert re.fullmatch(r"−\d\.\d{4} to −\d\.\d{4}", cells[4])
    assert re.search(
        r"^\| latency p95 \| \d+ ms \| \d+ ms \| [+−][\d.]+ ms \([+−][\d.]+ %\) \| — \| ✅ PASS", worse, re.MULTILINE
    )
    assert re.search(r"^\| floor \| R@5 \| ❌ FAIL \| R@5 below its floor: 0\.\d{4} &lt; 0\.8000", worse, re.MULTILINE)
    assert "**Overall**: ❌ FAIL" in worse


def test_degraded_within_tolerance_is_told_apart_from_pass_and_fail() -> None:
    checks = [
        Check("drop", "R@5", "pass", "R@5 rose", 0.84, 0.779, 0.82, -0.0244),
        Check("drop", "P@5", "degraded", "P@5 fell by 2.9 %", 0.66, 0.646, 0.68, 0.0294),
    ]
    told = markdown(clean(verdict=verdict(*checks)))
    assert "| ⚠️ DEGRADED within tolerance |" in told
    # What no rule looked at has no status; the words of the comparison are in its own section.
    assert re.search(r"^\| nDCG@10 .* \| — \|$", told, re.MULTILINE)
    assert re.search(r"^\| nDCG@10 .* \| not enough evidence \|$", told, re.MULTILINE)
    assert "**Overall**: ✅ PASS: all 2 checks hold against baseline 1.0.0; 1 degraded within tolerance: P@5 −2.9 %" in told


def test_word_interval_and_p_of_a_slice_are_corrected_alike() -> None:
    open_one = compared(diff=0.05, word="not enough evidence", low=-0.01, p_adjusted=0.09)
    twins = compared(diff=0.0, wins=0, ties=60, losses=0)
    slices = {"query_type": {"factual": {"nDCG@10": open_one}, "comparative": {"nDCG@10": twins}}}
    told = markdown(clean(comparison=comparison(slices=slices)))
    part = told.split("## nDCG@10 by query_type")[1].split("\n## ")[0]
    assert re.search(r"^\| factual .* \| −0\.0100 to \+0\.0600 \| 0\.09 \| not enough evidence \|$", part, re.MULTILINE)
    assert re.search(r"^\| comparative .* \| not enough evidence \|$", part, re.MULTILINE)
    assert "p, interval and verdict are corrected for all values of the field. Slices do not affect" in part


def test_without_it_is_below_0_where_the_search_loses(worse: str) -> None:
    part = worse.split("## Components")[1].split("\n## ")[0]
    assert "| Only from it | Without it |" in part
    assert re.search(r"^\| bm25 \| channel .* \| −0\.\d{4} \(−0\.\d{4} to −0\.\d{4}\) \|$", part, re.MULTILINE)


def test_a_provisional_set_says_so() -> None:
    found = healthy()
    setup = replace(found.setup, golden=replace(found.setup.golden, provisional=True, judgments=637))
    told = markdown(Report(replace(found, setup=setup), WHEN))
    assert "**provisional: 0 of 637 judgments confirmed by a person**" in told
    assert "- **Baseline version**: none" in told


def test_of_a_large_set_the_worst_are_told_in_full_and_all_others_listed(worse: str) -> None:
    assert worse.count("### Query ") == 20
    assert "### Query q003: “question number 3”\n\n- **No answer**: TimedOut: 30 s" in worse
    assert "The other 40, the worst first" in worse
    named = set(re.findall(r"^### Query (\w+):|^\| (q\d+) \|", worse, re.MULTILINE))
    assert {one or other for one, other in named} == {query.query_id for query in GOLDEN.queries}
    assert worse.count("<details>") == worse.count("</details>") == 2


def test_a_question_shows_what_came_back_what_should_have_and_what_it_scored() -> None:
    small = judged_set(5)
    rankings = answered(golden=small, skill=0.0, seed=2)
    told = markdown(Report(healthy(rankings, golden=small, components=(), losses=()), WHEN))
    assert "All queries, the worst first" in told
    part = told.split("### Query ")[1]
    assert re.search(r"^- Retrieved: d\d+", part, re.MULTILINE)
    assert re.search(r"^- Expected: d\d+ \(grade 3, (rank \d+|missing)\)", part, re.MULTILINE)
    assert re.search(r"^- Recall: \d\.\d{4} \(R@10\)$", part, re.MULTILINE)
    assert re.search(r"^- nDCG: \d\.\d{4} \(nDCG@10\)$", part, re.MULTILINE)
    assert re.search(r"^- Latency: \d+(\.\d)? ms$", part, re.MULTILINE)


def test_failures_are_the_unanswered_and_those_behind_a_failed_check(worse: str) -> None:
    part = worse.split("## Failures")[1].split("\n## ")[0]
    assert "- **q003** “question number 3”: no answer: TimedOut: 30 s" in part
    assert re.search(r"behind the failed checks of R@5 \(floor, drop\)", part)
    none = markdown(clean()).split("## Failures")[1]
    assert none.startswith(" (0)\n\nEvery query was answered with something relevant in the first 10;")


def test_recommendations_come_with_their_evidence(worse: str) -> None:
    part = worse.split("## Recommendations")[1].split("\n## ")[0]
    assert re.search(r"Evidence \(vocabulary\): documents 30, share 0\.1\d+", part)


def test_trap_40_text_from_questions_and_errors_cannot_leave_its_place() -> None:
    evil = "x | </details> <img src=x onerror=alert(1)>\n# Title\n`code` @everyone"
    queries = (Query(GOLDEN.queries[0].query_id, evil, GOLDEN.queries[0].metadata), *GOLDEN.queries[1:])
    rankings = answered(skill=1.0)
    rankings[0] = Ranking(queries[0].query_id, (), None, evil)
    told = markdown(Report(replace(healthy(rankings), queries=queries), WHEN))
    assert "<img" not in told
    assert "\n# Title" not in told
    assert "@everyone" not in told
    assert told.count("<details>") == told.count("</details>")
    assert r"x \| &lt;/details&gt;" in told
