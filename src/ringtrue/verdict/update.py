"""Changing a baseline on purpose: what moves, what speaks against it, what the next version is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ringtrue.golden import parse_version
from ringtrue.run import Evaluation
from ringtrue.verdict.baseline import check_version
from ringtrue.verdict.completeness import lacking_queries
from ringtrue.verdict.gating import gate
from ringtrue.verdict.policy import PERCENTILES, Policy
from ringtrue.verdict.reachable import with_measures
from ringtrue.verdict.records import Baseline
from ringtrue.verdict.wording import EVEN, some, two, upside


@dataclass(frozen=True)
class BaselineMovement:
    """One number of a baseline, before and after an update."""

    measure: str
    old: float | None
    new: float | None

    @property
    def change(self) -> float | None:
        """Return new − old; None if one of the two is not there."""
        return None if self.old is None or self.new is None else self.new - self.old


def movements(old: Baseline | None, new: Baseline) -> tuple[BaselineMovement, ...]:
    """Return what an update moves: every measure and percentile of either, in order."""
    before = {} if old is None else {**old.metrics, **old.latency}
    after = {**new.metrics, **new.latency}
    return tuple(BaselineMovement(name, before.get(name), after.get(name)) for name in dict.fromkeys((*before, *after)))


def has_moved(moves: Iterable[BaselineMovement]) -> bool:
    """True if a measure came, went or changed; a latency is never the same twice and does not count."""
    changes = (move.change for move in moves if move.measure not in PERCENTILES)
    return any(change is None or abs(change) > EVEN for change in changes)


def objections(evaluation: Evaluation, old: Baseline | None, policy: Policy) -> tuple[str, ...]:
    """Return what speaks against taking a run as the new standard, a sentence each; nothing if it is at least as good.

    A floor that the run misses is no objection by itself: a search that is still weak, but better than it was, is progress.
    """
    found = []
    failed = evaluation.failures
    if failed:
        found.append(f"{len(failed)} queries got no answer: {some(list(failed))}")
    if old is None:
        return tuple(found)
    whole, _ = with_measures(evaluation, policy.measures)
    lacking = lacking_queries(whole, old)
    if lacking:
        found.append(f"{len(lacking)} queries of {old.name} are not in the run: {some(lacking)}")
    for name in policy.measures:
        if name in old.metrics and name in whole.metrics:
            then, now = old.metrics[name], whole.metrics[name]
            if upside(name) * (then - now) > EVEN:
                found.append(f"{name} is worse than in {old.name}: {' → '.join(two(then, now))}")
    verdict = gate(evaluation, policy, baseline=old)
    found += [
        check.message
        for check in verdict.failures
        if check.baseline is not None and check.rule in ("slice", "latency increase")
    ]
    return tuple(found)


def next_version(version: str, *, moved: bool) -> str:
    """Return the version after this one: the next minor if a number moved, else the next patch.

    >>> next_version("1.2.3", moved=True), next_version("1.2.3", moved=False)
    ('1.3.0', '1.2.4')

    Raises InputError for a version that is not like 1.2.0.
    """
    check_version(version, "version")
    return parse_version(version).bump("minor" if moved else "patch").number
