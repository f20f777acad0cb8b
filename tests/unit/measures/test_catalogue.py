"""Every measure of the catalogue on an answer small enough to compute by hand."""

from __future__ import annotations

import math

import pytest

from ringtrue.errors import InputError
from ringtrue.measures import CATALOGUE, Facts, Measure, score

# One answer: relevant documents at ranks 1, 3 and 5, one unjudged at 2, one judged as not relevant at 4, one not found.
SHOWN = ["a", "x", "b", "n", "c"]
GRADES = {"a": 2, "b": 1, "c": 3, "d": 1, "n": 0}
E = 1e-5  # the smoothing of inferred AP
log2 = math.log2

IDEAL = 3 + 2 / log2(3) + 1 / log2(4) + 1 / log2(5)
IDEAL_3 = 3 + 2 / log2(3) + 1 / log2(4)
EXP_IDEAL = 7 + 3 / log2(3) + 1 / log2(4) + 1 / log2(5)
AP = (1 / 1 + 2 / 3 + 3 / 5) / 4

RANKED = {
    "R@3": 2 / 4,
    "R@5": 3 / 4,
    "R": 3 / 4,
    "R(rel=2)@3": 1 / 2,
    "P@1": 1.0,
    "P@3": 2 / 3,
    "P@10": 3 / 10,
    "P(rel=2)@5": 2 / 5,
    "SetP": 3 / 5,
    "SetP@2": 1 / 2,
    "SetP@10": 3 / 5,
    "F1@3": 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4),
    "F1": 2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4),
    "RR": 1.0,
    "RR(rel=3)": 1 / 5,
    "RR(rel=3)@4": 0.0,
    "AP": AP,
    "AP@3": (1 / 1 + 2 / 3) / 4,
    "AP(rel=2)": (1 / 1 + 2 / 5) / 2,
    "DCG": 2 + 1 / log2(4) + 3 / log2(6),
    "DCG@3": 2 + 1 / log2(4),
    "DCG(gain='exp')": 3 + 1 / log2(4) + 7 / log2(6),
    "nDCG": (2 + 1 / log2(4) + 3 / log2(6)) / IDEAL,
    "nDCG@3": (2 + 1 / log2(4)) / IDEAL_3,
    "nDCG(gain='exp')": (3 + 1 / log2(4) + 7 / log2(6)) / EXP_IDEAL,
    "nDCG(rel=2)": (2 + 3 / log2(6)) / (3 + 2 / log2(3)),
    "Success@1": 1.0,
    "Success(rel=3)@4": 0.0,
    "Success(rel=3)@5": 1.0,
    "AllRelevant@5": 0.0,
    "AllRelevant(rel=2)@5": 1.0,
    "AllRelevant(rel=2)@4": 0.0,
    "RPrec": 2 / 4,
    "RPrec(rel=2)": 1 / 2,
    "Bpref": (1 + 1 + (1 - 1 / 1)) / 4,
    "Bpref(rel=2)": (1 + (1 - 2 / 2)) / 2,
    "infAP": (1 + (1 / 3 + 2 / 3 * 1 / 2 * (1 + E) / (1 + 2 * E)) + (1 / 5 + 4 / 5 * 3 / 4 * (2 + E) / (3 + 2 * E))) / 4,
    "RBP": 0.1 * (2 / 3 + 1 / 3 * 0.9**2 + 3 / 3 * 0.9**4),
    "RBP(p=0.5, rel=1)": 0.5 * (1 + 0.5**2 + 0.5**4),
    "RBP(p=0.5, rel=1)@3": 0.5 * (1 + 0.5**2),
    "RBPResidual(p=0.5)": 1 - 0.5 * (1 + 0.5**2 + 0.5**3 + 0.5**4),
    "RBPResidual(p=0.5)@2": 1 - 0.5 * 1,
    "ERR": 3 / 8 + 1 / 3 * 1 / 8 * 5 / 8 + 1 / 5 * 7 / 8 * 5 / 8 * 7 / 8,
    "ERR@3": 3 / 8 + 1 / 3 * 1 / 8 * 5 / 8,
    "ERR(max=4)@3": 3 / 16 + 1 / 3 * 1 / 16 * 13 / 16,
    "Judged@2": 1 / 2,
    "Judged@10": 4 / 5,
    "IPrec@0.0": 1.0,
    "IPrec@0.25": 1.0,
    "IPrec@0.5": 2 / 3,
    "IPrec@0.75": 3 / 5,
    "IPrec@1.0": 0.0,
    "GMAP": AP,
    "NumRet": 5,
    "NumRet@3": 3,
    "NumRel": 4,
    "NumRel(rel=2)": 2,
    "NumRelRet": 3,
    "NumRelRet@3": 2,
    "NumQ": 1,
    # The condensed list is a, b, n, c: without the unjudged document at rank 2 the later ones move up.
    "P(judged_only=True)@3": 2 / 3,
    "P(judged_only=True)@2": 2 / 2,
    "R(judged_only=True)@2": 2 / 4,
    "AP(judged_only=True)": (1 / 1 + 2 / 2 + 3 / 4) / 4,
    "RR(judged_only=True, rel=3)": 1 / 4,
    "nDCG(judged_only=True)": (2 + 1 / log2(3) + 3 / log2(5)) / IDEAL,
    "SetP(judged_only=True)": 3 / 4,
    "RPrec(judged_only=True)": 3 / 4,
    "ERR(judged_only=True, max=3)": 3 / 8 + 1 / 2 * 1 / 8 * 5 / 8 + 1 / 4 * 7 / 8 * 5 / 8 * 7 / 8,
    "RBP(judged_only=True, p=0.5, rel=1)": 0.5 * (1 + 0.5 + 0.5**3),
    "IPrec(judged_only=True)@0.5": 1.0,
}

