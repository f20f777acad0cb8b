"""``ringtrue memory doctor``: whether the memory works, in numbers, and what to look at."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.memory import Root, found_root, printable
from ringtrue.cli.options import Json
from ringtrue.errors import REGRESSION

if TYPE_CHECKING:
    from ringtrue.memory.doctor import Checkup

SHOWN = 12
"""Findings of one kind that are printed; --all prints all."""
LONGEST = 1000
"""Characters of a finding that are printed; it may quote what a file holds."""


def doctor_command(
    days: Annotated[int, typer.Option(min=1, help="Window of the figures, in days.")] = 30,
    stale_days: Annotated[int, typer.Option(min=1, help="Days without a change or use that make a memory stale.")] = 365,
    silent_after: Annotated[int, typer.Option(min=1, help="Prompts without an injection that are worth a word.")] = 30,
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Compare memories by words alone, without the encoder.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 for warnings, too.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="Print every finding.")] = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Look for what is wrong with the memories and their use; exit 1 when something is an error. Nothing is changed.

    Example: ringtrue memory doctor
    Example: ringtrue memory doctor --strict --json
    """
    from ringtrue.memory.doctor import check_up

    folder = found_root(root)
    found = check_up(
        folder,
        now=time.time(),
        home=Path.home(),
        days=days,
        stale_days=stale_days,
        silent_after=silent_after,
        meaning=not words_only,
    )
    failed = not found.healthy or (strict and any(finding.level == "warning" for finding in found.findings))
    if json:
        show.as_json({"healthy": not failed, **show.plain(found)})
    else:
        _print(found, None if show_all else SHOWN)
    if failed:
        raise typer.Exit(REGRESSION)


def _print(found: Checkup, limit: int | None) -> None:
    print(
        f"{printable(found.root)}: {show.counted(found.memories, 'memory')}, "
        f"{found.active} active; compared by {found.compared_by}"
    )
    figures = found.health
    rows: list[list[object]] = [
        ["prompts", figures.prompts, f"in {figures.days:g} days; {figures.empty} empty, {figures.skipped} skipped"],
        ["injected", figures.injected, f"prompts, with {figures.injections} pointers in all"],
        ["silent", show.percent(figures.silent_rate, 0), "of the prompts that were looked up"],
        ["read after injection", show.percent(figures.read_after_injection_rate, 0), "of the prompts with an injection"],
        ["quoted after injection", show.percent(figures.reference_rate, 0), "of the prompts with an injection"],
        ["unused", show.percent(figures.unused_rate, 0), "of the prompts with an injection: neither read nor quoted"],
        ["false injections", show.percent(figures.false_inject_rate, 0), f"of {figures.judged} injections that were judged"],
        ["hook, median and p95", f"{_ms(figures.ms_p50)} / {_ms(figures.ms_p95)}", "own work, without the start of Python"],
    ]
    print()
    show.table(["figure", "value", "of what"], rows, text_columns=3)
    print()
    kinds: dict[tuple[str, str], list[str]] = {}
    for finding in found.findings:
        where = f" [{finding.path}]" if finding.path and not finding.ids else ""
        names = f" {', '.join(finding.ids[:8])}{' …' if len(finding.ids) > 8 else ''}:" if finding.ids else ""
        said = (
            finding.text
            if finding.kind in ("duplicate", "contradiction", "stale", "dangling link")
            else f"{names} {finding.text}".strip()
        )
        kinds.setdefault((finding.level, finding.kind), []).append(f"{said}{where}; {finding.cure}")
    for (level, kind), lines in kinds.items():
        print(f"{level}: {kind} ({len(lines)})")
        for line in lines[:limit]:
            print("  " + printable(" ".join(line[:LONGEST].split())))
        if limit is not None and len(lines) > limit:
            print(f"  … and {len(lines) - limit} more; see --all")
    if not found.findings:
        print("nothing to look at")


def _ms(value: float | None) -> str:
    return "—" if value is None else f"{value:.1f} ms"
