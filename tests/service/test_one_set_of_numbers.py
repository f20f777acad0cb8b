"""Sentence, table and page of a comparison show the same p, interval and word, whatever shows them."""

from __future__ import annotations

import html as escaped
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rest_service import client as client
from ringtrue.report import Report, as_json, html, markdown, pull_request
from ringtrue.report.formatting import number, page_signed, probability, signed
from ringtrue.report.sentences import says
from ringtrue.run import Evaluation, evaluate, save
from ringtrue.verdict import Comparison, compare

BEFORE, AFTER, MEASURE = "bm25", "fts5", "nDCG@5"


@pytest.fixture(scope="module")
def runs() -> tuple[Evaluation, Evaluation]:
    """Two searches of the hotel set: corrected for eight measures, the fall of nDCG@5 is open, and its 95 % interval is not."""
    return evaluate(BEFORE, "hotel"), evaluate(AFTER, "hotel")


@pytest.fixture(scope="module")
def kept(client: TestClient) -> tuple[str, str]:
    found = [client.post("/v1/evaluate", json={"golden": "hotel", "retriever": text}).json() for text in (BEFORE, AFTER)]
    return found[0]["run_id"], found[1]["run_id"]


def text_of(page: str) -> str:
    page = re.sub(r"(?s)<(script|style).*?</\1>", " ", page)
    return re.sub(r"\s+", " ", escaped.unescape(re.sub(r"<[^>]+>", " ", page))).replace("\u200b", "")


@pytest.mark.parametrize("correction", [None, "holm"])
def test_all_faces_show_the_numbers_that_decided(
    correction: Any,
    runs: tuple[Evaluation, Evaluation],
    kept: tuple[str, str],
    client: TestClient,
    ringtrue: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = compare(*runs, primary=MEASURE, correction=correction)
    assert found.verdict == ("worse" if correction is None else "not enough evidence")
    for one in found.measures.values():
        assert (one.low > 0 or one.high < 0) == (one.word != "not enough evidence") == (one.p_adjusted <= 0.05)

    request = {"a": kept[0], "b": kept[1], "primary": MEASURE, "correction": correction}
    answer = client.post("/v1/compare", json=request).json()
    monkeypatch.chdir(tmp_path)
    for name, one in zip(("before", "after"), runs, strict=True):
        save(one, name)
    command = ("compare", "before", "after", "--primary", MEASURE, *(("--correction", correction) if correction else ()))
    told = ringtrue(*command, "--json").json
    for record in (answer["measures"]["ndcg_at_5"], told["measures"][MEASURE], _reported(runs, found)):
        main = found.measures[MEASURE]
        assert record.get("verdict", record.get("word")) == main.word
        assert record["p_adjusted"] == pytest.approx(main.p_adjusted)
        assert record.get("ci", [record.get("low"), record.get("high")]) == pytest.approx([main.low, main.high])
        assert (record["decides"], record["tests"]) == (True, 1 if correction is None else 8)

    _check_texts(found, runs, ringtrue(*command).out)
    if correction is None:  # the page asks for no correction
        page = text_of(client.get("/compare", params={"a": kept[0], "b": kept[1], "measure": MEASURE}).text)
        for one in found.measures.values():
            ends = f"{page_signed(one.low)} to {page_signed(one.high)}"
            assert ends in page
            assert f"{probability(one.p_adjusted)} {one.wins} / {one.ties} / {one.losses}" in page
            assert says(one) in page


def _reported(runs: tuple[Evaluation, Evaluation], found: Comparison) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(as_json(Report(runs[1], "", other=runs[0], comparison=found)))
    return record["comparison"]["measures"][MEASURE]


def _check_texts(found: Comparison, runs: tuple[Evaluation, Evaluation], terminal: str) -> None:
    report = Report(runs[1], "2026-11-18T00:00:00+00:00", other=runs[0], comparison=found)
    shown = {"markdown": markdown(report), "comment": pull_request(report), "page": text_of(html(report))}
    shown = {name: text.replace("\u200b", "") for name, text in shown.items()}
    for name, one in found.measures.items():
        minus = f"{one.low:+.4f} … {one.high:+.4f}"
        row = next(line for line in terminal.splitlines() if line.startswith(f"{name} "))
        assert minus in row
        assert f" {one.p_adjusted:.2g} " in row
        assert row.endswith(says(one))
        ends = f"{signed(one.low)} to {signed(one.high)}"
        assert f"| {ends} | {probability(one.p_adjusted)} | {number(one.prob_better, 3)} |" in shown["markdown"]
        assert f"| {ends} | {says(one)} |" in shown["comment"]
        assert f"{page_signed(one.low)} to {page_signed(one.high)} {probability(one.p_adjusted)}" in shown["page"]
        assert f"{says(one)}; {one.reason}" in shown["page"]
    main = found.measures[MEASURE]
    for text in (terminal, shown["markdown"], shown["comment"]):
        assert f"p = {main.p_adjusted:.2g} " in text, "the sentence has the p of the table"
