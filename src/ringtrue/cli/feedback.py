"""``ringtrue feedback``: what became of a search, and the judgments and trigger phrases that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Since, StoreOptions, Until, Who, command_group, moment, person
from ringtrue.cli.search import opened
from ringtrue.errors import InputError, nearest

app = command_group("Record clicks and other signals, and derive judgments.")


@app.command()
def add(
    *,
    event_type: Annotated[str, typer.Option("--type", "-t", help="click, selection, read_after_search, validate_useful …")],
    session: Annotated[str, typer.Option("--session", "-s", help="The session it happened in.")],
    item: Annotated[str | None, typer.Option("--item", "-i", help="The result; every type but re_search needs one.")] = None,
    query: Annotated[str | None, typer.Option("--query", "-q", help="Id of the search, eq_…; found unless given.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Prompt id that the search was logged with.")] = None,
    trace: Annotated[str | None, typer.Option(help="Trace id that the search was logged with.")] = None,
    actor: Annotated[str, typer.Option(help="Who did it: person, agent or unknown.")] = "unknown",
    user: Annotated[str | None, typer.Option(help="The user, as in the log.")] = None,
    at: Annotated[str | None, typer.Option(help="When; now unless given.")] = None,
    seconds: Annotated[float | None, typer.Option(help="How long a dwell took.")] = None,
    event_id: Annotated[str | None, typer.Option("--id", help="An id of your own: the same event is then kept once.")] = None,
    window: Annotated[float, typer.Option(help="How long after a search an event still counts towards it, in minutes.")] = 30.0,
    options: StoreOptions,
) -> None:
    """Add one event and link it to the search that showed the item.

    Example: ringtrue feedback add --type click --session s-17 --item faq-12 --actor person
    Example: ringtrue feedback add --type validate_useful --session s-17 --item faq-12 --query eq_20260301120000000000_ab12
    """
    given = {"prompt_id": prompt, "trace_id": trace, "seconds": seconds}
    event = lib.store.FeedbackEvent(
        event_id or lib.log.event_name(f"{session} {item}"),
        event_type,  # type: ignore[arg-type]  # checked before it is written
        session,
        lib.store.timestamp(at or datetime.now(UTC)),
        project=options.project,
        query_id=query,
        item_id=item,
        actor=actor,  # type: ignore[arg-type]  # likewise
        user_id=user,
        metadata={name: value for name, value in given.items() if value is not None},
    )
    with options.existing() as opened:
        if query is not None and not opened.queries(project=options.project, query_ids=[query]):
            raise InputError(
                f"the log of project '{options.project}' has no search '{query}'; leave --query out to have it found"
            )
        (added,) = lib.log.record_feedback(opened, [event], window=timedelta(minutes=window))
    show.end_if_json(options.json, {"event": added})
    if added.query_id is None:
        print(f"{added.event_id} added, without a search")
        if added.item_id is not None:
            show.note(f"no search of session '{session}' in the {window:g} minutes before had shown '{item}'")
    else:
        rank = f"rank {added.rank_in_results}" if added.rank_in_results > 0 else "not among its results"
        print(f"{added.event_id} added to search {added.query_id}, {rank}")


@app.command("list")
def list_events(
    *,
    count: Annotated[int, typer.Option("-n", min=1, help="How many, the newest.")] = 20,
    since: Since = None,
    until: Until = None,
    event_type: Annotated[list[str] | None, typer.Option("--type", "-t", help="Only of this type.")] = None,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only of this session.")] = None,
    query: Annotated[list[str] | None, typer.Option("--query", "-q", help="Only of the search of this id.")] = None,
    options: StoreOptions,
) -> None:
    """Show the last events, the newest at the end.

    Example: ringtrue feedback list --since 24h --type click --type selection
    Example: ringtrue feedback list --session s-17 --json
    """
    for name in event_type or ():
        if name not in get_args(lib.answers.EventType):
            raise InputError(f"there is no event type '{name}'; did you mean {nearest(name, get_args(lib.answers.EventType))}?")
    now = datetime.now(UTC)
    with options.existing_with_data() as opened:
        found = opened.feedback(
            project=options.project,
            since=moment(since, now),
            until=moment(until, now),
            session_id=session,
            query_ids=query,
            kinds=event_type,  # type: ignore[arg-type]  # checked above
            limit=count,
            newest=True,
        )
    show.end_if_json(options.json, {"project": options.project, "events": found})
    rows = [
        [
            one.created_at[:19].replace("T", " "), one.event_type, one.actor, one.session_id, one.item_id or "—",
            one.query_id or "—", str(one.rank_in_results) if one.rank_in_results > 0 else "—",
        ]
        for one in found
    ]  # fmt: skip
    show.table(["time (UTC)", "type", "who", "session", "item", "search", "rank"], rows, text_columns=6)


@app.command()
def judgments(
    *,
    count: Annotated[int, typer.Option("-n", min=1, help="How many, the newest.")] = 20,
    source: Annotated[str | None, typer.Option(help="Only of: manual, validated, implicit, bootstrapped.")] = None,
    query: Annotated[list[str] | None, typer.Option("--query", "-q", help="Only under this query id.")] = None,
    item: Annotated[str | None, typer.Option("--item", "-i", help="Only of this item.")] = None,
    options: StoreOptions,
) -> None:
    """Show the judgments in the store, derived and by hand, the newest at the end.

    Example: ringtrue feedback judgments --source implicit
    Example: ringtrue feedback judgments --item faq-12 --json
    """
    if source is not None and source not in get_args(lib.answers.JudgmentSource):
        raise InputError(
            f"there is no source '{source}'; did you mean {nearest(source, get_args(lib.answers.JudgmentSource))}?"
        )
    with options.existing_with_data() as opened:
        found = opened.judgments(project=options.project, query_ids=query, source=source)  # type: ignore[arg-type]  # checked above
    wanted = [one for one in found if item is None or one.item_id == item]
    shown = sorted(wanted, key=lambda one: (one.created_at, one.query_id, one.item_id))[-count:]
    show.end_if_json(options.json, {"project": options.project, "total": len(wanted), "judgments": shown})
    rows = [
        [
            one.created_at[:19].replace("T", " "), one.source, one.annotator or "—", one.query_id,
            str(one.metadata.get("query") or "—")[:48], one.item_id, one.relevance, show.number(one.confidence, 2),
        ]
        for one in shown
    ]  # fmt: skip
    show.table(["time (UTC)", "source", "by", "search", "words", "item", "grade", "confidence"], rows, text_columns=6)
    if len(wanted) > len(shown):
        show.note(f"{len(wanted) - len(shown):,} older ones are not shown; -n shows more")


@app.command()
def derive(
    *,
    since: Since = None,
    until: Until = None,
    retriever: Annotated[str | None, typer.Option(help="Only searches answered by this one (a prefix), or newest.")] = None,
    mixed: Annotated[str, typer.Option(help="If several retrievers or settings answered: refuse, separate, pool.")] = "refuse",
    window: Annotated[float, typer.Option(help="How long after a search an event still counts towards it, in minutes.")] = 30.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    options: StoreOptions,
) -> None:
    """Derive judgments: selected 2, useful 3, not useful 0; shown and never opened stays unknown.

    A re-run replaces what it derived before for the same queries, and never a judgment by hand.

    Example: ringtrue feedback derive --since 30d --dry-run
    Example: ringtrue feedback derive --retriever newest
    """
    now = datetime.now(UTC)
    with options.existing() as opened:
        found = lib.feedback.derive_into(
            opened,
            now=lib.store.timestamp(now),
            project=options.project,
            since=moment(since, now),
            until=moment(until, now),
            retriever=retriever,
            mixed=mixed,  # type: ignore[arg-type]  # checked there
            window=timedelta(minutes=window),
            dry_run=dry_run,
        )
    show.end_if_json(options.json, as_record(found, dry_run=dry_run))
    done = "would be written" if dry_run else "written"
    print(f"{len(found.judgments)} judgments {done}, from {found.searches} searches of {found.queries} different queries")
    if found.judgments:
        print()
        show.table(["source", "judgments"], [[name, count] for name, count in found.by_source.items()])
    print(f"\nunknown: {len(found.unknown)} results were shown and never opened; they stay unjudged")
    for annotator, curve in found.examinations.items():
        shares = " ".join(f"{share:.2f}" for share in curve.by_rank[:10])
        show.note(
            f"{annotator}: position bias {curve.method}; looks by rank {shares}" + (f" ({curve.why})" if curve.why else "")
        )
    for why, count in found.left.items():
        show.note(f"{show.counted(count, 'event')} gave no judgment: {why}")
    if "unknown retriever" in found.variants:
        show.note("some searches were logged without a retriever: before and after a change cannot be told apart there")


@app.command()
def learn(
    *,
    since: Since = None,
    until: Until = None,
    folder: Annotated[
        Path | None, typer.Option("--in", help="Folder made by ringtrue ingest; its created_at tells the items' age.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be learned, and write nothing.")] = False,
    options: StoreOptions,
) -> None:
    """Learn from selections: words of a query become trigger phrases of the item that was chosen.

    A phrase serves after 7 days of rehearsal and expires 30 days after the last selection that confirmed it. An item whose age
    is not known otherwise is as old as the first logged search that showed it. Doing it again learns nothing twice.

    Example: ringtrue feedback learn --since 7d --dry-run
    Example: ringtrue feedback learn --since 7d --in .ringtrue/index
    """
    now = datetime.now(UTC)
    facts = _facts(folder)
    with options.existing() as opened:
        lessons = lib.feedback.learn_from_log(
            opened,
            now=now,
            since=moment(since, now),
            until=moment(until, now),
            created_at=lambda item_id: _date(facts.get(item_id, {}).get("created_at")),
            own_phrases=lambda item_id: _texts(facts.get(item_id, {}).get("triggers")),
            project=options.project,
            dry_run=dry_run,
        )
    entries = [entry for _, lesson in lessons for entry in lesson.entries]
    refused = Counter(lesson.refused for _, lesson in lessons if lesson.refused)
    show.end_if_json(
        options.json, {"dry_run": dry_run, "selections": len(lessons), "entries": entries, "refused": dict(refused)}
    )
    done = "would be learned or confirmed" if dry_run else "learned or confirmed"
    print(f"{show.counted(len(entries), 'phrase')} {done}, from {show.counted(len(lessons), 'selection')}")
    if entries:
        print()
        rows = [[entry.subject, entry.detail["phrase"], entry.what.removeprefix("trigger ")] for entry in entries]
        show.table(["item", "phrase", ""], rows, text_columns=3)
    for why, count in sorted(refused.items()):
        show.note(f"{show.counted(count, 'selection')} taught nothing: {why}")


@app.command()
def phrases(
    *,
    history: Annotated[bool, typer.Option("--audit", help="Instead, what was learned, confirmed and taken back.")] = False,
    options: StoreOptions,
) -> None:
    """Show what was learned from selections: which phrases call which item, and whether they serve already.

    Example: ringtrue feedback phrases
    Example: ringtrue feedback phrases --audit
    """
    with options.existing() as opened:
        if history:
            entries = lib.feedback.trigger_log(opened, project=options.project)
        else:
            found = lib.feedback.standing_phrases(opened, now=datetime.now(UTC), project=options.project)
    if history:
        show.end_if_json(options.json, {"entries": entries})
        cells = [[e.at[:19], e.what.removeprefix("trigger "), e.subject, _worded(e.detail), e.who] for e in entries]
        show.table(["time (UTC)", "", "item", "phrases", "who"], cells, text_columns=5)
        return
    show.end_if_json(options.json, {
            "phrases": [
                {**show.plain(one.phrase), "state": one.state, "called": one.rehearsal.called, "chosen": one.rehearsal.chosen}
                for one in found
            ]
        })  # fmt: skip
    rows = [
        [one.phrase.item_id, one.phrase.phrase, one.state, one.phrase.learned_at[:10], one.phrase.confirmed_at[:10],
         one.rehearsal.called, one.rehearsal.chosen]
        for one in found
    ]  # fmt: skip
    show.table(["item", "phrase", "state", "learned", "confirmed", "called", "chosen"], rows, text_columns=5)


@app.command()
def rollback(
    *,
    why: Annotated[str, typer.Option(help="The reason, for the audit trail.")],
    item: Annotated[str | None, typer.Option("--item", "-i", help="Only phrases of this item.")] = None,
    phrase: Annotated[str | None, typer.Option(help="Only this phrase.")] = None,
    since: Annotated[str | None, typer.Option(help="Only what was learned from this time on.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that was learned.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be taken back, and write nothing.")] = False,
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Take learned phrases back; they call nothing from now on and are not learned again for the item.

    Example: ringtrue feedback rollback --item faq-12 --phrase 'late checkout' --why misleading
    Example: ringtrue feedback rollback --since 2d --why 'a robot clicked' --dry-run
    """
    if everything == bool(item or phrase or since):
        raise InputError("say what to take back: --item, --phrase or --since, or --all without them")
    now = datetime.now(UTC)
    start = moment(since, now)
    with options.existing() as opened:
        entries = lib.feedback.roll_back_triggers(
            lib.feedback.trigger_log(opened, project=options.project),
            now=now,
            who=person(who),
            why=why,
            item_id=item,
            phrase=phrase,
            since=None if start is None else datetime.fromisoformat(start),
        )
        for entry in () if dry_run else entries:
            opened.add_audit(entry)
    show.end_if_json(options.json, {"dry_run": dry_run, "entries": entries})
    count = sum(len(entry.detail["phrases"]) for entry in entries)
    print(f"{show.counted(count, 'phrase')} of {show.counted(len(entries), 'item')} {'would be ' if dry_run else ''}taken back")
    for entry in entries:
        print(f"  {entry.subject}: {_worded(entry.detail)}")


def _worded(detail: Mapping[str, Any]) -> str:
    return ", ".join(detail["phrases"]) + f" ({detail['why']})" if "phrases" in detail else str(detail.get("phrase", ""))


def _facts(folder: Path | None) -> Mapping[str, Mapping[str, Any]]:
    if folder is None:
        return {}
    return opened(folder).metadata()


def _date(value: Any) -> str | None:
    """Return the date of a document, None if it has none; raises InputError for an invalid date."""
    return None if value is None else lib.store.timestamp(value if isinstance(value, datetime) else str(value))


def _texts(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else [str(text) for text in value]


def as_record(found: lib.feedback.Derived, *, dry_run: bool) -> dict[str, Any]:
    """Return what was derived as the JSON object has it."""
    return {
        "dry_run": dry_run,
        "judgments": len(found.judgments),
        "unknown": len(found.unknown),
        **show.pick(found, "by_source", "left", "searches", "queries", "variants"),
        "examination": found.examinations,
    }
