"""Ringtrue's measures beside trec_eval's numbers, measure by measure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ringtrue.errors import MissingInput
from ringtrue.formats import read_qrels, read_run
from ringtrue.measures import DEFINITIONS, Measure, score

EXACT = 1e-9
PRINTED = 0.00005000001  # trec_eval prints four digits


@dataclass(frozen=True)
class MeasureComparison:
    """One measure against one reference: how many values were compared and the largest difference found."""

    measure: str
    reference: str
    values: int
    largest_difference: float
    allowed: float
    where: str

    @property
    def holds(self) -> bool:
        """True when no value lies further off than allowed, and something was compared at all."""
        return self.values > 0 and self.largest_difference <= self.allowed


class _DifferenceTally:
    """Collects differences per measure."""

    def __init__(self, reference: str, allowed: float) -> None:
        self.reference, self.allowed = reference, allowed
        self.found: dict[str, tuple[int, float, str]] = {}

    def add(self, measure: Measure, mine: float, theirs: float, where: str) -> None:
        count, largest, place = self.found.get(str(measure), (0, 0.0, where))
        difference = abs(mine - theirs) if math.isfinite(mine) else math.inf
        if difference > largest:
            largest, place = difference, where
        self.found[str(measure)] = count + 1, largest, place

    def comparisons(self) -> list[MeasureComparison]:
        return [
            MeasureComparison(measure, self.reference, count, largest, self.allowed, where)
            for measure, (count, largest, where) in self.found.items()
        ]


def measures_called(names: Iterable[str]) -> dict[str, Measure]:
    """Return ``{trec_eval's name: our measure}`` for the names that Ringtrue has under exactly that meaning."""
    return {name: measure for name in names for measure in _candidates(name) if measure.trec == name}


def _candidates(name: str) -> Iterator[Measure]:
    for definition in DEFINITIONS.values():
        bare, cut = definition.trec
        if bare == name:
            yield Measure(definition.name)
        stem = None if cut is None else cut.split("{")[0]
        if stem and name.startswith(stem):
            text = name.removeprefix(stem)
            if text.isdecimal():
                yield Measure(definition.name, at=int(text))
            elif definition.cutoff == "level" and text.replace(".", "", 1).isdecimal():
                yield Measure(definition.name, at=float(text))


_score_as_trec_eval = partial(score, zero_relevant="zero", average_over="common")


def against_reference(folder: Path | None = None) -> list[MeasureComparison]:
    """Compare with the shipped reference data; raises MissingInput when it is not there."""
    folder = folder or Path(__file__).parent / "reference"
    source = folder / "expected.json"
    if not source.is_file():
        raise MissingInput(f"{source}: the reference values are missing; install Ringtrue again")
    record = json.loads(source.read_text(encoding="utf-8"))
    tally = _DifferenceTally(record["made_with"], EXACT)
    for name, case in record["cases"].items():
        per_query: dict[str, dict[str, float]] = case["per_query"]
        known = measures_called(next(iter(per_query.values())))
        qrels, run = read_qrels(folder / f"{name}.qrels"), read_run(folder / f"{name}.run")
        mine = _score_as_trec_eval(run, qrels, known.values(), rel=case["relevance_level"])
        if set(mine.query_ids) != set(per_query):
            tally.add(Measure("NumQ"), len(mine.query_ids), math.inf, f"{name}: other queries were scored")
            continue
        for query_id, expected in per_query.items():
            for trec_name, measure in known.items():
                tally.add(measure, mine.per_query[query_id][str(measure)], expected[trec_name], f"{name}, query {query_id}")
    return tally.comparisons()


# trec_eval's own quick test, from its Makefile: judgments, run, what the options mean here, expected output.
TREC_EVAL_CASES: Sequence[tuple[str, str, dict[str, Any], str]] = (
    ("qrels.test", "results.test", {}, "out.test"),
    ("qrels.test.with-comments", "results.test", {}, "out.test"),
    ("qrels.comment.test", "results.comment.test", {}, "out.comment.test"),
    ("qrels.test", "results.test", {}, "out.test.a"),
    ("qrels.test", "results.test", {}, "out.test.aq"),
    ("qrels.test", "results.trunc", {"average_over": "judged"}, "out.test.aqc"),
    ("qrels.test", "results.trunc", {"average_over": "judged", "depth": 100}, "out.test.aqcM"),
    ("qrels.rel_level", "results.test", {"rel": 2}, "out.test.aql"),
    ("qrels.test", "results.test", {}, "out.test.meas_params"),
)


def against_trec_eval_files(folder: Path) -> list[MeasureComparison]:
    """Compare with the outputs in trec_eval's own test folder, to the four digits they print."""
    missing = [name for case in TREC_EVAL_CASES for name in (case[0], case[1], case[3]) if not (folder / name).is_file()]
    if missing:
        raise MissingInput(f"{folder}: has no '{missing[0]}'; name the test/ folder of trec_eval's source")
    tally = _DifferenceTally("trec_eval 10 test files", PRINTED)
    for qrels_name, run_name, options, expected_name in TREC_EVAL_CASES:
        expected = [line.split("\t") for line in (folder / expected_name).read_text(encoding="utf-8").splitlines()]
        rows = [(name.strip(), query_id, value) for name, query_id, value in expected]
        known = measures_called(dict.fromkeys(name for name, _, _ in rows))
        mine = _score_as_trec_eval(read_run(folder / run_name), read_qrels(folder / qrels_name), known.values(), **options)
        for name, query_id, value in (row for row in rows if row[0] in known):
            measure = known[name]
            value_here = mine[measure] if query_id == "all" else mine.per_query[query_id][str(measure)]
            tally.add(measure, value_here, float(value), f"{expected_name}, query {query_id}")
    return tally.comparisons()


FIVE = {f"d{number}": 1 for number in range(1, 6)}
LABELS = {"a": 3, "b": 1, "c": 2}
GRADES = {"d1": 3, "d2": 2, "d3": 1, "d4": 0}
EXAMPLES: Sequence[tuple[str, str, dict[str, int], str, float]] = (
    ("five relevant, three of them in the top ten", "d1 d6 d2 d7 d8 d9 d3 d10 d11 d12", FIVE, "R@10", 0.6),
    ("three of five relevant in the top five", "d1 x d2 y d3", FIVE, "R@5", 0.6),
    ("the same list", "d1 x d2 y d3", FIVE, "P@5", 0.6),
    ("first relevant at rank 3", "x y d1", {"d1": 1}, "RR", 0.333),
    ("labels 3, 1, 2 in that order", "a b c", LABELS, "DCG@3", 4.63),
    ("labels 3, 1, 2 in the best order", "a c b", LABELS, "DCG@3", 4.76),
    ("labels 3, 1, 2 in that order", "a b c", LABELS, "nDCG@3", 0.97),
    ("ranking d1, d4, d2 of grades 3, 2, 1, 0", "d1 d4 d2", GRADES, "nDCG@10", 0.84),
    ("the same ranking", "d1 d4 d2", GRADES, "nDCG(gain='exp')@10", 0.905),
)
"""Worked examples: what they show, ranking, grades, measure, and its value to two or three digits."""


def worked_examples() -> list[tuple[str, float, float]]:
    """Return (example, value, expected) for the worked examples, rounded to the digits that are expected."""
    found: list[tuple[str, float, float]] = []
    for name, ranking, grades, measure, expected in EXAMPLES:
        value = score({"q": ranking.split()}, {"q": grades}, [measure])[measure]
        found.append((f"{name}: {measure}", round(value, len(repr(expected).split(".")[1])), expected))
    first = {"a": ["x"], "b": ["-", "x"], "c": ["-", "+", "x"]}
    mean = score(first, {query: {"x": 1} for query in first}, ["RR"])["RR"]
    return [*found, ("ranks 1, 2 and 3: mean RR", round(mean, 3), 0.611)]
