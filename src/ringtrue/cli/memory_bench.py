"""``ringtrue memory bench``: how good the memory is on judged sets (A-10, M-9)."""

from __future__ import annotations

from typing import Annotated

import typer

from ringtrue.cli.store import Json
from ringtrue.errors import InputError, nearest

COLUMNS = (
    ("SetP@3", "SetP@3"), ("P@3", "P@3"), ("answered", "answered"), ("off-topic silent", "off-topic silent"),
    ("Silent", "silent"), ("FalseInject@3", "false"), ("R@10", "R@10"), ("RR", "MRR"),
)  # fmt: skip


def bench_command(
    golden: Annotated[
        list[str] | None,
        typer.Option("--golden", "-g", help="A judged set of memories: a name or a path; the two shipped ones unless given."),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", help="title_tags, fts5_bm25 or hybrid; repeatable, all unless given."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure the memory: what the hook shows unasked, what a search finds, and what M-9 asks of an agent's memory.

    The hybrid needs its packages and takes longest. The speed of the hook is measured by `ringtrue bench memory`.

    \b
    Example: ringtrue memory bench
    Example: ringtrue memory bench --golden memory-bench --strategy fts5_bm25 --json
    """
    from ringtrue.cli import show
    from ringtrue.golden import load
    from ringtrue.memory.bench import ARMS, OF_MEMORY, SETS, bench

    known = sorted({arm.strategy for arm in ARMS})
    for name in strategy or ():
        if name not in known:
            raise InputError(f"there is no strategy '{name}'; did you mean {nearest(name, known)}?")
    arms = [arm for arm in ARMS if not strategy or arm.strategy in strategy]
    rows = [row for name in golden or SETS for row in bench(load(name), arms)]
    if json:
        show.as_json({
            "rows": [
                {"golden": row.golden, "strategy": row.arm.strategy, "threshold": row.arm.threshold, "queries": row.queries,
                 "off_topic": row.off_topic, "measures": dict(row.measures)}
                for row in rows
            ]
        })  # fmt: skip
        return
    cells = [[row.golden, row.arm.name, *(show.number(row.measures.get(name), 3) for name, _ in COLUMNS)] for row in rows]
    show.table(["set", "strategy, threshold", *(title for _, title in COLUMNS)], cells, text_columns=2)
    more = (*OF_MEMORY, "abstention F1", "cold-start ratio", "session lift")
    print()
    show.table(
        ["measure", *(f"{row.golden}: {row.arm.name}" for row in rows)],
        [[name, *(show.number(row.measures.get(name), 3) for row in rows)] for name in more],
    )
