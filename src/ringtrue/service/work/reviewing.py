"""The review queue as REST and the pages use it: reviewers are blind, and their grades become a version of a golden set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ringtrue.answers import Backlog, Published
from ringtrue.golden import Rule, worth_judging
from ringtrue.records import Run
from ringtrue.review import ReviewQueue
from ringtrue.review.agreement import require
from ringtrue.review.queue import pairs_of, passages_of, publish_entry
from ringtrue.service.work.library import golden_named, keep_golden
from ringtrue.service.work.run_cache import answers_of
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


DEPTH, MOST, REVIEWERS = 10, 100, 2
"""As ``ringtrue review add`` has them: how far down one looks, how many pairs are taken, how many people judge each."""


@dataclass(frozen=True, slots=True)
class Queued:
    """What became of the unjudged documents of runs."""

    golden: str
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
    ids = [run_id, *([against] if against and against != run_id else [])]
    found = [answers_of(service, caller, one) for one in ids]
    golden = golden_named(service, caller, found[0].setup.golden.id)
    runs = [Run.from_rankings(one.rankings, name=name) for one, name in zip(found, ids, strict=True)]
    worth = worth_judging(golden, runs, k=DEPTH)
    passages = passages_of(found) | served_passages(service, (one.doc_id for one in worth[:MOST]))
    items = pairs_of(golden, worth[:MOST], now=service.now(), wanted=wanted, project=caller.project, passages=passages)
    return Queued(golden.id, len(worth), len(items), queue_of(service, caller).add(items))
