"""``ringtrue memory bench``: how good the memory is on judged sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.memory import Root, found_root
from ringtrue.cli.options import Json
from ringtrue.errors import InputError, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ringtrue.memory.bench import BenchRow

COLUMNS = (
    ("SetP@3", "SetP@3"), ("P@3", "P@3"), ("answered", "answered"), ("off-topic silent", "off-topic silent"),
    ("Silent", "silent"), ("FalseInject@3", "false"), ("R@10", "R@10"), ("RR", "MRR"),
)  # fmt: skip


def bench_command(
    golden: Annotated[
        list[str] | None,
        typer.Option("--golden", "-g", help="A judged set of memories: a name or a path; the two shipped ones unless given."),
    ] = None,
    root: Root = None,
    strategy: Annotated[list[str] | None, typer.Option(help="title_tags, fts5_bm25 or hybrid; default: all.")] = None,
    json: Json = False,
) -> None:
    """Measure the memory: what the hook shows unasked, what a search finds, and what M-9 asks of an agent's memory.

    A set that holds only questions is asked over your own memory folder. The hybrid needs its packages and takes longest.
    `ringtrue bench memory` measures the speed of the hook.

    Example: ringtrue memory bench
    Example: ringtrue memory bench --golden my-questions.jsonl --strategy fts5_bm25
    """
    from ringtrue.memory.bench import ARMS, OF_MEMORY, SETS, bench, over_folder

    known = sorted({arm.strategy for arm in ARMS})
    for name in strategy or ():
        if name not in known:
            raise InputError(f"there is no strategy '{name}'; did you mean {nearest(name, known)}?")
    arms = [arm for arm in ARMS if not strategy or arm.strategy in strategy]
    sets = [lib.golden.load(name) for name in golden or SETS]
    sets = [one if one.documents else over_folder(one, found_root(root)) for one in sets]
    rows = [row for one in sets for row in bench(one, arms)]
    show.end_if_json(json, {
            "rows": [
                {"golden": row.golden, "strategy": row.arm.strategy, "threshold": row.arm.threshold, "queries": row.queries,
                 "off_topic": row.off_topic, "measures": dict(row.measures)}
                for row in rows
            ]
        })  # fmt: skip
    cells = [[row.golden, row.arm.name, *(show.number(row.measures.get(name), 3) for name, _ in COLUMNS)] for row in rows]
    show.table(["set", "strategy, threshold", *(title for _, title in COLUMNS)], cells, text_columns=2)
    more = [name for name in (*OF_MEMORY, "abstention F1", "cold-start ratio", "session lift") if measured(rows, name)]
    if not more:
        return
    print()
    show.table(
        ["measure", *(f"{row.golden}: {row.arm.name}" for row in rows)],
        [[name, *(show.number(row.measures.get(name), 3) for row in rows)] for name in more],
    )


def measured(rows: Sequence[BenchRow], name: str) -> bool:
    """True if any row has the measure; a set without constitutional memories, say, has nothing to show for them."""
    return any(name in row.measures for row in rows)
