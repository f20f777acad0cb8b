"""The review queue as REST and the pages use it: reviewers are blind, and their grades become a version of a golden set.

On the page, only the reviewer who holds a pair may judge it. After the reservation has ended they get it again, unless somebody
else has taken it or it has all the grades it needs. Agreement and disputes are over pairs that have all their grades;
before that nobody sees a grade of others. Who settles a dispute is written down with the pair, and is not a rater of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ringtrue.answers import Backlog, Published
from ringtrue.errors import CannotDecide
from ringtrue.golden import Rule, by_pair, rater_name, worth_judging
from ringtrue.records import Run
from ringtrue.review import (
    RESERVED,
    Coefficient,
    Gate,
    Publication,
    RatingTable,
    ReviewQueue,
    coefficients,
    equal_share,
    gate,
    judge_of,
    pairs_of,
    passages_of,
    rating_tables,
    require,
    said_by_raters,
)
from ringtrue.service.errors import Refused
from ringtrue.service.library import answers_of, golden_named, keep_golden
from ringtrue.store import ReviewItem, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Access

COMPLETE = ("approved", "published")
RECENT = 10
DEPTH, MOST, REVIEWERS = 10, 100, 2
"""As ``ringtrue review add`` has them: how far down one looks, how many pairs are taken, how many people judge each."""


def queue_of(access: Access) -> ReviewQueue:
    """Return the queue of the caller's project."""
    return ReviewQueue(access.store, project=access.project)


def backlog(access: Access) -> Backlog:
    """Return how many pairs are in each state, and how long the oldest waits."""
    found = access.store.backlog(project=access.project)
    oldest = found["oldest_pending_at"]
    waited = None if oldest is None else max(0.0, (access.now() - datetime.fromisoformat(oldest)).total_seconds())
    return Backlog(**found, oldest_seconds=waited)


