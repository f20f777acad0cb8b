"""Every problem of a record is listed."""

from __future__ import annotations

import pytest

from ringtrue.golden.formats.query_lines import MEMORY, MEMORY_FACTS
from ringtrue.memory.hook.memory import FIELDS
from ringtrue.memory.record_check import kebab, problems

GOOD = {
    "schema_version": "1.0", "category": "decision", "id": "good", "title": "Good", "created_at": "2026-03-01T12:00:00Z",
    "updated_at": "2026-03-02", "tags": ["x"], "content": {"decision": "yes"},
}  # fmt: skip


def test_a_good_record_has_no_problem() -> None:
    assert problems(GOOD) == []
    assert problems(GOOD, "/memory/decision/good.json") == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": None}, "id is missing"),
        ({"id": "-x"}, "id '-x' is not kebab-case"),
        ({"title": "a\u200bb"}, "never shown; write it as 'ab'"),
        ({"category": "decisoin"}, "did you mean 'decision'"),
        ({"record_status": "gone"}, "record_status is 'gone'"),
        ({"importance_tier": 3}, "importance_tier is 3"),
        ({"confidence": 7}, "confidence is 7"),
        ({"confidence": True}, "confidence is True"),
        ({"tags": "auth"}, "tags is 'auth'; write a list of texts"),
        ({"content": "text"}, "content is 'text'"),
        ({"content": {}}, "content is empty"),
        ({"content": {"rule": "x"}}, "content.rule is not a field of a decision"),
        ({"created_at": ""}, "created_at is missing"),
        ({"created_at": "yesterday"}, "created_at is 'yesterday'"),
        ({"updated_at": "2025-01-01"}, "updated_at is before created_at"),
        ({"links": ["x"]}, "links is ['x']"),
        ({"links": {"leeds_to": ["x"]}}, "did you mean 'leads_to'"),
        ({"links": {"leads_to": ["good"]}}, "names the memory itself"),
        ({"supersedes": "good"}, "supersedes names the memory itself"),
        ({"schema_version": "9"}, "schema_version is '9'"),
        ({"supersedes": 3}, "supersedes is 3"),
    ],
)
def test_each_problem_is_named(change, says) -> None:
    found = problems({**GOOD, **change})
    assert [problem for problem in found if says in problem], found


def test_all_problems_are_listed_not_only_the_first() -> None:
    assert len(problems({"id": "A", "category": "x", "title": "", "content": {}})) >= 5


@pytest.mark.parametrize("record", [None, [], "text", 3])
def test_what_is_no_object_is_one_problem(record) -> None:
    assert len(problems(record)) == 1


def test_a_file_under_another_name_or_in_another_folder_is_a_problem() -> None:
    assert "is called other.json" in problems(GOOD, "/memory/decision/other.json")[0]
    assert "lies in runbook/" in problems(GOOD, "/memory/runbook/good.json")[0]


def test_any_content_takes_the_fields_of_others() -> None:
    assert problems({**GOOD, "content": {"notes": "x"}}, any_content=True) == []


def test_ids_are_cut_between_words() -> None:
    name = kebab("word " * 40)
    assert len(name) <= 80
    assert name.endswith("word")
    assert kebab("Größe über alles") == "groe-uber-alles"
    assert kebab("日本") == ""


def test_the_fields_of_a_memory_are_those_the_golden_loader_reads() -> None:
    assert set(FIELDS) == {*MEMORY, *MEMORY_FACTS}
