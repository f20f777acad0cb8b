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


@app.command("measures", context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
def measures(context: typer.Context) -> None:
    """Score one large run with ringtrue, pytrec_eval, ir_measures and ranx, each in its own process.

    Example: ringtrue bench measures --check
    """
    _run("measures", context.args)


def _run(name: str, arguments: list[str]) -> None:
    script = Path(__file__).parents[3] / "benchmarks" / f"{name}.py"
    if not script.is_file():
        raise MissingInput(f"{script}: the benchmarks come with the source checkout; clone it and run `make bench` there")
    found = runpy.run_path(str(script))
    sys.exit(found["main"](arguments))
