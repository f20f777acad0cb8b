"""``ringtrue score``: a run file against a judgments file, as trec_eval does it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.eval import count_look
from ringtrue.errors import InputError

USUAL = (
    "NumQ", "NumRet", "NumRel", "NumRelRet", "AP", "GMAP", "RPrec", "Bpref", "RR",
    "nDCG@5", "nDCG@10", "nDCG@20", "R@5", "R@10", "R@100", "R@1000", "P@5", "P@10", "P@20", "Success@1", "Success@5",
    "Judged@10",
)  # fmt: skip


def score_command(
    qrels: Annotated[str, typer.Argument(help="Judgments: TREC, BEIR, CSV, Parquet, JSON(L), YAML, .gz, - or a golden set.")],
    run: Annotated[str, typer.Argument(help="The run: TREC, CSV, Parquet, JSON(L), YAML, .gz, or - for standard input.")],
    measures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MEASURE]...", help="Like nDCG@10 'P(rel=2)@5' map ndcg_cut_10; default: a usual set."),
    ] = None,
    more: Annotated[list[str] | None, typer.Option("-m", "--measure", help="Like trec_eval: -m map -m P.5,10")] = None,
    per_query: Annotated[bool, typer.Option("-q", "--per-query", help="Also print each query.")] = False,
    complete: Annotated[
        bool, typer.Option("-c", "--complete", help="Average over all judged queries; missing queries score 0.")
    ] = False,
    depth: Annotated[int | None, typer.Option("-M", "--depth", help="Only score the first N documents of each query.")] = None,
    level: Annotated[int | None, typer.Option("-l", "--level", help="Lowest grade that is relevant (default 1).")] = None,
    zero_relevant: Annotated[str, typer.Option(help="Queries without relevant documents: zero, exclude or one.")] = "zero",
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Also show the upper bounds: unjudged documents get the top grade.")
    ] = False,
    by: Annotated[list[str] | None, typer.Option(help="Also report each value of this query field: --by query_type")] = None,
    worst: Annotated[int, typer.Option(min=0, help="List the N queries with the lowest first measure.")] = 0,
    judged_only: Annotated[bool, typer.Option("-J", "--judged-only", help="Remove unjudged documents first.")] = False,
    no_summary: Annotated[bool, typer.Option("-n", "--no-summary", help="With -q: leave out the means.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object: aggregate, per_query (-q), counted.")] = False,
) -> None:
    """Score a run file against judgments, as trec_eval does.

    Queries present in both files are averaged (all judged ones with -c); ties go by score, then document id descending.

    Example: ringtrue score qrels.txt run.txt nDCG@10 R@100 AP -q
    """
    named = [*(measures or []), *(one for text in more or [] for one in _usual(text))]
    wanted = [measure for text in named or USUAL for measure in _measures(text)]
    if judged_only:
        wanted = [_condensed(measure) for measure in wanted]
    if qrels == run == "-":
        raise InputError("judgments and run cannot both come from standard input; name a file for one of them")
    if run != "-" and Path(run).is_file() and Path(run).stat().st_size > lib.formats.BULK:
        _keep_freed_memory()
    judgments = judgments_in(qrels)
    answers = lib.formats.read_run(run)
    how: dict[str, Any] = {"average_over": "judged" if complete else "common", "zero_relevant": zero_relevant}
    how["unjudged"] = "bounds" if bounds else "irrelevant"
    scores = lib.measures.score(answers, judgments, wanted, rel=level, depth=depth, **how)
    lib.measures.check_documents(answers, judgments, scores)
    origin = _origin(judgments)
    record = _record(scores, per_query=per_query, bounds=bounds, by=by or [], worst=worst)
    notes = [*scores.counted.notes(), *(_about_ids(answers, judgments) if scores.judged_share < 0.5 else ())]
    record["notes"] = notes
    count_look(judgments, qrels, who="ringtrue score", what=run)
    show.end_if_json(json, record if origin is None else record | {"golden": origin})
    _print(scores, per_query=per_query, bounds=bounds, summary=not (no_summary and per_query))
    told = [f"golden set {origin['version']}, {origin['reviewed']}"] if origin is not None else []
    told += [f"relevant means grade {scores.counted.rel} or more", *scores.counted.gain, *notes]
    if scores.judged_share < 1:
        told.append(f"Judged@10 is {show.number(scores.judged_share)}; unjudged documents count as not relevant")
    first = scores.measures[0]
    lowest = show.Table(("worst queries", first), scores.worst(first, count=worst) if worst else ())
    show.page(*(_slices(scores, field) for field in by or []), lowest, notes=told)


_FEW = 20_000
"""Documents of a run whose ids are compared with those judged; of more, it would take longer than the scoring."""


def _about_ids(answers: lib.records.Run, judgments: lib.records.Qrels | lib.records.GoldenSet) -> list[str]:
    """Return what ``ringtrue eval`` says about returned ids that are nearly those of judged documents."""
    if len(answers.docs) > _FEW:
        return []
    golden = judgments
    if not isinstance(golden, lib.records.GoldenSet):
        known = set(golden.doc_ids)
        plain, strangers = (
            set(map(_plain, known)),
            {doc_id for found in answers.rankings().values() for doc_id in found} - known,
        )
        if not any(_forms(doc_id) & plain for doc_id in strangers):  # all else takes imports that a small score has no time for
            return []
        rows = tuple(lib.records.Judgment(*row) for row in golden)
        golden = lib.records.GoldenSet("the judgments", "1.0.0", (), rows)
    rankings = [lib.records.Ranking(query, tuple(map(lib.records.Hit, found))) for query, found in answers.rankings().items()]
    return [*lib.run.misspelt(golden, rankings), *lib.run.foreign_ids(golden, rankings)]


def _plain(doc_id: str) -> str:
    return "".join(doc_id.casefold().split())


def _forms(doc_id: str) -> set[str]:
    """Return an id without case and blanks, and what stands before and after each sign in it."""
    text = _plain(doc_id)
    return {text, *(part for sign in re.finditer(r"[\W_]", text) for part in (text[: sign.start()], text[sign.end() :]))}


_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)


def _keep_freed_memory() -> None:
    """Ask the C library not to hand freed memory back: fetching it again block by block costs a third of a large run's time.

    A choice for a program that ends soon, not for a library inside somebody's process, which is why it is made here.
    """
    import ctypes

    trim_threshold, map_threshold, gigabyte = -1, -3, 1 << 30
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return  # another C library; it has its own ways
    mallopt(trim_threshold, gigabyte)
    mallopt(map_threshold, gigabyte)


def _usual(text: str) -> list[str]:
    """Return what trec_eval means by a name that stands for several measures."""
    if text in ("official", "all_trec"):
        return list(USUAL)
    if text in ("P", "recall", "ndcg_cut", "map_cut"):
        return [f"{text}_{cutoff}" for cutoff in _CUTOFFS]
    return ["success_1", "success_5", "success_10"] if text == "success" else [text]


def _condensed(measure: lib.measures.Measure) -> lib.measures.Measure:
    if "judged_only" not in measure.definition.options:
        return measure
    return lib.measures.Measure(measure.name, measure.at, (*measure.options, ("judged_only", True)))


def _origin(judgments: lib.records.Qrels | lib.records.GoldenSet) -> dict[str, object] | None:
    """Name the exact version of the golden set behind a result."""
    if not isinstance(judgments, lib.records.GoldenSet):
        return None
    named = {"version": lib.golden.version_name(judgments), "content_hash": lib.golden.content_hash(judgments)}
    return {**named, **show.pick(judgments, "id", "corpus_hash", "provisional", "reviewed")}


def _measures(text: str) -> list[lib.measures.Measure]:
    """Return the measures of one argument; trec_eval's ``P.5,10`` names two."""
    several = re.fullmatch(r"([A-Za-z_]+)[._](\d+(?:\.\d+)?(?:,\d+(?:\.\d+)?)+)", text)
    if several:
        return [lib.measures.Measure.parse(f"{several[1]}_{cutoff}") for cutoff in several[2].split(",")]
    return [lib.measures.Measure.parse(text)]


