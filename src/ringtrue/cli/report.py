"""``ringtrue report``: what there is to tell about a run, for people, pages and machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.brief import counted
from ringtrue.cli import lib, show
from ringtrue.cli.options import BASELINE, utc_now
from ringtrue.config import load_config
from ringtrue.errors import OK, InputError, check_choice

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

    The verdict is that of ringtrue gate: by ringtrue-baseline.json in this folder, if there is one, and by [gate] in
    ringtrue.toml. A single format goes to standard output; HTML and several formats go to reports/, unless --out says
    otherwise. The exit code is 0 whatever the verdict; use ringtrue gate to fail a build.

    Example: ringtrue report runs/today
    Example: ringtrue report runs/today --against runs/before --format html
    Example: ringtrue report runs/today --baseline releases/2.0.json --format md --format junit --out reports/
    """
    for name in formats or ():
        check_choice(name, SUFFIX, f"--format {name!r} is not known")
    wanted = list(dict.fromkeys(formats or (["json"] if json else ["md"])))
    if no_baseline and baseline is not None:
        raise InputError(f"--baseline {baseline} and --no-baseline contradict each other; leave one out")
    evaluation = lib.run.open_run(run)
    baseline = baseline or (None if no_baseline else _usual(evaluation))
    made = _report(evaluation, against, baseline, title, alone=no_baseline)
    writers = _writers(key, baseline)
    code, word = (made.verdict.exit_code, made.verdict.word) if made.verdict else (OK, None)
    gated = [f"the verdict is {word}; `ringtrue gate` would end with exit code {code}, a report with 0"] * bool(code)
    paths = _paths(wanted, out, made.made_at)
    if not paths:
        print(writers[wanted[0]](made), end="")
        show.notes(gated)
        return
    files = dict(zip(wanted, paths, strict=True))
    for name, path in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(writers[name](made), encoding="utf-8")
    record = {"files": files, "verdict": word, "headline": lib.report.headline(made), "recommendations": made.recommendations}
    show.result(json, record, *(f"{name}: {path}" for name, path in files.items()), notes=gated)


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
    place = None if baseline is None else Path(os.path.relpath(baseline)).as_posix()
    file = None if place is None or place.startswith("..") else place
    return {
        "md": lib.report.markdown,
        "html": lib.report.html,
        "json": lib.report.as_json,
        "junit": lib.report.junit,
        "sarif": lambda report: lib.report.sarif(report, baseline_file=file),
        "pr": lambda report: lib.report.pull_request(report, key=key),
    }


def _paths(wanted: list[str], out: Path | None, made_at: str) -> list[Path]:
    """Return a file per format; none for standard output."""
    several = len(wanted) > 1
    if several and out is not None and (str(out) == "-" or out.is_file()):
        raise InputError(f"--out {out} cannot hold {len(wanted)} formats; name a folder")
    if str(out) == "-" or (out is None and not several and wanted != ["html"]):
        return []
    if out is not None and not several and not out.is_dir():
        return [out]
    named = [(out or REPORTS) / lib.report.file_name(made_at, SUFFIX[name]) for name in wanted]
    return [next(path for path in lib.run.numbered(name) if not path.exists()) for name in named]


FAILURES = 10
"""Questions without an answer that are listed."""
QUERIES = 3
"""Queries that are named behind each failure, unless all are asked for; reports name more."""
Parts = Iterator[str | show.Table]


def print_evaluation(told: lib.report.Report, *, verbose: bool = False, advice: bool = True) -> None:
    """Print an evaluation with what its report says.

    ``verbose`` adds informational checks, all failed queries and how the numbers were made; ``advice`` adds what to do next.
    """
    from rich.console import Console
    from rich.text import Text

    colour = {"pass": "green", "fail": "red", "undecided": "yellow", None: ""}[lib.report.outcome(told)]
    sentence = f"{lib.report.one_line(lib.report.headline(told))}."
    Console().print(Text(sentence, style=f"bold {colour}".strip()), soft_wrap=True)
    sections = (setting(told), unmet(told, verbose=verbose), _measures(told), _slices(told), _components(told), _rest(told))
    notes = map(lib.report.one_line, lib.report.notes(told) if verbose else lib.report.warnings(told))
    show.page(*chain(*sections, _advice(told) if advice else ()), notes=notes)


def setting(report: lib.report.Report) -> Parts:
    """Yield what was measured, and how it compares."""
    setup = report.evaluation.setup
    label = f", {setup.golden.reviewed}" if setup.golden.unreviewed else ""
    part = "" if setup.golden.split == "all" else f", {setup.golden.split.replace('_', '-')} part"
    name, search = lib.report.one_line(report.evaluation.name), lib.report.one_line(report.evaluation.search)
    mode = f"; mode {report.verdict.mode}" if report.verdict else ""
    yield f"{search if name == search else f'{name}: {search}'} on {setup.golden.version}{part}{label}; k = {setup.k}{mode}"
    if lib.report.against(report):
        yield f"{lib.report.one_line(lib.report.against(report))}."


def unmet(report: lib.report.Report, *, verbose: bool = False) -> Parts:
    """Yield what did not pass, each with the queries behind it, the guiltiest first."""
    texts = {query.query_id: query.text for query in report.evaluation.queries}
    titles = {"fail": "failed", "undecided": "could not be decided", "degraded": "worse, but allowed", "advisory": "advisory"}
    checks = [check for check in report.verdict.checks if verbose or _matters(check)] if report.verdict else []
    for status, title in titles.items():
        found = [check for check in checks if check.status == status]
        if found:
            yield f"\n{title}:"
        for check in found:
            yield f"  {lib.report.one_line(check.message)}"
            blamed = check.queries if status in ("fail", "undecided") else ()
            shown = blamed if verbose else blamed[:QUERIES]
            for query in shown:
                text = lib.report.beside_id(query, texts.get(query, ""))
                yield "    " + "  ".join(filter(None, (query, _moved(report, check, query), text)))
            yield "    …" if len(blamed) > len(shown) else ""
    hidden = len(report.verdict.checks) - len(checks) if report.verdict else 0
    if hidden:
        yield f"\n{counted(hidden, 'informational check')} not shown: --verbose shows {'it' if hidden == 1 else 'them'}"


