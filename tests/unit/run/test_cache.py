"""The same result is not made twice, another ingredient is another result, and a crash costs nothing."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from made import evaluation, golden_set
from ringtrue.records import Document, GoldenSet
from ringtrue.retrieve import Collection
from ringtrue.retrieve.channels.bm25 import Bm25
from ringtrue.run import evaluate, evaluator
from ringtrue.run.cache import AnswerJournal, ResultCache

MEASURES = ["nDCG@5", "RR"]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that bm25 is asked."""
    texts: list[str] = []
    real = Bm25.search

    def search(self: Any, text: str, **options: Any) -> Any:
        texts.append(text)
        return real(self, text, **options)

    monkeypatch.setattr(Bm25, "search", search)
    return texts


def test_the_second_evaluation_comes_from_the_cache_and_asks_nothing(
    golden: GoldenSet, collection: Collection, asked: list[str]
) -> None:
    first = evaluate("bm25", golden, collection=collection, measures=MEASURES)
    before = len(asked)
    second = evaluate("bm25", golden, collection=collection, measures=MEASURES)
    assert (first.cached, second.cached) == (False, True)
    assert before >= 6
    assert len(asked) == before
    assert second.rankings == first.rankings
    assert second.metrics == first.metrics
    assert second.latencies == first.latencies  # measured then; reading the cache is nobody's latency
    assert second.setup.recorded_at == first.setup.recorded_at


def test_two_ways_to_write_one_retriever_share_a_result(golden: GoldenSet, collection: Collection) -> None:
    evaluate("bm25", golden, collection=collection, measures=MEASURES)
    assert evaluate("bm25(title=3)", golden, collection=collection, measures=MEASURES).cached


def another_retriever(golden: GoldenSet, collection: Collection) -> Any:
    return evaluate("bm25(title=1)", golden, collection=collection, measures=MEASURES)


def another_corpus(golden: GoldenSet, collection: Collection) -> Any:
    collection.ingest([*golden.documents, Document("sauna", "a sauna by the sea")])
    return evaluate("bm25", golden, collection=collection, measures=MEASURES)


def another_judgment(golden: GoldenSet, collection: Collection) -> Any:
    judgments = (replace(golden.judgments[0], grade=2), *golden.judgments[1:])
    return evaluate("bm25", replace(golden, judgments=judgments), collection=collection, measures=MEASURES)


def another_measure(golden: GoldenSet, collection: Collection) -> Any:
    return evaluate("bm25", golden, collection=collection, measures=["nDCG@5"])


def another_depth(golden: GoldenSet, collection: Collection) -> Any:
    return evaluate("bm25", golden, collection=collection, measures=MEASURES, k=50)


def another_version(golden: GoldenSet, collection: Collection) -> Any:
    return evaluate("bm25", golden, collection=collection, measures=MEASURES, version="tuesday")


def told_not_to(golden: GoldenSet, collection: Collection) -> Any:
    return evaluate("bm25", golden, collection=collection, measures=MEASURES, cache=False)


@pytest.mark.parametrize(
    "change",
    [another_retriever, another_corpus, another_judgment, another_measure, another_depth, another_version, told_not_to],
)
def test_trap_15_another_ingredient_is_another_result(
    golden: GoldenSet, collection: Collection, change: Callable[[GoldenSet, Collection], Any]
) -> None:
    """A key without the retriever or the corpus serves yesterday's numbers for today's system."""
    evaluate("bm25", golden, collection=collection, measures=MEASURES)
    assert change(golden, collection).cached is False