FACTS = Facts(
    documents={
        "a": {"importance_tier": "constitutional", "spec_folder": "one", "record_status": "active"},
        "b": {"importance_tier": "critical", "spec_folder": "one"},
        "c": {"importance_tier": "temporary", "spec_folder": "two", "record_status": "retired"},
        "d": {"importance_tier": "important", "spec_folder": "two"},
        "n": {"importance_tier": "critical", "spec_folder": "one", "record_status": "superseded"},
        "x": {"spec_folder": "three"},
    },
    queries={"q": {"chain": ["a", "b", "d"], "forbidden": ["n"], "top_1_chunk": "a"}},
)
LISTS = {
    "Diversity@3": 1 - 2 / 3,
    "Diversity@5": 1 - 3 / 5,
    "Diversity(by='importance_tier')@2": 0.0,
    "Top1Chunk": 1.0,
    "Constitutional@1": 1.0,
    "ImportanceRecall@3": (4 + 3) / (4 + 3 + 0.5 + 2),
    "ImportanceRecall@5": (4 + 3 + 0.5) / (4 + 3 + 0.5 + 2),
    "ImportanceRecall(tiers=['constitutional', 'critical'])@1": 4 / 7,
    "ImportanceRecall(rel=2)@3": 4 / 4.5,
    "TierP@5": 1 / 2,
    "TierP(tier='temporary')@5": 1.0,
    "TierP(tier='normal')@5": 0.0,
    "ChainCompleteness@2": 1 / 3,
    "ChainCompleteness@5": 2 / 3,
    "Forbidden@3": 0.0,
    "Forbidden@4": 1.0,
    "Stale@3": 0.0,
    "Stale@5": 2 / 5,
    "FalseInject@1": 0.0,
    "FalseInject@2": 1.0,
    "Silent": 0.0,
}


@pytest.mark.parametrize(("measure", "expected"), RANKED.items(), ids=RANKED)
def test_ranked_measure_by_hand(measure: str, expected: float) -> None:
    scores = score({"q": SHOWN}, {"q": GRADES}, [measure])
    assert scores[measure] == pytest.approx(expected, abs=1e-12)
    assert scores.per_query["q"][str(Measure.parse(measure))] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("measure", "expected"), LISTS.items(), ids=LISTS)
def test_list_measure_by_hand(measure: str, expected: float) -> None:
    scores = score({"q": SHOWN}, {"q": GRADES}, [measure], facts=FACTS)
    assert scores[measure] == pytest.approx(expected, abs=1e-12)


