"""How far reviewers agree, who settles what they dispute, and whether a set may be published.

Everything here is over pairs that all wanted reviewers have judged; nobody's grade shows before. Who settles a dispute is
written down with the pair, and is no rater of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ringtrue.answers import Published
from ringtrue.errors import CannotDecide, InputError
from ringtrue.golden import Rating, Rule, by_pair, rater_name
from ringtrue.review import Publication
from ringtrue.review.agreement import Gate, gate, judge_of, said_by_raters
from ringtrue.service.errors import Refused
from ringtrue.service.work import reviewing
from ringtrue.service.work.library import golden_named
from ringtrue.stats import Agreement, cohen_kappa, krippendorff_alpha
from ringtrue.store import ReviewItem, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

GRADES = (0, 1, 2, 3)
RESAMPLES = 2_000
SETTLED = ("adjudicated_by", "adjudicated_at")
SCALE = (
    (0.0, "no better than chance"), (0.2, "slight"), (0.4, "fair"), (0.6, "moderate"), (0.8, "substantial"),
    (math.inf, "almost perfect"),
)  # fmt: skip
"""Landis and Koch (1977): up to which coefficient agreement is called what."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A measure of agreement with the interval (95 %) that pairs drawn again give; None where there is none, ``why`` says."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RatingTable:
    """How often two raters said what: rows are the first's grades, columns the second's."""

    first: str
    second: str
    counts: tuple[tuple[int, ...], ...]
    items: int
    kappa: float | None
    """Cohen's; None where it is not defined."""

    @property
    def same(self) -> int:
        return sum(self.counts[grade][grade] for grade in GRADES)


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
    raters: tuple[tuple[str, int, dict[int, int]], ...]
    """Name, pairs judged at all, and grades over complete pairs."""
    coefficients: tuple[Coefficient, ...]
    share: Coefficient
    tables: tuple[RatingTable, ...]
    disputes: tuple[PairDispute, ...]
    gate: Gate


def in_words(value: float) -> str:
    """Return what a coefficient means.

    >>> in_words(0.72), in_words(-0.1)
    ('substantial', 'no better than chance')
    """
    return next(word for most, word in SCALE if value <= most)


def picture(service: Service, caller: Caller) -> AgreementFigures:
    """Return how far the reviewers of the caller's project agree."""
    queue = reviewing.queue_of(service, caller)
    items = [item for item in queue.items() if item.state in reviewing.COMPLETE]
    said = _said(service, caller, items)
    ratings = said_by_raters(items, said)
    pairs = [one for one in by_pair(ratings).values() if len(one) > 1]
    everybody = Counter(rater_name(row.reviewer) for row in service.of(caller).ratings(project=caller.project))
    grades: dict[str, Counter[int]] = {}
    for rating in ratings:
        grades.setdefault(rating.rater, Counter())[rating.grade] += 1
    raters = tuple((name, everybody[name], dict(grades.get(name, Counter()))) for name in sorted(everybody))
    return AgreementFigures(
        complete=len(items),
        shared=len(pairs),
        raters=raters,
        coefficients=_coefficients(ratings),
        share=_share(pairs),
        tables=_tables(ratings),
        disputes=_disputes(items, said),
        gate=gate(ratings),
    )


# --- disputes


def _approved(service: Service, caller: Caller) -> tuple[PairDispute, ...]:
    """Return the disputes about pairs that are not published yet, the widest gaps first."""
    items = service.of(caller).review_items(project=caller.project, state="approved")
    return _disputes(items, _said(service, caller, items))


def open_disputes(service: Service, caller: Caller) -> list[PairDispute]:
    """Return the disputes that nobody has settled, the widest gaps first."""
    return [one for one in _approved(service, caller) if one.settled is None]


def settled_by(service: Service, caller: Caller) -> list[PairDispute]:
    """Return the disputes that the caller settled and can take back, the last first."""
    found = [one for one in _approved(service, caller) if one.settled_by == rater_name(caller.who)]
    return sorted(found, key=lambda one: one.settled_at, reverse=True)


def adjudicators(service: Service, caller: Caller) -> list[str]:
    """Return who has settled disputes of pairs that are not published yet."""
    return sorted({one.settled_by for one in _approved(service, caller) if one.settled_by})


def settle(service: Service, caller: Caller, key: str, grade: int) -> PairDispute:
    """Settle a dispute with the grade that counts under the rule 'adjudicated'.

    Raises Refused (409) where the pair is not disputed, or the caller is one of its raters; MissingInput where there is none.
    """
    me, now = rater_name(caller.who), timestamp(service.now())
    found = _dispute(service, caller, key)
    if me in found.grades:
        raise Refused(409, "own_dispute", "you judged this pair yourself; somebody who did not has to settle it")
    if found.settled_by not in (None, me):
        raise Refused(409, "settled", f"'{found.settled_by}' has settled this pair already")
    # Who settles is written first: a grade without it would count as one more rater's.
    _note(service, caller, key, {"adjudicated_by": me, "adjudicated_at": now})
    reviewing.queue_of(service, caller).judge(key, grade, reviewer=caller.who, now=service.now())
    return replace(found, settled_by=me, settled=grade, settled_at=now)


