"""One reviewer's session: the pair that is kept for them, their last grades, and how far the work is.

Only the reviewer who holds a pair may judge it. After the reservation has ended they get it again, unless somebody else has
taken it or it has all the grades it needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from ringtrue.golden import rater_name
from ringtrue.review.queue import RESERVED
from ringtrue.service.errors import Refused
from ringtrue.service.work.reviewing import queue_of
from ringtrue.store import ReviewItem, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

RECENT = 10
PAUSE = timedelta(minutes=5)
"""A longer time between two grades is a break and no part of the pace."""
PACE_OF = 3
"""Grades that a pace is read from, at least."""
TAKEN = "another reviewer has this pair now"
COMPLETE = "this pair has all the grades it needs"


@dataclass(frozen=True, slots=True)
class ReviewProgress:
    """How far a reviewer and the whole queue are."""

    today: int
    """Pairs that the reviewer judged since midnight UTC."""
    left: int
    """Pairs that the reviewer could still judge."""
    elsewhere: int
    """Those of them that others hold now."""
    done: int
    """Pairs of the queue that need nobody any more."""
    total: int
    seconds: float | None
    """Median time between two grades of this sitting; None before there are a few."""


@dataclass(frozen=True, slots=True)
class OwnGrade:
    """A grade of one's own, with its pair; ``grade`` is None where the pair was rejected."""

    item: ReviewItem
    grade: int | None
    at: str
    note: str

    @property
    def changeable(self) -> bool:
        return self.item.state in ("pending_review", "approved")


@dataclass(frozen=True, slots=True)
class Overview:
    """How far the work is, and the last things that the reviewer said, the newest first."""

    progress: ReviewProgress
    recent: tuple[OwnGrade, ...]


def overview(service: Service, caller: Caller) -> Overview:
    """Return how far the caller and the queue are, from one reading of the queue."""
    store, me, now = service.of(caller), rater_name(caller.who), service.now()
    items = {item.item_key: item for item in store.review_items(project=caller.project)}
    mine = [row for row in store.ratings(project=caller.project) if rater_name(row.reviewer) == me and row.item_key in items]
    said = [
        OwnGrade(items[row.item_key], row.grade, row.at, row.note) for row in mine if items[row.item_key].state != "rejected"
    ]
    said += [
        OwnGrade(item, None, str(item.metadata.get("rejected_at", "")), str(item.metadata.get("why", "")))
        for item in items.values()
        if item.state == "rejected" and item.metadata.get("rejected_by") == me
    ]
    said.sort(key=lambda one: (one.at, one.item.item_key), reverse=True)
    judged = {row.item_key for row in mine}
    pending = [item for item in items.values() if item.state == "pending_review"]
    waiting = [item for item in pending if item.item_key not in judged]
    moment, midnight = timestamp(now), timestamp(now.replace(hour=0, minute=0, second=0, microsecond=0))
    times = sorted(row.at for row in mine)
    made = ReviewProgress(
        today=sum(at >= midnight for at in times),
        left=len(waiting),
        elsewhere=sum(one.reserved_by not in (None, me) and (one.reserved_until or "") > moment for one in waiting),
        done=len(items) - len(pending),
        total=len(items),
        seconds=_pace(times, now),
    )
    return Overview(made, tuple(said[:RECENT]))


def _pace(times: Sequence[str], now: datetime) -> float | None:
    """Return the median gap of the sitting that goes on now."""
    moments = [datetime.fromisoformat(at) for at in times[-200:]]
    gaps: list[float] = []
    later = now
    for place, at in enumerate(reversed(moments)):
        if later - at > PAUSE:
            break
        if place:  # the time since the last grade is not over yet
            gaps.append((later - at).total_seconds())
        later = at
    return median(gaps) if len(gaps) + 1 >= PACE_OF else None


def own(service: Service, caller: Caller, key: str) -> OwnGrade | None:
    """Return what the caller said of a pair; None where nothing."""
    rows = service.of(caller).ratings(project=caller.project, item_keys=[key])
    mine = [row for row in rows if rater_name(row.reviewer) == rater_name(caller.who)]
    return OwnGrade(find(service, caller, key), mine[0].grade, mine[0].at, mine[0].note) if mine else None


def find(service: Service, caller: Caller, key: str) -> ReviewItem:
    """Return a pair; raises MissingInput."""
    return queue_of(service, caller).find(key)


def hold(service: Service, caller: Caller, key: str, *, minutes: float = RESERVED) -> ReviewItem:
    """Keep a pair for the caller and return it; a pair that the caller has judged stays theirs to change.

    Raises Refused (409) with the code 'taken' where another reviewer has it, 'complete' where it needs nobody any more, and
    'closed' where it was published or rejected; MissingInput where there is none.
    """
    item = find(service, caller, key)
    if item.state in ("published", "rejected"):
        raise Refused(409, "closed", f"this pair is {item.state}; its grades stay as they are")
    if own(service, caller, key) is not None:
        return item
    me, now = rater_name(caller.who), service.now()
    moment, until = timestamp(now), timestamp(now + timedelta(minutes=minutes))
    why: list[str] = []

    def reserve(item: ReviewItem) -> ReviewItem | None:
        if item.state != "pending_review":
            why.append("complete")
        elif item.reserved_by not in (None, me) and (item.reserved_until or "") > moment:
            why.append("taken")
        else:
            return replace(item, reserved_by=me, reserved_until=until)
        return None

    held = service.of(caller).update_review_item(key, reserve, project=caller.project)
    if held is None:
        raise Refused(409, why[0], TAKEN if why[0] == "taken" else COMPLETE)
    return held


def judge(service: Service, caller: Caller, key: str, grade: int, *, note: str = "") -> ReviewItem:
    """Keep what the caller says of a pair that they hold or have judged; raises Refused (409) as ``hold``."""
    hold(service, caller, key)
    return queue_of(service, caller).judge(key, grade, reviewer=caller.who, now=service.now(), note=note)


def reject(service: Service, caller: Caller, key: str, *, why: str) -> ReviewItem:
    """Take a pair out for everybody; raises Refused (409) as ``hold``, and (422) without a reason."""
    if not why.strip():
        raise Refused(422, "invalid_input", "say why nobody should judge this pair", field="why")
    hold(service, caller, key)
    return queue_of(service, caller).reject(key, reviewer=caller.who, now=service.now(), why=why.strip())


def undo(service: Service, caller: Caller) -> ReviewItem | None:
    """Take back the last thing that the caller said, and hold its pair again; None if there is nothing."""
    item = queue_of(service, caller).undo(caller.who)
    if item is None:
        return None
    try:
        return hold(service, caller, item.item_key)
    except Refused:  # taken back all the same; whoever has it now judges it
        return item
