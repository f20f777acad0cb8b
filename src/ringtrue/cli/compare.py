"""``ringtrue compare`` and ``ringtrue diff``: is one run better than another, and how do their rankings differ?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.eval import count_look
from ringtrue.cli.options import Json
from ringtrue.cli.score import judgments_in
from ringtrue.errors import OK, UNDECIDED, CannotDecide, InputError, check_choice

HEADERS = ("A", "B", "B − A", "interval", "p", "win/tie/loss", "verdict")
Values = Sequence[Mapping[str, Mapping[str, float]]]
"""Of both runs: query → measure → value."""
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        help="Compare and decide by this measure, like nDCG@10; repeatable. By default, compare all that both runs have.",
    ),
]
KINDS: tuple[lib.stats.RankingDifferenceKind, ...] = ("identical", "minor", "major", "incompatible")


def compare_command(
    runs: Annotated[list[str], typer.Argument(help="Two or more run folders or names; or run files, with --golden.")],
    golden: Annotated[
        str | None,
        typer.Option("--golden", "--qrels", "-g", help="Score the runs against this golden set or file of judgments."),
    ] = None,
    measures: Measures = None,
    primary: Annotated[str | None, typer.Option(help="The measure that decides (the first -m, else nDCG@10).")] = None,
    correction: Annotated[
        str | None,
        typer.Option(
            help="Let all measures decide, with this correction: holm (default for several -m), benjamini-hochberg or none."
        ),
    ] = None,
    by: Annotated[list[str] | None, typer.Option(help="Also report each value of this query field.")] = None,
    alpha: Annotated[float, typer.Option(help="Significance level: chance of a winner between equal rankings.")] = 0.05,
    resamples: Annotated[int, typer.Option(help="Resamples for the randomisation test and the bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same answer.")] = 0,
    queries: Annotated[int, typer.Option(min=0, help="List the N queries that moved most.")] = 5,
    allow_different_sets: Annotated[
        bool, typer.Option("--allow-different-sets", help="Allow runs of different golden sets.")
    ] = False,
    tests: Annotated[
        bool, typer.Option("--tests", help="Also show other tests and the smallest detectable difference.")
    ] = False,
    json: Json = False,
) -> None:
    """Test whether other runs are better or worse than the first.

    If the evidence allows neither, it says so. One measure decides (--primary); the others are informational. With several -m
    or --correction, several measures decide. Queries are paired by id; a query that is missing from one run is ignored. The
    exit code is 0 whatever the verdict, and 3 if no verdict is possible. To fail a build on a regression, use ringtrue gate.

    Example: ringtrue compare runs/bm25 runs/hybrid --by query_type

    Example: ringtrue compare old.run new.run --qrels qrels.txt -m R@100
    """
    if len(runs) < 2:
        raise InputError(f"only one run is named ({runs[0]}); name two or more, the first is what the others are compared with")
    arms = _arms(runs, golden, measures or (), by or ())
    chosen: dict[str, Any] = {"measures": measures or None, "primary": primary, "correction": correction}
    chosen |= {"alpha": alpha, "resamples": resamples, "seed": seed, "slices": tuple(by or ())}
    options = lib.verdict.ComparisonOptions(**chosen, allow_different_sets=allow_different_sets)
    found = lib.verdict.compare_all(arms, options)
    parts: list[str | show.Table] = _overview(found) if len(found) > 1 else []
    for one, other in zip(found, arms[1:], strict=True):
        parts += [f"\n── {one.b} against {one.a} ──"] * (len(found) > 1)
        parts += comparison_parts(one, arms[0], other, queries, tests=tests)
    records = [record(one, arms[0], other, queries) for one, other in zip(found, arms[1:], strict=True)]
    show.result(
        json,
        records[0] | ({"comparisons": records} if len(records) > 1 else {}),
        *parts,
        notes=dict.fromkeys(remark for one in found for remark in remarks(one)),
        code=UNDECIDED if all(one.measures[one.primary].n < 2 for one in found) else OK,
    )


def _arms(runs: Sequence[str], golden: str | None, measures: Sequence[str], fields: Sequence[str]) -> list[lib.verdict.Arm]:
    """Return both sides and more; raises InputError for a field that none of their queries has."""
    if runs.count("-") + (golden == "-") > 1:
        raise InputError("only one file can come from standard input; name files for the others")
    if golden is None:
        found: list[lib.run.Evaluation | lib.verdict.ScoredRun] = [_opened(run, measures) for run in runs]
    else:
        judgments = judgments_in(golden)
        count_look(judgments, golden, who="ringtrue compare", what=" ".join(runs))
        found = [_scored(run, judgments, measures) for run in runs]
    _check_fields(fields, found)
    names = [arm.name for arm in found]
    # Two runs of one retriever have one name; then what was typed tells them apart.
    return [
        replace(arm, name=f"{run}: {arm.name}") if names.count(arm.name) > 1 else arm
        for arm, run in zip(found, runs, strict=True)
    ]


def _opened(run: str, measures: Sequence[str]) -> lib.run.Evaluation:
    """Return the evaluation in a folder, with measures that it did not score but holds the answers for."""
    if run == "-" or (Path(run).is_file() and Path(run).name != "run.json"):
        raise InputError(f"{run}: is a run file, which has answers and no scores; add --golden with the judgments")
    return lib.verdict.with_measures(lib.run.open_run(run), measures)[0]


def _scored(run: str, judgments: lib.records.Qrels | lib.records.GoldenSet, measures: Sequence[str]) -> lib.verdict.ScoredRun:
    """Return the scores of a run against judgments; queries that it lacks are absent, not 0."""
    run = str(lib.run.run_folder(run))
    answers = lib.formats.read_run(run)
    scores = lib.measures.score(answers, judgments, measures or lib.run.DEFAULT_MEASURES, average_over="common")
    lib.measures.check_documents(answers, judgments, scores)
    origin = lib.run.Origin.of(judgments) if isinstance(judgments, lib.records.GoldenSet) else None
    if (Path(run) / "run.json").is_file():
        measured = lib.run.open_run(run)
        return lib.verdict.ScoredRun(measured.name, scores, measured.timings, measured.setup.machine, origin)
    return lib.verdict.ScoredRun(Path(run).name, scores, golden=origin)


def _check_fields(fields: Sequence[str], arms: Sequence[lib.verdict.Arm]) -> None:
    known = sorted({name for arm in arms for facts in arm.scores.facts.values() for name in facts})
    if fields and not known:
        raise InputError(f"no query has the field '{fields[0]}'; score against a golden set that declares it")
    for name in fields:
        check_choice(name, known, f"no query has the field '{name}'")


# ── shown ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def record(found: lib.verdict.Comparison, a: lib.verdict.Arm, b: lib.verdict.Arm, count: int) -> dict[str, Any]:
    """Return a comparison under the stable keys of ``--json``."""
    return {
        **show.pick(found, "verdict", "reason", "a", "b", "primary"),
        "measures": {name: measure_record(one) for name, one in found.measures.items()},
        "slices": {
            name: {value: {m: measure_record(one) for m, one in parts.items()} for value, parts in values.items()}
            for name, values in found.slices.items()
        },
        "latency": None if found.latency is None else asdict(found.latency),
        "moved": [
            {"query_id": query, "a": then, "b": now, "diff": gap} for query, then, now, gap in _moved(found, a, b, count)
        ],
        **show.pick(found, "only_a", "only_b", "alpha", "correction", "resamples", "seed", "notes"),
    }


def measure_record(one: lib.verdict.MeasureComparison) -> dict[str, Any]:
    """Return the comparison by one measure under the stable keys of ``--json``."""
    shown = {name: value for name, value in asdict(one).items() if name not in ("measure", "low", "high", "word", "deltas")}
    return shown | {"ci": [one.low, one.high], "verdict": one.word}


def _moved(
    found: lib.verdict.Comparison, a: lib.verdict.Arm, b: lib.verdict.Arm, count: int
) -> list[tuple[str, float, float, float]]:
    """Return the queries whose primary measure changed most, with both values."""
    gaps = found.measures[found.primary].deltas
    order = sorted((query for query, gap in gaps.items() if abs(gap) > 1e-9), key=lambda query: (-abs(gaps[query]), query))
    then, now = (dict(zip(arm.scores.query_ids, arm.scores.of(found.primary).tolist(), strict=True)) for arm in (a, b))
    return [(query, then[query], now[query], gaps[query]) for query in order[:count]]


def comparison_parts(
    found: lib.verdict.Comparison, a: lib.verdict.Arm, b: lib.verdict.Arm, count: int, *, tests: bool
) -> Iterator[str | show.Table]:
    """Yield the verdict, then the numbers behind it."""
    yield f"verdict: {found.verdict}\n{sentence(found)}\n{found.reason[0].upper()}{found.reason[1:]}."
    yield f"\nA: {found.a}\nB: {found.b}"
    yield show.Table(("measure", *HEADERS), [[name, *measure_row(one)] for name, one in found.measures.items()])
    yield lib.report.how_tested(found)
    yield from _tests(found) if tests else ()
    for name, values in found.slices.items():
        yield show.Table((name, *HEADERS), [[value, *measure_row(parts[found.primary])] for value, parts in values.items()])
        yield lib.report.slice_terms(found)
    yield from () if found.latency is None else _latency(found.latency, found.alpha)
    texts = {query.query_id: query.text for arm in (a, b) for query in getattr(arm, "queries", ())}
    moved = [
        [query, show.short(lib.report.beside_id(query, texts.get(query, ""))), then, now, show.signed(gap)]
        for query, then, now, gap in _moved(found, a, b, count)
    ]
    yield show.Table(("moved most", "question", "A", "B", f"{found.primary} B − A"), moved, 2)


def _overview(found: Sequence[lib.verdict.Comparison]) -> list[str | show.Table]:
    """Return a line per comparison with the first run."""
    rows = [[one.b, *measure_row(one.measures[one.primary])] for one in found]
    lines = (f"verdict on {one.b}: {one.verdict}\n{sentence(one)}" for one in found)
    return [*lines, show.Table((f"{found[0].primary}, against {found[0].a}", *HEADERS), rows)]


def sentence(found: lib.verdict.Comparison) -> str:
    """Return the verdict as a sentence with the numbers behind it."""
    main = found.measures[found.primary]
    if main.n < 2:
        return f"Whether {found.b} differs from {found.a} cannot be told."
    if main.ties == main.n:
        return f"{found.b} and {found.a} score alike by {found.primary}: {show.number(main.a)}."
    moved = f"{show.number(main.a)} → {show.number(main.b)} ({show.signed(main.diff)})"
    if found.verdict == "not enough evidence":
        return f"Whether {found.b} differs from {found.a} by {found.primary} is open: {moved}."
    return f"{found.b} is {found.verdict} than {found.a} by {found.primary}: {moved}."


def remarks(found: lib.verdict.Comparison) -> Iterator[str]:
    """Yield what a reader should know before trusting a comparison."""
    yield from found.notes
    yield from found.measures[found.primary].warnings


def measure_row(one: lib.verdict.MeasureComparison) -> list[object]:
    """Return the cells of a measure under ``HEADERS``."""
    change = [show.signed(one.diff), show.interval(one.low, one.high), show.p_value(one.p_adjusted)]
    return [one.a, one.b, *change, f"{one.wins}/{one.ties}/{one.losses}", lib.report.says(one)]


def _tests(found: lib.verdict.Comparison) -> tuple[show.Table, str]:
    rows: list[list[object]] = []
    for name, one in found.measures.items():
        values = map(show.p_value, (one.t_p, one.wilcoxon_p, one.p, one.interval_p))
        effect = [show.number(one.effect, 2), show.interval(*one.bca), one.prob_better]
        detectable = "none" if math.isinf(one.detectable) else show.number(one.detectable)
        more = "—" if one.more_queries is None else f"{one.more_queries:,}"
        rows.append([name, one.n, show.number(one.t, 2), *values, *effect, detectable, more])
    headers = ("tests", "n", "t", "p of t", "Wilcoxon p", "randomisation p", "interval p", "d_z", "BCa interval")
    terms = (
        "The larger of the randomisation p and the interval p decides, since both must hold. Detectable: the smallest true\n"
        "difference that this many queries can detect. More to settle: how many more queries would settle a true difference\n"
        f"of the size seen ({lib.report.terms(found.alpha, found.measures[found.primary].tests)})."
    )
    return show.Table((*headers, "P(B is better)", "detectable", "more to settle"), rows), terms


def _latency(found: lib.verdict.LatencyComparison, alpha: float) -> tuple[show.Table, str]:
    percentiles = {"p50": found.p50, "p95": found.p95, "p99": found.p99}
    rows = [
        [name, lib.report.milliseconds(a), lib.report.milliseconds(b), lib.report.signed_milliseconds(b - a)]
        for name, (a, b) in percentiles.items()
    ]
    low, high, mean = map(lib.report.signed_milliseconds, (found.low, found.high, found.mean_diff))
    text = f"mean difference {mean} over {show.counted(found.n, 'query')}, {100 * (1 - alpha):.4g} % interval {low} … {high}"
    told = "" if found.comparable else "; measured on different machines, so informational only"
    return show.Table(("latency", "A", "B", "B − A"), rows), text + told


# ── query by query ─────────────────────────────────────────────────────────────────────────────────────────────────


def diff_command(
    before: Annotated[str, typer.Argument(help="The run before: its folder, its name, or a file that ringtrue score reads.")],
    after: Annotated[str, typer.Argument(help="The run after.")],
    qrels: Annotated[
        str | None, typer.Option(help="Judgments or a golden set, for RR and nDCG; not needed for run folders.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Compare the first k documents.")] = 10,
    show_all: Annotated[bool, typer.Option("--all", help="List every query, not only the ten that differ most.")] = False,
    json: Json = False,
) -> None:
    """Show how the rankings of two runs differ, query by query.

    Example: ringtrue diff runs/before runs/after

    Example: ringtrue diff before.run after.run --qrels qrels.txt -k 10
    """
    if before == after == "-":
        raise InputError("both runs cannot come from standard input; name a file for one of them")
    names = [str(lib.run.run_folder(name)) for name in (before, after)]
    runs = [lib.formats.read_run(name) for name in names]
    values, remarks = _values(names, runs, qrels, k)
    found = _differences(runs, values, k)
    first, second = (set(run.query_ids) for run in runs)
    missing = {"the first run": sorted(second - first), "the second run": sorted(first - second)}
    counts = Counter(difference.kind for difference in found.values())
    rows = []
    for query_id, diff in sorted(found.items(), key=lambda item: (-item[1].score, item[0])):
        numbers = [show.number(value, 2) for value in (diff.score, diff.tau, diff.overlap)]
        deltas = [show.signed(value, 3) for value in (diff.rr_delta, diff.ndcg_delta)]
        rows.append([query_id, diff.kind, *numbers, "yes" if diff.top1_changed else "no", *deltas])
    headers = ("query", "difference", "score", "tau-b", "overlap", "top-1 changed", "RR Δ", "nDCG Δ")
    compared = show.counted(len(found), "query compared", "queries compared")
    show.result(
        json,
        {"kinds": {kind: counts[kind] for kind in KINDS}, "queries": found, "missing": missing, "k": k},
        f"{compared} at k = {k}: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS),
        show.Table(headers, rows, 2, most=None if show_all else 10, how="--all lists them"),
        notes=[*remarks, *(_lack(name, queries) for name, queries in missing.items() if queries)],
    )


def _lack(name: str, queries: Sequence[str]) -> str:
    return f"{name} lacks {show.counted(len(queries), 'query')}, not compared: {', '.join(queries[:5])}"


def _values(names: Sequence[str], runs: Sequence[lib.records.Run], qrels: str | None, k: int) -> tuple[Values, list[str]]:
    """Return RR and nDCG of both runs, and what a reader should know.

    They go by ``qrels``, else by the judgments that both run folders were made with; empty if there are none that both share.
    """
    unknown: Values = ({}, {})
    if qrels is not None:
        judgments = judgments_in(qrels)
        return [lib.measures.score(run, judgments, _measures(k)).per_query for run in runs], []
    if not all((Path(name) / "run.json").is_file() for name in names):
        return unknown, []
    pair = [lib.run.open_run(name) for name in names]
    if len({one.setup.golden.content_hash for one in pair}) > 1:
        sets = " and ".join(one.setup.golden.version for one in pair)
        return unknown, [f"no RR and nDCG: the runs were judged by different golden sets ({sets}); name one with --qrels"]
    whole = [lib.verdict.with_measures(one, _measures(k)) for one in pair]
    problems = list(dict.fromkeys(text for _, missing in whole for text in missing.values()))
    return unknown if problems else [found.scores.per_query for found, _ in whole], problems


def _measures(k: int) -> list[str]:
    return [f"RR@{k}", f"nDCG@{k}"]


def _differences(runs: Sequence[lib.records.Run], values: Values, k: int) -> dict[str, lib.stats.RankingDifference]:
    """Return the difference per shared query, with those of RR and nDCG if they are known; raises CannotDecide for none."""
    a, b = (run.rankings(k=k) for run in runs)
    found = {}
    for query_id in (query_id for query_id in a if query_id in b):
        known = [side[query_id] for side in values if query_id in side]
        rr, ndcg = ((known[0][name], known[1][name]) if len(known) == 2 else None for name in _measures(k))
        found[query_id] = lib.stats.ranking_difference(a[query_id], b[query_id], k=k, rr=rr, ndcg=ndcg)
    if not found:
        raise CannotDecide("the two runs share no query; check that both use the same query ids")
    return found
