from __future__ import annotations

import pytest

from ringtrue.recall.memory import MemoryFault
from ringtrue.recall.notes import from_note, front_matter


def test_a1_a_note_of_an_agent_is_a_memory() -> None:
    text = """---
name: "Prefers small commits"
description: One change a commit
metadata:
  type: feedback
  modified: 2026-08-01T10:00:00Z
tags:
  - git
  - 'review'
---
# Commits

Small ones: they are read.
"""
    note = from_note(text, "/home/someone/.claude/projects/app/memory/commits.md")
    assert (note.id, note.category, note.title) == ("note-memory-commits", "preference", "Prefers small commits")
    assert (note.tags, note.updated_at, note.source) == (("git", "review"), "2026-08-01T10:00:00Z", "note")
    assert note.body.startswith("One change a commit\n# Commits")


def test_a1_a_note_without_front_matter_takes_its_heading_or_its_name() -> None:
    assert from_note("# Build ##\n\nmake all", "/n/b.md").title == "Build"
    assert from_note("make all", "/n/how to build.md").id == "note-n-how-to-build"
    assert from_note("---\nno end: here\ntext", "/n/b.md").body == "---\nno end: here\ntext"


def test_a1_unknown_values_of_a_note_are_left_at_the_default() -> None:
    note = from_note("---\ncategory: idea\ntags: a, b\n---\ntext", "/n/b.md")
    assert (note.category, note.status, note.tags) == ("decision", "active", ("a", "b"))


@pytest.mark.parametrize(
    ("text", "path", "category"),
    [
        ("---\ncategory: Tech Debt\n---\ntext", "/n/b.md", "tech_debt"),
        ("---\ncategory: nonsense\ntype: feedback\n---\ntext", "/n/b.md", "preference"),
        ("---\ntype: runbook\n---\ntext", "/n/b.md", "runbook"),
        ("text", "/n/runbooks/b.md", "runbook"),
        ("text", "/n/adr/b.md", "decision"),
        ("To restart:\n\n1. stop it\n2. start it", "/n/b.md", "runbook"),
        ("text", "/home/user/b.md", "decision"),
    ],
)
def test_a1_the_category_of_a_note_is_what_it_says_else_what_it_looks_like(text, path, category) -> None:
    assert from_note(text, path).category == category


def test_trap_30_a_note_whose_status_is_not_understood_is_not_taken_for_active() -> None:
    assert from_note("---\nrecord_status: retired\n---\ntext", "/n/b.md").status == "retired"
    with pytest.raises(MemoryFault, match="record_status is 'retired # for good'; write one of active, retired, archived"):
        from_note("---\nrecord_status: retired # for good\n---\ntext", "/n/b.md")


def test_a1_an_empty_note_is_no_memory() -> None:
    with pytest.raises(MemoryFault, match="no text"):
        from_note("---\ntitle: x\n---\n\n", "/n/b.md")
    assert front_matter("") == ({}, "")
