"""Stages: maximal marginal relevance, boosts by recency and tier, thresholds and cuts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringtrue.errors import InputError, MissingInput
from ringtrue.records import Hit, Stage
from ringtrue.retrieve.protocol import Scope, check_k
from ringtrue.retrieve.stages import Mmr, Recency, Step, Threshold, Tier, Top, relevance
from ringtrue.testing.retrievers import RetrieverSuite, raises

NOW = "2026-11-15"


def hits_of(*scores: float, ids: Sequence[str] | None = None) -> list[Hit]:
    names = ids or [f"d{number}" for number in range(len(scores))]
    return [Hit(name, score) for name, score in zip(names, scores, strict=True)]


def ids_of(hits: Sequence[Hit]) -> list[str]:
    return [hit.doc_id for hit in hits]


def random_vectors(doc_ids: Sequence[str], *, size: int = 8) -> np.ndarray:
    """One direction per id, the same wherever the id stands."""
    return np.stack([np.random.default_rng(list(doc_id.encode())).normal(size=size) for doc_id in doc_ids])


def facts_of(**values: Any) -> Any:
    """Metadata of documents from their dates or tiers; None leaves the field out."""
    found = {
        doc_id: ({} if value is None else {"date": value, "tier": value, "city": "Bath"}) for doc_id, value in values.items()
    }
    return lambda: found


def every_stage() -> list[Step]:
    class Everything(dict[str, Mapping[str, Any]]):
        """Metadata in which every document has the same facts."""

        def __missing__(self, doc_id: str) -> Mapping[str, Any]:
            return {}

        def __contains__(self, doc_id: object) -> bool:
            return True

    facts = Everything({"d0": {"date": "2026-11-01", "tier": "core"}, "d1": {"date": "2026-01-01", "tier": "archive"}})
    return [
        Mmr(random_vectors),
        Recency(lambda: facts, now=NOW),
        Tier(lambda: facts, boosts={"core": 1.5, "archive": 0.5}),
        Threshold(min=0.0, relative=0.1, gap=0.9),
        Top(4),
    ]


STAGE_NAMES = [stage.name for stage in every_stage()]
falling = st.lists(st.floats(0, 1e6, allow_nan=False), max_size=12).map(lambda scores: sorted(scores, reverse=True))


# All stages


@pytest.mark.parametrize("place", range(len(STAGE_NAMES)), ids=STAGE_NAMES)
@given(scores=falling, k=st.integers(1, 15))
def test_a_stage_invents_nothing_and_repeats_nothing(place: int, scores: list[float], k: int) -> None:
    stage, hits = every_stage()[place], hits_of(*scores)
    answer = stage.apply("pool", hits, k=k)
    assert len(answer) <= k
    assert len(set(ids_of(answer))) == len(answer)
    assert set(ids_of(answer)) <= set(ids_of(hits))
    assert answer == stage.apply("pool", hits, k=k)
    found = [hit.score for hit in answer]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("place", range(len(STAGE_NAMES)), ids=STAGE_NAMES)
def test_a_hit_keeps_where_it_came_from_and_says_what_the_stage_did(place: int) -> None:
    stage = every_stage()[place]
    before = Stage("bm25", 1, 9.0)
    hits = [Hit(f"d{n}", 9.0 - n, f"d{n}:chunk:0", {"bm25": n + 1}, 0.5, (before,)) for n in range(3)]
    answer = stage.apply("pool", hits, k=3)
    assert len(answer) == 3
    origin = {hit.doc_id: hit for hit in hits}
    for rank, hit in enumerate(answer, 1):
        assert hit.stages == (before, Stage(stage.name, rank, hit.score))
        assert replace(hit, score=0.0, stages=()) == replace(origin[hit.doc_id], score=0.0, stages=())


@pytest.mark.parametrize("place", range(len(STAGE_NAMES)), ids=STAGE_NAMES)
def test_nothing_found_stays_nothing(place: int) -> None:
    assert every_stage()[place].apply("pool", [], k=5) == []


@pytest.mark.parametrize("place", range(len(STAGE_NAMES)), ids=STAGE_NAMES)
def test_k_below_one_is_refused_by_every_stage(place: int) -> None:
    with raises(InputError):
        every_stage()[place].apply("pool", hits_of(1.0), k=0)


def test_reordering_stages_ask_for_more_candidates_and_cutting_ones_do_not() -> None:
    depths = {stage.name: (stage.depth(3), stage.depth(80)) for stage in every_stage()}
    assert depths == {"mmr": (50, 80), "recency": (50, 80), "tier": (50, 80), "threshold": (3, 80), "top": (3, 4)}


class Piped:
    """A fixed answer with a stage behind it, as a pipeline joins them."""

    def __init__(self, stage: Step) -> None:
        self.stage = stage

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        found = [Hit(f"d{n}", 9.0 - n, None, {"fixed": n + 1}) for n in range(6)][: self.stage.depth(check_k(k))]
        return self.stage.apply(text, found, k=k)


class TestMmrAsARetriever(RetrieverSuite):
    def make(self) -> Piped:
        return Piped(every_stage()[0])


class TestRecencyAsARetriever(RetrieverSuite):
    def make(self) -> Piped:
        return Piped(every_stage()[1])


class TestTierAsARetriever(RetrieverSuite):
    def make(self) -> Piped:
        return Piped(every_stage()[2])


class TestThresholdAsARetriever(RetrieverSuite):
    def make(self) -> Piped:
        return Piped(every_stage()[3])


class TestTopAsARetriever(RetrieverSuite):
    def make(self) -> Piped:
        return Piped(every_stage()[4])


# Relevance


def test_relevance_is_the_place_between_lowest_and_highest_score() -> None:
    assert relevance(hits_of(10.0, 7.5, 5.0)).tolist() == [1.0, 0.5, 0.0]
    assert relevance(hits_of(3.0, 3.0)).tolist() == [1.0, 1.0]
    assert relevance(hits_of(-2.0)).tolist() == [1.0]
    assert relevance([]).tolist() == []


@pytest.mark.parametrize(
    "scores",
    [(math.nan,) * 4, (4.0, math.nan, 2.0, 1.0), (0.1, 0.2, 0.3, 0.9), (math.inf, 1.0, 0.5, 0.1), (1e308, 0.0, 0.0, -1e308)],
)
def test_relevance_goes_by_rank_where_scores_cannot_say(scores: tuple[float, ...]) -> None:
    assert relevance(hits_of(*scores)).tolist() == [1.0, 0.75, 0.5, 0.25]


@given(st.lists(st.floats(), max_size=12))
def test_relevance_never_rises_and_stays_between_0_and_1(scores: list[float]) -> None:
    found = relevance(hits_of(*scores))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) <= 0).all()


# Maximal marginal relevance


@given(st.lists(st.floats(allow_infinity=False), max_size=12), st.randoms(use_true_random=False))
def test_mmr_of_weight_1_keeps_the_incoming_order_exactly(scores: list[float], shuffle: Any) -> None:
    ids = [f"d{n:02}" for n in range(len(scores))]
    shuffle.shuffle(ids)
    answer = Mmr(random_vectors, weight=1).apply("pool", hits_of(*scores, ids=ids), k=20)
    assert ids_of(answer) == ids


def slow_mmr(hits: Sequence[Hit], weight: float, k: int) -> list[str]:
    """The definition, pair by pair."""
    matrix = random_vectors(ids_of(hits)) if hits else np.zeros((0, 8))
    unit = {hit.doc_id: row / np.linalg.norm(row) for hit, row in zip(hits, matrix, strict=True)}
    worth = dict(zip(ids_of(hits), relevance(hits).tolist(), strict=True))
    chosen: list[str] = []
    while len(chosen) < min(k, len(hits)):
        scores = {
            doc_id: weight * worth[doc_id]
            - (1 - weight) * max((float(unit[doc_id] @ unit[other]) for other in chosen), default=0)
            for doc_id in worth
            if doc_id not in chosen
        }
        chosen.append(max(scores, key=lambda doc_id: (round(scores[doc_id], 9), worth[doc_id], doc_id)))
    return chosen


@given(st.lists(st.integers(0, 20), max_size=10), st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.9]), st.integers(1, 12))
def test_mmr_chooses_as_its_definition_says(scores: list[int], weight: float, k: int) -> None:
    hits = hits_of(*sorted(map(float, scores), reverse=True))
    assert ids_of(Mmr(random_vectors, weight=weight).apply("pool", hits, k=k)) == slow_mmr(hits, weight, k)


def test_mmr_puts_a_copy_of_the_first_hit_behind_something_else() -> None:
    directions = {"pool": (1, 0), "pool-copy": (2, 0), "spa": (0, 1)}
    hits = hits_of(10.0, 9.0, 8.0, 0.0, ids=["pool", "pool-copy", "spa", "boiler"])
    stage = Mmr(lambda ids: np.array([directions.get(doc_id, (-1, 0)) for doc_id in ids]), weight=0.5)
    answer = stage.apply("pool", hits, k=3)
    assert ids_of(answer) == ["pool", "boiler", "spa"]
    # 0.5·1 + 0.5 while nothing is chosen; the opposite of the first, 0.5·0 + 0.5; then 0.5·0.8 − 0.5·0.
    assert [hit.score for hit in answer] == pytest.approx([1.0, 0.5, 0.4])


def test_mmr_of_weight_0_starts_with_the_most_relevant_and_then_takes_the_least_alike() -> None:
    directions = {"a": (1, 0), "b": (1, 0.1), "c": (1, 1), "d": (0, 1)}
    stage = Mmr(lambda ids: np.array([directions[doc_id] for doc_id in ids]), weight=0)
    assert ids_of(stage.apply("pool", hits_of(4.0, 3.0, 2.0, 1.0, ids=["a", "b", "c", "d"]), k=4)) == ["a", "d", "c", "b"]


@pytest.mark.parametrize("size", [1, 3, 7, 384])
def test_mmr_breaks_ties_of_equal_documents_by_id_descending(size: int) -> None:
    row = np.random.default_rng(size).normal(size=size)
    hits = hits_of(*[1.0] * 9, ids=[f"d{n}" for n in range(9)])
    answer = Mmr(lambda ids: np.tile(row, (len(ids), 1)), weight=0.4).apply("pool", hits, k=9)
    assert ids_of(answer) == [f"d{n}" for n in range(8, -1, -1)]


def test_mmr_looks_at_depth_candidates_and_no_more() -> None:
    asked: list[list[str]] = []

    def vectors(doc_ids: Sequence[str]) -> np.ndarray:
        asked.append(list(doc_ids))
        return random_vectors(doc_ids)

    hits = hits_of(*range(30, 0, -1))
    assert len(Mmr(vectors, depth=5).apply("pool", hits, k=2)) == 2
    assert len(Mmr(vectors, depth=5).apply("pool", hits, k=8)) == 8
    assert [sorted(ids) for ids in asked] == [sorted(ids_of(hits[:5]))] * 2


def test_mmr_takes_a_document_without_direction_as_unlike_all_and_any_scale_alike() -> None:
    rows = {"a": (1e-3, 0.0), "b": (1e3, 0.0), "c": (0.0, 0.0)}
    stage = Mmr(lambda ids: np.array([rows[doc_id] for doc_id in ids]), weight=0.5)
    answer = stage.apply("pool", hits_of(1.0, 1.0, 1.0, ids=["c", "b", "a"]), k=3)
    assert ids_of(answer) == ["c", "b", "a"]
    assert [hit.score for hit in answer] == pytest.approx([1.0, 0.5, 0.0])


@pytest.mark.parametrize("options", [{"weight": 1.5}, {"weight": -0.1}, {"weight": True}, {"weight": math.nan}, {"depth": 0}])
def test_mmr_refuses_options_that_cannot_be(options: dict[str, Any]) -> None:
    with raises(InputError) as messages:
        Mmr(random_vectors, **options)
    assert messages[0].startswith(f"mmr cannot have {next(iter(options))}=")


# Recency


def test_recency_halves_its_boost_with_every_half_life() -> None:
    facts = facts_of(d0="2026-11-15", d1="2026-11-05", d2="2026-10-26", d3="2026-11-15")
    answer = Recency(facts, half_life=10, weight=0.8, now=NOW).apply("pool", hits_of(4.0, 4.0, 4.0, 2.0), k=4)
    assert {hit.doc_id: hit.score for hit in answer} == pytest.approx({"d0": 1.8, "d1": 1.4, "d2": 1.2, "d3": 0.9})


def test_recency_lifts_a_newer_document_over_a_slightly_better_one() -> None:
    facts = facts_of(old="2020-01-01", new="2026-11-14", last="2026-11-14")
    hits = hits_of(10.0, 9.0, 0.0, ids=["old", "new", "last"])
    assert ids_of(Recency(facts, now=NOW).apply("pool", hits, k=2)) == ["new", "old"]
    assert ids_of(Recency(facts, weight=0, now=NOW).apply("pool", hits, k=2)) == ["old", "new"]


def test_recency_counts_to_the_newest_document_unless_told_and_never_to_the_clock() -> None:
    facts = facts_of(d0="2001-01-01", d1="2001-01-31")
    told = Recency(facts, half_life=30, weight=1, now="2001-01-31").apply("pool", hits_of(1.0, 1.0), k=2)
    assert Recency(facts, half_life=30, weight=1).apply("pool", hits_of(1.0, 1.0), k=2) == told
    assert {hit.doc_id: hit.score for hit in told} == pytest.approx({"d1": 2.0, "d0": 1.5})


def test_recency_takes_the_newest_of_the_collection_not_of_the_hits() -> None:
    facts = facts_of(d0="2001-01-01", unfound="2001-01-31")
    (hit,) = Recency(facts, half_life=30, weight=1).apply("pool", hits_of(1.0), k=1)
    assert hit.score == pytest.approx(1.5)


def test_a_date_after_now_is_as_new_as_now() -> None:
    (hit,) = Recency(facts_of(d0="2031-01-01"), weight=0.5, now=NOW).apply("pool", hits_of(1.0), k=1)
    assert hit.score == 1.5


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-15T12:00:00Z",
        "2026-11-15T13:00:00+01:00",
        "20261115T120000",
        " 2026-11-15 12:00 ",
        datetime(2026, 11, 15, 12, tzinfo=UTC),
    ],
    ids=str,
)
def test_every_way_to_write_one_moment_is_the_same_moment(value: Any) -> None:
    facts = facts_of(d0=value)
    (hit,) = Recency(facts, half_life=1, weight=1, now="2026-11-16T12:00").apply("pool", hits_of(1.0), k=1)
    assert hit.score == pytest.approx(1.5)


def test_a_day_is_its_midnight_in_utc() -> None:
    for value in ("2026-11-15", date(2026, 11, 15)):
        (hit,) = Recency(facts_of(d0=value), half_life=1, weight=1, now="2026-11-16T00:00Z").apply("pool", hits_of(1.0), k=1)
        assert hit.score == pytest.approx(1.5)


@pytest.mark.parametrize(
    "value", ["last week", "2026-13-01", "15.11.2026", "2026", 20261115, True, ["2026-11-15"], {}], ids=repr
)
def test_a_date_that_cannot_be_read_is_an_error_that_names_document_and_value(value: Any) -> None:
    stage = Recency(facts_of(d0="2026-11-15", d9=value), now=NOW)
    with raises(InputError) as messages:
        stage.apply("pool", hits_of(1.0), k=1)
    assert "'d9'" in messages[0]
    assert repr(value) in messages[0]


def test_a_document_without_a_date_is_not_boosted() -> None:
    stage = Recency(facts_of(d0=None, d1="", d2=NOW), weight=0.5)
    answer = stage.apply("pool", hits_of(1.0, 1.0, 1.0), k=3)
    assert [(hit.doc_id, hit.score) for hit in answer] == [("d2", 1.5), ("d1", 1.0), ("d0", 1.0)]


def test_a_field_that_no_document_has_is_an_error_with_the_nearest() -> None:
    with raises(MissingInput) as messages:
        Recency(facts_of(d0=NOW), field="dates").apply("pool", hits_of(1.0), k=1)
    with raises(MissingInput) as more:
        Tier(facts_of(d0=None), boosts={"core": 2}).apply("pool", hits_of(1.0), k=1)
    assert "'dates'" in messages[0]
    assert "'date'" in messages[0]
    assert "'tier'" in more[0]


def test_a_hit_of_another_collection_is_an_error_not_a_guess() -> None:
    with raises(InputError) as messages:
        Recency(facts_of(other=NOW)).apply("pool", hits_of(1.0), k=1)
    assert "'d0'" in messages[0]


def test_recency_without_scores_goes_by_rank() -> None:
    facts = facts_of(d0="2020-01-01", d1=NOW, d2="2020-01-01")
    answer = Recency(facts, weight=1).apply("pool", hits_of(math.nan, math.nan, math.nan), k=3)
    assert [(hit.doc_id, round(hit.score, 6)) for hit in answer] == [("d1", 1.333333), ("d0", 1.0), ("d2", 0.333333)]


def test_dates_are_read_again_only_when_the_metadata_is_another() -> None:
    found = {"d0": {"date": "2026-11-01"}, "d1": {"date": "2026-11-15"}}
    stage = Recency(lambda: found, half_life=14, weight=1)
    assert [hit.score for hit in stage.apply("pool", hits_of(1.0, 1.0), k=2)] == pytest.approx([2.0, 1.5])
    kept = stage._current()
    assert stage._current() is kept
    found = found | {"d2": {"date": "2026-11-29"}}
    assert [hit.score for hit in stage.apply("pool", hits_of(1.0, 1.0), k=2)] == pytest.approx([1.5, 1.25])


@pytest.mark.parametrize(
    "options", [{"half_life": 0}, {"half_life": math.inf}, {"weight": -1}, {"weight": "much"}, {"now": "today"}, {"depth": 1.5}]
)
def test_recency_refuses_options_that_cannot_be(options: dict[str, Any]) -> None:
    with raises(InputError) as messages:
        Recency(facts_of(d0=NOW), **options)
    assert messages[0].startswith(f"recency cannot have {next(iter(options))}={next(iter(options.values()))!r}")


# Tier


def test_tier_multiplies_by_the_boost_of_the_document() -> None:
    stage = Tier(facts_of(d0="archive", d1="normal", d2="core", d3="core", d4=None), boosts={"core": 1.5, "archive": 0.5})
    answer = stage.apply("pool", hits_of(10.0, 8.0, 6.0, 1.0, 1.0), k=3)
    assert [(hit.doc_id, hit.score) for hit in answer] == [("d2", pytest.approx(0.9)), ("d1", 0.8), ("d0", 0.5)]


def test_tier_knows_numbers_and_truth_values_by_their_text() -> None:
    stage = Tier(facts_of(d0=1, d1=True), boosts={"1": 3.0, "true": 2.0})
    assert [hit.score for hit in stage.apply("pool", hits_of(1.0, 1.0), k=2)] == [3.0, 2.0]


def test_a_document_of_several_tiers_is_an_error() -> None:
    with raises(InputError) as messages:
        Tier(facts_of(d0=["core", "archive"]), boosts={"core": 2.0}).apply("pool", hits_of(1.0), k=1)
    assert "'d0'" in messages[0]


@pytest.mark.parametrize("boosts", [{}, {"core": -1}, {"core": "high"}, {"core": math.nan}], ids=repr)
def test_tier_refuses_boosts_that_cannot_be(boosts: dict[str, Any]) -> None:
    with raises(InputError):
        Tier(facts_of(d0="core"), boosts=boosts)


# Threshold and top


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"min": 6}, 3),
        ({"min": 6.1}, 2),
        ({"min": 11}, 0),
        ({"min": -1}, 5),
        ({"relative": 0.6}, 3),
        ({"relative": 1}, 1),
        ({"relative": 0}, 5),
        ({"gap": 0.5}, 3),  # 6 → 2 is a fall by two thirds
        ({"gap": 0.7}, 5),
        ({"gap": 0.24}, 2),  # 8 → 6 is a fall by a quarter
        ({"gap": 0.25}, 3),  # and no larger than a quarter
        ({"relative": 0.1, "min": 8}, 2),
        ({"relative": 0.9, "gap": 0.5}, 1),
    ],
    ids=str,
)
def test_threshold_keeps_what_is_good_enough(options: dict[str, float], kept: int) -> None:
    hits = hits_of(10.0, 8.0, 6.0, 2.0, 1.0)
    assert ids_of(Threshold(**options).apply("pool", hits, k=10)) == ids_of(hits)[:kept]


@given(
    falling,
    st.integers(1, 12),
    st.one_of(
        st.builds(Threshold, min=st.floats(-10, 10)),
        st.builds(Threshold, relative=st.floats(0, 1)),
        st.builds(Threshold, gap=st.floats(0.01, 1), relative=st.none() | st.floats(0, 1)),
    ),
)
def test_a_larger_k_only_lengthens_what_a_threshold_keeps(scores: list[float], k: int, stage: Threshold) -> None:
    hits = hits_of(*scores)
    everything = ids_of(stage.apply("pool", hits, k=100))
    assert everything == ids_of(hits)[: len(everything)]
    assert ids_of(stage.apply("pool", hits[: stage.depth(k)], k=k)) == everything[:k]


@given(falling, st.floats(0, 1), st.sampled_from([0.25, 2.0, 1024.0]))
def test_a_share_does_not_care_about_the_scale_of_scores(scores: list[float], share: float, scale: float) -> None:
    scores = [math.floor(score) for score in scores]  # times a power of two, these stay exact
    for stage in (Threshold(relative=round(share, 2)), Threshold(gap=round(share, 2) or 1)):
        small = ids_of(stage.apply("pool", hits_of(*map(float, scores)), k=100))
        assert ids_of(stage.apply("pool", hits_of(*(score * scale for score in scores)), k=100)) == small


def test_a_fall_from_0_to_below_ends_the_list() -> None:
    assert len(Threshold(gap=1).apply("pool", hits_of(1.0, 0.0, 0.0, -1.0, -2.0), k=9)) == 3


@pytest.mark.parametrize("options", [{"min": 0.5}, {"relative": 0.5}, {"gap": 0.5}], ids=str)
def test_threshold_refuses_hits_without_scores(options: dict[str, float]) -> None:
    with raises(InputError) as messages:
        Threshold(**options).apply("pool", hits_of(2.0, math.nan), k=2)
    assert "gives no scores" in messages[0]
    assert "'d1'" in messages[0]


@pytest.mark.parametrize("options", [{"relative": 0.5}, {"gap": 0.5}], ids=str)
def test_a_share_of_a_negative_best_is_refused(options: dict[str, float]) -> None:
    with raises(InputError) as messages:
        Threshold(**options).apply("pool", hits_of(-2.0, -3.0), k=2)
    assert "-2" in messages[0]
    assert ids_of(Threshold(min=-2.5).apply("pool", hits_of(-2.0, -3.0), k=2)) == ["d0"]


@pytest.mark.parametrize(
    "options", [{}, {"relative": 1.1}, {"relative": -0.1}, {"gap": 0}, {"gap": 2}, {"min": math.nan}], ids=str
)
def test_threshold_refuses_options_that_cannot_be(options: dict[str, float]) -> None:
    with raises(InputError):
        Threshold(**options)


def test_top_cuts_by_number_also_where_there_are_no_scores() -> None:
    hits = hits_of(math.nan, math.nan, math.nan)
    assert ids_of(Top(2).apply("pool", hits, k=10)) == ["d0", "d1"]
    assert ids_of(Top(2).apply("pool", hits, k=1)) == ["d0"]
    assert ids_of(Top(9).apply("pool", hits, k=10)) == ["d0", "d1", "d2"]


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_top_refuses_what_is_no_number_of_hits(n: Any) -> None:
    with raises(InputError):
        Top(n)


@pytest.mark.parametrize("stage", ["mmr", "recency", "tier"])
@pytest.mark.parametrize("k", [1, 3, 5, 8, 20])
def test_asking_for_more_changes_no_place(stage: str, k: int) -> None:
    hits = hits_of(*(30.0 - n for n in range(30)))
    facts = facts_of(**{hit.doc_id: f"2026-{1 + n % 12:02}-01" for n, hit in enumerate(hits)})
    tiers = facts_of(**{hit.doc_id: "core" if n % 3 else "archive" for n, hit in enumerate(hits)})
    made = {
        "mmr": lambda: Mmr(random_vectors, depth=5),
        "recency": lambda: Recency(facts, weight=2, depth=5),
        "tier": lambda: Tier(tiers, boosts={"core": 3.0}, depth=5),
    }[stage]()
    everything = made.apply("pool", hits, k=30)
    assert made.apply("pool", hits[: made.depth(k)], k=k) == everything[:k]
    assert len(everything) == 30


def test_a_boost_lifts_the_last_of_two() -> None:
    stage = Tier(facts_of(d0="normal", d1="core"), boosts={"core": 10.0})
    assert ids_of(stage.apply("pool", hits_of(10.0, 2.0), k=2)) == ["d1", "d0"]
