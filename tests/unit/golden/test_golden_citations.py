"""A result that a final document cites later is right for the queries that showed it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from ringtrue.errors import InputError
from ringtrue.golden import Citation, cited, read_citations, rewrite
from ringtrue.records import GoldenSet, Judgment, Query


@dataclass(frozen=True)
class Asks:
    query_id: str
    query: str
    result_ids: tuple[str, ...]
    session_id: str | None = None
    created_at: str = "2026-03-01T10:00:00.000000Z"
    intent: str | None = None


def rows(*args, **options) -> dict[str, dict[str, int]]:
    return {row.text: dict(row.grades) for row in cited(*args, **options).rows}


def test_g7b_a_cited_result_gets_grade_three_for_every_spelling_that_showed_it() -> None:
    searches = [Asks("s1", "Marsh Quay levy?", ("a", "b")), Asks("s2", "marsh quay  levy", ("c", "b", "d"))]
    found = cited(searches, [Citation("b", "2026-04-01"), Citation("d", "2026-04-01"), Citation("z", "2026-04-01")])
    assert [(row.text, dict(row.grades)) for row in found.rows] == [("Marsh Quay levy?", {"b": 3, "d": 3})]
    assert (found.searches, found.unseen) == (2, ("z",))


def test_g7b_only_what_is_cited_later_counts() -> None:
    search = Asks("s1", "levy", ("a",), created_at="2026-03-01T10:00:00Z")
    assert rows([search], [Citation("a", "2026-03-01T09:59:59Z")]) == {}
    assert rows([search], [Citation("a", "2026-03-01T12:00:00+01:00")]) == {"levy": {"a": 3}}
    assert rows([search], [Citation("a")]) == {"levy": {"a": 3}}


def test_g7b_a_known_search_or_session_is_the_only_one_that_led_there() -> None:
    searches = [Asks("s1", "levy", ("a",), "case-1"), Asks("s2", "port dues", ("a",), "case-2"), Asks("s3", "quay", ("a",))]
    assert rows(searches, [Citation("a", session_id="case-2")]) == {"port dues": {"a": 3}}
    assert rows(searches, [Citation("a", query_id="s1", session_id="case-2")]) == {"levy": {"a": 3}}
    assert set(rows(searches, [Citation("a")])) == {"levy", "port dues", "quay"}


def test_g7b_personal_data_stays_out_and_is_counted() -> None:
    found = cited([Asks("s1", "files of a@b.example", ("a",))], [Citation("a")], screen=lambda text: "@" not in text)
    assert (found.rows, found.screened, found.unseen) == ((), 1, ())


def test_g7b_a_rerun_rewrites_its_own_rows_and_no_row_of_a_person() -> None:
    searches = [Asks("s1", "levy", ("a", "b")), Asks("s2", "port dues", ("a",)), Asks("s3", "quay", ("b",))]
    base = GoldenSet(
        "gold",
        "1.0.0",
        (Query("chair-1", "Port dues"), Query("known-1", "quay")),
        (Judgment("chair-1", "c", 3, "chair"), Judgment("known-1", "q", 1, "bootstrap")),
    )
    made = cited(searches, [Citation("a"), Citation("b")]).rows
    first = rewrite(base, made, source="citation", prefix="cited")
    assert first.confirmed == ("port dues",)
    said = {(j.query_id, j.doc_id, j.grade, j.source) for j in first.golden.judgments}
    levy = next(query.query_id for query in first.golden.queries if query.text == "levy")
    assert said == {
        ("chair-1", "c", 3, "chair"),
        ("known-1", "q", 1, "bootstrap"),
        ("known-1", "b", 3, "citation"),
        (levy, "a", 3, "citation"),
        (levy, "b", 3, "citation"),
    }
    assert rewrite(first.golden, made, source="citation", prefix="cited").golden == first.golden
    fewer = rewrite(first.golden, cited(searches, [Citation("a")]).rows, source="citation", prefix="cited").golden
    assert {(j.query_id, j.doc_id) for j in fewer.judgments} == {("chair-1", "c"), ("known-1", "q"), (levy, "a")}
    none = rewrite(first.golden, (), source="citation", prefix="cited").golden
    assert none == base


def test_g7b_a_row_that_a_person_confirmed_afterwards_is_not_touched_any_more() -> None:
    made = cited([Asks("s1", "levy", ("a", "b"))], [Citation("a"), Citation("b")]).rows
    first = rewrite(GoldenSet("gold", "1.0.0", (), ()), made, source="citation", prefix="cited").golden
    assert first.provisional
    seen = replace(first, judgments=(replace(first.judgments[0], grade=1, source="chair"), *first.judgments[1:]))
    again = rewrite(seen, made, source="citation", prefix="cited")
    assert again.golden == seen
    assert again.confirmed == ("levy",)
    reworded = replace(seen, queries=(replace(seen.queries[0], text="the levy on marshes"),))
    assert rewrite(reworded, made, source="citation", prefix="cited").golden == reworded


def test_citations_are_read_from_csv_and_json_lines(tmp_path) -> None:
    table, lines = tmp_path / "cited.csv", tmp_path / "cited.jsonl"
    table.write_text("doc_id,cited_at,cited_by\na,2026-04-01,ruling 7\nb,,\n")
    lines.write_text('{"doc_id": "a", "session_id": "case-1"}\n')
    assert read_citations(table) == (Citation("a", "2026-04-01", cited_by="ruling 7"), Citation("b"))
    assert read_citations(lines) == (Citation("a", session_id="case-1"),)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("doc_id,cited_at\na,soon\n", "cited.csv:2: field 'cited_at': 'soon' is not a time"),
        ("doc_id,cited_at\n,2026-01-01\n", "cited.csv:2: the column 'doc_id' is missing or empty"),
        ("doc_id,cited_on\na,2026-01-01\n", "'cited_on' is not a column of citations; write 'cited_by' or 'cited_at'"),
    ],
)
def test_a_wrong_row_is_named_with_its_place(tmp_path, content, says) -> None:
    path = tmp_path / "cited.csv"
    path.write_text(content)
    with pytest.raises(InputError) as problem:
        read_citations(path)
    assert says in str(problem.value)
