"""RM3: the query grows by the words that mark its own first answers (pseudo-relevance feedback over BM25)."""

from __future__ import annotations

from collections import Counter, defaultdict

from ringtrue.errors import InputError
from ringtrue.records import Hit
from ringtrue.retrieve.channels.bm25 import Bm25
from ringtrue.retrieve.protocol import Scope, plain


class Rm3:
    """BM25 asked twice: once as it is, once with the query mixed with words of the best documents."""

    def __init__(self, first: Bm25, *, docs: int = 10, terms: int = 20, weight: float = 0.5, name: str = "rm3") -> None:
        if docs < 1 or terms < 1 or not 0 <= weight <= 1:
            raise InputError(
                f"rm3(docs={docs}, terms={terms}, weight={weight}) cannot be; docs and terms from 1, weight 0 to 1"
            )
        self.first, self.docs, self.count, self.weight, self.name = first, docs, terms, weight, name

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
