"""Long documents → passages that an encoder can read. A passage is a span of the text, so that it can be shown in its place.

Spans come in order, begin and end with a character that is not a space, together cover everything that is not a space, and hold
at most ``tokens`` tokens. Time grows with the length of the text, whatever stands in it.

Tokens are counted without a model: every mark of punctuation is one, every six letters of a Latin word (or part of six) are
one, every three letters of another alphabet, and every character of a script that is written without spaces (Chinese,
Japanese, Thai …). Beside the word pieces of all-MiniLM-L6-v2 this came to 0.96–1.19 of the true number on English prose,
Markdown and code, and to 1.00 on Chinese. For languages that a model's vocabulary does not know it needs more pieces than
are counted here (twice as many for German, two and a half times for Russian in that English model): ask for fewer there.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringtrue.errors import SpecError, nearest
from ringtrue.spec import Expression, parse

FORMS: dict[str, str] = {
    "fixed": "fixed(tokens=512, overlap=50)",
    "sentence": "sentence(tokens=512)",
    "markdown": "markdown(tokens=512)",
    "semantic": "semantic(tokens=512, threshold=95)",
    "none": "none",
}
LIKE = f"{FORMS['fixed']}, {FORMS['markdown']} or none"
"""Examples for who wrote a chunker that cannot be read."""

# Thai, Lao, Tibetan, Burmese, Khmer, kana and ideographs: no spaces between words, a cut is allowed before any character.
_UNSPACED = "\u0e01-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3021-\u30ff\u3100-\u312f"
_UNSPACED += "\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_HANGUL = "\uac00-\ud7af"
_MARKS = r"!-/:-@\[-`{-~\u00a1-\u00bf\u2000-\u200c\u200e-\u2bff\u3000-\u3004\u3008-\u3020\ufe30-\uff65\U0001f000-\U0001faff"
_LATIN = r"0-9A-Za-z\u00c0-\u024f"
# What stands on the character before it: accents, Thai vowels and tones, emoji parts. A passage never begins with one, and
# no more than eight are taken at once, so that a heap of them still counts.
_ON_TOP = "[\u0300-\u036f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3"
_ON_TOP += "\u200d\u3099\u309a\ufe00-\ufe0f\U0001f3fb-\U0001f3ff]{0,8}"
_TOKEN = re.compile(
    rf"([{_UNSPACED}]{_ON_TOP})"
    rf"|[{_LATIN}]{{1,6}}{_ON_TOP}"
    rf"|[^\s{_MARKS}{_LATIN}{_HANGUL}{_UNSPACED}]{{1,3}}{_ON_TOP}"
    rf"|\S{_ON_TOP}"
)

_CLOSERS = "\"'”’»›)\\]}"
# Each alternative consumes all it looks at, so no character is looked at twice.
_STOP = re.compile(
    rf"(?P<plain>[.!?…‽]+)[{_CLOSERS}]*|[。！？｡।॥؟۔։።။។៕]+[」』】）》〉{_CLOSERS}]*|(?P<blank>\n[^\S\n]*+(?=\n))"
)
_BEFORE_NEXT = re.compile(r"\s*[\"'“‘«‹(\[{¿¡]*")
_WORD_BEFORE = re.compile(r"[^\s\"'“‘«‹(\[{,;:/–—-]*\Z")
_NEVER_LAST = {
    "dr", "mr", "mrs", "ms", "prof", "st", "mt", "gen", "col", "capt", "lt", "sgt", "rev", "hon", "gov", "sen", "rep", "mme",
    "mlle", "sra", "dra", "hr", "fr", "vs", "cf", "e.g", "i.e", "eg", "ie", "viz", "approx", "ca", "resp", "incl", "excl",
    "z.b", "d.h", "u.a", "bzw", "vgl", "ggf", "evtl", "p.ex",
}  # fmt: skip
_BEFORE_A_NUMBER = {
    "no", "nos", "nr", "fig", "figs", "eq", "eqs", "sec", "sect", "vol", "vols", "ch", "chap", "p", "pp", "art", "abs", "ed",
    "eds", "tab", "ref", "refs", "al",
}  # fmt: skip
_SELDOM_LAST = {"etc", "inc", "ltd", "co", "corp", "jr", "sr", "usw", "dept", "univ", "est", "ave", "blvd"}

_LINE = re.compile(r"^[^\S\n]*+\S[^\n]*", re.MULTILINE)
_KINDS = {
    "heading_open": "heading", "fence": "code", "code_block": "code",
    "bullet_list_open": "rows", "ordered_list_open": "rows", "table_open": "rows",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """A passage: characters ``start`` to ``end`` of the text."""

    start: int
    end: int


Chunker = Callable[[str], Iterator[Span]]
Embed = Callable[[Sequence[str]], ArrayLike]
Range = tuple[int, int]


class _Tokens:
    """The tokens of a text by position, and the edges between them where a cut harms no word."""

    def __init__(self, text: str) -> None:
        self.starts, self.ends, self.free = array("q"), array("q"), bytearray()
        last = -1
        for match in _TOKEN.finditer(text):
            start, end = match.span()
            self.starts.append(start)
            self.ends.append(end)
            self.free.append(start != last or match.lastindex == 1)
            last = end
        self.free.append(1)

    def __len__(self) -> int:
        return len(self.starts)

    def at(self, place: int) -> int:
        """Return the first token that begins at this character or after it."""
        return bisect_left(self.starts, place)

    def edges(self, places: Iterable[int], *, first: int, last: int) -> list[int]:
        """Return the token edges at these rising characters, from ``first`` to ``last``, each once."""
        inner = dict.fromkeys(self.at(place) for place in places)
        return [first, *(edge for edge in inner if first < edge < last), last]

    def spans(self, ranges: Iterable[Range]) -> Iterator[Span]:
        """Yield ranges of tokens as characters."""
        return (Span(self.starts[first], self.ends[last - 1]) for first, last in ranges if first < last)

    def windows(self, first: int, last: int, *, size: int, overlap: int = 0) -> Iterator[Range]:
        """Yield ranges of at most ``size`` tokens, cut between words unless one word fills a whole range."""
        while last - first > size:
            end = self.free.rfind(1, first + 1, first + size + 1)
            end = first + size if end < 0 else end
            yield first, end
            following = self.free.find(1, end + 1, min(end + size, last) + 1)
            # Repeating so much that the next word no longer fits would give a passage with nothing new in it.
            back = max(end - overlap, first + 1, end if following < 0 else following - size)
            after = self.free.find(1, back, end + 1)
            first = back if after < 0 else after
        yield first, last

    def packed(self, edges: Sequence[int], *, size: int, cut: Callable[[int, int], Iterator[Range]]) -> Iterator[Range]:
        """Yield neighbouring pieces joined up to the size; ``cut`` divides a piece that is too long by itself."""
        start = edges[0]
        for left, right in pairwise(edges):
            if right - start > size and left > start:
                yield start, left
                start = left
            if right - start > size:
                yield from cut(start, right)
                start = right
        if start < edges[-1]:
            yield start, edges[-1]


def count_tokens(text: str) -> int:
    """Return the number of tokens in a text, as the chunkers count.

    >>> count_tokens("Breakfast is free."), count_tokens("早餐免费。")
    (5, 5)
    """
    return sum(1 for _ in _TOKEN.finditer(text))


def whole(text: str) -> Iterator[Span]:
    """Yield the text as one passage, nothing if it is blank."""
    if bare := text.strip():
        start = len(text) - len(text.lstrip())
        yield Span(start, start + len(bare))


def fixed(text: str, *, tokens: int, overlap: int) -> Iterator[Span]:
    """Yield passages of at most ``tokens`` tokens, each repeating up to ``overlap`` of the one before."""
    # A token has at least one character; counting is three times as fast as placing, and most documents fit.
    if len(text) <= tokens or len(_TOKEN.findall(text)) <= tokens:
        return whole(text)
    found = _Tokens(text)
    return found.spans(found.windows(0, len(found), size=tokens, overlap=overlap))


def sentences(text: str, *, tokens: int) -> Iterator[Span]:
    """Yield passages that end where sentences or paragraphs end; a sentence that is too long is cut between words."""
    if len(text) <= tokens:
        return whole(text)
    found = _Tokens(text)
    edges = found.edges(sentence_ends(text, 0, len(text)), first=0, last=len(found))
    return found.spans(found.packed(edges, size=tokens, cut=partial(found.windows, size=tokens)))


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the places between ``start`` and ``end`` where a sentence or paragraph ends."""
    for match in _STOP.finditer(text, start, end):
        if match["plain"] is None or _is_end(text, match):
            yield match.end()


