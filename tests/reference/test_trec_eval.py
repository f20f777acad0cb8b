"""Conformance on real data: trec_eval 10's own test files, TREC-COVID round 1 and CODEC.

The collections lie beside the checkout, in ``../shared/data``; where they do not, every test here is skipped and says so.
How the numbers were made stands in README.md beside this file.
"""

from __future__ import annotations

import gzip
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import SpecError
from ringtrue.formats import read_qrels, read_run
from ringtrue.measures import Measure, Scores, score
from ringtrue.records import Run

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
TREC_EVAL, CODEC, COVID = DATA / "trec_eval_test", DATA / "codec", DATA / "trec_covid_round1"
ABSENT = f"THE SHARED COLLECTIONS ARE NOT THERE ({DATA}): conformance with trec_eval on real data was not checked"

pytestmark = [pytest.mark.shared, pytest.mark.skipif(not TREC_EVAL.is_dir(), reason=ABSENT)]

PRINTED = 0.00005 + 1e-9  # four digits are printed
EXACT = 1e-9


def params(found: list[Any], *, names: int = 1) -> list[Any]:
    """The cases, or one that is skipped aloud: an empty list would vanish without a word."""
    return found or [pytest.param(*[None] * names, marks=pytest.mark.skip(reason=ABSENT), id="absent")]


# --- trec_eval's own test files -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """One line of trec_eval's quick test: what it reads, what its options mean here, what it must print."""

    qrels: str
    run: str
    expected: str
    options: tuple[tuple[str, Any], ...]
    readable: bool
    """False if the judgments are preferences or the output is scaled by z-scores: Ringtrue has neither."""

    def __str__(self) -> str:
        return f"{self.expected} ({self.qrels})"


def read_command(line: str) -> Command:
    """Return what a line such as ``./trec_eval -q -c -M100 QRELS RUN | diff - OUT`` asks for."""
    words = shlex.split(line.replace("|", " | "))
    options: dict[str, Any] = {"average_over": "common"}
    files: list[str] = []
    readable = True
    arguments = iter(words[1 : words.index("|")])
    for word in arguments:
        if word in ("-m", "-R", "-Z"):
            readable = readable and word == "-m"
            next(arguments)
        elif word == "-c":
            options["average_over"] = "judged"
        elif word.startswith("-M"):
            options["depth"] = int(word[2:])
        elif word.startswith("-l"):
            options["rel"] = int(word[2:])
        elif not word.startswith("-"):
            files.append(Path(word).name)
    qrels, run = files
    return Command(qrels, run, Path(words[-1]).name, tuple(options.items()), readable)


def commands() -> list[Command]:
    table = TREC_EVAL / "quicktest_commands.txt"
    if not table.is_file():
        return []
    lines = table.read_text(encoding="utf-8").splitlines()
    return [read_command(line) for line in lines if line.strip().startswith("./trec_eval")]


@cache
def printed(expected: str) -> tuple[tuple[str, str, str], ...]:
    """The lines of an expected output as (measure, query, value)."""
    lines = (TREC_EVAL / expected).read_text(encoding="utf-8").splitlines()
    name_query_value = [line.split("\t") for line in lines]
    return tuple((name.strip(), query, value.strip()) for name, query, value in name_query_value)


def ours(name: str) -> Measure | None:
    """The measure that trec_eval calls so, where Ringtrue has it under exactly that meaning."""
    try:
        measure = Measure.parse(name)
    except SpecError:
        return None
    return measure if measure.trec == name else None


def printed_values() -> Iterator[Any]:
    for command in commands():
        if command.readable:
            for name, query, value in printed(command.expected):
                if ours(name) is not None:
                    yield pytest.param(command, name, query, value, id=f"{command.expected}-{command.qrels}-{name}-{query}")


@cache
def scored(command: Command) -> Scores:
    names = dict.fromkeys(name for name, _, _ in printed(command.expected))
    measures = [measure for measure in map(ours, names) if measure is not None]
    run, qrels = read_run(TREC_EVAL / command.run), read_qrels(TREC_EVAL / command.qrels)
    return score(run, qrels, measures, zero_relevant="zero", **dict(command.options))


@pytest.mark.parametrize(("command", "name", "query", "value"), params(list(printed_values()), names=4))
def test_trec_eval_prints_the_same(command: Command, name: str, query: str, value: str) -> None:
    measure = ours(name)
    assert measure is not None
    scores = scored(command)
    mine = scores[measure] if query == "all" else scores.per_query[query][str(measure)]
    assert abs(mine - float(value)) <= PRINTED, f"{command}: {name} of query {query} is {mine}, trec_eval prints {value}"