def unsettle(service: Service, caller: Caller) -> PairDispute | None:
    """Take back what the caller settled last; None where there is nothing."""
    mine = settled_by(service, caller)
    if not mine:
        return None
    last = mine[0]
    store = service.of(caller)
    store.delete_rating(last.item.item_key, rater_name(caller.who), project=caller.project)
    _note(service, caller, last.item.item_key, {})
    return replace(last, settled_by=None, settled=None, settled_at="")


def _note(service: Service, caller: Caller, key: str, facts: Mapping[str, str]) -> None:
    def change(item: ReviewItem) -> ReviewItem:
        others = {name: value for name, value in item.metadata.items() if name not in SETTLED}
        return replace(item, metadata={**others, **facts})

    service.of(caller).update_review_item(key, change, project=caller.project)


def _dispute(service: Service, caller: Caller, key: str) -> PairDispute:
    item = reviewing.queue_of(service, caller).find(key)
    found = _disputes([item], _said(service, caller, [item])) if item.state == "approved" else ()
    if not found:
        why = "it is published" if item.state == "published" else "its raters do not differ, or have not all judged it"
        raise Refused(409, "not_disputed", f"pair '{key}' cannot be settled: {why}")
    return found[0]


def _disputes(items: Iterable[ReviewItem], said: Mapping[str, Mapping[str, Rating]]) -> tuple[PairDispute, ...]:
    found = []
    for item in items:
        raters = dict(said.get(item.item_key, {}))
        judge = judge_of(item, raters)
        settled = raters.pop(judge) if judge is not None else None
        grades = {name: rating.grade for name, rating in sorted(raters.items())}
        if len(set(grades.values())) > 1:
            at = str(item.metadata.get("adjudicated_at", "")) if settled else ""
            found.append(PairDispute(item, grades, judge, settled.grade if settled else None, at))
    return tuple(sorted(found, key=lambda one: (-one.gap, one.item.query_id, one.item.doc_id)))


def _said(service: Service, caller: Caller, items: Sequence[ReviewItem]) -> dict[str, dict[str, Rating]]:
    return reviewing.queue_of(service, caller).said(items)


# --- numbers


def _coefficients(ratings: Sequence[Rating]) -> tuple[Coefficient, ...]:
    said = by_pair(ratings)
    raters = sorted({name for one in said.values() for name in one})
    if len(raters) < 2:
        return ()
    rows: list[list[int | None]] = [[one[name].grade if name in one else None for one in said.values()] for name in raters]
    found: list[Coefficient] = []
    if len(raters) == 2:
        for name, weights in (("Cohen's κ", None), ("Cohen's κ, quadratic weights", "quadratic")):
            kappa = cohen_kappa(rows[0], rows[1], weights=weights)  # type: ignore[arg-type]
            found.append(_with_interval(name, kappa, _kappas(rows[0], rows[1], squared=weights is not None)))
    alpha = krippendorff_alpha(rows)
    counts = np.array([[sum(r.grade == grade for r in one.values()) for grade in GRADES] for one in said.values()], float)
    found.append(_with_interval("Krippendorff's α", alpha, _alphas(counts[counts.sum(axis=1) > 1])))
    return tuple(found)


def _with_interval(name: str, found: Agreement, drawn: np.ndarray[Any, Any]) -> Coefficient:
    if found.items == 0:
        return Coefficient(name, None, None, None, "no pair was judged by two people")
    if not found.defined:
        return Coefficient(name, None, None, None, "not defined: every pair has one and the same grade")
    known = drawn[np.isfinite(drawn)]
    if found.items < 5 or len(known) < len(drawn) / 2:
        return Coefficient(name, found.coefficient, None, None, "too few pairs for an interval")
    low, high = np.quantile(known, (0.025, 0.975))
    return Coefficient(name, found.coefficient, float(low), float(high))


def _kappas(first: Sequence[int | None], second: Sequence[int | None], *, squared: bool) -> np.ndarray[Any, Any]:
    """Return Cohen's kappa of as many pairs drawn again, many times."""
    table = np.zeros((4, 4))
    for a, b in zip(first, second, strict=True):
        if a is not None and b is not None:
            table[a, b] += 1
    if not table.sum():
        return np.array([])
    drawn = np.random.default_rng(0).multinomial(int(table.sum()), table.ravel() / table.sum(), RESAMPLES)
    tables = drawn.reshape(-1, 4, 4) / table.sum()
    gap = np.subtract.outer(np.arange(4), np.arange(4))
    distance = gap.astype(float) ** 2 if squared else (gap != 0).astype(float)
    observed = (tables * distance).sum(axis=(1, 2))
    expected = np.einsum("ri,ij,rj->r", tables.sum(axis=2), distance, tables.sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - observed / expected)


