"""The retriever ``memory``: passages in context, lifts, the session, what is never and what is always shown."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import load
from ringtrue.memory.hook.index import Index
from ringtrue.memory.hook.settings import Settings
from ringtrue.records import Document, Query
from ringtrue.retrieve import Collection, Fused, Retriever, build, canonical, indexes_of, observing
from ringtrue.retrieve.channels.memory import MemoryFusion, as_memory
from ringtrue.testing.retrievers import RetrieverSuite

STRATEGIES = ("memory", "memory('fts5_bm25')", "memory('title_tags')")


def _note(doc_id: str, title: str, text: str, **facts: object) -> Document:
    return Document(doc_id, text, title, {"category": "decision", **facts})


NOTES = (
    _note("jwt", "Sessions are JWT", "The API keeps no state.\nTokens live an hour.", importance_tier="important"),
    _note("clock", "Skew of clocks", "Hosts drift by a minute.", links={"leads_to": ["jwt"]}),
    _note("old", "Sessions are cookies", "The API keeps sessions in cookies.", record_status="retired"),
    _note("stored", "Sessions in Redis", "The API keeps sessions in Redis.", record_status="archived"),
    _note("tone", "Write to customers in plain words", "No jargon.", importance_tier="constitutional"),
    _note("cash", "Rounding of amounts", "Round half to even.", trigger_phrases=["penny drift"]),
    _note("queue", "Jobs run again", "A worker that dies leaves its message on the queue."),
    _note("ferry", "The ferry to the depot", "It leaves at eleven from the jetty."),
)


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    collection = Collection.create(tmp_path_factory.mktemp("notes") / "documents")
    collection.ingest(NOTES)
    return collection


def _ids(retriever: Retriever, text: str, **options: object) -> list[str]:
    return [hit.doc_id for hit in retriever.search(text, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize("expression", STRATEGIES)
class TestEveryStrategy(RetrieverSuite):
    """The suite for plug-in authors."""

    QUERY: ClassVar[str] = "pool"
    _made: ClassVar[dict[str, Retriever]] = {}

    @pytest.fixture(autouse=True)
    def _over_the_hotel(self, hotel: Collection, expression: str) -> None:
        self._now = self._made.setdefault(expression, build(expression, hotel))

    def make(self) -> Retriever:
        return self._now

    def test_a_scope_holds(self, expression: str) -> None:
        found = _ids(self.make(), "pool", k=10, scope={"kind": "rule"})
        assert found
        assert set(found) <= {"rules", "noise", "dogs"}
        assert self.make().search("pool", k=10, scope={"kind": "nothing"}) == []


def test_the_hybrid_is_the_default_and_has_a_key_of_its_own() -> None:
    assert canonical("memory") == canonical("memory('hybrid')") == canonical("memory(strategy='hybrid')")
    assert len({canonical(expression) for expression in STRATEGIES}) == 3


def test_a_strategy_that_is_not_known_is_refused_with_the_nearest(notes: Collection) -> None:
    with pytest.raises(InputError, match="fts5_bm25"):
        build("memory('fts5')", notes)
    with pytest.raises(InputError, match="leave one of them above 0"):
        build("memory(words=0, meaning=0)", notes)


@pytest.mark.parametrize("expression", STRATEGIES)
def test_trap_30_what_was_retired_or_archived_is_never_returned(notes: Collection, expression: str) -> None:
    found = _ids(build(expression, notes), "API keeps sessions in cookies or Redis", k=100)
    assert "jwt" in found
    assert not {"old", "stored"} & set(found)


def test_trigger_phrases_and_causal_links_lift_and_every_hit_says_so(notes: Collection) -> None:
    memory = build("memory", notes)
    first = memory.search("customers ask about penny drift", k=1)[0]
    assert first.doc_id == "cash"
    assert first.channels["trigger"] == 1
    assert {stage.name for stage in first.stages} >= {"words", "meaning", "passages", "trigger", "memory"}
    linked = next(hit for hit in memory.search("why do tokens of the session expire", k=10) if hit.doc_id == "clock")
    assert linked.channels["graph"] == 1


def test_the_session_lifts_what_is_in_use_and_what_was_spoken_of(notes: Collection) -> None:
    memory = build("memory", notes)
    assert isinstance(memory, MemoryFusion)
    question = "and when does that one go?"
    plain = {hit.doc_id: hit.score for hit in memory.search(question, k=10)}
    used = {hit.doc_id: hit.score for hit in memory.search(question, k=10, session=["queue"])}
    assert used["queue"] > plain["queue"]
    assert used["jwt"] == plain["jwt"]
    said = memory.search(question, k=1, session=["we need the boat to the depot"])
    assert said[0].doc_id == "ferry"
    assert {hit.doc_id: hit.score for hit in memory.search(question, k=10)} == plain


@pytest.mark.parametrize("k", [1, 2, 10])
def test_constitutional_memories_are_among_the_hits_when_asked_for(notes: Collection, k: int) -> None:
    question = "when does the ferry leave the jetty"
    always = build("memory(constitutional=true)", notes).search(question, k=k)
    assert "tone" in [hit.doc_id for hit in always]
    assert len(always) <= k
    scores = [hit.score for hit in always]
    assert scores == sorted(scores, reverse=True)
    assert len({hit.doc_id for hit in always}) == len(always)
    if k > 1:
        assert always[0].doc_id == "ferry"
    assert _ids(build("memory", notes), question, k=1) == ["ferry"]


def test_constitutional_memories_are_among_the_first_ten_however_many_are_asked_for(folder: Path) -> None:
    many = [_note(f"ferry{n}", f"Ferry {n}", f"The ferry {n} leaves the jetty.") for n in range(30)]
    rules = [_note(f"rule{n}", "Plain words", "No jargon.", importance_tier="constitutional") for n in range(3)]
    collection = Collection.create(folder)
    collection.ingest([*many, *rules])
    for k in (10, 33):
        found = build("memory(constitutional=true)", collection).search("which ferry leaves the jetty", k=k)
        assert {"rule0", "rule1", "rule2"} <= {hit.doc_id for hit in found[:10]}
        assert len({hit.doc_id for hit in found}) == k
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_turns_are_read_with_the_session_around_them(folder: Path) -> None:
    said = {
        "s1": ("Ann: We drove to the harbour.", "Ben: And then?", "Ann: It was closed, so we went home."),
        "s2": ("Ann: I am tired today.", "Ben: Go to bed.", "Ann: It was closed, the shop."),
    }
    turns = [
        Document(f"{session}:{number}", text, metadata={"session": session, "talk": "one"})
        for session, texts in said.items()
        for number, text in enumerate(texts, 1)
    ]
    collection = Collection.create(folder)
    collection.ingest(turns)
    question = "was the harbour closed"
    together = _ids(build("memory(meaning=0)", collection), question, k=6)
    apart = _ids(build("memory(group=['nothing'], meaning=0)", collection), question, k=6)
    assert together.index("s1:3") < together.index("s2:3")
    assert apart.index("s2:3") < apart.index("s1:3")


def test_statistics_are_those_of_the_scope(folder: Path) -> None:
    rare = [
        Document(f"a{n}", f"Ann talks about {what}", metadata={"talk": "a"}) for n, what in enumerate(("tea", "rain", "Ben"))
    ]
    common = [Document(f"b{n}", f"Ben and Ben again, number {n}", metadata={"talk": "b"}) for n in range(30)]
    collection = Collection.create(folder)
    collection.ingest(rare)
    before = [(hit.doc_id, hit.score) for hit in build("memory", collection).search("Ben or tea", k=3, scope={"talk": "a"})]
    collection.ingest(common)
    assert before == [
        (hit.doc_id, hit.score) for hit in build("memory", collection).search("Ben or tea", k=3, scope={"talk": "a"})
    ]


def test_the_same_hits_bit_for_bit_however_the_documents_came_in(tmp_path: Path) -> None:
    one, two = Collection.create(tmp_path / "one"), Collection.create(tmp_path / "two")
    one.ingest(NOTES)
    grown = build("memory", two)
    two.ingest([_note("jwt", "Something else", "to be changed"), NOTES[5]])
    assert grown.search("tokens", k=3)
    two.ingest(reversed(NOTES))
    questions = ("why do tokens expire", "ferry", "a worker that dies")
    clean = build("memory", one)
    assert [clean.search(text, k=10) for text in questions] == [grown.search(text, k=10) for text in questions]


def test_an_observer_sees_every_channel_and_the_parts_of_the_passages(notes: Collection) -> None:
    memory = build("memory", notes)
    with observing() as seen:
        hits = memory.search("why do tokens expire", k=3)
    tree = seen.root
    assert isinstance(tree, Fused)
    assert [channel.name for channel in tree.channels] == ["passages", "trigger", "graph", "session"]
    passages = tree.channels[0]
    assert isinstance(passages, Fused)
    assert [channel.name for channel in passages.channels] == ["words", "meaning"]
    assert list(tree.hits) == hits
    assert len(indexes_of(memory)) == 1


@pytest.mark.parametrize("strategy", ["fts5_bm25", "title_tags"])
def test_the_other_strategies_rank_as_a_search_on_demand_does(tmp_path: Path, strategy: str) -> None:
    golden = load("memory-bench")
    collection = Collection.create(tmp_path / "documents")
    collection.ingest(golden.documents)
    retriever = build(f"memory('{strategy}')", collection)
    index = Index([as_memory(document) for document in golden.documents], Settings(match_strategy=strategy))
    long = Query("long", " ".join(query.text for query in golden.queries[:4]))  # more words than the hook looks at
    for query in (*golden.queries, long):
        found = [(one.memory.id, one.score) for one in index.on_demand(query.text, k=10, now=0.0)]  # before anything expires
        assert [(hit.doc_id, hit.score) for hit in retriever.search(query.text, k=10)] == found
