"""The query log as callers use it."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError
from ringtrue.feedback import session_summaries
from ringtrue.log import QueryLog, link_all, quality_proxy, query_name, saturating
from ringtrue.log.capture import Namer
from ringtrue.records import Hit
from ringtrue.retrieve import as_retriever
from ringtrue.store import FeedbackEvent, LoggedQuery, Store

ID = re.compile(r"eq_\d{20}_[0-9a-f]{12}")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def log(store: Store) -> Iterator[QueryLog]:
    with QueryLog(store, project="shop") as opened:
        yield opened


def logged(log: QueryLog, store: Store) -> list[LoggedQuery]:
    assert log.flush(10)
    return store.queries(project="shop")


# ── the decorator ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_decorated_function_keeps_its_signature_and_its_very_answer(log: QueryLog, store: Store) -> None:
    answer = [("pool", 0.9), ("spa", 0.4)]

    @log.search(tool="shop", intent="navigate")
    def search(query: str, k: int = 10) -> list[tuple[str, float]]:
        """Find."""
        return answer

    assert search("pool", k=5) is answer
    assert search(query="spa") is answer
    assert (search.__name__, search.__doc__) == ("search", "Find.")
    assert list(inspect.signature(search).parameters) == ["query", "k"]
    first, second = logged(log, store)
    assert (first.query, second.query) == ("pool", "spa")
    assert ID.fullmatch(first.query_id)
    assert first.query_id < second.query_id
    assert (first.tool_name, first.intent, first.result_ids, first.scores) == ("shop", "navigate", ("pool", "spa"), (0.9, 0.4))
    assert (first.total_latency_ms or -1) >= 0
    assert first.quality_proxy_score == pytest.approx(0.40 * 0.65 + 0.25 * 0.9 + 0.20 * 0.4 + 0.15, abs=0.01)


def test_exceptions_pass_through_and_are_logged_as_errors_not_as_empty_answers(log: QueryLog, store: Store) -> None:
    problem = ValueError("index of ada@example.org is closed")

    @log.search(tool="shop")
    def search(text: str) -> list[str]:
        raise problem

    with pytest.raises(ValueError) as raised:
        search("pool")
    assert raised.value is problem
    (row,) = logged(log, store)
    assert row.fallback == "error: ValueError: index of [email] is closed"
    assert (row.degraded, row.result_ids, row.quality_proxy_score) == (True, (), None)


def test_async_functions_stay_async_and_fields_of_the_task_are_its_own(log: QueryLog, store: Store) -> None:
    @log.search(tool="agent")
    async def search(text: str) -> list[str]:
        await asyncio.sleep(0.02)
        return [text]

    async def one(session: str) -> list[str]:
        with log.context(session_id=session, user_id=f"user of {session}"):
            return await search(f"asked by {session}")

    async def all_of_them() -> list[list[str]]:
        return await asyncio.gather(*(one(f"s{number}") for number in range(5)))

    assert inspect.iscoroutinefunction(search)
    assert asyncio.run(all_of_them()) == [[f"asked by s{number}"] for number in range(5)]
    rows = logged(log, store)
    assert {row.query: (row.session_id, row.user_id) for row in rows} == {
        f"asked by s{number}": (f"s{number}", f"user of s{number}") for number in range(5)
    }
    assert all(row.total_latency_ms is not None and row.total_latency_ms >= 15 for row in rows)


def test_an_async_search_that_is_cancelled_is_cancelled(log: QueryLog, store: Store) -> None:
    @log.search(tool="agent")
    async def search(text: str) -> list[str]:
        await asyncio.sleep(30)
        return []

    async def stopped() -> None:
        task = asyncio.create_task(search("slow"))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stopped())
    assert [row.fallback for row in logged(log, store)] == ["error: CancelledError: "]


def test_methods_and_parameters_of_other_names(log: QueryLog, store: Store) -> None:
    class Shop:
        @log.search(tool="shop")
        def find(self, words: str) -> list[str]:
            return [words]

        @log.search(tool="shop", text="what")
        def look(self, where: str, what: str = "towel") -> list[str]:
            return [what]

    shop = Shop()
    shop.find("pool")
    shop.look("cellar", "lamp")
    assert [row.query for row in logged(log, store)] == ["pool", "lamp"]
    with pytest.raises(InputError, match="no parameter 'words'; it has text"):
        log.search(tool="shop", text="words")(lambda text: [])

    def blind() -> list[str]:
        return []

    with pytest.raises(InputError, match="takes no query"):
        log.search(tool="shop")(blind)


def test_answers_of_every_usual_shape(log: QueryLog, store: Store) -> None:
    class Document:
        def __init__(self, **facts: Any) -> None:
            vars(self).update(facts)

    answers: list[Sequence[Any]] = [
        [Hit("a", 0.5), Hit("b", 0.25)],
        [("a", 0.5), ("b", 0.25)],
        [{"doc_id": "a", "score": 0.5}, {"_id": "b", "_score": 0.25}],
        [{"document": {"id": "a"}, "score": 0.5}, {"document": {"id": "b"}, "score": 0.25}],
        [Document(id="a", score=0.5), Document(id="b", score=0.25)],
        [(Document(metadata={"id": "a"}), 0.5), (Document(metadata={"doc_id": "b"}), 0.25)],
        [Document(node=Document(node_id="a"), score=0.5), Document(node=Document(node_id="b"), score=0.25)],
    ]
    for answer in answers:
        with log.query("pool", tool="shop") as q:
            q.answer(answer)
    with log.query("pool", tool="shop", results=lambda found: found["hits"]) as q:
        q.answer({"hits": [("a", 0.5), ("b", 0.25)]})
    rows = logged(log, store)
    assert len(rows) == len(answers) + 1
    assert {(row.result_ids, row.scores) for row in rows} == {(("a", "b"), (0.5, 0.25))}


def test_scores_are_all_there_or_none_is_and_the_proxy_is_then_unknown(log: QueryLog, store: Store) -> None:
    for answer in (["a", "b"], [Hit("a", 0.5), Hit("b")], [("a", float("inf")), ("b", 1.0)], []):
        with log.query("pool", tool="shop") as q:
            q.answer(answer)
    rows = logged(log, store)
    assert [row.scores for row in rows] == [(), (), (), ()]
    assert [row.quality_proxy_score is None for row in rows] == [True, True, True, False]


@pytest.mark.parametrize("answer", [None, 7, {"hits": []}, iter([1]), [object()], "pool"])
def test_an_answer_that_cannot_be_read_is_counted_not_logged_as_empty_and_not_touched(
    log: QueryLog, store: Store, answer: Any
) -> None:
    @log.search(tool="shop")
    def search(text: str) -> Any:
        return answer

    assert search("pool") is answer
    if isinstance(answer, Iterator):
        assert next(answer) == 1  # not used up
    assert logged(log, store) == []
    assert (log.counts.accepted, log.counts.refused) == (1, 1)
    assert (log.problem or "").startswith("shop: ")


def test_generators_cannot_be_decorated(log: QueryLog) -> None:
    def search(text: str) -> Iterator[str]:
        yield text

    async def searching(text: str) -> Any:
        yield text

    for function in (search, searching):
        with pytest.raises(InputError, match="is a generator"):
            log.search(tool="shop")(function)


# ── the context manager ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_context_manager_knows_its_id_from_the_start(log: QueryLog, store: Store) -> None:
    with log.query("pool", tool="shop", session_id="s1", user_id="u1") as q:
        known = q.query_id
        q.answer([("a", 1.0)], mode="deep", flags={"rerank": "on"}, extraction_count=2)
    log.feedback(FeedbackEvent("ef_1", "click", "s1", "2026-03-01T12:00:00Z", project="shop", query_id=known, item_id="a"))
    (row,) = logged(log, store)
    assert row.query_id == known == q.query_id
    assert (row.session_id, row.user_id, row.mode, row.flags, row.extraction_count) == ("s1", "u1", "deep", {"rerank": "on"}, 2)
    assert [event.query_id for event in store.feedback(project="shop")] == [known]


def test_async_with(log: QueryLog, store: Store) -> None:
    async def search() -> None:
        async with log.query("pool", tool="shop") as q:
            await asyncio.sleep(0)
            q.answer(["a"])

    asyncio.run(search())
    assert [row.result_ids for row in logged(log, store)] == [("a",)]


def test_a_search_without_an_answer_is_counted_and_one_that_raises_is_logged(log: QueryLog, store: Store) -> None:
    with log.query("pool", tool="shop"):
        pass
    with pytest.raises(KeyError), log.query("spa", tool="shop"):
        raise KeyError("spa")
    assert [row.query for row in logged(log, store)] == ["spa"]
    assert log.counts.refused == 1


def test_a_field_that_does_not_exist_is_named_at_once(log: QueryLog) -> None:
    for wrong in (lambda: log.query("pool", tool="shop", sesion_id="s"), lambda: log.search(tool="shop", sesion_id="s")):
        with pytest.raises(InputError, match="no field 'sesion_id'; did you mean 'session_id'"):
            wrong()


# ── clicks ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_click_is_one_call_with_the_id_that_the_decorator_hands_out(log: QueryLog, store: Store) -> None:
    seen: list[str | None] = []

    @log.search(tool="shop")
    def search(text: str) -> list[str]:
        seen.append(log.query_id)
        return ["pool", "spa"]

    with log.context(session_id="s1", user_id="ann"):
        search("water")
        assert log.click(str(log.query_id), "spa")
    assert log.signal("dwell", str(log.query_id), "spa", session_id="s2", seconds=42)
    (row,) = logged(log, store)
    assert seen == [row.query_id]
    click, dwell = store.feedback(project="shop")
    assert (click.event_type, click.query_id, click.item_id, click.session_id, click.user_id, click.actor) == (
        "click", row.query_id, "spa", "s1", "ann", "person",
    )  # fmt: skip
    assert (dwell.event_type, dwell.session_id) == ("dwell", "s2")
    assert dwell.metadata == {"seconds": 42, "linked_by": "given", "retriever": None}
    assert click.rank_in_results == dwell.rank_in_results == 2
    assert link_all([click, dwell], [row]) == [click, dwell]


def test_a_click_that_knows_no_session_is_of_its_searchs_session(log: QueryLog, store: Store) -> None:
    with log.query("water", tool="shop", session_id="s1") as search:
        search.answer(["pool"])
    log.click(search.query_id, "pool")
    rows = logged(log, store)
    (event,) = link_all(store.feedback(project="shop"), rows)
    assert (event.session_id, event.rank_in_results) == ("s1", 1)
    (summary,) = session_summaries(rows, store.feedback(project="shop"))
    assert (summary.session_id, summary.selected) == ("s1", 1)


def test_a_click_is_stored_with_the_session_and_rank_of_its_search(log: QueryLog, store: Store) -> None:
    with log.query("water", tool="shop", session_id="s1") as search:
        search.answer(["spa", "pool"])
    log.click(search.query_id, "pool")
    assert log.flush(30)
    log.click(search.query_id, "spa", session_id="s2")  # the search is in the store already
    log.click("eq_of_nobody", "pool")
    logged(log, store)
    first, second, lost = store.feedback(project="shop")
    assert (first.session_id, first.rank_in_results) == ("s1", 2)
    assert (second.session_id, second.rank_in_results) == ("s2", 1)
    assert (lost.session_id, lost.rank_in_results) == ("eq_of_nobody", -1)
    assert store.feedback(project="shop", session_id="s1") == [first]


def test_a_signal_that_says_nothing_is_refused(log: QueryLog) -> None:
    with pytest.raises(InputError, match="did you mean 'click'"):
        log.signal("clik", "eq_1", "pool")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seconds"):
        log.signal("dwell", "eq_1", "pool")


def test_every_task_has_the_id_of_its_own_search(log: QueryLog, store: Store) -> None:
    assert log.query_id is None

    @log.search(tool="agent")
    async def search(text: str) -> list[str]:
        await asyncio.sleep(0.01)
        return [text]

    async def one(text: str) -> tuple[str, str | None]:
        await search(text)
        return text, log.query_id

    async def all_of_them() -> list[tuple[str, str | None]]:
        return await asyncio.gather(*(one(f"q{number}") for number in range(5)))

    found = dict(asyncio.run(all_of_them()))
    assert {row.query: row.query_id for row in logged(log, store)} == found


# ── the watched retriever ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_watched_pipeline_logs_channels_stages_and_latencies(log: QueryLog, store: Store) -> None:
    from ringtrue.retrieve import Fusion, Retriever, Staged, as_retriever
    from ringtrue.retrieve.fuse import rrf
    from ringtrue.retrieve.stages import Top

    words = as_retriever(lambda text, k: [("a", 3.0), ("b", 2.0)], name="bm25")
    vectors = as_retriever(lambda text, k: [("b", 0.9), ("c", 0.8)], name="dense")
    fusion = Fusion([("bm25", words), ("dense", vectors)], lambda text, lists: rrf(lists), name="rrf")
    plain = Staged(fusion, [Top(2)])
    watched = log.watched(plain, tool="shop", fingerprint="rrf-7")
    assert isinstance(watched, Retriever)
    assert watched.search("pool", k=2) == plain.search("pool", k=2)
    (row,) = logged(log, store)
    assert row.result_ids == ("b", "a")
    assert row.channel_contributions == {"bm25": ("a", "b"), "dense": ("b",)}
    assert [(stage.name, stage.input, stage.output) for stage in row.stages] == [
        ("candidate", 4, 3), ("fusion", 3, 2), ("final-rank", 2, 2),
    ]  # fmt: skip
    assert set(row.stage_latency_ms) == {"candidate", "fusion", "final-rank"}
    assert row.retriever == "rrf-7"
    assert sum(row.stage_latency_ms.values()) <= (row.total_latency_ms or 0) * 1.01


def test_each_watched_pipeline_is_logged_under_its_whole_expression(log: QueryLog, store: Store, tmp_path: Path) -> None:
    from ringtrue.records import Document
    from ringtrue.retrieve import Collection, build, canonical

    documents = Collection.create(tmp_path / "documents")
    documents.ingest([Document("a", "a pool"), Document("b", "a spa")])
    written = [
        "rrf(bm25, fts5)", "rrf(bm25, fts5, k=10)", "weighted(bm25, fts5, w=[0.3, 0.7])", "rrf(bm25, fts5) >> top(1)", "bm25",
        "bm25(title=2)", "combsum(bm25, fts5)",
    ]  # fmt: skip
    for text in written:
        log.watched(build(text, documents)).search("pool")
    rows = logged(log, store)
    assert [row.retriever for row in rows] == [str(canonical(text)) for text in written]
    equal = {"bm25": 1.0, "fts5": 1.0}
    assert [row.fusion_weights for row in rows] == [equal, equal, {"bm25": 0.3, "fts5": 0.7}, equal, {}, {}, {}]


def test_watched_searches_are_told_apart_by_what_their_parts_are_made_of(log: QueryLog, store: Store) -> None:
    class Ranker:
        def __init__(self, weight: int) -> None:
            self.weight = weight

    class Search:
        def __init__(self, ranker: Ranker) -> None:
            self.ranker = ranker

        def search(self, text: str, k: int = 10) -> list[str]:
            return ["a"]

    def find(index: str) -> Any:
        def inside(text: str, k: int = 10) -> list[str]:
            return [index]

        return as_retriever(inside)

    def bound(text: str, k: int = 10, index: str = "") -> list[str]:
        return [index]

    made = (
        Search(Ranker(1)), Search(Ranker(2)), find("v1"), find("v2"),
        as_retriever(partial(bound, index="v1")), as_retriever(partial(bound, index="v2")),
    )  # fmt: skip
    for retriever in (*made, Search(Ranker(1)), find("v2")):
        log.watched(retriever).search("pool")
    names = [str(row.retriever) for row in logged(log, store)]
    assert len(set(names[:6])) == 6
    assert names[6:] == [names[0], names[3]]


def test_watched_searches_of_the_same_name_are_told_apart_by_their_code_and_settings(log: QueryLog, store: Store) -> None:
    class Shop:
        def __init__(self, boost: float) -> None:
            self.boost = boost

        def search(self, text: str, k: int = 10) -> list[str]:
            return ["a"]

    for retriever in (Shop(1.0), Shop(2.0), Shop(1.0)):
        log.watched(retriever).search("pool")
    log.watched(Shop(1.0), fingerprint="shop v7").search("pool")
    first, second, again, named = [str(row.retriever) for row in logged(log, store)]
    assert first == again
    assert first != second
    assert first.startswith("Shop#")
    assert second.startswith("Shop#")
    assert named == "shop v7"


def test_watched_searches_are_told_apart_by_slots_and_by_the_file_of_their_code(log: QueryLog, tmp_path: Path) -> None:
    class Slots:
        __slots__ = ("boost",)

        def __init__(self, boost: float) -> None:
            self.boost = boost

        def search(self, text: str, k: int = 10) -> list[str]:
            return ["a"]

    assert log.watched(Slots(1.0))._fields["retriever"] != log.watched(Slots(2.0))._fields["retriever"]
    one, other = (lambda text, k: ["a"]), (lambda text, k: ["b"])
    assert log.watched(one)._fields["retriever"] != log.watched(other)._fields["retriever"]
    names = []
    for number, boost in enumerate((1, 2, 1)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "shop.py").write_text(f"BOOST = {boost}\n\ndef find(text, k):\n    return [str(BOOST)]\n")
        spec = importlib.util.spec_from_file_location("shop", tmp_path / str(number) / "shop.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        names.append(log.watched(module.find)._fields["retriever"])
    assert names[0] == names[2] != names[1]


def test_the_folder_of_a_log_may_be_a_text(tmp_path: Path) -> None:
    with QueryLog(tmp_path / "store.sqlite", folder=str(tmp_path / "spool")) as log:
        with log.query("pool", tool="shop") as asked:
            asked.answer(["a"])
        assert log.flush(10)
        assert (log.counts.written, log.counts.reasons) == (1, {})
        assert (tmp_path / "spool").is_dir()


def test_ids_may_be_numbers_and_blank_items_are_refused_in_the_call(log: QueryLog, store: Store) -> None:
    with log.query("pool", tool="shop", user_id=7, session_id=8) as asked:
        asked.answer([(5, 0.9), (7, 0.2)])
    log.click(asked.query_id, 5, user_id=7)
    log.record(LoggedQuery("eq_1", "spa", "shop", "2026-03-01T12:00:00Z", result_ids=(5,), channel_contributions={"a": (5,)}))  # type: ignore[arg-type, dict-item]
    rows = logged(log, store)
    assert log.counts.reasons == {}
    found = {row.query: (row.result_ids, row.session_id, row.channel_contributions) for row in rows}
    assert found == {"pool": (("5", "7"), "8", {}), "spa": (("5",), None, {"a": ("5",)})}
    [event] = store.feedback(project="shop")
    assert (event.item_id, event.rank_in_results) == ("5", 1)
    for item in ("", " ", 1.5):
        with pytest.raises(InputError, match="item_id"):
            log.click(asked.query_id, item)  # type: ignore[arg-type]


def test_watching_leaves_the_observation_of_others_alone(log: QueryLog, store: Store) -> None:
    from ringtrue.retrieve import Fusion, as_retriever, observing
    from ringtrue.retrieve.fuse import rrf

    fusion = Fusion([("one", as_retriever(lambda text, k: ["a"]))], lambda text, lists: rrf(lists), name="rrf")
    with observing() as seen:
        log.watched(fusion).search("pool")
    assert [tree.name for tree in seen.trees] == ["rrf"]
    assert len(logged(log, store)) == 1


def test_a_watched_retriever_that_raises_raises(log: QueryLog, store: Store) -> None:
    def broken(text: str, k: int) -> list[str]:
        raise OSError("no route")

    with pytest.raises(OSError, match="no route"):
        log.watched(broken).search("pool")
    assert [row.fallback for row in logged(log, store)] == ["error: OSError: no route"]


# ── ids ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_ids_are_unique_and_ordered_under_threads() -> None:
    found: list[list[str]] = [[] for _ in range(8)]

    def work(mine: list[str]) -> None:
        mine.extend(query_name("the same words") for _ in range(500))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [name for mine in found for name in mine]
    assert len(set(every)) == len(every) == 4000
    assert all(mine == sorted(mine) for mine in found)
    assert all(map(ID.fullmatch, every))


def test_ids_stay_unique_and_ordered_when_the_clock_jumps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    namer = Namer("eq_")
    clock = [1_000_000_000, 1_000_000_000, 500_000_000, 500_001_000, 2_000_000_000]
    ticks = iter(clock)
    monkeypatch.setattr("time.time_ns", lambda: next(ticks))
    moments = [namer.tick() for _ in clock]
    monkeypatch.undo()
    names = [namer.name(moment, "pool") for moment in moments]
    assert names == sorted(set(names))
    assert [moment.clock for moment in moments] == [now // 1000 for now in clock]  # times are the clock's word


def test_a_forked_process_gives_other_ids() -> None:
    code = (
        "import os\nfrom ringtrue.log import query_name\nmoment = query_name.tick()\n"
        "child = os.fork()\nchild and os.wait()\nprint(query_name.name(moment, 'x'), flush=True)\n"
    )
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(out) == len(set(out)) == 2


# ── the proxy ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_proxy_is_the_weighted_sum_of_its_four_terms() -> None:
    assert quality_proxy([1.0] * 5, 0.0) == 1.0
    assert quality_proxy([1.0], 0.0) == pytest.approx(0.40 + 0.25 + 0.20 / 5 + 0.15)
    assert quality_proxy([0.0] * 5, 1e12) == pytest.approx(0.20)
    assert quality_proxy([0.2, 0.6], 500.0) == pytest.approx(0.40 * 0.4 + 0.25 * 0.2 + 0.20 * 0.4 + 0.15 * 0.5)
    assert quality_proxy([], 0.0) == 0.15


def test_what_cannot_be_known_is_none() -> None:
    assert quality_proxy([0.5], None) is None
    assert quality_proxy([12.0, 3.0], 1.0) is None
    assert quality_proxy([float("nan")], 1.0) is None
    assert quality_proxy([float("nan")], 1.0, relevance=saturating(10)) is None
    assert quality_proxy([10.0], 0.0, relevance=saturating(10)) == pytest.approx(0.40 * 0.5 + 0.25 * 0.5 + 0.04 + 0.15)


# ── what a live system pays ─────────────────────────────────────────────────────────────────────────────────────────────


def test_importing_the_log_does_not_import_the_database_or_the_retrievers() -> None:
    code = (
        "import sys\nfrom ringtrue.log import QueryLog\n"
        "print(*(name for name in ('sqlalchemy', 'alembic', 'scipy', 'duckdb', 'ringtrue.retrieve') if name in sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""


def test_a_database_that_is_down_neither_stops_nor_delays_the_start(tmp_path: Path) -> None:
    log = QueryLog("postgresql://nobody@127.0.0.1:9/none", folder=tmp_path / "log")
    start = time.monotonic()
    with log.query("pool", tool="shop") as q:
        q.answer(["a"])
    assert time.monotonic() - start < 5.0
    assert log.flush(30)  # acknowledged by the spool
    assert log.counts.spooled == 1
    assert log.problem is not None
    assert log.close()


def test_user_keys_are_what_delete_by_user_takes(store: Store) -> None:
    from ringtrue.log import Redactor

    with QueryLog(store, project="shop", redact=Redactor(hash_users=True, salt="pepper")) as log:
        with log.query("pool", tool="shop", user_id="ada") as q:
            q.answer(["a"])
        assert logged(log, store)[0].user_id == log.user_key("ada") != "ada"
        store.delete_user(log.user_key("ada"), project="shop")
        assert store.queries(project="shop") == []


def test_without_a_project_of_its_own_a_live_system_is_of_the_configured_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringtrue.rollout import Flags, Shadow
    from ringtrue.store import Flag

    monkeypatch.setenv("RINGTRUE_PROJECT", "bank")
    store.set_flag(Flag("new", rollout=100, shadow=True, project="bank"), who="ada", at="2026-03-01T12:00:00Z")
    with QueryLog(store) as log:
        log.feedback(FeedbackEvent("ef_1", "click", "s1", "2026-03-01T12:00:00Z"))
        with log.query("pool", tool="shop") as q:
            q.answer(["a"])
        assert log.flush(10)
    with Shadow(lambda text, k: ["a"], lambda text, k: ["a"], store, "new", sample=1) as search:
        search.search("pool", query_id="q1")
    assert [len(store.queries(project="bank")), len(store.feedback(project="bank"))] == [1, 1]
    assert len(store.shadow_runs(feature_id="new", project="bank")) == 1
    assert Flags(store, environment={}).is_on("new", "anybody")
    with QueryLog(store, project="shop") as named:
        assert named.project == "shop"


def test_the_folder_of_a_log_does_not_depend_on_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringtrue.log import log_folder

    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path))
    one, other = log_folder("postgresql://ann:secret@db/x"), log_folder("postgresql+psycopg://ann:changed@db/x")
    assert one == other != log_folder("postgresql://ann:secret@db/y")
    assert log_folder(f"sqlite:///{tmp_path}/a.sqlite") == tmp_path / "a.sqlite-log"
    assert os.fspath(tmp_path) in os.fspath(one or "")


@pytest.mark.parametrize("query_id", [None, "", " "])
def test_a_click_names_the_search_that_it_belongs_to(log: QueryLog, query_id: Any) -> None:
    with pytest.raises(InputError, match=r"is not the id of a search; pass on the log\.query_id"):
        log.click(query_id, "a")
