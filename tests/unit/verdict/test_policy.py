"""What a gate asks for, and how [gate] in ringtrue.toml is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringtrue.config import load_config
from ringtrue.errors import InputError
from ringtrue.verdict import Policy


def test_the_defaults_are_those_of_the_specification() -> None:
    policy = Policy()
    assert dict(policy.floors) == {"R@5": 0.80, "P(rel=2)@5": 0.60, "RR": 0.70, "nDCG@5": 0.75}
    assert dict(policy.latency) == {"p50": 200.0, "p95": 500.0, "p99": 1000.0}
    assert policy.drop_measures == ("R@5", "R@10", "P@5", "RR", "nDCG@5")
    assert (policy.max_drop, policy.mode, policy.latency_increase, policy.min_effect) == (0.05, "relative", 0.20, 0.01)


def test_names_of_other_tools_are_kept_in_the_one_form() -> None:
    policy = Policy(floors={"recall_at_5": 0.9}, drop_measures=("mrr", "RR", "ndcg_at_5"), slices={"a = b": {"mrr": 0.5}})
    assert dict(policy.floors) == {"R@5": 0.9}
    assert policy.drop_measures == ("RR", "nDCG@5")
    assert {name: dict(floors) for name, floors in policy.slices.items()} == {"a=b": {"RR": 0.5}}
    assert policy.measures == ("R@5", "RR", "nDCG@5")


def test_a_policy_cannot_be_changed_behind_its_back() -> None:
    given = {"R@5": 0.9}
    policy = Policy(floors=given)
    given["R@5"] = 0.1
    assert policy.floors["R@5"] == 0.9
    with pytest.raises(TypeError):
        policy.floors["R@5"] = 0.1  # type: ignore[index]


def test_a_table_replaces_the_default_one_and_the_rest_stays() -> None:
    policy = Policy.of({"floors": {}, "max_drop": 0.1, "golden": "hotel"})
    assert dict(policy.floors) == {}
    assert policy.max_drop == 0.1
    assert policy.latency["p95"] == 500.0


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"floors": {"nDGC@5": 0.7}}, ["floors", "nDGC", "did you mean 'nDCG'"]),
        ({"floors": {"R@5": "high"}}, ["floors.'R@5'", "'high'"]),
        ({"floors": {"R@5": True}}, ["floors.'R@5'", "True"]),
        ({"floors": {"R@5": 0.8, "recall_at_5": 0.9}}, ["R@5 twice", "recall_at_5"]),
        ({"floors": 0.8}, ["floors", "not a table"]),
        ({"floors": {"R@5": 80}}, ["floors.'R@5' = 80", "between 0 and 1"]),
        ({"latency": {"p90": 100}}, ["p90", "'p95'"]),
        ({"latency": {"p95": 0}}, ["latency.'p95'", "milliseconds"]),
        ({"slices": {"factual": {"R@5": 0.7}}}, ["'factual'", "query_type=factual"]),
        ({"slices": {"query_type=factual": 0.7}}, ["query_type=factual", "not a table"]),
        ({"mode": "strict"}, ["'strict'", "'relative' or 'statistical'"]),
        ({"max_drop": 5}, ["max_drop", "0.05 for 5 %"]),
        ({"max_drop": -0.1}, ["max_drop", "-0.1"]),
        ({"min_effect": float("nan")}, ["min_effect", "nan"]),
        ({"alpha": 1}, ["alpha", "0.05"]),
        ({"latency_increase": 0}, ["latency_increase", "inf"]),
        ({"latency_slack": -1}, ["latency_slack", "milliseconds"]),
        ({"drop_measures": "R@5"}, ["drop_measures", "not a list"]),
        ({"drop_measures": ["R@5", "Recal@5"]}, ["drop_measures", "Recal"]),
        ({"drop_measures": ["GMAP"], "mode": "statistical"}, ["GMAP", "not a mean"]),
        ({"slice_minimum": 0}, ["slice_minimum", "20"]),
        ({"slice_drop": "yes"}, ["slice_drop", "true nor false"]),
    ],
)
def test_what_cannot_be_meant_names_place_key_value_and_cure(settings, says) -> None:
    with pytest.raises(InputError) as problem:
        Policy.of(settings, place="here/ringtrue.toml")
    assert str(problem.value).startswith("here/ringtrue.toml: [gate] ")
    for part in says:
        assert part in str(problem.value)
    assert "\n" not in str(problem.value)


def test_the_increase_of_latency_can_be_switched_off() -> None:
    assert Policy.of({"latency_increase": float("inf")}).latency_increase == float("inf")


def write(folder: Path, text: str) -> Path:
    file = folder / "ringtrue.toml"
    file.write_text(text)
    return file


def test_the_section_reaches_the_policy_and_its_tables_do_not_reach_the_options(tmp_path) -> None:
    write(
        tmp_path, '[gate]\nmode = "statistical"\n[gate.floors]\n"R@5" = 0.7\n[gate.slices."query_type=factual"]\n"RR" = 0.6\n'
    )
    config = load_config(tmp_path)
    policy = Policy.of(config.gate, place=config.file)
    assert policy.mode == "statistical"
    assert dict(policy.floors) == {"R@5": 0.7}
    assert policy.slices["query_type=factual"]["RR"] == 0.6
    assert config.commands["gate"] == {"mode": "statistical"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[gate.florrs]\n"R@5" = 0.7\n', "there is no table [gate.florrs]; did you mean 'floors'?"),
        ("[gate]\nmax_dorp = 0.1\n", "there is no 'gate.max_dorp'; did you mean 'max_drop'"),
    ],
)
def test_a_name_that_nothing_reads_is_refused_by_every_command(ringtrue, tmp_path, monkeypatch, text, says) -> None:
    file = write(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    outcome = ringtrue("golden", "list")
    assert outcome.code == 2
    assert str(file) in outcome.err
    assert says in outcome.err


def test_the_page_about_the_gate_shows_every_key_with_its_default(root) -> None:
    import tomllib
    from dataclasses import fields

    blocks = (root / "docs/gate.md").read_text().split("```toml\n")[1:]
    (shown,) = [tomllib.loads(block.split("```")[0])["gate"] for block in blocks if "[gate.floors]" in block]
    assert set(shown) == {item.name for item in fields(Policy)}
    assert Policy.of(shown) == Policy(slices={"query_type=factual": {"R@5": 0.7}})


def test_every_key_but_the_tables_is_an_option_of_the_command() -> None:
    import inspect
    from dataclasses import fields

    from ringtrue.cli.gate import gate_command
    from ringtrue.cli.lazy import spread
    from ringtrue.config import GATE_TABLES

    options = inspect.signature(spread(gate_command)).parameters
    assert {item.name for item in fields(Policy)} - set(options) == set(GATE_TABLES)
