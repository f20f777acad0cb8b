"""``ringtrue report``: what there is to tell about a run, for people, pages and machines (P-1, P-2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.errors import InputError, nearest

if TYPE_CHECKING:
    from ringtrue.report import Report

REPORTS = Path("reports")
SUFFIX = {"md": ".md", "html": ".html", "json": ".json", "junit": ".xml", "sarif": ".sarif", "pr": "-pr.md"}
"""The formats, and how their files end."""


def report_command(
    run: Annotated[Path, typer.Argument(help="A run folder, as ringtrue eval writes it.")],
    against: Annotated[Path | None, typer.Option("--against", "-a", help="A run folder to compare with.")] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", "-b", help="A baseline file to judge by, with the rules of [gate].")
    ] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", "-f", help=f"{', '.join(SUFFIX)}. Repeatable; md unless given.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file, or a folder for several formats. '-' is standard output.")
    ] = None,
    key: Annotated[str, typer.Option("--key", help="Tells apart the comments of several gates on one pull request.")] = "",
    title: Annotated[str, typer.Option("--title", help="A heading of your own.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the report, or the files written.")] = False,
) -> None:
    """Write a report on a run: verdict first, measures, slices, components, losses, every question, recommendations.

    One format goes to standard output, HTML and several formats to reports/, unless --out says otherwise. The exit code is 0
    once the report is written, whatever it says: judging is what ringtrue gate is for.

    \b
    Example: ringtrue report runs/today
    Example: ringtrue report runs/today --against runs/before --format html
    Example: ringtrue report runs/today --baseline ringtrue-baseline.json --format md --format junit --out reports/
    """
    from ringtrue.cli import show

    wanted = _formats(formats, json=json)
    made = _report(run, against, baseline, title)
    writers = _writers(key, baseline)
    if _to_stdout(wanted, out):
        print(writers[wanted[0]](made), end="")
        _say(made)
        return
    files = dict(zip(wanted, _paths(wanted, out, made.made_at), strict=True))
    for name, path in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(writers[name](made), encoding="utf-8")
    if json:
        from ringtrue.report.story import headline

        word = made.verdict.word if made.verdict else None
        show.as_json({"files": files, "verdict": word, "headline": headline(made), "recommendations": made.recommendations})
        return
    for name, path in files.items():
        print(f"{name}: {path}")
    _say(made)


def _formats(given: list[str] | None, *, json: bool) -> list[str]:
    for name in given or ():
        if name not in SUFFIX:
            raise InputError(f"--format {name!r} is not known; write {nearest(name, SUFFIX)}")
    return list(dict.fromkeys(given or (["json"] if json else ["md"])))


def _report(run: Path, against: Path | None, baseline: Path | None, title: str) -> Report:
    from ringtrue.config import load_config
    from ringtrue.report import report_on
    from ringtrue.run import open_run
    from ringtrue.verdict import Policy, read_baseline

    config = load_config()
    return report_on(
        open_run(run),
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        other=None if against is None else open_run(against),
        baseline=None if baseline is None else read_baseline(baseline),
        policy=None if baseline is None else Policy.of(config.gate, place=config.file or "gate"),
        title=title,
    )


def _writers(key: str, baseline: Path | None) -> dict[str, Callable[[Report], str]]:
    from ringtrue.report import as_json, html, junit, markdown, pull_request, sarif

    # A code-scanning page knows files by their place in the repository, which is where the command runs.
    here = Path.cwd()
    inside = baseline is not None and baseline.resolve().is_relative_to(here)
    file = baseline.resolve().relative_to(here).as_posix() if baseline is not None and inside else None
    return {
        "md": markdown,
        "html": html,
        "json": as_json,
        "junit": junit,
        "sarif": lambda report: sarif(report, baseline_file=file),
        "pr": lambda report: pull_request(report, key=key),
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
    from ringtrue.cli.eval import fresh
    from ringtrue.report import file_name

    if out is None or out.is_dir() or (len(wanted) > 1 and not out.exists()):
        return [fresh((out or REPORTS) / file_name(made_at, SUFFIX[name])) for name in wanted]
    if len(wanted) > 1:
        raise InputError(f"--out {out} is a file, but {len(wanted)} formats were asked for; name a folder")
    return [out]


def _say(report: Report) -> None:
    """Say where the verdict can stop a build, so that nobody takes this command's 0 for a pass."""
    from ringtrue.cli import show

    if report.verdict is not None and report.verdict.exit_code:
        code = report.verdict.exit_code
        show.note(f"the verdict is {report.verdict.word}; `ringtrue gate` would end with exit code {code}, a report with 0")
