"""A record typed at a prompt fits on a screen, however much it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import pytest

import ringtrue
from made import evaluation, golden_set
from ringtrue.measures import score
from ringtrue.records import Document, GoldenSet, Hit, Judgment, Query, Ranking, Stage
from ringtrue.run import Component, Evaluation
from ringtrue.verdict import Policy, baseline_of

LINES, COLUMNS = 20, 100
LONG = "a long text\nwith lines " * 100
ELSEWHERE = {"Comparison", "Verdict"}
"""Public records that have tests of their own."""


@pytest.fixture(scope="module")
def values() -> Mapping[str, Any]:
    """One value of every public record, as large as they come."""
    hit = Hit(
        "d" * 500, 1.0, LONG, {f"channel {n}": n for n in range(50)}, 0.5, tuple(Stage("s" * 50, n, 0.1) for n in range(50))
    )
    documents = tuple(Document(f"d{n}", LONG, LONG, {f"field {k}": LONG for k in range(50)}, (LONG,) * 20) for n in range(100))
    queries = tuple(Query(f"q{n}", LONG, {f"field {k}": LONG for k in range(9)}) for n in range(100))
    judgments = tuple(Judgment(f"q{n}", f"d{n}", 1, LONG, {"said": LONG}) for n in range(100))
    golden = GoldenSet("large", "1.0.0", queries, judgments, documents, description=LONG, metadata={"notes": LONG})
    rankings = tuple(Ranking(f"q{n}", tuple(Hit(f"d{k}") for k in range(100)), 1.0) for n in range(100))
    measures = [f"R@{k}" for k in range(1, 61)]
    found = evaluation()
    scores = score(rankings, golden, measures)
    component = Component("c" * 500, "channel", rankings, scores)
    large = Evaluation(
        LONG, found.setup, queries, golden.qrels, {f"d{n}": LONG for n in range(100)}, rankings, scores,
        components=(component,) * 20, notes=(LONG,) * 100,
    )  # fmt: skip
    made = (
        hit, documents[0], queries[0], judgments[0], golden, rankings[0], golden.qrels, scores, large, baseline_of(large),
        ringtrue.Run.from_rankings(rankings), ringtrue.Facts.of(golden), ringtrue.Measure.parse("nDCG(gain='exp')@10"),
        Policy(floors={f"R@{k}": 0.5 for k in range(1, 61)}), Stage("s" * 500, 1, 0.1), component, found.setup,
        ringtrue.validate(golden_set(10)),
    )  # fmt: skip
    return {type(value).__name__: value for value in made}


def test_every_public_record_is_looked_at(values: Mapping[str, Any]) -> None:
    public = {name for name in ringtrue.__all__ if is_dataclass(getattr(ringtrue, name)) or name == "Stage"}
    assert public - ELSEWHERE <= set(values)


def test_every_public_record_fits_on_a_screen(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        rows = sum(1 + max(0, len(line) - 1) // COLUMNS for line in repr(value).splitlines())
        assert rows <= LINES, f"{name} shows itself in {rows} rows of {COLUMNS} columns"


def test_the_shipped_set_and_a_run_on_it_say_what_matters() -> None:
    hotel = ringtrue.load("hotel")
    assert repr(hotel).startswith("GoldenSet(id='hotel', version='1.0.0', queries=<72>, judgments=<1322>, documents=<80>")
    found = ringtrue.evaluate("rrf(bm25, fts5)", hotel, measures=["nDCG@10"])
    assert repr(found).startswith(
        "Evaluation(name='rrf(bm25, fts5)', search='rrf(bm25, fts5)', golden='hotel-v1.0.0', queries=72"
    )
    assert f"nDCG@10: {found.metrics['nDCG@10']:.4g}" in repr(found)
    assert repr(found.rankings[0]).startswith("Ranking(query_id='q001', hits=<80>")
    assert repr(hotel.judgments[0]) == "Judgment(query_id='q001', doc_id='entity-email-storm-refund', grade=3)"
