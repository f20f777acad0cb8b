"""``ringtrue report``: what there is to tell about a run, for people, pages and machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.brief import counted
from ringtrue.cli import lib, show
from ringtrue.cli.options import BASELINE, utc_now
from ringtrue.config import load_config
from ringtrue.errors import InputError, nearest

REPORTS = Path("reports")
SUFFIX = {"md": ".md", "html": ".html", "json": ".json", "junit": ".xml", "sarif": ".sarif", "pr": "-pr.md"}
"""The formats, and how their files end."""


def report_command(
    run: Annotated[Path, typer.Argument(help="A run folder, as ringtrue eval writes it, or the name of a run.")],
    against: Annotated[Path | None, typer.Option("--against", "-a", help="A run folder to compare with.")] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", "-b", help="The baseline to compare with; default: ringtrue-baseline.json.")
    ] = None,
    no_baseline: Annotated[bool, typer.Option("--no-baseline", help="Judge by the floors of [gate] alone.")] = False,
    formats: Annotated[
        list[str] | None, typer.Option("--format", "-f", help=f"{', '.join(SUFFIX)}. Repeatable; md unless given.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file, or a folder for several; - is stdout.")] = None,
    key: Annotated[str, typer.Option(help="Name of this gate, if a pull request has several.")] = "",
    title: Annotated[str, typer.Option(help="Your own heading for the report.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the report, or the files written.")] = False,
) -> None:
    """Write a report on a run, as Markdown, HTML, JSON and more.

    It judges as ringtrue gate does: by ringtrue-baseline.json if it lies in this folder, and by [gate] of ringtrue.toml.
    One format goes to standard output, HTML and several formats to reports/, unless --out says otherwise. The exit code is 0
    once the report is written, whatever it says: judging is what ringtrue gate is for.

    Example: ringtrue report runs/today
    Example: ringtrue report runs/today --against runs/before --format html
    Example: ringtrue report runs/today --baseline releases/2.0.json --format md --format junit --out reports/
    """
    wanted = _formats(formats, json=json)
    if no_baseline and baseline is not None:
        raise InputError(f"--baseline {baseline} and --no-baseline contradict each other; leave one out")
    evaluation = lib.run.open_run(run)
    baseline = baseline or (None if no_baseline else _usual(evaluation))
    made = _report(evaluation, against, baseline, title, alone=no_baseline)
    writers = _writers(key, baseline)
    if _to_stdout(wanted, out):
        print(writers[wanted[0]](made), end="")
        _say(made)
        return
    files = dict(zip(wanted, _paths(wanted, out, made.made_at), strict=True))
    for name, path in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(writers[name](made), encoding="utf-8")

    word = made.verdict.word if made.verdict else None
    show.end_if_json(
        json, {"files": files, "verdict": word, "headline": lib.report.headline(made), "recommendations": made.recommendations}
    )
    for name, path in files.items():
        print(f"{name}: {path}")
    _say(made)


def _formats(given: list[str] | None, *, json: bool) -> list[str]:
    for name in given or ():
        if name not in SUFFIX:
            raise InputError(f"--format {name!r} is not known; write {nearest(name, SUFFIX)}")
    return list(dict.fromkeys(given or (["json"] if json else ["md"])))


def _usual(evaluation: lib.run.Evaluation) -> Path | None:
    """Return the baseline of this folder, as the gate takes it; without rules, one of another golden set is left out."""
    if not BASELINE.is_file():
        return None
    recorded = lib.verdict.read_baseline(BASELINE).golden
    other = recorded.content_hash and recorded.content_hash != evaluation.setup.golden.content_hash
    if other and not load_config().gate:
        show.note(f"{BASELINE} was recorded on another golden set ({recorded.version}) and is left out")
        return None
    return BASELINE


def _report(
    evaluation: lib.run.Evaluation, against: Path | None, baseline: Path | None, title: str, *, alone: bool
) -> lib.report.Report:
    config = load_config()
    # Without a baseline and without rules of its own a project has nothing to be judged by.
    ruled = baseline is not None or bool(config.gate)
    policy = lib.verdict.Policy.of(
        {**config.gate, **({"require_baseline": False} if alone else {})}, place=config.file or "gate"
    )
    return lib.report.report_on(
        evaluation,
        made_at=utc_now().isoformat(timespec="seconds"),
        other=None if against is None else lib.run.open_run(against),
        baseline=None if baseline is None else lib.verdict.read_baseline(baseline),
        policy=policy if ruled else None,
        title=title,
    )


def _writers(key: str, baseline: Path | None) -> dict[str, Callable[[lib.report.Report], str]]:

    # A code-scanning page knows files by their place in the repository, which is where the command runs.
    here = Path.cwd()
    inside = baseline is not None and baseline.resolve().is_relative_to(here)
    file = baseline.resolve().relative_to(here).as_posix() if baseline is not None and inside else None
    return {
        "md": lib.report.markdown,
        "html": lib.report.html,
        "json": lib.report.as_json,
        "junit": lib.report.junit,
        "sarif": lambda report: lib.report.sarif(report, baseline_file=file),
        "pr": lambda report: lib.report.pull_request(report, key=key),
    }


def _to_stdout(wanted: list[str], out: Path | None) -> bool:
    if out is None:
        return len(wanted) == 1 and wanted != ["html"]
    if str(out) != "-":
        return False
    if len(wanted) > 1:
        raise InputError(f"{len(wanted)} formats cannot share standard output; name a folder with --out")
    return True


def _paths(wanted: list[str], out: Path | None, made_at: str) -> list[Path]:
    if out is None or out.is_dir() or (len(wanted) > 1 and not out.exists()):
        named = [(out or REPORTS) / lib.report.file_name(made_at, SUFFIX[name]) for name in wanted]
        return [next(path for path in lib.run.numbered(name) if not path.exists()) for name in named]
    if len(wanted) > 1:
        raise InputError(f"--out {out} is a file, but {len(wanted)} formats were asked for; name a folder")
    return [out]


def _say(report: lib.report.Report) -> None:
    """Say where the verdict can stop a build, so that nobody takes this command's 0 for a pass."""
    if report.verdict is not None and report.verdict.exit_code:
        code = report.verdict.exit_code
        show.note(f"the verdict is {report.verdict.word}; `ringtrue gate` would end with exit code {code}, a report with 0")


