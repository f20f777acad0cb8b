"""BM25 on Tantivy: embedded, persistent, one field of all words.

Weights of title and tags are those of BM25F: a word of the title counts as if it stood there ``title`` times, before
saturation. The title is simply written that often into the one field, which keeps Tantivy's fastest way of searching.

Queries are built from analysed words, never parsed, so nothing a user types can be an operator. Equal scores go by document id,
also where they straddle the cut-off: the answer depends on the documents, not on how or when they were indexed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ringtrue.errors import InputError, nearest
from ringtrue.records import Hit
from ringtrue.retrieve.documents import DocumentStore, scope_values
from ringtrue.retrieve.index import Progress, StoredIndex
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import Scope, check_k, from_channel, plain, ranked

LANGUAGES = (
    "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian", "italian", "norwegian",
    "portuguese", "romanian", "russian", "spanish", "swedish", "tamil", "turkish",
)  # fmt: skip
WITHOUT_STOP_WORDS = frozenset({"arabic", "greek", "romanian", "tamil", "turkish"})
MAX_TERMS = 512
"""Distinct words of a query that count; a hundred-kilobyte query then costs no more than a long one."""
_WORDS, _SCOPE, _ROW = "words", "scope", "row"
_HEAVIEST = 20
_HEAP = 128_000_000
TITLE = 3
"""Chosen on SciFact's training queries and the shipped golden sets; the table is in docs/benchmarks.md."""
_SPARE = 1


def _tantivy() -> Any:
    return library("tantivy", "search")


def analyser(language: str) -> Any:
    """Return the word analysis of a language: lower case, stop words out, stems."""
    if language not in LANGUAGES:
        raise InputError(f"there is no stemmer for '{language}'; use {nearest(language, LANGUAGES)}")
    tantivy = _tantivy()
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.remove_long(100))
    builder = builder.filter(tantivy.Filter.lowercase())
    if language not in WITHOUT_STOP_WORDS:
        builder = builder.filter(tantivy.Filter.stopword(language))
    return builder.filter(tantivy.Filter.stemmer(language)).build()


def _scope_term(name: str, value: str) -> str:
    return hashlib.blake2b(json.dumps([name, value]).encode(), digest_size=16).hexdigest()


class Words(NamedTuple):
    """A loaded index: Tantivy's view of it, and the documents by their rows."""

    searcher: Any
    ids: Mapping[int, str]


class Bm25(StoredIndex[Words]):
    """The index of one collection in one language; words of title and tags count ``title`` and ``tags`` times."""

    def __init__(
        self, collection: DocumentStore, *, title: int = TITLE, tags: int = 1, language: str = "english", name: str = "bm25"
    ) -> None:
        for option, weight in (("title", title), ("tags", tags)):
            if isinstance(weight, bool) or weight not in range(1, _HEAVIEST + 1):
                raise InputError(
                    f"bm25 cannot have {option}={weight!r}; use a whole number from 1 (as any word) to {_HEAVIEST}"
                )
        self.analyser = analyser(language)
        super().__init__(collection, f"bm25-{language}-title{title}-tags{tags}")
        self.title, self.tags, self.name = title, tags, name

    @cached_property
    def schema(self) -> Any:
        builder = _tantivy().SchemaBuilder()
        builder.add_text_field(_WORDS, stored=False, tokenizer_name="ringtrue", index_option="freq")
        builder.add_text_field(_SCOPE, stored=False, tokenizer_name="raw", index_option="basic")
        builder.add_integer_field(_ROW, stored=False, indexed=False, fast=True)
        return builder.build()

    def _open(self, place: Path) -> Any:
        index = _tantivy().Index(self.schema, path=str(place))
        index.register_tokenizer("ringtrue", self.analyser)
        return index

    def holds(self, place: Path, count: int) -> bool:
        try:
            return bool(self._open(place).searcher().num_docs == count)
        except ValueError:  # files that are missing or torn
            return False

    def fill(self, place: Path, *, since: int, before: int, progress: Progress | None) -> int:
        tantivy = _tantivy()
        writer = self._open(place).writer(_HEAP, 1)  # one thread writes one segment, which is searched fastest
        count = before
        for row, document in self.collection.documents(since=since):
            words = "\n".join([document.title] * self.title + [document.text] + [" ".join(document.tags)] * self.tags)
            scopes = [_scope_term(name, text) for name, value in document.metadata.items() for text in scope_values(value)]
            writer.add_document(tantivy.Document(words=plain(words), scope=scopes, row=row))
            count += 1
            if progress is not None:
                progress(1)
        writer.commit()
        writer.wait_merging_threads()
        return count

    def load(self, place: Path, count: int, ids: Mapping[int, str]) -> Words:
        if not (place / "meta.json").is_file():
            raise FileNotFoundError(place)
        searcher = self._open(place).searcher()
        if searcher.num_docs != count:
            raise ValueError(f"{searcher.num_docs} documents instead of {count}")
        return Words(searcher, ids)

    def terms(self, text: str) -> list[str]:
        """Return the distinct words of a query that can find something."""
        return list(dict.fromkeys(self.analyser.analyze(plain(text))))[:MAX_TERMS]

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        return self.search_terms(dict.fromkeys(self.terms(text), 1.0), k=k, scope=scope)

    def search_terms(self, terms: Mapping[str, float], *, k: int, scope: Scope | None = None, name: str = "") -> list[Hit]:
        """Return the best documents for weighted words."""
        check_k(k)
        words = self.ready()
        wanted = self.collection.check_scope(scope)
        if not terms or not words.ids:
            return []
        return from_channel(name or self.name, _best(words, self._query(terms, wanted), k))

    def _query(self, terms: Mapping[str, float], scope: Mapping[str, str]) -> Any:
        tantivy = _tantivy()
        should = tantivy.Occur.Should
        parts = []
        for term, worth in terms.items():
            query = tantivy.Query.term_query(self.schema, _WORDS, term, "freq")
            parts.append((should, query if worth == 1.0 else tantivy.Query.boost_query(query, worth)))
        wanted = parts[0][1] if len(parts) == 1 else tantivy.Query.boolean_query(parts)
        if not scope:
            return wanted
        inside = [
            tantivy.Query.term_query(self.schema, _SCOPE, _scope_term(name, value), "basic") for name, value in scope.items()
        ]
        filters = [(tantivy.Occur.Must, tantivy.Query.const_score_query(query, 0.0)) for query in inside]
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, wanted), *filters])


