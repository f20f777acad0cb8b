"""Import and export: nothing is overwritten unasked, nothing is lost on the way there and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ringtrue.golden
from made_memories import memory
from ringtrue.errors import InputError, MissingInput
from ringtrue.memory.exporters import records_of, send
from ringtrue.memory.hook.files import load, write
from ringtrue.memory.hook.memory import as_record
from ringtrue.memory.hook.settings import Settings
from ringtrue.memory.importers import bring, own_notes, read_source

BENCH = str(Path(ringtrue.golden.__file__).parent / "sets" / "memory-bench" / "memories")
NOW = "2026-03-01T12:00:00Z"


def record(name: str, text: str = "text", **fields: object) -> dict[str, object]:
    return {**as_record(memory(name, name.title(), text, created_at=NOW)), **fields}


def imported(root: Path, source: Path | str, **options):
    return bring(str(root), read_source(str(source), now=NOW), now=NOW, **options)


def records(root: Path) -> list[dict[str, object]]:
    return [as_record(one) for one in load(str(root), Settings()).memories]


@pytest.mark.parametrize(("format", "name"), [("json", "all.json"), ("jsonl", "all.jsonl"), ("markdown", "notes")])
def test_56_memories_there_and_back_are_the_same(tmp_path, format, name) -> None:
    memories = load(BENCH, Settings()).memories
    send(records_of(memories), tmp_path / name, format)
    done = imported(tmp_path / "store", tmp_path / name)
    assert done.refused == {}
    assert len(done.added) == len(memories) > 50
    assert records(tmp_path / "store") == [as_record(one) for one in memories]


def test_what_comes_again_is_unchanged(tmp_path) -> None:
    for count in (len(load(BENCH, Settings()).memories), 0):
        assert len(imported(tmp_path, BENCH).added) == count
    assert len(imported(tmp_path, BENCH).unchanged) > 50


@pytest.mark.parametrize(
    ("conflict", "field", "texts"),
    [
        ("skip", "skipped", {"one": "mine"}),
        ("rename", "renamed", {"one": "mine", "one-2": "theirs"}),
        ("replace", "replaced", {"one": "theirs"}),
    ],
)
def test_an_id_that_is_taken(tmp_path, conflict, field, texts) -> None:
    write(str(tmp_path / "store"), memory("one", "One", "mine", created_at=NOW))
    (tmp_path / "in.json").write_text(json.dumps(record("one", "theirs")))
    done = imported(tmp_path / "store", tmp_path / "in.json", conflict=conflict)
    assert len(getattr(done, field)) == 1
    assert {one.id: one.body for one in load(str(tmp_path / "store"), Settings()).memories} == texts


def test_import_does_not_overwrite_unless_told(tmp_path) -> None:
    write(str(tmp_path), memory("one", "One", "mine"))
    before = (tmp_path / "decision" / "one.json").read_bytes()
    done = bring(str(tmp_path), read_source("-", now=NOW, stdin=json.dumps([record("one", "theirs"), record("two")])), now=NOW)
    assert (done.skipped, done.added) == (("one",), ("two",))
    assert (tmp_path / "decision" / "one.json").read_bytes() == before


def test_a_dry_run_writes_nothing(tmp_path) -> None:
    done = imported(tmp_path, BENCH, dry_run=True)
    assert len(done.added) > 50
    assert list(tmp_path.rglob("*.json")) == []


def test_bad_ones_are_refused_one_by_one_with_place_and_reason(tmp_path) -> None:
    lines = [
        json.dumps(record("good")),
        "{broken",
        "[1, 2]",
        json.dumps(record("Bad Id")),
        json.dumps(record("long", title="x" * 130)),
        json.dumps(record("leaky", "password=Tr0ub4dor3xyz")),
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    done = imported(tmp_path / "store", tmp_path / "in.jsonl")
    assert done.added == ("good",)
    reasons = {place.rpartition("line ")[2]: why for place, why in done.refused.items()}
    assert "not JSON" in reasons["2"]
    assert "not a memory" in reasons["3"]
    assert "kebab-case" in reasons["4"]
    assert "130 characters" in reasons["5"]
    assert "a password" in reasons["6"]
    assert "Tr0ub4dor3xyz" not in reasons["6"]


def test_secrets_are_replaced_when_asked(tmp_path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(record("leaky", "password=Tr0ub4dor3xyz")))
    assert imported(tmp_path / "store", tmp_path / "in.json", redact=True).added == ("leaky",)
    assert "Tr0ub4dor3xyz" not in (tmp_path / "store" / "decision" / "leaky.json").read_text()


def test_claude_and_codex_notes_come_in_and_stay_where_they_are(tmp_path) -> None:
    home, project = tmp_path / "home", Path("/srv/my shop")
    claude = home / ".claude" / "projects" / "-srv-my-shop" / "memory"
    codex = home / ".codex" / "memories"
    for folder in (claude, codex):
        folder.mkdir(parents=True)
    (claude / "MEMORY.md").write_text("# Memory\n- [Commits](commits.md) – how to commit\n")
    (claude / "commits.md").write_text(
        "---\nname: Small commits\ntype: feedback\nmodified: 2026-02-01\n---\nOne change each.\n"
    )
    (codex / "deploy.md").write_text("# Deploying\n\nRun make deploy, then look at the dashboard.\n")
    root = tmp_path / "store"
    before = {path: path.read_bytes() for path in home.rglob("*.md")}
    done = imported(root, own_notes("claude", project=project, home=home))
    assert (len(done.added), done.refused) == (1, {})
    assert len(imported(root, own_notes("codex", project=project, home=home)).added) == 1
    found = {one.title: one for one in load(str(root), Settings()).memories}
    assert found["Small commits"].category == "preference"
    assert found["Small commits"].content == {"value": "One change each."}
    assert "make deploy" in found["Deploying"].body
    assert {path: path.read_bytes() for path in home.rglob("*.md")} == before
    with pytest.raises(MissingInput, match="keeps no memories"):
        own_notes("claude", project=Path("/srv/other"), home=home)


def test_links_out_of_the_source_are_not_followed(tmp_path) -> None:
    (tmp_path / "outside.json").write_text(json.dumps(record("outside")))
    source = tmp_path / "in"
    source.mkdir()
    (source / "inside.json").write_text(json.dumps(record("inside")))
    (source / "link.json").symlink_to(tmp_path / "outside.json")
    assert imported(tmp_path / "store", source).added == ("inside",)


@pytest.mark.parametrize(
    ("name", "text", "says"), [("x.txt", "x", "neither .json"), ("x.json", "{", "not JSON"), (None, "", "no such file")]
)
def test_sources_that_cannot_be_read(tmp_path, name, text, says) -> None:
    path = tmp_path / (name or "nowhere.json")
    if name:
        path.write_text(text)
    try:
        found = "; ".join(one.fault for one in read_source(str(path), now=NOW))
    except InputError as error:
        found = str(error)
    assert says in found


def test_export_never_overwrites_unasked_nor_sends_secrets(tmp_path) -> None:
    target = tmp_path / "out.json"
    target.write_text("mine")
    made = [memory("one", "One", "text", created_at=NOW)]
    with pytest.raises(InputError, match="is there already"):
        send(records_of(made), target, "json")
    assert target.read_text() == "mine"
    send(records_of(made), target, "json", overwrite=True)
    assert json.loads(target.read_text())["memories"][0]["id"] == "one"
    with pytest.raises(InputError, match="a password"):
        records_of([memory("leaky", "Leaky", "password=Tr0ub4dor3xyz")])
    assert "Tr0ub4dor3xyz" not in str(records_of([memory("leaky", "Leaky", "password=Tr0ub4dor3xyz")], redact=True))


def test_a_category_of_another_kind_is_not_replaced_in_place(tmp_path) -> None:
    write(str(tmp_path), memory("one", "One", "mine", category="runbook"))
    done = bring(str(tmp_path), read_source("-", now=NOW, stdin=json.dumps(record("one"))), conflict="replace", now=NOW)
    assert "edit the category first" in next(iter(done.refused.values()))


def notes_in(folder: Path, **texts: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return folder


def test_what_a_note_does_not_say_is_guessed_and_said(tmp_path) -> None:
    source = notes_in(
        tmp_path / "in",
        a="---\ncategory: nonsense\n---\n# Caching\nAssets for a year.",
        b="# Terraform\nState lives in S3.",
        c="# Restart\n1. stop\n2. start",
        d="---\ntitle: Tabs\ntype: feedback\nimportance_tier: hihg\nconfidence: much\n---\nUse tabs.",
        e="---\ntitle: All is said\ncategory: constraint\n---\nNo floats.",
    )
    done = imported(tmp_path / "store", source)
    said = {Path(place).stem: guesses for place, guesses in done.guessed.items()}
    assert said == {
        "a": ("category is 'nonsense', which is none of ours: taken for a decision",),
        "b": ("it names no category: taken for a decision",),
        "c": ("it names no category: taken for a runbook by its numbered steps",),
        "d": (
            "confidence is 'much', which is not a number: left out",
            "importance_tier is 'hihg', which is none of ours: taken for normal",
        ),
    }
    found = {one["id"]: one for one in records(tmp_path / "store")}
    assert {name: one["category"] for name, one in found.items()} == {
        "all-is-said": "constraint", "caching": "decision", "restart": "runbook", "tabs": "preference", "terraform": "decision",
    }  # fmt: skip
    assert found["terraform"]["content"] == {"decision": "# Terraform\nState lives in S3."}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("---\ntitle: [broken\n---\nbody", "line 2 opens a list that it does not close: 'title: [broken'; close it with ']'"),
        ('---\ntags: a\ntitle: "broken\n---\nbody', "line 3 opens a quotation"),
        ("---\ntags: a\ntitle: &mark Broken\n---\nbody", "line 3 has an anchor, an alias or a tag, which are not read"),
        ("---\ntags: [a, *mark]\n---\nbody", "line 2 has an anchor, an alias or a tag"),
        ("---\ntags:\n- a\n- !!str b\n---\nbody", "line 4 has an anchor, an alias or a tag"),
        ('---\ntags:\n- a\n- "b\n---\nbody', "line 4 opens a quotation"),
        ("---\nmetadata:\n  type: [a\n---\nbody", "line 3 opens a list"),
        ("---\ndescription:\n  title: x\n---\nbody", "line 2 has facts below 'description', which takes a text; write"),
        ("---\ntitle Broken\n---\nbody", "line 2 is not a 'name: value'"),
        ("---\ntitle: Broken\nbody", "line 1 opens front matter that is never closed; add a line '---'"),
    ],
)
def test_broken_front_matter_is_refused_with_place_and_cure(tmp_path, text, says) -> None:
    done = imported(tmp_path / "store", notes_in(tmp_path / "in", note=text))
    assert done.added == ()
    assert says in done.refused[str(tmp_path / "in" / "note.md")]


def test_front_matter_that_looks_odd_and_is_right(tmp_path) -> None:
    text = "---\ntitle: [WIP] a draft\n# a remark\nmetadata:\n  type: feedback\ntags:\n- a\n---\nbody"
    assert imported(tmp_path / "store", notes_in(tmp_path / "in", note=text)).added == ("wip-a-draft",)
    rule = "---\nA rule above, no front matter."
    assert imported(tmp_path / "store", notes_in(tmp_path / "other", rule=rule)).refused == {}


def test_front_matter_of_more_than_one_line_comes_in_whole(tmp_path) -> None:
    source = notes_in(
        tmp_path / "in",
        a="---\ntitle: Right title\ndescription: |\n  First line.\n  title: hijacked title\n  category: constraint\n---\nbody",
        b='---\ntitle: Wrapped\ndescription: The lost words\n  xylophone quartz\ntags: ["a, b", c]\n---\nbody',
    )
    done = imported(tmp_path / "store", source)
    assert (done.added, done.refused) == (("right-title", "wrapped"), {})
    right, wrapped = records(tmp_path / "store")
    assert (right["category"], right["content"]) == (
        "decision", {"decision": "First line.\ntitle: hijacked title\ncategory: constraint\nbody"},
    )  # fmt: skip
    assert (wrapped["tags"], wrapped["content"]) == (["a, b", "c"], {"decision": "The lost words xylophone quartz\nbody"})


def test_files_that_hold_no_memory_are_left_and_named(tmp_path) -> None:
    source = notes_in(tmp_path / "in", good="# Good\ntext", MEMORY="# Memory\n- [Good](good.md) – how\n")
    (source / "x.txt").write_text("x")
    (source / "link.md").symlink_to(source / "good.md")
    done = imported(tmp_path / "store", source)
    assert done.added == ("good",)
    assert {Path(place).name: why for place, why in done.left.items()} == {
        "MEMORY.md": "it only lists other notes",
        "link.md": "it is a link, which is not followed",
        "x.txt": "it is no .json, .jsonl or .md",
    }


def test_ids_come_from_the_title_and_by_the_path_only_where_two_are_the_same(tmp_path) -> None:
    source = tmp_path / "in"
    notes_in(source / "web", deploy="# Deploying\nmake web")
    notes_in(source / "api", deploy="# Deploying\nmake api", other="# Other\ntext")
    done = imported(tmp_path / "store", source)
    assert done.added == ("deploying", "other", "note-web-deploy")
    again = imported(tmp_path / "store", source)
    assert (sorted(again.unchanged), again.added, again.skipped) == (sorted(done.added), (), ())


def test_a_note_that_came_in_by_its_path_before_is_not_doubled(tmp_path) -> None:
    source = notes_in(tmp_path / "in", deploy="---\ncategory: runbook\n---\n# Deploying\nmake it")
    write(str(tmp_path / "store"), memory("note-in-deploy", "Deploying", "make it", category="runbook", created_at=NOW))
    done = imported(tmp_path / "store", source)
    assert (done.added, done.skipped) == ((), ("note-in-deploy",))


def test_records_without_an_id_get_one_from_their_title(tmp_path) -> None:
    plain = {"category": "decision", "title": "Small commits", "content": {"decision": "one change each"}}
    other = {**plain, "content": {"decision": "or two"}}
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, [plain, other, plain])))
    done = imported(tmp_path / "store", tmp_path / "in.jsonl")
    assert (done.added, done.unchanged) == (("small-commits", "small-commits-2"), ("small-commits",))
    again = bring(str(tmp_path / "store"), read_source(str(tmp_path / "in.jsonl"), now="2026-04-01T12:00:00Z"), now=NOW)
    assert again.unchanged == ("small-commits", "small-commits-2", "small-commits")


def test_what_has_no_title_is_refused_for_that(tmp_path) -> None:
    done = bring(str(tmp_path), read_source("-", now=NOW, stdin='{"category": "decision", "content": {"rule": "x"}}'), now=NOW)
    assert next(iter(done.refused.values())).startswith("title is missing")


def test_a_secret_in_a_title_does_not_come_back_in_the_id(tmp_path) -> None:
    source = notes_in(tmp_path / "in", leaky="# Login password=Tr0ub4dor3xyz\ntext")
    assert "Tr0ub4dor3xyz" not in str(imported(tmp_path / "store", source))
    done = imported(tmp_path / "store", source, redact=True)
    assert done.added == ("login-password-password-removed",)


def test_memories_longer_than_the_index_reads_are_named(tmp_path) -> None:
    source = notes_in(tmp_path / "in", long="# Long\n" + "word " * 500, short="# Short\ntext")
    assert imported(tmp_path / "store", source).cut == {"long": 2506}
