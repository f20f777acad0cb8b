"""The gate: an evaluation, a policy and a baseline → pass, fail or undecided, with every check.

It reads and judges; it never writes a baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from ringtrue.run import Evaluation
from ringtrue.verdict.comparing import compare
from ringtrue.verdict.completeness import completeness_checks, no_baseline_checks, other_golden, undefined_checks
from ringtrue.verdict.drops import BaselineComparison, drop_checks, latency_increase_checks
from ringtrue.verdict.floors import floor_checks, latency_checks
from ringtrue.verdict.policy import Policy
from ringtrue.verdict.reachable import with_measures
from ringtrue.verdict.records import Baseline, Check, Comparison, Verdict
from ringtrue.verdict.wording import some

DEFAULT_POLICY = Policy()


def gate(evaluation: Evaluation, policy: Policy = DEFAULT_POLICY, *, baseline: Baseline | None = None) -> Verdict:
    """Return whether an evaluation is good enough: every rule of the policy applied, with the queries behind a failure.

    Any failed check makes the verdict 'fail', else any undecided one 'undecided', else it is 'pass'. Without a baseline the
    floors can still fail, but rules that need one are undecided, unless the policy turns them off. A measure that was not
    scored is computed from the answers, if they hold what it takes.
    """
    whole, problems = with_measures(evaluation, policy.measures)
    checks = [*completeness_checks(whole, baseline, policy), *floor_checks(whole, policy, problems)]
    ceilings = tuple(latency_checks(whole, policy))
    notes = list(_notes(whole, baseline))
    comparison = None
    if baseline is None:
        failed = any(check.status == "fail" for check in (*checks, *ceilings))
        checks += no_baseline_checks(whole, policy, failed=failed)
    else:
        comparison = _compared(whole, policy, baseline)
        against = BaselineComparison(whole, baseline, policy, comparison)
        checks += undefined_checks(whole, baseline, policy)
        checks += drop_checks(against, problems)
        few = against.small_slices()
        if few:
            notes.append(f"slices with fewer than {policy.slice_minimum} queries are not compared: {some(few)}")
    checks += ceilings
    if baseline is not None:
        checks += latency_increase_checks(against)
    version = None if baseline is None else baseline.version
    return Verdict(word_of(checks), tuple(checks), evaluation.name, version, comparison, policy.mode, tuple(notes))


def with_checks(verdict: Verdict, checks: Iterable[Check], *, notes: Iterable[str] = ()) -> Verdict:
    """Return the verdict with further checks in front, further notes, and the word that follows from all checks."""
    every = (*checks, *verdict.checks)
    return replace(verdict, checks=every, word=word_of(every), notes=(*notes, *verdict.notes))


def word_of(checks: Iterable[Check]) -> Literal["pass", "fail", "undecided"]:
    """Return the word of a verdict: a failure is certain whatever else is unknown."""
    seen = {check.status for check in checks}
    if "fail" in seen:
        return "fail"
    return "undecided" if "undecided" in seen else "pass"


def _compared(evaluation: Evaluation, policy: Policy, baseline: Baseline) -> Comparison | None:
    """Return the paired comparison with the baseline; None if nothing can be paired.

    In mode statistical the gated measures decide, corrected for one another; otherwise all of it is for reading.
    """
    both = [str(one) for one in evaluation.scores.measures if one.definition.average == "mean" and str(one) in baseline.metrics]
    gated = [name for name in policy.drop_measures if name in both]
    shared = [query for query in evaluation.scores.query_ids if query in baseline.per_query]
    if not both or not shared or other_golden(evaluation, baseline):
        return None
    return compare(
        baseline,
        evaluation,
        deciding=gated if policy.mode == "statistical" else None,
        alpha=policy.alpha,
        # So many that every adjusted p can fall below alpha.
        resamples=max(10_000, math.ceil(20 * len(both) / policy.alpha)),
        slices=evaluation.setup.golden.slices,
    )


def _notes(evaluation: Evaluation, baseline: Baseline | None) -> Iterable[str]:
    if baseline is not None and not baseline.golden.content_hash:
        yield f"{baseline.name} does not say on which golden set it was recorded; whether it is this one cannot be checked"
    yield from (
        f"accepted when it was evaluated: {one.detail}" for one in evaluation.setup.preconditions if one.status == "failed"
    )
    golden = evaluation.setup.golden
    if golden.unreviewed:
        yield f"{golden.version} {'is' if golden.provisional else 'has'} {golden.reviewed}"
