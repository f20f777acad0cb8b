"""Evaluations in the store, as health and graduation read them: what ``eval`` and ``gate`` found, and shadow data.

Two evaluations of one golden set, production's and a candidate's, become shadow runs and a pair of stored results.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ringtrue.errors import CannotDecide
from ringtrue.rollout.scoring import Feed, Scored, compared, drawn_order
from ringtrue.rollout.shadow_summary import ON_GOLDEN
from ringtrue.store import DEFAULT_PROJECT, RunType, ShadowRun, StoredResult, StoredRun, timestamp

if TYPE_CHECKING:
    from ringtrue.records import GoldenSet
    from ringtrue.run import Evaluation
    from ringtrue.store import Store
    from ringtrue.verdict import Comparison, Verdict

RR, NDCG, SURFACING = "RR@10", "nDCG@10", "Constitutional@5"
ANSWERS = 10


def record_evaluation(
    store: Store,
    evaluation: Evaluation,
    *,
    now: datetime,
    verdict: Verdict | None = None,
    comparison: Comparison | None = None,
    control_run_id: str | None = None,
    feature_id: str | None = None,
    uploaded: bool = False,
    project: str = DEFAULT_PROJECT,
) -> StoredResult:
    """Add an evaluation to the store, gated (``verdict``) or compared with another run, and return what was stored of it.

    The run itself, with every hit, is kept under the same run id. Means, intervals, latencies and the scores per query are its
    result, without latencies where the answers came from the cache; of a comparison the differences, and for its primary
    measure the adjusted p and whether it decides. A verdict brings its own comparison, with the baseline. ``feature_id`` marks
    a candidate, ``uploaded`` a golden set that is kept nowhere: neither is about production.
    """
    from ringtrue.run import packed  # a live system records no evaluation and should not pay for this

    moment = timestamp(now)
    kind: RunType = "full" if verdict is None else "regression"
    if verdict is not None:
        comparison = comparison or verdict.comparison
        control_run_id = control_run_id or (None if verdict.baseline is None else f"baseline {verdict.baseline}")
    result = replace(
        result_of(evaluation, f"{kind}-{moment}-{_mark(evaluation)}", kind, moment, comparison),
        project=project,
        feature_id=feature_id,
        control_run_id=control_run_id,
        gate=None if verdict is None else verdict.word,
        uploaded=uploaded,
    )
    # In this order a result that is listed always has its run.
    store.save_run(StoredRun(result.run_id, evaluation.name, moment, packed(evaluation), project))
    store.add_result(result)
    return result


def result_of(
    evaluation: Evaluation, run_id: str, run_type: RunType, created_at: str, comparison: Comparison | None = None
) -> StoredResult:
    """Return the row of an evaluation, with all that it knows; what it does not know is None."""
    from ringtrue.run import FIGURES

    primary = None if comparison is None else comparison.measures[comparison.primary]
    metrics = _known(evaluation.metrics)
    figures: dict[str, Any] = {column: metrics[measure] for column, measure in FIGURES.items() if measure in metrics}
    figures |= evaluation.figures
    return StoredResult(
        run_id=run_id,
        run_type=run_type,
        created_at=created_at,
        query_count=len(evaluation.scores.query_ids),
        metrics=metrics,
        golden=evaluation.setup.golden.version,
        retriever=evaluation.setup.retriever,
        intervals={name: ends for name, ends in evaluation.intervals.items() if not math.isnan(sum(ends))},
        # Answers from the cache took their time when they were made, not now.
        latency_ms={}
        if evaluation.cached
        else _known({part: ms for part, ms in asdict(evaluation.latency).items() if part != "count"}),
        deltas={} if comparison is None else _known({name: one.diff for name, one in comparison.measures.items()}),
        p_value=None if primary is None else primary.p_adjusted,
        is_significant=None if comparison is None else comparison.verdict != "not enough evidence",
        per_query=evaluation.scores.per_query,
        channel_contribution={name: asdict(part) for name, part in evaluation.contributions.items()} or None,
        **figures,
    )


def _known(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if not math.isnan(value)}


def _mark(evaluation: Evaluation) -> str:
    """Return what tells evaluations apart that end in the same moment."""
    setup = evaluation.setup
    known = (evaluation.name, setup.retriever, setup.fingerprint, setup.golden.content_hash, setup.recorded_at)
    said = "\0".join((*known, repr(sorted(evaluation.metrics.items()))))
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:8]


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
    store: Store,
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
