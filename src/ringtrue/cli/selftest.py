"""``ringtrue self-test``: the measures against shipped references, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.options import Json
from ringtrue.errors import REGRESSION


def self_test(
    conformance: Annotated[bool, typer.Option("--conformance", help="Also compare shared measures with trec_eval.")] = False,
    trec_eval: Annotated[Path | None, typer.Option(help="The test/ folder of trec_eval's source, to compare with.")] = None,
    json: Json = False,
) -> None:
    """Check the measures against worked examples, offline. With --conformance also against trec_eval.

    Example: ringtrue self-test --conformance
    """
    from ringtrue.testing import against_reference, against_trec_eval_files, worked_examples

    examples = worked_examples()
    comparisons = []
    if conformance or trec_eval is not None:
        comparisons = against_reference()
        folder = trec_eval or beside_checkout()
        if folder is not None:
            comparisons += against_trec_eval_files(folder)
    wrong = [example for example in examples if example[1] != example[2]]
    off = [comparison for comparison in comparisons if not comparison.holds]
    if json:
        show.as_json(
            {
                "passed": not wrong and not off,
                "worked_examples": [{"example": name, "value": value, "expected": wanted} for name, value, wanted in examples],
                "conformance": comparisons,
            }
        )
    else:
        rows = [
            [name, show.number(value, 3), show.number(wanted, 3), "ok" if value == wanted else "WRONG"]
            for name, value, wanted in examples
        ]
        show.table(["worked example", "value", "expected", ""], rows)
        if comparisons:
            print()
            show.table(
                ["measure", "reference", "values", "largest difference", "allowed", ""],
                [
                    [
                        c.measure,
                        c.reference,
                        str(c.values),
                        f"{c.largest_difference:.1e}",
                        f"{c.allowed:.0e}",
                        "ok" if c.holds else f"OFF at {c.where}",
                    ]
                    for c in sorted(comparisons, key=lambda c: (c.reference, c.measure))
                ],
                text_columns=2,
            )
        compared = sum(comparison.values for comparison in comparisons)
        print(
            f"\n{len(examples) - len(wrong)} of {len(examples)} worked examples hold"
            + (f"; {compared} values compared, {len(off)} measures off" if comparisons else "")
        )
    if wrong or off:
        raise typer.Exit(REGRESSION)


def beside_checkout() -> Path | None:
    """Return trec_eval's test files if a source checkout has the large collections beside it."""
    folder = Path(__file__).parents[4] / "shared" / "data" / "trec_eval_test"
    return folder if (folder / "out.test.aq").is_file() else None
