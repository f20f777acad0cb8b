"""The list measures and the facts they read: importance, chains, forbidden and retired documents."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringtrue.errors import CannotDecide
from ringtrue.measures import TIER_WEIGHTS, Facts, score
from ringtrue.records import Document, GoldenSet, Hit, Judgment, Query, Ranking

TIERS = {
    "c1": "constitutional",
    "c2": "constitutional",
    "k1": "critical",
    "i1": "important",
    "n1": "normal",
    "t1": "temporary",
}
FACTS = Facts(documents={doc: {"importance_tier": tier} for doc, tier in TIERS.items()})


def value(shown: list[str], grades: dict[str, int], measure: str, facts: Facts = FACTS) -> float:
    return score({"q": shown}, {"q": grades}, [measure], facts=facts)[measure]


class TestConstitutional:
    def test_all_constitutional_items_must_be_in_the_top_k(self) -> None:
        assert value(["c1", "x", "c2"], {"c1": 1}, "Constitutional@3") == 1.0
        assert value(["c1", "x", "c2"], {"c1": 1}, "Constitutional@2") == 0.0

    def test_judgments_do_not_matter_to_it(self) -> None:
        assert value(["c1", "c2"], {"n1": 1}, "Constitutional@5") == 1.0

    def test_a_retired_constitutional_item_need_not_surface(self) -> None:
        facts = Facts(
            documents={
                "c1": {"importance_tier": "constitutional"},
                "old": {"importance_tier": "constitutional", "record_status": "retired"},
            }
        )
        assert value(["c1"], {"c1": 1}, "Constitutional@5", facts) == 1.0

    def test_without_any_constitutional_item_there_is_no_rate(self) -> None:
        facts = Facts(documents={"n1": {"importance_tier": "normal"}})
        assert math.isnan(value(["n1"], {"n1": 1}, "Constitutional@5", facts))

    def test_the_rate_is_the_mean_over_queries_a_missing_answer_included(self) -> None:
        grades = {query: {"c1": 1} for query in ("q1", "q2", "q3", "q4")}
        run = {"q1": ["c1", "c2"], "q2": ["c2", "c1", "x"], "q3": ["c1"]}
        assert score(run, grades, ["Constitutional@5"], facts=FACTS)["Constitutional@5"] == 2 / 4


class TestImportanceRecall:
    def test_the_weights_are_4_3_2_1_and_a_half(self) -> None:
        assert TIER_WEIGHTS == {"constitutional": 4, "critical": 3, "important": 2, "normal": 1, "temporary": 0.5}

    @pytest.mark.parametrize(("doc", "tier"), TIERS.items())
    def test_each_tier_weighs_what_it_should(self, doc: str, tier: str) -> None:
        everything = dict.fromkeys(TIERS, 1)
        assert value([doc], everything, "ImportanceRecall@5") == pytest.approx(TIER_WEIGHTS[tier] / 14.5)

    def test_a_document_without_a_tier_is_normal(self) -> None:
        assert value(["x"], {"x": 1, "k1": 1}, "ImportanceRecall@5") == 1 / 4

    def test_only_relevant_items_count(self) -> None:
        assert value(["c1", "n1"], {"c1": 0, "n1": 1, "t1": 1}, "ImportanceRecall@5") == pytest.approx(1 / 1.5)

    def test_it_can_be_taken_over_critical_and_constitutional_alone(self) -> None:
        measure = "ImportanceRecall(tiers=['constitutional', 'critical'])@5"
        assert value(["c1", "n1"], {"c1": 1, "k1": 1, "n1": 1}, measure) == pytest.approx(4 / 7)

    def test_with_nothing_relevant_the_policy_of_m3_applies(self) -> None:
        measure = "ImportanceRecall@5"
        assert math.isnan(value(["c1"], {"c1": 0}, measure))
        assert score({"q": ["c1"]}, {"q": {"c1": 0}}, [measure], facts=FACTS, zero_relevant="one")[measure] == 1.0


class TestTierPrecision:
    GRADES = {"c1": 1, "k1": 1, "k2": 0, "i1": 0}  # noqa: RUF012
    FACTS = Facts(documents={**FACTS.documents, "k2": {"importance_tier": "critical"}})

    @pytest.mark.parametrize(("tier", "expected"), [("constitutional", 1.0), ("critical", 1 / 2), ("important", 0.0)])
    def test_precision_among_the_shown_items_of_one_tier(self, tier: str, expected: float) -> None:
        assert value(["c1", "k1", "k2", "i1"], self.GRADES, f"TierP(tier='{tier}')@5", self.FACTS) == expected

    def test_a_tier_that_was_not_shown_has_no_precision(self) -> None:
        assert math.isnan(value(["c1"], self.GRADES, "TierP(tier='temporary')@5", self.FACTS))

    def test_only_the_top_k_is_looked_at(self) -> None:
        assert value(["k1", "k2"], self.GRADES, "TierP@1", self.FACTS) == 1.0


class TestChainCompleteness:
    FACTS = Facts(queries={"q1": {"chain": ["a", "b", "c", "d"]}, "q2": {"chain": ["e"]}, "q3": {}})

    def test_members_of_the_chain_in_the_top_k_over_its_length(self) -> None:
        run = {"q1": ["b", "x", "a", "c"], "q2": ["x"], "q3": ["a"]}
        scores = score(run, {query: {"a": 1} for query in run}, ["ChainCompleteness@3"], facts=self.FACTS)
        assert scores.of("ChainCompleteness@3").tolist() == pytest.approx([2 / 4, 0.0, math.nan], nan_ok=True)
        assert scores["ChainCompleteness@3"] == pytest.approx((2 / 4 + 0) / 2), "a query without a chain is not asked"

    def test_a_member_named_or_shown_twice_counts_once(self) -> None:
        facts = Facts(queries={"q": {"chain": ["a", "a", "b"]}})
        assert value(["a", "a"], {"a": 1}, "ChainCompleteness@5", facts) == 1 / 2

    def test_trap_11_members_given_as_numbers_match_ids_given_as_text(self) -> None:
        facts = Facts(queries={"q": {"chain": [12, 13]}})
        assert value(["12"], {"12": 1}, "ChainCompleteness@5", facts) == 1 / 2


class TestForbiddenAndStale:
    def test_forbidden_is_1_when_a_barred_document_is_in_the_top_k(self) -> None:
        facts = Facts(queries={"q": {"forbidden": ["secret", "other"]}})
        assert value(["a", "secret"], {"a": 1}, "Forbidden@2", facts) == 1.0
        assert value(["a", "secret"], {"a": 1}, "Forbidden@1", facts) == 0.0

    def test_queries_that_forbid_nothing_are_not_asked(self) -> None:
        facts = Facts(queries={"q1": {"forbidden": ["s"]}, "q2": {"forbidden": []}})
        run = {"q1": ["s"], "q2": ["s"]}
        assert score(run, {query: {"a": 1} for query in run}, ["Forbidden@5"], facts=facts)["Forbidden@5"] == 1.0

    @pytest.mark.parametrize(("status", "share"), [("superseded", 0.5), ("retired", 0.5), ("archived", 0.5), ("active", 0.0)])
    def test_stale_is_the_share_of_shown_items_out_of_use(self, status: str, share: float) -> None:
        facts = Facts(documents={"a": {"record_status": status}})
        assert value(["a", "b"], {"b": 1}, "Stale@5", facts) == share

    def test_the_share_is_of_what_was_shown_and_nothing_shown_has_none(self) -> None:
        facts = Facts(documents={"a": {"record_status": "retired"}})
        assert value(["a"], {"a": 1}, "Stale@10", facts) == 1.0
        assert math.isnan(value([], {"a": 1}, "Stale@10", facts))


class TestSilenceAndInjection:
    GRADES = {query: {"a": 2, "b": 1} for query in ("q1", "q2", "q3", "q4")}  # noqa: RUF012
    RUN = {"q1": ["a"], "q2": ["a", "x"], "q3": [], "q4": ["b"]}  # noqa: RUF012

    def test_false_inject_rate_is_queries_with_an_irrelevant_injection_over_all_queries(self) -> None:
        scores = score(self.RUN, self.GRADES, ["FalseInject@5", "FalseInject(rel=2)@5", "FalseInject@1"])
        assert scores.aggregate == {"FalseInject@5": 1 / 4, "FalseInject(rel=2)@5": 2 / 4, "FalseInject@1": 0.0}

    def test_silent_rate_is_the_share_of_empty_answers(self) -> None:
        assert score(self.RUN, self.GRADES, ["Silent"])["Silent"] == 1 / 4

    def test_keeping_silent_injects_nothing_false(self) -> None:
        assert score({"q1": []}, {"q1": {"a": 1}}, ["FalseInject@5"])["FalseInject@5"] == 0.0

    def test_a_golden_threshold_decides_what_is_irrelevant(self) -> None:
        golden = GoldenSet("g", "1", (Query("q", "t"),), (Judgment("q", "b", 1),), relevance_threshold=2)
        assert score({"q": ["b"]}, golden, ["FalseInject@5"])["FalseInject@5"] == 1.0


class TestDiversity:
    def test_one_minus_unique_groups_over_results(self) -> None:
        facts = Facts(documents={"a": {"spec_folder": "f"}, "b": {"spec_folder": "f"}, "c": {"spec_folder": "g"}})
        assert value(["a", "b", "c"], {"a": 1}, "Diversity@3", facts) == pytest.approx(1 - 2 / 3)
        assert value(["a", "c"], {"a": 1}, "Diversity@3", facts) == 0.0
        assert value(["a", "b"], {"a": 1}, "Diversity@3", facts) == 0.5

    def test_a_document_without_the_field_is_a_group_of_its_own(self) -> None:
        facts = Facts(documents={"a": {"spec_folder": "f"}, "b": {"spec_folder": None}, "c": {"spec_folder": None}})
        assert value(["a", "b", "c", "x", "y"], {"a": 1}, "Diversity@5", facts) == 0.0

    @pytest.mark.parametrize("group", [["x", "y"], {"x": 1}, 7, True, "text"])
    def test_any_field_may_be_the_group_whatever_it_holds(self, group: object) -> None:
        facts = Facts(documents={"a": {"field": group}, "b": {"field": group}})
        assert value(["a", "b"], {"a": 1}, "Diversity(by='field')@5", facts) == 0.5

    def test_nothing_shown_has_no_diversity(self) -> None:
        facts = Facts(documents={"a": {"spec_folder": "f"}})
        assert math.isnan(value([], {"a": 1}, "Diversity@5", facts))


class TestTopChunk:
    FACTS = Facts(
        queries={"q1": {"top_1_chunk": "d1#2"}, "q2": {"top_1_chunk": "d1#2"}, "q3": {}, "q4": {"top_1_chunk": "d1#2"}}
    )

    def test_share_of_queries_whose_declared_chunk_is_ranked_first(self) -> None:
        run = {"q1": ["d1#2", "d1#1"], "q2": ["d1#1", "d1#2"], "q3": ["d1#1"], "q4": []}
        scores = score(run, {query: {"d1": 1} for query in run}, ["Top1Chunk"], facts=self.FACTS)
        assert np.array_equal(scores.of("Top1Chunk"), [1.0, 0.0, math.nan, 0.0], equal_nan=True)
        assert scores["Top1Chunk"] == pytest.approx(1 / 3)

    def test_the_chunk_of_the_first_hit_counts_if_answers_name_documents(self) -> None:
        run = [
            Ranking("q1", (Hit("d1", chunk="d1#2"), Hit("d2", chunk="d2#0"))),
            Ranking("q2", (Hit("d1", chunk="d1#1"),)),
            Ranking("q3", (Hit("d1", chunk="d1#2"),)),
            Ranking("q4", ()),
        ]
        scores = score(run, {one.query_id: {"d1": 1} for one in run}, ["Top1Chunk"], facts=self.FACTS)
        assert np.array_equal(scores.of("Top1Chunk"), [1.0, 0.0, math.nan, 0.0], equal_nan=True)

    def test_a_search_that_names_no_chunks_has_no_value_and_not_0(self) -> None:
        run = {"q1": ["d1"], "q2": ["d2", "d1"], "q3": ["d1"], "q4": []}
        scores = score(run, {query: {"d1": 1} for query in run}, ["Top1Chunk"], facts=self.FACTS)
        assert np.isnan(scores.of("Top1Chunk")).all()

    @pytest.mark.parametrize(("chunk", "expected"), [("c7", [1.0, 0.0]), (None, [math.nan, math.nan])])
    def test_a_declared_chunk_with_the_id_of_a_document_does_not_turn_documents_into_chunks(
        self, chunk: str | None, expected: list[float]
    ) -> None:
        facts = Facts(queries={"q1": {"top_1_chunk": "c7"}, "q2": {"top_1_chunk": "d2"}})
        run = [Ranking("q1", (Hit("d1", chunk=chunk),)), Ranking("q2", (Hit("d2", chunk=chunk),))]
        scores = score(run, {"q1": {"d1": 1}, "q2": {"d2": 1}}, ["Top1Chunk"], facts=facts)
        assert np.array_equal(scores.of("Top1Chunk"), expected, equal_nan=True)

    def test_a_first_hit_without_a_chunk_has_no_value_among_others_that_have_one(self) -> None:
        run = [Ranking("q1", (Hit("d1", chunk="d1#2"),)), Ranking("q2", (Hit("d1"),))]
        scores = score(run, {one.query_id: {"d1": 1} for one in run}, ["Top1Chunk"], facts=self.FACTS)
        assert np.array_equal(scores.of("Top1Chunk"), [1.0, math.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("measure", "needs"),
    [
        ("Diversity@5", "the document field 'spec_folder'"),
        ("Diversity(by='team')@5", "the document field 'team'"),
        ("Constitutional@5", "documents with an importance_tier"),
        ("ImportanceRecall@5", "documents with an importance_tier"),
        ("TierP@5", "documents with an importance_tier"),
        ("ChainCompleteness@5", "queries with a 'chain'"),
        ("Forbidden@5", "queries with 'forbidden' documents"),
        ("Stale@5", "documents with a record_status"),
        ("Top1Chunk", "queries with a 'top_1_chunk'"),
    ],
)
def test_without_the_facts_it_is_made_of_a_measure_has_no_number(measure: str, needs: str) -> None:
    with pytest.raises(CannotDecide) as caught:
        score({"q": ["a"]}, {"q": {"a": 1}}, [measure])
    assert f" needs {needs}; score against a golden set that declares it (in Python also: facts=Facts(…))" in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_golden_set_brings_its_facts() -> None:
    golden = GoldenSet(
        id="g",
        version="1",
        queries=(Query("q", "t", {"chain": ["a", "b"]}),),
        judgments=(Judgment("q", "a", 1),),
        documents=(Document("a", "t", metadata={"importance_tier": "critical"}), Document("b", "t")),
    )
    facts = Facts.of(golden)
    assert facts.tier("a") == "critical"
    assert facts.tier("b") == "normal"
    assert facts.ids("q", "chain") == ("a", "b")
    assert score({"q": ["a"]}, golden, ["ChainCompleteness@5", "TierP@5"]).aggregate == {
        "ChainCompleteness@5": 0.5,
        "TierP@5": 1.0,
    }


def test_facts_that_are_passed_go_before_those_of_the_golden_set() -> None:
    golden = GoldenSet("g", "1", (Query("q", "t", {"chain": ["a", "b"]}),), (Judgment("q", "a", 1),))
    facts = Facts(queries={"q": {"chain": ["a"]}})
    assert score({"q": ["a"]}, golden, ["ChainCompleteness@5"], facts=facts)["ChainCompleteness@5"] == 1.0


def test_repeated_documents_take_one_place_in_a_list_measure() -> None:
    facts = Facts(queries={"q": {"chain": ["a", "b"]}})
    assert value(["a", "a", "b"], {"a": 1}, "ChainCompleteness@2", facts) == 1.0
