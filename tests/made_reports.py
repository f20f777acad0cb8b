"""Reports made by hand: one in which all is well, and the pieces to break it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from made import WHEN, answers, evaluation, golden_set
from ringtrue.measures import Contribution, latency, score
from ringtrue.records import GoldenSet, Judgment, Ranking
from ringtrue.report import Report
from ringtrue.run import Component, Evaluation, Loss
from ringtrue.verdict import Check, Comparison, MeasureComparison, Verdict

PRIMARY = "nDCG@10"


def judged_set(queries: int = 60, documents: int = 40) -> GoldenSet:
    """A set in which every document is judged for every query."""
    golden = golden_set(queries, documents)
    known = {(judgment.query_id, judgment.doc_id) for judgment in golden.judgments}
    rest = tuple(
        Judgment(query.query_id, document.doc_id, 0, "manual")
        for query in golden.queries
        for document in golden.documents
        if (query.query_id, document.doc_id) not in known
    )
    return replace(golden, judgments=golden.judgments + rest)


GOLDEN = judged_set()
"""60 queries with 3 relevant documents each."""


def answered(*, golden: GoldenSet = GOLDEN, **options: Any) -> list[Ranking]:
    """Answers that know which documents are relevant, and not merely judged."""
    relevant = tuple(judgment for judgment in golden.judgments if judgment.grade > 0)
    return answers(replace(golden, judgments=relevant), **options)


def part(name: str, kind: str, *, skill: float, seed: int = 3, unique: float | None = None, ms: float = 20.0) -> Component:
    """A component that finds relevant documents with this skill."""
    rankings = answered(skill=skill, seed=seed, latency=ms)
    return Component(
        name,
        kind,  # type: ignore[arg-type]
        tuple(rankings),
        score(rankings, GOLDEN, ["nDCG@10", "R@5", "P@5"]),
        None if unique is None else Contribution(0.7, unique, 840),
        None if kind == "without" else latency(ranking.latency_ms for ranking in rankings),
    )


PARTS = (
    part("bm25", "channel", skill=0.6, seed=5, unique=0.3),
    part("dense", "channel", skill=0.6, seed=6, unique=0.2),
    part("rrf", "fusion", skill=0.9),
    part("without bm25", "without", skill=0.6, seed=6),
    part("without dense", "without", skill=0.6, seed=5),
    part("rrf >> rerank", "stage", skill=1.0, ms=40.0),
)


def parts(*changed: Component) -> tuple[Component, ...]:
    """The healthy parts, with those of the same name replaced and others added."""
    named = {one.name: one for one in (*PARTS, *changed)}
    return tuple(named.values())


def lost(stage: str, count: int, *, rank: int | None = None) -> tuple[Loss, ...]:
    """So many relevant documents lost at one stage, each of another query until these run out."""
    wanted = [judgment for judgment in GOLDEN.judgments if judgment.grade >= 1]
    spread = [*wanted[::3], *wanted[1::3], *wanted[2::3]]
    return tuple(
        Loss(one.query_id, one.doc_id, one.grade, stage, 10, rank, {"bm25": 40})  # type: ignore[arg-type]
        for one in spread[:count]
    )


def compared(measure: str = PRIMARY, diff: float = 0.0, reach: float = 0.01, **changes: Any) -> MeasureComparison:
    """A comparison of one measure with the interval diff ± reach over the 60 queries."""
    word = "better" if diff > reach else "worse" if diff < -reach else "not enough evidence"
    queries = [query.query_id for query in GOLDEN.queries]
    values: dict[str, Any] = {
        "measure": measure, "n": 60, "a": 0.9, "b": 0.9 + diff, "diff": diff, "low": diff - reach, "high": diff + reach,
        "p": 0.5, "p_adjusted": 0.5, "t": 1.0, "t_p": 0.5, "wilcoxon_p": 0.5, "effect": 0.1, "prob_better": 0.5,
        "wins": 20, "ties": 30, "losses": 10, "word": word, "reason": "so it is", "detectable": 0.02, "more_queries": None,
        "deltas": {query_id: (-0.3 if index < 10 else 0.1) for index, query_id in enumerate(queries[:30])},
    }  # fmt: skip
    return MeasureComparison(**(values | changes))


def comparison(*measures: MeasureComparison, **changes: Any) -> Comparison:
    """Against a run called before."""
    found = {one.measure: one for one in measures or (compared(), compared("P@5"), compared("R@20"))}
    primary = found.get(PRIMARY) or compared()
    values: dict[str, Any] = {
        "a": "before", "b": "hybrid", "primary": PRIMARY, "verdict": primary.word, "reason": primary.reason,
        "measures": {PRIMARY: primary} | found,
    }  # fmt: skip
    return Comparison(**(values | changes))


def verdict(*checks: Check, word: str = "pass", **changes: Any) -> Verdict:
    """A verdict with these checks, or with one that passed."""
    healthy = (Check("floor", "R@5", "pass", "R@5 at or above its floor: 0.9500 ≥ 0.8000", 0.95, 0.80),)
    return Verdict(word, checks or healthy, "hybrid", **({"baseline": "1.0.0"} | changes))  # type: ignore[arg-type]


def healthy(
    rankings: Sequence[Ranking] | None = None,
    *,
    golden: GoldenSet = GOLDEN,
    setup: dict[str, Any] | None = None,
    **changes: Any,
) -> Evaluation:
    """An evaluation that nobody could complain about."""
    config = {"embedding_model": "all-MiniLM-L6-v2", "chunking": "fixed_512_50", "reranker": "cross", "fusion": "rrf"}
    found = answered(golden=golden, skill=1.0) if rankings is None else rankings
    values: dict[str, Any] = {"components": PARTS, "losses": lost("below k", 4, rank=12), "intervals": {PRIMARY: (0.9, 0.99)}}
    return evaluation(golden, found, name="hybrid", setup={"config": config} | (setup or {}), **(values | changes))


@cache
def _untouched() -> Evaluation:
    return healthy()


def clean(**changes: Any) -> Report:
    """A report on it, with all the evidence that a rule could ask for."""
    values: dict[str, Any] = {"evaluation": _untouched(), "made_at": WHEN, "comparison": comparison(), "verdict": verdict()}
    return Report(**(values | changes))
