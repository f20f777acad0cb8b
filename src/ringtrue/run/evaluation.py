"""What an evaluation is, as frozen values: the answers, their scores, and everything needed to repeat or explain them.

An ``Evaluation`` stands on its own: it carries the questions, the judgments and the titles it was made with, so that reports,
comparisons and gates need neither the golden set nor the search behind it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from ringtrue.brief import brief
from ringtrue.golden import content_hash, slice_fields, version_name
from ringtrue.measures import Contribution, Latency, Measure, Scores, channel_contribution, latency
from ringtrue.records import GoldenSet, Qrels, Query, Ranking, share_confirmed

DEFAULT_MEASURES = ("nDCG@10", "nDCG@5", "R@5", "R@10", "R@20", "P@5", "RR", "Success@1")


def usual_measures(k: int | None) -> tuple[str, ...]:
    """Return the usual measures, without those that look deeper than the ``k`` hits that are asked for."""
    return tuple(text for text in DEFAULT_MEASURES if k is None or (Measure.parse(text).at or 0) <= k)


CONTRIBUTED = 10
"""The first hits, of an answer and of a channel, in which contributions are counted."""
NOT_CACHED = (
    "not cached: Ringtrue cannot see whether this system changed; "
    "to cache results, name its version (--version, version= in Python)"
)
REPLAYED = "answers were replayed from a file; no latency was measured"
"""Notes on how an evaluation was made, which ask nothing of its reader."""
Status = Literal["met", "failed", "not checked"]


@dataclass(frozen=True)
class Origin:
    """The golden set behind a result, exactly."""

    id: str
    version: str
    """Like ``golden-dataset-v1.2.0``."""
    content_hash: str
    corpus_hash: str | None
    relevance_threshold: int
    scale: tuple[int, int] = (0, 3)
    provisional: bool = False
    """True while no person confirmed a judgment."""
    profile: str = "general"
    split: str = "all"
    """'all', 'tuning' or 'held_out'."""
    slices: tuple[str, ...] = ()
    """The fields by which its queries are divided, the most telling first."""
    judgments: int | None = None
    confirmed: int | None = None
    """How many judgments there are, and how many of them a person confirmed; None in records made before this was kept."""

    @property
    def reviewed(self) -> str:
        """How far people confirmed the judgments, in words."""
        if self.judgments is None or self.confirmed is None:
            return "provisional: no judgment confirmed by a person" if self.provisional else "judgments confirmed by a person"
        return share_confirmed(0 if self.provisional else self.confirmed, self.judgments)

    @property
    def unreviewed(self) -> bool:
        """True if there are judgments that no person is known to have confirmed."""
        return self.provisional or (self.confirmed is not None and self.confirmed != self.judgments)

    @classmethod
    def of(cls, golden: GoldenSet) -> Origin:
        """Return the origin of what is measured with a set, or with a part of it."""
        same = ("id", "corpus_hash", "relevance_threshold", "scale", "provisional", "profile", "confirmed")
        return cls(
            version=version_name(golden),
            content_hash=content_hash(golden),
            split=str(golden.metadata.get("split", "all")),
            slices=slice_fields(golden),
            judgments=len(golden.judgments),
            **{name: getattr(golden, name) for name in same},
        )


@dataclass(frozen=True)
class Precondition:
    """One thing that must hold before any number, and whether it did; 'not checked' says why it could not be."""

    name: str
    status: Status
    detail: str = ""


@dataclass(frozen=True)
class Setup:
    """What was measured, how, with what and where."""

    retriever: str
    """The expression with every default written out, or the name of a function."""
    config: Mapping[str, Any]
    """What it is made of: embedding_model, chunking, fusion, reranker, and what else its author declares."""
    fingerprint: str
    """Hash of retriever, configuration, code and model versions; '' if they cannot be known."""
    golden: Origin
    k: int
    """Hits asked for."""
    measures: tuple[str, ...]
    recorded_at: str
    """When the answers were made, ISO 8601 in UTC; a cached result keeps its own."""
    ringtrue: str
    """Version of this program."""
    machine: str = ""
    """Short name of the kind of machine: latencies are comparable only where it is the same."""
    workers: int = 1
    sample: float = 1.0
    session: bool = False
    corpus: str | None = None
    """Hash of the documents that were searched; None if they are out of sight."""
    preconditions: tuple[Precondition, ...] = ()
    search: str = ""
    """The retriever as the user wrote it, if the run has a name of its own."""
    arguments: tuple[str, ...] = ()
    """Options of ``ringtrue eval`` that name golden set and search, as the user wrote them; () if another program evaluated."""

    def __repr__(self) -> str:
        made = {"k": self.k, "measures": self.measures, "recorded_at": self.recorded_at, "machine": self.machine}
        return brief(self, retriever=self.retriever, fingerprint=self.fingerprint, golden=self.golden.version, **made)


ComponentKind = Literal["channel", "fusion", "stage", "without"]


@dataclass(frozen=True, eq=False)
class Component:
    """One part of a fused retriever, evaluated on the candidate lists of the same pass."""

    name: str
    """Like ``bm25``, ``weighted``, ``weighted >> rerank`` or ``without bm25``."""
    kind: ComponentKind
    rankings: tuple[Ranking, ...]
    scores: Scores
    contribution: Contribution | None = None
    """A channel's share of the final hits, and of those that no other channel had."""
    latency: Latency | None = None

    def __repr__(self) -> str:
        return brief(self, name=self.name, kind=self.kind, queries=len(self.rankings), metrics=self.scores.aggregate)


