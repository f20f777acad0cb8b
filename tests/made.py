"""Evaluations made by hand, for tests of what comes after evaluating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ringtrue.measures import score
from ringtrue.records import Document, GoldenSet, Hit, Judgment, Query, Ranking, Stage
from ringtrue.run import DEFAULT_MEASURES, Evaluation, Origin, Setup

WHEN = "2026-11-16T08:00:00+00:00"


def golden_set(queries: int = 60, documents: int = 200, *, relevant: int = 3, threshold: int = 1, seed: int = 0) -> GoldenSet:
    """A set with ``relevant`` graded documents per query, in two slices."""
    rng = np.random.default_rng(seed)
    asked = tuple(
        Query(f"q{n:03}", f"question number {n}", {"query_type": "factual" if n % 3 else "comparative"}) for n in range(queries)
    )
    there = tuple(Document(f"d{n:03}", f"text of document {n}", f"Document {n}") for n in range(documents))
    judged = tuple(
        Judgment(query.query_id, f"d{doc:03}", int(grade), "manual")
        for query in asked
        for doc, grade in zip(rng.choice(documents, relevant, replace=False), [3, *[2] * (relevant - 1)], strict=True)
    )
    return GoldenSet("made", "1.0.0", asked, judged, there, relevance_threshold=threshold, slices=("query_type",))


def answers(golden: GoldenSet, *, skill: float = 0.7, k: int = 20, seed: int = 1, latency: float = 20.0) -> list[Ranking]:
    """Answers that put each relevant document near the top with chance ``skill``, else somewhere or nowhere."""
    rng = np.random.default_rng(seed)
    everyone = [document.doc_id for document in golden.documents]
    relevant: dict[str, list[str]] = {}
    for judgment in golden.judgments:
        relevant.setdefault(judgment.query_id, []).append(judgment.doc_id)
    rankings = []
    for query in golden.queries:
        keys = {doc_id: rng.random() for doc_id in everyone}
        for doc_id in relevant.get(query.query_id, ()):
            if rng.random() < skill:
                keys[doc_id] += 1
        order = sorted(everyone, key=lambda doc_id: -keys[doc_id])[:k]
        hits = tuple(
            Hit(doc_id, float(k - place), channels={"bm25": place + 1}, stages=(Stage("bm25", place + 1, float(k - place)),))
            for place, doc_id in enumerate(order)
        )
        rankings.append(Ranking(query.query_id, hits, latency_ms=float(rng.gamma(4, latency / 4))))
    return rankings


def evaluation(
    golden: GoldenSet | None = None,
    rankings: Sequence[Ranking] | None = None,
    *,
    name: str = "bm25",
    measures: Sequence[str] = DEFAULT_MEASURES,
    setup: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Evaluation:
    """An Evaluation of these answers, or of made ones; ``setup`` and ``changes`` replace fields."""
    golden = golden or golden_set()
    rankings = tuple(answers(golden) if rankings is None else rankings)
    origin = Origin.of(golden)
    how = Setup(
        retriever=name, config={"fusion": None}, fingerprint=f"print-of-{name}", golden=origin, k=20, measures=tuple(measures),
        recorded_at=WHEN, ringtrue="0.1.0", machine="test-machine", corpus="c0ffee",
    )  # fmt: skip
    failed = {ranking.query_id for ranking in rankings if ranking.error is not None}
    answered = replace(
        golden,
        queries=tuple(query for query in golden.queries if query.query_id not in failed),
        judgments=tuple(judgment for judgment in golden.judgments if judgment.query_id not in failed),
    )
    made = Evaluation(
        name=name,
        setup=replace(how, **(setup or {})),
        queries=golden.queries,
        qrels=golden.qrels,
        titles={document.doc_id: document.title for document in golden.documents},
        rankings=rankings,
        classes=golden.equivalence_classes,
        scores=score(rankings, answered, measures),
    )
    return replace(made, **changes)
