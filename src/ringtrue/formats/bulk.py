"""Large TREC run files as columns: scores and keys of (query, document) pairs instead of millions of Python strings.

Blocks of the file are taken apart by vector operations, on all cores at once. Document ids stay in the file; scoring needs
the text of few of them (judged documents, ties around them, repeats). Whatever is unusual about a file (mixed or doubled
blanks, comments, a score that is not a number, a damaged line) makes ``read_run`` return None; the strict reader takes over.

A million lines take 0.23 s of processor time here, spread over the cores; 3.1 s in the strict reader, and 0.4 s in a loop of
``line.split()`` that checks nothing, on one core. DuckDB's and Polars' CSV readers take 1.1 and 0.9 s for seven million lines
where this takes 0.6, and they forgive what the strict reader does not (empty fields, NUL, 1_000), so that every byte had to be
looked at anyway.

What users would lose without this file: line by line, the seven million lines of ``benchmarks/measures.py`` take 22 s of
processor time instead of 1.6 s. That is more than pytrec_eval needs in all, and the limit is a quarter of its time. (Measured
again on 700,000 lines: 1.83 s and 0.095 s.)
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ringtrue.formats.text import read_bytes
from ringtrue.id_columns import Codes, Ints, Keys
from ringtrue.records import Floats, Run

Bytes = NDArray[np.uint8]
Content = mmap.mmap | bytes
"""A file that is mapped into memory, or what a gzipped one holds."""
_BLOCK = 1 << 22
_THREADS = os.cpu_count()
_LONGEST_NUMBER = 64
_LONGEST_ID = 65_535
_SPACE, _TAB, _CR, _LF, _HASH = 32, 9, 13, 10, 35
_WIDE_BLANKS = tuple(chr(code).encode() for code in range(0x80, 0x3001) if chr(code).isspace())
_NUMERAL = np.zeros(256, np.bool_)
_NUMERAL[list(b"0123456789+-.eE\0")] = True
_TAILS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)
_MIX, _SPREAD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True, eq=False)
class SpanIds:
    """Document ids that lie in a file, each at its place: an offset within its block, and a length."""

    content: Content
    blocks: Ints
    """Where each block begins in the file."""
    first: Ints
    """The first row of each block."""
    offset: NDArray[np.uint32]
    length: NDArray[np.uint16]
    keys: Keys

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: Ints) -> list[str]:
        block = self.blocks[np.searchsorted(self.first, rows, side="right") - 1]
        places = zip((block + self.offset[rows]).tolist(), self.length[rows].tolist(), strict=True)
        return [self.content[start : start + length].decode() for start, length in places]

    def pair_keys(self, query_ids: Sequence[str], query: Codes) -> Keys:
        return self.keys

    def keys_of(self, queries: Sequence[str], documents: Sequence[str]) -> Keys:
        return _pair(_hash_texts(queries), _hash_texts(documents))


@dataclass(frozen=True, eq=False)
class _Columns:
    """Room for all rows. Each block fills its own part: touching new memory costs more than the arithmetic."""

    offset: NDArray[np.uint32]
    length: NDArray[np.uint16]
    keys: Keys
    score: Floats
    query: NDArray[np.int32]

    @classmethod
    def of(cls, rows: int) -> _Columns:
        return cls(
            np.empty(rows, np.uint32),
            np.empty(rows, np.uint16),
            np.empty(rows, np.uint64),
            np.empty(rows, np.float64),
            np.empty(rows, np.int32),
        )


@dataclass(frozen=True, eq=False)
class _Heads:
    """The queries of one block where they begin."""

    row: Ints
    key: Keys
    start: Ints
    length: Ints


def read_run(path: Path) -> Run | None:
    """Return the run in a plain, uniform TREC file, or None when the strict reader has to look at it."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        content = read_bytes(path) if packed else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    first = content[: content.find(b"\n") + 1 or len(content)]
    blank = _TAB if b"\t" in first else _SPACE
    ends = (_CR, _LF) if first.endswith(b"\r\n") else (_LF,)
    pattern = np.array([blank] * 5 + list(ends), np.uint8)
    borders = list(_borders(content))
    with ThreadPoolExecutor(_THREADS) as pool:
        sizes = np.array(list(pool.map(partial(_count_lines, content), borders)), np.int64)
        before = np.cumsum(sizes) - sizes
        columns = _Columns.of(int(sizes.sum()))
        found = list(pool.map(partial(_read_block, content, pattern, columns), borders, before.tolist(), sizes.tolist()))
    heads = [head for head in found if head is not None]
    if len(heads) < len(found):
        return None
    names = _name_queries(content, heads, columns)
    starts = np.array([start for start, _ in borders], np.int64)
    docs = SpanIds(content, starts, before, columns.offset, columns.length, columns.keys)
    last_line = content[content.rfind(b"\n", 0, len(content) - 1) + 1 :].split(bytes([blank]))
    return Run(names, columns.query, docs, columns.score, name=last_line[5].strip().decode())


