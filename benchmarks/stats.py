"""Ringtrue's resampling beside scipy.stats.permutation_test and scipy.stats.bootstrap, with its speed floor.

``python benchmarks/stats.py --check`` gives both the same paired differences, each in a process of its own, in turn, round
after round. Ringtrue does the whole job: every resample, all measures in one pass. SciPy is called per measure, for which
the whole job takes minutes to hours; so one measure is timed at two smaller numbers of resamples, and the straight line
through both, at all resamples and times the measures, is shown as SciPy's time. What SciPy does once a call (the jackknife of
BCa) is thereby counted once a measure and not scaled with the resamples. Times leave out start and imports, memory does not.

This script itself imports nothing heavy: what a contender needs, its process imports.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from common import (
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

# The limits, meant for the default sizes.
FASTER_THAN_SCIPY = 20.0
MOST_MB = 500.0
# Both draw at random: their answers may differ by this many standard errors of SciPy's, whose resamples are fewer.
STANDARD_ERRORS = 4.5

JOBS = ("sign-flip", "bca", "percentile")
# SciPy's two numbers of resamples, and how many it does at once: without the latter the whole job would ask for 8 GB. Of 5 to
# 500 at once these were the fastest; the sign-flip gains twenty times from the smallest to the largest, the bootstrap nothing.
COUNTS = {"sign-flip": (500, 1500), "bca": (500, 3000), "percentile": (500, 3000)}
BATCH = {"sign-flip": 500, "bca": 100, "percentile": 100}
ALPHA = 0.05


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 0, 1 when ``--check`` finds a limit missed, or 2 when it cannot be run."""
    options = _options(argv)
    if options.worker:
        print(json.dumps(work(*options.worker, options)))
        return 0
    return carry_out("stats", run, render, options)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="ringtrue bench stats", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=positive, default=10_000, help="queries (default 10000)")
    parser.add_argument("--measures", type=positive, default=10, help="measures (default 10)")
    parser.add_argument("--resamples", type=positive, default=100_000, help="resamples (default 100000)")
    parser.add_argument("--repeat", type=positive, default=3, help="rounds (default 3)")
    parser.add_argument("--worker", nargs=2, metavar=("TOOL", "JOB"), help=argparse.SUPPRESS)
    parser.add_argument("--round", type=positive, default=1, help=argparse.SUPPRESS)
    add_common_options(parser, marks("stats"))
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return everything that was measured, and every limit with what was found."""
    here, others = machine(), []
    sizes = {name: getattr(options, name) for name in ("queries", "measures", "resamples", "repeat")}
    jobs = []
    for job in JOBS:
        rounds = []
        for turn in range(1, options.repeat + 1):
            say(f"{job}: round {turn} of {options.repeat}")
            pair = {}
            for tool in ("ringtrue", "scipy"):
                command = [sys.executable, __file__, "--worker", tool, job, "--round", str(turn)]
                command += [part for name in ("queries", "measures", "resamples") for part in (f"--{name}", str(sizes[name]))]
                sample = measure(command, source_environment())
                others.append(sample.others)
                pair[tool] = json.loads(sample.output) | {"peak_mb": sample.peak_mb}
            rounds.append(pair)
        jobs.append({"job": job, **_summary(job, rounds, sizes)})
    say("")
    versions = {"ringtrue": source_version(), "scipy": importlib.metadata.version("scipy")}
    report = {"input": sizes, "machine": here, "versions": versions, "jobs": jobs, "others": others}
    return report | {"limits": limits(report)}


def _summary(job: str, rounds: list[dict[str, dict[str, Any]]], sizes: dict[str, int]) -> dict[str, Any]:
    scaled = [scipy_seconds(round_["scipy"]["timed"], sizes["resamples"], sizes["measures"]) for round_ in rounds]
    seconds = [round_["ringtrue"]["seconds"] for round_ in rounds]
    return {
        "seconds": statistics.median(seconds),
        "scipy_timed": rounds[0]["scipy"]["timed"],
        "scipy_seconds": statistics.median(scaled),
        "ratio": statistics.median(theirs / ours for theirs, ours in zip(scaled, seconds, strict=True)),
        "peak_mb": max(round_["ringtrue"]["peak_mb"] for round_ in rounds),
        "apart": max(apart(job, round_["ringtrue"]["answer"], round_["scipy"]["answer"]) for round_ in rounds),
    }


def scipy_seconds(timed: list[list[float]], resamples: int, measures: int) -> float:
    """Return the time of the whole job by the straight line through two timed numbers of resamples, per measure."""
    (few, fast), (many, slow) = timed
    each = max(0.0, slow - fast) / (many - few)
    once = max(0.0, fast - each * few)
    return measures * (once + each * resamples)


def apart(job: str, ours: dict[str, float], theirs: dict[str, float]) -> float:
    """Return by how many standard errors of SciPy's resampling the answers for the first measure differ, at most."""
    count = COUNTS[job][1]
    if job == "sign-flip":
        return abs(ours["p"] - theirs["p"]) / math.sqrt(max(ours["p"] * (1 - ours["p"]), 1 / count) / count)
    # Of a quantile: √(share (1 - share) ÷ count) ÷ density, the density there being that of a normal one.
    quantile = statistics.NormalDist().inv_cdf(1 - ALPHA / 2)
    density = statistics.NormalDist().pdf(quantile)
    error = ours["error"] * math.sqrt(ALPHA / 2 * (1 - ALPHA / 2) / count) / density
    if job == "bca":
        # Its bias is estimated from the resamples too, and moves the end by twice as much.
        error = math.hypot(error, 2 * ours["error"] * math.sqrt(math.pi / 2 / count))
    return max(abs(ours[end] - theirs[end]) for end in ("low", "high")) / error


