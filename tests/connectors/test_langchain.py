"""The LangChain connector with LangChain's own classes: a vector store, its retriever, retrievers of a program."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.retrieve.connectors import connect, objects
from ringtrue.retrieve.connectors.objects import LangChain
from ringtrue.retrieve.encode import encoder
from ringtrue.testing.retrievers import ConnectorSuite, RetrieverSuite, raises

pytest.importorskip("langchain_core", reason="LANGCHAIN IS NOT TESTED: pip install langchain-core")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

EXAMPLE = Path(__file__).parents[2] / "examples" / "connect" / "with_langchain.py"
TEXTS = {
    "pool": "a heated outdoor pool",
    "pool-hours": "the pool opens at seven",
    "spa": "spa with sauna and whirlpool near the pool",
    "schwimmbad": "Schwimmbad mit Liegewiese, the quiet pool",
    "shuttle": "airport shuttle every half hour",
}
DOCUMENTS = [
    Document(
        id=name,
        page_content=text,
        metadata={"source": name.split("-")[0], "part": name, "lang": "de" if "ch" in name else "en"},
    )
    for name, text in TEXTS.items()
]


class Ours(Embeddings):
    """Our encoder as LangChain's embeddings."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return encoder().encode(texts).tolist()  # type: ignore[no-any-return]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Words(BaseRetriever):
    """A retriever as people write them: counts shared words, returns its best ``k``."""

    k: int = 4

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        wanted = Counter(query.lower().split())
        counted = [(sum(wanted[word] for word in document.page_content.lower().split()), document) for document in DOCUMENTS]
        best = sorted((pair for pair in counted if pair[0]), key=lambda pair: -pair[0])[: self.k]
        return [document.model_copy(update={"metadata": {**document.metadata, "score": count}}) for count, document in best]


class Failing(BaseRetriever):
    """A retriever that does something else first, the first ``times`` times."""

    act: Callable[[], Any]
    times: int = 1_000_000

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.times -= 1
        return self.act() if self.times >= 0 else DOCUMENTS[:3]


def throw(problem: BaseException, cause: BaseException | None = None) -> Callable[[], Any]:
    def act() -> Any:
        raise problem from cause

    return act


def store(documents: list[Document] = DOCUMENTS) -> InMemoryVectorStore:
    made = InMemoryVectorStore(Ours())
    made.add_documents(documents)
    return made


@pytest.fixture(scope="module", autouse=True)
def _stores() -> None:
    """One store for all, since embedding takes time; no test changes it."""
    TestStore.store = TestStoreRetriever.store = store()


class TestStore(RetrieverSuite):
    store: ClassVar[Any]

    def make(self) -> LangChain:
        return LangChain(retriever=self.store)

    def test_scores_are_those_of_the_store(self) -> None:
        hits = self.make().search("pool", k=3)
        expected = self.store.similarity_search_with_score("pool", k=3)
        assert [(hit.doc_id, hit.score) for hit in hits] == [
            (document.id, pytest.approx(score)) for document, score in expected
        ]


class TestStoreRetriever(RetrieverSuite):
    store: ClassVar[Any]

    def make(self) -> LangChain:
        return LangChain(retriever=self.store.as_retriever(search_kwargs={"k": 2}))

    def test_k_reaches_it_and_leaves_it_as_it_was(self) -> None:
        retriever = self.store.as_retriever(search_kwargs={"k": 2})
        assert len(LangChain(retriever=retriever).search("pool", k=4)) == 4
        assert retriever.search_kwargs == {"k": 2}
        assert len(LangChain(retriever=retriever, pass_k=False).search("pool", k=4)) == 2

    def test_passages_count_once_and_make_room_for_other_documents(self) -> None:
        for target in (self.store, self.store.as_retriever()):
            connector = LangChain(retriever=target, document="source")
            hits = connector.search("the heated outdoor pool opens at seven", k=2)
            assert hits[0].doc_id == "pool"
            assert hits[0].chunk in ("pool", "pool-hours")
            assert len({hit.doc_id for hit in hits}) == 2


