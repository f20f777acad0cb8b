"""``ringtrue self-test`` and ``ringtrue bench``: is Ringtrue right, and is it fast?"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json, command_group
from ringtrue.errors import OK, REGRESSION, MissingInput


def self_test(
    conformance: Annotated[
        bool, typer.Option("--conformance", help="Also compare with trec_eval, on the measures that both have.")
    ] = False,
    trec_eval: Annotated[Path | None, typer.Option(help="The test/ folder of trec_eval's source code.")] = None,
    json: Json = False,
) -> None:
    """Check the measures against worked examples, offline.

    With --conformance, also compares them with trec_eval.

    Example: ringtrue self-test --conformance
    """
    examples = lib.testing.worked_examples()
    comparisons = []
    if conformance or trec_eval is not None:
        comparisons = lib.testing.against_reference()
        comparisons += lib.testing.against_trec_eval_files(trec_eval) if trec_eval else []
    wrong = [example for example in examples if example[1] != example[2]]
    off = [comparison for comparison in comparisons if not comparison.holds]
    worked = [{"example": name, "value": value, "expected": wanted} for name, value, wanted in examples]
    rows = [
        [name, show.number(value, 3), show.number(wanted, 3), "ok" if value == wanted else "WRONG"]
        for name, value, wanted in examples
    ]
    compared = [
        [one.measure, one.reference, one.values, f"{one.largest_difference:.1e}", f"{one.allowed:.0e}",
         "ok" if one.holds else f"OFF at {one.where}"]
        for one in sorted(comparisons, key=lambda one: (one.reference, one.measure))
    ]  # fmt: skip
    more = f"; {sum(one.values for one in comparisons)} values compared, {len(off)} measures off" if comparisons else ""
    show.result(
        json,
        {"passed": not wrong and not off, "worked_examples": worked, "conformance": comparisons},
        show.Table(("worked example", "value", "expected", ""), rows),
        show.Table(("measure", "reference", "values", "largest difference", "allowed", ""), compared, 2),
        f"\n{len(examples) - len(wrong)} of {len(examples)} worked examples hold{more}",
        code=REGRESSION if wrong or off else OK,
    )


app = command_group("Run benchmarks next to comparable libraries.")
# The script reads its own options, --help among them.
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


_BENCHMARKS = {
    "measures": "Score one large run with ringtrue, pytrec_eval, ir_measures and ranx, each in its own process.",
    "retrieve": "Time ringtrue's search, indexing and encoding beside tantivy, bm25s, SQLite FTS5 and NumPy.",
    "quality": "Measure how good ringtrue's retrievers are on public collections, against the promised floors.",
    "stats": "Time ringtrue's sign-flip test and bootstrap beside those of scipy.stats.",
    "memory": "Measure the agent memory on judged sets, and time its hook as a host runs it, beside the bare start of Python.",
    "log": "Time logging in the caller's path beside a plain INSERT, and how many searches a second can be logged without "
    "loss.",
    "service": "Log thousands of searches a second through a running server while its pages are read, beside a bare FastAPI "
    "endpoint.",
}
"""Each is a script of that name in ``benchmarks/``."""


def _run(context: typer.Context) -> None:
    script = Path(__file__).parents[3] / "benchmarks" / f"{context.info_name}.py"
    if not script.is_file():
        raise MissingInput(f"{script}: the benchmarks come with the source checkout; clone it and run `make bench` there")
    sys.path.insert(0, str(script.parent))  # as `python benchmarks/….py` has it: the scripts share a module
    sys.exit(runpy.run_path(str(script))["main"](context.args))


for _name, _help in _BENCHMARKS.items():
    app.command(_name, context_settings=_PASSED_ON, help=f"{_help}\n\nExample: ringtrue bench {_name} --check")(_run)
