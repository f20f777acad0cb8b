"""``ringtrue diff``: how two runs differ, query by query (C-3)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.errors import InputError

if TYPE_CHECKING:
    from ringtrue.records import Run
    from ringtrue.stats import RankingDifference
    from ringtrue.stats.difference import Kind

KINDS: tuple[Kind, ...] = ("identical", "minor", "major", "incompatible")


def diff_command(
    before: Annotated[str, typer.Argument(help="The run before, in any format that ringtrue score reads.")],
    after: Annotated[str, typer.Argument(help="The run after.")],
    qrels: Annotated[
        str | None, typer.Option("--qrels", help="Judgments or a golden set, for the RR and nDCG differences.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Compare the first k documents.")] = 10,
    show_all: Annotated[bool, typer.Option("--all", help="List every query, not only the ten most different.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show how the rankings of two runs differ, query by query.

    Example: ringtrue diff before.run after.run --qrels qrels.txt -k 10
    """
    from ringtrue.cli import show
    from ringtrue.formats import read_run

    if before == after == "-":
        raise InputError("both runs cannot come from standard input; name a file for one of them")
    one, other = read_run(before), read_run(after)
    found, missing = differences(one, other, qrels=qrels, k=k)
    counts = Counter(difference.kind for difference in found.values())
    if json:
        show.as_json({"kinds": {kind: counts[kind] for kind in KINDS}, "queries": found, "missing": missing, "k": k})
        return
    print_differences(found, k=k, limit=None if show_all else 10)
    for name, queries in missing.items():
        if queries:
            show.note(f"{len(queries)} queries are missing from {name} and were not compared: {', '.join(queries[:5])}")


def differences(
    one: Run, other: Run, *, qrels: str | None, k: int
) -> tuple[dict[str, RankingDifference], dict[str, list[str]]]:
    """Return the difference per shared query, and the queries that either run lacks."""
    from ringtrue.cli.score import judgments_in
    from ringtrue.measures import score
    from ringtrue.stats import ranking_difference

    a, b = one.rankings(k=k), other.rankings(k=k)
    shared = [query_id for query_id in a if query_id in b]
    if not shared:
        raise InputError("the two runs share no query; check that both use the same query ids")
    found = {query_id: ranking_difference(a[query_id], b[query_id], k=k) for query_id in shared}
    if qrels is not None:
        judgments = judgments_in(qrels)
        measures = [f"RR@{k}", f"nDCG@{k}"]
        values = [score(run, judgments, measures).per_query for run in (one, other)]
        for query_id in shared:
            if query_id in values[0]:
                pairs = [(values[0][query_id][name], values[1][query_id][name]) for name in measures]
                found[query_id] = ranking_difference(a[query_id], b[query_id], k=k, rr=pairs[0], ndcg=pairs[1])
    missing = {
        "the first run": [query_id for query_id in b if query_id not in a],
        "the second run": [query_id for query_id in a if query_id not in b],
    }
    return found, missing


def print_differences(found: dict[str, RankingDifference], *, k: int, limit: int | None) -> None:
    """Print the classes and the most different queries."""
    from ringtrue.cli import show

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
            _signed(difference.rr_delta),
            _signed(difference.ndcg_delta),
        ]
        for query_id, difference in worst
    ]
    headers = ["query", "difference", "score", "tau-b", "overlap", "top-1 changed", "RR Δ", "nDCG Δ"]
    show.table(headers, rows, text_columns=2)


def _signed(value: float | None) -> str:
    from ringtrue.cli import show

    text = show.number(value, 3)
    return f"+{text}" if value is not None and value > 0 else text
