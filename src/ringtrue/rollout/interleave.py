"""One list made of two rankings: whose results do people choose? (S-3, for low traffic)

Both rankings stand in every list that is shown, so that each click compares them and nobody's mood or task does: far fewer
impressions than an A/B test. Every place has a credit in −1 to 1, above 0 where a click speaks for the treatment. Over the ways
a list may be drawn the credit of *every place* has mean 0; so whoever clicks by place alone, whatever places those are, favours
no side, and the sequential test of the credits keeps its alpha.

*Team draft* (Radlinski, Kurup & Joachims 2008): round by round a coin says who picks first. *Optimised* (Radlinski & Craswell
2013): of all lists in which each result is the next of one ranking, those are drawn, with such chances, that tell most while
every place stays without bias; a small linear program.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, get_args

from ringtrue.errors import CannotDecide, InputError, nearest

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
        drawn = _optimised(ours, theirs, fair, int.from_bytes(drawn_bytes[:8], "big") / 2**64)
    shown = set(drawn.items)
    longer = ours if len(ours) > len(theirs) else theirs
    rest = [item for item in longer if item not in shown][: k - fair]
    return Interleaved((*drawn.items, *rest), (*drawn.credits, *(0.0 for _ in rest)))


def _team_draft(control: tuple[str, ...], treatment: tuple[str, ...], k: int, coins: Sequence[bool]) -> Interleaved:
    same = _same_start(control, treatment, k)
    items, credits = list(control[:same]), [0.0] * same
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


def _optimised(control: tuple[str, ...], treatment: tuple[str, ...], k: int, chance: float) -> Interleaved:
    lists, chances = _optimal_chances(control[:k], treatment[:k])
    return lists[min(bisect_right(list(accumulate(chances)), chance), len(lists) - 1)]


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


def _same_start(control: Sequence[str], treatment: Sequence[str], k: int) -> int:
    """How many results both begin with: a click there says nothing, whoever is drawn."""
    pairs = zip(control[:k], treatment[:k])
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(k, len(control), len(treatment)))


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
