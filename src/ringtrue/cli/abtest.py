"""``ringtrue test``: is the treatment better? Sequential tests that may be looked at after every query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.options import Json, StoreOptions, command_group, existing, utc_now
from ringtrue.errors import REGRESSION, InputError

if TYPE_CHECKING:
    from ringtrue.answers import Status
    from ringtrue.rollout import Scores, Standing
    from ringtrue.stats import RareLossRate, SequentialRate

app = command_group("Run sequential A/B tests on live queries. You may look at any time.")
Feature = Annotated[str, typer.Argument(help="The feature under test, such as rerank-v2.")]
Who = Annotated[str, typer.Option("--who", help="Who does it, for the audit trail.")]
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
    min_samples: Annotated[int, typer.Option(min=1, help="Queries before the feature may graduate.")] = 100,
    threshold: Annotated[float, typer.Option("--graduation-threshold", help="Gain that graduation asks for.")] = 0.03,
    again: Annotated[bool, typer.Option("--again", help="Replace the feature's test; its counts are lost.")] = False,
    who: Who = "",
    options: StoreOptions,
) -> None:
    """Start the test of a feature.

    \b
    Example: ringtrue test create rerank-v2 --method confidence-sequence --delta 0.03
    Example: ringtrue test create rerank-v2 --measure credit    (fed by ringtrue interleave)
    """
    from ringtrue.rollout import create_test, standing

    with options.open() as opened:
        made = create_test(
            opened,
            feature,
            now=utc_now().isoformat(),
            method=method,
            measure=None if measure == "credit" else measure,
            alpha=alpha,
            beta=beta,
            delta=delta,
            sigma=sigma,
            min_samples=min_samples,
            graduation_threshold=threshold,
            again=again,
            who=who,
            project=options.project,
        )
    if options.json:
        show.end_with_json(standing(made))
    print(f"{feature}: {method} test started; accepted at {made.upper_bound:+.2f}, rejected at {made.lower_bound:+.2f}")
    if method == "beta-binomial":
        show.note("beta-binomial is not error-controlled when looked at often; decide by sprt or confidence-sequence")


@app.command()
def status(
    *,
    feature: Annotated[str | None, typer.Argument(help="The feature; all tests unless given.")] = None,
    options: StoreOptions,
) -> None:
    """Show how a test stands, or all tests.

    \b
    Example: ringtrue test status
    Example: ringtrue test status rerank-v2 --json
    """
    from ringtrue.rollout import found_test, standing

    with options.existing() as opened:
        tests = (
            opened.tests(project=options.project) if feature is None else [found_test(opened, feature, project=options.project)]
        )
    found = [standing(test) for test in tests]
    if options.json:
        show.end_with_json(found[0] if feature is not None else {"tests": found})
    if not found:
        show.note("there is no test yet; start one: ringtrue test create FEATURE")
        return
    headers = ["feature", "method", "status", "decision", "queries", "difference", "interval", "evidence", "bounds"]
    show.table(headers, [_row(one) for one in found], text_columns=4)
    for one in found:
        print(f"{one.feature_id}: {one.reason}")


@app.command()
def update(
    *,
    feature: Feature,
    file: Annotated[
        Path | None, typer.Argument(help="A table with query_id, control and treatment; - is CSV from standard input.")
    ] = None,
    query: Annotated[str | None, typer.Option("--query", "-q", help="One query instead of a file: its id,")] = None,
    control: Annotated[float | None, typer.Option(help="the control's score")] = None,
    treatment: Annotated[float | None, typer.Option(help="and the treatment's, in 0 to 1.")] = None,
    options: StoreOptions,
) -> None:
    """Count the scores of both sides; a query counts once, however often it is reported.

    A file counts as a whole: if one of its rows cannot be used, nothing is counted.

    \b
    Example: ringtrue test update rerank-v2 scores.csv
    Example: ringtrue test update rerank-v2 --query eq_17 --control 0.5 --treatment 1
    """
    from ringtrue.rollout import Scores, checked_scores, found_test, record_scores, standing

    if (file is None) == (query is None) or (query is not None and (control is None or treatment is None)):
        raise InputError("name a file of scores, or one query with --query, --control and --treatment")
    counted = passed_over = 0
    refused = ""
    with options.existing() as opened:
        test = found_test(opened, feature, project=options.project)
        # All of the file is checked before any of it counts: nobody has to find out which half was taken.
        rows = (
            checked_scores(test, _scores(file))
            if file is not None
            else [Scores(str(query), float(control or 0), float(treatment or 0))]
        )
        for row in rows:
            recorded = record_scores(
                opened,
                feature,
                row.query_id,
                control=row.control,
                treatment=row.treatment,
                now=utc_now().isoformat(),
                project=options.project,
            )
            test, counted, passed_over = recorded.test, counted + recorded.counted, passed_over + (not recorded.counted)
            refused = recorded.why_not or refused
    stands = standing(test)
    if options.json:
        show.end_with_json({"counted": counted, "passed_over": passed_over, "why_not": refused or None, "test": stands})
    print(f"{feature}: {counted} queries counted" + (f", {passed_over} passed over ({refused})" if passed_over else ""))
    print(stands.reason)


@app.command()
def pause(
    *,
    feature: Feature,
    why: Annotated[str, typer.Option(help="The reason, for the audit trail.")] = "",
    who: Who = "",
    options: StoreOptions,
) -> None:
    """Stop counting queries; what was counted stays.

    Example: ringtrue test pause rerank-v2 --why "index is being rebuilt"
    """
    _set(feature, "paused", why, who, options.store, options.project, options.json)


@app.command()
def resume(
    *,
    feature: Feature,
    why: Annotated[str, typer.Option(help="The reason, for the audit trail.")] = "",
    who: Who = "",
    options: StoreOptions,
) -> None:
    """Go on counting queries.

    Example: ringtrue test resume rerank-v2
    """
    _set(feature, "running", why, who, options.store, options.project, options.json)


@app.command()
def simulate(
    simulations: Annotated[int, typer.Option(min=1, help="Simulated tests per row.")] = 2_000,
    queries: Annotated[int, typer.Option(min=1, help="The most queries a test may take.")] = 2_000,
    alpha: Alpha = 0.05,
    beta: Beta = 0.20,
    delta: Delta = 0.05,
    sd: Annotated[float, typer.Option(help="Standard deviation of the differences.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 if sprt or confidence-sequence break alpha or beta.")] = False,
    json: Json = False,
) -> None:
    """Show how often each method errs when looked at after every query: false accepts without a gain, power with one.

    Differences are gaussian, skewed, zero-inflated, discrete and of rare large gains or losses, all within −1 to 1; below stand
    worthless treatments whose steady gain hides a rare loss. "no variance" is a formula that an earlier system shipped: it
    accepts a worthless treatment about once in three tests. --check allows for the chance of so many simulations.

    \b
    Example: ringtrue test simulate --check
    Example: ringtrue test simulate --sd 0.15 --delta 0.03 --queries 5000
    """
    from ringtrue.stats import SequentialPlan, broken_promises, peeking_rate, rare_loss_rates, sequential_rates

    plan = SequentialPlan(alpha, beta, delta)
    rates = sequential_rates(seed=seed, simulations=simulations, most=queries, plan=plan, sd=sd)
    rare = rare_loss_rates(seed=seed, simulations=simulations, most=queries, plan=plan)
    peeking = peeking_rate(seed=seed, simulations=min(simulations, 500))
    broken = broken_promises(rates, plan, rare=rare)
    if json:
        given = {"simulations": simulations, "queries": queries, "sd": sd, "seed": seed, "plan": plan}
        found = {"rates": list(rates), "rare_losses": list(rare), "beta_binomial_false_accept": peeking}
        show.as_json({**given, **found, "broken": list(broken)})
    else:
        headers = ["differences", "method", "false accepts", "power", "queries, no gain", "queries, gain"]
        title = (
            f"{simulations:,} tests a row, at most {queries:,} queries each; "
            f"sd {sd:g}, gain {delta:g}, alpha {alpha:g}, beta {beta:g}"
        )
        show.table(headers, [_rate_row(rate) for rate in rates], title=title, text_columns=2)
        print()
        show.table(
            ["rare losses", "method", "delta", "false accepts", "queries"], [_rare_row(one) for one in rare], text_columns=2
        )
        print(
            f"beta-binomial read after every query: {100 * peeking:.1f} % false accepts in 300 queries (not error-controlled)"
        )
        for line in broken:
            show.note(f"broken: {line}")
    if check and broken:
        raise typer.Exit(REGRESSION)


def _set(feature: str, status: Status, why: str, who: str, store: str | None, project: str, json: bool) -> None:
    from ringtrue.rollout import set_status, standing

    with existing(store) as opened:
        stands = standing(set_status(opened, feature, status, now=utc_now().isoformat(), who=who, why=why, project=project))
    if json:
        show.end_with_json(stands)
    print(f"{feature}: {stands.status}, {stands.samples} queries counted")


def _scores(file: Path) -> Iterator[Scores]:
    """The rows of a file of scores; raises InputError with the place of what cannot be used."""
    from ringtrue.formats import kind_of
    from ringtrue.formats.table import rows_of
    from ringtrue.rollout import Scores

    kind = "csv" if str(file) == "-" else kind_of(file, None)
    if kind == "trec":
        raise InputError(f"{file}: is no table of scores; name a .csv, .tsv, .jsonl or .parquet file")
    for place, row in rows_of(file, kind):
        missing = [name for name in ("query_id", "control", "treatment") if row.get(name) in (None, "")]
        if missing:
            raise InputError(f"{place}: has no {missing[0]}; every row needs query_id, control and treatment")
        try:
            yield Scores(str(row["query_id"]), float(row["control"]), float(row["treatment"]), str(place))
        except (TypeError, ValueError):
            raise InputError(
                f"{place}: the scores {row['control']!r:.40} and {row['treatment']!r:.40} are no numbers; write 0 to 1"
            ) from None


def _row(one: Standing) -> list[str]:
    interval = "—" if one.interval is None else f"{one.interval[0]:+.3f} to {one.interval[1]:+.3f}"
    decision = one.decision if one.error_controlled else f"{one.decision} (not error-controlled)"
    numbers = [str(one.samples), show.number(one.mean_difference), interval, f"{one.evidence:+.2f}"]
    return [one.feature_id, one.method, one.status, decision, *numbers, f"{one.lower_bound:+.2f} to {one.upper_bound:+.2f}"]


def _rate_row(rate: SequentialRate) -> list[str]:
    shares = [f"{100 * share:.1f} %" for share in (rate.false_accept, rate.power)]
    return [rate.shape, rate.method, *shares, f"{rate.queries_without:.0f}", f"{rate.queries_with:.0f}"]


def _rare_row(one: RareLossRate) -> list[str]:
    steady = f"{one.gain:+g}, but {-one.loss:g} {100 * one.share:g} % of the time"
    return [steady, one.method, f"{one.delta:g}", f"{100 * one.false_accept:.1f} %", f"{one.queries:.0f}"]
