"""How results are shown: one JSON object for machines, a rich table on a terminal, plain columns in a pipe."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import typer

from ringtrue.brief import counted as counted


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


def on_terminal() -> bool:
    """True when a person is looking."""
    return sys.stdout.isatty()


def table(headers: Sequence[object], rows: Iterable[Iterable[object]], *, title: str = "", text_columns: int = 1) -> None:
    """Print a table; the first ``text_columns`` columns are texts, the others numbers.

    Cells are texts, or values: a float gets four digits, None and NaN a dash.
    """
    lines = [[_cell(value) for value in row] for row in (headers, *rows)]
    if on_terminal():
        from rich.console import Console
        from rich.markup import escape  # square brackets in a cell are not styles
        from rich.table import Table

        rich_table = Table(title=title or None, title_justify="left", header_style="bold", title_style="bold")
        for index, header in enumerate(lines[0]):
            rich_table.add_column(header, justify="left" if index < text_columns else "right", overflow="fold")
        for line in lines[1:]:
            rich_table.add_row(*map(escape, line))
        Console().print(rich_table)
        return
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if title:
        print(title)
    for line in lines:
        padded = [cell.ljust(width) for cell, width in zip(line[:text_columns], widths, strict=False)]
        padded += [cell.rjust(width) for cell, width in zip(line[text_columns:], widths[text_columns:], strict=True)]
        print("  ".join(padded).rstrip())


def _cell(value: object) -> str:
    return harmless(number(value) if value is None or isinstance(value, float) else str(value)).replace("\n", "\\n")


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
