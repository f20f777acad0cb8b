"""The baseline: what is held to be good enough, in one JSON file that is committed to git.

The file diffs well: keys in a fixed order, a line for each measure, each setting and each query. Nothing here writes it but
``write_baseline``, and a gate never calls that.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ringtrue.answers import RecordReader
from ringtrue.errors import InputError, SpecError, nearest
from ringtrue.formats import Place, field_of, read_json, write_whole
from ringtrue.golden import parse_version
from ringtrue.measures import Measure
from ringtrue.run import Evaluation, Origin, json_value
from ringtrue.verdict.records import PERCENTILES, Baseline

FORMAT = 1
NAME = "ringtrue-baseline.json"
KEPT_HITS = 10
AGAIN = "restore the file from git, or record it again with `ringtrue baseline update`"


def baseline_of(evaluation: Evaluation, *, version: str = "1.0.0", reason: str = "") -> Baseline:
    """Return an evaluation as a baseline; raises InputError for a version that is not like 1.2.0."""
    check_version(version, "version")
    setup, seen = evaluation.setup, evaluation.latency
    same = ("retriever", "config", "fingerprint", "golden", "corpus", "recorded_at", "machine", "workers")
    return Baseline(
        **{name: getattr(setup, name) for name in same},
        version=version,
        metrics=dict(evaluation.metrics),
        latency={name: round(getattr(seen, name), 3) for name in PERCENTILES} if evaluation.latencies else {},
        per_query=dict(sorted(evaluation.scores.per_query.items())),
        latencies={query: round(value, 3) for query, value in sorted(evaluation.latencies.items())},
        repeats={query: tuple(round(value, 3) for value in times) for query, times in sorted(evaluation.repeats.items())},
        rankings={
            ranking.query_id: tuple(hit.doc_id for hit in ranking.hits[:KEPT_HITS])
            for ranking in sorted(evaluation.rankings, key=lambda ranking: ranking.query_id)
            if ranking.error is None
        },
        judged=_judged(evaluation),
        reason=reason,
    )


def _judged(evaluation: Evaluation) -> dict[str, str]:
    """Return a hash of the text of every scored query and of all that its measures read from the judgments."""
    origin, grades = evaluation.setup.golden, evaluation.qrels.to_dict()
    texts = {query.query_id: query.text for query in evaluation.queries}

    def hashed(query: str) -> str:
        judged = grades.get(query, {})
        classes = sorted(sorted(one) for one in evaluation.classes if not judged.keys().isdisjoint(one))
        facts = [texts[query], sorted(judged.items()), origin.relevance_threshold, origin.scale, classes]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]

    return {query: hashed(query) for query in sorted(evaluation.scores.query_ids)}


def write_baseline(baseline: Baseline, path: Path | str) -> None:
    """Write a baseline to its file, whole or not at all; raises InputError if that is not possible."""
    target = Path(path)
    try:
        record = baseline_record(baseline)
    except InputError as problem:
        raise InputError(f"{target}: cannot be written, {problem}") from None
    write_whole(_text(record), target)


def read_baseline(path: Path | str) -> Baseline:
    """Return the baseline in a file: Ringtrue's own, or a plain one with ``version`` and ``metrics`` and no more.

    A plain one has no scores per query. Raises MissingInput if there is no file and InputError naming file, field, value
    and cure.
    """
    return baseline_from(read_json(path), name=str(path))


def find_baseline(path: Path, *, named: bool) -> Baseline | None:
    """Return the baseline in a file, None if there is none at the usual place; raises MissingInput if it was named."""
    return read_baseline(path) if named or path.is_file() else None


def baseline_record(baseline: Baseline) -> dict[str, Any]:
    """Return a baseline as the JSON object of its file; raises InputError for a value that JSON cannot hold."""
    record = {item.name: getattr(baseline, item.name) for item in fields(baseline)}
    # The reason stands beside the version, not below a thousand queries.
    first = {"format": FORMAT, "version": record["version"], "reason": record["reason"]}
    config = dict(sorted(baseline.config.items(), key=lambda item: str(item[0])))
    told: dict[str, Any] = json_value({**first, **record, "config": config})
    try:
        _json(told)
    except (TypeError, ValueError) as problem:
        raise InputError(f"the baseline has no JSON form, {problem}; a retriever's config may hold only JSON values") from None
    return told


def baseline_from(record: Any, *, name: str) -> Baseline:
    """Return the baseline in a JSON object, as ``read_baseline`` does for a file; ``name`` says in messages where it was."""
    place = Place(name)
    if not isinstance(record, dict):
        raise place.error("is not a baseline: it holds no JSON object", AGAIN)
    if "format" not in record:
        return _plain(record, place)
    if record["format"] != FORMAT:
        raise place.at("format").error(f"is {record['format']!r:.40}, this version reads {FORMAT}", "update Ringtrue")
    found = _own({name: value for name, value in record.items() if name != "format"}, place)
    for name, mean in found.scores.aggregate.items():
        # Only `ringtrue baseline update` changes a baseline; a mean that was raised or lowered by hand shows here.
        said = found.metrics[name]
        if not (math.isclose(mean, said, abs_tol=1e-9) or (math.isnan(mean) and math.isnan(said))):
            problem = f"is {said}, but the scores per query give {mean}: the file was edited by hand"
            raise place.at("metrics").at(name).error(problem, AGAIN)
    return found


def check_version(version: str, place: str) -> None:
    """Raise InputError for a version that is not like 1.2.0."""
    try:
        plain = parse_version(version).number == version
    except InputError:
        plain = False
    if not plain:
        raise InputError(f"{place} '{version}' is not a version of a baseline; write major.minor.patch, like 1.2.0")


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text(record: Mapping[str, Any]) -> str:
    """Return JSON with one line for every entry of a table, so that git shows which query changed."""

    def block(value: Any, indent: str) -> str:
        if not isinstance(value, Mapping) or not value or len(indent) > 2:
            return _json(value)
        lines = (f"{indent}  {_json(key)}: {block(item, indent + '  ')}" for key, item in value.items())
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"

    return block(record, "") + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _own(record: dict[str, Any], place: Place) -> Baseline:
    reader = RecordReader(lambda at, said, wanted: place.at(at).error(said, f"write {wanted}, or {AGAIN}"), exact=True)
    found = reader.read(Baseline, record)
    check_version(found.version, str(place.at("version")))
    metrics = _metrics(record["metrics"], place.at("metrics"))
    for query, row in found.per_query.items():
        for name in row:
            if name not in metrics:
                raise place.at(f"per_query.{query}").error(f"'{name}' is not one of the measures in metrics", AGAIN)
    for query, value in found.latencies.items():
        _milliseconds(value, place.at(f"latencies.{query}"))
    if not found.per_query:
        raise place.at("per_query").error("holds no query", AGAIN)
    return replace(found, metrics=metrics, latency=_latency(found.latency, place.at("latency")))


def _plain(record: dict[str, Any], place: Place) -> Baseline:
    """Return a file of means alone, as other tools write it."""
    if "metrics" not in record:
        raise place.error("is not a baseline: it has neither 'format' nor 'metrics'", AGAIN)
    given = field_of(record, "metrics", dict, place)
    latency = given.get("latency", {})
    if not isinstance(latency, dict):
        raise place.at("metrics").at("latency").error(f"{latency!r:.60} is not a table", 'write it like {"p95": 420}')
    told = {name: value for name, value in record.items() if name not in ("version", "recorded_at", "metrics")}
    names = {"chunking_strategy": "chunking", "reranking_model": "reranker"}
    return Baseline(
        version=field_of(record, "version", str, place),
        config={names.get(name, name): value for name, value in told.items()},
        recorded_at=field_of(record, "recorded_at", str, place, default=""),
        metrics=_metrics({name: value for name, value in given.items() if name != "latency"}, place.at("metrics")),
        latency=_latency(latency, place.at("metrics").at("latency")),
        golden=Origin("", "", "", None, 1),
        retriever="", fingerprint="", corpus=None, machine="", per_query={},
    )  # fmt: skip


def _metrics(given: Mapping[str, Any], place: Place) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for name, value in given.items():
        try:
            measure = str(Measure.parse(name))
        except SpecError as problem:
            raise InputError(f"{place}: {problem}") from None
        if measure in metrics:
            raise place.at(name).error(f"{measure} is given twice", "keep one of the two")
        metrics[measure] = _number(value, place.at(name))
    if not metrics:
        raise place.error("holds no measure", AGAIN)
    return metrics


def _latency(given: Mapping[str, Any], place: Place) -> dict[str, float]:
    for name in given:
        if name not in PERCENTILES:
            raise place.error(f"there is no '{name}'", f"write {nearest(name, PERCENTILES)}")
    return {name: _milliseconds(given[name], place.at(name)) for name in PERCENTILES if name in given}


def _number(value: Any, place: Place) -> float:
    if value is None:
        return math.nan
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise place.error(f"{value!r:.60} is not a number", AGAIN)
    return float(value)


def _milliseconds(value: Any, place: Place) -> float:
    number = _number(value, place)
    if not number >= 0:
        raise place.error(f"{value!r:.60} is not a number of milliseconds", AGAIN)
    return number
