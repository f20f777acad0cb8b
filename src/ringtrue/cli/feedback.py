"""``ringtrue feedback``: what became of a search, and the judgments that follow from it (F-1 to F-4)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli.store import Json, Where
from ringtrue.errors import InputError, MissingInput

if TYPE_CHECKING:
    from ringtrue.online import Derived
    from ringtrue.store import Store

app = typer.Typer(
    help="Feedback: clicks, reads and verdicts on results, and the judgments that follow from them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Project = Annotated[str, typer.Option("--project", help="Whose log.")]
Since = Annotated[str | None, typer.Option("--since", help="From this time on: 2026-03-01, 2026-03-01T12:00Z, 7d or 12h.")]
Until = Annotated[str | None, typer.Option("--until", help="Up to this time, written likewise.")]
_AGO = re.compile(r"(\d+)\s*([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


@app.command()
def add(
    event_type: Annotated[str, typer.Option("--type", "-t", help="click, selection, read_after_search, validate_useful …")],
    session: Annotated[str, typer.Option("--session", "-s", help="The session it happened in.")],
    item: Annotated[
        str | None, typer.Option("--item", "-i", help="The result it is about; every type but re_search needs one.")
    ] = None,
    query: Annotated[str | None, typer.Option("--query", "-q", help="Id of the search, eq_…; found unless given.")] = None,
    prompt: Annotated[str | None, typer.Option("--prompt", help="Prompt id that the search was logged with.")] = None,
    trace: Annotated[str | None, typer.Option("--trace", help="Trace id that the search was logged with.")] = None,
    actor: Annotated[str, typer.Option("--actor", help="Who did it: person, agent or unknown.")] = "unknown",
    user: Annotated[str | None, typer.Option("--user", help="The user, as in the log.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="When; now unless given.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="How long a dwell took.")] = None,
    event_id: Annotated[str | None, typer.Option("--id", help="An id of your own: the same event is then kept once.")] = None,
    window: Annotated[
        float, typer.Option("--window", help="Minutes after a search that its session's events are about it.")
    ] = 30.0,
    store: Where = None,
    project: Project = "default",
    json: Json = False,
) -> None:
    """Add one event and link it to the search that showed the item.

    \b
    Example: ringtrue feedback add --type click --session s-17 --item faq-12 --actor person
    Example: ringtrue feedback add --type validate_useful --session s-17 --item faq-12 --query eq_20260301120000000000_ab12
    """
    from ringtrue.cli import show
    from ringtrue.online import record_feedback
    from ringtrue.online.identify import event_name
    from ringtrue.store import FeedbackEvent, timestamp

    given = {"prompt_id": prompt, "trace_id": trace, "seconds": seconds}
    event = FeedbackEvent(
        event_id or event_name(f"{session} {item}"),
        event_type,  # type: ignore[arg-type]  # checked before it is written
        session,
        timestamp(at or datetime.now(UTC)),
        project=project,
        query_id=query,
        item_id=item,
        actor=actor,  # type: ignore[arg-type]  # likewise
        user_id=user,
        metadata={name: value for name, value in given.items() if value is not None},
    )
    with existing(store) as opened:
        if query is not None and not opened.queries(project=project, query_ids=[query]):
            raise InputError(f"the log of project '{project}' has no search '{query}'; leave --query out to have it found")
        (added,) = record_feedback(opened, [event], window=timedelta(minutes=window))
    if json:
        show.as_json({"event": added})
        return
    if added.query_id is None:
        print(f"{added.event_id} added, without a search")
        if added.item_id is not None:
            show.note(f"no search of session '{session}' in the {window:g} minutes before had shown '{item}'")
    else:
        rank = f"rank {added.rank_in_results}" if added.rank_in_results > 0 else "not among its results"
        print(f"{added.event_id} added to search {added.query_id}, {rank}")


@app.command()
def derive(
    since: Since = None,
    until: Until = None,
    retriever: Annotated[
        str | None, typer.Option("--retriever", help="Only searches that this retriever answered (its beginning), or newest.")
    ] = None,
    mixed: Annotated[
        str, typer.Option("--mixed", help="Where several retrievers or flag settings answered: refuse, separate or pool.")
    ] = "refuse",
    window: Annotated[
        float, typer.Option("--window", help="Minutes after a search that its session's events are about it.")
    ] = 30.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    store: Where = None,
    project: Project = "default",
    json: Json = False,
) -> None:
    """Derive judgments: selected 2, useful 3, not useful 0; shown and never opened stays unknown.

    A re-run replaces what it derived before for the same queries, and never a judgment by hand.

    \b
    Example: ringtrue feedback derive --since 30d --dry-run
    Example: ringtrue feedback derive --retriever newest
    """
    from ringtrue.cli import show
    from ringtrue.online import derive_into
    from ringtrue.store import timestamp

    now = datetime.now(UTC)
    with existing(store) as opened:
        found = derive_into(
            opened,
            now=timestamp(now),
            project=project,
            since=moment(since, now),
            until=moment(until, now),
            retriever=retriever,
            mixed=mixed,  # type: ignore[arg-type]  # checked there
            window=timedelta(minutes=window),
            dry_run=dry_run,
        )
    if json:
        show.as_json(as_record(found, dry_run=dry_run))
        return
    done = "would be written" if dry_run else "written"
    print(f"{len(found.judgments)} judgments {done}, from {found.searches} searches of {found.queries} different queries")
    if found.judgments:
        print()
        show.table(["source", "judgments"], [[name, str(count)] for name, count in found.by_source.items()])
    print(f"\nunknown: {len(found.unknown)} results were shown and never opened; they stay unjudged")
    for annotator, curve in found.examinations.items():
        shares = " ".join(f"{share:.2f}" for share in curve.by_rank[:10])
        show.note(
            f"{annotator}: position bias {curve.method}; looks by rank {shares}" + (f" ({curve.why})" if curve.why else "")
        )
    for why, count in found.left.items():
        show.note(f"{count} events gave no judgment: {why}")
    if "unknown retriever" in found.variants:
        show.note("some searches were logged without a retriever: before and after a change cannot be told apart there")


def as_record(found: Derived, *, dry_run: bool) -> dict[str, Any]:
    """Return what was derived as the JSON object has it."""
    return {
        "dry_run": dry_run,
        "judgments": len(found.judgments),
        "by_source": found.by_source,
        "unknown": len(found.unknown),
        "left": found.left,
        "searches": found.searches,
        "queries": found.queries,
        "variants": found.variants,
        "examination": found.examinations,
    }


def moment(text: str | None, now: datetime) -> str | None:
    """Return a time as the store has it; ``7d`` is seven days before ``now``. Raises InputError for what is no time.

    >>> moment("12h", datetime(2026, 3, 2, tzinfo=UTC))
    '2026-03-01T12:00:00.000000Z'
    """
    from ringtrue.store import timestamp

    if text is None:
        return None
    ago = _AGO.fullmatch(text.strip())
    return timestamp(now - timedelta(**{_UNITS[ago[2]]: int(ago[1])}) if ago else text)


def existing(place: str | None) -> Store:
    """Return an open store; raises MissingInput where there is none: feedback needs searches that were logged."""
    from ringtrue.store import Store

    file = Store.place(place).sqlite
    if file is not None and not file.exists():
        raise MissingInput(f"{file}: there is no store yet; it is made by the first logged search, or name one: --store URL")
    return Store.open(place)
