"""``ringtrue bench``: the side-by-side benchmarks of the source checkout."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import typer

from ringtrue.errors import MissingInput

app = typer.Typer(
    help="Run a benchmark beside its peers, in the same run, with ratios.", no_args_is_help=True, rich_markup_mode=None
)
# The script reads its own options, --help among them.
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command("measures", context_settings=_PASSED_ON)
def measures(context: typer.Context) -> None:
    """Score one large run with ringtrue, pytrec_eval, ir_measures and ranx, each in its own process.

    Example: ringtrue bench measures --check
    """
    _run("measures", context.args)


@app.command("retrieve", context_settings=_PASSED_ON)
def retrieve(context: typer.Context) -> None:
    """Time ringtrue's search, indexing and encoding beside tantivy, bm25s, SQLite FTS5 and NumPy.

    Example: ringtrue bench retrieve --check
    """
    _run("retrieve", context.args)


@app.command("quality", context_settings=_PASSED_ON)
def quality(context: typer.Context) -> None:
    """Measure how good ringtrue's retrievers are on public collections, against the promised floors.

    Example: ringtrue bench quality --check
    """
    _run("quality", context.args)


@app.command("stats", context_settings=_PASSED_ON)
def stats(context: typer.Context) -> None:
    """Time ringtrue's sign-flip test and bootstrap beside those of scipy.stats.

    Example: ringtrue bench stats --check
    """
    _run("stats", context.args)


@app.command("memory", context_settings=_PASSED_ON)
def memory(context: typer.Context) -> None:
    """Measure the agent memory on judged sets, and time its hook as a host runs it, beside the bare start of Python.

    Example: ringtrue bench memory --check
    """
    _run("memory", context.args)


@app.command("log", context_settings=_PASSED_ON)
def log(context: typer.Context) -> None:
    """Time logging in the caller's path beside a plain INSERT, and how many searches a second can be logged without loss.

    Example: ringtrue bench log --check
    """
    _run("log", context.args)


def _run(name: str, arguments: list[str]) -> None:
    script = Path(__file__).parents[3] / "benchmarks" / f"{name}.py"
    if not script.is_file():
        raise MissingInput(f"{script}: the benchmarks come with the source checkout; clone it and run `make bench` there")
    sys.path.insert(0, str(script.parent))  # as `python benchmarks/….py` has it: the scripts share a module
    found = runpy.run_path(str(script))
    sys.exit(found["main"](arguments))
