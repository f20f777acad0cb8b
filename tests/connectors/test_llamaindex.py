"""The LlamaIndex connector with LlamaIndex' own classes: indexes, their retrievers, retrievers of a program."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.objects import LlamaIndex
from ringtrue.retrieve.encode import encoder
from ringtrue.testing.retrievers import ConnectorSuite, RetrieverSuite, raises

pytest.importorskip("llama_index.core", reason="LLAMAINDEX IS NOT TESTED: pip install llama-index-core")

from llama_index.core import SummaryIndex, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

EXAMPLE = Path(__file__).parents[2] / "examples" / "connect" / "with_llamaindex.py"
TEXTS = {
    "pool/1": "a heated outdoor pool",
    "pool/2": "the pool opens at seven",
    "spa/1": "spa with sauna and whirlpool near the pool",
    "schwimmbad/1": "Schwimmbad mit Liegewiese, the quiet pool",
    "shuttle/1": "airport shuttle every half hour",
}


def node(name: str, text: str) -> TextNode:
    """A passage as LlamaIndex' own readers and splitters leave it: it knows the document it was cut from."""
    source = name.split("/")[0]
    return TextNode(
        id_=name,
        text=text,
        metadata={"file": f"{source}.md", "lang": "de" if "ch" in source else "en"},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)},
    )


NODES = [node(name, text) for name, text in TEXTS.items()]


