"""What every benchmark here shares: processes that are measured, the machine they ran on, tables, limits, and how a run ends.

A benchmark returns a report, a dict whose ``limits`` are made by ``limit``, and its text in Markdown; ``finish`` does the rest.
Nothing heavy is imported: a child's peak memory starts at its parent's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / ".bench"
"""Generated data and the last result of each benchmark."""
QUIET = 0.15
"""Cores that other processes may use meanwhile before the report asks for another run."""
Marks = tuple[str, str]
VERDICT = {True: "met", False: "**missed**", None: "not measured"}


class Failure(Exception):
    """The benchmark cannot be run as asked; the message says why and what to do."""


@contextmanager
def awake() -> Iterator[bool]:
    """Keep the processors from going to sleep, where this user may; yields whether they are kept.

    A virtual processor that sleeps is given to others, and its host may take 20 ms to give it back: that is the host's time,
    not that of the program which is measured. cyclictest does the same.
    """
    with ExitStack() as held:
        try:
            latency = held.enter_context(Path("/dev/cpu_dma_latency").open("wb", buffering=0))
            latency.write(struct.pack("i", 0))  # microseconds; it holds while the file is open
            kept = True
        except OSError:
            kept = False
        yield kept


# ── options and the end ─────────────────────────────────────────────────────────────────────────────────────────────


def marks(name: str) -> Marks:
    """Return the two lines between which a file holds the result of a benchmark."""
    return f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"


def add_common_options(parser: argparse.ArgumentParser, marks: Marks) -> None:
    """Add ``--check``, ``--json`` and ``--write``, which ``finish`` obeys."""
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed, and name it")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of Markdown")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"also write the result between {marks[0]} marks of FILE")
    parser.set_defaults(marks=marks)


def positive(text: str) -> int:
    """Return the number an option is given; for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def carry_out(
    name: str,
    run: Callable[[argparse.Namespace], dict[str, Any]],
    render: Callable[[dict[str, Any]], str],
    options: argparse.Namespace,
) -> int:
    """Run a benchmark and finish it; return 0, 1 when ``--check`` finds a limit missed, or 2 when it cannot be run."""
    try:
        report = run(options)
    except Failure as problem:
        say("")  # what was said so far may stand on an unfinished line
        print(f"bench {name}: {problem}", file=sys.stderr)
        return 2
    return finish(name, report, render(report), options)


def finish(name: str, report: dict[str, Any], text: str, options: argparse.Namespace) -> int:
    """Keep and print the result; return 1 when ``--check`` finds a limit missed, else 0."""
    BENCH.mkdir(exist_ok=True)
    (BENCH / f"{name}.md").write_text(text, encoding="utf-8")
    if options.write is not None:
        write_section(options.write, text, options.marks)
    print(json.dumps(report, ensure_ascii=False, indent=1) if options.json else text)
    missed = [limit for limit in report["limits"] if limit["met"] is False]
    if options.check:
        for limit in missed:
            print(f"missed: {limit['name']}: {limit['found']}, wanted {limit['wanted']}", file=sys.stderr)
    return 1 if options.check and missed else 0


def limit(name: str, wanted: str, found: str, met: bool | None) -> dict[str, Any]:
    """Return one limit and what was found; ``met`` is None if it was not measured."""
    return {"name": name, "wanted": wanted, "found": found, "met": met}


def write_section(path: Path, text: str, marks: Marks) -> None:
    """Put ``text`` between the marks of a file; a file without marks gets them at its end."""
    first, last = marks
    content = path.read_text(encoding="utf-8") if path.exists() else ""
    section = f"{first}\n{text}{last}"
    if first in content and last in content.split(first, 1)[1]:
        before, rest = content.split(first, 1)
        content = before + section + rest.split(last, 1)[1]
    else:
        content = content + ("\n" if content and not content.endswith("\n\n") else "") + section + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


# ── measuring ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Sample(NamedTuple):
    """What one process took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    others: float | None
    """Cores that other processes kept busy meanwhile; None if the system does not tell."""
    output: bytes


def measure(command: list[str], environment: dict[str, str]) -> Sample:
    """Run one process to its end and return its wall time, its own peak memory and what it printed."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        busy, start = busy_seconds(), time.perf_counter()
        child = subprocess.Popen(command, stdout=output, stderr=errors, env=os.environ | environment)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        after = busy_seconds()
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if child.returncode != 0:
            said = errors.read().decode(errors="replace")[-2000:].strip()
            raise Failure(f"{' '.join(command)[:200]} … ended with {child.returncode}: {said}")
        unit = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes, Linux kilobytes
        cpu = usage.ru_utime + usage.ru_stime
        others = None if busy is None or after is None else max(0.0, after - busy - cpu) / seconds
        return Sample(seconds, cpu, usage.ru_maxrss * unit / 1e6, others, output.read())


def busy_seconds() -> float | None:
    """Return the processor time that all processes have used since the machine started, on Linux."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    user, nice, system, _idle, _wait, *interrupts = map(int, stat.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def source_environment() -> dict[str, str]:
    """Return what a child needs so that it imports the ringtrue of this checkout."""
    return {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])}


def source_version() -> str:
    """Return the version of the ringtrue of this checkout."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def machine() -> dict[str, Any]:
    """Return what the numbers depend on; call it first, for the load before the start."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return {
        "cores": os.cpu_count(),
        "cpu": model,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 2),
    }


# ── showing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def say(text: str, *, keep: bool = False) -> None:
    """Show where the benchmark is: one line that is written over on a terminal, lines in a log."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="\n" if keep else "", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def table(names: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 2) -> str:
    """Return a Markdown table; the first ``text_columns`` stand left, the others right."""
    widths = [max(map(len, column)) for column in zip(names, *rows)]
    sides = [str.ljust if place < text_columns else str.rjust for place in range(len(names))]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(side(cell, width) for side, cell, width in zip(sides, cells, widths)) + " |"

    rules = ["-" * width + ("-" if place < text_columns else ":") for place, width in enumerate(widths)]
    return "\n".join([line(names), f"|-{'|-'.join(rules)}|", *map(line, rows)])


def limits_table(limits: Sequence[dict[str, Any]]) -> str:
    """Return the limits with what was found."""
    rows = [(limit["name"], limit["wanted"], limit["found"], VERDICT[limit["met"]]) for limit in limits]
    return table(("limit", "wanted", "found", ""), rows, text_columns=1)


def machine_line(machine: dict[str, Any], others: Sequence[float | None] = ()) -> str:
    """Say where the numbers were taken, and how much of the machine other processes used meanwhile."""
    text = (
        f"Machine: {machine['cores']} cores, {machine['cpu']}, {machine['system']}, Python {machine['python']}; "
        f"load {machine['load_before']} before the start"
    )
    known = [share for share in others if share is not None]
    if known:
        text += f"; others kept {statistics.mean(known):.2f} cores busy on average, {max(known):.2f} at most"
        text += ", SO REPEAT IT ON A QUIET MACHINE" if max(known) > QUIET else ""
    return text + "."
