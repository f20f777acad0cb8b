"""How often sequential tests err when looked at after every query.

``python benchmarks/sequential.py --check --write docs/sequential.md`` runs what ``ringtrue test simulate`` runs, checks it
against alpha and beta, and writes the tables into the page. Differences of several shapes, without and with a gain of delta,
and worthless treatments with a steady gain and a rare large loss; beside the two methods that promise something stand Wald's
test with a known sigma, a formula without variance that an earlier system shipped, and a Beta-Binomial posterior that is read
after every query.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from common import ROOT, add_common_options, finish, limit, limits_table, marks, positive, source_version, table

sys.path.insert(0, str(ROOT / "src"))

PEEKED = 300


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation; return 0, or 1 when ``--check`` finds a limit missed."""
    options = _options(argv)
    report = run(options)
    return finish("sequential", report, render(report), options)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python benchmarks/sequential.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=positive, default=2_000, help="tests a row (default 2000)")
    parser.add_argument("--queries", type=positive, default=2_000, help="the most queries a test may take (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    add_common_options(parser, marks("sequential"))
    return parser.parse_args(argv)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return every rate, and every limit with what was found."""
    from dataclasses import asdict

    from ringtrue.stats import SequentialPlan, allowed_share, sequential_rates
    from sequential_rates import by_wald_alone, peeking_rate, rare_loss_rates

    start = time.perf_counter()
    plan = SequentialPlan()
    others = {"sprt, sigma known": partial(by_wald_alone, plan=plan, sd=0.2), "no variance": partial(by_wald_alone, plan=plan)}
    rates = sequential_rates(seed=options.seed, simulations=options.simulations, most=options.queries, plan=plan, others=others)
    rare = rare_loss_rates(seed=options.seed, simulations=options.simulations, most=options.queries, plan=plan)
    peeking = peeking_rate(seed=options.seed, simulations=min(500, options.simulations), most=PEEKED)
    report: dict[str, Any] = {
        "input": {"simulations": options.simulations, "queries": options.queries, "seed": options.seed},
        "plan": asdict(plan),
        "version": source_version(),
        "seconds": time.perf_counter() - start,
        "allowed": allowed_share(plan, options.simulations),
        "rates": [asdict(rate) for rate in rates],
        "rare": [asdict(rate) for rate in rare],
        "peeking": peeking,
    }
    return report | {"limits": limits(report)}


def limits(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each promise with the worst shape."""
    plan, found = report["plan"], []
    for method in ("sprt", "confidence sequence"):
        cells = [rate for rate in report["rates"] if rate["method"] == method]
        accepts = [(rate["false_accept"], rate["shape"]) for rate in cells]
        accepts += [(one["false_accept"], _cell(one)) for one in report["rare"] if one["method"] == method]
        share, where = max(accepts)
        found.append(
            limit(
                f"false accepts of {method}",
                f"≤ {_percent(plan['alpha'])} (+ {_percent(report['allowed'] - plan['alpha'])})",
                f"{_percent(share)} ({where})",
                share <= report["allowed"],
            )
        )
        worst = min(cells, key=lambda rate: rate["power"])
        share = worst["power"]
        found.append(
            limit(
                f"power of {method}",
                f"≥ {_percent(1 - plan['beta'])}",
                f"{_percent(share)} ({worst['shape']})",
                share >= 1 - plan["beta"],
            )
        )
    return found


def render(report: dict[str, Any]) -> str:
    """Return the result as Markdown."""
    given, plan = report["input"], report["plan"]
    rows = [
        [
            rate["shape"],
            rate["method"],
            *(f"{100 * rate[name]:.1f}" for name in ("false_accept", "power", "missed")),
            *(f"{rate[name]:.0f}" for name in ("queries_without", "queries_with")),
        ]
        for rate in report["rates"]
    ]
    rare = [
        [
            f"{one['gain']:+g}, but {-one['loss']:g} {100 * one['share']:g} % of the time",
            one["method"],
            f"{one['delta']:g}",
            f"{100 * one['false_accept']:.1f}",
            f"{one['queries']:.0f}",
        ]
        for one in report["rare"]
    ]
    names = ("differences", "method", "false accepts %", "power %", "missed %", "queries, no gain", "queries, gain")
    return "\n\n".join(
        [
            f"`python benchmarks/sequential.py --check`: {given['simulations']:,} simulated tests a row and side, looked at "
            f"after every query up to {given['queries']:,}; seed {given['seed']}, ringtrue {report['version']}. True gain 0, "
            "then "
            f"{plan['delta']:g}; standard deviation 0.2; alpha {plan['alpha']:g}, beta {plan['beta']:g}.",
            table(names, rows),
            "Worthless treatments with a steady gain and a rare loss, mean 0, for several gains δ that a test looks for:",
            table(("differences", "method", "δ", "false accepts %", "queries"), rare),
            f"Beta-Binomial posterior, equal success rates, read after each of {PEEKED} queries: "
            f"{100 * report['peeking']:.1f} % false accepts.",
            limits_table(report["limits"]) + "\n",
        ]
    )


def _cell(one: dict[str, Any]) -> str:
    return f"rare losses, δ {one['delta']:g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


if __name__ == "__main__":
    sys.exit(main())
