"""``ringtrue ci``: the whole job of a pipeline in one command, for GitHub, GitLab and any other (B-4)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import eval as options
from ringtrue.cli.gate import committed
from ringtrue.errors import OK, UNDECIDED, InputError, RingtrueError

if TYPE_CHECKING:
    from ringtrue.ci import Side
    from ringtrue.run import Evaluation
    from ringtrue.verdict import Baseline, Check, Policy

OUT = Path("ringtrue-out")
REPORT, SARIF = "report.md", "ringtrue.sarif"


@dataclass(frozen=True)
class Outcome:
    """What the job comes to: the gate's word and exit code, the files it wrote, and the text of the comment."""

    word: str
    code: int
    comment: str
    files: tuple[Path, ...] = ()
    run: Path | None = None
    reasons: tuple[str, ...] = ()
    """Why it is no pass, one sentence each."""
    failures: tuple[Check, ...] = ()
    lines: tuple[str, ...] = ()
    """What a person reads in the job's log."""
    notes: tuple[str, ...] = ()


def ci_command(
    context: typer.Context,
    golden: options.Golden = None,
    retriever: options.RetrieverText = None,
    python: options.Python = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Judge this committed run: for a search that CI cannot reach.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", "-b", help="The baseline's file; ringtrue-baseline.json unless given.")
    ] = None,
    base_ref: Annotated[
        str | None, typer.Option("--base-ref", help="Evaluate this commit, too, and compare with it instead of a baseline.")
    ] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="relative or statistical; [gate] says more.")] = None,
    setup: Annotated[
        str, typer.Option("--setup", help="Shell command before each evaluation: 'pip install -e . && make index'.")
    ] = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for runs and reports.")] = OUT,
    comment: Annotated[bool, typer.Option("--comment/--no-comment", help="Keep a comment on the pull request.")] = True,
    key: Annotated[str, typer.Option("--key", help="Tells the comments of several gates on one pull request apart.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the gate in CI, with reports and a pull-request comment. Ends with the exit code of the gate.

    Everything comes from [eval], [gate] and [ci] in ringtrue.toml, unless it is given here. A comment that cannot be posted is
    said, and never changes the exit code.

    \b
    Example: ringtrue ci
    Example: ringtrue ci --base-ref origin/main --setup 'pip install -e .'
    Example: ringtrue ci --run runs/committed --retriever "connect('shop')"
    """
    from ringtrue.cli import show

    if base_ref and baseline is not None:
        raise InputError("--base-ref and --baseline both say what to compare with; give one of them")
    if base_ref and run is not None:
        raise InputError("--run is judged as it was committed; --base-ref needs a search that can be evaluated here")
    named = options.Asked(golden, retriever, python)
    out.mkdir(parents=True, exist_ok=True)
    crash: Exception | None = None
    try:
        asked = options.settled(named, context)
        given = _flags(named, asked)
        outcome = _judged(asked, given, run=run, baseline=baseline, base_ref=base_ref, mode=mode, setup=setup, out=out, key=key)
    except Exception as problem:
        # Whoever reads the pull request must not find the verdict of the last change there, whatever happened here.
        foreseen = isinstance(problem, RingtrueError)
        reason = str(problem) if foreseen else f"internal error: {type(problem).__name__}: {problem}"
        outcome = _without(problem.exit_code if isinstance(problem, RingtrueError) else UNDECIDED, reason, key)
        crash = None if foreseen else problem
    notes = [*outcome.notes, *_handed_out(outcome, out), *(_commented(outcome.comment, key) if comment else [])]
    if json:
        show.as_json(
            {
                "verdict": outcome.word,
                "exit_code": outcome.code,
                "reason": "; ".join(outcome.reasons),
                "reasons": outcome.reasons,
                "failures": outcome.failures,
                "run_dir": outcome.run,
                "files": outcome.files,
                "notes": notes,
            }
        )
    else:
        for line in outcome.lines:
            print(line)
        print()
        for file in outcome.files:
            print(f"wrote {file}")
        for text in notes:
            show.note(text)
    if crash is not None:
        raise crash
    if outcome.code != OK:
        raise typer.Exit(outcome.code)


def _flags(named: options.Asked, asked: options.Asked) -> list[str]:
    """Return what this command says itself as options of ``ringtrue eval``; the rest each side reads where it is evaluated."""
    given: list[str] = []
    if named.golden and named.golden == asked.golden:
        given += ["--golden", named.golden]
    # The search that is not meant is named, too, as nothing: each side's own settings may have it.
    if named.retriever and named.retriever == asked.retriever:
        given += ["--retriever", named.retriever, *([] if asked.python else ["--python", ""])]
    if named.python and named.python == asked.python:
        given += ["--python", named.python, *([] if asked.retriever else ["--retriever", ""])]
    return given


def _judged(
    asked: options.Asked,
    given: Sequence[str],
    *,
    run: Path | None,
    baseline: Path | None,
    base_ref: str | None,
    mode: str | None,
    setup: str,
    out: Path,
    key: str,
) -> Outcome:
    """Evaluate what has to be, gate it and write the reports; raises RingtrueError where there is no verdict."""
    from ringtrue.cli.gate import BASELINE, QUERIES, chosen_policy, headline, reasons, standard
    from ringtrue.config import load_config
    from ringtrue.report import report_on
    from ringtrue.run import open_run
    from ringtrue.verdict import Policy, gate, read_baseline, with_checks

    config = load_config()
    policy = chosen_policy(Policy.of(config.gate, place=config.file or "gate"), {"mode": mode}, ())
    place, before = baseline or BASELINE, None
    if not base_ref:  # a baseline that cannot be read is told before anything is evaluated
        before = standard(place, named=baseline is not None, read=read_baseline)
    extra: list[Check] = []
    notes: list[str] = []
    if run is not None:
        evaluation = open_run(run)
        extra, notes = committed(evaluation, asked)
    else:
        side = _evaluated(Path(), out / "head", given, policy, setup)
        if side.run is None:
            return _without(side.code, side.reason, key)
        evaluation = open_run(side.run)
    if base_ref:
        before = _base(base_ref, asked, given, policy, setup=setup, out=out)
    verdict = with_checks(gate(evaluation, policy, baseline=before), extra, notes=notes)
    report = report_on(evaluation, made_at=datetime.now(UTC).isoformat(timespec="seconds"), baseline=before, verdict=verdict)
    against = [check for status in ("fail", "undecided") for check in verdict.checks if check.status == status]
    return replace(
        _written(report, verdict.word, verdict.exit_code, evaluation, out=out, key=key),
        reasons=tuple(check.message for check in against),
        failures=verdict.failures,
        lines=(*headline(verdict, evaluation), *reasons(verdict, evaluation, before, queries=QUERIES)),
        notes=verdict.notes,
    )


def _evaluated(folder: Path, out: Path, given: Sequence[str], policy: Policy, setup: str) -> Side:
    from ringtrue.ci import evaluate_in
    from ringtrue.config import environment_without_tokens
    from ringtrue.run import DEFAULT_MEASURES

    measures = [part for name in dict.fromkeys((*DEFAULT_MEASURES, *policy.measures)) for part in ("--measure", name)]
    say = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    return evaluate_in(folder, out, options=[*given, *measures], setup=setup, environment=environment_without_tokens(), say=say)


def _base(ref: str, asked: options.Asked, given: Sequence[str], policy: Policy, *, setup: str, out: Path) -> Baseline:
    """Return the commit that a change builds on as a baseline: measured here and now, so that latencies compare, too."""
    from ringtrue.ci import checkout
    from ringtrue.errors import CannotDecide
    from ringtrue.run import open_run
    from ringtrue.verdict import baseline_of
    from ringtrue.verdict.reachable import with_measures

    golden = asked.golden
    # Both sides answer the questions of the change: otherwise a new query would look like a difference between searches.
    same = [*given, "--golden", str(Path(golden).resolve())] if golden and Path(golden).exists() else list(given)
    with checkout(ref, say=lambda line: print(line, file=sys.stderr)) as (folder, commit):
        side = _evaluated(folder, out / "base", same, policy, setup)
    if side.run is None:
        raise CannotDecide(f"the base {ref} ({commit}) could not be evaluated: {side.reason}")
    whole, _ = with_measures(open_run(side.run), policy.measures)
    return replace(baseline_of(whole), version=f"of {ref} ({commit})" if ref != commit else commit)


def _written(report: Any, word: str, code: int, evaluation: Evaluation, *, out: Path, key: str) -> Outcome:
    """Write a report in every format, and return what the job comes to."""
    from ringtrue.report import as_json, html, junit, markdown, pull_request, sarif

    texts = {
        "comment.md": pull_request(report, key=key),
        REPORT: markdown(report),
        "report.html": html(report),
        "report.json": as_json(report),
        "junit.xml": junit(report),
        SARIF: sarif(report),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return Outcome(word, code, texts["comment.md"], tuple(out / name for name in texts), evaluation.run_dir)


def _without(code: int, reason: str, key: str) -> Outcome:
    """Return the outcome of a job that came to no verdict."""
    from ringtrue.report import marker

    word = "undecided" if code == UNDECIDED else "error"
    title = "❔ Ringtrue could not decide" if word == "undecided" else "❌ Ringtrue could not run"
    return Outcome(
        word,
        code,
        f"{marker(key)}\n### {title}\n\n```\n{reason.replace('```', '')}\n```\n",
        reasons=(reason,),
        lines=(f"{word.upper()}: {reason}",),
    )


def _handed_out(outcome: Outcome, out: Path) -> list[str]:
    """Hand the results to the pipeline; returns what could not be."""
    from ringtrue.ci import add_outputs, add_summary
    from ringtrue.config import github

    if not outcome.files:
        (out / "comment.md").write_text(outcome.comment, encoding="utf-8")
    here = github()
    try:
        if here.summary is not None:
            add_summary(outcome.comment, here.summary)
        if here.output is not None:
            paths = {name: next((str(file) for file in outcome.files if file.name == name), "") for name in (REPORT, SARIF)}
            values = {"verdict": outcome.word, "exit-code": outcome.code, "report": paths[REPORT], "sarif": paths[SARIF]}
            add_outputs(values, here.output)
    except OSError as problem:
        return [f"the step summary or the outputs could not be written: {problem}"]
    return []


def _commented(text: str, key: str) -> list[str]:
    """Keep the comment up to date; returns what there is to say about it. Nothing here changes the verdict."""
    from ringtrue.cli.comment import posted_comment

    try:
        posted = posted_comment(text, key=key)
    except RingtrueError as problem:
        return [f"no comment: {problem}"]
    except Exception as problem:  # whatever a forge answers, the gate's exit code is the gate's
        return [f"no comment: {type(problem).__name__}: {problem}"]
    if posted is None:
        return ["no comment: there is no pull request here"]
    return [posted.detail if posted.what == "refused" else f"comment {posted.what}" + (f": {posted.url}" if posted.url else "")]
