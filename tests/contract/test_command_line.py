"""The command line as a contract: outputs, JSON keys, exit codes, one-line errors."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from made import answers, evaluation, golden_set
from ringtrue.run import save

QRELS = "q1 0 a 1\nq1 0 b 0\nq1 0 c 2\nq2 0 a 1\nq3 0 z 1\n"
RUN = "q1 Q0 b 1 3.0 sys\nq1 Q0 a 2 2.0 sys\nq1 Q0 c 3 1.0 sys\nq2 Q0 x 1 1.0 sys\nq9 Q0 x 1 1.0 sys\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text(QRELS)
    run.write_text(RUN)
    return qrels, run


def test_score_prints_one_line_per_measure_as_trec_eval_does(ringtrue, files) -> None:
    outcome = ringtrue("score", *files, "RR", "ndcg_cut_3", "-m", "P.1,2")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "RR                    \tall\t0.2500",
        "nDCG@3                \tall\t0.3100",
        "P@1                   \tall\t0.0000",
        "P@2                   \tall\t0.2500",
    ]


def test_score_per_query_comes_before_the_means(ringtrue, files) -> None:
    lines = ringtrue("score", *files, "RR", "-q").out.splitlines()
    assert [line.split("\t")[1:] for line in lines] == [["q1", "0.5000"], ["q2", "0.0000"], ["all", "0.2500"]]


def test_score_complete_counts_missing_queries_as_zero(ringtrue, files) -> None:
    outcome = ringtrue("score", *files, "RR", "-c", "--json")
    assert outcome.json["aggregate"]["RR"] == pytest.approx(0.5 / 3)
    assert outcome.json["counted"]["missing"] == ["q3"]


def test_score_names_judged_queries_that_take_no_part(ringtrue, files) -> None:
    note = "1 judged query is missing from the run: q3; -c (average_over='judged' in Python) counts it as 0"
    assert f"note: {note}" in ringtrue("score", *files, "RR").err
    found = ringtrue("score", *files, "RR", "--json").json
    assert (found["counted"]["missing"], found["aggregate"]["RR"]) == (["q3"], 0.25)
    assert note in found["notes"]


@pytest.mark.parametrize(
    ("returned", "note"),
    [
        ("DOC-{}", "'doc-0' was never answered, but 'DOC-0' was"),
        (
            "doc-{}#3",
            "ids in the answers, such as 'doc-0#3', are parts of documents of 'the judgments': a part after the judged id",
        ),
    ],
)
def test_score_says_if_returned_ids_are_nearly_those_judged(ringtrue, tmp_path, returned, note) -> None:
    qrels, run = tmp_path / "q.txt", tmp_path / "r.txt"
    qrels.write_text("".join(f"q{n} 0 doc-{n} 1\n" for n in range(6)))
    run.write_text("".join(f"q{n} Q0 {(returned if n < 5 else 'doc-{}').format(n)} 1 1.0 x\n" for n in range(6)))
    assert note in ringtrue("score", qrels, run, "RR").err


def test_score_level_and_depth(ringtrue, files) -> None:
    assert ringtrue("score", *files, "RR", "-l", "2", "--json").json["aggregate"]["RR"] == pytest.approx(1 / 6)
    assert ringtrue("score", *files, "RR", "-l", "2", "-M", "2", "--json").json["aggregate"]["RR"] == 0.0


def test_score_json_has_the_stable_keys_and_nothing_else_on_stdout(ringtrue, files) -> None:
    record = ringtrue("score", *files, "RR", "nDCG@10", "-q", "--json").json
    assert set(record) == {"aggregate", "summary", "per_query", "counted", "notes"}
    assert record["summary"]["RR"] == {"count": 2, "mean": 0.25, "median": 0.25, "std": pytest.approx(0.3536, abs=1e-4)}
    assert set(record["aggregate"]) == {"RR", "nDCG@10"}
    assert set(record["per_query"]) == {"q1", "q2"}
    assert record["counted"]["ignored_queries"] == 1


def test_score_says_aloud_what_was_counted(ringtrue, files) -> None:
    outcome = ringtrue("score", *files, "nDCG@10", "-c")
    assert "note: nDCG@10: linear gain" in outcome.err
    assert "1 judged query is missing from the run and scores 0 (undefined if lower is better): q3" in outcome.err
    assert "1 queries of the run are not judged and were ignored" in outcome.err


def test_undefined_is_null_in_json_and_a_dash_in_text(ringtrue, tmp_path) -> None:
    qrels, run = tmp_path / "q.txt", tmp_path / "r.txt"
    qrels.write_text("q1 0 a 0\n")
    run.write_text("q1 Q0 a 1 1.0 s\n")
    assert ringtrue("score", qrels, run, "R@5", "--zero-relevant", "exclude", "--json").json["aggregate"]["R@5"] is None
    assert ringtrue("score", qrels, run, "R@5", "--zero-relevant", "exclude").out.split("\t")[-1].strip() == "—"


def test_score_reads_gzip_and_standard_input(ringtrue, files, tmp_path) -> None:
    packed = tmp_path / "run.txt.gz"
    packed.write_bytes(gzip.compress(RUN.encode()))
    plain = ringtrue("score", *files, "RR").out
    assert ringtrue("score", files[0], packed, "RR").out == plain
    assert ringtrue("score", files[0], "-", "RR", stdin=RUN.encode()).out == plain
    assert ringtrue("score", "-", "-", "RR").code == 2


def test_score_without_measures_prints_a_usual_set(ringtrue, files) -> None:
    names = [line.split("\t")[0].strip() for line in ringtrue("score", *files).out.splitlines()]
    assert {"AP", "nDCG@10", "R@100", "NumQ", "Judged@10"} <= set(names)


def test_bounds_show_both_ends(ringtrue, files) -> None:
    low, high = ringtrue("score", *files, "P@2", "--bounds", "--json").json["bounds"]["P@2"]
    assert low == 0.25
    assert high == 0.5


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["score", "{qrels}", "{run}", "nDGC@10"], 2, "did you mean 'nDCG'"),
        (["score", "{qrels}", "{run}", "nDCG@"], 2, "write it like nDCG@10"),
        (["eval", "--golden", "hotel", "--retriever", "rrf(bm25,"], 2, "write it like bm25, rrf(bm25, dense) or hybrid >> mmr"),
        (["score", "{qrels}", "{run}", "P"], 2, "needs a cut-off"),
        (["score", "{qrels}", "{run}", "RR", "--zero-relevant", "null"], 2, "zero_relevant"),
        (["score", "{qrels}", "{run}", "RR", "-M", "0"], 2, "depth"),
        (["score", "{qrels}", "nowhere.run", "RR"], 2, "nowhere.run"),
        (["score", "{qrels}"], 2, "run"),
        (["golden", "show", "hotle"], 2, "did you mean 'hotel'"),
        (["golden", "show", "hotel", "--document", "entity-nothing"], 2, "did you mean"),
        (["golden", "agreement", "{qrels}"], 2, "two raters"),
        (["no-such-command"], 2, "no-such-command"),
        (["eval", "golden/x.yaml"], 2, "(golden/x.yaml); name the golden set with --golden. See"),
    ],
)
def test_errors_name_value_and_cure_and_exit_with_their_code(ringtrue, files, arguments, code, says) -> None:
    qrels, run = files
    outcome = ringtrue(*(argument.format(qrels=qrels, run=run) for argument in arguments))
    assert outcome.code == code
    assert says in outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


@pytest.mark.parametrize("command", [["score"], ["score", "-c", "--json"], ["compare", "--golden"]])
def test_a_run_that_does_not_match_its_judgments_gets_no_number(ringtrue, files, tmp_path, command) -> None:
    for name, rows, says in (
        ("queries", "z1 Q0 d1 1 2.0 r\nz2 Q0 d2 1 1.0 r\n", "share no query (run: 'z1', 'z2'; judged: 'q1', 'q2'"),
        ("documents", "q1 Q0 x1 1 2.0 r\nq2 Q0 x2 1 1.0 r\n", "no document of the run is judged for any query (run: 'x1', "),
    ):
        (tmp_path / name).write_text(rows)
        runs = [tmp_path / name, tmp_path / name] if command[0] == "compare" else [tmp_path / name]
        outcome = ringtrue(*command, files[0], *runs)
        assert (outcome.code, outcome.out) == (3, ""), outcome.err
        assert says in outcome.err
        assert "check that both use the same" in outcome.err


def test_a_run_whose_documents_are_judged_for_other_queries_scores_0_as_in_trec_eval(ringtrue, tmp_path) -> None:
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq2 0 d2 1\n")
    (tmp_path / "run").write_text("q1 Q0 d2 1 2.0 r\nq2 Q0 d1 1 1.0 r\n")
    outcome = ringtrue("score", tmp_path / "qrels", tmp_path / "run", "RR")
    assert (outcome.code, outcome.out.split()) == (0, ["RR", "all", "0.0000"])


def test_eval_refuses_a_grade_outside_the_scale_as_golden_validate_does(ringtrue, tmp_path) -> None:
    def written(**declared: Any) -> Path:
        labels = {"relevant_entities": ["e1"], "relevance_labels": {"e1": 7, "e2": 0}}
        entities = [{"entity_id": name, "title": name, "content": f"an indoor pool of {name}"} for name in ("e1", "e2")]
        queries = [{"query_id": "q1", "query_text": "swim in the pool", "expected_results": labels}]
        path = tmp_path / f"{len(declared)}.json"
        path.write_text(json.dumps({"id": "t", "version": "1.0.0", "entities": entities, "queries": queries, **declared}))
        return path

    says = "grade 7 of document 'e1' is outside 0 to 3; use 0 to 3, or declare another scale"
    assert says in ringtrue("golden", "validate", written()).out
    outcome = ringtrue("eval", "--golden", written(), "--retriever", "bm25", "--no-report")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"golden set 't', query 'q1': {says}" in outcome.err
    assert ringtrue("eval", "--golden", written(scale=[0, 7]), "--retriever", "bm25", "--no-report").code == 0


def test_a_deliberate_error_is_one_line(ringtrue, files) -> None:
    assert ringtrue("score", files[0], files[0], "RR").err.count("\n") == 1


def test_debug_shows_the_traceback_and_keeps_the_exit_code(ringtrue, files) -> None:
    outcome = ringtrue("score", *files, "nDGC@10", "--debug")
    assert outcome.code == 2
    assert "Traceback" in outcome.err
    assert "SpecError" in outcome.err


def test_an_unforeseen_error_is_undecided_and_asks_for_a_report(ringtrue, files, monkeypatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("ringtrue.measures.score", broken)
    outcome = ringtrue("score", *files, "RR")
    assert outcome.code == 3
    assert "internal error: ZeroDivisionError: planted" in outcome.err


@pytest.mark.parametrize(
    "words",
    [["demo"], ["score"], ["diff"], ["self-test"], ["bench"]]
    + [
        ["golden", name]
        for name in ("list", "validate", "show", "diff", "split", "plan", "convert", "bootstrap", "pool", "agreement")
    ],
    ids=" ".join,
)
def test_every_command_has_help_with_an_example(ringtrue, words) -> None:
    outcome = ringtrue(*words, "--help")
    assert outcome.code == 0
    assert words == ["bench"] or f"Example: ringtrue {' '.join(words)}" in " ".join(outcome.out.split())


def test_version(ringtrue) -> None:
    assert ringtrue("--version").out.startswith("ringtrue 0.")


def test_self_test_holds_offline(ringtrue) -> None:
    outcome = ringtrue("self-test", "--conformance", "--json")
    assert outcome.code == 0
    assert outcome.json["passed"] is True
    assert sum(row["values"] for row in outcome.json["conformance"]) > 3000


def test_self_test_fails_when_a_measure_is_off(ringtrue, monkeypatch) -> None:
    """A check that cannot fail is not a check: halve every value of one measure and it must exit 1."""
    from ringtrue.measures import DEFINITIONS, Definition

    honest = DEFINITIONS["AP"].kernel
    wrong = {
        **{name: getattr(DEFINITIONS["AP"], name) for name in Definition.__dataclass_fields__},
        "kernel": lambda hits, **o: honest(hits, **o) / 2,
    }
    monkeypatch.setitem(DEFINITIONS, "AP", Definition(**wrong))
    outcome = ringtrue("self-test", "--conformance", "--json")
    assert outcome.code == 1
    assert outcome.json["passed"] is False


def test_diff_classes_and_deltas(ringtrue, files, tmp_path) -> None:
    other = tmp_path / "after.run"
    other.write_text("q1 Q0 a 1 9 s\nq1 Q0 b 2 8 s\nq1 Q0 c 3 7 s\nq2 Q0 x 1 1 s\n")
    record = ringtrue("diff", files[1], other, "--qrels", files[0], "-k", "3", "--json").json
    assert record["queries"]["q1"]["top1_changed"] is True
    assert record["queries"]["q1"]["rr_delta"] == 0.5
    assert record["queries"]["q2"]["kind"] == "identical"
    assert record["missing"]["the second run"] == ["q9"]
    assert "1 identical" in ringtrue("diff", files[1], other, "-k", "3").out


def test_run_folders_bring_the_judgments_they_were_made_with(ringtrue, tmp_path) -> None:
    golden = golden_set(20)
    pair = [evaluation(golden, answers(golden, skill=skill, seed=3), name=f"skill {skill}") for skill in (0.4, 0.9)]
    folders = [save(one, tmp_path / f"run-{place}").run_dir for place, one in enumerate(pair)]
    record = ringtrue("diff", *folders, "--json").json
    values = [one.scores.per_query["q001"]["nDCG@10"] for one in pair]
    assert record["queries"]["q001"]["ndcg_delta"] == pytest.approx(values[1] - values[0])
    assert all(one["rr_delta"] is not None for one in record["queries"].values())
    other = golden_set(20, seed=5)
    alien = save(evaluation(other, answers(other)), tmp_path / "alien").run_dir
    told = ringtrue("diff", folders[0], alien)
    assert "judged by different golden sets" in told.err
    assert "--qrels" in told.err


def test_golden_validate_exit_codes_and_json(ringtrue, tmp_path) -> None:
    assert ringtrue("golden", "validate", "hotel").code == 0
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "id: x\nversion: 1.0.0\nqueries:\n"
        "  - query_id: a\n    query_text: hello there\n    relevant_docs:\n      - {doc_id: d, grade: 7}\n"
    )
    outcome = ringtrue("golden", "validate", bad, "--json")
    assert outcome.code == 2
    assert any(problem["severity"] == "error" and "7" in problem["message"] for problem in outcome.json["problems"])


def test_golden_split_writes_two_parts_that_load(ringtrue, tmp_path) -> None:
    record = ringtrue("golden", "split", "hotel", "--out", tmp_path / "parts", "--json").json
    assert record["queries"]["held_out"] == round(0.2 * sum(record["queries"].values()))
    for part in record["files"].values():
        assert ringtrue("golden", "show", part, "--json").code == 0
    again = ringtrue("golden", "split", "hotel", "--out", tmp_path / "parts")
    assert again.code == 2
    assert "exists" in again.err


def test_golden_convert_there_and_back(ringtrue, tmp_path) -> None:
    assert ringtrue("golden", "convert", "clinical", tmp_path / "beir", "--format", "beir").code == 0
    outcome = ringtrue("golden", "diff", "clinical", tmp_path / "beir", "--json")
    assert outcome.code == 0
    assert outcome.json["judgments_changed"] == outcome.json["judgments_removed"] == []


def test_golden_bootstrap_is_idempotent(ringtrue, tmp_path) -> None:
    out = tmp_path / "known.json"
    assert ringtrue("golden", "bootstrap", "hotel", "--out", out).code == 0
    first = out.read_bytes()
    assert ringtrue("golden", "bootstrap", "hotel", "--out", out).code == 0
    assert out.read_bytes() == first


def test_golden_pool_lists_what_to_judge(ringtrue, files, tmp_path) -> None:
    out = tmp_path / "to-judge.csv"
    record = ringtrue("golden", "pool", files[1], "--qrels", files[0], "--depth", "2", "--out", out, "--json").json
    assert record["to_judge"] == len(out.read_text().splitlines()) - 1


def test_golden_agreement_check(ringtrue, tmp_path) -> None:
    one, other = tmp_path / "a.qrels", tmp_path / "b.qrels"
    one.write_text("".join(f"q 0 d{n} {n % 2}\n" for n in range(10)))
    other.write_text("".join(f"q 0 d{n} {(n + 1) % 2}\n" for n in range(10)))
    assert ringtrue("golden", "agreement", one, one, "--check").code == 0
    outcome = ringtrue("golden", "agreement", one, other, "--check")
    assert outcome.code == 1
    assert "not above 0.6" in outcome.err


def test_plain_when_piped_and_without_colour(files) -> None:
    """The installed program, in a real pipe, prints no escape codes and survives a reader that goes away."""
    command = f"{sys.executable} -m ringtrue score {files[0]} {files[1]} -q | head -1"
    found = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )
    assert "\x1b" not in found.stdout
    assert "Traceback" not in found.stderr
    assert len(found.stdout.splitlines()) == 1


def test_broken_inputs_end_with_code_2_and_one_line(ringtrue, tmp_path) -> None:
    from broken.inputs import CASES

    good = {"qrels": ("good.qrels", QRELS), "run": ("good.run", RUN)}
    for name, text in good.values():
        (tmp_path / name).write_text(text)
    assert len(CASES) >= 40
    for case in CASES:
        folder = tmp_path / case.name
        folder.mkdir()
        broken = folder / case.filename
        broken.parent.mkdir(parents=True, exist_ok=True)
        broken.write_bytes(case.content)
        pair = (broken, tmp_path / "good.run") if case.reader == "qrels" else (tmp_path / "good.qrels", broken)
        outcome = ringtrue("score", *pair, "RR")
        assert outcome.code == 2, case.name
        assert outcome.out == "", case.name
        assert outcome.err.count("\n") == 1, (case.name, outcome.err)
        for wanted in case.must_name:
            assert wanted in outcome.err, (case.name, wanted, outcome.err)


def test_json_never_holds_nan(ringtrue, files) -> None:
    constants: list[str] = []
    outcome = ringtrue("score", *files, "GMAP", "Judged@10", "SetP", "--json")
    json.loads(outcome.out, parse_constant=constants.append)
    assert constants == []


def test_a_set_scores_alike_in_every_format_that_can_hold_its_rules(ringtrue, tmp_path, root) -> None:
    run = root / "src/ringtrue/golden/sets/hotel/runs/keyword.run"
    wanted = ringtrue("score", "hotel", run, "P@5", "--by", "query_type", "--json").json
    for name, form in (("h.json", "golden-dataset"), ("h.yaml", "test-set"), ("h-beir", "beir")):
        assert ringtrue("golden", "convert", "hotel", tmp_path / name, "--format", form).code == 0
        found = ringtrue("score", tmp_path / name, run, "P@5", "--by", "query_type", "--json").json
        assert found["aggregate"] == wanted["aggregate"], form
        assert found["per_slice"] == wanted["per_slice"], form
    lost = ringtrue("golden", "convert", "hotel", tmp_path / "h.csv", "--json").json["lost"]
    assert any("relevance_threshold" in loss for loss in lost), lost


def test_a_result_names_the_exact_version_of_its_golden_set(ringtrue, root) -> None:
    run = root / "src/ringtrue/golden/sets/hotel/runs/keyword.run"
    outcome = ringtrue("score", "hotel", run, "P@5", "--json")
    golden = ringtrue("golden", "show", "hotel", "--json").json
    assert {key: outcome.json["golden"][key] for key in ("version", "content_hash", "corpus_hash")} == {
        key: golden[key] for key in ("version", "content_hash", "corpus_hash")
    }
    text = ringtrue("score", "hotel", run, "P@5").err
    assert "golden set hotel-v1.0.0, provisional" in text
    assert "relevant means grade 2 or more" in text


def test_every_look_at_the_held_out_part_is_counted(ringtrue, tmp_path, root) -> None:
    run = root / "src/ringtrue/golden/sets/hotel/runs/keyword.run"
    ringtrue("golden", "split", "hotel", "--out", tmp_path)
    assert ringtrue("score", tmp_path / "tuning.json", run, "P@5").code == 0
    for look in (1, 2):
        assert f"look {look} at the held-out part" in ringtrue("score", tmp_path / "held-out.json", run, "P@5").err
    assert ringtrue("golden", "split", "hotel", "--out", tmp_path, "--overwrite", "--json").json["looks_at_held_out"] == 2


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["self-test", "--trec-eval", "/nowhere"], 2, "/nowhere"),
        (["golden", "convert", "hotel", "{qrels}/x.json"], 2, "check path"),
        (["golden", "plan", "hotel", "--run", "{run}"], 3, "answers no query of 'hotel'"),
        (["golden", "pool", "{run}", "{hotel}"], 3, "share no query"),
        (["diff", "{run}", "{hotel}"], 3, "share no query"),
        (["compare", "{run}", "{hotel}", "--qrels", "{qrels}"], 3, "share no"),
        (["golden", "agreement", "{qrels}", "{other}", "--check"], 3, "no pair was judged by both"),
        (["golden", "show", "hotel", "-q", "q001", "-d", "x"], 2, "one of them at a time"),
        (["diff", "-", "-"], 2, "standard input"),
        (["score", "hotl", "{run}"], 2, "did you mean 'hotel'"),
        (["score", "{qrels}", "{run}", "RR", "--by", "kind"], 2, "no query has the field 'kind'"),
        (["score", "{qrels}", "{run}", "--nope"], 2, "See `ringtrue score --help`"),
    ],
)
def test_mistakes_end_with_one_line_and_their_code(ringtrue, files, tmp_path, root, arguments, code, says) -> None:
    other = tmp_path / "other.qrels"
    other.write_text("q7 0 a 1\n")
    hotel = root / "src/ringtrue/golden/sets/hotel/runs/keyword.run"
    places = {"qrels": files[0], "run": files[1], "other": other, "hotel": hotel}
    outcome = ringtrue(*(argument.format(**places) for argument in arguments))
    assert outcome.code == code, outcome.err
    assert says in outcome.err
    assert outcome.err.count("\n") == 1 or "agreement" in arguments
    assert "internal error" not in outcome.err


def test_settings_flag_over_environment_over_file_over_default(ringtrue, files, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    level = lambda *more: ringtrue("score", *files, "RR", "--json", *more).json["counted"]["relevant_from_grade"]  # noqa: E731
    assert level() == 1
    (tmp_path / "ringtrue.toml").write_text("[score]\nlevel = 2\n")
    assert level() == 2
    monkeypatch.setenv("RINGTRUE_SCORE_LEVEL", "3")
    assert level() == 3
    assert level("-l", "4") == 4


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[score]\nlevl = 2\n", "did you mean 'level'"),
        ("[scor]\nx = 1\n", "did you mean 'score'"),
        ("level = = 2\n", "not valid TOML"),
    ],
)
def test_a_wrong_setting_is_an_error_and_not_ignored(ringtrue, files, tmp_path, monkeypatch, text, says) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ringtrue.toml").write_text(text)
    outcome = ringtrue("score", *files, "RR")
    assert outcome.code == 2
    assert says in outcome.err


def test_trec_eval_habits(ringtrue, files) -> None:
    names = [line.split("\t")[0].strip() for line in ringtrue("score", *files, "-m", "official", "-m", "P").out.splitlines()]
    assert {"AP", "P@5", "P@1000"} <= set(names)
    assert len(names) == len(set(names))
    assert ringtrue("score", *files, "RR", "-q", "-n").out.count("all") == 0
    assert list(ringtrue("score", *files, "P@2", "-J", "--json").json["aggregate"]) == ["P(judged_only=True)@2"]


def test_a_closed_pipe_ends_as_with_other_tools(tmp_path) -> None:
    """Exit code 1 would say that a check failed; the signal says that nobody read on."""
    qrels, run = tmp_path / "many.qrels", tmp_path / "many.run"
    qrels.write_text("".join(f"q{number} 0 a 1\n" for number in range(5000)))
    run.write_text("".join(f"q{number} Q0 a 1 1.0 s\n" for number in range(5000)))
    shell = f"{sys.executable} -m ringtrue score {qrels} {run} RR -q | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}"
    assert subprocess.run(["bash", "-c", shell], capture_output=True).returncode == 141


@pytest.mark.parametrize("group", ["golden", "log", "review", "store", "shadow", "flag", "test", "memory"])
def test_lists_of_subcommands_show_whole_sentences(ringtrue, group) -> None:
    shown = ringtrue(group, "--help").out
    assert "..." not in shown.partition("Commands:")[2]
    assert max(map(len, shown.splitlines())) <= 80
