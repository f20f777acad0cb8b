"""What scoring gives back: values, means, slices, spread, worst queries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringtrue.errors import InputError
from ringtrue.measures import Counted, Facts, Measure, Scores, Summary, score
from ringtrue.records import GoldenSet, Judgment, Query, Run

# Reciprocal ranks 1, 1/2, 1/4, 0 and one query with nothing to find.
RUN = {"q1": ["r"], "q2": ["x", "r"], "q3": ["x", "y", "z", "r"], "q4": ["x"], "q5": ["x"]}
GRADES = {"q1": {"r": 1}, "q2": {"r": 1}, "q3": {"r": 1}, "q4": {"r": 1}, "q5": {"x": 0}}
FACTS = Facts(
    queries={
        "q1": {"query_type": "fact", "tags": ["a", "b"], "corpus": "one", "hard": True},
        "q2": {"query_type": "fact", "tags": ["a"], "corpus": "one", "hard": False},
        "q3": {"query_type": "how", "tags": [], "corpus": "two"},
        "q4": {"query_type": "how", "tags": ["b"], "corpus": "two", "category": "only here"},
        "q5": {"query_type": "none", "tags": None},
    }
)


@pytest.fixture(scope="module")
def scores() -> Scores:
    return score(RUN, GRADES, ["RR", "P@1", "NumRel", "GMAP"], facts=FACTS)


def same(found: Summary, *, count: int, values: list[float]) -> None:
    assert found.count == count == len(values)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.median == pytest.approx(np.median(values))
    assert found.std == pytest.approx(np.std(values, ddof=1) if count > 1 else math.nan, nan_ok=True)


def test_values_stand_per_measure_and_query(scores: Scores) -> None:
    assert scores.query_ids == ("q1", "q2", "q3", "q4", "q5")
    assert scores.values.shape == (4, 5)
    assert scores.of("mrr").tolist() == pytest.approx([1, 1 / 2, 1 / 4, 0, math.nan], nan_ok=True)
    assert scores.per_query["q2"] == {"RR": 0.5, "P@1": 0.0, "NumRel": 1.0, "GMAP": 0.5}
    assert math.isnan(scores.per_query["q5"]["RR"])


def test_aggregate_is_the_mean_of_what_is_defined_and_a_sum_for_counts(scores: Scores) -> None:
    assert scores["RR"] == pytest.approx((1 + 1 / 2 + 1 / 4 + 0) / 4)
    assert scores["P@1"] == pytest.approx(1 / 5)
    assert scores["NumRel"] == 4
    assert scores["GMAP"] == pytest.approx((1 * (1 / 2) * (1 / 4) * 0.00001) ** (1 / 4))


def test_median_and_standard_deviation_stand_beside_the_mean(scores: Scores) -> None:
    same(scores.summary("RR"), count=4, values=[1, 1 / 2, 1 / 4, 0])
    same(scores.summary("P@1"), count=5, values=[1, 0, 0, 0, 0])
    assert scores.summary("RR").median == pytest.approx(3 / 8)


def test_the_spread_of_one_query_is_unknown_not_0() -> None:
    found = score({"q": ["r"]}, {"q": {"r": 1}}, ["RR"]).summary("RR")
    assert (found.count, found.mean, found.median) == (1, 1.0, 1.0)
    assert math.isnan(found.std)


def test_a_slice_is_averaged_as_the_whole_is(scores: Scores) -> None:
    by_type = scores.by("query_type", "GMAP")
    assert by_type["fact"].mean == pytest.approx(math.sqrt(1 * 1 / 2))
    assert by_type["how"].mean == pytest.approx(math.sqrt(1 / 4 * 0.00001))
    assert scores.summary("GMAP").mean == pytest.approx(scores["GMAP"])


def test_every_mean_also_per_slice_with_its_count(scores: Scores) -> None:
    by_type = scores.by("query_type", "RR")
    assert list(by_type) == ["fact", "how", "none"]
    same(by_type["fact"], count=2, values=[1, 1 / 2])
    same(by_type["how"], count=2, values=[1 / 4, 0])


def test_trap_08_a_slice_where_nothing_is_defined_has_no_mean(scores: Scores) -> None:
    empty = scores.by("query_type", "RR")["none"]
    assert empty.count == 0
    assert math.isnan(empty.mean)
    assert math.isnan(empty.median)
    assert math.isnan(empty.std)


def test_a_query_with_several_tags_is_in_each_of_their_slices(scores: Scores) -> None:
    by_tag = scores.by("tags", "P@1")
    assert {tag: found.count for tag, found in by_tag.items()} == {"(none)": 2, "a": 2, "b": 2}
    same(by_tag["a"], count=2, values=[1, 0])
    same(by_tag["b"], count=2, values=[1, 0])
    same(by_tag["(none)"], count=2, values=[0, 0])


def test_queries_without_the_field_form_a_slice_of_their_own(scores: Scores) -> None:
    assert {name: found.count for name, found in scores.by("category", "P@1").items()} == {"(none)": 4, "only here": 1}
    assert {name: found.count for name, found in scores.by("hard", "P@1").items()} == {"(none)": 3, "False": 1, "True": 1}


def test_slices_by_one_value_cover_every_query(scores: Scores) -> None:
    for fact in ("query_type", "corpus", "category", "hard"):
        assert sum(found.count for found in scores.by(fact, "P@1").values()) == 5


def test_an_unknown_slice_is_met_with_the_nearest(scores: Scores) -> None:
    with pytest.raises(InputError, match="no query has the field 'query_typ'; did you mean 'query_type'"):
        scores.by("query_typ", "RR")


def test_without_facts_slices_say_where_facts_come_from() -> None:
    with pytest.raises(InputError, match="no query has the field 'query_type'; score against a golden set that declares it"):
        score(RUN, GRADES, ["RR"]).by("query_type", "RR")


def test_a_golden_set_brings_its_own_slices() -> None:
    golden = GoldenSet(
        id="g",
        version="1",
        queries=(Query("q1", "t", {"intent": "find"}), Query("q2", "t", {"intent": "list"})),
        judgments=(Judgment("q1", "r", 1), Judgment("q2", "r", 1)),
    )
    by_intent = score({"q1": ["r"], "q2": ["x", "r"]}, golden, ["RR"]).by("intent", "RR")
    assert {name: found.mean for name, found in by_intent.items()} == {"find": 1.0, "list": 0.5}


def test_worst_queries_come_first_and_undefined_ones_not_at_all(scores: Scores) -> None:
    assert scores.worst("RR") == [("q4", 0.0), ("q3", 0.25), ("q2", 0.5), ("q1", 1.0)]
    assert scores.worst("RR", count=2) == [("q4", 0.0), ("q3", 0.25)]


def test_equally_bad_queries_stay_in_their_order(scores: Scores) -> None:
    assert [query for query, _ in scores.worst("P@1")] == ["q2", "q3", "q4", "q5", "q1"]


def test_where_lower_is_better_the_worst_query_has_the_highest_value() -> None:
    run = {"q1": ["r"], "q2": ["x"], "q3": []}
    found = score(run, {query: {"r": 1} for query in run}, ["FalseInject@5"])
    assert found.worst("FalseInject@5", count=1) == [("q2", 1.0)]


@pytest.mark.parametrize("name", ["Forbidden", "Stale", "FalseInject", "Diversity"])
def test_the_measures_in_which_lower_is_better_say_so(name: str) -> None:
    assert Measure(name, at=5).definition.lower_is_better


def test_asking_for_a_measure_that_was_not_scored_names_the_nearest(scores: Scores) -> None:
    for ask in (scores.of, scores.summary, scores.worst, scores.__getitem__, lambda measure: scores.by("query_type", measure)):
        with pytest.raises(InputError, match="'P@5' was not scored; did you mean 'P@1'"):
            ask("P@5")


def test_notes_are_silent_when_there_is_nothing_to_say() -> None:
    assert Counted(queries=3).notes() == []


def test_notes_tell_everything_that_was_not_plain() -> None:
    counted = Counted(
        queries=3,
        missing=("q1",),
        without_relevant=("q2",),
        ignored_queries=4,
        duplicates=5,
        repeated_judgments=6,
        tied_cutoffs=((10, 7),),
    )
    notes = counted.notes()
    assert len(notes) == 6
    for number, note in zip("114567", notes, strict=True):
        assert note.startswith(number)


def test_values_are_bit_identical_from_run_to_run() -> None:
    rng = np.random.default_rng(5)
    rows = [(f"q{q}", f"d{d}", float(rng.random())) for q in range(40) for d in range(60)]
    grades = {f"q{q}": {f"d{d}": int(rng.integers(0, 4)) for d in range(0, 80, 3)} for q in range(40)}
    measures = ["nDCG@10", "AP", "ERR", "RBP", "infAP", "Bpref"]
    once = score(Run.of(rows), grades, measures)
    again = score(Run.of(rows), grades, measures)
    assert once.values.tobytes() == again.values.tobytes()
    assert once.aggregate == again.aggregate
