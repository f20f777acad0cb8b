"""Versions are content-addressed and semantic, and a diff says what changed and by whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import Version, content_hash, corpus_hash, diff, parse_version, version_name
from ringtrue.records import Document, GoldenSet, Judgment, Query


@pytest.mark.parametrize("text", ["1.2.0", "golden-dataset-v1.2.0", "v1.2.0"])
def test_version_is_read_with_or_without_a_name(text: str) -> None:
    version = parse_version(text)
    assert (version.major, version.minor, version.patch) == (1, 2, 0)
    assert version.number == "1.2.0"


@pytest.mark.parametrize("text", ["1.2", "1.02.0", "one", "", "1.2.0-rc1", "१.२.०", "9" * 10 + ".0.0", "9" * 5_000 + ".0.0"])
def test_other_texts_are_no_version(text: str) -> None:
    with pytest.raises(InputError, match=r"write major\.minor\.patch"):
        parse_version(text)


def test_versions_have_an_order_and_successors() -> None:
    assert parse_version("1.9.0") < parse_version("1.10.0")
    assert [Version(1, 2, 3).bump(part).number for part in ("major", "minor", "patch", "none")] == [
        "2.0.0",
        "1.3.0",
        "1.2.4",
        "1.2.3",
    ]


def test_name_of_a_version(golden: GoldenSet) -> None:
    assert version_name(golden) == "inn-v1.2.0"
    assert str(parse_version(version_name(golden))) == "inn-v1.2.0"


def test_content_hash_ignores_order_names_and_words(golden: GoldenSet) -> None:
    shuffled = replace(
        golden,
        id="other",
        version="9.0.0",
        description="words",
        queries=golden.queries[::-1],
        judgments=golden.judgments[::-1],
        documents=golden.documents[::-1],
    )
    assert content_hash(shuffled) == content_hash(golden)


@pytest.mark.parametrize(
    "change",
    [
        {"relevance_threshold": 1},
        {"scale": (0, 4)},
        {"scope": "tenant"},
        {"queries": (Query("q1", "other words"),)},
        {"documents": (Document("pets", "x"),)},
        {"judgments": (Judgment("q1", "pets", 2),)},
    ],
)
def test_content_hash_sees_everything_that_can_change_a_number(golden: GoldenSet, change: dict[str, object]) -> None:
    assert content_hash(replace(golden, **change)) != content_hash(golden)  # type: ignore[arg-type]


def test_hash_keeps_neighbouring_fields_apart() -> None:
    assert corpus_hash([Document("a", "bc")]) != corpus_hash([Document("ab", "c")])
    assert corpus_hash([Document("a", "x", metadata={"n": 1})]) != corpus_hash([Document("a", "x", metadata={"n": True})])


def test_diff_names_queries_documents_and_judgments_with_grades_and_author(golden: GoldenSet) -> None:
    new = replace(
        golden,
        queries=(replace(golden.queries[0], text="may I bring a dog"), golden.queries[1], Query("q4", "new")),
        documents=(replace(golden.documents[0], title="Animals"), golden.documents[1], Document("spa", "x")),
        judgments=(
            Judgment("q1", "pets", 2, "chair", {"annotator": "night desk"}),
            Judgment("q2", "boiler", 2),
            Judgment("q2", "pets", 1),
            Judgment("q4", "spa", 3, "chair"),
        ),
    )
    found = diff(golden, new)
    assert (found.queries.added, found.queries.removed, found.queries.changed) == (("q4",), ("q3",), ("q1",))
    assert (found.documents.added, found.documents.removed, found.documents.changed) == (("spa",), ("menu",), ("pets",))
    (changed,) = found.judgments_changed
    assert (changed.query_id, changed.doc_id, changed.old, changed.new, changed.by) == (
        "q1",
        "pets",
        3,
        2,
        "night desk",
    )
    assert [(c.doc_id, c.old, c.new, c.by) for c in found.judgments_added] == [("spa", None, 3, "chair")]
    assert [(c.doc_id, c.old, c.new, c.by) for c in found.judgments_removed] == [("boiler", 0, None, "manual")]
    assert found.suggested == "major"


def test_suggested_bump_follows_from_what_changed(golden: GoldenSet) -> None:
    def bump(**changes: object) -> str:
        return diff(golden, replace(golden, **changes)).suggested  # type: ignore[arg-type]

    assert bump() == "none"
    assert bump(description="new words") == "patch"
    assert bump(queries=(*golden.queries, Query("q9", "x"))) == "minor"
    assert bump(judgments=golden.judgments[:-1]) == "minor"
    assert bump(queries=golden.queries[:-1]) == "major"
    assert bump(documents=golden.documents[:-1]) == "major"
    assert bump(relevance_threshold=1) == "major"


def test_another_corpus_elsewhere_shows_by_its_hash(golden: GoldenSet) -> None:
    old, new = (replace(golden, documents=(), corpus_hash=text) for text in ("aa", "bb"))
    assert diff(old, new).fields["corpus_hash"] == ("aa", "bb")
    assert diff(old, new).suggested == "major"
