"""``ringtrue learn``: weights for a fusion, from a golden set, confirmed on its held-out part."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.ingest import DEFAULT_FOLDER
from ringtrue.cli.options import Json


def learn_command(
    golden: Annotated[str, typer.Argument(help="A golden set with judgments: a shipped name, a file or a BEIR folder.")],
    channels: Annotated[list[str] | None, typer.Option("--channel", "-c", help="A retriever; default: bm25 and dense.")] = None,
    folder: Annotated[Path, typer.Option("--in", help="Folder made by ringtrue ingest.")] = DEFAULT_FOLDER,
    held_out: Annotated[float, typer.Option(help="Share of the queries kept for confirmation.")] = 0.3,
    seed: Annotated[int, typer.Option(help="Which queries are held out.")] = 0,
    json: Json = False,
) -> None:
    """Learn channel weights and confirm them on held-out queries.

    Example: ringtrue ingest hotel && ringtrue learn hotel
    """
    from ringtrue.cli.search import asks_others, check_judged, opened
    from ringtrue.golden import load, split
    from ringtrue.retrieve.learn import MEASURE, answers_of, learn, reached

    names = channels or ["bm25", "dense"]
    whole = load(golden)
    tuning, rest = split(whole, held_out=held_out, seed=seed)
    collection = opened(folder)
    check_judged(whole, collection, certain=not any(map(asks_others, names)))
    answers = answers_of(names, collection, whole)
    learned = learn(names, answers, tuning)
    sides = {"tuning": tuning, "held_out": rest}
    parts = {
        side: {query.query_id: answers[query.query_id] for query in part.queries if query.query_id in answers}
        for side, part in sides.items()
    }
    even = [1 / len(names)] * len(names)
    rows = {
        "rrf": None,
        "equal weights": even,
        "learned": learned.weights,
    }
    values = {name: {side: reached(parts[side], sides[side], weights) for side in sides} for name, weights in rows.items()}
    better = values["learned"]["held_out"] >= values["rrf"]["held_out"]
    if json:
        show.end_with_json(
            {"expression": str(learned.expression), "measure": MEASURE, "values": values, "not_worse_than_rrf": better}
        )
    table = [(name, show.number(value["tuning"]), show.number(value["held_out"])) for name, value in values.items()]
    counts = [f"{side.replace('_', ' ')} ({len(part)} queries)" for side, part in parts.items()]
    show.table([MEASURE, *counts], table)
    print(f"\nlearned: {learned.expression}")
    if better:
        print(
            "On the held-out queries it is not worse than RRF. A difference this small may be chance; compare before you ship."
        )
    else:
        print("On the held-out queries it is worse than RRF: keep RRF or the default hybrid.")
