"""Deterministic stratified parts, a ledger of looks, and no double on both sides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import leakage, ledger_beside, looks, read_looks, record_look, split
from ringtrue.records import Document, GoldenSet, Judgment, Query


def make(sizes: dict[str, int], *, extra: int = 0) -> GoldenSet:
    queries = [
        Query(f"{kind}-{n}", f"text {kind} {n}", {"query_type": kind})
        for kind, size in sizes.items()
        for n in range(size + extra)
    ]
    judgments = tuple(Judgment(query.query_id, "d", 1) for query in queries)
    return GoldenSet("s", "1.0.0", tuple(queries), judgments, (Document("d", "x"),))


def ids(golden: GoldenSet) -> set[str]:
    return {query.query_id for query in golden.queries}


def test_parts_are_disjoint_complete_and_share_the_documents() -> None:
    golden = make({"a": 40, "b": 10})
    tuning, held_out = split(golden)
    assert ids(tuning) | ids(held_out) == ids(golden)
    assert not ids(tuning) & ids(held_out)
    assert len(held_out.queries) == 10
    assert tuning.documents == held_out.documents == golden.documents
    assert {judgment.query_id for judgment in held_out.judgments} == ids(held_out)
    assert (tuning.metadata["split"], held_out.metadata["split"]) == ("tuning", "held_out")


def test_strata_are_held_out_by_their_share() -> None:
    _, held_out = split(make({"a": 50, "b": 25, "c": 10}))
    assert Counter(query.metadata["query_type"] for query in held_out.queries) == {"a": 10, "b": 5, "c": 2}


def test_remainders_go_to_the_strata_that_lost_most() -> None:
    _, held_out = split(make({"a": 14, "b": 8, "c": 8}))
    assert Counter(query.metadata["query_type"] for query in held_out.queries) == {"a": 3, "b": 2, "c": 1}


def test_every_stratum_of_five_has_one_held_out() -> None:
    _, held_out = split(make({"a": 100, "b": 5, "c": 5, "d": 4}), held_out=0.05)
    counts = Counter(query.metadata["query_type"] for query in held_out.queries)
    assert counts["b"] >= 1
    assert counts["c"] >= 1


def test_same_seed_same_parts_whatever_the_order() -> None:
    golden = make({"a": 30, "b": 30})
    turned = GoldenSet("s", "1.0.0", golden.queries[::-1], golden.judgments, golden.documents)
    assert ids(split(golden, seed=1)[1]) == ids(split(turned, seed=1)[1])
    assert ids(split(golden, seed=1)[1]) != ids(split(golden, seed=2)[1])


def test_adding_a_query_moves_at_most_one_per_stratum() -> None:
    before = make({"a": 37, "b": 21, "c": 12})
    sides = {query.query_id: "held_out" if query.query_id in ids(split(before)[1]) else "tuning" for query in before.queries}
    for n in range(60):
        more = GoldenSet("s", "1.0.0", (*before.queries, Query(f"new-{n}", "x", {"query_type": "a"})), ())
        after = ids(split(more)[1])
        moved = Counter(
            query.metadata["query_type"]
            for query in before.queries
            if (sides[query.query_id] == "held_out") != (query.query_id in after)
        )
        assert all(count <= 1 for count in moved.values()), moved


def test_stratum_is_the_sets_own_slice_unless_given() -> None:
    queries = tuple(Query(f"q{n}", "x", {"dimension": "vague" if n < 10 else "negative", "pair": str(n)}) for n in range(20))
    _, held_out = split(GoldenSet("s", "1.0.0", queries, ()))
    assert Counter(query.metadata["dimension"] for query in held_out.queries) == {"vague": 2, "negative": 2}


@pytest.mark.parametrize("share", [0.0, 1.0, -0.2, 20])
def test_share_must_lie_between_0_and_1(share: float) -> None:
    with pytest.raises(InputError, match="is not a share"):
        split(make({"a": 5}), held_out=share)


def test_unknown_field_names_the_legal_ones() -> None:
    with pytest.raises(InputError, match=r"no query of 's' has a field 'query_typ'.*'query_type'"):
        split(make({"a": 5}), by="query_typ")


def test_each_look_is_recorded_and_counted(tmp_path: Path) -> None:
    ledger = ledger_beside(tmp_path)
    assert looks(ledger) == 0
    assert record_look(ledger, who="ci", what="gate of build 7", when="2026-11-15T10:00:00Z", version="s-v1.0.0") == 1
    assert record_look(ledger, who="desk", what="report", when="2026-11-16") == 2
    assert [(look.who, look.version) for look in read_looks(ledger)] == [("ci", "s-v1.0.0"), ("desk", "")]
    assert ledger.parent == tmp_path
    assert ledger_beside(tmp_path / "set.json") == ledger


def test_look_without_author_is_refused_and_broken_ledger_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs 'who'"):
        record_look(tmp_path / "l.jsonl", who=" ", what="x", when="now")
    (tmp_path / "l.jsonl").write_text('{"who": "a", "what": "b"}\n')
    with pytest.raises(InputError, match=r"l\.jsonl:1: the field 'when' is missing"):
        looks(tmp_path / "l.jsonl")


def test_leakage_finds_doubles_across_the_sides_only() -> None:
    tuning = GoldenSet(
        "s", "1", (Query("a", "where is the pool"), Query("b", "Where is the pool?"), Query("c", "late fee")), ()
    )
    held_out = GoldenSet("s", "1", (Query("a", "where is the POOL"), Query("d", "early fee")), ())
    assert [(leak.tuning, leak.held_out, leak.similarity) for leak in leakage(tuning, held_out)] == [
        ("a", "a", 1.0),
        ("b", "a", 1.0),
    ]
