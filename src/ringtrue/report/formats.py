"""The formats of a report, by the ending of its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ringtrue.errors import InputError, nearest
from ringtrue.report.html_report import html
from ringtrue.report.json_report import as_json
from ringtrue.report.junit_report import junit
from ringtrue.report.markdown_report import markdown
from ringtrue.report.records import Report
from ringtrue.report.sarif_report import sarif

BY_ENDING: dict[str, Callable[[Report], str]] = {
    ".md": markdown,
    ".html": html,
    ".json": as_json,
    ".xml": junit,
    ".sarif": sarif,
}


def report_writer(path: Path) -> Callable[[Report], str]:
    """Return what turns a report into the text of such a file; raises InputError for an ending that no format has.

    >>> report_writer(Path("gate.md")).__name__
    'markdown'
    """
    write = BY_ENDING.get(path.suffix.lower())
    if write is None:
        raise InputError(f"--report {path}: the ending names no kind of report; write {nearest(path.suffix, BY_ENDING)}")
    return write
