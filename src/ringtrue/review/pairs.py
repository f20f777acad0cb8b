"""Pairs of question and document as reviewers see them: their keys, their texts, and what is disputed about them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ringtrue.answers import Dispute as Disputed
from ringtrue.golden import Candidate, Dispute
from ringtrue.records import GoldenSet
from ringtrue.store import DEFAULT_PROJECT, ReviewItem, timestamp

if TYPE_CHECKING:
    from ringtrue.run import Evaluation

Passages = Mapping[str, tuple[str, str]]
"""Title and text of documents by id."""


def key_of(query_id: str, doc_id: str) -> str:
    """Return the key of a pair: short enough to be typed.

    >>> key_of("q1", "d1")
    'bcd664c26d'
    """
    return hashlib.sha256(f"{query_id}\0{doc_id}".encode("utf-8", "surrogatepass")).hexdigest()[:10]


def disputed(found: Iterable[Dispute], texts: Mapping[str, str]) -> tuple[Disputed, ...]:
    """Return disputes with their keys and the texts of their questions, by query id."""
    return tuple(
        Disputed(key_of(one.query_id, one.doc_id), one.query_id, texts.get(one.query_id, ""), one.doc_id, one.grades)
        for one in found
    )


def passages_of(runs: Iterable[Evaluation]) -> dict[str, tuple[str, str]]:
    """Return title and text of documents, as far as the searches of these runs told either."""
    found: dict[str, tuple[str, str]] = {}
    for run in runs:
        for doc_id in {**run.titles, **run.texts}:
            title, text = found.get(doc_id, ("", ""))
            found[doc_id] = (title or run.titles.get(doc_id, ""), text or run.texts.get(doc_id, ""))
    return found


def pairs_of(
    golden: GoldenSet,
    candidates: Iterable[Candidate],
    *,
    now: datetime,
    wanted: int = 1,
    project: str = DEFAULT_PROJECT,
    passages: Passages = {},  # noqa: B006  # never changed
    about: Mapping[str, Any] | None = None,
) -> list[ReviewItem]:
    """Return review items for the unjudged documents that ``golden.worth_judging`` names; their weight is the priority.

    ``passages`` have title and text of documents that the set does not bring. ``about`` is what a pair says of its origin,
    the set unless given.
    """
    texts = {query.query_id: query.text for query in golden.queries}
    known = {**passages, **{document.doc_id: (document.title, document.text) for document in golden.documents}}
    items = []
    for candidate in candidates:
        title, text = known.get(candidate.doc_id, ("", ""))
        items.append(
            ReviewItem(
                item_key=key_of(candidate.query_id, candidate.doc_id),
                query_id=candidate.query_id,
                query=texts[candidate.query_id],
                doc_id=candidate.doc_id,
                created_at=timestamp(now),
                project=project,
                title=title,
                text=text,
                priority=candidate.weight,
                wanted=wanted,
                metadata=about or {"golden": golden.id},
            )
        )
    return items
