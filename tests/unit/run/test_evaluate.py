"""One retriever on one golden set, with every answer, its score, its latency and what became of failures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import ringtrue
from made import golden_set
from ringtrue.errors import CannotDecide, InputError
from ringtrue.measures import score
from ringtrue.records import GoldenSet, Query
from ringtrue.report import Report, headline
from ringtrue.report.machine_formats import record
from ringtrue.retrieve import Collection, answer_all
from ringtrue.run import DEFAULT_MEASURES, evaluate, open_run, save, usual_measures
from ringtrue.verdict import baseline_of, read_baseline, write_baseline

ORDER = ["pool", "spa", "breakfast", "parking", "dogs", "bikes", "refund", "towels", "late", "wifi"]


def always(text: str, k: int) -> list[str]:
    return ORDER[:k]


def test_a_plain_function_is_enough(golden: GoldenSet) -> None:
    found = evaluate(always, golden)
    assert tuple(found.metrics) == DEFAULT_MEASURES
    assert found.name == "always"
    assert len(found.rankings) == 6
    assert found.scores.per_query["q3"]["RR"] == 1 / 3


def test_a_query_without_text_is_not_asked(golden: GoldenSet) -> None:
    untold = replace(golden, queries=tuple(replace(query, text=" " * (query.query_id == "q2")) for query in golden.queries))
    with pytest.raises(CannotDecide, match=r"query '.*' of golden set '.*' has no text, so it cannot be asked \(\d of 6\)"):
        evaluate(always, untold)


def test_every_measure_of_the_requirement_is_there_per_query_with_mean_median_and_deviation(golden: GoldenSet) -> None:
    """Per query R@5, R@10, R@20, nDCG@10 and RR; aggregates mean, median, standard deviation, interval, per slice."""
    found = evaluate(always, golden)
    for name in ("R@5", "R@10", "R@20", "nDCG@10", "RR"):
        values = np.array([found.scores.per_query[query.query_id][name] for query in golden.queries])
        summary = found.scores.summary(name)
        assert summary.mean == pytest.approx(values.mean())
        assert summary.median == pytest.approx(np.median(values))
        assert summary.std == pytest.approx(values.std(ddof=1))
        low, high = found.intervals[name]
        assert low <= summary.mean <= high
    assert set(found.scores.by("query_type", "RR")) == {"facts", "house"}


def test_top_1_chunk_is_measured_on_the_shipped_hotel_set_if_the_search_names_its_passages() -> None:
    hotel = ringtrue.load("hotel")
    best = {query.text: query.metadata["top_1_chunk"] for query in hotel.queries}
    half = {query.text for query in hotel.queries[::2]}

    def search(text: str, k: int) -> list[dict[str, str]]:
        document = best[text].split(":chunk:")[0]
        return [{"id": document, "chunk": best[text] if text in half else f"{document}:chunk:9"}]

    assert evaluate(search, hotel, measures=["Top1Chunk"]).metrics == {"Top1Chunk": 0.5}


def test_a_set_in_a_format_without_a_scale_has_the_scale_of_its_grades(tmp_path: Path) -> None:
    """TREC writes -1 for "pooled but not judged", and grades above 3."""
    for name, text in (
        ("corpus.jsonl", '{"_id": "d1", "text": "an indoor pool"}\n{"_id": "d2", "text": "a spa"}\n'),
        ("queries.jsonl", '{"_id": "q1", "text": "pool"}\n'),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t4\nq1\td2\t-1\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert ringtrue.load(tmp_path).scale == (-1, 4)
    assert evaluate("bm25", tmp_path, measures=["RR"]).metrics == {"RR": 1.0}


def test_top_1_chunk_is_undefined_for_a_search_over_whole_documents() -> None:
    found = evaluate("bm25", "hotel", measures=["Top1Chunk", "RR"])
    assert np.isnan(found.metrics["Top1Chunk"])
    assert found.metrics["RR"] > 0
    assert any("Top1Chunk is undefined: the search names no chunks" in note for note in found.notes)
    report = Report(found, found.setup.recorded_at)
    assert headline(report) == "Top1Chunk is undefined for every query; not judged"
    rows = record(report)["per_slice"]["query_type"]
    assert sum(row["queries"] for row in rows.values()) == len(found.queries)


def test_chunks_of_another_form_than_declared_are_noted() -> None:
    hotel = ringtrue.load("hotel")
    best = {query.text: query.metadata["top_1_chunk"] for query in hotel.queries}

    def search(text: str, k: int) -> list[dict[str, str]]:
        document, _, part = best[text].partition(":chunk:")
        return [{"id": document, "chunk": f"{document}#{part}"}]

    found = evaluate(search, hotel, measures=["Top1Chunk"])
    assert any("Top1Chunk is 0 unless both are written alike" in note for note in found.notes)


def test_the_numbers_are_those_of_score_on_the_answers_that_serve(golden: GoldenSet, collection: Collection) -> None:
    """Trap 17: the harness calls what serves. Its rankings are those of search, one by one and in batches."""
    found = evaluate("rrf(bm25, fts5)", golden, collection=collection)
    live = collection.retriever("rrf(bm25, fts5)")
    for ranking in found.rankings:
        assert list(ranking.hits) == list(live.search(golden.query(ranking.query_id).text, k=found.setup.k))
    batch = answer_all(live, golden, k=found.setup.k)
    assert [r.hits for r in batch] == [r.hits for r in found.rankings]
    assert score(batch, golden, DEFAULT_MEASURES).aggregate == found.metrics


def test_trap_17_the_object_that_serves_is_the_object_that_is_asked(golden: GoldenSet) -> None:
    class Live:
        asked = 0

        def search(self, text: str, *, k: int = 10, scope: object = None) -> list[str]:
            self.asked += 1
            return ORDER[:k]

    live = Live()
    evaluate(live, golden, warmup=0)
    assert live.asked == len(golden.queries)


def test_a_failed_query_is_listed_and_left_out_and_never_a_zero(golden: GoldenSet) -> None:
    def search(text: str, k: int) -> list[str]:
        if text.startswith("cancel"):
            raise ConnectionError("the line is dead")
        return ORDER[:k]

    found = evaluate(search, golden, measures=["RR"], retries=0)
    assert found.failures == {"q6": "ConnectionError: the line is dead"}
    assert "q6" not in found.scores.per_query
    assert found.metrics["RR"] == pytest.approx(np.mean([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]))
    assert any("1 of 6 queries failed and are left out of every mean" in note for note in found.notes)
    as_zero = evaluate(search, golden, measures=["RR"], retries=0, failed="zero")
    assert as_zero.metrics["RR"] == pytest.approx(np.mean([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 0]))
    assert any("count as empty answers, as asked" in note for note in as_zero.notes)


def test_nothing_answered_is_no_number(golden: GoldenSet) -> None:
    def search(text: str, k: int) -> list[str]:
        raise RuntimeError("closed")

    with pytest.raises(CannotDecide, match="was answered: RuntimeError: closed"):
        evaluate(search, golden)


def test_warm_up_is_asked_and_not_counted(golden: GoldenSet) -> None:
    texts: list[str] = []

    def search(text: str, k: int) -> list[str]:
        texts.append(text)
        if len(texts) == 1:
            time.sleep(1.0)  # loading a model
        return ORDER[:k]

    found = evaluate(search, golden, warmup=1)
    assert len(texts) == 7
    assert max(found.latencies.values()) < 900


def test_replayed_answers_have_no_latency(golden: GoldenSet, tmp_path: Path) -> None:
    """Cached answers never enter latency: a lookup in a file says nothing about the search that made it."""
    (tmp_path / "old.run").write_text("".join(f"{q.query_id} Q0 pool 1 1.0 x\n" for q in golden.queries))
    by_id = replace(golden, queries=tuple(replace(query, text=query.query_id) for query in golden.queries))
    found = evaluate(ringtrue.connect({"kind": "run", "path": str(tmp_path / "old.run")}), by_id, allow=["depth"])
    assert found.latencies == {}
    assert np.isnan(found.latency.p95)
    assert any("no latency was measured" in note for note in found.notes)


def test_queries_are_routed_by_corpus_to_one_retriever_each(golden: GoldenSet) -> None:
    houses = tuple(
        Query(q.query_id, q.text, {"corpus": "water" if q.query_id in ("q1", "q2") else "house"}) for q in golden.queries
    )
    asked: dict[str, list[str]] = {"water": [], "house": []}

    def water(text: str, k: int) -> list[str]:
        asked["water"].append(text)
        return ["pool", "spa", "towels"]

    def house(text: str, k: int) -> list[str]:
        asked["house"].append(text)
        return ["breakfast", "parking", "dogs", "refund"]

    found = evaluate({"water": water, "house": house}, replace(golden, queries=houses), measures=["RR"], warmup=0)
    assert sorted(asked["water"]) == ["massage and sauna", "swimming pool lanes"]
    assert len(asked["house"]) == 4
    assert found.scores.per_query["q2"]["RR"] == 0.5
    assert found.name == "water · house"
    with pytest.raises(InputError, match="query 'q3' has corpus='house', which no retriever answers; routes: 'water'"):
        evaluate({"water": water}, replace(golden, queries=houses))


def test_a_share_of_the_queries_is_always_the_same_share(golden: GoldenSet) -> None:
    half = [evaluate(always, golden, sample=0.5).queries for _ in range(2)]
    assert half[0] == half[1]
    assert len(half[0]) == 3
    with pytest.raises(InputError, match=r"sample=1\.5 is not a share"):
        evaluate(always, golden, sample=1.5)


def test_session_context_is_off_and_passed_on_when_asked(golden: GoldenSet) -> None:
    told = replace(
        golden,
        queries=tuple(replace(query, metadata={"transcript_context": ["earlier", query.text]}) for query in golden.queries),
        slices=(),
    )
    heard: list[Any] = []

    def search(text: str, k: int, session: Sequence[str] | None = None) -> list[str]:
        heard.append(session)
        return ORDER[:k]

    evaluate(search, told, warmup=0)
    assert heard == [None] * 6
    heard.clear()
    evaluate(search, told, warmup=0, session=True)
    assert heard[0] == ["earlier", "swimming pool lanes"]
    with pytest.raises(InputError, match="always takes no session"):
        evaluate(always, told, session=True)


def test_a_set_with_a_scope_asks_each_query_within_its_own(golden: GoldenSet, tmp_path: Path) -> None:
    documents = tuple(replace(d, metadata={"side": "a" if d.doc_id < "m" else "b"}) for d in golden.documents)
    queries = tuple(
        replace(q, metadata={"side": "b" if q.query_id in ("q1", "q2", "q4", "q6") else "a"}) for q in golden.queries
    )
    scoped = replace(golden, documents=documents, queries=queries, scope="side", slices=(), corpus_hash=None)
    collection = Collection.create(tmp_path / "scoped")
    collection.ingest(documents)
    found = evaluate("bm25", scoped, collection=collection)
    assert all(hit.doc_id >= "m" for hit in found.ranking("q1").hits)
    assert all(hit.doc_id < "m" for hit in found.ranking("q3").hits)


def test_the_parts_of_a_set_are_asked_apart(golden: GoldenSet) -> None:
    many = replace(
        golden,
        queries=tuple(Query(f"n{n}", golden.queries[n % 6].text) for n in range(20)),
        judgments=tuple(replace(golden.judgments[0], query_id=f"n{n}") for n in range(20)),
        slices=(),
    )
    tuning, held_out = (evaluate(always, many, split=side) for side in ("tuning", "held_out"))
    assert (len(tuning.queries), len(held_out.queries)) == (16, 4)
    assert {q.query_id for q in tuning.queries}.isdisjoint(q.query_id for q in held_out.queries)
    assert held_out.setup.golden.split == "held_out"


def test_the_result_names_what_it_was_made_with(golden: GoldenSet, collection: Collection) -> None:
    found = evaluate("bm25(title=2)", golden, collection=collection, now=datetime(2026, 1, 4, 12, tzinfo=UTC))
    setup = found.setup
    assert found.name == "bm25(title=2)"
    assert setup.retriever == "bm25(language='english', tags=1, title=2)"
    assert setup.config["chunking"] == "fixed(overlap=50, tokens=512)"
    assert setup.recorded_at == "2026-01-04T12:00:00+00:00"
    assert (setup.golden.id, setup.golden.version, setup.golden.corpus_hash) == ("small", "small-v1.0.0", golden.corpus_hash)
    assert setup.machine
    assert setup.fingerprint


def test_the_sets_own_documents_are_indexed_on_first_use(golden: GoldenSet, own_cache: Path) -> None:
    found = evaluate("bm25", golden)
    assert found.metrics["RR"] == 1.0
    assert len(list((own_cache / "corpora").iterdir())) == 1
    evaluate("fts5", golden)
    assert len(list((own_cache / "corpora").iterdir())) == 1
    evaluate("bm25", golden, chunks="fixed(tokens=64, overlap=8)")
    assert len(list((own_cache / "corpora").iterdir())) == 2


def test_a_depth_below_a_measure_is_bad_input(golden: GoldenSet) -> None:
    with pytest.raises(InputError, match="k=5 is less than the rank 20 that measures look at"):
        evaluate(always, golden, k=5)


def test_usual_measures_look_no_deeper_than_the_hits_asked_for() -> None:
    assert usual_measures(None) == DEFAULT_MEASURES
    assert set(DEFAULT_MEASURES) - set(usual_measures(10)) == {"R@20"}


def test_intervals_hold_what_scipy_finds(golden: GoldenSet, collection: Collection) -> None:
    """The interval of a mean lies near the t interval where both are meant for the data."""
    from made import evaluation, golden_set
    from ringtrue.run.evaluator import intervals_of

    scores = evaluation(golden_set(200)).scores
    low, high = intervals_of(scores)["nDCG@10"]
    values = scores.of("nDCG@10")
    t_low, t_high = stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx((t_low, t_high), abs=0.01)


def test_intervals_do_not_depend_on_the_order_of_the_queries() -> None:
    hotel = ringtrue.load("hotel")
    turned = replace(hotel, queries=hotel.queries[::-1])
    assert evaluate("bm25", turned).intervals == evaluate("bm25", hotel).intervals


def test_perfect_scores_are_no_certainty(golden: GoldenSet) -> None:
    """Six of six perfect: a true mean of 0.54 would give that once in forty times."""
    found = evaluate(lambda text, k: ORDER[:k], golden, measures=["R@10", "R@20"], name="mine")
    low, high = found.intervals["R@10"]
    assert found.metrics["R@10"] == 1.0
    assert (low, high) == (pytest.approx(0.025 ** (1 / 6)), 1.0)


def test_further_passes_are_timed_and_change_no_score(tmp_path: Path) -> None:
    golden = golden_set(6)
    asked: list[str] = []

    def search(text: str, k: int) -> list[str]:
        asked.append(text)
        # Only the first answer to a question is right.
        wanted = next(query.query_id for query in golden.queries if query.text == text)
        first = asked.count(text) <= 1
        return [one.doc_id for one in golden.judgments if first and one.query_id == wanted] or ["d000"]

    found = evaluate(search, golden, passes=3, warmup=0, allow=["depth"])
    assert asked == [query.text for query in golden.queries] * 3
    assert found.metrics["R@5"] == 1.0
    assert {query: len(times) for query, times in found.timings.items()} == dict.fromkeys(found.latencies, 3)
    assert {query: times[0] for query, times in found.timings.items()} == found.latencies
    assert found.latency.count == 18
    again = open_run(save(found, tmp_path / "run").run_dir or tmp_path)
    assert again.timings == found.timings
    write_baseline(baseline_of(found), tmp_path / "baseline.json")
    kept = read_baseline(tmp_path / "baseline.json")
    assert {query: pytest.approx(times, abs=6e-4) for query, times in kept.timings.items()} == found.timings
    assert evaluate(search, golden, warmup=0, allow=["depth"]).repeats == {}
    with pytest.raises(InputError, match="passes=0 is too few"):
        evaluate(search, golden, passes=0)


@pytest.mark.parametrize("judged", ["BK-006", "bk 006", "bk-006x", "bk006", "kb-006"])
def test_a_judged_id_that_is_nearly_an_answered_one_is_named(tmp_path: Path, judged: str) -> None:
    table = tmp_path / "golden.csv"
    table.write_text(f"query,doc_id,relevance\nwho wrote it,{judged},3\nwho read it,bk-001,3\n")
    found = evaluate(lambda text, k: ["bk-001", "bk-006", "bk-007"], table)
    said = f"'{judged}' was never answered, but 'bk-006' was; check the spelling of the judged ids"
    assert said in found.notes


@pytest.mark.parametrize("judged", ["bk-008", "bk-0066", "novel"])
def test_other_numbers_and_other_words_are_no_misspelling(tmp_path: Path, judged: str) -> None:
    table = tmp_path / "golden.csv"
    table.write_text(f"query,doc_id,relevance\nwho wrote it,{judged},3\nwho read it,bk-001,3\n")
    found = evaluate(lambda text, k: ["bk-001", "bk-006", "bk-007"], table)
    assert not [note for note in found.notes if "never answered" in note]


def test_an_answered_id_that_another_query_judges_is_no_misspelling(tmp_path: Path) -> None:
    table = tmp_path / "golden.csv"
    table.write_text("query,doc_id,relevance\nwho wrote it,pools,3\nwho read it,pool,3\n")
    assert not [note for note in evaluate(lambda text, k: ["pool"], table).notes if "never answered" in note]


def test_grades_off_the_usual_scale_of_a_table_are_named(tmp_path: Path) -> None:
    table = tmp_path / "golden.csv"
    table.write_text("query,doc_id,relevance\nwho wrote it,a,9\nwho read it,b,-1\n")
    found = evaluate(lambda text, k: ["a", "b"], table)
    assert "grades go up to 9; the scale is taken as 0 to 9" in found.notes
    assert "grade -1 of document 'b' for query 'who read it' is negative and counts as not judged" in found.notes
    qrels = tmp_path / "deep.qrels"
    qrels.write_text("q1 0 a 4\nq2 0 b -1\n")
    judged = ringtrue.load(qrels)
    asked = replace(judged, queries=tuple(replace(query, text=query.query_id) for query in judged.queries))
    assert not [note for note in evaluate(lambda text, k: ["a", "b"], asked).notes if "scale" in note or "negative and" in note]
