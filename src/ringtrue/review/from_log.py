"""From the store to golden sets: logged searches, citations and feedback, in the form that ``golden`` takes (G-6, G-7)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ringtrue.feedback import QUERY, keyed
from ringtrue.golden import Citation, Row
from ringtrue.log.redact import Redactor
from ringtrue.store import DEFAULT_PROJECT, LoggedQuery, StoredJudgment

if TYPE_CHECKING:
    from ringtrue.store import Store

BATCH = 10_000
SHORTEST, LONGEST = 2, 4
"""Weeks of traffic that a first harvest takes."""
DERIVED = ("implicit", "validated")
_TAKEN_OUT = re.compile(r"(?<!\w)\[[a-z][\w -]{0,30}\]|^h_[0-9a-f]{32}$")


def screen(redactor: Redactor | None = None) -> Callable[[str], bool]:
    """Return what says whether a query's text may go into a golden set: nothing in it that the redactor would take out.

    Also kept out: texts from which something was taken when they were logged, and hashes in the place of a text.

    >>> [screen()(text) for text in ("late checkout", "bill for ada@example.org", "bill for [email]")]
    [True, False, False]
    """
    used = redactor or Redactor()
    return lambda text: used.text(text) == text and not _TAKEN_OUT.search(text)


def searches(
    store: Store, *, project: str = DEFAULT_PROJECT, since: datetime | None = None, until: datetime | None = None
) -> list[LoggedQuery]:
    """Return the searches of people and agents, oldest first; those that an evaluation made are none of theirs."""
    return [row for row in _logged(store, project, since, until) if not row.is_eval_corpus]


def _logged(store: Store, project: str, since: datetime | None, until: datetime | None) -> Iterator[LoggedQuery]:
    after: str | None = None
    while True:
        rows = store.queries(project=project, since=since, until=until, limit=BATCH, after=after)
        yield from rows
        if len(rows) < BATCH:
            return
        after = rows[-1].query_id


def window(now: datetime, *, weeks: int = LONGEST) -> tuple[datetime, datetime]:
    """Return since when and until when a harvest looks."""
    return now - timedelta(weeks=weeks), now


def span_in_days(found: Sequence[LoggedQuery]) -> float | None:
    """Return the days between the first search and the last; None where there is none."""
    if not found:
        return None
    first, last = (datetime.fromisoformat(at) for at in (found[0].created_at, found[-1].created_at))
    return (last - first) / timedelta(days=1)


def citations(store: Store, *, project: str = DEFAULT_PROJECT) -> tuple[Citation, ...]:
    """Return the documents that feedback says were cited."""
    return tuple(
        Citation(event.item_id, event.created_at, event.query_id, event.session_id or None)
        for event in store.feedback(project=project, kinds=["cite"])
        if event.item_id is not None
    )


@dataclass(frozen=True)
class Implied:
    """The rows that feedback makes, and what made none."""

    rows: tuple[Row, ...]
    judgments: int
    """Judgments that went in."""
    human: int
    """Judgments left out because a person judged that pair, in the log's words or in the review queue."""
    unknown: int
    """Judgments whose words are known neither from themselves nor from the log, and those of an evaluation's searches."""
    screened: int
    """Judgments left out because the text of their search may not be kept."""


def implied(store: Store, *, project: str = DEFAULT_PROJECT, allowed: Callable[[str], bool] | None = None) -> Implied:
    """Return a row per question with the grades that feedback implies (sources implicit and validated).

    Where several searches asked the same, a pair's grade is the mean weighted by confidence, rounded, a half downwards: one
    useful and one useless are no proof. What a person judged is left to the review queue. A judgment keeps its words, so this
    does not hang on how much of the log is left.
    """
    logged = list(_logged(store, project, None, None))
    evaluated = {row.query_id for row in logged if row.is_eval_corpus}
    texts = {row.query_id: row.query for row in logged}
    human: set[tuple[str, str]] = set()
    derived: list[tuple[str, StoredJudgment]] = []
    for key, judgment in keyed(store.judgments(project=project), logged):
        if judgment.source == "manual":
            human.add((key, judgment.item_id))
        elif judgment.source in DERIVED:
            derived.append((key, judgment))
    wording: dict[str, str] = {}
    said: dict[str, dict[str, list[StoredJudgment]]] = {}
    counts = {"judgments": 0, "human": 0, "unknown": 0, "screened": 0}
    for key, judgment in derived:
        text = texts.get(judgment.query_id) or str(judgment.metadata.get(QUERY, ""))
        if not text.strip() or judgment.query_id in evaluated:
            counts["unknown"] += 1
        elif allowed is not None and not allowed(text):
            counts["screened"] += 1
        elif (key, judgment.item_id) in human:
            counts["human"] += 1
        else:
            counts["judgments"] += 1
            wording.setdefault(key, text)
            said.setdefault(key, {}).setdefault(judgment.item_id, []).append(judgment)
    rows = tuple(
        Row(wording[key], {item: grade for item, given in sorted(items.items()) if (grade := _mean(given)) is not None})
        for key, items in sorted(said.items())
    )
    return Implied(tuple(row for row in rows if row.grades), **counts)


def _mean(given: Sequence[StoredJudgment]) -> int | None:
    """Return the grade that several signals make together; None where none of them is worth anything."""
    weight = sum(judgment.confidence for judgment in given)
    if not weight > 0:
        return None
    mean = sum(judgment.relevance * judgment.confidence for judgment in given) / weight
    return math.ceil(mean - 0.5)
