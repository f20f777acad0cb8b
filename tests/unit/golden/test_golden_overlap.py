"""Trap 18: golden queries made from the documents' own words."""

from __future__ import annotations

import pytest

from ringtrue.golden import content_words, is_copied, overlap, summarise
from ringtrue.golden.likeness import shared_run
from ringtrue.records import Document, GoldenSet, Judgment, Query

TEXT = "Guests who cancel within forty eight hours of arrival pay for the first night."


def test_trap_18_content_words_meet_in_plural_and_verb_forms() -> None:
    assert content_words("The charges") == content_words("charging") == content_words("charged") == ["charg"]
    assert content_words("policies, policy") == ["policy", "policy"]
    assert content_words("Is it of the?") == []


@pytest.mark.parametrize(
    ("query", "share"),
    [("arriving guest cancels hours", 0.75), ("guest refund", 0.5), ("dog", 0.0), ("what is it", None)],
)
def test_trap_18_overlap_is_the_share_of_the_querys_words(query: str, share: float | None) -> None:
    assert overlap(query, TEXT) == share


def test_trap_18_longest_run_is_found_wherever_it_begins() -> None:
    assert shared_run("do guests who cancel within two days pay for the first night", TEXT) == [
        "pay",
        "for",
        "the",
        "first",
        "night",
    ]


def test_trap_18_run_is_not_made_of_scattered_words() -> None:
    assert shared_run("the hours of night", "night of hours the") == ["the"]


@pytest.mark.parametrize(
    ("query", "copied"),
    [
        ("guests who cancel within forty eight hours", True),
        ("which guests who cancel within", True),
        ("guests who cancel", False),
        ("what does a late cancellation cost me", False),
        ("why must guests who cancel within", False),
    ],
)
def test_trap_18_copied_needs_four_words_and_four_fifths_in_one_run(query: str, copied: bool) -> None:
    assert (is_copied(Query("q", query), Document("d", TEXT)) is not None) is copied


def test_trap_18_title_is_exempt_in_known_item_search_only() -> None:
    document = Document(
        "d", "Saltmarsh Quay Housing v. Strand. The appeal is dismissed with costs.", "Saltmarsh Quay Housing v. Strand"
    )
    by_name = Query("q", "saltmarsh quay housing v strand")
    assert is_copied(by_name, document) is not None
    assert is_copied(by_name, document, title_exempt=True) is None
    assert is_copied(Query("q", "the appeal is dismissed with costs"), document, title_exempt=True) is not None


def test_trap_18_summary_takes_the_best_gold_document() -> None:
    golden = GoldenSet(
        "s",
        "1.0.0",
        (
            Query("q1", "guest arrival"),
            Query("q2", "spa opening"),
            Query("q3", "pay for the first night"),
            Query("q4", "?"),
        ),
        (
            Judgment("q1", "a", 1),
            Judgment("q1", "b", 1),
            Judgment("q2", "a", 1),
            Judgment("q2", "b", 0),
            Judgment("q3", "a", 1),
        ),
        (Document("a", TEXT), Document("b", "Spa arrival")),
    )
    summary = summarise(golden)
    assert summary.queries == 3
    assert summary.mean == pytest.approx(2 / 3)
    assert summary.median == 1.0
    assert summary.share_high == pytest.approx(2 / 3)
    assert [(copy.query_id, copy.doc_id, copy.share) for copy in summary.copied] == [("q3", "a", 1.0)]


def test_trap_8_summary_of_nothing_is_unknown() -> None:
    assert summarise(GoldenSet("s", "1.0.0", (), ())).mean is None
