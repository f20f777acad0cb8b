"""``ringtrue test`` and ``ringtrue interleave``: is the treatment better, by live queries?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json, StoreOptions, command_group, utc_now
from ringtrue.errors import OK, REGRESSION, InputError, MissingInput, nearest

app = command_group("Run sequential A/B tests on live queries. You may look at any time.")
Feature = Annotated[str, typer.Argument(help="The feature under test, such as rerank-v2.")]
Who = Annotated[str, typer.Option("--who", help="Name for the audit trail.")]
Alpha = Annotated[float, typer.Option("--alpha", help="Significance level: the chance of accepting a treatment without gain.")]
Beta = Annotated[float, typer.Option("--beta", help="The chance of missing a gain of delta.")]
Delta = Annotated[float, typer.Option("--delta", help="The smallest gain worth finding.")]


@app.command()
def create(
    *,
    feature: Feature,
    method: Annotated[str, typer.Option(help="sprt, confidence-sequence, or beta-binomial (0/1 scores).")] = "sprt",
    measure: Annotated[str, typer.Option("--measure", "-m", help="Like mrr, ndcg; 'credit' for interleaving.")] = "mrr",
    alpha: Alpha = 0.05,
    beta: Beta = 0.20,
    delta: Delta = 0.05,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of the differences; by default estimated.")] = None,
    min_samples: Annotated[int, typer.Option(min=1, help="Minimum number of queries before graduation.")] = 100,
    threshold: Annotated[float, typer.Option("--graduation-threshold", help="Minimum gain for graduation.")] = 0.03,
    again: Annotated[bool, typer.Option("--again", help="Replace the feature's test; its counts are lost.")] = False,
    who: Who = "",
    options: StoreOptions,
) -> None:
    """Start a sequential test of a feature.

    Example: ringtrue test create rerank-v2 --method confidence-sequence --delta 0.03
    Example: ringtrue test create rerank-v2 --measure credit    (fed by ringtrue interleave)
    """
    plan: dict[str, Any] = {"method": method, "measure": None if measure == "credit" else measure, "sigma": sigma}
    plan |= {"alpha": alpha, "beta": beta, "delta": delta, "min_samples": min_samples, "graduation_threshold": threshold}
    with options.open() as opened:
        now = utc_now().isoformat()
        made = lib.rollout.create_test(opened, feature, now=now, again=again, who=who, project=options.project, **plan)
    warning = "beta-binomial is not error-controlled when looked at often; decide by sprt or confidence-sequence"
    show.result(
        options.json,
        lib.rollout.standing(made),
        f"{feature}: {method} test started; accepted at {made.upper_bound:+.2f}, rejected at {made.lower_bound:+.2f}",
        notes=[warning] * (method == "beta-binomial"),
    )


@app.command()
def status(
    *,
    feature: Annotated[str | None, typer.Argument(help="The feature; default: all tests.")] = None,
    options: StoreOptions,
) -> None:
    """Show the state of a test, or of all tests.

    Example: ringtrue test status
    Example: ringtrue test status rerank-v2 --json
    """
    with options.existing() as opened:
        project = options.project
        tests = [lib.rollout.found_test(opened, feature, project=project)] if feature else opened.tests(project=project)
    found = [lib.rollout.standing(test) for test in tests]
    headers = ("feature", "method", "status", "decision", "queries", "difference", "interval", "evidence", "bounds")
    show.result(
        options.json,
        found[0] if feature is not None else {"tests": found},
        show.Table(headers, map(_row, found), 4),
        *(f"{one.feature_id}: {one.reason}" for one in found),
        notes=[] if found else ["no test found; start one: ringtrue test create FEATURE"],
    )


@app.command()
def update(
    *,
    feature: Feature,
    file: Annotated[Path, typer.Argument(help="A table with query_id, control and treatment; - is CSV from standard input.")],
    options: StoreOptions,
) -> None:
    """Add scores of both sides to a test. A query counts once, however often it is reported.

    If a row of the file is invalid, nothing is counted.

    Example: ringtrue test update rerank-v2 scores.csv
    Example: printf 'query_id,control,treatment\\neq_17,0.5,1\\n' | ringtrue test update rerank-v2 -
    """
    counted = passed_over = 0
    refused = ""
    with options.existing() as opened:
        test = lib.rollout.found_test(opened, feature, project=options.project)
        # All of the file is checked before any of it counts: nobody has to find out which half was taken.
        for row in lib.rollout.checked_scores(test, _scores(file)):
            scores = {"control": row.control, "treatment": row.treatment}
            recorded = lib.rollout.record_scores(
                opened, feature, row.query_id, now=utc_now().isoformat(), project=options.project, **scores
            )
            test, counted, passed_over = recorded.test, counted + recorded.counted, passed_over + (not recorded.counted)
            refused = recorded.why_not or refused
    stands = lib.rollout.standing(test)
    others = f", {passed_over} skipped ({refused})" if passed_over else ""
    record = {"counted": counted, "passed_over": passed_over, "why_not": refused or None, "test": stands}
    show.result(options.json, record, f"{feature}: {show.counted(counted, 'query')} counted{others}\n{stands.reason}")


@app.command()
def pause(
    *,
    feature: Feature,
    why: Annotated[str, typer.Option(help="The reason, for the audit trail.")] = "",
    who: Who = "",
    options: StoreOptions,
) -> None:
    """Pause a test. Queries are not counted until it is resumed.

    Example: ringtrue test pause rerank-v2 --why "index is being rebuilt"
    """
    _set(feature, "paused", why, who, options)


@app.command()
def resume(
    *,
    feature: Feature,
    why: Annotated[str, typer.Option(help="The reason, for the audit trail.")] = "",
    who: Who = "",
    options: StoreOptions,
) -> None:
    """Resume a paused test.

    Example: ringtrue test resume rerank-v2
    """
    _set(feature, "running", why, who, options)


@app.command()
def simulate(
    simulations: Annotated[int, typer.Option(min=1, help="Simulated tests per row.")] = 2_000,
    queries: Annotated[int, typer.Option(min=1, help="Maximum number of queries per test.")] = 2_000,
    alpha: Alpha = 0.05,
    beta: Beta = 0.20,
    delta: Delta = 0.05,
    sd: Annotated[float, typer.Option(help="Standard deviation of the differences.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 if sprt or confidence-sequence break alpha or beta.")] = False,
    json: Json = False,
) -> None:
    """Simulate tests that are checked after every query: false accepts without a gain, power with one.

    The differences are Gaussian, skewed, zero-inflated, discrete, or rare large gains or losses, all within −1 to 1. --check
    allows for the random error of the simulations.

    Example: ringtrue test simulate --check
    Example: ringtrue test simulate --sd 0.15 --delta 0.03 --queries 5000
    """
    plan = lib.stats.SequentialPlan(alpha, beta, delta)
    rates = lib.stats.sequential_rates(seed=seed, simulations=simulations, most=queries, plan=plan, sd=sd)
    broken = lib.stats.broken_promises(rates, plan)
    tests = f"{simulations:,} tests a row, at most {queries:,} queries each"
    title = f"{tests}; sd {sd:g}, gain {delta:g}, alpha {alpha:g}, beta {beta:g}"
    record = {"simulations": simulations, "queries": queries, "sd": sd, "seed": seed, "plan": plan, "rates": list(rates)}
    show.result(
        json,
        record | {"broken": list(broken)},
        show.Table(
            ("differences", "method", "false accepts", "power", "queries, no gain", "queries, gain"),
            map(_rate_row, rates), 2, title,
        ),
        notes=[f"broken: {line}" for line in broken],
        code=REGRESSION if check and broken else OK,
    )  # fmt: skip


def _set(feature: str, status: lib.answers.Status, why: str, who: str, options: StoreOptions) -> None:
    with options.existing() as opened:
        now = utc_now().isoformat()
        test = lib.rollout.set_status(opened, feature, status, now=now, who=who, why=why, project=options.project)
    stands = lib.rollout.standing(test)
    show.result(options.json, stands, f"{feature}: {stands.status}, {show.counted(stands.samples, 'query')} counted")


def _table(file: Path, what: str, *names: str) -> Iterator[tuple[lib.formats.Place, Mapping[str, Any]]]:
    """Yield the rows of a table with their places; raises InputError for a row that lacks one of the columns ``names``."""

    kind = "csv" if str(file) == "-" else lib.formats.kind_of(file, None)
    if kind == "trec":
        raise InputError(f"{file} is not a table of {what}; name a .csv, .tsv, .jsonl or .parquet file")
    for place, row in lib.formats.rows_of(file, kind):
        if missing := [name for name in names if row.get(name) in (None, "")]:
            raise InputError(f"{place}: has no {missing[0]}; every row needs {', '.join(names[:-1])} and {names[-1]}")
        yield place, row


def _scores(file: Path) -> Iterator[lib.rollout.PairedScores]:
    for place, row in _table(file, "scores", "query_id", "control", "treatment"):
        try:
            yield lib.rollout.PairedScores(str(row["query_id"]), float(row["control"]), float(row["treatment"]), str(place))
        except (TypeError, ValueError):
            raise InputError(
                f"{place}: the scores {row['control']!r:.40} and {row['treatment']!r:.40} are not numbers; write 0 to 1"
            ) from None


def _row(one: lib.rollout.TestStanding) -> list[object]:
    decision = one.decision if one.error_controlled else f"{one.decision} (not error-controlled)"
    numbers: list[object] = [one.samples, one.mean_difference, _span(one.interval), f"{one.evidence:+.2f}"]
    return [one.feature_id, one.method, one.status, decision, *numbers, f"{one.lower_bound:+.2f} to {one.upper_bound:+.2f}"]


def _span(interval: Sequence[float] | None) -> str:
    return "—" if interval is None else f"{interval[0]:+.3f} to {interval[1]:+.3f}"


def _rate_row(rate: lib.stats.SequentialRate) -> list[str]:
    shares = [f"{100 * share:.1f} %" for share in (rate.false_accept, rate.power)]
    return [rate.shape, rate.method, *shares, f"{rate.queries_without:.0f}", f"{rate.queries_with:.0f}"]


Rankings = tuple[dict[str, list[str]], dict[str, list[str]]]


@dataclass(frozen=True)
class Lists:
    """How the lists of two rankings are drawn."""

    method: Annotated[str, typer.Option(help="team-draft or optimised.")] = "team-draft"
    k: Annotated[int, typer.Option("-k", min=1, help="Results in a list; at most 10 for optimised.")] = 10
    seed: Annotated[int, typer.Option(help="Seed of the draw; to score clicks, give the seed the lists were shown with.")] = 0

    def draw(self, rankings: Rankings, query_id: str, impression: str) -> lib.rollout.Interleaved:
        """Return the list of a query as this impression of it was shown; raises MissingInput for an unknown query."""
        ours, theirs = rankings
        if query_id not in ours:
            raise MissingInput(f"no query {query_id!r} in both runs; did you mean {nearest(query_id, ours)}?")
        return lib.rollout.interleaved(
            ours[query_id], theirs[query_id], key=impression, method=self.method, k=self.k, seed=self.seed
        )


def interleave_command(
    *,
    control: Annotated[str | None, typer.Argument(help="The run of production, as ringtrue score reads it.")] = None,
    treatment: Annotated[str | None, typer.Argument(help="The run of the candidate.")] = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="Show the interleaved list of this query, rank by rank.")
    ] = None,
    clicks: Annotated[Path | None, typer.Option(help="A table with query_id, doc_id and, if known, impression.")] = None,
    feature: Annotated[str | None, typer.Option(help="Score this feature's logged impressions instead of runs.")] = None,
    lists: Lists,
    by: Annotated[str, typer.Option(help="What decides: confidence-sequence or sprt.")] = "confidence-sequence",
    delta: Annotated[float, typer.Option(help="The smallest mean credit worth finding.")] = 0.05,
    alpha: Annotated[float, typer.Option(help="Significance level: chance of a winner between equal rankings.")] = 0.05,
    settle: Annotated[float, typer.Option(help="With --feature: minutes to wait for the clicks of an impression.")] = 30.0,
    options: StoreOptions,
) -> None:
    """Interleave two rankings and learn which one users prefer.

    Without --clicks, shows the lists: a click on a result with a credit above 0 counts for the treatment, below 0 for the
    control. With --clicks, draws the same lists again and scores the clicks. With --feature, takes lists and clicks from the
    log.

    Example: ringtrue interleave before.run after.run --query q7 -k 5
    Example: ringtrue interleave before.run after.run --json > lists.json
    Example: ringtrue interleave before.run after.run --clicks clicks.csv
    Example: ringtrue interleave --feature rerank-v2
    """
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
        found = lib.rollout.judge_credits(credits, method=by, alpha=alpha, delta=delta)
        strange = f"{outside} clicks are on documents that the drawn lists do not show; are --seed, -k and --method the same?"
        record = {"interleaving": lists.method, "k": lists.k, "seed": lists.seed, "by": by, "clicks_outside": outside}
        show.notes([strange] * bool(outside))
        show.result(options.json, {**record, "outcome": found}, _outcome(found))
        return
    _show_lists(rankings, query, lists, json=options.json)


def _rankings(control: str, treatment: str) -> Rankings:
    if control == treatment == "-":
        raise InputError("both runs cannot come from standard input; name a file for one of them")
    ours, theirs = lib.formats.read_run(control).rankings(), lib.formats.read_run(treatment).rankings()
    both = [query_id for query_id in ours if query_id in theirs]
    if not both:
        raise InputError(f"{control} and {treatment} have no answered query in common; interleave runs of the same queries")
    return {query_id: ours[query_id] for query_id in both}, {query_id: theirs[query_id] for query_id in both}


def _show_lists(rankings: Rankings, query: str | None, how: Lists, *, json: bool) -> None:
    wanted = list(rankings[0]) if query is None else [query]
    lists = {query_id: how.draw(rankings, query_id, query_id) for query_id in wanted}
    rows: list[list[object]] = []
    for query_id, one in lists.items():
        counts = [sum(credit * side > 0 for credit in one.credits) for side in (-1, 1)]
        rows.append([query_id, len(one.items), *counts, len(one.items) - sum(counts)])
    table = show.Table(("query", "results", "control", "treatment", "no credit"), rows)
    if query is not None:
        one = lists[query]
        sides = ["treatment" if credit > 0 else "control" if credit < 0 else "neither" for credit in one.credits]
        cells = zip(count(1), one.items, sides, (f"{credit:+.2f}" for credit in one.credits), strict=False)
        table = show.Table(("place", "document", "a click speaks for", "credit"), cells, 3)
    show.result(json, {"method": how.method, "k": how.k, "seed": how.seed, "lists": lists}, table)


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
    """Return the documents clicked by (query, impression), in the order of the file."""
    found: dict[tuple[str, str], set[str]] = {}
    for _, row in _table(file, "clicks", "query_id", "doc_id"):
        query_id = str(row["query_id"])
        found.setdefault((query_id, str(row.get("impression") or query_id)), set()).add(str(row["doc_id"]))
    return found


def _weigh_log(feature: str, settle: float, options: StoreOptions) -> None:
    with options.existing() as opened:
        counted = lib.rollout.count_log(
            opened, feature, now=utc_now(), settle=timedelta(minutes=settle), project=options.project
        )
    stands = lib.rollout.standing(counted.test)
    left = {"waiting": counted.waiting, "before_the_test": counted.before}
    record = {"impressions": counted.impressions, "clicked": counted.clicked, "counted": counted.new, **left}
    waiting = f"{counted.waiting} lists are younger than {settle:g} minutes and wait for their clicks (--settle)"
    before = f"{counted.before} lists of the week before the test began ({counted.test.started_at[:16]}) never count"
    show.result(
        options.json,
        {**record, "test": stands},
        f"{feature}: {counted.impressions} interleaved lists, {counted.clicked} with a click, {counted.new} newly counted",
        stands.reason,
        notes=[waiting if counted.waiting else "", before if counted.before else ""],
    )


def _outcome(found: lib.rollout.InterleavingOutcome) -> show.Table:
    rows = {
        "impressions with a click": found.impressions,
        "treatment preferred": found.treatment_wins,
        "control preferred": found.control_wins,
        "neither": found.ties,
        "mean credit": found.mean_credit,
        "interval at every look": _span(found.interval),
        "decision": found.decision + (f" after {found.decided_after}" if found.decided_after else ""),
    }
    return show.Table(("clicks", ""), rows.items())
