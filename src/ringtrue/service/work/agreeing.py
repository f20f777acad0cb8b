"""How far reviewers agree, who settles what they dispute, and what would be published.

Everything here is over pairs that all wanted reviewers have judged; nobody's grade shows before. Who settles a dispute is
written down with the pair, and is no rater of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ringtrue.errors import CannotDecide
from ringtrue.golden import Rule, by_pair, rater_name
from ringtrue.review import (
    Coefficient,
    Gate,
    Publication,
    RatingTable,
    coefficients,
    equal_share,
    gate,
    judge_of,
    rating_tables,
    said_by_raters,
)
from ringtrue.service.errors import Refused
from ringtrue.service.work.library import golden_named
from ringtrue.service.work.reviewing import COMPLETE, queue_of
from ringtrue.store import ReviewItem, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

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


def picture(service: Service, caller: Caller) -> AgreementFigures:
    """Return how far the reviewers of the caller's project agree."""
    queue = queue_of(service, caller)
    items = [item for item in queue.items() if item.state in COMPLETE]
    ratings = said_by_raters(items, queue.said(items))
    pairs = [one for one in by_pair(ratings).values() if len(one) > 1]
    everybody = Counter(rater_name(row.reviewer) for row in service.of(caller).ratings(project=caller.project))
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
        disputes=_disputes(service, caller, items),
        gate=gate(ratings),
    )


def disputes(service: Service, caller: Caller) -> tuple[PairDispute, ...]:
    """Return the disputes about pairs that are not published yet, settled or not, the widest gaps first."""
    return _disputes(service, caller, service.of(caller).review_items(project=caller.project, state="approved"))


def settled_by(service: Service, caller: Caller) -> list[PairDispute]:
    """Return the disputes that the caller settled and can take back, the last first."""
    found = [one for one in disputes(service, caller) if one.settled_by == rater_name(caller.who)]
    return sorted(found, key=lambda one: one.settled_at, reverse=True)


def settle(service: Service, caller: Caller, key: str, grade: int) -> None:
    """Settle a dispute with the grade that counts under the rule 'adjudicated'.

    Raises Refused (409) where the pair is not disputed, or the caller is one of its raters; MissingInput where there is none.
    """
    me, item = rater_name(caller.who), queue_of(service, caller).find(key)
    found = _disputes(service, caller, [item]) if item.state == "approved" else ()
    if not found:
        why = "it is published" if item.state == "published" else "its raters do not differ, or have not all judged it"
        raise Refused(409, "not_disputed", f"pair '{key}' cannot be settled: {why}")
    if me in found[0].grades:
        raise Refused(409, "own_dispute", "you judged this pair yourself; somebody who did not has to settle it")
    if found[0].settled_by not in (None, me):
        raise Refused(409, "settled", f"'{found[0].settled_by}' has settled this pair already")
    # Who settles is written first: a grade without it would count as one more rater's.
    _note(service, caller, key, {"adjudicated_by": me, "adjudicated_at": timestamp(service.now())})
    queue_of(service, caller).judge(key, grade, reviewer=caller.who, now=service.now())


def unsettle(service: Service, caller: Caller) -> str | None:
    """Take back what the caller settled last and return the key of its pair; None where there is nothing."""
    last = next(iter(settled_by(service, caller)), None)
    if last is None:
        return None
    key = last.item.item_key
    service.of(caller).delete_rating(key, rater_name(caller.who), project=caller.project)
    _note(service, caller, key, {})
    return key


def _note(service: Service, caller: Caller, key: str, facts: Mapping[str, str]) -> None:
    def change(item: ReviewItem) -> ReviewItem:
        others = {name: value for name, value in item.metadata.items() if name not in SETTLED}
        return replace(item, metadata={**others, **facts})

    service.of(caller).update_review_item(key, change, project=caller.project)


def _disputes(service: Service, caller: Caller, items: Iterable[ReviewItem]) -> tuple[PairDispute, ...]:
    items = list(items)
    said, found = queue_of(service, caller).said(items), []
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
    """A pair that goes into a version: what raters said, and the grade that follows; None where an older one stays."""

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


def preview(service: Service, caller: Caller, golden: str, *, rule: Rule, adjudicator: str | None = None) -> PublishPreview:
    """Return what the next version of a set would hold; raises MissingInput where there is no such set."""
    base = golden_named(service, caller, golden)
    queue = queue_of(service, caller)
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
