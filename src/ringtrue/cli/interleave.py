"""``ringtrue interleave``: two rankings in one list, and what the clicks on it say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.options import StoreOptions
from ringtrue.errors import InputError, MissingInput, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ringtrue.rollout import Interleaved, InterleavingOutcome

Rankings = tuple[dict[str, list[str]], dict[str, list[str]]]


@dataclass(frozen=True)
class Lists:
    """How the lists of two rankings are drawn."""

    method: Annotated[str, typer.Option(help="team-draft or optimised.")] = "team-draft"
    k: Annotated[int, typer.Option("-k", min=1, help="Results in a list; at most 10 for optimised.")] = 10
    seed: Annotated[int, typer.Option(help="The lists are drawn from it: clicks need the seed they were shown with.")] = 0

    def draw(self, rankings: Rankings, query_id: str, impression: str) -> Interleaved:
        """Return the list of a query as this impression of it was shown; raises MissingInput for an unknown query."""
        from ringtrue.rollout import interleaved

        ours, theirs = rankings
        if query_id not in ours:
            raise MissingInput(f"no query {query_id!r} in both runs; did you mean {nearest(query_id, ours)}?")
        return interleaved(ours[query_id], theirs[query_id], key=impression, method=self.method, k=self.k, seed=self.seed)


def interleave_command(
    *,
    control: Annotated[str | None, typer.Argument(help="The run of production, as ringtrue score reads it.")] = None,
    treatment: Annotated[str | None, typer.Argument(help="The run of the candidate.")] = None,
    query: Annotated[str | None, typer.Option("--query", "-q", help="Show the list of this query, place by place.")] = None,
    clicks: Annotated[Path | None, typer.Option(help="A table with query_id, doc_id and, if known, impression.")] = None,
    feature: Annotated[str | None, typer.Option(help="Instead of runs: weigh the logged impressions of this feature.")] = None,
    lists: Lists,
    by: Annotated[str, typer.Option(help="What decides: confidence-sequence or sprt.")] = "confidence-sequence",
    delta: Annotated[float, typer.Option(help="The smallest mean credit worth finding.")] = 0.05,
    alpha: Annotated[float, typer.Option(help="Significance level: chance of a winner between equal rankings.")] = 0.05,
    settle: Annotated[float, typer.Option(help="Minutes an impression waits for its clicks, with --feature.")] = 30.0,
    options: StoreOptions,
) -> None:
    """Merge two rankings and learn which one users prefer.

    Without --clicks the lists are shown; a click on a place with a credit above 0 speaks for the treatment, below 0 for the
    control. With --clicks the same lists are drawn again and their clicks weighed. With --feature the lists and clicks are
    those of the log.

    \b
    Example: ringtrue interleave before.run after.run --query q7 -k 5
    Example: ringtrue interleave before.run after.run --json > lists.json
    Example: ringtrue interleave before.run after.run --clicks clicks.csv
    Example: ringtrue interleave --feature rerank-v2
    """
    from ringtrue.rollout import judge_credits

    if feature is not None:
        if control is not None or clicks is not None or query is not None:
            raise InputError("--feature reads lists and clicks from the log; leave out runs, --clicks and --query")
        _weigh_log(feature, settle, options)
        return
    if control is None or treatment is None:
        raise InputError("name two runs, before.run after.run, or the logged feature with --feature")
    rankings = _rankings(control, treatment)
    if clicks is not None:
        credits, outside = _credits(rankings, clicks, query, lists)
        found = judge_credits(credits, method=by, alpha=alpha, delta=delta)
        if outside:
            show.note(
                f"{outside} clicks are on documents that the drawn lists do not show; are --seed, -k and --method the same?"
            )
        if options.json:
            drawn = {"interleaving": lists.method, "k": lists.k, "seed": lists.seed}
            show.end_with_json({**drawn, "by": by, "clicks_outside": outside, "outcome": found})
        _print_outcome(found)
        return
    _show_lists(rankings, query, lists, json=options.json)


def _rankings(control: str, treatment: str) -> Rankings:
    from ringtrue.formats import read_run

    if control == treatment == "-":
        raise InputError("both runs cannot come from standard input; name a file for one of them")
    ours, theirs = read_run(control).rankings(), read_run(treatment).rankings()
    both = [query_id for query_id in ours if query_id in theirs]
    if not both:
        raise InputError(f"{control} and {treatment} answer no query in common; interleave runs of the same queries")
    return {query_id: ours[query_id] for query_id in both}, {query_id: theirs[query_id] for query_id in both}


def _show_lists(rankings: Rankings, query: str | None, how: Lists, *, json: bool) -> None:
    wanted = list(rankings[0]) if query is None else [query]
    lists = {query_id: how.draw(rankings, query_id, query_id) for query_id in wanted}
    if json:
        show.end_with_json({"method": how.method, "k": how.k, "seed": how.seed, "lists": lists})
    if query is not None:
        one = lists[query]
        rows = [
            [str(place), item, _speaks_for(credit), f"{credit:+.2f}"]
            for place, (item, credit) in enumerate(zip(one.items, one.credits, strict=True), 1)
        ]
        show.table(["place", "document", "a click speaks for", "credit"], rows, text_columns=3)
        return
    rows = []
    for query_id, one in lists.items():
        counts = [sum(credit * side > 0 for credit in one.credits) for side in (-1, 1)]
        rows.append([query_id, str(len(one.items)), *map(str, counts), str(len(one.items) - sum(counts))])
    show.table(["query", "results", "control", "treatment", "no credit"], rows)


def _credits(rankings: Rankings, file: Path, query: str | None, lists: Lists) -> tuple[list[float], int]:
    """Return the credit of every impression with a click that decides, and how many clicks are on no shown document."""
    credits = []
    outside = 0
    for (query_id, impression), chosen in _clicks(file).items():
        if query in (None, query_id):
            one = lists.draw(rankings, query_id, impression)
            outside += len(chosen - set(one.items))
            credits.append(one.credit(chosen))
    return [credit for credit in credits if credit is not None], outside


def _clicks(file: Path) -> Mapping[tuple[str, str], set[str]]:
    """Documents clicked by (query, impression), in the order of the file."""
    from ringtrue.formats import kind_of
    from ringtrue.formats.table import rows_of

    kind = "csv" if str(file) == "-" else kind_of(file, None)
    if kind == "trec":
        raise InputError(f"{file}: is no table of clicks; name a .csv, .tsv, .jsonl or .parquet file")
    found: dict[tuple[str, str], set[str]] = {}
    for place, row in rows_of(file, kind):
        missing = [name for name in ("query_id", "doc_id") if row.get(name) in (None, "")]
        if missing:
            raise InputError(f"{place}: has no {missing[0]}; every row needs query_id and doc_id")
        query_id = str(row["query_id"])
        found.setdefault((query_id, str(row.get("impression") or query_id)), set()).add(str(row["doc_id"]))
    return found


def _weigh_log(feature: str, settle: float, options: StoreOptions) -> None:
    from ringtrue.rollout import count_log, standing

    with options.existing() as opened:
        counted = count_log(opened, feature, now=datetime.now(UTC), settle=timedelta(minutes=settle), project=options.project)
    stands = standing(counted.test)
    if options.json:
        left = {"waiting": counted.waiting, "before_the_test": counted.before}
        record = {"impressions": counted.impressions, "clicked": counted.clicked, "counted": counted.new, **left}
        show.end_with_json({**record, "test": stands})
    print(f"{feature}: {counted.impressions} interleaved lists, {counted.clicked} with a click, {counted.new} newly counted")
    print(stands.reason)
    if counted.waiting:
        show.note(f"{counted.waiting} lists are younger than {settle:g} minutes and wait for their clicks (--settle)")
    if counted.before:
        show.note(f"{counted.before} lists of the week before the test began ({counted.test.started_at[:16]}) never count")


def _print_outcome(found: InterleavingOutcome) -> None:
    interval: Sequence[float] | None = found.interval
    rows = [
        ["impressions with a click", str(found.impressions)],
        ["treatment preferred", str(found.treatment_wins)],
        ["control preferred", str(found.control_wins)],
        ["neither", str(found.ties)],
        ["mean credit", show.number(found.mean_credit)],
        ["interval at every look", "—" if interval is None else f"{interval[0]:+.3f} to {interval[1]:+.3f}"],
        ["decision", found.decision + (f" after {found.decided_after}" if found.decided_after else "")],
    ]
    show.table(["clicks", ""], rows)


def _speaks_for(credit: float) -> str:
    return "treatment" if credit > 0 else "control" if credit < 0 else "neither"
