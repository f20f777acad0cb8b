"""``ringtrue gate``: is a search still good enough to ship."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import show
from ringtrue.cli.evaluating import Asked, evaluated, settled
from ringtrue.cli.keep import ResultOptions
from ringtrue.cli.options import Json

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.verdict import Baseline, Check, Policy, Verdict
    from ringtrue.verdict.records import CheckStatus

BASELINE = Path("ringtrue-baseline.json")
QUERIES = 3
"""Queries that are named behind each failure, unless all are asked for; reports name more."""
BaselineFile = Annotated[Path, typer.Option("--baseline", "-b", help="The baseline's file.")]


@dataclass(frozen=True)
class PolicyOptions:
    """The rules that an option may set in place of ``[gate]``."""

    require_baseline: Annotated[
        bool | None,
        typer.Option(
            "--require-baseline/--no-baseline",
            help="--no-baseline: decide by floors and ceilings alone. Otherwise, a gate without a baseline is undecided.",
        ),
    ] = None
    mode: Annotated[str | None, typer.Option("--mode", help="relative (any fall beyond --max-drop) or statistical.")] = None
    floor: Annotated[
        list[str] | None,
        typer.Option("--floor", help="A floor to add or change, R@5=0.8, or to take out, R@5=off. Repeatable."),
    ] = None
    max_drop: Annotated[float | None, typer.Option("--max-drop", help="Largest fall in mode relative, 0.05 is 5 %.")] = None
    drop_measures: Annotated[
        list[str] | None, typer.Option("--drop-measure", help="A measure to compare with the baseline. Repeatable.")
    ] = None
    min_effect: Annotated[
        float | None, typer.Option("--min-effect", help="Ignore drops smaller than this (statistical mode).")
    ] = None
    alpha: Annotated[float | None, typer.Option("--alpha", help="Chance of a false alarm in mode statistical.")] = None
    latency_increase: Annotated[
        float | None, typer.Option("--latency-increase", help="p95 must grow by less than this share; inf: no rule.")
    ] = None
    latency_slack: Annotated[
        float | None, typer.Option("--latency-slack", help="Milliseconds by which p95 may grow whatever the share.")
    ] = None
    slice_drop: Annotated[
        bool | None, typer.Option("--slice-drop/--no-slice-drop", help="Compare every slice with the baseline, too.")
    ] = None
    minimum_queries: Annotated[
        int | None, typer.Option("--minimum-queries", help="Fewest scored queries a verdict may rest on.")
    ] = None
    slice_minimum: Annotated[int | None, typer.Option("--slice-minimum", help="Fewest queries of a slice compared.")] = None
    same_corpus: Annotated[
        bool | None, typer.Option("--same-corpus/--any-corpus", help="Whether the documents must be the baseline's.")
    ] = None

    def policy(self) -> Policy:
        """Return the policy of ringtrue.toml with the given options in place of its settings; raises InputError."""
        from ringtrue.config import load_config
        from ringtrue.verdict import Policy

        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "floor"}
        changed = {name: value for name, value in given.items() if value not in (None, [])}
        return Policy.configured(load_config()).with_floors(self.floor or (), **changed)


def gate_command(
    *,
    context: typer.Context,
    run: Annotated[
        Path | None, typer.Option("--run", help="Judge this run, a folder or a name, instead of evaluating.")
    ] = None,
    asked: Asked,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder to write; .ringtrue/runs/… unless given.")] = None,
    baseline: BaselineFile = BASELINE,
    rules: PolicyOptions,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            "--report", help="Write a report, its kind by the ending: .md .html .json .xml (JUnit) .sarif. Repeatable."
        ),
    ] = None,
    result: ResultOptions,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also show informational checks and every query behind a failure.")
    ] = False,
    json: Json = False,
) -> None:
    """Check a search against floors and its baseline, for CI. Never changes the baseline.

    Exit code 0: pass; 1: a check failed; 2: usage or bad input; 3: could not decide. The policy stands under [gate] in
    ringtrue.toml; what is evaluated is taken from [eval] there, unless it is given here. A run (--run) that is not of this
    search, these documents and this golden set proves nothing about them: exit code 3. The verdict goes to the store where
    there is one.

    \b
    Example: ringtrue gate --golden hotel --retriever hybrid
    Example: ringtrue gate --run runs/today --mode statistical --floor 'R@5=0.85' --report gate.md --report junit.xml
    Example: ringtrue gate --run runs/committed --retriever "connect('shop')" --watch 'search/*.py'
    """
    from ringtrue.report import report_on, report_writer
    from ringtrue.run import DEFAULT_MEASURES, new_run_folder, open_run, save
    from ringtrue.traffic import marked
    from ringtrue.verdict import find_baseline, gate, with_checks

    policy = rules.policy()
    writers = {path: report_writer(path) for path in report or ()}  # a wrong ending fails before hours of evaluating
    without = rules.require_baseline is False and _given(context, "require_baseline")
    before = None if without else find_baseline(baseline, named=_given(context, "baseline"))
    asked = settled(asked, context)
    place = result.destination()
    extra: list[Check] = []
    notes: list[str] = []
    if run is not None:
        evaluation = open_run(run)
        extra, notes = committed(evaluation, asked)
    else:
        wanted = tuple(dict.fromkeys((*DEFAULT_MEASURES, *policy.measures)))
        with marked("gate"):
            evaluation = evaluated(asked, measures=wanted, quiet=json)
        evaluation = save(evaluation, out or new_run_folder(evaluation, datetime.now(UTC)))
    verdict = gate(evaluation, policy, baseline=before)
    if evaluation.cached:
        notes.append(f"answers from the cache, recorded at {evaluation.setup.recorded_at}; --no-cache asks again")
    verdict = with_checks(verdict, extra, notes=notes)
    if writers:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        told = report_on(evaluation, made_at=now, baseline=before, verdict=verdict)
    for path, write in writers.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write(told), encoding="utf-8")
    kept = result.add(place, evaluation, verdict)
    if json:
        show.as_json(record(verdict, evaluation, before, list(writers)) | {"stored": kept.run_id})
    else:
        print_verdict(verdict, evaluation, before, verbose=verbose)
        if kept.run_id is not None:
            print(f"stored: {kept.run_id}")
    kept.tell()
    if verdict.exit_code:
        raise typer.Exit(verdict.exit_code)


def _given(context: typer.Context, name: str) -> bool:
    """True for an option on the command line or in the environment; what a settings file says is a habit, not a request."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


