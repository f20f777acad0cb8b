"""Bucketing is uniform, the same everywhere, and independent between flags."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from ringtrue.rollout.flags import bucket

# Written down once. A change of any of them would move people from one side of every running rollout to the other.
PINNED = {
    ("user-1", "multi-vector"): 15.333276922741245,
    ("user-2", "multi-vector"): 98.18714107801884,
    ("user-1", "graph-scoring"): 84.46570492017258,
    ("", "x"): 69.84355013345778,
    ("Zoë 🏨", "größe"): 28.546556287052816,
    ("eq_20260101_abc", "shadow:multi-vector"): 36.36401181645621,
    ("\ud800", "x"): 92.13173942358385,
}
PEOPLE = [f"user-{n}" for n in range(20_000)]


@pytest.mark.parametrize(("identity", "flag"), PINNED)
def test_buckets_are_the_same_in_every_version(identity: str, flag: str) -> None:
    assert bucket(identity, flag) == PINNED[identity, flag]


def test_buckets_are_the_same_in_every_process() -> None:
    program = "from ringtrue.rollout.flags import bucket; print(*(repr(bucket(f'user-{n}', 'f')) for n in range(50)))"
    printed = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True, capture_output=True, text=True, timeout=60,
        ).stdout.split()
        for seed in ("1", "2")
    ]  # fmt: skip
    assert printed[0] == printed[1] == [repr(bucket(f"user-{n}", "f")) for n in range(50)]


@pytest.mark.parametrize("flag", ["multi-vector", "graph-scoring", "shadow:multi-vector"])
def test_buckets_are_uniform(flag: str) -> None:
    places = np.array([bucket(person, flag) for person in PEOPLE])
    counts = np.histogram(places, bins=100, range=(0, 100))[0]
    assert counts.sum() == len(PEOPLE)
    assert stats.chisquare(counts).pvalue > 0.001
    # The finest stage is 1 %; within it places are uniform, too.
    first = places[places < 1]
    assert stats.chisquare(np.histogram(first, bins=10, range=(0, 1))[0]).pvalue > 0.001


@pytest.mark.parametrize(("one", "other"), [("multi-vector", "graph-scoring"), ("f1", "f2"), ("a", "shadow:a")])
def test_flags_divide_people_independently(one: str, other: str) -> None:
    places = np.array([[bucket(person, one), bucket(person, other)] for person in PEOPLE])
    joint = np.histogram2d(places[:, 0], places[:, 1], bins=10, range=[(0, 100), (0, 100)])[0]
    assert stats.chi2_contingency(joint).pvalue > 0.001
    assert abs(np.corrcoef(places.T)[0, 1]) < 4 / np.sqrt(len(PEOPLE))


def test_what_belongs_to_the_flag_and_what_to_the_identity_is_kept_apart() -> None:
    assert bucket("bc", "a") != bucket("c", "ab")
    assert bucket("1:x", "a") != bucket("x", "a:1")
