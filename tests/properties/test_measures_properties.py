"""What holds for every run and every set of judgments, and equality with independent implementations on random ones.

Each property lists the measures it holds for. The independent implementations and where they differ by design:

- pytrec-eval-terrier (trec_eval 9 behind a Python door): equal per query to 1e-9. It stores scores in single precision, so
  the scores here are exact in it. It fails on a query whose judgments are all negative and on an empty answer (the process
  may crash), so those two are compared with what follows from the definitions: everything is 0, only the set precision of
  an empty answer is undefined. It rounds the count that iprec_at_recall needs differently from trec_eval 10, so IPrec
  is compared with trec_eval 10's own files instead (tests/reference).
- ir_measures: ERR@k and exponential nDCG@k come from its gdeval.pl, which fixes the highest grade at 4, takes whole numbers
  as query ids and prints five decimals. Judged@k counts a negative grade as judged and orders ties by id ascending, so it
  is compared on runs without either. RBP exists there only through two further packages and only with binary gain; here
  the definition is spelled out instead.
"""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ringtrue.measures import CATALOGUE, DEFINITIONS, TIER_WEIGHTS, Definition, Facts, Measure, Scores, score
from ringtrue.records import Run

Grades = dict[str, dict[str, int]]
Answers = dict[str, dict[str, float]]

DOCS = ["a", "B", "b", "é", "10", "9", "d1", "d10", "_", "~x"]
QUERIES = ["q1", "q2", "Q3", "4"]
RANKED = [definition for definition in CATALOGUE if not definition.lists]
EXAMPLES = settings(max_examples=40)

FACTS = Facts(
    documents={
        doc: {
            "importance_tier": tier,
            "spec_folder": f"f{index % 3}",
            "record_status": "retired" if index % 4 == 0 else "active",
        }
        for index, (doc, tier) in enumerate(zip(DOCS, [*TIER_WEIGHTS, *TIER_WEIGHTS], strict=True))
    },
    queries={
        query: {"chain": DOCS[index : index + 3], "forbidden": DOCS[index + 4 : index + 6], "top_1_chunk": DOCS[index]}
        for index, query in enumerate(QUERIES)
    },
)

grades = st.integers(-2, 4)
judged_grades = st.integers(0, 4)
tied_scores = st.integers(-8, 8).map(lambda number: number / 8)  # exact in single precision, and often equal


def qrels_of(grade: st.SearchStrategy[int], *, min_size: int = 0) -> st.SearchStrategy[Grades]:
    judgments = st.dictionaries(st.sampled_from(DOCS), grade, min_size=min_size, max_size=8)
    return st.dictionaries(st.sampled_from(QUERIES), judgments, min_size=1)


runs: st.SearchStrategy[Answers] = st.dictionaries(
    st.sampled_from(QUERIES), st.dictionaries(st.sampled_from(DOCS), tied_scores, max_size=len(DOCS)), min_size=1
)
rankings = st.dictionaries(st.sampled_from(QUERIES), st.lists(st.sampled_from(DOCS), unique=True), min_size=1)


@st.composite
def measures(draw: st.DrawFn, definitions: tuple[Definition, ...] = CATALOGUE) -> Measure:
    """Any measure with any cut-off and any options."""
    definition = draw(st.sampled_from(definitions))
    cutoff = {
        "none": st.none(),
        "may": st.one_of(st.none(), st.integers(1, 12), st.integers(1, 2**53 - 1)),
        "must": st.one_of(st.integers(1, 12), st.integers(1, 2**53 - 1)),
        "level": st.one_of(st.floats(0, 1), st.integers(0, 1)),
    }[definition.cutoff]
    values: dict[str, st.SearchStrategy[Any]] = {
        "rel": st.one_of(st.none(), st.integers(0, 5)),
        "gain": st.sampled_from(["lin", "exp"]),
        "p": st.floats(0, 1, exclude_min=True, exclude_max=True),
        "max": st.one_of(st.none(), st.integers(1, 63)),
        "judged_only": st.booleans(),
        "tier": st.sampled_from(list(TIER_WEIGHTS)),
        "tiers": st.lists(st.sampled_from(list(TIER_WEIGHTS)), unique=True).map(tuple),
        "by": st.text(min_size=1, max_size=8),
    }
    given_options = draw(st.sets(st.sampled_from(sorted(definition.options)))) if definition.options else set()
    return Measure(definition.name, draw(cutoff), tuple((key, draw(values[key])) for key in sorted(given_options)))


