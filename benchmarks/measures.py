"""Ringtrue beside pytrec_eval, ir_measures and ranx: one generated run, six measures, each tool in a process of its own.

``python benchmarks/measures.py --check`` times every tool from the start of its process to its end, files included, and
takes the peak memory of that one process from the operating system. Repetitions are interleaved, so that a busy minute of
the machine falls on all tools alike; the median counts. This script itself imports nothing heavy: a child's peak memory
starts at its parent's.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from common import (
    BENCH,
    Failure,
    Sample,
    add_common_options,
    carry_out,
    limit,
    limits_table,
    machine,
    machine_line,
    marks,
    measure,
    positive,
    say,
    source_environment,
    source_version,
    table,
)

# The limits, meant for the default size and one machine that does nothing else.
FASTER_THAN = {"pytrec_eval": 4.0, "ir_measures": 8.0, "ranx": 40.0}  # seconds of the peer ÷ seconds of ringtrue, at least
MEMORY_OF = "pytrec_eval"  # ringtrue's peak is at most this tool's
SAME_MEAN = 1e-6  # pytrec_eval and ir_measures must agree this closely; ranx breaks ties otherwise and is only compared
LINEAR = 1.5  # seconds per row at the largest size ÷ seconds per row at the size before it, at most
REPEATED_RUNS = 10  # whose output is compared byte for byte

MEASURES = ("nDCG@10", "R@100", "R@1000", "AP", "RR", "P@5")
GROWTH_ROWS = (100_000, 1_000_000, 7_000_000, 30_000_000)
KEPT_ROWS = 10_000_000  # larger generated files are deleted after use
RANX = BENCH / "ranx-venv"

PYTREC_EVAL = """
import json, sys, pytrec_eval
with open(sys.argv[1]) as qrels_file, open(sys.argv[2]) as run_file:
    qrels, run = pytrec_eval.parse_qrel(qrels_file), pytrec_eval.parse_run(run_file)
