"""Sessions: what was searched and what came of it, and whether better searches go with better outcomes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ringtrue.errors import InputError
from ringtrue.feedback.derive import SELECTING, text_key, variant_of, winning_by_words
from ringtrue.feedback.detect import OPENING, VALIDATING, re_searches
from ringtrue.log.linking import WINDOW, grouped, instant, link_all
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, HistoryPoint, LoggedQuery, StoredJudgment

if TYPE_CHECKING:
    from ringtrue.store import Store

RELEVANT = 2
"""From this grade on an item answers its query."""
FEWEST = 10
"""Sessions below which no interval of a correlation is worth printing."""
QUALITIES = ("mean_rr", "re_search_rate", "selected_rate")
OUTCOMES = ("knowledge_delta", "uncertainty_reduction", "learning_index")
SERIES = "task_"
"""What precedes the name of such a figure in the store's history."""


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How the task of a session ended. Each figure is a difference of two shares, so from -1 to 1; None if not measured."""

    session_id: str
    task_id: str = ""
    knowledge_delta: float | None = None
    uncertainty_reduction: float | None = None
    learning_index: float | None = None

    def __post_init__(self) -> None:
        for name in OUTCOMES:
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= 1:
                raise InputError(f"{name} is {value!r:.40}; write a number from -1 to 1 (0.12 for 12 of 100), or leave it out")


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session in figures. None stands for what cannot be known."""

    session_id: str
    started_at: str
    queries: int
    selected: int
    """Searches from which something was selected."""
    validated: int
    """Items that were said to be useful or not."""
    re_searches: int
    items_accessed: int
    duration_minutes: float
    """From the first search or event to the last."""
    turns: int | None
    """As given, else the number of different prompts; None if neither is known."""
    mean_rr: float | None
    """Mean reciprocal rank of the first relevant item over judged searches; None if none is judged."""
    judged: int
    variants: tuple[str, ...]
    outcome: TaskOutcome | None = None

    @property
    def re_search_rate(self) -> float | None:
        """Share of the searches that repeat an earlier one."""
        return self.re_searches / self.queries if self.queries else None

    @property
    def selected_rate(self) -> float | None:
        """Share of the searches from which something was selected."""
        return self.selected / self.queries if self.queries else None

    @property
    def turns_per_search(self) -> float | None:
        return self.turns / self.queries if self.turns is not None and self.queries else None


@dataclass(frozen=True, slots=True)
class Correlation:
    """Spearman's rho of a figure of sessions with an outcome; no interval if there are too few, and why."""

    quality: str
    outcome: str
    sessions: int
    rho: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""


def task_points(outcome: TaskOutcome, *, at: str, project: str = DEFAULT_PROJECT) -> list[HistoryPoint]:
    """Return how the store keeps the outcome of a task: a point in the history for each figure that was measured."""
    labels = {"session_id": outcome.session_id, "task_id": outcome.task_id}
    measured = ((name, getattr(outcome, name)) for name in OUTCOMES)
    return [HistoryPoint(at, SERIES + name, value, labels, project) for name, value in measured if value is not None]


def stored_outcomes(store: Store, *, project: str = DEFAULT_PROJECT, since: str | datetime | None = None) -> list[TaskOutcome]:
    """Return the outcomes in the store, one per session: the mean if a session had several tasks."""
    points = [(name, one) for name in OUTCOMES for one in store.history(SERIES + name, project=project, since=since)]
    found = []
    for session_id, of_session in grouped((one.labels["session_id"], (name, one)) for name, one in points).items():
        tasks = dict.fromkeys(one.labels["task_id"] for _, one in of_session)
        figures = grouped((name, one.value) for name, one in of_session)
        means = {name: round(sum(values) / len(values), 9) for name, values in figures.items()}
        found.append(TaskOutcome(session_id, ", ".join(tasks), **means))
    return found


