"""TREC qrels and run files, read strictly line by line: every rule of the format and every complaint about it is here.

Large run files take the columnar road of ``bulk`` first and come back here when anything about them is unusual, so the
slow reader is also the one that explains what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from ringtrue.errors import InputError
from ringtrue.formats.text import Place, lines, one_line, usable_id, write_text
from ringtrue.records import Qrels, Run

QRELS_LINE = "query iteration document grade"
RUN_LINE = "query Q0 document rank score tag"
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_BLANKS = re.compile(r"[ \t]+")
_WHOLE = re.compile(r"[-+]?\d{1,18}", re.ASCII)


def _records(file: Place) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) per line that is neither blank nor a comment."""
    found = False
    for number, line in lines(file.file):
        # Only ASCII blanks separate fields: an id may hold a no-break space or a vertical tab of another script.
        fields = _BLANKS.split(line.strip(" \t\r\f\v"))
        if fields == [""] or fields[0].startswith("#"):
            continue
        found = True
        if "\r" in line and "\r" in line.rstrip(" \t\r\f\v"):
            cure = "end lines with a line feed or CRLF"
            raise file.on(number).error(f"a carriage return inside the line ('{line[:60]}')", cure)
        yield number, fields
    if not found:
        raise file.error("the file holds only blank lines and comments", "write at least one record into it")


def read_qrels(path: str | Path) -> Qrels:
    """Return the judgments of a TREC qrels file."""
    file = Place(str(path))

    def rows() -> Iterator[tuple[str, str, int]]:
        grades: dict[tuple[str, str], tuple[int, int]] = {}
        for number, fields in _records(file):
            if len(fields) != 4:
                hint = " (is this a run file?)" if len(fields) == 6 else ""
                raise file.on(number).error(f"{_fields(fields)}, but a judgment has 4", f"write '{QRELS_LINE}'{hint}")
            query_id, _, doc_id, text = fields
            _check_ids(query_id, doc_id, file, number)
            # A place is made only where something is wrong; millions of lines are right.
            grade = int(text) if _WHOLE.fullmatch(text) else whole(text, file.on(number).at("grade"))
            known = grades.setdefault((query_id, doc_id), (grade, number))
            if known[0] != grade:
                raise file.on(number).error(
                    f"query '{query_id}' judges document '{doc_id}' as {grade}, but line {known[1]} says {known[0]}",
                    "keep one of the two",
                )
            yield query_id, doc_id, grade

    return Qrels.of(rows())


def read_run(path: str | Path) -> Run:
    """Return the answers of a TREC run file."""
    file = Place(str(path))
    name = "run"

    def rows() -> Iterator[tuple[str, str, float]]:
        nonlocal name
        for number, fields in _records(file):
            if len(fields) < 6:
                hint = " (is this a judgments file?)" if len(fields) == 4 else ""
                raise file.on(number).error(f"{_fields(fields)}, but an answer has 6", f"write '{RUN_LINE}'{hint}")
            query_id, _, doc_id, _, text, name = fields[:6]
            # What follows the tag is ignored, as trec_eval does; a number in the tag's place is a score moved by a blank.
            if len(fields) > 6 and _NUMBER.fullmatch(name):
                cure = f"write '{RUN_LINE}', ids without blanks"
                raise file.on(number).error(f"{_fields(fields)}, and the sixth, the tag, is the number '{name}'", cure)
            _check_ids(query_id, doc_id, file, number)
            score = float(text) if _NUMBER.fullmatch(text) else math.nan
            if not math.isfinite(score):
                finite(text, file.on(number).at("score"), query_id, doc_id)
            yield query_id, doc_id, score

    answers = list(rows())
    return Run.of(answers, name=name)


def _check_ids(query_id: str, doc_id: str, file: Place, number: int) -> None:
    """Raise InputError for an id that is blank in some script or no text at all; plain ASCII between blanks is fine."""
    for name, value in (("query", query_id), ("document", doc_id)):
        if not (value.isascii() and value.isprintable()):
            usable_id(value, file.on(number).at(name))


def finite(text: str, place: Place, query_id: str, doc_id: str) -> float:
    """Return a score written in a file; raises InputError naming place, query and document."""
    score = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(score):
        raise place.error(
            f"'{text[:40]}' (query '{query_id}', document '{doc_id}') is not a finite number", "write one like 12.5"
        )
    return score


def whole(text: str, place: Place) -> int:
    """Return a grade written in a file; raises InputError naming the place."""
    if not _WHOLE.fullmatch(text):
        raise place.error(f"'{text[:40]}' is not a whole number of at most 18 digits", "write 0, 1, 2 …")
    return int(text)


def _fields(fields: list[str]) -> str:
    return f"the line has {len(fields)} field{'s' if len(fields) != 1 else ''} ('{' '.join(fields)[:60]}')"


def write_qrels(qrels: Qrels, path: str | Path) -> None:
    """Write judgments as a TREC qrels file."""
    write_text("".join(f"{check_field(query)} 0 {check_field(doc)} {grade}\n" for query, doc, grade in qrels), Path(path))


def write_run(run: Run, path: str | Path) -> None:
    """Write answers as a TREC run file.

    Of a run whose order is the truth, a query whose scores would be sorted into another order gets scores that fall with its
    ranks instead; see ``reordered``.
    """
    by_rank = reordered(run)

    def rows() -> Iterator[str]:
        query, rank = None, 0
        for query_id, doc_id, score in run:
            rank = rank + 1 if query_id == query else 1
            query = query_id
            shown = -float(rank) if query_id in by_rank else score
            yield f"{check_field(query_id)} Q0 {check_field(doc_id)} {rank} {shown!r} {check_field(run.name)}\n"

    write_text("".join(rows()), Path(path))


def reordered(run: Run) -> frozenset[str]:
    """Return the queries whose order a reader would not get back from the scores, ties by document id descending.

    >>> sorted(reordered(Run.from_rankings({"q": ["a", "b"]})))
    []
    """
    if not run.ordered:
        return frozenset()
    return frozenset(
        query
        for (query, doc_id, score), (after, next_id, below) in pairwise(run)
        if query == after and not (score > below or (score == below and doc_id > next_id))
    )


def check_field(text: str) -> str:
    """Return an id or name that can stand in a line; raises InputError."""
    if re.search(r"[ \t\r\n\f\v\0]", text) or text.startswith(("#", "\ufeff")) or not text:
        reason = "blank, NUL, leading '#' or byte-order mark"
        cure = "use JSON or Parquet: the ending of the file decides, as in my.json"
        raise InputError(one_line(f"'{text}' cannot stand in a TREC file ({reason}); {cure}"))
    return text
