"""``ringtrue log``: what was searched, in lines and in numbers; other systems' logs in, ours out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import (
    AGO,
    UNITS,
    Json,
    Since,
    StoreOptions,
    StoreUrl,
    Until,
    Window,
    columns_of,
    command_group,
    moment,
    utc_now,
)
from ringtrue.errors import InputError, check_choice
from ringtrue.traffic import KINDS, kind_of

if TYPE_CHECKING:
    from ringtrue.traffic import Traffic

app = command_group("Show, import, export and prune logged searches.")
OVERLAP = 15
"""Seconds that --follow looks back: batches of several processes may be written later than they happened."""
PAUSE = 0.5
Whose = Annotated[str, typer.Option("--traffic", help="Origin of the searches: user, evaluation, gate, shadow, test, or all.")]
Tool = Annotated[str | None, typer.Option("--tool", help="Only searches of this tool or surface.")]
Files = Annotated[list[str], typer.Argument(help="JSON records or query lists (.csv, .tsv, .txt), also .gz; - is stdin.")]
Kind = Annotated[str, typer.Option("--from", help="spans (OTLP/JSON, OpenInference), ubi, ringtrue or queries (a list).")]
Actions = Annotated[
    list[str] | None, typer.Option("--action", help="Map a UBI action to an event type: sample_order=selection.")
]
Columns = Annotated[str, typer.Option("--columns", help="Map columns of a query list: query=term,count=hits,time=day.")]


@app.command()
def tail(
    *,
    count: Annotated[int, typer.Option("-n", min=1, help="Number of searches.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new searches until stopped.")] = False,
    tool: Tool = None,
    session: Annotated[str | None, typer.Option(help="Only searches of this session.")] = None,
    traffic: Whose = "user",
    options: StoreOptions,
) -> None:
    """Show the latest searches, newest last.

    By default these are users' searches; --traffic selects those of evaluations, gates, shadow runs or tests. With --follow
    and --json, prints one object per line.

    Example: ringtrue log tail -n 5
    Example: ringtrue log tail -f --tool shop
    """
    chosen: dict[str, Any] = {"project": options.project, "tool": tool, "session_id": session, "traffic": _traffic(traffic)}
    with options.existing_with_data() as opened:
        found = opened.queries(**chosen, limit=count, newest=True)
        if follow:
            for row in _following(opened, found, **chosen):
                print(lib.log.line_of(row) if options.json else "  ".join(_cells_of(row)), flush=True)
            return
    asked = {"--tool": tool, "--session": session, "--traffic": None if traffic == "all" else traffic}
    filters = " ".join(f"{name} {value}" for name, value in asked.items() if value)
    missing = f"no search of project '{options.project}' matches {filters}; --traffic all shows every search"
    show.result(
        options.json,
        {"project": options.project, "searches": found},
        show.Table(("time (UTC)", "tool", "session", "query", "first results", "results", "ms"), map(_cells_of, found), 5),
        notes=[] if found else [missing],
    )


@app.command()
def stats(
    *,
    since: Since = "7d",
    until: Until = None,
    tool: Tool = None,
    traffic: Whose = "user",
    options: StoreOptions,
) -> None:
    """Show statistics of the log: volume, latency, searches without results, and what is missing from the log.

    The proxy is a health figure computed from a search's own scores and latency (docs/log.md); it does not measure quality.

    Example: ringtrue log stats --since 24h
    Example: ringtrue log stats --since 2026-03-01 --until 2026-04-01 --json
    """
    start, end = moment(since, utc_now()), moment(until, utc_now())
    chosen: dict[str, Any] = {"project": options.project, "tool": tool, "traffic": _traffic(traffic)}
    with options.existing_with_data() as opened:
        found = lib.log.log_figures(lib.log.queries_of(opened, since=start, until=end, **chosen))
        ever = opened.count_queries(**chosen)
        missing = lib.log.losses(opened, project=options.project, since=start)
        folder = lib.log.log_folder(opened)
    now, ended = lib.log.living(folder) if folder is not None else ([], [])
    waiting, unsettled = (sum(counts.waiting for counts in some) for some in (now, ended))
    unreported = sum(counts.untold.total for counts in now)
    processes = {"logging": len(now), "waiting": waiting, "dropped_or_refused_since": unreported}
    processes |= {"ended_unsettled": len(ended), "unsettled": unsettled}
    record = {"project": options.project, "traffic": traffic, "since": start, "until": end, "missing": missing}
    figures = show.pick(found, "first", "last", "total", "tools", "intents")
    total, number = found.total, "{:,}".format
    table = [["all", *_cells(total)], *([name, *_cells(part)] for name, part in found.tools.items())]
    headers = ("tool", "searches", "sessions", "errors", "nothing found", "degraded", "p50 ms", "p95 ms", "p99 ms", "proxy")
    causes = f"{missing.lost:,} lost with a process, {missing.dropped:,} dropped, {missing.refused:,} refused"
    logging, stopped = (show.counted(len(some), "process", "processes") for some in (now, ended))
    notes = {
        f"{stopped} ended without closing; up to {unsettled:,} events are lost, the next start settles it": ended,
        f"the proxy is known for {total.with_proxy:,} of {total.searches:,} searches: scores in [0, 1] only": (
            total.searches and total.with_proxy < total.searches - total.errors
        ),
    }
    longer = "; --since takes a longer time" if total.searches < ever else ""
    show.result(
        options.json,
        {**record, **figures, "processes": processes},
        f"{_span(since, start, end)}: {total.searches:,} of {ever:,} searches{longer}",
        show.Table(headers, table),
        show.Table(("intent", "searches"), [[name, number(count)] for name, count in found.intents.items()]),
        f"missing from the log: {missing.total:,} ({causes})",
        *(f"  refused, {why}: {number(count)}" for why, count in missing.reasons.items()),
        f"logging from this machine: {logging}; {waiting:,} events are waiting, {unreported:,} were dropped or refused since"
        if now
        else "",
        notes=[text for text, holds in notes.items() if holds],
    )


@app.command("import")
def import_command(
    *,
    files: Files,
    source: Kind = "auto",
    action: Actions = None,
    columns: Columns = "",
    raw: Annotated[
        bool, typer.Option("--no-redact", help="Do not redact: store texts with secrets and personal data.")
    ] = False,
    options: StoreOptions,
) -> None:
    """Import searches and feedback logged by other systems, or a plain list of queries. Repeating an import adds nothing.

    A list is text with one query per line, CSV with the columns query and, if known, count and time, or JSON lines with
    "query". Its results are unknown, so these searches do not count as empty answers.

    Example: ringtrue log import traces.jsonl --project shop
    Example: ringtrue log import ubi_queries.jsonl ubi_events.jsonl --action sample_order=selection
    Example: ringtrue log import top-searches.csv --columns query=term,count=hits
    """
    check_choice(source, lib.log.SOURCES, f"there is no kind of log '{source}'")
    actions = {**lib.log.ACTIONS, **dict(map(_action, action or ()))}
    with options.open() as opened:
        found = lib.log.import_files(
            opened,
            files,
            cleaner=lib.log.Redactor(kinds=()) if raw else lib.log.Redactor(),
            project=options.project,
            source=source,  # type: ignore[arg-type]  # checked above
            actions=actions,
            columns=columns_of(columns),
        )
    searches = show.counted(found.new_queries, "new search", "new searches")
    skipped = (
        f"{count:,} × '{name}' is neither a search nor feedback and was skipped"
        for name, count in sorted(found.skipped.items())
    )
    show.result(
        options.json,
        {"project": options.project, **show.plain(found)},
        f"{searches} of {found.queries:,}, {show.counted(found.new_feedback, 'new event')} of {found.feedback:,}",
        notes=[*found.notes, *skipped],
    )


@app.command()
def export(
    *,
    file: Annotated[Path, typer.Argument(help="The file to write: .jsonl, .csv or .parquet.")],
    what: Annotated[str, typer.Option(help="queries or feedback.")] = "queries",
    window: Window,
    tool: Tool = None,
    traffic: Whose = "user",
    options: StoreOptions,
) -> None:
    """Write searches, or feedback, to a file. JSON lines can be imported again.

    Example: ringtrue log export searches.jsonl --since 30d
    Example: ringtrue log export feedback.parquet --what feedback
    """
    check_choice(what, ("queries", "feedback"), f"cannot export '{what}'")
    ends = window.of(utc_now())
    with options.existing() as opened:
        rows: Iterable[Any] = opened.feedback(project=options.project, **ends) if what == "feedback" else ()
        if what == "queries":
            rows = lib.log.queries_of(opened, project=options.project, tool=tool, traffic=_traffic(traffic), **ends)
        count = lib.log.export_rows(rows, file)
    show.result(options.json, {"file": file, "rows": count}, f"{show.counted(count, 'row')} written to {file}")


@app.command()
def prune(
    archive: Annotated[
        Path | None, typer.Option(help="Folder for archived searches; default: 'archive' beside a SQLite store.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    store: StoreUrl = None,
    json: Json = False,
) -> None:
    """Archive and delete rows that are past their retention; the same as ringtrue store prune.

    Example: ringtrue log prune --dry-run
    """
    from ringtrue.cli.store import prune as prune_store

    prune_store(store=store, archive=archive, dry_run=dry_run, forget=None, json=json)


def _traffic(text: str) -> Traffic | Literal["all"]:
    check_choice(text, (*KINDS, "all"), f"--traffic {text!r:.40} is unknown")
    return "all" if text == "all" else kind_of(text)


def _following(store: lib.store.Store, found: list[lib.store.LoggedQuery], **chosen: Any) -> Iterator[lib.store.LoggedQuery]:
    """Yield the searches found, and new ones as they are written, until interrupted."""
    yield from found
    seen = {row.query_id: row.created_at for row in found}
    while True:
        time.sleep(PAUSE)
        since = (utc_now() - timedelta(seconds=OVERLAP)).isoformat()
        for row in store.queries(**chosen, since=since):
            if row.query_id not in seen:
                seen[row.query_id] = row.created_at
                yield row
        seen = {query_id: at for query_id, at in seen.items() if at >= since[:19]}


def _cells_of(row: lib.store.LoggedQuery) -> list[str]:
    """Return the cells of a search in the table of the last ones."""
    count = "—" if row.result_count is None else str(row.result_count)
    results = ", ".join(row.result_ids[:3]) or (row.fallback or ("—" if row.result_count is None else "nothing found"))[:40]
    asked = [show.time_of(row.created_at), row.tool_name, row.session_id or "—", show.short(row.query)]
    return [*asked, results, count, show.number(row.total_latency_ms, 1)]


def _cells(part: lib.log.Figures) -> list[str]:
    latency = [show.number(part.latency_ms.get(name), 1) for name in ("p50", "p95", "p99")]
    rates = [show.percent(part.zero_result_rate), show.percent(part.degraded_rate)]
    return [f"{part.searches:,}", f"{part.sessions:,}", f"{part.errors:,}", *rates, *latency, show.number(part.proxy, 3)]


def _span(since: str | None, start: str | None, end: str | None) -> str:
    """Return the time that is shown, in words."""
    ago = AGO.fullmatch((since or "").strip())
    if ago and end is None:
        return f"last {show.counted(int(ago[1]), UNITS[ago[2]].removesuffix('s'))}"
    first, last = (at and at[:16].replace("T", " ") for at in (start, end))
    return f"from {first or 'the beginning'} to {f'{last} UTC' if last else 'now'}"


def _action(text: str) -> tuple[str, lib.answers.EventType]:
    name, _, kind = text.partition("=")
    legal: tuple[Any, ...] = get_args(lib.answers.EventType)
    if not name or kind not in legal:
        raise InputError(f"--action {text!r} is invalid; write ACTION=KIND, where KIND is one of {', '.join(legal)}")
    return name, kind  # type: ignore[return-value]
