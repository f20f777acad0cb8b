"""From the journal of the hooks into the platform's store, and the figures that say whether the memory works.

What a prompt was shown becomes a logged search (tool ``memory_hook``; an empty list if the hook was silent), what a tool of
the MCP server found one of that tool; reads, quotations and validations become feedback, joined to the search that showed the
memory by prompt id, else by session. Everything has the same id every time, so bringing a journal twice changes nothing.

A memory that was shown and then read, quoted or said to be useful was right. One that was said not to be useful, or judged so
by hand, was wrong. Whatever was only shown is unknown, not wrong: agents do not read what the title already told them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ringtrue.answers import EventType
from ringtrue.feedback import SELECTING, TaskOutcome, task_points
from ringtrue.log import Redactor, link_all
from ringtrue.log.capture import imported_id, iso
from ringtrue.log.linking import WINDOW, stable_id
from ringtrue.memory.hook.journal import events as journal
from ringtrue.memory.tasks import outcomes, validations
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery, StoredJudgment
from ringtrue.traffic import received

if TYPE_CHECKING:
    from ringtrue.answers import HealthPart
    from ringtrue.rollout import Health
    from ringtrue.store import Store

HOOK = "memory_hook"
TASK_LENGTH = timedelta(days=1)
"""How long after a search a validation of its session may be about it: it comes when a task ends."""
LOOKED_BACK = timedelta(days=30)
"""How far back the memory's line of the health looks."""
PAGE = 2_000
ENOUGH = 10
"""Injections that must be judged before their share of wrong ones is held against the memory."""
FALSE_INJECTS = 0.10
QUIET = 50
"""Prompts in a row without a single injection that are not chance."""
Event = Mapping[str, Any]


@dataclass(frozen=True)
class SyncResult:
    """What a journal held for the store, how much of it was new, and why some of it was left."""

    queries: int
    new_queries: int
    feedback: int
    new_feedback: int
    tasks: int
    """Tasks that ended; their outcomes go into the store's history."""
    new_tasks: int
    left: Mapping[str, int] = field(default_factory=dict)


def bring_journal(
    root: str,
    store: Store,
    *,
    project: str = DEFAULT_PROJECT,
    since: float = 0.0,
    cleaner: Redactor = Redactor(),  # noqa: B008  # frozen
) -> SyncResult:
    """Bring the events of a memory folder from a moment on into the store; return what came.

    ``cleaner`` takes out what may not be stored, as for a live log; with ``hash_only`` no word of a prompt is stored. A moment
    older than the store's retention would bring back what was pruned.
    """
    searches, feedback, left = rows_of(root, project=project, since=since)
    queries = [cleaner.query(row) for row in searches]
    events = [cleaner.feedback(row) for row in feedback]
    not_ended: Counter[str] = Counter(left)
    ended = outcomes(root, since=since, left=not_ended)
    return SyncResult(
        len(queries),
        sum(store.add_queries(page) for page in _pages(queries)),
        len(events),
        sum(store.add_feedback(page) for page in _pages(events)),
        len(ended),
        sum(_add_task(store, outcome, at, project, cleaner) for at, outcome in ended),
        dict(not_ended),
    )


def _add_task(store: Store, outcome: TaskOutcome, at: float, project: str, cleaner: Redactor) -> bool:
    """Store how a task ended; return whether that is new. Its id is a text that somebody wrote, so it is redacted as well."""
    named = cleaner.hashed(outcome.task_id, project) if cleaner.hash_only else cleaner.text(outcome.task_id)
    points = task_points(replace(outcome, task_id=named), at=iso(round(at * 1_000_000)), project=project)
    return store.add_history(points) > 0


def rows_of(
    root: str, *, project: str = DEFAULT_PROJECT, since: float = 0.0
) -> tuple[list[LoggedQuery], list[FeedbackEvent], dict[str, int]]:
    """Return the searches of a journal, its feedback joined to them, and why some events gave neither, with counts."""
    left: Counter[str] = Counter()
    happened = list(journal(root, since=since))
    searches = [row for event in happened if (row := _search(event, project, left)) is not None]
    done = [row for event in happened for row in _feedback(event, project, left)]
    said = [replace(row, project=project) for row in validations(root, since=since)]
    linked = link_all(done, searches, window=WINDOW)
    after_search = [one for one in linked if one.query_id is not None]
    if len(after_search) < len(linked):
        left["read without having been shown before"] = len(linked) - len(after_search)
    return searches, [*after_search, *link_all(said, searches, window=TASK_LENGTH)], dict(left)