LossStage = Literal[
    "not in corpus", "not in any list", "cut by fusion", "demoted by rerank", "cut by threshold", "wrong chunk", "below k"
]


@dataclass(frozen=True)
class Loss:
    """A relevant document that is missing at k, and the stage that lost it."""

    query_id: str
    doc_id: str
    grade: int
    stage: LossStage
    k: int
    rank: int | None = None
    """Its final rank beyond k; None if it is in no final list."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """Its rank along the way, by the name of the channel or step, in their order; absent if it was not listed."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One retriever on one golden set: every answer, every score, and where relevant documents were lost."""

    name: str
    """What tables call it: a name of its own, or the retriever as the user wrote it."""
    setup: Setup
    queries: tuple[Query, ...]
    """The questions asked, in their order."""
    qrels: Qrels
    titles: Mapping[str, str]
    """Titles of judged and returned documents, where known; for people who read."""
    rankings: tuple[Ranking, ...]
    """One for every question; one that failed carries its error and no hits."""
    scores: Scores
    """Over the questions that were answered; ``scores.facts`` holds their metadata for slices."""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """95 % interval of each measure's mean."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What the answers show whatever measures were asked for, by column of eval_results; unknown ones are absent."""
    components: tuple[Component, ...] = ()
    losses: tuple[Loss, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    """How returned documents begin, if a connected system said it; for people who judge them."""
    classes: tuple[tuple[str, ...], ...] = ()
    """Documents that are interchangeable; a class counts as one."""
    repeats: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Milliseconds of every pass over the queries after the first, by query; empty unless more passes were asked for."""
    relevant: int | None = None
    """Relevant documents of the answered questions, interchangeable ones counted once: what ``losses`` are losses of."""
    cached: bool = False
    run_dir: Path | None = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        golden, times = self.setup.golden.version, {name: getattr(self.latency, name) for name in ("p50", "p95")}
        facts = {"search": self.search, "golden": golden, "queries": len(self.queries), "metrics": self.metrics}
        found = {"failures": len(self.failures), "components": len(self.components), "losses": len(self.losses)}
        return brief(self, name=self.name, **facts, latency_ms=times, **found, cached=self.cached)

    @property
    def search(self) -> str:
        """Return the retriever as the user wrote it."""
        return self.setup.search or self.name

    @property
    def metrics(self) -> dict[str, float]:
        """Return ``{measure: mean}``."""
        return self.scores.aggregate

    @property
    def failures(self) -> dict[str, str]:
        """Return ``{query: error}`` of the questions that got no answer."""
        return {ranking.query_id: ranking.error for ranking in self.rankings if ranking.error is not None}

    @cached_property
    def grades(self) -> Mapping[str, Mapping[str, int]]:
        """Return query → document → grade, of all judgments."""
        return self.qrels.to_dict()

    @cached_property
    def latencies(self) -> dict[str, float]:
        """Return the milliseconds of the first pass by query, around the retriever alone; queries not timed are absent."""
        return {ranking.query_id: ranking.latency_ms for ranking in self.rankings if ranking.latency_ms is not None}

    @cached_property
    def timings(self) -> dict[str, tuple[float, ...]]:
        """Return the milliseconds of every pass by query; queries that were not timed are absent."""
        return {query: (first, *self.repeats.get(query, ())) for query, first in self.latencies.items()}

    @property
    def latency(self) -> Latency:
        """Return mean and percentiles in milliseconds over all passes; nan if nothing was measured."""
        return latency(chain.from_iterable(self.timings.values()))

    def named(self, name: str) -> Evaluation:
        """Return the same evaluation under a name of its own."""
        return replace(self, name=name, setup=replace(self.setup, search=self.search))

    @property
    def contributions(self) -> dict[str, Contribution]:
        """Return what each channel brought to the first ten hits; empty if neither parts nor hits tell their channels."""
        parts = {part.name: part.contribution for part in self.components if part.contribution is not None}
        if parts:
            return parts
        firsts = []
        for ranking in self.rankings:
            # Those of a hit's channels that had it among their own first hits.
            own = [{name: rank for name, rank in hit.channels.items() if rank <= CONTRIBUTED} for hit in ranking.hits]
            hits = (replace(hit, channels=first) for hit, first in zip(ranking.hits[:CONTRIBUTED], own, strict=False))
            firsts.append(replace(ranking, hits=tuple(hits)))
        return channel_contribution(firsts)

    def ranking(self, query_id: str) -> Ranking:
        """Return the answer to one question; raises KeyError."""
        return self._by_query[query_id]

    @cached_property
    def _by_query(self) -> dict[str, Ranking]:
        return {ranking.query_id: ranking for ranking in self.rankings}
