"""Adding and changing memories: checked, safe against others, and nothing is ever lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from made_memories import memory
from ringtrue.errors import InputError, MissingInput
from ringtrue.memory.editing import add, change, draft, edit, get, link, near_ids, replace, set_status, supersede
from ringtrue.memory.hook.files import load, write
from ringtrue.memory.hook.memory import as_record, changed
from ringtrue.memory.hook.settings import Settings

NOW, LATER = "2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z"


@pytest.fixture
def kept(tmp_path: Path) -> str:
    for name in ("one", "two"):
        add(str(tmp_path), draft(category="decision", title=name.title(), text=f"text of {name}", now=NOW))
    return str(tmp_path)


def on_disk(root: str, name: str, category: str = "decision") -> dict[str, object]:
    return json.loads((Path(root) / category / f"{name}.json").read_text())


def test_a_new_memory_is_a_file_of_its_category_named_by_its_title(tmp_path) -> None:
    added = add(str(tmp_path), draft(category="constraint", title="No card data in logs!", text="mask it", now=NOW))
    assert added.path == str(tmp_path / "constraint" / "no-card-data-in-logs.json")
    assert on_disk(str(tmp_path), "no-card-data-in-logs", "constraint")["content"] == {"rule": "mask it"}


@pytest.mark.parametrize(
    ("folder", "category"),
    [("decisions", "decision"), ("tech-debt", "tech_debt"), ("sessions", "session_summary")],
)
def test_a_new_memory_goes_into_the_folder_that_holds_its_category_already(tmp_path, folder, category) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / "auth").mkdir()
    added = add(str(tmp_path), draft(category=category, title="One more", text="text", now=NOW))
    assert added.path == str(tmp_path / folder / "one-more.json")
    other = add(str(tmp_path), draft(category="runbook", title="Restart", text="text", now=NOW))
    assert other.path == str(tmp_path / "runbook" / "restart.json")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"title": "x" * 121}, "title has 121 characters; write at most 120"),
        ({"title": "  "}, "write one line"),
        (
            {"memory_id": "Not Kebab"},
            "'Not Kebab' is not kebab-case; use lowercase letters, digits and single '-', such as 'not-kebab'",
        ),
        ({"memory_id": "a" * 81}, "has 81 characters; write at most 80"),
        ({"memory_id": "../../etc"}, "not kebab-case"),
        ({"category": "decisions"}, "did you mean 'decision'"),
        ({"values": {"rationals": "x"}}, "did you mean 'rationale'"),
        ({"values": {"importance_tier": "highest"}}, "importance_tier is 'highest'"),
        ({"values": {"confidence": "sure"}}, "write a number from 0 to 1"),
        ({"values": {"id": "other"}}, "an id stays"),
        ({"title": "Use JWT -> /etc/passwd"}, "never shown; write it as 'Use JWT - /etc/passwd'"),
    ],
)
def test_what_is_wrong_is_named_with_the_cure(tmp_path, fields, says) -> None:
    given = {"category": "decision", "title": "A title", "text": "text", "now": NOW, **fields}
    with pytest.raises(InputError) as error:
        add(str(tmp_path), draft(**given))
    assert says in str(error.value)
    assert list(tmp_path.rglob("*.json")) == []


def test_an_id_that_is_taken_is_refused_and_a_free_one_named(kept) -> None:
    with pytest.raises(InputError, match=r"memory 'one' already exists .* --id one-2"):
        add(kept, draft(category="runbook", title="One", text="other", now=NOW))
    assert on_disk(kept, "one")["content"] == {"decision": "text of one"}


def test_a_memory_without_content_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="content is empty"):
        add(str(tmp_path), draft(category="decision", title="Nothing", now=NOW))


def test_a_secret_is_refused_with_what_and_where_and_can_be_redacted(tmp_path) -> None:
    record = draft(
        category="runbook", title="Restore", now=NOW, values={"steps": '["ok", "psql postgres://app:correct-horse@db/x"]'}
    )
    with pytest.raises(InputError, match=r"content\.steps\[1\], characters 21 to 33: a login") as error:
        add(str(tmp_path), record)
    assert "correct-horse" not in str(error.value)
    assert list(tmp_path.rglob("*.json")) == []
    added = add(str(tmp_path), record, redact=True)
    assert "correct-horse" not in Path(added.path).read_text()
    assert "[login removed]" in added.body


def test_an_edit_cannot_bring_a_secret_in(kept) -> None:
    with pytest.raises(InputError, match=r"content\.rationale"):
        edit(kept, "one", {"rationale": "password=Tr0ub4dor3xyz"}, now=LATER)
    assert "Tr0ub4dor3xyz" not in Path(get(kept, "one").path).read_text()


def test_a_memory_that_holds_a_secret_already_can_still_be_retired_and_redacted(tmp_path) -> None:
    path = tmp_path / "decision" / "old.json"
    path.parent.mkdir()
    path.write_text(json.dumps(as_record(memory("old", "Old", "password=Tr0ub4dor3xyz", created_at=NOW))))
    assert set_status(str(tmp_path), "old", "retired", now=LATER).status == "retired"
    edit(str(tmp_path), "old", {}, now=LATER, redact=True)
    assert "Tr0ub4dor3xyz" not in path.read_text()


def test_fields_are_set_by_name_and_an_empty_value_takes_one_away(kept) -> None:
    edit(kept, "one", {"tags": "auth, jwt", "content.rationale": "because", "confidence": "0.9"}, now=LATER)
    record = on_disk(kept, "one")
    assert record["tags"] == ["auth", "jwt"]
    assert record["content"] == {"decision": "text of one", "rationale": "because"}
    assert (record["confidence"], record["updated_at"], record["created_at"]) == (0.9, LATER, NOW)
    edit(kept, "one", {"confidence": "", "rationale": ""}, now=LATER)
    assert "confidence" not in on_disk(kept, "one")
    assert on_disk(kept, "one")["content"] == {"decision": "text of one"}


def test_an_edit_that_changes_nothing_writes_nothing(kept) -> None:
    before = Path(get(kept, "one").path).stat().st_mtime_ns
    edit(kept, "one", {"decision": "text of one"}, now=LATER)
    assert Path(get(kept, "one").path).stat().st_mtime_ns == before
    assert on_disk(kept, "one")["updated_at"] == NOW


def test_fields_of_others_survive_an_edit(kept) -> None:
    path = Path(get(kept, "one").path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "reviewed_by": "the platform team"}))
    edit(kept, "one", {"title": "Another"}, now=LATER)
    assert on_disk(kept, "one")["reviewed_by"] == "the platform team"


def test_another_category_moves_the_file(kept) -> None:
    edit(kept, "one", {"category": "constraint", "rule": "always", "decision": ""}, now=LATER)
    assert on_disk(kept, "one", "constraint")["content"] == {"rule": "always"}
    assert not (Path(kept) / "decision" / "one.json").exists()
    assert [one.id for one in load(kept, Settings()).memories] == ["one", "two"]


@pytest.mark.parametrize("status", ["retired", "archived"])
def test_retire_and_archive_keep_the_file(kept, status) -> None:
    set_status(kept, "one", status, now=LATER)
    assert on_disk(kept, "one")["record_status"] == status
    assert on_disk(kept, "one")["content"] == {"decision": "text of one"}
    set_status(kept, "one", "active", now=LATER)
    assert on_disk(kept, "one")["record_status"] == "active"


def test_supersede_retires_the_old_and_names_it_in_the_new(kept) -> None:
    old, new = supersede(kept, "one", "two", now=LATER)
    assert (old.status, new.supersedes) == ("retired", ("one",))
    assert on_disk(kept, "two")["supersedes"] == ["one"]
    with pytest.raises(InputError, match="'one' is retired"):
        supersede(kept, "two", "one", now=LATER)
    with pytest.raises(InputError, match="itself"):
        supersede(kept, "two", "two", now=LATER)
    with pytest.raises(MissingInput, match="there is no memory 'three'"):
        supersede(kept, "two", "three", now=LATER)


def test_links_are_added_once_and_taken_away(kept) -> None:
    for _ in range(2):
        assert link(kept, "one", "leads_to", "two", now=LATER).links == {"leads_to": ("two",)}
    assert link(kept, "one", "leads_to", "two", now=LATER, take_away=True).links == {}
    for kind, target, says in (
        ("leads", "two", "did you mean 'leads_to'"),
        ("supports", "tow", "did you mean 'two'"),
        ("supports", "one", "itself"),
    ):
        with pytest.raises(InputError, match=says):
            link(kept, "one", kind, target, now=LATER)


def test_a_memory_that_others_changed_meanwhile_is_not_overwritten(kept) -> None:
    was = as_record(get(kept, "one"))
    edit(kept, "one", {"rationale": "by somebody else"}, now=LATER)
    with pytest.raises(InputError, match="changed by somebody else"):
        replace(kept, "one", {**was, "title": "Mine"}, was=was, now=LATER)
    assert on_disk(kept, "one")["content"]["rationale"] == "by somebody else"


def test_an_edited_record_cannot_change_its_id_or_become_a_bad_one(kept) -> None:
    was = as_record(get(kept, "one"))
    with pytest.raises(InputError, match="the id became 'other'"):
        replace(kept, "one", {**was, "id": "other"}, was=was, now=LATER)
    with pytest.raises(InputError, match="title has 200 characters"):
        replace(kept, "one", {**was, "title": "x" * 200}, was=was, now=LATER)
    assert on_disk(kept, "one")["title"] == "One"


def test_notes_of_others_are_only_read(tmp_path) -> None:
    root, notes = tmp_path / "memory", tmp_path / "notes"
    root.mkdir()
    notes.mkdir()
    (notes / "style.md").write_text("---\nname: Style\n---\nSmall commits.")
    (root / "memory-config.json").write_text(json.dumps({"retrieval": {"roots": [str(notes)]}}))
    (note,) = load(str(root), Settings(roots=(str(notes),))).memories
    assert get(str(root), note.id).title == "Style"
    with pytest.raises(InputError, match="only read; bring it in with"):
        set_status(str(root), note.id, "retired", now=LATER)


# In a process of its own: this one has threads and libraries that do not survive a fork.
COUNTING = """
import os, sys
from ringtrue.memory.editing import change
from ringtrue.memory.hook.memory import changed

