"""Large TREC run files through DuckDB: columns of keys and scores instead of millions of Python strings.

Document ids stay in the file. Scoring needs the text of few of them (judged documents, ties around them, repeats), and an
index of line ends finds any line at once. Whatever is unusual about a file (mixed or doubled blanks, comments, a score that
is no number, a damaged line) makes ``read_run`` return None, and the strict reader takes over. The bytes are looked at
first, because DuckDB forgives things that the strict reader does not: empty fields, NUL, 1_000, wrong bytes in a tag.
"""

from __future__ import annotations

import glob
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringtrue.records import Ints, Keys, Run

_COLUMNS = "{'q': 'VARCHAR', 'z': 'VARCHAR', 'd': 'VARCHAR', 'r': 'VARCHAR', 's': 'VARCHAR', 't': 'VARCHAR'}"
_BLOCK = 1 << 20
_LINES = 50_000
# DuckDB reads 1_000 and +-1 as numbers, the strict reader does not.
_STRICT_SCORE = "CASE WHEN contains(s, '_') OR starts_with(s, '+-') THEN NULL ELSE CAST(s AS DOUBLE) END"
_WIDE_BLANKS = tuple(chr(code).encode() for code in range(0x80, 0x3001) if chr(code).isspace())


@dataclass(frozen=True, eq=False)
class LineIds:
    """Document ids that live in the lines of a run file."""

    content: mmap.mmap
    ends: Ints
    keys: Keys
    blank: bytes

    def __len__(self) -> int:
        return len(self.keys)

    def line(self, row: int) -> list[bytes]:
        """Return the fields of one line up to its document."""
        start = 0 if row == 0 else int(self.ends[row - 1]) + 1
        return self.content[start : int(self.ends[row])].split(self.blank, 3)

    def take(self, rows: Ints) -> list[str]:
        return [self.line(row)[2].decode() for row in rows.tolist()]

    def pair_keys(self, query_ids: Sequence[str], query: Ints) -> Keys:
        return self.keys

    def keys_of(self, queries: Sequence[str], documents: Sequence[str]) -> Keys:
        import duckdb

        if not documents:
            return np.zeros(0, np.uint64)
        pairs = {"q": np.array(queries, object), "d": np.array(documents, object)}
        connection = duckdb.connect()
        connection.register("pairs", pairs)
        found: Keys = connection.execute("SELECT hash(q, d) AS h FROM pairs").fetchnumpy()["h"]
        return found


def read_run(path: Path) -> Run | None:
    """Return the run in a plain, uniform TREC file, or None when the strict reader has to look at it."""
    with path.open("rb") as file:
        first = file.readline()
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    blank = b"\t" if b"\t" in first else b" "
    ends = _line_ends(content)
    if ends is None:
        return None
    columns = _columns(path, blank.decode(), checked=_holds(content, b"_+"))
    if columns is None or len(ends) != len(columns["s"]) or not np.isfinite(columns["s"]).all():
        return None
    docs = LineIds(content, ends, columns["h"], blank)
    change = np.concatenate(([0], np.flatnonzero(columns["g"][1:] != columns["g"][:-1]) + 1))
    _, first_seen, group = np.unique(columns["g"][change], return_index=True, return_inverse=True)
    by_appearance = np.argsort(first_seen, kind="stable")
    place = np.empty(len(by_appearance), np.int64)
    place[by_appearance] = np.arange(len(by_appearance))
    query = np.repeat(place[group], np.diff(np.concatenate((change, [len(ends)]))))
    heads = [docs.line(int(row)) for row in change[first_seen[by_appearance]]]
    names = tuple(head[0].decode() for head in heads)
    if any(name.startswith(("#", "\ufeff")) for name in names):
        return None
    tag = content[int(ends[-2]) + 1 if len(ends) > 1 else 0 : int(ends[-1])].split(blank)[5].strip()
    return Run(names, query, docs, columns["s"], name=tag.decode())


def _columns(path: Path, blank: str, *, checked: bool) -> dict[str, Any] | None:
    import duckdb

    score = _STRICT_SCORE if checked else "CAST(s AS DOUBLE)"
    try:
        # A file name is no pattern, and a folder called s=3 is no column.
        found = duckdb.connect().execute(
            f"SELECT hash(q, d) AS h, hash(q) AS g, {score} AS s FROM read_csv(?, delim=?, header=false, quote='', escape='', "
            f"auto_detect=false, hive_partitioning=false, columns={_COLUMNS})",
            [glob.escape(str(path)), blank],
        )
        columns = dict(found.fetchnumpy())
    except duckdb.Error:
        return None
    return None if np.ma.is_masked(columns["s"]) else columns


def _line_ends(content: mmap.mmap) -> Ints | None:
    """Return the position of every line feed, or None for lines that are not six fields with one blank between them.

    A last line without a line feed ends with the file.
    """
    raw = np.frombuffer(content, np.uint8)
    blanks = pairs = returns = line_breaks = 0
    wide = False
    parts = []
    for at in range(0, len(raw), _BLOCK):
        block = raw[at : at + _BLOCK + 1]  # one more, so that a pair across the border is seen
        own = block[:_BLOCK]
        blank = block <= 32
        blanks += int(np.count_nonzero(blank[:_BLOCK]))
        pairs += int(np.count_nonzero(blank[1:] & blank[:-1]))
        returns += int(np.count_nonzero(own == 13))
        line_breaks += int(np.count_nonzero((block[:-1] == 13) & (block[1:] == 10)))
        wide = wide or bool((own > 127).any())
        parts.append(np.flatnonzero(own == 10) + at)
    closed = bool(raw[-1] == 10)
    ends = np.concatenate(parts if closed else [*parts, [len(raw)]])
    # Blanks side by side are empty fields or blank lines, unless they are CRLF; one too many is a stray control character.
    uniform = pairs == returns == line_breaks and blanks == 6 * len(ends) - (not closed) + returns
    if not uniform or raw[0] <= 32 or (raw[-1] <= 32 and not closed) or (wide and not _plain(content, ends)):
        return None
    return ends


def _plain(content: mmap.mmap, ends: Ints) -> bool:
    """True for UTF-8 without blanks of other scripts, which could make up a whole id."""
    start = 0
    for last in [*range(_LINES - 1, len(ends) - 1, _LINES), len(ends) - 1]:
        chunk = content[start : int(ends[last])]
        start = int(ends[last])
        try:
            chunk.decode()
        except UnicodeDecodeError:
            return False
        if any(blank in chunk for blank in _WIDE_BLANKS):
            return False
    return True


def _holds(content: mmap.mmap, characters: bytes) -> bool:
    raw = np.frombuffer(content, np.uint8)
    blocks = (raw[at : at + _BLOCK] for at in range(0, len(raw), _BLOCK))
    return any((block == character).any() for block in blocks for character in characters)
