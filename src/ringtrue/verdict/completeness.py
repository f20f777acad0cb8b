"""What must hold before a verdict means anything: every query answered, and the baseline made of the same things."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from ringtrue.run import Evaluation
from ringtrue.verdict.policy import Policy
from ringtrue.verdict.records import Baseline, Check
from ringtrue.verdict.wording import SHOWN, some

UPDATE = "`ringtrue baseline update`"


def completeness_checks(evaluation: Evaluation, baseline: Baseline | None, policy: Policy) -> Iterator[Check]:
    """Yield an undecided check for everything that is missing; nothing if all is there."""
    asked, failed, scored = len(evaluation.queries), evaluation.failures, len(evaluation.scores.query_ids)
    if failed:
        first = next(iter(failed))
        message = (
            f"{len(failed)} of {asked} queries got no answer, such as {first} ({failed[first]}); "
            "mend the search and evaluate again"
        )
        yield _missing("queries", message, asked - len(failed), asked, failed)
    if scored < policy.minimum_queries:
        message = (
            f"{scored} scored queries are too few for a verdict, {policy.minimum_queries} are needed; add queries to the set, "
            "or lower minimum_queries under [gate]"
        )
        yield _missing("queries", message, scored, policy.minimum_queries)
    if baseline is None:
        return
    if other_golden(evaluation, baseline):
        now, then = (f"{one.version} ({one.split} queries)" for one in (evaluation.setup.golden, baseline.golden))
        which = f"{then}, this run is of {now}" if now != then else f"another state or selection of {then}"
        message = (
            f"{baseline.name} was recorded on {which}: the two cannot be compared; evaluate on the same set, "
            f"or take this one as the new standard with {UPDATE}"
        )
        yield _missing("golden set", message)
        return
    if policy.same_corpus and other_corpus(evaluation, baseline):
        message = (
            f"{baseline.name} searched other documents "
            f"(corpus {str(baseline.corpus)[:8]}, now {str(evaluation.setup.corpus)[:8]}); "
            f"search the same, record them with {UPDATE}, or set same_corpus = false under [gate]"
        )
        yield _missing("corpus", message)
    lacking = lacking_queries(evaluation, baseline)
    if lacking:
        known = len(baseline.per_query)
        message = (
            f"{len(lacking)} of the {known} queries of {baseline.name} are not in this run: {some(lacking)}; "
            f"evaluate all of them, or record the new selection with {UPDATE}"
        )
        yield _missing("queries", message, known - len(lacking), known, lacking)


def no_baseline_checks(evaluation: Evaluation, policy: Policy, *, failed: bool) -> Iterator[Check]:
    """Yield an undecided check if the policy has rules that compare with a baseline: what was not compared has not passed.

    A run that ``failed`` its floors or ceilings is not offered as the baseline.
    """
    rules = list(policy.drop_measures) + ([] if math.isinf(policy.latency_increase) else ["the growth of p95"])
    if policy.require_baseline and rules:
        run = f" --run {evaluation.run_dir}" if evaluation.run_dir is not None else ""
        cure = f"record one with `ringtrue baseline update{run}`"
        if failed:
            cure = (
                "this run breaks a floor or ceiling: fix that first, or record a run that passes with "
                "`ringtrue baseline update --run FOLDER`"
            )
        message = (
            f"no baseline, so {', '.join(rules)} cannot be compared; {cure}, or decide by floors and ceilings alone "
            "with require_baseline = false under [gate]"
        )
        yield _missing("baseline", message)


def undefined_checks(evaluation: Evaluation, baseline: Baseline, policy: Policy) -> Iterator[Check]:
    """Yield an undecided check for every gated measure that lost its value for queries: their mean is over easier ones now.

    A share of an empty answer, for one, is no number; a search that falls silent would seem to get better.
    """
    for name in policy.measures:
        if name not in baseline.metrics or name not in evaluation.metrics:
            continue
        now = dict(zip(evaluation.scores.query_ids, evaluation.scores.of(name).tolist(), strict=True))
        had = [query for query, values in baseline.per_query.items() if not math.isnan(values.get(name, math.nan))]
        lost = [query for query in had if query in now and math.isnan(now[query])]
        if lost:
            message = (
                f"{name} has no value for {len(lost)} queries that have one in {baseline.name}, such as {some(lost)}; "
                "see why they got no answer, or gate a measure that counts an empty one"
            )
            yield _missing(name, message, len(had) - len(lost), len(had), lost)


def other_golden(evaluation: Evaluation, baseline: Baseline) -> bool:
    """True if both name their golden set and the contents differ."""
    return bool(baseline.golden.content_hash) and baseline.golden.content_hash != evaluation.setup.golden.content_hash


def other_corpus(evaluation: Evaluation, baseline: Baseline) -> bool:
    """True if both know their documents and these differ."""
    now = evaluation.setup.corpus
    return None not in (now, baseline.corpus) and now != baseline.corpus


def comparable(evaluation: Evaluation, baseline: Baseline, policy: Policy) -> bool:
    """True if a drop against the baseline can only come from the search."""
    return not other_golden(evaluation, baseline) and not (policy.same_corpus and other_corpus(evaluation, baseline))


def lacking_queries(evaluation: Evaluation, baseline: Baseline) -> list[str]:
    """Return the queries of a baseline that were not asked in this run."""
    there = {*evaluation.scores.query_ids, *evaluation.failures}
    return [query for query in baseline.per_query if query not in there]


def _missing(
    what: str, message: str, current: float = math.nan, wanted: float | None = None, queries: Iterable[str] = ()
) -> Check:
    return Check("completeness", what, "undecided", message, current, wanted, queries=tuple(queries)[:SHOWN])
