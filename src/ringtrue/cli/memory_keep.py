"""``ringtrue memory add · edit · retire · archive · supersede · link``: changing memories."""

from __future__ import annotations

import json as json_text
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import show
from ringtrue.cli.memory import Redact, Root, brief, found_root, made_root, pairs_given, place_of, settings_of, stamp
from ringtrue.cli.options import Json
from ringtrue.config import environment_without_tokens
from ringtrue.errors import OK, REGRESSION, InputError, check_choice, nearest
from ringtrue.memory import editing
from ringtrue.memory.hook.files import load
from ringtrue.memory.hook.memory import TIERS, Memory, as_record
from ringtrue.memory.hook.settings import Settings

if TYPE_CHECKING:
    from ringtrue.memory.importers import ImportResult
    from ringtrue.memory.pairs import MemoryPair


Id = Annotated[str, typer.Argument(metavar="ID", help="The memory's id.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", "-s", metavar="FIELD=VALUE", help="Set a field. An empty value removes it.")
]


def add_command(
    category: Annotated[
        str | None, typer.Argument(help="decision, constraint, preference, runbook, tech_debt or session_summary.")
    ] = None,
    title: Annotated[str | None, typer.Argument(help="What was learned, in one line of at most 120 characters.")] = None,
    text: Annotated[str | None, typer.Argument(help="The memory itself; - reads it from standard input.")] = None,
    set_: Set = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag.")] = None,
    trigger: Annotated[list[str] | None, typer.Option(help="A phrase that triggers the memory.")] = None,
    file: Annotated[list[str] | None, typer.Option(help="A file of the project that the memory is about.")] = None,
    tier: Annotated[str | None, typer.Option(help="constitutional, critical, important, normal or temporary.")] = None,
    memory_id: Annotated[str | None, typer.Option("--id", help="Its id, in kebab case; default: from the title.")] = None,
    record: Annotated[
        str | None, typer.Option(metavar="FILE", help="Take the whole JSON record from a file, or - for stdin.")
    ] = None,
    redact: Redact = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Add a memory. Keys, tokens and passwords are refused, or with --redact replaced.

    Example: ringtrue memory add decision "Sessions are JWT" "Signed with RS256, so that every service can check them."
    Example: ringtrue memory add runbook "Redis is full" --set 'steps=["raise maxmemory", "drain the queue"]' --tag redis
    Example: ringtrue memory add --record memory.json
    """
    from ringtrue.memory.engine import make_ready

    if record is not None:
        if any(one for one in (category, title, text, set_, tag, trigger, file, tier, memory_id)):
            raise InputError("--record brings everything; leave the other fields out, and edit the memory afterwards")
        made = {"created_at": stamp(), "updated_at": stamp(), **_read_record(record)}
    else:
        if category is None or title is None:
            raise InputError("a memory needs a category and a title; see `ringtrue memory add --help`")
        values = pairs_given(set_)
        for name, items in (("tags", tag), ("trigger_phrases", trigger), ("related_files", file)):
            if items:
                values[name] = json_text.dumps(items)
        if tier is not None:
            check_choice(tier, TIERS, f"--tier is {tier!r}")
            values["importance_tier"] = tier
        said = sys.stdin.read().strip() if text == "-" else text or ""
        made = editing.draft(category=category, title=title, text=said, memory_id=memory_id, values=values, now=stamp())
        if memory_id is None:
            del made["id"]  # made again from the title that is stored, which may have had a secret in it
    folder = made_root(root)
    memory = editing.add(folder, made, redact=redact)
    settings = settings_of(folder)
    alike = _alike(folder, memory, settings)
    make_ready(folder)
    _show(memory, folder, "added", json=json, alike=alike, most=settings.body_max_chars)


def edit_command(memory_id: Id, set_: Set = None, redact: Redact = False, root: Root = None, json: Json = False) -> None:
    """Change a memory: some fields with --set, or all of it in your editor ($VISUAL or $EDITOR).

    Example: ringtrue memory edit sessions-are-jwt --set "rationale=Every service can check them" --set tags=auth,jwt
    Example: ringtrue memory edit sessions-are-jwt --set importance_tier=critical
    Example: ringtrue memory edit sessions-are-jwt
    """

    folder = found_root(root)
    before = editing.get(folder, memory_id)
    values = pairs_given(set_)
    if values or redact:
        after = editing.edit(folder, memory_id, values, now=stamp(), redact=redact)
    else:
        was = as_record(before)
        record, draft = _edited(was)
        try:
            after = before if record == was else editing.replace(folder, memory_id, record, was=was, now=stamp())
        except InputError as problem:
            raise InputError(f"{problem}; your text is in {draft}") from None
        draft.unlink()
    _show(after, folder, "unchanged" if as_record(after) == as_record(before) else "changed", json=json)


def retire_command(memory_id: Id, root: Root = None, json: Json = False) -> None:
    """Retire a memory that no longer holds: it is never shown again, its file stays.

    Example: ringtrue memory retire sessions-are-jwt
    Example: ringtrue memory edit sessions-are-jwt --set record_status=active    (brings it back)
    """
    _status(memory_id, "retired", root, json=json)


def archive_command(memory_id: Id, root: Root = None, json: Json = False) -> None:
    """Archive a memory that is done with: it is not shown any more, its file stays.

    Example: ringtrue memory archive session-2026-03-01
    """
    _status(memory_id, "archived", root, json=json)


def supersede_command(
    old_id: Annotated[str, typer.Argument(metavar="OLD", help="The memory that no longer holds; it is retired.")],
    new_id: Annotated[str, typer.Argument(metavar="NEW", help="The memory that replaces it.")],
    root: Root = None,
    json: Json = False,
) -> None:
    """Say that one memory took the place of another.

    Example: ringtrue memory supersede sessions-are-cookies sessions-are-jwt
    """

    folder = found_root(root)
    old, new = editing.supersede(folder, old_id, new_id, now=stamp())
    show.end_if_json(json, {"retired": brief(old, folder), "by": brief(new, folder)})
    print(f"{old.id} is retired; {new.id} took its place")


def link_command(
    from_id: Annotated[str, typer.Argument(metavar="FROM", help="The memory that gets the link.")],
    kind: Annotated[str, typer.Argument(help="caused_by, leads_to, supports or contradicts.")],
    to_id: Annotated[str, typer.Argument(metavar="TO", help="The memory it points to.")],
    take_away: Annotated[bool, typer.Option("--remove", help="Remove the link.")] = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Link two memories by cause and effect.

    Example: ringtrue memory link sessions-are-jwt caused_by cookies-broke-the-app
    Example: ringtrue memory link sessions-are-jwt caused_by cookies-broke-the-app --remove
    """

    folder = found_root(root)
    memory = editing.link(folder, from_id, kind, to_id, now=stamp(), take_away=take_away)
    show.end_if_json(json, {"memory": brief(memory, folder), "links": memory.links})
    print(f"{from_id} {'no longer ' if take_away else ''}{kind} {to_id}")


def _status(memory_id: str, status: str, root: Path | None, *, json: bool) -> None:

    folder = found_root(root)
    _show(editing.set_status(folder, memory_id, status, now=stamp()), folder, status, json=json)


def _show(
    memory: Memory, root: str, what: str, *, json: bool, alike: list[MemoryPair] | None = None, most: int | None = None
) -> None:
    """Print what was done; ``most`` is how much of a text the hook searches, if that is worth a note."""
    others = [(pair, pair.second if pair.first == memory.id else pair.first) for pair in alike or ()]
    unreached = max(0, len(memory.body) - most) if most is not None else 0
    found = {"done": what, "memory": brief(memory, root)}
    more = {"alike": [name for _, name in others], "unreached_characters": unreached}
    show.end_if_json(json, found if alike is None else {**found, **more})
    print(f"{memory.id}: {what} ({place_of(memory, root)})")
    for pair, other in others:
        said = "say the same as" if pair.kind == "duplicate" else "contradict"
        because = f" ({pair.because})" if pair.because else ""
        show.note(f"it seems to {said} '{other}'{because}; see `ringtrue memory doctor`")
    if unreached:
        show.note(
            f"the last {unreached:,} of its {len(memory.body):,} characters are beyond engine.body_max_chars ({most:,}): "
            "a prompt cannot bring it up by them; split it, raise that setting, or search with --strategy hybrid"
        )


def _alike(root: str, memory: Memory, settings: Settings) -> list[MemoryPair]:
    """Return the pairs that a new memory makes with active ones."""
    from ringtrue.memory.pairs import alike_to

    return alike_to(root, [one for one in load(root, settings).memories if one.status == "active"], memory.id)


def _read_record(source: str) -> dict[str, Any]:
    text = sys.stdin.read().strip() if source == "-" else Path(source).read_text(encoding="utf-8-sig")
    try:
        record = json_text.loads(text)
    except ValueError as error:
        raise InputError(f"{source}: is not JSON: {error}; write one object with 'category', 'title' and 'content'") from None
    if not isinstance(record, dict):
        raise InputError(f"{source}: holds {record!r:.40}, not a memory; for several use `ringtrue memory import`")
    return record


def _edited(record: dict[str, Any]) -> tuple[dict[str, Any], Path]:
    """Return the record as it leaves the user's editor, and the file that holds it until it is written.

    What cannot be used stays in that file, which the error names.
    """

    environ = environment_without_tokens()
    editor = environ.get("VISUAL") or environ.get("EDITOR")
    if not editor:
        raise InputError("no editor found: set EDITOR, or change fields with --set FIELD=VALUE")
    handle, name = tempfile.mkstemp(prefix=f"{record['id'][:40]}-", suffix=".json")
    path = Path(name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json_text.dumps(record, ensure_ascii=False, indent=2) + "\n")
    code = subprocess.run([*shlex.split(editor), name], check=False).returncode
    if code:
        raise InputError(f"the editor ended with {code}; nothing was changed, your text is in {path}")
    try:
        edited = json_text.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise InputError(f"the edited text is not JSON: {error}; nothing was changed, your text is in {path}") from None
    if not isinstance(edited, dict):
        raise InputError(f"the edited text is not a JSON object; nothing was changed, your text is in {path}")
    return edited, path


REASONS = 20
"""Reasons that are printed; --json has all."""
Yes = Annotated[bool, typer.Option("--yes", help="Overwrite without asking.")]


def import_command(
    source: Annotated[
        str,
        typer.Argument(
            help="A .json, .jsonl or .md file, a folder of them, - for stdin, or claude or codex for their own memories."
        ),
    ],
    conflict: Annotated[
        str, typer.Option("--on-conflict", help="If an id is taken: skip, rename, or replace (which needs --yes).")
    ] = "skip",
    yes: Yes = False,
    redact: Redact = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without writing anything.")] = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Import memories and notes; the source is only read, and what is here is not overwritten unasked.

    A memory without an id gets one from its title. A note without a category gets that of its type or its folder, else runbook
    for numbered steps and decision for the rest; guesses are reported, and --json lists them per memory.
    Each memory that breaks the rules or holds a secret is refused with the reason, and the others come in; exit 1 then.

    Example: ringtrue memory import notes/ --dry-run
    Example: ringtrue memory import claude
    Example: ringtrue memory import backup.json --on-conflict replace --yes
    """
    from ringtrue.memory.doctor import project_of
    from ringtrue.memory.engine import make_ready
    from ringtrue.memory.importers import CONFLICTS, NAMED, bring, own_notes, read_source

    check_choice(conflict, CONFLICTS, f"--on-conflict is {conflict!r}")
    if conflict == "replace" and not yes and not dry_run:
        raise InputError("--on-conflict replace overwrites memories; add --yes, or look first with --dry-run")
    folder = made_root(root)
    place = source
    if source in NAMED and not Path(source).exists():
        place = str(own_notes(source, project=project_of(folder), home=Path.home()))
    if Path(place).is_dir() and Path(place).resolve() == Path(folder).resolve():
        raise InputError(f"{place} is the memory folder itself; name another source")
    done = bring(folder, read_source(place, now=stamp()), conflict=conflict, redact=redact, now=stamp(), dry_run=dry_run)  # type: ignore[arg-type]  # checked above
    if not dry_run:
        make_ready(folder)
    if json:
        show.as_json({"root": folder, "source": place, **show.plain(done)})
    else:
        _print(done, place)
    show.end_with(REGRESSION if done.refused else OK)


def _print(done: ImportResult, source: str) -> None:
    found = show.pick(done, "added", "replaced", "renamed", "unchanged", "skipped", "refused")
    said = ", ".join(f"{len(ids)} {name}" for name, ids in found.items() if ids) or "nothing to import"
    print(f"{source}: {said}" + (" (nothing was written)" if done.dry_run else ""))
    for old, new in done.renamed.items():
        print(f"{old} came in as {new}")
    if done.skipped:
        show.note(f"ids that are taken: {', '.join(done.skipped[:10])}; see --on-conflict rename and replace")
    if done.left:
        names = ", ".join(list(done.left)[:3]) + (" …" if len(done.left) > 3 else "")
        show.note(f"skipped {len(done.left)} that contain no memory: {names}")
    if done.cut:
        name, length = next(iter(done.cut.items()))
        show.note(
            f"{len(done.cut)} are so long that a prompt cannot bring them up by their end (first: {name}, {length:,} "
            "characters); split them, raise engine.body_max_chars, or search with --strategy hybrid"
        )
    _note_alike("guessed", [(place, guess) for place, guesses in done.guessed.items() for guess in guesses])
    _note_alike("refused", list(done.refused.items()))


def _note_alike(what: str, said: list[tuple[str, str]]) -> None:
    """Print what is said about places, the same thing once, with the first place and the count."""
    places: dict[str, list[str]] = {}
    for place, why in said:
        places.setdefault(why, []).append(place)
    for why, where in list(places.items())[:REASONS]:
        more = f" and {len(where) - 1:,} more" if len(where) > 1 else ""
        show.note(f"{what}: {where[0]}{more}: {why}")
    if len(places) > REASONS:
        rest = sum(len(where) for where in list(places.values())[REASONS:])
        show.note(f"{what}: {rest:,} more for other reasons; --json names each")


def export_command(
    target: Annotated[Path, typer.Argument(help="The file to write, a folder for markdown, or - for standard output.")],
    format: Annotated[
        str | None, typer.Option("--format", "-f", help="json, jsonl or markdown; default: by the file's ending.")
    ] = None,
    active: Annotated[bool, typer.Option("--active", help="Leave out retired and archived memories.")] = False,
    yes: Yes = False,
    redact: Redact = False,
    root: Root = None,
    json: Json = False,
) -> None:
    """Export the memories of the folder; all of these files can be imported again.

    Example: ringtrue memory export backup.json
    Example: ringtrue memory export notes --format markdown --active
    """
    from ringtrue.memory.exporters import FORMATS, TEXTS, records_of, send

    chosen = format or {".json": "json", ".jsonl": "jsonl", ".md": "markdown"}.get(
        target.suffix, "json" if str(target) == "-" else ""
    )
    if not chosen or chosen not in FORMATS:
        hint = f"did you mean {nearest(chosen, FORMATS)}?" if chosen else f"name one with --format: {', '.join(FORMATS)}"
        raise InputError(f"{target}: the format is not known; {hint}")
    folder = found_root(root)
    memories = [
        memory
        for memory in load(folder, settings_of(folder)).memories
        if memory.source == "memory" and (memory.status == "active" or not active)
    ]
    records = records_of(memories, redact=redact)
    if str(target) == "-":
        if chosen == "markdown" or json:
            raise InputError("standard output takes json or jsonl, and no --json beside it; name a file or a folder")
        print(TEXTS[chosen](records), end="")
        return
    written = send(records, target, chosen, overwrite=yes)
    show.end_if_json(json, {"root": folder, "format": chosen, "memories": len(records), "written": written})
    print(f"{target}: {show.counted(len(records), 'memory')} written as {chosen}")
