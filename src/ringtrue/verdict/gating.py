"""The gate: an evaluation, a policy and a baseline → pass, fail or undecided, with every check.

It reads and judges; it never writes a baseline. Beside it stand what an update of the baseline moves and what speaks against
it, and whether a run that was made earlier is still a run of this search, these documents and this golden set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from ringtrue.answers import Movement
from ringtrue.golden import content_hash, parse_version, split
from ringtrue.records import GoldenSet
from ringtrue.run import Evaluation, Routed
from ringtrue.verdict.baseline import baseline_of, check_version
from ringtrue.verdict.checks import (
    BaselineComparison,
    completeness_checks,
    drop_checks,
    floor_checks,
    lacking_queries,
    latency_checks,
    latency_increase_checks,
    no_baseline_checks,
    other_golden,
    paired_means,
    paired_queries,
    pairing_note,
    undefined_checks,
)
from ringtrue.verdict.comparing import compare
from ringtrue.verdict.numbers import EVEN, some, two, upside, with_measures
from ringtrue.verdict.records import PERCENTILES, Baseline, Check, Comparison, Policy, Verdict

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
        notes += filter(None, [pairing_note(baseline, baseline_of(whole))])
        against = BaselineComparison(whole, baseline, policy, comparison)
        checks += undefined_checks(whole, baseline, policy)
        checks += drop_checks(against, problems)
        minimum = policy.slice_minimum
        if few := [f"{name} ({len(queries)})" for name, queries in against.slices() if len(queries) < minimum]:
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
    return "fail" if "fail" in seen else "undecided" if "undecided" in seen else "pass"


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


def movements(old: Baseline | None, new: Baseline) -> dict[str, Movement]:
    """Return what an update moves, by name: every measure and percentile of either, in order.

    A measure of both is the mean over the queries that can be compared; without any, there is no old value.
    """
    before: dict[str, float | None] = {} if old is None else {**old.metrics, **old.latency}
    after: dict[str, float | None] = {**new.metrics, **new.latency}
    if old is not None and old.per_query:
        paired = paired_queries(old, new)
        for name in (name for name in old.metrics if name in new.metrics):
            if paired:
                before[name], after[name] = paired_means(old.scores, new.scores, name, paired)
            else:
                before[name] = None
    moves = {}
    for name in (*before, *after):
        then, now = before.get(name), after.get(name)
        moves[name] = Movement(then, now, None if then is None or now is None else now - then)
    return moves


def has_moved(moves: Mapping[str, Movement]) -> bool:
    """True if a measure came, went or changed; a latency is never the same twice and does not count."""
    changes = (move.diff for name, move in moves.items() if name not in PERCENTILES)
    return any(change is None or abs(change) > EVEN for change in changes)


def objections(evaluation: Evaluation, old: Baseline | None, policy: Policy) -> tuple[str, ...]:
    """Return what speaks against taking a run as the new standard, a sentence each; nothing if it is at least as good.

    A floor that the run misses is not an objection by itself: a search that is still weak, but better than it was, is progress.
    """
    found = []
    failed = evaluation.failures
    if failed:
        found.append(f"{len(failed)} queries got no answer: {some(list(failed))}")
    if old is None:
        return tuple(found)
    whole, _ = with_measures(evaluation, policy.measures)
    new = baseline_of(whole)
    lacking = lacking_queries(whole, old)
    if lacking:
        found.append(f"{len(lacking)} queries of {old.name} are missing from the run: {some(lacking)}")
    if old.per_query and not paired_queries(old, new):
        found.append(f"the run shares no query of the same text and judgments with {old.name}: whether it is worse is unknown")
    for measure, move in movements(old, new).items():
        if measure not in policy.measures or move.old is None or move.new is None:
            continue
        if upside(measure) * (move.old - move.new) > EVEN:
            found.append(f"{measure} is worse than in {old.name}: {' → '.join(two(move.old, move.new))}")
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


UNNAMED = "cannot check that this run is of the current {what}: none is configured; set `{key}` under [eval] in ringtrue.toml"


def committed_checks(
    evaluation: Evaluation, *, search: Routed | None, golden: GoldenSet | None, place: str = ""
) -> tuple[list[Check], list[str]]:
    """Return an undecided check for everything that changed since the run was made, and what could not be checked.

    ``search`` and ``golden`` are those that are configured now, None if none is; ``place`` is where the golden set lies.
    """
    checks: list[Check] = []
    notes: list[str] = []
    if search is None:
        notes.append(UNNAMED.format(what="search", key="retriever"))
    else:
        checks += _search(evaluation, search)
    if golden is None:
        notes.append(UNNAMED.format(what="golden set", key="golden"))
    else:
        checks += _golden(evaluation, golden, place)
    return checks, notes


def _search(evaluation: Evaluation, now: Routed) -> Iterator[Check]:
    setup = evaluation.setup
    if now.fingerprint != setup.fingerprint:
        if now.text != setup.retriever:
            why = f"it is a run of {setup.retriever}, not of {now.text}"
        else:
            why = f"the search, its settings or a watched file changed since {setup.recorded_at}"
        prints = f"fingerprint {setup.fingerprint or 'unknown'}, now {now.fingerprint}"
        yield _stale(evaluation, "fingerprint", f"the run is not of this retriever ({prints}): {why}")
    elif setup.corpus is not None and now.corpus is not None and now.corpus != setup.corpus:
        yield _stale(evaluation, "documents", f"the searched documents changed since {setup.recorded_at}")


def _golden(evaluation: Evaluation, golden: GoldenSet, place: str) -> Iterator[Check]:
    origin = evaluation.setup.golden
    if origin.split in ("tuning", "held_out") and golden.metadata.get("split", "all") == "all":
        golden = split(golden)[0 if origin.split == "tuning" else 1]
    if evaluation.setup.sample < 1:  # the run chose its sample; the queries in it must be as they were
        asked = {query.query_id for query in evaluation.queries}
        golden = golden.part(asked)
    if content_hash(golden) != origin.content_hash:
        message = f"the run was made on {origin.version}, but {place} is another set or has changed since"
        yield _stale(evaluation, "golden set", message)


def _stale(evaluation: Evaluation, what: str, message: str) -> Check:
    cure = f"evaluate again with `ringtrue eval --out {evaluation.run_dir}` and commit the run"
    return Check("completeness", what, "undecided", f"{message}; {cure}", math.nan)
