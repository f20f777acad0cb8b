"""``ringtrue gate``: is a search still good enough to ship."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.brief import counted
from ringtrue.cli import lib, show
from ringtrue.cli.eval import Asked, ResultOptions, evaluated, settled
from ringtrue.cli.options import BASELINE, BaselineFile, Json, command_group, utc_now
from ringtrue.cli.search import opened
from ringtrue.config import load_config
from ringtrue.errors import OK, REGRESSION, InputError
from ringtrue.traffic import marked

if TYPE_CHECKING:
    from ringtrue.config import Config
    from ringtrue.verdict.records import CheckStatus


@dataclass(frozen=True)
class PolicyOptions:
    """The rules that an option may set in place of ``[gate]``."""

    require_baseline: Annotated[
        bool | None,
        typer.Option(
            "--require-baseline/--no-baseline",
            help="Without a baseline: stay undecided, or decide by floors and ceilings alone.",
        ),
    ] = None
    mode: Annotated[str | None, typer.Option(help="relative (fail on any drop beyond --max-drop) or statistical.")] = None
    floor: Annotated[list[str] | None, typer.Option(help="A floor to add or change, R@5=0.8, or to remove, R@5=off.")] = None
    max_drop: Annotated[float | None, typer.Option(help="Largest relative drop allowed (relative mode); 0.05 is 5 %.")] = None
    drop_measures: Annotated[
        list[str] | None, typer.Option("--drop-measure", help="A measure to compare with the baseline.")
    ] = None
    min_effect: Annotated[float | None, typer.Option(help="Ignore drops smaller than this (statistical mode).")] = None
    alpha: Annotated[float | None, typer.Option(help="Significance level: the chance of a false alarm (statistical mode).")] = (
        None
    )
    latency_increase: Annotated[
        float | None, typer.Option(help="Largest relative increase of the p95 latency; inf turns the rule off.")
    ] = None
    latency_slack: Annotated[
        float | None, typer.Option(help="Increase of the p95 latency that is always allowed, in milliseconds.")
    ] = None
    slice_drop: Annotated[
        bool | None, typer.Option("--slice-drop/--no-slice-drop", help="Compare every slice with the baseline, too.")
    ] = None
    minimum_queries: Annotated[
        int | None, typer.Option(help="Minimum number of scored queries; with fewer, the gate is undecided.")
    ] = None
    slice_minimum: Annotated[int | None, typer.Option(help="Minimum number of queries for a slice to be compared.")] = None
    same_corpus: Annotated[
        bool | None, typer.Option("--same-corpus/--any-corpus", help="Whether to require the documents of the baseline.")
    ] = None

    def policy(self) -> lib.verdict.Policy:
        """Return the policy of ringtrue.toml with the given options in place of its settings; raises InputError."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "floor"}
        changed = {name: value for name, value in given.items() if value not in (None, [])}
        return lib.verdict.Policy.configured(load_config()).with_floors(self.floor or (), **changed)


