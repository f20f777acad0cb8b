"""A comparison of two runs in the terminal and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ringtrue.cli import show
from ringtrue.report import all_the_same, how_tested, milliseconds, same, says, signed_milliseconds, slice_terms, terms

if TYPE_CHECKING:
    from ringtrue.verdict import Arm, Comparison, LatencyComparison, MeasureComparison

HEADERS = ("A", "B", "B − A", "interval", "p", "win/tie/loss", "verdict")


def record(found: Comparison, a: Arm, b: Arm, count: int) -> dict[str, Any]:
    """Return a comparison under the stable keys of ``--json``."""
    return {
        **show.pick(found, "verdict", "reason", "a", "b", "primary"),
        "measures": {name: _measure_record(one) for name, one in found.measures.items()},
        "slices": {
            name: {value: {m: _measure_record(one) for m, one in parts.items()} for value, parts in values.items()}
            for name, values in found.slices.items()
        },
        "latency": None if found.latency is None else asdict(found.latency),
        "moved": [
            {"query_id": query, "a": then, "b": now, "diff": gap} for query, then, now, gap in _moved(found, a, b, count)
        ],
        **show.pick(found, "only_a", "only_b", "alpha", "correction", "resamples", "seed", "notes"),
    }


def _measure_record(one: MeasureComparison) -> dict[str, Any]:
    shown = asdict(one)
    for name in ("measure", "low", "high", "word", "deltas"):
        shown.pop(name)
    return shown | {"ci": [one.low, one.high], "verdict": one.word}


def _moved(found: Comparison, a: Arm, b: Arm, count: int) -> list[tuple[str, float, float, float]]:
    """Return the queries whose primary measure changed most, with both values."""
    gaps = found.measures[found.primary].deltas
    order = sorted((query for query, gap in gaps.items() if abs(gap) > 1e-9), key=lambda query: (-abs(gaps[query]), query))
    sides = []
    for arm in (a, b):
        place = {query: index for index, query in enumerate(arm.scores.query_ids)}
        values = arm.scores.of(found.primary)
        sides.append({query: float(values[place[query]]) for query in order[:count]})
    return [(query, sides[0][query], sides[1][query], gaps[query]) for query in order[:count]]


def print_comparison(found: Comparison, a: Arm, b: Arm, count: int, *, tests: bool) -> None:
    """Print the verdict, then the numbers behind it."""
    main = found.measures[found.primary]
    print(f"verdict: {_word(found)}")
    print(_sentence(found, main))
    print(f"{found.reason[0].upper()}{found.reason[1:]}.")
    print()
    print(f"A: {found.a}\nB: {found.b}")
    _print_measures(found)
    if tests:
        _print_tests(found)
    for name, values in found.slices.items():
        print()
        rows = [[value, *_measure_row(parts[found.primary])] for value, parts in values.items()]
        show.table([name, *HEADERS], rows)
        print(slice_terms(found))
    if found.latency is not None:
        print()
        _print_latency(found.latency, found.alpha)
    moved = _moved(found, a, b, count)
    if moved:
        from ringtrue.report import beside_id

        print()
        texts = {query.query_id: query.text for arm in (a, b) for query in getattr(arm, "queries", ())}
        rows = [
            [query, show.short(beside_id(query, texts.get(query, ""))), show.number(then), show.number(now), show.signed(gap)]
            for query, then, now, gap in moved
        ]
        show.table(["moved most", "question", "A", "B", f"{found.primary} B − A"], rows, text_columns=2)


def print_overview(found: Sequence[Comparison]) -> None:
    """Print a line per comparison with the first run."""
    for one in found:
        print(f"verdict on {one.b}: {_word(one)}")
        print(_sentence(one, one.measures[one.primary]))
    print()
    rows = [[one.b, *_measure_row(one.measures[one.primary])] for one in found]
    show.table([f"{found[0].primary}, against {found[0].a}", *HEADERS], rows)


def _word(found: Comparison) -> str:
    return "the same" if same(found) else found.verdict


def _sentence(found: Comparison, main: MeasureComparison) -> str:
    if main.n < 2:
        return f"Whether {found.b} differs from {found.a} cannot be told."
    if same(found):
        return f"{found.b} and {found.a} are the same: {all_the_same(found)}."
    moved = f"{show.number(main.a)} → {show.number(main.b)} ({show.signed(main.diff)})"
    if found.verdict == "not enough evidence":
        return f"Whether {found.b} differs from {found.a} by {found.primary} is open: {moved}."
    return f"{found.b} is {found.verdict} than {found.a} by {found.primary}: {moved}."


def remarks(found: Comparison) -> Iterator[str]:
    """Yield what a reader should know before trusting a comparison."""
    yield from found.notes
    yield from found.measures[found.primary].warnings


def _measure_row(one: MeasureComparison) -> list[str]:
    return [
        show.number(one.a),
        show.number(one.b),
        show.signed(one.diff),
        show.interval(one.low, one.high),
        show.p_value(one.p_adjusted),
        f"{one.wins}/{one.ties}/{one.losses}",
        says(one),
    ]


def _print_measures(found: Comparison) -> None:
    show.table(["measure", *HEADERS], [[name, *_measure_row(one)] for name, one in found.measures.items()])
    print(how_tested(found))


def _print_tests(found: Comparison) -> None:
    rows = [
        [
            name,
            str(one.n),
            show.number(one.t, 2),
            show.p_value(one.t_p),
            show.p_value(one.wilcoxon_p),
            show.p_value(one.p),
            show.p_value(one.interval_p),
            show.number(one.effect, 2),
            show.interval(*one.bca),
            show.number(one.prob_better),
            "none" if math.isinf(one.detectable) else show.number(one.detectable),
            "—" if one.more_queries is None else f"{one.more_queries:,}",
        ]
        for name, one in found.measures.items()
    ]
    headers = ["tests", "n", "t", "p of t", "Wilcoxon p", "randomisation p", "interval p", "d_z", "BCa interval"]
    print()
    show.table([*headers, "P(B is better)", "detectable", "more to settle"], rows)
    print(
        "The larger of the randomisation p and the interval p decides, since both must hold. Detectable: the smallest true\n"
        "difference that this many queries can detect. More to settle: how many more queries would settle a true difference\n"
        f"of the size seen ({terms(found.alpha, found.measures[found.primary].tests)})."
    )


def _print_latency(found: LatencyComparison, alpha: float) -> None:
    percentiles = {"p50": found.p50, "p95": found.p95, "p99": found.p99}
    rows = [[name, milliseconds(a), milliseconds(b), signed_milliseconds(b - a)] for name, (a, b) in percentiles.items()]
    show.table(["latency", "A", "B", "B − A"], rows)
    told = "" if found.comparable else "; measured on different machines, so informational only"
    interval = f"{signed_milliseconds(found.low)} … {signed_milliseconds(found.high)}"
    mean = signed_milliseconds(found.mean_diff)
    print(f"mean difference {mean} over {found.n} queries, {_level(alpha)} interval {interval}{told}")


def _level(alpha: float) -> str:
    return f"{100 * (1 - alpha):.4g} %"
