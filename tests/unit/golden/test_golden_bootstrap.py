"""A known-item set from the documents' names, rewritten without touching what a person did."""

from __future__ import annotations

from dataclasses import replace

from ringtrue.golden import known_item, validate
from ringtrue.records import Document, GoldenSet, Judgment, Query

DOCUMENTS = (
    Document("d1", "x", "Refund policy"),
    Document("d2", "y", "refund  POLICY "),
    Document("d3", "z", "Pool hours"),
    Document("d4", "no title"),
)


def rows(golden: GoldenSet) -> set[tuple[str, str, str | None]]:
    texts = {query.query_id: query.text for query in golden.queries}
    return {(texts[j.query_id], j.doc_id, j.source) for j in golden.judgments}


def test_g7a_each_name_is_a_query_for_all_documents_that_bear_it() -> None:
    found = known_item(DOCUMENTS)
    assert rows(found.golden) == {
        ("Refund policy", "d1", "bootstrap"),
        ("Refund policy", "d2", "bootstrap"),
        ("Pool hours", "d3", "bootstrap"),
    }
    assert found.shared == (("d1", "d2"),)
    assert found.unnamed == ("d4",)
    assert found.golden.profile == "known-item"
    assert found.golden.provisional


def test_g7a_rerun_is_idempotent_and_order_does_not_matter() -> None:
    first = known_item(DOCUMENTS).golden
    again = known_item(DOCUMENTS, existing=first)
    assert again.golden == first
    assert (again.written, again.kept) == (2, 0)
    assert rows(known_item(DOCUMENTS[::-1]).golden) == {
        (text.strip() if text != "Refund policy" else "refund  POLICY", doc, source) for text, doc, source in rows(first)
    }


def test_g7a_rerun_rewrites_its_own_rows_when_documents_change() -> None:
    first = known_item(DOCUMENTS).golden
    changed = (replace(DOCUMENTS[2], title="Swimming pool"), *DOCUMENTS[:2])
    assert "Pool hours" not in {query.text for query in known_item(changed, existing=first).golden.queries}


def test_g7a_rows_of_a_person_are_never_touched() -> None:
    first = known_item(DOCUMENTS).golden
    confirmed = replace(
        first,
        judgments=tuple(replace(j, source="chair") if j.doc_id == "d1" else j for j in first.judgments),
        queries=(*first.queries, Query("own", "pool hours"), Query("cited", "spa")),
    )
    confirmed = replace(
        confirmed,
        judgments=(*confirmed.judgments, Judgment("own", "d4", 1, "manual"), Judgment("cited", "d4", 1, "citation")),
    )
    found = known_item((Document("d9", "n", "Brand new"),), existing=confirmed)
    assert rows(found.golden) == {
        ("Refund policy", "d1", "chair"),
        ("Refund policy", "d2", "bootstrap"),
        ("pool hours", "d4", "manual"),
        ("spa", "d4", "citation"),
        ("Brand new", "d9", "bootstrap"),
    }
    assert (found.kept, found.written) == (3, 1)
    assert known_item((Document("d3", "z", "Pool hours"),), existing=confirmed).written == 0, "a person asks it already"


def test_g7a_name_can_be_something_else_than_the_title() -> None:
    found = known_item(DOCUMENTS[:1], name=lambda document: f"case {document.doc_id}", id="cases")
    assert (found.golden.id, found.golden.queries[0].text) == ("cases", "case d1")


def test_trap_18_bootstrapped_titles_are_not_called_copied() -> None:
    document = Document("d", "Terms for groups and events apply.", "Terms for groups and events")
    assert not [p for p in validate(known_item([document]).golden).problems if p.rule == "not-copied"]
