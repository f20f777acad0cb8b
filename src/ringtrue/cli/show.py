"""How results are shown: one JSON object for machines, a rich table on a terminal, plain columns in a pipe."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ringtrue.brief import counted as counted
from ringtrue.errors import OK

if TYPE_CHECKING:
    from rich.progress import Progress


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; an undefined number becomes null, never 0."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def pick(record: object, *names: str) -> dict[str, Any]:
    """Return some attributes of a record by name, for ``as_json``."""
    return {name: getattr(record, name) for name in names}


def as_json(value: Any) -> None:
    """Print one JSON object and nothing else."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=2)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a character pair cannot be printed, but it has an escape
        text = json.dumps(plain(value), indent=2)
    print(text)


def result(json: bool, record: Any, *parts: str | Table | None, notes: Iterable[str] = (), code: int = OK) -> None:
    """Print what a command found, and end the command if the exit code is not 0.

    With ``--json`` that is one object, the record; else the parts that are not empty, then remarks on standard error.
    """
    if json:
        as_json(record)
    else:
        page(*parts, notes=notes)
    end_with(code)


def page(*parts: str | Table | None, notes: Iterable[str] = ()) -> None:
    """Print texts and tables, without those that are empty, then remarks; a blank line precedes every table but the first."""
    for index, part in enumerate(part for part in parts if part):
        if isinstance(part, Table):
            part.print(gap=index > 0)
        else:
            print(harmless(part))
    for text in filter(None, notes):
        note(text)


def end_if_json(wanted: bool, value: Any) -> None:
    """With ``--json``, print one JSON object and end the command; else return, so that the caller prints for people."""
    if wanted:
        as_json(value)
        raise typer.Exit


def end_with(code: int) -> None:
    """End the command with an exit code; 0 returns."""
    if code:
        raise typer.Exit(code)


def more(count: int, how: str = "--json lists all", *, indent: str = "") -> None:
    """Say how many further ones are not printed, if any, and how to see them."""
    if count > 0:
        print(f"{indent}… and {count} more ({how})")


def number(value: float | None, digits: int = 4) -> str:
    """Return a number for a table; a dash stands for "not defined"."""
    return "—" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def score(value: float | None) -> str:
    """Return a hit's score for a table; small ones, such as reciprocal ranks, keep four digits that mean something."""
    return f"{value:.4g}" if value is not None and 0 < abs(value) < 0.1 else number(value)


def signed(value: float | None, digits: int = 4) -> str:
    """Return a difference for a table, with its sign."""
    return "—" if value is None or math.isnan(value) else f"{value:+.{digits}f}"


def interval(low: float, high: float, digits: int = 4) -> str:
    """Return the interval of a difference for a table."""
    return f"{signed(low, digits)} … {signed(high, digits)}" if math.isfinite(low) and math.isfinite(high) else "—"


def p_value(value: float) -> str:
    """Return a p-value for a table."""
    return "—" if math.isnan(value) else f"{value:.2g}"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share for a table."""
    return "—" if share is None else f"{100 * share:.{digits}f} %"


def short(text: str, length: int = 48) -> str:
    """Return the beginning of a text on one line, with an ellipsis if it is longer."""
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def time_of(stamp: str) -> str:
    """Return the time of a stored row for a table, to the second."""
    return stamp[:19].replace("T", " ")


def on_terminal() -> bool:
    """True when a person is looking."""
    return sys.stdout.isatty()


@dataclass(frozen=True)
class Table:
    """Rows below headers: the first ``text_columns`` columns are texts, the others numbers. Without rows nothing is printed.

    Cells are texts, or values: a float gets four digits, None and NaN a dash.
    """

    headers: Sequence[object]
    rows: Iterable[Iterable[object]]
    text_columns: int = 1
    title: str = ""
    most: int | None = None
    """How many rows are printed; a line says how many more there are and how to see them."""
    how: str = "--json lists all"

    def print(self, *, gap: bool = False) -> None:
        """Print the table, with lines and colours on a terminal and as plain columns in a pipe, after a blank line if asked."""
        every = [[_cell(value) for value in row] for row in self.rows]
        rows = every[: self.most]
        if not rows:
            return
        if gap:
            print()
        headers = list(map(_cell, self.headers))
        (self._print_rich if on_terminal() else self._print_plain)(headers, rows)
        more(len(every) - len(rows), self.how)

    def _print_rich(self, headers: list[str], rows: list[list[str]]) -> None:
        from rich.console import Console
        from rich.markup import escape  # square brackets in a cell are not styles
        from rich.table import Table as RichTable

        made = RichTable(title=self.title or None, title_justify="left", header_style="bold", title_style="bold")
        for index, header in enumerate(headers):
            made.add_column(header, justify="left" if index < self.text_columns else "right", overflow="fold")
        for row in rows:
            made.add_row(*map(escape, row))
        Console().print(made)

    def _print_plain(self, headers: list[str], rows: list[list[str]]) -> None:
        lines = [headers, *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        if self.title:
            print(self.title)
        for line in lines:
            cells = enumerate(zip(line, widths, strict=True))
            print("  ".join(f"{cell:{'<' if i < self.text_columns else '>'}{width}}" for i, (cell, width) in cells).rstrip())


def table(headers: Sequence[object], rows: Iterable[Iterable[object]], *, text_columns: int = 1) -> None:
    """Print a table."""
    Table(headers, rows, text_columns).print()


def _cell(value: object) -> str:
    return harmless(number(value) if value is None or isinstance(value, float) else str(value)).replace("\n", "\\n")


@contextmanager
def bar(*, quiet: bool = False, in_bytes: bool = False, transient: bool = False) -> Iterator[Progress | None]:
    """Give a progress bar on standard error; None if that is not a terminal, or ``quiet``."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    done = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), done, TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=Console(stderr=True), transient=transient) as made:
        yield made


def note(text: str) -> None:
    """Print a remark to a person, out of the way of the results."""
    print(f"note: {harmless(text)}", file=sys.stderr)


def notes(texts: Iterable[str]) -> None:
    """Print remarks, each in its own line."""
    for text in texts:
        note(text)


def harmless(text: str) -> str:
    """Return a text whose control characters are written out: a stored name must not command the reader's terminal."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