def measured(run: Any, qrels: Grades, wanted: Any, **options: Any) -> Scores:
    """Score against generated judgments; a run that shares no query with them has no score and is not the question here."""
    answers = run.rankings() if isinstance(run, Run) else run
    assume(set(answers) & set(qrels))
    return score(run, qrels, wanted, **options)


def named(*texts: str) -> list[Measure]:
    return [Measure.parse(text) for text in texts]


def same_bits(one: Scores, other: Scores) -> bool:
    return one.query_ids == other.query_ids and one.values.tobytes() == other.values.tobytes()


# --- a measure is a value equal to its text -------------------------------------------------------------------------------


@EXAMPLES
@given(measures())
def test_parse_of_the_text_is_the_measure_itself(measure: Measure) -> None:
    """Holds for all measures, with any options and cut-off."""
    again = Measure.parse(str(measure))
    assert again == measure
    assert hash(again) == hash(measure)
    assert str(again) == str(measure)
    if measure.trec is not None and measure.definition.cutoff != "level":
        assert Measure.parse(measure.trec) == measure


# --- ranges ---------------------------------------------------------------------------------------------------------------

BOUNDED = tuple(definition for definition in CATALOGUE if definition.bounded)


def test_only_counts_and_unnormalised_gain_are_unbounded() -> None:
    unbounded = {definition.name for definition in CATALOGUE if not definition.bounded}
    assert unbounded == {"DCG", "NumRet", "NumRel", "NumRelRet", "NumQ"}


@settings(max_examples=80)
@given(
    st.one_of(runs, rankings),
    qrels_of(grades),
    st.lists(measures(tuple(d for d in BOUNDED if d.name != "Diversity")), min_size=1, max_size=6),
    st.sampled_from(["exclude", "zero", "one"]),
    st.one_of(st.none(), st.integers(1, 6)),
    st.integers(0, 3),
)
def test_no_measure_leaves_0_to_1(
    run: Any, qrels: Grades, wanted: list[Measure], policy: str, depth: int | None, rel: int
) -> None:
    """Holds for every bounded measure, per query, as a mean, and in both bounds."""
    scores = measured(
        run, qrels, [*wanted, "Diversity@5"], zero_relevant=policy, depth=depth, rel=rel, unjudged="bounds", facts=FACTS
    )
    assert scores.upper is not None
    for values in (scores.values, scores.upper, np.array(list(scores.aggregate.values()))):
        defined = values[~np.isnan(values)]
        assert defined.min(initial=0.0) >= 0.0
        assert defined.max(initial=1.0) <= 1.0


@EXAMPLES
@given(
    st.lists(st.tuples(st.sampled_from(DOCS), tied_scores), min_size=1, max_size=30),
    st.dictionaries(st.sampled_from(DOCS), grades),
)
def test_no_measure_exceeds_1_with_repeated_documents(rows: list[tuple[str, float]], judged: dict[str, int]) -> None:
    """Holds for every bounded measure that reads ranks."""
    run = Run.of([("q", doc, value) for doc, value in rows])
    bounded = [one for one in default_measures() if one.definition.bounded]
    scores = score(run, {"q": judged}, bounded)
    assert not (scores.values > 1).any()
    assert scores.counted.duplicates == len(rows) - len({doc for doc, _ in rows})


def default_measures() -> list[Measure]:
    """Every ranked measure once, with a cut-off in the middle of the lists generated here where it takes one."""
    cutoffs: dict[str, tuple[int | float | None, ...]] = {"none": (None,), "may": (None, 3), "must": (3,), "level": (0.3,)}
    return [Measure(definition.name, at) for definition in RANKED for at in cutoffs[definition.cutoff]]


@EXAMPLES
@given(
    st.one_of(runs, rankings),
    qrels_of(grades, min_size=1),
    st.sampled_from(["P", "R", "SetP", "F1", "RR", "Success", "DCG"]),
    st.integers(1, 8),
)
def test_the_upper_bound_is_not_below_the_lower(run: Any, qrels: Grades, name: str, k: int) -> None:
    """Holds for P, R, SetP, F1, RR, Success, DCG. In AP, nDCG and Bpref a further relevant document far down can cost."""
    scores = measured(run, qrels, [Measure(name, k)], unjudged="bounds")
    assert scores.upper is not None
    defined = ~np.isnan(scores.values)
    assert (scores.upper[defined] >= scores.values[defined] - 1e-12).all()