def _count_lines(content: Content, border: tuple[int, int]) -> int:
    start, end = border
    raw = np.frombuffer(content, np.uint8, end - start, start)
    return int(np.count_nonzero(raw == _LF)) + int(raw[-1] != _LF)


def _borders(content: Content) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of blocks that end with a line."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", min(start + _BLOCK, len(content)) - 1) + 1 or len(content)
        yield start, end
        start = end


def _read_block(
    content: Content, pattern: Bytes, into: _Columns, border: tuple[int, int], row: int, lines: int
) -> _Heads | None:
    """Fill the rows of one block and return its queries, or None when the block is unusual."""
    start, end = border
    size = end - start
    # A copy with room behind it: words of eight bytes may be read at any place, and a last line can be closed.
    raw = np.empty(size + 16, np.uint8)
    raw[:size] = np.frombuffer(content, np.uint8, size, start)
    raw[size:] = 0
    if raw[size - 1] != _LF:
        closing = pattern[5:]
        raw[size : size + len(closing)] = closing
        size += len(closing)
    marks = np.flatnonzero(raw[:size] <= _SPACE)
    if len(marks) != lines * len(pattern):
        return None
    # One copy turns the marks of a line into columns; every later step then reads memory in order.
    columns = np.ascontiguousarray(marks.reshape(-1, len(pattern)).T)
    begin = np.concatenate(([0], columns[-1][:-1] + 1))
    query_length, place = columns[0] - begin, columns[1] + 1
    length = columns[2] - place
    if (
        not _uniform(raw[:size], columns, begin, pattern)
        or query_length.min() < 1
        or not 0 < length.min() <= length.max() <= _LONGEST_ID
    ):
        return None
    score = _numbers(raw, columns[3] + 1, columns[4]) if _plain(raw[:size]) else None
    if score is None:
        return None
    query_keys = _hash(raw, begin, query_length)
    mine = slice(row, row + lines)
    into.offset[mine], into.length[mine], into.score[mine] = place, length, score
    into.keys[mine] = _pair(query_keys, _hash(raw, place, length))
    heads = np.concatenate(([0], np.flatnonzero(query_keys[1:] != query_keys[:-1]) + 1))
    return _Heads(heads + row, query_keys[heads], begin[heads] + start, query_length[heads])


def _uniform(raw: Bytes, columns: Ints, begin: Ints, pattern: Bytes) -> bool:
    """True for lines of six fields with one blank between them that are not comments.

    There are as many line feeds as lines. When each line's marks end with one, all other marks lie inside lines; when there
    are five times as many blanks, they are all the one blank.
    """
    lines = columns.shape[1]
    return bool(
        all((raw[column] == kind).all() for column, kind in zip(columns[5:], pattern[5:], strict=True))
        and np.count_nonzero(raw == pattern[0]) == 5 * lines
        and (len(pattern) == 6 or (columns[6] - columns[5] == 1).all())
        # Of the six fields these three are read by nobody else, who would notice that one is empty.
        and all((columns[after] - columns[before]).min() > 1 for before, after in ((0, 1), (2, 3), (4, 5)))
        and (raw[begin] != _HASH).all()
    )


def _plain(raw: Bytes) -> bool:
    """True for UTF-8 without a byte-order mark and without blanks of other scripts, which could make up a whole id."""
    if raw.max() < 128:
        return True
    text = raw.tobytes()
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return not text.startswith(b"\xef\xbb\xbf") and not any(blank in text for blank in _WIDE_BLANKS)


