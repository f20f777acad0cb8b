"""Golden sets, baselines, experiments and runs in the store, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ringtrue.errors import InputError
from ringtrue.store import KeptVersion, Store, StoredExperiment
from store_contents import BASELINE, EXPERIMENT, GOLDEN_SET, LATER, NOON, RUN


def test_a_golden_set_is_found_by_name_and_version(store: Store) -> None:
    newer = replace(GOLDEN_SET, version="1.10.0", content={"queries": []}, created_at=LATER)
    assert [store.save_golden_set(GOLDEN_SET), store.save_golden_set(newer)] == [True, True]
    assert store.golden_set("hotel") == newer  # the one saved last, though "1.10.0" sorts before "1.2.0"
    assert store.golden_set("hotel", "1.2.0") == GOLDEN_SET
    assert (store.golden_set("hotel", "2.0.0"), store.golden_set("clinic"), store.golden_set("hotel", project="shop")) == (
        None,
        None,
        None,
    )
    assert store.golden_sets() == [KeptVersion("hotel", "1.10.0", LATER), KeptVersion("hotel", "1.2.0", NOON)]
    assert store.golden_sets(name="clinic") == store.golden_sets(project="shop") == []


def test_a_version_of_a_golden_set_never_changes(store: Store) -> None:
    store.save_golden_set(GOLDEN_SET)
    turned = replace(GOLDEN_SET, content=dict(reversed(GOLDEN_SET.content.items())), created_at=LATER)
    assert store.save_golden_set(turned) is False
    with pytest.raises(InputError, match=r"hotel.*1\.2\.0.*new version"):
        store.save_golden_set(replace(GOLDEN_SET, content={"queries": []}))
    assert store.golden_set("hotel") == GOLDEN_SET


def test_baselines_are_found_by_name_and_version(store: Store) -> None:
    newer = replace(BASELINE, version="1.1.0", content={"format": 1, "metrics": {"nDCG@10": float("nan")}}, reason="")
    assert [store.save_baseline(BASELINE), store.save_baseline(newer), store.save_baseline(newer)] == [True, True, False]
    found = store.baseline("main")
    assert found is not None
    assert (found.version, found.content["metrics"]) == ("1.1.0", {"nDCG@10": "nan"})
    assert store.baseline("main", "1.0.0") == BASELINE
    assert [(one.name, one.version) for one in store.baselines(name="main")] == [("main", "1.1.0"), ("main", "1.0.0")]
    with pytest.raises(InputError, match=r"baseline 'main'"):
        store.save_baseline(replace(BASELINE, reason="another"))


def test_experiments_come_back_in_their_order(store: Store) -> None:
    second = replace(EXPERIMENT, experiment_id="exp-000", created_at=LATER)
    assert store.add_experiments(lambda taken: [EXPERIMENT, second]) == [EXPERIMENT, second]
    assert store.experiments() == [EXPERIMENT, second]
    assert store.experiments(limit=1) == [second]
    assert (store.experiment("exp-001"), store.experiment("exp-009")) == (EXPERIMENT, None)
    assert store.experiments(project="shop") == []


def test_experiments_are_added_all_or_none(store: Store) -> None:
    store.add_experiments(lambda taken: [EXPERIMENT])
    with pytest.raises(InputError, match="exp-001"):
        store.add_experiments(lambda taken: [replace(EXPERIMENT, experiment_id="exp-002"), EXPERIMENT])
    with pytest.raises(InputError, match=r"project 'shop'"):
        store.add_experiments(lambda taken: [replace(EXPERIMENT, experiment_id="exp-003", project="shop")])
    assert store.experiments() == [EXPERIMENT]


def test_two_who_number_experiments_at_once_give_different_numbers(store: Store) -> None:
    def next_one(taken: Sequence[str]) -> list[StoredExperiment]:
        return [replace(EXPERIMENT, experiment_id=f"exp-{len(taken) + 1:03}")]

    with ThreadPoolExecutor(4) as pool:
        added = list(pool.map(lambda _: store.add_experiments(next_one)[0].experiment_id, range(12)))
    assert sorted(added) == [f"exp-{number:03}" for number in range(1, 13)]


def test_a_run_of_several_megabytes_is_kept_as_it_is_and_never_changes(store: Store) -> None:
    large = replace(RUN, content=bytes(range(256)) * 20_000)
    assert [store.save_run(large), store.save_run(replace(large, created_at=NOON))] == [True, False]
    assert store.run("r1") == large
    assert (store.run("r2"), store.run("r1", project="shop")) == (None, None)
    with pytest.raises(InputError, match="r1"):
        store.save_run(RUN)
    assert store.save_run(replace(RUN, run_id="r2"))
    assert (set(store.run_names()), store.run_names(project="shop")) == ({"r1", "r2"}, {})
    assert (set(store.run_names(among=["r2", "r9"])), store.run_names(among=[])) == ({"r2"}, {})
