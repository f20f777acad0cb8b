"""How good the memory is on judged sets: what the hook shows unasked, and what a search on demand finds.

Every way of searching answers the same questions over the same memories. Follow-up questions are asked as the hook asks them,
with the turns before. No question of a set has a date, so no memory is past its retention for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ringtrue.errors import CannotDecide, InputError
from ringtrue.memory.engine import constitutional, documents_of, guaranteed
from ringtrue.memory.hook.encoder import open_encoder
from ringtrue.memory.hook.files import load
from ringtrue.memory.hook.index import Index, MemoryHit
from ringtrue.memory.hook.meaning import open_meaning
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.hook.null_level import null_level
from ringtrue.memory.hook.respond import CANDIDATES, enriched
from ringtrue.memory.hook.settings import HYBRID, Settings, read_settings
from ringtrue.memory.hook.threshold import decide
from ringtrue.memory.tasks import check_known

if TYPE_CHECKING:
    from ringtrue.records import GoldenSet

SETS = ("memory-bench", "agent-280", "tidewater", "millrace")
DIMENSIONS = ("direct", "paraphrase", "oblique", "follow-up", "near-miss", "unrelated")
"""Kinds of prompts that a set may tell apart, in the order they are shown."""
NOW = 0.0
"""The time of every question: before any date, so that nothing is past its retention."""
SHOWN = ("P@3", "SetP@3", "Silent", "FalseInject@3")
"""Of what the hook shows."""
FOUND = ("R@10", "RR", "nDCG@10")
"""Of what a search on demand finds."""
OF_MEMORY = (
    "Constitutional@5",
    "ImportanceRecall@10",
    "ImportanceRecall(tiers=['critical', 'constitutional'])@10",
    "TierP@3",
    "TierP(tier='important')@3",
    "TierP(tier='normal')@3",
    "ChainCompleteness@10",
    "Stale@10",
)
"""Measures of an agent memory, on demand; what a set has no facts for is left out."""
Search = Callable[[str, int], list[MemoryHit]]
Answers = dict[str, list[str]]


@dataclass(frozen=True)
class BenchArm:
    """One way of searching, and of deciding whether to speak."""

    strategy: str
    threshold: str

    @property
    def name(self) -> str:
        return f"{self.strategy}, {self.threshold}"


@dataclass(frozen=True)
class BenchDimension:
    """What the hook did on prompts of one kind."""

    name: str
    prompts: int
    answerable: int
    spoken: int
    """Prompts that got anything."""
    right: int
    """Prompts that got a memory they should get."""
    first: int
    """Prompts that got such a memory in first place."""


ARMS = (
    BenchArm("title_tags", "fixed"),
    BenchArm("fts5_bm25", "fixed"),
    BenchArm("fts5_bm25", "null"),
    BenchArm(HYBRID, "null"),
)
"""The older points and the older cut, BM25 with that cut, words alone, and what is shipped: words and meaning."""


@dataclass(frozen=True)
class BenchRow:
    """One way of searching on one set: its measures by name; what is not defined is left out."""

    golden: str
    arm: BenchArm
    measures: Mapping[str, float]
    queries: int
    off_topic: int
    """Questions that no memory answers."""
    shown: Mapping[str, tuple[str, ...]]
    """What the hook showed, by question."""
    dimensions: tuple[BenchDimension, ...] = ()


def bench(golden: GoldenSet, arms: Sequence[BenchArm] = ARMS) -> list[BenchRow]:
    """Return a row for each way of searching.

    Raises InputError for a set without documents, and as the hybrid does if its packages or its model are missing.
    """
    if not golden.documents:
        raise InputError(f"golden set '{golden.id}' has no documents; name one with memories, like memory-bench")
    from ringtrue.retrieve.channels.memory import as_memory

    memories = [as_memory(document) for document in golden.documents]
    with TemporaryDirectory(prefix="ringtrue-memory-bench-") as made:
        return [_row(golden, arm, memories, Path(made) / "collection") for arm in arms]


def over_folder(golden: GoldenSet, root: str) -> GoldenSet:
    """Return a set that brings no documents with the memories of a folder.

    Raises InputError for a file that holds no memory and for a judged memory that the folder does not have.
    """
    loaded = load(root, read_settings(root)[0])
    if loaded.faults:
        path, fault = loaded.faults[0]
        raise InputError(f"{path}: {fault} (`ringtrue memory doctor` lists every such file)")
    documents = tuple(documents_of(loaded.memories))
    check_known((judgment.doc_id for judgment in golden.judgments), loaded.memories)
    return replace(golden, documents=documents)


def questions_of(golden: GoldenSet, settings: Settings) -> dict[str, str]:
    """Return the text to search for by question, as the hook makes it of a prompt and the turns before."""
    return {
        query.query_id: enriched(
            query.text, settings, turns=[str(turn) for turn in query.metadata.get("transcript_context") or ()]
        )
        for query in golden.queries
    }


def _row(golden: GoldenSet, arm: BenchArm, memories: Sequence[Memory], folder: Path) -> BenchRow:
    from ringtrue.measures import abstention, cold_queries, cold_start

    settings = Settings(match_strategy=arm.strategy, threshold=arm.threshold)
    index = Index(memories, settings)
    level = null_level(index, settings)
    meaning = open_meaning(str(folder.parent), index, settings, open_encoder()) if settings.meaning_decides else None
    search = _search(arm, golden, index, folder)
    always = constitutional(index.memories)
    shown: Answers = {}
    found: Answers = {}
    surfaced: Answers = {}
    prompts = {query.query_id: query.text for query in golden.queries}
    for query_id, text in questions_of(golden, settings).items():
        hits = index.search(text, k=CANDIDATES, now=NOW)
        if meaning is not None:
            hits = meaning.candidates(hits, (prompts[query_id], text), k=CANDIDATES, now=NOW)
        decision = decide(index, hits, text, settings, level=level, prompt=prompts[query_id], meaning=meaning)
        shown[query_id] = [hit.memory.id for hit in decision.inject]
        answer = search(text, 10)
        found[query_id] = [hit.memory.id for hit in answer]
        surfaced[query_id] = [hit.memory.id for hit in guaranteed(answer, always, k=5)] if len(always) <= 5 else []
    negative = {query.query_id for query in golden.queries if query.negative}
    answerable = [query.query_id for query in golden.queries if query.query_id not in negative]
    measures = {**_scores(shown, golden, SHOWN), **_scores(found, golden, FOUND)}
    for measure in OF_MEMORY:
        measures |= _scores(surfaced if measure.startswith("Constitutional") else found, golden, (measure,))
    silence = abstention(_run(shown), negative, list(shown))
    measures |= {
        "answered": sum(bool(shown[query_id]) for query_id in answerable) / len(answerable) if answerable else float("nan"),
        "off-topic silent": sum(not shown[query_id] for query_id in negative) / len(negative) if negative else float("nan"),
        "abstention F1": silence.f1 if negative else float("nan"),
    }
    if cold := cold_queries(golden):
        measures["cold-start ratio"] = cold_start(_run(found), golden, cold).ratio
    if arm.strategy == HYBRID:
        measures |= _lift(golden, found, settings, folder)
    index.close()
    defined = {name: value for name, value in measures.items() if value == value}
    frozen = {query_id: tuple(ids) for query_id, ids in shown.items()}
    return BenchRow(golden.id, arm, defined, len(golden.queries), len(negative), frozen, _dimensions(golden, frozen))


def _dimensions(golden: GoldenSet, shown: Mapping[str, Sequence[str]]) -> tuple[BenchDimension, ...]:
    """Return what was shown to each kind of prompt; empty if the set does not tell these kinds apart."""
    relevant: dict[str, set[str]] = {query.query_id: set() for query in golden.queries}
    for judgment in golden.judgments:
        if judgment.grade >= golden.relevance_threshold:
            relevant[judgment.query_id].add(judgment.doc_id)
    kinds = {query.query_id: query.metadata.get("dimension") for query in golden.queries}
    if not set(kinds.values()) <= set(DIMENSIONS):
        return ()
    return tuple(
        BenchDimension(
            name=name,
            prompts=len(ids := [query_id for query_id, kind in kinds.items() if kind == name]),
            answerable=sum(bool(relevant[one]) for one in ids),
            spoken=sum(bool(shown[one]) for one in ids),
            right=sum(not relevant[one].isdisjoint(shown[one]) for one in ids),
            first=sum(not relevant[one].isdisjoint(shown[one][:1]) for one in ids),
        )
        for name in DIMENSIONS
        if name in kinds.values()
    )


def _search(arm: BenchArm, golden: GoldenSet, index: Index, folder: Path) -> Search:
    """Return the search on demand."""
    if arm.strategy != HYBRID:
        return lambda text, k: index.on_demand(text, k=k, now=NOW, strategy=arm.strategy)
    from ringtrue.retrieve import Collection, build

    by_id = {memory.id: memory for memory in index.memories}
    # Over the documents themselves, as ``ringtrue eval --retriever memory`` has it.
    collection = Collection.create(folder)
    collection.ingest([document for document in golden.documents if document.doc_id in by_id], remove_missing=True)
    retriever: Any = build("memory", collection)

    def ask(text: str, k: int) -> list[MemoryHit]:
        return [MemoryHit(by_id[hit.doc_id], hit.score, rank) for rank, hit in enumerate(retriever.search(text, k=k), 1)]

    return ask


def _lift(golden: GoldenSet, without: Answers, settings: Settings, folder: Path) -> dict[str, float]:
    """Return what knowing the session adds to the reciprocal rank, over the questions that came in one."""
    from ringtrue.measures import personalisation_lift
    from ringtrue.retrieve import Collection, build

    held = {
        query.query_id: [str(one) for one in context["workingMemoryIds"]]
        for query in golden.queries
        if isinstance(context := query.metadata.get("sessionContext"), Mapping) and context.get("workingMemoryIds")
    }
    if not held:
        return {}
    retriever: Any = build("memory", Collection(folder))
    texts = questions_of(golden, settings)
    with_session = {
        query_id: [hit.doc_id for hit in retriever.search(texts[query_id], k=10, session=ids)] for query_id, ids in held.items()
    }
    judged: dict[str, dict[str, int]] = {query_id: {} for query_id in held}
    for judgment in golden.judgments:
        if judgment.query_id in held:
            judged[judgment.query_id][judgment.doc_id] = judgment.grade
    before = {query_id: without[query_id] for query_id in held}
    return {"session lift": personalisation_lift(_run(with_session), _run(before), judged, rel=golden.relevance_threshold)}


def _scores(answers: Answers, golden: GoldenSet, measures: Sequence[str]) -> dict[str, float]:
    from ringtrue.measures import score

    try:
        found = score(_run(answers), golden, list(measures))
        return {measure: found[measure] for measure in measures}
    except CannotDecide:  # the set has no facts for it, such as causal chains
        if len(measures) > 1:
            raise
        return {}


def _run(answers: Answers) -> dict[str, dict[str, float]]:
    """Return answers with scores that keep their order."""
    return {query_id: {doc_id: -float(rank) for rank, doc_id in enumerate(ids)} for query_id, ids in answers.items()}
