"""A plain function is a retriever, and no answer of a wrong shape passes."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from ringtrue.errors import BadAnswer, InputError
from ringtrue.records import Hit, Stage
from ringtrue.retrieve import as_retriever, search_many
from ringtrue.retrieve.protocol import as_hits, plain, ranked, scope_of


def test_a_plain_function_is_enough_and_its_hits_say_where_they_came_from() -> None:
    def mine(text: str, *, k: int) -> list[tuple[str, float]]:
        return [("a", 2.0), ("b", 1.0), ("c", 0.5)][:k]

    assert as_retriever(mine).search("x", k=2) == [
        Hit("a", 2.0, None, {"mine": 1}, None, (Stage("mine", 1, 2.0),)),
        Hit("b", 1.0, None, {"mine": 2}, None, (Stage("mine", 2, 1.0),)),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        ["a", "b"],
        [("a", 2), ("b", 1)],
        [{"id": "a"}, {"_id": "b"}],
        [{"doc_id": "a", "score": 3}, {"document_id": "b", "score": 2}],
    ],
    ids=["ids", "pairs", "mappings", "scored mappings"],
)
def test_the_usual_shapes_of_an_answer_are_understood(answer: list[Any]) -> None:
    assert [hit.doc_id for hit in as_hits(answer, "x")] == ["a", "b"]


def test_a_score_that_was_not_given_is_not_a_number_and_never_zero() -> None:
    assert math.isnan(as_hits(["a"], "x")[0].score)


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("abc", "'abc'"),
        (None, "None"),
        ({"hits": []}, "hits"),
        ([("a", "high")], "'high'"),
        ([("a", math.inf)], "infinite"),
        ([("a", 10**400)], "infinite"),
        ([{"name": "a"}], "'name'"),
        ([""], "''"),
        ([None], "None"),
        ([("a", True)], "True"),
        ({"a", "b"}, "list of ids"),
        ([Hit("")], "''"),
        ([Hit("a", math.inf)], "infinite"),
        ([("a", 1j)], "1j"),
    ],
)
def test_an_answer_of_a_wrong_shape_is_a_bad_answer_that_names_the_value(answer: Any, named: str) -> None:
    with pytest.raises(BadAnswer, match=named):
        as_hits(answer, "mine")


def test_trap_03_a_document_that_comes_twice_is_an_error_and_its_passages_count_once() -> None:
    with pytest.raises(BadAnswer, match="'a' twice, at ranks 1 and 3"):
        as_hits([("a", 3.0), ("b", 2.0), ("a", 1.0)], "mine")
    assert [hit.doc_id for hit in as_hits([("a", 3.0), ("b", 2.0), ("a", 1.0)], "mine", duplicates="first")] == ["a", "b"]
    passages = [{"id": "a", "score": 3, "chunk_id": "a:1"}, {"id": "a", "score": 2, "chunk": "a:2"}, {"id": "b", "score": 1}]
    assert [(hit.doc_id, hit.chunk, hit.channels) for hit in as_hits(passages, "m")] == [
        ("a", "a:1", {"m": 1}),
        ("b", None, {"m": 2}),
    ]


def test_a_scope_is_passed_on_where_it_is_taken_and_refused_where_not() -> None:
    seen: list[Any] = []

    def scoped(text: str, k: int, scope: Any = None) -> list[str]:
        seen.append(scope)
        return ["a"]

    as_retriever(scoped).search("x", scope={"city": "Bath"})
    assert seen == [{"city": "Bath"}]
    with pytest.raises(InputError, match="takes no scope"):
        as_retriever(lambda text, k: ["a"], name="mine").search("x", scope={"city": "Bath"})


@pytest.mark.parametrize("scope", ["x", 5, {"x": None}, {"x": []}, {"x": {}}, {1: "a"}, {"x": ["a", "b"]}])
def test_a_scope_that_cannot_be_is_refused(scope: Any) -> None:
    with pytest.raises(InputError, match="scope"):
        scope_of(scope)


@pytest.mark.parametrize("text", [None, 5, b"pool", ["pool"]])
def test_a_question_that_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match="not a question"):
        plain(text)


def test_an_object_with_the_least_protocol_is_enough() -> None:
    class Least:
        def search(self, text: str, *, k: int) -> list[str]:
            return ["a", "b", "c"][:k]

    assert [hit.doc_id for hit in search_many(Least(), ["x"], k=2)[0]] == ["a", "b"]  # type: ignore[arg-type]
    assert as_retriever(Least()).search("x", k=1)[0].channels == {"Least": 1}


def test_a_function_that_takes_no_k_is_told_so_at_once() -> None:
    with pytest.raises(InputError, match="takes no k"):
        as_retriever(lambda text: ["a"])


def test_numbers_of_numpy_are_ids_and_scores_too() -> None:
    assert [hit.doc_id for hit in as_hits(np.array([3, 1]), "x")] == ["3", "1"]


def test_what_cannot_search_is_refused_with_the_cure() -> None:
    with pytest.raises(InputError, match=r"search\(text"):
        as_retriever(42)


@pytest.mark.parametrize("k", [0, -1, True, 2.5, "3"])
def test_k_must_be_a_number_of_hits(k: Any) -> None:
    with pytest.raises(InputError, match="k="):
        as_retriever(lambda text, k: ["a"]).search("x", k=k)


def test_ties_go_by_document_id_descending() -> None:
    assert ranked([("a", 1.0), ("c", 1.0), ("b", 2.0)], k=3) == [("b", 2.0), ("c", 1.0), ("a", 1.0)]


def test_text_with_lone_surrogates_and_nul_becomes_text_that_can_be_written() -> None:
    assert plain("a\ud800b\0c 🏊 \udfff").encode("utf-8").decode() == "a\ufffdb c 🏊 \ufffd"


def test_a_batch_is_asked_at_once_where_the_retriever_offers_it() -> None:
    class Batched:
        calls = 0

        def search(self, text: str, *, k: int = 10, scope: Any = None) -> list[Hit]:
            raise AssertionError("asked one by one")

        def search_many(self, texts: Any, *, k: int = 10, scope: Any = None) -> list[list[Hit]]:
            self.calls += 1
            return [[Hit(text)] for text in texts]

    batched = Batched()
    assert [hits[0].doc_id for hits in search_many(batched, ["a", "b"])] == ["a", "b"]
    assert batched.calls == 1


@pytest.mark.filterwarnings("error")
def test_an_async_function_is_refused_before_it_is_asked() -> None:
    async def search(text: str, k: int) -> list[str]:
        return ["d1"]

    class Object:
        async def search(self, text: str, *, k: int) -> list[str]:
            return ["d1"]

    class Called:
        async def __call__(self, text: str, k: int) -> list[str]:
            return ["d1"]

    async def stream(text: str, k: int) -> AsyncIterator[str]:
        yield "d1"

    cure = r"async functions are not supported; wrap it: lambda q, k: asyncio\.run\(search\(q, k\)\)"
    for thing in (search, partial(search, k=3), Object(), Called(), stream):
        with pytest.raises(InputError, match=cure):
            as_retriever(thing)
    hidden = as_retriever(lambda text, k: search(text, k))
    with pytest.raises(BadAnswer, match=cure):
        hidden.search("pool")
    gc.collect()
    assert as_retriever(lambda q, k: asyncio.run(search(q, k))).search("pool")[0].doc_id == "d1"
