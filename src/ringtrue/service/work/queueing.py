"""From runs into the review queue: the documents that a search showed and nobody judged (G-5, G-8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringtrue.golden import worth_judging
from ringtrue.records import Run
from ringtrue.review.queue import pairs_of
from ringtrue.service.work.library import golden_named
from ringtrue.service.work.reviewing import queue_of, served_passages
from ringtrue.service.work.run_cache import answers_of

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

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
    said = {doc_id: (run.titles.get(doc_id, ""), text) for run in found for doc_id, text in run.texts.items()}
    passages = said | served_passages(service, (one.doc_id for one in worth[:MOST]))
    items = pairs_of(golden, worth[:MOST], now=service.now(), wanted=wanted, project=caller.project, passages=passages)
    return Queued(golden.id, len(worth), len(items), queue_of(service, caller).add(items))