BOUNDS = ["P@3", "R@3", "AP@3", "nDCG@3", "nDCG(gain='exp')@3", "RR@3", "ERR(max=4)@3", "RBP@3", "F1@3", "Success@3",
          "FalseInject@3", "ImportanceRecall@3", "TierP@3"]  # fmt: skip


@EXAMPLES
@given(rankings, qrels_of(grades, min_size=1))
def test_the_upper_bound_is_the_score_with_every_unjudged_shown_document_at_the_top_grade(
    run: dict[str, list[str]], qrels: Grades
) -> None:
    """Holds for P, R, AP, nDCG, RR, ERR, RBP, F1, Success, FalseInject, ImportanceRecall, TierP."""
    top = max(1, *(grade for judged in qrels.values() for grade in judged.values()))
    scores = measured(run, qrels, BOUNDS, unjudged="bounds", facts=FACTS)
    filled = {
        query: {**judged, **{doc: top for doc in run.get(query, [])[:3] if judged.get(doc, -1) < 0}}
        for query, judged in qrels.items()
    }
    expected = score(run, filled, BOUNDS, facts=FACTS)
    assert scores.upper is not None
    assert scores.upper == pytest.approx(expected.values, abs=1e-12, nan_ok=True)


# --- the ideal answer -----------------------------------------------------------------------------------------------------


@EXAMPLES
@given(st.dictionaries(st.sampled_from(DOCS), judged_grades, min_size=1), st.integers(1, 4), st.integers(0, 5))
def test_an_ideal_ranking_scores_1(judged: dict[str, int], rel: int, more: int) -> None:
    """Holds for nDCG at any k and gain, AP, RR, RPrec, Bpref, GMAP, IPrec at any level, Success at any k; for R, AllRelevant
    and AP@k from k = relevant on; for P and SetP up to k = relevant; for F1 at k = relevant; for Judged."""
    relevant = sum(grade >= rel for grade in judged.values())
    assume(relevant)
    shown = sorted(judged, key=judged.__getitem__, reverse=True)
    at_least, at_most = relevant + more, max(1, relevant - more)
    wanted = [
        *named(
            "nDCG", "nDCG(gain='exp')", f"nDCG@{more + 1}", f"nDCG(gain='exp')@{more + 1}", "AP", "RR", "RPrec", "Bpref", "GMAP"
        ),
        *named("IPrec@0.0", "IPrec@0.4", "IPrec@1.0", "Success@1", f"RR@{more + 1}", f"Judged@{more + 1}", "R", "AllRelevant"),
        *named(
            f"R@{at_least}", f"AllRelevant@{at_least}", f"AP@{at_least}", f"P@{at_most}", f"SetP@{at_most}", f"F1@{relevant}"
        ),
    ]
    assert score({"q": shown}, {"q": judged}, wanted, rel=rel).aggregate == dict.fromkeys(map(str, wanted), 1.0)


@EXAMPLES
@given(st.dictionaries(st.sampled_from(DOCS), judged_grades, min_size=1), st.permutations(DOCS), st.integers(1, 10))
def test_no_ranking_beats_the_ideal_one(judged: dict[str, int], shown: list[str], k: int) -> None:
    """Holds for nDCG, DCG, AP, RR, R, P, RPrec, Bpref, ERR, RBP, infAP."""
    wanted = named(
        f"nDCG@{k}", f"DCG@{k}", f"AP@{k}", "RR", f"R@{k}", f"P@{k}", "RPrec", "Bpref", f"ERR@{k}", f"RBP@{k}", "infAP"
    )
    ideal = sorted(shown, key=lambda doc: judged.get(doc, 0), reverse=True)
    best = score({"q": ideal}, {"q": judged}, wanted, zero_relevant="zero").values
    assert (score({"q": shown}, {"q": judged}, wanted, zero_relevant="zero").values <= best + 1e-12).all()


# --- invariances ----------------------------------------------------------------------------------------------------------


