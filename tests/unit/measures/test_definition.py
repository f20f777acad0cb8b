"""A measure is a value equal to its text: parser, alias table, other tools' spellings, and errors with a cure."""

from __future__ import annotations

import dataclasses

import pytest

from ringtrue.errors import SpecError
from ringtrue.measures import ALIASES, CATALOGUE, DEFINITIONS, Definition, Measure

# The one alias table: what others write → what Ringtrue prints.
HABITS = {
    # the canonical forms
    "nDCG@10": "nDCG@10",
    "R@5": "R@5",
    "P(rel=2)@5": "P(rel=2)@5",
    "RR@10": "RR@10",
    "AP": "AP",
    "nDCG(gain='exp')@10": "nDCG(gain='exp')@10",
    "Judged@10": "Judged@10",
    "IPrec@0.1": "IPrec@0.1",
    # other cases and words
    "ndcg@10": "nDCG@10",
    "NDCG@10": "nDCG@10",
    "ndcg_at_10": "nDCG@10",
    "ndcg": "nDCG",
    "recall@5": "R@5",
    "Recall@5": "R@5",
    "recall_at_5": "R@5",
    "r@5": "R@5",
    "precision@5": "P@5",
    "precision_at_5": "P@5",
    "p@5": "P@5",
    "mrr": "RR",
    "MRR": "RR",
    "mrr@10": "RR@10",
    "mrr_at_5": "RR@5",
    "reciprocal_rank": "RR",
    "map": "AP",
    "MAP@100": "AP@100",
    "map_at_10": "AP@10",
    "average_precision": "AP",
    "f1@5": "F1@5",
    "f1_at_5": "F1@5",
    "hit@3": "Success@3",
    "hits@3": "Success@3",
    "hit_rate@3": "Success@3",
    "hitrate@3": "Success@3",
    "hit_rate_at_3": "Success@3",
    "success@3": "Success@3",
    "recall_all@5": "AllRelevant@5",
    "all_relevant_at_5": "AllRelevant@5",
    "r_precision": "RPrec",
    "set_precision@5": "SetP@5",
    "err@20": "ERR@20",
    "rbp(p=0.8)": "RBP(p=0.8)",
    "judged@10": "Judged@10",
    # trec_eval's output names and its command line
    "ndcg_cut_10": "nDCG@10",
    "ndcg_cut.10": "nDCG@10",
    "P_5": "P@5",
    "P.5": "P@5",
    "recall_1000": "R@1000",
    "recall.20": "R@20",
    "map_cut_100": "AP@100",
    "recip_rank": "RR",
    "success_5": "Success@5",
    "Rprec": "RPrec",
    "bpref": "Bpref",
    "infAP": "infAP",
    "gm_map": "GMAP",
    "set_P": "SetP",
    "set_recall": "R",
    "set_F": "F1",
    "rbp": "RBP",
    "rbp_resid": "RBPResidual",
    "num_ret": "NumRet",
    "num_rel": "NumRel",
    "num_rel_ret": "NumRelRet",
    "num_q": "NumQ",
    "iprec_at_recall_0.10": "IPrec@0.1",
    "iprec_at_recall_0.00": "IPrec@0.0",
    "iprec_at_recall_1.00": "IPrec@1.0",
    "iprec_at_recall@0.25": "IPrec@0.25",
    # the memory measures under the names of their requirements
    "constitutional_surfacing@5": "Constitutional@5",
    "importance_weighted_recall@5": "ImportanceRecall@5",
    "tier_precision(tier='important')@5": "TierP(tier='important')@5",
    "chain_completeness@5": "ChainCompleteness@5",
    "forbidden@5": "Forbidden@5",
    "stale@5": "Stale@5",
    "false_inject_rate@5": "FalseInject@5",
    "silent_rate": "Silent",
    "top_1_chunk": "Top1Chunk",
    "diversity@5": "Diversity@5",
    # a default written out is still the default
    "nDCG(gain='lin')@10": "nDCG@10",
    "P(rel=None)@5": "P@5",
    "RBP(p=0.9)": "RBP",
    "P(judged_only=False)@5": "P@5",
    "TierP(tier='critical')@5": "TierP@5",
}

