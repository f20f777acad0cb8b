"""What a new memory is said to be like, the doctor shows as well."""

from __future__ import annotations

import numpy as np

from made_memories import memory
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.pairs import alike_to, pairs_of, vectors_of

CENTS = memory(
    "prices-are-stored-as-integer-cents",
    "Prices are stored as integer cents",
    "Every amount is a bigint of minor units with an ISO currency column; floats are banned.",
    tags=("money", "billing"),
)
FLOATS = memory(
    "prices-are-stored-as-floating-point", "Prices are stored as floating point", "Amounts are float columns.", tags=("money",)
)
MONEY = memory(
    "money-amounts-are-integer-cents",
    "Money amounts are integer cents",
    "Store every amount as integer minor units, never as float",
)
OTHERS = [
    memory("redis-is-full", "Redis is full", "raise maxmemory, drain the queue"),
    memory("no-default-exports", "No default exports in TypeScript", "Named exports keep renames greppable."),
    memory("use-default-exports", "Use default exports in TypeScript", "Default exports read better."),
    memory("flags-live-in-unleash", "Feature flags live in Unleash", "Flags are removed within 60 days after full rollout."),
]
STORE = [CENTS, FLOATS, MONEY, *OTHERS]


def shown(memories: list[Memory], vectors) -> set[frozenset[str]]:
    return {frozenset((pair.first, pair.second)) for pair in pairs_of(memories, vectors)}


def test_whatever_add_says_of_a_pair_the_doctor_shows(tmp_path) -> None:
    vectors, _ = vectors_of(str(tmp_path), STORE)
    doctor = shown(STORE, vectors)
    for one in STORE:
        said = {frozenset((pair.first, pair.second)) for pair in alike_to(str(tmp_path), STORE, one.id)}
        assert said <= doctor, one.id
        assert said <= shown(STORE, None), one.id


def test_cents_against_floats_is_a_contradiction_for_both(tmp_path) -> None:
    vectors, compared_by = vectors_of(str(tmp_path), STORE)
    kinds = {frozenset((pair.first, pair.second)): pair.kind for pair in pairs_of(STORE, vectors)}
    assert kinds[frozenset((CENTS.id, FLOATS.id))] == "contradiction", compared_by
    (pair,) = alike_to(str(tmp_path), STORE, FLOATS.id)
    assert ({pair.first, pair.second}, pair.kind) == ({CENTS.id, FLOATS.id}, "contradiction")


def test_what_words_alone_bring_up_is_not_said_where_the_doctor_would_not_show_it(tmp_path, monkeypatch) -> None:
    one = memory("roll-back", "Roll back a bad release", "Switch the load balancer to the previous colour.")
    other = memory("rolling-back", "How to roll back a release", "Switch the load balancer to the previous colour.")
    active = [one, other, *OTHERS]
    assert [pair.kind for pair in pairs_of(active, only=one.id)] == ["duplicate"]
    apart = np.eye(len(active), dtype=np.float32)
    assert frozenset((one.id, other.id)) not in shown(active, apart)
    monkeypatch.setattr("ringtrue.memory.pairs.vectors_of", lambda root, chosen: (apart[: len(chosen)], "words and meaning"))
    assert alike_to(str(tmp_path), active, one.id) == []
