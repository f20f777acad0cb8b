"""Which judgment counts where several speak about the same item for the same query.

A person who judged by hand always wins; then what was said (validated), then what was done (implicit), then what was made up
without anybody (bootstrapped). People come before agents, and the newer before the older.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringtrue.online.derive import actor_of, text_key
from ringtrue.online.feedback import instant
from ringtrue.records import Judgment
from ringtrue.store import JudgmentSource, LoggedQuery, StoredJudgment

ORDER: tuple[JudgmentSource, ...] = ("manual", "validated", "implicit", "bootstrapped")
ACTOR_ORDER = ("person", "", "unknown", "agent")


def winning(
    judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = (), *, min_confidence: float = 0.0
) -> list[StoredJudgment]:
    """Return one judgment per query and item, by query and item.

    Query ids whose searches have the same words are one query; ``searches`` says which words an id stands for where the
    judgment does not. Judgments by hand are kept whatever their confidence.
    """
    key_of = {query.query_id: text_key(query.query) for query in searches}
    best: dict[tuple[str, str], StoredJudgment] = {}
    for one in judgments:
        if one.source != "manual" and one.confidence < min_confidence:
            continue
        key = one.metadata.get("key") or key_of.get(one.query_id) or one.query_id
        pair = (str(key), one.item_id)
        if pair not in best or _weight(one) > _weight(best[pair]):
            best[pair] = one
    return sorted(best.values(), key=lambda one: (one.query_id, one.item_id))


def qrels(
    judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = (), *, min_confidence: float = 0.0
) -> list[Judgment]:
    """Return the winning judgments as a golden set holds them, each query under one id: that of its first winner in order."""
    searches = list(searches)
    key_of = {query.query_id: text_key(query.query) for query in searches}
    ids: dict[str, str] = {}
    rows = []
    for one in winning(judgments, searches, min_confidence=min_confidence):
        key = str(one.metadata.get("key") or key_of.get(one.query_id) or one.query_id)
        facts = {"annotator": one.annotator, "confidence": one.confidence}
        rows.append(Judgment(ids.setdefault(key, one.query_id), one.item_id, one.relevance, one.source, facts))
    return rows


def _weight(one: StoredJudgment) -> tuple[int, int, object, str]:
    actor = actor_of(one)
    return (
        -ORDER.index(one.source),
        -ACTOR_ORDER.index(actor if actor in ACTOR_ORDER else ""),
        instant(one.created_at),
        one.annotator,
    )