@EXAMPLES
@given(rankings, qrels_of(grades), st.permutations(DOCS), st.permutations(QUERIES))
def test_other_names_change_nothing_when_there_are_no_ties(
    run: dict[str, list[str]], qrels: Grades, docs: list[str], queries: list[str]
) -> None:
    """Holds for every ranked measure."""
    doc_name, query_name = dict(zip(DOCS, docs, strict=True)), dict(zip(QUERIES, queries, strict=True))
    scored = {query: {doc: -float(rank) for rank, doc in enumerate(shown)} for query, shown in run.items()}
    renamed_run = {query_name[query]: {doc_name[doc]: value for doc, value in docs.items()} for query, docs in scored.items()}
    renamed_qrels = {query_name[query]: {doc_name[doc]: grade for doc, grade in docs.items()} for query, docs in qrels.items()}
    before = measured(scored, qrels, default_measures())
    after = measured(renamed_run, renamed_qrels, default_measures())
    assert after.query_ids == tuple(query_name[query] for query in before.query_ids)
    assert after.values == pytest.approx(before.values, abs=1e-12, nan_ok=True)


@EXAMPLES
@given(runs, qrels_of(grades), st.randoms(use_true_random=False))
def test_a_run_gives_the_same_values_as_scores_as_lists_and_as_rows(run: Answers, qrels: Grades, dice: random.Random) -> None:
    """Holds for every ranked measure, bit for bit. Rows cannot express an empty answer, so those are given beside."""
    rows = [(query, doc, value) for query, docs in run.items() for doc, value in docs.items()]
    dice.shuffle(rows)
    order = {query: sorted(docs, key=lambda doc: (docs[doc], doc), reverse=True) for query, docs in run.items()}
    as_scores = measured(run, qrels, default_measures())
    assert same_bits(as_scores, measured(order, qrels, default_measures()))
    assert same_bits(as_scores, measured(Run.of(rows).with_empty_answers(run), qrels, default_measures()))
    if all(run.values()):
        assert same_bits(as_scores, score(rows, qrels, default_measures()))  # type: ignore[arg-type]


@EXAMPLES
@given(runs, qrels_of(grades), st.dictionaries(st.sampled_from(DOCS), tied_scores, min_size=1))
def test_a_query_nobody_judged_changes_nothing(run: Answers, qrels: Grades, extra: dict[str, float]) -> None:
    """Holds for every measure, bit for bit."""
    wanted = [*default_measures(), *named("Silent", "FalseInject@3")]
    before = measured(run, qrels, wanted)
    after = measured({"unjudged": extra, **run}, qrels, wanted)
    assert same_bits(before, after)
    assert after.counted.ignored_queries == before.counted.ignored_queries + 1


@EXAMPLES
@given(rankings, qrels_of(grades), st.data())
def test_repeating_documents_further_down_changes_nothing_but_the_count(
    run: dict[str, list[str]], qrels: Grades, data: st.DataObject
) -> None:
    """Holds for every ranked measure, bit for bit."""
    repeats = {query: data.draw(st.lists(st.sampled_from(shown), max_size=4)) if shown else [] for query, shown in run.items()}
    before = measured(run, qrels, default_measures())
    after = measured({query: [*shown, *repeats[query]] for query, shown in run.items()}, qrels, default_measures())
    assert same_bits(before, after)
    assert after.counted.duplicates == sum(map(len, repeats.values()))


@EXAMPLES
@given(runs, qrels_of(grades))
def test_only_the_order_of_scores_matters(run: Answers, qrels: Grades) -> None:
    """Holds for every ranked measure, bit for bit; equal scores stay equal under any rising function."""
    lifted = {query: {doc: math.exp(3 * value) for doc, value in docs.items()} for query, docs in run.items()}
    assert same_bits(measured(run, qrels, default_measures()), measured(lifted, qrels, default_measures()))


@EXAMPLES
@given(rankings, qrels_of(judged_grades))
def test_judged_only_changes_nothing_where_everything_is_judged(run: dict[str, list[str]], qrels: Grades) -> None:
    """Holds for every measure with the option judged_only."""
    filled = {query: {**dict.fromkeys(run.get(query, []), 0), **judged} for query, judged in qrels.items()}
    plain = [one for one in default_measures() if "judged_only" in one.definition.options]
    condensed = [Measure(one.name, one.at, (("judged_only", True),)) for one in plain]
    assert measured(run, filled, plain).values.tobytes() == measured(run, filled, condensed).values.tobytes()


