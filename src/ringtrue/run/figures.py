"""What an evaluation says beside its scores: figures by their columns in eval_results, and notes for its reader.

A figure does not depend on the measures asked for; it is absent if the answers end above the rank that it looks at, or if the
set has no labels for it. A note is one plain sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal

from ringtrue.errors import CannotDecide
from ringtrue.measures import Measure, cold_queries, cold_start, personalisation_lift, score
from ringtrue.records import GoldenSet, Ranking
from ringtrue.run.ask import Question, ask_all
from ringtrue.run.evaluation import Precondition
from ringtrue.run.named import IdOf, mapped

Failed = Literal["list", "exclude", "zero"]
SHORTEST = 4
"""Characters of an id from which one letter more, less or other is taken for a slip."""
FIGURES: Mapping[str, str] = {
    "mrr_at_5": "RR@5",
    "mrr_at_10": "RR@10",
    "ndcg_at_5": "nDCG@5",
    "ndcg_at_10": "nDCG@10",
    "ndcg_at_20": "nDCG@20",
    "recall_at_5": "R@5",
    "recall_at_10": "R@10",
    "constitutional_surfacing_rate": "Constitutional@5",
    "importance_weighted_recall": "ImportanceRecall@10",
    "causal_chain_completeness": "ChainCompleteness@10",
    "result_diversity_score": "Diversity@10",
}
"""Column → the measure that fills it."""


def figures_of(rankings: Sequence[Ranking], golden: GoldenSet, reaches: Callable[[int], bool]) -> dict[str, float]:
    """Return figures by column; ``reaches`` tells whether answers go down to a rank."""
    wanted = {column: Measure.parse(name) for column, name in FIGURES.items()}
    wanted = {column: measure for column, measure in wanted.items() if reaches(int(measure.at or 0))}
    ranked = {column: measure for column, measure in wanted.items() if not measure.definition.lists}
    scores = score(rankings, golden, ranked.values()).aggregate if ranked else {}
    found = {column: scores[str(measure)] for column, measure in ranked.items()}
    for column in wanted.keys() - ranked.keys():
        with suppress(CannotDecide):  # the set does not declare what the measure needs
            found[column] = score(rankings, golden, [wanted[column]])[wanted[column]]
    if cold := cold_queries(golden):
        found["cold_start_mrr"] = cold_start(rankings, golden, cold).cold
    return {column: value for column, value in found.items() if not math.isnan(value)}


def session_lift(
    questions: Iterable[Question], rankings: Iterable[Ranking], golden: GoldenSet, *, timeout: float, id_of: IdOf
) -> dict[str, float]:
    """Return what knowing the session adds to the reciprocal rank; the questions that have one are asked again without it."""
    told = [one for one in questions if "session" in one.options]
    queries = {one.query_id for one in told}
    plain = [replace(one, options={name: value for name, value in one.options.items() if name != "session"}) for one in told]
    judged = golden.part(queries)
    with suppress(CannotDecide):
        without = [answer.ranking for answer in ask_all(plain if judged.judgments else (), timeout=timeout, timed=False)]
        if without and all(one.error is None for one in without):
            without = [replace(one, hits=mapped(one.hits, id_of)) for one in without]
            lift = personalisation_lift([one for one in rankings if one.query_id in queries], without, judged)
            return {} if math.isnan(lift) else {"session_personalization_lift": lift}
    return {}


def how_answered(
    errors: Sequence[str], asked: int, failed: Failed, *, resumed: int, met: Iterable[Precondition]
) -> Iterator[str]:
    """Yield one plain sentence for everything that readers should know about how the answers were made."""
    if errors:
        fate = "count as empty answers, as asked" if failed == "zero" else "are left out of every mean"
        yield f"{len(errors)} of {asked} queries failed and {fate}; the first: {errors[0]}"
    for one in met:
        if one.status == "failed":
            yield f"accepted with --allow {one.name}: {one.detail}"
    if resumed:
        yield f"{resumed} answers come from an evaluation that was interrupted, with the latency they had then"


def misspelt(golden: GoldenSet, rankings: Iterable[Ranking]) -> Iterator[str]:
    """Yield a sentence if judged documents were never answered, but documents of nearly the same id that nobody judged were."""
    answered = dict.fromkeys(hit.doc_id for ranking in rankings for hit in ranking.hits)
    judged = dict.fromkeys(judgment.doc_id for judgment in golden.judgments)
    right = {document.doc_id for document in golden.documents}
    known = {form: doc_id for doc_id in answered if doc_id not in judged for form in _spellings(doc_id)}
    pairs = [
        (doc_id, next(known[form] for form in _spellings(doc_id) if form in known))
        for doc_id in judged
        if doc_id not in answered and doc_id not in right and any(form in known for form in _spellings(doc_id))
    ]
    if pairs:
        shown = "; ".join(f"'{doc_id}' was never answered, but '{near}' was" for doc_id, near in pairs[:3])
        more = f"; and {len(pairs) - 3} more" if pairs[3:] else ""
        yield f"{shown}{more}; check the spelling of the judged ids"


def about_chunks(golden: GoldenSet, rankings: Iterable[Ranking]) -> Iterator[str]:
    """Yield why Top1Chunk is undefined or 0 for every query: the search names no chunks, or names them differently."""
    declared = {str(query.metadata["top_1_chunk"]) for query in golden.queries if query.metadata.get("top_1_chunk")}
    hits = [hit for ranking in rankings for hit in ranking.hits]
    named = {hit.chunk for hit in hits if hit.chunk is not None}
    chunks = declared - {judgment.doc_id for judgment in golden.judgments} or declared
    if not (declared.isdisjoint(named) if named else chunks.isdisjoint(hit.doc_id for hit in hits)):
        return
    if not named:
        yield "Top1Chunk is undefined: the search names no chunks; add the chunk to each hit, or leave this measure out"
    elif declared:
        yield (
            f"no answer has a declared chunk such as '{min(declared)}', but chunks such as '{min(named)}'; "
            "Top1Chunk is 0 unless both are written alike"
        )


def _spellings(doc_id: str) -> Iterator[str]:
    """Yield what an id shares with ids that differ by case, spaces or one letter; other digits are another document.

    >>> "bk006" in set(_spellings("BK-006")), set(_spellings("bk-006")) & set(_spellings("bk-007"))
    (True, set())
    """
    plain = "".join(doc_id.casefold().split())
    yield plain
    if len(plain) >= SHORTEST:
        yield from (plain[:place] + plain[place + 1 :] for place, letter in enumerate(plain) if not letter.isdigit())