def _search(event: Event, project: str, left: Counter[str]) -> LoggedQuery | None:
    if event["event"] == "prompt":
        if event.get("outcome") not in ("injected", "silent"):
            left[f"prompt {event.get('outcome')}"] += 1
            return None
        shown, tool = event.get("injected"), HOOK
        retriever = f"memory({event['strategy']!r}, threshold={event.get('threshold')!r})" if event.get("strategy") else None
    elif event["event"] == "search":
        shown, tool = event.get("results"), str(event.get("tool") or "memory_search")
        retriever = f"memory({event['strategy']!r})" if event.get("strategy") else None
    else:
        return None
    hits = _hits(shown)
    if hits is None or not isinstance(event.get("query"), str):
        left["unreadable"] += 1
        return None
    # A short prompt was searched with the turns before it: without them nobody could tell what it asked for.
    text = (_word(event, "searched") if event.get("enriched") is True else None) or event["query"]
    joint: dict[str, Any] = {name: _word(event, name) for name in ("session_id", "prompt_id", "intent")}
    micros = _micros(event)
    name = imported_id("eq_", micros, tool, joint["session_id"] or "", joint["prompt_id"] or "", text, *hits)
    found: dict[str, Any] = {"result_ids": tuple(hits), "scores": tuple(hits.values()), "retriever": retriever}
    found |= {"total_latency_ms": _number(event.get("ms")), "traffic": received(_word(event, "traffic"))}
    return LoggedQuery(name, text, tool, iso(micros), project=project, **joint, **found)


def _hits(shown: Any) -> dict[str, float] | None:
    if not isinstance(shown, list):
        return None
    hits: dict[str, float] = {}
    for one in shown:
        name, score = (one.get("id"), _number(one.get("score"))) if isinstance(one, dict) else (None, None)
        if not isinstance(name, str) or not name or score is None:
            return None
        hits.setdefault(name, score)
    return hits


def _feedback(event: Event, project: str, left: Counter[str]) -> Iterator[FeedbackEvent]:
    """Yield what an event says was done with memories."""
    if event["event"] not in ("read", "reference"):
        return
    kind: EventType = "reference" if event["event"] == "reference" else "read_after_search"
    items = event.get("referenced") if kind == "reference" else [event]
    session, prompt = _word(event, "session_id"), _word(event, "prompt_id")
    for item in items if isinstance(items, list) else []:
        name = item.get("id") if isinstance(item, Mapping) else None
        if not isinstance(name, str) or not name:
            left["unreadable"] += 1
        elif session is None:
            left[f"{kind} of no session"] += 1
        else:
            facts: dict[str, Any] = {} if prompt is None else {"prompt_id": prompt}
            if kind == "reference" and type(item.get("words")) is int:
                facts["words"] = item["words"]
            micros = _micros(event)
            own_id, at = stable_id(kind, session, prompt or "", name, str(micros)), iso(micros)
            yield FeedbackEvent(own_id, kind, session, at, project=project, item_id=name, actor="agent", metadata=facts)


def _word(event: Event, name: str) -> str | None:
    value = event.get(name)
    return value if isinstance(value, str) and value.strip() else None


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    return float(value) if known else None


def _micros(event: Event) -> int:
    return round(float(event["at"]) * 1_000_000)


def _pages(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[start : start + PAGE] for start in range(0, len(rows), PAGE))


# ── figures ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class MemoryFigures:
    """Whether the memory works: what the hook did with prompts, and what became of what it showed.

    An injection is a prompt that was shown at least one memory. It is ``false`` where one of them was wrong, right where all
    of them were, else unknown; a share is None if nothing could make it.
    """

    prompts: int
    """That were searched for: injected or silent."""
    injections: int
    shown: int
    """Memories in them."""
    read: int
    """Injections of which a memory was read."""
    referenced: int
    """Injections of which the answer quoted a memory."""
    right: int
    false: int
    not_searched: Mapping[str, int] = field(default_factory=dict)
    """Prompts without a search: skipped, empty, errors, timeouts; the journal alone knows them."""
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    """p50 and p95 of the hook's own work, where there was any."""
    since_injection: int = 0
    """Prompts since the last one with an injection."""

    @property
    def silent(self) -> int:
        return self.prompts - self.injections

    @property
    def judged(self) -> int:
        return self.right + self.false

    @property
    def unknown(self) -> int:
        return self.injections - self.judged

    @property
    def silent_rate(self) -> float | None:
        return _share(self.silent, self.prompts)

    @property
    def reported(self) -> bool:
        """Whether the host has told of anything that became of an injection; until then nothing is known of it."""
        return bool(self.read or self.referenced)

    @property
    def read_rate(self) -> float | None:
        return _share(self.read, self.injections) if self.reported else None

    @property
    def reference_rate(self) -> float | None:
        return _share(self.referenced, self.injections) if self.reported else None

    @property
    def false_inject_rate(self) -> float | None:
        """False ones among the injections about which enough is known to say."""
        return _share(self.false, self.judged)

    def as_record(self) -> dict[str, Any]:
        """Return every figure under its name, as commands and tools show them."""
        counts = ("prompts", "injections", "silent", "shown", "read", "referenced", "right", "false", "unknown", "judged")
        rates = ("silent_rate", "read_rate", "reference_rate", "false_inject_rate", "since_injection")
        found: dict[str, Any] = {name: getattr(self, name) for name in (*counts, *rates)}
        return {**found, "not_searched": dict(self.not_searched), "latency_ms": dict(self.latency_ms)}


