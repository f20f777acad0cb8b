"""The command line: each file parses one group of commands, calls one function of the library and prints.

Nothing is computed here, and nothing below here prints or exits. Heavy imports stay inside the commands, so that
``ringtrue --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ringtrue.errors import BAD_INPUT, UNDECIDED, RingtrueError

app = typer.Typer(
    name="ringtrue",
    help="Tells you whether a search is good, whether a change made it better or worse, and whether that is certain.",
    epilog="Start with: ringtrue demo. Exit codes: 0 pass, 1 a check failed, 2 usage or bad input, 3 could not decide.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # coloured help costs 150 ms of imports on every --help
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"ringtrue {version('ringtrue')}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the whole traceback of an error (anywhere on the line).")
    ] = False,
) -> None:
    """Common options."""


def _add_commands() -> None:
    from ringtrue.cli import bench, demo, diff, golden, score, selftest

    app.command("demo")(demo.demo)
    app.command("score")(score.score_command)
    app.command("diff")(diff.diff_command)
    app.command("self-test")(selftest.self_test)
    app.add_typer(golden.app, name="golden")
    app.add_typer(bench.app, name="bench")


_add_commands()


def main() -> None:
    """Run the command line; a deliberate error becomes one line and its exit code."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        app(args=arguments)
    except RingtrueError as problem:
        if debug:
            raise
        _say(str(problem))
        sys.exit(problem.exit_code)
    except BrokenPipeError:
        # The reader of a pipe (head, less) went away; Python would complain again while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        _say("stopped")
        sys.exit(130)
    except Exception as problem:
        if debug:
            raise
        _say(f"internal error: {type(problem).__name__}: {problem}; please report it with the output of --debug")
        sys.exit(UNDECIDED)


def _say(problem: str) -> None:
    print("ringtrue: " + " ".join(problem.split("\n")), file=sys.stderr)