def count(one):
    return changed(one, content={**one.content, "context": str(int(one.content.get("context", "0")) + 1)})

children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for _ in range(15):
                change(sys.argv[1], "one", count, now=sys.argv[2])
            code = 0
        finally:
            os._exit(code)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork on Windows")
def test_trap_36_changes_at_the_same_time_are_all_kept(kept) -> None:
    done = subprocess.run([sys.executable, "-c", COUNTING, kept, LATER], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert on_disk(kept, "one")["content"]["context"] == "120"


def test_a_failed_change_lets_others_go_on(kept) -> None:
    with pytest.raises(ZeroDivisionError):
        change(kept, "one", lambda one: changed(one, title=str(1 // 0)), now=LATER)
    assert edit(kept, "one", {"title": "After"}, now=LATER).title == "After"


def test_get_names_the_nearest_ids(kept) -> None:
    with pytest.raises(MissingInput, match="did you mean 'two'"):
        get(kept, "towo")
    write(kept, memory("three", "Three", "x"))
    assert get(kept, "three").title == "Three"


def test_only_near_ids_are_proposed(kept) -> None:
    for name, says in (("on", "did you mean 'one'"), ("zebra-stripes", "see `ringtrue memory list`")):
        with pytest.raises(InputError, match=says):
            get(kept, name)
    ids = ["sessions-are-stored-in-redis", "prices-are-stored-as-integer-cents"]
    assert near_ids("prices-are-stored-as-cents", ids) == "'prices-are-stored-as-integer-cents'"
    assert near_ids("prices", ids) == "'prices-are-stored-as-integer-cents'"
    assert near_ids("deploys-are-started-on-friday", ids) == ""


def test_a_record_without_an_id_gets_one_from_its_title(tmp_path) -> None:
    record = {"category": "decision", "title": "Small commits", "content": {"decision": "x"}, "created_at": NOW}
    assert add(str(tmp_path), record).id == "small-commits"
