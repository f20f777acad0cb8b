"""Queries made from documents, by a pluggable generator, and an offline one that borrows few of a document's words.

A query in its document's own words measures copying, not search. Whatever a generator returns, a query that shares
more than 40 % of its content words with its document is refused here; the offline generator keeps below that by construction:
of the content words of a query at most two in five are the document's, the others are synonyms from a small list or common
words around the topic.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Protocol

from ringtrue.errors import InputError
from ringtrue.golden.bootstrap import Row
from ringtrue.golden.likeness import STOP_WORDS, content_words, normalise, overlap, plain_form, words
from ringtrue.records import Document

SOURCE = "synthetic"
PREFIX = "made"
LIMIT = 0.4


class Generator(Protocol):
    """Makes queries that a document should answer."""

    name: str

    def queries(self, document: Document, *, count: int) -> Sequence[str]:
        """Return up to ``count`` queries, the best first; none if it can make none."""


@dataclass(frozen=True)
class Made:
    """A query, the document it was made from, and the share of its content words that are the document's; None without any."""

    text: str
    doc_id: str
    overlap: float | None


@dataclass(frozen=True)
class Generated:
    """The queries that were made, those that were refused, and the documents that got none."""

    made: tuple[Made, ...]
    refused: tuple[Made, ...]
    without: tuple[str, ...]
    limit: float
    generator: str

    @property
    def mean_overlap(self) -> float | None:
        """The mean share of words that queries have from their documents; None if no query was made."""
        return statistics.fmean(made.overlap or 0.0 for made in self.made) if self.made else None

    @property
    def largest_overlap(self) -> float | None:
        """The largest of these shares; None if no query was made."""
        return max((made.overlap or 0.0 for made in self.made), default=None)

    def rows(self, grade: int) -> tuple[Row, ...]:
        """Return the rows for a set: a query made from two documents has both as answers."""
        texts: dict[str, str] = {}
        grades: dict[str, dict[str, int]] = {}
        for made in self.made:
            key = normalise(made.text)
            texts.setdefault(key, made.text)
            grades.setdefault(key, {})[made.doc_id] = grade
        return tuple(Row(texts[key], grades[key], {"generator": self.generator}) for key in texts)


def generate(documents: Iterable[Document], generator: Generator, *, count: int = 1, limit: float = LIMIT) -> Generated:
    """Return up to ``count`` queries per document; one that shares more than ``limit`` of its content words is refused.

    A query without any content word asks nothing and is refused, too. Raises InputError for a count below 1 or a limit that is
    no share, and whatever the generator raises.
    """
    if count < 1:
        raise InputError(f"cannot generate {count} queries per document; ask for 1 or more")
    if not 0 <= limit <= 1:
        raise InputError(f"limit={limit} is not a share; write a number between 0 and 1 like {LIMIT}")
    made: list[Made] = []
    refused: list[Made] = []
    without: list[str] = []
    for document in documents:
        told = f"{document.title}\n{document.text}"
        texts = {normalise(text): " ".join(text.split()) for text in generator.queries(document, count=count) if text.strip()}
        found = [Made(text, document.doc_id, overlap(text, told)) for text in texts.values()][:count]
        good = [query for query in found if query.overlap is not None and query.overlap <= limit]
        made += good
        refused += [query for query in found if query not in good]
        if not good:
            without.append(document.doc_id)
    return Generated(tuple(made), tuple(refused), tuple(without), limit, generator.name)


# Words around a topic, the short ones first. They count as content words of the query, so that the document's are few of them.
_AROUND = (
    "", " info", ": somebody knows", ": looking for something helpful", ": hoping somebody knows something",
    ": hoping somebody knows something helpful, thanks",
)  # fmt: skip
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_TERM = re.compile(r"[^\W\d_]{3,}")
SENTENCE_WORDS = (4, 60)
ANCHORS = 2
BORROWED = 3
"""Synonyms that stand in a query at most."""