# ── what is evaluated, and whether a run that was made before is still of it──────────────────────────────────


def committed(evaluation: Evaluation, asked: Asked) -> tuple[list[Check], list[str]]:
    """Return what speaks against judging a run that was made earlier, and what could not be checked."""
    from ringtrue.cli.search import opened
    from ringtrue.golden import load
    from ringtrue.run.named import subjects_named
    from ringtrue.verdict.committed import committed_checks

    folder, search = asked.folder, None
    if asked.names_search:
        search = subjects_named(
            asked.search(),
            golden=asked.golden,
            collection=None if folder is None else lambda: opened(folder),
            chunks=asked.chunk,
            route_by=asked.route_by,
            version=asked.version,
            watch=asked.watch or (),
        )
    golden = load(asked.golden) if asked.golden else None
    return committed_checks(evaluation, search=search, golden=golden, place=asked.golden or "")


# ── what is shown ───────────────────────────────────────────────────────────────────────────────────────────────────


def record(verdict: Verdict, evaluation: Evaluation, baseline: Baseline | None, reports: Sequence[Path]) -> dict[str, Any]:
    """Return a verdict under the stable keys of ``--json``."""
    return {
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        **show.pick(verdict, "failures", "checks", "name", "mode", "notes"),
        "baseline": None if baseline is None else show.pick(baseline, "version", "recorded_at", "retriever"),
        **show.pick(evaluation, "run_dir", "cached"),
        "golden": evaluation.setup.golden.version,
        "reports": reports,
    }


def print_verdict(verdict: Verdict, evaluation: Evaluation, baseline: Baseline | None, *, verbose: bool = False) -> None:
    """Print the verdict, the checks that decide it, and whatever did not pass with the queries behind it."""
    from ringtrue.report.story import counted

    for line in headline(verdict, evaluation):
        print(line)
    shown = verdict.checks if verbose else tuple(check for check in verdict.checks if _matters(check))
    rows = _rows(shown, evaluation, baseline)
    if rows:
        print()
        show.table(["measure", "baseline", "current", "Δ", "limit", "interval", "status"], rows, text_columns=1)
    for line in reasons(verdict, evaluation, baseline, queries=None if verbose else QUERIES, verbose=verbose):
        print(line)
    hidden = len(verdict.checks) - len(shown)
    if hidden:
        print(f"\n{counted(hidden, 'informational check')} not shown: --verbose shows {'it' if hidden == 1 else 'them'}")
    if evaluation.run_dir is not None:
        print(f"\nrun: {evaluation.run_dir}")
    for text in verdict.notes:
        show.note(text)


def _matters(check: Check) -> bool:
    """True for a check that decides, and for an advisory one that is over its limit."""
    return check.status != "advisory" or (
        check.rule in ("latency", "latency increase") and check.threshold is not None and check.current > check.threshold
    )