@EXAMPLES
@given(rankings, qrels_of(grades), st.integers(1, 12))
def test_cutting_every_answer_at_k_is_the_same_as_measuring_at_k(run: dict[str, list[str]], qrels: Grades, k: int) -> None:
    """Holds for R, P, AP, nDCG, DCG, RR, ERR, RBP, Success, AllRelevant, SetP, NumRet, NumRelRet."""
    names = ["R", "AP", "DCG", "RR", "ERR", "RBP", "AllRelevant", "SetP", "NumRet", "NumRelRet"]
    cut = measured(run, qrels, [Measure(name) for name in names], depth=k)
    assert same_bits(cut, measured(run, qrels, [Measure(name, k) for name in names]))
    fixed = [Measure(name, k) for name in ("P", "Success", "nDCG")]
    assert same_bits(measured(run, qrels, fixed, depth=k), measured(run, qrels, fixed))


@EXAMPLES
@given(runs, qrels_of(grades))
def test_per_query_values_do_not_depend_on_the_other_queries(run: Answers, qrels: Grades) -> None:
    """Holds for every ranked measure but ERR without max (its scale is the highest grade judged anywhere)."""
    wanted = [one for one in default_measures() if one.name != "ERR"] + named("ERR(max=4)", "ERR(max=4)@3")
    together = measured(run, qrels, wanted)
    for index, query in enumerate(together.query_ids):
        if query in run:
            alone = score({query: run[query]}, {query: qrels[query]}, wanted)
            assert alone.values[:, 0] == pytest.approx(together.values[:, index], abs=1e-12, nan_ok=True)


@EXAMPLES
@given(runs, qrels_of(grades))
def test_means_are_the_means_of_the_defined_values(run: Answers, qrels: Grades) -> None:
    """Holds for every measure that is averaged; counts are summed."""
    scores = measured(run, qrels, default_measures())
    for measure, row in zip(scores.measures, scores.values, strict=True):
        defined = row[~np.isnan(row)].tolist()
        if measure.definition.average == "sum":
            expected = math.fsum(defined)
        elif not defined:
            expected = math.nan
        elif measure.definition.average == "geometric":
            expected = math.prod(defined) ** (1 / len(defined))
        else:
            expected = math.fsum(defined) / len(defined)
        assert scores[measure] == pytest.approx(expected, abs=1e-12, nan_ok=True)


# --- growth in k ----------------------------------------------------------------------------------------------------------


@EXAMPLES
@given(st.one_of(runs, rankings), qrels_of(grades), st.sampled_from(["exclude", "zero", "one"]))
def test_looking_deeper_never_loses(run: Any, qrels: Grades, policy: str) -> None:
    """Holds for R, Success, AllRelevant, RR, AP, DCG, ERR, RBP, NumRet, NumRelRet."""
    for name in ("R", "Success", "AllRelevant", "RR", "AP", "DCG", "ERR", "RBP", "NumRet", "NumRelRet"):
        scores = measured(run, qrels, [Measure(name, k) for k in range(1, 13)], zero_relevant=policy)
        steps = np.diff(scores.values, axis=0)
        assert not (steps < 0).any(), name
        if DEFINITIONS[name].cutoff == "may":
            whole = measured(run, qrels, [Measure(name)], zero_relevant=policy)
            assert whole.values[0].tobytes() == scores.values[-1].tobytes(), "beyond the end of every list nothing changes"


# --- the definitions spelled out ------------------------------------------------------------------------------------------


def err_by_definition(shown: list[str], judged: Mapping[str, int], top: int, k: int) -> float:
    value, going_on = 0.0, 1.0
    for rank, doc in enumerate(shown[:k], 1):
        stop = (2 ** max(judged.get(doc, 0), 0) - 1) / 2**top
        value += going_on * stop / rank
        going_on *= 1 - stop
    return value


def rbp_by_definition(shown: list[str], judged: Mapping[str, int], p: float, gain: Callable[[int], float]) -> float:
    return (1 - p) * math.fsum(gain(judged.get(doc, 0)) * p ** (rank - 1) for rank, doc in enumerate(shown, 1))


def residual_by_definition(shown: list[str], judged: Mapping[str, int], p: float) -> float:
    """The weight of all ranks, endlessly many, less that of the ranks where a judged document stands."""
    return 1 - (1 - p) * math.fsum(p ** (rank - 1) for rank, doc in enumerate(shown, 1) if judged.get(doc, -1) >= 0)


