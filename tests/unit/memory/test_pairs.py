"""Contradictions and duplicates: what the doctor finds of the pairs that were planted."""

from __future__ import annotations

import pytest

from made_memories import memory
from planted_memories import planted
from ringtrue.errors import RingtrueError
from ringtrue.memory.hook.memory import changed
from ringtrue.memory.pairs import pairs_of


def vectors_of(memories):
    from ringtrue.retrieve.encode import encoder

    try:
        return encoder().encode([f"{one.title}. {one.body}" for one in memories])
    except RingtrueError as problem:
        pytest.skip(str(problem))


def counted(*, fresh: bool, meaning: bool) -> dict[str, int]:
    memories, truth = planted(fresh=fresh)
    found = {
        frozenset((pair.first, pair.second)): pair.kind
        for pair in pairs_of(memories, vectors_of(memories) if meaning else None)
    }
    real = set().union(*truth.values())
    return {
        "contradictions": sum(found.get(pair) == "contradiction" for pair in truth["contradiction"]),
        "contradictions shown": sum(pair in found for pair in truth["contradiction"]),
        "duplicates": sum(found.get(pair) == "duplicate" for pair in truth["duplicate"]),
        "duplicates shown": sum(pair in found for pair in truth["duplicate"]),
        "lookalikes": sum(pair in found for pair in truth["lookalike"]),
        "unrelated": sum(pair not in real for pair in found),
    }


def test_planted_pairs_are_found_with_the_recall_that_the_docs_state() -> None:
    """Of 16 contradictions and 16 duplicates that were written after the rules were fixed."""
    found = counted(fresh=True, meaning=True)
    assert found["contradictions"] >= 11
    assert found["contradictions shown"] >= 12
    assert found["duplicates"] >= 14
    assert found["duplicates shown"] == 16
    assert found["lookalikes"] <= 2
    assert found["unrelated"] == 0


def test_planted_pairs_the_rules_were_made_with() -> None:
    found = counted(fresh=False, meaning=True)
    assert found["contradictions"] >= 23
    assert found["duplicates"] >= 27
    assert found["lookalikes"] <= 2
    assert found["unrelated"] <= 1


def test_words_alone_find_most_of_them() -> None:
    found = counted(fresh=True, meaning=False)
    assert found["contradictions shown"] >= 11
    assert found["duplicates shown"] >= 15
    assert found["unrelated"] <= 2


def test_planted_set_is_as_large_as_the_requirement_asks() -> None:
    memories, truth = planted(fresh=True)
    assert min(len(truth["contradiction"]), len(truth["duplicate"])) >= 15
    assert sum(one.id.startswith("unrelated") for one in memories) >= 40


def test_a_contradiction_says_what_it_is_about() -> None:
    one = memory("a", "Access tokens live fifteen minutes", "JWT access tokens expire after 15 minutes.")
    other = memory("b", "Access tokens live one hour", "JWT access tokens expire after 60 minutes.")
    (pair,) = pairs_of([one, other])
    assert (pair.kind, pair.because) == ("contradiction", "15 here, 60 there (time)")


def test_units_of_time_are_compared_as_one() -> None:
    one = memory("a", "Access tokens expire after one hour", "JWT access tokens live for one hour.")
    other = memory("b", "Access tokens expire after 60 minutes", "JWT access tokens live for 60 minutes.")
    assert [pair.kind for pair in pairs_of([one, other])] in ([], ["duplicate"])


def test_memories_that_name_each_other_are_settled() -> None:
    one = memory("a", "Nightly builds run at 02:00", "The nightly build starts at 2 o'clock in the night.")
    other = memory("b", "Nightly builds run at 04:00", "The nightly build starts at 4 o'clock in the night.")
    assert [{pair.first, pair.second} for pair in pairs_of([one, other])] == [{one.id, other.id}]
    assert pairs_of([changed(one, supersedes=(other.id,)), other]) == []
    assert pairs_of([one, changed(other, links={"contradicts": (one.id,)})]) == []


def test_an_empty_store_and_empty_memories_have_no_pairs() -> None:
    assert pairs_of([]) == []
    assert pairs_of([memory("a", "the"), memory("b", "the")]) == []
