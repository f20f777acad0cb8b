from __future__ import annotations

import pytest

from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.memory import MemoryFault
from ringtrue.memory.hook.notes import from_note, front_faults, front_matter
from ringtrue.memory.hook.settings import Settings


def test_a_note_of_an_agent_is_a_memory() -> None:
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


def test_a_note_without_front_matter_takes_its_heading_or_its_name() -> None:
    assert from_note("# Build ##\n\nmake all", "/n/b.md").title == "Build"
    assert from_note("make all", "/n/how to build.md").id == "note-n-how-to-build"
    assert from_note("---\nno end: here\ntext", "/n/b.md").body == "---\nno end: here\ntext"


def test_unknown_values_of_a_note_are_left_at_the_default() -> None:
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
def test_the_category_of_a_note_is_what_it_says_else_what_it_looks_like(text, path, category) -> None:
    assert from_note(text, path).category == category


def test_trap_30_a_note_whose_status_is_not_understood_is_not_taken_for_active() -> None:
    assert from_note("---\nrecord_status: retired\n---\ntext", "/n/b.md").status == "retired"
    with pytest.raises(MemoryFault, match="record_status is 'retired # for good'; write one of active, retired, archived"):
        from_note("---\nrecord_status: retired # for good\n---\ntext", "/n/b.md")


def test_an_empty_note_is_no_memory() -> None:
    with pytest.raises(MemoryFault, match="no text"):
        from_note("---\ntitle: x\n---\n\n", "/n/b.md")
    assert front_matter("") == ({}, "")


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        ("description: |\n  Lost: xylophone\n\n    deep\nid: x", {"description": "Lost: xylophone\n\n  deep", "id": "x"}),
        ("description: |-\n  # no remark\n  ---\n  text", {"description": "# no remark\n---\ntext"}),
        ("description: |2+\n    two deeper\n  text\n\n", {"description": "  two deeper\ntext"}),
        ("description: >- # so\n  one\n  two\n\n  three\n    kept\n  four", {"description": "one two\nthree\n  kept\nfour"}),
        ("description: >\r\n  one\r\n  two\r", {"description": "one two"}),
        ("description: |\nid: x", {"description": "", "id": "x"}),
        ("description: plain\n  on: two lines\n  # a remark\nid: x", {"description": "plain on: two lines", "id": "x"}),
        ("description:\n  below\n  its name", {"description": "below its name"}),
        ('description: "quoted: on\n  two lines"', {"description": "quoted: on two lines"}),
        ('title: "say \\"hi\\"" # a remark\nname: \'it\'\'s\'', {"title": 'say "hi"', "name": "it's"}),
        ('title: "say "hi""\nname: "C:\\new"', {"title": 'say "hi"', "name": "C:\\new"}),
        ('tags: ["a, b", c]', {"tags": ["a, b", "c"]}),
        ("tags: ['it''s, so', it's, \"]\"] # three", {"tags": ["it's, so", "it's", "]"]}),
        ("tags: [\n  a,\n  b,\n]\nid: x", {"tags": ["a", "b"], "id": "x"}),
        ("tags: []\nid: x", {"tags": [], "id": "x"}),
        ("tags:\n- a\n  wrapped\n- \"b, c\"\n- title: d\nid: x", {"tags": ["a wrapped", "b, c", "title: d"], "id": "x"}),
        ("tags:\n  # a remark\n  - >\n    folded\n    item\n  - b", {"tags": ["folded item", "b"]}),
        ("other:\n  title: not ours\ntitle: ours", {"title": "ours"}),
        ("title: ours\nother:\n  title: not ours", {"title": "ours"}),
        ("type: user\nmetadata:\n  type: project\n  tags:\n    - a\n  deep:\n    id: x", {"type": "user", "tags": ["a"]}),
        ("links:\n  supports: [a]\n  title: not ours", {"supports": ["a"]}),
    ],
)  # fmt: skip
def test_front_matter_of_more_than_one_line(lines, facts) -> None:
    text = f"---\n{lines}\n---\nbody"
    assert front_matter(text) == (facts, "body")
    assert front_faults(text) == []


def test_indented_lines_are_no_facts_of_the_note() -> None:
    lines = "title: Right title\ndescription: |\n  First line.\n  title: hijacked title\n  category: constraint"
    note = from_note(f"---\n{lines}\n---\nbody", "/n/b.md")
    assert (note.title, note.category) == ("Right title", "decision")
    assert note.body == "First line.\ntitle: hijacked title\ncategory: constraint\nbody"
    assert from_note("---\ntitle: |\n  two\n  lines\n---\nbody", "/n/b.md").title == "two lines"


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("title: [open", {"title": "[open"}),
        ('tags: ["a, b]', {"tags": ['"a', "b"]}),
        ('title: "open', {"title": '"open'}),
        ("title: &a text", {"title": "&a text"}),
        ("description:\n  Note: well", {"description": "Note: well"}),
    ],
)
def test_what_cannot_be_read_is_taken_as_it_stands_in_place(line, facts) -> None:
    text = f"---\n{line}\n---\nbody"
    assert front_matter(text) == (facts, "body")
    assert front_faults(text)[0].startswith("line 2 ")


@pytest.mark.parametrize("line", ["tags: " + "[" * 100_000, "tags: ['" + "',\"" * 50_000, "a: |\n" + "\n" * 100_000 + "  x"])
def test_long_front_matter_is_read_without_recursion(line) -> None:
    assert front_matter(f"---\n{line}\n---\nbody")[1] == "body"


def test_a_note_in_a_further_root_is_found_by_its_folded_description(tmp_path) -> None:
    (tmp_path / "notes").mkdir()
    lines = (
        "name: deploys\ndescription: >-\n  Never deploy on Friday because\n  the pagers are off\nmetadata:\n  type: feedback"
    )
    (tmp_path / "notes" / "deploys.md").write_text(f"---\n{lines}\n---\nAsk first.\n")
    index = open_index(str(tmp_path / "memory"), Settings(roots=(str(tmp_path / "notes"),)))
    assert [one.memory.id for one in index.search("pagers on Friday", k=3, now=0.0)] == ["note-notes-deploys"]