# What trec_eval prints and Ringtrue does not have, by the name before its parameters.
NOT_OURS = (
    "runid", "relstring", "gm_bpref", "Rprec_mult", "utility", "11pt_avg", "binG", "G", "ndcg_rel", "Rndcg", "relative_P",
    "set_relative_P", "set_map", "num_nonrel_judged_ret", "unj", "ndcg_1=3,2=9,4=4.5",
)  # fmt: skip


def test_every_printed_measure_is_compared_or_known_not_to_be_ours() -> None:
    missed = {
        name
        for command in commands()
        if command.readable
        for name, _, _ in printed(command.expected)
        if ours(name) is None and not any(name == other or name.startswith(f"{other}_") for other in NOT_OURS)
    }
    assert missed == set()


def test_every_output_file_is_compared_but_preferences_and_z_scores() -> None:
    compared = {command.expected for command in commands() if command.readable}
    left_out = {command.expected for command in commands() if not command.readable}
    assert left_out == {"out.test.prefs", "out.test.qrels_prefs", "out.test.qrels_jg", "out.test.aqZ"}
    assert compared | left_out == {path.name for path in TREC_EVAL.glob("out.*")}
    assert {command.qrels for command in commands() if command.expected == "out.test"} == {
        "qrels.test",
        "qrels.test.with-comments",
    }


def test_the_options_of_the_command_lines_are_understood() -> None:
    options = {command.expected: dict(command.options) for command in commands()}
    assert options["out.test.aq"] == {"average_over": "common"}
    assert options["out.test.aqc"] == {"average_over": "judged"}
    assert options["out.test.aqcM"] == {"average_over": "judged", "depth": 100}
    assert options["out.test.aql"] == {"average_over": "common", "rel": 2}


@pytest.mark.parametrize("k", [5, 10, 20])
def test_what_trec_eval_calls_unjudged_is_what_judged_leaves(k: int) -> None:
    scores = score(read_run(TREC_EVAL / "results.test"), read_qrels(TREC_EVAL / "qrels.test"), [f"Judged@{k}"])
    unjudged = {query: float(value) for name, query, value in printed("out.test.aq") if name == f"unj_{k}"}
    assert set(unjudged) == {*scores.query_ids, "all"}
    for query, values in scores.per_query.items():
        assert abs(1 - values[f"Judged@{k}"] - unjudged[query]) <= PRINTED, query


def test_the_run_that_lacks_a_topic_is_told_so() -> None:
    command = next(command for command in commands() if command.expected == "out.test.aqc")
    assert scored(command).counted.missing == ("302",)
    assert scored(command).per_query["302"]["AP"] == 0.0


# --- TREC-COVID and CODEC against pytrec_eval -----------------------------------------------------------------------------

ASKED = (
    "map", "map_cut.10,100,1000", "P.5,10,20,100,1000", "recall.5,10,100,1000", "ndcg", "ndcg_cut.5,10,20,100,1000",
    "recip_rank", "bpref", "Rprec", "infAP", "success.1,5,10", "set_P", "set_recall", "set_F",
    "num_ret", "num_rel", "num_rel_ret", "num_q",
)  # fmt: skip
NAMES = tuple(
    f"{stem}_{cutoff}" if cutoff else stem
    for stem, _, cutoffs in (asked.partition(".") for asked in ASKED)
    for cutoff in cutoffs.split(",")
)
QRELS = {"codec": CODEC / "qrels" / "document_ndcg.qrels", "covid": COVID / "qrels-rnd1.txt"}
REPEATING = {"document_bm25+rm3-tuned": 3, "document_entity-feedback-tuned_42": 2}
"""CODEC runs with documents repeated within a topic, which trec_eval refuses, and how many rows are too many."""


def run_files() -> dict[str, Path]:
    found = [*(CODEC / "runs").glob("*.run.gz"), *(COVID / "runs").glob("*.run.gz")]
    return {path.name.removesuffix(".run.gz"): path for path in sorted(found)}


RUNS = run_files()


def qrels_of(run: str) -> Path:
    return QRELS["codec" if run.startswith("document_") else "covid"]


@cache
def answers_of(run: str) -> Run:
    return read_run(RUNS[run])


judgments = cache(read_qrels)


