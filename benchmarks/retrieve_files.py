"""Documents and queries for the retrieval benchmarks, the same for everyone who asks for the same size.

``python benchmarks/retrieve_files.py COUNT QUERIES DOCUMENTS_FILE QUERIES_FILE`` writes both.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORM = "1"
"""Of what is generated; raised when the generator changes, so that no old file is used again."""
SEED = 20_250_601
TITLE = 3
"""How often ringtrue's bm25 writes a title into its field by default; a change there shows in fewer answers shared."""
# Those that tantivy and bm25s leave out, the most frequent first.
STOP_WORDS = [
    "the", "of", "and", "to", "a", "in", "is", "for", "that", "on", "with", "as", "are", "by", "be", "this", "it", "at",
    "an", "or", "was", "not", "but", "will", "they", "if", "their", "no", "these", "then", "there", "such", "into",
]  # fmt: skip
_OPENINGS = (
    "b", "br", "bl", "c", "ch", "cl", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "pl", "pr", "r",
    "s", "sh", "st", "t", "th", "tr", "v", "w",
)  # fmt: skip
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "oo")
_CLOSINGS = ("n", "r", "l", "s", "t", "m", "d", "ck", "nd", "rt", "x", "p")
_ENDINGS = ("", "", "", "", "s", "ing", "ed", "er", "ation", "ly", "ness", "ment")


def documents(path: Path | str) -> Iterator[dict[str, str]]:
    """Yield the documents of a generated file."""
    with Path(path).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def words(entry: dict[str, str]) -> str:
    """Return what ringtrue's bm25 indexes of a document."""
    return "\n".join([entry["title"]] * TITLE + [entry["text"]])


def write_documents(count: int, queries: int, corpus: Path, asked: Path) -> None:
    """Write documents of 60 to 200 words with a title, and queries of 3 to 8 words that stand in one of them.

    Words are drawn as in natural text: 38 % stop words, the others from 50,000 made-up words by Zipf's law, half of them from
    the two hundred words of the document's subject, so that rare words come in bursts. Half of the queries are cut out of a
    document as they stand, stop words included, half are picked from its other words.
    """
    import numpy as np

    rng = np.random.default_rng(SEED)
    vocabulary = STOP_WORDS + _made_up(rng, 50_000)
    first, size, subjects, own = len(STOP_WORDS), 50_000, max(10, count // 200), 200

    def falling(length: int, offset: float, power: float = 1.0) -> Any:
        shares = np.cumsum((np.arange(length) + offset) ** -power)
        return shares / shares[-1]

    stop, common, within = falling(first, 1), falling(size, 10), falling(own, 5)
    subject_words = first + np.searchsorted(falling(size, 10, 0.7), rng.random((subjects, own)))
    chosen = set(rng.choice(count, min(count, queries), replace=False).tolist())
    kept: list[list[str]] = []
    seen: dict[str, int] = {}
    scratch = corpus.with_suffix(".new")
    with scratch.open("w", encoding="utf-8") as file:
        for start in range(0, count, 10_000):
            block = min(10_000, count - start)
            titles, lengths = rng.integers(4, 9, block), rng.integers(60, 201, block)
            sizes = titles + lengths
            subject = np.repeat(rng.integers(subjects, size=block), sizes)
            kind, place = rng.random(len(subject)), rng.random(len(subject))
            ids = np.select(
                [kind < 0.38, kind < 0.69],
                [np.searchsorted(stop, place), first + np.searchsorted(common, place)],
                subject_words[subject, np.searchsorted(within, place)],
            ).tolist()
            at = 0
            for row, (title, whole) in enumerate(zip(titles.tolist(), sizes.tolist()), start):
                text = [vocabulary[word] for word in ids[at : at + whole]]
                at += whole
                for word in set(text):
                    seen[word] = seen.get(word, 0) + 1
                if row in chosen:
                    kept.append(text[title:])
                entry = {"id": f"d{row}", "title": " ".join(text[:title]), "text": " ".join(text[title:])}
                file.write(json.dumps(entry) + "\n")
    found = _questions(kept, queries, rng)
    bare = [word for query in found for word in query if word not in STOP_WORDS]
    facts = {"per_query": len(bare) / len(found), "documents_share": sum(seen[word] for word in bare) / len(bare) / count}
    content = {"words": facts, "queries": [" ".join(query) for query in found]}
    asked.write_text(json.dumps(content), encoding="utf-8")
    scratch.replace(corpus)


def _questions(texts: list[list[str]], count: int, rng: Any) -> list[list[str]]:
    found: list[list[str]] = []
    stop = set(STOP_WORDS)
    while len(found) < count:
        text, size = texts[int(rng.integers(len(texts)))], int(rng.integers(3, 9))
        if len(found) % 2:
            start = int(rng.integers(len(text) - size))
            query = text[start : start + size]
        else:
            rest = sorted({word for word in text if word not in stop})
            query = [rest[place] for place in rng.choice(len(rest), min(size, len(rest)), replace=False)]
        if not stop.issuperset(query):
            found.append(query)
    return found


def _made_up(rng: Any, count: int) -> list[str]:
    """Return made-up words with English endings, the short ones first, as frequent words are."""
    found: dict[str, None] = dict.fromkeys(STOP_WORDS)
    while len(found) < count + len(STOP_WORDS):
        openings, vowels = (rng.integers(len(parts), size=(count, 3)).tolist() for parts in (_OPENINGS, _VOWELS))
        sizes, closings, endings = (rng.integers(most, size=count).tolist() for most in (3, len(_CLOSINGS), len(_ENDINGS)))
        for opening, vowel, size, closing, ending in zip(openings, vowels, sizes, closings, endings):
            syllables = "".join(_OPENINGS[one] + _VOWELS[other] for one, other in zip(opening[: size + 1], vowel))
            found[syllables + _CLOSINGS[closing] + _ENDINGS[ending]] = None
    made_up = list(found)[len(STOP_WORDS) :]
    return sorted(made_up[:count], key=len)


if __name__ == "__main__":
    write_documents(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
