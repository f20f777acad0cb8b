"""What the clicks on interleaved lists say: one credit per impression, and the sequential decision over them (S-3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ringtrue.answers import EventType
from ringtrue.errors import InputError, nearest
from ringtrue.log.linking import WINDOW, instant, link_all
from ringtrue.rollout.abtest import found_test, record_difference
from ringtrue.rollout.interleave import Interleaved, from_flags
from ringtrue.store import DEFAULT_PROJECT, ABTest

if TYPE_CHECKING:
    from ringtrue.store import Store

CHOSEN: tuple[EventType, ...] = ("click", "selection", "read_after_search", "reference", "cite", "validate_useful")
"""Events that say a result was chosen."""
DECIDERS = ("confidence-sequence", "sprt")
LOOK_BACK = timedelta(days=7)
"""How far before the test's beginning lists are looked for, to say that they do not count."""


@dataclass(frozen=True, slots=True)
class InterleavingOutcome:
    """Two rankings by what people chose."""

    impressions: int
    """Lists with at least one click; the others say nothing."""
    treatment_wins: int
    control_wins: int
    ties: int
    mean_credit: float | None
    """Above 0 for the treatment; None without a click."""
    interval: tuple[float, float] | None
    """Of the mean credit, valid at every look; None where the sprt decides."""
    decision: str
    decided_after: int | None


def judge_credits(
    credits: Iterable[float],
    *,
    method: str = "confidence-sequence",
    alpha: float = 0.05,
    beta: float = 0.20,
    delta: float = 0.05,
) -> InterleavingOutcome:
    """Return what the credits of impressions say, in the order in which they came; the first decision stays.

    Raises InputError if a credit or an option is unusable.

    >>> judge_credits([1.0, 0.0, 1.0] * 20).decision
    'accept-treatment'
    """
    from ringtrue.stats import ConfidenceSequence, SequentialPlan, Sprt

    if method not in DECIDERS:
        raise InputError(f"cannot decide by {method!r}; write {nearest(method, DECIDERS)}")
    plan = SequentialPlan(alpha, beta, delta)
    state: ConfidenceSequence | Sprt = Sprt(plan) if method == "sprt" else ConfidenceSequence(plan)
    decision, after = "continue", None
    signs = [0, 0, 0]
    for credit in credits:
        state = state.add(credit)
        signs[(credit > 0) - (credit < 0)] += 1
        if decision == "continue" and state.decision != "continue":
            decision, after = state.decision, state.n
    return InterleavingOutcome(
        impressions=state.n,
        treatment_wins=signs[1],
        control_wins=signs[-1],
        ties=signs[0],
        mean_credit=state.total / state.n if state.n else None,
        interval=None if isinstance(state, Sprt) else (state.low, state.high),
        decision=decision,
        decided_after=after,
    )


@dataclass(frozen=True, slots=True)
class Counted:
    """What one pass over the log found."""

    test: ABTest
    impressions: int
    """Interleaved lists of the feature, old enough that their clicks have come."""
    clicked: int
    new: int
    """Counted in the test now; the others were before, or it does not run."""
    waiting: int = 0
    """Lists that are too young: their clicks may still come."""
    before: int = 0
    """Lists of the seven days before the test began; they never count."""


def count_log(
    store: Store,
    feature_id: str,
    *,
    now: datetime,
    settle: timedelta,
    window: timedelta = WINDOW,
    project: str = DEFAULT_PROJECT,
) -> Counted:
    """Weigh the clicks on the feature's interleaved lists in its sequential test, each impression once.

    An impression is counted with the clicks it has; so those younger than ``settle`` wait for theirs. Clicks that name no
    search are linked as ``link`` does, within ``window``. Raises MissingInput where the feature has no test, InputError where
    that counts scores.
    """
    test = found_test(store, feature_id, project=project)
    began, until = instant(test.started_at), now - settle
    shown: dict[str, Interleaved] = {}
    waiting = before = 0
    # All searches, not only interleaved ones: a click belongs to the newest search of its session that showed the item.
    searches = store.queries(project=project, since=(began - LOOK_BACK).isoformat())
    for query in searches:
        found = from_flags(feature_id, query.flags)
        if found is None:
            continue
        at = instant(query.created_at)
        if at < began:
            before += 1
        elif at >= until:
            waiting += 1
        else:
            shown[query.query_id] = found
    chosen: dict[str, set[str]] = {}
    if shown:
        for event in link_all(store.feedback(project=project, since=test.started_at, kinds=CHOSEN), searches, window=window):
            if event.query_id in shown and event.item_id is not None:
                chosen.setdefault(event.query_id, set()).add(event.item_id)
    clicked = new = 0
    for query_id, one in shown.items():
        credit = one.credit(chosen.get(query_id, ()))
        if credit is None:
            continue
        clicked += 1
        recorded = record_difference(store, feature_id, query_id, credit, now=now.isoformat(), project=project)
        test, new = recorded.test, new + recorded.counted
    return Counted(test, len(shown), clicked, new, waiting, before)
