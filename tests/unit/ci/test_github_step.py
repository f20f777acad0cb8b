"""What a step of a workflow hands on: the number of the pull request, the summary, the outputs."""

from __future__ import annotations

import json

import pytest

from ringtrue.ci import add_outputs, add_summary, marker_in, pull_request_number
from ringtrue.ci.forges import CUT, fitted
from ringtrue.config import environment_without_tokens, pipeline
from ringtrue.errors import InputError


@pytest.mark.parametrize(
    ("event", "number"),
    [
        ({"pull_request": {"number": 7}}, 7),
        ({"issue": {"number": 8, "pull_request": {"url": "…"}}}, 8),
        ({"issue": {"number": 8}}, None),
        ({"workflow_run": {"pull_requests": [{"number": 9}]}}, 9),
        ({"workflow_run": {"pull_requests": []}}, None),
        ({"ref": "refs/heads/main", "pull_request": None}, None),
        ([], None),
    ],
)
def test_the_number_of_the_pull_request(tmp_path, event, number) -> None:
    file = tmp_path / "event.json"
    file.write_text(json.dumps(event))
    assert pull_request_number(file) == number


def test_no_event_is_no_pull_request_and_a_broken_one_is_told(tmp_path) -> None:
    assert pull_request_number(None) is None
    assert pull_request_number(tmp_path / "nowhere") is None
    (tmp_path / "event.json").write_text("{")
    with pytest.raises(InputError, match="--number"):
        pull_request_number(tmp_path / "event.json")


def test_the_summary_is_appended_to(tmp_path) -> None:
    file = tmp_path / "summary"
    file.write_text("before\n")
    add_summary("## one", file)
    add_summary("## two\n\n", file)
    assert file.read_text() == "before\n## one\n## two\n"


def test_a_summary_stays_below_what_github_takes(tmp_path) -> None:
    file = tmp_path / "summary"
    add_summary("ü\n" * 600_000, file)
    assert file.stat().st_size < 1024 * 1024
    assert CUT.strip() in file.read_text()


def test_outputs_cannot_be_forged_by_a_line_break(tmp_path) -> None:
    file = tmp_path / "output"
    add_outputs({"verdict": "fail", "report": "a\nverdict=pass"}, file)
    assert file.read_text() == "verdict=fail\nreport=a verdict=pass\n"


def test_a_cut_text_closes_what_was_open() -> None:
    text = "start\n<details>\n\n```text\n" + "line\n" * 500 + "```\n</details>\nend\n"
    cut = fitted(text, 1000)
    assert len(cut) <= 1000
    assert cut.count("```") == 2
    assert cut.count("<details>") == cut.count("</details>") == 1
    assert "end" not in cut.replace(CUT, "").splitlines()
    assert fitted(text, len(text)) == text


def test_a_text_without_line_breaks_is_cut_too() -> None:
    assert len(fitted("x" * 5000, 1000)) <= 1000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<!-- ringtrue:report -->\nPASS", "<!-- ringtrue:report -->"),
        ("\n<!-- ringtrue:report:hotel.v2 -->\r\nPASS", "<!-- ringtrue:report:hotel.v2 -->"),
        ("PASS\n<!-- ringtrue:report -->", None),
        ("> <!-- ringtrue:report -->", None),
        ("", None),
    ],
)
def test_the_marker_counts_in_the_first_line_only(text, line) -> None:
    assert marker_in(text) == line


def test_the_marker_of_the_report_is_one_that_is_found_again() -> None:
    from ringtrue.report import marker

    for key in ("", "docs search"):
        assert marker_in(f"{marker(key)}\ntext") == marker(key)


def test_the_environment_of_a_workflow_and_of_a_job(monkeypatch) -> None:
    for name in (
        "GITHUB_REPOSITORY",
        "GITHUB_TOKEN",
        "GITHUB_API_URL",
        "GITHUB_OUTPUT",
        "CI_PROJECT_ID",
        "GITLAB_TOKEN",
        "CI_MERGE_REQUEST_IID",
    ):
        monkeypatch.delenv(name, raising=False)
    here = pipeline()
    assert (here.forge, here.place, here.api, here.output) == ("github", "", "https://api.github.com", None)
    assert pipeline("gitlab").number is None
    monkeypatch.setenv("GITHUB_REPOSITORY", "shop/search")
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret\n")
    monkeypatch.setenv("CI_MERGE_REQUEST_IID", "12")
    monkeypatch.setenv("GITLAB_TOKEN", "glpat")
    hub, lab = pipeline(), pipeline("gitlab")
    assert (hub.place, hub.token, lab.number) == ("shop/search", "ghs_secret", 12)
    assert "ghs_secret" not in repr(hub)
    assert "glpat" not in repr(lab)
    monkeypatch.delenv("GITHUB_REPOSITORY")
    monkeypatch.setenv("CI_PROJECT_ID", "42")
    assert (pipeline().forge, pipeline().place) == ("gitlab", "42")


def test_code_under_test_does_not_get_the_tokens(monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_secret")
    monkeypatch.setenv("GITLAB_TOKEN", "glpat")
    monkeypatch.setenv("SHOP_TOKEN", "for the search itself")
    found = environment_without_tokens()
    assert not {"GITHUB_TOKEN", "GITLAB_TOKEN"} & set(found)
    assert found["SHOP_TOKEN"] == "for the search itself"
