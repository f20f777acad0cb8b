"""An Evaluation ⇄ a folder that other programs can read, too; or the same files in one zip, for a store.

``run.json`` (what was measured and the means), ``run.parquet`` (every hit; ``ringtrue score`` and ``diff`` read it as a run),
``scores.jsonl`` (a line per question: values, milliseconds, error), ``queries.jsonl`` (questions with their judgments),
``titles.json``, and where they were asked for ``components.jsonl`` and ``losses.jsonl``. A folder appears whole or not at all.
"""

from __future__ import annotations

import glob
import io
import json
import math
import re
import secrets
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ringtrue.answers import RecordReader
from ringtrue.errors import InputError, MissingInput, SpecError
from ringtrue.formats import Place, open_duckdb, read_bytes, read_json, read_jsonl, write_rows
from ringtrue.measures import Contribution, Counted, Latency, Measure, Scores
from ringtrue.records import Hit, Qrels, Query, Ranking, Stage
from ringtrue.run.evaluation import Component, Evaluation, Loss, Setup

RUNS = Path(".ringtrue/runs")
"""Where ``ringtrue eval`` puts the folders of runs."""
FORMAT = 1
FILES = (
    "run.json", "run.parquet", "scores.jsonl", "queries.jsonl", "titles.json", "texts.json", "components.jsonl", "losses.jsonl",
)  # fmt: skip
UNPACKED = 2 << 30
"""A packed run may hold so many bytes; what claims to hold more is not a run."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError, LookupError)
"""What the zip module raises over bytes that are not zip, or no longer."""


def save(evaluation: Evaluation, folder: Path | str) -> Evaluation:
    """Write an evaluation to a folder, in place of a run that was there; return it with ``run_dir`` set.

    Raises InputError if the folder holds anything else: nothing that is not ours is ever replaced.
    """
    target = Path(folder)
    strangers = [item.name for item in target.iterdir() if item.name not in FILES] if target.is_dir() else []
    if strangers or (target.exists() and not target.is_dir()):
        there = f"holds '{strangers[0]}', which is not part of a run" if strangers else "is a file"
        raise InputError(f"{target}: {there}; name a new folder for the run")
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}-{secrets.token_hex(6)}")
    fresh.mkdir()
    try:
        _write(evaluation, fresh)
        if target.exists():
            old = fresh.with_name(f"{fresh.name}-old")
            target.rename(old)
            fresh.rename(target)
            shutil.rmtree(old)
        else:
            fresh.rename(target)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return replace(evaluation, run_dir=target)


def run_folder(named: Path | str) -> Path:
    """Return the folder of a run: the place named or else the newest run of that name in ``.ringtrue/runs``."""
    place = Path(named)
    if place.exists():
        return place.parent if place.name == "run.json" else place
    return _by_name().get(str(named), place)


def _by_name() -> dict[str, Path]:
    """Return the newest folder in ``.ringtrue/runs`` by the name of its run."""
    heads = ((read_json(file), file.parent) for file in sorted(RUNS.glob("*/run.json")))
    return {str(head["name"]): place for head, place in heads if isinstance(head, dict) and "name" in head}


def new_run_folder(found: Evaluation, now: datetime) -> Path:
    """Return a new folder for a run, made at once: of two evaluations in one second each gets its own."""
    slug = re.sub(r"[^A-Za-z0-9]+", "-", found.search).strip("-")[:40] or "run"
    wanted = RUNS / f"{now:%Y%m%dT%H%M%SZ}-{found.setup.golden.id}-{slug}"
    RUNS.mkdir(parents=True, exist_ok=True)
    for candidate in numbered(wanted):
        with suppress(FileExistsError):
            candidate.mkdir()
            return candidate
    raise AssertionError("names do not end")


def write_new(path: Path, text: str) -> Path:
    """Write a text to a file that does not exist yet, with a number in its name where one does; return where it lies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for candidate in numbered(path):
        with suppress(FileExistsError), candidate.open("x", encoding="utf-8") as file:
            file.write(text)
            return candidate
    raise AssertionError("names do not end")


