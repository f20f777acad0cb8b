"""Queries made from documents, of which at most 40 % of the content words are the document's."""

from __future__ import annotations

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import OfflineGenerator, content_words, generate, is_copied, load, overlap, rewrite, shipped, validate
from ringtrue.golden.generating import synonyms
from ringtrue.records import Document, GoldenSet, Query

DOCUMENTS = (
    Document("pets", "Dogs are welcome on the ground floor. A fee of 15 applies to each animal per night.", "Pets at the inn"),
    Document("boiler", "When the boiler fails, bleed the valve and restart the pump.", "Boiler trouble"),
    Document("wifi", "The network password is printed on the card in each room.", "Wireless network"),
)


class Saying:
    """A generator that says what it was told."""

    name = "saying"

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def queries(self, document: Document, *, count: int) -> tuple[str, ...]:
        return self.texts


def told(document: Document) -> str:
    return f"{document.title}\n{document.text}"


@pytest.mark.parametrize("name", shipped())
def test_trap_18_offline_queries_keep_the_limit_on_every_shipped_document(name) -> None:
    documents = load(name).documents
    made = generate(documents, OfflineGenerator(documents), count=2)
    assert made.refused == ()
    assert {query.doc_id for query in made.made} | set(made.without) == {document.doc_id for document in documents}
    assert len(made.without) <= 0.02 * len(documents)
    by_id = {document.doc_id: document for document in documents}
    for query in made.made:
        share = overlap(query.text, told(by_id[query.doc_id]))
        assert share is not None
        assert share == query.overlap <= 0.4
        assert share > 0, "a query without one word of its document asks for anything"
        assert is_copied(Query("q", query.text), by_id[query.doc_id]) is None
    texts = [query.text for query in made.made]
    assert len(set(texts)) > 0.98 * len(texts), "queries should tell documents apart"


def test_g7d_the_offline_generator_says_the_same_every_time_whatever_the_order() -> None:
    first = generate(DOCUMENTS, OfflineGenerator(DOCUMENTS)).made
    assert {q.text for q in first} == {q.text for q in generate(DOCUMENTS[::-1], OfflineGenerator(DOCUMENTS[::-1])).made}


def test_g7d_offline_queries_hold_words_that_tell_the_document_apart() -> None:
    shared = "Terms apply. Ask at the desk for anything else that you may need."
    documents = [
        Document(f"d{n}", f"{shared} The {thing} opens in May.") for n, thing in enumerate(["sauna", "orchard", "chapel"])
    ]
    for query, thing in zip(generate(documents, OfflineGenerator(documents)).made, ["sauna", "orchard", "chapel"], strict=True):
        assert thing in content_words(query.text)


def test_g7d_a_limit_may_be_stricter() -> None:
    made = generate(DOCUMENTS, OfflineGenerator(DOCUMENTS, limit=0.2), limit=0.2)
    assert made.refused == ()
    assert 0 < made.largest_overlap <= 0.2


def test_g7d_whatever_a_generator_says_the_limit_is_enforced_and_refusals_shown() -> None:
    made = generate(DOCUMENTS[:1], Saying("dogs on the ground floor", "where can hounds sleep", "what is it"), count=3)
    assert [(query.text, query.overlap) for query in made.made] == [("where can hounds sleep", 0.0)]
    assert [(query.text, query.overlap) for query in made.refused] == [("dogs on the ground floor", 1.0), ("what is it", None)]
    assert generate(DOCUMENTS[:1], Saying("dogs on the ground floor", "hounds")).made == (), "one was asked for, the first"


def test_g7d_a_document_without_words_gets_no_query_and_is_named() -> None:
    documents = [*DOCUMENTS, Document("empty", ""), Document("signs", "12 34 !!!")]
    made = generate(documents, OfflineGenerator(documents))
    assert made.without == ("empty", "signs")
    assert len(made.made) == 3


def test_g7d_other_languages_and_half_characters_do_no_harm() -> None:
    documents = [
        Document("de", "Die Rückerstattung erfolgt binnen vierzehn Tagen."),
        Document("x\ud800", "broken \ud800 character pairs"),
    ]
    made = generate(documents, OfflineGenerator(documents))
    assert made.largest_overlap is not None
    assert made.largest_overlap <= 0.4


def test_g7d_a_query_made_from_two_documents_answers_with_both() -> None:
    made = generate(DOCUMENTS[:2], Saying("something quite different"))
    (row,) = made.rows(3)
    assert row.grades == {"pets": 3, "boiler": 3}
    assert row.metadata == {"generator": "saying"}


def test_g7d_a_rerun_is_idempotent_and_the_set_stays_provisional() -> None:
    made = generate(DOCUMENTS, OfflineGenerator(DOCUMENTS))
    first = rewrite(GoldenSet("made", "0.1.0", (), ()), made.rows(3), source="synthetic", prefix="made", documents=DOCUMENTS)
    again = rewrite(first.golden, made.rows(3), source="synthetic", prefix="made", documents=DOCUMENTS)
    assert again.golden == first.golden
    assert first.golden.provisional
    assert not [p for p in validate(first.golden).problems if p.rule == "not-copied"]


@pytest.mark.parametrize(("options", "says"), [({"count": 0}, "ask for 1 or more"), ({"limit": 40}, "not a share")])
def test_impossible_options_are_refused(options, says) -> None:
    with pytest.raises(InputError, match=says):
        generate(DOCUMENTS, OfflineGenerator(DOCUMENTS), **options)


def test_the_list_of_synonyms_is_one_way_and_never_names_the_word_itself() -> None:
    found = synonyms()
    assert "hound" in found["dog"]
    assert "hound" not in found
    assert len(found) > 400
    assert all(word not in map(str, others) for word, others in found.items())