names = {
    "nDCG@10": "ndcg_cut_10", "R@100": "recall_100", "R@1000": "recall_1000", "AP": "map", "RR": "recip_rank", "P@5": "P_5"
}
found = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recall.100,1000", "map", "recip_rank", "P.5"}).evaluate(run)
mean = lambda name: pytrec_eval.compute_aggregated_measure(name, [values[name] for values in found.values()])
print(json.dumps({"aggregate": {measure: float(mean(name)) for measure, name in names.items()}}))
"""
IR_MEASURES = """
import json, sys, ir_measures
from ir_measures import AP, RR, P, R, nDCG
qrels, run = ir_measures.read_trec_qrels(sys.argv[1]), ir_measures.read_trec_run(sys.argv[2])
found = ir_measures.calc_aggregate([nDCG@10, R@100, R@1000, AP, RR, P@5], qrels, run)
print(json.dumps({"aggregate": {str(measure): float(value) for measure, value in found.items()}}))
"""
RANX_SCRIPT = """
import json, sys
from ranx import Qrels, Run, evaluate
qrels, run = Qrels.from_file(sys.argv[1], kind="trec"), Run.from_file(sys.argv[2], kind="trec")
names = {"nDCG@10": "ndcg@10", "R@100": "recall@100", "R@1000": "recall@1000", "AP": "map", "RR": "mrr", "P@5": "precision@5"}
found = evaluate(qrels, run, list(names.values()))
print(json.dumps({"aggregate": {measure: float(found[name]) for measure, name in names.items()}}))
"""


class Files(NamedTuple):
    """One generated input."""

    queries: int
    depth: int
    qrels: Path
    run: Path


def means(sample: Sample) -> dict[str, float]:
    """Return the means that a tool printed."""
    return dict(json.loads(sample.output)["aggregate"])


class Tool(NamedTuple):
    """A contender: how to call it on a qrels file and a run file."""

    name: str
    version: str
    command: Callable[[Path, Path], list[str]]
    environment: dict[str, str]

    def measure(self, files: Files, *options: str) -> Sample:
        return measure([*self.command(files.qrels, files.run), *options], self.environment)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 when ``--check`` finds a limit missed, or 2 when it cannot be run."""
    options = _options(argv)
    return carry_out("measures", run, render, options)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ringtrue bench measures", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=positive, default=6980, help="queries in the generated run (default 6980)")
    parser.add_argument("--depth", type=positive, default=1000, help="documents per query (default 1000)")
    parser.add_argument("--repeat", type=positive, default=3, help="repetitions per tool (default 3); ranx runs once")
    parser.add_argument("--growth", action="store_true", help="also show how ringtrue's cost grows, up to 30 million rows")
    parser.add_argument(
        "--ranx", choices=("auto", "yes", "no"), default="auto",
        help="auto installs ranx (about 700 MB) into .bench/ranx-venv and goes on without it when that fails",
    )  # fmt: skip
    add_common_options(parser, marks("measures"))
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return everything that was measured, and every limit with what was found."""
    with tempfile.TemporaryDirectory(prefix="ringtrue-bench-") as empty:
        return _run(options, empty)


def _run(options: argparse.Namespace, empty: str) -> dict[str, Any]:
    here = machine()
    peers, skipped = _peers(options.ranx, empty)
    ringtrue = _ringtrue()
    files, small = generate(options.queries, options.depth), generate(100, 1000)
    for tool in (ringtrue, *peers):
        if tool.name != "ranx":
            say(f"warming up: {tool.name}")  # byte code and libraries come from memory for everyone
            tool.measure(small)
    samples = _compete([ringtrue, *peers], files, options.repeat)
    report: dict[str, Any] = {
        "input": {
            "queries": files.queries, "depth": files.depth, "rows": files.queries * files.depth,
            "mb": round(files.run.stat().st_size / 1e6), "measures": list(MEASURES), "repeat": options.repeat,
        },
        "machine": here,
        "tools": [_row(tool, samples[tool.name], samples["ringtrue"]) for tool in (ringtrue, *peers)],
        "skipped": skipped,
        "identical": _identical(ringtrue, small, files),
        "growth": _grow(ringtrue, options.repeat) if options.growth else [],
    }  # fmt: skip
    say("")
    return report | {"limits": _limits(report)}


def _compete(tools: list[Tool], files: Files, repeat: int) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {tool.name: [] for tool in tools}
    for turn in range(1, repeat + 1):
        for tool in tools:
            if tool.name != "ranx" or turn == 1:
                say(f"round {turn} of {repeat}: {tool.name}")
                samples[tool.name].append(tool.measure(files))
    return samples


def _row(tool: Tool, samples: list[Sample], ours: list[Sample]) -> dict[str, Any]:
    seconds = [sample.seconds for sample in samples]
    median = statistics.median(seconds)
    found, our_found = means(samples[0]), means(ours[0])
    if set(found) != set(MEASURES):
        raise Failure(f"{tool.name} answered {sorted(found)} instead of {sorted(MEASURES)}")
    return {
        "name": tool.name,
        "version": tool.version,
        "seconds": seconds,
        "median": median,
        "ratio": median / statistics.median(sample.seconds for sample in ours),
        "cpu_seconds": statistics.median(sample.cpu_seconds for sample in samples),
        "peak_mb": max(sample.peak_mb for sample in samples),
        "others": [sample.others for sample in samples],
        "means": found,
        "difference": {measure: abs(found[measure] - our_found[measure]) for measure in MEASURES},
    }


def _identical(ringtrue: Tool, small: Files, large: Files) -> dict[str, bool]:
    def same(files: Files, *options: str) -> bool:
        say(f"comparing {REPEATED_RUNS} runs on {files.queries:,} × {files.depth:,} rows")
        return len({ringtrue.measure(files, *options).output for _ in range(REPEATED_RUNS)}) == 1

    rows = large.queries * large.depth
    return {"per query, 0.1 million rows": same(small, "-q"), f"means, {rows / 1e6:.2g} million rows": same(large)}


def _grow(ringtrue: Tool, repeat: int) -> list[dict[str, float]]:
    grown = []
    for rows in GROWTH_ROWS:
        files = generate(rows // 1000, 1000)
        samples = []
        for turn in range(1, repeat + 1):
            say(f"growth: {rows / 1e6:g} million rows, {turn} of {repeat}")
            samples.append(ringtrue.measure(files))
        if rows > KEPT_ROWS:
            files.run.unlink()
            files.qrels.unlink()
        median = statistics.median(sample.seconds for sample in samples)
        peak = max(sample.peak_mb for sample in samples)
        grown.append({"rows": rows, "seconds": median, "seconds_per_million": median / rows * 1e6, "peak_mb": peak})
    return grown


def _limits(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each limit with what was found; ``met`` is None if a tool was not measured."""
    tools = {tool["name"]: tool for tool in report["tools"]}
    limits: list[dict[str, Any]] = []

    def add(name: str, wanted: str, found: str, met: bool | None) -> None:
        limits.append(limit(name, wanted, found, met))

    for name, least in FASTER_THAN.items():
        ratio = tools[name]["ratio"] if name in tools else None
        found = "not measured" if ratio is None else f"{ratio:.1f}×"
        add(f"faster than {name}", f"≥ {least:g}×", found, None if ratio is None else ratio >= least)
    ours, theirs = tools["ringtrue"]["peak_mb"], tools[MEMORY_OF]["peak_mb"]
    add(f"memory of {MEMORY_OF}", f"≤ {theirs:,.0f} MB", f"{ours:,.0f} MB", ours <= theirs)
    for name in ("pytrec_eval", "ir_measures"):
        apart = max(tools[name]["difference"].values())
        add(f"same means as {name}", f"within {SAME_MEAN:g}", f"{apart:.1g}", apart <= SAME_MEAN)
    for what, same in report["identical"].items():
        add(f"output of {REPEATED_RUNS} runs ({what})", "the same bytes", "the same" if same else "different", same)
    if report["growth"]:
        before, largest = report["growth"][-2:]
        bend = largest["seconds_per_million"] / before["seconds_per_million"]
        name = f"time per row, {largest['rows'] / 1e6:g} ÷ {before['rows'] / 1e6:g} million rows"
        add(name, f"≤ {LINEAR:g}", f"{bend:.2f}", bend <= LINEAR)
    return limits