class TestLangChain(ConnectorSuite):
    SECRETS: ClassVar[tuple[str, ...]] = ("10.1.2.3", "hunter2")

    def make(self) -> LangChain:
        return LangChain(retriever=Words(), score="score")

    def failing(self, act: Callable[[], Any], **settings: Any) -> LangChain:
        return LangChain(retriever=Failing(act=act), retries=0, **settings)

    def wrong_credentials(self) -> LangChain:
        return self.failing(throw(PermissionError("hunter2 is refused")))

    def nobody_there(self) -> LangChain:
        return self.failing(throw(ConnectionRefusedError("10.1.2.3 refused")))

    def gone_mid_query(self) -> LangChain:
        # As HTTP libraries do it: their own error, the socket's as its cause.
        return self.failing(throw(ValueError("10.1.2.3 went away"), ConnectionResetError("10.1.2.3")))

    def too_slow(self) -> LangChain:
        return self.failing(lambda: time.sleep(2.0), timeout=0.2)

    def malformed(self) -> LangChain:
        return self.failing(lambda: ["a text instead of a document"])

    def twice(self) -> LangChain:
        return self.failing(lambda: [DOCUMENTS[0], DOCUMENTS[0]])

    def few(self) -> tuple[LangChain, str, int]:
        return self.make(), "pool", 4

    def fails_once(self) -> LangChain:
        return LangChain(retriever=Failing(act=throw(TimeoutError("10.1.2.3")), times=1), retries=1)

    def test_a_field_k_is_set_on_a_copy(self) -> None:
        retriever = Words(k=1)
        assert len(LangChain(retriever=retriever).search("pool", k=3)) == 3
        assert retriever.k == 1

    def test_scope_is_refused_where_it_cannot_be_passed_on(self) -> None:
        with raises(InputError):
            self.make().search("pool", scope={"lang": "de"})


@pytest.mark.parametrize(
    ("problem", "error"),
    [
        (TimeoutError("x"), TimedOut),
        (BrokenPipeError("x"), Unreachable),
        (PermissionError("x"), AccessDenied),
        (KeyError("secret"), BadAnswer),
        (FileNotFoundError("secret"), BadAnswer),
        (SystemExit(3), BadAnswer),
        (Unreachable("mine is down; start it"), Unreachable),
    ],
)
def test_each_exception_of_the_object_is_one_error(problem: BaseException, error: type[Exception]) -> None:
    with raises(error) as messages:  # type: ignore[arg-type]
        LangChain(retriever=Failing(act=throw(problem)), retries=0).search("pool")
    assert "secret" not in messages[0]
    assert type(problem).__name__ in messages[0] or messages[0] == str(problem)


def test_causes_that_form_a_ring_end() -> None:
    first, second = ValueError("a"), KeyError("b")
    first.__cause__, second.__cause__ = second, first
    assert isinstance(objects.failure("x", first), BadAnswer)


def test_the_object_goes_on_answering_after_a_slow_question() -> None:
    over = threading.Event()
    slow = Failing(act=over.wait, times=1)
    connector = LangChain(retriever=slow, retries=0, timeout=1.0)
    with pytest.raises(TimedOut):
        connector.search("pool")
    over.set()
    assert len(connector.search("pool", k=3)) == 3


def test_questions_that_never_end_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(objects, "STUCK", 2)
    monkeypatch.setattr(objects, "_abandoned", [])
    connector = LangChain(retriever=Failing(act=over.wait), retries=0, timeout=0.05)
    before = threading.active_count()
    try:
        for _ in range(5):
            with pytest.raises(TimedOut):
                connector.search("pool")
        assert threading.active_count() <= before + 2
    finally:
        over.set()


def test_a_chain_that_ends_in_documents_is_a_retriever() -> None:
    chain = RunnableLambda(lambda text: text.upper()) | RunnableLambda(lambda text: DOCUMENTS[:2] if text == "POOL" else [])
    assert [hit.doc_id for hit in LangChain(retriever=chain).search("pool")] == ["pool", "pool-hours"]


class Distances(InMemoryVectorStore):
    """A store whose scores are distances, as several are."""

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        return [(document, 1 - score) for document, score in super().similarity_search_with_score(query, k)]


def test_distances_are_refused_until_they_are_called_so() -> None:
    far = Distances(Ours())
    far.add_documents(DOCUMENTS)
    with raises(BadAnswer) as message:
        LangChain(retriever=far).search("pool", k=3)
    assert "lower_is_better = true" in message[0]
    hits = LangChain(retriever=far, lower_is_better=True).search("pool", k=3)
    near = LangChain(retriever=TestStore.store).search("pool", k=3)
    assert [(hit.doc_id, hit.score) for hit in hits] == [(hit.doc_id, pytest.approx(hit.score - 1)) for hit in near]


