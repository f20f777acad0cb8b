"""The query log: what was searched, how it went, and one search with everything known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from ringtrue import charts
from ringtrue.answers import LogStats, Step
from ringtrue.errors import InputError
from ringtrue.rollout import grades_by_words
from ringtrue.service.auth import Access, PageReader
from ringtrue.service.errors import refused
from ringtrue.service.models import Cursor, paged
from ringtrue.service.pages.shell import Choice, Words, fragment, page, wants_fragment
from ringtrue.service.routes.log import STEPS as TIMES
from ringtrue.service.routes.log import log_stats, newest_searches, one_search, search_cursor
from ringtrue.store import FeedbackEvent, LoggedQuery
from ringtrue.traffic import KINDS, kind_of

router = APIRouter(include_in_schema=False)
SHOWN = 50
SPANS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7), "month": timedelta(days=30)}
SPAN_WORDS = (("hour", "the last hour"), ("day", "24 hours"), ("week", "7 days"), ("month", "30 days"), ("all", "all of it"))
STEPS: dict[str, Step] = {"hour": "minute", "day": "hour", "week": "hour", "month": "day", "all": "day"}
EVER = timedelta(days=400)
"""Longer than any log is kept."""
TRAFFIC_WORDS = (("", "users"), *((kind, kind) for kind in KINDS[1:]), ("all", "all"))
LONGEST = {"text": 500, "session": 200}
"""Characters of what is written into the fields of the filter."""
BESIDE = 20
"""Searches of the same session that are shown beside one."""


@dataclass(frozen=True)
class Filters:
    """Which searches a reader wants to see, as the address says it."""

    text: str = ""
    tool: str = ""
    session: str = ""
    span: str = "month"
    trouble: bool = False
    slower: str = ""
    traffic: str = "user"

    def asked(self, now: datetime) -> dict[str, Any]:
        """Return the same as the store is asked; raises InputError for what cannot be."""
        for what, given, most in (("words", self.text, LONGEST["text"]), ("a session", self.session, LONGEST["session"])):
            if len(given) > most:
                raise InputError(f"{len(given):,} characters are too many for {what} to look for; write at most {most}")
        if self.span not in STEPS:
            raise InputError(f"there is no span '{self.span:.20}'; choose {', '.join(STEPS)}")
        return {
            "text": self.text.strip() or None,
            "tool": self.tool or None,
            "session_id": self.session.strip() or None,
            "since": now - SPANS[self.span] if self.span in SPANS else None,
            "trouble": self.trouble,
            "slower_than": _milliseconds(self.slower),
            "traffic": self.traffic if self.traffic == "all" else kind_of(self.traffic),
        }

    @property
    def words(self) -> list[str]:
        """What is filtered, in words, for the title of the page."""
        known = [f"“{self.text.strip()[:60]}”" if self.text.strip() else "", self.tool, self.session.strip()]
        known += [self.traffic] if self.traffic != "user" else []
        known += ["trouble" if self.trouble else "", f"slower than {self.slower} ms" if self.slower.strip() else ""]
        return [word for word in known if word]


def _filters(
    text: str = "",
    tool: Words = "",
    session: str = "",
    span: Annotated[str, Query(max_length=10)] = "month",
    trouble: bool = False,
    slower: str = "",
    traffic: Choice = "",
) -> Filters:
    # What somebody writes is looked at in ``asked``, which says in words what is wrong with it.
    return Filters(text, tool, session, span, trouble, slower, traffic or "user")


Wanted = Annotated[Filters, Depends(_filters)]


@router.get("/queries")
def explorer(request: Request, access: PageReader, wanted: Wanted, cursor: Cursor = None) -> Response:
    """Show the searches that fit, the newest first, and how many there were."""
    now = access.now()
    try:
        asked = wanted.asked(now)
    except InputError as problem:
        if not wants_fragment(request):
            raise
        # Beside the reason nothing may stay that was true of the filters before.
        told: dict[str, Any] = {"rows": [], "next": None, "cursor": None, "wanted": wanted}
        said = refused(problem).message
        return fragment(request, "queries.html.jinja", "rows", status=422, **told, part=True, problem=said)
    found = newest_searches(access, limit=SHOWN + 1, before=cursor, **asked)
    part = paged(found, SHOWN, search_cursor)
    rows, following = part.items, part.next
    values: dict[str, Any] = {
        "rows": rows,
        "next": following,
        "cursor": cursor,
        "wanted": wanted,
        "problem": "",
    }
    if wants_fragment(request):
        return fragment(request, "queries.html.jinja", "rows", **values, part=True)
    stats = _stats(access, wanted.span, now)
    return page(
        request, "queries.html.jinja", **values, part=False, stats=stats, volume=_volume(stats, now),
        tools=[(name, name) for name in stats.tools], spans=SPAN_WORDS, traffics=TRAFFIC_WORDS,
        plain=replace(wanted, span="month") == Filters() and cursor is None, longest=LONGEST,
    )  # fmt: skip


@dataclass(frozen=True)
class ShownResult:
    """One result of a search: what each channel made of it, and what was done with it."""

    rank: int
    doc_id: str
    score: float | None
    channels: tuple[tuple[str, int], ...]
    events: tuple[FeedbackEvent, ...]
    grade: int | None


@router.get("/queries/{query_id:path}")
def one(request: Request, access: PageReader, query_id: str) -> Response:
    """Show one search: its answer, where each result came from, what it cost and what was done with it."""
    row = one_search(access, query_id)
    store = access.store
    events = store.feedback(project=access.project, query_ids=[query_id], limit=500)
    # The same words are the same query, whichever search of it was judged.
    judged = grades_by_words([row], store.judgments(project=access.project)).get(query_id, {})
    beside = newest_searches(access, limit=BESIDE, session_id=row.session_id) if row.session_id is not None else []
    return page(
        request,
        "query.html.jinja",
        row=row,
        results=_results(row, events, judged),
        others=[event for event in events if event.item_id not in row.result_ids],
        events=len(events),
        beside=beside,
    )


def _stats(access: Access, span: str, now: datetime) -> LogStats:
    """Return the searches of a time in numbers, as they were a moment ago."""
    since = now - SPANS[span] if span in SPANS else now - EVER
    read = partial(_read_stats, access, since, now, STEPS[span])
    found = access.service.figures.get(("searches", access.project, span), read)
    return found if found.searches else read()  # who waits for the first search sees it, and to count none costs nothing


def _read_stats(access: Access, since: datetime, until: datetime, step: Step) -> LogStats:
    """Return the searches of a time in numbers; if all lie in one step, by the next finer one."""
    found = log_stats(access, since=since, until=until, step=step)
    if len(found.buckets) != 1 or step == "minute":
        return found
    begin = datetime.fromisoformat(found.buckets[0].at)
    finer: Step = "hour" if step == "day" else "minute"
    return _read_stats(access, max(since, begin), min(until, begin + TIMES[step]), finer)


def _results(row: LoggedQuery, events: list[FeedbackEvent], judged: dict[str, int]) -> list[ShownResult]:
    places = {name: {doc_id: rank for rank, doc_id in enumerate(ids, 1)} for name, ids in row.channel_contributions.items()}
    scores = row.scores if len(row.scores) == len(row.result_ids) else (None,) * len(row.result_ids)
    return [
        ShownResult(
            rank,
            doc_id,
            score,
            tuple((name, ranks[doc_id]) for name, ranks in places.items() if doc_id in ranks),
            tuple(event for event in events if event.item_id == doc_id),
            judged.get(doc_id),
        )
        for rank, (doc_id, score) in enumerate(zip(row.result_ids, scores, strict=True), 1)
    ]


def _milliseconds(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise InputError(f"slower than '{text:.20}' is not a time; write milliseconds, like 200")
    return value


def _volume(stats: LogStats, now: datetime) -> tuple[list[int], list[charts.Curve]] | None:
    """Return the searches over time; a step without any is 0, because the log says so.

    The step that is not over yet is a curve of its own, dashed: it would look like a fall.
    """
    width = int(TIMES[stats.step].total_seconds())
    found = {int(datetime.fromisoformat(one.at).timestamp()) // width: one for one in stats.buckets}
    if not found:
        return None
    places = range(min(found), max(found) + 1)
    searches: list[int | None] = [found[place].searches if place in found else 0 for place in places]
    empty = [found[place].empty if place in found else 0 for place in places]
    going: list[charts.Curve] = []
    if max(found) == int(now.timestamp()) // width:
        # It begins where the whole steps end.
        so_far: list[int | None] = [*[None] * (len(searches) - 2), *searches[-2:]]
        going = [charts.Curve(f"searches, this {stats.step} so far", so_far, "unsure", dashed=True)]
        searches[-1] = None
    curves = [charts.Curve("searches", searches), *going, charts.Curve("found nothing", empty, "bad")]
    return [place * width for place in places], curves