# REST field and database column; Prometheus series; trec_eval's name.
SPELLINGS = [
    ("R@10", "recall_at_10", ("recall_at_k", {"k": "10"}), "recall_10"),
    ("R", "recall", ("recall", {}), "set_recall"),
    ("RR@5", "mrr_at_5", ("mrr_at_k", {"k": "5"}), None),
    ("RR", "mrr", ("mrr", {}), "recip_rank"),
    ("AP", "map", ("map", {}), "map"),
    ("AP@100", "map_at_100", ("map_at_k", {"k": "100"}), "map_cut_100"),
    ("nDCG@10", "ndcg_at_10", ("ndcg_at_k", {"k": "10"}), "ndcg_cut_10"),
    ("nDCG", "ndcg", ("ndcg", {}), "ndcg"),
    ("nDCG(gain='exp')@10", "ndcg_gain_exp_at_10", ("ndcg_at_k", {"k": "10", "gain": "exp"}), None),
    ("P@5", "precision_at_5", ("precision_at_k", {"k": "5"}), "P_5"),
    ("P(rel=2)@5", "precision_rel_2_at_5", ("precision_at_k", {"k": "5", "rel": "2"}), None),
    ("SetP", "set_precision", ("set_precision", {}), "set_P"),
    ("SetP@5", "set_precision_at_5", ("set_precision_at_k", {"k": "5"}), None),
    ("F1", "f1", ("f1", {}), "set_F"),
    ("Success@5", "success_at_5", ("success_at_k", {"k": "5"}), "success_5"),
    ("RBP(p=0.8)", "rbp_p_0_8", ("rbp", {"p": "0.8"}), None),
    ("IPrec@0.1", "iprec_at_recall_at_0_1", ("iprec_at_recall_at_k", {"k": "0.1"}), "iprec_at_recall_0.10"),
    ("GMAP", "gmap", ("gmap", {}), "gm_map"),
    ("NumRelRet", "num_rel_ret", ("num_rel_ret", {}), "num_rel_ret"),
    ("Judged@10", "judged_at_10", ("judged_at_k", {"k": "10"}), None),
    ("Constitutional@5", "constitutional_surfacing_at_5", ("constitutional_surfacing_at_k", {"k": "5"}), None),
]


def plain(definition: Definition) -> Measure:
    """The measure with a cut-off where it may have one, and no option."""
    at = {"none": None, "may": 7, "must": 7, "level": 0.5}[definition.cutoff]
    return Measure(definition.name, at=at)


@pytest.mark.parametrize(("habit", "canonical"), HABITS.items(), ids=HABITS)
def test_alias_is_read_and_printed_in_one_form(habit: str, canonical: str) -> None:
    assert str(Measure.parse(habit)) == canonical
    assert Measure.parse(habit) == Measure.parse(canonical)
    assert hash(Measure.parse(habit)) == hash(Measure.parse(canonical))


@pytest.mark.parametrize(("text", "snake", "prometheus", "trec"), SPELLINGS, ids=[row[0] for row in SPELLINGS])
def test_external_spellings(text: str, snake: str, prometheus: tuple[str, dict[str, str]], trec: str | None) -> None:
    measure = Measure.parse(text)
    assert str(measure) == text
    assert measure.snake == snake
    assert measure.prometheus == prometheus
    assert measure.trec == trec


def test_a_column_name_joins_the_items_of_a_list_with_single_underscores() -> None:
    measure = Measure.parse("ImportanceRecall(tiers=['critical', 'important'])@5")
    assert measure.snake == "importance_recall_tiers_critical_important_at_5"


def test_every_name_in_the_alias_table_means_exactly_one_measure() -> None:
    owners: dict[str, set[str]] = {}
    for definition in CATALOGUE:
        for alias in (definition.name, definition.snake, *definition.aliases):
            owners.setdefault(alias.lower(), set()).add(definition.name)
    assert {alias: names for alias, names in owners.items() if len(names) > 1} == {}
    assert set(owners) == set(ALIASES)


@pytest.mark.parametrize("definition", CATALOGUE, ids=lambda definition: definition.name)
def test_every_measure_is_read_back_from_its_own_and_its_external_names(definition: Definition) -> None:
    measure = plain(definition)
    assert Measure.parse(str(measure)) == measure
    if measure.trec is not None:
        assert Measure.parse(measure.trec) == measure
    if definition.cutoff != "level":  # a column name cannot hold the point of 0.5
        assert Measure.parse(measure.snake) == measure
    assert measure.snake.replace("_", "").isalnum(), "usable as a column and a field name"
    assert measure.snake == measure.snake.lower()


def test_no_two_measures_share_a_column_or_a_trec_eval_name() -> None:
    measures = [plain(definition) for definition in CATALOGUE]
    measures += [Measure(definition.name) for definition in CATALOGUE if definition.cutoff == "may"]
    for names in ([m.snake for m in measures], [m.trec for m in measures if m.trec], [str(m) for m in measures]):
        assert len(names) == len(set(names))


@pytest.mark.parametrize("definition", CATALOGUE, ids=lambda definition: definition.name)
def test_every_measure_says_what_it_means_how_it_is_computed_and_where_it_is_from(definition: Definition) -> None:
    assert definition.means.endswith((".", ")."))
    assert definition.formula
    assert definition.source
    assert DEFINITIONS[definition.name] is definition


def test_a_measure_is_a_value() -> None:
    measure = Measure("P", at=5, options=(("rel", 2),))
    assert measure == Measure.parse("P(rel=2)@5")
    assert len({measure, Measure.parse("precision(rel=2)@5")}) == 1
    assert measure != Measure.parse("P@5")
    assert measure != Measure.parse("P(rel=2)@10")
    assert measure.option("rel") == 2
    assert measure.option("judged_only") is False
    with pytest.raises(dataclasses.FrozenInstanceError):
        measure.at = 10  # type: ignore[misc]


def test_options_print_in_one_order() -> None:
    texts = ["nDCG(rel=2, gain='exp')@10", "nDCG(gain='exp', rel=2)@10", 'ndcg( gain = "exp",rel=2 )@10']
    assert {str(Measure.parse(text)) for text in texts} == {"nDCG(gain='exp', rel=2)@10"}


