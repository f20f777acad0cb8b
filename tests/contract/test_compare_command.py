"""``ringtrue compare``: verdict first, stable JSON keys, and an exit code that does not gate."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from made import answers, evaluation, golden_set
from ringtrue.golden import save as save_set
from ringtrue.golden import split
from ringtrue.run import open_run, save

Ringtrue = Callable[..., Any]
GOLDEN = golden_set()
FAST = ("--resamples", "2000")
PROMISED = {"a", "b", "diff", "ci", "p", "p_adjusted", "wins", "ties", "losses"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders: weak, strong, weak again under the name of strong, and strong on another version of the set."""
    folder = tmp_path_factory.mktemp("runs")
    for name, retriever, skill, seed in (("weak", "bm25", 0.5, 1), ("strong", "hybrid", 0.9, 2), ("same", "hybrid", 0.55, 4)):
        made = evaluation(GOLDEN, answers(GOLDEN, skill=skill, seed=seed), name=retriever)
        save(made, folder / name)
    other = golden_set(seed=5)
    save(evaluation(other, answers(other, skill=0.9, seed=2), name="hybrid"), folder / "other-set")
    return folder


def trec_run(path: Path, hits: dict[str, list[str]]) -> Path:
    lines = [f"{q} Q0 {d} {rank} {100 - rank} x" for q, docs in hits.items() for rank, d in enumerate(docs, 1)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_verdict_comes_first_in_plain_words(ringtrue: Ringtrue, runs: Path) -> None:
    found = ringtrue("compare", runs / "weak", runs / "strong", *FAST)
    lines = found.out.splitlines()
    assert found.code == 0
    assert lines[0] == "verdict: better"
    assert lines[1].startswith("hybrid is better than bm25 by nDCG@10: ")
    assert "95 % interval" in lines[2]
    assert ", p = " in lines[2]
    assert "win/tie/loss" in found.out
    assert "moved most" in found.out
    assert "mean difference" in found.out
    assert "nDCG@10 decides; the other measures are informational." in found.out


def test_other_tests_are_shown_when_they_are_asked_for(ringtrue: Ringtrue, runs: Path) -> None:
    """One p in a row, unless --tests asks for the others."""
    pair = (runs / "weak", runs / "strong", *FAST)
    others = (
        "p of t",
        "Wilcoxon p",
        "randomisation p",
        "interval p",
        "BCa interval",
        "P(B is better)",
        "more to settle",
        "d_z",
    )
    plain, told = ringtrue("compare", *pair).out, ringtrue("compare", *pair, "--tests").out
    assert not [name for name in others if name in plain]
    assert all(name in told for name in others)
    (header,) = [line for line in plain.splitlines() if line.startswith("measure ")]
    assert header.split() == ["measure", "A", "B", "B", "−", "A", "interval", "p", "win/tie/loss", "verdict"]
    # A size means nothing without the conditions it was planned with.
    assert "size seen (80 % power, alpha 0.05)" in told
    assert (
        "size seen (80 % power, alpha 0.05, corrected for 8 tests)"
        in ringtrue("compare", *pair, "--tests", "--correction", "holm").out
    )


def test_the_p_that_is_shown_is_the_larger_of_both_that_must_hold(ringtrue: Ringtrue, runs: Path) -> None:
    pair = (runs / "weak", runs / "same", "-m", "nDCG@10", "-m", "RR", *FAST)
    found = ringtrue("compare", *pair, "--json").json["measures"]
    assert found["RR"]["p_adjusted"] > max(found["RR"]["p"], found["RR"]["interval_p"])
    shown = next(line for line in ringtrue("compare", *pair).out.splitlines() if line.startswith("RR "))
    assert f" {found['RR']['p_adjusted']:.2g} " in shown


def test_runs_are_found_by_name_the_newest_first(
    ringtrue: Ringtrue, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, run, name in (
        ("20260101T1Z", "same", "main"),
        ("20260102T1Z", "weak", "main"),
        ("20260103T1Z", "strong", "new"),
    ):
        save(open_run(runs / run).named(name), Path(".ringtrue/runs", folder))
    found = ringtrue("compare", "main", "new", "--json", *FAST).json
    assert (found["a"], found["b"], found["verdict"]) == ("main", "new", "better")
    assert found["measures"]["nDCG@10"]["a"] == pytest.approx(open_run(runs / "weak").metrics["nDCG@10"])
    assert ringtrue("diff", "main", "new").out.startswith("60 queries compared")
    unknown = ringtrue("compare", "main", "mian", *FAST)
    assert (unknown.code, unknown.out) == (2, "")
    assert "mian: is not a run folder and no name of a run in .ringtrue/runs (main, new)" in unknown.err


def test_comparing_is_not_gating_a_worse_run_ends_with_0(ringtrue: Ringtrue, runs: Path) -> None:
    found = ringtrue("compare", runs / "strong", runs / "weak", *FAST)
    assert (found.code, found.out.splitlines()[0]) == (0, "verdict: worse")


def test_too_little_evidence_says_how_many_more_queries_would_settle_it(ringtrue: Ringtrue, runs: Path) -> None:
    found = ringtrue("compare", runs / "weak", runs / "same", *FAST)
    assert found.code == 0
    assert found.out.startswith("verdict: not enough evidence\nWhether hybrid differs from bm25 by nDCG@10 is open")
    assert re.search(r"; confirming [+-]0\.\d+ would take about [\d,]+ more", found.out)
    assert "(80 % power)" in found.out


def test_json_is_one_object_with_the_promised_keys(ringtrue: Ringtrue, runs: Path) -> None:
    found = ringtrue("compare", runs / "weak", runs / "strong", "--json", "--by", "query_type", "--queries", "3", *FAST)
    assert (found.code, found.err) == (0, "")
    record = found.json
    assert record["verdict"] == "better"
    assert "comparisons" not in record
    main = record["measures"]["nDCG@10"]
    assert set(main) >= PROMISED | {"n", "t", "t_p", "wilcoxon_p", "effect", "prob_better", "bca", "detectable", "more_queries"}
    assert main["ci"][0] < main["diff"] < main["ci"][1]
    assert main["diff"] == pytest.approx(main["b"] - main["a"])
    assert main["wins"] + main["ties"] + main["losses"] == main["n"] == len(GOLDEN.queries)
    assert set(record["slices"]["query_type"]) == {"factual", "comparative"}
    assert record["latency"]["comparable"] is True
    assert len(record["moved"]) == 3
    assert abs(record["moved"][0]["diff"]) >= abs(record["moved"][2]["diff"]) > 0


def test_the_seed_and_the_correction_are_obeyed(ringtrue: Ringtrue, runs: Path) -> None:
    pair = (runs / "weak", runs / "strong", "--json", *FAST)
    first, again, other = (ringtrue("compare", *pair, "--seed", seed).out for seed in ("1", "1", "2"))
    assert first == again != other
    plain = ringtrue("compare", *pair, "--correction", "none").json
    assert all(one["p"] == one["p_adjusted"] for one in plain["measures"].values())
    assert plain["correction"] == "none"


def test_more_than_two_runs_are_each_compared_with_the_first(ringtrue: Ringtrue, runs: Path) -> None:
    three = (runs / "weak", runs / "strong", runs / "same", "-m", "nDCG@10", "-m", "AP", *FAST)
    record = ringtrue("compare", *three, "--json").json
    assert [one["verdict"] for one in record["comparisons"]] == ["better", "not enough evidence"]
    assert record["measures"] == record["comparisons"][0]["measures"]
    assert list(record["measures"]) == ["nDCG@10", "AP"]
    # Two runs of one retriever are told apart by what was typed.
    assert [one["b"] for one in record["comparisons"]] == [f"{runs / name}: hybrid" for name in ("strong", "same")]
    shown = ringtrue("compare", *three).out
    # The verdicts come first, each in a sentence, before any table.
    strong, same = (f"{runs / name}: hybrid" for name in ("strong", "same"))
    lines = shown.splitlines()
    assert lines[0] == f"verdict on {strong}: better"
    assert lines[1].startswith(f"{strong} is better than bm25 by nDCG@10: ")
    assert lines[2] == f"verdict on {same}: not enough evidence"
    assert lines[5].startswith("nDCG@10, against bm25")
    assert f"── {same} against bm25 ──\nverdict: not enough evidence" in shown
    # Corrected over both systems.
    assert "corrected for 4 tests (holm)" in shown


def test_primary_decides_the_verdict(ringtrue: Ringtrue, runs: Path) -> None:
    record = ringtrue("compare", runs / "weak", runs / "strong", "--json", "--primary", "RR", *FAST).json
    assert record["primary"] == "RR"
    assert record["verdict"] == record["measures"]["RR"]["verdict"]


def test_run_files_are_scored_against_judgments_and_missing_queries_are_not_0(ringtrue: Ringtrue, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(12)), encoding="utf-8")
    old = trec_run(tmp_path / "old.run", {f"q{n}": ["x", "y", f"d{n}"] for n in range(12)})
    new = trec_run(tmp_path / "new.run", {f"q{n}": [f"d{n}", "x"] for n in range(10)})
    found = ringtrue("compare", old, new, "--qrels", qrels, "-m", "RR", *FAST)
    assert found.code == 0
    assert found.out.startswith("verdict: better\nnew.run is better than old.run by RR: 0.3333 → 1.0000")
    assert "2 queries have a score in old.run only and take no part: q10, q11" in found.err
    refused = ringtrue("compare", old, new, *FAST)
    assert refused.code == 2
    assert "old.run: is a run file" in refused.err
    assert "--golden" in refused.err


def test_trap_22_one_query_ends_with_3_and_says_it_cannot_decide(ringtrue: Ringtrue, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("q1 0 d1 1\n", encoding="utf-8")
    old, new = trec_run(tmp_path / "old.run", {"q1": ["x", "d1"]}), trec_run(tmp_path / "new.run", {"q1": ["d1"]})
    found = ringtrue("compare", old, new, "--qrels", qrels, "-m", "RR", *FAST)
    assert found.code == 3
    assert found.out.startswith(
        "verdict: not enough evidence\nWhether new.run differs from old.run cannot be told.\nCannot decide"
    )
    record = ringtrue("compare", old, new, "--qrels", qrels, "-m", "RR", "--json", *FAST)
    assert record.code == 3
    main = record.json["measures"]["RR"]
    assert (main["diff"], main["p"], main["ci"]) == (0.5, None, [None, None])


def test_run_folders_can_be_scored_against_a_golden_set_and_keep_their_latency(
    ringtrue: Ringtrue, runs: Path, tmp_path: Path
) -> None:
    target = tmp_path / "made.json"
    save_set(GOLDEN, target)
    found = ringtrue("compare", runs / "weak", runs / "strong", "--golden", target, "--by", "query_type", "--json", *FAST).json
    direct = ringtrue("compare", runs / "weak", runs / "strong", "--json", *FAST).json
    assert found["measures"]["nDCG@10"]["diff"] == pytest.approx(direct["measures"]["nDCG@10"]["diff"])
    assert found["latency"]["mean_diff"] == pytest.approx(direct["latency"]["mean_diff"])
    assert set(found["slices"]["query_type"]) == {"factual", "comparative"}


def test_a_look_at_the_held_out_part_is_counted(ringtrue: Ringtrue, runs: Path, tmp_path: Path) -> None:
    _, held_out = split(GOLDEN)
    target = tmp_path / "held-out.json"
    save_set(held_out, target)
    looked = [ringtrue("compare", runs / "weak", runs / "strong", "-g", target, "-m", "RR", *FAST).err for _ in range(2)]
    assert "this was look 1 at the held-out part" in looked[0]
    assert "this was look 2 at the held-out part" in looked[1]


def test_different_golden_sets_end_with_3_unless_allowed(ringtrue: Ringtrue, runs: Path) -> None:
    refused = ringtrue("compare", runs / "weak", runs / "other-set", *FAST)
    assert refused.code == 3
    assert "different golden sets" in refused.err
    assert refused.out == ""
    allowed = ringtrue("compare", runs / "weak", runs / "other-set", "--allow-different-sets", *FAST)
    assert allowed.code == 0
    assert "note: the runs were scored on different golden sets" in allowed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["weak"], "only one run is named"),
        (["weak", "nowhere"], "is not a run folder"),
        (["weak", "strong", "--by", "query_typ"], "did you mean 'query_type'"),
        (["weak", "strong", "--correction", "hollm"], "'holm'"),
        (["weak", "strong", "-m", "nDCG@"], "nDCG@10"),
        (["weak", "strong", "-m", "GMAP"], "geometric mean"),
        (["weak", "strong", "--alpha", "2"], "alpha"),
        (["weak", "strong", "--resamples", "10"], "resamples"),
        (["weak", "strong", "--seed", "-1"], "seed"),
        (["weak", "strong", "--primary", "AP"], "primary measure 'AP' is not compared"),
    ],
)
def test_bad_input_is_one_line_with_the_cure_and_ends_with_2(
    ringtrue: Ringtrue, runs: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(runs)
    found = ringtrue("compare", *arguments)
    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert found.err.count("\n") == 1


def test_numbers_that_do_not_exist_are_null_and_dashes(ringtrue: Ringtrue, runs: Path) -> None:
    same = (runs / "weak", runs / "weak")
    record = ringtrue("compare", *same, "--json", *FAST).json
    main = record["measures"]["nDCG@10"]
    assert (record["verdict"], main["p"], main["t"], main["more_queries"]) == ("not enough evidence", 1.0, None, None)
    assert not math.isnan(json.loads(json.dumps(main["diff"])))
    shown = ringtrue("compare", *same, *FAST).out
    assert shown.startswith("verdict: not enough evidence\n")
    assert "All 60 differences are 0." in shown
    assert "score alike by nDCG@10: 0." in shown.splitlines()[1]
    assert "is open" not in shown
    assert "moved most" not in shown


def test_help_has_an_example(ringtrue: Ringtrue) -> None:
    assert "Example: ringtrue compare" in ringtrue("compare", "--help").out