def _is_end(text: str, match: re.Match[str]) -> bool:
    """Return whether a full stop, question or exclamation mark ends a sentence; decimals and abbreviations do not."""
    gap = _BEFORE_NEXT.match(text, match.end())
    assert gap is not None  # both of its parts may be empty
    if match.end() == len(text) or gap.end() == len(text):
        return True
    if not text[match.end()].isspace():
        return False
    following, mark = text[gap.end()], match["plain"]
    if mark != ".":
        # “Really?” he asked. Wait … what?
        spoken = match.end("plain") < match.end()
        return not (following.islower() and (spoken or mark[0] in ".…"))
    before = _WORD_BEFORE.search(text, max(0, match.start() - 20), match.start())
    word = before[0] if before else ""
    if word.isdigit() and not text[max(0, match.start() - 20) : match.start() - len(word)].rpartition("\n")[2].strip(" \t>"):
        return len(word) > 3  # a list is numbered 1. 2. 3.; a year that begins a line is none
    if word.lower() in _NEVER_LAST or (len(word) == 1 and word.isupper()):
        return False
    if word.lower() in _BEFORE_A_NUMBER:
        return not (following.isdigit() or text[gap.end() - 1] in "([")
    if word.lower() in _SELDOM_LAST or "." in word:
        return following.isupper()
    return True


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a Markdown text: 'heading', 'code', 'rows' (a list or table) or 'prose'."""

    start: int
    kind: str


def sections(text: str, *, tokens: int) -> Iterator[Span]:
    """Yield Markdown sections, a heading with what is under it; a heading with nothing under it goes with the next one.

    A section that is too long is cut between its blocks; a block that is too long, between its sentences, or between its
    lines where it is fenced code, a list or a table.
    """
    found = _Tokens(text)
    parts = list(blocks(text))
    ends = [*(found.at(block.start) for block in parts[1:]), len(found)]
    section: list[int] = [0]
    for index, block in enumerate(parts):
        is_last = index + 1 == len(parts)
        if block.kind == "heading" and not is_last:
            continue  # no edge between a heading and what is under it
        section.append(ends[index])
        if is_last or parts[index + 1].kind == "heading":
            yield from found.spans(found.packed(section, size=tokens, cut=partial(_cut_block, text, found, parts, size=tokens)))
            section = [ends[index]]


def _cut_block(text: str, found: _Tokens, parts: list[Block], first: int, last: int, *, size: int) -> Iterator[Range]:
    """Yield the parts of one block that is too long, its heading with the first of them."""
    start, end = found.starts[first], found.ends[last - 1]
    block = parts[bisect_right(parts, found.starts[last - 1], key=lambda block: block.start) - 1]
    if block.kind in ("code", "rows"):
        inner: Iterable[int] = (match.start() for match in _LINE.finditer(text, block.start, end))
        inner = (place for place in inner if place > block.start or block.start == start)
    else:
        inner = sentence_ends(text, block.start, end)
    edges = found.edges(inner, first=first, last=last)
    return found.packed(edges, size=size, cut=partial(found.windows, size=size))


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a Markdown text, one after the other."""
    from markdown_it import MarkdownIt  # costs 30 ms that no other chunker needs

    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.level == 0 and token.map is not None:
            yield Block(starts[token.map[0]], _KINDS.get(token.type, "prose"))