def test_a_recall_level_prints_one_way() -> None:
    assert {str(Measure.parse(text)) for text in ("IPrec@0", "IPrec@0.0", "IPrec@-0.0")} == {"IPrec@0.0"}
    assert str(Measure.parse("IPrec@1")) == "IPrec@1.0"


def refusal(text: object) -> str:
    with pytest.raises(SpecError) as caught:
        Measure.parse(text)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("text", ["nDCG@", "", "@10", "P(rel=2@5", "P(rel==2)@5", "10", "P@@5", "P@ten"])
def test_a_text_that_is_no_measure_is_shown_with_how_to_write_one(text: str) -> None:
    assert refusal(text) == f"cannot read measure {text!r}; write it like nDCG@10 or P(rel=2)@10"


@pytest.mark.parametrize("value", [None, 10, b"nDCG@10"])
def test_a_value_that_is_no_text_is_refused(value: object) -> None:
    assert refusal(value) == f"cannot read measure {value!r}; write it like nDCG@10 or P(rel=2)@10"


@pytest.mark.parametrize("text", ["P(2)@5", "bm25 >> P"])
def test_plain_arguments_and_pipelines_are_no_measures(text: str) -> None:
    assert refusal(text).startswith(f"cannot read measure {text!r}: options have names; write it like")


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("ndgc@10", "'nDCG'"),
        ("Sucess@5", "'Success'"),
        ("judge@10", "'Judged'"),
        ("RPrecision", "'RPrec'"),
        ("ndcg_cutt_10", "'nDCG'"),
    ],
)
def test_an_unknown_name_is_met_with_the_nearest_legal_one(text: str, nearest: str) -> None:
    message = refusal(text)
    assert message.startswith(f"there is no measure '{text.split('@')[0]}' (in {text!r}); did you mean ")
    assert nearest in message


def test_the_constructor_checks_like_the_parser() -> None:
    with pytest.raises(SpecError, match="there is no measure 'ndcg'; did you mean 'nDCG'"):
        Measure("ndcg", at=10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P", "P needs a cut-off; write it like P@10"),
        ("Success", "Success needs a cut-off; write it like Success@10"),
        ("RPrec@5", "RPrec has no cut-off, but 5 is given; write it as RPrec"),
        ("P@0", "the cut-off 0 of P is not a whole number above 0; write it like P@10"),
        ("AP@-1", "the cut-off -1 of AP is not a whole number above 0; write it like AP@10"),
        ("nDCG@2.5", "the cut-off 2.5 of nDCG is not a whole number above 0; write it like nDCG@10"),
        ("nDCG@10.0", "the cut-off 10.0 of nDCG is not a whole number above 0; write it like nDCG@10"),
        ("IPrec", "IPrec needs a recall level between 0 and 1, not None; write it like IPrec@0.1"),
        ("IPrec@10", "IPrec needs a recall level between 0 and 1, not 10; write it like IPrec@0.1"),
        ("nDCG(again='exp')@10", "nDCG has no option 'again'; did you mean 'gain'?"),
        ("Silent(rel=2)", "Silent has no option 'rel'; it has no options"),
        ("P(gain='exp')@5", "P has no option 'gain'; did you mean 'rel' or 'judged_only'?"),
    ],
)
def test_a_wrong_cutoff_or_option_is_named_with_its_cure(text: str, message: str) -> None:
    assert refusal(text) == message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("P(rel='2')@5", "rel='2'"),
        ("P(rel=2.0)@5", "rel=2.0"),
        ("P(rel=True)@5", "rel=True"),
        ("P(rel=-1)@5", "rel=-1"),
        ("nDCG(rel=-1)@5", "rel=-1"),
        ("RBP(rel=-1)", "rel=-1"),
        ("nDCG(gain='cubic')@10", "gain='cubic'"),
        ("nDCG(gain=exp)@10", "gain="),
        ("RBP(p=1.0)", "p=1.0"),
        ("RBP(p=0.0)", "p=0.0"),
        ("RBP(p=1)", "p=1"),
        ("ERR(max=0)@10", "max=0"),
        ("ERR(max=64)@10", "max=64"),
        ("P(judged_only=1)@5", "judged_only=1"),
        ("TierP(tier='high')@5", "tier='high'"),
        ("ImportanceRecall(tiers=['high'])@5", "tiers=['high']"),
        ("ImportanceRecall(tiers='critical')@5", "tiers='critical'"),
        ("Diversity(by='')@5", "by=''"),
    ],
)
def test_an_option_outside_its_range_is_shown_with_what_it_means(text: str, value: str) -> None:
    message = refusal(text)
    key = value.split("=")[0]
    assert f"cannot have {value}" in message
    assert f": {key} is " in message


def test_a_cutoff_that_is_a_truth_value_is_refused() -> None:
    with pytest.raises(SpecError, match="the cut-off True of P is not a whole number"):
        Measure("P", at=True)
    with pytest.raises(SpecError, match="not True"):
        Measure("IPrec", at=True)
