"""A refresh on its way: a proposal is written down, its pairs go through the review queue, the next version comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ringtrue.errors import CannotDecide, InputError
from ringtrue.golden import (
    KAPPA,
    AskedQuestion,
    AskedQuestions,
    Candidate,
    Coverage,
    Proposal,
    Refreshed,
    Rule,
    age_in_days,
    age_warning,
    coverage,
    propose,
    questions,
    version_name,
)
from ringtrue.golden import refresh as refreshed
from ringtrue.golden.refreshing import COUNT, FIRST
from ringtrue.records import GoldenSet, Query
from ringtrue.review import from_log as harvest
from ringtrue.review.pairs import pairs_of
from ringtrue.review.queue import ReviewQueue
from ringtrue.store import AuditEntry, ReviewItem, Store, timestamp

PROPOSED = "golden refresh proposed"
RELEASED = "golden refresh released"
REVIEWERS = 2
DEPTH = 20
Again = Callable[[str, int], Sequence[str]]
"""Asks a question again: text, number of documents → their ids, best first."""


@dataclass(frozen=True, kw_only=True)
class Harvest:
    """What a proposal is made of: weeks of the log, number of questions, and which documents how many people judge."""

    weeks: int = harvest.LONGEST
    count: int | None = None
    """20 unless given; 50 for a first harvest."""
    again: Again | None = None
    """Asks each question again; without it the documents are those that the log shows."""
    depth: int = DEPTH
    wanted: int = REVIEWERS


DEFAULTS = Harvest()


@dataclass(frozen=True)
class RefreshProgress:
    """How far the reviewers have come with a proposal."""

    proposal: Proposal
    pairs: int
    judged: int
    """Pairs that all wanted reviewers judged."""
    rejected: int

    @property
    def waiting(self) -> int:
        return self.pairs - self.judged - self.rejected


@dataclass(frozen=True)
class Situation:
    """A proposal, how far its reviewers are, and how the set stands to what people ask."""

    proposal: Proposal
    proposed_now: bool
    progress: RefreshProgress
    asked: AskedQuestions
    coverage: Coverage
    age_days: int | None
    warnings: tuple[str, ...]


def regression_base(golden: GoldenSet) -> GoldenSet:
    """Return the empty set that a first harvest fills: the documents of a set, and none of its queries."""
    return replace(golden, id=f"{golden.id}-regression", version="0.0.0", queries=(), judgments=(), created_at=None)


def put_to_review(
    store: Store,
    proposal: Proposal,
    golden: GoldenSet,
    *,
    who: str,
    now: datetime,
    using: Harvest = DEFAULTS,
    project: str = "default",
) -> Proposal:
    """Write a proposal down, put its pairs into the review queue, and return it without the questions that have no document.

    Raises InputError if fewer than two reviewers are wanted, CannotDecide if no question has a document that the set has.
    """
    if using.wanted < 2:
        raise InputError(f"{using.wanted} reviewer cannot agree with anybody; a refresh needs 2 or more")
    known = {document.doc_id for document in golden.documents}
    candidates = []
    for query, question in zip(proposal.new, proposal.questions, strict=True):
        found = question.shown if using.again is None else using.again(question.text, using.depth)
        there = [doc_id for doc_id in dict.fromkeys(found) if doc_id in known or not known][: using.depth]
        # A proposal is finished only as a whole: its pairs are equally urgent, and before all others.
        candidates += [Candidate(query.query_id, doc_id, 1.0, {}) for doc_id in there]
    asked, origin = replace(golden, queries=proposal.new), {"refresh": proposal.id}
    items = pairs_of(asked, candidates, now=now, wanted=using.wanted, project=project, about=origin)
    answered = {item.query_id for item in items}
    if not answered:
        raise CannotDecide(
            f"no question has a document of '{golden.id}' to judge; ask again with another retriever (--retriever)"
        )
    kept = [pair for pair in zip(proposal.new, proposal.questions, strict=True) if pair[0].query_id in answered]
    proposal = replace(proposal, new=tuple(query for query, _ in kept), questions=tuple(question for _, question in kept))
    queue = ReviewQueue(store, project=project)
    queue.add(items)
    # Pairs that were in the queue before get as many reviewers as a refresh needs.
    mine = {item.item_key for item in items}
    for item in queue.items():
        if item.item_key in mine and item.state in ("pending_review", "approved"):
            queue.ask_more(item, using.wanted)
    if open_proposal(store, golden, project=project) is None:
        detail = {
            "id": proposal.id,
            "new": [
                {"query_id": query.query_id, "text": query.text, "intent": question.intent, "count": question.count}
                for query, question in kept
            ],
            "metadata": {query.query_id: dict(query.metadata) for query in proposal.new},
            "retire": list(proposal.retire),
            "keys": [item.item_key for item in items],
        }
        store.add_audit(AuditEntry(timestamp(now), who, PROPOSED, proposal.golden, detail, project))
    return proposal


def propose_from_log(
    store: Store,
    golden: GoldenSet,
    *,
    now: datetime,
    who: str,
    first: bool = False,
    using: Harvest = DEFAULTS,
    project: str = "default",
) -> Situation:
    """Propose new questions from the last weeks of the log and put them to review; one that is open already is shown instead.

    ``first`` harvests a regression set of its own (``regression_base``). Raises CannotDecide if the log has nothing to offer.
    """
    base = regression_base(golden) if first else golden
    proposal = open_proposal(store, base, project=project)
    searches = harvest.searches(store, project=project, since=now - timedelta(weeks=using.weeks), until=now)
    asked = questions(searches, screen=harvest.screen())
    warnings = [] if first else [text for text in [age_warning(golden, now)] if text]
    proposed_now = proposal is None
    if proposal is None:
        if not asked.questions:
            raise CannotDecide(f"the log holds no search of the last {using.weeks} weeks to propose; log some first")
        number = using.count or (FIRST if first else COUNT)
        known = {document.doc_id for document in base.documents}

        def fit(question: AskedQuestion) -> bool:
            # Without a document of the set there is nothing to judge; whoever asks again will see what is found.
            return using.again is not None or bool(question.shown and (not known or known & set(question.shown)))

        # The texts that left the set with earlier versions or did not get into them, and when the last time was.
        left: dict[str, str] = {}
        for entry in reversed(store.audit(project=project, subject=base.id, what=RELEASED)):
            left |= dict.fromkeys((*entry.detail["retired"].values(), *entry.detail["left_out"].values()), entry.at)
        chosen = propose(base, asked, count=number, left=left, fit=fit)
        if not chosen.new:
            raise CannotDecide(
                f"nothing to add: each of the {len(asked.questions)} logged questions is in '{base.id}' already, was before "
                "and was not asked since, or showed only documents that the set does not have"
            )
        proposal = put_to_review(store, chosen, base, who=who, now=now, using=using, project=project)
        begun, ended = (datetime.fromisoformat(one.created_at) for one in (searches[0], searches[-1]))
        warnings += _shortcomings(proposal, number, (ended - begun) / timedelta(days=1), first=first)
    return Situation(
        proposal,
        proposed_now,
        progress(store, proposal, project=project),
        asked,
        coverage(golden, asked),
        age_in_days(golden, now),
        tuple(warnings),
    )


def _shortcomings(proposal: Proposal, count: int, span: float, *, first: bool) -> list[str]:
    found = []
    if len(proposal.new) < count:
        several = "question" if len(proposal.new) == 1 else "questions"
        found.append(f"the log holds only {len(proposal.new)} new {several} with documents to judge, not {count}")
    if first and span < 7 * harvest.SHORTEST:
        found.append(f"the log spans {span:.0f} days; a first harvest should rest on 2 to 4 weeks of searches")
    if not first and len(proposal.retire) < len(proposal.new):
        more = len(proposal.new) - len(proposal.retire)
        queries = "query replaces" if more == 1 else "queries replace"
        found.append(f"{more} new {queries} none: what else is in the set is confirmed by a person, or negative")
    return found


def open_proposal(store: Store, golden: GoldenSet, *, project: str = "default") -> Proposal | None:
    """Return the proposal that was made for exactly this version of a set; None if there is none."""
    for entry in store.audit(project=project, subject=version_name(golden), what=PROPOSED, limit=1):
        detail: Any = entry.detail
        facts = detail["metadata"]
        return Proposal(
            id=detail["id"],
            golden=entry.subject,
            new=tuple(Query(row["query_id"], row["text"], facts[row["query_id"]]) for row in detail["new"]),
            questions=tuple(AskedQuestion(row["text"], row["intent"], row["count"]) for row in detail["new"]),
            retire=tuple(detail["retire"]),
        )
    return None


def _items(store: Store, proposal: Proposal, project: str) -> list[ReviewItem]:
    wanted = {query.query_id for query in proposal.new}
    return [item for item in store.review_items(project=project) if item.query_id in wanted]


def progress(store: Store, proposal: Proposal, *, project: str = "default") -> RefreshProgress:
    """Return how far the reviewers have come."""
    states = [item.state for item in _items(store, proposal, project)]
    done = sum(state in ("approved", "published") for state in states)
    return RefreshProgress(proposal, len(states), done, states.count("rejected"))


def finish(
    store: Store,
    proposal: Proposal,
    golden: GoldenSet,
    *,
    minimum: float = KAPPA,
    rule: Rule = "majority",
    adjudicator: str | None = None,
    project: str = "default",
) -> Refreshed:
    """Return the next version of a set, or why the reviewers' grades allow none.

    A question is left out when a pair of it was rejected. Raises CannotDecide while pairs wait for reviewers.
    """
    state = progress(store, proposal, project=project)
    if state.waiting:
        raise CannotDecide(
            f"{state.waiting} of {state.pairs} pairs wait for reviewers; judge them: ringtrue review next --reviewer NAME"
        )
    items = _items(store, proposal, project)
    queue = ReviewQueue(store, project=project)
    return refreshed(
        golden,
        proposal.new,
        proposal.retire,
        queue.ratings(item for item in items if item.state != "rejected"),
        minimum=minimum,
        rule=rule,
        adjudicator=adjudicator,
        rejected={item.query_id for item in items if item.state == "rejected"},
    )


def released(
    store: Store,
    proposal: Proposal,
    golden: GoldenSet,
    made: GoldenSet,
    *,
    now: datetime,
    who: str = "ringtrue",
    rule: Rule = "majority",
    adjudicator: str | None = None,
    project: str = "default",
) -> int:
    """Mark the pairs of a proposal as published in the version ``made`` of ``golden``; call it once that is written.

    Pairs of questions that were left out stay approved; what people said of them is kept all the same. What left the set, or
    was left out, is written down, so that it is not proposed again before somebody asks it again. Returns how many pairs were
    marked.
    """
    there = {query.query_id for query in made.queries}
    version = version_name(made)
    known = store.audit(project=project, subject=golden.id, what=RELEASED)
    if not any(entry.detail["version"] == version for entry in known):
        detail = {
            "version": version,
            "proposal": proposal.id,
            "retired": {query.query_id: query.text for query in golden.queries if query.query_id not in there},
            "left_out": {query.query_id: query.text for query in proposal.new if query.query_id not in there},
        }
        store.add_audit(AuditEntry(timestamp(now), who, RELEASED, golden.id, detail, project))
    keys = [item.item_key for item in _items(store, proposal, project)]
    queue = ReviewQueue(store, project=project)
    return queue.mark_published(keys, made, now=now, rule=rule, adjudicator=adjudicator)
