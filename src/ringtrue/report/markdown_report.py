"""The report as Markdown: the verdict first, then what it rests on, with every question at the end.

Every section is a list of blocks, which blank lines separate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ringtrue.brief import counted
from ringtrue.report import tables
from ringtrue.report.formatting import (
    DASH,
    PERCENTILES,
    amount,
    beside_id,
    md,
    milliseconds,
    number,
    percent,
    portion,
    probability,
    signed,
    signed_milliseconds,
    signed_span,
    span,
    table,
)
from ringtrue.report.records import Report
from ringtrue.report.sentences import (
    SIGN,
    STATUS,
    against,
    against_baseline,
    before_name,
    comparison_of,
    depth,
    headline,
    how_tested,
    outcome,
    place,
    primary,
    reasons,
    same_golden,
    says,
    setting,
    slice_terms,
    title,
)

IN_FULL = 20
"""Questions shown in full: the worst. The others follow in a table."""
HITS = 10
"""Documents listed for a question."""
PARTS = {"embedding_model": "Embedding model", "chunking": "Chunking", "reranker": "Reranking", "fusion": "Fusion"}
Blocks = list[str]


def markdown(report: Report) -> str:
    """Return the whole report as one Markdown document."""
    sections = (
        _top, _summary, _checks, _comparison, _slices, _components, _blame, _latency, _failures, _advice, _queries, _notes,
    )  # fmt: skip
    return "\n\n".join(block for section in sections for block in section(report) if block) + "\n"


def bullets(lines: Iterable[str]) -> str:
    """Return a list in Markdown."""
    return "\n".join(f"- {line}" for line in lines)


def signed_headline(report: Report, most: int) -> str:
    """Return the first sentence, behind the sign of the gate's word if there is one."""
    word = outcome(report)
    return f"{SIGN[word] + ' ' if word else ''}{md(headline(report), most=most)}"


def _top(report: Report) -> Blocks:
    beside = against(report)
    setup, golden, baseline = report.evaluation.setup, report.evaluation.setup.golden, report.baseline
    fit = "" if same_golden(report) else "; of another golden set, so not compared"
    recorded = f"{md(baseline.version)} (recorded {md(baseline.recorded_at)}{fit})" if baseline else "none"
    reviewed = f"**{golden.reviewed}**" if golden.provisional else golden.reviewed
    sampled = f", a sample of {portion(setup.sample)}" if setup.sample < 1 else ""
    others = {name: md(name) for name in setup.config if name not in PARTS}
    return [
        f"# {md(title(report))}",
        f"**{signed_headline(report, 2000)}.**",
        bullets(md(reason, most=1000) for reason in reasons(report)),
        f"{md(beside, most=2000)}." if beside else "",
        bullets([
            f"**Date**: {md(report.made_at)}",
            f"**Baseline version**: {recorded}",
            f"**Golden set**: {md(golden.version)} (content {_short(golden.content_hash)}), profile {md(golden.profile)}, "
            f"{reviewed}",
            f"**Split**: {md(golden.split.replace('_', '-'))}; relevant means grade {golden.relevance_threshold} or more",
            f"**Corpus**: {_short(setup.corpus or golden.corpus_hash)}",
            f"**Retriever**: {md(setup.retriever, most=2000)}",
            "**Configuration**:",
        ]) + "".join(f"\n  - {label}: {md(setting(setup.config.get(name)))}" for name, label in (PARTS | others).items())
        + f"\n- **Run**: {counted(len(report.evaluation.queries), 'query')}{sampled}, {setup.k} hits each, recorded "
        f"{md(setup.recorded_at)} on {md(setup.machine or 'an unnamed machine')} by ringtrue {md(setup.ringtrue)}",
    ]  # fmt: skip


def _short(digest: str | None) -> str:
    return md(digest[:12]) if digest else "not known"


def _summary(report: Report) -> Blocks:
    overall = f"**Overall**: {signed_headline(report, 2000)}" if report.verdict else ""
    rows, interval = measure_table(report)
    return ["## Metrics summary", rows, interval, overall]


