"""The report as one comment on a pull request: the verdict first, the rest folded, never longer than a comment may be."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from ringtrue.brief import counted
from ringtrue.report import tables
from ringtrue.report.formatting import (
    DASH,
    beside_id,
    md,
    number,
    signed,
    table,
)
from ringtrue.report.markdown_report import (
    bullets,
    column_of_before,
    measure_table,
    quoted,
    signed_headline,
    slice_table,
)
from ringtrue.report.records import Report
from ringtrue.report.sentences import (
    against,
    comparison_of,
    depth,
    primary,
    reasons,
    setting,
)

LIMIT = 65_000
"""GitHub takes 65,536 characters; some are left for what a workflow adds."""
REASONS = 10
WORST = 20

Block = tuple[str, str, str]
"""A piece of the comment: what opens it, lines of which the last may be left out, what closes it."""
LEFT_OUT = "\n\n_{:,} more lines are left out here: a comment cannot hold them; the full report does._"


def marker(key: str = "") -> str:
    """Return the invisible line by which the comment is found again, so that it is updated and not repeated.

    >>> marker(), marker("docs search")
    ('<!-- ringtrue:report -->', '<!-- ringtrue:report:docs-search -->')
    """
    name = re.sub(r"[^0-9A-Za-z_.]+", "-", key).strip("-")
    return f"<!-- ringtrue:report{':' + name if name else ''} -->"


def pull_request(report: Report, *, key: str = "", limit: int = LIMIT) -> str:
    """Return the comment; ``key`` tells apart the comments of several gates on one pull request.

    If it is longer than ``limit`` characters, the last lines of the last tables are left out, and the comment says how many.
    """
    sections = (_verdict, _measures, _slices, _worst, _advice, _about)
    blocks = [block for section in sections for block in section(report)]
    return f"{marker(key)}\n{_fit(blocks, limit - len(marker(key)) - 2)}\n"


def _verdict(report: Report) -> Iterator[Block]:
    yield f"### {signed_headline(report, 600)}", "", ""
    found, beside = reasons(report), against(report)
    if found:
        more = [f"and {len(found) - REASONS} more"] if len(found) > REASONS else []
        yield "", bullets([*(md(reason, most=400) for reason in found[:REASONS]), *more]), ""
    if beside:
        yield f"{md(beside, most=600)}.", "", ""


def _measures(report: Report) -> Iterator[Block]:
    rows, interval = measure_table(report)
    yield "", rows, f"<sub>{interval}</sub>"
    other = comparison_of(report)
    if other is not None and primary(report) in other.measures:
        found = other.measures[primary(report)]
        moved = f"**{counted(found.wins, 'query')} improved, {found.losses} regressed**, {found.ties} unchanged"
        yield f"{moved} against {md(other.a, most=100)} by {md(found.measure)}.", "", ""


def _slices(report: Report) -> Iterator[Block]:
    """The first field that divides the questions, usually their type."""
    for field in tables.slice_fields(report.evaluation)[:1]:
        rows, terms = slice_table(report, field)
        yield f"**{md(primary(report))} by {md(field)}**", rows, terms and f"<sub>{terms}</sub>"


def _worst(report: Report) -> Iterator[Block]:
    name, k, found = primary(report), depth(report), tables.report_lines(report)
    failed = [
        f"{md(line.query_id, most=80)}{quoted(line.query_id, line.text, most=120)}: {md(line.error, most=200)}"
        for line in found
        if line.error is not None
    ]
    if failed:
        yield _folded(f"{counted(len(failed), 'query')} without an answer", bullets(failed))
    compared = any(line.delta is not None for line in found)
    chosen = tables.moved(report, found) if compared else tuple(line for line in found if line.error is None)
    rows = []
    for line in chosen[:WORST]:
        value = line.values.get(name, math.nan)
        before = number(value - line.delta) if line.delta is not None else DASH
        lost = [f"{one.doc_id} (rank {one.rank})" if one.rank else one.doc_id for one in tables.missing(line, k)]
        shown = ", ".join(md(text, most=80) for text in lost[:3]) + (f" +{len(lost) - 3}" if len(lost) > 3 else "")
        text = md(beside_id(line.query_id, line.text), most=120)
        rows.append([md(line.query_id, most=80), text, before, number(value), signed(line.delta), shown])
    if rows:
        names = ("query", "text", column_of_before(report), "current", "Δ", f"missing in {k}")
        which = "that fell most" if compared else f"with the lowest {md(name)}"
        yield _folded(f"Worst queries: the {len(rows)} {which}", table(names, rows, text_columns=2))


def _advice(report: Report) -> Iterator[Block]:
    if report.recommendations:
        lines = [md(one.advice, most=600) for one in report.recommendations]
        yield _folded(f"Recommendations ({len(lines)})", bullets(lines))


def _about(report: Report) -> Iterator[Block]:
    setup, golden = report.evaluation.setup, report.evaluation.setup.golden
    facts = {name: value for name, value in setup.config.items() if value not in (None, "", setup.retriever)}
    lines = [f"retriever: {md(setup.retriever, most=400)}"]
    lines += [f"{md(name)}: {md(setting(value), most=200)}" for name, value in facts.items()]
    yield _folded("Configuration and notes", bullets([*lines, *(md(note, most=400) for note in tables.notes(report))]))
    baseline = f" · baseline {md(report.baseline.version)}" if report.baseline else ""
    label = f" · **{golden.reviewed}**" if golden.provisional else f" · {golden.reviewed}" if golden.unreviewed else ""
    corpus = md((setup.corpus or golden.corpus_hash or "not known")[:12])
    yield (
        f"<sub>golden set {md(golden.version)} ({md(golden.split.replace('_', '-'))}){label}{baseline} · corpus {corpus} · "
        f"{md(report.made_at)} · ringtrue {md(setup.ringtrue)}</sub>"
    ), "", ""  # fmt: skip


def _folded(summary: str, body: str) -> Block:
    return f"<details><summary>{summary}</summary>", body, "</details>"


def _fit(blocks: list[Block], limit: int) -> str:
    """Return the blocks as text of at most ``limit`` characters, each opened and closed properly."""
    # Every block might have to say that it was cut.
    room = limit - sum(len(opening) + len(closing) + 6 + len(LEFT_OUT.format(10**6)) for opening, _, closing in blocks)
    parts = []
    for opening, body, closing in blocks:
        lines, kept = body.splitlines(), 0
        while kept < len(lines) and len(lines[kept]) + 1 <= room:
            room -= len(lines[kept]) + 1
            kept += 1
        cut = LEFT_OUT.format(len(lines) - kept) if kept < len(lines) else ""
        parts += [opening, "\n".join(lines[:kept]) + cut, closing]
    return "\n\n".join(part for part in parts if part)
