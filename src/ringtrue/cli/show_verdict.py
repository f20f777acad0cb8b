"""A verdict of the gate in the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringtrue.brief import counted
from ringtrue.cli import lib, show

if TYPE_CHECKING:
    from ringtrue.verdict.records import CheckStatus

QUERIES = 3
"""Queries that are named behind each failure, unless all are asked for; reports name more."""


def record(
    verdict: lib.verdict.Verdict, evaluation: lib.run.Evaluation, baseline: lib.verdict.Baseline | None, reports: Sequence[Path]
) -> dict[str, Any]:
    """Return a verdict under the stable keys of ``--json``."""
    return {
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        **show.pick(verdict, "failures", "checks", "name", "mode", "notes"),
        "baseline": None if baseline is None else show.pick(baseline, "version", "recorded_at", "retriever"),
        **show.pick(evaluation, "run_dir", "cached"),
        "golden": evaluation.setup.golden.version,
        "reports": reports,
    }


def print_verdict(
    verdict: lib.verdict.Verdict,
    evaluation: lib.run.Evaluation,
    baseline: lib.verdict.Baseline | None,
    *,
    verbose: bool = False,
) -> None:
    """Print the verdict, the checks that decide it, and whatever did not pass with the queries behind it."""
    for line in headline(verdict, evaluation):
        print(line)
    shown = verdict.checks if verbose else tuple(check for check in verdict.checks if _matters(check))
    rows = _rows(shown, evaluation, baseline)
    if rows:
        print()
        show.table(["measure", "baseline", "current", "Δ", "limit", "interval", "status"], rows, text_columns=1)
    for line in reasons(verdict, evaluation, baseline, queries=None if verbose else QUERIES, verbose=verbose):
        print(line)
    hidden = len(verdict.checks) - len(shown)
    if hidden:
        them = "it" if hidden == 1 else "them"
        print(f"\n{counted(hidden, 'informational check')} not shown: --verbose shows {them}")
    if evaluation.run_dir is not None:
        print(f"\nrun: {evaluation.run_dir}")
    show.notes(verdict.notes)


def _matters(check: lib.verdict.Check) -> bool:
    """True for a check that decides, and for an advisory one that is over its limit."""
    return check.status != "advisory" or (
        check.rule in ("latency", "latency increase") and check.threshold is not None and check.current > check.threshold
    )


def headline(verdict: lib.verdict.Verdict, evaluation: lib.run.Evaluation) -> list[str]:
    """Return the verdict in two lines: which checks failed, and what was judged."""
    return [lib.report.judged(verdict), f"{verdict.name} on {evaluation.setup.golden.version}, mode {verdict.mode}"]


def reasons(
    verdict: lib.verdict.Verdict,
    evaluation: lib.run.Evaluation,
    baseline: lib.verdict.Baseline | None,
    *,
    queries: int | None = None,
    verbose: bool = False,
) -> Iterator[str]:
    """Yield lines that tell what did not pass, each with the queries behind it (at most ``queries``), the guiltiest first."""
    texts = {query.query_id: query.text for query in evaluation.queries}
    titles: tuple[tuple[CheckStatus, str], ...] = (
        ("fail", "failed"), ("undecided", "could not be decided"), ("degraded", "worse, but allowed"), ("advisory", "advisory"),
    )  # fmt: skip
    for status, title in titles:
        found = [check for check in verdict.of_status(status) if verbose or _matters(check)]
        if found:
            yield f"\n{title}:"
        for check in found:
            yield f"  {check.message}"
            if status in ("degraded", "advisory"):
                continue
            for query in check.queries[:queries]:
                moved = _moved(check, query, evaluation, baseline)
                yield "    " + "  ".join(filter(None, (query, moved, lib.report.beside_id(query, texts.get(query, "")))))
            if queries is not None and len(check.queries) > queries:
                yield "    …"


def _rows(
    checks: Iterable[lib.verdict.Check], evaluation: lib.run.Evaluation, baseline: lib.verdict.Baseline | None
) -> list[list[str]]:
    """Return a row per measure and slice: its numbers, what it must keep to, and the status that matters most."""
    groups: dict[tuple[str, str | None], list[lib.verdict.Check]] = {}
    for check in checks:
        if check.rule != "completeness":
            groups.setdefault((check.measure, check.slice), []).append(check)
    rows = []
    for (measure, slice_), found in groups.items():
        back = next((check for check in found if check.baseline is not None), None)
        shown = back or found[0]
        timed = shown.rule in ("latency", "latency increase")
        digits = 1 if timed else 4
        ends = "—"
        if back is not None and back.interval is not None:
            ends = f"{back.interval[0]:+.{digits}f} to {back.interval[1]:+.{digits}f}"
        before = shown.baseline
        if before is None and slice_ is None and baseline is not None:
            before = _recorded(baseline, measure, evaluation, timed=timed)
        rows.append(
            [
                (f"{measure} (ms)" if timed else measure) + (f" of {slice_}" if slice_ is not None else ""),
                show.number(before, digits),
                show.number(shown.current, digits),
                show.signed(None if before is None else shown.current - before, digits),
                _limit(found, lower=timed or lib.verdict.upside(measure) < 0, digits=digits),
                ends,
                min((check.status for check in found), key=lib.report.BY_WEIGHT.index).upper(),
            ]
        )
    return rows


def _recorded(baseline: lib.verdict.Baseline, measure: str, evaluation: lib.run.Evaluation, *, timed: bool) -> float | None:
    """Return what the baseline says about a measure that has no rule of falling; None if it is of another set."""
    made, now = baseline.golden.content_hash, evaluation.setup.golden.content_hash
    if (made and made != now) or (baseline.per_query and set(baseline.per_query) != set(evaluation.scores.query_ids)):
        return None
    return (baseline.latency if timed else baseline.metrics).get(measure)


def _limit(checks: Iterable[lib.verdict.Check], *, lower: bool, digits: int) -> str:
    """Return what a measure must keep to, the strictest of its rules; those that are for reading only do not count."""
    limits = [check.threshold for check in checks if check.threshold is not None and check.status != "advisory"]
    if not limits:
        return "—"
    return f"≤ {min(limits):.{digits}f}" if lower else f"≥ {max(limits):.{digits}f}"


def _moved(check: lib.verdict.Check, query: str, evaluation: lib.run.Evaluation, baseline: lib.verdict.Baseline | None) -> str:
    """Return what happened to a query: its value, and the one it had if the check looks back."""
    then: Mapping[str, float | None] = {}
    now: Mapping[str, float | None] = evaluation.latencies
    timed = check.measure in ("p50", "p95", "p99")
    if baseline is not None:
        table = baseline.per_query.items()
        then = baseline.latencies if timed else {key: row.get(check.measure) for key, row in table}
    if not timed:
        now = {key: row.get(check.measure) for key, row in evaluation.scores.per_query.items()}
    digits = 1 if timed else 4
    current = show.number(now.get(query), digits)
    if current == "—":
        return ""
    return f"{show.number(then.get(query), digits)} → {current}" if check.baseline is not None else current