class Ours(BaseEmbedding):
    """Our encoder as LlamaIndex' embedding."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return encoder().encode([text])[0].tolist()  # type: ignore[no-any-return]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Custom(BaseRetriever):
    """A retriever as people write them; it does something else first, the first ``times`` times."""

    def __init__(self, act: Callable[[], Any] | None = None, times: int = 1_000_000) -> None:
        super().__init__()
        self.act, self.left = act, [times]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.left[0] -= 1
        if self.act is not None and self.left[0] >= 0:
            return self.act()  # type: ignore[no-any-return]
        words = set(query_bundle.query_str.lower().split())
        counted = [(len(words & set(item.text.lower().split())), item) for item in NODES]
        best = sorted((pair for pair in counted if pair[0]), key=lambda pair: -pair[0])
        return [NodeWithScore(node=item, score=float(count)) for count, item in best]


def throw(problem: BaseException, cause: BaseException | None = None) -> Callable[[], Any]:
    def act() -> Any:
        raise problem from cause

    return act


def scored(*pairs: tuple[TextNode, float | None]) -> Callable[[], list[NodeWithScore]]:
    return lambda: [NodeWithScore(node=item, score=score) for item, score in pairs]


@pytest.fixture(scope="module", autouse=True)
def _index() -> None:
    """One index for all, since embedding takes time; no test changes it."""
    TestIndex.index = TestIndexRetriever.index = VectorStoreIndex(NODES, embed_model=Ours())


class TestIndex(RetrieverSuite):
    index: ClassVar[Any]

    def make(self) -> LlamaIndex:
        return LlamaIndex(retriever=self.index)

    def test_scores_are_those_of_the_index(self) -> None:
        vectors = encoder().encode(["quiet", TEXTS["schwimmbad/1"]])
        hit = self.make().search("quiet", k=1)[0]
        assert (hit.doc_id, hit.chunk) == ("schwimmbad", "schwimmbad/1")
        alone = LlamaIndex(retriever=VectorStoreIndex([TextNode(text=TEXTS["schwimmbad/1"], id_="n")], embed_model=Ours()))
        assert alone.search("quiet")[0].score == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)

    def test_a_scope_becomes_metadata_filters(self) -> None:
        assert {hit.doc_id for hit in self.make().search("pool", k=9, scope={"lang": "de"})} == {"schwimmbad"}
        assert self.make().search("pool", k=9, scope={"lang": "de", "file": "pool.md"}) == []

    def test_an_index_that_ignores_filters_is_found_out(self) -> None:
        with raises(BadAnswer) as message:
            LlamaIndex(retriever=SummaryIndex(NODES)).search("pool", scope={"lang": "de"})
        assert "does not filter" in message[0]


class TestIndexRetriever(RetrieverSuite):
    index: ClassVar[Any]

    def make(self) -> LlamaIndex:
        return LlamaIndex(retriever=self.index.as_retriever(similarity_top_k=2))

    def test_k_reaches_it_and_leaves_it_as_it_was(self) -> None:
        retriever = self.index.as_retriever(similarity_top_k=2)
        assert len(LlamaIndex(retriever=retriever).search("pool", k=4)) == 4
        assert retriever.similarity_top_k == 2
        alone = LlamaIndex(retriever=retriever, pass_k=False)
        assert len(alone.search("airport shuttle or sauna", k=4)) == 2

    def test_passages_count_once_and_make_room_for_other_documents(self) -> None:
        hits = self.make().search("the heated outdoor pool opens at seven", k=2)
        assert hits[0].doc_id == "pool"
        assert hits[0].chunk in ("pool/1", "pool/2")
        assert len({hit.doc_id for hit in hits}) == 2

    def test_scope_is_refused_where_it_cannot_be_passed_on(self) -> None:
        with raises(InputError):
            self.make().search("pool", scope={"lang": "de"})


class TestSummaryIndex(RetrieverSuite):
    """An index without scores, without vectors and without a limit: it returns every node."""

    def make(self) -> LlamaIndex:
        return LlamaIndex(retriever=SummaryIndex(NODES))

    def test_no_score_is_not_a_score(self) -> None:
        assert all(hit.score != hit.score for hit in self.make().search("pool", k=3))


class TestLlamaIndex(ConnectorSuite):
    SECRETS: ClassVar[tuple[str, ...]] = ("10.1.2.3", "hunter2")

    def make(self) -> LlamaIndex:
        return LlamaIndex(retriever=Custom())

    def failing(self, act: Callable[[], Any], **settings: Any) -> LlamaIndex:
        return LlamaIndex(retriever=Custom(act), retries=0, **settings)

    def wrong_credentials(self) -> LlamaIndex:
        return self.failing(throw(PermissionError("hunter2 is refused")))

    def nobody_there(self) -> LlamaIndex:
        return self.failing(throw(ConnectionRefusedError("10.1.2.3 refused")))

    def gone_mid_query(self) -> LlamaIndex:
        return self.failing(throw(ValueError("10.1.2.3 went away"), ConnectionResetError("10.1.2.3")))

    def too_slow(self) -> LlamaIndex:
        return self.failing(lambda: time.sleep(2.0) or [], timeout=0.2)

    def malformed(self) -> LlamaIndex:
        return LlamaIndex(retriever=Plain(["a text instead of a node"]), retries=0)

    def twice(self) -> LlamaIndex:
        return LlamaIndex(retriever=Plain([NodeWithScore(node=NODES[0]), NodeWithScore(node=NODES[0])]), retries=0)

    def few(self) -> tuple[LlamaIndex, str, int]:
        return self.make(), "pool", 3

    def fails_once(self) -> LlamaIndex:
        return LlamaIndex(retriever=Custom(throw(TimeoutError("10.1.2.3")), times=1), retries=1)


class Plain:
    """Anything with ``retrieve`` is a retriever."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def retrieve(self, text: str) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (TimeoutError("secret"), TimedOut),
        (ConnectionAbortedError("secret"), Unreachable),
        (PermissionError("secret"), AccessDenied),
        (ZeroDivisionError("secret"), BadAnswer),
    ],
)
def test_each_exception_of_the_object_is_one_error(problem: Exception, error: type[Exception]) -> None:
    with raises(error) as messages:
        LlamaIndex(retriever=Custom(throw(problem)), retries=0).search("pool")
    assert "secret" not in messages[0]
    assert type(problem).__name__ in messages[0]


