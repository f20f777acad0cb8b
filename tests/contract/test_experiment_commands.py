"""``ringtrue experiment`` and ``ringtrue sweep`` on the command line."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from made import answers, evaluation, golden_set
from ringtrue.run import save

SEED = {
    "experiments": [
        {
            "id": "exp-001",
            "date": "2026-01-04",
            "description": "Reduce chunk size to 256 tokens",
            "config_changes": {"chunking.max_tokens": 256, "chunking.overlap_tokens": 25},
            "results": {"recall_at_5": 0.79, "precision_at_5": 0.71, "mrr": 0.72, "ndcg_at_5": 0.76},
            "verdict": "REJECTED (recall degraded below threshold)",
        },
        {
            "id": "exp-002",
            "date": "2026-01-05",
            "description": "Increase rerank threshold to 0.6",
            "config_changes": {"reranking.threshold": 0.6},
            "results": {"recall_at_5": 0.84, "precision_at_5": 0.74, "mrr": 0.77, "ndcg_at_5": 0.81},
            "verdict": "ACCEPTED (all metrics improved)",
        },
    ]
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder of one's own, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def seeded(here):
    (here / "experiments.json").write_text(json.dumps(SEED, indent=2) + "\n", encoding="utf-8")
    return here


@pytest.fixture
def runs(here):
    """Two run folders, the second better."""
    golden = golden_set()
    for name, skill, k in (("before", 0.5, 60), ("after", 0.9, 30)):
        retriever = f"rrf(bm25(title=3), dense(model='m'), k={k})"
        save(evaluation(golden, answers(golden, skill=skill), name=name, setup={"retriever": retriever}), here / "runs" / name)
    return here


@pytest.mark.parametrize(
    "words",
    [["sweep"], *(["experiment", name] for name in ("add", "list", "show", "compare", "import", "export"))],
    ids=" ".join,
)
def test_every_command_has_help_with_an_example(ringtrue, words) -> None:
    outcome = ringtrue(*words, "--help")
    assert outcome.code == 0
    assert f"Example: ringtrue {' '.join(words)}" in " ".join(outcome.out.split())


def test_add_derives_changes_and_verdict(ringtrue, runs) -> None:
    outcome = ringtrue("experiment", "add", "runs/after", "--baseline", "runs/before", "--date", "2026-11-16", "--json")
    assert outcome.code == 0, outcome.err
    added = outcome.json
    assert (added["id"], added["date"]) == ("exp-001", "2026-11-16")
    assert added["config_changes"] == {"rrf.k": 30}
    assert added["description"] == "rrf.k = 30"
    assert added["verdict"].startswith("ACCEPTED (all 8 measures improved; nDCG@10 better by +")
    assert (added["run_dir"], added["baseline"]) == ("runs/after", "runs/before")
    assert added["golden_version"] == "made-v1.0.0"
    assert "commit" not in added  # a folder outside any repository has none
    worse = ringtrue("experiment", "add", "runs/before", "-b", "runs/after", "-d", "back again", "--file", "sub/tried.json")
    assert worse.code == 0
    assert "REJECTED (" in worse.out
    stored = json.loads((runs / "sub/tried.json").read_text(encoding="utf-8"))["experiments"][0]
    assert (stored["description"], stored["run_dir"]) == ("back again", "../runs/before")


def test_a_run_that_it_was_compared_with_goes_by_its_own_name(ringtrue, runs) -> None:
    worse = ringtrue("experiment", "add", "runs/before", "-b", "runs/after", "--json").json
    assert "against run runs/after (" in worse["verdict"]
    assert "baseline 1.0.0" not in worse["verdict"]
    assert ringtrue("baseline", "update", "--run", "runs/after").code == 0
    recorded = ringtrue("experiment", "add", "runs/before", "--json").json
    assert "against baseline 1.0.0 (" in recorded["verdict"]


def test_whose_commit_it_is_is_told(ringtrue, runs) -> None:
    assert "commit" not in ringtrue("experiment", "add", "runs/after", "-b", "runs/before").err
    who = ["-c", "user.name=tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], [*who, "commit", "--quiet", "--allow-empty", "--message", "first"]):
        subprocess.run(["git", *words], check=True, capture_output=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    outcome = ringtrue("experiment", "add", "runs/after", "-b", "runs/before", "--json")
    assert outcome.json["commit"] == head
    assert f"checked out now is recorded instead: {head[:10]}" in outcome.err


def test_add_takes_changes_and_verdict_by_hand(ringtrue, runs) -> None:
    arguments = ["--verdict", "REJECTED (too slow)", "--change", "chunking.max_tokens=256", "--change", "model=small"]
    added = ringtrue("experiment", "add", "runs/after", *arguments, "--json").json
    assert added["verdict"] == "REJECTED (too slow)"
    assert added["config_changes"] == {"chunking.max_tokens": 256, "model": "small"}
    assert "baseline" not in added


def test_the_rules_of_the_projects_gate_decide(ringtrue, runs) -> None:
    (runs / "ringtrue.toml").write_text("[gate.floors]\n'Success@1' = 0.2\n", encoding="utf-8")
    assert "ACCEPTED" in ringtrue("experiment", "add", "runs/after", "-b", "runs/before").out
    (runs / "ringtrue.toml").write_text("[gate]\nmax_drop = 0.99\n[gate.floors]\n'R@5' = 0.7\n", encoding="utf-8")
    assert "REJECTED (R@5 below its floor" in ringtrue("experiment", "add", "runs/before", "-b", "runs/after").out


def test_list_show_and_compare_the_seeds_experiments(ringtrue, seeded) -> None:
    listed = ringtrue("experiment", "list")
    assert listed.code == 0
    assert listed.out.splitlines()[0].split() == ["id", "date", "description", "verdict", "R@5", "P@5", "RR", "nDCG@5"]
    assert "exp-001" in listed.out
    assert "REJECTED" in listed.out
    only = ringtrue("experiment", "list", "--accepted", "--json").json["experiments"]
    assert [one["id"] for one in only] == ["exp-002"]
    shown = ringtrue("experiment", "show", "exp-001")
    assert "chunking.max_tokens" in shown.out
    assert "REJECTED (recall degraded below threshold)" in shown.out
    assert ringtrue("experiment", "show", "exp-002", "--json").json == SEED["experiments"][1]
    compared = ringtrue("experiment", "compare", "exp-001", "exp-002")
    assert compared.code == 0
    assert "+0.0500" in compared.out
    assert "no test was made" in compared.err
    record = ringtrue("experiment", "compare", "exp-001", "exp-002", "--json").json
    assert record["metrics"]["R@5"]["diff"] == pytest.approx(0.05)
    assert record["measures"] is None


def test_compare_makes_every_test_where_the_runs_are_there(ringtrue, runs) -> None:
    for one, other in (("before", "after"), ("after", "before")):
        ringtrue("experiment", "add", f"runs/{one}", "-b", f"runs/{other}")
    record = ringtrue("experiment", "compare", "exp-001", "exp-002", "--json").json
    assert record["verdict"] == "better"
    assert {"a", "b", "diff", "ci", "p", "p_adjusted", "wins", "ties", "losses"} <= set(record["measures"]["nDCG@10"])
    text = ringtrue("experiment", "compare", "exp-001", "exp-002").out
    assert "exp-002 against exp-001, nDCG@10: better" in text


def test_import_and_export_lose_nothing(ringtrue, here) -> None:
    source = here / "theirs.json"
    source.write_text(json.dumps(SEED), encoding="utf-8")
    assert ringtrue("experiment", "import", source, "--json").json["added"] == ["exp-001", "exp-002"]
    assert ringtrue("experiment", "import", source, "--json").json == {
        "file": "experiments.json",
        "added": [],
        "known": ["exp-001", "exp-002"],
    }
    assert ringtrue("experiment", "export", "out.json").code == 0
    assert json.loads((here / "out.json").read_text(encoding="utf-8")) == SEED
    assert ringtrue("experiment", "import", "out.json", "--file", "again.json").code == 0
    assert json.loads((here / "again.json").read_text(encoding="utf-8")) == SEED
    refused = ringtrue("experiment", "export", "out.json")
    assert (refused.code, "--overwrite" in refused.err) == (2, True)
    table = ringtrue("experiment", "export", "out.csv")
    assert (table.code, "experiments are written as JSON" in table.err) == (2, True)


def test_import_renumbers_only_when_asked(ringtrue, seeded) -> None:
    other = {"experiments": [{**SEED["experiments"][0], "description": "another one"}]}
    (seeded / "other.json").write_text(json.dumps(other), encoding="utf-8")
    refused = ringtrue("experiment", "import", "other.json")
    assert refused.code == 2
    assert "'exp-001' is another experiment" in refused.err
    assert ringtrue("experiment", "import", "other.json", "--renumber", "--json").json["added"] == ["exp-003"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["experiment", "list"], 2, "there is no such file"),
        (["experiment", "show", "exp-001", "--file", "none.json"], 2, "ringtrue experiment add"),
        (["experiment", "add", "runs/nothing", "--verdict", "REJECTED (x)"], 2, "is not a run folder"),
        (["experiment", "add", "runs/after"], 2, "nothing to compare with"),
        (["experiment", "add", "runs/after", "--verdict", "no"], 2, "ACCEPTED (why)"),
        (
            ["experiment", "add", "runs/after", "--verdict", "REJECTED (x)", "--date", "monday"],
            2,
            "does not match the formats '%Y-%m-%d'",
        ),
        (["experiment", "add", "runs/after", "--verdict", "REJECTED (x)", "--change", "k"], 2, "names no value"),
        (["experiment", "import", "nowhere.json"], 2, "there is no such file"),
        (["experiment", "export", "x.txt"], 2, "there is no such file"),
        (["sweep", "-g", "hotel", "-r", "bm25"], 2, "leaves nothing to search"),
        (["sweep", "-g", "hotel", "-r", "bm25(title={t})"], 2, "add --param t="),
        (["sweep", "-g", "hotel", "-r", "bm25(title={t})", "-p", "t=5:1"], 2, "smaller number first"),
        (["sweep", "-g", "hotel", "-r", "bm25(title={t})", "-p", "t=1,2", "--method", "guess"], 2, "no method 'guess'"),
        (["sweep", "-g", "hotel", "-r", "bm25(titel={t})", "-p", "t=1,2"], 2, "did you mean 'title'"),
        (["sweep", "-g", "hotel", "-r", "bm25(title={t})", "-p", "t=1,2", "-m", "nDGC@10"], 2, "nDCG"),
    ],
)
def test_mistakes_end_with_one_line_and_their_code(ringtrue, runs, arguments, code, says) -> None:
    outcome = ringtrue(*arguments)
    assert outcome.code == code
    assert says in outcome.err
    assert outcome.err.count("\n") == 1
    assert outcome.out == ""


def test_sweep_tells_for_how_many_queries_the_measure_has_no_value(ringtrue, here) -> None:
    arguments = [
        "sweep",
        "-g",
        "hotel",
        "-r",
        "bm25 >> threshold(min={m})",
        "-p",
        "m=0.1,10",
        "-m",
        "SetP",
        "--allow",
        "cut-off",
    ]
    outcome = ringtrue(*arguments)
    assert outcome.code == 3, outcome.err
    assert re.search(r"p corrected +undefined\ntuning .* 0 → 10$", outcome.out, re.MULTILINE)
    assert "not confirmed: SetP is not defined for 10 of 58 tuning queries with the best and for 0" in outcome.out
    assert ringtrue(*arguments, "--json").json["tuning"]["undefined"] == {"baseline": 0, "best": 10, "queries": 58}
    assert not (here / "held-out-looks.jsonl").exists()


def test_sweep_tells_trials_effects_and_verdict(ringtrue, here) -> None:
    arguments = ["sweep", "-g", "hotel", "-r", "fts5(title={t}, body={b})", "-p", "t=0.1,2,5", "-p", "b=0.1,1"]
    outcome = ringtrue(*arguments, "--track")
    assert outcome.code in (0, 1, 3), outcome.err
    assert "6 trials on tuning queries, best first" in outcome.out
    assert re.search(r"^parameter +value +mean nDCG@10 +95 % interval$", outcome.out, re.MULTILINE)
    row = re.search(r"^b +0\.1 +(0\.\d{4}) +(0\.\d{4}) to (0\.\d{4})$", outcome.out, re.MULTILINE)
    assert row is not None
    mean, low, high = map(float, row.groups())
    assert low < mean < high
    assert "baseline: fts5(title=0.1, body=0.1)" in outcome.out
    assert "exp-001 to exp-006 written to experiments.json" in outcome.out
    record = ringtrue(*arguments, "--json")
    assert record.err == ""
    found = record.json
    assert found["verdict"] in ("confirmed", "worse", "not enough evidence", "baseline")
    assert len(found["trials"]) == 6
    assert all(trial["reused"] for trial in found["trials"])  # the journal of the first
    assert found["tuning"]["tests"] == 5
    assert {step["label"] for step in found["effects"]["b"]} == {"0.1", "1"}
    assert found["experiments"] == []
    assert found["sentence"] in outcome.out
    if found["held_out"] is not None:
        assert found["held_out"]["looks"] == 2
        assert (here / "held-out-looks.jsonl").is_file()


def test_sweep_over_parts_that_were_split_before(ringtrue, here) -> None:
    ringtrue("golden", "split", "hotel", "--out", "parts")
    space = ["-r", "rrf(bm25(title={t}), fts5(title=0.1))", "-p", "t=1,8"]
    refused = ringtrue("sweep", "-g", "parts/tuning.json", *space)
    assert (refused.code, "--held-out" in refused.err) == (2, True)
    found = ringtrue(
        "sweep", "-g", "parts/tuning.json", "--held-out", "parts/held-out.json", *space, "--method", "model", "--json"
    )
    assert found.code in (0, 1, 3), found.err
    assert found.json["golden"] == "hotel-tuning-v1.0.0"


def test_sweep_exits_by_what_it_found(ringtrue, here, monkeypatch) -> None:
    from ringtrue.cli.sweep import CODES

    assert CODES == {"confirmed": 0, "baseline": 0, "worse": 1, "not enough evidence": 3}
    same = ringtrue("sweep", "-g", "hotel", "-r", "rrf(bm25, fts5, w=[{w}, {w}])", "-p", "w=1,2,4")
    assert same.code == 0
    assert "none of 2 trials beat the baseline" in same.out


def test_sweep_uses_documents_that_were_ingested(ringtrue, here) -> None:
    assert ringtrue("ingest", "hotel", "--into", "docs", "-r", "bm25").code == 0
    arguments = [
        "-g",
        "hotel",
        "-r",
        "bm25(title={t})",
        "-p",
        "t=1,5",
        "--chunk",
        "fixed(tokens={n}, overlap=4)",
        "-p",
        "n=32,64",
    ]
    found = ringtrue("sweep", "--in", "docs", *arguments, "--json")
    assert found.code in (0, 1, 3), found.err
    assert len(found.json["trials"]) == 4
    assert len(list((here / "docs" / "chunked").iterdir())) == 2