def limits(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each limit with what was found."""
    found = []
    for job in report["jobs"]:
        wanted = f"≥ {FASTER_THAN_SCIPY:.0f}×"
        found.append(
            limit(f"{job['job']}: speed, beside scipy", wanted, f"{job['ratio']:,.0f}×", job["ratio"] >= FASTER_THAN_SCIPY)
        )
        met = job["apart"] <= STANDARD_ERRORS
        found.append(limit(f"{job['job']}: same answer", f"≤ {STANDARD_ERRORS} standard errors", f"{job['apart']:.1f}", met))
    peak = max(job["peak_mb"] for job in report["jobs"])
    found.append(limit("peak memory", f"≤ {MOST_MB:.0f} MB", f"{peak:.0f} MB", peak <= MOST_MB))
    return found


def render(report: dict[str, Any]) -> str:
    """Return the result as Markdown."""
    sizes, versions = report["input"], report["versions"]
    rows = [
        (
            job["job"],
            f"{job['seconds']:.2f} s",
            f"{job['peak_mb']:.0f} MB",
            " and ".join(f"{count}: {seconds:.2f} s" for count, seconds in job["scipy_timed"]),
            f"{job['scipy_seconds']:,.0f} s",
            f"{job['ratio']:,.0f}×",
        )
        for job in report["jobs"]
    ]
    names = ("job", "ringtrue", "its peak memory", "scipy, 1 measure, timed at", "scipy, scaled", "ratio")
    return "\n\n".join(
        [
            f"{sizes['resamples']:,} resamples of {sizes['queries']:,} queries × {sizes['measures']} measures; ringtrue "
            f"{versions['ringtrue']} whole, scipy {versions['scipy']} scaled from one measure and fewer resamples by a "
            f"straight line. Medians of {sizes['repeat']} rounds.",
            table(names, rows, text_columns=1),
            limits_table(report["limits"]),
            machine_line(report["machine"], report["others"]) + "\n",
        ]
    )


# ── in a process of its own ─────────────────────────────────────────────────────────────────────────────────────────


def work(tool: str, job: str, options: argparse.Namespace) -> dict[str, Any]:
    """Do one job with one tool; return its time or times and the answer for the first measure."""
    import numpy as np

    rng = np.random.default_rng(5)
    # A third of the queries tie, as they do between two versions of a search.
    differences = rng.normal(0.0, 0.15, (options.queries, options.measures))
    differences[rng.random(differences.shape) < 1 / 3] = 0.0
    differences[:, 0] += 1.3 * differences[:, 0].std() / math.sqrt(options.queries) - differences[:, 0].mean()
    rng = np.random.default_rng([options.round, tool == "ringtrue"])  # rounds and tools differ, and can be repeated
    if tool == "ringtrue":
        return _ringtrue(job, differences, options.resamples, rng)
    return _scipy(job, differences[:, 0], rng)


def _ringtrue(job: str, differences: Any, resamples: int, rng: Any) -> dict[str, Any]:
    import scipy.special  # type: ignore[import-untyped, unused-ignore]  # noqa: F401  its import is not part of the job

    from ringtrue.stats import bootstrap_interval, sign_flip

    def whole(count: int) -> dict[str, float]:
        if job == "sign-flip":
            return {"p": float(sign_flip(differences, rng=rng, resamples=count)[0])}
        method: Any = job
        found = bootstrap_interval(differences, rng=rng, resamples=count, alpha=ALPHA, method=method)
        error = float(differences[:, 0].std() / math.sqrt(len(differences)))
        return {"low": float(found.low[0]), "high": float(found.high[0]), "error": error}

    whole(1_000)
    start = time.perf_counter()
    answer = whole(resamples)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "answer": answer}


def _scipy(job: str, differences: Any, rng: Any) -> dict[str, Any]:
    import numpy as np
    from scipy import stats  # type: ignore[import-untyped, unused-ignore]

    def one(count: int) -> dict[str, float]:
        common: dict[str, Any] = {"n_resamples": count, "vectorized": True, "batch": BATCH[job], "rng": rng}
        if job == "sign-flip":
            return {"p": float(stats.permutation_test((differences,), np.mean, permutation_type="samples", **common).pvalue)}
        method = {"bca": "BCa", "percentile": "percentile"}[job]
        ends = stats.bootstrap((differences,), np.mean, confidence_level=1 - ALPHA, method=method, **common).confidence_interval
        return {"low": float(ends.low), "high": float(ends.high)}

    one(COUNTS[job][0])
    timed = []
    for count in COUNTS[job]:
        start = time.perf_counter()
        answer = one(count)
        timed.append([count, time.perf_counter() - start])
    return {"timed": timed, "answer": answer}


if __name__ == "__main__":
    sys.exit(main())