def judgments_in(source: str) -> lib.records.Qrels | lib.records.GoldenSet:
    """Return the judgments of a file, or a golden set: a shipped name, or a file or folder that holds one."""
    path = Path(source)
    may_be = source != "-" and (not path.exists() or path.is_dir() or path.suffix in (".json", ".jsonl", ".yaml", ".yml"))
    if may_be and lib.golden.holds_golden_set(lib.golden.locate(source)):
        return lib.golden.load(source)
    return lib.formats.read_qrels(source)


def _record(scores: lib.measures.Scores, *, per_query: bool, bounds: bool, by: list[str], worst: int) -> dict[str, object]:
    counted = scores.counted
    record: dict[str, object] = {"aggregate": scores.aggregate}
    record["summary"] = {str(measure): scores.summary(measure) for measure in scores.measures}
    if per_query:
        record["per_query"] = scores.per_query
    if bounds:
        record["bounds"] = scores.bounds
    if by:
        record["per_slice"] = {field: {str(m): scores.by(field, m) for m in scores.measures} for field in by}
    if worst:
        lowest = scores.worst(scores.measures[0], count=worst)
        record["worst"] = [{"query_id": query_id, str(scores.measures[0]): value} for query_id, value in lowest]
    record["counted"] = {
        **show.pick(
            counted, "queries", "missing", "ignored_queries", "repeated_judgments", "zero_relevant", "average_over", "gain"
        ),
        "queries_without_relevant": len(counted.without_relevant),
        "duplicates_removed": counted.duplicates,
        "ties_across_cutoffs": {str(cutoff): queries for cutoff, queries in counted.tied_cutoffs},
        "relevant_from_grade": counted.rel,
        "judged_at_10": scores.judged_share,
    }
    return record


def _slices(scores: lib.measures.Scores, field: str) -> show.Table:
    rows = [
        [value, measure, part.count, part.mean, part.median, part.std]
        for measure in scores.measures
        for value, part in scores.by(field, measure).items()
    ]
    return show.Table((field, "measure", "queries", "mean", "median", "sd"), rows, 2)


def _print(scores: lib.measures.Scores, *, per_query: bool, bounds: bool, summary: bool) -> None:
    def shown(measure: lib.measures.Measure, value: float) -> str:
        return show.number(value, 0 if measure.definition.average == "sum" else 4)

    rows: list[list[str]] = []
    if per_query:
        for query_id, values in zip(scores.query_ids, scores.values.T.tolist(), strict=True):
            rows += [[str(m), query_id, shown(m, value)] for m, value in zip(scores.measures, values, strict=True)]
    for measure in scores.measures if summary else ():
        row = [str(measure), "all", shown(measure, scores[measure])]
        rows.append([*row, " … ".join(show.number(end) for end in scores.bounds[str(measure)])] if bounds else row)
    if show.on_terminal():
        headers = ["measure", "query", "value", *(["unjudged irrelevant … relevant"] if bounds else [])]
        show.table(headers, [row + [""] * (len(headers) - len(row)) for row in rows], text_columns=2)
        return
    for row in rows:
        print("\t".join([row[0].ljust(22), *row[1:]]))
