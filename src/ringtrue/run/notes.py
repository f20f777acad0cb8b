"""What readers of an evaluation should know about its answers, one plain sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from ringtrue.records import GoldenSet, Ranking
from ringtrue.run.evaluation import NOT_CACHED, REPLAYED, Precondition

Failed = Literal["list", "exclude", "zero"]
SHORTEST = 4
"""Characters of an id from which one letter more, less or other is taken for a slip."""


def how_answered(
    errors: Sequence[str],
    asked: int,
    *,
    resumed: int,
    met: Iterable[Precondition],
    timed: bool,
    complete: bool,
    failed: Failed,
) -> Iterator[str]:
    """Yield one plain sentence for everything that readers should know about how the answers were made."""
    if errors:
        fate = "count as empty answers, as asked" if failed == "zero" else "are left out of every mean"
        yield f"{len(errors)} of {asked} queries failed and {fate}; the first: {errors[0]}"
    for one in met:
        if one.status == "failed":
            yield f"accepted with --allow {one.name}: {one.detail}"
    if resumed:
        yield f"{resumed} answers come from an evaluation that was interrupted, with the latency they had then"
    if not timed:
        yield REPLAYED
    if not complete:
        yield NOT_CACHED


def misspelt(golden: GoldenSet, rankings: Iterable[Ranking]) -> Iterator[str]:
    """Yield a sentence if judged documents were never answered, but documents of nearly the same id that nobody judged were."""
    answered = dict.fromkeys(hit.doc_id for ranking in rankings for hit in ranking.hits)
    judged = dict.fromkeys(judgment.doc_id for judgment in golden.judgments)
    right = {document.doc_id for document in golden.documents}
    known = {form: doc_id for doc_id in answered if doc_id not in judged for form in _spellings(doc_id)}
    pairs = [
        (doc_id, next(known[form] for form in _spellings(doc_id) if form in known))
        for doc_id in judged
        if doc_id not in answered and doc_id not in right and any(form in known for form in _spellings(doc_id))
    ]
    if pairs:
        shown = "; ".join(f"'{doc_id}' was never answered, but '{near}' was" for doc_id, near in pairs[:3])
        more = f"; and {len(pairs) - 3} more" if pairs[3:] else ""
        yield f"{shown}{more}; check the spelling of the judged ids"


def about_chunks(golden: GoldenSet, rankings: Iterable[Ranking]) -> Iterator[str]:
    """Yield why Top1Chunk is undefined or 0 for every query: the search names no chunks, or names them differently."""
    declared = {str(query.metadata["top_1_chunk"]) for query in golden.queries if query.metadata.get("top_1_chunk")}
    hits = [hit for ranking in rankings for hit in ranking.hits]
    named = {hit.chunk for hit in hits if hit.chunk is not None}
    if not declared.isdisjoint(named | {hit.doc_id for hit in hits}):
        return
    if not named:
        yield "Top1Chunk is undefined: the search names no chunks; add the chunk to each hit, or leave this measure out"
    elif declared:
        yield (
            f"no answer has a declared chunk such as '{min(declared)}', but chunks such as '{min(named)}'; "
            "Top1Chunk is 0 unless both are written alike"
        )


def _spellings(doc_id: str) -> Iterator[str]:
    """Yield what an id shares with ids that differ by case, spaces or one letter; other digits are another document.

    >>> "bk006" in set(_spellings("BK-006")), set(_spellings("bk-006")) & set(_spellings("bk-007"))
    (True, set())
    """
    plain = "".join(doc_id.casefold().split())
    yield plain
    if len(plain) >= SHORTEST:
        yield from (plain[:place] + plain[place + 1 :] for place, letter in enumerate(plain) if not letter.isdigit())