def _numbers(raw: Bytes, start: Ints, end: Ints) -> Floats | None:
    """Return the numbers written from ``start`` to ``end``, or None if one is not a finite number."""
    found = _fixed_point(raw, start, end)
    if found is None:
        length = end - start
        longest = int(length.max())
        if longest > _LONGEST_NUMBER:
            return None
        column = np.arange(longest)
        letters = np.where(column < length[:, None], raw[np.minimum(start[:, None] + column, len(raw) - 1)], 0).astype(np.uint8)
        if not _NUMERAL[letters].all():
            return None
        try:
            found = letters.view(f"S{longest}").ravel().astype(np.float64)
        except ValueError:
            return None
    return found if np.isfinite(found).all() else None


def _fixed_point(raw: Bytes, start: Ints, end: Ints) -> Floats | None:
    """Return the numbers when all have the same number of decimals, the way most programs print them.

    Up to fifteen digits are exact as a whole number and dividing them by a power of ten rounds once, as reading them does.
    """
    written = bytes(raw[start[0] : end[0]])
    decimals = len(written) - written.find(b".") - 1 if b"." in written else -1
    signed = (raw[start] == 43) | (raw[start] == 45)
    digits = end - start - signed - (decimals >= 0)
    if digits.min() < 1 or digits.max() > 15 or decimals > 15:
        return None
    if decimals >= 0 and not ((digits >= decimals).all() and (raw[end - 1 - decimals] == 46).all()):
        return None
    whole = np.zeros(len(start), np.int64)
    fewest = int(digits.min())
    for index in range(int(digits.max())):
        place = end - 1 - index - (0 <= decimals <= index)
        digit = raw[place] - np.uint8(48) if index < fewest else np.where(index < digits, raw[place] - np.uint8(48), 0)
        if digit.max() > 9:
            return None
        whole += digit * np.int64(10**index)
    value = whole / 10.0 ** max(decimals, 0)
    return np.where(signed & (raw[start] == 45), -value, value)


def _hash(raw: Bytes, start: Ints, length: Ints) -> Keys:
    """Return a 64-bit key of the bytes at each place, eight bytes at a time; ``raw`` has eight bytes to spare at its end."""
    words = np.ndarray((len(raw) - 7,), "<u8", raw.data, strides=(1,))
    key = length.astype(np.uint64) * _SPREAD
    shortest = int(length.min(initial=0))
    for at in range(0, int(length.max(initial=0)), 8):
        left = length - at
        if at + 8 <= shortest:
            word = words[start + at]
            key = (key ^ word) * _MIX
        else:
            word = words[np.minimum(start + at, len(words) - 1)] & _TAILS[np.clip(left, 0, 8)]
            key = np.where(left > 0, (key ^ word) * _MIX, key)
        key ^= key >> np.uint64(29)
    return key


def _hash_texts(texts: Sequence[str]) -> Keys:
    """Return the keys these texts would have in a file."""
    pieces = [text.encode("utf-8", "surrogatepass") for text in texts]
    length = np.array([len(piece) for piece in pieces], np.int64)
    raw = np.frombuffer(b"".join(pieces) + bytes(16), np.uint8)
    return _hash(raw, np.cumsum(length) - length, length)


def _pair(query: Keys, document: Keys) -> Keys:
    key = (query * _SPREAD ^ document) * _MIX
    return key ^ key >> np.uint64(32)


def _name_queries(content: Content, parts: Sequence[_Heads], columns: _Columns) -> tuple[str, ...]:
    """Fill the query column and return the queries in the order of their first appearance."""
    row, key, start, length = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("row", "key", "start", "length")
    )
    _, first_seen, group = np.unique(key, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first_seen, kind="stable")
    code = np.empty(len(by_appearance), np.int32)
    code[by_appearance] = np.arange(len(by_appearance))
    columns.query[:] = np.repeat(code[group], np.diff(np.append(row, len(columns.query))))
    named = first_seen[by_appearance]
    places = zip(start[named].tolist(), length[named].tolist(), strict=True)
    return tuple(content[at : at + size].decode() for at, size in places)