def test_trap_15_changed_code_is_another_result(
    golden: GoldenSet, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate("bm25", golden, collection=collection, measures=MEASURES)
    monkeypatch.setattr(evaluator, "code_hash", lambda: "other code")
    assert evaluate("bm25", golden, collection=collection, measures=MEASURES).cached is False


def test_trap_15_what_cannot_be_seen_is_never_served_from_the_cache(golden: GoldenSet) -> None:
    """A function may read a database that changed meanwhile; only the user can vouch for it, with a version."""
    answers = itertools.cycle([["pool"], ["spa"]])

    def search(text: str, k: int) -> list[str]:
        return next(answers)

    options: dict[str, Any] = {"measures": ["RR"], "warmup": 0}
    assert [evaluate(search, golden, **options).cached for _ in range(2)] == [False, False]
    assert [evaluate(search, golden, version="1", **options).cached for _ in range(2)] == [False, True]
    assert evaluate(search, golden, version="2", **options).cached is False


def test_a_result_with_failed_queries_is_not_kept(golden: GoldenSet) -> None:
    def search(text: str, k: int) -> list[str]:
        if text.startswith("massage"):
            raise ValueError("no")
        return ["pool"]

    for _ in range(2):
        found = evaluate(search, golden, measures=["RR"], version="1")
        assert found.cached is False
        assert list(found.failures) == ["q2"]


def test_a_damaged_entry_is_a_miss(golden: GoldenSet, collection: Collection, own_cache: Path) -> None:
    evaluate("bm25", golden, collection=collection, measures=MEASURES)
    (entry,) = (own_cache / "evaluations").iterdir()
    (entry / "scores.jsonl").write_text("not json\n")
    assert evaluate("bm25", golden, collection=collection, measures=MEASURES).cached is False
    assert evaluate("bm25", golden, collection=collection, measures=MEASURES).cached is True


def test_the_oldest_results_go_when_there_are_too_many(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path, limit=1)
    for number in range(3):
        cache.put(f"key{number}", evaluation(golden_set(3)))
    assert [item.name for item in tmp_path.iterdir()] == ["key2"]  # the newest stays whatever its size


def test_an_interrupted_evaluation_goes_on_where_it_stopped(
    golden: GoldenSet, collection: Collection, asked: list[str]
) -> None:
    """Resume. The answers given before the interruption are not asked for again."""
    whole = evaluate("rrf(bm25, fts5)", golden, collection=collection, measures=MEASURES, components=True, cache=False)
    asked.clear()

    class Stop(evaluator.Watcher):
        def __init__(self) -> None:
            super().__init__(step=self.count)
            object.__setattr__(self, "steps", 0)

        def count(self, number: int) -> None:
            object.__setattr__(self, "steps", self.steps + number)  # type: ignore[attr-defined]
            if self.steps == 3:  # type: ignore[attr-defined]
                raise KeyboardInterrupt

    options: dict[str, Any] = {"collection": collection, "measures": MEASURES, "components": True, "warmup": 0}
    with pytest.raises(KeyboardInterrupt):
        evaluate("rrf(bm25, fts5)", golden, watcher=Stop(), **options)
    given = set(asked)
    assert 3 <= len(given) < 6
    asked.clear()
    found = evaluate("rrf(bm25, fts5)", golden, **options)
    assert len(set(asked) & given) <= len(given) - 3
    assert any("answers come from an evaluation that was interrupted" in note for note in found.notes)
    assert [r.hits for r in found.rankings] == [r.hits for r in whole.rankings]
    assert [c.name for c in found.components] == [c.name for c in whole.components]
    assert [c.scores.aggregate for c in found.components] == [c.scores.aggregate for c in whole.components]
    assert found.losses == whole.losses


def test_a_line_cut_off_by_a_crash_is_asked_again(tmp_path: Path) -> None:
    from ringtrue.records import Hit, Ranking
    from ringtrue.run.ask import Answer

    journal = AnswerJournal(tmp_path / "answers.jsonl")

    def interrupted() -> None:
        with journal.writing() as note:
            note(Answer(Ranking("q1", (Hit("pool", 1.0),), 3.0)))
            note(Answer(Ranking("q2", (Hit("spa", 1.0),), 4.0)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    text = journal.file.read_text()
    journal.file.write_text(text[: len(text) - 20])
    assert list(journal.read()) == ["q1"]
    with journal.writing() as note:
        note(Answer(Ranking("q3", (Hit("dogs", 1.0),), 5.0)))
        assert list(journal.read()) == ["q1", "q3"]
    assert not journal.file.exists()


def test_trap_15_a_closure_a_partial_and_an_objects_state_are_other_retrievers(golden: GoldenSet) -> None:
    """With the same word for their state, what they were made with tells them apart."""

    def made(first: str) -> Callable[..., list[str]]:
        return lambda text, k: [first, "towels"]

    class Held:
        def __init__(self, first: str) -> None:
            self.first = first

        def search(self, text: str, *, k: int = 10) -> list[str]:
            return [self.first, "towels"]

    def plain(text: str, k: int, first: str = "pool") -> list[str]:
        return [first, "towels"]

    pairs = [
        (made("pool"), made("spa")),
        (Held("pool"), Held("spa")),
        (functools.partial(plain, first="pool"), functools.partial(plain, first="spa")),
    ]
    for one, other in pairs:
        options: dict[str, Any] = {"measures": ["RR"], "version": "1"}
        assert evaluate(one, golden, **options).cached is False
        assert evaluate(one, golden, **options).cached is True
        assert evaluate(other, golden, **options).cached is False


def test_trap_15_another_golden_version_is_another_result(golden: GoldenSet, collection: Collection) -> None:
    evaluate("bm25", golden, collection=collection, measures=MEASURES)
    found = evaluate("bm25", replace(golden, version="2.0.0"), collection=collection, measures=MEASURES)
    assert (found.cached, found.setup.golden.version) == (False, "small-v2.0.0")


def test_trap_15_another_field_to_route_by_is_another_result(golden: GoldenSet, collection: Collection) -> None:
    queries = tuple(replace(query, metadata={"corpus": "a", "topic": "b"}) for query in golden.queries)
    routed = replace(golden, queries=queries, slices=())
    options: dict[str, Any] = {"collection": collection, "measures": MEASURES}
    assert evaluate({"a": "bm25", "b": "fts5"}, routed, **options).cached is False
    assert evaluate({"a": "bm25", "b": "fts5"}, routed, route_by="topic", **options).cached is False


def test_trap_15_other_weights_of_a_reranker_are_another_result(
    golden: GoldenSet, collection: Collection, tmp_path: Path
) -> None:
    from unit.retrieve.tiny_models import tiny_bert

    model = tiny_bert(tmp_path / "model", "classifier", seed=1)
    options: dict[str, Any] = {"collection": collection, "measures": MEASURES}
    first = evaluate(f"bm25 >> rerank('{model}')", golden, **options)
    tiny_bert(model, "classifier", seed=2)
    second = evaluate(f"bm25 >> rerank('{model}')", golden, **options)
    assert second.cached is False
    assert second.setup.fingerprint != first.setup.fingerprint


@pytest.mark.parametrize("line", [b"null", b"5", b"{}", b"\xff\xfe", b'{"query_id": "q9", "hits": 3}'])
def test_a_damaged_journal_is_asked_again(tmp_path: Path, line: bytes) -> None:
    from ringtrue.records import Hit, Ranking
    from ringtrue.run.ask import Answer

    journal = AnswerJournal(tmp_path / "answers.jsonl")
    journal.file.write_bytes(line + b"\n")
    with journal.writing() as note:
        note(Answer(Ranking("q1", (Hit("pool", 1.0),), 3.0)))
        assert list(journal.read()) == ["q1"]


def test_a_cache_that_cannot_be_written_does_not_stop_an_evaluation(
    golden: GoldenSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("where a folder should be")
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "file"))
    assert evaluate(lambda text, k: ["pool"], golden, measures=["RR"], version="1").metrics["RR"] > 0


def test_an_evaluation_can_be_ended_while_it_still_indexes(golden: GoldenSet, collection: Collection, asked: list[str]) -> None:
    """Whoever cancels a job that is preparing does not wait until every document is indexed."""
    began: list[tuple[str, int]] = []

    class Ended(Exception):
        """Nobody wants the result any more."""

    def step(count: int) -> None:
        if began[-1][0] == "indexing":
            raise Ended

    watcher = evaluator.Watcher(start=lambda what, total: began.append((what, total)), step=step)
    with pytest.raises(Ended):
        evaluate("bm25", golden, collection=collection, measures=MEASURES, watcher=watcher)
    assert began == [("preparing", 0), ("indexing", len(collection))]
    assert asked == []
    again: list[str] = []
    whole = evaluator.Watcher(start=lambda what, total: again.append(what))
    assert evaluate("bm25", golden, collection=collection, measures=MEASURES, watcher=whole).metrics["RR"] > 0
    assert again == ["preparing", "indexing", "searching"], "what was left half-way is made again"