def gate_command(
    *,
    context: typer.Context,
    run: Annotated[Path | None, typer.Option(help="Judge this run, a folder or a name, instead of evaluating.")] = None,
    asked: Asked,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder to write; .ringtrue/runs/… unless given.")] = None,
    baseline: BaselineFile = BASELINE,
    rules: PolicyOptions,
    report: Annotated[list[Path] | None, typer.Option(help="Write a report: .md .html .json .xml (JUnit) .sarif.")] = None,
    result: ResultOptions,
    verbose: Annotated[bool, typer.Option("--verbose", help="Also show informational checks and all failed queries.")] = False,
    json: Json = False,
) -> None:
    """Check a search against floors and its baseline, for CI. Never changes the baseline.

    Exit code 0: pass; 1: a check failed; 2: usage or bad input; 3: could not decide. The policy stands under [gate] in
    ringtrue.toml; what is evaluated is taken from [eval] there, unless it is given here. A run (--run) that is not of this
    search, these documents and this golden set proves nothing about them: exit code 3. The verdict goes to the store where
    there is one.

    Example: ringtrue gate --golden hotel --retriever hybrid
    Example: ringtrue gate --run runs/today --mode statistical --floor 'R@5=0.85' --report gate.md --report junit.xml
    Example: ringtrue gate --run runs/committed --retriever "connect('shop')" --watch 'search/*.py'
    """

    policy = rules.policy()
    writers = {path: lib.report.report_writer(path) for path in report or ()}  # a wrong ending fails before hours of evaluating
    without = rules.require_baseline is False and _given(context, "require_baseline")
    before = None if without else lib.verdict.find_baseline(baseline, named=_given(context, "baseline"))
    asked = settled(asked, context)
    place = result.destination()
    extra: list[lib.verdict.Check] = []
    notes: list[str] = []
    if run is not None:
        evaluation = lib.run.open_run(run)
        extra, notes = committed(evaluation, asked)
    else:
        wanted = tuple(dict.fromkeys((*lib.run.usual_measures(asked.k), *policy.measures)))
        with marked("gate"):
            evaluation = evaluated(asked, measures=wanted, quiet=json)
        evaluation = lib.run.save(evaluation, out or lib.run.new_run_folder(evaluation, utc_now()))
    verdict = lib.verdict.gate(evaluation, policy, baseline=before)
    if evaluation.cached:
        notes.append(f"answers from the cache, recorded at {evaluation.setup.recorded_at}; --no-cache asks again")
    verdict = lib.verdict.with_checks(verdict, extra, notes=notes)
    if writers:
        now = utc_now().isoformat(timespec="seconds")
        told = lib.report.report_on(evaluation, made_at=now, baseline=before, verdict=verdict)
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
    show.end_with(verdict.exit_code)


