"""Interleaving: one list made of two rankings; whose results do people choose? For low traffic.

Both rankings stand in every list that is shown, so that each click compares them and nobody's mood or task does: far fewer
impressions than an A/B test. Every place has a credit in −1 to 1, above 0 if a click speaks for the treatment. Over the ways
a list may be drawn the credit of *every place* has mean 0; so whoever clicks by place alone, whatever places those are, favours
no side, and the sequential test of the credits, one per impression, keeps its alpha.

*Team draft* (Radlinski, Kurup & Joachims 2008): round by round a coin says who picks first. *Optimised* (Radlinski & Craswell
2013): of all lists in which each result is the next of one ranking, those are drawn, with such chances, that tell most while
every place stays without bias; a small linear program.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any, Literal, get_args

from ringtrue.answers import EventType
from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.log.linking import instant, link_all
from ringtrue.rollout.abtest import found_test, record_difference
from ringtrue.stats import ConfidenceSequence, SequentialPlan, Sprt
from ringtrue.store import DEFAULT_PROJECT, ABTest

if TYPE_CHECKING:
    from ringtrue.store import Store


InterleavingMethod = Literal["team-draft", "optimised"]
INTERLEAVINGS: tuple[InterleavingMethod, ...] = get_args(InterleavingMethod)
LONGEST = 10
"""Places that optimised interleaving reckons with: up to 2^10 lists are weighed against each other."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """A list to show, and what a click on each place says."""

    items: tuple[str, ...]
    credits: tuple[float, ...]
    """By place: above 0 a click speaks for the treatment, below for the control, at 0 for neither."""

    def credit(self, clicked: Collection[str]) -> float | None:
        """Return the mean credit of the places clicked, −1 to 1; None without a click, which says nothing of either side.

        >>> Interleaved(("a", "b", "c"), (-1.0, 1.0, 1.0)).credit({"b", "c", "elsewhere"})
        1.0
        """
        # Divided by all clicks, also those without credit: how many places carry credit depends on the draw, clicks do not.
        found = [credit for item, credit in zip(self.items, self.credits, strict=True) if item in clicked]
        return sum(found) / len(found) if found else None


def interleaved(
    control: Sequence[str],
    treatment: Sequence[str],
    *,
    key: str,
    method: str = "team-draft",
    k: int = 10,
    seed: int = 0,
) -> Interleaved:
    """Return k results of two rankings as one list; the same key and seed give the same list, on any machine.

    ``key`` is the impression, such as the query id of the log: a new one is a new draw. Places beyond the shorter ranking carry
    no credit, because only one side could fill them. Raises InputError if an option is unusable.

    >>> interleaved(["a", "b", "c"], ["a", "c", "d"], key="eq_1", k=3).items
    ('a', 'b', 'c')
    """
    if method not in INTERLEAVINGS:
        raise InputError(f"cannot use interleaving {method!r}; write {nearest(method, INTERLEAVINGS)}")
    if k < 1:
        raise InputError(f"cannot show {k} results; k is at least 1")
    if method == "optimised" and k > LONGEST:
        raise InputError(f"optimised interleaving weighs all lists of k results; {k} are too many, use at most {LONGEST}")
    # Chance comes from the key itself: no generator whose stream another version might change, and none to set up.
    drawn_bytes = hashlib.shake_256(f"{seed}:{key}".encode("utf-8", "surrogatepass")).digest(8 + k)
    ours, theirs = tuple(dict.fromkeys(control)), tuple(dict.fromkeys(treatment))
    fair = min(k, len(ours), len(theirs))
    if method == "team-draft":
        drawn = _team_draft(ours, theirs, fair, [byte < 128 for byte in drawn_bytes[8:]])
    else:
        lists, chances = _optimal_chances(ours[:fair], theirs[:fair])
        place = bisect_right(list(accumulate(chances)), int.from_bytes(drawn_bytes[:8], "big") / 2**64)
        drawn = lists[min(place, len(lists) - 1)]
    shown = set(drawn.items)
    longer = ours if len(ours) > len(theirs) else theirs
    rest = [item for item in longer if item not in shown][: k - fair]
    return Interleaved((*drawn.items, *rest), (*drawn.credits, *(0.0 for _ in rest)))


def _team_draft(control: tuple[str, ...], treatment: tuple[str, ...], k: int, coins: Sequence[bool]) -> Interleaved:
    # Where both begin alike a click says nothing, whoever is drawn.
    items = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(control[:k], treatment[:k]))]
    credits = [0.0] * len(items)
    shown = set(items)
    sides = {-1.0: iter(control), 1.0: iter(treatment)}
    picks = [0, 0]
    while len(items) < k:
        behind = picks[1] - picks[0]
        side = (1.0 if coins[len(items)] else -1.0) if behind == 0 else (-1.0 if behind > 0 else 1.0)
        item = next(item for item in sides[side] if item not in shown)  # there is one: each side has at least k
        items.append(item)
        credits.append(side)
        shown.add(item)
        picks[side > 0] += 1
    return Interleaved(tuple(items), tuple(credits))


@lru_cache(maxsize=1024)
def _optimal_chances(control: tuple[str, ...], treatment: tuple[str, ...]) -> tuple[tuple[Interleaved, ...], tuple[float, ...]]:
    """The lists and their chances that tell most; kept, because popular queries come again."""
    import numpy as np
    from scipy.optimize import linprog

    k = len(control)
    ranks = [{item: place for place, item in enumerate(ranking)} for ranking in (control, treatment)]
    apart = {item: ranks[0].get(item, k) - ranks[1].get(item, k) for item in {*control, *treatment}}
    widest = max((abs(places) for places in apart.values()), default=0) or 1
    lists = tuple(
        Interleaved(items, tuple(apart[item] / widest for item in items)) for items in _allowed(control, treatment, (), k)
    )
    credits = np.array([one.credits for one in lists]).reshape(len(lists), k)
    found = linprog(
        [-_tells(one.credits) for one in lists],
        A_eq=np.vstack([credits.T, np.ones(len(lists))]),
        b_eq=np.append(np.zeros(k), 1.0),
        bounds=(0, None),
        method="highs",
    )
    if not found.success:
        raise CannotDecide(f"no draw of these two rankings is without bias ({found.message}); use team-draft")
    drawn = [(one, chance) for one, chance in zip(lists, found.x.tolist(), strict=True) if chance > 1e-12]
    total = sum(chance for _, chance in drawn)
    return tuple(one for one, _ in drawn), tuple(chance / total for _, chance in drawn)


def _allowed(control: tuple[str, ...], treatment: tuple[str, ...], shown: tuple[str, ...], k: int) -> Iterator[tuple[str, ...]]:
    """Every list of k results in which each is the next of one ranking."""
    if len(shown) == k:
        yield shown
        return
    nexts = (next(item for item in ranking if item not in shown) for ranking in (control, treatment))
    for item in dict.fromkeys(nexts):
        yield from _allowed(control, treatment, (*shown, item), k)


def _tells(credits: Sequence[float]) -> float:
    """How much one click tells, where place r is clicked with a chance of 1 / r: the entropy of who wins it, ties aside."""
    weights = [1 / place for place in range(1, len(credits) + 1)]
    total = sum(weights) or 1.0
    shares = [sum(w for w, credit in zip(weights, credits) if credit * side > 0) / total for side in (-1, 1)]
    return -sum(share * math.log(share) for share in shares if share > 0)


def as_flag(feature_id: str, shown: Interleaved) -> dict[str, Any]:
    """Return what the log of an impression must carry, as its ``flags``, for its clicks to be weighed later.

    >>> as_flag("rerank-v2", Interleaved(("a", "b"), (-1.0, 1.0)))
    {'interleave': {'feature': 'rerank-v2', 'items': ['a', 'b'], 'credits': [-1.0, 1.0]}}
    """
    return {"interleave": {"feature": feature_id, "items": list(shown.items), "credits": list(shown.credits)}}


def from_flags(feature_id: str, flags: Mapping[str, Any]) -> Interleaved | None:
    """Return the list that an impression of this feature showed; None for any other impression."""
    noted = flags.get("interleave")
    if not isinstance(noted, Mapping) or noted.get("feature") != feature_id:
        return None
    return Interleaved(tuple(noted["items"]), tuple(float(credit) for credit in noted["credits"]))


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
    """Of the mean credit, valid at every look; None if the sprt decides."""
    decision: str
    decided_after: int | None


def judge_credits(
    credits: Iterable[float],
    *,
    method: str = "confidence-sequence",
    alpha: float = 0.05,
    delta: float = 0.05,
) -> InterleavingOutcome:
    """Return what the credits of impressions say, in the order in which they came; the first decision stays.

    Raises InputError if a credit or an option is unusable.

    >>> judge_credits([1.0, 0.0, 1.0] * 20).decision
    'accept-treatment'
    """
    if method not in DECIDERS:
        raise InputError(f"cannot decide by {method!r}; write {nearest(method, DECIDERS)}")
    plan = SequentialPlan(alpha, delta=delta)
    state: ConfidenceSequence | Sprt = Sprt(plan) if method == "sprt" else ConfidenceSequence(plan)
    decision, after = "continue", None
    wins: Counter[int] = Counter()
    for credit in credits:
        state = state.add(credit)
        wins[(credit > 0) - (credit < 0)] += 1
        if decision == "continue" and state.decision != "continue":
            decision, after = state.decision, state.n
    return InterleavingOutcome(
        impressions=state.n,
        treatment_wins=wins[1],
        control_wins=wins[-1],
        ties=wins[0],
        mean_credit=state.total / state.n if state.n else None,
        interval=None if isinstance(state, Sprt) else (state.low, state.high),
        decision=decision,
        decided_after=after,
    )


@dataclass(frozen=True, slots=True)
class InterleavingCounts:
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
    project: str = DEFAULT_PROJECT,
) -> InterleavingCounts:
    """Weigh the clicks on the feature's interleaved lists in its sequential test, each impression once.

    An impression is counted with the clicks it has; so those younger than ``settle`` wait for theirs. Clicks that name no
    search are linked as ``link`` does. Raises MissingInput if the feature has no test, InputError if that counts scores.
    """
    test = found_test(store, feature_id, project=project)
    began, until = instant(test.started_at), now - settle
    # All searches, not only interleaved ones: a click belongs to the newest search of its session that showed the item.
    searches = store.queries(project=project, since=(began - LOOK_BACK).isoformat())
    lists = [
        (instant(query.created_at), query.query_id, found)
        for query in searches
        if (found := from_flags(feature_id, query.flags)) is not None
    ]
    shown = {query_id: found for at, query_id, found in lists if began <= at < until}
    chosen: dict[str | None, set[str]] = {}
    for event in link_all(store.feedback(project=project, since=test.started_at, kinds=CHOSEN), searches):
        if event.item_id is not None:
            chosen.setdefault(event.query_id, set()).add(event.item_id)
    weighed = {query_id: one.credit(chosen.get(query_id, ())) for query_id, one in shown.items()}
    credits = {query_id: credit for query_id, credit in weighed.items() if credit is not None}
    new = 0
    for query_id, credit in credits.items():
        recorded = record_difference(store, feature_id, query_id, credit, now=now.isoformat(), project=project)
        test, new = recorded.test, new + recorded.counted
    before = sum(at < began for at, _, _ in lists)
    return InterleavingCounts(test, len(shown), len(credits), new, len(lists) - len(shown) - before, before)