def measure_table(report: Report) -> tuple[str, str]:
    """Return a table with a row for each measure and latency percentile, and what its intervals are."""
    comparison = against_baseline(report)
    rows = []
    for line in tables.measure_lines(report):
        name, difference, interval = md(line.measure), signed(line.diff), span(line.interval)
        if line.measure in PERCENTILES:
            name, difference, interval = f"latency {line.measure}", signed_milliseconds(line.diff), DASH
        elif comparison is not None:
            interval = signed_span(*(line.diff_interval or (math.nan, math.nan)))
        if not math.isnan(line.change):
            difference += f" ({percent(line.change)})"
        # Without a gate the column has the words of the comparison; the two are never mixed.
        status = status_of(line.status) if report.verdict else (line.says or DASH)
        values = [amount(line.measure, value) for value in (line.baseline, line.current)]
        rows.append([name, *values, difference, interval, status])
    of = "95 % of the current mean."
    if comparison is not None:
        of = f"of Δ over paired queries. {how_tested(comparison, gated=report.verdict is not None)}"
    names = ("measure", column_of_before(report), "current", "Δ", "interval", "status")
    return table(names, rows), f"Interval: {md(of, most=600)}"


def column_of_before(report: Report) -> str:
    """Return the heading of the column of earlier values."""
    name = before_name(report)
    return name.lower() if name == "Baseline" else md(name, most=100)


def status_of(status: str | None) -> str:
    """Return what the gate says of a measure: ``✅ PASS``, or a dash if no rule applies to it."""
    tolerated = " within tolerance" if status == "degraded" else ""
    return f"{SIGN[status]} {STATUS[status]}{tolerated}" if status else DASH


def _checks(report: Report) -> Blocks:
    if report.verdict is None:
        return []
    rows = [
        [
            md(check.rule),
            md(place(check)),
            status_of(check.status),
            md(check.message, most=500),
            ", ".join(map(md, check.queries)),
        ]
        for check in report.verdict.checks
    ]  # fmt: skip
    names = ("Rule", "Measure", "Status", "Finding", "Queries behind it")
    return [f"## Checks ({len(rows)})", table(names, rows, text_columns=5)]


def _comparison(report: Report) -> Blocks:
    comparison = comparison_of(report)
    if comparison is None:
        return []
    verdict = f"**{md(comparison.verdict)}** by {md(comparison.primary)}: {md(comparison.reason, most=1000)}."
    rows = [
        [
            md(one.measure), number(one.a), number(one.b), signed(one.diff), signed_span(one.low, one.high),
            probability(one.p_adjusted), number(one.prob_better, 3), f"{one.wins} / {one.ties} / {one.losses}", says(one),
        ]
        for one in comparison.measures.values()
    ]  # fmt: skip
    return [
        f"## {md(comparison.b)} against {md(comparison.a)}",
        verdict,
        table(("Measure", "A", "B", "Δ", "Interval of Δ", "p", "P(B better)", "Win / tie / loss", "Verdict"), rows),
        f"A is {md(comparison.a)}, B is {md(comparison.b)}. {md(how_tested(comparison))} Of the p of the paired randomisation "
        f"test and that of the interval, the larger counts; {comparison.resamples:,} resamples, seed {comparison.seed}.",
    ]


def _slices(report: Report) -> Blocks:
    fields = tables.slice_fields(report.evaluation)
    return [block for field in fields for block in (f"## {md(primary(report))} by {md(field)}", *slice_table(report, field))]


