"""Evaluations in the store: what ``eval`` and ``gate`` found, as health and graduation read it (O-1, O-3)."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from ringtrue.store import DEFAULT_PROJECT, RunType, StoredResult, StoredRun, timestamp

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.verdict import Comparison, Verdict


class ResultStore(Protocol):
    """What recording needs of the store."""

    def add_result(self, row: StoredResult) -> None: ...

    def save_run(self, row: StoredRun) -> bool: ...


def record_evaluation(
    store: ResultStore,
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