def figures(root: str, *, since: float = 0.0) -> MemoryFigures:
    """Return the figures of a memory folder from its journal, from a moment on."""
    searches, feedback, _ = rows_of(root, since=since)
    other: Counter[str] = Counter()
    for event in journal(root, since=since):
        if event["event"] == "error" and event.get("during") == "prompt":
            other["timeout" if event.get("kind") == "timeout" else "error"] += 1
        elif event["event"] == "prompt" and event.get("outcome") not in ("injected", "silent"):
            other[str(event.get("outcome"))] += 1
    return count(searches, feedback, not_searched=dict(other))


def figures_in(store: Store, *, project: str = DEFAULT_PROJECT, since: datetime | None = None) -> MemoryFigures:
    """Return the figures of a project from the store; judgments by hand count there, too."""
    searches = store.queries(project=project, tool=HOOK, since=since)
    if not searches:  # and nothing else of a log, which may be long, is read
        return count((), ())
    asked = [row.query_id for row in searches]
    feedback = store.feedback(project=project, query_ids=asked, since=since)
    judgments = store.judgments(project=project, query_ids=asked)
    return count(searches, feedback, [one for one in judgments if one.source == "manual"])


def count(
    searches: Iterable[LoggedQuery],
    feedback: Iterable[FeedbackEvent],
    judgments: Iterable[StoredJudgment] = (),
    *,
    not_searched: Mapping[str, int] | None = None,
) -> MemoryFigures:
    """Return the figures of the hook's searches; of two verdicts on the same memory the last counts, one by hand most."""
    mine = sorted((row for row in searches if row.tool_name == HOOK), key=lambda row: (row.created_at, row.query_id))
    verdict: dict[tuple[str, str], bool] = {}
    opened: dict[str, set[str]] = {"read_after_search": set(), "reference": set()}
    for event in sorted(feedback, key=lambda row: (row.created_at, row.event_id)):
        if event.query_id is None or event.item_id is None:
            continue
        pair = event.query_id, event.item_id
        if event.event_type in SELECTING:
            verdict.setdefault(pair, True)
            opened.get(event.event_type, set()).add(event.query_id)
        elif event.event_type in ("validate_useful", "validate_not_useful"):
            verdict[pair] = event.event_type == "validate_useful"
    verdict.update({(one.query_id, one.item_id): one.relevance > 0 for one in judgments})
    right = false = injections = shown = since = 0
    for row in mine:
        since += 1
        if not row.result_ids:
            continue
        injections, shown, since = injections + 1, shown + len(row.result_ids), 0
        said = [verdict.get((row.query_id, item)) for item in row.result_ids]
        false += False in said
        right += all(said)
    ids = {row.query_id for row in mine if row.result_ids}
    used = {"read": len(ids & opened["read_after_search"]), "referenced": len(ids & opened["reference"])}
    judged = {"right": right, "false": false, "since_injection": since}
    latency = _latency([row.total_latency_ms for row in mine if row.total_latency_ms is not None])
    return MemoryFigures(len(mine), injections, shown, **used, **judged, not_searched=not_searched or {}, latency_ms=latency)


def health_with_memory(found: Health, store: Store, *, project: str = DEFAULT_PROJECT, now: datetime) -> Health:
    """Return the health of a project with the memory's line, if the project has prompts of a memory."""
    part = memory_part(store, project=project, since=now - LOOKED_BACK)
    return found if part is None else replace(found, parts=(*found.parts, part))


def memory_part(store: Store, *, project: str = DEFAULT_PROJECT, since: datetime | None = None) -> HealthPart | None:
    """Return the memory's line for ``ringtrue health``; None if no prompt was ever synced."""
    from ringtrue.answers import HealthPart

    found = figures_in(store, project=project, since=since)
    if not found.prompts:
        ever = store.queries(project=project, tool=HOOK, limit=1)
        return HealthPart("memory", "unused", "no recent prompt; run `ringtrue memory sync`") if ever else None
    said = [f"{found.prompts:,} prompts, {found.injections:,} with memories", f"silent {found.silent_rate:.0%}"]
    said += [f"read {found.read_rate:.0%}"] if found.read_rate is not None else []
    rate = found.false_inject_rate
    said.append("false injections not known yet" if rate is None else f"{rate:.0%} false of {found.judged:,} judged")
    wrong = found.since_injection >= QUIET or (rate is not None and found.judged >= ENOUGH and rate >= FALSE_INJECTS)
    if found.since_injection >= QUIET:
        said.append(f"nothing was shown for the last {found.since_injection:,} prompts; run `ringtrue memory doctor`")
    return HealthPart("memory", "wrong" if wrong else "ok", ", ".join(said), found.as_record())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _latency(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    return {f"p{share}": ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95)}