def slice_table(report: Report, field: str) -> Blocks:
    """Return the primary measure of every value of a field, and how it differs from the other side."""
    name, comparison = primary(report), comparison_of(report)
    pairs = comparison.slices.get(field, {}) if comparison else {}
    rows = []
    for value, found in report.evaluation.scores.by(field, name).items():
        cells = [md(value, most=80), str(found.count), number(found.mean), number(found.median), number(found.std)]
        pair = pairs.get(value, {}).get(name)
        if pair is not None:
            cells += [signed(pair.diff), signed_span(pair.low, pair.high), probability(pair.p_adjusted), pair.word]
        rows.append([*cells, *[DASH] * (9 - len(cells) if pairs else 0)])
    more = ("Δ", "Interval of Δ", "p", "Verdict") if pairs else ()
    terms = f"Δ against {md(comparison.a, most=100)}. {slice_terms(comparison)}" if comparison and pairs else ""
    return [table((md(field), "Queries", "Mean", "Median", "Deviation", *more), rows), terms]


def _components(report: Report) -> Blocks:
    parts, names = tables.component_lines(report), tables.shown_measures(report)
    if not parts:
        return []
    rows = [
        [
            md(part.label), part.kind, *(number(part.values.get(name)) for name in names),
            portion(part.contribution.rate) if part.contribution else "",
            portion(part.contribution.unique_rate) if part.contribution else "", tables.without_it(part),
        ]
        for part in parts
    ]  # fmt: skip
    columns = ("Part", "Kind", *map(md, names), "Share of hits", "Only from it", "Without it")
    key = f"Without it: how {md(names[0])} changes without the part, below 0 if the search gets worse; 95 % interval."
    return ["## Components", table(columns, rows, text_columns=2), key if any(part.without for part in parts) else ""]


def _blame(report: Report) -> Blocks:
    lost = tables.blame_lines(report.evaluation)
    if not lost:
        return []
    total, k = tables.relevant_documents(report.evaluation), tables.lost_at(report.evaluation)
    return [
        "## Where relevant documents were lost",
        f"{sum(one.count for one in lost):,} of {counted(total, 'relevant document')} are missing at k = {k}.",
        table(("Stage", "Documents", "Share of all relevant"), [[md(x.stage), str(x.count), portion(x.share)] for x in lost]),
    ]


def _latency(report: Report) -> Blocks:
    evaluation = report.evaluation
    if not evaluation.latency.count:
        return []
    parts = [(tables.part_label(part.name, evaluation), part.latency) for part in evaluation.components]
    rows = [
        [md(name), str(one.count), *map(milliseconds, (one.mean, one.p50, one.p95, one.p99))]
        for name, one in [("whole retriever", evaluation.latency), *parts]
        if one is not None and one.count
    ]
    blocks = ["## Latency", table(("Part", "Answers", "Mean", "p50", "p95", "p99"), rows)]
    comparison = comparison_of(report)
    if comparison is not None and comparison.latency is not None:
        pair = comparison.latency
        end = "." if pair.comparable else "; measured on different machines, so informational only."
        interval = f"{signed(pair.low, 1)} to {signed(pair.high, 1)} ms over {counted(pair.n, 'query')}"
        blocks.append(f"Against {md(comparison.a)}: {signed(pair.mean_diff, 1)} ms on average ({interval}){end}")
    return blocks


def _failures(report: Report) -> Blocks:
    found = tables.failing(report)
    texts = {query.query_id: query.text for query in report.evaluation.queries}
    lines = (f"**{md(one)}**{quoted(one, texts.get(one, ''))}: {md('; '.join(why), most=600)}" for one, why in found.items())
    listed = bullets(lines)
    none = f"Every query was answered with something relevant in the first {depth(report)}; none is behind a failed check."
    return [f"## Failures ({len(found)})", listed or none]


def _advice(report: Report) -> Blocks:
    lines = []
    for index, one in enumerate(report.recommendations, 1):
        told = ((name, value if isinstance(value, str) else f"{value:.4g}") for name, value in one.evidence.items())
        numbers = ", ".join(f"{name} {value}" for name, value in told)
        lines += [f"{index}. {md(one.advice, most=1000)}", f"   - Evidence ({md(one.rule)}): {md(numbers, most=600)}"]
        if one.queries:
            lines.append(f"   - Queries: {_some([md(query_id) for query_id in one.queries], ' and {} more')}")
    none = "None: no rule found enough evidence for one."
    return [f"## Recommendations ({len(report.recommendations)})", "\n".join(lines) or none]