def test_every_measure_of_the_catalogue_has_an_example_here() -> None:
    assert {Measure.parse(text).name for text in (*RANKED, *LISTS)} == {definition.name for definition in CATALOGUE}


def test_the_catalogue_holds_what_the_specification_names() -> None:
    named = "R P SetP F1 RR AP nDCG DCG Success AllRelevant RPrec Bpref RBP RBPResidual infAP Judged ERR"
    assert set(named.split()) <= {definition.name for definition in CATALOGUE}


def test_all_examples_asked_for_together_give_the_same_values() -> None:
    everything = {**RANKED, **LISTS}
    scores = score({"q": SHOWN}, {"q": GRADES}, list(everything), facts=FACTS)
    assert scores.aggregate == {str(Measure.parse(text)): pytest.approx(value) for text, value in everything.items()}


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 7, 11, 1000, 10**9])
def test_any_k(k: int) -> None:
    found = sum(rank <= k for rank in (1, 3, 5))
    scores = score({"q": SHOWN}, {"q": GRADES}, [f"P@{k}", f"R@{k}", f"SetP@{k}"])
    assert scores[f"P@{k}"] == pytest.approx(found / k)
    assert scores[f"R@{k}"] == found / 4
    assert scores[f"SetP@{k}"] == found / min(k, 5)