# ── contenders ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _ringtrue() -> Tool:
    def command(qrels: Path, run: Path) -> list[str]:
        return [sys.executable, "-m", "ringtrue", "score", str(qrels), str(run), *MEASURES, "--json"]

    return Tool("ringtrue", source_version(), command, source_environment())


def _peers(ranx: str, empty: str) -> tuple[list[Tool], dict[str, str]]:
    """Return the peers that can run here, and the reason for each that cannot."""
    peers = []
    for name, distribution, script in (
        ("pytrec_eval", "pytrec-eval-terrier", PYTREC_EVAL),
        ("ir_measures", "ir-measures", IR_MEASURES),
    ):
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            raise Failure(f"{name} is not installed; run `{sys.executable} -m pip install {distribution}`") from None
        peers.append(_scripted(name, version, sys.executable, script))
    if ranx == "no":
        return peers, {"ranx": "left out (--ranx no)"}
    problem = _install_ranx()
    if problem is None:
        return [*peers, _ranx(empty)], {}
    if ranx == "yes":
        raise Failure(problem)
    say(f"RANX IS NOT MEASURED: {problem}", keep=True)
    return peers, {"ranx": problem}


def _scripted(name: str, version: str, python: str, script: str, environment: dict[str, str] | None = None) -> Tool:
    return Tool(name, version, lambda qrels, run: [python, "-c", script, str(qrels), str(run)], environment or {})


def _ranx(empty: str) -> Tool:
    python = str(_ranx_python())
    ask = "import ranx, importlib.metadata; print(importlib.metadata.version('ranx'))"
    # Importing ranx here loads its libraries into memory; the empty cache folder makes numba compile everything, as it
    # does on every fresh machine and in every CI job.
    version = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    return _scripted("ranx", f"{version}, cold", python, RANX_SCRIPT, {"NUMBA_CACHE_DIR": empty})


def _ranx_python() -> Path:
    return RANX / "bin" / "python"


def _install_ranx() -> str | None:
    """Make the environment for ranx where there is none; return what went wrong, or None."""
    if _imports_ranx():
        return None
    BENCH.mkdir(exist_ok=True)
    log = BENCH / "ranx-install.log"
    others = [shutil.which(f"python3.{minor}") for minor in (13, 12, 11, 10)]
    with log.open("wb") as output:
        for python in dict.fromkeys([sys.executable, *filter(None, others)]):
            say(f"installing ranx into {RANX} with {python} (about 700 MB)", keep=True)
            shutil.rmtree(RANX, ignore_errors=True)
            steps = [python, "-m", "venv", str(RANX)], [str(_ranx_python()), "-m", "pip", "install", "--retries", "1", "ranx"]
            # all() stops at the first step that fails
            if all(_succeeds(step, output) for step in steps) and _imports_ranx():
                return None
    shutil.rmtree(RANX, ignore_errors=True)
    return f"ranx could not be installed; {log} says why"