def _moved(report: lib.report.Report, check: lib.verdict.Check, query: str) -> str:
    """Return the score of a query, with the one it had if the check looks back; empty for a latency."""
    now = report.evaluation.scores.per_query.get(query, {}).get(check.measure)
    then = report.baseline.per_query.get(query, {}).get(check.measure) if report.baseline else None
    before = f"{show.number(then)} → " if check.baseline is not None else ""
    return "" if now is None else f"{before}{show.number(now)}"


def _matters(check: lib.verdict.Check) -> bool:
    """Return True for a check that decides, and for an advisory one that is over its limit."""
    slow = check.rule in ("latency", "latency increase") and check.threshold is not None and check.current > check.threshold
    return check.status != "advisory" or slow


def _measures(report: lib.report.Report) -> Parts:
    """Yield the means with their spread; beside a baseline, the difference with the interval that the comparison goes by."""
    scores = report.evaluation.scores
    found = [line for line in lib.report.measure_lines(report) if line.measure not in lib.report.PERCENTILES]
    judged = any(line.status for line in found)
    compared = lib.report.same_golden(report) and any(line.baseline is not None for line in found)
    rows: list[list[object]] = []
    for line in found:
        if compared:
            cells = [line.measure, line.baseline, line.current, show.signed(line.diff), lib.report.percent(line.change)]
            cells.append(show.interval(*line.diff_interval) if line.diff_interval else None)
        else:
            known = line.measure in report.evaluation.metrics
            spread = show.pick(scores.summary(line.measure), "median", "std", "count").values() if known else [None] * 3
            cells = [line.measure, line.current, lib.report.span(line.interval), *spread]
        rows.append([*cells, *[line.threshold, lib.report.STATUS.get(line.status or "", "—")] * judged])
    without = ("measure", "mean", "95 % interval", "median", "sd", "queries")
    beside = ("measure", "baseline", "current", "Δ", "change", "interval of Δ")
    yield show.Table([*(beside if compared else without), *["floor", "status"] * judged], rows)


def _slices(report: lib.report.Report) -> Parts:
    """Yield the first field only: a terminal is narrow, and the reports have all."""
    for field in lib.report.slice_fields(report.evaluation)[:1]:
        names = lib.report.shown_measures(report)
        means = [report.evaluation.scores.by(field, name) for name in names]
        rows = [[value, max(one[value].count for one in means), *(one[value].mean for one in means)] for value in means[0]]
        yield show.Table([field, "queries", *names], rows)


def _components(report: lib.report.Report) -> Parts:
    names, parts = lib.report.shown_measures(report, most=2), lib.report.component_lines(report)
    rows: list[list[object]] = []
    for part in parts:
        given = part.contribution
        shares = [lib.report.portion(share) for share in (given.rate, given.unique_rate)] if given else ["", ""]
        rows.append([part.label, *(part.values.get(name) for name in names), *shares, lib.report.without_it(part)])
    yield show.Table(["component", *names, "share of hits", "only from it", "without it"], rows)
    if any(part.without for part in parts):
        yield f"without it: how {names[0]} changes without the part, below 0 if the search loses; 95 % interval"


def _rest(report: lib.report.Report) -> Parts:
    """Yield which stage lost relevant documents, the latency, and the queries without an answer."""
    evaluation, lost = report.evaluation, lib.report.blame_lines(report.evaluation)
    if lost:
        total, k = counted(lib.report.relevant_documents(evaluation), "relevant document"), lib.report.lost_at(evaluation)
        yield f"\n{sum(one.count for one in lost):,} of {total} are missing at k = {k}; lost where:"
        yield show.Table(
            ["stage", "documents", "share"], [[one.stage, one.count, lib.report.portion(one.share)] for one in lost]
        )
    parts = []
    for line in lib.report.measure_lines(report) if evaluation.latency.count else ():
        if line.measure in lib.report.PERCENTILES:
            more = [f"was {lib.report.milliseconds(line.baseline)}"] * (line.baseline is not None)
            more += [lib.report.STATUS[line.status]] if line.status else []
            parts.append(f"{line.measure} {lib.report.milliseconds(line.current)}" + (f" ({', '.join(more)})" if more else ""))
    yield f"\nlatency: {', '.join(parts)} over {counted(evaluation.latency.count, 'answer')}" if parts else ""
    failed = [[query_id, lib.report.one_line(error)] for query_id, error in evaluation.failures.items()]
    yield f"\n{counted(len(failed), 'query')} got no answer:" if failed else ""
    yield show.Table(["query", "problem"], failed, 2, most=FAILURES)


def _advice(report: lib.report.Report) -> Parts:
    yield "\nRecommendations:" if report.recommendations else ""
    yield from (f"  {index}. {lib.report.one_line(one.advice)}" for index, one in enumerate(report.recommendations, 1))
    folder = report.evaluation.run_dir
    if folder is not None and report.verdict is None and report.comparison is None:
        if BASELINE.is_file():
            yield f"\nTo judge it by {BASELINE}: ringtrue gate --run {folder}"
        else:
            yield f"\nTo compare later runs with it: ringtrue baseline update --run {folder}, then ringtrue gate"
