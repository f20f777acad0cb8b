"""The HTML report without a browser: what it says, what it holds, and that nothing in it can break out."""

from __future__ import annotations

import base64
import hashlib
import html as markup
import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest

from made import WHEN, answers, evaluation, golden_set
from made_reports import GOLDEN, clean, comparison, healthy, lost, part, parts
from made_reports import compared as compared_measure
from made_reports import verdict as made_verdict
from ringtrue import charts
from ringtrue.records import Hit, Ranking
from ringtrue.report import Recommendation, Report, html
from ringtrue.report.formatting import page_signed as signed
from ringtrue.report.page import sections
from ringtrue.report.page.sides import QUERY, Sides
from ringtrue.run import Loss, Precondition
from ringtrue.verdict import Check, baseline_of, compare, gate

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '" onmouseover="alert(3)" x=\'',
    "line\u2028separator\u2029here",
    "\u202egnp.exe\u2066",
    "{{ 7 * 7 }}",
    "<!-- <script>",
    "javascript:alert(4)",
)


def text_of(page: str) -> str:
    """The page as a reader sees it, near enough: no script, no style, no tags."""
    page = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", markup.unescape(re.sub(r"<[^>]+>", " ", page)))


def data_of(page: str) -> Any:
    """What the script of the page will read."""
    (block,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    return json.loads(block)


def pair(queries: int = 40, **changes: Any) -> Report:
    """A good run against a bad one."""
    golden = golden_set(queries)
    before = evaluation(golden, answers(golden, skill=0.5), name="old")
    now = evaluation(golden, answers(golden, skill=0.9, seed=2), name="new", **changes)
    return Report(now, WHEN, other=before, comparison=compare(before, now, slices=("query_type",), resamples=1000))


# The verdict comes first, in plain words


@pytest.mark.parametrize(
    ("report", "word", "tone"),
    [
        (clean(), "PASS", "good"),
        (clean(verdict=made_verdict(word="fail")), "FAIL", "bad"),
        (clean(verdict=made_verdict(word="undecided")), "UNDECIDED", "unsure"),
        (clean(verdict=None, comparison=comparison(compared_measure(diff=0.2))), "Better", "good"),
        (clean(verdict=None, comparison=comparison(compared_measure(diff=-0.2))), "Worse", "bad"),
        (clean(verdict=None), "Not enough evidence", "unsure"),
        (clean(verdict=None, comparison=None), "Measured", "plain"),
    ],
)
def test_the_verdict_is_the_heading_of_the_page(report: Report, word: str, tone: str) -> None:
    page = html(report)
    assert re.search(rf'<section class="verdict {tone}".*?<h1 id="word">{word}</h1>', page, flags=re.DOTALL)
    assert page.index(f">{word}</h1>") < page.index("<table")


def test_the_hero_says_against_what_the_run_is_better() -> None:
    other = comparison(compared_measure(diff=0.05, p_adjusted=0.02, tests=3, level=0.05 / 3), a="bm25")
    words = text_of(html(clean(comparison=other)))
    assert "holds. Against bm25: better, nDCG@10 +0.0500 (0.9000" in words
    assert "98.33 % interval +0.0400 to +0.0600, adjusted p = 0.02 over" in words
    assert "The gate judged by baseline 1.0.0 ." in words


def test_a_change_without_enough_evidence_is_in_words_and_in_no_colour_of_news() -> None:
    unsure = compared_measure(diff=0.004)
    sides = Sides(clean(comparison=comparison(unsure, slices={"query_type": {"factual": {"nDCG@10": unsure}}})))
    assert sections.tiles(sides)[0]["tone"] == "plain"
    row = sections.measure_rows(sides)["rows"][0]
    assert (row["tone"], row["word"]["text"]) == ("plain", "not enough evidence")
    (panel,) = sections.slices(sides)
    sliced = next(row for row in panel["rows"] if row["value"] == "factual")
    assert (sliced["tone"], sliced["word"][2]) == ("plain", "not enough evidence")
    page = html(sides.report)
    assert "unclear" not in page
    assert "p, interval and verdict are corrected for all values of the field." in text_of(page)


def test_runs_that_scored_alike_have_the_word_that_json_has() -> None:
    golden = golden_set(20)
    one = evaluation(golden)
    words = text_of(html(Report(one, WHEN, comparison=compare(one, replace(one, name="again"), resamples=1000))))
    assert "Not enough evidence that again differs from bm25 by nDCG@10: all 20 differences are 0." in words
    assert words.count("~ not enough evidence") >= 8, "by every measure"


def test_numbers_of_one_kind_have_the_same_number_of_decimals() -> None:
    assert [signed(value) for value in (0.0781, -0.0005, -0.0002, 0.0)] == ["+0.078", "−0.001", "−0.000", "0.000"]


def test_commands_in_advice_are_set_as_code_and_cannot_be_markup() -> None:
    advice = Recommendation("judge-more", "Judge them (`ringtrue golden pool`) <b>now</b>.", {})
    page = html(clean(recommendations=(advice,)))
    assert "Judge them (<code>ringtrue golden pool</code>) &lt;b&gt;now&lt;/b&gt;." in page
    odd = html(clean(recommendations=(replace(advice, advice="one ` alone <i>"),)))
    assert "one ` alone &lt;i&gt;" in odd


def test_a_provisional_set_is_labelled_and_a_confirmed_one_is_not() -> None:
    confirmed = clean().evaluation
    setup = replace(confirmed.setup, golden=replace(confirmed.setup.golden, provisional=True))
    assert "Provisional: 0 of 2,400 judgments" in text_of(html(clean(evaluation=replace(confirmed, setup=setup))))
    assert "Provisional" not in text_of(html(clean()))


def test_what_is_unknown_is_a_dash_and_never_a_zero() -> None:
    golden = golden_set(10)
    silent = [replace(ranking, latency_ms=None) for ranking in answers(golden)]
    silent[3] = Ranking(silent[3].query_id, (), error="timed out")
    page = html(Report(evaluation(golden, silent), WHEN))
    words = text_of(page)
    assert "Not measured: these answers carry no times" in words
    assert "0.0 ms" not in words
    failed = next(row for row in data_of(page)["queries"] if row[0] == silent[3].query_id)
    assert failed[3] == [None] * 8
    assert failed[5] is None
    assert failed[7] == "timed out"
    row = re.search(rf'<tr data-q="{silent[3].query_id}">.*?</tr>', page, flags=re.DOTALL)
    assert row is not None
    assert text_of(row[0]).count("—") == 5  # four measures and the latency
    assert "failed" in text_of(row[0])


def test_a_check_shows_its_limit_its_change_and_the_queries_behind_it() -> None:
    fell = Check("drop", "R@5", "fail", "R@5 fell", 0.72, None, 0.9, 0.2, queries=tuple(f"q{n:03}" for n in range(9)))
    slow = Check("latency", "p95", "pass", "fine", 123.4, 500.0)
    page = html(clean(verdict=made_verdict(slow, fell, word="fail")))
    words = text_of(page[page.index('<section id="checks"') :])
    assert words.index("Fail R@5 fell") < words.index("Pass p95")  # what needs attention comes first
    assert "0.720 — 0.900 −20 %" in words
    assert "123 ms 500 ms — —" in words
    assert 'href="#q=q005"' in page
    assert "Queries behind it: q000 , q001 , q002 , q003 , q004 , q005 , q006 , q007 , q008" in words
    assert "more" not in words[: words.index("Pass p95")]


# The sections


def test_differences_of_every_measure_stand_beside_their_intervals() -> None:
    report = pair()
    assert report.comparison is not None
    rows = sections.measure_rows(Sides(report))["rows"]
    assert [row["name"] for row in rows] == list(report.comparison.measures)
    first, found = rows[0], report.comparison.measures["nDCG@10"]
    assert first["diff"] == f"{found.diff:+.3f}"
    assert f"interval {found.low:+.3f} to {found.high:+.3f}" in first["chart"]
    assert 'class="zero"' in first["chart"]


def test_without_a_comparison_the_means_stand_with_their_intervals() -> None:
    found = replace(evaluation(golden_set(20)), intervals={"nDCG@10": (0.41, 0.62)})
    told = sections.measure_rows(Sides(Report(found, WHEN)))
    assert told["rows"][0]["interval"] == "0.410 to 0.620"
    assert told["rows"][1]["interval"] == "—"
    assert 'class="zero"' not in told["rows"][0]["chart"]


def test_more_of_a_measure_that_should_be_low_is_bad_news() -> None:
    assert sections.tone_of("nDCG@10", 0.1) == "good"
    assert sections.tone_of("Diversity@5", 0.1) == "bad"
    assert sections.tone_of("nDCG@10", math.nan) == "plain"


def test_slices_carry_their_counts_and_their_change() -> None:
    (panel,) = sections.slices(Sides(pair(40)))
    assert panel["field"] == "query_type"
    assert {row["value"]: row["count"] for row in panel["rows"]} == {"comparative": 14, "factual": 26}
    assert all(row["diff"].startswith("+") for row in panel["rows"])
    few = sections.slices(Sides(pair(12)))[0]["rows"]
    assert {row["value"]: row["few"] for row in few} == {"comparative": True, "factual": True}


def test_a_step_that_harms_shows_what_would_be_gained_without_it() -> None:
    harmful = part("rrf >> rerank", "stage", skill=0.3, seed=9)
    told = sections.components(Sides(clean(evaluation=healthy(components=parts(harmful)))))
    rows = {row["name"]: row for row in told["rows"]}
    # Leave-one-out stands in the row of its channel.
    assert set(rows) == {"bm25", "dense", "hybrid (rrf)", "hybrid (rrf) >> rerank"}
    assert rows["hybrid (rrf) >> rerank"]["without"].startswith("+")
    assert rows["hybrid (rrf) >> rerank"]["tone"] == "bad"
    assert re.findall(r">([\d.]+)</text>", told["axis"]) == ["0", "0.25", "0.5", "0.75", "1"]
    assert rows["bm25"]["without"].startswith("−")
    assert rows["bm25"]["given"]["rate"] == "70 %"


def test_the_waterfall_adds_up() -> None:
    losses = lost("below k", 3, rank=12)
    found = healthy(answered_but_for(losses), losses=losses)
    rows = sections.blame(Sides(Report(found, WHEN)))["rows"]
    counts = {row["name"]: int(row["count"].replace("−", "-")) for row in rows}
    assert counts == {"Relevant documents": 180, "Below k": -3, "Found in the first 10": 177}


def test_a_document_found_by_the_wrong_passage_is_not_counted_twice() -> None:
    losses = lost("wrong chunk", 4, rank=1)
    rows = sections.blame(Sides(Report(healthy(losses=losses), WHEN)))["rows"]
    assert {row["name"]: row["count"] for row in rows} == {
        "Relevant documents": "180",
        "Wrong chunk": "−4",
        "Found in the first 10": "176",
    }


def answered_but_for(losses: Any) -> list[Ranking]:
    """Answers that hold every relevant document in front, but for the lost ones."""
    gone = {(loss.query_id, loss.doc_id) for loss in losses}
    wanted: dict[str, list[str]] = {query.query_id: [] for query in GOLDEN.queries}
    for judgment in GOLDEN.judgments:
        if judgment.grade > 0 and (judgment.query_id, judgment.doc_id) not in gone:
            wanted[judgment.query_id].append(judgment.doc_id)
    return [Ranking(query, tuple(map(Hit, docs)), latency_ms=5.0) for query, docs in wanted.items()]


def test_latencies_of_other_machines_are_shown_but_not_compared() -> None:
    golden = golden_set(20)
    before = evaluation(golden, answers(golden, seed=3), name="old", setup={"machine": "another"})
    words = text_of(html(Report(evaluation(golden), WHEN, other=before)))
    assert "different machines" in words
    assert "from" not in words[words.index("Latency p95") : words.index("Measures")]


def test_recommendations_come_with_their_evidence() -> None:
    advice = Recommendation("drop-channel", "Drop graph.", {"share of hits": 0.031, "queries": 12}, ("q001",))
    words = text_of(html(clean(recommendations=(advice,))))
    assert "Drop channel Drop graph. share of hits 0.031 queries 12 Queries behind it: q001" in words


def test_everything_needed_to_repeat_it_is_there() -> None:
    found = evaluation(golden_set(8), name="rrf(bm25, dense('it'))", measures=["nDCG@10", "P(rel=2)@5"])
    golden = replace(found.setup.golden, split="held_out")
    met = (Precondition("index", "met", "all there"), Precondition("depth", "not checked", "out of sight"))
    found = replace(found, setup=replace(found.setup, golden=golden, preconditions=met, config={"channels": ["bm25", "dense"]}))
    page = html(Report(found, WHEN, notes=("kept in mind",)))
    words = text_of(page)
    assert (
        "ringtrue eval --golden made --retriever \"rrf(bm25, dense('it'))\" --measure nDCG@10 --measure 'P(rel=2)@5' "
        "-k 20 --split held_out"
    ) in words
    assert "met index all there" in words
    assert "not checked depth out of sight" in words
    assert "Channels bm25, dense" in words
    assert "Kept in mind" in words
    assert found.setup.golden.content_hash in words


# The two sides


def test_rankings_of_a_baseline_stand_beside_those_of_the_run() -> None:
    golden = golden_set(20)
    before, now = evaluation(golden, answers(golden, seed=5)), evaluation(golden, name="now")
    baseline = baseline_of(before, version="2.0.0")
    page = data_of(html(Report(now, WHEN, baseline=baseline, verdict=gate(now, baseline=baseline))))
    assert page["names"] == ["now", "baseline 2.0.0"]
    row = page["queries"][0]
    shown = [page["docs"][hit if isinstance(hit, int) else hit[0]] for hit in row[9]]
    assert shown == [hit.doc_id for hit in before.rankings[0].hits[:10]]


def test_a_baseline_of_another_golden_set_is_no_other_side() -> None:
    now = evaluation(golden_set(20))
    baseline = baseline_of(evaluation(golden_set(20, seed=8)), version="1.0.0")
    assert Sides(Report(now, WHEN, baseline=baseline)).before_name is None


def test_two_runs_of_the_same_name_can_be_told_apart() -> None:
    golden = golden_set(12)
    sides = Sides(Report(evaluation(golden), WHEN, other=evaluation(golden, answers(golden, seed=9))))
    assert sides.before_name == "bm25 (before)"


# What the script reads


def test_the_data_of_a_query_can_be_read_by_position() -> None:
    report = pair(20)
    golden = report.evaluation.qrels.to_dict()["q000"]
    wanted = next(iter(golden))
    losses = (Loss("q000", wanted, 3, "cut by fusion", 10, 33, {"bm25": 40, "rrf": 33}),)
    page = data_of(html(replace(report, evaluation=replace(report.evaluation, losses=losses))))
    row = dict(zip(QUERY, page["queries"][0], strict=True))
    assert (row["id"], row["text"]) == ("q000", "question number 0")
    assert [page["values"][0][row["slices"][0]]] == ["comparative"]
    assert row["now"][0] == pytest.approx(report.evaluation.scores.per_query["q000"]["nDCG@10"], abs=5e-5)
    assert [page["docs"][hit[0]] for hit in row["hits"]] == [hit.doc_id for hit in report.evaluation.rankings[0].hits]
    assert [page["steps"][row["hits"][0][1]], row["hits"][0][2]] == ["bm25", 1]
    blamed = next(entry for entry in row["missing"] if page["docs"][entry[0]] == wanted)
    assert page["stages"][blamed[2]][0] == "cut by fusion"
    assert [blamed[3], *blamed[4:]] == [33, page["steps"].index("bm25"), 40, page["steps"].index("rrf"), 33]
    grades = dict(zip(row["grades"][::2], row["grades"][1::2], strict=True))
    assert {page["docs"][doc]: grade for doc, grade in grades.items()}.items() <= golden.items()


def test_rows_without_a_script_are_the_worst_ones_failed_first() -> None:
    golden = golden_set(80)
    rankings = answers(golden)
    rankings[70] = Ranking(rankings[70].query_id, (), error="refused")
    found = evaluation(golden, rankings)
    page = html(Report(found, WHEN))
    ids = re.findall(r'<tr data-q="([^"]+)">', page)
    assert len(ids) == 50
    assert ids[0] == "q070"
    values = [found.scores.per_query[query]["nDCG@10"] for query in ids[1:]]
    assert values == sorted(values)
    rest = [found.scores.per_query[query]["nDCG@10"] for query in found.scores.query_ids if query not in ids]
    assert max(values) <= min(rest)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_documents_or_queries_bring_along_can_break_out(text: str) -> None:
    golden = golden_set(6, 12)
    queries = tuple(
        replace(query, query_id=f"{text}{n}", text=text, metadata={"query_type": text})
        for n, query in enumerate(golden.queries)
    )
    names = {query.query_id: new.query_id for query, new in zip(golden.queries, queries, strict=True)}
    documents = tuple(replace(one, doc_id=f"{text}{one.doc_id}", title=text) for one in golden.documents)
    judgments = tuple(
        replace(one, query_id=names[one.query_id], doc_id=f"{text}{one.doc_id}", grade=1) for one in golden.judgments
    )
    hostile = replace(golden, queries=queries, documents=documents, judgments=judgments, id="made", version="1.0.0")
    found = evaluation(hostile, name=text, notes=(text,))
    page = html(Report(found, WHEN, title=text, notes=(text,), recommendations=(Recommendation(text, text, {text: text}),)))
    clean_page = html(Report(evaluation(golden), WHEN, title="title"))
    for tag in ("<script", "</script", "<img", "<iframe", "<svg xmlns"):
        assert page.count(tag) == clean_page.count(tag), tag
    bare = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    # Within tags, a text may only stand inside a quoted attribute: without those nothing of it is left.
    tags = "".join(re.findall(r"<[^>]*>", re.sub(r'"[^"]*"', '""', bare)))
    assert not re.search(r"\son\w+\s*=", tags)
    assert "alert" not in tags
    data = data_of(page)
    assert [row[0] for row in data["queries"]] == [query.query_id for query in queries]
    assert text in data["titles"]
    assert not re.search("[<>&\u2028\u2029]", re.findall(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[0])


def test_trap_33_half_of_a_character_pair_does_not_make_the_page_unwritable() -> None:
    golden = golden_set(3, 6)
    queries = (replace(golden.queries[0], text="half \ud83d here"), *golden.queries[1:])
    page = html(Report(evaluation(replace(golden, queries=queries)), WHEN))
    assert "half \ufffd here" in page.encode("utf-8").decode("utf-8")


# One file, alone


def test_the_page_names_no_other_place() -> None:
    page = html(clean())
    addresses = set(re.findall(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]{2,}[^\s\"'<)]*", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a format, which nobody fetches
    assert not re.findall(r"<(?:link|script|img|iframe)\b[^>]*\b(?:src|href)=\"(?!data:)", page)
    assert not re.search(r"@import|url\(", page)


def test_the_policy_allows_exactly_the_style_and_the_script_of_the_page() -> None:
    page = html(clean())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    policy = markup.unescape(policy)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert not re.search(r"<[^>]+\sstyle=", page)


def test_the_same_report_gives_the_same_page() -> None:
    assert html(pair(12)) == html(pair(12))


def test_72_queries_with_20_hits_stay_below_600_kilobytes() -> None:
    golden = golden_set(72)
    titled = replace(golden, documents=tuple(replace(one, title=f"{one.title}: {'words ' * 9}") for one in golden.documents))
    before, now = evaluation(titled, answers(golden, seed=4), name="old"), evaluation(titled)
    page = html(Report(now, WHEN, other=before))
    assert len(data_of(page)["queries"][0][8]) == 20
    assert len(page.encode()) < 600_000


# Charts


def test_every_chart_says_what_it_shows() -> None:
    page = html(pair())
    charts_ = re.findall(r"<svg class=\"chart[^>]*>", page)
    assert len(charts_) > 10
    for chart in charts_:
        assert 'aria-hidden="true"' in chart or re.search(r'role="img" aria-label="[^"]{4,}"', chart)


def test_bars_above_and_below_zero_have_their_own_colour_whichever_way_is_better() -> None:
    more, less = (charts.per_query([0.4, 0.1, -0.2], better=better, label="x") for better in (1, -1))
    assert (more.count("M"), less.count("M")) == (3, 3)
    assert re.findall(r'bars (\w+)" d="([^"]*)"', more)[0][1].count("M") == 2
    assert re.findall(r'bars (\w+)" d="([^"]*)"', less)[0] == ("good", re.findall(r'bars bad" d="([^"]*)"', more)[0])


@pytest.mark.parametrize("value", [math.nan, 0.0])
def test_a_chart_without_a_value_draws_no_dot(value: float) -> None:
    drawn = charts.interval(charts.Scale(0.0, 1.0), value, math.nan, math.nan, tone="plain", label="x")
    assert ("dot" in drawn) == (not math.isnan(value))
    assert "nan" not in drawn


def test_a_scale_without_values_is_none_and_one_value_gets_room() -> None:
    assert charts.Scale.over([math.nan]) is None
    scale = charts.Scale.over([0.5])
    assert scale is not None
    assert scale.at(0.5) == pytest.approx(50)
