"""The review queue: pairs that people judge, one at a time and without seeing what others said.

A pair waits as ``pending_review`` until as many people as wanted have judged it, and is ``approved`` then; one that should
not be judged is ``rejected``. It is ``published`` once, with the version of a golden set that has its judgment.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from ringtrue.answers import Dispute as Disputed
from ringtrue.answers import Reviewer, ReviewState
from ringtrue.errors import CannotDecide, InputError, MissingInput, nearest
from ringtrue.feedback import KEY, ONE_OF, QUERY, text_key
from ringtrue.golden import (
    Rating,
    Rule,
    by_pair,
    diff,
    disputes,
    parse_version,
    rater_name,
    settle,
    settled_judgments,
    version_name,
)
from ringtrue.records import HUMAN_SOURCES, GoldenSet, Judgment
from ringtrue.review.agreement import GRADES, Gate, decided_by, gate, said_by_raters
from ringtrue.review.pairs import Passages, disputed
from ringtrue.stats import Agreement
from ringtrue.store import DEFAULT_PROJECT, AuditEntry, ReviewItem, Store, StoredJudgment, timestamp

RESERVED = 15
"""Minutes that a pair is kept for the reviewer it was shown to."""
GUIDELINES = """\
Read the question as the person who typed it, then the document. Judge only whether this document helps with this question.
  3  answers it fully: nothing else would have to be read
  2  answers it in part, or fully after some searching in it
  1  is on the topic, but does not answer it
  0  is about something else