@lru_cache(maxsize=1)
def synonyms() -> Mapping[str, tuple[str, ...]]:
    """Return the words that can stand for a word, by its plain form."""
    found: dict[str, dict[str, None]] = {}
    for line in files("ringtrue.golden").joinpath("synonyms.txt").read_text(encoding="utf-8").splitlines():
        group = [] if line.startswith("#") else line.split()
        for other in group[1:]:
            if plain_form(other) != plain_form(group[0]):
                found.setdefault(plain_form(group[0]), {})[other] = None
    return {word: tuple(others) for word, others in found.items()}


class OfflineGenerator:
    """Makes queries without any model, the same ones every time.

    It is given all documents, because a word tells a document apart only by being rare in the others. From the most telling
    sentences of a document it takes up to two words as they are, and puts synonyms of others and common words beside them.
    """

    name = "offline"

    def __init__(self, documents: Iterable[Document], *, limit: float = LIMIT) -> None:
        self.limit = limit
        holders = [set(content_words(f"{document.title}\n{document.text}")) for document in documents]
        self._size, self._holders = len(holders), Counter(word for words in holders for word in words)

    def queries(self, document: Document, *, count: int) -> Sequence[str]:
        """Return up to ``count`` queries of which at most ``limit`` of the content words are the document's."""
        told, weights = f"{document.title}\n{document.text}", self._weights(document)

        def telling(part: str) -> float:
            return sum(sorted((weights[plain_form(term)] for term in _terms(part, weights)), reverse=True)[:ANCHORS])

        shortest, longest = SENTENCE_WORDS
        parts = [part for part in dict.fromkeys(_SENTENCE.split(told)) if shortest <= len(part.split()) <= longest]
        found: dict[str, str] = {}
        # A document of a few words is asked for as a whole.
        for part in sorted(filter(telling, parts), key=lambda part: (-telling(part), part)) or [told]:
            query = self._query(told, _terms(part, weights), weights) if len(found) < count else None
            if query is not None:
                found.setdefault(normalise(query), query)
        return list(found.values())

    def _weights(self, document: Document) -> dict[str, float]:
        """Return how telling each word of a document is: often here, rare elsewhere, more so in the title.

        A word of this document alone counts no more than one of two: it is a number plate as often as a topic.
        """
        title = set(content_words(document.title))
        weights = {}
        for word, count in Counter(content_words(f"{document.title}\n{document.text}")).items():
            rare = math.log((self._size + 2) / max(2, self._holders[word]))
            weights[word] = (1 + math.log(count)) * rare * (1.5 if word in title else 1)
        return weights

    def _query(self, told: str, terms: Sequence[str], weights: Mapping[str, float]) -> str | None:
        """Return the first query that keeps the limit: rather with more words of the document, then with more synonyms."""
        ordered = sorted(terms, key=lambda term: (-weights[plain_form(term)], term))
        for kept in range(min(ANCHORS, len(ordered)), 0, -1):
            known = (synonyms().get(plain_form(term), ()) for term in ordered[kept:])
            fresh = ([other for other in others if weights.keys().isdisjoint(content_words(other))] for others in known)
            borrowed = list(dict.fromkeys(others[0] for others in fresh if others))[:BORROWED]
            for some in range(len(borrowed), -1, -1):
                for around in _AROUND:
                    query = " ".join([*ordered[:kept], *borrowed[:some]]) + around
                    share = overlap(query, told)
                    if share is not None and share <= self.limit:
                        return query
        return None


def _terms(sentence: str, weights: Mapping[str, float]) -> list[str]:
    """Return the words of a sentence that a query could take, each once, in their order."""
    found: dict[str, str] = {}
    whole = set(words(sentence))  # 'b2b' is one word, of which the pattern sees parts
    for word in _TERM.findall(sentence.casefold()):
        if word not in STOP_WORDS and word in whole and plain_form(word) in weights:
            found.setdefault(plain_form(word), word)
    return list(found.values())