def rows(path: Path) -> Iterator[tuple[str, str, float]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            query, _, doc, _, value, _ = line.split()
            yield query, doc, float(value)


@cache
def exact_in_single_precision(run: str) -> dict[str, dict[str, float]]:
    """The run with every score replaced by its place among the topic's different scores, and repeats at their best.

    pytrec_eval stores scores in single precision, where different scores can fall together; trec_eval 10 keeps doubles.
    Places are small whole numbers: order and ties stay exactly those of the file.
    """
    best: dict[str, dict[str, float]] = {}
    for query, doc, value in rows(RUNS[run]):
        docs = best.setdefault(query, {})
        docs[doc] = max(value, docs.get(doc, value))
    places: dict[str, dict[str, float]] = {}
    for query, docs in best.items():
        place = {value: float(number) for number, value in enumerate(sorted(set(docs.values())))}
        places[query] = {doc: place[value] for doc, value in docs.items()}
    return places


@cache
def theirs(run: str, rel: int) -> dict[str, dict[str, float]]:
    import pytrec_eval

    qrels = judgments(qrels_of(run)).to_dict()
    values: dict[str, dict[str, float]] = pytrec_eval.RelevanceEvaluator(qrels, set(ASKED), relevance_level=rel).evaluate(
        exact_in_single_precision(run)
    )
    return values


@cache
def mine(run: str, rel: int) -> Scores:
    measures = [Measure.parse(name) for name in NAMES]
    return score(answers_of(run), judgments(qrels_of(run)), measures, rel=rel, zero_relevant="zero", average_over="common")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rel", [1, 2], ids=["level-1", "level-2"])
@pytest.mark.parametrize("run", params(list(RUNS)))
def test_equals_pytrec_eval_on_real_runs(run: str, rel: int, name: str) -> None:
    measure = Measure.parse(name)
    assert measure.trec == name
    expected, found = theirs(run, rel), mine(run, rel)
    assert set(found.query_ids) == set(expected)
    off = {
        query: (values[str(measure)], expected[query][name])
        for query, values in found.per_query.items()
        if not abs(values[str(measure)] - expected[query][name]) <= EXACT
    }
    assert off == {}, f"{run}: {name} differs; {{query: (ours, theirs)}}"


@pytest.mark.parametrize("run", params(list(RUNS)))
def test_repeated_documents_are_counted_reported_and_removed(run: str) -> None:
    counted = mine(run, 1).counted
    pairs = [(query, doc) for query, doc, _ in rows(RUNS[run])]
    assert counted.duplicates == len(pairs) - len(set(pairs)) == REPEATING.get(run, 0)
    sentence = f"{counted.duplicates} repeated documents were removed from the run; each counts once, at its best rank"
    assert (sentence in counted.notes()) == (run in REPEATING)
    assert sum(mine(run, 1).of("NumRet")) == len(set(pairs))


def test_the_runs_with_repeats_are_there_to_be_tested() -> None:
    assert set(REPEATING) <= set(RUNS)
    assert len([run for run in RUNS if run.startswith("document_")]) == 8
    assert len(RUNS) == 11


# --- published figures ----------------------------------------------------------------------------------------------------

# The CODEC repository's README: MAP and R@1000 by the binary judgments, nDCG@10 by the graded ones.
CODEC_PUBLISHED = {
    "document_bm25-tuned": (0.213, 0.322, 0.762),
    "document_bm25+rm3-tuned": (0.233, 0.327, 0.800),
    "document_ance-maxp": (0.186, 0.363, 0.689),
    "document_bm25-tuned+t5-maxp": (0.340, 0.468, 0.762),
    "document_bm25+rm3-tuned+t5-maxp": (0.346, 0.472, 0.800),
    "document_ance-maxp+t5-maxp": (0.316, 0.481, 0.689),
}
# NIST's results of TREC-COVID round 1: map, P_5, bpref, ndcg_cut_10.
COVID_PUBLISHED = {
    "irc_entrez": (0.0988, 0.3667, 0.3054, 0.2533),
    "irc_pmc": (0.0965, 0.3400, 0.3023, 0.2233),
    "irc_pubmed": (0.1080, 0.4067, 0.3025, 0.2538),
}


@pytest.mark.parametrize("run", CODEC_PUBLISHED)
def test_codec_as_published(run: str) -> None:
    binary = score(answers_of(run), judgments(CODEC / "qrels" / "document_binary.qrels"), ["AP", "R@1000"])
    graded = score(answers_of(run), judgments(QRELS["codec"]), ["nDCG@10"])
    found = round(binary["AP"], 3), round(graded["nDCG@10"], 3), round(binary["R@1000"], 3)
    assert found == CODEC_PUBLISHED[run], f"{run}: MAP, nDCG@10, R@1000"
    assert binary.counted.missing == ()


@pytest.mark.parametrize("run", COVID_PUBLISHED)
def test_trec_covid_as_published(run: str) -> None:
    measures = ["AP", "P@5", "Bpref", "nDCG@10"]
    scores = score(answers_of(run), judgments(QRELS["covid"]), measures)
    assert tuple(round(scores[measure], 4) for measure in measures) == COVID_PUBLISHED[run], f"{run}: {measures}"