BAR = 24
"""Characters of the longest bar."""
FAILURES = 10
"""Questions without an answer that are listed."""


def print_evaluation(told: lib.report.Report, *, verbose: bool = False, advice: bool = True) -> None:
    """Print an evaluation with what its report says; ``verbose`` adds how the numbers were made, ``advice`` what to do next."""
    evaluation = told.evaluation
    _first(lib.report.headline(told), told)
    for reason in lib.report.reasons(told):
        print(f"  - {lib.report.one_line(reason)}")
    if lib.report.against(told):
        print(f"{lib.report.one_line(lib.report.against(told))}.")
    print()
    _measures(told)
    _slices(told)
    _components(told)
    _blame(evaluation)
    _latency(told)
    _failures(evaluation)
    if advice:
        _advice(told)
        _judging(told)
    show.notes(map(lib.report.one_line, lib.report.notes(told) if verbose else lib.report.warnings(told)))


def _first(sentence: str, report: lib.report.Report) -> None:
    golden = report.evaluation.setup.golden
    label = f", {golden.reviewed}" if golden.unreviewed else ""
    text = f"{lib.report.one_line(sentence)}."
    if show.on_terminal():
        from rich.console import Console
        from rich.text import Text

        colour = {"pass": "green", "fail": "red", "undecided": "yellow", None: ""}[lib.report.outcome(report)]
        Console().print(Text(text, style=f"bold {colour}".strip()))
    else:
        print(text)
    part = "" if golden.split == "all" else f", {golden.split.replace('_', '-')} part"
    name, search = lib.report.one_line(report.evaluation.name), lib.report.one_line(report.evaluation.search)
    what = search if name == search else f"{name}: {search}"
    print(f"{what} on {golden.version}{part}{label}; k = {report.evaluation.setup.k}")


def _measures(report: lib.report.Report) -> None:
    evaluation = report.evaluation
    found = [line for line in lib.report.measure_lines(report) if line.measure not in lib.report.PERCENTILES]
    judged = any(line.status for line in found)
    compared = any(line.baseline is not None for line in found)
    headers = ["measure", "mean", "95 % interval", "median", "sd", "queries"]
    headers += ["baseline", "change"] if compared else []
    headers += ["floor", "status"] if judged else []
    body = []
    for line in found:
        cells = [line.measure, line.current, lib.report.span(line.interval)]
        if line.measure in evaluation.metrics:
            one = evaluation.scores.summary(line.measure)
            cells += [one.median, one.std, one.count]
        else:
            cells += ["—", "—", "—"]
        cells += [line.baseline, lib.report.percent(line.change)] if compared else []
        cells += [line.threshold, lib.report.STATUS.get(line.status or "", "—")] if judged else []
        body.append(cells)
    show.table(headers, body)


