"""``ringtrue report``: what there is to tell about a run, for people, pages and machines."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import BASELINE
from ringtrue.config import load_config
from ringtrue.errors import InputError, nearest

REPORTS = Path("reports")
SUFFIX = {"md": ".md", "html": ".html", "json": ".json", "junit": ".xml", "sarif": ".sarif", "pr": "-pr.md"}
"""The formats, and how their files end."""


def report_command(
    run: Annotated[Path, typer.Argument(help="A run folder, as ringtrue eval writes it, or the name of a run.")],
    against: Annotated[Path | None, typer.Option("--against", "-a", help="A run folder to compare with.")] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", "-b", help="The baseline to judge by; default: ringtrue-baseline.json.")
    ] = None,
    no_baseline: Annotated[bool, typer.Option("--no-baseline", help="Judge by the floors of [gate] alone.")] = False,
    formats: Annotated[
        list[str] | None, typer.Option("--format", "-f", help=f"{', '.join(SUFFIX)}. Repeatable; md unless given.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file, or a folder for several; - is stdout.")] = None,
    key: Annotated[str, typer.Option(help="Tells apart the comments of several gates on one pull request.")] = "",
    title: Annotated[str, typer.Option(help="A heading of your own.")] = "",
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
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
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
