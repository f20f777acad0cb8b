"""The review queue as REST and the pages use it: reviewers are blind, and what they settle becomes a version of a set."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ringtrue.answers import Backlog, Published, ReviewState
from ringtrue.golden import Rule, rater_name
from ringtrue.review import Rater, ReviewQueue
from ringtrue.review.agreement import require, said_by_raters
from ringtrue.review.queue import Standing, publish_entry
from ringtrue.service.models import wrong_cursor
from ringtrue.service.work.library import golden_named, keep_golden
from ringtrue.store import ReviewItem

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

COMPLETE = ("approved", "published")


def queue_of(service: Service, caller: Caller) -> ReviewQueue:
    """Return the queue of the caller's project."""
    return ReviewQueue(service.of(caller), project=caller.project)


def pairs_after(
    service: Service, caller: Caller, *, limit: int, after: str | None = None, state: ReviewState | None = None
) -> tuple[list[ReviewItem], str | None]:
    """Return pairs, the most urgent first, and the cursor behind them where there are more."""
    place = None if after is None else _place(after)
    found = service.of(caller).review_items(project=caller.project, state=state, after=place, limit=limit + 1)
    shown = found[:limit]
    if len(found) <= limit:
        return shown, None
    last = shown[-1]
    return shown, f"{last.priority!r}~{last.created_at}~{last.item_key}"


def _place(cursor: str) -> tuple[float, str, str]:
    """Return priority, time and key of the last pair that was shown."""
    priority, _, rest = cursor.partition("~")
    created_at, mark, key = rest.partition("~")
    try:
        number = float(priority)
    except ValueError:
        raise wrong_cursor() from None
    if not mark or not math.isfinite(number):
        raise wrong_cursor()
    return number, created_at, key


def backlog(service: Service, caller: Caller) -> Backlog:
    """Return how many pairs are in each state, and how long the oldest waits."""
    found = service.of(caller).backlog(project=caller.project)
    oldest = found["oldest_pending_at"]
    waited = None if oldest is None else max(0.0, (service.now() - datetime.fromisoformat(oldest)).total_seconds())
    return Backlog(**found, oldest_seconds=waited)


def standing(service: Service, caller: Caller, *, adjudicator: str | None = None) -> Standing:
    """Return backlog, reviewers, agreement and disputes.

    Grades, even as counts, are those of pairs that everybody wanted has judged: whoever is still to judge a pair must not be
    able to tell what the others said of it. What an adjudicator says is no rater's.
    """
    queue = queue_of(service, caller)
    found = queue.standing(adjudicator=adjudicator)
    complete = [item for item in queue.items() if item.state in COMPLETE]
    grades: dict[str, Counter[int]] = {}
    for rating in said_by_raters(complete, queue.said(complete)):
        if rating.rater == rater_name(adjudicator or ""):
            continue
        grades.setdefault(rating.rater, Counter())[rating.grade] += 1
    raters = [Rater(one.name, one.ratings, dict(sorted(grades.get(one.name, Counter()).items()))) for one in found.raters]
    return replace(found, raters=tuple(raters))


def publish(
    service: Service,
    caller: Caller,
    golden: str,
    *,
    rule: Rule = "majority",
    adjudicator: str | None = None,
    force: bool = False,
    reason: str = "",
) -> Published:
    """Keep the next version of a golden set with the judgments of its approved pairs, mark them, and write down who did it.

    Raises CannotDecide where no pair of the set is approved, an adjudicator is missing, or the raters agree too little and it
    is not forced; the reason for that stays in the audit trail. Raises Refused (409) where somebody else published the same
    version at the same moment.
    """
    queue, now = queue_of(service, caller), service.now()
    made = queue.publication(golden_named(service, caller, golden), rule=rule, adjudicator=adjudicator)
    forced = require(made.gate, force=force, reason=reason)
    keep_golden(service, caller, made.golden)
    # Marked only now: after a crash the same pairs are published again, into the same version.
    count = queue.mark_published(made.keys, made.golden, now=now, rule=rule, adjudicator=adjudicator)
    entry = publish_entry(
        made, count, who=caller.who, now=now, rule=rule, adjudicator=adjudicator, forced=forced, project=caller.project
    )
    service.of(caller).add_audit(entry)
    return Published(made.golden.id, made.golden.version, made.judgments, count, made.kept)


def add_pairs(service: Service, caller: Caller, items: Sequence[ReviewItem]) -> int:
    """Put pairs into the queue and return how many are new."""
    return queue_of(service, caller).add(items)


def next_pair(service: Service, caller: Caller, *, passing: Sequence[str] = (), minutes: float = 15) -> ReviewItem | None:
    """Reserve a pair for the caller and return it; None where nothing is left for them.

    A pair without a text gets that of the served documents, for everybody who judges it.
    """
    queue = queue_of(service, caller)
    found = queue.next(caller.who, now=service.now(), minutes=minutes, passing=passing)
    if found is None or found.text:
        return found
    return queue.find(found.item_key) if queue.fill(served_passages(service, [found.doc_id])) else found


def served_passages(service: Service, doc_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return title and text of documents that the server serves."""
    return {doc_id: (one.title, one.text) for doc_id, one in service.searches.passages(doc_ids).items()}


def left_for(service: Service, caller: Caller) -> int:
    """Return how many pairs the caller could still judge."""
    return len(queue_of(service, caller).waiting(caller.who))


def judge(service: Service, caller: Caller, key: str, grade: int, *, note: str = "") -> ReviewItem:
    """Keep what the caller says of a pair; said again, the newest counts."""
    return queue_of(service, caller).judge(key, grade, reviewer=caller.who, now=service.now(), note=note)


def skip(service: Service, caller: Caller, key: str) -> ReviewItem:
    """Give a pair back that the caller does not want to judge now."""
    queue = queue_of(service, caller)
    queue.find(key)
    queue.release(key, caller.who)
    return queue.find(key)


def reject(service: Service, caller: Caller, key: str, *, why: str = "") -> ReviewItem:
    """Take a pair out that nobody should judge."""
    return queue_of(service, caller).reject(key, reviewer=caller.who, now=service.now(), why=why)


def undo(service: Service, caller: Caller) -> ReviewItem | None:
    """Take back the last thing that the caller said; None where there is nothing."""
    return queue_of(service, caller).undo(caller.who)


def own_grade(service: Service, caller: Caller, key: str) -> int | None:
    """Return what the caller said of a pair; None where nothing."""
    return queue_of(service, caller).said_by(caller.who).get(key)