@EXAMPLES
@given(rankings, qrels_of(grades), st.integers(1, 10), st.floats(0.05, 0.95))
def test_err_rbp_and_its_residual_follow_their_definitions(run: dict[str, list[str]], qrels: Grades, k: int, p: float) -> None:
    """Holds for ERR(max=4)@k, RBP graded and binary, RBPResidual."""
    wanted = [
        Measure("ERR", k, (("max", 4),)),
        Measure("RBP", None, (("p", p),)),
        Measure("RBP", None, (("p", p), ("rel", 2))),
        Measure("RBPResidual", None, (("p", p),)),
    ]
    scores = measured(run, qrels, wanted)
    for index, query in enumerate(scores.query_ids):
        shown, judged = run.get(query, []), qrels[query]
        highest = max(1, *judged.values(), 1)
        expected = [
            err_by_definition(shown, judged, 4, k),
            rbp_by_definition(shown, judged, p, lambda grade, highest=highest: max(grade, 0) / highest),  # type: ignore[misc]
            rbp_by_definition(shown, judged, p, lambda grade: float(grade >= 2)),
            residual_by_definition(shown, judged, p) if query in run else 0.0,
        ]
        assert scores.values[:, index] == pytest.approx(expected, abs=1e-12)


# --- trec_eval ------------------------------------------------------------------------------------------------------------

TREC = {
    "map": "AP", "map_cut_1": "AP@1", "map_cut_5": "AP@5",
    "P_1": "P@1", "P_3": "P@3", "P_20": "P@20",
    "recall_1": "R@1", "recall_5": "R@5", "recall_100": "R@100",
    "ndcg": "nDCG", "ndcg_cut_1": "nDCG@1", "ndcg_cut_5": "nDCG@5", "ndcg_cut_20": "nDCG@20",
    "recip_rank": "RR", "bpref": "Bpref", "Rprec": "RPrec", "infAP": "infAP",
    "success_1": "Success@1", "success_5": "Success@5",
    "set_P": "SetP", "set_recall": "R", "set_F": "F1",
    "num_ret": "NumRet", "num_rel": "NumRel", "num_rel_ret": "NumRelRet", "num_q": "NumQ",
}  # fmt: skip
ASKED = {
    "map", "map_cut.1,5", "P.1,3,20", "recall.1,5,100", "ndcg", "ndcg_cut.1,5,20", "recip_rank", "bpref", "Rprec", "infAP",
    "success.1,5", "set_P", "set_recall", "set_F", "num_ret", "num_rel", "num_rel_ret", "num_q", "gm_map",
}  # fmt: skip


def test_the_names_compared_are_the_names_that_trec_eval_uses() -> None:
    assert {Measure.parse(ours).trec for ours in TREC.values()} == set(TREC)
    assert {str(Measure.parse(theirs)) for theirs in TREC} == set(TREC.values())


def by_pytrec_eval(run: Answers, qrels: Grades, rel: int) -> dict[str, dict[str, float]]:
    """pytrec_eval's values per query; those of an empty answer are written down, because it may crash on one."""
    import pytrec_eval

    values: dict[str, dict[str, float]] = {}
    full = {query: docs for query, docs in run.items() if docs and query in qrels}
    if full:
        values = pytrec_eval.RelevanceEvaluator(qrels, ASKED, relevance_level=rel).evaluate(full)
    for query in (set(run) & set(qrels)) - set(full):
        relevant = sum(grade >= rel for grade in qrels[query].values())
        empty = {**dict.fromkeys(TREC, 0.0), "num_rel": relevant, "num_q": 1, "set_P": math.nan, "gm_map": math.log(0.00001)}
        values[query] = empty
    return values


@settings(max_examples=200)
@given(runs, qrels_of(grades, min_size=1), st.sampled_from([1, 2]))
def test_equals_pytrec_eval_per_query(run: Answers, qrels: Grades, rel: int) -> None:
    """Holds for AP, P, R, nDCG, RR, Bpref, RPrec, infAP, Success, SetP, F1, the counts, and GMAP as a mean."""
    import pytrec_eval

    qrels = {query: judged for query, judged in qrels.items() if max(judged.values()) >= 0}
    assume(set(run) & set(qrels))
    theirs = by_pytrec_eval(run, qrels, rel)
    scores = score(run, qrels, [*TREC.values(), "GMAP"], rel=rel, zero_relevant="zero", average_over="common")
    assert set(scores.query_ids) == set(theirs)
    for query, values in theirs.items():
        mine = scores.per_query[query]
        for their_name, our_name in TREC.items():
            expected = pytest.approx(values[their_name], rel=0, abs=1e-9, nan_ok=True)
            assert mine[our_name] == expected, (query, their_name)
    logs = [theirs[query]["gm_map"] for query in scores.query_ids]
    assert scores["GMAP"] == pytest.approx(pytrec_eval.compute_aggregated_measure("gm_map", logs), abs=1e-9)


