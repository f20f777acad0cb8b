"""``ringtrue diff``: how two runs differ, query by query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.options import Json
from ringtrue.cli.score import judgments_in
from ringtrue.errors import CannotDecide, InputError

if TYPE_CHECKING:
    from ringtrue.records import Run
    from ringtrue.stats import RankingDifference, RankingDifferenceKind

Values = Sequence[Mapping[str, Mapping[str, float]]]
"""Of both runs: query → measure → value."""
KINDS: tuple[RankingDifferenceKind, ...] = ("identical", "minor", "major", "incompatible")


def diff_command(
    before: Annotated[str, typer.Argument(help="The run before: its folder, its name, or a file that ringtrue score reads.")],
    after: Annotated[str, typer.Argument(help="The run after.")],
    qrels: Annotated[str | None, typer.Option(help="Judgments or golden set for RR and nDCG; run folders have them.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Compare the first k documents.")] = 10,
    show_all: Annotated[bool, typer.Option("--all", help="List every query, not only the ten most different.")] = False,
    json: Json = False,
) -> None:
    """Show how the rankings of two runs differ, query by query.

    Example: ringtrue diff runs/before runs/after

    Example: ringtrue diff before.run after.run --qrels qrels.txt -k 10
    """
    from ringtrue.formats import read_run
    from ringtrue.run import run_folder

    if before == after == "-":
        raise InputError("both runs cannot come from standard input; name a file for one of them")
    before, after = (str(run_folder(name)) for name in (before, after))
    one, other = read_run(before), read_run(after)
    values, remarks = (scored(one, other, qrels, k=k), []) if qrels is not None else own_values(before, after, k=k)
    found, missing = differences(one, other, values, k=k)
    counts = Counter(difference.kind for difference in found.values())
    if json:
        show.end_with_json({"kinds": {kind: counts[kind] for kind in KINDS}, "queries": found, "missing": missing, "k": k})
    print_differences(found, k=k, limit=None if show_all else 10)
    for remark in remarks:
        show.note(remark)
    for name, queries in missing.items():
        if queries:
            show.note(f"{len(queries)} queries are missing from {name} and were not compared: {', '.join(queries[:5])}")


def scored(one: Run, other: Run, qrels: str, *, k: int) -> Values:
    """Return RR and nDCG of both runs by these judgments."""
    from ringtrue.measures import score

    judgments = judgments_in(qrels)
    return [score(run, judgments, _measures(k)).per_query for run in (one, other)]


def own_values(before: str, after: str, *, k: int) -> tuple[Values | None, list[str]]:
    """Return RR and nDCG of two run folders by the judgments they were made with, and what a reader should know.

    None if one of them is not a run folder, or if they were judged by different golden sets.
    """
    from ringtrue.run import open_run
    from ringtrue.verdict import with_measures

    if not all((Path(name) / "run.json").is_file() for name in (before, after)):
        return None, []
    pair = [open_run(name) for name in (before, after)]
    if len({one.setup.golden.content_hash for one in pair}) > 1:
        names = " and ".join(one.setup.golden.version for one in pair)
        return None, [f"no RR and nDCG: the runs were judged by different golden sets ({names}); name one with --qrels"]
    values = []
    problems: dict[str, str] = {}
    for one in pair:
        whole, missing = with_measures(one, _measures(k))
        problems |= missing
        values.append(whole.scores.per_query)
    return (None, list(problems.values())) if problems else (values, [])


def _measures(k: int) -> list[str]:
    return [f"RR@{k}", f"nDCG@{k}"]


def differences(
    one: Run, other: Run, values: Values | None, *, k: int
) -> tuple[dict[str, RankingDifference], dict[str, list[str]]]:
    """Return the difference per shared query, with those of RR and nDCG if they are known, and what either run lacks."""
    from ringtrue.stats import ranking_difference

    a, b = one.rankings(k=k), other.rankings(k=k)
    shared = [query_id for query_id in a if query_id in b]
    if not shared:
        raise CannotDecide("the two runs share no query; check that both use the same query ids")
    found = {query_id: ranking_difference(a[query_id], b[query_id], k=k) for query_id in shared}
    if values is not None:
        for query_id in shared:
            if query_id in values[0] and query_id in values[1]:
                pairs = [(values[0][query_id][name], values[1][query_id][name]) for name in _measures(k)]
                found[query_id] = ranking_difference(a[query_id], b[query_id], k=k, rr=pairs[0], ndcg=pairs[1])
    missing = {
        "the first run": [query_id for query_id in b if query_id not in a],
        "the second run": [query_id for query_id in a if query_id not in b],
    }
    return found, missing


def print_differences(found: dict[str, RankingDifference], *, k: int, limit: int | None) -> None:
    """Print the classes and the most different queries."""
    counts = Counter(difference.kind for difference in found.values())
    print(f"{len(found)} queries compared at k = {k}: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS))
    worst = sorted(found.items(), key=lambda item: (-item[1].score, item[0]))[:limit]
    rows = [
        [
            query_id,
            difference.kind,
            show.number(difference.score, 2),
            show.number(difference.tau, 2),
            show.number(difference.overlap, 2),
            "yes" if difference.top1_changed else "no",
            show.signed(difference.rr_delta, 3),
            show.signed(difference.ndcg_delta, 3),
        ]
        for query_id, difference in worst
    ]
    headers = ["query", "difference", "score", "tau-b", "overlap", "top-1 changed", "RR Δ", "nDCG Δ"]
    show.table(headers, rows, text_columns=2)
