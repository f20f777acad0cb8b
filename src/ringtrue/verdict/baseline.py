"""The baseline: what is held to be good enough, in one JSON file that is committed to git.

The file diffs well: keys in a fixed order, a line for each measure, each setting and each query. Nothing here writes it but
``write_baseline``, and a gate never calls that.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, SpecError, nearest
from ringtrue.formats import Place, field_of, read_json, write_whole
from ringtrue.golden import parse_version
from ringtrue.measures import Measure
from ringtrue.run import Evaluation, Origin, json_value
from ringtrue.verdict.records import PERCENTILES, Baseline

FORMAT = 1
NAME = "ringtrue-baseline.json"
KEPT_HITS = 10
FIELDS = ("format", *(item.name for item in fields(Baseline)))
KINDS: Mapping[str, Any] = {
    "version": str, "retriever": str, "config": dict, "fingerprint": str, "corpus": (str, type(None)), "recorded_at": str,
    "machine": str, "workers": int, "reason": str,
}  # fmt: skip
LATER: Mapping[str, Any] = {"workers": 1, "reason": ""}
"""Fields that older baselines lack, with what they mean there."""
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
    _check_names(record, FIELDS, place)
    found = _own(record, place)
    for name, mean in found.scores.aggregate.items():
        # Only `ringtrue baseline update` changes a baseline; a mean that was raised or lowered by hand shows here.
        said = found.metrics[name]
        if not (math.isclose(mean, said, abs_tol=1e-9) or (math.isnan(mean) and math.isnan(said))):
            problem = f"is {said}, but the scores per query give {mean}: the file was edited by hand"
            raise place.at("metrics").at(name).error(problem, AGAIN)
    return found


def _check_names(record: Mapping[str, Any], legal: Collection[str], place: Place) -> None:
    for name in record:
        if name not in legal:
            raise place.error(f"there is no field '{name}'", f"did you mean {nearest(name, legal)}?")


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
    metrics = _metrics(field_of(record, "metrics", dict, place), place.at("metrics"))
    values = {name: field_of(record, name, kind, place, default=LATER.get(name, ...)) for name, kind in KINDS.items()}
    check_version(values["version"], str(place.at("version")))

    def row(value: Any, here: Place) -> dict[str, float]:
        if not isinstance(value, dict):
            raise here.error(f"{value!r:.60} is not a table of measures", AGAIN)
        for name in value:
            if name not in metrics:
                raise here.error(f"'{name}' is none of the measures in metrics", AGAIN)
        return {name: _number(item, here.at(name)) for name, item in value.items()}

    def documents(value: Any, here: Place) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise here.error(f"{value!r:.60} is not a list of documents", AGAIN)
        return tuple(value)

    def times(value: Any, here: Place) -> tuple[float, ...]:
        if not isinstance(value, list):
            raise here.error(f"{value!r:.60} is not a list of milliseconds", AGAIN)
        return tuple(_milliseconds(item, here) for item in value)

    per_query = _each(record, "per_query", place, row)
    if not per_query:
        raise place.at("per_query").error("holds no query", AGAIN)
    return Baseline(
        **values,
        golden=_origin(field_of(record, "golden", dict, place), place.at("golden")),
        metrics=metrics,
        latency=_latency(field_of(record, "latency", dict, place), place.at("latency")),
        per_query=per_query,
        latencies=_each(record, "latencies", place, _milliseconds),
        repeats=_each(record, "repeats", place, times) if "repeats" in record else {},
        rankings=_each(record, "rankings", place, documents),
        judged=_each(record, "judged", place, lambda value, here: str(value)) if "judged" in record else {},
    )


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


def _origin(record: dict[str, Any], place: Place) -> Origin:
    _check_names(record, [item.name for item in fields(Origin)], place)
    kinds: dict[str, type | tuple[type, ...]] = {
        "corpus_hash": (str, type(None)), "relevance_threshold": int, "scale": list, "provisional": bool, "slices": list,
        "judgments": (int, type(None)), "confirmed": (int, type(None)),
    }  # fmt: skip
    values: dict[str, Any] = {
        # A baseline that was recorded before these were kept does not say them.
        item.name: field_of(record, item.name, kinds.get(item.name, str), place, default=None if item.default is None else ...)
        for item in fields(Origin)
    }
    return Origin(**{**values, "scale": tuple(values["scale"]), "slices": tuple(values["slices"])})


def _each(record: dict[str, Any], name: str, place: Place, read: Callable[[Any, Place], Any]) -> dict[str, Any]:
    given = field_of(record, name, dict, place)
    return {key: read(value, place.at(name).at(key)) for key, value in given.items()}


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
