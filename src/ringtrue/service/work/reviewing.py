"""The review queue as REST and the pages use it: reviewers are blind, and their grades become a version of a golden set.

On the page, only the reviewer who holds a pair may judge it. After the reservation has ended they get it again, unless somebody
else has taken it or it has all the grades it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from ringtrue.answers import Backlog, Published
from ringtrue.golden import Rule, rater_name, worth_judging
from ringtrue.records import Run
from ringtrue.review import RESERVED, ReviewQueue, pairs_of, passages_of, require
from ringtrue.service.errors import Refused
from ringtrue.service.work.library import answers_of, golden_named, keep_golden
from ringtrue.store import ReviewItem, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

COMPLETE = ("approved", "published")
RECENT = 10
PAUSE = timedelta(minutes=5)
"""A longer time between two grades is a break and no part of the pace."""
PACE_OF = 3
"""Grades that a pace is read from, at least."""
DEPTH, MOST, REVIEWERS = 10, 100, 2
"""As ``ringtrue review add`` has them: how far down one looks, how many pairs are taken, how many people judge each."""


def queue_of(service: Service, caller: Caller) -> ReviewQueue:
    """Return the queue of the caller's project."""
    return ReviewQueue(service.of(caller), project=caller.project)


def backlog(service: Service, caller: Caller) -> Backlog:
    """Return how many pairs are in each state, and how long the oldest waits."""
    found = service.of(caller).backlog(project=caller.project)
    oldest = found["oldest_pending_at"]
    waited = None if oldest is None else max(0.0, (service.now() - datetime.fromisoformat(oldest)).total_seconds())
    return Backlog(**found, oldest_seconds=waited)


def publish(
    service: Service,
    caller: Caller,
    golden: str,
    *,
    rule: Rule = "majority",
    adjudicator: str | None = None,
    force: bool = False,
    reason: str = "",
    version: str | None = None,
) -> Published:
    """Keep the next version of a golden set with the judgments of its approved pairs, mark them, and write down who did it.

    Raises CannotDecide if no pair of the set is approved, an adjudicator is missing, or the raters agree too little and it is
    not forced; the reason for that stays in the audit trail. Raises Refused (409) if somebody else published the same version
    at the same moment, or if ``version`` is not the next one any more.
    """
    queue, now = queue_of(service, caller), service.now()
    made = queue.publication(golden_named(service, caller, golden), rule=rule, adjudicator=adjudicator)
    if version not in (None, made.golden.version):
        raise Refused(409, "changed", "the set or its pairs changed since this page was shown; look at it again")
    forced = require(made.gate, force=force, reason=reason)
    keep_golden(service, caller, made.golden)
    # Marked only now: after a crash the same pairs are published again, into the same version.
    count = queue.publish(made, who=caller.who, now=now, forced=forced)
    return Published(made.golden.id, made.golden.version, made.judgments, count, made.kept)


def next_pair(service: Service, caller: Caller, *, passing: Sequence[str] = (), minutes: float = RESERVED) -> ReviewItem | None:
    """Reserve a pair for the caller and return it; None where nothing is left for them.

    A pair without a text gets that of the served documents, for everybody who judges it.
    """
    queue = queue_of(service, caller)
    found = queue.next(caller.who, now=service.now(), minutes=minutes, passing=passing)
    if found is None or found.text:
        return found
    return queue.find(found.item_key) if queue.fill(_served_passages(service, [found.doc_id])) else found


