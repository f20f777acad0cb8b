"""``ringtrue feedback``: what became of a search, and the judgments and trigger phrases that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import StoreOptions, Who, Window, command_group, moment, person, utc_now
from ringtrue.cli.search import opened
from ringtrue.errors import InputError, check_choice

app = command_group("Record clicks and other signals, and derive judgments.")
Minutes = Annotated[float, typer.Option(help="How long after a search an event still counts towards it, in minutes.")]


@app.command()
def add(
    *,
    event_type: Annotated[str, typer.Option("--type", "-t", help="click, selection, read_after_search, validate_useful …")],
    session: Annotated[str, typer.Option("--session", "-s", help="The session it happened in.")],
    item: Annotated[str | None, typer.Option("--item", "-i", help="The result; every type but re_search needs one.")] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", "-q", help="Id of the search, eq_…; default: found from the session and the result."),
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="Prompt id that the search was logged with.")] = None,
    trace: Annotated[str | None, typer.Option(help="Trace id that the search was logged with.")] = None,
    actor: Annotated[str, typer.Option(help="Who acted: person, agent or unknown.")] = "unknown",
    user: Annotated[str | None, typer.Option(help="The user, as in the log.")] = None,
    at: Annotated[str | None, typer.Option(help="Time of the event; default: now.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Length of a dwell, in seconds.")] = None,
    event_id: Annotated[
        str | None, typer.Option("--id", help="Your own id for the event, so that it is stored only once.")
    ] = None,
    window: Minutes = 30.0,
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
        lib.store.timestamp(at or utc_now()),
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
    rank = f"rank {added.rank_in_results}" if added.rank_in_results > 0 else "not among its results"
    linked = added.query_id is not None
    missing = f"no search of session '{session}' in the {window:g} minutes before had shown '{item}'"
    said = f"{added.event_id} added " + (f"to search {added.query_id}, {rank}" if linked else "without a search")
    show.result(options.json, {"event": added}, said, notes=[missing] * (not linked and added.item_id is not None))


@app.command("list")
def list_events(
    *,
    count: Annotated[int, typer.Option("-n", min=1, help="Number of events.")] = 20,
    window: Window,
    event_type: Annotated[list[str] | None, typer.Option("--type", "-t", help="Only events of this type.")] = None,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only events of this session.")] = None,
    query: Annotated[list[str] | None, typer.Option("--query", "-q", help="Only events of the search with this id.")] = None,
    options: StoreOptions,
) -> None:
    """Show the latest events, newest last.

    Example: ringtrue feedback list --since 24h --type click --type selection
    Example: ringtrue feedback list --session s-17 --json
    """
    for name in event_type or ():
        check_choice(name, get_args(lib.answers.EventType), f"there is no event type '{name}'")
    chosen: dict[str, Any] = {"session_id": session, "query_ids": query, "kinds": event_type, **window.of(utc_now())}
    with options.existing_with_data() as opened:
        found = opened.feedback(project=options.project, limit=count, newest=True, **chosen)
    rows = [
        [
            show.time_of(one.created_at), one.event_type, one.actor, one.session_id, one.item_id, one.query_id,
            one.rank_in_results if one.rank_in_results > 0 else None,
        ]
        for one in found
    ]  # fmt: skip
    table = show.Table(("time (UTC)", "type", "who", "session", "item", "search", "rank"), rows, 6)
    show.result(options.json, {"project": options.project, "events": found}, table)


@app.command()
def judgments(
    *,
    count: Annotated[int, typer.Option("-n", min=1, help="Number of judgments.")] = 20,
    source: Annotated[
        str | None, typer.Option(help="Only judgments from this source: manual, validated, implicit or bootstrapped.")
    ] = None,
    query: Annotated[list[str] | None, typer.Option("--query", "-q", help="Only judgments of this query id.")] = None,
    item: Annotated[str | None, typer.Option("--item", "-i", help="Only judgments of this item.")] = None,
    options: StoreOptions,
) -> None:
    """Show the judgments in the store, derived and manual, newest last.

    Example: ringtrue feedback judgments --source implicit
    Example: ringtrue feedback judgments --item faq-12 --json
    """
    check_choice(source, get_args(lib.answers.JudgmentSource), f"there is no source '{source}'")
    with options.existing_with_data() as opened:
        found = opened.judgments(project=options.project, query_ids=query, source=source)  # type: ignore[arg-type]  # checked above
    wanted = [one for one in found if item is None or one.item_id == item]
    shown = sorted(wanted, key=lambda one: (one.created_at, one.query_id, one.item_id))[-count:]
    rows = [
        [
            show.time_of(one.created_at), one.source, one.annotator or "—", one.query_id,
            str(one.metadata.get("query") or "—")[:48], one.item_id, one.relevance, show.number(one.confidence, 2),
        ]
        for one in shown
    ]  # fmt: skip
    older = f"{len(wanted) - len(shown):,} older ones are not shown; -n shows more"
    show.result(
        options.json,
        {"project": options.project, "total": len(wanted), "judgments": shown},
        show.Table(("time (UTC)", "source", "by", "search", "words", "item", "grade", "confidence"), rows, 6),
        notes=[older] * (len(wanted) > len(shown)),
    )


@app.command()
def derive(
    *,
    between: Window,
    retriever: Annotated[
        str | None, typer.Option(help="Only searches answered by this retriever (a prefix of its name), or newest.")
    ] = None,
    mixed: Annotated[
        str, typer.Option(help="If several retrievers or settings answered: refuse, separate or pool.")
    ] = "refuse",
    window: Minutes = 30.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be written, without writing it.")] = False,
    options: StoreOptions,
) -> None:
    """Derive judgments from events: selected 2, useful 3, not useful 0. Results that nobody opened stay unjudged.

    Running it again replaces its earlier judgments of the same queries, never manual ones.

    Example: ringtrue feedback derive --since 30d --dry-run
    Example: ringtrue feedback derive --retriever newest
    """
    now = utc_now()
    with options.existing() as opened:
        chosen: dict[str, Any] = {"retriever": retriever, "mixed": mixed, "dry_run": dry_run, **between.of(now)}
        found = lib.feedback.derive_into(
            opened, now=lib.store.timestamp(now), project=options.project, window=timedelta(minutes=window), **chosen
        )
    record = {"dry_run": dry_run, "judgments": len(found.judgments), "unknown": len(found.unknown)}
    record |= show.pick(found, "by_source", "left", "searches", "queries", "variants")
    notes = [
        f"{annotator}: position bias {curve.method}; looks by rank {' '.join(f'{share:.2f}' for share in curve.by_rank[:10])}"
        + (f" ({curve.why})" if curve.why else "")
        for annotator, curve in found.examinations.items()
    ]
    notes += [f"{show.counted(number, 'event')} gave no judgment: {why}" for why, number in found.left.items()]
    unknown = "some searches were logged without a retriever: before and after a change cannot be told apart there"
    notes += [unknown] * ("unknown retriever" in found.variants)
    done = "would be written" if dry_run else "written"
    show.result(
        options.json,
        {**record, "examination": found.examinations},
        f"{len(found.judgments)} judgments {done}, from {found.searches} searches of {found.queries} different queries",
        show.Table(("source", "judgments"), found.by_source.items() if found.judgments else ()),
        f"\nunknown: {len(found.unknown)} results were shown and never opened; they stay unjudged",
        notes=notes,
    )


@app.command()
def learn(
    *,
    window: Window,
    folder: Annotated[
        Path | None, typer.Option("--in", help="Folder made by ringtrue ingest; its created_at fields give the age of items.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be learned, without writing it.")] = False,
    options: StoreOptions,
) -> None:
    """Learn trigger phrases from selections: words of a query become phrases that trigger the selected item.

    A phrase becomes active after a shadow period of 7 days and expires 30 days after the last selection that confirmed it. The
    age of an item is that of its document, or of the first logged search that showed it. You can run it repeatedly.

    Example: ringtrue feedback learn --since 7d --dry-run
    Example: ringtrue feedback learn --since 7d --in .ringtrue/index
    """
    now = utc_now()
    facts = {} if folder is None else opened(folder).metadata()
    with options.existing() as store:
        lessons = lib.feedback.learn_from_log(
            store,
            now=now,
            **window.of(now),
            created_at=lambda item_id: _date(facts.get(item_id, {}).get("created_at")),
            own_phrases=lambda item_id: _texts(facts.get(item_id, {}).get("triggers")),
            project=options.project,
            dry_run=dry_run,
        )
    entries = [entry for _, lesson in lessons for entry in lesson.entries]
    refused = Counter(lesson.refused for _, lesson in lessons if lesson.refused)
    done = "would be learned or confirmed" if dry_run else "learned or confirmed"
    rows = [[entry.subject, entry.detail["phrase"], entry.what.removeprefix("trigger ")] for entry in entries]
    show.result(
        options.json,
        {"dry_run": dry_run, "selections": len(lessons), "entries": entries, "refused": dict(refused)},
        f"{show.counted(len(entries), 'phrase')} {done}, from {show.counted(len(lessons), 'selection')}",
        show.Table(("item", "phrase", ""), rows, 3),
        notes=[f"{show.counted(number, 'selection')} taught nothing: {why}" for why, number in sorted(refused.items())],
    )


@app.command()
def phrases(
    *,
    history: Annotated[
        bool, typer.Option("--audit", help="Show the history instead: phrases learned, confirmed and withdrawn.")
    ] = False,
    options: StoreOptions,
) -> None:
    """Show the learned phrases: which item each one triggers, and whether it is active yet.

    Example: ringtrue feedback phrases
    Example: ringtrue feedback phrases --audit
    """
    if history:
        with options.existing() as opened:
            entries = lib.feedback.trigger_log(opened, project=options.project)
        cells = [[e.at[:19], e.what.removeprefix("trigger "), e.subject, _worded(e.detail), e.who] for e in entries]
        table = show.Table(("time (UTC)", "", "item", "phrases", "who"), cells, 5)
        show.result(options.json, {"entries": entries}, table)
        return
    with options.existing() as opened:
        found = lib.feedback.standing_phrases(opened, now=utc_now(), project=options.project)
    listed = [{**show.plain(one.phrase), "state": one.state, **show.pick(one.rehearsal, "called", "chosen")} for one in found]
    rows = []
    for one in found:
        days = [at[:10] for at in (one.phrase.learned_at, one.phrase.confirmed_at)]
        rows.append([one.phrase.item_id, one.phrase.phrase, one.state, *days, one.rehearsal.called, one.rehearsal.chosen])
    table = show.Table(("item", "phrase", "state", "learned", "confirmed", "called", "chosen"), rows, 5)
    show.result(options.json, {"phrases": listed}, table)


@app.command()
def rollback(
    *,
    why: Annotated[str, typer.Option(help="The reason, for the audit trail.")],
    item: Annotated[str | None, typer.Option("--item", "-i", help="Only phrases of this item.")] = None,
    phrase: Annotated[str | None, typer.Option(help="Only this phrase.")] = None,
    since: Annotated[str | None, typer.Option(help="Only phrases learned since this time.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All learned phrases.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, without removing it.")] = False,
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Withdraw learned phrases: they stop triggering the item and are not learned for it again.

    Example: ringtrue feedback rollback --item faq-12 --phrase 'late checkout' --why misleading
    Example: ringtrue feedback rollback --since 2d --why 'a robot clicked' --dry-run
    """
    if everything == bool(item or phrase or since):
        raise InputError("choose what to withdraw: --item, --phrase or --since, or --all for everything")
    now = utc_now()
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
    count = show.counted(sum(len(entry.detail["phrases"]) for entry in entries), "phrase")
    said = f"{count} of {show.counted(len(entries), 'item')} {'would be ' if dry_run else ''}withdrawn"
    lines = (f"  {entry.subject}: {_worded(entry.detail)}" for entry in entries)
    show.result(options.json, {"dry_run": dry_run, "entries": entries}, said, *lines)


