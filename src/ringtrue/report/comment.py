"""The report as one comment on a pull request: the verdict first, the rest folded, never longer than a comment may be (B-4)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ringtrue.report import lines
from ringtrue.report.escape import header, md, row
from ringtrue.report.records import Report
from ringtrue.report.story import (
    DASH,
    PERCENTILES,
    SIGN,
    STATUS,
    against,
    against_baseline,
    amount,
    before_name,
    beside_id,
    comparison_of,
    counted,
    depth,
    headline,
    how_tested,
    number,
    outcome,
    percent,
    primary,
    reasons,
    setting,
    signed,
    signed_milliseconds,
    slice_terms,
    span,
    word_of,
)

LIMIT = 65_000
"""GitHub takes 65,536 characters; some are left for what a workflow puts around."""
REASONS = 10
WORST = 20


@dataclass
class Block:
    """A piece of the comment that can be shortened: what opens it, the lines that may go from the end, what closes it."""

    opening: list[str]
    body: list[str] = field(default_factory=list)
    closing: list[str] = field(default_factory=list)


def marker(key: str = "") -> str:
    """Return the invisible line by which the comment is found again, so that it is updated and not repeated.

    >>> marker(), marker("docs search")
    ('<!-- ringtrue:report -->', '<!-- ringtrue:report:docs-search -->')
    """
    name = re.sub(r"[^0-9A-Za-z_.]+", "-", key).strip("-")
    return f"<!-- ringtrue:report{':' + name if name else ''} -->"


def pull_request(report: Report, *, key: str = "", limit: int = LIMIT) -> str:
    """Return the comment; ``key`` tells apart the comments of several gates on one pull request.

    Where ``limit`` characters do not hold everything, the last lines of the last tables go, and the comment says how many.
    """
    sections = (_verdict, _measures, _kinds, _worst, _advice, _about)
    return _fit([marker(key)], [block for section in sections for block in section(report)], limit)


def _verdict(report: Report) -> Iterator[Block]:
    word = outcome(report)
    yield Block([f"### {SIGN[word] + ' ' if word else ''}{md(headline(report), most=600)}", ""])
    found = reasons(report)
    if found:
        shown = [f"- {md(reason, most=400)}" for reason in found[:REASONS]]
        shown += [f"- and {len(found) - REASONS} more"] if len(found) > REASONS else []
        yield Block([], shown, [""])
    beside = against(report)
    if beside:
        yield Block([f"{md(beside, most=600)}.", ""])


def _measures(report: Report) -> Iterator[Block]:
    comparison = against_baseline(report)
    body = []
    for line in lines.measure_lines(report):
        name = f"latency {line.measure}" if line.measure in PERCENTILES else md(line.measure)
        if line.measure in PERCENTILES:
            difference, interval = signed_milliseconds(line.diff), DASH
        elif comparison is not None:
            difference = signed(line.diff)
            interval = f"{signed(line.diff_interval[0])} to {signed(line.diff_interval[1])}" if line.diff_interval else DASH
        else:
            difference, interval = signed(line.diff), span(line.interval)
        if not math.isnan(line.change):
            difference += f" ({percent(line.change)})"
        # Without a gate the column holds the words of the comparison; the two are never mixed.
        status = f"{SIGN[line.status]} {STATUS[line.status]}" if line.status else DASH
        status = status if report.verdict else (line.says or DASH)
        body.append(
            row(name, amount(line.measure, line.baseline), amount(line.measure, line.current), difference, interval, status)
        )
    of = "95 % of the current mean."
    if comparison is not None:
        of = f"of Δ over paired queries. {how_tested(comparison, gated=report.verdict is not None)}"
    closing = ["", f"<sub>Interval: {md(of, most=600)}</sub>", ""]
    yield Block(header("measure", _before(report), "current", "Δ", "interval", "status"), body, closing)
    other = comparison_of(report)
    found = other.measures.get(primary(report)) if other else None
    if other is not None and found is not None:
        yield Block(
            [
                f"**{counted(found.wins, 'query')} improved, {found.losses} regressed**, {found.ties} unchanged "
                f"against {md(other.a, most=100)} by {md(found.measure)}.",
                "",
            ]
        )


def _before(report: Report) -> str:
    name = before_name(report)
    return name.lower() if name == "Baseline" else md(name, most=100)


def _kinds(report: Report) -> Iterator[Block]:
    """The first field that divides the questions, usually their type."""
    fields = lines.slice_fields(report.evaluation)
    if not fields:
        return
    name, comparison = primary(report), comparison_of(report)
    pairs = comparison.slices.get(fields[0], {}) if comparison else {}
    body = []
    for value, found in report.evaluation.scores.by(fields[0], name).items():
        pair = pairs.get(value, {}).get(name)
        cells = [md(value, most=80), str(found.count), number(pair.a) if pair else DASH, number(found.mean)]
        if pair:
            interval = DASH if math.isnan(pair.low) else f"{signed(pair.low)} to {signed(pair.high)}"
            cells += [signed(pair.diff), interval, word_of(pair)]
        else:
            cells += [DASH, DASH, DASH]
        body.append(row(*cells))
    opening = [
        f"**{md(name)} by {md(fields[0])}**" + (f" against {md(comparison.a, most=100)}" if comparison and pairs else ""),
        "",
        *header(md(fields[0]), "queries", "before", "current", "Δ", "interval", "verdict"),
    ]
    closing = [f"<sub>{slice_terms(comparison)}</sub>", ""] if comparison and pairs else []
    yield Block(opening, body, ["", *closing])


def _worst(report: Report) -> Iterator[Block]:
    name = primary(report)
    found = lines.query_lines(report)
    failed = [line for line in found if line.error is not None]
    if failed:
        texts = [beside_id(line.query_id, line.text) for line in failed]
        body = [
            f"- {md(line.query_id, most=80)}{f' “{md(text, most=120)}”' if text else ''}: {md(line.error, most=200)}"
            for line, text in zip(failed, texts, strict=True)
        ]
        yield _folded(f"{counted(len(failed), 'query')} without an answer", [], body)
    compared = any(line.delta is not None for line in found)
    chosen = lines.moved(report, found) if compared else tuple(line for line in found if line.error is None)
    if not chosen:
        return
    body = []
    for line in chosen[:WORST]:
        value = line.values.get(name, math.nan)
        before = number(value - line.delta) if line.delta is not None else DASH
        lost = [f"{one.doc_id} (rank {one.rank})" if one.rank else one.doc_id for one in lines.missing(line, depth(report))]
        shown = ", ".join(md(text, most=80) for text in lost[:3]) + (f" +{len(lost) - 3}" if len(lost) > 3 else "")
        text = md(beside_id(line.query_id, line.text), most=120)
        cells = [md(line.query_id, most=80), text, before, number(value), signed(line.delta), shown]
        body.append(row(*cells))
    summary = f"Worst queries: the {len(body)} {'that fell most' if compared else f'with the lowest {md(name)}'}"
    yield _folded(
        summary, header("query", "text", _before(report), "current", "Δ", f"missing in {depth(report)}", text_columns=2), body
    )


def _advice(report: Report) -> Iterator[Block]:
    if report.recommendations:
        body = [f"- {md(one.advice, most=600)}" for one in report.recommendations]
        yield _folded(f"Recommendations ({len(body)})", [], body)


def _about(report: Report) -> Iterator[Block]:
    setup = report.evaluation.setup
    golden = setup.golden
    found = [
        f"retriever: {md(setup.retriever, most=400)}",
        *(
            f"{md(name)}: {md(setting(value), most=200)}"
            for name, value in setup.config.items()
            if value not in (None, "", setup.retriever)
        ),
        *(md(note, most=400) for note in lines.notes(report)),
    ]
    yield _folded("Configuration and notes", [], [f"- {line}" for line in found])
    baseline = f" · baseline {md(report.baseline.version)}" if report.baseline else ""
    label = f" · **{golden.reviewed}**" if golden.provisional else f" · {golden.reviewed}" if golden.unreviewed else ""
    yield Block(
        [
            f"<sub>golden set {md(golden.version)} ({md(golden.split.replace('_', '-'))}){label}{baseline} · corpus "
            f"{md((setup.corpus or golden.corpus_hash or 'not known')[:12])} · {md(report.made_at)} · ringtrue "
            f"{md(setup.ringtrue)}</sub>",
        ]
    )


def _folded(summary: str, opening: list[str], body: list[str]) -> Block:
    return Block([f"<details><summary>{summary}</summary>", "", *opening], body, ["", "</details>", ""])


def _fit(first: list[str], blocks: list[Block], limit: int) -> str:
    """Return the blocks as text of at most ``limit`` characters, each opened and closed properly; what is cut is said."""
    room = limit - _size(first) - sum(_size(block.opening) + _size(block.closing) for block in blocks)
    # Every block might have to say that it was cut.
    room -= len(blocks) * (len(_cut(10**6)) + 2)
    text = list(first)
    for block in blocks:
        kept = 0
        while kept < len(block.body) and len(block.body[kept]) + 1 <= room:
            room -= len(block.body[kept]) + 1
            kept += 1
        text += block.opening + block.body[:kept]
        if kept < len(block.body):
            text += ["", _cut(len(block.body) - kept)]
        text += block.closing
    return "\n".join(text).rstrip() + "\n"


def _cut(count: int) -> str:
    return f"_{count:,} more lines are left out here: a comment cannot hold them; the full report does._"


def _size(lines: list[str]) -> int:
    return sum(len(line) + 1 for line in lines)
