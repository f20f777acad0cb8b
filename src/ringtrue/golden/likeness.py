"""How alike texts are: queries that say the same thing, and queries that are copied from their documents.

Queries are the same if they are equal after normalising, or nearly so by the words they share. A query made of its document's
own words measures copying, not search.
"""

from __future__ import annotations

import math
import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from ringtrue.records import Document, GoldenSet, Query

NEAR = 0.9
COPIED_WORDS = 4
COPIED_SHARE = 0.8
HIGH = 0.8
PASSAGE = 150
_WORD = re.compile(r"\w+")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_STOP = """
a about above after again all also am an and any are as at be because been before being below between both but by
can cannot could did do does doing down during each few for from further get got had has have having he her here
hers him his how i if in into is it its itself just let me more most my no nor not now of off on once only or other
our ours out over own same she should so some such than that the their theirs them then there these they this those
through to too under until up us very was we were what when where which while who whom whose why will with would you
your yours s t don doesn didn isn aren wasn weren won ll ve re
"""
STOP_WORDS = frozenset(_STOP.split())


def normalise(text: str) -> str:
    """Return the words of a text in one spelling: compatibility forms, case and punctuation levelled.

    >>> normalise("  Wi-Fi,  PLEASE! ")
    'wi fi please'
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    # A query of signs alone ("???") still has to be comparable with another one.
    return " ".join(words) or " ".join(text.split())


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of words that two sets have in common; two empty sets are the same."""
    union = len(a | b)
    return len(a & b) / union if union else 1.0


def places_of_words(texts: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Return in which of several texts each word stands, by position."""
    found: dict[str, list[int]] = {}
    for place, words in enumerate(texts):
        for word in words:
            found.setdefault(word, []).append(place)
    return found


def near_duplicates(texts: Sequence[str], *, threshold: float = NEAR) -> list[tuple[int, int, float]]:
    """Return (first, second, similarity) for all pairs whose word sets overlap by at least ``threshold``.

    >>> near_duplicates(["where is the pool", "Where is the pool?", "late checkout fee"])
    [(0, 1, 1.0)]
    """
    sets = [frozenset(normalise(text).split()) for text in texts]
    return sorted(
        (first, second, similarity)
        for first, second in _candidates(sets, threshold)
        if (similarity := jaccard(sets[first], sets[second])) >= threshold
    )


def _candidates(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs that can reach the threshold at all.

    Two sets that overlap by t share one of the first n - ceil(t * n) + 1 words of each, in any fixed order of words;
    with the rare words first, few pairs are left of the millions that comparing all with all would cost.
    """
    counts = Counter(word for words in sets for word in words)
    index: dict[str, list[int]] = {}
    for position, words in enumerate(sets):
        ranked = sorted(words, key=lambda word: (counts[word], word))
        # The product is rounded because 0.9 * 10 must not become 9.000000000000002 and lose a pair.
        prefix = ranked[: len(ranked) - math.ceil(round(threshold * len(ranked), 9)) + 1] or [""]
        for other in {other for word in prefix for other in index.get(word, ())}:
            yield other, position
        for word in prefix:
            index.setdefault(word, []).append(position)


@dataclass(frozen=True)
class SimilarQueries:
    """Two queries that ask the same; ``same`` when they are equal but for case and punctuation."""

    first: str
    second: str
    similarity: float
    same: bool


def pairs_of(queries: Sequence[Query], *, scope: str | None = None) -> list[SimilarQueries]:
    """Return the pairs of queries that ask the same thing of the same documents.

    The same words in another scope, or after another conversation, are another question.
    """
    groups: dict[str, list[Query]] = {}
    for query in queries:
        groups.setdefault(repr(query.metadata.get(scope)) if scope else "", []).append(query)
    found = []
    for group in groups.values():
        turns = [query.metadata.get("transcript_context") for query in group]
        texts = [
            " ".join([*map(str, before), query.text]) if isinstance(before, list) else query.text
            for query, before in zip(group, turns, strict=True)
        ]
        for first, second, similarity in near_duplicates(texts):
            same = normalise(texts[first]) == normalise(texts[second])
            found.append(SimilarQueries(group[first].query_id, group[second].query_id, similarity, same))
    return found


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in their order."""
    return _PLAIN_WORD.findall(text.casefold())


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
    asked = words(query)
    found = SequenceMatcher(None, asked, words(document), autojunk=False).find_longest_match()
    return asked[found.a : found.a + found.size]


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
    title = f" {' '.join(words(document.title))} "
    # Title and text are compared apart: a run may not begin in one and end in the other.
    for told, is_title in ((document.text, False), (document.title, True)):
        run = shared_run(query.text, told)
        if len(run) >= COPIED_SHARE * len(asked) and not (title_exempt and (is_title or f" {' '.join(run)} " in title)):
            return Copied(query.query_id, document.doc_id, " ".join(run), len(run) / len(asked))
    return None


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
        evidence = (is_copied(query, document, title_exempt=golden.profile == "known-item") for document in found)
        copied += list(filter(None, evidence))[:1]
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