def _some(texts: Sequence[str], more: str) -> str:
    return ", ".join(texts[:HITS]) + (more.format(len(texts) - HITS) if len(texts) > HITS else "")


def _queries(report: Report) -> Blocks:
    found = tables.report_lines(report)
    shown, listed = found[:IN_FULL], found[IN_FULL:]
    which = f"The {IN_FULL} with the lowest {md(primary(report))}" if listed else "All queries, the worst first"
    full = [block for line in shown for block in _in_full(line, report)]
    blocks = [f"## Per-query analysis ({len(found)})", *folded(which, *full)]
    if listed:
        recall, ndcg, k = _shown(report, "R"), _shown(report, "nDCG"), depth(report)
        rows = [
            [
                md(line.query_id), md(beside_id(line.query_id, line.text), most=120),
                f"{len(line.expected) - len(tables.missing(line, k))} of {len(line.expected)}",
                number(line.values.get(recall or "")), number(line.values.get(ndcg or "")), milliseconds(line.latency_ms),
            ]
            for line in listed
        ]  # fmt: skip
        names = ("Query", "Text", f"Found in {k}", md(recall or "R"), md(ndcg or "nDCG"), "Latency")
        blocks += folded(f"The other {len(listed)}, the worst first", table(names, rows, text_columns=2))
    return blocks


def folded(summary: str, *blocks: str) -> Blocks:
    """Return blocks that open on a click."""
    return [f"<details><summary>{summary}</summary>", *blocks, "</details>"]


def _in_full(line: tables.QueryLine, report: Report) -> Blocks:
    lines = [f"**No answer**: {md(line.error, most=600)}"] if line.error is not None else []
    found = {one.doc_id for one in line.expected}
    shown = [f"{md(one.doc_id)}{f' ✓ (grade {one.grade})' if one.doc_id in found else ''}" for one in line.retrieved]
    lines.append(f"Retrieved: {_some(shown, ' … and {} more') or 'nothing'}")
    lost = {loss.doc_id: f": {loss.stage}" for loss in line.losses}
    wanted = []
    for one in line.expected:
        place = ("missing" if one.rank is None else f"rank {one.rank}") + lost.get(one.doc_id, "")
        wanted.append(f"{md(one.doc_id)} (grade {one.grade}, {md(place)})")
    lines.append(f"Expected: {', '.join(wanted) or 'nothing: the right answer is silence'}")
    for label, name in (("Recall", _shown(report, "R")), ("nDCG", _shown(report, "nDCG"))):
        if name is not None and line.error is None:
            lines.append(f"{label}: {number(line.values.get(name))} ({md(name)})")
    lines += [f"Change: {signed(line.delta)} ({md(primary(report))})"] if line.delta is not None else []
    lines.append(f"Latency: {milliseconds(line.latency_ms)}")
    return [f"### Query {md(line.query_id)}{quoted(line.query_id, line.text, before=': ')}", bullets(lines)]


def quoted(query_id: str, text: str, *, before: str = " ", most: int = 300) -> str:
    """Return a query's text in quotes to stand behind its id; '' if it is the id itself."""
    shown = beside_id(query_id, text)
    return f"{before}“{md(shown, most=most)}”" if shown else ""


def _shown(report: Report, family: str) -> str | None:
    """Return the measure of a family that describes a question: at the depth of the first measure if possible."""
    scored = [measure for measure in report.evaluation.scores.measures if measure.name == family]
    first = report.evaluation.scores.measures[0].at
    return next((str(measure) for measure in [*(one for one in scored if one.at == first), *scored]), None)


def _notes(report: Report) -> Blocks:
    found = tables.notes(report)
    return ["## Notes", bullets(md(note, most=1000) for note in found)] if found else []
