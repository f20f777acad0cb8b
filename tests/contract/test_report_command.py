"""``ringtrue report`` and the terminal's evaluation as contracts: formats, files, exit codes, one-line errors."""

from __future__ import annotations

import json
import re
import shutil
import xml.etree.ElementTree as Xml
from dataclasses import replace
from pathlib import Path

import pytest

from made import WHEN
from made_reports import PARTS, answered, healthy, lost
from ringtrue.cli.report import print_evaluation
from ringtrue.records import Ranking
from ringtrue.report import Report, report_on
from ringtrue.run import save
from ringtrue.verdict import baseline_of, write_baseline

FORMATS = ("md", "html", "json", "junit", "sarif", "pr")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two run folders and a baseline."""
    folder = tmp_path_factory.mktemp("runs")
    before = healthy(components=(), losses=())
    save(before, folder / "before")
    save(replace(healthy(answered(skill=0.5, seed=9)), name="bm25"), folder / "now")
    write_baseline(baseline_of(before, version="1.0.0"), folder / "ringtrue-baseline.json")
    return folder


@pytest.fixture
def runs(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same in the current folder of the command."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_markdown_goes_to_standard_output(ringtrue, runs: Path) -> None:
    done = ringtrue("report", "now")
    assert done.code == 0
    assert done.out.startswith("# Ringtrue evaluation: bm25\n")
    assert "## Per-query analysis (60)" in done.out
    assert not (runs / "reports").exists()


def test_html_goes_to_the_usual_file(ringtrue, runs: Path) -> None:
    done = ringtrue("report", "now", "--format", "html")
    assert done.code == 0
    (page,) = (runs / "reports").iterdir()
    assert re.fullmatch(r"ringtrue-eval-\d{8}T\d{6}Z\.html", page.name)
    assert done.out == f"html: reports/{page.name}\n"
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")


def test_every_format_at_once_into_a_folder(ringtrue, runs: Path) -> None:
    chosen = [argument for name in FORMATS for argument in ("--format", name)]
    done = ringtrue("report", "now", "--baseline", "ringtrue-baseline.json", *chosen, "--out", "out", "--json")
    assert done.code == 0
    assert set(done.json) == {"files", "verdict", "headline", "recommendations"}
    assert done.json["verdict"] == "fail"
    files = {name: Path(path) for name, path in done.json["files"].items()}
    assert set(files) == set(FORMATS)
    assert "❌ FAIL" in files["md"].read_text(encoding="utf-8")
    assert json.loads(files["json"].read_text(encoding="utf-8"))["verdict"]["exit_code"] == 1
    assert int(Xml.parse(files["junit"]).getroot().get("failures", "0")) > 0
    results = json.loads(files["sarif"].read_text(encoding="utf-8"))["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "ringtrue-baseline.json"
    assert files["pr"].read_text(encoding="utf-8").startswith("<!-- ringtrue:report -->\n### ❌ FAIL")


def test_against_another_run_it_is_compared(ringtrue, runs: Path) -> None:
    done = ringtrue("report", "now", "--against", "before", "--format", "pr", "--key", "docs", "--no-baseline")
    assert done.out.startswith("<!-- ringtrue:report:docs -->\n### bm25 is worse than hybrid by nDCG@10")
    assert re.search(r"\d+ queries improved, \d+ regressed", done.out)


def test_json_is_one_object_and_nothing_else(ringtrue, runs: Path) -> None:
    found = ringtrue("report", "now", "--json", "--no-baseline").json
    assert found["name"] == "bm25"
    assert found["verdict"] is None
    assert found == {**ringtrue("report", "now", "--format", "json", "--no-baseline").json, "made_at": found["made_at"]}


def test_a_report_judges_by_the_baseline_of_the_folder_as_the_gate_does(ringtrue, runs: Path) -> None:
    assert "**❌ FAIL: " in ringtrue("report", "now").out
    alone = ringtrue("report", "now", "--no-baseline").out.splitlines()
    assert alone[2].startswith("**nDCG@10 is ")
    assert alone[2].endswith("; not judged.**")
    clash = ringtrue("report", "now", "--no-baseline", "--baseline", "ringtrue-baseline.json")
    assert (clash.code, len(clash.err.splitlines())) == (2, 1)


def test_floors_of_the_settings_judge_without_a_baseline(ringtrue, runs: Path) -> None:
    (runs / "ringtrue-baseline.json").unlink()
    (runs / "ringtrue.toml").write_text("[gate.floors]\n'R@5' = 0.99\n", encoding="utf-8")
    assert "R@5 below its floor" in ringtrue("report", "now").out
    (runs / "ringtrue.toml").write_text("[eval]\n", encoding="utf-8")
    assert "not judged" in ringtrue("report", "now").out


def test_a_baseline_of_another_golden_set_is_left_out_with_a_note(ringtrue, runs: Path) -> None:
    before = healthy(components=(), losses=())
    golden = replace(before.setup.golden, content_hash="another", version="other-v2.0.0")
    write_baseline(baseline_of(replace(before, setup=replace(before.setup, golden=golden))), runs / "ringtrue-baseline.json")
    done = ringtrue("report", "now")
    assert "not judged" in done.out
    assert "note: ringtrue-baseline.json was recorded on another golden set (other-v2.0.0) and is left out" in done.err


def test_a_report_with_rules_says_that_the_baseline_is_of_another_golden_set(ringtrue, runs: Path) -> None:
    record = json.loads((runs / "ringtrue-baseline.json").read_text())
    record["golden"] |= {"content_hash": "another", "version": "other-v2.0.0"}
    (runs / "ringtrue-baseline.json").write_text(json.dumps(record))
    (runs / "ringtrue.toml").write_text("[gate]\nmax_drop = 0.1\n")
    told = ringtrue("report", "now", "--against", "before").out
    assert "baseline 1.0.0 was recorded on other-v2.0.0" in told
    assert "**Baseline version**: 1.0.0" in told
    assert "no baseline" not in told


def test_a_report_on_a_failure_ends_with_0_and_says_who_judges(ringtrue, runs: Path) -> None:
    done = ringtrue("report", "now", "--baseline", "ringtrue-baseline.json", "--format", "junit", "--out", "junit.xml")
    assert done.code == 0
    assert "note: the verdict is fail; `ringtrue gate` would end with exit code 1" in done.err
    assert Xml.parse(runs / "junit.xml").getroot().tag == "testsuites"


def test_the_policy_of_the_settings_file_applies(ringtrue, runs: Path) -> None:
    (runs / "ringtrue.toml").write_text(
        "[gate]\ndrop_measures = []\nlatency_increase = inf\n[gate.floors]\n'R@5' = 0.01\n", encoding="utf-8"
    )
    found = ringtrue("report", "now", "--baseline", "ringtrue-baseline.json", "--json").json
    assert found["verdict"]["word"] == "pass"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "nowhere: is not a run folder"),
        (["now", "--format", "pdf"], "--format 'pdf' is not known; did you mean "),
        (["now", "--format", "md", "--format", "html", "--out", "-"], "--out - cannot hold 2 formats; name a folder"),
        (
            ["now", "--format", "md", "--format", "html", "--out", "ringtrue-baseline.json"],
            "ringtrue-baseline.json cannot hold 2 formats; name a folder",
        ),
        (["now", "--baseline", "missing.json"], "missing.json"),
        (["now", "--against", "missing"], "missing: is not a run folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(ringtrue, runs: Path, arguments: list[str], complaint: str) -> None:
    done = ringtrue("report", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert complaint in done.err
    assert len(done.err.splitlines()) == 1


def test_cli_help_has_examples(ringtrue) -> None:
    done = ringtrue("report", "--help")
    assert done.code == 0
    assert done.out.count("Example: ringtrue report") == 3


def test_the_terminal_says_the_verdict_first_then_every_number(capsys: pytest.CaptureFixture[str]) -> None:
    rankings = answered(skill=0.5, seed=9)
    rankings[3] = Ranking("q003", (), None, "Unreachable: \x1b[2Jno route\nto host")
    now = healthy(rankings, losses=lost("not in any list", 30) + lost("below k", 3, rank=12))
    report = report_on(now, made_at=WHEN, baseline=baseline_of(healthy(), version="1.0.0"))
    print_evaluation(report)
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0].startswith("FAIL: ")
    assert lines[1] == "hybrid on made-v1.0.0; k = 20; mode relative"
    assert re.search(r"^measure +baseline +current +Δ +change +interval of Δ +floor +status$", shown.out, re.M)
    assert re.search(r"^R@5 .* FAIL$", shown.out, re.MULTILINE)
    assert re.search(r"^comparative +19 ", shown.out, re.MULTILINE)
    # Without it: below 0 if the search loses, in the row of the channel.
    assert re.search(r"^component .* without it$", shown.out, re.MULTILINE)
    assert re.search(r"^bm25 .*−0\.\d{4} \(−0\.\d{4} to −0\.\d{4}\)$", shown.out, re.MULTILINE)
    assert re.search(r"^hybrid \(rrf\) ", shown.out, re.MULTILINE)
    assert re.search(r"^not in any list +30 +17 %$", shown.out, re.MULTILINE)
    assert re.search(r"^latency: p50 \d+ ms \(was \d+ ms, PASS\), p95 ", shown.out, re.MULTILINE)
    assert re.search(r"^q003 +Unreachable: \[2Jno route to host$", shown.out, re.MULTILINE)
    assert "Recommendations:\n  1. 30 relevant documents" in shown.out
    assert "\x1b" not in shown.out
    assert "note: nDCG@10: linear gain" not in shown.err
    print_evaluation(report, verbose=True)
    assert "note: nDCG@10: linear gain" in capsys.readouterr().err


def test_the_terminal_shows_an_evaluation_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_evaluation(Report(healthy(components=PARTS[:1], losses=()), made_at=WHEN))
    shown = capsys.readouterr().out
    assert shown.startswith("nDCG@10 is 0.9")
    assert "status" not in shown
    assert "missing at k" not in shown
    assert "Recommendations" not in shown


def test_an_evaluation_that_nobody_judged_says_how_to_judge_it(
    capsys: pytest.CaptureFixture[str], runs: Path, tmp_path: Path
) -> None:
    print_evaluation(Report(replace(healthy(), run_dir=tmp_path / "now"), made_at=WHEN))
    assert f"To judge it by ringtrue-baseline.json: ringtrue gate --run {tmp_path / 'now'}" in capsys.readouterr().out
    (runs / "ringtrue-baseline.json").unlink()
    print_evaluation(Report(replace(healthy(), run_dir=tmp_path / "now"), made_at=WHEN))
    assert "To compare later runs with it: ringtrue baseline update --run" in capsys.readouterr().out


def test_the_column_of_another_run_is_named_after_it(ringtrue, runs: Path) -> None:
    for kind in ("md", "pr"):
        alone = ringtrue("report", "now", "--against", "before", "--format", kind, "--no-baseline").out
        assert not [line for line in alone.splitlines() if line.startswith("|") and "baseline" in line.lower()], kind
        assert re.search(r"^\| measure \| hybrid \|", alone, re.MULTILINE), kind
    assert "| measure | baseline | current |" in ringtrue("report", "now").out


def test_a_query_whose_id_is_its_text_is_shown_once(ringtrue, runs: Path) -> None:
    before, now = healthy(components=(), losses=()), replace(healthy(answered(skill=0.5, seed=9)), name="bm25")
    for folder, made in (("plain-before", before), ("plain-now", now)):
        save(replace(made, queries=tuple(replace(query, text=query.query_id) for query in made.queries)), folder)
    twice = re.compile(r"\b(q\d{3})\b[^\w\n]+(\d\.\d{4} → \d\.\d{4}[^\w\n]+)?\1\b")
    for arguments in (
        ("compare", "plain-before", "plain-now", "--resamples", "2000"),
        ("gate", "--run", "plain-now"),
        *(("report", "plain-now", "--format", kind) for kind in ("md", "pr", "junit")),
        *(("report", "plain-now", "--format", kind, "--against", "plain-before") for kind in ("md", "pr")),
    ):
        done = ringtrue(*arguments)
        assert "q0" in done.out, arguments
        assert not twice.search(done.out), (arguments, twice.search(done.out))
    assert ringtrue("report", "plain-now", "--format", "html", "--out", "page.html").code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert '<span class="text"><bdi>q0' not in page
    assert not re.search(r'"(q\d{3})",\s*"\1"', page)
