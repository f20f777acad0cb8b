"""How often Ringtrue's tests err: simulated false alarms, coverage of the intervals, power.

``make simulate`` draws differences whose true mean is known, thousands of times a cell, asks every test, prints the tables
and writes them into docs/statistics.md. A limit binds a test only where what it assumes is true; the tables show the rest too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from common import ROOT, add_common_options, finish, limit, limits_table, marks, positive, say, source_version, table

sys.path.insert(0, str(ROOT / "src"))

from error_rates import SHAPES, SIZES, SYMMETRIC, ErrorRate, error_rates, family_error_rates, power_rates

ALPHA = 0.05
LEAST_COVERAGE = 0.94
# A share that is truly alpha is found above this many standard errors in one cell of a thousand.
STANDARD_ERRORS = 3.0
MEASURES, FAMILY_SIZE, EFFECT = 5, 30, 0.4
TESTS = ("t", "wilcoxon", "sign-flip", "bca", "percentile", "interval", "verdict")
INTERVALS = ("t", "bca", "percentile", "interval")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation; return 0, or 1 when ``--check`` finds a limit missed."""
    options = _options(argv)
    report = run(options)
    return finish("simulate", report, render(report), options)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make simulate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=positive, default=10_000, help="comparisons a cell (default 10000)")
    parser.add_argument("--resamples", type=positive, default=1_999, help="resamples of each (default 1999)")
    parser.add_argument("--sizes", type=positive, nargs="+", default=list(SIZES), help="numbers of queries")
    parser.add_argument("--seed", type=int, default=0)
    add_common_options(parser, marks("simulate"))
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return every rate, and every limit with what was found; a cell has its own generator, so that none moves another."""
    import numpy as np

    start = time.perf_counter()
    common: dict[str, Any] = {"simulations": options.simulations, "alpha": ALPHA, "resamples": options.resamples}
    rates: list[ErrorRate] = []
    families, powers = {}, {}
    for place, shape in enumerate(SHAPES):
        for n in options.sizes:
            say(f"{shape}, {n} queries")
            rng = np.random.default_rng([options.seed, place, n])
            rates += error_rates(rng=rng, shapes=[shape], sizes=[n], **common)
        rng = np.random.default_rng([options.seed, place, 0])
        families[shape] = family_error_rates(shape, FAMILY_SIZE, rng=rng, measures=MEASURES, **common)
    for n in options.sizes:
        rng = np.random.default_rng([options.seed, len(SHAPES), n])
        powers[n] = power_rates("gaussian", n, rng=rng, effect=EFFECT, **common)
    say("")
    cells = [
        {"shape": rate.shape, "n": rate.n, "test": rate.test, "assumption_holds": rate.claimed}
        | {"false_positives": rate.false_positives, "coverage": rate.coverage if rate.test in INTERVALS else None}
        for rate in rates
    ]
    report = {
        "input": {"simulations": options.simulations, "resamples": options.resamples, "seed": options.seed},
        "sizes": options.sizes,
        "version": source_version(),
        "seconds": time.perf_counter() - start,
        "cells": cells,
        "families": families,
        "power": powers,
    }
    return report | {"limits": limits(report)}


def limits(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each limit with the worst cell in which it binds."""
    error = (ALPHA * (1 - ALPHA) / report["input"]["simulations"]) ** 0.5
    most = ALPHA + STANDARD_ERRORS * error
    bound = [cell for cell in report["cells"] if cell["assumption_holds"]]
    found = []
    for test in ("t", "wilcoxon", "sign-flip", "verdict"):
        worst = max((cell for cell in bound if cell["test"] == test), key=lambda cell: cell["false_positives"])
        rate = worst["false_positives"]
        found.append(
            limit(
                f"false alarms of {test}",
                f"≤ {_percent(ALPHA)} (+ {_percent(most - ALPHA)})",
                _where(worst, rate),
                rate <= most,
            )
        )
    worst = min((cell for cell in bound if cell["test"] == "interval"), key=lambda cell: cell["coverage"])
    covered = worst["coverage"]
    found.append(
        limit("coverage of the interval", f"≥ {_percent(LEAST_COVERAGE)}", _where(worst, covered), covered >= LEAST_COVERAGE)
    )
    shapes = {cell["shape"] for cell in bound if cell["test"] == "verdict"}
    for correction in ("holm", "benjamini-hochberg"):
        rate, shape = max((rates[correction], shape) for shape, rates in report["families"].items() if shape in shapes)
        name = f"any false alarm in {MEASURES} measures, {correction}"
        found.append(
            limit(name, f"≤ {_percent(ALPHA)} (+ {_percent(most - ALPHA)})", f"{_percent(rate)} ({shape})", rate <= most)
        )
    return found


def render(report: dict[str, Any]) -> str:
    """Return the result as Markdown."""
    by = {(cell["shape"], cell["n"], cell["test"]): cell for cell in report["cells"]}
    shapes, sizes = list(report["families"]), report["sizes"]

    def alarms(shape: str, n: int, test: str) -> str:
        cell = by[shape, n, test]
        text = f"{100 * cell['false_positives']:.1f}"
        return text if cell["assumption_holds"] else f"({text})"

    def covered(shape: str, n: int, test: str) -> str:
        return f"{100 * by[shape, n, test]['coverage']:.1f}"

    symmetric = {shape: "yes" if shape in SYMMETRIC else "no" for shape in shapes}
    first = [[shape, symmetric[shape], str(n), *(alarms(shape, n, test) for test in TESTS)] for shape in shapes for n in sizes]
    second = [
        [shape, symmetric[shape], str(n), *(covered(shape, n, test) for test in INTERVALS)] for shape in shapes for n in sizes
    ]
    corrections = ("none", "holm", "benjamini-hochberg")
    third = [[shape, *(f"{100 * report['families'][shape][name]:.1f}" for name in corrections)] for shape in shapes]
    kinds = ("t", "sign-flip", "sign-flip and bca", "verdict")
    fourth = [[str(n), *(f"{100 * report['power'][n][name]:.1f}" for name in kinds)] for n in sizes]
    given = report["input"]
    return "\n\n".join(
        [
            f"`make simulate`: {given['simulations']:,} simulated comparisons a cell, {given['resamples']:,} resamples each, "
            f"seed {given['seed']}, ringtrue {report['version']}.",
            "**False alarms** in %, where the true mean difference is 0 and 5 are allowed. In brackets: what the test assumes "
            "(normal or symmetric differences, or very many) is not true here; no limit binds it.",
            table(("differences", "symmetric", "queries", *TESTS), first),
            "**Coverage** in %: how often an interval that says 95 % holds the true mean. `interval` is the one reported.",
            table(("differences", "symmetric", "queries", *INTERVALS), second),
            f"**Several measures**: comparisons of {MEASURES} measures and {FAMILY_SIZE} queries with any false alarm, in %, "
            "by correction.",
            table(("differences", *corrections), third, text_columns=1),
            f"**Power**: a true gain of {EFFECT} standard deviations found, in % (gaussian).",
            table(("queries", *kinds), fourth, text_columns=0),
            limits_table(report["limits"]) + "\n",
        ]
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _where(cell: dict[str, Any], share: float) -> str:
    return f"{_percent(share)} ({cell['shape']}, {cell['n']})"


if __name__ == "__main__":
    sys.exit(main())