def _given(context: typer.Context, name: str) -> bool:
    """True for an option on the command line or in the environment; what a settings file says is a habit, not a request."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def committed(evaluation: lib.run.Evaluation, asked: Asked) -> tuple[list[lib.verdict.Check], list[str]]:
    """Return what speaks against judging a run that was made earlier, and what could not be checked."""
    folder, search = asked.folder, None
    if asked.names_search:
        search = lib.run.subjects_named(
            asked.search(),
            golden=asked.golden,
            collection=None if folder is None else lambda: opened(folder),
            chunks=asked.chunk,
            route_by=asked.route_by,
            version=asked.version,
            watch=asked.watch or (),
        )
    golden = lib.golden.load(asked.golden) if asked.golden else None
    return lib.verdict.committed_checks(evaluation, search=search, golden=golden, place=asked.golden or "")


QUERIES = 3
"""Queries that are named behind each failure, unless all are asked for; reports name more."""


def record(
    verdict: lib.verdict.Verdict, evaluation: lib.run.Evaluation, baseline: lib.verdict.Baseline | None, reports: Sequence[Path]
) -> dict[str, Any]:
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


def print_verdict(
    verdict: lib.verdict.Verdict,
    evaluation: lib.run.Evaluation,
    baseline: lib.verdict.Baseline | None,
    *,
    verbose: bool = False,
) -> None:
    """Print the verdict, the checks that decide it, and whatever did not pass with the queries behind it."""
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
        them = "it" if hidden == 1 else "them"
        print(f"\n{counted(hidden, 'informational check')} not shown: --verbose shows {them}")
    if evaluation.run_dir is not None:
        print(f"\nrun: {evaluation.run_dir}")
    show.notes(verdict.notes)


def _matters(check: lib.verdict.Check) -> bool:
    """True for a check that decides, and for an advisory one that is over its limit."""
    return check.status != "advisory" or (
        check.rule in ("latency", "latency increase") and check.threshold is not None and check.current > check.threshold
    )


def headline(verdict: lib.verdict.Verdict, evaluation: lib.run.Evaluation) -> list[str]:
    """Return the verdict in two lines: which checks failed, and what was judged."""
    return [lib.report.judged(verdict), f"{verdict.name} on {evaluation.setup.golden.version}, mode {verdict.mode}"]


def reasons(
    verdict: lib.verdict.Verdict,
    evaluation: lib.run.Evaluation,
    baseline: lib.verdict.Baseline | None,
    *,
    queries: int | None = None,
    verbose: bool = False,
) -> Iterator[str]:
    """Yield lines that tell what did not pass, each with the queries behind it (at most ``queries``), the guiltiest first."""
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
                yield "    " + "  ".join(filter(None, (query, moved, lib.report.beside_id(query, texts.get(query, "")))))
            if queries is not None and len(check.queries) > queries:
                yield "    …"


def _rows(
    checks: Iterable[lib.verdict.Check], evaluation: lib.run.Evaluation, baseline: lib.verdict.Baseline | None
) -> list[list[str]]:
    """Return a row per measure and slice: its numbers, what it must keep to, and the status that matters most."""
    groups: dict[tuple[str, str | None], list[lib.verdict.Check]] = {}
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
                _limit(found, lower=timed or lib.verdict.upside(measure) < 0, digits=digits),
                ends,
                min((check.status for check in found), key=lib.report.BY_WEIGHT.index).upper(),
            ]
        )
    return rows


def _recorded(baseline: lib.verdict.Baseline, measure: str, evaluation: lib.run.Evaluation, *, timed: bool) -> float | None:
    """Return what the baseline says about a measure that has no rule of falling; None if it is of another set."""
    made, now = baseline.golden.content_hash, evaluation.setup.golden.content_hash
    if (made and made != now) or (baseline.per_query and set(baseline.per_query) != set(evaluation.scores.query_ids)):
        return None
    return (baseline.latency if timed else baseline.metrics).get(measure)


def _limit(checks: Iterable[lib.verdict.Check], *, lower: bool, digits: int) -> str:
    """Return what a measure must keep to, the strictest of its rules; those that are for reading only do not count."""
    limits = [check.threshold for check in checks if check.threshold is not None and check.status != "advisory"]
    if not limits:
        return "—"
    return f"≤ {min(limits):.{digits}f}" if lower else f"≥ {max(limits):.{digits}f}"


def _moved(check: lib.verdict.Check, query: str, evaluation: lib.run.Evaluation, baseline: lib.verdict.Baseline | None) -> str:
    """Return what happened to a query: its value, and the one it had if the check looks back."""
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


app = command_group("Show or update the baseline file that gates compare with.")


@app.command("show")
def show_baseline(baseline: BaselineFile = BASELINE, json: Json = False) -> None:
    """Show what the baseline holds: version, retriever, golden set, measures, latency.

    Example: ringtrue baseline show
    """
    found = lib.verdict.read_baseline(baseline)
    more = {"latency_ms": found.latency, "queries": len(found.per_query)}
    made = show.pick(found, "version", "reason", "retriever", "config", "fingerprint", "golden", "corpus", "recorded_at")
    show.end_if_json(json, {"file": baseline, **made, **show.pick(found, "machine", "metrics"), **more})
    print(f"baseline {found.version} ({baseline})")
    facts = {
        "recorded": found.recorded_at,
        "retriever": found.retriever,
        **{name: value if isinstance(value, str) else json_text.dumps(value) for name, value in found.config.items() if value},
        "golden set": found.golden.version + (f", {found.golden.split} queries" if found.golden.split != "all" else ""),
        "queries": str(len(found.per_query)) if found.per_query else "no scores per query: mode statistical needs them",
        "machine": found.machine,
        "reason": found.reason,
    }
    for name, value in facts.items():
        if value:
            print(f"  {name}: {value}")
    print()
    rows = [[name, value] for name, value in found.metrics.items()]
    rows += [[f"{name} (ms)", show.number(value, 1)] for name, value in found.latency.items()]
    show.table(["measure", "value"], rows)


@app.command()
def update(
    run: Annotated[Path | None, typer.Option(help="The run, a folder or name; default: newest in .ringtrue/runs.")] = None,
    baseline: BaselineFile = BASELINE,
    force: Annotated[bool, typer.Option("--force", help="Accept a worse run; needs --reason.")] = False,
    reason: Annotated[str, typer.Option(help="Why the worse run is accepted; kept in the file.")] = "",
    version: Annotated[
        str | None, typer.Option(help="The new version; default: next minor, or patch if nothing moved.")
    ] = None,
    json: Json = False,
) -> None:
    """Take a run as the new standard, after showing what moves. A worse run is refused (exit 1) without --force --reason.

    Example: ringtrue baseline update --run runs/today
    Example: ringtrue baseline update --run runs/today --force --reason "smaller model, half the cost"
    """
    if force and not reason.strip():
        raise InputError('--force needs a reason that others can read later; add --reason "…"')
    config = load_config()
    policy = lib.verdict.Policy.configured(config)
    folder = run or lib.run.newest_run()
    evaluation = lib.run.open_run(folder)
    if run is None:
        _check_golden(evaluation, config)
    whole, _ = lib.verdict.with_measures(evaluation, policy.measures)
    old = lib.verdict.read_baseline(baseline) if baseline.is_file() else None
    taken = lib.verdict.baseline_of(whole)
    moves = lib.verdict.movements(old, taken)
    note = "" if old is None else lib.verdict.pairing_note(old, taken)
    against = lib.verdict.objections(evaluation, old, policy)
    accepted = force or not against
    new = old.version if old is not None else None
    if accepted:
        new = version or ("1.0.0" if old is None else lib.verdict.next_version(old.version, moved=lib.verdict.has_moved(moves)))
        lib.verdict.write_baseline(lib.verdict.baseline_of(whole, version=new, reason=reason.strip()), baseline)
    previous = None if old is None else old.version
    if json:
        record = {"updated": accepted, "file": baseline, "run_dir": folder, "version": new, "previous": previous}
        show.as_json({**record, "objections": list(against), "notes": [note] if note else [], "measures": moves})
    else:
        if accepted:
            before = "recorded" if previous is None else f"{previous} →"
            print(f"{baseline}: baseline {before} {new}, from {folder}")
        else:
            than = "" if previous is None else f" than baseline {previous}"
            print(f"REFUSED: {folder} is no better standard{than}; {baseline} stays as it is")
        _print_update(moves, against, accepted=accepted)
        show.notes(filter(None, [note]))
    show.end_with(REGRESSION if not accepted else OK)


def _check_golden(evaluation: lib.run.Evaluation, config: Config) -> None:
    """Refuse a run that nobody named if it measured another golden set than ``[eval]`` names."""
    wanted = config.commands.get("eval", {}).get("golden")
    options = evaluation.setup.arguments
    measured = options[options.index("--golden") + 1] if "--golden" in options else wanted
    if wanted and measured and Path(wanted).resolve() != Path(measured).resolve():
        raise InputError(
            f"the newest run, {evaluation.run_dir}, measured {measured}, but [eval] golden in {config.file} is {wanted}; "
            f"evaluate that first, or name the run: --run {evaluation.run_dir}"
        )


def _print_update(moves: Mapping[str, lib.answers.Movement], against: Sequence[str], *, accepted: bool) -> None:
    rows = []
    for name, move in moves.items():
        digits = 1 if name in ("p50", "p95", "p99") else 4
        values = [show.number(value, digits) for value in (move.old, move.new)]
        rows.append([name, *values, show.signed(move.diff, digits)])
    print()
    show.table(["measure", "old", "new", "Δ"], rows)
    if against:
        print("\naccepted in spite of:" if accepted else "\nagainst it:")
        for text in against:
            print(f"  {text}")
    if not accepted:
        print('\nTo take it all the same: add --force --reason "…". The reason stays in the file.')
