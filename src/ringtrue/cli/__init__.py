"""The command line: each file parses one group of commands, calls one function of the library and prints.

Nothing is computed here, and nothing below here prints or exits. Heavy imports stay inside the commands, so that
``ringtrue --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ringtrue.cli.lazy import lazy_group
from ringtrue.config import Config, load_config
from ringtrue.errors import BAD_INPUT, OK, UNDECIDED, InputError, RingtrueError, nearest

GROUPS = {
    "Measure": {
        "init": "init:init_command",
        "demo": "demo:demo",
        "golden": "golden:app",
        "ingest": "search:ingest_command",
        "search": "search:search_command",
        "eval": "eval:eval_command",
        "score": "score:score_command",
        "diff": "compare:diff_command",
        "report": "report:report_command",
    },
    "Judge": {
        "compare": "compare:compare_command",
        "gate": "gate:gate_command",
        "baseline": "gate:app",
        "ci": "ci:ci_command",
        "comment": "ci:comment_command",
        "experiment": "experiment:app",
        "sweep": "sweep:sweep_command",
        "review": "review:app",
    },
    "Live": {
        "log": "log:app",
        "feedback": "feedback:app",
        "sessions": "feedback:sessions_command",
        "shadow": "shadow:app",
        "interleave": "abtest:interleave_command",
        "test": "abtest:app",
        "flag": "flag:app",
    },
    "Operate": {
        "serve": "serve:serve_command",
        "health": "serve:health_command",
        "store": "store:app",
        "keys": "serve:app",
        "self-test": "check:self_test",
        "bench": "check:app",
    },
    "Memory": {"memory": "memory:app"},
}
"""Every command in the order of the help, with its file here and the function or the command group in it."""

app = typer.Typer(
    name="ringtrue",
    cls=lazy_group(GROUPS),
    help="Tells you whether a search is good, whether a change made it better or worse, and whether that is certain.",
    epilog="Start with: ringtrue demo. Exit codes: 0 pass, 1 a check failed, 2 usage or bad input, 3 could not decide.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # coloured help costs 150 ms of imports on every --help
    context_settings={"help_option_names": ["-h", "--help"]},
)


NO_SETTINGS = {"install_completion", "show_completion"}
"""Options that do something at once; none is a setting."""

UNREAD = 141
"""Exit code if the reader of the output has gone: the one of a program that SIGPIPE ends."""
ABOUT_OUTPUT = {"out", "reports", "no_report", "html", "verbose", "json"}
"""Options of ``eval`` that say nothing about what is evaluated."""


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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error (anywhere on the line).")] = False,
) -> None:
    """Common options."""


def script() -> None:
    """The installed program: like other tools it ends quietly when the reader of its output goes away."""
    try:
        main()
    except BrokenPipeError:
        pass
    except SystemExit as end:
        # The parser of commands ends with 1 for a closed pipe; here, 1 stands for a check that failed.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
    # What is left in the buffers goes nowhere, as it would anyway, but without an error at the very end.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    sys.exit(UNREAD)


def main() -> None:
    """Run the command line; a deliberate error becomes one line and its exit code."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    try:
        settings = load_config()
        _check_settings(settings)
        code = app(
            args=arguments,
            prog_name="ringtrue",
            standalone_mode=False,
            # Every option has its variable; naming them all would drown the help.
            auto_envvar_prefix=None if {"-h", "--help"} & set(arguments) else "RINGTRUE",
            default_map=_defaults(settings),
        )
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except Exception as problem:
        if debug:
            traceback.print_exc()
        code, message = _explain(problem)
        if message:
            from ringtrue.cli.show import harmless

            print("ringtrue: " + harmless(" ".join(message.splitlines())), file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
        print("ringtrue: stopped", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else OK)


def _defaults(settings: Config) -> dict[str, Any]:
    """Return the defaults of all options: what ``[eval]`` names holds for the gate and the server, too."""
    evaluated = settings.commands.get("eval", {})
    shared = {name: value for name, value in evaluated.items() if name not in ABOUT_OUTPUT}
    searched = {name: evaluated[name] for name in ("golden", "retriever", "folder") if name in evaluated}
    own = settings.commands
    return {**own, "gate": {**shared, **own.get("gate", {})}, "serve": {**searched, **own.get("serve", {})}}


def _explain(problem: Exception) -> tuple[int, str]:
    """Return the exit code and the one line that an error deserves."""
    if isinstance(problem, RingtrueError):
        return problem.exit_code, str(problem)
    if type(problem).__name__ == "NoArgsIsHelpError":
        problem.show()  # type: ignore[attr-defined]  # the help itself
        return BAD_INPUT, ""
    if hasattr(problem, "format_message"):  # a usage error of the parser, whose classes typer does not make public
        context = getattr(problem, "ctx", None)
        where = context.command_path if context is not None else "ringtrue"
        named = {option.name for option in context.command.params} if context is not None else set()
        hint = (
            "; name the golden set with --golden." if "golden" in named and "extra argument" in problem.format_message() else ""
        )
        return BAD_INPUT, f"{problem.format_message()}{hint} See `{where} --help`."
    if isinstance(problem, OSError):
        name = f"{problem.filename}: " if problem.filename else ""
        return BAD_INPUT, f"{name}{problem.strerror or problem}; check path, permissions and free space"
    return UNDECIDED, f"internal error: {type(problem).__name__}: {problem}; please report it with the output of --debug"


def _check_settings(settings: Config) -> None:
    """Raise InputError for a name in ringtrue.toml that no command has; it would be ignored in silence otherwise."""
    if settings.file is None:
        return

    def check(section: Mapping[str, Any], command: Any, path: str) -> None:
        options = {option.name for option in command.params} - NO_SETTINGS
        inner = getattr(command, "commands", {})
        for name, value in section.items():
            known = inner if isinstance(value, dict) else options
            if name not in known:
                legal = [*inner, *sorted(options), *([] if path else ["connections"])]
                raise InputError(f"{settings.file}: there is no '{path}{name}'; did you mean {nearest(name, legal)}?")
            if isinstance(value, dict):
                check(value, inner[name], f"{path}{name}.")

    check(settings.commands, typer.main.get_command(app), "")
