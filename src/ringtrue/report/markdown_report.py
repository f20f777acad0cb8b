"""The report as Markdown: the verdict first, then what it rests on, with every question at the end (P-1)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ringtrue.measures import Latency
from ringtrue.report import lines as rows
from ringtrue.report.escape import header, md, row
from ringtrue.report.lines import MeasureLine, QueryLine
from ringtrue.report.records import Report
from ringtrue.report.story import (
    DASH,
    PERCENTILES,
    SIGN,
    STATUS,
    against,
    against_baseline,
    all_the_same,
    amount,
    before_name,
    beside_id,
    comparison_of,
    counted,
    depth,
    headline,
    how_tested,
    milliseconds,
    number,
    outcome,
    percent,
    place,
    portion,
    primary,
    probability,
    reasons,
    same,
    same_golden,
    says,
    setting,
    signed,
    slice_terms,
    span,
    title,
    word_of,
)
from ringtrue.verdict import MeasureComparison

IN_FULL = 20
"""Questions told in full; of a larger set the worst, and the others in a table."""
HITS = 10
"""Documents named for a question; what comes after says little to a reader."""
PARTS = {"embedding_model": "Embedding model", "chunking": "Chunking", "reranker": "Reranking", "fusion": "Fusion"}


def markdown(report: Report) -> str:
    """Return the whole report as one Markdown document."""
    sections = (
        _top,
        _summary,
        _checks,
        _comparison,
        _slices,
        _components,
        _blame,
        _latency,
        _failures,
        _advice,
        _queries,
        _notes,
    )
    return "\n".join(line for section in sections for line in section(report)).rstrip() + "\n"


def _top(report: Report) -> Iterator[str]:
    yield f"# {md(title(report))}"
    yield ""
    word = outcome(report)
    yield f"**{SIGN[word] + ' ' if word else ''}{md(headline(report), most=2000)}.**"
    yield ""
    for reason in reasons(report):
        yield f"- {md(reason, most=1000)}"
    if reasons(report):
        yield ""
    beside = against(report)
    if beside:
        yield f"{md(beside, most=2000)}."
        yield ""
    evaluation, baseline = report.evaluation, report.baseline
    setup, golden = evaluation.setup, evaluation.setup.golden
    yield f"- **Date**: {md(report.made_at)}"
    if baseline is not None:
        fit = "" if same_golden(report) else "; of another golden set, so not compared"
        yield f"- **Baseline version**: {md(baseline.version)} (recorded {md(baseline.recorded_at)}{fit})"
    else:
        yield "- **Baseline version**: none"
    yield f"- **Golden set**: {md(golden.version)} (content {_short(golden.content_hash)}), profile {md(golden.profile)}, " + (
        f"**{golden.reviewed}**" if golden.provisional else golden.reviewed
    )
    yield f"- **Split**: {md(golden.split.replace('_', '-'))}; relevant means grade {golden.relevance_threshold} or more"
    yield f"- **Corpus**: {_short(setup.corpus or golden.corpus_hash)}"
    yield f"- **Retriever**: {md(setup.retriever, most=2000)}"
    yield "- **Configuration**:"
    for name, label in PARTS.items():
        yield f"  - {label}: {md(setting(setup.config.get(name)))}"
    for name, value in setup.config.items():
        if name not in PARTS:
            yield f"  - {md(name)}: {md(setting(value))}"
    sampled = f", a sample of {portion(setup.sample)}" if setup.sample < 1 else ""
    yield (
        f"- **Run**: {counted(len(evaluation.queries), 'query')}{sampled}, {setup.k} hits each, recorded "
        f"{md(setup.recorded_at)} on {md(setup.machine or 'an unnamed machine')} by ringtrue {md(setup.ringtrue)}"
    )
    yield ""


def _short(digest: str | None) -> str:
    return md(digest[:12]) if digest else "not known"


def _summary(report: Report) -> Iterator[str]:
    yield "## Metrics summary"
    yield ""
    found = rows.measure_lines(report)
    compared = against_baseline(report)
    words = any(line.word for line in found)
    more = [f"Against {md(compared.a, most=100)}"] if words and compared else []
    yield from header("Metric", "Current", md(before_name(report), most=100), "Change", "Threshold", "Status", *more)
    for line in found:
        current = amount(line.measure, line.current)
        if line.interval is not None:
            current += f" ({span(line.interval)})"
        name = f"Latency {line.measure}" if line.measure in PERCENTILES else md(line.measure)
        numbers = [amount(line.measure, line.baseline), percent(line.change), amount(line.measure, line.threshold)]
        yield row(name, current, *numbers, status_of(line), *([line.says or DASH] if more else []))
    yield ""
    yield "In brackets: the 95 % interval of the mean."
    yield ""
    word = outcome(report)
    if word is not None:
        yield f"**Overall**: {SIGN[word]} {md(headline(report), most=2000)}"
        yield ""


def status_of(line: MeasureLine) -> str:
    """Return what the gate says of a measure: ``✅ PASS``, or a dash where no rule looked at it."""
    if line.status is None:
        return DASH
    within = " within tolerance" if line.status == "degraded" else ""
    return f"{SIGN[line.status]} {STATUS[line.status]}{within}"


def _checks(report: Report) -> Iterator[str]:
    if report.verdict is None:
        return
    yield f"## Checks ({len(report.verdict.checks)})"
    yield ""
    yield from header("Rule", "Measure", "Status", "Finding", "Queries behind it", text_columns=5)
    for check in report.verdict.checks:
        yield row(
            md(check.rule),
            md(place(check)),
            f"{SIGN[check.status]} {STATUS[check.status]}",
            md(check.message, most=500),
            ", ".join(md(query_id) for query_id in check.queries),
        )
    yield ""


def _comparison(report: Report) -> Iterator[str]:
    comparison = comparison_of(report)
    if comparison is None:
        return
    yield f"## {md(comparison.b)} against {md(comparison.a)}"
    yield ""
    if same(comparison):
        yield f"**The two are the same**: {md(all_the_same(comparison))}."
    else:
        yield f"**{md(comparison.verdict)}** by {md(comparison.primary)}: {md(comparison.reason, most=1000)}."
    yield ""
    names = ("Measure", "A", "B", "Δ", "Interval of Δ", "p", "P(B better)", "Win / tie / loss", "Verdict")
    yield from header(*names)
    for found in comparison.measures.values():
        yield row(
            md(found.measure),
            number(found.a),
            number(found.b),
            signed(found.diff),
            f"{signed(found.low)} to {signed(found.high)}",
            probability(found.p_adjusted),
            number(found.prob_better, 3),
            f"{found.wins} / {found.ties} / {found.losses}",
            says(found),
        )
    yield ""
    yield (
        f"A is {md(comparison.a)}, B is {md(comparison.b)}. {md(how_tested(comparison))} Of the p of the "
        f"paired randomisation test and that of the interval, the larger counts; "
        f"{comparison.resamples:,} resamples, seed {comparison.seed}."
    )
    yield ""


def _slices(report: Report) -> Iterator[str]:
    evaluation, name = report.evaluation, primary(report)
    comparison = comparison_of(report)
    for field in rows.slice_fields(evaluation):
        pairs = comparison.slices.get(field, {}) if comparison else {}
        yield f"## {md(name)} by {md(field)}"
        yield ""
        more = ["Δ", "Interval of Δ", "p", "Verdict"] if pairs else []
        yield from header(md(field), "Queries", "Mean", "Median", "Deviation", *more)
        for value, found in evaluation.scores.by(field, name).items():
            cells = [md(value), str(found.count), number(found.mean), number(found.median), number(found.std)]
            if pairs:
                cells += _sliced(pairs.get(value, {}).get(name))
            yield row(*cells)
        yield ""
        if pairs and comparison:
            yield f"Δ against {md(comparison.a)}. {slice_terms(comparison)}"
            yield ""


def _sliced(pair: MeasureComparison | None) -> list[str]:
    if pair is None:
        return [DASH] * 4
    interval = DASH if math.isnan(pair.low) else f"{signed(pair.low)} to {signed(pair.high)}"
    return [signed(pair.diff), interval, probability(pair.p_adjusted), word_of(pair)]


def _components(report: Report) -> Iterator[str]:
    parts = rows.component_lines(report)
    if not parts:
        return
    names = rows.shown_measures(report)
    yield "## Components"
    yield ""
    yield from header("Part", "Kind", *map(md, names), "Share of hits", "Only from it", "Without it", text_columns=2)
    for part in parts:
        given = part.contribution
        yield row(
            md(part.label),
            part.kind,
            *(number(part.values.get(name)) for name in names),
            portion(given.rate) if given else "",
            portion(given.unique_rate) if given else "",
            rows.without_it(part),
        )
    yield ""
    if any(part.without for part in parts):
        yield f"Without it: how {md(names[0])} changes without the part, below 0 where the search loses; 95 % interval."
        yield ""


def _blame(report: Report) -> Iterator[str]:
    lost = rows.blame_lines(report.evaluation)
    if not lost:
        return
    total = rows.relevant_documents(report.evaluation)
    yield "## Where relevant documents were lost"
    yield ""
    yield f"{sum(one.count for one in lost):,} of {counted(total, 'relevant document')} are missing at k = {_k(report)}."
    yield ""
    yield from header("Stage", "Documents", "Share of all relevant")
    for one in lost:
        yield row(md(one.stage), str(one.count), portion(one.share))
    yield ""


def _k(report: Report) -> str:
    return " or ".join(str(k) for k in sorted({loss.k for loss in report.evaluation.losses}))


def _latency(report: Report) -> Iterator[str]:
    found = report.evaluation.latency
    if not found.count:
        return
    yield "## Latency"
    yield ""
    yield from header("Part", "Answers", "Mean", "p50", "p95", "p99")
    yield _latency_row("whole retriever", found)
    for part in report.evaluation.components:
        if part.latency is not None and part.latency.count:
            yield _latency_row(rows.part_label(part.name, report.evaluation), part.latency)
    yield ""
    comparison = comparison_of(report)
    if comparison is not None and comparison.latency is not None:
        pair = comparison.latency
        yield (
            f"Against {md(comparison.a)}: {signed(pair.mean_diff, 1)} ms on average "
            f"({signed(pair.low, 1)} to {signed(pair.high, 1)} ms over {counted(pair.n, 'query')})"
            + ("." if pair.comparable else "; measured on different machines, so informational only.")
        )
        yield ""


def _latency_row(name: str, found: Latency) -> str:
    return row(md(name), str(found.count), *(milliseconds(value) for value in (found.mean, found.p50, found.p95, found.p99)))


def _failures(report: Report) -> Iterator[str]:
    found = rows.failing(report)
    yield f"## Failures ({len(found)})"
    yield ""
    if not found:
        yield f"Every query was answered with something relevant in the first {depth(report)}; none is behind a failed check."
    texts = {query.query_id: query.text for query in report.evaluation.queries}
    for query_id, why in found.items():
        yield f"- **{md(query_id)}**{_quoted(query_id, texts.get(query_id, ''))}: {md('; '.join(why), most=600)}"
    yield ""


def _advice(report: Report) -> Iterator[str]:
    yield f"## Recommendations ({len(report.recommendations)})"
    yield ""
    if not report.recommendations:
        yield "None: no rule found enough evidence for one."
    for index, one in enumerate(report.recommendations, 1):
        yield f"{index}. {md(one.advice, most=1000)}"
        numbers = ", ".join(
            f"{name} {value if isinstance(value, str) else f'{value:.4g}'}" for name, value in one.evidence.items()
        )
        yield f"   - Evidence ({md(one.rule)}): {md(numbers, most=600)}"
        if one.queries:
            more = f" and {len(one.queries) - HITS} more" if len(one.queries) > HITS else ""
            yield f"   - Queries: {', '.join(md(query_id) for query_id in one.queries[:HITS])}{more}"
    yield ""


def _queries(report: Report) -> Iterator[str]:
    found = rows.query_lines(report)
    yield f"## Per-query analysis ({len(found)})"
    yield ""
    told, listed = found[:IN_FULL], found[IN_FULL:]
    which = f"The {IN_FULL} with the lowest {md(primary(report))}" if listed else "All queries, the worst first"
    yield f"<details><summary>{which}</summary>"
    yield ""
    for line in told:
        yield from _in_full(line, report)
    yield "</details>"
    yield ""
    if listed:
        recall, ndcg = _shown(report, "R"), _shown(report, "nDCG")
        yield f"<details><summary>The other {len(listed)}, the worst first</summary>"
        yield ""
        yield from header(
            "Query", "Text", f"Found in {depth(report)}", md(recall or "R"), md(ndcg or "nDCG"), "Latency", text_columns=2
        )
        for line in listed:
            there = len(line.expected) - len(rows.missing(line, depth(report)))
            yield row(
                md(line.query_id),
                md(beside_id(line.query_id, line.text), most=120),
                f"{there} of {len(line.expected)}",
                number(line.values.get(recall or "")),
                number(line.values.get(ndcg or "")),
                milliseconds(line.latency_ms),
            )
        yield ""
        yield "</details>"
        yield ""


def _in_full(line: QueryLine, report: Report) -> Iterator[str]:
    yield f"### Query {md(line.query_id)}{_quoted(line.query_id, line.text, before=': ')}"
    yield ""
    if line.error is not None:
        yield f"- **No answer**: {md(line.error, most=600)}"
    shown = [f"{md(one.doc_id)}{f' ✓ (grade {one.grade})' if one.relevant else ''}" for one in line.retrieved[:HITS]]
    more = f" … and {len(line.retrieved) - HITS} more" if len(line.retrieved) > HITS else ""
    yield f"- Retrieved: {', '.join(shown) or 'nothing'}{more}"
    lost = {loss.doc_id: loss.stage for loss in line.losses}
    wanted = []
    for one in line.expected:
        where = f"rank {one.rank}" if one.rank is not None else "missing"
        if one.doc_id in lost:
            where += f": {lost[one.doc_id]}"
        wanted.append(f"{md(one.doc_id)} (grade {one.grade}, {md(where)})")
    yield f"- Expected: {', '.join(wanted) or 'nothing: the right answer is silence'}"
    for label, name in (("Recall", _shown(report, "R")), ("nDCG", _shown(report, "nDCG"))):
        if name is not None and line.error is None:
            yield f"- {label}: {number(line.values.get(name))} ({md(name)})"
    if line.delta is not None:
        yield f"- Change: {signed(line.delta)} ({md(primary(report))})"
    yield f"- Latency: {milliseconds(line.latency_ms)}"
    yield ""


def _quoted(query_id: str, text: str, *, before: str = " ") -> str:
    shown = beside_id(query_id, text)
    return f"{before}“{md(shown)}”" if shown else ""


def _shown(report: Report, family: str) -> str | None:
    """Return the measure of a family that describes a question: at the depth of the first measure, where there is one."""
    scored = [measure for measure in report.evaluation.scores.measures if measure.name == family]
    first = report.evaluation.scores.measures[0].at
    return next((str(measure) for measure in [*(one for one in scored if one.at == first), *scored]), None)


def _notes(report: Report) -> Iterator[str]:
    found = rows.notes(report)
    if found:
        yield "## Notes"
        yield ""
        for note in found:
            yield f"- {md(note, most=1000)}"
