"""``ringtrue memory doctor``: whether the memory works, in numbers, and what to look at."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.memory import Root, found_root, printable
from ringtrue.cli.options import Json, StoreOptions, moment, utc_now
from ringtrue.errors import OK, REGRESSION, check_choice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ringtrue.memory.bench import BenchRow
    from ringtrue.memory.doctor import Checkup


SHOWN = 12
"""Findings of one kind that are printed; --all prints all."""
LONGEST = 1000
"""Characters of a finding that are printed; it may quote what a file holds."""


def doctor_command(
    days: Annotated[int, typer.Option(min=1, help="Days that the figures cover.")] = 30,
    stale_days: Annotated[
        int, typer.Option(min=1, help="Days without change or use after which a memory counts as stale.")
    ] = 365,
    silent_after: Annotated[
        int, typer.Option(min=1, help="Warn after this many consecutive prompts without an injection.")
    ] = 30,
    words_only: Annotated[
        bool, typer.Option("--words-only", help="Compare memories by words only, without the encoder.")
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
    window: dict[str, Any] = {"days": days, "stale_days": stale_days, "silent_after": silent_after}
    found = check_up(folder, now=time.time(), home=Path.home(), meaning=not words_only, **window)
    failed = not found.healthy or (strict and any(finding.level == "warning" for finding in found.findings))
    if json:
        show.as_json({"healthy": not failed, **show.plain(found)})
    else:
        _print(found, None if show_all else SHOWN)
    show.end_with(REGRESSION if failed else OK)


def _print(found: Checkup, limit: int | None) -> None:
    counts = f"{show.counted(found.memories, 'memory')}, {found.active} active"
    print(f"{printable(found.root)}: {counts}; compared by {found.compared_by}")
    figures = found.health
    times = ["—" if value is None else f"{value:.1f} ms" for value in (figures.ms_p50, figures.ms_p95)]
    roads = ", ".join(f"{road} {count}" for road, count in figures.roads.items())
    rows: list[list[object]] = [
        ["prompts", figures.prompts, f"in {figures.days:g} days; {figures.empty} empty, {figures.skipped} skipped"],
        ["injected", figures.injected, f"prompts, with {figures.injections} pointers in all"],
        ["silent", show.percent(figures.silent_rate, 0), "of the prompts that were looked up"],
        ["read after injection", show.percent(figures.read_after_injection_rate, 0), "of the prompts with an injection"],
        ["quoted after injection", show.percent(figures.reference_rate, 0), "of the prompts with an injection"],
        ["unused", show.percent(figures.unused_rate, 0), "of the prompts with an injection: neither read nor quoted"],
        ["answered by", roads or "—", "server: the MCP server of the session; numpy: the hook itself; words: without meaning"],
        ["false injections", show.percent(figures.false_inject_rate, 0), f"of {figures.judged} injections that were judged"],
        ["hook, median and p95", " / ".join(times), "own work, without the start of Python"],
    ]
    print()
    show.table(["figure", "value", "of what"], rows, text_columns=3)
    print()
    kinds: dict[tuple[str, str], list[str]] = {}
    for finding in found.findings:
        where = f" [{finding.path}]" if finding.path and not finding.ids else ""
        told = not finding.ids or finding.kind in ("duplicate", "contradiction", "stale", "dangling link")  # by its text
        names = "" if told else f"{', '.join(finding.ids[:8])}{' …' if len(finding.ids) > 8 else ''}: "
        said = f"{names}{finding.text}"
        kinds.setdefault((finding.level, finding.kind), []).append(f"{said}{where}; {finding.cure}")
    for (level, kind), lines in kinds.items():
        print(f"{level}: {kind} ({len(lines)})")
        for line in lines[:limit]:
            print("  " + printable(" ".join(line[:LONGEST].split())))
        show.more(len(lines) - len(lines[:limit]), "--all lists them", indent="  ")
    if not found.findings:
        print("nothing to look at")


RETENTION = "90d"
"""What is older, the store would prune again."""


def sync_command(
    *,
    root: Root = None,
    since: Annotated[str, typer.Option(help="Start time, or how far back to go: 24h, 7d.")] = RETENTION,
    hash_only: Annotated[
        bool, typer.Option("--hash-only", help="Store only a keyed hash of each prompt (needs RINGTRUE_LOG_SALT).")
    ] = False,
    options: StoreOptions,
) -> None:
    """Copy what the memory noted into the store: prompts, what they were shown, reads, quotations, validations and tasks.

    Running it again adds only what is new. Secrets and personal data are redacted first. Afterwards `ringtrue feedback derive
    --mixed separate`, `ringtrue log stats --tool memory_hook` and `ringtrue health` include the memory, and `ringtrue sessions`
    joins each session with the outcome of its tasks. The hook, searches over MCP and each strategy count as separate settings:
    a read after one says nothing about the ranks of another.

    Example: ringtrue memory sync
    Example: ringtrue memory sync --since 7d --project shop --json
    """
    from ringtrue.memory.signals import bring_journal, figures

    folder = found_root(root)
    began = str(moment(since, utc_now()))
    start = datetime.fromisoformat(began).timestamp()
    with options.open() as opened:
        cleaner = lib.log.Redactor(hash_only=hash_only)
        brought = bring_journal(folder, opened, project=options.project, since=start, cleaner=cleaner)
        rows_since = opened.queries(project=options.project, since=began)
        settings = set(map(lib.feedback.variant_of, rows_since))
    found = figures(folder, since=start)
    record = {"root": folder, "project": options.project, "brought": brought, "settings": sorted(settings)}
    show.end_if_json(options.json, record | {"figures": found.as_record()})
    names = {"queries": "searches", "feedback": "reads, quotations, validations", "tasks": "finished tasks"}
    counts = [[what, f"{getattr(brought, n):,}", f"{getattr(brought, f'new_{n}'):,}"] for n, what in names.items()]
    show.table(["", "noted", "new in the store"], counts)
    print()
    rates = show.pick(found, "silent_rate", "read_rate", "reference_rate", "false_inject_rate")
    rows = [["prompts searched for", f"{found.prompts:,}"], ["injections", f"{found.injections:,}"]]
    for name, value in rates.items():
        rows.append([name.replace("_", " "), "not known" if value is None else f"{value:.1%}"])
    show.table(["figure", "value"], rows)
    show.notes(f"{count:,} left: {why}" for why, count in sorted(brought.left.items()))
    if len(settings) > 1:
        show.note(f"{len(settings)} settings answered; derive judgments for each: ringtrue feedback derive --mixed separate")


COLUMNS = (
    ("SetP@3", "SetP@3"), ("P@3", "P@3"), ("answered", "answered"), ("off-topic silent", "off-topic silent"),
    ("Silent", "silent"), ("FalseInject@3", "false"), ("R@10", "R@10"), ("RR", "MRR"),
)  # fmt: skip


def bench_command(
    golden: Annotated[
        list[str] | None,
        typer.Option("--golden", "-g", help="A judged set of memories, by name or path; default: the shipped sets."),
    ] = None,
    root: Root = None,
    strategy: Annotated[list[str] | None, typer.Option(help="title_tags, fts5_bm25 or hybrid; default: all.")] = None,
    json: Json = False,
) -> None:
    """Measure the memory: what the hook shows unasked, what a search finds, and the measures of an agent memory.

    If a set tells kinds of prompts apart (direct, paraphrase, oblique, follow-up, near-miss, unrelated), the second table shows
    how many of each kind got the right memory, and of near-misses and unrelated prompts how many got anything.
    A set that holds only questions is asked over your own memory folder. The hybrid needs its packages and takes longest.
    `ringtrue bench memory` measures the speed of the hook.

    Example: ringtrue memory bench
    Example: ringtrue memory bench --golden my-questions.jsonl --strategy fts5_bm25
    """
    from ringtrue.memory.bench import ARMS, OF_MEMORY, SETS, bench, over_folder

    known = sorted({arm.strategy for arm in ARMS})
    for name in strategy or ():
        check_choice(name, known, f"there is no strategy '{name}'")
    arms = [arm for arm in ARMS if not strategy or arm.strategy in strategy]
    sets = [lib.golden.load(name) for name in golden or SETS]
    sets = [one if one.documents else over_folder(one, found_root(root)) for one in sets]
    rows = [row for one in sets for row in bench(one, arms)]
    named = ("golden", "queries", "off_topic", "measures", "dimensions")
    records = [{**show.pick(row, *named), **show.pick(row.arm, "strategy", "threshold")} for row in rows]
    show.end_if_json(json, {"rows": records})
    cells = [[row.golden, row.arm.name, *(show.number(row.measures.get(name), 3) for name, _ in COLUMNS)] for row in rows]
    show.table(["set", "strategy, threshold", *(title for _, title in COLUMNS)], cells, text_columns=2)
    _print_dimensions(rows)
    others = (*OF_MEMORY, "abstention F1", "cold-start ratio", "session lift")
    # A set without constitutional memories, say, has nothing to show for them.
    more = [name for name in others if any(name in row.measures for row in rows)]
    if more:
        print()
        cells = [[name, *(show.number(row.measures.get(name), 3) for row in rows)] for name in more]
        show.table(["measure", *(f"{row.golden}: {row.arm.name}" for row in rows)], cells)


def _print_dimensions(rows: Sequence[BenchRow]) -> None:
    """Print the share of prompts that got the right memory by kind of prompt; of near-misses and unrelated ones, anything."""
    from ringtrue.memory.bench import DIMENSIONS

    cells = []
    for row in rows:
        kinds = {kind.name: kind for kind in row.dimensions}
        answerable, right, first = (
            sum(getattr(kind, name) for kind in kinds.values()) for name in ("answerable", "right", "first")
        )
        if answerable:
            shares = [kinds[name] for name in DIMENSIONS if name in kinds]
            each = {kind.name: f"{kind.right if kind.answerable else kind.spoken}/{kind.prompts}" for kind in shares}
            total = [f"{right / answerable:.0%}", f"{first / right:.0%}" if right else "—"]
            cells.append([row.golden, row.arm.name, *(each.get(name, "—") for name in DIMENSIONS), *total])
    if cells:
        print("\nPrompts that got the right memory, by kind; near-misses and unrelated prompts that got anything")
        show.table(["set", "strategy, threshold", *DIMENSIONS, "right", "right one first"], cells, text_columns=2)