def test_reciprocal_rank_and_average_precision_average_to_mrr_and_map() -> None:
    run = {"q1": ["r"], "q2": ["-", "r"], "q3": ["-", "-", "-"]}
    scores = score(run, {query: {"r": 1} for query in run}, ["RR", "AP", "GMAP"])
    assert scores["mrr"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert scores["map"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert scores["gm_map"] == pytest.approx((1 * (1 / 2) * 0.00001) ** (1 / 3))


def test_counts_are_summed_over_queries() -> None:
    scores = score(
        {"q1": ["a", "b"], "q2": ["c"]}, {"q1": {"a": 1, "z": 1}, "q2": {"c": 0}}, ["NumRet", "NumRel", "NumRelRet", "NumQ"]
    )
    assert scores.aggregate == {"NumRet": 3, "NumRel": 2, "NumRelRet": 1, "NumQ": 2}


class TestInferredAveragePrecision:
    """infAP reads a grade below 0 as "in the pool, but not among the judged sample"."""

    def test_pooled_documents_widen_the_part_of_the_pool_that_is_estimated(self) -> None:
        scores = score({"q": ["p", "n", "r"]}, {"q": {"p": -1, "n": 0, "r": 1}}, ["infAP"])
        above = (0 + E) / (1 + 2 * E)  # of the judged documents above, none is relevant
        assert scores["infAP"] == pytest.approx(1 / 3 + 2 / 3 * (2 / 2) * above, abs=1e-12)

    def test_documents_outside_the_pool_count_as_not_relevant(self) -> None:
        scores = score({"q": ["x", "r", "y", "s"]}, {"q": {"r": 1, "s": 1}}, ["infAP"])
        first = 1 / 2 + 1 / 2 * (0 / 1) * (0 + E) / (0 + 2 * E)
        second = 1 / 4 + 3 / 4 * (1 / 3) * (1 + E) / (1 + 2 * E)
        assert scores["infAP"] == pytest.approx((first + second) / 2, abs=1e-12)


class TestBpref:
    def test_more_judged_irrelevant_documents_above_than_relevant_ones_cost_no_more_than_all(self) -> None:
        run = {"q": ["n1", "n2", "n3", "r"]}
        assert score(run, {"q": {"n1": 0, "n2": 0, "n3": 0, "r": 1}}, ["Bpref"])["Bpref"] == 0.0

    def test_unjudged_documents_above_cost_nothing(self) -> None:
        assert score({"q": ["x", "y", "r"]}, {"q": {"n": 0, "r": 1}}, ["Bpref"])["Bpref"] == 1.0

    def test_pooled_but_unjudged_documents_are_not_judged_irrelevant_ones(self) -> None:
        assert score({"q": ["p", "r"]}, {"q": {"p": -1, "n": 0, "r": 1}}, ["Bpref"])["Bpref"] == 1.0

    def test_pooled_but_unjudged_documents_do_not_widen_the_base(self) -> None:
        grades = {"r1": 1, "r2": 1, "n": 0, "p": -1}
        assert score({"q": ["n", "r1", "r2"]}, {"q": grades}, ["Bpref"])["Bpref"] == 0.0, "1 − 1 ÷ min(1 judged as 0, 2)"


class TestExpectedReciprocalRank:
    def test_the_scale_of_a_long_grading_does_not_overflow(self) -> None:
        run = {"q1": ["a", "b"], "q2": ["b", "a"]}
        qrels = {query: {"a": 100, "b": 50} for query in run}
        scores = score(run, qrels, ["ERR"])
        assert scores.per_query == {"q1": {"ERR": pytest.approx(1.0)}, "q2": {"ERR": pytest.approx(0.5)}}

    def test_a_grade_above_the_declared_maximum_counts_as_the_maximum(self) -> None:
        assert score({"q": ["a"]}, {"q": {"a": 9}}, ["ERR(max=2)"])["ERR(max=2)"] == 3 / 4

    def test_a_negative_grade_stops_nobody(self) -> None:
        assert score({"q": ["p", "a"]}, {"q": {"p": -2, "a": 1}}, ["ERR(max=1)"])["ERR(max=1)"] == 1 / 4


class TestRankBiasedPrecision:
    def test_a_negative_grade_gains_nothing_and_costs_nothing(self) -> None:
        assert score({"q": ["p", "a"]}, {"q": {"p": -2, "a": 1}}, ["RBP(p=0.5)"])["RBP(p=0.5)"] == 0.25

    def test_a_perfect_endless_answer_approaches_but_never_exceeds_one(self) -> None:
        shown = [f"d{number}" for number in range(200)]
        for p in (0.01, 0.1, 0.3, 0.5, 0.77, 0.99):
            value = score({"q": shown}, {"q": dict.fromkeys(shown, 1)}, [f"RBP(p={p})"])[f"RBP(p={p})"]
            assert value <= 1.0
            assert value == pytest.approx(1 - p**200)

    def test_value_and_residual_span_what_is_possible(self) -> None:
        scores = score({"q": SHOWN}, {"q": GRADES}, ["RBP(p=0.5, rel=1)", "RBPResidual(p=0.5)"])
        all_relevant = {"q": {**GRADES, "x": 1}}
        best = score({"q": SHOWN}, all_relevant, ["RBP(p=0.5, rel=1)"])["RBP(p=0.5, rel=1)"] + 0.5**5  # and all that follow
        assert scores["RBP(p=0.5, rel=1)"] + scores["RBPResidual(p=0.5)"] == pytest.approx(best)


def test_exponential_gain_of_an_absurd_grade_is_an_error_instead_of_a_dropped_query() -> None:
    with pytest.raises(InputError, match="grade 5000 is too large for gain='exp'"):
        score({"q": ["a"]}, {"q": {"a": 5000}}, ["nDCG(gain='exp')"])
    assert score({"q": ["a"]}, {"q": {"a": 5000}}, ["nDCG"])["nDCG"] == 1.0


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0.0, 1.0),  # needs nothing: the best precision anywhere
        (0.1, 1.0),  # 0.3 of 3 rounds to none needed
        (0.2, 1.0),  # 0.6 rounds to one, found at rank 1
        (0.5, 2 / 3),  # 1.5 rounds up to two, found at rank 3
        (0.8, 2 / 3),  # 2.4 rounds down to two; trec_eval 9 needed three here
        (0.9, 3 / 10),  # 2.7 rounds to all three
        (1.0, 3 / 10),
    ],
)
def test_interpolated_precision_rounds_the_needed_count_to_the_nearest_as_trec_eval_10(level: float, expected: float) -> None:
    shown = [f"d{rank}" for rank in range(1, 11)]
    measure = Measure("IPrec", at=level)
    assert score({"q": shown}, {"q": {"d1": 1, "d3": 1, "d10": 1}}, [measure])[measure] == pytest.approx(expected)
