"""The report as one HTML file that needs nothing else: styles, script, charts and data are inside."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ringtrue.brief import counted
from ringtrue.report.formatting import moment
from ringtrue.report.page import sections
from ringtrue.report.page.sides import Sides, as_json, script_data
from ringtrue.report.records import Report
from ringtrue.report.sentences import page_headline, slice_terms

PAGE = Path(__file__).with_name("page")
# Half of a character pair cannot be written as UTF-8 and would make the file unwritable.
HALF_PAIRS = re.compile("[\ud800-\udfff]")


def html(report: Report) -> str:
    """Return the report as one self-contained page, verdict first.

    It loads nothing, works offline and under a strict Content-Security-Policy; verdict, tables and charts need no script.
    """
    sides, evaluation = Sides(report), report.evaluation
    golden, comparison = evaluation.setup.golden, sides.comparison
    style, script = _read("theme.css") + _read("report.css"), _read("report.js")
    data = script_data(sides)
    page = _templates().get_template("report.html.jinja").render(
        style=style, style_hash=_hash(style), script=script, script_hash=_hash(script), data=as_json(data),
        title=report.title or f"{evaluation.name} on {golden.version}", sides=sides, report=report, golden=golden,
        headline=page_headline(report), made_at=moment(report.made_at), recorded_at=moment(evaluation.setup.recorded_at),
        asked=counted(len(evaluation.queries), "query"), differences=sections.differences(sides),
        slice_terms=slice_terms(comparison) if comparison and comparison.slices else "", columns=sides.measures[:4],
        rows=sections.worst_queries(sides, data), **sections.page_sections(sides),
    )  # fmt: skip
    return HALF_PAIRS.sub("\ufffd", page)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _read(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= {"tight": _tight, "code": code_markup}
    templates.filters["fragment"] = lambda query_id: quote(HALF_PAIRS.sub("\ufffd", query_id), safe="")
    return templates


def code_markup(text: str) -> Markup:
    """Return a text with the parts between backticks set as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one without its other half is a character like any other
        return escape(text)
    return Markup("").join(Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in enumerate(parts))


def _tight(text: str) -> str:
    """Keep a number beside its unit and an arrow between its numbers when a line breaks."""
    return re.sub(" (%|ms)|( (?:→|=) )", lambda found: found[0].replace(" ", "\u00a0"), text)
