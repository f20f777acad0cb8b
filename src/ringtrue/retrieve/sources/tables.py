"""CSV and TSV → records. In: a file with a header; out: its rows by the names of the columns, each with its first line."""

from __future__ import annotations

import csv
from itertools import chain
from typing import IO

from ringtrue.formats import Place
from ringtrue.retrieve.sources.opening import Empty, lines_of
from ringtrue.retrieve.sources.records import Rows

_LONGEST_CELL = (1 << 31) - 1  # what a C long holds everywhere


def table_rows(content: IO[bytes], place: Place, *, tabs: bool) -> Rows:
    """Yield the rows of CSV or TSV with a header; TSV knows no quotes."""
    lines = lines_of(content, place)
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        raise Empty
    before, header = first[0] - 1, first[1]
    separator = "\t" if tabs else max(",;\t", key=header.count)
    # The limit of 128 KiB a cell is the module's, not the format's; documents are longer than that.
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(
        chain([header], (line for _, line in lines)),
        delimiter=separator,
        quoting=csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL,
        strict=True,
    )
    start = before + 1  # where a record begins: an open quote is found only at the end of the file, far from the line to mend
    names: list[str] = []
    try:
        for cells in reader:
            here, start = place.on(start), before + reader.line_num + 1
            if not names:
                names = _header(cells, here)
            elif len(cells) == len(names):
                yield here, dict(zip(names, cells, strict=True))
            elif cells:
                cure = "remove tabs and line breaks from cells" if tabs else "quote cells that hold the separator"
                raise here.error(f"{len(cells)} cell{'s' if len(cells) != 1 else ''} under {len(names)} columns", cure)
    except csv.Error as problem:
        raise place.on(start).error(f"not valid CSV: {problem}", "mend the quotes or line ends there") from problem


def _header(cells: list[str], place: Place) -> list[str]:
    names = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, 1)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise place.error(f"the column '{twice}' is named twice", "give every column its own name")
    return names
