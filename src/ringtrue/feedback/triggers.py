"""Learning from selections: words of a query become trigger phrases of the item that was chosen, with safeguards.

Learned phrases never touch the text index: they live as entries of the audit log alone, from which ``learned_phrases`` reads
what holds. So every change has its reason on record, and rolling back is one more entry. A phrase passes through a shadow
period in which it is only rehearsed against the searches that come in, then serves, and expires unless a new selection confirms
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Literal, cast

from ringtrue.answers import EventType
from ringtrue.errors import InputError
from ringtrue.feedback.detect import OPENING
from ringtrue.log.linking import by_time, grouped, instant, link_all, queries_of
from ringtrue.retrieve import words_of
from ringtrue.store import DEFAULT_PROJECT, AuditEntry, FeedbackEvent, LoggedQuery, timestamp

if TYPE_CHECKING:
    from ringtrue.records import Hit
    from ringtrue.store import Store

State = Literal["shadow", "serving", "failed", "expired"]
_SELECTIONS = cast("list[EventType]", sorted(OPENING))
LEARNED, CONFIRMED, ROLLED_BACK = KINDS = ("trigger learned", "trigger confirmed", "trigger rolled back")

_DENIED = """
    again answer article best change check code content data detail details doc docs document documents error example
    explain file files find fix give good guide help info information issue item items latest list look make need new news note
    notes old page pages please problem question read result results search show tell text thanks thing things today tool tools
    update use user using view want way work works write
"""
DENYLIST = frozenset(_DENIED.split())
"""Words that would call their item in half of all searches."""


# What keeps one odd selection from changing what everybody finds.
PER_SELECTION, PER_ITEM = 3, 8
EXPIRES = timedelta(days=30)
ITEM_AGE = timedelta(hours=72)
ALREADY_TOP = 3
"""An item shown at this rank or above is found without help."""
SHADOW = timedelta(days=7)
FAILING_CALLS = 5
"""A phrase that called its item so often in shadow without one selection never serves."""
LONGEST, SHORTEST = 4, 4
"""Words of a phrase, and letters of a phrase of one word."""


@dataclass(frozen=True)
class Phrase:
    """One learned phrase of one item, as the audit log has it."""

    item_id: str
    phrase: str
    learned_at: str
    confirmed_at: str
    query_id: str

    def state(self, now: datetime, *, rehearsal: Rehearsal | None = None) -> State:
        """Return where the phrase stands at a moment."""
        if now >= instant(self.confirmed_at) + EXPIRES:
            return "expired"
        if now < instant(self.learned_at) + SHADOW:
            return "shadow"
        if rehearsal is not None and rehearsal.called >= FAILING_CALLS and rehearsal.chosen == 0:
            return "failed"
        return "serving"


@dataclass(frozen=True)
class Rehearsal:
    """How a phrase would have done on searches that came in: how often it called its item, and how often that was selected."""

    called: int = 0
    chosen: int = 0


@dataclass(frozen=True)
class Lesson:
    """What one selection taught: entries for the audit log, or the reason why it taught nothing."""

    entries: tuple[AuditEntry, ...] = ()
    refused: str = ""


def learn_from_selection(
    event: FeedbackEvent,
    query: LoggedQuery,
    log: Iterable[AuditEntry],
    *,
    item_created_at: str | None,
    now: datetime,
    own_phrases: Iterable[str] = (),
) -> Lesson:
    """Return what a selection teaches, given all that was learned before.

    ``own_phrases`` are triggers the item has anyway. An item whose age is unknown counts as too young; a phrase that was taken
    back is never learned again. Raises InputError if the event is not linked to this search.
    """
    if event.query_id != query.query_id or event.item_id is None:
        raise InputError(f"event '{event.event_id}' is not linked to search '{query.query_id}'; link it first")
    log = [entry for entry in log if entry.what in KINDS]
    refused = _refusal(event, log, item_created_at, now)
    if refused:
        return Lesson(refused=refused)
    mine = [one for one in learned_phrases(log) if one.item_id == event.item_id]
    there = {one.phrase for one in mine if one.state(now) != "expired"}
    barred = {" ".join(words_of(phrase)) for phrase in own_phrases}
    barred |= {str(phrase) for entry in log if entry.subject == event.item_id for phrase in entry.detail.get("phrases", ())}
    candidates = [phrase for phrase in phrases_of(query.query) if phrase not in barred]
    facts = {"query_id": event.query_id, "event_id": event.event_id, "rank": event.rank_in_results, "actor": event.actor}
    room = max(0, PER_ITEM - len(there))
    new = [phrase for phrase in candidates[:PER_SELECTION] if phrase not in there][:room]
    entries = tuple(
        AuditEntry(timestamp(now), "feedback", what, event.item_id, {"phrase": phrase, **facts}, event.project)
        for phrase in candidates[:PER_SELECTION]
        for what in [CONFIRMED] * (phrase in there) + [LEARNED] * (phrase in new)
    )
    why = f"the item has {PER_ITEM} phrases already" if candidates else "no word of the query is telling enough"
    return Lesson(entries, "" if entries else why)


def phrases_of(text: str) -> list[str]:
    """Return the phrases a query offers, the most telling first: runs of words between stop words and words of the denylist.

    >>> phrases_of("How do I get the refund policy for late checkout?")
    ['refund policy', 'late checkout']
    """
    from ringtrue.golden import STOP_WORDS  # it loads NumPy, which the memory's server does without

    stop_words = STOP_WORDS | DENYLIST
    runs = [list(run) for stops, run in groupby(words_of(text), stop_words.__contains__) if not stops]
    parts = [run[start : start + LONGEST] for run in runs for start in range(0, len(run), LONGEST)]
    # One short word, or digits alone, calls too much.
    telling = [part for part in parts if (len(part) > 1 or len(part[0]) >= SHORTEST) and not "".join(part).isdigit()]
    return sorted(dict.fromkeys(map(" ".join, telling)), key=lambda phrase: -len(phrase.split()))


def learned_phrases(log: Iterable[AuditEntry]) -> list[Phrase]:
    """Return the phrases that the audit log leaves standing, rolled-back ones gone, by item and phrase."""
    found: dict[tuple[str, str], Phrase] = {}
    known = (entry for entry in log if entry.what in KINDS)
    for entry in sorted(known, key=lambda entry: (instant(entry.at), KINDS.index(entry.what))):
        if entry.what == ROLLED_BACK:
            for phrase in entry.detail.get("phrases", ()):
                found.pop((entry.subject, str(phrase)), None)
        else:
            key = (entry.subject, str(entry.detail["phrase"]))
            before = found.get(key) if entry.what == CONFIRMED else None
            first = Phrase(*key, entry.at, entry.at, str(entry.detail["query_id"]))
            found[key] = first if before is None else replace(before, confirmed_at=entry.at)
    return [found[key] for key in sorted(found)]


def serving_phrases(
    log: Iterable[AuditEntry], *, now: datetime, rehearsals: Mapping[tuple[str, str], Rehearsal] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return item → the phrases that call it now: those that are past their shadow, did not fail in it and have not expired."""
    done = rehearsals or {}
    learned = ((one, one.state(now, rehearsal=done.get((one.item_id, one.phrase)))) for one in learned_phrases(log))
    serving = grouped((one.item_id, one.phrase) for one, state in learned if state == "serving")
    return {item_id: tuple(phrases) for item_id, phrases in serving.items()}


