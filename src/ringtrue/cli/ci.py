"""``ringtrue ci``: the whole job of a pipeline in one command, for GitHub, GitLab and any other."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.eval import Asked, Named, settled
from ringtrue.cli.gate import PolicyOptions, committed, is_given
from ringtrue.cli.options import BASELINE, Json, utc_now
from ringtrue.config import environment_without_tokens, load_config, pipeline, secret
from ringtrue.errors import OK, UNDECIDED, CannotDecide, InputError, MissingInput, RingtrueError, check_choice

OUT = Path("ringtrue-out")
Ready = Annotated[
    str, typer.Option(help="URL or command that succeeds once it is ready; default: its port accepts connections.")
]
Shared = Annotated[bool, typer.Option("--shared", help="With --base-ref: allow both sides to use the same running system.")]
Comment = Annotated[
    bool,
    typer.Option("--comment/--no-comment", help="Post the report as a comment on the pull request, and keep it up to date."),
]
REPORT, SARIF = "report.md", "ringtrue.sarif"
SAME_ANSWERS = (
    "both sides gave the same answers; if this change should move the ranking, check that each side runs its own code "
    "(setup and serve under [ci])"
)


@dataclass(frozen=True)
class Outcome:
    """What the job comes to: the gate's word and exit code, the files it wrote, and the text of the comment."""

    word: str
    code: int
    comment: str
    files: tuple[Path, ...] = ()
    run: Path | None = None
    reasons: tuple[str, ...] = ()
    """Why it is not a pass, one sentence each."""
    failures: tuple[lib.verdict.Check, ...] = ()
    lines: tuple[str, ...] = ()
    """What a person reads in the job's log."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CiJob:
    """One side of a job: what is evaluated, how it is started and how it is judged."""

    context: typer.Context
    named: Named
    """What this command names itself, before the settings."""
    asked: Asked
    policy: lib.verdict.Policy
    out: Path
    key: str
    setup: str
    service: lib.ci.ServiceCommands | None
    shared: bool


def ci_command(
    *,
    context: typer.Context,
    named: Named,
    run: Annotated[Path | None, typer.Option(help="Judge this committed run, if CI cannot reach the search.")] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", "-b", help="Default: ringtrue-baseline.json.")] = None,
    base_ref: Annotated[str | None, typer.Option(help="Compare with this commit instead of a baseline.")] = None,
    mode: Annotated[str | None, typer.Option(help="relative or statistical; default: mode under [gate].")] = None,
    setup: Annotated[str, typer.Option(help="Shell command before each evaluation: 'pip install -e . && make index'.")] = "",
    serve: Annotated[str, typer.Option(help="Shell command that starts the search service: 'python app.py {port}'.")] = "",
    ready: Ready = "",
    stop: Annotated[str, typer.Option(help="Shell command that stops the service; SIGTERM follows.")] = "",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port of the service; default: a free one.")] = None,
    ready_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait until the service is ready.")] = 60.0,
    shared: Shared = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for runs and reports.")] = OUT,
    comment: Comment = True,
    extras: Annotated[bool, typer.Option("--extras", help="Only print the extras that this search needs.")] = False,
    key: Annotated[str, typer.Option(help="Name of this gate, if a pull request has several.")] = "",
    json: Json = False,
) -> None:
    """Run the gate in CI, with reports and a pull-request comment. Returns the exit code of the gate.

    Settings come from [eval], [gate] and [ci] in ringtrue.toml; options override them. With --serve, each side runs its own
    search service, from its own checkout and on its own port: write {port} in these commands and in the connection's url. If
    the comment cannot be posted, the output says so; the exit code does not change.

    Example: ringtrue ci
    Example: ringtrue ci --base-ref origin/main --setup 'pip install -e .'
    Example: ringtrue ci --base-ref origin/main --serve 'python app.py {port}'
    Example: ringtrue ci --run runs/committed --retriever "connect('shop')"
    """
    if base_ref and baseline is not None:
        raise InputError("--base-ref and --baseline both say what to compare with; give one of them")
    if base_ref and run is not None:
        raise InputError("--run is judged as it was committed; --base-ref needs a search that can be evaluated here")
    if extras:
        print(",".join(_extras(settled(named, context), setup)))
        return
    out.mkdir(parents=True, exist_ok=True)
    crash: Exception | None = None
    try:
        asked = settled(named, context)
        service = lib.ci.ServiceCommands(serve, ready, stop, port, ready_timeout) if serve else None
        job = CiJob(context, named, asked, PolicyOptions(mode=mode).policy(), out, key, setup, service, shared)
        outcome = _judged(job, run=run, baseline=baseline, base_ref=base_ref)
    except RingtrueError as problem:
        outcome = _without(problem.exit_code, str(problem), key)
    except Exception as problem:
        # Whoever reads the pull request must not find the verdict of the last change there, whatever happened here.
        outcome, crash = _without(UNDECIDED, f"internal error: {type(problem).__name__}: {problem}", key), problem
    notes = [*outcome.notes, *_handed_out(outcome, out), *(_commented(outcome.comment, key) if comment else [])]
    record = {"verdict": outcome.word, "exit_code": outcome.code, "reason": "; ".join(outcome.reasons), "notes": notes}
    record |= {"run_dir": outcome.run, **show.pick(outcome, "reasons", "failures", "files")}
    wrote = (f"wrote {file}" for file in outcome.files)
    show.result(
        json, record, *outcome.lines, "\n" * bool(outcome.files), *wrote, notes=notes, code=OK if crash else outcome.code
    )
    if crash is not None:
        raise crash


def _flags(job: CiJob) -> list[str]:
    """Return what this command says itself as options of ``ringtrue eval``; the rest each side reads where it is evaluated."""
    given: list[str] = []
    named, asked = job.named, job.asked
    if named.golden and named.golden == asked.golden:
        given += ["--golden", named.golden]
    # The search that is not meant is named, too, as nothing: each side's own settings may have it.
    if named.retriever and named.retriever == asked.retriever:
        given += ["--retriever", named.retriever, *([] if asked.python else ["--python", ""])]
    if named.python and named.python == asked.python:
        given += ["--python", named.python, *([] if asked.retriever else ["--retriever", ""])]
    return given


def _judged(job: CiJob, *, run: Path | None, baseline: Path | None, base_ref: str | None) -> Outcome:
    """Evaluate what has to be, gate it and write the reports; raises RingtrueError if there is no verdict."""
    if base_ref:
        return _compared(job, base_ref)
    place = baseline or BASELINE
    # A baseline that cannot be read is told before anything is evaluated.
    before = lib.verdict.find_baseline(place, named=baseline is not None)
    extra: list[lib.verdict.Check] = []
    notes: list[str] = []
    if run is not None:
        evaluation = lib.run.open_run(run)
        extra, notes = committed(evaluation, job.asked)
    else:
        _check_addresses(job)
        side = _evaluated(job, Path(), "head")
        if side.run is None:
            return _without(side.code, side.reason, job.key)
        evaluation = lib.run.open_run(side.run)
    return _gated(job, evaluation, before, extra, notes)


def _compared(job: CiJob, ref: str) -> Outcome:
    """Evaluate the change and the commit it builds on, one after the other, and gate the one against the other."""
    with lib.ci.checkout(ref, say=_say) as (folder, commit):
        try:
            base, notes = _base_job(job, folder)
        except (InputError, typer.BadParameter) as problem:
            raise CannotDecide(f"the base {ref} ({commit}) could not be evaluated: {problem}") from problem
        _check_addresses(job, base, folder)
        side = _evaluated(job, Path(), "head", "--no-cache")
        if side.run is None:
            return _without(side.code, side.reason, job.key)
        # Both sides answer the questions of the change: otherwise a new query would look like a difference between searches.
        golden = job.asked.golden
        same = ["--golden", str(Path(golden).resolve())] if golden and Path(golden).exists() else []
        other = _evaluated(base, folder, "base", "--no-cache", *same)
        if other.run is None:
            raise CannotDecide(f"the base {ref} ({commit}) could not be evaluated: {other.reason}")
        lib.ci.check_code(other.used, lib.ci.repository_root())
    whole, _ = lib.verdict.with_measures(lib.run.open_run(other.run), job.policy.measures)
    before = replace(lib.verdict.baseline_of(whole), version=f"{ref} ({commit})" if not ref.startswith(commit) else commit)
    evaluation = lib.run.open_run(side.run)
    if before.rankings == lib.verdict.baseline_of(evaluation).rankings:
        if not job.shared:
            lib.ci.check_servers(side.used, other.used, os.environ)
        notes.append(SAME_ANSWERS)
    return _gated(job, evaluation, before, [], notes)


def _base_job(job: CiJob, folder: Path) -> tuple[CiJob, list[str]]:
    """Return the job of the base by its own ringtrue.toml, and what to note about it.

    A base that cannot start its service yet, because the change brings ``serve``, gets the settings of the change.
    """
    head, base = load_config(), load_config(folder)
    own = base.commands.get("ci", {})
    notes = (
        ["both sides asked the same running system (shared = true), so changes to it are not compared"] if job.shared else []
    )

    service, named_here = job.service, is_given(job.context, "serve")
    if not named_here and own.get("serve"):
        params = job.context.command.make_context("ci", [], parent=job.context.parent, default_map=own).params
        service = lib.ci.ServiceCommands(**{field.name: params[field.name] for field in fields(lib.ci.ServiceCommands)})
    elif not named_here and service and head.file:
        place = folder / os.path.relpath(head.file, Path.cwd())
        place.write_bytes(head.file.read_bytes())
        base, own = load_config(folder), {}
        notes.append("the base has no [ci] serve, so it ran with the ringtrue.toml of this change")
    setup = job.setup if is_given(job.context, "setup") else str(own.get("setup", job.setup))
    asked = settled(job.named, job.context, base.commands.get("eval", {}))
    return replace(job, asked=asked, setup=setup, service=service), notes


def _check_addresses(job: CiJob, base: CiJob | None = None, folder: Path = Path()) -> None:
    def servers(side: CiJob, place: Path) -> lib.ci.AskedServers:
        described = load_config(place).connections
        parts = [part for text in _expressions(side.asked) for part in lib.retrieve.parts_of(text) if part.name == "connect"]
        names = [str(dict(part.options)["name"]) for part in parts]
        return lib.ci.AskedServers({name: described[name] for name in names if name in described}, side.service)

    lib.ci.check_addresses(servers(job, Path()), servers(base, folder) if base else None, shared=job.shared)


def _expressions(asked: Asked) -> list[str]:
    return [] if asked.python else lib.run.expressions_of(lib.run.search_named(asked.retriever, None, asked.route or ()))


def _extras(asked: Asked, setup: str) -> list[str]:
    """Return the extras that the search needs, and ``ringtrue ingest`` in the set-up."""
    ingests = "\n".join(re.findall(r"\bringtrue ingest\b([^;&|\n]*)", setup)).replace("--retriever=", "--retriever ")
    words = shlex.split(ingests)
    retrievers = [*_expressions(asked), *(word for before, word in pairwise(words) if before in ("--retriever", "-r"))]
    pdf = any(word.lower().endswith(".pdf") or any(Path().glob(f"{word.strip('/')}/**/*.[pP][dD][fF]")) for word in words)
    return sorted({*lib.ci.extras_of(retrievers, load_config().connections), *["pdf"] * pdf})


def _evaluated(job: CiJob, folder: Path, name: str, *more: str) -> lib.ci.EvaluatedSide:
    wanted = dict.fromkeys((*lib.run.usual_measures(job.asked.k), *job.policy.measures))
    options = [*_flags(job), *more, *(part for text in wanted for part in ("--measure", text))]
    options += ["--no-cache"] if job.service and "--no-cache" not in more else []
    how: dict[str, Any] = {"setup": job.setup, "service": job.service, "environment": environment_without_tokens()}
    return lib.ci.evaluate_in(folder, job.out / name, options=options, say=_say, **how)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _gated(
    job: CiJob,
    evaluation: lib.run.Evaluation,
    before: lib.verdict.Baseline | None,
    extra: Sequence[lib.verdict.Check],
    notes: Sequence[str],
) -> Outcome:
    """Judge an evaluation and write the reports."""
    from ringtrue.cli.report import setting, unmet

    verdict = lib.verdict.with_checks(lib.verdict.gate(evaluation, job.policy, baseline=before), extra, notes=notes)
    made_at = utc_now().isoformat(timespec="seconds")
    report = lib.report.report_on(evaluation, made_at=made_at, baseline=before, verdict=verdict)
    texts = {
        "comment.md": lib.report.pull_request(report, key=job.key),
        REPORT: lib.report.markdown(report),
        "report.html": lib.report.html(report),
        "report.json": lib.report.as_json(report),
        "junit.xml": lib.report.junit(report),
        SARIF: lib.report.sarif(report),
    }
    for name, text in texts.items():
        (job.out / name).write_text(text, encoding="utf-8")
    return Outcome(
        verdict.word,
        verdict.exit_code,
        texts["comment.md"],
        tuple(job.out / name for name in texts),
        evaluation.run_dir,
        reasons=lib.report.reasons(report),
        failures=verdict.failures,
        lines=(f"{lib.report.headline(report)}.", *map(str, setting(report)), *map(str, unmet(report))),
        notes=verdict.notes,
    )


def _without(code: int, reason: str, key: str) -> Outcome:
    """Return the outcome of a job that came to no verdict."""
    word = "undecided" if code == UNDECIDED else "error"
    title = "❔ Ringtrue could not decide" if word == "undecided" else "❌ Ringtrue could not run"
    return Outcome(
        word,
        code,
        f"{lib.report.marker(key)}\n### {title}\n\n```\n{reason.replace('```', '')}\n```\n",
        reasons=(reason,),
        lines=(f"{word.upper()}: {reason}",),
    )


def _handed_out(outcome: Outcome, out: Path) -> list[str]:
    """Hand the results to the pipeline; returns what could not be."""
    if not outcome.files:
        (out / "comment.md").write_text(outcome.comment, encoding="utf-8")
    here = pipeline("github")
    try:
        if here.summary is not None:
            lib.ci.add_summary(outcome.comment, here.summary)
        if here.output is not None:
            paths = {name: next((str(file) for file in outcome.files if file.name == name), "") for name in (REPORT, SARIF)}
            values = {"verdict": outcome.word, "exit-code": outcome.code, "report": paths[REPORT], "sarif": paths[SARIF]}
            lib.ci.add_outputs(values, here.output)
    except OSError as problem:
        return [f"the step summary or the outputs could not be written: {problem}"]
    return []


def _commented(text: str, key: str) -> list[str]:
    """Keep the comment up to date; returns what there is to say about it. Nothing here changes the verdict."""
    try:
        posted = posted_comment(text, key=key)
    except Exception as problem:  # whatever a forge answers, the gate's exit code is the gate's
        return [f"no comment: {'' if isinstance(problem, RingtrueError) else f'{type(problem).__name__}: '}{problem}"]
    return [_outcome_of(posted) if posted else "no comment: there is no pull request here"]


def comment_command(
    report: Annotated[str, typer.Argument(metavar="FILE", help="The Markdown to post; - for standard input.")],
    forge: Annotated[str | None, typer.Option("--on", help="github or gitlab; default: detected.")] = None,
    repository: Annotated[str | None, typer.Option(help="owner/name on GitHub; id or path of the project on GitLab.")] = None,
    number: Annotated[int | None, typer.Option(min=1, help="Number of the pull request or merge request.")] = None,
    key: Annotated[str, typer.Option(help="Name of this comment, if a pull request has several.")] = "",
    api: Annotated[str | None, typer.Option(help="API address of a self-hosted server.")] = None,
    json: Json = False,
) -> None:
    """Post a report on a pull request, or update it. The token is GITHUB_TOKEN or GITLAB_TOKEN.

    Inside a workflow or a merge-request pipeline all other options are detected. A read-only token, as on a pull request
    from a fork, is reported but is not an error.

    Example: ringtrue comment gate.md
    Example: ringtrue comment gate.md --on github --repository shop/search --number 7
    """
    text = sys.stdin.read() if report == "-" else _read(Path(report))
    if not text.strip():
        raise InputError(f"{report}: is empty; give the Markdown of a report, as `ringtrue report RUN --format pr` writes it")
    posted = posted_comment(text, forge=forge, repository=repository, number=number, key=key, api=api)
    if posted is None:
        raise InputError("no pull request found here; give --repository and --number")
    said = "" if posted.what == "refused" else _outcome_of(posted)
    record = {"comment": posted.what, "url": posted.url, "detail": posted.detail}
    show.result(json, record, said, notes=[posted.detail if posted.what == "refused" else ""])


def _outcome_of(posted: lib.ci.Posted) -> str:
    return posted.detail if posted.what == "refused" else f"comment {posted.what}" + (f": {posted.url}" if posted.url else "")


def posted_comment(
    text: str,
    *,
    forge: str | None = None,
    repository: str | None = None,
    number: int | None = None,
    key: str = "",
    api: str | None = None,
) -> lib.ci.Posted | None:
    """Post where the environment says this runs, unless told otherwise; None if there is no pull request."""
    check_choice(forge, ("github", "gitlab"), f"--on {forge!r} is not known")
    line = lib.report.marker(key) if key else lib.ci.marker_in(text) or lib.report.marker()
    here = pipeline(forge)
    place, number = repository or here.place, number or here.number or lib.ci.pull_request_number(here.event)
    if not place or number is None:
        return None
    secret(f"{here.forge.upper()}_TOKEN")  # without it, nothing can be posted
    post = lib.ci.post_note if here.forge == "gitlab" else lib.ci.post_comment
    return post(text, place=place, number=number, token=here.token, api=api or here.api, marker=line)


def _read(path: Path) -> str:
    if not path.is_file():
        raise MissingInput(f"{path}: there is no such file; write it with `ringtrue report RUN --format pr --out {path}`")
    return lib.formats.read_text(path)
