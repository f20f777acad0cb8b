"""Shadow data on the golden corpus: two evaluations of one set become shadow runs and a pair of stored results (S-1, S-5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from ringtrue.errors import CannotDecide
from ringtrue.rollout.scoring import Feed, Scored, compared, drawn_order
from ringtrue.rollout.shadow_summary import ON_GOLDEN
from ringtrue.rollout.stored_results import result_of
from ringtrue.store import DEFAULT_PROJECT, ShadowRun, StoredResult, timestamp

if TYPE_CHECKING:
    from ringtrue.records import GoldenSet
    from ringtrue.run import Evaluation

RR, NDCG, SURFACING = "RR@10", "nDCG@10", "Constitutional@5"
ANSWERS = 10


class ResultStore(Protocol):
    """What recording needs of the store."""

    def add_result(self, row: StoredResult) -> None: ...

    def add_shadow_runs(self, rows: Sequence[ShadowRun]) -> int: ...


@dataclass(frozen=True, slots=True)
class OnGolden:
    """Production and candidate on the golden corpus."""

    control: StoredResult
    treatment: StoredResult
    rows: tuple[ShadowRun, ...]


def measures_for(golden: GoldenSet) -> tuple[str, ...]:
    """Return what both sides must be measured by: surfacing too, where the set has constitutional documents."""
    return (RR, NDCG) if without_constitutional(golden) else (RR, NDCG, SURFACING)


def without_constitutional(golden: GoldenSet) -> str:
    """Return the words that say that no document of a set is constitutional; '' where one is."""
    from ringtrue.golden import version_name
    from ringtrue.measures import Facts

    facts = Facts.of(golden)
    if any(facts.tier(doc_id) == "constitutional" and not facts.out_of_use(doc_id) for doc_id in facts.documents):
        return ""
    return f"{version_name(golden)} has no constitutional documents"


def record_on_golden(
    store: ResultStore,
    feature_id: str,
    control: Evaluation,
    treatment: Evaluation,
    *,
    now: datetime,
    feed: Feed | None = None,
    project: str = DEFAULT_PROJECT,
) -> OnGolden:
    """Store what two evaluations of one golden set show about a candidate, and return it.

    ``feed`` hears of both sides' scores per question, under the id that live searches with its words have too
    (``question_id``), for a sequential test, in a drawn order: that of the file must not decide. Raises CannotDecide where
    the two cannot be compared: another set, or a query that only one side has scored.
    """
    from ringtrue.feedback.derive import question_id
    from ringtrue.verdict import compare

    if set(control.scores.query_ids) != set(treatment.scores.query_ids):
        raise CannotDecide("production and candidate were not scored on the same queries; evaluate both with failed='zero'")
    found = compare(control, treatment, primary=RR)
    moment = timestamp(now)
    # One name per pair: a query counts once for a feature, but every run on the golden corpus is a new one.
    names = f"golden-{feature_id}-{moment}-production", f"golden-{feature_id}-{moment}-candidate"
    rows = tuple(_rows(feature_id, control, treatment, moment, project))
    sides = (control, None, None), (treatment, found, names[0])
    results = [
        replace(
            result_of(one, name, "shadow", moment, comparison),
            project=project,
            feature_id=feature_id,
            control_run_id=control_run_id,
        )
        for name, (one, comparison, control_run_id) in zip(names, sides, strict=True)
    ]
    for result in results:
        store.add_result(result)
    store.add_shadow_runs(rows)
    if feed is not None:
        texts = {query.query_id: query.text for query in control.queries}
        scored: dict[str, tuple[Scored, Scored]] = {}
        for query_id in control.scores.query_ids:
            before, after = _scored(control, query_id), _scored(treatment, query_id)
            if before is not None and after is not None:
                scored.setdefault(question_id(texts[query_id]), (before, after))
        for asked in drawn_order(feature_id, scored):
            feed(asked, *scored[asked])
    return OnGolden(results[0], results[1], rows)


def _rows(feature_id: str, control: Evaluation, treatment: Evaluation, moment: str, project: str) -> list[ShadowRun]:
    rows = []
    for ranking in control.rankings:
        other = treatment.ranking(ranking.query_id)
        if ranking.error is not None:
            continue  # nothing stands beside the candidate's answer
        row = ShadowRun(
            query_id=f"{ON_GOLDEN}{moment}:{ranking.query_id}",
            feature_id=feature_id,
            created_at=moment,
            control_result_ids=tuple(hit.doc_id for hit in ranking.hits[:ANSWERS]),
            treatment_result_ids=tuple(hit.doc_id for hit in other.hits[:ANSWERS]),
            project=project,
            control_latency_ms=ranking.latency_ms,
            treatment_latency_ms=other.latency_ms,
            error=other.error,
            source="golden",
        )
        if other.error is None:
            sides = [_scored(one, ranking.query_id) for one in (control, treatment)]
            scores = None if sides[0] is None or sides[1] is None else (sides[0], sides[1])
            row = compared(row, k=ANSWERS, scores=scores)
        rows.append(row)
    return rows


def _scored(evaluation: Evaluation, query_id: str) -> Scored | None:
    values = evaluation.scores.per_query.get(query_id, {})
    rr, ndcg = values.get(RR, math.nan), values.get(NDCG, math.nan)
    return None if math.isnan(rr + ndcg) else Scored(rr, ndcg)
