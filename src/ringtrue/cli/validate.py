"""``ringtrue golden validate``: every rule of a set's profile, all problems at once."""

from __future__ import annotations

from typing import Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json
from ringtrue.errors import BAD_INPUT


def validate_command(
    sources: Annotated[list[str], typer.Argument(metavar="SET...", help="Files, folders or shipped names.")],
    minimum_documents: Annotated[int, typer.Option(min=0, help="Fewest documents a set should have.")] = 50,
    minimum_queries: Annotated[int, typer.Option(min=1, help="Fewest queries a set should have.")] = 20,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    json: Json = False,
) -> None:
    """Check a golden set against every rule of its profile and list all problems at once. Exit code 2 when there is an error.

    Example: ringtrue golden validate hotel my-set.yaml
    """
    reports = {
        source: lib.golden.validate_file(
            lib.golden.locate(source), minimum_documents=minimum_documents, minimum_queries=minimum_queries
        )
        for source in sources
    }
    if json:
        problems = [{"set": name, **show.plain(problem)} for name, report in reports.items() for problem in report.problems]
        figures = {name: report.figures for name, report in reports.items()}
        told = {"profiles": {name: r.profile for name, r in reports.items()}, "notes": {n: r.notes for n, r in reports.items()}}
        show.as_json({"problems": problems, "figures": figures, **told})
    else:
        for name, report in reports.items():
            print_report(name, report, strict=strict)
    if any(not report.ok or (strict and report.problems) for report in reports.values()):
        raise typer.Exit(BAD_INPUT)


def print_report(name: str, report: lib.golden.Report, *, strict: bool = False) -> None:
    """Print what validation found."""
    figures = report.figures
    verdict = "passes with warnings" if report.warnings else "passes"
    if not report.ok or (strict and report.problems):
        verdict = "fails" if not report.ok else "fails (--strict: warnings count)"
    print(f"{name}: {verdict} (profile {report.profile}, {len(report.rules)} rules)")
    if figures:
        negative = f", {figures['negative_queries']} of them negative" if figures["negative_queries"] else ""
        print(f"  {figures['documents']} documents, {figures['queries']} queries{negative}, {figures['judgments']} judgments")
        print(
            f"  relevant per query {show.number(figures['relevant_per_query'], 2)} (grade ≥ {figures['relevance_threshold']}), "
            f"best P@5 reachable {show.number(figures['p5_reachable'], 2)}"
        )
        overlap = (
            f"{show.number(figures['overlap_mean'], 2)} on average" if figures["documents"] else "not known (no documents)"
        )
        print(
            f"  lexical overlap of queries with their answers {overlap}, {figures['copied_queries']} copied queries"
            + (" (a document's name may be its query here)" if report.profile == "known-item" else "")
        )
        print(f"  {figures['reviewed']}")
        if figures["judgments"] and set(figures["sources"]) == {"(none)"} and name not in lib.golden.shipped():
            print(f"  if people made them, say so: {report.how_to_confirm}")
    for note in report.notes:
        print(f"  {note}")
    for problem in report.problems:
        print(f"  {problem}")
