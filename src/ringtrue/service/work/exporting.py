"""Searches of the log on their way out: read a few at a time, so that neither side holds all of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ringtrue.service.routes.queries import newest_searches, search_cursor
from ringtrue.store import LoggedQuery

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

AT_A_TIME = 500
MOST = 20_000
"""Searches that one export holds; `GET /v1/queries` goes on from any place."""
COLUMNS = (
    "query_id", "created_at", "query", "tool_name", "session_id", "user_id", "result_count", "total_latency_ms",
    "quality_proxy_score", "degraded", "fallback", "result_ids",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet take a text for a formula."""


def exported(service: Service, caller: Caller, **filters: Any) -> Iterator[LoggedQuery]:
    """Yield the searches that fit, the newest first and at most ``MOST``."""
    before, left = None, MOST
    while left > 0:
        rows = newest_searches(service, caller, limit=min(AT_A_TIME, left), before=before, **filters)
        yield from rows
        left -= len(rows)
        if len(rows) < AT_A_TIME:
            return
        before = search_cursor(rows[-1])


def as_csv(rows: Iterator[LoggedQuery]) -> Iterator[bytes]:
    """Yield a table with a header; a text that a spreadsheet would compute gets an apostrophe in front."""
    yield _line(COLUMNS)
    for row in rows:
        yield _line([_cell(getattr(row, name)) for name in COLUMNS])


def as_json(rows: Iterator[LoggedQuery]) -> Iterator[bytes]:
    """Yield one JSON array, an element to a line."""
    between = b"[\n"
    for row in rows:
        yield between + json.dumps({name: getattr(row, name) for name in COLUMNS}, ensure_ascii=False).encode(
            "utf-8", "replace"
        )
        between = b",\n"
    yield b"[]\n" if between == b"[\n" else b"\n]\n"


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        value = " ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _line(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().encode("utf-8", "replace")