def test_an_index_that_cannot_make_a_retriever_is_an_error_too() -> None:
    class Broken:
        def as_retriever(self, **options: Any) -> Any:
            raise ConnectionRefusedError("10.1.2.3")

    with raises(Unreachable) as message:
        LlamaIndex(retriever=Broken(), retries=0).search("pool")
    assert "10.1.2.3" not in message[0]


def test_a_node_without_a_document_is_its_own() -> None:
    hits = LlamaIndex(
        retriever=Custom(scored((TextNode(id_="n1", text="a"), 0.5), (TextNode(id_="n2", text="b"), None)))
    ).search("x")
    assert [(hit.doc_id, hit.chunk) for hit in hits] == [("n1", "n1"), ("n2", "n2")]
    assert hits[0].score == 0.5
    assert hits[1].score != hits[1].score  # no score is not a score of 0


def test_a_metadata_field_may_hold_the_document_and_name_the_chunk() -> None:
    act = scored((NODES[0], 0.9), (NODES[1], 0.8), (NODES[2], 0.7))
    hits = LlamaIndex(retriever=Custom(act), document="file").search("pool")
    assert [(hit.doc_id, hit.chunk) for hit in hits] == [("pool.md", "pool/1"), ("spa.md", "spa/1")]
    with raises(BadAnswer):  # two passages of one name are one passage that came twice
        LlamaIndex(retriever=Custom(act), document="file", chunk="lang").search("pool")
    with raises(BadAnswer) as message:
        LlamaIndex(retriever=Custom(act), document="source").search("pool")
    assert "'file', 'lang'" in message[0]


def test_distances_are_refused_until_they_are_called_so() -> None:
    act = scored((NODES[0], 0.1), (NODES[2], 0.7))
    with raises(BadAnswer) as message:
        LlamaIndex(retriever=Custom(act)).search("pool")
    assert "lower_is_better = true" in message[0]
    assert [hit.score for hit in LlamaIndex(retriever=Custom(act), lower_is_better=True).search("pool")] == [-0.1, -0.7]


@pytest.mark.parametrize("answer", [None, "pool", {"nodes": []}, 7, [None], [(NODES[0], 0.5)]])
def test_an_answer_that_is_no_list_of_nodes_is_a_bad_answer(answer: Any) -> None:
    with raises(BadAnswer):
        LlamaIndex(retriever=Plain(answer), retries=0).search("pool")


def test_connect_from_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ringtrue_test_library.py").write_text(
        "from llama_index.core.schema import NodeWithScore, TextNode\n"
        "class Shop:\n"
        "    def retrieve(self, text):\n"
        "        return [NodeWithScore(node=TextNode(id_='d1', text=text), score=1.0)]\n"
        "def factory():\n"
        "    return Shop()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("Shop", "factory"):
        hits = connect({"kind": "llamaindex", "object": f"ringtrue_test_library:{name}"}, name="shop").search("pool")
        assert [(hit.doc_id, dict(hit.channels)) for hit in hits] == [("d1", {"shop": 1})]
    sys.modules.pop("ringtrue_test_library")
    with raises(MissingInput):
        connect({"kind": "llamaindex", "object": "ringtrue_test_no_such:x"}).search("pool")


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({}, "one of retriever="),
        ({"retriever": object()}, "neither a retriever nor an index"),
        ({"retriever": Plain([]), "chunk": 3}, "chunk"),
        ({"retriever": Plain([]), "lower_is_better": 1}, "lower_is_better"),
        ({"retriever": Plain([]), "filter": "dict"}, "did you mean"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], word: str) -> None:
    with raises(InputError) as message:
        connect({"kind": "llamaindex", **settings})
    assert word in message[0]


def test_the_connector_imports_nothing_of_llamaindex() -> None:
    code = "import sys, ringtrue.retrieve.connectors.objects; sys.exit('llama_index' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split()[1] == "shuttle"