def _worded(detail: Mapping[str, Any]) -> str:
    return ", ".join(detail["phrases"]) + f" ({detail['why']})" if "phrases" in detail else str(detail.get("phrase", ""))


def _date(value: Any) -> str | None:
    """Return the date of a document, None if it has none; raises InputError for an invalid date."""
    return None if value is None else lib.store.timestamp(value if isinstance(value, datetime) else str(value))


def _texts(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else [str(text) for text in value]


LISTED = 50
DERIVED = ("re_search_rate", "selected_rate", "turns_per_search")


def sessions_command(
    *,
    window: Window,
    outcomes: Annotated[
        Path | None, typer.Option(help="Outcomes of tasks, as JSON lines: session_id, learning_index …")
    ] = None,
    source: Annotated[list[str] | None, typer.Option(help="Source of the judgments for the mean RR; default: manual.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap intervals.")] = 0,
    options: StoreOptions,
) -> None:
    """Summarise sessions and how their tasks ended.

    Shows how searches correlate with the outcomes of tasks. Outcomes come from the store (`ringtrue memory sync` adds those of
    the agent memory) and from --outcomes, which takes precedence.

    Example: ringtrue sessions --since 7d
    Example: ringtrue sessions --outcomes tasks.jsonl --json
    """
    import numpy as np

    sources: list[Any] = source or ["manual"]
    for name in sources:
        check_choice(name, get_args(lib.answers.JudgmentSource), f"there is no source '{name}'")
    given = [] if outcomes is None else list(read_outcomes(outcomes))
    ends = window.of(utc_now())
    with options.existing() as opened:
        searches = opened.queries(project=options.project, **ends)
        events = opened.feedback(project=options.project, **ends)
        judged = [one for name in sources for one in opened.judgments(project=options.project, source=name)]
        stored = lib.feedback.stored_outcomes(opened, project=options.project, since=ends["since"])
    told = {one.session_id for one in given}
    known = [*given, *(one for one in stored if one.session_id not in told)]
    found = lib.feedback.session_summaries(searches, events, judgments=judged, outcomes=known)
    related = lib.feedback.correlations(found, rng=np.random.default_rng(seed))
    strangers = sorted(told - {one.session_id for one in found})
    belong = show.counted(len(strangers), "outcome belongs", "outcomes belong")
    implied = set(sources) & {"implicit", "validated"}
    variants = {variant for one in found for variant in one.variants}
    notes = {
        f"project '{options.project}' has no session in this window": not found,
        f"the newest {LISTED} of {len(found)} sessions are listed; --json has all": len(found) > LISTED,
        f"{belong} to no session of this window: {', '.join(strangers[:5])}": strangers,
        "implicit and validated judgments come from sessions like these: the mean RR then says where people chose": implied,
        "several retrievers or flag settings answered in this window; use --since to separate them": len(variants) > 1,
    }
    headers = ("session", "started", "searches", "selected", "validated", "re-search", "items", "turns/search", "minutes")
    record = {"sessions": [{**asdict(one), **show.pick(one, *DERIVED)} for one in found], "correlations": related}
    show.result(
        options.json,
        record | {"outcomes_without_session": strangers},
        show.Table((*headers, "mean RR", "learning"), map(_session_row, found[-LISTED:]), 2),
        show.Table(("search", "outcome", "sessions", "rho", "95 % interval"), map(_correlation_row, related), 2),
        notes=[text for text, holds in notes.items() if holds],
    )


def _session_row(one: lib.feedback.SessionSummary) -> list[object]:
    rates = [show.number(one.re_search_rate, 2), one.items_accessed, show.number(one.turns_per_search, 2)]
    learned = None if one.outcome is None else one.outcome.learning_index
    known = [show.number(one.duration_minutes, 1), show.number(one.mean_rr, 3), show.number(learned, 2)]
    return [one.session_id, one.started_at[:16], one.queries, one.selected, one.validated, *rates, *known]


def _correlation_row(pair: lib.feedback.Correlation) -> list[object]:
    interval = pair.why if pair.low is None else f"{show.number(pair.low, 2)} to {show.number(pair.high, 2)}"
    return [pair.quality, pair.outcome, pair.sessions, show.number(pair.rho, 2), interval]


def read_outcomes(path: Path) -> Iterator[lib.feedback.TaskOutcome]:
    """Yield the outcomes of a file of JSON lines; raises InputError naming file, line and value."""
    for place, row in lib.formats.rows_of(path, "jsonl"):
        if not isinstance(row.get("session_id"), str):
            raise InputError(f"{place}: has no session_id; write {{'session_id': 's-1', 'learning_index': 0.4}}")
        figures = (row.get(name) for name in lib.feedback.OUTCOMES)
        try:
            yield lib.feedback.TaskOutcome(row["session_id"], str(row.get("task_id", "")), *figures)
        except InputError as problem:
            raise InputError(f"{place}: {problem}") from None