def semantic(text: str, *, tokens: int, threshold: float, embed: Embed) -> Iterator[Span]:
    """Yield groups of sentences, cut where neighbouring sentences differ most.

    A cut falls where the cosine distance of two neighbours is above the ``threshold`` percentile of this text's distances. A
    group that is too long is cut at the largest distance in the second half of what fits.
    """
    found = _Tokens(text)
    edges = found.edges(sentence_ends(text, 0, len(text)), first=0, last=len(found))
    if len(edges) < 3 or len(found) == 0:
        return found.spans(found.windows(0, len(found), size=tokens))
    matrix = np.asarray(embed([text[span.start : span.end] for span in found.spans(pairwise(edges))]), np.float64)
    # 1 - cosine between neighbours, rounded, so that the last bits of a vector do not decide where two equal ones are cut.
    distances = np.asarray((1 - (matrix[1:] * matrix[:-1]).sum(axis=1)).round(6))
    limit = float(np.percentile(distances, threshold))
    turns = [0, *(np.flatnonzero(distances > limit) + 1).tolist(), len(edges) - 1]
    return found.spans(part for turn in pairwise(turns) for part in _bounded(found, edges, distances, *turn, size=tokens))


def _bounded(
    found: _Tokens, edges: list[int], distances: NDArray[np.float64], first: int, last: int, *, size: int
) -> Iterator[Range]:
    while edges[last] - edges[first] > size:
        fits = bisect_right(edges, edges[first] + size) - 1
        if fits == first:  # one sentence is too long by itself
            yield from found.windows(edges[first], edges[first + 1], size=size)
            first += 1
            continue
        half = min(fits, bisect_left(edges, edges[first] + (size + 1) // 2, first + 1))
        # The latest of equal distances makes the fullest passage.
        cut = fits - int(np.argmax(distances[half - 1 : fits][::-1]))
        yield edges[first], edges[cut]
        first = cut
    yield edges[first], edges[last]


def chunker(expression: Expression | str) -> Chunker:
    """Return the chunker an expression names; raises SpecError showing how to write one.

    ``fixed(tokens=512, overlap=50)``, ``sentence(tokens=512)``, ``markdown(tokens=512)``, ``none``, and
    ``semantic(tokens=512, threshold=95)``, which compares sentences by the encoder it names:
    ``semantic('all-MiniLM-L6-v2')``. Without ``overlap`` it is 50, at most a quarter of ``tokens``.

    >>> split = chunker("fixed(tokens=3, overlap=1)")
    >>> [(span.start, span.end) for span in split("one two three four five")]
    [(0, 13), (8, 23)]
    """
    parsed = parse(expression, like=LIKE) if isinstance(expression, str) else expression
    if not isinstance(parsed, Expression):
        raise SpecError(f"cannot chunk by '{parsed}'; write one chunker like {FORMS['fixed']}")
    name = parsed.name
    if name not in FORMS:
        raise SpecError(f"there is no chunker '{name}'; use {nearest(name, FORMS)}")
    form = parse(FORMS[name])
    assert isinstance(form, Expression)
    usual: dict[str, Any] = dict(form.options)
    settings = dict(parsed.options)
    for key in settings:
        if key not in usual:
            raise SpecError(f"the chunker {name} has no setting '{key}'; write it like {FORMS[name]}")
    if parsed.at is not None or (parsed.args and name != "semantic"):
        raise SpecError(f"cannot chunk by '{parsed}'; write it like {FORMS[name]}")
    if name == "none":
        return whole
    tokens = _whole_number(settings.get("tokens", usual["tokens"]), "tokens", name, least=1)
    if name == "fixed":
        overlap = _whole_number(settings.get("overlap", min(usual["overlap"], tokens // 4)), "overlap", name, least=0)
        if overlap >= tokens:
            raise SpecError(f"fixed cannot repeat overlap={overlap} of tokens={tokens}; write an overlap below tokens")
        return partial(fixed, tokens=tokens, overlap=overlap)
    if name == "sentence":
        return partial(sentences, tokens=tokens)
    if name == "markdown":
        return partial(sections, tokens=tokens)
    threshold = settings.get("threshold", usual["threshold"])
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 100:
        raise SpecError(f"semantic cannot have threshold={threshold!r}; write a percentile from 0 to 100, like threshold=95")
    return partial(semantic, tokens=tokens, threshold=threshold, embed=_embedding(parsed))


def _whole_number(value: Any, key: str, name: str, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SpecError(f"{name} cannot have {key}={value!r}; write a whole number from {least} up, like {FORMS[name]}")
    return value


def _embedding(expression: Expression) -> Embed:
    """Return what compares sentences; an encoder is loaded now, so that a missing one is known before anything is written."""
    from ringtrue.retrieve.encode import DEFAULT_MODEL, encoder

    models = expression.args
    if len(models) > 1 or not all(isinstance(model, str) and model for model in models):
        raise SpecError(f"cannot chunk by '{expression}'; write it like semantic('all-MiniLM-L6-v2', tokens=512)")
    return encoder(str(models[0]) if models else DEFAULT_MODEL).encode