def numbered(path: Path) -> Iterator[Path]:
    """Yield a path, and then the same with 002, 003 … in its name."""
    yield path
    yield from (path.with_name(f"{path.stem}-{number:03}{path.suffix}") for number in count(2))


def newest_run() -> Path:
    """Return the run folder that was written last; raises MissingInput if there is none."""
    found = sorted(path.parent for path in RUNS.glob("*/run.json"))
    if not found:
        raise MissingInput(f"there is no run in {RUNS}; make one with `ringtrue eval`, or name a folder with --run")
    return found[-1]


def open_run(folder: Path | str) -> Evaluation:
    """Return the evaluation in a folder, or of that name; raises MissingInput if there is none, InputError if damaged."""
    place = run_folder(folder)
    if not (place / "run.json").is_file():
        names = "" if place.exists() else ", ".join(_by_name())
        why = f"and no name of a run in {RUNS} ({names})" if names else "(it has no run.json)"
        raise MissingInput(f"{folder}: is not a run folder {why}; make one with `ringtrue eval --out {folder}`")
    head = read_json(place / "run.json")
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        found = head.get("format", "none") if isinstance(head, dict) else "none"
        raise InputError(f"{place / 'run.json'}: is of format {found}, this version reads {FORMAT}; evaluate again")
    try:
        return _read(head, place)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, SpecError) as problem:
        raise InputError(f"{place}: the run cannot be read ({type(problem).__name__}: {problem}); evaluate again") from problem


def packed(evaluation: Evaluation) -> bytes:
    """Return an evaluation as one zip of the files of its run folder; the same evaluation gives the same bytes."""
    content = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="ringtrue-") as scratch, zipfile.ZipFile(content, "w") as archive:
        _write(evaluation, Path(scratch))
        for name in FILES:
            if (file := Path(scratch) / name).is_file():
                # Without a time of its own an entry is as old as the format, everywhere and always.
                archive.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()


def unpacked(content: bytes, *, name: str) -> Evaluation:
    """Return the evaluation that ``packed`` made bytes of; ``name`` says in messages whose they are.

    Only files of a run are taken out, under our own names for them. Raises InputError for bytes that are not a whole run.
    """
    with tempfile.TemporaryDirectory(prefix="ringtrue-") as scratch:
        place = Path(scratch) / "run"
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                there = [name for name in FILES if name in archive.namelist()]
                if sum(archive.getinfo(name).file_size for name in there) > UNPACKED:  # no more than that is read of a file
                    raise ValueError(f"it holds more than {UNPACKED:,} bytes")
                archive.extractall(place, there)
        except _DAMAGE as problem:
            raise InputError(f"{name}: the packed run is damaged ({problem}); evaluate again") from problem
        try:
            found = open_run(place)
        except InputError as problem:
            raise InputError(str(problem).replace(str(place), name)) from problem
    return replace(found, run_dir=None)


# ── writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _write(evaluation: Evaluation, folder: Path) -> None:
    write_rows(
        ("query_id", "doc_id", "rank", "hit_score", "detail"),
        [row for ranking in evaluation.rankings for row in _rows(ranking)],
        folder / "run.parquet",
        "parquet",
    )
    scores = evaluation.scores
    columns = dict(zip(scores.query_ids, zip(scores.values.T.tolist(), scores.judged.tolist(), strict=True), strict=True))
    names = [str(measure) for measure in scores.measures]
    lines = []
    for ranking in evaluation.rankings:
        line: dict[str, Any] = {"query_id": ranking.query_id, "latency_ms": ranking.latency_ms, "hits": len(ranking.hits)}
        if ranking.query_id in evaluation.repeats:
            line["repeats_ms"] = evaluation.repeats[ranking.query_id]
        if ranking.error is not None:
            line["error"] = ranking.error
        if ranking.query_id in columns:
            values, judged = columns[ranking.query_id]
            line |= {"judged": judged, "scores": dict(zip(names, values, strict=True))}
        lines.append(line)
    _lines(folder / "scores.jsonl", *lines)
    asked = [asdict(query) | {"judged": evaluation.grades.get(query.query_id, {})} for query in evaluation.queries]
    _lines(folder / "queries.jsonl", *asked)
    _lines(folder / "titles.json", dict(evaluation.titles))
    if evaluation.texts:
        _lines(folder / "texts.json", dict(evaluation.texts))
    if evaluation.components:
        _lines(folder / "components.jsonl", *map(_component, evaluation.components))
    if evaluation.losses:
        _lines(folder / "losses.jsonl", *evaluation.losses)
    _lines(
        folder / "run.json",
        {
            "format": FORMAT,
            "name": evaluation.name,
            "setup": evaluation.setup,
            "metrics": evaluation.metrics,
            "intervals": evaluation.intervals,
            "figures": evaluation.figures,
            "latency_ms": evaluation.latency,
            "failures": evaluation.failures,
            "counted": scores.counted,
            "relevant": evaluation.relevant,
            "classes": evaluation.classes,
            "notes": evaluation.notes,
        },
        indent=1,
    )


def _rows(ranking: Ranking) -> Iterator[tuple[str, str, int, float, str]]:
    for rank, hit in enumerate(ranking.hits, 1):
        detail = {"chunk": hit.chunk, "channels": hit.channels, "confidence": hit.confidence, "stages": hit.stages}
        known = _json({key: value for key, value in detail.items() if value})
        yield ranking.query_id, hit.doc_id, rank, float(hit.score), known


