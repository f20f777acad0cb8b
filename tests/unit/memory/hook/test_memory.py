from __future__ import annotations

import json
from typing import Any

import pytest

from ringtrue.memory.hook.memory import Memory, MemoryFault, as_record, changed, from_record

WHOLE: dict[str, Any] = {
    "schema_version": "1.0",
    "category": "runbook",
    "id": "restart-the-queue",
    "title": "Restart the queue",
    "created_at": "2026-01-02T03:04:05Z",
    "updated_at": "2026-02-03T04:05:06+01:00",
    "tags": ["queue", "on-call"],
    "record_status": "retired",
    "importance_tier": "critical",
    "confidence": 0.25,
    "related_files": ["src/queue.py"],
    "trigger_phrases": ["queue is stuck"],
    "supersedes": ["older"],
    "links": {"caused_by": ["a"], "leads_to": ["b", "c"], "supports": ["d"], "contradicts": ["e"], "blocks": ["f"]},
    "spec_folder": "specs/7",
    "owner": {"team": "payments"},
    "retired_reason": "replaced",
    "content": {"steps": ["stop", {"then": "start"}], "trigger": "stuck", "unknown field": 5, "notes": None},
}


def test_a_memory_read_and_written_again_has_lost_nothing() -> None:
    again = as_record(from_record(WHOLE))
    assert again == WHOLE
    assert list(again)[-1] == "content"
    assert list(again["content"]) == list(WHOLE["content"])
    assert as_record(from_record(json.loads(json.dumps(again)))) == again


def test_a_later_schema_version_stays_what_it_is() -> None:
    assert as_record(from_record({**WHOLE, "schema_version": "2.3"}))["schema_version"] == "2.3"


def test_links_beside_the_other_fields_join_those_of_the_object() -> None:
    record = {"id": "x", "category": "decision", "title": "X", "supports": ["b"], "links": {"supports": ["a"]}}
    assert from_record(record).links == {"supports": ("a", "b")}
    assert from_record({**record, "links": None}).links == {"supports": ("b",)}


def test_a_supersedes_of_one_text_is_a_list_of_one() -> None:
    assert from_record({**WHOLE, "supersedes": "older"}).supersedes == ("older",)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": None}, "id is missing"),
        ({"id": " "}, "id is"),
        ({"title": 5}, "title is 5"),
        ({"category": "idea"}, "category is 'idea'; write one of decision"),
        ({"content": ["x"]}, "content is"),
        ({"tags": "queue"}, "tags is 'queue'; write a list of texts"),
        ({"tags": ["a", 1]}, "tags is"),
        ({"links": ["a"]}, "links is"),
        ({"links": {"supports": "a"}}, "supports is 'a'"),
        ({"supports": "a"}, "supports is 'a'"),
        ({"confidence": 2}, "confidence is 2"),
        ({"confidence": True}, "confidence is True"),
        ({"record_status": "gone"}, "record_status is 'gone'"),
    ],
)
def test_what_makes_a_memory_unusable_is_told_with_its_cure(change: dict[str, Any], told: str) -> None:
    with pytest.raises(MemoryFault, match=told):
        from_record({**WHOLE, **change})
    with pytest.raises(MemoryFault, match="not a memory"):
        from_record([WHOLE])


def test_a_changed_memory_leaves_the_old_one_as_it_was() -> None:
    old = from_record(WHOLE)
    new = changed(old, status="active", content={"trigger": "slow"})
    assert (new.status, new.body, new.id) == ("active", "slow", old.id)
    assert old == from_record(WHOLE)
    assert isinstance(new, Memory)
    assert new != old