def _best(words: Words, query: Any, k: int) -> list[tuple[str, float]]:
    searcher = words.searcher
    everything = max(1, searcher.num_docs)
    limit = min(k + _SPARE, everything)
    while True:
        hits = searcher.search(query, limit, count=False).hits
        rows = searcher.fast_field_values(_ROW, [address for _, address in hits])
        # A row without an id was removed since this index was made.
        found = [(words.ids[row], hit[0]) for row, hit in zip(rows, hits, strict=True) if row in words.ids]
        best = ranked(found, k=k)
        # Whatever ties with the last place has to be seen, so that the ids decide and not the order in the index.
        if len(hits) < limit or limit == everything or (len(best) == k and hits[-1][0] < best[-1][1]):
            return best
        limit = min(limit * 4, everything)


class Rm3:
    """BM25 asked twice: once as it is, once with the query mixed with words of the best documents."""

    def __init__(
        self,
        collection: DocumentStore,
        *,
        docs: int = 10,
        terms: int = 20,
        weight: float = 0.5,
        language: str = "english",
        name: str = "rm3",
    ) -> None:
        if docs < 1 or terms < 1 or not 0 <= weight <= 1:
            raise InputError(
                f"rm3(docs={docs}, terms={terms}, weight={weight}) is invalid; docs and terms start at 1, weight is 0 to 1"
            )
        self.first = Bm25(collection, language=language)
        self.docs, self.count, self.weight, self.name = docs, terms, weight, name

    @property
    def parts(self) -> list[Bm25]:
        """The index under it."""
        return [self.first]

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> list[Hit]:
        asked = self.first.terms(text)
        feedback = self.first.search(text, k=max(1, self.docs), scope=scope)
        mixed = self.expanded(asked, feedback) if feedback else dict.fromkeys(asked, 1.0)
        return self.first.search_terms(mixed, k=k, scope=scope, name=self.name)

    def expanded(self, asked: list[str], feedback: list[Hit]) -> dict[str, float]:
        """Return the words to search for with their weights, which add up to the number of words asked."""
        # Each document speaks with its score; within it a word speaks with its share of the document.
        total = sum(hit.score for hit in feedback)
        model: defaultdict[str, float] = defaultdict(float)
        texts = self.first.collection.texts_known(hit.doc_id for hit in feedback)  # one may have been removed just now
        for hit in feedback:
            words = Counter(self.first.analyser.analyze(plain(texts.get(hit.doc_id, ""))))
            for word, count in words.items():
                model[word] += hit.score / total * count / words.total()
        expansion = dict(sorted(model.items(), key=lambda item: (-item[1], item[0]))[: self.count])
        mass = sum(expansion.values()) or 1.0
        mixed = dict.fromkeys(asked, self.weight)
        for term, value in expansion.items():
            mixed[term] = mixed.get(term, 0.0) + (1.0 - self.weight) * value / mass * len(asked)
        return {term: value for term, value in mixed.items() if value > 0}
