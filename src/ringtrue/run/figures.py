"""Figures that an evaluation has whatever measures were asked for, by their columns in eval_results (O-1).

One is absent if the answers end above the rank that it looks at, or if the set has no labels for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ringtrue.errors import CannotDecide
from ringtrue.measures import Measure, cold_queries, cold_start, personalisation_lift, score
from ringtrue.records import GoldenSet, Ranking
from ringtrue.run.ask import Question, ask_all
from ringtrue.run.ids import IdOf, mapped

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
    judged = replace(golden, judgments=tuple(one for one in golden.judgments if one.query_id in queries))
    judged = replace(judged, queries=tuple(one for one in golden.queries if one.query_id in queries))
    if not judged.judgments:
        return {}
    with suppress(CannotDecide):
        without = [answer.ranking for answer in ask_all(plain, timeout=timeout, timed=False)]
        if all(one.error is None for one in without):
            without = [replace(one, hits=mapped(one.hits, id_of)) for one in without]
            lift = personalisation_lift([one for one in rankings if one.query_id in queries], without, judged)
            return {} if math.isnan(lift) else {"session_personalization_lift": lift}
    return {}
