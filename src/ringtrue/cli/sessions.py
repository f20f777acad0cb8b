"""``ringtrue sessions``: what sessions searched, found and achieved."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Since, StoreOptions, Until, moment
from ringtrue.errors import InputError, nearest

LISTED = 50
DERIVED = ("re_search_rate", "selected_rate", "turns_per_search")


def sessions_command(
    *,
    since: Since = None,
    until: Until = None,
    outcomes: Annotated[Path | None, typer.Option(help="How tasks ended, JSON lines: session_id, learning_index …")] = None,
    source: Annotated[list[str] | None, typer.Option(help="Judgments behind the mean RR; default: manual.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap behind the intervals.")] = 0,
    options: StoreOptions,
) -> None:
    """Summarise sessions and how their tasks ended.

    Shows how searches correlate with the outcome of tasks. Outcomes come from the store (`ringtrue memory sync` puts those
    of the agent memory there) and from --outcomes, which wins.

    Example: ringtrue sessions --since 7d
    Example: ringtrue sessions --outcomes tasks.jsonl --json
    """
    import numpy as np

    sources: list[lib.answers.JudgmentSource] = []
    for name in source or ["manual"]:
        if name not in get_args(lib.answers.JudgmentSource):
            raise InputError(
                f"there is no source '{name}'; did you mean {nearest(name, get_args(lib.answers.JudgmentSource))}?"
            )
        sources.append(name)  # type: ignore[arg-type]
    given = [] if outcomes is None else read_outcomes(outcomes)
    now = datetime.now(UTC)
    with options.existing() as opened:
        start, end = moment(since, now), moment(until, now)
        searches = opened.queries(project=options.project, since=start, until=end)
        events = opened.feedback(project=options.project, since=start, until=end)
        judged = [one for name in sources for one in opened.judgments(project=options.project, source=name)]
        told = {one.session_id for one in given}
        stored = [
            one
            for one in lib.feedback.stored_outcomes(opened, project=options.project, since=start)
            if one.session_id not in told
        ]
    found = lib.feedback.session_summaries(searches, events, judgments=judged, outcomes=[*given, *stored])
    related = lib.feedback.correlations(found, rng=np.random.default_rng(seed))
    strangers = sorted({outcome.session_id for outcome in given} - {one.session_id for one in found})
    record = {"sessions": [as_record(one) for one in found], "correlations": related, "outcomes_without_session": strangers}
    show.end_if_json(options.json, record)
    if not found:
        show.note(f"project '{options.project}' has no session in this window")
    else:
        print_sessions(found[-LISTED:])
    if len(found) > LISTED:
        show.note(f"the newest {LISTED} of {len(found)} sessions are listed; --json has all")
    if related:
        print_correlations(related)
    if strangers:
        show.note(
            f"{show.counted(len(strangers), 'outcome belongs', 'outcomes belong')} "
            f"to no session of this window: {', '.join(strangers[:5])}"
        )
    if set(sources) & {"implicit", "validated"}:
        show.note("implicit and validated judgments come from sessions like these: the mean RR then says where people chose")
    if len({variant for one in found for variant in one.variants}) > 1:
        show.note("several retrievers or flag settings answered in this window; --since separates before from after")


def as_record(one: lib.feedback.SessionSummary) -> dict[str, Any]:
    """Return a session with the figures that follow from it."""
    return {**asdict(one), **{name: getattr(one, name) for name in DERIVED}}


def print_sessions(found: Sequence[lib.feedback.SessionSummary]) -> None:
    """Print a line per session."""
    rows = [
        [
            one.session_id,
            one.started_at[:16],
            one.queries,
            one.selected,
            one.validated,
            show.number(one.re_search_rate, 2),
            one.items_accessed,
            show.number(one.turns_per_search, 2),
            show.number(one.duration_minutes, 1),
            show.number(one.mean_rr, 3),
            show.number(None if one.outcome is None else one.outcome.learning_index, 2),
        ]
        for one in found
    ]
    headers = ["session", "started", "searches", "selected", "validated", "re-search", "items", "turns/search", "minutes"]
    show.table([*headers, "mean RR", "learning"], rows, text_columns=2)


def print_correlations(related: Sequence[lib.feedback.Correlation]) -> None:
    """Print how figures of sessions go with outcomes."""
    print()
    rows = []
    for one in related:
        interval = one.why if one.low is None else f"{show.number(one.low, 2)} to {show.number(one.high, 2)}"
        rows.append([one.quality, one.outcome, one.sessions, show.number(one.rho, 2), interval])
    show.table(["search", "outcome", "sessions", "rho", "95 % interval"], rows, text_columns=2)


def read_outcomes(path: Path) -> list[lib.feedback.TaskOutcome]:
    """Return the outcomes of a file of JSON lines; raises InputError naming file, line and value."""

    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            row = json_module.loads(line)
        except ValueError as problem:
            raise InputError(f"{place}: not JSON: {problem}; write one object on each line") from problem
        if not isinstance(row, dict) or not isinstance(row.get("session_id"), str):
            raise InputError(f"{place}: has no session_id; write {{'session_id': 's-1', 'learning_index': 0.4}}")
        try:
            found.append(
                lib.feedback.TaskOutcome(
                    row["session_id"], str(row.get("task_id", "")), *(row.get(name) for name in lib.feedback.OUTCOMES)
                )
            )
        except InputError as problem:
            raise InputError(f"{place}: {problem}") from None
    return found