def session_summaries(
    searches: Iterable[LoggedQuery],
    events: Iterable[FeedbackEvent],
    *,
    judgments: Iterable[StoredJudgment] = (),
    turns: Mapping[str, int] | None = None,
    outcomes: Iterable[TaskOutcome] = (),
    window: timedelta = WINDOW,
) -> list[SessionSummary]:
    """Return a summary of every session that searched, by the time of its first search.

    Events without a search, or without their rank in it, are linked as ``link`` does, within ``window``.
    ``judgments`` decide the mean reciprocal rank. Those that were derived from the same sessions only say where people clicked,
    so give those that came from elsewhere. Raises InputError where two outcomes are given for one session.
    """
    searches = list(searches)
    ended: dict[str, TaskOutcome] = {}
    for outcome in outcomes:
        if outcome.session_id in ended:
            raise InputError(f"session '{outcome.session_id}' has two outcomes; give one for each session")
        ended[outcome.session_id] = outcome
    by_session = grouped((query.session_id, query) for query in searches if query.session_id)
    once = {event.event_id: event for event in link_all(list(events), searches, window=window)}
    told = grouped((event.session_id, event) for event in once.values())
    # Counted from the log itself: it must not hang on whether somebody has run the finder.
    repeated = {event.query_id for event in re_searches(searches)}
    best = winning_by_words(judgments, searches)
    relevant = grouped(pair for pair, one in best.items() if one.relevance >= RELEVANT)
    found = []
    for session_id, mine in by_session.items():
        acts = told.get(session_id, [])
        moments = sorted([instant(query.created_at) for query in mine] + [instant(event.created_at) for event in acts])
        ranks = [rr for query in mine if (rr := _rr(query, relevant)) is not None]
        prompts = {query.prompt_id for query in mine if query.prompt_id}
        first = min(mine, key=lambda query: instant(query.created_at))
        taken = {event.query_id for event in acts if event.event_type in SELECTING and event.rank_in_results > 0}
        found.append(
            SessionSummary(
                session_id=session_id,
                started_at=first.created_at,
                queries=len(mine),
                selected=len(taken & {query.query_id for query in mine}),
                validated=len({event.item_id for event in acts if event.event_type in VALIDATING}),
                re_searches=sum(query.query_id in repeated for query in mine),
                items_accessed=len({event.item_id for event in acts if event.event_type in OPENING}),
                duration_minutes=round((moments[-1] - moments[0]).total_seconds() / 60, 3),
                turns=(turns or {}).get(session_id, len(prompts) or None),
                mean_rr=sum(ranks) / len(ranks) if ranks else None,
                judged=len(ranks),
                variants=tuple(sorted({variant_of(query) for query in mine})),
                outcome=ended.get(session_id),
            )
        )
    return sorted(found, key=lambda one: (instant(one.started_at), one.session_id))


def correlations(summaries: Sequence[SessionSummary], *, rng: np.random.Generator, resamples: int = 2000) -> list[Correlation]:
    """Return how the figures of sessions go with their outcomes, for every pair of which at least two sessions have both.

    The 95 % interval is the bootstrap's over sessions: it says how far other sessions like these would agree. A correlation is
    no cause: easy tasks have good searches and good outcomes alike.
    """
    found = []
    for quality, outcome in product(QUALITIES, OUTCOMES):
        figures: list[tuple[Any, Any]] = [(getattr(one, quality), getattr(one.outcome, outcome, None)) for one in summaries]
        pairs = [pair for pair in figures if None not in pair]
        if len(pairs) > 1:
            found.append(_correlation(quality, outcome, pairs, rng, resamples))
    return found


def _correlation(
    quality: str, outcome: str, pairs: Sequence[tuple[float, float]], rng: np.random.Generator, resamples: int
) -> Correlation:
    from ringtrue.stats import spearman_rho  # needless for the memory server, too

    values = np.asarray(pairs, np.float64)
    n = len(values)
    rho = spearman_rho(values[:, 0], values[:, 1])
    if math.isnan(rho):
        return Correlation(quality, outcome, n, None, why="one side is the same in every session")
    if n < FEWEST:
        return Correlation(quality, outcome, n, rho, why=f"{n} sessions are too few for an interval; it takes {FEWEST}")
    drawn = rng.integers(0, n, size=(resamples, n))
    again = np.asarray([spearman_rho(values[rows, 0], values[rows, 1]) for rows in drawn])
    defined = again[~np.isnan(again)]
    if len(defined) < 0.95 * resamples:
        return Correlation(quality, outcome, n, rho, why="most sessions are alike; resamples of them have no correlation")
    low, high = np.quantile(defined, [0.025, 0.975])
    return Correlation(quality, outcome, n, rho, float(low), float(high))


def _rr(query: LoggedQuery, relevant: Mapping[str, Sequence[str]]) -> float | None:
    """Return the reciprocal rank; None if no relevant item is known, which nothing could have found."""
    wanted = relevant.get(text_key(query.query))
    if not wanted:
        return None
    return next((1 / rank for rank, item_id in enumerate(dict.fromkeys(query.result_ids), 1) if item_id in wanted), 0.0)
