"""Experiments ⇄ files for others: the JSON of ``experiments.json``, and CSV for spreadsheets.

A CSV has one column per changed setting (``config_changes.chunking.max_tokens``) and per measure (``results.recall_at_5``). A
cell is a plain text or a JSON value; a text that would read as a JSON value is written in quotes, so that nothing changes on
the way there and back.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.experiment.ledger import rows_of, write_document
from ringtrue.experiment.record import FIELDS, Experiment
from ringtrue.formats.text import Place, parse_json, read_json, read_text, write_whole

GROUPS = ("config_changes", "results", "extra")
_PLAIN = tuple(name for name in FIELDS if name not in GROUPS)


def read_experiments(path: Path) -> tuple[Experiment, ...]:
    """Return the experiments in a .json or .csv file; raises InputError with the place of what cannot be read."""
    if _kind(path) == "csv":
        return _from_csv(read_text(path), Place(str(path)))
    return tuple(experiment for _, experiment in rows_of(read_json(path), Place(str(path))))


def write_experiments(experiments: Sequence[Experiment], path: Path) -> None:
    """Write experiments as .json (in the form of ``experiments.json``) or .csv; raises InputError for another ending."""
    if _kind(path) == "csv":
        write_whole(_as_csv(experiments), path)
    else:
        write_document({"experiments": [experiment.as_dict() for experiment in experiments]}, path)


def _kind(path: Path) -> str:
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("json", "csv"):
        raise InputError(f"{path}: the ending names no form for experiments; name the file .json or .csv")
    return kind


def _as_csv(experiments: Sequence[Experiment]) -> str:
    rows = []
    for experiment in experiments:
        row = experiment.as_dict()
        cells = {name: str(row.pop(name)) for name in _PLAIN if name in row}
        groups = {name: row.pop(name) for name in ("config_changes", "results")} | {"extra": row}
        cells |= {f"{group}.{name}": _cell(value) for group, values in groups.items() for name, value in values.items()}
        rows.append(cells)
    columns = [*_PLAIN, *_in_order(name for row in rows for name in row if name not in _PLAIN)]
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _in_order(names: Iterable[str]) -> list[str]:
    """Return columns once, those of a group side by side."""
    once = list(dict.fromkeys(names))
    return [name for group in GROUPS for name in once if name.startswith(f"{group}.")]


def _cell(value: Any) -> str:
    if isinstance(value, str) and value and _read(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def _read(cell: str) -> Any:
    try:
        return parse_json(cell, Place(""))
    except InputError:
        return cell


def _from_csv(text: str, place: Place) -> tuple[Experiment, ...]:
    table = csv.reader(io.StringIO(text, newline=""))
    header = next(table, [])
    for name in header:
        if name not in _PLAIN and name.partition(".")[0] not in GROUPS:
            raise place.on(1).error(f"there is no column '{name}'", "call it results.NAME, config_changes.NAME or extra.NAME")
    found: list[Experiment] = []
    for cells in table:
        here = place.on(table.line_num)
        if not any(cells):
            continue
        if len(cells) != len(header):
            raise here.error(f"the row has {len(cells)} cells, the header {len(header)}", "quote texts that hold commas")
        row: dict[str, Any] = {"config_changes": {}, "results": {}}
        for name, cell in zip(header, cells, strict=True):
            group, dot, inner = name.partition(".")
            if name in _PLAIN:
                # Empty is how a table says "not known"; the first of our own fields are texts that may be empty.
                row |= {name: cell} if cell or name in ("date", "description", "verdict") else {}
            elif cell and dot:
                target = row if group == "extra" else row[group]
                target[inner] = _read(cell)
        experiment = Experiment.of(row, here)
        if any(other.id == experiment.id for other in found):
            raise here.error(f"the id '{experiment.id}' comes twice", "give each experiment its own")
        found.append(experiment)
    return tuple(found)
