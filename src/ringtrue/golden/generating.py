"""Queries made from documents, by a pluggable generator, and an offline one that borrows few of a document's words.

A query in its document's own words measures copying, not search. Whatever a generator returns, a query that shares
more than 40 % of its content words with its document is refused here; the offline generator keeps below that by construction:
of the content words of a query at most two in five are the document's, the others are synonyms from a small list or belong to
the question around them.
"""

from __future__ import annotations

import hashlib
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


# What a sentence is about decides how it is asked for: markers in the sentence, then questions behind a topic. The topic is a
# list of words and no phrase, so it stands first, as people write it. The words of a question count as content words of the
# query: each kind has questions with few of them and with many.
_KINDS: Mapping[str, Sequence[str]] = {
    r"\b(?:fail\w*|errors?|broken?|outage|bugs?|leak\w*|crash\w*|faulty?|wrong|stuck|complain\w*|missing|lost)\b": (
        ": what to do", ": what helps", " going wrong: what helps", ": who knows how to sort this mess"
    ),
    r"\b(?:must|never|only|unless|should|forbidden|allowed|required|may not|do not)\b": (
        ": can we", ": okay or not", ": okay, or does somebody mind", ": supposed to bother, or okay anyway"
    ),
    r"\b(?:because|therefore|decided|chose|rejected|reason|held|dismissed|instead)\b": (
        ": why", ": why, who knows", ": how come, what lies behind", ": trying to grasp what lies behind"
    ),
    r"\d": (
        ": how much", ": roughly how much", ": roughly what to expect", ": somebody got exact figures, even rough"
    ),
    r"\b(?:is|are|means|called)\b (?:an?|the)\b": (
        ": what is it", ": meaning", ": never heard, meaning", ": never heard, somebody explain please"
    ),
}  # fmt: skip
_ANY = (
    "", " info", ": somebody knows", ": looking for something helpful", ": hoping somebody knows something",
    ": hoping somebody knows something helpful, thanks",
)  # fmt: skip
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_MARKS = re.compile(r"^[\s#>*\-•\"'{}\[\],]+|[\s\"'{}\[\],]+$")
_TERM = re.compile(r"[^\W\d_]{3,}")
SENTENCE_WORDS = (4, 60)
ANCHORS = 2
BORROWED = 3
"""Synonyms that stand in a query at most."""
SYNONYM_WORTH = 0.2
"""How much better a sentence is for each synonym it can be asked by."""
ELSEWHERE = 6
"""Words of the whole document, the most telling ones, in whose place synonyms may come where a sentence has too few."""


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
    sentences of a document it takes up to two words as they are, puts synonyms in the place of others, and asks for them in
    the way that suits what the sentence says: a fault, a rule, a reason, an amount, a meaning.
    """

    name = "offline"

    def __init__(self, documents: Iterable[Document], *, limit: float = LIMIT) -> None:
        self.limit = limit
        self._holders: Counter[str] = Counter()
        self._size = 0
        for document in documents:
            self._holders.update(set(content_words(f"{document.title}\n{document.text}")))
            self._size += 1

    def queries(self, document: Document, *, count: int) -> Sequence[str]:
        """Return up to ``count`` queries of which at most ``limit`` of the content words are the document's."""
        told = _Told(document, self._weights(document))
        found: dict[str, str] = {}
        for sentence in told.sentences:
            query = self._best(told, sentence)
            if query is not None:
                found.setdefault(normalise(query), query)
            if len(found) == count:
                break
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

    def _best(self, told: _Told, sentence: str) -> str | None:
        """Return the first query that keeps the limit: rather with more words of the document, then with more synonyms."""
        terms = told.terms(sentence)
        anchors = sorted(terms, key=lambda term: (-told.weights[plain_form(term)], term))
        questions = _questions(sentence, told.turn)
        for kept in range(min(ANCHORS, len(anchors)), 0, -1):
            exchanged = told.exchanged(sentence, anchors[:kept])
            for borrowed in range(min(BORROWED, len(exchanged)), -1, -1):
                topic = _topic(terms, anchors[:kept], exchanged[:borrowed])
                for question in questions:
                    query = topic + question
                    share = overlap(query, told.text)
                    if share is not None and share <= self.limit:
                        return query
        return None


class _Told:
    """What a document says, prepared for asking."""

    def __init__(self, document: Document, weights: Mapping[str, float]) -> None:
        self.text = f"{document.title}\n{document.text}"
        self.weights = weights
        self.turn = hashlib.sha256(document.doc_id.encode("utf-8", "surrogatepass")).digest()[0]
        parts = [_MARKS.sub("", part) for part in _SENTENCE.split(self.text)]
        shortest, longest = SENTENCE_WORDS
        usable = [part for part in dict.fromkeys(parts) if shortest <= len(part.split()) <= longest and self.terms(part)]
        # A document of a few words is asked for as a whole.
        self.sentences = sorted(usable or [self.text], key=lambda part: (-self._telling(part), part))

    def terms(self, sentence: str) -> list[str]:
        """Return the words of a sentence that a query could take, each once, in their order."""
        found: dict[str, str] = {}
        whole = set(words(sentence))  # 'b2b' is one word, of which the pattern sees parts
        for word in _TERM.findall(sentence.casefold()):
            if word not in STOP_WORDS and word in whole and plain_form(word) in self.weights:
                found.setdefault(plain_form(word), word)
        return list(found.values())

    def _telling(self, sentence: str) -> float:
        """Return how telling a sentence is: by the words it would lend to a query, and a little by the synonyms."""
        weights = sorted((self.weights[plain_form(term)] for term in self.terms(sentence)), reverse=True)[:ANCHORS]
        borrowed = min(BORROWED, len(self.exchanged(sentence, ())))
        return sum(weights) * (1 + SYNONYM_WORTH * borrowed)

    def exchanged(self, sentence: str, without: Sequence[str]) -> list[tuple[str, str]]:
        """Return (word, synonym that the document does not use), first for words of the sentence, then for others."""
        taken = {plain_form(term) for term in without}
        near = sorted(map(plain_form, self.terms(sentence)), key=lambda word: -self.weights[word])
        rest = sorted(self.weights, key=lambda word: (-self.weights[word], word))[:ELSEWHERE] if without else []
        found: dict[str, str] = {}
        used: set[str] = set()
        for word in dict.fromkeys([*near, *rest]):
            known = [other for other in synonyms().get(word, ()) if not any(w in self.weights for w in content_words(other))]
            fresh = next((other for other in known if other not in used), None)
            if word not in taken and fresh is not None:
                found[word] = fresh
                used.add(fresh)
        return list(found.items())


def _topic(terms: Sequence[str], anchors: Sequence[str], exchanged: Sequence[tuple[str, str]]) -> str:
    """Return the words of the topic in the order in which the sentence has what they stand for."""
    places = {plain_form(term): place for place, term in enumerate(terms)}
    chosen = [(places[plain_form(anchor)], anchor) for anchor in anchors]
    chosen += [(places.get(word, len(terms)), synonym) for word, synonym in exchanged]
    return " ".join(word for _, word in sorted(chosen, key=lambda item: item[0]))


def _questions(sentence: str, turn: int) -> list[str]:
    """Return the questions that suit a sentence, the short ones first; the turn varies them from document to document."""
    choices = [asked for markers, asked in _KINDS.items() if re.search(markers, sentence, re.IGNORECASE)] + [_ANY]
    return sorted((*choices[turn % len(choices)], *_ANY), key=lambda question: len(content_words(question)))