Do not judge how well it is written, and do not guess what others would say. Skip what you cannot judge."""


@dataclass(frozen=True)
class Standing:
    """Where the queue stands; agreement (None below two raters) and disputes are over pairs that are judged completely."""

    backlog: Mapping[str, Any]
    raters: tuple[Reviewer, ...]
    agreement: Agreement | None
    disputes: tuple[Disputed, ...]


@dataclass(frozen=True)
class Publication:
    """A set with the judgments of approved pairs; ``keys`` are the pairs to be marked once it is written."""

    golden: GoldenSet
    keys: tuple[str, ...]
    judgments: int
    kept: tuple[str, ...]
    """Pairs that a person had judged in the set before; their judgment there stays."""
    gate: Gate
    """Whether the raters agree well enough; ``agreement.require`` holds publishing to it."""
    rule: Rule = "majority"
    adjudicator: str | None = None


class ReviewQueue:
    """The pairs of one project, over the store; every change is safe against others who review at the same time.

    A reviewer is known by ``rater_name``: two spellings of one name are one person, who judges a pair once.
    """

    def __init__(self, store: Store, *, project: str = DEFAULT_PROJECT) -> None:
        self.store = store
        self.project = project

    def add(self, items: Sequence[ReviewItem]) -> int:
        """Put pairs into the queue and return how many are new; one that is there keeps its state and its ratings.

        Pairs that have waited without a text get it from these, if they are about the same document.
        """
        for item in items:
            if item.wanted < 1:
                raise InputError(f"pair '{item.item_key}' wants {item.wanted} reviewers; let 1 or more judge it")
        new = self.store.add_review_items(items)
        self.fill({item.doc_id: (item.title, item.text) for item in items})
        return new

    def fill(self, passages: Passages) -> int:
        """Give title and text to the pairs that have no text, as far as they are known; return to how many."""
        given = 0
        for item in self.items():
            title, text = passages.get(item.doc_id, ("", ""))
            if not item.text and (text or (title and not item.title)):
                given += 1
                more = {"title": item.title or title, "text": text}
                self._change(item.item_key, lambda item, more=more: replace(item, **more))  # type: ignore[misc]
        return given

    def _change(self, key: str, change: Callable[[ReviewItem], ReviewItem | None]) -> ReviewItem | None:
        return self.store.update_review_item(key, change, project=self.project)

    def items(self) -> list[ReviewItem]:
        """Return all pairs, the most urgent first."""
        return self.store.review_items(project=self.project)

    def ask_more(self, item: ReviewItem, wanted: int) -> None:
        """Have a pair judged by at least so many people; an approved one waits again until they have."""
        if item.wanted < wanted:
            self._change(item.item_key, lambda item: replace(item, wanted=max(wanted, item.wanted)))
            self._recount(item.item_key, "")

    def find(self, key: str) -> ReviewItem:
        """Return the pair of a key; raises MissingInput with the nearest keys where there is none."""
        found: list[ReviewItem] = []
        try:
            self._change(key, found.append)
        except MissingInput:
            keys = [item.item_key for item in self.items()]
            cure = f"did you mean {nearest(key, keys)}?" if keys else "the queue is empty"
            raise MissingInput(f"the review queue has no pair '{key}'; {cure}") from None
        return found[0]

    def next(
        self, reviewer: str, *, now: datetime, minutes: float = RESERVED, seed: int = 0, passing: Collection[str] = ()
    ) -> ReviewItem | None:
        """Return a pair for a reviewer and keep it for them for a while; None if nothing is left that they could judge.

        Urgent pairs come first; those of about the same priority (to one decimal) in an order drawn for this reviewer, so
        that no pair is always judged by tired people. Who has a pair already gets the same again. ``passing`` are keys to
        pass over.
        """
        reviewer = _named(reviewer)
        moment, until = timestamp(now), timestamp(now + timedelta(minutes=minutes))

        def reserve(item: ReviewItem) -> ReviewItem | None:
            held = item.reserved_by not in (None, reviewer) and (item.reserved_until or "") > moment
            if held or item.state != "pending_review":
                return None
            return replace(item, reserved_by=reviewer, reserved_until=until)

        open_ones = [item for item in self.waiting(reviewer, seed=seed) if item.item_key not in passing]
        mine_first = sorted(open_ones, key=lambda item: item.reserved_by != reviewer)
        return next((taken for item in mine_first if (taken := self._change(item.item_key, reserve))), None)

    def waiting(self, reviewer: str, *, seed: int = 0) -> list[ReviewItem]:
        """Return the pairs that a reviewer could still judge, in the order in which they get them."""
        reviewer = rater_name(reviewer)
        raters = self._raters()
        found = [
            item
            for item in self.store.review_items(project=self.project, state="pending_review")
            if reviewer not in raters.get(item.item_key, ())
        ]
        return sorted(found, key=lambda item: (-round(item.priority, 1), _digest(f"{seed}\0{reviewer}\0{item.item_key}")))

    def release(self, key: str, reviewer: str) -> None:
        """Give a pair back that a reviewer does not want to judge now."""
        name = rater_name(reviewer)
        self._change(key, lambda item: _freed(item) if item.reserved_by == name else None)

    def judge(self, key: str, grade: int, *, reviewer: str, now: datetime, note: str = "") -> ReviewItem:
        """Keep what a reviewer says of a pair and return the pair as it stands then; said again, the newest counts.

        Raises MissingInput for a key that is not there, InputError for a grade that is none or a pair that is closed.
        """
        reviewer = _named(reviewer)
        if isinstance(grade, bool) or grade not in GRADES:
            raise InputError(f"'{grade}' is not a grade; write 0, 1, 2 or 3")
        item = self.find(key)
        if item.state in ("published", "rejected"):
            where = f" in {item.metadata.get('published_in')}" if item.state == "published" else ""
            raise InputError(f"pair '{key}' is {item.state}{where}; only pairs that are pending or approved can be judged")
        self.store.add_rating(key, reviewer, grade, timestamp(now), project=self.project, note=note)
        return self._recount(key, reviewer)

    def reject(self, key: str, *, reviewer: str, now: datetime, why: str = "") -> ReviewItem:
        """Take a pair out because nobody should judge it: a text with personal data, or no question at all."""
        reviewer = _named(reviewer)
        facts = {"rejected_by": reviewer, "rejected_at": timestamp(now), "why": why}

        def close(item: ReviewItem) -> ReviewItem:
            if item.state == "published":
                raise InputError(f"pair '{key}' is published; what was released stays")
            return replace(_freed(item), state="rejected", metadata={**item.metadata, **facts})

        self.find(key)
        return self._change(key, close) or self.find(key)

    def undo(self, reviewer: str) -> ReviewItem | None:
        """Take back the last thing that a reviewer said and return its pair; None if there is nothing to take back.

        What is published stays.
        """
        reviewer = _named(reviewer)
        items = {item.item_key: item for item in self.items() if item.state != "published"}
        rejected = {
            key: str(item.metadata.get("rejected_at", ""))
            for key, item in items.items()
            if item.state == "rejected" and item.metadata.get("rejected_by") == reviewer
        }
        mine = [row for row in self._ratings() if rater_name(row.reviewer) == reviewer and row.item_key in items]
        said = [(row.at, row.item_key, row.reviewer) for row in mine] + [(at, key, reviewer) for key, at in rejected.items()]
        if not said:
            return None
        _, key, spelled = max(said)
        if key in rejected:
            facts = {
                name: one for name, one in items[key].metadata.items() if name not in ("rejected_by", "rejected_at", "why")
            }
            self._change(key, lambda item: replace(item, state="pending_review", metadata=facts))
        else:
            self.store.delete_rating(key, spelled, project=self.project)
        return self._recount(key, reviewer)

    def _recount(self, key: str, reviewer: str) -> ReviewItem:
        """Bring a pair's state up to its ratings; the reviewer who just acted no longer holds it."""

        def change(item: ReviewItem) -> ReviewItem | None:
            # Counted while the pair is locked: whoever comes last sees what all before them said.
            said = len(self._raters([key]).get(key, ()))
            if item.state in ("published", "rejected"):
                return None
            state: ReviewState = "approved" if said >= item.wanted else "pending_review"
            free = item.reserved_by == reviewer or state == "approved"
            return replace(_freed(item) if free else item, state=state)

        return self._change(key, change) or self.find(key)

    def _ratings(self, keys: Sequence[str] | None = None) -> list[Any]:
        return self.store.ratings(project=self.project, item_keys=keys)

    def _raters(self, keys: Sequence[str] | None = None) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for row in self._ratings(keys):
            found.setdefault(row.item_key, set()).add(rater_name(row.reviewer))
        return found

    def counts(self) -> dict[str, int]:
        """Return how many ratings each pair has, by key."""
        return {key: len(raters) for key, raters in self._raters().items()}

    def ratings(self, items: Iterable[ReviewItem]) -> list[Rating]:
        """Return what everybody said of these pairs. Only for pairs that are closed: reviewers are blind until then."""
        pairs = {item.item_key: item for item in items}
        return [
            Rating(pairs[row.item_key].query_id, pairs[row.item_key].doc_id, rater_name(row.reviewer), row.grade, row.at)
            for row in self._ratings(list(pairs))
        ]

    def standing(self, *, adjudicator: str | None = None) -> Standing:
        """Return backlog, reviewers, agreement and disputes; an adjudicator settles disputes and is not a rater."""
        judged = Counter(rater_name(row.reviewer) for row in self._ratings())
        done = [item for item in self.items() if item.state in ("approved", "published")]
        everything = self.said(done)
        named = rater_name(adjudicator or "")
        said = [rating for rating in said_by_raters(done, everything) if rating.rater != named]
        # Whoever is still to judge a pair must not be able to tell what the others said of it, not even from counts.
        grades = {name: Counter(str(rating.grade) for rating in said if rating.rater == name) for name in judged}
        raters = tuple(Reviewer(name, judged[name], dict(sorted(grades[name].items()))) for name in sorted(judged))
        texts = {item.query_id: item.query for item in done}
        decided = decided_by(done, everything, named)
        differing = tuple(
            replace(one, settled_by=by.rater, settled=by.grade) if (by := decided.get((one.query_id, one.doc_id))) else one
            for one in disputed(disputes(said), texts)
        )
        return Standing(self.store.backlog(project=self.project), raters, gate(said).found, differing)

    def said(self, items: Iterable[ReviewItem]) -> dict[str, dict[str, Rating]]:
        """Return what everybody said of these pairs, by key and rater; only for pairs that are closed, as ``ratings``."""
        items = list(items)
        keys = {(item.query_id, item.doc_id): item.item_key for item in items}
        return {keys[pair]: raters for pair, raters in by_pair(self.ratings(items)).items()}

    def _settle(self, items: Sequence[ReviewItem], *, rule: Rule, adjudicator: str | None) -> dict[tuple[str, str], int]:
        """Return one grade per pair by a rule; under 'adjudicated' also what was settled if pairs name who did it."""
        if not items:
            return {}
        decided: dict[tuple[str, str], Rating] = {}
        if rule == "adjudicated":
            decided = decided_by(items, self.said(items), rater_name(adjudicator or ""))
        open_ones = [one for one in self.ratings(items) if (one.query_id, one.doc_id) not in decided]
        by = adjudicator or ("an adjudicator" if decided else None)
        return {pair: rating.grade for pair, rating in decided.items()} | settle(open_ones, rule=rule, adjudicator=by)

    def _mine(self, golden: GoldenSet) -> list[ReviewItem]:
        """Return the approved pairs that can go into a set."""
        queries = {query.query_id for query in golden.queries}
        documents = {document.doc_id for document in golden.documents}
        return [
            item
            for item in self.store.review_items(project=self.project, state="approved")
            if item.metadata.get("golden") == golden.id
            and item.query_id in queries
            and (item.doc_id in documents or not documents)
        ]

    def gate(self, golden: GoldenSet, *, rule: Rule = "majority", adjudicator: str | None = None) -> Gate:
        """Return whether the raters of a set's approved pairs agree well enough to publish them."""
        mine = self._mine(golden)
        judge = adjudicator if rule == "adjudicated" else None
        return gate(said_by_raters(mine, self.said(mine), adjudicator=judge))

    def publication(self, golden: GoldenSet, *, rule: Rule = "majority", adjudicator: str | None = None) -> Publication:
        """Return the next version of a set with the judgments of its approved pairs, derived by a named rule.

        Pairs of other sets, and of queries or documents that the set does not have, stay where they are. Low agreement does not
        prevent it: ``agreement.require`` says whether it may be published. Raises CannotDecide if no pair of this set is
        approved, or an adjudicator is missing.
        """
        mine = self._mine(golden)
        if not mine:
            raise CannotDecide(f"no pair of '{golden.id}' is approved and not yet published; let people judge first")
        settled = self._settle(mine, rule=rule, adjudicator=adjudicator)
        safe = {(j.query_id, j.doc_id) for j in golden.judgments if j.source in HUMAN_SOURCES}
        unsafe = {pair: grade for pair, grade in settled.items() if pair not in safe}
        new = settled_judgments(unsafe, self.ratings(mine), rule=rule)
        there = [new.pop((j.query_id, j.doc_id), j) for j in golden.judgments]
        count = sum(old != now for old, now in zip(golden.judgments, there, strict=True)) + len(new)
        made = replace(golden, judgments=(*there, *new.values()))
        step = diff(golden, made).suggested
        made = replace(made, version=parse_version(golden.version).bump(step).number)
        kept = tuple(item.item_key for item in mine if (item.query_id, item.doc_id) in safe)
        agreed = self.gate(golden, rule=rule, adjudicator=adjudicator)
        return Publication(made, tuple(item.item_key for item in mine), count, kept, agreed, rule, adjudicator)

    def publish(self, made: Publication, *, who: str, now: datetime, forced: str = "") -> int:
        """Mark the pairs of a version that is written, note it in the audit trail, and return how many were marked.

        ``forced`` is why low agreement was passed over.
        """
        pairs = self.mark_published(made.keys, made.golden, now=now, rule=made.rule, adjudicator=made.adjudicator)
        detail = {"rule": made.rule, "adjudicator": made.adjudicator, "judgments": made.judgments, "pairs": pairs}
        detail |= {"agreement": made.gate.says} | ({"forced": forced} if forced else {})
        entry = AuditEntry(timestamp(now), who, "review.publish", version_name(made.golden), detail, self.project)
        self.store.add_audit(entry)
        return pairs

    def mark_published(
        self,
        keys: Iterable[str],
        golden: GoldenSet,
        *,
        now: datetime,
        rule: Rule = "majority",
        adjudicator: str | None = None,
    ) -> int:
        """Mark approved pairs as published in the version that was made of them, and return how many; keep the judgments.

        Only pairs whose judgment is in the version are marked. Kept for all of them: each rater's grade, and the one that
        counts, which is the version's, else what ``rule`` makes of the grades; with the words of the question, so that it wins
        over whatever feedback says of the same words. Judgments are written before any pair is marked: after a crash it is
        done again, and nothing is lost.
        """
        wanted = set(keys)
        approved = [item for item in self.store.review_items(project=self.project, state="approved") if item.item_key in wanted]
        if not approved:
            return 0
        version = version_name(golden)
        published = {(one.query_id, one.doc_id): one for one in golden.judgments}
        ratings = self.ratings(approved)
        left_out = [item for item in approved if (item.query_id, item.doc_id) not in published]
        settled = self._settle(left_out, rule=rule, adjudicator=adjudicator)
        counting = settled_judgments(settled, ratings, rule=rule) | published
        said = by_pair(ratings)
        rows: list[StoredJudgment] = []
        for item in approved:
            pair = (item.query_id, item.doc_id)
            if pair in counting:
                rows += self._judgments(item, said.get(pair, {}), counting[pair], now)
        self.store.add_judgments(rows)

        def publish(item: ReviewItem) -> ReviewItem | None:
            if item.state != "approved":
                return None
            return replace(item, state="published", metadata={**item.metadata, "published_in": version})

        marked = [self._change(item.item_key, publish) for item in approved if (item.query_id, item.doc_id) in published]
        return sum(item is not None for item in marked)

    def _judgments(
        self, item: ReviewItem, raters: Mapping[str, Rating], settled: Judgment, now: datetime
    ) -> list[StoredJudgment]:
        """Return each rater's judgment of a pair, and the one that counts."""
        words = {KEY: text_key(item.query), QUERY: item.query}
        said: dict[str, tuple[int, dict[str, Any]]] = {
            name: (rating.grade, {**words, ONE_OF: len(raters)}) for name, rating in raters.items()
        }
        # The grade of a single rater counts itself: it is one row.
        counts = str(settled.metadata.get("annotator") or settled.source)
        said[counts] = (settled.grade, {**words, **({"rule": settled.metadata["rule"]} if "rule" in settled.metadata else {})})
        at, pair = timestamp(now), (item.query_id, item.doc_id)
        return [
            StoredJudgment(*pair, grade, "manual", at, project=self.project, annotator=name, metadata=facts)
            for name, (grade, facts) in said.items()
        ]


def _named(reviewer: str) -> str:
    name = rater_name(reviewer)
    if not name:
        raise InputError("the reviewer's name is empty; name the reviewer")
    return name


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _freed(item: ReviewItem) -> ReviewItem:
    return replace(item, reserved_by=None, reserved_until=None)
