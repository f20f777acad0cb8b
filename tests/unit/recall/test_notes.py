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
    note = from_note("---\ncategory: idea\nrecord_status: gone\ntags: a, b\n---\ntext", "/n/b.md")
    assert (note.category, note.status, note.tags) == ("runbook", "active", ("a", "b"))
    assert from_note("---\nrecord_status: retired\n---\ntext", "/n/b.md").status == "retired"


def test_a1_an_empty_note_is_no_memory() -> None:
    with pytest.raises(MemoryFault, match="no text"):
        from_note("---\ntitle: x\n---\n\n", "/n/b.md")
    assert front_matter("") == ({}, "")