def called_by(text: str, phrases: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return item → its longest phrase that stands in a text in whole words, as the trigger channel would find it.

    >>> called_by("refund policy?", {"d1": ("refund policy", "refund"), "d2": ("refunds",)})
    {'d1': 'refund policy'}
    """
    said = f" {' '.join(words_of(text))} "
    found = {}
    for item_id, some in phrases.items():
        there = [phrase for phrase in some if f" {' '.join(words_of(phrase))} " in said]
        if there:
            found[item_id] = max(there, key=lambda phrase: (len(phrase.split()), phrase))
    return found


def rehearse(
    phrases: Iterable[Phrase], searches: Iterable[LoggedQuery], events: Iterable[FeedbackEvent]
) -> dict[tuple[str, str], Rehearsal]:
    """Return, by item and phrase, how phrases would have done on the searches of their shadow period.

    Only searches in which something was selected count: where nobody chose anything, not choosing this item means nothing.
    """
    chosen = grouped((event.query_id, event.item_id) for event in events if event.event_type in OPENING)
    dated = [(instant(query.created_at), query) for query in searches if query.query_id in chosen]
    found = {}
    for one in phrases:
        start = instant(one.learned_at)
        called = [
            query
            for at, query in dated
            # The search it was learned from would always prove it right.
            if start <= at < start + SHADOW and query.query_id != one.query_id
            if called_by(query.query, {one.item_id: (one.phrase,)})
        ]
        hits = sum(one.item_id in chosen[query.query_id] for query in called)
        found[one.item_id, one.phrase] = Rehearsal(len(called), hits)
    return found


def roll_back_triggers(
    log: Iterable[AuditEntry],
    *,
    now: datetime,
    who: str,
    why: str,
    item_id: str | None = None,
    phrase: str | None = None,
    since: datetime | None = None,
) -> list[AuditEntry]:
    """Return the entries that take learned phrases back: of an item, of one wording, learned since a moment, or all of them."""
    log = list(log)
    project = {entry.subject: entry.project for entry in log}
    by_item = grouped(
        ((project[one.item_id], one.item_id), one.phrase)
        for one in learned_phrases(log)
        if item_id in (None, one.item_id)
        and phrase in (None, one.phrase)
        and (since is None or instant(one.learned_at) >= since)
    )
    return [
        AuditEntry(timestamp(now), who, ROLLED_BACK, subject, project=where, detail={"phrases": phrases, "why": why})
        for (where, subject), phrases in by_item.items()
    ]


def _refusal(event: FeedbackEvent, log: Iterable[AuditEntry], item_created_at: str | None, now: datetime) -> str:
    age = None if item_created_at is None else now - instant(item_created_at)
    reasons = {
        f"{event.event_type} is not a selection": event.event_type not in OPENING,
        # Otherwise whoever reads old events again would keep every phrase from expiring.
        "this selection was learned from before": any(entry.detail.get("event_id") == event.event_id for entry in log),
        "no search showed the item": event.rank_in_results < 1,
        f"the item was at rank {event.rank_in_results} already": event.rank_in_results <= ALREADY_TOP,
        "the age of the item is unknown": age is None,
        f"the item is younger than {ITEM_AGE / timedelta(hours=1):g} hours": age is not None and age < ITEM_AGE,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class LearnedTriggers:
    """Learned phrases (item → phrases, from ``serving_phrases``) as a retriever, to be fused with others like any channel.

    >>> [hit.doc_id for hit in LearnedTriggers({"d1": ("refund policy",)}).search("the refund policy, please")]
    ['d1']
    """

    def __init__(self, phrases: Mapping[str, Sequence[str]], *, name: str = "learned") -> None:
        self.phrases, self.name = dict(phrases), name

    def search(self, text: str, *, k: int = 10) -> list[Hit]:
        from ringtrue.retrieve.protocol import check_k, from_channel, ranked

        lengths = ((item_id, float(len(phrase.split()))) for item_id, phrase in called_by(text, self.phrases).items())
        return from_channel(self.name, ranked(lengths, k=check_k(k)))


def learn_into(
    store: Store,
    events: Iterable[FeedbackEvent],
    *,
    created_at: Callable[[str], str | None],
    now: datetime,
    own_phrases: Callable[[str], Iterable[str]] = lambda _: (),
    project: str = DEFAULT_PROJECT,
    dry_run: bool = False,
) -> list[tuple[FeedbackEvent, Lesson]]:
    """Learn from linked events and write what was learned to the store's audit log; return the lesson of every event.

    ``created_at`` says since when an item exists (None: unknown), ``own_phrases`` which triggers it has anyway. With
    ``dry_run`` nothing is written.
    """
    linked = [event for event in events if event.query_id is not None and event.item_id is not None]
    found = store.queries(project=project, query_ids=sorted({str(event.query_id) for event in linked}))
    searches = {query.query_id: query for query in found if query.traffic == "user"}
    log = trigger_log(store, project=project)
    lessons = []
    for event in sorted(linked, key=by_time):
        query, item_id = searches.get(str(event.query_id)), str(event.item_id)
        if query is None:
            lessons.append((event, Lesson(refused="its search is not among the users' searches in the log")))
            continue
        lesson = learn_from_selection(
            event, query, log, item_created_at=created_at(item_id), now=now, own_phrases=own_phrases(item_id)
        )
        for entry in () if dry_run else lesson.entries:
            store.add_audit(entry)
        log += lesson.entries
        lessons.append((event, lesson))
    return lessons


def learn_from_log(
    store: Store,
    *,
    now: datetime,
    since: str | None = None,
    until: str | None = None,
    created_at: Callable[[str], str | None] = lambda _: None,
    own_phrases: Callable[[str], Iterable[str]] = lambda _: (),
    project: str = DEFAULT_PROJECT,
    dry_run: bool = False,
) -> list[tuple[FeedbackEvent, Lesson]]:
    """Learn, as ``learn_into`` does, from the selections that the store has of a time.

    An item whose age ``created_at`` does not know is as old as the first search in the log that showed it.
    """
    searches = list(queries_of(store, project=project))
    shown: dict[str, str] = {}
    for query in searches:
        for item_id in query.result_ids:
            shown.setdefault(item_id, query.created_at)
    events = store.feedback(project=project, since=since, until=until, kinds=_SELECTIONS)
    return learn_into(
        store,
        link_all(events, searches),
        created_at=lambda item_id: created_at(item_id) or shown.get(item_id),
        now=now,
        own_phrases=own_phrases,
        project=project,
        dry_run=dry_run,
    )


@dataclass(frozen=True)
class PhraseStanding:
    """A learned phrase, where it stands, and how it did in its shadow period."""

    phrase: Phrase
    state: State
    rehearsal: Rehearsal


def standing_phrases(store: Store, *, now: datetime, project: str = DEFAULT_PROJECT) -> list[PhraseStanding]:
    """Return what was learned and not taken back, by item and phrase."""
    phrases = learned_phrases(trigger_log(store, project=project))
    if not phrases:
        return []
    first = min(one.learned_at for one in phrases)
    searches = list(queries_of(store, project=project, since=first))
    events = link_all(store.feedback(project=project, since=first, kinds=_SELECTIONS), searches)
    done = rehearse(phrases, searches, events)
    tried = [(one, done[one.item_id, one.phrase]) for one in phrases]
    return [PhraseStanding(one, one.state(now, rehearsal=rehearsal), rehearsal) for one, rehearsal in tried]


def trigger_log(store: Store, *, project: str = DEFAULT_PROJECT) -> list[AuditEntry]:
    """Return what was learned, confirmed and taken back, the newest first."""
    found = [entry for what in KINDS for entry in store.audit(project=project, what=what)]
    return sorted(found, key=lambda entry: entry.at, reverse=True)
