"""What the journal of the hooks says about a memory folder in use: how often it spoke, and what became of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ringtrue.errors import RingtrueError
from ringtrue.memory.hook.journal import events

DAY = 86_400.0
DAYS = 30
"""How far back the figures look unless told otherwise."""
TIMELY = 30
"""Prompts from which on silence says something."""


@dataclass(frozen=True)
class MemoryHealth:
    """Figures of one window of time; a rate is None if there is nothing to divide by.

    ``searched`` are the prompts that were looked up: those injected and those silent. Empty prompts, nods and the host's own
    messages are none of them. ``unused_rate`` is the share of prompts with an injection of which nothing was read or quoted;
    that is not yet wrong, since a title alone can help, and None if the host reports no read at all. ``false_inject_rate``
    is the share of wrong ones among the injections that somebody judged (``signals.MemoryFigures``).
    """

    days: float
    prompts: int
    searched: int
    injected: int
    silent: int
    empty: int
    skipped: int
    errors: int
    timeouts: int
    injections: int
    """Pointers shown, up to three a prompt."""
    silent_rate: float | None
    read_after_injection_rate: float | None
    """Share of prompts with an injection after which one of the memories shown was read."""
    reference_rate: float | None
    """Share of prompts with an injection whose answer quotes one of the memories shown."""
    unused_rate: float | None
    silent_in_a_row: int
    """Searched prompts since something was injected last."""
    empty_in_a_row: int
    """Prompts that came empty, since one came with text."""
    last_prompt_at: float | None
    ms_p50: float | None
    ms_p95: float | None
    shown: Mapping[str, int]
    """How often each memory was injected, by id."""
    read: Mapping[str, int]
    """How often each memory was read, by id, asked for or not."""
    last_error: str = ""
    roads: Mapping[str, int] = field(default_factory=dict)
    """How many prompts were answered by the ``server`` of the session, ``numpy`` in the hook and ``words`` alone."""
    words_because: str = ""
    """Why the last prompt that words alone answered was."""
    judged: int = 0
    """Injections about which somebody, or a reading, said whether they were right."""
    false_inject_rate: float | None = None


def health(root: str, *, now: float, days: float = DAYS) -> MemoryHealth:
    """Return the figures of the last days of a memory folder; all counts are 0 if there is no journal."""
    from ringtrue.memory.signals import figures

    since = now - days * DAY
    known = figures(root, since=since)
    found = health_of(events(root, since=since), days=days)
    return replace(found, judged=known.judged, false_inject_rate=known.false_inject_rate)


def health_of(seen: Iterable[Mapping[str, Any]], *, days: float = DAYS) -> MemoryHealth:
    """Return the figures of events as the journal yields them, in their order."""
    found = _Tally()
    for event in seen:
        if event["event"] == "error":
            found.faults["timeout" if event.get("kind") == "timeout" else "error"] += 1
            found.last_error = str(event.get("message", ""))
        elif event["event"] == "prompt":
            found.prompt(event)
        elif event["event"] in ("read", "reference"):
            found.use(event)
    spoke = [one for one in found.asked if one.shown]
    counts, searched = found.outcomes, found.outcomes["injected"] + found.outcomes["silent"]

    def share_of(used: Iterable[bool]) -> float | None:
        return _share(sum(used), len(spoke)) if found.reports else None

    return MemoryHealth(
        days=days,
        prompts=counts.total(),
        searched=searched,
        **{name: counts[name] for name in ("injected", "silent", "empty", "skipped")},
        errors=found.faults["error"],
        timeouts=found.faults["timeout"],
        injections=found.shown.total(),
        silent_rate=_share(counts["silent"], searched),
        read_after_injection_rate=share_of(one.read for one in spoke),
        reference_rate=share_of(one.quoted for one in spoke),
        unused_rate=share_of(not one.read and not one.quoted for one in spoke),
        silent_in_a_row=found.silent_row,
        empty_in_a_row=found.empty_row,
        last_prompt_at=found.last_at,
        ms_p50=_percentile(found.times, 0.5),
        ms_p95=_percentile(found.times, 0.95),
        shown=dict(found.shown),
        read=dict(found.read),
        last_error=found.last_error,
        roads=dict(found.roads),
        words_because=found.words_because,
    )


class _Tally:
    """What the events seen so far come to."""

    def __init__(self) -> None:
        self.outcomes, self.shown, self.read, self.faults = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        self.times: list[float] = []
        self.asked: list[_Asked] = []
        self.last_at: float | None = None
        self.last_error = self.words_because = ""
        self.roads = Counter[str]()
        self.silent_row = self.empty_row = 0
        self.reports = False
        self._by_prompt: dict[tuple[Any, Any], _Asked] = {}
        """Of a session, each prompt, and the latest under None: hosts that do not name prompts mean that one."""

    def prompt(self, event: Mapping[str, Any]) -> None:
        outcome = str(event.get("outcome"))
        self.outcomes[outcome] += 1
        self.last_at = float(event["at"])
        self.empty_row = self.empty_row + 1 if outcome == "empty" else 0
        if type(event.get("ms")) in (int, float) and 0 <= event["ms"] < 1e9:
            self.times.append(float(event["ms"]))
        self.words_because = str(event.get("words_because") or self.words_because)
        if isinstance(event.get("by"), str):
            self.roads[event["by"]] += 1
        if outcome in ("injected", "silent"):
            self.silent_row = self.silent_row + 1 if outcome == "silent" else 0
            one = _Asked(_ids(event.get("injected")))
            self.shown.update(one.shown)
            self.asked.append(one)
            for prompt in (None, event.get("prompt_id") or None):
                self._by_prompt[event.get("session_id"), prompt] = one

    def use(self, event: Mapping[str, Any]) -> None:
        self.reports = True
        quoted = event["event"] == "reference"
        ids = _ids(event.get("referenced")) if quoted else {str(event.get("id"))}
        if not quoted:
            self.read.update(ids)
        found = self._by_prompt.get((event.get("session_id"), event.get("prompt_id") or None))
        if found is not None and ids & found.shown:
            found.read, found.quoted = found.read or not quoted, found.quoted or quoted


def project_figures() -> dict[str, Any]:
    """Return the review backlog and the newest evaluation in the configured store; ``unknown`` says why one is None."""
    from ringtrue.config import project
    from ringtrue.rollout import review_and_evaluation
    from ringtrue.store import Store

    try:
        file = Store.place().sqlite
        if file is None or file.exists():  # a command that only looks makes no store
            with Store.open() as store:
                return dict(review_and_evaluation(store, project=project()))
        why = "no store yet; run `ringtrue memory sync` or `ringtrue eval` in this project"
    except RingtrueError as problem:
        why = str(problem)
    return {"backlog": None, "evaluation": None, "unknown": dict.fromkeys(("backlog", "evaluation"), why)}


class _Asked:
    """A prompt that was looked up: what was shown with it, and whether that was read or quoted."""

    def __init__(self, shown: set[str]) -> None:
        self.shown, self.read, self.quoted = shown, False, False


def _ids(value: object) -> set[str]:
    return {str(one.get("id")) for one in value if isinstance(one, dict)} if isinstance(value, list) else set()


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percentile(values: list[float], share: float) -> float | None:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