def publish(
    access: Access,
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
    queue, now = queue_of(access), access.now()
    made = queue.publication(golden_named(access, golden), rule=rule, adjudicator=adjudicator)
    if version not in (None, made.golden.version):
        raise Refused(409, "changed", "the set or its pairs changed since this page was loaded; reload it")
    forced = require(made.gate, force=force, reason=reason)
    keep_golden(access, made.golden)
    # Marked only now: after a crash the same pairs are published again, into the same version.
    count = queue.publish(made, who=access.who, now=now, forced=forced)
    return Published(made.golden.id, made.golden.version, made.judgments, count, made.kept)


def next_pair(access: Access, *, passing: Sequence[str] = (), minutes: float = RESERVED) -> ReviewItem | None:
    """Reserve a pair for the caller and return it; None if nothing is left for them.

    A pair without a text gets that of the served documents, for everybody who judges it.
    """
    queue = queue_of(access)
    found = queue.next(access.who, now=access.now(), minutes=minutes, passing=passing)
    if found is None or found.text:
        return found
    return queue.find(found.item_key) if queue.fill(access.service.searches.passages([found.doc_id])) else found


def skip(access: Access, key: str) -> ReviewItem:
    """Give a pair back that the caller does not want to judge now."""
    queue = queue_of(access)
    queue.find(key)
    queue.release(key, access.who)
    return queue.find(key)


@dataclass(frozen=True, slots=True)
class Queued:
    """What became of the unjudged documents of runs."""

    unjudged: int
    queued: int
    new: int


def queue_unjudged(access: Access, run_id: str, *, against: str | None = None, wanted: int = REVIEWERS) -> Queued:
    """Put the unjudged documents of a run into the queue, those first that would change its comparison with another most.

    They are judged for the newest version of the run's set: what that has judged meanwhile is not asked again. Raises
    MissingInput if a run's answers are not kept, or its set is not.
    """
    found = {one: answers_of(access, one) for one in dict.fromkeys([run_id, *([against] if against else [])])}
    golden = golden_named(access, found[run_id].setup.golden.id)
    worth = worth_judging(golden, [Run.from_rankings(one.rankings, name=name) for name, one in found.items()], k=DEPTH)
    passages = passages_of(found.values()) | access.service.searches.passages(one.doc_id for one in worth[:MOST])
    items = pairs_of(golden, worth[:MOST], now=access.now(), wanted=wanted, project=access.project, passages=passages)
    return Queued(len(worth), len(items), queue_of(access).add(items))


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


@dataclass(frozen=True, slots=True)
class OwnGrade:
    """A grade of one's own, with its pair; ``grade`` is None if the pair was rejected."""

    item: ReviewItem
    grade: int | None
    at: str
    note: str

    @property
    def changeable(self) -> bool:
        return self.item.state in ("pending_review", "approved")


def progress(access: Access) -> tuple[ReviewProgress, list[OwnGrade]]:
    """Return how far the caller and the queue are, and the last things that the caller said, the newest first."""
    store, me, now = access.store, rater_name(access.who), access.now()
    items = {item.item_key: item for item in store.review_items(project=access.project)}
    mine = [row for row in store.ratings(project=access.project) if rater_name(row.reviewer) == me and row.item_key in items]
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
    made = ReviewProgress(
        today=sum(row.at >= midnight for row in mine),
        left=len(waiting),
        elsewhere=sum(one.reserved_by not in (None, me) and (one.reserved_until or "") > moment for one in waiting),
        done=len(items) - len(pending),
        total=len(items),
    )
    return made, sorted(said, key=lambda one: (one.at, one.item.item_key), reverse=True)[:RECENT]


def own_grade(access: Access, key: str) -> OwnGrade | None:
    """Return what the caller said of a pair; None if nothing."""
    rows = access.store.ratings(project=access.project, item_keys=[key])
    mine = next((row for row in rows if rater_name(row.reviewer) == rater_name(access.who)), None)
    return None if mine is None else OwnGrade(queue_of(access).find(key), mine.grade, mine.at, mine.note)


def hold(access: Access, key: str) -> ReviewItem:
    """Keep a pair for the caller and return it; a pair that the caller has judged stays theirs to change.

    Raises Refused (409) with the code 'taken' where another reviewer has it, 'complete' where it needs nobody any more, and
    'closed' where it was published or rejected; MissingInput if there is none.
    """
    item = queue_of(access).find(key)
    if item.state in ("published", "rejected"):
        raise Refused(409, "closed", f"this pair is {item.state}; its grades stay as they are")
    if own_grade(access, key) is not None:
        return item
    me, now = rater_name(access.who), access.now()
    moment, until = timestamp(now), timestamp(now + timedelta(minutes=RESERVED))

    def reserve(item: ReviewItem) -> ReviewItem | None:
        if item.state != "pending_review":
            raise Refused(409, "complete", "this pair has all the grades it needs")
        if item.reserved_by not in (None, me) and (item.reserved_until or "") > moment:
            raise Refused(409, "taken", "another reviewer has this pair now")
        return replace(item, reserved_by=me, reserved_until=until)

    return access.store.update_review_item(key, reserve, project=access.project) or item


def judge_held(access: Access, key: str, grade: int, *, note: str = "") -> ReviewItem:
    """Keep what the caller says of a pair that they hold or have judged; raises Refused (409) as ``hold``."""
    hold(access, key)
    return queue_of(access).judge(key, grade, reviewer=access.who, now=access.now(), note=note)


def reject_held(access: Access, key: str, *, why: str) -> ReviewItem:
    """Take a pair out for everybody; raises Refused (409) as ``hold``, and (422) without a reason."""
    if not why.strip():
        raise Refused(422, "invalid_input", "say why nobody should judge this pair", field="why")
    hold(access, key)
    return queue_of(access).reject(key, reviewer=access.who, now=access.now(), why=why.strip())


def undo(access: Access) -> ReviewItem | None:
    """Take back the last thing that the caller said, and hold its pair again; None if there is nothing."""
    item = queue_of(access).undo(access.who)
    if item is None:
        return None
    try:
        return hold(access, item.item_key)
    except Refused:  # taken back all the same; whoever has it now judges it
        return item


SETTLED = ("adjudicated_by", "adjudicated_at")


@dataclass(frozen=True, slots=True)
class PairDispute:
    """A pair on which raters differ, and how it was settled, if it was."""

    item: ReviewItem
    grades: Mapping[str, int]
    settled_by: str | None = None
    settled: int | None = None
    settled_at: str = ""

    @property
    def gap(self) -> int:
        return max(self.grades.values()) - min(self.grades.values())


@dataclass(frozen=True, slots=True)
class AgreementFigures:
    """How far the reviewers agree."""

    complete: int
    shared: int
    """Pairs that two or more judged."""
    raters: tuple[tuple[str, int, Mapping[int, int]], ...]
    """Name, pairs judged at all, and grades over complete pairs."""
    coefficients: tuple[Coefficient, ...]
    share: Coefficient
    tables: tuple[RatingTable, ...]
    disputes: tuple[PairDispute, ...]
    gate: Gate


def picture(access: Access) -> AgreementFigures:
    """Return how far the reviewers of the caller's project agree."""
    queue = queue_of(access)
    items = [item for item in queue.items() if item.state in COMPLETE]
    ratings = said_by_raters(items, queue.said(items))
    pairs = [one for one in by_pair(ratings).values() if len(one) > 1]
    everybody = Counter(rater_name(row.reviewer) for row in access.store.ratings(project=access.project))
    return AgreementFigures(
        complete=len(items),
        shared=len(pairs),
        raters=tuple(
            (name, count, Counter(one.grade for one in ratings if one.rater == name))
            for name, count in sorted(everybody.items())
        ),
        coefficients=coefficients(ratings),
        share=equal_share(pairs),
        tables=rating_tables(ratings),
        disputes=_disputes(access, items),
        gate=gate(ratings),
    )


def disputes(access: Access) -> tuple[PairDispute, ...]:
    """Return the disputes about pairs that are not published yet, settled or not, the widest gaps first."""
    return _disputes(access, access.store.review_items(project=access.project, state="approved"))


def settled_by(access: Access) -> list[PairDispute]:
    """Return the disputes that the caller settled and can take back, the last first."""
    found = [one for one in disputes(access) if one.settled_by == rater_name(access.who)]
    return sorted(found, key=lambda one: one.settled_at, reverse=True)


def settle(access: Access, key: str, grade: int) -> None:
    """Settle a dispute with the grade that counts under the rule 'adjudicated'.

    Raises Refused (409) if the pair is not disputed, or the caller is one of its raters; MissingInput if there is none.
    """
    me, item = rater_name(access.who), queue_of(access).find(key)
    found = _disputes(access, [item]) if item.state == "approved" else ()
    if not found:
        why = "it is published" if item.state == "published" else "its raters do not differ, or have not all judged it"
        raise Refused(409, "not_disputed", f"pair '{key}' cannot be settled: {why}")
    if me in found[0].grades:
        raise Refused(409, "own_dispute", "you judged this pair yourself; somebody else has to settle it")
    if found[0].settled_by not in (None, me):
        raise Refused(409, "settled", f"'{found[0].settled_by}' has settled this pair already")
    # Who settles is written first: a grade without it would count as one more rater's.
    _note(access, key, {"adjudicated_by": me, "adjudicated_at": timestamp(access.now())})
    queue_of(access).judge(key, grade, reviewer=access.who, now=access.now())


def unsettle(access: Access) -> str | None:
    """Take back what the caller settled last and return the key of its pair; None if there is nothing."""
    last = next(iter(settled_by(access)), None)
    if last is None:
        return None
    key = last.item.item_key
    access.store.delete_rating(key, rater_name(access.who), project=access.project)
    _note(access, key, {})
    return key


def _note(access: Access, key: str, facts: Mapping[str, str]) -> None:
    def change(item: ReviewItem) -> ReviewItem:
        others = {name: value for name, value in item.metadata.items() if name not in SETTLED}
        return replace(item, metadata={**others, **facts})

    access.store.update_review_item(key, change, project=access.project)


def _disputes(access: Access, items: Iterable[ReviewItem]) -> tuple[PairDispute, ...]:
    items = list(items)
    said, found = queue_of(access).said(items), []
    for item in items:
        raters = dict(said.get(item.item_key, {}))
        judge = judge_of(item, raters)
        settled = raters.pop(judge) if judge is not None else None
        grades = {name: rating.grade for name, rating in sorted(raters.items())}
        if len(set(grades.values())) > 1:
            at = str(item.metadata.get("adjudicated_at", "")) if settled else ""
            found.append(PairDispute(item, grades, judge, settled.grade if settled else None, at))
    return tuple(sorted(found, key=lambda one: (-one.gap, one.item.query_id, one.item.doc_id)))


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """A pair that goes into a version: what raters said, and the grade that follows; None if an older one stays."""

    item: ReviewItem
    grades: Mapping[str, int]
    settled: str | None
    grade: int | None


@dataclass(frozen=True, slots=True)
class PublishPreview:
    """What publishing would do now; ``refused`` says why it may not."""

    golden: str
    old: str
    gate: Gate
    publication: Publication | None
    lines: tuple[PublishedPair, ...]
    refused: str = ""


def preview(access: Access, golden: str, *, rule: Rule, adjudicator: str | None = None) -> PublishPreview:
    """Return what the next version of a set would hold; raises MissingInput if there is no such set."""
    base = golden_named(access, golden)
    queue = queue_of(access)
    found = queue.gate(base, rule=rule, adjudicator=adjudicator)
    try:
        made = queue.publication(base, rule=rule, adjudicator=adjudicator)
    except CannotDecide as problem:
        return PublishPreview(base.id, base.version, found, None, (), str(problem))
    items = [item for item in queue.items() if item.item_key in set(made.keys)]
    said = queue.said(items)
    grades = {(one.query_id, one.doc_id): one.grade for one in made.golden.judgments}
    lines = []
    for item in items:
        raters = said.get(item.item_key, {})
        grade = None if item.item_key in made.kept else grades.get((item.query_id, item.doc_id))
        each = {name: rating.grade for name, rating in sorted(raters.items())}
        lines.append(PublishedPair(item, each, judge_of(item, raters), grade))
    return PublishPreview(base.id, base.version, found, made, tuple(lines), found.says if found.passed is False else "")