def _served_passages(service: Service, doc_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    return {doc_id: (one.title, one.text) for doc_id, one in service.searches.passages(doc_ids).items()}


def skip(service: Service, caller: Caller, key: str) -> ReviewItem:
    """Give a pair back that the caller does not want to judge now."""
    queue = queue_of(service, caller)
    queue.find(key)
    queue.release(key, caller.who)
    return queue.find(key)


@dataclass(frozen=True, slots=True)
class Queued:
    """What became of the unjudged documents of runs."""

    unjudged: int
    queued: int
    new: int


def queue_unjudged(
    service: Service, caller: Caller, run_id: str, *, against: str | None = None, wanted: int = REVIEWERS
) -> Queued:
    """Put the unjudged documents of a run into the queue, those first that would change its comparison with another most.

    They are judged for the newest version of the run's set: what that has judged meanwhile is not asked again. Raises
    MissingInput where a run's answers are not kept, or its set is not.
    """
    found = {one: answers_of(service, caller, one) for one in dict.fromkeys([run_id, *([against] if against else [])])}
    golden = golden_named(service, caller, found[run_id].setup.golden.id)
    worth = worth_judging(golden, [Run.from_rankings(one.rankings, name=name) for name, one in found.items()], k=DEPTH)
    passages = passages_of(found.values()) | _served_passages(service, (one.doc_id for one in worth[:MOST]))
    items = pairs_of(golden, worth[:MOST], now=service.now(), wanted=wanted, project=caller.project, passages=passages)
    return Queued(len(worth), len(items), queue_of(service, caller).add(items))


# --- one reviewer's session


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


def progress(service: Service, caller: Caller) -> tuple[ReviewProgress, list[OwnGrade]]:
    """Return how far the caller and the queue are, and the last things that the caller said, the newest first."""
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
    return made, sorted(said, key=lambda one: (one.at, one.item.item_key), reverse=True)[:RECENT]


def _pace(times: Sequence[str], now: datetime) -> float | None:
    """Return the median gap of the sitting that goes on now."""
    gaps: list[timedelta] = []
    later = now
    for at in map(datetime.fromisoformat, reversed(times[-200:])):
        if later - at > PAUSE:
            break
        gaps.append(later - at)
        later = at
    # The time since the last grade is not over yet.
    return median(gap.total_seconds() for gap in gaps[1:]) if len(gaps) >= PACE_OF else None


def own_grade(service: Service, caller: Caller, key: str) -> OwnGrade | None:
    """Return what the caller said of a pair; None where nothing."""
    rows = service.of(caller).ratings(project=caller.project, item_keys=[key])
    mine = next((row for row in rows if rater_name(row.reviewer) == rater_name(caller.who)), None)
    return None if mine is None else OwnGrade(queue_of(service, caller).find(key), mine.grade, mine.at, mine.note)


def hold(service: Service, caller: Caller, key: str) -> ReviewItem:
    """Keep a pair for the caller and return it; a pair that the caller has judged stays theirs to change.

    Raises Refused (409) with the code 'taken' where another reviewer has it, 'complete' where it needs nobody any more, and
    'closed' where it was published or rejected; MissingInput where there is none.
    """
    item = queue_of(service, caller).find(key)
    if item.state in ("published", "rejected"):
        raise Refused(409, "closed", f"this pair is {item.state}; its grades stay as they are")
    if own_grade(service, caller, key) is not None:
        return item
    me, now = rater_name(caller.who), service.now()
    moment, until = timestamp(now), timestamp(now + timedelta(minutes=RESERVED))

    def reserve(item: ReviewItem) -> ReviewItem | None:
        if item.state != "pending_review":
            raise Refused(409, "complete", "this pair has all the grades it needs")
        if item.reserved_by not in (None, me) and (item.reserved_until or "") > moment:
            raise Refused(409, "taken", "another reviewer has this pair now")
        return replace(item, reserved_by=me, reserved_until=until)

    return service.of(caller).update_review_item(key, reserve, project=caller.project) or item


def judge_held(service: Service, caller: Caller, key: str, grade: int, *, note: str = "") -> ReviewItem:
    """Keep what the caller says of a pair that they hold or have judged; raises Refused (409) as ``hold``."""
    hold(service, caller, key)
    return queue_of(service, caller).judge(key, grade, reviewer=caller.who, now=service.now(), note=note)


def reject_held(service: Service, caller: Caller, key: str, *, why: str) -> ReviewItem:
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