def _imports_ranx() -> bool:
    return _ranx_python().exists() and _succeeds([str(_ranx_python()), "-c", "import ranx"], subprocess.DEVNULL)


def _succeeds(command: list[str], output: Any) -> bool:
    try:
        return subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode == 0
    except OSError:
        return False


# ── input ───────────────────────────────────────────────────────────────────────────────────────────────────────


def generate(queries: int, depth: int) -> Files:
    """Return the generated files of this size, written where they are not there yet, and read once into the file cache."""
    BENCH.mkdir(exist_ok=True)
    stem = BENCH / f"trec-{queries}x{depth}"
    files = Files(queries, depth, stem.with_suffix(".qrels"), stem.with_suffix(".run"))
    if not (files.qrels.exists() and files.run.exists()):
        say(f"writing {queries:,} × {depth:,} rows into {BENCH}", keep=True)
        script = Path(__file__).with_name("trec_files.py")
        subprocess.run([sys.executable, str(script), str(queries), str(depth), str(files.run), str(files.qrels)], check=True)
    for path in (files.qrels, files.run):
        with path.open("rb") as file:
            while file.read(1 << 20):
                pass
    return files


# ── showing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def render(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    given = report["input"]
    parts = [
        f"{given['queries']:,} queries × {given['depth']:,} documents from TREC files ({given['mb']} MB) to the means of "
        f"{', '.join(given['measures'])}; whole process; median of {given['repeat']}, interleaved"
        f"{'; ranx once' if 'ranx' not in report['skipped'] else ''}.",
        table(
            ("tool", "version", "median s", "range s", "ratio", "peak MB"),
            [
                (
                    tool["name"], tool["version"], f"{tool['median']:.2f}",
                    f"{min(tool['seconds']):.2f}–{max(tool['seconds']):.2f}",
                    f"{tool['ratio']:.1f}×", f"{tool['peak_mb']:,.0f}",
                )
                for tool in report["tools"]
            ],
        ),
        *(f"**Not measured:** {name}: {reason}." for name, reason in report["skipped"].items()),
        _agreement(report["tools"]),
    ]  # fmt: skip
    if report["growth"]:
        rows = [
            (f"{row['rows'] / 1e6:g} M", f"{row['seconds']:.2f}", f"{row['seconds_per_million']:.2f}", f"{row['peak_mb']:,.0f}")
            for row in report["growth"]
        ]
        parts += ["How ringtrue grows:", table(("rows", "median s", "s per million rows", "peak MB"), rows, text_columns=1)]
    others = [share for tool in report["tools"] for share in tool["others"]]
    parts += [limits_table(report["limits"]), machine_line(report["machine"], others)]
    return "\n\n".join(parts) + "\n"


def _agreement(tools: list[dict[str, Any]]) -> str:
    ours = tools[0]["means"]
    rows = [
        (measure, f"{ours[measure]:.9f}", *(f"{tool['difference'][measure]:.1g}" for tool in tools[1:])) for measure in MEASURES
    ]
    shown = table(("mean", "ringtrue", *(f"{tool['name']} differs by" for tool in tools[1:])), rows, text_columns=1)
    apart = {
        tool["name"]: [measure for measure in MEASURES if tool["difference"][measure] > SAME_MEAN]
        for tool in tools[1:]
    }  # fmt: skip
    notes = [
        f"{name} differs by more than {SAME_MEAN:g} in {', '.join(names)}" + (f": {_WHY[name]}" if name in _WHY else "") + "."
        for name, names in apart.items()
        if names
    ]
    return "\n\n".join([shown, *(notes or [f"All tools agree on all means to {SAME_MEAN:g}."])])


_WHY = {
    "ranx": "it leaves equal scores in the order its sort happens to give, where trec_eval and ringtrue go by document id, "
    "descending; on a run without ties it agrees"
}


if __name__ == "__main__":
    sys.exit(main())
