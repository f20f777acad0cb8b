"""The report as one JSON object: all its values, under the keys of ``ringtrue eval --json``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringtrue.report import tables
from ringtrue.report.formatting import PERCENTILES
from ringtrue.report.records import Report
from ringtrue.report.sentences import comparison_of, headline, primary, reasons, title
from ringtrue.run import Evaluation

VERDICT = ("word", "exit_code", "mode", "baseline", "checks", "failures", "notes")


def as_json(report: Report) -> str:
    """Return the report as JSON; an undefined number is null."""
    return as_text(record(report))


def as_text(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def facts(report: Report) -> dict[str, str]:
    """Return what JUnit and SARIF say of the run as a whole."""
    setup = report.evaluation.setup
    return {
        "headline": headline(report),
        "retriever": setup.retriever,
        "golden": setup.golden.version,
        "provisional": str(setup.golden.provisional).lower(),
        "reviewed": setup.golden.reviewed,
        "split": setup.golden.split,
        "corpus": setup.corpus or setup.golden.corpus_hash or "",
        "baseline": report.baseline.version if report.baseline else "",
    }


def record(report: Report) -> dict[str, Any]:
    """Return the report as plain values."""
    verdict = report.verdict
    return {
        "title": title(report),
        "made_at": report.made_at,
        "headline": headline(report),
        "reasons": reasons(report),
        "primary": primary(report),
        **_evaluation(report.evaluation),
        "components": {line.name: line.values for line in tables.component_lines(report)},
        "parts": tables.component_lines(report),
        "summary": tables.measure_lines(report),
        "queries": _queries(report),
        # What a baseline holds for every question is in its own file.
        "baseline": report.baseline and _fields(report.baseline, without=("per_query", "latencies", "repeats", "rankings")),
        "comparison": comparison_of(report),
        "other": None if report.other is None else _evaluation(report.other),
        "verdict": verdict and {name: getattr(verdict, name) for name in VERDICT},
        "failing": tables.failing(report),
        "recommendations": report.recommendations,
        "notes": tables.notes(report),
    }


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    found, scores = evaluation.latency, evaluation.scores
    return {
        "name": evaluation.name,
        "setup": evaluation.setup,
        "run_dir": evaluation.run_dir,
        "cached": evaluation.cached,
        "metrics": evaluation.metrics,
        "intervals": evaluation.intervals,
        "spread": {str(measure): scores.summary(measure) for measure in scores.measures},
        "judged_share": scores.judged_share,
        "per_slice": {field: _slices(evaluation, field) for field in tables.slice_fields(evaluation)},
        "latency_ms": {name: getattr(found, name) for name in ("mean", *PERCENTILES)} | {"count": found.count},
        "missing": scores.counted.missing,
        "failures": evaluation.failures,
        "blame": {line.stage: line.count for line in tables.blame_lines(evaluation)},
        "losses": evaluation.losses,
        "relevant_documents": tables.relevant_documents(evaluation),
    }


def _slices(evaluation: Evaluation, field: str) -> dict[str, dict[str, float]]:
    scores = evaluation.scores
    by_measure = {str(measure): scores.by(field, measure) for measure in scores.measures}
    counts = {value: max(means[value].count for means in by_measure.values()) for value in by_measure[str(scores.measures[0])]}
    return {
        value: {"queries": count, **{name: means[value].mean for name, means in by_measure.items()}}
        for value, count in counts.items()
    }


def _queries(report: Report) -> dict[str, Any]:
    facts = {query.query_id: query.metadata for query in report.evaluation.queries}
    return {
        line.query_id: {
            "text": line.text,
            "metadata": facts[line.query_id],
            "scores": line.values,
            "delta": line.delta,
            "latency_ms": line.latency_ms,
            "error": line.error,
            "retrieved": [one.doc_id for one in line.retrieved],
            "expected": {one.doc_id: {"grade": one.grade, "rank": one.rank} for one in line.expected},
            "losses": {loss.doc_id: loss.stage for loss in line.losses},
        }
        for line in tables.query_lines(report)
    }


def _fields(value: Any, *, without: Sequence[str] = ()) -> dict[str, Any]:
    return {item.name: getattr(value, item.name) for item in fields(value) if item.name not in without}


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; an undefined or infinite number becomes null, never 0."""
    if is_dataclass(value) and not isinstance(value, type):
        value = _fields(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float):
        return value
    # JSON in UTF-8 cannot hold halves of surrogate pairs, which some logs contain.
    return str(value.as_posix() if isinstance(value, Path) else value).encode("utf-8", "replace").decode("utf-8")
