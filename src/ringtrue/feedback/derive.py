"""From what people and agents did to graded judgments.

========================================  =====  =========
signal                                    grade  source
========================================  =====  =========
selected (click, read, reference, cite …)   2    implicit
said to be useful                           3    validated
said not to be useful                       0    validated
shown and never opened                      —    none: unknown, an unjudged document
========================================  =====  =========

Searches with the same words count as one query. People and agents never share a row: the annotator says whose signal it was.
What different retrievers or flags showed is not mixed unless asked for.

If several judgments speak about the same item for the same query, a person who judged by hand always wins; then what was said
(validated), then what was done (implicit), then what was made up without anybody (bootstrapped). People come before agents, and
the newer before the older. Of a pair that several people judged in the review queue the grade that was settled among them
counts, and nobody's single one.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from ringtrue.answers import JudgmentSource
from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.feedback.detect import VALIDATING
from ringtrue.log.linking import WINDOW, by_time, grouped, instant, link_all, setting
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery, StoredJudgment, timestamp

if TYPE_CHECKING:
    from ringtrue.feedback.bias import Examination
    from ringtrue.records import Judgment
    from ringtrue.store import Store

Mixed = Literal["refuse", "separate", "pool"]
SELECTING = frozenset({"selection", "click", "read_after_search", "reference", "cite", "dwell"})
SATISFIED_SECONDS = 30.0
"""A dwell counts as a selection from here on; Fox et al. (2005) found that shorter visits are often mistakes."""
ANNOTATOR = "feedback:"
"""How the annotators of derived judgments begin; rows with other annotators are never touched."""
KEY, QUERY = "key", "query"
"""Where a judgment keeps the words of its query, in one spelling and as they were: it outlives the log."""
ONE_OF = "one_of"
"""What marks one rater's grade: the pair's settled grade stands in a row of its own."""
ORDER: tuple[JudgmentSource, ...] = ("manual", "validated", "implicit", "bootstrapped")
ACTOR_ORDER = ("person", "", "unknown", "agent")
OWN_SOURCES: tuple[JudgmentSource, ...] = ("implicit", "validated")


@dataclass(frozen=True)
class Derived:
    """Judgments, what stays unknown, and what was left aside and why."""

    judgments: tuple[StoredJudgment, ...]
    unknown: tuple[tuple[str, str], ...]
    """(query id, item) that was shown and neither opened nor judged by anybody here; no judgment, not grade 0 or 1."""
    left: Mapping[str, int]
    """Why → how many events gave no judgment."""
    examinations: Mapping[str, Examination]
    """Annotator → the curve its clicks were corrected with."""
    variants: Mapping[str, int]
    """Retriever with flags → searches."""
    searches: int
    queries: int
    """Different texts among them."""
    keys: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def by_source(self) -> dict[str, int]:
        """Source → how many judgments, by whose signal: ``{"implicit by person": 12}``."""
        names = (f"{one.source} by {actor_of(one)}" for one in self.judgments)
        return dict(sorted(Counter(names).items()))


def text_key(text: str) -> str:
    """Return the text under which searches count as the same query."""
    from ringtrue.golden import normalise  # the memory server starts 0.1 s earlier without it

    return normalise(text)


def question_id(text: str) -> str:
    """Return the id under which a sequential test counts a question, whoever asked it and wherever: one for the same words.

    A hash, because what was counted outlives the log, and nobody's words should.

    >>> question_id("Late checkout?") == question_id("late  checkout")
    True
    """
    return "qn_" + hashlib.sha256(text_key(text).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def variant_of(query: LoggedQuery) -> str:
    """Return what answered a search: the retriever's fingerprint, and the flags in force where there are any.

    Of an interleaved list the test counts, not what was drawn for this impression: every list would be a variant of its own.

    >>> variant_of(LoggedQuery("eq_1", "pool", "web", "2026-03-01T12:00:00Z", retriever="ab12", flags={"rerank": True}))
    'ab12 {"rerank": true}'
    """
    flags = f" {json.dumps(setting(query.flags), sort_keys=True, default=str)}" if query.flags else ""
    return (query.retriever or "unknown retriever") + flags


def actor_of(judgment: StoredJudgment) -> str:
    """Return whose signal a derived judgment comes from: person, agent or unknown; empty for a judgment of another kind."""
    return judgment.annotator.split(":")[1] if judgment.annotator.startswith(ANNOTATOR) else ""


def derive_judgments(
    searches: Sequence[LoggedQuery],
    events: Iterable[FeedbackEvent],
    *,
    now: str,
    mixed: Mixed = "refuse",
    window: timedelta = WINDOW,
    known: Mapping[str, str] | None = None,
    project: str = DEFAULT_PROJECT,
) -> Derived:
    """Return the judgments that these searches and events support.

    ``mixed`` says what happens where different retrievers or flags answered: ``refuse``; ``separate``, which judges each by its
    own searches, under annotators of their own; or ``pool``. ``known`` names the query id under which a text was judged before;
    otherwise the oldest search with that text gives its id. Searches whose results are unknown are left out.

    Raises CannotDecide where answers of different retrievers or flags are mixed and that was not asked for.
    """
    if mixed not in get_args(Mixed):
        raise InputError(f"cannot use mixed = {mixed!r}; write {nearest(str(mixed), get_args(Mixed))}")
    searches = sorted((query for query in searches if query.result_count is not None), key=by_time)
    variants = Counter(variant_of(query) for query in searches)
    if mixed == "refuse" and len(variants) > 1:
        raise CannotDecide(_mixture(searches, variants))
    asked = _Questions({query.query_id: text_key(query.query) for query in searches}, {}, {})
    for query in searches:
        key = asked.key_of[query.query_id]
        asked.ids.setdefault(key, (known or {}).get(key, query.query_id))
        asked.texts.setdefault(key, query.query)
    once = {one.event_id: one for one in reversed(link_all(list(events), searches, window=window))}.values()
    reasons = [(event, _unusable(event, asked.key_of)) for event in once]
    usable = [event for event, reason in reasons if reason is None]
    left = Counter(reason for _, reason in reasons if reason is not None)
    judged: list[StoredJudgment] = []
    curves: dict[str, Examination] = {}
    for variant in sorted(variants) if mixed == "separate" else [None]:
        mark = "" if variant is None else ":" + hashlib.sha256(variant.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        mine = [query for query in searches if variant is None or variant_of(query) == variant]
        shown_by = {query.query_id for query in mine}
        retrievers = sorted({query.retriever or "unknown" for query in mine})
        told = [event for event in usable if event.query_id in shown_by]
        for actor in sorted({event.actor for event in told}):
            name = ANNOTATOR + actor + mark
            part = _Part([event for event in told if event.actor == actor], retrievers, asked, name, now, project)
            rows, curve = part.implicit(_searches_of(actor, mine, told))
            judged += rows + part.validated(left)
            if curve is not None:
                curves[name] = curve
    done = {(one.query_id, one.item_id) for one in judged}
    seen = {(asked.ids[asked.key_of[query.query_id]], item_id) for query in searches for item_id in query.result_ids}
    return Derived(
        judgments=tuple(sorted(judged, key=_name)),
        unknown=tuple(sorted(seen - done)),
        left=dict(sorted(left.items())),
        examinations=curves,
        variants=dict(variants),
        searches=len(searches),
        queries=len(asked.ids),
        keys=frozenset(asked.ids),
    )


def derive_into(
    store: Store,
    *,
    now: str,
    project: str = DEFAULT_PROJECT,
    since: str | None = None,
    until: str | None = None,
    retriever: str | None = None,
    mixed: Mixed = "refuse",
    window: timedelta = WINDOW,
    dry_run: bool = False,
) -> Derived:
    """Derive judgments from a window of the store and write them there; return what was, or with ``dry_run`` would be, written.

    A re-run replaces the derived judgments of the queries in the window and leaves all others, and every judgment of another
    source or annotator, as they are. ``retriever`` restricts to searches whose variant begins with it, ``newest`` to the latest
    one's.

    Raises CannotDecide as ``derive_judgments`` does, InputError if no search is left.
    """
    logged = store.queries(project=project, since=since, until=until)
    shown = [query for query in logged if query.result_count is not None]
    searches = chosen(shown, retriever)
    if not searches:
        span = f" since {since}" if since else ""
        listed = f" (the results of {len(logged):,} imported from a plain list are unknown)" if logged else ""
        raise InputError(
            f"project '{project}' has no search{span} to derive judgments from{listed}; log some, or widen the window"
        )
    # To all searches, whoever answered them: what another retriever showed last is not what this one's click was on.
    events = link_all(store.feedback(project=project, since=since, until=until), shown, window=window)
    kept = [one for source in OWN_SOURCES for one in store.judgments(project=project, source=source)]
    own = [one for one in kept if one.annotator.startswith(ANNOTATOR)]
    known = {str(one.metadata[KEY]): one.query_id for one in own if KEY in one.metadata}
    found = derive_judgments(searches, events, now=now, mixed=mixed, window=window, known=known, project=project)
    if dry_run:
        return found
    fresh = set(map(_name, found.judgments))
    stale = [one for one in own if one.metadata.get(KEY) in found.keys and _name(one) not in fresh]
    for (source, annotator), query_ids in sorted(grouped(((one.source, one.annotator), one.query_id) for one in stale).items()):
        store.delete_judgments(project=project, source=source, annotator=annotator, query_ids=sorted({*query_ids}))
    store.add_judgments(found.judgments)
    return found


def chosen(searches: Sequence[LoggedQuery], retriever: str | None) -> list[LoggedQuery]:
    """Return the searches that one retriever answered; raises InputError naming those there are where it answered none."""
    if retriever is None or not searches:
        return list(searches)
    if retriever == "newest":
        newest = variant_of(max(searches, key=by_time))
        return [query for query in searches if variant_of(query) == newest]
    from ringtrue.retrieve import same_search  # it loads NumPy, which the memory's server does without

    mine = [one for one in searches if variant_of(one).startswith(retriever) or same_search(one.retriever or "", retriever)]
    if not mine:
        there = sorted({variant_of(query) for query in searches})
        raise InputError(f"no search was answered by '{retriever}'; there are {nearest(retriever, there)}")
    return mine


# ── which judgment counts ───────────────────────────────────────────────────────────────────────────────────────────


def keyed(judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = ()) -> list[tuple[str, StoredJudgment]]:
    """Return every judgment with the key of its query's words: searches and golden queries with the same words share it.

    The judgment itself says it, else the search of its id, else another judgment of that id; where nothing does, the id stands
    for the words.
    """
    judgments = list(judgments)
    words = {one.query_id: str(one.metadata[KEY]) for one in judgments if one.metadata.get(KEY)}
    words |= {query.query_id: text_key(query.query) for query in searches}
    return [(str(one.metadata.get(KEY) or words.get(one.query_id) or one.query_id), one) for one in judgments]


def winning_by_words(
    judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = (), *, min_confidence: float = 0.0
) -> dict[tuple[str, str], StoredJudgment]:
    """Return {(words' key, item): the judgment that counts}; judgments by hand count whatever their confidence."""
    best: dict[tuple[str, str], StoredJudgment] = {}
    for key, one in keyed(judgments, searches):
        if one.metadata.get(ONE_OF) or (one.source != "manual" and one.confidence < min_confidence):
            continue
        pair = (key, one.item_id)
        if pair not in best or _weight(one) > _weight(best[pair]):
            best[pair] = one
    return best


def qrels(
    judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = (), *, min_confidence: float = 0.0
) -> list[Judgment]:
    """Return the winning judgments as a golden set holds them, each query under one id: that of its first winner in order."""
    from ringtrue.records import Judgment  # likewise

    best = winning_by_words(judgments, searches, min_confidence=min_confidence)
    ids: dict[str, str] = {}
    rows = []
    for (key, item_id), one in sorted(best.items(), key=lambda row: (row[1].query_id, row[1].item_id)):
        facts = {"annotator": one.annotator, "confidence": one.confidence}
        rows.append(Judgment(ids.setdefault(key, one.query_id), item_id, one.relevance, one.source, facts))
    return rows


def _name(one: StoredJudgment) -> tuple[str, str, JudgmentSource, str]:
    """Return what a derived judgment is unique by in its project."""
    return one.query_id, one.item_id, one.source, one.annotator


def _weight(one: StoredJudgment) -> tuple[int, int, object, str]:
    actor = actor_of(one)
    return (
        -ORDER.index(one.source),
        -ACTOR_ORDER.index(actor if actor in ACTOR_ORDER else ""),
        instant(one.created_at),
        one.annotator,
    )


# ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Questions:
    """The texts that count as one query: search → key, key → text as it was first asked, key → query id."""

    key_of: dict[str, str]
    texts: dict[str, str]
    ids: dict[str, str]


@dataclass(frozen=True)
class _Part:
    """The signals of one kind of actor about the answers of one variant."""

    events: Sequence[FeedbackEvent]
    retrievers: Sequence[str]
    asked: _Questions
    annotator: str
    now: str
    project: str

    def implicit(self, counted: Sequence[LoggedQuery]) -> tuple[list[StoredJudgment], Examination | None]:
        from ringtrue.feedback.bias import Shown, attractions

        selecting = [event for event in self.events if event.event_type in SELECTING]
        if not selecting:
            return [], None
        clicked = {(event.query_id, event.item_id) for event in selecting}
        curve, found = attractions(
            Shown((self.asked.key_of[query.query_id], item_id), rank, (query.query_id, item_id) in clicked)
            for query in counted
            for rank, item_id in enumerate(dict.fromkeys(query.result_ids), 1)
        )
        sessions = grouped((self._pair(event), event.session_id) for event in selecting)
        rows = []
        for (key, item_id), who in sessions.items():
            one = found[key, item_id]
            facts = {
                "selected": one.clicks,
                "shown": one.shown,
                "examined": round(one.examined, 3),
                "rate": round(one.rate, 4),
                "correction": curve.method,
                "sessions": len({*who}),
            }
            rows.append(self._row(key, item_id, 2, "implicit", one.sure, facts))
        return rows, curve

    def validated(self, left: Counter[str]) -> list[StoredJudgment]:
        # A session that says it again, or thinks better of it, has one vote: its last.
        votes: dict[tuple[str, str], dict[str, bool]] = {}
        for event in sorted(self.events, key=by_time):
            if event.event_type in VALIDATING:
                votes.setdefault(self._pair(event), {})[event.session_id] = event.event_type == "validate_useful"
        rows = []
        for (key, item_id), said in votes.items():
            useful = sum(said.values())
            against = len(said) - useful
            if useful == against:
                left["as many said useful as not useful"] += len(said)
                continue
            # Laplace's rule: one voice is right two times in three, ten that agree eleven in twelve.
            sure = (max(useful, against) + 1) / (len(said) + 2)
            facts = {"useful": useful, "not_useful": against, "sessions": len(said)}
            rows.append(self._row(key, item_id, 3 if useful > against else 0, "validated", sure, facts))
        return rows

    def _pair(self, event: FeedbackEvent) -> tuple[str, str]:
        return self.asked.key_of[str(event.query_id)], str(event.item_id)

    def _row(
        self, key: str, item_id: str, grade: int, source: JudgmentSource, confidence: float, facts: Mapping[str, Any]
    ) -> StoredJudgment:
        return StoredJudgment(
            query_id=self.asked.ids[key],
            item_id=item_id,
            relevance=grade,
            source=source,
            created_at=timestamp(self.now),
            project=self.project,
            annotator=self.annotator,
            confidence=round(confidence, 6),
            metadata={KEY: key, QUERY: self.asked.texts[key], **facts, "retrievers": list(self.retrievers)},
        )


def _unusable(event: FeedbackEvent, key_of: Mapping[str, str]) -> str | None:
    """Return why an event says nothing about an item for a query; None if it does."""
    selecting, seconds = event.event_type in SELECTING, event.metadata.get("seconds")
    reasons = {
        f"{event.event_type} is not a judgment": not selecting and event.event_type not in VALIDATING,
        "names no item": event.item_id is None,
        "no search in the window showed the item": event.query_id is None,
        "its search is not among these": event.query_id not in key_of,
        "its search did not show the item": selecting and event.rank_in_results < 1,
        f"dwell under {SATISFIED_SECONDS:g} s": event.event_type == "dwell"
        and not (isinstance(seconds, int | float) and seconds >= SATISFIED_SECONDS),
        "reference to a text that several items have": bool(event.metadata.get("shared")),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _searches_of(actor: str, searches: Sequence[LoggedQuery], events: Iterable[FeedbackEvent]) -> list[LoggedQuery]:
    """Return the searches this kind of actor made: what it left alone counts against a rank as much as what it took.

    The log does not say who searched. The session's events do; where it has none, the tool's, if one kind of actor uses it.
    """
    events = list(events)
    by_session = grouped((event.session_id, event.actor) for event in events)
    by_search = grouped((str(event.query_id), event.actor) for event in events)
    seen = [({*(by_search.get(query.query_id) or by_session.get(query.session_id or "", []))}, query) for query in searches]
    by_tool = grouped((query.tool_name, one) for actors, query in seen for one in actors)
    alone = {tool for tool, actors in by_tool.items() if {*actors} == {actor}}
    return [query for actors, query in seen if (actor in actors if actors else query.tool_name in alone)]


def _mixture(searches: Sequence[LoggedQuery], variants: Mapping[str, int]) -> str:
    since: dict[str, str] = {}
    for query in searches:
        since.setdefault(variant_of(query), query.created_at[:16])
    told = "; ".join(f"'{name}': {variants[name]} searches since {since[name]}" for name in list(since)[:4])
    more = f" and {len(since) - 4} more" if len(since) > 4 else ""
    return (
        f"{len(variants)} retrievers or flag settings answered in this window ({told}{more}); judge one with --retriever or a "
        "shorter window, each for itself with --mixed separate, or all together with --mixed pool"
    )
