"""How often the intervals from a model's grades hold: simulated searches under real and simulated judges.

``python benchmarks/judge.py --check --write docs/judges.md`` draws populations of queries whose true difference between two
searches is known, grades all of them by a judge and a random sample by people, and counts how often each of the three
intervals of ``ringtrue.judge.rectified`` holds the truth. ``--data FOLDER`` adds the real judges of LLMJudge (human.qrels and
judges/*.txt, TREC qrels lines): rankings are simulated there as people's grade plus noise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common import ROOT, add_common_options, finish, limit, limits_table, marks, positive, say, source_version, table

sys.path.insert(0, str(ROOT / "src"))

SIZES = ((30, 300), (50, 300), (100, 1000))
LEAST_COVERAGE, MOST_WIDER = 0.94, 1.02
STANDARD_ERRORS = 3.0
POPULATION = 8000
KINDS = ("independent", "systematic by query", "favours one search", "random")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the simulation; return 0, or 1 when ``--check`` finds a limit missed."""
    parser = argparse.ArgumentParser(prog="benchmarks/judge.py", description=__doc__)
    parser.add_argument("--simulations", type=positive, default=2000, help="samples per row (default 2000)")
    parser.add_argument("--data", type=Path, help="a folder with human.qrels and judges/*.txt")
    parser.add_argument("--seed", type=int, default=0)
    add_common_options(parser, marks("judge"))
    options = parser.parse_args(argv)
    report = run(options)
    return finish("judge", report, render(report), options)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return a row for each judge and size, and every limit with what was found."""
    import numpy as np

    rows = []
    judges = [*_simulated(np.random.default_rng([options.seed, 0]))]
    judges += _real(options.data, np.random.default_rng([options.seed, 1])) if options.data else []
    for place, (name, human, judge) in enumerate(judges):
        for judged, size in SIZES:
            say(f"{name}, {judged} of {size}")
            rng = np.random.default_rng([options.seed, 2, place, size, judged])
            found = _rates(human, judge, judged, size, options.simulations, rng)
            rows.append({"judge": name, "judged": judged, "queries": size, **found})
    say("")
    report = {"simulations": options.simulations, "seed": options.seed, "version": source_version(), "rows": rows}
    return report | {"limits": _limits(report)}


def _rates(human: Any, judge: Any, judged: int, size: int, simulations: int, rng: Any) -> dict[str, float]:
    from ringtrue.judge import draw_sample, rectified

    ids = [f"q{n}" for n in range(size)]
    truth, held, half = (
        float(human.mean()),
        {"both": 0, "human_only": 0, "judge_only": 0},
        dict.fromkeys(("both", "human_only"), 0.0),
    )
    weight = widest = 0.0
    for seed in range(simulations):
        chosen = rng.integers(len(human), size=size)
        by_people = dict(zip(ids, human[chosen].tolist(), strict=True))
        by_model = dict(zip(ids, judge[chosen].tolist(), strict=True))
        sample = draw_sample(ids, judged, seed=seed)
        found = rectified({one: by_people[one] for one in sample.query_ids}, by_model, sample=sample)
        for name in held:
            one = getattr(found, name)
            held[name] += one.low <= truth <= one.high
        for name in half:
            half[name] += getattr(found, name).half_width / simulations
        widest = max(widest, found.both.half_width / found.human_only.half_width)
        weight += found.weight / simulations
    return {
        **{name: count / simulations for name, count in held.items()},
        "half_both": half["both"],
        "half_human": half["human_only"],
        "worth": judged * (half["human_only"] / half["both"]) ** 2,
        "widest": widest,
        "weight": weight,
    }


def _simulated(rng: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield judges of known error: their name, the true differences of two searches, and what the judge makes of them."""
    noise = rng.standard_normal
    for kind in KINDS:
        true = 0.04 + 0.2 * noise(POPULATION)
        yield (
            f"simulated: {kind}",
            true,
            {
                "independent": lambda true=true: 0.5 * true + 0.1 * noise(POPULATION),
                "systematic by query": lambda true=true: true + 0.3 * (rng.random(POPULATION) < 0.5),
                "favours one search": lambda true=true: true + 0.1 + 0.1 * noise(POPULATION),
                "random": lambda: 0.2 * noise(POPULATION),
            }[kind](),
        )


def _real(folder: Path, rng: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the judges of a folder with the differences of nDCG@10 of two simulated searches under people and judge."""
    import numpy as np

    people = _grades(folder / "human.qrels")
    for file in sorted((folder / "judges").glob("*.txt")):
        model = _grades(file)
        pairs = [np.array([(grade, model[query].get(doc, 0)) for doc, grade in docs.items()]) for query, docs in people.items()]
        values = np.empty((POPULATION // 2, 2))
        for place in range(len(values)):
            both = pairs[rng.integers(len(pairs))]
            both = both[rng.choice(len(both), min(60, len(both)), replace=False)]
            hard = 0.5 + rng.exponential()
            tops = [np.argsort(-(both[:, 0] + rng.normal(0, noise * hard, len(both))))[:10] for noise in (2.0, 1.7)]
            values[place] = [
                _ndcg(both[tops[1], column], both[:, column]) - _ndcg(both[tops[0], column], both[:, column])
                for column in (0, 1)
            ]
        yield f"LLMJudge: {file.stem}", values[:, 0], values[:, 1]


def _grades(file: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        query, _, doc, grade = line.split()
        found.setdefault(query, {})[doc] = int(grade)
    return found


def _ndcg(shown: Any, judged: Any) -> float:
    import numpy as np

    discounts = 1 / np.log2(np.arange(2, 12))
    ideal = np.sort(judged)[::-1][:10]
    best = float((ideal * discounts[: len(ideal)]).sum())
    return float((shown * discounts[: len(shown)]).sum()) / best if best else 0.0


def _limits(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows = report["rows"]
    error = (0.95 * 0.05 / report["simulations"]) ** 0.5
    worst = min(rows, key=lambda row: row["both"])
    where = f"{worst['judge']}, {worst['judged']} of {worst['queries']}"
    least = min(LEAST_COVERAGE, 0.95 - STANDARD_ERRORS * error)
    widest = max(row["widest"] for row in rows)
    return [
        limit("both holds, worst row", f"≥ {least:.1%}", f"{worst['both']:.1%} ({where})", worst["both"] >= least),
        limit("both beside people alone, widest", f"≤ {MOST_WIDER}×", f"{widest:.3f}×", widest <= MOST_WIDER),
    ]


def render(report: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    names = (
        "judge",
        "people judged",
        "holds: both",
        "people alone",
        "model alone",
        "half width: both",
        "people alone",
        "worth",
        "λ",
    )
    rows = []
    shown = (row for row in report["rows"] if row["judged"] == SIZES[0][0] or row["judge"].startswith("simulated"))
    for row in shown:
        holds = (f"{row[name]:.1%}" for name in ("both", "human_only", "judge_only"))
        halves = (f"{row[name]:.4f}" for name in ("half_both", "half_human"))
        rows.append(
            (
                row["judge"],
                f"{row['judged']} of {row['queries']:,}",
                *holds,
                *halves,
                f"{row['worth']:.0f}",
                f"{row['weight']:.2f}",
            )
        )
    said = f"{report['simulations']:,} samples per row, intervals of 95 %, seed {report['seed']}, ringtrue {report['version']}."
    return f"{said}\n\n{table(names, rows)}\n\n{limits_table(report['limits'])}\n"


if __name__ == "__main__":
    sys.exit(main())
