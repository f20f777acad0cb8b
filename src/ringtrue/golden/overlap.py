"""The lexical-overlap guard (trap 18): a query made of its document's own words measures copying, not search."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ringtrue.records import Document, GoldenSet, Query

COPIED_WORDS = 4
COPIED_SHARE = 0.8
HIGH = 0.8
PASSAGE = 150
_WORD = re.compile(r"[^\W_]+")
_STOP = """
a about above after again all also am an and any are as at be because been before being below between both but by
can cannot could did do does doing down during each few for from further get got had has have having he her here
hers him his how i if in into is it its itself just let me more most my no nor not now of off on once only or other
our ours out over own same she should so some such than that the their theirs them then there these they this those
through to too under until up us very was we were what when where which while who whom whose why will with would you
your yours s t don doesn didn isn aren wasn weren won ll ve re
"""
STOP_WORDS = frozenset(_STOP.split())


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in their order."""
    return _WORD.findall(text.casefold())


def content_words(text: str) -> list[str]:
    """Return the words that carry meaning, each in its plain form, in their order.

    >>> content_words("Which pets are allowed in the garden rooms?")
    ['pet', 'allow', 'garden', 'room']
    """
    return [plain_form(word) for word in words(text) if word not in STOP_WORDS]


def plain_form(word: str) -> str:
    """Return a word without plural, -ing or -ed. Light on purpose: forms of one word should meet, families not.

    >>> [plain_form(word) for word in ("policies", "boxes", "charging", "stopped", "glass", "red")]
    ['policy', 'box', 'charg', 'stop', 'glass', 'red']
    """
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return _without_e(word[:-1])
    for ending in ("ing", "ed"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= 3 and any(vowel in stem for vowel in "aeiouy"):
            doubled = len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz"
            return stem[:-1] if doubled else stem
    return _without_e(word)


def _without_e(word: str) -> str:
    # 'charge' and 'charging' can only meet without the e.
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def overlap(query: str, document: str) -> float | None:
    """Return the share of the query's content words that occur in the document; None when the query has none.

    >>> overlap("bring my dog", "Dogs are welcome on the ground floor.")
    0.5
    """
    wanted = set(content_words(query))
    return len(wanted & set(content_words(document))) / len(wanted) if wanted else None


def shared_run(query: str, document: str) -> list[str]:
    """Return the longest run of consecutive words of the query that stands in the document as it is."""
    asked, told = words(query), words(document)
    places: dict[str, list[int]] = {}
    for position, word in enumerate(asked):
        places.setdefault(word, []).append(position)
    best_end = best_length = 0
    before: dict[int, int] = {}
    for word in told:
        now = {position: before.get(position - 1, 0) + 1 for position in places.get(word, ())}
        for position, length in now.items():
            # Of equally long runs the first in the query is meant, whichever the document reaches first.
            if length > best_length or (length == best_length and position < best_end):
                best_end, best_length = position, length
        before = now
    return asked[best_end - best_length + 1 : best_end + 1] if best_length else []


def longest_shared_phrase(query: str, document: str) -> float:
    """Return the length of the longest shared run divided by the length of the query.

    >>> longest_shared_phrase("is late checkout free", "Late checkout is free for members")
    0.5
    """
    asked = words(query)
    return len(shared_run(query, document)) / len(asked) if asked else 0.0


@dataclass(frozen=True)
class Copied:
    """A query that stands, nearly whole, in a document it should find."""

    query_id: str
    doc_id: str
    phrase: str
    share: float


@dataclass(frozen=True)
class OverlapSummary:
    """How much the queries of a set borrow from their documents.

    The figures are over queries with a relevant document in the set; they are None when there is no such query.
    """

    queries: int
    mean: float | None
    median: float | None
    share_high: float | None
    copied: tuple[Copied, ...]


def is_copied(query: Query, document: Document, *, title_exempt: bool = False) -> Copied | None:
    """Return the evidence that a query was copied from a document, or None.

    ``title_exempt`` is for known-item search, where the query is the document's name: a run that is part of the
    title is then allowed.
    """
    asked = words(query.text)
    if len(asked) < COPIED_WORDS:
        return None
    # Title and text are compared apart: a run may not begin in one and end in the other.
    for told, is_title in ((document.text, False), (document.title, True)):
        run = shared_run(query.text, told)
        if len(run) >= COPIED_SHARE * len(asked) and not (title_exempt and (is_title or _within(run, words(document.title)))):
            return Copied(query.query_id, document.doc_id, " ".join(run), len(run) / len(asked))
    return None


def _within(run: Sequence[str], told: Sequence[str]) -> bool:
    return any(list(told[start : start + len(run)]) == list(run) for start in range(len(told) - len(run) + 1))


def summarise(golden: GoldenSet) -> OverlapSummary:
    """Return the overlap of each query with the best passage of its relevant documents, summarised, and the copied queries.

    Passages and not documents, because a long document holds almost every word, which says nothing about copying.
    """
    documents = {document.doc_id: document for document in golden.documents}
    relevant: dict[str, list[Document]] = {}
    for judgment in golden.judgments:
        if judgment.grade >= golden.relevance_threshold and judgment.doc_id in documents:
            relevant.setdefault(judgment.query_id, []).append(documents[judgment.doc_id])
    passages: dict[str, list[frozenset[str]]] = {}
    best: list[float] = []
    copied: list[Copied] = []
    for query in golden.queries:
        found = relevant.get(query.query_id, [])
        asked = set(content_words(query.text))
        if asked and found:
            best.append(max(len(asked & part) for document in found for part in _passages(document, passages)) / len(asked))
        title_exempt = golden.profile == "known-item"
        copied += _first(is_copied(query, document, title_exempt=title_exempt) for document in found)
    if not best:
        return OverlapSummary(0, None, None, None, tuple(copied))
    high = sum(value > HIGH for value in best) / len(best)
    return OverlapSummary(len(best), statistics.fmean(best), statistics.median(best), high, tuple(copied))


def _passages(document: Document, known: dict[str, list[frozenset[str]]]) -> list[frozenset[str]]:
    """Return the content words of each passage; passages overlap by half, so that none is cut at a bad place."""
    if document.doc_id not in known:
        told = words(f"{document.title} {document.text}")
        starts = range(0, max(1, len(told) - PASSAGE // 2), PASSAGE // 2)
        known[document.doc_id] = [frozenset(content_words(" ".join(told[at : at + PASSAGE]))) for at in starts]
    return known[document.doc_id]


def _first(found: Iterable[Copied | None]) -> list[Copied]:
    first = next((item for item in found if item is not None), None)
    return [] if first is None else [first]