def _component(component: Component) -> dict[str, Any]:
    scores = component.scores
    return {
        "name": component.name,
        "kind": component.kind,
        "contribution": component.contribution,
        "latency": component.latency,
        "metrics": scores.aggregate,
        "counted": scores.counted,
        "measures": [str(measure) for measure in scores.measures],
        "query_ids": scores.query_ids,
        "values": scores.values.tolist(),
        "judged": scores.judged.tolist(),
        "rankings": {ranking.query_id: [hit.doc_id for hit in ranking.hits] for ranking in component.rankings},
    }


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it, records as objects; an undefined or infinite number becomes null, never 0."""
    if isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: json_value(getattr(value, item.name)) for item in fields(value)}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(value: Any, *, indent: int | None = None) -> str:
    return json.dumps(json_value(value), ensure_ascii=False, indent=indent, allow_nan=False)


def _lines(path: Path, *records: Any, indent: int | None = None) -> None:
    """Write each record as JSON on a line of its own."""
    text = "".join(_json(record, indent=indent) + "\n" for record in records)
    # A question may hold an unpaired surrogate; the file keeps it as JSON's own escape, which every reader knows.
    path.write_bytes(text.encode("utf-8", "backslashreplace"))


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(head: Mapping[str, Any], place: Path) -> Evaluation:
    lines = [record for _, record in read_jsonl(place / "scores.jsonl")]
    asked = [record for _, record in read_jsonl(place / "queries.jsonl")]
    queries = tuple(Query(row["query_id"], row["text"], row["metadata"], row["negative"]) for row in asked)
    hits: dict[str, list[Hit]] = {row["query_id"]: [] for row in lines}
    for query_id, hit in _hits(place / "run.parquet") if any(row["hits"] for row in lines) else ():
        hits[query_id].append(hit)
    for row in lines:
        if len(hits[row["query_id"]]) != row["hits"]:
            found = f"{len(hits[row['query_id']])} hits for query '{row['query_id']}', scores.jsonl says {row['hits']}"
            raise InputError(f"{place}: run.parquet has {found}; the two are not of one run: evaluate again")
    scored = [row for row in lines if "scores" in row]
    scores = _scores(
        {
            "measures": head["metrics"],
            "query_ids": [row["query_id"] for row in scored],
            "values": [[row["scores"][name] for row in scored] for name in head["metrics"]],
            "judged": [row["judged"] for row in scored],
            "counted": head["counted"],
        },
        facts={query.query_id: query.metadata for query in queries},
    )
    for name, mean in scores.aggregate.items():
        if not math.isclose(mean, _float(head["metrics"][name]), rel_tol=1e-9, abs_tol=1e-12) and not math.isnan(mean):
            said = f"{name} is {head['metrics'][name]} in run.json, but {mean} by scores.jsonl"
            raise InputError(f"{place}: {said}; the two are not of one run: evaluate again")
    return Evaluation(
        name=head["name"],
        setup=_reader(place).read(Setup, head["setup"], place="setup"),
        queries=queries,
        qrels=Qrels.from_dict({row["query_id"]: row["judged"] for row in asked}),
        titles=read_json(place / "titles.json"),
        texts=read_json(place / "texts.json") if (place / "texts.json").is_file() else {},
        rankings=tuple(
            Ranking(row["query_id"], tuple(hits[row["query_id"]]), row["latency_ms"], row.get("error")) for row in lines
        ),
        scores=scores,
        intervals={name: (_float(low), _float(high)) for name, (low, high) in head["intervals"].items()},
        figures=head.get("figures", {}),
        components=tuple(_read_component(record, scores) for _, record in _maybe(place / "components.jsonl")),
        losses=tuple(_reader(place).read(Loss, record) for _, record in _maybe(place / "losses.jsonl")),
        classes=_tuples(head.get("classes", [])),
        repeats={row["query_id"]: tuple(row["repeats_ms"]) for row in lines if "repeats_ms" in row},
        relevant=head.get("relevant"),
        run_dir=place,
        notes=tuple(head["notes"]),
    )


def _reader(place: Path) -> RecordReader:
    return RecordReader(lambda at, said, _: InputError(f"{place}: '{at}' {said}; evaluate again"), exact=True)


def _maybe(path: Path) -> Iterable[tuple[Place, dict[str, Any]]]:
    return read_jsonl(path) if path.is_file() else ()


def _hits(path: Path) -> Iterator[tuple[str, Hit]]:
    """Yield (query, hit); as columns and with one call for all details, because a run has tens of thousands of them."""
    import duckdb

    read_bytes(path)  # names a file that is not there
    try:
        with open_duckdb() as connection:
            found = "SELECT query_id, doc_id, hit_score, detail FROM read_parquet(?, hive_partitioning=false)"
            rows = connection.execute(found, [glob.escape(str(path))]).fetchall()
    except duckdb.Error as problem:
        raise InputError(f"{path}: cannot be read ({str(problem).splitlines()[0]}); evaluate again") from problem
    details = json.loads(f"[{','.join(row[3] for row in rows)}]")
    for (query_id, doc_id, score, _), detail in zip(rows, details, strict=True):
        stages = tuple([Stage(name, rank, _float(at)) for name, rank, at in detail.get("stages", ())])
        hit = Hit(doc_id, _float(score), detail.get("chunk"), detail.get("channels", {}), detail.get("confidence"), stages)
        yield query_id, hit


def _scores(record: Mapping[str, Any], facts: Mapping[str, Mapping[str, Any]]) -> Scores:
    measures, query_ids = tuple(map(Measure.parse, record["measures"])), tuple(record["query_ids"])
    return Scores(
        measures,
        query_ids,
        np.array(record["values"], np.float64).reshape(len(measures), len(query_ids)),  # null is nan
        Counted(**{key: _tuples(value) for key, value in record["counted"].items()}),
        np.array(record["judged"], np.float64),
        facts=facts,
    )


def _read_component(record: Mapping[str, Any], whole: Scores) -> Component:
    return Component(
        record["name"],
        record["kind"],
        tuple(Ranking(query, tuple(Hit(doc_id) for doc_id in docs)) for query, docs in record["rankings"].items()),
        _scores(record, whole.facts),
        record["contribution"] and Contribution(**record["contribution"]),
        record["latency"] and Latency(**{key: _float(value) for key, value in record["latency"].items()}),
    )


def _float(value: float | None) -> Any:
    return math.nan if value is None else value


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