def test_documents_without_an_id_need_a_metadata_field() -> None:
    nameless = [Document(page_content="a", metadata={"source": "a.md", "page": 1})]
    retriever = Failing(act=lambda: nameless)
    with raises(BadAnswer) as message:
        LangChain(retriever=retriever).search("pool")
    assert "'source', 'page'" in message[0]
    with raises(BadAnswer):
        LangChain(retriever=retriever, document="file").search("pool")
    assert LangChain(retriever=retriever, document="source").search("pool")[0].doc_id == "a.md"


def test_chunks_are_named_by_their_field() -> None:
    retriever = Failing(act=lambda: DOCUMENTS[:3])
    hits = LangChain(retriever=retriever, document="source", chunk="part").search("pool", k=5)
    assert [(hit.doc_id, hit.chunk) for hit in hits] == [("pool", "pool"), ("spa", "spa")]
    with raises(BadAnswer):  # two passages of one name are one passage that came twice
        LangChain(retriever=retriever, document="source", chunk="source").search("pool")


@pytest.mark.parametrize("answer", [None, "pool", {"documents": []}, 7, [None], [("a", "b", "c")], [(DOCUMENTS[0], "high")]])
def test_an_answer_that_is_no_list_of_documents_is_a_bad_answer(answer: Any) -> None:
    with raises(BadAnswer):
        LangChain(retriever=RunnableLambda(lambda text: answer), retries=0).search("pool")


MODULE = """
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
made = []
ready = RunnableLambda(lambda text: [Document(id="d1", page_content=text)])
def factory():
    made.append(1)
    return ready
def asks():
    raise ConnectionRefusedError("10.1.2.3")
class Shop:
    def __init__(self):
        made.append(1)
    def invoke(self, text):
        return ready.invoke(text)
nothing = 7
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A module of somebody's program that can be imported."""
    (tmp_path / "ringtrue_test_shop.py").write_text(MODULE)
    (tmp_path / "ringtrue_test_broken.py").write_text("import ringtrue_test_no_such_library")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("ringtrue_test_shop", None)


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("name", "made"), [("ready", 0), ("factory", 1), ("Shop", 1)])
def test_connect_from_settings_imports_and_makes_the_object_once(name: str, made: int) -> None:
    connector = connect({"kind": "langchain", "object": f"ringtrue_test_shop:{name}"}, name="shop")
    for _ in range(2):
        hits = connector.search("pool")
        assert [(hit.doc_id, dict(hit.channels)) for hit in hits] == [("d1", {"shop": 1})]
    assert len(sys.modules["ringtrue_test_shop"].made) == made
    assert [hit.doc_id for hit in pickle.loads(pickle.dumps(connector)).search("pool")] == ["d1"]  # as for another process


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(
    ("place", "error", "word"),
    [
        ("ringtrue_test_shop", InputError, "package.module:name"),
        ("ringtrue_test_shop:", InputError, "package.module:name"),
        ("ringtrue_test_shop:factori", MissingInput, "factori"),
        ("ringtrue_test_shop:nothing", InputError, "int is neither"),
        ("ringtrue_test_shop:asks", Unreachable, "making"),
        ("ringtrue_test_no_such:x", MissingInput, "PYTHONPATH"),
        ("ringtrue_test_broken:x", MissingInput, "ringtrue_test_no_such_library"),
    ],
)
def test_a_place_that_holds_no_retriever_is_named(place: str, error: type[Exception], word: str) -> None:
    with raises(error) as message:
        connect({"kind": "langchain", "object": place, "retries": 0}).search("pool")
    assert word in message[0]
    assert "10.1.2.3" not in message[0]


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({}, "one of retriever="),
        ({"retriever": Words(), "object": "a:b"}, "one of retriever="),
        ({"retriever": "a:b"}, "object='package.module:name'"),
        ({"retriever": 7}, "int is neither"),
        ({"retriever": Words(), "document": ""}, "document"),
        ({"retriever": Words(), "pass_k": "yes"}, "pass_k"),
        ({"retriever": Words(), "documents": "x"}, "document"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], word: str) -> None:
    with raises(InputError) as message:
        connect({"kind": "langchain", **settings})
    assert word in message[0]


def test_the_connector_imports_nothing_of_langchain() -> None:
    code = "import sys, ringtrue.retrieve.connectors.objects; sys.exit('langchain_core' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split()[1] == "shuttle"
