"""``ringtrue bench``: the side-by-side benchmarks of the source checkout."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import typer

from ringtrue.cli.options import command_group
from ringtrue.errors import MissingInput

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


def _command(name: str) -> None:
    def run(context: typer.Context) -> None:
        _run(name, context.args)

    app.command(name, context_settings=_PASSED_ON, help=f"{_BENCHMARKS[name]}\n\nExample: ringtrue bench {name} --check")(run)


def _run(name: str, arguments: list[str]) -> None:
    script = Path(__file__).parents[3] / "benchmarks" / f"{name}.py"
    if not script.is_file():
        raise MissingInput(f"{script}: the benchmarks come with the source checkout; clone it and run `make bench` there")
    sys.path.insert(0, str(script.parent))  # as `python benchmarks/….py` has it: the scripts share a module
    found = runpy.run_path(str(script))
    sys.exit(found["main"](arguments))


for _name in _BENCHMARKS:
    _command(_name)