def _slices(report: lib.report.Report) -> None:
    """The first field only: a terminal is narrow, and the reports have all."""
    fields = lib.report.slice_fields(report.evaluation)
    if not fields:
        return
    scores, names = report.evaluation.scores, lib.report.shown_measures(report)
    by_name = {name: scores.by(fields[0], name) for name in names}
    print()
    rows = []
    for value in by_name[names[0]]:
        found = [means[value] for means in by_name.values()]
        counts = max(one.count for one in found)
        rows.append([lib.report.one_line(value), counts, *(show.number(one.mean) for one in found)])
    show.table([fields[0], "queries", *names], rows)


def _components(report: lib.report.Report) -> None:
    parts = lib.report.component_lines(report)
    if not parts:
        return
    names = lib.report.shown_measures(report, most=2)
    body = []
    for part in parts:
        given = part.contribution
        shares = [lib.report.portion(share) for share in (given.rate, given.unique_rate)] if given else ["", ""]
        values = [show.number(part.values.get(name)) for name in names]
        body.append([lib.report.one_line(part.label), *values, *shares, lib.report.without_it(part)])
    print()
    show.table(["component", *names, "share of hits", "only from it", "without it"], body)
    if any(part.without for part in parts):
        print(f"without it: how {names[0]} changes without the part, below 0 if the search loses; 95 % interval")


def _blame(evaluation: lib.run.Evaluation) -> None:
    lost = lib.report.blame_lines(evaluation)
    if not lost:
        return
    total, depths = lib.report.relevant_documents(evaluation), lib.report.lost_at(evaluation)
    gone = sum(line.count for line in lost)
    print(f"\n{gone:,} of {counted(total, 'relevant document')} are missing at k = {depths}; lost where:\n")
    bars = [
        ("relevant", total, 1.0),
        *((line.stage, line.count, line.share) for line in lost),
        ("found", total - gone, 1 - gone / total),
    ]
    names, digits = max(len(name) for name, _, _ in bars), len(f"{total:,}")
    left = total
    for name, count, share in bars:
        lost_here = name not in ("relevant", "found")
        left -= count if lost_here else 0
        # A waterfall: what a stage lost hangs where the documents that are left end.
        offset = round(BAR * left / total) if lost_here else 0
        bar = ("░" if lost_here else "█") * (max(1, round(BAR * count / total)) if count else 0)
        print(f"{name:<{names}}  {count:>{digits},}  {lib.report.portion(share):>5}  {' ' * offset}{bar}".rstrip())


def _latency(report: lib.report.Report) -> None:
    found = report.evaluation.latency
    if not found.count:
        return
    parts = []
    for line in lib.report.measure_lines(report):
        if line.measure in lib.report.PERCENTILES:
            more = [f"was {lib.report.milliseconds(line.baseline)}"] if line.baseline is not None else []
            more += [lib.report.STATUS[line.status]] if line.status else []
            parts.append(f"{line.measure} {lib.report.milliseconds(line.current)}" + (f" ({', '.join(more)})" if more else ""))
    print(f"\nlatency: {', '.join(parts)} over {counted(found.count, 'answer')}")


def _failures(evaluation: lib.run.Evaluation) -> None:
    failed = evaluation.failures
    if not failed:
        return
    print(f"\n{counted(len(failed), 'query')} got no answer:")
    for query_id, error in list(failed.items())[:FAILURES]:
        print(f"  {query_id}: {lib.report.one_line(error)}")
    show.more(len(failed) - FAILURES, indent="  ")


def _advice(report: lib.report.Report) -> None:
    if report.recommendations:
        print("\nRecommendations:")
    for index, one in enumerate(report.recommendations, 1):
        print(f"  {index}. {lib.report.one_line(one.advice)}")


def _judging(report: lib.report.Report) -> None:
    """Say how to judge what was only measured."""
    folder = report.evaluation.run_dir
    if report.verdict is not None or report.comparison is not None or folder is None:
        return
    if BASELINE.is_file():
        print(f"\nTo judge it by {BASELINE}: ringtrue gate --run {folder}")
    else:
        print(f"\nTo hold later runs to it: ringtrue baseline update --run {folder}, then ringtrue gate")
