"""The baseline's file, what an update moves and what it refuses."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from made import answers, evaluation, golden_set
from ringtrue.errors import InputError, MissingInput
from ringtrue.records import GoldenSet, Ranking
from ringtrue.verdict import (
    Policy,
    baseline_from,
    baseline_of,
    baseline_record,
    gate,
    pairing_note,
    read_baseline,
    write_baseline,
)
from ringtrue.verdict.gating import has_moved, movements, next_version, objections

PLAIN = {
    "version": "1.0.0",
    "embedding_model": "text-embedding-3-large",
    "chunking_strategy": "semantic_512_overlap_50",
    "reranking_model": "cross-encoder-ms-marco",
    "recorded_at": "2026-01-04T12:00:00Z",
    "metrics": {
        "recall_at_5": 0.82,
        "precision_at_5": 0.68,
        "mrr": 0.74,
        "ndcg_at_5": 0.78,
        "latency": {"p50": 180, "p95": 420, "p99": 850},
    },
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ringtrue-baseline.json"
    write_baseline(baseline_of(evaluation(), version="1.2.0", reason="cheaper"), path)
    return path


def test_everything_about_a_baseline_survives_its_file(file) -> None:
    made, found = baseline_of(evaluation(), version="1.2.0", reason="cheaper"), read_baseline(file)
    for name in made.__dataclass_fields__:
        assert getattr(found, name) == getattr(made, name), name
    assert found.name == "baseline 1.2.0"
    assert found.scores.per_query == dict(sorted(evaluation().scores.per_query.items()))
    assert len(found.rankings["q000"]) == 10


def test_git_shows_which_query_changed(file, tmp_path) -> None:
    lines = file.read_text().splitlines()
    record = json.loads(file.read_text())
    assert list(record)[:3] == ["format", "version", "reason"]
    assert sum('"q007": {' in line for line in lines) == 1
    golden = golden_set()
    changed = [Ranking(one.query_id, ()) if one.query_id == "q007" else one for one in answers(golden)]
    other = tmp_path / "other.json"
    write_baseline(baseline_of(evaluation(golden, changed), version="1.2.0", reason="cheaper"), other)
    differing = set(other.read_text().splitlines()) - set(lines)
    assert {line.split('"')[1] for line in differing if '": {"nDCG@10"' in line} == {"q007"}


def test_the_same_evaluation_gives_the_same_bytes_whatever_its_order(file, tmp_path) -> None:
    golden = golden_set()
    turned = replace(golden, queries=golden.queries[::-1])
    other = tmp_path / "other.json"
    write_baseline(replace(baseline_of(evaluation(turned), version="1.2.0", reason="cheaper")), other)
    mine = json.loads(file.read_text())
    assert list(json.loads(other.read_text())["per_query"]) == list(mine["per_query"]) == sorted(mine["per_query"])


def test_an_undefined_value_is_null_and_comes_back_undefined(tmp_path) -> None:
    golden = golden_set()
    without = replace(golden, judgments=tuple(one for one in golden.judgments if one.query_id != "q003"))
    path = tmp_path / "b.json"
    write_baseline(baseline_of(evaluation(without)), path)
    assert json.loads(path.read_text())["per_query"]["q003"]["R@5"] is None
    assert math.isnan(read_baseline(path).per_query["q003"]["R@5"])


def test_a_failed_write_leaves_the_old_file_and_nothing_else(file) -> None:
    before = file.read_bytes()
    broken = replace(read_baseline(file), config={"model": object()})
    with pytest.raises(InputError, match="config"):
        write_baseline(broken, file)
    with pytest.raises(InputError, match="cannot be written"):
        write_baseline(read_baseline(file), file.parent / "nowhere" / "b.json")
    assert file.read_bytes() == before
    assert [item.name for item in file.parent.iterdir()] == [file.name]


def test_a_written_file_can_be_read_by_others_as_usual_files_can(file) -> None:
    plain = file.parent / "plain"
    plain.write_text("")
    assert file.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, ["'format'", "2", "update Ringtrue"]),
        ({"version": "one"}, ["'version'", "'one'", "1.2.0"]),
        ({"metrics": {}}, ["'metrics'", "no measure"]),
        ({"metrics": {"nDGC@5": 1}}, ["'metrics'", "nDGC@5", "did you mean"]),
        ({"metrics": {"R@5": "good"}}, ["metrics.R@5", "'good'"]),
        ({"per_query": {}}, ["'per_query'", "baseline update"]),
        ({"per_query": {"q1": {"Success@9": 1}}}, ["per_query.q1", "Success@9"]),
        ({"per_query": {"q1": {"R@5": "x"}}}, ["per_query.q1.R@5", "'x'"]),
        ({"latency": {"p90": 3}}, ["latency", "p90", "'p95'"]),
        ({"latency": {"p95": -1}}, ["latency.p95", "-1"]),
        ({"golden": {"id": "x"}}, ["golden.version", "is missing"]),
        ({"golden": {"idd": "x"}}, ["golden", "did you mean 'id'"]),
        ({"rankings": {"q1": "d1"}}, ["rankings.q1", "'d1'"]),
        ({"machine": 3}, ["'machine'", "3"]),
        ({"metricks": {}}, ["metricks", "did you mean 'metrics'"]),
    ],
)
def test_a_broken_file_names_file_field_value_and_cure(file, change, says) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(InputError) as problem:
        read_baseline(file)
    for part in (str(file), *says):
        assert part in str(problem.value)
    assert "\n" not in str(problem.value)


def test_a_mean_that_was_edited_by_hand_is_noticed(file) -> None:
    record = json.loads(file.read_text())
    record["metrics"]["R@5"] = 0.5
    file.write_text(json.dumps(record))
    with pytest.raises(InputError, match=r"metrics.R@5.*is 0.5, but the scores per query give 0.68.*edited by hand.*git"):
        read_baseline(file)


@pytest.mark.parametrize(
    ("text", "says"), [("", "empty"), ("[]", "no JSON object"), ('{"a": 1}', "neither"), ("{", "not valid JSON")]
)
def test_what_is_no_baseline_at_all_is_said_to_be_none(tmp_path, text, says) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_baseline(path)
    with pytest.raises(MissingInput, match="no such file"):
        read_baseline(tmp_path / "nowhere.json")


def test_a_plain_file_of_means_is_a_baseline_without_queries(tmp_path) -> None:
    path = tmp_path / "baseline-metrics.json"
    path.write_text(json.dumps(PLAIN))
    found = read_baseline(path)
    assert dict(found.metrics) == {"R@5": 0.82, "P@5": 0.68, "RR": 0.74, "nDCG@5": 0.78}
    assert dict(found.latency) == {"p50": 180.0, "p95": 420.0, "p99": 850.0}
    assert found.config["chunking"] == "semantic_512_overlap_50"
    assert found.per_query == {}
    assert found.scores.query_ids == ()


def test_versions_rise_by_what_moved() -> None:
    assert next_version("1.2.3", moved=True) == "1.3.0"
    assert next_version("1.2.3", moved=False) == "1.2.4"
    with pytest.raises(InputError, match="v7"):
        next_version("v7", moved=True)
    with pytest.raises(InputError, match=r"hotel-v1\.0\.0"):
        baseline_of(evaluation(), version="hotel-v1.0.0")


def test_what_moves_names_old_new_and_what_came_or_went() -> None:
    golden = golden_set()
    old = baseline_of(evaluation(golden, measures=["R@5", "P@5"]))
    new = baseline_of(evaluation(golden, answers(golden, skill=0.95), measures=["R@5", "RR"]))
    found = movements(old, new)
    assert found["R@5"].diff == pytest.approx(new.metrics["R@5"] - old.metrics["R@5"])
    assert found["R@5"].diff > 0
    assert (found["P@5"].new, found["RR"].old) == (None, None)
    assert found["RR"].diff is None
    assert has_moved(found)
    slower = replace(old, latency={"p95": 999.0})
    assert not has_moved(movements(old, slower))


def test_an_equal_or_better_run_meets_no_objection_even_below_the_floors() -> None:
    golden = golden_set()
    weak = evaluation(golden, answers(golden, skill=0.2))
    better = evaluation(golden, answers(golden, skill=0.5))
    assert objections(weak, None, Policy()) == ()
    assert objections(weak, baseline_of(weak), Policy()) == ()
    assert objections(better, baseline_of(weak), Policy(latency_increase=math.inf)) == ()


def test_a_worse_run_is_objected_to_measure_by_measure() -> None:
    golden = golden_set()
    good = evaluation(golden, answers(golden, skill=0.9))
    worse = evaluation(golden, answers(golden, skill=0.8))
    found = objections(worse, baseline_of(good), Policy())
    assert any(text.startswith("R@5 is worse than in baseline 1.0.0: 0.") for text in found)


def test_failed_and_missing_queries_are_objections() -> None:
    golden = golden_set()
    rankings = answers(golden)
    failed = [replace(one, hits=(), error="timed out") if one.query_id == "q004" else one for one in rankings]
    assert objections(evaluation(golden, failed), None, Policy()) == ("1 queries got no answer: q004",)
    few = replace(golden, queries=golden.queries[:50])
    kept = {query.query_id for query in few.queries}
    few = replace(few, judgments=tuple(one for one in golden.judgments if one.query_id in kept))
    found = objections(evaluation(few, rankings[:50]), baseline_of(evaluation(golden, rankings)), Policy())
    assert found[0] == "10 queries of baseline 1.0.0 are missing from the run: q050, q051, q052, q053, q054 …"


class TestAnotherGoldenSet:
    """ "Worse" is meant over the questions of both sets that did not change."""

    golden = golden_set(40)
    policy = Policy(latency_increase=math.inf)

    def part(self, first: int, last: int) -> GoldenSet:
        queries = self.golden.queries[first:last]
        kept = {query.query_id for query in queries}
        judgments = tuple(one for one in self.golden.judgments if one.query_id in kept)
        return replace(self.golden, queries=queries, judgments=judgments)

    def test_easy_questions_that_were_added_hide_no_regression(self) -> None:
        good = answers(self.golden, skill=0.9)
        worse = [*answers(self.golden, skill=0.6)[:20], *answers(self.golden, skill=1.0)[20:]]
        old, whole = baseline_of(evaluation(self.part(0, 20), good[:20])), evaluation(self.golden, worse)
        assert any(text.startswith("R@5 is worse than in baseline 1.0.0") for text in objections(whole, old, self.policy))
        assert pairing_note(old, baseline_of(whole)) == (
            "the golden set changed since baseline 1.0.0; compared over 20 of the 20 queries of baseline 1.0.0: "
            "those in both sets, unchanged"
        )

    def test_a_hard_question_that_was_added_makes_no_unchanged_search_worse(self) -> None:
        found = [*answers(self.part(0, 39)), Ranking("q039", ())]
        old = baseline_of(evaluation(self.part(0, 39), found[:39]))
        whole = evaluation(self.golden, found)
        assert objections(whole, old, self.policy) == ()
        assert movements(old, baseline_of(whole))["R@5"].diff == 0

    def test_a_question_whose_judgments_changed_takes_no_part(self) -> None:
        found = answers(self.golden)
        old = baseline_of(evaluation(self.golden, found))
        judged = tuple(replace(one, grade=0) if one.query_id == "q000" else one for one in self.golden.judgments)
        new = baseline_of(evaluation(replace(self.golden, judgments=judged), found))
        assert "compared over 39 of the 40 queries" in pairing_note(old, new)
        assert movements(old, new)["R@5"].diff == 0

    def test_without_a_shared_question_only_force_accepts(self) -> None:
        old = baseline_of(evaluation(self.part(0, 20)))
        whole = evaluation(self.part(20, 40))
        assert (
            "the run shares no query of the same text and judgments with baseline 1.0.0"
            in objections(whole, old, self.policy)[1]
        )
        assert movements(old, baseline_of(whole))["R@5"].old is None


def test_gate_and_update_compare_the_answered_queries_and_say_so() -> None:
    golden = golden_set()
    rankings = answers(golden)
    old = baseline_of(evaluation(golden, rankings))
    best = max(old.per_query, key=lambda query: old.per_query[query]["R@5"])
    failed = [replace(one, hits=(), error="timed out") if one.query_id == best else one for one in rankings]
    whole = evaluation(golden, failed)
    found = objections(whole, old, Policy(latency_increase=math.inf))
    assert found == (f"1 queries got no answer: {best}",)
    verdict = gate(whole, Policy(), baseline=old)
    assert any(note.startswith("compared over 59 of the 60 queries of baseline 1.0.0") for note in verdict.notes)


def test_a_baseline_and_its_json_object_say_the_same(file) -> None:
    baseline = read_baseline(file)
    record = baseline_record(baseline)
    assert json.loads(file.read_text()) == record
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert repr(baseline_from(record, name="shop")) == repr(baseline)  # nan is not equal to itself


def test_an_undefined_value_is_null_in_the_json_object_too() -> None:
    golden = golden_set()
    without = replace(golden, judgments=tuple(one for one in golden.judgments if one.query_id != "q003"))
    record = baseline_record(baseline_of(evaluation(without)))
    assert record["per_query"]["q003"]["R@5"] is None
    assert math.isnan(baseline_from(record, name="shop").per_query["q003"]["R@5"])


def test_a_json_object_that_is_no_baseline_is_named_by_its_sender(file) -> None:
    record = baseline_record(read_baseline(file))
    for wrong in ([], {}, {"format": 2}, record | {"versoin": "1"}, record | {"metrics": {"R@5": 0.123}}):
        with pytest.raises(InputError, match=r"^shop"):
            baseline_from(wrong, name="shop")
    with pytest.raises(InputError, match="only JSON values"):
        baseline_record(replace(read_baseline(file), config={"model": object()}))