def _alphas(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return Krippendorff's nominal alpha of as many pairs drawn again, many times; ``counts`` has a row per pair."""
    if not len(counts):
        return np.array([])
    size = counts.sum(axis=1)
    differing = (size**2 - (counts**2).sum(axis=1)) / (size - 1)
    weights = np.random.default_rng(0).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), RESAMPLES)
    totals = weights @ counts
    n = totals.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = (n**2 - (totals**2).sum(axis=1)) / (n - 1)
        return np.asarray(1 - (weights @ differing) / expected)


def _share(pairs: Sequence[Mapping[str, Rating]]) -> Coefficient:
    """Return the share of pairs on which all raters say the same, with Wilson's interval."""
    from scipy.stats import binomtest

    if not pairs:
        return Coefficient("Same grade", None, None, None, "no pair was judged by two people")
    same = sum(len({rating.grade for rating in one.values()}) == 1 for one in pairs)
    interval = binomtest(same, len(pairs)).proportion_ci(method="wilson")
    return Coefficient("Same grade", same / len(pairs), float(interval.low), float(interval.high))


def _tables(ratings: Sequence[Rating]) -> tuple[RatingTable, ...]:
    said = by_pair(ratings)
    raters = sorted({name for one in said.values() for name in one})
    found = []
    for first, second in combinations(raters, 2):
        both = [(one[first].grade, one[second].grade) for one in said.values() if first in one and second in one]
        if both:
            often = Counter(both)
            counts = tuple(tuple(often[row, column] for column in GRADES) for row in GRADES)
            kappa = cohen_kappa([one for one, _ in both], [other for _, other in both])
            found.append(RatingTable(first, second, counts, len(both), kappa.coefficient if kappa.defined else None))
    return tuple(sorted(found, key=lambda one: -one.items))


# --- publishing


@dataclass(frozen=True, slots=True)
class ApprovedSet:
    """A set with approved pairs."""

    golden: str
    pairs: int


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


def ready(service: Service, caller: Caller) -> tuple[list[ApprovedSet], int]:
    """Return the sets that have approved pairs, and how many approved pairs belong to none, as those of a refresh."""
    items = service.of(caller).review_items(project=caller.project, state="approved")
    counts = Counter(str(item.metadata.get("golden") or "") for item in items)
    loose = counts.pop("", 0)
    return [ApprovedSet(name, count) for name, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))], loose


def preview(service: Service, caller: Caller, golden: str, *, rule: Rule, adjudicator: str | None = None) -> PublishPreview:
    """Return what the next version of a set would hold; raises MissingInput where there is no such set."""
    base = golden_named(service, caller, golden)
    queue = reviewing.queue_of(service, caller)
    found = queue.gate(base, rule=rule, adjudicator=adjudicator)
    try:
        made = queue.publication(base, rule=rule, adjudicator=adjudicator)
    except CannotDecide as problem:
        return PublishPreview(base.id, base.version, found, None, (), str(problem))
    keys, kept = set(made.keys), set(made.kept)
    approved = service.of(caller).review_items(project=caller.project, state="approved")
    items = [item for item in approved if item.item_key in keys]
    said = _said(service, caller, items)
    grades = {(one.query_id, one.doc_id): one.grade for one in made.golden.judgments}
    lines = tuple(
        PublishedPair(
            item,
            {name: rating.grade for name, rating in sorted(said.get(item.item_key, {}).items())},
            judge_of(item, said.get(item.item_key, {})),
            None if item.item_key in kept else grades.get((item.query_id, item.doc_id)),
        )
        for item in items
    )
    return PublishPreview(base.id, base.version, found, made, lines, found.says if found.passed is False else "")


def publish(
    service: Service,
    caller: Caller,
    golden: str,
    *,
    rule: Rule,
    adjudicator: str | None,
    version: str,
    force: bool = False,
    reason: str = "",
) -> Published:
    """Publish what was previewed as ``version``; raises Refused (409) where agreement is too low or that is out of date."""
    now = preview(service, caller, golden, rule=rule, adjudicator=adjudicator)
    if now.publication is not None and now.publication.golden.version != version:
        raise Refused(409, "changed", "the set or its pairs changed since this page was shown; look at it again")
    try:
        return reviewing.publish(service, caller, golden, rule=rule, adjudicator=adjudicator, force=force, reason=reason)
    except (CannotDecide, InputError) as problem:
        raise Refused(409, "cannot_decide", str(problem)) from None
