"""An evaluation in the terminal: what it says first, then the numbers behind it."""

from __future__ import annotations

from ringtrue.brief import counted
from ringtrue.cli import lib, show
from ringtrue.cli.options import BASELINE

BAR = 24
"""Characters of the longest bar."""
FAILURES = 10
"""Questions without an answer that are listed."""


def print_evaluation(told: lib.report.Report, *, verbose: bool = False, advice: bool = True) -> None:
    """Print an evaluation with what its report says; ``verbose`` adds how the numbers were made, ``advice`` what to do next."""
    evaluation = told.evaluation
    _first(lib.report.headline(told), told)
    for reason in lib.report.reasons(told):
        print(f"  - {_plain(reason)}")
    if lib.report.against(told):
        print(f"{_plain(lib.report.against(told))}.")
    print()
    _measures(told)
    _slices(told)
    _components(told)
    _blame(evaluation)
    _latency(told)
    _failures(evaluation)
    if advice:
        _advice(told)
        _judging(told)
    _notes(told, verbose)


def _first(sentence: str, report: lib.report.Report) -> None:
    golden = report.evaluation.setup.golden
    label = f", {golden.reviewed}" if golden.unreviewed else ""
    text = f"{_plain(sentence)}."
    if show.on_terminal():
        from rich.console import Console
        from rich.text import Text

        colour = {"pass": "green", "fail": "red", "undecided": "yellow", None: ""}[lib.report.outcome(report)]
        Console().print(Text(text, style=f"bold {colour}".strip()))
    else:
        print(text)
    part = "" if golden.split == "all" else f", {golden.split.replace('_', '-')} part"
    name, search = _plain(report.evaluation.name), _plain(report.evaluation.search)
    what = search if name == search else f"{name}: {search}"
    print(f"{what} on {golden.version}{part}{label}; k = {report.evaluation.setup.k}")


def _measures(report: lib.report.Report) -> None:
    evaluation = report.evaluation
    found = [line for line in lib.report.measure_lines(report) if line.measure not in lib.report.PERCENTILES]
    judged = any(line.status for line in found)
    compared = any(line.baseline is not None for line in found)
    headers = ["measure", "mean", "95 % interval", "median", "sd", "queries"]
    headers += ["baseline", "change"] if compared else []
    headers += ["floor", "status"] if judged else []
    body = []
    for line in found:
        cells = [line.measure, line.current, lib.report.span(line.interval)]
        if line.measure in evaluation.metrics:
            one = evaluation.scores.summary(line.measure)
            cells += [one.median, one.std, one.count]
        else:
            cells += ["—", "—", "—"]
        cells += [line.baseline, lib.report.percent(line.change)] if compared else []
        cells += [line.threshold, lib.report.STATUS.get(line.status or "", "—")] if judged else []
        body.append(cells)
    show.table(headers, body)


def _slices(report: lib.report.Report) -> None:
    """The first field only: a terminal is narrow, and the reports have all."""
    fields = lib.report.slice_fields(report.evaluation)
    if not fields:
        return
    scores, names = report.evaluation.scores, lib.report.shown_measures(report)
    by_name = {name: scores.by(fields[0], name) for name in names}
    print()
    show.table(
        [fields[0], "queries", *names],
        [
            [
                _plain(value),
                max(means[value].count for means in by_name.values()),
                *(show.number(means[value].mean) for means in by_name.values()),
            ]
            for value in by_name[names[0]]
        ],
    )


def _components(report: lib.report.Report) -> None:
    parts = lib.report.component_lines(report)
    if not parts:
        return
    names = lib.report.shown_measures(report, most=2)
    body = []
    for part in parts:
        given = part.contribution
        body.append(
            [
                _plain(part.label),
                *(show.number(part.values.get(name)) for name in names),
                lib.report.portion(given.rate) if given else "",
                lib.report.portion(given.unique_rate) if given else "",
                lib.report.without_it(part),
            ]
        )
    print()
    show.table(["component", *names, "share of hits", "only from it", "without it"], body)
    if any(part.without for part in parts):
        print(f"without it: how {names[0]} changes without the part, below 0 where the search loses; 95 % interval")


def _blame(evaluation: lib.run.Evaluation) -> None:
    lost = lib.report.blame_lines(evaluation)
    if not lost:
        return
    total, depths = (
        lib.report.relevant_documents(evaluation),
        " or ".join(str(k) for k in sorted({loss.k for loss in evaluation.losses})),
    )
    gone = sum(line.count for line in lost)
    print(f"\n{gone:,} of {counted(total, 'relevant document')} are missing at k = {depths}; lost where:\n")
    bars = [
        ("relevant", total, 1.0),
        *((line.stage, line.count, line.share) for line in lost),
        ("found", total - gone, 1 - gone / total),
    ]
    names, digits = max(len(name) for name, _, _ in bars), len(f"{total:,}")
    left = total
    for name, count, share in bars:
        lost_here = name not in ("relevant", "found")
        left -= count if lost_here else 0
        # A waterfall: what a stage lost hangs where the documents that are left end.
        offset = round(BAR * left / total) if lost_here else 0
        bar = ("░" if lost_here else "█") * (max(1, round(BAR * count / total)) if count else 0)
        print(f"{name:<{names}}  {count:>{digits},}  {lib.report.portion(share):>5}  {' ' * offset}{bar}".rstrip())


def _latency(report: lib.report.Report) -> None:
    found = report.evaluation.latency
    if not found.count:
        return
    parts = []
    for line in lib.report.measure_lines(report):
        if line.measure in lib.report.PERCENTILES:
            more = [f"was {lib.report.milliseconds(line.baseline)}"] if line.baseline is not None else []
            more += [lib.report.STATUS[line.status]] if line.status else []
            parts.append(f"{line.measure} {lib.report.milliseconds(line.current)}" + (f" ({', '.join(more)})" if more else ""))
    print(f"\nlatency: {', '.join(parts)} over {counted(found.count, 'answer')}")


def _failures(evaluation: lib.run.Evaluation) -> None:
    failed = evaluation.failures
    if not failed:
        return
    print(f"\n{counted(len(failed), 'query')} got no answer:")
    for query_id, error in list(failed.items())[:FAILURES]:
        print(f"  {query_id}: {_plain(error)}")
    if len(failed) > FAILURES:
        print(f"  … and {len(failed) - FAILURES} more")


def _advice(report: lib.report.Report) -> None:
    if report.recommendations:
        print("\nRecommendations:")
    for index, one in enumerate(report.recommendations, 1):
        print(f"  {index}. {_plain(one.advice)}")


def _judging(report: lib.report.Report) -> None:
    """Say how to judge what was only measured."""
    folder = report.evaluation.run_dir
    if report.verdict is not None or report.comparison is not None or folder is None:
        return
    if BASELINE.is_file():
        print(f"\nTo judge it by {BASELINE}: ringtrue gate --run {folder}")
    else:
        print(f"\nTo hold later runs to it: ringtrue baseline update --run {folder}, then ringtrue gate")


def _notes(report: lib.report.Report, verbose: bool) -> None:
    for text in lib.report.notes(report) if verbose else lib.report.warnings(report):
        show.note(_plain(text))


def _plain(text: str) -> str:
    """Return text without the control characters by which a document could write on the terminal."""
    return lib.report.one_line(text)
