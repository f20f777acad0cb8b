"""``ringtrue eval``: how good is a search on a golden set."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import show
from ringtrue.cli.evaluating import Asked, evaluated, settled
from ringtrue.cli.options import Json
from ringtrue.cli.store_results import ResultOptions
from ringtrue.errors import UNDECIDED

if TYPE_CHECKING:
    from ringtrue.run import Evaluation

REPORTS = Path("reports")


def eval_command(
    *,
    context: typer.Context,
    asked: Asked,
    measure: Annotated[list[str] | None, typer.Option("--measure", "-m", help="Like nDCG@10; default: usual eight.")] = None,
    components: Annotated[bool, typer.Option("--components", "-c", help="Also score each channel and step.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted evaluation of a connected system.")] = False,
    name: Annotated[str, typer.Option(help="Name of the run; default: branch@commit or, outside git, the search.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; .ringtrue/runs/… unless given.")] = None,
    reports: Annotated[Path, typer.Option(help="Folder for the Markdown report.")] = REPORTS,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no Markdown report.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write an HTML report to this file.")] = None,
    result: ResultOptions,
    no_advice: Annotated[bool, typer.Option("--no-advice", hidden=True, help="Print no next steps.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also print how the numbers were computed.")] = False,
    json: Json = False,
) -> None:
    """Measure a search on a golden set.

    Asks every question of the set and scores the answers, if the set's documents are in the index. Writes a run folder (which
    compare, gate and report read) and a Markdown report, and adds the result to the store, where `ringtrue serve` shows it.
    Repeating the same evaluation reads the cache and says so.

    \b
    Example: ringtrue eval --golden hotel --retriever hybrid --components
    Example: ringtrue eval --golden my-set.yaml --retriever "connect('shop')" --out runs/today
    Example: ringtrue eval --golden my-set.yaml --python my_search.py:find -m nDCG@10 -m R@20
    """
    from ringtrue.cli.show_evaluation import print_evaluation
    from ringtrue.report import file_name, markdown, report_on
    from ringtrue.run import new_run_folder, save, write_new

    place = result.destination(create=True)
    found = evaluated(
        settled(asked, context), measures=measure or (), components=components, resume=resume, name=name, quiet=json
    )
    now = datetime.now(UTC)
    found = save(found, out or new_run_folder(found, now))
    report = report_on(found, made_at=now.isoformat(timespec="seconds"))
    written = None if no_report else write_new(reports / file_name(report.made_at), markdown(report))
    if html is not None:
        from ringtrue.report import html as as_html

        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(as_html(report), encoding="utf-8")
    kept = result.add(place, found)
    if json:
        show.as_json(record(found) | {"report": written, "stored": kept.run_id})
    else:
        print_evaluation(report, verbose=verbose, advice=not no_advice)
        places = {"run": found.run_dir, "report": written, "html": html, "stored": kept.run_id}
        print("\n" + "\n".join(f"{what}: {place}" for what, place in places.items() if place is not None))
    kept.tell()
    if found.failures and asked.failed == "list":
        raise typer.Exit(UNDECIDED)


def record(found: Evaluation) -> dict[str, Any]:
    """Return an evaluation under the stable keys of ``--json``."""
    return {
        **show.pick(found, "name", "run_dir", "metrics", "failures", "cached", "setup", "notes"),
        "summary": {str(measure): found.scores.summary(measure) for measure in found.scores.measures},
        "intervals": found.intervals,
        "per_slice": {
            field: {
                value: {str(m): found.scores.by(field, m)[value].mean for m in found.scores.measures}
                for value in found.scores.by(field, found.scores.measures[0])
            }
            for field in found.setup.golden.slices
        },
        "components": {part.name: part.scores.aggregate for part in found.components},
        "latency_ms": show.pick(found.latency, "p50", "p95", "p99"),
        "missing": found.scores.counted.missing,
        "queries": len(found.queries),
        "lost": len(found.losses),
    }
