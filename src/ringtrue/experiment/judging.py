"""What changed between two setups, and what gate and paired comparison say of it: accepted, rejected or undecided.

Changes are settings: ``{"rrf.k": 30, "chunking.tokens": 256}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, SpecError
from ringtrue.experiment.ledger import Experiment
from ringtrue.run import Evaluation, Setup, open_run
from ringtrue.spec import Expression, Pipeline, parse
from ringtrue.verdict import Baseline, Check, Comparison, Policy, baseline_of, compare, gate, read_baseline, upside

SHOWN = 3
"""Failures that a reason names."""
_DERIVED = ("embedding_model", "reranker", "fusion", "channels")
"""What a configuration says about an expression; the expression itself says it more exactly."""


def open_arm(path: Path) -> Evaluation | Baseline:
    """Return what lies there: a run folder, or a baseline file; raises MissingInput and InputError as their readers do."""
    return open_run(path) if path.is_dir() or path.name == "run.json" else read_baseline(path)


def experiment_of(
    evaluation: Evaluation,
    before: Evaluation | Baseline | None,
    given: Experiment,
    *,
    measure: str | None = None,
    policy: Policy | None = None,
) -> Experiment:
    """Return ``given`` as the experiment of a run, held against what was there ``before``.

    What it lacks follows from the two: the changes from their setups, the verdict from gate and comparison, the description
    from the changes.
    """
    config_changes, verdict = given.config_changes, given.verdict
    if before is not None and not config_changes:
        config_changes = changes(before.setup if isinstance(before, Evaluation) else before, evaluation.setup)
    if before is not None and not verdict:
        verdict = judge(evaluation, before, measure=measure, policy=policy)
        if isinstance(before, Evaluation):
            # It is judged against as if it were a baseline; whoever reads the verdict looks for it under its own name.
            verdict = verdict.replace(baseline_of(before).name, f"run {given.baseline or before.name}")
    return replace(
        given,
        description=given.description or describe(config_changes),
        config_changes=config_changes,
        metrics=dict(evaluation.metrics),
        verdict=verdict,
        golden=evaluation.setup.golden.version,
        corpus=evaluation.setup.corpus,
    )


def describe(config_changes: Mapping[str, Any]) -> str:
    """Return changes as a sentence part: ``rrf.k = 30, chunking.tokens = 256``."""
    return ", ".join(f"{name} = {value}" for name, value in config_changes.items()) or "the same configuration again"


def judge(
    evaluation: Evaluation, before: Evaluation | Baseline, *, measure: str | None = None, policy: Policy | None = None
) -> str:
    """Return ``ACCEPTED (…)``, ``REJECTED (…)`` or ``UNDECIDED (…)``.

    Rejected is what fails a rule of the gate that was not failed before, or is worse by the paired test of ``measure``.
    Accepted is what is better by that test. Everything else, and runs that cannot be compared, are undecided.
    """
    rules = policy or Policy()
    baseline = baseline_of(before) if isinstance(before, Evaluation) else before
    checks = gate(evaluation, rules, baseline=baseline).checks
    apart = [check for check in checks if check.rule == "completeness" and check.status == "undecided"]
    if apart:
        return f"UNDECIDED ({apart[0].message})"
    earlier = gate(before, rules).failures if isinstance(before, Evaluation) else ()
    failed = [check for check in checks if check.status == "fail" and not _failed_before(check, earlier, baseline)]
    if failed:
        more = f"; and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
        return f"REJECTED ({'; '.join(check.message for check in failed[:SHOWN])}{more})"
    if not baseline.per_query:
        return f"UNDECIDED ({baseline.name} has no scores per query, so nothing can be tested)"
    found = compare(baseline, evaluation, primary=measure)
    word = {"better": "ACCEPTED", "worse": "REJECTED"}.get(found.verdict, "UNDECIDED")
    return f"{word} ({_reason(found)})"


def _failed_before(check: Check, earlier: tuple[Check, ...], baseline: Baseline) -> bool:
    """True if an absolute rule was missed already: the change did not cause it."""
    if any((old.rule, old.measure, old.slice) == (check.rule, check.measure, check.slice) for old in earlier):
        return True
    if check.threshold is None or check.slice is not None:
        return False
    if check.rule == "latency":
        return baseline.latency.get(check.measure, 0.0) > check.threshold
    then = baseline.metrics.get(check.measure) if check.rule in ("floor", "constitutional") else None
    return then is not None and upside(check.measure) * (then - check.threshold) < 0


def _reason(found: Comparison) -> str:
    main = found.measures[found.primary]
    numbers = f"{main.diff:+.4f} ({main.a:.4f} → {main.b:.4f}) over {main.n} queries, p = {main.p_adjusted:.2g}"
    gains = [upside(name) * one.diff for name, one in found.measures.items()]
    if found.verdict == "better":
        every = f"all {len(gains)} measures improved; " if len(gains) > 1 and all(gain > 0 for gain in gains) else ""
        return f"{every}{found.primary} better by {numbers}"
    if found.verdict == "worse":
        return f"{found.primary} worse by {numbers}"
    more = f"; about {main.more_queries:,} more queries would settle it" if main.more_queries else ""
    return f"not enough evidence: {found.primary} {numbers}{more}"


def changes(before: Setup | Baseline, after: Setup | Baseline) -> dict[str, Any]:
    """Return every setting of ``after`` that ``before`` has otherwise; None if it has none any more."""
    found = text_changes(before.retriever, after.retriever, "retriever")
    old, new = _flat(before.config), _flat(after.config)
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) == new.get(name) or name in _DERIVED:
            continue
        one, other = old.get(name), new.get(name)
        both = isinstance(one, str) and isinstance(other, str)
        found |= text_changes(str(one), str(other), name, inside=f"{name}.") if both else {name: other}
    return found


def text_changes(before: str, after: str, name: str, *, inside: str | None = None) -> dict[str, Any]:
    """Return which options of an expression changed; the whole text under ``name`` where its shape did.

    >>> text_changes("rrf(bm25(title=3), dense, k=60)", "rrf(bm25(title=1), dense, k=30)", "retriever")
    {'rrf.k': 30, 'rrf.bm25.title': 1}
    >>> text_changes("bm25", "rrf(bm25, dense)", "retriever")
    {'retriever': 'rrf(bm25, dense)'}
    """
    if before == after:
        return {}
    try:
        old, new = (dict(_parts(_stages(parse(text)))) for text in (before, after))
    except SpecError:
        return {name: after}
    if [(path, _shape(part)) for path, part in old.items()] != [(path, _shape(part)) for path, part in new.items()]:
        return {name: after}
    found: dict[str, Any] = {}
    for path, part in new.items():
        was, now = dict(old[path].options), dict(part.options)
        found |= {f"{path}.{key}": plain_value(now.get(key)) for key in sorted(was | now) if was.get(key) != now.get(key)}
    # The one expression of a setting goes by the setting's name: chunking.tokens, not chunking.fixed.tokens.
    return found if inside is None else {f"{inside}{key.partition('.')[2]}": value for key, value in found.items()}


def _parts(among: Sequence[Expression], path: str = "") -> Iterator[tuple[str, Expression]]:
    """Yield every part of an expression under its place, such as ``rrf.bm25``; twins have their number."""
    names = [part.name for part in among]
    for place, part in enumerate(among):
        twin = f"[{names[: place + 1].count(part.name)}]" if names.count(part.name) > 1 else ""
        here = f"{path}{part.name}{twin}"
        yield here, part
        inner = [stage for arg in part.args if isinstance(arg, Expression | Pipeline) for stage in _stages(arg)]
        yield from _parts(inner, f"{here}.")


def _shape(part: Expression) -> tuple[object, ...]:
    """Return what may not differ between two parts if only their options changed."""
    return part.at, *(arg for arg in part.args if not isinstance(arg, Expression | Pipeline))


def _stages(expression: Expression | Pipeline) -> tuple[Expression, ...]:
    return expression.stages if isinstance(expression, Pipeline) else (expression,)


def plain_value(value: object) -> Any:
    """Return an option's value as JSON can hold it."""
    if isinstance(value, tuple):
        return [plain_value(item) for item in value]
    return str(value) if isinstance(value, Expression | Pipeline) else value


def _flat(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= _flat(value, f"{path}{name}.") if isinstance(value, Mapping) else {f"{path}{name}": value}
    return flat


def given_change(text: str) -> tuple[str, Any]:
    """Return name and value of a change written as ``chunking.max_tokens=256``; raises InputError.

    >>> given_change("chunking.max_tokens=256"), given_change("model=small")
    (('chunking.max_tokens', 256), ('model', 'small'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InputError(f"--change {text!r} names no value; write it like --change chunking.max_tokens=256")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value.strip()
