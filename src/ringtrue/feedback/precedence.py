"""Which judgment counts where several speak about the same item for the same query.

A person who judged by hand always wins; then what was said (validated), then what was done (implicit), then what was made up
without anybody (bootstrapped). People come before agents, and the newer before the older. Of a pair that several people judged
in the review queue the grade that was settled among them counts, and nobody's single one.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringtrue.answers import JudgmentSource
from ringtrue.feedback.derive import actor_of, text_key
from ringtrue.log.linking import instant
from ringtrue.records import Judgment
from ringtrue.store import LoggedQuery, StoredJudgment

ORDER: tuple[JudgmentSource, ...] = ("manual", "validated", "implicit", "bootstrapped")
ACTOR_ORDER = ("person", "", "unknown", "agent")
KEY, QUERY = "key", "query"
"""Where a judgment keeps the words of its query, in one spelling and as they were: it outlives the log."""
ONE_OF = "one_of"
"""What marks one rater's grade: the pair's settled grade stands in a row of its own."""


def keyed(judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = ()) -> list[tuple[str, StoredJudgment]]:
    """Return every judgment with the key of its query's words: searches and golden queries with the same words share it.

    The judgment itself says it, else the search of its id, else another judgment of that id; where nothing does, the id stands
    for the words.
    """
    judgments = list(judgments)
    words = {one.query_id: str(one.metadata[KEY]) for one in judgments if one.metadata.get(KEY)}
    words |= {query.query_id: text_key(query.query) for query in searches}
    return [(str(one.metadata.get(KEY) or words.get(one.query_id) or one.query_id), one) for one in judgments]


def winning_by_words(
    judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = (), *, min_confidence: float = 0.0
) -> dict[tuple[str, str], StoredJudgment]:
    """Return {(words' key, item): the judgment that counts}; judgments by hand count whatever their confidence."""
    best: dict[tuple[str, str], StoredJudgment] = {}
    for key, one in keyed(judgments, searches):
        if one.metadata.get(ONE_OF) or (one.source != "manual" and one.confidence < min_confidence):
            continue
        pair = (key, one.item_id)
        if pair not in best or _weight(one) > _weight(best[pair]):
            best[pair] = one
    return best


def winning(
    judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = (), *, min_confidence: float = 0.0
) -> list[StoredJudgment]:
    """Return one judgment per query and item, by query and item.

    Query ids whose searches have the same words are one query; ``searches`` says which words an id stands for where the
    judgment does not. Judgments by hand are kept whatever their confidence.
    """
    best = winning_by_words(judgments, searches, min_confidence=min_confidence)
    return sorted(best.values(), key=lambda one: (one.query_id, one.item_id))


def qrels(
    judgments: Iterable[StoredJudgment], searches: Iterable[LoggedQuery] = (), *, min_confidence: float = 0.0
) -> list[Judgment]:
    """Return the winning judgments as a golden set holds them, each query under one id: that of its first winner in order."""
    best = winning_by_words(judgments, searches, min_confidence=min_confidence)
    ids: dict[str, str] = {}
    rows = []
    for (key, item_id), one in sorted(best.items(), key=lambda row: (row[1].query_id, row[1].item_id)):
        facts = {"annotator": one.annotator, "confidence": one.confidence}
        rows.append(Judgment(ids.setdefault(key, one.query_id), item_id, one.relevance, one.source, facts))
    return rows


def _weight(one: StoredJudgment) -> tuple[int, int, object, str]:
    actor = actor_of(one)
    return (
        -ORDER.index(one.source),
        -ACTOR_ORDER.index(actor if actor in ACTOR_ORDER else ""),
        instant(one.created_at),
        one.annotator,
    )
