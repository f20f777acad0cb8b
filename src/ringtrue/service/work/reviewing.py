"""The review queue as REST and the pages use it: reviewers are blind, and their grades become a version of a golden set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ringtrue.answers import Backlog, Published
from ringtrue.golden import Rule
from ringtrue.review import ReviewQueue
from ringtrue.review.agreement import require
from ringtrue.review.queue import publish_entry
from ringtrue.service.work.library import golden_named, keep_golden
from ringtrue.store import ReviewItem

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

COMPLETE = ("approved", "published")


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
) -> Published:
    """Keep the next version of a golden set with the judgments of its approved pairs, mark them, and write down who did it.

    Raises CannotDecide if no pair of the set is approved, an adjudicator is missing, or the raters agree too little and it is
    not forced; the reason for that stays in the audit trail. Raises Refused (409) if somebody else published the same version
    at the same moment.
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


def skip(service: Service, caller: Caller, key: str) -> ReviewItem:
    """Give a pair back that the caller does not want to judge now."""
    queue = queue_of(service, caller)
    queue.find(key)
    queue.release(key, caller.who)
    return queue.find(key)