@EXAMPLES
@given(runs, qrels_of(grades, min_size=1))
def test_means_over_the_judged_queries_equal_pytrec_evals_with_missing_queries_as_0(run: Answers, qrels: Grades) -> None:
    """trec_eval -c. Holds for AP, nDCG@5, RR, P@3, R@5, Bpref."""
    qrels = {query: judged for query, judged in qrels.items() if max(judged.values()) >= 0}
    assume(set(run) & set(qrels))
    theirs = by_pytrec_eval(run, qrels, 1)
    names = {"map": "AP", "ndcg_cut_5": "nDCG@5", "recip_rank": "RR", "P_3": "P@3", "recall_5": "R@5", "bpref": "Bpref"}
    scores = score(run, qrels, names.values(), zero_relevant="zero")
    for their_name, our_name in names.items():
        mean = sum(values[their_name] for values in theirs.values()) / len(qrels)
        assert scores[our_name] == pytest.approx(mean, abs=1e-9)
    assert set(scores.counted.missing) == set(qrels) - set(run)


def test_a_query_judged_by_negative_grades_alone_scores_as_one_without_relevant_documents() -> None:
    """pytrec_eval fails on such a query; trec_eval reads a negative grade as "not judged"."""
    scores = score(
        {"q": ["a", "b"]}, {"q": {"a": -1, "b": -2}}, [*TREC.values(), "GMAP"], zero_relevant="zero", average_over="common"
    )
    zero = dict.fromkeys(map(str, map(Measure.parse, TREC.values())), 0.0)
    assert scores.aggregate == {**zero, "NumRet": 2.0, "NumQ": 1.0, "GMAP": pytest.approx(0.00001)}


# --- ir_measures ----------------------------------------------------------------------------------------------------------


def random_collection(seed: str, *, ties: bool) -> tuple[Grades, Answers]:
    dice = random.Random(seed)
    docs = [f"d{number}" for number in range(60)]
    qrels = {str(query): {doc: dice.choice([0, 0, 1, 2, 3, 4]) for doc in dice.sample(docs, 20)} for query in range(1, 31)}
    run: Answers = {}
    for query in qrels:
        shown = dice.sample(docs, dice.randint(1, 40))
        scores = [dice.randrange(5) for _ in shown] if ties else dice.sample(range(1000), len(shown))
        run[query] = {doc: float(value) for doc, value in zip(shown, scores, strict=True)}
    return qrels, run


def by_ir_measures(texts: list[str], qrels: Grades, run: Answers) -> dict[tuple[str, str], float]:
    import ir_measures

    wanted = [ir_measures.parse_measure(text) for text in texts]
    return {(found.query_id, str(found.measure)): found.value for found in ir_measures.iter_calc(wanted, qrels, run)}


@pytest.mark.skipif(shutil.which("perl") is None, reason="ir_measures computes ERR with a Perl script, and there is no perl")
@pytest.mark.parametrize("ties", [False, True], ids=["tie-free", "ties"])
def test_err_and_exponential_ndcg_equal_ir_measures_to_its_five_printed_digits(ties: bool) -> None:
    qrels, run = random_collection("gdeval", ties=ties)
    pairs = {"ERR@5": "ERR(max=4)@5", "ERR@20": "ERR(max=4)@20", "nDCG(dcg='exp-log2')@10": "nDCG(gain='exp')@10"}
    theirs = by_ir_measures(list(pairs), qrels, run)
    scores = score(run, qrels, pairs.values())
    assert len(theirs) == len(pairs) * len(qrels)
    for (query, name), value in theirs.items():
        assert abs(scores.per_query[query][pairs[name]] - value) <= 0.0000051, (query, name)


def test_judged_equals_ir_measures() -> None:
    qrels, run = random_collection("judged", ties=False)
    names = ["Judged@1", "Judged@5", "Judged@10", "Judged@100"]
    theirs = by_ir_measures(names, qrels, run)
    scores = score(run, qrels, names)
    assert len(theirs) == len(names) * len(qrels)
    for (query, name), value in theirs.items():
        assert scores.per_query[query][name] == pytest.approx(value, abs=1e-12), (query, name)
