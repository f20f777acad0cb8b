"""Judgments by hand: read, written and taken back (F-4). Which one counts is decided where they are used, and a person wins."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ringtrue.answers import JudgmentSource
from ringtrue.feedback.derive import text_key
from ringtrue.feedback.precedence import KEY, QUERY
from ringtrue.service.work.logging_in import bad_cursor
from ringtrue.store import AuditEntry, StoredJudgment, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

Place = tuple[str, str, str, str]


def judgments_after(
    service: Service,
    caller: Caller,
    *,
    limit: int,
    after: str | None = None,
    query_id: str | None = None,
    source: JudgmentSource | None = None,
    annotator: str | None = None,
) -> tuple[list[StoredJudgment], str | None]:
    """Return judgments by query, item, source and annotator, and the cursor behind them where there are more."""
    place = None if after is None else _place(after)
    found = service.of(caller).judgments(
        project=caller.project,
        query_ids=None if query_id is None else [query_id],
        source=source,
        annotator=annotator,
        after=place,
        limit=limit + 1,
    )
    shown = found[:limit]
    return shown, _cursor(_place_of(shown[-1])) if len(found) > limit else None


def judge_by_hand(service: Service, caller: Caller, rows: Sequence[StoredJudgment]) -> list[StoredJudgment]:
    """Keep manual judgments, in the place of what the same annotator said before, and return them.

    Each keeps the words of its query, given with it or from the log, so that it outlives the log and counts for all searches
    with the same words.
    """
    store = service.of(caller)
    silent = sorted({row.query_id for row in rows if QUERY not in row.metadata})
    searches = store.queries(project=caller.project, query_ids=silent) if silent else []
    asked = {search.query_id: search.query for search in searches}
    kept = []
    for row in rows:
        text = row.metadata.get(QUERY, asked.get(row.query_id))
        words = {} if text is None else {QUERY: text, KEY: text_key(text)}
        kept.append(replace(row, metadata={**row.metadata, **words}))
    store.add_judgments(kept)
    return kept


def delete_judgments(
    service: Service, caller: Caller, *, source: JudgmentSource, annotator: str | None = None, query_id: str | None = None
) -> int:
    """Delete the judgments of a source, or of one annotator or query of it; return how many, and write down who did it."""
    store = service.of(caller)
    count = store.delete_judgments(
        project=caller.project, source=source, annotator=annotator, query_ids=None if query_id is None else [query_id]
    )
    detail = {"annotator": annotator, "query_id": query_id, "judgments": count}
    now = timestamp(service.now())
    store.add_audit(AuditEntry(now, caller.who, "judgments.delete", source, detail, caller.project))
    return count


def _place_of(row: StoredJudgment) -> Place:
    return row.query_id, row.item_id, row.source, row.annotator


def _cursor(place: Place) -> str:
    return base64.urlsafe_b64encode(json.dumps(place, ensure_ascii=False, separators=(",", ":")).encode()).decode()


def _place(cursor: str) -> Place:
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor))
    except (binascii.Error, ValueError):
        raise bad_cursor() from None
    if not isinstance(found, list) or len(found) != 4 or not all(isinstance(part, str) for part in found):
        raise bad_cursor()
    query_id, item_id, source, annotator = found
    return query_id, item_id, source, annotator