def headline(verdict: Verdict, evaluation: Evaluation) -> list[str]:
    """Return the verdict in two lines: which checks failed, and what was judged."""
    from ringtrue.report.story import judged

    return [judged(verdict), f"{verdict.name} on {evaluation.setup.golden.version}, mode {verdict.mode}"]


def reasons(
    verdict: Verdict,
    evaluation: Evaluation,
    baseline: Baseline | None,
    *,
    queries: int | None = None,
    verbose: bool = False,
) -> Iterator[str]:
    """Yield lines that tell what did not pass, each with the queries behind it (at most ``queries``), the guiltiest first."""
    from ringtrue.report.story import beside_id

    texts = {query.query_id: query.text for query in evaluation.queries}
    titles: tuple[tuple[CheckStatus, str], ...] = (
        ("fail", "failed"), ("undecided", "could not be decided"), ("degraded", "worse, but allowed"), ("advisory", "advisory"),
    )  # fmt: skip
    for status, title in titles:
        found = [check for check in verdict.of_status(status) if verbose or _matters(check)]
        if found:
            yield f"\n{title}:"
        for check in found:
            yield f"  {check.message}"
            if status in ("degraded", "advisory"):
                continue
            for query in check.queries[:queries]:
                moved = _moved(check, query, evaluation, baseline)
                yield "    " + "  ".join(filter(None, (query, moved, beside_id(query, texts.get(query, "")))))
            if queries is not None and len(check.queries) > queries:
                yield "    …"


def _rows(checks: Iterable[Check], evaluation: Evaluation, baseline: Baseline | None) -> list[list[str]]:
    """Return a row per measure and slice: its numbers, what it must keep to, and the status that matters most."""
    from ringtrue.report.story import BY_WEIGHT
    from ringtrue.verdict.wording import upside

    groups: dict[tuple[str, str | None], list[Check]] = {}
    for check in checks:
        if check.rule != "completeness":
            groups.setdefault((check.measure, check.slice), []).append(check)
    rows = []
    for (measure, slice_), found in groups.items():
        back = next((check for check in found if check.baseline is not None), None)
        shown = back or found[0]
        timed = shown.rule in ("latency", "latency increase")
        digits = 1 if timed else 4
        ends = "—"
        if back is not None and back.interval is not None:
            ends = f"{back.interval[0]:+.{digits}f} to {back.interval[1]:+.{digits}f}"
        before = shown.baseline
        if before is None and slice_ is None and baseline is not None:
            before = _recorded(baseline, measure, evaluation, timed=timed)
        rows.append(
            [
                (f"{measure} (ms)" if timed else measure) + (f" of {slice_}" if slice_ is not None else ""),
                show.number(before, digits),
                show.number(shown.current, digits),
                show.signed(None if before is None else shown.current - before, digits),
                _limit(found, lower=timed or upside(measure) < 0, digits=digits),
                ends,
                min((check.status for check in found), key=BY_WEIGHT.index).upper(),
            ]
        )
    return rows


def _recorded(baseline: Baseline, measure: str, evaluation: Evaluation, *, timed: bool) -> float | None:
    """Return what the baseline says about a measure that has no rule of falling; None if it is of another set."""
    made, now = baseline.golden.content_hash, evaluation.setup.golden.content_hash
    if (made and made != now) or (baseline.per_query and set(baseline.per_query) != set(evaluation.scores.query_ids)):
        return None
    return (baseline.latency if timed else baseline.metrics).get(measure)


def _limit(checks: Iterable[Check], *, lower: bool, digits: int) -> str:
    """Return what a measure must keep to, the strictest of its rules; those that are for reading only do not count."""
    limits = [check.threshold for check in checks if check.threshold is not None and check.status != "advisory"]
    if not limits:
        return "—"
    return f"≤ {min(limits):.{digits}f}" if lower else f"≥ {max(limits):.{digits}f}"


def _moved(check: Check, query: str, evaluation: Evaluation, baseline: Baseline | None) -> str:
    """Return what happened to a query: its value, and the one it had where the check looks back."""
    then: Mapping[str, float | None] = {}
    now: Mapping[str, float | None] = evaluation.latencies
    timed = check.measure in ("p50", "p95", "p99")
    if baseline is not None:
        table = baseline.per_query.items()
        then = baseline.latencies if timed else {key: row.get(check.measure) for key, row in table}
    if not timed:
        now = {key: row.get(check.measure) for key, row in evaluation.scores.per_query.items()}
    digits = 1 if timed else 4
    current = show.number(now.get(query), digits)
    if current == "—":
        return ""
    return f"{show.number(then.get(query), digits)} → {current}" if check.baseline is not None else current
